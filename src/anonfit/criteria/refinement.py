# SPDX-License-Identifier: Apache-2.0
"""How good a refinement is (top-down refinement, section 3.2 of its paper): what it tells of the classes, against the
anonymity it costs.

Everything is computed from whole numbers, classes counted over weights: gains do not depend on the order of rows, and
whether one is zero is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Criterion: TypeAlias = Literal["score", "infogain"]
Average: TypeAlias = Literal["containing", "all"]
Counts: TypeAlias = NDArray[np.int64]

TIE = 1e-9
"""What is within this share of the best is as good: the order of additions must not decide."""
NEARLY = 1e-9
"""Gains below this are held against zero exactly."""
LEAST = 1e-18
"""What a gain is at least if it is not zero."""


def _impurity(counts: Counts) -> NDArray[np.float64]:
    """Records times the entropy of their classes, in bits. counts: (…, class)"""
    impurity: NDArray[np.float64] = _x_log_x(counts.sum(axis=-1)) - _x_log_x(counts).sum(axis=-1)
    return impurity


def _x_log_x(x: Counts) -> NDArray[np.float64]:
    numbers = x.astype(np.float64)
    logs = np.zeros(numbers.shape)
    np.log2(numbers, out=logs, where=numbers > 0)
    return numbers * logs


def _alike(parts: Counts, whole: Counts) -> NDArray[np.bool_]:
    """Whether the classes of each part are in the same proportion as those of the whole. parts: (part, class)"""
    total = int(whole.sum())
    exact: Any = parts if total < 1 << 31 else parts.astype(object)
    alike: NDArray[np.bool_] = np.all(exact * total == exact.sum(axis=-1, keepdims=True) * whole, axis=-1)
    return alike


def entropy(counts: ArrayLike) -> float:
    """I(R) of equation 3: the entropy of classes with so many records, in bits. counts: (class,)"""
    of_class = np.asarray(counts, np.int64)
    total = int(of_class.sum())
    return float(_impurity(of_class)) / total if total else 0.0


def is_beneficial(counts: Counts) -> bool:
    """Whether records of so many of each class have more than one. counts: (class,)"""
    return int(np.count_nonzero(counts)) > 1


def gain(parts: Sequence[Counts] | Counts) -> float:
    """InfoGain of equation 2: how much less mixed the classes are in the parts than in the whole, in bits.

    parts: (part, class)
    """
    of_parts = np.asarray(parts, np.int64)
    whole = of_parts.sum(axis=0)
    total = int(whole.sum())
    if not total:
        return 0.0
    value = float(_impurity(whole) - _impurity(of_parts).sum()) / total
    if value < NEARLY:
        return 0.0 if bool(_alike(of_parts, whole).all()) else max(value, LEAST)
    return value


def _gains_of_two(first: Counts, whole: Counts) -> NDArray[np.float64]:
    """The gain of dividing a whole into a first part and the rest, for each first part. first: (part, class)"""
    total = int(whole.sum())
    if not total:
        return np.zeros(len(first))
    gains: NDArray[np.float64] = (_impurity(whole) - _impurity(first) - _impurity(whole - first)) / total
    near = np.flatnonzero(gains < NEARLY)
    gains[near] = np.where(_alike(first[near], whole), 0.0, np.maximum(gains[near], LEAST))
    return gains


def cut_gains(counts: Counts) -> NDArray[np.float64]:
    """The gain of dividing codes in two before each code but the first. counts: (code, class)"""
    below = np.cumsum(counts, axis=0)
    return _gains_of_two(below[:-1], below[-1])


def disclosure_gains(counts: Counts) -> NDArray[np.float64]:
    """The gain of equation 5: of disclosing each code while the others stay suppressed. counts: (code, class)"""
    return _gains_of_two(counts, counts.sum(axis=0))


def anonymity_loss(before: Counts, after: Counts, number: int) -> NDArray[np.float64]:
    """AnonyLoss of equation 4: by how much the anonymity of requirements falls on the average of so many.

    before: (requirement,); after: (requirement, candidate)
    """
    lost: NDArray[np.float64] = (before[:, None] - after).sum(axis=0) / number
    return lost


def score(gains: NDArray[np.float64], loss: NDArray[np.float64]) -> NDArray[np.float64]:
    """Score of equation 1."""
    return gains / (loss + 1.0)


def ahead(merits: NDArray[np.float64]) -> int:
    """The first that is as good as the best; merits are not negative, -inf excludes, -1 if there is none."""
    if not len(merits) or merits.max() < 0:
        return -1
    return int(np.argmax(merits >= merits.max() * (1.0 - TIE)))
