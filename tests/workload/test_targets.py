# SPDX-License-Identifier: Apache-2.0
"""From a target column to what a criterion sums: classes, numbers, and what a fitted model predicts."""

from __future__ import annotations

import itertools
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from anonfit.criteria.objectives import OBJECTIVES
from anonfit.criteria.targets import SHARE_BITS, ClassTarget, NumberTarget, ShareTarget, Target
from anonfit.errors import DataError, RequestError, SpecError
from anonfit.tables.schema import Column, ColumnType, Role
from anonfit.tables.taxonomy import Taxonomy
from anonfit.workload.targets import (
    TargetRequest,
    can_predict,
    classes_of,
    code_target,
    is_numeric,
    number_target,
    predicted_target,
)

ONES = np.ones(100, np.int64)


def coded(values: Any, *, own: int = -1, column: dict[str, Any] | None = None, **request: Any) -> Target:
    series = values if isinstance(values, pl.Series) else pl.Series("t", values)
    declared = Column("t", Role.TARGET, **(column or {}))
    return code_target(TargetRequest("t", **request), declared, series, masses=ONES[: len(series)], own=own)


def classes(values: Any, column: dict[str, Any] | None = None, **request: Any) -> tuple[list[int], int]:
    """The class of each row, and how many classes there are."""
    series = values if isinstance(values, pl.Series) else pl.Series("t", values)
    found, width = classes_of(TargetRequest("t", **request), Column("t", Role.TARGET, **(column or {})), series)
    return found.tolist(), width


# --- number or class --------------------------------------------------------------------------------------------

TREE = Taxonomy.from_tree({"name": "*", "children": [{"name": "1"}, {"name": "2"}, {"name": "3"}]})


@pytest.mark.parametrize(
    ("values", "column", "request_", "numeric"),
    [
        (list(range(21)), {}, {}, True),
        ([0.5, 1.5, 2.5, None], {}, {}, True),
        ([Decimal("1.5"), Decimal("2.5"), Decimal("3")], {}, {}, True),
        ([date(2020, 1, 1), date(2021, 1, 1)], {}, {}, True),
        (["2020-01-01", "2021-01-01"], {"type": ColumnType.DATE}, {}, True),
        (["1.5", "2.5", "7"], {"type": ColumnType.CONTINUOUS}, {}, True),
        # Few whole numbers, and two of any kind, are classes unless they are declared to be numbers.
        ([0, 1, 1, None], {}, {}, False),
        ([0.5, 1.5, 1.5, None], {}, {}, False),
        ([1.0, 2.0, 3.0, None], {}, {}, False),
        ([*range(20), None], {}, {}, False),
        (list(range(20)), {"type": ColumnType.CONTINUOUS}, {}, True),
        ([0, 1, 1], {"type": ColumnType.CONTINUOUS}, {}, True),
        ([1, 2, 3], {"type": ColumnType.NOMINAL}, {}, False),
        ([1, 2, 3], {"taxonomy": TREE}, {}, False),
        (["low", "mid", "high"], {"type": ColumnType.ORDINAL, "order": ("low", "mid", "high")}, {}, False),
        (["a", "b", "c"], {}, {}, False),
        ([True, False, None], {}, {}, False),
        ([1, 2, 3], {}, {"classes": (2.0,)}, False),
        ([1, 2, 3], {}, {"equal_width": 2}, False),
    ],
)
def test_what_is_a_number_to_be_estimated(
    values: Any, column: dict[str, Any], request_: dict[str, Any], numeric: bool
) -> None:
    found = coded(values, column=column, **request_)
    assert isinstance(found, NumberTarget if numeric else ClassTarget)
    assert (
        is_numeric(TargetRequest("t", **request_), Column("t", Role.TARGET, **column), pl.Series("t", values))
        is numeric
    )


@pytest.mark.parametrize(
    ("values", "criterion", "numeric"),
    [
        # Estimating takes numbers for numbers, information gain whole numbers for classes, however many there are.
        ([0, 1, 1], "lsd", True),
        ([0.5, 1.5, 2.5], "lsd", True),
        (list(range(50)), "infogain", False),
        ([0.5, 1.5, 2.5], "infogain", True),
        (["a", "b", "c"], "lsd", False),
        (list(range(50)), "selection", True),
        (list(range(5)), "selection", False),
    ],
)
def test_a_criterion_says_what_numbers_are(values: Any, criterion: str, numeric: bool) -> None:
    series, column = pl.Series("t", values), Column("t", Role.TARGET)
    found = code_target(
        TargetRequest("t"), column, series, masses=ONES[: len(series)], own=-1, objective=OBJECTIVES[criterion]
    )
    assert isinstance(found, NumberTarget if numeric else ClassTarget)


def test_weight_scale_and_own_column_are_passed_on() -> None:
    number = coded([1.5, 2.0, 4.0], own=3, weight=0.5, scale=False)
    assert (number.name, number.weight, number.column) == ("t", 0.5, 3)
    assert isinstance(number, NumberTarget)
    assert not number.scaled
    nominal = coded(["a", "b"], own=1, weight=2.0)
    assert (nominal.weight, nominal.column) == (2.0, 1)


# --- classes ----------------------------------------------------------------------------------------------------


def test_a_threshold_belongs_to_the_class_above_it() -> None:
    assert classes([29_999.99, 30_000, 30_000.01, 60_000, -5.0], classes=(30_000.0, 60_000.0)) == ([0, 1, 1, 2, 0], 3)


def test_missing_is_a_class_of_its_own_and_the_first() -> None:
    assert classes([1.0, None, 3.0, float("nan")], classes=(2.0,)) == ([1, 0, 2, 0], 3)
    assert classes(["b", None, "a"]) == ([2, 0, 1], 3)
    assert classes([None, 0, 1]) == ([0, 1, 2], 3)


def test_classes_of_equal_width_part_the_range() -> None:
    # 0 to 12 in three: below 4, below 8, the rest.
    assert classes([0.0, 3.99, 4.0, 7.99, 8.0, 12.0], equal_width=3) == ([0, 0, 1, 1, 2, 2], 3)
    assert classes([None, 0, 6, 12], equal_width=2) == ([0, 1, 2, 2], 3)


def test_classes_without_rows_are_counted() -> None:
    assert classes([5, 6], classes=(1.0, 2.0, 3.0)) == ([3, 3], 4)


def test_one_value_and_no_value_make_classes_too() -> None:
    found, width = classes([7.0, 7.0], equal_width=4)
    assert len(set(found)) == 1
    assert max(found) < width
    assert classes(pl.Series("t", [None, None], dtype=pl.Float64), equal_width=4)[0] == [0, 0]


def test_texts_of_numbers_have_classes_if_they_are_declared_to_be_numbers() -> None:
    assert classes(["1", "10", "9"], {"type": ColumnType.CONTINUOUS}, classes=(9.0,)) == ([0, 1, 1], 2)
    with pytest.raises(SpecError, match="'t' is a column of type nominal: only numbers can be"):
        classes(["1", "10"], classes=(9.0,))


def test_dates_have_no_classes_by_numbers() -> None:
    with pytest.raises(SpecError, match="is a column of type date"):
        classes([date(2020, 1, 1)], classes=(9.0,))


def test_the_order_of_words_does_not_depend_on_the_rows() -> None:
    assert classes(["b", "a", "c"]) == ([1, 0, 2], 3)
    assert classes(["c", "b", "a"]) == ([2, 1, 0], 3)
    assert classes(["low", "high"], {"type": ColumnType.ORDINAL, "order": ("low", "high")}) == ([0, 1], 2)


# --- numbers ----------------------------------------------------------------------------------------------------


def restored(target: Target) -> list[float]:
    assert isinstance(target, NumberTarget)
    return target.scale.restore(target.multiples).tolist()


def test_numbers_are_kept_to_the_fixed_point() -> None:
    values = [1e6 + 0.25, 1e6 - 1.5, 1e6 + 7]
    assert restored(coded(values)) == pytest.approx(values, abs=1e-6)


def test_a_missing_number_stands_at_the_mean() -> None:
    assert restored(coded([1.5, None, 5.5, 2.0]))[1] == pytest.approx(3.0, abs=1e-6)


def test_dates_are_numbers_of_days() -> None:
    found = restored(coded([date(2020, 1, 1), date(2020, 1, 31), date(2020, 1, 11)]))
    assert np.diff(found).tolist() == pytest.approx([30, -20], abs=1e-3)


def test_numbers_of_many_persons_are_coarser_and_their_squares_still_add_up() -> None:
    values = np.linspace(-1.0, 1.0, 5)
    fine = number_target(TargetRequest("t"), values, masses=np.ones(5, np.int64), own=-1)
    coarse = number_target(TargetRequest("t"), values, masses=np.full(5, 10**9), own=-1)
    assert coarse.scale.step > fine.scale.step
    assert (coarse.multiples**2 * 10**9).sum() < 2**62


def test_a_target_without_any_value_is_refused() -> None:
    with pytest.raises(DataError, match="target 't' has no value at all"):
        coded(pl.Series("t", [None, None], dtype=pl.Float64), column={"type": ColumnType.CONTINUOUS})


def test_infinite_numbers_are_refused_without_being_told() -> None:
    with pytest.raises(DataError, match="some values are infinite"):
        coded([1.0, 2.0, float("inf")])
    with pytest.raises(DataError, match="some values are infinite"):
        coded([1.0, 2.0, float("inf")], classes=(1.5,))


def test_where_a_missing_number_stands_does_not_depend_on_the_order_of_rows() -> None:
    """Four numbers whose mean lies between two multiples, to the last bit of a sum in one order."""
    values = [0.0, 1.0, 0.319681636282665, 0.6803659580261885]
    found = {
        int(number_target(TargetRequest("t"), np.array([*order, np.nan]), masses=ONES[:5], own=-1).multiples[-1])
        for order in itertools.permutations(values)
    }
    assert len(found) == 1


# --- fitted models ----------------------------------------------------------------------------------------------

FRAME = pl.DataFrame({"x": [0, 1, 2, 3, 4, 5], "y": [1, 0, 1, 0, 1, 0], "t": [0, 0, 0, 1, 1, 1]})


def predicted(model: Any, frame: pl.DataFrame = FRAME, **request: Any) -> Target:
    asked = TargetRequest("t", model=model, **request)
    return predicted_target(asked, frame, ["x", "y"], masses=ONES[: len(frame)], own=-1)


def test_probabilities_are_shares() -> None:
    model = LogisticRegression().fit(FRAME.select("x", "y").to_pandas(), FRAME["t"].to_numpy())
    found = predicted(model, weight=2.0)
    assert isinstance(found, ShareTarget)
    assert found.weight == 2.0
    expected = model.predict_proba(FRAME.select("x", "y").to_pandas())
    assert np.abs(found.shares / (1 << SHARE_BITS) - expected).max() <= 1 / (1 << SHARE_BITS)
    assert found.shares.sum(axis=1).tolist() == [1 << SHARE_BITS] * 6


def test_predicted_numbers_are_numbers() -> None:
    model = LinearRegression().fit(FRAME.select("x", "y").to_pandas(), FRAME["x"].to_numpy() * 10.0)
    assert restored(predicted(model)) == pytest.approx([0, 10, 20, 30, 40, 50], abs=1e-4)


def test_predicted_words_and_two_numbers_are_classes() -> None:
    class Speaking:
        def __init__(self, words: list[Any]) -> None:
            self.words = words

        def predict(self, rows: Any) -> Any:
            return np.array(self.words)[: len(rows)]

    found = predicted(Speaking(["no", "yes", "no", "yes", "no", "maybe"]))
    assert isinstance(found, ClassTarget)
    assert (found.classes.tolist(), found.width) == ([1, 2, 1, 2, 1, 0], 3)
    found = predicted(Speaking([5.0, 7.0, 5.0, 7.0, 5.0, 7.0]))
    assert isinstance(found, ClassTarget)
    assert found.classes.tolist() == [0, 1, 0, 1, 0, 1]


def test_a_model_gets_the_columns_it_was_fitted_on_in_its_own_order() -> None:
    frame = FRAME.select("t", "y", "x")
    model = LinearRegression().fit(FRAME.select("y", "x").to_pandas(), FRAME["x"].to_numpy() * 1.0)
    assert restored(predicted(model, frame)) == pytest.approx([0, 1, 2, 3, 4, 5], abs=1e-5)


def test_a_model_may_see_columns_that_are_no_quasi_identifiers() -> None:
    frame = FRAME.with_columns(pl.Series("other", [9, 8, 7, 6, 5, 4]))
    model = LinearRegression().fit(frame.select("other").to_pandas(), frame["other"].to_numpy() * 1.0)
    assert restored(predicted(model, frame)) == pytest.approx([9, 8, 7, 6, 5, 4], abs=1e-5)


def test_a_column_that_a_model_needs_and_the_table_lacks_is_named() -> None:
    model = LinearRegression().fit(FRAME.select("x", "y").to_pandas(), FRAME["x"].to_numpy())
    with pytest.raises(SpecError, match="the model of 't' needs the column 'y'"):
        predicted(model, FRAME.drop("y"))


@pytest.mark.parametrize("model", [DummyClassifier(), DummyRegressor()])
def test_a_model_that_says_the_same_of_all_rows_is_a_target_of_one_class(model: Any) -> None:
    fitted = model.fit(FRAME.select("x", "y").to_pandas(), np.zeros(6))
    found = predicted(fitted)
    width = found.shares.shape[1] if isinstance(found, ShareTarget) else getattr(found, "width", None)
    assert width == 1


def test_a_model_that_was_fitted_on_an_array_is_given_one() -> None:
    model = LinearRegression().fit(FRAME.select("x", "y").to_numpy(), FRAME["x"].to_numpy() * 10.0)
    assert restored(predicted(model)) == pytest.approx([0, 10, 20, 30, 40, 50], abs=1e-4)


class Predicting:
    """A model that says what it is told to, or raises it."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def predict(self, _: Any) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


class Sharing(Predicting):
    def predict_proba(self, rows: Any) -> Any:
        return self.predict(rows)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (LogisticRegression(), "^workload.targets: the model of 't' is not fitted; fit it first.$"),
        (LinearRegression(), "is not fitted"),
        (
            Predicting(ValueError("could not convert 'secret'")),
            "^workload.targets: the model of 't' failed with ValueError when its predict was given the columns 'x', "
            "'y'; fit it on these columns, by name or in this order, as the table has them.$",
        ),
        (Sharing(KeyError("secret")), "failed with KeyError when its predict_proba was given"),
        (Predicting(3), "must predict something of each of the 6 rows"),
        (Predicting([1, 2]), "must predict something of each of the 6 rows"),
        (Predicting(np.zeros((6, 2))), "predicts several columns"),
        (Predicting([1.5, 2.5, 3.5, 4.5, 5.5, np.inf]), "some predictions of the model of 't' are infinite"),
        (Sharing(np.zeros(6)), "must give every row a share of each class"),
        (Sharing(np.zeros((6, 2))), "must give every row a share of each class"),
        (Sharing(np.full((6, 2), np.nan)), "must give every row a share of each class"),
        (Sharing(np.full((6, 2), -1.0)), "must give every row a share of each class"),
        (Sharing([["a", "b"]] * 6), "must give every row a share of each class"),
    ],
)
def test_a_model_that_cannot_be_used_is_refused_without_a_value_of_a_record(model: Any, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence) as found:
        predicted(model)
    assert "secret" not in str(found.value)
    assert found.value.__context__ is None or found.value.__suppress_context__


@pytest.mark.parametrize("model", ["foo", 3, LinearRegression, {"predict": 1}])
def test_what_does_not_predict_is_no_model(model: Any) -> None:
    assert not can_predict(model)
    assert can_predict(LinearRegression())
