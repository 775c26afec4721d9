# SPDX-License-Identifier: Apache-2.0
"""From TOML, or the tables it holds, to a Spec: every fault is found and all are reported together."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError, SpecError, did_you_mean, listed
from anonfit.recoding.values import Values
from anonfit.spec import VERSION, ColumnSpec, DataSpec, EngineSpec, MethodSpec, OutputSpec, PrivacySpec, Spec
from anonfit.tables.cuts import CutPoints
from anonfit.tables.schema import ColumnType, Role, Split

__all__ = ["parse_spec", "read_spec", "spec_of", "with_settings"]

SECTIONS = ("version", "data", "columns", "privacy", "method", "engine", "output", "workload")

LATER = {
    "privacy.max_confidence": "a cap on what a group may reveal of a target",
    "privacy.diversity": "diversity models",
    "privacy.quasi_identifiers": "several quasi-identifiers",
    "workload": "workloads (targets, selections, weights, query logs)",
    "method.candidates": "the choice of candidate cuts",
    "method.split_on": "restricting the attributes that are split",
    "method.weight_rule": "attribute weights",
    "method.alpha": "attribute weights",
    "method.min_gain": "a least gain",
    "method.time_budget": "time budgets",
    "engine.memory": "memory limits",
    "engine.spill": "spilling to disk",
}
"""Keys of the contract that this version refuses, and what they are for."""


class _Faults:
    """Collects faults and reads values, each with the place it stands in."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, text: str) -> None:
        self.found.append(text)

    def table(self, value: Any, where: str) -> dict[str, Any]:
        if isinstance(value, Mapping):
            return dict(value)
        self.add(f"[{where}] must be a table of settings; found {value!r}.")
        return {}

    def unknown(self, table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
        """Refuse keys that are not known, and those whose time has not come."""
        names = list(known)
        for key in table:
            place = f"{where}.{key}" if where else key
            if key in names:
                continue
            if place in LATER:
                self.add(f"{place}: {LATER[place]} are not supported by this version of anonfit; remove the key.")
            else:
                self.add(f"{place} is not a setting; {did_you_mean(key, names)}")

    def kind(
        self,
        table: Mapping[str, Any],
        key: str,
        where: str,
        kind: type | tuple[type, ...],
        word: str,
        default: Any,
    ) -> Any:
        value = table.get(key, default)
        is_wrong_bool = isinstance(value, bool) and kind is not bool
        if value is default or (isinstance(value, kind) and not is_wrong_bool):
            return value
        self.add(f"{where}.{key} must be {word}; found {value!r}.")
        return default

    def choice(self, table: Mapping[str, Any], key: str, where: str, options: Iterable[str], default: Any) -> Any:
        value = table.get(key, default)
        if value is default:
            return default
        words = [str(option) for option in options]
        if isinstance(value, str) and value in words:
            return value
        self.add(f"{where}.{key} = {value!r} is not known; {did_you_mean(str(value), words)}")
        return default

    def texts(self, table: Mapping[str, Any], key: str, where: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = table.get(key)
        if value is None:
            return default
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.add(f"{where}.{key} must be a list of texts; found {value!r}.")
        return default


def _data(table: dict[str, Any], faults: _Faults) -> DataSpec:
    faults.unknown(table, ("source", "missing", "missing_policy", "default_role", "delimiter", "header"), "data")
    role = faults.choice(table, "default_role", "data", Role, None)
    if role is not None and role != Role.INSENSITIVE:
        faults.add(
            f"data.default_role = '{role}': only 'insensitive' can be a default; name the columns of every other role."
        )
        role = None
    delimiter = faults.kind(table, "delimiter", "data", str, "one character", None)
    if delimiter is not None and len(delimiter) != 1:
        faults.add(f"data.delimiter must be one character; found {delimiter!r}.")
        delimiter = None
    return DataSpec(
        source=table.get("source"),
        missing=faults.texts(table, "missing", "data", ("",)),
        missing_policy=faults.choice(table, "missing_policy", "data", ("category", "drop", "error"), "category"),
        default_role=Role(role) if role else None,
        delimiter=delimiter,
        header=faults.kind(table, "header", "data", bool, "true or false", None),
    )


def _column(name: str, table: dict[str, Any], faults: _Faults) -> ColumnSpec | None:
    where = f"columns.{name}"
    faults.unknown(table, ("role", "type", "order", "domain", "date_format", "taxonomy", "split", "release"), where)
    if "role" not in table:
        faults.add(f"{where} has no role; give it one of: {', '.join(Role)}.")
        return None
    role = faults.choice(table, "role", where, Role, None)
    kind = faults.choice(table, "type", where, ColumnType, None)
    split = faults.choice(table, "split", where, Split, None)
    found = ColumnSpec(
        role=Role(role or Role.IDENTIFIER),
        type=ColumnType(kind) if kind else None,
        order=faults.texts(table, "order", where, ()),
        domain=_domain(table, where, faults),
        date_format=faults.kind(table, "date_format", where, str, "a text such as '%d.%m.%Y'", None),
        taxonomy=_taxonomy(table, where, faults),
        split=Split(split) if split else None,
        release=faults.kind(table, "release", where, bool, "true or false", False),
    )
    _check_column(where, found, faults)
    return found if role else None


def _taxonomy(table: dict[str, Any], where: str, faults: _Faults) -> Any:
    value = table.get("taxonomy")
    if value is None or isinstance(value, str | Path | Mapping) or hasattr(value, "leaves"):
        return value
    faults.add(f"{where}.taxonomy must be the name of a taxonomy file; found {value!r}.")
    return None


def _domain(table: dict[str, Any], where: str, faults: _Faults) -> tuple[Any, ...]:
    value = table.get("domain")
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not value:
        faults.add(
            f"{where}.domain must be a list: [lowest, highest], or the names of a nominal column; found {value!r}."
        )
        return ()
    if not all(isinstance(item, str | int | float | date | datetime) for item in value):
        faults.add(f"{where}.domain must hold numbers, dates or texts; found {value!r}.")
        return ()
    return tuple(value)


def _check_column(where: str, column: ColumnSpec, faults: _Faults) -> None:
    """Faults between the settings of one column."""
    if column.role != Role.QUASI_IDENTIFIER:
        given = [key for key in ("order", "domain", "taxonomy", "split") if getattr(column, key)]
        if given:
            faults.add(f"{where}: {listed(given)} can be set for a quasi-identifier only; its role is '{column.role}'.")
        return
    if column.release:
        faults.add(f"{where}: release = true is for columns released as they are; a quasi-identifier is generalized.")
    if column.type == ColumnType.ORDINAL and not column.order:
        faults.add(f"{where}: an ordinal column needs order = [lowest, …, highest].")
    if column.order and column.type != ColumnType.ORDINAL:
        faults.add(f"{where}: order is for type = 'ordinal' only.")
    if len(set(column.order)) < len(column.order):
        faults.add(f"{where}: order names a value twice.")
    if column.split and column.type not in (ColumnType.NOMINAL, None) and not column.taxonomy:
        faults.add(f"{where}: split is for nominal columns and columns with a taxonomy only.")
    if column.split == Split.SUBSET and column.taxonomy:
        faults.add(f"{where}: split = 'subset' ignores the taxonomy; remove one of the two, or use 'binary'.")
    if column.domain and column.type == ColumnType.ORDINAL:
        faults.add(f"{where}: order already says which values there are; remove domain.")
    if column.date_format and column.type not in (ColumnType.DATE, None):
        faults.add(f"{where}: date_format is for dates; its type is '{column.type}'.")
    if column.taxonomy and (column.domain or column.order):
        faults.add(f"{where}: a taxonomy already says which values there are; remove domain and order.")
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


def _privacy(table: dict[str, Any], faults: _Faults) -> PrivacySpec:
    faults.unknown(table, ("k", "suppression_limit"), "privacy")
    if "k" not in table:
        faults.add(
            "privacy.k is missing: how many persons must share every released combination? 10 is a common start."
        )
    k = faults.kind(table, "k", "privacy", int, "a whole number", 1)
    if k < 1:
        faults.add(f"privacy.k must be at least 1; found {k}.")
    limit = faults.kind(
        table, "suppression_limit", "privacy", (int, float), "a fraction of the records such as 0.05", 0.0
    )
    if not 0 <= limit <= 1:
        faults.add(f"privacy.suppression_limit is a fraction between 0 and 1; found {limit} (write 0.05 for 5 %).")
    return PrivacySpec(k=max(k, 1), suppression_limit=float(limit))


def _method(table: dict[str, Any], faults: _Faults) -> MethodSpec:
    faults.unknown(table, ("algorithm", "criterion", "cut_points", "seed"), "method")
    for key, later, have in (
        ("algorithm", ("tdr",), ("mondrian",)),
        (
            "criterion",
            ("infogain", "lsd", "selection", "weighted", "clustering", "score"),
            ("auto", "median"),
        ),
    ):
        if table.get(key) in later:
            faults.add(
                f"method.{key} = '{table[key]}' is not supported by this version of anonfit; use {' or '.join(have)}."
            )
            table = {name: value for name, value in table.items() if name != key}
    return MethodSpec(
        algorithm=faults.choice(table, "algorithm", "method", ("mondrian",), "mondrian"),
        criterion=faults.choice(table, "criterion", "method", ("auto", "median"), "auto"),
        cut_points=CutPoints(faults.choice(table, "cut_points", "method", CutPoints, "simplest")),
        seed=faults.kind(table, "seed", "method", int, "a whole number", 0),
    )


def _engine(table: dict[str, Any], faults: _Faults) -> EngineSpec:
    faults.unknown(table, ("name",), "engine")
    if table.get("name") in ("duckdb", "spark"):
        faults.add(
            f"engine.name = '{table['name']}' is not supported by this version of anonfit; use 'auto' or 'memory'."
        )
        return EngineSpec()
    return EngineSpec(name=faults.choice(table, "name", "engine", ("auto", "memory"), "auto"))


def _output(table: dict[str, Any], faults: _Faults) -> OutputSpec:
    faults.unknown(table, ("format", "values", "regions", "order", "consent"), "output")
    found = OutputSpec(
        format=faults.choice(table, "format", "output", ("csv", "parquet", "arrow"), "parquet"),
        values=Values(faults.choice(table, "values", "output", Values, "labels")),
        regions=faults.choice(table, "regions", "output", ("domain", "observed"), "domain"),
        order=faults.choice(table, "order", "output", ("sorted", "original"), "sorted"),
        consent=faults.kind(table, "consent", "output", bool, "true or false", False),
    )
    if found.regions == "observed" and not found.consent:
        faults.add(
            "output.regions = 'observed' releases the smallest and largest value that records of each group "
            "really have; "
            "write consent = true in [output] if that is meant."
        )
    if found.order == "original" and not found.consent:
        faults.add(
            "output.order = 'original' lets anyone who has the input's order tell which row is whose; write "
            "consent = true in "
            "[output] if that is meant."
        )
    return found


def spec_of(tables: Mapping[str, Any], *, folder: Path | None = None) -> Spec:
    """The spec of nested tables, as TOML gives them; all faults are reported in one error."""
    faults = _Faults()
    top = dict(tables)
    faults.unknown(top, [name for name in SECTIONS if name not in LATER], "")
    version = top.get("version")
    if version != VERSION:
        faults.add(
            f"version must be {VERSION}; found {version!r}."
            if "version" in top
            else f"version is missing: write version = {VERSION} first."
        )
    columns = {}
    for name, table in faults.table(top.get("columns", {}), "columns").items():
        column = _column(name, faults.table(table, f"columns.{name}"), faults)
        if column is not None:
            columns[name] = column
    spec = Spec(
        columns=columns,
        privacy=_privacy(faults.table(top.get("privacy", {}), "privacy"), faults),
        data=_data(faults.table(top.get("data", {}), "data"), faults),
        method=_method(faults.table(top.get("method", {}), "method"), faults),
        engine=_engine(faults.table(top.get("engine", {}), "engine"), faults),
        output=_output(faults.table(top.get("output", {}), "output"), faults),
        folder=folder,
    )
    _check_roles(spec, faults)
    if faults.found:
        raise SpecError(faults.found)
    return spec


def _check_roles(spec: Spec, faults: _Faults) -> None:
    """Faults between columns."""
    if not spec.of_role(Role.QUASI_IDENTIFIER) and not faults.found:
        faults.add(
            "no column is a quasi-identifier: name those that someone could know of a person, or nothing is protected."
        )
    for role in (Role.ENTITY, Role.COUNT, Role.SAMPLE_WEIGHT):
        names = spec.of_role(role)
        if len(names) > 1:
            faults.add(f"only one column can be '{role}'; found {listed(names)}.")
    if spec.of_role(Role.ENTITY) and spec.of_role(Role.COUNT):
        faults.add(
            "a table has an entity column or a count column, not both: a row is a person's, or stands for several."
        )


def parse_spec(text: str, *, folder: Path | None = None) -> Spec:
    """The spec of a TOML text."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError([f"the spec is not TOML: {error}."]) from None
    return spec_of(tables, folder=folder)


def read_tables(path: str | Path) -> dict[str, Any]:
    """The tables of a spec file, not yet checked."""
    file = Path(path)
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RequestError(f"{file}: there is no such spec file.") from None
    except (IsADirectoryError, PermissionError, UnicodeDecodeError) as error:
        raise RequestError(f"{file} cannot be read as a spec: {type(error).__name__}.") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError([f"{file} is not TOML: {error}."]) from None


def with_settings(tables: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """Tables with settings such as `privacy.k=20` put in; values are read as TOML, and as texts where they are none."""
    found: dict[str, Any] = {key: dict(value) if isinstance(value, Mapping) else value for key, value in tables.items()}
    for setting in settings:
        key, equals, text = setting.partition("=")
        names = _names_of(key)
        if not equals or not names:
            raise RequestError(f"--set {setting!r}: write a key and a value, for example --set privacy.k=20.")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        place = found
        for name in names[:-1]:
            inner = place.get(name, {})
            if not isinstance(inner, Mapping):
                raise RequestError(f"--set {setting!r}: {name} is not a table.")
            place[name] = dict(inner)
            place = place[name]
        place[names[-1]] = value
    return found


def _names_of(key: str) -> list[str]:
    """The names of a dotted key, as TOML reads it: those in quotes may hold dots. None if it is no key."""
    try:
        found: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return []
    names = []
    while isinstance(found, dict):
        names.append(next(iter(found)))
        found = found[names[-1]]
    return names


def read_spec(path: str | Path, settings: Iterable[str] = ()) -> Spec:
    """The spec of a file, with settings of the command line put in."""
    folder = Path(path).resolve().parent
    spec = spec_of(with_settings(read_tables(path), settings), folder=folder)
    return replace(spec, folder=folder)
