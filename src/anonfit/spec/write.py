# SPDX-License-Identifier: Apache-2.0
"""From a Spec back to tables and TOML, whole for the owner of the data and by an allow-list for everybody else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from anonfit.privacy.catalogue import MODELS
from anonfit.recoding.recoding import Recoding
from anonfit.spec.application import KEYS
from anonfit.spec.diversity import distance_of
from anonfit.spec.model import (
    VERSION,
    ColumnSpec,
    DataSpec,
    DiversitySpec,
    EngineSpec,
    MethodSpec,
    OutputSpec,
    PrivacySpec,
    QuasiIdentifierSpec,
    SelectionSpec,
    Spec,
    TargetSpec,
    WorkloadSpec,
)
from anonfit.spec.query_log import query_log_table
from anonfit.tables.databases import is_database, shown_address
from anonfit.tables.schema import Column, ColumnType, Schema

__all__ = [
    "diversity_table",
    "public_tables",
    "quasi_identifier_table",
    "selection_table",
    "spec_tables",
    "target_table",
    "to_toml",
    "toml_value",
]

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
PUBLIC_COLUMN = ("role", "type", "split", "date_format")
"""What a public manifest says of a column; its domain, order and taxonomy stand in the recoding."""
PUBLIC_METHOD = (
    "algorithm",
    "criterion",
    "cut_points",
    "candidates",
    "split_on",
    "weight_rule",
    "alpha",
    "min_gain",
)
"""What it says of the method: all but the seed."""
PUBLIC_COMBINED = ("beta", "gamma")
"""And of weights that are combined with gains."""
PUBLIC_REFINING = ("average", "suppression", "zero_gain")
"""And of top-down refinement: all but how long it may take, which is the owner's."""
PUBLIC_TREE = ("algorithm", "cut_points", "variant", "pruning")
"""Of a tree: all but how many spans it may have, which is the owner's."""


def _plain(value: Any) -> Any:
    """A value as TOML and JSON have it."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Recoding):
        return value.to_json()
    return str(value) if isinstance(value, str) else value


def _settings(found: Any, default: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a section that are not what they would be anyway."""
    return {name: _plain(getattr(found, name)) for name in names if getattr(found, name) != getattr(default, name)}


def _column(column: ColumnSpec) -> dict[str, Any]:
    default = ColumnSpec(role=column.role)
    found = {"role": str(column.role)}
    found |= _settings(column, default, tuple(setting.name for setting in fields(ColumnSpec)))
    if hasattr(found.get("taxonomy"), "to_tree"):
        found["taxonomy"] = found["taxonomy"].to_tree()  # type: ignore[attr-defined]
    return found


def diversity_table(demand: DiversitySpec) -> dict[str, Any]:
    """An entry of `[[privacy.diversity]]`."""
    return {"column": demand.column, "model": demand.model, **demand.parameters}


def quasi_identifier_table(one: QuasiIdentifierSpec) -> dict[str, Any]:
    """An entry of `[[privacy.quasi_identifiers]]`."""
    return {"columns": list(one.columns), **({} if one.k is None else {"k": one.k})}


def target_table(target: TargetSpec) -> dict[str, Any]:
    """An entry of `workload.targets`."""
    default = TargetSpec(target.column)
    return {"column": target.column, **_settings(target, default, ("classes", "equal_width", "weight", "scale"))}


def selection_table(selection: SelectionSpec) -> dict[str, Any]:
    """An entry of `[[workload.selections]]`."""
    return _settings(selection, SelectionSpec(), ("where", "each", "weight"))


def _privacy(privacy: PrivacySpec) -> dict[str, Any]:
    found = {
        "k": privacy.k,
        **_settings(
            privacy, PrivacySpec(privacy.k), ("suppression_limit", "max_confidence", "class_is_public", "attack_limit")
        ),
    }
    if privacy.diversity:
        found["diversity"] = [diversity_table(demand) for demand in privacy.diversity]
    if privacy.quasi_identifiers:
        found["quasi_identifiers"] = [quasi_identifier_table(one) for one in privacy.quasi_identifiers]
    return found


def _workload(workload: WorkloadSpec) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if workload.targets is not None:
        tables = [target_table(target) for target in workload.targets]
        found["targets"] = [table["column"] if len(table) == 1 else table for table in tables]
    if workload.denoise:
        found["denoise"] = True
    if workload.selections:
        found["selections"] = [selection_table(selection) for selection in workload.selections]
    if workload.weights:
        found["weights"] = dict(workload.weights)
    if workload.rules:
        found["rules"] = True
    if workload.query_log is not None:
        found["query_log"] = query_log_table(workload.query_log)
    return found | _settings(workload, WorkloadSpec(), KEYS)


def spec_tables(spec: Spec) -> dict[str, Any]:
    """All of a spec as nested tables, defaults left out. A frame as the source has no place in it."""
    tables: dict[str, Any] = {"version": VERSION, **_settings(spec, Spec({}, spec.privacy), ("decisions",))}
    data = _settings(
        spec.data, DataSpec(), ("missing", "missing_policy", "default_role", "delimiter", "header", "table", "query")
    )
    if isinstance(spec.data.source, str | Path):
        source = str(spec.data.source)
        data = {"source": shown_address(source) if is_database(source) else source, **data}
    sections = {
        "data": data,
        "columns": {name: _column(column) for name, column in spec.columns.items()},
        "privacy": _privacy(spec.privacy),
        "workload": _workload(spec.workload),
        "method": _settings(spec.method, MethodSpec(), tuple(setting.name for setting in fields(MethodSpec))),
        "engine": _settings(spec.engine, EngineSpec(), ("name", "memory", "spill", "hand_over", "sample")),
        "output": _settings(spec.output, OutputSpec(), tuple(setting.name for setting in fields(OutputSpec))),
    }
    return tables | {name: table for name, table in sections.items() if table}


def public_tables(spec: Spec, schema: Schema, *, types: Mapping[str, ColumnType] | None = None) -> dict[str, Any]:
    """What everybody may know of a spec: roles, types and demands; not where the data is, nor taxonomies' files, nor
    what is selected.

    Args:
        spec: The spec.
        schema: Its columns, with their taxonomies.
        types: The types that the data gave to columns for which none is declared, so that every demand can say by
            which distance it is measured.

    Returns:
        Tables for the manifest, which `spec_reading.public_spec` reads.
    """
    columns = {
        column.name: {key: str(getattr(column, key)) for key in PUBLIC_COLUMN if getattr(column, key) is not None}
        | ({"release": True} if column.release else {})
        | _waiver(spec.columns.get(column.name))
        for column in schema.columns
    }
    by_name = {column.name: column for column in schema.columns}
    method = replace(spec.method, weight_rule=spec.method.weight_rule or "first")
    return {
        "version": VERSION,
        **_settings(spec, Spec({}, spec.privacy), ("decisions",)),
        "data": {"missing": list(spec.data.missing), "missing_policy": spec.data.missing_policy},
        "columns": columns,
        "privacy": {
            "k": spec.privacy.k,
            "suppression_limit": spec.privacy.suppression_limit,
            "max_confidence": spec.privacy.max_confidence,
            "diversity": [
                _public_demand(demand, by_name[demand.column], (types or {}).get(demand.column))
                for demand in spec.privacy.diversity
            ],
        }
        | (
            {"quasi_identifiers": [quasi_identifier_table(one) for one in spec.privacy.quasi_identifiers]}
            if spec.privacy.quasi_identifiers
            else {}
        )
        | ({"class_is_public": True} if spec.privacy.class_is_public else {})
        | ({"attack_limit": spec.privacy.attack_limit} if spec.privacy.attack_limit < 1 else {}),
        "workload": _public_workload(spec.workload),
        "method": {name: _plain(getattr(method, name)) for name in _public_method(method)},
        "output": {
            "format": spec.output.format,
            "values": str(spec.output.values),
            "regions": spec.output.regions,
            "order": spec.output.order,
            "consent": spec.output.consent,
        },
    }


def _waiver(column: ColumnSpec | None) -> dict[str, Any]:
    """That nothing is asked of a sensitive column, and why."""
    if column is None or column.diversity is None:
        return {}
    return {"diversity": column.diversity, "reason": column.reason}


def _public_method(method: MethodSpec) -> tuple[str, ...]:
    if method.algorithm == "tree":
        return tuple(name for name in PUBLIC_TREE if getattr(method, name) is not None)
    if method.algorithm == "tdr":
        return (*PUBLIC_METHOD, *PUBLIC_REFINING)
    return (*PUBLIC_METHOD, *PUBLIC_COMBINED) if method.weight_rule == "combined" else PUBLIC_METHOD


def _public_demand(demand: DiversitySpec, column: Column, found: ColumnType | None) -> dict[str, Any]:
    """A demand with all that is needed to measure it: the taxonomy or order of a sensitive column stands nowhere else
    in a release.
    """
    allowed = {parameter.name for parameter in MODELS[demand.model].parameters}
    public: dict[str, Any] = {"column": demand.column, "model": demand.model}
    public |= {name: value for name, value in demand.parameters.items() if name in allowed}
    if demand.model != "t-closeness":
        return public
    distance = distance_of(demand, type=column.type or found, has_taxonomy=column.taxonomy is not None)
    if distance is not None:
        public["distance"] = distance
    if distance == "hierarchical" and column.taxonomy is not None:
        public["taxonomy"] = column.taxonomy.to_tree()
    if distance == "ordered" and column.order:
        public["order"] = list(column.order)
    return public


def _public_workload(workload: WorkloadSpec) -> dict[str, Any]:
    """A workload whose selections are counted, not told."""
    public: dict[str, Any] = {
        "denoise": workload.denoise,
        "selections": len(workload.selections),
        "weights": dict(workload.weights),
    }
    if workload.targets is not None:
        public["targets"] = [
            target_table(target) | {"weight": target.weight, "scale": target.scale} for target in workload.targets
        ]
    return public | _settings(workload, WorkloadSpec(), KEYS)


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else toml_value(name)


def toml_value(value: Any) -> str:
    """A plain value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {toml_value(item)}" for name, item in value.items()) + " }"
    # TOML's basic strings are JSON's, but for DEL, which JSON leaves as it is.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def to_toml(spec: Spec) -> str:
    """The spec as TOML text that reads back to the same spec."""
    lines: list[str] = []
    for section, table in spec_tables(spec).items():
        if section == "columns":
            for name, column in table.items():
                lines += ["", f"[columns.{_key(name)}]"] + [
                    f"{_key(key)} = {toml_value(value)}" for key, value in column.items()
                ]
        elif isinstance(table, Mapping):
            lines += _section(section, table)
        else:
            lines.append(f"{section} = {toml_value(table)}")
    return "\n".join(lines) + "\n"


def _section(section: str, table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a section, and after them those of the tables inside it."""
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping) or _are_tables(value)}
    yield from ("", f"[{section}]")
    yield from (f"{_key(key)} = {toml_value(value)}" for key, value in table.items() if key not in inner)
    for key, value in inner.items():
        for part in value if isinstance(value, list) else [value]:
            brackets = ("[[", "]]") if isinstance(value, list) else ("[", "]")
            yield from ("", f"{section}.{key}".join(brackets))
            yield from (f"{_key(name)} = {toml_value(item)}" for name, item in part.items())


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, Mapping) for part in value)
