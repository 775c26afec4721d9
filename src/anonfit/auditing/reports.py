# SPDX-License-Identifier: Apache-2.0
"""The report in a release folder. Its figures on the file are those of this audit; what it says was asked is what the
manifest says; its sentences and its page are those that follow from its figures. What is left, figures of raw rows and
of utility, is named as not recounted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import polars as pl
from polars.selectors import by_name

from anonfit.auditing.findings import met_by_source
from anonfit.auditing.folder import (
    NOTES,
    RAW_ROLES,
    Folder,
    Promise,
    as_stated,
    consent_findings,
    open_folder,
    read_promise,
    role_findings,
    stated_rows,
    suppression_finding,
)
from anonfit.auditing.meanings import JsonObject, LabelMeaning, object_of, text_of
from anonfit.auditing.reading import is_text_file, open_table
from anonfit.auditing.recoding import read_meanings
from anonfit.auditing.report_shape import (
    NOT_RECOUNTED,
    Json,
    KnownTexts,
    alike,
    as_recounted,
    as_retold,
    entries,
    has_shape,
    listed_objects,
    not_retold,
    spelled,
)
from anonfit.auditing.result import DROPPED, UNKNOWN_PERSONS, WITHHELD, Audit, Finding
from anonfit.errors import RecodingError

_OF_PERSONS = (
    *("k", "persons", "counted", "sizes", "sets", "prosecutor", "marketer", "raw_columns", "diversity", "notes"),
)
_OF_ROWS = ("rows", "quasi_identifiers", "suppressed_rows", "journalist", "joint", "sorted")


@dataclass(frozen=True)
class CheckedReport:
    """A report, and what it is held against."""

    folder: Folder
    promise: Promise
    audit: Audit
    report: Json

    @cached_property
    def mine(self) -> dict[str, Any]:
        """The figures of this audit as a report has them."""
        return self.audit.public(self.promise.least)

    @cached_property
    def meanings(self) -> dict[str, LabelMeaning]:
        """What labels mean."""
        recoding = JsonObject(self.folder.recoding, "the recoding", RecodingError)
        return read_meanings(recoding, self.promise.date_formats)

    @property
    def knows_persons(self) -> bool:
        """Whether persons were counted, not rows in place of them."""
        return self.audit.counted != UNKNOWN_PERSONS


def _of_figures(checked: CheckedReport) -> Finding:
    """The figures of the report's audit, of its groups and columns are those of this audit, as far as both counted the
    same.
    """
    stated, mine = checked.report["audit"], checked.mine
    names = (*_OF_ROWS, *_OF_PERSONS) if checked.knows_persons else _OF_ROWS
    same = stated.get("passed") is True and not set(stated) - set(mine)
    same = same and all(alike(_in_order(name, stated.get(name)), _in_order(name, mine[name])) for name in names)
    same = same and _same_groups(checked) and _same_columns(checked) and _same_source(stated, mine)
    same = same and checked.report.get("formulas", []) == _formulas(checked.folder)
    return as_recounted(
        "report figures",
        same,
        "The report tells the figures of the file.",
        "The report tells other figures of the file than were counted.",
    )


def _in_order(name: str, figures: Any) -> Any:
    """Models in an order that does not go by that of the columns."""
    return sorted(figures, key=repr) if name == "diversity" and isinstance(figures, list) else figures


def _same_groups(checked: CheckedReport) -> bool:
    """The bins of `group_sizes` have the groups and persons that they say, and leave none out. Of persons who may have
    several rows numbers are multiples of k, rounded down; and several regions may have the same representatives.
    """
    bins = checked.report.get("group_sizes")
    of_bin = dict.fromkeys(("low", "high", "groups", "persons"), int)
    if not isinstance(bins, list) or len(listed_objects(bins)) < len(bins):
        return False
    if any({name: type(value) for name, value in line.items()} != of_bin for line in bins):
        return False
    if not checked.knows_persons:
        return True
    step = checked.promise.least if checked.promise.only("entity") is not None else 1
    sizes: Counter[int] = Counter()
    for size, groups in checked.audit.sizes.of_size.items():
        sizes[size // step * step] += groups
    if checked.promise.values == "representative":
        persons = sum(size * groups for size, groups in sizes.items())
        return step > 1 or sum(line["persons"] for line in bins) == persons
    counted = [
        (sum(sizes[size] for size in inside), sum(size * sizes[size] for size in inside))
        for inside in ([size for size in sizes if line["low"] <= size <= line["high"]] for line in bins)
    ]
    all_of_them = sum(groups for groups, _ in counted) == sum(sizes.values())
    return all_of_them and counted == [(line["groups"], line["persons"]) for line in bins]


def _same_columns(checked: CheckedReport) -> bool:
    """Every column has its role and type, and as many different labels as the file has, and so has the detail."""
    lines, frequent = listed_objects(checked.report.get("columns")), checked.audit.frequent
    roles = [
        (name, role, checked.meanings[name].type if role == "quasi-identifier" else None)
        for name, role in checked.promise.roles.items()
    ]
    if [(line.get("name"), line.get("role"), line.get("type")) for line in lines] != roles:
        return False
    known = [(name, frequent[name].different if name in frequent else None) for name, _, kind in roles if kind]
    if [(line["name"], line.get("different")) for line in lines if line.get("type")] != known:
        return False
    if checked.promise.values != "labels" or checked.promise.regions != "domain":
        return True
    return all(_same_detail(line, checked) for line in listed_objects(checked.report.get("detail")))


def _same_detail(line: Json, checked: CheckedReport) -> bool:
    """The labels of a column are as many as said, and the most frequent one is; of persons who may have several rows,
    rows were counted there, and they may not be here.
    """
    held = checked.audit.frequent.get(str(line.get("column")))
    if held is None or line.get("labels") != held.different:
        return False
    if checked.promise.only("entity") is not None:
        return True
    label = line.get("frequent_label")
    is_held = not isinstance(label, (list, Mapping)) and label in held.labels
    return is_held and line.get("frequent_persons") == held.persons


def _formulas(folder: Folder) -> list[str]:
    """The columns of a CSV file that a spreadsheet may take for formulas: by their name or by a text."""
    if not is_text_file(folder.table):
        return []
    table = open_table(folder.table, missing=(), lazily=True)
    texts = [_has_formula(by_name(name).as_expr()).alias(name) for name in table.names if name in folder.texts]
    in_column = table.lazy.select(texts).collect(engine="streaming").row(0, named=True) if texts else {}
    return [name for name in table.names if in_column.get(name) or pl.select(_has_formula(pl.lit(name))).item()]


def _has_formula(texts: pl.Expr) -> pl.Expr:
    """Whether some text begins as formulas do and is no number."""
    begun, number = r"^[=+\-@\t\r]", r"^[+-]\s?[\d.,]*(?:[eE][+-]?\d+)?\s?%?$"
    return (texts.str.contains(begun) & ~texts.str.contains(number)).any()


def _same_source(stated: Json, mine: Json) -> bool:
    """Labels are as good as they were found to be now, and so is the comparison with the source; without the source at
    hand, it must have found nothing wrong. Observed labels were held against no regions.
    """
    labels = [{**entries(figures.get("labels")), "no_region": None} for figures in (stated, mine)]
    if not alike(*labels) or stated.get("_rounded") is not None:
        return False
    source, counted = stated.get("source"), mine["source"]
    if counted is not None or source is None:
        return source is None or alike(_in_any_order(source), _in_any_order(counted))
    none = {"persons": 0, "share": 0.0}
    perfect = {"by_labels": True, "not_in_source": [], "unmatched": none, "absent_inside": none, "in_several": none}
    named = {column["name"] for column in mine["raw_columns"]}
    same = alike({**_in_any_order(source), "compared": []}, {**perfect, "compared": []})
    return same and named >= set(_in_any_order(source)["compared"])


def _in_any_order(source: Any) -> dict[str, Any]:
    """What was compared with the source, in an order that does not go by that of the columns."""
    compared = entries(source).get("compared")
    return {**entries(source), "compared": sorted(map(str, compared if isinstance(compared, list) else [compared]))}


Retell = Callable[[Path, Json, Json], tuple[Json, Mapping[str, str]]]
"""Given a folder, its manifest and its report: the report with all that follows from the rest told anew, and its pages.
Who audits lends it, since the audit shares no code with what writes reports."""

_SECTIONS = (
    *("format", "version", "asked", "attacker", "not_covered", "rows", "columns", "formulas", "diversity"),
    *("group_sizes", "audit", "board", "engine", "verdict", *NOT_RECOUNTED),
)
_FIELDS = ("name", "asked", "found", "met", "sentence", "where", "persons", "asked_persons")
_OF_FOLDER = (
    *("files", "other files", "layout", "file content", "stated columns", "stated rows", "quasi-identifiers"),
    *("consent", "entities", "attack_limit", "suppression limit", DROPPED, "joint cells"),
    *("prosecutor risk", "journalist risk", "marketer risk"),
)
"""Findings of who audits a folder, or asks something of it, that its report need not have."""


def check_report(folder: Folder, promise: Promise, audit: Audit, retell: Retell | None) -> list[Finding]:
    """report.json tells what was recounted, the manifest the same findings, and report.html nothing else."""
    report = _read(folder.path / "report.json")
    if report is None or set(report) - set(_SECTIONS) or not isinstance(report.get("audit"), Mapping):
        bad = "The report is not one of anonfit, or has sections that are none."
        return [Finding("report", "as recounted", "another", met=False, sentence=bad)]
    checked = CheckedReport(folder, promise, audit, report)
    findings = [_of_figures(checked), _of_demands(checked), _of_findings(checked), _of_shape(checked)]
    if promise.attack_limit < 1:
        findings.append(_of_attack(checked))
    return [*findings, *_of_texts(checked, retell)]


def check_published(folder: Path, audit: Audit, retell: Retell) -> tuple[Finding, ...]:
    """What the audit of a folder finds beside an audit of its data, which was made already, with the source."""
    opened = open_folder(folder)
    promise = read_promise(opened.spec)
    for stated in (opened.withheld, opened.dropped):
        stated_rows(stated, promise)
    meanings = read_meanings(JsonObject(opened.recoding, "the recoding", RecodingError), promise.date_formats)
    return (
        *as_stated(
            lambda: audit.rows, open_table(opened.table).names, columns=opened.columns, released=opened.released
        ),
        suppression_finding(opened, promise),
        *role_findings(promise, meanings),
        *consent_findings(promise),
        *check_report(opened, promise, audit, retell),
    )


def not_recounted(folder: Folder) -> tuple[str, ...]:
    """The sections of the report whose figures are not recounted, or not all of them."""
    report = _read(folder.path / "report.json") or {}
    return tuple(name for name in NOT_RECOUNTED if report.get(name))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = object_of(text_of(path))
    except (OSError, ValueError):
        return None
    return content if (content.get("format"), content.get("version")) == ("anonfit report", 1) else None


# --- what was asked -----------------------------------------------------------------------------------------------


def _of_demands(checked: CheckedReport) -> Finding:
    """What the report says was asked, and of which rows, is what the manifest claims."""
    asked, rows = entries(checked.report.get("asked")), entries(checked.report.get("rows"))
    promise, privacy = checked.promise, checked.folder.spec.get("privacy", {})
    stated = {
        "k": asked.get("k"),
        "max_confidence": asked.get("max_confidence"),
        "attack_limit": asked.get("attack_limit", 1.0),
        "columns": asked.get("quasi_identifiers"),
        "sets": [
            [entry.get("columns"), entry.get("k")] for entry in listed_objects(asked.get("several_quasi_identifiers"))
        ],
        "models": [_demand(entry) for entry in listed_objects(asked.get("diversity"))],
        "rows": [rows.get(name, 0) for name in ("released", "withheld", "dropped")],
        "read": rows.get("read"),
        "made": [asked.get("algorithm"), entries(checked.report.get("engine")).get("name")],
    }
    counts = [checked.folder.manifest["rows"].get(name, 0) for name in ("released", "withheld", "dropped")]
    exact = all(isinstance(count, int) for count in counts)
    claimed = {
        "k": promise.k,
        "max_confidence": promise.max_confidence,
        "attack_limit": promise.attack_limit,
        "columns": list(promise.having("quasi-identifier")),
        "sets": [[list(entry.columns), entry.k] for entry in promise.sets],
        "models": [_demand(entry) for entry in listed_objects(privacy.get("diversity"))],
        "rows": counts,
        "read": sum(counts) if exact else f"{counts[0]} or slightly more",
        "made": [checked.folder.manifest.get(name) for name in ("algorithm", "engine")],
    }
    return as_recounted(
        "report demands",
        alike(stated, claimed),
        "The report names the demands and rows of the manifest.",
        "The report names other demands or rows than the manifest.",
    )


def _demand(entry: Json) -> dict[str, Any]:
    """A demand with its parameters; the taxonomy or order of a column stands in the manifest alone."""
    return {name: value for name, value in entry.items() if name not in ("taxonomy", "order")}


# --- findings -----------------------------------------------------------------------------------------------------


def _of_findings(checked: CheckedReport) -> Finding:
    """The findings in report and manifest are the same, all met, and those that this audit makes; those that need the
    source may be told without it.
    """
    findings, manifest = checked.report["audit"].get("findings"), checked.folder.manifest.get("audit")
    stated, mine = _numbered(findings), _numbered(checked.mine["findings"])
    without = checked.mine["source"] is None
    by_source = {finding.name: finding for finding in met_by_source()} if without else {}
    others = (*_OF_FOLDER, *(("regions",) if checked.promise.regions == "observed" else ()))
    missing = [key for key, finding in mine.items() if key not in stated and finding["met"] and key[0] not in others]
    same = isinstance(findings, list) and manifest == {"passed": True, "findings": findings} and not missing
    return as_recounted(
        "report findings",
        same
        and len(stated) == len(findings)
        and all(_agrees(finding, mine.get(key), by_source) for key, finding in stated.items()),
        "The report and the manifest tell the same findings, and so does this audit.",
        "The findings that the report or the manifest tell are others than those of this audit.",
    )


def _numbered(findings: Any) -> dict[tuple[str, Any, int], Json]:
    """Findings by their names, places, and numbers among those of the same name and place: a model may be demanded of
    a column twice, with other parameters.
    """
    counts: Counter[tuple[str, Any]] = Counter()
    numbered = {}
    for finding in listed_objects(findings):
        key = str(finding.get("name")), str(finding.get("where"))
        numbered[*key, counts[key]] = finding
        counts[key] += 1
    return numbered


def _agrees(stated: Json, known: Json | None, by_source: Mapping[str, Finding]) -> bool:
    """Whether a finding of a report is the one made now, or one that this audit had not the means to make."""
    if set(stated) - set(_FIELDS) or stated.get("met") is False:
        return False
    if known is not None and known["met"] is not None:
        names = ("asked", "met", "sentence") if known["name"] in ("suppression limit", WITHHELD, DROPPED) else _FIELDS
        return all(alike(stated.get(name), known[name]) for name in names)
    if known is not None:  # persons were counted as rows, so what was found is not known
        return stated.get("met") is None or alike(stated.get("asked"), known["asked"])
    perfect = by_source.get(str(stated.get("name")))
    if perfect is None or stated.get("where") is not None:
        return False
    as_stated = ("as stated", "as stated") if perfect.name in (WITHHELD, DROPPED) else (perfect.asked, perfect.found)
    same = (stated.get("asked"), stated.get("found"), stated.get("sentence")) == (*as_stated, perfect.sentence)
    return same and stated.get("met") is True


# --- what is not recounted ----------------------------------------------------------------------------------------


def _of_shape(checked: CheckedReport) -> Finding:
    """Where nothing can be recounted there are figures, and nothing else."""
    raw = frozenset(name for name, role in checked.promise.roles.items() if role in RAW_ROLES)

    @lru_cache
    def values(name: str) -> frozenset[str]:
        held = open_table(checked.folder.table).frame([name])[name].unique().to_list() if name in raw else []
        return frozenset(map(spelled, held))

    asked = entries(checked.folder.spec.get("workload")).get("selections", 0)
    known = KnownTexts(frozenset(checked.promise.roles), checked.meanings, values, checked.promise.least, asked)
    return as_recounted(
        "report content",
        has_shape(checked.report, known),
        "What cannot be recounted of the report is figures only.",
        "The report holds texts or entries that no report has.",
    )


def _of_attack(checked: CheckedReport) -> Finding:
    """By the report's own figures, a model is sure of no larger share of persons than the release claims."""
    inferences = listed_objects(entries(checked.report.get("attack")).get("inference"))
    sure = {str(inference.get("column")): entries(inference.get("learned")).get("sure") for inference in inferences}
    tolerance = 0.005 if checked.promise.only("entity") else 0.00005  # shares are rounded
    limit = checked.promise.attack_limit + tolerance
    names = checked.promise.having("sensitive")
    told = [sure[name] for name in names if sure.get(name) is not None]  # as far as a share is told
    met = set(names) <= set(sure) and all(isinstance(share, int | float) and share <= limit for share in told)
    return as_recounted(
        "report attack",
        met,
        "A model tells of no more persons, as the report has it, than is claimed.",
        "By the report's own figures a model tells of more persons than is claimed.",
    )


# --- texts --------------------------------------------------------------------------------------------------------


def _of_texts(checked: CheckedReport, retell: Retell | None) -> list[Finding]:
    """All that follows from the figures, the manifest and the recoding is what they give, and the page is that of the
    report.
    """
    folder = checked.folder
    sentences = {
        "report texts": (
            "The sentences of the report follow from its figures and the manifest.",
            "The report says something else than follows from its figures and the manifest.",
        ),
        "report page": ("The page is that of the report.", "The page says something else than the report."),
    }
    notes = [name for name in NOTES if name in folder.files]
    if notes:
        sentences["report notes"] = (
            "README.txt and codebook.csv follow from the manifest, the recoding and the report.",
            "README.txt or codebook.csv say something else than the manifest, the recoding and the report.",
        )
    if retell is None:
        return not_retold(sentences, "tells a report anew")

    def compare(tell: Retell = retell) -> tuple[bool, ...]:
        report, pages = tell(folder.path, folder.manifest, checked.report)
        same = {name: text_of(folder.path / name) == pages[name] for name in ("report.html", *notes)}
        told = [all(same[name] for name in notes)] if notes else []
        return alike(dict(checked.report), dict(report)), same["report.html"], *told

    return as_retold(sentences, compare, made_by=folder.manifest.get("anonfit"), what="the report")
