# SPDX-License-Identifier: Apache-2.0
"""Holds the demands on a raw column against what its groups hold: the figure of the worst group, and whether every
group is as asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anonfit.auditing.coding import IntArray
from anonfit.auditing.evidence import Evidence
from anonfit.auditing.groups import Spread, ValueCounts, count_values, spread_of
from anonfit.auditing.request import DiversityDemand
from anonfit.auditing.result import Diversity, Figure
from anonfit.auditing.values import RawValues, Reading, Reads, Values, read_values, type_of

__all__ = ["PERSONS_UNKNOWN", "generalized_target", "groups_that_miss", "measure_demands"]

PERSONS_UNKNOWN = "Not checked: persons are told apart by their entities, which are only in the source."
_NO_ROWS = "Not checked: there are no rows."
_NOT_ASKED = "Nothing was asked."
_NO_CLASSES = (
    "Not checked: the target holds numbers or dates, and no classes of them are stated; give classes, equal_width or "
    "type = 'nominal'."
)
_GENERALIZED = "Nothing is asked of it: the target is a quasi-identifier, so the file does not hold its values."


def generalized_target(demand: DiversityDemand) -> Diversity:
    """What is said of a target that is released generalized."""
    return _unmeasured(replace(demand, is_asked=False), _GENERALIZED)


def measure_demands(
    demands: Sequence[DiversityDemand], raw: RawValues, *, counts: ValueCounts, evidence: Evidence
) -> list[Diversity]:
    """Every demand on one column, whose values are counted as they stand; demands that read them otherwise count anew,
    once for each way.
    """
    shared: dict[tuple[Reads, Reading], tuple[Spread, Values]] = {}
    found = []
    for demand in demands:
        reason = _reason(demand, raw, evidence)
        if reason is not None:
            found.append(_unmeasured(demand, reason))
            continue
        key = (demand.measure.reads, demand.reading)
        if key not in shared:
            shared[key] = _spread(key, raw, counts=counts, evidence=evidence)
        found.append(_measured(demand, *shared[key], evidence=evidence))
    return found


def groups_that_miss(demand: DiversityDemand, raw: RawValues, *, evidence: Evidence) -> IntArray:
    """The groups that are not as a demand on a column asks."""
    if _reason(demand, raw, evidence) is not None:
        return np.empty(0, np.int64)
    counts = count_values(evidence.persons, evidence.grouping, raw.column, sizes=evidence.sizes)
    spread, values = _spread((demand.measure.reads, demand.reading), raw, counts=counts, evidence=evidence)
    _, met = demand.measure.measure(spread, values, demand.parameters)
    return spread.groups[~met]


def _reason(demand: DiversityDemand, raw: RawValues, evidence: Evidence) -> str | None:
    """Why a demand cannot be checked; None if it can."""
    if not len(raw.series):
        return _NO_ROWS
    if evidence.persons_unknown and not demand.measure.by_rows:
        return PERSONS_UNKNOWN
    reading = demand.reading
    if demand.model == "max_confidence" and reading.classes is None and reading.equal_width is None:
        return _NO_CLASSES if type_of(raw, reading) in ("continuous", "date") else None
    return None


def _spread(
    key: tuple[Reads, Reading], raw: RawValues, *, counts: ValueCounts, evidence: Evidence
) -> tuple[Spread, Values]:
    """The spread of a column's values, read in one way."""
    column, values = read_values(raw, key[1], reads=key[0])
    if column is not raw.column:
        counts = count_values(evidence.persons, evidence.grouping, column, sizes=evidence.sizes)
    return spread_of(evidence.persons, column, counts=counts), values


def _measured(demand: DiversityDemand, spread: Spread, values: Values, *, evidence: Evidence) -> Diversity:
    """The worst group's figure, and whether all groups are as asked."""
    model = demand.measure
    figures, met = model.measure(spread, values, demand.parameters)
    worst = int(np.argmin(figures) if model.worst == "smallest" else np.argmax(figures))
    figure = Figure(figures[worst].item(), int(evidence.sizes[spread.groups[worst]]))
    if not demand.is_asked:
        return replace(_unmeasured(demand, _NOT_ASKED), found=figure)
    good = bool(met.all())
    found = replace(_unmeasured(demand, model.good if good else model.bad), found=figure, met=good)
    return (
        replace(found, settings=found.settings | {"distance": values.distance}) if model.reads == "distance" else found
    )


def _unmeasured(demand: DiversityDemand, sentence: str) -> Diversity:
    """A demand that nothing was found about."""
    reading = demand.reading
    settings = {name: value for name, value in demand.parameters.items() if name != demand.measure.asked}
    if reading.classes is not None:
        settings["classes"] = [float(begin) for begin in reading.classes]
    if reading.equal_width is not None:
        settings["equal_width"] = reading.equal_width
    return Diversity(demand.column, demand.model, None, demand.asked, None, sentence, settings)
