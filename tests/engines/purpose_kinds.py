# SPDX-License-Identifier: Apache-2.0
"""Random purposes of a wanted kind: every criterion, and every setting beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from purposes import (
    own_target,
    random_class_target,
    random_features,
    random_number_target,
    random_purpose,
    random_selections,
    random_share_target,
    random_targets,
    random_weights,
)

from anonfit.criteria.objectives import MEDIAN, SplitObjective, WeightRule
from anonfit.criteria.targets import Target
from anonfit.tables.schema import CodedTable

Random = np.random.Generator


def mass_of(table: CodedTable) -> int:
    """What all rows weigh in criteria."""
    return table.rows if table.counts is None else int(table.counts.sum())


def _target(rng: Random, table: CodedTable, kind: str, number: int) -> Target:
    name, weight = f"t{number}", float(rng.choice([1.0, 1.0, 0.5, 3.0]))
    if kind == "class":
        return random_class_target(rng, table, name, weight)
    if kind == "share":
        return random_share_target(rng, table, name, weight)
    if kind == "number":
        return random_number_target(rng, table, name, weight, mass_of(table))
    return own_target(rng, table, weight, mass_of(table))


def _targets(rng: Random, table: CodedTable, *kinds: str) -> tuple[Target, ...]:
    return tuple(_target(rng, table, kind, number) for number, kind in enumerate(kinds))


def _several(rng: Random, table: CodedTable, kind: str, least: int) -> SplitObjective:
    return SplitObjective(_targets(rng, table, *[kind] * int(rng.integers(least, 4))))


def _mixed(rng: Random, table: CodedTable) -> SplitObjective:
    return SplitObjective(_targets(rng, table, "class", "number", *(["share"] if rng.random() < 0.5 else [])))


def _own(rng: Random, table: CodedTable) -> SplitObjective:
    return SplitObjective(_targets(rng, table, "own", *rng.choice(["class", "number", "own"], int(rng.integers(0, 3)))))


def _weighted(rng: Random, table: CodedTable, rule: WeightRule) -> SplitObjective:
    """Weights, alone or with targets, which one rule always needs."""
    settings = random_weights(rng, table) | {"rule": rule}
    if rule == WeightRule.COMBINED or rng.random() < 0.6:
        settings["targets"] = random_targets(rng, table, mass_of(table))
    return SplitObjective(**settings)


def _selections(rng: Random, table: CodedTable) -> SplitObjective:
    targets = random_targets(rng, table, mass_of(table)) if rng.random() < 0.5 else ()
    return SplitObjective(targets, random_selections(rng, table))


def _min_gain(rng: Random, table: CodedTable) -> SplitObjective:
    return SplitObjective(random_targets(rng, table, mass_of(table)), min_gain=float(rng.choice([0.01, 0.5, 1.0, 4.0])))


def _split_on(rng: Random, table: CodedTable) -> SplitObjective:
    settings: dict[str, Any] = {}
    if rng.random() < 0.6:
        settings["targets"] = random_targets(rng, table, mass_of(table))
    if rng.random() < 0.3:
        settings["selections"] = random_selections(rng, table)
    return SplitObjective(split_on=frozenset(np.flatnonzero(rng.random(len(table.columns)) < 0.6).tolist()), **settings)


def _all_cuts(rng: Random, table: CodedTable) -> SplitObjective:
    return SplitObjective(_targets(rng, table, *["class"] * int(rng.integers(1, 3))), all_cuts=True)


def _masses(rng: Random, table: CodedTable) -> SplitObjective:
    masses = rng.integers(1, 40, table.rows)
    settings: dict[str, Any] = {"masses": masses, "unit": float(rng.choice([1.0, 0.125, 2.0**-10]))}
    if rng.random() < 0.3:
        settings["selections"] = random_selections(rng, table)
    return SplitObjective(random_targets(rng, table, int(masses.sum())), **settings)


KINDS: dict[str, Callable[[Random, CodedTable], SplitObjective]] = {
    "blind": lambda _, __: MEDIAN,
    "one class target": lambda rng, table: SplitObjective(_targets(rng, table, "class")),
    "class targets": lambda rng, table: _several(rng, table, "class", 2),
    "numbers": lambda rng, table: _several(rng, table, "number", 1),
    "shares": lambda rng, table: _several(rng, table, "share", 1),
    "mixed": _mixed,
    "own": _own,
    "first": lambda rng, table: _weighted(rng, table, WeightRule.FIRST),
    "product": lambda rng, table: _weighted(rng, table, WeightRule.PRODUCT),
    "blend": lambda rng, table: _weighted(rng, table, WeightRule.BLEND),
    "naive": lambda rng, table: _weighted(rng, table, WeightRule.NAIVE),
    "chance": lambda rng, table: _weighted(rng, table, WeightRule.CHANCE),
    "combined": lambda rng, table: _weighted(rng, table, WeightRule.COMBINED),
    "clustering": lambda rng, table: SplitObjective(random_features(rng, table, mass_of(table))),
    "selections": _selections,
    "min_gain": _min_gain,
    "split_on": _split_on,
    "all_cuts": _all_cuts,
    "masses": _masses,
    "anything": random_purpose,
}
"""A purpose for a table, by what it is about."""
