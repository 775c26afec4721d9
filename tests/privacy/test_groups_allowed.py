# SPDX-License-Identifier: Apache-2.0
"""Models asked about all groups of a table at once."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from plain_diversity import DEMANDS

from anonfit.privacy import coding as module
from anonfit.privacy.catalogue import MODELS, make_model
from anonfit.privacy.coding import groups_allowed, persons_by_code
from anonfit.privacy.models import DiversityModel, SensitiveColumn
from anonfit.tables.scales import fixed_point
from anonfit.tables.taxonomy import Taxonomy


def column_of(name: str, codes: Any, persons: dict[str, Any]) -> SensitiveColumn:
    size = int(codes.max()) + 1
    whole = persons_by_code(codes, size, **persons)
    scale = fixed_point(0.0, float(size), persons=int(whole.sum()))
    numbers = scale.quantize(np.arange(size, dtype=np.float64))
    taxonomy = Taxonomy.flat([str(code) for code in range(size)])
    return SensitiveColumn(name, size, False, whole, numbers, scale, taxonomy, ordered=True)


def plain(model: DiversityModel, groups: Any, codes: Any, group: int, persons: dict[str, Any]) -> bool:
    """One group, row by row."""
    counts = np.zeros(model.column.size, np.int64)
    seen = set()
    for row in np.flatnonzero(groups == group).tolist():
        code = int(codes[row])
        if persons.get("entities") is not None:
            pair = (int(persons["entities"][row]), code)
            counts[code] += pair not in seen
            seen.add(pair)
        else:
            counts[code] += 1 if persons.get("weights") is None else int(persons["weights"][row])
    return not (groups == group).any() or bool(model.allows(counts))


@pytest.mark.parametrize(("cells", "rows"), [(1 << 21, 1 << 20), (7, 1 << 20), (40, 3), (1, 1)])
def test_all_groups_at_once_are_each_group_alone(cells: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CELLS", cells)
    monkeypatch.setattr(module, "ROWS", rows)
    rng = np.random.default_rng(5)
    answers = set()
    for _ in range(60):
        length, count = int(rng.integers(1, 60)), int(rng.integers(1, 12))
        groups = rng.integers(0, count, length)
        persons: dict[str, Any] = [
            {},
            {"weights": rng.integers(1, 5, length)},
            {"entities": rng.integers(0, length // 8 + 1, length).astype(np.uint32)},
        ][int(rng.integers(3))]
        codes, models = {}, []
        for name in ("a", "b"):
            _, ranks = np.unique(rng.integers(0, int(rng.integers(1, 7)), length), return_inverse=True)
            codes[name] = ranks.astype(np.uint32)
            column = column_of(name, codes[name], persons)
            asked = [str(model) for model in rng.choice(sorted(MODELS), int(rng.integers(0, 3)))]
            models += [make_model(column, model, DEMANDS[model](rng)) for model in asked]
        found = groups_allowed(models, groups, codes, count=count, **persons).tolist()
        expected = [
            all(plain(model, groups, codes[model.column.name], group, persons) for model in models)
            for group in range(count)
        ]
        assert found == expected
        answers.update(found)
    assert answers == {True, False}


def test_a_person_counts_once_for_a_value_in_a_group() -> None:
    codes = {"a": np.array([0, 0, 1, 0, 0, 1], np.uint32)}
    persons = {"entities": np.array([1, 1, 2, 1, 2, 1], np.uint32)}
    model = make_model(column_of("a", codes["a"], persons), "alpha-k", {"alpha": 0.5})
    groups = np.array([0, 0, 0, 1, 1, 1])
    # Person 1 has the value twice in the first group; in the second two persons have it.
    assert groups_allowed([model], groups, codes, count=2, **persons).tolist() == [True, False]
    assert groups_allowed([model], groups, codes, count=2).tolist() == [False, False]


def test_groups_of_nobody_are_allowed() -> None:
    codes = {"a": np.array([0, 0, 1], np.uint32)}
    model = make_model(column_of("a", codes["a"], {}), "distinct-l", {"l": 2})
    assert groups_allowed([model], np.array([1, 3, 3]), codes, count=5).tolist() == [True, False, True, True, True]
    assert groups_allowed([], np.array([1, 3, 3]), {}, count=5).tolist() == [True] * 5


def test_memory_stays_bounded_with_many_groups_of_many_values() -> None:
    rng = np.random.default_rng(6)
    length, count, size = 400_000, 20_000, 1000
    codes = {"a": np.append(np.arange(size), rng.integers(0, size, length - size)).astype(np.uint32)}
    column = column_of("a", codes["a"], {})
    close = {"t": 0.08, "distance": "ordered"}
    models = [make_model(column, "t-closeness", close), make_model(column, "recursive-cl", {"c": 2.0, "l": 3})]
    groups = rng.integers(0, count, length)
    tracemalloc.start()
    found = groups_allowed(models, groups, codes, count=count)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.any()
    assert not found.all()
    assert peak < 200e6  # the table of all pairs would have 160 MB, and each model several of that
