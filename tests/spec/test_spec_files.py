# SPDX-License-Identifier: Apache-2.0
"""Specs in files: found, changed by settings of the command line, and written back to themselves."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from spec_strategies import specs
from spec_tables import SMALL, column, people, tables

from anonfit.api import anonymize, run
from anonfit.errors import DataError, RequestError, SpecError
from anonfit.spec.model import ColumnSpec, DiversitySpec, PrivacySpec, SelectionSpec, Spec, TargetSpec, WorkloadSpec
from anonfit.spec.parse import parse_spec, read_spec, spec_of, spec_tables, with_settings
from anonfit.spec.write import to_toml
from anonfit.tables.schema import ColumnType, Role
from anonfit.tables.taxonomy import Taxonomy
from strategies import tries

# --- files ------------------------------------------------------------------------------------------------------


def test_a_spec_file_is_read_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SMALL, encoding="utf-8")
    assert read_spec(tmp_path / "spec.toml").folder == tmp_path.resolve()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("absent.toml", None, "no such spec file"),
        ("bad.toml", b"version = ", "is not TOML"),
        ("path.toml", rb'data.source = "C:\Users\x.csv"', "write / in paths, or put them in single quotes"),
        ("latin.toml", "k = 'ä'".encode("latin-1"), "byte 5 is not UTF-8"),
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
            "output.order=original",
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


def test_names_that_hold_points_can_be_quoted() -> None:
    found = with_settings({}, ['columns."a.b".role="target"'])
    assert found == {"columns": {"a.b": {"role": "target"}}}


def test_settings_of_workloads_and_demands() -> None:
    found = with_settings(
        people({"illness": {"diversity": None, "reason": None}}),
        [
            'workload.targets=["outcome", {column = "age", classes = [18, 65]}]',
            "workload.weights.age=2",
            'workload.weights."city"=0.5',
            """workload.selections=[{where = "city = 'x'"}, {each = "city"}]""",
            "workload.selections.0.weight=3",
            'privacy.diversity=[{column = "illness", model = "entropy-l", l = 3}]',
            "privacy.diversity.0.l=1.5",
            "privacy.max_confidence=0.9",
            "method.criterion=infogain",
            'method.split_on=["age"]',
        ],
    )
    spec = spec_of(found)
    assert spec.workload == WorkloadSpec(
        targets=(TargetSpec("outcome"), TargetSpec("age", (18.0, 65.0))),
        selections=(SelectionSpec("city = 'x'", weight=3.0), SelectionSpec(each="city")),
        weights={"age": 2.0, "city": 0.5},
    )
    assert spec.privacy == PrivacySpec(2, 0.0, 0.9, (DiversitySpec("illness", "entropy-l", {"l": 1.5}),))
    assert (spec.method.criterion, spec.method.split_on) == ("infogain", ("age",))


def test_settings_inside_a_list_do_not_change_it() -> None:
    before = people(workload={"targets": ["outcome", {"column": "age"}]})
    after = with_settings(before, ["workload.targets.1.weight=2", "workload.targets.0=age"])
    assert before["workload"] == {"targets": ["outcome", {"column": "age"}]}
    assert after["workload"] == {"targets": ["age", {"column": "age", "weight": 2}]}


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("workload.targets.2.weight", "workload.targets is a list of 2"),
        ("workload.targets.2", "workload.targets is a list of 2"),
        ("workload.targets.age.weight", "workload.targets is a list of 2"),
        ("workload.targets.-1", "workload.targets is a list of 2"),
        ("workload.targets.0.weight", "workload.targets.0 is not a table"),
    ],
)
def test_settings_that_name_no_entry_of_a_list_are_refused(key: str, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        with_settings(people(workload={"targets": ["outcome", {"column": "age"}]}), [f"{key}=2"])


# --- writing ----------------------------------------------------------------------------------------------------


@given(specs())
@tries(200)
def test_a_spec_reads_back_to_itself(spec: Spec) -> None:
    assert parse_spec(to_toml(spec)) == spec
    assert spec_of(spec_tables(spec)) == spec


def test_tables_inside_sections_are_written_as_such() -> None:
    spec = spec_of(
        people(
            {"illness": {"diversity": None, "reason": None}},
            privacy={"k": 2, "diversity": [{"column": "illness", "model": "distinct-l", "l": 2}]},
            workload={
                "targets": ["outcome", {"column": "age", "classes": [18]}],
                "selections": [{"where": "age > 5"}, {"each": "city", "weight": 2}],
                "weights": {"age": 2},
            },
            method={"split_on": ["age"]},
        )
    )
    assert (
        to_toml(spec).split("[privacy]")[1]
        == """
k = 2

[[privacy.diversity]]
column = "illness"
model = "distinct-l"
l = 2

[workload]
targets = ["outcome", { column = "age", classes = [18.0] }]

[[workload.selections]]
where = "age > 5"

[[workload.selections]]
each = "city"
weight = 2.0

[workload.weights]
age = 2.0

[method]
split_on = ["age"]
"""
    )


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
    again = anonymize(parse_spec(to_toml(release._draft.spec)))
    assert again.recoding.to_json() == release.recoding.to_json()


SPEC = 'version = 1\n[columns.a]\nrole = "quasi-identifier"\n[privacy]\nk = 2\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SPEC.replace("k = 2", "k = " + "9" * 5000), "beyond all bounds"),
        (SPEC + "x = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        (SPEC + "suppression_limit = " + "9" * 400, "a fraction between 0 and 1"),
    ],
)
def test_numbers_and_depths_beyond_bounds_are_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "spec.toml").write_text(text)
    with pytest.raises(RequestError, match=told) as refused:
        read_spec(tmp_path / "spec.toml")
    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (".".join(["a"] * 3000) + "=1", "no setting is that deep"),
        ("privacy.k=" + "[" * 3000 + "]" * 3000, "privacy.k must be a whole number"),
        ("privacy.k=" + "9" * 5000, "privacy.k must be a whole number"),
        ('engine.name="memory"\nprivacy.k=1', "engine.name = .* is not known"),
        ("a=1\nb", "write a key and a value|is not a setting"),
    ],
)
def test_a_setting_is_one_value_and_nothing_more(tmp_path: Path, setting: str, told: str) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    with pytest.raises(RequestError, match=told):
        read_spec(tmp_path / "spec.toml", [setting])


def test_a_domain_of_hundreds_of_digits_is_refused() -> None:
    with pytest.raises(RequestError, match="does not fit its values"):
        anonymize(pl.DataFrame({"a": [1, 2, 3]}), quasi_identifiers=["a"], k=2, domains={"a": [0, 10**400]})
