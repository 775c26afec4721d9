# SPDX-License-Identifier: Apache-2.0
"""The risk before anything was done: how many persons share each raw combination of quasi-identifiers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.privacy.disclosure import Disclosure

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CombinationCounter", "InitialRisk", "initial_content", "initial_risk"]


@dataclass(frozen=True, slots=True)
class InitialRisk:
    """Persons by how many share their raw quasi-identifiers."""

    persons: int
    risks: float
    """The sum over persons of one by how many share their combination: the rarest one, where they have several."""
    smallest: int
    alone: int
    below_k: int


def initial_risk(
    frame: pl.DataFrame, names: Sequence[str], *, k: int, entity: str | None, count: str | None
) -> InitialRisk:
    """Count the persons of every raw combination.

    Args:
        frame: Raw rows.
        names: The quasi-identifiers.
        k: The demand: persons who share their combination with fewer are counted.
        entity: The column that says whose row it is.
        count: The column that says how many persons a row stands for.

    Returns:
        The counts of persons. Who has rows of several combinations is alone if one of them is nobody else's.
    """
    import polars as pl

    # Equal rows have equal hashes; that two others of millions have is far less likely than a fault of the machine.
    hashes = frame.select(names).hash_rows(seed=0)
    if entity is None and count is None:
        ordered = hashes.sort().to_numpy()
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        sizes = np.diff(np.append(starts, len(ordered)))
    else:
        rows = pl.DataFrame({"combination": hashes, "persons": frame[entity or count or ""]})
        if entity is not None:
            return _risk_of_entities(rows, k)
        what = pl.col("persons").cast(pl.Int64).sum()
        sizes = rows.group_by("combination").agg(what)["persons"].to_numpy().astype(np.int64)
    return _risk([sizes], k)


def _risk_of_entities(rows: pl.DataFrame, k: int) -> InitialRisk:
    """The risk where a person may have several rows, even of several combinations: each counts once."""
    import polars as pl

    sizes = rows.group_by("combination").agg(pl.col("persons").n_unique().alias("size"))
    placed = rows.join(sizes, on="combination")
    alone, below_k = (
        placed.filter(chosen)["persons"].n_unique() for chosen in (pl.col("size") == 1, pl.col("size") < k)
    )
    smallest = int(sizes["size"].to_numpy().min(initial=len(rows)))
    rarest = placed.group_by("persons").agg(pl.col("size").min())["size"].to_numpy()
    return InitialRisk(len(rarest), float((1 / rarest).sum()), smallest, alone, below_k)


def _risk(parts: Iterable[NDArray[np.int64]], k: int) -> InitialRisk:
    """The risk from the persons of combinations, which may come in parts."""
    persons = combinations = alone = below_k = 0
    smallest: int | None = None
    for sizes in parts:
        if not len(sizes):
            continue
        persons += int(sizes.sum())
        combinations += len(sizes)
        alone += int(np.count_nonzero(sizes == 1))
        below_k += int(sizes[sizes < k].sum())
        smallest = int(sizes.min()) if smallest is None else min(smallest, int(sizes.min()))
    return InitialRisk(persons, combinations, smallest or 0, alone, below_k)


class CombinationCounter:
    """Counts the persons of raw combinations of rows that come in batches; no entity has several of these."""

    def __init__(self, *, has_counts: bool) -> None:
        """With `has_counts`, rows stand for several persons."""
        from anonfit.auditing import HashShards

        self.shards = HashShards(2 if has_counts else 1)

    def add(self, frame: pl.DataFrame, persons: NDArray[np.int64] | None) -> None:
        """Some more rows: their raw quasi-identifiers, and how many persons each stands for."""
        hashes = frame.hash_rows(seed=0).to_numpy()
        self.shards.add(hashes, *([] if persons is None else [persons.astype(np.uint64)]))

    def risk(self, k: int) -> InitialRisk:
        """The risk of all rows."""
        return _risk((_sizes(*part) for part in self.shards.each()), k)


def _sizes(hashes: NDArray[np.uint64], persons: NDArray[np.uint64] | None = None) -> NDArray[np.int64]:
    """The persons of every combination, each told by a hash."""
    if persons is None:
        return np.unique(hashes, return_counts=True)[1]
    _, places = np.unique(hashes, return_inverse=True)
    return np.bincount(places, weights=persons).astype(np.int64)


def initial_content(risk: InitialRisk, rule: Disclosure) -> dict[str, Any]:
    """The initial risk as it may be told.

    Who are alone is not told where few others are below k: these could be counted by subtraction. Nor is the average
    then, from which the number of combinations follows. Where persons have several rows, it would tell more of them
    than multiples of k do.
    """
    told = rule.may_tell(risk.alone, risk.persons) and rule.may_tell(risk.below_k, risk.persons)
    apart = not rule.few(risk.below_k - risk.alone)
    exact = rule.rows_are_persons or not rule.least
    hidden = {"persons": "not told", "share": "not told"}
    return {
        "smallest": rule.number(risk.smallest),
        "alone": rule.share(risk.alone, risk.persons) if apart else hidden,
        "below_k": rule.share(risk.below_k, risk.persons),
        "average": risk.risks / risk.persons if told and apart and exact and risk.persons else None,
    }
