# SPDX-License-Identifier: Apache-2.0
"""Coding a sensitive column: which value is which code, and how many persons have it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.errors import DataError, TaxonomyError
from anonfit.privacy.catalogue import make_model
from anonfit.privacy.coding import sensitive_column
from anonfit.privacy.models import SensitiveColumn
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy


def coded(values: list[Any], dtype: Any = None, **more: Any) -> tuple[SensitiveColumn, list[int]]:
    series = pl.Series("d", values, dtype=dtype)
    weights = more.pop("weights", np.ones(len(values), np.int64))
    column, codes = sensitive_column(series, weights, **more)
    assert codes.dtype == np.uint32
    assert (column.size, len(column.whole)) == (len(column.whole), column.size)
    return column, codes.tolist()


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["never", "b", "a", "é"])])
def test_texts_are_sorted_by_text(dtype: Any) -> None:
    column, codes = coded(["b", "a", None, "é", "b"], dtype)
    assert codes == [2, 1, 0, 3, 2]
    assert (column.size, column.has_missing, column.ordered, column.numbers) == (4, True, False, None)
    assert column.whole.tolist() == [1, 1, 2, 1]


def test_truth_is_a_text() -> None:
    column, codes = coded([True, False, True])
    assert (codes, column.ordered) == ([1, 0, 1], False)


def test_numbers_are_sorted_by_value() -> None:
    column, codes = coded([10.0, float("nan"), 9.0, None, -0.0, 0.0])
    assert codes == [3, 0, 2, 0, 1, 1]
    assert column.whole.tolist() == [2, 2, 1, 1]
    assert column.ordered
    assert column.numbers is not None
    assert column.scale is not None
    assert column.scale.restore(column.numbers)[1:].tolist() == [0.0, 9.0, 10.0]


def test_numbers_can_be_names() -> None:
    column, codes = coded([10, 9, 9], type=ColumnType.NOMINAL)
    assert (codes, column.numbers, column.ordered) == ([0, 1, 1], None, False)


def test_decimals_have_their_own_unit() -> None:
    column, codes = coded([Decimal("1.50"), Decimal("0.25"), Decimal("1.50")], pl.Decimal(10, 2))
    assert codes == [1, 0, 1]
    assert column.numbers is not None
    assert column.scale is not None
    assert column.scale.restore(column.numbers).tolist() == [0.25, 1.5]


def test_texts_declared_to_be_numbers_or_dates() -> None:
    column, codes = coded(["10", "9", None], type=ColumnType.CONTINUOUS)
    assert codes == [2, 1, 0]
    assert column.numbers is not None
    column, codes = coded(["31.12.2020", "01.02.2021"], date_format="%d.%m.%Y")
    assert (codes, column.ordered, column.numbers) == ([0, 1], True, None)


def test_dates_and_times_are_sorted_by_value() -> None:
    column, codes = coded([date(2021, 2, 1), date(2020, 12, 31), None])
    assert (codes, column.ordered, column.numbers) == ([2, 1, 0], True, None)
    column, codes = coded([datetime(2021, 2, 1, 3), datetime(2021, 2, 1, 2)])
    assert (codes, column.ordered) == ([1, 0], True)


def test_words_follow_their_declared_order_without_those_nobody_has() -> None:
    order = ("none", "mild", "severe", "fatal")
    column, codes = coded(["fatal", "mild", None, "fatal"], type=ColumnType.ORDINAL, order=order)
    assert codes == [2, 1, 0, 2]
    assert (column.size, column.ordered, column.numbers) == (3, True, None)


def test_leaves_are_followed_without_those_nobody_has() -> None:
    taxonomy = Taxonomy.from_paths([("z", "x", "*"), ("m", "x", "*"), ("a", "*")])
    column, codes = coded(["a", "z", None, "a"], taxonomy=taxonomy)
    assert codes == [2, 1, 0, 2]
    assert column.leaves is not None
    assert column.leaves.tolist() == [-1, 0, 2]
    assert (column.ordered, column.taxonomy) == (False, taxonomy)
    made = make_model(column, "t-closeness", {"t": 0.1})
    assert float(made.figure(np.array([1, 1, 1]))) == pytest.approx(1 / 6)


def test_numbers_below_intervals_of_a_taxonomy_stay_apart() -> None:
    taxonomy = Taxonomy.flat(["≥ 20", "[10, 20)", "< 10"])
    column, codes = coded([25, 12, 11, 3, None], taxonomy=taxonomy)
    assert codes == [1, 3, 2, 4, 0]
    assert column.leaves is not None
    assert column.leaves.tolist() == [-1, 0, 1, 1, 2]
    assert not column.ordered
    assert column.numbers is not None
    assert column.scale is not None
    assert column.scale.restore(column.numbers)[1:].tolist() == [25, 11, 12, 3]
    # 11 and 12 are one leaf: moving from the one to the other costs nothing.
    made = make_model(column, "t-closeness", {"t": 0.1})
    assert float(made.figure(np.array([1, 1, 2, 0, 1]))) == pytest.approx(0.0)
    rising, _ = coded([25, 12, 3], taxonomy=Taxonomy.flat(["< 10", "[10, 20)", "≥ 20"]))
    assert rising.ordered


def test_values_outside_a_declared_domain_are_counted_but_not_named() -> None:
    with pytest.raises(TaxonomyError, match="column 'd': 2 of its 3 distinct values are not in its taxonomy") as error:
        coded(["a", "secret", "hidden", None], taxonomy=Taxonomy.flat(["a"]))
    assert "secret" not in str(error.value)
    with pytest.raises(DataError, match="column 'd': 1 of its 2 distinct values is not in its order") as wrong:
        coded(["a", "secret"], type=ColumnType.ORDINAL, order=("a", "b"))
    assert "secret" not in str(wrong.value)


@pytest.mark.parametrize("values", [[[1, 2]], [{"a": 1}], [b"x"]])
def test_values_that_cannot_be_compared_are_refused(values: list[Any]) -> None:
    with pytest.raises(DataError, match="column 'd' is of type .* a sensitive column or a target needs plain values"):
        coded(values)


@pytest.mark.parametrize("dtype", [pl.String, pl.Float64, pl.Date, pl.Null, pl.Boolean, pl.Categorical])
def test_a_column_of_missing_values_has_one_value(dtype: Any) -> None:
    column, codes = coded([None, None], dtype)
    assert (codes, column.size, column.has_missing, column.whole.tolist()) == ([0, 0], 1, True, [2])
    if column.numbers is not None:
        assert not make_model(column, "variance", {"variance": 0.1}).allows(column.whole)


def test_a_table_without_rows() -> None:
    column, codes = coded([], pl.Float64)
    assert (codes, column.size, column.has_missing) == ([], 0, False)


def test_persons_of_rows_and_of_entities() -> None:
    large = np.array([2**53, 1, 1], np.int64)
    column, _ = coded(["a", "a", "b"], weights=large)
    assert column.whole.tolist() == [2**53 + 1, 1]  # floats would lose the one
    # Persons 7 and 8; 7 has "a" in two rows.
    entities = np.array([7, 7, 7, 8], np.uint32)
    column, codes = coded(["a", "b", "a", "a"], entities=entities)
    assert (codes, column.whole.tolist()) == ([0, 1, 0, 0], [2, 1])


def test_numbers_far_from_zero_keep_their_spread() -> None:
    values = np.random.default_rng(0).normal(1e6, 1, 5000)
    column, codes = sensitive_column(pl.Series("d", values), np.ones(5000, np.int64))
    made = make_model(column, "variance", {"variance": 1.0})
    assert float(made.figure(column.whole)) == pytest.approx(values.var(), rel=1e-6)
    half = np.bincount(codes[:2500], minlength=column.size)
    assert float(made.figure(half)) == pytest.approx(values[:2500].var(), rel=1e-6)


def test_random_columns_are_coded_by_their_order() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        values = [None if rng.random() < 0.2 else int(rng.integers(0, 20)) for _ in range(int(rng.integers(1, 40)))]
        weights = rng.integers(1, 9, len(values))
        as_texts = bool(rng.random() < 0.5)
        column, codes = coded(
            [None if value is None else f"{value}" for value in values] if as_texts else values,
            pl.String if as_texts else pl.Int32,
            weights=weights,
        )
        known = sorted({value for value in values if value is not None}, key=str if as_texts else int)
        listed = ([None] if None in values else []) + known
        assert codes == [listed.index(value) for value in values]
        assert column.whole.tolist() == [
            sum(int(weight) for value, weight in zip(values, weights, strict=True) if value == each) for each in listed
        ]
