# SPDX-License-Identifier: Apache-2.0
"""What `anonfit init` needs: a table's profile, a role for every column with its reason, and a spec.toml to read, edit
and run.

Reasons are comments of the spec; no value of a record is written, only names, roles, types and date formats.
`profile_values` measures, `profile_names` reads names, `profile_roles` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import wrap

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError, listed
from anonfit.tables.formats import FORMATS
from anonfit.tables.profile_names import meaning_of
from anonfit.tables.profile_roles import (
    RAW_LIMIT,
    ColumnProposal,
    Proposal,
    as_entity,
    as_key,
    as_only_one,
    could_be_entity,
    percent,
    propose_column,
    with_doubts,
)
from anonfit.tables.profile_values import MISSING_TEXTS, ColumnProfile, profile_column, separation_of
from anonfit.tables.suspicions import suspicions_of

_WIDTH = 108
_DIVERSITY = (3.0, 2.0, 1.5, 1.2, 1.1)
_USUAL_MISSING = ("", "?", "NA")
_LEFT_OUT = ("identifier", "entity")
_UNTYPED = (*_LEFT_OUT, "count", "sample-weight")  # roles whose column has no type to declare


def proposal_toml(proposal: Proposal, *, source: str, taxonomies: Mapping[str, str], accepted: bool = False) -> str:
    """The proposal as the text of a spec, version 1.

    Args:
        proposal: What `propose` made of the table.
        source: The data file as the spec is to name it, relative to the spec.
        taxonomies: Taxonomy files by column, relative to the spec; the other columns have none.
        accepted: Whether the proposal is taken as it is, without its questions; the spec then says so.

    Returns:
        TOML with a comment above each column that says why it has its role. What is left to decide stands under the
        key `decide`: no release is made of a spec that has one.
    """
    unknown = set(taxonomies) - {column.name for column in proposal.columns}
    if unknown:
        raise DataError(f"There are taxonomies for columns that the table has not: {listed(sorted(unknown))}.")
    lines = [*_opening(proposal, accepted=accepted), *_data(proposal, source)]
    for column in proposal.columns:
        lines += ["", *_column(column, taxonomies.get(column.name))]
    lines += ["", *_privacy(proposal), "", *_workload(proposal), "", *_rest()]
    return "\n".join(line for line in lines if not (accepted and line.startswith("decide = "))) + "\n"


def _opening(proposal: Proposal, *, accepted: bool) -> Iterator[str]:
    yield from _comment(
        "Proposed by anonfit init. Nobody has checked it: read the reason above each column, mend its role "
        "and type, and settle every question under decide: nothing is released until these lines are removed. "
        "No column is proposed insensitive; only you can know that."
    )
    for note in proposal.notes:
        yield from _comment(note)
    yield "version = 1"
    if accepted:
        yield 'decisions = "accepted"  # the proposals were taken unseen; a release tells that'


def _decide(question: str) -> str:
    return f"decide = {_string(question)}"


def _data(proposal: Proposal, source: str) -> Iterator[str]:
    seen = {text for column in proposal.columns for text in column.profile.missing_texts}
    texts = [text for text in MISSING_TEXTS if text in seen or text in _USUAL_MISSING]
    yield ""
    yield "[data]"
    yield f"source = {_string(source)}"
    yield f"missing = [{', '.join(map(_string, texts))}]  # texts read as missing"
    yield from (f"{name} = {_setting(value)}  # found; check it" for name, value in proposal.layout.items())
    yield 'missing_policy = "category"  # category | drop | error'


def _column(column: ColumnProposal, taxonomy: str | None) -> Iterator[str]:
    yield from _comment(column.reason)
    yield f"[columns.{_key(column.name)}]"
    questions = [column.decision] if column.decision else []
    if taxonomy is not None and column.role == "quasi-identifier":
        questions.append("Should its codes be grouped by their first signs? See the taxonomy below.")
    if questions:
        yield _decide(" ".join(questions))
    yield f"role = {_string(column.role)}"
    if column.role not in _UNTYPED:
        yield f"type = {_string(column.type)}"
    if column.codes:
        yield f"# missing = [{', '.join(map(_string, column.codes))}]  # if these values mean missing"
    if column.role not in _UNTYPED and column.date_format:
        yield f"date_format = {_string(column.date_format)}"
    if column.role == "quasi-identifier":
        yield from _generalization(column, taxonomy)
    elif column.role not in _UNTYPED and column.profile.distinct_share > RAW_LIMIT:
        yield "# release = true  # nearly all its values differ; whoever knows one finds the row"


def _generalization(column: ColumnProposal, taxonomy: str | None) -> Iterator[str]:
    if column.hierarchy is not None:
        typed = "" if column.type == "nominal" else ', and write type = "nominal"'
        yield f"# taxonomy = {_string(column.hierarchy)}  # it lies beside the data and has all values: use it{typed}"
    elif taxonomy is not None:
        yield f"# taxonomy = {_string(taxonomy)}"
        yield from _comment(
            "The taxonomy groups codes by their first signs. It is published with the release, and it lists the "
            "table's own codes: let it list all codes there are, then use it."
        )
    elif column.taxonomy == "mask":
        yield '# taxonomy = "…"  # recommended: codes masked from the right, one digit a level'
    elif column.type == "nominal":
        yield '# taxonomy = "…"  # a file of groups of its values; without it, values are joined freely'
    elif column.type == "continuous" and (meaning := meaning_of(column.name)) and meaning.says == "an age":
        yield "# domain = [0, 120]  # closes the end intervals: put in what is possible, not what occurs"
    elif column.type in ("continuous", "date"):
        yield "# A domain, such as [lowest possible, highest possible], closes the end intervals."


def _privacy(proposal: Proposal) -> Iterator[str]:
    yield "[privacy]"
    yield _decide(f"Is k = {proposal.k} enough for who will get the release? Is what is asked of sensitive columns?")
    yield f"k = {proposal.k}  # every released group has at least so many persons"
    yield "suppression_limit = 0.0  # fraction of the records that may be withheld"
    for column in proposal.columns:
        if column.role == "sensitive":
            yield from _demand(column)


def _demand(column: ColumnProposal) -> Iterator[str]:
    """What is asked of a sensitive column: names half as mixed as in the whole table, numbers not far from it."""
    yield ""
    yield from _comment(f"Without this a group may all have the same {_plain(column.name)}.")
    yield "[[privacy.diversity]]"
    yield f"column = {_string(column.name)}"
    if column.type == "nominal":
        half = (column.profile.effective + 1) / 2
        mixed = next((level for level in _DIVERSITY if level <= half), None)
        yield 'model = "distinct-l"' if mixed is None else 'model = "entropy-l"'
        yield f"l = {2 if mixed is None else mixed}"
    else:
        yield 'model = "t-closeness"'
        yield "t = 0.3"


def _workload(proposal: Proposal) -> Iterator[str]:
    targets = [_string(column.name) for column in proposal.columns if column.role == "target"]
    yield "[workload]"
    if not targets:
        yield _decide(
            "What is the release for? Without a column of role target every quasi-identifier counts the same."
        )
        return
    yield _decide("What is the release for? It is made to predict these columns.")
    yield f"targets = [{', '.join(targets)}]"


def _rest() -> Iterator[str]:
    yield "[method]"
    yield 'algorithm = "mondrian"'
    yield ""
    yield "[output]"
    yield f'format = "parquet"  # {" | ".join(FORMATS)}'
    yield 'values = "labels"  # labels | bounds | representative'


def _comment(text: str) -> Iterator[str]:
    for line in wrap(_plain(text), _WIDTH, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"


def _plain(text: str) -> str:
    """Control characters would end a comment or make it invalid, so they are written as escapes."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _string(name)


def _setting(value: str | int) -> str:
    return str(value) if isinstance(value, int) else _string(value)


def _string(text: str) -> str:
    """A TOML basic string; everything that is not plainly printable is escaped."""
    return '"' + "".join(_escaped(sign) for sign in text) + '"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return "\\" + sign
    if sign.isprintable():
        return sign
    return f"\\u{ord(sign):04X}" if ord(sign) <= 0xFFFF else f"\\U{ord(sign):08X}"


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
        size = f"{frame.height} rows and {frame.width} columns"
        raise DataError(f"The table has {size}, but roles are proposed from data: give a table with rows.")
    columns = _with_one_of_each(_with_entity(tuple(propose_column(column) for column in profile(frame))))
    columns = tuple(_doubted(column, frame) for column in columns)
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
    left = _alone(_group_sizes(together - hashes[strongest]))
    without = f"without it {left:,} rows ({percent(left / proposal.rows)}) would be unique"
    contribution = f"The column {proposal.strongest!r} contributes most: {without}."
    return replace(proposal, notes=(*_notes(proposal), contribution))


def _doubted(column: ColumnProposal, frame: pl.DataFrame) -> ColumnProposal:
    """The column with what is doubtful about its values."""
    found = [doubt for doubt in suspicions_of(frame, [column.name]) if doubt.is_of_values]
    return with_doubts(column, [doubt.text for doubt in found], tuple(code for doubt in found for code in doubt.codes))


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
