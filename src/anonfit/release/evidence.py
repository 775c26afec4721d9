# SPDX-License-Identifier: Apache-2.0
"""The evidence for a made table: what the audit is asked of it, and the figures of its report that are no part of the
audit. These are measured once and told twice, in public by the disclosure rule and in full to the owner of the data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anonfit.auditing.result import BYTES
from anonfit.errors import Infeasible, RequestError
from anonfit.metrics import attack, clusters, detail, holdout, inference, losses, queries, rules, workload
from anonfit.metrics.arrays import Integers
from anonfit.metrics.curve import Curve, curve, curve_content, read_ks
from anonfit.metrics.registry import RecodedTable, content
from anonfit.privacy.disclosure import EVERYTHING, Disclosure
from anonfit.recoding.values import Values
from anonfit.release.bind import demands_of, refining_of, tree_of, workload_of
from anonfit.release.draft import Draft, LargeTable, drawn_content, read_large, whole_domains
from anonfit.release.request import asked_of, audited_demands, audited_targets
from anonfit.release.run import make
from anonfit.release.table import different_labels, formula_columns
from anonfit.report.content import following, read_content
from anonfit.report.words import Json
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
    columns = draft.raw_columns
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
        source=draft.scan if draft.is_large else draft.source,
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


def attack_draft(draft: Draft) -> attack.Attack:
    """Persons of the input sought in the release."""
    return attack.attack_release(
        draft.recoding,
        draft.schema,
        draft.source,
        draft.nodes,
        persons_in(draft.schema, draft.source),
        targets=workload_of(draft.spec).targets,
        k=draft.spec.privacy.k,
        least=draft.spec.privacy.least,
        seed=draft.spec.method.seed,
    )


def _attack(draft: Draft, large: LargeTable | None) -> attack.Attack:
    """The attack, refused where it learns more than `attack_limit`; on a large table, in the drawn regions."""
    outcome = attack_draft(draft if large is None else large.drawn)
    if draft.spec.privacy.attack_limit < 1:
        _require_little_learned(draft, outcome.learned)
    if large is None:
        return outcome
    persons = int(large.sizes.sum())
    return replace(outcome, released=persons, blind_chance=1 / persons)


def _require_little_learned(draft: Draft, learned: Mapping[str, inference.LearnedClasses]) -> None:
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
                f"a model learned from the release is at least {inference.SURE:.0%} sure of '{column.name}' for "
                f"{figures.sure / figures.persons:.1%} of the persons, and privacy.attack_limit is {limit:.4g}, so "
                "nothing is published; ask for a larger k or a stronger model of diversity, or raise the limit."
            )


@dataclass(frozen=True, slots=True)
class Measured:
    """What a report tells beside what the audit found: how useful and how risky the table is, what came of an attack,
    and facts that may all be told.
    """

    appraisal: Appraisal
    attack: attack.Attack
    facts: Json


def measure_draft(draft: Draft, *, ks: Sequence[int] = (), largest: int = 0) -> Measured:
    """Measure a draft; `ks` asks for a curve over these k, `largest` is the largest group, where the table is large."""
    large = read_large(draft, largest) if draft.is_large else None
    with ThreadPoolExecutor(1) as pool:
        attacking = pool.submit(_attack, draft, large)
        appraisal, asked = measure_all(draft, ks=ks, large=large), asked_of(draft)
        table = draft.released_table
        facts = {
            "asked": asked,
            "different": {name: different_labels(table, name) for name in draft.recoding.quasi_identifiers},
            "formulas": formula_columns(table) if FORMATS[draft.spec.output.format].is_text else [],
        }
        return Measured(appraisal, attacking.result(), facts)


def both_reports(
    draft: Draft, audit: Audit, measured: Measured | None = None, *, ks: Sequence[int] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The public report, and the owner's, in which nothing is hidden, of what was measured or is measured now."""
    measured = measured or measure_draft(draft, ks=ks, largest=audit.sizes.largest or 0)
    # A report is of the table, not of its file.
    audit = replace(audit, findings=tuple(finding for finding in audit.findings if finding.name != BYTES))
    public, internal = (
        _report(draft, audit, measured.appraisal, rule, measured.attack, measured.facts)
        for rule in (public_rule(draft), EVERYTHING)
    )
    return json.loads(json.dumps(public)), internal  # as a file has it


def _report(
    draft: Draft, audit: Audit, appraisal: Appraisal, rule: Disclosure, outcome: attack.Attack, facts: Json
) -> dict[str, Any]:
    """The report, as far as it may be told. All of `facts` may be: how many different labels each released column has,
    and which columns have texts that a spreadsheet may run, where the file is one that it opens.
    """
    rows, selections, answers = draft.rows, workload_of(draft.spec).selections, None
    dropped = rule.rows(rows.dropped, rows.dropped_persons)
    withheld = rule.rows(rows.withheld, rows.withheld_persons)
    if rule.min_persons and selections:
        answers = workload.public_selections(draft.answers, selections, rule, total=draft.total())
    elif not rule.min_persons and draft.answers is not None:
        answers = workload.internal_selections(draft.answers, selections, total=draft.total())
    columns = draft.recoding.columns
    report = {
        "format": "anonfit report",
        "version": 1,
        "asked": facts["asked"],
        "attacker": None,  # this, and what else is empty, follows from the rest
        "not_covered": [],
        "rows": {
            "released": draft.released,
            "read": read_content(rows.read, draft.released, dropped, withheld),
            "dropped": dropped,
            "withheld": withheld,
        },
        "columns": [{"name": column.name, "different": facts["different"][column.name]} for column in columns],
        "formulas": facts["formulas"],
        "diversity": [],
        "selections": answers,
        "attack": attack.attack_content(
            outcome,
            rule,
            roles={each.name: each.role for each in draft.schema.columns},
            is_limited=draft.spec.privacy.attack_limit < 1,
        ),
        **appraisal.content(rule),
        "audit": audit.public(rule.min_persons) if rule.min_persons else audit.to_dict(),
    }
    engine = {"name": draft.engine, "reason": draft.engine_reason}
    return report | following(report, draft.schema, columns) | {"engine": engine}


# --- how useful and how risky a table is ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Appraisal:
    """What was measured; None where it was not."""

    sizes: Integers  # (group,) in persons
    details: tuple[detail.Detail, ...]
    partition: dict[str, Any] | None
    predictions: tuple[workload.TargetFigures, ...]
    initial: attack.InitialRisk | None = None
    comparison: holdout.PurposeComparison | None = None
    curve: Curve | None = None
    asked: tuple[Asked, ...] = ()
    answers: tuple[queries.QueryAnswer, ...] = ()
    """How the queries of a log are answered, those that are asked most."""
    total: int = 0
    """All that queries count: rows, or persons where rows stand for several."""
    mined: tuple[rules.AssociationRule, ...] | None = None
    columns: RecodedTable | None = None
    clustered: clusters.ClusterFigures | None = None
    counted: Literal["persons", "records"] = "persons"
    """What `details` count: records, where a person may have several."""
    distributions: list[dict[str, Any]] | None = None
    """Of every column before and after, for the owner of the data; None where the table is large."""
    drawn: tuple[int, int] | None = None
    """Rows that predictions, rules, clusters, queries and the comparison were measured on, and all; None: on all."""

    def content(self, rule: Disclosure) -> dict[str, Any]:
        """The figures as they may be told."""

        def measured_as(tell: Callable[[Any, Disclosure], Any], measured: Any) -> Any:
            return None if measured is None else tell(measured, rule)

        return {
            "group_sizes": attack.group_bins(rule.rounded(self.sizes)),
            "detail": detail.detail_content(self.details, self.counted),
            "partition": self.partition,
            "predictions": workload.predictions_content(self.predictions, rule),
            "initial_risk": measured_as(attack.initial_content, self.initial),
            "comparison": measured_as(holdout.comparison_content, self.comparison),
            "curve": measured_as(curve_content, self.curve),
            "columns_lost": None if self.columns is None else content(self.columns, "report", "regions", key="column"),
            "clusters": measured_as(clusters.clusters_content, self.clustered),
            "queries": measured_as(self._queries, self.answers or None),
            "rules": measured_as(rules.rules_content, self.mined),
            **({} if rule.min_persons or not self.distributions else {"distributions": self.distributions}),
            **({} if self.drawn is None else {"measured_on": drawn_content(*self.drawn)}),
        }

    def _queries(self, answers: tuple[queries.QueryAnswer, ...], rule: Disclosure) -> dict[str, Any]:
        if rule.min_persons:
            return queries.public_queries(answers, rule, asked=len(self.asked), total=self.total)
        asks = [question.ask for question in self.asked[: len(answers)]]
        return queries.internal_queries(asks, answers, left_out=len(self.asked) - len(answers))


def _of_columns(draft: Draft, used: Integers, sizes: Integers, persons: Integers) -> dict[str, Any]:
    """What regions leave of the columns. used, sizes, persons: (region,) those that hold rows, how many, and the
    persons of each as a picture may tell them.
    """
    details = detail.details(draft.recoding, used, sizes)
    weights = draft.spec.weights if draft.learned is None else draft.learned.weights
    return {
        "details": details,
        "partition": detail.partition_content(draft.recoding, used, persons, [column.shares for column in details]),
        "columns": RecodedTable(draft.recoding, used, counts=sizes, weights=weights),
    }


def _of_regions(draft: Draft) -> Appraisal:
    """What regions leave of the columns and tell of the targets."""
    used, sizes = draft.region_sizes()
    rows, nodes = draft.released_rows()
    has_entities = draft.schema.name_of(Role.ENTITY) is not None
    persons = rounded = sizes
    if has_entities:  # a group has fewer persons than rows
        persons = persons_in(draft.schema, rows).of_groups(nodes.astype(np.int64), int(used.max(initial=0)) + 1)[used]
        k = draft.spec.privacy.least
        rounded = np.maximum(persons // k * k, 1)  # as all that is told
    columns = _of_columns(draft, used, sizes, rounded)
    targets = workload.coded_targets(workload_of(draft.spec), draft.schema, draft.source)
    raw = [column.name for column in draft.schema.released_raw]
    return Appraisal(
        sizes=persons,
        counted="records" if has_entities else "persons",
        predictions=workload.predictions(targets, draft.nodes, draft.recoding.node_count),
        distributions=losses.distributions(draft.recoding, columns["details"], rows, raw),
        **columns,
    )


def _of_all(draft: Draft, large: LargeTable, drawn: Appraisal) -> Appraisal:
    """Figures of regions that were drawn, with those that rest on all regions' sizes."""
    return replace(
        drawn,
        distributions=None,
        sizes=large.sizes,
        initial=large.initial,
        comparison=None if drawn.comparison is None else replace(drawn.comparison, of=draft.rows.released),
        drawn=(len(large.drawn.source), draft.rows.released),
        **_of_columns(draft, large.used, large.sizes, large.sizes),
        **_queries(large.drawn, draft),
    )


def _clusters(draft: Draft) -> clusters.ClusterFigures | None:
    """Clusters in the release and in the raw rows, where the release is for these and they can be found."""
    purpose = workload_of(draft.spec)
    if not purpose.objective.clusters or not clusters.can_cluster():
        return None
    number = draft.spec.workload.clusters
    return clusters.workload_clusters(purpose, draft.recoding, draft.schema, *draft.released_rows(), clusters=number)


def _setting(draft: Draft) -> holdout.HoldoutRequest:
    return holdout.HoldoutRequest(
        schema=draft.schema,
        frame=draft.source,
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
        return _of_all(draft, large, measure_all(replace(large.drawn, asked=()), ks=ks))
    # Counting raw combinations leaves a core to the rest.
    with ThreadPoolExecutor(1) as pool:
        risk = pool.submit(
            attack.initial_risk,
            draft.released_rows()[0],
            draft.recoding.quasi_identifiers,
            k=draft.spec.privacy.k,
            entity=draft.schema.name_of(Role.ENTITY),
            count=draft.schema.name_of(Role.COUNT),
        )
        appraisal = _of_regions(draft)
        appraisal = replace(
            appraisal, initial=risk.result(), **_queries(draft), mined=_rules(draft), clustered=_clusters(draft)
        )
    if draft.extends:
        return appraisal
    if draft.spec.privacy.quasi_identifiers:
        if ks:
            raise RequestError(
                "a curve is over one k; with privacy.quasi_identifiers, each of which has its own, leave it out."
            )
        return appraisal  # there is no blind release of several quasi-identifiers to compare with
    purpose = workload_of(draft.spec)
    rows = holdout.draw_holdout(_setting(draft)) if ks or holdout.has_purpose(purpose, purpose.targets) else None
    appraisal = replace(appraisal, comparison=holdout.compare(rows))
    return replace(appraisal, curve=_curve(rows, ks)) if ks else appraisal


def _queries(draft: Draft, whole: Draft | None = None) -> dict[str, Any]:
    """How the queries of the log are answered, where there is one; `whole` has all rows, where some were drawn."""
    if not draft.asked:
        return {}
    persons = persons_in(draft.schema, draft.source)
    table = queries.query_table(
        draft.recoding,
        draft.schema.columns,
        draft.source,
        draft.nodes,
        persons,
        k=draft.spec.privacy.k,
        domains=None if whole is None else whole_domains(whole),
    )
    judged = queries.judge_queries(
        [(question.ask, question.times) for question in draft.asked[: queries.JUDGED]], table
    )
    total = len(draft.source) if persons.counts is None else persons.total()
    return {"asked": draft.asked, "answers": tuple(judged), "total": total}


def _rules(draft: Draft) -> tuple[rules.AssociationRule, ...] | None:
    """Association rules of the released rows, of columns that are not guarded; None if they are not asked for."""
    if not draft.spec.workload.rules:
        return None
    rows, nodes = draft.released_rows()
    if len(rows) > rules.ROWS:
        drawn = np.random.default_rng(draft.spec.method.seed).choice(len(rows), rules.ROWS, replace=False)
        rows, nodes = rows[drawn], nodes[drawn]
    unguarded = [Role.INSENSITIVE] if draft.spec.privacy.max_confidence < 1 else [Role.INSENSITIVE, Role.TARGET]
    names = [column.name for column in draft.schema.of_role(*unguarded)]
    return tuple(rules.find_rules(rules.items_of(draft.recoding, nodes, rows, names)))


def _curve(rows: holdout.Holdout | None, ks: Sequence[int]) -> Curve:
    if rows is None:
        raise RequestError("there are too few rows to measure a curve over k; leave it out.")
    return curve(rows, read_ks(ks))


def risk_utility_curve(spec: Spec, source: Any = None, *, ks: Sequence[int]) -> list[dict[str, Any]]:
    """What releases of each k, ascending, would be worth: the risk that it allows and how useful regions are on rows
    they were not made of. All of it is for the owner of the data: the disclosure rule was not applied.
    """
    ks = read_ks(ks)
    draft = make(replace(spec, privacy=replace(spec.privacy, k=ks[0])), source=source)
    points = _curve(holdout.draw_holdout(_setting(draft)), ks)
    return list(curve_content(points, EVERYTHING)["points"])
