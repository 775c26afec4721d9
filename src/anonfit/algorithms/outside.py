# SPDX-License-Identifier: Apache-2.0
"""Mondrian where the rows live outside: an engine finds values, codes and counts rows, and routes them; what is chosen
from the counts is what is chosen in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from anonfit.algorithms.demands import Demands, refuse_infeasible
from anonfit.algorithms.grouped import GroupedTable
from anonfit.criteria.targets import NumberTarget
from anonfit.engines.contract import Engine
from anonfit.engines.levels.growing import HAND_OVER, Grown, grow_by_levels
from anonfit.engines.levels.shape import Shape
from anonfit.progress import Stage, silent
from anonfit.recoding.building import build_recoding
from anonfit.recoding.recoding import Recoding
from anonfit.tables.cuts import CutPoints
from anonfit.tables.domains import Domain
from anonfit.tables.schema import Role, Schema
from anonfit.workload.request import Workload

__all__ = ["AnonymizedOutside", "anonymize_outside"]


@dataclass(frozen=True, slots=True)
class AnonymizedOutside:
    """A recoding of rows that an engine has, and how it was grown."""

    recoding: Recoding
    domains: tuple[Domain, ...]
    shape: Shape
    grown: Grown
    steered: Mapping[str, bool]


def anonymize_outside(
    engine: Engine,
    schema: Schema,
    *,
    demands: Demands,
    workload: Workload,
    cut_points: CutPoints,
    kept: Sequence[str],
    hand_over: int = HAND_OVER,
    threads: int | None = None,
    stage: Stage = silent,
) -> AnonymizedOutside:
    """Make a recoding of an engine's rows, which are coded and routed on the way; the raw columns `kept` stay beside
    their codes.
    """
    stage("Finding values")
    count = next((column.name for column in schema.of_role(Role.COUNT)), None)
    table = GroupedTable(engine, count)
    guarded = table.guard(demands, schema)
    refuse_infeasible(demands, table.total(), guarded)
    columns = schema.quasi_identifiers
    domains = table.code(columns, demands.k)
    purpose = table.purpose(workload, schema.columns, [column.name for column in columns])
    shape = Shape(tuple(domain.coded() for domain in domains), purpose, tuple(guarded), count is not None)
    stage("Coding")
    engine.code(table.fields, kept)
    grown = grow_by_levels(engine, shape, demands.k, hand_over=hand_over, threads=threads, told=_told(stage))
    recoding = build_recoding(grown.tree, domains, points=cut_points)
    steered = {target.name: isinstance(target, NumberTarget) for target in purpose.targets}
    return AnonymizedOutside(recoding, tuple(domains), shape, grown, steered)


def _told(stage: Stage) -> Callable[[int, int], None]:
    return lambda level, nodes: stage(f"Growing regions: level {level}, {nodes} node(s)")
