# SPDX-License-Identifier: Apache-2.0
"""From a workload to the purpose that engines read: criteria by their words, weights, sample weights, denoising."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from anonfit.algorithms.coding import TableCoding
from anonfit.algorithms.denoised import denoised
from anonfit.criteria.objectives import MEDIAN, SplitObjective, WeightRule
from anonfit.criteria.targets import SHARE_BITS, ClassTarget, CodedSelections, NumberTarget, ShareTarget
from anonfit.engines.memory.engine import MemoryEngine
from anonfit.errors import DataError, SpecError
from anonfit.spec.model import SelectionSpec
from anonfit.tables.schema import CodedColumn, CodedTable, Column, Persons, Role, Schema, SplitMode
from anonfit.workload.targets import TargetRequest, Workload

ROWS = 60
RNG = np.random.default_rng(4)
X, Y = RNG.integers(0, 6, ROWS), RNG.integers(0, 4, ROWS)
FRAME = pl.DataFrame(
    {
        "x": X,
        "y": Y,
        "died": ["yes" if one > 3 else "no" for one in X + RNG.integers(0, 2, ROWS)],
        "cost": X * 10.0 + RNG.normal(size=ROWS),
        "weight": RNG.choice([0.5, 1.0, 4.0], ROWS),
    }
)
COLUMNS = [
    Column("x", Role.QUASI_IDENTIFIER),
    Column("y", Role.QUASI_IDENTIFIER),
    Column("died", Role.TARGET),
    Column("cost", Role.TARGET),
    Column("weight", Role.SAMPLE_WEIGHT),
]
DIED, COST = TargetRequest("died"), TargetRequest("cost")


def coded(frame: pl.DataFrame = FRAME, counts: Any = None) -> CodedTable:
    columns = tuple(
        CodedColumn(name, size, SplitMode.ORDERED, False, np.arange(size, dtype=np.float64))
        for name, size in (("x", 6), ("y", 4))
    )
    codes = tuple(frame[name].to_numpy().astype(np.uint8) for name in ("x", "y"))
    return CodedTable(columns, codes, len(frame), None if counts is None else np.array(counts, np.uint32))


def objective_of(
    frame: pl.DataFrame = FRAME, *, counts: Any = None, selections: Any = None, **words: Any
) -> SplitObjective:
    coding, table = TableCoding(MemoryEngine(frame), Schema(tuple(COLUMNS))), coded(frame, counts)
    coding.persons = Persons(len(frame), counts=table.counts)
    coding.codes = {column.name: codes for column, codes in zip(table.columns, table.codes, strict=True)}
    workload = Workload(**words)
    found = coding.objective(workload, table.columns)
    if workload.denoise:
        found = denoised(coding, found, workload, table.columns, k=5)
    return found if selections is None else replace(found, selections=selections)


def kinds(purpose: SplitObjective) -> list[type]:
    return [type(target) for target in purpose.targets]


# --- criteria ---------------------------------------------------------------------------------------------------


def test_without_anything_the_purpose_is_blind() -> None:
    purpose = objective_of()
    assert (purpose.targets, purpose.selections, purpose.weights, purpose.masses) == ((), None, (), None)


@pytest.mark.parametrize(
    ("criterion", "found"),
    [
        ("auto", [ClassTarget, NumberTarget]),
        ("infogain", [ClassTarget]),
        ("lsd", [NumberTarget]),
        ("selection", [ClassTarget, NumberTarget]),
        ("weighted", []),
        ("median", []),
    ],
)
def test_a_criterion_takes_the_targets_it_is_about(criterion: str, found: list[type]) -> None:
    assert kinds(objective_of(targets=(DIED, COST), criterion=criterion)) == found


def test_classes_of_a_number_suit_information_gain() -> None:
    assert kinds(objective_of(targets=(TargetRequest("cost", classes=(25.0,)),), criterion="infogain")) == [ClassTarget]


@pytest.mark.parametrize(
    ("criterion", "target", "sentence"),
    [("infogain", COST, "'infogain' needs a nominal target"), ("lsd", DIED, "'lsd' needs a numeric target")],
)
def test_a_criterion_without_a_target_of_its_kind_is_refused(
    criterion: str, target: TargetRequest, sentence: str
) -> None:
    with pytest.raises(SpecError, match=sentence):
        objective_of(targets=(target,), criterion=criterion)


FEATURES = FRAME.select("x", "y").to_pandas()


@pytest.mark.parametrize(
    ("criterion", "model"),
    [
        ("lsd", LogisticRegression().fit(FEATURES, FRAME["died"].to_numpy())),
        ("infogain", LinearRegression().fit(FEATURES, FRAME["cost"].to_numpy())),
    ],
)
def test_a_criterion_without_a_prediction_of_its_kind_is_refused(criterion: str, model: Any) -> None:
    with pytest.raises(SpecError, match="needs a"):
        objective_of(targets=(TargetRequest("died", model=model),), criterion=criterion)


def test_the_median_leaves_all_else_out_of_account() -> None:
    asked = {"targets": (DIED,), "weights": {"x": 2.0}, "criterion": "median", "min_gain": 1.0, "candidates": "all"}
    assert objective_of(**asked) == MEDIAN
    assert objective_of(**asked, split_on=("y",)) == SplitObjective(split_on=frozenset({1}))


def test_selections_are_used_where_the_criterion_is_about_them() -> None:
    asked = (SelectionSpec(where="x > 2"),)
    words = ("auto", "selection", "infogain", "lsd", "weighted", "median")
    used = {word: Workload(selections=asked, criterion=word).used_selections for word in words}
    assert {word for word, found in used.items() if found} == {"auto", "selection"}


def test_settings_are_passed_on() -> None:
    selections = CodedSelections(*(np.zeros((0, 10), np.uint8) for _ in range(6)))
    purpose = objective_of(
        targets=(DIED,), selections=selections, candidates="all", min_gain=2.5, alpha=0.25, split_on=("y", "x")
    )
    assert purpose.selections is selections
    assert (purpose.all_cuts, purpose.min_gain, purpose.alpha) == (True, 2.5, 0.25)
    assert purpose.split_on == {0, 1}
    assert not objective_of(targets=(DIED,)).all_cuts


# --- weights ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "found"), [("first", WeightRule.FIRST), ("product", WeightRule.PRODUCT), ("blend", WeightRule.BLEND)]
)
def test_columns_without_a_weight_have_one(rule: str, found: WeightRule) -> None:
    purpose = objective_of(weights={"y": 3.0}, weight_rule=rule)
    assert (purpose.weights, purpose.rule) == ((1.0, 3.0), found)


def test_without_weights_there_is_no_rule() -> None:
    purpose = objective_of(targets=(DIED,), weight_rule="product")
    assert (purpose.weights, purpose.rule) == ((), WeightRule.NONE)


def test_a_quasi_identifier_is_its_own_target() -> None:
    found = objective_of(targets=(TargetRequest("y"), DIED, TargetRequest("x", classes=(2.0,)))).targets
    assert [target.column for target in found] == [1, -1, 0]


# --- sample weights ---------------------------------------------------------------------------------------------


def test_sample_weights_are_masses_in_proportion() -> None:
    purpose = objective_of(targets=(DIED,), sample_weight="weight")
    assert purpose.masses is not None
    assert (purpose.masses * purpose.unit).tolist() == pytest.approx(FRAME["weight"].to_list(), rel=1e-3)
    # The unit is a power of two, about a thousandth of the mean weight.
    assert np.log2(purpose.unit) % 1 == 0
    assert 512 <= purpose.masses.mean() <= 2048


def test_counts_multiply_sample_weights() -> None:
    counts = np.arange(1, ROWS + 1)
    purpose = objective_of(targets=(DIED,), sample_weight="weight", counts=counts)
    assert purpose.masses is not None
    expected = FRAME["weight"].to_numpy() * counts
    assert (purpose.masses * purpose.unit).tolist() == pytest.approx(expected.tolist(), rel=0.05)


def test_weights_in_other_units_are_the_same_masses() -> None:
    one = objective_of(targets=(DIED,), sample_weight="weight")
    other = objective_of(FRAME.with_columns(pl.col("weight") * 2.0**20), targets=(DIED,), sample_weight="weight")
    assert one.masses is not None
    assert other.masses is not None
    assert one.masses.tolist() == other.masses.tolist()
    assert other.unit == one.unit * 2.0**20


def test_a_row_of_weight_zero_still_counts_a_little() -> None:
    weights = pl.Series("weight", [0.0] + [1.0] * (ROWS - 1))
    purpose = objective_of(FRAME.with_columns(weights), targets=(DIED,), sample_weight="weight")
    assert purpose.masses is not None
    assert purpose.masses[0] == 1
    assert purpose.masses[1] > 500


def test_without_criteria_sample_weights_are_not_used() -> None:
    good = FRAME.with_columns(pl.lit(2.0).alias("weight"))
    assert objective_of(good, sample_weight="weight").masses is None
    assert objective_of(good, sample_weight="weight", weights={"x": 2.0}).masses is None


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), None])
def test_weights_that_are_none_are_refused(bad: float | None) -> None:
    weights = pl.Series("weight", [bad] + [1.0] * (ROWS - 1))
    with pytest.raises(DataError, match="sample-weight column 'weight': weights must be numbers"):
        objective_of(FRAME.with_columns(weights), targets=(DIED,), sample_weight="weight")


@pytest.mark.parametrize("weights", [pl.lit(0.0), pl.lit("heavy")])
def test_weights_that_are_all_zero_or_words_are_refused(weights: pl.Expr) -> None:
    with pytest.raises(DataError, match="not all 0"):
        objective_of(FRAME.with_columns(weights.alias("weight")), targets=(DIED,), sample_weight="weight")


# --- denoising --------------------------------------------------------------------------------------------------


def test_denoised_targets_are_shares_and_numbers() -> None:
    purpose = objective_of(
        targets=(TargetRequest("died", weight=2.0), TargetRequest("cost", scale=False)), denoise=True
    )
    died, cost = purpose.targets
    assert isinstance(died, ShareTarget)
    assert died.weight == 2.0
    assert died.shares.sum(axis=1).tolist() == [1 << SHARE_BITS] * ROWS
    assert isinstance(cost, NumberTarget)
    assert not cost.scaled
    found = cost.scale.restore(cost.multiples)
    assert np.corrcoef(found, FRAME["x"].to_numpy())[0, 1] > 0.5


def test_permuted_rows_have_the_same_predictions() -> None:
    order = np.random.default_rng(1).permutation(ROWS)
    asked = {"targets": (DIED, COST), "denoise": True, "sample_weight": "weight", "seed": 3}
    one, other = objective_of(**asked), objective_of(FRAME[order], **asked)
    assert isinstance(one.targets[0], ShareTarget)
    assert isinstance(other.targets[0], ShareTarget)
    assert one.targets[0].shares[order].tolist() == other.targets[0].shares.tolist()
    assert isinstance(one.targets[1], NumberTarget)
    assert isinstance(other.targets[1], NumberTarget)
    assert one.targets[1].multiples[order].tolist() == other.targets[1].multiples.tolist()


def test_a_quasi_identifier_is_not_predicted_from_itself() -> None:
    """y is pure chance given x: nothing but y itself could tell it."""
    (target,) = objective_of(targets=(TargetRequest("y", classes=(2.0,)),), denoise=True).targets
    assert isinstance(target, ShareTarget)
    assert target.column == 1
    truth = (np.asarray(Y) >= 2).astype(float)
    assert abs(np.corrcoef(target.shares[:, 1], truth)[0, 1]) < 0.6


def test_the_seed_divides_the_rows_anew() -> None:
    one, other = (objective_of(targets=(DIED,), denoise=True, seed=seed).targets[0] for seed in (0, 1))
    assert isinstance(one, ShareTarget)
    assert isinstance(other, ShareTarget)
    assert one.shares.tolist() != other.shares.tolist()


def test_a_fitted_model_is_taken_as_it_is_where_others_are_denoised() -> None:
    model = LinearRegression().fit(FEATURES, FRAME["x"].to_numpy() * 10.0)
    purpose = objective_of(targets=(TargetRequest("cost", model=model), DIED), denoise=True)
    assert kinds(purpose) == [NumberTarget, ShareTarget]
    number = purpose.targets[0]
    assert isinstance(number, NumberTarget)
    assert number.scale.restore(number.multiples).tolist() == pytest.approx((X * 10.0).tolist(), abs=1e-4)
