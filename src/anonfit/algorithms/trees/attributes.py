# SPDX-License-Identifier: Apache-2.0
"""The columns a tree may test, as growing sees them: codes, whether they are ordered, public, and where taxonomies
part them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.schema import Codes, Domain, NominalDomain
from anonfit.tables.taxonomy import Taxonomy

__all__ = ["Attributes", "attributes_of", "breaks_of"]


@dataclass(frozen=True, slots=True)
class Attributes:
    """The codes of all columns.

    `breaks` has, for every code of a nominal column, the least depth at which its taxonomy parts it from the code
    before; those of a column begin at its `offset`. A division at a depth has the runs of codes between breaks
    of at most that depth as its parts.
    """

    codes: NDArray[np.int32]  # (column, row)
    sizes: NDArray[np.int32]  # (column,)
    is_ordered: NDArray[np.bool_]  # (column,)
    is_public: NDArray[np.bool_]  # (column,)
    breaks: NDArray[np.int32]
    offsets: NDArray[np.int32]  # (column,)

    @property
    def facts(self) -> NDArray[np.int32]:
        """(fact, column) as kernels read them."""
        return np.stack([self.is_ordered, self.is_public, self.offsets]).astype(np.int32)


def breaks_of(taxonomy: Taxonomy) -> NDArray[np.int32]:
    """For each leaf, the least depth at which it and the leaf before have different ancestors."""
    found = np.zeros(len(taxonomy.leaves), np.int32)
    # Of the nodes that begin at a leaf, the one nearest the root parts it from the leaf before.
    for node in range(len(taxonomy.names) - 1, 0, -1):
        found[taxonomy.first_leaf[node]] = taxonomy.depth[node]
    found[0] = 0
    return found


def attributes_of(
    domains: Sequence[Domain], codes: Sequence[Codes | NDArray[np.int32]], public: Sequence[bool]
) -> Attributes:
    """The columns of these domains."""
    breaks = [breaks_of(one.taxonomy) if isinstance(one, NominalDomain) else np.zeros(0, np.int32) for one in domains]
    lengths = np.array([len(one) for one in breaks], np.int64)
    rows = len(codes[0]) if len(codes) else 0
    table = np.empty((len(domains), rows), np.int32)
    for index, column in enumerate(codes):
        table[index] = column
    return Attributes(
        table,
        np.array([one.coded().size for one in domains], np.int32),
        np.array([not isinstance(one, NominalDomain) for one in domains], bool),
        np.array(public, bool),
        np.concatenate([np.zeros(0, np.int32), *breaks]),
        (np.cumsum(lengths) - lengths).astype(np.int32),
    )
