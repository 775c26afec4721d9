# SPDX-License-Identifier: Apache-2.0
"""What is declared of a column is obeyed; what does not fit is refused by column, never by a record's value."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from coding import SECRET, coded, column, decoded

from anonfit.errors import DataError, TaxonomyError
from anonfit.privacy.coding import _positions as sensitive_positions
from anonfit.tables.codebook import column_type, typed
from anonfit.tables.schema import ColumnType, NominalSplit, SplitMode, texts_of
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_builders import dates

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


def test_a_text_that_says_nan_is_no_number() -> None:
    """Rows with missing values are dropped before numbers are parsed, so such a text must be listed as missing."""
    with pytest.raises(DataError, match="2 values are not numbers .first in row 2, 3.; mend them, list them under"):
        coded(pl.Series("age", ["1", "nan", "NaN"]), type=ColumnType.CONTINUOUS)


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
    with pytest.raises(DataError, match=f"column 'x'.*(is|are) not {what}.*row") as caught:
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


def test_texts_under_a_taxonomy_of_dates_need_their_type() -> None:
    """A column of a text file that has a taxonomy is read as texts."""
    months = dates(date(1990, 1, 1), date(1991, 12, 31), levels=["month", "year"])
    days = pl.Series("x", ["1990-03-11", "1991-05-07"])
    advice = 'not in its taxonomy.*the leaves are dates: write type = "date" for it, or mend the data'
    with pytest.raises(TaxonomyError, match=advice) as error:
        coded(days, taxonomy=months)
    assert "1990-03" not in str(error.value)
    with pytest.raises(TaxonomyError, match=advice):
        sensitive_positions(days, ColumnType.NOMINAL, (), months)
    assert decoded(coded(days, taxonomy=months, type=ColumnType.DATE)) == ["1990-03", "1991-05"]
    with pytest.raises(TaxonomyError, match="add them there or mend the data"):
        coded(days, taxonomy=Taxonomy.flat(["1990-03", "unknown"]))


def test_texts_under_a_taxonomy_of_intervals_need_their_type() -> None:
    ages = pl.Series("x", ["26", "44"])
    with pytest.raises(TaxonomyError, match='leaves are intervals: write type = "continuous" for it, or mend the data'):
        coded(ages, taxonomy=Taxonomy.flat(["< 30", "[30, 60)", "≥ 60"]))
    with pytest.raises(TaxonomyError, match="add them there or mend the data"):
        coded(ages, taxonomy=Taxonomy.flat(["26", "27"]))


def test_values_outside_the_taxonomy_are_counted_for_the_column() -> None:
    with pytest.raises(
        TaxonomyError, match="column 'x': 2 of its . distinct value.*not in its taxonomy .first in row 3, 4.; add"
    ):
        coded(pl.Series(list("abcd")), taxonomy=Taxonomy.flat(["a", "b"]))
    with pytest.raises(TaxonomyError, match="7 of its 7 distinct value"):
        coded(pl.Series(list("abcdefg")), taxonomy=Taxonomy.flat(["z"]))
    with pytest.raises(TaxonomyError, match="column 'x': 1 of its 2 distinct"):
        coded(pl.Series([1, 50]), taxonomy=Taxonomy.flat(["< 20"]))


def test_inner_names_are_no_values() -> None:
    taxonomy = Taxonomy.from_paths([("FR", "Europe", "*"), ("US", "*")])
    with pytest.raises(TaxonomyError, match="1 of its 2 distinct value"):
        coded(pl.Series(["FR", "Europe"]), taxonomy=taxonomy)


def test_values_outside_the_order_or_the_names_are_counted_for_the_column() -> None:
    with pytest.raises(
        DataError, match="column 'x': 1 of its . distinct value.*not in its order .first in row 2.; add"
    ):
        coded(pl.Series(["low", "huge"]), type=ColumnType.ORDINAL, order=("low", "high"))
    with pytest.raises(
        DataError, match="column 'x': 1 of its . distinct value.*not in its domain .first in row 2.; add"
    ):
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


@pytest.mark.parametrize("split", [None, NominalSplit.BINARY, NominalSplit.MULTIWAY])
def test_a_taxonomy_over_numbers_and_dates(split: NominalSplit | None) -> None:
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
