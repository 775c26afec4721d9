# SPDX-License-Identifier: Apache-2.0
"""What a release is for: the settings of `[workload]`, and its targets, selections and query log; declared, read and
written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from anonfit.spec.kinds import (
    ABOVE_ZERO,
    AT_LEAST_ZERO,
    NAMES_ONCE,
    SWITCH,
    Faults,
    Given,
    Numbers,
    Public,
    Section,
    Setting,
    ValueKind,
    choice,
    number,
    or_auto,
    read_entries,
    read_section,
    text,
    whole,
)
from anonfit.spec.model import QueryLogSpec, SelectionSpec, TargetSpec, WeightsFrom, WorkloadSpec

MONDRIAN = ("mondrian",)
ANY = Numbers("a number", lambda _: True)


def _several(given: Any) -> Iterable[Any]:
    """Several of something, where one of it may stand alone."""
    return [given] if isinstance(given, str | Mapping | TargetSpec | SelectionSpec) else given


# --- workload.targets -------------------------------------------------------------------------------------------


def _read_classes(given: Given) -> tuple[float, ...]:
    if given.key not in given.table:
        return ()
    value = given.value
    if isinstance(value, list | tuple) and value and all(ANY.have(item) for item in value):
        thresholds = tuple(float(item) for item in value)
        if all(low < high for low, high in pairwise(thresholds)):
            return thresholds
    given.faults.add(
        f"{given.place} must be thresholds between classes, ascending numbers such as [30000, 60000]; found {value!r}."
    )
    return ()


TARGET = Section(
    "workload.targets",
    TargetSpec,
    (
        Setting(
            "column",
            text("the name of a column"),
            "its name. Its role is `target`, or `quasi-identifier`: then its raw value drives cuts and it is released "
            "generalized",
            "required",
        ),
        Setting(
            "classes",
            ValueKind(_read_classes),
            "makes classes of a number: the thresholds between them, ascending",
            "none",
        ),
        Setting(
            "equal_width",
            whole(
                2,
                word="a whole number of classes",
                fault="{place} must be at least 2, the number of classes; found {value}.",
            ),
            "makes so many classes of a number, equally wide; at least 2, and not together with `classes`",
            "none",
        ),
        Setting("weight", number(ABOVE_ZERO), "how much it counts beside other targets; above 0"),
        Setting(
            "scale",
            SWITCH,
            "`false`: the squared errors of a number are not divided by its variance, so that its unit counts",
        ),
    ),
)


def _read_target(entry: Any, where: str, faults: Faults) -> TargetSpec | None:
    if not isinstance(entry, str | Mapping):
        faults.add(
            f'{where} must be the name of a column, or a table such as {{ column = "cost", weight = 0.5 }}; '
            f"found {entry!r}."
        )
        return None
    table: dict[str, Any] = {"column": entry} if isinstance(entry, str) else faults.table(entry, where)
    if "column" not in table:
        faults.add(f"{where} has no column; name the one to predict.")
    if "classes" in table and "equal_width" in table:
        faults.add(f"{where}: classes and equal_width are two ways to make classes of numbers; remove one.")
    values = read_section(TARGET, table, faults, where)
    return TargetSpec(**values) if values["column"] is not None else None


def _write_targets(targets: Iterable[TargetSpec] | None) -> list[Any]:
    tables = [TARGET.tables(target) for target in targets or ()]
    return [table["column"] if len(table) == 1 else table for table in tables]


def _target_of_keyword(given: Any) -> dict[str, Any] | str:
    if isinstance(given, TargetSpec):
        return TARGET.tables(given)
    if isinstance(given, Mapping):
        return {key: value for key, value in given.items() if key != "model"}
    return str(given)


TARGETS = ValueKind(
    lambda given: (
        read_entries(given, '["outcome", { column = "cost", weight = 0.5 }]', _read_target)
        if given.key in given.table
        else None
    ),
    _write_targets,
    lambda given: [_target_of_keyword(entry) for entry in _several(given)],
)


# --- workload.selections ----------------------------------------------------------------------------------------

SELECTION = Section(
    "workload.selections",
    SelectionSpec,
    (
        Setting(
            "where",
            text("a predicate"),
            "a predicate in SQL: comparisons, `BETWEEN`, `IN`, `IS NULL`, `AND`, `OR`, `NOT` over quasi-identifiers "
            "and columns that are released as they are. Texts and dates stand in single quotes, numbers without; a "
            "name that is not one word stands in double quotes (`\"my col\" = 'FR'`), backticks or square brackets",
            "",
        ),
        Setting(
            "each",
            text("the name of a column"),
            "a quasi-identifier or a column that is released as it is: one selection for each of its values",
            "",
        ),
        Setting(
            "weight",
            number(AT_LEAST_ZERO),
            "how much it counts beside other selections; at least 0, with which it is answered in the report and "
            "steers nothing",
        ),
    ),
)


def _read_selection(entry: Any, where: str, faults: Faults) -> SelectionSpec | None:
    table = faults.table(entry, where)
    if not isinstance(entry, Mapping):
        return None
    if ("where" in table) == ("each" in table):
        read_section(
            SELECTION, {key: value for key, value in table.items() if key not in ("where", "each")}, faults, where
        )
        faults.add(f'{where} must have a where (a predicate such as "age >= 50") or an each (a column), and not both.')
        return None
    selection = SelectionSpec(**read_section(SELECTION, table, faults, where))
    if selection.where is not None and not selection.where.strip():
        faults.add(f'{where}.where is empty; write which rows are meant, such as "age >= 50".')
        return None
    return selection if selection.where is not None or selection.each is not None else None


def _selection_of_keyword(given: Any) -> Any:
    """A selection; a text is its predicate."""
    if isinstance(given, SelectionSpec):
        return SELECTION.tables(given)
    return {"where": given} if isinstance(given, str) else given


SELECTIONS = ValueKind(
    lambda given: read_entries(given, '[{ where = "age >= 50" }, { each = "country" }]', _read_selection),
    lambda selections: [SELECTION.tables(selection) for selection in selections],
    lambda given: [_selection_of_keyword(entry) for entry in _several(given)],
)


# --- [workload.query_log] ---------------------------------------------------------------------------------------

MOST_LEARNED = 1_000
"""More selections would take long to make regions for."""


def _read_paths(given: Given) -> tuple[str, ...]:
    paths = (given.value,) if isinstance(given.value, str) else given.value
    if isinstance(paths, list | tuple) and paths and all(isinstance(path, str) and path for path in paths):
        return tuple(paths)
    given.faults.add(f'{given.place} must be a file, or a list of files, such as "queries.sql"; found {paths!r}.')
    return ()


def _read_most(given: Given) -> int:
    most: int = given.of_type(int, "a whole number")
    if 0 <= most <= MOST_LEARNED:
        return most
    given.faults.add(f"{given.place} must be between 0 and {MOST_LEARNED:,}; found {most}.")
    return int(given.default)


QUERY_LOG = Section(
    "workload.query_log",
    QueryLogSpec,
    (
        Setting(
            "path",
            ValueKind(_read_paths, lambda path: path[0] if len(path) == 1 else list(path)),
            "a file of SQL statements, or a list of files; relative to the spec. Nothing in it is executed",
            "required",
        ),
        Setting(
            "dialect",
            text("the name of a dialect such as 'postgres'"),
            'of its SQL, by the name that sqlglot has for it: `"postgres"`, `"mysql"`, `"tsql"`, …',
            "what most have in common",
        ),
        Setting(
            "table",
            text("the name of the table in queries"),
            "what queries call the table",
            "any table that has a column of its names",
        ),
        Setting(
            "learn",
            SWITCH,
            "`false`: the release is only judged by the queries. `true`: selections and weights are learned first, "
            "beside those that are written",
        ),
        Setting("selections", ValueKind(_read_most), "how many selections are learned at most, 0 to 1000"),
        Setting(
            "minterms",
            ValueKind(_read_most),
            "how many min-terms are learned in their place at most, 0 to 1000; 0: none",
        ),
    ),
)


def _read_query_log(given: Given) -> QueryLogSpec | None:
    if given.value is None:
        return None
    table = given.faults.table(given.value, given.place)
    if not isinstance(given.value, Mapping):
        return None
    return QueryLogSpec(**read_section(QUERY_LOG, table, given.faults))


def _log_of_keyword(given: Any) -> Any:
    if isinstance(given, Mapping):
        return given
    return {"path": [str(given)] if isinstance(given, str | Path) else [str(path) for path in given]}


QUERY_LOGS = ValueKind(_read_query_log, QUERY_LOG.tables, _log_of_keyword)


# --- [workload] -------------------------------------------------------------------------------------------------


def _read_weights(given: Given) -> dict[str, float]:
    table = given.faults.table(given.table.get(given.key, {}), given.place)
    return {name: Given(table, name, given.place, 1.0, given.faults).number(AT_LEAST_ZERO) for name in table}


WORKLOAD = Section(
    "workload",
    WorkloadSpec,
    (
        Setting(
            "targets",
            TARGETS,
            "columns that recipients will predict, each a name or a table (below). If it is written, only those listed "
            "are used",
            "every column of role `target`",
            public=Public.CHANGED,
        ),
        Setting(
            "denoise",
            or_auto(SWITCH),
            "`true`: splits are judged by what models fitted on other rows expect of the targets, not by their raw "
            "values; `auto`: so where targets steer the splits and no criterion is named",
            algorithms=MONDRIAN,
            public=Public.ALWAYS,
        ),
        Setting(
            "selections",
            SELECTIONS,
            "rows that recipients will ask for: any number of `[[workload.selections]]` (below)",
            algorithms=MONDRIAN,
            public=Public.ALWAYS,
        ),
        Setting(
            "weights",
            ValueKind(_read_weights),
            "how much a quasi-identifier matters: `[workload.weights]`, a number of at least 0 for each, not 0 for "
            "all; those not named have 1",
            algorithms=MONDRIAN,
            public=Public.ALWAYS,
        ),
        Setting(
            "rules",
            SWITCH,
            "`true`: the report tells association rules that are found in the release "
            "([query-logs.md](query-logs.md#association-rules)); needs the extra `rules`",
            recodes=False,
        ),
        Setting(
            "query_log",
            QUERY_LOGS,
            "a log of queries that teaches selections and weights, and that the release is judged by: "
            "`[workload.query_log]` (below)",
            public=Public.HIDDEN,
            recodes=False,
        ),
        Setting(
            "features",
            NAMES_ONCE,
            "columns that recipients will learn or cluster from ([applications.md](applications.md))",
            algorithms=MONDRIAN,
            public=Public.CHANGED,
        ),
        Setting(
            "selected_by",
            NAMES_ONCE,
            "columns that recipients will select rows by",
            algorithms=MONDRIAN,
            public=Public.CHANGED,
        ),
        Setting(
            "weights_from",
            choice(WeightsFrom),
            '`"accuracy"`: weights are found from how well each column alone predicts the targets that have classes: '
            "3, 2 and 1 for the best three, 0 for the others",
            algorithms=MONDRIAN,
            public=Public.CHANGED,
        ),
        Setting(
            "clusters",
            whole(2),
            "how many clusters recipients will look for, at least 2",
            public=Public.CHANGED,
            recodes=False,
        ),
    ),
)
