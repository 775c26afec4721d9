# SPDX-License-Identifier: Apache-2.0
"""Error-based pruning: expected errors as Quinlan has them, and what replacing does to spans."""

from __future__ import annotations

import numpy as np
import pytest

from anonfit.algorithms.trees.building import expected_errors, prune, pruned_at
from anonfit.algorithms.trees.growing import GrownTree
from anonfit.engines.tree import Tree


@pytest.mark.parametrize(("persons", "bound"), [(6, 0.206), (9, 0.143), (1, 0.750)])
def test_leaves_without_errors_as_in_the_book(persons: int, bound: float) -> None:
    # U25%(0, 6), U25%(0, 9), U25%(0, 1) of C4.5, page 42.
    found = expected_errors(np.array([persons]), np.array([0]), 0.25)[0]
    assert found / persons == pytest.approx(bound, abs=5e-4)


def test_the_congressman_of_the_book_is_a_leaf() -> None:
    # C4.5, page 42: three leaves of 6, 9 and 1 without errors err 3.273 times, the leaf with 1 of 16 about 2.5 times.
    leaves = expected_errors(np.array([6, 9, 1]), np.zeros(3, np.int64), 0.25).sum()
    assert leaves == pytest.approx(3.273, abs=5e-3)
    assert expected_errors(np.array([16]), np.array([1]), 0.25)[0] < leaves


def test_errors_of_nobody_and_of_everybody() -> None:
    assert expected_errors(np.array([0]), np.array([0]), 0.25)[0] == 0
    assert expected_errors(np.array([4]), np.array([4]), 0.25)[0] == 4


def tree(column: list[int], children: list[int], counts: list[list[int]]) -> GrownTree:
    nodes = len(column)
    none = np.full(nodes, -1, np.int32)
    start = np.zeros(nodes, np.int32)
    return GrownTree(
        Tree(np.array(column, np.int32), np.array(children, np.int32), start, none, none),
        np.array(counts),
    )


def test_a_split_that_saves_no_error_is_undone() -> None:
    grown = tree([0, -1, -1], [2, 0, 0], [[9, 3], [6, 1], [3, 2]])
    assert prune(grown, 0.25).tree.column.tolist() == [-1]


def test_a_split_that_tells_the_classes_apart_stays() -> None:
    grown = tree([0, -1, -1], [2, 0, 0], [[50, 50], [50, 0], [0, 50]])
    assert prune(grown, 0.25).tree.column.tolist() == [0, -1, -1]


def random_tree(rng: np.random.Generator) -> GrownTree:
    """Up to three levels of two sons each, in breadth-first order."""
    column, children, counts = [], [], [rng.integers(0, 40, 2)]
    depths = [0]
    for number, depth in enumerate(depths):
        split = depth < 3 and (number == 0 or rng.random() < 0.6)
        column.append(0 if split else -1)
        children.append(2 if split else 0)
        if split:
            left = rng.binomial(counts[number], rng.choice([0.1, 0.5, 0.8], 2))
            counts += [left, counts[number] - left]
            depths += [depth + 1, depth + 1]
    return tree(column, children, [one.tolist() for one in counts])


def pruned_by_hand(grown: GrownTree) -> list[int]:
    """The columns that are left: of subtrees that save a training error, and are expected to err at least 0.1 less."""
    first = grown.tree.first_child.tolist()
    column = grown.tree.column.tolist()
    persons, most = grown.counts.sum(axis=1), grown.counts.max(axis=1)
    bound = expected_errors(persons, persons - most, 0.25)

    def below(node: int) -> list[int]:
        return [] if column[node] == -1 else [first[node], first[node] + 1]

    def made(node: int) -> float:
        """The training errors of what is left of a subtree."""
        own = float(persons[node] - most[node])
        return min(own, sum(made(son) for son in below(node))) if below(node) else own

    def expected(node: int) -> float:
        return float(bound[node]) if is_leaf(node) else sum(expected(son) for son in below(node))

    def is_leaf(node: int) -> bool:
        if not below(node) or sum(made(son) for son in below(node)) >= persons[node] - most[node] - 1e-3:
            return True
        return float(bound[node]) <= sum(expected(son) for son in below(node)) + 0.1

    order = [0]
    for node in order:
        order.extend([] if is_leaf(node) else below(node))
    return [-1 if is_leaf(node) else column[node] for node in order]


def test_subtrees_are_replaced_where_a_leaf_is_expected_to_err_no_more() -> None:
    rng = np.random.default_rng(0)
    sizes = set()
    for _ in range(600):
        grown = random_tree(rng)
        found = prune(grown, 0.25).tree.column.tolist()
        assert found == pruned_by_hand(grown)
        sizes.add((len(found), len(grown.counts)))
    assert len(sizes) > 10


def test_what_was_below_a_new_leaf_is_gone() -> None:
    grown = tree(
        [0, 1, 1, -1, -1, -1, 2, -1, -1],
        [2, 2, 2, 0, 0, 0, 2, 0, 0],
        [[4, 4], [2, 2], [2, 2], [1, 1], [1, 1], [1, 1], [1, 1], [1, 0], [0, 1]],
    )
    found = pruned_at(grown, np.arange(9) == 2)
    assert found.tree.column.tolist() == [0, 1, -1, -1, -1]
    assert found.tree.children.tolist() == [2, 2, 0, 0, 0]
    assert found.counts.tolist() == [[4, 4], [2, 2], [2, 2], [1, 1], [1, 1]]
