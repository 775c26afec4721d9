# SPDX-License-Identifier: Apache-2.0
"""What a spec says of the application of a release: the columns that recipients learn from or select by, where weights
come from, clusters, and exploring where the use is not known. Read, and held against the columns and the method.
"""

from __future__ import annotations

from typing import Any

from anonfit.errors import did_you_mean
from anonfit.spec.faults import Faults
from anonfit.spec.model import MethodSpec, Spec, WorkloadSpec
from anonfit.tables.schema import Role

__all__ = ["KEYS", "WEIGHT_RULES", "check_application", "read_application"]

KEYS = ("features", "selected_by", "weights_from", "clusters")
WEIGHT_RULES = ("first", "product", "blend", "naive", "probabilistic", "combined")
UNGUIDED = ("median", "weighted", "clustering", "explore")
"""Criteria that leave targets out."""


def read_application(table: dict[str, Any], faults: Faults) -> dict[str, Any]:
    """The settings of `[workload]` that are of the application, by name."""
    default = WorkloadSpec()
    clusters = faults.kind(table, "clusters", "workload", int, "a whole number", default.clusters)
    if clusters < 2:
        faults.add(f"workload.clusters must be at least 2; found {clusters}.")
        clusters = default.clusters
    found = {
        "features": faults.texts(table, "features", "workload", ()),
        "selected_by": faults.texts(table, "selected_by", "workload", ()),
        "weights_from": faults.choice(table, "weights_from", "workload", ("accuracy",), None),
        "clusters": clusters,
    }
    for name in ("features", "selected_by"):
        if len(set(found[name])) < len(found[name]):
            faults.add(f"workload.{name} names a column twice.")
    return found


def check_application(spec: Spec, faults: Faults) -> None:
    """Faults between what is said of the application, the columns and the method."""
    _check_columns(spec, faults)
    if faults.within("workload") or faults.unread:
        return
    _check_weights(spec, faults)
    _check_named(spec, faults)
    if spec.method.criterion == "clustering":
        _check_clustering(spec, faults)
    if spec.method.criterion == "explore":
        _check_exploring(spec, faults)
    elif spec.method.algorithm != "tdr" and spec.method.time_budget is not None:
        faults.add("method.time_budget is for algorithm = 'tdr' or criterion = 'explore' only; remove it.")


def _check_columns(spec: Spec, faults: Faults) -> None:
    """Columns that recipients learn from or select by are released in some way."""
    for setting in ("features", "selected_by"):
        for name in getattr(spec.workload, setting):
            column = spec.columns.get(name)
            if column is None:
                # Without a role of its own it has the default one; whether it is there, only the data can say.
                if spec.data.default_role is None and name not in faults.unread:
                    faults.add(
                        f"workload.{setting} names '{name}', which has no role; {did_you_mean(name, spec.columns)}"
                    )
            elif column.role != Role.QUASI_IDENTIFIER and not column.role.is_released_raw:
                faults.add(f"workload.{setting} names '{name}', which is not released (its role is '{column.role}').")


def _check_weights(spec: Spec, faults: Faults) -> None:
    method, workload = spec.method, spec.workload
    if workload.weights_from is not None:
        if workload.weights:
            faults.add("workload.weights_from finds weights, and workload.weights gives them; remove one of the two.")
        if not spec.targets:
            faults.add(
                "workload.weights_from = 'accuracy' needs a target: give a column the role 'target', or list one in "
                "workload.targets."
            )
        if method.criterion in ("clustering", "explore"):
            faults.add(f"workload.weights_from does not go with criterion = '{method.criterion}'; remove it.")
    if method.criterion == "median":
        for name in ("weights", "weights_from", "features", "selected_by"):
            if getattr(workload, name):
                faults.add(
                    f"workload.{name} steers nothing with criterion = 'median', which is blind; remove it, or use "
                    "another criterion."
                )
    default = MethodSpec()
    for name in ("beta", "gamma"):
        if getattr(method, name) != getattr(default, name) and method.weight_rule != "combined":
            faults.add(f"method.{name} is for weight_rule = 'combined' only; write that, or remove {name}.")
    if method.weight_rule == "combined" and (not spec.targets or method.criterion in UNGUIDED):
        faults.add(
            "method.weight_rule = 'combined' weighs what is gained for targets, and none steers the splits: name a "
            "target and a criterion that uses it, or use another rule."
        )


def _check_named(spec: Spec, faults: Faults) -> None:
    """Columns that recipients learn from or select by say which quasi-identifiers matter, unless weights do."""
    method, workload, known = spec.method, spec.workload, set(spec.of_role(Role.QUASI_IDENTIFIER))
    if method.criterion == "clustering" and workload.selected_by:
        faults.add("workload.selected_by does not go with criterion = 'clustering', which selects nothing; remove it.")
    if method.criterion not in ("clustering", "explore", "median"):
        for name in ("features", "selected_by"):
            for other in ("weights", "weights_from"):
                if getattr(workload, name) and getattr(workload, other):
                    faults.add(f"workload.{name} and workload.{other} both say what matters; remove one of the two.")
            named = set(getattr(workload, name))
            if named and not named & known and spec.data.default_role is None:
                faults.add(f"workload.{name} names no quasi-identifier, so it steers nothing; name one, or remove it.")
    if workload.clusters != WorkloadSpec().clusters and method.criterion != "clustering" and not workload.features:
        faults.add(
            "workload.clusters is for criterion = 'clustering', or for features; write one of them, or remove it."
        )


def _check_clustering(spec: Spec, faults: Faults) -> None:
    default = MethodSpec()
    for name in ("weight_rule", "candidates"):
        if getattr(spec.method, name) != getattr(default, name):
            faults.add(f"method.{name} does not go with criterion = 'clustering', where weights are of dispersion.")
    _check_features(spec, faults)


def _check_features(spec: Spec, faults: Faults) -> None:
    """Clusters are made of quasi-identifiers, at least one of which matters."""
    known, features, named = spec.of_role(Role.QUASI_IDENTIFIER), spec.workload.features, spec.method.criterion
    if features and known and not set(features) & set(known):
        faults.add(f"method.criterion = '{named}' needs a quasi-identifier among workload.features.")
        return
    kept = [name for name in known if not features or name in features]
    if kept and all(spec.workload.weights.get(name, 1.0) == 0 for name in kept):
        faults.add(f"method.criterion = '{named}' needs a feature whose weight is above 0.")


def _check_exploring(spec: Spec, faults: Faults) -> None:
    """Exploring chooses what a method would say."""
    default = MethodSpec()
    for name in ("candidates", "weight_rule", "alpha", "min_gain"):
        if getattr(spec.method, name) != getattr(default, name):
            faults.add(f"method.{name} does not go with criterion = 'explore', which tries several; remove it.")
    if spec.workload.denoise:
        faults.add("workload.denoise does not go with criterion = 'explore', which uses no targets; remove it.")
    _check_features(spec, faults)
