# SPDX-License-Identifier: Apache-2.0
"""A spec as TOML, and one that is proposed from the data, with its reasons."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError
from anonfit.runtime.files import write_file
from anonfit.runtime.process import Stage, silent
from anonfit.spec.kinds import LONGEST
from anonfit.spec.model import ProposedSpec, Spec
from anonfit.spec.parse import parse_toml, spec_of, spec_tables, with_settings
from anonfit.tables.databases import named_source
from anonfit.tables.foreign_files import variable_labels
from anonfit.tables.layout import LAYOUT, given_layout
from anonfit.tables.profile import proposal_toml
from anonfit.tables.profile import propose as propose_roles
from anonfit.tables.profile_roles import Proposal
from anonfit.tables.reading import ReadOptions, found_layout, notices_of, read_table
from anonfit.tables.sources import is_database, without_password
from anonfit.tables.taxonomy_builders import masked
from anonfit.tables.taxonomy_files import hierarchies_beside

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else toml_value(name)


def toml_value(value: Any) -> str:
    """A plain value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {toml_value(item)}" for name, item in value.items()) + " }"
    # TOML's basic strings are JSON's, but for DEL, which JSON leaves as it is.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def to_toml(spec: Spec) -> str:
    """The spec as TOML text that reads back to the same spec; a proposal that was not changed has its reasons in it."""
    if isinstance(spec, ProposedSpec) and (proposed := _with_reasons(spec)):
        return proposed
    lines: list[str] = []
    for section, table in _with_questions(spec).items():
        if section == "columns":
            for name, column in table.items():
                lines += ["", f"[columns.{_key(name)}]"] + [
                    f"{_key(key)} = {toml_value(value)}" for key, value in column.items()
                ]
        elif isinstance(table, Mapping):
            lines += _section(section, table)
        else:
            lines.append(f"{section} = {toml_value(table)}")
    return "\n".join(lines) + "\n"


def _with_questions(spec: Spec) -> dict[str, Any]:
    """The tables of a spec, with what is left to decide."""
    tables = spec_tables(spec)
    for name, question in spec.questions.items() if isinstance(spec, ProposedSpec) else ():
        section, _, column = name.partition(".")
        table = tables.setdefault(section, {}).setdefault(column, {}) if column else tables.setdefault(section, {})
        table["decide"] = question
    return tables


def _section(section: str, table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a section, and after them those of the tables inside it."""
    yield from ("", f"[{section}]")
    inner = []
    for key, value in table.items():
        parts = value if isinstance(value, list) else [value]
        if parts and all(isinstance(part, Mapping) for part in parts):
            brackets = ("[[", "]]") if isinstance(value, list) else ("[", "]")
            inner += [(f"{section}.{key}".join(brackets), part) for part in parts]
        else:
            yield f"{_key(key)} = {toml_value(value)}"
    for heading, part in inner:
        yield from ("", heading, *(f"{_key(name)} = {toml_value(item)}" for name, item in part.items()))


# --- a spec that is proposed ------------------------------------------------------------------------------------


def propose(
    data: Any, *, k: int = 10, accept: bool = False, settings: Iterable[str] = (), stage: Stage = silent
) -> ProposedSpec:
    """Look at a table and propose a spec for it, with reasons: what `anonfit init` does.

    Args:
        data: A path, a polars, pandas or Arrow frame, or the address of a database's table.
        k: How many persons are to share every released combination.
        accept: Whether the proposal is taken as it is, unseen, which releases tell. If not, it has `questions`, and no
            release is made of it before they are settled: by hand in the file (`write_spec`), or in Python with
            `dataclasses.replace(spec, questions={})`.
        settings: How the file is laid out, where that cannot be found, such as 'data.decimal=","' or "data.sheet=May".
        stage: Told each stage as it begins.

    Returns:
        The spec.

    Example:
        >>> import anonfit as af
        >>> import polars as pl
        >>> spec = af.propose(pl.DataFrame({"age": [21, 22, 41, 42], "sex": ["f", "m", "f", "m"]}))
        >>> spec.of_role("quasi-identifier"), sorted(spec.questions)
        (('age', 'sex'), ['privacy', 'workload'])
    """
    stage("Reading")
    given = _given_layout(settings)
    source, options = named_source(data), ReadOptions(**given)
    frame = read_table(source, options)
    stage("Looking at the columns")
    proposal = _with_files(propose_roles(frame, k=k), source, frame)
    notes = (*notices_of(source, options), *proposal.notes)
    proposal = replace(proposal, notes=notes, layout={**found_layout(source, options), **given}, given=frozenset(given))
    spec, questions = _of_proposal(proposal, data, accept=accept)
    codes = [each.name for each in proposal.columns if each.taxonomy == "mask" and each.role == "quasi-identifier"]
    return ProposedSpec(
        **{part.name: getattr(spec, part.name) for part in fields(Spec)},
        questions=questions,
        proposal=proposal,
        taxonomies={name: masked(frame[name].drop_nulls().unique()) for name in codes},
    )


def _given_layout(settings: Iterable[str]) -> dict[str, Any]:
    """What settings say of the layout of a file; nothing else can be said before there is a spec."""
    settings = list(settings)
    if not settings:
        return {}
    least: dict[str, Any] = {"version": 1, "data": {"source": "."}, "privacy": {"k": 2}}
    least["columns"] = {"a": {"role": "quasi-identifier"}}
    tables = with_settings(least, settings)
    given = {name: value for name, value in tables["data"].items() if name != "source"}
    strange = [name for name in given if name not in LAYOUT]
    if strange or {**tables, "data": least["data"]} != least:
        raise RequestError(f"before there is a spec, only settings of [data] can be given: {', '.join(LAYOUT)}.")
    layout = given_layout(spec_of(tables).data)
    return {name: layout[name] for name in given}


def _with_files(proposal: Proposal, source: Any, frame: Any) -> Proposal:
    """The proposal with what a file of a statistics program says of its columns, and with hierarchies that lie beside
    the file and fit its columns.
    """
    if not isinstance(source, Path) or is_database(source):
        return proposal
    titles = {name: _line(label) for name, label in variable_labels(source).items()}
    names = [column.name for column in proposal.columns if column.role == "quasi-identifier"]
    hierarchies = hierarchies_beside(
        source, names, lambda name: {str(value) for value in frame[name].drop_nulls().unique()}
    )
    columns = (
        replace(column, title=titles.get(column.name), hierarchy=hierarchies.get(column.name))
        for column in proposal.columns
    )
    return replace(proposal, columns=tuple(columns))


def _line(text: str) -> str:
    """A text as a line that a setting may be."""
    return "".join(sign if sign.isprintable() else " " for sign in text)[:LONGEST].strip()


def _of_proposal(proposal: Proposal, data: Any, *, accept: bool) -> tuple[Spec, dict[str, str]]:
    """The spec that a proposal is the text of, and the questions in it."""
    settled, asked = (parse_toml(_proposal_text(proposal, data, accept=each), "it") for each in (True, accept))
    spec = spec_of({**settled, "decisions": "accepted" if accept else None})
    tables = {**asked, **{f"columns.{name}": column for name, column in asked["columns"].items()}}
    questions = {
        name: str(table["decide"]) for name, table in tables.items() if isinstance(table, dict) and "decide" in table
    }
    return replace(spec, data=replace(spec.data, source=data)), questions


def _proposal_text(proposal: Proposal, data: Any, *, accept: bool) -> str:
    """The text of a proposal; a frame has no name that could stand in it."""
    name = without_password(str(data)) if isinstance(data, str | Path) else ""
    text = proposal_toml(proposal, source=name, taxonomies={}, accepted=accept)
    return text if name else text.replace('\nsource = ""\n', "\n", 1)


def _with_reasons(spec: ProposedSpec) -> str | None:
    """A proposed spec as it was proposed, reasons and questions in it; None if it was changed since."""
    if spec.proposal is None:
        return None
    is_accepted = spec.decisions is not None
    proposed, questions = _of_proposal(spec.proposal, spec.data.source, accept=is_accepted)
    if spec_tables(proposed) != spec_tables(spec) or questions != dict(spec.questions):
        return None
    return _proposal_text(spec.proposal, spec.data.source, accept=is_accepted)


def write_spec(spec: Spec, path: str | Path, *, replace: bool = False) -> Path:
    """Write a spec as TOML; one that was proposed, with its reasons and its questions.

    Args:
        spec: The spec. A frame that it is of has no place in a file: give the file's name as its source.
        path: The file to write.
        replace: Whether one that is already there may be replaced.

    Returns:
        The file.
    """
    target = Path(path)
    if target.exists() and not replace:
        raise RequestError(f"{target} is already there; choose another name, or allow to replace it.")
    write_file(target, to_toml(spec), replace=replace)
    return target
