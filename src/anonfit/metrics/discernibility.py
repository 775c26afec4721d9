# SPDX-License-Identifier: Apache-2.0
"""How many persons cannot be told from each other by one released column alone, and the weighted sum of that over
columns: the weighted discernibility metric (WDM) of Rangachari and Xiong.

Persons are told apart by what is published of the column, so labels that overlap tell them apart: many overlapping
labels look better to this metric than few that do not, although each says less. So it stands beside the certainty
penalty (NCP), and where the two disagree about two releases that is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.metrics.losses import Losses
from anonfit.recoding.recoding import Recoding

__all__ = ["Disagreement", "Discernibility", "column_discernibility", "disagreements", "weighted_discernibility"]

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

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready figures."""
        lines = [
            {"name": name, "weight": self.weights[name], "squares": value, "together": self.share(name)}
            for name, value in self.columns.items()
        ]
        return {"total": self.total, "columns": lines}


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A column that lost less by one measure and more by the other in the first of two releases."""

    column: str
    better_by: str
    """`ncp` or `wdm`."""
    ncp: tuple[float, float]
    together: tuple[float, float]


def column_discernibility(sizes: NDArray[np.integer[Any]] | Sequence[int], withheld: int = 0) -> int:
    """Σ|E|² of groups of these sizes; a withheld person cannot be told from anybody."""
    whole = [int(size) for size in sizes]
    return sum(size * size for size in whole) + withheld * (sum(whole) + withheld)


def weighted_discernibility(
    recoding: Recoding,
    nodes: NDArray[np.integer[Any]],
    *,
    weights: Mapping[str, float] | None = None,
    counts: NDArray[Any] | None = None,
    withheld: int = 0,
) -> Discernibility:
    """The discernibility of a release by each quasi-identifier alone.

    Args:
        recoding: The recoding of the release.
        nodes: (row,) the node of each row, -1 for a row that is withheld.
        weights: How much each quasi-identifier matters, 1 if it is not named; all alike if not given.
        counts: (row,) how many persons each row stands for; None: one.
        withheld: Persons that are not among these rows because they are withheld.

    Returns:
        The figures of each column and of all, by weights that add up to 1.
    """
    used, which = np.unique(nodes, return_inverse=True)
    persons = np.zeros(len(used), np.int64)
    np.add.at(persons, which, 1 if counts is None else counts.astype(np.int64))
    is_released = used >= 0
    lost = withheld + int(persons[~is_released].sum())
    found = {}
    for index, column in enumerate(recoding.columns):
        parts = recoding.boxes.parts(used[is_released], index)
        sizes = np.zeros(int(parts.of_node.max(initial=-1)) + 1, np.int64)
        np.add.at(sizes, parts.of_node, persons[is_released])
        found[column.name] = column_discernibility(sizes, lost)
    return Discernibility(found, _normalized(weights or {}, list(found)), int(persons.sum()) + withheld)


def _normalized(weights: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """Weights that add up to 1; all alike where nothing matters."""
    found = {name: float(weights.get(name, 1.0)) for name in names}
    total = sum(found.values())
    return {name: weight / total if total > 0 else 1 / len(names) for name, weight in found.items()}


def disagreements(
    first: tuple[Losses, Discernibility], second: tuple[Losses, Discernibility]
) -> tuple[Disagreement, ...]:
    """The columns of which NCP and WDM disagree which of two releases of the same persons tells more.

    Args:
        first: Losses and discernibility of one release.
        second: Those of the other.
    """
    found = []
    others = {column.name: column.ncp for column in second[0].columns}
    for column in first[0].columns:
        name = column.name
        together = first[1].share(name), second[1].share(name)
        less_lost, less_together = others[name] - column.ncp, together[1] - together[0]
        if min(abs(less_lost), abs(less_together)) > TIE and (less_lost > 0) != (less_together > 0):
            better = "ncp" if less_lost > 0 else "wdm"
            found.append(Disagreement(name, better, (column.ncp, others[name]), together))
    return tuple(found)
