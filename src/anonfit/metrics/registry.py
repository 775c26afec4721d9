# SPDX-License-Identifier: Apache-2.0
"""The metrics of a release, one entry each: what it is called, what it needs, how it is computed, and how it is shown.

Reports, evaluations, comparisons and explorations ask here which metrics are theirs. A new one is a function over a
`RecodedTable` and an entry of `METRICS`; in a public report it must also be declared to the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.metrics.arrays import AnyIntegers
from anonfit.metrics.clusters import ClusterFigures
from anonfit.metrics.groups import ClassEntropy, GroupFigures, class_entropy, group_figures, released_persons
from anonfit.metrics.losses import Discernibility, Extents, Losses, losses, observed_extents, weighted_discernibility
from anonfit.metrics.queries import QueryAnswer, query_figures
from anonfit.recoding.recoding import Recoding
from anonfit.tables.schema import Persons

Need = Literal["groups", "regions", "classes", "clusters", "selections", "queries"]
"""What must be known of a table: the persons of its groups, the region of every row, the classes of targets, clusters,
answers to selections, or answers to queries.
"""
Use = Literal["compare", "evaluate", "explore", "report"]


@dataclass(frozen=True)
class RecodedTable:
    """A release as metrics see it: in which region each row is, and for how many persons it stands."""

    recoding: Recoding
    nodes: AnyIntegers | None
    """(row,) the node of each row, -1 for a row that is withheld; None where regions cannot be told from labels."""
    k: int = 1
    counts: NDArray[Any] | None = None
    """(row,) how many persons each row stands for; None: one."""
    group_of: AnyIntegers | None = None
    """(row,) the group of each row, where nodes are not known."""
    sizes: AnyIntegers | None = None
    """(group,) the persons of each group, where rows do not tell them because persons have several."""
    knows_persons: bool = True
    withheld: int = 0
    """Persons that are not among these rows because they are withheld."""
    extents: Extents | None = None
    """The ends of ordered columns; what the recoding says if not given, so that figures are public."""
    unnamed: Mapping[str, int] | None = None
    """How many values are in the leaf of values that a nominal column does not name; one if not given."""
    weights: Mapping[str, float] = field(default_factory=dict)
    classes: Mapping[str, AnyIntegers] = field(default_factory=dict)
    """The class of each row, for each target that has classes."""
    clusters: ClusterFigures | None = None
    imprecision: float | None = None
    """The rows of answers to selections that do not satisfy them, each by its selection's weight."""
    queries: Sequence[QueryAnswer] = ()

    @classmethod
    def of_rows(
        cls, recoding: Recoding, frame: pl.DataFrame, nodes: AnyIntegers, persons: Persons, **known: Any
    ) -> RecodedTable:
        """The release of raw rows: columns are measured by the range of their values, which is not for the public."""
        sizes = persons.of_groups(nodes.astype(np.int64), int(nodes.max(initial=0)) + 1)
        extents = observed_extents(recoding, frame)
        return cls(recoding, nodes, counts=persons.counts, sizes=sizes[sizes > 0], extents=extents, **known)

    def knows(self, need: Need) -> bool:
        """Whether the table has what metrics of a need are computed from."""
        known = {
            "groups": self.knows_persons,
            "regions": self.nodes is not None,
            "classes": True,
            "clusters": self.clusters is not None,
            "selections": self.imprecision is not None,
            "queries": bool(self.queries),
        }
        return known[need]

    @property
    def _group_of_rows(self) -> AnyIntegers:
        groups = self.nodes if self.group_of is None else self.group_of
        assert groups is not None
        return groups

    @cached_property
    def groups(self) -> GroupFigures:
        """The sizes of its groups."""
        _, sizes, lost = released_persons(self._group_of_rows, self.counts, self.withheld)
        return group_figures(sizes if self.sizes is None else self.sizes, k=self.k, withheld=lost)

    @cached_property
    def losses(self) -> Losses:
        """What its columns lost by generalizing."""
        assert self.nodes is not None
        known: Any = {"counts": self.counts, "withheld": self.withheld}
        return losses(self.recoding, self.nodes, extents=self.extents, unnamed=self.unnamed, **known)

    @cached_property
    def discernibility(self) -> Discernibility:
        """How many persons each column alone leaves together."""
        assert self.nodes is not None
        known: Any = {"counts": self.counts, "withheld": self.withheld}
        return weighted_discernibility(self.recoding, self.nodes, weights=self.weights, **known)

    @cached_property
    def targets(self) -> tuple[ClassEntropy, ...]:
        """How mixed the classes of targets are in its groups."""
        rows = self._group_of_rows
        return tuple(
            class_entropy(name, rows, codes, counts=self.counts, withheld=self.withheld)
            for name, codes in self.classes.items()
        )

    @cached_property
    def query_means(self) -> Mapping[str, float | None]:
        """How queries are answered, in the mean over all that were asked."""
        return query_figures(self.queries)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of releases."""

    name: str
    needs: Need
    measure: Callable[[RecodedTable], Any]
    """Its value; of columns and targets, the value of each by name."""
    formula: str
    uses: tuple[Use, ...]
    subject: Literal["release", "column", "target"] = "release"
    title: str = ""
    """The head of its line or table; without one it is in the data only."""
    words: str = ""
    """What it is called in a sentence, or at the head of a column."""
    short: str = ""
    """Its name in the record of an exploration, where that is another."""
    note: str = ""
    """What a reader should know."""
    is_share: bool = False
    """Whether it is shown in percent."""
    digits: int | None = None
    """To how many digits a report rounds it; None: not at all."""

    def rounded(self, table: RecodedTable) -> Any:
        """Its value as a report has it."""
        measured = self.measure(table)
        if self.digits is None:
            return measured
        if isinstance(measured, Mapping):
            return {name: round(value, self.digits) for name, value in measured.items()}
        return round(measured, self.digits)


def metrics_of(use: Use, *needs: Need) -> list[Metric]:
    """The metrics of a use; with needs, those that have one of them."""
    return [metric for metric in METRICS if use in metric.uses and (not needs or metric.needs in needs)]


def figures(table: RecodedTable, use: Use) -> Iterator[tuple[Metric, str, float]]:
    """The metrics of a use that can be computed from a table: the value of each, with the column it is about."""
    for metric in metrics_of(use):
        if not table.knows(metric.needs):
            continue
        measured = metric.measure(table)
        for column, value in measured.items() if isinstance(measured, Mapping) else [("", measured)]:
            if value is not None:
                yield metric, column, value


def content(table: RecodedTable, use: Use, need: Need, *, key: str) -> dict[str, Any] | None:
    """The metrics of a use and a need as plain data: those of the release by name, and a line for every column, which
    it names by a key; None where the table has not what they need.
    """
    if not table.knows(need):
        return None
    of_release: dict[str, Any] = {}
    lines: dict[str, dict[str, Any]] = {}
    for metric in metrics_of(use, need):
        value = metric.rounded(table) if use == "report" else metric.measure(table)
        if metric.subject == "release":
            of_release[metric.name] = value
            continue
        for column, figure in value.items():
            lines.setdefault(column, {key: column})[metric.name] = figure
    return of_release | {"columns": list(lines.values())}


def _of_columns(
    name: str, read: Callable[[RecodedTable, str], Any], formula: str, uses: tuple[Use, ...], digits: int | None = None
) -> Metric:
    def measure(table: RecodedTable) -> dict[str, Any]:
        return {column: read(table, column) for column in table.recoding.quasi_identifiers}

    return Metric(name, "regions", measure, formula, uses, "column", digits=digits)


def _of_losses(name: str) -> Callable[[RecodedTable], dict[str, float]]:
    return lambda table: {column.name: getattr(column, name) for column in table.losses.columns}


def _of_targets(name: str, formula: str, uses: tuple[Use, ...], **shown: Any) -> Metric:
    def measure(table: RecodedTable) -> dict[str, float]:
        return {target.column: getattr(target, name) for target in table.targets}

    return Metric(name, "classes", measure, formula, uses, "target", **shown)


def _evaluated(name: str, needs: Need, path: str, words: str, formula: str) -> Metric:
    return Metric(name, needs, attrgetter(path), formula, ("evaluate",), words=words)


def _of_queries(name: str, words: str, formula: str) -> Metric:
    return Metric(
        f"query_{name}", "queries", lambda table: table.query_means.get(name), formula, ("evaluate",), words=words
    )


METRICS = (
    Metric("average_size", "groups", attrgetter("groups.average"), "n / groups", ("evaluate",)),
    Metric("group_count", "groups", attrgetter("groups.groups"), "groups", ("evaluate",)),
    Metric(
        "discernibility",
        "groups",
        lambda table: table.groups.discernibility,
        "Σ over groups E of |E|², and n for every withheld person",
        ("compare", "evaluate", "explore"),
        title="Discernibility",
        words="discernibility",
        note="Discernibility: squares of group sizes, summed.",
    ),
    Metric(
        "gcp",
        "regions",
        attrgetter("losses.gcp"),
        "the mean of NCP over columns",
        ("compare", "evaluate", "explore", "report"),
        title="Global certainty penalty (GCP)",
        words="certainty penalty",
        note="Loss: 0 if every value is told exactly, 1 if nothing is told; measured over the same ends of numbers and "
        "dates for all.",
        digits=3,
    ),
    Metric(
        "lm",
        "regions",
        attrgetter("losses.lm"),
        "the mean of LM over columns",
        ("compare", "evaluate"),
        title="Loss metric (LM)",
    ),
    _of_targets("entropy", "H(C), in bits", ("compare",)),
    _of_targets(
        "conditional_entropy",
        "H(C|P) = Σ over E of |E|/n · H(classes in E), in bits",
        ("compare", "evaluate"),
        title="left open (bits)",
        note="Left open: the entropy (bits) of a target inside groups.",
    ),
    _of_targets(
        "explained",
        "1 − H(C|P) / H(C)",
        ("compare",),
        title="explained",
        note="Explained: the part of its entropy that groups take away.",
        is_share=True,
    ),
    _of_targets(
        "classification_metric",
        "(persons whose class is not their group's commonest + withheld persons) / all",
        ("compare", "evaluate"),
        title="not the commonest",
        note="Not the commonest: the share of rows whose class is not their group's commonest (classification metric).",
        is_share=True,
    ),
    Metric(
        "weighted_discernibility",
        "regions",
        attrgetter("discernibility.total"),
        "Σ over columns of weight · (Σ over labels of persons²)",
        ("evaluate", "explore", "report"),
        words="weighted discernibility",
        short="wdm",
        digits=1,
    ),
    _of_columns(
        "weight",
        lambda table, name: table.discernibility.weights[name],
        "how much a column matters; all weights add up to 1",
        ("report",),
        digits=3,
    ),
    Metric(
        "ncp",
        "regions",
        _of_losses("ncp"),
        "the share of a column's width, or of its names, that the average label takes",
        ("compare", "evaluate", "report"),
        "column",
        title="Certainty penalty (NCP) of each column",
        note="The share of a column's width, or of its names, that the average label takes.",
        digits=3,
    ),
    Metric(
        "lm", "regions", _of_losses("lm"), "as NCP; of names, (names − 1) / (all names − 1)", ("compare",), "column"
    ),
    _of_columns(
        "squares", lambda table, name: table.discernibility.columns[name], "Σ over labels of persons²", ("report",)
    ),
    _of_columns(
        "together",
        lambda table, name: table.discernibility.share(name),
        "Σ over labels of persons² / n²",
        ("evaluate", "report"),
        digits=3,
    ),
    _evaluated("cluster_agreement", "clusters", "clusters.agreement", "clusters: agreement", "adjusted Rand index"),
    _evaluated(
        "cluster_within",
        "clusters",
        "clusters.within_release",
        "variance within",
        "the share of the raw variance that is left within clusters of the release",
    ),
    _evaluated(
        "cluster_within_original",
        "clusters",
        "clusters.within_original",
        "within the original's",
        "the share of the raw variance that is left within clusters of the raw rows",
    ),
    _evaluated(
        "imprecision",
        "selections",
        "imprecision",
        "selections: rows not meant",
        "Σ over selections of weight · rows of the answer that do not satisfy it",
    ),
    _of_queries(
        "imprecision", "a query: rows not meant", "the mean over queries of rows of the answer that are not meant"
    ),
    _of_queries("precision", "precision", "the mean over queries of rows that are meant / rows of the answer"),
    _of_queries("recall", "recall", "the mean over queries of released rows that are meant / rows that are meant"),
    _of_queries(
        "count_error", "count error", "the mean over queries of Σ over groups of |estimate − count| / Σ counts"
    ),
    _of_queries("sum_error", "sum error", "the same of sums"),
    _of_queries("avg_error", "mean error", "the same of means"),
)
"""All metrics, in the order in which they are told."""
