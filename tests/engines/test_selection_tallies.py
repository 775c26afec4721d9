# SPDX-License-Identifier: Apache-2.0
"""Which parts of entries may exist: rows one by one, the same rows in groups, and by plain counting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from anonfit.criteria.targets import Signatures, signatures_of
from anonfit.engines.memory.forms import Constraint
from anonfit.engines.memory.tallies import Placed, SensitiveTally, Tally, parts_legal
from anonfit.privacy.diversity import DistinctL, EntropyL
from anonfit.privacy.models import SensitiveColumn

CODES = 6


def _columns(rng: np.random.Generator) -> list[Constraint]:
    found = []
    for number in range(int(rng.integers(0, 3))):
        column = SensitiveColumn(f"column{number}", 3, False, np.array([1, 1, 1]))
        model = DistinctL(column, 2) if rng.random() < 0.5 else EntropyL(column, 1.7)
        found.append(Constraint(column, np.zeros(0, np.uint32), (model,)))
    return found


def _rows(rng: np.random.Generator, sensitive: int, *, owned: bool) -> Tally:
    rows = int(rng.integers(2, 40))
    codes = rng.integers(0, CODES, rows)
    persons = np.ones(rows, np.int64) if owned else rng.integers(1, 4, rows)
    values = tuple(SensitiveTally(codes, rng.integers(0, 3, rows), persons) for _ in range(sensitive))
    entities = rng.integers(0, rows, rows) if owned else None
    return Tally(codes, rng.integers(0, 2, rows), persons * 2, persons, values, entities)


def _grouped(told: Tally) -> Tally:
    """The same with rows that are alike as one entry."""

    def summed(*keys: NDArray[np.int64], of: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        different, which = np.unique(np.stack(keys), axis=1, return_inverse=True)
        sums = np.bincount(which.ravel(), of, different.shape[1]).astype(np.int64)
        return (*different, sums)

    codes, signatures, persons = summed(told.codes, told.signatures, of=told.persons)
    masses = summed(told.codes, told.signatures, of=told.masses)[2]
    sensitive = tuple(SensitiveTally(*summed(one.codes, one.values, of=one.persons)) for one in told.sensitive)
    return Tally(codes, signatures, masses, persons, sensitive)


def _may_exist(told: Tally, codes: set[int], k: int, guarded: Sequence[Constraint]) -> bool:
    """Whether the rows of some codes may be a group."""
    inside = [row for row, code in enumerate(told.codes.tolist()) if code in codes]
    if told.entities is None:
        enough = sum(int(told.persons[row]) for row in inside) >= k
    else:
        enough = len({int(told.entities[row]) for row in inside}) >= k
    for one, entries in zip(guarded, told.sensitive, strict=True):
        counts = np.zeros(3, np.int64)
        if told.entities is None:
            for row in inside:
                counts[entries.values[row]] += entries.persons[row]
        else:
            for _, value in {(int(told.entities[row]), int(entries.values[row])) for row in inside}:
                counts[value] += 1
        enough = enough and all(bool(model.allows(counts)) for model in one.models)
    return enough


@pytest.mark.parametrize("owned", [False, True])
def test_cuts_and_parts_that_may_exist(owned: bool) -> None:
    legal = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        guarded, k = _columns(rng), int(rng.integers(1, 9))
        told = _rows(rng, len(guarded), owned=owned)
        place_of_code = rng.permutation(CODES)
        code_at = np.argsort(place_of_code).tolist()
        sides = [(set(code_at[: cut + 1]), set(code_at[cut + 1 :])) for cut in range(CODES - 1)]
        expected = [all(_may_exist(told, side, k, guarded) for side in both) for both in sides]
        present = set(told.codes.tolist())
        apart = len(present) > 1 and all(_may_exist(told, {code}, k, guarded) for code in present)
        legal += sum(expected) + apart
        for entries in (told,) if owned else (told, _grouped(told)):
            placed = Placed.of(entries, place_of_code)
            assert [parts_legal(placed.in_two(cut), 2, k, guarded) for cut in range(CODES - 1)] == expected
            assert parts_legal(placed, CODES, k, guarded) == apart
    assert legal > 100


def test_a_cut_makes_two_places() -> None:
    told = Tally(np.arange(4), np.zeros(4, np.int64), np.ones(4), np.ones(4, np.int64), ())
    assert Placed.of(told, np.arange(4)).in_two(1).places.tolist() == [0, 0, 1, 1]


def test_signatures_are_places_among_the_combinations_that_occur() -> None:
    for seed in range(100):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 5, int(rng.integers(0, 4))).tolist()
        rows = int(rng.integers(1, 30))
        classes = [rng.integers(0, size, rows).astype(np.uint8) for size in sizes]
        found, of_row = signatures_of(sizes, classes, rows)
        combinations = list(zip(*(one.tolist() for one in classes), strict=True)) or [()] * rows
        assert of_row.tolist() == [sorted(set(combinations)).index(one) for one in combinations]
        assert found.of([one[::-1] for one in classes], rows).tolist() == of_row.tolist()[::-1]
    assert Signatures().of([], 3).tolist() == [0, 0, 0]
