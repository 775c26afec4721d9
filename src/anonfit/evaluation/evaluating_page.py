# SPDX-License-Identifier: Apache-2.0
"""evaluation.html: what models learn from releases, method by method and k by k, as pictures and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anonfit.report.page import page
from anonfit.report.pictures import intervals

if TYPE_CHECKING:
    from anonfit.evaluation.result import Evaluation

MEASURES = {
    "accuracy": "accuracy in percent, more is better",
    "mae": "mean absolute error, less is better",
    "rmse": "root mean squared error, less is better",
}
CERTAIN = 0.05
"""Differences that chance makes less often are marked."""


def evaluation_page(evaluation: Evaluation) -> str:
    """The page of an evaluation."""
    rows = evaluation.summary().to_dicts()
    compared = [name for name in ("original", "removed", "median") if rows and f"less_{name}" in rows[0]]
    keys = dict.fromkeys((row["model"], row["measure"], row["learner"]) for row in rows)
    parts = [_part(key, [row for row in rows if _key(row) == key], compared) for key in keys]
    unmet = dict.fromkeys(
        f"{one.method}{'' if one.k is None else f', k = {one.k}'}: {one.why}" for one in evaluation.unmet
    )
    return page(
        "evaluation.html",
        title="What models learn from releases",
        folds=evaluation.folds,
        protocol=evaluation.protocol,
        parts=parts,
        compared=[f"Against {name}" for name in compared],
        unmet=list(unmet),
    )


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["model"], row["measure"], row["learner"]


def _part(key: tuple[str, str, str], rows: Sequence[Mapping[str, Any]], compared: Sequence[str]) -> dict[str, Any]:
    """A learner of a model: its picture, and a line for every method and k."""
    model, measure, learner = key
    scale = 100.0 if measure == "accuracy" else 1.0
    lines = [
        (
            row["method"] + ("" if row["k"] is None else f", k = {row['k']}"),
            row["test"],
            row["deviation"],
            number(row["test"], scale),
        )
        for row in rows
    ]
    words = "; ".join(f"{name}: {text}" for name, _, _, text in lines)
    return {
        "title": f"{model}, {learner}",
        "measure": MEASURES[measure],
        "picture": intervals(lines, f"{model} by {learner}, {MEASURES[measure]}. {words}"),
        "rows": [
            (
                name,
                text,
                f"± {number(row['deviation'], scale)}",
                number(row["train"], scale),
                *(difference(row, other, scale) for other in compared),
            )
            for (name, _, _, text), row in zip(lines, rows, strict=True)
        ],
    }


def number(value: float | None, scale: float) -> str:
    """A measure, if there is one."""
    return "–" if value is None else f"{scale * value:,.2f}"


def difference(row: Mapping[str, Any], name: str, scale: float) -> str:
    """How much a method is above another, with a mark where that is beyond chance."""
    value, chance = row[f"less_{name}"], row[f"p_{name}"]
    if value is None:
        return ""
    return f"{scale * value:+,.2f}{'*' if chance is not None and chance < CERTAIN else ' '}"
