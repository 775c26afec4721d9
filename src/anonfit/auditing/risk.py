# SPDX-License-Identifier: Apache-2.0
"""Re-identification risk of three attackers (prosecutor, journalist and marketer), the persons of a population in
released groups, and what two releases of one table tell together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from anonfit.auditing.boxes import LabelBoxes, locate_source
from anonfit.auditing.coding import Coded, IntArray, join_codes, numbered
from anonfit.auditing.groups import RowPersons, group_rows, persons_in_groups, share_of
from anonfit.auditing.reading import AuditedTable, open_table, require_columns
from anonfit.auditing.regions import read_representatives
from anonfit.auditing.released import boxes_of, guess_meanings, read_columns
from anonfit.auditing.request import OtherRelease, Request, Threshold
from anonfit.auditing.result import CountedFigure, JointCells, JournalistRisk, ProsecutorRisk, Share, ThresholdShare
from anonfit.auditing.rows import Released, open_released
from anonfit.errors import DataError


def prosecutor_risk(sizes: IntArray, thresholds: Sequence[Threshold]) -> ProsecutorRisk:
    """1 / size of a person's group: highest, average over persons (= groups / persons), and shares above thresholds."""
    persons = int(sizes.sum())
    smallest = int(sizes.min(initial=persons)) if persons else 0
    highest = CountedFigure(1 / smallest if smallest else float(bool(len(sizes))), smallest)
    average = CountedFigure(len(sizes) / persons if persons else 0.0, persons)
    return ProsecutorRisk(highest, average, _above(sizes, sizes, thresholds))


def journalist_risk(
    sizes: IntArray, population: IntArray, *, basis: str, thresholds: Sequence[Threshold]
) -> JournalistRisk:
    """The same with the size of the group in the population; a group is never larger than its population."""
    inside = np.maximum(population, sizes)
    persons = int(sizes.sum())
    smallest = float(inside.min()) if len(inside) else 0.0
    average = max(len(sizes) / float(inside.sum()), _matched(sizes, inside)) if persons else 0.0
    return JournalistRisk(
        basis,
        CountedFigure(1 / smallest if smallest else 0.0, int(smallest)),
        CountedFigure(average, persons),
        _above(inside, sizes, thresholds),
        int(np.count_nonzero(population < sizes)),
    )


def marketer_risk(sizes: IntArray, population: IntArray | None) -> CountedFigure:
    """The share of persons an attacker gets right who guesses every person within the group."""
    persons = int(sizes.sum())
    inside = sizes if population is None else np.maximum(population, sizes)
    return CountedFigure(_matched(sizes, inside), persons)


def _matched(sizes: IntArray, population: IntArray) -> float:
    persons = int(sizes.sum())
    return float((sizes / np.maximum(population, 1)).sum() / persons) if persons else 0.0


def _above(hidden_in: IntArray, persons: IntArray, thresholds: Sequence[Threshold]) -> tuple[ThresholdShare, ...]:
    """Per threshold, the persons who hide among too few."""
    everyone = int(persons.sum())
    return tuple(
        ThresholdShare(
            threshold.name,
            threshold.value,
            threshold.size,
            threshold.source,
            Share(int(persons[hidden_in < threshold.size].sum()), everyone),
        )
        for threshold in thresholds
    )


def population_sizes(released: Released, population: AuditedTable, *, boxes: LabelBoxes | None) -> tuple[IntArray, str]:
    """Persons of the population per group, and in words how they were found."""
    names = list(released.heads.columns)
    if all(name in population.schema for name in names):
        sizes = _equal_labels(released, population)
        if boxes is None or (sizes > 0).all():
            return sizes, "a population with the same labels"
    if boxes is None:
        require_columns(population, names, purpose="a quasi-identifier")
    assert boxes is not None
    group = locate_source(boxes, population, quasi_identifiers=list(released.columns)).group
    return np.bincount(group[group >= 0], minlength=released.groups), "a population of raw rows"


def _equal_labels(released: Released, population: AuditedTable) -> IntArray:
    """Rows of the population with the very labels of each group."""
    names = list(released.heads.columns)
    texts = [frame.cast(pl.String).cast(pl.Categorical) for frame in (released.heads, population.frame(names))]
    groups = released.groups
    if not names:
        return np.full(groups, population.height(), np.int64)
    together = group_rows(pl.concat(texts), len(texts[0]) + len(texts[1])).of_row
    sizes = np.bincount(together[groups:], minlength=int(together.max(initial=0)) + 1)
    persons: IntArray = sizes[together[:groups]].astype(np.int64)
    return persons


def joint_cells(here: IntArray, there: IntArray, *, persons: RowPersons, k: int | None) -> JointCells:
    """Count the persons of the source in every cell; rows that one of the releases does not hold are in no cell.

    `here` and `there` are the groups of every source row in the two releases, -1 for none.
    """
    both = (here >= 0) & (there >= 0)
    sides = [Coded(side[both], int(side.max(initial=0)) + 1) for side in (here, there)]
    cells, first = numbered(join_codes(sides, int(np.count_nonzero(both)))[0])
    sizes = persons_in_groups(persons.only(both), cells - 1, len(first))
    below = None if k is None else share_of(sizes, sizes < k)
    small = 0 if k is None else int(np.count_nonzero(sizes < k))
    return JointCells(
        cells=len(sizes),
        smallest=int(sizes.min()) if len(sizes) else None,
        cells_below_k=None if below is None else CountedFigure(small, below.persons),
        persons_below_k=below,
    )


def journalist_figures(
    released: Released, request: Request, *, sizes: IntArray, boxes: LabelBoxes | None
) -> tuple[JournalistRisk | None, IntArray | None]:
    """The risk of an attacker who knows the population, and the persons of the population per group."""
    if request.population is None:
        return None, None
    population = open_table(request.population, missing=request.missing, label="the population")
    counted, basis = population_sizes(released, population, boxes=boxes)
    return journalist_risk(sizes, counted, basis=basis, thresholds=request.thresholds), counted


def locate_in_other(other: OtherRelease, source: AuditedTable, *, missing: Sequence[str]) -> IntArray:
    """The group of every row of the source in a second release."""
    table = open_table(other.data, missing=missing, label="the other release")
    released = open_released(table, other.quasi_identifiers)
    meanings = other.meanings if other.meanings is not None else guess_meanings(released, source)
    if other.tree is not None:
        boxes = read_representatives(released, meanings, other.tree)[1]
    else:
        boxes = boxes_of(released, read_columns(released, meanings))
    if boxes is None:
        raise DataError("The labels of the other release are not understood: give the meaning of its columns.")
    return locate_source(boxes, source, quasi_identifiers=list(released.columns), **other.left_out).group
