# SPDX-License-Identifier: Apache-2.0
"""Growing against the reference: the same trees, and spans by Definition 5, on random small tables."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from random_tables import attributes, random_table
from tree_reference import Node, Table, grow, leaf_of, spans_of

from anonfit.algorithms.trees import growing
from anonfit.algorithms.trees.building import prune
from anonfit.algorithms.trees.growing import DecisionTreeGrower, Demand, GrownTree, Variant
from anonfit.algorithms.trees.tree import find_spans
from anonfit.engines.tree import LEAF
from anonfit.errors import Infeasible, RequestError


def grown(table: Table, variant: str, demand: Demand) -> GrownTree:
    return DecisionTreeGrower(
        attributes(table),
        np.array(table.classes, np.int32),
        class_count=table.class_count,
        demand=demand,
        variant=Variant(variant),
        class_is_public=table.class_is_public,
    ).grow()


def as_nodes(found: GrownTree, table: Table) -> Node:
    """A grown tree in the reference's form."""
    tree = found.tree
    first = tree.first_child
    root = Node([frozenset(range(size)) for size in table.sizes])
    nodes = {0: root}
    for number, column in enumerate(tree.column.tolist()):
        if column == LEAF:
            continue
        node = nodes[number]
        node.column = column
        sons = range(first[number], first[number] + tree.children[number])
        starts = [tree.start[son] for son in sons] + [max(node.held[column]) + 1]
        for index, son in enumerate(sons):
            way = frozenset(code for code in node.held[column] if starts[index] <= code < starts[index + 1])
            node.ways.append(way)
            node.sons.append(Node([way if one == column else held for one, held in enumerate(node.held)]))
            nodes[son] = node.sons[-1]
    return root


def shape(node: Node) -> Any:
    return (node.column, [(way, shape(son)) for way, son in zip(node.ways, node.sons, strict=True)])


def groups(numbers: Any) -> set[frozenset[int]]:
    """Which rows have the same."""
    found: dict[Any, list[int]] = {}
    for row, number in enumerate(numbers):
        found.setdefault(number, []).append(row)
    return {frozenset(rows) for rows in found.values()}


def random_demand(rng: np.random.Generator, *, diverse: bool) -> Demand:
    k = int(rng.integers(1, 5))
    if not diverse or rng.random() < 0.4:
        return Demand(k)
    return Demand(k, l=float(rng.choice([1.0, 1.3, 1.6])), max_confidence=float(rng.choice([1.0, 0.9, 0.75])))


def compare(seed: int, variant: str) -> bool:
    """Whether there was a tree to compare."""
    rng = np.random.default_rng(seed)
    class_is_public = bool(rng.random() < 0.3)
    table = random_table(rng, ordered=variant == "c45", class_is_public=class_is_public)
    demand = random_demand(rng, diverse=not class_is_public)
    expected = grow(table, variant=variant, k=demand.k, entropy_l=demand.l, confidence=demand.max_confidence)
    if expected is None:
        with pytest.raises(Infeasible):
            grown(table, variant, demand)
        return False
    found = grown(table, variant, demand)
    assert shape(as_nodes(found, table)) == shape(expected), seed
    for tree in (found, prune(found, 0.25)):
        root = as_nodes(tree, table)
        spans = spans_of(root, table)
        if tree is found:
            assert found.span_of_row is not None
            assert groups(found.span_of_row.tolist()) == groups(spans), seed
        check_refound(tree, table, root, spans, demand)
    return len(found.counts) > 1


def check_refound(tree: GrownTree, table: Table, root: Node, spans: list[frozenset[Any]], demand: Demand) -> None:
    """Spans found from the finished tree: their rows, leaves, classes and counts."""
    again, of_row = find_spans(
        tree.tree,
        table.public,
        [np.array([row[column] for row in table.rows], np.int32) for column in range(len(table.sizes))],
        np.array(table.classes, np.int32),
        class_count=table.class_count,
        class_is_public=table.class_is_public,
    )
    assert groups(of_row.tolist()) == groups(spans)
    assert demand.allows(again.counts).all()
    numbers = {id(leaf): number for number, leaf in enumerate(leaves_of(root))}
    for row, span in enumerate(spans):
        number = int(of_row[row])
        assert again.leaves_of(number).tolist() == sorted({numbers[leaf] for leaf, _ in span})
        assert again.classes[number] == (table.classes[row] if table.class_is_public else -1)
        assert again.sizes[number] == sum(one == span for one in spans)
    keys = [(again.leaves_of(one).tolist(), int(again.classes[one])) for one in range(len(again))]
    assert keys == sorted(keys)
    for number, leaf in enumerate(leaves_of(root)):
        own = [label for row, label in zip(table.rows, table.classes, strict=True) if leaf_of(root, row) is leaf]
        bins = tree.counts[np.flatnonzero(tree.tree.column == LEAF)[number]]
        assert bins.tolist() == [own.count(one) for one in range(table.class_count)]


def leaves_of(root: Node) -> list[Node]:
    """Leaves in breadth-first order."""
    order = [root]
    for node in order:
        order.extend(node.sons)
    return [node for node in order if not node.sons]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("variant", ["id3", "c45"])
def test_trees_and_spans_are_those_of_the_reference(variant: str) -> None:
    assert sum(compare(seed, variant) for seed in range(500)) > 100


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["id3", "c45"])
def test_trees_and_spans_are_those_of_the_reference_on_thousands(variant: str) -> None:
    assert sum(compare(seed, variant) for seed in range(10_000, 16_000)) > 1000


@pytest.mark.sampled(5)
@pytest.mark.parametrize("tabled", [3, 1 << 22])
def test_rows_that_stand_for_several_persons_are_as_so_many_rows(tabled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "TABLED", tabled)
    split = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        table = random_table(rng, ordered=True, class_is_public=bool(rng.random() < 0.3))
        columns = attributes(table)
        if rng.random() < 0.5 and columns.is_ordered.any():
            # Values that are far apart are sorted, not counted in a table.
            columns = replace(columns, codes=np.where(columns.is_ordered[:, None], 400 * columns.codes, columns.codes))
            columns = replace(columns, sizes=np.where(columns.is_ordered, 400 * columns.sizes, columns.sizes))
        labels, persons = np.array(table.classes, np.int32), rng.integers(1, 5, len(table.rows))
        order = rng.permutation(np.repeat(np.arange(len(labels)), persons))
        asked: dict[str, Any] = {
            "class_count": table.class_count,
            "demand": Demand(int(rng.integers(1, 6)), float(rng.choice([1.0, 1.2]))),
            "variant": Variant(str(rng.choice(["id3", "c45"]))),
            "class_is_public": table.class_is_public,
        }
        if table.class_is_public:
            asked["demand"] = Demand(asked["demand"].k)
        repeated = replace(columns, codes=np.ascontiguousarray(columns.codes[:, order]))
        try:
            expected = DecisionTreeGrower(repeated, labels[order], **asked).grow()
        except Infeasible as error:
            with pytest.raises(Infeasible, match=re.escape(str(error))):
                DecisionTreeGrower(columns, labels, persons=persons, **asked).grow()
            continue
        found = DecisionTreeGrower(columns, labels, persons=persons, **asked).grow()
        for name in ("column", "children", "start", "before"):
            assert getattr(found.tree, name).tolist() == getattr(expected.tree, name).tolist(), seed
        assert found.counts.tolist() == expected.counts.tolist()
        assert found.span_of_row is not None
        assert expected.span_of_row is not None
        assert groups(found.span_of_row[order].tolist()) == groups(expected.span_of_row.tolist())
        spans = {
            which: find_spans(
                found.tree, table.public, list(codes), classes, class_count=table.class_count,
                class_is_public=table.class_is_public, persons=numbers,
            )[0]
            for which, codes, classes, numbers in (
                ("several", columns.codes, labels, persons),
                ("repeated", repeated.codes, labels[order], None),
            )
        }  # fmt: skip
        for name in ("first", "leaves", "classes", "counts"):
            assert getattr(spans["several"], name).tolist() == getattr(spans["repeated"], name).tolist()
        split += len(found.counts) > 1
    assert split > 80, split


@pytest.mark.parametrize("private", [True, False])
def test_a_cap_on_spans_is_told(private: bool) -> None:
    rng = np.random.default_rng(0)
    table = Table(
        [tuple(int(one) for one in rng.integers(0, 2, 3)) for _ in range(60)],
        [int(one) for one in rng.integers(0, 2, 60)],
        [2, 2, 2],
        [not private, True, True],
        [[("a",), ("b",)]] * 3,
        2,
    )
    with pytest.raises(RequestError, match="max_spans = 2"):
        DecisionTreeGrower(
            attributes(table),
            np.array(table.classes, np.int32),
            class_count=2,
            demand=Demand(1),
            variant=Variant.ID3,
            max_spans=2,
        ).grow()
