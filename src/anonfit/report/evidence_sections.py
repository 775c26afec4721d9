# SPDX-License-Identifier: Apache-2.0
"""The sections of a report's page on what was asked, found and risked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonfit.report.content import PRESETS
from anonfit.report.markup import (
    Markup,
    Report,
    Section,
    bars,
    bullets,
    element,
    figure,
    paragraph,
    percent,
    share_in_words,
    share_text,
    table,
    together,
    value_text,
)

HOLDS = {True: "holds", False: "does not hold", None: "could not be checked"}


def _asked(report: Report) -> list[Markup]:
    """What was asked, and what became of each column."""
    columns = "Column|name; Role; Technique; Type"
    rows = [(line["name"], line["role"], line["technique"], line.get("type", "")) for line in report["columns"]]
    return [
        bullets(report["asked"]["sentences"]),
        table("The columns of the table, and what was done to each.", columns, rows),
    ]


def _attacker(report: Report) -> list[Markup]:
    """Whom the release is meant to withstand, and what it is not."""
    return [
        paragraph(report["attacker"]),
        paragraph("Nothing here says anything about:"),
        bullets(report["not_covered"]),
    ]


def _audit(report: Report) -> list[Markup]:
    """What the audit found."""
    rows, audit = report["rows"], report["audit"]
    words = (
        f"{value_text(rows['released'])} records released, {value_text(rows['withheld'])} withheld, "
        f"{value_text(rows['dropped'])} left out for missing values. After the file was written, a program that shares "
        "no code with the one that made it recounted it."
    )
    return [paragraph(words), _findings(audit), *_values(report)]


def _findings(audit: Mapping[str, Any]) -> Markup:
    """One line per check, with the columns that failed it; diversity has a table of its own."""
    elsewhere = {measured["model"] for measured in audit.get("diversity", ())}
    checks: dict[tuple[str, Any, Any], list[Mapping[str, Any]]] = {}
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
    columns = "Check|name; Result"
    return table("What was checked in the written file.", columns, rows, "slim")


def _values(report: Report) -> list[Markup]:
    """What groups tell of the columns released as they were: by the models asked for, and at all."""
    parts = []
    if report["diversity"]:
        columns = "Column|name; Model; The worst group; Result"
        rows = [
            (
                line["column"],
                line["model"],
                line["sentence"].removeprefix(f"{line['column']}: "),
                {True: "holds", False: "does not hold", None: ""}[line["met"]],
            )
            for line in report["diversity"]
        ]
        parts.append(table("Sensitive columns and targets: the worst group of the file.", columns, rows))
    raw = report["audit"].get("raw_columns", ())
    if raw:
        columns = "Column|name; Certain for|number; 90 % likely for|number; Smallest group with it|number"
        rows = [
            (
                column["name"],
                share_text(column["certain"]),
                share_text(column["likely"]),
                value_text(column["smallest"]),
            )
            for column in raw
        ]
        caption = "Columns released as they were: for how many persons all, or nine in ten, of their group are alike."
        parts.append(table(caption, columns, rows))
    return parts


def _sizes(report: Report) -> list[Markup]:
    """How many persons share a group, as a picture and in figures."""
    if report["audit"]["sets"]:
        return _sizes_of_several(report)
    sizes, bins = report["audit"]["sizes"], report["group_sizes"]
    total = sum(entry["persons"] for entry in bins) or 1
    words = (
        f"{value_text(sizes['groups'])} groups. The smallest has {value_text(sizes['smallest'])} persons (asked: "
        f"{report['asked']['k']:,}), half of the groups have at most {value_text(sizes['median'])}, the largest has "
        f"{value_text(sizes['largest'])}; the mean is {value_text(sizes['mean'])}."
    )
    lines = [(_size(entry), entry["persons"] / total, percent(entry["persons"] / total)) for entry in bins]
    picture = bars(lines, f"Share of all persons by the size of their group. {words}")
    rows = [(_size(entry), f"{entry['groups']:,}", f"{entry['persons']:,}") for entry in bins]
    columns = "Persons in the group|name; Groups|number; Persons|number"
    caption = "Share of all persons by the number of persons in their group."
    both = together([figure(picture, caption), table("The same in numbers.", columns, rows, "slim")])
    return [paragraph(words), element("div", both, class_="pair")]


def _sizes_of_several(report: Report) -> list[Markup]:
    """The groups of each of several quasi-identifiers."""
    columns = "Quasi-identifier|name; Asked|number; Smallest group|number; Groups|number; Half have at most|number"
    rows = [
        (
            ", ".join(entry["columns"]),
            f"{entry['k']:,}",
            *(value_text(entry["sizes"][name]) for name in ("smallest", "groups", "median")),
        )
        for entry in report["audit"]["sets"]
    ]
    words = "Each quasi-identifier has groups of its own; what was asked holds for each alone."
    return [paragraph(words), table("Groups in persons.", columns, rows)]


def _size(entry: Mapping[str, Any]) -> str:
    return f"{entry['low']:,}" if entry["low"] == entry["high"] else f"{entry['low']:,} to {entry['high']:,}"


TOGETHER = (
    "Each quasi-identifier alone holds what was asked of it. The figures here are about someone who knows all of them "
    "together, of whom nothing was asked."
)


def _risk(report: Report) -> list[Markup]:
    """The risk of being found, by attacker and threshold."""
    audit = report["audit"]
    rows = []
    asks = {
        "prosecutor": "knows that the person is in the file",
        "journalist": "knows that the person is in the population",
    }
    for attacker, knows in asks.items():
        risk = audit.get(attacker)
        if risk:
            rows.append((attacker, knows, share_text(risk["highest"]), share_text(risk["average"])))
    rows.append(("marketer", "links everybody at once", "", share_text(audit["marketer"])))
    columns = "Attacker|name; What the attacker does; Highest risk|number; Average risk|number"
    parts = [table("The risk that a record is rightly taken for a person's.", columns, rows)]
    columns = "Threshold|name; Source; Smallest group within it|number; Persons above it|number"
    rows = [
        (
            f"{line['threshold']:g} ({PRESETS.get(line['name'], line['name'])})",
            line["source"],
            f"{line['size']:,}",
            share_text(line["above"]),
        )
        for line in audit["prosecutor"]["above"]
    ]
    parts.append(table("Thresholds in use: presets with a source, not law (prosecutor).", columns, rows))
    if not audit.get("journalist"):
        parts.append(
            paragraph(
                "The journalist's risk was not measured: it needs the population that the table was drawn from. It is "
                "never higher than the prosecutor's.",
                "soft",
            )
        )
    if audit["sets"]:
        parts.insert(0, paragraph(TOGETHER))
    if report.get("initial_risk"):
        parts.append(_initial(report))
    return parts


def _initial(report: Report) -> Markup:
    """The risk in the raw table."""
    risk = report["initial_risk"]
    rows = [
        ("Smallest group of the same quasi-identifiers", value_text(risk["smallest"])),
        ("Persons who were the only one with theirs", share_text(risk["alone"])),
        (f"Persons in groups of fewer than {report['asked']['k']}", share_text(risk["below_k"])),
        ("Average risk", share_in_words(risk["average"])),
    ]
    columns = "Initial risk|name; Found|number"
    return table("Before: the raw quasi-identifiers.", columns, rows, "slim")


def _attack(report: Report) -> list[Markup]:
    """What an attack on the release came to."""
    attack = report.get("attack")
    if not attack:
        return []
    parts: list[Markup] = [bullets(attack["sentences"])]
    if report["audit"]["sets"]:
        parts.insert(0, paragraph(TOGETHER))
    classes = [line for line in attack["inference"] if line["kind"] == "classes"]
    if classes:
        columns = (
            "Column|name; Guessed from the group|number; From the group's others|number; From the whole table|number"
        )
        rows = [
            (line["column"], *(share_in_words(line[name]) for name in ("accuracy", "accuracy_by_others", "baseline")))
            for line in classes
        ]
        parts.append(table("Right guesses of what was not known.", columns, rows))
    return parts


EVIDENCE: Sequence[Section] = (
    ("asked", "What was asked", _asked),
    ("attacker", "The assumed attacker, and what is not covered", _attacker),
    ("audit", "What the audit found", _audit),
    ("sizes", "How many persons share a group", _sizes),
    ("risk", "Risk of finding a person's record", _risk),
    ("attack", "An attack, tried", _attack),
)
