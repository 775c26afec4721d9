# SPDX-License-Identifier: Apache-2.0
"""Files that anybody may have written, read within bounds: text of a limited size, JSON without traps, and one way to
say what a value must be. Whatever is otherwise is refused with a sentence that names the place.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from anonfit.errors import DataError, RequestError, did_you_mean, listed

MEGABYTE = 1 << 20
Kind = TypeVar("Kind")
_HALF_SIGN = re.compile(r"\\u[dD][89a-fA-F]")


class Damaged(ValueError):
    """What stands in a file is not what must stand there."""


def refuse_endless(path: Path) -> None:
    """Refuse pipes and devices: they may never end, and cannot be read twice."""
    if os.path.exists(path) and not (path.is_file() or path.is_dir()):  # noqa: PTH110 - of a name too long, too
        raise DataError(f"{path} is not a regular file but a pipe or device; copy its content to a file first.")


def read_text(path: Path, what: str, error: type[RequestError], *, megabytes: int) -> str:
    """The text of a file of a limited size; `what` is what a message calls it."""
    refuse_endless(path)
    try:
        with path.open("rb") as file:
            content = file.read(megabytes * MEGABYTE + 1)
    except FileNotFoundError:
        raise error(f"{path}: there is no such {what}.") from None
    except (OSError, ValueError) as fault:
        raise error(f"{path} cannot be read as a {what}: {type(fault).__name__}.") from None
    if len(content) > megabytes * MEGABYTE:
        raise error(f"{path} has more than {megabytes} megabytes, too many for a {what}.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise error(f"{path}: byte {fault.start} is not UTF-8; save the {what} as UTF-8.") from None


def parse_json(text: str) -> Any:
    """The value of a JSON text in which no key stands twice and every number is finite."""
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_not_a_number, parse_float=_finite)
        if _HALF_SIGN.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as fault:
        raise Damaged(f"line {fault.lineno} is not JSON ({fault.msg})") from None
    except UnicodeEncodeError:
        raise Damaged("a text holds half of a character, which is no Unicode") from None
    except RecursionError:
        raise Damaged("it is nested too deeply") from None
    except Damaged:
        raise
    except ValueError:  # Python reads no whole number of thousands of digits
        raise Damaged("a number has too many digits") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise Damaged(f"the key {_shown(twice)} is twice in one JSON object; keep one")
    return table


def _not_a_number(text: str) -> float:
    raise Damaged(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Damaged("a number is too large")
    return number


def _shown(value: object) -> str:
    """A value as a message shows it, cut if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


@dataclass(frozen=True, slots=True)
class JsonPart:
    """A value of a file and the place it stands in: each method gives it as what it must be, or refuses it."""

    value: Any
    place: str = ""  # empty for the whole file

    def refused(self, fault: str) -> Damaged:
        """The error that says what is wrong at this place."""
        return Damaged(f"{self.place or 'it'} {fault}")

    def _of(self, kind: type[Kind], says: str) -> Kind:
        if type(self.value) is not kind:
            raise self.refused(f"is not {says}; found {_shown(self.value)}")
        return self.value

    def named(self) -> dict[str, JsonPart]:
        """The entries of a table whose keys are names."""
        place = f"{self.place}." if self.place else ""
        return {name: JsonPart(entry, f"{place}{name[:100]}") for name, entry in self._of(dict, "a table").items()}

    def table(self, needed: Iterable[str], optional: Iterable[str] = ()) -> dict[str, JsonPart]:
        """The entries of a table that has all of the needed keys, and no others than these and the optional ones."""
        entries, needed = self.named(), list(needed)
        if absent := [key for key in needed if key not in entries]:
            raise self.refused(f"has no {listed(absent)}")
        known = [*needed, *optional]
        if strange := [key for key in entries if key not in known]:
            raise self.refused(
                f"has the unknown key {_shown(strange[0])}: {did_you_mean(strange[0][:100], known)}"[:-1]
            )
        return entries

    def items(self) -> list[JsonPart]:
        """The entries of a list."""
        return [JsonPart(entry, f"{self.place}[{index}]") for index, entry in enumerate(self._of(list, "a list"))]

    def length(self) -> int:
        """How many entries a list has; it may be long."""
        return len(self._of(list, "a list"))

    def lists(self) -> list[list[Any]]:
        """A list of lists that are handed on as they are; there may be many."""
        entries: list[list[Any]] = self._of(list, "a list")
        if set(map(type, entries)) - {list}:
            raise self.refused("holds other things than lists")
        return entries

    def text(self) -> str:
        """A text."""
        return self._of(str, "a text")

    def texts(self) -> list[str]:
        """A list of different texts."""
        texts = [entry.text() for entry in self.items()]
        if len(set(texts)) < len(texts):
            raise self.refused("has a text twice")
        return texts

    def word(self, words: Iterable[str]) -> str:
        """One of some words."""
        known = list(words)
        if self.text() not in known:
            raise self.refused(f"is {_shown(self.value)}: {did_you_mean(self.text()[:100], known)}"[:-1])
        return self.text()

    def flag(self) -> bool:
        """True or false."""
        return self._of(bool, "true or false")

    def whole(self, least: int, most: int) -> int:
        """A whole number within bounds, both included."""
        number = self._of(int, "a whole number")
        if not least <= number <= most:
            raise self.refused(f"is {_shown(number)}, not a whole number from {least} to {most}")
        return number

    def wholes(self, length: int, least: int, most: int) -> list[int]:
        """A list of so many whole numbers within bounds, read as a whole: it may be long."""
        numbers: list[int] = self._of(list, "a list")
        if len(numbers) != length:
            raise self.refused(f"has {len(numbers)} entries in place of {length}")
        if set(map(type, numbers)) - {int} or not (
            least <= min(numbers, default=least) and max(numbers, default=most) <= most
        ):
            raise self.refused(f"holds other things than whole numbers from {least} to {most}")
        return numbers

    def plain(self) -> dict[str, Any]:
        """A table that is handed on as it is."""
        return self._of(dict, "a table")
