# SPDX-License-Identifier: Apache-2.0
"""The values of a raw column as a demand reads them: as they are, in an order, as numbers, as leaves of a taxonomy, or
in classes. Whatever a demand cannot read is an error that names the column, never a value left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from anonfit.auditing import coding
from anonfit.auditing.boxes import as_moments, distinct_texts, leaf_placer, on_line, placed_on_line
from anonfit.auditing.coding import Coded, FloatArray, IntArray, RowPersons, ValueCounts
from anonfit.auditing.meanings import LabelMeaning, LabelType
from anonfit.errors import DataError, TaxonomyError


@dataclass(frozen=True, slots=True)
class TaxonomyNodes:
    """The leaves of a tree in depth-first order, and the nodes from the root, 0, down to each, which is the last."""

    leaves: tuple[str, ...]
    paths: tuple[tuple[int, ...], ...]  # (leaf)


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The nodes above the values of a column, level by level."""

    nodes: tuple[IntArray, ...]  # (depth)(value) the node above a value, or its leaf; -1: below its leaf
    heights: IntArray  # (node) steps down to its deepest leaf


def read_taxonomy(tree: object, *, column: str) -> TaxonomyNodes:
    """The nodes of nested mappings with a name and children; an only child with its parent's name is only padding."""
    paths: dict[str, tuple[int, ...]] = {}
    stack: list[tuple[object, tuple[int, ...]]] = [(tree, ())]
    for node in count():
        part, above = stack.pop()
        name, children = _part(part, column)
        while len(children) == 1 and _part(children[0], column)[0] == name:
            children = _part(children[0], column)[1]
        path = (*above, node)
        if not children and paths.setdefault(name, path) != path:
            raise TaxonomyError(f"The taxonomy of column '{column}' has the leaf '{name}' twice: keep one.")
        stack.extend((child, path) for child in reversed(children))
        if not stack:
            break
    return TaxonomyNodes(tuple(paths), tuple(paths.values()))


def _part(part: object, column: str) -> tuple[str, Sequence[Any]]:
    """The name and the children of a node."""
    if isinstance(part, Mapping) and set(part) <= {"name", "children"} and isinstance(part.get("name"), str):
        children = part.get("children") or ()
        if isinstance(children, (list, tuple)):
            return part["name"], children
    raise TaxonomyError(f"The taxonomy of column '{column}' is not made of nodes with a name and a list of children.")


def hierarchy_of(nodes: TaxonomyNodes, leaves: Sequence[int], *, missing: bool) -> Hierarchy:
    """The hierarchy over some leaves, in their order, after the missing value, which is a leaf under the root.

    A taxonomy that is one leaf only gets a root, which the missing value can be under, too.
    """
    every = [path if len(path) > 1 else (0, 1) for path in nodes.paths]
    lost = max(path[-1] for path in every) + 1  # the leaf of missing values
    every += [(0, lost)] if missing else []
    heights = np.zeros(lost + 1, np.int64)
    for path in every:
        for depth, node in enumerate(path):
            heights[node] = max(heights[node], len(path) - 1 - depth)
    chosen = [*every[len(nodes.paths) :], *(every[leaf] for leaf in leaves)]
    levels = np.full((int(heights[0]) + 1, len(chosen)), -1, np.int64)
    for place, path in enumerate(chosen):
        levels[: len(path), place] = path
    return Hierarchy(tuple(levels), heights)


Distance = Literal["equal", "ordered", "hierarchical"]
Reads = Literal["values", "distance", "numbers"]
_NO_NUMBERS: FloatArray = np.empty(0)
_IN_ORDER = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.Float32, pl.Float64, pl.Date)


@dataclass(frozen=True, slots=True)
class RawValues:
    """A raw column, its codes (equal values have equal codes), and whether it is of a text file, without types."""

    series: pl.Series
    column: Coded
    text_file: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What is said of a column's values; where nothing is said, its data decides."""

    type: LabelType | None = None
    order: tuple[str, ...] = ()
    date_format: str | None = None
    taxonomy: TaxonomyNodes | None = None
    distance: Distance | None = None
    classes: tuple[Decimal, ...] | None = None  # where the classes after the first begin
    equal_width: int | None = None


@dataclass(frozen=True, slots=True)
class ReadValues:
    """The different values of a column, by their place: what a model needs to know beside how many have each."""

    numbers: FloatArray = field(default_factory=lambda: _NO_NUMBERS)  # nan: missing
    distance: Distance = "equal"
    hierarchy: Hierarchy | None = None


def read_values(raw: RawValues, reading: Reading, *, reads: Reads) -> tuple[Coded, ReadValues]:
    """The codes of a column, missing lowest, and its values as a model that reads them so needs them."""
    if reads == "numbers":
        return _numbers(raw, reading)
    if reads == "distance":
        return _with_distance(raw, reading)
    if reading.classes is not None or reading.equal_width is not None:
        return _classes(raw.series, reading), ReadValues()
    if coding.is_text(raw.series) and reading.type in ("continuous", "date"):
        return coding.coded_in_order(_ordered(raw.series, reading)), ReadValues()
    return (
        coding.coded(raw.series) if coding.is_text(raw.series) and reading.type is not None else raw.column
    ), ReadValues()


def type_of(raw: RawValues, reading: Reading) -> LabelType:
    """What the values are: as was said, else by the column; a text file does not tell numbers from texts of digits."""
    if reading.type is not None or reading.order:
        return reading.type or "ordinal"
    is_named = raw.series.dtype == pl.Boolean or (coding.is_text(raw.series) and not raw.text_file)
    return "nominal" if is_named else _guessed(raw.series) or "nominal"


def _guessed(series: pl.Series) -> LabelType | None:
    """What a column of unknown type holds: numbers, dates, or None of these."""
    if not coding.is_text(series):
        return "date" if isinstance(series.dtype, (pl.Date, pl.Datetime)) else "continuous"
    texts = series.cast(pl.String)
    if texts.null_count() == len(texts):
        return None
    if coding.as_numbers(texts).dtype != pl.String:
        return "continuous"
    return "date" if as_moments(texts).null_count() == texts.null_count() else None


def _line_type(series: pl.Series, reading: Reading) -> LabelType | None:
    """On what kind of line the values stand; None: on none that is known."""
    if reading.order:
        return "ordinal"
    if series.null_count() == len(series):
        return "continuous"
    return reading.type if reading.type in ("continuous", "date") else _guessed(series)


def _ordered(series: pl.Series, reading: Reading) -> pl.Series:
    """The column as numbers in the order of its values."""
    kind = _line_type(series, reading)
    if kind is None:
        raise DataError(f"The values of column '{series.name}' have no order that is known: state it, lowest first.")
    if series.dtype == pl.Time:
        series = series.to_physical()
    places, _ = on_line(series, _meaning(series, kind, reading))
    if kind == "date" and reading.date_format is not None and places.null_count() > series.null_count():
        places, _ = on_line(series, LabelMeaning(series.name, kind))  # a date may be written in the ISO form after all
    if places.null_count() > series.null_count():
        lacks = {"ordinal": "words of its order", "date": "dates"}.get(kind, "numbers")
        raise DataError(f"Some values of column '{series.name}' are no {lacks}, so the audit cannot order them.")
    return places


def _meaning(series: pl.Series, kind: LabelType, reading: Reading) -> LabelMeaning:
    return LabelMeaning(series.name, kind, order=reading.order, date_format=reading.date_format)


def _numbers(raw: RawValues, reading: Reading) -> tuple[Coded, ReadValues]:
    """The column as numbers, measured from the smallest so that long ones lose nothing."""
    series = raw.series
    values, scale = on_line(series, LabelMeaning(series.name, "continuous"))
    if values.null_count() > series.null_count() or reading.type == "date":
        raise DataError(f"Some values of column '{series.name}' are no numbers, but a demand is about its numbers.")
    floats = _from_smallest(values)
    if not floats.is_finite().all():
        raise DataError(f"Column '{series.name}' holds infinite numbers, but a demand is about its numbers.")
    column = _in_order(raw, values)
    places, different = coding.value_places(column)
    numbers = np.full(different, np.nan)
    numbers[places] = floats.fill_null(np.nan).to_numpy() / float(scale)
    return column, ReadValues(numbers)


def _from_smallest(numbers: pl.Series) -> pl.Series:
    """Numbers less the smallest of them; of whole ones, exactly, even if they are too long for floats."""
    least, most = _ends(numbers)
    if not numbers.dtype.is_integer() or most - least >= 2**62:
        return numbers.cast(pl.Float64) - float(least)
    wide = numbers if numbers.dtype in (pl.UInt64, pl.Int128) else numbers.cast(pl.Int64)
    return (wide - pl.Series([least], dtype=wide.dtype)).cast(pl.Float64)


def _ends(numbers: pl.Series) -> tuple[Any, Any]:
    """The smallest and the largest of a column of numbers; zeros if it has none."""
    return (numbers.min(), numbers.max()) if numbers.null_count() < len(numbers) else (0, 0)


def _in_order(raw: RawValues, numbers: pl.Series) -> Coded:
    """The codes of a column in the order of its numbers; those that it has are so already if it has such a type."""
    return raw.column if isinstance(raw.series.dtype, _IN_ORDER) else coding.coded_in_order(numbers)


def _with_distance(raw: RawValues, reading: Reading) -> tuple[Coded, ReadValues]:
    """The column on the ground that distances are measured on: as asked, else by what is known of the column."""
    series, distance = raw.series, reading.distance
    if distance is None and reading.taxonomy is None:
        distance = "equal" if type_of(raw, reading) == "nominal" else "ordered"
    if distance == "equal":
        return read_values(raw, reading, reads="values")
    if distance == "ordered":
        places = _ordered(series, reading)
        return coding.coded_in_order(places) if reading.order else _in_order(raw, places), ReadValues(distance=distance)
    if reading.taxonomy is None:
        raise DataError(f"The hierarchical distance over column '{series.name}' needs its taxonomy.")
    leaves = _leaves(series, reading.taxonomy, reading)
    there = np.unique(leaves)
    hierarchy = hierarchy_of(reading.taxonomy, [leaf - 1 for leaf in there if leaf], missing=0 in there)
    return Coded(leaves, len(reading.taxonomy.leaves) + 1), ReadValues(distance="hierarchical", hierarchy=hierarchy)


def _leaves(series: pl.Series, nodes: TaxonomyNodes, reading: Reading) -> IntArray:
    """The leaf of every row, counted from 1 in depth-first order; 0: missing. Leaves are names, else intervals."""
    place = {leaf: number for number, leaf in enumerate(nodes.leaves, 1)}
    codes, texts = distinct_texts(series)
    if series.dtype == pl.Boolean:
        place = {leaf.lower(): number for leaf, number in place.items()}
    if all(text in place for text in texts):
        return np.array([0, *(place[text] for text in texts)], np.int64)[codes]
    kind = _line_type(series, reading)
    leaves = None if kind is None else leaf_placer(nodes.leaves, _meaning(series, kind, reading))(series)
    if leaves is None or (leaves < 0).any():
        raise DataError(f"Some values of column '{series.name}' are no leaves of its taxonomy.")
    return leaves


def _classes(series: pl.Series, reading: Reading) -> Coded:
    """The class of every number, missing apart: a class begins with its threshold."""
    meaning, begins = LabelMeaning(series.name, "continuous"), list(reading.classes or ())
    if reading.equal_width is not None:  # from the smallest to the largest value: exact, then rounded once
        places, scale = on_line(series, meaning)
        least, most = (Fraction(end) / scale for end in _ends(places))
        width = (most - least) / reading.equal_width
        begins = sorted({Decimal(float(least + width * step)) for step in range(1, reading.equal_width)})
    placed = placed_on_line(series, meaning, ends=begins)
    if placed.unknown:
        raise DataError(f"Some values of column '{series.name}' are no numbers, so they have no class.")
    cells = placed.cells.astype(np.int64)
    return Coded(np.where(cells == 0, 0, cells // 2 + 1), len(begins) + 2)


@dataclass(frozen=True, slots=True)
class ValueSpread:
    """Persons per group and value. Values are called by their place among all values of the table, in rising order."""

    groups: IntArray  # (group) its number in the grouping; groups without persons are left out
    begin: IntArray  # (group) its first pair
    total: IntArray  # (group) the sum of its counts
    group: IntArray  # (pair) rising
    value: IntArray  # (pair) the value's place, rising within a group
    count: IntArray  # (pair)
    table: IntArray  # (value) persons of the whole table

    def sums(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The sum of something of the pairs, per group."""
        return np.add.reduceat(values, self.begin)

    def most(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The largest of something of the pairs, per group."""
        return np.maximum.reduceat(values, self.begin)

    @property
    def distinct(self) -> IntArray:
        """The number of different values, per group."""
        return np.diff(np.append(self.begin, len(self.group)))

    @property
    def share(self) -> FloatArray:
        """The share that each pair's value has in its group."""
        return self.count / self.total[self.group]

    @property
    def table_share(self) -> FloatArray:
        """The share that each value has in the whole table."""
        shares: FloatArray = self.table / self.table.sum()
        return shares


def spread_of(persons: RowPersons, column: Coded, *, counts: ValueCounts) -> ValueSpread:
    """The spread of a column whose values were counted. In the whole table, too, a person has a value once."""
    begin = np.flatnonzero(np.diff(counts.group, prepend=-1))
    groups = counts.group[begin]
    group = np.repeat(np.arange(len(begin)), np.diff(np.append(begin, len(counts.group))))
    place, different = coding.value_places(Coded(counts.value, int(counts.value.max(initial=0)) + 1))
    if persons.entities is None:
        table = np.bincount(place, weights=counts.persons, minlength=different).astype(np.int64)
    else:
        table = coding.persons_in_groups(persons, coding.value_places(column)[0], different)
    total = np.add.reduceat(counts.persons, begin) if len(begin) else begin
    return ValueSpread(groups, begin, total, group, place, counts.persons, table)
