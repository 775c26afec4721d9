# SPDX-License-Identifier: Apache-2.0
"""Cases in which every pair of settings occurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product

import numpy as np

Case = dict[str, str]


def pairs_of(case: Mapping[str, str]) -> set[tuple[str, str, str, str]]:
    """The pairs of settings of a case."""
    return {(one, case[one], other, case[other]) for one, other in combinations(sorted(case), 2)}


def all_pairs(factors: Mapping[str, Sequence[str]]) -> set[tuple[str, str, str, str]]:
    """The pairs of settings that there are."""
    return {
        (one, first, other, second)
        for one, other in combinations(sorted(factors), 2)
        for first, second in product(factors[one], factors[other])
    }


def cases(factors: Mapping[str, Sequence[str]], count: int, seed: int = 0) -> list[Case]:
    """At least `count` cases that have every pair between them: the best of some random ones is taken each time."""
    rng = np.random.default_rng(seed)
    left = all_pairs(factors)
    found: list[Case] = []
    while left or len(found) < count:
        tried = [{name: words[int(rng.integers(len(words)))] for name, words in factors.items()} for _ in range(30)]
        if left:
            one, first, other, second = min(left)
            tried = [case | {one: first, other: second} for case in tried]
        best = max(tried, key=lambda case: len(pairs_of(case) & left))
        left -= pairs_of(best)
        found.append(best)
    return found


def chosen(known: Sequence[Case], count: int) -> list[tuple[int, Case]]:
    """Some of the cases with their places: each time the one with most settings, then pairs, that were not there."""
    found: list[tuple[int, Case]] = []
    settings: set[tuple[str, str]] = set()
    pairs: set[tuple[str, str, str, str]] = set()
    for _ in range(count):
        place, best = max(
            enumerate(known), key=lambda one: (len(set(one[1].items()) - settings), len(pairs_of(one[1]) - pairs))
        )
        settings |= set(best.items())
        pairs |= pairs_of(best)
        found.append((place, best))
    return found
