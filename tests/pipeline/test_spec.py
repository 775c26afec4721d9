# SPDX-License-Identifier: Apache-2.0
"""A spec is read whole or refused whole: every fault at once, with the word that was meant; and it writes back to itself."""

from __future__ import annotations

import tomllib
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonfit.api import anonymize, run
from anonfit.errors import DataError, RequestError, SpecError
from anonfit.spec import ColumnSpec, DataSpec, EngineSpec, MethodSpec, OutputSpec, PrivacySpec, Spec
from anonfit.spec_reading import parse_spec, read_spec, spec_of, with_settings
from anonfit.spec_writing import spec_tables, to_toml
from anonfit.tables.cuts import CutPoints
from anonfit.tables.schema import ColumnType, Role, Split
from anonfit.tables.taxonomy import Taxonomy
from strategies import tries

SMALL = """
version = 1
[data]
source = "people.csv"
[columns.age]
role = "quasi-identifier"
[privacy]
k = 2
"""


def tables(**sections: Any) -> dict[str, Any]:
    return tomllib.loads(SMALL) | sections


def faults(found: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(SpecError) as caught:
        spec_of(found)
    return caught.value.faults


def fault(found: dict[str, Any]) -> str:
    (one,) = faults(found)
    return one


def column(**settings: Any) -> dict[str, Any]:
    return tables(columns={"age": {"role": "quasi-identifier", **settings}})


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
[columns.weight]
role = "sample-weight"
release = true
[columns."odd name"]
role = "entity"
[privacy]
k = 10
suppression_limit = 0.05
[method]
algorithm = "mondrian"
criterion = "median"
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
                Role.QUASI_IDENTIFIER, ColumnType.NOMINAL, taxonomy="country.csv", split=Split.MULTIWAY
            ),
            "stage": ColumnSpec(Role.QUASI_IDENTIFIER, ColumnType.ORDINAL, order=("low", "high")),
            "admitted": ColumnSpec(Role.QUASI_IDENTIFIER, ColumnType.DATE, date_format="%d.%m.%Y"),
            "diagnosis": ColumnSpec(Role.SENSITIVE),
            "outcome": ColumnSpec(Role.TARGET),
            "weight": ColumnSpec(Role.SAMPLE_WEIGHT, release=True),
            "odd name": ColumnSpec(Role.ENTITY),
        },
        privacy=PrivacySpec(10, 0.05),
        data=DataSpec("patients.csv", ("", "?", "NA"), "category", Role.INSENSITIVE, ";", True),
        method=MethodSpec("mondrian", "median", CutPoints.VALUE, 7),
        engine=EngineSpec("memory"),
        output=OutputSpec("csv", "bounds", "domain", "original", True),  # type: ignore[arg-type]
    )


def test_what_is_not_written_has_its_default() -> None:
    spec = parse_spec(SMALL)
    assert spec.data == DataSpec("people.csv")
    assert (spec.method, spec.engine, spec.output) == (MethodSpec(), EngineSpec(), OutputSpec())
    assert spec.output.format == "parquet"


LATER = [
    ("privacy", {"k": 2, "max_confidence": 0.8}, "privacy.max_confidence"),
    ("privacy", {"k": 2, "diversity": [{"column": "d", "model": "entropy-l", "l": 3.0}]}, "privacy.diversity"),
    ("privacy", {"k": 2, "quasi_identifiers": [{"columns": ["age"], "k": 20}]}, "privacy.quasi_identifiers"),
    ("workload", {"targets": ["outcome"], "denoise": False}, "workload"),
    ("method", {"candidates": "boundary"}, "method.candidates"),
    ("method", {"split_on": ["age"]}, "method.split_on"),
    ("method", {"weight_rule": "first"}, "method.weight_rule"),
    ("method", {"alpha": 0.5}, "method.alpha"),
    ("method", {"min_gain": 0.0}, "method.min_gain"),
    ("method", {"time_budget": 60}, "method.time_budget"),
    ("method", {"algorithm": "tdr"}, "method.algorithm = 'tdr'"),
    ("method", {"criterion": "infogain"}, "method.criterion = 'infogain'"),
    ("method", {"criterion": "lsd"}, "method.criterion = 'lsd'"),
    ("method", {"criterion": "selection"}, "method.criterion = 'selection'"),
    ("method", {"criterion": "weighted"}, "method.criterion = 'weighted'"),
    ("method", {"criterion": "clustering"}, "method.criterion = 'clustering'"),
    ("method", {"criterion": "score"}, "method.criterion = 'score'"),
    ("engine", {"name": "duckdb"}, "engine.name = 'duckdb'"),
    ("engine", {"name": "spark"}, "engine.name = 'spark'"),
    ("engine", {"memory": "4GB"}, "engine.memory"),
    ("engine", {"spill": "spill/"}, "engine.spill"),
]


@pytest.mark.parametrize(("section", "settings", "named"), LATER, ids=[named for _, _, named in LATER])
def test_keys_of_later_capabilities_are_refused_with_a_sentence(
    section: str, settings: dict[str, Any], named: str
) -> None:
    found = fault(tables(**{section: settings}))
    assert found.startswith(named)
    assert "not supported by this version" in found
    assert found.endswith(".")


@pytest.mark.parametrize(
    "source", ["duckdb:patients.db", "postgresql://host/db", "sqlite:x.db", "https://example.org/a.csv"]
)
def test_sources_of_later_capabilities_are_refused_with_a_sentence(source: str) -> None:
    with pytest.raises(SpecError, match="databases are not supported"):
        anonymize(spec_of(tables(data={"source": source})))


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
        ("data.delimiter must be one character", ""),
        ("columns.age.role = 'quasi-identifer' is not known", "did you mean 'quasi-identifier'?"),
        ("columns.sex has no role", "identifier"),
        ("columns.zip.tipe is not a setting", "did you mean 'type'?"),
        ("columns.zip.type = 'ordnal' is not known", "did you mean 'ordinal'?"),
        ("columns.zip.split = 'multway' is not known", "did you mean 'multiway'?"),
        ("privacy.k must be a whole number", ""),
        ("privacy.supression_limit is not a setting", "did you mean 'suppression_limit'?"),
        ("method.cut_points = 'simple' is not known", "did you mean 'simplest'?"),
        ("method.algoritm is not a setting", "did you mean 'algorithm'?"),
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
        ({"taxonomy": "a.csv", "split": "subset"}, "ignores the taxonomy"),
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


SILENT = pytest.mark.xfail(
    strict=True, reason="BUG: spec_reading.py _check_column passes over a setting that has no effect"
)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            {"type": "ordinal", "order": ["a", "b"], "domain": ["a", "b"]},
            marks=SILENT,
            id="domain of an ordinal column",
        ),
        pytest.param({"type": "continuous", "date_format": "%Y"}, marks=SILENT, id="date_format of numbers"),
        pytest.param({"type": "nominal", "date_format": "%Y"}, marks=SILENT, id="date_format of names"),
    ],
)
def test_settings_without_effect_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        spec_of(column(**settings))


@pytest.mark.parametrize("key", ["order", "domain", "taxonomy", "split"])
def test_settings_of_quasi_identifiers_are_refused_for_other_roles(key: str) -> None:
    value = {"order": ["a"], "domain": [0, 1], "taxonomy": "a.csv", "split": "binary"}[key]
    found = tables(columns={"age": {"role": "quasi-identifier"}, "pay": {"role": "sensitive", key: value}})
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


# --- files ------------------------------------------------------------------------------------------------------


def test_a_spec_file_is_read_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SMALL, encoding="utf-8")
    assert read_spec(tmp_path / "spec.toml").folder == tmp_path.resolve()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("absent.toml", None, "no such spec file"),
        ("bad.toml", b"version = ", "is not TOML"),
        ("latin.toml", "k = 'ä'".encode("latin-1"), "cannot be read as a spec"),
    ],
)
def test_files_that_are_no_specs_are_refused(tmp_path: Path, name: str, content: bytes | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(RequestError, match=sentence):
        read_spec(tmp_path / name)


def test_a_folder_is_no_spec(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot be read as a spec"):
        read_spec(tmp_path)


def test_paths_of_a_spec_start_at_its_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "people.csv").write_text("age,city\n1,a\n2,a\n8,b\n9,b\n")
    (tmp_path / "in" / "city.csv").write_text("a;*\nb;*\n")
    text = SMALL + '[columns.city]\nrole = "quasi-identifier"\ntaxonomy = "city.csv"\n'
    (tmp_path / "in" / "spec.toml").write_text(text)
    release = run(tmp_path / "in" / "spec.toml", tmp_path / "out", settings=["output.format=csv"])
    assert sorted(release.data["age"].to_list()) == ["< 5", "< 5", "≥ 5", "≥ 5"]
    assert (tmp_path / "out" / "data.csv").exists()
    (tmp_path / "in" / "people.csv").unlink()
    with pytest.raises(DataError, match="no such file"):
        run(tmp_path / "in" / "spec.toml", tmp_path / "other")


# --- settings of the command line -------------------------------------------------------------------------------


def test_settings_stand_above_the_file() -> None:
    found = with_settings(
        tables(),
        [
            "privacy.k=20",
            "output.format=csv",
            'columns.age.type="continuous"',
            "columns.age.domain=[0, 120]",
            "data.missing=['?']",
            "output.consent=true",
        ],
    )
    spec = spec_of(found)
    assert spec.privacy.k == 20
    assert spec.output.format == "csv"
    assert spec.columns["age"] == ColumnSpec(Role.QUASI_IDENTIFIER, ColumnType.CONTINUOUS, domain=(0, 120))
    assert spec.data.missing == ("?",)
    assert spec.output.consent


def test_settings_do_not_change_the_tables_they_are_put_in() -> None:
    before = tables()
    with_settings(before, ["privacy.k=20", "columns.age.role=target", "columns.sex.role=target"])
    assert before == tables()


@pytest.mark.parametrize("setting", ["privacy.k", "=5", "privacy.=5", ".k=5", ""])
def test_settings_without_a_key_or_a_value_are_refused(setting: str) -> None:
    with pytest.raises(RequestError, match="--set"):
        with_settings(tables(), [setting])


def test_settings_inside_what_is_no_table_are_refused() -> None:
    with pytest.raises(RequestError, match="is not a table"):
        with_settings(tables(), ["version.k=5"])


def test_settings_are_checked_like_the_file() -> None:
    with pytest.raises(SpecError, match="did you mean 'privacy'"):
        spec_of(with_settings(tables(), ["privcy.k=20"]))
    with pytest.raises(SpecError, match="whole number"):
        spec_of(with_settings(tables(), ["privacy.k=many"]))


def test_a_value_with_an_equals_sign_is_one_value() -> None:
    assert with_settings({}, ["data.source=a=b.csv"]) == {"data": {"source": "a=b.csv"}}


@pytest.mark.xfail(strict=True, reason="BUG: spec_reading.py with_settings splits a quoted name at its points")
def test_names_that_hold_points_can_be_quoted() -> None:
    found = with_settings({}, ['columns."a.b".role="target"'])
    assert found == {"columns": {"a.b": {"role": "target"}}}


# --- writing ----------------------------------------------------------------------------------------------------

WORDS = st.text(max_size=6).filter(lambda word: "\x7f" not in word)  # see test_a_name_with_a_delete_sign
NAMES = WORDS.filter(bool)
ENDS = st.sampled_from(
    [
        (0, 120),
        (-1.5, 1e22),
        (date(2020, 1, 1), date(2024, 1, 1)),
        (datetime(2020, 1, 1, 5), datetime(2024, 1, 1)),
        ("2020-01-01", "2024-01-01"),
    ]
)


@st.composite
def column_specs(draw: st.DrawFn) -> ColumnSpec:
    role = draw(
        st.sampled_from([Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET, Role.INSENSITIVE, Role.IDENTIFIER])
    )
    if role != Role.QUASI_IDENTIFIER:
        return ColumnSpec(role, release=draw(st.booleans()))
    kind = draw(st.none() | st.sampled_from(ColumnType))
    if kind == ColumnType.ORDINAL:
        return ColumnSpec(role, kind, order=tuple(draw(st.lists(st.text(max_size=5), min_size=1, unique=True))))
    if kind in (ColumnType.CONTINUOUS, ColumnType.DATE):
        return ColumnSpec(
            role,
            kind,
            domain=draw(st.just(()) | ENDS),
            date_format=draw(st.none() | st.text(max_size=5)) if kind == ColumnType.DATE else None,
        )
    if draw(st.booleans()):
        tree = {
            "name": "*",
            "children": [
                {"name": name}
                for name in draw(st.lists(NAMES.filter(lambda name: name != "*"), min_size=1, unique=True))
            ],
        }
        return ColumnSpec(
            role,
            kind,
            taxonomy=draw(st.sampled_from(["a b.csv", tree])),
            split=draw(st.none() | st.sampled_from([Split.MULTIWAY, Split.BINARY])),
        )
    return ColumnSpec(
        role, kind, split=draw(st.none() | st.sampled_from(Split)), domain=tuple(draw(st.lists(NAMES, unique=True)))
    )


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    consent = draw(st.booleans())
    return Spec(
        columns=draw(st.dictionaries(WORDS, column_specs(), max_size=4)) | {"q": ColumnSpec(Role.QUASI_IDENTIFIER)},
        privacy=PrivacySpec(draw(st.integers(1, 10**6)), draw(st.floats(0, 1))),
        data=DataSpec(
            draw(st.none() | st.text(min_size=1, max_size=8)),
            tuple(draw(st.lists(st.text(max_size=4), max_size=3))),
            draw(st.sampled_from(["category", "drop", "error"])),
            draw(st.none() | st.just(Role.INSENSITIVE)),
            draw(st.none() | st.characters(codec="utf-8")),
            draw(st.none() | st.booleans()),
        ),
        method=MethodSpec(
            "mondrian",
            draw(st.sampled_from(["auto", "median"])),
            draw(st.sampled_from(CutPoints)),
            draw(st.integers(-9, 9)),
        ),
        engine=EngineSpec(draw(st.sampled_from(["auto", "memory"]))),
        output=OutputSpec(
            draw(st.sampled_from(["csv", "parquet", "arrow"])),
            draw(st.sampled_from(["labels", "bounds", "representative"])),  # type: ignore[arg-type]
            draw(st.sampled_from(["domain", "observed"])) if consent else "domain",
            draw(st.sampled_from(["sorted", "original"])) if consent else "sorted",
            consent,
        ),
    )


@given(specs())
@tries(200)
def test_a_spec_reads_back_to_itself(spec: Spec) -> None:
    assert parse_spec(to_toml(spec)) == spec
    assert spec_of(spec_tables(spec)) == spec


@pytest.mark.xfail(strict=True, reason="BUG: spec_writing.py _key does not escape DEL as _value does")
def test_a_name_with_a_delete_sign() -> None:
    spec = spec_of(tables(columns={"a\x7fb": {"role": "quasi-identifier"}}))
    assert parse_spec(to_toml(spec)) == spec


def test_a_taxonomy_in_a_spec_is_written_as_a_tree() -> None:
    spec = spec_of(column(taxonomy=Taxonomy.flat(["a", "b"])))
    back = parse_spec(to_toml(spec))
    assert back.columns["age"].taxonomy == {"name": "*", "children": [{"name": "a"}, {"name": "b"}]}


def test_a_frame_has_no_place_in_a_written_spec() -> None:
    spec = spec_of(tables(data={"source": pl.DataFrame({"age": [1]})}))
    assert parse_spec(to_toml(spec)).data.source is None
    with pytest.raises(SpecError, match="data.source is missing"):
        anonymize(parse_spec(to_toml(spec)))


def test_a_spec_made_of_words_runs_again_from_its_text(tmp_path: Path) -> None:
    pl.DataFrame({"age": [1, 2, 8, 9], "n": [1, 1, 2, 2]}).write_csv(tmp_path / "people.csv")
    release = anonymize(tmp_path / "people.csv", quasi_identifiers=["age"], k=2, insensitive=["n"])
    again = anonymize(parse_spec(to_toml(release._made.spec)))
    assert again.recoding.to_json() == release.recoding.to_json()
