# SPDX-License-Identifier: Apache-2.0
"""Two releases of one table: whoever has both sees the cells of both, which hold fewer persons than the groups of one.

Each side is read as it was made: with its own texts for missing, columns of persons and rows that it leaves out. The
rows of the source are what both have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonfit.auditing.coding import Coded, IntArray, RowPersons, join_codes, numbered, persons_in_groups, read_persons
from anonfit.auditing.counting import group_sizes
from anonfit.auditing.hashing import Hashers
from anonfit.auditing.placing import in_best_reading, left_out_groups, open_data, open_source, read_space
from anonfit.auditing.reading import AuditedTable, require_columns
from anonfit.auditing.released import open_released
from anonfit.auditing.request import OtherRelease, Request, check_request
from anonfit.auditing.result import JointCells, SourceCheck
from anonfit.auditing.source import SourceRows, compare_rows
from anonfit.errors import DataError


def locate_other(first: Request, other: Request) -> OtherRelease:
    """Where the rows of the source lie in the `other` of two releases, in the reading of the source that suits it."""
    check_request(other)
    persons = [(request.entity, request.count) for request in (first, other)]
    if all(any(columns) for columns in persons) and persons[0] != persons[1]:
        names = " and ".join(f"'{entity or count}'" for entity, count in persons)
        raise DataError(
            f"The two releases do not count the same persons, but those of the columns {names}: how many are in a cell "
            "of both is not known. Give one of these columns the same role in both."
        )
    source, compared = in_best_reading(other, _located, lambda located: located[1].misplaced)
    return OtherRelease(source.groups(), _persons(source.table, other), holds_source=not compared.misplaced)


def _located(request: Request) -> tuple[SourceRows, SourceCheck]:
    """The source with the group of every row, and how it compares with the release."""
    released = open_released(open_data(request), request.quasi_identifiers)
    source = open_source(released, request)
    assert source is not None
    _, boxes, seen, _ = read_space(released, request, source)
    if boxes is None:
        raise DataError("The labels of the other release are not understood: give the meaning of its columns.")
    source.locate(boxes, seen)
    hashers, suppressed = Hashers.of(released, source.table), left_out_groups(released, request)
    return source, compare_rows(released, source, hashers, tally=None, suppressed=suppressed)


def joint_cells(request: Request, other: OtherRelease, source: SourceRows, compared: SourceCheck) -> JointCells:
    """Count the persons of the source in every cell of a release and the other one."""
    if source.boxes is None:
        raise DataError(
            "The labels of the data are not understood: give the meaning of its columns to compare two releases."
        )
    here, there = source.groups(), other.group
    if len(here) != len(there):
        raise DataError(
            "The two releases read different rows from the source, so it does not say who is in both. Give the source "
            "as a file with one header line, and no empty ones."
        )
    persons = [whose for whose in (_persons(source.table, request), other.persons) if whose is not None]
    sizes = group_sizes(_cell_sizes(here, there, persons or [RowPersons()]), request.k)
    is_known = other.holds_source and not compared.misplaced
    return JointCells(sizes.groups, sizes.smallest, sizes.groups_below_k, sizes.persons_below_k, is_known)


def _cell_sizes(here: IntArray, there: IntArray, persons: Sequence[RowPersons]) -> IntArray:
    """The persons of every cell; of two readings of who they are, the fewer. Who is in one release only is told apart
    from others of the group by subtraction, and so in a cell of its own; rows that neither holds (-1) are in none.
    """
    held = (here >= 0) | (there >= 0)
    sides = [Coded(side[held] + 1, int(side.max(initial=0)) + 2) for side in (here, there)]
    cells, first = numbered(join_codes(sides, int(np.count_nonzero(held)))[0])
    counts = [persons_in_groups(whose.only(held), cells - 1, len(first)) for whose in persons]
    sizes: IntArray = np.min(counts, axis=0)
    return sizes


def _persons(table: AuditedTable, request: Request) -> RowPersons | None:
    """Whom the rows of the source stand for; None: the release does not say it."""
    names = [name for name in (request.entity, request.count) if name]
    if not names:
        return None
    require_columns(table, names, purpose="the persons of a release")
    return read_persons(table.frame(names), entity=request.entity, count=request.count)
