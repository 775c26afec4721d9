# SPDX-License-Identifier: Apache-2.0
"""The diversity models: counted by hand, against their plain definitions, and as properties."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_diversity import (
    DEMANDS,
    deviations,
    height,
    leaf_of,
    moved,
    plainly_allowed,
    random_demand,
    random_sensitive,
)

from anonfit.errors import SpecError
from anonfit.privacy.catalogue import MODELS, make_model
from anonfit.privacy.diversity import squared_deviations
from anonfit.privacy.likeness import MaxConfidence
from anonfit.privacy.models import SensitiveColumn
from anonfit.tables.scales import FixedPoint, fixed_point
from anonfit.tables.taxonomy import Taxonomy
from strategies import tries


def column_of(whole: list[int], **more: Any) -> SensitiveColumn:
    return SensitiveColumn("diagnosis", len(whole), more.pop("has_missing", False), np.array(whole), **more)


def allowed(column: SensitiveColumn, model: str, counts: Any, **asked: Any) -> Any:
    return make_model(column, model, asked).allows(np.array(counts)).tolist()


def figure(column: SensitiveColumn, model: str, counts: Any, **asked: Any) -> Any:
    return make_model(column, model, asked).figure(np.array(counts)).tolist()


# --- by hand ----------------------------------------------------------------------------------------------------


def test_distinct_values_are_counted() -> None:
    column = column_of([5, 5, 5])
    assert figure(column, "distinct-l", [[4, 0, 0], [1, 0, 2], [1, 1, 1]], l=2) == [1, 2, 3]
    assert allowed(column, "distinct-l", [[4, 0, 0], [1, 0, 2], [1, 1, 1]], l=2) == [False, True, True]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([85, 15], 1.5261), ([751, 249], 1.7528), ([22654, 30162 - 22654], 1.7527), ([1, 1, 1, 1], 4.0)],
)
def test_entropy_of_known_shares(counts: list[int], expected: float) -> None:
    column = column_of(counts)
    assert figure(column, "entropy-l", counts, l=2) == pytest.approx(expected, abs=5e-5)
    assert allowed(column, "entropy-l", counts, l=expected - 1e-4)
    assert not allowed(column, "entropy-l", counts, l=expected + 1e-4)


def test_equally_frequent_values_are_a_tie_that_counts() -> None:
    for size in range(2, 60):
        assert allowed(column_of([7] * size), "entropy-l", [7] * size, l=size)


def test_recursive_diversity_is_strict() -> None:
    column = column_of([20, 20, 20, 20])
    # Sorted 6, 3, 2, 1: from the third on 3, from the second on 6.
    assert not allowed(column, "recursive-cl", [3, 6, 1, 2], c=2, l=3)
    assert allowed(column, "recursive-cl", [3, 6, 1, 2], c=2.01, l=3)
    assert not allowed(column, "recursive-cl", [3, 6, 1, 2], c=1, l=2)
    assert figure(column, "recursive-cl", [[3, 6, 1, 2], [3, 6, 0, 0]], c=2, l=3) == [2.0, math.inf]
    assert not allowed(column, "recursive-cl", [3, 6, 0, 0], c=1e300, l=3)
    assert allowed(column, "recursive-cl", [[5, 0, 0, 0], [5, 1, 0, 0]], c=6, l=2) == [False, True]


def test_recursive_diversity_with_more_values_than_there_are() -> None:
    assert not allowed(column_of([3, 3]), "recursive-cl", [3, 3], c=100, l=5)


SALARIES = column_of([1] * 9, ordered=True)  # 3K to 11K, each once


def test_salaries_of_the_t_closeness_paper() -> None:
    low, spread = [1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1, 0, 0, 1]
    assert figure(SALARIES, "t-closeness", [low, spread], t=0.2) == pytest.approx([0.375, 1 / 6])
    assert allowed(SALARIES, "t-closeness", [low, spread], t=0.2) == [False, True]
    assert allowed(SALARIES, "t-closeness", [low, spread], t=0.375) == [True, True]
    assert figure(SALARIES, "t-closeness", [low, spread], t=0.2, distance="equal") == pytest.approx([2 / 3, 2 / 3])


def test_diseases_at_heights_of_a_taxonomy() -> None:
    # Two families of two diseases, and one disease that stands alone under the root.
    taxonomy = Taxonomy.from_paths(
        [
            ("flu", "lung", "*"),
            ("asthma", "lung", "*"),
            ("ulcer", "stomach", "*"),
            ("gastritis", "stomach", "*"),
            ("burn", "*"),
        ]
    )
    column = column_of([2, 2, 2, 2, 2], taxonomy=taxonomy)
    groups = [[5, 5, 5, 5, 5], [4, 0, 2, 2, 2], [4, 2, 0, 2, 2], [10, 0, 0, 0, 0]]
    # Moving 0.2 within a family costs half of moving it between families.
    # All flu: 0.2 comes from asthma at 1/2, 0.6 from elsewhere at 1.
    assert figure(column, "t-closeness", groups, t=0.1) == pytest.approx([0.0, 0.1, 0.2, 0.7])
    assert allowed(column, "t-closeness", groups, t=0.1) == [True, True, False, False]


def test_missing_is_a_leaf_under_the_root_and_the_lowest_value() -> None:
    taxonomy = Taxonomy.from_paths([("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*")])
    column = column_of([5, 5, 5, 5], has_missing=True, taxonomy=taxonomy, ordered=True)
    assert figure(column, "t-closeness", [10, 0, 5, 5], t=0, distance="hierarchical") == pytest.approx(0.25)
    assert figure(column, "t-closeness", [10, 0, 5, 5], t=0, distance="ordered") == pytest.approx(0.25 / 3)
    assert figure(column, "t-closeness", [10, 5, 5, 0], t=0, distance="ordered") == pytest.approx(0.25)


def test_a_taxonomy_of_one_leaf() -> None:
    alone = Taxonomy.from_tree({"name": "ill"})
    column = column_of([3, 1], has_missing=True, taxonomy=alone)
    assert figure(column, "t-closeness", [1, 1], t=0) == pytest.approx(0.25)
    assert figure(column_of([4], taxonomy=alone), "t-closeness", [2], t=0) == 0


def test_heights_are_those_of_the_declared_taxonomy() -> None:
    deep = Taxonomy.from_paths([("a", "x", "*"), ("b", "x", "*"), ("c", "y", "z", "*")])
    column = column_of([1, 1], taxonomy=deep, leaves=np.array([0, 1]))
    # Nobody has c, but it makes the root three high: a and b meet at height 1 of 3.
    assert figure(column, "t-closeness", [1, 0], t=0) == pytest.approx(0.5 / 3)


def test_the_largest_share() -> None:
    column = column_of([50, 50])
    assert figure(column, "alpha-k", [[3, 1], [2, 2]], alpha=0.6) == [0.75, 0.5]
    assert allowed(column, "alpha-k", [[3, 1], [2, 2], [2, 1]], alpha=0.75) == [True, True, True]
    assert allowed(column, "alpha-k", [[3, 1], [2, 2], [2, 1]], alpha=2 / 3) == [False, True, True]
    assert allowed(column, "alpha-k", [7, 3], alpha=0.7 - 5e-10)
    assert not allowed(column, "alpha-k", [7, 3], alpha=0.7 - 5e-9)
    limit = MaxConfidence(column, 0.75)
    assert limit.allows(np.array([[3, 1], [4, 1]])).tolist() == [True, False]
    assert (limit.name, limit.parameter) == ("max_confidence", "max_confidence")


def test_growth_of_a_share() -> None:
    column = column_of([80, 20])
    # 20 % to 50 % is growth by 1.5; 80 % to 100 % by 0.25, and -ln 0.8 is 0.2231.
    assert figure(column, "beta-likeness", [[5, 5], [5, 0]], beta=1) == pytest.approx([1.5, 0.25])
    assert allowed(column, "beta-likeness", [[5, 5], [5, 0]], beta=1.5) == [True, True]
    assert allowed(column, "beta-likeness", [[5, 5], [5, 0]], beta=1.4) == [False, True]
    assert allowed(column, "beta-likeness", [[5, 5], [5, 0], [97, 3]], beta=1.5, enhanced=True) == [True, False, True]


def test_ratios_of_shares() -> None:
    column = column_of([50, 50])
    assert figure(column, "delta-disclosure", [[3, 1], [4, 0]], delta=1) == pytest.approx([math.log(2), math.inf])
    assert allowed(column, "delta-disclosure", [[3, 1], [3, 2], [4, 0]], delta=math.log(2)) == [True, True, False]
    assert allowed(column, "delta-disclosure", [[3, 1], [3, 2], [4, 0]], delta=0.69) == [False, True, False]


def test_squared_deviations_in_the_unit_of_the_column() -> None:
    column = column_of([1] * 4, numbers=np.array([0, -2, 0, 6]), scale=FixedPoint(100.0, 0.5), has_missing=True)
    # 99, 100 and 103: mean 100.667, deviations 2.778 + 0.444 + 5.444; missing is not counted.
    groups = [[0, 1, 1, 1], [9, 1, 1, 1], [9, 0, 0, 2], [3, 0, 0, 0]]
    assert figure(column, "squared-error", groups, error=1) == pytest.approx([26 / 3, 26 / 3, 0, 0])
    assert figure(column, "variance", groups, variance=1) == pytest.approx([26 / 9, 26 / 9, 0, 0])
    assert allowed(column, "squared-error", groups, error=26 / 3) == [True, True, False, False]
    assert allowed(column, "variance", groups, variance=26 / 9) == [True, True, False, False]


WEAKEST: list[tuple[str, str, float, float]] = [  # the parameter, the end that asks nothing, and what is just enough
    ("distinct-l", "l", 1, 2),
    ("entropy-l", "l", 1 + 1e-9, 1 + 1e-8),
    ("recursive-cl", "l", 1, 2),
    ("t-closeness", "t", 1 - 1e-9, 1 - 1e-8),
    ("alpha-k", "alpha", 1 - 1e-9, 1 - 1e-8),
    ("squared-error", "error", 0, 1e-9),
    ("variance", "variance", 0, 1e-9),
]


@pytest.mark.parametrize(("model", "key", "nothing", "little"), WEAKEST)
def test_a_demand_that_every_group_meets_is_refused_and_the_weakest_is_one(
    model: str, key: str, nothing: float, little: float
) -> None:
    column = column_of([1, 10**9], numbers=np.array([0, 1]), scale=FixedPoint(0.0, 1.0))
    others = {"c": 1e9} if model == "recursive-cl" else {}
    for value in (nothing, round(nothing)):
        with pytest.raises(SpecError, match='ask for more diversity than that, or write diversity = "none"'):
            make_model(column, model, {key: value, **others})
    assert allowed(column, model, [[7, 0], [3, 3]], **{key: little}, **others) == [False, True]


@pytest.mark.parametrize(
    ("model", "asked"), [("t-closeness", {"t": 0}), ("beta-likeness", {"beta": 0}), ("delta-disclosure", {"delta": 0})]
)
def test_the_strongest_demands_allow_only_the_table_itself(model: str, asked: dict[str, Any]) -> None:
    column = column_of([3, 6, 9])
    assert allowed(column, model, [[1, 2, 3], [3, 6, 9], [1, 2, 4]], **asked) == [True, True, False]


@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_table_of_one_value(model: str) -> None:
    column = column_of(
        [7], numbers=np.array([0]), scale=FixedPoint(5.0, 1.0), taxonomy=Taxonomy.flat(["a"]), ordered=True
    )
    rng = np.random.default_rng(1)
    for _ in range(20):
        asked = DEMANDS[model](rng)
        assert allowed(column, model, [4], **asked) == plainly_allowed(column, model, asked, [4]), asked


# --- large numbers ----------------------------------------------------------------------------------------------


def test_a_thousand_million_persons_of_a_value() -> None:
    numbers = np.array([1e6 - 1, 1e6, 1e6 + 1])
    whole = [10**9, 2 * 10**9, 10**9]
    scale = fixed_point(numbers[0], numbers[-1], persons=sum(whole))
    column = column_of(
        whole, numbers=scale.quantize(numbers), scale=scale, ordered=True, taxonomy=Taxonomy.flat(["a", "b", "c"])
    )
    assert figure(column, "variance", whole, variance=1) == 0.5
    assert figure(column, "squared-error", whole, error=1) == 2e9
    assert figure(column, "entropy-l", whole, l=2) == pytest.approx(2 ** (0.5 + 1), rel=1e-12)
    assert figure(column, "recursive-cl", whole, c=1, l=2) == 1.0
    for distance in ("equal", "ordered", "hierarchical"):
        assert figure(column, "t-closeness", whole, t=0, distance=distance) == 0
    assert figure(column, "t-closeness", [2 * 10**9, 2 * 10**9, 0], t=0, distance="equal") == 0.25


@given(st.lists(st.tuples(st.integers(-(2**20), 2**20), st.integers(1, 2**20)), min_size=1, max_size=30))
def test_deviations_keep_their_digits_anywhere(rows: list[tuple[int, int]]) -> None:
    numbers, counts = [number for number, _ in rows], [count for _, count in rows]
    persons = sum(counts)
    sums = sum(number * count for number, count in rows)
    squares = sum(number * number * count for number, count in rows)
    assert squares < 2**62
    mean = Fraction(sums, persons)
    exact = sum((count * (number - mean) ** 2 for number, count in zip(numbers, counts, strict=True)), Fraction(0))
    found = float(squared_deviations(np.array(persons), np.array(sums), np.array(squares)))
    assert found == pytest.approx(float(exact), rel=1e-14, abs=0)


def test_a_narrow_group_at_the_end_of_a_wide_column() -> None:
    numbers = np.array([0.0, 1.0, 1e6])
    scale = fixed_point(0.0, 1e6, persons=10**6)
    column = column_of([10**5] * 3, numbers=scale.quantize(numbers), scale=scale)
    assert figure(column, "variance", [10**5, 10**5, 0], variance=1) == 0.25
    # The plain formula in floats would be wrong in the fifth digit here, and lose the tie.
    assert allowed(column, "variance", [10**5, 10**5, 0], variance=0.25)


# --- against the definitions ------------------------------------------------------------------------------------


def test_models_agree_with_their_definitions() -> None:
    rng = np.random.default_rng(7)
    answers: dict[str, set[bool]] = {}
    for _ in range(4000):
        column, groups = random_sensitive(rng)
        model, asked = random_demand(rng)
        found = make_model(column, model, asked).allows(groups)
        expected = [plainly_allowed(column, model, asked, counts) for counts in groups]
        assert found.tolist() == expected, (column, model, asked, groups)
        answers.setdefault(model, set()).update(expected)
    assert answers == {model: {True, False} for model in MODELS}


def test_figures_agree_with_their_definitions() -> None:
    rng = np.random.default_rng(8)
    for _ in range(400):
        column, groups = random_sensitive(rng)
        for distance in ("equal", "ordered", "hierarchical"):
            model = make_model(column, "t-closeness", {"t": 0.0, "distance": distance})
            expected = [float(moved(column, counts, distance)) for counts in groups]
            assert model.figure(groups).tolist() == pytest.approx(expected, abs=1e-14)
        errors = [float(deviations(column, counts)[1]) for counts in groups]
        assert figure(column, "squared-error", groups, error=1) == pytest.approx(errors, rel=1e-14)


def test_distances_are_what_moving_the_earth_costs() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(9)
    for _ in range(60):
        column, groups = random_sensitive(rng)
        assert column.taxonomy is not None
        top = max(height(column.taxonomy, 0), 1)
        size = column.size
        costs = {name: np.zeros((size, size)) for name in ("equal", "ordered", "hierarchical")}
        for one in range(size):
            for other in range(one):
                apart = top
                if other >= column.has_missing:
                    taxonomy = column.taxonomy
                    ends = (leaf_of(column, other), leaf_of(column, one))
                    paths = [set(taxonomy._upward(end)) for end in ends]
                    apart = height(taxonomy, max(paths[0] & paths[1]))
                costs["equal"][one, other] = 1.0
                costs["ordered"][one, other] = (one - other) / (size - 1)
                costs["hierarchical"][one, other] = apart / top
        source, target = groups[0] / groups[0].sum(), column.shares
        leaving, arriving = np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))
        for name, cost in costs.items():
            plan = optimize.linprog(
                (cost + cost.T).ravel(), A_eq=np.vstack([leaving, arriving]), b_eq=np.append(source, target)
            )
            model = make_model(column, "t-closeness", {"t": 0.0, "distance": name})
            assert float(model.figure(groups[0])) == pytest.approx(plan.fun, abs=1e-7)


def test_many_groups_at_once_are_each_group_alone() -> None:
    rng = np.random.default_rng(10)
    for _ in range(100):
        column, groups = random_sensitive(rng)
        model = make_model(column, *random_demand(rng))
        cube = np.stack([groups, groups[::-1]])
        assert model.allows(cube).shape == cube.shape[:2]
        for first, second in np.ndindex(cube.shape[:2]):
            assert bool(model.allows(cube)[first, second]) == bool(model.allows(cube[first, second]))
            assert float(model.figure(cube)[first, second]) == pytest.approx(float(model.figure(cube[first, second])))


# --- monotone ---------------------------------------------------------------------------------------------------


@tries(300)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(MODELS)), st.sampled_from([3, 40, 10**6]))
def test_what_is_made_of_allowed_groups_is_allowed(seed: int, model: str, most: int) -> None:
    rng = np.random.default_rng(seed)
    column, groups = random_sensitive(rng, most=most)
    asked = DEMANDS[model](rng)
    made = make_model(column, model, asked)
    assert made.is_monotone
    parts = groups[made.allows(groups)]
    for one in parts:
        for other in parts:
            assert made.allows(one + other), (column, asked, one, other)


@tries(200)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(MODELS)))
def test_demands_that_groups_just_meet_are_met_together(seed: int, model: str) -> None:
    rng = np.random.default_rng(seed)
    column, groups = random_sensitive(rng)
    asked = DEMANDS[model](rng)
    figures = make_model(column, model, asked).figure(groups[:2])
    parameter = MODELS[model].parameters[0]
    # The worse of two groups' figures is what both of them meet, just so.
    worst = float(figures.min() if model in ("distinct-l", "entropy-l", "squared-error", "variance") else figures.max())
    if not np.isfinite(worst):
        return
    if model == "recursive-cl":
        worst = float(np.nextafter(worst * (1 + 1e-12), np.inf))
    asked = {
        **asked,
        parameter.name: int(worst)
        if model == "distinct-l"
        else float(np.clip(worst, parameter.lowest, parameter.highest)),
    }
    asked.pop("enhanced", None)
    if parameter.asks_nothing(asked[parameter.name]):
        return
    made = make_model(column, model, asked)
    assert made.allows(groups[:2]).all()
    assert made.allows(groups[:2].sum(axis=0))


def test_with_entities_most_models_are_not_monotone() -> None:
    """A person with the value in both parts counts once in the whole: what the docs warn of."""
    one, other, union = np.array([1, 1]), np.array([1, 1]), np.array([2, 1])  # one person is in both parts
    made = make_model(column_of([2, 1]), "alpha-k", {"alpha": 0.5})
    assert made.allows(one)
    assert made.allows(other)
    assert not made.allows(union)
