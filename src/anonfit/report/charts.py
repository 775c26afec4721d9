# SPDX-License-Identifier: Apache-2.0
"""Pictures of a report as SVG: drawn for the width of a narrow screen, so that their texts can be read there, with
colours from the style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from anonfit.report.markup import Markup, element, together

__all__ = ["TEXT", "WIDTH", "bars", "colour_of", "curve_lines", "key", "shape", "stack", "svg", "text"]

WIDTH = 360
TEXT = 6.2
"""The width of a letter, about: for what must not run over its place."""


def svg(width: float, height: float, parts: Iterable[str], label: str) -> Markup:
    """A picture with the words for those who do not see it."""
    inside = together([element("title", label), *parts])
    return element("svg", inside, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=label)


def shape(tag: str, **attributes: Any) -> Markup:
    """A shape; numbers are written with one decimal."""
    written = {
        name: f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
        for name, value in attributes.items()
    }
    return element(tag, Markup(""), **written)


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "") -> Markup:
    """A text; `anchor` is start, middle or end."""
    return element("text", content, x=f"{x:g}", y=f"{y:g}", class_=kind, text_anchor=anchor)


def stack(parts: Sequence[tuple[str, float]], label: str) -> Markup:
    """A bar of several parts, each a colour and a share, as wide as its place."""
    drawn, x = [], 0.0
    for colour, share in parts:
        if share > 0:
            drawn.append(shape("rect", x=100 * x, y=0, width=max(100 * share, 0.3), height=10, class_=colour))
            x += share
    inside = together([element("title", label), *drawn])
    return element("svg", inside, viewBox="0 0 100 10", preserveAspectRatio="none", role="img", aria_label=label)


def key(entries: Sequence[tuple[str, str]]) -> Markup:
    """What colours mean."""
    box = '<svg viewBox="0 0 10 10" aria-hidden="true"><rect width="10" height="10" class="{}"></rect></svg>'
    items = (element("li", Markup(Markup(box.format(colour)) + element("span", name))) for colour, name in entries)
    return element("ul", together(items), class_="key")


def bars(lines: Sequence[tuple[str, float, str]], label: str) -> Markup:
    """Bars that lie, one under another: a name, a share, and the text of it."""
    left = min(130.0, 14 + TEXT * max((len(name) for name, _, _ in lines), default=0))
    right = 10 + TEXT * max((len(words) for _, _, words in lines), default=0)
    room = max(WIDTH - left - right, 60.0)
    longest = max((share for _, share, _ in lines), default=1.0) or 1.0
    parts: list[str] = []
    for index, (name, share, words) in enumerate(lines):
        y = 22.0 * index
        width = max(room * share / longest, 1.0)
        parts.append(text(left - 8, y + 14, name, anchor="end"))
        parts.append(shape("rect", x=left, y=y + 3.0, width=width, height=15, class_="s1"))
        parts.append(text(left + width + 6, y + 14, words, "soft"))
    return svg(WIDTH, 22.0 * len(lines) + 2, parts, label)


def curve_lines(
    places: Sequence[tuple[str, str]], lines: Sequence[Sequence[float | None]], names: tuple[str, str], label: str
) -> Markup:
    """Lines of values between 0 and 1 over places at even distances, each with two texts below it that `names` tell
    of; the first line is drawn, the others are dashed.
    """
    left, bottom, top = 44.0, 158.0, 10.0
    begin = left + 18
    step = (WIDTH - begin - 22) / max(len(places) - 1, 1)
    known = [value for values in lines for value in values if value is not None]
    high = min(1.0, math.ceil(10 * max(known, default=1.0) + 0.5) / 10) or 1.0

    def height(value: float) -> float:
        return bottom - (bottom - top) * max(value, 0.0) / high

    parts: list[str] = []
    for share in (0.0, 0.5, 1.0):
        y = height(share * high)
        parts.append(shape("line", x1=left, x2=float(WIDTH - 6), y1=y, y2=y, class_="line"))
        parts.append(text(left - 5, y + 4, f"{100 * share * high:.0f} %", "soft", "end"))
    for row, name in enumerate(names):
        parts.append(text(left - 5, bottom + 17 + 15 * row, name, "soft", "end"))
        parts += [text(begin + step * x, bottom + 17 + 15 * row, at[row], "", "middle") for x, at in enumerate(places)]
    for number, values in enumerate(lines):
        at = [(begin + step * x, height(value)) for x, value in enumerate(values) if value is not None]
        if at:
            path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in at)
            parts.append(element("path", Markup(""), d=path, class_="path other" if number else "path"))
            parts += [shape("circle", cx=x, cy=y, r=3, class_="blind" if number else "s1") for x, y in at]
    return svg(WIDTH, bottom + 40, parts, label)


def colour_of(value: float, bounds: Sequence[float]) -> str:
    """The colour of a value among the bounds of its class: the darkest for the smallest."""
    return f"s{sum(value >= bound for bound in bounds)}"
