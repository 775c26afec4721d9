# SPDX-License-Identifier: Apache-2.0
"""Reading single settings of a spec: each is what it must be, or a fault that is kept until all are found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from anonfit.errors import did_you_mean
from anonfit.spec.model import Spec
from anonfit.tables.schema import Role

__all__ = [
    "ABOVE_ZERO",
    "AT_LEAST_ZERO",
    "FRACTION",
    "SHARE",
    "Faults",
    "Numbers",
    "is_whole",
    "without_role",
]


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
SHARE = Numbers("a number above 0 and at most 1", lambda number: 0 < number <= 1)


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, Python's or of another kind such as NumPy's."""
    return type(value) is not bool and isinstance(value, Integral)


def without_role(name: str, role: Role, spec: Spec) -> str:
    """A column that needs a role and is not declared, and what to do: it is another one, or is to be given the role."""
    near = get_close_matches(name, spec.of_role(role) or spec.columns, n=1)
    has = "has no role" if spec.data.default_role is None else f"has the default role '{spec.data.default_role}'"
    return f"'{name}', which {has}; give it the role '{role}'" + (f", or did you mean '{near[0]}'?" if near else ".")


class Faults:
    """Collects faults and reads values, each with the place it stands in."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.unread: set[str] = set()
        """Columns that are declared but could not be read: nothing more is said about them."""
        self.open: dict[str, str] = {}
        """Questions that the spec leaves open, by the table they stand in."""

    def add(self, text: str) -> None:
        """Keep a fault."""
        self.found.append(text)

    def within(self, section: str) -> bool:
        """Whether a fault was found in a section."""
        return any(text.startswith((section, f"[{section}")) for text in self.found)

    def table(self, value: Any, where: str) -> dict[str, Any]:
        """A table of settings; what Python code gives as None is not given. A text `decide` is an open question."""
        if isinstance(value, Mapping):
            found = {key: item for key, item in value.items() if item is not None}
            if isinstance(found.get("decide"), str):
                self.open[where] = found.pop("decide")
            return found
        self.add(f"[{where}] must be a table of settings; found {value!r}.")
        return {}

    def entries(self, value: Any, where: str, example: str) -> list[Any]:
        """A list of entries, whatever they are."""
        if isinstance(value, list | tuple):
            return list(value)
        if isinstance(value, Mapping):
            self.add(f"[{where}] is a list: write [[{where}]], with two brackets, once for each entry.")
        else:
            self.add(f"{where} must be a list, such as {example}; found {value!r}.")
        return []

    def unknown(self, table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
        """Refuse keys that are not known."""
        names = list(known)
        for key in table:
            place = f"{where}.{key}" if where else key
            if key not in names:
                self.add(f"{place} is not a setting; {did_you_mean(str(key), names)}")

    def kind(
        self,
        table: Mapping[str, Any],
        key: str,
        where: str,
        kind: type | tuple[type, ...],
        word: str,
        default: Any,
    ) -> Any:
        """A value of some type; a whole number of any kind is taken as Python's."""
        value = table.get(key, default)
        if is_whole(value):
            value = int(value)
        is_wrong_bool = isinstance(value, bool) and kind is not bool
        if value is default or (isinstance(value, kind) and not is_wrong_bool):
            return value
        self.add(f"{where}.{key} must be {word}; found {value!r}.")
        return default

    def number(self, table: Mapping[str, Any], key: str, where: str, numbers: Numbers, default: float) -> float:
        """A finite number within bounds."""
        if key not in table:
            return default
        if numbers.have(table[key]):
            return float(table[key])
        self.add(f"{where}.{key} must be {numbers.says}; found {table[key]!r}.")
        return default

    def choice(self, table: Mapping[str, Any], key: str, where: str, options: Iterable[str], default: Any) -> Any:
        """One of some words."""
        value = table.get(key, default)
        if value is default:
            return default
        words = [str(option) for option in options]
        if isinstance(value, str) and value in words:
            return value
        self.add(f"{where}.{key} = {value!r} is not known; {did_you_mean(str(value), words)}")
        return default

    def texts(self, table: Mapping[str, Any], key: str, where: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """A list of texts."""
        value = table.get(key)
        if value is None:
            return default
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.add(f"{where}.{key} must be a list of texts; found {value!r}.")
        return default
