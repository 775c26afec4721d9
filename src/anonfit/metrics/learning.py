# SPDX-License-Identifier: Apache-2.0
"""What can be learned across groups (the deFinetti attack): a model of how a column goes with the quasi-identifiers is
learned from all groups of a release, and asked who of a group has which of its values.

The model is naive Bayes over the cells of the recoding. Of every class, the likeliest distribution over the cells of
each quasi-identifier is found from the labels of its rows. For a person in a group, whose quasi-identifiers are known
exactly, a class is as likely as its share of the group times how much likelier it makes the person's cells than the
others that the group's labels hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.engines.bits import blocks_of, unpacked
from anonfit.metrics.detail import cell_shares, labels_of
from anonfit.metrics.guessing import Records, Secret
from anonfit.recoding.boxes import Parts
from anonfit.recoding.recoding import Recoding

__all__ = ["SURE", "Learned", "learn"]

SURE = 0.9
"""How likely a value must be for the model to be sure of it."""
MOST_CLASSES = 64
"""Of the classes of a column the commonest are told apart, the others are one."""
ROWS = 50_000
"""From more rows not more is learned: of their groups, some that are far from each other are taken."""
SMALLEST = 1e-12


@dataclass(frozen=True, slots=True)
class Learned:
    """Of how many persons the model is sure, for how many of these it is right, and how many the groups alone, without
    a model, make as sure of.
    """

    persons: int
    sure: int
    right: int
    sure_by_group: int


def learn(
    recoding: Recoding,
    records: Records,
    secret: Secret,
    place: NDArray[np.int64],
    cells: Sequence[NDArray[Any]],
) -> Learned:
    """Learn classes from a release and ask for those of persons.

    Args:
        recoding: The recoding of the release.
        records: The released rows.
        secret: The classes of the rows, and the true ones of the persons.
        place: (person,) the group of each, its place among the records' nodes; -1 for none.
        cells: The persons' exact quasi-identifiers, as cells of the recoding, column by column.
    """
    used, group = records.places()
    held = _held(secret, records, group, len(used))
    asked = np.flatnonzero(place >= 0)
    at = place[asked]
    some = np.arange(0, len(used), max(1, len(group) // ROWS))
    with np.errstate(divide="ignore"):
        scores = np.log(held[at])  # (person, class)
    for column, part in enumerate(recoding.columns):
        parts, mine = recoding.boxes.parts(used[at], column), cells[column][asked].astype(np.int64)
        whole = _shares(recoding, used[some], column, held[some].sum(axis=1))
        for one, persons in enumerate(held[some].T):
            # Of a class of few persons little can be learned: one person more has what all have.
            shares = (_shares(recoding, used[some], column, persons) * persons.sum() + whole) / (persons.sum() + 1)
            inside = _sums(parts, shares, part.size)[parts.of_node]
            scores[:, one] += np.log(np.maximum(shares[mine], SMALLEST) / np.maximum(inside, SMALLEST))
    # To be sure of a rare class means of one of many: of nothing.
    named = min(held.shape[1], MOST_CLASSES)
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    is_sure = likely[:, :named].max(axis=1, initial=0.0) >= SURE * likely.sum(axis=1)
    true = _places(secret)[secret.true[asked].astype(np.int64)]
    return Learned(
        persons=len(place),
        sure=int(is_sure.sum()),
        right=int((is_sure & (likely.argmax(axis=1) == true)).sum()),
        sure_by_group=int((held[at, :named].max(axis=1, initial=0) >= SURE * held[at].sum(axis=1)).sum()),
    )


def _places(secret: Secret) -> NDArray[np.int64]:
    """The place of each class: the commonest have one each, all others the last one. (class,)"""
    codes = np.concatenate([secret.released, secret.true]).astype(np.int64)
    times = np.bincount(secret.released.astype(np.int64), minlength=int(codes.max(initial=0)) + 1)
    found = np.empty(len(times), np.int64)
    found[np.argsort(-times, kind="stable")] = np.arange(len(times))
    return np.minimum(found, MOST_CLASSES)


def _held(secret: Secret, records: Records, group: NDArray[np.int64], groups: int) -> NDArray[np.float64]:
    """How many persons of each group have each class. (group, class)"""
    places = _places(secret)
    width = int(places.max(initial=0)) + 1
    keys = group * width + places[secret.released.astype(np.int64)]
    masses = records.counts
    if records.entities is not None:  # who has a value in several rows of a group counts once for it
        _, once = np.unique(np.stack([keys, records.entities.astype(np.int64)]), axis=1, return_index=True)
        keys = keys[once]
    found: NDArray[np.float64] = np.bincount(keys, weights=masses, minlength=groups * width).astype(np.float64)
    return found.reshape(groups, width)


def _shares(recoding: Recoding, used: NDArray[Any], column: int, persons: NDArray[np.float64]) -> NDArray[np.float64]:
    """The likeliest distribution over the cells of a column of persons in these groups. (cell,)"""
    some = np.flatnonzero(persons)
    labels = labels_of(
        recoding.boxes, used[some], column, recoding.columns[column].size, persons[some].astype(np.int64)
    )
    return cell_shares(labels, recoding.columns[column].size)


def _sums(parts: Parts, shares: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """The share of all cells of each part. (part,)"""
    before = np.append(0.0, np.cumsum(shares))
    found: NDArray[np.float64] = before[parts.last + 1] - before[parts.first]
    by_set = np.flatnonzero(parts.set_of >= 0)
    for block in blocks_of(len(by_set), size):
        rows = by_set[block]
        found[rows] = unpacked(parts.sets[parts.set_of[rows]], size) @ shares
    return found
