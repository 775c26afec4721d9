# SPDX-License-Identifier: Apache-2.0
"""The numbers of a region: the ends or the expected values of its columns, from labels or from a recoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.auditing.meanings import LabelMeaning, LabelTree
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import Cut, Scale, cut_text
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy

Numbers: TypeAlias = NDArray[np.float64]

NEVER, POSSIBLE, ALWAYS = 0.0, 0.5, 1.0
"""The share of missing values in a part of an ordered column. Where they are possible nothing more is known of it."""

FEW_CUTS_DAYS = 365.0
"""How far beyond a single cut between dates an open interval is taken to reach."""


class Encoding(StrEnum):
    """How regions become numbers."""

    ENDS = "ends"
    EXPECTED = "expected"
    BOTH = "both"
    SMOOTH = "smooth"


LINEAR = ("linear_model", "svm", "discriminant_analysis")
"""Modules of scikit-learn with models that are linear in their features, or nearly so."""
LINEAR_BY_DEFAULT = ("CalibratedClassifierCV", "TransformedTargetRegressor")
"""Wrappers that teach a linear model if none is given."""


def suited_encoding(learner: Any) -> Encoding:
    """The encoding that suits a learner, or what a pipeline, a search, a vote or another wrapper teaches: smooth
    features for linear models, expected ones for all others, also for several of which one is not linear.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> suited_encoding(LogisticRegression())
        <Encoding.SMOOTH: 'smooth'>
    """
    inner = [each for word in ("estimator", "regressor") if (each := getattr(learner, word, None)) is not None][:1]
    if hasattr(learner, "steps"):
        inner = [learner.steps[-1][1]]
    elif isinstance(several := getattr(learner, "estimators", None), list | tuple):
        pairs = [pair for pair in several if isinstance(pair, tuple) and len(pair) == 2]
        inner = [each for _, each in pairs if each != "drop"]
    if inner:
        return Encoding.SMOOTH if {suited_encoding(each) for each in inner} == {Encoding.SMOOTH} else Encoding.EXPECTED
    kind = type(learner)
    is_linear = set(LINEAR) & set(kind.__module__.split(".")) or kind.__name__ in LINEAR_BY_DEFAULT
    return Encoding.SMOOTH if is_linear else Encoding.EXPECTED


MOST_BENDS = 8
"""Places at which a smooth feature may bend."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Parts of an ordered column, one entry each: from `lower` to `upper`, NaN where a side is open, and the share of
    missing values.
    """

    lower: Numbers
    upper: Numbers
    missing: Numbers


@dataclass(frozen=True, slots=True)
class Leaves:
    """Parts of a nominal column: ascending leaf positions, none where the value is missing, and whether it may be."""

    positions: Sequence[Sequence[int]]
    missing: NDArray[np.bool_]


Parts: TypeAlias = Intervals | Leaves


def missing_share(known: NDArray[np.bool_], missing: NDArray[np.bool_]) -> Numbers:
    """The share of missing values in each part, by whether it holds known values and whether it holds missing ones."""
    return np.where(missing, np.where(known, POSSIBLE, ALWAYS), NEVER)


def mean_above(lower: Numbers, upper: Numbers, bend: float) -> Numbers:
    """How far values are above a bend on average (below it: 0), if those of a part are spread evenly over it. A linear
    model of several such features is a line that bends.

    Example:
        >>> mean_above(np.array([0.0, 10.0, 20.0]), np.array([10.0, 20.0, 30.0]), 15.0).tolist()
        [0.0, 1.25, 10.0]
    """
    # Halves, since differences of whole numbers may be too large.
    over, width = np.maximum(upper / 2 - bend / 2, 0.0), upper / 2 - lower / 2
    share = np.divide(over, width, out=np.zeros_like(over), where=width > 0)
    with np.errstate(over="ignore"):
        beyond = np.nan_to_num(np.maximum(lower / 2 + upper / 2 - bend, 0.0))
    above: Numbers = np.where(lower >= bend, beyond, over * np.minimum(share, 1.0))
    return above


def bends_of(cuts: Numbers) -> tuple[float, ...]:
    """Where smooth features bend: at cuts, of many at some that lie evenly among them."""
    if len(cuts) <= MOST_BENDS:
        return tuple(cuts.tolist())
    places = np.round(np.linspace(0, len(cuts) - 1, MOST_BENDS)).astype(np.int64)
    return tuple(cuts[places].tolist())


@dataclass(frozen=True, slots=True)
class LineColumn:
    """A column of numbers, days or ranks; open sides are closed at `lowest` and `highest`, and smooth features bend at
    `bends`.
    """

    name: str
    has_missing: bool
    lowest: float
    highest: float
    bends: tuple[float, ...] = ()

    def features(self, encoding: Encoding, name: str) -> list[str]:
        """The names of its features, where the column is called by this name."""
        names = [] if encoding == Encoding.ENDS else [name]
        names += [] if encoding == Encoding.EXPECTED else [f"{name}_lower", f"{name}_upper"]
        if encoding == Encoding.SMOOTH:
            names += [f"{name}_above_{str(bend).removesuffix('.0')}" for bend in self.bends]
        return [*names, f"{name}_missing"] if self.has_missing else names

    def numbers(self, parts: Parts, encoding: Encoding) -> Numbers:
        """The features of each part. (part, feature)"""
        assert isinstance(parts, Intervals)
        # An end that is known stands: a part beyond what the column is closed at has no width.
        lower = np.where(np.isnan(parts.lower), np.fmin(self.lowest, parts.upper), parts.lower)
        upper = np.where(np.isnan(parts.upper), np.fmax(self.highest, parts.lower), parts.upper)
        columns = [] if encoding == Encoding.ENDS else [lower / 2 + upper / 2]
        columns += [] if encoding == Encoding.EXPECTED else [lower, upper]
        if encoding == Encoding.SMOOTH:
            columns += [mean_above(lower, upper, bend) for bend in self.bends]
        return np.stack([*columns, parts.missing] if self.has_missing else columns, axis=1)


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A column of names, in the order of the taxonomy's leaves."""

    name: str
    has_missing: bool
    leaves: tuple[str, ...]

    def features(self, encoding: Encoding, name: str) -> list[str]:
        """The names of its features, where the column is called by this name."""
        names = [] if encoding == Encoding.ENDS else [f"{name}={leaf}" for leaf in self.leaves]
        names += [] if encoding == Encoding.EXPECTED else [f"{name}_lower", f"{name}_upper"]
        return [*names, f"{name}_missing"] if self.has_missing else names

    def numbers(self, parts: Parts, encoding: Encoding) -> Numbers:
        """The features of each part. (part, feature)"""
        assert isinstance(parts, Leaves)
        blocks, missing = [], None
        if encoding != Encoding.ENDS:
            shares = self._shares(parts)
            blocks, missing = [shares[:, :-1]], shares[:, -1]
        if encoding != Encoding.EXPECTED:
            whole = (0, max(len(self.leaves) - 1, 0))
            ends = [(positions[0], positions[-1]) if len(positions) else whole for positions in parts.positions]
            blocks.append(np.array(ends, dtype=np.float64).reshape(-1, 2))
        if self.has_missing:
            known = np.array([len(positions) > 0 for positions in parts.positions], dtype=bool)
            blocks.append((missing_share(known, parts.missing) if missing is None else missing)[:, None])
        return np.concatenate(blocks, axis=1)

    def _shares(self, parts: Leaves) -> Numbers:
        """The share of each leaf in each part, and of missing values. (part, leaf + 1)"""
        shares = np.zeros((len(parts.positions), len(self.leaves) + 1))
        for part, (positions, missing) in enumerate(zip(parts.positions, parts.missing.tolist(), strict=True)):
            share = 1.0 / max(len(positions) + int(missing), 1)
            shares[part, positions if len(positions) else slice(0, 0)] = share
            shares[part, -1] = share if missing else 0.0
        return shares


FeatureColumn: TypeAlias = LineColumn | LeafColumn


def side_by_side(blocks: Sequence[Numbers], rows: int) -> Numbers:
    """Features of several columns as one array. (row, feature)"""
    return np.concatenate([np.empty((rows, 0)), *blocks], axis=1)


def closed_ends(cuts: Numbers, declared: tuple[float | None, float | None], *, is_date: bool) -> tuple[float, float]:
    """Where the open sides of an ordered column are closed: where it is declared to end, or else as far beyond the
    outermost cut as the interval next to it is wide. Around a single cut nothing is known: as far as the cut is from
    zero, or a year.
    """
    low = high = 0.0
    if len(cuts):
        # Differences of halves, since those of whole numbers may be too large.
        halves = np.diff(cuts / 2)
        alone = (FEW_CUTS_DAYS if is_date else abs(float(cuts[0])) or 1.0) / 2
        below, above = (halves[0], halves[-1]) if len(halves) else (alone, alone)
        with np.errstate(over="ignore"):
            low, high = np.nan_to_num([2 * (cuts[0] / 2 - below), 2 * (cuts[-1] / 2 + above)]).tolist()
    return (low if declared[0] is None else declared[0], high if declared[1] is None else declared[1])


def rank_column(name: str, has_missing: bool, order: Sequence[str]) -> LineColumn:
    """A column of words in an order: their ranks."""
    last = len(order) - 1.0
    return LineColumn(name, has_missing, 0.0, last, bends_of(np.arange(1.0, last)))


SECONDS_A_DAY = 86400


def on_line(place: Decimal, *, is_date: bool) -> float:
    """Where a value stands as a feature: numbers as they are, dates and times in days since 1970."""
    return float(place / SECONDS_A_DAY if is_date else place)


def tree_of(taxonomy: Taxonomy) -> LabelTree:
    """A taxonomy as labels are read by it."""
    runs = zip(taxonomy.first_leaf, taxonomy.last_leaf, strict=True)
    return LabelTree(taxonomy.leaves, dict(zip(taxonomy.names, runs, strict=True)))


def meaning_of(column: RecodedColumn) -> LabelMeaning:
    """How the labels of a recoded column are read. A taxonomy over numbers or dates is one of names."""
    if isinstance(column, NominalCells):
        return LabelMeaning(column.name, "nominal", tree=tree_of(column.taxonomy))
    if isinstance(column, OrdinalCells):
        return LabelMeaning(column.name, "ordinal", order=column.order)
    if column.scale != Scale.WHOLE:
        return LabelMeaning(column.name, "date" if column.type == ColumnType.DATE else "continuous")
    cuts = frozenset(Decimal(cut_text(cut)) for cut in column.cuts)
    low, high = (Decimal(cut_text(end)) for end in column.domain) if column.domain else (None, None)
    return LabelMeaning(column.name, "continuous", domain=(low, high), cuts=cuts, scale="whole", closed=column.closed)


def _cuts_on_line(column: OrderedCells, cuts: tuple[Cut, ...]) -> Numbers:
    meaning = meaning_of(column)
    places = [meaning.scalar(cut_text(cut)) for cut in cuts]
    is_date = column.type == ColumnType.DATE
    return np.array([on_line(place, is_date=is_date) for place in places if place is not None], dtype=np.float64)


def feature_column(column: RecodedColumn) -> FeatureColumn:
    """What becomes of a recoded column."""
    if isinstance(column, NominalCells):
        return LeafColumn(column.name, column.has_missing, column.taxonomy.leaves)
    if isinstance(column, OrdinalCells):
        return rank_column(column.name, column.has_missing, column.order)
    assert isinstance(column, OrderedCells)
    ends, cuts = _cuts_on_line(column, column.domain), _cuts_on_line(column, column.cuts)
    domain = (float(ends[0]), float(ends[1])) if len(ends) else (None, None)
    low, high = closed_ends(cuts, domain, is_date=column.type == ColumnType.DATE)
    return LineColumn(column.name, column.has_missing, low, high, bends_of(cuts))


def parts_of_nodes(recoding: Recoding, nodes: NDArray[np.int32], index: int) -> tuple[Parts, NDArray[np.int64] | slice]:
    """Parts of a column, and which of them each node holds."""
    column = recoding.columns[index]
    if isinstance(column, NominalCells):
        return _leaves(recoding, nodes, index)
    first, last = recoding.boxes.first[nodes, index], recoding.boxes.last[nodes, index]
    shift = int(column.has_missing)
    only_missing = last < shift
    missing = missing_share(~only_missing, first < shift)
    low, high = np.maximum(first - shift, 0), np.maximum(last - shift, 0)
    if isinstance(column, OrderedCells):
        # NaN is open: below the first cut and above the last.
        cuts = np.concatenate([[np.nan], _cuts_on_line(column, column.cuts), [np.nan]])
        low, high = cuts[low], cuts[high + 1]
    low, high = (np.where(only_missing, np.nan, end) for end in (low, high))
    return Intervals(low, high, missing), slice(None)


def _leaves(recoding: Recoding, nodes: NDArray[np.int32], index: int) -> tuple[Leaves, NDArray[np.int64]]:
    """The different sets of leaves that nodes have of a nominal column, and which of them each has."""
    parts, shift = recoding.boxes.parts(nodes, index), int(recoding.columns[index].has_missing)
    cells = parts.cells()
    missing = np.array([part[0] < shift for part in cells], dtype=bool)
    known = [part[1:] if is_missing else part for part, is_missing in zip(cells, missing.tolist(), strict=True)]
    return Leaves([_moved(part, -shift) for part in known], missing), parts.of_node


def _moved(cells: Sequence[int], by: int) -> Sequence[int]:
    if isinstance(cells, range):
        return range(cells.start + by, cells.stop + by)
    return [cell + by for cell in cells]
