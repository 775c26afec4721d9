# SPDX-License-Identifier: Apache-2.0
"""The `[workload.query_log]` of a spec: read, checked and written back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonfit.spec.faults import Faults
from anonfit.spec.model import QueryLogSpec, Spec

__all__ = ["check_query_log", "query_log_table", "read_query_log"]

WHERE = "workload.query_log"
MOST_SELECTIONS = 1_000
"""More would take long to make regions for."""


def read_query_log(value: Any, faults: Faults) -> QueryLogSpec | None:
    """A log of queries, and how it is read."""
    if value is None:
        return None
    table = faults.table(value, WHERE)
    if not isinstance(value, Mapping):
        return None
    faults.unknown(table, ("path", "dialect", "table", "learn", "selections", "minterms"), WHERE)
    paths = table.get("path")
    paths = (paths,) if isinstance(paths, str) else paths
    if not isinstance(paths, list | tuple) or not paths or not all(isinstance(one, str) and one for one in paths):
        faults.add(f'{WHERE}.path must be a file, or a list of files, such as "queries.sql"; found {paths!r}.')
        paths = ()
    return QueryLogSpec(
        path=tuple(paths),
        dialect=faults.kind(table, "dialect", WHERE, str, "the name of a dialect such as 'postgres'", None),
        table=faults.kind(table, "table", WHERE, str, "the name of the table in queries", None),
        learn=faults.kind(table, "learn", WHERE, bool, "true or false", True),
        selections=_number(table, "selections", 50, faults),
        minterms=_number(table, "minterms", 0, faults),
    )


def _number(table: dict[str, Any], name: str, default: int, faults: Faults) -> int:
    found: int = faults.kind(table, name, WHERE, int, "a whole number", default)
    if 0 <= found <= MOST_SELECTIONS:
        return found
    faults.add(f"{WHERE}.{name} must be between 0 and {MOST_SELECTIONS:,}; found {found}.")
    return default


def check_query_log(spec: Spec, faults: Faults) -> None:
    """Faults between a log and the method."""
    log, default = spec.workload.query_log, QueryLogSpec(())
    if log is None:
        return
    if not log.learn:
        for name in ("selections", "minterms"):
            if getattr(log, name) != getattr(default, name):
                faults.add(f"{WHERE}.{name} is of what is learned, and learn = false; remove one of the two.")
        return
    if log.minterms and log.selections != default.selections:
        faults.add(f"{WHERE}.minterms stand in place of selections; remove selections, or minterms.")
    if spec.method.criterion == "median":
        faults.add(f"{WHERE} teaches what criterion = 'median' does not use; write learn = false, or 'auto'.")
    if spec.workload.weights_from is not None:
        faults.add(f"{WHERE} teaches weights, and workload.weights_from finds them; remove it, or write learn = false.")
    if spec.method.criterion == "explore":
        faults.add(f"{WHERE} teaches weights, and criterion = 'explore' tries its own; write learn = false, or 'auto'.")
    if spec.method.algorithm != "mondrian":
        faults.add(
            f"{WHERE} teaches selections and weights, which algorithm = '{spec.method.algorithm}' does not use; write "
            "learn = false to have the release judged by its queries only, or use 'mondrian'."
        )


def query_log_table(log: QueryLogSpec) -> dict[str, Any]:
    """The table of a log, what it would be anyway left out."""
    default = QueryLogSpec(log.path)
    found: dict[str, Any] = {"path": log.path[0] if len(log.path) == 1 else list(log.path)}
    for name in ("dialect", "table", "learn", "selections", "minterms"):
        if getattr(log, name) != getattr(default, name):
            found[name] = getattr(log, name)
    return found
