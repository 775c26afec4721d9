# SPDX-License-Identifier: Apache-2.0
"""Pictures as SVG, drawn without scripts; their colours are those of the stylesheet. Texts in them are escaped here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from markupsafe import Markup, escape

from anonfit.errors import printable
from anonfit.report.words import shortened


def element(tag: str, content: Any = "", **attributes: Any) -> Markup:
    """An element; a text in it is escaped, Markup is not. Attributes without a value are left out."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(printable(str(value)))}"'
        for name, value in attributes.items()
        if value not in (None, "")
    )
    inside = content if isinstance(content, Markup) else escape(printable(str(content)))
    return Markup(f"<{tag}{written}>{inside}</{tag}>")  # noqa: S704 - all parts are escaped


def together(parts: Iterable[str]) -> Markup:
    """Several pieces of Markup as one."""
    return Markup("").join(parts)


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


def figure(picture: Markup, caption: str, *, above: bool = False) -> Markup:
    """A picture with its caption, which stands above it where it names one of several alike."""
    if above:
        return element("figure", together([element("figcaption", caption, class_="above"), picture]))
    return element("figure", together([picture, element("figcaption", caption)]))


def key(entries: Sequence[tuple[str, str]]) -> Markup:
    """What colours mean."""
    items = []
    for colour, name in entries:
        box = shape("rect", width=10, height=10, class_=colour)
        drawn = element("svg", box, viewBox="0 0 10 10", aria_hidden="true")
        items.append(element("li", together([drawn, element("span", name)])))
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


def paired_bars(lines: Sequence[tuple[str, float, float | None]], label: str) -> Markup:
    """For each name a share before and, below it, a share after; nothing after where that is the same."""
    left = min(170.0, 14 + TEXT * max((len(shortened(name, 26)) for name, *_ in lines), default=0))
    longest = max((max(before, after or 0.0) for _, before, after in lines), default=1.0) or 1.0
    scale = (WIDTH - left - 52) / longest
    parts: list[str] = []
    for index, (name, before, after) in enumerate(lines):
        y = 22.0 * index
        parts.append(text(left - 8, y + 14, shortened(name, 26), anchor="end"))
        low, high = (3.0, 15.0) if after is None else (2.0, 8.0)
        parts.append(shape("rect", x=left, y=y + low, width=max(scale * before, 0.5), height=high, class_="blind"))
        if after is not None:
            parts.append(shape("rect", x=left, y=y + 10.5, width=max(scale * after, 0.5), height=8, class_="s1"))
        words = f"{100 * before:.1f}" if after is None else f"{100 * before:.1f} / {100 * after:.1f}"
        parts.append(text(left + scale * max(before, after or 0.0) + 4, y + 14, words, "soft"))
    return svg(WIDTH + 24, 22.0 * len(lines) + 2, parts, label)


def intervals(lines: Sequence[tuple[str, float | None, float | None, str]], label: str) -> Markup:
    """A dot for each line with a stroke as long as its deviation to both sides: a name, both numbers, and the text.
    Dots, unlike bars, may begin anywhere, so the axis has only as much as is needed.
    """
    left = min(150.0, 14 + TEXT * max((len(name) for name, *_ in lines), default=0))
    right = 10 + TEXT * max((len(words) for *_, words in lines), default=0)
    known = [(value, deviation or 0.0) for _, value, deviation, _ in lines if value is not None]
    low = min((value - deviation for value, deviation in known), default=0.0)
    high = max((value + deviation for value, deviation in known), default=1.0)
    scale = (WIDTH - left - right) / ((high - low) or 1.0)
    parts: list[str] = []
    for index, (name, value, deviation, words) in enumerate(lines):
        y = 20.0 * index + 12
        parts.append(text(left - 8, y + 4, shortened(name, 24), anchor="end"))
        parts.append(shape("line", x1=left, x2=WIDTH - right, y1=y, y2=y, class_="line"))
        if value is not None:
            around = (value - (deviation or 0.0), value, value + (deviation or 0.0))
            begin, middle, end = (left + scale * (at - low) for at in around)
            parts.append(shape("line", x1=begin, x2=end, y1=y, y2=y, class_="axis"))
            parts.append(shape("circle", cx=middle, cy=y, r=4, class_="s1"))
        parts.append(text(WIDTH - right + 8, y + 4, words, "soft"))
    return svg(WIDTH, 20.0 * len(lines) + 6, parts, label)


def curve_lines(
    places: Sequence[tuple[str, str]], lines: Sequence[Sequence[float | None]], names: tuple[str, str], label: str
) -> Markup:
    """Lines of values between 0 and 1 over places at even distances, each with two texts below it, in rows headed by
    `names`; the first line is drawn, the others are dashed.
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


LEFT, TOP, HEIGHT = 72.0, 8.0, 280.0
LONGEST = 10
"""Letters of an edge."""
OPEN = 0.06
"""How far an end that is open is drawn beyond the last edge, as a share of the way between the edges."""
CROWDED = 0.12
"""If the middle half of all edges lies in a smaller share of their range, they are drawn at even distances."""


def tiling_figure(tiling: Mapping[str, Any], k: int) -> Markup:
    """The picture of a tiling of two columns, with its caption."""
    (across, across_stretched), (up, up_stretched) = _places(tiling["across"]), _places(tiling["up"])
    bounds = (1.5 * k, 2 * k, 4 * k)
    names = shortened(tiling["across"]["column"], 30), shortened(tiling["up"]["column"], 30)
    room, parts = WIDTH - LEFT - 6, []
    for left, right, bottom, top, persons in tiling["rectangles"]:
        # The darkest for the fewest; those that are divided further count as the largest.
        colour = "s4" if persons == 0 else f"s{sum(persons is None or persons >= bound for bound in bounds)}"
        place = {"x": LEFT + room * across[left], "y": TOP + HEIGHT * (1 - up[top])}
        size = {"width": room * (across[right] - across[left]), "height": HEIGHT * (up[top] - up[bottom])}
        parts.append(shape("rect", **place, **size, class_=f"{colour} edge"))
    parts += _ticks_across(tiling["across"], across) + _ticks_up(tiling["up"], up)
    label = f"{len(tiling['rectangles'])} regions as rectangles over {names[0]} (across) and {names[1]} (up)."
    drawn = svg(WIDTH, TOP + HEIGHT + 40, parts, label)
    colours = [
        ("s0", f"{k:,} to {bounds[0]:,.0f} persons"),
        ("s1", f"to {bounds[1]:,.0f}"),
        ("s2", f"to {bounds[2]:,.0f}"),
        ("s3", "more, or divided further"),
        ("s4", "empty"),
    ]
    return together([key(colours), figure(drawn, _caption(tiling, stretched=across_stretched or up_stretched))])


def _caption(tiling: Mapping[str, Any], *, stretched: bool) -> str:
    words = [f"{tiling['across']['column']} across, {tiling['up']['column']} up."]
    if tiling["held"]:
        held = ", ".join(f"{column['column']} at {column['label']}" for column in tiling["held"][:6])
        more = f" and {len(tiling['held']) - 6} more" if len(tiling["held"]) > 6 else ""
        words.append(f"A slice through the regions, with {held}{more}; elsewhere the regions differ.")
    words.append(f"{len(tiling['rectangles']):,} rectangles of a release with {tiling['regions']:,} groups.")
    if tiling["cut_short"]:
        words.append("Rectangles that are divided still further are drawn as one.")
    if stretched:
        words.append("Edges that lie close together are drawn at even distances.")
    words.append("Drawn from the cuts of the recoding only: open ends have no end, whatever values records have.")
    return " ".join(words)


def _number(edge: str, scale: str) -> float:
    if scale == "number":
        return float(edge)
    if scale == "date":
        return float(date.fromisoformat(edge[:10]).toordinal())
    moment = datetime.fromisoformat(edge)
    return moment.toordinal() * 86400.0 + moment.hour * 3600 + moment.minute * 60 + moment.second


def _places(axis: Mapping[str, Any]) -> tuple[list[float], bool]:
    """Where the edges stand between 0 and 1, and whether they were drawn at even distances."""
    edges = axis["edges"]
    if axis["scale"] == "order":
        numbers: list[float | None] = [float(place) for place in axis["places"]]
    else:
        numbers = [None if edge is None else _number(edge, axis["scale"]) for edge in edges]
    known = [number for number in numbers if number is not None]
    quarter, three_quarters = len(known) // 4, (3 * len(known)) // 4
    stretched = len(known) > 4 and known[three_quarters] - known[quarter] < CROWDED * (known[-1] - known[0])
    if stretched or len(known) < 2 or known[-1] - known[0] == 0:
        return [index / max(len(edges) - 1, 1) for index in range(len(edges))], stretched
    beyond = OPEN * (known[-1] - known[0])
    low = known[0] - (beyond if numbers[0] is None else 0)
    high = known[-1] + (beyond if numbers[-1] is None else 0)
    inner = [low if number is None else number for number in numbers[1:-1]]
    return [(number - low) / (high - low) for number in (low, *inner, high)], False


def _ticks_across(axis: Mapping[str, Any], places: Sequence[float]) -> list[Markup]:
    room, ticks, free = WIDTH - LEFT - 6, [], LEFT - 20
    for edge, place in zip(axis["edges"], places, strict=True):
        if edge is None:
            continue
        x, words = LEFT + room * place, shortened(edge, LONGEST)
        half = TEXT * len(words) / 2
        if x - half > free and x + half < WIDTH + 2:
            ticks.append(shape("line", x1=x, x2=x, y1=TOP + HEIGHT, y2=TOP + HEIGHT + 4, class_="axis"))
            ticks.append(text(x, TOP + HEIGHT + 16, words, "soft", "middle"))
            free = x + half + 6
    ticks.append(text(WIDTH - 6, TOP + HEIGHT + 34, shortened(axis["column"], 40), anchor="end"))
    return ticks


def _ticks_up(axis: Mapping[str, Any], places: Sequence[float]) -> list[Markup]:
    ticks, free = [], TOP + HEIGHT + 20
    for edge, place in zip(axis["edges"], places, strict=True):
        y = TOP + HEIGHT * (1 - place)
        if edge is not None and y < free - 20:
            ticks.append(shape("line", x1=LEFT - 4, x2=LEFT, y1=y, y2=y, class_="axis"))
            ticks.append(text(LEFT - 7, y + 4, shortened(edge, LONGEST), "soft", "end"))
            free = y
    ticks.append(text(2, TOP + HEIGHT + 34, f"↑ {shortened(axis['column'], 22)}"))
    return ticks
