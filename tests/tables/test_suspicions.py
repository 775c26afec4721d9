# SPDX-License-Identifier: Apache-2.0
"""What is doubtful about values is told, and what is not doubtful is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.spec.write import to_toml
from anonfit.tables.profile_columns import missing_codes, suspicions_of

RNG = np.random.default_rng(3)
AGES = RNG.integers(18, 92, 400).tolist()


def told(**column: list[object]) -> str:
    frame = pl.DataFrame(column, strict=False)
    return " ".join(doubt.text for doubt in suspicions_of(frame, frame.columns))


@pytest.mark.parametrize("code", [-9, -99, 999, 9999])
def test_numbers_that_stand_apart_may_mean_missing(code: int) -> None:
    assert missing_codes(pl.Series("age", AGES + [code] * 12)) == (str(code),)
    assert missing_codes(pl.Series("age", AGES + [code] * 2)) == ()


@pytest.mark.parametrize(("values", "code"), [([0, 1], -9), ([1, 2, 3, 4], 99), ([1, 2], 999), ([0, 1, 2], -8)])
def test_answers_of_a_survey_have_codes_for_missing_and_are_names(values: list[int], code: int) -> None:
    answers = pl.Series("smoker", (values * 150)[:300] + [code] * 9)
    assert missing_codes(answers) == (str(code),)
    column = af.propose(pl.DataFrame({"age": AGES[:309], "answer": answers})).proposal.columns[1]
    assert column.type == "nominal"
    assert f"{code} may mean missing" in column.decision


def test_numbers_among_others_mean_what_they_say() -> None:
    assert missing_codes(pl.Series("trend", [-1, 0, 1] * 30)) == ()
    assert told(count=pl.Series([2**63 + 1, 2**63, 5] * 9, dtype=pl.UInt64)) == ""
    assert missing_codes(pl.Series("age", AGES)) == ()
    assert missing_codes(pl.Series("hours", [*range(60, 110)] * 10)) == ()  # 77, 88, 97, 98, 99 among their neighbours
    assert missing_codes(pl.Series("change", [*range(-40, 40)] * 10)) == ()
    assert missing_codes(pl.Series("pay", RNG.integers(0, 200_000, 3000))) == ()


def test_dates_of_several_formats_words_among_numbers_and_thousands_are_doubtful() -> None:
    assert "several formats" in told(born=["31.01.1990", "1990-02-01", "02/03/1990", "05.05.1991"] * 5)
    assert told(born=["31.01.1990", "01.02.1991", "02.03.1990"] * 5) == ""
    assert "numbers and 1 word" in told(age=[str(age) for age in range(20, 60)] + ["unknown"] * 9)
    assert "thousands signs" in told(pay=["1.234", "19.000", "850"])
    assert told(code=["A1", "B2", "C3"] * 5) == ""


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        (["a@b.org", "c@d.com"], "e-mail"),
        (["DE89370400440532013000", "GB29NWBK60161331926819"], "bank accounts"),
        (["756.1234.5678.97", "756.9217.0769.85"], "national identity"),
        (["+49 30 1234567", "0171 2345678"], "telephone"),
        (["RSSMRA85T10A562S", "BNCLRA90A41F205X"], "national identity"),
    ],
)
def test_what_leads_to_a_person_is_told(values: list[str], shape: str) -> None:
    assert shape in told(x=values * 6)


def test_coordinates_are_told() -> None:
    assert "coordinates" in told(latitude=[52.52, 48.1, 50.9])
    assert told(height=[1.52, 1.1, 1.9]) == ""


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    rows = [f"{age};{number % 2 + 1};{number % 3}" for number, age in enumerate(AGES + [-9] * 20)]
    path = tmp_path / "survey.csv"
    path.write_bytes(("Umfrage für Köln\n\nalter;geschlecht;kinder\n" + "\n".join(rows) + "\n").encode("cp1252"))
    return path


def test_a_proposal_asks_for_codes_and_writes_down_what_was_guessed(survey: Path) -> None:
    text = to_toml(af.propose(survey))
    assert 'encoding = "cp1252"  # found; check it' in text
    assert "header_row = 3  # found; check it" in text
    assert '# missing = ["-9"]  # if these values mean missing' in text
    assert "-9 may mean missing" in text
    columns = {column.name: column for column in af.propose(survey).proposal.columns}
    assert (columns["geschlecht"].type, columns["kinder"].type) == ("nominal", "continuous")
    assert "may be codes" in columns["geschlecht"].decision


def test_a_release_tells_its_owner_what_was_doubtful_and_nobody_else(survey: Path, tmp_path: Path) -> None:
    release = af.anonymize(survey, quasi_identifiers=["alter", "geschlecht"], k=5, default_role="insensitive")
    assert any("cp1252" in notice for notice in release.notices)
    assert any("column 'alter': -9 may mean missing" in notice for notice in release.notices)
    release.save(tmp_path / "release")
    public = [file for file in (tmp_path / "release").iterdir() if file.suffix in (".json", ".html")]
    assert all("may mean missing" not in file.read_text() for file in public)
    assert any("may mean missing" in file.read_text() for file in tmp_path.glob("*internal.json"))


def test_hierarchies_beside_the_data_are_offered_where_they_fit(tmp_path: Path) -> None:
    frame = pl.DataFrame({"sex": ["f", "m"] * 20, "country": ["FR", "DE"] * 20})
    frame.write_csv(tmp_path / "people.csv")
    (tmp_path / "people_hierarchy_sex.csv").write_text("f;*\nm;*\n")
    (tmp_path / "people_hierarchy_country.csv").write_text("FR;Europe;*\nIT;Europe;*\n")  # DE is not in it
    text = to_toml(af.propose(tmp_path / "people.csv"))
    assert '# taxonomy = "people_hierarchy_sex.csv"  # it lies beside the data' in text
    assert "people_hierarchy_country" not in text
