# SPDX-License-Identifier: Apache-2.0
"""Which columns tell most of a class: the two orders of columns that the papers use.

KDD 2006 removes columns from the most to the least telling by a greedy information gain; TKDE 2007 takes the root of a
decision tree, removes that column, grows the tree anew, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError, MissingPackage, RequestError

Root = Callable[["pl.DataFrame", "pl.Series"], str]
"""Grows a tree on columns and classes and gives the name of the column at its root."""

BINS = 10
"""Numbers with more distinct values are taken in so many groups of about equal size."""


def information_gains(frame: pl.DataFrame, target: str, columns: Sequence[str]) -> dict[str, float]:
    """What each column alone tells of the class, in bits.

    Args:
        frame: The rows.
        target: The column of the class.
        columns: The columns to look at; numbers of many values are grouped.

    Returns:
        The information gain of each column.

    Example:
        >>> import polars as pl
        >>> rows = pl.DataFrame({"a": ["x", "x", "y", "y"], "b": ["x", "y", "x", "y"], "class": [0, 0, 1, 1]})
        >>> information_gains(rows, "class", ["a", "b"])
        {'a': 1.0, 'b': 0.0}
    """
    _check(frame, target, columns)
    classes = _places(frame[target])
    whole = np.zeros(len(frame), np.int64)
    return {name: _gain(whole, _grouped(frame[name]), classes) for name in columns}


def greedy_gain(frame: pl.DataFrame, target: str, columns: Sequence[str]) -> list[str]:
    """Columns in the order in which a greedy search takes them: each time the one that tells most of the class to
    somebody who knows those taken before.

    Args:
        frame: The rows.
        target: The column of the class.
        columns: The columns to rank; of equally telling ones the first comes first.

    Returns:
        All columns, the most telling first.

    Example:
        >>> import polars as pl
        >>> rows = pl.DataFrame({"a": ["x", "y", "x", "y"], "b": ["x", "x", "y", "y"], "class": [0, 0, 1, 1]})
        >>> greedy_gain(rows, "class", ["a", "b"])
        ['b', 'a']
    """
    _check(frame, target, columns)
    classes = _places(frame[target])
    groups = {name: _grouped(frame[name]) for name in columns}
    known = np.zeros(len(frame), np.int64)
    ranked: list[str] = []
    while len(ranked) < len(columns):
        left = [name for name in columns if name not in ranked]
        gains = [_gain(known, groups[name], classes) for name in left]
        best = left[int(np.argmax(np.round(gains, 12)))]
        ranked.append(best)
        known = _joined(known, groups[best])
    return ranked


def repeated_root(frame: pl.DataFrame, target: str, columns: Sequence[str], *, root: Root | None = None) -> list[str]:
    """Columns in the order in which they are the root of a decision tree, when each root is removed from the table and
    the tree is grown again.

    Args:
        frame: The rows.
        target: The column of the class.
        columns: The columns to rank.
        root: Grows the tree; by default scikit-learn's with entropy, names one column each (`tree_root`).

    Returns:
        All columns, the first root first.
    """
    _check(frame, target, columns)
    grow = root or tree_root
    left = list(columns)
    ranked = []
    while left:
        name = grow(frame.select(left), frame[target]) if len(left) > 1 else left[0]
        ranked.append(name)
        left.remove(name)
    return ranked


def tree_root(features: pl.DataFrame, labels: pl.Series) -> str:
    """The column at the root of scikit-learn's tree.

    Args:
        features: The columns; each value of a column of names is a feature of its own.
        labels: The classes.

    Returns:
        The name of the column; the first one where no split tells anything.
    """
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ModuleNotFoundError:
        raise MissingPackage("scikit-learn", "learn", "Ranking columns by the root of a tree") from None
    blocks, owners = [], []
    for name in features.columns:
        if features[name].dtype.is_numeric():
            blocks.append(features[name].to_numpy().astype(np.float64)[:, None])
        else:
            places = _places(features[name])
            blocks.append(np.eye(int(places.max(initial=0)) + 1)[places])
        owners.extend([name] * blocks[-1].shape[1])
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=1, random_state=0)
    tree.fit(np.hstack(blocks), _places(labels))
    return owners[max(int(tree.tree_.feature[0]), 0)]


def _check(frame: pl.DataFrame, target: str, columns: Sequence[str]) -> None:
    absent = [name for name in (target, *columns) if name not in frame.columns]
    if absent:
        raise DataError(f"The table has no column '{absent[0]}', which is to be ranked: name its columns.")
    if target in columns:
        raise RequestError(f"Column '{target}' is the class: it cannot be ranked for itself.")
    if len(frame) == 0:
        raise DataError("The table has no rows: columns cannot be ranked.")


def _places(values: pl.Series) -> NDArray[np.int64]:
    """The rank of each value among the distinct ones; missing is the lowest."""
    if isinstance(values.dtype, pl.Enum | pl.Categorical):
        values = values.cast(pl.String)
    return _compact(values.rank("dense").fill_null(0).to_numpy().astype(np.int64))


def _compact(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers from 0 on in the place of others, in their order."""
    places: NDArray[np.int64] = np.unique(numbers, return_inverse=True)[1]
    return places


def _grouped(values: pl.Series) -> NDArray[np.int64]:
    """The group of each row by one column: its values, or where these are many numbers, groups of about equal size."""
    places = _places(values)
    sizes = np.bincount(places)
    if not values.dtype.is_numeric() or len(sizes) <= BINS:
        return places
    middle = np.cumsum(sizes) - sizes / 2
    return _compact(np.floor(BINS * middle / len(places)).astype(np.int64)[places])


def _joined(known: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """The groups of rows that are alike in both."""
    return _compact(known * (int(groups.max(initial=0)) + 1) + groups)


def _gain(known: NDArray[np.int64], groups: NDArray[np.int64], classes: NDArray[np.int64]) -> float:
    """How many bits a column tells of the class to somebody who knows which group a row is in."""
    return _uncertainty(known, classes) - _uncertainty(_joined(known, groups), classes)


def _uncertainty(groups: NDArray[np.int64], classes: NDArray[np.int64]) -> float:
    """The entropy of the class in bits once the group is known: H(C | group)."""
    cells = np.bincount(_joined(groups, classes))
    sizes = np.bincount(groups)
    return float((sizes @ np.log2(sizes) - cells @ np.log2(cells)) / len(groups))
