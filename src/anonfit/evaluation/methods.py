# SPDX-License-Identifier: Apache-2.0
"""What is compared: ways to recode a table for a k, and two baselines: the raw rows, and rows without their
quasi-identifiers.

A method is anything with a `name` and `recode`. Methods of one name are taken to do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import polars as pl

from anonfit.criteria.objectives import OBJECTIVES, CriterionName
from anonfit.errors import RequestError, did_you_mean
from anonfit.recoding.recoding import Recoding
from anonfit.release.run import make
from anonfit.spec.model import AUTO, MethodSpec, Spec, WeightRule, WorkloadSpec
from anonfit.tables.schema import ColumnType, NominalSplit, Role

ORIGINAL = "original"
"""Models learn from raw rows."""
REMOVED = "removed"
"""Models learn from rows without their quasi-identifiers."""
BASELINES = (ORIGINAL, REMOVED)
TOOLKIT = ("toolkit-forest", "toolkit-boosting")
"""ai-privacy-toolkit by each of its guides: no recoding of ours (`toolkit`)."""
DEFAULT_METHODS = ("spec", "median")


class Method(Protocol):
    """A way to recode a table."""

    @property
    def name(self) -> str:
        """What it is called in results."""

    def recode(self, frame: pl.DataFrame, spec: Spec, k: int, seed: int) -> Recoding:
        """A recoding, learned from these rows, in whose regions at least k of their persons are."""


@dataclass(frozen=True)
class SpecMethod:
    """A method that is a variant of the spec."""

    name: str
    variant: Callable[[Spec], Spec | None] = field(repr=False, compare=False)
    """From a spec to the one to run; None where the spec has not what the method needs."""
    needs: str = ""

    def spec(self, spec: Spec, k: int) -> Spec | None:
        """The spec that is run for a k."""
        variant = self.variant(spec)
        return None if variant is None else replace(variant, privacy=replace(variant.privacy, k=k))

    def required(self, spec: Spec, k: int) -> Spec:
        """The spec that is run for a k; refused where there is none."""
        variant = self.spec(spec, k)
        if variant is None:
            raise RequestError(f"the method '{self.name}' needs {self.needs}, and the spec has not that.")
        return variant

    def recode(self, frame: pl.DataFrame, spec: Spec, k: int, seed: int) -> Recoding:
        """The recoding of the spec's variant."""
        variant = self.required(spec, k)
        seeded = replace(variant, method=replace(variant.method, seed=seed))
        return make(seeded, source=frame, threads=1).recoding


def method(name: str) -> SpecMethod:
    """The method of a name of METHODS.

    Example:
        >>> method("median").name
        'median'
    """
    if name not in METHODS:
        raise RequestError(f"there is no method '{name}'; {did_you_mean(name, (*METHODS, *TOOLKIT, *BASELINES))}")
    return METHODS[name]


def _with(spec: Spec, criterion: CriterionName, *, denoise: bool = False) -> Spec:
    """The spec with another criterion of Mondrian, in the way of the papers."""
    if spec.privacy.quasi_identifiers:
        raise RequestError(
            f"the criterion '{criterion}' divides all columns together, and privacy.quasi_identifiers asks for several "
            "quasi-identifiers; evaluate spec, original and removed only."
        )
    # The settings of another algorithm mean nothing to Mondrian.
    settings = spec.method if spec.method.capabilities.splits else MethodSpec(cut_points=spec.method.cut_points)
    method, workload = replace(settings, criterion=criterion), replace(spec.workload, denoise=denoise)
    return replace(spec, method=method, workload=workload)


def _named(name: CriterionName) -> SpecMethod:
    """The spec's workload by a criterion, if it has what the criterion needs."""
    objective = OBJECTIVES[name]

    def variant(spec: Spec) -> Spec | None:
        given = {"targets": spec.targets, "selections": spec.workload.selections}
        return _with(spec, name) if objective.needs is None or given[objective.needs] else None

    return SpecMethod(name, variant, objective.asked if objective.needs else "")


def _weighted(rule: WeightRule) -> Callable[[Spec], Spec | None]:
    """The spec's weights by a rule, without its targets."""

    def variant(spec: Spec) -> Spec | None:
        weighted = _with(spec, "weighted")
        method = replace(weighted.method, weight_rule=rule, alpha=MethodSpec().alpha, min_gain=0.0)
        return replace(weighted, method=method) if spec.weights or spec.workload.weights_from else None

    return variant


def _combined(spec: Spec) -> Spec | None:
    if not spec.targets or not (spec.weights or spec.workload.weights_from):
        return None
    combined = _with(spec, "auto")
    return replace(combined, method=replace(combined.method, weight_rule="combined"))


def _unguided(criterion: CriterionName) -> Callable[[Spec], Spec]:
    """The spec's columns by a criterion that no target steers; exploring begins with what targets alone ask for."""

    def variant(spec: Spec) -> Spec:
        default, unguided = MethodSpec(), _with(spec, criterion)
        kept = {name: getattr(default, name) for name in ("weight_rule", "alpha", "candidates", "min_gain")}
        workload = replace(unguided.workload, weights_from=None, denoise=AUTO)
        return replace(unguided, method=replace(unguided.method, **kept), workload=workload)

    return variant


def _subset_denoised(spec: Spec) -> Spec | None:
    if not spec.targets:
        return None
    columns = dict(spec.columns)
    for name, column in columns.items():
        is_nominal = column.type == ColumnType.NOMINAL or (column.type is None and column.taxonomy is not None)
        if is_nominal and column.role == Role.QUASI_IDENTIFIER:
            columns[name] = replace(column, split=NominalSplit.SUBSET)
    return _with(replace(spec, columns=columns), "infogain", denoise=True)


def _tree(spec: Spec) -> Spec | None:
    """The table that a k-anonymous decision tree stands for; nothing but the target steers it."""
    persons = (Role.ENTITY, Role.COUNT, Role.SAMPLE_WEIGHT)
    if len(spec.targets) != 1 or spec.privacy.diversity or any(spec.of_role(role) for role in persons):
        return None
    columns = {name: replace(column, split=None) for name, column in spec.columns.items()}
    settings = spec.method
    if not settings.capabilities.grows_tree:
        settings = MethodSpec("tree", cut_points=settings.cut_points)
    workload, privacy = WorkloadSpec(targets=spec.workload.targets), replace(spec.privacy, quasi_identifiers=())
    return replace(spec, columns=columns, method=settings, workload=workload, privacy=privacy)


def _tdr(spec: Spec) -> Spec | None:
    """Top-down refinement for the spec's target; of one quasi-identifier, that is top-down specialization."""
    if len(spec.targets) != 1:
        return None
    is_two_way = (NominalSplit.BINARY, NominalSplit.SUBSET)
    columns = {
        name: replace(column, split=None) if column.split in is_two_way else column
        for name, column in spec.columns.items()
    }
    settings = spec.method if spec.method.capabilities.refines else MethodSpec("tdr", cut_points=spec.method.cut_points)
    return replace(spec, columns=columns, method=settings, workload=WorkloadSpec(targets=spec.workload.targets))


METHODS = {
    way.name: way
    for way in (
        SpecMethod("spec", lambda spec: spec),
        _named("median"),
        _named("infogain"),
        SpecMethod("infogain-subset-denoised", _subset_denoised, "a target with classes"),
        _named("lsd"),
        _named("selection"),
        SpecMethod("tree", _tree, "one target with classes, rows that are persons, and no demand on sensitive columns"),
        SpecMethod("tdr", _tdr, "one target with classes (of several, workload.targets names one)"),
        SpecMethod("weighted", _weighted("first"), "weights"),
        SpecMethod("naive", _weighted("naive"), "weights"),
        SpecMethod("probabilistic", _weighted("probabilistic"), "weights"),
        SpecMethod("combined", _combined, "weights and a target"),
        SpecMethod("clustering", _unguided("clustering")),
        SpecMethod("explore", _unguided("explore")),
        *(_named(each.name) for each in OBJECTIVES.values() if each.serves and each.name not in ("infogain", "lsd")),
    )
}
