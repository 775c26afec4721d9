# SPDX-License-Identifier: Apache-2.0
"""Kinds of tampering that can be done to any release: what they share, and how one of them is planted.

The kinds are in tampering_rows.py, tampering_labels.py, tampering_files.py, tampering_claims.py and tampering_payloads.py. Unlike the faults of test_audit_mutations.py, which are planted in releases that are known, these look for a place in
whatever release they are given; where there is none they raise `Inapplicable`. Hashes, counts, order and the figures of
the report are mended afterwards, unless the tampering is about them.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import polars as pl
from checker_models import MODELS
from checker_report import FINDINGS
from planted import Planted, Shape

import anonfit as af
from anonfit.release.folder import expected_report

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
    rows, said = p.data, dict(p.manifest["audit"])
    try:
        after = KINDS[name](p, random.Random(seed))
    except Inapplicable:
        shutil.rmtree(copy)
        return False
    if p.counts and p.data.equals(rows):
        p.data = rows
    claimed = p.manifest["audit"] == said
    p.write()
    if claimed:
        forge(p, source, same=p.data.equals(rows))
    if after is not None:
        after()
        if p.hashes:
            p.hash()
        p.write_json("manifest.json", p.manifest)
    return True


def forge(p: Planted, source: pl.DataFrame, *, same: bool) -> None:
    """Make the report tell what is now in the folder, and that all is well, as a forger who has the source would; the
    picture of other rows is left out.
    """
    try:
        audit = af.audit_release(p.path, source=source)
    except af.errors.AnonfitError:
        return
    report, privacy = json.loads((p.path / "report.json").read_text(encoding="utf-8")), p.spec["privacy"]
    told = audit.public(max([privacy["k"], *(one.get("k", 0) for one in privacy.get("quasi_identifiers") or [])]))
    met = [one for one in told["findings"] if one["met"] and one["name"] in (*FINDINGS, "k", *MODELS, "max_confidence")]
    told |= {"passed": True, "findings": met, "source": report["audit"]["source"]}
    report["asked"] |= {"k": privacy["k"], "diversity": privacy.get("diversity", [])}
    report["rows"] |= p.manifest["rows"]
    report["audit"] = told
    report["partition"] = report["partition"] if same else None
    p.manifest["audit"] = {"passed": True, "findings": told["findings"]}
    if not told["sets"] and isinstance(told["persons"], int):
        sizes = told["sizes"]
        # A person with rows in several groups is counted in each, and sizes are then multiples of k, rounded down.
        step = privacy["k"] if "entity" in (column["role"] for column in p.spec["columns"].values()) else 1
        persons = sum(size // step * step * groups for size, groups in audit.sizes.of_size.items())
        report["group_sizes"] = [
            {"low": sizes["smallest"], "high": sizes["largest"], "groups": sizes["groups"], "persons": persons}
        ]
    for line in report["columns"]:
        if line["name"] in audit.frequent and line["role"] == "quasi-identifier":
            line["different"] = audit.frequent[line["name"]].different
    for line in report["detail"]:
        if (held := audit.frequent.get(line["column"])) is not None and p.spec["output"]["values"] == "labels":
            label, known = line["frequent_label"], sorted(map(str, held.labels))
            label = label if label in held.labels or not known else known[0]
            line |= {"labels": held.different, "frequent_persons": held.persons, "frequent_label": label}
    with suppress(Exception):  # a report of groups that are too small has no texts and no page
        report, _ = expected_report(p.path, p.manifest, report)
    p.write_json("report.json", report)
    if p.hashes:
        p.hash()
    with suppress(Exception):  # the page tells the hashes of the others
        for name, text in expected_report(p.path, p.manifest, report)[1].items():
            (p.path / name).write_text(text, encoding="utf-8")
    if p.hashes:
        p.hash()
    p.write_json("manifest.json", p.manifest)
