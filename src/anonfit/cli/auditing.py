# SPDX-License-Identifier: Apache-2.0
"""`anonfit audit`: measure a file and show what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from anonfit.cli.showing import console, print_json, stages, table
from anonfit.errors import RequestError

if TYPE_CHECKING:
    from anonfit.auditing import Audit

__all__ = ["audit_data"]


def _of_spec(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a spec says of the file's columns, under what the command line says."""
    from anonfit.spec_reading import read_spec
    from anonfit.tables.schema import Role

    spec = read_spec(path)
    found: dict[str, Any] = {
        "quasi_identifiers": list(spec.of_role(Role.QUASI_IDENTIFIER)),
        "sensitive": list(spec.of_role(Role.SENSITIVE)),
        "k": spec.privacy.k,
        "missing": spec.data.missing,
    }
    for key, role in (("entity", Role.ENTITY), ("count", Role.COUNT)):
        if spec.of_role(role):
            found[key] = spec.of_role(role)[0]
    return found | {key: value for key, value in given.items() if value}


def audit_data(
    data: Path,
    spec: Path | None,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str],
    k: int | None,
    source: Path | None,
    other: Path | None,
    options: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Audit a release folder or any file."""
    if not data.exists() and not any(sign in str(data) for sign in "*?["):
        raise RequestError(f"{data}: there is no such file or release folder.")
    asked: dict[str, Any] = {
        "quasi_identifiers": list(quasi_identifiers),
        "sensitive": list(sensitive),
        "k": k,
        **options,
    }
    with stages(as_json=as_json) as stage:
        stage("Auditing")
        if data.is_dir():
            if quasi_identifiers or spec is not None:
                raise RequestError(
                    "a release folder says itself what its columns are; leave out the spec and --quasi-identifiers."
                )
            from anonfit.auditing import audit_release

            extra = {
                key: value for key, value in options.items() if key in ("population", "sampling_fraction", "max_risk")
            }
            found = audit_release(data, source=source, other=other, **extra)
        else:
            from anonfit.auditing import audit

            if spec is not None:
                asked = _of_spec(spec, asked)
            if not asked["quasi_identifiers"]:
                raise RequestError(
                    "which columns may an attacker know? Name them with --quasi-identifiers a,b,c, or give a spec."
                )
            found = audit(data, source=source, other=other, **asked)
    show_audit(found, as_json=as_json)
    if not found.passed:
        raise typer.Exit(1)


def _number(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("share", value.get("value"))
    if isinstance(value, float):
        return f"{value:.1%}" if 0 <= value <= 1 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_audit(found: Audit, *, as_json: bool) -> None:
    """Show an audit to its owner: all figures, not only the public ones."""
    figures = found.to_dict()
    if as_json:
        print_json(figures)
        return
    from rich.text import Text

    screen = console()
    sizes = figures["sizes"]
    screen.print(
        Text(
            "Demands met" if found.passed else "A demand is missed",
            style="bold green" if found.passed else "bold red",
        )
    )
    screen.print(
        f"  k = {sizes['smallest']}: {sizes['groups']:,} groups, median {sizes['median']}, largest "
        f"{sizes['largest']} persons"
    )
    missed = [finding for finding in figures["findings"] if finding["met"] is False]
    for finding in missed:
        screen.print(Text(f"  missed: {finding['sentence']}", style="red"), soft_wrap=True)
    if joint := figures.get("joint"):
        told = ", ".join(f"{key.replace('_', ' ')} {_number(value)}" for key, value in joint.items())
        screen.print(f"  both releases together: {told}")
    rows = [
        (column["name"], _number(column["certain"]), _number(column["likely"]), _number(column["smallest"]))
        for column in figures.get("raw_columns", ())
    ]
    if rows:
        screen.print("\nWhat a group reveals of columns released as they are, in persons:")
        screen.print(table(("column", "certain", "90 % likely", "smallest group with it"), rows, numbers=(1, 2, 3)))
    risk = figures.get("prosecutor")
    if risk:
        lines = [
            (line["name"], f"{line['threshold']:g}", _number(line["above"]), line["source"]) for line in risk["above"]
        ]
        screen.print(
            "\nPersons whose record is found with a higher chance than a threshold (the attacker knows they are "
            "in the file):"
        )
        screen.print(table(("preset", "threshold", "persons above", "source"), lines, numbers=(1, 2)))
