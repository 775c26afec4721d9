# SPDX-License-Identifier: Apache-2.0
"""Blind against made for the purpose, at the same k: what both tell of rows that neither was made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anonfit.algorithms.result import Anonymized, SelectionAnswers
from anonfit.metrics.held_out import Gain, paired_gain
from anonfit.privacy.disclosure import Disclosure
from anonfit.report.columns import ColumnFigures, columns_compared, columns_compared_content
from anonfit.report.selections import told_together
from anonfit.report.trial import Judged, Trial
from anonfit.workload.targets import Workload

__all__ = ["Comparison", "Contest", "compare", "comparison_content", "has_purpose", "judged_content"]


@dataclass(frozen=True, slots=True)
class Contest:
    """A target, predicted from the known rows as a whole, from blind regions, and from regions for the purpose."""

    column: str
    has_classes: bool
    whole: Judged
    blind: Judged
    purpose: Judged


@dataclass(frozen=True, slots=True)
class Comparison:
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
    columns: tuple[ColumnFigures, ColumnFigures] | None = None
    """What columns lost in both, where some matter more."""


def has_purpose(workload: Workload) -> bool:
    """Whether there is something that regions made for the purpose could do better than blind ones."""
    return not workload.is_blind and bool(workload.targets or workload.selections or _some_matter(workload))


def _some_matter(workload: Workload) -> bool:
    """Whether some columns matter more than others."""
    return bool(workload.weights or workload.weights_from) or workload.objective.clusters


def compare(trial: Trial | None) -> Comparison | None:
    """Make regions blind and for the purpose and hold both against the rows put aside; None where that is not
    possible, or where there is no purpose.
    """
    if trial is None or not has_purpose(trial.setting.workload):
        return None
    workload = trial.setting.workload
    if not (trial.targets or workload.selections or _some_matter(workload)):
        return None
    blind, purpose = trial.regions(replace(workload, criterion="median")), trial.regions(workload)
    if blind is None or purpose is None:
        return None
    contests = tuple(
        Contest(target.column, target.has_classes, *judged)
        for target, *judged in zip(
            trial.targets, trial.judge(None), trial.judge(blind), trial.judge(purpose), strict=True
        )
    )
    answers = tuple(trial.answers(made) for made in (blind, purpose))
    return Comparison(
        known=len(trial.known),
        known_persons=trial.setting.persons(trial.known).total(),
        held_out=len(trial.others),
        of=len(trial.setting.frame),
        groups=(_groups(blind), _groups(purpose)),
        contests=contests,
        asked=len(workload.selections),
        selections=None if answers[0] is None or answers[1] is None else (answers[0], answers[1]),
        columns=columns_compared(blind, purpose, workload),
    )


def _groups(made: Anonymized) -> int:
    return len(np.unique(made.nodes))


def comparison_content(found: Comparison, rule: Disclosure) -> dict[str, Any]:
    """The comparison as it may be told."""
    return {
        "known_rows": found.known,
        "held_out_rows": found.held_out,
        "sampled": found.known + found.held_out < found.of,
        "groups": {"blind": found.groups[0], "purpose": found.groups[1]},
        "targets": [_contest(contest, rule) for contest in found.contests],
        "selections": _selections(found, rule),
        "columns": None if found.columns is None else columns_compared_content(found.columns),
    }


def _contest(contest: Contest, rule: Disclosure) -> dict[str, Any]:
    judged = {"whole": contest.whole, "blind": contest.blind, "purpose": contest.purpose}
    told = {name: judged_content(one, contest.whole, rule) for name, one in judged.items()}
    different = _different(contest)
    if different is not None and rule.few(different):  # who are right one way only must not be found by subtraction
        told["blind"] = None
    gain = None if None in told.values() else _gain(contest)
    return {
        "column": contest.column,
        "measure": "accuracy" if contest.has_classes else "explained variance",
        **told,
        "different": None if different is None else rule.number(different),
        "gain": None if gain is None else round(gain.share, 4),
        "noise": None if gain is None or not np.isfinite(gain.noise) else round(gain.noise, 4),
    }


def judged_content(judged: Judged, whole: Judged, rule: Disclosure) -> float | None:
    """The share of right predictions, or of the squared errors that are no longer made; None if it may not be told."""
    if judged.right is not None:
        right, wrong = judged.persons(judged.right), judged.persons(~judged.right)
        return (
            None
            if not len(judged.right) or rule.few(right) or rule.few(wrong)
            else round(float(judged.right.mean()), 3)
        )
    assert judged.errors is not None
    assert whole.errors is not None
    if not len(judged.errors) or rule.few(judged.persons()):
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


def _selections(found: Comparison, rule: Disclosure) -> dict[str, Any] | None:
    """All selections together: how precisely they are answered from blind regions and from those for the purpose."""
    if found.selections is None or (rule.least and not rule.rows_are_persons):
        return None
    blind, purpose = (told_together(one, rule, total=found.known_persons) for one in found.selections)
    return {"asked": found.asked, "blind": blind, "purpose": purpose}
