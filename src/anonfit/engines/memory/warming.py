# SPDX-License-Identifier: Apache-2.0
"""Every kernel called once on a small table, so that it is compiled or loaded before it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from anonfit.criteria.objectives import MEDIAN, SplitObjective
from anonfit.criteria.targets import CodedSelections
from anonfit.engines.memory.boosting import MOST_LEAVES, Feature, make_trees
from anonfit.engines.memory.boosting_fitting import BoostingExamples, BoostingSettings, fit
from anonfit.engines.memory.boosting_losses import ManyShares, TwoShares
from anonfit.engines.memory.candidates import find_elements, find_spreads
from anonfit.engines.memory.cutting import weigh_multiway, weigh_two_way
from anonfit.engines.memory.engine import Grower, Growth, WaitingNode, grow, root_span
from anonfit.engines.memory.forms import PARTS, SIZES, Constraint, NodeView
from anonfit.engines.memory.refining import FEW, Groups, count_by_class
from anonfit.engines.memory.refining_kernels import Refinement
from anonfit.engines.memory.route import make_routes, route_packed
from anonfit.engines.memory.selecting import Split
from anonfit.engines.memory.splitting import write_parts
from anonfit.engines.memory.write import order_rows
from anonfit.engines.tree import Tree
from anonfit.privacy.diversity import DistinctL
from anonfit.privacy.models import SensitiveColumn
from anonfit.runtime import compiling
from anonfit.tables.schema import CodedColumn, CodedTable, Codes, SplitMode, code_dtype
from anonfit.tables.taxonomy import Taxonomy

ROWS = 4 * FEW
"""So many that the rows of one code are found by it."""


def use_refining(
    constraints: Sequence[Constraint] = (), sizes: Sequence[int] = (1 << 8, 1 << 16), *, entities: bool = False
) -> None:
    """Refine columns of each kind, of so many values, and with models of sensitive columns of ROWS rows. What columns
    of more than 65,536 values, and persons of several rows (`entities`), need beside is compiled when they come.
    """
    modes = (SplitMode.ORDERED, SplitMode.SUBSET)
    columns = tuple(CodedColumn("column", size, mode, False, np.zeros(size)) for mode in modes for size in sizes)
    codes: list[Codes] = []
    for row, column in enumerate(columns):
        codes.append(np.zeros(ROWS, code_dtype(column.size)))
        codes[-1][row] = 1
    persons = np.arange(ROWS, dtype=np.uint32) if entities else None
    table = CodedTable(columns, tuple(codes), ROWS, entities=persons)
    count_by_class(table, np.zeros(ROWS, np.int64), None)
    groups = Groups(table, [tuple(range(len(columns)))], constraints=constraints, threads=1)
    both = np.arange(2, dtype=np.int32)
    for index, column in enumerate(columns):
        by_value = column.mode == SplitMode.SUBSET
        slots = np.resize(both, column.size)
        groups.watch(index, slots, 2, by_value=by_value)
        groups.least(0, index, 2)
        moving, slot = (range(1, 2), 1) if by_value else (range(2), -1)
        refinement = Refinement(index, 0, slots, both + (0 if by_value else 1), moving, disclosed=slot)
        divisions = groups.divide(refinement)
        groups.allowed(refinement, divisions)
        groups.refine(refinement, divisions)
    nodes = np.zeros(ROWS, np.int32)
    order_rows(nodes, np.arange(ROWS), np.arange(ROWS, dtype=np.uint32), 1, np.zeros((1, ROWS), np.uint64))


def _mark(models: bool, refining: bool) -> str:
    """The file that stands in the cache once all is compiled; kernels that hold groups against models are compiled
    apart, and so are those of top-down refinement.
    """
    return ("refining-" if refining else "") + ("compiled-with-models" if models else "compiled")


def _table() -> CodedTable:
    columns = (
        CodedColumn("ordered", 2, SplitMode.ORDERED, False, np.arange(2.0)),
        CodedColumn("nominal", 2, SplitMode.MULTIWAY, False, np.zeros(2), Taxonomy.flat(["a", "b"])),
    )
    codes = np.array([0, 0, 1, 1], np.uint8)
    return CodedTable(columns, (codes, codes), 4)


def _constraints(models: bool, rows: int = 4) -> list[Constraint]:
    if not models:
        return []
    sensitive = SensitiveColumn("sensitive", 2, False, np.array([rows // 2, rows // 2]))
    codes = (np.arange(rows) >= rows // 2).astype(np.uint32)
    return [Constraint(sensitive, codes, (DistinctL(sensitive, 1),))]


class _GivenSplit(Grower):
    """Grows without choosing: the root's split is given."""

    def choose(self, node: WaitingNode, view: NodeView) -> Split:  # noqa: ARG002  nothing is looked at
        if node.number > 0:
            return -1, 0, -1, 0
        self.scratch.lists[[PARTS, SIZES], :2] = [[0, 1], [2, 2]]
        return 0, 2, 0, 0


def _compile(function: Any, *examples: Any) -> None:
    """Compile a function for the types of such arguments."""
    import numba

    typeof: Any = numba.typeof
    function.compile(tuple(typeof(example) for example in examples))


def warm_weighing(*, models: bool = False) -> None:
    """Compile half of what chooses splits, and use what moves rows. The other half is `warm_finding`: a second process
    can do one while the first does the other.
    """
    with _grower(models) as grower:
        view, constraints = _view(grower), grower.shared_forms.constraints
        _compile(weigh_two_way, view, constraints, 1, 2, 0, 1.0)
        grower.tree(0)


def warm_finding(*, models: bool = False) -> None:
    """Compile the other half, and use what comes after growing."""
    with _grower(models) as grower:
        view = _view(grower)
        _compile(find_spreads, view, np.zeros(1))
        _compile(find_elements, view, 1)
        _compile(weigh_multiway, view, 1, 2, 0, 1.0)
        _compile(write_parts, view, 1, 2, 0)
        nowhere = np.full(1, -1, np.int32)
        tree = Tree(nowhere, np.zeros(1, np.int32), np.zeros(1, np.int32), nowhere, nowhere, ())
        _use(Growth(tree, grower.buffers[0], grower.columns, np.zeros(1, np.int64)))


def _view(grower: Grower) -> NodeView:
    """The node of all rows as kernels see it."""
    root = grower.root(*root_span(grower.columns), 0)
    return grower.view(root, grower.shared_buffers[0], 0, 4, root.histogram)


@contextmanager
def _grower(models: bool) -> Iterator[Grower]:
    grower = _GivenSplit.of_table(_table(), 2, MEDIAN, _constraints(models), 2, 1)
    try:
        yield grower
    finally:
        grower.close()


def _use(growth: Growth) -> None:
    """Use what comes after growing."""
    cells = [np.arange(2, dtype=np.int32)] * 2
    nodes = route_packed(growth.rows, growth.columns, make_routes(growth.tree, cells, [2, 2]))
    order_rows(nodes, np.arange(len(nodes)), growth.numbers, len(growth.tree.column), np.zeros((1, 4), np.uint64))


def warm_up(*, models: bool = False) -> None:
    """Use every kernel once."""
    constraints = _constraints(models)
    grow(_table(), 2, constraints=constraints, threads=1)  # one thread grows a subtree, several split a node together
    _use(grow(_table(), 2, constraints=constraints, threads=2, subtree=1))
    _put_mark(_mark(models, refining=False))


def warm_selecting() -> None:
    """Use every kernel that splits for selections once."""
    table = _table()
    rectangle, always = np.array([[1, 0, 1, 0]], np.uint8), np.ones((1, 1), np.uint8)
    asked = CodedSelections(
        rectangle, np.zeros(1, np.int64), np.ones(1), np.zeros(table.rows, np.int64), always, np.zeros(4, np.uint8)
    )
    grow(table, 2, SplitObjective(selections=asked), threads=1)


def warm_boosting() -> None:
    """Use every kernel of gradient boosting once."""
    examples = BoostingExamples(np.zeros((3, 1), np.uint8), np.arange(3.0), np.ones(3))
    settings = BoostingSettings(1, 1.0, 2, 1, 1.0, 1)
    for loss in (TwoShares(), ManyShares(3)):
        grown = fit(examples, examples, [1], [False], loss, settings)
        trees = grown.leaves.reshape(-1, MOST_LEAVES)
        leaves = Feature(0, np.zeros(1, np.int64), grown.left.reshape(len(trees), -1))
        make_trees([leaves], trees, grown.start).sums([np.zeros(1, np.int64)])


def warm_refining(*, models: bool = False) -> None:
    """Use every kernel of top-down refinement once."""
    use_refining(_constraints(models, ROWS))
    _put_mark(_mark(models, refining=True))


def _put_mark(name: str) -> None:
    folder = compiling.own("engines")
    if folder is not None:
        with suppress(OSError):
            (folder.path / name).touch()


def is_compiled(*, models: bool = False, refining: bool = False) -> bool:
    """Whether the kernels are compiled, when the package was built or later."""
    folders = compiling.brought("engines"), compiling.own("engines")
    return any(folder is not None and (folder.path / _mark(models, refining)).exists() for folder in folders)
