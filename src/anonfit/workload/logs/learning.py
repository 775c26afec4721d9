# SPDX-License-Identifier: Apache-2.0
"""What a release should be made for, learned from a log: selections and weights, with the evidence for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anonfit.tables.schema import Column, Role
from anonfit.workload.logs.filling import Columns
from anonfit.workload.logs.merging import Merged, merge
from anonfit.workload.logs.minterms import minterms
from anonfit.workload.logs.raw_rows import RawRows
from anonfit.workload.logs.tallies import Tally, Uses, read_log
from anonfit.workload.predicates import kinds_of
from anonfit.workload.wording import predicate_text

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Learned", "LearnedSelection", "LearnedWeight", "LogRequest", "columns_of", "learn", "read_request"]

DIGITS = 4
"""Of weights."""


@dataclass(frozen=True, slots=True)
class LogRequest:
    """A log, and how it is read and used."""

    paths: tuple[Path, ...]
    dialect: str | None = None
    table: str | None = None
    selections: int = 50
    """Rectangles that are kept at most."""
    minterms: int = 0
    """Min-terms that are made in their place, at most; 0: none."""


@dataclass(frozen=True, slots=True)
class LearnedSelection:
    """A selection, its weight, and the queries that it is learned from."""

    where: str
    weight: float
    own: int
    times: int
    alike: int


@dataclass(frozen=True, slots=True)
class LearnedWeight:
    """A quasi-identifier, its weight, and how it is used."""

    column: str
    weight: float
    uses: Uses


@dataclass(frozen=True, slots=True)
class Learned:
    """What a log teaches."""

    tally: Tally
    selections: tuple[LearnedSelection, ...]
    weights: tuple[LearnedWeight, ...]
    few: int
    """Selections that were left out since fewer than k persons are asked for."""
    is_minterms: bool


def columns_of(
    columns: Sequence[Column], frame: pl.DataFrame, *, table: str | None = None, is_capped: bool = False
) -> Columns:
    """The columns of a table, with or without its rows, as queries name them."""
    return Columns(kinds_of(columns, frame), table, is_capped)


def read_request(request: LogRequest, columns: Columns) -> Tally:
    """The counts of a log."""
    return read_log(request.paths, columns, dialect=request.dialect)


def learn(
    request: LogRequest,
    columns: Sequence[Column],
    rows: RawRows,
    *,
    k: int,
    is_capped: bool = False,
) -> Learned:
    """Learn selections and weights from a log.

    Args:
        request: The log.
        columns: All columns of the table.
        rows: Its raw rows: on them it is seen which selections are alike and which ask for too few.
        k: Selections of fewer persons are not learned: no group could answer them, and they may be about somebody.
        is_capped: Whether what groups tell of targets is capped.

    Returns:
        The selections, those of most queries first, and a weight for every quasi-identifier.
    """
    tally = read_request(request, columns_of(columns, rows.without_rows(), table=request.table, is_capped=is_capped))
    found, few = _selected(request, tally, rows, k)
    whole = sum(one.times for one in found) or 1
    selections = tuple(
        LearnedSelection(
            predicate_text(one.predicate),
            max(round(one.times / whole, DIGITS), 10**-DIGITS),
            one.own,
            one.times,
            one.alike,
        )
        for one in found
    )
    return Learned(tally, selections, _weights(tally, columns), few, request.minterms > 0)


def _selected(request: LogRequest, tally: Tally, rows: RawRows, k: int) -> tuple[list[Merged], int]:
    """The rectangles or min-terms to select by, and how many were left out."""
    if request.minterms:
        return minterms(tally.predicates, rows, most=request.minterms, k=k), 0
    # Some are left out below, so a few more are looked at.
    found = merge(tally.predicates, rows, most=2 * request.selections)
    persons = rows.persons([one.predicate for one in found]).tolist()
    enough = [one for one, selected in zip(found, persons, strict=True) if selected >= k]
    return enough[: request.selections], len(found) - len(enough)


def _weights(tally: Tally, columns: Sequence[Column]) -> tuple[LearnedWeight, ...]:
    """The share that every quasi-identifier has in the uses of all of them; none if none is used."""
    names = [column.name for column in columns if column.role == Role.QUASI_IDENTIFIER]
    uses = {name: tally.uses.get(name, Uses()) for name in names}
    whole = sum(one.total for one in uses.values())
    if not whole:
        return ()
    return tuple(LearnedWeight(name, round(uses[name].total / whole, DIGITS), uses[name]) for name in names)
