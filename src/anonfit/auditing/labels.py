# SPDX-License-Identifier: Apache-2.0
"""The audit's own reader of labels (docs/labels.md): a label becomes the set of values it means.
It shares nothing with the code that writes labels, so a label that is written wrongly is read as what it says."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from anonfit.auditing.meanings import Meaning
from anonfit.auditing.scalars import moment, period

__all__ = ["INTERVAL_NAME", "Interval", "ValueSet", "bare", "leaf_interval", "read_bounds", "read_label"]

INTERVAL_NAME = re.compile(r'\[[^,"{}\x00-\x1f]+, [^,"{}\x00-\x1f]+[)\]]|[<≥] [^,"{}\x00-\x1f]*[^,"{}\s\x00-\x1f]')
_SPECIAL = re.compile(r'[,"{}\x00-\x1f\x7f-\x9f]')


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


def read_label(text: str | None, meaning: Meaning) -> ValueSet | None:
    """What a label means; None if the text is no label of the column. An empty cell means missing."""
    if text is None or text == "missing":
        return ValueSet(missing=True)
    if text == "*":
        return ValueSet(missing=True, everything=True)
    if text == "not missing":
        return ValueSet(everything=True)
    if text.startswith("missing or "):
        inner = _present(text.removeprefix("missing or "), meaning)
        return None if inner is None else replace(inner, missing=True)
    return _present(text, meaning)


def read_bounds(lower: str | None, upper: str | None, missing: str | None, *, meaning: Meaning) -> ValueSet | None:
    """What a pair of bounds and the word about missing values mean; None if they are no bounds of the column."""
    if missing not in (None, "no", "possible", "only"):
        return None
    if missing == "only":
        return ValueSet(missing=True) if lower is None and upper is None else None
    ends = [None if text is None else _bound(text, meaning) for text in (lower, upper)]
    if (ends[0] is None) != (lower is None) or (ends[1] is None) != (upper is None):
        return None
    if ends == [None, None]:
        return ValueSet(missing=missing == "possible", everything=True)
    found = _interval(ends[0], ends[1], closed=_closed_above(ends[0], ends[1], meaning))
    return None if found is None else replace(found, missing=missing == "possible")


def bare(name: str) -> bool:
    """Whether a name may stand unquoted."""
    return not (
        not name
        or name != name.strip()
        or _SPECIAL.search(name)
        or name[0] in "[<≥*"
        or name in ("missing", "not missing")
        or name.startswith("missing or ")
    )


def _present(text: str, meaning: Meaning) -> ValueSet | None:
    """A label without its part about missing values."""
    if meaning.type == "nominal" or meaning.tree is not None:
        return _named(text, meaning)
    if text.startswith(("< ", "≥ ")):
        end = _place(text[2:], meaning)
        if end is None:
            return None
        return _interval(None, end) if text[0] == "<" else _interval(end, None)
    if text.startswith("["):
        ends = [_place(part, meaning) for part in _parts(text[1:-1]) or ()]
        if text[-1] not in ")]" or len(ends) != 2 or None in ends:
            return None
        return _interval(ends[0], ends[1], closed=text[-1] == "]")
    point = _place(text, meaning)
    return None if point is None else _interval(point, point, closed=True)


def _interval(lower: Decimal | None, upper: Decimal | None, *, closed: bool = False) -> ValueSet | None:
    if lower is not None and upper is not None and (lower > upper or (lower == upper and not closed)):
        return None
    return ValueSet(intervals=(Interval(lower, upper, closed),))


def _closed_above(lower: Decimal | None, upper: Decimal | None, meaning: Meaning) -> bool:
    """Whether an upper bound is inclusive: only the end of a declared domain is, unless it is also a cut."""
    last = meaning.domain[1]
    if upper is None or upper != last:
        return False
    return last not in (meaning.cuts or ()) or lower == last


def _place(text: str, meaning: Meaning) -> Decimal | None:
    """Where a number, a date or a word of the order stands on the column's line."""
    if meaning.type != "ordinal":
        return meaning.scalar(text)
    name = _name(text)
    return None if name is None else _positions(meaning.order).get(name)


def _bound(text: str, meaning: Meaning) -> Decimal | None:
    """As `_place`, but a word stands in its column as it is: bounds are values, not labels."""
    return _positions(meaning.order).get(text) if meaning.type == "ordinal" else meaning.scalar(text)


@lru_cache(maxsize=64)
def _positions(order: tuple[str, ...]) -> dict[str, Decimal]:
    return {word: Decimal(position) for position, word in enumerate(order)}


def _named(text: str, meaning: Meaning) -> ValueSet | None:
    """One name or a set of names; in an ordered column with a taxonomy, the intervals of the leaves below them."""
    tree = meaning.tree
    if INTERVAL_NAME.fullmatch(text) or (tree is not None and meaning.type != "nominal" and text in tree.below):
        names: list[str | None] = [text]  # a name that is an interval is written as it is
    elif text.startswith("{") and text.endswith("}"):
        names = [_name(part) for part in _parts(text[1:-1]) or ("",)]
    else:
        names = [_name(text)]
    known = tuple(name for name in names if name is not None and (tree is None or name in tree.below))
    if len(set(known)) < len(names):
        return None
    if meaning.type == "nominal" or tree is None:
        return ValueSet(names=known)
    runs = [tree.below[name] for name in known]
    leaves = [tree.leaves[leaf] for first, last in runs for leaf in range(first, last + 1)]
    intervals = tuple(found for leaf in leaves if (found := leaf_interval(leaf, meaning)) is not None)
    return ValueSet(intervals=intervals) if len(intervals) == len(leaves) else None


def leaf_interval(leaf: str, meaning: Meaning) -> Interval | None:
    """What a leaf of a taxonomy over numbers, dates or words of an order means."""
    if meaning.type == "date":
        return _dates_of_leaf(leaf)
    found = _present(leaf, replace(meaning, tree=None))
    return found.intervals[0] if found is not None and found.intervals else None


def _dates_of_leaf(leaf: str) -> Interval | None:
    """The moments of a leaf: a moment, all of a day, month, quarter or year, or an interval from one to another."""
    if leaf.startswith(("< ", "≥ ")):
        only = _dates(leaf[2:])
        if only is None:
            return None
        return Interval(None, only.lower) if leaf[0] == "<" else Interval(only.lower, None)
    if not leaf.startswith("["):
        return _dates(leaf)
    ends = [_dates(part) for part in _parts(leaf[1:-1]) or ()]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    first, last = ends[0], ends[1]
    return Interval(first.lower, last.upper, last.closed) if leaf[-1] == "]" else Interval(first.lower, last.lower)


def _dates(text: str) -> Interval | None:
    """All moments of a period, or the one moment that a text states."""
    found = period(text)
    if found is not None:
        return Interval(*found)
    point = moment(text if text.count(":") > 1 else f"{text}:00")
    return None if point is None else Interval(point, point, closed=True)


def _parts(text: str) -> list[str] | None:
    """The parts of a list separated by a comma and a space; quoted parts may hold anything. None: not such a list."""
    if '"' not in text:
        return text.split(", ")
    parts: list[str] = []
    begin = 0
    while True:
        if text[begin : begin + 1] == '"':
            end = _quoted_end(text, begin)
        else:
            end = text.find(", ", begin)
            end = len(text) if end < 0 else end
        if end is None:
            return None
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
