# SPDX-License-Identifier: Apache-2.0
"""The figures of a release that do not depend on what it is for, together: sizes of groups, loss of columns, mixture
of targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.metrics.extents import Extents
from anonfit.metrics.group_sizes import GroupFigures, group_figures, sizes_of
from anonfit.metrics.losses import Losses, losses
from anonfit.metrics.mixture import Mixture, mixture
from anonfit.recoding.recoding import Recoding

__all__ = ["Neutral", "neutral_figures"]


@dataclass(frozen=True, slots=True)
class Neutral:
    """Figures of a release whatever it is for."""

    groups: GroupFigures
    losses: Losses
    targets: tuple[Mixture, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready figures."""
        return {
            "groups": self.groups.to_dict(),
            "losses": self.losses.to_dict(),
            "targets": [target.to_dict() for target in self.targets],
        }


def neutral_figures(
    recoding: Recoding,
    nodes: NDArray[np.integer[Any]],
    *,
    k: int,
    classes: Mapping[str, NDArray[np.integer[Any]]] | None = None,
    counts: NDArray[Any] | None = None,
    sizes: NDArray[np.integer[Any]] | None = None,
    extents: Extents | None = None,
    withheld: int = 0,
) -> Neutral:
    """Figures of a release from its recoding and the region of each row.

    Args:
        recoding: The recoding.
        nodes: (row,) the node of each row, -1 for a row that is withheld.
        k: The persons that were asked of a group.
        classes: The class of each row, for each target that has classes.
        counts: (row,) how many persons each row stands for; None: one.
        sizes: (group,) the persons of each group, where rows do not tell them because persons have several.
        extents: The ends of ordered columns; what the recoding says if not given, so that the figures are public.
        withheld: Persons that are not among these rows because they are withheld.

    Returns:
        The figures.
    """
    is_lost = nodes < 0
    lost = withheld + int(is_lost.sum() if counts is None else counts[is_lost].sum())
    found = sizes_of(nodes, counts) if sizes is None else sizes
    return Neutral(
        group_figures(found, k=k, withheld=lost),
        losses(recoding, nodes, extents=extents, counts=counts, withheld=withheld),
        tuple(mixture(name, nodes, codes, counts=counts, withheld=withheld) for name, codes in (classes or {}).items()),
    )
