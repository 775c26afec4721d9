# SPDX-License-Identifier: Apache-2.0
"""Selections over codes: conditions on a quasi-identifier as sets of codes, the values at which a cut must be possible
even where no row has them, and predicates as rectangles of codes, by the classes of columns that are released as they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.targets import CodedSelections, Signatures, signatures_of
from anonfit.errors import SpecError
from anonfit.tables import schema
from anonfit.tables.scales import Axis
from anonfit.workload import predicates, truth
from anonfit.workload.predicates import LIMIT, ColumnKind, Condition, Holding, Part, Predicate, Rectangle, Relation

Mask = NDArray[np.uint8]


def size_of(domain: schema.Domain) -> int:
    """How many codes a column has."""
    if isinstance(domain, schema.NominalDomain):
        return len(domain.taxonomy.leaves) + int(domain.has_missing)
    return len(domain.order if isinstance(domain, schema.OrdinalDomain) else domain.values) + int(domain.has_missing)


def _codes_within(condition: Condition, domain: schema.Domain) -> Mask:
    """(code,) 1 for the codes that a condition selects: those of which some value satisfies it."""
    mask = np.zeros(size_of(domain), np.uint8)
    known = mask[int(domain.has_missing) :]
    if condition.relation == Relation.MISSING:
        if domain.has_missing:
            mask[schema.MISSING] = 1
    elif condition.relation == Relation.NOT_MISSING:
        known[:] = 1
    elif isinstance(domain, schema.OrderedDomain):
        known[:] = truth.compared(domain.values, condition.relation, condition.values, domain.dtype)
    elif isinstance(domain, schema.OrdinalDomain):
        known[:] = truth.ranked(np.arange(len(domain.order)), condition)
    elif condition.relation == Relation.IN:
        known[_leaves_of(condition, domain)] = 1
    else:
        known[:] = 1
        known[_leaves_of(condition, domain, wholly=True)] = 0
    return mask


def codes_of(predicate: Predicate, domain: schema.Domain) -> Mask:
    """Which codes a predicate over this column alone selects."""
    return predicates.evaluated(predicate, partial(_codes_within, domain=domain))


def _leaves_of(condition: Condition, domain: schema.NominalDomain, *, wholly: bool = False) -> list[int]:
    """The leaves that hold a value of a condition; `wholly`: those that hold nothing else."""
    holding = condition.kind.holding
    leaves = []
    by_value = None
    for value in condition.values:
        if isinstance(value, str):
            position = _leaf_position(domain, value, holding)
        elif domain.type != schema.ColumnType.NOMINAL:
            position = truth.leaf_of_value(domain.taxonomy, value)
            if wholly and not (
                holding == Holding.NUMBERS and truth.plain_in(domain.taxonomy.leaves[position], holding) == value
            ):
                continue  # an interval holds other values too
        else:
            by_value = by_value or {truth.plain_in(name, holding): at for at, name in enumerate(domain.taxonomy.leaves)}
            position = by_value.get(value, -1)
        if position >= 0 and domain.taxonomy.leaves[position] != domain.other:
            leaves.append(position)
        elif domain.other is not None and not wholly:
            leaves.append(domain.taxonomy.leaf_position[domain.other])
    return leaves


def _leaf_position(domain: schema.NominalDomain, name: str, holding: Holding) -> int:
    """The leaf of a name, -1 without one; the leaf of a truth may be written in any case."""
    if holding == Holding.TRUTHS:
        lowered = [leaf.lower() for leaf in domain.taxonomy.leaves]
        return lowered.index(name) if name in lowered else -1
    return domain.taxonomy.leaf_position.get(name, -1)


# --- boundaries of selections


def unobserved_met_by_cuts(predicate: Predicate, is_observed: Callable[[Condition], bool]) -> Predicate:
    """The predicate with the ends that no row has moved to where a cut can be, on dense axes.

    Where no row has the value 5.5, `x > 5.5` selects the rows of `x >= 5.5` and `x <= 5.5` those of `x < 5.5`, and a
    cut at 5.5 parts them.
    """
    moved = {Relation.MORE: Relation.AT_LEAST, Relation.AT_MOST: Relation.LESS}

    def change(condition: Condition) -> Condition:
        if condition.kind.is_ordered and condition.relation in moved and not is_observed(condition):
            return replace(condition, relation=moved[condition.relation])
        return condition

    return predicates.mapped(predicate, change)


def cut_places_of(predicate: Predicate, domain: schema.OrderedDomain) -> Axis:
    """Where cuts part what a predicate selects of a column, within the range of its values; ascending."""
    places = [
        place
        for condition in predicates.conditions_of(predicate)
        if condition.column == domain.name
        for value in condition.values
        for place in truth.cut_places(condition.relation, value, domain.dtype)
    ]
    if len(domain.values) == 0:
        return domain.values
    lowest, highest = domain.values[0], domain.values[-1]
    return _distinct([place for place in places if lowest < place <= highest], domain)


def _distinct(places: Iterable[int | float], domain: schema.OrderedDomain) -> Axis:
    """Different places on the axis of a domain, ascending."""
    ascending = sorted(set(places))
    return np.array(ascending, np.int64) if domain.values.dtype.kind == "i" else np.array(ascending, np.float64)


def selection_boundaries(predicates: Iterable[Predicate], domain: schema.OrderedDomain) -> Axis:
    """The values that predicates need as codes of a column besides those that rows have: on the axis of its domain,
    ascending, each above the lowest value and below the highest.
    """
    dense = not truth.has_steps(domain.dtype)

    def is_observed(condition: Condition) -> bool:
        return not dense or bool(truth.compared(domain.values, Relation.IN, condition.values, domain.dtype).any())

    of_predicates = (cut_places_of(unobserved_met_by_cuts(predicate, is_observed), domain) for predicate in predicates)
    places = _distinct((place for part in of_predicates for place in part.tolist()), domain)
    return places[~np.isin(places, domain.values)]


def with_boundaries(domain: schema.OrderedDomain, places: Axis) -> tuple[schema.OrderedDomain, schema.Codes]:
    """A domain with further values (on its axis), which are codes that no row has; and the new code of each old one."""
    values: Any = np.union1d(domain.values, places)
    shift = int(domain.has_missing)
    codes = np.zeros(len(domain.values) + shift, schema.code_dtype(len(values) + shift))
    codes[shift:] = np.searchsorted(values, domain.values) + shift
    return replace(domain, values=values), codes


LARGEST = 1 << 32
"""Rectangles times codes: a byte of memory each."""


@dataclass(frozen=True, slots=True)
class Selection:
    """One selection: the text it is known by, what it asks, and the request it comes from."""

    name: str
    predicate: Predicate
    weight: float
    place: str
    is_each: bool = False


@dataclass(frozen=True, slots=True)
class ValueClasses:
    """Values of a column that is released as it is, in classes that satisfy the same parts of predicates."""

    truths: NDArray[np.bool_]  # (class, part over this column)
    of_value: NDArray[np.int64]  # (different value, at the end missing)


class SelectionCoder:
    """schema.Codes selections over the quasi-identifiers of a table."""

    def __init__(self, asked: Sequence[Selection], domains: Sequence[schema.Domain], values: truth.TableValues) -> None:
        """`values` are all that the table has."""
        self.asked, self.domains = asked, domains
        self.sizes = [size_of(domain) for domain in domains]
        self.place = {domain.name: place for place, domain in enumerate(domains)}
        observed = partial(self._is_observed, values)
        self.predicates = [
            predicates.by_column(unobserved_met_by_cuts(selection.predicate, observed)) for selection in asked
        ]
        self.raw = [self._raw_parts(predicate) for predicate in self.predicates]
        self.parts = list(dict.fromkeys(part for own in self.raw for part in own))

    @property
    def raw_columns(self) -> list[ColumnKind]:
        """The columns that are released as they are and have a part in some predicate."""
        kinds = [next(predicates.conditions_of(part)).kind for part in self.parts]
        return list({kind.declared.name: kind for kind in kinds}.values())

    def classes(self, column: truth.ColumnValues) -> ValueClasses:
        """The classes of a raw column's values."""
        name = column.kind.declared.name
        truths = [predicates.evaluated(part, column.truth) for part in self.parts if predicates.column_of(part) == name]
        return ValueClasses(*_different(np.stack(truths, axis=1)))

    def of_rows(self, rows: truth.RawTable) -> CodedSelections:
        """The coded form of all selections, with the signatures of rows."""
        columns = [rows.column(kind) for kind in self.raw_columns]
        classes = [self.classes(column) for column in columns]
        sizes = [len(of_column.truths) for of_column in classes]
        own = [of_column.of_value[column.places] for of_column, column in zip(classes, columns, strict=True)]
        signatures, of_row = signatures_of(sizes, own, len(rows.frame))
        return self.coded(signatures, [of_column.truths for of_column in classes], of_row)

    def coded(
        self, signatures: Signatures, truths_of: Sequence[NDArray[np.bool_]], of_row: NDArray[np.int64]
    ) -> CodedSelections:
        """The coded form of all selections, given the signatures that occur, what is true of the classes of each raw
        column, and the signatures of rows.
        """
        truths = self._truths(signatures, truths_of)
        place = {part: number for number, part in enumerate(self.parts)}
        coded: list[tuple[int, Rectangle, NDArray[np.bool_]]] = []
        for number, (predicate, raw) in enumerate(zip(self.predicates, self.raw, strict=True)):
            try:
                of_predicate = self._rectangles(predicate, raw, truths[:, [place[part] for part in raw]])
            except SpecError as error:
                raise SpecError([f"{self.asked[number].place}: {fault}" for fault in error.faults]) from None
            coded += [(number, rectangle, applies) for rectangle, applies in of_predicate]
            self._check_size(len(coded))
        applies = np.array([applies for _, _, applies in coded], np.uint8).reshape(len(coded), len(truths))
        return CodedSelections(
            rectangles=predicates.masks_of([rectangle for _, rectangle, _ in coded], self.sizes),
            selection=np.array([number for number, _, _ in coded], np.int64),
            weights=np.array([selection.weight for selection in self.asked], np.float64),
            signatures=of_row,
            applies=applies.T.copy(),
            boundaries=self._boundaries(),
            names=tuple(selection.name for selection in self.asked),
        )

    def _check_size(self, rectangles: int) -> None:
        if rectangles > LIMIT:
            raise SpecError([f"workload.selections: they need more than {LIMIT:,} rectangles; ask for fewer."])
        if rectangles * sum(self.sizes) > LARGEST:
            widest = max(zip(self.sizes, self.place, strict=True))
            raise SpecError(
                [
                    f"workload.selections: too many for columns of so many values ('{widest[1]}' has "
                    f"{widest[0]:,}); ask for fewer, or round its values."
                ]
            )

    def _is_observed(self, values: truth.TableValues, condition: Condition) -> bool:
        """Whether some row has the end of a condition, where that matters."""
        place = self.place.get(condition.column)
        domain = None if place is None else self.domains[place]
        if not isinstance(domain, schema.OrderedDomain) or truth.has_steps(domain.dtype):
            return True
        equal = Condition(condition.column, Relation.IN, condition.values, kind=condition.kind)
        return bool(values.column(condition.kind).truth(equal).any())

    def _raw_parts(self, predicate: Predicate) -> list[Predicate]:
        """The parts over single columns that are released as they are."""
        column = predicates.column_of(predicate)
        if column is not None:
            return [] if column in self.place else [predicate]
        assert not isinstance(predicate, Condition)
        return list(dict.fromkeys(own for part in predicate.parts for own in self._raw_parts(part)))

    def _truths(self, signatures: Signatures, truths_of: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Of each signature which parts hold. (signature, part)"""
        truths = np.zeros((1, 0), np.bool_)
        for size, known, own in zip(signatures.sizes, signatures.known, truths_of, strict=True):
            truths = np.hstack([truths[known // size], own[known % size]])
        names = [predicates.column_of(part) for part in self.parts]
        order = [place for name in dict.fromkeys(names) for place, other in enumerate(names) if other == name]
        return np.asarray(truths[:, np.argsort(order)])

    def _rectangles(
        self, predicate: Predicate, raw: Sequence[Predicate], truths: NDArray[np.bool_]
    ) -> list[tuple[Rectangle, NDArray[np.bool_]]]:
        """The rectangles of a predicate, and for which signatures each counts; disjoint for every signature."""
        patterns, pattern_of = _different(truths)
        classes_of: dict[tuple[tuple[tuple[int, int], ...], ...], NDArray[np.bool_]] = {}
        for number, pattern in enumerate(patterns):
            known = dict(zip(raw, pattern.tolist(), strict=True))
            parts = predicates.rectangles_of(predicate, partial(self._part, known=known), self.sizes)
            key = tuple(tuple(sorted(rectangle.items())) for rectangle in parts)
            classes_of[key] = classes_of.get(key, False) | (pattern_of == number)
        return [(dict(rectangle), which) for key, which in classes_of.items() for rectangle in key]

    def _part(self, predicate: Predicate, known: Mapping[Predicate, bool]) -> Part:
        """What a part over one column selects; of raw columns it is known for each signature."""
        column = predicates.column_of(predicate)
        assert column is not None
        if column not in self.place:
            return known[predicate]
        place = self.place[column]
        return place, predicates.set_of(codes_of(predicate, self.domains[place]))

    def _boundaries(self) -> NDArray[np.uint8]:
        """(code of any quasi-identifier,) 1 where a cut below the code lies exactly at its value."""
        flags = [np.zeros(size, np.uint8) for size in self.sizes]
        both = zip(self.predicates, self.asked, strict=True)
        asked = [predicate for predicate, selection in both if not selection.is_each]
        for of_column, domain in zip(flags, self.domains, strict=True):
            if isinstance(domain, schema.OrderedDomain) and asked:
                places = np.concatenate([cut_places_of(predicate, domain) for predicate in asked])
                of_column[int(domain.has_missing) :][np.isin(domain.values, places)] = 1
        return np.concatenate([np.zeros(0, np.uint8), *flags])


def _different(rows: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """The different rows of truths, and which of them each row is."""
    if rows.shape[1] == 0:
        return rows[:1], np.zeros(len(rows), np.int64)
    packed = np.ascontiguousarray(np.packbits(rows, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], which
