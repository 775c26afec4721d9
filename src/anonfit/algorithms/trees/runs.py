# SPDX-License-Identifier: Apache-2.0
"""Spans while a tree is grown: runs of one list of rows, parted by every public test."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.trees.kernels import part_spans
from anonfit.errors import RequestError

__all__ = ["SpanRuns"]


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
        found = np.ascontiguousarray(pieces[1:, order].T)
        return [found[edges[son] : edges[son + 1]] for son in range(len(starts))]

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
        found, place = [], 0
        while place < len(self.order):
            found.append(place)
            place = int(self.ends[place])
        return found
