# SPDX-License-Identifier: Apache-2.0
"""`anonfit audit`: measure a file and show what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from anonfit.auditing.result import UNKNOWN_PERSONS, figure_words
from anonfit.cli.showing import print_json, results, stages, table
from anonfit.errors import RequestError

if TYPE_CHECKING:
    from rich.console import Console

    from anonfit.auditing.result import Audit, Finding
    from anonfit.auditing.tree_folder import TreeAudit
    from anonfit.spec.model import Spec


def _table(word: str) -> Any:
    """What a word of the command line names: a path, or the rows of a database's table, which the audit cannot read."""
    import polars as pl

    from anonfit.tables.databases import DatabaseSource, named_source

    source = named_source(word)
    return pl.concat(source.frames()) if isinstance(source, DatabaseSource) else source


def _of_spec(path: Path, data: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a spec says of the file's columns and asks of them; what the command line gives stands above it."""
    from anonfit.spec.columns import QUASI_IDENTIFIER
    from anonfit.spec.parse import read_spec
    from anonfit.tables.schema import Role

    spec = read_spec(path)
    request: dict[str, Any] = {
        "quasi_identifiers": list(spec.of_role(Role.QUASI_IDENTIFIER)),
        "sensitive": list(spec.of_role(Role.SENSITIVE)),
        "k": spec.privacy.k,
        "missing": spec.data.missing,
        **_demands(spec, data),
    }
    for key, role in (("entity", Role.ENTITY), ("count", Role.COUNT)):
        if spec.of_role(role):
            request[key] = spec.of_role(role)[0]
    if spec.privacy.quasi_identifiers:
        request["quasi_identifier_sets"] = [QUASI_IDENTIFIER.tables(each) for each in spec.privacy.quasi_identifiers]
    return request | {key: value for key, value in given.items() if value}


def _demands(spec: Spec, data: Any) -> dict[str, Any]:
    """What a spec asks of sensitive columns and targets, with what the file's own values say of these."""
    from anonfit.release.evidence import audited_demands, audited_targets
    from anonfit.release.run import read_source
    from anonfit.tables.schema import Role

    is_capped = spec.privacy.max_confidence < 1
    if not (spec.privacy.diversity or is_capped):
        return {}
    guarded = {name: column for name, column in spec.columns.items() if column.role in (Role.SENSITIVE, Role.TARGET)}
    # Columns of any other role are not even read.
    part = replace(spec, columns=guarded, data=replace(spec.data, default_role=Role.IDENTIFIER))
    schema, rows = read_source(part, data)
    demands: dict[str, Any] = {"diversity": audited_demands(spec, schema, rows)}
    if is_capped:
        demands |= {"max_confidence": spec.privacy.max_confidence, "targets": audited_targets(spec, schema, rows)}
    return demands


def audit_data(
    data: str,
    spec: Path | None,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str],
    k: int | None,
    source: str | None,
    other: Path | None,
    options: Mapping[str, Any],
    as_json: bool,
    html: Path | None = None,
    replace: bool = False,
) -> None:
    """Audit a release folder, any file, or a table of a database; `html` is a page to write of what was found."""
    if html is not None:
        from anonfit.report.page import check_page

        check_page(html, replace=replace)
    table, raw = _table(data), None if source is None else _table(source)
    path = table if isinstance(table, Path) else None
    if path is not None and not path.exists() and not any(sign in data for sign in "*?["):
        raise RequestError(f"{data}: there is no such file or release folder.")
    if "population" in options:
        options = {**options, "population": _table(options["population"])}
    asked: dict[str, Any] = {
        "quasi_identifiers": list(quasi_identifiers),
        "sensitive": list(sensitive),
        "k": k,
        **options,
    }
    with stages(as_json=as_json) as stage:
        stage("Auditing")
        tree = None if path is None else _audit_tree(path, spec, asked, source=raw, other=other)
        if tree is not None:
            result = tree.spans
        elif path is not None and path.is_dir():
            result = _audit_folder(path, spec, asked, source=raw, other=other)
        else:
            from anonfit.auditing.api import audit

            if spec is not None:
                asked = _of_spec(spec, table, asked)
            if not asked["quasi_identifiers"]:
                raise RequestError(
                    "which columns may an attacker know? Name them with --quasi-identifiers a,b,c, or give a spec."
                )
            result = audit(table, source=raw, other=other, **asked)
    if html is not None:
        from anonfit.report.page import save_page

        save_page(
            html, audit_page(result, Path(data.rsplit("#", 1)[-1] if path is None else data).name), replace=replace
        )
    if tree is None:
        show_audit(result, as_json=as_json)
    else:
        _show_tree(tree, as_json=as_json)
    if html is not None and not as_json:
        results().print(f"read next: {html}", markup=False, soft_wrap=True)
    if result.passed is False:
        raise typer.Exit(1)


def audit_page(audit: Audit, name: str) -> str:
    """The page of an audit, for the owner of the data."""
    from datetime import UTC, datetime

    from anonfit.metrics.groups import group_bins
    from anonfit.report.page import page

    figures, unit = audit.to_dict(), _unit(audit)
    headline, colour = {
        True: ("What was asked or claimed holds.", "good"),
        False: ("Something that was asked or claimed is missed, or could not be checked.", "bad"),
        None: ("Nothing was asked: figures only.", "fair"),
    }[audit.passed]
    sizes = np.repeat(*(np.array(part, dtype=np.int64) for part in zip(*audit.sizes.of_size.items(), strict=True)))
    needs_source = audit.source is None and (unit == "rows" or not audit.rows)
    return page(
        "audit.html",
        title=f"What {name} protects",
        headline=headline,
        colour=colour,
        facts=[("Table", name), ("Date", datetime.now(UTC).date().isoformat()), ("Rows", f"{audit.rows:,}")],
        verdict=audit.verdict,
        missed=[_missed(finding, needs_source=needs_source) for finding in audit.missed],
        audit=figures,
        sizes=figures["sizes"],
        bins=group_bins(sizes),
        unit=unit,
    )


def _audit_folder(
    folder: Path, spec: Path | None, asked: Mapping[str, Any], *, source: Any, other: Path | None
) -> Audit:
    """Audit a release folder: what it claims and, apart from that, what --k, --max-risk or a spec ask of it."""
    from anonfit.release.audits import audit_release

    given = [
        f"--{key.replace('_', '-')}" for key in ("quasi_identifiers", "sensitive", "entity", "count") if asked.get(key)
    ]
    if given:
        raise RequestError(
            f"a release folder says itself what its columns are; leave out {', '.join(given)}, or give a spec."
        )
    words = {key: asked[key] for key in ("population", "sampling_fraction", "max_risk") if key in asked}
    demands = None
    if spec is not None:
        file = next((path for path in sorted(folder.glob("data.*")) if path.is_file()), folder)
        demands = _of_spec(spec, file, {"k": asked["k"]})
    elif asked["k"] is not None:
        words["k"] = asked["k"]
    return audit_release(folder, demands=demands, source=source, other=other, **words)


def _audit_tree(
    folder: Path, spec: Path | None, asked: Mapping[str, Any], *, source: Any, other: Path | None
) -> TreeAudit | None:
    """Audit the folder of a tree: what it claims and, apart from that, what --k asks of it; None if it is none."""
    from anonfit.auditing.tree_folder import is_tree_folder

    if not is_tree_folder(folder):
        return None
    from anonfit.release.audits import audit_tree

    given = [f"--{key.replace('_', '-')}" for key, value in asked.items() if value and key != "k"]
    given += [word for word, value in (("a spec", spec), ("--with", other)) if value is not None]
    if given:
        raise RequestError(f"the folder of a tree says itself what it claims; leave out {', '.join(given)}.")
    return audit_tree(folder, source, k=asked["k"])


def _show_tree(audit: TreeAudit, *, as_json: bool) -> None:
    """Show the audit of a tree's folder to its owner."""
    if as_json:
        print_json(audit.to_dict())
        return
    screen = results()
    _show_verdict(audit.spans, screen)
    for exposed in audit.exposed:
        screen.print(f"  persons whose class can be told at {exposed.confidence:.0%}: {exposed.persons.share:.1%}")


def _number(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("share", value.get("value"))
    if isinstance(value, float):
        return f"{value:.1%}" if 0 <= value <= 1 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_audit(audit: Audit, *, as_json: bool) -> None:
    """Show an audit to its owner: all figures, not only the public ones."""
    figures = audit.to_dict()
    if as_json:
        print_json(figures)
        return
    screen = results()
    unit = _unit(audit)
    _show_verdict(audit, screen)
    if joint := figures.get("joint"):
        both = ", ".join(f"{key.replace('_', ' ')} {_number(value)}" for key, value in joint.items())
        screen.print(f"  both releases together: {both}")
    _show_diversity(figures["diversity"], screen)
    rows = [
        (column["name"], _number(column["certain"]), _number(column["likely"]), _number(column["smallest"]))
        for column in figures.get("raw_columns", ())
    ]
    if rows:
        screen.print(f"\nWhat a group reveals of columns released as they are, in {unit}:")
        screen.print(table(("column", "certain", "90 % likely", "smallest group with it"), rows, numbers=(1, 2, 3)))
    _show_risks(figures, unit, screen)


def _show_risks(figures: Mapping[str, Any], unit: str, screen: Console) -> None:
    """The risks of every attacker that was measured, and who is above the usual thresholds."""
    rows = [
        (name, figure_words(risk["highest"]), figure_words(risk["average"]))
        for name in ("prosecutor", "journalist")
        if (risk := figures[name])
    ]
    rows.append(("marketer", "–", figure_words(figures["marketer"])))
    screen.print("\nRisk that a record is found, by what an attacker knows:")
    screen.print(table(("attacker", "highest", "average"), rows, numbers=(1, 2)))
    lines = [
        (name, line["name"], f"{line['threshold']:g}", _number(line["above"]), line["source"])
        for name in ("prosecutor", "journalist")
        if figures[name]
        for line in figures[name]["above"]
    ]
    screen.print(f"\n{unit.capitalize()} whose risk is above a usual threshold:")
    screen.print(table(("attacker", "preset", "threshold", f"{unit} above", "source"), lines, numbers=(2, 3)))


def _unit(audit: Audit) -> str:
    """What the groups were counted in."""
    return "rows" if audit.counted == UNKNOWN_PERSONS else "persons"


def _show_verdict(audit: Audit, screen: Console) -> None:
    """What was asked and claimed, the groups, and each demand that is not met."""
    from rich.text import Text

    sizes, unit = audit.sizes, _unit(audit)
    style = {True: "bold green", False: "bold red", None: "bold yellow"}
    for place, sentence in enumerate(audit.verdict):
        own = style[audit.passed] if place == 0 or sentence.startswith(("Asked", "The release")) else "yellow"
        screen.print(Text(sentence, style=own), soft_wrap=True)
    for counted in audit.sets:
        words = f"{', '.join(counted.columns)}: k = {counted.sizes.smallest}, {counted.sizes.groups:,} groups"
        screen.print(Text(f"  {words}"), soft_wrap=True)
    if sizes.smallest is not None:
        smallest = f"k = {sizes.smallest}" if unit == "persons" else f"smallest group {sizes.smallest}"
        together = "all quasi-identifiers together: " if audit.sets else ""
        screen.print(
            f"  {together}{smallest}: {sizes.groups:,} groups, median {sizes.median}, largest {sizes.largest} {unit}",
            soft_wrap=True,
        )
        if audit.suppressed_rows.persons:
            screen.print(f"  rows with * in every quasi-identifier: {audit.suppressed_rows.persons:,}")
    needs_source = audit.source is None and (unit == "rows" or not audit.rows)
    for finding in audit.missed:
        screen.print(Text(f"  {_missed(finding, needs_source=needs_source)}", style="red"), soft_wrap=True)


def _missed(finding: Finding, *, needs_source: bool) -> str:
    """A demand that is not met, or not known to be: of which column, what was found and what was asked."""
    what = f"{finding.where}: {finding.name}" if finding.where else finding.name
    if finding.met is None:
        reason = finding.sentence.removeprefix("Not checked: ")
        return f"not checked: {what}: {'give --source DATA; ' if needs_source else ''}{reason[0].lower()}{reason[1:]}"
    return (
        f"missed: {what}: {finding.sentence} Found {figure_words(finding.found)}, asked {figure_words(finding.asked)}."
    )


def _show_diversity(measured: Sequence[Mapping[str, Any]], screen: Console) -> None:
    """The worst group's figure of every model that was measured."""
    rows = [
        (
            demand["column"],
            demand["model"],
            "–" if demand["found"] is None else figure_words(demand["found"]),
            "–" if demand["asked"] is None else figure_words(demand["asked"]),
            {True: "met", False: "missed", None: "" if demand["asked"] is None else "not checked"}[demand["met"]],
        )
        for demand in measured
    ]
    if rows:
        screen.print("\nDiversity of sensitive columns and targets, in the worst group:")
        screen.print(table(("column", "model", "found", "asked", ""), rows, numbers=(2, 3)))
