# SPDX-License-Identifier: Apache-2.0
"""Privacy models in the form that kernels read: the demands on the values of sensitive columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.memory.layout import Packing
from anonfit.engines.memory.objective import x_log_x
from anonfit.privacy.models import DiversityModel, SensitiveColumn
from anonfit.tables.schema import code_dtype

# Rows of KernelConstraints.models, one entry per model.
KIND = 0  # the number of its kernel
COLUMN = 1  # its sensitive column
LEAST = 2  # a whole number that it asks for
BEGIN, END = 3, 4  # its runs of values

# Rows of KernelConstraints.sensitive, one entry per sensitive column.
BIT = 0  # where it begins in the row
MASK = 1
SIZE = 2
VALUE = 3  # the first of its values among those of all columns
UNKNOWN = 4  # 1 where value 0 is the missing one

OWN, ABSENT = -1, -2
"""In KernelConstraints.taken: models read the node's own rows; or there are none to read, and a column cannot be tested
yet.
"""

LOGS = 1 << 14
"""Entries of the table of x ln x: most groups have fewer persons."""


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


def add_constraint_fields(constraints: Sequence[Constraint], packing: Packing) -> tuple[int, ...]:
    """Add the sensitive columns' codes to packed rows; the numbers of their fields."""
    return tuple(
        packing.add(constraint.codes, code_dtype(constraint.column.size).itemsize) for constraint in constraints
    )


def make_constraints(
    constraints: Sequence[Constraint], packing: Packing, fields: tuple[int, ...], width: int
) -> KernelConstraints:
    """The kernels' form of some constraints on a table of `width` columns, once the packing is settled."""
    columns = [constraint.column for constraint in constraints]
    sizes = np.array([column.size for column in columns], np.int64)
    sensitive = np.zeros((5, len(constraints)), np.int64)
    sensitive[SIZE], sensitive[VALUE] = sizes, np.cumsum(sizes) - sizes
    for index, (column, field) in enumerate(zip(columns, fields, strict=True)):
        sensitive[BIT, index], sensitive[MASK, index] = packing.bit(field), packing.mask(field)
        sensitive[UNKNOWN, index] = column.has_missing
    numbers = [np.zeros(column.size, np.int64) if column.numbers is None else column.numbers for column in columns]
    asked = [(index, model) for index, constraint in enumerate(constraints) for model in constraint.models]
    models = np.zeros((5, len(asked)), np.int64)
    limits = np.zeros(len(asked))
    bounds = np.zeros((len(asked), int(sizes.sum())))
    runs, charges = [np.zeros((2, 0), np.int64)], [np.zeros(0)]
    used = 0
    for place, (index, model) in enumerate(asked):
        models[KIND, place], models[COLUMN, place] = model.kernel, index
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
        logs=x_log_x(LOGS),
        taken=np.full((2, width), OWN, np.int64),
    )
