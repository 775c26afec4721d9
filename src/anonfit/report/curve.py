# SPDX-License-Identifier: Apache-2.0
"""Risk against utility over k: what regions of other k would be worth, on rows they were not made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonfit.algorithms.result import SelectionAnswers
from anonfit.errors import RequestError
from anonfit.metrics.detail import details
from anonfit.privacy.disclosure import Disclosure
from anonfit.report.comparison import judged_content
from anonfit.report.selections import told_together
from anonfit.report.trial import Judged, Trial

__all__ = ["Curve", "curve", "curve_content", "read_ks"]

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
    found = sorted(set(ks))
    if not found or found[0] < 1 or len(found) > MOST:
        raise RequestError(f"a curve needs 1 to {MOST} different k of at least 1, such as 5, 10, 25, 50.")
    return tuple(found)


def curve(trial: Trial, ks: Sequence[int]) -> Curve:
    """Make regions for each k and judge them."""
    return Curve(
        known=len(trial.known),
        known_persons=trial.setting.persons(trial.known).total(),
        held_out=len(trial.others),
        columns=tuple((target.column, target.has_classes) for target in trial.targets),
        whole=trial.judge(None),
        points=tuple(_point(trial, k) for k in ks),
    )


def _point(trial: Trial, k: int) -> Point:
    made = trial.regions(trial.setting.workload, k)
    if made is None:
        return Point(k)
    persons = trial.setting.persons(trial.known[made.numbers])
    nodes, groups = np.unique(made.nodes, return_inverse=True)
    members = int(persons.of_groups(groups.astype(np.int64), len(nodes)).sum())
    sizes = np.bincount(groups, weights=persons.counts).astype(np.int64)
    kept = [detail.kept for detail in details(made.recoding, nodes, sizes)]
    return Point(k, len(nodes), members, trial.judge(made), float(np.mean(kept)), trial.answers(made, k))


def curve_content(found: Curve, rule: Disclosure) -> dict[str, Any]:
    """The curve as it may be told. The risk of a point is what its k allows: the true one of regions that nobody gets
    may be about few persons.
    """
    return {
        "known_rows": found.known,
        "held_out_rows": found.held_out,
        "points": [_told(found, point, rule) for point in found.points],
    }


def _told(found: Curve, point: Point, rule: Disclosure) -> dict[str, Any]:
    line: dict[str, Any] = {"k": point.k, "highest_risk": 1 / point.k}
    if not point.groups or rule.few(found.known_persons):
        return line | {"average_risk": None, "kept": None, "targets": [], "precision": None}
    targets = [
        {"column": column, "measure": "accuracy" if classes else "explained variance", "value": told}
        for (column, classes), judged, whole in zip(found.columns, point.judged, found.whole, strict=True)
        for told in (judged_content(judged, whole, rule),)
    ]
    precision = None
    if point.selections is not None:
        precision = told_together(point.selections, rule, total=found.known_persons)["precision"]
    return line | {
        "average_risk": round(point.groups / max(rule.rounded(point.members), 1), 5),
        "kept": round(point.kept, 3),
        "targets": targets,
        "precision": precision,
    }
