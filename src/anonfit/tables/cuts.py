# SPDX-License-Identifier: Apache-2.0
"""Where a cut is put between two neighbouring values: the simplest number or date there, or the upper value itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.scales import EPOCH, Axis, Cut, on_axis_text

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CutPoints", "cuts_between", "simplest_dates", "simplest_numbers", "simplest_times", "simplest_whole"]

LARGEST_POWER, SMALLEST_POWER = 18, -18
START_OF_TIME = datetime(1970, 1, 1)
LAST_DAY = (date.max - EPOCH).days


class CutPoints(StrEnum):
    """How a cut between two neighbouring values is written."""

    SIMPLEST = "simplest"
    VALUE = "value"


def cuts_between(
    lower: Axis, upper: Axis, dtype: pl.DataType, *, points: CutPoints, values: Axis | None = None
) -> list[Cut]:
    """One cut for each pair of neighbouring values of a node: above the lower one, not above the upper one.

    Args:
        lower: The lower values, on the axis of the column.
        upper: The upper values.
        dtype: The type of the column.
        points: Which point between them is taken.
        values: All values of the column, ascending: the simplest cut is none of them, where that can be.
    """
    import polars as pl

    if points == CutPoints.VALUE:
        return [on_axis_text(number, dtype) for number in upper]
    if dtype == pl.Date:
        return _dates_beside(lower, upper, simplest_dates, values)
    if isinstance(dtype, pl.Datetime):
        return _dates_beside(lower, upper, simplest_times, values)
    unit = 10 ** (dtype.scale or 0) if isinstance(dtype, pl.Decimal) else 1
    found = simplest_numbers(lower / unit, upper / unit)
    if values is not None:
        taken, following = _taken(found, values / unit, upper / unit)
        found[taken] = simplest_numbers(found[taken], following)
    exact = (abs(upper.astype(np.float64)) < 2**52) & (abs(lower.astype(np.float64)) < 2**52)
    return [
        _tidy(number) if is_exact else simplest_whole(int(low), int(high))
        for number, low, high, is_exact in zip(
            found.tolist(), lower, upper, (exact | (upper.dtype.kind == "f")).tolist(), strict=True
        )
    ]


def _taken(cuts: Axis, values: Axis, upper: Axis) -> tuple[NDArray[np.int64], Axis]:
    """Cuts that are some record's value, and for each the next value above it, or the upper end of its gap."""
    place = np.searchsorted(values, cuts)
    taken = np.flatnonzero((values[np.minimum(place, len(values) - 1)] == cuts) & (cuts < upper))
    return taken, np.minimum(values[np.minimum(place[taken] + 1, len(values) - 1)], upper[taken])


def _dates_beside(lower: Axis, upper: Axis, simplest: Callable[[int, int], str], values: Axis | None) -> list[Cut]:
    """The simplest dates or times; where one is a record's, the simplest of the nearest gap between records, if any."""
    found: list[Cut] = []
    known = set() if values is None else set(values.tolist())
    for low, high in zip(lower.tolist(), upper.tolist(), strict=True):
        cut = simplest(low, high)
        place = _on_axis(cut)
        if values is not None and place in known and place < high:
            between = values[np.searchsorted(values, low) : np.searchsorted(values, high) + 1]
            gaps = np.flatnonzero(np.diff(between) > 1)
            if len(gaps):
                nearest = gaps[np.argmin(abs(between[gaps] - place))]
                cut = simplest(int(between[nearest]), int(between[nearest + 1]))
        found.append(cut)
    return found


def _on_axis(cut: str) -> int:
    """A date in days, a time in microseconds."""
    if "T" not in cut:
        return (date.fromisoformat(cut) - EPOCH).days
    return (datetime.fromisoformat(cut) - START_OF_TIME) // timedelta(microseconds=1)


def _tidy(number: float) -> Cut:
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def simplest_numbers(lower: Axis, upper: Axis) -> NDArray[np.float64]:
    """The number strictly between each pair that is a multiple of the largest power of ten; of several, the one
    nearest the middle.

    Where no float lies strictly between, the upper value.
    """
    lower, upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    middle = lower / 2 + upper / 2
    found = np.where((middle > lower) & (middle < upper), middle, upper)
    done = np.zeros(len(lower), bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for power in range(LARGEST_POWER, SMALLEST_POWER - 1, -1):
            unit = 10.0 ** abs(power)
            times = np.divide if power >= 0 else np.multiply
            first, last = np.floor(times(lower, unit)) + 1, np.ceil(times(upper, unit)) - 1
            multiple = np.clip(np.ceil(times(middle, unit) - 0.5), first, last)
            candidate = multiple * unit if power >= 0 else multiple / unit
            new = ~done & (first <= last) & (candidate > lower) & (candidate < upper)
            found[new] = candidate[new] + 0.0
            done |= new
            if done.all():
                break
    return found


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
    low = START_OF_TIME + timedelta(microseconds=lower)
    high = START_OF_TIME + timedelta(microseconds=upper)
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
    middle = (lower + upper) // 2
    found = START_OF_TIME + timedelta(microseconds=middle) if middle > lower else high
    assert low < found <= high
    return found.isoformat()
