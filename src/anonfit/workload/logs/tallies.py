# SPDX-License-Identifier: Apache-2.0
"""A whole log, counted: how often columns are used, what is selected, what is asked, and what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anonfit.workload.logs.reading import Statement, dialect_quoting, parse_statements, read_statements, require_dialect
from anonfit.workload.logs.shapes import Filled, Filler, NotParsed, QueriedColumns, Shaper
from anonfit.workload.predicates import And, Condition, Predicate, all_of, any_of, by_column

MOST_SHAPES = 10_000
"""Shapes that are parsed, the most frequent ones first."""
MOST_CHARACTERS = 100_000_000
"""Characters of different statements that are kept; the statements after them are counted and left out."""
MOST_LISTED = 1_000
"""Statements that were not read of which more than their number is kept."""

Slots = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Unread:
    """A statement that could not be read, and what it looks like without its values."""

    file: str
    line: int
    times: int
    why: str
    outline: str


@dataclass(slots=True)
class Uses:
    """In how many queries a column is shown, selected by, grouped by and joined by."""

    shown: int = 0
    filtered: int = 0
    grouped: int = 0
    joined: int = 0
    featured: int = 0
    """In how many it is shown, grouped by or joined by."""

    @property
    def total(self) -> int:
        """How often it counts: once as what is selected by and once as what is looked at."""
        return self.filtered + self.featured


@dataclass(frozen=True, slots=True)
class Ask:
    """A question that a query asks of the rows it selects, all of it known.

    `aggregates` are `count`, `sum` and `avg`, each with a column, None for rows; without any, rows are asked for.
    """

    predicate: Predicate | None
    aggregates: tuple[tuple[str, str | None], ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(slots=True)
class LogTally:
    """What a log says. Columns, predicates and asks are counted by the queries that have them."""

    statements: int = 0
    queries: int = 0
    others: int = 0
    """Statements that ask nothing."""
    unread: int = 0
    listed: list[Unread] = field(default_factory=list)
    uses: dict[str, Uses] = field(default_factory=dict)
    tables: Counter[str] = field(default_factory=Counter)
    everything: int = 0
    """Queries that show all columns."""
    selecting: int = 0
    """Queries of which a selection can be used."""
    predicates: Counter[Predicate] = field(default_factory=Counter)
    asks: Counter[Ask] = field(default_factory=Counter)
    unusable: Counter[str] = field(default_factory=Counter)
    """Why parts of selections could not be used, and in how many queries."""


@dataclass(slots=True)
class _Alike:
    """The statements of one shape."""

    first: Statement
    outline: str
    times: Counter[Slots] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.times.total()


def read_log(
    paths: Sequence[Path], columns: QueriedColumns, *, dialect: str | None = None, most_shapes: int = MOST_SHAPES
) -> LogTally:
    """Read and count the SQL statements of log files, none of which is executed; `columns` are those of the table that
    the log is about, and the dialect is sqlglot's name for it.
    """
    require_dialect(dialect)
    tally = LogTally()
    alike = _by_shape(paths, dialect, tally)
    texts = sorted(alike, key=lambda shape: -alike[shape].total)
    for group in (alike[text] for text in texts[most_shapes:]):
        why = f"the log has more than {most_shapes:,} different statements"
        _not_read(tally, group.first, group.total, why, group.outline)
    counter = _Counter(columns, tally)
    for text, parsed in zip(texts[:most_shapes], parse_statements(texts[:most_shapes], dialect), strict=True):
        group = alike[text]
        if parsed.content is None:
            _not_read(tally, group.first, group.total, parsed.fault, group.outline)
        elif not parsed.content["is_query"]:
            tally.others += group.total
        else:
            counter.count(parsed.content, group)
    tally.listed.sort(key=lambda unread: (unread.file, unread.line))
    return tally


def _by_shape(paths: Sequence[Path], dialect: str | None, tally: LogTally) -> dict[str, _Alike]:
    """The statements by their shapes."""
    quoting, text_quotes = dialect_quoting(dialect)
    shaper = Shaper(quoting, text_quotes)
    by_shape: dict[str, _Alike] = {}
    kept = 0
    for statement in read_statements(paths, quoting):
        tally.statements += 1
        try:
            if statement.text is None:
                raise NotParsed("it is too long, or a quote of it is never closed")
            shape = shaper.shape(statement.text)
        except NotParsed as error:
            _not_read(tally, statement, 1, str(error), "")
            continue
        if not shape.text:
            tally.statements -= 1  # nothing but a comment
            continue
        group = by_shape.get(shape.text)
        if group is not None and shape.slots in group.times:
            group.times[shape.slots] += 1
        elif kept + len(statement.text) > MOST_CHARACTERS:
            _not_read(tally, statement, 1, f"the log has more than {MOST_CHARACTERS:,} characters", "")
        else:
            kept += len(statement.text)
            by_shape.setdefault(shape.text, _Alike(statement, shape.outline)).times[shape.slots] += 1
    return by_shape


def _not_read(tally: LogTally, statement: Statement, times: int, why: str, outline: str) -> None:
    tally.unread += times
    if len(tally.listed) < MOST_LISTED:
        tally.listed.append(Unread(statement.file, statement.line, times, why, outline))


class _Counter:
    """Counts the statements of one shape after the other."""

    def __init__(self, columns: QueriedColumns, tally: LogTally) -> None:
        self.columns = columns
        self.tally = tally
        self.reasons: set[str] = set()
        self.filler = Filler(columns, self.reasons.add)

    def count(self, content: dict[str, Any], group: _Alike) -> None:
        """Count what a query of some shape uses."""
        tally, total = self.tally, group.total
        tally.queries += total
        tally.tables.update(dict.fromkeys(content["tables"], total))
        tally.everything += total if content["all"] else 0
        self.uses(content, total)
        if content["selections"] or content["asks"] is not None:
            for slots, times in group.times.items():
                self.statement(content, slots, times)

    def uses(self, content: dict[str, Any], times: int) -> None:
        """Count the columns."""
        names = {
            use: {name for column in content[use] if (name := self.columns.name(column)) is not None}
            for use in ("shown", "filtered", "grouped", "joined")
        }
        names["featured"] = names["shown"] | names["grouped"] | names["joined"]
        for use, columns in names.items():
            for name in columns:
                uses = self.tally.uses.setdefault(name, Uses())
                setattr(uses, use, getattr(uses, use) + times)

    def statement(self, content: dict[str, Any], slots: Slots, times: int) -> None:
        """Count what is selected and asked with some values."""
        self.reasons.clear()
        filled = [self.filler.fill(tree, slots) for tree in content["selections"]]
        selected = {_canonical(part.predicate) for part in filled if part.predicate is not None and not part.is_empty}
        self.tally.predicates.update(dict.fromkeys(selected, times))
        self.tally.selecting += times if selected else 0
        self.tally.unusable.update(dict.fromkeys(self.reasons, times))
        if content["asks"] is not None and (ask := self.ask(content["asks"], slots)) is not None:
            self.tally.asks[ask] += times

    def ask(self, asked: dict[str, Any], slots: Slots) -> Ask | None:
        """The question of a query; None if not all of it is known."""
        tree = asked["tree"]
        filled = Filled(None) if tree is None else self.filler.fill(tree, slots)
        groups = [self.released(column) for column in asked["groups"]]
        aggregates = [self.aggregate(name, column) for name, column in asked["aggregates"]]
        if filled.is_empty or not filled.is_whole or None in aggregates or None in groups:
            return None
        predicate = None if filled.predicate is None else _canonical(filled.predicate)
        return Ask(predicate, tuple(filter(None, aggregates)), tuple(name for name in groups if name is not None))

    def released(self, column: Sequence[Any]) -> str | None:
        """The column of the table that is meant; None if it is none, or is not released."""
        name = self.columns.name(column)
        return name if name is not None and self.columns.kinds[name].is_released else None

    def aggregate(self, name: str, column: Sequence[Any] | None) -> tuple[str, str | None] | None:
        """What is computed of which column, None for rows; None if it cannot be computed from a release.

        Whoever counts an identifier counts rows.
        """
        if column is None:
            return name, None
        released = self.released(column)
        if released is None:
            return (name, None) if name == "count" and self.columns.name(column) is not None else None
        return name, released


def _canonical(predicate: Predicate) -> Predicate:
    """The predicate in an order that does not depend on how it was written, so that equal ones are one."""
    predicate = by_column(predicate)
    if isinstance(predicate, Condition):
        values = tuple(sorted(predicate.values, key=lambda value: (type(value).__name__, value)))
        return Condition(predicate.column, predicate.relation, values, kind=predicate.kind)
    parts = sorted({_canonical(part) for part in predicate.parts}, key=repr)
    return all_of(parts) if isinstance(predicate, And) else any_of(parts)
