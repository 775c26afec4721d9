# SPDX-License-Identifier: Apache-2.0
"""Diversity models measured on groups: a model turns the counts of a sensitive column into one number per group.
A new model is one more small class here and one more entry in MODELS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from anonfit.auditing.figures import Figure
from anonfit.auditing.groups import ValueCounts
from anonfit.auditing.result import Diversity
from anonfit.errors import SpecError, did_you_mean

__all__ = ["MODELS", "DistinctL", "DiversityDemand", "DiversityModel", "measure_diversity", "read_demand"]


class DiversityModel(Protocol):
    """How diverse the values of a sensitive column are in a group; more is better."""

    parameter: str  # the key that holds what is asked

    def of_groups(self, counts: ValueCounts) -> npt.NDArray[Any]:
        """One number per group."""
        ...


class DistinctL:
    """The number of different values in the group; missing is a value."""

    parameter = "l"

    def of_groups(self, counts: ValueCounts) -> npt.NDArray[Any]:
        """One number per group."""
        return np.bincount(counts.group, minlength=len(counts.sizes))


MODELS: Mapping[str, DiversityModel] = {"distinct-l": DistinctL()}


@dataclass(frozen=True, slots=True)
class DiversityDemand:
    """At least `least` of a model in every group."""

    column: str
    model: str
    least: float | None


def read_demand(entry: Mapping[str, Any]) -> DiversityDemand:
    """A demand as in the spec: {"column": …, "model": "distinct-l", "l": 3}."""
    name = str(entry.get("model"))
    if name not in MODELS:
        raise SpecError([f"The audit cannot measure the diversity model '{name}': {did_you_mean(name, MODELS)}"])
    least = entry.get(MODELS[name].parameter)
    if "column" not in entry or not isinstance(least, (int, float)):
        raise SpecError([f"A diversity demand needs a column and '{MODELS[name].parameter}', a number."])
    return DiversityDemand(str(entry["column"]), name, float(least))


def measure_diversity(demand: DiversityDemand, counts: ValueCounts) -> Diversity:
    """The demanded model in the worst group."""
    found = MODELS[demand.model].of_groups(counts)
    if not len(found):
        return Diversity(demand.column, demand.model, None, demand.least)
    worst = int(np.argmin(found))
    figure = Figure(found[worst].item(), int(counts.sizes[worst]))
    return Diversity(demand.column, demand.model, figure, demand.least)
