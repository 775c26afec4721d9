# SPDX-License-Identifier: Apache-2.0
"""The one spelling of a label (docs/labels.md): one that is written otherwise could carry a message."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache
from math import floor

from anonfit.auditing.labels import INTERVAL_NAME, Interval, Run, ValueSet, bare, cell_reader
from anonfit.auditing.meanings import Ends, LabelMeaning, LabelTree

Tops = Mapping[int, Sequence[tuple[int, str]]]

_EPOCH = datetime.datetime(1970, 1, 1)
_WHOLE = 10**15  # whole numbers below are written without a point


def speller(meaning: LabelMeaning, *, observed: bool) -> Callable[[str, ValueSet], bool]:
    """A function that says whether a text, which was read as these values, is spelled as their label must be."""
    if meaning.type not in ("nominal", "ordinal") and meaning.tree is None:
        return lambda text, values: text in _labels_of_line(values, meaning, observed=observed)
    read, tops = cell_reader(meaning), {} if meaning.tree is None else _tops(meaning.tree)

    def spelled(text: str, values: ValueSet) -> bool:
        runs = read(values)
        return runs is None or text == _label_of_cells(runs, meaning, tops)

    return spelled


def _labels_of_line(values: ValueSet, meaning: LabelMeaning, *, observed: bool) -> list[str]:
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
        if (meaning.closed and last is not None) or (first is not None and first == last):
            return [_spelled_run(first, last)]
        if meaning.closed and first is not None:
            return [f"≥ {int(first)}"]
    lower = [""] if interval.lower is None else _scalars(interval.lower, meaning.type, meaning.scale)
    upper = [""] if interval.upper is None else _scalars(interval.upper, meaning.type, meaning.scale)
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
    return first, upper.to_integral_value(ROUND_FLOOR) if interval.closed else upper.to_integral_value(
        ROUND_CEILING
    ) - 1


def _spelled_run(first: Decimal | None, last: Decimal | None) -> str:
    """Whole numbers with both ends, which are written with all their digits."""
    assert last is not None
    if first is None:
        return f"≤ {int(last)}"
    return str(int(last)) if first == last else f"{int(first)}–{int(last)}"


@lru_cache(maxsize=1 << 16)
def _scalars(value: Decimal, kind: str, scale: str | None) -> list[str]:
    """How a number or date is written."""
    if kind == "date":
        return [_moment(value, scale)]
    whole = value == value.to_integral_value()
    if whole and abs(value) < _WHOLE:
        return [str(int(value))]
    return [repr(float(value)), *([str(int(value))] if whole else [])]


def _moment(value: Decimal, scale: str | None) -> str:
    seconds = floor(value)  # what `//` and `%` make of a Decimal below 0 is cut off at 0, not at the next number below
    moment_of_day = _EPOCH + datetime.timedelta(seconds=seconds)
    if scale != "time":
        return moment_of_day.date().isoformat() if seconds % 86400 == 0 else ""
    parts = f"{value - seconds:.9f}".partition(".")[2]
    digits = parts[:6] if parts.endswith("000") else parts
    return moment_of_day.isoformat() + (f".{digits}" if digits.strip("0") else "")


def _label_of_cells(runs: list[Run], meaning: LabelMeaning, tops: Tops) -> str | None:
    """The label of some leaves or words; None where there is none."""
    shift, count = int(bool(meaning.missing)), meaning.cells
    if runs == [(0, count - 1)]:
        return "*"
    missing = shift == 1 and bool(runs) and runs[0][0] == 0
    known = [(max(low, shift) - shift, high - shift) for low, high in runs if high >= shift]
    if not known:
        return "missing" if missing else None
    if known == [(0, count - shift - 1)]:
        return "not missing"
    inner = _spelled_words(known, meaning) if meaning.tree is None else _spelled_names(known, tops)
    return None if inner is None else f"missing or {inner}" if missing else inner


def _spelled_words(runs: list[Run], meaning: LabelMeaning) -> str | None:
    if len(runs) > 1:
        return None
    (low, high), order = runs[0], meaning.order
    if low == high:
        return _quoted(order[low])
    if low == 0:
        return f"< {_quoted(order[high + 1])}"
    if high == len(order) - 1:
        return f"≥ {_quoted(order[low])}"
    return f"[{_quoted(order[low])}, {_quoted(order[high + 1])})"


def _spelled_names(runs: list[Run], tops: Tops) -> str:
    """The fewest names of a taxonomy that are exactly these leaves."""
    names = []
    for low, high in runs:
        while low <= high:
            last, name = next((last, name) for last, name in tops[low] if last <= high)
            names.append(name)
            low = last + 1
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


def _quoted(name: str) -> str:
    return name if bare(name) else json.dumps(name, ensure_ascii=False)
