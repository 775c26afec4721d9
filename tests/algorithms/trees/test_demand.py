# SPDX-License-Identifier: Apache-2.0
"""What spans must hold: entropy and confidence say the same of two classes (85 % is l = 1.526)."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit import KAnonymousTreeClassifier, RequestError
from anonfit.algorithms.trees.growing import Demand, demand_of


def l_of(share: float) -> float:
    """The l of a class of two that has a share."""
    return float(2 ** -(share * log2(share) + (1 - share) * log2(1 - share)))


@pytest.mark.parametrize(("share", "found"), [(0.85, 1.5261), (22_654 / 30_162, 1.7527)])
def test_confidences_as_l(share: float, found: float) -> None:
    assert l_of(share) == pytest.approx(found, abs=5e-5)


@pytest.mark.parametrize("share", [0.6, 0.75, 0.85, 0.95])
def test_of_two_classes_entropy_and_confidence_allow_the_same(share: float) -> None:
    counts = np.stack(np.meshgrid(np.arange(80), np.arange(80)), axis=-1).reshape(-1, 2)
    by_share = Demand(1, max_confidence=share).allows(counts)
    assert (Demand(1, l=l_of(share)).allows(counts) == by_share).all()
    expected = [max(one) <= share * sum(one) + 1e-9 for one in counts.tolist()]
    assert by_share.tolist() == expected


def test_of_two_classes_entropy_and_confidence_grow_the_same_tree() -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({name: rng.integers(0, 12, 800) for name in ("a", "b", "c")})
    labels = np.where(frame["a"] + frame["b"] + frame["c"] + rng.normal(0, 6, 800) > 17, "x", "y")
    for private in ([], ["c"]):
        free, limited, diverse = (
            KAnonymousTreeClassifier(5, private=private, pruning=0, **asked).fit(frame, labels).tree_
            for asked in ({}, {"max_confidence": 0.85}, {"entropy_l": l_of(0.85)})
        )
        assert limited.to_model_json() == diverse.to_model_json()
        assert 1 < limited.leaves < free.leaves
        assert (limited.spans.counts.max(axis=1) <= 0.85 * limited.spans.sizes + 1e-9).all()


@pytest.mark.parametrize("asked", [(np.int64(3), 1, 1), (3, np.float64(1.5), np.float32(0.5))])
def test_numbers_of_any_kind_are_a_demand(asked: tuple[Any, Any, Any]) -> None:
    assert demand_of(*asked) == Demand(3, float(asked[1]), float(asked[2]))


@pytest.mark.parametrize("asked", [(True, 1, 1), (2.0, 1, 1), (3, True, 1), (3, float("inf"), 1), (3, 1, 1.01)])
def test_what_is_no_demand_is_refused(asked: tuple[Any, Any, Any]) -> None:
    with pytest.raises(RequestError, match="must be"):
        demand_of(*asked)
