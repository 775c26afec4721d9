# SPDX-License-Identifier: Apache-2.0
"""How rows lie in memory: columns packed into words, and tuples of arrays that kernels read. And a coded table without
its rows: the fields of rows by name, and what is made of some rows once they are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import ClassTarget, NumberTarget, ShareTarget, Signatures, Target
from anonfit.tables.schema import CodedColumn, CodedTable, SplitMode, code_dtype
from anonfit.tables.taxonomy import Taxonomy

if TYPE_CHECKING:
    from anonfit.engines.memory.forms import Constraint

Int: TypeAlias = int | np.int64
"""A whole number of a kernel: what Python calls int, compiled code has in 64 bits."""

QUARTER = 0xFFFFFFFF
"""The bits of a field of 4 bytes."""

NARROW = 256
"""Columns of at most so many codes are counted in one histogram per node; wider ones when they are needed."""

ORDERED, SUBSET, BINARY, MULTIWAY = (int(mode) for mode in SplitMode)

# Rows of Columns.facts, one entry per column.
SIZE = 0
MODE = 1
MISSING = 2  # 1 where code 0 is the missing value
BIT = 3  # where its codes begin in the row
MASK = 4  # the bits of a code
BIN = 5  # first bin in a node's histogram, -1 for wide columns
PLACE = 6  # first entry in Columns.positions
ROOT = 7  # first entry in Columns.taxonomy, -1 without one
TILE = 8  # first entry in a node's tile, -1 where a node holds a run of codes
FACTS = 9

# Rows of Columns.taxonomy, one entry per taxonomy node, depth first.
FIRST = 0  # first code below the node
LAST = 1
AFTER = 2  # the next node that is not below it

# A node's span, one row per fact and one entry per column: the codes its tile holds (FROM..TO), the lowest and
# highest code its rows have beside the missing one (LOW > HIGH where all are missing), and whether there are missing
# values among them (GAP).
FROM, TO, LOW, HIGH, GAP, SPAN = 0, 1, 2, 3, 4, 5


class Rows(NamedTuple):
    """Packed rows, one memory block seen in two ways; every row is as many 8-byte words as it needs."""

    words: NDArray[np.uint64]  # (row, word)
    bytes: NDArray[np.uint8]  # (row, byte)

    def part(self, start: int, stop: int) -> Rows:
        """Some of the rows."""
        return Rows(self.words[start:stop], self.bytes[start:stop])

    def field(self, bit: Int, mask: Int = QUARTER) -> NDArray[np.uint32]:
        """A field of every row: what begins at a bit."""
        shifted = self.words[:, bit >> 6] >> np.uint64(bit & 63)
        return (shifted & np.uint64(mask)).astype(np.uint32)


class Columns(NamedTuple):
    """What the kernels know of the columns.

    `counts`, `entity` and `number` are the first bits of fields of 4 bytes: how many persons a row stands for (-1:
    one), whose row it is (-1: each row is another person's), and the row's number. `sorted` is the column in whose
    order rows stand in every node (-1: none).
    """

    facts: NDArray[np.int64]  # (fact, column)
    scale: NDArray[np.float64]  # (column,) 1 / range over the table, 0 where there is none
    positions: NDArray[np.float64]  # (code of any column,)
    taxonomy: NDArray[np.int64]  # (fact, taxonomy node of any column)
    narrow: NDArray[np.int64]  # (narrow column,) first bin; their codes are bytes that stand together
    byte: int  # the first of these bytes
    bins: int
    tile: int  # entries of a node's tile
    counts: int
    entity: int
    number: int
    sorted: int = -1


class Packing:
    """The places of fields in packed rows, given as values and bytes: the widest first, so that every field is aligned;
    those of one width stand together in the order they are given.
    """

    def __init__(self, fields: Mapping[str, tuple[NDArray[Any], int]]) -> None:
        self.fields = fields
        self.places: dict[str, int] = {}  # the first byte of each
        used = 0
        for name in sorted(fields, key=lambda name: -fields[name][1]):
            self.places[name] = used
            used += fields[name][1]
        self.words = max(1, -(-used // 8))

    def bit(self, name: str) -> int:
        """The first bit of a field; -1 where there is none."""
        return 8 * self.places[name] if name in self.places else -1

    def mask(self, name: str) -> int:
        """The bits of a field."""
        return (1 << 8 * self.fields[name][1]) - 1


def rows_of(words: NDArray[np.uint64]) -> Rows:
    """The rows of a block of words."""
    return Rows(words, words.view(np.uint8))


def _normalizer(column: CodedColumn) -> float:
    """What turns a spread within a node into a share of the column's whole spread."""
    known = column.size - int(column.has_missing)
    spread = float(known - 1)
    if column.mode == SplitMode.ORDERED:
        values = column.positions[int(column.has_missing) :]
        spread = float(values[-1] - values[0]) if known else 0.0
    return 1.0 / spread if spread > 0 else 0.0


def _taxonomy_facts(taxonomy: Taxonomy, shift: int, before: int) -> NDArray[np.int64]:
    """A taxonomy as kernels read it: its first leaf has code `shift`, and `before` nodes stand in front of it."""
    first = np.asarray(taxonomy.first_leaf, dtype=np.int64)
    after = np.arange(1, len(first) + 1, dtype=np.int64)
    for node in range(len(first) - 1, 0, -1):
        parent = taxonomy.parents[node]
        after[parent] = max(after[parent], after[node])
    return np.stack([first + shift, np.asarray(taxonomy.last_leaf, dtype=np.int64) + shift, after + before])


def table_fields(table: CodedTable) -> dict[str, tuple[NDArray[Any], int]]:
    """The fields of a table's rows, and how many bytes each needs."""
    fields: dict[str, tuple[NDArray[Any], int]] = {NUMBER: (np.arange(table.rows, dtype=np.uint32), 4)}
    if table.counts is not None:
        fields[PERSONS] = table.counts, 4
    if table.entities is not None:
        fields[ENTITY] = table.entities, 4
    for index, (column, codes) in enumerate(zip(table.columns, table.codes, strict=True)):
        fields[code_name(index)] = codes, code_dtype(column.size).itemsize
    return fields


def describe(
    table: CodedTable, packing: Packing, *, tiled: Iterable[SplitMode] = (), narrow_size: int = NARROW
) -> Columns:
    """The kernels' description of a table's columns.

    Columns split in the modes `tiled` may be divided into any sets of codes, so nodes keep the codes they hold. Columns
    of at most `narrow_size` codes are narrow; beyond `NARROW` only where no kernel counts them.
    """
    facts = np.full((FACTS, len(table.columns)), -1, dtype=np.int64)
    for index, column in enumerate(table.columns):
        name = code_name(index)
        facts[[SIZE, MODE, MISSING], index] = column.size, column.mode, column.has_missing
        facts[[BIT, MASK], index] = packing.bit(name), packing.mask(name)
    facts[PLACE] = np.cumsum(facts[SIZE]) - facts[SIZE]
    narrow = facts[SIZE] <= narrow_size
    facts[BIN, narrow] = np.cumsum(facts[SIZE, narrow]) - facts[SIZE, narrow]
    held = np.isin(facts[MODE], [int(mode) for mode in tiled])
    facts[TILE, held] = np.cumsum(facts[SIZE, held]) - facts[SIZE, held]
    positions = (
        column.positions if column.mode == SplitMode.ORDERED else np.zeros(column.size) for column in table.columns
    )
    return Columns(
        facts=facts,
        scale=np.array([_normalizer(column) for column in table.columns], dtype=np.float64),
        positions=np.concatenate([np.zeros(0), *positions]),
        taxonomy=_taxonomies(table.columns, facts),
        narrow=facts[BIN, narrow],
        byte=int(facts[BIT, narrow].min() // 8 if narrow.any() else 0),
        bins=int(facts[SIZE, narrow].sum()),
        tile=int(facts[SIZE, held].sum()),
        counts=packing.bit(PERSONS),
        entity=packing.bit(ENTITY),
        number=packing.bit(NUMBER),
    )


def _taxonomies(columns: Sequence[CodedColumn], facts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The taxonomies of all columns one after another; each column's first node is written to its facts."""
    trees = [np.zeros((3, 1), np.int64)]
    nodes = 1
    for index, column in enumerate(columns):
        if column.mode in (SplitMode.BINARY, SplitMode.MULTIWAY):
            assert column.taxonomy is not None
            facts[ROOT, index] = nodes
            trees.append(_taxonomy_facts(column.taxonomy, int(column.has_missing), nodes))
            nodes += trees[-1].shape[1]
    return np.concatenate(trees, axis=1)


NUMBER, PERSONS, ENTITY, MASS = "number", "persons", "entity", "mass"
"""Fields of a row: its number, the persons it stands for, whose it is, and what it counts in criteria."""
NO_SIGNATURES = Signatures()


code_name: Callable[[int], str] = "code{}".format
"""The field of a quasi-identifier's codes, by its number."""
target_name: Callable[[int], str] = "target{}".format
"""The field of a target."""
label_name: Callable[[int], str] = "label{}".format
"""The field of a target's own values where models say what is expected of rows."""
sensitive_name: Callable[[int], str] = "sensitive{}".format
"""The field of a sensitive column's codes."""
signature_name: Callable[[int], str] = "signature{}".format
"""The field of a raw column's classes, by which selections tell rows apart."""


def target_names(target: int, what: Target) -> list[str]:
    """The fields of a target: its class or number, or a share of each class; and the own number, where there is one."""
    name = target_name(target)
    if isinstance(what, ShareTarget):
        return [f"{name}_{label}" for label in range(what.width)]
    return [name, f"{name}_own"] if isinstance(what, NumberTarget) and what.own is not None else [name]


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
    return replace(target, multiples=values[0], own=values[1] if len(values) > 1 else None)
