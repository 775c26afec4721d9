# SPDX-License-Identifier: Apache-2.0
"""Random small tables of codes, for the reference and for the code."""

from __future__ import annotations

import numpy as np
from tree_reference import Table

from anonfit.algorithms.trees.growing import Attributes, breaks_of
from anonfit.tables.taxonomy import Taxonomy


def random_paths(rng: np.random.Generator, size: int) -> list[tuple[str, ...]]:
    """An uneven taxonomy of one to three levels."""
    paths: list[tuple[str, ...]] = []
    group = inner = 0
    for code in range(size):
        if code and rng.random() < 0.5:
            group += 1
            inner = 0
        elif rng.random() < 0.5:
            inner += 1
        kind = rng.integers(3)
        leaf = f"v{code}"
        above = [f"g{group}"] if kind else []
        if kind == 2:
            above.append(f"g{group}i{inner}")
        paths.append((*above, leaf))
    return paths


def random_table(rng: np.random.Generator, *, ordered: bool, class_is_public: bool) -> Table:
    columns = int(rng.integers(1, 5))
    rows = int(rng.integers(3, 15))
    sizes = [int(rng.integers(1, 5)) for _ in range(columns)]
    paths = [None if ordered and rng.random() < 0.5 else random_paths(rng, size) for size in sizes]
    for index, one in enumerate(paths):
        if one is not None:
            # In the order of the taxonomy's leaves, as codes are.
            tree = Taxonomy.from_paths([(*reversed(path), "*") for path in one])
            by_leaf = {path[-1]: path for path in one}
            paths[index] = [by_leaf[leaf] for leaf in tree.leaves]
    classes = int(rng.integers(2, 4))
    return Table(
        [tuple(int(rng.integers(size)) for size in sizes) for _ in range(rows)],
        [int(one) for one in rng.integers(classes, size=rows)],
        sizes,
        [bool(rng.random() < 0.6) for _ in range(columns)],
        paths,
        classes,
        class_is_public,
    )


def attributes(table: Table) -> Attributes:
    breaks = [
        np.zeros(0, np.int32)
        if paths is None
        else breaks_of(Taxonomy.from_paths([(*reversed(path), "*") for path in paths]))
        for paths in table.paths
    ]
    lengths = [len(one) for one in breaks]
    return Attributes(
        np.array(table.rows, np.int32).T.copy(),
        np.array(table.sizes, np.int32),
        np.array([paths is None for paths in table.paths]),
        np.array(table.public),
        np.concatenate(breaks),
        (np.cumsum(lengths) - lengths).astype(np.int32),
    )
