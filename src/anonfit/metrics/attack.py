# SPDX-License-Identifier: Apache-2.0
"""An attack on a release with a sample of raw records: each person is sought in the region that holds his or her
quasi-identifiers, and what the region's rows have in common is taken for the person's own.

It measures what the stated model allows, it does not look for faults: those are the audit's. The attacker knows the
recoding and all quasi-identifiers exactly, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.metrics.guessing import Guesses, Records, Secret, guess
from anonfit.metrics.learning import Learned, learn
from anonfit.recoding.recoding import Recoding, Unseen

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Attack", "Sample", "attack", "draw_persons", "link"]

PERSONS = 1000
"""Persons that are sought, if there are more."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Persons that are sought: the node of each, -1 where a value of theirs is in no region, whether they are among
    the released records, and who they are where persons have several rows; for learning, the recoding and the cells.
    """

    nodes: NDArray[np.integer[Any]]  # (person,)
    is_released: NDArray[np.bool_]  # (person,)
    entities: NDArray[np.integer[Any]] | None = None  # (person,)
    recoding: Recoding | None = None
    cells: Sequence[NDArray[Any]] | None = None
    """The exact quasi-identifiers of the persons, as cells of the recoding; None: nothing is learned."""


@dataclass(frozen=True, slots=True)
class Attack:
    """What came of it."""

    persons: int
    """Those sought."""
    linked: int
    """Of these, those whose region has released rows."""
    released: int
    """Persons of the release."""
    chance: float
    """Of taking the right one of the persons who share the region, averaged over all who were sought."""
    highest: float
    """The same for the person who is found most easily."""
    blind_chance: float
    """Of taking the right one of all persons, averaged."""
    alone: int
    """Persons who share their region with fewer than k - 1 others."""
    guesses: tuple[Guesses, ...]
    shared: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)
    """(person,) the persons who share the region of each who was sought."""
    learned: Mapping[str, Learned] = field(default_factory=dict)
    """What a model learned from the release is sure of, of columns that have classes."""


def link(recoding: Recoding, persons: pl.DataFrame, entities: NDArray[Any] | None = None) -> Sample:
    """Released persons by their raw rows: the region that holds the quasi-identifiers of each; -1 where the recoding
    does not know one of them.
    """
    cells = recoding.cells(persons, unseen=Unseen.SUPPRESS)
    unknown = np.any(np.stack([found < 0 for found in cells]), axis=0)
    nodes = np.where(unknown, -1, recoding.nodes(cells)).astype(np.int32)
    return Sample(nodes, np.ones(len(nodes), np.bool_), entities, recoding, cells)


def draw_persons(
    rows: int,
    *,
    k: int,
    seed: int,
    counts: NDArray[Any] | None = None,
    entities: NDArray[Any] | None = None,
    size: int = PERSONS,
) -> NDArray[np.int64]:
    """Row numbers of persons drawn at random, each person as likely as any other.

    All are taken where fewer than k would be left out: what is told of a sample also tells of those who are not in it.

    Args:
        rows: The rows of the table.
        k: The persons that a public figure must cover, and leave out if it leaves out any.
        seed: The same seed draws the same persons.
        counts: (row,) how many persons each row stands for; a row may be drawn for several of them.
        entities: (row,) whose row it is, from 0; one row of each person drawn is taken.
        size: How many to draw.

    Returns:
        (person,) row numbers, in ascending order.
    """
    rng = np.random.default_rng(seed)
    ends = None if counts is None else np.cumsum(counts.astype(np.int64))
    first = None if entities is None else _one_row_each(entities, rng)
    persons = rows if ends is None else int(ends[-1]) if rows else 0
    persons = persons if first is None else len(first)
    chosen = np.arange(persons) if persons - size < k else rng.choice(persons, size, replace=False)
    if first is not None:
        chosen = first[chosen]
    elif ends is not None:
        chosen = np.searchsorted(ends, chosen, side="right")
    return np.sort(chosen)


def _one_row_each(entities: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """For each person one of his or her rows, by chance."""
    order = rng.permutation(len(entities))
    _, first = np.unique(entities[order], return_index=True)
    found: NDArray[np.int64] = order[first]
    return found


def attack(records: Records, sample: Sample, secrets: Sequence[Secret], *, k: int) -> Attack:
    """Seek persons in a release.

    Args:
        records: The released rows: their nodes, and which persons they stand for.
        sample: The persons.
        secrets: Columns of which the attacker wants to learn the persons' values.
        k: The persons that were asked of a group.

    Returns:
        How surely they are found, and what is learned of them.
    """
    used, sizes = records.sizes()
    released = records.persons()
    is_linked = np.isin(sample.nodes, used) & (sample.nodes >= 0)
    place = np.where(is_linked, np.searchsorted(used, sample.nodes), -1)
    shared = np.append(sizes, 0)[place]
    # Who is not in the release cannot be found in it, whoever is taken for this person.
    chances = np.where(is_linked & sample.is_released, 1 / np.maximum(shared, 1), 0.0)
    persons = len(place)
    return Attack(
        persons=persons,
        linked=int(is_linked.sum()),
        released=released,
        chance=float(chances.mean()) if persons else 0.0,
        highest=float(chances.max(initial=0.0)),
        blind_chance=float(sample.is_released.mean()) / released if persons and released else 0.0,
        alone=int((is_linked & (shared < k)).sum()),
        guesses=tuple(
            guess(secret, records, place, is_released=sample.is_released, entities=sample.entities)
            for secret in secrets
        ),
        shared=shared,
        learned={} if sample.cells is None else _learned(sample, records, secrets, place),
    )


def _learned(
    sample: Sample, records: Records, secrets: Sequence[Secret], place: NDArray[np.int64]
) -> dict[str, Learned]:
    assert sample.recoding is not None
    assert sample.cells is not None
    return {
        secret.column: learn(sample.recoding, records, secret, place, sample.cells)
        for secret in secrets
        if not secret.are_numbers
    }
