# SPDX-License-Identifier: Apache-2.0
"""What selections get from regions: hand-counted, against plain counting on random regions, and in time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.criteria.targets import CodedSelections
from anonfit.engines.tree import Boxes, ColumnSets
from anonfit.recoding.imprecision import Answers, answer
from anonfit.spec.model import SelectionSpec
from anonfit.tables.codebook import code_column
from anonfit.tables.schema import Column, OrderedDomain, Role
from anonfit.workload.selections import code_selections
from anonfit.workload.truth import RawTable

# Fifteen points in five regions, by their lower (excluded) and upper (included) ends.
REGIONS = {
    ((0, 2), (0, 10)): [(1, 1), (1, 5), (2, 8)],
    ((2, 5), (0, 5)): [(3, 4), (4, 5), (3, 2)],
    ((2, 5), (5, 10)): [(3, 6), (4, 7), (5, 9)],
    ((5, 10), (0, 7)): [(6, 4), (6, 6), (8, 5), (9, 1)],
    ((5, 10), (7, 10)): [(7, 8), (9, 9)],
}


def five_regions(*wheres: str, withheld: tuple[int, ...] = (), counts: Any = None) -> Answers:
    """The answers to selections over x and y from the five regions, without the regions that are withheld."""
    points = [point for inside in REGIONS.values() for point in inside]
    nodes = np.repeat(np.arange(5), [len(inside) for inside in REGIONS.values()])
    nodes[np.isin(nodes, withheld)] = -1
    frame = pl.DataFrame(points, schema={"x": pl.Int64, "y": pl.Int64}, orient="row")
    columns = [Column(name, Role.QUASI_IDENTIFIER) for name in ("x", "y")]
    domains, firsts, lasts = [], [], []
    for column, name in enumerate(("x", "y")):
        coded = code_column(columns[column], frame[name], persons=lambda groups, _: groups, k=1)
        assert isinstance(coded.domain, OrderedDomain)
        domains.append(coded.domain)
        lower, upper = np.array([ends[column] for ends in REGIONS]).T
        firsts.append(np.searchsorted(coded.domain.values, lower, side="right"))
        lasts.append(np.searchsorted(coded.domain.values, upper, side="right") - 1)
    boxes = Boxes(np.stack(firsts, axis=1).astype(np.int32), np.stack(lasts, axis=1).astype(np.int32), {})
    selections = code_selections([SelectionSpec(where=where, weight=2.0) for where in wheres], columns, domains, frame)
    rows = RawTable(frame)
    return answer(
        selections.coded,
        boxes,
        nodes,
        cells=[np.arange(len(domain.values)) for domain in domains],
        true=rows.count(selections.predicates, counts=counts),
        kept=rows.count(selections.predicates, counts=counts, among=nodes >= 0),
        counts=counts,
    )


def test_regions_that_only_touch_a_selection_do_not_count() -> None:
    found = five_regions("x > 2 and x <= 6 and y > 3 and y <= 7")
    assert found.answered.tolist() == [10]
    assert found.true.tolist() == [6]
    assert found.imprecision.tolist() == [4]
    assert found.precision.tolist() == [0.6]
    assert found.recall.tolist() == [1.0]
    assert found.total == 8.0


def test_a_region_is_counted_once_for_a_selection_of_several_rectangles() -> None:
    found = five_regions("x <= 2 or y > 5", "x = 4 or x = 3 and y = 2 or x = 9 and y = 9")
    # Regions 1, 3, 4 and 5; regions 2, 3 and 5.
    assert found.answered.tolist() == [3 + 3 + 4 + 2, 3 + 3 + 2]
    assert found.true.tolist() == [9, 4]
    assert found.total == 2.0 * ((12 - 9) + (8 - 4))


def test_a_selection_without_rows_or_rectangles() -> None:
    # (8, 9) lies in a region though in no row.
    found = five_regions("x = 8 and y = 9", "x > 50")
    assert found.answered.tolist() == [2, 0]
    assert found.true.tolist() == [0, 0]
    assert found.imprecision.tolist() == [2, 0]
    assert found.precision.tolist() == [0.0, 1.0]
    assert found.recall.tolist() == [1.0, 1.0]


def test_rows_that_are_withheld_are_missed() -> None:
    found = five_regions("x > 2 and x <= 6 and y > 3 and y <= 7", "x <= 2", withheld=(1, 0))
    assert found.answered.tolist() == [7, 0]
    assert found.true.tolist() == [6, 3]
    assert found.kept.tolist() == [4, 0]
    assert found.imprecision.tolist() == [3, 0]
    assert found.precision.tolist() == [4 / 7, 1.0]
    assert found.recall.tolist() == [4 / 6, 0.0]


def test_a_row_counts_for_all_its_persons() -> None:
    counts = np.ones(15, np.uint32)
    counts[5] = 100  # (3, 2) is in region 2, but not in the selection
    found = five_regions("x > 2 and x <= 6 and y > 3 and y <= 7", counts=counts)
    assert found.imprecision.tolist() == [103]
    assert found.true.tolist() == [6]


# --- random regions ---------------------------------------------------------------------------------------------


def random_boxes(rng: np.random.Generator, nodes: int, sizes: list[int]) -> tuple[Boxes, list[list[set[int]]]]:
    """Boxes of runs and sets, and the same as plain sets: per node and column."""
    first, last = np.zeros((nodes, len(sizes)), np.int32), np.zeros((nodes, len(sizes)), np.int32)
    held: list[list[set[int]]] = [[set() for _ in sizes] for _ in range(nodes)]
    sets = {}
    for column, size in enumerate(sizes):
        by_set = rng.random() < 0.5 and size > 2
        number = np.full(nodes, -1, np.int32)
        bits = []
        for node in range(nodes):
            ends = np.sort(rng.integers(0, size, 2))
            cells = np.arange(ends[0], ends[1] + 1)
            if by_set and rng.random() < 0.7:
                cells = np.sort(rng.choice(size, int(rng.integers(1, size)), replace=False))
            if cells[-1] - cells[0] + 1 != len(cells):
                number[node] = len(bits)
                mask = np.zeros(size, np.uint8)
                mask[cells] = 1
                bits.append(np.packbits(mask))
            first[node, column], last[node, column] = cells[0], cells[-1]
            held[node][column] = set(cells.tolist())
        if bits:
            sets[column] = ColumnSets(number, np.stack(bits))
    return Boxes(first, last, sets), held


def random_selections(rng: np.random.Generator, rows: int, codes: list[int]) -> CodedSelections:
    """Rectangles of 4 selections, of which some have none; not disjoint, since that must not matter."""
    rectangles, signatures = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    return CodedSelections(
        rectangles=(rng.random((rectangles, sum(codes))) < rng.choice([0.2, 0.6, 1.0])).astype(np.uint8),
        selection=np.sort(rng.integers(0, 4, rectangles)),
        weights=rng.random(4),
        signatures=rng.integers(0, signatures, rows),
        applies=rng.integers(0, 2, (signatures, rectangles)).astype(np.uint8),
        boundaries=np.zeros(sum(codes), np.uint8),
        names=tuple("abcd"),
    )


def plainly_answered(
    selections: CodedSelections, held: list[list[set[int]]], nodes: Any, cells: list[Any], counts: Any
) -> list[int]:
    edges = np.cumsum([0, *[len(part) for part in cells]])
    found = [0] * len(selections.weights)
    for row, node in enumerate(nodes.tolist()):
        reached = set()
        for rectangle, selection in enumerate(selections.selection.tolist()):
            if node < 0 or not selections.applies[selections.signatures[row], rectangle]:
                continue
            if all(
                any(
                    selections.rectangles[rectangle, edges[column] + code] and part[code] in held[node][column]
                    for code in range(len(part))
                )
                for column, part in enumerate(cells)
            ):
                reached.add(selection)
        for selection in reached:
            found[selection] += int(counts[row])
    return found


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(60))
def test_answers_are_those_of_plain_counting(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    if seed % 2:  # blocks of few rectangles and groups
        monkeypatch.setattr("anonfit.recoding.imprecision.TOGETHER", 2)
        monkeypatch.setattr("anonfit.recoding.imprecision.BLOCK", 7)
    sizes = rng.integers(1, 12, int(rng.integers(1, 4))).tolist()
    codes = [int(size + rng.integers(0, 6)) for size in sizes]
    cells = [np.sort(rng.integers(0, size, count)) for size, count in zip(sizes, codes, strict=True)]
    boxes, held = random_boxes(rng, 6, sizes)
    rows = 25
    selections = random_selections(rng, rows, codes)
    nodes = rng.integers(-1, 6, rows)
    counts = rng.integers(1, 5, rows)
    true = np.zeros(4, np.int64)
    expected = plainly_answered(selections, held, nodes, cells, counts)
    assert answer(selections, boxes, nodes, cells=cells, true=true, counts=counts).answered.tolist() == expected
    ones = plainly_answered(selections, held, nodes, cells, np.ones(rows))
    assert answer(selections, boxes, nodes, cells=cells, true=true).answered.tolist() == ones


def test_fifteen_thousand_regions_and_two_hundred_selections_in_a_second() -> None:
    rng = np.random.default_rng(7)
    sizes = [5000, 16, 7, 14, 6, 5, 2, 41]
    regions, rectangles = 15_000, 200
    first = np.stack([rng.integers(0, size, regions) for size in sizes], axis=1).astype(np.int32)
    last = np.stack([rng.integers(first[:, column], size) for column, size in enumerate(sizes)], axis=1).astype(
        np.int32
    )
    bits = rng.integers(0, 256, (regions, 6), dtype=np.uint8)
    bits[:, 5] &= 0x80
    sets = {7: ColumnSets(np.arange(regions, dtype=np.int32), bits)}
    first[:, 7], last[:, 7] = 0, 40
    selections = CodedSelections(
        rectangles=(rng.random((rectangles, sum(sizes))) < 0.3).astype(np.uint8),
        selection=np.arange(rectangles),
        weights=np.ones(rectangles),
        signatures=rng.integers(0, 3, 100_000),
        applies=np.ones((3, rectangles), np.uint8),
        boundaries=np.zeros(sum(sizes), np.uint8),
    )
    nodes = rng.integers(0, regions, 100_000)
    start = time.process_time()
    found = answer(
        selections,
        Boxes(first, last, sets),
        nodes,
        cells=[np.arange(size) for size in sizes],
        true=np.zeros(rectangles, np.int64),
    )
    took = time.process_time() - start
    assert found.answered.max() > 0
    assert took < 3, took  # under one on an idle machine
