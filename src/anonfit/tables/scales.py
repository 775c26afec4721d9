# SPDX-License-Identifier: Apache-2.0
"""The scales of ordered values: numbers, dates and times as integers or floats, and cuts between them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import DataError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Axis", "Cut", "Scale", "cut_text", "on_axis", "parse_cut", "thresholds"]

Axis: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
Cut: TypeAlias = int | float | str
"""A cut as it is stored: a number, or the ISO text of a date or time."""

EPOCH = date(1970, 1, 1)
LARGEST = sys.float_info.max


class Scale(StrEnum):
    """What the values of an ordered column are."""

    NUMBER = "number"
    DATE = "date"
    TIME = "time"


def scale_of(dtype: pl.DataType) -> Scale | None:
    """The scale of a column's type; None if its values have no such order."""
    import polars as pl

    if dtype.is_numeric():
        return Scale.NUMBER
    if dtype == pl.Date:
        return Scale.DATE
    if dtype == pl.Datetime:
        return Scale.TIME
    return None


def on_axis(values: pl.Series) -> Axis:
    """Non-missing values as an array that orders them exactly: integers wherever they can be, else floats.

    Decimals are counted in units of their last digit, dates in days, times in microseconds (of UTC where they have a
    zone).
    """
    import polars as pl

    dtype = values.dtype
    try:
        if isinstance(dtype, pl.Decimal):
            units: NDArray[np.int64] = (values * 10 ** (dtype.scale or 0)).cast(pl.Int64).to_numpy()
            if dtype.scale and np.abs(units).max(initial=0) >= 2**53:
                raise DataError(f"column '{values.name}': decimals of more than 15 digits cannot be cut; round them.")
            return units
        if dtype.is_integer() or dtype == pl.Date:
            return values.to_physical().cast(pl.Int64).to_numpy()
    except pl.exceptions.PolarsError:
        raise DataError(
            f"column '{values.name}': some numbers need more than 63 bits; divide them or make the column nominal."
        ) from None
    if isinstance(dtype, pl.Datetime):
        return values.dt.epoch("us").to_numpy()
    found: NDArray[np.float64] = values.cast(pl.Float64).to_numpy()
    if not np.isfinite(found).all():
        raise DataError(f"column '{values.name}': some numbers are infinite; make them missing, or numbers.")
    return found + 0.0  # so that -0.0 and 0.0 are one value


def _decimal(cut: Cut) -> Decimal:
    return Decimal(repr(cut) if isinstance(cut, float) else cut)


def _whole(number: Decimal, rounding: str) -> int:
    """A whole number of 64 bits: beyond them there are no values to be compared with."""
    found = number.to_integral_value(rounding=rounding)
    return int(min(max(found, Decimal(-(2**63))), Decimal(2**63 - 1)))


def _microseconds(cut: str) -> int:
    moment = datetime.fromisoformat(cut).replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def thresholds(cuts: Sequence[Cut], dtype: pl.DataType, *, rounding: str = ROUND_CEILING) -> Axis:
    """Cuts as numbers on the axis of a column type.

    A value lies at or above a cut if its number is at or above the cut's; rounded down instead (ROUND_FLOOR), it lies
    above the cut if its number is.
    """
    import polars as pl

    if isinstance(dtype, pl.Decimal):
        unit = Decimal(10) ** (dtype.scale or 0)
        return np.array([_whole(_decimal(cut) * unit, rounding) for cut in cuts], dtype=np.int64)
    if dtype.is_integer():
        return np.array([_whole(_decimal(cut), rounding) for cut in cuts], dtype=np.int64)
    if dtype == pl.Date:
        days = Decimal(24 * 3600 * 10**6)
        return np.array([_whole(_microseconds(str(cut)) / days, rounding) for cut in cuts], dtype=np.int64)
    if isinstance(dtype, pl.Datetime):
        return np.array([_microseconds(str(cut)) for cut in cuts], dtype=np.int64)
    return np.array([float(cut) for cut in cuts], dtype=np.float64)


def cut_text(cut: Cut) -> str:
    """A cut as labels show it: whole numbers without a fraction."""
    if isinstance(cut, float) and cut.is_integer() and abs(cut) < 1e15:
        return str(int(cut))
    return cut if isinstance(cut, str) else repr(cut)


def parse_cut(value: object, scale: Scale) -> Cut:
    """A declared or stored value as a cut: checks that it is of the scale."""
    if scale == Scale.NUMBER:
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            raise ValueError(f"{value!r} is not a number")
        return value
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if not isinstance(value, str | datetime):
        raise ValueError(f"{value!r} is not a date")
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    if found.tzinfo is not None:
        found = found.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, str) and len(value) <= 10:
        return found.date().isoformat()
    return found.isoformat()


def on_axis_text(number: Any, dtype: pl.DataType) -> Cut:
    """A number of an axis back as a cut."""
    import polars as pl

    if isinstance(dtype, pl.Decimal):
        exact = Decimal(int(number)).scaleb(-(dtype.scale or 0))
        return int(exact) if exact == exact.to_integral_value() else float(exact)
    if dtype.is_integer():
        return int(number)
    if dtype == pl.Date:
        return (EPOCH + timedelta(days=int(number))).isoformat()
    if isinstance(dtype, pl.Datetime):
        return (datetime(1970, 1, 1) + timedelta(microseconds=int(number))).isoformat()
    return float(number)
