# SPDX-License-Identifier: Apache-2.0
"""Naive Bayes as programs of 2006 may have had it: names by their shares, and numbers in ranges of equal width or as
normal distributions. TKDE 2007 does not say which one its program (Orange) was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.evaluation.learners import codes_of

Shares: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = Literal["ranges", "normal"]
RANGES = 10
"""How many ranges of equal width a column of numbers has."""
WEIGHT = 2.0
"""The m of m-estimates, as Orange sets it."""


@dataclass
class NaiveBayes:
    """A model of classes. Shares are m-estimates: WEIGHT rows of each class have the values of all rows."""

    numbers: Numbers
    ranges: int = RANGES
    _classes: pl.Series = field(default_factory=pl.Series, init=False, repr=False)
    _prior: Shares = field(default_factory=lambda: np.zeros(0), init=False, repr=False)
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def fit(self, features: pl.DataFrame, labels: pl.Series) -> NaiveBayes:
        """Learn from rows, none of which lacks a value."""
        self._classes = labels.unique().sort()
        codes = codes_of(labels, self._classes)
        self._prior = np.log(np.bincount(codes, minlength=len(self._classes)) / len(codes))
        self._known = {column.name: self._column(column, codes) for column in features}
        return self

    def predict(self, features: pl.DataFrame) -> pl.Series:
        """The most likely class of each row."""
        chances = np.tile(self._prior, (len(features), 1))
        for name, (kind, known, table) in self._known.items():
            values = features[name]
            if kind == "normal":
                middle, width = table
                apart = (values.cast(pl.Float64).to_numpy()[:, None] - middle) / width
                chances += -0.5 * apart * apart - np.log(width)
            else:
                chances += table[_places(values, kind, known)]
        return self._classes.gather(chances.argmax(axis=1))

    def _column(self, column: pl.Series, codes: NDArray[np.int64]) -> tuple[str, Any, Any]:
        if column.dtype.is_numeric() and self.numbers == "normal":
            numbers = column.cast(pl.Float64).to_numpy()
            parts = [numbers[codes == label] for label in range(len(self._classes))]
            width = np.array([max(float(part.std(ddof=1)), 1e-3) if len(part) > 1 else 1.0 for part in parts])
            return "normal", None, (np.array([part.mean() for part in parts]), width)
        if column.dtype.is_numeric():
            low, high = (float(end) for end in (column.min(), column.max()))  # type: ignore[arg-type]
            kind, size = "ranges", self.ranges
            known: Any = (low, max(high - low, 1e-12), self.ranges)
        else:
            names = column.cast(pl.String).unique().sort()
            kind, known, size = "names", names, len(names)
        counts = np.zeros((size + 1, len(self._classes)))
        np.add.at(counts, (_places(column, kind, known), codes), 1)
        whole = counts.sum(axis=1, keepdims=True) / len(codes)
        shares = (counts + WEIGHT * whole) / (counts.sum(axis=0) + WEIGHT)
        # A value that was not there tells nothing of the class.
        return kind, known, np.log(np.where(whole > 0, shares, 1.0))


def _places(values: pl.Series, kind: str, known: Any) -> NDArray[np.int64]:
    """The place of each value among names or ranges; numbers beyond the ends are in the outer ranges."""
    if kind == "names":
        return codes_of(values.cast(pl.String), known)
    low, width, ranges = known
    shares = (values.cast(pl.Float64).to_numpy() - low) / width
    places: NDArray[np.int64] = np.clip(np.floor(shares * ranges), 0, ranges - 1).astype(np.int64)
    return places
