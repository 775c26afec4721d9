# SPDX-License-Identifier: Apache-2.0
"""Risk against utility over k: what releases of other k would be worth, on rows that they were not made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonfit.algorithms.result import SelectionAnswers
from anonfit.errors import RequestError
from anonfit.metrics.detail import details
from anonfit.metrics.holdout import Holdout, Judged, judged_content
from anonfit.metrics.workload import selections_together
from anonfit.privacy.disclosure import Disclosure

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
    columns: tuple[str, ...]
    """The targets."""
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
        columns=tuple(target.column for target in holdout.targets),
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
            "measure": "accuracy" if whole.has_classes else "explained variance",
            "value": judged_content(judged, whole, rule),
        }
        for column, judged, whole in zip(curve.columns, point.judged, curve.whole, strict=True)
    ]
    answers, total = point.selections, curve.known_persons
    precision = None if answers is None else selections_together(answers, rule, total=total)["precision"]
    return line | {
        "average_risk": round(point.groups / max(rule.rounded(point.members), 1), 5),
        "kept": round(point.kept, 3),
        "targets": targets,
        "precision": precision,
    }
