# SPDX-License-Identifier: Apache-2.0
"""The audit itself: reads, groups and measures what a request asks for, then holds it against the demands.

There is one way for all tables. One that fits in memory is one batch; of a larger one, batches are read one after the
other, and what is kept are groups, counts of pairs of a group and a value, and sums of hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from anonfit.auditing import findings
from anonfit.auditing.boxes import LabelBoxes
from anonfit.auditing.coding import Evidence, IntArray, RowPersons, read_persons
from anonfit.auditing.counting import CountedRows, GroupCounter, GroupCounts, frequent_labels, group_sizes
from anonfit.auditing.hashing import Hashers, KeyTally, aligned, aligned_texts
from anonfit.auditing.joint import joint_cells
from anonfit.auditing.placing import Space, left_out_groups, open_data, open_source, read_space
from anonfit.auditing.reading import AuditedTable, require_columns
from anonfit.auditing.released import (
    Released,
    RowOrder,
    open_released,
)
from anonfit.auditing.request import Request, check_request
from anonfit.auditing.result import UNKNOWN_PERSONS, Audit, GroupCells, SetSizes, Share
from anonfit.auditing.source import SourceRows, compare_rows
from anonfit.errors import DataError, refuse_fork

ROWS_AT_ONCE = 1 << 21
"""Rows that are read at once of a table that does not fit in memory, unless it is said."""
_MANY_ROWS = 1 << 24
_ATTACKER = "Figures are about an attacker who knows the quasi-identifiers of a person; other knowledge is not covered."
_ENTITIES = "A person's rows are counted once per group; linking them across groups is not covered."
_ROWS_SIDE_BY_SIDE = 1 << 22  # of more, what is computed side by side would need too much memory


def audit_request(request: Request) -> Audit:
    """Audit one table: as a whole, or some rows at a time if that is asked, or if it is a file of very many."""
    refuse_fork()
    in_files = all(table is None or isinstance(table, (str, Path)) for table in (request.data, request.source))
    if request.rows_at_once is None and in_files and _can_read_in_batches(request):
        table = open_data(request)
        if not table.is_text and table.width < len(table.schema) and table.height() > _MANY_ROWS:
            request = replace(request, rows_at_once=ROWS_AT_ONCE)  # a frame would be in memory already
    check_request(request)
    if request.rows_at_once is not None and not _can_read_in_batches(request):
        raise DataError(
            "An audit that reads some rows at a time counts rows or a count column, knows what labels mean, and "
            "compares with no other release and no population."
        )
    table = open_data(request, lazily=request.rows_at_once is not None)
    require_columns(table, request.sensitive, purpose="a sensitive column")
    require_columns(table, [request.count] if request.count else [], purpose="the count column")
    released = open_released(table, request.quasi_identifiers, request.rows_at_once)
    counting = GroupCounter(request, released, left_out_groups(released, request))
    return _AuditRun(request, released, open_source(released, request), counting).run()


def _can_read_in_batches(request: Request) -> bool:
    """Whether all that is asked can be found from some rows at a time."""
    guessing = request.source is not None and request.meanings is None
    return request.entity is None and request.other is None and request.population is None and not guessing


@dataclass(frozen=True, slots=True)
class _AuditRun:
    """One audit: what it reads and counts with."""

    request: Request
    released: Released
    source: SourceRows | None
    counting: GroupCounter

    def run(self) -> Audit:
        """Measure all that is asked. Labels are read in Python by one thread, while others count and compare rows in
        loops that leave a core to it.
        """
        released, source = self.released, self.source
        hashing: Future[Hashers] | None = None
        compared = None
        with ThreadPoolExecutor(4) as pool:
            reading = pool.submit(read_space, released, self.request, source)
            if source is not None and (not released.is_whole or released.rows <= _ROWS_SIDE_BY_SIDE):
                hashing = pool.submit(Hashers.of, released, source.table)
            file = pool.submit(self._read_file, pool, reading, hashing)
            labels, boxes, seen, cells = reading.result()
            if not released.is_whole or released.rows > _ROWS_SIDE_BY_SIDE:
                file.result()  # both tables at a time would need twice the memory
            if source is not None:
                source.locate(boxes, seen)
            in_file, is_sorted, tally = file.result()
            counted = self._count_in_source() if in_file is None else in_file
        if source is not None:
            hashers = Hashers.of(released, source.table) if hashing is None else hashing.result()
            compared = compare_rows(released, source, hashers, tally=tally, suppressed=self.counting.left_out)
            if in_file is None and (compared.unmatched.persons or compared.absent_inside.persons):
                # Persons were counted on rows of the source, and not all of these are in the file.
                counted = self.counting.count(map(self._rows_of_file, released.batches()), released.raw)
        audit = replace(self._figures(counted, boxes), labels=labels, source=compared, sorted=is_sorted)
        if cells is not None:
            audit = replace(audit, groups=GroupCells(cells, counted.evidence.sizes))
        if source is not None and compared is not None and self.request.other is not None:
            audit = replace(audit, joint=joint_cells(self.request, self.request.other, source, compared))
        judged = self._judged(audit)
        if counted.evidence.persons.entities is None or not self.request.k:
            return judged
        return replace(judged, _rounded=self._judged(self._rounded(audit, counted.evidence)))

    def _read_file(
        self, pool: ThreadPoolExecutor, reading: Future[Space], hashing: Future[Hashers] | None
    ) -> tuple[GroupCounts | None, bool | None, KeyTally | None]:
        """One reading of the file: what is counted, whether it is sorted and, of batches, the keys of its rows."""
        released, entity = self.released, self.request.entity
        order = None if self.request.order is None else RowOrder(released)
        tally = None if released.is_whole or hashing is None else KeyTally()

        def batches() -> Iterator[tuple[AuditedTable, IntArray]]:
            for batch, groups in released.batches():
                ordering = None if order is None else pool.submit(order.add, batch, groups)
                if ordering is not None and len(groups) > _ROWS_SIDE_BY_SIDE:
                    ordering.result()
                yield batch, groups
                if tally is not None and hashing is not None:
                    by_labels = reading.result()[1] is not None
                    tally.add(groups if by_labels else np.zeros_like(groups), hashing.result().file(batch))
                if ordering is not None:
                    ordering.result()

        counted = None
        if entity is None or entity in released.table.schema:
            counted = self.counting.count(map(self._rows_of_file, batches()), released.raw)
        else:
            for _ in batches():
                pass
        return counted, None if order is None else order.is_sorted, tally

    def _rows_of_file(self, batch: tuple[AuditedTable, IntArray]) -> CountedRows:
        return CountedRows(batch[1], self._persons(batch[0]), batch[0].columns)

    def _count_in_source(self) -> GroupCounts:
        """Persons counted among the source's rows, which alone have the entities; without labels, rows of the file."""
        entity, source, released = self.request.entity, self.source, self.released
        if source is None or entity is None or entity not in source.table.schema:
            raise DataError(f"The entity column '{entity}' is neither in the data nor in the source.")
        if source.boxes is None:
            return self.counting.count(map(self._rows_of_file, released.batches()), released.raw)
        groups = source.groups()
        kept, table = pl.Series(groups >= 0), source.table
        persons = read_persons(table.frame([entity]).filter(kept), entity=entity, count=None)

        def as_in_file(series: pl.Series) -> pl.Series:  # texts of numbers may be spelled in several ways
            if series.name not in released.table.schema:
                return series
            align = aligned_texts if released.table.is_text and series.dtype == pl.String else aligned
            return align(released.table.frame([series.name]).to_series(), series)[1].alias(series.name)

        def columns(names: Sequence[str]) -> Iterator[list[pl.Series]]:
            for chunk in table.columns(names):
                yield [as_in_file(series).filter(kept) for series in chunk]

        names = [name for name in released.raw if name in table.schema]
        return self.counting.count([CountedRows(groups[groups >= 0], persons, columns)], names)

    # --- figures --------------------------------------------------------------------------------------------------

    def _figures(self, counted: GroupCounts, boxes: LabelBoxes | None) -> Audit:
        """All figures but those on labels, on the source, on another release and on the order of rows."""
        request, released, evidence = self.request, self.released, counted.evidence
        sizes, entities = evidence.sizes, evidence.persons.entities is not None
        rows_of_run = np.diff(released.runs.ends, prepend=0)
        journalist, population = findings.journalist_figures(released, request, sizes=sizes, boxes=boxes)
        counts = "entities" if entities else "rows" if request.count is None else "count column"
        return Audit(
            rows=released.rows,
            persons=counted.everyone(),
            counted=UNKNOWN_PERSONS if evidence.persons_unknown else counts,
            quasi_identifiers=request.quasi_identifiers,
            sizes=group_sizes(sizes, request.k),
            suppressed_rows=Share(int(rows_of_run[released.suppressed[released.runs.group]].sum()), released.rows),
            sets=self._set_sizes(evidence),
            diversity=counted.diversity,
            prosecutor=findings.prosecutor_risk(sizes, request.thresholds),
            journalist=journalist,
            marketer=findings.marketer_risk(sizes, population),
            raw_columns=counted.raw_columns,
            labels=None,
            source=None,
            joint=None,
            sorted=None,
            findings=(),
            notes=self._notes(evidence),
            frequent={} if request.meanings is None else frequent_labels(released.heads, sizes),
        )

    @property
    def _largest_k(self) -> int:
        return max([self.request.k or 1, *(demand.k or 1 for demand in self.request.sets)])

    def _set_sizes(self, evidence: Evidence, *, rounded: bool = False) -> tuple[SetSizes, ...]:
        """The groups of several quasi-identifiers; if `rounded`, in multiples of the largest k, or by their k."""
        step = self._largest_k
        measured = []
        for demand, groups in zip(self.request.sets, self.counting.sets(evidence), strict=True):
            sizes = groups.sizes
            if rounded and demand.k:
                sizes = np.where(sizes < demand.k, 0, np.maximum(sizes // step * step, demand.k))
            measured.append(SetSizes(demand.columns, demand.k, group_sizes(sizes, demand.k)))
        return tuple(measured)

    def _persons(self, table: AuditedTable) -> RowPersons:
        """Whom the rows of a table stand for; without a column that says whose they are, each counts."""
        entity, count = (name if name in table.schema else None for name in (self.request.entity, self.request.count))
        return read_persons(table.frame([name for name in (entity, count) if name]), entity=entity, count=count)

    def _notes(self, evidence: Evidence) -> tuple[str, ...]:
        """What a reader of the figures should know."""
        is_guessed = self.request.source is not None and self.request.meanings is None
        suppressed = "count as one group; what groups tell of raw columns is measured without them."
        notes = (
            (True, _ATTACKER),
            (is_guessed, "The meaning of labels was guessed from the source."),
            (self.counting.left_out is not None, f"Rows with * in every quasi-identifier {suppressed}"),
            (evidence.persons.entities is not None, _ENTITIES),
            (evidence.persons_unknown, "Figures count rows: which of them are one person's is not known."),
        )
        return tuple(note for holds, note in notes if holds)

    def _judged(self, audit: Audit) -> Audit:
        judged = findings.all_findings(audit, self.request, names=self.released.table.names)
        return replace(audit, findings=tuple(judged))

    def _rounded(self, audit: Audit, evidence: Evidence) -> Audit:
        """What may be told of persons who have several rows: their numbers in multiples of the largest k, rounded down.

        Whoever has the file can count its rows; exact numbers of persons would tell by subtraction how many rows of a
        group are of one person, and so would exact figures of diversity, which count a person's equal values once.
        """
        k = self._largest_k
        sizes = evidence.sizes // k * k

        def down(share: Share) -> Share:
            return Share(share.persons // k * k, share.of // k * k)

        def least(persons: int | None) -> int | None:
            return persons if persons is None or persons < k else persons // k * k

        return replace(
            audit,
            persons=audit.persons // k * k,
            sizes=group_sizes(sizes, k),
            sets=self._set_sizes(evidence, rounded=True),
            prosecutor=findings.prosecutor_risk(sizes, self.request.thresholds),
            marketer=findings.marketer_risk(sizes, None),
            diversity=tuple(
                figures
                if figures.found is None or figures.asked is None or figures.by_rows
                else replace(figures, found=replace(figures.found, value=figures.asked))
                for figures in audit.diversity
            ),
            raw_columns=tuple(
                replace(
                    column, certain=down(column.certain), likely=down(column.likely), smallest=least(column.smallest)
                )
                for column in audit.raw_columns
            ),
        )
