# SPDX-License-Identifier: Apache-2.0
"""What is said of columns: `[columns.NAME]`, the diversity that is asked of them, and sets of quasi-identifiers.
Declared, read, written, and held against each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError, listed
from anonfit.privacy.catalogue import MODELS, parameter_faults
from anonfit.privacy.models import Kind
from anonfit.spec.kinds import (
    FEW_TEXTS,
    LINE,
    LONGEST_MISSING,
    MOST_MISSING,
    Faults,
    Given,
    ValueKind,
    declared,
    is_few_texts,
    read_entries,
    read_section,
    text,
)
from anonfit.spec.model import ColumnSpec, DiversitySpec, QuasiIdentifierSpec, Spec
from anonfit.tables.schema import ColumnType, Role

# --- [columns.NAME] ---------------------------------------------------------------------------------------------


def _read_domain(given: Given) -> Any:
    value = given.value
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not value:
        return given.refuse(
            f"{given.place} must be a list: [lowest, highest], or the names of a nominal column; found {value!r}."
        )
    if not all(isinstance(item, str | int | float | date | datetime) for item in value):
        return given.refuse(f"{given.place} must hold numbers, dates or texts; found {value!r}.")
    return tuple(value)


def _read_taxonomy(given: Given) -> Any:
    value = given.value
    if value is None or isinstance(value, str | Path | Mapping) or hasattr(value, "leaves"):
        return value
    return given.refuse(f"{given.place} must be the name of a taxonomy file; found {value!r}.")


def _read_codes(given: Given) -> Any:
    """Texts, and numbers as texts, that mean missing."""
    codes = given.table.get(given.key, ())
    if isinstance(codes, list | tuple) and not any(
        isinstance(code, bool) or not isinstance(code, str | int | float) for code in codes
    ):
        return tuple(code if isinstance(code, str) else f"{code:.17g}" for code in codes)
    return given.refuse(f'{given.place} must be a list such as ["-9"]; found {codes!r}.')


def _read_waiver(given: Given) -> Any:
    """What a column itself can say of diversity: that none is asked."""
    if given.value in (None, "none"):
        return given.value
    return given.refuse(
        f"{given.place} can be 'none' only, with a reason; what is asked of a column stands in "
        f"[[privacy.diversity]]; found {given.value!r}."
    )


_DIRECTIVE = re.compile(r"%(?:[-_0]?[A-Za-z%+]|\.?[369]?f|:{0,3}z|#z)")
_BETWEEN = re.compile(r"[\0 \-/.,:;_]+")
_LONGEST_FORMAT, _LONGEST_REASON = 40, 1000


def _is_date_format(text: str) -> bool:
    """Whether a text has directives, signs that part them and words of at most three letters, and nothing else: it is
    published.
    """
    rest = _DIRECTIVE.sub("\0", text)
    words = [word for word in _BETWEEN.split(rest) if word]
    return len(text) <= _LONGEST_FORMAT and "\0" in rest and all(len(word) <= 3 and word.isalpha() for word in words)


def _is_reason(reason: str) -> bool:
    return len(reason) <= _LONGEST_REASON and " ".join(reason.split()).isprintable()


COLUMN = declared(
    "columns",
    ColumnSpec,
    domain=ValueKind(_read_domain),
    taxonomy=ValueKind(_read_taxonomy),
    missing=ValueKind(_read_codes).that(is_few_texts, FEW_TEXTS, most=MOST_MISSING, longest=LONGEST_MISSING),
    date_format=text("a text such as '%d.%m.%Y'").that(
        _is_date_format,
        "{place} must be made of directives such as %d, of signs between them and of words of up to three letters, at "
        "most {longest} characters; found {value!r}.",
        longest=_LONGEST_FORMAT,
    ),
    reason=text("a text").that(
        _is_reason,
        "{place} must be at most {longest} characters that can be printed: the report publishes it.",
        longest=_LONGEST_REASON,
    ),
    title=LINE,
    diversity=ValueKind(_read_waiver),
)


def read_column(name: str, table: dict[str, Any], faults: Faults, *, is_tree: bool = False) -> ColumnSpec | None:
    """What is declared of a column; None without a role. A tree may test raw columns, too."""
    where = f"columns.{name}"
    if "role" not in table:
        faults.unknown(table, COLUMN.names, where)
        faults.add(f"{where} has no role; give it one of: {', '.join(Role)}.")
        return None
    values = read_section(COLUMN, table, faults, where)
    if values["role"] is None:
        return None
    column = ColumnSpec(**values)
    _check_column(where, column, faults, is_tested=is_tree and column.role in (Role.SENSITIVE, Role.INSENSITIVE))
    return column


def _check_column(where: str, column: ColumnSpec, faults: Faults, *, is_tested: bool) -> None:
    """Faults between the settings of one column; a tree may test it, though it is not generalized."""
    if (column.diversity is not None or column.reason is not None) and column.role != Role.SENSITIVE:
        faults.add(
            f"{where}: diversity = 'none' and its reason are for sensitive columns; its role is '{column.role}'."
        )
    elif column.reason is not None and column.diversity is None:
        faults.add(f"{where}: a reason stands beside diversity = 'none' only; add that, or remove the reason.")
    elif column.diversity is not None and not (column.reason or "").strip():
        faults.add(f"{where}: diversity = 'none' needs a reason = \"…\", which the report publishes.")
    if column.date_format and column.type not in (ColumnType.DATE, None):
        faults.add(f"{where}: date_format is for dates; its type is '{column.type}'.")
    is_sensitive, is_generalized = column.role == Role.SENSITIVE, column.role == Role.QUASI_IDENTIFIER or is_tested
    if not is_generalized:
        refused = ("domain", "split") if is_sensitive else ("order", "domain", "taxonomy", "split")
        unused: tuple[str, ...] = ()
        if column.role in (Role.IDENTIFIER, Role.ENTITY, Role.COUNT, Role.SAMPLE_WEIGHT):
            unused = ("type", "date_format") if column.role.is_released_raw else ("type", "date_format", "release")
            unused += ("missing",) if column.role == Role.IDENTIFIER else ()
        for key in (key for key in unused if getattr(column, key)):
            faults.add(f"{where}: {key} says nothing of a column whose role is '{column.role}'; remove it.")
        if given := [key for key in refused if getattr(column, key)]:
            faults.add(f"{where}: {listed(given)} can be set for a quasi-identifier only; its role is '{column.role}'.")
    if is_sensitive or is_generalized:
        if column.order and column.type != ColumnType.ORDINAL:
            faults.add(f"{where}: order is for type = 'ordinal' only.")
        if len(set(column.order)) < len(column.order):
            faults.add(f"{where}: order names a value twice.")
        if column.taxonomy and (column.order or (column.domain and is_generalized)):
            faults.add(f"{where}: a taxonomy already says which values there are; remove domain and order.")
    if is_generalized:
        _check_generalized(where, column, faults)


def _check_generalized(where: str, column: ColumnSpec, faults: Faults) -> None:
    """Faults between the settings of a column whose values are generalized."""
    if column.release and column.role == Role.QUASI_IDENTIFIER:
        faults.add(f"{where}: release = true is for columns released as they are; a quasi-identifier is generalized.")
    if column.type == ColumnType.ORDINAL and not column.order:
        faults.add(f"{where}: an ordinal column needs order = [lowest, …, highest].")
    if column.split and column.type not in (ColumnType.NOMINAL, None) and not column.taxonomy:
        faults.add(f"{where}: split is for nominal columns and columns with a taxonomy only.")
    if column.domain and column.type == ColumnType.ORDINAL:
        faults.add(f"{where}: order already says which values there are; remove domain.")
    is_range = column.type in (ColumnType.CONTINUOUS, ColumnType.DATE)
    if column.domain and is_range and (len(column.domain) != 2 or not _ascending(column.domain)):
        faults.add(f"{where}: the domain of an ordered column is [lowest, highest].")
    is_twice = len({str(name) for name in column.domain}) < len(column.domain)
    if is_twice and column.type in (ColumnType.NOMINAL, None):
        faults.add(f"{where}: domain names a value twice.")


def _ascending(domain: tuple[Any, ...]) -> bool:
    try:
        return bool(domain[0] < domain[1])
    except TypeError:
        return False


def without_role(name: str, role: Role, spec: Spec) -> str:
    """A column that needs a role and is not declared, and what to do: it is another one, or is to be given the role."""
    near = get_close_matches(name, spec.of_role(role) or spec.columns, n=1)
    has = "has no role" if spec.data.default_role is None else f"has the default role '{spec.data.default_role}'"
    return f"'{name}', which {has}; give it the role '{role}'" + (f", or did you mean '{near[0]}'?" if near else ".")


# --- [[privacy.diversity]] --------------------------------------------------------------------------------------


def _read_demand(table: dict[str, Any], where: str, faults: Faults) -> DiversitySpec | None:
    for key in ("column", "model"):
        if key not in table:
            faults.add(f"{where} has no {key}; a demand names a sensitive column and a model ({', '.join(MODELS)}).")
    column = Given(table, "column", where, None, faults).of_type(str, "the name of a column")
    model = Given(table, "model", where, None, faults).choice(MODELS)
    if model is None:
        return None
    given = {key: value for key, value in table.items() if key not in ("column", "model")}
    faults.sentences += parameter_faults(model, given, where=where)
    return DiversitySpec(column, model, _parameters(model, given)) if column is not None else None


def _parameters(model: str, given: Mapping[str, Any]) -> dict[str, float | str | bool]:
    """The parameters that are given: whole numbers, other numbers as fractions, words and switches."""
    kinds = {Kind.WHOLE: int, Kind.NUMBER: float}
    return {
        parameter.name: kinds.get(parameter.kind, lambda value: value)(given[parameter.name])
        for parameter in MODELS[model].parameters
        if parameter.name in given and parameter.accepts(given[parameter.name])
    }


def diversity_table(demand: DiversitySpec) -> dict[str, Any]:
    """An entry of `[[privacy.diversity]]`."""
    return {"column": demand.column, "model": demand.model, **demand.parameters}


DIVERSITY = ValueKind(
    lambda given: read_entries(given, '[{ column = "diagnosis", model = "entropy-l", l = 3 }]', _read_demand),
    lambda demands: [diversity_table(demand) for demand in demands],
)


def distance_of(demand: DiversitySpec, *, type: ColumnType | None, has_taxonomy: bool) -> str | None:  # noqa: A002 - the spec's word
    """The distance that t-closeness is measured by; None where only the data can say of what type the column is."""
    if "distance" in demand.parameters:
        return str(demand.parameters["distance"])
    if has_taxonomy:
        return "hierarchical"
    if type is None:
        return None
    return "equal" if type == ColumnType.NOMINAL else "ordered"


def check_diversity(spec: Spec, faults: Faults) -> None:
    """Faults between the demands and the columns they are of."""
    # A tree may be asked for diversity of the class that it tells.
    classes = {target.column for target in spec.targets} if spec.method.capabilities.grows_tree else set()
    for demand in spec.privacy.diversity:
        column = spec.columns.get(demand.column)
        if column is not None and column.role == Role.SENSITIVE:
            _check_closeness(demand, column, faults)
        elif demand.column not in faults.unread | classes:
            faults.add(_not_sensitive(demand, column, spec))
    if not faults.within("privacy.diversity") and not spec.method.capabilities.grows_tree:
        for name in spec.of_role(Role.SENSITIVE):
            _check_used(name, spec, faults)
        for name, fault in unasked(spec).items():
            if f"columns.{name}" not in faults.open and not faults.within(f"columns.{name}:"):
                faults.add(fault)
    if spec.privacy.attack_limit < 1 and not spec.of_role(Role.SENSITIVE) and not faults.unread:
        faults.add("privacy.attack_limit is of sensitive columns, and there is none: give a column that role.")


def unasked(spec: Spec) -> dict[str, str]:
    """A fault for each sensitive column that has neither a demand nor a waiver, or both."""
    asked = {demand.column for demand in spec.privacy.diversity}
    faults = {}
    for name in spec.of_role(Role.SENSITIVE):
        is_waived = spec.columns[name].diversity is not None
        if is_waived and name in asked:
            faults[name] = f"columns.{name}: diversity = 'none', and [[privacy.diversity]] asks for some; remove one."
        elif not is_waived and name not in asked:
            faults[name] = (
                f"columns.{name} is sensitive and nothing is asked of it, so everybody in a group may have the same "
                f'value: ask for a model in [[privacy.diversity]] (model = "entropy-l" and l = 2 are a common start), '
                f'or write diversity = "none" and a reason = "…" in [columns.{name}].'
            )
    return faults


def _not_sensitive(demand: DiversitySpec, column: ColumnSpec | None, spec: Spec) -> str:
    place = f"privacy.diversity asks {demand.model} of '{demand.column}'"
    if column is None:
        return f"privacy.diversity asks {demand.model} of {without_role(demand.column, Role.SENSITIVE, spec)}"
    if column.role == Role.TARGET:
        return (
            f"{place}, whose role is 'target': a column cannot be both protected and predicted; give it the role "
            "'sensitive', or cap what groups reveal of targets with privacy.max_confidence."
        )
    return f"{place}, whose role is '{column.role}': diversity is of columns whose role is 'sensitive'."


def _check_closeness(demand: DiversitySpec, column: ColumnSpec, faults: Faults) -> None:
    """A distance needs what it is measured on."""
    if demand.model != "t-closeness":
        return
    where = f"privacy.diversity of '{demand.column}'"
    distance = distance_of(demand, type=column.type, has_taxonomy=column.taxonomy is not None)
    if distance == "hierarchical" and column.taxonomy is None:
        faults.add(f"{where}: the hierarchical distance needs a taxonomy in [columns.{demand.column}].")
    if distance == "ordered" and column.type == ColumnType.ORDINAL and not column.order:
        faults.add(
            f"{where}: the ordered distance of an ordinal column needs order = [lowest, …, highest] in "
            f"[columns.{demand.column}]."
        )
    if distance == "ordered" and column.type == ColumnType.NOMINAL:
        faults.add(
            f"{where}: the ordered distance needs an order, and its type is 'nominal'; use the distance 'equal', or "
            "type = 'ordinal' with order = [lowest, …, highest]."
        )


def _check_used(name: str, spec: Spec, faults: Faults) -> None:
    """The taxonomy or order of a sensitive column is there for a distance only."""
    column = spec.columns[name]
    distances = {
        distance_of(demand, type=column.type, has_taxonomy=column.taxonomy is not None)
        for demand in spec.privacy.diversity
        if demand.column == name and demand.model == "t-closeness"
    }
    for key, distance in (("taxonomy", "hierarchical"), ("order", "ordered")):
        if getattr(column, key) and distance not in distances:
            faults.add(
                f"columns.{name}: the {key} of a sensitive column is for t-closeness with the {distance} distance "
                f"only; ask for that in [[privacy.diversity]], or remove {key}."
            )


# --- [[privacy.quasi_identifiers]] ------------------------------------------------------------------------------

QUASI_IDENTIFIER = declared("privacy.quasi_identifiers", QuasiIdentifierSpec)


def _read_quasi_identifier(table: dict[str, Any], where: str, faults: Faults) -> QuasiIdentifierSpec:
    values = read_section(QUASI_IDENTIFIER, table, faults, where)
    columns = values["columns"] or ()
    if not columns and not faults.within(f"{where}.columns"):
        faults.add(f"{where} has no columns; name those that someone could know together.")
    if len(set(columns)) < len(columns):
        faults.add(f"{where} names a column twice.")
    return QuasiIdentifierSpec(columns, values["k"])


def _read_quasi_identifiers(given: Given) -> tuple[QuasiIdentifierSpec, ...]:
    if given.key in given.table and given.value in ([], ()):
        given.faults.add(
            f"{given.place} is empty; name at least one quasi-identifier, or remove it: then all columns are one."
        )
    return read_entries(given, '[{ columns = ["age", "sex"], k = 20 }]', _read_quasi_identifier)


def _sets_of_keyword(given: Any) -> list[Any]:
    """Several quasi-identifiers; a name is none, nor a list of them. A list of names is one whose k is that of all."""
    several = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    tables: list[Any] = []
    for item in several:
        if isinstance(item, str) or not isinstance(item, Iterable | QuasiIdentifierSpec):
            given_kind = f"'{item}'" if isinstance(item, str) else type(item).__name__
            form = "a list of quasi-identifiers, each a list of columns such as ['age', 'sex']"
            raise RequestError(f"requirements is {form}; found {given_kind}.")
        if isinstance(item, QuasiIdentifierSpec):
            tables.append(QUASI_IDENTIFIER.tables(item))
        elif isinstance(item, Mapping):
            tables.append(item)
        else:
            tables.append(
                {"columns": [str(name) for name in (sorted(item) if isinstance(item, set | frozenset) else item)]}
            )
    return tables


QUASI_IDENTIFIERS = ValueKind(
    _read_quasi_identifiers, lambda several: [QUASI_IDENTIFIER.tables(each) for each in several], _sets_of_keyword
)
