# SPDX-License-Identifier: Apache-2.0
"""Keyword arguments make the spec that TOML makes."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

from anonfit import api
from anonfit.errors import RequestError, SpecError
from anonfit.spec.keywords import COLUMNS, keyword_defaults, spec_of_keywords
from anonfit.spec.model import ColumnSpec, DiversitySpec, MethodSpec, SelectionSpec, Spec, TargetSpec, WorkloadSpec
from anonfit.spec.parse import parse_spec, spec_of
from anonfit.tables.schema import ColumnType, Role
from anonfit.tables.taxonomy import Taxonomy
from waivers import WAIVED, waived

WORDS: dict[str, Any] = {"quasi_identifiers": ["age", "city"], "k": 2}
TEXT = """
version = 1
[data]
source = "people.csv"
[columns.age]
role = "quasi-identifier"
[columns.city]
role = "quasi-identifier"
[privacy]
k = 2
"""


def asked(monkeypatch: pytest.MonkeyPatch, data: Any = "people.csv", **words: Any) -> Spec:
    """The spec that `anonymize` asks to be made."""
    specs: list[Spec] = []

    def stop(spec: Spec, **_: Any) -> None:
        specs.append(spec)
        raise InterruptedError

    monkeypatch.setattr(api, "make", stop)
    with pytest.raises(InterruptedError):
        api.anonymize(data, **(WORDS | words))
    return specs[0]


PAIRS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, ""),
    "targets": ({"targets": ["outcome"]}, '[columns.outcome]\nrole = "target"\n[workload]\ntargets = ["outcome"]'),
    "one target": ({"targets": "outcome"}, '[columns.outcome]\nrole = "target"\n[workload]\ntargets = ["outcome"]'),
    "target tables": (
        {"targets": [{"column": "cost", "classes": [30, 60], "weight": 0.5}, TargetSpec("pay", equal_width=3)]},
        '[columns.cost]\nrole = "target"\n[columns.pay]\nrole = "target"\n[workload]\n'
        'targets = [{ column = "cost", classes = [30, 60], weight = 0.5 }, { column = "pay", equal_width = 3 }]',
    ),
    "a target that is a quasi-identifier": (
        {"targets": ["age", {"column": "city", "weight": 2}]},
        '[workload]\ntargets = ["age", { column = "city", weight = 2 }]',
    ),
    "selections": (
        {"selections": ["age > 5", {"each": "city", "weight": 2}, SelectionSpec(where="city = 'x'", weight=3)]},
        '[[workload.selections]]\nwhere = "age > 5"\n[[workload.selections]]\neach = "city"\nweight = 2\n'
        "[[workload.selections]]\nwhere = \"city = 'x'\"\nweight = 3",
    ),
    "one selection": ({"selections": {"each": "city"}}, '[[workload.selections]]\neach = "city"'),
    "weights": (
        {"weights": {"age": 2}, "criterion": "weighted"},
        '[workload.weights]\nage = 2\n[method]\ncriterion = "weighted"',
    ),
    "denoise": (
        {"targets": ["outcome"], "denoise": True},
        '[columns.outcome]\nrole = "target"\n[workload]\ntargets = ["outcome"]\ndenoise = true',
    ),
    "sensitive without a demand": (
        {"sensitive": waived("illness")},
        f'[columns.illness]\nrole = "sensitive"\n{WAIVED}',
    ),
    "a demand": (
        {"sensitive": {"illness": {"model": "entropy-l", "l": 3}}},
        '[columns.illness]\nrole = "sensitive"\n[[privacy.diversity]]\ncolumn = "illness"\nmodel = "entropy-l"\nl = 3',
    ),
    "demands": (
        {
            "sensitive": {
                "illness": [{"model": "distinct-l", "l": 3}, DiversitySpec("illness", "t-closeness", {"t": 0.2})],
                "pay": {"model": "variance", "variance": 9},
            },
            "types": {"illness": "nominal"},
        },
        '[columns.illness]\nrole = "sensitive"\ntype = "nominal"\n[columns.pay]\nrole = "sensitive"\n'
        '[[privacy.diversity]]\ncolumn = "illness"\nmodel = "distinct-l"\nl = 3\n'
        '[[privacy.diversity]]\ncolumn = "illness"\nmodel = "t-closeness"\nt = 0.2\n'
        '[[privacy.diversity]]\ncolumn = "pay"\nmodel = "variance"\nvariance = 9',
    ),
    "a taxonomy of a sensitive column": (
        {"sensitive": {"illness": {"model": "t-closeness", "t": 0.2}}, "taxonomies": {"illness": "illness.csv"}},
        '[columns.illness]\nrole = "sensitive"\ntaxonomy = "illness.csv"\n'
        '[[privacy.diversity]]\ncolumn = "illness"\nmodel = "t-closeness"\nt = 0.2',
    ),
    "max_confidence": (
        {"targets": ["outcome"], "max_confidence": 0.9},
        'max_confidence = 0.9\n[columns.outcome]\nrole = "target"\n[workload]\ntargets = ["outcome"]',
    ),
    "method": (
        {
            "targets": ["outcome"],
            "weights": {"age": 2},
            "criterion": "infogain",
            "candidates": "all",
            "split_on": ["age"],
            "weight_rule": "blend",
            "alpha": 0.25,
            "min_gain": 4,
            "cut_points": "value",
            "consent": True,
            "seed": 3,
        },
        '[columns.outcome]\nrole = "target"\n[workload]\ntargets = ["outcome"]\n[workload.weights]\nage = 2\n'
        '[method]\ncriterion = "infogain"\ncandidates = "all"\nsplit_on = ["age"]\nweight_rule = "blend"\n'
        'alpha = 0.25\nmin_gain = 4\ncut_points = "value"\nseed = 3\n[output]\nconsent = true',
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_keywords_and_toml_make_equal_specs(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    words, text = PAIRS[name]
    expected = parse_spec(TEXT + text)
    assert asked(monkeypatch, **words) == expected
    assert (name == "nothing") == (expected == parse_spec(TEXT))


def test_every_setting_of_the_method_and_the_workload_is_a_keyword() -> None:
    words = set(inspect.signature(api.anonymize).parameters)
    assert {setting.name for setting in fields(MethodSpec)} - {"algorithm"} <= words
    assert {setting.name for setting in fields(WorkloadSpec)} <= words
    known = set(keyword_defaults()) | set(COLUMNS)
    assert known <= words


def test_defaults_of_keywords_are_those_of_the_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch) == spec_of_keywords("people.csv", WORDS) == parse_spec(TEXT)


def test_a_frame_and_names_that_are_no_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"1": [1], "2": [2]})
    words = {"quasi_identifiers": [1], "targets": [2], "weights": {1: np.float64(2.5)}, "split_on": [1]}
    spec = asked(monkeypatch, frame, **words)
    assert spec.data.source is frame
    assert spec.workload == WorkloadSpec((TargetSpec("2"),), weights={"1": 2.5})
    assert spec.method.split_on == ("1",)


def test_one_name_may_stand_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = asked(monkeypatch, split_on="age", sensitive=waived("illness"), release="note", insensitive="note")
    assert spec.method.split_on == ("age",)
    assert {name: str(column.role) for name, column in spec.columns.items()} == {
        "age": "quasi-identifier",
        "city": "quasi-identifier",
        "illness": "sensitive",
        "note": "insensitive",
    }
    assert spec.columns["note"].release


def test_taxonomies_may_be_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Taxonomy.flat(["a", "b"])
    demand = {"model": "t-closeness", "t": 0.2}
    assert (
        asked(monkeypatch, sensitive={"illness": demand}, taxonomies={"illness": tree}).columns["illness"].taxonomy
        is tree
    )


@pytest.mark.parametrize(
    ("words", "kind", "sentence"),
    [
        ({"targets": ["illness"], "sensitive": ["illness"]}, RequestError, "'illness' is given two roles: 'target'"),
        (
            {"targets": [{"column": "o", "classes": [1]}, {"column": "o", "classes": [2]}]},
            RequestError,
            "^targets names the column 'o' twice; one entry says all of a target.$",
        ),
        ({"insensitive": ["o", "o"]}, RequestError, "^insensitive names the column 'o' twice.$"),
        ({"min_gain": 1.0}, SpecError, "none steers the splits: remove it, or give a column the role 'target'"),
        ({"targets": ["age", "age"]}, SpecError, "targets names 'age' twice"),
        ({"targets": [{"weight": 2}]}, SpecError, r"targets\[0\] has no column"),
        ({"targets": {"outcome": 2}}, SpecError, r"targets\[0\] has no column"),
        ({"targets": ["o"], "criterion": "infogian"}, SpecError, "did you mean 'infogain'"),
        ({"criterion": "lsd"}, SpecError, "needs a target"),
        ({"selections": [5]}, SpecError, r"selections\[0\]\] must be a table"),
        ({"selections": ["age > 5", {}]}, SpecError, r"selections\[1\] must have a where"),
        ({"weights": {"ages": 2}}, SpecError, "did you mean 'age'"),
        ({"weights": [2, 1]}, SpecError, r"\[weights\] must be a table"),
        ({"sensitive": {"illness": "entropy-l"}}, RequestError, "what is asked of 'illness' must be such as"),
        ({"sensitive": {"illness": ["entropy-l"]}}, RequestError, "what is asked of 'illness' must be such as"),
        ({"sensitive": {"illness": {"model": "entropy-l"}}}, SpecError, "entropy-l needs l"),
        ({"sensitive": {"illness": {"model": "entropy-l", "k": 3}}}, SpecError, r"sensitive\[0\].k"),
        (
            {"sensitive": {"illness": {"column": "pay", "model": "distinct-l", "l": 2}}},
            RequestError,
            "'illness' names the column 'pay'",
        ),
        ({"missing": "NA"}, SpecError, "missing must be a list of texts"),
        ({"max_confidence": 0.5}, SpecError, "there is none"),
        ({"denoise": True}, SpecError, "denoise has no target"),
    ],
)
def test_wrong_keywords_are_refused(words: dict[str, Any], kind: type[RequestError], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        api.anonymize("people.csv", **(WORDS | words))


def test_keywords_that_are_not_given_are_left_to_the_spec(tmp_path: Path) -> None:
    spec = spec_of_keywords(tmp_path / "a.csv", {"quasi_identifiers": ["age"], "k": 3, "targets": ["outcome"]})
    expected = {
        "version": 1,
        "data": {"source": tmp_path / "a.csv"},
        "columns": {"age": {"role": "quasi-identifier"}, "outcome": {"role": "target"}},
        "privacy": {"k": 3},
        "workload": {"targets": ["outcome"]},
    }
    assert spec == spec_of(expected)


def test_numbers_and_truths_of_numpy_are_those_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "k": np.int64(3),
        "seed": np.uint8(4),
        "denoise": np.bool_(True),
        "order": "original",
        "consent": np.bool_(True),
        "min_gain": np.float32(0.5),
        "weights": {"age": np.int64(2)},
        "domains": {"age": np.array([0, 120])},
        "targets": [
            {"column": "o", "weight": np.float64(0.5), "classes": np.array([1.5, 2.5])},
            {"column": "cost", "scale": np.bool_(False)},
        ],
        "sensitive": {"pay": {"model": "beta-likeness", "beta": np.float64(2.0), "enhanced": np.bool_(True)}},
        "selections": [{"where": "age > 5", "weight": np.int32(2)}],
        "split_on": np.array(["age"]),
        "release": np.array(["o"]),
    }
    plain = {
        "k": 3,
        "seed": 4,
        "denoise": True,
        "order": "original",
        "consent": True,
        "min_gain": 0.5,
        "weights": {"age": 2},
        "domains": {"age": [0, 120]},
        "targets": [{"column": "o", "weight": 0.5, "classes": [1.5, 2.5]}, {"column": "cost", "scale": False}],
        "sensitive": {"pay": {"model": "beta-likeness", "beta": 2.0, "enhanced": True}},
        "selections": [{"where": "age > 5", "weight": 2}],
        "split_on": ["age"],
        "release": ["o"],
    }
    found = asked(monkeypatch, **given)
    assert found == asked(monkeypatch, **plain)
    assert repr(found) == repr(asked(monkeypatch, **plain))


@pytest.mark.parametrize("k", [True, np.bool_(True), 2.5, np.float64(3.0), "3"])
def test_what_is_no_whole_number_is_not_made_one(k: Any) -> None:
    with pytest.raises(SpecError, match="k must be a whole number"):
        api.anonymize("people.csv", quasi_identifiers=["age"], k=k)


def test_a_setting_of_a_column_with_the_default_role_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked(monkeypatch, default_role="insensitive", types={"cost": "continuous"})
    assert found.columns["cost"] == ColumnSpec(Role.INSENSITIVE, type=ColumnType.CONTINUOUS)
    with pytest.raises(RequestError, match="types names the column 'cost', which has no role"):
        api.anonymize("people.csv", **WORDS, types={"cost": "continuous"})


FITTED = LinearRegression().fit([[1.0], [2.0]], [1.0, 2.0])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            {"targets": [{"column": "o", "model": "foo"}]},
            "^targets: the model of 'o' must be a fitted model, an object with predict or predict_proba; found a str.$",
        ),
        ({"targets": [{"column": "o", "model": LinearRegression}]}, "found the class LinearRegression"),
        ({"targets": [TargetSpec("o", model=3)]}, "the model of 'o' must be a fitted model"),
        (
            {"targets": [{"column": "o", "model": FITTED}], "denoise": True},
            "^denoise fits models of the targets, and 'o' has a model that is given; remove one of the two.$",
        ),
    ],
)
def test_models_that_cannot_be_used_are_refused_before_any_work(words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        api.anonymize("people.csv", **(WORDS | words))


def test_a_model_beside_targets_that_are_denoised_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked(monkeypatch, targets=["cost", {"column": "o", "model": FITTED}], denoise=True)
    assert [target.model for target in found.targets] == [None, FITTED]


def test_a_taxonomy_that_is_nested_too_deeply_is_refused() -> None:
    tree: dict[str, Any] = {"name": "leaf"}
    for level in range(2000):
        tree = {"name": str(level), "children": [tree]}
    with pytest.raises(RequestError, match="nested too deeply"):
        spec_of_keywords(pl.DataFrame({"age": [1]}), {"quasi_identifiers": ["age"], "taxonomies": {"age": tree}})
