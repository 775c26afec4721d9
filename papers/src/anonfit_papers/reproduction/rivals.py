# SPDX-License-Identifier: Apache-2.0
"""InfoGain against TDS and Median: the comparison that most figures of KDD 2006 are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anonfit_papers.reproduction.comparing import Difference, difference, mean_and_error
from anonfit_papers.reproduction.frame import Check
from anonfit_papers.reproduction.learning import INFOGAIN, MEDIAN, TDS


def against_rivals(
    accuracies: Mapping[str, Sequence[float]], where: str, *, level: float | None, folds: int = 0
) -> tuple[dict[str, float], list[Check]]:
    """Whether InfoGain is above TDS and above Median.

    Args:
        accuracies: The accuracies of each method, one a trial.
        where: What is compared, for the text of the checks.
        level: The p below which a difference counts; None: its direction counts alone.
        folds: How many folds the trials are; 0 where they share no rows.

    Returns:
        Means, standard errors and differences for a row of a table, and the two checks.
    """
    row: dict[str, float] = {}
    checks = []
    for method, numbers in accuracies.items():
        mean, error = mean_and_error(numbers)
        row |= {method: round(mean, 2), f"{method} error": round(error, 2)}
    for other in (TDS, MEDIAN):
        gap = difference(accuracies[INFOGAIN], accuracies[other], folds=folds)
        row |= {f"above {other}": round(gap.mean, 2), f"p {other}": float(f"{gap.p:.2g}")}
        row |= {f"corrected p {other}": float(f"{gap.corrected:.2g}")} if folds else {}
        above = gap.mean > 0 if level is None else gap.is_above(level)
        condition = "" if level is None else f" (p < {level})"
        checks.append(Check(f"{where}: InfoGain above {other}{condition}", above, above, told_at(gap, level)))
    return row, checks


def told_at(gap: Difference, level: float | None) -> str:
    """The difference, and whether it is less a finding than the want of one."""
    told = gap.told("above", "below")
    return told if level is None or gap.p < level else f"{told}: chance is not ruled out"
