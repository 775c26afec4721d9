# SPDX-License-Identifier: Apache-2.0
"""The evidence for a made table: what the audit is asked of it, and the figures of its report that are no part of the
audit. These are measured once and told twice, in public by the disclosure rule and in full to the owner of the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from anonfit.auditing.result import BYTES
from anonfit.errors import Infeasible, RequestError
from anonfit.metrics.attack import (
    Attack,
    InitialRisk,
    attack_content,
    attack_release,
    group_bins,
    initial_content,
    initial_risk,
)
from anonfit.metrics.clusters import ClusterFigures, can_cluster, clusters_content, workload_clusters
from anonfit.metrics.curve import Curve, curve, curve_content, read_ks
from anonfit.metrics.detail import Detail, detail_content, details, partition_content
from anonfit.metrics.holdout import (
    Holdout,
    HoldoutRequest,
    PurposeComparison,
    compare,
    comparison_content,
    draw_holdout,
    has_purpose,
)
from anonfit.metrics.inference import SURE, LearnedClasses
from anonfit.metrics.losses import distributions
from anonfit.metrics.queries import JUDGED, QueryAnswer, internal_queries, judge_queries, public_queries, query_table
from anonfit.metrics.registry import RecodedTable, content
from anonfit.metrics.rules import ROWS, AssociationRule, find_rules, items_of, rules_content
from anonfit.metrics.workload import (
    TargetFigures,
    coded_targets,
    internal_selections,
    predictions,
    predictions_content,
    public_selections,
)
from anonfit.privacy.disclosure import EVERYTHING, Disclosure
from anonfit.recoding.values import Values
from anonfit.release.bind import demands_of, refining_of, tree_of, workload_of
from anonfit.release.draft import (
    Draft,
    LargeTable,
    all_persons,
    drafted_table,
    drawn_content,
    group_persons,
    held_nodes,
    raw_columns,
    read_large,
    released_rows,
    whole_domains,
)
from anonfit.release.request import asked_of, audited_demands, audited_targets
from anonfit.release.run import make
from anonfit.release.table import different_labels, formula_columns
from anonfit.report.content import read_content, report_content
from anonfit.spec.columns import QUASI_IDENTIFIER
from anonfit.spec.learning import Asked
from anonfit.spec.model import Spec
from anonfit.tables.schema import Role, persons_in
from anonfit.tables.sources import FORMATS

if TYPE_CHECKING:
    from anonfit.auditing.result import Audit


# --- the audit ------------------------------------------------------------------------------------------------------


def audit_draft(draft: Draft, data: Any) -> Audit:
    """Audit the released table, as a file or a frame, against what was asked and the rows it was made from."""
    from anonfit.auditing.api import audit
    from anonfit.auditing.measuring import ROWS_AT_ONCE
    from anonfit.auditing.reading import is_text_file

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
        missing=("",) if is_text_file(data) else (),
        rows_at_once=ROWS_AT_ONCE if draft.is_large else None,
    )


def public_rule(draft: Draft) -> Disclosure:
    """What everybody may be told of a made table."""
    return Disclosure(draft.spec.privacy.least, rows_are_persons=not draft.schema.of_role(Role.ENTITY))


def _selections(draft: Draft, rule: Disclosure) -> dict[str, Any] | None:
    """How well selections can be answered, as far as it may be told."""
    asked = workload_of(draft.spec).selections
    if rule.min_persons:
        return public_selections(draft.answers, asked, rule, total=all_persons(draft)) if asked else None
    return None if draft.answers is None else internal_selections(draft.answers, asked, total=all_persons(draft))


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
        appraisal, asked = measure_all(draft, ks=ks, large=large), asked_of(draft)
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


# --- how useful and how risky a table is ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Appraisal:
    """What was measured; None where it was not."""

    sizes: NDArray[np.int64]  # (group,) in persons
    details: tuple[Detail, ...]
    partition: dict[str, Any] | None
    predictions: tuple[TargetFigures, ...]
    initial: InitialRisk | None = None
    comparison: PurposeComparison | None = None
    curve: Curve | None = None
    asked: tuple[Asked, ...] = ()
    queries: tuple[QueryAnswer, ...] = ()
    """How the queries of a log are answered, those that are asked most."""
    total: int = 0
    """All that queries count: rows, or persons where rows stand for several."""
    rules: tuple[AssociationRule, ...] | None = None
    columns: RecodedTable | None = None
    clusters: ClusterFigures | None = None
    counted: Literal["persons", "records"] = "persons"
    """What `details` count: records, where a person may have several."""
    distributions: list[dict[str, Any]] | None = None
    """Of every column before and after, for the owner of the data; None where the table is large."""
    drawn: tuple[int, int] | None = None
    """Rows that predictions, rules, clusters, queries and the comparison were measured on, and all; None: on all."""

    def content(self, rule: Disclosure) -> dict[str, Any]:
        """The figures as they may be told."""
        return {
            "group_sizes": group_bins(rule.rounded(self.sizes)),
            "detail": detail_content(self.details, self.counted),
            "partition": self.partition,
            "predictions": predictions_content(self.predictions, rule),
            "initial_risk": None if self.initial is None else initial_content(self.initial, rule),
            "comparison": None if self.comparison is None else comparison_content(self.comparison, rule),
            "curve": None if self.curve is None else curve_content(self.curve, rule),
            "columns_lost": None if self.columns is None else content(self.columns, "report", "regions", key="column"),
            "clusters": None if self.clusters is None else clusters_content(self.clusters, rule),
            "queries": self._queries(rule) if self.queries else None,
            "rules": None if self.rules is None else rules_content(self.rules, rule),
            **({} if rule.min_persons or not self.distributions else {"distributions": self.distributions}),
            **({} if self.drawn is None else {"measured_on": drawn_content(*self.drawn)}),
        }

    def _queries(self, rule: Disclosure) -> dict[str, Any]:
        if not rule.min_persons:
            asks = [question.ask for question in self.asked[: len(self.queries)]]
            return internal_queries(asks, self.queries, left_out=len(self.asked) - len(self.queries))
        return public_queries(self.queries, rule, asked=len(self.asked), total=self.total)


def _of_columns(
    draft: Draft, used: NDArray[np.int64], sizes: NDArray[np.int64], told: NDArray[np.int64]
) -> dict[str, Any]:
    """What regions leave of the columns. used, sizes, told: (region,) those that hold rows, how many, and the persons
    of each as a picture may tell them.
    """
    column_details = details(draft.recoding, used, sizes)
    shares = [detail.shares for detail in column_details]
    return {
        "details": column_details,
        "partition": partition_content(draft.recoding, used, told, shares),
        "columns": RecodedTable(draft.recoding, used, counts=sizes, weights=draft.weights),
    }


def _of_regions(draft: Draft) -> Appraisal:
    """What regions leave of the columns and tell of the targets."""
    used, sizes = held_nodes(draft)
    targets = coded_targets(workload_of(draft.spec), draft.schema, draft.raw_rows)
    persons, has_entities = group_persons(draft, used, sizes), draft.schema.name_of(Role.ENTITY) is not None
    k = draft.spec.privacy.least
    rounded = np.maximum(persons // k * k, 1) if has_entities else persons  # as all that is told
    columns = _of_columns(draft, used, sizes, rounded)
    raw = [column.name for column in draft.schema.released_raw]
    return Appraisal(
        sizes=persons,
        counted="records" if has_entities else "persons",
        predictions=predictions(targets, draft.node_of_row, draft.recoding.node_count),
        distributions=distributions(draft.recoding, columns["details"], released_rows(draft)[0], raw),
        **columns,
    )


def _of_all(draft: Draft, large: LargeTable, drawn: Appraisal) -> Appraisal:
    """Figures of regions that were drawn, with those that rest on all regions' sizes."""
    return replace(
        drawn,
        distributions=None,
        sizes=large.sizes,
        comparison=None if drawn.comparison is None else replace(drawn.comparison, of=draft.rows.released),
        drawn=(large.drawn_rows, draft.rows.released),
        **_of_columns(draft, large.used, large.sizes, large.sizes),
    )


def _clusters(draft: Draft) -> ClusterFigures | None:
    """Clusters in the release and in the raw rows, where the release is for these and they can be found."""
    workload = workload_of(draft.spec)
    if not workload.objective.clusters or not can_cluster():
        return None
    return workload_clusters(
        workload, draft.recoding, draft.schema, *released_rows(draft), clusters=draft.spec.workload.clusters
    )


def _setting(draft: Draft) -> HoldoutRequest:
    return HoldoutRequest(
        schema=draft.schema,
        frame=draft.raw_rows,
        persons=partial(persons_in, draft.schema),
        demands=demands_of(draft.spec),
        workload=workload_of(draft.spec),
        cut_points=draft.spec.method.cut_points,
        seed=draft.spec.method.seed,
        refining=refining_of(draft.spec),
        tree=tree_of(draft.spec),
    )


def measure_all(draft: Draft, *, ks: Sequence[int] = (), large: LargeTable | None = None) -> Appraisal:
    """Measure a draft: its regions, the risk of the raw rows, what the purpose gained on held-out rows, and, if any k
    are given, what other k would be worth.

    The gain is of what a release was made for, so it is not measured where new rows went through an earlier recoding.
    """
    if large is not None:
        appraisal = _of_all(draft, large, measure_all(replace(large.drawn, asked=()), ks=ks))
        return replace(appraisal, initial=large.initial, **_queries(large.drawn, draft))
    # Counting raw combinations leaves a core to the rest.
    with ThreadPoolExecutor(1) as pool:
        risk = pool.submit(
            initial_risk,
            released_rows(draft)[0],
            draft.recoding.quasi_identifiers,
            k=draft.spec.privacy.k,
            entity=draft.schema.name_of(Role.ENTITY),
            count=draft.schema.name_of(Role.COUNT),
        )
        appraisal = _of_regions(draft)
        appraisal = replace(
            appraisal, initial=risk.result(), **_queries(draft), rules=_rules(draft), clusters=_clusters(draft)
        )
    if draft.extends:
        return appraisal
    if draft.spec.privacy.quasi_identifiers:
        if ks:
            raise RequestError(
                "a curve is over one k; with privacy.quasi_identifiers, each of which has its own, leave it out."
            )
        return appraisal  # there is no blind release of several quasi-identifiers to compare with
    workload = workload_of(draft.spec)
    holdout = draw_holdout(_setting(draft)) if ks or has_purpose(workload, workload.targets) else None
    appraisal = replace(appraisal, comparison=compare(holdout))
    return replace(appraisal, curve=_curve(holdout, ks)) if ks else appraisal


def _queries(draft: Draft, whole: Draft | None = None) -> dict[str, Any]:
    """How the queries of the log are answered, where there is one; `whole` has all rows, where some were drawn."""
    if not draft.asked:
        return {}
    persons = persons_in(draft.schema, draft.raw_rows)
    table = query_table(
        draft.recoding,
        draft.schema.columns,
        draft.raw_rows,
        draft.node_of_row,
        persons,
        k=draft.spec.privacy.k,
        domains=None if whole is None else whole_domains(whole),
    )
    judged = judge_queries([(question.ask, question.times) for question in draft.asked[:JUDGED]], table)
    total = len(draft.raw_rows) if persons.counts is None else int(persons.counts.sum(dtype=np.int64))
    return {"asked": draft.asked, "queries": tuple(judged), "total": total}


def _rules(draft: Draft) -> tuple[AssociationRule, ...] | None:
    """Association rules of the released rows, of columns that are not guarded; None if they are not asked for."""
    if not draft.spec.workload.rules:
        return None
    rows, nodes = released_rows(draft)
    if len(rows) > ROWS:
        drawn = np.random.default_rng(draft.spec.method.seed).choice(len(rows), ROWS, replace=False)
        rows, nodes = rows[drawn], nodes[drawn]
    names = [
        column.name
        for column in draft.schema.of_role(Role.INSENSITIVE, Role.TARGET)
        if not (draft.spec.privacy.max_confidence < 1 and column.role == Role.TARGET)
    ]
    return tuple(find_rules(items_of(draft.recoding, nodes, rows, names)))


def _curve(holdout: Holdout | None, ks: Sequence[int]) -> Curve:
    if holdout is None:
        raise RequestError("there are too few rows to measure a curve over k; leave it out.")
    return curve(holdout, read_ks(ks))


def risk_utility_curve(spec: Spec, source: Any = None, *, ks: Sequence[int]) -> list[dict[str, Any]]:
    """What releases of other k would be worth.

    Args:
        spec: What is asked; its own k does not matter.
        source: A path or frame in place of the spec's.
        ks: The k to try.

    Returns:
        For each k, ascending, the risk that it allows and how useful regions are on rows they were not made of. All of
        it is for the owner of the data: the disclosure rule was not applied.
    """
    ks = read_ks(ks)
    draft = make(replace(spec, privacy=replace(spec.privacy, k=ks[0])), source=source)
    points: list[dict[str, Any]] = curve_content(_curve(draw_holdout(_setting(draft)), ks), EVERYTHING)["points"]
    return points
