# SPDX-License-Identifier: Apache-2.0
"""What is said of columns: `[columns.NAME]`, the diversity that is asked of them, and sets of quasi-identifiers.
Declared, read, written, and held against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError, listed
from anonfit.privacy.catalogue import MODELS, parameter_faults
from anonfit.privacy.models import Kind
from anonfit.spec.kinds import (
    SWITCH,
    TEXTS,
    Faults,
    Given,
    Public,
    Section,
    Setting,
    ValueKind,
    choice,
    read_entries,
    read_section,
    text,
    whole,
)
from anonfit.spec.model import ColumnSpec, DiversitySpec, QuasiIdentifierSpec, Spec
from anonfit.tables.schema import ColumnType, NominalSplit, Role

# --- [columns.NAME] ---------------------------------------------------------------------------------------------


def _read_domain(given: Given) -> tuple[Any, ...]:
    value = given.value
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not value:
        given.faults.add(
            f"{given.place} must be a list: [lowest, highest], or the names of a nominal column; found {value!r}."
        )
        return ()
    if not all(isinstance(item, str | int | float | date | datetime) for item in value):
        given.faults.add(f"{given.place} must hold numbers, dates or texts; found {value!r}.")
        return ()
    return tuple(value)


def _read_taxonomy(given: Given) -> Any:
    value = given.value
    if value is None or isinstance(value, str | Path | Mapping) or hasattr(value, "leaves"):
        return value
    given.faults.add(f"{given.place} must be the name of a taxonomy file; found {value!r}.")
    return None


def _read_codes(given: Given) -> tuple[str, ...]:
    """Texts, and numbers as texts, that mean missing."""
    value = given.value
    if value is None:
        return ()
    if isinstance(value, list | tuple) and all(
        isinstance(code, str | int | float) and not isinstance(code, bool) for code in value
    ):
        return tuple(code if isinstance(code, str) else f"{code:.17g}" for code in value)
    given.faults.add(f'{given.place} must be a list such as ["-9"]; found {value!r}.')
    return ()


def _read_waiver(given: Given) -> str | None:
    """What a column itself can say of diversity: that none is asked."""
    if given.value not in (None, "none"):
        given.faults.add(
            f"{given.place} can be 'none' only, with a reason; what is asked of a column stands in "
            f"[[privacy.diversity]]; found {given.value!r}."
        )
        return None
    return None if given.value is None else "none"


COLUMN = Section(
    "columns",
    ColumnSpec,
    (
        Setting(
            "role",
            choice(Role, Role),
            "`identifier`, `quasi-identifier`, `sensitive`, `target`, `entity`, `count`, `sample-weight`, "
            "`insensitive`",
            public=Public.CHANGED,
        ),
        Setting(
            "type",
            choice(ColumnType, ColumnType),
            "`continuous`, `ordinal`, `nominal`, `date`; from the data if not given",
            public=Public.CHANGED,
            keyword="types",
        ),
        Setting("order", TEXTS, "the words of an ordinal column, lowest first", keyword="orders"),
        Setting(
            "domain",
            ValueKind(_read_domain),
            "`[lowest, highest]` of a continuous or date column (closes its end intervals), or the values of a "
            "nominal one",
            keyword="domains",
        ),
        Setting(
            "date_format",
            text("a text such as '%d.%m.%Y'"),
            'how dates that are texts are written, such as `"%d.%m.%Y"`',
            public=Public.CHANGED,
            keyword="date_formats",
        ),
        Setting(
            "taxonomy",
            ValueKind(_read_taxonomy),
            "a file: ARX layout (`.csv`: leaf first, root last), a JSON tree (`.json`) or indented text (`.txt`). In "
            "Python also a `Taxonomy`, or the JSON tree itself",
            keyword="taxonomies",
        ),
        Setting(
            "split",
            choice(NominalSplit, NominalSplit),
            "`multiway` (default with a taxonomy), `binary`, `subset` (default without): with `subset` any values may "
            "stand together, and a taxonomy only says which values there are and names those groups that are its own",
            public=Public.CHANGED,
            keyword="splits",
        ),
        Setting(
            "release",
            SWITCH,
            "`true` lets a raw column through although over 90 % of its values are distinct",
            public=Public.CHANGED,
        ),
        Setting(
            "missing",
            ValueKind(_read_codes),
            'texts and numbers that mean missing in this column only, such as `["-9", "999"]`',
            public=Public.CHANGED,
            keyword=None,
        ),
        Setting(
            "diversity",
            ValueKind(_read_waiver),
            'of a sensitive column: `"none"` says that nothing is asked of it in `[[privacy.diversity]]`; then it '
            "needs a `reason`",
            public=Public.CHANGED,
        ),
        Setting(
            "reason",
            text("a text"),
            "why nothing is asked of a sensitive column; the report and the manifest publish it",
            public=Public.CHANGED,
        ),
    ),
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


def _check_waiver(where: str, column: ColumnSpec, faults: Faults) -> None:
    """Nothing is asked of a sensitive column only where that is said, and why."""
    if column.diversity is None and column.reason is None:
        return
    if column.role != Role.SENSITIVE:
        faults.add(
            f"{where}: diversity = 'none' and its reason are for sensitive columns; its role is '{column.role}'."
        )
    elif column.diversity is None:
        faults.add(f"{where}: a reason stands beside diversity = 'none' only; add that, or remove the reason.")
    elif not (column.reason or "").strip():
        faults.add(f"{where}: diversity = 'none' needs a reason = \"…\", which the report publishes.")


def _check_column(where: str, column: ColumnSpec, faults: Faults, *, is_tested: bool) -> None:
    """Faults between the settings of one column; a tree may test it, though it is not generalized."""
    _check_waiver(where, column, faults)
    is_sensitive, is_generalized = column.role == Role.SENSITIVE, column.role == Role.QUASI_IDENTIFIER or is_tested
    if not is_generalized:
        refused = ("domain", "split") if is_sensitive else ("order", "domain", "taxonomy", "split")
        is_left_out = column.role in (Role.IDENTIFIER, Role.ENTITY)
        unused = ("type", "date_format", *(["release"] if is_left_out else []))
        if column.role in (Role.IDENTIFIER, Role.ENTITY, Role.COUNT, Role.SAMPLE_WEIGHT):
            for key in unused:
                if getattr(column, key):
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
    if column.date_format and column.type not in (ColumnType.DATE, None):
        faults.add(f"{where}: date_format is for dates; its type is '{column.type}'.")
    is_range = column.type in (ColumnType.CONTINUOUS, ColumnType.DATE)
    if column.domain and is_range and (len(column.domain) != 2 or not _ascending(column.domain)):
        faults.add(f"{where}: the domain of an ordered column is [lowest, highest].")
    if (
        column.domain
        and column.type in (ColumnType.NOMINAL, None)
        and len({str(name) for name in column.domain}) < len(column.domain)
    ):
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


def _read_demand(entry: Any, where: str, faults: Faults) -> DiversitySpec | None:
    table = faults.table(entry, where)
    if not isinstance(entry, Mapping):
        return None
    for key in ("column", "model"):
        if key not in table:
            faults.add(f"{where} has no {key}; a demand names a sensitive column and a model ({', '.join(MODELS)}).")
    column = Given(table, "column", where, None, faults).of_type(str, "the name of a column")
    model = Given(table, "model", where, None, faults).choice(MODELS)
    if model is None:
        return None
    given = {key: value for key, value in table.items() if key not in ("column", "model")}
    for fault in parameter_faults(model, given, where=where):
        faults.add(fault)
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


# --- [[privacy.quasi_identifiers]] ------------------------------------------------------------------------------

QUASI_IDENTIFIER = Section(
    "privacy.quasi_identifiers",
    QuasiIdentifierSpec,
    (
        Setting(
            "columns", TEXTS, "columns of role `quasi-identifier`; each of these is in at least one of the sets", ""
        ),
        Setting("k", whole(1), "as many persons share every combination of them", "`privacy.k`"),
    ),
)


def _read_quasi_identifier(entry: Any, where: str, faults: Faults) -> QuasiIdentifierSpec | None:
    table = faults.table(entry, where)
    if not isinstance(entry, Mapping):
        return None
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
    """Several quasi-identifiers; a name is none, nor a list of them."""
    several = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    wrong = [item for item in several if isinstance(item, str) or not isinstance(item, Iterable | QuasiIdentifierSpec)]
    if wrong:
        shown = f"'{wrong[0]}'" if isinstance(wrong[0], str) else type(wrong[0]).__name__
        raise RequestError(
            "requirements is a list of quasi-identifiers, each a list of columns such as ['age', 'sex']; found "
            f"{shown}."
        )
    return [_set_of_keyword(item) for item in several]


def _set_of_keyword(given: Any) -> Any:
    """One of several quasi-identifiers; a list of names is one whose k is that of all."""
    if isinstance(given, QuasiIdentifierSpec):
        return QUASI_IDENTIFIER.tables(given)
    if isinstance(given, Mapping):
        return given
    return {"columns": [str(name) for name in (sorted(given) if isinstance(given, set | frozenset) else given)]}


QUASI_IDENTIFIERS = ValueKind(
    _read_quasi_identifiers, lambda several: [QUASI_IDENTIFIER.tables(each) for each in several], _sets_of_keyword
)
