# SPDX-License-Identifier: Apache-2.0
"""All diversity models by name: their parameters, the columns they suit, and how one is made. The docs print it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from anonfit.errors import SpecError, did_you_mean
from anonfit.privacy.diversity import DIVERSITY
from anonfit.privacy.likeness import DISTANCES, LIKENESS, Distance, TCloseness
from anonfit.privacy.models import ANY, NUMBERS, DiversityModel, Kind, Parameter, SensitiveColumn, Value

NOTHING_ASKED = ': ask for more diversity than that, or write diversity = "none" and a reason = "…" for the column.'


MODELS: Mapping[str, type[DiversityModel]] = MappingProxyType(
    {model.name: model for model in sorted((*DIVERSITY, *LIKENESS), key=lambda model: model.kernel)}
)


def parameter_faults(model: str, parameters: Mapping[str, object], *, where: str) -> list[str]:
    """What is wrong with a demand before its column is known, a sentence for each fault.

    Args:
        model: The model's name.
        parameters: Its parameters, without the column and the name.
        where: What the sentences begin with, such as `privacy.diversity[0]`.
    """
    if model not in MODELS:
        return [f"{where}.model = {model!r} is not known; {did_you_mean(model, MODELS)}"]
    known = {parameter.name: parameter for parameter in MODELS[model].parameters}
    faults = [
        f"{where}.{name} is not a parameter of {model}; {did_you_mean(name, known)}"
        for name in parameters
        if name not in known
    ]
    for name, parameter in known.items():
        if name not in parameters:
            if parameter.is_needed:
                faults.append(f"{where}: {model} needs {name}, {parameter.demand()}.")
        elif not parameter.accepts(parameters[name]):
            hint = NOTHING_ASKED if parameter.asks_nothing(parameters[name]) else "."
            faults.append(f"{where}.{name} must be {parameter.demand()}; found {parameters[name]!r}{hint}")
    return faults


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
    entry: Any = MODELS[model]
    settings: dict[str, Any] = {}
    for parameter in entry.parameters:
        value = parameters.get(parameter.name, parameter.default)
        if value is not None:
            settings[parameter.name] = int(value) if parameter.kind == Kind.WHOLE else value
    if entry.suits == NUMBERS and column.numbers is None:
        raise SpecError([f"{where}: {model} is for numbers, and the column has none; use entropy-l or another model."])
    if entry is TCloseness:
        settings["distance"] = _distance(column, settings.get("distance"), where)
    bound: DiversityModel = entry(column, **settings)
    return bound


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
