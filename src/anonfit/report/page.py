# SPDX-License-Identifier: Apache-2.0
"""report.html: a report as one page that needs nothing from anywhere else and runs no script, for light and dark
screens, wide and narrow, and for paper.
"""

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


STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1b2530; --soft: #55626f; --line: #d8dee4; --faint: #eef2f5; --paper: #ffffff; --back: #f6f7f8;
  --accent: #1f5f8b; --good: #14694a; --bad: #a8261d; --fair: #805300; --blind: #74818d;
  --s0: #12496f; --s1: #3576a3; --s2: #7fb0d0; --s3: #c5dcea; --s4: #e6eaed;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4eaf0; --soft: #a2afbb; --line: #35404b; --faint: #1d252d; --paper: #141a20; --back: #0f1419;
    --accent: #7cb8e2; --good: #6fcfa3; --bad: #ff938a; --fair: #e5b567; --blind: #8494a2;
    --s0: #a9d4f2; --s1: #5f9fcb; --s2: #3a6d93; --s3: #274a64; --s4: #232c35;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 16px/1.6 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
.page { max-width: 62rem; margin: 0 auto; padding: 3rem clamp(1rem, 4vw, 3.5rem) 4rem; background: var(--paper); }
h1, h2, h3 { font-family: "Iowan Old Style", "Palatino Linotype", Palatino, Georgia, "Times New Roman", serif;
  font-weight: 600; line-height: 1.2; text-wrap: balance; }
h1 { font-size: clamp(1.8rem, 5vw, 2.5rem); margin: .2rem 0 .75rem; letter-spacing: -.01em; }
h2 { font-size: 1.45rem; margin: 0 0 .6rem; } h3 { font-size: 1.1rem; margin: 1.75rem 0 .4rem; }
p, ul, ol { max-width: 44rem; margin: 0 0 .9rem; } li { margin-bottom: .3rem; } ul { padding-left: 1.2rem; }
p, li, dd, dt, h1, h2, h3, figcaption, caption, th.name, td.text { overflow-wrap: anywhere; }
a { color: var(--accent); text-underline-offset: .15em; }
a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.kicker { font-size: .8rem; letter-spacing: .09em; text-transform: uppercase; color: var(--soft); margin: 0; }
.soft { color: var(--soft); } .lead { font-size: 1.05rem; }
.private { border: 2px solid var(--bad); color: var(--bad); padding: .6rem .9rem; border-radius: .3rem;
  font-weight: 600; margin-bottom: 1.5rem; }
.verdict { border-left: .25rem solid currentColor; padding: .2rem 0 .2rem 1rem; margin: 1.25rem 0; font-size: 1.1rem; }
.good { color: var(--good); } .bad { color: var(--bad); } .fair { color: var(--fair); }
.verdict p { margin: .2rem 0; color: var(--ink); } .verdict.fair { font-size: 1rem; }
section { padding-top: 2.25rem; margin-top: 2.25rem; border-top: 1px solid var(--line); }
.facts { display: grid; grid-template-columns: repeat(3, 1fr); gap: 1.25rem 1.5rem; }
.facts { margin: 1.75rem 0; } .facts div { border-top: 2px solid var(--ink); padding-top: .45rem; }
.facts dt { font-size: .82rem; color: var(--soft); }
.facts dd { margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; line-height: 1.3; }
nav ol { columns: 15rem; list-style: none; padding: 0; max-width: none; font-size: .95rem; margin: 0; }
nav li { break-inside: avoid; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; margin: 1rem 0 1.25rem; }
caption { text-align: left; color: var(--soft); font-size: .88rem; padding-bottom: .35rem; caption-side: top; }
th, td { text-align: left; padding: .42rem 1rem .42rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; font-size: .85rem; vertical-align: bottom; }
th.name { font-weight: 600; min-width: 7rem; max-width: 20rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
tr > :last-child { padding-right: 0; }
.picture { width: 34%; min-width: 8rem; }
td.picture { vertical-align: middle; }
.picture svg { display: block; width: 100%; height: 1rem; }
figure { margin: 1rem 0 1.5rem; } figure svg { display: block; width: 100%; height: auto; max-width: 34rem; }
figcaption { color: var(--soft); font-size: .88rem; max-width: 44rem; margin-top: .5rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); gap: 0 2.5rem;
  align-items: start; }
svg text { fill: var(--ink); font: 11px system-ui, "Segoe UI", Roboto, sans-serif; } svg .soft { fill: var(--soft); }
svg .line { stroke: var(--line); stroke-width: 1; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .mark { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 3; }
svg .edge { stroke: var(--paper); stroke-width: .8; }
.s0 { fill: var(--s0); }
.s1 { fill: var(--s1); }
.s2 { fill: var(--s2); }
.s3 { fill: var(--s3); }
.s4 { fill: var(--s4); }
svg .blind { fill: var(--blind); }
svg .path { fill: none; stroke: var(--s1); stroke-width: 2; }
svg .path.other { stroke: var(--blind); stroke-dasharray: 5 3; }
.key { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; padding: 0; margin: 0 0 .5rem; list-style: none;
  font-size: .88rem; color: var(--soft); max-width: none; }
.key li { display: flex; align-items: center; gap: .4rem; margin: 0; }
.key svg { width: .85rem; height: .85rem; flex: none; }
.board { background: var(--faint); padding: 1.25rem 1.5rem; border-radius: .3rem; }
.board h3:first-child { margin-top: 0; }
.board p { margin-bottom: .35rem; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft);
  font-size: .88rem; }
@media (min-width: 44.01rem) { .number { white-space: nowrap; } thead .number { white-space: normal; } }
@media (max-width: 44rem) {
  .page { padding-top: 1.5rem; } .board { padding: 1rem; } .facts { grid-template-columns: 1fr 1fr; }
  table:not(.slim) thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table:not(.slim), table:not(.slim) :is(tbody, tr, td, th, caption) { display: block; width: 100%; }
  table:not(.slim) tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  table:not(.slim) :is(td, th) { border: 0; padding: .12rem 0; max-width: none; }
  table:not(.slim) td { display: flex; justify-content: space-between; gap: 1rem; text-align: right; }
  table:not(.slim) td::before { content: attr(data-head); color: var(--soft); text-align: left; flex: 0 1 auto; }
  table:not(.slim) td.empty { display: none; }
  table:not(.slim) td.picture { display: block; padding: .3rem 0; }
  table:not(.slim) td.picture::before { display: none; }
}
@media print {
  @page { size: A4; margin: 16mm 15mm; }
  :root {
    color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --faint: #f4f4f4; --paper: #fff; --back: #fff;
      --accent: #000; --good: #0b5237; --bad: #8f1d15; --blind: #74818d;
    --s0: #12496f; --s1: #3576a3; --s2: #7fb0d0; --s3: #c5dcea; --s4: #e6eaed;
  }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  body { font-size: 10.5pt; } .page { max-width: none; padding: 0; } nav { display: none; }
  section { padding-top: 1.2rem; margin-top: 1.2rem; }
  h2, h3, caption { break-after: avoid; }
  tr, figure, .facts, .verdict, li, table:not(.long) { break-inside: avoid; } .key { break-after: avoid; }
  thead { display: table-header-group; } figure svg { max-width: 13cm; } a { text-decoration: none; }
}
"""
