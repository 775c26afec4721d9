# SPDX-License-Identifier: Apache-2.0
"""`anonfit audit`: measure a file and show what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from anonfit.auditing.result import UNKNOWN_PERSONS, figure_words
from anonfit.cli.options import Json, Replace, names_of
from anonfit.cli.showing import print_json, results, say, stages, table
from anonfit.errors import RequestError

if TYPE_CHECKING:
    from anonfit.auditing.result import Audit
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
    from anonfit.release.request import audited_demands, audited_targets
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


def audit(
    data: Annotated[str, Argument(help="A release folder, the folder of a tree, a file, or ADDRESS#TABLE.")],
    spec: Annotated[Path | None, Argument(help="A spec: what the file's columns are, and what is asked.")] = None,
    quasi_identifiers: Annotated[
        str | None, Option("--quasi-identifiers", help="Columns an attacker may know: a,b,c.")
    ] = None,
    sensitive: Annotated[str | None, Option(help="Sensitive columns: a,b.")] = None,
    k: Annotated[int | None, Option(help="The k that must hold.", min=1)] = None,
    entity: Annotated[str | None, Option(help="Column whose different values are the persons.")] = None,
    count: Annotated[str | None, Option(help="Column with the persons a row stands for.")] = None,
    source: Annotated[str | None, Option(help="The raw table, a file or ADDRESS#TABLE: compared row for row.")] = None,
    other: Annotated[Path | None, Option("--with", help="Another release of the same table.")] = None,
    population: Annotated[str | None, Option(help="The population the table was drawn from.")] = None,
    sampling_fraction: Annotated[float | None, Option(hidden=True, help="Refused, with the reason.")] = None,
    max_risk: Annotated[
        str | None, Option(help="Highest acceptable risk: a number such as 0.05, or tools, ema-0070 or strict.")
    ] = None,
    html: Annotated[Path | None, Option(help="A page to write, such as audit.html; for the owner only.")] = None,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Measure what a file really protects.

    Of a release, says whether it holds what it claims and, apart from that, what is asked with --k, --max-risk or a
    spec; of any other file, whether it holds what is asked. Where nothing is asked there are only figures. Exit status
    0 if all of it is met or nothing was asked, 1 if something is missed or could not be checked.
    """
    if html is not None:
        from anonfit.report.page import check_page

        check_page(html, replace=replace)
    table, raw = _table(data), None if source is None else _table(source)
    path = table if isinstance(table, Path) else None
    if path is not None and not path.exists() and not any(sign in data for sign in "*?["):
        raise RequestError(f"{data}: there is no such file or release folder.")
    options = {
        "entity": entity,
        "count": count,
        "population": None if population is None else _table(population),
        "sampling_fraction": sampling_fraction,
        "max_risk": max_risk,
    }
    asked: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    asked |= {"quasi_identifiers": names_of(quasi_identifiers), "sensitive": names_of(sensitive), "k": k}
    if max_risk is not None:
        with suppress(ValueError):  # the name of a threshold
            asked["max_risk"] = float(max_risk)
    with stages(as_json=as_json) as stage:
        stage("Auditing")
        tree = None if path is None else _audit_tree(path, spec, asked, source=raw, other=other)
        if tree is not None:
            result = tree.spans
        elif path is not None and path.is_dir():
            result = _audit_folder(path, spec, asked, source=raw, other=other)
        else:
            from anonfit.auditing import api

            if spec is not None:
                asked = _of_spec(spec, table, asked)
            if not asked["quasi_identifiers"]:
                raise RequestError(
                    "which columns may an attacker know? Name them with --quasi-identifiers a,b,c, or give a spec."
                )
            result = api.audit(table, source=raw, other=other, **asked)
    if html is not None:
        from anonfit.report.page import save_page

        name = Path(data.rsplit("#", 1)[-1] if path is None else data).name
        save_page(html, _audit_page(result, name), replace=replace)
    if as_json:
        print_json((tree or result).to_dict())
    else:
        _show_verdict(result)
        if tree is None:
            _show_figures(result)
        for exposed in () if tree is None else tree.exposed:
            say(f"  persons whose class can be told at {exposed.confidence:.0%}: {exposed.persons.share:.1%}")
        if html is not None:
            say(f"read next: {html}")
    if result.passed is False:
        raise Exit(1)


def _audit_page(audit: Audit, name: str) -> str:
    """The page of an audit, for the owner of the data."""
    from datetime import UTC, datetime

    import numpy as np

    from anonfit.metrics.attack import group_bins
    from anonfit.report.page import headline, page

    figures = audit.to_dict()
    words = {
        False: {"kind": "bad", "words": "Something that was asked or claimed is missed, or could not be checked."},
        None: {"kind": "fair", "words": "Nothing was asked: figures only."},
    }
    verdict_line = headline(figures, "What was asked or claimed") if audit.passed else words[audit.passed]
    sizes = np.repeat(*(np.array(part, dtype=np.int64) for part in zip(*audit.sizes.of_size.items(), strict=True)))
    return page(
        "audit.html",
        title=f"What {name} protects",
        headline=verdict_line,
        facts=[("Table", name), ("Date", datetime.now(UTC).date().isoformat()), ("Rows", f"{audit.rows:,}")],
        verdict=audit.verdict,
        missed=list(_missed(audit)),
        audit=figures,
        sizes=figures["sizes"],
        bins=group_bins(sizes),
        unit=_unit(audit),
    )


def _audit_folder(
    folder: Path, spec: Path | None, asked: Mapping[str, Any], *, source: Any, other: Path | None
) -> Audit:
    """Audit a release folder: what it claims and, apart from that, what --k, --max-risk or a spec ask of it."""
    from anonfit.release.folder import audit_release

    if given := _words(key for key in ("quasi_identifiers", "sensitive", "entity", "count") if asked.get(key)):
        raise RequestError(
            f"a release folder says itself what its columns are; leave out {', '.join(given)}, or give a spec."
        )
    words = {key: asked[key] for key in ("population", "sampling_fraction", "max_risk") if key in asked}
    demands = None
    if spec is not None:
        file = next((path for path in sorted(folder.glob("data.*")) if path.is_file()), folder)
        demands = _of_spec(spec, file, {"k": asked["k"]})
        words["layout"] = _layout(spec)
    elif asked["k"] is not None:
        words["k"] = asked["k"]
    return audit_release(folder, demands=demands, source=source, other=other, **words)


def _layout(path: Path) -> dict[str, Any]:
    """What a spec says of its source that the audit cannot find by itself."""
    from anonfit.spec.parse import read_spec

    data = read_spec(path).data
    given = {"encoding": data.encoding, "skip_rows": data.skip_rows}
    return {name: value for name, value in given.items() if value is not None}


def _audit_tree(
    folder: Path, spec: Path | None, asked: Mapping[str, Any], *, source: Any, other: Path | None
) -> TreeAudit | None:
    """Audit the folder of a tree: what it claims and, apart from that, what --k asks of it; None if it is none."""
    from anonfit.auditing.tree_folder import is_tree_folder

    if not is_tree_folder(folder):
        return None
    from anonfit.release.folder import audit_tree

    given = _words(key for key, value in asked.items() if value and key != "k")
    given += [word for word, value in (("a spec", spec), ("--with", other)) if value is not None]
    if given:
        raise RequestError(f"the folder of a tree says itself what it claims; leave out {', '.join(given)}.")
    return audit_tree(folder, source, k=asked["k"])


def _words(options: Iterable[str]) -> list[str]:
    return [f"--{option.replace('_', '-')}" for option in options]


def _number(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("share", value.get("value"))
    if isinstance(value, float):
        return f"{value:.1%}" if 0 <= value <= 1 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _show_figures(audit: Audit) -> None:
    """Show the figures of an audit to the owner of the data: all of them, not only the public ones."""
    figures, unit, screen = audit.to_dict(), _unit(audit), results()
    if joint := figures.get("joint"):
        both = ", ".join(f"{key.replace('_', ' ')} {_number(value)}" for key, value in joint.items())
        say(f"  both releases together: {both}")
    words = {True: "met", False: "missed", None: "not checked"}
    if rows := [
        (
            demand["column"],
            demand["model"],
            *("–" if demand[key] is None else figure_words(demand[key]) for key in ("found", "asked")),
            "" if demand["met"] is None and demand["asked"] is None else words[demand["met"]],
        )
        for demand in figures["diversity"]
    ]:
        say("\nDiversity of sensitive columns and targets, in the worst group:")
        screen.print(table(("column", "model", "found", "asked", ""), rows, numbers=(2, 3)))
    if rows := [
        (column["name"], *(_number(column[key]) for key in ("certain", "likely", "smallest")))
        for column in figures.get("raw_columns", ())
    ]:
        say(f"\nWhat a group reveals of columns released as they are, in {unit}:")
        screen.print(table(("column", "certain", "90 % likely", "smallest group with it"), rows, numbers=(1, 2, 3)))
    attackers = {name: figures[name] for name in ("prosecutor", "journalist") if figures[name]}
    rows = [
        *((name, figure_words(risk["highest"]), figure_words(risk["average"])) for name, risk in attackers.items()),
        ("marketer", "–", figure_words(figures["marketer"])),
    ]
    say("\nRisk that a record is found, by what an attacker knows:")
    screen.print(table(("attacker", "highest", "average"), rows, numbers=(1, 2)))
    lines = [
        (name, line["name"], f"{line['threshold']:g}", _number(line["above"]), line["source"])
        for name, risk in attackers.items()
        for line in risk["above"]
    ]
    say(f"\n{unit.capitalize()} whose risk is above a usual threshold:")
    screen.print(table(("attacker", "preset", "threshold", f"{unit} above", "source"), lines, numbers=(2, 3)))


def _unit(audit: Audit) -> str:
    """What the groups were counted in."""
    return "rows" if audit.counted == UNKNOWN_PERSONS else "persons"


def _show_verdict(audit: Audit) -> None:
    """What was asked and claimed, the groups, and each demand that is not met."""
    sizes, unit = audit.sizes, _unit(audit)
    style = {True: "bold green", False: "bold red", None: "bold yellow"}[audit.passed]
    for place, sentence in enumerate(audit.verdict):
        say((sentence, style if place == 0 or sentence.startswith(("Asked", "The release")) else "yellow"))
    for counted in audit.sets:
        say(f"  {', '.join(counted.columns)}: k = {counted.sizes.smallest}, {counted.sizes.groups:,} groups")
    if sizes.smallest is not None:
        smallest = f"k = {sizes.smallest}" if unit == "persons" else f"smallest group {sizes.smallest}"
        together = "all quasi-identifiers together: " if audit.sets else ""
        groups = f"{sizes.groups:,} groups, median {sizes.median}, largest {sizes.largest} {unit}"
        say(f"  {together}{smallest}: {groups}")
        if audit.suppressed_rows.persons:
            say(f"  rows with * in every quasi-identifier: {audit.suppressed_rows.persons:,}")
    for text in _missed(audit):
        say((f"  {text}", "red"))


def _missed(audit: Audit) -> Iterator[str]:
    """Each demand that is not met, or not known to be: of which column, what was found and what was asked."""
    needs_source = audit.source is None and (_unit(audit) == "rows" or not audit.rows)
    for finding in audit.missed:
        what = f"{finding.where}: {finding.name}" if finding.where else finding.name
        reason = finding.sentence.removeprefix("Not checked: ")
        if finding.met is None:
            hint = "give --source DATA; " if needs_source else ""
            yield f"not checked: {what}: {hint}{reason[0].lower()}{reason[1:]}"
        else:
            figures = f"Found {figure_words(finding.found)}, asked {figure_words(finding.asked)}."
            yield f"missed: {what}: {finding.sentence} {figures}"
