# SPDX-License-Identifier: Apache-2.0
"""Where things stand in the page's pictures; the templates draw them as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 320, 56, 40
LEAST = 0.002
"""The lowest risk that the picture has room for."""


def _number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        value = value.get("value", value.get("share"))
    return float(value) if isinstance(value, int | float) else None


def risk_map(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A point for each run: across the highest risk (by powers of ten), as thresholds are; up the detail kept."""
    points = []
    for run in runs:
        risk, detail = _number(run["result"].get("highest")), _number(run["result"].get("detail"))
        if risk is not None and detail is not None:
            points.append({"run": run, "risk": risk, "detail": detail, "x": _across(risk), "y": _up(detail)})
    ticks = [(_across(risk), f"{100 * risk:g} %") for risk in (0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)]
    return {
        "points": points,
        "across": ticks,
        "up": [(_up(share), f"{100 * share:.0f} %") for share in (0, 0.25, 0.5, 0.75, 1)],
        "thresholds": [(_across(risk), name) for risk, name in ((0.05, "0.05"), (0.09, "EMA 0.09"), (0.2, "0.2"))],
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "bottom": HEIGHT - BOTTOM,
    }


def _across(risk: float) -> float:
    share = (log10(max(risk, LEAST)) - log10(LEAST)) / -log10(LEAST)
    return round(LEFT + share * (WIDTH - LEFT - 24), 1)


def _up(detail: float) -> float:
    return round(HEIGHT - BOTTOM - min(max(detail, 0.0), 1.0) * (HEIGHT - BOTTOM - 30), 1)


def group_bars(sizes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Bars of group sizes, as a public report has them."""
    bars = []
    for entry in sizes:
        persons, groups = _number(entry["persons"]), _number(entry["groups"])
        if persons is not None:
            low, high = entry["low"], entry["high"]
            name = str(low) if low == high else f"{low}–{high}" if high is not None else f"≥ {low}"
            bars.append({"name": name, "low": low, "persons": int(persons), "groups": int(groups or 0)})
    return bars
