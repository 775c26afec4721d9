# SPDX-License-Identifier: Apache-2.0
"""`propose` is what `anonfit init` does, in Python: a spec with questions that stop a release until they are settled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import anonfit as af
from anonfit.cli.main import app
from anonfit.demo.population import hospital
from anonfit.errors import RequestError, SpecError
from anonfit.spec.model import ProposedSpec, Spec
from anonfit.spec.parse import spec_tables
from anonfit.spec.write import to_toml

ROWS = 400


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return hospital(ROWS, seed=3)


def settled(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("decide = "))


def test_a_proposal_is_a_spec_that_is_refused_until_its_questions_are_settled(people: pl.DataFrame) -> None:
    spec = af.propose(people)
    assert isinstance(spec, Spec)
    assert {"privacy", "workload"} <= set(spec.questions)
    with pytest.raises(SpecError) as refused:
        af.anonymize(spec)
    assert "decisions are open in the spec" in refused.value.faults[0]
    assert [fault.split(":")[0] for fault in refused.value.faults[1:]] == list(spec.questions)
    release = af.anonymize(replace(spec, questions={}))
    assert release.recoding.quasi_identifiers == spec.of_role("quasi-identifier")  # type: ignore[arg-type]


@pytest.mark.parametrize("publish", ["table", "tree"])
def test_no_door_makes_a_release_of_a_proposal_with_questions(
    people: pl.DataFrame, publish: Any, tmp_path: Path
) -> None:
    spec = af.propose(people)
    asked = spec if publish == "table" else replace(spec, method=replace(spec.method, algorithm="tree"))
    with pytest.raises(SpecError, match="decisions are open"):
        af.run(asked, tmp_path / "out", publish=publish)
    assert not (tmp_path / "out").exists()


def test_what_is_accepted_unseen_is_told(people: pl.DataFrame) -> None:
    spec = af.propose(people, accept=True)
    assert (spec.decisions, dict(spec.questions)) == ("accepted", {})
    assert af.propose(people).decisions is None


@pytest.mark.parametrize("accept", [False, True])
def test_init_writes_what_propose_proposes(people: pl.DataFrame, accept: bool, tmp_path: Path) -> None:
    people.write_parquet(tmp_path / "people.parquet")
    words = ["init", str(tmp_path / "people.parquet"), "--k", "7", *(["--accept"] if accept else [])]
    assert CliRunner().invoke(app, words).exit_code == 0
    written = (tmp_path / "spec.toml").read_text(encoding="utf-8")
    spec = af.propose(tmp_path / "people.parquet", k=7, accept=accept)
    # Beside the file, init names the data by its name alone and, for codes, the taxonomies that it wrote.
    same = [line for line in to_toml(spec).splitlines() if not line.startswith(("source", "# ", "decide"))]
    assert [line for line in written.splitlines() if not line.startswith(("source", "# ", "decide"))] == same
    expected = spec_tables(replace(af.parse_spec(settled(written)), folder=None))
    found = spec_tables(spec)
    assert {**found, "data": None} == {**expected, "data": None}


def test_a_proposal_is_written_with_its_reasons_and_read_back(people: pl.DataFrame, tmp_path: Path) -> None:
    spec = af.propose(people)
    file = af.write_spec(spec, tmp_path / "spec.toml")
    text = file.read_text(encoding="utf-8")
    assert spec.proposal is not None
    first = spec.proposal.columns[0].reason.split()[:4]
    assert " ".join(first) in text
    with pytest.raises(SpecError, match="decisions are open"):
        af.read_spec(file)
    again = af.parse_spec(settled(text))
    assert again == Spec(
        **{name: getattr(spec, name) for name in ("columns", "privacy", "workload", "output")}
        | {"data": replace(spec.data, source=None), "method": spec.method}
    )


def test_a_proposal_that_was_changed_is_written_as_it_is_now(people: pl.DataFrame) -> None:
    spec = af.propose(people)
    stricter = replace(spec, privacy=replace(spec.privacy, k=25))
    text = to_toml(stricter)
    assert "k = 25" in text
    with pytest.raises(SpecError) as refused:
        af.parse_spec(text)
    assert len(refused.value.faults) == len(spec.questions) + 1
    done = replace(stricter, questions={})
    assert "decide" not in to_toml(done)
    assert af.parse_spec(to_toml(done)).privacy.k == 25


def test_frames_of_any_kind_and_files_are_proposed_alike(people: pl.DataFrame, tmp_path: Path) -> None:
    people.write_parquet(tmp_path / "people.parquet")
    roles = [
        {name: column.role for name, column in af.propose(data).columns.items()}
        for data in (people, people.to_arrow(), tmp_path / "people.parquet", str(tmp_path / "people.parquet"))
    ]
    assert all(found == roles[0] for found in roles)
    small = pd.DataFrame({"age": [21, 22, 41, 42], "email": ["a@b.org", "c@d.org", "e@f.org", "g@h.org"]})
    assert af.propose(small).of_role("identifier") == ("email",)  # type: ignore[arg-type]


def test_no_value_of_a_record_is_in_a_proposal() -> None:
    marks = [f"zq{row}mark" for row in range(60)]
    spec = af.propose(pl.DataFrame({"name": marks, "age": [20 + row % 30 for row in range(60)]}))
    assert not any(mark in to_toml(spec) or mark in repr(replace(spec.data, source=None)) for mark in marks)


def test_a_spec_is_not_written_over_another_file(tmp_path: Path) -> None:
    spec = af.parse_spec('version = 1\n[columns.a]\nrole = "quasi-identifier"\n[privacy]\nk = 2\n')
    af.write_spec(spec, tmp_path / "spec.toml")
    with pytest.raises(RequestError, match="is already there"):
        af.write_spec(spec, tmp_path / "spec.toml")
    assert af.write_spec(spec, tmp_path / "spec.toml", replace=True).exists()
    assert af.parse_spec((tmp_path / "spec.toml").read_text(encoding="utf-8")) == spec
    assert not isinstance(spec, ProposedSpec)
