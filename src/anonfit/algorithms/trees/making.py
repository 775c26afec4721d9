# SPDX-License-Identifier: Apache-2.0
"""From the rows and roles of a table to a k-anonymous tree, and to the table that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.coding import TableCoding
from anonfit.algorithms.result import Anonymized
from anonfit.algorithms.top_down import placed
from anonfit.algorithms.trees import building
from anonfit.algorithms.trees.building import BuiltTree, Growing, Training, build_tree
from anonfit.algorithms.trees.growing import Demand
from anonfit.algorithms.trees.tree import ClassName, DecisionTree
from anonfit.engines.contract import CountRequest, Engine, OutOfCore, out_of_core
from anonfit.engines.memory.layout import code_name, target_name
from anonfit.engines.tree import LEAF, Tree
from anonfit.errors import DataError, SpecError, counted
from anonfit.recoding.columns import interval_label
from anonfit.recoding.recoding import Recoding
from anonfit.runtime.process import Stage, silent
from anonfit.tables.codebook import typed
from anonfit.tables.schema import Column, Domain, Persons, Role, Schema, code_dtype
from anonfit.workload.targets import TargetRequest, is_numeric

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Classes:
    """The class of each row, as a place among the names."""

    of_row: NDArray[np.int32]
    names: tuple[ClassName, ...]


def classes_of_target(
    request: TargetRequest, column: Column, values: pl.Series, times: NDArray[np.int64] | None = None
) -> Classes:
    """The classes of a target, which all rows must have; `times` says how many rows have each value, if not one."""
    import polars as pl

    gaps = int(Persons(len(values), times).of_groups(values.is_null().to_numpy().astype(np.int64), 2)[1])
    if gaps:
        raise DataError(
            f"the target '{request.column}' has {counted(gaps, 'missing value')}, and a tree can learn nothing from a "
            "row without a class; leave those rows out, or fill them."
        )
    if request.classes:
        numbers = typed(column, values).cast(pl.Float64, strict=False)
        if numbers.null_count():
            raise DataError(f"the target '{request.column}' has classes by numbers, and does not hold numbers.")
        edges = np.array(request.classes, np.float64)
        ends: Sequence[str | None] = [None, *(f"{edge:.15g}" for edge in edges.tolist()), None]
        names_of_classes = tuple(interval_label(low, high) for low, high in pairwise(ends))
        return Classes(np.searchsorted(edges, numbers.to_numpy(), side="right").astype(np.int32), names_of_classes)
    if is_numeric(request, column, values):
        raise SpecError(
            [
                f"method.algorithm = 'tree': the target '{request.column}' is a number; give it classes, or "
                "type = 'nominal'."
            ]
        )
    plain = values if values.dtype.is_integer() or values.dtype in (pl.Boolean, pl.String) else _texts(values)
    names = plain.unique().sort()
    of_row = plain.replace_strict(names, np.arange(len(names)), return_dtype=pl.Int32)
    return Classes(of_row.to_numpy().astype(np.int32), tuple(names.to_list()))


def _texts(values: pl.Series) -> pl.Series:
    """Values as names; whole numbers without a point."""
    import polars as pl

    if values.dtype.is_float():
        whole = values.cast(pl.Int64, strict=False)
        if not whole.null_count() and bool((whole == values).all()):
            return whole
    return values.cast(pl.String)


Box = tuple[tuple[int, int], ...]
"""The first and last cell of every public column."""


@dataclass(slots=True)
class _Part:
    """A part of the public domain: its box, the rows in it, and the nodes of the tree that it can still come to."""

    box: Box
    rows: NDArray[np.int64]
    waiting: list[int]
    column: int = LEAF
    parts: list[_Part] = field(default_factory=list)


def public_recoding(tree: DecisionTree, cells: Sequence[NDArray[np.int32]]) -> tuple[Recoding, NDArray[np.int32]]:
    """The tiling of the public domain by the spans of a tree, and the node of each training row in it; `cells` has, for
    each column of the tree, the cell of each row. Parts of the domain that no row is in are not divided further.
    """
    nodes = tree.nodes
    assert not (nodes.set_of >= 0).any(), "a tree divides columns by runs of cells"
    places = [index for index, name in enumerate(tree.columns) if name in tree.public]
    columns = tuple(tree.tiling.columns[index] for index in places)
    public_cells = [cells[index] for index in places]
    place_of = {index: place for place, index in enumerate(places)}
    rows = len(cells[0]) if cells else 0
    root = _Part(tuple((0, column.size - 1) for column in columns), np.arange(rows), [0])
    order = [root]
    for part in order:
        _divide(part, nodes, place_of, public_cells)
        order.extend(part.parts)
    nodes_of_rows = np.full(rows, -1, np.int32)
    for number, part in enumerate(order):
        if not part.parts:
            nodes_of_rows[part.rows] = number
    return Recoding(columns, _tree_of(order)), nodes_of_rows


def _divide(part: _Part, nodes: Tree, place_of: dict[int, int], cells: Sequence[NDArray[np.int32]]) -> None:
    """Divide a part by the first public test whose answer it does not know."""
    first_child = nodes.first_child
    while part.waiting and len(part.rows):
        node = part.waiting.pop()
        column, count, first = int(nodes.column[node]), int(nodes.children[node]), int(first_child[node])
        if column == LEAF:
            continue
        if column not in place_of:
            part.waiting.extend(range(first + count - 1, first - 1, -1))
            continue
        place = place_of[column]
        starts = nodes.start[first + 1 : first + count]
        low, high = part.box[place]
        least, most = (int(np.searchsorted(starts, cell, side="right")) for cell in (low, high))
        if least == most:
            part.waiting.append(first + least)
            continue
        goes = np.searchsorted(starts, cells[place][part.rows], side="right")
        for child, (begin, end) in enumerate(pairwise([low, *starts[least:most].tolist(), high + 1]), least):
            box = (*part.box[:place], (begin, end - 1), *part.box[place + 1 :])
            part.parts.append(_Part(box, part.rows[goes == child], [*part.waiting, first + child]))
        part.column = place
        return


def _tree_of(order: Sequence[_Part]) -> Tree:
    """The parts, which stand in breadth-first order, as a tree of splits."""
    columns, children = [part.column for part in order], [len(part.parts) for part in order]
    starts = [0, *(child.box[part.column][0] for part in order for child in part.parts)]
    none = [-1] * len(order)
    return Tree(*np.array([columns, children, starts, none, none], np.int32))


@dataclass(frozen=True, slots=True)
class TreeRequest:
    """What is asked of a tree."""

    target: TargetRequest
    demand: Demand
    growing: Growing
    class_is_public: bool = False


def tested_columns(schema: Schema, target: str) -> tuple[Column, ...]:
    """The columns that a tree may test: public ones first, then private ones."""
    private = [column for column in schema.of_role(Role.SENSITIVE, Role.INSENSITIVE) if column.name != target]
    return (*schema.quasi_identifiers, *private)


def target_column(schema: Schema, asked: TreeRequest) -> Column:
    """What is declared of the class."""
    return next(column for column in schema.columns if column.name == asked.target.column)


def make_tree(
    engine: Engine, schema: Schema, asked: TreeRequest, *, kept: Sequence[str] = (), stage: Stage = silent
) -> tuple[BuiltTree, TableCoding]:
    """Grow a tree from an engine's rows, which are coded on the way; out-of-core engines keep the raw columns `kept`
    beside their codes.

    Out of core, the rows that the tree is built from are the groups of rows that are alike in all columns and in their
    class.
    """
    coding = TableCoding(engine, schema)
    if not coding.by_row:
        stage("Finding values")
    target = target_column(schema, asked)
    known = coding.values(target.name)
    with coding.value_errors():
        classes = classes_of_target(asked.target, target, known.frame[target.name], known.times)
    coding.add_class(target_name(0), target.name, classes.of_row, len(classes.names))
    columns = tested_columns(schema, target.name)
    for column in columns:
        building.require_divisible(column, engine.schema[column.name], asked.growing.variant)
    # Of a column without a taxonomy, values that fewer than k persons have are one: a name of a private column that
    # fewer than k persons have would tell that there is such a person.
    domains = coding.code(columns, [asked.demand.k] * len(columns))
    for domain in domains:
        building.require_complete(domain, coding.codes[domain.name], coding.values(domain.name).times)
    if not coding.by_row:
        stage("Coding")
    engine.code(coding.fields, kept)
    codes, labels, times = [coding.codes[domain.name] for domain in domains], classes.of_row, None
    if not coding.by_row:
        codes, labels, times = _groups(out_of_core(engine), domains)
    stage("Growing")
    public = [column.name for column in schema.quasi_identifiers]
    training = Training(domains, codes, labels, public, target.name, classes.names, asked.class_is_public, times)
    return build_tree(training, demand=asked.demand, growing=asked.growing), coding


def _groups(
    engine: OutOfCore, domains: Sequence[Domain]
) -> tuple[list[NDArray[Any]], NDArray[np.int32], NDArray[np.int64]]:
    """The groups of rows that are alike: codes of every column, classes, and how many rows each has."""
    by = (*map(code_name, range(len(domains))), target_name(0))
    [counted] = engine.count([CountRequest((0,), by, ((),))])
    codes = [own.astype(code_dtype(domain.coded().size)) for own, domain in zip(counted.by, domains, strict=False)]
    return codes, counted.by[len(domains)].astype(np.int32), counted.sums[0]


def anonymize_by_tree(
    engine: Engine, schema: Schema, asked: TreeRequest, *, kept: Sequence[str] = (), stage: Stage = silent
) -> Anonymized:
    """The table that a k-anonymous tree stands for: public columns say what the tree makes of them."""
    if asked.class_is_public:  # somebody may know it
        raise SpecError(
            [
                "privacy.class_is_public: in a table the target stands as it is, beside the quasi-identifiers; make "
                "the tree itself with anonfit tree, or let the class be private."
            ]
        )
    built, coding = make_tree(engine, schema, asked, kept=kept, stage=stage)
    if coding.by_row:
        stage("Routing rows")
    recoding, nodes = public_recoding(built.tree, built.cells)
    public = built.domains[: len(recoding.columns)]  # of the columns that are tested, the public ones stand first
    return replace(placed(coding, recoding, nodes, public), steered={asked.target.column: False})
