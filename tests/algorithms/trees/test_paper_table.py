# SPDX-License-Identifier: Apache-2.0
"""Table 1 and figure 1 of PKDD 2006: the mortgage company's customers, with every k and every choice of what is
public.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from anonfit import Infeasible, KAnonymousTreeClassifier, RequestError
from anonfit.algorithms.trees.growing import DecisionTreeGrower, Demand, Variant, attributes_of
from anonfit.algorithms.trees.tree import DecisionTree
from anonfit.engines.memory.tree_kernels import GAIN

NAMES = ["Lisa", "John", "Ben", "Laura", "Robert", "Anna"]
TABLE = pl.DataFrame(
    {
        "Marital": ["Unmarried", "Married", "Married", "Married", "Unmarried", "Unmarried"],
        "Car": ["Yes", "Yes", "No", "No", "Yes", "No"],
    }
)
RISK = ["good", "good", "bad", "bad", "bad", "bad"]


def grown(k: int, *, private: tuple[str, ...] = ("Car",), class_is_public: bool = False) -> DecisionTree:
    classifier = KAnonymousTreeClassifier(k, private=private, variant="id3", class_is_public=class_is_public)
    return classifier.fit(TABLE, RISK).tree_


def test_gains_at_the_root() -> None:
    from anonfit.tables.codebook import code_column
    from anonfit.tables.schema import Column, Role

    coded = [
        code_column(Column(name, Role.QUASI_IDENTIFIER), TABLE[name], persons=lambda _, n: np.full(n, 9), k=1)
        for name in TABLE.columns
    ]
    attributes = attributes_of([one.domain for one in coded], [one.codes for one in coded], [True, False])
    labels = np.array([one == "good" for one in RISK], np.int32)
    grower = DecisionTreeGrower(attributes, labels, class_count=2, demand=Demand(3), variant=Variant.ID3, max_spans=10)
    grower._weighed(grower.nodes[0])
    found = grower.nodes[0].splits
    assert found is not None
    assert found[:, GAIN].tolist() == pytest.approx([0.0, 0.4591], abs=5e-5)


def test_tree_of_figure_1() -> None:
    tree = grown(3)
    # Breadth first: Car; its sons No and Yes; the sons of Yes, Married and Unmarried.
    assert tree.nodes.column.tolist() == [1, -1, 0, -1, -1]
    assert tree.tiling.columns[1].cells_of(pl.Series(["No", "Yes"])).tolist() == [0, 1]
    assert tree.tiling.columns[0].cells_of(pl.Series(["Married", "Unmarried"])).tolist() == [0, 1]
    assert tree.classes == ("bad", "good")
    assert tree.bins.tolist() == [[3, 0], [0, 1], [1, 1]]
    spans = tree.spans
    assert [spans.leaves_of(one).tolist() for one in range(len(spans))] == [[0, 1], [0, 2]]
    assert spans.sizes.tolist() == [3, 3]
    # John, Ben, Laura; Lisa, Robert, Anna.
    assert spans.counts.tolist() == [[2, 1], [2, 1]]
    assert tree.k == 3
    # Counting a leaf's own persons would call it 1-anonymous.
    assert tree.bins.sum(axis=1).min() == 1


def test_who_has_which_span() -> None:
    from anonfit.algorithms.trees.tree import find_spans

    tree = grown(3)
    _, of_row = find_spans(
        tree.nodes,
        [name in tree.public for name in tree.columns],
        tree.tiling.cells(TABLE),
        np.array([one == "good" for one in RISK], np.int32),
        class_count=2,
        class_is_public=False,
    )
    who = [{name for name, one in zip(NAMES, of_row.tolist(), strict=True) if one == span} for span in (0, 1)]
    assert who == [{"John", "Ben", "Laura"}, {"Lisa", "Robert", "Anna"}]


@pytest.mark.parametrize("k", [4, 5, 6])
def test_from_four_on_only_the_car_is_asked_for(k: int) -> None:
    tree = grown(k)
    assert tree.nodes.column.tolist() == [1, -1, -1]
    assert tree.bins.tolist() == [[3, 0], [1, 2]]
    assert len(tree.spans) == 1
    assert tree.spans.sizes.tolist() == [6]
    assert tree.spans.leaves.tolist() == [0, 1]


def test_seven_persons_are_not_there() -> None:
    with pytest.raises(Infeasible, match="6 person.* fewer than k = 7"):
        grown(7)


@pytest.mark.parametrize("k", [2, 3])
def test_a_public_car_gives_spans_of_three_and_stops(k: int) -> None:
    tree = grown(k, private=())
    assert tree.nodes.column.tolist() == [1, -1, -1]
    assert tree.spans.sizes.tolist() == [3, 3]
    assert [tree.spans.leaves_of(one).tolist() for one in (0, 1)] == [[0], [1]]


def test_with_a_public_car_and_one_person_enough_the_tree_is_that_of_figure_1() -> None:
    tree = grown(1, private=())
    assert tree.bins.tolist() == [[3, 0], [0, 1], [1, 1]]
    assert tree.spans.sizes.tolist() == [3, 1, 2]


def test_a_public_car_is_not_asked_for_from_four_on() -> None:
    assert grown(4, private=()).leaves == 1


def test_a_public_class_needs_three_of_each() -> None:
    with pytest.raises(Infeasible, match="2 person.*same class"):
        grown(3, class_is_public=True)


def test_a_public_class_leaves_the_car_for_two() -> None:
    tree = grown(2, class_is_public=True)
    assert tree.nodes.column.tolist() == [1, -1, -1]
    # Both spans have both leaves: one of bad, one of good.
    assert tree.spans.classes.tolist() == [0, 1]
    assert tree.spans.sizes.tolist() == [4, 2]
    assert [tree.spans.leaves_of(one).tolist() for one in (0, 1)] == [[0, 1], [0, 1]]


def test_a_public_class_cannot_be_diverse() -> None:
    with pytest.raises(RequestError, match="class is public"):
        KAnonymousTreeClassifier(1, class_is_public=True, entropy_l=1.5).fit(TABLE, RISK)
