# SPDX-License-Identifier: Apache-2.0
"""What the regions of a release tell of the targets: predictions from the other rows of a region, against those from
the other rows of the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.metrics.leaving_out import Predicted, predicted_classes, predicted_numbers
from anonfit.privacy.disclosure import Disclosure
from anonfit.report.aiming import CodedTarget

__all__ = ["TargetFigures", "predictions", "predictions_content", "told_classes"]


@dataclass(frozen=True, slots=True)
class TargetFigures:
    """How well a target is predicted, each row from others."""

    column: str
    has_classes: bool
    is_generalized: bool
    found: Predicted
    unit: float = 1.0
    """What 1 stands for in a root of the squared errors."""


def predictions(targets: Sequence[CodedTarget], nodes: NDArray[np.int32], count: int) -> tuple[TargetFigures, ...]:
    """What regions tell of each target.

    Args:
        targets: The targets, row by row.
        nodes: (row,) the node each row was released in, -1 if it was not.
        count: How many nodes there are.
    """
    found = []
    for target in targets:
        chosen = (nodes >= 0) & target.known
        whole = bool(chosen.all())
        regions, values = (nodes, target.values) if whole else (nodes[chosen], target.values[chosen])
        predicted = (
            predicted_classes(regions, values.astype(np.int64), count, target.width)
            if target.has_classes
            else predicted_numbers(regions, values.astype(np.float64), count)
        )
        found.append(TargetFigures(target.column, target.has_classes, target.is_generalized, predicted, target.unit))
    return tuple(found)


def predictions_content(figures: Sequence[TargetFigures], rule: Disclosure) -> list[dict[str, Any]]:
    """The figures as they may be told."""
    # Rows of a target that is released as it is are counted in the released file, where anybody can; of one that is
    # not, k rows may be one person's.
    shown = rule.rows_are_persons or not rule.least
    return [_content(one, rule) for one in figures if shown or not one.is_generalized]


def _content(one: TargetFigures, rule: Disclosure) -> dict[str, Any]:
    found = one.found
    line: dict[str, Any] = {"column": one.column, "kind": "classes" if one.has_classes else "number"}
    if one.has_classes:
        # Generalized targets of persons with several rows are left out, others anybody can count in the release.
        shares = [told_classes(int(right), found.rows, rule) for right in (found.by_table, found.by_region)]
        return line | {"measure": "accuracy", "table": shares[0], "regions": shares[1]}
    explained = 1 - found.by_region / found.by_table if found.by_table > 0 else 0.0
    line |= {"measure": "explained variance", "table": 0.0, "regions": round(explained, 3)}
    if not one.is_generalized or not rule.least:
        # An error in the column's unit tells of the largest value: only where that is released.
        errors = {"table": found.by_table, "regions": found.by_region}
        line["typical_error"] = {name: squares**0.5 * one.unit for name, squares in errors.items()}
    return line


def told_classes(right: int, rows: int, rule: Disclosure) -> float | None:
    """The share of right predictions; None where few are right, or wrong."""
    return round(right / rows, 3) if rows and rule.may_tell(right, rows) else None
