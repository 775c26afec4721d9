# SPDX-License-Identifier: Apache-2.0
"""Rows of the source that are not in a release: dropped for missing values, withheld for unknown ones, or lost."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from audit_folders import write_folder

import anonfit as af
from anonfit.auditing.api import audit, audit_release

KNOWN = ["a", "b", "c", "d"]
ROLES = {"who": "entity", "age": "quasi-identifier", "place": "quasi-identifier", "ill": "insensitive"}
COLUMNS = [
    {"name": "age", "type": "continuous", "missing": False, "domain": [None, None], "cuts": [50], "other": None},
    {"name": "place", "type": "nominal", "missing": False, "other": None,
     "taxonomy": {"name": "*", "children": [{"name": name} for name in KNOWN]}},
]  # fmt: skip
NODES: dict[str, Any] = {"column": [0, -1, -1], "children": [2, 0, 0], "start": [0, 0, 1], "set": [], "sets": []}


def visits(whole: int, missing: int) -> pl.DataFrame:
    """Persons with all values, and others whose place is missing, half of them older than 50; two rows each."""
    rows = [
        {"who": f"p{person}", "age": 20 + 60 * (person % 2), "place": None if person >= whole else KNOWN[person % 4],
         "ill": "flu" if row else "gout"}
        for person in range(whole + missing) for row in range(2)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def without_missing(path: Path, raw: pl.DataFrame, *, k: int) -> Path:
    """A release of the rows that have a place, which claims k persons in every group."""
    kept = raw.filter(pl.col("place").is_not_null())
    age = pl.when(pl.col("age") < 50).then(pl.lit("< 50")).otherwise(pl.lit("≥ 50"))
    return write_folder(
        path,
        kept.select(age=age, place=pl.lit("*"), ill="ill").sort("age", "place", "ill"),
        columns=COLUMNS,
        nodes=NODES,
        spec={
            "data": {"missing": [""], "missing_policy": "drop"},
            "columns": {name: {"role": role} for name, role in ROLES.items()},
            "privacy": {"k": k},
        },
        rows={"withheld": 0, "dropped": len(raw) - len(kept)},
        source=raw,
    )


def test_dropped_rows_are_no_persons_of_a_group(tmp_path: Path) -> None:
    raw = visits(whole=8, missing=40)
    found = audit_release(without_missing(tmp_path / "release", raw, k=15), source=raw)
    assert [finding.name for finding in found.missed] == ["k"]
    assert found.k == 4
    assert audit_release(without_missing(tmp_path / "honest", raw, k=4), source=raw).passed


def test_dropped_rows_are_in_no_cell_of_two_releases(tmp_path: Path) -> None:
    raw = visits(whole=8, missing=40)
    folder = without_missing(tmp_path / "release", raw, k=4)
    joint = audit_release(folder, source=raw, other=folder).joint
    assert joint is not None
    assert joint.smallest == 4


@pytest.mark.parametrize("seed", range(3))
def test_a_good_release_without_missing_values_passes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    raw = pl.DataFrame([
        {"who": person, "age": rng.choice([None, rng.randint(0, 95)]), "place": rng.choice([None, *KNOWN]),
         "height": rng.randint(150, 190), "ill": rng.choice("xyz")}
        for person in range(120) for _ in range(rng.randint(1, 4))
    ])  # fmt: skip
    words: Any = {"quasi_identifiers": ["age", "place", "height"], "entity": "who", "k": 12, "missing_policy": "drop"}
    af.anonymize(raw, insensitive=["ill"], **words).save(tmp_path / "release")
    kept = raw.drop_nulls(["age", "place"])
    found = audit_release(tmp_path / "release", source=raw)
    assert found.passed
    assert found.k == audit_release(tmp_path / "release", source=kept).k
    data = pl.read_parquet(tmp_path / "release" / "data.parquet")
    assert found.rows == len(kept) == len(data)


def test_persons_are_not_counted_on_rows_that_were_taken_out(tmp_path: Path) -> None:
    """A foreign file: of the 20 persons inside its labels, it holds rows of some."""
    raw = visits(whole=20, missing=0)
    file = raw.select(age=pl.lit("< 100"), place=pl.lit("*"), ill="ill")
    whole = audit(file, quasi_identifiers=["age", "place"], entity="who", k=20, source=raw)
    assert (whole.k, whole.passed) == (20, True)
    part = audit(file.head(6), quasi_identifiers=["age", "place"], entity="who", k=20, source=raw)
    assert part.k is None
    assert {finding.name: finding.met for finding in part.missed}["k"] is False


def people(seed: int, places: list[str]) -> pl.DataFrame:
    rng = random.Random(seed)
    return pl.DataFrame([
        {"age": rng.randint(0, 95), "place": rng.choice(places), "ill": rng.choice("xyz")} for _ in range(400)
    ])  # fmt: skip


def applied(tmp_path: Path, new: pl.DataFrame) -> Path:
    """New data released by the recoding of other data, in which all places are one."""
    words: Any = {"quasi_identifiers": ["age", "place"], "insensitive": ["ill"], "k": 150}
    made = af.anonymize(people(0, KNOWN), taxonomies={"place": COLUMNS[1]["taxonomy"]}, **words)
    assert set(made.data["place"]) == {"*"}
    made.extend(new, suppression_limit=1.0).save(tmp_path / "applied")
    return tmp_path / "applied"


@pytest.mark.parametrize("rows_at_once", [None, 37])
def test_rows_with_unknown_values_are_withheld_and_not_lost(tmp_path: Path, rows_at_once: int | None) -> None:
    new = people(1, [*KNOWN, "atlantis"])
    folder = applied(tmp_path, new)
    assert audit_release(folder, source=new, rows_at_once=rows_at_once).passed
    other = new.with_columns(pl.when(pl.col("place") == "atlantis").then(pl.lit("a")).otherwise("place").alias("place"))
    assert not audit_release(folder, source=other, rows_at_once=rows_at_once).passed


def test_a_released_row_with_an_unknown_value_is_found(tmp_path: Path) -> None:
    new = people(1, KNOWN)
    folder = applied(tmp_path, new)
    changed = new.with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("mu")).otherwise("place").alias("place")
    )
    names = {finding.name for finding in audit_release(folder, source=changed).missed}
    assert "released rows" in names
