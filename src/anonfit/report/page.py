# SPDX-License-Identifier: Apache-2.0
"""report.html: the public report as one page that needs nothing from anywhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["report_page"]

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6675; --line: #d9dfe6; --paper: #fff; --good: #12734a; --bad: #b3261e; --bar: #3f7cac; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf1; --soft: #a3afbd; --line: #36404c; --paper: #14191f; --good: #63c796; --bad: #ff8a80; --bar: #6fa8d6; }
}
@media print { :root { --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --good: #0a5; --bad: #b00; } section { break-inside: avoid; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 60rem; font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; }
p, li { max-width: 46rem; } .soft { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--bad); }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.verdict { font-size: 1.1rem; font-weight: 600; border-left: .3rem solid currentColor; padding: .25rem 0 .25rem .8rem; margin: 1rem 0; }
.wide { width: 45%; } .bar { display: block; height: .8rem; background: var(--bar); min-width: 1px; border-radius: 2px; }
"""


def _share(value: Any) -> str:
    """A share of persons, or the text that stands where it may not be told."""
    if isinstance(value, Mapping):
        value = value.get("share", value.get("found", value.get("value", "")))
    if isinstance(value, float):
        return f"{value:.1%}" if 0.0005 < value < 0.9995 or value in (0.0, 1.0) else f"{value:.3%}"
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return _text(next(iter(value.values()), ""))
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Sequence[int] = (), wide: int = -1) -> str:
    def cells(entries: Sequence[Any], tag: str) -> str:
        kinds = [' class="number"' if index in numbers else "" for index in range(len(entries))]
        if wide >= 0:
            kinds[wide] = ' class="wide"'
        return "".join(f"<{tag}{kind}>{entry}</{tag}>" for kind, entry in zip(kinds, entries, strict=True))

    body = "".join(
        f"<tr>{cells([entry if str(entry).startswith('<span') else escape(str(entry)) for entry in row], 'td')}</tr>"
        for row in rows
    )
    return f'<div class="table"><table><thead><tr>{cells([escape(name) for name in head], "th")}</tr></thead><tbody>{body}</tbody></table></div>'


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def _paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _findings(audit: Mapping[str, Any]) -> str:
    """One line per check; checks that were made of every column are told once, with the columns that failed."""
    words = {True: "holds", False: "does not hold", None: "could not be checked"}
    found: dict[tuple[str, Any], list[Mapping[str, Any]]] = {}
    for finding in audit.get("findings", ()):
        found.setdefault((finding["sentence"], finding["met"]), []).append(finding)
    rows = []
    for (sentence, met), group in found.items():
        figures = f"asked {_text(group[0]['asked'])}, found {_text(group[0]['found'])}"
        if met is True and group[0]["name"] != "k":
            figures = ""
        places = [str(finding["where"]) for finding in group if finding.get("where")] if met is not True else []
        rows.append((sentence, words[met], "; ".join(part for part in (figures, ", ".join(places)) if part)))
    return _table(("What was checked in the written file", "", ""), rows)


def _sizes(audit: Mapping[str, Any]) -> str:
    bins = audit["sizes"]["histogram"]
    shares = [entry["persons"].get("share") if isinstance(entry["persons"], Mapping) else None for entry in bins]
    largest = max((share for share in shares if isinstance(share, float)), default=1.0) or 1.0
    rows = []
    for entry, share in zip(bins, shares, strict=True):
        size = f"{entry['low']:,} and more" if entry["high"] is None else f"{entry['low']:,} to {entry['high']:,}"
        if entry["high"] == entry["low"]:
            size = f"{entry['low']:,}"
        width = 100 * share / largest if isinstance(share, float) else 0
        rows.append(
            (
                size,
                _text(entry["groups"]),
                _share(entry["persons"]),
                f'<span class="bar" style="width:{width:.1f}%"></span>',
            )
        )
    return _table(("Persons in the group", "Groups", "Persons", ""), rows, (1, 2), wide=3)


def _risk(audit: Mapping[str, Any]) -> str:
    rows = []
    for attacker in ("prosecutor", "journalist"):
        risk = audit.get(attacker)
        if not risk:
            continue
        shares = (_share(risk["highest"]), _share(risk["average"]))
        rows += [
            (attacker, *shares, f"{line['threshold']:g} ({line['name']})", _share(line["above"]))
            for line in risk["above"]
        ]
    return _table(("Attacker", "Highest risk", "Average risk", "Threshold", "Persons above it"), rows, (1, 2, 4))


def _raw_columns(audit: Mapping[str, Any]) -> str:
    rows = [
        (
            column["name"],
            _share(column["certain"]),
            _share(column["likely"]),
            _text(column["smallest"]),
            _share(column["distinct"]),
        )
        for column in audit.get("raw_columns", ())
    ]
    head = ("Column", "Certain for", "90 % likely for", "Smallest group with it", "Distinct values")
    return _table(head, rows, (1, 2, 3, 4)) if rows else _paragraph("No column is released as it was.")


def _columns(report: Mapping[str, Any]) -> str:
    rows = [
        (line["name"], line["role"], line["technique"], line.get("type", ""), _text(line.get("different")))
        for line in report["columns"]
    ]
    return _table(("Column", "Role", "Technique", "Type", "Different labels"), rows, (4,))


def report_page(report: Mapping[str, Any]) -> str:
    """The page of a public report."""
    audit = report["audit"]
    asked = report["asked"]
    passed = audit["passed"]
    verdict = (
        f"The written file is {asked['k']}-anonymous: every combination of quasi-identifiers in it is shared by at least {asked['k']} persons."
        if passed
        else "The written file does not hold what was asked."
    )
    rows = report["rows"]
    told = f"{_text(rows['released'])} rows released, {_text(rows['withheld'])} withheld, {_text(rows['dropped'])} left out for missing values."
    not_covered = "".join(f"<li>{escape(text)}</li>" for text in report["not_covered"])
    body = [
        "<header><h1>Anonymized release</h1>",
        _paragraph(
            "What was asked, what an independent audit of the written file found, and what is not covered.",
            "soft",
        ),
        f'<p class="verdict {"good" if passed else "bad"}">{escape(verdict)}</p></header>',
        _section("Evidence", _paragraph(told), _findings(audit)),
        _section("The assumed attacker", _paragraph(report["attacker"])),
        _section("Not covered", f"<ul>{not_covered}</ul>"),
        _section("Columns", _columns(report)),
        _section("How many persons share a group", _sizes(audit)),
        _section("Risk of finding a person's record", _risk(audit)),
        _section(
            "What groups reveal of columns released as they were",
            _paragraph("For how many persons everyone, or nine in ten, of their group has the same value.", "soft"),
            _raw_columns(audit),
        ),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Anonymized release</title><style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )
