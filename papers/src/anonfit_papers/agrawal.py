# SPDX-License-Identifier: Apache-2.0
"""The synthetic people of Agrawal, Imielinski and Swami (1993): the tables of the papers' experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError, RequestError, did_you_mean
from anonfit_papers.agrawal_functions import (
    FIXED,
    FUNCTIONS,
    SCORED,
    Constants,
    check_constants,
    columns_of,
    in_group_a,
    random_constants,
    scores,
)

AGRAWAL_COLUMNS = ("salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan")

_WHOLE = ("age", "elevel", "car", "zipcode", "hyears")
_GROUPS = ("A", "B")
_BATCH = 1 << 17  # rows made at once: a batch stays in the processor's cache
_WORDS = 5  # raw 64-bit words of a row; NumPy promises the raw stream for ever, but not its distributions

Words: TypeAlias = NDArray[np.uint64]
Column: TypeAlias = NDArray[Any]


def agrawal(
    rows: int,
    *,
    function: int | None = None,
    functions: Sequence[int] = (),
    seed: int = 0,
    constants: Literal["fixed", "random"] | Constants = "fixed",
    hvalue: Literal["kdd", "moa"] = "kdd",
) -> pl.DataFrame:
    """A table of people and the group a function puts them in; a longer table of the same seed begins with the same
    rows.

    Args:
        rows: How many rows, at least 1.
        function: The function, 1 to 10, of the column `group`; 2 unless `functions` are given.
        functions: Several functions: instead of `group` there is a column `group_N` for each.
        seed: Another seed gives other people.
        constants: The fixed constants of the papers, constants drawn at random with this seed (a training and a test
            table of different seeds then have different constants: draw `random_constants` once and give them to
            both), or constants of your own.
        hvalue: A house's value: 100,000 × zipcode × h as in the KDD 2006 paper ("kdd"), or 100,000 × (9 − zipcode) × h
            as in MOA ("moa"), h uniform between 0.5 and 1.5.

    Returns:
        A polars frame with the columns of `AGRAWAL_COLUMNS` and the groups, "A" or "B".

    Example:
        >>> agrawal(2, function=7).columns[-2:]
        ['loan', 'group']
    """
    if rows < 1:
        raise RequestError(f"The generator needs at least 1 row, but {rows} were asked for: give a larger number.")
    wanted = _group_columns(function, functions)
    if hvalue not in ("kdd", "moa"):
        raise RequestError(f"hvalue is '{hvalue}': {did_you_mean(str(hvalue), ['kdd', 'moa'])}")
    chosen = random_constants(seed) if isinstance(constants, str) and constants == "random" else _given(constants)

    kinds: dict[str, type[np.generic]] = {name: np.int32 if name in _WHOLE else np.float64 for name in AGRAWAL_COLUMNS}
    kinds |= dict.fromkeys(wanted, np.uint8)
    columns: dict[str, Column] = {name: np.empty(rows, dtype=kind) for name, kind in kinds.items()}
    bits = np.random.PCG64(seed)
    for start in range(0, rows, _BATCH):
        size = min(_BATCH, rows - start)
        words = np.asarray(bits.random_raw(size * _WORDS), dtype=np.uint64).reshape(size, _WORDS)
        people = _people(words, reverse=hvalue == "moa")
        for name, numbers in people.items():
            columns[name][start : start + size] = numbers
        for name, number in wanted.items():
            columns[name][start : start + size] = ~in_group_a(people, number, chosen)
    series = [_labels(name, column) if name in wanted else pl.Series(name, column) for name, column in columns.items()]
    return pl.DataFrame(series)


def groups(frame: Any, function: int = 2, *, constants: Literal["fixed"] | Constants = "fixed") -> pl.Series:
    """The group, "A" or "B", that a function puts each row of a frame in.

    Args:
        frame: A frame, or a mapping of arrays, that has the columns the function looks at.
        function: 1 to 10.
        constants: The fixed constants of the papers, `random_constants`, or constants of your own.

    Returns:
        A polars series named `group`.

    Example:
        >>> groups({"age": [39, 40, 60]}, 1).to_list()
        ['A', 'B', 'A']
    """
    _check_function(function)
    chosen = _given(constants)
    people = _read(frame, columns_of(function))
    codes = np.empty(len(next(iter(people.values()))), dtype=np.uint8)
    for start in range(0, len(codes), _BATCH):
        part = slice(start, start + _BATCH)
        codes[part] = ~in_group_a({name: numbers[part] for name, numbers in people.items()}, function, chosen)
    return _labels("group", codes)


def score(frame: Any, function: int = 7) -> pl.Series:
    """The number that functions 7 to 10 compare with 0: a target for regression.

    Args:
        frame: A frame, or a mapping of arrays, that has the columns the function looks at.
        function: 7 to 10; a row is in group A where its score is above 0.

    Returns:
        A polars series named `score`.

    Example:
        >>> score({"salary": [60_000], "commission": [0], "loan": [50_000]}, 7).to_list()
        [10000.0]
    """
    _check_function(function)
    if function not in SCORED:
        raise RequestError(f"Function {function} has no score, only functions 7 to 10 have one: use groups().")
    return pl.Series("score", scores(_read(frame, columns_of(function)), function))


def taxonomies() -> dict[str, dict[str, Any]]:
    """The trees of the experiments: levels of education {0, 1} and {2, 3, 4}, cars in four makes of five."""

    def tree(parts: Sequence[range]) -> dict[str, Any]:
        nodes = [{"name": f"{p[0]}-{p[-1]}", "children": [{"name": str(value)} for value in p]} for p in parts]
        return {"name": "*", "children": nodes}

    return {
        "elevel": tree([range(2), range(2, 5)]),
        "car": tree([range(first, first + 5) for first in (1, 6, 11, 16)]),
    }


def _people(words: Words, *, reverse: bool) -> dict[str, Column]:
    """One row a row of words: the upper half of a word makes a real number, the lower half a whole one."""

    def real(word: int, low: float, high: float) -> NDArray[np.float64]:
        return low + (high - low) * ((words[:, word] >> np.uint64(32)) / 2.0**32)

    def whole(word: int, low: int, high: int) -> NDArray[np.int64]:
        half = words[:, word] & np.uint64(0xFFFFFFFF)
        return low + ((half * np.uint64(high - low + 1)) >> np.uint64(32)).astype(np.int64)

    salary = real(0, 20_000, 150_000)
    zipcode = whole(4, 0, 8)
    return {
        "salary": salary,
        # drawn for everybody, so that a row takes the same words whatever its salary
        "commission": np.where(salary >= 75_000, 0.0, real(1, 10_000, 75_000)),
        "age": whole(0, 20, 80),
        "elevel": whole(1, 0, 4),
        "car": whole(2, 1, 20),
        "zipcode": zipcode,
        "hvalue": (9 - zipcode if reverse else zipcode) * real(3, 50_000, 150_000),
        "hyears": whole(3, 1, 30),
        "loan": real(2, 0, 500_000),
    }


def _group_columns(function: int | None, functions: Sequence[int]) -> dict[str, int]:
    """The function of each column of groups."""
    if function is not None and functions:
        raise RequestError("Both function and functions are given: give one function or several.")
    if not functions:
        chosen = 2 if function is None else function
        _check_function(chosen)
        return {"group": chosen}
    for number in functions:
        _check_function(number)
    if len(set(functions)) < len(functions):
        raise RequestError("functions names a function twice: name each function once.")
    return {f"group_{number}": number for number in functions}


def _check_function(function: int) -> None:
    if function not in FUNCTIONS:
        raise RequestError(f"There is no function {function!r}: the functions have the numbers 1 to 10.")


def _given(constants: object) -> Constants:
    if isinstance(constants, Constants):
        check_constants(constants)
        return constants
    if constants == "fixed":
        return FIXED
    if constants == "random":
        raise RequestError("constants = 'random' needs a seed here: give random_constants(seed).")
    raise RequestError(f"constants is {constants!r}: give 'fixed', 'random' or Constants.")


def _read(frame: Any, columns: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """The columns of any frame as numbers."""
    people = {}
    for column in columns:
        try:
            people[column] = np.asarray(frame[column], dtype=np.float64)
        except (KeyError, pl.exceptions.ColumnNotFoundError):
            raise DataError(f"The table has no column '{column}', which the function looks at: add it.") from None
        except (TypeError, ValueError):
            raise DataError(
                f"Column '{column}' holds values that are no numbers; the function needs numbers."
            ) from None
        if np.isnan(people[column]).any():
            raise DataError(f"Column '{column}' has missing values; the function needs a number in every row.")
    return people


def _labels(name: str, codes: NDArray[np.uint8]) -> pl.Series:
    return pl.Series(name, _GROUPS, dtype=pl.Enum(_GROUPS)).gather(codes)
