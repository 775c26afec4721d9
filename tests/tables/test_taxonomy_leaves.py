# SPDX-License-Identifier: Apache-2.0
"""Every value goes to the one leaf that names it or holds it."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime, time
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonfit.errors import DataError, TaxonomyError
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_leaves import leaf_positions

AGES = Taxonomy.flat(["< 20", "[20, 25)", "[25, 65)", "[65, 90]"])


def places(leaves: list[str], values: list[Any], dtype: Any = None) -> list[int]:
    return list(leaf_positions(Taxonomy.flat(leaves), pl.Series(values, dtype=dtype)).tolist())


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["b", "a", "z", "37"])])
def test_text_is_found_by_name(dtype: Any) -> None:
    found = leaf_positions(Taxonomy.flat(["a", "b", "37"]), pl.Series(["b", "a", "z", "37"], dtype=dtype))
    assert found.tolist() == [1, 0, -1, 2]
    assert found.dtype == np.int32


def test_text_is_not_found_by_an_inner_name() -> None:
    taxonomy = Taxonomy.from_paths([("FR", "Europe", "*"), ("US", "*")])
    assert leaf_positions(taxonomy, pl.Series(["US", "Europe", "*"])).tolist() == [1, -1, -1]


def test_text_is_not_read_as_a_number() -> None:
    assert places(["37", "[40, 50)"], ["37.0", "45"]) == [-1, -1]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.Int64, pl.UInt64, pl.Int128, pl.Float32, pl.Float64])
def test_numbers_are_found_by_value(dtype: Any) -> None:
    assert places(["5", "37.0", "1e2", "007"], [37, 100, 7, 5, 6], dtype) == [1, 2, 3, 0, -1]


@pytest.mark.parametrize("dtype", [pl.Int16, pl.UInt8, pl.Int32, pl.Float64, pl.Decimal(10, 2)])
def test_numbers_are_found_in_intervals(dtype: Any) -> None:
    values = pl.Series([0, 19, 20, 24, 25, 65, 90, 91]).cast(dtype)
    assert leaf_positions(AGES, values).tolist() == [0, 0, 1, 1, 2, 3, 3, -1]


def test_fractions_fall_between_the_ends() -> None:
    below = float(np.nextafter(20.0, 0.0))
    assert leaf_positions(AGES, pl.Series([below, 24.999, 90.0, 90.1])).tolist() == [0, 1, 3, -1]
    values = pl.Series(["19.99", "24.99", "90.00", "90.01"]).str.to_decimal(scale=2)
    assert leaf_positions(AGES, values).tolist() == [0, 1, 3, -1]


def test_infinite_numbers_are_in_open_ends_and_nan_is_nowhere() -> None:
    assert places(["< 0", "≥ 0"], [float("-inf"), float("inf"), float("nan")]) == [0, 1, -1]


def test_whole_numbers_obey_ends_that_are_not_whole() -> None:
    assert places(["[0.5, 2.5)", "[2.5, 4.5]", "9.5"], [0, 1, 2, 3, 4, 5, 9]) == [-1, 0, 0, 1, 1, -1, -1]


def test_numbers_beyond_double_precision_are_told_apart() -> None:
    big = 2**53
    assert places([str(big), str(big + 1)], [big, big + 1], pl.Int64) == [0, 1]
    assert places([str(2**64 - 1), f"< {2**64 - 1}"], [2**64 - 1, 0], pl.UInt64) == [0, 1]
    assert places([str(2**100), f"≥ {2**101}"], [2**100, 2**100 + 1, 2**102], pl.Int128) == [0, -1, 1]
    assert places(["-1e300", "[-5, 1e300]"], [-5, 127, -6], pl.Int8) == [1, 1, -1]
    wide = [Decimal("12345678901234567890.12"), Decimal("12345678901234567890.13")]
    assert places(["12345678901234567890.12"], wide, pl.Decimal(30, 2)) == [0, -1]


def test_numbers_in_single_precision_match_what_is_written() -> None:
    assert places(["0.1", "[37.1, 40)"], [0.1, 37.1, 40.0], pl.Float32) == [0, 1, -1]
    assert places(["< 1e39", "1e300"], [3e38, float("inf")], pl.Float32) == [0, 1]


@settings(deadline=None)
@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=8, unique=True).map(sorted),
    st.lists(st.one_of(st.integers(-60, 60), st.floats(-60, 60)), min_size=1),
)
def test_containment_agrees_with_plain_comparison(cuts: list[int], values: list[float]) -> None:
    leaves = [f"< {cuts[0]}", *(f"[{a}, {b})" for a, b in pairwise(cuts)), f"≥ {cuts[-1]}"]
    expected = [sum(cut <= value for cut in cuts) for value in values]
    assert places(leaves, [float(value) for value in values]) == expected
    whole = [value for value in values if isinstance(value, int)]
    assert places(leaves, whole, pl.Int16) == [sum(cut <= value for cut in cuts) for value in whole]


def test_booleans_are_found_whatever_the_case() -> None:
    assert places(["True", "false", "other"], [False, True]) == [1, 0]
    assert places(["yes"], [True]) == [-1]
    with pytest.raises(TaxonomyError, match="'True', 'true' overlap"):
        places(["True", "true"], [True])


def test_dates_are_found_in_days_periods_and_intervals() -> None:
    leaves = ["< 2022", "2022", "2023-Q1", "2023-04", "2023-05-01", "[2023-05-02, 2023-06-01)", "≥ 2023-06"]
    values = [
        date(1900, 1, 1),
        date(2021, 12, 31),
        date(2022, 12, 31),
        date(2023, 3, 31),
        date(2023, 4, 30),
        date(2023, 5, 1),
        date(2023, 5, 31),
        date(2024, 2, 29),
    ]
    assert places(leaves, values) == [0, 0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_are_found_in_days_and_instants(unit: Any) -> None:
    leaves = ["2024-03-01", "[2024-03-02, 2024-03-03]", "2024-03-04T12:30", "2024-03-04T12:30:00.5", "9999"]
    values = [
        datetime(2024, 3, 1, 23, 59, 59, 999_000),
        datetime(2024, 3, 3, 23, 59),
        datetime(2024, 3, 4, 12, 30),
        datetime(2024, 3, 4, 12, 30, 0, 500_000),
        datetime(2024, 3, 4, 12, 31),
        datetime(2024, 2, 29, 23, 59),
    ]
    assert places(leaves[:4], values, pl.Datetime(unit)) == [0, 1, 2, 3, -1, -1]


def test_last_year_there_is_is_a_period_too() -> None:
    assert places(["9998", "9999-Q4", "9999-09"], [date(9999, 12, 31), date(9999, 9, 30)]) == [1, 2]


def test_time_zone_does_not_move_a_value_to_another_day() -> None:
    values = pl.Series([datetime(2024, 3, 1, 0, 30)]).dt.replace_time_zone("Europe/Paris")
    assert leaf_positions(Taxonomy.flat(["2024-02", "2024-03"]), values).tolist() == [1]


def test_instant_inside_a_day_holds_no_whole_date() -> None:
    assert places(["2024-03-01T12:00:00", "2024-03-02"], [date(2024, 3, 1), date(2024, 3, 2)]) == [-1, 1]


def test_missing_values_have_no_leaf() -> None:
    assert places(["1", "2"], [None, 2]) == [-1, 1]
    assert leaf_positions(AGES, pl.Series([], dtype=pl.Int64)).tolist() == []


@pytest.mark.parametrize(
    ("leaves", "value", "words"),
    [
        (["[0, 10)", "[5, 20)"], 1, "'\\[0, 10\\)', '\\[5, 20\\)' overlap"),
        (["[0, 100)", "3", "50"], 1, "'\\[0, 100\\)', '3' overlap"),
        (["[0, 5]", "[5, 10)"], 1.0, "overlap"),
        (["37", "37.0"], 1, "overlap"),
        (["2024-03", "2024-Q1"], date(2024, 1, 1), "overlap"),
        (["5", "old", "?"], 1, "leaf 'old', '\\?' names no value"),
        (["5", "nan"], 1.0, "'nan' names no value"),
        (["[1, x)", "< y"], 1, "'\\[1, x\\)', '< y' names no value"),
        (["1_000", "1e9999"], 1, "'1_000', '1e9999' names no value"),
        (["2024-02-30", "2024-13", "2024-01-01T25:00"], date(2024, 1, 1), "'2024-02-30', '2024-13', '2024"),
        (["[9, 3)", "[5, 5)"], 1, "'\\[9, 3\\)', '\\[5, 5\\)' holds no value"),
    ],
)
def test_faulty_leaves_are_named(leaves: list[str], value: Any, words: str) -> None:
    with pytest.raises(TaxonomyError, match=f"taxonomy of column 'age': .*{words}"):
        leaf_positions(Taxonomy.flat(leaves), pl.Series([value]), column="age")


def test_type_that_cannot_have_a_taxonomy_is_an_error() -> None:
    with pytest.raises(DataError, match="column 'at' of type Time"):
        leaf_positions(AGES, pl.Series([time(12)]), column="at")


def test_polars_is_not_loaded_before_it_is_needed() -> None:
    modules = "taxonomy, taxonomy_files, taxonomy_builders, taxonomy_leaves"
    code = f"import sys; from anonfit.tables import {modules}; assert 'polars' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
