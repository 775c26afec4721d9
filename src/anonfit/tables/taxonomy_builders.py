# SPDX-License-Identifier: Apache-2.0
"""Makes the common taxonomies from a domain or its values: intervals, dates, masked codes, groups of names.

Leaves over numbers and dates are labels as in docs/labels.md, so `taxonomy_leaves` finds the leaf of a value. A level
that one interval or period would hold alone, as the root does, is left out, and of two that are the same one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar

from anonfit.errors import counted, did_you_mean, listed
from anonfit.tables.taxonomy import ROOT, Taxonomy, taxonomy_error

__all__ = ["alphabetical", "by_frequency", "dates", "from_cuts", "intervals", "masked"]

Number: TypeAlias = int | float | Decimal
Cuts: TypeAlias = Sequence[Number | date] | Sequence[Sequence[Number | date]]
Point = TypeVar("Point", bound=Hashable)

_PERIODS = ("day", "month", "quarter", "year")
MOST_LEAVES = 1_000_000
"""Of intervals and dates: a step mistaken by some powers of ten must not fill the memory."""


class _Cut(NamedTuple):
    """A cut point: what is below it goes left, itself and what is above go right."""

    rank: Decimal
    text: str


def intervals(
    low: Number,
    high: Number,
    *,
    step: Number,
    factor: int = 2,
    levels: Sequence[Number] | None = None,
    open_ends: bool = True,
    root: str = ROOT,
) -> Taxonomy:
    """A taxonomy of equal intervals from `low` to `high`, joined to wider ones level by level.

    Args:
        low: Where the first interval begins; all widths are counted from here.
        high: Where the last interval ends; it is shorter if `step` does not divide the domain.
        step: The width of the leaves.
        factor: How many intervals of a level the next one joins, until one is left.
        levels: The widths of the coarser levels instead of `factor`, each a multiple of the one before.
        open_ends: Whether the leaves `< low` and `≥ high` are added, so that no value is outside; above the
            leaves they are joined to their neighbours. Otherwise `high` is inside the last interval.
        root: The name of the root.

    Example:
        >>> intervals(0, 40, step=10).leaves
        ('< 0', '[0, 10)', '[10, 20)', '[20, 30)', '[30, 40)', '≥ 40')
    """
    start, end, width = _decimal(low), _decimal(high), _decimal(step)
    if start >= end or width <= 0:
        fault = f"there are no intervals from {low} to {high} by {step}"
        raise taxonomy_error(f"{fault}; low must be below high, and step above 0.")
    if end - start > width * MOST_LEAVES:
        fault = f"from {low} to {high} by {step} are more than {MOST_LEAVES:,} intervals"
        raise taxonomy_error(f"{fault}; give a wider step or a narrower domain.")
    if levels is None:
        if factor < 2:
            raise taxonomy_error(f"factor {factor} joins nothing; give 2 or more.")
        widths: list[Decimal] = []
        while (wide := (widths or [width])[-1] * factor) < end - start:
            widths.append(wide)
    else:
        widths = [_decimal(level) for level in levels]
        if any(right <= left or right % left for left, right in pairwise([width, *widths])):
            fault = f"the widths {listed(levels)} are not each a greater multiple of the one before"
            raise taxonomy_error(f"{fault}, beginning with step; mend levels.")
    cuts = [_number_cut(start), *_multiples(start, end, width), _number_cut(end)]
    coarser = [_multiples(start, end, wide) for wide in widths]
    return _intervals(cuts, coarser, open_ends=open_ends, root=root)


def from_cuts(cuts: Cuts, *, open_ends: bool = True, root: str = ROOT) -> Taxonomy:
    """A taxonomy of the intervals between cut points, which may be numbers, dates or times.

    Args:
        cuts: The cut points of the leaves, ascending; or one such list a level, the finest first, each of the
            others a part of the one before it.
        open_ends: Whether there are leaves below the first cut and from the last one on. Otherwise the first
            and last cut are the ends of the domain, both inside.
        root: The name of the root.

    Example:
        >>> from_cuts([[18, 25, 65], [65]]).path(2)
        ('< 18', '< 65', '*')
    """
    given: Iterable[object] = cuts
    if any(isinstance(cut, str) for cut in given):
        raise taxonomy_error("the cuts are texts; give numbers, dates or times, such as date(2020, 1, 31).")
    nested = [list(level) for level in cuts if isinstance(level, Iterable)]
    single = [cut for cut in cuts if not isinstance(cut, Iterable)]
    if bool(nested) == bool(single):
        raise taxonomy_error("the cuts are neither one list of cut points nor a list of such lists; give one.")
    if len({type(cut) if isinstance(cut, date) else Decimal for level in (*nested, single) for cut in level}) > 1:
        raise taxonomy_error("the cuts are of several types; give only numbers, only dates or only times.")
    levels = [[_cut(cut) for cut in level] for level in nested or [single]]
    if len(levels[0]) < (1 if open_ends else 2):
        raise taxonomy_error("there are too few cuts; give one, or the two ends of a closed domain.")
    for level in levels:
        if any(left.rank >= right.rank for left, right in pairwise(level)):
            raise taxonomy_error(f"the cuts {listed(cut.text for cut in level)} do not ascend; sort them.")
    for finer, coarser in pairwise(levels):
        known = set(finer)
        alone = [cut.text for cut in coarser if cut not in known]
        if alone:
            raise taxonomy_error(f"the cuts {listed(alone)} are not on the finer level; add them there.")
    return _intervals(levels[0], levels[1:], open_ends=open_ends, root=root)


def dates(
    first: date, last: date, *, levels: Sequence[str] = _PERIODS, open_ends: bool = True, root: str = ROOT
) -> Taxonomy:
    """A taxonomy of the calendar from the period of `first` to that of `last`.

    Args:
        first: The first day of the domain.
        last: The last day of the domain.
        levels: Some of day, month, quarter and year, the finest (that of the leaves) first.
        open_ends: Whether leaves for all time before and after are added; above the leaves they are joined to
            the first and last period, whose names are then `< date` and `≥ date`.
        root: The name of the root.

    Example:
        >>> dates(date(2024, 1, 1), date(2024, 3, 31), levels=["month"], open_ends=False).leaves
        ('2024-01', '2024-02', '2024-03')
    """
    for period in levels:
        if period not in _PERIODS:
            raise taxonomy_error(f"there is no period {period!r}; {did_you_mean(period, _PERIODS)}")
    ranks = [_PERIODS.index(period) for period in levels]
    if not ranks:
        raise taxonomy_error(f"no level is named; give some of {listed(_PERIODS)}, the finest first.")
    if any(left >= right for left, right in pairwise(ranks)):
        raise taxonomy_error(f"the levels {listed(levels)} do not go from finer to coarser; sort them.")
    start, end = _period_start(_day(first), levels[0]), _next_period(_day(last), levels[0])
    if start >= end:
        raise taxonomy_error(f"there are no dates from {first} to {last}; give the earlier one first.")
    cuts = [start]
    while cuts[-1] < end:
        cuts.append(_next_period(cuts[-1], levels[0]))
    if len(cuts) - 1 > MOST_LEAVES:
        fault = f"from {first} to {last} are more than {MOST_LEAVES:,} leaves, one a {levels[0]}"
        raise taxonomy_error(f"{fault}; begin with longer periods or give a narrower domain.")
    coarser = [[cut for cut in cuts[1:-1] if cut == _period_start(cut, period)] for period in levels[1:]]

    def name(level: int, lower: date | None, upper: date | None) -> str:
        if lower is None or upper is None:
            return f"< {upper}" if lower is None else f"≥ {lower}"
        if levels[level] == "quarter":
            return f"{lower.year:04}-Q{(lower.month + 2) // 3}"
        return lower.isoformat()[: {"day": 10, "month": 7, "year": 4}[levels[level]]]

    return _nested(cuts, coarser, name=name, open_ends=open_ends, root=root)


def masked(
    values: Iterable[object], *, levels: Sequence[int] | None = None, mask: str = "*", root: str = ROOT
) -> Taxonomy:
    """A taxonomy of codes masked from the right: 75011, 7501*, 750**, and so on.

    A shorter code stands with the longer ones that begin with it: E11 and E119 are both in `E11*`.

    Args:
        values: The codes; repeated and missing ones are skipped.
        levels: The numbers of characters kept, descending; all of them unless given.
        mask: The character that stands for a masked one; no code may hold it.
        root: The name of the root.

    Example:
        >>> masked(["75011", "75012"], levels=[3, 2]).path(3)
        ('75011', '750**', '75***', '*')
    """
    codes = sorted(_texts(values))
    if len(mask) != 1:
        raise taxonomy_error(f"the mask {mask!r} has {counted(len(mask), 'character')}; give one, such as '*' or '#'.")
    if holding := sum(mask in code for code in codes):
        raise taxonomy_error(f"the mask {mask!r} is in {counted(holding, 'code')}; choose a character that is in none.")
    width = max(map(len, codes), default=0)
    kept = range(width - 1, 0, -1) if levels is None else levels
    if wrong := [number for number in kept if not 0 < number < width]:
        fault = f"{listed(wrong)} characters cannot be kept of codes that have up to {width}"
        raise taxonomy_error(f"{fault}; keep at least 1 and fewer than {width}.")
    if any(left <= right for left, right in pairwise(kept)):
        raise taxonomy_error(f"the numbers of characters kept, {listed(kept)}, do not descend; give the largest first.")
    return Taxonomy.from_paths([code, *(code[:number].ljust(width, mask) for number in kept), root] for code in codes)


def alphabetical(values: Iterable[object], *, groups: int | Sequence[int], root: str = ROOT) -> Taxonomy:
    """A taxonomy of groups of neighbours in alphabetical order, of nearly equal numbers of values.

    Args:
        values: The values; repeated and missing ones are skipped.
        groups: The number of groups; or one number a level, descending.
        root: The name of the root.

    Example:
        >>> alphabetical(["DE", "FR", "AT", "BE"], groups=2).names
        ('*', 'AT to BE', 'AT', 'BE', 'DE to FR', 'DE', 'FR')
    """
    ordered = sorted(_texts(values), key=lambda text: (text.casefold(), text))
    numbers = [groups] if isinstance(groups, int) else list(groups)
    if any(left <= right for left, right in pairwise([len(ordered), *numbers])) or min(numbers, default=1) < 1:
        fault = f"{len(ordered)} values cannot be joined to {listed(numbers)} groups"
        raise taxonomy_error(f"{fault}; give each level fewer groups than the one before.")
    paths = [[text] for text in ordered]
    # begins: the place in `ordered` where each group of the level begins, and the end.
    begins = list(range(len(ordered) + 1))
    for number in numbers:
        begins = [begins[group * (len(begins) - 1) // number] for group in range(number + 1)]
        for begin, end in pairwise(begins):
            name = ordered[begin] if end - begin == 1 else f"{ordered[begin]} to {ordered[end - 1]}"
            for path in paths[begin:end]:
                path.append(name)
    return Taxonomy.from_paths([*path, root] for path in paths)


def by_frequency(counts: Mapping[Any, int], *, minimum: int, root: str = ROOT) -> Taxonomy:
    """A taxonomy in which frequent values stand alone and rarer ones in groups of similar frequency.

    The groups show which values are about equally frequent in the counted table, though not how frequent.

    Args:
        counts: How often each value occurs.
        minimum: What every child of the root must reach; a group takes the next rarer value until it does.
        root: The name of the root.

    Example:
        >>> by_frequency({"flu": 50, "gout": 6, "mumps": 5, "rabies": 1}, minimum=10).names
        ('*', 'flu', 'rarer values 1', 'gout', 'mumps', 'rabies')
    """
    if not isinstance(counts, Mapping):
        raise taxonomy_error("the counts say not how often each value occurs; give a mapping such as Counter(values).")
    counts = {str(value): count for value, count in counts.items()}
    if any(count < 0 for count in counts.values()):
        raise taxonomy_error("a count is negative; counts say how often values occur.")
    if (total := sum(counts.values())) < minimum:
        raise taxonomy_error(f"all counts together, {total:,}, do not reach the minimum of {minimum:,}; lower it.")
    ranked = sorted(counts, key=lambda value: (-counts[value], value))
    groups: list[list[str]] = []
    reached = minimum
    for value in ranked:
        if reached >= minimum:
            groups.append([])
            reached = 0
        groups[-1].append(value)
        reached += counts[value]
    if reached < minimum:  # the rarest values are too few to stand on their own
        rest = groups.pop()
        groups[-1].extend(rest)
    paths: list[list[str]] = []
    rare = 0
    for group in groups:
        rare += len(group) > 1
        paths.extend([value, f"rarer values {rare}" if len(group) > 1 else value, root] for value in group)
    return Taxonomy.from_paths(paths)


def _texts(values: Iterable[object]) -> set[str]:
    """The different values that are not missing, as names. A text is one value, not its characters."""
    if isinstance(values, str):
        raise taxonomy_error(f"the values are one text, {values!r}; give a list of them.")
    return {str(value) for value in values if value is not None}


def _intervals(cuts: Sequence[_Cut], coarser: Sequence[Sequence[_Cut]], *, open_ends: bool, root: str) -> Taxonomy:
    """The taxonomy of intervals, named by the label grammar; the last part of a closed domain includes its end."""

    def name(_: int, lower: _Cut | None, upper: _Cut | None) -> str:
        if lower is None:
            return f"< {upper.text}" if upper else ROOT
        if upper is None:
            return f"≥ {lower.text}"
        return f"[{lower.text}, {upper.text}{']' if not open_ends and upper == cuts[-1] else ')'}"

    return _nested(cuts, coarser, name=name, open_ends=open_ends, root=root)


def _nested(
    cuts: Sequence[Point],
    coarser: Sequence[Sequence[Point]],
    *,
    name: Callable[[int, Point | None, Point | None], str],
    open_ends: bool,
    root: str,
) -> Taxonomy:
    """The taxonomy of the parts between cuts; `name` gets a level and a part's two ends, None if open."""
    place = {cut: index for index, cut in enumerate(cuts)}
    ends: tuple[Point | None, Point | None] = (None, None) if open_ends else (cuts[0], cuts[-1])
    outside = set() if open_ends else {0, len(cuts) - 1}
    # inner: for each level, the places in `cuts` where one of its parts ends and the next begins.
    inner = [[place[cut] for cut in level if place[cut] not in outside] for level in (cuts, *coarser)]
    paths: list[list[str]] = []
    for before in range(-1 if open_ends else 0, len(cuts) if open_ends else len(cuts) - 1):
        path: list[str] = []
        for level, places in enumerate(inner):
            if level and not places:
                continue
            part = bisect_right(places, before)
            lower = cuts[places[part - 1]] if part else ends[0]
            upper = cuts[places[part]] if part < len(places) else ends[1]
            path.append(name(level, lower, upper))
        paths.append([*path, root])
    return Taxonomy.from_paths(paths)


def _multiples(start: Decimal, end: Decimal, width: Decimal) -> list[_Cut]:
    """The cuts strictly between start and end, at whole widths from start."""
    steps = int((end - start) / width) + 1
    return [_number_cut(start + width * step) for step in range(1, steps) if start + width * step < end]


def _decimal(number: Number) -> Decimal:
    """The number as it is written, so that 0.1 + 0.2 is 0.3."""
    try:
        exact = Decimal(str(number))
    except InvalidOperation:
        exact = Decimal("NaN")
    if not exact.is_finite():
        raise taxonomy_error(f"'{number}' is not a finite number; give one.")
    return exact


def _number_cut(number: Decimal) -> _Cut:
    """The cut at a number, written without an exponent."""
    text = format(number, "f") if number else "0"
    return _Cut(number, text.rstrip("0").rstrip(".") if "." in text else text)


def _cut(cut: Number | date) -> _Cut:
    """A cut with its rank among cuts of its type."""
    if isinstance(cut, datetime):
        local = cut.replace(tzinfo=None)
        return _Cut(Decimal((local - datetime.min) // timedelta(microseconds=1)), local.isoformat())
    if isinstance(cut, date):
        return _Cut(Decimal(cut.toordinal()), cut.isoformat())
    return _number_cut(_decimal(cut))


def _day(moment: date) -> date:
    """The day of a date or time that leaves room for the day after its period."""
    if not isinstance(moment, date):
        raise taxonomy_error(f"{moment!r} is not a date; give one, such as date(2020, 1, 31).")
    day = moment.date() if isinstance(moment, datetime) else moment
    if day.year == date.max.year:
        raise taxonomy_error(f"the year {day.year} is the last one there is; end the dates before it.")
    return day


def _period_start(day: date, period: str) -> date:
    """The first day of the period a day is in."""
    if period == "day":
        return day
    month = {"month": day.month, "quarter": day.month - (day.month - 1) % 3, "year": 1}[period]
    return date(day.year, month, 1)


def _next_period(day: date, period: str) -> date:
    """The first day after the period a day is in."""
    # The longest such period reaches into the next one, and past none.
    longest = {"day": 1, "month": 31, "quarter": 92, "year": 366}[period]
    return _period_start(_period_start(day, period) + timedelta(days=longest), period)
