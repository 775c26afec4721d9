# SPDX-License-Identifier: Apache-2.0
"""Queries run twice, over the raw rows and over what a release says: how many rows are found that were not meant, and
how far counts, sums and means are from the true ones, by group where there are groups.

A recipient gets every row whose region may hold what is asked for (overlap), and estimates what a query computes by the
share of each region that lies in what is asked for (`estimates`).

Who asked a query can compute what the release answers. So what is told of how far that is from the truth obeys the rule
of selections: only of queries that mean at least k persons and leave out none or at least k, and all from one count
per query, the rows of its answer that it does not mean, in multiples of k. Whatever is told of all queries together is
computed from these. How far sums and means are from the true ones is not public: a sum may be mostly one person's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.metrics.estimates import Ends, Estimator, QueryTable
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.imprecision import Answers, answer
from anonfit.recoding.recoding import Recoding, cells_of_codes
from anonfit.tables.codebook import code_column
from anonfit.tables.schema import Column, ColumnType, Domain, OrderedDomain, Persons, Role
from anonfit.workload.coding import selection_boundaries, with_boundaries
from anonfit.workload.logs.tallies import Ask
from anonfit.workload.parsing import predicate_text
from anonfit.workload.predicates import (
    And,
    ColumnKind,
    Condition,
    Holding,
    Predicate,
    Relation,
    Value,
    all_of,
    kinds_of,
)
from anonfit.workload.selections import code_predicates
from anonfit.workload.truth import ColumnValues, RawTable

JUDGED = 200
"""Queries of a log by which a release is judged, those that are asked most."""
TOGETHER = 1_000
"""Predicates that are coded together."""


def domains_of(columns: Sequence[Column], frame: pl.DataFrame, persons: Persons, k: int) -> list[Domain]:
    """What the quasi-identifiers of raw rows can be; names that fewer than k persons have are one."""
    return [
        code_column(column, frame[column.name], persons=persons.of_groups, k=k).domain
        for column in columns
        if column.role == Role.QUASI_IDENTIFIER
    ]


def bounded_domains(domains: Sequence[Domain], predicates: Sequence[Predicate]) -> list[Domain]:
    """Domains that have the boundaries of predicates."""
    return [
        with_boundaries(domain, selection_boundaries(predicates, domain))[0]
        if isinstance(domain, OrderedDomain)
        else domain
        for domain in domains
    ]


def query_table(
    recoding: Recoding,
    columns: Sequence[Column],
    frame: pl.DataFrame,
    nodes: NDArray[np.integer[Any]],
    persons: Persons,
    *,
    k: int,
    domains: Sequence[Domain] | None = None,
) -> QueryTable:
    """The raw rows that a recoding was made of, ready for queries; names that fewer than k persons have are one. nodes:
    (row,) -1 for a row that is withheld; domains: of the quasi-identifiers, given where these are only some of the rows
    that the recoding was made of.
    """
    domains = domains_of(columns, frame, persons, k) if domains is None else domains
    whole = None if persons.counts is None else persons.counts.astype(np.int64)
    return QueryTable(recoding, kinds_of(columns, frame), domains, frame, nodes, whole)


@dataclass(frozen=True, slots=True)
class QueryError:
    """A count, sum or mean of a query and how far its values, one for each group, are from the true ones together."""

    name: str
    column: str | None
    """None: rows are counted."""
    groups: int
    difference: float
    of: float
    """The sum of the true values."""

    @property
    def error(self) -> float | None:
        """The relative error; None where there is nothing to compare with."""
        return self.difference / self.of if self.of > 0 else None


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """How a query is answered: rows that it means, of these the released ones, and rows that it gets."""

    times: int
    true: int
    kept: int
    answered: int
    expected: float
    """How many rows are expected to be meant."""
    measures: tuple[QueryError, ...]

    @property
    def imprecision(self) -> int:
        """Rows of the answer that are not meant."""
        return self.answered - self.kept

    @property
    def precision(self) -> float:
        """The share of the answer that is meant; 1 for an empty answer."""
        return self.kept / self.answered if self.answered else 1.0

    @property
    def recall(self) -> float:
        """The share of what is meant that the answer has."""
        return self.kept / self.true if self.true else 1.0


def judge_queries(asks: Sequence[tuple[Ask, int]], table: QueryTable, *, ends: Ends | None = None) -> list[QueryAnswer]:
    """Run queries, each with how often it was asked, over raw rows and regions; `ends` as in `uniform_spread`."""
    rows = RawTable(table.frame)
    every = _answers([_predicate(ask) for ask, _ in asks], table, rows)
    answers: list[QueryAnswer] = []
    for chunk in _chunks(asks, table, rows):
        estimator = Estimator(table, rows, [predicate for query in chunk for predicate in query.predicates], ends)
        # Without groups, which are those of the raw rows: what is expected would tell which values occur.
        whole = Estimator(table, rows, [_predicate(query.ask) for query in chunk], ends)
        start = 0
        for query, expected in zip(chunk, whole.counts(slice(0, len(chunk))).tolist(), strict=True):
            place = slice(start, start + len(query.predicates))
            start = place.stop
            at = len(answers)
            answers.append(
                QueryAnswer(
                    times=asks[at][1],
                    true=int(every.true[at]),
                    kept=int(every.kept[at]),
                    answered=int(every.answered[at]),
                    expected=expected,
                    measures=tuple(query.measures(estimator, place)),
                )
            )
    return answers


def _predicate(ask: Ask) -> Predicate:
    return And(()) if ask.predicate is None else ask.predicate


def _answers(predicates: Sequence[Predicate], table: QueryTable, rows: RawTable) -> Answers:
    """What each predicate asks for and gets."""
    domains = bounded_domains(table.domains, predicates)
    coded = code_predicates(predicates, domains, rows)
    released = table.nodes >= 0
    true = rows.count(predicates, counts=table.counts)
    kept = true if bool(released.all()) else rows.count(predicates, counts=table.counts, among=released)
    cells = cells_of_codes(table.recoding, domains)
    return answer(coded, table.recoding.boxes, table.nodes, cells=cells, true=true, kept=kept, counts=table.counts)


@dataclass(frozen=True, slots=True)
class _Query:
    """A query divided by its groups: a predicate for each, and the group of each raw row that it means."""

    ask: Ask
    grouping: QueryGroups
    predicates: tuple[Predicate, ...]
    meant: NDArray[np.bool_]  # (row,)

    def measures(self, estimator: Estimator, place: slice) -> Iterator[QueryError]:
        """Its counts, sums and means against the true ones; a count of rows is always one of them."""
        for name, column in dict.fromkeys((("count", None), *self.ask.aggregates)):
            if name != "count" and column is not None and estimator.values(column) is None:
                continue  # nothing that could be added
            yield self._measure(name, column, estimator, place)

    def _measure(self, name: str, column: str | None, estimator: Estimator, place: slice) -> QueryError:
        counts, sums = estimator.sums(place, column, with_values=name != "count")
        true_counts, true_sums = self.grouping.sums(
            self.meant, estimator.known(column), estimator.values(column) if name != "count" else None
        )
        if name == "avg":
            has = true_counts > 0
            true = true_sums[has] / true_counts[has]
            guess = np.where(counts[has] > 0, sums[has] / np.maximum(counts[has], np.finfo(float).tiny), 0.0)
        elif name == "sum":
            true, guess = true_sums, sums
        else:
            true, guess = true_counts, counts
        return QueryError(
            name, column, len(self.predicates), float(np.abs(guess - true).sum()), float(np.abs(true).sum())
        )


def _chunks(asks: Sequence[tuple[Ask, int]], table: QueryTable, rows: RawTable) -> Iterator[list[_Query]]:
    """Queries, as many together as are coded at once."""
    chunk: list[_Query] = []
    for ask, _ in asks:
        grouping = grouping_of(ask.groups, table.kinds, rows)
        meant = rows.holds(_predicate(ask))
        parts = grouping.predicates or (And(()),)
        own = [] if ask.predicate is None else [ask.predicate]
        chunk.append(_Query(ask, grouping, tuple(all_of([*own, part]) for part in parts), meant))
        if sum(len(query.predicates) for query in chunk) >= TOGETHER:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


MOST = 100
"""A query with more groups is judged as a whole."""


@dataclass(frozen=True, slots=True)
class QueryGroups:
    """Groups of rows: without predicates, all rows are one."""

    predicates: tuple[Predicate, ...]
    group_of: NDArray[np.int64]  # (row,)

    def sums(
        self, meant: NDArray[np.bool_], known: NDArray[np.float64], values: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Over the rows that are meant, for each group: what they count, and the sum of their values."""
        size, groups = max(len(self.predicates), 1), self.group_of[meant]
        counts: Any = np.bincount(groups, weights=known[meant], minlength=size)
        if values is None:
            return counts, np.zeros(size)
        sums: Any = np.bincount(groups, weights=(known * values)[meant], minlength=size)
        return counts, sums


def grouping_of(names: Sequence[str], kinds: Mapping[str, ColumnKind], rows: RawTable) -> QueryGroups:
    """The groups of rows by columns; all rows together where these have too many values, or none that can be named."""
    whole = QueryGroups((), np.zeros(len(rows.frame), np.int64))
    columns = [rows.column(kinds[name]) for name in dict.fromkeys(names)]
    if not columns or not all(_can_be_named(column) for column in columns):
        return whole
    combined = np.zeros(len(rows.frame), np.int64)
    for column in columns:
        combined = combined * (len(column.distinct) + 1) + column.places
    keys, group_of = np.unique(combined, return_inverse=True)
    if len(keys) > MOST:
        return whole
    predicates = []
    for key in keys.tolist():
        parts = []
        for column in reversed(columns):
            key, place = divmod(key, len(column.distinct) + 1)
            parts.append(_equal(column, place))
        predicates.append(all_of(reversed(parts)))
    return QueryGroups(tuple(predicates), group_of.astype(np.int64))


def _can_be_named(column: ColumnValues) -> bool:
    """Whether a predicate can name each value: not numbers without a next one, nor a taxonomy's names (intervals)."""
    kind, dtype = column.kind, column.distinct.dtype
    if len(column.distinct) > MOST:
        return False
    if kind.holding == Holding.TEXTS:
        return True
    if kind.declared.taxonomy is not None or kind.type == ColumnType.ORDINAL:
        return False
    return dtype.is_integer() or dtype == pl.Date or kind.holding == Holding.TRUTHS


def _equal(column: ColumnValues, place: int) -> Condition:
    name, kind = column.kind.declared.name, column.kind
    if place == len(column.distinct):
        return Condition(name, Relation.MISSING, kind=kind)
    if kind.holding in (Holding.TEXTS, Holding.TRUTHS):
        return Condition(name, Relation.IN, (column.names[place],), kind=kind)
    return Condition(name, Relation.IN, (_value(column.distinct[place]),), kind=kind)


def _value(value: Any) -> Value:
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else Fraction(value)


def internal_queries(asks: Sequence[Ask], answers: Sequence[QueryAnswer], *, left_out: int) -> dict[str, Any]:
    """Everything about every query, for the internal record."""
    return {
        "judged": len(answers),
        "left_out": left_out,
        **query_figures(answers),
        "queries": [
            {
                "where": None if ask.predicate is None else predicate_text(ask.predicate),
                "groups": list(ask.groups),
                "times": answer.times,
                "true": answer.true,
                "answered": answer.answered,
                "expected": round(answer.expected, 1),
                "imprecision": answer.imprecision,
                "precision": answer.precision,
                "recall": answer.recall,
                "errors": [_measure(measure) for measure in answer.measures],
            }
            for ask, answer in zip(asks, answers, strict=True)
        ],
    }


def _measure(measure: QueryError) -> dict[str, Any]:
    of = measure.name if measure.column is None else f"{measure.name} of {measure.column}"
    return {"of": of, "groups": measure.groups, "error": measure.error}


def query_figures(answers: Sequence[QueryAnswer]) -> dict[str, float | None]:
    """Means over queries, each as often as it was asked: rows that were not meant, and relative errors."""
    times = sum(answer.times for answer in answers)
    if not times:
        return {}
    return {
        "imprecision": sum(answer.times * answer.imprecision for answer in answers) / times,
        "precision": sum(answer.times * answer.precision for answer in answers) / times,
        "recall": sum(answer.times * answer.recall for answer in answers) / times,
        **{f"{name}_error": mean_error(answers, name) for name in ("count", "sum", "avg")},
    }


def mean_error(answers: Sequence[QueryAnswer], name: str) -> float | None:
    """The mean relative error of counts, sums or means; None where there are none."""
    errors = [
        (answer.times, measure.error)
        for answer in answers
        for measure in answer.measures
        if measure.name == name and measure.error is not None
    ]
    times = sum(count for count, _ in errors)
    return sum(count * error for count, error in errors) / times if times else None


def public_queries(answers: Sequence[QueryAnswer], rule: Disclosure, *, asked: int, total: int) -> dict[str, Any]:
    """What everybody may know of how queries are answered: nothing where a person may have several of the rows that
    answers count. asked: how many different queries there are; total: all rows, or the persons they stand for.
    """
    least = rule.min_persons
    public = [answer for answer in answers if rule.rows_are_persons and _is_public(answer, total, least)]
    content: dict[str, Any] = {"asked": asked, "told": len(public), "multiples_of": least}
    if not public:
        return content | {"imprecision": None, "precision": None, "count_error": None}
    rounded = [answer.imprecision // least * least for answer in public]
    answered = sum(answer.answered for answer in public)
    meant = [answer.answered - vain for answer, vain in zip(public, rounded, strict=True)]
    away = sum(abs(answer.expected - rows) for answer, rows in zip(public, meant, strict=True))
    return content | {
        "imprecision": sum(rounded),
        "precision": round(1 - sum(rounded) / answered, 2) if answered else 1.0,
        "count_error": round(away / sum(meant), 2) if sum(meant) else None,
    }


def _is_public(answer: QueryAnswer, total: int, least: int) -> bool:
    rest = total - answer.true
    enough = answer.true >= least and (rest == 0 or rest >= least) and answer.kept == answer.true
    return enough and not 0 < answer.imprecision < least
