# SPDX-License-Identifier: Apache-2.0
"""Larger tables made of one: the blow-up of TKDE 2007, section 5.3, and its random quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl


def blow_up(frame: pl.DataFrame, rows: int, columns: Sequence[str], seed: int = 0) -> pl.DataFrame:
    """A table of so many rows: the given ones, and variations of them, in each of which between one and all of some
    columns have values drawn from those that occur.

    Args:
        frame: The table.
        rows: How many rows there are to be, the given ones first.
        columns: The columns that vary.
        seed: Another seed, other variations.

    Returns:
        The larger table.
    """
    rng = np.random.default_rng(seed)
    larger = frame[np.arange(rows) % len(frame)]
    number = max(rows - len(frame), 0)
    # A column is drawn if its rank in a random order is below the number of columns that are.
    ranks = rng.random((number, len(columns))).argsort(axis=1).argsort(axis=1)
    drawn = ranks < rng.integers(1, len(columns) + 1, number)[:, None]
    changed = []
    for place, name in enumerate(columns):
        values = frame[name].unique().sort()
        other = values[rng.integers(0, len(values), number)]
        chosen = pl.Series(np.concatenate([np.zeros(rows - number, bool), drawn[:, place]]))
        given = larger[name]
        changed.append(given.zip_with(~chosen, pl.concat([given.head(rows - number), other])).alias(name))
    return larger.with_columns(changed)


def random_requirements(columns: Sequence[str], seed: int, *, number: int | None = None) -> list[tuple[str, ...]]:
    """Random quasi-identifiers as in section 5.1.1: three to seven of them, all of one length, two to nine.

    Args:
        columns: The columns to draw from.
        seed: Another seed, another requirement.
        number: How many quasi-identifiers; drawn if not given.

    Returns:
        The columns of each quasi-identifier, in the order of the table; one that repeats is left out.
    """
    rng = np.random.default_rng(seed)
    count, length = int(rng.integers(3, 8)), int(rng.integers(2, 10))
    quasi_identifiers = [
        tuple(columns[place] for place in sorted(rng.permutation(len(columns))[:length].tolist()))
        for _ in range(number or count)
    ]
    return list(dict.fromkeys(quasi_identifiers))
