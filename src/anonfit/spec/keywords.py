# SPDX-License-Identifier: Apache-2.0
"""From keyword arguments to the same Spec that TOML gives. Called by the api and the estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError, listed
from anonfit.spec.model import VERSION, DiversitySpec, QuasiIdentifierSpec, SelectionSpec, Spec, TargetSpec
from anonfit.spec.parse import spec_of
from anonfit.spec.write import diversity_table, quasi_identifier_table, selection_table, target_table
from anonfit.tables.schema import Role
from anonfit.workload.targets import can_predict

__all__ = ["refuse_keywords", "spec_of_keywords"]

SECTIONS = {
    "data": ("table", "query", "missing", "missing_policy", "default_role"),
    "privacy": ("k", "suppression_limit", "max_confidence", "attack_limit"),
    "workload": ("denoise", "weights", "features", "selected_by", "weights_from", "clusters", "rules"),
    "method": (
        "algorithm",
        "criterion",
        "candidates",
        "split_on",
        "weight_rule",
        "alpha",
        "beta",
        "gamma",
        "min_gain",
        "cut_points",
        "seed",
        "average",
        "suppression",
        "zero_gain",
        "time_budget",
        "variant",
        "pruning",
        "max_spans",
        "start",
    ),
    "engine": ("memory", "spill", "sample"),
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

ROLES = {
    "quasi_identifiers": Role.QUASI_IDENTIFIER,
    "targets": Role.TARGET,
    "sensitive": Role.SENSITIVE,
    "identifiers": Role.IDENTIFIER,
    "insensitive": Role.INSENSITIVE,
    "entity": Role.ENTITY,
    "count": Role.COUNT,
    "sample_weight": Role.SAMPLE_WEIGHT,
}
"""Keywords that give columns a role."""


def spec_of_keywords(data: Any, words: Mapping[str, Any]) -> Spec:
    """The spec of keyword arguments; what is not among them has its default.

    Args:
        data: The source: a path or a frame.
        words: Keyword arguments of `anonymize`, by name.

    Returns:
        The spec, checked as a whole.
    """
    words = {name: plain(word) for name, word in words.items() if name != "data"}
    targets = [_target(given) for given in _several(words.get("targets"))]
    tables: dict[str, Any] = {
        section: {name: _setting(name, words[name]) for name in names if words.get(name) is not None}
        for section, names in SECTIONS.items()
    }
    tables["data"]["source"] = data
    if words.get("engine") is not None:
        tables["engine"]["name"] = words["engine"]
    tables["columns"] = _columns(words, targets)
    if targets:
        tables["workload"]["targets"] = targets
    tables["workload"]["selections"] = [_selection(given) for given in _several(words.get("selections"))]
    if (log := words.get("query_log")) is not None:
        tables["workload"]["query_log"] = log if isinstance(log, Mapping) else {"path": _paths(log)}
    tables["privacy"]["diversity"] = _demands(words.get("sensitive"))
    if words.get("requirements") is not None:
        tables["privacy"]["quasi_identifiers"] = [_requirement(one) for one in _requirements(words["requirements"])]
    return _with_models(spec_of({"version": VERSION, **tables}), _several(words.get("targets")))


def refuse_keywords(words: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Refuse keywords beside a whole spec: it says all that they could, and they would change nothing."""
    usual = {name: one.default for name, one in signature(function).parameters.items()}
    given = [name for name, word in words.items() if name not in ("data", "threads") and word is not usual[name]]
    if given := [name for name in given if not _is_equal(words[name], usual[name])]:
        raise RequestError(
            f"a spec was given, which says all that is asked, and beside it {listed(given)}: put them into the spec "
            "(in Python by dataclasses.replace), or leave them out."
        )


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two words are the same, where that can be said at all."""
    return type(one) is type(other) and bool(one == other)


def plain(word: Any) -> Any:
    """A word with numbers and truth values of NumPy as Python has them, also inside of lists and tables."""
    if isinstance(word, Mapping):
        return {key: plain(value) for key, value in word.items()}
    if isinstance(word, list | tuple):
        return [plain(value) for value in word]
    if hasattr(word, "tolist") and getattr(getattr(word, "dtype", None), "kind", "") in tuple("biufU"):
        return word.tolist()
    return word


def _with_models(spec: Spec, given: Iterable[Any]) -> Spec:
    """The spec with the fitted models of its targets: no text can hold them."""
    models = [one.model if isinstance(one, TargetSpec) else _model(one) for one in given]
    if spec.workload.targets is None or not any(model is not None for model in models):
        return spec
    targets = tuple(replace(target, model=model) for target, model in zip(spec.workload.targets, models, strict=True))
    for target in targets:
        if target.model is not None and not can_predict(target.model):
            raise RequestError(
                f"targets: the model of '{target.column}' must be a fitted model, an object with predict or "
                f"predict_proba; found {_named(target.model)}."
            )
    if spec.workload.denoise and None not in models:
        raise RequestError(
            f"denoise fits models of the targets, and {listed(target.column for target in targets)} has a model that "
            "is given; remove one of the two."
        )
    return replace(spec, workload=replace(spec.workload, targets=targets))


def _named(model: Any) -> str:
    return f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"


def _model(given: Any) -> Any:
    return given.get("model") if isinstance(given, Mapping) else None


def _several(given: Any) -> Iterable[Any]:
    """Several of something, where one of it may stand alone."""
    if given is None:
        return ()
    return [given] if isinstance(given, str | Mapping | TargetSpec | SelectionSpec) else given


def _paths(given: Any) -> list[str]:
    """Files; one may stand alone."""
    return [str(given)] if isinstance(given, str | Path) else [str(one) for one in given]


def _names(given: Any) -> list[str]:
    """The names of columns; one may stand alone."""
    if given is None:
        return []
    return [str(name) for name in given] if isinstance(given, Iterable) and not isinstance(given, str) else [str(given)]


def _setting(name: str, value: Any) -> Any:
    """A setting as TOML has it."""
    if name in ("split_on", "features", "selected_by"):
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


def _requirements(given: Any) -> list[Any]:
    """Several quasi-identifiers; a name is none, nor a list of them."""
    several = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    wrong = [one for one in several if isinstance(one, str) or not isinstance(one, Iterable | QuasiIdentifierSpec)]
    if wrong:
        found = f"'{wrong[0]}'" if isinstance(wrong[0], str) else type(wrong[0]).__name__
        raise RequestError(
            "requirements is a list of quasi-identifiers, each a list of columns such as ['age', 'sex']; found "
            f"{found}."
        )
    return several


def _requirement(given: Any) -> Any:
    """One of several quasi-identifiers; a list of names is one whose k is that of all."""
    if isinstance(given, QuasiIdentifierSpec):
        return quasi_identifier_table(given)
    if isinstance(given, Mapping):
        return given
    return {"columns": _names(sorted(given) if isinstance(given, set | frozenset) else given)}


def _demands(sensitive: Any) -> list[Any]:
    """The diversity that is asked of sensitive columns: of each some, or none for a reason that is given."""
    demands = []
    for name, asked in _asked_of(sensitive).items():
        if not asked:
            raise RequestError(
                f"sensitive: nothing is asked of '{name}', so everybody in a group may have the same value: write what "
                f"is asked, such as sensitive={{'{name}': {{'model': 'entropy-l', 'l': 2}}}}, or why nothing is: "
                f"{{'{name}': {{'model': 'none', 'reason': '…'}}}}."
            )
        for demand in asked:
            table = diversity_table(demand) if isinstance(demand, DiversitySpec) else demand
            if not isinstance(table, Mapping):
                raise RequestError(
                    f"sensitive: what is asked of '{name}' must be such as {{'model': 'entropy-l', 'l': 3}}, or a list "
                    f"of such; found {demand!r}."
                )
            if table.get("column", name) != name:
                raise RequestError(f"sensitive: what is asked of '{name}' names the column '{table['column']}'.")
            if not _is_waiver(table):
                demands.append({**table, "column": name})
    return demands


def _asked_of(sensitive: Any) -> dict[str, list[Any]]:
    """For each sensitive column what is asked of it; names alone ask for nothing."""
    given = sensitive if isinstance(sensitive, Mapping) else dict.fromkeys(_names(sensitive))
    return {
        str(name): [asked] if isinstance(asked, str | Mapping | DiversitySpec) else list(asked or ())
        for name, asked in given.items()
    }


def _is_waiver(demand: Any) -> bool:
    """Whether an entry says that nothing is asked."""
    return isinstance(demand, Mapping) and demand.get("model") == "none"


def _waiver(asked: Iterable[Any]) -> dict[str, Any]:
    """What is declared of a sensitive column of which nothing is asked."""
    found: dict[str, Any] = {}
    for entry in asked:
        if _is_waiver(entry):
            if unknown := [str(key) for key in entry if key not in ("column", "model", "reason")]:
                raise RequestError(f"sensitive: 'model': 'none' has a 'reason' only; found {listed(unknown)}.")
            found = {"diversity": "none", "reason": entry.get("reason", "")}
    return found


def _columns(words: Mapping[str, Any], targets: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """The roles of columns, and what else is declared of them."""
    columns: dict[str, dict[str, Any]] = {}
    quasi_identifiers = _names(words.get("quasi_identifiers"))
    for key, role in ROLES.items():
        names = _target_columns(targets, quasi_identifiers) if role == Role.TARGET else _names(words.get(key))
        for name in names:
            if names.count(name) > 1:
                more = "; one entry says all of a target" if role == Role.TARGET else ""
                raise RequestError(f"{key} names the column '{name}' twice{more}.")
            if name in columns:
                raise RequestError(f"column '{name}' is given two roles: '{columns[name]['role']}' and '{role}'.")
            columns[name] = {"role": str(role)}
    for name, asked in _asked_of(words.get("sensitive")).items():
        columns[name] |= _waiver(asked)
    for key, setting in COLUMNS.items():
        for given, value in (words.get(key) or {}).items():
            name = str(given)
            if name not in columns and words.get("default_role") is None:
                raise RequestError(f"{key} names the column '{name}', which has no role; add it to quasi_identifiers.")
            columns.setdefault(name, {"role": words.get("default_role")})[setting] = value
    for name in _names(words.get("release")):
        columns.setdefault(name, {"role": str(Role.INSENSITIVE)})["release"] = True
    return columns


def _target_columns(targets: Iterable[Any], quasi_identifiers: Iterable[str]) -> list[str]:
    """The columns that are given the role of a target; a table without a column is refused when the spec is read.

    A quasi-identifier that is also a target stays one: its raw value drives cuts, and is not released.
    """
    names = [target.get("column") if isinstance(target, dict) else target for target in targets]
    return [name for name in names if isinstance(name, str) and name not in quasi_identifiers]
