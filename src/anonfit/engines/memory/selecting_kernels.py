# SPDX-License-Identifier: Apache-2.0
"""Kernels that weigh the cuts of a node's columns by selections: how much of what they select must be read in vain."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.cutting import TIE
from anonfit.engines.memory.forms import NodeView
from anonfit.engines.memory.layout import FROM, PLACE, TILE, TO, Int
from anonfit.runtime.compiling import inner, kernel


class KernelSelections(NamedTuple):
    """Selections as kernels read them; rectangles of one selection stand together."""

    rectangles: NDArray[np.uint8]  # (rectangle, code of any column)
    lowest: NDArray[np.int64]  # (column, rectangle) the first code that it holds, the column's size if it holds none
    highest: NDArray[np.int64]  # (column, rectangle) the last one, -1 if it holds none
    runs: NDArray[np.int64]  # (column,) 1 where every rectangle holds all codes between its first and its last one
    selection: NDArray[np.int64]  # (rectangle,) ascending
    weights: NDArray[np.float64]  # (selection,)
    applies: NDArray[np.uint8]  # (signature, rectangle)


@inner
def _reaches(node: NodeView, selections: KernelSelections, column: Int, rectangle: Int) -> Any:
    """Whether a rectangle holds a code of the tile."""
    low, high = node.span[FROM, column], node.span[TO, column]
    held, first = node.columns.facts[TILE, column], node.columns.facts[PLACE, column]
    if held < 0 and selections.runs[column] == 1:
        return selections.lowest[column, rectangle] <= high and selections.highest[column, rectangle] >= low
    for code in range(low, high + 1):
        if selections.rectangles[rectangle, first + code] == 1 and (held < 0 or node.tile[held + code] == 1):
            return True
    return False


@kernel
def find_reaching(node: NodeView, selections: KernelSelections, reaching: Any) -> Any:
    """Write the rectangles that reach a node's tile in every column to `reaching`; how many there are."""
    used = np.int64(0)
    for rectangle in range(selections.selection.shape[0]):
        reached = True
        for column in range(node.span.shape[1]):
            if not _reaches(node, selections, np.int64(column), np.int64(rectangle)):
                reached = False
                break
        if reached:
            reaching[used] = rectangle
            used += 1
    return used


@inner
def _last_of_selection(selections: KernelSelections, reaching: Any, entry: Int) -> Any:
    """The entry after the rectangles of one selection, of which `entry` is the first."""
    which = selections.selection[reaching[entry]]
    while entry < reaching.shape[0] and selections.selection[reaching[entry]] == which:
        entry += 1
    return entry


@kernel
def imprecision(selections: KernelSelections, reaching: Any, signatures: Any, masses: Any) -> Any:
    """What the selections of some rectangles read of a node, per mass of its rows."""
    by_signature = np.zeros(selections.applies.shape[0])
    for row in range(signatures.shape[0]):
        by_signature[signatures[row]] += masses[row]
    read, mass = 0.0, 0.0
    for signature in range(by_signature.shape[0]):
        mass += by_signature[signature]
        if by_signature[signature] == 0:
            continue
        weight, entry = 0.0, np.int64(0)
        while entry < reaching.shape[0]:
            first, entry = entry, _last_of_selection(selections, reaching, entry)
            for place in range(first, entry):
                if selections.applies[signature, reaching[place]] == 1:
                    weight += selections.weights[selections.selection[reaching[first]]]
                    break
        read += by_signature[signature] * weight
    return read / mass


@inner
def _find_ends(
    node: NodeView, selections: KernelSelections, reaching: Any, column: Int, places: Any, count: Int, ends: Any
) -> Any:
    """Write the first and the last of a column's pieces that each rectangle reaches (`count` and -1 where it reaches
    none); whether some rectangle leaves out the first or the last piece. Without `places`, each code of the tile, which
    is a run, is a piece.
    """
    low, high, first = node.span[FROM, column], node.span[TO, column], node.columns.facts[PLACE, column]
    bounded, as_runs = False, places.shape[0] == 0 and selections.runs[column] == 1
    for entry in range(reaching.shape[0]):
        rectangle, lowest, highest = reaching[entry], np.int64(count), np.int64(-1)
        if as_runs:
            lowest = max(selections.lowest[column, rectangle], low) - low
            highest = min(selections.highest[column, rectangle], high) - low
        else:
            for code in range(low, high + 1):
                place = np.int64(code) - low if places.shape[0] == 0 else places[code]
                if place >= 0 and selections.rectangles[rectangle, first + code] == 1:
                    lowest, highest = min(lowest, place), max(highest, place)
        if lowest > highest:
            lowest, highest = np.int64(count), np.int64(-1)
        elif lowest > 0 or highest < count - 1:
            bounded = True
        ends[0, entry], ends[1, entry] = lowest, highest
    return bounded


@inner
def _weigh_beside(
    selections: KernelSelections, reaching: Any, signature: Int, ends: Any, below: Any, above: Any
) -> None:
    """Write the weight of the selections that reach what is up to each piece but the last, and what is above it, for
    rows of a signature.
    """
    cuts = below.shape[0] - 1
    for place in range(cuts + 1):
        below[place], above[place] = 0.0, 0.0
    entry = np.int64(0)
    while entry < reaching.shape[0]:
        first, entry = entry, _last_of_selection(selections, reaching, entry)
        lowest, highest = np.int64(cuts + 1), np.int64(-1)
        for place in range(first, entry):
            if selections.applies[signature, reaching[place]] == 1:
                lowest, highest = min(lowest, ends[0, place]), max(highest, ends[1, place])
        if highest >= 0:
            weight = selections.weights[selections.selection[reaching[first]]]
            below[lowest] += weight
            above[highest] += weight
    for place in range(1, cuts):
        below[place] += below[place - 1]
    for place in range(cuts - 1, -1, -1):
        above[place] += above[place + 1]
    for place in range(cuts):
        above[place] = above[place + 1]


@inner
def _leave_out_small(persons: Any, k: Int, left: Any) -> Any:
    """Leave out cuts without k persons on both sides; the first of the others that leave least, -1 if there is none."""
    best, least, low, whole = np.int64(-1), np.inf, np.int64(0), persons.sum()
    for cut in range(left.shape[0]):
        low += persons[cut]
        if low < k or whole - low < k:
            left[cut] = np.inf
        elif left[cut] < least - TIE:
            best, least = np.int64(cut), left[cut]
    return best


@kernel
def find_selecting_cut(
    node: NodeView,
    selections: KernelSelections,
    reaching: Any,
    column: Int,
    places: Any,
    count: Int,
    codes: Any,
    signatures: Any,
    masses: Any,
    persons: Any,
    left: Any,
) -> Any:
    """The piece of a column after which a cut leaves least imprecision of those with k persons on both sides (-1: there
    is none, or none can leave less); `left` gets what each leaves, infinity where there are fewer. The arrays before it
    are of entries: a node's rows, or groups of them.
    """
    ends = np.empty((2, reaching.shape[0]), np.int64)
    if count < 2 or not _find_ends(node, selections, reaching, column, places, count, ends):
        return np.int64(-1)
    by_signature = np.zeros((selections.applies.shape[0], count))
    of_place = np.zeros(count, np.int64)
    for entry in range(codes.shape[0]):
        code = np.int64(codes[entry])
        place = code - node.span[FROM, column] if places.shape[0] == 0 else places[code]
        by_signature[signatures[entry], place] += masses[entry]
        of_place[place] += persons[entry]
    below, above, mass = np.empty(count), np.empty(count), 0.0
    left[:] = 0.0
    for signature in range(by_signature.shape[0]):
        own = by_signature[signature].sum()
        mass += own
        if own == 0:
            continue
        _weigh_beside(selections, reaching, np.int64(signature), ends, below, above)
        low = 0.0
        for cut in range(count - 1):
            low += by_signature[signature, cut]
            left[cut] += low * below[cut] + (own - low) * above[cut]
    for cut in range(count - 1):
        left[cut] /= mass
    return _leave_out_small(of_place, node.k, left)


@kernel
def imprecision_of_parts(
    selections: KernelSelections,
    reaching: Any,
    first: Int,
    places: Any,
    count: Int,
    codes: Any,
    signatures: Any,
    masses: Any,
) -> Any:
    """What selections read, per mass, once every piece of a column, which begins at code `first` of all columns, is a
    part of its own.
    """
    of_place = np.zeros((selections.applies.shape[0], count))
    for row in range(codes.shape[0]):
        of_place[signatures[row], places[codes[row]]] += masses[row]
    read, reached = 0.0, np.zeros(count, np.uint8)
    for signature in range(of_place.shape[0]):
        if of_place[signature].sum() == 0:
            continue
        entry = np.int64(0)
        while entry < reaching.shape[0]:
            begin, entry = entry, _last_of_selection(selections, reaching, entry)
            reached[:] = 0
            for place in range(begin, entry):
                if selections.applies[signature, reaching[place]] == 1:
                    for code in range(places.shape[0]):
                        if places[code] >= 0 and selections.rectangles[reaching[place], first + code] == 1:
                            reached[places[code]] = 1
            weight = selections.weights[selections.selection[reaching[begin]]]
            for piece in range(count):
                if reached[piece] == 1:
                    read += weight * of_place[signature, piece]
    return read / of_place.sum()
