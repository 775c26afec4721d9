# SPDX-License-Identifier: Apache-2.0
"""What a parsed statement uses: which columns it shows, selects by, groups by and joins by, with aliases, WITH and
subqueries followed to the columns of tables. Runs in a process of its own; what it finds is plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlglot import exp, parse_one
from sqlglot.optimizer.scope import Scope, build_scope

Column: TypeAlias = list[Any]
"""A name, and the tables that it may be of."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The columns that an expression is made of; plain if it is one of them as it is."""

    columns: tuple[Column, ...] = ()
    is_plain: bool = False


NOWHERE = Origin()


def within(node: Any, *kinds: type[Any]) -> list[Any]:
    """The parts of an expression that are of a kind; not those of queries within it."""
    return [
        part
        for part in node.walk(prune=lambda inner: isinstance(inner, exp.Query) and inner is not node)
        if isinstance(part, kinds)
    ]


class Origins:
    """Looks names up, each once."""

    def __init__(self) -> None:
        self.outputs: dict[tuple[int, str], Origin] = {}

    def of(self, scope: Scope, column: Any, *, by_alias: bool = False) -> Origin:
        """What a column of a query is; by the aliases of what it shows first, where these can be meant."""
        name = str(column.name)
        if by_alias and not column.table:
            for shown in scope.expression.expressions:
                if isinstance(shown, exp.Alias) and shown.alias.lower() == name.lower():
                    is_itself = isinstance(shown.this, exp.Column) and shown.this.name.lower() == name.lower()
                    return self.of(scope, shown.this) if is_itself else self.of_expression(scope, shown.this)
        return self._named(scope, name, str(column.table))

    def of_expression(self, scope: Scope, node: Any, *, by_alias: bool = False) -> Origin:
        """What an expression is made of."""
        node = node.unalias().unnest()
        if isinstance(node, exp.Column):
            return self.of(scope, node, by_alias=by_alias)
        parts = [self.of(scope, column, by_alias=by_alias) for column in within(node, exp.Column)]
        return Origin(tuple(column for part in parts for column in part.columns))

    def _named(self, scope: Scope | None, name: str, table: str) -> Origin:
        while scope is not None:
            sources = {alias.lower(): source for alias, (_, source) in scope.selected_sources.items()}
            if table:
                source = sources.get(table.lower())
                if isinstance(source, exp.Table):
                    return Origin(([name, [str(source.name)]],), is_plain=True)
                if source is not None:
                    return self._output(source, name) if isinstance(source, Scope) else NOWHERE
            else:
                origin = self._unqualified(list(sources.values()), name)
                if origin is not None:
                    return origin
            scope = scope.parent  # a subquery may name what is around it
        return NOWHERE

    def _unqualified(self, sources: list[Any], name: str) -> Origin | None:
        """A name of one of several sources: of a subquery that gives it, else of one of the tables."""
        for source in sources:
            if isinstance(source, Scope):
                origin = self._output(source, name)
                if origin.columns:
                    return origin
        tables = sorted({str(source.name) for source in sources if isinstance(source, exp.Table)})
        return Origin(([name, tables],), is_plain=True) if tables else None

    def _output(self, scope: Scope, name: str) -> Origin:
        """What a query gives under a name."""
        key = (id(scope), name.lower())
        if key not in self.outputs:
            self.outputs[key] = NOWHERE  # of a query that is made from itself
            self.outputs[key] = self._given(scope, name)
        return self.outputs[key]

    def _given(self, scope: Scope, name: str) -> Origin:
        if isinstance(scope.expression, exp.SetOperation):
            return self._of_set(scope, name)
        if not isinstance(scope.expression, exp.Select):
            return NOWHERE
        shown = scope.expression.expressions
        place = _place(scope, name)
        if place is not None and place < len(shown) and not shown[place].is_star:
            return self.of_expression(scope, shown[place])
        return self._named(scope, name, "") if any(part.is_star for part in shown) else NOWHERE

    def _of_set(self, scope: Scope, name: str) -> Origin:
        """What a union gives: plain if all its parts give the same."""
        place = _place(scope, name)
        parts = []
        for part in getattr(scope, "union_scopes", None) or ():
            names = part.expression.named_selects
            parts.append(self._output(part, names[place] if place is not None and place < len(names) else name))
        columns = tuple(column for part in parts for column in part.columns)
        is_same = bool(parts) and all(part.is_plain and part.columns == parts[0].columns for part in parts)
        return Origin(parts[0].columns, is_plain=True) if is_same else Origin(columns)


def _place(scope: Scope, name: str) -> int | None:
    """Where a query shows a name."""
    names: list[Any] = scope.outer_columns or getattr(scope.expression, "named_selects", [])
    return next((place for place, shown in enumerate(names) if str(shown).lower() == name.lower()), None)


RELATIONS = {exp.EQ: ("=", "="), exp.LT: ("<", ">"), exp.LTE: ("<=", ">="), exp.GT: (">", "<"), exp.GTE: (">=", "<=")}
"""With the column on the left, and on the right."""
DATES = ("DATE", "DATE32", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME", "DATETIME2")


def joined(node: Any, kind: type[Any]) -> list[Any]:
    """All parts of a chain of one connector: a long one leans to the left, deeper than Python follows."""
    parts, open_ = [], [node]
    while open_:
        part = open_.pop()
        inner = part.unnest()
        if isinstance(inner, kind):
            open_ += [inner.expression, inner.this]
        else:
            parts.append(part)
    return parts


class Conditions:
    """Makes trees of the conditions of a query; `by_alias` says whether they may name what the query shows."""

    def __init__(self, origins: Origins, scope: Scope, *, by_alias: bool = False) -> None:
        self.origins, self.scope, self.by_alias = origins, scope, by_alias

    def tree(self, node: Any) -> list[Any]:
        """The tree of a condition."""
        node = node.unnest()
        for kind, word in ((exp.And, "and"), (exp.Or, "or")):
            if isinstance(node, kind):
                return [word, [self.tree(part) for part in joined(node, kind)]]
        if isinstance(node, exp.Not):
            return ["not", self.tree(node.this)]
        if isinstance(node, exp.NEQ):
            return ["not", self._comparison(node, ("=", "="))]
        if type(node) in RELATIONS:
            return self._comparison(node, RELATIONS[type(node)])
        if isinstance(node, exp.Boolean):
            return ["truth", bool(node.this)]
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            ends = ((">=", node.args["low"]), ("<=", node.args["high"]))
            return ["and", [self._compared(node.this, relation, [end]) for relation, end in ends]]
        if isinstance(node, exp.In) and node.expressions and not any(node.args.get(key) for key in ("query", "unnest")):
            return self._compared(node.this, "=", node.expressions)
        if isinstance(node, exp.Is):
            if isinstance(node.expression, exp.Null):
                return self._compared(node.this, "null", [])
            if isinstance(node.expression, exp.Boolean):
                return self._compared(node.this, "=", [node.expression])
        return ["?", _reason(node)]

    def _comparison(self, node: Any, relations: tuple[str, str]) -> list[Any]:
        """Two sides held against each other."""
        left, right = node.this.unnest(), node.expression.unnest()
        values = [_value(side) for side in (left, right)]
        if all(values):
            return ["same", values] if relations[0] == "=" else ["?", "compares values with each other"]
        if values[1]:
            return self._compared(left, relations[0], [right])
        if values[0]:
            return self._compared(right, relations[1], [left])
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            # How tables are joined is counted as that.
            return ["?", "" if isinstance(node, exp.EQ) else "compares columns with each other"]
        return ["?", _reason(left if isinstance(right, exp.Column) else right)]

    def _compared(self, side: Any, relation: str, against: list[Any]) -> list[Any]:
        """A column held against values."""
        side = side.unnest()
        if not isinstance(side, exp.Column):
            return ["?", _reason(side)]
        origin = self.origins.of(self.scope, side, by_alias=self.by_alias)
        values = [_value(other.unnest()) for other in against]
        if not origin.is_plain:
            return ["?", "selects by what is computed"]
        if not all(values):
            return ["?", _reason(next(other for other, value in zip(against, values, strict=True) if not value))]
        return [relation, origin.columns[0], values]


def _value(node: Any) -> list[str] | None:
    """A value as it is written; None if it is none."""
    if isinstance(node, exp.Literal):
        return ["text" if node.is_string else "number", str(node.this)]
    if isinstance(node, exp.Neg):
        inner = _value(node.this.unnest())
        return ["number", f"-{inner[1]}"] if inner and inner[0] == "number" and inner[1][:1] != "-" else None
    if isinstance(node, exp.Boolean):
        return ["truth", str(node.this).lower()]
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        kind = str(getattr(node.to.this, "value", node.to.this))
        if kind in DATES and node.this.is_string:
            return ["date", str(node.this.this)]
        return _value(node.this)
    if isinstance(node, exp.Date | exp.Timestamp | exp.TsOrDsToDate) and isinstance(node.this, exp.Literal):
        is_alone = len([argument for argument in node.args.values() if argument]) == 1
        return ["date", str(node.this.this)] if is_alone else None
    return None


def _reason(node: Any) -> str:
    """Why an expression is no condition that can be used."""
    node = node.unnest()
    if isinstance(node, exp.Query | exp.Exists) or node.args.get("query"):
        return "holds a subquery"
    if isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter):
        return "has a parameter in place of a value"
    if isinstance(node, exp.Like | exp.ILike | exp.RegexpLike | exp.RegexpILike | exp.SimilarTo | exp.Glob):
        return "compares with a pattern"
    if isinstance(node, exp.Null):
        return "compares with NULL"
    if isinstance(node, exp.Column):
        return "has a column where a value or a comparison is needed"
    if isinstance(node, exp.Cast):
        return "changes the type of a column"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Case):
        return "is of a function"
    if isinstance(node, exp.Binary) and not isinstance(node, exp.Predicate):
        return "is of arithmetic"
    return "says something else than comparisons"


AGGREGATES = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}


def read_statement(text: str, dialect: str | None) -> dict[str, Any]:
    """What one statement uses: `is_query`; of a query `tables`, `shown`, `filtered`, `grouped` and `joined` columns,
    whether it shows `all`, the trees of its `selections`, and `asks`: the tree, aggregates and groups by which it can
    be judged, or None.
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
        if order := select.args.get("order"):
            yield "shown", self.columns(scope, [order], by_alias=True)
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
        if group is None:
            return []
        keys: list[Any] = []
        more = [part for name in ("rollup", "cube", "grouping_sets") for part in group.args.get(name) or ()]
        for part in (*group.expressions, *more):
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
        if below is not None and depth < len(self.scopes) and (inner := self.selection(below, depth + 1)) is not None:
            parts.append(inner)
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
