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
from anonfit.spec import kinds, model
from anonfit.spec.columns import COLUMN, DIVERSITY, QUASI_IDENTIFIER, QUASI_IDENTIFIERS
from anonfit.spec.kinds import LINE, Faults, Given, ValueKind, declared, read_entries, read_section, text, whole
from anonfit.spec.model import QueryLogSpec, SelectionSpec, TargetSpec, WorkloadSpec
from anonfit.tables.schema import Role

# --- [data], and how a file lays its table out ------------------------------------------------------------------


def _is_encoding(name: str) -> bool:
    try:
        return codecs.lookup(name)._is_text_encoding
    except (LookupError, ValueError):
        return False


def _sign_of(*signs: str) -> ValueKind:
    """One of some signs."""
    fault = f"{{place}} must be one of {', '.join(map(repr, signs))}; found {{value!r}}."
    return text("a sign").that(lambda sign: sign in signs, fault)


def _read_rows(given: Given) -> Any:
    value = given.value
    if kinds.is_whole(value) and value >= 0:
        return int(value)
    if isinstance(value, list | tuple) and all(kinds.is_whole(line) and line > 0 for line in value):
        return tuple(int(line) for line in value)
    if value is None:
        return None
    return given.refuse(
        f"{given.place} must be how many lines come first, or a list of lines such as [2]; found {value!r}."
    )


DATA = declared(
    "data",
    model.DataSpec,
    source=ValueKind(lambda given: given.value, lambda source: source),
    missing=kinds.MISSING_TEXTS,
    default_role=ValueKind(kinds.choice(Role).read).that(
        lambda role: role == Role.INSENSITIVE,
        "{place} = '{value}': only 'insensitive' can be a default; name the columns of every other role.",
    ),
    encoding=text("the name of an encoding").that(
        _is_encoding, '{place} = {value!r} is no encoding; known are such as "utf-8", "cp1252", "utf-16", "cp850".'
    ),
    delimiter=text("one character").that(
        lambda sign: len(sign) == 1 and sign.isascii() and sign not in '\0\r\n"',
        "{place} must be one ASCII character, no quote and no line end; found {value!r}.",
    ),
    quote=_sign_of('"', "'", ""),
    comment=text("what such lines begin with").that(
        str.isprintable, "{place} must be signs that can be seen; found {value!r}."
    ),
    header_row=whole(1, word="the number of a line", fault="{place} = {value} is no line; the first is 1."),
    skip_rows=ValueKind(_read_rows),
    decimal=_sign_of(".", ","),
    thousands=_sign_of(".", ",", " ", "'", ""),
)


# --- [privacy] --------------------------------------------------------------------------------------------------


def _read_k(given: Given) -> Any:
    if given.key not in given.table:
        given.faults.add(
            "privacy.k is missing: how many persons must share every released combination? 10 is a common start."
        )
    return whole(1).read(replace(given, default=1))


def _read_limit(given: Given) -> Any:
    limit = given.of_type((int, float), "a fraction of the records such as 0.05")
    if kinds.FRACTION.have(limit):
        return float(limit)
    return given.refuse(f"{given.place} is a fraction between 0 and 1; found {limit} (write 0.05 for 5 %).")


PRIVACY = declared(
    "privacy",
    model.PrivacySpec,
    k=ValueKind(_read_k),
    suppression_limit=ValueKind(_read_limit),
    diversity=DIVERSITY,
    quasi_identifiers=QUASI_IDENTIFIERS,
)


# --- [workload] -------------------------------------------------------------------------------------------------

ANY = kinds.Numbers("a number", lambda _: True)


def _several(given: Any) -> Iterable[Any]:
    """Several of something, where one of it may stand alone."""
    return [given] if isinstance(given, str | Mapping | TargetSpec | SelectionSpec) else given


# --- workload.targets -------------------------------------------------------------------------------------------


def _read_classes(given: Given) -> Any:
    value = given.value
    if given.key not in given.table:
        return ()
    if isinstance(value, list | tuple) and value and all(ANY.have(item) for item in value):
        thresholds = tuple(float(item) for item in value)
        if all(low < high for low, high in pairwise(thresholds)):
            return thresholds
    return given.refuse(
        f"{given.place} must be thresholds between classes, ascending numbers such as [30000, 60000]; found {value!r}."
    )


TARGET = declared(
    "workload.targets",
    TargetSpec,
    classes=ValueKind(_read_classes),
    equal_width=whole(
        2, word="a whole number of classes", fault="{place} must be at least 2, the number of classes; found {value}."
    ),
)


def _read_target(table: dict[str, Any], where: str, faults: Faults) -> TargetSpec | None:
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
        read_entries(given, '["outcome", { column = "cost", weight = 0.5 }]', _read_target, short="column")
        if given.key in given.table
        else None
    ),
    _write_targets,
    lambda given: [_target_of_keyword(entry) for entry in _several(given)],
)


# --- workload.selections ----------------------------------------------------------------------------------------

SELECTION = declared("workload.selections", SelectionSpec)


def _read_selection(table: dict[str, Any], where: str, faults: Faults) -> SelectionSpec | None:
    is_one = ("where" in table) != ("each" in table)
    read = table if is_one else {key: value for key, value in table.items() if key not in ("where", "each")}
    selection = SelectionSpec(**read_section(SELECTION, read, faults, where))
    if not is_one:
        faults.add(f'{where} must have a where (a predicate such as "age >= 50") or an each (a column), and not both.')
    elif selection.where is not None and not selection.where.strip():
        faults.add(f'{where}.where is empty; write which rows are meant, such as "age >= 50".')
    elif selection.where is not None or selection.each is not None:
        return selection
    return None


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

MOST_LEARNED = 1_000  # more selections would take long to make regions for
MOST = whole().that(
    lambda most: 0 <= most <= MOST_LEARNED,
    "{place} must be between 0 and {learned:,}; found {value}.",
    learned=MOST_LEARNED,
)


def _read_paths(given: Given) -> tuple[str, ...]:
    paths = (given.value,) if isinstance(given.value, str) else given.value
    if isinstance(paths, list | tuple) and paths and all(isinstance(path, str) and path for path in paths):
        return tuple(paths)
    given.refuse(f'{given.place} must be a file, or a list of files, such as "queries.sql"; found {paths!r}.')
    return ()


QUERY_LOG = declared(
    "workload.query_log",
    QueryLogSpec,
    path=ValueKind(_read_paths, lambda path: path[0] if len(path) == 1 else list(path)),
    selections=MOST,
    minterms=MOST,
)


def _read_query_log(given: Given) -> QueryLogSpec | None:
    table = {} if given.value is None else given.faults.table(given.value, given.place)
    return QueryLogSpec(**read_section(QUERY_LOG, table, given.faults)) if isinstance(given.value, Mapping) else None


def _log_of_keyword(given: Any) -> Any:
    if isinstance(given, Mapping):
        return given
    return {"path": [str(given)] if isinstance(given, str | Path) else [str(path) for path in given]}


QUERY_LOGS = ValueKind(_read_query_log, QUERY_LOG.tables, _log_of_keyword)


def _read_weights(given: Given) -> dict[str, float]:
    table = given.faults.table(given.table.get(given.key, {}), given.place)
    return {name: Given(table, name, given.place, 1.0, given.faults).number(kinds.AT_LEAST_ZERO) for name in table}


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
    if named is None or algorithm.name in named.algorithms:
        return str(given.choice(algorithm.criteria))
    owner = named.algorithms[0]
    is_far = algorithm.grows_tree and ALGORITHMS[owner].splits
    why = f"not for algorithm = '{algorithm.name}'" if is_far else f"for algorithm = '{owner}' only"
    return str(given.refuse(f"{given.place} = '{given.value}' is {why}; use {' or '.join(algorithm.criteria)}."))


CONFIDENCE = kinds.Numbers("a number of at least 0 and at most 0.5 (0: no pruning)", lambda value: 0 <= value <= 0.5)


def _read_recoding(given: Given) -> Any:
    """A recoding: the path of a file, or a recoding or its whole text."""
    value = given.value
    if value is None or isinstance(value, Recoding):
        return value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return Recoding.from_json(value)
        except RecodingError as error:
            return given.refuse(f"{given.place}: {error}")
    if isinstance(value, str | Path) and str(value):
        return str(value)
    return given.refuse(f"{given.place} must be the path of a recoding.json; found {type(value).__name__}.")


METHOD = declared(
    "method",
    model.MethodSpec,
    criterion=ValueKind(_read_criterion, choices=tuple(OBJECTIVES)),
    start=ValueKind(_read_recoding),
    # A wrong confidence is still one that was asked for.
    pruning=ValueKind(
        lambda given: replace(given, default=0.0).number(CONFIDENCE) if given.key in given.table else None
    ),
)


# --- [engine], [output] and [report] ----------------------------------------------------------------------------

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
LEAST_MEMORY = 64 * 2**20


def _read_size(given: Given) -> Any:
    """A size of memory, such as 2GB or 512MiB, in bytes."""
    if given.value is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(given.value))
    if match is None or match[2].upper() not in UNITS or isinstance(given.value, bool):
        return given.refuse(f"{given.place} = {given.value!r} is no size; write such as '2GB' or '512MiB'.")
    size = int(float(match[1]) * UNITS[match[2].upper()])
    if size < LEAST_MEMORY:
        return given.refuse(f"{given.place} = {given.value!r} is too little; an engine needs 64MiB at least.")
    return size


ENGINE = declared("engine", model.EngineSpec, name=kinds.choice(EngineName, also=ENGINES), memory=ValueKind(_read_size))
OUTPUT = declared("output", model.OutputSpec, delimiter=_sign_of(",", ";", "\t", "|"), decimal=_sign_of(".", ","))

REPORT = declared("report", model.ReportSpec, title=LINE, table_name=LINE, contact=LINE)

SECTIONS = {section.name: section for section in (DATA, PRIVACY, WORKLOAD, METHOD, ENGINE, OUTPUT, REPORT)}
"""The sections of a spec that are one table, by name; `[columns]` has one of COLUMN for each column."""
ALL = {**SECTIONS, **{part.name: part for part in (COLUMN, TARGET, SELECTION, QUERY_LOG, QUASI_IDENTIFIER)}}
"""These, and the tables inside of them."""
