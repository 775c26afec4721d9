# SPDX-License-Identifier: Apache-2.0
"""From the columns of a released table to features: labels, bounds, and columns that are released as they are.

Each distinct label is read once; rows are looked up by their codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.auditing.labels import ValueSet, read_label
from anonfit.auditing.meanings import LabelMeaning
from anonfit.errors import DataError, counted
from anonfit.estimators import features
from anonfit.estimators.features import Encoding, FeatureColumn, Intervals, Leaves, Numbers, Parts, on_line
from anonfit.tables.frames import categorized
from anonfit.tables.schema import texts_of

MISSING_WORDS = {"no": features.NEVER, "possible": features.POSSIBLE, "only": features.ALWAYS}


class Reader(Protocol):
    """What becomes of one column, or of the columns of one column's bounds."""

    def features(self, encoding: Encoding, names: dict[str, str]) -> list[str]:
        """The names of its features, where columns have other names than they were learned with."""

    def numbers(self, table: pl.DataFrame, encoding: Encoding) -> Numbers:
        """The features of each row. (row, feature)"""


# --- labels -----------------------------------------------------------------------------------------------------


def distinct_texts(values: pl.Series) -> tuple[list[str | None], NDArray[np.int64]]:
    """The distinct labels of a column, None for an empty cell, and each row's place among them."""
    if isinstance(values.dtype, pl.Enum):
        known = values.dtype.categories
        codes = values.to_physical().fill_null(len(known)).to_numpy()
    else:
        known, codes = categorized(texts_of(values.fill_nan(None) if values.dtype.is_float() else values))
    # Categories may be there that no row has.
    used = np.flatnonzero(np.bincount(codes, minlength=len(known) + 1))
    place = np.zeros(len(known) + 1, np.int64)
    place[used] = np.arange(len(used))
    texts: list[str | None] = pl.concat([known, pl.Series([None], dtype=pl.String)]).gather(used).to_list()
    return texts, place.take(codes)


def _refuse(name: str, bad: NDArray[np.bool_], what: str) -> None:
    """An error that says how many rows are wrong and which is the first, never what they hold."""
    rows = np.flatnonzero(bad)
    if len(rows):
        raise DataError(
            f"column '{name}': {counted(len(rows), 'row')} (first: row {rows[0] + 1}) "
            f"{'is' if len(rows) == 1 else 'are'} {what}; encode what a release of anonfit "
            "holds, and give its recoding."
        )


@dataclass(frozen=True, slots=True)
class LabelReader:
    """A column of labels."""

    meaning: LabelMeaning
    column: FeatureColumn

    def features(self, encoding: Encoding, names: dict[str, str]) -> list[str]:
        """Those of its column."""
        return self.column.features(encoding, names.get(self.column.name, self.column.name))

    def numbers(self, table: pl.DataFrame, encoding: Encoding) -> Numbers:
        """The features of each row's label."""
        texts, rows = distinct_texts(table[self.column.name])
        labels = [self._read(text) for text in texts]
        bad = np.array([label is None for label in labels], dtype=bool)
        _refuse(self.column.name, bad[rows], "no labels that it can have")
        parts = self._parts([label for label in labels if label is not None])
        return self.column.numbers(parts, encoding).take(rows, axis=0)

    def _read(self, text: str | None) -> ValueSet | None:
        """What a label means, None if the column cannot have it."""
        label = read_label(text, self.meaning)
        if label is None or self.column.has_missing or not label.missing:
            return label
        # Where nothing is missing, everything is everything that is not.
        return ValueSet(everything=True) if label.everything else None

    def _parts(self, labels: Sequence[ValueSet]) -> Parts:
        missing = np.array([label.missing for label in labels], dtype=bool)
        if isinstance(self.column, features.LeafColumn):
            return Leaves([self._positions(label) for label in labels], missing)
        ends = np.array([self._ends(label) for label in labels], dtype=np.float64).reshape(-1, 2)
        known = np.array([label.everything or bool(label.intervals) for label in labels], dtype=bool)
        return Intervals(ends[:, 0], ends[:, 1], features.missing_share(known, missing))

    def _positions(self, label: ValueSet) -> Sequence[int]:
        tree = self.meaning.tree
        assert tree is not None
        if label.everything:
            return range(len(tree.leaves))
        runs = [tree.below[name] for name in label.names]
        return sorted({leaf for first, last in runs for leaf in range(first, last + 1)})

    def _ends(self, label: ValueSet) -> tuple[float, float]:
        if not label.intervals:
            return np.nan, np.nan
        interval = label.intervals[0]
        is_date = self.meaning.type == "date"
        ends = (interval.lower, interval.upper)
        lower, upper = (np.nan if end is None else on_line(end, is_date=is_date) for end in ends)
        # The upper end of an ordinal interval is the last word inside, not the first one beyond.
        return lower, upper - 1 if self.meaning.type == "ordinal" and not interval.closed else upper


# --- bounds -----------------------------------------------------------------------------------------------------


def bounds_names(name: str) -> tuple[str, str, str]:
    """The columns that are released in place of an ordered one, with values = 'bounds'."""
    return f"{name}_lower", f"{name}_upper", f"{name}_missing"


def places_of(values: pl.Series, meaning: LabelMeaning) -> Numbers:
    """Where each bound stands, NaN where it is empty: numbers, days, or ranks of words."""
    if meaning.type == "continuous" and values.dtype.is_numeric():
        return values.cast(pl.Float64).fill_null(np.nan).to_numpy()
    texts, rows = distinct_texts(values)
    ranks = {word: float(rank) for rank, word in enumerate(meaning.order)}

    def place(text: str) -> float | None:
        if meaning.type == "ordinal":
            return ranks.get(text)
        scalar = meaning.scalar(text)
        return None if scalar is None else on_line(scalar, is_date=meaning.type == "date")

    places = [np.nan if text is None else place(text) for text in texts]
    bad = np.array([place is None for place in places], dtype=bool)
    _refuse(values.name, bad[rows], "no bounds that it can have")
    return np.array(places, dtype=np.float64).take(rows)


@dataclass(frozen=True, slots=True)
class BoundsReader:
    """The columns of an ordered column's bounds."""

    meaning: LabelMeaning
    column: FeatureColumn
    inputs: tuple[str, ...]
    """Lower, upper and, where values may be missing, the column that says so."""

    def features(self, encoding: Encoding, names: dict[str, str]) -> list[str]:
        """Those of the column whose bounds they are."""
        return self.column.features(encoding, names.get(self.column.name, self.column.name))

    def numbers(self, table: pl.DataFrame, encoding: Encoding) -> Numbers:
        """The features of each row's bounds."""
        lower, upper = (places_of(table[name], self.meaning) for name in self.inputs[:2])
        if self.meaning.type == "ordinal":
            upper = upper - 1
        missing = self._missing(table)
        only = missing == features.ALWAYS
        intervals = Intervals(np.where(only, np.nan, lower), np.where(only, np.nan, upper), missing)
        return self.column.numbers(intervals, encoding)

    def _missing(self, table: pl.DataFrame) -> Numbers:
        if len(self.inputs) < 3:
            return np.zeros(len(table))
        texts, rows = distinct_texts(table[self.inputs[2]])
        shares = [MISSING_WORDS.get(text or "", np.nan) for text in texts]
        missing = np.array(shares, dtype=np.float64).take(rows)
        _refuse(self.inputs[2], np.isnan(missing), "not one of no, possible, only")
        return missing


# --- raw columns ------------------------------------------------------------------------------------------------


def is_raw(dtype: pl.DataType) -> bool:
    """Whether values of a type are features as they are."""
    return dtype.is_numeric() or dtype in (pl.Boolean, pl.Date, pl.Datetime)


@dataclass(frozen=True, slots=True)
class RawReader:
    """A column of numbers, dates or truth values that is no quasi-identifier: passed on, dates in days since 1970."""

    name: str

    def features(self, encoding: Encoding, names: dict[str, str]) -> list[str]:  # noqa: ARG002 - a Reader's
        """Its name."""
        return [names.get(self.name, self.name)]

    def numbers(self, table: pl.DataFrame, encoding: Encoding) -> Numbers:  # noqa: ARG002 - a Reader's
        """The values as they are, NaN where they are missing."""
        self.require_numbers(table)
        values: Any = table[self.name]
        if values.dtype == pl.Date:
            values = values.to_physical()
        elif values.dtype == pl.Datetime:
            values = values.dt.epoch("us") / 86_400_000_000
        numbers: Numbers = values.cast(pl.Float64).fill_null(np.nan).to_numpy()
        return numbers.reshape(-1, 1)

    def require_numbers(self, table: pl.DataFrame) -> None:
        """Refuse values that are no features."""
        if not is_raw(table[self.name].dtype):
            raise DataError(
                f"column '{self.name}' is no quasi-identifier and holds no numbers, so it is no feature; encode it "
                "apart from the others (ColumnTransformer), or leave it out (remainder = 'drop')."
            )
