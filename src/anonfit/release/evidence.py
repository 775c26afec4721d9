# SPDX-License-Identifier: Apache-2.0
"""The evidence for a made table: what the audit is asked of it, and what the public report and the manifest say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.algorithms.demands import has_classes, redundant, requirements_of
from anonfit.algorithms.exploring import RULE
from anonfit.algorithms.trees.growing import Variant
from anonfit.auditing.result import BYTES
from anonfit.errors import AuditFailed, Infeasible
from anonfit.metrics.attack import attack_content, attack_release
from anonfit.metrics.inference import SURE, LearnedClasses
from anonfit.metrics.workload import internal_selections, public_selections
from anonfit.privacy.disclosure import EVERYTHING, Disclosure
from anonfit.recoding.values import Values
from anonfit.release.bind import demands_of, workload_of
from anonfit.release.explore import FIGURES
from anonfit.release.measure import Appraisal, different_labels, formula_columns, measure_all
from anonfit.release.result import Draft
from anonfit.release.table import LargeTable, drafted_table, raw_columns, read_large
from anonfit.report.asking import Aim, ReleaseRequest, aims_of, asked_content
from anonfit.report.content import read_content, report_content
from anonfit.spec.columns import QUASI_IDENTIFIER
from anonfit.spec.model import Spec
from anonfit.spec.workload import TARGET
from anonfit.spec.write import public_tables
from anonfit.tables.codebook import column_type
from anonfit.tables.formats import FORMATS, format_of
from anonfit.tables.ingesting import RawColumns
from anonfit.tables.persons import persons_in
from anonfit.tables.schema import ColumnType, Role, Schema
from anonfit.workload.targets import TargetRequest, Workload

if TYPE_CHECKING:
    from anonfit.auditing.result import Audit
    from anonfit.auditing.tree_folder import TreeAudit
    from anonfit.metrics.attack import Attack

UNKNOWN_USE = "The use is not known: "


def audit_draft(draft: Draft, data: Any) -> Audit:
    """Audit the released table, as a file or a frame, against what was asked and the rows it was made from."""
    from anonfit.auditing.api import audit
    from anonfit.auditing.measuring import ROWS_AT_ONCE

    spec, schema = draft.spec, draft.schema
    written = json.loads(draft.recoding.to_json())
    columns = raw_columns(draft)
    return audit(
        data,
        quasi_identifiers=draft.recoding.quasi_identifiers,
        sensitive=[column.name for column in schema.of_role(Role.SENSITIVE)],
        diversity=audited_demands(spec, schema, columns),
        targets=audited_targets(spec, schema, columns),
        max_confidence=spec.privacy.max_confidence if spec.privacy.max_confidence < 1 else None,
        k=spec.privacy.k,
        quasi_identifier_sets=[QUASI_IDENTIFIER.tables(entry) for entry in spec.privacy.quasi_identifiers],
        entity=schema.name_of(Role.ENTITY),
        count=schema.name_of(Role.COUNT),
        columns={column["name"]: column for column in written["columns"]},
        **{name: written[name] for name in ("nodes", "parts") if name in written},
        source=draft.scan if draft.is_large else draft.raw_rows,
        withheld=draft.rows.withheld - draft.rows.unknown,
        order="sorted" if spec.output.order == "sorted" else None,
        expected_columns=list(draft.dtypes),
        regions="observed" if spec.output.regions == "observed" else "domain",
        representatives=spec.output.values == Values.REPRESENTATIVE,
        # The rows were read already, and only text files have no other way to say that a value is missing.
        missing=("",) if isinstance(data, str | Path) and format_of(Path(data)).is_text else (),
        rows_at_once=ROWS_AT_ONCE if draft.is_large else None,
    )


def audited_demands(spec: Spec, schema: Schema, rows: RawColumns) -> list[dict[str, Any]]:
    """The demands on sensitive columns, with all that is declared of these, as `auditing.audit` reads them."""
    types = _types(schema, rows)
    formats = {column.name: column.date_format for column in schema.columns}
    demands = public_tables(spec, schema, types=types)["privacy"]["diversity"]
    return [
        {"type": str(types[demand["column"]]), "date_format": formats[demand["column"]], **demand} for demand in demands
    ]


def audited_targets(spec: Spec, schema: Schema, rows: RawColumns) -> list[dict[str, Any]]:
    """The targets, with what they are: classes, also where these are written as numbers, or numbers."""
    types = _target_types(spec, schema, rows)
    return [
        TARGET.tables(target) | ({"type": str(types[target.column])} if target.column in types else {})
        for target in spec.capped_targets
    ]


def require_passed(audit: Audit | TreeAudit, written: str = "file") -> None:
    """Nothing is published that the audit did not accept; `written` says what it read."""
    if not audit.passed:
        faults = "; ".join(dict.fromkeys(finding.sentence for finding in audit.missed))
        raise AuditFailed(
            f"the audit of the written {written} found that it does not hold what was asked, so nothing is published: "
            f"{faults}"
        )


def _types(schema: Schema, rows: RawColumns) -> dict[str, ColumnType]:
    """The types of sensitive columns and targets, from the data where they are not declared."""
    columns = schema.of_role(Role.SENSITIVE, Role.TARGET)
    return {column.name: column_type(column, rows.schema[column.name]) for column in columns}


def _target_types(spec: Spec, schema: Schema, rows: RawColumns) -> dict[str, ColumnType]:
    """The types of the targets that are released as they are: nominal, unless they are numbers or classes of such."""
    types = _types(schema, rows)
    columns = {column.name: column for column in schema.of_role(Role.TARGET)}
    types_of_targets = {}
    for target in spec.capped_targets:
        if column := columns.get(target.column):
            by_number = bool(target.classes or target.equal_width)
            asked, values = TargetRequest(column.name), rows[column.name]
            numeric = by_number or not has_classes(asked, column, values, spec.method.objective)
            types_of_targets[column.name] = types[column.name] if numeric else column.type or ColumnType.NOMINAL
    return types_of_targets


def manifest_spec(draft: Draft) -> dict[str, Any]:
    """The spec as everybody may know it. It says of which type the targets are: new data must not be read otherwise."""
    rows = raw_columns(draft)
    types = _target_types(draft.spec, draft.schema, rows)
    columns = (replace(column, type=types.get(column.name, column.type)) for column in draft.schema.columns)
    return public_tables(draft.spec, Schema(tuple(columns)), types=_types(draft.schema, rows))


def _asked(draft: Draft) -> dict[str, Any]:
    """What was asked, for the public report."""
    spec, workload = draft.spec, workload_of(draft.spec)
    if draft.learned is not None:
        workload = replace(workload, weights=draft.learned.weights)
    return asked_of(
        spec,
        draft.schema,
        draft.recoding.quasi_identifiers,
        demands=manifest_spec(draft)["privacy"]["diversity"],
        workload=workload,
        aims=aims_of(workload, draft.schema, raw_columns(draft), steered=draft.steered),
        tried=None if draft.exploration is None else len(draft.exploration["candidates"]),
    )


def asked_of(
    spec: Spec,
    schema: Schema,
    names: Sequence[str],
    *,
    demands: Sequence[Mapping[str, Any]],
    workload: Workload,
    aims: Sequence[Aim],
    tried: int | None,
) -> dict[str, Any]:
    """What a spec asks of the named quasi-identifiers, for the public report. `demands` are as the manifest has them;
    `tried` is the number of ways to weigh columns that were tried, where the use is not known.
    """
    asked = ReleaseRequest(
        k=spec.privacy.k,
        quasi_identifiers=names,
        demands=demands,
        max_confidence=spec.privacy.max_confidence,
        attack_limit=spec.privacy.attack_limit,
        workload=workload,
        aims=aims,
        capped=_capped(spec, schema),
        refined_by=_refined_by(spec),
        grown_by=_grown_by(spec),
        explored=None if tried is None else _explored(tried),
        waived={name: column.reason or "" for name, column in spec.columns.items() if column.diversity is not None},
        decisions=spec.decisions,
        several=_several(spec, names),
    )
    settings = {
        "values": str(spec.output.values),
        "regions": spec.output.regions,
        "order": spec.output.order,
        "cut_points": str(spec.method.cut_points),
    }
    return asked_content(asked) | settings


def _capped(spec: Spec, schema: Schema) -> list[str]:
    """The targets of which `max_confidence` caps what groups tell: those that are released as they are."""
    if spec.privacy.max_confidence >= 1:
        return []
    released = {column.name for column in schema.of_role(Role.TARGET)}
    return [target.column for target in spec.capped_targets if target.column in released]


def _refined_by(spec: Spec) -> str | None:
    """What chose the refinements, in words."""
    if not spec.method.capabilities.refines:
        return None
    return "information gain against anonymity loss" if spec.method.objective.against_loss else "information gain"


def _grown_by(spec: Spec) -> str | None:
    """The kind of tree whose spans the regions are, in words."""
    if not spec.method.capabilities.grows_tree:
        return None
    return "C4.5" if Variant(spec.method.variant) == Variant.C45 else "ID3"


def _explored(tried: int) -> str:
    """How many ways were tried and by which rule one was chosen, in words; the ways themselves are not public."""
    return (
        f"{UNKNOWN_USE}{tried} ways to weigh columns were tried and held against each other by their figures "
        f"({', '.join(FIGURES.values())}). Published is, {RULE}. The others are not published."
    )


def _several(spec: Spec, names: Sequence[str]) -> list[dict[str, Any]]:
    """Several quasi-identifiers, each with its k; one may follow from another."""
    asked = demands_of(spec).quasi_identifiers
    implied = dict(redundant(requirements_of(demands_of(spec), names)))
    return [
        {"columns": list(entry.columns), "k": entry.k, "follows_from": implied.get(number)}
        for number, entry in enumerate(asked)
    ]


def public_rule(draft: Draft) -> Disclosure:
    """What everybody may be told of a made table."""
    return Disclosure(draft.spec.privacy.least, rows_are_persons=not draft.schema.of_role(Role.ENTITY))


def _total(draft: Draft) -> int:
    """All that selections count: rows, or persons where rows stand for several."""
    count = draft.schema.name_of(Role.COUNT)
    if not draft.is_large:
        return len(draft.raw_rows) if count is None else int(draft.raw_rows[count].sum())
    if count is None:
        return draft.rows.released
    import polars as pl

    assert draft.scan is not None
    return int(draft.scan.select(pl.col(count).cast(pl.Int64).sum()).collect(engine="streaming").item())


def _selections(draft: Draft, rule: Disclosure) -> dict[str, Any] | None:
    """How well selections can be answered, as far as it may be told."""
    asked = workload_of(draft.spec).selections
    if rule.min_persons:
        return public_selections(draft.answers, asked, rule, total=_total(draft)) if asked else None
    return None if draft.answers is None else internal_selections(draft.answers, asked, total=_total(draft))


def attack_draft(draft: Draft) -> Attack | None:
    """Persons of the input sought in the release; None where it is not known which rows were released."""
    if draft.nodes is None:
        return None
    return attack_release(
        draft.recoding,
        draft.schema,
        draft.raw_rows,
        draft.nodes,
        persons_in(draft.schema, draft.raw_rows),
        targets=workload_of(draft.spec).targets,
        k=draft.spec.privacy.k,
        least=draft.spec.privacy.least,
        seed=draft.spec.method.seed,
    )


def _attack(draft: Draft, large: LargeTable | None) -> Attack | None:
    """The attack, refused where it learns more than `attack_limit`; on a large table, in the drawn regions."""
    attack = attack_draft(draft if large is None else large.drawn)
    if draft.spec.privacy.attack_limit < 1:
        _require_little_learned(draft, {} if attack is None else attack.learned)
    if large is None or attack is None:
        return attack
    persons = int(large.sizes.sum())
    return replace(attack, released=persons, blind_chance=1 / persons)


def _require_little_learned(draft: Draft, learned: Mapping[str, LearnedClasses]) -> None:
    """Nothing is published of which a model learns more than was asked, or of which that cannot be measured."""
    limit = draft.spec.privacy.attack_limit
    for column in draft.schema.of_role(Role.SENSITIVE):
        if column.name not in learned:
            raise Infeasible(
                f"privacy.attack_limit: what can be learned of '{column.name}' is measured of classes, and it has "
                "numbers, so nothing is published; write type = 'nominal' for it, or remove the limit."
            )
        figures = learned[column.name]
        if figures.sure > limit * figures.persons:
            raise Infeasible(
                f"a model learned from the release is at least {SURE:.0%} sure of '{column.name}' for "
                f"{figures.sure / figures.persons:.1%} of the persons, and privacy.attack_limit is {limit:.4g}, so "
                "nothing is published; ask for a larger k or a stronger model of diversity, or raise the limit."
            )


def both_reports(draft: Draft, audit: Audit, *, ks: Sequence[int] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """The public report, and the owner's, in which nothing is hidden; `ks` asks for a curve over these k."""
    # A report is of the table, not of its file.
    audit = replace(audit, findings=tuple(finding for finding in audit.findings if finding.name != BYTES))
    large = read_large(draft, audit.sizes.largest or 0) if draft.is_large else None
    with ThreadPoolExecutor(1) as pool:
        attacking = pool.submit(_attack, draft, large)
        appraisal, asked = measure_all(draft, ks=ks, large=large), _asked(draft)
        table = drafted_table(draft)
        facts = {
            "asked": asked,
            "different": {name: different_labels(table, name) for name in draft.recoding.quasi_identifiers},
            "formulas": formula_columns(table) if FORMATS[draft.spec.output.format].is_text else [],
        }
        attack = attacking.result()
    public, internal = (
        _report(draft, audit, appraisal, rule, attack, facts) for rule in (public_rule(draft), EVERYTHING)
    )
    return json.loads(json.dumps(public)), internal  # as a file has it


def _report(
    draft: Draft, audit: Audit, appraisal: Appraisal, rule: Disclosure, attack: Attack | None, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """The report, as far as it may be told; all of `told` may be."""
    rows = draft.rows
    roles = {column.name: column.role for column in draft.schema.columns}
    dropped = rule.rows(rows.dropped, rows.dropped_persons)
    withheld = rule.rows(rows.withheld, rows.withheld_persons)
    content = report_content(
        draft.schema,
        draft.recoding.columns,
        rows={
            "released": draft.released,
            "read": read_content(rows.read, draft.released, dropped, withheld),
            "dropped": dropped,
            "withheld": withheld,
        },
        selections=_selections(draft, rule),
        attack=None if attack is None else attack_content(attack, rule, roles=roles),
        figures=appraisal.content(rule),
        audit=audit.public(rule.min_persons) if rule.min_persons else audit.to_dict(),
        **facts,
    )
    return content | {"engine": {"name": draft.engine, "reason": draft.engine_reason}}
