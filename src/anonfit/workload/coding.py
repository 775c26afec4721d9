# SPDX-License-Identifier: Apache-2.0
"""Conditions over the codes of a quasi-identifier, and the faces of predicates: values at which a cut must be possible
even where no row has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.coded import MISSING, Codes, code_dtype
from anonfit.tables.domains import Domain, NominalDomain, OrderedDomain, OrdinalDomain
from anonfit.tables.scales import Axis
from anonfit.tables.schema import ColumnType
from anonfit.workload.comparing import compared, cut_places, has_steps
from anonfit.workload.literals import leaf_of_value, plain_in
from anonfit.workload.predicates import And, Condition, Holding, Predicate, Relation, conditions_of, mapped
from anonfit.workload.truth import ranked

__all__ = ["codes_of", "codes_within", "cut_places_of", "faces", "size_of", "unobserved_met_by_cuts", "with_faces"]

Mask = NDArray[np.uint8]


def size_of(domain: Domain) -> int:
    """How many codes a column has."""
    if isinstance(domain, OrderedDomain):
        known = len(domain.values)
    else:
        known = len(domain.order if isinstance(domain, OrdinalDomain) else domain.taxonomy.leaves)
    return known + int(domain.has_missing)


def codes_within(condition: Condition, domain: Domain) -> Mask:
    """Which codes a condition selects: those of which some value satisfies it.

    Args:
        condition: A condition on the column.
        domain: What the column's codes stand for.

    Returns:
        (code,) 1 where within.
    """
    found = np.zeros(size_of(domain), np.uint8)
    known = found[int(domain.has_missing) :]
    if condition.relation == Relation.MISSING:
        if domain.has_missing:
            found[MISSING] = 1
    elif condition.relation == Relation.NOT_MISSING:
        known[:] = 1
    elif isinstance(domain, OrderedDomain):
        known[:] = compared(domain.values, condition.relation, condition.values, domain.dtype)
    elif isinstance(domain, OrdinalDomain):
        known[:] = ranked(np.arange(len(domain.order)), condition)
    elif condition.relation == Relation.IN:
        known[_leaves_of(condition, domain)] = 1
    else:
        known[:] = 1
        known[_leaves_of(condition, domain, wholly=True)] = 0
    return found


def codes_of(predicate: Predicate, domain: Domain) -> Mask:
    """Which codes a predicate over this column alone selects."""
    if isinstance(predicate, Condition):
        return codes_within(predicate, domain)
    parts = [codes_of(part, domain) for part in predicate.parts]
    found: Mask = (np.bitwise_and if isinstance(predicate, And) else np.bitwise_or).reduce(parts)
    return found


def _leaves_of(condition: Condition, domain: NominalDomain, *, wholly: bool = False) -> list[int]:
    """The leaves that hold a value of a condition; `wholly`: those that hold nothing else."""
    holding = condition.kind.holding
    found = []
    by_value = None
    for value in condition.values:
        if isinstance(value, str):
            position = _leaf_position(domain, value, holding)
        elif domain.type != ColumnType.NOMINAL:
            position = leaf_of_value(domain.taxonomy, value)
            if wholly and not (
                holding == Holding.NUMBERS and plain_in(domain.taxonomy.leaves[position], holding) == value
            ):
                continue  # an interval holds other values too
        else:
            by_value = by_value or {plain_in(name, holding): at for at, name in enumerate(domain.taxonomy.leaves)}
            position = by_value.get(value, -1)
        is_named = position >= 0 and domain.taxonomy.leaves[position] != domain.other
        if is_named:
            found.append(position)
        elif domain.other is not None and not wholly:
            found.append(domain.taxonomy.leaf_position[domain.other])
    return found


def _leaf_position(domain: NominalDomain, name: str, holding: Holding) -> int:
    """The leaf of a name, -1 without one; the leaf of a truth may be written in any case."""
    if holding == Holding.TRUTHS:
        lowered = [leaf.lower() for leaf in domain.taxonomy.leaves]
        return lowered.index(name) if name in lowered else -1
    return domain.taxonomy.leaf_position.get(name, -1)


# --- faces ------------------------------------------------------------------------------------------------------


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

    return mapped(predicate, change)


def cut_places_of(predicate: Predicate, domain: OrderedDomain) -> Axis:
    """Where cuts part what a predicate selects of a column, within the range of its values; ascending."""
    places = [
        place
        for condition in conditions_of(predicate)
        if condition.column == domain.name
        for value in condition.values
        for place in cut_places(condition.relation, value, domain.dtype)
    ]
    if len(domain.values) == 0:
        return domain.values
    lowest, highest = domain.values[0], domain.values[-1]
    return _distinct([place for place in places if lowest < place <= highest], domain)


def _distinct(places: Iterable[int | float], domain: OrderedDomain) -> Axis:
    """Different places on the axis of a domain, ascending."""
    found = sorted(set(places))
    return np.array(found, np.int64) if domain.values.dtype.kind == "i" else np.array(found, np.float64)


def faces(predicates: Iterable[Predicate], domain: OrderedDomain) -> Axis:
    """The values that predicates need as codes of a column besides those that rows have.

    Args:
        predicates: All predicates of a workload.
        domain: The column, with the values that rows have.

    Returns:
        The values on the axis of the domain, ascending; each lies above its lowest value and below its highest.
    """
    dense = not has_steps(domain.dtype)

    def is_observed(condition: Condition) -> bool:
        return not dense or bool(compared(domain.values, Relation.IN, condition.values, domain.dtype).any())

    found = (cut_places_of(unobserved_met_by_cuts(predicate, is_observed), domain) for predicate in predicates)
    places = _distinct((place for part in found for place in part.tolist()), domain)
    return places[~np.isin(places, domain.values)]


def with_faces(domain: OrderedDomain, places: Axis) -> tuple[OrderedDomain, Codes]:
    """A domain with further values, which are codes that no row has.

    Args:
        domain: The column.
        places: The values to add, on its axis.

    Returns:
        The new domain, and the new code of each old code.
    """
    values: Any = np.union1d(domain.values, places)
    shift = int(domain.has_missing)
    codes = np.zeros(len(domain.values) + shift, code_dtype(len(values) + shift))
    codes[shift:] = np.searchsorted(values, domain.values) + shift
    return replace(domain, values=values), codes
