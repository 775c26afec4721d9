# SPDX-License-Identifier: Apache-2.0
"""`anonfit init` and `anonfit workload`: write a spec that is proposed from a table, or one that a query log taught."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.cli.showing import print_json, results, stages, table
from anonfit.errors import RequestError
from anonfit.runtime.files import write_file

if TYPE_CHECKING:
    from anonfit.spec.model import ProposedSpec, Spec
    from anonfit.tables.profile_roles import Proposal
    from anonfit.workload.logs.learning import LearnedWorkload
    from anonfit.workload.logs.tallies import Unread


def _masks(proposed: ProposedSpec, folder: Path) -> dict[str, str]:
    """Write a taxonomy of masked codes for each column that looks like postal codes; the file of each column."""
    from anonfit.tables.taxonomy_files import write_taxonomy

    written = {}
    for column, taxonomy in proposed.taxonomies.items():
        name = "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in column) + ".taxonomy.csv"
        if not (folder / name).exists():
            write_taxonomy(taxonomy, folder / name)
        written[column] = name
    return written


def _place(path: Path, *, replace: bool) -> Path:
    """Where a spec is to be written; refused before any work where it cannot be."""
    if path.exists() and not replace:
        raise RequestError(f"{path} is already there; choose another --out, or add --replace.")
    if not path.parent.is_dir():
        raise RequestError(f"{path.parent}: there is no such folder to write the spec into.")
    return path


def _written_source(data: str, target: Path) -> str:
    """The source as a spec names it: of a file, the path from the spec's folder, where it lies in it."""
    from anonfit.tables.addresses import FILES, divided, is_database

    kind, _, rest = data.partition(":")
    if not is_database(data):
        kind, rest = "", data
    elif kind not in FILES:
        return data
    path, table = divided(data) if kind else (data, None)
    source = Path(path.partition(":")[2].removeprefix("//") if kind else rest).resolve()
    folder = target.resolve().parent
    name = str(source.relative_to(folder) if source.is_relative_to(folder) else source)
    return (f"{kind}:" if kind else "") + name + (f"#{table}" if table else "")


def propose_spec(data: str, out: Path | None, *, k: int, accept: bool, replace: bool, as_json: bool) -> None:
    """Read a table, propose a role for every column, and write the spec."""
    from anonfit.spec.write import propose
    from anonfit.tables.addresses import is_database
    from anonfit.tables.profile import proposal_toml

    beside = Path("spec.toml") if is_database(data) else Path(data).with_name("spec.toml")
    target = _place(out or beside, replace=replace)
    with stages(as_json=as_json) as stage:
        proposed = propose(data, k=k, accept=accept, stage=stage)
        taxonomies = _masks(proposed, target.parent)
    assert proposed.proposal is not None
    source = _written_source(data, target)
    text = proposal_toml(proposed.proposal, source=source, taxonomies=taxonomies, accepted=accept)
    write_file(target, text, replace=replace)
    _show_proposal(proposed.proposal, target, taxonomies, accepted=accept, as_json=as_json)


def _show_proposal(
    proposal: Proposal, target: Path, taxonomies: dict[str, str], *, accepted: bool, as_json: bool
) -> None:
    if as_json:
        names = ("name", "role", "type", "reason", "decision")
        columns = [{name: getattr(column, name) for name in names} for column in proposal.columns]
        print_json(
            {
                "spec": str(target),
                "columns": columns,
                "rows": proposal.rows,
                "unique_rows": proposal.unique_rows,
                "taxonomies": taxonomies,
                "accepted": accepted,
            }
        )
        return
    from rich.text import Text

    screen = results()
    rows = [(column.name, column.role, column.reason) for column in proposal.columns]
    screen.print(table(("column", "role", "why"), rows))
    screen.print()
    for note in proposal.notes:
        screen.print(Text(note), soft_wrap=True)
    for column, file in taxonomies.items():
        screen.print(
            Text(
                f"{file} groups the codes of '{column}' by their first digits. A taxonomy is published with the "
                "release: let it list all codes there are, not only those of the table, then uncomment it in the spec."
            ),
            soft_wrap=True,
        )
    screen.print(
        Text("Wrote ", style="bold green")
        + Text(
            f"{target}, its proposals accepted unseen, which a release will tell; then: anonfit run {target}"
            if accepted
            else f"{target}: read it, settle what stands under decide, remove these lines, then: anonfit run {target}"
        ),
        soft_wrap=True,
    )


SHOWN = 10
"""Selections, reasons and statements that a terminal shows; JSON has more."""
LONGEST = 70
"""Signs of a selection or statement that are shown."""


def learn_workload(
    logs: Sequence[Path],
    path: Path,
    out: Path | None,
    *,
    options: Mapping[str, Any],
    replace: bool,
    as_json: bool,
) -> None:
    """Learn from logs and write the spec."""
    from anonfit.release.bind import source_of
    from anonfit.release.run import read_source
    from anonfit.spec.learning import learn_from_log, learned_text
    from anonfit.spec.model import QueryLogSpec
    from anonfit.spec.parse import read_spec
    from anonfit.tables.persons import persons_in
    from anonfit.workload.logs.merging import rows_of_frame

    target = _place(out or path.with_name("learned.toml"), replace=replace)
    spec = read_spec(path)
    folder = spec.folder or Path()
    log = QueryLogSpec(tuple(os.path.relpath(file.resolve(), folder) for file in logs), **options)
    with stages(as_json=as_json) as stage:
        stage("Reading the table")
        schema, frame = read_source(spec, source_of(spec))
        stage("Reading the log")
        learned = learn_from_log(spec, log, schema.columns, rows_of_frame(frame, persons_in(schema, frame).of_groups))
    text = learned_text(spec, log, learned, original=path.read_text(encoding="utf-8"), folder=target.resolve().parent)
    write_file(target, text, replace=replace)
    if as_json:
        print_json(_as_json(learned, target))
    else:
        _show_learned(learned, target, spec, log.dialect)


def _as_json(learned: LearnedWorkload, target: Path) -> dict[str, Any]:
    tally = learned.tally
    return {
        "spec": str(target),
        "statements": tally.statements,
        "queries": tally.queries,
        "other_statements": tally.others,
        "unread": tally.unread,
        "unread_statements": [_unread(statement) for statement in tally.listed],
        "selecting_queries": tally.selecting,
        "tables": dict(tally.tables.most_common()),
        "selections": [
            {"where": selection.where, "weight": selection.weight, "queries": selection.times, "exactly": selection.own}
            for selection in learned.selections
        ],
        "selections_of_too_few": learned.few,
        "weights": {weighted.column: weighted.weight for weighted in learned.weights},
        "unusable": dict(learned.tally.unusable.most_common()),
    }


def _unread(statement: Unread) -> dict[str, Any]:
    return {
        "file": statement.file,
        "line": statement.line,
        "times": statement.times,
        "why": statement.why,
        "statement": statement.outline[:LONGEST],
    }


def _show_learned(learned: LearnedWorkload, target: Path, spec: Spec, dialect: str | None) -> None:
    from rich.text import Text

    from anonfit.spec.learning import as_clause, queries

    screen, tally = results(), learned.tally
    screen.print(
        Text(
            f"{tally.statements:,} statements: {tally.queries:,} queries, {tally.others:,} that ask nothing, "
            f"{tally.unread:,} that could not be read. {tally.selecting:,} queries select rows in a usable way."
        ),
        soft_wrap=True,
    )
    if learned.selections:
        rows = [
            (selection.weight, f"{selection.times:,}", _short(selection.where))
            for selection in learned.selections[:SHOWN]
        ]
        screen.print(table(("weight", "queries", "selection"), rows, numbers=(0, 1)))
        _more(len(learned.selections) - SHOWN, "selections")
    if learned.weights:
        used = sorted(learned.weights, key=lambda weighted: -weighted.weight)
        screen.print(
            table(("weight", "column"), [(weighted.weight, weighted.column) for weighted in used], numbers=(0,))
        )
    if not learned.selections and not learned.weights:
        named = ", ".join(name for name, _ in tally.tables.most_common(SHOWN)) or "none"
        words = f"Nothing was learned: no query uses a quasi-identifier. Tables that queries name: {named}."
        screen.print(Text(words, style="yellow"), soft_wrap=True)
    if learned.few:
        screen.print(Text(f"{learned.few:,} selections ask for fewer than k persons and were left out."))
    for reason, times in tally.unusable.most_common(SHOWN):
        screen.print(
            Text(f"not usable in {queries(times)}: a condition {as_clause(reason)}", style="yellow"), soft_wrap=True
        )
    for statement in tally.listed[:SHOWN]:
        where = f"{statement.file}, line {statement.line} ({statement.times:,} times)"
        line = f"not read: {where}: {statement.why} {_short(statement.outline)}"
        screen.print(Text(line.rstrip(), style="yellow"), soft_wrap=True)
    _more(len(tally.listed) - SHOWN, "kinds of statements that were not read")
    if tally.unread and dialect is None:
        screen.print(Text("If they are SQL of some database, name it: --dialect postgres, mysql, tsql or such."))
    if not (spec.method.objective.uses_selections or spec.method.objective.needs == "weights"):
        words = f"The spec's criterion is '{spec.method.criterion}', which does not use selections: write auto."
        screen.print(Text(words, style="yellow"), soft_wrap=True)
    screen.print(
        Text("Wrote ", style="bold green") + Text(f"{target}: read it, edit it, then: anonfit run {target}"),
        soft_wrap=True,
    )


def _more(number: int, what: str) -> None:
    if number > 0:
        results().print(f"… and {number:,} more {what}")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
