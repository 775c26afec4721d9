# SPDX-License-Identifier: Apache-2.0
"""Numbers for the different values of a column: equal keys have equal numbers, and texts are told apart by 64-bit
hashes. Two different texts of a column get one number with a chance of (number of texts)² / 2**65."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["Dictionary", "Hashes", "IntArray", "as_pointers", "dictionary", "few_texts", "numbered", "numbered_few"]

IntArray = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
_FEW_ROWS = 1 << 15  # of so many, keys are sorted: nothing has to be compiled
_FEW_VALUES = 1 << 12
_SEED = 0x5DEECE66D


@dataclass(frozen=True, slots=True)
class Dictionary:
    """A column as pointers to its different values: 0 is missing, 1 the first of them."""

    codes: IntArray
    values: pl.Series


def numbered(keys: IntArray | Hashes) -> tuple[IntArray, IntArray]:
    """Every row's number, counted from 1 as keys appear, and the first row of each."""
    found = numbered_few(keys, len(keys))
    assert found is not None
    return found


def numbered_few(keys: IntArray | Hashes, most: int) -> tuple[IntArray, IntArray] | None:
    """The same; None if there are more than `most` different keys."""
    found = _by_sorting(keys) if len(keys) < _FEW_ROWS else _by_table(keys, most)
    return found if found is not None and len(found[1]) <= most else None


def _by_sorting(keys: IntArray | Hashes) -> tuple[IntArray, IntArray]:
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[places] + 1, first[order]


def _by_table(keys: IntArray | Hashes, most: int) -> tuple[IntArray, IntArray] | None:
    from anonfit.auditing.numbering_kernel import number

    codes, room = np.empty(len(keys), np.int64), _FEW_VALUES
    plain = np.ascontiguousarray(keys).view(np.uint64)
    while True:
        first = np.empty(room, np.int64)
        count = number(plain, codes, np.zeros(2 * room, np.uint32), first)
        if count >= 0:
            return codes, first[:count]
        if room > most:
            return None
        room *= 16


def dictionary(texts: pl.Series) -> Dictionary:
    """The different values of a column of texts."""
    found = few_texts(texts, len(texts))
    assert found is not None
    return found


def few_texts(texts: pl.Series, most: int) -> Dictionary | None:
    """The same; None if there are more than `most`, and they are in no dictionary."""
    if isinstance(texts.dtype, (pl.Categorical, pl.Enum)):
        return _of_pointers(texts)
    found = numbered_few(texts.hash(seed=_SEED).to_numpy(), most)
    if found is None:
        return None
    codes, values = found[0], _at(texts, found[1])
    if values.null_count():
        known = values.is_not_null().to_numpy()
        codes, values = np.append(0, np.where(known, np.cumsum(known), 0)).take(codes), values.drop_nulls()
    return Dictionary(codes, values)


def _at(texts: pl.Series, rows: IntArray) -> pl.Series:
    """The texts of some rows; a few are picked one by one, since gathering puts all rows into one piece first."""
    if len(rows) > _FEW_VALUES:
        return texts.gather(rows)
    return pl.Series(texts.name, [texts[row] for row in rows.tolist()], dtype=pl.String)


def _of_pointers(texts: pl.Series) -> Dictionary:
    """The values that a column in a dictionary really has, which may be few of all that are there."""
    pointers = texts.to_physical()
    places: IntArray = pointers.to_numpy().astype(np.int64) if not pointers.null_count() else _with_missing(pointers)
    seen = np.zeros(int(places.max(initial=-1)) + 2, np.bool_)  # the place after the last is that of missing
    seen[places] = True
    seen[-1] = False
    present = pl.Series(texts.name, np.flatnonzero(seen).astype(np.uint32)).cat.to(texts.dtype).cast(pl.String)
    if seen[:-1].all() and not pointers.null_count():
        places += 1
        return Dictionary(places, present)
    return Dictionary(np.where(seen, np.cumsum(seen), 0).take(places, mode="wrap"), present)


def _with_missing(pointers: pl.Series) -> IntArray:
    """Pointers with -1 for missing, which is the last place."""
    return pointers.cast(pl.Int64).fill_null(-1).to_numpy().copy()


def as_pointers(found: Dictionary, name: str) -> pl.Series:
    """A column in a dictionary as polars has it."""
    places = found.codes.astype(np.min_scalar_type(len(found.values)))
    places -= places.dtype.type(1)
    pointers = pl.Series(name, places)
    if not found.codes.all():
        pointers = pl.select(pl.when(pl.Series(found.codes > 0)).then(pointers).alias(name)).to_series()
    return pointers.cat.to(pl.Enum(found.values))
