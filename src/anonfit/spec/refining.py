# SPDX-License-Identifier: Apache-2.0
"""What a spec says of top-down refinement: `[[privacy.quasi_identifiers]]`, its settings of `[method]`, and what goes
with neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anonfit.errors import RecodingError, did_you_mean, listed
from anonfit.recoding.recoding import Recoding
from anonfit.spec.faults import Faults
from anonfit.spec.model import MethodSpec, QuasiIdentifierSpec, Spec, WorkloadSpec
from anonfit.tables.schema import Role, Split

__all__ = ["CRITERIA", "NONE", "REFINING", "check_refining", "read_criterion", "read_quasi_identifiers", "read_start"]

CRITERIA = ("auto", "score", "infogain")
"""Criteria of top-down refinement; auto is score."""
REFINING = ("average", "suppression", "zero_gain", "time_budget", "start")
"""Settings of the method that only top-down refinement has."""
SPLITTING = ("candidates", "split_on", "weight_rule", "alpha", "beta", "gamma", "min_gain")
"""Settings of the method that only Mondrian has."""


NONE: tuple[Any, ...] = ()
"""What stands in place of a list that is not given."""


def read_criterion(table: Mapping[str, Any], algorithm: str, splitting: tuple[str, ...], faults: Faults) -> str:
    """The criterion of `[method]`; `splitting` are those of Mondrian."""
    known = CRITERIA if algorithm == "tdr" else ("auto",) if algorithm == "tree" else splitting
    why = {"score": "for algorithm = 'tdr' only"}
    others = "for algorithm = 'mondrian' only" if algorithm == "tdr" else "not for algorithm = 'tree'"
    why |= dict.fromkeys(set(splitting) - set(CRITERIA), others)
    if algorithm == "tree":
        why["infogain"] = others
    given = table.get("criterion")
    if isinstance(given, str) and given in set(why) - set(known):
        faults.add(f"method.criterion = '{given}' is {why[given]}; use {' or '.join(known)}.")
        return "auto"
    found: str = faults.choice(table, "criterion", "method", known, "auto")
    return found


def read_start(table: Mapping[str, Any], faults: Faults) -> Any:
    """The recoding of `[method]` that refining begins with: the path of a file, or a recoding or its whole text."""
    given = table.get("start")
    if given is None or isinstance(given, Recoding):
        return given
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            return Recoding.from_json(given)
        except RecodingError as error:
            faults.add(f"method.start: {error}")
            return None
    if not isinstance(given, str | Path) or not str(given):
        faults.add(f"method.start must be the path of a recoding.json; found {type(given).__name__}.")
        return None
    return str(given)


def read_quasi_identifiers(value: Any, faults: Faults) -> tuple[QuasiIdentifierSpec, ...]:
    """The entries of `[[privacy.quasi_identifiers]]`."""
    where = "privacy.quasi_identifiers"
    entries = faults.entries(value, where, '[{ columns = ["age", "sex"], k = 20 }]')
    if not entries and isinstance(value, list | tuple) and value is not NONE:
        faults.add(f"{where} is empty; name at least one quasi-identifier, or remove it: then all columns are one.")
    found = [_quasi_identifier(entry, f"{where}[{number}]", faults) for number, entry in enumerate(entries)]
    return tuple(one for one in found if one is not None)


def _quasi_identifier(entry: Any, where: str, faults: Faults) -> QuasiIdentifierSpec | None:
    table = faults.table(entry, where)
    if not isinstance(entry, Mapping):
        return None
    faults.unknown(table, ("columns", "k"), where)
    columns = faults.texts(table, "columns", where, ())
    if not columns and not faults.within(f"{where}.columns"):
        faults.add(f"{where} has no columns; name those that someone could know together.")
    if len(set(columns)) < len(columns):
        faults.add(f"{where} names a column twice.")
    k = faults.kind(table, "k", where, int, "a whole number", None)
    if k is not None and k < 1:
        faults.add(f"{where}.k must be at least 1; found {k}.")
    return QuasiIdentifierSpec(columns, k)


def check_refining(spec: Spec, faults: Faults) -> None:
    """Faults between the algorithm, its settings, the quasi-identifiers and the workload."""
    if spec.method.algorithm == "tree":
        return
    if spec.method.algorithm != "tdr":
        _check_mondrian(spec, faults)
        return
    default = MethodSpec()
    for name in SPLITTING:
        if getattr(spec.method, name) != getattr(default, name):
            faults.add(f"method.{name} is for algorithm = 'mondrian' only; remove it.")
    is_lossy = len(spec.privacy.quasi_identifiers) > 1 and spec.method.criterion != "infogain"
    if spec.method.average != default.average and not is_lossy:
        faults.add(
            "method.average is of the anonymity that several quasi-identifiers lose by criterion = 'score'; remove it."
        )
    for name in ("denoise", "selections", "weights", "features", "selected_by", "weights_from"):
        if getattr(spec.workload, name) != getattr(WorkloadSpec(), name):
            faults.add(f"workload.{name} steers algorithm = 'mondrian' only; remove it, or use that.")
    if len(spec.targets) != 1 and not faults.within("workload.targets") and not faults.unread:
        found = listed(target.column for target in spec.targets) if spec.targets else "none"
        faults.add(f"method.algorithm = 'tdr' refines for the classes of one target; found {found}.")
    for name, column in spec.columns.items():
        if column.split == Split.BINARY:
            faults.add(f"columns.{name}.split = 'binary' is for algorithm = 'mondrian' only; use multiway or subset.")
    if spec.output.regions == "observed" and spec.privacy.quasi_identifiers:
        faults.add(
            "output.regions = 'observed' tells what the groups of all columns together have, and several "
            "quasi-identifiers do not protect those; use 'domain', or one quasi-identifier."
        )
    _check_targets(spec, faults)
    _check_columns(spec, faults)


def _check_mondrian(spec: Spec, faults: Faults) -> None:
    if spec.privacy.quasi_identifiers:
        faults.add("privacy.quasi_identifiers is for algorithm = 'tdr' only; remove it, or use that.")
    for name in REFINING:
        # Exploring has a time budget too.
        if name != "time_budget" and getattr(spec.method, name) != getattr(MethodSpec(), name):
            faults.add(f"method.{name} is for algorithm = 'tdr' only; remove it, or use that.")


def _check_targets(spec: Spec, faults: Faults) -> None:
    """A target is released as it is, and has classes of its own."""
    for target in spec.targets:
        column = spec.columns.get(target.column)
        if column is not None and column.role == Role.QUASI_IDENTIFIER:
            faults.add(
                f"method.algorithm = 'tdr': the target '{target.column}' cannot be a quasi-identifier; give it the "
                "role 'target'."
            )
        if target.model is not None:
            faults.add(f"method.algorithm = 'tdr' takes no model of the target '{target.column}'; remove the model.")


def _check_columns(spec: Spec, faults: Faults) -> None:
    """Quasi-identifiers name all columns of that role, and no others."""
    known = spec.of_role(Role.QUASI_IDENTIFIER)
    asked = spec.privacy.quasi_identifiers
    for number, one in enumerate(asked if known else ()):
        for name in one.columns:
            if name not in known and name not in faults.unread:
                faults.add(
                    f"privacy.quasi_identifiers[{number}] names '{name}', which has not the role 'quasi-identifier'; "
                    f"{did_you_mean(name, known)}"
                )
    named = {name for one in asked for name in one.columns}
    unnamed = [name for name in known if name not in named]
    if asked and unnamed:
        words = "is in none of them; add it to one, or give it another role"
        if len(unnamed) > 1:
            words = "are in none of them; add each to one, or give them another role"
        faults.add(f"privacy.quasi_identifiers: {listed(unnamed)} {words}.")
