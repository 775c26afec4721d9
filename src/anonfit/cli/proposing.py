# SPDX-License-Identifier: Apache-2.0
"""`anonfit init`: propose a spec for a table and explain it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from anonfit.cli.showing import print_json, results, stages, table
from anonfit.errors import RequestError
from anonfit.runtime.files import write_file

if TYPE_CHECKING:
    from anonfit.spec.model import ProposedSpec
    from anonfit.tables.profile import Proposal

__all__ = ["propose_spec"]


def _masks(proposed: ProposedSpec, folder: Path) -> dict[str, str]:
    """Write the taxonomy of masked codes of each column that looks like postal codes; their files."""
    from anonfit.tables.taxonomy_files import write_taxonomy

    written = {}
    for column, taxonomy in proposed.taxonomies.items():
        name = "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in column) + ".taxonomy.csv"
        if not (folder / name).exists():
            write_taxonomy(taxonomy, folder / name)
        written[column] = name
    return written


def propose_spec(data: Path, out: Path | None, *, k: int, accept: bool, replace: bool, as_json: bool) -> None:
    """Read a table, propose a role for every column, and write the spec."""
    from anonfit.spec.write import propose
    from anonfit.tables.profile import proposal_toml

    target = out or data.with_name("spec.toml")
    if target.exists() and not replace:
        raise RequestError(f"{target} is already there; choose another --out, or add --replace.")
    if not target.parent.is_dir():
        raise RequestError(f"{target.parent}: there is no such folder to write the spec into.")
    with stages(as_json=as_json) as stage:
        proposed = propose(data, k=k, accept=accept, stage=stage)
        taxonomies = _masks(proposed, target.parent)
    assert proposed.proposal is not None
    source = data.resolve()
    name = source.relative_to(target.resolve().parent) if source.is_relative_to(target.resolve().parent) else source
    text = proposal_toml(proposed.proposal, source=str(name), taxonomies=taxonomies, accepted=accept)
    write_file(target, text, replace=replace)
    _show(proposed.proposal, target, taxonomies, accepted=accept, as_json=as_json)


def _show(proposal: Proposal, target: Path, taxonomies: dict[str, str], *, accepted: bool, as_json: bool) -> None:
    if as_json:
        columns = [
            {
                "name": column.name,
                "role": column.role,
                "type": column.type,
                "reason": column.reason,
                "decision": column.decision,
            }
            for column in proposal.columns
        ]
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
    screen.print(
        table(
            ("column", "role", "why"),
            [(column.name, column.role, column.reason) for column in proposal.columns],
        )
    )
    screen.print()
    for note in proposal.notes:
        screen.print(Text(note), soft_wrap=True)
    for column, file in taxonomies.items():
        screen.print(
            Text(
                f"{file} groups the codes of '{column}' by their first digits. A taxonomy is published with the "
                "release: "
                "let it list all codes there are, not only those of the table, then uncomment it in the spec."
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
