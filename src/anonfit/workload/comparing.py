# SPDX-License-Identifier: Apache-2.0
"""Comparing the numbers of a column's axis with exact values, and the places where a cut parts what is selected."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.tables.scales import Axis
from anonfit.workload.predicates import Relation, Value

if TYPE_CHECKING:
    import polars as pl

__all__ = ["compared", "cut_places", "has_steps", "place_of"]

START_OF_TIME = datetime(1970, 1, 1)
DAY = 24 * 3600 * 10**6


def has_steps(dtype: pl.DataType) -> bool:
    """Whether there is a next value after each: whole numbers, decimals and days. Times and fractions are held to be
    dense, since the next microsecond makes no sense in a label.
    """
    import polars as pl

    return dtype.is_integer() or dtype.is_decimal() or dtype == pl.Date


def place_of(value: Value, dtype: pl.DataType) -> Fraction | float:
    """Where a value stands on the axis of a column type: exactly, or as the nearest float that the column can hold."""
    import polars as pl

    if isinstance(value, datetime):
        time = value - START_OF_TIME
        microseconds = (time.days * 86_400 + time.seconds) * 10**6 + time.microseconds
        return Fraction(microseconds, DAY if dtype == pl.Date else 1)
    assert isinstance(value, Fraction)
    if isinstance(dtype, pl.Decimal):
        return value * Fraction(10) ** int(dtype.scale or 0)
    if dtype.is_integer():
        return value
    try:
        number = float(value)
    except OverflowError:
        return inf if value > 0 else -inf
    # So that 37.1 is 37.1 also in a column of 32 bits.
    return float(np.float32(number)) if dtype == pl.Float32 else number


def compared(axis: Axis, relation: Relation, values: tuple[Value, ...], dtype: pl.DataType) -> NDArray[np.bool_]:
    """Which numbers of an axis stand in a relation to the values."""
    places = [place_of(value, dtype) for value in values]
    if relation in (Relation.IN, Relation.NOT_IN):
        exact = [int(place) if isinstance(place, Fraction) else place for place in places if place == _whole(place)]
        found: NDArray[np.bool_] = np.isin(axis, _fitting(exact, axis))
        return ~found if relation == Relation.NOT_IN else found
    (place,) = places
    # Against whole numbers a fraction is rounded to the side on which it changes nothing.
    low, high = (ceil(place), floor(place)) if isinstance(place, Fraction) else (place, place)
    if relation == Relation.AT_LEAST:
        return axis >= low
    if relation == Relation.LESS:
        return axis < low
    return axis <= high if relation == Relation.AT_MOST else axis > high


def _whole(place: Fraction | float) -> Fraction | float:
    return Fraction(floor(place)) if isinstance(place, Fraction) else place


def _fitting(places: list[Any], axis: Axis) -> Axis:
    """The places that an axis can hold."""
    if axis.dtype.kind == "i":
        return np.array([place for place in places if -(2**63) <= place < 2**63], dtype=np.int64)
    return np.array(places, dtype=np.float64)


def cut_places(relation: Relation, value: Value, dtype: pl.DataType) -> list[int | float]:
    """Where cuts part what is selected from what is not: above each place on the one side, below it on the other.

    On a dense axis AT_MOST and MORE have none: the cut is anywhere between the value and the next one.
    """
    place = place_of(value, dtype)
    if not has_steps(dtype):
        number = int(place) if isinstance(place, Fraction) else place
        return [] if relation in (Relation.AT_MOST, Relation.MORE) else [number]
    assert isinstance(place, Fraction)
    if relation in (Relation.AT_LEAST, Relation.LESS):
        return [ceil(place)]
    if relation in (Relation.AT_MOST, Relation.MORE):
        return [floor(place) + 1]
    return [int(place), int(place) + 1] if place.denominator == 1 else []
