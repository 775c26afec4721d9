# SPDX-License-Identifier: Apache-2.0
"""Tables coded with the faces of their selections, as a run of the program codes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.spec.model import SelectionSpec
from anonfit.tables.codebook import code_column
from anonfit.tables.schema import Column, Domain, OrderedDomain, Role
from anonfit.workload.coding import selection_boundaries, size_of, with_boundaries
from anonfit.workload.selections import Selections, code_selections, predicates_of


@dataclass(frozen=True)
class Case:
    domains: list[Domain]
    codes: list[NDArray[Any]]
    selections: Selections

    @property
    def sizes(self) -> list[int]:
        return [size_of(domain) for domain in self.domains]

    def within(self) -> NDArray[np.bool_]:
        """Whether each row lies in each rectangle, by its codes alone. (row, rectangle)"""
        rectangles = self.selections.coded.rectangles
        found = np.ones((len(self.codes[0]), len(rectangles)), np.bool_)
        first = 0
        for codes, size in zip(self.codes, self.sizes, strict=True):
            found &= rectangles[:, first + codes.astype(np.int64)].T.astype(np.bool_)
            first += size
        return found

    def reached(self) -> NDArray[np.int64]:
        """In how many rectangles of each selection that count for it each row lies. (row, selection)"""
        coded = self.selections.coded
        hits = self.within() & coded.applies[coded.signatures].astype(np.bool_)
        found = np.zeros((len(hits), len(coded.weights)), np.int64)
        for rectangle, selection in enumerate(coded.selection.tolist()):
            found[:, selection] += hits[:, rectangle]
        return found


def coded(frame: pl.DataFrame, columns: Sequence[Column], requests: Sequence[SelectionSpec], *, k: int = 1) -> Case:
    predicates = predicates_of(requests, columns, frame)
    domains: list[Domain] = []
    codes = []
    for column in columns:
        if column.role != Role.QUASI_IDENTIFIER:
            continue
        found = code_column(
            column, frame[column.name], persons=lambda groups, count: np.bincount(groups, minlength=count), k=k
        )
        domain = found.domain
        if isinstance(domain, OrderedDomain):
            domain, new = with_boundaries(domain, selection_boundaries(predicates, domain))
            codes.append(new[found.codes])
        else:
            codes.append(found.codes)
        domains.append(domain)
    return Case(domains, codes, code_selections(requests, columns, domains, frame))
