# SPDX-License-Identifier: Apache-2.0
"""A comparison as tables of texts, one column per release, which the command line and the page both show, and
compare.html: one page that needs nothing from anywhere else, in light and dark, wide and narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from markupsafe import Markup

from anonfit.metrics.registry import Metric, metrics_of
from anonfit.report.page import page
from anonfit.report.pictures import WIDTH, element, shape, svg, text
from anonfit.report.words import percent, shortened

Releases = Sequence[Mapping[str, Any]]
"""The releases of a comparison, as plain data."""
Parts = Sequence[Mapping[str, Any]]
"""One part of each release, such as its risks."""
Line = tuple[str, tuple[str, ...]]
"""A label, and a text for each release."""
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
LEFT, RIGHT, TOP = 104.0, 16.0, 6.0
LANE = 11.0
"""The height of a release's own lane in the line of a column: no mark hides another."""
LONGEST = 15
"""Letters of a column's name that there is room for."""


def _x(value: float) -> float:
    return LEFT + value * (WIDTH - LEFT - RIGHT)


def mark(which: int, x: float, y: float, title: str = "") -> Markup:
    """The sign of a release."""
    inner = element("title", title) if title else Markup("")
    kind = f"series series-{which % COLOURS + 1}"
    place = f"translate({x:.1f} {y:.1f}) scale(.8)"
    return element("path", inner, class_=kind, transform=place, d=SHAPES[which % len(SHAPES)])


def detail_lines(releases: Releases) -> list[tuple[str, list[float | None]]]:
    """What each release kept of every column, the average of those that all have first."""
    kept = [release["utility"]["detail_kept"] for release in releases]
    names = list(dict.fromkeys(name for shares in kept for name in shares))
    shared = [name for name in names if all(name in shares for shares in kept)]
    lines: list[tuple[str, list[float | None]]] = [(name, [shares.get(name) for shares in kept]) for name in names]
    if len(shared) > 1:
        label = "average" if shared == names else "average in all"
        lines.insert(0, (label, [sum(shares[name] for name in shared) / len(shared) for shares in kept]))
    return lines


def detail_chart(releases: Releases) -> Markup:
    """A line per column, the average of all first, with a mark per release; empty where nothing was measured."""
    lines = detail_lines(releases)
    if not lines:
        return Markup("")
    line = LANE * len(releases) + 14
    base = TOP + line * len(lines)
    parts: list[Markup] = []
    for tick in range(5):
        parts.append(shape("line", x1=_x(tick / 4), x2=_x(tick / 4), y1=TOP, y2=base, class_="line"))
        parts.append(text(_x(tick / 4), base + 18, f"{25 * tick} %", "soft", "middle"))
    for index, (name, values) in enumerate(lines):
        parts += _row(TOP + line * index, line, name, values, releases)
    return svg(WIDTH, base + 26, parts, "Detail kept of each column, by release")


def _row(top: float, height: float, name: str, values: Sequence[float | None], releases: Releases) -> Iterator[Markup]:
    """A column's line: its name, a mark in the lane of each release, and a border below."""
    middle = top + height / 2
    yield text(LEFT - 10, middle + 4, shortened(name, LONGEST), anchor="end")
    yield shape("line", x1=0, x2=WIDTH, y1=top + height, y2=top + height, class_="line")
    for which, value in enumerate(values):
        if value is not None:
            lane = middle + LANE * (which - (len(values) - 1) / 2)
            yield mark(which, _x(value), lane, f"{releases[which]['name']}: {name} {share(value)}")


DETAIL_KEPT = "Detail kept"
PAIR_HEAD = ("k", "Cells", "Cells below k", "Persons in them")

NOTHING = "–"
NOT_TOLD = "not told"


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """A table: a label and one text per release in each line, and what its metrics say of themselves."""

    title: str
    lines: tuple[Line, ...]
    note: str = ""


def share(value: Any) -> str:
    """A share in percent, or the text in its place."""
    if value is None:
        return NOT_TOLD
    return percent(value) if isinstance(value, int | float) else str(value)


def number(value: Any) -> str:
    """A number, or the text in its place."""
    if value is None:
        return NOTHING
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def sections(comparison: Mapping[str, Any]) -> list[ComparedTable]:
    """The tables of a comparison."""
    releases = comparison["releases"]
    asked, risks, rows, utilities = (
        [release[part] for release in releases] for part in ("asked", "risk", "rows", "utility")
    )
    figures: list[tuple[str, Iterator[Line]]] = [
        ("What was asked", _asked(asked)),
        (DETAIL_KEPT, _detail(releases)),
        ("Rows", _each(rows, {key.capitalize(): key for key in ("read", "released", "withheld", "dropped")}, number)),
        ("Risk of finding a person's record", _risk(risks)),
        ("What groups and guesses reveal", _revealed(releases)),
        ("Utility whatever the purpose", _utility(utilities)),
        *((metric.title, _of_columns(utilities, metric)) for metric in _shown_metrics("column")),
        ("Targets", _targets(releases)),
        ("Selections", _selections(releases)),
    ]
    notes = {metric.title: metric.note for metric in _shown_metrics("column")}
    for title, subject in (("Utility whatever the purpose", "release"), ("Targets", "target")):
        notes[title] = " ".join(metric.note for metric in _shown_metrics(subject) if metric.note)
    sections = [ComparedTable(title, tuple(lines), notes.get(title, "")) for title, lines in figures]
    return [section for section in sections if section.lines]


def _each(parts: Parts, wanted: Mapping[str, str], show: Callable[[Any], str]) -> Iterator[Line]:
    """A line for each of some figures, given by their labels and keys."""
    for label, key in wanted.items():
        yield label, tuple(show(part[key]) for part in parts)


def _by_name(parts: Sequence[Mapping[str, Any]], show: Callable[[Any], str], what: str) -> Iterator[Line]:
    """A line for each name that a release has a figure of; nothing for a release that has none."""
    for name in dict.fromkeys(name for part in parts for name in part):
        yield f"{name}{what}", tuple(show(part[name]) if name in part else NOTHING for part in parts)


def _asked(asked: Parts) -> Iterator[Line]:
    yield from _each(asked, {"k": "k"}, number)
    yield from _each(asked, {"Quasi-identifiers": "quasi_identifiers"}, ", ".join)
    if any(part["diversity"] for part in asked):
        yield "Diversity", tuple("; ".join(map(_demand, part["diversity"])) or NOTHING for part in asked)
    if any(part["max_confidence"] < 1 for part in asked):
        yield from _each(asked, {"Cap on a target's classes": "max_confidence"}, share)
    yield "Made by", tuple(f"{part['algorithm']}{', denoised' if part['denoise'] else ''}" for part in asked)
    yield "Targets", tuple(", ".join(map(_target, part["targets"])) or NOTHING for part in asked)
    yield "Written as", tuple(f"{part['values']}, {part['regions']} regions" for part in asked)


def _demand(demand: Mapping[str, Any]) -> str:
    settings = [f"{key} = {value}" for key, value in demand.items() if key not in ("column", "model")]
    return f"{demand['column']}: {demand['model']} ({', '.join(settings)})"


def _target(target: Mapping[str, Any]) -> str:
    return str(target["column"]) + ("" if target["used"] else " (not used)")


def _risk(risks: Parts) -> Iterator[Line]:
    counted = {"Groups": "groups", "Smallest group": "smallest_group", "Median group": "median_group"}
    yield from _each(risks, counted, number)
    yield from _each(risks, {"Highest": "highest", "Average": "average"}, share)
    for index, above in enumerate(risks[0]["above"]):
        shares = tuple(share(risk["above"][index]["share"]) for risk in risks)
        yield f"Persons above {above['threshold']:g} ({above['name']})", shares
    yield from _each(risks, {"Sought persons, average": "attack_chance"}, share)


def _revealed(releases: Releases) -> Iterator[Line]:
    keys = {"number": "error_saved_by_others", "classes": "gain_by_others"}
    certain = [{line["column"]: line["certain"] for line in release["revealed"]} for release in releases]
    gains = [{line["column"]: line[keys[line["kind"]]] for line in release["inference"]} for release in releases]
    yield from _by_name(certain, share, ": certain for")
    yield from _by_name(gains, share, ": gain of guessing")


def _shown_metrics(subject: str) -> list[Metric]:
    return [metric for metric in metrics_of("compare") if metric.subject == subject and metric.title]


def _utility(utilities: Parts) -> Iterator[Line]:
    wanted = {"Average group": "average_group", "Average group in multiples of k (C_avg)": "c_avg"}
    yield from _each(utilities, wanted, number)
    for metric in _shown_metrics("release"):
        measured = [part if metric.needs == "groups" else part["losses"] or {} for part in utilities]
        yield metric.title, tuple(_value(metric, figures.get(metric.name)) for figures in measured)
    reasons = [part["losses_not_measured"] for part in utilities]
    if any(reasons):
        yield "Loss not measured, because", tuple(reason or NOTHING for reason in reasons)


def _value(metric: Metric, value: float | None) -> str:
    return share(value) if metric.is_share and value is not None else number(value)


def _detail(releases: Releases) -> Iterator[Line]:
    for name, values in detail_lines(releases):
        yield name, tuple(NOTHING if value is None else share(value) for value in values)


def _of_columns(utilities: Parts, metric: Metric) -> Iterator[Line]:
    """A metric of every column."""
    losses = [part["losses"] or {"columns": ()} for part in utilities]
    columns = [{line["name"]: line[metric.name] for line in part["columns"]} for part in losses]
    return _by_name(columns, partial(_value, metric), "")


def _targets(releases: Releases) -> Iterator[Line]:
    predicted = [{line["column"]: line["regions"] for line in release["predictions"]} for release in releases]
    yield from _by_name(predicted, share, ": predicted")
    lines = [{line["column"]: line for line in release["utility"]["targets"]} for release in releases]
    for column in dict.fromkeys(name for targets in lines for name in targets):
        for metric in _shown_metrics("target"):
            values = (targets[column][metric.name] if column in targets else None for targets in lines)
            yield f"{column}: {metric.title}", tuple(_value(metric, value) for value in values)


def _selections(releases: Releases) -> Iterator[Line]:
    answers = [(release["selections"] or {"answers": ()})["answers"] for release in releases]
    precisions = [{line["number"]: line["precision"] for line in lines} for lines in answers]
    for which in sorted({which for part in precisions for which in part}):
        texts = (share(part[which]) if which in part else NOTHING for part in precisions)
        yield f"Precision of selection {which}", tuple(texts)


def pair_line(pair: Mapping[str, Any]) -> Line:
    """What is known to someone who has two releases, under `PAIR_HEAD`."""
    texts, joint = (NOTHING,) * 3, pair["joint"]
    if joint is not None:
        texts = number(joint["cells"]), number(joint["cells_below_k"]), share(joint["persons_below_k"]["share"])
    return " with ".join(pair["releases"]), (number(pair["k"]), *texts)


def comparison_page(comparison: Mapping[str, Any]) -> str:
    """The page of a comparison."""
    releases = comparison["releases"]
    pairs = comparison["together"]
    return page(
        "comparison.html",
        title="Releases side by side",
        names=[release["name"] for release in releases],
        differences=comparison["differences"],
        tables=sections(comparison),
        drawn=DETAIL_KEPT,
        chart=detail_chart(releases),
        signs=[mark(which, 10, 10) for which in range(len(releases))],
        pairs=[pair_line(pair) for pair in pairs],
        pair_head=PAIR_HEAD,
        faults=[f"{' with '.join(pair['releases'])}: {fault}" for pair in pairs for fault in pair["faults"]],
    )
