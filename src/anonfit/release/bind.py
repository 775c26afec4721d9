# SPDX-License-Identifier: Apache-2.0
"""A spec bound to a table: the roles of its columns, how it is read, and what is asked of it in the words of the
algorithms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.algorithms.demands import Demands, DiversityRequest, QuasiIdentifier
from anonfit.algorithms.refining import Refining
from anonfit.algorithms.trees.building import Growing
from anonfit.algorithms.trees.growing import Demand, Variant
from anonfit.algorithms.trees.making import TreeRequest, tested_columns
from anonfit.errors import DataError, SpecError, counted, did_you_mean, listed
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.storage import read_recoding
from anonfit.recoding.values import Values
from anonfit.spec.columns import unasked
from anonfit.spec.kinds import LONGEST
from anonfit.spec.model import ColumnSpec, Spec, TargetSpec
from anonfit.spec.parse import refuse_open
from anonfit.spec.settings import OUTPUT
from anonfit.tables.databases import database_source
from anonfit.tables.layout import LAYOUT, OF_TEXTS, given_layout
from anonfit.tables.reading import ReadOptions, column_names, files_of, read_table
from anonfit.tables.schema import Column, ColumnType, NominalSplit, Role, Schema
from anonfit.tables.sources import KINDS, SOURCES, format_of, is_database
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_files import read_taxonomy
from anonfit.workload.targets import TargetRequest, Workload

if TYPE_CHECKING:
    import polars as pl


def layout_of(source: str | Path) -> tuple[str, ...]:
    """What can be said of how a source lays its table out; of a path of no known ending, what can be said of texts."""
    if is_database(source):
        return ()
    name = str(source).lower()
    return next((known.layout for known in SOURCES if name.endswith(known.suffixes)), OF_TEXTS)


def source_of(spec: Spec) -> Any:
    """The spec's source: a frame, a table of a database, or a path that starts at the spec's folder."""
    source = spec.data.source
    if source is None:
        raise SpecError(["data.source is missing: name the file to anonymize."])
    given = [name for name in ("table", "query", *LAYOUT) if getattr(spec.data, name) is not None]
    if not isinstance(source, str | Path):
        if given:
            raise SpecError([f"data.{name} is not of a frame, and the source is one; remove it." for name in given])
        return source
    name = str(source).lower()
    known = next((kind.layout for kind in SOURCES if name.endswith(kind.suffixes)), OF_TEXTS)
    known = () if is_database(source) else known
    if other := [name for name in given if name in LAYOUT and name not in known]:
        kinds = dict.fromkeys(OF_TEXTS, "text files") | {"sheet": "workbooks"}
        raise SpecError(
            [
                f"data.{name} is of {kinds.get(name, 'SPSS, Stata and SAS')}, and data.source is none; remove it."
                for name in other
            ]
        )
    if is_database(source):
        return database_source(str(source), table=spec.data.table, query=spec.data.query, folder=spec.folder or Path())
    if spec.data.table is not None or spec.data.query is not None:
        raise SpecError(["data.table and data.query are of databases, and data.source is none."])
    if "://" not in str(source):
        return (spec.folder or Path()) / source
    if spec.engine.name != "spark":
        known_kinds = f"of addresses, those of databases are known ({', '.join(KINDS)})"
        raise SpecError([f"data.source: {known_kinds}; name a file, or download it first."])
    from anonfit.engines.spark.source import read_address

    return read_address(str(source))


def _taxonomy(spec: Spec, name: str, column: ColumnSpec) -> Taxonomy | None:
    taxonomy = column.taxonomy
    if taxonomy is None or isinstance(taxonomy, Taxonomy):
        return taxonomy
    if isinstance(taxonomy, dict):
        return Taxonomy.from_tree(taxonomy, column=name)
    return read_taxonomy((spec.folder or Path()) / taxonomy, column=name)


MOST_LEAVES = 64
"""Of a taxonomy whose leaves are divided freely: sets of more are hard to read."""


def _column(spec: Spec, name: str, declared: ColumnSpec) -> Column:
    """A column as it is declared; for targets alone, one with a taxonomy is divided in the way that tells most of them,
    in which the taxonomy gives names to what belongs together.
    """
    taxonomy, split = _taxonomy(spec, name, declared), declared.split
    is_named = declared.type in (None, ColumnType.NOMINAL) and declared.role == Role.QUASI_IDENTIFIER
    if split is None and taxonomy is not None and spec.serves_targets and is_named:
        split = NominalSplit.SUBSET if len(taxonomy.leaves) <= MOST_LEAVES else NominalSplit.BINARY
    settings = {field: getattr(declared, field) for field in ("type", "order", "domain", "date_format", "release")}
    return Column(name, declared.role, taxonomy=taxonomy, split=split, **settings)


def _is_line(name: str) -> bool:
    return len(name) <= LONGEST and name.isprintable()


def schema_of(spec: Spec, names: Sequence[str], *, guessed: bool = False) -> Schema:
    """The role of every column of the table; all that is missing or unknown is reported together. Names of a line that
    was only guessed to be a header, and of which the spec knows none, may be a person's values: they are not told.
    """
    hidden = guessed and not any(name in names for name in spec.columns)
    unsure = "if its names do not stand in the first line, write header = false in [data], else header = true."
    faults = [
        f"columns.{name}: the table has no such column; {unsure if hidden else did_you_mean(name, names)}"
        for name in spec.columns
        if name not in names
    ]
    without = [name for name in names if name not in spec.columns]
    if without and spec.data.default_role is None:
        which = "" if hidden else f": {listed(without, 20)}"
        faults.append(
            f"{counted(len(without), 'column has', 'columns have')} no role{which}; give each a role, or write "
            'default_role = "insensitive" in [data].'
        )
    if "" in names:
        faults.append("the table has a column without a name, as pandas writes its index; name it, or leave it out.")
    faults += [
        f"the name of column {number:,} is no line of at most {LONGEST} characters that can be printed, and a release "
        "names the columns that it leaves out; rename it, or leave it out of the table."
        for number, name in enumerate(names, 1)
        if name in spec.columns and spec.columns[name].role in (Role.IDENTIFIER, Role.ENTITY) and not _is_line(name)
    ]
    if faults:
        raise SpecError(faults)
    undeclared = ColumnSpec(role=spec.data.default_role or Role.IDENTIFIER)
    return Schema(tuple(_column(spec, name, spec.columns.get(name, undeclared)) for name in names))


def _divided(spec: Spec, schema: Schema) -> tuple[Column, ...]:
    """The columns that are divided: quasi-identifiers or, for a tree, all that it may test."""
    asked = tree_of(spec)
    return schema.quasi_identifiers if asked is None else tested_columns(schema, asked.target.column)


def reading_of(spec: Spec, source: Any) -> tuple[Schema, ReadOptions]:
    """The schema of a source, and how its rows are read; identifiers are not even read."""
    codes = {name: column.missing for name, column in spec.columns.items() if column.missing}
    options = ReadOptions(**given_layout(spec.data), missing=spec.data.missing, missing_in=codes)
    names = column_names(source, options)
    guessed = isinstance(source, str | Path) and options.header is None and options.header_row is None
    guessed = guessed and "header" in format_of(files_of(source)[0]).layout
    schema = schema_of(spec, names, guessed=guessed)
    wanted = tuple(column.name for column in schema.columns if column.role != Role.IDENTIFIER)
    divided = _divided(spec, schema)
    kinds = (ColumnType.NOMINAL, ColumnType.ORDINAL)
    # Values that are names: a text file must not turn 01 into 1.
    texts = [column for column in divided if column.type in kinds or (column.type is None and column.taxonomy)]
    sets = {"texts": texts, "clean": divided, "raw": schema.released_raw}
    chosen: Any = {setting: frozenset(column.name for column in columns) for setting, columns in sets.items()}
    return schema, replace(options, columns=wanted, **chosen)


def read_rows(spec: Spec, schema: Schema, source: Any) -> pl.DataFrame:
    """The rows of a source that could be released."""
    return without_missing(spec, schema, read_table(source, reading_of(spec, source)[1]))


def complete_names(spec: Spec, schema: Schema) -> list[str]:
    """The columns that the missing policy is about: quasi-identifiers or, for a tree, all that it reads."""
    names = [column.name for column in _divided(spec, schema)]
    asked = tree_of(spec)
    return names if asked is None else [*names, asked.target.column]


def without_missing(spec: Spec, schema: Schema, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows that the missing policy lets through."""
    import polars as pl

    floats = [name for name in frame.columns if frame[name].dtype.is_float()]
    if floats:
        frame = frame.with_columns(pl.col(floats).fill_nan(None))
    if spec.data.missing_policy == "category":
        return frame
    names = complete_names(spec, schema)
    gaps = [name for name in names if frame[name].null_count()]
    if gaps and spec.data.missing_policy == "error":
        raise DataError(missing_refused(gaps))
    return frame.drop_nulls(names) if gaps else frame


def released_names(schema: Schema) -> list[str]:
    """The columns of the source that the release has, generalized or raw."""
    return [
        column.name for column in schema.columns if column.role == Role.QUASI_IDENTIFIER or column.role.is_released_raw
    ]


def asked_raw(schema: Schema) -> list[Column]:
    """The raw columns that must not nearly tell every record apart."""
    return [column for column in schema.released_raw if not column.release]


def missing_refused(names: Iterable[str]) -> str:
    """Why a table is refused that has missing values in these columns."""
    return (
        f"missing values in {listed(names)}, and data.missing_policy is 'error'; fill them, or use 'category' or "
        "'drop'."
    )


def refuse_output(spec: Spec) -> None:
    """Refuse what nobody asked anything of, could not be audited, or would change nothing."""
    refuse_open(spec)
    if faults := [*unasked(spec).values(), *_uncompared(spec)]:
        raise SpecError(faults)
    if OUTPUT.is_changed(spec.output, "populations"):
        raise SpecError(
            ["output.populations is of a tree that is published itself; for the table that it stands for, remove it."]
        )
    if spec.output.values == Values.REPRESENTATIVE and spec.of_role(Role.ENTITY):
        raise SpecError(
            ["output.values = 'representative' tells no regions, so entities could not be audited; use labels."]
        )
    for name, value in (("regions", "observed"), ("intervals", "closed")):
        if getattr(spec.output, name) == value and spec.output.values != Values.LABELS:
            raise SpecError([f"output.{name} = '{value}' changes labels only; use values = 'labels' with it."])


def _uncompared(spec: Spec) -> list[str]:
    """A fault for each column that says how its dates are written, though nobody compares them."""
    if spec.method.capabilities.grows_tree or spec.workload.selections or spec.workload.query_log:
        return []
    return [
        f"columns.{name}.date_format says how to compare dates, and nothing compares those of a column that is "
        "released as it is; remove it."
        for name, column in spec.columns.items()
        if column.date_format and column.role == Role.INSENSITIVE
    ]


def check_bounds(spec: Spec, schema: Schema) -> None:
    """Names of bounds must not be those of other columns."""
    if spec.output.values == Values.BOUNDS:
        ends = ("lower", "upper", "missing")
        bounds = {f"{column.name}_{end}" for column in schema.quasi_identifiers for end in ends}
        if taken := sorted(bounds & {column.name for column in schema.columns}):
            fault = f"output.values = 'bounds' needs the column names {listed(taken)} for itself; rename them."
            raise SpecError([fault])


def _target_requests(targets: Iterable[TargetSpec]) -> tuple[TargetRequest, ...]:
    return tuple(
        TargetRequest(target.column, target.classes, target.equal_width, target.weight, target.scale, target.model)
        for target in targets
    )


def demands_of(spec: Spec) -> Demands:
    """What every group must hold."""
    privacy = spec.privacy
    diversity = tuple(DiversityRequest(demand.column, demand.model, demand.parameters) for demand in privacy.diversity)
    several = tuple(QuasiIdentifier(entry.columns, entry.k or privacy.k) for entry in privacy.quasi_identifiers)
    capped = _target_requests(spec.capped_targets)
    return Demands(privacy.k, diversity, privacy.max_confidence, capped, spec.method.criterion, several)


def refining_of(spec: Spec) -> Refining | None:
    """How columns are refined, from one part each; None where regions are split by Mondrian."""
    method = spec.method
    if not method.capabilities.refines:
        return None
    return Refining(
        "score" if method.objective.against_loss else "infogain",
        method.average,
        method.suppression,
        method.zero_gain,
        method.time_budget,
    )


def start_recoding(spec: Spec) -> Recoding | None:
    """The recoding that refining begins with; a path starts at the spec's folder."""
    given = spec.method.start
    if given is None or isinstance(given, Recoding):
        return given
    return read_recoding((spec.folder or Path()) / given)


def tree_of(spec: Spec) -> TreeRequest | None:
    """The tree that is asked for; None where regions are found otherwise."""
    method, privacy = spec.method, spec.privacy
    if not method.capabilities.grows_tree:
        return None
    variant = Variant(method.variant)
    default = 0.25 if variant == Variant.C45 else 0.0
    pruning = default if method.pruning is None else method.pruning
    asked = [float(demand.parameters["l"]) for demand in privacy.diversity]
    return TreeRequest(
        _target_requests(spec.targets)[0],
        Demand(privacy.k, max(asked, default=1.0), privacy.max_confidence),
        Growing(variant, pruning or None, method.max_spans, method.cut_points),
        privacy.class_is_public,
    )


def workload_of(spec: Spec) -> Workload:
    """What the release is for."""
    method, asked = spec.method, spec.workload
    return Workload(
        targets=_target_requests(spec.targets),
        denoise=spec.denoises,
        selections=asked.selections,
        weights=asked.weights if method.objective.clusters else spec.weights,
        weights_from=asked.weights_from,
        features=asked.features,
        criterion=method.criterion,
        candidates=method.candidates,
        split_on=method.split_on,
        weight_rule=method.weight_rule or "first",
        alpha=method.alpha,
        beta=method.beta,
        gamma=method.gamma,
        min_gain=spec.min_gain,
        seed=method.seed,
        sample_weight=next(iter(spec.of_role(Role.SAMPLE_WEIGHT)), None),
    )
