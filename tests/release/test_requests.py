# SPDX-License-Identifier: Apache-2.0
"""Tables at the edge: each is released, or refused in a sentence that says why."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from releases import made, said, smallest

from anonfit.api import anonymize
from anonfit.errors import AnonfitError, DataError, Infeasible
from anonfit.tables.taxonomy import Taxonomy

# --- small and odd tables ---------------------------------------------------------------------------------------


def test_a_table_of_one_row() -> None:
    assert said(made({"age": [37]}, k=1), "age") == {"*": 1}
    with pytest.raises(Infeasible, match=r"about 1 person.*fewer than k = 2"):
        made({"age": [37]}, k=2)


@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_tables_of_k_rows_and_of_one_less(k: int) -> None:
    assert said(made({"age": list(range(k))}, k=k), "age") == {"*": k}
    with pytest.raises(Infeasible, match=f"about {k - 1} person"):
        made({"age": list(range(k - 1))}, k=k)
    assert len(said(made({"age": list(range(2 * k))}, k=k), "age")) == 2


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(DataError, match="no rows"):
        made({"age": pl.Series([], dtype=pl.Int64)}, k=1)


@pytest.mark.parametrize(
    "value", [7, 1.5, "x", True, date(2024, 1, 1), datetime(2024, 1, 1, 12), Decimal("1.50"), None]
)
def test_constant_columns_say_nothing(value: Any) -> None:
    release = made({"same": [value] * 6, "age": [1, 2, 3, 4, 5, 6]})
    assert set(said(release, "same")) == {"*"}
    assert len(said(release, "age")) == 2


@pytest.mark.parametrize(
    "dtype", [pl.Int64, pl.Float64, pl.Date, pl.Datetime("us"), pl.String, pl.Boolean, pl.Null, pl.Decimal(9, 2)]
)
def test_a_table_of_missing_values_only(dtype: Any) -> None:
    frame = pl.DataFrame({"nothing": pl.Series([None] * 4, dtype=dtype), "also": pl.Series([None] * 4, dtype=dtype)})
    for values in ("labels", "bounds", "representative"):
        release = made(frame, values=values)
        assert len(release.data) == 4
    assert set(said(made(frame), "nothing")) == {"*"}


def test_missing_policy_drop_may_leave_nothing() -> None:
    with pytest.raises(AnonfitError):
        made({"age": pl.Series([None, None], dtype=pl.Int64)}, k=1, missing_policy="drop")
    with pytest.raises(DataError, match="missing values in 'age'"):
        made({"age": [1, None]}, k=1, missing_policy="error")


@pytest.mark.parametrize(
    "values", [[None, None, 5, 5], [None, None, 1.5, 1.5], [None, None, date(2024, 1, 1), date(2024, 1, 1)]]
)
def test_missing_and_one_value_are_two_groups(values: list[Any]) -> None:
    assert said(made({"x": values}), "x") == {"missing": 2, "not missing": 2}


def test_missing_too_rare_to_stand_alone_is_joined() -> None:
    assert said(made({"x": [None, 1, 1, 9, 9]}), "x") == {"missing or < 5": 3, "≥ 5": 2}
    taxonomy = Taxonomy.flat(["a", "b"])
    assert said(made({"x": [None, "a", "a", "b", "b"]}, taxonomies={"x": taxonomy}), "x") == {"missing or a": 3, "b": 2}


# --- wide and large tables --------------------------------------------------------------------------------------


def test_twenty_five_quasi_identifiers() -> None:
    rng = np.random.default_rng(1)
    release = made({f"q{index}": rng.integers(0, 3 + index, 400) for index in range(25)}, k=5)
    assert len(release.data) == 400
    assert smallest(release) >= 5
    assert len(release.data.columns) == 25


def test_a_column_of_a_million_different_values() -> None:
    values = np.random.default_rng(1).permutation(1_000_000)
    release = anonymize(
        pl.DataFrame({"x": values, "y": values % 7}), quasi_identifiers=["x"], k=1000, insensitive=["y"]
    )
    assert len(release.data) == 1_000_000
    assert smallest(release) >= 1000


def test_a_million_different_names_are_other() -> None:
    frame = pl.DataFrame({"name": [f"n{number}" for number in range(200_000)] + ["Ann"] * 5, "y": 0})
    release = anonymize(frame, quasi_identifiers=["name"], k=5, insensitive=["y"])
    assert said(release, "name") == {"other": 200_000, "Ann": 5}


@pytest.mark.parametrize("split", ["subset", "binary", "multiway"])
def test_a_flat_column_of_forty_values(split: str) -> None:
    rng = np.random.default_rng(2)
    names = np.array([f"v{number:02}" for number in range(40)])
    frame = pl.DataFrame({"job": names[rng.integers(0, 40, 2000)]})
    release = made(frame, k=10, splits={"job": split})
    assert smallest(release) >= 10
    assert len(said(release, "job")) == 40
    rare = made(frame.head(60), k=10, splits={"job": split})
    assert smallest(rare) >= 10


# --- numbers at the ends ----------------------------------------------------------------------------------------


def test_whole_numbers_of_sixty_three_bits() -> None:
    release = made({"x": [2**62 + step for step in range(8)]})
    assert len(said(release, "x")) == 4
    assert len(said(made({"x": [-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1]}), "x")) == 2
    with pytest.raises(DataError, match=r"column 'x'.*63 bits"):
        made({"x": pl.Series([2**63, 2**63 + 1], dtype=pl.UInt64)})


def test_bounds_of_long_whole_numbers() -> None:
    found = made({"x": [2**60 + step for step in range(8)]}, values="bounds").data
    assert found["x_upper"].to_list()[0] == 2**60 + 2


def test_decimals_of_many_digits_are_refused() -> None:
    values = [Decimal("123456789012.345671"), Decimal("123456789012.345678")]
    with pytest.raises(DataError, match="column 'x'.*15 digits"):
        made({"x": values})
    assert len(said(made({"x": [Decimal("12345678.91"), Decimal("12345678.92")]}, k=1), "x")) == 2


def test_numbers_near_the_ends_of_floats_are_parted() -> None:
    assert len(said(made({"x": [-1.7e308, -1.6e308, 1.6e308, 1.7e308]}), "x")) == 2


def test_numbers_near_zero_are_parted() -> None:
    assert said(made({"x": [0.0, -0.0, 5e-324, 5e-324]}), "x") == {"< 5e-324": 2, "≥ 5e-324": 2}


def test_infinite_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="column 'x': some numbers are infinite"):
        made({"x": [1.0, float("inf")]})


def test_the_last_moment_there_is_marks_open_ends() -> None:
    end = datetime(9999, 12, 31, 23, 59, 59)
    assert len(said(made({"until": [datetime(2024, 1, 1), datetime(2024, 1, 2), end, end]}), "until")) == 2


def test_dates_beyond_the_calendar_are_refused() -> None:
    days = pl.Series([3_000_000, 3_000_001, 4_000_000, 4_000_001], dtype=pl.Int32).cast(pl.Date)
    with pytest.raises(DataError, match="column 'x'"):
        made({"x": days})


# --- dates as texts ---------------------------------------------------------------------------------------------

DAYS = ["05.01.2023", "05.02.2023", "05.05.2024", "05.06.2024"]


@pytest.mark.parametrize("words", [{}, {"regions": "observed", "consent": True}, {"values": "bounds"}])
def test_dates_written_otherwise(words: dict[str, Any]) -> None:
    release = made({"day": DAYS}, types={"day": "date"}, date_formats={"day": "%d.%m.%Y"}, **words)
    assert release.data.n_unique() == 2
    assert release.extend(pl.DataFrame({"day": DAYS})).data.equals(release.data)


def test_times_with_a_zone() -> None:
    moments = [
        datetime(2023, 1, 5, tzinfo=UTC),
        datetime(2023, 2, 5, tzinfo=UTC),
        datetime(2024, 5, 5, tzinfo=UTC),
        datetime(2024, 6, 5, tzinfo=UTC),
    ]
    assert said(made({"at": moments}), "at") == {"< 2024-01-01T00:00:00": 2, "≥ 2024-01-01T00:00:00": 2}
    berlin = pl.DataFrame({"at": pl.Series(moments).dt.convert_time_zone("Europe/Berlin")})
    assert said(made(berlin), "at") == {"< 2024-01-01T00:00:00": 2, "≥ 2024-01-01T00:00:00": 2}


def test_texts_of_times_with_a_zone_are_read_or_refused() -> None:
    texts = ["2023-01-05T00:00:00Z", "2023-02-05T00:00:00Z", "2024-05-05T00:00:00Z", "2024-06-05T00:00:00Z"]
    try:
        release = made({"at": texts}, types={"at": "date"})
    except DataError as error:
        assert "column 'at': 4 values are not dates" in str(error)  # noqa: PT017 - either way is right
    else:
        assert len(said(release, "at")) == 2


# --- taxonomies over numbers and dates --------------------------------------------------------------------------


def test_a_taxonomy_over_numbers_and_dates() -> None:
    ages = Taxonomy.from_paths([("< 20", "young", "*"), ("[20, 40)", "young", "*"), ("≥ 40", "*")])
    release = made({"age": [5, 6, 25, 26, 45, 46]}, taxonomies={"age": ages})
    assert said(release, "age") == {"< 20": 2, "[20, 40)": 2, "≥ 40": 2}
    halves = Taxonomy.flat(["< 2024-02-01", "≥ 2024-02-01"])
    days = [date(2024, 1, 1), date(2024, 1, 2), date(2024, 3, 1), date(2024, 3, 2)]
    assert len(said(made({"day": days}, taxonomies={"day": halves}), "day")) == 2


def test_a_taxonomy_over_times() -> None:
    halves = Taxonomy.flat(["< 2024-02-01", "≥ 2024-02-01"])
    moments = [datetime(2024, 1, 1, 5), datetime(2024, 1, 2), datetime(2024, 3, 1), datetime(2024, 3, 2)]
    assert len(said(made({"at": moments}, taxonomies={"at": halves}), "at")) == 2


def test_texts_that_look_like_labels() -> None:
    release = made({"band": ["[20, 25)", "[20, 25)", "≥ 25", "≥ 25", "missing", "missing", "*", "*"]})
    assert sorted(said(release, "band")) == ['"*"', '"missing"', "[20, 25)", "≥ 25"]
