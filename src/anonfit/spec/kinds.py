# SPDX-License-Identifier: Apache-2.0
"""The kinds of values that settings have: each is read into what it must be, or into a fault that is kept until all are
found, and written back.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from anonfit.criteria.objectives import ALGORITHMS
from anonfit.engines.contract import ENGINES
from anonfit.errors import did_you_mean
from anonfit.recoding.recoding import Recoding
from anonfit.spec.model import AUTO, Auto
from anonfit.tables.sources import FORMATS, reference
from anonfit.tables.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers that a setting may be, and how a message calls them."""

    says: str
    fits: Callable[[float], bool]

    def have(self, value: object) -> bool:
        """Whether a value is one of them."""
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        try:
            number = float(value)
        except OverflowError:  # a whole number of hundreds of digits
            return False
        return math.isfinite(number) and self.fits(number)


ABOVE_ZERO = Numbers("a number above 0", lambda number: number > 0)
AT_LEAST_ZERO = Numbers("a number of at least 0", lambda number: number >= 0)
FRACTION = Numbers("a number between 0 and 1", lambda number: 0 <= number <= 1)


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, Python's or of another kind such as NumPy's."""
    return type(value) is not bool and isinstance(value, Integral)


class Faults:
    """The faults of a spec, each a sentence that begins with the place it is in."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.unread: set[str] = set()
        """Columns that are declared but could not be read: nothing more is said about them."""
        self.open: dict[str, str] = {}  # questions that the spec leaves open, by the table they stand in

    def add(self, text: str) -> None:
        """Keep a fault."""
        self.sentences.append(text)

    def within(self, section: str) -> bool:
        """Whether a fault was found in a section."""
        return any(text.startswith((section, f"[{section}")) for text in self.sentences)

    def table(self, value: Any, where: str) -> dict[str, Any]:
        """A table of settings; what Python code gives as None is not given. A text `decide` is an open question."""
        if isinstance(value, Mapping):
            settings = {key: item for key, item in value.items() if item is not None}
            if isinstance(settings.get("decide"), str):
                self.open[where] = settings.pop("decide")
            return settings
        self.add(f"[{where}] must be a table of settings; found {value!r}.")
        return {}

    def unknown(self, table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
        """Refuse keys that are not known."""
        names = list(known)
        for key in (key for key in table if key not in names):
            self.add(f"{where}{'.' if where else ''}{key} is not a setting; {did_you_mean(str(key), names)}")


@dataclass(frozen=True, slots=True)
class Given:
    """Where a value is read: the table, its key there, and the default, which also stands in for a wrong value."""

    table: Mapping[str, Any]
    key: str
    where: str
    default: Any
    faults: Faults

    @property
    def place(self) -> str:
        """How a message calls the setting."""
        return f"{self.where}.{self.key}"

    @property
    def value(self) -> Any:
        """What is written; None if nothing is."""
        return self.table.get(self.key)

    def refuse(self, fault: str) -> Any:
        """Keep a fault; the default stands in for the value."""
        self.faults.add(fault)
        return self.default

    def of_type(self, kind: type | tuple[type, ...], word: str) -> Any:
        """A value of some type, which a message calls `word`; a whole number of any kind is taken as Python's."""
        value = self.table.get(self.key, self.default)
        if is_whole(value):
            value = int(value)
        is_wrong_bool = isinstance(value, bool) and kind is not bool
        if value is self.default or (isinstance(value, kind) and not is_wrong_bool):
            return value
        return self.refuse(f"{self.place} must be {word}; found {value!r}.")

    def number(self, numbers: Numbers) -> Any:
        """A finite number within bounds."""
        if self.key not in self.table:
            return self.default
        if numbers.have(self.value):
            return float(self.value)
        return self.refuse(f"{self.place} must be {numbers.says}; found {self.value!r}.")

    def choice(self, options: Iterable[str]) -> Any:
        """One of some words."""
        value = self.table.get(self.key, self.default)
        words = [str(option) for option in options]
        if value is self.default or (isinstance(value, str) and value in words):
            return value
        return self.refuse(f"{self.place} = {value!r} is not known; {did_you_mean(str(value), words)}")

    def texts(self) -> Any:
        """A list of texts."""
        if self.value is None:
            return self.default
        if isinstance(self.value, list | tuple) and all(isinstance(item, str) for item in self.value):
            return tuple(self.value)
        return self.refuse(f"{self.place} must be a list of texts; found {self.value!r}.")


def written(value: Any) -> Any:
    """A value as TOML and JSON have it."""
    if isinstance(value, tuple | list):
        return [written(item) for item in value]
    if isinstance(value, Recoding):
        return value.to_json()
    if isinstance(value, Taxonomy):
        return value.to_tree()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, str | Path) else value


def _as_table(value: Any) -> Any:
    """A keyword argument as TOML has it: keys are texts."""
    return {str(name): item for name, item in value.items()} if isinstance(value, Mapping) else value


@dataclass(frozen=True, slots=True)
class ValueKind:
    """What the value of a setting may be: how it is read, written back, and taken from a keyword argument."""

    read: Callable[[Given], Any]
    write: Callable[[Any], Any] = written
    of_keyword: Callable[[Any], Any] = _as_table
    choices: tuple[str, ...] = ()

    def that(self, holds: Callable[[Any], bool], fault: str, **words: Any) -> ValueKind:
        """The same, but values that something does not hold of are refused: `fault` has {place} and {value} in it."""

        def read(given: Given) -> Any:
            value = self.read(given)
            if value is None or holds(value):
                return value
            return given.refuse(fault.format(place=given.place, value=value, **words))

        return replace(self, read=read)


Entry = TypeVar("Entry")


def choice(of: Any, *, also: Iterable[str] = ()) -> ValueKind:
    """One of the words of a `Literal` or an enumeration, or of those that there are `also` when it is read."""
    words = tuple(str(word) for word in (get_args(of) or of))

    def read(given: Given) -> Any:
        word = given.choice(dict.fromkeys([*words, *also]))
        return of(word) if isinstance(of, type) and word is not given.default else word

    return ValueKind(read, choices=words)


def text(word: str) -> ValueKind:
    """A text; `word` says in a message which."""
    return ValueKind(lambda given: given.of_type(str, word))


LONGEST = 200
LINE = text("a line of text").that(
    lambda line: bool(line.strip()) and len(line) <= LONGEST and line.isprintable(),
    "{place} must be one line of at most {longest} characters that can be printed.",
    longest=LONGEST,
)


MOST_MISSING, LONGEST_MISSING = 30, 32
FEW_TEXTS = (
    "{place} must be at most {most} texts of at most {longest} characters that can be printed: the release publishes "
    "what means missing."
)


def is_few_texts(texts: Sequence[str]) -> bool:
    """Whether texts are few and short enough for what means missing: more could be rows of a table."""
    return len(texts) <= MOST_MISSING and all(
        len(text) <= LONGEST_MISSING and all(sign.isprintable() or sign.isspace() for sign in text) for text in texts
    )


def number(numbers: Numbers) -> ValueKind:
    """A finite number within bounds."""
    return ValueKind(lambda given: given.number(numbers))


def or_auto(kind: ValueKind) -> ValueKind:
    """The same, or the word `auto`."""

    def read(given: Given) -> Any:
        return AUTO if given.value in (None, AUTO) else kind.read(given)

    return replace(kind, read=read, choices=(AUTO,))


def whole(
    least: int | None = None,
    *,
    word: str = "a whole number",
    fault: str = "{place} must be at least {least}; found {value}.",
) -> ValueKind:
    """A whole number of at least `least`; one below is a `fault`, with {place}, {least} and {value} filled in."""
    kind = ValueKind(lambda given: given.of_type(int, word))
    return kind if least is None else kind.that(lambda value: bool(value >= least), fault, least=least)


def column_names(given: Any) -> list[str]:
    """The names of columns in a keyword argument; one may stand alone."""
    if given is None:
        return []
    return [str(name) for name in given] if isinstance(given, Iterable) and not isinstance(given, str) else [str(given)]


NAMES = ValueKind(Given.texts, of_keyword=column_names)
TEXTS = ValueKind(Given.texts, of_keyword=lambda value: value if isinstance(value, str) else list(value))
MISSING_TEXTS = TEXTS.that(is_few_texts, FEW_TEXTS, most=MOST_MISSING, longest=LONGEST_MISSING)
KINDS = {
    "above 0": number(ABOVE_ZERO),
    "at least 0": number(AT_LEAST_ZERO),
    "fraction": number(FRACTION),
    "names": NAMES,
    "names once": NAMES.that(lambda names: len(set(names)) == len(names), "{place} names a column twice."),
    "rows": whole(1, word="a whole number of rows", fault="{place} = {value} is no number of rows; write 1 or more."),
    "share": number(Numbers("a number above 0 and at most 1", lambda number: 0 < number <= 1)),
    "whole": whole(),
}
"""Kinds of which several settings may be, by their names in settings.toml."""


# --- a setting --------------------------------------------------------------------------------------------------


class Public(StrEnum):
    """When the public manifest of a release tells a setting."""

    NEVER = "never"
    HIDDEN = "hidden"  # never, since it leads to other files: a manifest that has it is refused
    CHANGED = "changed"  # where it is not what it would be anyway
    NEEDED = "needed"  # where the setting that it is for is asked
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a spec as settings.toml declares it, where it is said what the fields mean."""

    name: str
    kind: ValueKind
    doc: str
    default: str | None = None
    algorithms: tuple[str, ...] = tuple(ALGORITHMS)
    needs: tuple[str, ...] = ()
    public: Public = Public.NEVER
    public_with: tuple[str, ...] | None = None
    keyword: str | None = ""  # empty: the keyword argument has the same name; None: there is none
    recodes: bool = True

    @property
    def meaning(self) -> str:
        """What it means, and of which algorithm it is, where that is another than the usual one."""
        is_special = len(self.algorithms) == 1 and not ALGORITHMS[self.algorithms[0]].splits
        return f"of `{self.algorithms[0]}`: {self.doc}" if is_special and not self.doc.startswith("of `") else self.doc


@dataclass(frozen=True, slots=True)
class Section:
    """A table of a spec: its settings, and the dataclass that holds them."""

    name: str
    holder: type
    settings: tuple[Setting, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The keys that the table may have."""
        return tuple(setting.name for setting in self.settings)

    def default(self, name: str) -> Any:
        """The value of a setting that is not given; None for one that must be."""
        field = {field.name: field for field in fields(self.holder)}[name]
        if field.default_factory is not MISSING:
            return field.default_factory()
        return None if field.default is MISSING else field.default

    def is_changed(self, held: Any, name: str) -> bool:
        """Whether a setting is not what it would be anyway."""
        value, default = getattr(held, name), self.default(name)
        return value is not None if default is None else bool(value != default)

    def tables(self, held: Any) -> dict[str, Any]:
        """The settings that are not what they would be anyway, as TOML has them."""
        return {
            setting.name: setting.kind.write(getattr(held, setting.name))
            for setting in self.settings
            if self.is_changed(held, setting.name)
        }


def _in_words(names: Iterable[str]) -> str:
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} or {last}"


_DECLARED = tomllib.loads((Path(__file__).parent / "settings.toml").read_text(encoding="utf-8"))
_LISTED = {"{engines}": _in_words((AUTO, *ENGINES)), "{formats}": _in_words(FORMATS), "{files}": reference()}
"""What the meanings of settings list, and others declare."""


def declared(name: str, holder: type, /, **own: ValueKind) -> Section:
    """A section as settings.toml declares it, held by a dataclass; `own` are kinds that only it has."""
    types = get_type_hints(holder)
    entries = _DECLARED[name].items()
    return Section(name, holder, tuple(_setting(key, dict(entry), own.get(key), types[key]) for key, entry in entries))


def _setting(name: str, entry: dict[str, Any], own: ValueKind | None, held: Any) -> Setting:
    says, least, named = (entry.pop(key, None) for key in ("text", "least", "kind"))
    if says is not None or least is not None:
        own = text(says) if least is None else whole(least)
    for placeholder, listing in _LISTED.items():
        entry["doc"] = entry["doc"].replace(placeholder, listing)
    entry["public"] = Public(entry.get("public", "never"))
    entry["keyword"] = None if entry.get("keyword") is False else entry.get("keyword", "")
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    return Setting(name, own or _kind_of(held, named), **entry | lists)


def _kind_of(held: Any, named: str | None) -> ValueKind:
    """The kind of a name, or the one that follows from the type of a field, None and `auto` apart."""
    is_union = get_origin(held) not in (None, Literal, tuple)
    parts = [part for part in get_args(held) if part is not type(None)] if is_union else [held]
    if Auto in parts:
        parts.remove(Auto)
        return or_auto(_kind_of(parts[0], named))
    if named is not None:
        return KINDS[named]
    if parts[0] is bool:
        return ValueKind(lambda given: given.of_type(bool, "true or false"))
    return TEXTS if get_origin(parts[0]) is tuple else choice(parts[0])


def read_section(section: Section, table: dict[str, Any], faults: Faults, where: str = "") -> dict[str, Any]:
    """The values of a table's settings by name; keys that are none are refused."""
    place = where or section.name
    faults.unknown(table, section.names, place)
    return {
        setting.name: setting.kind.read(Given(table, setting.name, place, section.default(setting.name), faults))
        for setting in section.settings
    }


def read_entries(
    given: Given, example: str, read: Callable[[dict[str, Any], str, Faults], Entry | None], *, short: str = ""
) -> tuple[Entry, ...]:
    """The entries of a list of tables that could be read; a text alone is a table that has it under the key `short`."""
    entries = given.table.get(given.key, ())
    if isinstance(entries, Mapping):
        given.faults.add(f"[{given.place}] is a list: write [[{given.place}]], with two brackets, once for each entry.")
        return ()
    if not isinstance(entries, list | tuple):
        given.faults.add(f"{given.place} must be a list, such as {example}; found {entries!r}.")
        return ()
    values = []
    for number, entry in enumerate(entries):
        where = f"{given.place}[{number}]"
        table = {short: entry} if short and isinstance(entry, str) else entry
        if short and not isinstance(table, Mapping):
            given.faults.add(f"{where} must be the name of a {short}, or a table, as in {example}; found {entry!r}.")
            continue
        settings = given.faults.table(table, where)
        if isinstance(table, Mapping):
            values.append(read(settings, where, given.faults))
    return tuple(value for value in values if value is not None)
