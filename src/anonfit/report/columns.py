# SPDX-License-Identifier: Apache-2.0
"""What each column lost by two measures, the certainty penalty and the discernibility of the column alone, and where
they disagree; and clusters found in the release. As plain data.

The first two are computed from released labels, so anybody could. A figure of clusters is one of all persons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.result import Anonymized
from anonfit.metrics.clusters import ClusterFigures
from anonfit.metrics.discernibility import Discernibility, disagreements, weighted_discernibility
from anonfit.metrics.extents import Extents, common_extents, unnamed_values
from anonfit.metrics.losses import Losses, losses
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.recoding import Recoding
from anonfit.workload.objectives import feature_weights
from anonfit.workload.targets import Workload

__all__ = [
    "ColumnFigures",
    "clusters_content",
    "column_figures",
    "columns_compared",
    "columns_compared_content",
    "columns_content",
]


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """What columns lost."""

    losses: Losses
    discernibility: Discernibility


def column_figures(
    recoding: Recoding,
    nodes: NDArray[np.integer[Any]],
    weights: Mapping[str, float],
    *,
    counts: NDArray[np.int64] | None = None,
    extents: Extents | None = None,
    unnamed: dict[str, int] | None = None,
) -> ColumnFigures:
    """The figures of rows that end in these nodes, each standing for so many persons, by what a recoding says or by
    extents that are given.
    """
    return ColumnFigures(
        losses(recoding, nodes, extents=extents, unnamed=unnamed, counts=counts),
        weighted_discernibility(recoding, nodes, weights=weights, counts=counts),
    )


def columns_content(found: ColumnFigures) -> dict[str, Any]:
    """One line per quasi-identifier, and the figures of all."""
    wdm = found.discernibility
    return {
        "gcp": round(found.losses.gcp, 3),
        "weighted_discernibility": round(wdm.total, 1),
        "columns": [
            {
                "column": one.name,
                "weight": round(wdm.weights[one.name], 3),
                "ncp": round(one.ncp, 3),
                "squares": wdm.columns[one.name],
                "together": round(wdm.share(one.name), 3),
            }
            for one in found.losses.columns
        ],
    }


def columns_compared(
    blind: Anonymized, purpose: Anonymized, workload: Workload
) -> tuple[ColumnFigures, ColumnFigures] | None:
    """What columns lost in blind regions and in those for a purpose, measured alike; None where nothing says that some
    columns matter more.
    """
    names, weights = purpose.recoding.quasi_identifiers, workload.weights
    if purpose.learned is not None:
        weights = purpose.learned.weights
    elif workload.objective.clusters:
        weights = dict.fromkeys(names, 0.0) | feature_weights(workload, list(names))
    if not weights:
        return None
    recodings = (blind.recoding, purpose.recoding)
    extents, unnamed = common_extents(recodings), unnamed_values(recodings)
    first, second = (
        column_figures(made.recoding, made.nodes, weights, extents=extents, unnamed=more)
        for made, more in zip((blind, purpose), unnamed, strict=True)
    )
    return first, second


def columns_compared_content(found: tuple[ColumnFigures, ColumnFigures]) -> dict[str, Any]:
    """The comparison, and of which columns the two measures disagree."""
    blind, purpose = found
    differ = {
        one.column: one.better_by
        for one in disagreements((purpose.losses, purpose.discernibility), (blind.losses, blind.discernibility))
    }
    return {
        "weighted_discernibility": {
            name: round(one.discernibility.total, 1) for name, one in (("blind", blind), ("purpose", purpose))
        },
        "columns": [
            {
                "column": before.name,
                "weight": round(purpose.discernibility.weights[before.name], 3),
                "ncp": {"blind": round(before.ncp, 3), "purpose": round(after.ncp, 3)},
                "together": {
                    "blind": round(blind.discernibility.share(before.name), 3),
                    "purpose": round(purpose.discernibility.share(before.name), 3),
                },
                "disagree": differ.get(before.name),
            }
            for before, after in zip(blind.losses.columns, purpose.losses.columns, strict=True)
        ],
    }


def clusters_content(found: ClusterFigures, rule: Disclosure) -> dict[str, Any] | None:
    """The clusters of the original and of the release; None where they may not be told because of the rows that were
    left out.
    """
    if not rule.may_tell_rows(found.rows, found.of):
        return None
    return {
        "clusters": found.clusters,
        "rows": found.rows,
        "agreement": round(found.agreement, 2),
        "original": {"within": round(found.within_original, 2), "between": round(found.between_original, 2)},
        "release": {"within": round(found.within_release, 2), "between": round(found.between_release, 2)},
    }
