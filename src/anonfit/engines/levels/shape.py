# SPDX-License-Identifier: Apache-2.0
"""A coded table without its rows, how rows look to kernels once some of them are here, and where they are released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import ClassTarget, NumberTarget, ShareTarget, Signatures, Target
from anonfit.engines.memory.constraints import Constraint
from anonfit.engines.memory.grower import kernel_forms, packing_of
from anonfit.engines.memory.layout import NARROW, Rows, pack, pack_table
from anonfit.engines.memory.objective import Whole
from anonfit.engines.memory.route import Routes, route_packed
from anonfit.engines.memory.scratch import KernelForms
from anonfit.engines.memory.selecting import Selector
from anonfit.tables.schema import CodedColumn, CodedTable, code_dtype

if TYPE_CHECKING:
    import polars as pl

PERSONS, MASS = "persons", "mass"
NO_SIGNATURES = Signatures()
EVERY = 1 << 62
"""A size that makes every column narrow."""


def code_name(column: int) -> str:
    """The field of a quasi-identifier's codes."""
    return f"code{column}"


def target_name(target: int) -> str:
    """The field of a target."""
    return f"target{target}"


def label_name(target: int) -> str:
    """The field of a target's own values where models say what is expected of rows."""
    return f"label{target}"


def target_names(target: int, what: Target) -> list[str]:
    """The fields of a target: its class or number, or a share of each class."""
    name = target_name(target)
    return [f"{name}_{label}" for label in range(what.width)] if isinstance(what, ShareTarget) else [name]


def sensitive_name(constraint: int) -> str:
    """The field of a sensitive column's codes."""
    return f"sensitive{constraint}"


def signature_name(column: int) -> str:
    """The field of a raw column's classes, by which selections tell rows apart."""
    return f"signature{column}"


@dataclass(frozen=True, slots=True)
class Shape:
    """A coded table without its rows; its purpose and its constraints have none either. `signatures` says what the
    classes of raw columns become for selections.
    """

    columns: tuple[CodedColumn, ...]
    purpose: SplitObjective
    constraints: tuple[Constraint, ...]
    has_counts: bool
    signatures: Signatures = NO_SIGNATURES

    @property
    def weighted(self) -> bool:
        """Whether rows have a mass of their own."""
        return self.purpose.masses is not None

    @property
    def mass(self) -> tuple[str, ...]:
        """The field that rows count by in criteria, as a factor of a sum."""
        return (MASS,) if self.weighted else self.persons

    @property
    def persons(self) -> tuple[str, ...]:
        """The field of a row's persons, as a factor of a sum."""
        return (PERSONS,) if self.has_counts else ()

    @property
    def names(self) -> list[str]:
        """All fields of a row."""
        names = [code_name(column) for column in range(len(self.columns))]
        names += self.persons
        names += [MASS] if self.weighted else []
        names += [name for place, target in enumerate(self.purpose.targets) for name in target_names(place, target)]
        return [*names, *self.sensitive_names, *self.signature_names]

    @property
    def sensitive_names(self) -> list[str]:
        """The fields of the sensitive columns' codes."""
        return [sensitive_name(place) for place in range(len(self.constraints))]

    @property
    def signature_names(self) -> list[str]:
        """The fields that signatures are found from."""
        return [signature_name(column) for column in range(len(self.signatures.sizes))]

    def with_rows(
        self, values: Mapping[str, NDArray[Any]], rows: int, *, has_counts: bool
    ) -> tuple[CodedTable, SplitObjective, list[Constraint]]:
        """The table, the purpose (without selections) and the constraints with some rows; fields not given are 0."""

        def of(name: str, dtype: Any = np.int64) -> NDArray[Any]:
            return values[name] if name in values else np.zeros(rows, dtype)

        codes = tuple(of(code_name(index), code_dtype(column.size)) for index, column in enumerate(self.columns))
        table = CodedTable(self.columns, codes, rows, of(PERSONS, np.uint32) if has_counts else None)
        targets = tuple(
            _with_rows(target, [of(name) for name in target_names(place, target)])
            for place, target in enumerate(self.purpose.targets)
        )
        purpose = replace(self.purpose, targets=targets, masses=of(MASS) if self.weighted else None)
        constraints = [
            replace(constraint, codes=of(name, np.uint32))
            for name, constraint in zip(self.sensitive_names, self.constraints, strict=True)
        ]
        return table, purpose, constraints


def _with_rows(target: Target, values: Sequence[NDArray[Any]]) -> Target:
    """A target of some rows, from its fields."""
    if isinstance(target, ClassTarget):
        return replace(target, classes=values[0])
    if isinstance(target, ShareTarget):
        return replace(target, shares=np.stack(values, axis=1))
    assert isinstance(target, NumberTarget)
    return replace(target, multiples=values[0])


@dataclass(frozen=True, slots=True)
class Layout:
    """How kernels see rows. `always_counts` is for rows that stand for several: those that groups were made of."""

    shape: Shape
    forms: KernelForms
    always_counts: bool

    @classmethod
    def make(cls, shape: Shape, whole: Whole, *, counted: bool) -> Layout:
        """The layout of rows that kernels count, or (`counted`) of groups that were counted outside: then every column
        has a place in a node's histogram.
        """
        table, purpose, constraints = shape.with_rows({}, 0, has_counts=counted or shape.has_counts)
        size = EVERY if counted else NARROW
        return cls(shape, kernel_forms(table, purpose, constraints, whole, narrow_size=size)[1], counted)

    def selector(self, k: int) -> Selector | None:
        """What chooses splits for selections, if there are any."""
        shape, selections = self.shape, self.shape.purpose.selections
        if selections is None:
            return None
        return Selector(shape.columns, k, selections, shape.constraints, self.forms.columns)

    def pack(self, values: Mapping[str, NDArray[Any]], rows: int) -> Rows:
        """Rows of these fields, packed; fields that are not given are 0."""
        has_counts = self.always_counts or self.shape.has_counts
        packing, *_ = packing_of(*self.shape.with_rows(values, rows, has_counts=has_counts))
        return pack(packing, rows)


@dataclass(frozen=True, slots=True)
class RankedRegions:
    """The way of codes to regions, and the rank of each node's region."""

    columns: tuple[CodedColumn, ...]
    routes: Routes
    rank_of_node: NDArray[np.int64]  # (node,) -1 where no row is
    regions: pl.DataFrame

    @property
    def fields(self) -> Sequence[str]:
        """The fields that ranks are found from."""
        return [code_name(column) for column in range(len(self.columns))]

    def ranks(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.uint32]:
        """The rank of each row, from its codes."""
        ranks = self.rank_of_node[self.nodes(codes)]
        assert (ranks >= 0).all(), "a row is in a region that no row was in"
        return ranks.astype(np.uint32)

    def nodes(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.int32]:
        """The node of each row."""
        values = tuple(codes[name] for name in self.fields)
        packed, columns = pack_table(CodedTable(self.columns, values, len(values[0])))
        return route_packed(packed, columns, self.routes, threads=1)
