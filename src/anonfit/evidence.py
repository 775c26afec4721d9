# SPDX-License-Identifier: Apache-2.0
"""The evidence for a made table: what the audit is asked of it, and what the public report and the manifest say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anonfit.errors import AuditFailed
from anonfit.pipeline import Made, workload_of
from anonfit.recoding.values import Values
from anonfit.report.asking import Asked, aims_of, asked_content
from anonfit.report.content import Facts, disclosed, report_content
from anonfit.report.selections import internal_selections, public_selections
from anonfit.spec_writing import public_tables, target_table
from anonfit.tables.codebook import column_type
from anonfit.tables.schema import ColumnType, Role, Schema
from anonfit.workload.request import TargetRequest
from anonfit.workload.targets import is_numeric

if TYPE_CHECKING:
    import polars as pl

    from anonfit.auditing import Audit

__all__ = ["all_of_selections", "audit_made", "manifest_spec", "public_report", "require_passed"]


def audit_made(made: Made, data: Any) -> Audit:
    """Audit the released table, as a file or a frame, against what was asked and the rows it was made from."""
    from anonfit.auditing import audit

    spec, schema = made.spec, made.schema
    written = json.loads(made.recoding.to_json())
    with_labels = spec.output.values != Values.REPRESENTATIVE
    return audit(
        data,
        quasi_identifiers=made.recoding.quasi_identifiers,
        sensitive=[column.name for column in schema.of_role(Role.SENSITIVE)],
        diversity=_audited_demands(made),
        targets=_audited_targets(made),
        max_confidence=spec.privacy.max_confidence if spec.privacy.max_confidence < 1 else None,
        k=spec.privacy.k,
        entity=next((column.name for column in schema.of_role(Role.ENTITY)), None),
        count=next((column.name for column in schema.of_role(Role.COUNT)), None),
        columns=_meanings(made, written["columns"]),
        nodes=written["nodes"] if with_labels and spec.output.regions == "domain" else None,
        source=_rows(made),
        withheld=made.rows.withheld - made.rows.unknown,
        order="sorted" if spec.output.order == "sorted" else None,
        expected_columns=made.table.columns,
        regions="observed" if spec.output.regions == "observed" else ("domain" if with_labels else "any"),
        missing=spec.data.missing,
    )


def _meanings(made: Made, columns: list[dict[str, Any]]) -> dict[str, Any]:
    """What labels mean, as the columns of recoding.json say; representatives of ordered columns are no labels."""
    if made.spec.output.values == Values.REPRESENTATIVE:
        columns = [column for column in columns if "taxonomy" in column]
    if made.spec.output.regions == "observed":
        columns = [{key: value for key, value in column.items() if key != "cuts"} for column in columns]
    return {column["name"]: column for column in columns}


def _audited_demands(made: Made) -> list[dict[str, Any]]:
    """The demands on sensitive columns, with all that is declared of these."""
    types = _types(made)
    formats = {column.name: column.date_format for column in made.schema.columns}
    demands = public_tables(made.spec, made.schema, types=types)["privacy"]["diversity"]
    return [
        {"type": str(types[demand["column"]]), "date_format": formats[demand["column"]], **demand} for demand in demands
    ]


def _audited_targets(made: Made) -> list[dict[str, Any]]:
    """The targets, with what they are: classes, also where these are written as numbers, or numbers."""
    types = _target_types(made)
    return [
        target_table(target) | ({"type": str(types[target.column])} if target.column in types else {})
        for target in made.spec.targets
    ]


def require_passed(audit: Audit) -> None:
    """Nothing is published that the audit did not accept."""
    if not audit.passed:
        faults = "; ".join(finding.sentence for finding in audit.findings if finding.met is False)
        raise AuditFailed(
            f"the audit of the written file found that it does not hold what was asked, so nothing is published: "
            f"{faults}"
        )


def _rows(made: Made) -> pl.DataFrame:
    """The raw rows: whatever is made has them, only what was loaded has not."""
    assert made.source is not None
    return made.source


def _types(made: Made) -> dict[str, ColumnType]:
    """The types of sensitive columns and targets, from the data where they are not declared."""
    rows = _rows(made)
    columns = made.schema.of_role(Role.SENSITIVE, Role.TARGET)
    return {column.name: column_type(column, rows[column.name].dtype) for column in columns}


def _target_types(made: Made) -> dict[str, ColumnType]:
    """The types of the targets that are released as they are: nominal, unless they are numbers or classes of such."""
    rows, types = _rows(made), _types(made)
    columns = {column.name: column for column in made.schema.of_role(Role.TARGET)}
    found = {}
    for target in made.spec.targets:
        if column := columns.get(target.column):
            by_number = bool(target.classes or target.equal_width)
            numeric = by_number or is_numeric(TargetRequest(column.name), column, rows[column.name])
            found[column.name] = types[column.name] if numeric else column.type or ColumnType.NOMINAL
    return found


def manifest_spec(made: Made) -> dict[str, Any]:
    """The spec as everybody may know it. It says of which type the targets are: new data must not be read otherwise."""
    found = _target_types(made)
    columns = (replace(column, type=found.get(column.name, column.type)) for column in made.schema.columns)
    return public_tables(made.spec, Schema(tuple(columns)), types=_types(made))


def _asked(made: Made) -> dict[str, Any]:
    """What was asked, for the public report."""
    spec, workload = made.spec, workload_of(made.spec)
    return asked_content(
        Asked(
            k=spec.privacy.k,
            quasi_identifiers=made.recoding.quasi_identifiers,
            demands=manifest_spec(made)["privacy"]["diversity"],
            max_confidence=spec.privacy.max_confidence,
            workload=workload,
            aims=aims_of(workload, made.schema, _rows(made)),
        )
    )


def _total(made: Made) -> int:
    """All that selections count: rows, or persons where rows stand for several."""
    count = next((column.name for column in made.schema.of_role(Role.COUNT)), None)
    return len(_rows(made)) if count is None else int(_rows(made)[count].sum())


def _public_selections(made: Made) -> dict[str, Any] | None:
    """How well selections can be answered, as far as everybody may know it."""
    # Answers count rows: where a person has several, k of them may be one person's.
    answers = None if made.schema.of_role(Role.ENTITY) else made.answers
    asked = workload_of(made.spec).used_selections
    return public_selections(answers, asked, total=_total(made), least=made.spec.privacy.k)


def all_of_selections(made: Made) -> dict[str, Any] | None:
    """Everything about the selections, for the internal record."""
    if made.answers is None:
        return None
    return internal_selections(made.answers, workload_of(made.spec).used_selections, total=_total(made))


def public_report(made: Made, audit: Audit) -> dict[str, Any]:
    """The report that anybody may read."""
    spec = made.spec
    settings = {
        "values": str(spec.output.values),
        "regions": spec.output.regions,
        "order": spec.output.order,
    }
    facts = Facts(
        schema=made.schema,
        recoding=made.recoding,
        table=made.table,
        read=made.rows.read,
        dropped=disclosed(made.rows.dropped, made.rows.dropped_persons, spec.privacy.k),
        withheld=disclosed(made.rows.withheld, made.rows.withheld_persons, spec.privacy.k),
        audit=audit.public(spec.privacy.k),
        asked=_asked(made),
        settings=settings,
        selections=_public_selections(made),
    )
    return report_content(facts)
