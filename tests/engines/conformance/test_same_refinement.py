# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement on every engine: the same recoding, the same steps and the same rows as in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from polars.testing import assert_frame_equal
from random_requests import FACTORS, random_request

from anonfit.errors import AnonfitError
from anonfit.pipeline import make
from anonfit.spec_keywords import spec_of_keywords
from engines import ENGINES, FAST_ENGINES

FIXED = {
    "criterion": "auto", "candidates": "boundary", "rule": "none", "more": "none", "hand_over": "all", "source": "frame",
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


def _made(spec: Any, engine: str) -> Any:
    try:
        return make(replace(spec, engine=replace(spec.engine, name=engine)), threads=2)
    except AnonfitError as error:
        return error


@pytest.mark.parametrize("engine", ENGINES)
def test_random_requests(engine):
    released = 0
    seeds = 60 if engine in FAST_ENGINES else 4
    for seed in range(seeds):
        spec = _spec(seed)
        expected, found = _made(spec, "memory"), _made(spec, engine)
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
