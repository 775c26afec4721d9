# SPDX-License-Identifier: Apache-2.0
"""What kernels read beside rows: an objective, as which sums a row adds to and how groups with these sums are weighed;
and constraints, as the demands of privacy models on the values of sensitive columns. And their working memory, one per
thread, so that no node allocates any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import SplitObjective, WeightRule
from anonfit.criteria.targets import (
    SHARE_BITS,
    ClassTarget,
    Impurity,
    NumberTarget,
    ShareTarget,
    Sums,
    Target,
    by_entropy,
)
from anonfit.engines.memory import layout
from anonfit.engines.memory.layout import BIN, NARROW, SIZE, SPAN, Columns, Packing, Rows, describe
from anonfit.privacy.models import DiversityModel, SensitiveColumn
from anonfit.runtime.compiling import shared
from anonfit.tables.schema import CodedTable, SplitMode, code_dtype

# Entries of KernelObjective.settings.
SLOTS = 0  # sums that are kept of every code
LEAN = 1  # classes of the first target where they add up to the persons, which are then no sum of their own; else 0
ALL_CUTS = 2
RULE = 3
MASS = 4  # the first bit of a row's mass, -1 where it is its persons

# Rows of KernelObjective.targets, one entry per target.
KIND = 0
SLOT = 1  # its first sum
CLASSES = 2  # how many classes it has; measured by SURPRISE, twice as many: the expected and the own ones
TARGET_BIT = 3  # where it begins in the row
TARGET_MASK = 4
ITSELF = 5  # the quasi-identifier it is, or -1
MEASURED = 6  # its Impurity; SURPRISE of numbers: the own ones are summed, too
CLASS, SHARE, NUMBER = 0, 1, 2

# Rows of KernelObjective.factors.
FACTOR, UNIT = 0, 1

# Entries of KernelObjective.numbers.
ALPHA, MIN_GAIN, LARGEST, PER_MASS, BETA, GAMMA = 0, 1, 2, 3, 4, 5

LOGS = 1 << 18
"""Entries of the table of x ln x."""


class KernelObjective(NamedTuple):
    """What steers splits. With no targets there is one sum, persons, and columns are preferred by their spread."""

    settings: NDArray[np.int64]
    targets: NDArray[np.int64]  # (fact, target)
    factors: NDArray[np.float64]  # (fact, target)
    weights: NDArray[np.float64]  # (column,) below 0: may not be split
    numbers: NDArray[np.float64]
    logs: NDArray[np.float64]  # x ln x of whole numbers


def _target_values(target: Target) -> list[tuple[NDArray[Any], int]]:
    """The values of a target's fields, and how many bytes each needs."""
    if isinstance(target, ClassTarget):
        return [(target.classes, code_dtype(target.width).itemsize)]
    if isinstance(target, NumberTarget):
        numbers = [target.multiples] if target.own is None else [target.multiples, target.own]
        return [(own.astype(np.int32).view(np.uint32), 4) for own in numbers]
    assert isinstance(target, ShareTarget)
    return [(target.shares[:, label], 2) for label in range(target.width)]


def _masses(purpose: SplitObjective, table: CodedTable) -> NDArray[np.int64]:
    if purpose.masses is not None:
        return purpose.masses.astype(np.int64)
    return np.ones(table.rows, np.int64) if table.counts is None else table.counts.astype(np.int64)


def _whole(target: Target, masses: NDArray[np.int64], *, by_row: bool) -> Sums:
    """The sums of a target over the table; `by_row`: each row has mass 1."""
    if isinstance(target, ClassTarget):
        if by_row and target.width == 2:  # much sooner than counting bins
            second = np.count_nonzero(target.classes)
            return np.array([len(target.classes) - second, second], np.int64)
        weights = None if by_row else masses
        return np.bincount(target.classes, weights=weights, minlength=target.width).astype(np.int64)
    if isinstance(target, ShareTarget):
        return masses @ target.shares
    assert isinstance(target, NumberTarget)
    values = target.multiples
    own = () if target.own is None else (masses @ target.own,)
    return np.array([masses.sum(), masses @ values, masses @ (values * values), *own], dtype=np.int64)


class Whole(NamedTuple):
    """What a purpose must know of the whole table: its columns and rows, their mass, and the sums of each target."""

    columns: int
    rows: int
    mass: int
    sums: tuple[Sums, ...]


def whole_of(purpose: SplitObjective, table: CodedTable) -> Whole:
    """What a purpose must know of a table."""
    masses = _masses(purpose, table) if purpose.targets else np.zeros(0, np.int64)
    by_row = purpose.masses is None and table.counts is None
    sums = tuple(_whole(target, masses, by_row=by_row) for target in purpose.targets)
    return Whole(len(table.columns), table.rows, int(masses.sum()), sums)


def make_objective(purpose: SplitObjective, whole: Whole, packing: Packing) -> KernelObjective:
    """The kernels' form of a purpose."""
    targets = purpose.targets
    lean = purpose.masses is None and bool(targets) and by_entropy(targets[0])
    slots = 0 if lean else 1 + (purpose.masses is not None)
    facts = np.zeros((7, len(targets)), np.int64)
    units = np.zeros(len(targets))
    for index, target in enumerate(targets):
        field = layout.target_names(index, target)[0]
        facts[[TARGET_BIT, TARGET_MASK], index] = packing.bit(field), packing.mask(field)
        facts[SLOT, index], facts[ITSELF, index] = slots, target.column
        facts[MEASURED, index] = getattr(target, "measured_by", Impurity.ENTROPY)
        facts[KIND, index], facts[CLASSES, index], units[index] = _shape(target, purpose.unit)
        has_own = facts[MEASURED, index] == Impurity.SURPRISE
        slots += facts[CLASSES, index] if facts[KIND, index] != NUMBER else 2 + has_own
    weights = np.array(purpose.weights or [1.0] * whole.columns, np.float64)
    largest = float(weights.max(initial=0.0))
    weights[[column for column in range(whole.columns) if not purpose.may_split(column)]] = -1.0
    factors = purpose.factors(whole.sums, whole.mass) if targets else ()
    rule = purpose.rule if purpose.weights else WeightRule.NONE
    classes, mass = facts[CLASSES, 0] if lean else 0, packing.bit(layout.MASS)
    return KernelObjective(
        settings=np.array([slots, classes, purpose.all_cuts, rule, mass], np.int64),
        targets=facts,
        factors=np.stack([np.array(factors, dtype=np.float64), units]),
        weights=weights,
        numbers=np.array(
            [purpose.alpha, purpose.least_gain(factors), largest, purpose.unit, purpose.beta, purpose.gamma], np.float64
        ),
        logs=x_log_x(min(LOGS, max(whole.mass, whole.rows) + 1)),
    )


def _shape(target: Target, unit: float) -> tuple[int, int, float]:
    """A target's kind, its classes, and what its sums are multiplied by."""
    if isinstance(target, ClassTarget):
        return CLASS, target.width, unit
    if isinstance(target, ShareTarget):
        return SHARE, target.shares.shape[1], unit / (1 << SHARE_BITS)
    assert isinstance(target, NumberTarget)
    return NUMBER, 1, unit * target.scale.step * target.scale.step


def x_log_x(size: int) -> NDArray[np.float64]:
    """x ln x of the whole numbers below a size."""
    numbers: Any = np.arange(size, dtype=np.float64)
    numbers[1:] *= np.log(numbers[1:])
    return np.asarray(numbers, dtype=np.float64)


# Rows of KernelConstraints.models, one entry per model.
KERNEL = 0  # the number of its kernel
ATTRIBUTE = 1  # its sensitive column
LEAST = 2  # a whole number that it asks for
BEGIN, END = 3, 4  # its runs of values

# Rows of KernelConstraints.sensitive, one entry per sensitive column.
SENSITIVE_BIT = 0  # where it begins in the row
SENSITIVE_MASK = 1
SENSITIVE_SIZE = 2
VALUE = 3  # the first of its values among those of all columns
UNKNOWN = 4  # 1 where value 0 is the missing one

OWN_ROWS, ABSENT = -1, -2
"""In KernelConstraints.taken: models read the node's own rows; or these are elsewhere, and cannot be tested yet."""

GROUP_LOGS = 1 << 14
"""Entries of the table of x ln x for groups: most have fewer persons."""


class KernelConstraints(NamedTuple):
    """What groups must hold beside k persons."""

    models: NDArray[np.int64]  # (fact, model)
    limits: NDArray[np.float64]  # (model,)
    sensitive: NDArray[np.int64]  # (fact, sensitive column)
    shares: NDArray[np.float64]  # (value of any column,) of the whole table
    bounds: NDArray[np.float64]  # (model, value of any column) how far its share may grow, in proportion
    numbers: NDArray[np.int64]  # (value of any column,)
    units: NDArray[np.float64]  # (2, sensitive column) the square of what 1 stands for, and how far numbers are off
    runs: NDArray[np.int64]  # (first and last, run of values)
    charges: NDArray[np.float64]  # (run,)
    logs: NDArray[np.float64]  # x ln x of whole numbers
    taken: NDArray[np.int64]  # (first and after the last, column) rows that stand for a node's rows that are elsewhere


@dataclass(frozen=True, slots=True)
class Constraint:
    """A sensitive column, the code of each row, and the models that it must meet. codes: (row,)."""

    column: SensitiveColumn
    codes: NDArray[np.uint32]
    models: tuple[DiversityModel, ...]


def make_constraints(constraints: Sequence[Constraint], packing: Packing, width: int) -> KernelConstraints:
    """The kernels' form of some constraints on a table of `width` columns."""
    columns = [constraint.column for constraint in constraints]
    sizes = np.array([column.size for column in columns], np.int64)
    sensitive = np.zeros((5, len(constraints)), np.int64)
    sensitive[SENSITIVE_SIZE], sensitive[VALUE] = sizes, np.cumsum(sizes) - sizes
    for index, column in enumerate(columns):
        field = layout.sensitive_name(index)
        sensitive[[SENSITIVE_BIT, SENSITIVE_MASK], index] = packing.bit(field), packing.mask(field)
        sensitive[UNKNOWN, index] = column.has_missing
    numbers = [np.zeros(column.size, np.int64) if column.numbers is None else column.numbers for column in columns]
    asked = [(index, model) for index, constraint in enumerate(constraints) for model in constraint.models]
    models = np.zeros((5, len(asked)), np.int64)
    limits = np.zeros(len(asked))
    bounds = np.zeros((len(asked), int(sizes.sum())))
    runs, charges = [np.zeros((2, 0), np.int64)], [np.zeros(0)]
    used = 0
    for place, (index, model) in enumerate(asked):
        models[KERNEL, place], models[ATTRIBUTE, place] = model.kernel, index
        models[LEAST, place], limits[place] = model.limits()
        if (of_runs := model.value_runs()) is not None:
            firsts, lasts, weights = of_runs
            runs.append(np.stack([firsts, lasts]))
            charges.append(weights)
            models[[BEGIN, END], place] = used, used + len(weights)
            used += len(weights)
        if (of_values := model.value_bounds()) is not None:
            first = int(sensitive[VALUE, index])
            bounds[place, first : first + model.column.size] = of_values
    return KernelConstraints(
        models=models,
        limits=limits,
        sensitive=sensitive,
        shares=np.concatenate([column.shares for column in columns]),
        bounds=bounds,
        numbers=np.concatenate(numbers),
        units=np.array(
            [
                [1.0 if column.scale is None else column.scale.step**2 for column in columns],
                [column.rounding for column in columns],
            ]
        ),
        runs=np.concatenate(runs, axis=1),
        charges=np.concatenate(charges),
        logs=x_log_x(GROUP_LOGS),
        taken=np.full((2, width), OWN_ROWS, np.int64),
    )


class KernelForms(NamedTuple):
    """What kernels read beside rows: the columns, the objective, and the constraints if there are any."""

    columns: Columns
    objective: KernelObjective
    constraints: KernelConstraints | None

    def shared(self) -> KernelForms:
        """The structures that kernels are given in place of these tuples."""
        constraints = None if self.constraints is None else shared(self.constraints)
        return KernelForms(shared(self.columns), shared(self.objective), constraints)


# Rows of Scratch.lists.
CODES = 0  # codes present in the node, ascending
PERSONS = 1  # persons of each
STARTS = 2  # first code of each element that may be cut off
OWN = 3  # persons of each element, every row counted on its own
LEFT = 4  # persons of this and lower elements, in the order of the elements
RIGHT = 5  # persons of higher elements
PARTS = 6  # first code of each part of the chosen split
SIZES = 7  # persons of each part, every row counted on its own
ENDS = 8  # last code of each element
ORDER = 9  # elements in the order in which they are cut
RANK = 10  # the place of each element in that order
LEGAL = 11  # 1 where a cut after the element in this place is legal
SPARE = 12
LISTS = 13

# Rows of Scratch.splits.
SPREAD = 0  # normalized range in the node, -1 where the column cannot be split
COST = 1  # cost of the column's best split, infinite where it has none
CUT = 2  # the place after which it is cut (multiway: 0, or 1 where missing is joined with the first child)
WAY = 3  # the target whose order of elements it is cut in
STATE = 4  # whether every cut was held against the privacy models
CHANCE = 5  # the number that chance gives the column at the node, where a rule draws
TOGETHER = 6  # the share of all pairs of rows that the column's split leaves together, where a rule asks for it
FACTS = 7


HISTOGRAMS = 64
"""Histograms a subtree keeps at once: enough for two-way splits of any depth; wider splits may count a node again."""
ENTRIES = 1 << 22
"""Entries that these histograms may have in all."""


class Scratch(NamedTuple):
    """Working memory of one thread."""

    lists: NDArray[np.int64]  # (list, entry)
    sums: NDArray[np.int64]  # the sums of each code, then those of each element
    dense: NDArray[np.int64]  # the sums of each code of the widest column; all zero between uses
    keys: NDArray[np.uint64]  # (2, row) keys and their sorted copy
    splits: NDArray[np.float64]  # (fact, column) what is known of the best split of each column
    below: NDArray[np.int64]  # the sums of each side of a cut
    above: NDArray[np.int64]
    whole: NDArray[np.int64]  # the sums of the node
    places: NDArray[np.int64]  # (1,) where the sums of a row's code begin
    means: NDArray[np.float64]  # (entry,) what elements are ordered by
    histograms: NDArray[np.int64]  # (histogram, sum of a bin) of the nodes of a subtree
    span: NDArray[np.int64]  # (fact, column) of the node at hand
    tile: NDArray[np.uint8]  # of the node at hand
    side: NDArray[np.uint8]  # (code,) 0 for codes of the first part of a set split, 1 for others
    tallies: NDArray[np.int64]  # (side, value of any sensitive column) persons; all zero between uses
    totals: NDArray[np.int64]  # (side, fact, sensitive column)
    logs: NDArray[np.float64]  # (side, sensitive column) sum of x ln x of the tallies, nearly


LINE = 128
"""Bytes that no two threads should write to: two lines of the cache, since a processor may fetch them together."""


def apart(shape: int | tuple[int, ...], kind: Any) -> NDArray[Any]:
    """Zeros in memory of their own: threads whose sums were neighbours would wait for each other all the time."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    own: NDArray[Any] = np.zeros(size + 2 * LINE, np.uint8)[LINE : LINE + size].view(kind)
    return own.reshape(shape)


def make_scratch(forms: KernelForms, rows: int) -> Scratch:
    """Working memory for nodes of at most `rows` rows."""
    columns, objective, constraints = forms
    size = columns.facts[SIZE]
    wide = size[columns.facts[BIN] < 0]
    entries = int(size.max(initial=1)) + 2
    width = int(objective.settings[SLOTS])
    values, sensitive = (0, 0) if constraints is None else (constraints.shares.shape[0], constraints.sensitive.shape[1])
    length = columns.bins * width
    keys = max(1, rows) if constraints else max(1, min(rows, 1 << 20)) if len(wide) else 1
    return Scratch(
        lists=apart((LISTS, entries), np.int64),
        sums=apart(2 * entries * width, np.int64),
        dense=apart(int(wide.max(initial=1)) * width, np.int64),
        keys=apart((2, keys), np.uint64),
        splits=apart((FACTS, size.shape[0]), np.float64),
        below=apart(width, np.int64),
        above=apart(width, np.int64),
        whole=apart(width, np.int64),
        places=apart(1, np.int64),
        means=apart(entries, np.float64),
        histograms=apart((max(4, min(HISTOGRAMS, ENTRIES // max(length, 1))), length), np.int64),
        span=apart((SPAN, size.shape[0]), np.int64),
        tile=apart(columns.tile, np.uint8),
        side=apart(entries, np.uint8),
        tallies=apart((2, values), np.int64),
        totals=apart((2, 5, sensitive), np.int64),
        logs=apart((2, sensitive), np.float64),
    )


class NodeView(NamedTuple):
    """A node as kernels see it: its rows and their histogram, its span and tile, and all that is read beside them."""

    rows: Rows
    columns: Columns
    objective: KernelObjective
    scratch: Scratch
    k: int
    start: int
    stop: int
    histogram: Any
    span: NDArray[np.int64]
    tile: NDArray[np.uint8]


def tiled_modes(purpose: SplitObjective) -> set[SplitMode]:
    """The modes whose columns are divided into sets, so that nodes must keep the codes they hold."""
    modes = {SplitMode.BINARY} if purpose.targets else set()
    return modes if purpose.selections is None else {SplitMode.BINARY, SplitMode.SUBSET}


def packing_of(table: CodedTable, purpose: SplitObjective, constraints: Sequence[Constraint]) -> Packing:
    """How rows are packed. The table's own fields come first: kernels read codes of one byte in one go."""
    fields = layout.table_fields(table)
    if purpose.masses is not None:
        fields[layout.MASS] = purpose.masses, 4
    for index, target in enumerate(purpose.targets):
        fields.update(zip(layout.target_names(index, target), _target_values(target), strict=True))
    for index, constraint in enumerate(constraints):
        fields[layout.sensitive_name(index)] = constraint.codes, code_dtype(constraint.column.size).itemsize
    return Packing(fields)


def sorted_column(table: CodedTable, purpose: SplitObjective, constraints: Sequence[Constraint]) -> int:
    """The column in whose order rows are to be packed, -1 for none: that of most values which is ordered and wide, if
    each row is one person, and splits are weighed by one target of two classes alone.
    """
    by_row = table.counts is None and table.entities is None and not constraints
    if not by_row or purpose.masses is not None or purpose.selections is not None or len(purpose.targets) != 1:
        return -1
    [target] = purpose.targets
    if not isinstance(target, ClassTarget) or not by_entropy(target) or target.width != 2:
        return -1
    sizes = [
        column.size if column.mode == SplitMode.ORDERED and purpose.may_split(index) and index != target.column else 0
        for index, column in enumerate(table.columns)
    ]
    return int(np.argmax(sizes)) if max(sizes, default=0) > NARROW else -1


def kernel_forms(
    table: CodedTable,
    purpose: SplitObjective,
    constraints: Sequence[Constraint],
    whole: Whole,
    *,
    narrow_size: int = NARROW,
) -> tuple[Packing, KernelForms]:
    """How rows are packed, and what kernels read beside them."""
    packing = packing_of(table, purpose, constraints)
    return packing, KernelForms(
        describe(table, packing, tiled=tiled_modes(purpose), narrow_size=narrow_size),
        make_objective(purpose, whole, packing),
        make_constraints(constraints, packing, len(table.columns)) if constraints else None,
    )
