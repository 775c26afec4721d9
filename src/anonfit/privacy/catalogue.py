# SPDX-License-Identifier: Apache-2.0
"""All diversity models by name: their parameters, the columns they suit, and how one is made. The docs print it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from anonfit.errors import SpecError, did_you_mean
from anonfit.privacy.confidence import AlphaK
from anonfit.privacy.distances import Distance, equal_distance, hierarchical_distance, ordered_distance
from anonfit.privacy.l_diversity import DistinctL, EntropyL, RecursiveCL
from anonfit.privacy.likeness import BetaLikeness, DeltaDisclosure
from anonfit.privacy.models import DiversityModel
from anonfit.privacy.numeric_diversity import SquaredError, Variance
from anonfit.privacy.parameters import Kind, Parameter, Value, faults_of, with_defaults
from anonfit.privacy.sensitive import SensitiveColumn
from anonfit.privacy.t_closeness import TCloseness
from anonfit.tables.schema import ColumnType

__all__ = ["MODELS", "Entry", "make_model", "model_table", "parameter_faults"]

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
