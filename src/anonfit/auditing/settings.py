# SPDX-License-Identifier: Apache-2.0
"""Settings out of JSON: one that is missing, unknown or of another kind than it must be is an error, never ignored.
`promises.py`, `recoded.py`, `folder.py` and `saved_trees.py` read manifest.json, recoding.json and model.json with
it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError, did_you_mean

__all__ = ["NEEDED", "Settings", "object_of", "text_of"]

NEEDED: Any = object()
"""The default of a setting that must be written."""

_MOST_BYTES = 1 << 29
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ,.()+_-]{0,99}")
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
    """The object of a JSON text in which no key stands twice and every number is finite; anything else is a
    ValueError.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
        json.dumps(found, ensure_ascii=False).encode() if "\\u" in text else None  # half a sign is no Unicode
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text[:20]} is no number")


def _finite(text: str) -> float:
    found = float(text)
    return found if math.isfinite(found) else _no_number(text)


def _is_plain(value: object) -> bool:
    """Whether a value is a number, a truth value or a short word."""
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None
    return value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 1 << 63)


@dataclass(frozen=True, slots=True)
class Settings:
    """An object of a JSON file, how messages call it, and the error that a fault of it is."""

    entries: Mapping[str, Any]
    label: str
    error: type[RequestError]

    def known(self, names: Iterable[str]) -> Settings:
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

    def plain(self, names: Iterable[str], columns: Iterable[str]) -> Settings:
        """The same settings, if all have one of these names and hold a number, a truth value, a short word, or names of
        columns: what is not judged by an audit must not carry anything else.
        """
        valid = set(columns)
        for name, value in self.known(names).entries.items():
            words = value if isinstance(value, (list, tuple)) else (value,)
            if not all(_is_plain(word) if word is value else isinstance(word, str) and word in valid for word in words):
                raise self.error(f"'{name}' in {self.label} is not a number or a word that a setting may be.")
        return self

    def texts(self, name: str, default: Any = NEEDED) -> Any:
        """The texts of a setting that is a list of such."""
        value = self.get(name, list, default)
        if value is not default and not all(isinstance(text, str) for text in value):
            raise self.error(f"'{name}' in {self.label} is not a list of texts.")
        return tuple(value)

    def part(self, name: str, default: Any = NEEDED) -> Settings:
        """The settings of an object that is a setting."""
        return Settings(self.get(name, dict, default), f"'{name}' of {self.label}", self.error)

    def parts(self, name: str, default: Any = NEEDED) -> list[Settings]:
        """The settings of each object of a list."""
        value = self.get(name, list, default)
        if not all(isinstance(entry, Mapping) for entry in value):
            raise self.error(f"'{name}' in {self.label} is not a list of objects.")
        return [Settings(entry, f"an entry of '{name}' of {self.label}", self.error) for entry in value]

    @property
    def _begin(self) -> str:
        """The label at the beginning of a sentence."""
        return self.label[0].upper() + self.label[1:]
