# SPDX-License-Identifier: Apache-2.0
"""How useful and how risky a table is: the figures of its report that are no part of the audit. They are measured once
and told twice, in public by the disclosure rule and in full to the owner of the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import RequestError
from anonfit.metrics.clusters import ClusterFigures, can_cluster, clusters_content, workload_clusters
from anonfit.metrics.comparison import (
    Curve,
    PurposeComparison,
    compare,
    comparison_content,
    curve,
    curve_content,
    has_purpose,
    read_ks,
)
from anonfit.metrics.detail import Detail, detail_content, details, partition_content
from anonfit.metrics.distributions import distributions
from anonfit.metrics.groups import InitialRisk, group_bins, initial_content, initial_risk
from anonfit.metrics.holdout import Holdout, HoldoutRequest, draw_holdout
from anonfit.metrics.queries import JUDGED, QueryAnswer, internal_queries, judge_queries, public_queries, query_table
from anonfit.metrics.registry import RecodedTable, content
from anonfit.metrics.rules import ROWS, AssociationRule, find_rules, items_of, rules_content
from anonfit.metrics.workload import TargetFigures, coded_targets, predictions, predictions_content
from anonfit.privacy.disclosure import EVERYTHING, Disclosure
from anonfit.release.bind import demands_of, refining_of, tree_of, workload_of
from anonfit.release.result import Draft
from anonfit.release.run import make
from anonfit.release.table import LargeTable, drawn_content, whole_domains
from anonfit.spec.learning import Asked
from anonfit.spec.model import Spec
from anonfit.tables.persons import persons_in
from anonfit.tables.schema import Role

if TYPE_CHECKING:
    import polars as pl

NUMBER = r"^[+-]\s?[\d.,]*(?:[eE][+-]?\d+)?\s?%?$"
"""A text with a sign that is a number, or the sign alone."""


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


def _held(draft: Draft) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nodes that hold released rows, and how many: rows, or the persons they stand for."""
    count, nodes = draft.schema.name_of(Role.COUNT), draft.node_of_row
    released = nodes >= 0
    weights = None if count is None else draft.raw_rows[count].cast(int).to_numpy()[released]
    sizes = np.bincount(nodes if released.all() else nodes[released], weights=weights).astype(np.int64)
    used = np.flatnonzero(sizes)
    return used, sizes[used]


def _released(draft: Draft) -> tuple[pl.DataFrame, NDArray[np.int32]]:
    """The raw rows that were released and their nodes: figures of the others would tell how many these are."""
    kept = draft.node_of_row >= 0
    rows = draft.raw_rows if bool(kept.all()) else draft.raw_rows[np.flatnonzero(kept)]
    return rows, draft.node_of_row[kept]


def _persons_of(draft: Draft, used: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The persons of each group: where a person has several rows, fewer than these."""
    if draft.schema.name_of(Role.ENTITY) is None:
        return sizes
    rows, nodes = _released(draft)
    return persons_in(draft.schema, rows).of_groups(nodes.astype(np.int64), int(used.max(initial=0)) + 1)[used]


def _of_regions(draft: Draft) -> Appraisal:
    """What regions leave of the columns and tell of the targets."""
    used, sizes = _held(draft)
    column_details = details(draft.recoding, used, sizes)
    targets = coded_targets(workload_of(draft.spec), draft.schema, draft.raw_rows)
    persons, has_entities = _persons_of(draft, used, sizes), draft.schema.name_of(Role.ENTITY) is not None
    k = draft.spec.privacy.least
    rounded = np.maximum(persons // k * k, 1) if has_entities else persons  # as all that is told
    return Appraisal(
        sizes=persons,
        details=column_details,
        counted="records" if has_entities else "persons",
        partition=partition_content(draft.recoding, used, rounded, [detail.shares for detail in column_details]),
        predictions=predictions(targets, draft.node_of_row, draft.recoding.node_count),
        distributions=_distributions(draft, column_details),
        columns=RecodedTable(draft.recoding, used, counts=sizes, weights=_weights(draft)),
    )


def _distributions(draft: Draft, column_details: Sequence[Detail]) -> list[dict[str, Any]]:
    rows, _ = _released(draft)
    raw = [column.name for column in draft.schema.released_raw if column.name in rows.columns]
    return distributions(draft.recoding, column_details, rows, raw)


def _of_all(draft: Draft, large: LargeTable, drawn: Appraisal) -> Appraisal:
    """Figures of regions that were drawn, with those that rest on all regions' sizes."""
    column_details = details(draft.recoding, large.used, large.sizes)
    return replace(
        drawn,
        distributions=None,
        sizes=large.sizes,
        details=column_details,
        partition=partition_content(
            draft.recoding, large.used, large.sizes, [detail.shares for detail in column_details]
        ),
        columns=RecodedTable(draft.recoding, large.used, counts=large.sizes, weights=_weights(draft)),
        comparison=None if drawn.comparison is None else replace(drawn.comparison, of=draft.rows.released),
        drawn=(large.drawn_rows, draft.rows.released),
    )


def _weights(draft: Draft) -> Mapping[str, float]:
    """How much columns matter, as it was given or found."""
    return draft.spec.weights if draft.learned is None else draft.learned.weights


def _clusters(draft: Draft) -> ClusterFigures | None:
    """Clusters in the release and in the raw rows, where the release is for these and they can be found."""
    workload = workload_of(draft.spec)
    if not workload.objective.clusters or not can_cluster():
        return None
    return workload_clusters(
        workload, draft.recoding, draft.schema, *_released(draft), clusters=draft.spec.workload.clusters
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
            _released(draft)[0],
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
    holdout = draw_holdout(_setting(draft)) if ks or has_purpose(workload_of(draft.spec)) else None
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
    rows, nodes = _released(draft)
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


def formula_columns(table: pl.DataFrame | pl.LazyFrame) -> list[str]:
    """The columns of a table with a name or a text that a spreadsheet takes for a formula; numbers are none."""
    import polars as pl

    def runs(texts: pl.Expr) -> pl.Expr:
        return (~texts.filter(texts.str.contains(r"^[=+\-@\t\r]")).str.contains(NUMBER)).any()

    dictionary = pl.Categorical | pl.Enum
    schema = table.collect_schema()
    asked = [
        runs((pl.col(name).unique() if isinstance(dtype, dictionary) else pl.col(name)).cast(pl.String)).alias(name)
        for name, dtype in schema.items()
        if isinstance(dtype, pl.String | dictionary)
    ]
    of_texts = table.lazy().select(asked).collect(engine="streaming").row(0, named=True) if asked else {}
    of_names = pl.select(runs(pl.lit(name)).alias(name) for name in schema).row(0, named=True)
    return [name for name in schema if of_texts.get(name) or of_names[name]]


def different_labels(table: pl.DataFrame | pl.LazyFrame, name: str) -> int | None:
    """How many different labels a released column has; None where it is released as bounds."""
    import polars as pl

    dtype = table.collect_schema().get(name)
    if dtype is None:
        return None
    if isinstance(dtype, pl.Enum):
        return len(dtype.categories)
    if isinstance(table, pl.DataFrame):
        return table[name].n_unique()
    return int(table.select(pl.col(name).n_unique()).collect(engine="streaming").item())
