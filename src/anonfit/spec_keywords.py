# SPDX-License-Identifier: Apache-2.0
"""From keyword arguments to the same Spec that TOML gives. Called by the api and the estimators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from anonfit.errors import RequestError
from anonfit.spec import VERSION, DiversitySpec, SelectionSpec, Spec, TargetSpec
from anonfit.spec_reading import spec_of
from anonfit.spec_writing import diversity_table, selection_table, target_table
from anonfit.tables.schema import Role

__all__ = ["spec_of_keywords"]

SECTIONS = {
    "data": ("missing", "missing_policy", "default_role"),
    "privacy": ("k", "max_confidence"),
    "workload": ("denoise", "weights"),
    "method": (
        "criterion",
        "candidates",
        "split_on",
        "weight_rule",
        "alpha",
        "min_gain",
        "cut_points",
        "seed",
    ),
    "output": ("values", "order", "regions", "consent"),
}
"""Keywords that are settings of a section, under the same name."""

COLUMNS = {
    "taxonomies": "taxonomy",
    "types": "type",
    "orders": "order",
    "domains": "domain",
    "splits": "split",
    "date_formats": "date_format",
}
"""Keywords that give columns a setting."""


def spec_of_keywords(data: Any, words: Mapping[str, Any]) -> Spec:
    """The spec of keyword arguments; what is not among them has its default.

    Args:
        data: The source: a path or a frame.
        words: Keyword arguments of `anonymize`, by name.

    Returns:
        The spec, checked as a whole.
    """
    targets = [_target(given) for given in _several(words.get("targets"))]
    tables: dict[str, Any] = {
        section: {name: _setting(name, words[name]) for name in names if words.get(name) is not None}
        for section, names in SECTIONS.items()
    }
    tables["data"]["source"] = data
    tables["columns"] = _columns(words, targets)
    if targets:
        tables["workload"]["targets"] = targets
    tables["workload"]["selections"] = [_selection(given) for given in _several(words.get("selections"))]
    tables["privacy"]["diversity"] = _demands(words.get("sensitive"))
    return _with_models(spec_of({"version": VERSION, **tables}), _several(words.get("targets")))


def _with_models(spec: Spec, given: Iterable[Any]) -> Spec:
    """The spec with the fitted models of its targets: no text can hold them."""
    models = [one.model if isinstance(one, TargetSpec) else _model(one) for one in given]
    if spec.workload.targets is None or not any(model is not None for model in models):
        return spec
    targets = tuple(replace(target, model=model) for target, model in zip(spec.workload.targets, models, strict=True))
    return replace(spec, workload=replace(spec.workload, targets=targets))


def _model(given: Any) -> Any:
    return given.get("model") if isinstance(given, Mapping) else None


def _several(given: Any) -> Iterable[Any]:
    """Several of something, where one of it may stand alone."""
    if given is None:
        return ()
    return [given] if isinstance(given, str | Mapping | TargetSpec | SelectionSpec) else given


def _names(given: Any) -> list[str]:
    """The names of columns; one may stand alone."""
    if given is None:
        return []
    return [given] if isinstance(given, str) else [str(name) for name in given]


def _setting(name: str, value: Any) -> Any:
    """A setting as TOML has it."""
    if name == "split_on":
        return _names(value)
    if isinstance(value, Mapping):
        return {str(column): item for column, item in value.items()}
    return list(value) if name == "missing" and not isinstance(value, str) else value


def _target(given: Any) -> dict[str, Any] | str:
    if isinstance(given, TargetSpec):
        return target_table(given)
    if isinstance(given, Mapping):
        return {key: value for key, value in given.items() if key != "model"}
    return str(given)


def _selection(given: Any) -> Any:
    """A selection; a text is its predicate."""
    if isinstance(given, SelectionSpec):
        return selection_table(given)
    return {"where": given} if isinstance(given, str) else given


def _demands(sensitive: Any) -> list[Any]:
    """The diversity that is asked of sensitive columns."""
    demands = []
    for given, asked in sensitive.items() if isinstance(sensitive, Mapping) else ():
        name = str(given)
        for demand in [asked] if isinstance(asked, str | Mapping | DiversitySpec) else asked or ():
            table = diversity_table(demand) if isinstance(demand, DiversitySpec) else demand
            if not isinstance(table, Mapping):
                raise RequestError(
                    f"sensitive: what is asked of '{name}' must be such as {{'model': 'entropy-l', 'l': 3}}, or a list "
                    f"of such; found {demand!r}."
                )
            if table.get("column", name) != name:
                raise RequestError(f"sensitive: what is asked of '{name}' names the column '{table['column']}'.")
            demands.append({**table, "column": name})
    return demands


def _columns(words: Mapping[str, Any], targets: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """The roles of columns, and what else is declared of them."""
    columns: dict[str, dict[str, Any]] = {}

    def put(names: Any, role: Role) -> None:
        for name in _names(names):
            if name in columns:
                raise RequestError(f"column '{name}' is given two roles: '{columns[name]['role']}' and '{role}'.")
            columns[name] = {"role": str(role)}

    put(words.get("quasi_identifiers"), Role.QUASI_IDENTIFIER)
    # A quasi-identifier that is also a target stays one: its raw value drives cuts, and is not released.
    put(_target_columns(targets, set(columns)), Role.TARGET)
    put(words.get("sensitive"), Role.SENSITIVE)
    put(words.get("identifiers"), Role.IDENTIFIER)
    put(words.get("insensitive"), Role.INSENSITIVE)
    for key, role in (("entity", Role.ENTITY), ("count", Role.COUNT), ("sample_weight", Role.SAMPLE_WEIGHT)):
        put([words[key]] if words.get(key) is not None else [], role)
    for key, setting in COLUMNS.items():
        for given, value in (words.get(key) or {}).items():
            name = str(given)
            if name not in columns:
                raise RequestError(f"{key} names the column '{name}', which has no role; add it to quasi_identifiers.")
            columns[name][setting] = value
    for name in _names(words.get("release")):
        columns.setdefault(name, {"role": str(Role.INSENSITIVE)})["release"] = True
    return columns


def _target_columns(targets: Iterable[Any], quasi_identifiers: set[str]) -> list[str]:
    """The columns that are given the role of a target; a table without a column is refused when the spec is read."""
    names = [target.get("column") if isinstance(target, dict) else target for target in targets]
    return [name for name in names if isinstance(name, str) and name not in quasi_identifiers]
