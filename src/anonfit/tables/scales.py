# SPDX-License-Identifier: Apache-2.0
"""The scales of ordered values: numbers, dates and times as integers or floats, where a cut is put between two of them,
and numbers in fixed point, whose sums are exact.

Sums of integers do not depend on the order of rows, on threads, or on what was subtracted from what; sums of floats do.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError

Axis: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
Cut: TypeAlias = int | float | str  # a cut as it is stored: a number, or the ISO text of a date or time

EPOCH = date(1970, 1, 1)
START_OF_TIME = datetime(1970, 1, 1)
LARGEST = sys.float_info.max


class Scale(StrEnum):
    """What the values of an ordered column are."""

    NUMBER = "number"
    WHOLE = "whole"
    DATE = "date"
    TIME = "time"

    @property
    def is_number(self) -> bool:
        """Whether values are numbers, not moments."""
        return self in (Scale.NUMBER, Scale.WHOLE)


def scale_of(dtype: pl.DataType) -> Scale | None:
    """The scale of a column's type; None if its values have no such order."""
    if dtype.is_numeric():
        return Scale.NUMBER
    if dtype == pl.Date:
        return Scale.DATE
    if dtype == pl.Datetime:
        return Scale.TIME
    return None


def on_axis(values: pl.Series) -> Axis:
    """Non-missing values as an array that orders them exactly: integers wherever they can be, else floats. Decimals are
    counted in units of their last digit, dates in days, times in microseconds (of UTC where they have a zone).
    """
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
    numbers: NDArray[np.float64] = values.cast(pl.Float64).to_numpy()
    if not np.isfinite(numbers).all():
        raise DataError(f"column '{values.name}': some numbers are infinite; make them missing, or numbers.")
    return numbers + 0.0  # so that -0.0 and 0.0 are one value


def _decimal(cut: Cut) -> Decimal:
    return Decimal(repr(cut) if isinstance(cut, float) else cut)


def _whole(number: Decimal, rounding: str) -> int:
    """A whole number of 64 bits: beyond them there are no values to be compared with."""
    whole = number.to_integral_value(rounding=rounding)
    return int(min(max(whole, Decimal(-(2**63))), Decimal(2**63 - 1)))


def _microseconds(cut: str) -> int:
    return (datetime.fromisoformat(cut).replace(tzinfo=None) - START_OF_TIME) // timedelta(microseconds=1)


def thresholds(cuts: Sequence[Cut], dtype: pl.DataType, *, rounding: str = ROUND_CEILING) -> Axis:
    """Cuts as numbers on the axis of a column type. A value lies at or above a cut if its number is at or above the
    cut's; rounded down instead (ROUND_FLOOR), it lies above the cut if its number is.
    """
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


def _shortest(number: float) -> int | float:
    """A whole number without its fraction."""
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def cut_text(cut: Cut) -> str:
    """A cut as labels show it: whole numbers without a fraction."""
    return cut if isinstance(cut, str) else repr(_shortest(cut) if isinstance(cut, float) else cut)


def parse_cut(value: object, scale: Scale) -> Cut:
    """A declared or stored value as a cut: checks that it is of the scale."""
    if scale.is_number:
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            raise ValueError(f"{value!r} is not a number")
        return value
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    if not isinstance(value, str | datetime):
        raise ValueError(f"{value!r} is not a date")
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, str) and len(value) <= 10:
        return moment.date().isoformat()
    return moment.isoformat()


def on_axis_text(number: Any, dtype: pl.DataType) -> Cut:
    """A number of an axis back as a cut."""
    if isinstance(dtype, pl.Decimal):
        exact = Decimal(int(number)).scaleb(-(dtype.scale or 0))
        return int(exact) if exact == exact.to_integral_value() else float(exact)
    if dtype.is_integer():
        return int(number)
    if dtype == pl.Date:
        return (EPOCH + timedelta(days=int(number))).isoformat()
    if isinstance(dtype, pl.Datetime):
        return (START_OF_TIME + timedelta(microseconds=int(number))).isoformat()
    return float(number)


LARGEST_POWER, SMALLEST_POWER = 18, -18
LAST_DAY = (date.max - EPOCH).days


class CutPoints(StrEnum):
    """How a cut between two neighbouring values is written."""

    SIMPLEST = "simplest"
    VALUE = "value"


def cuts_between(
    lower: Axis, upper: Axis, dtype: pl.DataType, *, points: CutPoints, values: Axis | None = None
) -> list[Cut]:
    """One cut for each pair of neighbouring values of a node, on the axis of the column: above the lower one, not above
    the upper one. Of all `values` of the column, ascending, the simplest cut is none, where that can be.
    """
    if points == CutPoints.VALUE:
        return [on_axis_text(number, dtype) for number in upper]
    if dtype == pl.Date:
        return _dates_beside(lower, upper, simplest_dates, values)
    if isinstance(dtype, pl.Datetime):
        return _dates_beside(lower, upper, simplest_times, values)
    unit = 10 ** (dtype.scale or 0) if isinstance(dtype, pl.Decimal) else 1
    simplest = simplest_numbers(lower / unit, upper / unit)
    if values is not None:
        taken, following = _taken(simplest, values / unit, upper / unit)
        simplest[taken] = simplest_numbers(simplest[taken], following)
    exact = (abs(upper.astype(np.float64)) < 2**52) & (abs(lower.astype(np.float64)) < 2**52)
    return [
        _shortest(number) if is_exact else simplest_whole(int(low), int(high))
        for number, low, high, is_exact in zip(
            simplest.tolist(), lower, upper, (exact | (upper.dtype.kind == "f")).tolist(), strict=True
        )
    ]


def _taken(cuts: Axis, values: Axis, upper: Axis) -> tuple[NDArray[np.int64], Axis]:
    """Cuts that are some record's value, and for each the next value above it, or the upper end of its gap."""
    place = np.searchsorted(values, cuts)
    taken = np.flatnonzero((values[np.minimum(place, len(values) - 1)] == cuts) & (cuts < upper))
    return taken, np.minimum(values[np.minimum(place[taken] + 1, len(values) - 1)], upper[taken])


def _dates_beside(lower: Axis, upper: Axis, simplest: Callable[[int, int], str], values: Axis | None) -> list[Cut]:
    """The simplest dates or times; where one is a record's, the simplest of the nearest gap between records, if any."""
    cuts: list[Cut] = []
    known = set() if values is None else set(values.tolist())
    for low, high in zip(lower.tolist(), upper.tolist(), strict=True):
        cut = simplest(low, high)
        # A date in days, a time in microseconds.
        place = _microseconds(cut) if "T" in cut else (date.fromisoformat(cut) - EPOCH).days
        if values is not None and place in known and place < high:
            between = values[np.searchsorted(values, low) : np.searchsorted(values, high) + 1]
            gaps = np.flatnonzero(np.diff(between) > 1)
            if len(gaps):
                nearest = gaps[np.argmin(abs(between[gaps] - place))]
                cut = simplest(int(between[nearest]), int(between[nearest + 1]))
        cuts.append(cut)
    return cuts


def simplest_numbers(lower: Axis, upper: Axis) -> NDArray[np.float64]:
    """The number strictly between each pair that is a multiple of the largest power of ten; of several, the one
    nearest the middle. Where no float lies strictly between, the upper value.
    """
    lower, upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    middle = lower / 2 + upper / 2
    simplest = np.where((middle > lower) & (middle < upper), middle, upper)
    done = np.zeros(len(lower), bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for power in range(LARGEST_POWER, SMALLEST_POWER - 1, -1):
            unit = 10.0 ** abs(power)
            times = np.divide if power >= 0 else np.multiply
            first, last = np.floor(times(lower, unit)) + 1, np.ceil(times(upper, unit)) - 1
            multiple = np.clip(np.ceil(times(middle, unit) - 0.5), first, last)
            candidate = multiple * unit if power >= 0 else multiple / unit
            new = ~done & (first <= last) & (candidate > lower) & (candidate < upper)
            simplest[new] = candidate[new] + 0.0
            done |= new
            if done.all():
                break
    return simplest


def simplest_whole(lower: int, upper: int) -> int:
    """As `simplest_numbers`, exactly, for whole numbers that floats do not hold; the upper one if none lies between."""
    middle = (lower + upper) // 2
    for power in range(LARGEST_POWER, -1, -1):
        unit: int = 10**power
        first, last = lower // unit + 1, -(-upper // unit) - 1
        if first <= last:
            nearest: int = -(-(2 * middle - unit) // (2 * unit))
            return min(max(nearest, first), last) * unit
    return upper


def simplest_dates(lower: int, upper: int) -> str:
    """The first day of a year, of a month, or any day strictly between two days (since 1970); else the upper day."""
    if upper - lower < 2:
        return (EPOCH + timedelta(days=upper)).isoformat()
    low, middle = EPOCH + timedelta(days=lower), EPOCH + timedelta(days=(lower + upper) // 2)
    # A day after the last that a calendar has may be an upper end, but no cut.
    high = EPOCH + timedelta(days=min(upper, LAST_DAY))
    years = [date(year, 1, 1) for year in {middle.year, min(middle.year + 1, date.max.year), high.year}]
    months = [_month(low, 1), _month(middle, 0), _month(middle, 1), _month(high, 0)]
    for candidates in (years, months, [middle]):
        between = [day for day in candidates if lower < (day - EPOCH).days < upper]
        if between:
            return min(between, key=lambda day: (abs(day - middle), day)).isoformat()
    return high.isoformat()


def _month(day: date, later: int) -> date:
    """The first day of the month, or of one later."""
    months = min(day.year * 12 + day.month - 1 + later, date.max.year * 12 + 11)
    return date(months // 12, months % 12 + 1, 1)


def simplest_times(lower: int, upper: int) -> str:
    """The first moment of a year, month, day, hour, minute or second strictly between two moments (in microseconds);
    else the upper one.
    """
    days = 24 * 3600 * 10**6
    # A first moment of a day lies strictly between if there is a day above the lower moment and below the upper one.
    first, last = lower // days, -(-upper // days)
    if last - first >= 2:
        day = simplest_dates(first, last)
        return f"{day}T00:00:00"
    for unit in (3600 * 10**6, 60 * 10**6, *(10**power for power in range(6, -1, -1))):
        nearest = -(-((lower + upper) // 2 - unit // 2) // unit) * unit
        for candidate in (nearest, (lower // unit + 1) * unit, (-(-upper // unit) - 1) * unit):
            if lower < candidate < upper:
                return (START_OF_TIME + timedelta(microseconds=candidate)).isoformat()
    return (START_OF_TIME + timedelta(microseconds=upper)).isoformat()


LARGEST_NUMBER = 1e150  # squares of larger numbers cannot be summed in floats
SUM_BITS = 62
MOST_BITS = 26


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """A number stands as round((number - centre) / step); the step is a power of two."""

    centre: float
    step: float

    def quantize(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """The whole multiples that stand for these numbers."""
        return np.rint((numbers - self.centre) / self.step).astype(np.int64)

    def restore(self, multiples: NDArray[np.int64] | int) -> NDArray[np.float64]:
        """The numbers that multiples stand for."""
        return np.asarray(multiples, dtype=np.float64) * self.step + self.centre


def fixed_point(lowest: float, highest: float, *, persons: int) -> FixedPoint:
    """The finest fixed point in which squares of numbers between two ends can be summed over so many persons, at most,
    in 64 bits. It depends on nothing else, so that every engine finds the same.

    Example:
        >>> fixed_point(0.0, 2.0, persons=1000).centre
        1.0
    """
    if not (math.isfinite(lowest) and math.isfinite(highest) and lowest <= highest):
        raise ValueError("fixed point needs two finite ends in order")
    bits = min(MOST_BITS, (SUM_BITS - max(persons, 1).bit_length()) // 2)
    centre = lowest / 2 + highest / 2
    reach = max(highest - centre, centre - lowest)
    if reach == 0:
        return FixedPoint(centre, 1.0)
    # The smallest power of two with which the farthest number still has at most so many bits.
    exponent = math.frexp(reach)[1] - bits
    return FixedPoint(centre, math.ldexp(1.0, max(exponent, -1022)))
