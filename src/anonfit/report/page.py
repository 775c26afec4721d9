# SPDX-License-Identifier: Apache-2.0
"""report.html: a report as one page that needs nothing from anywhere else and runs no script."""

from __future__ import annotations

from collections.abc import Sequence

from anonfit.report.evidence_sections import EVIDENCE
from anonfit.report.markup import (
    HEAD,
    Markup,
    Report,
    Section,
    definitions,
    element,
    escaped,
    joined,
    paragraph,
    section,
    share_text,
    together,
    value_text,
)
from anonfit.report.style import STYLE
from anonfit.report.utility_sections import UTILITY

PRIVATE = (
    "For the owner of the data only. This page tells figures about few persons and the texts of selections: do not "
    "publish it, and do not put it into the release folder."
)


def report_page(report: Report) -> str:
    """The page of a public report."""
    return _page(report, "Public report", Markup(""))


def internal_page(report: Report) -> str:
    """The page for the owner of the data, with everything in it."""
    return _page(report, "Internal report", paragraph(PRIVATE, "private"))


def _page(report: Report, kind: str, note: Markup) -> str:
    shown = [(name, title, parts) for name, title, parts_of in SECTIONS if (parts := parts_of(report))]
    links = together(element("li", Markup(element("a", title, href=f"#{name}"))) for name, title, _ in shown)
    sections = together(section(title, *parts, name=name) for name, title, parts in shown)
    contents = element("nav", Markup(element("ol", links)), aria_label="Contents")
    body = together([note, _header(report, kind), contents, element("main", sections)])
    foot = "Made by anonfit. The same figures are in report.json; docs/report.md of anonfit tells what each means."
    page = element("div", Markup(body + element("footer", Markup(paragraph(foot)))), class_="page")
    return (
        f'<!doctype html>\n<html lang="en"><head>{HEAD}'
        f"<title>Anonymized release: {escaped(kind.lower())}</title><style>{STYLE}</style></head>"
        f"<body>{page}</body></html>\n"
    )


def _header(report: Report, kind: str) -> Markup:
    facts = [*_smallest(report), *_extent(report), ("Made by", report["asked"]["algorithm"])]
    parts = [
        paragraph(kind, "kicker"),
        element("h1", "Anonymized release"),
        paragraph(
            "What was asked, what an independent audit of the written file found, what it is worth, and what is not "
            "covered.",
            "soft lead",
        ),
        *_verdict(report),
        definitions(facts, "facts"),
    ]
    if drawn := report.get("measured_on"):
        parts.append(paragraph(drawn["sentence"], "soft"))
    return element("header", together(parts))


def _extent(report: Report) -> list[tuple[str, str]]:
    """How much was released. With several quasi-identifiers nothing on groups: it would be about another attacker."""
    audit, released = report["audit"], ("Records released", value_text(report["rows"]["released"]))
    if audit["sets"]:
        return [released]
    return [
        ("Groups", value_text(audit["sizes"]["groups"])),
        released,
        ("Highest risk", share_text(audit["prosecutor"]["highest"])),
    ]


def _smallest(report: Report) -> list[tuple[str, str]]:
    """What was asked of the smallest group and what was found, for each quasi-identifier where there are several."""
    audit, asked = report["audit"], report["asked"]
    if not audit["sets"]:
        return [
            ("Asked: persons per group", f"{asked['k']:,}"),
            ("Found: smallest group", value_text(audit["sizes"]["smallest"])),
        ]
    return [
        (
            f"Smallest group of {joined(entry['columns'])}",
            f"{value_text(entry['sizes']['smallest'])} (asked: {entry['k']:,})",
        )
        for entry in audit["sets"]
    ]


HEADLINES = {
    "missed": ("Asked and missed", "bad"),
    "met": ("Asked and met", "good"),
    "not_asked": ("Not asked", "fair"),
}


def _verdict(report: Report) -> list[Markup]:
    """What was missed first, then what was met and what nobody asked."""
    return [
        element("div", Markup(element("strong", title) + together(map(paragraph, sentences))), class_=f"verdict {kind}")
        for name, (title, kind) in HEADLINES.items()
        if (sentences := report["verdict"][name])
    ]


def _board(report: Report) -> list[Markup]:
    """What a data steward can hand on."""
    parts: list[Markup] = []
    for part in report["board"]:
        parts.append(element("h3", part["title"]))
        parts += [paragraph(sentence) for sentence in part["sentences"]]
    words = "Plain sentences to copy into an application or a record."
    return [paragraph(words, "soft"), element("div", together(parts), class_="board")]


SECTIONS: Sequence[Section] = (*EVIDENCE, *UTILITY, ("board", "For the review board", _board))
