# SPDX-License-Identifier: Apache-2.0
"""Pages, made of templates: each is one file that needs nothing from anywhere else and runs no script, for light and
dark screens, wide and narrow, and for paper. Every text is escaped by the engine. What templates show that is more than
a figure by itself, lines of tables and pictures, are filters.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from anonfit.errors import RequestError, printable
from anonfit.report.content import PRESETS
from anonfit.report.pictures import bars, curve_lines, figure, key, paired_bars, stack, tiling_figure
from anonfit.report.words import (
    Json,
    counted,
    joined,
    number_text,
    percent,
    share_in_words,
    share_text,
    shortened,
    value_text,
)
from anonfit.runtime.files import write_file

if TYPE_CHECKING:
    from jinja2 import Environment

Report = Json
"""What is in report.json, or in the owner's internal record."""
HEADLINES = {
    "missed": ("Asked and missed", "bad"),
    "met": ("Asked and met", "good"),
    "not_asked": ("Not asked", "fair"),
}
HASHED = ("recoding.json", "report.json", "model.json", "audit.json")
"""Files whose hashes a page tells beside that of the data; its own stands in the manifest."""
MAIN = {
    "asked": "What was asked",
    "attacker": "The assumed attacker, and what is not covered",
    "audit": "What the audit found",
    "risk": "Risk of finding a person's record",
    "detail": "How much detail each column kept",
    "workload": "Utility for the workload",
    "comparison": "Blind against made for the purpose",
}
ANNEX = {
    "checks": "What the audit checked",
    "columns": "What was done to each column",
    "sizes": "How many persons share a group",
    "distributions": "Every column before and after",
    "attack": "An attack, tried",
    "partition": "The regions of two columns",
    "answers": "How selections and queries are answered",
    "losses": "What each column lost",
    "curve": "Risk and utility over k",
    "rules": "Rules that the release tells",
    "exploration": "Ways that were tried",
    "board": "For the review board",
}
"""Sections by the names of their templates; one of which a report has nothing to tell is left out."""
HOLDS = {True: "holds", False: "does not hold", None: "could not be checked"}
MOST_CURVES = 6
SPANS = (
    ("s0", "at most 5 % of all fit the label"),
    ("s1", "to 25 %"),
    ("s2", "to 50 %"),
    ("s3", "more"),
    ("s4", "everybody: nothing is told"),
)
OF_ALL_TOGETHER = (
    "Each quasi-identifier alone holds what was asked of it. The figures here are about someone who knows all of them "
    "together, of whom nothing was asked."
)


# --- lines and pictures -----------------------------------------------------------------------------------------


def extent(report: Report) -> list[tuple[str, str]]:
    """What was asked of the smallest groups and what was found, and how much was released by what. With several
    quasi-identifiers nothing on groups of all of them: it would be about another attacker.
    """
    audit, asked = report["audit"], report["asked"]
    facts = [("Records released", value_text(report["rows"]["released"])), ("Made by", asked["algorithm"])]
    if audit["sets"]:
        smallest = [
            (f"Smallest group of {joined(entry['columns'])}", value_text(entry["sizes"]["smallest"]), entry["k"])
            for entry in audit["sets"]
        ]
        return [*((name, f"{persons} (asked: {k:,})") for name, persons, k in smallest), *facts]
    return [
        ("Asked: persons per group", f"{asked['k']:,}"),
        ("Found: smallest group", value_text(audit["sizes"]["smallest"])),
        ("Groups", value_text(audit["sizes"]["groups"])),
        ("Highest risk", share_text(audit["prosecutor"]["highest"])),
        *facts,
    ]


def headline(audit: Report, asked: str = "What was asked") -> dict[str, str]:
    """In one sentence: whether what was asked holds, and how many usual thresholds are missed."""
    if not audit["passed"]:
        return {"kind": "bad", "words": f"{asked} does not hold, or could not be checked."}
    thresholds = audit["prosecutor"]["above"]
    missed = [line for line in thresholds if line["above"]["persons"] != 0]
    if not missed:
        return {"kind": "good", "words": f"{asked} holds, and no usual threshold is missed."}
    words = f"{asked} holds; {len(missed)} of {len(thresholds)} usual thresholds are missed."
    return {"kind": "fair", "words": words}


def findings(audit: Report) -> list[tuple[str, str]]:
    """One line per check, with the columns that failed it; diversity has a table of its own."""
    elsewhere = {measured["model"] for measured in audit.get("diversity", ())}
    checks: dict[tuple[str, Any, Any], list[Report]] = {}
    for finding in audit.get("findings", ()):
        if finding["name"] not in elsewhere:
            # Of several quasi-identifiers each has a line.
            which = finding["where"] if finding["name"] == "k" else None
            checks.setdefault((finding["sentence"], finding["met"], which), []).append(finding)
    rows = []
    for (sentence, met, which), group in checks.items():
        figures = f"asked {value_text(group[0]['asked'])}, found {value_text(group[0]['found'])}"
        if met is True and group[0]["name"] != "k":
            figures = ""
        names_places = which is not None or met is not True
        places = [str(finding["where"]) for finding in group if finding.get("where")] if names_places else []
        rows.append((sentence, "; ".join(part for part in (HOLDS[met], figures, ", ".join(places)) if part)))
    return rows


def attackers(audit: Report) -> list[tuple[str, ...]]:
    """A line for each attacker whose risk was measured."""
    known = {"prosecutor": "in the file", "journalist": "in the population"}
    rows = [
        (name, f"knows that the person is {place}", share_text(risk["highest"]), share_text(risk["average"]))
        for name, place in known.items()
        if (risk := audit.get(name))
    ]
    return [*rows, ("marketer", "links everybody at once", "", share_text(audit["marketer"]))]


def size(entry: Report) -> str:
    """The sizes of a bin of groups."""
    return f"{entry['low']:,}" if entry["low"] == entry["high"] else f"{entry['low']:,} to {entry['high']:,}"


def size_bars(bins: Sequence[Report], words: str) -> Markup:
    """The share of all persons by the size of their group."""
    total = sum(entry["persons"] for entry in bins) or 1
    lines = [(size(entry), entry["persons"] / total, percent(entry["persons"] / total)) for entry in bins]
    return bars(lines, f"Share of all persons by the size of their group. {words}")


def precision(line: Report) -> Markup:
    """How large a share of all fit the labels of a column, as a bar."""
    counted = "persons" if "persons_by_span" in line else "records"
    numbers = [entry[counted] for entry in line[f"{counted}_by_span"]]
    shares = [(f"s{index}", number / (sum(numbers) or 1)) for index, number in enumerate(numbers)]
    words = "; ".join(
        f"{percent(share)} {name}" for (_, share), (_, name) in zip(shares, SPANS, strict=True) if share > 0
    )
    return stack(shares, f"{line['column']}: {words}")


def gain(line: Report) -> str:
    """How much better than blind, in points."""
    if line["gain"] is None:
        return f"{line['different']} differ" if isinstance(line["different"], str) else "not told"
    noise = "" if line["noise"] is None else f" ± {100 * line['noise']:.1f}"
    return f"{100 * line['gain']:+.1f}{noise}"


def _targets(curve: Report) -> list[str]:
    return list(dict.fromkeys(target["column"] for point in curve["points"] for target in point["targets"]))


def curve_table(curve: Report) -> dict[str, Any]:
    """The heads of the figures that were measured over k, and a row for each k."""
    points = curve["points"]
    rest = {
        "Precision of selections": "precision",
        "Detail kept": "kept",
        "Highest risk": "highest_risk",
        "Average risk": "average_risk",
    }
    figures = [
        *((name, _values_of(points, name)) for name in _targets(curve)),
        *((head, [point[name] for point in points]) for head, name in rest.items()),
    ]
    measured = [(head, values) for head, values in figures if any(value is not None for value in values)]
    cells = zip(
        *(["none" if value is None else percent(value) for value in values] for _, values in measured), strict=True
    )
    return {
        "heads": [head for head, _ in measured],
        "rows": [[str(point["k"]), *row] for point, row in zip(points, cells, strict=True)],
    }


def _values_of(points: Sequence[Report], target: str) -> list[float | None]:
    return [{line["column"]: line["value"] for line in point["targets"]}.get(target) for point in points]


def curves(curve: Report) -> list[Markup]:
    """A picture for each target, with the detail that is kept; of that alone where there is no target."""
    points = curve["points"]
    kept = [point["kept"] for point in points]
    lines = [
        ([_values_of(points, name), kept], f"{name} (line) and detail kept (dashed)")
        for name in _targets(curve)[:MOST_CURVES]
    ]
    places = [(f"{point['k']:,}", f"{100 * point['highest_risk']:.3g} %") for point in points]
    pictures = []
    for values, caption in lines or [([kept], "Detail kept")]:
        shares = zip(points, values[0], strict=True)
        words = ", ".join(f"k = {point['k']}: {share_in_words(value)}" for point, value in shares)
        drawn = curve_lines(places, values, ("k", "risk"), f"{caption} by k. {words}")
        pictures.append(figure(drawn, f"{caption} by k, with the highest risk that k allows."))
    return pictures


def ways(exploration: Report) -> list[tuple[str, ...]]:
    """The ways to weigh columns that no other one betters: for the owner of the data only."""
    return [
        (
            f"{line['number']}{' (published)' if line['number'] == exploration['published'] else ''}",
            _way(line),
            *(f"{line['figures'][name]:,.4g}" for name in exploration["figures"]),
        )
        for line in exploration["candidates"]
        if line["on_front"]
    ]


def _way(line: Report) -> str:
    method = line["method"]
    weights = ", ".join(f"{name} {weight:g}" for name, weight in line["weights"].items())
    rule = f", {method['weight_rule']}" if method["criterion"] == "weighted" else ""
    alpha = f" with alpha {method['alpha']:g}" if method["weight_rule"] == "blend" else ""
    return f"{method['criterion']}{rule}{alpha}, seed {method['seed']}{f': {weights}' if weights else ''}"


def lost(losses: Report) -> dict[str, Any]:
    """The heads of the metrics of columns, those without a title by their names as words, and a row for each column."""
    titles = {"ncp": "NCP", "together": "Pairs not told apart"}
    names = [name for name in losses["columns"][0] if name not in ("column", "weight", "squares")]
    return {
        "heads": [titles.get(name, name.replace("_", " ").capitalize()) for name in names],
        "rows": [
            (line["column"], f"{line['weight']:.2f}", *(percent(line[name]) for name in names))
            for line in losses["columns"]
        ],
    }


def distribution(line: Report) -> Markup:
    """How the values of a column are distributed, before and after."""
    lines = [(bar["label"], bar["before"], bar["after"]) for bar in line["bars"]]
    words = "; ".join(
        f"{name}: {percent(before)}" + ("" if after is None else f", after {percent(after)}")
        for name, before, after in lines
    )
    return figure(paired_bars(lines, f"{line['column']}. {words}"), line["column"], above=True)


# --- pages ------------------------------------------------------------------------------------------------------


class Head(NamedTuple):
    """A column's head and kind: `number`, `picture`, `text` (maybe long), `name` (of a row), or nothing."""

    title: str
    kind: str = ""


def _heads(words: str, more: Iterable[Sequence[str]] = ()) -> list[Head]:
    """The heads of a table, such as `Column|name; Kept|number`, and then `more`."""
    return [Head(*head) for head in (*(head.split("|") for head in words.split("; ") if head), *more)]


FILTERS: dict[str, Callable[..., Any]] = {
    "figure": value_text,
    "share": share_text,
    "told": share_in_words,
    "percent": percent,
    "number": number_text,
    "shortened": shortened,
    "joined": joined,
    "counted": counted,
    "numbered": lambda titles: [
        (title, "number") for title in (titles.values() if isinstance(titles, Mapping) else titles)
    ],
    **{
        view.__name__: view
        for view in (findings, attackers, size, precision, gain, curve_table, curves, ways, lost, distribution)
    },
}


def _shown(value: Any) -> Any:
    """A value as a template writes it: nothing for None, and no sign that a page would obey."""
    if value is None or hasattr(value, "__html__"):
        return value if value is not None else ""
    return printable(str(value))


@cache
def _environment() -> Environment:
    """The templates, with the filters, macros and pictures of all pages."""
    from anonfit.report.environment import environment

    made = environment(_shown, autoescape=True)
    made.filters.update(FILTERS)
    made.globals |= {"read_heads": _heads, "figure": figure, "key": key, "tiling_figure": tiling_figure}
    made.globals |= {"size_bars": size_bars, "spans": SPANS, "presets": PRESETS, "of_all_together": OF_ALL_TOGETHER}
    made.globals |= {"version": version("anonfit")}
    macros: Any = made.get_template("macros.html").module
    made.globals |= {name: macro for name, macro in vars(macros).items() if not name.startswith("_")}
    return made


def page(template: str, **context: Any) -> str:
    """A page of one of the templates."""
    return _environment().get_template(template).render(**context)


def check_page(path: Path, *, replace: bool) -> None:
    """Refuse a place where a page cannot be written, or where something else is."""
    if path.is_dir() or (path.exists() and not replace):
        raise RequestError(f"{path} is already there; choose another name, or allow to replace it (--replace).")
    if not path.absolute().parent.is_dir():
        raise RequestError(f"{path.absolute().parent}: there is no such folder to write the page into.")


def save_page(path: Path, text: str, *, replace: bool) -> Path:
    """Write a page, whole or not at all; audits and comparisons tell figures that are for the owner only."""
    check_page(path, replace=replace)
    write_file(path, text, replace=replace, mode=0o600)
    return path


def report_page(report: Report, manifest: Report | None = None) -> str:
    """The page of a public report, headed by what the manifest of its release says."""
    return _report(report, manifest or {}, "public report")


def internal_page(report: Report, manifest: Report | None = None, source: Mapping[str, str] | None = None) -> str:
    """The page for the owner of the data, with everything in it."""
    facts = [("Source", source["path"]), ("SHA-256 of the source", source["sha256"])] if source else []
    return _report(report, manifest or {}, "internal report", facts)


def _report(report: Report, manifest: Report, kind: str, facts: Sequence[tuple[str, str]] = ()) -> str:
    declared = manifest.get("spec", {}).get("columns", {})
    titles = {name: column["title"] for name, column in declared.items() if "title" in column}
    report = {**report, "titles": titles}
    return page(
        "report.html",
        title=heading(manifest).get("title", "Anonymized release"),
        kind=kind,
        report=report,
        facts=[*imprint(manifest), *facts],
        headline=headline(report["audit"]),
        headlines=HEADLINES,
        extent=extent(report),
        main=_sections(MAIN, report),
        annex=_sections(ANNEX, report),
    )


def heading(manifest: Report) -> Mapping[str, str]:
    """The words of the owner that a report is headed by."""
    words: Mapping[str, str] = manifest.get("spec", {}).get("report", {})
    return words


def imprint(manifest: Report) -> list[tuple[str, str]]:
    """What table it is of, when and by what it was made, whom to ask, and the hashes of the files beside the page."""
    if not manifest:
        return []
    words = heading(manifest)
    facts = [
        ("Table", words.get("table_name")),
        ("Date", manifest.get("created")),
        ("Made by", f"anonfit {manifest['anonfit']}"),
        ("Contact", words.get("contact")),
    ]
    hashes = [
        (f"SHA-256 of {name}", digest)
        for name, digest in sorted(manifest.get("files", {}).items())
        if name in HASHED or name.startswith("data.")
    ]
    return [(name, text) for name, text in [*facts, *hashes] if text]


def tree_page(report: Report, manifest: Report, drawing: str) -> str:
    """The page of a published tree, of its audit.json, its manifest and its picture."""
    audit, asked = report["audit"], report["asked"]
    sentences = [
        f"k = {asked['k']}: no person can be told by the tree from {asked['k'] - 1} others or more, by someone who "
        f"knows {joined(asked['public']) or 'nothing'} of everybody.",
        f"Private: {joined([*asked['private'], *([] if asked['class_is_public'] else [asked['class']])])}.",
        *(f"{demand['column']}: {demand['model']}." for demand in asked["diversity"]),
        f"Told of the leaves: {report['told']}.",
    ]
    return page(
        "tree.html",
        title=heading(manifest).get("title", "Anonymous decision tree"),
        report=report,
        asked=asked,
        audit=audit,
        spans=audit["spans"],
        headline=headline(audit["spans"]),
        facts=imprint(manifest),
        sentences=sentences,
        drawing=b64encode(drawing.encode()).decode(),
        drawn_words=f"Decision tree for {asked['class']} with {report['tree']['leaves']} leaves",
    )


def _sections(titles: Mapping[str, str], report: Report) -> list[tuple[str, str, Any]]:
    """Sections that have something to tell: their names, titles and texts."""
    texts = ((name, title, page(f"report/{name}.html", report=report).strip()) for name, title in titles.items())
    return [(name, title, Markup(text)) for name, title, text in texts if text]  # noqa: S704 - templates escape
