# SPDX-License-Identifier: Apache-2.0
"""Mondrian: codes a table, grows its regions on an engine, and gives the recoding with the region of every row."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import DataError, Infeasible
from anonfit.privacy.k_anonymity import KAnonymity
from anonfit.progress import Stage, silent
from anonfit.recoding.building import build_recoding, cells_of_codes
from anonfit.recoding.recoding import Recoding
from anonfit.tables.codebook import code_column
from anonfit.tables.coded import CodedTable
from anonfit.tables.cuts import CutPoints
from anonfit.tables.domains import Domain
from anonfit.tables.schema import Column
from anonfit.threads import thread_count

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Anonymized", "Persons", "anonymize", "persons_of"]


@dataclass(frozen=True, slots=True)
class Persons:
    """Who the rows stand for: each row a person, or by `counts` several persons, or by `entities` a person with
    several rows.
    """

    rows: int
    counts: NDArray[np.uint32] | None = None
    entities: NDArray[np.uint32] | None = None

    def total(self) -> int:
        """How many persons the table is about."""
        if self.entities is not None:
            return len(np.unique(self.entities))
        return self.rows if self.counts is None else int(self.counts.sum(dtype=np.int64))

    def of_groups(self, groups: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """How many persons each group of rows has."""
        if self.entities is not None:
            pairs = np.unique(groups.astype(np.int64) << 32 | self.entities)
            return np.bincount(pairs >> 32, minlength=count)
        if self.counts is None:
            return np.bincount(groups, minlength=count)
        return np.bincount(groups, weights=self.counts, minlength=count).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Anonymized:
    """A recoding, and for the rows it was made from, region by region: their numbers and nodes."""

    recoding: Recoding
    numbers: NDArray[np.uint32]  # (place,)
    nodes: NDArray[np.int32]  # (place,)


def persons_of(rows: int, counts: pl.Series | None, entities: pl.Series | None) -> Persons:
    """Who the rows of a table stand for, from its count or entity column."""
    import polars as pl

    if counts is not None:
        whole = counts.cast(pl.Int64, strict=False)
        bad = int(
            (whole.is_null() | (whole.cast(pl.Float64) != counts.cast(pl.Float64, strict=False)) | (whole < 1))
            .fill_null(value=True)
            .sum()
        )
        if bad:
            raise DataError(
                f"count column '{counts.name}': {bad} value(s) are not whole numbers of at least 1; mend them."
            )
        if rows and int(whole.to_numpy().max()) >= 2**32:
            raise DataError(f"count column '{counts.name}': a row cannot stand for more than four billion persons.")
        return Persons(rows, counts=whole.to_numpy().astype(np.uint32))
    if entities is not None:
        if entities.null_count():
            raise DataError(
                f"entity column '{entities.name}': {entities.null_count()} value(s) are missing; every row needs "
                "its person."
            )
        ranks = entities.rank("dense") - 1
        return Persons(rows, entities=ranks.to_numpy().astype(np.uint32))
    return Persons(rows)


def _coded(
    columns: Sequence[Column], frame: pl.DataFrame, persons: Persons, k: int, threads: int | None = None
) -> tuple[list[Domain], CodedTable]:
    """Domains of the quasi-identifiers and the coded table."""
    with ThreadPoolExecutor(thread_count(threads)) as pool:
        coded = list(
            pool.map(lambda column: code_column(column, frame[column.name], persons=persons.of_groups, k=k), columns)
        )
    domains = [column.domain for column in coded]
    described = tuple(domain.coded() for domain in domains)
    return domains, CodedTable(
        described, tuple(column.codes for column in coded), persons.rows, persons.counts, persons.entities
    )


def anonymize(
    columns: Sequence[Column],
    frame: pl.DataFrame,
    *,
    persons: Persons,
    k: int,
    cut_points: CutPoints,
    threads: int | None = None,
    stage: Stage = silent,
) -> Anonymized:
    """Make a k-anonymous recoding of a frame's quasi-identifiers by Median Mondrian."""
    model = KAnonymity(k)
    whole = np.array([persons.total()], dtype=np.int64)
    if not model.allows(whole):
        raise Infeasible(model.why_not(whole))
    stage("Coding")
    domains, table = _coded(columns, frame, persons, k, threads)
    stage("Growing regions")
    from anonfit.engines.memory.engine import grow
    from anonfit.engines.memory.routing import make_routes, route_packed

    growth = grow(table, model, threads=threads)
    stage("Routing rows")
    recoding = build_recoding(growth.tree, domains, points=cut_points)
    sizes = [column.size for column in recoding.columns]
    routes = make_routes(recoding.tree, cells_of_codes(recoding, domains), sizes)
    nodes = route_packed(growth.rows, growth.columns, routes, threads=threads)
    return Anonymized(recoding, growth.numbers, nodes)
