# SPDX-License-Identifier: Apache-2.0
"""A label has one spelling: what the package writes is it, and whatever else means the same is not."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from anonfit.auditing.labels import cell_reader, read_label, speller
from anonfit.auditing.meanings import read_meaning
from anonfit.recoding.columns import Covers
from anonfit.tables.taxonomy import Taxonomy


def _tree(rng: random.Random, name: str, depth: int) -> dict[str, Any]:
    """A taxonomy with chains of single children, and names that must be quoted."""
    if depth == 0 or rng.random() < 0.2:
        return {"name": name}
    signs = ["", " ", ", ", '"', "{", "[1, 2)"]
    below = [_tree(rng, f"{name}{place}{rng.choice(signs)}", depth - 1) for place in range(rng.choice([1, 1, 2, 3]))]
    return {"name": name, "children": below}


def _spelled(text: str, column: dict[str, Any], observed: bool = False) -> bool:
    meaning = read_meaning("c", column)
    found = read_label(text, meaning)
    return found is not None and speller(meaning, observed=observed)(text, found, cell_reader(meaning)(found))


@pytest.mark.parametrize("seed", range(60))
def test_names_as_the_package_writes_them(seed: int) -> None:
    rng = random.Random(seed)
    tree = {"name": "*", "children": [_tree(rng, place, 3) for place in "abc"]}
    taxonomy = Taxonomy.from_tree(tree)
    column = {"type": "nominal", "missing": False, "taxonomy": tree}
    leaves = len(taxonomy.leaf_nodes)
    sets = np.array([[rng.random() < 0.6 for _ in range(leaves)] for _ in range(20)], np.bool_)
    sets = sets[sets.any(axis=1) & ~sets.all(axis=1)]
    for text in Covers(taxonomy).labels(sets):
        assert _spelled(text, column)
        if text.startswith("{") and '"' not in text:
            assert not _spelled("{" + ", ".join(reversed(text.strip("{}").split(", "))) + "}", column)


NUMBER = {"type": "continuous", "scale": "number", "cuts": [1.5, 10.0, 1e15], "missing": True, "domain": None}
DATE = {"type": "date", "scale": "date", "cuts": ["2024-03-01"], "missing": False, "domain": None}
TIME = {"type": "date", "scale": "time", "cuts": ["2024-03-01T12:30:00"], "missing": False, "domain": None}
WORDS = {"type": "ordinal", "order": ["low", "a, b", "high", "top"], "missing": True}
DOMAIN = {**NUMBER, "cuts": [10.0], "domain": [0, 20]}


@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        (NUMBER, ["*", "missing", "not missing", "< 1.5", "[1.5, 10)", "≥ 10", "missing or ≥ 10"],
         ["< 1.50", "[1.5, 10.0)", "≥ 1e1", "≥ +10"]),
        (NUMBER, ["≥ 1000000000000000.0", "[10, 1000000000000000.0)"], ["≥ 1e15", "≥ 1E+15"]),
        (DATE, ["*", "< 2024-03-01", "≥ 2024-03-01"], ["not missing", "< 2024-03-01T00:00:00"]),
        (TIME, ["< 2024-03-01T12:30:00", "≥ 2024-03-01T12:30:00"], ["< 2024-03-01T12:30:00.000", "< 2024-03-01 12:30:00"]),
        (WORDS, ["low", "< high", '"a, b"', "≥ high", '["a, b", top)', "*", "not missing"],
         ["[low, high)", '"low"', "[high, top]", "missing or *", '< "high"']),
        (DOMAIN, ["[0, 10)", "[10, 20]", "[0, 20]", "*"], ["not missing", "missing or [0, 20]"]),
        ({**DOMAIN, "missing": False}, ["*", "[10, 20]"], ["[0, 20]", "not missing"]),
    ],
)  # fmt: skip
def test_one_spelling(column: dict[str, Any], good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not _spelled(text, column)] == []
    assert [text for text in bad if _spelled(text, column)] == []


@pytest.mark.parametrize(
    ("text", "good"),
    [("[3, 5]", True), ("3", True), ("[3.0, 5]", False), ("[3, 3]", False), ("missing or [0.1, 1e-05]", False),
     ("missing or [1e-05, 0.1]", True), ("9007199254740993", True)],
)  # fmt: skip
def test_observed_numbers(text: str, good: bool) -> None:
    assert _spelled(text, NUMBER, observed=True) is good


@pytest.mark.parametrize(
    "moment", ["1969-01-01T00:00:00.000001", "1900-02-28T23:59:59.999999", "1970-01-01T00:00:00.500000"]
)
def test_moments_on_both_sides_of_1970(moment: str) -> None:
    column = {"type": "date", "scale": "time", "missing": False, "domain": None, "cuts": [moment]}
    assert _spelled(f"< {moment}", column)
    assert _spelled(f"≥ {moment}", column)
    assert not _spelled(f"≥ {moment}000", column)
