# SPDX-License-Identifier: Apache-2.0
"""Labels in the cells of a recoding: what lies between two neighbouring cuts, one leaf or one word is a cell, and
missing is cell 0 of a column that has missing values. The tree in recoding.json counts these cells."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from anonfit.auditing.axes import Run, joined
from anonfit.auditing.labels import Interval, ValueSet, leaf_interval
from anonfit.auditing.meanings import Meaning
from anonfit.errors import RecodingError

__all__ = ["cell_count", "cell_reader", "cut_count"]

Ends = tuple[int | None, int | None]


def cell_count(meaning: Meaning) -> int:
    """How many cells a recoding has of a column."""
    if meaning.missing is None:
        raise RecodingError(f"The recoding does not say whether column '{meaning.name}' has missing values.")
    return _present(meaning) + meaning.missing


def cut_count(meaning: Meaning) -> int:
    """How many cuts a recoding has of a column, 0 where leaves or words are its cells."""
    return 0 if meaning.tree is not None or meaning.cuts is None else len(meaning.cuts)


def _present(meaning: Meaning) -> int:
    """The cells without missing."""
    if meaning.tree is not None:
        return len(meaning.tree.leaves)
    if meaning.type == "ordinal":
        return len(meaning.order)
    if meaning.cuts is None:
        needed = "taxonomy" if meaning.type == "nominal" else "cuts"
        raise RecodingError(f"The recoding has no {needed} of column '{meaning.name}'.")
    return len(meaning.cuts) + 1


def cell_reader(meaning: Meaning) -> Callable[[ValueSet], list[Run] | None]:
    """A function that gives the runs of cells that are exactly a label's values; None if cells cannot make them.

    Where a column has no missing values, "*" is all its cells, and no other label may speak of missing.
    """
    shift, last = int(bool(meaning.missing)), cell_count(meaning) - 1
    present = _names(meaning) if meaning.type == "nominal" else _intervals(meaning)

    def cells(found: ValueSet) -> list[Run] | None:
        runs: list[Run] = [(shift, last)] if found.everything else []
        for low, high in () if found.everything else present(found):
            if low is None or high is None:
                return None
            runs.append((low + shift, high + shift))
        if found.missing and shift:
            runs.append((0, 0))
        elif found.missing and not found.everything:
            return None
        return joined(runs)

    return cells


def _names(meaning: Meaning) -> Callable[[ValueSet], list[Ends]]:
    """The leaves below names."""
    below = {} if meaning.tree is None else meaning.tree.below
    return lambda found: [below.get(name, (None, None)) for name in found.names]


def _intervals(meaning: Meaning) -> Callable[[ValueSet], list[Ends]]:
    """The cells of intervals."""
    if meaning.tree is not None:
        place = {leaf_interval(leaf, meaning): number for number, leaf in enumerate(meaning.tree.leaves)}
        return lambda found: [(place.get(one), place.get(one)) for one in found.intervals]
    if meaning.type == "ordinal":
        return lambda found: [_words(one, len(meaning.order) - 1) for one in found.intervals]
    cuts = {cut: number for number, cut in enumerate(sorted(meaning.cuts or ()))}
    return lambda found: [_between(one, meaning, cuts) for one in found.intervals]


def _words(interval: Interval, last: int) -> Ends:
    """The words of an interval of an order, whose ends are places in it."""
    low = 0 if interval.lower is None else int(interval.lower)
    if interval.upper is None:
        return low, last
    return low, int(interval.upper) - (0 if interval.closed else 1)


def _between(interval: Interval, meaning: Meaning, cuts: dict[Decimal, int]) -> Ends:
    """The cells between two cuts, or a cut and an end of the domain."""
    first, last = meaning.domain
    if interval.lower is None or (interval.lower == first and first not in cuts):
        low: int | None = 0
    else:
        low = cuts[interval.lower] + 1 if interval.lower in cuts else None
    if interval.upper is None:
        return low, len(cuts)
    if interval.closed:
        return low, len(cuts) if interval.upper == last else None
    return low, cuts.get(interval.upper)
