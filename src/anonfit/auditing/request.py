# SPDX-License-Identifier: Apache-2.0
"""What an audit is asked: the tables to look at and the demands they must meet, checked before anything is read. A
setting of a demand that is missing, unknown or out of its range is an error: a demand that is read wrongly would be a
promise that nobody checks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal

from anonfit.auditing.coding import IntArray, RowPersons
from anonfit.auditing.meanings import TYPES, LabelMeaning, LabelType, number
from anonfit.auditing.models import MAX_CONFIDENCE, MODELS, DiversityMeasure
from anonfit.auditing.recoding import RegionGrid, RegionTree
from anonfit.auditing.released import Regions
from anonfit.auditing.result import Finding
from anonfit.auditing.values import Reading, read_taxonomy
from anonfit.errors import DataError, SpecError, did_you_mean, listed

Attacker = Literal["prosecutor", "journalist", "marketer"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A highest risk that someone finds acceptable: a preset with its source, not a law."""

    name: str
    value: float
    size: int  # the smallest group that stays within it
    source: str


THRESHOLDS = (
    Threshold("tools", 0.2, 5, "k = 5, the default of common tools (ARX: highest risk 0.2)"),
    Threshold(
        "ema-0070",
        0.09,
        11,
        "EMA policy 0070 and Health Canada PRCI: 0.09 for public release, read as groups of 11 (1/11 = 0.0909)",
    ),
    Threshold("strict", 0.05, 20, "k = 20 (ARX: records at risk and success rate 0.05)"),
)


def read_threshold(given: str | float | Threshold) -> Threshold:
    """A preset by its name, or a number between 0 and 1, which may be written as a text."""
    presets = {preset.name: preset for preset in THRESHOLDS}
    if isinstance(given, Threshold) or given in presets:
        return given if isinstance(given, Threshold) else presets[str(given)]
    try:
        value = float(given) if isinstance(given, str) else given
    except ValueError:
        raise DataError(
            f"There is no risk threshold '{given}': {did_you_mean(str(given), presets)} A number such as 0.05 will do, "
            "too."
        ) from None
    if not 0 < value <= 1:
        raise DataError("A risk threshold is above 0 and at most 1.")
    return Threshold(f"{value}", value, math.ceil(1 / Fraction(str(value))), "given")


@dataclass(frozen=True, slots=True)
class OtherRelease:
    """A second release of the same table: where the rows of the source lie in it."""

    group: IntArray  # (row of the source) -1: in none
    persons: RowPersons | None  # (row of the source) None: it does not say whose the rows are
    holds_source: bool  # whether its rows are those of the source inside its labels, all of them


@dataclass(frozen=True, slots=True)
class SetDemand:
    """One of several quasi-identifiers and the k asked of it."""

    columns: tuple[str, ...]
    k: int | None


@dataclass(frozen=True, slots=True)
class Request:
    """One audit."""

    data: object
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...] = ()
    k: int | None = None
    entity: str | None = None
    entities_lost: bool = False  # persons are entities, but nothing says which rows are whose
    count: str | None = None
    meanings: Mapping[str, LabelMeaning] | None = None  # None: guessed from the source, if there is one
    sets: tuple[SetDemand, ...] = ()
    diversity: tuple[DiversityDemand, ...] = ()  # on sensitive columns
    targets: tuple[DiversityDemand, ...] = ()  # on targets
    max_risk: Threshold | None = None
    attacker: Attacker = "prosecutor"
    thresholds: tuple[Threshold, ...] = ()
    source: object = None
    withheld: int | range | None = None
    dropped: int | range | None = None  # of the rows that are absent, those left out for a missing value
    suppression_limit: float | None = None  # the share of the source's rows that may be withheld
    other: OtherRelease | None = None
    population: object = None
    sampling_fraction: float | None = None  # refused
    order: Literal["sorted"] | None = None
    expected_columns: tuple[str, ...] | None = None
    regions: Regions = "any"
    tree: RegionTree | RegionGrid | None = None  # every group must be one of its regions
    representatives: bool = False  # they stand in place of labels, and follow from the regions of `tree`
    drops_missing: bool = False  # rows with a missing quasi-identifier were left out on purpose
    complete: tuple[str, ...] = ()  # and then, beside quasi-identifiers, rows that lack a value of these
    leaves_out_unknown: bool = False  # and rows with a value that the recoding does not know: they lie in no region
    missing: tuple[str, ...] = ("",)  # texts that mean missing
    codes: Mapping[str, tuple[str, ...]] | None = None  # values that mean missing in single columns of the source
    beside: tuple[str, ...] = ()  # columns of another release: the header of the source has them, too
    care: str | None = None  # the source is read with care, by this decimal sign where numbers read in two ways
    layout: Mapping[str, Any] = field(default_factory=dict)  # of a text file that is the source: encoding, skip_rows
    keys: tuple[str, ...] | None = None  # and in which columns of the source, where it has types; None: in all
    is_release: bool = False  # the data is a file of a release, in which nothing but an empty field means missing
    stripped: bool = False  # texts of a text file that is the source are without the blanks around them
    rows_at_once: int | None = None  # read so many rows at a time; None: tables fit in memory
    findings: tuple[Finding, ...] = ()  # made before the audit proper, by the checks of a release folder

    @property
    def left_out(self) -> dict[str, Any]:
        """Which rows of the source are in no group on purpose, as keywords of `locate_source`."""
        return {name: getattr(self, name) for name in ("drops_missing", "complete", "leaves_out_unknown")}


def check_request(request: Request) -> None:
    """Raise on demands that contradict each other or cannot mean anything."""
    if not request.quasi_identifiers:
        raise DataError("An audit needs quasi-identifiers: name the columns that an attacker may know of a person.")
    for names, purpose in ((request.quasi_identifiers, "quasi-identifiers"), (request.sensitive, "sensitive columns")):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise DataError(f"Listed twice among the {purpose}: {listed(twice)}.")
    _check_roles(request)
    every_k: list[Any] = [k for k in (request.k, *(demand.k for demand in request.sets)) if k is not None]
    if any(isinstance(k, bool) or not isinstance(k, Integral) or k < 1 for k in every_k):
        raise DataError("k is a whole number of at least 1: it counts the persons of the smallest group.")
    if request.sampling_fraction is not None:
        raise DataError(
            "A sampling fraction does not tell the journalist's risk: nobody knows whether a person who is alone in "
            "the sample has doubles in the population, and dividing by the fraction takes that for granted. Give the "
            "population itself (population=…, --population FILE), or go by the prosecutor's risk, which is never lower."
        )
    if request.withheld is not None and request.source is None:
        raise DataError("Counting withheld rows needs the source.")
    if request.attacker == "journalist" and request.population is None:
        raise DataError("The journalist's risk needs the population that the table was drawn from.")
    if request.representatives and request.tree is None:
        raise DataError("Representatives follow from regions: give the nodes or parts of their recoding.")
    if request.targets and all(demand.column in request.quasi_identifiers for demand in request.targets):
        raise DataError(
            "'max_confidence' is of targets that are released as they are, and all those named are quasi-identifiers."
        )


def _check_roles(request: Request) -> None:
    inside = set(request.quasi_identifiers)
    names = dict.fromkeys([*request.sensitive, *(demand.column for demand in request.diversity)])
    both = [name for name in names if name in inside]
    if both:
        raise DataError(f"Both quasi-identifier and sensitive: {listed(both)}; a column has one of these roles.")
    for name, role in ((request.entity, "entity"), (request.count, "count")):
        if name in inside:
            raise DataError(f"The {role} column '{name}' cannot be a quasi-identifier.")
    if request.entity is not None and request.count is not None:
        raise DataError("Give an entity column or a count column, not both.")
    for demand in request.sets:
        outside = [name for name in demand.columns if name not in inside]
        if outside:
            raise DataError(f"A set of quasi-identifiers names columns that are none: {listed(outside)}.")
        if not demand.columns:
            raise DataError("A set of quasi-identifiers is empty: name the columns that someone could know together.")
    left = [name for name in inside if request.sets and all(name not in demand.columns for demand in request.sets)]
    if left:
        raise DataError(f"In no set of quasi-identifiers: {listed(left)}; a quasi-identifier must be in one.")


def column_sets(given: Sequence[object], k: int | None) -> tuple[SetDemand, ...]:
    """Several quasi-identifiers: mappings with columns and k as in the spec, or lists of columns; k is the default."""
    demands = []
    for entry in given:
        if isinstance(entry, Mapping):
            demands.append(SetDemand(tuple(entry["columns"]), entry.get("k", k)))
        elif isinstance(entry, Sequence) and not isinstance(entry, str):
            demands.append(SetDemand(tuple(entry), k))
        else:
            raise DataError("A set of quasi-identifiers is a list of columns, or a mapping with 'columns' and 'k'.")
    return tuple(demands)


_WORDS = {"type": TYPES, "distance": ("equal", "ordered", "hierarchical")}
_READING = ("type", "order", "date_format", "taxonomy")
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
    def measure(self) -> DiversityMeasure:
        """How it is measured."""
        return MAX_CONFIDENCE if self.model == "max_confidence" else MODELS[self.model]

    @property
    def asked(self) -> float | None:
        """The number that the worst group's figure is held against."""
        return self.parameters[self.measure.asked] if self.is_asked else None

    def with_type(self, kind: LabelType | None, date_format: str | None) -> DiversityDemand:
        """The same demand with what is declared of the column, where the demand itself does not say it."""
        reading = self.reading
        kind = reading.type or ("ordinal" if reading.order else kind)  # a given order says what the column is
        return replace(self, reading=replace(reading, type=kind, date_format=reading.date_format or date_format))


def demand_settings(model: str) -> tuple[str, ...]:
    """The settings that a demand of a model may have."""
    known = MODELS[model]
    return ("column", "model", *known.parameters, *known.words, *known.flags, *_READING)


def read_demand(entry: Mapping[str, Any]) -> DiversityDemand:
    """A demand as in the spec: {"column": …, "model": "distinct-l", "l": 3}."""
    name, column = str(entry.get("model")), entry.get("column")
    if name not in MODELS:
        raise SpecError([f"The audit cannot measure the diversity model '{name}': {did_you_mean(name, MODELS)}"])
    if not isinstance(column, str):
        raise SpecError([f"A demand of the model '{name}' needs a column."])
    model, faults = MODELS[name], _unknown_settings(entry, demand_settings(name))
    numbers = {key: entry.get(key) for key in model.parameters}
    faults += [
        f"needs '{key}', {model.parameters[key]}." for key in numbers if not model.parameters[key].holds(numbers[key])
    ]
    flags = {key: entry.get(key, False) for key in model.flags}
    faults += [f"has an '{key}' that is not true or false." for key in flags if not isinstance(flags[key], bool)]
    faults += _reading_faults(entry)
    if faults:
        raise SpecError([f"The demand '{name}' on column '{column}' {fault}" for fault in faults])
    taxonomy = entry.get("taxonomy")
    reading = Reading(
        type=entry.get("type"),
        order=tuple(str(word) for word in entry.get("order") or ()),
        date_format=entry.get("date_format"),
        taxonomy=None if taxonomy is None else read_taxonomy(taxonomy, column=column),
        distance=entry.get("distance"),
    )
    return DiversityDemand(column, name, numbers | flags, reading)


def _unknown_settings(entry: Mapping[str, Any], valid: Sequence[str]) -> list[str]:
    return [f"has the unknown setting '{key}': {did_you_mean(str(key), valid)}" for key in entry if key not in valid]


def _reading_faults(entry: Mapping[str, Any]) -> list[str]:
    """What is wrong with what a demand says of its column's values."""
    faults = [
        f"has an unknown '{key}': {did_you_mean(str(entry[key]), words)}"
        for key, words in _WORDS.items()
        if entry.get(key) is not None and entry[key] not in words
    ]
    order = entry.get("order")
    if order is not None and (not isinstance(order, (list, tuple)) or len(set(map(str, order))) < len(order)):
        faults.append("has an 'order' that is not a list of different words.")
    if not isinstance(entry.get("date_format"), str | None):
        faults.append("has a 'date_format' that is not a text.")
    if entry.get("distance") == "hierarchical" and entry.get("taxonomy") is None:
        faults.append("needs the taxonomy that its hierarchical distance goes by.")
    return faults


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
    return tuple(DiversityDemand(name, "max_confidence", asked, reading) for name, reading in map(read_target, given))


def read_target(entry: object) -> tuple[str, Reading]:
    """The column of a target, and how its classes are made."""
    if isinstance(entry, str):
        return entry, Reading()
    if not isinstance(entry, Mapping) or not isinstance(entry.get("column"), str):
        raise SpecError(["A target is the name of a column, or a mapping with 'column'."])
    column, classes, width = entry["column"], entry.get("classes"), entry.get("equal_width")
    faults = [*_unknown_settings(entry, _TARGET), *_reading_faults({"type": entry.get("type")})]
    if classes is not None and width is not None:
        faults.append("has both 'classes' and 'equal_width'.")
    is_list = classes is None or isinstance(classes, (list, tuple))
    ends = [number(str(end)) for end in classes or ()] if is_list else [None]
    rising = [end for end in ends if end is not None]
    if len(rising) < len(ends) or any(low >= high for low, high in pairwise(rising)):
        faults.append("has 'classes' that are not a list of rising numbers.")
    if width is not None and (type(width) is not int or width < 1):
        faults.append("has an 'equal_width' that is not a whole number of at least 1.")
    if faults:
        raise SpecError([f"The target '{column}' {fault}" for fault in faults])
    return column, Reading(type=entry.get("type"), classes=tuple(rising) or None, equal_width=width)
