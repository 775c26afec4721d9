# SPDX-License-Identifier: Apache-2.0
"""Specs in files: found, changed by settings of the command line, and written back to themselves."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spec_tables import SMALL, column, tables

from anonfit.api import anonymize, run
from anonfit.errors import DataError, RequestError, SpecError
from anonfit.spec import ColumnSpec, DataSpec, EngineSpec, MethodSpec, OutputSpec, PrivacySpec, Spec
from anonfit.spec_reading import parse_spec, read_spec, spec_of, with_settings
from anonfit.spec_writing import spec_tables, to_toml
from anonfit.tables.cuts import CutPoints
from anonfit.tables.schema import ColumnType, Role, Split
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


def test_names_that_hold_points_can_be_quoted() -> None:
    found = with_settings({}, ['columns."a.b".role="target"'])
    assert found == {"columns": {"a.b": {"role": "target"}}}


# --- writing ----------------------------------------------------------------------------------------------------

WORDS = st.text(max_size=6)
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
