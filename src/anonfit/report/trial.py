# SPDX-License-Identifier: Apache-2.0
"""Regions on trial: made of some rows of a table, and judged by others that had no part in it.

What a release is worth is measured on rows it was not made of. So a part of the table is put aside, regions are made
of the rest, blind and for the purpose, and both predict what was put aside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.demands import Demands
from anonfit.algorithms.mondrian import anonymize
from anonfit.algorithms.result import Anonymized, SelectionAnswers
from anonfit.algorithms.selections import answer_selections
from anonfit.algorithms.top_down import Refining, anonymize_top_down
from anonfit.algorithms.trees.making import TreeRequest, anonymize_by_tree
from anonfit.engines.memory.engine import MemoryEngine
from anonfit.errors import AnonfitError
from anonfit.metrics.held_out import leaned
from anonfit.recoding.recoding import Unseen
from anonfit.report.aiming import CodedTarget, coded_targets
from anonfit.tables.persons import Persons
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Role, Schema
from anonfit.workload.targets import Workload

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Judged", "Setting", "Trial", "trial_of"]

ROWS = 30_000
"""More rows are not put on trial: what is measured would hardly change."""
MODEL_ROWS = 9_000
"""Where models of the targets must be fitted, which takes longer."""
FEWEST = 30
"""With fewer rows nothing can be measured."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A table and all that was asked of it."""

    schema: Schema
    frame: pl.DataFrame
    persons: Callable[[pl.DataFrame], Persons]
    demands: Demands
    workload: Workload
    cut_points: CutPoints
    seed: int
    refining: Refining | None = None
    """How columns are refined, where the regions are those of top-down refinement."""
    tree: TreeRequest | None = None
    """What is asked of the tree, where the regions are the spans of one."""

    @property
    def rows_are_persons(self) -> bool:
        """Whether every row is another person."""
        return not self.schema.of_role(Role.ENTITY)


@dataclass(frozen=True, slots=True)
class Judged:
    """What regions, or no regions at all, tell of a target of the rows put aside."""

    right: NDArray[np.bool_] | None  # (row,) of classes
    errors: NDArray[np.float64] | None  # (row,) squared, of numbers
    owners: NDArray[np.uint32] | None = None  # (row,) whose it is, where a person may have several

    def persons(self, rows: NDArray[np.bool_] | None = None) -> int:
        """The persons of some rows; None: of all."""
        if self.owners is None:
            held = self.right if self.right is not None else self.errors
            assert held is not None
            return len(held) if rows is None else int(rows.sum())
        return len(np.unique(self.owners if rows is None else self.owners[rows]))


@dataclass(frozen=True, slots=True)
class Trial:
    """Some rows to make regions of, and others to judge them by."""

    setting: Setting
    known: pl.DataFrame
    others: pl.DataFrame
    targets: tuple[CodedTarget, ...]
    """Of the known rows and then the others. None is a quasi-identifier: its own value would decide which region one of
    the others is in, and the region would tell it.
    """

    def regions(self, workload: Workload, k: int | None = None) -> Anonymized | None:
        """The regions of the known rows; None where these are too few for what was asked."""
        setting, engine = self.setting, MemoryEngine(self.known)
        asked: dict[str, Any] = {
            "demands": setting.demands if k is None else replace(setting.demands, k=k),
            "workload": workload,
            "cut_points": setting.cut_points,
        }
        try:
            if setting.tree is not None and not workload.is_blind:
                demand = setting.tree.demand
                tree = setting.tree if k is None else replace(setting.tree, demand=replace(demand, k=k))
                return anonymize_by_tree(engine, setting.schema, tree)
            if setting.refining is None or workload.is_blind:
                return anonymize(engine, setting.schema, **asked)
            return anonymize_top_down(engine, setting.schema, refining=setting.refining, **asked)
        except AnonfitError:  # too few rows for the demands, or none with a value of a target
            return None

    def answers(self, made: Anonymized, k: int | None = None) -> SelectionAnswers | None:
        """How the selections are answered from regions."""
        setting = self.setting
        if made.answers is not None or not setting.workload.selections:
            return made.answers
        return answer_selections(
            setting.workload.selections,
            setting.schema,
            self.known,
            made,
            k=k or setting.demands.k,
        )

    def judge(self, made: Anonymized | None) -> tuple[Judged, ...]:
        """What regions tell of the others' targets; without regions, what the known rows tell as a whole."""
        if not self.targets:
            return ()
        count = len(self.known)
        if made is None:
            parent, nodes = np.array([-1]), np.zeros(count, np.int64)
            reached = np.zeros(len(self.others), np.int64)
        else:
            nodes = np.zeros(count, np.int64)
            nodes[made.numbers] = made.nodes
            cells = made.recoding.cells(self.others, unseen=Unseen.ANCESTOR)
            reached = made.recoding.nodes(cells).astype(np.int64)
            parent = made.recoding.parents
        owners = self.setting.persons(self.others).entities
        return tuple(_judged(target, parent, nodes, reached, owners) for target in self.targets)


def _judged(
    target: CodedTarget,
    parent: NDArray[np.int64],
    nodes: NDArray[np.int64],
    reached: NDArray[np.int64],
    owners: NDArray[np.uint32] | None,
) -> Judged:
    """What is predicted of a target. nodes: of the known rows; reached, owners: of the others."""
    count = len(nodes)
    if target.has_classes:
        pairs = np.bincount(nodes * target.width + target.values[:count], minlength=len(parent) * target.width)
        classes: NDArray[np.float64] = pairs.reshape(len(parent), target.width).astype(np.float64)
        likely = leaned(classes, classes.sum(axis=1), parent).argmax(axis=1)
        return Judged(likely[reached] == target.values[count:], None, owners)
    has_number = target.known[:count]
    held = nodes[has_number]
    sums: NDArray[np.float64] = np.bincount(
        held, weights=target.values[:count][has_number].astype(np.float64), minlength=len(parent)
    ).astype(np.float64)
    sizes = np.bincount(held, minlength=len(parent)).astype(np.float64)
    errors = target.values[count:] - leaned(sums[:, None], sizes, parent)[reached, 0]
    known = target.known[count:]
    return Judged(None, np.square(errors[known]), None if owners is None else owners[known])


def trial_of(setting: Setting) -> Trial | None:
    """Draw the rows: two thirds to make regions of and a third to judge by; a person's rows stay together. None where
    there are too few.
    """
    workload, frame = setting.workload, setting.frame
    fits_models = workload.denoise or any(target.model is not None for target in workload.targets)
    order, owners = _drawn(setting, MODEL_ROWS if fits_models else ROWS)
    cut = 2 * len(order) // 3
    if owners is not None:
        while 0 < cut < len(order) and owners[order[cut]] == owners[order[cut - 1]]:
            cut += 1
    if len(order) < FEWEST or cut == len(order):
        return None
    chosen = frame[order]
    targets = tuple(one for one in coded_targets(workload, setting.schema, chosen) if not one.is_generalized)
    return Trial(setting, chosen[:cut], chosen[cut:], targets)


def _drawn(setting: Setting, most: int) -> tuple[NDArray[np.int64], NDArray[np.uint32] | None]:
    """Some rows in an order drawn at random, a person's rows together, and whose all rows are."""
    rng = np.random.default_rng(setting.seed)
    rows = len(setting.frame)
    if setting.rows_are_persons:
        return rng.choice(rows, min(rows, most), replace=False), None
    owners = setting.persons(setting.frame).entities
    assert owners is not None
    rank = rng.permutation(int(owners.max(initial=0)) + 1)
    return np.argsort(rank[owners], kind="stable")[:most], owners
