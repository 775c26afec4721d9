# SPDX-License-Identifier: Apache-2.0
"""Codes stand for values and lead back to them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from coding import coded, decoded
from hypothesis import given
from hypothesis import strategies as st

from anonfit.tables.frames import from_frame
from anonfit.tables.scales import on_axis
from anonfit.tables.schema import ColumnType, NominalDomain, OrderedDomain, SplitMode, code_dtype
from anonfit.tables.taxonomy import Taxonomy

# --- codes invert to values -------------------------------------------------------------------------------------

ORDERED = {
    "whole": (st.integers(-(2**63), 2**63 - 1), pl.Int64),
    "small": (st.integers(-100, 100), pl.Int8),
    "float": (st.floats(allow_nan=False, allow_infinity=False), pl.Float64),
    "decimal": (st.decimals(-(10**6), 10**6, places=3), pl.Decimal(18, 3)),
    "date": (st.dates(), pl.Date),
    "time": (st.datetimes(), pl.Datetime("us")),
}


@pytest.mark.parametrize("kind", ORDERED)
@given(st.data())
def test_codes_of_ordered_values_are_ranks(kind: str, data: st.DataObject) -> None:
    strategy, dtype = ORDERED[kind]
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=30))
    series = pl.Series("x", values, dtype=dtype)
    found = coded(series)
    axis = iter(on_axis(series.drop_nulls()).tolist())
    assert decoded(found) == [None if value is None else next(axis) for value in values]
    assert isinstance(found.domain, OrderedDomain)
    assert found.domain.values.tolist() == sorted(set(found.domain.values.tolist()))
    assert found.codes.dtype == code_dtype(found.domain.coded().size)
    assert found.domain.has_missing == (None in values)


@given(st.lists(st.none() | st.text(max_size=5), min_size=1, max_size=30), st.sampled_from([pl.String, pl.Categorical]))
def test_codes_of_names_are_leaves_in_order(values: list[str | None], dtype: Any) -> None:
    found = coded(pl.Series(values, dtype=pl.String).cast(dtype))
    assert isinstance(found.domain, NominalDomain)
    present = {value for value in values if value is not None}
    if present:
        assert decoded(found) == values
        assert list(found.domain.taxonomy.leaves) == sorted(present)
        assert found.domain.other is None
    assert found.domain.taxonomy.names[0] not in present
    assert found.domain.coded().mode == SplitMode.SUBSET


@given(st.lists(st.none() | st.sampled_from(["low", "mid", "high"]), min_size=1, max_size=20))
def test_codes_of_ordinal_words_are_their_places(values: list[str | None]) -> None:
    order = ("low", "never", "mid", "high")
    found = coded(pl.Series(values, dtype=pl.String), type=ColumnType.ORDINAL, order=order)
    assert decoded(found) == values
    shift = int(None in values)
    assert found.domain.coded().positions[shift:].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("size", [255, 256, 257, 65535, 65536, 65537])
@pytest.mark.parametrize("missing", [False, True])
def test_codes_are_as_narrow_as_they_can_be(size: int, missing: bool) -> None:
    for step in (1, 10**9):
        values = pl.Series([None] * missing + [step * value for value in range(size)], dtype=pl.Int64)
        found = coded(values)
        assert found.codes.dtype == code_dtype(size + missing)
        assert found.codes.tolist() == list(range(size + missing))


def test_a_number_column_declared_nominal_is_named_by_texts() -> None:
    assert decoded(coded(pl.Series([2.0, 1.0, 2.0, 0.5]), type=ColumnType.NOMINAL)) == ["2", "1", "2", "0.5"]
    assert decoded(coded(pl.Series([10, 9]), type=ColumnType.NOMINAL)) == ["10", "9"]
    assert decoded(coded(pl.Series([date(2024, 1, 5)]), type=ColumnType.NOMINAL)) == ["2024-01-05"]
    assert decoded(coded(pl.Series([Decimal("1.50")]), type=ColumnType.NOMINAL)) == ["1.50"]
    assert decoded(coded(pl.Series([-0.0, 0.0]), type=ColumnType.NOMINAL)) == ["0", "0"]


def test_booleans_are_two_names() -> None:
    found = coded(pl.Series([True, False, None, True]))
    assert decoded(found) == ["true", "false", None, "true"]
    taxonomy = Taxonomy.flat(["True", "False"])
    assert decoded(coded(pl.Series([True, False]), taxonomy=taxonomy)) == ["True", "False"]


# --- the bucket of rare values ----------------------------------------------------------------------------------


def test_values_of_fewer_than_k_persons_are_one_leaf() -> None:
    values = pl.Series(list("aaabbcd"))
    found = coded(values, k=2)
    assert isinstance(found.domain, NominalDomain)
    assert found.domain.taxonomy.leaves == ("a", "b", "other")
    assert found.domain.other == "other"
    assert decoded(found) == ["a", "a", "a", "b", "b", "other", "other"]
    assert coded(values, k=1).domain.other is None  # type: ignore[union-attr]


def test_rare_is_counted_in_persons_not_in_rows() -> None:
    entities = np.array([1, 1, 1, 2, 3, 4])

    def persons(groups: Any, count: int) -> Any:
        return np.array([len(set(entities[groups == group].tolist())) for group in range(count)])

    found = coded(pl.Series(list("aaabbc")), k=2, persons=persons)
    assert decoded(found) == ["other", "other", "other", "b", "b", "other"]


def test_a_value_called_other_keeps_its_name_and_the_bucket_gets_another() -> None:
    found = coded(pl.Series(["other", "other", "a", "b"]), k=2)
    assert decoded(found) == ["other", "other", "other values", "other values"]
    found = coded(pl.Series(["other", "other", "other values", "other values", "b"]), k=2)
    assert len(set(decoded(found))) == 3
    assert found.domain.other not in ("other", "other values")  # type: ignore[union-attr]


def test_a_rare_value_called_other_is_in_the_bucket() -> None:
    assert decoded(coded(pl.Series(["other", "a", "a"]), k=2)) == ["other", "a", "a"]


def test_a_declared_domain_names_rare_values_too() -> None:
    found = coded(pl.Series(list("aab")), k=2, type=ColumnType.NOMINAL, domain=("c", "b", "a"))
    assert found.domain.taxonomy.leaves == ("c", "b", "a")  # type: ignore[union-attr]
    assert decoded(found) == ["a", "a", "b"]
    assert found.domain.other is None  # type: ignore[union-attr]


def test_a_value_that_is_the_roots_name_gives_way_to_no_root() -> None:
    found = coded(pl.Series(["*", "**", "a"]))
    assert decoded(found) == ["*", "**", "a"]


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["never", "b", "a"])])
def test_categories_that_no_row_has_do_not_matter(dtype: Any) -> None:
    values = pl.Series(["a", "b", "a"]).cast(pl.Enum(["never", "b", "a"])).cast(dtype)
    found = coded(values, k=1)
    assert found.domain.taxonomy.leaves == ("a", "b")  # type: ignore[union-attr]
    assert found.domain.other is None  # type: ignore[union-attr]
    assert decoded(coded(values, taxonomy=Taxonomy.flat(["a", "b"]))) == ["a", "b", "a"]


def test_some_rows_of_a_column_of_categories_know_only_their_own() -> None:
    values = pl.Series(["a", "b", "z"], dtype=pl.Categorical).head(2)
    assert coded(values).domain.taxonomy.leaves == ("a", "b")  # type: ignore[union-attr]


# --- missing values ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1.5, float("nan"), 1.5]),
        pd.Series([1, None, 1], dtype="Int64"),
        pd.Series([1, pd.NA, 1], dtype="Int8"),
        pd.Series([pd.Timestamp("2024-01-01"), pd.NaT, pd.Timestamp("2024-01-01")]),
        pd.Series(["a", None, "a"]),
        pd.Series(["a", pd.NA, "a"], dtype="string"),
        pd.Series(["a", float("nan"), "a"], dtype=object),
        pd.Series(["a", pd.NaT, "a"], dtype=object),
        pd.Series([True, None, True], dtype="boolean"),
        pd.Series(pd.Categorical(["a", None, "a"])),
        pd.Series([date(2024, 1, 1), None, date(2024, 1, 1)]),
        pd.Series([Decimal("1.5"), None, Decimal("1.5")]),
        pd.Series([1, "a", None], dtype=object).iloc[[1, 2, 1]],
    ],
    ids=lambda values: str(values.dtype),
)
def test_every_kind_of_missing_is_missing(values: Any) -> None:
    found = coded(from_frame(pd.DataFrame({"x": values}))["x"])
    assert found.domain.has_missing
    assert found.codes.tolist() == [1, 0, 1]


def test_nan_of_polars_is_missing() -> None:
    found = coded(pl.Series([1.0, float("nan"), None]))
    assert decoded(found) == [1.0, None, None]
    assert decoded(coded(pl.Series([1.0, float("nan")]), type=ColumnType.NOMINAL)) == ["1", None]


@pytest.mark.parametrize(
    "dtype", [pl.Int64, pl.Float64, pl.Date, pl.Datetime("us"), pl.String, pl.Categorical, pl.Boolean, pl.Null]
)
def test_a_column_of_missing_values_only_has_one_code(dtype: Any) -> None:
    found = coded(pl.Series([None, None, None], dtype=dtype), k=2)
    assert found.codes.tolist() == [0, 0, 0]
    assert found.domain.has_missing
    assert decoded(found) == [None, None, None]


@pytest.mark.parametrize("kind", [ColumnType.CONTINUOUS, ColumnType.DATE, ColumnType.NOMINAL])
def test_a_column_without_any_type_can_be_declared(kind: ColumnType) -> None:
    assert coded(pl.Series([None, None], dtype=pl.Null), type=kind).codes.tolist() == [0, 0]


def test_a_column_of_missing_values_with_an_order_or_a_taxonomy() -> None:
    nothing = pl.Series([None, None], dtype=pl.String)
    assert coded(nothing, type=ColumnType.ORDINAL, order=("a", "b")).domain.coded().size == 3
    assert coded(nothing, taxonomy=Taxonomy.flat(["a", "b"])).domain.coded().size == 3
