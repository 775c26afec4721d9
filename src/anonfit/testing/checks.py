# SPDX-License-Identifier: Apache-2.0
"""For those who write a privacy model or a criterion: checks of its laws, and of the kernels against its object."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import MEDIAN, SplitObjective
from anonfit.engines.memory.engine import grow
from anonfit.engines.memory.forms import Constraint
from anonfit.engines.tree import Tree
from anonfit.privacy.models import DiversityModel, SensitiveColumn
from anonfit.tables.schema import CodedColumn, CodedTable, SplitMode
from anonfit.testing import reference

FIELDS = ("column", "children", "start", "before", "set_of")


def check_privacy_model(make: Callable[[SensitiveColumn], DiversityModel], *, seeds: Iterable[int] = range(20)) -> None:
    """Check a privacy model: it judges many groups at once as it judges each alone; if it is monotone, two
    groups that may exist may be one; it says why a table is refused; and the kernels grow the regions that it allows.

    Args:
        make: The model for a sensitive column.
        seeds: Of random tables.

    Example:
        >>> from anonfit.privacy.catalogue import make_model
        >>> check_privacy_model(lambda column: make_model(column, "distinct-l", {"l": 2}), seeds=range(3))
    """
    for seed in seeds:
        rng = np.random.default_rng(seed)
        table = _table(rng)
        values = rng.integers(0, int(rng.integers(2, 6)), table.rows)
        names, codes = np.unique(values, return_inverse=True)
        column = SensitiveColumn("sensitive", len(names), False, np.bincount(codes))
        model = make(column)
        _check_laws(model, column, rng)
        if not model.allows(column.whole):
            assert len(model.why_not(column.whole)) > 20, "why_not: a sentence with the table's own figures"
            continue
        constraints = [Constraint(column, codes.astype(np.uint32), (model,))]
        allows = reference.Diverse(codes, column.size, partial(_allows, model))
        expected = reference.grow(table, 2, MEDIAN, diversity=[allows])
        _check_same(
            grow(table, 2, MEDIAN, constraints=constraints, threads=1).tree, expected, f"{model.name}, seed {seed}"
        )


def _allows(model: DiversityModel, counts: NDArray[np.int64]) -> bool:
    return bool(model.allows(counts))


def _check_laws(model: DiversityModel, column: SensitiveColumn, rng: np.random.Generator) -> None:
    shares = rng.random((40, 1, 1))
    groups = rng.binomial(column.whole, shares, (40, 2, column.size)).astype(np.int64)
    groups = groups[(groups.sum(axis=-1) > 0).all(axis=-1)]
    allowed = model.allows(groups)
    assert allowed.shape == groups.shape[:-1], "allows: one verdict for each group"
    for pair, verdicts in zip(groups, allowed, strict=True):
        for group, verdict in zip(pair, verdicts, strict=True):
            assert bool(model.allows(group)) == bool(verdict), f"allows {group.tolist()} alone, or among others"
        if model.is_monotone and verdicts.all():
            assert model.allows(pair.sum(axis=0)), f"monotone: {pair.tolist()} may exist, but not together"
    assert model.figure(groups).shape == allowed.shape, "figure: one number for each group"


def check_criterion(
    make: Callable[[np.random.Generator, CodedTable], SplitObjective], *, seeds: Iterable[int] = range(20)
) -> None:
    """Check that the kernels choose the splits that a criterion asks for: the tree of the plain engine, node for node.

    Args:
        make: The objective for a table, with whatever it needs of its rows.
        seeds: Of random tables.

    Example:
        >>> from anonfit.criteria.targets import ClassTarget
        >>> def infogain(rng, table):
        ...     return SplitObjective(targets=(ClassTarget("died", rng.integers(0, 2, table.rows), 2),))
        >>> check_criterion(infogain, seeds=range(3))
    """
    for seed in seeds:
        rng = np.random.default_rng(seed)
        table = _table(rng)
        objective = make(rng, table)
        expected = reference.grow(table, 2, objective)
        _check_same(grow(table, 2, objective, threads=1).tree, expected, f"seed {seed}")


def _table(rng: np.random.Generator) -> CodedTable:
    """A random table of ordered and nominal columns."""
    rows = int(rng.integers(8, 60))
    columns, codes = [], []
    for number in range(int(rng.integers(1, 4))):
        size = int(rng.integers(2, 9))
        mode = SplitMode.ORDERED if number % 2 == 0 else SplitMode.SUBSET
        columns.append(CodedColumn(f"column{number}", size, mode, False, np.arange(size, dtype=np.float64)))
        codes.append(rng.integers(0, size, rows).astype(np.uint8))
    return CodedTable(tuple(columns), tuple(codes), rows)


def _check_same(tree: Tree, expected: Tree, note: str) -> None:
    same = all(np.array_equal(getattr(tree, name), getattr(expected, name)) for name in FIELDS)
    same &= [codes.tolist() for codes in tree.sets] == [codes.tolist() for codes in expected.sets]
    assert same, f"the kernels grow another tree than the plain engine ({note})"
