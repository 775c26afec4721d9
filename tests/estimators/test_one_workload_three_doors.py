# SPDX-License-Identifier: Apache-2.0
"""A workload written in a spec, in keyword arguments and in the estimator gives the same recoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from patients import DECLARED, GRADES, outcomes, patients

import anonfit as af
from anonfit import Anonymizer

TABLE = patients(rows=800)
Y = outcomes(TABLE)
WARDS = pl.Series("ward", ["a", "b", "c", "d"] * 200)

COLUMNS = f"""
version = 1
[columns.age]
role = "quasi-identifier"
[columns.admitted]
role = "quasi-identifier"
[columns.grade]
role = "quasi-identifier"
type = "ordinal"
order = {GRADES}
[columns.sex]
role = "quasi-identifier"
[columns.country]
role = "quasi-identifier"
taxonomy = "country.json"
"""
DIED = '[columns.died]\nrole = "target"\nrelease = true\n'
COST = '[columns.cost]\nrole = "target"\nrelease = true\n'
COUNTRY = """{"name": "*", "children": [{"name": "Europe", "children": [{"name": "FR"}, {"name": "DE"}]},
 {"name": "US"}, {"name": "JP"}]}"""

# What the spec says, what is said in words to both other doors, and the columns of y with what is said of each.
Case = tuple[str, dict[str, Any], dict[str, dict[str, Any]]]
CASES: dict[str, Case] = {
    "blind": ("[privacy]\nk = 8\n", {}, {}),
    "classes": (f"[privacy]\nk = 8\n{DIED}", {}, {"died": {}}),
    "numbers": (f"[privacy]\nk = 8\n{COST}", {}, {"cost": {}}),
    "both, weighted": (
        f'[privacy]\nk = 8\n{DIED}{COST}[workload]\ntargets = ["died", {{ column = "cost", weight = 0.25 }}]\n',
        {},
        {"died": {}, "cost": {"weight": 0.25}},
    ),
    "classes of numbers": (
        f'[privacy]\nk = 8\n{COST}[workload]\ntargets = [{{ column = "cost", classes = [500, 700] }}]\n',
        {"criterion": "infogain"},
        {"cost": {"classes": [500, 700]}},
    ),
    "all candidates": (
        f'[privacy]\nk = 8\n{DIED}[method]\ncriterion = "infogain"\ncandidates = "all"\nmin_gain = 2.0\n',
        {"criterion": "infogain", "candidates": "all", "min_gain": 2.0},
        {"died": {}},
    ),
    "blind on demand": (
        f'[privacy]\nk = 8\n{DIED}[method]\ncriterion = "median"\n',
        {"criterion": "median"},
        {"died": {}},
    ),
    "cut at values": (
        f'[privacy]\nk = 8\n{DIED}[method]\ncut_points = "value"\nsplit_on = ["age", "sex"]\n[output]\nconsent = true\n',
        {"cut_points": "value", "split_on": ["age", "sex"]},
        {"died": {}},
    ),
    "weights": (
        '[privacy]\nk = 8\n[workload.weights]\nage = 2.0\nsex = 0.5\n[method]\nweight_rule = "blend"\nalpha = 0.7\n',
        {"weights": {"age": 2.0, "sex": 0.5}, "weight_rule": "blend", "alpha": 0.7},
        {},
    ),
    "selections": (
        f'[privacy]\nk = 8\n{DIED}[[workload.selections]]\nwhere = "age >= 50"\nweight = 2.0\n'
        '[[workload.selections]]\neach = "country"\n',
        {"selections": [{"where": "age >= 50", "weight": 2.0}, {"each": "country"}]},
        {"died": {}},
    ),
    "confidence": (f"[privacy]\nk = 8\nmax_confidence = 0.9\n{DIED}", {"max_confidence": 0.9}, {"died": {}}),
    "denoised": (
        f"[privacy]\nk = 8\n{DIED}[workload]\ndenoise = true\n[method]\nseed = 7\n",
        {"denoise": True, "seed": 7},
        {"died": {}},
    ),
    "diverse": (
        '[privacy]\nk = 8\n[columns.ward]\nrole = "sensitive"\nrelease = true\n'
        f'[[privacy.diversity]]\ncolumn = "ward"\nmodel = "entropy-l"\nl = 2.5\n{DIED}',
        {"sensitive": {"ward": {"model": "entropy-l", "l": 2.5}}},
        {"died": {}},
    ),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("case", CASES)
def test_three_doors_give_one_recoding(case: str, tmp_path: Path) -> None:
    text, words, targets = CASES[case]
    table = TABLE.with_columns(WARDS) if "ward" in text else TABLE
    whole = table.with_columns(Y.select(list(targets)).get_columns())
    whole.write_parquet(tmp_path / "patients.parquet")
    (tmp_path / "country.json").write_text(COUNTRY, encoding="utf-8")
    method = (
        "" if "criterion" not in words or "criterion" in text else f'[method]\ncriterion = "{words["criterion"]}"\n'
    )
    path = tmp_path / "spec.toml"
    path.write_text(f'{COLUMNS}[data]\nsource = "patients.parquet"\n{text}{method}', encoding="utf-8")

    by_spec = af.anonymize(af.read_spec(path)).recoding.to_json()
    by_words = af.anonymize(
        whole,
        quasi_identifiers=TABLE.columns,
        k=8,
        targets=[{"column": name, **entry} for name, entry in targets.items()],
        release=[*targets, *(["ward"] if "ward" in text else [])],
        consent=words.get("cut_points") == "value",
        **DECLARED,
        **words,
    ).recoding.to_json()
    estimator = Anonymizer(k=8, targets=list(targets.values()) or None, output="labels", **DECLARED, **words)
    y = Y.select(list(targets)) if targets else None
    by_estimator = estimator.fit(table, y).recoding_.to_json()
    assert by_spec == by_words == by_estimator
    if y is not None:
        arrays = [column.to_numpy() for column in y.get_columns()]
        again = estimator.fit(table.to_arrow(), arrays[0] if len(arrays) == 1 else y.to_pandas())
        assert again.recoding_.to_json() == by_spec


def test_the_target_changes_the_recoding() -> None:
    blind, aware = Anonymizer(k=8, **DECLARED).fit(TABLE), Anonymizer(k=8, **DECLARED).fit(TABLE, Y["died"])
    assert blind.recoding_.to_json() != aware.recoding_.to_json()
    whole = Anonymizer(k=8, **DECLARED).fit(TABLE, Y)
    assert whole.recoding_.to_json() not in (blind.recoding_.to_json(), aware.recoding_.to_json())


def test_a_quasi_identifier_may_be_a_target() -> None:
    target = {"column": "age", "classes": [40, 60]}
    expected = af.anonymize(TABLE, quasi_identifiers=TABLE.columns, k=8, targets=[target], **DECLARED)
    assert Anonymizer(k=8, targets=[target], **DECLARED).fit(TABLE).recoding_.to_json() == expected.recoding.to_json()


def test_classes_that_are_numbers_are_declared_to_the_other_doors() -> None:
    levels = pl.Series("level", Y["cost"].rank("ordinal").to_numpy() * 4 // 801)
    assert levels.n_unique() == 4
    expected = af.anonymize(
        TABLE.with_columns(levels),
        quasi_identifiers=TABLE.columns,
        k=8,
        targets=["level"],
        **{**DECLARED, "types": {**DECLARED["types"], "level": "nominal"}},
    )
    assert Anonymizer(k=8, **DECLARED).fit(TABLE, levels).recoding_.to_json() == expected.recoding.to_json()
    numbers = Anonymizer(k=8, targets=[{"type": "continuous"}], **DECLARED).fit(TABLE, levels)
    assert numbers.recoding_.to_json() != expected.recoding.to_json()
    plain = af.anonymize(
        TABLE.with_columns(levels), quasi_identifiers=TABLE.columns, k=8, targets=["level"], **DECLARED
    )
    assert plain.recoding.to_json() == expected.recoding.to_json()


@pytest.mark.parametrize("y", [[0, 1], [True, False], ["u", "v"], [0.0, 1.0]])
def test_two_classes_need_no_declaration(y: list[Any]) -> None:
    died = pl.Series("died", [y[int(word == "yes")] for word in Y["died"].to_list()])
    expected = af.anonymize(
        TABLE.with_columns(died), quasi_identifiers=TABLE.columns, k=8, targets=["died"], **DECLARED
    )
    found = Anonymizer(k=8, **DECLARED).fit(TABLE, died.to_numpy())
    assert found.recoding_.to_json() == expected.recoding.to_json()
