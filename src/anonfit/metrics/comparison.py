# SPDX-License-Identifier: Apache-2.0
"""What releases made otherwise would be worth, on rows that they were not made of: blind against made for the purpose
at the same k, and risk against utility over k.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anonfit.algorithms.result import Anonymized, SelectionAnswers
from anonfit.errors import RequestError
from anonfit.metrics.detail import details
from anonfit.metrics.holdout import Gain, Holdout, Judged, paired_gain
from anonfit.metrics.losses import common_extents, disagreements, unnamed_values
from anonfit.metrics.registry import RecodedTable, content
from anonfit.metrics.workload import selections_together
from anonfit.privacy.disclosure import Disclosure
from anonfit.workload.objectives import feature_weights
from anonfit.workload.targets import Workload


@dataclass(frozen=True, slots=True)
class Contest:
    """A target, predicted from the known rows as a whole, from blind regions, and from regions for the purpose."""

    column: str
    has_classes: bool
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
    """What columns lost in both, where some matter more."""


def has_purpose(workload: Workload) -> bool:
    """Whether there is something that regions made for the purpose could do better than blind ones."""
    return not workload.is_blind and bool(workload.targets or workload.selections or _some_matter(workload))


def _some_matter(workload: Workload) -> bool:
    """Whether some columns matter more than others."""
    return bool(workload.weights or workload.weights_from) or workload.objective.clusters


def compare(holdout: Holdout | None) -> PurposeComparison | None:
    """Hold blind regions and those for the purpose against the held-out rows; None without a purpose, or regions."""
    if holdout is None:
        return None
    workload = holdout.setting.workload
    if workload.is_blind or not (holdout.targets or workload.selections or _some_matter(workload)):
        return None
    blind, purpose = holdout.regions(replace(workload, criterion="median")), holdout.regions(workload)
    if blind is None or purpose is None:
        return None
    contests = tuple(
        Contest(target.column, target.has_classes, *judged)
        for target, *judged in zip(
            holdout.targets, holdout.judge(None), holdout.judge(blind), holdout.judge(purpose), strict=True
        )
    )
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
    """What columns lost in both, measured alike; None where nothing says that some columns matter more."""
    names, weights = purpose.recoding.quasi_identifiers, workload.weights
    if purpose.learned is not None:
        weights = purpose.learned.weights
    elif workload.objective.clusters:
        weights = dict.fromkeys(names, 0.0) | feature_weights(workload, list(names))
    if not weights:
        return None
    recodings = (blind.recoding, purpose.recoding)
    extents, unnamed = common_extents(recodings), unnamed_values(recodings)
    first, second = (
        RecodedTable(regions.recoding, regions.nodes, weights=weights, extents=extents, unnamed=more)
        for regions, more in zip((blind, purpose), unnamed, strict=True)
    )
    return first, second


def comparison_content(comparison: PurposeComparison, rule: Disclosure) -> dict[str, Any]:
    """The comparison as it may be told."""
    return {
        "known_rows": comparison.known,
        "held_out_rows": comparison.held_out,
        "sampled": comparison.known + comparison.held_out < comparison.of,
        "groups": {"blind": comparison.groups[0], "purpose": comparison.groups[1]},
        "targets": [_contest(contest, rule) for contest in comparison.contests],
        "selections": _selections(comparison, rule),
        "columns": None if comparison.columns is None else _columns_content(comparison.columns),
    }


def _columns_content(tables: tuple[RecodedTable, RecodedTable]) -> dict[str, Any]:
    """What columns lost in both, and of which columns the two measures disagree."""
    blind, purpose = tables
    differ = {
        disagreement.column: disagreement.better_by
        for disagreement in disagreements(
            (purpose.losses, purpose.discernibility), (blind.losses, blind.discernibility)
        )
    }
    contents = [content(table, "report", "regions", key="column") or {} for table in tables]
    return {
        "weighted_discernibility": {
            name: figures["weighted_discernibility"]
            for name, figures in zip(("blind", "purpose"), contents, strict=True)
        },
        "columns": [
            {
                "column": before["column"],
                "weight": after["weight"],
                **{name: {"blind": before[name], "purpose": after[name]} for name in ("ncp", "together")},
                "disagree": differ.get(before["column"]),
            }
            for before, after in zip(*(figures["columns"] for figures in contents), strict=True)
        ],
    }


def _contest(contest: Contest, rule: Disclosure) -> dict[str, Any]:
    judged = {"whole": contest.whole, "blind": contest.blind, "purpose": contest.purpose}
    shares = {name: judged_content(judgement, contest.whole, rule) for name, judgement in judged.items()}
    different = _different(contest)
    # Who are right one way only must not be found by subtraction.
    if different is not None and rule.below_threshold(different):
        shares["blind"] = None
    gain = None if None in shares.values() else _gain(contest)
    return {
        "column": contest.column,
        "measure": "accuracy" if contest.has_classes else "explained variance",
        **shares,
        "different": None if different is None else rule.number(different),
        "gain": None if gain is None else round(gain.share, 4),
        "noise": None if gain is None or not np.isfinite(gain.noise) else round(gain.noise, 4),
    }


def judged_content(judged: Judged, whole: Judged, rule: Disclosure) -> float | None:
    """The share of right predictions, or of the squared errors that are no longer made; None if it may not be told."""
    if judged.right is not None:
        right, wrong = judged.persons(judged.right), judged.persons(~judged.right)
        if not len(judged.right) or rule.below_threshold(right) or rule.below_threshold(wrong):
            return None
        return round(float(judged.right.mean()), 3)
    assert judged.errors is not None
    assert whole.errors is not None
    if not len(judged.errors) or rule.below_threshold(judged.persons()):
        return None
    before = float(whole.errors.mean())
    return round(1 - float(judged.errors.mean()) / before, 3) if before > 0 else 0.0


def _different(contest: Contest) -> int | None:
    """The persons whose class is predicted right one way and wrong the other; None of numbers."""
    blind, purpose = contest.blind.right, contest.purpose.right
    return None if blind is None or purpose is None else contest.blind.persons(blind != purpose)


def _gain(contest: Contest) -> Gain:
    """What was gained from blind to purpose, in shares of right predictions or of the variance."""
    blind, purpose, whole = contest.blind, contest.purpose, contest.whole
    if blind.right is not None and purpose.right is not None:
        return paired_gain(blind.right, purpose.right)
    assert blind.errors is not None
    assert purpose.errors is not None
    assert whole.errors is not None
    rows, before = len(whole.errors), float(whole.errors.mean()) if len(whole.errors) else 0.0
    if rows < 2 or before <= 0:
        return Gain(0.0, float("inf"))
    less = (blind.errors - purpose.errors) / before
    return Gain(float(less.mean()), 2 * float(less.std(ddof=1)) / rows**0.5)


def _selections(comparison: PurposeComparison, rule: Disclosure) -> dict[str, Any] | None:
    """All selections together: how precisely they are answered from blind regions and from those for the purpose."""
    if comparison.selections is None or (rule.min_persons and not rule.rows_are_persons):
        return None
    blind, purpose = (
        selections_together(answers, rule, total=comparison.known_persons) for answers in comparison.selections
    )
    return {"asked": comparison.asked, "blind": blind, "purpose": purpose}


MOST = 20


@dataclass(frozen=True, slots=True)
class Point:
    """Regions of one k; without figures where there are none."""

    k: int
    groups: int = 0
    members: int = 0
    """The persons of all groups: one with several rows is in several."""
    judged: tuple[Judged, ...] = ()
    kept: float = 0.0
    selections: SelectionAnswers | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of rising k, and what can be told of the targets without regions."""

    known: int
    known_persons: int
    held_out: int
    columns: tuple[tuple[str, bool], ...]
    """Of the targets: name, and whether it has classes."""
    whole: tuple[Judged, ...]
    points: tuple[Point, ...]


def read_ks(ks: Iterable[int]) -> tuple[int, ...]:
    """The k of a curve, ascending; at most twenty whole numbers of at least 1."""
    ascending = sorted(set(ks))
    if not ascending or ascending[0] < 1 or len(ascending) > MOST:
        raise RequestError(f"a curve needs 1 to {MOST} different k of at least 1, such as 5, 10, 25, 50.")
    return tuple(ascending)


def curve(holdout: Holdout, ks: Sequence[int]) -> Curve:
    """Make regions for each k and judge them."""
    return Curve(
        known=len(holdout.known),
        known_persons=holdout.setting.persons(holdout.known).total(),
        held_out=len(holdout.others),
        columns=tuple((target.column, target.has_classes) for target in holdout.targets),
        whole=holdout.judge(None),
        points=tuple(_point(holdout, k) for k in ks),
    )


def _point(holdout: Holdout, k: int) -> Point:
    regions = holdout.regions(holdout.setting.workload, k)
    if regions is None:
        return Point(k)
    persons = holdout.setting.persons(holdout.known[regions.numbers])
    nodes, groups = np.unique(regions.nodes, return_inverse=True)
    members = int(persons.of_groups(groups.astype(np.int64), len(nodes)).sum())
    sizes = np.bincount(groups, weights=persons.counts).astype(np.int64)
    kept = [detail.kept for detail in details(regions.recoding, nodes, sizes)]
    return Point(k, len(nodes), members, holdout.judge(regions), float(np.mean(kept)), holdout.answers(regions, k))


def curve_content(curve: Curve, rule: Disclosure) -> dict[str, Any]:
    """The curve as it may be told; a point's risk is what its k allows, as the true one may be about few persons."""
    return {
        "known_rows": curve.known,
        "held_out_rows": curve.held_out,
        "points": [_point_content(curve, point, rule) for point in curve.points],
    }


def _point_content(curve: Curve, point: Point, rule: Disclosure) -> dict[str, Any]:
    line: dict[str, Any] = {"k": point.k, "highest_risk": 1 / point.k}
    if not point.groups or rule.below_threshold(curve.known_persons):
        return line | {"average_risk": None, "kept": None, "targets": [], "precision": None}
    targets = [
        {
            "column": column,
            "measure": "accuracy" if classes else "explained variance",
            "value": judged_content(judged, whole, rule),
        }
        for (column, classes), judged, whole in zip(curve.columns, point.judged, curve.whole, strict=True)
    ]
    precision = None
    if point.selections is not None:
        precision = selections_together(point.selections, rule, total=curve.known_persons)["precision"]
    return line | {
        "average_risk": round(point.groups / max(rule.rounded(point.members), 1), 5),
        "kept": round(point.kept, 3),
        "targets": targets,
        "precision": precision,
    }
