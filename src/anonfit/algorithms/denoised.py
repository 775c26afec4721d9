# SPDX-License-Identifier: Apache-2.0
"""Targets as models see them, on any engine: models learn from rows that are drawn by what they hold, and what they
expect of each row becomes fields of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.coding import TableCoding
from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import SHARE_BITS, ClassTarget, Impurity, NumberTarget, ShareTarget, Target
from anonfit.engines.contract import CountRequest, OutOfCore, out_of_core
from anonfit.engines.levels.sampling import draw_of
from anonfit.engines.memory.layout import MASS, PERSONS, code_name, label_name, target_names
from anonfit.tables.schema import CodedColumn
from anonfit.workload.denoising import Predictor, deals_of, fit_numbers, fit_shares, fixed_shares
from anonfit.workload.denoising_models import make_examples, mixed
from anonfit.workload.targets import Workload

MOST_LEARNED = 60_000
"""Models learn from about so many rows: more make them slower and hardly better."""
MOST_CLASSES = 16
"""That are told apart; of more, the most common ones, and all others are one."""

LEAST_TOLD = 0.01
"""What a split must tell those who learn from the own classes of its groups, in nats; a nat of numbers is twice the
variance that models cannot tell.
"""

Values = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Gathered:
    """Rows to learn from, or combinations of what rows hold: their fields, how many rows and how much mass each stands
    for, and whether they are all that the table has.
    """

    values: Values
    rows: NDArray[np.int64]
    masses: NDArray[np.int64]
    complete: bool


def gather_here(values: Values, masses: NDArray[Any] | None, names: Sequence[str]) -> Gathered:
    """What models learn from of rows in memory, drawn by some fields as an engine does."""
    rows = len(next(iter(values.values())))
    masses = np.ones(rows, np.int64) if masses is None else masses.astype(np.int64)
    share = min(1.0, MOST_LEARNED / rows)
    if share < 1.0:
        chosen = draw_of(names, share).drawn(values)
        drawn = {name: values[name][chosen] for name in names}
        if not _are_few(drawn, names, share):
            of_drawn = masses[chosen]
            return Gathered(drawn, np.ones(len(of_drawn), np.int64), of_drawn, complete=False)
    return Gathered(values, np.ones(rows, np.int64), masses, complete=True)


def _are_few(drawn: Values, names: Sequence[str], share: float) -> bool:
    """Whether the table has so few combinations that all can be learned from: a draw takes all rows of a combination
    or none, so of few it would be no fair sample.
    """
    keys = np.zeros(len(drawn[names[0]]), np.uint64)
    for name in names:
        keys = mixed(keys ^ drawn[name].astype(np.int64).astype(np.uint64))
    return len(np.unique(keys)) <= 2 * MOST_LEARNED * share


def _gather_outside(engine: OutOfCore, names: Sequence[str], mass: tuple[str, ...]) -> Gathered:
    """The same from an engine that has the rows elsewhere."""
    share = min(1.0, MOST_LEARNED / engine.rows)
    drawn = engine.sample(draw_of(names, share), [*names, *mass])
    rows = len(drawn[names[0]])
    if share == 1.0 or not _are_few(drawn, names, share):
        masses = drawn[mass[0]].astype(np.int64) if mass else np.ones(rows, np.int64)
        return Gathered(drawn, np.ones(rows, np.int64), masses, complete=share == 1.0)
    [counted] = engine.count([CountRequest((0,), tuple(names), ((), mass))])
    return Gathered(dict(zip(names, counted.by, strict=True)), counted.sums[0], counted.sums[1], complete=True)


@dataclass(frozen=True, slots=True)
class Expected:
    """A target by what models expect, without rows; `codes` are the columns that they look at, `merged` has the number
    of each class among those that are told apart.
    """

    place: int
    target: ShareTarget | NumberTarget
    codes: tuple[int, ...]
    predictor: Predictor
    merged: NDArray[np.int64] | None = None

    def fields(self, values: Values, threads: int | None) -> dict[str, NDArray[Any]]:
        """What is expected of rows with these codes; and their own values, where it is held against these."""
        codes = [values[code_name(column)] for column in self.codes]
        names = target_names(self.place, self.target)
        if isinstance(self.target, NumberTarget):
            scale = self.target.scale
            both = self.predictor.beside_own(codes, scale.restore(values[label_name(self.place)]), threads)
            return {name: scale.quantize(numbers).astype(np.int32) for name, numbers in zip(names, both, strict=False)}
        expected = self.predictor(codes, len(values[code_name(0)]), threads)
        shares = fixed_shares(expected, bits=SHARE_BITS).astype(np.uint16)
        if self.target.measured_by == Impurity.SURPRISE:
            assert self.merged is not None
            own = self.merged[values[label_name(self.place)].astype(np.int64)]
            shares = np.concatenate([shares, np.eye(shares.shape[1], dtype=np.uint16)[own] << SHARE_BITS], axis=1)
        return {name: shares[:, label].copy() for label, name in enumerate(names)}


def expected_fields(targets: Sequence[Expected], values: Values) -> dict[str, NDArray[Any]]:
    """What an engine adds to its rows: the fields of all targets."""
    return {name: numbers for target in targets for name, numbers in target.fields(values, 1).items()}


def denoised(
    coding: TableCoding, purpose: SplitObjective, workload: Workload, columns: Sequence[CodedColumn], k: int
) -> SplitObjective:
    """A purpose whose targets are what models expect of rows, but for those that are given as models."""
    given = {request.column for request in workload.used_targets if request.model is not None}
    wanted = [place for place, target in enumerate(purpose.targets) if target.name not in given]
    if not wanted:
        return purpose
    names = [code_name(column) for column in range(len(columns))] + [label_name(place) for place in wanted]
    if coding.by_row:
        values = {code_name(place): coding.codes[column.name] for place, column in enumerate(columns)}
        values |= {label_name(place): _labels(purpose.targets[place]) for place in wanted}
        assert coding.persons is not None
        masses = coding.persons.counts if purpose.masses is None else purpose.masses
        gathered = gather_here(values, masses, names)
    else:
        mass = (MASS,) if purpose.masses is not None else (PERSONS,) if coding.count is not None else ()
        gathered = _gather_outside(out_of_core(coding.engine), names, mass)
    learner = _Learner(gathered, columns, workload, k, coding.threads)
    by_models = [learner.expected(place, purpose.targets[place]) for place in wanted]
    targets: list[Target] = list(purpose.targets)
    for expected in by_models:
        targets[expected.place] = _with_rows(expected, values, coding.threads) if coding.by_row else expected.target
    if not coding.by_row:
        out_of_core(coding.engine).derive(names, partial(expected_fields, tuple(by_models)))
    return replace(purpose, targets=tuple(targets))


def _labels(target: Target) -> NDArray[np.int64]:
    """The class or the number of every row."""
    return target.classes if isinstance(target, ClassTarget) else target.multiples  # type: ignore[attr-defined]


def _with_rows(expected: Expected, values: Values, threads: int | None) -> Target:
    fields = [own.astype(np.int64) for own in expected.fields(values, threads).values()]
    if isinstance(expected.target, NumberTarget):
        return replace(expected.target, multiples=fields[0], own=fields[1] if len(fields) > 1 else None)
    return replace(expected.target, shares=np.stack(fields, axis=1))


def _merged(classes: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
    """The number of each class among those that are told apart, and how many these are; `classes` has the masses."""
    present = int((classes > 0).sum())
    named = present if present <= MOST_CLASSES else MOST_CLASSES - 1
    # A stable sort, so that of equally common classes the lower comes first.
    common = np.sort(np.argsort(-classes, kind="stable")[:named])
    merged = np.full(len(classes), named if present > MOST_CLASSES else 0)
    merged[common] = np.arange(named)
    return merged, max(1, min(present, MOST_CLASSES))


def price_of_classes(shares: NDArray[np.float64], k: int) -> float:
    """What it costs to estimate the shares of classes in one more group, in nats: one for each number that is
    estimated, as Akaike's criterion has it. Of classes that k persons hardly have, there is less to estimate.
    """
    return max(1.0, float(np.minimum(1.0, k * shares).sum()) - 1.0)


@dataclass(frozen=True, slots=True)
class _Learner:
    """Fits the models of targets."""

    gathered: Gathered
    columns: Sequence[CodedColumn]
    workload: Workload
    k: int
    threads: int | None

    def expected(self, place: int, target: Target) -> Expected:
        """A target by its models. It is predicted from the columns that may be split, and not from itself."""
        kept = tuple(
            number
            for number, column in enumerate(self.columns)
            if number != target.column and (not self.workload.split_on or column.name in self.workload.split_on)
        )
        columns = [self.columns[column] for column in kept]
        codes = [self.gathered.values[code_name(column)] for column in kept]
        labels = self.gathered.values[label_name(place)].astype(np.int64)
        gathered, seed = self.gathered, self.workload.seed
        asked: dict[str, Any] = {"complete": gathered.complete, "seed": seed, "threads": self.threads}
        few = self.workload.deals or deals_of(int(gathered.rows.sum()))
        asked["deals"] = few if self.workload.min_gain is None else 1
        if isinstance(target, NumberTarget):
            numbers = target.scale.restore(labels)
            examples = make_examples(columns, codes, numbers, gathered.rows, gathered.masses)
            fitted = fit_numbers(columns, examples, **asked)
            judged = replace(target, own=target.multiples, price=2 * fitted.noise * LEAST_TOLD)
            return Expected(place, judged if self._stops(fitted, 2 * fitted.noise) else target, kept, fitted)
        assert isinstance(target, ClassTarget)
        classes = np.bincount(labels, gathered.masses, minlength=target.width).astype(np.float64)
        merged, width = _merged(classes)
        examples = make_examples(columns, codes, merged[labels], gathered.rows, gathered.masses)
        fitted = fit_shares(columns, examples, width, **asked)
        shares = np.bincount(merged, classes, minlength=width) / classes.sum()
        stops = self._stops(fitted, price_of_classes(shares, self.k))
        empty = np.zeros((0, 2 * width if stops else width), np.int64)
        measured, price = (Impurity.SURPRISE, LEAST_TOLD) if stops else (target.measured_by, 0.0)
        expected = ShareTarget(target.name, empty, target.weight, target.column, measured, price)
        return Expected(place, expected, kept, fitted, merged)

    def _stops(self, fitted: Predictor, price: float) -> bool:
        """Whether splits end where they tell nothing more: not where models cannot tell of all rows together what one
        more group costs, so that hardly any split could.
        """
        learned = float(self.gathered.rows.sum())
        return self.workload.min_gain is None and fitted.explained * learned > price
