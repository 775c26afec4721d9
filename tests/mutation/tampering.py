# SPDX-License-Identifier: Apache-2.0
"""Kinds of tampering that can be done to any release: what they share, and how one of them is planted.

The kinds are in tampering_rows.py, tampering_labels.py, tampering_files.py and tampering_claims.py. Unlike the faults of test_audit_mutations.py, which are planted in releases that are known, these look for a place in
whatever release they are given; where there is none they raise `Inapplicable`. Hashes, counts, order and the figures of
the report are mended afterwards, unless the tampering is about them.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import polars as pl
from planted import Planted, Shape

After = Callable[[], None]
"""What is done to the files once they are written; hashes are mended again."""

Kind = Callable[[Planted, random.Random], After | None]
KINDS: dict[str, Kind] = {}
HARMLESS: set[str] = set()
"""Kinds that leave a release that is still what it claims, at least sometimes."""


class Inapplicable(Exception):
    """A release in which there is no place for a kind of tampering."""


def kind(function: Kind) -> Kind:
    """Enter a kind into the bank."""
    KINDS[function.__name__] = function
    return function


def harmless(function: Kind) -> Kind:
    """Enter a kind that may do no harm."""
    HARMLESS.add(function.__name__)
    return kind(function)


def never(why: str) -> NoReturn:
    """Say that there is no place."""
    raise Inapplicable(why)


def pick(rng: random.Random, some: Any, what: str = "place") -> Any:
    """One of some, if there are any."""
    found = list(some)
    return rng.choice(found) if found else never(f"no {what}")


# --- places -------------------------------------------------------------------------------------------------------


def two_groups(p: Planted, rng: random.Random) -> tuple[list[int], list[int]]:
    """The rows of two groups, the larger first."""
    groups = p.data.with_row_index("row").group_by(p.keys, maintain_order=True).agg("row")["row"].to_list()
    if len(groups) < 2:
        never("one group only")
    one, two = rng.sample(groups, 2)
    return (one, two) if len(one) >= len(two) else (two, one)


def raw_column(p: Planted, rng: random.Random, *types: Any, tried: int = 2) -> str:
    """A raw column of some types with so many different values."""
    some = [c for c in p.raw if (not types or p.data.schema[c] in types) and p.data[c].n_unique() >= tried]
    return pick(rng, some, "raw column")


def label_column(p: Planted, rng: random.Random, holds: Callable[[str], bool] = bool) -> tuple[str, int]:
    """A column of labels, and a row whose label is such."""
    if p.spec["output"]["values"] != "labels":
        some = [c["name"] for c in p.recoding["columns"] if c["name"] in p.keys and "taxonomy" in c]
    else:
        some = p.keys
    found = [(c, row) for c in some for row, text in enumerate(p.data[c].to_list()) if text is not None and holds(text)]
    return pick(rng, found, "such label")


def typed_key(p: Planted, rng: random.Random, form: str, *ends: str) -> str:
    """A column of bounds or representatives that holds numbers or dates."""
    if p.spec["output"]["values"] != form:
        never(f"no {form}")
    some = [c for c in p.keys if p.data.schema[c] in (pl.Float64, pl.Int64, pl.Date) and c.endswith(ends or ("",))]
    return pick(rng, [c for c in some if p.data[c].drop_nulls().len()], "column")


def recoded(p: Planted, rng: random.Random, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """A column of the recoding that is such."""
    return pick(rng, [column for column in p.recoding["columns"] if holds(column)], "such column")


def more(value: Any, amount: int = 1) -> Any:
    """A little more of a number or date."""
    from datetime import date, timedelta

    return value + timedelta(days=amount) if isinstance(value, date) else value + amount


# --- planting one ---------------------------------------------------------------------------------------------------


def tampered(original: Path, copy: Path, source: pl.DataFrame, name: str, seed: int) -> bool:
    """Copy a release and plant one kind of tampering in it; False where there is no place for it."""
    shutil.copytree(original, copy)
    p = Planted(copy, Shape(lambda: source, {}))
    p.order = p.spec["output"]["order"] == "sorted"
    rows = p.data
    try:
        after = KINDS[name](p, random.Random(seed))
    except Inapplicable:
        shutil.rmtree(copy)
        return False
    if not p.data.equals(rows):
        mended(p)
    elif p.counts:
        p.data = rows
    p.write()
    if after is not None:
        after()
        if p.hashes:
            p.hash()
        p.write_json("manifest.json", p.manifest)
    return True


def mended(p: Planted) -> None:
    """Make the figures of the report those of the rows again."""
    file = p.path / "report.json"
    report = json.loads(file.read_text(encoding="utf-8"))
    p.manifest["rows"]["released"] = len(p.data)
    report["rows"] |= p.manifest["rows"]
    if all(column["role"] != "entity" for column in p.spec["columns"].values()) and set(p.keys) <= set(p.data.columns):
        persons = pl.col("persons").sum() if "persons" in p.data.columns else pl.len().alias("persons")
        sizes = p.data.group_by(p.keys).agg(persons)["persons"]
        found = {"groups": len(sizes), "smallest": sizes.min(), "largest": sizes.max()}
        report["audit"] |= {"rows": len(p.data), "persons": sizes.sum()}
        report["audit"]["sizes"] |= found
        report["group_sizes"] = [
            {"low": sizes.min(), "high": sizes.max(), "groups": len(sizes), "persons": sizes.sum()}
        ]
        if not report["audit"].get("sets"):
            report["audit"]["k"] = sizes.min()
    p.write_json("report.json", report)
