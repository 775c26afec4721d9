# SPDX-License-Identifier: Apache-2.0
"""Methods: what they ask of a spec, and what they make of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evaluation_tables import SPEC, people, spec

import anonfit as af
from anonfit.errors import RequestError
from anonfit.evaluation.methods import METHODS, method
from anonfit.spec.model import SelectionSpec, WorkloadSpec
from anonfit.tables.schema import NominalSplit


def test_methods_are_variants_of_the_spec() -> None:
    asked = spec()
    found = {name: one.spec(asked, 7) for name, one in METHODS.items()}
    criteria = {name: None if one is None else one.method.criterion for name, one in found.items()}
    assert criteria == {
        "spec": "auto",
        "median": "median",
        "infogain": "infogain",
        "infogain-subset-denoised": "infogain",
        "lsd": "lsd",
        "selection": None,
        "tdr": "auto",
        "tree": "auto",
        "weighted": None,
        "naive": None,
        "probabilistic": None,
        "combined": None,
        "clustering": "clustering",
        "explore": "explore",
    }
    assert {one.privacy.k for one in found.values() if one is not None} == {7}
    denoised = found["infogain-subset-denoised"]
    assert denoised is not None
    assert denoised.workload.denoise
    assert denoised.columns["job"].split == NominalSplit.SUBSET
    assert denoised.columns["age"].split is None


def test_the_paper_s_infogain_is_not_denoised_whatever_the_spec_says() -> None:
    asked = spec(SPEC + "denoise = true\n")
    found = method("infogain").spec(asked, 5)
    assert found is not None
    assert not found.workload.denoise


@pytest.mark.parametrize("name", ["median", "infogain", "infogain-subset-denoised"])
def test_named_methods_are_mondrian_s_whatever_the_algorithm_of_the_spec(name: str) -> None:
    refined = spec(
        SPEC + "[method]\nalgorithm = 'tdr'\ncut_points = 'value'\ntime_budget = 60\n[output]\nconsent = true\n"
    )
    split = spec(SPEC + "[method]\ncut_points = 'value'\n[output]\nconsent = true\n")
    frame = people(200)
    found = method(name).recode(frame, refined, 20, 0)
    assert found.to_json() == method(name).recode(frame, split, 20, 0).to_json()
    assert found.to_json() != method("spec").recode(frame, refined, 20, 0).to_json()


def test_top_down_refinement_is_a_method_whatever_the_algorithm_of_the_spec() -> None:
    refined = spec(SPEC + "[method]\nalgorithm = 'tdr'\n")
    frame = people(200)
    found = method("tdr").recode(frame, spec(), 20, 0)
    assert found.to_json() == method("spec").recode(frame, refined, 20, 0).to_json()
    assert found.to_json() == method("tdr").recode(frame, refined, 20, 0).to_json()
    assert found.to_json() != method("infogain").recode(frame, spec(), 20, 0).to_json()
    with pytest.raises(
        RequestError, match=r"'tdr' needs one target with classes \(of several, workload.targets names one\), and the"
    ):
        method("tdr").recode(frame, replace(spec(), workload=WorkloadSpec()), 20, 0)


def test_methods_of_mondrian_have_one_quasi_identifier() -> None:
    several = "[[privacy.quasi_identifiers]]\ncolumns = ['age']\n[[privacy.quasi_identifiers]]\ncolumns = ['job']\n"
    asked = spec(SPEC + several + "[method]\nalgorithm = 'tdr'\n")
    method("spec").recode(people(200), asked, 5, 0)
    with pytest.raises(RequestError, match="'median' divides all columns together"):
        method("median").recode(people(200), asked, 5, 0)
    with pytest.raises(RequestError, match="evaluate spec, original and removed only"):
        af.evaluate(people(200), asked)
    found = af.evaluate(people(200), asked, methods=["spec", "removed"], learners=["tree"], folds=2, workers=1)
    assert found.methods == ["spec", "removed"]


def test_selection_needs_selections() -> None:
    with pytest.raises(RequestError, match="'selection' needs selections, and the spec has not that"):
        method("selection").recode(people(50), spec(), 5, 0)
    asked = replace(spec(), workload=WorkloadSpec(selections=(SelectionSpec(where="age >= 40"),)))
    found = method("selection").spec(asked, 5)
    assert found is not None
    assert found.method.criterion == "selection"


def test_infogain_needs_a_target() -> None:
    asked = replace(spec(), workload=WorkloadSpec(targets=()))
    with pytest.raises(RequestError, match="needs a target with classes"):
        method("infogain").recode(people(50), asked, 5, 0)


def test_recodings_are_learned_from_the_rows_and_k_that_are_given() -> None:
    frame = people(200)
    recoding = method("median").recode(frame, spec(), 20, 0)
    sizes = recoding.apply(frame).group_by("age", "job").len()["len"]
    assert sizes.min() >= 20
    assert method("median").recode(frame, spec(), 20, 0).to_json() == recoding.to_json()


def test_an_unknown_method_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(RequestError, match="no method 'medain'; did you mean 'median'"):
        method("medain")


def test_weights_are_enforced_in_every_way() -> None:
    asked = spec(SPEC + "weights = { age = 2.0 }\n[method]\nweight_rule = 'blend'\nalpha = 0.9\n")
    rules = {"weighted": "first", "naive": "naive", "probabilistic": "probabilistic", "combined": "combined"}
    for name, rule in rules.items():
        found = method(name).spec(asked, 5)
        assert found is not None
        assert found.method.weight_rule == rule
        assert method(name).recode(people(), asked, 20, seed=1).quasi_identifiers == ("age", "job")
    clustering = method("clustering").spec(asked, 5)
    assert clustering is not None
    assert clustering.method.weight_rule is None
    assert method("weighted").spec(spec(SPEC + "weights_from = 'accuracy'\n"), 5) is not None


def test_the_seed_of_a_fold_is_that_of_what_is_drawn() -> None:
    asked = spec(SPEC + "weights = { age = 2.0, job = 1.0 }\n")
    one, again, other = (method("probabilistic").recode(people(), asked, 10, seed=seed) for seed in (1, 1, 2))
    assert one.to_json() == again.to_json()
    assert one.to_json() != other.to_json()
