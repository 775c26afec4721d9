# SPDX-License-Identifier: Apache-2.0
"""What `anonfit evaluate` shows of columns and clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anonfit.cli.showing import table

if TYPE_CHECKING:
    from anonfit.evaluation.result import Evaluation

__all__ = ["columns_table", "disagreements_line"]

SHOWN = {
    "gcp": "certainty penalty",
    "weighted_discernibility": "weighted discernibility",
    "cluster_agreement": "clusters: agreement",
    "cluster_within": "variance within",
    "cluster_within_original": "within the original's",
}
"""Figures, and what they are called."""
MARK = "cluster_agreement"


def columns_table(found: Evaluation) -> Any:
    """A line for each method and k; None where releases are judged by models and no clusters were looked for."""
    import polars as pl

    if len(found.frame) and not (found.figures["figure"] == MARK).any():
        return None
    means = found.figures.group_by("method", "k", "figure", maintain_order=True).agg(pl.col("value").mean())
    cells = {(row["method"], row["k"], row["figure"]): row["value"] for row in means.to_dicts()}
    names = [name for name in SHOWN if any(figure == name for _, _, figure in cells)]
    lines = [
        [method, k, *(_text(name, cells.get((method, k, name))) for name in names)]
        for method, k in dict.fromkeys((method, k) for method, k, _ in cells)
    ]
    return table(["", "k", *(SHOWN[name] for name in names)], lines, numbers=range(1, len(names) + 2))


def _text(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if name == "weighted_discernibility" else f"{value:.3f}"


def disagreements_line(found: Evaluation) -> str | None:
    """Where the two measures of columns disagree about a method and the blind one, in words; None if nowhere."""
    rows = found.disagreements().to_dicts()
    if not rows:
        return None
    cases = dict.fromkeys(f"{row['method']}, k = {row['k']}: {row['column']}" for row in rows)
    shown = "; ".join(list(cases)[:8]) + ("; …" if len(cases) > 8 else "")
    return (
        f"Certainty penalty and weighted discernibility disagree whether a column lost less than in median in "
        f"{len(cases)} case(s): {shown}."
    )
