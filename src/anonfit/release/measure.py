# SPDX-License-Identifier: Apache-2.0
"""How useful and how risky a made table is: the figures of its report that are no part of the audit. They are measured
once and told twice, in public by the disclosure rule and in full to the owner of the data.
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
from anonfit.metrics.groups import InitialRisk, group_bins, initial_content, initial_risk
from anonfit.metrics.holdout import Holdout, HoldoutRequest, draw_holdout
from anonfit.metrics.queries import JUDGED, QueryAnswer, internal_queries, judge_queries, public_queries, query_table
from anonfit.metrics.registry import RecodedTable, content
from anonfit.metrics.rules import ROWS, AssociationRule, find_rules, items_of, rules_content
from anonfit.metrics.workload import TargetFigures, coded_targets, predictions, predictions_content
from anonfit.privacy.disclosure import EVERYTHING, Disclosure
from anonfit.release.bind import demands_of, refining_of, tree_of, workload_of
from anonfit.release.large_tables import LargeTable, drawn_content, whole_domains
from anonfit.release.result import Made
from anonfit.release.run import make
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
            **({} if self.drawn is None else {"measured_on": drawn_content(*self.drawn)}),
        }

    def _queries(self, rule: Disclosure) -> dict[str, Any]:
        if not rule.min_persons:
            asks = [one.ask for one in self.asked[: len(self.queries)]]
            return internal_queries(asks, self.queries, left_out=len(self.asked) - len(self.queries))
        return public_queries(self.queries, rule, asked=len(self.asked), total=self.total)


def _held(made: Made, nodes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nodes that hold released rows, and how many: rows, or the persons they stand for."""
    assert made.source is not None
    count, released = made.schema.name_of(Role.COUNT), nodes >= 0
    weights = None if count is None else made.source[count].cast(int).to_numpy()[released]
    sizes = np.bincount(nodes if released.all() else nodes[released], weights=weights).astype(np.int64)
    used = np.flatnonzero(sizes)
    return used, sizes[used]


def _released(made: Made) -> pl.DataFrame:
    """The raw rows that were released: figures of the others would tell how many these are."""
    assert made.source is not None
    assert made.nodes is not None
    kept = made.nodes >= 0
    return made.source if bool(kept.all()) else made.source[np.flatnonzero(kept)]


def _persons_of(made: Made, used: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The persons of each group: where a person has several rows, fewer than these."""
    if made.schema.name_of(Role.ENTITY) is None:
        return sizes
    assert made.nodes is not None
    nodes = made.nodes[made.nodes >= 0].astype(np.int64)
    return persons_in(made.schema, _released(made)).of_groups(nodes, int(used.max(initial=0)) + 1)[used]


def _of_regions(made: Made) -> Appraisal:
    """What regions leave of the columns and tell of the targets."""
    assert made.source is not None
    assert made.nodes is not None
    used, sizes = _held(made, made.nodes)
    found = details(made.recoding, used, sizes)
    targets = coded_targets(workload_of(made.spec), made.schema, made.source)
    persons, has_entities = _persons_of(made, used, sizes), made.schema.name_of(Role.ENTITY) is not None
    k = made.spec.privacy.k
    told = np.maximum(persons // k * k, 1) if has_entities else persons  # in multiples of k, as all that is told
    return Appraisal(
        sizes=persons,
        details=found,
        counted="records" if has_entities else "persons",
        partition=partition_content(made.recoding, used, told, [detail.shares for detail in found]),
        predictions=predictions(targets, made.nodes, made.recoding.node_count),
        columns=RecodedTable(made.recoding, used, counts=sizes, weights=_weights(made)),
    )


def _of_all(made: Made, large: LargeTable, found: Appraisal) -> Appraisal:
    """Figures of regions that were drawn, with those that rest on all regions' sizes."""
    shares = details(made.recoding, large.used, large.sizes)
    return replace(
        found,
        sizes=large.sizes,
        details=shares,
        partition=partition_content(made.recoding, large.used, large.sizes, [detail.shares for detail in shares]),
        columns=RecodedTable(made.recoding, large.used, counts=large.sizes, weights=_weights(made)),
        comparison=None if found.comparison is None else replace(found.comparison, of=made.rows.released),
        drawn=(large.drawn_rows, made.rows.released),
    )


def _weights(made: Made) -> Mapping[str, float]:
    """How much columns matter, as it was given or found."""
    return made.spec.weights if made.learned is None else made.learned.weights


def _clusters(made: Made) -> ClusterFigures | None:
    """Clusters in the release and in the raw rows, where the release is for these and they can be found."""
    workload = workload_of(made.spec)
    if not workload.objective.clusters or not can_cluster():
        return None
    assert made.nodes is not None
    nodes, clusters = made.nodes[made.nodes >= 0], made.spec.workload.clusters
    return workload_clusters(workload, made.recoding, made.schema, _released(made), nodes, clusters=clusters)


def _setting(made: Made) -> HoldoutRequest:
    assert made.source is not None
    return HoldoutRequest(
        schema=made.schema,
        frame=made.source,
        persons=partial(persons_in, made.schema),
        demands=demands_of(made.spec),
        workload=workload_of(made.spec),
        cut_points=made.spec.method.cut_points,
        seed=made.spec.method.seed,
        refining=refining_of(made.spec),
        tree=tree_of(made.spec),
    )


def measure_all(made: Made, *, ks: Sequence[int] = (), large: LargeTable | None = None) -> Appraisal:
    """Measure also the risk before, what the purpose gained on rows that were put aside, and, if any k are given, what
    other k would be worth.

    The gain is measured of what a release was made for, so not where new rows went through an earlier recoding.
    """
    if large is not None:
        found = _of_all(made, large, measure_all(replace(large.drawn, asked=()), ks=ks))
        return replace(found, initial=large.initial, **_queries(large.drawn, made))
    # Counting raw combinations leaves a core to the rest.
    with ThreadPoolExecutor(1) as pool:
        risk = pool.submit(
            initial_risk,
            _released(made),
            made.recoding.quasi_identifiers,
            k=made.spec.privacy.k,
            entity=made.schema.name_of(Role.ENTITY),
            count=made.schema.name_of(Role.COUNT),
        )
        found = _of_regions(made)
        found = replace(found, initial=risk.result(), **_queries(made), rules=_rules(made), clusters=_clusters(made))
    if made.extends:
        return found
    if made.spec.privacy.quasi_identifiers:
        if ks:
            raise RequestError(
                "a curve is over one k; with privacy.quasi_identifiers, each of which has its own, leave it out."
            )
        return found  # there is no blind release of several quasi-identifiers to compare with
    holdout = draw_holdout(_setting(made)) if ks or has_purpose(workload_of(made.spec)) else None
    found = replace(found, comparison=compare(holdout))
    return replace(found, curve=_curve(holdout, ks)) if ks else found


def _queries(made: Made, whole: Made | None = None) -> dict[str, Any]:
    """How the queries of the log are answered, where there is one; `whole` has all rows, where some were drawn."""
    if not made.asked:
        return {}
    assert made.source is not None
    assert made.nodes is not None
    persons = persons_in(made.schema, made.source)
    table = query_table(
        made.recoding,
        made.schema.columns,
        made.source,
        made.nodes,
        persons,
        k=made.spec.privacy.k,
        domains=None if whole is None else whole_domains(whole),
    )
    judged = judge_queries([(one.ask, one.times) for one in made.asked[:JUDGED]], table)
    total = len(made.source) if persons.counts is None else int(persons.counts.sum(dtype=np.int64))
    return {"asked": made.asked, "queries": tuple(judged), "total": total}


def _rules(made: Made) -> tuple[AssociationRule, ...] | None:
    """Association rules of the released rows, of columns that are not guarded; None if they are not asked for."""
    if not made.spec.workload.rules:
        return None
    assert made.nodes is not None
    rows, nodes = _released(made), made.nodes[made.nodes >= 0]
    if len(rows) > ROWS:
        drawn = np.random.default_rng(made.spec.method.seed).choice(len(rows), ROWS, replace=False)
        rows, nodes = rows[drawn], nodes[drawn]
    names = [
        column.name
        for column in made.schema.of_role(Role.INSENSITIVE, Role.TARGET)
        if not (made.spec.privacy.max_confidence < 1 and column.role == Role.TARGET)
    ]
    return tuple(find_rules(items_of(made.recoding, nodes, rows, names)))


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
    made = make(replace(spec, privacy=replace(spec.privacy, k=ks[0])), source=source)
    points: list[dict[str, Any]] = curve_content(_curve(draw_holdout(_setting(made)), ks), EVERYTHING)["points"]
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
    found = table.lazy().select(asked).collect(engine="streaming").row(0, named=True) if asked else {}
    names = pl.select(runs(pl.lit(name)).alias(name) for name in schema).row(0, named=True)
    return [name for name in schema if found.get(name) or names[name]]


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
