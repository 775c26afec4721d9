# SPDX-License-Identifier: Apache-2.0
"""From the text of a WHERE condition to a predicate, and back. What a predicate cannot say is refused, with the words
at fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from anonfit.errors import MissingPackage, SpecError, did_you_mean
from anonfit.tables.schema import ColumnType
from anonfit.workload.predicates import And, ColumnKind, Condition, Holding, Predicate, Relation, Value, all_of, any_of
from anonfit.workload.truth import Form, Literal, values_of, written

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect

POSSIBLE = (
    "a selection compares columns with values (=, <>, <, <=, >, >=, BETWEEN, IN, IS NULL), joined by AND, OR and NOT"
)
LONGEST = 1_000_000
"""Characters of a predicate."""
SHORT = 1000
"""Characters of a predicate that is one of many."""
SHOWN = 80
"""Characters of a predicate that a message quotes."""


@cache
def _dialect() -> type[Dialect]:
    """Standard SQL, in which a name may also stand in backticks or square brackets."""
    from sqlglot import tokens
    from sqlglot.dialects.dialect import Dialect

    class SelectionSql(Dialect):
        class Tokenizer(tokens.Tokenizer):
            IDENTIFIERS: ClassVar = ['"', "`", ("[", "]")]

    return SelectionSql


class _Fault(Exception):
    """A piece of a predicate that cannot be read, and why."""


def parse_predicate(text: str, columns: Mapping[str, ColumnKind]) -> Predicate:
    """The predicate of a WHERE condition of SQL, with NOT worked into its conditions: comparisons (=, <>, !=, <, <=, >,
    >=), BETWEEN, IN, IS NULL and IS NOT NULL, joined by AND, OR, NOT. A name that is not one word stands in double
    quotes, backticks or square brackets; names are case-sensitive.

    Raises:
        SpecError: The text says something else; the message quotes it.
    """
    try:
        tree = _parsed(text, columns)
        return _Reader(columns).read(tree, negated=False)
    except _Fault as fault:
        words = str(fault)
        raise SpecError([f"in {_quoted(text)}: {words}{'' if words.endswith(('.', '?')) else '.'}"]) from None
    except RecursionError:
        raise SpecError([f"{_quoted(text)} is nested too deeply; write it with fewer parentheses."]) from None


def _quoted(text: str) -> str:
    plain = " ".join(text.split())
    return f"«{plain if len(plain) <= SHOWN else plain[: SHOWN - 1] + '…'}»"


def _parsed(text: str, names: Iterable[str]) -> exp.Expr:
    """The syntax tree of a text."""
    try:
        import sqlglot
    except ModuleNotFoundError:
        raise MissingPackage("sqlglot", "sql", "A selection by a predicate") from None
    if not text.strip():
        raise _Fault(f"there is no condition: {POSSIBLE}")
    if len(text) > LONGEST:
        raise _Fault(f"it has {len(text)} characters; at most {LONGEST} are read")
    try:
        return (_tree_of_short if len(text) <= SHORT else _tree_of_long)(text)
    except sqlglot.errors.ParseError as error:
        details = error.errors[0] if error.errors else {}
        near = details.get("highlight") or text
        words = _dialect().tokenizer_class.KEYWORDS
        odd = (name for name in names if not name.isidentifier() or name.upper() in words)
        bare = next((name for name in odd if _stands_bare(name, text)), None)
        says = POSSIBLE if bare is None else f'write the name of the column in double quotes, as "{bare}"'
        raise _Fault(f"it is not a condition of SQL near {_quoted(str(near))}: {says}") from None
    except sqlglot.errors.SqlglotError:
        raise _Fault("a quote is opened and not closed; write texts as 'text' and names as \"name\"") from None


def _new_tree(text: str) -> exp.Expr:
    import sqlglot
    from sqlglot import exp

    return sqlglot.parse_one(text, into=exp.Condition, dialect=_dialect())


# A request is read several times, and has thousands of short texts or few long ones, which take long to parse; trees
# are looked at and not changed.
_tree_of_short = lru_cache(maxsize=4096)(_new_tree)
_tree_of_long = lru_cache(maxsize=16)(_new_tree)


def _stands_bare(name: str, text: str) -> bool:
    """Whether a name stands in a text as words of its own, without quotes; spaces and case may differ."""
    outside = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]", " ' ", text)
    words = r"\s+".join(re.escape(word) for word in name.split())
    return re.search(rf"(?<!\w){words}(?!\w)", outside, re.IGNORECASE) is not None


class _Reader:
    """Reads syntax trees over some columns."""

    def __init__(self, columns: Mapping[str, ColumnKind]) -> None:
        from sqlglot import exp

        self.columns = columns
        self.exp = exp
        self.comparisons: dict[type[Any], tuple[Relation, Relation]] = {
            # With the column on the left, and on the right.
            exp.EQ: (Relation.IN, Relation.IN),
            exp.NEQ: (Relation.NOT_IN, Relation.NOT_IN),
            exp.LT: (Relation.LESS, Relation.MORE),
            exp.LTE: (Relation.AT_MOST, Relation.AT_LEAST),
            exp.GT: (Relation.MORE, Relation.LESS),
            exp.GTE: (Relation.AT_LEAST, Relation.AT_MOST),
        }

    def read(self, node: exp.Expr, *, negated: bool) -> Predicate:
        """The predicate of a tree, or of its opposite."""
        exp, node = self.exp, node.unnest()
        if isinstance(node, exp.Not):
            return self.read(node.this, negated=not negated)
        if isinstance(node, exp.And | exp.Or):
            parts = [self.read(part, negated=negated) for part in node.flatten(unnest=False)]
            return all_of(parts) if isinstance(node, exp.And) != negated else any_of(parts)
        if type(node) in self.comparisons:
            return self.comparison(node, negated=negated)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            kind, ends = self.column(node.this), ((Relation.AT_LEAST, "low"), (Relation.AT_MOST, "high"))
            parts = [self.condition(node, kind, relation, [node.args[end]], negated=negated) for relation, end in ends]
            return any_of(parts) if negated else all_of(parts)
        if isinstance(node, exp.In) and node.expressions and not any(node.args.get(key) for key in ("query", "unnest")):
            return self.condition(node, self.column(node.this), Relation.IN, node.expressions, negated=negated)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return self.condition(node, self.column(node.this), Relation.MISSING, [], negated=negated)
        raise self.refused(node)

    def comparison(self, node: exp.Expr, *, negated: bool) -> Predicate:
        """A column beside a value, in either order."""
        left, right = node.this.unnest(), node.expression.unnest()
        on_left, on_right = (isinstance(side, self.exp.Column) for side in (left, right))
        if on_left and on_right:
            hint = ""
            if right.this.args.get("quoted") and right.name not in self.columns:
                hint = f"; if {_sql(right)} is a text, put it in single quotes"
            raise _Fault(f"{_quoted(_sql(node))} compares a column with a column; {POSSIBLE}{hint}")
        if not on_left and not on_right:
            raise self.refused(next((side for side in (left, right) if self.literal(side) is None), node))
        relation = self.comparisons[type(node)][0 if on_left else 1]
        column, value = (left, right) if on_left else (right, left)
        return self.condition(node, self.column(column), relation, [value], negated=negated)

    def condition(
        self, node: exp.Expr, kind: ColumnKind, relation: Relation, written: Sequence[exp.Expr], *, negated: bool
    ) -> Condition:
        """A condition over written values, checked against the column's kind."""
        name = kind.declared.name
        values = dict.fromkeys(value for item in written for value in self.values(item.unnest(), kind))
        if relation.is_of_order and kind.type == ColumnType.NOMINAL:
            has = "a taxonomy" if kind.declared.taxonomy is not None else "no order"
            raise _Fault(
                f"{_quoted(_sql(node))} compares by order, and the column '{name}' is nominal and has {has}; use = or "
                "IN, or declare its type"
            )
        return Condition(name, relation.opposite if negated else relation, tuple(values), kind=kind)

    def column(self, node: exp.Expr) -> ColumnKind:
        """The column that a tree names."""
        node = node.unnest()
        if not isinstance(node, self.exp.Column) or isinstance(node.this, self.exp.Star):
            raise self.refused(node)
        name = str(node.name)
        if node.table:
            raise _Fault(f"{_quoted(_sql(node))} names a table; there is only one, so write its columns alone")
        kind = self.columns.get(name)
        if kind is None:
            alike = [known for known in self.columns if known.lower() == name.lower()]
            meant = f"did you mean '{alike[0]}'?" if alike else did_you_mean(name, self.columns)
            raise _Fault(f"there is no column '{name}'; {meant}")
        if not kind.is_released:
            raise _Fault(
                f"the column '{name}' is not released (its role is '{kind.declared.role}'), so nobody can select by it"
            )
        if kind.holding == Holding.NOTHING_PLAIN:
            raise _Fault(
                f"the column '{name}' holds neither numbers, dates, texts nor truths, so nothing can be compared"
            )
        return kind

    def values(self, node: exp.Expr, kind: ColumnKind) -> tuple[Value, ...]:
        """The values that a tree means in a column."""
        name, literal = kind.declared.name, self.literal(node)
        if isinstance(node, self.exp.Null):
            raise _Fault(f"nothing equals NULL; write {name} IS NULL or {name} IS NOT NULL")
        if literal is None:
            raise self.refused(node)
        try:
            return values_of(literal, kind)
        except ValueError as fault:
            raise _Fault(f"column '{name}': {fault}") from None

    def literal(self, node: exp.Expr) -> Literal | None:
        """A tree as a written value, if it is one."""
        exp = self.exp
        if isinstance(node, exp.Literal):
            return Literal(Form.TEXT if node.is_string else Form.NUMBER, str(node.this), _sql(node))
        if isinstance(node, exp.Neg):
            inner = self.literal(node.this.unnest())
            if inner is not None and inner.form == Form.NUMBER and not inner.text.startswith("-"):
                return Literal(Form.NUMBER, f"-{inner.text}", _sql(node))
        if isinstance(node, exp.Boolean):
            return Literal(Form.TRUTH, str(node.this).lower(), _sql(node))
        types = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.to.this in types:
            return Literal(Form.DATE, str(node.this.this), _sql(node.this))
        return None

    def refused(self, node: exp.Expr) -> _Fault:
        """The fault of a tree that no predicate can say."""
        exp, text = self.exp, _sql(node)
        squeezed = text.replace(" ", "").lower()
        meant = [name for name in self.columns if squeezed == name.replace(" ", "").lower()]
        if isinstance(node, exp.Column) and node.name in self.columns:
            return _Fault(f"{_quoted(text)} stands alone; write what it is compared with, for example {text} = TRUE")
        if meant:
            return _Fault(f'{_quoted(text)} is read as an expression; write the name of the column as "{meant[0]}"')
        if isinstance(node, exp.Query | exp.Exists) or node.args.get("query"):
            what = "holds a subquery"
        elif isinstance(node, exp.Like | exp.ILike | exp.RegexpLike | exp.SimilarTo | exp.Glob):
            what = "compares with a pattern"
        elif isinstance(node, exp.In) and node.args.get("field"):
            what = "needs its values in parentheses, as in (1, 2)"
        elif isinstance(node, exp.Func) and not isinstance(node, exp.Connector | exp.Case):
            what = "is a function"
        elif isinstance(node, exp.Binary) and not isinstance(node, exp.Predicate):
            what = "is arithmetic"
        else:
            is_value = self.literal(node) is not None
            what = "is a value, where the name of a column is needed" if is_value else "is not understood"
        return _Fault(f"{_quoted(text)} {what}; {POSSIBLE}")


def _sql(node: exp.Expr) -> str:
    """The words of a tree."""
    from sqlglot import exp

    if isinstance(node, exp.Literal):  # as sqlglot writes it, which takes long where there are very many
        return "'" + str(node.this).replace("'", "''") + "'" if node.is_string else str(node.this)
    return str(node.sql())


PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted_name(name: str) -> str:
    """A name as SQL reads it whatever it is."""
    is_plain = PLAIN_NAME.fullmatch(name) and name.upper() not in _dialect().tokenizer_class.KEYWORDS
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def predicate_text(predicate: Predicate) -> str:
    """A predicate in words; every AND and OR in it has a part."""
    if isinstance(predicate, Condition):
        return _condition(predicate)
    parts = [(predicate_text(part), isinstance(part, Condition)) for part in predicate.parts]
    word = " and " if isinstance(predicate, And) else " or "
    return word.join(text if is_plain else f"({text})" for text, is_plain in parts)


def _condition(condition: Condition) -> str:
    name, values = quoted_name(condition.column), [written(value) for value in condition.values]
    relation = condition.relation
    if relation in (Relation.MISSING, Relation.NOT_MISSING):
        return f"{name} {relation}"
    if relation in (Relation.IN, Relation.NOT_IN) and len(values) != 1:
        return f"{name} {relation} ({', '.join(values)})"
    sign = {Relation.IN: "=", Relation.NOT_IN: "<>"}.get(relation, relation)
    return f"{name} {sign} {values[0]}"
