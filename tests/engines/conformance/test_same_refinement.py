# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement on every engine: the same recoding, the same steps and the same rows as in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from random_requests import FACTORS, random_request

from anonfit.algorithms import top_down
from anonfit.engines.duckdb import engine as duckdb_engine
from anonfit.engines.duckdb.engine import DuckDBEngine
from anonfit.errors import AnonfitError, TooManyGroups
from anonfit.release.run import make
from anonfit.runtime.process import Stopping
from anonfit.spec.keywords import spec_of_keywords
from engines import ENGINES, FAST_ENGINES

FIXED = {
    "criterion": "auto", "candidates": "boundary", "rule": "none", "more": "none", "hand_over": "all", "source": "frame",
    "selections": "none",
}  # fmt: skip
WORDS = ("candidates", "splits", "weights", "weight_rule", "split_on", "min_gain")


def _spec(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    case = {name: str(rng.choice(words)) for name, words in FACTORS.items()} | FIXED
    case["target"] = str(rng.choice(["class", "classes", "edges", "equal-width"]))
    frame, words = random_request(case, seed)
    words = {name: word for name, word in words.items() if name not in WORDS}
    words |= {"algorithm": "tdr", "criterion": str(rng.choice(["score", "infogain"]))}
    words |= {"zero_gain": bool(rng.random() < 0.3), "suppression": str(rng.choice(["all", "best_gain"]))}
    names = words["quasi_identifiers"]
    if len(names) > 1 and rng.random() < 0.5:
        words["requirements"] = [names[:-1], {"columns": names[-2:], "k": 3}]
    return spec_of_keywords(frame, words)


def _stopping(steps: int | None) -> Stopping:
    """Says to stop when it was asked so many times; never, if that is not said."""

    @contextmanager
    def stopping() -> Iterator[Callable[[], bool]]:
        asked = count()
        yield lambda: steps is not None and next(asked) >= steps

    return stopping


def _made(spec: Any, engine: str, steps: int | None = None) -> Any:
    try:
        named = replace(spec, engine=replace(spec.engine, name=engine))
        return make(named, threads=2, stopping=_stopping(steps))
    except AnonfitError as error:
        return error


def _with_start(spec: Any, seed: int) -> tuple[Any, int | None]:
    """The spec, sometimes begun with what a run for more persons gave, and after how many steps it is stopped."""
    if seed % 3 == 0:
        coarse = _made(replace(spec, privacy=replace(spec.privacy, k=4 * spec.privacy.k)), "memory")
        if not isinstance(coarse, AnonfitError):
            spec = replace(spec, method=replace(spec.method, start=coarse.recoding))
    return spec, 2 if seed % 5 == 0 else None


def _refuse(*_: Any, **__: Any) -> Any:
    raise TooManyGroups("all rows differ")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("groups", ["all", "too many"])
@pytest.mark.parametrize("engine", ENGINES)
def test_random_requests(engine, groups, monkeypatch):
    if groups == "too many":
        monkeypatch.setattr(top_down, "CountRequest", _refuse)
    released = begun = 0
    first = int(os.environ.get("FIRST_SEED", "0"))
    seeds = int(os.environ.get("SEEDS", "30")) if engine in FAST_ENGINES else 6
    for seed in range(first, first + seeds):
        spec, steps = _with_start(_spec(seed), seed)
        begun += spec.method.start is not None
        expected, found = _made(spec, "memory", steps), _made(spec, engine, steps)
        if isinstance(expected, AnonfitError):
            assert (type(found), str(found)) == (type(expected), str(expected)), seed
            continue
        assert not isinstance(found, AnonfitError), (seed, found)
        assert found.recoding.to_json() == expected.recoding.to_json(), seed
        assert found.refinements == expected.refinements, seed
        assert_frame_equal(found.table, expected.table, check_exact=True)
        assert found.rows == expected.rows
        released += 1
    assert released > seeds // 2
    assert begun > seeds // 6


def test_rows_that_nearly_all_differ_are_refined_by_cells(monkeypatch):
    rng = np.random.default_rng(5)
    rows = 4000
    age, income = rng.integers(0, 10**6, rows), rng.integers(0, 10**6, rows)
    frame = pl.DataFrame({
        "age": age,
        "income": income,
        "place": rng.choice(["north", "south", "east"], rows),
        "ill": np.where(age + income + rng.normal(0, 10**5, rows) > 10**6, "ill", "well"),
    })  # fmt: skip
    words = {"quasi_identifiers": ["age", "income", "place"], "targets": ["ill"], "k": 25, "algorithm": "tdr"}
    spec = spec_of_keywords(frame, words)
    spec = replace(spec, engine=replace(spec.engine, memory=64 * 2**20))
    expected = _made(spec, "memory")
    asked: list[int] = []
    count = DuckDBEngine.count

    def counted(engine: Any, requests: Any) -> Any:
        found = count(engine, requests)
        asked.extend(len(one.nodes) for request, one in zip(requests, found, strict=True) if request.runs)
        return found

    monkeypatch.setattr(DuckDBEngine, "count", counted)
    # Memory for about 2,000 groups.
    monkeypatch.setattr(duckdb_engine, "GROUP_TIMES", 64 * 2**20 // (8 * 6 * 2000))
    found = _made(spec, "duckdb")
    assert found.recoding.to_json() == expected.recoding.to_json()
    assert found.refinements == expected.refinements
    assert_frame_equal(found.table, expected.table, check_exact=True)
    steps = len(expected.refinements["steps"])
    assert steps > 10
    # One scan at first, one for every column, one a refinement.
    assert 4 < len(asked) <= 1 + 3 + steps
    assert max(asked) < 2000
    monkeypatch.setattr(duckdb_engine, "GROUP_TIMES", 1 << 30)
    assert isinstance(_made(spec, "duckdb"), TooManyGroups)
