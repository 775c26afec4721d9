# SPDX-License-Identifier: Apache-2.0
"""Raw columns of two types are equal if their values are, and only then: nothing is rounded to be equal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anonfit.auditing.api import audit
from anonfit.auditing.hashing import aligned, aligned_texts
from anonfit.auditing.result import Audit

LONG = 2**53
NOON = datetime(2024, 1, 1, 12)
TICKS = 1_704_110_400_000_000_000  # NOON in nanoseconds


def text(*values: str | None) -> pl.Series:
    return pl.Series(values, dtype=pl.String)


def decimal(*values: str | None, scale: int = 2) -> pl.Series:
    kind = pl.Decimal(30, scale)
    return pl.Series([None if value is None else Decimal(value) for value in values], dtype=kind)


def typed(kind: Any, *values: Any) -> pl.Series:
    return pl.Series(values, dtype=kind)


def equal(
    one: pl.Series, other: pl.Series, align: Callable[[pl.Series, pl.Series], tuple[pl.Series, pl.Series]] = aligned
) -> bool:
    left, right = align(one, other)
    assert left.dtype == right.dtype
    return left.hash().equals(right.hash())


SAME = [
    (typed(pl.Int64, 1, 2, None), typed(pl.Float64, 1.0, 2.0, None)),
    (typed(pl.Int8, 1, 0), typed(pl.Boolean, True, False)),
    (typed(pl.Float64, 1.0, 0.0), typed(pl.Boolean, True, False)),
    (typed(pl.Int64, LONG + 1), typed(pl.UInt64, LONG + 1)),
    (typed(pl.UInt64, 2**64 - 1), typed(pl.Int128, 2**64 - 1)),
    (typed(pl.Int64, 2**60, None), typed(pl.Float64, 2.0**60, None)),
    (typed(pl.Float32, 0.5), typed(pl.Float64, 0.5)),
    (decimal("1.50", None), decimal("1.5", None, scale=5)),
    (decimal("1.50", None), typed(pl.Float64, 1.5, None)),
    (decimal("1234567890123.45"), typed(pl.Float64, 1234567890123.45)),
    (decimal("3.00"), typed(pl.Int64, 3)),
    (decimal("10000000000000000.01"), text("10000000000000000.010")),
    (decimal("0.01"), text("1e-02")),
    (text("0.1", "2.5"), typed(pl.Float32, 0.1, 2.5)),
    (text("1e-05", "-0.0"), typed(pl.Float64, 1e-5, 0.0)),
    (text("3.0", None), typed(pl.Int64, 3, None)),
    (text(f"{LONG + 1}.0"), typed(pl.Int64, LONG + 1)),
    (text(f"{2**64 - 1}"), typed(pl.UInt64, 2**64 - 1)),
    (text("true", "FALSE"), typed(pl.Boolean, True, False)),
    (text("2024-01-01"), typed(pl.Date, date(2024, 1, 1))),
    (text("01:02:03.000004000"), typed(pl.Time, time(1, 2, 3, 4))),
    (text("2024-01-01T12:00:00.123456789"), typed(pl.Datetime("ns"), TICKS + 123456789)),
    (text("2024-01-01 12:00:00.123456000"), typed(pl.Datetime("us"), TICKS // 1000 + 123456)),
    (typed(pl.Date, date(2024, 1, 1)), typed(pl.Datetime("ms"), datetime(2024, 1, 1))),
    (typed(pl.Datetime("us"), NOON), typed(pl.Datetime("ns"), NOON)),
    (text(None, None), typed(pl.Int64, None, None)),
    (text(), decimal()),
    (typed(pl.Int64), typed(pl.Float64)),
    (typed(pl.Float64, None), decimal(None)),
]
OTHER = [
    (typed(pl.Int64, LONG + 1), typed(pl.Float64, float(LONG))),
    (typed(pl.Int64, 1), typed(pl.Float64, 1.5)),
    (typed(pl.Int64, LONG + 1, 3), typed(pl.Float64, LONG + 2.0, 3.5)),
    (typed(pl.Int64, None), typed(pl.Float64, 0.0)),
    (typed(pl.Float64, 0.1), typed(pl.Float32, 0.1)),
    (decimal("10000000000000000.01"), decimal("10000000000000000.02", scale=4)),
    (decimal("10000000000000000.01"), typed(pl.Float64, 1e16)),
    (decimal("10000000000000000.01"), text("10000000000000000.02")),
    (decimal("1.00"), text("1.005")),
    (decimal("1.00"), typed(pl.Float64, 1.005)),
    (decimal("1.50"), decimal("1.505", scale=3)),
    (text("0.10000000001"), typed(pl.Float32, 0.1)),
    (text(f"{LONG}.0"), typed(pl.Int64, LONG + 1)),
    (text(f"{LONG + 1}"), typed(pl.Float64, float(LONG))),
    (text(f"{2**64 - 2}"), typed(pl.UInt64, 2**64 - 1)),
    (text("a"), typed(pl.Int64, 1)),
    (text("1"), text("1.0")),
    (text("2024-01-01T12:00:00.0000005"), typed(pl.Datetime("us"), NOON)),
    (typed(pl.Datetime("us"), NOON), typed(pl.Datetime("ns"), TICKS + 1)),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_values_of_two_types_are_equal(one: pl.Series, other: pl.Series) -> None:
    assert equal(one, other)
    assert equal(other, one)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_values_that_rounding_would_make_equal_are_not(one: pl.Series, other: pl.Series) -> None:
    assert not equal(one, other)
    assert not equal(other, one)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1.50", "1.5", True),
        ("1", "1.0", True),
        ("-0.0", "0", True),
        ("1e5", "100000", True),
        ("1e-05", "0.00001", True),
        ("0.10000000000000001", "0.1", True),
        ("1.5000000000000000000000", "1.5", True),
        ("007", "7", False),
        ("a", "b", False),
        ("10000000000000000.01", "10000000000000000.02", False),
        (f"{LONG + 1}", f"{LONG}.0", False),
    ],
)
def test_numbers_of_two_text_files(one: str, other: str, same: bool) -> None:
    assert equal(text(one, "2.5", None), text(other, "2.5", None), aligned_texts) is same


def released_rows(found: Audit) -> bool | None:
    return next(finding.met for finding in found.findings if finding.name == "released rows")


@pytest.mark.parametrize(("of_data", "of_source", "same"), [("csv", "csv", True), ("parquet", "parquet", False)])
def test_texts_are_compared_as_numbers_only_where_a_file_has_no_types(
    tmp_path: Path, of_data: str, of_source: str, same: bool
) -> None:
    data = pl.DataFrame({"age": ["< 30"] * 2, "code": ["1.0", "2.0"]})
    source = pl.DataFrame({"age": [20, 21], "code": ["1", "2"]})
    paths = tmp_path / f"data.{of_data}", tmp_path / f"source.{of_source}"
    for frame, path in zip((data, source), paths, strict=True):
        frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)
    columns = {"age": {"type": "continuous"}}
    found = audit(paths[0], quasi_identifiers=["age"], columns=columns, source=paths[1])
    assert released_rows(found) is same
    if not same:
        assert released_rows(audit(data, quasi_identifiers=["age"], columns=columns, source=source)) is same
