# SPDX-License-Identifier: Apache-2.0
"""The ten functions of Agrawal, Imielinski and Swami that divide people into groups A and B, and their constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import RequestError

Numbers: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Span: TypeAlias = tuple[float, float]
"""Two ends in order; both belong to it."""

FUNCTIONS = range(1, 11)
BANDED = range(2, 7)
"""The functions that ask something else of each band of ages; only they have constants that can be redrawn."""
SCORED = range(7, 11)
"""The functions that say A where a score is above 0."""


@dataclass(frozen=True, slots=True)
class BandConstants:
    """The constants of one of functions 2 to 6.

    Young is `age < ages[0]`, old is `age >= ages[1]`, middle is what is between. Every other field has one span for
    the young, one for the middle, one for the old. Functions 2, 3 and 6 say A inside `test`. Functions 4 and 5 look
    at a second column, and say A inside `passed` for those who are inside `test`, inside `failed` for the others.
    """

    ages: tuple[int, int]
    test: tuple[Span, Span, Span]
    passed: tuple[Span, Span, Span] | None = None
    failed: tuple[Span, Span, Span] | None = None


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of functions 2 to 6; a function that is not in `bands` has the fixed ones of the papers."""

    bands: Mapping[int, BandConstants] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Banded:
    """What a banded function looks at: the column tested first and, for functions 4 and 5, the one after it."""

    first: str
    second: str | None = None


_BANDED: Mapping[int, _Banded] = {
    2: _Banded("salary"),
    3: _Banded("elevel"),
    4: _Banded("elevel", "salary"),
    5: _Banded("salary", "loan"),
    6: _Banded("income"),
}

_SALARIES: tuple[Span, Span, Span] = ((50_000, 100_000), (75_000, 125_000), (25_000, 75_000))
_LEVELS: tuple[Span, Span, Span] = ((0, 1), (1, 3), (2, 4))

FIXED = Constants(
    MappingProxyType(
        {
            2: BandConstants((40, 60), _SALARIES),
            3: BandConstants((40, 60), _LEVELS),
            4: BandConstants(
                (40, 60),
                _LEVELS,
                passed=((25_000, 75_000), (50_000, 100_000), (50_000, 100_000)),
                failed=((50_000, 100_000), (75_000, 125_000), (25_000, 75_000)),
            ),
            5: BandConstants(
                (40, 60),
                _SALARIES,
                passed=((100_000, 300_000), (200_000, 400_000), (300_000, 500_000)),
                failed=((200_000, 400_000), (300_000, 500_000), (100_000, 300_000)),
            ),
            6: BandConstants((40, 60), _SALARIES),
        }
    )
)

# Salary and commission together are at least 20,000 + 10,000: below 75,000 there always is a commission.
_RANGES: Mapping[str, Span] = {"salary": (20_000, 150_000), "income": (30_000, 150_000), "loan": (0, 500_000)}
_WHOLE: Mapping[str, tuple[int, int]] = {"age": (20, 80), "elevel": (0, 4)}


def random_constants(seed: int = 0) -> Constants:
    """Constants of functions 2 to 6 drawn uniformly over the range of the column each is compared with.

    All are drawn independently, for every function anew; of a pair (the two borders of the ages, the two ends of a
    span) the smaller one comes first. Ages and levels of education are whole numbers, and a pair may be twice the same.

    Args:
        seed: Another seed gives other constants. It is not in step with the seed of the rows.

    Returns:
        Constants for `agrawal` and `groups`: give the same ones to a training and a test table.

    Example:
        >>> random_constants(1) == random_constants(1)
        True
    """
    # A stream of its own: the rows of a seed must be the same whether or not constants are drawn.
    bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(1,)))

    def pair(column: str) -> tuple[float, float]:
        low, high = sorted(_drawn(int(bits.random_raw()), column) for _ in range(2))
        return low, high

    def spans(column: str) -> tuple[Span, Span, Span]:
        return pair(column), pair(column), pair(column)

    bands = {}
    for function, looks in _BANDED.items():
        first, second = pair("age")
        bands[function] = BandConstants(
            (int(first), int(second)),
            spans(looks.first),
            spans(looks.second) if looks.second else None,
            spans(looks.second) if looks.second else None,
        )
    return Constants(MappingProxyType(bands))


def _drawn(word: int, column: str) -> float:
    """A number of the column's range from a raw word of 64 bits."""
    if column in _WHOLE:
        low, high = _WHOLE[column]
        return low + (word * (high - low + 1) >> 64)
    start, end = _RANGES[column]
    return start + (end - start) * ((word >> 11) / 2**53)


def check_constants(constants: Constants) -> None:
    """Refuse constants that are not complete, or not in order."""
    for function, bands in constants.bands.items():
        if function not in BANDED:
            raise RequestError(f"Function {function} has no constants to choose: only functions 2 to 6 have.")
        needed = _BANDED[function].second is not None
        if (bands.passed is not None, bands.failed is not None) != (needed, needed):
            wanted = "needs the spans passed and failed" if needed else "has no spans passed and failed"
            raise RequestError(f"The constants of function {function} do not fit: function {function} {wanted}.")
        parts = [bands.test, bands.passed or (), bands.failed or ()]
        if any(part and len(part) != 3 for part in parts):
            raise RequestError(f"The constants of function {function} need three spans, one for each band of ages.")
        if any(low > high for low, high in [bands.ages, *(span for part in parts for span in part)]):
            raise RequestError(f"The constants of function {function} have a pair out of order: the lower comes first.")


def columns_of(function: int) -> tuple[str, ...]:
    """The columns a function looks at."""
    money = ("salary", "commission")
    if function == 1:
        return ("age",)
    if function in BANDED:
        looks = [part for part in (_BANDED[function].first, _BANDED[function].second) if part]
        return ("age", *(column for part in looks for column in (money if part == "income" else (part,))))
    return money + {7: ("loan",), 8: ("elevel",), 9: ("elevel", "loan"), 10: ("elevel", "hvalue", "hyears")}[function]


def in_group_a(rows: Mapping[str, Numbers], function: int, constants: Constants) -> Flags:
    """Which rows a function puts into group A."""
    if function == 1:
        age = rows["age"]
        first: Flags = (age < 40) | (age >= 60)
        return first
    if function in SCORED:
        above: Flags = scores(rows, function) > 0
        return above
    return _banded(rows, _BANDED[function], constants.bands.get(function, FIXED.bands[function]))


def scores(rows: Mapping[str, Numbers], function: int) -> Numbers:
    """The number that functions 7 to 10 compare with 0."""
    return _SCORES[function](rows)


def _banded(rows: Mapping[str, Numbers], looks: _Banded, bands: BandConstants) -> Flags:
    age = rows["age"]
    # 0 young, 1 middle, 2 old; borders drawn at random may leave the middle empty
    band = np.where(age < bands.ages[0], 0, np.where(age < bands.ages[1], 1, 2))
    inside = _within(_looked_at(rows, looks.first), bands.test, band)
    if looks.second is None or bands.passed is None or bands.failed is None:
        return inside
    second = _looked_at(rows, looks.second)
    return np.where(inside, _within(second, bands.passed, band), _within(second, bands.failed, band))


def _looked_at(rows: Mapping[str, Numbers], column: str) -> Numbers:
    return _income(rows) if column == "income" else rows[column]


def _within(numbers: Numbers, spans: tuple[Span, Span, Span], band: NDArray[np.int64]) -> Flags:
    lows, highs = np.array(spans, dtype=np.float64).T
    within: Flags = (numbers >= lows[band]) & (numbers <= highs[band])
    return within


def _income(rows: Mapping[str, Numbers]) -> Numbers:
    return rows["salary"] + rows["commission"]


def _two_thirds(rows: Mapping[str, Numbers]) -> Numbers:
    return _income(rows) * 2 / 3


def _score_7(rows: Mapping[str, Numbers]) -> Numbers:
    return _two_thirds(rows) - rows["loan"] / 5 - 20_000


def _score_8(rows: Mapping[str, Numbers]) -> Numbers:
    return _two_thirds(rows) - 5_000 * rows["elevel"] - 20_000


def _score_9(rows: Mapping[str, Numbers]) -> Numbers:
    return _two_thirds(rows) - 5_000 * rows["elevel"] - rows["loan"] / 5 - 10_000


def _score_10(rows: Mapping[str, Numbers]) -> Numbers:
    # Only a house owned for 20 years or more is worth something here.
    equity = rows["hvalue"] * np.maximum(rows["hyears"] - 20, 0) / 10
    return _two_thirds(rows) - 5_000 * rows["elevel"] + equity / 5 - 10_000


_SCORES: Mapping[int, Callable[[Mapping[str, Numbers]], Numbers]] = {
    7: _score_7,
    8: _score_8,
    9: _score_9,
    10: _score_10,
}
