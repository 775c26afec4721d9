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


class _Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Sequence[int] = (), wide: int = -1) -> str:
    def cells(entries: Sequence[Any], tag: str) -> str:
        kinds = [' class="number"' if index in numbers else "" for index in range(len(entries))]
        if wide >= 0:
            kinds[wide] = ' class="wide"'
        return "".join(f"<{tag}{kind}>{entry}</{tag}>" for kind, entry in zip(kinds, entries, strict=True))

    body = "".join(
        f"<tr>{cells([entry if isinstance(entry, _Markup) else escape(str(entry)) for entry in row], 'td')}</tr>"
        for row in rows
    )
    return f'<div class="table"><table><thead><tr>{cells([escape(name) for name in head], "th")}</tr></thead><tbody>{body}</tbody></table></div>'


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def _paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _findings(audit: Mapping[str, Any]) -> str:
    """One line per check; checks that were made of every column are told once, with the columns that failed. Those of
    diversity have a table of their own.
    """
    words = {True: "holds", False: "does not hold", None: "could not be checked"}
    elsewhere = {measured["model"] for measured in audit.get("diversity", ())}
    found: dict[tuple[str, Any], list[Mapping[str, Any]]] = {}
    for finding in audit.get("findings", ()):
        if finding["name"] in elsewhere:
            continue
        found.setdefault((finding["sentence"], finding["met"]), []).append(finding)
    rows = []
    for (sentence, met), group in found.items():
        figures = f"asked {_text(group[0]['asked'])}, found {_text(group[0]['found'])}"
        if met is True and group[0]["name"] != "k":
            figures = ""
        places = [str(finding["where"]) for finding in group if finding.get("where")] if met is not True else []
        rows.append((sentence, words[met], "; ".join(part for part in (figures, ", ".join(places)) if part)))
    return _table(("What was checked in the written file", "", ""), rows)


def _list(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _diversity(report: Mapping[str, Any]) -> str:
    """What the groups tell of sensitive columns and targets: the worst group's figure of each model."""
    words = {True: "holds", False: "does not hold", None: ""}
    rows = [
        (
            line["column"],
            line["model"],
            line["sentence"].removeprefix(f"{line['column']}: "),
            words[line["met"]],
        )
        for line in report["diversity"]
    ]
    return _table(("Column", "Model", "The worst group of the written file", ""), rows)


def _selections(found: Mapping[str, Any]) -> str:
    """How well selections are answered, by number."""
    unit = found["multiples_of"]
    note = (
        "A recipient who asks for the rows of a selection gets all rows of every group that may hold such a row. "
        "Imprecision counts the rows that were not asked for, precision is the share of those that were. Both are told "
        f"only where enough persons are asked for and left out, and in multiples of {unit:,} (rounded down)."
    )
    hidden = "not told"
    rows = [
        (
            line["number"],
            hidden if line["imprecision"] is None else _text(line["imprecision"]),
            hidden if line["precision"] is None else f"{line['precision']:.0%}",
            "" if line["recall"] is None else f"{line['recall']:.0%}",
        )
        for line in found["answers"]
    ]
    if not rows:
        return _paragraph(
            f"{_text(found['asked'])} asked for; how well they are answered was not measured, or cannot be told."
        )
    return _paragraph(note, "soft") + _table(("Selection", "Imprecision", "Precision", "Recall"), rows, (1, 2, 3))


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
                _Markup(f'<span class="bar" style="width:{width:.1f}%"></span>'),
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


def _verdict(report: Mapping[str, Any]) -> str:
    asked = report["asked"]
    if not report["audit"]["passed"]:
        return "The written file does not hold what was asked."
    guarded = list(dict.fromkeys(demand["column"] for demand in asked["diversity"]))
    more = f" Every group holds what was asked of {', '.join(guarded)}." if guarded else ""
    return (
        f"The written file is {asked['k']}-anonymous: every combination of quasi-identifiers in it is shared by at least "
        f"{asked['k']} persons.{more}"
    )


def report_page(report: Mapping[str, Any]) -> str:
    """The page of a public report."""
    audit, rows = report["audit"], report["rows"]
    told = f"{_text(rows['released'])} rows released, {_text(rows['withheld'])} withheld, {_text(rows['dropped'])} left out for missing values."
    body = [
        "<header><h1>Anonymized release</h1>",
        _paragraph(
            "What was asked, what an independent audit of the written file found, and what is not covered.",
            "soft",
        ),
        f'<p class="verdict {"good" if audit["passed"] else "bad"}">{escape(_verdict(report))}</p></header>',
        _section("What was asked", _list(report["asked"]["sentences"])),
        _section("Evidence", _paragraph(told), _findings(audit)),
        _section("Sensitive columns and targets", _diversity(report)) if report["diversity"] else "",
        _section("The assumed attacker", _paragraph(report["attacker"])),
        _section("Not covered", _list(report["not_covered"])),
        _section("Columns", _columns(report)),
        _section("Selections", _selections(report["selections"])) if report["selections"] else "",
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
