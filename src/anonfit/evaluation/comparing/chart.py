# SPDX-License-Identifier: Apache-2.0
"""The chart of a comparison: how much detail every column kept in each release, as an SVG that a page holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonfit.report.markup import escaped

__all__ = ["COLOURS", "detail_chart", "detail_lines", "mark"]

COLOURS = 6
"""Colours of releases (--series-1 … of the page); a shape goes with each, and both begin again after the last."""
SHAPES = (
    "M-6.5 0a6.5 6.5 0 1 0 13 0a6.5 6.5 0 1 0 -13 0z",
    "M-6 -6h12v12h-12z",
    "M0 -7.5l7.5 13h-15z",
    "M0 -8l8 8l-8 8l-8 -8z",
    "M0 7.5l7.5 -13h-15z",
    "M-3.5 -7.5h7v15h-7z",
)
"""A disc, a square, a triangle, a rhomb, a triangle on its tip, a bar."""
WIDTH, LEFT, RIGHT, TOP = 620, 150, 28, 6
LANE = 11
"""The height of a release's own lane in the line of a column: no mark hides another."""
LONGEST = 18
"""Letters of a column's name that there is room for."""


def _x(value: float) -> float:
    return LEFT + value * (WIDTH - LEFT - RIGHT)


def mark(which: int, x: float, y: float, title: str = "") -> str:
    """The sign of a release."""
    inner = f"<title>{escaped(title)}</title>" if title else ""
    path = SHAPES[which % len(SHAPES)]
    kind = f"series series-{which % COLOURS + 1}"
    return f'<path class="{kind}" transform="translate({x:.1f} {y:.1f}) scale(.8)" d="{path}">{inner}</path>'


def detail_lines(releases: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[float | None]]]:
    """What each release kept of every column, the average of those that all have first."""
    kept = [release["utility"]["detail_kept"] for release in releases]
    names = list(dict.fromkeys(name for found in kept for name in found))
    shared = [name for name in names if all(name in found for found in kept)]
    lines: list[tuple[str, list[float | None]]] = [(name, [found.get(name) for found in kept]) for name in names]
    if len(shared) > 1:
        label = "average" if shared == names else "average in all"
        lines.insert(0, (label, [sum(found[name] for name in shared) / len(shared) for found in kept]))
    return lines


def detail_chart(releases: Sequence[Mapping[str, Any]]) -> str:
    """A line per column, the average of all first, with a mark per release; empty where nothing was measured."""
    lines = detail_lines(releases)
    if not lines:
        return ""
    line = LANE * len(releases) + 14
    height = TOP + line * len(lines) + 32
    rows = (_row(TOP + line * index, line, name, values, releases) for index, (name, values) in enumerate(lines))
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Detail kept of each column, by release">'
        f"{_scale(height - 32)}{''.join(rows)}</svg>"
    )


def _scale(base: float) -> str:
    return "".join(
        f'<line class="grid" x1="{_x(tick / 4):.1f}" x2="{_x(tick / 4):.1f}" y1="{TOP}" y2="{base}"/>'
        f'<text class="axis" x="{_x(tick / 4):.1f}" y="{base + 18}" text-anchor="middle">{25 * tick} %</text>'
        for tick in range(5)
    )


def _row(
    top: float, height: float, name: str, values: Sequence[float | None], releases: Sequence[Mapping[str, Any]]
) -> str:
    """A column's line: its name, a mark in the lane of each release, and a border below."""
    middle = top + height / 2
    marks = "".join(
        mark(
            which,
            _x(value),
            middle + LANE * (which - (len(values) - 1) / 2),
            f"{releases[which]['name']}: {name} {value:.1%}",
        )
        for which, value in enumerate(values)
        if value is not None
    )
    shown = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
    return (
        f'<text x="{LEFT - 12}" y="{middle + 4:.1f}" text-anchor="end">{escaped(shown)}</text>'
        f'<line class="border" x1="0" x2="{WIDTH}" y1="{top + height}" y2="{top + height}"/>{marks}'
    )
