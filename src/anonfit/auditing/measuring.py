# SPDX-License-Identifier: Apache-2.0
"""The audit itself: reads, groups and measures what a request asks for, then holds it against the demands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import polars as pl

from anonfit.auditing.boxes import Boxes
from anonfit.auditing.coding import Hashes, IntArray, coded_values
from anonfit.auditing.diversity import generalized_target, measure_demands
from anonfit.auditing.evidence import (
    Evidence,
    Space,
    gather_evidence,
    left_out_groups,
    locate_in_other,
    open_data,
    open_source,
    persons_in_file,
    read_space,
    source_persons,
    without_suppressed,
)
from anonfit.auditing.findings import all_findings
from anonfit.auditing.groups import Grouping, count_values, persons_in_groups, regrouped
from anonfit.auditing.joint import joint_cells
from anonfit.auditing.population import population_sizes
from anonfit.auditing.raw_columns import measure_raw_column
from anonfit.auditing.reading import Table, open_table, require_columns
from anonfit.auditing.released import Released, open_released
from anonfit.auditing.request import DiversityDemand, Request, check_request
from anonfit.auditing.result import (
    UNKNOWN_PERSONS,
    Audit,
    Diversity,
    JointCells,
    JournalistRisk,
    RawColumn,
    SetSizes,
    Share,
)
from anonfit.auditing.risk import journalist_risk, marketer_risk, prosecutor_risk
from anonfit.auditing.row_order import rows_are_sorted
from anonfit.auditing.sizes import frequent_labels, group_sizes
from anonfit.auditing.source import Located, check_source, raw_hashes
from anonfit.auditing.values import RawValues
from anonfit.auditing.withholding import withholding_of
from anonfit.errors import DataError

__all__ = [
    "diversity_within",
    "evidence_of_sets",
    "journalist_figures",
    "notes_of",
    "run_audit",
    "sensitive_demands",
    "sizes_of_sets",
]

_ROWS_SIDE_BY_SIDE = 1 << 22  # of more, what is computed side by side would need too much memory


def run_audit(request: Request) -> Audit:
    """Audit one table."""
    check_request(request)
    table = open_data(request)
    require_columns(table, request.sensitive, purpose="a sensitive column")
    require_columns(table, [request.count] if request.count else [], purpose="the count column")
    released = open_released(table, request.quasi_identifiers)
    raw = [name for name in table.names if name not in released.heads.columns]
    source = open_source(released, request, raw=raw)

    def count(located: Located | None) -> tuple[Evidence, list[RawColumn], list[Diversity]]:
        found = gather_evidence(released, request, source=source, located=located, raw=raw)
        return found, *_raw_columns(without_suppressed(found, released, request), request, released)

    # Labels are read in Python, raw columns are counted and compared in loops that leave a core to it.
    hashing: Future[tuple[Hashes, Hashes]] | None = None
    with ThreadPoolExecutor(3) as pool:
        counting = pool.submit(count, None) if persons_in_file(released, request) else None
        order = None if request.order is None else pool.submit(rows_are_sorted, released)
        if source is not None and released.rows <= _ROWS_SIDE_BY_SIDE:
            hashing = pool.submit(raw_hashes, released, source, raw)
        space = _judged(read_space(released, request, source=source), released, request, source)
        evidence, raw_columns, diversity = count(space.located) if counting is None else counting.result()
        is_sorted = None if order is None else order.result()
    compared = None
    if source is not None:
        hashes = raw_hashes(released, source, raw) if hashing is None else hashing.result()
        left_out = left_out_groups(released, request)
        compared = check_source(
            released,
            source,
            located=space.located,
            raw=raw,
            hashes=hashes,
            suppressed=left_out,
            not_observed=0 if space.seen is None else space.seen.wrong(),
            in_vain=space.in_vain,
        )
        if counting is None and (compared.unmatched.persons or compared.absent_inside.persons):
            # Persons were counted on rows of the source, and not all of these are in the file.
            evidence, raw_columns, diversity = count(None)
    journalist, population = journalist_figures(released, request, sizes=evidence.sizes, boxes=space.boxes)
    audit = Audit(
        rows=released.rows,
        persons=int(evidence.sizes.sum()) if request.entity is None else _everyone(evidence),
        counted=UNKNOWN_PERSONS if evidence.persons_unknown else evidence.persons.counted,
        quasi_identifiers=request.quasi_identifiers,
        sizes=group_sizes(evidence.sizes, request.k),
        suppressed_rows=Share(int(np.count_nonzero(released.suppressed[released.grouping.of_row])), released.rows),
        sets=sizes_of_sets(released, request, evidence=evidence),
        diversity=tuple(diversity),
        prosecutor=prosecutor_risk(evidence.sizes, request.thresholds),
        journalist=journalist,
        marketer=marketer_risk(evidence.sizes, population),
        raw_columns=tuple(raw_columns),
        labels=space.labels,
        source=compared,
        joint=_joint(request, source, space=space),
        sorted=is_sorted,
        findings=(),
        notes=notes_of(request, evidence=evidence, suppressed=left_out_groups(released, request) is not None),
        frequent={} if request.meanings is None else frequent_labels(released.heads, evidence.sizes),
    )
    found = replace(audit, findings=tuple(all_findings(audit, request, names=table.names)))
    if evidence.persons.counted != "entities" or not request.k:
        return found
    told = _rounded(audit, request, released, evidence=evidence)
    return replace(found, _rounded=replace(told, findings=tuple(all_findings(told, request, names=table.names))))


def _judged(space: Space, released: Released, request: Request, source: Table | None) -> Space:
    """The same without rows of the source that had to be withheld, though the label of a group may hold them; and how
    many others are in no group.
    """
    located, boxes = space.located, space.boxes
    if source is None or located is None or boxes is None:
        return space
    if not located.outside and (boxes.shared is None or not boxes.shared.any()):
        return space
    withholding = withholding_of(request, list(released.columns), source)
    if withholding is None:
        return space
    withholding.add(source, located.found.group)
    judged = withholding.judged()
    located.found.group[~judged.mask(source, request)] = -1
    return replace(space, in_vain=judged.missed)


def _rounded(audit: Audit, request: Request, released: Released, *, evidence: Evidence) -> Audit:
    """What may be told of persons who have several rows: their numbers in multiples of k, rounded down.

    Whoever has the file can count its rows; exact numbers of persons would tell by subtraction how many rows of a group
    are of one person, and so would exact figures of diversity, which count a person's equal values once.
    """
    k = request.k or 1
    sizes = evidence.sizes // k * k

    def down(share: Share) -> Share:
        return Share(share.persons // k * k, share.of // k * k)

    def least(persons: int | None) -> int | None:
        return persons if persons is None or persons < k else persons // k * k

    return replace(
        audit,
        persons=audit.persons // k * k,
        sizes=group_sizes(sizes, k),
        sets=sizes_of_sets(released, request, evidence=evidence, rounded=True),
        prosecutor=prosecutor_risk(sizes, request.thresholds),
        marketer=marketer_risk(sizes, None),
        diversity=tuple(
            one
            if one.found is None or one.asked is None or one.model == "distinct-l"
            else replace(one, found=replace(one.found, value=one.asked))
            for one in audit.diversity
        ),
        raw_columns=tuple(
            replace(one, certain=down(one.certain), likely=down(one.likely), smallest=least(one.smallest))
            for one in audit.raw_columns
        ),
    )


def _everyone(evidence: Evidence) -> int:
    """Different persons in the file; one with rows in several groups counts once."""
    everyone = np.zeros(len(evidence.grouping.of_row), np.int64)
    return int(persons_in_groups(evidence.persons, everyone, 1).sum())


def evidence_of_sets(
    evidence: Evidence, request: Request, released: Released
) -> list[tuple[tuple[str, ...], Evidence]]:
    """The same persons in the groups of every one of several quasi-identifiers."""
    found = []
    for demand in request.sets:
        coarse = _regrouped(evidence, released, demand.columns)
        sizes = persons_in_groups(evidence.persons, coarse.of_row, coarse.count)
        found.append((demand.columns, replace(evidence, grouping=coarse, sizes=sizes)))
    return found


def _regrouped(evidence: Evidence, released: Released, columns: Sequence[str]) -> Grouping:
    """The groups of some quasi-identifiers."""
    held = [column for name in columns for column in released.columns[name]]
    return regrouped(evidence.grouping, released.heads.select(held))


def diversity_within(
    columns: tuple[str, ...], evidence: Evidence, asked: Sequence[DiversityDemand], raw: RawValues
) -> list[Diversity]:
    """What is asked of a raw column, in the groups of one of several quasi-identifiers."""
    counts = count_values(evidence.persons, evidence.grouping, raw.column, sizes=evidence.sizes)
    return [
        replace(one, settings=one.settings | {"quasi_identifier": list(columns)})
        for one in measure_demands(asked, raw, counts=counts, evidence=evidence)
    ]


def _raw_columns(evidence: Evidence, request: Request, released: Released) -> tuple[list[RawColumn], list[Diversity]]:
    """Inference and diversity of the raw columns, some columns at a time on all cores."""
    generalized = [demand for demand in request.targets if demand.column in request.quasi_identifiers]
    demands = [*sensitive_demands(request), *(demand for demand in request.targets if demand not in generalized)]
    unknown = [demand.column for demand in demands if demand.column not in evidence.names]
    if unknown:
        raise DataError(f"Something is asked of '{unknown[0]}', which is no raw column of the data and the source.")
    sensitive = {demand.column for demand in sensitive_demands(request)}
    several = evidence_of_sets(evidence, request, released)

    def measure(series: pl.Series) -> tuple[RawColumn, list[Diversity]]:
        column = coded_values(series)
        counts = count_values(evidence.persons, evidence.grouping, column, sizes=evidence.sizes)
        inferred = measure_raw_column(series.name, len(series), counts=counts, sensitive=series.name in sensitive)
        asked = [demand for demand in demands if demand.column == series.name]
        raw = RawValues(series, column, evidence.text_file)
        if not several:
            return inferred, measure_demands(asked, raw, counts=counts, evidence=evidence)
        return inferred, [one for columns, held in several for one in diversity_within(columns, held, asked, raw)]

    measured: list[tuple[RawColumn, list[Diversity]]] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for chunk in evidence.columns(evidence.names):
            measured.extend(pool.map(measure, chunk))
    diversity = [one for _, several in measured for one in several]
    return [one for one, _ in measured], [*diversity, *map(generalized_target, generalized)]


def sensitive_demands(request: Request) -> list[DiversityDemand]:
    """The demands on sensitive columns; of one without any, the different values are counted."""
    asked = {demand.column for demand in request.diversity}
    plain = [name for name in request.sensitive if name not in asked]
    return [*request.diversity, *(DiversityDemand(name, "distinct-l", {"l": 1}, is_asked=False) for name in plain)]


def journalist_figures(
    released: Released, request: Request, *, sizes: IntArray, boxes: Boxes | None
) -> tuple[JournalistRisk | None, IntArray | None]:
    """The risk of an attacker who knows the population, and the persons of the population per group."""
    if request.population is None:
        return None, None
    population = open_table(request.population, missing=request.missing, label="the population")
    counted, basis = population_sizes(released, population, boxes=boxes)
    return journalist_risk(sizes, counted, basis=basis, thresholds=request.thresholds), counted


def sizes_of_sets(
    released: Released, request: Request, *, evidence: Evidence, rounded: bool = False
) -> tuple[SetSizes, ...]:
    """The groups of every one of several quasi-identifiers; persons in multiples of k, if they are to be rounded."""
    found = []
    for demand in request.sets:
        coarse = _regrouped(evidence, released, demand.columns)
        sizes = persons_in_groups(evidence.persons, coarse.of_row, coarse.count)
        sizes = sizes // demand.k * demand.k if rounded and demand.k else sizes
        found.append(SetSizes(demand.columns, demand.k, group_sizes(sizes, demand.k)))
    return tuple(found)


def _joint(request: Request, source: Table | None, *, space: Space) -> JointCells | None:
    """Cells of two releases; both are found by their labels."""
    if request.other is None or source is None:
        return None
    if space.located is None:
        raise DataError(
            "The labels of the data are not understood: give the meaning of its columns to compare two releases."
        )
    there = locate_in_other(request.other, source, missing=request.missing)
    return joint_cells(space.located.found.group, there, persons=source_persons(source, request), k=request.k)


def notes_of(request: Request, *, evidence: Evidence, suppressed: bool) -> tuple[str, ...]:
    """What a reader of the figures should know."""
    notes = [
        "Figures are about an attacker who knows the quasi-identifiers of a person; other knowledge is not covered."
    ]
    if request.source is not None and request.meanings is None:
        notes.append("The meaning of labels was guessed from the source.")
    if suppressed:
        notes.append(
            "Rows with * in every quasi-identifier count as one group; what groups tell of raw columns is measured "
            "without them."
        )
    if evidence.persons.counted == "entities":
        notes.append("A person's rows are counted once per group; linking them across groups is not covered.")
    if evidence.persons_unknown:
        notes.append("Figures count rows: which of them are one person's is not known.")
    return tuple(notes)
