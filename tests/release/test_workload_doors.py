# SPDX-License-Identifier: Apache-2.0
"""A workload and demands written in a spec file and in keywords give the same recoding, and reach the release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from diversity_counts import groups_of, holds
from patients_table import QUASI_IDENTIFIERS, REGIONS, patients
from releases import said

from anonfit.api import anonymize, load, run
from anonfit.spec.parse import read_spec
from anonfit.tables.taxonomy import Taxonomy

TEXT = """
version = 1
[data]
source = "patients.csv"
[columns.age]
role = "quasi-identifier"
[columns.region]
role = "quasi-identifier"
taxonomy = "region.json"
[columns.sex]
role = "quasi-identifier"
[columns.diagnosis]
role = "{diagnosis}"
[columns.stage]
role = "insensitive"
[columns.cost]
role = "{cost}"
release = true
[columns.outcome]
role = "{outcome}"
[privacy]
k = 6
"""
INSENSITIVE = {"diagnosis": "insensitive", "cost": "insensitive", "outcome": "insensitive"}

# Roles, what the spec says more, and the same in words.
CASES: dict[str, tuple[dict[str, str], str, dict[str, Any]]] = {
    "role alone": ({"outcome": "target"}, "", {"targets": ["outcome"]}),
    "everything": (
        {"outcome": "target", "cost": "target", "diagnosis": "sensitive"},
        """
        max_confidence = 0.95
        [[privacy.diversity]]
        column = "diagnosis"
        model = "entropy-l"
        l = 2.5
        [[privacy.diversity]]
        column = "diagnosis"
        model = "t-closeness"
        t = 0.4
        distance = "equal"
        [workload]
        denoise = false
        targets = ["outcome", { column = "cost", classes = [50, 90.5], weight = 0.5 }, { column = "age", equal_width = 3 }]
        [[workload.selections]]
        where = "age >= 65 and region in ('n1', 's2')"
        weight = 2
        [[workload.selections]]
        each = "sex"
        [workload.weights]
        age = 2.0
        sex = 0.5
        [method]
        weight_rule = "blend"
        alpha = 0.25
        candidates = "all"
        min_gain = 0.01
        """,
        {
            "targets": [
                "outcome",
                {"column": "cost", "classes": [50, 90.5], "weight": 0.5},
                {"column": "age", "equal_width": 3},
            ],
            "max_confidence": 0.95,
            "sensitive": {
                "diagnosis": [
                    {"model": "entropy-l", "l": 2.5},
                    {"model": "t-closeness", "t": 0.4, "distance": "equal"},
                ]
            },
            "selections": [{"where": "age >= 65 and region in ('n1', 's2')", "weight": 2}, {"each": "sex"}],
            "weights": {"age": 2.0, "sex": 0.5},
            "weight_rule": "blend",
            "alpha": 0.25,
            "denoise": False,
            "candidates": "all",
            "min_gain": 0.01,
        },
    ),
    "only those listed": (
        {"outcome": "target", "cost": "target"},
        '[workload]\ntargets = ["cost"]\ndenoise = true\n[method]\nseed = 5\ncriterion = "lsd"\nsplit_on = ["age", "sex"]\n',
        {
            "targets": ["cost"],
            "denoise": True,
            "seed": 5,
            "criterion": "lsd",
            "split_on": ["age", "sex"],
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_spec_file_and_keywords_give_one_recoding(case: str, tmp_path: Path) -> None:
    roles, text, words = CASES[case]
    roles = INSENSITIVE | roles
    frame = patients()
    frame.write_csv(tmp_path / "patients.csv")
    (tmp_path / "region.json").write_text(_json(REGIONS), encoding="utf-8")
    path = tmp_path / "spec.toml"
    path.write_text(TEXT.format(**roles) + text, encoding="utf-8")
    by_spec = run(path, tmp_path / "release")
    named = [one if isinstance(one, str) else one["column"] for one in words["targets"]]
    by_words = anonymize(
        frame,
        quasi_identifiers=QUASI_IDENTIFIERS,
        k=6,
        insensitive=["stage", *(name for name in roles if name not in (*named, *words.get("sensitive", ())))],
        release=["cost"],
        taxonomies={"region": Taxonomy.from_tree(REGIONS)},
        **words,
    )
    written = (tmp_path / "release" / "recoding.json").read_text(encoding="utf-8")
    assert by_spec.recoding.to_json() == by_words.recoding.to_json() == written
    assert by_spec.data.rows() == by_words.data.rows()
    assert load(tmp_path / "release").data.rows() == by_words.data.rows()
    # Each part of the workload matters here: without it the recoding is another one.
    blind = read_spec(path, ["workload.weights={}", "workload.denoise=false", "method={criterion='median'}"])
    blind = anonymize(blind)
    assert blind.recoding.to_json() != written
    if case == "everything":
        groups = groups_of(by_words.data, QUASI_IDENTIFIERS, "diagnosis")
        whole = frame["diagnosis"].to_list()
        for asked in words["sensitive"]["diagnosis"]:
            assert all(holds(group, whole, asked) for group in groups)


def _json(tree: dict[str, Any]) -> str:
    import json

    return json.dumps(tree)


def test_a_setting_on_the_command_stands_above_the_file(tmp_path: Path) -> None:
    patients().write_csv(tmp_path / "patients.csv")
    (tmp_path / "region.json").write_text(_json(REGIONS), encoding="utf-8")
    path = tmp_path / "spec.toml"
    path.write_text(TEXT.format(**(INSENSITIVE | {"outcome": "target"})), encoding="utf-8")
    found = anonymize(read_spec(path, ['method.split_on=["sex"]', "method.min_gain=0"]))
    assert said(found, "age") == said(found, "region") == {"*": 300}
    assert set(said(found, "sex")) == {"f", "m"}


def test_pandas_and_polars_frames_give_one_recoding() -> None:
    frame = patients()
    words: dict[str, Any] = {
        "quasi_identifiers": QUASI_IDENTIFIERS,
        "k": 8,
        "targets": ["outcome", "cost"],
        "selections": ["age >= 50", {"each": "region"}],
        "sensitive": {"diagnosis": {"model": "distinct-l", "l": 2}},
        "insensitive": ["stage"],
        "release": ["cost"],
    }
    one, other = anonymize(frame, **words), anonymize(frame.to_pandas(), **words)
    assert one.recoding.to_json() == other.recoding.to_json()
    assert one.data.rows() == pl.from_pandas(other.data).select(one.data.columns).rows()
