# SPDX-License-Identifier: Apache-2.0
"""Which leaf of a taxonomy each value falls in: by name, or by the number, interval or period it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from fractions import Fraction
from functools import partial
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import DataError, listed
from anonfit.tables.taxonomy import Taxonomy, taxonomy_error

if TYPE_CHECKING:
    import polars as pl

Exact: TypeAlias = int | Fraction
# The first and last point of what a text means (one for a number, many for a month), or None.
Reader: TypeAlias = Callable[[str], tuple[Exact, Exact] | None]

_INTERVAL = re.compile(r"\[\s*([^,]+?)\s*,\s*([^,]+?)\s*([)\]])")
_HALF_LINE = re.compile(r"([<≥])\s*(.+)")
# Digits are bounded so that no name of a file can ask for a number of unbounded size.
_NUMBER = re.compile(r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_MOMENT = re.compile(
    r"(?P<year>\d{4})(?:-Q(?P<quarter>[1-4])|-(?P<month>\d\d)(?:-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d(?:\.\d{1,9})?))?)?)?)?",
    re.ASCII,
)
_TICKS_A_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


class _Interval(NamedTuple):
    """What a leaf covers: from `first` to `last`, None where it is open; `closed` if `last` is inside."""

    first: Exact | None
    last: Exact | None
    closed: bool

    @property
    def empty(self) -> bool:
        """Whether no value at all is inside."""
        if self.first is None or self.last is None:
            return False
        return self.first > self.last or (self.first == self.last and not self.closed)


def leaf_positions(taxonomy: Taxonomy, values: pl.Series, *, column: str = "") -> NDArray[np.int32]:
    """The leaf position of each distinct value, -1 where no leaf holds it. Leaves are names for text, `true` and
    `false` for booleans, and for the other types numbers, dates, periods or intervals as in docs/labels.md.

    Example:
        >>> import polars as pl
        >>> ages = Taxonomy.flat(["< 20", "[20, 65)", "≥ 65"])
        >>> leaf_positions(ages, pl.Series([12, 64, 65])).tolist()
        [0, 1, 2]
    """
    positions = np.full(len(values), -1, dtype=np.int32)
    positions[values.is_not_null().to_numpy()] = _positions(taxonomy, values.drop_nulls(), column)
    return positions


def advice_of(taxonomy: Taxonomy, values: pl.Series) -> str:
    """What to do about values that no leaf holds: texts are no numbers or dates, even if leaves are."""
    import polars as pl

    from anonfit.tables.schema import ADVICE

    if isinstance(values.dtype, pl.String | pl.Categorical | pl.Enum):
        ranges = any(name.startswith(("[", "<", "≥")) for name in taxonomy.leaves)  # else numbers may be codes
        if ranges and all(_interval(name, _number) is not None for name in taxonomy.leaves):
            return (
                'its values are texts, and the leaves are intervals: write type = "continuous" for it, or mend the data'
            )
        read = partial(_moment, ticks_a_day=1)
        if all(_interval(name, read) is not None for name in taxonomy.leaves):
            return 'its values are texts, and the leaves are dates: write type = "date" for it, or mend the data'
    return ADVICE


def _positions(taxonomy: Taxonomy, values: pl.Series, column: str) -> NDArray[np.int32]:
    """The leaf position of each value, by the way of its type."""
    import polars as pl

    from anonfit.tables.schema import name_positions

    dtype = values.dtype
    read: Reader = _number
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return name_positions(taxonomy.leaves, values)
    if isinstance(dtype, pl.Boolean):
        return name_positions(_truths(taxonomy.leaves, column), values)
    if isinstance(dtype, pl.Decimal):
        read = partial(_number, unit=10**dtype.scale)
    elif isinstance(dtype, pl.Date):
        read = partial(_moment, ticks_a_day=1)
    elif isinstance(dtype, pl.Datetime):
        values = values.dt.replace_time_zone(None)  # leaves name the time on the wall, whatever the zone
        read = partial(_moment, ticks_a_day=_TICKS_A_DAY[dtype.time_unit])
    elif not dtype.is_numeric():
        where = f"column {column!r}" if column else "a column"
        raise DataError(f"{where} of type {dtype} cannot have a taxonomy; make it text, a number or a date.")
    return _by_interval(taxonomy, _points(values.to_physical()), read, column)


def _truths(leaves: Sequence[str], column: str) -> list[str]:
    """Leaves with the truths among them as booleans are named, whatever the case in which they are written."""
    for truth in ("true", "false"):
        meant = [name for name in leaves if name.lower() == truth]
        if len(meant) > 1:
            raise taxonomy_error(f"the leaves {listed(meant)} overlap; keep one of them.", column)
    return [name.lower() if name.lower() in ("true", "false") else name for name in leaves]


def _points(values: pl.Series) -> NDArray[Any]:
    """Numbers as an array; whole ones beyond 64 bits as an array of objects."""
    import polars as pl

    if values.dtype not in (pl.Int128, pl.UInt128):
        return values.to_numpy()
    try:
        return values.cast(pl.Int64).to_numpy()
    except pl.exceptions.InvalidOperationError:
        return np.array(values.to_list(), dtype=object)


def _by_interval(taxonomy: Taxonomy, points: NDArray[Any], read: Reader, column: str) -> NDArray[np.int32]:
    """The position of the leaf whose interval holds each point."""
    intervals = _intervals(taxonomy.leaves, read, column)
    ends = _floating_ends if points.dtype.kind == "f" else _whole_ends
    # positions, firsts, lasts: one entry per leaf that can hold a point of this type; lasts are inside.
    positions, firsts, lasts = ends(intervals, points.dtype)
    if len(positions) == 0:
        return np.full(len(points), -1, dtype=np.int32)
    order = np.argsort(firsts, kind="stable")
    positions, firsts, lasts = positions[order], firsts[order], lasts[order]
    _check_apart([taxonomy.leaves[position] for position in positions], firsts, lasts, column)
    place = np.searchsorted(firsts, points, side="right") - 1
    inside = (place >= 0) & (points <= lasts[place])
    return np.where(inside, positions[place], np.int32(-1))


def _intervals(leaves: Sequence[str], read: Reader, column: str) -> list[_Interval]:
    """What each leaf covers."""
    intervals = {name: interval for name in leaves if (interval := _interval(name, read)) is not None}
    if unread := [name for name in leaves if name not in intervals]:
        form = "37, 2024-03-01, [20, 25), [20, 25], < 20 or ≥ 90"
        fault = f"the leaf {listed(unread)} names no value or interval of the column's type"
        raise taxonomy_error(f"{fault}; write leaves like {form}, or read the column as text.", column)
    if empty := [name for name, interval in intervals.items() if interval.empty]:
        raise taxonomy_error(f"the leaf {listed(empty)} holds no value; its lower end must come first.", column)
    return list(intervals.values())


def _interval(name: str, read: Reader) -> _Interval | None:
    """What a leaf's name covers, or None if it cannot be read."""
    if name.startswith("["):
        both = _INTERVAL.fullmatch(name)
        first, last = (read(both[1]), read(both[2])) if both else (None, None)
        if both is None or first is None or last is None:
            return None
        closed = both[3] == "]"
        return _Interval(first[0], last[1] if closed else last[0], closed)
    half_line = _HALF_LINE.fullmatch(name)
    point = read(half_line[2] if half_line else name)
    if point is None:
        return None
    if half_line:
        return _Interval(None, point[0], False) if half_line[1] == "<" else _Interval(point[0], None, False)
    return _Interval(point[0], point[1], True)


def _number(text: str, unit: int = 1) -> tuple[Exact, Exact] | None:
    """The number a text means, in steps of 1 / `unit`."""
    if not _NUMBER.fullmatch(text):
        return None
    number = (int(text) if text.isdigit() else Fraction(text)) * unit
    return number, number


def _moment(text: str, *, ticks_a_day: int) -> tuple[Exact, Exact] | None:
    """The first and last tick of the instant, day, month, quarter or year a text means, from 1970 on."""
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        return None
    year, quarter = int(parts["year"]), int(parts["quarter"] or 1)
    month = int(parts["month"] or 3 * quarter - 2)
    try:
        start = date(year, month, int(parts["day"] or 1)).toordinal() - date(1970, 1, 1).toordinal()
    except ValueError:
        return None
    if parts["hour"]:
        second = Fraction(parts["second"] or 0)
        if int(parts["hour"]) > 23 or int(parts["minute"]) > 59 or second >= 60:
            return None
        seconds = 3600 * int(parts["hour"]) + 60 * int(parts["minute"]) + second
        tick = start * ticks_a_day + seconds * ticks_a_day / 86_400
        return tick, tick
    if parts["day"]:
        return start * ticks_a_day, (start + 1) * ticks_a_day - 1
    months = 1 if parts["month"] else 3 if parts["quarter"] else 12
    return start * ticks_a_day, _month_start(year, month + months) * ticks_a_day - 1


def _month_start(year: int, month: int) -> int:
    """The day, from 1970 on, on which a month begins; months after December are of the next year."""
    last = date.max.toordinal() + 1
    years, month_of_year = divmod(month - 1, 12)
    start = date(year + years, month_of_year + 1, 1).toordinal() if year + years <= date.max.year else last
    return start - date(1970, 1, 1).toordinal()


def _whole_ends(
    intervals: list[_Interval], dtype: np.dtype[Any]
) -> tuple[NDArray[np.int32], NDArray[Any], NDArray[Any]]:
    """The first and last whole number in each interval, for those that have one."""
    beyond = 1 << 200
    least, greatest = (-beyond, beyond) if dtype.hasobject else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    ends = [
        (
            least if first is None else max(ceil(first), least),
            greatest if last is None else min(floor(last) if closed else ceil(last) - 1, greatest),
        )
        for first, last, closed in intervals
    ]
    kept = [position for position, (low, high) in enumerate(ends) if low <= high]
    firsts, lasts = (np.array([ends[position][side] for position in kept], dtype=dtype) for side in (0, 1))
    return np.array(kept, dtype=np.int32), firsts, lasts


def _floating_ends(
    intervals: list[_Interval], dtype: np.dtype[Any]
) -> tuple[NDArray[np.int32], NDArray[Any], NDArray[Any]]:
    """The first and last floating-point number in each interval, for those that have one."""
    # Ends are rounded as the values were, so that 37.1 is 37.1 also in 32 bits.
    with np.errstate(over="ignore"):
        firsts = np.array([-inf if each.first is None else _float(each.first) for each in intervals]).astype(dtype)
        lasts = np.array([inf if each.last is None else _float(each.last) for each in intervals]).astype(dtype)
    below = np.array([each.last is not None and not each.closed for each in intervals])
    lasts = np.where(below, np.nextafter(lasts, dtype.type(-inf)), lasts)
    kept = firsts <= lasts
    return np.flatnonzero(kept).astype(np.int32), firsts[kept], lasts[kept]


def _float(number: Exact) -> float:
    """The nearest floating-point number."""
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def _check_apart(leaves: list[str], firsts: NDArray[Any], lasts: NDArray[Any], column: str) -> None:
    """Refuse leaves, sorted by their first point, of which two hold the same point."""
    reach = np.maximum.accumulate(lasts)
    overlapping = np.flatnonzero(reach[:-1] >= firsts[1:])
    if len(overlapping):
        # The leaf after this place begins before an earlier one ends.
        place = int(overlapping[0])
        earlier = int(np.argmax(lasts[: place + 1]))
        fault = f"the leaves {listed([leaves[earlier], leaves[place + 1]])} overlap"
        raise taxonomy_error(f"{fault}; give every value one leaf.", column)
