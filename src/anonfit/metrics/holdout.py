# SPDX-License-Identifier: Apache-2.0
"""What regions tell of rows that had no part in making them.

A part of the table is put aside, regions are made of the rest, blind and for the purpose, and both predict what was
put aside. The learner needs nothing but counts, so it is there where no learning library is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.algorithms.demands import Demands
from anonfit.algorithms.mondrian import anonymize
from anonfit.algorithms.refining import Refining
from anonfit.algorithms.result import Anonymized, SelectionAnswers
from anonfit.algorithms.selections import answer_selections
from anonfit.algorithms.top_down import anonymize_top_down
from anonfit.algorithms.trees.making import TreeRequest, anonymize_by_tree
from anonfit.engines.memory.engine import MemoryEngine
from anonfit.errors import AnonfitError
from anonfit.metrics.workload import CodedTarget, coded_targets
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen
from anonfit.tables.persons import Persons
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Role, Schema
from anonfit.workload.targets import Workload

LEAN = 100
"""A region's classes are counted together with so many rows of the region it was cut from: small ones say little."""


@dataclass(frozen=True, slots=True)
class RegionLearner:
    """Predicts the class that is most frequent in a row's region, among the rows it was taught."""

    recoding: Recoding
    classes: pl.Series
    likely: NDArray[np.int64]  # (node,) the number of its most likely class

    @classmethod
    def taught(cls, recoding: Recoding, frame: pl.DataFrame, target: str) -> RegionLearner:
        """The learner of a recoding, taught with raw rows; a missing value of the target is a class of its own."""
        classes = frame[target].unique().sort()
        of_row = frame[target].rank("dense").fill_null(0).to_numpy().astype(np.int64) - 1
        if classes.null_count():  # missing sorts first
            of_row += 1
        nodes, parent = _nodes(recoding, frame), recoding.parents
        counts = np.zeros((len(parent), len(classes)))
        np.add.at(counts, (nodes, of_row), 1.0)
        return cls(recoding, classes, leaned(counts, counts.sum(axis=1), parent).argmax(axis=1))

    def predict(self, frame: pl.DataFrame) -> pl.Series:
        """The predicted class of each row; one with a value that the recoding does not know ends in an inner node."""
        nodes = _nodes(self.recoding, frame)
        # A region of a grid that no row was taught of says what the whole table says.
        return self.classes.gather(self.likely[np.where(nodes < len(self.likely), nodes, 0)])


def _nodes(recoding: Recoding, frame: pl.DataFrame) -> NDArray[np.int32]:
    return recoding.nodes(recoding.cells(frame, unseen=Unseen.ANCESTOR))


def leaned(sums: NDArray[np.float64], sizes: NDArray[np.float64], parent: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean of every node's rows, where each leans on that of the node it was cut from. (node, value)

    sums: (node, value) of the rows that end there: rows of each class, or numbers; sizes: (node,) how many these are;
    parent: (node,) the node each was cut from, -1 for the root; nodes stand in breadth-first order.
    """
    sums, sizes = sums.copy(), sizes.copy()
    levels = depths(parent)
    for level in reversed(levels[1:]):
        np.add.at(sums, parent[level], sums[level])
        np.add.at(sizes, parent[level], sizes[level])
    means = sums / max(float(sizes[0]), 1.0)
    for level in levels[1:]:
        means[level] = (sums[level] + LEAN * means[parent[level]]) / (sizes[level] + LEAN)[:, None]
    return means


def depths(parent: NDArray[np.int64]) -> list[slice]:
    """The nodes of each depth: in breadth-first order a node's parent never stands after that of a later node."""
    levels = [slice(0, 1)]
    while levels[-1].stop < len(parent):
        stop = int(np.searchsorted(parent, levels[-1].stop))
        levels.append(slice(levels[-1].stop, stop))
    return levels


@dataclass(frozen=True, slots=True)
class Gain:
    """How much larger a share of right predictions is than another, on the same rows, and what chance can do to it."""

    share: float
    noise: float
    """Two standard errors of the paired difference."""

    @property
    def is_real(self) -> bool:
        """Whether it is a gain that chance does not explain."""
        return self.share > self.noise

    @property
    def is_loss(self) -> bool:
        """Whether it is a loss that chance does not explain."""
        return self.share < -self.noise


def paired_gain(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> Gain:
    """What was gained from one way to predict to another, each right or wrong of every row. (row,)

    Example:
        >>> right = np.array([True] * 30 + [False] * 70)
        >>> paired_gain(right, right)
        Gain(share=0.0, noise=0.0)
    """
    differences = after.astype(np.float64) - before
    rows = len(differences)
    if rows < 2:
        return Gain(float(differences.sum()), math.inf)
    return Gain(float(differences.mean()), 2 * float(differences.std(ddof=1)) / math.sqrt(rows))


ROWS = 30_000
"""More rows are not put on trial: what is measured would hardly change."""
MODEL_ROWS = 9_000
"""Where models of the targets must be fitted, which takes longer."""
FEWEST = 30
"""With fewer rows nothing can be measured."""


@dataclass(frozen=True, slots=True)
class HoldoutRequest:
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
            judged = self.right if self.right is not None else self.errors
            assert judged is not None
            return len(judged) if rows is None else int(rows.sum())
        return len(np.unique(self.owners if rows is None else self.owners[rows]))


@dataclass(frozen=True, slots=True)
class Holdout:
    """Some rows to make regions of, and others to judge them by."""

    setting: HoldoutRequest
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

    def answers(self, regions: Anonymized, k: int | None = None) -> SelectionAnswers | None:
        """How the selections are answered from regions."""
        setting = self.setting
        if regions.answers is not None or not setting.workload.selections:
            return regions.answers
        return answer_selections(
            setting.workload.selections, setting.schema, self.known, regions, k=k or setting.demands.k
        )

    def judge(self, regions: Anonymized | None) -> tuple[Judged, ...]:
        """What regions tell of the others' targets; without regions, what the known rows tell as a whole."""
        if not self.targets:
            return ()
        parent, nodes = np.array([-1]), np.zeros(len(self.known), np.int64)
        reached = np.zeros(len(self.others), np.int64)
        if regions is not None:
            nodes[regions.numbers] = regions.nodes
            reached = _nodes(regions.recoding, self.others).astype(np.int64)
            parent = regions.recoding.parents  # only now: a grid gets a node for each region that is reached first
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


def draw_holdout(setting: HoldoutRequest) -> Holdout | None:
    """Two thirds of the rows to make regions of, a third to judge by, a person's rows together; None if too few."""
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
    targets = tuple(target for target in coded_targets(workload, setting.schema, chosen) if not target.is_generalized)
    return Holdout(setting, chosen[:cut], chosen[cut:], targets)


def _drawn(setting: HoldoutRequest, most: int) -> tuple[NDArray[np.int64], NDArray[np.uint32] | None]:
    """Some rows in an order drawn at random, a person's rows together, and whose all rows are."""
    rng = np.random.default_rng(setting.seed)
    rows = len(setting.frame)
    if setting.rows_are_persons:
        return rng.choice(rows, min(rows, most), replace=False), None
    owners = setting.persons(setting.frame).entities
    assert owners is not None
    rank = rng.permutation(int(owners.max(initial=0)) + 1)
    return np.argsort(rank[owners], kind="stable")[:most], owners
