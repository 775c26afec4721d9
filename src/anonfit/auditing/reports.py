# SPDX-License-Identifier: Apache-2.0
"""The report in a release folder. Its figures on the file are those of this audit; what it says was asked is what the
manifest says; its sentences and its page are those that follow from its figures. What is left, figures of raw rows and
of utility, is named as not recounted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import polars as pl
from polars.selectors import by_name

from anonfit.auditing import folder as folders
from anonfit.auditing import report_shape
from anonfit.auditing.findings import met_by_source
from anonfit.auditing.folder import Folder, Promise
from anonfit.auditing.meanings import JsonObject, LabelMeaning
from anonfit.auditing.partitions import is_partition
from anonfit.auditing.reading import is_text_file, open_table
from anonfit.auditing.recoding import read_meanings
from anonfit.auditing.report_shape import Derived, Json, Retell, alike, as_recounted, as_retold, entries, listed_objects
from anonfit.auditing.result import DROPPED, JOINT, SUPPRESSION, UNKNOWN_PERSONS, WITHHELD, Audit, Finding
from anonfit.auditing.text_fields import FORMULA, columns_of_fields
from anonfit.errors import RecodingError

_OF_PERSONS = ("k", "persons", "counted", "sizes", "sets", "prosecutor", "marketer", "raw_columns", "diversity")
_MOST_BINS = 15
"""Of group sizes; of sizes that were rounded down there may be one of 0 before fourteen others."""
_OF_ROWS = ("rows", "quasi_identifiers", "suppressed_rows", "journalist", "joint", "sorted")


@dataclass(frozen=True)
class CheckedReport:
    """A report, and what it is held against."""

    folder: Folder
    promise: Promise
    audit: Audit
    report: Json
    meanings: Mapping[str, LabelMeaning]

    @cached_property
    def mine(self) -> dict[str, Any]:
        """The figures of this audit as a report has them."""
        return self.audit.public(self.promise.least)

    @property
    def knows_persons(self) -> bool:
        """Whether persons were counted, not rows in place of them."""
        return self.audit.counted != UNKNOWN_PERSONS

    @property
    def several_rows(self) -> bool:
        """Whether a person may have several rows."""
        return self.promise.only("entity") is not None


def _of_figures(checked: CheckedReport) -> Finding:
    """The figures of the report are those of this audit, as far as both counted the same."""
    stated, mine = checked.report["audit"], checked.mine
    names = (*_OF_ROWS, *_OF_PERSONS, "notes") if checked.knows_persons else _OF_ROWS
    same = stated.get("passed") is True and not set(stated) - set(mine)
    same = same and all(alike(_in_order(name, stated.get(name)), _in_order(name, mine[name])) for name in names)
    same = same and _same_groups(checked) and _same_columns(checked) and _same_source(stated, mine)
    same = same and checked.report.get("formulas", []) == _formulas(checked.folder)
    good = "The report tells the figures of the file."
    return as_recounted("report figures", same, good, "The report tells other figures of the file than were counted.")


def _in_order(name: str, figures: Any) -> Any:
    """Models in an order that does not go by that of the columns."""
    return sorted(figures, key=repr) if name == "diversity" and isinstance(figures, list) else figures


def _same_groups(checked: CheckedReport) -> bool:
    """The bins of `group_sizes` rise, have the groups and persons that they say, and leave none out. Of persons who may
    have several rows numbers are multiples of k, rounded down; and several regions may have the same representatives.
    """
    bins = checked.report.get("group_sizes")
    of_bin = dict.fromkeys(("low", "high", "groups", "persons"), int)
    if not isinstance(bins, list) or len(listed_objects(bins)) < len(bins):
        return False
    if any({name: type(value) for name, value in line.items()} != of_bin for line in bins):
        return False
    ends = [-1, *(line[end] for line in bins for end in ("low", "high"))]
    rising = all(before < after for before, after in zip(ends[::2], ends[1::2], strict=False))
    rising = rising and all(line["low"] <= line["high"] and line["groups"] > 0 for line in bins)
    if len(bins) > _MOST_BINS or not rising:
        return False
    if not checked.knows_persons:
        return True
    step = checked.promise.least if checked.several_rows else 1
    sizes: Counter[int] = Counter()
    for size, groups in checked.audit.sizes.of_size.items():
        sizes[size // step * step] += groups
    if checked.promise.values == "representative":
        persons = sum(size * groups for size, groups in sizes.items())
        fit = all(line["low"] <= line["persons"] // line["groups"] <= line["high"] for line in bins)
        return (
            fit and ends[-1] <= checked.audit.persons and (step > 1 or sum(line["persons"] for line in bins) == persons)
        )
    of_bins = [[size for size in sizes if line["low"] <= size <= line["high"]] for line in bins]
    groups_of = [sum(sizes[size] for size in inside) for inside in of_bins]
    persons_of = [sum(size * sizes[size] for size in inside) for inside in of_bins]
    stated = [line["groups"] for line in bins], [line["persons"] for line in bins]
    largest = max(sizes, default=0)
    return sum(groups_of) == sizes.total() and (groups_of, persons_of) == stated and ends[-1] <= largest


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
    label = line.get("frequent_label")
    is_held = not isinstance(label, (list, Mapping)) and label in held.labels
    return checked.several_rows or (is_held and line.get("frequent_persons") == held.persons)


def _formulas(folder: Folder) -> list[str]:
    """The columns of a CSV file that a spreadsheet may take for formulas: by their name or by a text."""
    if not is_text_file(folder.table):
        return []
    table = open_table(folder.table, missing=(), lazily=True)
    suspects = [name for name in _begun_as_formulas(folder, table.names) if name in folder.texts]
    texts = [_has_formula(by_name(name).as_expr()).alias(name) for name in suspects]
    in_column = table.lazy.select(texts).collect(engine="streaming").row(0, named=True) if texts else {}
    return [name for name in table.names if in_column.get(name) or pl.select(_has_formula(pl.lit(name))).item()]


def _begun_as_formulas(folder: Folder, columns: Sequence[str]) -> Sequence[str]:
    """The columns in which some field may begin as formulas do: all of them where that takes reading them."""
    with folder.data.open("rb") as file:
        header = file.readline()
    found = columns_of_fields(folder.data, len(header), folder.form.delimiter, len(columns))
    return columns if found is None else [name for name, what in zip(columns, found, strict=True) if what & FORMULA]


def _has_formula(texts: pl.Expr) -> pl.Expr:
    """Whether some text begins as formulas do and is no number."""
    begun, number = r"^[=+\-@\t\r]", r"^[+-]\s?[\d.,]*(?:[eE][+-]?\d+)?\s?%?$"
    return (texts.str.contains(begun) & ~texts.str.contains(number)).any()


def _same_source(stated: Json, mine: Json) -> bool:
    """Labels are as good as they were found to be now, and so is the comparison with the source; without the source at
    hand, it must have found nothing wrong. Observed labels were held against no regions.
    """
    labels = [{**entries(figures.get("labels")), "no_region": None} for figures in (stated, mine)]
    strangers = entries(stated.get("labels")).get("no_region")
    counted_here = strangers is None or (type(strangers) is int and strangers == 0)
    if not alike(*labels) or not counted_here or stated.get("_rounded") is not None:
        return False
    source, counted = stated.get("source"), mine["source"]
    if counted is not None or source is None:
        return source is None or alike(_in_any_order(source), _in_any_order(counted))
    none = {"persons": 0, "share": 0.0}
    perfect = {"by_labels": True, "not_in_source": [], "unmatched": none, "absent_inside": none, "in_several": none}
    named, compared = {column["name"] for column in mine["raw_columns"]}, _in_any_order(source)["compared"]
    same = alike({**_in_any_order(source), "compared": []}, {**perfect, "compared": []})
    return same and named >= set(compared) and len(set(compared)) == len(compared)


def _in_any_order(source: Any) -> dict[str, Any]:
    """What was compared with the source, in an order that does not go by that of the columns."""
    compared = entries(source).get("compared")
    return {**entries(source), "compared": sorted(map(str, compared if isinstance(compared, list) else [compared]))}


_SECTIONS = (
    *("format", "version", "asked", "attacker", "not_covered", "rows", "columns", "formulas", "diversity"),
    *("group_sizes", "audit", "board", "engine", "verdict", *report_shape.NOT_RECOUNTED),
)
_FIELDS = ("name", "asked", "found", "met", "sentence", "where", "persons", "asked_persons")
_OF_FOLDER = (
    *("files", "other files", "layout", "file content", "stated columns", "stated rows", "quasi-identifiers"),
    *("consent", "entities", "attack_limit", SUPPRESSION, DROPPED, JOINT),
    *("prosecutor risk", "journalist risk", "marketer risk"),
)
"""Findings of who audits a folder, or asks something of it, that its report need not have."""


def check_report(folder: Folder, promise: Promise, audit: Audit, retell: Retell | None) -> list[Finding]:
    """report.json tells what was recounted, the manifest the same findings, and report.html nothing else."""
    report = report_shape.read_report(folder.path / "report.json", "anonfit report")
    if report is None or set(report) - set(_SECTIONS) or not isinstance(report.get("audit"), Mapping):
        bad = "The report is not one of anonfit, or has sections that are none."
        return [Finding("report", "as recounted", "another", met=False, sentence=bad)]
    checked = CheckedReport(folder, promise, audit, report, _meanings(folder, promise))
    findings = [_of_figures(checked), _of_demands(checked), _of_findings(checked), _of_shape(checked)]
    if promise.attack_limit < 1:
        findings.append(_of_attack(checked))
    return [*findings, *_of_texts(checked, retell)]


def _meanings(folder: Folder, promise: Promise) -> dict[str, LabelMeaning]:
    """What labels mean."""
    return read_meanings(JsonObject(folder.recoding, "the recoding", RecodingError), promise.date_formats)


def check_published(folder: Path, audit: Audit, retell: Retell) -> tuple[Finding, ...]:
    """What the audit of a folder finds beside an audit of its data, which was made already, with the source."""
    opened = folders.open_folder(folder)
    promise = folders.read_promise(opened.spec)
    for stated in (opened.withheld, opened.dropped):
        folders.stated_rows(stated, promise)
    return (
        *folders.as_stated(
            lambda: audit.rows, open_table(opened.table).names, columns=opened.columns, released=opened.released
        ),
        folders.suppression_finding(opened, promise),
        *folders.promised_findings(promise, _meanings(opened, promise)),
        *check_report(opened, promise, audit, retell),
    )


def not_recounted(folder: Folder) -> tuple[str, ...]:
    """The sections of the report whose figures are not recounted, or not all of them."""
    report = report_shape.read_report(folder.path / "report.json", "anonfit report") or {}
    return tuple(name for name in report_shape.NOT_RECOUNTED if report.get(name))


def _of_demands(checked: CheckedReport) -> Finding:
    """What the report says was asked, and of which rows, is what the manifest claims."""
    asked, rows = entries(checked.report.get("asked")), entries(checked.report.get("rows"))
    numbers = ("released", "withheld", "dropped")
    promise, manifest = checked.promise, checked.folder.manifest
    sets = listed_objects(asked.get("several_quasi_identifiers"))
    counts = [manifest["rows"].get(name, 0) for name in numbers]
    exact = all(isinstance(count, int) for count in counts)
    stated_and_claimed = [
        (asked.get("k"), promise.k),
        (asked.get("max_confidence"), promise.max_confidence),
        (asked.get("attack_limit", 1.0), promise.attack_limit),
        (asked.get("quasi_identifiers"), promise.having("quasi-identifier")),
        ([[entry.get("columns"), entry.get("k")] for entry in sets], [[part.columns, part.k] for part in promise.sets]),
        (_models(asked), _models(checked.folder.spec.get("privacy", {}))),
        ([rows.get(name, 0) for name in numbers], counts),
        (rows.get("read"), sum(counts) if exact else f"{counts[0]} or slightly more"),
        (asked.get("algorithm"), manifest.get("algorithm")),
        (entries(checked.report.get("engine")).get("name"), manifest.get("engine")),
    ]
    same = not set(rows) - {*numbers, "read"}
    same = same and all(alike(stated, claimed) for stated, claimed in stated_and_claimed)
    good = "The report names the demands and rows of the manifest."
    return as_recounted("report demands", same, good, "The report names other demands or rows than the manifest.")


def _models(asked: Json) -> list[Json]:
    """The demands of models with their parameters; taxonomies and orders of columns stand in the manifest alone."""
    demands = listed_objects(asked.get("diversity"))
    return [{name: demand[name] for name in demand if name not in ("taxonomy", "order")} for demand in demands]


def _of_findings(checked: CheckedReport) -> Finding:
    """Report and manifest have the same findings, all met: those made here, or that need a source not at hand."""
    findings, manifest = checked.report["audit"].get("findings"), checked.folder.manifest.get("audit")
    stated, mine = _numbered(findings), _numbered(checked.mine["findings"])
    by_source = {finding.name: finding for finding in met_by_source()} if checked.mine["source"] is None else {}
    others = (*_OF_FOLDER, *(("regions",) if checked.promise.regions == "observed" else ()))
    missing = [key for key, finding in mine.items() if key not in stated and finding["met"] and key[0] not in others]
    same = isinstance(findings, list) and manifest == {"passed": True, "findings": findings} and not missing
    same = same and len(stated) == len(findings)
    same = same and all(_agrees(finding, mine.get(key), by_source) for key, finding in stated.items())
    good = "The report and the manifest tell the same findings, and so does this audit."
    bad = "The findings that the report or the manifest tell are others than those of this audit."
    return as_recounted("report findings", same, good, bad)


def _numbered(findings: Any) -> dict[tuple[str, Any, int], Json]:
    """Findings by name, place and number: a model may be demanded of a column twice, with other parameters."""
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
    if stated.get("persons") is not None or stated.get("asked_persons") is not None:  # they are hidden
        return False
    if known is not None and (known["met"] is not None or stated.get("met") is None):
        loosely, found = known["name"] in (SUPPRESSION, WITHHELD, DROPPED), stated.get("found")
        names = [name for name in _FIELDS if name != "found" or not loosely]
        is_figure = not loosely or found in ("as stated", known["found"]) or type(found) is float
        return is_figure and all(alike(stated.get(name), known[name]) for name in names)
    if known is not None:  # persons were counted as rows, so what was found is not known
        return alike(stated.get("asked"), known["asked"])
    perfect = by_source.get(str(stated.get("name")))
    if perfect is None or stated.get("where") is not None:
        return False
    both = ("as stated", "as stated") if perfect.name in (WITHHELD, DROPPED) else (perfect.asked, perfect.found)
    same = (stated.get("asked"), stated.get("found"), stated.get("sentence")) == (*both, perfect.sentence)
    return same and stated.get("met") is True


def _of_shape(checked: CheckedReport) -> Finding:
    """Where nothing can be recounted there are figures, and nothing else."""

    @lru_cache
    def values(name: str) -> frozenset[str]:
        is_raw = checked.promise.roles.get(name) in folders.RAW_ROLES
        held = open_table(checked.folder.table).frame([name])[name].unique().to_list() if is_raw else []
        return frozenset(map(report_shape.spelled, held))

    asked = entries(checked.folder.spec.get("workload")).get("selections", 0)
    known = report_shape.KnownTexts(
        frozenset(checked.promise.roles), checked.meanings, values, checked.promise.least, asked
    )
    guessed = listed_objects(entries(checked.report.get("attack")).get("inference"))
    secrets = {*checked.promise.having("sensitive", "target")}
    same = report_shape.has_shape(checked.report, known) and {line.get("column") for line in guessed} == secrets
    same = same and _is_picture(checked)
    good = "What cannot be recounted of the report is figures only."
    return as_recounted("report content", same, good, "The report holds texts or entries that no report has.")


def _is_picture(checked: CheckedReport) -> bool:
    """The picture of two columns, if there is one, is that of the recoding and of the groups, as far as these are
    known: rows in place of persons are not those that it tells of.
    """
    picture, promise = checked.report.get("partition"), checked.promise
    if picture is None or not checked.knows_persons:
        return True
    least = promise.least if checked.several_rows else None
    shared = promise.values == "representative"
    return is_partition(picture, checked.meanings, checked.audit, multiples_of=least, shared=shared)


def _of_attack(checked: CheckedReport) -> Finding:
    """By the report's own figures, a model is sure of no larger share of persons than the release claims. Of few, or of
    all but few, the share is as small as it may be; nothing told of a sensitive column is nothing checked.
    """
    attack, promise, several = entries(checked.report.get("attack")), checked.promise, checked.several_rows
    told = {str(line.get("column")): line.get("learned") for line in listed_objects(attack.get("inference"))}
    persons, few = attack.get("persons"), promise.least
    known = isinstance(persons, int) and 0 < persons <= checked.audit.persons
    sought = int(persons if known and persons else 1) + (few - 1 if several else 0)  # these are rounded down
    least_of = {f"fewer than {few}": 1 / sought, f"all but fewer than {few}": (sought - few + 1) / sought}
    sure = [entries(told.get(name)).get("sure") for name in promise.having("sensitive")]
    shares: list[Any] = [least_of.get(share) if isinstance(share, str) else share for share in sure]
    limit = promise.attack_limit + (0.005 if several else 0.00005)  # shares are rounded
    met = known and all(type(share) in (int, float) and 0 <= share <= limit for share in shares)
    good = "A model tells of no more persons, as the report has it, than is claimed."
    bad = "By the report's own figures a model tells of more persons than is claimed, or it has no such figures."
    return as_recounted("report attack", met, good, bad)


def _of_texts(checked: CheckedReport, retell: Retell | None) -> list[Finding]:
    """All that follows from figures, manifest and recoding is what they give, and the page is that of the report."""
    folder = checked.folder
    derived: dict[str, Derived] = {
        "report texts": (
            (),
            "The sentences of the report follow from its figures and the manifest.",
            "The report says something else than follows from its figures and the manifest.",
        ),
        "report page": (
            ("report.html",),
            "The page is that of the report.",
            "The page says something else than the report.",
        ),
        "report notes": (
            [name for name in folder.needed if name in folders.NOTES],
            "README.txt and codebook.csv follow from the manifest, the recoding and the report.",
            "README.txt or codebook.csv say something else than the manifest, the recoding and the report.",
        ),
    }
    if not derived["report notes"][0]:
        del derived["report notes"]
    made = (folder.path, folder.manifest, checked.report)
    return as_retold(*made, retell, derived, code="tells a report anew", what="the report")
