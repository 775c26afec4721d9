# SPDX-License-Identifier: Apache-2.0
"""How much each quasi-identifier lost by generalizing, whatever the release is for.

The certainty penalty (NCP of a column, GCP of all) and the loss metric (LM) are 0 where a value is told exactly and 1
where nothing is told. For ordered columns both are the share of the column's width that a region takes (by ranks where
words are ordered). For nominal columns NCP is the share of the names that a region holds, 0 for a single one (Xu et al.
2006); LM is (names - 1) / (all names - 1) (Iyengar 2002). Missing is one more name of a nominal column, and has no
width in an ordered one. A withheld row has lost everything.

Widths are measured by extents. The range of the data may not be told, and a figure that is measured by it tells it. So
public figures are measured by what the recoding says: its declared domain, or its outermost cuts and beyond each as
much as the interval next to it.

The weighted discernibility metric (WDM, Rangachari and Xiong) sums over columns how many persons cannot be told from
each other by the column alone. Labels that overlap tell persons apart: many overlapping labels look better to this
metric than few that do not, although each says less. So it stands beside NCP, and where the two disagree about two
releases that is said.

How the values of every column are distributed, before and after, is told of a quasi-identifier over runs of its cells,
by the raw values and as the released labels make it likeliest; of other columns, which are released as they are, once.
Bars may cover few persons: that is for the owner of the data only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.engines.tree import Parts
from anonfit.metrics.arrays import AnyIntegers, Floats, Integers
from anonfit.metrics.detail import Detail
from anonfit.metrics.groups import group_figures, released_persons
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen
from anonfit.tables.scales import Cut, Scale

YEAR = 365.0
"""Days beyond a single cut between dates."""
LARGEST = np.finfo(np.float64).max / 4
"""Ends are not farther away, so that no extent is infinite."""
MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Extent:
    """The ends of an ordered column, as numbers or as days since 1970."""

    low: float
    high: float


Extents = dict[str, Extent]
"""Of the ordered columns with cuts, or a declared domain, by name."""


def places(cuts: Sequence[Cut], scale: Scale) -> Floats:
    """Where cuts stand: numbers as they are, dates and times in days since 1970."""
    if scale.is_number:
        return np.array([float(cut) for cut in cuts], dtype=np.float64)
    moments = [datetime.fromisoformat(str(cut)).replace(tzinfo=UTC).timestamp() / 86400 for cut in cuts]
    return np.array(moments, dtype=np.float64)


def _stated(column: OrderedCells) -> Extent | None:
    if column.domain:
        return Extent(*places(column.domain, column.scale).tolist())
    cuts = places(column.cuts, column.scale)
    if not len(cuts):
        return None
    cuts = np.clip(cuts, -LARGEST, LARGEST)  # so that no difference is infinite
    if len(cuts) > 1:
        below, above = cuts[1] - cuts[0], cuts[-1] - cuts[-2]
    else:
        below = above = YEAR if not column.scale.is_number else abs(cuts[0]) or 1.0
    return Extent(*np.clip([cuts[0] - below, cuts[-1] + above], -LARGEST, LARGEST).tolist())


def stated_extents(recoding: Recoding) -> Extents:
    """What a recoding says of its ordered columns: all that a public figure may use."""
    extents = {column.name: _stated(column) for column in recoding.columns if isinstance(column, OrderedCells)}
    return {name: extent for name, extent in extents.items() if extent is not None}


def common_extents(recodings: Sequence[Recoding]) -> Extents:
    """From the lowest to the highest end that any of the recodings says, so that all are measured alike."""
    extents: Extents = {}
    for recoding in recodings:
        for name, extent in stated_extents(recoding).items():
            other = extents.get(name, extent)
            extents[name] = Extent(min(extent.low, other.low), max(extent.high, other.high))
    return extents


def unnamed_values(recodings: Sequence[Recoding]) -> list[dict[str, int]]:
    """For each recoding and nominal column, how many values are in the leaf of those that it does not name, as far as
    the others name them.

    Values that no recoding names are one value, if every one of them has such a leaf.
    """
    nominal = [[column for column in each.columns if isinstance(column, NominalCells)] for each in recodings]
    named: dict[str, set[str]] = {}
    rest: dict[str, bool] = {}
    for column in chain.from_iterable(nominal):
        named.setdefault(column.name, set()).update(_named(column))
        rest[column.name] = rest.get(column.name, True) and column.other is not None
    return [
        {
            column.name: max(len(named[column.name] - _named(column)) + rest[column.name], 1)
            for column in columns
            if column.other is not None
        }
        for columns in nominal
    ]


def _named(column: NominalCells) -> set[str]:
    return {leaf for leaf in column.taxonomy.leaves if leaf != column.other}


def observed_extents(recoding: Recoding, frame: pl.DataFrame) -> Extents:
    """From the smallest to the largest value of raw rows, or as declared. Not for public figures."""
    extents = stated_extents(recoding)
    for column in recoding.columns:
        if isinstance(column, OrderedCells) and not column.domain:
            extents.pop(column.name, None)
            values = numbers_on_line(recoding.typed(frame, column.name).drop_nulls())
            if len(values):
                extents[column.name] = Extent(float(values.min()), float(values.max()))
    return extents


def numbers_on_line(values: pl.Series) -> Floats:
    """Values of an ordered column as numbers, dates and times in days since 1970; NaN where one is missing."""
    on_line = values.dt.epoch("us") / MICROSECONDS_A_DAY if values.dtype in (pl.Date, pl.Datetime) else values
    return on_line.cast(pl.Float64).to_numpy()


@dataclass(frozen=True, slots=True)
class ColumnLoss:
    """What the average row lost of one quasi-identifier, from 0 to 1."""

    name: str
    ncp: float
    lm: float


@dataclass(frozen=True, slots=True)
class Losses:
    """What the average row lost of each quasi-identifier."""

    columns: tuple[ColumnLoss, ...]

    @property
    def gcp(self) -> float:
        """The global certainty penalty: NCP averaged over rows and columns (Ghinita et al. 2007)."""
        return sum(column.ncp for column in self.columns) / len(self.columns) if self.columns else 0.0

    @property
    def lm(self) -> float:
        """The loss metric averaged over rows and columns."""
        return sum(column.lm for column in self.columns) / len(self.columns) if self.columns else 0.0


def losses(
    recoding: Recoding,
    nodes: AnyIntegers,
    *,
    extents: Extents | None = None,
    unnamed: Mapping[str, int] | None = None,
    counts: NDArray[Any] | None = None,
    withheld: int = 0,
) -> Losses:
    """How much rows lost of each quasi-identifier. nodes: (row,) -1 for a row that is withheld; extents: the ends of
    ordered columns, if not given those that the recoding says, which are public; unnamed: how many values are in a
    nominal column's leaf of unnamed values, if not given one; counts: (row,) the persons a row stands for; withheld:
    further persons, who are not among the rows.
    """
    extents = stated_extents(recoding) if extents is None else extents
    used, persons, lost = released_persons(nodes, counts, withheld)
    total = float(persons.sum()) + lost
    lines = []
    for index, column in enumerate(recoding.columns):
        parts = recoding.boxes.parts(used, index)
        ncp, lm = (
            ((persons * loss[parts.of_node]).sum() + lost) / total if total else 0.0
            for loss in _losses(column, parts, extents.get(column.name), (unnamed or {}).get(column.name, 1))
        )
        lines.append(ColumnLoss(column.name, float(ncp), float(lm)))
    return Losses(tuple(lines))


def _losses(column: RecodedColumn, parts: Parts, extent: Extent | None, unnamed: int) -> tuple[Floats, Floats]:
    """NCP and LM of parts of a column. (part,)"""
    if isinstance(column, NominalCells):
        # Of values none of which is named nothing is left, also if it is not known how many they are.
        unnamed = max(unnamed, 1 + column.names_nothing)
        more = unnamed - 1 if column.other is not None else 0
        held, size = _cells_of(parts) + more * _holds(parts, column.other_cell), column.size + more
        return np.where(held > 1, held / size, 0.0), (held - 1) / max(size - 1, 1)
    assert isinstance(column, OrderedCells | OrdinalCells)
    shift = int(column.has_missing)
    first, last = np.maximum(parts.first - shift, 0), parts.last - shift
    if isinstance(column, OrdinalCells):
        loss = (last - first) / max(len(column.order) - 1, 1)
    else:
        loss = _widths(column, first, np.maximum(last, 0), extent)
    loss = np.where(last < 0, 0.0, loss)  # missing alone is told exactly
    return loss, loss


def _cells_of(parts: Parts) -> Integers:
    """How many cells each part has."""
    counts = parts.last - parts.first + 1
    by_set = parts.set_of >= 0
    counts[by_set] = np.bitwise_count(parts.sets[parts.set_of[by_set]]).sum(axis=1, dtype=np.int64)
    return counts


def _holds(parts: Parts, cell: int) -> Integers:
    """1 for the parts that hold a cell, else 0."""
    holds = (parts.first <= cell) & (cell <= parts.last)
    by_set = parts.set_of >= 0
    if by_set.any():
        bytes_of = parts.sets[parts.set_of[by_set]]
        holds[by_set] = bytes_of[:, max(cell, 0) // 8] >> (7 - max(cell, 0) % 8) & 1
    return holds.astype(np.int64)


def _widths(column: OrderedCells, first: Integers, last: Integers, extent: Extent | None) -> Floats:
    """The share of a column's width that intervals take; everything where nothing is cut."""
    if extent is None or not column.cuts:
        return np.ones(len(first))
    cuts = places(column.cuts, column.scale)
    if extent.high <= extent.low:
        return np.where((first == 0) & (last == len(cuts)), 1.0, 0.0)
    edges = np.clip(np.concatenate([[extent.low], cuts, [extent.high]]), extent.low, extent.high)
    shares = (edges - extent.low) / (extent.high - extent.low)
    widths: Floats = shares[last + 1] - shares[first]
    return widths


TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Discernibility:
    """Σ|E|² of each column alone, and how much each column matters. Smaller is more useful."""

    columns: Mapping[str, int]
    weights: Mapping[str, float]
    """They add up to 1."""
    persons: int

    @property
    def total(self) -> float:
        """The weighted sum over columns."""
        return sum(self.weights[name] * value for name, value in self.columns.items())

    def share(self, name: str) -> float:
        """The share of all pairs of persons that a column leaves together, from nearly 0 to 1."""
        return self.columns[name] / self.persons**2 if self.persons else 0.0


def weighted_discernibility(
    recoding: Recoding,
    nodes: AnyIntegers,
    *,
    weights: Mapping[str, float] | None = None,
    counts: NDArray[Any] | None = None,
    withheld: int = 0,
) -> Discernibility:
    """The discernibility of rows by each quasi-identifier alone. A column matters by its weight, 1 if it is not named;
    weights are scaled to add up to 1. nodes: (row,) -1 for a row that is withheld; counts: (row,) the persons a row
    stands for; withheld: further persons, who are not among the rows.
    """
    used, persons, lost = released_persons(nodes, counts, withheld)
    squares, stated = {}, {}
    for index, column in enumerate(recoding.columns):
        parts = recoding.boxes.parts(used, index)
        sizes = np.zeros(int(parts.of_node.max(initial=-1)) + 1, np.int64)
        np.add.at(sizes, parts.of_node, persons)
        squares[column.name] = group_figures(sizes, k=1, withheld=lost).discernibility
        stated[column.name] = float((weights or {}).get(column.name, 1.0))
    total = sum(stated.values())  # all columns matter alike where none does
    shares = {name: weight / total if total > 0 else 1 / len(stated) for name, weight in stated.items()}
    return Discernibility(squares, shares, int(persons.sum()) + lost)


def disagreements(
    first: tuple[Losses, Discernibility], second: tuple[Losses, Discernibility]
) -> dict[str, Literal["ncp", "wdm"]]:
    """The columns of which NCP and WDM disagree which of two releases of the same persons tells more, and by which of
    them it is the first.
    """
    disagreeing: dict[str, Literal["ncp", "wdm"]] = {}
    for column, other in zip(first[0].columns, second[0].columns, strict=True):
        less_lost = other.ncp - column.ncp
        less_together = second[1].share(column.name) - first[1].share(column.name)
        if min(abs(less_lost), abs(less_together)) > TIE and (less_lost > 0) != (less_together > 0):
            disagreeing[column.name] = "ncp" if less_lost > 0 else "wdm"
    return disagreeing


# --- every column before and after -------------------------------------------------------------------------------

BARS = 10
MOST_ROWS = 100_000
"""Of more rows, every second, third, … is looked at: pictures need no more."""
OTHERS = "all others"


def distributions(
    recoding: Recoding, details: Sequence[Detail], rows: pl.DataFrame, raw: Sequence[str]
) -> list[dict[str, Any]]:
    """For every column its bars, with the shares of the released rows in each; `rows` are these with their raw values,
    `raw` the columns that are released as they are.
    """
    if not len(rows):
        return []
    rows = rows.gather_every(-(-len(rows) // MOST_ROWS))
    cells = recoding.cells(rows, unseen=Unseen.SUPPRESS)
    generalized = [
        {"column": column.name, "bars": _of_cells(column, detail.shares, own[own >= 0])}
        for column, detail, own in zip(recoding.columns, details, cells, strict=True)
    ]
    return generalized + [{"column": name, "bars": _of_values(rows[name])} for name in raw]


def _of_cells(column: RecodedColumn, after: Floats, cells: NDArray[np.int32]) -> list[dict[str, Any]]:
    """The bars of a quasi-identifier: runs of cells, or the names that most persons have and all others."""
    before = np.bincount(cells, minlength=column.size) / max(len(cells), 1)
    if isinstance(column, NominalCells) and column.size > BARS:
        most = sorted(np.argsort(-before, kind="stable")[: BARS - 1].tolist())
        named = [(column.label([cell]), [cell]) for cell in most]
        parts = [*named, (OTHERS, sorted(set(range(column.size)) - set(most)))]
    else:
        runs = np.array_split(np.arange(column.size), min(BARS, column.size))
        parts = [(column.label([int(cell) for cell in run]), run.tolist()) for run in runs]
    return [
        {"label": label, "before": float(before[part].sum()), "after": float(after[part].sum())}
        for label, part in parts
    ]


def _end(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _edges(numbers: Floats) -> Floats | None:
    """The ends of equal parts of finite numbers; None where floats have no room for them."""
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.linspace(numbers.min(initial=np.inf), numbers.max(initial=-np.inf), BARS + 1)
        return edges if bool((np.diff(edges) > 0).all()) and np.isfinite(edges).all() else None


def _of_values(values: pl.Series) -> list[dict[str, Any]]:
    """The bars of a column that is released as it is: intervals of equal width, or the most frequent values."""
    is_numeric = values.dtype.is_numeric() and values.n_unique() > BARS
    numbers = values.drop_nulls().cast(float) if is_numeric else pl.Series(dtype=pl.Float64)
    known = numbers.filter(numbers.is_finite()).to_numpy()
    edges = _edges(known)
    if edges is not None:
        counts, _ = np.histogram(known, bins=edges)
        ends = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
        shares = {f"[{_end(low)}, {_end(high)})": count / len(values) for low, high, count in ends}
    else:
        table = values.rename("value").value_counts(sort=True, name="rows")
        counted = sorted(table.rows(), key=lambda row: (-row[1], str(row[0])))
        shares = {
            "missing" if value is None else str(value): count / len(values) for value, count in counted[: BARS - 1]
        }
        if rest := sum(count for _, count in counted[BARS - 1 :]):
            shares[OTHERS] = rest / len(values)
    return [{"label": label, "before": share, "after": None} for label, share in shares.items()]
