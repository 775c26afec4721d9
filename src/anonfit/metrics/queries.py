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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from anonfit.metrics.arrays import AnyIntegers, Flags, Floats, Integers
from anonfit.metrics.estimates import Ends, Estimator, QueryTable
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.imprecision import Answers, answer
from anonfit.recoding.recoding import Recoding, cells_of_codes
from anonfit.tables.codebook import code_column
from anonfit.tables.schema import Column, ColumnType, Domain, OrderedDomain, Persons, Role
from anonfit.workload.coding import selection_boundaries, with_boundaries
from anonfit.workload.logs.tallies import Ask
from anonfit.workload.parsing import predicate_text
from anonfit.workload.predicates import And, ColumnKind, Condition, Holding, Predicate, Relation, all_of, kinds_of
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
    nodes: AnyIntegers,
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
    def words(self) -> str:
        """What it is, and of which column."""
        return self.name if self.column is None else f"{self.name} of {self.column}"

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
        counts, _ = whole.sums(slice(0, len(chunk)), None, with_values=False)
        for query, expected in zip(chunk, counts.tolist(), strict=True):
            place = slice(start, start + len(query.predicates))
            start, at = place.stop, len(answers)
            true, kept, answered = (int(figures[at]) for figures in (every.true, every.kept, every.answered))
            errors = tuple(query.errors(estimator, place))
            answers.append(QueryAnswer(asks[at][1], true, kept, answered, expected, errors))
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


MOST = 100
"""A query with more groups is judged as a whole."""


@dataclass(frozen=True, slots=True)
class _Query:
    """A query divided by its groups: a predicate for each, the group of each raw row, and which rows it means."""

    ask: Ask
    predicates: tuple[Predicate, ...]
    group_of: Integers  # (row,)
    meant: Flags  # (row,)

    @classmethod
    def of(cls, ask: Ask, kinds: Mapping[str, ColumnKind], rows: RawTable) -> _Query:
        """A query, as a whole where its groups are too many, or cannot be named."""
        parts, group_of = _groups(ask.groups, kinds, rows) or ([And(())], np.zeros(len(rows.frame), np.int64))
        selected = [] if ask.predicate is None else [ask.predicate]
        predicates = tuple(all_of([*selected, part]) for part in parts)
        return cls(ask, predicates, group_of, rows.holds(_predicate(ask)))

    def errors(self, estimator: Estimator, place: slice) -> Iterator[QueryError]:
        """Its counts, sums and means against the true ones; a count of rows is always one of them."""
        for name, column in dict.fromkeys((("count", None), *self.ask.aggregates)):
            if name != "count" and column is not None and estimator.values(column) is None:
                continue  # nothing that could be added
            true, guess = self._compared(name, column, estimator, place)
            difference, of = float(np.abs(guess - true).sum()), float(np.abs(true).sum())
            yield QueryError(name, column, len(self.predicates), difference, of)

    def _compared(self, name: str, column: str | None, estimator: Estimator, place: slice) -> tuple[Floats, Floats]:
        """A count, sum or mean of every group, the true one and the estimate."""
        counts, sums = estimator.sums(place, column, with_values=name != "count")
        known, groups, size = estimator.known(column), self.group_of[self.meant], len(self.predicates)
        true_counts: Any = np.bincount(groups, weights=known[self.meant], minlength=size)
        if name == "count":
            return true_counts, counts
        values = estimator.values(column)
        masses = np.zeros(len(known)) if values is None else known * values
        true_sums: Any = np.bincount(groups, weights=masses[self.meant], minlength=size)
        if name == "sum":
            return true_sums, sums
        has = true_counts > 0
        guess = np.where(counts[has] > 0, sums[has] / np.maximum(counts[has], np.finfo(float).tiny), 0.0)
        return true_sums[has] / true_counts[has], guess


def _chunks(asks: Sequence[tuple[Ask, int]], table: QueryTable, rows: RawTable) -> Iterator[list[_Query]]:
    """Queries, as many together as are coded at once."""
    chunk: list[_Query] = []
    for ask, _ in asks:
        chunk.append(_Query.of(ask, table.kinds, rows))
        if sum(len(query.predicates) for query in chunk) >= TOGETHER:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _groups(
    names: Sequence[str], kinds: Mapping[str, ColumnKind], rows: RawTable
) -> tuple[list[Predicate], Integers] | None:
    """The groups of rows by columns, each as a predicate, and the group of each row; None where these have too many
    values, or none that can be named.
    """
    columns = [rows.column(kinds[name]) for name in dict.fromkeys(names)]
    if not columns or not all(_can_be_named(column) for column in columns):
        return None
    group_of, firsts = np.zeros(len(rows.frame), np.int64), np.zeros(min(len(rows.frame), 1), np.int64)
    for column in columns:  # numbered anew after each, so that a number never outgrows 64 bits
        keys = group_of * (len(column.distinct) + 1) + column.places
        _, firsts, group_of = np.unique(keys, return_index=True, return_inverse=True)
        if len(firsts) > MOST:
            return None
    predicates = [all_of([_equal(column, int(column.places[row])) for column in columns]) for row in firsts]
    return predicates, group_of.astype(np.int64)


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
    value = column.distinct[place]  # a whole number or a day, as others cannot be named
    exact = datetime(value.year, value.month, value.day) if isinstance(value, date) else Fraction(value)
    return Condition(name, Relation.IN, (exact,), kind=kind)


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
                **{name: getattr(answer, name) for name in ("times", "true", "answered")},
                "expected": round(answer.expected, 1),
                **{name: getattr(answer, name) for name in ("imprecision", "precision", "recall")},
                "errors": [
                    {"of": measure.words, "groups": measure.groups, "error": measure.error}
                    for measure in answer.measures
                ],
            }
            for ask, answer in zip(asks, answers, strict=True)
        ],
    }


def query_figures(answers: Sequence[QueryAnswer]) -> dict[str, float | None]:
    """Means over queries, each as often as it was asked: rows that were not meant, and relative errors."""
    if not any(answer.times for answer in answers):
        return {}
    figures = {
        name: _mean((answer.times, getattr(answer, name)) for answer in answers)
        for name in ("imprecision", "precision", "recall")
    }
    for name in ("count", "sum", "avg"):
        measures = ((answer.times, measure) for answer in answers for measure in answer.measures)
        figures[f"{name}_error"] = _mean((times, measure.error) for times, measure in measures if measure.name == name)
    return figures


def _mean(weighted: Iterable[tuple[int, float | None]]) -> float | None:
    """The mean of figures by how often each counts; None where there are none."""
    known = [(times, figure) for times, figure in weighted if figure is not None]
    total = sum(times for times, _ in known)
    return sum(times * figure for times, figure in known) / total if total else None


def public_queries(answers: Sequence[QueryAnswer], rule: Disclosure, *, asked: int, total: int) -> dict[str, Any]:
    """What everybody may know of how queries are answered: nothing where a person may have several of the rows that
    answers count. asked: how many different queries there are; total: all rows, or the persons they stand for.
    """
    least = rule.min_persons
    public = [
        answer
        for answer in answers
        if rule.rows_are_persons
        and answer.true >= least
        and answer.kept == answer.true
        and not 0 < total - answer.true < least
        and not 0 < answer.imprecision < least
    ]
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
