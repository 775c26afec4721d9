# SPDX-License-Identifier: Apache-2.0
"""All diversity models by name: their parameters, the columns they suit, and how one is made. The docs print it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from anonfit.errors import SpecError, did_you_mean
from anonfit.privacy.diversity import DistinctL, EntropyL, RecursiveCL, SquaredError, Variance
from anonfit.privacy.likeness import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    Distance,
    TCloseness,
    equal_distance,
    hierarchical_distance,
    ordered_distance,
)
from anonfit.privacy.models import TIE, DiversityModel, SensitiveColumn, plain
from anonfit.tables.schema import ColumnType

__all__ = ["MODELS", "Kind", "make_model", "model_table", "parameter_faults"]

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


ANY = tuple(ColumnType)

DISTANCES: Mapping[str, Callable[[SensitiveColumn], Distance]] = MappingProxyType(
    {"equal": equal_distance, "ordered": ordered_distance, "hierarchical": hierarchical_distance}
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a model before there is a column: its class, its parameters, and the columns it suits."""

    model: type[Any]
    parameters: tuple[Parameter, ...]
    suits: tuple[ColumnType, ...]
    words: str

    @property
    def is_monotone(self) -> bool:
        """Whether the model is monotone."""
        return bool(self.model.is_monotone)


MODELS: Mapping[str, Entry] = MappingProxyType(
    {
        "distinct-l": Entry(
            DistinctL,
            (Parameter("l", "different values in every group", Kind.WHOLE, lowest=1, empty="lowest"),),
            ANY,
            "every group has at least l different values",
        ),
        "entropy-l": Entry(
            EntropyL,
            (Parameter("l", "equally frequent values of the same entropy", lowest=1, empty="lowest"),),
            ANY,
            "the entropy of every group is at least that of l equally frequent values",
        ),
        "recursive-cl": Entry(
            RecursiveCL,
            (
                Parameter("c", "how many times the rest the most frequent value may be", above_lowest=True),
                Parameter(
                    "l", "the rest begins with the l-th most frequent value", Kind.WHOLE, lowest=1, empty="lowest"
                ),
            ),
            ANY,
            "the most frequent value has fewer than c times the persons of the l-th most frequent and all rarer ones",
        ),
        "t-closeness": Entry(
            TCloseness,
            (
                Parameter("t", "the largest distance from the whole table", highest=1, empty="highest"),
                Parameter("distance", "how far two values are apart", Kind.CHOICE, choices=tuple(DISTANCES), free=True),
            ),
            ANY,
            "the values of every group are distributed nearly as in the whole table",
        ),
        "alpha-k": Entry(
            AlphaK,
            (
                Parameter(
                    "alpha", "the largest share of a value in a group", highest=1, above_lowest=True, empty="highest"
                ),
            ),
            ANY,
            "no value has a larger share than alpha in a group",
        ),
        "beta-likeness": Entry(
            BetaLikeness,
            (
                Parameter("beta", "how much a value's share may grow, as a part of its share in the whole table"),
                Parameter("enhanced", "bind frequent values more tightly", Kind.FLAG, default=False),
            ),
            ANY,
            "no value's share is much larger in a group than in the whole table",
        ),
        "delta-disclosure": Entry(
            DeltaDisclosure,
            (Parameter("delta", "the largest logarithm of the ratio of two shares"),),
            ANY,
            "no value's share is much larger or smaller in a group than in the whole table",
        ),
        "squared-error": Entry(
            SquaredError,
            (
                Parameter(
                    "error", "the smallest sum of squared deviations, in the column's unit squared", empty="lowest"
                ),
            ),
            (ColumnType.CONTINUOUS,),
            "the numbers of every group deviate enough from their mean, added up",
        ),
        "variance": Entry(
            Variance,
            (Parameter("variance", "the smallest variance, in the column's unit squared", empty="lowest"),),
            (ColumnType.CONTINUOUS,),
            "the numbers of every group deviate enough from their mean, on average",
        ),
    }
)


def parameter_faults(model: str, parameters: Mapping[str, object], *, where: str) -> list[str]:
    """What is wrong with a demand before its column is known; nothing if the list is empty.

    Args:
        model: The model's name.
        parameters: Its parameters, without the column and the name.
        where: What the sentences begin with, such as `privacy.diversity[0]`.
    """
    if model not in MODELS:
        return [f"{where}.model = {model!r} is not known; {did_you_mean(model, MODELS)}"]
    return faults_of(MODELS[model].parameters, parameters, model=model, where=where)


def make_model(column: SensitiveColumn, model: str, parameters: Mapping[str, Value]) -> DiversityModel:
    """The model of a name for a column.

    Args:
        column: The sensitive column, or a target.
        model: A name of MODELS.
        parameters: The model's parameters.

    Example:
        >>> import numpy as np
        >>> column = SensitiveColumn("diagnosis", 2, False, np.array([85, 15]))
        >>> bool(make_model(column, "alpha-k", {"alpha": 0.85}).allows(column.whole))
        True
    """
    where = f"diversity of column '{column.name}'"
    faults = parameter_faults(model, parameters, where=where)
    if faults:
        raise SpecError(faults)
    entry = MODELS[model]
    settings: dict[str, Any] = dict(with_defaults(entry.parameters, parameters))
    if entry.suits == (ColumnType.CONTINUOUS,) and column.numbers is None:
        raise SpecError([f"{where}: {model} is for numbers, and the column has none; use entropy-l or another model."])
    if entry.model is TCloseness:
        settings["distance"] = _distance(column, settings.get("distance"), where)
    made: DiversityModel = entry.model(column, **settings)
    return made


def _distance(column: SensitiveColumn, name: str | None, where: str) -> Distance:
    """The distance that is asked for, or the one that suits the column best."""
    if name is None:
        name = "hierarchical" if column.taxonomy is not None else "ordered" if column.ordered else "equal"
    if name == "hierarchical" and column.taxonomy is None:
        raise SpecError([f"{where}: the hierarchical distance needs a taxonomy; declare one, or use equal or ordered."])
    if name == "ordered" and not column.ordered:
        raise SpecError(
            [f"{where}: the ordered distance needs ordered values; declare an order or a type, or use equal."]
        )
    return DISTANCES[name](column)


def model_table() -> str:
    """The models as a table of the docs."""
    lines = ["| model | demand | parameters | columns | monotone |", "|---|---|---|---|---|"]
    for name, entry in MODELS.items():
        settings = "; ".join(f"`{each.name}`: {each.words} ({_range(each)})" for each in entry.parameters)
        suits = "any" if entry.suits == ANY else ", ".join(entry.suits)
        lines.append(f"| `{name}` | {entry.words} | {settings} | {suits} | {'yes' if entry.is_monotone else 'no'} |")
    return "\n".join(lines) + "\n"


def _range(parameter: Parameter) -> str:
    """A parameter's values, and what it is where it is not given."""
    if parameter.free:
        return f"{parameter.demand()}; by the column if not given"
    default = parameter.default
    return parameter.demand() + ("" if default is None else f"; {str(default).lower()} if not given")
