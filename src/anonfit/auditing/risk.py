# SPDX-License-Identifier: Apache-2.0
"""Re-identification risk of three attackers (prosecutor, journalist and marketer), and the usual thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonfit.auditing.coding import IntArray
from anonfit.auditing.result import Figure, JournalistRisk, ProsecutorRisk, Share, ThresholdShare
from anonfit.errors import DataError, did_you_mean

__all__ = ["THRESHOLDS", "Threshold", "journalist_risk", "marketer_risk", "prosecutor_risk", "read_threshold"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A highest risk that someone finds acceptable: a preset with its source, not a law."""

    name: str
    value: float
    size: int  # the smallest group that stays within it
    source: str


THRESHOLDS = (
    Threshold("tools", 0.2, 5, "k = 5, the default of common tools (ARX: highest risk 0.2)"),
    Threshold(
        "ema-0070",
        0.09,
        11,
        "EMA policy 0070 and Health Canada PRCI: 0.09 for public release, read as groups of 11 (1/11 = 0.0909)",
    ),
    Threshold("strict", 0.05, 20, "k = 20 (ARX: records at risk and success rate 0.05)"),
)


def read_threshold(given: str | float | Threshold) -> Threshold:
    """A preset by its name, or a number between 0 and 1, which may be written as a text."""
    if isinstance(given, Threshold):
        return given
    if isinstance(given, str):
        presets = {preset.name: preset for preset in THRESHOLDS}
        if given in presets:
            return presets[given]
        try:
            value = float(given)
        except ValueError:
            raise DataError(
                f"There is no risk threshold '{given}': {did_you_mean(given, presets)} A number such as 0.05 will do, "
                "too."
            ) from None
        return read_threshold(value)
    if not 0 < given <= 1:
        raise DataError("A risk threshold is above 0 and at most 1.")
    return Threshold(f"{given}", given, math.ceil(1 / Fraction(str(given))), "given")


def prosecutor_risk(sizes: IntArray, thresholds: Sequence[Threshold]) -> ProsecutorRisk:
    """1 / size of a person's group: highest, average over persons (= groups / persons), and shares above thresholds."""
    persons = int(sizes.sum())
    smallest = int(sizes.min(initial=persons)) if persons else 0
    highest = Figure(1 / smallest if smallest else float(bool(len(sizes))), smallest)
    average = Figure(len(sizes) / persons if persons else 0.0, persons)
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
        Figure(1 / smallest if smallest else 0.0, int(smallest)),
        Figure(average, persons),
        _above(inside, sizes, thresholds),
        int(np.count_nonzero(population < sizes)),
    )


def marketer_risk(sizes: IntArray, population: IntArray | None) -> Figure:
    """The share of persons an attacker gets right who guesses every person within the group."""
    persons = int(sizes.sum())
    inside = sizes if population is None else np.maximum(population, sizes)
    return Figure(_matched(sizes, inside), persons)


def _matched(sizes: IntArray, population: IntArray) -> float:
    persons = int(sizes.sum())
    return float((sizes / np.maximum(population, 1)).sum() / persons) if persons else 0.0


def _above(hidden_in: IntArray, persons: IntArray, thresholds: Sequence[Threshold]) -> tuple[ThresholdShare, ...]:
    """Per threshold, the persons who hide among too few."""
    everyone = int(persons.sum())
    return tuple(
        ThresholdShare(
            one.name,
            one.value,
            one.size,
            one.source,
            Share(int(persons[hidden_in < one.size].sum()), everyone),
        )
        for one in thresholds
    )
