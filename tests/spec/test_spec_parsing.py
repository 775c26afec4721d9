# SPDX-License-Identifier: Apache-2.0
"""A spec is read whole or refused whole: every fault at once, with the word that was meant."""

from __future__ import annotations

from typing import Any

import pytest
from spec_tables import SMALL, column, fault, tables

from anonfit.api import anonymize
from anonfit.errors import SpecError
from anonfit.spec.model import (
    ColumnSpec,
    DataSpec,
    DiversitySpec,
    EngineSpec,
    MethodSpec,
    OutputSpec,
    PrivacySpec,
    SelectionSpec,
    Spec,
    TargetSpec,
    WorkloadSpec,
)
from anonfit.spec.parse import parse_spec, spec_of, spec_tables
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import ColumnType, NominalSplit, Role

# --- the contract -----------------------------------------------------------------------------------------------

CONTRACT = """
version = 1
[data]
source = "patients.csv"
missing = ["", "?", "NA"]
missing_policy = "category"
default_role = "insensitive"
delimiter = ";"
header = true
[columns.patient_id]
role = "identifier"
[columns.age]
role = "quasi-identifier"
type = "continuous"
domain = [0, 120]
[columns.country]
role = "quasi-identifier"
type = "nominal"
taxonomy = "country.csv"
split = "multiway"
[columns.stage]
role = "quasi-identifier"
type = "ordinal"
order = ["low", "high"]
[columns.admitted]
role = "quasi-identifier"
type = "date"
date_format = "%d.%m.%Y"
[columns.diagnosis]
role = "sensitive"
[columns.outcome]
role = "target"
[columns.salary]
role = "target"
[columns.cost]
role = "target"
[columns.weight]
role = "sample-weight"
release = true
[columns."odd name"]
role = "entity"
[privacy]
k = 10
suppression_limit = 0.05
max_confidence = 0.9
[[privacy.diversity]]
column = "diagnosis"
model = "entropy-l"
l = 3.0
[workload]
targets = ["outcome", { column = "salary", classes = [30000] }, { column = "cost", weight = 0.5 }]
denoise = true
[[workload.selections]]
where = "age >= 50 and country in ('FR', 'DE')"
weight = 1.5
[[workload.selections]]
each = "country"
[workload.weights]
age = 2.0
[method]
algorithm = "mondrian"
criterion = "infogain"
candidates = "boundary"
split_on = ["age"]
weight_rule = "blend"
alpha = 0.25
min_gain = 4
cut_points = "value"
seed = 7
[engine]
name = "memory"
[output]
format = "csv"
values = "bounds"
regions = "domain"
order = "original"
consent = true
"""


def test_every_key_of_the_contract_that_works_is_read() -> None:
    assert parse_spec(CONTRACT) == Spec(
        columns={
            "patient_id": ColumnSpec(Role.IDENTIFIER),
            "age": ColumnSpec(Role.QUASI_IDENTIFIER, ColumnType.CONTINUOUS, domain=(0, 120)),
            "country": ColumnSpec(
                Role.QUASI_IDENTIFIER, ColumnType.NOMINAL, taxonomy="country.csv", split=NominalSplit.MULTIWAY
            ),
            "stage": ColumnSpec(Role.QUASI_IDENTIFIER, ColumnType.ORDINAL, order=("low", "high")),
            "admitted": ColumnSpec(Role.QUASI_IDENTIFIER, ColumnType.DATE, date_format="%d.%m.%Y"),
            "diagnosis": ColumnSpec(Role.SENSITIVE),
            "outcome": ColumnSpec(Role.TARGET),
            "salary": ColumnSpec(Role.TARGET),
            "cost": ColumnSpec(Role.TARGET),
            "weight": ColumnSpec(Role.SAMPLE_WEIGHT, release=True),
            "odd name": ColumnSpec(Role.ENTITY),
        },
        privacy=PrivacySpec(10, 0.05, 0.9, (DiversitySpec("diagnosis", "entropy-l", {"l": 3.0}),)),
        data=DataSpec(
            source="patients.csv",
            missing=("", "?", "NA"),
            default_role=Role.INSENSITIVE,
            delimiter=";",
            header=True,
        ),
        method=MethodSpec("mondrian", "infogain", CutPoints.VALUE, 7, "boundary", ("age",), "blend", 0.25, 4.0),
        engine=EngineSpec("memory"),
        output=OutputSpec("csv", "bounds", "domain", "original", True),  # type: ignore[arg-type]
        workload=WorkloadSpec(
            targets=(
                TargetSpec("outcome"),
                TargetSpec("salary", classes=(30000.0,)),
                TargetSpec("cost", weight=0.5),
            ),
            denoise=True,
            selections=(
                SelectionSpec(where="age >= 50 and country in ('FR', 'DE')", weight=1.5),
                SelectionSpec(each="country"),
            ),
            weights={"age": 2.0},
        ),
    )


def test_what_is_not_written_has_its_default() -> None:
    spec = parse_spec(SMALL)
    assert spec.data == DataSpec(source="people.csv")
    assert (spec.method, spec.engine, spec.output) == (MethodSpec(), EngineSpec(), OutputSpec())
    assert (spec.privacy, spec.workload) == (PrivacySpec(2), WorkloadSpec())
    assert spec.output.format == "parquet"
    assert (spec.privacy.max_confidence, spec.workload.targets, spec.method.weight_rule) == (1.0, None, None)


@pytest.mark.parametrize("source", ["https://example.org/a.csv", "s3://bucket/a.parquet"])
def test_addresses_that_are_no_databases_are_refused_with_a_sentence(source: str) -> None:
    with pytest.raises(SpecError, match="download it first"):
        anonymize(spec_of(tables(data={"source": source})))


@pytest.mark.parametrize(
    ("written", "size"),
    [("4GB", 4 * 10**9), ("512MiB", 2**29), ("1.5 GiB", 3 * 2**29), ("2tb", 2 * 10**12), (10**9, 10**9)],
)
def test_sizes_of_memory(written: Any, size: int) -> None:
    assert spec_of(tables(engine={"name": "duckdb", "memory": written})).engine.memory == size


@pytest.mark.parametrize("written", ["much", "-1GB", "4XB", True, "", "1e9"])
def test_what_is_no_size_of_memory(written: Any) -> None:
    assert fault(tables(engine={"memory": written})).endswith("is no size; write such as '2GB' or '512MiB'.")


def test_too_little_memory() -> None:
    assert "an engine needs 64MiB at least" in fault(tables(engine={"memory": "1MB"}))


def test_the_engine_of_a_spec_is_written_back() -> None:
    spec = spec_of(tables(engine={"name": "duckdb", "memory": "1GiB", "spill": "there", "hand_over": 1000}))
    assert (spec.engine.name, spec.engine.spill, spec.engine.hand_over) == ("duckdb", "there", 1000)
    assert spec_of(spec_tables(spec)).engine == spec.engine


# --- faults -----------------------------------------------------------------------------------------------------


def test_all_faults_are_reported_together_with_the_nearest_word() -> None:
    text = """
        version = 2
        privcy = 3
        [data]
        sorce = "a.csv"
        missing_policy = "dropp"
        missing = "NA"
        header = "yes"
        delimiter = ";;"
        [columns.age]
        role = "quasi-identifer"
        [columns.sex]
        type = "nominal"
        [columns.zip]
        role = "quasi-identifier"
        tipe = "nominal"
        type = "ordnal"
        split = "multway"
        [privacy]
        k = "ten"
        supression_limit = 0.1
        [method]
        cut_points = "simple"
        algoritm = "mondrian"
        criterion = "infogian"
        candidates = "boundry"
        weight_rule = "blend it"
        alpha = 1.5
        min_gain = "much"
        split_on = "zip"
        [output]
        format = "parket"
        order = "original"
    """
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    found = caught.value.faults
    expected = [
        ("version must be 1; found 2", ""),
        ("privcy is not a setting", "did you mean 'privacy'?"),
        ("data.sorce is not a setting", "did you mean 'source'?"),
        ("data.missing_policy = 'dropp' is not known", "did you mean 'drop'?"),
        ("data.missing must be a list of texts", ""),
        ("data.header must be true or false", ""),
        ("data.delimiter must be one ASCII character", ""),
        ("columns.age.role = 'quasi-identifer' is not known", "did you mean 'quasi-identifier'?"),
        ("columns.sex has no role", "identifier"),
        ("columns.zip.tipe is not a setting", "did you mean 'type'?"),
        ("columns.zip.type = 'ordnal' is not known", "did you mean 'ordinal'?"),
        ("columns.zip.split = 'multway' is not known", "did you mean 'multiway'?"),
        ("privacy.k must be a whole number", ""),
        ("privacy.supression_limit is not a setting", "did you mean 'suppression_limit'?"),
        ("method.cut_points = 'simple' is not known", "did you mean 'simplest'?"),
        ("method.algoritm is not a setting", "did you mean 'algorithm'?"),
        ("method.criterion = 'infogian' is not known", "did you mean 'infogain'?"),
        ("method.candidates = 'boundry' is not known", "did you mean 'boundary'?"),
        ("method.weight_rule = 'blend it' is not known", "did you mean 'blend'?"),
        ("method.alpha must be a number between 0 and 1", "found 1.5"),
        ("method.min_gain must be a number of at least 0", "found 'much'"),
        ("method.split_on must be a list of texts", "found 'zip'"),
        ("output.format = 'parket' is not known", "did you mean 'parquet'?"),
        ("output.order = 'original'", "consent = true"),
    ]
    for start, part in expected:
        assert any(one.startswith(start) and part in one for one in found), start
    assert len(found) == len(expected)
    assert str(caught.value) == "\n".join(found)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"type": "ordinal"}, "needs order"),
        ({"order": ["a", "b"]}, "order is for type = 'ordinal' only"),
        ({"type": "ordinal", "order": ["a", "a"]}, "names a value twice"),
        ({"type": "ordinal", "order": [1, 2]}, "must be a list of texts"),
        ({"type": "continuous", "split": "subset"}, "split is for nominal"),
        ({"taxonomy": "a.csv", "domain": ["a"]}, "remove domain and order"),
        ({"taxonomy": 5}, "must be the name of a taxonomy file"),
        ({"type": "continuous", "domain": [120, 0]}, r"\[lowest, highest\]"),
        ({"type": "continuous", "domain": [0]}, r"\[lowest, highest\]"),
        ({"type": "date", "domain": [0, "2024-01-01"]}, r"\[lowest, highest\]"),
        ({"type": "continuous", "domain": 5}, "must be a list"),
        ({"type": "continuous", "domain": []}, "must be a list"),
        ({"type": "nominal", "domain": ["a", "a"]}, "names a value twice"),
        ({"domain": [[1], [2]]}, "must hold numbers, dates or texts"),
        ({"date_format": 5}, "must be a text"),
        ({"release": True}, "a quasi-identifier is generalized"),
        ({"release": "yes"}, "must be true or false"),
    ],
)
def test_settings_of_a_column_that_do_not_fit_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        spec_of(column(**settings))


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            {"type": "ordinal", "order": ["a", "b"], "domain": ["a", "b"]},
            id="domain of an ordinal column",
        ),
        pytest.param({"type": "continuous", "date_format": "%Y"}, id="date_format of numbers"),
        pytest.param({"type": "nominal", "date_format": "%Y"}, id="date_format of names"),
    ],
)
def test_settings_without_effect_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        spec_of(column(**settings))


def test_codes_for_missing_of_a_column_that_is_not_read_are_refused() -> None:
    with pytest.raises(SpecError, match="missing says nothing of a column whose role is 'identifier'"):
        spec_of(column(role="identifier", missing=["-9"]))


@pytest.mark.parametrize("role", ["target", "insensitive", "sensitive", "identifier"])
@pytest.mark.parametrize("key", ["order", "domain", "taxonomy", "split"])
def test_settings_of_quasi_identifiers_are_refused_for_other_roles(key: str, role: str) -> None:
    value = {"order": ["a"], "domain": [0, 1], "taxonomy": "a.csv", "split": "binary"}[key]
    of_column = {"role": role, key: value} | ({"type": "ordinal"} if key == "order" and role != "identifier" else {})
    found = tables(columns={"age": {"role": "quasi-identifier"}, "pay": of_column})
    if role == "sensitive" and key in ("order", "taxonomy"):
        assert f"the {key} of a sensitive column is for t-closeness" in fault(found)
    else:
        assert f"'{key}' can be set for a quasi-identifier only" in fault(found)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ({}, "version is missing"),
        (tables(columns={}), "no column is a quasi-identifier"),
        (tables(columns={"age": {"role": "insensitive"}}), "no column is a quasi-identifier"),
        (tables(columns=5), r"\[columns\] must be a table"),
        (tables(columns={"age": "quasi-identifier"}), r"\[columns.age\] must be a table"),
        (tables(privacy={}), "privacy.k is missing"),
        (tables(privacy={"k": 0}), "at least 1"),
        (tables(privacy={"k": -3}), "at least 1"),
        (tables(privacy={"k": True}), "whole number"),
        (tables(privacy={"k": 2.5}), "whole number"),
        (tables(privacy={"k": 2, "suppression_limit": 5}), "write 0.05 for 5 %"),
        (tables(privacy={"k": 2, "suppression_limit": float("nan")}), "between 0 and 1"),
        (tables(data={"source": "a.csv", "default_role": "target"}), "only 'insensitive' can be a default"),
        (tables(method={"seed": "x"}), "whole number"),
        (tables(method={"alpha": -0.1}), "between 0 and 1"),
        (tables(method={"min_gain": -1}), "at least 0"),
        (tables(method={"min_gain": float("inf")}), "at least 0"),
        (tables(privacy={"k": 2, "max_confidence": 0}), "above 0 and at most 1"),
        (tables(privacy={"k": 2, "max_confidence": 1.1}), "above 0 and at most 1"),
        (tables(privacy={"k": 2, "max_confidence": float("nan")}), "above 0 and at most 1"),
        (tables(privacy={"k": 2, "max_confidence": True}), "above 0 and at most 1"),
        (tables(privacy={"k": 2, "max_confidence": 10**400}), "above 0 and at most 1"),
        (tables(output={"regions": "observed"}), "consent = true"),
        (tables(version="1"), "version must be 1"),
    ],
)
def test_other_faults(found: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        spec_of(found)


def test_roles_that_only_one_column_can_have() -> None:
    two = {"age": {"role": "quasi-identifier"}, "a": {"role": "entity"}, "b": {"role": "entity"}}
    assert "only one column can be 'entity'; found 'a', 'b'" in fault(tables(columns=two))
    both = {"age": {"role": "quasi-identifier"}, "a": {"role": "entity"}, "b": {"role": "count"}}
    assert "not both" in fault(tables(columns=both))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"data": {"missing": [str(code) for code in range(31)]}}, "data.missing must be at most 30 texts"),
        ({"data": {"missing": ["x" * 33]}}, "data.missing must be at most 30 texts"),
        ({"columns": {"age": {"missing": ["\0"]}}}, "columns.age.missing must be at most 30 texts"),
        ({"columns": {"age": {"date_format": "%d of a month"}}}, "columns.age.date_format must be made of directives"),
        ({"columns": {"age": {"date_format": "d.m.y"}}}, "columns.age.date_format must be made of directives"),
    ],
)
def test_what_is_published_has_no_room_for_a_table(change: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {"version": 1, "data": {"source": "t.csv"}, "privacy": {"k": 2}}
    given["columns"] = {"age": {"role": "quasi-identifier", **change.get("columns", {}).get("age", {})}}
    given["data"] |= change.get("data", {})
    with pytest.raises(SpecError, match=sentence):
        spec_of(given)


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%Y-%m-%dT%H:%M:%S%.3fZ", "%-d de %B de %Y", "%Y年%m月%d日", "%d %b %Y"])
def test_forms_of_dates_are_read(form: str) -> None:
    columns = {"day": {"role": "quasi-identifier", "type": "date", "date_format": form}}
    given = {"version": 1, "data": {"source": "t.csv"}, "privacy": {"k": 2}, "columns": columns}
    assert spec_of(given).columns["day"].date_format == form
