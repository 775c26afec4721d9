# SPDX-License-Identifier: Apache-2.0
"""What models expect is the same on every engine, also where they learn from drawn rows or from counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.algorithms import denoised
from anonfit.release.run import make
from anonfit.spec.keywords import spec_of_keywords
from engines import ENGINES


def people(rows: int, values: int) -> pl.DataFrame:
    """Rows of so many different ages and places; classes and numbers depend on them."""
    rng = np.random.default_rng(rows + values)
    age, place, sex = (
        rng.integers(0, values, rows),
        rng.integers(0, max(values // 2, 2), rows),
        rng.integers(0, 2, rows),
    )
    risk = age / values + 0.3 * (place % 3 == 1) + 0.4 * rng.normal(size=rows)
    return pl.DataFrame(
        {
            "age": age,
            "place": [f"p{number}" for number in place],
            "sex": np.where(sex == 1, "f", "m"),
            "outcome": np.where(risk > 0.9, "died", np.where(risk > 0.5, "ill", "well")),
            "cost": np.round(1000 * risk - 300, 1),
            "persons": rng.integers(1, 4, rows),
            "weight": np.round(rng.uniform(0.5, 3, rows), 2),
        }
    )


def recoding_of(frame: pl.DataFrame, engine: str, **words: Any) -> str:
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "place", "sex"], "k": 5, "engine": engine}
    used = [name for name in ("persons", "weight") if name not in words.values()]
    others = [name for name in ("outcome", "cost") if name not in words["targets"]]
    asked |= {"identifiers": [*used, *others], "release": words["targets"]}
    return make(spec_of_keywords(frame, asked | words)).recoding.to_json()


WAYS: dict[str, dict[str, Any]] = {
    "classes": {"targets": ["outcome"]},
    "numbers": {"targets": ["cost"]},
    "both, counted and weighed": {"targets": ["outcome", "cost"], "count": "persons", "sample_weight": "weight"},
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("values", "most"), [(40, 100_000), (40, 300), (4, 300)], ids=["all", "drawn", "counted"])
def test_engines_agree(engine: str, way: str, values: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine == "spark" and (way != "both, counted and weighed" or values == 4):
        pytest.skip("one way is enough where each takes seconds")
    monkeypatch.setattr(denoised, "MOST_LEARNED", most)
    frame = people(1200, values)
    expected = recoding_of(frame, "memory", **WAYS[way])
    assert '"children"' in expected or '"cut"' in expected or len(expected) > 500
    assert recoding_of(frame, engine, **WAYS[way]) == expected
    assert recoding_of(frame.sample(fraction=1, shuffle=True, seed=1), "memory", **WAYS[way]) == expected


def test_few_combinations_are_all_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denoised, "MOST_LEARNED", 300)
    rng = np.random.default_rng(2)
    names = ["code0", "label0"]
    few = {"code0": rng.integers(0, 20, 5000), "label0": rng.integers(0, 2, 5000)}
    many = {"code0": np.arange(5000), "label0": rng.integers(0, 2, 5000)}
    gathered = denoised.gather_here(few, None, names)
    assert gathered.complete
    assert len(gathered.rows) == 5000
    drawn = denoised.gather_here(many, None, names)
    assert not drawn.complete
    assert 200 < len(drawn.rows) < 400
