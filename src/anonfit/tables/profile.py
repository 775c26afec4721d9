# SPDX-License-Identifier: Apache-2.0
"""What `anonfit init` needs: a table's profile, a role for every column with its reason, and a spec to edit.

`profile_values` measures, `profile_names` reads names, `profile_roles` decides, `profile_text` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import DataError
from anonfit.tables.profile_roles import (
    ColumnProposal,
    Proposal,
    as_entity,
    as_key,
    as_only_one,
    could_be_entity,
    percent,
    propose_column,
)
from anonfit.tables.profile_text import proposal_toml
from anonfit.tables.profile_values import ColumnProfile, profile_column, separation_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ColumnProfile", "ColumnProposal", "Proposal", "profile", "proposal_toml", "propose"]

_SAMPLED_ROWS = 200_000  # enough to rank the columns; uniqueness itself is counted on all rows

Hashes = NDArray[np.uint64]
Sizes = NDArray[np.int64]


def profile(frame: pl.DataFrame) -> tuple[ColumnProfile, ...]:
    """Measures every column.

    Args:
        frame: The table.

    Returns:
        One profile for each column, in the table's order. It holds no value of a record.

    >>> import polars as pl
    >>> profile(pl.DataFrame({"sex": ["f", "m", "f", None]}))[0].distinct
    2
    """
    return tuple(profile_column(series) for series in frame)


def propose(frame: pl.DataFrame, *, k: int = 10) -> Proposal:
    """Proposes a role for every column, and measures how far the quasi-identifiers together single rows out.

    Args:
        frame: The table.
        k: The k that rows are counted against.

    Returns:
        The proposal, to be shown to a person and written with `proposal_toml`.

    >>> import polars as pl
    >>> propose(pl.DataFrame({"email": ["a@b.org", "c@d.org"], "age": [30, 40]})).columns[0].role
    'identifier'
    """
    if not frame.width or not frame.height:
        found = f"{frame.height} rows and {frame.width} columns"
        raise DataError(f"The table has {found}, but roles are proposed from data: give a table with rows.")
    columns = _with_one_of_each(_with_entity(tuple(propose_column(column) for column in profile(frame))))
    links = [column for column in columns if column.role == "quasi-identifier"]
    hashes = [frame[column.name].hash(seed=number).to_numpy() for number, column in enumerate(links)]
    together = _combined(hashes, frame.height)
    sizes = _group_sizes(together)
    proposal = Proposal(
        columns=columns,
        k=k,
        rows=frame.height,
        unique_rows=_alone(sizes),
        rows_below_k=int(sizes[sizes < k].sum()),
        separation=separation_of(sizes),
        strongest=None,
        notes=(),
    )
    if not links:
        return replace(proposal, notes=tuple(_notes(proposal)))
    strongest = _strongest(hashes, links)
    proposal = replace(proposal, strongest=links[strongest].name)
    contribution = _contribution(proposal, _alone(_group_sizes(together - hashes[strongest])))
    return replace(proposal, notes=(*_notes(proposal), contribution))


def _with_entity(columns: tuple[ColumnProposal, ...]) -> tuple[ColumnProposal, ...]:
    """Persons with several rows need one entity column: the strictest candidate; the others are left out."""
    candidates = [column for column in columns if could_be_entity(column)]
    if not candidates:
        return columns
    best = min(candidates, key=lambda column: column.profile.distinct)
    return tuple(
        column if column not in candidates else as_entity(column) if column is best else as_key(column, best.name)
        for column in columns
    )


def _with_one_of_each(columns: tuple[ColumnProposal, ...]) -> tuple[ColumnProposal, ...]:
    """One column says how rows count: the first weight, and the first count unless there is an entity."""
    first: dict[str, str] = {}
    for column in columns:
        first.setdefault(column.role, column.name)
    taken = {"sample-weight": first.get("sample-weight"), "count": first.get("entity") or first.get("count")}
    return tuple(
        column if taken.get(column.role, column.name) == column.name else as_only_one(column, str(taken[column.role]))
        for column in columns
    )


def _combined(hashes: Sequence[Hashes], rows: int) -> Hashes:
    """One hash for each row over all columns: a sum, so that a column can be taken away again."""
    total = np.zeros(rows, dtype=np.uint64)
    for part in hashes:
        total += part
    return total


def _group_sizes(hashes: Hashes) -> Sizes:
    return np.unique(hashes, return_counts=True)[1].astype(np.int64)


def _alone(sizes: Sizes) -> int:
    return int(np.count_nonzero(sizes == 1))


def _strongest(hashes: Sequence[Hashes], links: Sequence[ColumnProposal]) -> int:
    """The column without which the fewest of evenly spaced rows are unique; in a tie, the most separating."""
    step = max(1, len(hashes[0]) // _SAMPLED_ROWS)
    sampled = [part[::step] for part in hashes]
    total = _combined(sampled, len(sampled[0]))
    left = [_alone(_group_sizes(total - part)) for part in sampled]
    return min(range(len(links)), key=lambda number: (left[number], -links[number].profile.separation))


def _notes(proposal: Proposal) -> Iterator[str]:
    """What a person must know of the table as a whole, a sentence or two each."""
    links = sum(column.role == "quasi-identifier" for column in proposal.columns)
    if proposal.rows < proposal.k:
        yield f"The table has {proposal.rows:,} rows, fewer than k = {proposal.k}: it cannot be released."
    if not links:
        yield "No quasi-identifier was found, so nothing would be generalized: check the roles."
        return
    unique, below = proposal.unique_rows / proposal.rows, proposal.rows_below_k / proposal.rows
    yield (
        f"The {links} proposed quasi-identifiers together tell apart {percent(proposal.separation)} "
        f"of all pairs of rows: {proposal.unique_rows:,} of {proposal.rows:,} rows ({percent(unique)}) are "
        f"unique on them, and {percent(below)} lie in groups of fewer than k = {proposal.k}."
    )
    if not any(column.role == "target" for column in proposal.columns):
        yield "No target was found: give the column that the release should keep predictable the role target."


def _contribution(proposal: Proposal, left: int) -> str:
    """How much the strongest quasi-identifier adds to the uniqueness of rows."""
    without = f"without it {left:,} rows ({percent(left / proposal.rows)}) would be unique"
    return f"The column {proposal.strongest!r} contributes most: {without}."
