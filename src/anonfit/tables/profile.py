# SPDX-License-Identifier: Apache-2.0
"""What `anonfit init` needs: a table's profile, a role for every column with its reason, and a spec.toml to read, edit
and run.

Reasons are comments of the spec; no value of a record is written, only names, roles, types and date formats.
`profile_columns` measures, `profile_roles` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError, listed
from anonfit.tables import profile_columns, profile_roles
from anonfit.tables.profile_columns import ColumnProfile, profile_column, separation_of
from anonfit.tables.profile_roles import ColumnProposal, Proposal, percent, propose_column, with_counted_persons
from anonfit.tables.sources import FORMATS

if TYPE_CHECKING:
    from jinja2 import Template

_WIDTH = 108
_DIVERSITY = (3.0, 2.0, 1.5, 1.2, 1.1)
_USUAL_MISSING = ("", "?", "NA")


def proposal_toml(proposal: Proposal, *, source: str, taxonomies: Mapping[str, str], accepted: bool = False) -> str:
    """The proposal as the text of a spec, version 1, with a comment above each column that says why it has its role.
    What is left to decide stands under the key `decide`: no release is made of a spec that has one. `source` and
    `taxonomies` (files by column) are relative to the spec; `accepted` takes the proposal without its questions.
    """
    unknown = set(taxonomies) - {column.name for column in proposal.columns}
    if unknown:
        raise DataError(f"There are taxonomies for columns that the table has not: {listed(sorted(unknown))}.")
    seen = {text for column in proposal.columns for text in column.profile.missing_texts}
    return _template().render(
        proposal=proposal,
        source=source,
        taxonomies=taxonomies,
        accepted=accepted,
        missing=[text for text in profile_columns.MISSING_TEXTS if text in seen or text in _USUAL_MISSING],
        formats=list(FORMATS),
        raw_limit=profile_roles.RAW_LIMIT,
    )


@cache
def _template() -> Template:
    """The spec as a text with places to fill in."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - it is TOML, and what is filled in is quoted
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"quoted": _quoted, "key": _key}
    environment.globals |= {
        "comment": _comment,
        "meaning_of": profile_columns.meaning_of,
        "diversity_of": _diversity_of,
    }
    return environment.get_template("proposal.toml.jinja")


def _diversity_of(column: ColumnProposal) -> float | None:
    """How mixed a sensitive column of names must be: half as much as in the whole table; None if that is hardly."""
    half = (column.profile.effective + 1) / 2
    return next((level for level in _DIVERSITY if level <= half), None)


def _comment(text: str) -> str:
    """A text as lines of a comment; control characters would end it or make it invalid, so they are escapes."""
    plain = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)
    return "\n".join(f"# {line}" for line in wrap(plain, _WIDTH, break_long_words=False, break_on_hyphens=False))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(value: str | int | tuple[int, ...]) -> str:
    """Whole numbers, a truth value, or a TOML basic string in which all that is not plainly printable is escaped."""
    if isinstance(value, int):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))

    def written(sign: str) -> str:
        if sign.isprintable():
            return f"\\{sign}" if sign in '"\\' else sign
        return f"\\u{ord(sign):04X}" if ord(sign) <= 0xFFFF else f"\\U{ord(sign):08X}"

    return f'"{"".join(map(written, value))}"'


_SAMPLED_ROWS = 200_000  # enough to rank the columns; uniqueness itself is counted on all rows

Hashes = NDArray[np.uint64]
Sizes = NDArray[np.int64]


def profile(frame: pl.DataFrame) -> tuple[ColumnProfile, ...]:
    """The profile of each column, in the table's order. It holds no value of a record.

    >>> import polars as pl
    >>> profile(pl.DataFrame({"sex": ["f", "m", "f", None]}))[0].distinct
    2
    """
    return tuple(profile_column(series) for series in frame)


def propose(frame: pl.DataFrame, *, k: int = 10) -> Proposal:
    """Proposes a role for every column, and measures how far the quasi-identifiers together single rows out: how many
    are unique, and in groups of fewer than k.

    >>> import polars as pl
    >>> propose(pl.DataFrame({"email": ["a@b.org", "c@d.org"], "age": [30, 40]})).columns[0].role
    'identifier'
    """
    if not frame.width or not frame.height:
        size = f"{frame.height} rows and {frame.width} columns"
        raise DataError(f"The table has {size}, but roles are proposed from data: give a table with rows.")
    columns = with_counted_persons([propose_column(column) for column in profile(frame)])
    columns = tuple(_doubted(column, frame) for column in columns)
    links = [column for column in columns if column.role == "quasi-identifier"]
    hashes = [frame[column.name].hash(seed=number).to_numpy() for number, column in enumerate(links)]
    together = _together(hashes, frame.height)
    sizes = _group_sizes(together)
    strongest = _strongest(hashes, links) if links else None
    proposal = Proposal(
        columns=columns,
        k=k,
        rows=frame.height,
        unique_rows=_alone(sizes),
        rows_below_k=int(sizes[sizes < k].sum()),
        separation=separation_of(sizes),
        strongest=None if strongest is None else links[strongest].name,
        notes=(),
    )
    notes = list(_notes(proposal))
    if strongest is not None:
        left = _alone(_group_sizes(together - hashes[strongest]))
        without = f"without it {left:,} rows ({percent(left / proposal.rows)}) would be unique"
        notes.append(f"The column {proposal.strongest!r} contributes most: {without}.")
    return replace(proposal, notes=tuple(notes))


def _doubted(column: ColumnProposal, frame: pl.DataFrame) -> ColumnProposal:
    """The column with what is doubtful about its values left to decide, where it is released."""
    doubts = [doubt for doubt in profile_columns.suspicions_of(frame, [column.name]) if doubt.is_of_values]
    if column.role in ("identifier", "entity") or not doubts:
        return column
    texts = [column.decision or "", *(doubt.text[:1].upper() + doubt.text[1:] for doubt in doubts)]
    codes = tuple(code for doubt in doubts for code in doubt.codes)
    return replace(column, decision=" ".join(filter(None, texts)), codes=codes)


def _together(hashes: Sequence[Hashes], rows: int) -> Hashes:
    """One hash for each row over all columns: a sum, so that a column can be taken away again."""
    return sum(hashes, start=np.zeros(rows, np.uint64))


def _group_sizes(hashes: Hashes) -> Sizes:
    return np.unique(hashes, return_counts=True)[1].astype(np.int64)


def _alone(sizes: Sizes) -> int:
    return int(np.count_nonzero(sizes == 1))


def _strongest(hashes: Sequence[Hashes], links: Sequence[ColumnProposal]) -> int:
    """The column without which the fewest of evenly spaced rows are unique; in a tie, the most separating."""
    step = max(1, len(hashes[0]) // _SAMPLED_ROWS)
    sampled = [part[::step] for part in hashes]
    total = _together(sampled, len(sampled[0]))
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
