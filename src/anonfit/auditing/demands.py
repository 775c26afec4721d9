# SPDX-License-Identifier: Apache-2.0
"""Demands on sensitive columns and targets as a spec states them. A setting that is missing, unknown or out of its
range is an error: a demand that is read wrongly would be a promise that nobody checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from anonfit.auditing.hierarchy import read_nodes
from anonfit.auditing.meanings import TYPES
from anonfit.auditing.models import MAX_CONFIDENCE, MODELS, Model
from anonfit.auditing.scalars import number
from anonfit.auditing.values import Reading
from anonfit.errors import SpecError, did_you_mean

__all__ = ["DiversityDemand", "demand_settings", "read_demand", "read_sensitive", "read_targets"]

_WORDS = {"type": TYPES, "distance": ("equal", "ordered", "hierarchical")}
_READING = ("type", "order", "date_format", "taxonomy")
_CHOICES = {"t-closeness": ("distance",), "beta-likeness": ("enhanced",)}  # beside the numbers of a model
_TARGET = ("column", "classes", "equal_width", "type", "weight", "scale")


@dataclass(frozen=True, slots=True)
class DiversityDemand:
    """What a model must find in every group."""

    column: str
    model: str
    parameters: Mapping[str, Any]
    reading: Reading = field(default_factory=Reading)
    is_asked: bool = True  # False: it is only measured

    @property
    def measure(self) -> Model:
        """How it is measured."""
        return MAX_CONFIDENCE if self.model == "max_confidence" else MODELS[self.model]

    @property
    def asked(self) -> float | None:
        """The number that the worst group's figure is held against."""
        return self.parameters[self.measure.asked] if self.is_asked else None

    def with_type(self, kind: str | None, date_format: str | None) -> DiversityDemand:
        """The same demand with what is declared of the column, where the demand itself does not say it."""
        reading = self.reading
        kind = "ordinal" if reading.order else kind  # an order that is given says what the column is
        said: Any = {"type": reading.type or kind, "date_format": reading.date_format or date_format}
        return replace(self, reading=replace(reading, **said))


def demand_settings(model: str) -> tuple[str, ...]:
    """The settings that a demand of a model may have."""
    return ("column", "model", *MODELS[model].parameters, *_CHOICES.get(model, ()), *_READING)


def read_demand(entry: Mapping[str, Any]) -> DiversityDemand:
    """A demand as in the spec: {"column": …, "model": "distinct-l", "l": 3}."""
    name, column = str(entry.get("model")), entry.get("column")
    if name not in MODELS:
        raise SpecError([f"The audit cannot measure the diversity model '{name}': {did_you_mean(name, MODELS)}"])
    if not isinstance(column, str):
        raise SpecError([f"A demand of the model '{name}' needs a column."])
    valid = demand_settings(name)
    faults = [f"has the unknown setting '{key}': {did_you_mean(str(key), valid)}" for key in entry if key not in valid]
    for key, parameter in MODELS[name].parameters.items():
        if not parameter.holds(entry.get(key)):
            faults.append(f"needs '{key}', {parameter}.")
    parameters = {key: entry.get(key) for key in MODELS[name].parameters}
    if "enhanced" in valid:
        parameters["enhanced"] = entry.get("enhanced", False)
        if not isinstance(parameters["enhanced"], bool):
            faults.append("has an 'enhanced' that is not true or false.")
    faults += _reading_faults(entry)
    if faults:
        raise SpecError([f"The demand '{name}' on column '{column}' {fault}" for fault in faults])
    return DiversityDemand(column, name, parameters, _reading(entry, column))


def _reading_faults(entry: Mapping[str, Any]) -> list[str]:
    """What is wrong with what a demand says of its column's values."""
    faults = []
    for key, words in _WORDS.items():
        if entry.get(key) is not None and entry[key] not in words:
            faults.append(f"has an unknown '{key}': {did_you_mean(str(entry[key]), words)}")
    order = entry.get("order")
    if order is not None and (not isinstance(order, (list, tuple)) or len(set(map(str, order))) < len(order)):
        faults.append("has an 'order' that is not a list of different words.")
    if not isinstance(entry.get("date_format"), str | None):
        faults.append("has a 'date_format' that is not a text.")
    if entry.get("distance") == "hierarchical" and entry.get("taxonomy") is None:
        faults.append("needs the taxonomy that its hierarchical distance goes by.")
    return faults


def _reading(entry: Mapping[str, Any], column: str) -> Reading:
    taxonomy = entry.get("taxonomy")
    return Reading(
        type=entry.get("type"),
        order=tuple(str(word) for word in entry.get("order") or ()),
        date_format=entry.get("date_format"),
        taxonomy=None if taxonomy is None else read_nodes(taxonomy, column=column),
        distance=entry.get("distance"),
    )


def read_sensitive(given: object) -> tuple[tuple[str, ...], tuple[DiversityDemand, ...]]:
    """Sensitive columns and the demands on them: a list of names, or a mapping from names to one or more demands."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise SpecError(["'sensitive' is a list of columns, or a mapping from columns to demands."])
    if not isinstance(given, Mapping):
        return tuple(given), ()
    demands = []
    for column, entries in given.items():
        several = [entries] if entries and isinstance(entries, Mapping) else entries or ()
        if isinstance(several, str) or not all(isinstance(entry, Mapping) for entry in several):
            raise SpecError([f"What is asked of the sensitive column '{column}' is a mapping or a list of such."])
        for entry in several:
            if entry.get("column", column) != column:
                raise SpecError([f"A demand on the sensitive column '{column}' names another column."])
            demands.append(read_demand({**entry, "column": column}))
    return tuple(given), tuple(demands)


def read_targets(given: Sequence[object], max_confidence: float) -> tuple[DiversityDemand, ...]:
    """Targets as in the spec: names, or mappings with a column and its classes; each is held to the confidence."""
    if not MAX_CONFIDENCE.parameters["max_confidence"].holds(max_confidence):
        raise SpecError([f"'max_confidence' must be {MAX_CONFIDENCE.parameters['max_confidence']}."])
    if isinstance(given, (str, Mapping)):
        raise SpecError(["'targets' is a list of columns, each a name or a mapping with 'column' and its classes."])
    if not given:
        raise SpecError(["'max_confidence' is of targets, and none is named: list them in 'targets'."])
    asked = {"max_confidence": max_confidence}
    return tuple(DiversityDemand(name, "max_confidence", asked, reading) for name, reading in map(_target, given))


def _target(entry: object) -> tuple[str, Reading]:
    """The column of a target, and how its classes are made."""
    if isinstance(entry, str):
        return entry, Reading()
    if not isinstance(entry, Mapping) or not isinstance(entry.get("column"), str):
        raise SpecError(["A target is the name of a column, or a mapping with 'column'."])
    column, classes, width = entry["column"], entry.get("classes"), entry.get("equal_width")
    faults = [
        f"has the unknown setting '{key}': {did_you_mean(str(key), _TARGET)}" for key in entry if key not in _TARGET
    ]
    faults += _reading_faults({"type": entry.get("type")})
    if classes is not None and width is not None:
        faults.append("has both 'classes' and 'equal_width'.")
    ends = (
        [number(str(end)) for end in classes] if isinstance(classes, (list, tuple)) else [None] * (classes is not None)
    )
    rising = [end for end in ends if end is not None]
    if len(rising) < len(ends) or any(low >= high for low, high in pairwise(rising)):
        faults.append("has 'classes' that are not a list of rising numbers.")
    if width is not None and (isinstance(width, bool) or not isinstance(width, int) or width < 1):
        faults.append("has an 'equal_width' that is not a whole number of at least 1.")
    if faults:
        raise SpecError([f"The target '{column}' {fault}" for fault in faults])
    return column, Reading(type=entry.get("type"), classes=tuple(rising) or None, equal_width=width)
