# SPDX-License-Identifier: Apache-2.0
"""report.html: a report as one page that needs nothing from anywhere else and runs no script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonfit.report.evidence_sections import (
    asked_section,
    attack_section,
    attacker_section,
    audit_section,
    risk_section,
    sizes_section,
)
from anonfit.report.markup import (
    HEAD,
    Markup,
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
from anonfit.report.utility_sections import (
    comparison_section,
    curve_section,
    detail_section,
    exploration_section,
    partition_section,
    rules_section,
    workload_section,
)

__all__ = ["internal_page", "report_page"]

Report = Mapping[str, Any]
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
    sections = [(title, made) for title, made in _sections(report) if made]
    links = together(element("li", Markup(element("a", title, href=f"#{name}"))) for (title, name), _ in sections)
    contents = element("nav", Markup(element("ol", links)), aria_label="Contents")
    body = together([note, _header(report, kind), contents, element("main", together(made for _, made in sections))])
    foot = "Made by anonfit. The same figures are in report.json; docs/report.md of anonfit tells what each means."
    page = element("div", Markup(body + element("footer", Markup(paragraph(foot)))), class_="page")
    return (
        f'<!doctype html>\n<html lang="en"><head>{HEAD}'
        f"<title>Anonymized release: {escaped(kind.lower())}</title><style>{STYLE}</style></head>"
        f"<body>{page}</body></html>\n"
    )


def _sections(report: Report) -> list[tuple[tuple[str, str], Markup | None]]:
    """Title and name of each section, and the section where there is something to tell."""
    has_workload = report["predictions"] or report["selections"] or report.get("queries") or report.get("clusters")
    compared = report["comparison"]
    has_comparison = compared and any(compared.get(name) for name in ("targets", "selections", "columns"))
    return [
        (("What was asked", "asked"), asked_section(report)),
        (("The assumed attacker, and what is not covered", "attacker"), attacker_section(report)),
        (("What the audit found", "audit"), audit_section(report)),
        (("How many persons share a group", "sizes"), sizes_section(report)),
        (("Risk of finding a person's record", "risk"), risk_section(report)),
        (("An attack, tried", "attack"), attack_section(report) if report.get("attack") else None),
        (("How much detail each column kept", "detail"), detail_section(report)),
        (("The regions of two columns", "partition"), partition_section(report) if report["partition"] else None),
        (("Utility for the workload", "workload"), workload_section(report) if has_workload else None),
        (
            ("Blind against made for the purpose", "comparison"),
            comparison_section(report) if has_comparison else None,
        ),
        (("Rules that the release tells", "rules"), rules_section(report) if report.get("rules") else None),
        (("Ways that were tried", "exploration"), exploration_section(report) if report.get("exploration") else None),
        (("Risk and utility over k", "curve"), curve_section(report) if report["curve"] else None),
        (("For the review board", "board"), _board(report)),
    ]


def _header(report: Report, kind: str) -> Markup:
    facts = [
        *_smallest(report),
        *_extent(report),
        ("Made by", report["asked"]["algorithm"]),
    ]
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
    """How much was released; figures on groups of several quasi-identifiers would be about another attacker."""
    audit, released = report["audit"], ("Records released", value_text(report["rows"]["released"]))
    if audit["sets"]:
        return [released]
    return [
        ("Groups", value_text(audit["sizes"]["groups"])),
        released,
        ("Highest risk", share_text(audit["prosecutor"]["highest"])),
    ]


def _smallest(report: Report) -> list[tuple[str, str]]:
    """What was asked of the smallest group, and what was found; of each of several quasi-identifiers."""
    audit, asked = report["audit"], report["asked"]
    if not audit["sets"]:
        return [
            ("Asked: persons per group", f"{asked['k']:,}"),
            ("Found: smallest group", value_text(audit["sizes"]["smallest"])),
        ]
    return [
        (f"Smallest group of {joined(one['columns'])}", f"{value_text(one['sizes']['smallest'])} (asked: {one['k']:,})")
        for one in audit["sets"]
    ]


HEADLINES = {
    "missed": ("Asked and missed", "bad"),
    "met": ("Asked and met", "good"),
    "not_asked": ("Not asked", "fair"),
}


def _verdict(report: Report) -> list[Markup]:
    """What was missed first, then what was met and what nobody asked."""
    return [
        element("div", Markup(element("strong", title) + together(map(paragraph, told))), class_=f"verdict {kind}")
        for name, (title, kind) in HEADLINES.items()
        if (told := report["verdict"][name])
    ]


def _board(report: Report) -> Markup:
    """What a data steward can hand on."""
    parts: list[Markup] = []
    for part in report["board"]:
        parts.append(element("h3", part["title"]))
        parts += [paragraph(sentence) for sentence in part["sentences"]]
    words = "Plain sentences to copy into an application or a record."
    board = element("div", together(parts), class_="board")
    return section("For the review board", paragraph(words, "soft"), board, name="board")
