# SPDX-License-Identifier: Apache-2.0
"""A recoding sends every row, seen or not, to its region: the rows it was made from go where they were, new ones where they must."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonfit.algorithms.demands import Demands
from anonfit.algorithms.mondrian import anonymize
from anonfit.algorithms.result import Anonymized
from anonfit.engines.memory.engine import MemoryEngine
from anonfit.errors import DataError, RecodingError, RequestError
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Column, ColumnType, NominalSplit, Role, Schema
from anonfit.tables.taxonomy import Taxonomy
from strategies import tries

SECRET = "SECRET4711"
COUNTRIES = Taxonomy.from_paths(
    [("FR", "EU", "*"), ("DE", "EU", "*"), ("US", "America", "*"), ("BR", "America", "*"), ("JP", "Asia", "*")]
)


def column(name: str, **declared: Any) -> Column:
    return Column(name, Role.QUASI_IDENTIFIER, **declared)


def made(frame: pl.DataFrame, *columns: Column, k: int = 2, points: CutPoints = CutPoints.SIMPLEST) -> Anonymized:
    return anonymize(MemoryEngine(frame), Schema(columns), demands=Demands(k), cut_points=points, threads=1)


def applied(recoding: Recoding, table: dict[str, Any], **words: Any) -> dict[str, list[Any]]:
    return recoding.apply(pl.DataFrame(table), **words).to_dict(as_series=False)


@pytest.fixture
def ages() -> Recoding:
    return made(pl.DataFrame({"age": [20, 20, 40, 40, 60, 60]}), column("age")).recoding


@pytest.fixture
def countries() -> Recoding:
    frame = pl.DataFrame({"country": ["FR", "FR", "DE", "DE", "US", "US", "BR"], "age": [1, 2, 1, 2, 1, 2, 3]})
    return made(frame, column("country", taxonomy=COUNTRIES), column("age")).recoding


# --- the rows it was made from ----------------------------------------------------------------------------------

FRAMES = st.fixed_dictionaries(
    {
        "number": st.none() | st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1.5]),
        "whole": st.integers(-50, 50),
        "big": st.integers(-(2**62), 2**62),
        "day": st.none() | st.dates(date(1900, 1, 1), date(2100, 1, 1)),
        "moment": st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
        "money": st.decimals(-1000, 1000, places=2),
        "flat": st.none() | st.sampled_from(["a", "b, c", "d\n", "other", "*", "missing"]),
        "tree": st.none() | st.sampled_from(COUNTRIES.leaves),
        "stage": st.none() | st.sampled_from(["low", "mid", "high"]),
        "truth": st.none() | st.booleans(),
    }
)
TYPES = {
    "number": pl.Float64,
    "whole": pl.Int64,
    "big": pl.Int64,
    "day": pl.Date,
    "moment": pl.Datetime("us"),
    "money": pl.Decimal(12, 2),
    "flat": pl.String,
    "tree": pl.String,
    "stage": pl.String,
    "truth": pl.Boolean,
}
COLUMNS = [
    *(column(name) for name in ("number", "whole", "big", "day", "moment", "money", "flat", "truth")),
    column("tree", taxonomy=COUNTRIES),
    column("stage", type=ColumnType.ORDINAL, order=("low", "never", "mid", "high")),
]


@given(
    st.lists(FRAMES, min_size=4, max_size=25),
    st.integers(1, 4),
    st.sampled_from(CutPoints),
    st.sampled_from(NominalSplit),
    st.data(),
)
@tries(80)
def test_training_rows_go_where_they_were(
    rows: list[Any], k: int, points: CutPoints, split: NominalSplit, data: st.DataObject
) -> None:
    frame = pl.DataFrame(rows, schema=TYPES)
    chosen = data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4, unique_by=lambda one: one.name))
    columns = [
        column("tree", taxonomy=COUNTRIES, split=split) if one.name == "tree" and split != NominalSplit.SUBSET else one
        for one in chosen
    ]
    result = made(frame, *columns, k=k, points=points)
    expected = np.empty(len(frame), np.int32)
    expected[result.numbers] = result.nodes
    back = Recoding.from_json(result.recoding.to_json())
    for recoding in (result.recoding, back):
        assert recoding.nodes(recoding.cells(frame), threads=1).tolist() == expected.tolist()
    labels = back.apply(frame)
    of_region: dict[int, set[tuple[Any, ...]]] = {}
    for node, row in zip(expected.tolist(), labels.select(one.name for one in columns).rows(), strict=True):
        of_region.setdefault(node, set()).add(row)
    assert all(len(said) == 1 for said in of_region.values())
    assert len({next(iter(said)) for said in of_region.values()}) == len(of_region)


# --- new values -------------------------------------------------------------------------------------------------


def test_numbers_beyond_the_ends_go_to_the_end_intervals(ages: Recoding) -> None:
    found = applied(ages, {"age": [-(10**9), 20, 41, 61, 10**9]})["age"]
    assert found[0] == found[1]
    assert found[3] == found[4]
    assert len(set(found)) == 3


def test_numbers_between_the_values_go_to_the_interval_that_holds_them(ages: Recoding) -> None:
    assert applied(ages, {"age": [30.0, 29.999999, 50.0, 49.5]})["age"] == ["[30, 50)", "< 30", "≥ 50", "[30, 50)"]


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([20, 61], dtype=pl.Int8),
        pl.Series([20, 61], dtype=pl.UInt64),
        pl.Series([20.0, 61.0], dtype=pl.Float32),
        pl.Series([Decimal("20.00"), Decimal("61.00")]),
        pl.Series(["20", "61"]),
    ],
    ids=lambda values: str(values.dtype),
)
def test_numbers_of_any_type_find_their_interval(ages: Recoding, values: pl.Series) -> None:
    assert applied(ages, {"age": values})["age"] == ["< 30", "≥ 50"]


def test_dates_find_their_interval_as_dates_times_or_texts() -> None:
    frame = pl.DataFrame({"day": [date(2023, 1, 5), date(2023, 2, 5), date(2024, 5, 5), date(2024, 6, 5)]})
    recoding = made(frame, column("day")).recoding
    for values in (
        [date(2023, 12, 31), date(2024, 1, 1)],
        [datetime(2023, 12, 31, 23, 59), datetime(2024, 1, 1)],
        ["2023-12-31", "2024-01-01"],
    ):
        assert applied(recoding, {"day": values})["day"] == ["< 2024-01-01", "≥ 2024-01-01"]


def test_an_unseen_category_is_an_error_that_does_not_name_it(countries: Recoding) -> None:
    with pytest.raises(RecodingError, match="column 'country': 2 row.*not know") as caught:
        applied(countries, {"country": ["FR", SECRET, SECRET], "age": [1, 1, 1]})
    assert SECRET not in str(caught.value)


def test_an_unseen_category_goes_to_its_ancestor_on_request(countries: Recoding) -> None:
    found = applied(countries, {"country": ["FR", SECRET], "age": [1, 1]}, unseen="ancestor")
    assert found["country"] == ["EU", "*"]
    # All that was decided before the country was asked for is kept.
    frame = pl.DataFrame({"age": [1, 1, 1, 1, 9, 9, 9, 9], "country": ["FR", "FR", "DE", "DE"] * 2})
    first = made(frame, column("age"), column("country", taxonomy=COUNTRIES)).recoding
    assert applied(first, {"age": [1], "country": [SECRET]}, unseen="ancestor") == {"age": ["< 5"], "country": ["*"]}


def test_an_unseen_category_is_suppressed_on_request(countries: Recoding) -> None:
    table = {"country": ["FR", SECRET], "age": [1, 1]}
    found = applied(countries, table, unseen="suppress")
    assert (found["country"][1], found["age"][1]) == ("*", "*")
    assert found["country"][0] == "EU"
    bounds = applied(countries, table, unseen="suppress", values="bounds")
    assert (bounds["country"][1], bounds["age_lower"][1], bounds["age_upper"][1]) == ("*", None, None)


def test_a_category_that_was_not_there_but_is_in_the_taxonomy_has_its_region(countries: Recoding) -> None:
    assert applied(countries, {"country": ["JP"], "age": [1]}) == {"country": ["JP"], "age": ["*"]}


def test_values_too_rare_to_be_named_and_unseen_ones_are_alike() -> None:
    recoding = made(pl.DataFrame({"job": ["a", "a", "b", "b", "c", "d"]}), column("job")).recoding
    found = applied(recoding, {"job": ["c", SECRET, "other", "a"]})["job"]
    assert found[0] == found[1] == found[2] == "other"
    assert found[3] == "a"


def test_a_missing_value_where_none_was_is_unseen(ages: Recoding) -> None:
    with pytest.raises(RecodingError, match="column 'age': 1 value.*missing"):
        applied(ages, {"age": [None, 20]})
    assert applied(ages, {"age": [None, 20]}, unseen="suppress")["age"] == ["*", "< 30"]
    assert applied(ages, {"age": [None, 20]}, unseen="ancestor")["age"] == ["*", "< 30"]
    named = made(pl.DataFrame({"job": ["a", "a", "b"]}), column("job")).recoding
    with pytest.raises(RecodingError, match="missing"):
        applied(named, {"job": [None, "a"]})


def test_missing_and_nan_are_one() -> None:
    recoding = made(pl.DataFrame({"x": [None, None, 1.0, 1.0, 2.0, 2.0]}), column("x")).recoding
    assert set(applied(recoding, {"x": [float("nan"), None]})["x"]) == {"missing"}


def test_texts_that_are_no_numbers_are_refused_without_their_value(ages: Recoding) -> None:
    with pytest.raises(DataError, match="column 'age'.*not numbers") as caught:
        applied(ages, {"age": ["20", SECRET]})
    assert SECRET not in str(caught.value)


def test_a_column_of_missing_values_without_a_type_can_be_recoded() -> None:
    frame = pl.DataFrame({"country": ["FR", "FR", None, None]})
    recoding = made(frame, column("country", taxonomy=COUNTRIES)).recoding
    assert applied(recoding, {"country": [None, None]})["country"] == ["missing", "missing"]


def test_times_of_day_are_recoded_as_they_were_coded() -> None:
    frame = pl.DataFrame({"at": [time(1), time(1), time(2), time(2)]})
    assert len(set(made(frame, column("at")).recoding.apply(frame)["at"].to_list())) == 2


def test_dates_written_otherwise_are_recoded_as_they_were_coded() -> None:
    frame = pl.DataFrame({"day": ["01/05/2023", "02/05/2023", "05/05/2023", "06/05/2023"]})
    result = made(frame, column("day", type=ColumnType.DATE, date_format="%m/%d/%Y"))
    expected = np.empty(len(frame), np.int32)
    expected[result.numbers] = result.nodes
    recoding = Recoding.from_json(result.recoding.to_json())
    assert recoding.nodes(recoding.cells(frame)).tolist() == expected.tolist()


# --- frames -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index",
    [[5, 5, 1], ["x", "y", "x"], pd.MultiIndex.from_tuples([(1, 2), (1, 2), (0, 0)])],
    ids=["duplicate", "text", "several"],
)
def test_pandas_frames_keep_index_order_and_other_columns(ages: Recoding, index: Any) -> None:
    frame = pd.DataFrame({"note": ["p", "q", "r"], "age": [61, 20, 41], "n": [1.5, 2.5, None]}, index=index)
    before = frame.copy(deep=True)
    found = ages.apply(frame)
    assert found["age"].tolist() == ["≥ 50", "< 30", "[30, 50)"]
    assert list(found.columns) == ["note", "age", "n"]
    pd.testing.assert_index_equal(found.index, frame.index)
    pd.testing.assert_frame_equal(found[["note", "n"]], frame[["note", "n"]])
    pd.testing.assert_frame_equal(frame, before)


def test_arrow_and_lazy_frames(ages: Recoding) -> None:
    frame = pl.DataFrame({"age": [61, 20], "note": ["a", "b"]})
    assert isinstance(ages.apply(frame.to_arrow()), pa.Table)
    assert ages.apply(frame.lazy())["age"].to_list() == ["≥ 50", "< 30"]
    assert frame.equals(pl.DataFrame({"age": [61, 20], "note": ["a", "b"]}))


def test_no_rows_are_no_rows(ages: Recoding) -> None:
    found = ages.apply(pl.DataFrame({"age": pl.Series([], dtype=pl.Int64), "note": pl.Series([], dtype=pl.String)}))
    assert (len(found), found.columns) == (0, ["age", "note"])


def test_a_frame_without_a_quasi_identifier_is_refused(ages: Recoding) -> None:
    with pytest.raises(DataError, match="no column 'age'"):
        applied(ages, {"Age": [1]})


def test_values_that_are_no_way_to_write_are_refused(ages: Recoding) -> None:
    with pytest.raises(RequestError, match="did you mean 'labels'"):
        applied(ages, {"age": [1]}, values="label")


def test_words_for_unseen_values_that_are_not_known_are_refused(ages: Recoding) -> None:
    with pytest.raises(RequestError, match="did you mean 'suppress'"):
        applied(ages, {"age": [1]}, unseen="supress")
