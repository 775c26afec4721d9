# SPDX-License-Identifier: Apache-2.0
"""The audit of tables that do not fit in memory: they are read some rows at a time, and what is kept are groups, counts
of pairs of a group and a value, and sums of hashes. It finds what the audit in memory finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from anonfit.auditing.batch_order import Order, heads_are_sorted
from anonfit.auditing.batch_source import Tally, hashers
from anonfit.auditing.batch_tables import Tables
from anonfit.auditing.batch_values import HEAD, ColumnCounts
from anonfit.auditing.batches import group_batches, persons_of
from anonfit.auditing.coding import IntArray
from anonfit.auditing.diversity import generalized_target
from anonfit.auditing.evidence import Evidence, Space, left_out_groups, open_data, open_raw_rows, read_groups
from anonfit.auditing.findings import all_findings
from anonfit.auditing.groups import Persons
from anonfit.auditing.hashing import Align, aligned, aligned_texts, differing
from anonfit.auditing.measuring import journalist_figures, notes_of, run_audit, sensitive_demands, sizes_of_sets
from anonfit.auditing.reading import Table, require_columns
from anonfit.auditing.released import Released
from anonfit.auditing.request import Request, check_request
from anonfit.auditing.result import UNKNOWN_PERSONS, Audit, Diversity, Figure, RawColumn, Share, SourceCheck
from anonfit.auditing.risk import marketer_risk, prosecutor_risk
from anonfit.auditing.sizes import frequent_labels, group_sizes
from anonfit.auditing.withholding import Judged, withholding_of
from anonfit.errors import DataError, refuse_fork

__all__ = ["ROWS_AT_ONCE", "audit_request"]

ROWS_AT_ONCE = 1 << 21
"""Rows that are read at once, unless it is said."""
_MANY_ROWS = 1 << 24


def audit_request(request: Request) -> Audit:
    """Audit one table: as a whole, or some rows at a time if that is asked, or if it is a file of very many."""
    refuse_fork()
    if request.rows_at_once is not None:
        return _run_in_batches(request, request.rows_at_once)
    return _run_in_batches(request, ROWS_AT_ONCE) if _is_large(request) else run_audit(request)


def _is_large(request: Request) -> bool:
    """Whether the data is a file that had better not be read as a whole; a frame is in memory already."""
    files = [data for data in (request.data, request.source) if data is not None]
    if not all(isinstance(data, (str, Path)) for data in files) or not _can_read_in_batches(request):
        return False
    table = open_data(request)
    return not table.is_text and table.width < len(table.schema) and table.height() > _MANY_ROWS


def _can_read_in_batches(request: Request) -> bool:
    """Whether all that is asked can be found from some rows at a time."""
    guessing = request.source is not None and request.meanings is None
    return request.entity is None and request.other is None and request.population is None and not guessing


def _run_in_batches(request: Request, rows_at_once: int) -> Audit:
    """Audit one table, reading so many rows at a time."""
    check_request(request)
    if not _can_read_in_batches(request):
        raise DataError(
            "An audit that reads some rows at a time counts rows or a count column, knows what labels mean, and "
            "compares with no other release and no population."
        )
    table = open_data(request, lazily=True)
    require_columns(table, request.sensitive, purpose="a sensitive column")
    require_columns(table, [request.count] if request.count else [], purpose="the count column")
    released, runs = group_batches(table, request.quasi_identifiers, rows_at_once)
    raw = tuple(name for name in table.names if name not in released.heads.columns)
    source = _open_source(released, request, raw)
    space = _read_space(released, request)
    tables = Tables(request, released, runs, rows_at_once, raw, source, space.boxes, space.seen)
    tally = _tally_of(tables)
    sizes, columns, is_sorted = _read_file(tables, None if tally is None else tally[0])
    evidence, left_out = _evidence(tables, sizes), left_out_groups(released, request)
    counted_on = evidence if left_out is None else replace(evidence, sizes=np.where(left_out, 0, sizes))
    raw_columns, diversity = _measured(tables, columns, counted_on)
    journalist, population = journalist_figures(released, request, sizes=sizes, boxes=space.boxes)
    compared = None if tally is None else _compared(tables, *tally)
    counted = "rows" if request.count is None else "count column"
    audit = Audit(
        rows=runs.rows,
        persons=int(sizes.sum()),
        counted=UNKNOWN_PERSONS if request.entities_lost else counted,
        quasi_identifiers=request.quasi_identifiers,
        sizes=group_sizes(sizes, request.k),
        suppressed_rows=Share(int(runs.sizes(released.grouping.count)[released.suppressed].sum()), runs.rows),
        sets=sizes_of_sets(released, request, evidence=evidence),
        diversity=tuple(diversity),
        prosecutor=prosecutor_risk(sizes, request.thresholds),
        journalist=journalist,
        marketer=marketer_risk(sizes, population),
        raw_columns=tuple(raw_columns),
        labels=space.labels,
        source=compared,
        joint=None,
        sorted=is_sorted,
        findings=(),
        notes=notes_of(request, evidence=evidence, suppressed=left_out is not None),
        frequent={} if request.meanings is None else frequent_labels(released.heads, sizes),
    )
    return replace(audit, findings=tuple(all_findings(audit, request, names=table.names)))


def _open_source(released: Released, request: Request, raw: tuple[str, ...]) -> Table | None:
    """The source, reduced to the columns the audit needs."""
    if request.source is None:
        return None
    source = open_raw_rows(request, lazily=True)
    require_columns(source, released.columns, purpose="a quasi-identifier")
    return source.only([*released.columns, *raw])


def _read_space(released: Released, request: Request) -> Space:
    """The labels, as far as they have a meaning, as boxes."""
    if request.meanings is None or (request.regions == "any" and request.tree is None and request.source is None):
        return Space()
    return read_groups(released, request, request.meanings)


def _tally_of(tables: Tables, align: Align = aligned, *, keep: bool = False) -> tuple[Tally, Tally] | None:
    """Two empty tallies, of the file and of the source."""
    if tables.source is None:
        return None
    one, other = hashers(tables.released.table, tables.source, tables.compared, align=align)
    return Tally(one, keep=keep), Tally(other, keep=keep)


def _read_file(tables: Tables, tally: Tally | None) -> tuple[IntArray, list[ColumnCounts], bool | None]:
    """One reading of the file: the persons of groups, the counts of raw columns, and whether rows are sorted."""
    request, released, together = tables.request, tables.released, tables.runs.are_groups
    columns = _columns(tables)
    order = Order(tables.raw) if request.order is not None and together and heads_are_sorted(released) else None
    sizes = np.zeros(released.grouping.count, np.int64)
    left_out = left_out_groups(released, request)
    for batch, groups in tables.file_batches():
        persons = persons_of(batch, request.count)
        frame = batch.frame(tables.raw)
        keep = None if left_out is None else ~left_out[groups]
        for column in columns:
            if keep is None:
                column.add(groups, frame[column.name], persons)
            else:
                column.add(groups[keep], frame[column.name].filter(pl.Series(keep)), persons.only(keep))
        if request.count is not None:
            sizes += np.bincount(groups, weights=persons.numbers, minlength=len(sizes)).astype(np.int64)
        if order is not None:
            order.add(groups, frame)
        if tally is not None:
            tally.add(batch, groups if tables.boxes is not None else np.zeros_like(groups))
    if request.count is None:
        sizes = tables.runs.sizes(len(sizes))
    is_sorted = None if request.order is None else order is not None and order.is_sorted
    return sizes, columns, is_sorted


def _columns(tables: Tables) -> list[ColumnCounts]:
    """The counts of every raw column, empty."""
    request, table = tables.request, tables.released.table
    sensitive = sensitive_demands(request)
    demands = [*sensitive, *(demand for demand in request.targets if demand.column not in request.quasi_identifiers)]
    unknown = [demand.column for demand in demands if demand.column not in tables.raw]
    if unknown:
        raise DataError(f"Something is asked of '{unknown[0]}', which is no raw column of the data and the source.")
    head = replace(table, lazy=table.lazy.head(HEAD)).frame(tables.raw)
    return [
        ColumnCounts(
            series,
            demands=[demand for demand in demands if demand.column == series.name],
            together=tables.runs.are_groups,
            sensitive=series.name in {demand.column for demand in sensitive},
            text_file=table.is_text,
        )
        for series in head.get_columns()
    ]


def _evidence(tables: Tables, sizes: IntArray) -> Evidence:
    """Groups as rows that stand for so many persons."""
    unknown = tables.request.entities_lost
    return Evidence(
        tables.released.grouping,
        Persons(sizes),
        sizes,
        tables.raw,
        tables.released.table.columns,
        tables.released.table.is_text,
        persons_unknown=unknown,
    )


def _measured(
    tables: Tables, columns: list[ColumnCounts], evidence: Evidence
) -> tuple[list[RawColumn], list[Diversity]]:
    """The figures of every raw column, one after the other: their counts may be many."""
    request, found = tables.request, []
    while columns:
        found.append(columns.pop(0).measure(evidence, request, tables.released))
    generalized = [demand for demand in request.targets if demand.column in request.quasi_identifiers]
    diversity = [one for _, several in found for one in several]
    return [one for one, _ in found], [*diversity, *map(generalized_target, generalized)]


def _compared(tables: Tables, file: Tally, source: Tally) -> SourceCheck:
    """Compare (group, raw values) of released and raw rows as multisets; raw values alone without labels."""
    assert tables.source is not None
    for batch, groups in tables.source_batches():
        source.add(batch, groups)
    tables.judged = _judged(tables)
    not_observed, tables.seen = 0 if tables.seen is None else tables.seen.wrong(), None
    unmatched = absent_inside = 0
    if tables.judged is not None or not file.equals(source):
        # Texts of text files that differ may still be the same numbers.
        align = aligned_texts if tables.released.table.is_text or tables.source.is_text else aligned
        unmatched, absent_inside = _differences(tables, align)
    place = tables.place
    absent = absent_inside + place.outside
    return SourceCheck(
        by_labels=tables.boxes is not None,
        compared=tables.compared,
        not_in_source=tuple(name for name in tables.raw if name not in tables.source.schema),
        rows=Figure(place.rows, place.rows, rest=absent),
        unmatched=Share(unmatched, tables.runs.rows),
        absent=Share(absent, place.rows),
        absent_inside=Share(absent_inside, place.rows),
        in_several=Share(place.several, place.rows),
        beyond_domain=place.beyond,
        unknown_values=place.unknown,
        dropped=place.dropped,
        in_vain=0 if tables.judged is None else tables.judged.missed,
        not_observed=not_observed,
    )


def _judged(tables: Tables) -> Judged | None:
    """Which rows of the source are to be released; None where all that are in no group were left out on purpose."""
    shared = None if tables.boxes is None else tables.boxes.shared
    if tables.source is None or not (tables.place.withheld or (shared is not None and shared.any())):
        return None
    withholding = withholding_of(tables.request, list(tables.released.columns), tables.source)
    if withholding is None:
        return None
    for batch, groups in replace(tables, seen=None).source_batches():
        withholding.add(batch, groups)
    return withholding.judged()


def _differences(tables: Tables, align: Align) -> tuple[int, int]:
    """Released rows that no source row explains, and source rows inside labels that are not released."""
    tallies = _tally_of(tables, align, keep=True)
    assert tallies is not None
    for batch, groups in tables.file_batches():
        tallies[0].add(batch, groups if tables.boxes is not None else np.zeros_like(groups))
    for batch, groups in tables.source_batches():
        tallies[1].add(batch, groups)
    assert tallies[0].keys is not None
    assert tallies[1].keys is not None
    return differing(tallies[0].keys, tallies[1].keys)
