# SPDX-License-Identifier: Apache-2.0
"""What groups say of a release: their sizes, how mixed the classes of a target are in them, and how many persons shared
each raw combination of quasi-identifiers before anything was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.privacy.disclosure import Disclosure


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Figures of group sizes, in persons. Smaller is more useful."""

    persons: int
    groups: int
    k: int
    withheld: int

    squares: int
    """The squares of the sizes of groups, summed."""

    @property
    def average(self) -> float:
        """The average size of a group; 0 without groups."""
        return self.persons / self.groups if self.groups else 0.0

    @property
    def c_avg(self) -> float:
        """The average size in multiples of k (LeFevre et al. 2006): 1 is the best that k allows."""
        return self.average / self.k

    @property
    def discernibility(self) -> int:
        """For every person how many cannot be told from him or her, summed (Bayardo and Agrawal 2005): the group's
        size, and for a withheld one the whole table.
        """
        return self.squares + self.withheld * (self.persons + self.withheld)


def sizes_of(groups: NDArray[np.integer[Any]], counts: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """The sizes of the groups of released rows (0 and up): in rows, or in the persons that rows stand for."""
    released = np.flatnonzero(groups >= 0)
    _, which = np.unique(groups[released], return_inverse=True)
    if counts is None:
        return np.bincount(which).astype(np.int64)
    # Whole numbers, since sums of squares are exact in these only.
    sizes = np.zeros(int(which.max(initial=-1)) + 1, np.int64)
    np.add.at(sizes, which, counts[released].astype(np.int64))
    return sizes


def group_figures(sizes: NDArray[np.integer[Any]], *, k: int, withheld: int = 0) -> GroupFigures:
    """Figures of groups of so many persons each (group,); a withheld person cannot be told from anybody."""
    whole = [int(size) for size in sizes]
    return GroupFigures(sum(whole), len(whole), k, withheld, sum(size * size for size in whole))


MOST = 14


def group_bins(sizes: NDArray[np.int64]) -> list[dict[str, int]]:
    """Groups and persons by size, in bins from `low` to `high` persons, both included, without empty bins. sizes:
    (group,) of released groups, so that no bin tells of fewer persons than share a group.
    """
    if not len(sizes):
        return []
    smallest, largest = int(sizes.min()), int(sizes.max())
    starts = [*([] if smallest else [0]), *_starts(max(1, smallest), max(1, largest))]  # rounded down, some may be 0
    place = np.searchsorted(starts, sizes, side="right") - 1
    groups = np.bincount(place, minlength=len(starts))
    persons = np.bincount(place, weights=sizes, minlength=len(starts))
    ends = [*(start - 1 for start in starts[1:]), int(sizes.max())]
    return [
        {"low": low, "high": high, "groups": int(number), "persons": int(total)}
        for low, high, number, total in zip(starts, ends, groups, persons, strict=True)
        if number
    ]


def _starts(smallest: int, largest: int) -> list[int]:
    """Where bins start: at every size if there are few, else each wider than the one before by the same factor."""
    if largest - smallest < MOST:
        return list(range(smallest, largest + 1))
    edges = np.geomspace(smallest, largest + 1, MOST + 1)
    return sorted({int(edge) for edge in np.ceil(edges[:-1] - 1e-9)})


@dataclass(frozen=True, slots=True)
class ClassEntropy:
    """What groups leave open of one target's classes; entropies are in bits (base 2)."""

    column: str
    entropy: float
    """H(C): of the classes of all released rows."""
    conditional_entropy: float
    """H(C|P): of the classes inside a group, averaged over rows."""
    classification_metric: float
    """The share of rows whose class is not their group's commonest; withheld rows count (Iyengar 2002)."""

    @property
    def explained(self) -> float:
        """The share of the entropy that groups take away; 0 where there was none."""
        return 1 - self.conditional_entropy / self.entropy if self.entropy > 0 else 0.0


def class_entropy(
    column: str,
    groups: NDArray[np.integer[Any]],
    classes: NDArray[np.integer[Any]],
    *,
    counts: NDArray[Any] | None = None,
    withheld: int = 0,
) -> ClassEntropy:
    """How mixed the classes of a target are in groups; missing is a class like any other. groups: (row,) -1 for a row
    that is withheld; classes: (row,) 0 and up; counts: (row,) the persons a row stands for; withheld: further persons,
    who are not among the rows.
    """
    masses = np.ones(len(groups)) if counts is None else counts.astype(np.float64)
    released = groups >= 0
    lost = float(masses[~released].sum()) + withheld
    masses = masses[released]
    total = float(masses.sum())
    _, group = np.unique(groups[released], return_inverse=True)
    width = int(classes.max(initial=0)) + 1
    pairs, which = np.unique(group * width + classes[released], return_inverse=True)
    held = np.bincount(which, weights=masses, minlength=len(pairs))  # persons of each class in each group
    sizes = np.bincount(group, weights=masses)
    most = np.zeros(len(sizes))
    np.maximum.at(most, pairs // width, held)
    inside = float(_n_log_n(sizes).sum() - _n_log_n(held).sum())
    overall = float(_n_log_n(np.array([total])).sum() - _n_log_n(np.bincount(pairs % width, weights=held)).sum())
    return ClassEntropy(
        column,
        entropy=max(overall / total, 0.0) if total else 0.0,
        conditional_entropy=max(inside / total, 0.0) if total else 0.0,
        classification_metric=(total - float(most.sum()) + lost) / (total + lost) if total + lost else 0.0,
    )


def _n_log_n(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """n log2 n of numbers, 0 for 0."""
    products: NDArray[np.float64] = numbers * np.log2(np.where(numbers > 0, numbers, 1.0))
    return products


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
    """Count the persons of every raw combination, and those who share theirs with fewer than k. With an entity column a
    person may have several combinations, and is alone if one of them is nobody else's; with a count column a row stands
    for several persons.
    """
    # Equal rows have equal hashes; that two others of millions have is far less likely than a fault of the machine.
    hashes = frame.select(names).hash_rows(seed=0)
    if entity is None and count is None:
        ordered = hashes.sort().to_numpy()
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return _risk([np.diff(np.append(starts, len(ordered)))], k)
    rows = pl.DataFrame({"combination": hashes, "persons": frame[entity or count or ""]})
    if entity is not None:
        return _risk_of_entities(rows, k)
    sizes = rows.group_by("combination").agg(pl.col("persons").cast(pl.Int64).sum())["persons"]
    return _risk([sizes.to_numpy().astype(np.int64)], k)


def _risk_of_entities(rows: pl.DataFrame, k: int) -> InitialRisk:
    """The risk where a person may have several rows, even of several combinations: each counts once."""
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
        from anonfit.auditing.hashing import HashShards

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
    tellable = rule.may_disclose(risk.alone, risk.persons) and rule.may_disclose(risk.below_k, risk.persons)
    apart = not rule.below_threshold(risk.below_k - risk.alone)
    exact = rule.rows_are_persons or not rule.min_persons
    hidden = {"persons": "not told", "share": "not told"}
    return {
        "smallest": rule.number(risk.smallest),
        "alone": rule.share(risk.alone, risk.persons) if apart else hidden,
        "below_k": rule.share(risk.below_k, risk.persons),
        "average": risk.risks / risk.persons if tellable and apart and exact and risk.persons else None,
    }
