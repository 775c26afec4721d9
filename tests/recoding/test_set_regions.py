# SPDX-License-Identifier: Apache-2.0
"""Trees with many splits by sets, against plain walks: what a node holds, where a row goes, what a region says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from cell_trees import cells_held, random_cell_tree

from anonfit.algorithms.result import Anonymized
from anonfit.auditing.api import audit
from anonfit.engines import tree as bits_module
from anonfit.engines.tree import LEAF, Tree, boxes_of
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Values, region_values
from anonfit.release.table import observed_labels, released_table
from anonfit.tables.scales import Scale
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy
from strategies import random_shape, route, taxonomy_of

SEEDS = range(40)


def some_sizes(rng: np.random.Generator) -> list[int]:
    return rng.choice([1, 2, 3, 5, 7, 8, 9, 16, 17, 60, 300], int(rng.integers(1, 5))).tolist()


def some_tree(rng: np.random.Generator, sizes: list[int], *, by_sets: list[bool] | None = None) -> Tree:
    sets = by_sets if by_sets is not None else (rng.random(len(sizes)) < 0.7).tolist()
    return random_cell_tree(rng, sizes, by_sets=sets, nodes=int(rng.integers(1, 120)), deep=bool(rng.random() < 0.5))


def nominal(rng: np.random.Generator, name: str) -> NominalCells:
    """A column with a taxonomy of any shape, or a flat one."""
    leaves = int(rng.choice([1, 2, 3, 7, 8, 9, 30]))
    taxonomy = Taxonomy.flat([f"v{leaf}" for leaf in range(leaves)])
    if rng.random() < 0.7:
        taxonomy = taxonomy_of(random_shape(rng, leaves))
    return NominalCells(name, taxonomy, bool(rng.random() < 0.5))


def some_recoding(rng: np.random.Generator) -> Recoding:
    columns: list[RecodedColumn] = [nominal(rng, f"n{index}") for index in range(int(rng.integers(1, 4)))]
    if rng.random() < 0.5:
        columns.append(OrderedCells("age", ColumnType.CONTINUOUS, Scale.NUMBER, (10, 20, 30), bool(rng.random() < 0.5)))
    if rng.random() < 0.5:
        columns.append(OrdinalCells("stage", ("low", "mid", "high"), bool(rng.random() < 0.5)))
    by_sets = [isinstance(column, NominalCells) for column in columns]
    return Recoding(tuple(columns), some_tree(rng, [column.size for column in columns], by_sets=by_sets))


def some_frame(rng: np.random.Generator, recoding: Recoding, rows: int) -> pl.DataFrame:
    """Rows of values of every cell."""
    series = []
    for column in recoding.columns:
        if isinstance(column, NominalCells):
            values: list[Any] = list(column.taxonomy.leaves)
        else:
            values = ["low", "mid", "high"] if isinstance(column, OrdinalCells) else [5, 10, 15, 20, 25, 30, 99]
        values += [None] if column.has_missing else []
        dtype = pl.Int64 if isinstance(column, OrderedCells) else pl.String
        series.append(pl.Series(column.name, [values[place] for place in rng.integers(0, len(values), rows)], dtype))
    return pl.DataFrame(series)


def json_of(recoding: Recoding) -> Any:
    return json.loads(recoding.to_json())


# --- boxes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_holds_what_every_split_above_it_leaves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = some_sizes(rng)
    tree = some_tree(rng, sizes)
    boxes = boxes_of(tree, sizes)
    for column, size in enumerate(sizes):
        nodes = np.arange(len(tree.column))
        parts = boxes.parts(nodes, column)
        listed = parts.cells()
        unpacked = bits_module.unpacked(parts.bits(size), size)
        assert len({tuple(cells) for cells in listed}) == len(listed)
        for node in nodes.tolist():
            held = cells_held(tree, node, column, size)
            assert (boxes.first[node, column], boxes.last[node, column]) == (held[0], held[-1])
            assert boxes.cells(node, column) == held
            assert tuple(listed[parts.of_node[node]]) == held
            assert tuple(np.flatnonzero(unpacked[parts.of_node[node]]).tolist()) == held


def test_blocks_of_sets_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    tree = random_cell_tree(rng, [60, 60], by_sets=[True, True], nodes=80)
    column = NominalCells("x", taxonomy_of(random_shape(rng, 60)), False)
    nodes = np.arange(len(tree.column))
    plain = boxes_of(tree, [60, 60]).parts(nodes, 0)
    labels = column.labels(plain.bits(60))
    monkeypatch.setattr(bits_module, "BLOCK", 150)
    found = boxes_of(tree, [60, 60]).parts(nodes, 0)
    assert [list(cells) for cells in found.cells()] == [list(cells) for cells in plain.cells()]
    assert column.labels(found.bits(60)) == labels


def test_a_chain_of_a_thousand_splits() -> None:
    """Each split takes one cell off, by a set and by a run in turn."""
    size = 1001
    column, children, start, set_of, sets = [0], [2], [0], [0], []
    for split in range(size - 1):
        sets.append(np.array([split], np.int32))
        last = split == size - 2
        column += [LEAF, LEAF if last else 0]
        children += [0, 0 if last else 2]
        start += [split, split + 1]
        set_of += [-1, -1 if last or split % 2 == 0 else split + 1]
    arrays = [np.array(entries, np.int32) for entries in (column, children, start, set_of)]
    tree = Tree(arrays[0], arrays[1], arrays[2], np.full(len(column), -1, np.int32), arrays[3], tuple(sets))
    boxes = boxes_of(tree, [size])
    assert [boxes.cells(node, 0) for node in (1, 3, 1999, 2000)] == [(0,), (1,), (999,), (1000,)]
    assert (boxes.first[2::2, 0] == np.arange(1, size)).all()
    assert (boxes.last[2::2, 0] == size - 1).all()


# --- routing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_go_to_the_region_that_holds_them_or_stay_where_their_value_is_asked(seed: int) -> None:
    rng = np.random.default_rng(seed)
    recoding = some_recoding(rng)
    tree, sizes = recoding.tree, [column.size for column in recoding.columns]
    cells = [rng.integers(-1 if rng.random() < 0.3 else 0, size, 200).astype(np.int32) for size in sizes]
    found = recoding.nodes(cells, threads=1)
    for row, node in enumerate(found.tolist()):
        point = [int(of_column[row]) for of_column in cells]
        held = [cells_held(tree, node, index, size) for index, size in enumerate(sizes)]
        assert all(cell in part for cell, part in zip(point, held, strict=True) if cell >= 0)
        if tree.column[node] == LEAF:
            assert min(point) >= 0 or all(
                part == tuple(range(size)) for cell, part, size in zip(point, held, sizes, strict=True) if cell < 0
            )
        else:
            assert point[tree.column[node]] == -1
        if min(point) >= 0:
            assert node == route(tree, point)


# --- labels -------------------------------------------------------------------------------------------------------


def plain_names(taxonomy: Taxonomy, node: int, leaves: set[int]) -> list[str]:
    """The largest nodes whose leaves are all there, from the root down; of a chain the deepest is named."""
    below = set(range(taxonomy.first_leaf[node], taxonomy.last_leaf[node] + 1))
    children = taxonomy.children(node)
    if below <= leaves and len(children) != 1:
        return [taxonomy.names[node]]
    return [name for child in children for name in plain_names(taxonomy, child, leaves)]


def plain_label(column: NominalCells, cells: tuple[int, ...]) -> str:
    if len(cells) == column.size:
        return "*"
    shift = int(column.has_missing)
    leaves = {cell - shift for cell in cells if cell >= shift}
    names = plain_names(column.taxonomy, 0, leaves)
    text = names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
    if len(leaves) == len(column.taxonomy.leaves):
        text = "not missing"
    if shift and cells[0] == 0:
        return f"missing or {text}" if leaves else "missing"
    return text


@pytest.mark.parametrize("seed", SEEDS)
def test_regions_say_the_fewest_names_that_are_exactly_their_cells(seed: int) -> None:
    recoding = some_recoding(np.random.default_rng(seed))
    nodes = np.arange(len(recoding.tree.column), dtype=np.int32)
    for values in Values:
        written = region_values(recoding, nodes, values)
        for index, column in enumerate(recoding.columns):
            if isinstance(column, NominalCells):
                (labels,) = written[column.name]
                held = [cells_held(recoding.tree, node, index, column.size) for node in nodes.tolist()]
                assert labels.to_list() == [plain_label(column, cells) for cells in held]
                assert labels.to_list() == [column.label(cells) for cells in held]


def test_equal_sets_have_one_label_whatever_way_they_were_made() -> None:
    # a and c: chosen at once on one side, left over after b and d on the other.
    column = NominalCells("x", Taxonomy.flat(list("abcd")), False)
    other = OrdinalCells("y", ("low", "high"), False)
    tree = Tree(
        column=np.array([1, 0, 0, -1, -1, -1, -1], np.int32),
        children=np.array([2, 2, 2, 0, 0, 0, 0], np.int32),
        start=np.array([0, 0, 1, 0, 1, 1, 0], np.int32),
        before=np.full(7, -1, np.int32),
        set_of=np.array([-1, 0, 1, -1, -1, -1, -1], np.int32),
        sets=(np.array([2, 0], np.int32), np.array([1, 3], np.int32)),
    )
    recoding = Recoding((column, other), tree)
    (labels,) = region_values(recoding, np.array([3, 4, 5, 6], np.int32), Values.LABELS)["x"]
    assert labels.to_list() == ["{a, c}", "{b, d}", "{b, d}", "{a, c}"]
    assert labels.dtype == pl.Enum(["{a, c}", "{b, d}"])


# --- applying and releasing ---------------------------------------------------------------------------------------


def by_sets() -> Recoding:
    """Age first; below 50 by country, in two steps."""
    columns = (
        NominalCells("country", Taxonomy.flat(["FR", "DE", "US", "BR"]), False),
        OrderedCells("age", ColumnType.CONTINUOUS, Scale.NUMBER, (50,), False),
    )
    tree = Tree(
        column=np.array([1, 0, -1, 0, -1, -1, -1], np.int32),
        children=np.array([2, 2, 0, 2, 0, 0, 0], np.int32),
        start=np.array([0, 0, 1, 0, 1, 0, 3], np.int32),
        before=np.full(7, -1, np.int32),
        set_of=np.array([-1, 0, -1, 1, -1, -1, -1], np.int32),
        sets=(np.array([0, 2, 3], np.int32), np.array([0, 2], np.int32)),
    )
    return Recoding(columns, tree)


def test_sets_by_hand() -> None:
    frame = pl.DataFrame({"country": ["FR", "DE", "US", "BR", "FR"], "age": [20, 20, 20, 20, 80]})
    assert by_sets().apply(frame)["country"].to_list() == ["{FR, US}", "DE", "{FR, US}", "BR", "*"]
    bounds = by_sets().apply(frame, values="bounds")
    assert bounds["country"].to_list() == ["{FR, US}", "DE", "{FR, US}", "BR", "*"]
    assert bounds["age_upper"].to_list() == [50, 50, 50, 50, None]
    assert by_sets().apply(frame, values="representative")["country"].to_list()[3] == "BR"


def test_an_unseen_value_keeps_what_was_decided_before_it_was_asked() -> None:
    frame = pl.DataFrame({"country": ["XX", "XX", None, "BR"], "age": [20, 80, 20, 20]})
    found = by_sets().apply(frame, unseen="ancestor")
    assert found.rows() == [("*", "< 50"), ("*", "≥ 50"), ("*", "< 50"), ("BR", "< 50")]
    suppressed = by_sets().apply(frame, unseen="suppress")
    assert suppressed.rows() == [("*", "*")] * 3 + [("BR", "< 50")]


def test_an_unseen_value_goes_where_values_that_are_not_named_go() -> None:
    column = NominalCells("job", Taxonomy.flat(["a", "b", "other"]), False, "other")
    tree = Tree(
        column=np.array([0, -1, -1], np.int32),
        children=np.array([2, 0, 0], np.int32),
        start=np.array([0, 0, 1], np.int32),
        before=np.full(3, -1, np.int32),
        set_of=np.array([0, -1, -1], np.int32),
        sets=(np.array([0, 2], np.int32),),
    )
    found = Recoding((column,), tree).apply(pl.DataFrame({"job": ["a", "b", "new"]}))
    assert found["job"].to_list() == ["{a, other}", "b", "{a, other}"]


@pytest.mark.parametrize("seed", SEEDS)
def test_observed_labels_name_what_the_records_of_each_group_have(seed: int) -> None:
    rng = np.random.default_rng(seed)
    recoding = some_recoding(rng)
    frame = some_frame(rng, recoding, 60)
    used, groups = np.unique(recoding.nodes(recoding.cells(frame), threads=1), return_inverse=True)
    found = observed_labels(recoding, frame, groups.astype(np.int32), len(used))
    cells = recoding.cells(frame)
    for column, of_rows in zip(recoding.columns, cells, strict=True):
        (labels,) = found[column.name]
        for group, label in enumerate(labels.to_list()):
            held = sorted(set(of_rows[groups == group].tolist()))
            if isinstance(column, NominalCells):
                assert label == plain_label(column, tuple(held))
            elif isinstance(column, OrdinalCells):
                known = [cell for cell in held if cell >= column.has_missing]
                run = list(range(min(known), max(known) + 1)) if known else []
                assert label == column.label([cell for cell in held if cell not in known] + run)
            else:
                values = frame[column.name].filter(pl.Series(groups == group))
                low, high = values.min(), values.max()
                text = str(low) if low == high else f"[{low}, {high}]"
                text = "missing" if low is None else text
                assert label == (f"missing or {text}" if values.null_count() and low is not None else text)


def every_cut_is_used(recoding: Recoding) -> bool:
    """Whether every cut parts two regions, as in recodings that were not drawn at random."""
    found = json_of(recoding)
    nodes, used = found["nodes"], set()
    child = 1
    for node, children in enumerate(nodes["children"]):
        by_runs = not nodes["set"] or nodes["set"][node] < 0
        later = nodes["start"][child + 1 : child + children] if by_runs else ()
        used |= {(nodes["column"][node], start) for start in later}
        child += children
    return all(
        (place, cut + 1 + column["missing"]) in used
        for place, column in enumerate(found["columns"])
        for cut in range(len(column.get("cuts", ())))
    )


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["labels", "bounds", "representative", "observed"])
def test_a_release_by_sets_is_sorted_and_passes_the_audit(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    made = next(one for one in iter(lambda: some_recoding(rng), None) if every_cut_is_used(one))
    recoding = Recoding.from_json(made.to_json())
    frame = some_frame(rng, recoding, 80).with_columns(pl.Series("note", rng.integers(0, 5, 80)))
    nodes = recoding.nodes(recoding.cells(frame), threads=1)
    order = rng.permutation(80)
    result = Anonymized(recoding, order.astype(np.uint32), nodes[order])
    observed = kind == "observed"
    values = Values.LABELS if observed else Values(kind)
    table = released_table(result, frame, names=frame.columns, values=values, observed=observed)
    texts = table.with_columns(pl.col(pl.Enum).cast(pl.String))
    assert texts.sort([*texts.columns[:-1], "note"], nulls_last=False).equals(texts)
    entries = {column["name"]: column for column in json_of(recoding)["columns"]}
    if observed:
        entries = {name: {key: entry[key] for key in entry if key != "cuts"} for name, entry in entries.items()}
    found = audit(
        table,
        quasi_identifiers=recoding.quasi_identifiers,
        k=1,
        columns=entries,
        nodes=None if observed else json_of(recoding)["nodes"],
        representatives=kind == "representative",
        source=frame,
        withheld=0,
        order="sorted",
        regions="observed" if observed else "domain",
    )
    assert found.passed, [finding.sentence for finding in found.findings if finding.met is False]
