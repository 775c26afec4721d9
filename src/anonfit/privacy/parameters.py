# SPDX-License-Identifier: Apache-2.0
"""The parameters of a diversity model as a spec writes them: what each may be, and what is wrong with those given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from anonfit.errors import did_you_mean
from anonfit.privacy.bounds import plain
from anonfit.privacy.sensitive import TIE

__all__ = ["Kind", "Parameter", "Value", "faults_of", "with_defaults"]

Value: TypeAlias = float | str | bool

NOTHING_ASKED = ': ask for more diversity than that, or write diversity = "none" and a reason = "…" for the column.'


class Kind(StrEnum):
    """What a parameter is, in the words of a message."""

    NUMBER = "a number"
    WHOLE = "a whole number"
    FLAG = "true or false"
    CHOICE = "one of"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A setting of a model. Without a default it must be given, unless it is `free`: then the column decides. `empty`
    is the end of its range at which the demand asks nothing, since every group of any table meets it; that end is
    refused.
    """

    name: str
    words: str
    kind: Kind = Kind.NUMBER
    lowest: float = 0.0
    highest: float = math.inf
    above_lowest: bool = False
    choices: tuple[str, ...] = ()
    default: Value | None = None
    free: bool = False
    empty: Literal["lowest", "highest"] | None = None

    @property
    def is_needed(self) -> bool:
        """Whether it must be given."""
        return self.default is None and not self.free

    def demand(self) -> str:
        """What its value must be."""
        if self.kind == Kind.FLAG:
            return str(self.kind)
        if self.kind == Kind.CHOICE:
            return f"{self.kind} {', '.join(self.choices)}"
        low = f"{'above' if self.above_lowest else 'of at least'} {plain(self.lowest)}"
        if self.empty == "lowest":
            low = f"of at least {plain(self.lowest + 1)}" if self.kind == Kind.WHOLE else f"above {plain(self.lowest)}"
        high = f" and {'below' if self.empty == 'highest' else 'at most'} {plain(self.highest)}"
        return f"{self.kind} {low}" + (high if math.isfinite(self.highest) else "")

    def accepts(self, value: object) -> bool:
        """Whether a value is one it may have."""
        if self.kind == Kind.FLAG:
            return isinstance(value, bool)
        if self.kind == Kind.CHOICE:
            return value in self.choices
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < math.inf:
            return False
        if self.asks_nothing(value) or (self.kind == Kind.WHOLE and value != int(value)):
            return False
        above = value > self.lowest if self.above_lowest else value >= self.lowest
        return above and value <= self.highest

    def asks_nothing(self, value: object) -> bool:
        """Whether every group of any table meets a demand with this value; so near to the end, models see a tie."""
        if self.empty is None or isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.empty == "lowest":
            return value <= self.lowest * (1 + 2 * TIE)
        return value >= self.highest * (1 - 2 * TIE)


def faults_of(parameters: Sequence[Parameter], given: Mapping[str, object], *, model: str, where: str) -> list[str]:
    """What is wrong with the parameters given for a model, one sentence each, beginning with where they stand."""
    known = {parameter.name: parameter for parameter in parameters}
    faults = [
        f"{where}.{name} is not a parameter of {model}; {did_you_mean(name, known)}"
        for name in given
        if name not in known
    ]
    for name, parameter in known.items():
        if name not in given:
            if parameter.is_needed:
                faults.append(f"{where}: {model} needs {name}, {parameter.demand()}.")
        elif not parameter.accepts(given[name]):
            hint = NOTHING_ASKED if parameter.asks_nothing(given[name]) else "."
            faults.append(f"{where}.{name} must be {parameter.demand()}; found {given[name]!r}{hint}")
    return faults


def with_defaults(parameters: Sequence[Parameter], given: Mapping[str, Value]) -> dict[str, Value]:
    """The parameters a model gets: those given, in their own kind, and the defaults of others."""
    found: dict[str, Value] = {}
    for parameter in parameters:
        value = given.get(parameter.name, parameter.default)
        if value is not None:
            found[parameter.name] = int(value) if parameter.kind == Kind.WHOLE else value
    return found
