# SPDX-License-Identifier: Apache-2.0
"""The audit's own reader and speller of labels (docs/labels.md): a label becomes the set of values it means, or the
cells of a recoding; and every set has one spelling, since a label that is written otherwise could carry a message.

It shares nothing with the code that writes labels, so a label that is written wrongly is read as what it says. What
lies between two neighbouring cuts, one leaf or one word is a cell of a recoding, and missing is cell 0 of a column that
has missing values."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache
from math import floor

from anonfit.auditing.meanings import Ends, LabelMeaning, LabelTree, moment, period

Run = tuple[int, int]
"""The first and the last of some neighbouring cells."""
INTERVAL_NAME = re.compile(r'\[[^,"{}\x00-\x1f]+, [^,"{}\x00-\x1f]+[)\]]|[<≥] [^,"{}\x00-\x1f]*[^,"{}\s\x00-\x1f]')
_SPECIAL = re.compile(r'[,"{}\x00-\x1f\x7f-\x9f]|^[\[<≥*]|^(not )?missing\Z|^missing or ')


@dataclass(frozen=True, slots=True)
class Interval:
    """From `lower` (inclusive) to `upper`; None is an open end. Words of an order are their positions."""

    lower: Decimal | None
    upper: Decimal | None
    closed: bool = False  # `upper` belongs to it


@dataclass(frozen=True, slots=True)
class ValueSet:
    """The values a label means: missing, every present value, intervals, names; nothing if none is set."""

    missing: bool = False
    everything: bool = False  # every value that is not missing
    intervals: tuple[Interval, ...] = ()
    names: tuple[str, ...] = ()


_SAME_EVERYWHERE = {
    "missing": ValueSet(missing=True),
    "*": ValueSet(missing=True, everything=True),
    "not missing": ValueSet(everything=True),
}


def read_label(text: str | None, meaning: LabelMeaning) -> ValueSet | None:
    """What a label means; None if the text is no label of the column. An empty cell means missing."""
    if text is None or text in _SAME_EVERYWHERE:
        return _SAME_EVERYWHERE[text or "missing"]
    if not text.startswith("missing or "):
        return _present(text, meaning)
    values = _present(text.removeprefix("missing or "), meaning)
    return None if values is None else replace(values, missing=True)


def read_bounds(lower: str | None, upper: str | None, missing: str | None, *, meaning: LabelMeaning) -> ValueSet | None:
    """What a pair of bounds and the word about missing values mean; None if they are no bounds of the column."""
    # A word stands in its column as it is: bounds are values, not labels.
    read = _positions(meaning.order).get if meaning.type == "ordinal" else meaning.scalar
    low, high = (None if text is None else read(text) for text in (lower, upper))
    is_read = (low is None) == (lower is None) and (high is None) == (upper is None)
    if missing == "only":
        return ValueSet(missing=True) if lower is None and upper is None else None
    if not is_read or missing not in (None, "no", "possible"):
        return None
    if low is None and high is None:
        return ValueSet(missing=missing == "possible", everything=True)
    # Of upper bounds only the end of a declared domain is inclusive, unless it is also a cut.
    closed = high is not None and high == meaning.domain[1] and (high not in (meaning.cuts or ()) or low == high)
    interval = _interval(low, high, closed=closed)
    return None if interval is None else replace(interval, missing=missing == "possible")


def bare(name: str) -> bool:
    """Whether a name may stand unquoted."""
    return name != "" and name == name.strip() and not _SPECIAL.search(name)


def _present(text: str, meaning: LabelMeaning) -> ValueSet | None:
    """A label without its part about missing values."""
    if meaning.is_named:
        return _named(text, meaning)
    if text.startswith(("< ", "≥ ")):
        end = _place(text[2:], meaning)
        if end is None:
            return None
        if meaning.closed:
            end = meaning.whole_cuts.get(end, end)
        return _interval(None, end) if text[0] == "<" else _interval(end, None)
    if text.startswith("["):
        ends = [_place(part, meaning) for part in _parts(text[1:-1]) or ()]
        if text[-1] not in ")]" or len(ends) != 2 or None in ends:
            return None
        return _interval(ends[0], ends[1], closed=text[-1] == "]")
    if meaning.closed and (text.startswith("≤ ") or "–" in text):
        ends = [_place(end, meaning) for end in text.removeprefix("≤ ").split("–")]
        if None in ends or len(ends) != (1 if text[0] == "≤" else 2):
            return None
        return _run(None if text[0] == "≤" else ends[0], ends[-1], meaning)
    point = _place(text, meaning)
    return None if point is None else _run(point, point, meaning)


def _run(first: Decimal | None, last: Decimal | None, meaning: LabelMeaning) -> ValueSet | None:
    """All from one value to another: of whole numbers, what lies between the cuts before and behind them."""
    if last is None or not meaning.is_whole or (first is not None and first > last):
        return None if last is None else _interval(first, last, closed=True)
    cuts = meaning.whole_cuts
    lower = first if first is None else cuts.get(first, first)
    return _interval(lower, cuts[last + 1]) if last + 1 in cuts else _interval(lower, last, closed=True)


def _interval(lower: Decimal | None, upper: Decimal | None, *, closed: bool = False) -> ValueSet | None:
    if lower is not None and upper is not None and (lower > upper or (lower == upper and not closed)):
        return None
    return ValueSet(intervals=(Interval(lower, upper, closed),))


def _place(text: str, meaning: LabelMeaning) -> Decimal | None:
    """Where a number, a date or a word of the order stands on the column's line."""
    if meaning.type != "ordinal":
        return meaning.scalar(text)
    name = _name(text)
    return None if name is None else _positions(meaning.order).get(name)


@lru_cache(maxsize=64)
def _positions(order: tuple[str, ...]) -> dict[str, Decimal]:
    return {word: Decimal(position) for position, word in enumerate(order)}


def _named(text: str, meaning: LabelMeaning) -> ValueSet | None:
    """One name or a set of names; in an ordered column with a taxonomy, the intervals of the leaves below them."""
    tree = meaning.tree
    if (text[:1] in ("[", "<", "≥") and INTERVAL_NAME.fullmatch(text)) or (
        tree is not None and meaning.type != "nominal" and text in tree.below
    ):
        names: list[str | None] = [text]  # a name that is an interval is written as it is
    elif text.startswith("{") and text.endswith("}"):
        names = list(map(_name, _parts(text[1:-1]) or ("",)))
    else:
        names = [_name(text)]
    known = tuple(name for name in names if name is not None)
    if tree is not None:
        known = tuple(filter(tree.below.__contains__, known))
    if len(set(known)) < len(names):
        return None
    if meaning.type == "nominal" or tree is None:
        return ValueSet(names=known)
    runs = [tree.below[name] for name in known]
    leaves = [tree.leaves[leaf] for first, last in runs for leaf in range(first, last + 1)]
    intervals = tuple(interval for leaf in leaves if (interval := leaf_interval(leaf, meaning)) is not None)
    return ValueSet(intervals=intervals) if len(intervals) == len(leaves) else None


def leaf_interval(leaf: str, meaning: LabelMeaning) -> Interval | None:
    """What a leaf of a taxonomy over numbers, words of an order or dates (moments, periods, both to both) means."""
    if meaning.type != "date":
        values = _present(leaf, replace(meaning, tree=None))
        return values.intervals[0] if values is not None and values.intervals else None
    if not leaf.startswith(("< ", "≥ ", "[")):
        return _dates(leaf)
    ends = [_dates(part) for part in ([leaf[2:]] if leaf[0] != "[" else _parts(leaf[1:-1]) or ())]
    known = [end for end in ends if end is not None]
    if len(known) != len(ends) or len(known) != (2 if leaf[0] == "[" else 1):
        return None
    first, last = known[0], known[-1]
    if leaf[0] != "[":
        return Interval(None, first.lower) if leaf[0] == "<" else Interval(first.lower, None)
    return Interval(first.lower, last.upper, last.closed) if leaf[-1] == "]" else Interval(first.lower, last.lower)


def _dates(text: str) -> Interval | None:
    """All moments of a period, or the one moment that a text states."""
    ends = period(text)
    if ends is not None:
        return Interval(*ends)
    point = moment(text if text.count(":") > 1 else f"{text}:00")
    return None if point is None else Interval(point, point, closed=True)


def _parts(text: str) -> list[str] | None:
    """The parts of a list separated by a comma and a space; quoted parts may hold anything. None: not such a list."""
    if '"' not in text:
        return text.split(", ")
    parts: list[str] = []
    begin = 0
    while True:
        end = _quoted_end(text, begin) if text.startswith('"', begin) else text.find(", ", begin)
        if end is None:
            return None
        end = len(text) if end < 0 else end
        parts.append(text[begin:end])
        if end == len(text):
            return parts
        if text[end : end + 2] != ", ":
            return None
        begin = end + 2


def _quoted_end(text: str, begin: int) -> int | None:
    try:
        return int(json.JSONDecoder().raw_decode(text, begin)[1])
    except ValueError:
        return None


@lru_cache(maxsize=1 << 16)
def _name(text: str) -> str | None:
    """A name as it stands, or out of its quotes; None if it is neither."""
    if not text.startswith('"'):
        return text if bare(text) else None
    if _quoted_end(text, 0) != len(text):
        return None
    return str(json.loads(text))


def joined(runs: Iterable[Run]) -> list[Run]:
    """Runs as separate ones in rising order."""
    ordered = sorted(runs)
    if len(ordered) < 2:
        return ordered
    separate: list[Run] = []
    first, last = ordered[0]
    for low, high in ordered:
        if low > last + 1:
            separate.append((first, last))
            first, last = low, high
        elif high > last:
            last = high
    return [*separate, (first, last)]


CellEnds = tuple[int | None, int | None]


def cell_reader(meaning: LabelMeaning) -> Callable[[ValueSet], list[Run] | None]:
    """A function that gives the runs of cells that are exactly a label's values; None if cells cannot make them.

    Where a column has no missing values, "*" is all its cells, and no other label may speak of missing.
    """
    if meaning.cuts is None and not meaning.is_named and meaning.type != "ordinal":
        return lambda _: None
    shift, last, tree = int(bool(meaning.missing)), meaning.cells - 1, meaning.tree
    below = {name: (low + shift, high + shift) for name, (low, high) in ({} if tree is None else tree.below).items()}
    of_line = () if tree is None or meaning.type == "nominal" else tree.leaves
    leaves = {leaf_interval(leaf, meaning): number for number, leaf in enumerate(of_line)}
    cuts = {cut: number for number, cut in enumerate(sorted(meaning.cuts or ()))}

    def ends(interval: Interval) -> CellEnds:
        if tree is not None:
            return leaves.get(interval), leaves.get(interval)
        if meaning.type == "ordinal":
            return word_ends(interval, len(meaning.order))
        return _between(interval, meaning, cuts)

    def cells(values: ValueSet) -> list[Run] | None:
        runs: list[Run] = [below[name] for name in values.names if name in below]
        for low, high in map(ends, values.intervals):
            runs += [] if low is None or high is None else [(low + shift, high + shift)]
        if values.everything:
            runs = [(shift, last)]
        elif len(runs) < len(values.names) + len(values.intervals) or (values.missing and not shift):
            return None
        return joined([*runs, (0, 0)] if values.missing and shift else runs)

    return cells


def word_ends(interval: Interval, count: int) -> Run:
    """The first and the last word of an interval of an order of so many words, whose ends are places in it."""
    low = 0 if interval.lower is None else int(interval.lower)
    return low, count - 1 if interval.upper is None else int(interval.upper) - (not interval.closed)


def _between(interval: Interval, meaning: LabelMeaning, cuts: dict[Decimal, int]) -> CellEnds:
    """The cells between two cuts, or a cut and an end of the domain."""
    first, last = meaning.domain
    low = cuts[interval.lower] + 1 if interval.lower in cuts else None
    if interval.lower is None or (interval.lower == first and first not in cuts):
        low = 0
    if interval.upper is None:
        return low, len(cuts)
    if interval.closed:
        return low, len(cuts) if interval.upper == last else None
    return low, cuts.get(interval.upper)


# --- spelling -----------------------------------------------------------------------------------------------------

Tops = Mapping[int, Sequence[tuple[int, str]]]
_EPOCH = datetime.datetime(1970, 1, 1)
_WHOLE = 10**15  # whole numbers below are written without a point


def speller(meaning: LabelMeaning, *, observed: bool) -> Callable[[str, ValueSet, list[Run] | None], bool]:
    """A function that says whether a text, which was read as these values, and their cells, is spelled as their label
    must be.
    """
    if meaning.has_ends:
        return lambda text, values, _: text in labels_of_line(values, meaning, observed=observed)
    label = labeller(meaning)
    return lambda text, _, cells: cells is None or text == label(cells)


def labeller(meaning: LabelMeaning) -> Callable[[Sequence[Run]], str | None]:
    """A function that gives the label of some leaves or words; None where there is none."""
    tops = {} if meaning.tree is None else _tops(meaning.tree)
    is_flat = all(len(names) == 1 for names in tops.values())
    leaves = [_quoted(tops[leaf][0][1]) for leaf in range(len(tops))] if is_flat else []
    return lambda cells: _label_of_cells(list(cells), meaning, tops, leaves)


def labels_of_line(values: ValueSet, meaning: LabelMeaning, *, observed: bool) -> list[str]:
    """The label of an interval of numbers or dates; long whole numbers may have one of two forms."""
    low, high = meaning.domain
    domain = None if low is None or high is None else Interval(low, high, closed=True)
    everything = values.everything or (not observed and domain is not None and values.intervals == (domain,))
    if everything and (values.missing or not meaning.missing):
        return ["*"]
    if everything and (domain is None or observed):
        return ["not missing"]
    if not everything and not values.intervals:
        return ["missing"]
    inner = domain if everything and domain is not None else values.intervals[0]
    return [("missing or " if values.missing else "") + text for text in _spelled_intervals(inner, meaning)]


def _spelled_intervals(interval: Interval, meaning: LabelMeaning) -> list[str]:
    if meaning.is_whole:
        first, last = whole_ends(interval)
        if first is not None and first == last:
            return [str(int(first))]
        if meaning.closed and last is not None:
            return [f"≤ {int(last)}" if first is None else f"{int(first)}–{int(last)}"]
        if meaning.closed and first is not None:
            return [f"≥ {int(first)}"]
    ends = (interval.lower, interval.upper)
    lower, upper = ([] if end is None else spelled_scalars(end, meaning.type, meaning.scale) for end in ends)
    if interval.lower is None:
        return [f"< {text}" for text in upper]
    if interval.upper is None:
        return [f"≥ {text}" for text in lower]
    if interval.closed and interval.lower == interval.upper:
        return lower
    return [f"[{first}, {last}{']' if interval.closed else ')'}" for first in lower for last in upper]


def whole_ends(interval: Interval) -> Ends:
    """The first and the last whole number of an interval."""
    first, upper = interval.lower, interval.upper
    first = None if first is None else first.to_integral_value(ROUND_CEILING)
    if upper is None:
        return first, None
    last = upper.to_integral_value(ROUND_FLOOR if interval.closed else ROUND_CEILING)
    return first, last if interval.closed else last - 1


@lru_cache(maxsize=1 << 16)
def spelled_scalars(value: Decimal, kind: str, scale: str | None) -> list[str]:
    """How a number or date is written."""
    if kind != "date":
        whole = [str(int(value))] if value == value.to_integral_value() else []
        return whole if whole and abs(value) < _WHOLE else [repr(float(value)), *whole]
    seconds = floor(value)  # what `//` and `%` make of a Decimal below 0 is cut off at 0, not at the next number below
    moment_of_day = _EPOCH + datetime.timedelta(seconds=seconds)
    if scale != "time":
        return [moment_of_day.date().isoformat() if seconds % 86400 == 0 else ""]
    parts = f"{value - seconds:.9f}".partition(".")[2]
    digits = parts[:6] if parts.endswith("000") else parts
    return [moment_of_day.isoformat() + (f".{digits}" if digits.strip("0") else "")]


def _label_of_cells(runs: list[Run], meaning: LabelMeaning, tops: Tops, leaves: list[str]) -> str | None:
    """The label of some leaves or words; None where there is none. `leaves` are those of a tree that has no other nodes
    below its root, as they are written in a set.
    """
    shift, count, order = int(bool(meaning.missing)), meaning.cells, meaning.order
    if runs == [(0, count - 1)]:
        return "*"
    missing = "missing or " if shift == 1 and runs and runs[0][0] == 0 else ""
    known = runs if not shift else [(max(low, 1) - 1, high - 1) for low, high in runs if high]
    if not known:
        return "missing" if missing else None
    if known == [(0, count - shift - 1)]:
        return "not missing"
    if meaning.tree is not None:
        return missing + _spelled_names(known, tops, leaves)
    if len(known) > 1:
        return None
    low, high = known[0]
    first, after = _quoted(order[low]), _quoted(order[high + 1]) if high + 1 < len(order) else None
    if low == high:
        return missing + first
    if low == 0:
        return f"{missing}< {after}"
    return missing + (f"≥ {first}" if after is None else f"[{first}, {after})")


def _spelled_names(runs: list[Run], tops: Tops, leaves: list[str]) -> str:
    """The fewest names of a taxonomy that are exactly these leaves."""
    names: list[str] = []
    if runs[-1][1] < len(leaves) and len(runs) + runs[-1][1] - runs[0][0] > 1:  # more than one
        for low, high in runs:
            names += leaves[low : high + 1]
        return "{" + ", ".join(names) + "}"
    for low, high in runs:
        while low <= high:
            for last, name in tops[low]:  # the largest node first; the leaf itself is the last of them
                if last <= high:
                    names.append(name)
                    low = last + 1
                    break
            else:
                raise LookupError("a leaf that is no node")
    if len(names) == 1:
        return names[0] if INTERVAL_NAME.fullmatch(names[0]) else _quoted(names[0])
    return "{" + ", ".join(map(_quoted, names)) + "}"


def _tops(tree: LabelTree) -> Tops:
    """For every leaf the nodes that begin with it, the largest first, each as its last leaf and its name."""
    nodes: dict[int, dict[int, str]] = {}
    *_, root = tree.below
    for name, (first, last) in tree.below.items():  # a child, which is named where it is all of a node, comes first
        if name != root:
            nodes.setdefault(first, {}).setdefault(last, name)
    return {first: sorted(names.items(), reverse=True) for first, names in nodes.items()}


@lru_cache(maxsize=1 << 16)
def _quoted(name: str) -> str:
    return name if bare(name) else json.dumps(name, ensure_ascii=False)
