# SPDX-License-Identifier: Apache-2.0
"""The shape of a statement: its text with the values that it compares with taken out, and how they are filled in again.
Statements of one shape are parsed once.

A value is taken out only where it stands beside a comparison; everything else, such as the 1 of GROUP BY 1 or the
format of a date, belongs to the shape. What stands in its place can be parsed as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from anonfit.tables.schema import ColumnType
from anonfit.workload.logs.reading import Quoting
from anonfit.workload.predicates import ColumnKind, Condition, Holding, Predicate, Relation, Value, all_of, any_of
from anonfit.workload.selections import why_not_selectable
from anonfit.workload.truth import Form, Literal, number_in, values_of, written

DEEPEST = 40
"""Parentheses, brackets and words within each other: a parser calls itself about twenty times for each."""
MOST_WORDS = 4_000
"""Words and signs of a shape, where a list of values is one."""

MOST_PLANS = 20_000
"""Plans that are kept."""

DIGITS = frozenset(".0123456789")
KEPT = "\x00"
NUMBER_SLOT = "8675309"
TEXT_SLOT = ("⟨", "⟩")
SLOT = re.compile(rf"{TEXT_SLOT[0]}(\d+){TEXT_SLOT[1]}|{NUMBER_SLOT}(\d{{4}})")
SHOWN_SLOT = re.compile(rf"'{TEXT_SLOT[0]}\d+{TEXT_SLOT[1]}'|{NUMBER_SLOT}\d{{4}}")
HIDDEN = "…"
BEFORE_VALUES = frozenset(
    ("=", "<", ">", "<=", ">=", "<>", "!=", "==", "between", "and", "like", "ilike", "limit", "offset")
)
OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")
STEPS = {**dict.fromkeys(OPENING, (0, 1)), **dict.fromkeys(CLOSING, (0, -1)), "case": (1, 1), "end": (1, -1)}
"""Words that lead into parentheses or cases, and out of them."""
NESTING = frozenset(("case", "not", "interval", "-", "+", "~", "struct", "array", "map"))
"""Words that can follow each other without end, each within the one before; signs between two values do not nest, but
counting them as if they did costs nothing in queries that people write.
"""


@dataclass(frozen=True, slots=True)
class StatementShape:
    """A statement without the values that it compares with, and these, as they are written but for quotes: of lists,
    all of them in one slot. Its outline has no values at all, so it can be shown.
    """

    text: str
    slots: tuple[tuple[str, ...], ...]
    outline: str = ""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The shape of statements that differ in values only: texts, the values between them, and those of each slot."""

    texts: tuple[str, ...]
    kept: tuple[int, ...]
    slots: tuple[tuple[int, ...], ...]

    @property
    def outline(self) -> str:
        """The shape without the values that belong to it, too."""
        return SHOWN_SLOT.sub(HIDDEN, HIDDEN.join(self.texts))

    def text(self, values: Sequence[str]) -> str:
        """The shape of a statement that has some values."""
        kept = (*(values[at] for at in self.kept), "")
        return "".join(piece for pair in zip(self.texts, kept, strict=True) for piece in pair)


class NotParsed(Exception):
    """A statement that is not parsed, and why."""


def slot_of(text: str) -> int | None:
    """The slot that a number or text of a parsed shape stands for; None if it is itself."""
    match = SLOT.fullmatch(text)
    return None if match is None else int(match[1] or match[2])


class Shaper:
    """Takes values out of statements of one way of quoting; `text_quotes` are the quotes that hold texts."""

    def __init__(self, quoting: Quoting, text_quotes: str) -> None:
        # What is never closed goes on to the end, so that no text is looked through twice.
        inner = r"(?:[^Q\\]|\\[\s\S]|QQ)*+(?:Q|\Z)" if quoting.backslash else r"(?:[^Q]|QQ)*+(?:Q|\Z)"
        texts = [re.escape(quote) + inner.replace("Q", re.escape(quote)) for quote in text_quotes]
        names = [
            rf"{re.escape(opening)}[^{re.escape(closing)}]*+(?:{re.escape(closing)}|\Z)"
            for opening, closing in quoting.closing.items()
            if opening not in text_quotes
        ]
        self.backslash = quoting.backslash
        number = r"\d++(?:\.\d*+)?+(?:[eE][+-]?\d++)?+(?![\w])|\.\d++(?![\w])"
        comment = rf"(?:{quoting.remark})[^\n]*+|/\*(?:[\s\S]*?\*/|[\s\S]*+)"
        self.values = re.compile(rf"({'|'.join([*texts, *names])}|{comment}|(?<![\w.@:$#])(?:{number}))")
        self.text_quotes = text_quotes
        self.plans: dict[str, _Plan | NotParsed] = {}
        self.pattern = re.compile(
            rf"(?P<skip>\s++|{comment})|(?P<text>{'|'.join(texts)})|(?P<name>{'|'.join(names) or '(?!)'})"
            rf"|(?P<number>{number})"
            r"|(?P<word>[^\W\d]\w*+|[@:$#]\w++)|(?P<sign><=|>=|<>|!=|==|::|\|\||->|[\s\S])"
        )

    def shape(self, text: str) -> StatementShape:
        """The shape of a statement.

        Raises:
            NotParsed: It has too many words, or they are nested too deeply to be parsed.
        """
        text, values = text.replace(KEPT, " "), []
        pieces = self.values.split(text)
        for place in range(1, len(pieces), 2):
            begin = pieces[place][0]
            if begin in self.text_quotes or begin in DIGITS:
                values.append(pieces[place])
                pieces[place] = "\x01" if begin in self.text_quotes else "\x02"
        if values and values[-1][0] in self.text_quotes and (len(values[-1]) < 2 or values[-1][-1] != values[-1][0]):
            raise NotParsed("a quote is never closed")
        key = "".join(pieces)
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plan(text, values)
            if len(self.plans) < MOST_PLANS:
                self.plans[key] = plan
        if isinstance(plan, NotParsed):
            raise plan
        slots = tuple(tuple(self.plain(values[at]) for at in slot) for slot in plan.slots)
        return StatementShape(plan.text(values), slots, plan.outline)

    def plan(self, text: str, values: list[str]) -> _Plan | NotParsed:
        """The plan of a statement, which has these values."""
        words: list[str] = []
        slots: list[list[int]] = []
        nesting, at, kept, end = _Nesting(), -1, [], -1
        for match in self.pattern.finditer(text):
            kind, word = match.lastgroup, match.group()
            if kind == "skip":
                continue
            mark = ""  # the letter before a quote that says what the text is; N says nothing more
            if kind == "text" and end == match.start() and len(words[-1]) == 1:
                mark = words.pop().lower().replace("n", "")
            end = match.end() if kind == "word" else -1
            if kind in ("text", "number"):
                nesting.chain, at = 0, at + 1
                if at >= len(values) or values[at] != word:
                    return NotParsed("its quotes cannot be told apart")
                if not mark and self.joins_list(words, slots, values, at):
                    continue
                if not mark and _is_value(words) and len(slots) < MOST_WORDS:
                    opening, closing = TEXT_SLOT
                    is_text = kind == "text"
                    words.append(f"'{opening}{len(slots)}{closing}'" if is_text else f"{NUMBER_SLOT}{len(slots):04d}")
                    slots.append([at])
                    continue
                word = mark + KEPT
                kept.append(at)
            elif not nesting.passes(word):
                return NotParsed(f"it is nested more than {DEEPEST} deep")
            words.append(word)
            if len(words) > MOST_WORDS:
                return NotParsed(f"it has more than {MOST_WORDS:,} words")
        return _Plan(tuple(" ".join(words).split(KEPT)), tuple(kept), tuple(map(tuple, slots)))

    def plain(self, value: str) -> str:
        """A value without its quotes."""
        quote = value[0]
        if quote not in self.text_quotes:
            return value
        inner = value[1:-1].replace(quote * 2, quote)
        return re.sub(r"\\([\s\S])", r"\1", inner) if self.backslash else inner

    def joins_list(self, words: list[str], slots: list[list[int]], values: list[str], at: int) -> bool:
        """Whether a value is the next of a list after IN, all of which are one slot."""
        if len(words) < 4 or words[-1] != "," or words[-3] != "(" or words[-4].lower() != "in":
            return False
        slot = slot_of(words[-2].strip("'"))
        if slot is None or slot != len(slots) - 1:
            return False
        if (values[slots[slot][0]][0] in self.text_quotes) != (values[at][0] in self.text_quotes):
            return False
        slots[slot].append(at)
        words.pop()
        return True


class _Nesting:
    """How deep a place of a statement is."""

    def __init__(self) -> None:
        self.levels = [0, 0]  # of parentheses and of cases
        self.chain = 0

    def passes(self, word: str) -> bool:
        """Go on by a word or sign; whether it is not too deep there."""
        lowered = word.lower()
        kind, step = STEPS.get(lowered, (0, 0))
        self.levels[kind] = max(0, self.levels[kind] + step)
        self.chain = self.chain + 1 if lowered in NESTING or word in OPENING else 0
        return max(sum(self.levels), self.chain) <= DEEPEST


def _is_value(words: list[str]) -> bool:
    """Whether a value that stands after these words is compared with: x = 5, x > -5, x > DATE '2020-01-01', x IN (5."""
    at = len(words) - 1
    if at > 0 and words[at] == "-":
        at -= 1
    if at > 0 and words[at].lower() in ("date", "timestamp"):
        at -= 1
    elif at > 1 and words[at] == "(" and words[at - 1].lower() == "cast":
        at -= 2
    if at < 0:
        return False
    word = words[at].lower()
    return word in BEFORE_VALUES or (word == "(" and at > 0 and words[at - 1].lower() == "in")


Slots = Sequence[Sequence[str]]
MOST_VALUES = 1_000
"""Values of a condition; more are no rectangle that people would ask for again."""

RELATIONS = {
    "=": Relation.IN,
    "<": Relation.LESS,
    "<=": Relation.AT_MOST,
    ">": Relation.MORE,
    ">=": Relation.AT_LEAST,
    "null": Relation.MISSING,
}


class Filled(NamedTuple):
    """A predicate that every row of a query meets: None if none is known; whole if all that meet it are the query's.

    A query that no row can meet has `is_empty`.
    """

    predicate: Predicate | None
    is_whole: bool = True
    is_empty: bool = False


UNKNOWN = Filled(None, is_whole=False)
EVERYTHING = Filled(None)
NOTHING = Filled(None, is_empty=True)


@dataclass(frozen=True, slots=True)
class QueriedColumns:
    """The columns of a table by the names that queries give them, which need not be written in the same case."""

    kinds: Mapping[str, ColumnKind]
    table: str | None = None
    """The name of the table in queries; None: whatever table has a column of that name."""
    is_capped: bool = False

    def name(self, column: Sequence[Any]) -> str | None:
        """The column of a name and the tables that it may be of; None if it is none of this table."""
        name, tables = column
        if self.table is not None and self.table.lower() not in (queried.lower() for queried in tables):
            return None
        if name in self.kinds:
            return str(name)
        alike = [known for known in self.kinds if known.lower() == name.lower()]
        return alike[0] if len(alike) == 1 else None

    def why_not(self, name: str) -> str | None:
        """Why nothing can be selected by a column; None if it can."""
        kind = self.kinds[name]
        if not kind.is_released:
            return f"'{name}' is not released (its role is '{kind.declared.role}')"
        if why_not_selectable(name, kind.declared.role, is_capped=self.is_capped):
            return f"'{name}' is guarded (its role is '{kind.declared.role}')"
        return f"'{name}' holds no plain values" if kind.holding == Holding.NOTHING_PLAIN else None


class Filler:
    """Fills trees; `on_unused` is called with the reason why a part could not be used."""

    def __init__(self, columns: QueriedColumns, on_unused: Callable[[str], None]) -> None:
        self.columns = columns
        self.on_unused = on_unused
        self.known: dict[tuple[str, str, str], tuple[Value, ...] | str] = {}

    def fill(self, tree: Sequence[Any], slots: Slots, *, negated: bool = False) -> Filled:
        """The predicate of a tree, or of its opposite."""
        kind = tree[0]
        if kind == "not":
            return self.fill(tree[1], slots, negated=not negated)
        if kind in ("and", "or"):
            parts = [self.fill(part, slots, negated=negated) for part in tree[1]]
            return _all_of(parts) if (kind == "and") != negated else _any_of(parts)
        if kind == "truth":
            return EVERYTHING if tree[1] != negated else NOTHING
        if kind == "same":
            first, second = (self.written(value, slots)[0][1] for value in tree[1])
            is_same = first == second or (number_in(first) is not None and number_in(first) == number_in(second))
            return EVERYTHING if is_same != negated else NOTHING
        if kind == "?":
            return self.unknown(tree[1])
        return self.condition(tree, slots, negated=negated)

    def unknown(self, reason: str) -> Filled:
        """A part that could not be used."""
        if reason:
            self.on_unused(reason)
        return UNKNOWN

    def condition(self, tree: Sequence[Any], slots: Slots, *, negated: bool) -> Filled:
        """A relation between a column and values."""
        name = self.columns.name(tree[1])
        if name is None:
            return self.unknown("is of a column that is not in the spec")
        why = self.columns.why_not(name)
        if why is not None:
            return self.unknown(why)
        kind, relation = self.columns.kinds[name], RELATIONS[tree[0]]
        if relation.is_of_order and kind.type == ColumnType.NOMINAL:
            return self.unknown(f"'{name}' is nominal and compared by order")
        written = [entry for value in tree[2] for entry in self.written(value, slots)]
        if len(written) > MOST_VALUES:
            return self.unknown(f"'{name}' is compared with more than {MOST_VALUES:,} values")
        meant: list[Value] = []
        for form, text in written:
            values = self.values(name, kind, form, text)
            if isinstance(values, str):
                return self.unknown(values)
            meant += values
        if relation.is_of_order and len(meant) != 1:
            return self.unknown(f"'{name}' is compared by order with several values")
        values = tuple(dict.fromkeys(meant))
        return Filled(Condition(name, relation.opposite if negated else relation, values, kind=kind))

    def written(self, value: Sequence[str], slots: Slots) -> list[tuple[str, str]]:
        """The form and text of what stands in a tree for a value, or for a list of values."""
        form, text = value
        sign = "-" if form == Form.NUMBER and text.startswith("-") else ""
        slot = slot_of(text[len(sign) :])
        if slot is None or slot >= len(slots):
            return [(form, text)]
        return [(form, sign + entry) for entry in slots[slot]]

    def values(self, name: str, kind: ColumnKind, form: str, text: str) -> tuple[Value, ...] | str:
        """What a written value means in a column, or why it means nothing."""
        key = (name, form, text)
        if key not in self.known:
            # Many databases compare '50' with numbers as if it were 50.
            is_number = kind.holding == Holding.NUMBERS and form == Form.TEXT and number_in(text) is not None
            literal = Literal(Form.NUMBER if is_number else Form(form), text, text)
            try:
                meant = values_of(literal, kind)
                can_be_written = all(
                    number_in(written(number)) is not None for number in meant if isinstance(number, Fraction)
                )
            except (ValueError, OverflowError):
                meant, can_be_written = (), False
            # A number too large to be written into a spec is none that a column has, either.
            self.known[key] = meant if can_be_written else f"'{name}' is compared with a value that it cannot have"
        return self.known[key]


def _all_of(parts: Sequence[Filled]) -> Filled:
    """What is known of rows that meet all parts: those that are not known select more, not fewer."""
    if any(part.is_empty for part in parts):
        return NOTHING
    known = [part.predicate for part in parts if part.predicate is not None]
    return Filled(all_of(known) if known else None, all(part.is_whole for part in parts))


def _any_of(parts: Sequence[Filled]) -> Filled:
    """What is known of rows that meet some part: nothing, if one is not known."""
    left = [part for part in parts if not part.is_empty]
    if not left:
        return NOTHING
    if any(part.predicate is None and part.is_whole for part in left):
        return EVERYTHING
    known = [part.predicate for part in left if part.predicate is not None]
    if len(known) < len(left):
        return UNKNOWN
    return Filled(any_of(known), all(part.is_whole for part in left))
