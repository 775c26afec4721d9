# SPDX-License-Identifier: Apache-2.0
"""Trees that were read say to the last bit what scikit-learn says, or scikit-learn is asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sklearn
from denoising_tables import column, examples, mixed, table

from anonfit.tables.schema import SplitMode
from anonfit.workload import denoising_models, denoising_trees
from anonfit.workload.denoising import Predictor, fit_numbers, fit_shares


def _asked(fitted: Predictor) -> Predictor:
    (deal,) = fitted.deals
    return replace(fitted, deals=(replace(deal, models=tuple(replace(model, trees=None) for model in deal.models)),))


@pytest.mark.parametrize("case", range(6))
def test_trees_say_what_scikit_learn_says_of_rows_it_never_saw(case: int) -> None:
    rng = np.random.default_rng(case)
    rows = 1500
    known = mixed(rng, rows, wide=case % 2 == 0)
    many = column(rng.integers(0, 700, rows), size=700, missing=True)
    categories = column(rng.integers(0, 250, rows), mode=SplitMode.SUBSET, size=256, missing=True)
    known = table(*zip(*known, strict=True), many, categories)
    target = (known[1][0] + known[1][-1] // 30 + rng.integers(0, 2, rows)) % (2 + case % 3)
    new = [rng.integers(0, each.size, 4000) for each in known[0]]
    for fitted in (fit_shares(*_learned(known, target), int(target.max()) + 1), fit_numbers(*_learned(known, target))):
        assert all(model.trees is not None for deal in fitted.deals for model in deal.models)
        assert np.array_equal(fitted(new, 4000, 2), _asked(fitted)(new, 4000))


def _learned(known, target):  # type: ignore[no-untyped-def]
    return known[0], examples(known, target)


def test_trees_that_say_something_else_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    known = mixed(rng, 800)
    target = (known[1][0] + rng.integers(0, 2, 800)) % 2
    expected = fit_shares(*_learned(known, target), 2)(known[1], 800)
    made = denoising_trees.make_trees
    monkeypatch.setattr(denoising_trees, "make_trees", lambda *given: replace(made(*given), start=np.ones(1)))
    fitted = fit_shares(*_learned(known, target), 2)
    assert all(model.trees is None for deal in fitted.deals for model in deal.models)
    monkeypatch.setattr(denoising_trees, "_CATEGORIES", None)  # as if they were kept in another way
    assert np.array_equal(fit_shares(*_learned(known, target), 2)(known[1], 800), expected)
    assert np.array_equal(fitted(known[1], 800), expected)


@pytest.mark.parametrize("case", range(4))
def test_bins_are_those_that_scikit_learn_finds(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(case)
    rows = 3000
    wide = column(rng.permutation(np.arange(rows) % 400), mode=SplitMode.SUBSET, size=400)
    skewed = np.minimum(rng.exponential(150, rows), 900 if case else 300).astype(np.int64)
    known = table(column(rng.integers(0, 1000, rows), size=1000, missing=case > 1), column(skewed), wide)
    target = (known[1][0] // 300 + known[1][2] // 100 + rng.integers(0, 2, rows)) % 2
    weights = rng.integers(1, 4, rows) if case % 2 else None
    found = fit_shares(known[0], examples(known, target, weights), 2)(known[1], rows)
    monkeypatch.setattr(denoising_models, "_edges", lambda *_: None)
    expected = fit_shares(known[0], examples(known, target, weights), 2)(known[1], rows)
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        assert np.allclose(found, expected, atol=0.2)  # found bins without weights
    else:
        assert np.array_equal(found, expected)
