# SPDX-License-Identifier: Apache-2.0
"""Profiles of columns and the roles proposed from them."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from anonfit.demo.population import HOSPITAL_ROLES, hospital
from anonfit.errors import DataError
from anonfit.tables.profile import profile, propose
from anonfit.tables.profile_columns import ColumnProfile, meaning_of, words_of
from anonfit.tables.profile_roles import ColumnProposal, Proposal


def one(name: str, values: list[Any] | pl.Series) -> ColumnProposal:
    """The proposal for a single column."""
    return propose(pl.DataFrame({name: values})).columns[0]


def measured(values: list[Any] | pl.Series) -> ColumnProfile:
    return profile(pl.DataFrame({"column": values}))[0]


def cycle(*values: object, rows: int = 300) -> list[Any]:
    return [values[row % len(values)] for row in range(rows)]


@pytest.fixture(scope="module")
def proposal() -> Proposal:
    return propose(hospital(20_000, seed=4))


# Profiles


def test_profile_counts_are_exact() -> None:
    found = measured(["a", "a", "b", "c", None])
    assert (found.rows, found.missing, found.distinct) == (5, 1, 3)
    assert found.distinct_share == pytest.approx(3 / 4)
    assert found.unique_share == pytest.approx(2 / 5)
    assert found.separation == pytest.approx(1 - 1 / 10)


def test_missing_is_a_value_for_separation_and_texts_for_missing_count_as_missing() -> None:
    found = measured(["a", "?", "NA", None, ""])
    assert found.missing == 4
    assert found.missing_texts == ("", "?", "NA")
    assert found.separation == pytest.approx(4 / 10)


def test_nan_is_missing() -> None:
    assert measured([1.0, float("nan"), None]).missing == 2


@pytest.mark.parametrize(
    ("values", "kind", "date_format"),
    [
        ([1, 2, 3], "continuous", None),
        ([1.5, None], "continuous", None),
        ([Decimal("1.50"), Decimal("2.25")], "continuous", None),
        (["1", "2.5", "?"], "continuous", None),
        (["007", "123"], "nominal", None),
        ([True, False], "nominal", None),
        (["x", "y"], "nominal", None),
        ([date(2020, 1, 1)], "date", None),
        (["2020-01-31"], "date", "%Y-%m-%d"),
        (["31.01.2020", ""], "date", "%d.%m.%Y"),
        (["31/01/2020"], "date", "%d/%m/%Y"),
        (["01/31/2020"], "date", "%m/%d/%Y"),
        (["20200131"], "date", "%Y%m%d"),
        (["2020-01-31T10:15:00"], "date", "%Y-%m-%dT%H:%M:%S"),
        (["31.02.2020"], "nominal", None),
        (["31.01.2020", "unknown"], "nominal", None),
    ],
)
def test_type_and_date_format_are_found(values: list[Any], kind: str, date_format: str | None) -> None:
    found = measured(values)
    assert (found.type, found.date_format) == (kind, date_format)


def test_an_ambiguous_date_format_is_not_settled_in_silence() -> None:
    found = one("visit", ["01/02/2020", "03/04/2021"])
    assert found.profile.date_format_alternative == "%m/%d/%Y"
    assert found.decision is not None
    assert "%m/%d/%Y" in found.decision


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("anna{}@example.org", "e-mail addresses"),
        ("+49 30 12345{}", "telephone numbers"),
        ("DE893704004405320130{:02d}", "bank accounts"),
        ("123-45-{:04d}", "social security numbers"),
        ("https://example.org/{}", "web addresses"),
        ("10.0.0.{}", "network addresses"),
        ("123e4567-e89b-12d3-a456-4266141740{:02d}", "random identifiers"),
    ],
)
def test_values_that_lead_to_a_person_are_identifiers_whatever_the_name(value: str, shape: str) -> None:
    found = one("info", [value.format(number) for number in range(10, 60)])
    assert found.profile.shape == shape
    assert found.role == "identifier"
    assert shape in found.reason


def test_a_profile_of_an_enum_lists_no_values() -> None:
    found = measured(pl.Series(["secret", "other"], dtype=pl.Enum(["secret", "other"])))
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([[1], [2], None]),
        pl.Series([{"a": 1}, {"a": 2}]),
        pl.Series([b"x", b"y"]),
    ],
)
def test_nested_values_are_left_out(values: pl.Series) -> None:
    assert one("payload", values).role == "identifier"


# Roles


def test_the_hospital_gets_sensible_roles(proposal: Proposal) -> None:
    # Nearly every cost is different: whoever knows one finds the row.
    assert {column.name: column.role for column in proposal.columns} == {**HOSPITAL_ROLES, "cost": "identifier"}
    types = {column.name: column.type for column in proposal.columns}
    assert types["age"] == types["cost"] == "continuous"
    assert types["postcode"] == types["nationality"] == types["diagnosis"] == "nominal"
    assert types["admission"] == "date"
    assert [column.name for column in proposal.columns if column.taxonomy == "mask"] == ["postcode"]


def test_the_hospital_read_as_text_gets_the_same_roles_and_types(proposal: Proposal) -> None:
    text = propose(hospital(20_000, seed=4).cast(pl.String))
    assert [(c.name, c.role, c.type) for c in text.columns] == [(c.name, c.role, c.type) for c in proposal.columns]
    assert text.columns[5].date_format == "%Y-%m-%d"


def test_the_reason_for_a_key_says_that_every_value_differs() -> None:
    found = one("reference", [f"R{number}" for number in range(100)])
    assert found.role == "identifier"
    assert found.reason == "Every value is different (100.0 % distinct), so it identifies the person directly."


def test_uniqueness_of_the_combination_is_counted(proposal: Proposal) -> None:
    links = [column.name for column in proposal.columns if column.role == "quasi-identifier"]
    sizes = hospital(20_000, seed=4).group_by(links).len()["len"]
    assert proposal.unique_rows == int((sizes == 1).sum())
    assert proposal.rows_below_k == sizes.filter(sizes < 10).sum()
    assert proposal.strongest == "admission"
    assert any(f"{proposal.unique_rows:,} of 20,000 rows" in note for note in proposal.notes)


def test_the_strongest_column_is_the_one_uniqueness_rests_on() -> None:
    frame = pl.DataFrame({"sex": cycle("f", "m"), "town": cycle("a", "b", "c"), "age": list(range(300))})
    found = propose(frame)
    assert found.strongest == "age"
    assert found.unique_rows == 300
    assert "without it 0 rows (0.0 %) would be unique" in found.notes[-1]


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("Vorname", cycle(*"abcdefghijklmnopqrstuvwxyz"), "identifier"),
        ("name", [f"n{number % 90}" for number in range(300)], "identifier"),
        ("Patient Name", [f"n{number % 90}" for number in range(300)], "identifier"),
        ("drug_name", cycle("a", "b"), "sensitive"),
        ("Geburtsdatum", [date(1950, 1, 1) + timedelta(n) for n in range(300)], "quasi-identifier"),
        ("fecha_nacimiento", cycle("01.02.1980", "13.02.1990"), "quasi-identifier"),
        ("sexe", cycle(1, 2), "quasi-identifier"),
        ("PLZ", cycle(10115, 10117, 10119), "quasi-identifier"),
        ("code postal", cycle("75001", "75002"), "quasi-identifier"),
        ("Staatsangehörigkeit", cycle("DE", "FR"), "quasi-identifier"),
        ("race", cycle("a", "b"), "quasi-identifier"),
        ("ICD10", cycle("I10", "J18"), "sensitive"),
        ("Hauptdiagnose", cycle("I10", "J18"), "sensitive"),
        ("diagnosis_date", cycle("2020-01-31", "2021-01-31"), "quasi-identifier"),
        ("age_at_diagnosis", cycle(50, 60), "quasi-identifier"),
        ("Einkommen", [1000.5 + number for number in range(300)], "identifier"),
        ("Einkommen", cycle(*(1000.5 + number for number in range(150))), "sensitive"),
        ("salaire", list(range(300)), "identifier"),
        ("salaire", cycle(*range(150)), "sensitive"),
        ("religion", cycle("a", "b"), "sensitive"),
        ("target", cycle(0, 1), "target"),
        ("fnlwgt", [7 * (number // 2) for number in range(300)], "sample-weight"),
        ("fnlwgt", [7 * number for number in range(300)], "identifier"),
        ("survey weight", cycle(1.5, 2.5), "sample-weight"),
        ("weight", cycle(60, 70.5), "quasi-identifier"),
        ("n_persons", cycle(1, 2, 3), "count"),
        ("count", cycle(1, 2, 3), "quasi-identifier"),
        ("phone_type", cycle("home", "work"), "quasi-identifier"),
        ("ratio", [number / 7 for number in range(300)], "quasi-identifier"),
        ("ratio", [str(number / 7) for number in range(300)], "quasi-identifier"),
        ("flag", cycle("x", "y"), "quasi-identifier"),
        ("study", cycle("x"), "quasi-identifier"),
        ("ward_id", cycle(1, 2, 3), "quasi-identifier"),
        ("row", list(range(300)), "identifier"),
        ("id", [None, *range(299)], "identifier"),
    ],
)
def test_names_types_and_statistics_give_the_role(name: str, values: list[Any], role: str) -> None:
    found = one(name, pl.Series(values, strict=False))
    assert found.role == role, found.reason


def test_a_person_with_several_rows_makes_an_entity_and_further_numbers_are_left_out() -> None:
    frame = pl.DataFrame(
        {
            "patient_id": [f"P{number % 100}" for number in range(300)],
            "mrn": [number % 120 for number in range(300)],
            "age": [number % 90 for number in range(300)],
        }
    )
    roles = {column.name: column.role for column in propose(frame).columns}
    assert roles == {"patient_id": "entity", "mrn": "identifier", "age": "quasi-identifier"}


def test_long_free_text_is_left_out() -> None:
    words = ("the", "patient", "came", "with", "fever", "and", "left")
    texts = [" ".join(words[(row * 3 + place) % 7] for place in range(9)) + f" {row}" for row in range(300)]
    found = one("remarks", texts)
    assert found.role == "identifier"
    assert "free text" in found.reason


def test_numbers_that_nearly_all_differ_are_a_link_with_something_to_decide() -> None:
    found = one("ratio", [number / 7 for number in range(300)])
    assert found.decision is not None
    assert "nearly all differ" in found.decision


def test_whole_numbers_that_name_categories_are_nominal() -> None:
    assert one("sex", cycle(1, 2)).type == "nominal"
    assert one("readmitted", cycle(0, 1)).type == "nominal"
    postal = one("zip", list(range(10_000, 10_100)))
    assert (postal.type, postal.taxonomy) == ("nominal", "mask")
    assert postal.decision is not None
    assert "leading zeros" in postal.decision


def test_steps_of_a_scale_are_pointed_out() -> None:
    found = one("severity", cycle("low", "medium", "high"))
    assert found.type == "nominal"
    assert found.decision is not None
    assert "ordinal" in found.decision


# Odd tables


@pytest.mark.parametrize("values", [[None, None], pl.Series([None, None], dtype=pl.String), ["?", ""]])
def test_a_column_without_values_is_left_out(values: list[Any] | pl.Series) -> None:
    assert one("age", values).role == "identifier"


def test_one_row_is_judged_by_names_alone() -> None:
    found = propose(hospital(1))
    assert {column.name: column.role for column in found.columns} == dict(HOSPITAL_ROLES)
    assert any("fewer than k = 10" in note for note in found.notes)


def test_a_table_without_quasi_identifiers_says_so() -> None:
    found = propose(pl.DataFrame({"email": ["a@b.de", "c@d.de"]}))
    assert found.strongest is None
    assert found.unique_rows == 0
    assert any("No quasi-identifier" in note for note in found.notes)


@pytest.mark.parametrize("frame", [pl.DataFrame(), pl.DataFrame({"age": []})])
def test_a_table_without_data_is_a_wrong_request(frame: pl.DataFrame) -> None:
    with pytest.raises(DataError, match="roles are proposed from data"):
        propose(frame)


def test_the_frame_is_not_changed() -> None:
    frame = hospital(500)
    before = frame.clone()
    propose(frame)
    assert frame.equals(before)


def test_the_proposal_is_the_same_every_time() -> None:
    frame = hospital(3000, seed=9)
    assert propose(frame) == propose(frame)


def test_names_are_read_in_any_spelling() -> None:
    assert words_of("GeburtsDatum_2") == ("geburts", "datum")
    assert words_of("ICDCode") == ("icd", "code")
    assert words_of("Größe (cm)") == ("grosse", "cm")
    assert meaning_of("") is None
    assert meaning_of("列") is None
