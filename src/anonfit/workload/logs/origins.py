# SPDX-License-Identifier: Apache-2.0
"""From a name in a query to the columns of tables that it stands for: through aliases, WITH and subqueries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

__all__ = ["Column", "Origin", "Origins", "within"]

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
        for part in node.walk(prune=lambda one: isinstance(one, exp.Query) and one is not node)
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
                if table.lower() in sources:
                    return self._in(sources[table.lower()], name)
            else:
                found = self._unqualified(list(sources.values()), name)
                if found is not None:
                    return found
            scope = scope.parent  # a subquery may name what is around it
        return NOWHERE

    def _unqualified(self, sources: list[Any], name: str) -> Origin | None:
        """A name of one of several sources: of a subquery that gives it, else of one of the tables."""
        for source in sources:
            if isinstance(source, Scope):
                found = self._output(source, name)
                if found.columns:
                    return found
        tables = sorted({str(source.name) for source in sources if isinstance(source, exp.Table)})
        return Origin(([name, tables],), is_plain=True) if tables else None

    def _in(self, source: Any, name: str) -> Origin:
        if isinstance(source, exp.Table):
            return Origin(([name, [str(source.name)]],), is_plain=True)
        return self._output(source, name) if isinstance(source, Scope) else NOWHERE

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
    return next((place for place, one in enumerate(names) if str(one).lower() == name.lower()), None)
