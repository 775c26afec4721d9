# SPDX-License-Identifier: Apache-2.0
"""Codes stand for values and lead back to them; what cannot be coded is refused by column, never by a record's value."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonfit.errors import DataError, TaxonomyError
from anonfit.tables.codebook import CodedValues, code_column, column_type, typed
from anonfit.tables.coded import SplitMode, code_dtype
from anonfit.tables.domains import NominalDomain, OrderedDomain, OrdinalDomain, texts_of
from anonfit.tables.frames import from_frame
from anonfit.tables.scales import on_axis
from anonfit.tables.schema import Column, ColumnType, Role, Split
from anonfit.tables.taxonomy import Taxonomy

SECRET = "SECRET-4711"


def column(**declared: Any) -> Column:
    return Column("x", Role.QUASI_IDENTIFIER, **declared)


def rows(groups: Any, count: int) -> Any:
    """Every row is a person."""
    return np.bincount(groups, minlength=count)


def coded(values: pl.Series, *, k: int = 1, persons: Any = rows, **declared: Any) -> CodedValues:
    return code_column(column(**declared), values.alias("x"), persons=persons, k=k)


def decoded(found: CodedValues) -> list[Any]:
    """What each code stands for: a number of the axis, a word, a leaf; None where missing."""
    domain = found.domain
    shift = int(domain.has_missing)
    if isinstance(domain, OrderedDomain):
        known: list[Any] = domain.values.tolist()
    else:
        known = list(domain.order if isinstance(domain, OrdinalDomain) else domain.taxonomy.leaves)
    return [None if shift and code == 0 else known[code - shift] for code in found.codes.tolist()]


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


# --- declared types ---------------------------------------------------------------------------------------------


def test_texts_are_read_as_the_declared_type() -> None:
    numbers = typed(column(type=ColumnType.CONTINUOUS), pl.Series("x", ["1", "-2.5", None, "1e3"]))
    assert numbers.to_list() == [1.0, -2.5, None, 1000.0]
    days = typed(column(type=ColumnType.DATE), pl.Series("x", ["2024-01-05", None]))
    assert days.to_list() == [date(2024, 1, 5), None]
    times = typed(column(type=ColumnType.DATE), pl.Series("x", ["2024-01-05T10:20:30", "2024-01-05T00:00:00"]))
    assert times.to_list() == [datetime(2024, 1, 5, 10, 20, 30), datetime(2024, 1, 5)]
    form = typed(column(type=ColumnType.DATE, date_format="%d.%m.%Y"), pl.Series("x", ["05.01.2024"]))
    assert form.to_list() == [date(2024, 1, 5)]
    clock = typed(column(type=ColumnType.DATE, date_format="%d.%m.%Y %H:%M"), pl.Series("x", ["05.01.2024 10:20"]))
    assert clock.to_list() == [datetime(2024, 1, 5, 10, 20)]


def test_a_text_that_says_nan_is_missing() -> None:
    assert decoded(coded(pl.Series(["1", "nan", "NaN"]), type=ColumnType.CONTINUOUS)) == [1.0, None, None]


def test_a_date_format_makes_a_column_a_date() -> None:
    assert column_type(column(date_format="%d.%m.%Y"), pl.String()) == ColumnType.DATE


@pytest.mark.parametrize("text", ["01/02/2023", "01.02.2023", "1-2-2023"])
def test_the_order_of_day_and_month_is_not_guessed(text: str) -> None:
    with pytest.raises(DataError, match="date_format"):
        coded(pl.Series([text]), type=ColumnType.DATE)


def test_types_are_those_of_the_data_unless_declared() -> None:
    for dtype, expected in (
        (pl.Int8(), ColumnType.CONTINUOUS),
        (pl.Decimal(5, 2), ColumnType.CONTINUOUS),
        (pl.Date(), ColumnType.DATE),
        (pl.Datetime("us"), ColumnType.DATE),
        (pl.String(), ColumnType.NOMINAL),
        (pl.Boolean(), ColumnType.NOMINAL),
    ):
        assert column_type(column(), dtype) == expected
        assert column_type(column(type=ColumnType.NOMINAL), dtype) == ColumnType.NOMINAL
    assert column_type(column(taxonomy=Taxonomy.flat(["1"])), pl.Int64()) == ColumnType.NOMINAL


@pytest.mark.parametrize(
    ("values", "declared", "what"),
    [
        (["1", SECRET, "2"], {"type": ColumnType.CONTINUOUS}, "numbers"),
        (["2024-01-01", SECRET], {"type": ColumnType.DATE}, "dates"),
        ([SECRET, SECRET], {"type": ColumnType.DATE}, "dates"),
        (["2024-01-01T10:00", SECRET], {"type": ColumnType.DATE}, "dates"),
        (["01.02.2024", SECRET], {"type": ColumnType.DATE, "date_format": "%d.%m.%Y"}, "dates"),
        ([SECRET], {"type": ColumnType.DATE, "date_format": "%d.%m.%Y %H:%M"}, "dates"),
        ([SECRET], {"type": ColumnType.DATE, "date_format": "%Q"}, "dates"),
        (["2024-02-30"], {"type": ColumnType.DATE}, "dates"),
    ],
)
def test_a_value_of_another_type_is_refused_by_column_and_row_not_by_value(
    values: Any, declared: Any, what: str
) -> None:
    with pytest.raises(DataError, match=f"column 'x'.*are not {what}.*row") as caught:
        coded(pl.Series(values), **declared)
    assert SECRET not in str(caught.value)
    assert "02-30" not in str(caught.value)


def test_booleans_are_not_numbers() -> None:
    with pytest.raises(DataError, match="column 'x'.*not numbers"):
        coded(pl.Series([True, False]), type=ColumnType.CONTINUOUS)


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([[1], [2]]),
        pl.Series([{"a": 1}]),
        pl.Series([b"a"]),
        pl.Series([object()]),
    ],
)
def test_values_that_are_not_plain_are_refused(values: pl.Series) -> None:
    with pytest.raises(DataError, match="column 'x'.*plain"):
        coded(values)


def test_durations_are_refused_or_coded() -> None:
    try:
        assert len(coded(pl.Series([timedelta(1), timedelta(2)])).codes) == 2
    except DataError as error:
        assert "column 'x'" in str(error)  # noqa: PT017 - either way is right


def test_times_of_day_are_names() -> None:
    assert len(set(decoded(coded(pl.Series([time(1), time(2), time(1)]))))) == 2


# --- values outside what is declared ----------------------------------------------------------------------------


def test_values_outside_the_taxonomy_are_named_with_the_column() -> None:
    with pytest.raises(TaxonomyError, match="column 'x': 2 value.*not in its taxonomy.*'c', 'd'"):
        coded(pl.Series(list("abcd")), taxonomy=Taxonomy.flat(["a", "b"]))
    with pytest.raises(TaxonomyError, match="7 value.*and 2 more"):
        coded(pl.Series(list("abcdefg")), taxonomy=Taxonomy.flat(["z"]))
    with pytest.raises(TaxonomyError, match="column 'x'.*'50'"):
        coded(pl.Series([1, 50]), taxonomy=Taxonomy.flat(["< 20"]))


def test_inner_names_are_no_values() -> None:
    taxonomy = Taxonomy.from_paths([("FR", "Europe", "*"), ("US", "*")])
    with pytest.raises(TaxonomyError, match="'Europe'"):
        coded(pl.Series(["FR", "Europe"]), taxonomy=taxonomy)


def test_values_outside_the_order_or_the_names_are_named_with_the_column() -> None:
    with pytest.raises(DataError, match="column 'x': 1 value.*not in its order.*'huge'"):
        coded(pl.Series(["low", "huge"]), type=ColumnType.ORDINAL, order=("low", "high"))
    with pytest.raises(DataError, match="column 'x': 1 value.*not in its domain.*'c'"):
        coded(pl.Series(["a", "c"]), type=ColumnType.NOMINAL, domain=("a", "b"))


@pytest.mark.parametrize(
    ("values", "domain"),
    [
        ([1, 50], (0, 40)),
        ([-1, 40], (0, 40)),
        ([0.5, 40.25], (0, 40)),
        ([date(2024, 1, 1)], ("2024-01-02", "2024-12-31")),
        ([datetime(2025, 1, 1)], (date(2024, 1, 1), date(2024, 12, 31))),
        ([Decimal("40.01")], (0, 40)),
    ],
)
def test_numbers_and_dates_outside_the_domain_are_refused_by_column(values: Any, domain: Any) -> None:
    with pytest.raises(DataError, match="column 'x': some values lie outside its domain"):
        coded(pl.Series(values), domain=domain)


@pytest.mark.parametrize("values", [pl.Series([100]), pl.Series([Decimal("99.6")], dtype=pl.Decimal(9, 1))])
def test_the_upper_end_of_a_domain_is_not_rounded_up(values: pl.Series) -> None:
    with pytest.raises(DataError, match="outside its domain"):
        coded(values, domain=(0, 99.5) if values.dtype == pl.Int64 else (0, 99.55))


def test_the_ends_of_a_domain_belong_to_it() -> None:
    assert coded(pl.Series([0, 120]), domain=(0, 120)).codes.tolist() == [0, 1]
    assert coded(
        pl.Series([date(2024, 1, 1), date(2024, 12, 31)]), domain=("2024-01-01", "2024-12-31")
    ).codes.tolist() == [0, 1]


@pytest.mark.parametrize("domain", [("a", "b"), (True, False), (0, "9"), ("2024-01-01", "2025-01-01")])
def test_a_domain_of_another_kind_is_refused_by_column(domain: Any) -> None:
    with pytest.raises(DataError, match="column 'x': its domain does not fit its values"):
        coded(pl.Series([1, 2]), domain=domain)


@pytest.mark.parametrize("domain", [(1,), (1, 2, 3)])
def test_a_domain_of_numbers_has_two_ends(domain: Any) -> None:
    with pytest.raises(DataError, match="column 'x'") as caught:
        coded(pl.Series([1, 2]), domain=domain)
    assert "unpack" not in str(caught.value)


# --- taxonomies over numbers and dates --------------------------------------------------------------------------


@pytest.mark.parametrize("split", [None, Split.BINARY, Split.MULTIWAY])
def test_a_taxonomy_over_numbers_and_dates(split: Split | None) -> None:
    ages = Taxonomy.flat(["< 20", "[20, 65)", "≥ 65"])
    found = coded(pl.Series([5, 64, None, 65]), taxonomy=ages, split=split)
    assert decoded(found) == ["< 20", "[20, 65)", None, "≥ 65"]
    assert found.domain.coded().mode == (SplitMode.MULTIWAY if split is None else SplitMode[split.name])
    years = Taxonomy.flat(["2023", "2024"])
    assert decoded(coded(pl.Series([date(2024, 5, 1), date(2023, 1, 1)]), taxonomy=years)) == ["2024", "2023"]


def test_a_taxonomy_over_times() -> None:
    halves = Taxonomy.flat(["< 2024-02-01", "≥ 2024-02-01"])
    found = coded(pl.Series([datetime(2024, 1, 31, 23), datetime(2024, 2, 1)]), taxonomy=halves)
    assert decoded(found) == ["< 2024-02-01", "≥ 2024-02-01"]


def test_texts_of_values_name_whole_floats_without_a_fraction() -> None:
    assert texts_of(pl.Series([1.0, 2.5, None, 1e300, -0.0])).to_list() == ["1", "2.5", None, "1e+300", "0"]
