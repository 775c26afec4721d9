# SPDX-License-Identifier: Apache-2.0
"""Two releases of one table: their cells are counted as by hand, whichever of them is audited with the other."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from audit_folders import write_folder

from anonfit.auditing.api import audit, audit_release
from anonfit.errors import DataError
from anonfit.evaluation.comparing import Side, together

K = 4
CUTS = {"age": [40, 60], "pay": [50]}
PLACES = ["a", "b"]


def table(rng: random.Random, rows: int = 60) -> pl.DataFrame:
    """Persons with values that mean missing: -9 for numbers, NA for places."""
    return pl.DataFrame(
        {
            "who": [f"w{rng.randrange(rows // 2)}" for _ in range(rows)],
            "many": [rng.randint(1, 3) for _ in range(rows)],
            "age": [rng.choice([-9, *range(20, 80, 5)]) for _ in range(rows)],
            "pay": [rng.choice([-9, 10, 90]) for _ in range(rows)],
            "place": [rng.choice(["NA", *PLACES]) for _ in range(rows)],
            "ill": [rng.choice(["flu", "gout"]) for _ in range(rows)],
        }
    )


def label(name: str, value: Any) -> str:
    if value in (-9, "NA"):
        return "missing"
    if name == "place":
        return str(value)
    cuts = CUTS[name]
    ends = [f"< {cuts[0]}", *(f"[{low}, {high})" for low, high in zip(cuts, cuts[1:], strict=False)), f"≥ {cuts[-1]}"]
    return ends[sum(value >= cut for cut in cuts)]


def labels(raw: pl.DataFrame, name: str, *, drops: bool) -> list[str | None]:
    """The group of every row in a release; None: it does not hold the row."""
    told = [label(name, value) for value in raw[name]]
    return [None if drops and word == "missing" else word for word in told]


def release(path: Path, raw: pl.DataFrame, name: str, *, drops: bool = False, **roles: str) -> Path:
    """A release with one quasi-identifier, each of whose regions is a group."""
    of_row = labels(raw, name, drops=drops)
    every = dict.fromkeys(("who", "many", "age", "pay", "place"), "identifier")
    every |= {name: "quasi-identifier", "ill": "insensitive", **roles}
    kept = [column for column, role in every.items() if role in ("quasi-identifier", "count", "insensitive")]
    data = raw.with_columns(pl.Series(name, of_row)).filter(pl.col(name).is_not_null()).select(kept).sort(kept)
    known: dict[str, Any] = {"name": name, "missing": not drops, "other": None}
    if name == "place":
        known |= {"type": "nominal", "taxonomy": {"name": "*", "children": [{"name": place} for place in PLACES]}}
        parts = len(PLACES) + (not drops)
    else:
        known |= {"type": "continuous", "domain": [None, None], "cuts": CUTS[name]}
        parts = len(CUTS[name]) + 1 + (not drops)
    columns: dict[str, dict[str, Any]] = {column: {"role": role} for column, role in every.items()}
    if name != "place":
        columns[name]["missing"] = ["-9"]
    return write_folder(
        path,
        data,
        columns=[known],
        nodes={"column": [0] + [-1] * parts, "children": [parts] + [0] * parts, "start": [0, *range(parts)],
               "set": [], "sets": []},
        spec={
            "data": {"missing": ["", "NA"], "missing_policy": "drop" if drops else "category"},
            "columns": columns,
            "privacy": {"k": K},
        },
        rows={"withheld": 0, "dropped": len(raw) - len(data)},
        source=raw,
    )  # fmt: skip


def cells(raw: pl.DataFrame, one: list[str | None], other: list[str | None], persons: str | None) -> list[int]:
    """The persons of every cell, by plain counting; who is in one release only is in a cell of its own."""
    counts: Counter[Any] = Counter()
    seen = defaultdict(set)
    for row, cell in enumerate(zip(one, other, strict=True)):
        if cell != (None, None):
            counts[cell] += raw["many"][row] if persons == "many" else 1
            seen[cell].add(raw["who"][row])
    return sorted(map(len, seen.values()) if persons == "who" else counts.values())


def found(first: Path, other: Path, source: object) -> tuple[int, int | None, bool | None]:
    result = audit_release(first, source=source, other=other)
    assert result.joint is not None
    assert result.joint.is_known
    [met] = [finding.met for finding in result.findings if finding.name == "joint cells"]
    return result.joint.cells, result.joint.smallest, met


@pytest.mark.parametrize("seed", range(12))
def test_both_orders_find_the_cells_that_are_counted_by_hand(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    raw = table(rng)
    names, drops = rng.sample(["age", "pay", "place"], 2), [rng.random() < 0.4 for _ in range(2)]
    persons = [None, "who", "many"][seed % 3]
    roles = [{}, {}] if persons is None else [{persons: "entity" if persons == "who" else "count"}, {}]
    if rng.random() < 0.3:
        roles[1] = roles[0]
    one, other = (
        release(tmp_path / str(place), raw, names[place], drops=drops[place], **roles[place]) for place in (0, 1)
    )
    source: object = raw
    if seed % 4 == 1:
        raw.write_csv(source := tmp_path / "raw.csv")
    elif seed % 4 == 2:
        raw.write_parquet(source := tmp_path / "raw.parquet")
    groups = [labels(raw, name, drops=drop) for name, drop in zip(names, drops, strict=True)]
    sizes = cells(raw, groups[0], groups[1], persons)
    assert found(one, other, source) == found(other, one, source) == (len(sizes), sizes[0], sizes[0] >= K)


def test_who_is_in_one_release_only_is_told_apart_by_subtraction(tmp_path: Path) -> None:
    raw = pl.DataFrame({"age": [20, 50, 70] * 20, "place": (["a", "b"] * 30)[:58] + ["NA"] * 2, "ill": "flu"})
    raw = raw.with_columns(who=pl.lit("w"), many=1, pay=10)
    whole, part = release(tmp_path / "whole", raw, "pay"), release(tmp_path / "part", raw, "place", drops=True)
    for first, other in ((whole, part), (part, whole)):
        assert found(first, other, raw) == (3, 2, False)
    result = audit_release(whole, source=raw, other=part)
    assert result.joint is not None
    assert result.joint.persons_below_k is not None
    assert (result.joint.persons_below_k.persons, result.passed) == (2, False)


def test_rows_that_no_release_holds_are_in_no_cell(tmp_path: Path) -> None:
    raw = pl.DataFrame({"place": ["a", "b"] * 10 + ["NA"], "age": 20, "pay": 10, "ill": "flu", "who": "w", "many": 1})
    folders = [release(tmp_path / name, raw, "place", drops=True) for name in ("one", "other")]
    assert found(folders[0], folders[1], raw) == (2, 10, True)


def test_releases_that_count_different_persons_are_refused(tmp_path: Path) -> None:
    raw = table(random.Random(1))
    one = release(tmp_path / "one", raw, "age", who="entity")
    other = release(tmp_path / "other", raw, "pay", many="count")
    for first, second in ((one, other), (other, one)):
        with pytest.raises(DataError, match="do not count the same persons"):
            audit_release(first, source=raw, other=second)


@pytest.mark.parametrize("pay", [10, 90])
def test_a_release_of_an_earlier_state_is_not_known_to_hold_with_another(tmp_path: Path, pay: int) -> None:
    raw = table(random.Random(2)).with_columns(place=pl.lit("a"), pay=pl.lit(10))
    one, older = release(tmp_path / "one", raw, "place"), release(tmp_path / "older", raw[:50], "pay")
    result = audit_release(one, source=raw.with_columns(pay=pl.lit(pay)), other=older)
    [joint] = [finding for finding in result.findings if finding.name == "joint cells"]
    assert joint.met is None
    assert not result.passed
    [pair] = together([Side("one", one, K), Side("older", older, K)], raw, lambda _: None)
    assert (pair["holds"], pair["faults"]) == (None, [joint.sentence])


def test_the_other_release_is_read_by_its_own_words() -> None:
    raw = pl.DataFrame(
        {"age": [20, 70] * 6, "city": ["x", "x", "-", "-"] * 3, "who": [f"w{i // 4}" for i in range(12)]}
    )
    age = pl.DataFrame({"age": ["< 50", "≥ 50"] * 6})
    city = pl.DataFrame({"city": ["x", "x", "missing", "missing"] * 3})
    columns = {"age": {"type": "continuous", "missing": False}, "city": {"type": "nominal", "missing": True}}
    ask: dict[str, Any] = {"source": raw, "columns": columns, "k": 2}
    one = {"data": age, "quasi_identifiers": ["age"], "missing": [""]}
    other = {"data": city, "quasi_identifiers": ["city"], "missing": ["", "-"], "entity": "who"}
    for first, second in ((one, other), (other, one)):
        joint = audit(**first, other=second, **ask).joint  # type: ignore[arg-type]
        assert joint is not None
        assert (joint.cells, joint.smallest, joint.is_known) == (4, 3, True)
    with pytest.raises(DataError, match="no setting 'quasi_identifer'"):
        audit(**one, other={"data": city, "quasi_identifer": ["city"]}, **ask)  # type: ignore[arg-type]
