# SPDX-License-Identifier: Apache-2.0
"""From a Spec back to tables and TOML, whole for the owner of the data and by an allow-list for everybody else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from anonfit.spec import VERSION, ColumnSpec, DataSpec, MethodSpec, OutputSpec, Spec
from anonfit.tables.schema import Schema

__all__ = ["public_tables", "spec_tables", "to_toml"]

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
PUBLIC_COLUMN = ("role", "type", "split", "date_format")
"""What a public manifest says of a column; its domain, order and taxonomy stand in the recoding."""


def _plain(value: Any) -> Any:
    """A value as TOML and JSON have it."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return str(value) if isinstance(value, str) else value


def _settings(found: Any, default: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a section that are not what they would be anyway."""
    return {name: _plain(getattr(found, name)) for name in names if getattr(found, name) != getattr(default, name)}


def _column(column: ColumnSpec) -> dict[str, Any]:
    default = ColumnSpec(role=column.role)
    found = {"role": str(column.role)}
    found |= _settings(column, default, ("type", "order", "domain", "date_format", "taxonomy", "split", "release"))
    if hasattr(found.get("taxonomy"), "to_tree"):
        found["taxonomy"] = found["taxonomy"].to_tree()  # type: ignore[attr-defined]
    return found


def spec_tables(spec: Spec) -> dict[str, Any]:
    """All of a spec as nested tables, defaults left out. A frame as the source has no place in it."""
    tables: dict[str, Any] = {"version": VERSION}
    data = _settings(spec.data, DataSpec(), ("missing", "missing_policy", "default_role", "delimiter", "header"))
    if isinstance(spec.data.source, str | Path):
        data = {"source": str(spec.data.source), **data}
    sections = {
        "data": data,
        "columns": {name: _column(column) for name, column in spec.columns.items()},
        "privacy": {
            "k": spec.privacy.k,
            **({"suppression_limit": spec.privacy.suppression_limit} if spec.privacy.suppression_limit else {}),
        },
        "method": _settings(spec.method, MethodSpec(), ("algorithm", "criterion", "cut_points", "seed")),
        "engine": {"name": spec.engine.name} if spec.engine.name != "auto" else {},
        "output": _settings(spec.output, OutputSpec(), ("format", "values", "regions", "order", "consent")),
    }
    return tables | {name: table for name, table in sections.items() if table}


def public_tables(spec: Spec, schema: Schema) -> dict[str, Any]:
    """What everybody may know of a spec: roles, types and demands; not where the data is, nor taxonomies' files."""
    columns = {
        column.name: {key: str(getattr(column, key)) for key in PUBLIC_COLUMN if getattr(column, key) is not None}
        | ({"release": True} if column.release else {})
        for column in schema.columns
    }
    return {
        "version": VERSION,
        "data": {"missing": list(spec.data.missing), "missing_policy": spec.data.missing_policy},
        "columns": columns,
        "privacy": {"k": spec.privacy.k, "suppression_limit": spec.privacy.suppression_limit},
        "method": {
            "algorithm": spec.method.algorithm,
            "criterion": spec.method.criterion,
            "cut_points": str(spec.method.cut_points),
        },
        "output": {
            "format": spec.output.format,
            "values": str(spec.output.values),
            "regions": spec.output.regions,
            "order": spec.output.order,
            "consent": spec.output.consent,
        },
    }


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items()) + " }"
    # TOML's basic strings are JSON's, but for DEL, which JSON leaves as it is.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def to_toml(spec: Spec) -> str:
    """The spec as TOML text that reads back to the same spec."""
    lines: list[str] = []
    for section, table in spec_tables(spec).items():
        if section == "columns":
            for name, column in table.items():
                lines += ["", f"[columns.{_key(name)}]"] + [
                    f"{_key(key)} = {_value(value)}" for key, value in column.items()
                ]
        elif isinstance(table, Mapping):
            lines += ["", f"[{section}]"] + [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
        else:
            lines.append(f"{section} = {_value(table)}")
    return "\n".join(lines) + "\n"
