# SPDX-License-Identifier: Apache-2.0
"""What is counted and drawn of rows, in SQL."""

from __future__ import annotations

from anonfit.engines.contract import CountRequest, Draw
from anonfit.engines.duckdb.route import NODE, between, node_list


def _sum(factors: tuple[str, ...]) -> str:
    if not factors:
        return "count(*)::BIGINT"
    return f"sum({' * '.join(f'{name}::BIGINT' for name in factors)})::BIGINT"


def count_query(request: CountRequest, table: str, *, every: bool) -> str:
    """The query that counts; `every` says that the request is about all nodes of the table."""
    fields = zip(request.by, request.starts, strict=True)
    keys = [between(name, starts, list(map(str, starts))) if starts else name for name, starts in fields]
    named = [f"{NODE} AS node", *(f"{key} AS by{index}" for index, key in enumerate(keys))]
    sums = [f"{_sum(factors)} AS sum{index}" for index, factors in enumerate(request.sums)]
    conditions = [] if every else [node_list(request.nodes)]
    if request.within is not None:
        name, first, stop = request.within
        conditions.append(f"{name} >= {first} AND {name} < {stop}")
    where = f" WHERE {' AND '.join(f'({condition})' for condition in conditions)}" if conditions else ""
    places = ", ".join(str(1 + index) for index in range(len(named)))
    return f"SELECT {', '.join([*named, *sums])} FROM {table}{where} GROUP BY {places}"  # noqa: S608 - our names


def drawn(draw: Draw) -> str:
    """The condition that a row is drawn."""
    products = " + ".join(
        f"({name}::BIGINT & 4294967295) * {factor}" for name, factor in zip(draw.fields, draw.factors, strict=True)
    )
    first = f"(({products}) % {Draw.MODULUS})"
    second = f"(({first} * {first} + {Draw.ADDED}) % {Draw.MODULUS})"
    return f"({second} * {second}) % {Draw.MODULUS} < {draw.below}"
