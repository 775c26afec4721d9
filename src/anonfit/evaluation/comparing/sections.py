# SPDX-License-Identifier: Apache-2.0
"""A comparison as tables of texts, one column per release: what the command line and the page both show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonfit.evaluation.comparing.chart import detail_lines

__all__ = ["DETAIL_KEPT", "PAIR_HEAD", "Section", "pair_line", "sections"]

DETAIL_KEPT = "Detail kept"
PAIR_HEAD = ("k", "Cells", "Cells below k", "Persons in them")

NOTHING = "–"
NOT_TOLD = "not told"


@dataclass(frozen=True, slots=True)
class Section:
    """A table: a label and one text per release in each line, and what should be known to read it."""

    title: str
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    note: str = ""


def share(value: Any) -> str:
    """A share in percent, or the text in its place."""
    if value is None:
        return NOT_TOLD
    return f"{value:.1%}" if isinstance(value, int | float) else str(value)


def number(value: Any) -> str:
    """A number, or the text in its place."""
    if value is None:
        return NOTHING
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def sections(found: Mapping[str, Any]) -> list[Section]:
    """The tables of a comparison."""
    releases = found["releases"]
    made = [
        Section("What was asked", tuple(_asked(releases))),
        Section(DETAIL_KEPT, tuple(_detail(releases)), DETAIL),
        Section("Rows", tuple(_each(releases, {word.capitalize(): ("rows", word) for word in _ROWS}, number))),
        Section("Risk of finding a person's record", tuple(_risk(releases)), RISK),
        Section("What groups and guesses reveal", tuple(_revealed(releases)), REVEALED),
        Section("Utility whatever the purpose", tuple(_utility(releases)), UTILITY),
        Section("Certainty penalty (NCP) of each column", tuple(_losses(releases)), LOSSES),
        Section("Targets", tuple(_targets(releases)), TARGETS),
        Section("Selections", tuple(_selections(releases)), SELECTIONS),
    ]
    return [section for section in made if section.lines]


_ROWS = ("read", "released", "withheld", "dropped")
DETAIL = (
    "How much of each quasi-identifier's detail is left: the share of all persons whom the label of a person rules "
    "out, against what the exact value would. More is more useful."
)
RISK = (
    "Of an attacker who knows that a person is in the table, and all quasi-identifiers exactly. Sought persons: the "
    "chance of taking the right record, measured with raw records."
)
REVEALED = (
    "Certain: persons all of whose group have the same value. Gain: how much more often the commonest value of the "
    "group is right than that of the table, the person's own record left out (for numbers: the part of the error that "
    "is saved)."
)
UTILITY = (
    "Group size in multiples of k: 1 is the best that k allows. Discernibility: squares of group sizes, summed. Loss: "
    "0 if every value is told exactly, 1 if nothing is told; measured over the same ends of numbers and dates for all."
)
LOSSES = "The share of a column's width, or of its names, that the average label takes."
TARGETS = (
    "Predicted: from the other rows of a row's group, the share of right classes or of the variance that is explained; "
    "regions that were made for a target have seen it, which flatters them. Left open: the entropy (bits) of a target "
    "inside groups. Explained: the part of its entropy that groups take away. Not the commonest: the share of rows "
    "whose class is not their group's commonest (classification metric)."
)
SELECTIONS = (
    "Numbered as in the spec of each release. Their texts are not public, so whether two of the same number are the "
    "same cannot be seen here."
)


def _line(
    label: str, releases: Sequence[Mapping[str, Any]], tell: Callable[[Mapping[str, Any]], str]
) -> tuple[str, tuple[str, ...]]:
    return label, tuple(tell(release) for release in releases)


def _each(
    releases: Sequence[Mapping[str, Any]], wanted: Mapping[str, tuple[str, str]], tell: Callable[[Any], str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """A line for each of some figures, given by their places."""
    for label, (part, key) in wanted.items():
        yield label, tuple(tell(release[part][key]) for release in releases)


def _asked(releases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield _line("k", releases, lambda one: number(one["asked"]["k"]))
    yield _line("Quasi-identifiers", releases, lambda one: ", ".join(one["asked"]["quasi_identifiers"]))
    if any(one["asked"]["diversity"] for one in releases):
        yield _line("Diversity", releases, lambda one: "; ".join(map(_demand, one["asked"]["diversity"])) or NOTHING)
    if any(one["asked"]["max_confidence"] < 1 for one in releases):
        yield _line("Cap on a target's classes", releases, lambda one: share(one["asked"]["max_confidence"]))
    yield _line("Made by", releases, _method)
    yield _line("Targets", releases, _aims)
    yield _line("Written as", releases, lambda one: f"{one['asked']['values']}, {one['asked']['regions']} regions")


def _demand(demand: Mapping[str, Any]) -> str:
    settings = [f"{key} = {value}" for key, value in demand.items() if key not in ("column", "model")]
    return f"{demand['column']}: {demand['model']} ({', '.join(settings)})"


def _method(release: Mapping[str, Any]) -> str:
    return str(release["asked"]["algorithm"]) + (", denoised" if release["asked"]["denoise"] else "")


def _aims(release: Mapping[str, Any]) -> str:
    aims = (
        target["column"] if target["used"] else f"{target['column']} (not used)"
        for target in release["asked"]["targets"]
    )
    return ", ".join(aims) or NOTHING


def _risk(releases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    counted = {"Groups": ("risk", "groups"), "Smallest group": ("risk", "smallest_group")}
    yield from _each(releases, counted | {"Median group": ("risk", "median_group")}, number)
    yield from _each(releases, {"Highest": ("risk", "highest"), "Average": ("risk", "average")}, share)
    for index, above in enumerate(releases[0]["risk"]["above"]):
        yield _line(
            f"Persons above {above['threshold']:g} ({above['name']})",
            releases,
            lambda one, index=index: share(one["risk"]["above"][index]["share"]),  # type: ignore[misc]
        )
    yield _line("Sought persons, average", releases, lambda one: share(one["risk"]["attack_chance"]))


def _revealed(releases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for column in _union(releases, lambda one: [line["column"] for line in one["revealed"]]):
        yield _of_column(f"{column}: certain for", releases, "revealed", column, lambda line: share(line["certain"]))
    for column in _union(releases, lambda one: [line["column"] for line in one["inference"]]):
        yield _of_column(f"{column}: gain of guessing", releases, "inference", column, _gain)


def _gain(line: Mapping[str, Any]) -> str:
    return share(line["error_saved_by_others"] if line["kind"] == "number" else line["gain_by_others"])


def _union(releases: Sequence[Mapping[str, Any]], names: Callable[[Mapping[str, Any]], Sequence[str]]) -> list[str]:
    """Names of any release, in the order in which they come."""
    return list(dict.fromkeys(name for release in releases for name in names(release)))


def _of_column(
    label: str,
    releases: Sequence[Mapping[str, Any]],
    part: str,
    column: str,
    tell: Callable[[Mapping[str, Any]], str],
) -> tuple[str, tuple[str, ...]]:
    """A line about one column; nothing for a release that has no such figure of it."""
    found = [next((line for line in release[part] if line["column"] == column), None) for release in releases]
    return label, tuple(NOTHING if line is None else tell(line) for line in found)


def _utility(releases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    wanted = {
        "Average group": ("utility", "average_group"),
        "Average group in multiples of k (C_avg)": ("utility", "c_avg"),
        "Discernibility": ("utility", "discernibility"),
    }
    yield from _each(releases, wanted, number)
    for label, key in (("Global certainty penalty (GCP)", "gcp"), ("Loss metric (LM)", "lm")):
        yield _line(label, releases, lambda one, key=key: number((one["utility"]["losses"] or {}).get(key)))  # type: ignore[misc]
    reasons = [one["utility"]["losses_not_measured"] for one in releases]
    if any(reasons):
        yield "Loss not measured, because", tuple(reason or NOTHING for reason in reasons)


def _detail(releases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, values in detail_lines(releases):
        yield name, tuple(NOTHING if value is None else share(value) for value in values)


def _losses(releases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    of_release = [
        {line["name"]: line["ncp"] for line in (one["utility"]["losses"] or {"columns": ()})["columns"]}
        for one in releases
    ]
    for name in dict.fromkeys(name for lines in of_release for name in lines):
        yield name, tuple(number(lines.get(name)) for lines in of_release)


def _targets(releases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for column in _union(releases, lambda one: [line["column"] for line in one["predictions"]]):
        yield _of_column(f"{column}: predicted", releases, "predictions", column, lambda line: share(line["regions"]))
    lines = [{line["column"]: line for line in one["utility"]["targets"]} for one in releases]
    tells = (
        ("left open (bits)", "conditional_entropy", number),
        ("explained", "explained", share),
        ("not the commonest", "classification_metric", share),
    )
    for column in dict.fromkeys(name for found in lines for name in found):
        for label, key, tell in tells:
            yield (
                f"{column}: {label}",
                tuple(tell(found[column][key]) if column in found else NOTHING for found in lines),
            )


def _selections(releases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    answers = [
        {line["number"]: line["precision"] for line in (one["selections"] or {"answers": ()})["answers"]}
        for one in releases
    ]
    for which in sorted({which for found in answers for which in found}):
        yield (
            f"Precision of selection {which}",
            tuple(share(found[which]) if which in found else NOTHING for found in answers),
        )


def pair_line(pair: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """What two releases tell together, under `PAIR_HEAD`."""
    label, joint = " with ".join(pair["releases"]), pair["joint"]
    if joint is None:
        return label, (number(pair["k"]), *[NOTHING] * 3)
    below = joint["persons_below_k"]
    return label, (number(pair["k"]), number(joint["cells"]), number(joint["cells_below_k"]), share(below["share"]))
