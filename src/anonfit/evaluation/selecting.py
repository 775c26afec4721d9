# SPDX-License-Identifier: Apache-2.0
"""The rows that a model is for: of released rows those whose region overlaps a predicate, of raw rows those that
satisfy it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import SpecError
from anonfit.recoding.building import cells_of_codes
from anonfit.recoding.imprecision import answer, overlapping
from anonfit.recoding.recoding import Recoding
from anonfit.spec.model import SelectionSpec
from anonfit.tables.codebook import code_column
from anonfit.tables.schema import Domain, OrderedDomain, Schema

if TYPE_CHECKING:
    import polars as pl

    from anonfit.tables.persons import Persons

__all__ = ["Learned", "answered", "imprecision", "satisfied"]


@dataclass(frozen=True, slots=True)
class Learned:
    """A recoding and the rows it was learned from."""

    recoding: Recoding
    schema: Schema
    frame: pl.DataFrame
    persons: Persons
    k: int

    def domains(self, selections: Sequence[SelectionSpec]) -> list[Domain]:
        """What the quasi-identifiers of these rows can be, with the values at which selections begin and end."""
        from anonfit.workload.coding import selection_boundaries, with_boundaries
        from anonfit.workload.selections import predicates_of

        predicates = predicates_of(selections, self.schema.columns, self.frame)
        found: list[Domain] = []
        for column in self.schema.quasi_identifiers:
            coded = code_column(column, self.frame[column.name], persons=self.persons.of_groups, k=self.k)
            domain = coded.domain
            if isinstance(domain, OrderedDomain):
                domain, _ = with_boundaries(domain, selection_boundaries(predicates, domain))
            found.append(domain)
        return found


def answered(learned: Learned, where: str, frame: pl.DataFrame, nodes: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which released rows may satisfy a predicate.

    Args:
        learned: The recoding.
        where: The predicate.
        frame: The raw rows that are released; only columns that are released as they are tell them apart.
        nodes: (row,) the node of each.
    """
    from anonfit.workload.selections import code_selections

    request = [SelectionSpec(where=where)]
    domains = learned.domains(request)
    coded = code_selections(request, learned.schema.columns, domains, frame).coded
    cells = cells_of_codes(learned.recoding, domains)
    return overlapping(coded, learned.recoding.boxes, nodes, cells=cells)[:, 0]


def satisfied(where: str, schema: Schema, frame: pl.DataFrame) -> NDArray[np.bool_]:
    """Which raw rows satisfy a predicate."""
    from anonfit.workload.parsing import parse_predicate
    from anonfit.workload.predicates import kinds_of
    from anonfit.workload.truth import holds

    try:
        return holds(parse_predicate(where, kinds_of(schema.columns, frame)), frame)
    except SpecError as error:
        raise SpecError([f"where = '{where}': {fault}" for fault in error.faults]) from None


def imprecision(learned: Learned, selections: Sequence[SelectionSpec], nodes: NDArray[np.int32]) -> float:
    """How many of the rows that a recoding was learned from are in the answers to selections though they do not
    satisfy them, each by its selection's weight. nodes: (row,) of these rows.
    """
    from anonfit.workload.selections import code_selections
    from anonfit.workload.truth import Rows

    domains = learned.domains(selections)
    found = code_selections(selections, learned.schema.columns, domains, learned.frame)
    cells = cells_of_codes(learned.recoding, domains)
    true = Rows(learned.frame).count(found.predicates)
    return answer(found.coded, learned.recoding.boxes, nodes, cells=cells, true=true).total
