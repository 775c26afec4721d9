# SPDX-License-Identifier: Apache-2.0
"""Predicates as the SQL that `parsing` reads back."""

from __future__ import annotations

import re

from anonfit.workload.literals import written
from anonfit.workload.predicates import And, Condition, Predicate, Relation

__all__ = ["predicate_text", "quoted_name"]

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted_name(name: str) -> str:
    """A name as SQL reads it whatever it is."""
    from anonfit.workload.dialect import SelectionSql

    is_plain = PLAIN_NAME.fullmatch(name) and name.upper() not in SelectionSql.Tokenizer.KEYWORDS
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def predicate_text(predicate: Predicate) -> str:
    """A predicate in words.

    Args:
        predicate: With at least one part in every AND and OR.
    """
    if isinstance(predicate, Condition):
        return _condition(predicate)
    word = " and " if isinstance(predicate, And) else " or "
    return word.join(_inner(part) for part in predicate.parts)


def _inner(part: Predicate) -> str:
    return _condition(part) if isinstance(part, Condition) else f"({predicate_text(part)})"


def _condition(condition: Condition) -> str:
    name, values = quoted_name(condition.column), [written(value) for value in condition.values]
    if condition.relation in (Relation.MISSING, Relation.NOT_MISSING):
        return f"{name} {condition.relation}"
    if condition.relation in (Relation.IN, Relation.NOT_IN):
        if len(values) == 1:
            return f"{name} {'=' if condition.relation == Relation.IN else '<>'} {values[0]}"
        return f"{name} {condition.relation} ({', '.join(values)})"
    return f"{name} {condition.relation} {values[0]}"
