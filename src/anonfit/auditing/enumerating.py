# SPDX-License-Identifier: Apache-2.0
"""Spans of any model with few outcomes: it is asked for every public combination of the data under every combination
of private values, as long as these are not too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import polars as pl

from anonfit.auditing.coding import IntArray
from anonfit.auditing.groups import group_rows
from anonfit.errors import DataError, listed

__all__ = ["Outcomes", "spans_of_model"]

Outcomes = Callable[[Any], Any]
"""What a model gives for the rows of a frame: one outcome each."""
_ROWS_AT_ONCE = 100_000


def spans_of_model(
    outcomes: Outcomes,
    data: Any,
    frame: pl.DataFrame,
    *,
    public: Sequence[str],
    private: Sequence[str],
    domains: Mapping[str, Sequence[object]],
    limit: int,
) -> tuple[IntArray, int]:
    """The span of every row, numbered from 0, and how many outcomes were met.

    Args:
        outcomes: The model.
        data: The rows as the model reads them: a pandas or polars frame with the columns in its order.
        frame: The same rows.
        public: The public columns that the model reads.
        private: The private columns that it reads.
        domains: The values that private columns can have; of the others those in the data.
        limit: The most outcomes that may be asked for.
    """
    if strange := [name for name in domains if name not in private]:
        raise DataError(f"Values are given for {listed(strange)}, which the model reads as no private column.")
    grouping = group_rows(frame.select(public), len(frame))
    donors = {name: _donors(name, frame, domains) for name in private}
    combinations = prod(count for _, count in donors.values())
    asked = grouping.count * combinations
    if asked > limit:
        raise DataError(
            f"The model would have to be asked {asked} times ({grouping.count} public combinations under "
            f"{combinations} private ones), and the limit is {limit}: give fewer values in 'domains', or raise 'limit'."
        )
    seen: dict[Any, int] = {}
    found = np.zeros(0, np.int64)  # pairs of a public combination and an outcome, as one number each
    for points, choices in _batches(grouping.count, combinations):
        rows = _rows(data, grouping.first[points], choices, donors)
        codes = _coded(outcomes(rows), len(points), seen)
        # The limit keeps the number of outcomes below 2**31, whatever the model gives.
        found = np.union1d(found, (points << 31) | codes)
    return _spans(found, grouping.count)[grouping.of_row], len(seen)


def _donors(name: str, frame: pl.DataFrame, domains: Mapping[str, Sequence[object]]) -> tuple[Any, int]:
    """The values that a private column can have: given ones, or the rows that have each; and how many they are."""
    if name in domains:
        values = list(dict.fromkeys(domains[name]))
        if not values:
            raise DataError(f"No values are given for the private column '{name}'.")
        return values, len(values)
    first = group_rows(frame.select(name), len(frame)).first
    return first, len(first)


def _batches(points: int, combinations: int) -> Iterator[tuple[IntArray, IntArray]]:
    """All pairs of a public combination and a private one, some at a time."""
    for begin in range(0, points * combinations, _ROWS_AT_ONCE):
        pairs = np.arange(begin, min(begin + _ROWS_AT_ONCE, points * combinations))
        yield pairs // combinations, pairs % combinations


def _rows(data: Any, rows: IntArray, choices: IntArray, donors: Mapping[str, tuple[Any, int]]) -> Any:
    """The rows to ask for, of the kind the data is of: public values of some rows, private ones as chosen."""
    is_pandas = not isinstance(data, pl.DataFrame)
    found = data.iloc[rows].reset_index(drop=True) if is_pandas else data[rows]
    for name, (values, count) in donors.items():
        choices, which = np.divmod(choices, count)
        if isinstance(values, list):
            column = _declared(values, data[name], name)
        else:
            column = data[name].iloc[values] if is_pandas else data[name].gather(values)
        if is_pandas:
            found[name] = column.iloc[which].reset_index(drop=True)
        else:
            found = found.with_columns(column.gather(which).alias(name))
    return found


def _declared(values: list[object], like: Any, name: str) -> Any:
    """Given values as a column of the data's type."""
    try:
        if isinstance(like, pl.Series):
            return pl.Series(name, values, dtype=like.dtype)
        return type(like)(values, dtype=like.dtype, name=name)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise DataError(f"The values given for the private column '{name}' are not of its type.") from None


def _coded(found: Any, expected: int, seen: dict[Any, int]) -> IntArray:
    """Outcomes as numbers, counted as they are met."""
    outcomes = np.asarray(found)
    if outcomes.shape != (expected,):
        raise DataError(
            "The model does not give one outcome for each row; an audit needs a function of a frame that does, such "
            "as 'predict'."
        )
    if outcomes.dtype == object:
        return np.array([seen.setdefault(one, len(seen)) for one in outcomes.tolist()], np.int64)
    distinct, which = np.unique(outcomes, return_inverse=True)
    numbers = [seen.setdefault("not a number" if one != one else one, len(seen)) for one in distinct.tolist()]
    return np.array(numbers, np.int64)[which.reshape(-1)]


def _spans(pairs: IntArray, points: int) -> IntArray:
    """The span of every public combination: those with the same set of outcomes have one. pairs: rising"""
    begins = np.searchsorted(pairs >> 31, np.arange(points + 1))
    outcomes = pairs & ((1 << 31) - 1)
    numbers: dict[bytes, int] = {}
    sets = (outcomes[begins[point] : begins[point + 1]].tobytes() for point in range(points))
    return np.array([numbers.setdefault(one, len(numbers)) for one in sets], np.int64)
