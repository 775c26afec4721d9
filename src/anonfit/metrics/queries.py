# SPDX-License-Identifier: Apache-2.0
"""Queries run twice, over the raw rows and over what a release says: how many rows are found that were not meant, and
how far counts, sums and means are from the true ones, by group where there are groups.

A recipient gets every row whose region may hold what is asked for (overlap), and estimates what a query computes by the
share of each region that lies in what is asked for (`spreading`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.metrics.query_estimates import Estimator, Table
from anonfit.metrics.query_groups import Grouping, grouping_of
from anonfit.metrics.spreading import Ends
from anonfit.recoding.building import cells_of_codes
from anonfit.recoding.imprecision import Answers, answer
from anonfit.recoding.recoding import Recoding
from anonfit.tables.codebook import code_column
from anonfit.tables.schema import Column, Domain, OrderedDomain, Role
from anonfit.workload.coding import selection_boundaries, with_boundaries
from anonfit.workload.logs.tallies import Ask
from anonfit.workload.predicates import And, Predicate, all_of, kinds_of
from anonfit.workload.selections import code_predicates
from anonfit.workload.truth import Rows

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Measure", "QueryAnswer", "Table", "judge_queries", "query_table"]

TOGETHER = 1_000
"""Predicates that are coded together."""


def query_table(
    recoding: Recoding,
    columns: Sequence[Column],
    frame: pl.DataFrame,
    nodes: NDArray[np.integer[Any]],
    *,
    counts: NDArray[Any] | None,
    persons: Callable[[NDArray[np.int64], int], NDArray[np.int64]],
    k: int,
    domains: Sequence[Domain] | None = None,
) -> Table:
    """The rows that a recoding was made of, as queries are run over them.

    Args:
        recoding: The recoding.
        columns: All columns of the table.
        frame: Its raw rows.
        nodes: (row,) the node of each, -1 if it is withheld.
        counts: (row,) how many persons each stands for; None: one.
        persons: From the group of each row and the number of groups, how many persons each group has.
        k: The demand, by which rare names are one.
        domains: Of the quasi-identifiers, where these rows are some of those that the recoding was made of.
    """
    if domains is None:
        domains = [
            code_column(column, frame[column.name], persons=persons, k=k).domain
            for column in columns
            if column.role == Role.QUASI_IDENTIFIER
        ]
    whole = None if counts is None else counts.astype(np.int64)
    return Table(recoding, kinds_of(columns, frame), domains, frame, nodes, whole)


@dataclass(frozen=True, slots=True)
class Measure:
    """A count, sum or mean of a query: its column, None for rows, and how far its values, one for each group, are from
    the true ones, together and as a share of these.
    """

    name: str
    column: str | None
    groups: int
    difference: float
    of: float

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
    measures: tuple[Measure, ...]

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


def judge_queries(asks: Sequence[tuple[Ask, int]], table: Table, *, ends: Ends | None = None) -> list[QueryAnswer]:
    """Run queries over raw rows and over their regions.

    Args:
        asks: Queries, and how many times each was asked.
        table: The rows and their regions.
        ends: Where ordered columns begin and end; None: as far as the recoding says, see `spread_of`.

    Returns:
        How each is answered, in their order.
    """
    rows = Rows(table.frame)
    every = _answers([_predicate(ask) for ask, _ in asks], table, rows)
    found: list[QueryAnswer] = []
    for chunk in _chunks(asks, table, rows):
        estimator = Estimator(table, rows, [one for query in chunk for one in query.predicates], ends)
        # Without groups, which are those of the raw rows: what is expected would tell which values occur.
        whole = Estimator(table, rows, [_predicate(query.ask) for query in chunk], ends)
        start = 0
        for query, expected in zip(chunk, whole.counts(slice(0, len(chunk))).tolist(), strict=True):
            place = slice(start, start + len(query.predicates))
            start = place.stop
            at = len(found)
            found.append(
                QueryAnswer(
                    times=asks[at][1],
                    true=int(every.true[at]),
                    kept=int(every.kept[at]),
                    answered=int(every.answered[at]),
                    expected=expected,
                    measures=tuple(query.measures(estimator, place)),
                )
            )
    return found


def _predicate(ask: Ask) -> Predicate:
    return And(()) if ask.predicate is None else ask.predicate


def _answers(predicates: Sequence[Predicate], table: Table, rows: Rows) -> Answers:
    """What each predicate asks for and gets."""
    domains = []
    for domain in table.domains:
        if isinstance(domain, OrderedDomain):
            domain, _ = with_boundaries(domain, selection_boundaries(predicates, domain))
        domains.append(domain)
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
    table: Table
    grouping: Grouping
    predicates: tuple[Predicate, ...]
    meant: NDArray[np.bool_]  # (row,)

    def measures(self, estimator: Estimator, place: slice) -> Iterator[Measure]:
        """Its counts, sums and means against the true ones; a count of rows is always one of them."""
        asked = dict.fromkeys((("count", None), *self.ask.aggregates))
        for name, column in asked:
            values = None if column is None else estimator.values(column)
            if column is not None and values is None and name != "count":
                continue  # nothing that could be added
            yield self._measure(name, column, estimator, place)

    def _measure(self, name: str, column: str | None, estimator: Estimator, place: slice) -> Measure:
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
        return Measure(name, column, len(self.predicates), float(np.abs(guess - true).sum()), float(np.abs(true).sum()))


def _chunks(asks: Sequence[tuple[Ask, int]], table: Table, rows: Rows) -> Iterator[list[_Query]]:
    """Queries, as many together as are coded at once."""
    chunk: list[_Query] = []
    for ask, _ in asks:
        grouping = grouping_of(ask.groups, table.kinds, rows)
        meant = rows.holds(_predicate(ask))
        parts = grouping.predicates or (And(()),)
        own = [] if ask.predicate is None else [ask.predicate]
        chunk.append(_Query(ask, table, grouping, tuple(all_of([*own, part]) for part in parts), meant))
        if sum(len(query.predicates) for query in chunk) >= TOGETHER:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
