# SPDX-License-Identifier: Apache-2.0
"""compare.html: a comparison as one page that needs nothing from anywhere else, in light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonfit.evaluation.comparing.chart import COLOURS, detail_chart, mark
from anonfit.evaluation.comparing.sections import DETAIL_KEPT, PAIR_HEAD, Section, pair_line, sections
from anonfit.report.markup import HEAD, escaped

__all__ = ["comparison_page"]

LIGHT = ("#0b66b0", "#c2570c", "#12734a", "#8b3fa8", "#8a6d00", "#b0265f")
DARK = ("#6cb4f0", "#f39a5c", "#63c796", "#cf9be3", "#dcbf4a", "#f18bb4")
"""The colours of releases on light and on dark paper."""


def _colours(colours: Sequence[str]) -> str:
    return " ".join(f"--series-{which}: {colour};" for which, colour in enumerate(colours, start=1))


STYLE = f"""
:root {{ color-scheme: light dark; --ink: #1c2430; --soft: #5a6675; --line: #d9dfe6; --paper: #fff; --bad: #b3261e;
  {_colours(LIGHT)} }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e6ebf1; --soft: #a3afbd; --line: #36404c; --paper: #14191f; --bad: #ff8a80; {_colours(DARK)} }}
}}
@media print {{
  :root {{ color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --bad: #b00;
    {_colours(LIGHT)} }}
  section {{ break-inside: avoid; }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 64rem; font: 16px/1.55 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }}
h1 {{ font-size: 1.7rem; margin: 0 0 .25rem; }}
h2 {{ font-size: 1.15rem; margin: 2.25rem 0 .5rem; }}
p, li {{ max-width: 48rem; overflow-wrap: anywhere; }}
.soft {{ color: var(--soft); font-size: .93rem; }}
.bad {{ color: var(--bad); }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-size: .93rem; table-layout: fixed; }}
th, td {{ text-align: right; padding: .35rem 0 .35rem 1rem; border-bottom: 1px solid var(--line); vertical-align: top;
  font-variant-numeric: tabular-nums; }}
thead th {{ font-weight: 600; }}
th:first-child, td:first-child {{ text-align: left; padding-left: 0; color: var(--soft); }}
th:first-child {{ width: 32%; }}
td {{ overflow-wrap: break-word; }}
.legend {{ display: flex; flex-wrap: wrap; gap: .35rem 1.25rem; list-style: none; padding: 0; margin: .5rem 0; }}
.legend li {{ display: inline-flex; align-items: center; gap: .45rem; }}
.legend svg {{ width: 20px; height: 20px; flex: none; }}
.chart {{ overflow-x: auto; }}
.chart svg {{ width: 100%; min-width: 30rem; max-width: 50rem; height: auto; display: block; margin: .75rem 0 1rem; }}
svg text {{ font: 13px system-ui, sans-serif; fill: var(--ink); }}
svg .axis {{ fill: var(--soft); font-size: 12px; }}
svg .grid {{ stroke: var(--line); }}
svg .border {{ stroke: var(--line); }}
svg .series {{ stroke: var(--paper); stroke-width: 1.2; }}
""" + "".join(f"svg .series-{which} {{ fill: var(--series-{which}); }}\n" for which in range(1, COLOURS + 1))

TOGETHER = (
    "Who has two releases of one table sees for every person the label here and the label there. The cells of both "
    "hold fewer persons than the groups of either."
)


def _table(head: Sequence[str], lines: Sequence[tuple[str, Sequence[str]]]) -> str:
    top = "".join(f"<th>{escaped(name)}</th>" for name in head)
    least = f"min-width:{8 + 7 * len(head):g}rem"
    body = "".join(
        f"<tr><td>{escaped(label)}</td>{''.join(f'<td>{escaped(text)}</td>' for text in texts)}</tr>"
        for label, texts in lines
    )
    return (
        f'<div class="scroll"><table style="{least}"><thead><tr><th></th>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{escaped(title)}</h2>{''.join(parts)}</section>"


def _note(text: str) -> str:
    return f'<p class="soft">{escaped(text)}</p>' if text else ""


def _legend(names: Sequence[str]) -> str:
    marks = (
        f'<li><svg viewBox="0 0 20 20" aria-hidden="true">{mark(which, 10, 10)}</svg>{escaped(name)}</li>'
        for which, name in enumerate(names)
    )
    return f'<ul class="legend">{"".join(marks)}</ul>'


def _chart(releases: Sequence[Mapping[str, Any]]) -> str:
    drawn = detail_chart(releases)
    return f'{_legend([release["name"] for release in releases])}<div class="chart">{drawn}</div>' if drawn else ""


def _together(pairs: Sequence[Mapping[str, Any]]) -> str:
    faults = [f"{' with '.join(pair['releases'])}: {fault}" for pair in pairs for fault in pair["faults"]]
    told = "".join(f'<p class="bad">{escaped(fault)}</p>' for fault in faults)
    return _section(
        "Two releases together", _note(TOGETHER), _table(PAIR_HEAD, [pair_line(pair) for pair in pairs]), told
    )


def _differences(sentences: Sequence[str]) -> str:
    return _section("What differs", f"<ul>{''.join(f'<li>{escaped(text)}</li>' for text in sentences)}</ul>")


def _shown(section: Section, releases: Sequence[Mapping[str, Any]]) -> str:
    chart = _chart(releases) if section.title == DETAIL_KEPT else ""
    names = [release["name"] for release in releases]
    return _section(section.title, _note(section.note), chart, _table(names, section.lines))


def comparison_page(found: Mapping[str, Any]) -> str:
    """The page of a comparison."""
    releases = found["releases"]
    names = [release["name"] for release in releases]
    body = [
        "<header><h1>Releases side by side</h1>",
        f'<p class="soft">{escaped(", ".join(names))}</p></header>',
        _differences(found["differences"]) if found["differences"] else "",
        *(_shown(section, releases) for section in sections(found)),
        _together(found["together"]) if found["together"] else "",
    ]
    return (
        f'<!doctype html><html lang="en"><head>{HEAD}'
        f"<title>Releases side by side</title><style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )
