# SPDX-License-Identifier: Apache-2.0
"""Edits of a spec that keep it whole: a role takes with it what goes only with that role. What is not touched stays as
it is written, comments too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import tomlkit
from tomlkit import TOMLDocument
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT
from tomlkit.items import Table as TomlTable

from anonfit.errors import RequestError, SpecError, did_you_mean
from anonfit.privacy.catalogue import MODELS
from anonfit.privacy.models import Kind
from anonfit.tables.schema import ColumnType, Role

Table = MutableMapping[str, Any]
GENERALIZED = ("order", "domain", "taxonomy", "split")
UNTYPED = (Role.IDENTIFIER, Role.ENTITY, Role.COUNT, Role.SAMPLE_WEIGHT)
SETTINGS_OF_TYPES = {"order": ("ordinal",), "date_format": ("date", ""), "domain": ("continuous", "date", "")}
"""Settings of columns, and the types that they go with."""
LARGEST = 1e15
"""Of numbers that somebody may type."""


def put(text: str, keys: Sequence[str], value: Any) -> str:
    """The text of a spec with one setting put in."""
    try:
        document = tomlkit.parse(text)
    except (TOMLKitError, ValueError, RecursionError) as error:
        raise SpecError([f"the spec is not TOML: {error}."]) from None
    set_value(document, keys, value)
    return tomlkit.dumps(document)


def table_of(document: Table, keys: Sequence[str]) -> Table:
    """A table of the spec, made if it is missing."""
    held: Any = document
    for key in keys:
        if key not in held:
            held[key] = tomlkit.table(is_super_table=len(keys) > 1 and key == keys[0])
        held = held[key]
        if not isinstance(held, MutableMapping):
            raise RequestError(f"{'.'.join(keys)} is no table in the spec; mend its text first.")
    table: Table = held
    return table


def set_value(document: Table, keys: Sequence[str], value: Any) -> None:
    """Set a setting; None takes it away."""
    table = table_of(document, keys[:-1])
    if value is None:
        table.pop(keys[-1], None)
    elif table.get(keys[-1]) != value or type(table.get(keys[-1])) is not type(value):
        put_in(table, keys[-1], value)


def put_in(table: Table, key: str, value: Any) -> None:
    """Set a key; a new one stands after the others, before comments, which may be of what follows."""
    plain = [each for each, held in table.items() if not isinstance(held, MutableMapping | AoT)]
    if key in table or not plain or not isinstance(table, TomlTable) or isinstance(value, Mapping):
        table[key] = value
        return
    item = tomlkit.item(value)
    table.value._insert_after(plain[-1], key, item)  # the public way puts it after the comments
    dict.__setitem__(table, key, table.value[key])


def set_role(document: TOMLDocument, name: str, role: str, demand: Mapping[str, Any] | None = None) -> None:
    """Give a column a role; what its settings, demands and targets were of another role goes."""
    if role not in tuple(Role):
        raise RequestError(f"role = '{role}' is not known; {did_you_mean(role, tuple(Role))}")
    column = table_of(document, ("columns", name))
    if column.get("role") == role:
        return
    put_in(column, "role", role)
    if role == Role.IDENTIFIER:
        column.pop("decide", None)  # nothing of it is released, so nothing is left to decide
    dropped = [*GENERALIZED] if role != Role.QUASI_IDENTIFIER else []
    dropped += ["type"] if role in UNTYPED else []
    dropped += ["date_format"] if role in (*UNTYPED, Role.INSENSITIVE) else []
    dropped += ["release"] if role in (Role.QUASI_IDENTIFIER, Role.IDENTIFIER, Role.ENTITY) else []
    dropped += ["diversity", "reason"] if role != Role.SENSITIVE else []
    for key in dropped:
        column.pop(key, None)
    if role != Role.SENSITIVE:
        remove_demands(document, name)
    elif demand is not None:
        add_demand(document, {"column": name, **demand})
    _retarget(document, name, is_target=role == Role.TARGET)
    if role != Role.QUASI_IDENTIFIER:
        document.get("workload", {}).get("weights", {}).pop(name, None)


def targets_of(entries: Sequence[Any]) -> list[str]:
    """The columns that entries of a list of targets name."""
    return [entry if isinstance(entry, str) else str(entry.get("column")) for entry in entries]


def _retarget(document: TOMLDocument, name: str, *, is_target: bool) -> None:
    """Keep the list of targets, where there is one, in step with the roles."""
    targets = document.get("workload", {}).get("targets")
    if targets is not None and is_target and name not in targets_of(targets):
        targets.append(name)
    elif not is_target:
        remove_entries(document, "workload", "targets", lambda _, entry: targets_of([entry]) == [name])


def set_type(document: TOMLDocument, name: str, given: str) -> None:
    """Give a column a type; empty: it is found in the data."""
    if given and given not in tuple(ColumnType):
        raise RequestError(f"type = '{given}' is not known; {did_you_mean(given, tuple(ColumnType))}")
    column = table_of(document, ("columns", name))
    if given:
        put_in(column, "type", given)
    fitting = {"type": tuple(ColumnType), **SETTINGS_OF_TYPES}
    for key, types in fitting.items():
        if given not in types:
            column.pop(key, None)


def add_entry(document: Table, section: str, key: str, entry: Mapping[str, Any]) -> None:
    """Add an entry to a list of tables of the spec."""
    table = table_of(document, (section,))
    if key not in table:
        table[key] = tomlkit.aot()
    table[key].append(tomlkit.item(dict(entry)))


def remove_entries(document: Table, section: str, key: str, is_gone: Callable[[int, Any], bool]) -> None:
    """Take away the entries of a list for whose place and content that is so; a list that is then empty goes, too."""
    table = document.get(section, {})
    entries = table.get(key, [])
    gone = [place for place, entry in enumerate(entries) if is_gone(place, entry)]
    for place in reversed(gone):
        del entries[place]
    if gone and not entries:
        del table[key]


def add_demand(document: TOMLDocument, demand: Mapping[str, Any]) -> None:
    """Ask something of a sensitive column; what it waived is asked again."""
    model = str(demand.get("model", ""))
    if model not in MODELS:
        raise RequestError(f"model = '{model}' is not known; {did_you_mean(model, MODELS)}")
    add_entry(document, "privacy", "diversity", demand)
    column = document.get("columns", {}).get(demand["column"], {})
    for key in ("diversity", "reason"):
        column.pop(key, None)


def remove_demands(document: TOMLDocument, name: str, number: int | None = None) -> None:
    """Take away what is asked of a column, all of it or one demand by its place in the list."""

    def is_gone(place: int, demand: Any) -> bool:
        return demand.get("column") == name and number in (None, place)

    remove_entries(document, "privacy", "diversity", is_gone)


def waive(document: TOMLDocument, name: str, reason: str) -> None:
    """Ask nothing of a sensitive column, for a stated reason."""
    if not reason.strip():
        raise RequestError(f"'{name}': nothing is asked of a sensitive column only for a reason; write it down.")
    remove_demands(document, name)
    column = table_of(document, ("columns", name))
    put_in(column, "diversity", "none")
    put_in(column, "reason", reason.strip())


def parameters_of(model: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a model from the texts of a form."""
    if model not in MODELS:
        raise RequestError(f"model = '{model}' is not known; {did_you_mean(model, MODELS)}")
    readers = {Kind.WHOLE: lambda text: int(number_of(text)), Kind.NUMBER: number_of}
    values: dict[str, Any] = {}
    for parameter in MODELS[model].parameters:
        text = given.get(parameter.name, "").strip()
        if text in ("true", "false"):
            values[parameter.name] = text == "true"
        elif text:
            values[parameter.name] = readers.get(parameter.kind, str)(text)
    return values


def number_of(text: str) -> int | float:
    """A number that somebody typed."""
    try:
        value = float(text.strip().replace(",", "."))
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST:
        raise RequestError("a number is expected here; write it with digits, such as 10 or 0.05.")
    return int(value) if value.is_integer() and "." not in text and "," not in text else value


def questions_of(tables: Mapping[str, Any]) -> dict[str, str]:
    """What is still to be decided, by the table that it stands in."""
    columns = tables.get("columns")
    places = {f"columns.{name}": column for name, column in columns.items()} if isinstance(columns, Mapping) else {}
    tables_of_places = {"": tables, **places, **{name: table for name, table in tables.items() if name != "columns"}}
    return {
        place: str(table["decide"])
        for place, table in tables_of_places.items()
        if isinstance(table, Mapping) and "decide" in table
    }


def settle(document: TOMLDocument, place: str, question: str | None = None) -> None:
    """Settle what is to be decided in a table; with a question, open it again."""
    keys = ("columns", place.removeprefix("columns.")) if place.startswith("columns.") else (place,) if place else ()
    table = table_of(document, keys)
    if question is None:
        table.pop("decide", None)
    else:
        put_in(table, "decide", question)
