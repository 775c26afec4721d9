# SPDX-License-Identifier: Apache-2.0
"""The released table against its source: a true release is accepted, every kind of fault in it is found."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_tilings import Made, holds, random_release

from anonfit.auditing.api import audit
from anonfit.auditing.boxes import Axis, box_space, locate_rows, overlapping_boxes
from anonfit.auditing.labels import ValueSet
from anonfit.auditing.result import Audit


def audited(made: Made, released: Any = None, source: Any = None, **more: Any) -> Audit:
    return audit(
        made.released if released is None else released,
        quasi_identifiers=made.names,
        columns=made.columns,
        source=made.source if source is None else source,
        **{"withheld": 0, "regions": "observed", "order": "sorted", "k": 5, **more},
    )


def missed(found: Audit) -> set[str]:
    return {finding.name for finding in found.findings if finding.met is False}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("block", range(8))
def test_true_releases_are_accepted(block: int) -> None:
    rng = random.Random(block)
    for _ in range(25):
        made = random_release(rng, rows=rng.choice([5, 40, 200]), least=5)
        found = audited(made, source=made.source.sample(fraction=1.0, shuffle=True, seed=block))
        assert missed(found) == set()
        assert found.source is not None
        assert found.source.by_labels
        assert found.labels is not None
        assert found.labels.overlapping == 0


def moved(made: Made, rng: random.Random) -> pl.DataFrame:
    """One row under the label of another group that does not hold it."""
    rows = made.released.to_dicts()
    row = rng.randrange(len(rows))
    labels = rng.choice([key for key in made.regions if key != tuple(rows[row][name] for name in made.names)])
    rows[row].update(zip(made.names, labels, strict=True))
    return framed(rows, made)


def framed(rows: list[dict[str, Any]], made: Made) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=made.released.schema)
    return frame.sort(frame.columns)


def dropped(made: Made, rng: random.Random) -> pl.DataFrame:
    rows = made.released.to_dicts()
    del rows[rng.randrange(len(rows))]
    return framed(rows, made)


def doubled(made: Made, rng: random.Random) -> pl.DataFrame:
    rows = made.released.to_dicts()
    return framed([*rows, rng.choice(rows)], made)


def swapped(made: Made, rng: random.Random) -> pl.DataFrame:
    """A row dropped, another doubled: the number of rows is right."""
    rows = made.released.to_dicts()
    gone = rng.randrange(len(rows))
    others = [row for row in rows if row != rows[gone]]
    return framed([*rows[:gone], *rows[gone + 1 :], rng.choice(others)], made)


def changed(made: Made, rng: random.Random) -> pl.DataFrame:
    rows = made.released.to_dicts()
    row = rng.choice(rows)
    row["cost"] = 99.0 if row["cost"] is None else row["cost"] + 0.5
    return framed(rows, made)


def emptied(made: Made, rng: random.Random) -> pl.DataFrame:
    rows = made.released.to_dicts()
    rng.choice([row for row in rows if row["sick"] is not None])["sick"] = None
    return framed(rows, made)


def widened(made: Made, rng: random.Random) -> pl.DataFrame:
    """A whole group gets a label that reaches into others: the tiling leaves it nowhere else to go."""
    places = [(key, name) for key in made.regions for name, text in zip(made.names, key, strict=True) if text != "*"]
    key, name = rng.choice(places)
    rows = made.released.to_dicts()
    for row in rows:
        if tuple(row[one] for one in made.names) == key:
            row[name] = "*"
    return framed(rows, made)


def mislabelled(made: Made, rng: random.Random) -> pl.DataFrame:
    """A whole group gets, in one column, a label of another group that does not hold all its rows."""
    raw = made.source.to_dicts()
    places = []
    for key, region in made.regions.items():
        inside = [row for row in raw if all(holds(name, region[name], row[name]) for name in made.names)]
        for other in made.regions.values():
            places += [(key, name, other) for name in made.names
                       if not all(holds(name, other[name], row[name]) for row in inside)]  # fmt: skip
    key, name, other = rng.choice(places)
    text = next(labels for labels, region in made.regions.items() if region is other)[made.names.index(name)]
    rows = made.released.to_dicts()
    for row in rows:
        if tuple(row[one] for one in made.names) == key:
            row[name] = text
    return framed(rows, made)


FAULTS: list[Callable[[Made, random.Random], pl.DataFrame]] = [
    moved, dropped, doubled, swapped, changed, emptied, widened, mislabelled,
]  # fmt: skip


@pytest.mark.sampled(7)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_every_fault_is_found(fault: Callable[[Made, random.Random], pl.DataFrame]) -> None:
    rng = random.Random(fault.__name__)
    for _ in range(30):
        made = random_release(rng, rows=120, least=5)
        if len(made.regions) < 2:
            continue
        found = audited(made, fault(made, rng), k=None, order=None)
        assert not found.passed, fault.__name__


def test_withheld_groups_are_counted() -> None:
    rng = random.Random(3)
    for _ in range(20):
        made = random_release(rng, rows=100, least=5)
        key = rng.choice(list(made.regions))
        is_key = pl.all_horizontal(pl.col(name) == text for name, text in zip(made.names, key, strict=True))
        rest = made.released.filter(~is_key)
        gone = made.released.height - rest.height
        assert missed(audited(made, rest, withheld=gone)) == set()
        assert missed(audited(made, rest, withheld=gone - 1)) == {"withheld rows"}
        assert missed(audited(made, rest, withheld=range(gone + 1))) == set()
        reported = audited(made, rest, withheld=None)
        assert reported.passed
        assert reported.source is not None
        assert reported.source.absent.persons == gone
        assert reported.source.absent_inside.persons == 0


def test_source_and_release_may_be_files_of_different_kinds(tmp_path: Path) -> None:
    rng = random.Random(11)
    for number in range(12):
        made = random_release(rng, rows=60, least=4)
        paths = {}
        for name, frame in (("source", made.source), ("released", made.released)):
            kind = rng.choice(["csv", "parquet", "arrow", "csv;"])
            path = tmp_path / f"{name}{number}.{kind.removesuffix(';')}"
            if kind.startswith("csv"):
                frame.write_csv(path, separator=";" if kind.endswith(";") else ",")
            else:
                (frame.write_parquet if kind == "parquet" else frame.write_ipc)(path)
            paths[name] = path
        found = audited(made, paths["released"], paths["source"], order=None)
        assert missed(found) - {"k"} == set(), paths


def test_the_meaning_of_labels_is_guessed_from_the_source() -> None:
    source = pl.DataFrame({"age": [1, 5, 30, 31], "city": ["a", "b", "c", "c"], "v": [1, 2, 3, 4]})
    released = pl.DataFrame(
        {"age": ["< 20", "< 20", "≥ 20", "≥ 20"], "city": ["{a, b}", "{a, b}", "c", "c"], "v": [2, 1, 3, 4]}
    )
    good = audit(released, quasi_identifiers=["age", "city"], source=source, withheld=0)
    assert good.passed
    assert good.source is not None
    assert good.source.by_labels
    bad = audit(released.with_columns(v=pl.Series([3, 1, 2, 4])), quasi_identifiers=["age", "city"], source=source)
    assert missed(bad) == {"released rows"}


def test_without_labels_that_are_understood_raw_values_are_compared() -> None:
    source = pl.DataFrame({"age": [1, 5, 30, 31], "v": [1, 2, 3, 4]})
    released = pl.DataFrame({"age": ["young", "young", "old", "old"], "v": [2, 1, 3, 4]})
    found = audit(released, quasi_identifiers=["age"], source=source, withheld=0)
    assert found.passed
    assert [finding.name for finding in found.unchecked] == ["labels against source"]
    assert not audit(released.with_columns(v=pl.lit(5)), quasi_identifiers=["age"], source=source).passed


def test_entities_are_counted_in_the_source() -> None:
    source = pl.DataFrame({"age": [1, 2, 3, 40, 41, 42], "who": list("aabcde"), "v": [1, 1, 2, 3, 3, 3]})
    labels = ["< 20"] * 3 + ["≥ 20"] * 3
    released = pl.DataFrame({"age": labels, "v": [1, 1, 2, 3, 3, 3]})
    columns = {"age": {"type": "continuous"}}
    found = audit(released, quasi_identifiers=["age"], columns=columns, source=source, entity="who", k=3)
    assert (found.k, found.persons, found.counted) == (2, 5, "entities")
    assert missed(found) == {"k"}
    column = found.raw_columns[0]
    assert (column.name, column.certain.persons, column.smallest) == ("v", 3, 1)


def test_values_beyond_the_domain_are_in_its_end_intervals_and_counted() -> None:
    released = pl.DataFrame({"age": ["[0, 50)", "[50, 100]"]})
    source = pl.DataFrame({"age": [-3, 130]})
    columns = {"age": {"type": "continuous", "domain": [0, 100], "cuts": [50]}}
    found = audit(released, quasi_identifiers=["age"], columns=columns, source=source, withheld=0, regions="domain")
    assert found.passed
    assert found.source is not None
    assert found.source.beyond_domain == 2


def test_bounds_are_understood_like_labels() -> None:
    source = pl.DataFrame(
        {"age": [1, 29, 30, 100, None], "rank": ["low", "low", "high", "mid", "low"], "v": [1, 2, 3, 4, 5]}
    )
    released = pl.DataFrame({
        "age_lower": [None, None, 30.0, 30.0, None], "age_upper": [30.0, 30.0, 100.0, 100.0, None],
        "age_missing": ["no", "no", "no", "no", "only"],
        "rank_lower": [None, None, "mid", "mid", None], "rank_upper": ["mid", "mid", None, None, None],
        "v": [2, 1, 3, 4, 5],
    })  # fmt: skip
    columns = {
        "age": {"type": "continuous", "domain": [0, 100], "cuts": [30]},
        "rank": {"type": "ordinal", "order": ["low", "mid", "high"]},
    }
    ask: dict[str, Any] = {
        "quasi_identifiers": ["age", "rank"],
        "columns": columns,
        "withheld": 0,
        "regions": "observed",
    }
    found = audit(released, source=source, **ask)
    assert missed(found) == set()
    assert found.quasi_identifiers == ("age", "rank")
    assert [column.name for column in found.raw_columns] == ["v"]
    wrong = released.with_columns(age_upper=pl.Series([29.0, 29.0, 100.0, 100.0, None]))
    assert "released rows" in missed(audit(wrong, source=source, **ask))


@pytest.mark.parametrize(
    ("dtype", "values", "label"),
    [
        (pl.Int64, [2**53 + 1, 2**53 + 2], f"[{2**53 + 1}, {2**53 + 3})"),
        (pl.UInt64, [2**53 + 1, 2**53 + 2], f"[{2**53 + 1}, {2**53 + 3})"),
        (pl.Decimal(20, 2), ["0.10", "0.29"], "[0.1, 0.3)"),
        (pl.Float64, [0.1, 0.29], "[0.1, 0.3)"),
        (pl.Float32, [0.5, 0.25], "[0.25, 0.5]"),
        (pl.String, ["1e-5", "0.29"], "[1e-05, 0.3)"),
    ],
)
def test_numbers_of_every_type_are_exact(dtype: Any, values: list[Any], label: str) -> None:
    source = pl.DataFrame({"x": pl.Series(values).cast(dtype)})
    columns = {"x": {"type": "continuous"}}
    released = pl.DataFrame({"x": [label, label]})
    assert audit(released, quasi_identifiers=["x"], columns=columns, source=source, withheld=0).passed
    narrow = pl.DataFrame({"x": [label.replace("[0.1,", "[0.11,").replace(f"[{2**53 + 1},", f"[{2**53 + 2},")
                                  .replace("0.5]", "0.5)").replace("[1e-05", "[1.1e-05")] * 2})  # fmt: skip
    found = audit(narrow, quasi_identifiers=["x"], columns=columns, source=source, withheld=0)
    assert missed(found) == {"released rows", "withheld rows"}


def test_dates_and_times_as_text_or_typed() -> None:
    texts = ["2020-01-01", "2020-06-30", "2021-01-01"]
    for values in (pl.Series(texts), pl.Series(texts).str.to_date(), pl.Series(texts).str.to_datetime(time_unit="ns")):
        released = pl.DataFrame({"day": ["< 2020-07-01", "< 2020-07-01", "≥ 2020-07-01"]})
        ask: dict[str, Any] = {"quasi_identifiers": ["day"], "columns": {"day": {"type": "date"}}, "withheld": 0}
        assert audit(released, source=pl.DataFrame({"day": values}), **ask).passed
        late = released.with_columns(pl.col("day").str.replace("07-01", "06-30"))
        assert not audit(late, source=pl.DataFrame({"day": values}), **ask).passed
    german = pl.DataFrame({"day": ["01.01.2020", "30.06.2020", "01.01.2021"]})
    ask["columns"] = {"day": {"type": "date", "date_format": "%d.%m.%Y"}}
    assert audit(released, source=german, **ask).passed


def test_rare_values_are_in_other() -> None:
    source = pl.DataFrame({"city": ["a", "a", "x", "y"]})
    released = pl.DataFrame({"city": ["a", "a", "other", "other"]})
    columns = {"city": {"type": "nominal", "other": "other"}}
    assert audit(released, quasi_identifiers=["city"], columns=columns, source=source, withheld=0).passed
    columns = {"city": {"type": "nominal"}}
    assert not audit(released, quasi_identifiers=["city"], columns=columns, source=source, withheld=0).passed


def test_a_taxonomy_over_numbers_finds_raw_numbers() -> None:
    tree = {"name": "*", "children": [
        {"name": "young", "children": [{"name": "[0, 10)"}, {"name": "[10, 20)"}]},
        {"name": "old", "children": [{"name": "≥ 20"}]},
    ]}  # fmt: skip
    columns = {"age": {"type": "continuous", "taxonomy": tree}}
    source = pl.DataFrame({"age": [3, 19, 20, 70]})
    for labels, good in ((["young", "young", "old", "old"], True), (["young", "young", "young", "old"], False),
                         (["[0, 10)", "[10, 20)", "old", "old"], True)):  # fmt: skip
        found = audit(
            pl.DataFrame({"age": labels}), quasi_identifiers=["age"], columns=columns, source=source, withheld=0
        )
        assert found.passed is good


def random_axis(rng: random.Random, cells: int) -> tuple[Axis, list[ValueSet]]:
    """An axis whose labels are random sets of cells; the name of a set is its cells."""

    def runs(found: ValueSet) -> list[tuple[int, int]]:
        chosen = [int(cell) for cell in found.names]
        parts: list[tuple[int, int]] = []
        for cell in chosen:
            if parts and parts[-1][1] == cell - 1:
                parts[-1] = (parts[-1][0], cell)
            else:
                parts.append((cell, cell))
        return parts

    sets = []
    for _ in range(rng.randint(1, 12)):
        low = rng.randrange(cells)
        high = rng.randrange(low, cells)
        chosen = range(low, high + 1) if rng.random() < 0.6 else sorted(rng.sample(range(cells), rng.randint(0, cells)))
        sets.append(ValueSet(names=tuple(str(cell) for cell in chosen)))
    return Axis(cells, runs, lambda series: None), sets  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("block", range(10))
def test_rows_are_found_in_any_boxes_also_overlapping_ones(block: int) -> None:
    rng, numbers = random.Random(block), np.random.default_rng(block)
    for _ in range(30):
        made = [
            random_axis(rng, rng.choice([rng.randint(1, 9), rng.randint(60, 140)])) for _ in range(rng.randint(1, 4))
        ]
        axes, sets = [axis for axis, _ in made], [several for _, several in made]
        groups = rng.choice([1, 5, 60])
        places = np.array([[rng.randrange(len(several)) for several in sets] for _ in range(groups)], np.int64)
        rows = np.stack([numbers.integers(0, axis.cells, 80) for axis in axes], axis=1).astype(np.int32)
        boxes = box_space(axes, sets, places)
        groups_of_rows, others = locate_rows(boxes, list(rows.T), rows=len(rows))
        inside = [
            [group for group in range(groups)
             if all(str(cell) in sets[axis][places[group, axis]].names for axis, cell in enumerate(row))]
            for row in rows
        ]  # fmt: skip
        for row, wanted in enumerate(inside):
            assert (groups_of_rows[row] in wanted) if wanted else groups_of_rows[row] == -1
            assert others[row] == max(0, len(wanted) - 1)
        members = [[set(sets[axis][label].names) for axis, label in enumerate(labels)] for labels in places]
        meeting = {
            one for one in range(groups) for other in range(groups)
            if one != other and all(mine & theirs for mine, theirs in zip(members[one], members[other], strict=True))
        }  # fmt: skip
        assert overlapping_boxes(boxes) == len(meeting)


def _halved(rng: random.Random, parts: list[list[int]], least: int) -> list[list[list[int]]]:
    """Boxes that come of halving the cells of some axis, drawn anew, again and again."""
    wide = [axis for axis, cells in enumerate(parts) if len(cells) >= 2 * least]
    if not wide:
        return [parts]
    axis = rng.choice(wide)
    cells = rng.sample(parts[axis], len(parts[axis]))
    halves = cells[: len(cells) // 2], cells[len(cells) // 2 :]
    return [box for half in halves for box in _halved(rng, [*parts[:axis], sorted(half), *parts[axis + 1 :]], least)]


def test_boxes_of_sets_of_many_names_are_all_parted_so_that_no_row_is_held_against_several() -> None:
    rng, numbers = random.Random(1), np.random.default_rng(1)
    cells = 1500
    axes = [Axis(cells, lambda values: [(int(name), int(name)) for name in values.names], lambda _: None)] * 2
    boxes = _halved(rng, [list(range(cells))] * 2, 40)
    sets = [[ValueSet(names=tuple(map(str, box[axis]))) for box in boxes] for axis in range(2)]
    space = box_space(axes, sets, np.arange(len(boxes)).repeat(2).reshape(-1, 2))
    leaves = space.nodes[space.nodes[:, 0] < 0]
    assert (leaves[:, 3] - leaves[:, 2]).max() == 1
    assert overlapping_boxes(space) == 0
    rows = numbers.integers(0, cells, (2, 300)).astype(np.int32)
    found, others = locate_rows(space, list(rows), rows=300)
    for group, row in zip(found.tolist(), rows.T.tolist(), strict=True):
        assert all(cell in boxes[group][axis] for axis, cell in enumerate(row))
    assert not others.any()
