# SPDX-License-Identifier: Apache-2.0
"""The one way in which a label is written (docs/labels.md), as the audit has it: a label that means the same but is
written otherwise could carry a message."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from math import floor

from anonfit.auditing.axes import Run
from anonfit.auditing.labels import INTERVAL_NAME, Interval, ValueSet, bare
from anonfit.auditing.meanings import Meaning, Tree
from anonfit.auditing.region_cells import cell_count, cell_reader

__all__ = ["speller"]

Tops = Mapping[int, Sequence[tuple[int, str]]]

_EPOCH = datetime.datetime(1970, 1, 1)
_WHOLE = 10**15  # whole numbers below are written without a point


def speller(meaning: Meaning, *, observed: bool) -> Callable[[str, ValueSet], bool]:
    """A function that says whether a text is the label of what it means, in a column of a recoding."""
    if meaning.type not in ("nominal", "ordinal") and meaning.tree is None:
        return lambda text, found: text in _labels_of_line(found, meaning, observed=observed)
    read, tops = cell_reader(meaning), {} if meaning.tree is None else _tops(meaning.tree)

    def spelled(text: str, found: ValueSet) -> bool:
        runs = read(found)
        return runs is None or text == _label_of_cells(runs, meaning, tops)

    return spelled


def _labels_of_line(found: ValueSet, meaning: Meaning, *, observed: bool) -> list[str]:
    """The label of an interval of numbers or dates; long whole numbers may have one of two forms."""
    low, high = meaning.domain
    domain = None if low is None or high is None else Interval(low, high, closed=True)
    everything = found.everything or (not observed and domain is not None and found.intervals == (domain,))
    if everything and (found.missing or not meaning.missing):
        return ["*"]
    if everything and (domain is None or observed):
        return ["not missing"]
    if not everything and not found.intervals:
        return ["missing"]
    inner = domain if everything and domain is not None else found.intervals[0]
    return [("missing or " if found.missing else "") + text for text in _intervals(inner, meaning)]


def _intervals(one: Interval, meaning: Meaning) -> list[str]:
    lower = [""] if one.lower is None else _scalars(one.lower, meaning.type, meaning.scale)
    upper = [""] if one.upper is None else _scalars(one.upper, meaning.type, meaning.scale)
    if one.lower is None:
        return [f"< {text}" for text in upper]
    if one.upper is None:
        return [f"≥ {text}" for text in lower]
    if one.closed and one.lower == one.upper:
        return lower
    return [f"[{first}, {last}{']' if one.closed else ')'}" for first in lower for last in upper]


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
    found = _EPOCH + datetime.timedelta(seconds=seconds)
    if scale != "time":
        return found.date().isoformat() if seconds % 86400 == 0 else ""
    parts = f"{value - seconds:.9f}".partition(".")[2]
    digits = parts[:6] if parts.endswith("000") else parts
    return found.isoformat() + (f".{digits}" if digits.strip("0") else "")


def _label_of_cells(runs: list[Run], meaning: Meaning, tops: Tops) -> str | None:
    """The label of some leaves or words; None where there is none."""
    shift, count = int(bool(meaning.missing)), cell_count(meaning)
    if runs == [(0, count - 1)]:
        return "*"
    missing = shift == 1 and bool(runs) and runs[0][0] == 0
    known = [(max(low, shift) - shift, high - shift) for low, high in runs if high >= shift]
    if not known:
        return "missing" if missing else None
    if known == [(0, count - shift - 1)]:
        return "not missing"
    inner = _words(known, meaning) if meaning.tree is None else _names(known, tops)
    return None if inner is None else f"missing or {inner}" if missing else inner


def _words(runs: list[Run], meaning: Meaning) -> str | None:
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


def _names(runs: list[Run], tops: Tops) -> str:
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


def _tops(tree: Tree) -> Tops:
    """For every leaf the nodes that begin with it, the largest first, each as its last leaf and its name."""
    found: dict[int, dict[int, str]] = {}
    *_, root = tree.below
    for name, (first, last) in tree.below.items():  # a child, which is named where it is all of a node, comes first
        if name != root:
            found.setdefault(first, {}).setdefault(last, name)
    return {first: sorted(some.items(), reverse=True) for first, some in found.items()}


def _quoted(name: str) -> str:
    return name if bare(name) else json.dumps(name, ensure_ascii=False)
