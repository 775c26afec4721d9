# SPDX-License-Identifier: Apache-2.0
"""The report in a release folder against what was recounted. Its figures on the file are those of an audit and can be
told anew; of the others, which are of raw rows, only what is claimed can be: no text may name another k."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anonfit.auditing.folder import Folder
from anonfit.auditing.promises import Promise
from anonfit.auditing.result import UNKNOWN_PERSONS, Audit, Finding
from anonfit.auditing.risk import THRESHOLDS
from anonfit.auditing.settings import object_of, text_of

__all__ = ["Page", "check_report"]

Page = Callable[[Mapping[str, Any]], str]
"""Makes the page of a report; who audits brings it, since the audit shares no code with what writes reports."""

_SECTIONS = (
    *("format", "version", "asked", "attacker", "not_covered", "rows", "columns", "diversity", "selections", "attack"),
    *("group_sizes", "detail", "partition", "predictions", "initial_risk", "comparison", "curve", "columns_lost"),
    *("clusters", "queries", "rules", "audit", "board", "engine", "verdict", "formulas"),
)
_OF_PERSONS = ("k", "persons", "counted", "sizes", "sets", "prosecutor", "marketer")
_OF_ROWS = ("rows", "quasi_identifiers", "suppressed_rows")
_MODEL = ("column", "model", "found", "asked", "met")
_K = re.compile(r"\bk\s*(?:=|&#61;|is|of)\s*([0-9][0-9,]*)")
_FIELDS = {"name", "asked", "found", "met", "sentence", "where", "persons", "asked_persons"}
_REST = ("withheld rows", "dropped rows")  # of these the folder may tell more than the report


def check_report(folder: Folder, promise: Promise, audit: Audit, page: Page | None) -> list[Finding]:
    """report.json tells what was recounted, the manifest the same findings, and report.html nothing else."""
    report = _read(folder.path / "report.json")
    if report is None or set(report) - set(_SECTIONS) or not isinstance(report.get("audit"), Mapping):
        bad = "The report is not one of anonfit, or has sections that are none."
        return [Finding("report", "as recounted", "another", met=False, sentence=bad)]
    found = [
        _of_figures(report, promise, audit),
        _of_demands(folder, report, promise),
        _of_findings(folder, report, audit),
    ]
    return [*found, _of_page(folder, report, promise, page)]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = object_of(text_of(path))
    except (OSError, ValueError):
        return None
    return found if (found.get("format"), found.get("version")) == ("anonfit report", 1) else None


def _finding(name: str, same: bool, good: str, bad: str) -> Finding:
    return Finding(name, "as recounted", "as recounted" if same else "another", same, good if same else bad)


def _of_figures(report: Mapping[str, Any], promise: Promise, audit: Audit) -> Finding:
    """The figures of the report's audit are those of this one, as far as both have counted the same."""
    told, mine = report["audit"], audit.public(promise.least)
    names = _OF_ROWS if audit.counted == UNKNOWN_PERSONS else (*_OF_ROWS, *_OF_PERSONS, "raw_columns", "diversity")
    same = told.get("passed") is True and all(
        _alike(_comparable(name, told.get(name)), _comparable(name, mine[name])) for name in names
    )
    return _finding(
        "report figures",
        same,
        "The report tells the figures of the file.",
        "The report tells other figures of the file than were counted.",
    )


def _comparable(name: str, figures: Any) -> Any:
    """What two audits of one file must have in common, whichever thresholds they were given."""
    if name == "diversity" and isinstance(figures, list):
        return sorted(([one.get(key) for key in _MODEL] for one in figures if isinstance(one, Mapping)), key=repr)
    if name == "prosecutor" and isinstance(figures, Mapping):
        return [figures.get("highest"), figures.get("average")]
    return figures


def _alike(one: Any, other: Any) -> bool:
    """Whether two values of JSON are the same, but for the last digits of numbers that are not whole."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return set(one) == set(other) and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


def _of_demands(folder: Folder, report: Mapping[str, Any], promise: Promise) -> Finding:
    """What the report says was asked is what the manifest claims, in figures and in every sentence."""
    asked, rows, stated = _object(report.get("asked")), _object(report.get("rows")), folder.manifest["rows"]
    told = {
        "k": asked.get("k"),
        "max_confidence": asked.get("max_confidence"),
        "attack_limit": asked.get("attack_limit", 1.0),
        "columns": _list(asked.get("quasi_identifiers")),
        "sets": [[one.get("columns"), one.get("k")] for one in _objects(asked.get("several_quasi_identifiers"))],
        "models": [[one.get("column"), one.get("model")] for one in _objects(asked.get("diversity"))],
        "rows": [rows.get(name, 0) for name in ("released", "withheld", "dropped")],
    }
    claimed = {
        "k": promise.k,
        "max_confidence": promise.max_confidence,
        "attack_limit": promise.attack_limit,
        "columns": list(promise.having("quasi-identifier")),
        "sets": [[list(one.columns), one.k] for one in promise.sets],
        "models": [[one.column, one.model] for one in promise.diversity],
        "rows": [stated.get(name, 0) for name in ("released", "withheld", "dropped")],
    }
    return _finding(
        "report demands",
        _alike(told, claimed) and _names_no_other_k(_texts(report), report, promise),
        "The report names the demands and rows of the manifest.",
        "The report names other demands or rows than the manifest.",
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in _list(value) if isinstance(one, Mapping)]


def _texts(value: Any) -> Iterator[str]:
    """All texts of a value of JSON."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)


def _names_no_other_k(texts: Iterator[str] | Sequence[str], report: Mapping[str, Any], promise: Promise) -> bool:
    """Whether every k that is named is claimed, or is one of a curve over several."""
    known = {promise.k, *(demand.k for demand in promise.sets)}
    points = [one.get("k") for one in _objects(_object(report.get("curve")).get("points"))]
    named = {str(k) for k in [*known, *points] if isinstance(k, int)}
    return all(found.replace(",", "") in named for text in texts for found in _K.findall(_without_presets(text)))


def _without_presets(text: str) -> str:
    """A text without the sources of the usual thresholds, which speak of a k themselves."""
    for preset in THRESHOLDS:
        text = text.replace(preset.source, "")
    return text


def _of_findings(folder: Folder, report: Mapping[str, Any], audit: Audit) -> Finding:
    """The findings in report and manifest are the same, all met, and say what was found now."""
    told, manifest = report["audit"].get("findings"), folder.manifest.get("audit")
    mine = {(one.name, one.where): one for one in audit.findings}
    same = isinstance(told, list) and bool(told) and manifest == {"passed": True, "findings": told}
    return _finding(
        "report findings",
        same and all(_is_finding(one, mine) for one in _list(told)),
        "The report and the manifest tell the same findings, and so does this audit.",
        "The findings that the report or the manifest tell are others than those of this audit.",
    )


def _is_finding(told: Any, mine: Mapping[tuple[str, str | None], Finding]) -> bool:
    """Whether a finding of a report is one of those made now, or one that this audit had not the means to make."""
    if not isinstance(told, Mapping) or set(told) - _FIELDS:
        return False
    known = mine.get((str(told.get("name")), told["where"] if isinstance(told.get("where"), str) else None))
    if known is None or known.name in _REST or known.met is None:
        return told.get("met") is True or told.get("asked") is None
    return bool(known.met) and told.get("met") is True and told.get("sentence") == known.sentence


def _of_page(folder: Folder, report: Mapping[str, Any], promise: Promise, page: Page | None) -> Finding:
    """report.html is the page of report.json, or at least names no other k than is claimed."""
    try:
        text = (folder.path / "report.html").read_text(encoding="utf-8")
    except (OSError, ValueError):
        text = "<script"
    same = "<script" not in text.lower() and _names_no_other_k([re.sub(r"<[^>]*>", "", text)], report, promise)
    good, bad = "The page is that of the report.", "The page says something else than the report."
    if page is None:
        good = "The page names no other k than is claimed; the rest of it was not compared."
        return _finding("report page", same, good, bad)
    if not same or _is_page(page, report, text):
        return _finding("report page", same, good, bad)
    if folder.manifest.get("anonfit") == version("anonfit"):
        return _finding("report page", same=False, good=good, bad=bad)
    sentence = "Of the page only the demands that it names were checked: another version of anonfit made it."
    return Finding("report page", None, None, None, sentence)


def _is_page(page: Page, report: Mapping[str, Any], text: str) -> bool:
    """Whether a page is that of a report; a report that has none is not one that was published."""
    try:
        return page(report) == text
    except Exception:  # a report of another shape than any that was ever written
        return False
