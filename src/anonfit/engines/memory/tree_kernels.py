# SPDX-License-Identifier: Apache-2.0
"""What a split of a decision tree makes of the spans, and the counts of its parts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.count import at, persons_at, run_of
from anonfit.errors import RequestError
from anonfit.runtime.compiling import inner, kernel

# RowRun of a node's box: the first code, the code after the last one, the depth of the taxonomy at which it stands.
LOW, HIGH, DEPTH = 0, 1, 2

# What is found of a column: bits gained a person, bits of the split itself, where (the code above a cut, or the depth),
# and the highest code below a cut. No gain: nothing was found.
GAIN, INFO, PLACE, BEFORE, FACTS = 0, 1, 2, 3, 4


class RowRun(NamedTuple):
    """A run of rows of a list: what they have of one column, their class, and how many persons each stands for; no
    persons at all: one each.
    """

    codes: Any
    labels: Any
    persons: Any
    order: Any
    first: Any
    stop: Any


class Reach(NamedTuple):
    """The rows that can reach a node, by span; where they are the node's own (`is_shared`), there is no second list."""

    order: Any
    ends: Any
    segments: Any
    is_shared: Any


class Rule(NamedTuple):
    """What splits are held to and compared by.

    demand: k, bits, confidence; total: the node's own persons; logs: n log n of every n that is not too large; before:
    what these persons and their classes have of that; least: the fewest persons of two sons; penalty: 1 where cuts
    pay for their number.
    """

    classes: Any
    demand: Any
    total: Any
    logs: Any
    before: Any
    least: Any
    penalty: Any


class TreeScratch(NamedTuple):
    """Room to count in; `hist` is all zero between uses."""

    hist: Any  # (code, class)
    keys: Any  # (row,)
    sums: Any  # (2 * class,)
    values: Any  # (value,)
    table: Any  # (value, class)
    span_values: Any  # (value,)
    span_table: Any  # (value, class)
    bad: Any  # (value + 1,)


@inner
def n_log_n(logs: Any, number: Any) -> Any:
    """n log n, from a table as far as that goes."""
    if number < logs.shape[0]:
        return logs[at(number)]
    return number * np.log2(number)


@inner
def _part(codes: Any, starts: Any, order: Any, first: Any, stop: Any, buffer: Any, edges: Any) -> None:
    """Bring the rows of a run into the order of their sons, else as they were; edges: (son + 1,)"""
    for son in range(edges.shape[0]):
        edges[son] = 0
    for place in range(first, stop):
        row = order[at(place)]
        buffer[at(place)] = row
        edges[at(run_of(starts, starts.shape[0], codes[at(row)]) + 1)] += 1
    edges[0] = first
    for son in range(1, edges.shape[0]):
        edges[son] += edges[son - 1]
    for place in range(first, stop):
        row = buffer[at(place)]
        son = run_of(starts, starts.shape[0], codes[at(row)])
        order[at(edges[at(son)])] = row
        edges[at(son)] += 1
    for son in range(edges.shape[0] - 1, 0, -1):
        edges[son] = edges[son - 1]
    edges[0] = first


@kernel
def part_rows(
    codes: Any,
    starts: Any,
    order: Any,
    first: Any,
    stop: Any,
    buffer: Any,
    edges: Any,
    classes: Any,
    persons: Any,
    counts: Any,
) -> None:
    """Part a node's rows among its sons and count the persons of their classes; no persons: one a row.

    edges: (son + 1,); counts: (son, class)
    """
    _part(codes, starts, order, first, stop, buffer, edges)
    for son in range(edges.shape[0] - 1):
        for place in range(edges[son], edges[son + 1]):
            row = order[at(place)]
            counts[at(son), at(classes[at(row)])] += persons_at(persons, row)


@kernel
def part_spans(codes: Any, starts: Any, order: Any, ends: Any, segments: Any, buffer: Any, pieces: Any) -> Any:
    """Part every span of some segments among sons; how many pieces that gave, and spans there are more.

    pieces: (fact, piece) son, first place, place after the last; a piece goes on where the one before of its son ended.
    """
    sons = starts.shape[0]
    edges = np.empty(sons + 1, np.int64)
    last = np.full(sons, -1, np.int64)
    used, more = np.int64(0), np.int64(0)
    for segment in range(segments.shape[0]):
        place = segments[segment, 0]
        while place < segments[segment, 1]:
            stop = np.int64(ends[at(place)])
            _part(codes, starts, order, place, stop, buffer, edges)
            more -= 1
            for son in range(sons):
                if edges[son + 1] > edges[son]:
                    more += 1
                    ends[at(edges[son])] = edges[son + 1]
                    if last[son] >= 0 and pieces[2, last[son]] == edges[son]:
                        pieces[2, last[son]] = edges[son + 1]
                    else:
                        pieces[0, used], pieces[1, used], pieces[2, used] = son, edges[son], edges[son + 1]
                        last[son] = used
                        used += 1
            place = stop
    return used, more


TIE = 1e-9
# The numbers of a demand.
K, BITS, CONFIDENCE = 0, 1, 2


@inner
def holds(sums: Any, first: Any, classes: Any, demand: Any) -> Any:
    """Whether a span with these persons by class may exist; one that nobody has may."""
    persons, most = np.int64(0), np.int64(0)
    for label in range(first, first + classes):
        persons += sums[at(label)]
        most = max(most, sums[at(label)])
    if persons == 0:
        return True
    if persons < demand[K]:
        return False
    if demand[CONFIDENCE] < 1.0 and most > (demand[CONFIDENCE] + TIE) * persons:
        return False
    if demand[BITS] > 0.0:
        entropy = np.log2(persons)
        for label in range(first, first + classes):
            if sums[at(label)] > 0:
                entropy -= sums[at(label)] * np.log2(sums[at(label)]) / persons
        return entropy >= demand[BITS] - TIE
    return True


@inner
def _is_few(size: Any, rows: Any) -> Any:
    """Whether a table of so many values is cheaper than sorting the rows."""
    return size <= 4 * rows + 64


@inner
def _sort(keys: Any, count: Any) -> None:
    """Sort the first keys; in one place, for it takes long to compile."""
    keys[:count].sort()


@inner
def compact(rows: RowRun, low: Any, size: Any, classes: Any, values: Any, table: Any, scratch: TreeScratch) -> Any:
    """The values of some rows, ascending, with their persons by class; how many values. table: (value, class)"""
    if _is_few(size, rows.stop - rows.first):
        return _compact_few(rows, low, size, classes, values, table, scratch.hist)
    return _compact_many(rows, classes, values, table, scratch.keys)


@inner
def fill(rows: RowRun, low: Any, classes: Any, hist: Any) -> None:
    """Add the persons of some rows to a table of codes from `low` on. hist: (code, class)"""
    for place in range(rows.first, rows.stop):
        row = at(rows.order[at(place)])
        hist[at((np.int64(rows.codes[row]) - low) * classes + rows.labels[row])] += persons_at(rows.persons, row)


@inner
def _compact_few(rows: RowRun, low: Any, size: Any, classes: Any, values: Any, table: Any, hist: Any) -> Any:
    fill(rows, low, classes, hist)
    count = np.int64(0)
    for code in range(size):
        persons = np.int64(0)
        for label in range(classes):
            persons += hist[at(code * classes + label)]
        if persons > 0:
            values[at(count)] = low + code
            for label in range(classes):
                table[at(count * classes + label)] = hist[at(code * classes + label)]
                hist[at(code * classes + label)] = 0
            count += 1
    return count


@inner
def _compact_many(rows: RowRun, classes: Any, values: Any, table: Any, keys: Any) -> Any:
    held, weighted = rows.stop - rows.first, rows.persons.shape[0] > 0
    for place in range(held):
        row = at(rows.order[at(rows.first + place)])
        code = np.int64(rows.codes[row])
        keys[at(place)] = code if weighted else code * classes + rows.labels[row]
    _sort(keys, held)
    count = np.int64(0)
    if weighted:
        count = _distinct(keys, held, values)
        spread(rows, classes, values, count, table)
        return count
    for place in range(held):
        code = keys[at(place)] // classes
        if count == 0 or values[at(count - 1)] != code:
            values[at(count)] = code
            for label in range(classes):
                table[at(count * classes + label)] = 0
            count += 1
        table[at((count - 1) * classes + keys[at(place)] % classes)] += 1
    return count


@inner
def _distinct(keys: Any, held: Any, values: Any) -> Any:
    """The different ones of sorted keys; how many."""
    count = np.int64(0)
    for place in range(held):
        if count == 0 or values[at(count - 1)] != keys[at(place)]:
            values[at(count)] = keys[at(place)]
            count += 1
    return count


@inner
def reached_values(codes: Any, reach: Reach, low: Any, size: Any, scratch: TreeScratch) -> Any:
    """The values of the rows that can reach a node, ascending, to `scratch.values`; how many."""
    hist, keys, values, segments = scratch.hist, scratch.keys, scratch.values, reach.segments
    rows, held, count = np.int64(0), np.int64(0), np.int64(0)
    for segment in range(segments.shape[0]):
        rows += segments[segment, 1] - segments[segment, 0]
    is_few = _is_few(size, rows)
    for segment in range(segments.shape[0]):
        for place in range(segments[segment, 0], segments[segment, 1]):
            code = np.int64(codes[at(reach.order[at(place)])])
            if is_few:
                hist[at(code - low)] = 1
            else:
                keys[at(held)] = code
                held += 1
    if not is_few:
        _sort(keys, held)
        return _distinct(keys, held, values)
    for place in range(size):
        if hist[at(place)] > 0:
            hist[at(place)] = 0
            values[at(count)] = low + place
            count += 1
    return count


@inner
def spread(rows: RowRun, classes: Any, values: Any, count: Any, table: Any) -> None:
    """Count persons by class over values that hold theirs. table: (value, class)"""
    for place in range(count * classes):
        table[at(place)] = 0
    for place in range(rows.first, rows.stop):
        row = at(rows.order[at(place)])
        entry = run_of(values, count, rows.codes[row]) * classes + rows.labels[row]
        table[at(entry)] += persons_at(rows.persons, row)


class SpanRuns:
    """The rows by span. The span that begins at a place of `order` ends before `ends[place]`.

    What can reach a node are segments of the list: (segment, 2). Parting the spans of one node moves rows within
    spans only, so the segments of all other nodes stay what they are.
    """

    def __init__(self, labels: NDArray[np.int32], *, class_is_public: bool, max_spans: int) -> None:
        rows = len(labels)
        self.all_segments = np.array([[0, rows]], np.int64)
        self.order = np.arange(rows, dtype=np.int32)
        self.ends = np.full(rows, rows, np.int32)
        self.count = 1
        if class_is_public:
            self.order = np.argsort(labels, kind="stable").astype(np.int32)
            edges = np.append(0, np.cumsum(np.bincount(labels)))
            first, stop = edges[:-1], edges[1:]
            self.ends[first[stop > first]] = stop[stop > first]
            self.count = int((stop > first).sum())
        self._max_spans = max_spans
        self._buffer = np.empty(rows, np.int32)
        self._pieces = np.empty((3, rows), np.int64)

    @classmethod
    def none(cls, max_spans: int) -> SpanRuns:
        """No list: where the rows that can reach a node are its own. Spans are counted all the same."""
        return cls(np.zeros(0, np.int32), class_is_public=False, max_spans=max_spans)

    def part(
        self, codes: NDArray[np.int32], starts: NDArray[np.int32], segments: NDArray[np.int64]
    ) -> list[NDArray[np.int64]]:
        """Part the spans of some segments among sons, of which each takes the codes from its start up to the next one's
        start; the segments of each son.
        """
        used, more = part_spans(codes, starts, self.order, self.ends, segments, self._buffer, self._pieces)
        self.add(int(more))
        pieces = self._pieces[:, :used]
        order = np.argsort(pieces[0], kind="stable")
        edges = np.searchsorted(pieces[0, order], np.arange(len(starts) + 1))
        segments_by_son = np.ascontiguousarray(pieces[1:, order].T)
        return [segments_by_son[edges[son] : edges[son + 1]] for son in range(len(starts))]

    def add(self, more: int) -> None:
        """There are so many more spans; too many are refused."""
        self.count += more
        if self.count > self._max_spans:
            raise RequestError(
                f"the tree has more than max_spans = {self._max_spans} spans; raise max_spans or k, or let fewer "
                "columns be private: a test of a private column lets spans run through all its branches."
            )

    def starts(self) -> list[int]:
        """The place at which each span begins."""
        begins, place = [], 0
        while place < len(self.order):
            begins.append(place)
            place = int(self.ends[place])
        return begins
