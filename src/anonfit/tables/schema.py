# SPDX-License-Identifier: Apache-2.0
"""What each column of a table is: its role and type, the domain that its codes stand for, and the table in codes; and
whom rows stand for: one person each, several by a count column, or persons with several rows by an entity column.

An ordered domain has observed values, the others declared names. The codebook makes coded tables, engines grow and
route them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError, TaxonomyError, counted
from anonfit.tables.scales import Axis
from anonfit.tables.taxonomy import Taxonomy


class Role(StrEnum):
    """What part a column plays in a release."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    SENSITIVE = "sensitive"
    TARGET = "target"
    ENTITY = "entity"
    COUNT = "count"
    SAMPLE_WEIGHT = "sample-weight"
    INSENSITIVE = "insensitive"

    @property
    def is_released_raw(self) -> bool:
        """Whether the column's values are released as they are."""
        return self in (Role.SENSITIVE, Role.TARGET, Role.COUNT, Role.SAMPLE_WEIGHT, Role.INSENSITIVE)


class ColumnType(StrEnum):
    """How a column's values are ordered."""

    CONTINUOUS = "continuous"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    DATE = "date"


class NominalSplit(StrEnum):
    """How a nominal column is divided."""

    MULTIWAY = "multiway"
    BINARY = "binary"
    SUBSET = "subset"


@dataclass(frozen=True, slots=True)
class Column:
    """What is declared of a column; None where the data decides."""

    name: str
    role: Role
    type: ColumnType | None = None
    order: tuple[str, ...] = ()
    domain: tuple[object, ...] = ()
    date_format: str | None = None
    taxonomy: Taxonomy | None = None
    split: NominalSplit | None = None
    release: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """The declared columns, in the table's order."""

    columns: tuple[Column, ...] = field(default=())

    def of_role(self, *roles: Role) -> tuple[Column, ...]:
        """The columns that have one of the roles."""
        return tuple(column for column in self.columns if column.role in roles)

    def name_of(self, role: Role) -> str | None:
        """The name of the first column of a role, if there is one."""
        return next((column.name for column in self.columns if column.role == role), None)

    @property
    def quasi_identifiers(self) -> tuple[Column, ...]:
        """The columns that are generalized."""
        return self.of_role(Role.QUASI_IDENTIFIER)

    @property
    def released_raw(self) -> tuple[Column, ...]:
        """The columns whose values are released as they are."""
        return tuple(column for column in self.columns if column.role.is_released_raw)


Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]

MISSING = 0  # the code of a missing value in a column that has missing values


class SplitMode(IntEnum):
    """How the codes of a column may be divided."""

    ORDERED = 0
    SUBSET = 1
    BINARY = 2
    MULTIWAY = 3


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """What growing must know of a column: nothing but its codes.

    Code 0 is the missing value if `has_missing`; the other codes follow the order of the values, or of the taxonomy's
    leaves.
    `positions` says where each code's value stands on its scale (ordered columns; the entry of a missing code is not
    used).
    """

    name: str
    size: int
    mode: SplitMode
    has_missing: bool
    positions: NDArray[np.float64]
    taxonomy: Taxonomy | None = None


@dataclass(frozen=True, slots=True)
class CodedTable:
    """The columns, their codes (one array per column), and who the rows stand for.

    `counts` is the number of persons of each row, `entities` the person a row belongs to; at most one of them is given.
    """

    columns: tuple[CodedColumn, ...]
    codes: tuple[Codes, ...]
    rows: int
    counts: NDArray[np.uint32] | None = None
    entities: NDArray[np.uint32] | None = None


def code_dtype(size: int) -> np.dtype[Any]:
    """The narrowest unsigned type that holds `size` codes."""
    return np.min_scalar_type(max(size - 1, 0))


OTHER = "other"
FEW_NAMES = 1 << 12


@dataclass(frozen=True, slots=True)
class OrderedDomain:
    """Numbers, dates or times: the distinct values of the table, ascending, on the axis of the column's type.

    The values are observed, so they never leave the run: a recoding keeps only the cuts between them.
    """

    name: str
    type: ColumnType
    dtype: pl.DataType
    values: Axis
    has_missing: bool
    declared: tuple[object, ...] = ()
    date_format: str | None = None

    def coded(self) -> CodedColumn:
        """What growing must know of the column."""
        values = self.values.astype(np.float64)
        if len(values) and np.abs(values).max() > np.finfo(np.float64).max / 2:
            values = values / 4  # so that a range never overflows; only ratios of ranges count
        positions = np.concatenate([np.zeros(int(self.has_missing)), values])
        return CodedColumn(self.name, len(positions), SplitMode.ORDERED, self.has_missing, positions)


@dataclass(frozen=True, slots=True)
class OrdinalDomain:
    """Words in a declared order."""

    name: str
    order: tuple[str, ...]
    has_missing: bool

    def coded(self) -> CodedColumn:
        """What growing must know of the column: ranks, evenly spaced."""
        positions = np.concatenate([np.zeros(int(self.has_missing)), np.arange(len(self.order), dtype=np.float64)])
        return CodedColumn(self.name, len(positions), SplitMode.ORDERED, self.has_missing, positions)


@dataclass(frozen=True, slots=True)
class NominalDomain:
    """The leaves of a taxonomy; `other` names the leaf of values too rare to be named, if there is one.

    In a column of numbers or dates (`type`) leaves are matched by value, in others by name.
    """

    name: str
    taxonomy: Taxonomy
    split: NominalSplit
    has_missing: bool
    other: str | None = None
    type: ColumnType = ColumnType.NOMINAL
    date_format: str | None = None

    def coded(self) -> CodedColumn:
        """What growing must know of the column."""
        size = len(self.taxonomy.leaves) + int(self.has_missing)
        mode = SplitMode[self.split.name]
        return CodedColumn(self.name, size, mode, self.has_missing, np.zeros(size), self.taxonomy)


Domain: TypeAlias = OrderedDomain | OrdinalDomain | NominalDomain


def texts_of(values: pl.Series) -> pl.Series:
    """Values of any plain type as the texts that name them: whole numbers without a fraction, dates in ISO form."""
    texts = values.cast(pl.String)
    if not values.dtype.is_float():
        return texts
    whole = values.cast(pl.Int64, strict=False)
    exact = (whole.cast(values.dtype) == values).fill_null(value=False)
    return texts.set(exact, None).fill_null(whole.cast(pl.String)) if exact.any() else texts


def refuse_complex(values: pl.Series) -> None:
    """Refuse a column whose values cannot be compared or named."""
    dtype = values.dtype
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Duration):
        raise DataError(f"column '{values.name}' is of type {dtype}; a quasi-identifier needs plain values.")


def name_positions(names: Sequence[str], values: pl.Series) -> NDArray[np.int32]:
    """The position of each text among the names, -1 where it is none of them."""
    texts = texts_of(values)
    if len(texts) + len(names) <= FEW_NAMES:  # without the threads of polars, which may be busy with something else
        position = {name: index for index, name in enumerate(names)}
        return np.array([position.get(text, -1) for text in texts.to_list()], dtype=np.int32)
    positions = pl.Series("position", np.arange(len(names), dtype=np.int32))
    lookup = pl.DataFrame([pl.Series("name", names, dtype=pl.String), positions])
    # A join is twice as fast as Series.replace_strict at a million names.
    joined = texts.to_frame("name").join(lookup, on="name", how="left", maintain_order="left")
    return joined["position"].fill_null(-1).to_numpy(writable=True)


ADVICE = "add them there or mend the data"
"""What to do about values that a declared domain does not hold."""


def require_known(
    positions: NDArray[np.int32],
    values: pl.Series,
    rows: NDArray[np.integer],
    *,
    where: str,
    error: type[DataError | TaxonomyError],
    advice: str = ADVICE,
) -> None:
    """Refuse values that a declared domain (`where`, in words) does not hold, with advice. They are records'
    values, so they are counted and their rows told, not named.

    positions: (value,) the place of each distinct value in the domain, -1 for none; values: (value,); rows: (row,) the
    place of each row's value among them, after the last for a missing one.
    """
    unknown = int(np.count_nonzero(positions < 0))
    if unknown:
        first = np.flatnonzero(np.append(positions < 0, False)[rows])[:3] + 1
        raise error(
            f"column '{values.name}': {unknown} of its "
            f"{counted(len(values), 'distinct value')} {'is' if unknown == 1 else 'are'} not in {where} (first in "
            f"row {', '.join(map(str, first.tolist()))}); {advice}."
        )


@dataclass(frozen=True, slots=True)
class Persons:
    """Whom rows stand for: a person each, by `counts` several, or by `entities` a person with several rows."""

    rows: int
    counts: NDArray[Any] | None = None
    entities: NDArray[np.uint32] | None = None

    def total(self) -> int:
        """How many persons the table is about."""
        if self.entities is not None:
            return len(np.unique(self.entities))
        return self.rows if self.counts is None else int(self.counts.sum(dtype=np.int64))

    def of_groups(self, groups: NDArray[np.integer[Any]], count: int) -> NDArray[np.int64]:
        """How many persons each group of rows has."""
        if self.entities is not None:
            pairs = np.unique(groups.astype(np.int64) << 32 | self.entities)
            return np.bincount(pairs >> 32, minlength=count)
        if self.counts is None:
            return np.bincount(groups, minlength=count)
        return np.bincount(groups, weights=self.counts, minlength=count).astype(np.int64)

    def of_rows(self) -> NDArray[np.int64]:
        """How many persons each row stands for, a person with several rows once with each of them."""
        return np.ones(self.rows, np.int64) if self.counts is None else self.counts.astype(np.int64)


@dataclass(frozen=True, slots=True)
class KnownValues:
    """What is known of the values of some columns: those of every row, or each combination of values once and how many
    rows have it (`times`).
    """

    frame: pl.DataFrame
    times: NDArray[np.int64] | None
    persons: Persons  # of each row, or of all rows that have a combination

    @property
    def rows(self) -> NDArray[np.int64]:
        """How many rows have each combination."""
        return np.ones(len(self.frame), np.int64) if self.times is None else self.times


def persons_of(rows: int, counts: pl.Series | None, entities: pl.Series | None) -> Persons:
    """Who the rows of a table stand for, from its count or entity column."""
    if counts is not None:
        whole = counts.cast(pl.Int64, strict=False)
        is_count = (whole.cast(pl.Float64) == counts.cast(pl.Float64, strict=False)) & (whole >= 1)
        bad = len(whole) - int(is_count.fill_null(value=False).sum())
        if bad:
            raise DataError(
                f"count column '{counts.name}': {counted(bad, 'value is', 'values are')} not whole numbers of at "
                "least 1; mend them."
            )
        if rows and int(whole.to_numpy().max()) >= 2**32:
            raise DataError(f"count column '{counts.name}': a row cannot stand for more than four billion persons.")
        return Persons(rows, counts=whole.to_numpy().astype(np.uint32))
    if entities is not None:
        if entities.null_count():
            raise DataError(
                f"entity column '{entities.name}': {counted(entities.null_count(), 'value is', 'values are')} "
                "missing; every row needs its person."
            )
        ranks = entities.rank("dense") - 1
        return Persons(rows, entities=ranks.to_numpy().astype(np.uint32))
    return Persons(rows)


def persons_in(schema: Schema, frame: pl.DataFrame) -> Persons:
    """Who the rows of a frame stand for."""
    count, entity = schema.name_of(Role.COUNT), schema.name_of(Role.ENTITY)
    return persons_of(len(frame), frame[count] if count else None, frame[entity] if entity else None)
