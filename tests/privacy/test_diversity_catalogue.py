# SPDX-License-Identifier: Apache-2.0
"""The catalogue of diversity models: parameters, refusals, and the docs printed from it."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonfit.auditing.models import MODELS as AUDITED
from anonfit.errors import SpecError
from anonfit.privacy.catalogue import MODELS, make_model, model_table, parameter_faults
from anonfit.privacy.models import Kind, SensitiveColumn
from anonfit.tables.scales import FixedPoint
from anonfit.tables.taxonomy import Taxonomy

DOCS = Path(__file__).resolve().parents[2] / "docs" / "privacy-models.md"
TEXTS = SensitiveColumn("diagnosis", 3, False, np.array([1, 2, 3]))
ORDERED = SensitiveColumn("stage", 3, False, np.array([1, 2, 3]), ordered=True)
TREE = SensitiveColumn("place", 3, False, np.array([1, 2, 3]), taxonomy=Taxonomy.flat(["a", "b", "c"]))
NUMBERS = SensitiveColumn("cost", 2, False, np.array([1, 1]), np.array([0, 1]), FixedPoint(0.0, 1.0), ordered=True)


def test_every_model_says_against_whom_it_guards() -> None:
    assert all(model.attacker.startswith("Someone who ") and model.attacker.endswith(".") for model in MODELS.values())


@pytest.mark.parametrize(
    ("model", "given", "told"),
    [
        ("entropy", {"l": 2}, ".model = 'entropy' is not known; did you mean 'entropy-l'?"),
        ("entropy-l", {}, "'diagnosis': entropy-l needs l, a number above 1."),
        ("entropy-l", {"l": 0.5}, ".l must be a number above 1; found 0.5: ask for more diversity"),
        ("entropy-l", {"l": "3"}, ".l must be a number above 1; found '3'."),
        ("entropy-l", {"l": True}, ".l must be a number above 1; found True."),
        ("entropy-l", {"l": float("nan")}, ".l must be a number above 1; found nan."),
        ("entropy-l", {"l": float("inf")}, ".l must be a number above 1; found inf."),
        ("distinct-l", {"l": 2.5}, ".l must be a whole number of at least 2; found 2.5."),
        ("distinct-l", {"l": 2, "c": 1}, ".c is not a parameter of distinct-l; valid: l."),
        ("recursive-cl", {"c": 0, "l": 2}, ".c must be a number above 0; found 0."),
        ("t-closeness", {"t": 1.5}, ".t must be a number of at least 0 and below 1; found 1.5: ask for more"),
        ("t-closeness", {"t": 0.1, "distance": "far"}, ".distance must be one of equal, ordered, hierarchical;"),
        ("alpha-k", {"alpha": 0}, ".alpha must be a number above 0 and below 1; found 0."),
        ("beta-likeness", {"beta": -1}, ".beta must be a number of at least 0; found -1."),
        ("beta-likeness", {"beta": 1, "enhanced": 1}, ".enhanced must be true or false; found 1."),
        ("delta-disclosure", {"delta": -0.1}, ".delta must be a number of at least 0; found -0.1."),
        ("variance", {"varience": 1}, ".varience is not a parameter of variance; did you mean 'variance'?"),
    ],
)
def test_wrong_parameters_are_refused(model: str, given: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError) as error:
        make_model(TEXTS, model, given)
    assert "diversity of column 'diagnosis'" in error.value.faults[0]
    assert told in error.value.faults[0]


def test_every_model_has_a_kernel_of_its_own() -> None:
    assert len({model.kernel for model in MODELS.values()}) == len(MODELS)


def test_all_faults_are_told_together() -> None:
    faults = parameter_faults("recursive-cl", {"l": 0, "d": 1}, where="privacy.diversity[1]")
    assert faults == [
        "privacy.diversity[1].d is not a parameter of recursive-cl; valid: c, l.",
        "privacy.diversity[1]: recursive-cl needs c, a number above 0.",
        "privacy.diversity[1].l must be a whole number of at least 2; found 0: ask for more diversity than that, or write "
        'diversity = "none" and a reason = "…" for the column.',
    ]
    assert parameter_faults("recursive-cl", {"l": 2.0, "c": 1}, where="privacy.diversity[1]") == []


@pytest.mark.parametrize(
    ("column", "model", "given", "told"),
    [
        (TEXTS, "variance", {"variance": 1}, "variance is for numbers, and the column has none"),
        (ORDERED, "squared-error", {"error": 1}, "squared-error is for numbers, and the column has none"),
        (TEXTS, "t-closeness", {"t": 0.1, "distance": "ordered"}, "the ordered distance needs ordered values"),
        (ORDERED, "t-closeness", {"t": 0.1, "distance": "hierarchical"}, "the hierarchical distance needs a taxonomy"),
    ],
)
def test_models_refuse_columns_that_do_not_suit_them(
    column: SensitiveColumn, model: str, given: dict[str, Any], told: str
) -> None:
    with pytest.raises(SpecError, match=told):
        make_model(column, model, given)


@pytest.mark.parametrize(
    ("column", "distance"), [(TEXTS, "equal"), (ORDERED, "ordered"), (NUMBERS, "ordered"), (TREE, "hierarchical")]
)
def test_the_distance_follows_the_column(column: SensitiveColumn, distance: str) -> None:
    made: Any = make_model(column, "t-closeness", {"t": 0.1})
    assert made.distance.name == distance
    chosen: Any = make_model(column, "t-closeness", {"t": 0.1, "distance": "equal"})
    assert chosen.distance.name == "equal"


def test_a_whole_number_may_be_written_with_a_point() -> None:
    made: Any = make_model(TEXTS, "distinct-l", {"l": 3.0})
    assert isinstance(made.l, int)
    assert made.allows(np.array([[1, 1, 0], [1, 1, 1]])).tolist() == [False, True]


@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_made_model_says_what_it_is(model: str) -> None:
    given = {each.name: 2 if each.empty == "lowest" else 0.5 for each in MODELS[model].parameters if each.is_needed}
    made = make_model(NUMBERS, model, given)
    assert made.name == model
    assert made.column is NUMBERS
    assert made.is_monotone == MODELS[model].is_monotone


def test_the_docs_print_the_catalogue() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert model_table() in text, "print anonfit.privacy.catalogue.model_table() into docs/privacy-models.md"
    for name, entry in MODELS.items():
        section = text.split(f"\n### `{name}`")[1].split("\n### ")[0]
        for parameter in entry.parameters:
            assert f"`{parameter.name}`" in section, (name, parameter.name)


def test_the_example_of_minimality_in_the_docs() -> None:
    # Two persons of age 20 come first, four of age 40 after them; value 0 is flu, the others are other diseases.
    ills = SensitiveColumn("diagnosis", 5, False, np.array([2, 1, 1, 1, 1]))
    model = make_model(ills, "alpha-k", {"alpha": 0.5})
    assert model.allows(ills.whole)
    undivided = set()
    for diagnoses in set(permutations([0, 0, 1, 2, 3, 4])):
        parts = [np.bincount(part, minlength=5) for part in (diagnoses[:2], diagnoses[2:])]
        if not all(model.allows(part) for part in parts):
            undivided.add(diagnoses[:2])
    assert undivided == {(0, 0)}


@pytest.mark.parametrize("model", MODELS)
def test_whatever_may_be_asked_can_be_audited(model: str) -> None:
    tried = 0
    for parameter in MODELS[model].parameters:
        for value in (0, 0.0, 5e-324, 1e-9, 0.5, 1, 1.5, 2, 7, 1e6, 1e300):
            if parameter.kind in (Kind.NUMBER, Kind.WHOLE) and parameter.accepts(value):
                assert AUDITED[model].parameters[parameter.name].holds(value)
                tried += 1
    assert tried
