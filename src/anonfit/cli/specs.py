# SPDX-License-Identifier: Apache-2.0
"""`anonfit init` and `anonfit workload`: write a spec that is proposed from a table, or one that a query log taught."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from anonfit.cli.options import Json, Replace
from anonfit.cli.showing import print_json, results, say, stages, table
from anonfit.errors import DataError, RequestError
from anonfit.runtime.files import write_file
from anonfit.tables.sources import endings

if TYPE_CHECKING:
    from anonfit.spec.model import ProposedSpec, Spec
    from anonfit.tables.profile_roles import Proposal
    from anonfit.workload.logs.learning import LearnedWorkload


IN_SPEC = re.compile(r"\[data\]|data\.[a-z]")
"""What messages on files have that name a setting to write into the spec."""


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
    from anonfit.tables.sources import FILES, divided, is_database

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


def init(
    data: Annotated[str, Argument(help=f"The table: {endings(packed=True)}, or ADDRESS#TABLE of a database.")],
    out: Annotated[Path | None, Option(help="The spec to write; spec.toml beside the data if not given.")] = None,
    k: Annotated[int, Option(help="The k to count rows against and to propose.", min=1)] = 10,
    accept: Annotated[
        bool, Option("--accept", help="Take the proposals as they are, unseen; releases tell that.")
    ] = False,
    settings: Annotated[
        list[str] | None, Option("--set", help="How the file is laid out, such as data.sheet=May; goes into the spec.")
    ] = None,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Look at a table and propose a spec, with reasons.

    What is left to decide stands in the spec under the key decide: run refuses it until these lines are removed.
    """
    from anonfit.spec.write import propose
    from anonfit.tables.profile import proposal_toml
    from anonfit.tables.sources import is_database

    beside = Path("spec.toml") if is_database(data) else Path(data).parent / "spec.toml"
    target = _place(out or beside, replace=replace)
    with stages(as_json=as_json) as stage:
        try:
            proposed = propose(data, k=k, accept=accept, settings=settings or (), stage=stage)
        except DataError as error:
            if not IN_SPEC.search(str(error)):
                raise
            raise DataError(f"{error} There is no spec yet: give it as --set data.KEY=VALUE.") from None
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
    rows = [(column.name, column.role, column.reason) for column in proposal.columns]
    results().print(table(("column", "role", "why"), rows))
    say()
    for note in proposal.notes:
        say(note)
    for column, file in taxonomies.items():
        say(
            f"{file} groups the codes of '{column}' by their first digits. A taxonomy is published with the release: "
            "let it list all codes there are, not only those of the table, then uncomment it in the spec."
        )
    todo = ": read it, settle what stands under decide, remove these lines"
    if accepted:
        todo = ", its proposals accepted unseen, which a release will tell"
    say(("Wrote ", "bold green"), f"{target}{todo}{';' if accepted else ','} then: anonfit run {target}")


SHOWN = 10
"""Selections, reasons and statements that a terminal shows; JSON has more."""
LONGEST = 70
"""Signs of a selection or statement that are shown."""


def workload(
    logs: Annotated[list[Path], Argument(help="Query logs: files of SQL statements, which are never executed.")],
    spec: Annotated[Path, Option(help="The spec of the table that the queries are about.")],
    out: Annotated[Path | None, Option(help="The spec to write; learned.toml beside the spec if not given.")] = None,
    dialect: Annotated[
        str | None, Option(help="Of the SQL: postgres, mysql, tsql, snowflake, bigquery, duckdb and others.")
    ] = None,
    table: Annotated[
        str | None, Option(help="What queries call the table; without it any table that has its columns.")
    ] = None,
    selections: Annotated[int, Option(help="Selections to keep at most.", min=0, max=1000)] = 50,
    minterms: Annotated[
        int, Option(help="Keep so many min-terms at most in place of selections.", min=0, max=1000)
    ] = 0,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Learn selections and weights from a query log.

    Writes a copy of the spec whose workload says what was learned, with the evidence for every line.
    """
    from anonfit.release.bind import source_of
    from anonfit.release.run import read_source
    from anonfit.spec.learning import learn_from_log, learned_text
    from anonfit.spec.model import QueryLogSpec
    from anonfit.spec.parse import read_spec
    from anonfit.tables.schema import persons_in
    from anonfit.workload.logs.merging import rows_of_frame

    target = _place(out or spec.with_name("learned.toml"), replace=replace)
    asked = read_spec(spec)
    paths = tuple(os.path.relpath(file.resolve(), asked.folder or Path()) for file in logs)
    log = QueryLogSpec(paths, dialect=dialect, table=table, selections=selections, minterms=minterms)
    with stages(as_json=as_json) as stage:
        stage("Reading the table")
        schema, frame = read_source(asked, source_of(asked))
        stage("Reading the log")
        learned = learn_from_log(asked, log, schema.columns, rows_of_frame(frame, persons_in(schema, frame).of_groups))
    text = learned_text(asked, log, learned, original=spec.read_text(encoding="utf-8"), folder=target.resolve().parent)
    write_file(target, text, replace=replace)
    if as_json:
        print_json(_as_json(learned, target))
    else:
        _show_learned(learned, target, asked, dialect)


def _as_json(learned: LearnedWorkload, target: Path) -> dict[str, Any]:
    tally = learned.tally
    return {
        "spec": str(target),
        "statements": tally.statements,
        "queries": tally.queries,
        "other_statements": tally.others,
        "unread": tally.unread,
        "unread_statements": [
            {name: getattr(statement, name) for name in ("file", "line", "times", "why")}
            | {"statement": statement.outline[:LONGEST]}
            for statement in tally.listed
        ],
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


def _show_learned(learned: LearnedWorkload, target: Path, spec: Spec, dialect: str | None) -> None:
    from anonfit.spec.learning import as_clause, queries

    screen, tally = results(), learned.tally
    say(
        f"{tally.statements:,} statements: {tally.queries:,} queries, {tally.others:,} that ask nothing, "
        f"{tally.unread:,} that could not be read. {tally.selecting:,} queries select rows in a usable way."
    )
    if learned.selections:
        rows = [(each.weight, f"{each.times:,}", _short(each.where)) for each in learned.selections[:SHOWN]]
        screen.print(table(("weight", "queries", "selection"), rows, numbers=(0, 1)))
        _more(len(learned.selections) - SHOWN, "selections")
    if learned.weights:
        used = sorted(learned.weights, key=lambda weighted: -weighted.weight)
        screen.print(table(("weight", "column"), [(each.weight, each.column) for each in used], numbers=(0,)))
    if not learned.selections and not learned.weights:
        named = ", ".join(name for name, _ in tally.tables.most_common(SHOWN)) or "none"
        say((f"Nothing was learned: no query uses a quasi-identifier. Tables that queries name: {named}.", "yellow"))
    if learned.few:
        say(f"{learned.few:,} selections ask for fewer than k persons and were left out.")
    for reason, times in tally.unusable.most_common(SHOWN):
        say((f"not usable in {queries(times)}: a condition {as_clause(reason)}", "yellow"))
    for statement in tally.listed[:SHOWN]:
        where = f"{statement.file}, line {statement.line} ({statement.times:,} times)"
        say((f"not read: {where}: {statement.why} {_short(statement.outline)}".rstrip(), "yellow"))
    _more(len(tally.listed) - SHOWN, "kinds of statements that were not read")
    if tally.unread and dialect is None:
        say("If they are SQL of some database, name it: --dialect postgres, mysql, tsql or such.")
    if not (spec.method.objective.uses_selections or spec.method.objective.needs == "weights"):
        words = f"The spec's criterion is '{spec.method.criterion}', which does not use selections: write auto."
        say((words, "yellow"))
    say(("Wrote ", "bold green"), f"{target}: read it, edit it, then: anonfit run {target}")


def _more(number: int, what: str) -> None:
    if number > 0:
        say(f"… and {number:,} more {what}")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
