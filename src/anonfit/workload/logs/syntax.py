# SPDX-License-Identifier: Apache-2.0
"""What a parsed statement uses: which columns it shows, selects by, groups by and joins by, with aliases, WITH and
subqueries followed to the columns of tables. Runs in a process of its own; what it finds is plain data.

A column is a list: its name and the tables that it may be of. A selection is a tree of lists, see `conditions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.optimizer.scope import Scope, build_scope

from anonfit.workload.logs.conditions import Column, Conditions, Origins, joined, within

AGGREGATES = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}


def read_statement(text: str, dialect: str | None) -> dict[str, Any]:
    """What a statement uses.

    Args:
        text: One statement.
        dialect: Of sqlglot; None for its own.

    Returns:
        `is_query`; of a query `tables`, `shown`, `filtered`, `grouped` and `joined` columns, whether it shows `all`,
        the trees of its `selections`, and `asks`: the tree, aggregates and groups by which it can be judged, or None.
    """
    tree = parse_one(text, dialect=dialect)
    for column in list(tree.find_all(exp.Column)):
        # A parameter such as $1 is a name for dialects that do not know it.
        if column.name.startswith("$") and not column.this.args.get("quoted"):
            column.replace(exp.Placeholder())
    if isinstance(tree, exp.Insert | exp.Create) and isinstance(tree.expression, exp.Expr):
        tree = tree.expression
    if isinstance(tree, exp.Subquery):
        tree = tree.unnest()
    root = build_scope(tree) if isinstance(tree, exp.Query) else None
    if root is None:
        return {"is_query": False}
    return _Statement(root).content()


class _Statement:
    """A query and all queries within it."""

    def __init__(self, root: Scope) -> None:
        self.root = root
        self.scopes = list(root.traverse())
        self.origins = Origins()

    def content(self) -> dict[str, Any]:
        """All that is used."""
        selects = [scope for scope in self.scopes if isinstance(scope.expression, exp.Select)]
        used = {name: [] for name in ("shown", "filtered", "grouped", "joined")}  # type: dict[str, list[Column]]
        for scope in selects:
            for name, columns in self.uses(scope):
                used[name] += columns
        inner = {id(below) for scope in selects if (below := self.source(scope)) is not None}
        outer = [scope for scope in selects if id(scope) not in inner]
        trees = [self.selection(scope) for scope in outer]
        return {
            "is_query": True,
            "tables": sorted({name for scope in self.scopes for name in _tables(scope)}),
            "all": any(
                part.is_star and not within(part, exp.Count)
                for scope in selects
                for part in scope.expression.expressions
            ),
            **{name: _different(columns) for name, columns in used.items()},
            "selections": [tree for tree in trees if tree is not None],
            "asks": self.asked(),
        }

    # --- which columns --------------------------------------------------------------------------------------------

    def uses(self, scope: Scope) -> Iterator[tuple[str, list[Column]]]:
        """The columns of a query by what they are used for."""
        select = scope.expression
        for part in select.expressions:
            windows = within(part, exp.Window)
            partitions = [key for window in windows for key in window.args.get("partition_by") or ()]
            yield "grouped", self.columns(scope, partitions)
            yield "shown", self.columns(scope, [part])
        order = select.args.get("order")
        yield "shown", self.columns(scope, [order] if order else [], by_alias=True)
        for name in ("where", "having", "qualify"):
            clause = select.args.get(name)
            if clause is not None:
                yield from self.filters(scope, clause.this, by_alias=name != "where")
        for join in select.args.get("joins") or ():
            if join.args.get("on") is not None:
                yield from self.filters(scope, join.args["on"])
            names = [exp.column(key.name) for key in join.args.get("using") or ()]
            yield "joined", self.columns(scope, names)
        yield "grouped", [column for key in self.keys(scope) for column in self.columns(scope, [key], by_alias=True)]

    def filters(self, scope: Scope, condition: Any, *, by_alias: bool = False) -> Iterator[tuple[str, list[Column]]]:
        """The columns of a condition: those that are held against each other join."""
        for part in joined(condition, exp.And):
            part = part.unnest()
            sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
            joins = len(sides) == 2 and all(isinstance(side, exp.Column) for side in sides)
            yield "joined" if joins else "filtered", self.columns(scope, [part], by_alias=by_alias)

    def keys(self, scope: Scope) -> list[Any]:
        """What is grouped by; a number is the place of what is shown there."""
        group, shown = scope.expression.args.get("group"), scope.expression.expressions
        keys: list[Any] = []
        parts = list(group.expressions) if group is not None else []
        for name in ("rollup", "cube", "grouping_sets"):
            parts += (group.args.get(name) or []) if group is not None else []
        for part in parts:
            if isinstance(part, exp.Literal) and not part.is_string and part.name.isdecimal():
                place = int(part.name) - 1
                keys += shown[place : place + 1] if place >= 0 else []
            elif isinstance(part, exp.Expr):
                keys.append(part)
        return keys

    def columns(self, scope: Scope, parts: Iterable[Any], *, by_alias: bool = False) -> list[Column]:
        """The columns of tables that expressions are made of."""
        return [
            column
            for part in parts
            for named in within(part, exp.Column)
            for column in self.origins.of(scope, named, by_alias=by_alias).columns
        ]

    # --- what is selected -----------------------------------------------------------------------------------------

    def source(self, scope: Scope) -> Scope | None:
        """The query that is the only source of a query."""
        sources = list(scope.selected_sources.values())
        below = sources[0][1] if len(sources) == 1 else None
        is_select = isinstance(below, Scope) and isinstance(below.expression, exp.Select)
        return below if is_select and below is not scope else None  # type: ignore[return-value]

    def selection(self, scope: Scope, depth: int = 0) -> list[Any] | None:
        """The tree of all that a query and what it is made from select; None if it is everything."""
        parts = list(self.own_conditions(scope))
        below = self.source(scope)
        if below is not None and depth < len(self.scopes):
            inner = self.selection(below, depth + 1)
            parts += [inner] if inner is not None else []
        return None if not parts else parts[0] if len(parts) == 1 else ["and", parts]

    def own_conditions(self, scope: Scope) -> Iterator[list[Any]]:
        """The trees of the conditions that rows of a query meet."""
        select = scope.expression
        for name in ("where", "having"):
            clause = select.args.get(name)
            if clause is not None:
                yield Conditions(self.origins, scope, by_alias=name == "having").tree(clause.this)
        for join in select.args.get("joins") or ():
            if join.args.get("on") is not None and not join.side:
                yield Conditions(self.origins, scope).tree(join.args["on"])

    def asked(self) -> dict[str, Any] | None:
        """What a query asks of the rows that it selects, where it is of one table and that can be said."""
        scope: Scope | None = self.root
        if not isinstance(self.root.expression, exp.Select):
            return None
        while scope is not None:
            if not _is_plain(scope, is_outer=scope is self.root):
                return None
            below = self.source(scope)
            if below is None and len(list(_tables(scope))) != 1:
                return None
            scope = below
        groups = [self.origins.of_expression(self.root, key, by_alias=True) for key in self.keys(self.root)]
        aggregates = [aggregate for part in self.root.expression.expressions for aggregate in self.aggregates(part)]
        if not all(group.is_plain for group in groups) or any(column is False for _, column in aggregates):
            return None
        return {
            "tree": self.selection(self.root),
            "aggregates": [[name, column] for name, column in aggregates],
            "groups": [group.columns[0] for group in groups],
        }

    def aggregates(self, part: Any) -> Iterator[tuple[str, Any]]:
        """Counts, sums and means of an expression, with their columns: None for all rows, False if it is no column."""
        for function in within(part, exp.AggFunc):
            name = AGGREGATES.get(type(function))
            argument = function.this
            if name is None or function.find_ancestor(exp.Window, exp.Filter):
                yield str(function.key), False
            elif name == "count" and isinstance(argument, exp.Star | exp.Literal):
                yield name, None
            else:
                origin = self.origins.of_expression(self.root, argument)
                yield name, origin.columns[0] if origin.is_plain else False


def _tables(scope: Scope) -> Iterator[str]:
    """The tables that a query names itself."""
    for _, source in scope.selected_sources.values():
        if isinstance(source, exp.Table):
            yield str(source.name)


def _is_plain(scope: Scope, *, is_outer: bool) -> bool:
    """Whether a query takes rows as they are, and, unless it is the outer one, does not count them."""
    select = scope.expression
    names = ("joins", "laterals", "having", "qualify", "distinct") + (() if is_outer else ("group", "limit", "offset"))
    if any(select.args.get(name) for name in names):
        return False
    return is_outer or not any(within(part, exp.AggFunc, exp.Window) for part in select.expressions)


def _different(columns: Iterable[Column]) -> list[Column]:
    by_key = {(column[0], *column[1]): column for column in columns}
    return [by_key[key] for key in sorted(by_key)]
