# SPDX-License-Identifier: Apache-2.0
"""From a frame of features to the matrix that scikit-learn needs, and rows that are alike taken together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CategoryMatrix", "NumberMatrix", "Rows", "codes_of", "once_for_each", "together"]

MOST_BINS = 20
"""A column of numbers with more different values than this is cut into so many parts of about as many rows."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Different rows: their features, the code of their label, and how many rows each stands for."""

    features: pl.DataFrame
    codes: NDArray[np.int64]
    counts: NDArray[np.float64]


def together(features: pl.DataFrame, codes: NDArray[np.int64]) -> Rows:
    """Rows of equal features and labels as one: in a release there are few different ones."""
    import polars as pl

    names = [str(number) for number in range(features.width)]
    table = pl.DataFrame([column.alias(name) for name, column in zip(names, features, strict=True)])
    table = table.with_columns(pl.Series("label", codes))
    found = table.group_by([*names, "label"], maintain_order=True).agg(pl.len().alias("rows"))
    different = found.select(names)
    different.columns = features.columns
    return Rows(different, found["label"].to_numpy(), found["rows"].cast(pl.Float64).to_numpy())


def once_for_each(
    predict: Callable[[pl.DataFrame], NDArray[np.float64]], features: pl.DataFrame
) -> NDArray[np.float64]:
    """What is predicted of each row; rows that are alike are asked for once."""
    import polars as pl

    names = [str(number) for number in range(features.width)]
    table = pl.DataFrame([column.alias(name) for name, column in zip(names, features, strict=True)])
    found = table.with_row_index("row").group_by(names, maintain_order=True).agg("row")
    different = found.select(names)
    different.columns = features.columns
    rows = found["row"].explode().to_numpy()
    predicted = np.empty(len(features))
    predicted[rows] = np.repeat(predict(different), found["row"].list.len().to_numpy())
    return predicted


def codes_of(values: pl.Series, known: pl.Series) -> NDArray[np.int64]:
    """The place of each value among the known ones, one more than the last where it is not known."""
    import polars as pl

    lookup = pl.DataFrame({"value": known, "place": np.arange(len(known))})
    asked = pl.DataFrame({"value": values.cast(known.dtype)})
    found = asked.join(lookup, on="value", how="left", maintain_order="left", nulls_equal=True)["place"]
    places: NDArray[np.int64] = found.fill_null(len(known)).to_numpy().astype(np.int64)
    return places


def _is_text(column: pl.Series) -> bool:
    return not column.dtype.is_numeric()


def _texts(column: pl.Series) -> pl.Series:
    import polars as pl

    return column.cast(pl.String)


def _numbers(column: pl.Series) -> NDArray[np.float64]:
    import polars as pl

    found: NDArray[np.float64] = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return found


@dataclass(frozen=True)
class NumberMatrix:
    """Numbers as they are and one column for each text. Where numbers may not be missing they stand at the mean, and
    a further column says so.
    """

    texts: dict[str, pl.Series]
    means: dict[str, float]
    gaps: tuple[str, ...]
    """Columns of numbers of which some are missing."""
    unknown: tuple[str, ...]
    """Columns of numbers of which all are missing: they tell nothing, and not every learner takes them."""
    may_be_missing: bool

    @classmethod
    def of(cls, features: pl.DataFrame, counts: NDArray[np.float64], *, may_be_missing: bool) -> NumberMatrix:
        """The matrix of training rows, each standing for so many."""
        texts = {column.name: _texts(column).unique().sort() for column in features if _is_text(column)}
        means, gaps, unknown = {}, [], []
        for column in features:
            if column.name in texts:
                continue
            numbers = _numbers(column)
            known = ~np.isnan(numbers)
            means[column.name] = float(np.average(numbers[known], weights=counts[known])) if known.any() else 0.0
            if not known.any():
                unknown.append(column.name)
            elif not known.all():
                gaps.append(column.name)
        return cls(texts, means, tuple(gaps), tuple(unknown), may_be_missing)

    def matrix(self, features: pl.DataFrame) -> NDArray[np.float64]:
        """The matrix of rows. # (row, feature)"""
        parts = []
        for name, mean in self.means.items():
            numbers = _numbers(features[name])
            if name in self.unknown:
                numbers = np.zeros(len(numbers))
            elif not self.may_be_missing:
                missing = np.isnan(numbers)
                numbers = np.where(missing, mean, numbers)
                if name in self.gaps:
                    parts.append(missing[:, None].astype(np.float64))
            parts.append(numbers[:, None])
        for name, known in self.texts.items():
            parts.append(np.eye(len(known) + 1)[codes_of(_texts(features[name]), known), :-1])
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(features), 0))


@dataclass(frozen=True)
class CategoryMatrix:
    """Every column as categories: texts as they are, numbers by the part they lie in; the last is for what is missing
    or was not there in training.
    """

    texts: dict[str, pl.Series]
    edges: dict[str, NDArray[np.float64]]

    @classmethod
    def of(cls, features: pl.DataFrame, counts: NDArray[np.float64]) -> CategoryMatrix:
        """The matrix of training rows, each standing for so many."""
        texts = {column.name: _texts(column).unique().sort() for column in features if _is_text(column)}
        edges = {column.name: _edges(_numbers(column), counts) for column in features if column.name not in texts}
        return cls(texts, edges)

    @property
    def sizes(self) -> list[int]:
        """How many categories each column has."""
        return [len(edges) + 2 for edges in self.edges.values()] + [len(known) + 1 for known in self.texts.values()]

    def matrix(self, features: pl.DataFrame) -> NDArray[np.int64]:
        """The matrix of rows. # (row, column)"""
        parts = []
        for name, edges in self.edges.items():
            numbers = _numbers(features[name])
            parts.append(np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, side="right")))
        parts += [codes_of(_texts(features[name]), known) for name, known in self.texts.items()]
        return np.stack(parts, axis=1) if parts else np.zeros((len(features), 0), np.int64)


def _edges(numbers: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the parts of a column meet: between values that follow each other."""
    known = ~np.isnan(numbers)
    values, which = np.unique(numbers[known], return_inverse=True)
    middles: NDArray[np.float64] = values[:-1] / 2 + values[1:] / 2
    if len(values) <= MOST_BINS:
        return middles
    rows = np.cumsum(np.bincount(which, counts[known]))[:-1]
    wanted = np.arange(1, MOST_BINS) * counts[known].sum() / MOST_BINS
    found: NDArray[np.float64] = middles[np.unique(np.minimum(np.searchsorted(rows, wanted), len(middles) - 1))]
    return found
