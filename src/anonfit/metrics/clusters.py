# SPDX-License-Identifier: Apache-2.0
"""How well clusters that a recipient finds in a release are those of the original rows.

Both are clustered by k-means: the original by its raw values, the release by what a recipient can make of it, the
middle of every interval and equal shares of the names of a set. Every feature has the same variance in each, times its
weight. The two partitions are compared by the adjusted Rand index (1: the same, 0: as alike as by chance), and both are
judged in the original's space: how much of the variance is left within clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl

from anonfit.metrics.arrays import AnyIntegers, Floats, Integers
from anonfit.metrics.losses import Extents, numbers_on_line, places, stated_extents
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells
from anonfit.recoding.recoding import Recoding
from anonfit.tables.schema import Schema
from anonfit.workload.objectives import feature_weights
from anonfit.workload.targets import Workload

ROWS = 10_000
"""More rows are not clustered: what is measured would hardly change."""
MOST_NAMES = 64
"""A column with more names is taken by its commonest ones."""
STARTS = 4
"""K-means is begun so often, and the best end is taken."""


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """Clusters of the original and of the release."""

    clusters: int
    rows: int
    of: int
    """All rows; fewer are clustered where there are very many."""
    agreement: float
    """The adjusted Rand index of the two."""
    within_original: float
    """The share of the original's variance that is left within its own clusters."""
    within_release: float
    """The share that is left within the clusters found in the release."""


def can_cluster() -> bool:
    """Whether the package that finds clusters is there."""
    return find_spec("sklearn") is not None


def cluster_figures(
    recoding: Recoding,
    frame: pl.DataFrame,
    nodes: AnyIntegers,
    features: Mapping[str, float],
    *,
    clusters: int,
    seed: int = 0,
) -> ClusterFigures | None:
    """Cluster rows by their raw values and by what was released of them, in these nodes (row,).

    Features are columns with their weights; those that the recoding has not are released as they are. Fewer clusters
    are looked for where there are fewer different rows; None where there are not two. The seed is of the sample of rows
    and of k-means.
    """
    everybody = len(frame)
    if everybody > ROWS:
        drawn = np.sort(np.random.default_rng(seed).choice(len(frame), ROWS, replace=False))
        frame, nodes = frame[drawn], nodes[drawn]
    original, released = _points(recoding, frame, nodes, features)
    number = min(clusters, _different(original), _different(released))
    if number < 2:
        return None
    from sklearn.metrics import adjusted_rand_score

    own, theirs = (_clusters(points, number, seed) for points in (original, released))
    agreement = float(adjusted_rand_score(own, theirs))
    return ClusterFigures(number, len(frame), everybody, agreement, _within(original, own), _within(original, theirs))


def workload_clusters(
    workload: Workload, recoding: Recoding, schema: Schema, frame: pl.DataFrame, nodes: AnyIntegers, *, clusters: int
) -> ClusterFigures | None:
    """Clusters of what a workload is about: quasi-identifiers by their weights, and features that are released raw."""
    features = feature_weights(workload, list(recoding.quasi_identifiers))
    raw = [column.name for column in schema.released_raw if column.name in workload.features]
    weights = features | dict.fromkeys(raw, 1.0)
    return cluster_figures(recoding, frame, nodes, weights, clusters=clusters, seed=workload.seed)


def clusters_content(figures: ClusterFigures, rule: Disclosure) -> dict[str, Any] | None:
    """The agreement of both clusterings; None where the rows that were left out forbid to tell it."""
    if not rule.may_disclose_rows(figures.rows, figures.of):
        return None
    return {
        "clusters": figures.clusters,
        "rows": figures.rows,
        "agreement": round(figures.agreement, 2),
        "original": _parted(figures.within_original),
        "release": _parted(figures.within_release),
    }


def _parted(within: float) -> dict[str, float]:
    """The shares of the variance within and between clusters."""
    return {"within": round(within, 2), "between": round(1.0 - within, 2)}


def _clusters(points: Floats, clusters: int, seed: int) -> Integers:
    from sklearn.cluster import KMeans

    # Seeds may be negative or large; those of scikit-learn may not.
    labels: Integers = KMeans(clusters, n_init=STARTS, random_state=seed % (1 << 32)).fit_predict(points)
    return labels


def _different(points: Floats) -> int:
    """How many points k-means tells apart: it squares distances, and those far smaller than the largest are lost."""
    largest = float(np.abs(points).max(initial=0.0))
    return len(np.unique((points / (largest or 1.0)).round(6), axis=0))


def _within(points: Floats, clusters: Integers) -> float:
    """The share of the squared distances from the mean that is left as distances from the clusters' means."""
    total = float(np.square(points - points.mean(axis=0)).sum())
    sizes = np.bincount(clusters)
    sums = np.zeros((len(sizes), points.shape[1]))
    np.add.at(sums, clusters, points)
    means = sums / np.maximum(sizes, 1)[:, None]
    return float(np.square(points - means[clusters]).sum()) / total if total > 0 else 0.0


def _points(
    recoding: Recoding, frame: pl.DataFrame, nodes: AnyIntegers, features: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """The raw rows and the released ones in the space of the features. Each (row, coordinate)"""
    names, extents = list(recoding.quasi_identifiers), stated_extents(recoding)
    cells = recoding.cells(frame)
    original, released = [], []
    for name, weight in features.items():
        if name not in names:
            raw = _scaled(_raw(frame[name]), weight)
            original.append(raw)
            released.append(raw)
            continue
        index = names.index(name)
        column = recoding.columns[index]
        if isinstance(column, OrderedCells):
            mine = numbers_on_line(recoding.typed(frame, name))[:, None]
        elif isinstance(column, OrdinalCells):
            ranks = cells[index].astype(np.float64) - int(column.has_missing)
            mine = np.where(ranks < 0, np.nan, ranks)[:, None]
        else:
            mine = _commonest(_indicators(np.maximum(cells[index], 0), column.size))
        original.append(_scaled(mine, weight))
        released.append(_scaled(_of_regions(recoding, nodes, index, extents), weight))
    return np.concatenate(original, axis=1), np.concatenate(released, axis=1)


def _scaled(values: Floats, weight: float) -> Floats:
    """Values whose variances add up to the weight; what is missing stands at the mean."""
    known = np.isfinite(values)
    # By a power of two, which rounds nothing: squares of the largest and smallest numbers would be none.
    values = np.ldexp(values, -int(np.frexp(np.abs(values[known]).max(initial=0.0))[1]))
    means = np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, values - means, 0.0)
    variance = float(np.square(centred).sum()) / max(len(values), 1)
    return centred * np.sqrt(weight / variance) if variance > 0 else centred


def _raw(values: pl.Series) -> Floats:
    """The coordinates of a column that is released as it is."""
    if values.dtype.is_numeric() or values.dtype.is_temporal():
        numbers = values.to_physical().cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return np.asarray(numbers, np.float64)[:, None]
    codes = values.cast(pl.String).fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
    return _commonest(_indicators(codes, int(codes.max(initial=0)) + 1))


def _indicators(codes: AnyIntegers, size: int) -> Floats:
    """1 in the place of each row's name. (row, name)"""
    indicators = np.zeros((len(codes), size))
    indicators[np.arange(len(codes)), codes] = 1.0
    return indicators


def _commonest(shares: Floats) -> Floats:
    """The names that most rows have; all others are at the same place."""
    if shares.shape[1] <= MOST_NAMES:
        return shares
    kept = np.sort(np.argsort(-shares.sum(axis=0), kind="stable")[:MOST_NAMES])
    return shares[:, kept]


def _of_regions(recoding: Recoding, nodes: AnyIntegers, index: int, extents: Extents) -> Floats:
    """The coordinates of what regions tell of a column."""
    column = recoding.columns[index]
    used, which = np.unique(nodes, return_inverse=True)
    parts = recoding.boxes.parts(used, index)
    if isinstance(column, NominalCells):
        shares = np.zeros((len(parts.first), column.size))
        for part, held in enumerate(parts.cells()):
            shares[part, list(held)] = 1.0 / len(held)
        return _commonest(shares[parts.of_node][which])
    assert isinstance(column, OrderedCells | OrdinalCells)
    shift = int(column.has_missing)
    first, last = np.maximum(parts.first - shift, 0), np.maximum(parts.last - shift, 0)
    if isinstance(column, OrdinalCells):
        middle = (first + last) / 2.0
    else:
        extent = extents.get(column.name)
        if extent is None:
            return np.zeros((len(nodes), 1))
        edges = np.concatenate([[extent.low], places(column.cuts, column.scale), [extent.high]])
        middle = (edges[first] + edges[last + 1]) / 2.0
    middle = np.where(parts.last < shift, np.nan, middle)
    return middle[parts.of_node][which][:, None]
