# SPDX-License-Identifier: Apache-2.0
"""What regions tell of rows that had no part in making them.

A part of the table is put aside, regions are made of the rest, blind and for the purpose at the same k, and both
predict what was put aside. The learner needs nothing but counts, so it is there where no learning library is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from anonfit.metrics.arrays import Flags, Floats, Integers
from anonfit.metrics.losses import common_extents, disagreements, unnamed_values
from anonfit.metrics.registry import RecodedTable, content
from anonfit.metrics.workload import CodedTarget, coded_targets, leaned, selections_together
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Persons, Role, Schema
from anonfit.workload.denoising import deals_of
from anonfit.workload.objectives import feature_weights
from anonfit.workload.targets import Workload


def _nodes(recoding: Recoding, frame: pl.DataFrame) -> NDArray[np.int32]:
    return recoding.nodes(recoding.cells(frame, unseen=Unseen.ANCESTOR))


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


def paired_gain(before: Flags, after: Flags) -> Gain:
    """What was gained from one way to predict to another, each right or wrong of every row. (row,)

    Example:
        >>> right = np.array([True] * 30 + [False] * 70)
        >>> paired_gain(right, right)
        Gain(share=0.0, noise=0.0)
    """
    differences = after.astype(np.float64) - before
    if len(differences) < 2:
        return Gain(float(differences.sum()), math.inf)
    return _mean_gain(differences)


def _mean_gain(differences: Floats) -> Gain:
    return Gain(float(differences.mean()), 2 * float(differences.std(ddof=1)) / math.sqrt(len(differences)))


ROWS = 30_000
"""More rows are not put on trial: what is measured would hardly change."""
MODEL_ROWS = 9_000
"""Where models of the targets must be fitted, which takes longer."""
FEWEST = 30
"""With fewer rows nothing can be measured."""
FEWEST_COMPARED = 1000
"""With fewer rows, what a column lost by blind regions, which nobody is given, would tell of single ones."""


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


@dataclass(frozen=True, slots=True)
class Judged:
    """What regions, or no regions at all, tell of a target of the rows put aside."""

    misses: Floats  # (row,) of classes whether each is predicted wrong, of numbers the squared error
    has_classes: bool
    owners: NDArray[np.uint32] | None = None  # (row,) whose it is, where a person may have several

    def persons(self, rows: Flags) -> int:
        """The persons of some rows."""
        return int(rows.sum()) if self.owners is None else len(np.unique(self.owners[rows]))


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
        workload = replace(workload, deals=deals_of(len(setting.frame)))  # as for the whole table
        demands = setting.demands if k is None else replace(setting.demands, k=k)
        tree, refining = (None, None) if workload.is_blind else (setting.tree, setting.refining)
        request: dict[str, Any] = {"demands": demands, "workload": workload, "cut_points": setting.cut_points}
        try:
            if tree is not None:
                tree = replace(tree, demand=replace(tree.demand, k=demands.k))
                return anonymize_by_tree(engine, setting.schema, tree)
            if refining is not None:
                return anonymize_top_down(engine, setting.schema, refining=refining, **request)
            return anonymize(engine, setting.schema, **request)
        except AnonfitError:  # too few rows for the demands, or none with a value of a target
            return None

    def answers(self, regions: Anonymized, k: int | None = None) -> SelectionAnswers | None:
        """How the selections are answered from regions."""
        setting = self.setting
        if regions.answers is not None or not setting.workload.selections:
            return regions.answers
        selections, k = setting.workload.selections, k or setting.demands.k
        return answer_selections(selections, setting.schema, self.known, regions, k=k)

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
    target: CodedTarget, parent: Integers, nodes: Integers, reached: Integers, owners: NDArray[np.uint32] | None
) -> Judged:
    """What is predicted of a target. nodes: of the known rows; reached, owners: of the others."""
    count = len(nodes)
    if target.has_classes:
        pairs = np.bincount(nodes * target.width + target.values[:count], minlength=len(parent) * target.width)
        classes: Floats = pairs.reshape(len(parent), target.width).astype(np.float64)
        likely = leaned(classes, classes.sum(axis=1), parent).argmax(axis=1)
        return Judged((likely[reached] != target.values[count:]).astype(np.float64), has_classes=True, owners=owners)
    has_number, known = target.known[:count], target.known[count:]
    held, numbers = nodes[has_number], target.values[:count][has_number].astype(np.float64)
    sums, sizes = (np.bincount(held, weights, len(parent)).astype(np.float64) for weights in (numbers, None))
    errors = target.values[count:] - leaned(sums[:, None], sizes, parent)[reached, 0]
    owners = None if owners is None else owners[known]
    return Judged(np.square(errors[known]), has_classes=False, owners=owners)


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


def _drawn(setting: HoldoutRequest, most: int) -> tuple[Integers, NDArray[np.uint32] | None]:
    """Some rows in an order drawn at random, a person's rows together, and whose all rows are."""
    rng = np.random.default_rng(setting.seed)
    rows = len(setting.frame)
    if not setting.schema.of_role(Role.ENTITY):  # every row is another person
        return rng.choice(rows, min(rows, most), replace=False), None
    owners = setting.persons(setting.frame).entities
    assert owners is not None
    rank = rng.permutation(int(owners.max(initial=0)) + 1)
    return np.argsort(rank[owners], kind="stable")[:most], owners


# --- blind against made for the purpose, at the same k --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contest:
    """A target, predicted from the known rows as a whole, from blind regions, and from regions for the purpose."""

    column: str
    whole: Judged
    blind: Judged
    purpose: Judged


@dataclass(frozen=True, slots=True)
class PurposeComparison:
    """What was compared. Selections are answered from the known rows."""

    known: int
    known_persons: int
    held_out: int
    of: int
    """All rows that there are."""
    groups: tuple[int, int]
    """Of the blind regions and of those for the purpose, how many hold somebody."""
    contests: tuple[Contest, ...]
    asked: int
    """How many selections were asked for."""
    selections: tuple[SelectionAnswers, SelectionAnswers] | None
    columns: tuple[RecodedTable, RecodedTable] | None = None
    """What columns lost in both, where some matter more, or where divisions end as soon as they tell the targets no
    more: there, it is what other uses give up.
    """


def has_purpose(workload: Workload, targets: Sequence[Any]) -> bool:
    """Whether there is something that regions made for the purpose could do better than blind ones."""
    some_matter = workload.weights or workload.weights_from or workload.objective.clusters
    return not workload.is_blind and bool(targets or workload.selections or some_matter)


def compare(holdout: Holdout | None) -> PurposeComparison | None:
    """Hold blind regions and those for the purpose against the held-out rows; None without a purpose, or regions."""
    if holdout is None or not has_purpose(holdout.setting.workload, holdout.targets):
        return None
    workload = holdout.setting.workload
    blind, purpose = holdout.regions(replace(workload, criterion="median")), holdout.regions(workload)
    if blind is None or purpose is None:
        return None
    judged = (holdout.judge(regions) for regions in (None, blind, purpose))
    names = (target.column for target in holdout.targets)
    contests = tuple(Contest(*contest) for contest in zip(names, *judged, strict=True))
    blind_answers, purpose_answers = holdout.answers(blind), holdout.answers(purpose)
    return PurposeComparison(
        known=len(holdout.known),
        known_persons=holdout.setting.persons(holdout.known).total(),
        held_out=len(holdout.others),
        of=len(holdout.setting.frame),
        groups=(len(np.unique(blind.nodes)), len(np.unique(purpose.nodes))),
        contests=contests,
        asked=len(workload.selections),
        selections=None if blind_answers is None or purpose_answers is None else (blind_answers, purpose_answers),
        columns=_columns_compared(blind, purpose, workload),
    )


def _columns_compared(
    blind: Anonymized, purpose: Anonymized, workload: Workload
) -> tuple[RecodedTable, RecodedTable] | None:
    """What columns lost in both, measured alike; None where no column matters more and every division is made."""
    names, weights = purpose.recoding.quasi_identifiers, workload.weights
    if purpose.learned is not None:
        weights = purpose.learned.weights
    elif workload.objective.clusters:
        weights = dict.fromkeys(names, 0.0) | feature_weights(workload, list(names))
    ends_early = workload.denoise and workload.min_gain is None and bool(workload.used_targets)
    if not weights and ends_early and len(blind.nodes) >= FEWEST_COMPARED:
        weights = dict.fromkeys(names, 1.0)
    if not weights:
        return None
    recodings = (blind.recoding, purpose.recoding)
    common: Any = {"weights": weights, "extents": common_extents(recodings)}
    of_blind, of_purpose = unnamed_values(recodings)
    first = RecodedTable(blind.recoding, blind.nodes, unnamed=of_blind, **common)
    return first, RecodedTable(purpose.recoding, purpose.nodes, unnamed=of_purpose, **common)


def comparison_content(comparison: PurposeComparison, rule: Disclosure) -> dict[str, Any]:
    """The comparison as it may be told; selections together, by how precisely they are answered."""
    selections = None
    if comparison.selections is not None and (rule.rows_are_persons or not rule.min_persons):
        blind, purpose = (
            selections_together(answers, rule, total=comparison.known_persons) for answers in comparison.selections
        )
        selections = {"asked": comparison.asked, "blind": blind, "purpose": purpose}
    return {
        "known_rows": comparison.known,
        "held_out_rows": comparison.held_out,
        "sampled": comparison.known + comparison.held_out < comparison.of,
        "groups": {"blind": comparison.groups[0], "purpose": comparison.groups[1]},
        "targets": [_contest(contest, rule) for contest in comparison.contests],
        "selections": selections,
        "columns": None if comparison.columns is None else _columns_content(comparison.columns, rule),
    }


def _columns_content(tables: tuple[RecodedTable, RecodedTable], rule: Disclosure) -> dict[str, Any]:
    """What columns lost in both, and of which columns the two measures disagree. Blind regions are not released, so
    that others are told two digits only.
    """
    blind, purpose = (content(table, "report", "regions", key="column") or {} for table in tables)
    first, second = ((table.losses, table.discernibility) for table in tables)
    better_by = disagreements(second, first)

    def both(before: dict[str, Any], after: dict[str, Any], name: str) -> dict[str, Any]:
        figures = {"blind": before[name], "purpose": after[name]}
        return {way: float(f"{figure:.2g}") for way, figure in figures.items()} if rule.min_persons else figures

    return {
        "weighted_discernibility": both(blind, purpose, "weighted_discernibility"),
        "columns": [
            {
                "column": before["column"],
                "weight": after["weight"],
                "ncp": both(before, after, "ncp"),
                "together": both(before, after, "together"),
                "disagree": better_by.get(before["column"]),
            }
            for before, after in zip(blind["columns"], purpose["columns"], strict=True)
        ],
    }


def _contest(contest: Contest, rule: Disclosure) -> dict[str, Any]:
    whole, blind, purpose = contest.whole, contest.blind, contest.purpose
    judged = {"whole": whole, "blind": blind, "purpose": purpose}
    shares = {name: judged_content(judgement, whole, rule) for name, judgement in judged.items()}
    # The persons whose class is predicted right one way and wrong the other must not be found by subtraction.
    different = blind.persons(blind.misses != purpose.misses) if whole.has_classes else None
    if different is not None and rule.below_threshold(different):
        shares["blind"] = None
    gain = None if None in shares.values() else _gain(contest)
    return {
        "column": contest.column,
        "measure": "accuracy" if whole.has_classes else "explained variance",
        **shares,
        "different": None if different is None else rule.number(different),
        "gain": None if gain is None else round(gain.share, 4),
        "noise": None if gain is None or not np.isfinite(gain.noise) else round(gain.noise, 4),
    }


def judged_content(judged: Judged, whole: Judged, rule: Disclosure) -> float | None:
    """The share of right predictions, or of the squared errors that are no longer made; None if it may not be told."""
    misses = judged.misses
    parts = (misses == 0, misses > 0) if judged.has_classes else (np.ones(len(misses), np.bool_),)
    if not len(misses) or any(rule.below_threshold(judged.persons(rows)) for rows in parts):
        return None
    if judged.has_classes:
        return round(float((misses == 0).mean()), 3)
    before = float(whole.misses.mean())
    return round(1 - float(misses.mean()) / before, 3) if before > 0 else 0.0


def _gain(contest: Contest) -> Gain:
    """What was gained from blind to purpose, in shares of right predictions or of the variance."""
    blind, purpose, whole = contest.blind.misses, contest.purpose.misses, contest.whole
    if whole.has_classes:
        return paired_gain(blind == 0, purpose == 0)
    before = float(whole.misses.mean()) if len(whole.misses) else 0.0
    return _mean_gain((blind - purpose) / before) if len(blind) > 1 and before > 0 else Gain(0.0, math.inf)
