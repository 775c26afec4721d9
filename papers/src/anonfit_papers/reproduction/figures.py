# SPDX-License-Identifier: Apache-2.0
"""Figures of experiments: plain descriptions, and drawing them as PNG and SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from anonfit.errors import MissingPackage
from anonfit.runtime.files import whole_file
from anonfit_papers.reproduction.comparing import mean_and_error

# Colours that people with any colour vision can tell apart (Okabe and Ito); a method has the same one everywhere.
_STYLES: Mapping[str, tuple[str, str]] = {
    "original": ("#555555", "D"),
    "InfoGain": ("#0072b2", "o"),
    "LSD": ("#0072b2", "o"),
    "Selection": ("#0072b2", "o"),
    "TDS": ("#d55e00", "s"),
    "Median": ("#009e73", "^"),
    "Median, age and salary": ("#e69f00", "v"),
}
_OTHERS = (
    *(("#cc79a7", "P"), ("#56b4e9", "X"), ("#e69f00", "v"), ("#000000", "*")),
    *(("#009e73", "^"), ("#d55e00", "s"), ("#0072b2", "o"), ("#555555", "D")),
)
"""For whatever else is drawn: those that no method in the same drawing has, one after the other."""
_APART = 0.08
"""Names of ticks nearer to each other than this share of the axis would lie over each other."""
_INK = "#333333"


@dataclass(frozen=True, slots=True)
class Line:
    """One curve, row of bars or cloud of points; `error` is the half height of its error bars."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | None = None
    style: str | None = None
    """The method whose colour it has; its name if not given."""
    dashed: bool = False

    @classmethod
    def of(cls, name: str, x: Sequence[float], trials: Sequence[Sequence[float]], *, style: str | None = None) -> Line:
        """The means of some trials at each x, with their standard errors; the original is dashed."""
        means = [mean_and_error(numbers) for numbers in trials]
        return cls(name, x, [mean for mean, _ in means], [error for _, error in means], style, name == "original")


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing: curves, bars (x counts groups, named by `ticks`), points, or a matrix (each line one row, y its
    numbers).
    """

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    kind: Literal["lines", "bars", "points", "matrix"] = "lines"
    ticks: tuple[str, ...] = ()
    log_x: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """Some drawings beside each other."""

    title: str
    panels: tuple[Panel, ...]


def require_drawing() -> None:
    """Refuse to begin where figures cannot be drawn."""
    if find_spec("matplotlib") is None:
        raise MissingPackage("matplotlib", "plot", "Drawing figures")


def draw(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Draw a figure.

    Args:
        figure: What is drawn.
        folder: Where the files are put.
        name: Their name without an ending.

    Returns:
        The PNG and the SVG file.
    """
    require_drawing()
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    count = len(figure.panels)
    columns = count if count <= 3 else (count + 1) // 2 if count <= 4 else 3
    rows = -(-count // columns)
    # Without a date and with names made from a fixed salt the same numbers give the same file.
    with mpl.rc_context(
        {"svg.hashsalt": "anonfit", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ):
        canvas = Canvas(figsize=(max(4.6 * columns, 6.0), 3.5 * rows + 0.9), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.subplots(rows, columns, squeeze=False).ravel()
        for axis in axes[count:]:
            axis.set_visible(False)
        for axis, panel in zip(axes, figure.panels, strict=False):
            _panel(axis, panel)
        canvas.suptitle(figure.title, fontsize=11)
        _legend(canvas, axes[0])
        paths = folder / f"{name}.png", folder / f"{name}.svg"
        with whole_file(paths[0]) as new:
            canvas.savefig(new, dpi=110, metadata={"Software": None})
        with whole_file(paths[1]) as new:
            canvas.savefig(new, metadata={"Date": None})
    return paths


def _legend(canvas: Any, axis: Any) -> None:
    handles, names = axis.get_legend_handles_labels()
    if len(names) > 1:
        widest = 5 if canvas.get_figwidth() > 9 else 3
        canvas.legend(handles, names, loc="outside lower center", ncols=min(len(names), widest), frameon=False)


def _panel(axis: Any, panel: Panel) -> None:
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel(panel.x)
    axis.set_ylabel(panel.y)
    if panel.kind == "matrix":
        _matrix(axis, panel)
        return
    known = [_STYLES.get(line.style or line.name) for line in panel.lines]
    others = (style for style in _OTHERS if style not in known)
    for number, (line, style) in enumerate(zip(panel.lines, known, strict=True)):
        _line(axis, panel, line, number, *(style or next(others)))
    if panel.ticks:
        widest = len(panel.ticks) * max(len(part) for name in panel.ticks for part in name.split("\n"))
        axis.set_xticks(range(len(panel.ticks)), panel.ticks, fontsize=min(9.0, 480 / widest))
    if panel.log_x:
        axis.set_xscale("log")
    if panel.log_x and panel.kind == "lines":
        places = sorted({x for line in panel.lines for x in line.x})
        axis.set_xticks(places, _named_apart(places))
        axis.minorticks_off()
    if all(float(y).is_integer() for line in panel.lines for y in line.y):
        axis.yaxis.get_major_locator().set_params(integer=True)
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)


def _line(axis: Any, panel: Panel, line: Line, number: int, colour: str, marker: str) -> None:
    if panel.kind == "bars":
        width = 0.8 / len(panel.lines)
        places = [x + (number - (len(panel.lines) - 1) / 2) * width for x in line.x]
        bars = axis.bar(
            places,
            line.y,
            width * 0.92,
            yerr=line.error,
            color=colour,
            ecolor=_INK,
            label=line.name,
            error_kw={"lw": 0.8},
        )
        # Bars begin at zero, where small differences cannot be seen: numbers tell them.
        axis.bar_label(bars, fmt="%.3g", fontsize=6)
    elif panel.kind == "points" and not line.dashed:
        axis.scatter(line.x, line.y, s=26, color=colour, marker=marker, label=line.name, alpha=0.85)
    else:
        pattern = "--" if line.dashed else "-"
        axis.errorbar(
            line.x,
            line.y,
            yerr=line.error,
            color=colour,
            marker=marker,
            markersize=4.5,
            linewidth=1.4,
            linestyle=pattern,
            elinewidth=0.8,
            capsize=2,
            label=line.name,
        )


def _named_apart(places: Sequence[float]) -> list[str]:
    """The names of places on an axis of logarithms, from the last one on; none where the next would lie over it."""
    least = _APART * math.log(places[-1] / places[0])
    names: list[str] = []
    following = math.inf
    for place in reversed(places):
        is_apart = math.log(following / place) >= least
        names.insert(0, f"{place:g}" if is_apart else "")
        following = place if is_apart else following
    return names


def _matrix(axis: Any, panel: Panel) -> None:
    numbers = [list(line.y) for line in panel.lines]
    axis.imshow(numbers, cmap="Blues", aspect="auto")
    shown = [number for row in numbers for number in row]
    middle = (min(shown) + max(shown)) / 2
    for row, line in enumerate(panel.lines):
        for column, number in enumerate(line.y):
            colour = "white" if number > middle else _INK
            axis.text(column, row, f"{number:.1f}", ha="center", va="center", color=colour, fontsize=8)
        # The bold line of the paper: what is left of it was asked for.
        asked = len(line.x)
        axis.plot([asked - 0.5, asked - 0.5], [row - 0.5, row + 0.5], color="black", linewidth=2.2)
        if row + 1 < len(panel.lines):
            below = len(panel.lines[row + 1].x)
            axis.plot([below - 0.5, asked - 0.5], [row + 0.5, row + 0.5], color="black", linewidth=2.2)
    axis.set_xticks(range(len(panel.ticks)), panel.ticks)
    axis.set_yticks(range(len(panel.lines)), [line.name for line in panel.lines])
