# SPDX-License-Identifier: Apache-2.0
"""Holds what was measured against what was asked, the risk of three attackers (prosecutor, journalist and marketer)
among it. Sentences hold no figures, so that they can be published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from anonfit.auditing import result
from anonfit.auditing.boxes import LabelBoxes
from anonfit.auditing.coding import IntArray, group_rows
from anonfit.auditing.counting import share_of
from anonfit.auditing.models import PERSONS_UNKNOWN
from anonfit.auditing.reading import AuditedTable, open_table, require_columns
from anonfit.auditing.released import Released
from anonfit.auditing.request import Attacker, Request, Threshold
from anonfit.auditing.result import DROPPED, JOINT, SUPPRESSION, WITHHELD, Audit, CountedFigure, Finding, Share
from anonfit.auditing.source import locate_source

_SENTENCES = {
    "undeclared columns": ("The file holds no undeclared column.", "The file holds undeclared columns."),
    "missing columns": ("The file holds every declared column.", "The file lacks declared columns."),
    "column order": ("Columns are in the declared order.", "Columns are not in the declared order."),
    "labels": ("Every label can be read.", "Some labels break the grammar of labels or name unknown values."),
    "label ends": (
        "Every label is made of the recoding's cuts.",
        "Some labels have ends that are no cut of the recoding.",
    ),
    "disjoint groups": ("No two groups overlap.", "Some groups have labels that overlap."),
    "regions": (
        "Every group is a region of the recoding.",
        "Some groups are no region of the recoding: their labels tell of records, or are not of this recoding.",
    ),
    "released rows": (
        "Every released row is a row of the source inside its label.",
        "Some released rows are no rows of the source inside their label: moved, changed, added or doubled.",
    ),
    "one group per row": (
        "No source row is in two groups.",
        "Some source rows are inside the labels of several groups.",
    ),
    WITHHELD: (
        "Source rows are released or withheld.",
        "The source rows that are not released are not those withheld.",
    ),
    DROPPED: ("Rows were left out for missing values.", "Other rows lack a value than were left out for one."),
    SUPPRESSION: ("No more rows are withheld than may be.", "More rows are withheld than may be."),
    "whole groups": (
        "Every group holds all source rows inside its labels.",
        "Some source rows inside the labels of a released group are not in it.",
    ),
    "withheld groups": (
        "Every group that was withheld misses a demand.",
        "Some source rows were withheld though their groups meet all demands.",
    ),
    "observed labels": (
        "Every label is what the records have.",
        "Some labels are not what the records of their group have.",
    ),
    JOINT: (
        "Both releases together leave every person among enough others.",
        "Both releases together leave some persons among too few others.",
    ),
    "row order": (
        "Rows are in the order of their values.",
        "Rows are not in the order of their values, which may tell more.",
    ),
}
"""What is said of a demand that is met, and of one that is not."""


def all_findings(audit: Audit, request: Request, *, names: Sequence[str]) -> list[Finding]:
    """Every demand of the request against the figures of the audit; `names` are the columns of the file."""
    findings = list(request.findings)
    if not audit.rows:
        sentence = "The table has no rows: it protects nobody, and what was asked cannot be checked."
        findings.append(Finding("rows", None, 0, met=False, sentence=sentence))
    if request.expected_columns is not None:
        findings += _columns(names, request.expected_columns)
    lost = request.entities_lost or (request.entity is not None and audit.counted != "entities")
    if request.k is not None and not request.sets:
        findings.append(k_finding(audit.sizes, request.k, lost=lost))
    findings += [
        k_finding(measured.sizes, measured.k, lost=lost, where=", ".join(measured.columns))
        for measured in audit.sets
        if measured.k is not None
    ]
    findings += [_diversity(measured) for measured in audit.diversity if measured.asked is not None]
    if lost and not request.entities_lost:
        sentence = "Persons were counted as rows: which rows of the source are in the file cannot be told."
        findings.append(Finding("entities", request.entity, None, None, sentence))
    if request.max_risk is not None and audit.rows:
        findings.append(_risk(audit, request.max_risk, request.attacker, lost=lost))
    if audit.labels is not None:
        findings += _labels(audit.labels, request)
    elif request.regions != "any":
        sentence = "Labels were not checked: nothing was said about the meaning of the columns."
        findings.append(Finding("labels", 0, None, None, sentence))
    if audit.source is not None:
        findings += _source(audit.source, request)
    if audit.joint is not None and audit.joint.cells_below_k is not None:
        findings.append(_joint(audit.joint, audit.joint.cells_below_k))
    if audit.sorted is not None:
        order = "sorted" if audit.sorted else "not sorted"
        findings.append(_finding("row order", "sorted", order, met=audit.sorted))
    return findings


def _finding(name: str, asked: Any, found: Any, *, met: bool, **more: Any) -> Finding:
    """A demand that could be checked."""
    return Finding(name, asked, found, met, _SENTENCES[name][0 if met else 1], **more)


def _none(name: str, number: int, **more: Any) -> Finding:
    """A demand that there are no such groups, labels, rows or persons."""
    return _finding(name, 0, number, met=not number, **more)


def _columns(names: Sequence[str], expected: Sequence[str]) -> list[Finding]:
    """The file has the expected columns, no others, in their order."""
    held, declared = frozenset(names), frozenset(expected)  # a file may have very many columns
    undeclared = [name for name in names if name not in declared]
    lacking = [name for name in expected if name not in held]
    ordered = [name for name in names if name in declared] == [name for name in expected if name in held]
    return [
        _finding("undeclared columns", [], undeclared, met=not undeclared),
        _finding("missing columns", [], lacking, met=not lacking),
        _finding("column order", "as declared", "as declared" if ordered else "another", met=ordered),
    ]


def k_finding(sizes: result.GroupSizes, k: int, *, lost: bool, where: str | None = None) -> Finding:
    """Every group holds at least k persons. Of lost persons, too few rows are too few; enough rows say nothing."""
    met = None if sizes.smallest is None else sizes.smallest >= k
    sentence = "Every group holds the persons asked for." if met else "Some groups hold fewer persons than asked for."
    if met is None:
        sentence = "Not checked: there are no rows."
    elif met and lost:
        met, sentence = None, PERSONS_UNKNOWN
    return Finding("k", k, sizes.smallest, met, sentence, where, persons=sizes.smallest)


def _diversity(measured: result.Diversity) -> Finding:
    """A diversity model holds in every group."""
    value, persons = (None, None) if measured.found is None else (measured.found.value, measured.found.persons)
    within = measured.settings.get("quasi_identifier")
    where = measured.column if within is None else f"{measured.column} in groups of {', '.join(within)}"
    return Finding(measured.model, measured.asked, value, measured.met, measured.sentence, where, persons=persons)


def _risk(audit: Audit, asked: Threshold, attacker: Attacker, *, lost: bool) -> Finding:
    """The risk of the named attacker stays within the asked threshold; where persons were lost it may be higher."""
    figure = audit.marketer
    if attacker != "marketer":
        known = audit.journalist if attacker == "journalist" else audit.prosecutor
        assert known is not None
        figure = known.highest
    met: bool | None = figure.value <= max(asked.value, 1 / asked.size)  # presets are rounded: 0.09 stands for 1/11
    sentence = "The risk is within the threshold." if met else "The risk is above the threshold."
    if lost and (met or attacker == "marketer"):
        met, sentence = None, PERSONS_UNKNOWN
    return Finding(f"{attacker} risk", asked.value, figure.value, met, sentence, persons=figure.persons)


def _labels(labels: result.LabelCheck, request: Request) -> list[Finding]:
    """Labels can be read and, for regions, are made of the recoding's cuts, do not overlap and are its regions."""
    findings = [_none("labels", number, where=column) for column, number in labels.unreadable.items()]
    asked = []
    if request.regions != "any":
        findings += [_none("label ends", number, where=column) for column, number in labels.not_allowed.items()]
        asked.append(("disjoint groups", labels.overlapping, "groups overlap"))
    if request.tree is not None:
        asked.append(("regions", labels.no_region, "groups are regions"))
    for name, number, words in asked:
        sentence = f"Whether {words} cannot be told: some quasi-identifiers have no labels that are understood."
        findings.append(Finding(name, 0, None, None, sentence) if number is None else _none(name, number))
    return findings


def _source(check: result.SourceCheck, request: Request) -> list[Finding]:
    """Released rows are the source's rows, each in the one label that holds it, and the rest is accounted for."""
    counts = {"released rows": check.unmatched.persons, "one group per row": check.in_several.persons}
    findings = [_none(name, rows, persons=rows) for name, rows in counts.items()]
    if not check.by_labels:
        sentence = "Labels were not compared with the source: some quasi-identifiers have none that are understood."
        findings.append(Finding("labels against source", None, None, None, sentence))
    if check.not_in_source:
        sentence = "Some released columns are not in the source."
        findings.append(Finding("source columns", [], list(check.not_in_source), met=False, sentence=sentence))
    if request.withheld is not None:
        withheld = check.absent.persons - (0 if request.dropped is None else check.dropped)
        findings.append(_rows_absent(WITHHELD, withheld, request.withheld))
    if request.dropped is not None:
        findings.append(_rows_absent(DROPPED, check.dropped, request.dropped))
    if request.suppression_limit is not None:
        share = Share(check.absent.persons - check.dropped, check.absent.of - check.dropped)
        findings.append(suppression(share, request.suppression_limit))
    if request.regions != "any" and check.by_labels:
        counts = {"whole groups": check.absent_inside.persons, "withheld groups": check.in_vain}
        findings += [_none(name, rows, persons=rows) for name, rows in counts.items()]
    if request.regions == "observed" and check.by_labels:
        findings.append(_none("observed labels", check.not_observed))
    return findings


def _joint(joint: result.JointCells, below: CountedFigure) -> Finding:
    """Every cell of two releases holds enough persons. Too small ones are; that there are none is only known if both
    hold the source's rows.
    """
    if joint.is_known or below.value:
        return _finding(JOINT, 0, below.value, met=not below.value, persons=below.persons)
    sentence = "What both releases tell together was not counted: the rows of one are not those of the source."
    return Finding(JOINT, 0, None, None, sentence)


def met_by_source() -> list[Finding]:
    """The findings on a source of which every row is where it belongs: what a report may tell without one at hand."""
    nothing, nowhere = CountedFigure(0, 0), Share(0, 0)
    perfect = result.SourceCheck(True, (), (), nothing, nowhere, nowhere, nowhere, nowhere, 0, 0)
    return _source(perfect, Request(None, (), regions="observed", withheld=0, dropped=0))


def _rows_absent(name: str, number: int, asked: int | range) -> Finding:
    """Rows of the source that are not released are as many as stated."""
    if isinstance(asked, range):
        return _finding(name, f"fewer than {asked.stop}", number, met=number in asked, persons=number)
    return _finding(name, asked, number, met=number == asked, persons=number, asked_persons=asked)


def suppression(withheld: Share, limit: float) -> Finding:
    """No more rows are withheld than may be."""
    share = withheld.share
    return _finding(SUPPRESSION, limit, share, met=share <= limit, persons=withheld.persons)


def prosecutor_risk(sizes: IntArray, thresholds: Sequence[Threshold]) -> result.ProsecutorRisk:
    """1 / size of a person's group: highest, average over persons (= groups / persons), and shares above thresholds."""
    persons = int(sizes.sum())
    smallest = int(sizes.min(initial=persons)) if persons else 0
    highest = CountedFigure(1 / smallest if smallest else float(bool(len(sizes))), smallest)
    average = CountedFigure(len(sizes) / persons if persons else 0.0, persons)
    return result.ProsecutorRisk(highest, average, _above(sizes, sizes, thresholds))


def marketer_risk(sizes: IntArray, population: IntArray | None) -> CountedFigure:
    """The share of persons an attacker gets right who guesses every person within the group."""
    persons = int(sizes.sum())
    inside = sizes if population is None else np.maximum(population, sizes)
    return CountedFigure(float((sizes / np.maximum(inside, 1)).sum() / persons) if persons else 0.0, persons)


def _above(
    hidden_in: IntArray, persons: IntArray, thresholds: Sequence[Threshold]
) -> tuple[result.ThresholdShare, ...]:
    """Per threshold, the persons who hide among too few."""
    return tuple(
        result.ThresholdShare(
            limit.name, limit.value, limit.size, limit.source, share_of(persons, hidden_in < limit.size)
        )
        for limit in thresholds
    )


def population_sizes(released: Released, population: AuditedTable, *, boxes: LabelBoxes | None) -> tuple[IntArray, str]:
    """Persons of the population per group, and in words how they were found."""
    names, groups = list(released.heads.columns), released.groups
    if all(name in population.schema for name in names):
        texts = [frame.cast(pl.String).cast(pl.Categorical) for frame in (released.heads, population.frame(names))]
        together = group_rows(pl.concat(texts), groups + population.height()).of_row
        sizes: IntArray = np.bincount(together[groups:], minlength=int(together.max(initial=0)) + 1)[together[:groups]]
        if boxes is None or (sizes > 0).all():
            return sizes, "a population with the same labels"
    if boxes is None:
        require_columns(population, names, purpose="a quasi-identifier")
    assert boxes is not None
    group = locate_source(boxes, population, quasi_identifiers=list(released.columns)).group
    return np.bincount(group[group >= 0], minlength=groups), "a population of raw rows"


def journalist_figures(
    released: Released, request: Request, *, sizes: IntArray, boxes: LabelBoxes | None
) -> tuple[result.JournalistRisk | None, IntArray | None]:
    """The risk of an attacker who knows the population, and the persons of the population per group; a group is never
    larger than its population.
    """
    if request.population is None:
        return None, None
    table = open_table(request.population, missing=request.missing, label="the population")
    population, basis = population_sizes(released, table, boxes=boxes)
    inside = np.maximum(population, sizes)
    persons, matched = int(sizes.sum()), marketer_risk(sizes, population).value
    smallest = int(inside.min()) if len(inside) else 0
    risk = result.JournalistRisk(
        basis,
        CountedFigure(1 / smallest if smallest else 0.0, smallest),
        CountedFigure(max(len(sizes) / float(inside.sum()), matched) if persons else 0.0, persons),
        _above(inside, sizes, request.thresholds),
        int(np.count_nonzero(population < sizes)),
    )
    return risk, population
