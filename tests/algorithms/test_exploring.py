# SPDX-License-Identifier: Apache-2.0
"""Exploring: candidates by number and seed, the front, the rule, and the time budget."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest

from anonfit.algorithms import exploring
from anonfit.algorithms.exploring import CANDIDATES, CandidateRule, candidate, explore, front, nearest
from anonfit.algorithms.result import Anonymized
from anonfit.workload.targets import Workload

STATED = {"age": 1.0, "town": 2.0, "hours": 0.0}


def test_a_candidate_depends_on_its_number_and_the_seed_only() -> None:
    assert candidate(0, 5, STATED) == CandidateRule(0, "median", {}, seed=5)
    assert candidate(1, 5, STATED) == CandidateRule(1, "clustering", STATED, seed=5)
    found = [candidate(number, 5, STATED) for number in range(2, 60)]
    assert found == [candidate(number, 5, STATED) for number in range(2, 60)]
    assert all(one != other for one, other in pairwise(found))
    assert found != [candidate(number, 6, STATED) for number in range(2, 60)]
    assert candidate(7, -5, STATED) != candidate(7, 5, STATED)
    assert {one.weight_rule for one in found if one.criterion == "weighted"} == set(exploring.WAYS) - {"clustering"}


def test_drawn_weights_are_multiples_of_the_stated_ones_with_few_digits() -> None:
    found = [candidate(number, 0, STATED).weights for number in range(2, 400)]
    assert all(one["hours"] == 0.0 for one in found)
    assert all(one["age"] > 0 and float(f"{one['age']:.3g}") == one["age"] for one in found)
    means = {name: np.mean([one[name] for one in found]) for name in STATED}
    assert means["age"] == pytest.approx(1, abs=0.15)
    assert means["town"] == pytest.approx(2, abs=0.3)


def test_the_front_has_those_that_no_other_betters() -> None:
    figures = [[1.0, 9.0], [5.0, 5.0], [9.0, 1.0], [5.0, 6.0], [5.0, 5.0], [9.0, 9.0]]
    assert front(figures) == [0, 1, 2, 4]
    assert front([[3.0]]) == [0]


@pytest.mark.parametrize("seed", range(20))
def test_the_front_against_every_pair(seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, 5, (30, 3)).astype(float)
    slow = [
        one
        for one in range(30)
        if not any(all(table[two] <= table[one]) and any(table[two] < table[one]) for two in range(30))
    ]
    assert front(table.tolist()) == slow


def test_the_one_nearest_the_best_of_each_figure() -> None:
    assert nearest([[0.0, 100.0], [0.4, 40.0], [1.0, 0.0]]) == 1  # 1, 0.4 + 0.4, 1
    assert nearest([[0.0, 100.0], [0.6, 60.0], [1.0, 0.0]]) == 0  # of equal ones the first
    assert nearest([[2.0, 3.0]]) == 0


def tried(seconds: float | None) -> exploring.Explored:
    """An exploration in which a candidate's figures are its number and what is left to ten."""

    def make(workload: Workload) -> Anonymized:
        return cast("Anonymized", workload)

    def measure(result: Any) -> dict[str, float]:
        total = sum(result.weights.values())
        return {"one": total, "other": 10 - total}

    return explore(Workload(seed=3), STATED, make, measure, seconds=seconds)


def test_without_a_time_budget_a_fixed_number_is_tried() -> None:
    found = tried(None)
    assert len(found.tried) == CANDIDATES
    assert [one.candidate.number for one in found.tried] == list(range(CANDIDATES))
    assert found.chosen in found.front
    assert found.result == found.candidate.workload(Workload(seed=3))  # the regions are those of the chosen one
    assert tried(None) == found


def test_with_hardly_any_time_two_are_tried_and_they_are_the_first_two() -> None:
    found = tried(1e-9)
    assert [one.candidate for one in found.tried] == [one.candidate for one in tried(None).tried[:2]]


def test_time_that_passes_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(exploring, "monotonic", lambda: float(next(clock)))
    assert len(tried(6.0).tried) == 7  # two without looking, then one each second
