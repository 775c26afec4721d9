# SPDX-License-Identifier: Apache-2.0
"""Random tables and WHERE conditions, their text, and their truth by the three-valued rules of SQL, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from anonfit.tables.schema import Column, ColumnType, Role
from anonfit.tables.taxonomy import Taxonomy

QUASI = Role.QUASI_IDENTIFIER
ORDER = ("none", "some", "much", "all of it")
PLACES = Taxonomy.from_tree(
    {
        "name": "*",
        "children": [
            {"name": "north", "children": [{"name": "A"}, {"name": "B"}]},
            {"name": "south", "children": [{"name": "C"}, {"name": "it's D"}, {"name": "E"}]},
        ],
    }
)


def text(word: object) -> str:
    return "'" + str(word).replace("'", "''") + "'"


def same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Kind:
    """A column: its declaration, the values rows may have, what may be written, and how values are compared."""

    column: Column
    dtype: Any
    values: tuple[Any, ...]
    literals: tuple[Any, ...]
    sql: Callable[[Any], str] = str
    ordered: bool = True
    key: Callable[[Any], Any] = same
    database: str = "BIGINT"
    stored: Callable[[Any], Any] = same
    oracle_sql: Callable[[Any], str] | None = None
    """How the database is told a literal, where it is not as we are."""


def leaves_of(name: str) -> tuple[str, ...]:
    node = PLACES.find(name)
    return PLACES.leaves[PLACES.first_leaf[node] : PLACES.last_leaf[node] + 1]


def moment(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


DAYS = tuple(date(2020, 1, day) for day in (1, 2, 5, 6, 9))
TIMES = tuple(datetime(2020, 1, 1, hour, minute) for hour, minute in ((0, 0), (9, 30), (9, 31), (18, 0)))

KINDS = {
    kind.column.name: kind
    for kind in (
        Kind(Column("whole", QUASI), pl.Int64, (-3, 0, 1, 4, 9), (-4, -3, -1, 0, 2.5, 4, 5, 9, 10), key=Fraction),
        Kind(
            Column("real part", QUASI),
            pl.Float64,
            (-1.5, 0.0, 0.1, 2.0, 7.25),
            (-2, -1.5, 0, 0.05, 0.1, 2, 3.5, 7.25, 9),
            database="DOUBLE",
        ),
        Kind(
            Column("money", QUASI),
            pl.Decimal(9, 2),
            tuple(Decimal(number) for number in ("-0.50", "0.00", "1.25", "1.26", "9.99")),
            tuple(Decimal(number) for number in ("-1", "-0.5", "0", "1.25", "1.255", "3", "9.99", "10")),
            database="DECIMAL(9, 2)",
            key=Fraction,
        ),
        Kind(
            Column("day", QUASI),
            pl.Date,
            DAYS,
            (date(2019, 12, 31), *DAYS, date(2020, 1, 4), date(2020, 1, 10)),
            sql=lambda day: f"DATE '{day}'" if day.day % 2 else f"'{day}'",
            database="DATE",
            key=moment,
        ),
        Kind(
            Column("at", QUASI),
            pl.Datetime("us"),
            TIMES,
            (date(2020, 1, 1), *TIMES, datetime(2020, 1, 1, 12), datetime(2020, 1, 1, 9, 30, 30)),
            sql=lambda time: f"TIMESTAMP '{time}'",
            database="TIMESTAMP",
            key=moment,
        ),
        Kind(
            Column("degree", QUASI, ColumnType.ORDINAL, order=ORDER),
            pl.String,
            ORDER,
            ORDER,
            sql=text,
            key=ORDER.index,
            database="INTEGER",
            stored=ORDER.index,
            oracle_sql=lambda word: str(ORDER.index(word)),
        ),
        Kind(
            Column("letter", QUASI), pl.String, tuple("abcdef"), tuple("abcfz"), text, ordered=False, database="VARCHAR"
        ),
        Kind(
            Column("place", QUASI, taxonomy=PLACES),
            pl.String,
            PLACES.leaves,
            (*PLACES.leaves, "north", "south", "*"),
            text,
            ordered=False,
            database="VARCHAR",
        ),
        Kind(Column("flag", QUASI), pl.Boolean, (True, False), (True, False), ordered=False, database="BOOLEAN"),
        Kind(
            Column("group", Role.TARGET),
            pl.String,
            tuple("xyz"),
            tuple("xyzw"),
            text,
            ordered=False,
            database="VARCHAR",
        ),
        Kind(Column("cost", Role.SENSITIVE), pl.Float64, (0.5, 1.0, 8.0), (0, 0.5, 1, 4, 8, 9), database="DOUBLE"),
    )
}

Tree = tuple[Any, ...]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
FLIPPED = {"=": "=", "<>": "<>", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def random_frame(rng: np.random.Generator, rows: int = 40) -> pl.DataFrame:
    """Rows with values of all columns, about every fifth missing; some columns have none that is."""
    series = []
    for name, kind in KINDS.items():
        gaps = rng.choice([0.0, 0.2])
        chosen = [kind.values[at] for at in rng.integers(0, len(kind.values), rows)]
        series.append(pl.Series(name, [None if rng.random() < gaps else value for value in chosen], dtype=kind.dtype))
    return pl.DataFrame(series)


def random_tree(rng: np.random.Generator, depth: int = 0, names: Sequence[str] = tuple(KINDS)) -> Tree:
    """A WHERE condition over some columns as a tree."""
    roll = rng.random()
    if depth < 4 and roll < 0.6 - 0.1 * depth:
        word = str(rng.choice(["and", "or"]))
        return (word, [random_tree(rng, depth + 1, names) for _ in range(int(rng.integers(2, 4)))])
    if depth < 5 and roll < 0.72:
        return ("not", random_tree(rng, depth + 1, names))
    name = str(rng.choice(list(names)))
    kind = KINDS[name]
    form = str(rng.choice(["null", "in", "compare", "compare", "between"]))
    if form == "null":
        return ("null", name)
    if form == "in" or (form == "between" and not kind.ordered):
        count = int(rng.integers(1, 4))
        return ("in", name, [kind.literals[at] for at in rng.integers(0, len(kind.literals), count)])
    first, second = (kind.literals[at] for at in rng.integers(0, len(kind.literals), 2))
    if form == "between":
        return ("between", name, first, second)
    operator = str(rng.choice(list(OPERATORS) if kind.ordered else ["=", "<>", "!="]))
    return ("compare", name, operator, first, bool(rng.random() < 0.3))


def written(tree: Tree, *, oracle: bool = False) -> str:
    """The text of a tree, for us or for the database."""
    form = tree[0]
    if form in ("and", "or"):
        return "(" + f" {form.upper()} ".join(written(part, oracle=oracle) for part in tree[1]) + ")"
    if form == "not":
        return f"NOT ({written(tree[1], oracle=oracle)})"
    name, kind = f'"{tree[1]}"', KINDS[tree[1]]
    sql = (kind.oracle_sql or kind.sql) if oracle else kind.sql
    if form == "null":
        return f"{name} IS NULL"
    if tree[1] == "place" and oracle:  # the database knows no taxonomy
        literals = tree[2] if form == "in" else [tree[3]]
        names = ", ".join(text(leaf) for literal in literals for leaf in leaves_of(literal))
        return f"{name} {'NOT IN' if form == 'compare' and tree[2] != '=' else 'IN'} ({names})"
    if form == "in":
        return f"{name} IN ({', '.join(sql(literal) for literal in tree[2])})"
    if form == "between":
        return f"{name} BETWEEN {sql(tree[2])} AND {sql(tree[3])}"
    _, _, operator, literal, flipped = tree
    return f"{sql(literal)} {FLIPPED[operator]} {name}" if flipped else f"{name} {operator} {sql(literal)}"


def truth(tree: Tree, row: dict[str, Any]) -> bool | None:
    """True, False or, where a missing value makes it unknown, None."""
    form = tree[0]
    if form == "not":
        inner = truth(tree[1], row)
        return None if inner is None else not inner
    if form in ("and", "or"):
        parts = [truth(part, row) for part in tree[1]]
        decisive = form == "or"
        return decisive if decisive in parts else None if None in parts else not decisive
    value, kind = row[tree[1]], KINDS[tree[1]]
    if form == "null":
        return value is None
    if value is None:
        return None
    if tree[1] == "place":
        literals = tree[2] if form == "in" else [tree[3]]
        within = any(value in leaves_of(literal) for literal in literals)
        return within if form == "in" or tree[2] == "=" else not within
    found = kind.key(value)
    if form == "in":
        return found in [kind.key(literal) for literal in tree[2]]
    if form == "between":
        return bool(kind.key(tree[2]) <= found <= kind.key(tree[3]))
    return OPERATORS[tree[2]](found, kind.key(tree[3]))


def columns() -> list[Column]:
    return [kind.column for kind in KINDS.values()]
