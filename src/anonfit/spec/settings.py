# SPDX-License-Identifier: Apache-2.0
"""The sections of a spec that are one table each, with the kinds of values that only their settings have. Reading,
writing, the public manifest, keyword arguments, what is refused with which algorithm, and the tables of docs/spec.md
follow from them.

One more setting is a field of `model` (with its type and usual value, and its keyword's type), an entry of
settings.toml, and what uses it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from anonfit.criteria.objectives import ALGORITHMS, OBJECTIVES
from anonfit.engines.contract import ENGINES, EngineName
from anonfit.errors import RecodingError
from anonfit.recoding.recoding import Recoding
from anonfit.spec import model
from anonfit.spec.columns import COLUMN, DIVERSITY, QUASI_IDENTIFIER, QUASI_IDENTIFIERS
from anonfit.spec.kinds import (
    AT_LEAST_ZERO,
    FRACTION,
    Faults,
    Given,
    Numbers,
    ValueKind,
    choice,
    declared,
    is_whole,
    read_entries,
    read_section,
    whole,
)
from anonfit.spec.model import QueryLogSpec, SelectionSpec, TargetSpec, WorkloadSpec
from anonfit.tables.schema import Role

# --- [data], and how a file lays its table out ------------------------------------------------------------------


def _read_default_role(given: Given) -> Role | None:
    role = given.choice(Role)
    if role is not None and role != Role.INSENSITIVE:
        given.faults.add(
            f"{given.place} = '{role}': only 'insensitive' can be a default; name the columns of every other role."
        )
        return None
    return Role(role) if role else None


def _read_delimiter(given: Given) -> str | None:
    delimiter: str | None = given.of_type(str, "one character")
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\0\r\n"'):
        given.faults.add(f"{given.place} must be one ASCII character, no quote and no line end; found {delimiter!r}.")
        return None
    return delimiter


def _read_encoding(given: Given) -> str | None:
    name: str | None = given.of_type(str, "the name of an encoding")
    try:
        is_known = name is None or codecs.lookup(name)._is_text_encoding
    except (LookupError, ValueError):
        is_known = False
    if is_known:
        return name
    given.faults.add(
        f'{given.place} = {name!r} is no encoding; known are such as "utf-8", "cp1252", "utf-16", "cp850".'
    )
    return None


def _sign_of(*signs: str) -> ValueKind:
    """One of some signs."""

    def read(given: Given) -> str | None:
        sign: str | None = given.of_type(str, "a sign")
        if sign is None or sign in signs:
            return sign
        given.faults.add(f"{given.place} must be one of {', '.join(map(repr, signs))}; found {sign!r}.")
        return None

    return ValueKind(read)


def _read_comment(given: Given) -> str | None:
    comment: str | None = given.of_type(str, "what such lines begin with")
    if comment is not None and not comment.isprintable():
        given.faults.add(f"{given.place} must be signs that can be seen; found {comment!r}.")
        return None
    return comment


def _read_rows(given: Given) -> Any:
    value = given.value
    if value is None or (is_whole(value) and value >= 0):
        return None if value is None else int(value)
    if isinstance(value, list | tuple) and all(is_whole(line) and line > 0 for line in value):
        return tuple(int(line) for line in value)
    given.faults.add(
        f"{given.place} must be how many lines come first, or a list of lines such as [2]; found {value!r}."
    )
    return None


DATA = declared(
    "data",
    model.DataSpec,
    source=ValueKind(lambda given: given.value, lambda source: source),
    default_role=ValueKind(_read_default_role),
    encoding=ValueKind(_read_encoding),
    delimiter=ValueKind(_read_delimiter),
    quote=_sign_of('"', "'", ""),
    comment=ValueKind(_read_comment),
    header_row=whole(1, word="the number of a line", fault="{place} = {value} is no line; the first is 1."),
    skip_rows=ValueKind(_read_rows),
    decimal=_sign_of(".", ","),
    thousands=_sign_of(".", ",", " ", "'", ""),
)


# --- [privacy] --------------------------------------------------------------------------------------------------


def _read_k(given: Given) -> int:
    if given.key not in given.table:
        given.faults.add(
            "privacy.k is missing: how many persons must share every released combination? 10 is a common start."
        )
    k: int = replace(given, default=1).of_type(int, "a whole number")
    if k < 1:
        given.faults.add(f"{given.place} must be at least 1; found {k}.")
    return max(k, 1)


def _read_limit(given: Given) -> float:
    limit = given.of_type((int, float), "a fraction of the records such as 0.05")
    if FRACTION.have(limit):
        return float(limit)
    given.faults.add(f"{given.place} is a fraction between 0 and 1; found {limit} (write 0.05 for 5 %).")
    return 0.0


PRIVACY = declared(
    "privacy",
    model.PrivacySpec,
    k=ValueKind(_read_k),
    suppression_limit=ValueKind(_read_limit),
    diversity=DIVERSITY,
    quasi_identifiers=QUASI_IDENTIFIERS,
)


# --- [workload] -------------------------------------------------------------------------------------------------

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


TARGET = declared(
    "workload.targets",
    TargetSpec,
    classes=ValueKind(_read_classes),
    equal_width=whole(
        2, word="a whole number of classes", fault="{place} must be at least 2, the number of classes; found {value}."
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

SELECTION = declared("workload.selections", SelectionSpec)


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


QUERY_LOG = declared(
    "workload.query_log",
    QueryLogSpec,
    path=ValueKind(_read_paths, lambda path: path[0] if len(path) == 1 else list(path)),
    selections=ValueKind(_read_most),
    minterms=ValueKind(_read_most),
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


def _read_weights(given: Given) -> dict[str, float]:
    table = given.faults.table(given.table.get(given.key, {}), given.place)
    return {name: Given(table, name, given.place, 1.0, given.faults).number(AT_LEAST_ZERO) for name in table}


WORKLOAD = declared(
    "workload",
    WorkloadSpec,
    targets=TARGETS,
    selections=SELECTIONS,
    weights=ValueKind(_read_weights),
    query_log=QUERY_LOGS,
)


# --- [method] ---------------------------------------------------------------------------------------------------


def _read_criterion(given: Given) -> str:
    """The criterion: each algorithm has its own."""
    algorithm = ALGORITHMS.get(str(given.table.get("algorithm")), ALGORITHMS["mondrian"])
    named = OBJECTIVES.get(given.value) if isinstance(given.value, str) else None
    if named is not None and algorithm.name not in named.algorithms:
        owner = named.algorithms[0]
        is_far = algorithm.grows_tree and ALGORITHMS[owner].splits
        why = f"not for algorithm = '{algorithm.name}'" if is_far else f"for algorithm = '{owner}' only"
        given.faults.add(f"{given.place} = '{given.value}' is {why}; use {' or '.join(algorithm.criteria)}.")
        return str(given.default)
    return str(given.choice(algorithm.criteria))


def _read_pruning(given: Given) -> float | None:
    """The confidence of pruning; a wrong one is still one that was asked for."""
    confidence: float = replace(given, default=0.0).number(CONFIDENCE)
    return confidence if given.key in given.table else None


CONFIDENCE = Numbers("a number of at least 0 and at most 0.5 (0: no pruning)", lambda value: 0 <= value <= 0.5)


def _read_recoding(given: Given) -> Any:
    """A recoding: the path of a file, or a recoding or its whole text."""
    value = given.value
    if value is None or isinstance(value, Recoding):
        return value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return Recoding.from_json(value)
        except RecodingError as error:
            given.faults.add(f"{given.place}: {error}")
            return None
    if not isinstance(value, str | Path) or not str(value):
        given.faults.add(f"{given.place} must be the path of a recoding.json; found {type(value).__name__}.")
        return None
    return str(value)


METHOD = declared(
    "method",
    model.MethodSpec,
    criterion=ValueKind(_read_criterion, choices=tuple(OBJECTIVES)),
    start=ValueKind(_read_recoding),
    pruning=ValueKind(_read_pruning),
    max_spans=whole(1, is_raised=True),
)


# --- [engine], [output] and [report] ----------------------------------------------------------------------------

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
LEAST_MEMORY = 64 * 2**20


def _read_size(given: Given) -> int | None:
    """A size of memory, such as 2GB or 512MiB, in bytes."""
    if given.value is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(given.value))
    if match is None or match[2].upper() not in UNITS or isinstance(given.value, bool):
        given.faults.add(f"{given.place} = {given.value!r} is no size; write such as '2GB' or '512MiB'.")
        return None
    size = int(float(match[1]) * UNITS[match[2].upper()])
    if size < LEAST_MEMORY:
        given.faults.add(f"{given.place} = {given.value!r} is too little; an engine needs 64MiB at least.")
        return None
    return size


ENGINE = declared("engine", model.EngineSpec, name=choice(EngineName, also=ENGINES), memory=ValueKind(_read_size))
OUTPUT = declared("output", model.OutputSpec, delimiter=_sign_of(",", ";", "\t", "|"), decimal=_sign_of(".", ","))

LONGEST = 200


def _read_line(given: Given) -> str | None:
    line: str | None = given.of_type(str, "a line of text")
    if line is not None and (not line.strip() or len(line) > LONGEST or not line.isprintable()):
        given.faults.add(f"{given.place} must be one line of at most {LONGEST} characters that can be printed.")
        return None
    return line


REPORT = declared(
    "report", model.ReportSpec, **dict.fromkeys(("title", "table_name", "contact"), ValueKind(_read_line))
)

SECTIONS = {section.name: section for section in (DATA, PRIVACY, WORKLOAD, METHOD, ENGINE, OUTPUT, REPORT)}
"""The sections of a spec that are one table, by name; `[columns]` has one of COLUMN for each column."""
ALL = {**SECTIONS, **{part.name: part for part in (COLUMN, TARGET, SELECTION, QUERY_LOG, QUASI_IDENTIFIER)}}
"""These, and the tables inside of them."""
