# SPDX-License-Identifier: Apache-2.0
"""How the values of every column are distributed, before and after: of a quasi-identifier over runs of its cells, by
the raw values and as the released labels make it likeliest; of other columns, which are released as they are, once.
Bars may cover few persons: all of it is for the owner of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.metrics.detail import Detail
from anonfit.recoding.columns import NominalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen

if TYPE_CHECKING:
    import polars as pl

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


def _of_cells(column: RecodedColumn, after: NDArray[np.float64], cells: NDArray[np.int32]) -> list[dict[str, Any]]:
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


def _parted(values: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The finite numbers of a column, and the ends of equal parts; None where floats have no room for them."""
    numbers = values.drop_nulls().cast(float).drop_nans().to_numpy()
    known = numbers[np.isfinite(numbers)]
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.linspace(known.min(initial=np.inf), known.max(initial=-np.inf), BARS + 1)
        return known, edges if bool((np.diff(edges) > 0).all()) and np.isfinite(edges).all() else None


def _of_values(values: pl.Series) -> list[dict[str, Any]]:
    """The bars of a column that is released as it is: intervals of equal width, or the most frequent values."""
    known, edges = _parted(values) if values.dtype.is_numeric() and values.n_unique() > BARS else (None, None)
    if known is not None and edges is not None:
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
