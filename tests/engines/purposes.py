# SPDX-License-Identifier: Apache-2.0
"""Random purposes and sensitive columns for random tables, and plain demands on the counts of sensitive values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anonfit.criteria.objectives import SplitObjective, WeightRule
from anonfit.criteria.targets import (
    SHARE_BITS,
    ClassTarget,
    CodedSelections,
    Impurity,
    NumberTarget,
    ShareTarget,
    Target,
)
from anonfit.tables.scales import fixed_point
from anonfit.tables.schema import CodedColumn, CodedTable, SplitMode
from anonfit.testing.reference import Diverse

Array = np.ndarray[Any, np.dtype[Any]]
Random = np.random.Generator


# --- targets ----------------------------------------------------------------------------------------------------


def _signal(rng: Random, table: CodedTable) -> Array:
    """A number per row that depends on the codes of one or two columns, and on chance."""
    found = np.zeros(table.rows)
    for _ in range(int(rng.integers(1, 3))):
        index = int(rng.integers(0, len(table.columns)))
        by_code = rng.normal(size=table.columns[index].size)
        if rng.random() < 0.5:
            by_code = np.sort(by_code)
        found += by_code[table.codes[index]]
    return found + rng.choice([0.0, 0.3, 2.0]) * rng.normal(size=table.rows)


def random_class_target(rng: Random, table: CodedTable, name: str, weight: float) -> ClassTarget:
    """One to five classes, some of them perhaps without rows."""
    width = int(rng.integers(1, 6))
    cuts = np.sort(rng.normal(size=width - 1))
    return ClassTarget(name, np.searchsorted(cuts, _signal(rng, table)).astype(np.int64), width, weight)


def random_share_target(rng: Random, table: CodedTable, name: str, weight: float) -> ShareTarget:
    """Shares of two to four classes; in some targets many rows have the same, in some each row has its own class, too."""
    width = int(rng.integers(2, 5))
    signal = _signal(rng, table)
    if rng.random() < 0.5:
        signal = np.round(signal)
    raw = np.exp(np.outer(signal, rng.normal(size=width)))
    shares = np.floor(raw / raw.sum(axis=1, keepdims=True) * (1 << SHARE_BITS)).astype(np.int64)
    shares[:, 0] += (1 << SHARE_BITS) - shares.sum(axis=1)
    if rng.random() < 0.3:
        # All of one class, as in a model that is sure.
        shares = np.eye(width, dtype=np.int64)[shares.argmax(axis=1)] << SHARE_BITS
    if rng.random() < 0.5:
        drawn = (shares.cumsum(axis=1) > rng.integers(0, 1 << SHARE_BITS, table.rows)[:, None]).argmax(axis=1)
        own = np.eye(width, dtype=np.int64)[drawn] << SHARE_BITS
        return ShareTarget(
            name,
            np.concatenate([shares, own], axis=1),
            weight,
            measured_by=Impurity.SURPRISE,
            price=float(rng.choice([0.0, 0.01])),
        )
    return ShareTarget(name, shares, weight)


def random_number_target(rng: Random, table: CodedTable, name: str, weight: float, mass: int) -> NumberTarget:
    """Numbers around 0 or a million, whole or not, sometimes all the same."""
    numbers = _signal(rng, table)
    if rng.random() < 0.3:
        numbers = np.round(numbers)
    elif rng.random() < 0.1:
        numbers = np.zeros(table.rows)
    deviation = float(numbers.std())
    if rng.random() < 0.5:
        numbers = 1e6 + (numbers - numbers.mean()) / (deviation or 1.0)
    target = _number_target(name, numbers, weight, mass, scaled=bool(rng.random() < 0.7))
    if rng.random() < 0.5:
        return target
    own = target.scale.quantize(numbers + rng.normal(size=table.rows) * (deviation or 1.0))
    return replace(target, own=own, price=float(rng.choice([0.0, 0.01])))


def _number_target(
    name: str, numbers: Array, weight: float, mass: int, *, column: int = -1, scaled: bool = True
) -> NumberTarget:
    scale = fixed_point(float(numbers.min()), float(numbers.max()), persons=mass)
    return NumberTarget(name, scale.quantize(numbers), scale, weight, column, scaled)


def own_target(rng: Random, table: CodedTable, weight: float, mass: int) -> Target:
    """A quasi-identifier as a target: its numbers, its values, or classes of them."""
    index = int(rng.integers(0, len(table.columns)))
    column, codes = table.columns[index], table.codes[index].astype(np.int64)
    if column.mode == SplitMode.ORDERED and rng.random() < 0.7:
        return _number_target(column.name, column.positions[codes], weight, mass, column=index)
    if rng.random() < 0.3:
        return ClassTarget(column.name, codes * 3 // column.size, 3, weight, index)
    return ClassTarget(column.name, codes, column.size, weight, index)


def random_features(rng: Random, table: CodedTable, mass: int) -> tuple[Target, ...]:
    """Columns that clusters are made of: numbers and names, each of which also counts for its own splits."""
    kept = np.flatnonzero(rng.random(len(table.columns)) < 0.7).tolist() or [0]
    found: list[Target] = []
    for index in kept:
        column, codes = table.columns[index], table.codes[index].astype(np.int64)
        weight = float(rng.choice([1.0, 1.0, 0.5, 3.0]))
        if column.mode == SplitMode.ORDERED:
            found.append(_number_target(column.name, column.positions[codes], weight, mass))
        else:
            found.append(ClassTarget(column.name, codes, column.size, weight, measured_by=Impurity.GINI))
    return tuple(found)


def random_targets(rng: Random, table: CodedTable, mass: int) -> tuple[Target, ...]:
    """One to three targets of one kind or of several; `mass` is what all rows weigh."""
    if rng.random() < 0.1:
        return random_features(rng, table, mass)
    kinds = rng.choice(["class", "share", "number", "own"], int(rng.integers(1, 4)), p=[0.4, 0.2, 0.25, 0.15])
    if rng.random() < 0.4:
        kinds[:] = kinds[0]
    found: list[Target] = []
    for number, kind in enumerate(kinds):
        weight = float(rng.choice([1.0, 1.0, 0.5, 3.0]))
        if kind == "class":
            found.append(random_class_target(rng, table, f"t{number}", weight))
        elif kind == "share":
            found.append(random_share_target(rng, table, f"t{number}", weight))
        elif kind == "number":
            found.append(random_number_target(rng, table, f"t{number}", weight, mass))
        else:
            found.append(own_target(rng, table, weight, mass))
    return tuple(found)


# --- selections -------------------------------------------------------------------------------------------------


def _random_side(rng: Random, column: CodedColumn) -> Array:
    """Which codes of a column a rectangle has: all, a run, or any set. (code,)"""
    side = np.zeros(column.size, np.uint8)
    kind = rng.random()
    if kind < 0.4:
        side[:] = 1
    elif kind < 0.5 or column.mode != SplitMode.ORDERED:
        side[rng.random(column.size) < rng.choice([0.2, 0.5])] = 1
        side[rng.integers(0, column.size)] = 1
    else:
        first, last = sorted(rng.integers(0, column.size, 2).tolist())
        side[first : last + 1] = 1
    return side


def _boundaries(table: CodedTable, rectangles: Array) -> Array:
    """Where a rectangle of an ordered column begins or ends. (code of any column,)"""
    faces, first = np.zeros(rectangles.shape[1], np.uint8), 0
    for column in table.columns:
        sides = rectangles[:, first : first + column.size]
        if column.mode == SplitMode.ORDERED and column.size > 1:
            faces[first + 1 : first + column.size] = (sides[:, 1:] != sides[:, :-1]).any(axis=0)
        first += column.size
    return faces


def random_selections(rng: Random, table: CodedTable) -> CodedSelections:
    """One to six rectangles of one to four selections, for rows of one to three signatures."""
    wanted, selections, signatures = (int(rng.integers(1, end)) for end in (7, 5, 4))
    ends = np.cumsum([column.size for column in table.columns])[:-1]
    kept: list[tuple[int, Array]] = []
    for _ in range(wanted):
        selection = int(rng.integers(0, selections))
        rectangle = np.concatenate([_random_side(rng, column) for column in table.columns])
        earlier = [other for number, other in kept if number == selection]
        # The rectangles of one selection are disjoint: in some column they have no code in common.
        if all(any(not side.any() for side in np.split(rectangle & other, ends)) for other in earlier):
            kept.append((selection, rectangle))
    rectangles = np.stack([rectangle for _, rectangle in kept])
    applies = (rng.random((signatures, len(kept))) < (0.6 if signatures > 1 else 1.0)).astype(np.uint8)
    return CodedSelections(
        rectangles,
        np.array([selection for selection, _ in kept], np.int64),
        rng.choice([1.0, 1.0, 0.3, 2.5], selections),
        rng.integers(0, signatures, table.rows),
        applies,
        _boundaries(table, rectangles),
    )


# --- purposes ---------------------------------------------------------------------------------------------------


def random_weights(rng: Random, table: CodedTable) -> dict[str, Any]:
    """A weight rule and weights, some of which are equal, nearly equal or 0."""
    rule = WeightRule(int(rng.integers(1, 6)))
    weights = rng.choice([0.0, 0.5, 1.0, 1.0, 1.0 + 1e-12, 3.0], len(table.columns))
    found = {name: float(rng.choice([0.0, 0.3, 0.5, 1.0])) for name in ("alpha", "beta", "gamma")}
    return {"rule": rule, "weights": tuple(weights.tolist()), "seed": int(rng.integers(-(2**63), 2**63)), **found}


def _random_masses(rng: Random, table: CodedTable) -> dict[str, Any]:
    """Masses of at least 1 and what one of them stands for, or nothing."""
    if rng.random() < 0.75:
        return {}
    return {"masses": rng.integers(1, 40, table.rows), "unit": float(rng.choice([1.0, 0.125, 2.0**-10]))}


def random_purpose(rng: Random, table: CodedTable) -> SplitObjective:
    """Targets, selections, weights, masses and limits in any combination."""
    settings = _random_masses(rng, table)
    persons = np.ones(table.rows, np.int64) if table.counts is None else table.counts
    mass = int(settings.get("masses", persons).sum())
    aim = rng.choice(["targets", "selections", "both", "weights"], p=[0.5, 0.15, 0.25, 0.1])
    if aim in ("targets", "both"):
        settings["targets"] = random_targets(rng, table, mass)
        settings["all_cuts"] = bool(rng.random() < 0.3)
        settings["min_gain"] = float(rng.choice([0.0, 0.01, 0.5, 4.0], p=[0.8, 0.07, 0.07, 0.06]))
    if aim in ("selections", "both"):
        settings["selections"] = random_selections(rng, table)
    if aim == "weights" or rng.random() < 0.35:
        settings |= random_weights(rng, table)
    if rng.random() < 0.25:
        settings["split_on"] = frozenset(np.flatnonzero(rng.random(len(table.columns)) < 0.6).tolist())
    return SplitObjective(**settings)


def _reordered_target(target: Target, order: Array) -> Target:
    names = ("classes", "names", "shares", "multiples", "own")
    fields = {name: found[order] for name in names if (found := getattr(target, name, None)) is not None}
    return replace(target, **fields)  # type: ignore[type-var]


def reordered_purpose(purpose: SplitObjective, order: Array) -> SplitObjective:
    """The same purpose for the same rows in another order."""
    selections = purpose.selections
    return replace(
        purpose,
        targets=tuple(_reordered_target(target, order) for target in purpose.targets),
        selections=None if selections is None else replace(selections, signatures=selections.signatures[order]),
        masses=None if purpose.masses is None else purpose.masses[order],
    )


# --- diversity --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DistinctValues:
    """At least l values."""

    l: int  # noqa: E741

    def __call__(self, counts: Array) -> bool:
        return sum(count > 0 for count in counts.tolist()) >= self.l


@dataclass(frozen=True)
class ValueEntropy:
    """As much entropy as l equally frequent values have."""

    l: float  # noqa: E741

    def __call__(self, counts: Array) -> bool:
        total = int(counts.sum())
        inner = sum(count * math.log(count) for count in counts.tolist() if count)
        return math.log(total) - inner / total >= math.log(self.l) - 1e-9


@dataclass(frozen=True)
class LargestShare:
    """No value more frequent than a share of alpha."""

    alpha: float

    def __call__(self, counts: Array) -> bool:
        return int(counts.max()) / int(counts.sum()) <= self.alpha + 1e-9


def random_diversity(rng: Random, table: CodedTable) -> tuple[Diverse, ...]:
    """No, one or two sensitive columns, each with a demand that is not too strict."""
    found = []
    for _ in range(int(rng.integers(0, 3))):
        size = int(rng.integers(1, 7))
        codes = rng.choice(size, table.rows, p=rng.dirichlet(np.ones(size) * 3))
        if rng.random() < 0.3:
            codes = np.clip(np.round(_signal(rng, table)) + size // 2, 0, size - 1).astype(np.int64)
        allows: DistinctValues | ValueEntropy | LargestShare = DistinctValues(int(rng.integers(1, 4)))
        kind = rng.random()
        if kind < 0.4:
            allows = ValueEntropy(float(rng.choice([1.0, 1.5, 2.0, 2.5])))
        elif kind < 0.7:
            allows = LargestShare(float(rng.choice([0.5, 0.6, 0.8])))
        found.append(Diverse(codes, size, allows))
    return tuple(found)


def reordered_diversity(diversity: Sequence[Diverse], order: Array) -> tuple[Diverse, ...]:
    """The same demands on the same rows in another order."""
    return tuple(replace(one, codes=one.codes[order]) for one in diversity)
