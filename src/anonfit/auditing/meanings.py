# SPDX-License-Identifier: Apache-2.0
"""What the labels of a column mean: its type, order, domain and taxonomy, read from plain mappings. The entries of
"columns" in recoding.json have this form; users of `audit` may write it by hand.

All JSON files are read with `JsonObject`: a setting that is missing, unknown or of the wrong kind is an error, never
ignored. They are written in one layout, with one spelling of every text and number, so that neither white space nor
needless digits or escapes can carry what no reader is shown."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

from anonfit.errors import RecodingError, RequestError, did_you_mean

NEEDED: Any = object()
"""The default of a setting that must be written."""

_MOST_BYTES = 1 << 29
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ,.()+_-]{0,99}")
_MOST_MISSING, _LONGEST_MISSING, _LONGEST_FORMAT = 30, 32, 40  # texts; characters
_DIRECTIVE = re.compile(r"%(?:[-_0]?[A-Za-z%+]|\.?[369]?f|:{0,3}z|#z)")
_BETWEEN = re.compile(r"[\0 \-/.,:;_]+")
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


def text_of(file: Path) -> str:
    """The text of a file of a bounded size; anything else is a ValueError or an OSError."""
    if not file.is_file():
        raise ValueError("not a file")
    with file.open("rb") as stream:
        content = stream.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError("too large")
    return content.decode("utf-8")


def object_of(text: str) -> dict[str, Any]:
    """The object of a JSON text without doubled keys and infinite numbers; anything else is a ValueError."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(entries := dict(pairs)) < len(pairs):
            raise ValueError("a key twice")
        return entries

    def finite(digits: str) -> float:
        if not math.isfinite(value := float(digits)):
            raise ValueError("a number without end")
        return value

    try:
        content = json.loads(text, object_pairs_hook=once, parse_constant=finite, parse_float=finite)
        json.dumps(content, ensure_ascii=False).encode() if "\\u" in text else None  # half a sign is no Unicode
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object of a JSON file, what messages call it, and the error that is raised for its faults."""

    entries: Mapping[str, Any]
    label: str
    error: type[RequestError]

    def known(self, names: Iterable[str]) -> JsonObject:
        """The same settings, if all of them have one of these names."""
        valid = list(names)
        for name in self.entries:
            if name not in valid:
                raise self.error(f"{self._begin} has the unknown setting '{name}': {did_you_mean(str(name), valid)}")
        return self

    def get(self, name: str, kind: type, default: Any = NEEDED) -> Any:
        """The value of a setting, of the kind it must be; a number may be written as a whole one."""
        if name not in self.entries:
            if default is NEEDED:
                raise self.error(f"{self._begin} has no '{name}'.")
            return default
        value = self.entries[name]
        if value is None and default is None:
            return None
        kinds = {float: (int, float), dict: (Mapping,), list: (list, tuple)}.get(kind, (kind,))
        if not isinstance(value, kinds) or (isinstance(value, bool) and kind is not bool):
            raise self.error(f"'{name}' in {self.label} is not {_WORDS[kind]}.")
        return value

    def word(self, name: str, words: Iterable[str], default: Any = NEEDED) -> Any:
        """The value of a setting that is one of some words."""
        value, valid = self.get(name, str, default), list(words)
        if value != default and value not in valid:
            raise self.error(f"'{name}' in {self.label} is an unknown word: {did_you_mean(value, valid)}")
        return value

    def plain(self, names: Iterable[str], columns: Iterable[str]) -> JsonObject:
        """The same settings, if they have these names and hold numbers, words or columns: nothing may hide there."""
        valid = set(columns)
        for name, value in self.known(names).entries.items():
            if isinstance(value, (list, tuple)):
                is_plain = all(isinstance(word, str) and word in valid for word in value)
            elif isinstance(value, str):
                is_plain = _WORD.fullmatch(value) is not None
            else:
                is_plain = isinstance(value, float | None) or (isinstance(value, int) and abs(value) < 1 << 63)
            if not is_plain:
                raise self.error(f"'{name}' in {self.label} is not a number or a word that a setting may be.")
        return self

    def texts(self, name: str, default: Any = NEEDED) -> Any:
        """The texts of a setting that is a list of such."""
        value = self.get(name, list, default)
        if value is not default and not all(isinstance(text, str) for text in value):
            raise self.error(f"'{name}' in {self.label} is not a list of texts.")
        return tuple(value)

    def missing_texts(self, default: Any) -> tuple[str, ...]:
        """The texts that mean missing: few and short ones, so that a table cannot stand there."""
        texts: tuple[str, ...] = self.texts("missing", default)
        if len(texts) > _MOST_MISSING or not all(map(_is_short, texts)):
            raise self.error(f"'missing' in {self.label} is more, or holds longer texts, than what means missing.")
        return texts

    def date_format(self) -> str | None:
        """How dates are written: directives, and what stands between them."""
        written: str | None = self.get("date_format", str, None)
        if written is not None and not _is_date_format(written):
            raise self.error(f"'date_format' in {self.label} is no form of dates.")
        return written

    def part(self, name: str, default: Any = NEEDED) -> JsonObject:
        """The settings of an object that is a setting."""
        return JsonObject(self.get(name, dict, default), f"'{name}' of {self.label}", self.error)

    def parts(self, name: str, default: Any = NEEDED) -> list[JsonObject]:
        """The settings of each object of a list."""
        value = self.get(name, list, default)
        if not all(isinstance(entry, Mapping) for entry in value):
            raise self.error(f"'{name}' in {self.label} is not a list of objects.")
        return [JsonObject(entry, f"an entry of '{name}' of {self.label}", self.error) for entry in value]

    @property
    def _begin(self) -> str:
        """The label at the beginning of a sentence."""
        return self.label[0].upper() + self.label[1:]


def _is_short(text: str) -> bool:
    return len(text) <= _LONGEST_MISSING and all(sign.isprintable() or sign.isspace() for sign in text)


def _is_date_format(text: str) -> bool:
    """Whether a text has directives, signs that part them and words of at most three letters, and nothing else."""
    rest = _DIRECTIVE.sub("\0", text)
    words = [word for word in _BETWEEN.split(rest) if word]
    return len(text) <= _LONGEST_FORMAT and "\0" in rest and all(len(word) <= 3 and word.isalpha() for word in words)


# --- layout of JSON files -----------------------------------------------------------------------------------------

_ON_LINES = ("columns", "nodes", "parts", "bins")
"""The entries of a recoding or model that have a line for each of their own entries."""
_spaced = partial(json.dumps, ensure_ascii=False)
_dense = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))


def laid_out(path: Path) -> bool:
    """Whether a JSON file is written in the one layout of its name; what is no JSON or not there is found by others."""
    try:
        text = text_of(path)
        content = object_of(text)
    except (OSError, ValueError):
        return True
    if path.name not in ("recoding.json", "model.json"):
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n" == text

    def lines(name: str, value: Any) -> str:
        if name not in _ON_LINES or not isinstance(value, dict | list):
            return _dense(value) if name == "predicts" else _spaced(value)
        if isinstance(value, dict):
            return "{\n" + ",\n".join(f"  {_spaced(key)}: {_dense(part)}" for key, part in value.items()) + "\n }"
        return "[\n" + ",\n".join("  " + (_spaced if name == "columns" else _dense)(part) for part in value) + "\n ]"

    written = ",\n".join(f" {_spaced(name)}: {lines(name, value)}" for name, value in content.items())
    return text == "{\n" + written + "\n}\n"


# --- meanings -----------------------------------------------------------------------------------------------------

# The exponent is bounded so that a hostile text cannot ask for a number of a million digits.
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)
_PERIOD = re.compile(r"(\d{4})(?:-Q([1-4])|-(\d\d)(?:-(\d\d))?)?", re.ASCII)
_EPOCH = datetime.date(1970, 1, 1).toordinal()


@lru_cache(maxsize=1 << 16)
def number(text: str) -> Decimal | None:
    """The number a text states, None if it states none."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


@lru_cache(maxsize=1 << 16)
def moment(text: str) -> Decimal | None:
    """The date or time a text states, in seconds since 1970, None if it states none."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    try:
        days = datetime.date.fromisoformat(match[1]).toordinal() - _EPOCH
    except ValueError:
        return None
    hour, minute, second = (int(part or 0) for part in match.group(2, 3, 4))
    if hour > 23 or minute > 59 or second > 59:
        return None
    return days * 86400 + hour * 3600 + minute * 60 + second + Decimal(f"0.{match[5] or 0}")


def period(text: str) -> tuple[Decimal, Decimal] | None:
    """The begin of the year, quarter, month or day a text states and that of the next, None if it states none."""
    match = _PERIOD.fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[3] or 3 * int(match[2] or 1) - 2), int(match[4] or 1)
    months = 0 if match[4] else 1 if match[3] else 3 if match[2] else 12
    years, later = divmod(month - 1 + months, 12)
    try:
        begin = datetime.date(year, month, day).toordinal()
    except ValueError:
        return None
    after = datetime.date.max.toordinal() + 1
    if year + years <= datetime.MAXYEAR:
        after = begin + 1 if match[4] else datetime.date(year + years, later + 1, 1).toordinal()
    return Decimal(begin - _EPOCH) * 86400, Decimal(after - _EPOCH) * 86400


LabelType = Literal["continuous", "date", "ordinal", "nominal"]
TYPES = ("continuous", "date", "ordinal", "nominal")
Ends = tuple[Decimal | None, Decimal | None]


@dataclass(frozen=True, slots=True)
class LabelTree:
    """A taxonomy: its leaves in depth-first order, and the run of leaves below every name."""

    leaves: tuple[str, ...]
    below: Mapping[str, tuple[int, int]]  # name -> first and last leaf


@dataclass(frozen=True, slots=True)
class LabelMeaning:
    """How the labels of one column are read."""

    name: str
    type: LabelType
    order: tuple[str, ...] = ()
    domain: Ends = (None, None)
    tree: LabelTree | None = None
    cuts: frozenset[Decimal] | None = None  # None: not stated
    other: str | None = None
    date_format: str | None = None
    missing: bool | None = None  # whether missing values are among those of the column; None: not stated
    scale: str | None = None  # "number" or "whole"; of dates whether they are days ("date") or moments ("time")
    closed: bool = False  # whether intervals of whole numbers are written with both ends

    @property
    def is_named(self) -> bool:
        """Whether labels are names, not ends on a line; such a column has labels where others have bounds."""
        return self.type == "nominal" or self.tree is not None

    @property
    def has_ends(self) -> bool:
        """Whether labels are ends on a line of numbers or dates."""
        return self.type in ("continuous", "date") and self.tree is None

    @property
    def is_whole(self) -> bool:
        """Whether values are whole numbers."""
        return self.scale == "whole" and self.tree is None

    @property
    def rising_cuts(self) -> tuple[Decimal, ...]:
        """The cuts in their order."""
        return _rising(self.cuts or frozenset())

    @property
    def whole_cuts(self) -> Mapping[Decimal, Decimal]:
        """The cut that each whole number is the first above, or at."""
        return _whole_cuts(self.cuts or frozenset())

    @property
    def cells(self) -> int:
        """How many cells a recoding has of the column; missing is one of them where there are missing values."""
        if self.missing is None:
            raise RecodingError(f"The recoding does not say whether column '{self.name}' has missing values.")
        if self.tree is not None or self.type == "ordinal":
            return len(self.order if self.tree is None else self.tree.leaves) + self.missing
        if self.cuts is None:
            needed = "taxonomy" if self.type == "nominal" else "cuts"
            raise RecodingError(f"The recoding has no {needed} of column '{self.name}'.")
        return len(self.cuts) + 1 + self.missing

    @property
    def has_cells(self) -> bool:
        """Whether the cells that a recoding has of the column are known."""
        is_divided = self.tree is not None or self.type == "ordinal" or self.cuts is not None
        return self.missing is not None and is_divided

    @property
    def cut_count(self) -> int:
        """How many cuts a recoding has of the column, 0 where leaves or words are its cells."""
        return 0 if self.tree is not None or self.cuts is None else len(self.cuts)

    def scalar(self, text: str) -> Decimal | None:
        """The place on the line of a continuous or date column that a text states."""
        return moment(text) if self.type == "date" else number(text)


@lru_cache(maxsize=1 << 10)
def _rising(cuts: frozenset[Decimal]) -> tuple[Decimal, ...]:
    return tuple(sorted(cuts))


@lru_cache(maxsize=1 << 10)
def _whole_cuts(cuts: frozenset[Decimal]) -> Mapping[Decimal, Decimal]:
    return {cut.to_integral_value(ROUND_CEILING): cut for cut in cuts}


def read_meaning(name: str, entry: Mapping[str, Any]) -> LabelMeaning:
    """One column's meaning from its mapping; faults are errors that name the column."""
    given = JsonObject(entry, f"the meaning of column '{name}'", RecodingError)
    kind = entry.get("type")
    if kind not in TYPES:
        hint = did_you_mean(str(kind), TYPES)
        raise RecodingError(f"The meaning of column '{name}' has an unknown type: {hint}")
    shell = LabelMeaning(name, cast("LabelType", kind))
    order = tuple(str(word) for word in given.get("order", list, None) or ())
    if kind == "ordinal" and (not order or len(set(order)) < len(order)):
        raise RecodingError(f"The meaning of ordinal column '{name}' needs an order of different words.")
    taxonomy, cuts = given.get("taxonomy", dict, None), given.get("cuts", list, None)
    tree, other = None if taxonomy is None else _tree(name, taxonomy), given.get("other", str, None)
    if tree is not None and other is not None and other not in tree.leaves:
        raise RecodingError(f"The name of all others in column '{name}' is no leaf of its taxonomy.")
    ordered = kind in ("continuous", "date")
    domain, cuts = (given.get("domain", list, None), cuts) if ordered else (None, None)
    if domain is not None and len(domain) != 2:
        raise RecodingError(f"The domain of column '{name}' is not a pair of ends.")
    low, high = (None if end is None else _end(shell, end) for end in domain or (None, None))
    places = None if cuts is None else [_end(shell, cut) for cut in cuts]
    if any(before >= after for before, after in pairwise(places or ())):  # a recoding counts its cells by them
        raise RecodingError(f"The cuts of column '{name}' are not in rising order.")
    meaning = LabelMeaning(
        name,
        shell.type,
        order=order,
        domain=(low, high),
        tree=tree,
        cuts=None if places is None else frozenset(places),
        other=other,
        date_format=given.date_format(),
        missing=given.get("missing", bool, None),
        scale=given.word("scale", ("number", "whole", "date", "time"), None),
        closed=given.word("intervals", ("half-open", "closed"), "half-open") == "closed",
    )
    if meaning.date_format is not None and meaning.type != "date" and meaning.tree is None:
        raise RecodingError(f"Column '{name}' has a form of dates, and is none of dates.")
    if meaning.is_whole:
        if len(meaning.whole_cuts) < meaning.cut_count or any(end % 1 for end in (low, high) if end is not None):
            raise RecodingError(f"Some cuts of column '{name}' part no whole numbers, or its domain has a fraction.")
    elif meaning.closed:
        raise RecodingError(f"Column '{name}' has closed intervals, which only whole numbers have.")
    return meaning


def _end(shell: LabelMeaning, value: object) -> Decimal:
    place = shell.scalar(str(value))
    if place is None:
        kind = "a date (2024-03-01)" if shell.type == "date" else "a number"
        raise RecodingError(f"A cut or end of the domain of column '{shell.name}' is not {kind}.")
    return place


def _tree(name: str, taxonomy: Mapping[str, Any]) -> LabelTree:
    """The runs of leaves of a nested mapping, without recursion: a taxonomy may be deep."""
    leaves: list[str] = []
    below: dict[str, tuple[int, int]] = {}
    stack: list[tuple[Mapping[str, Any], int | None]] = [(taxonomy, None)]
    while stack:
        node, first = stack.pop()
        if not isinstance(node, Mapping) or "name" not in node:
            raise RecodingError(f"The taxonomy of column '{name}' is not made of nodes with a name and children.")
        settings = JsonObject(node, f"the taxonomy of column '{name}'", RecodingError).known(("name", "children"))
        children = settings.get("children", list, None) or ()
        if first is None and children:
            stack.append((node, len(leaves)))
            stack.extend((child, None) for child in reversed(children))
            continue
        if first is None:
            leaves.append(str(node["name"]))
        run = (len(leaves) - 1 if first is None else first, len(leaves) - 1)
        if below.setdefault(str(node["name"]), run) != run:
            raise RecodingError(f"The taxonomy of column '{name}' has the name '{node['name']}' at two places.")
    return LabelTree(tuple(leaves), below)
