# SPDX-License-Identifier: Apache-2.0
"""The spec that `anonfit init` writes: always TOML, with every reason and no value of a record."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonfit.demo.population import HOSPITAL_ROLES, hospital
from anonfit.errors import DataError
from anonfit.tables.profile import proposal_toml, propose
from anonfit.tables.profile_roles import Proposal

ROLES = {
    "identifier",
    "quasi-identifier",
    "sensitive",
    "target",
    "entity",
    "count",
    "sample-weight",
    "insensitive",
}


def cycle(*values: object, rows: int = 300) -> list[Any]:
    return [values[row % len(values)] for row in range(rows)]


def spec_of(proposal: Proposal, **taxonomies: str) -> dict[str, Any]:
    return tomllib.loads(proposal_toml(proposal, source="data.csv", taxonomies=taxonomies))


@pytest.fixture(scope="module")
def proposal() -> Proposal:
    return propose(hospital(20_000, seed=4))


def test_the_spec_of_the_hospital_has_a_reason_above_each_column(proposal: Proposal) -> None:
    text = proposal_toml(proposal, source="patients.csv", taxonomies={"postcode": "postcode.csv"})
    spec = tomllib.loads(text)
    assert spec["version"] == 1
    assert spec["privacy"]["k"] == 10
    assert spec["data"]["source"] == "patients.csv"
    assert list(spec["columns"]) == list(HOSPITAL_ROLES)
    assert "taxonomy" not in spec["columns"]["postcode"]  # it is offered, and used only when a person has looked at it
    unwrapped = re.sub(r"\n# ", " ", text)
    for column in proposal.columns:
        assert column.reason in unwrapped
        assert text.split(f"[columns.{column.name}]")[0].splitlines()[-1].startswith("# ")
    assert max(map(len, text.splitlines())) <= 110


def test_no_value_of_a_record_is_in_the_spec() -> None:
    frame = pl.DataFrame(
        {
            "age": [*range(20, 319), 98765],
            "town": [*cycle("Atlantis", "Utopia", rows=299), "Xanadu"],
            "visit": [*cycle("01.02.1977", rows=299), "03.04.1981"],
            "income": [1234.56 + row for row in range(300)],
            "diagnosis": pl.Series(cycle("Zorgitis", "Plague"), dtype=pl.Enum(["Zorgitis", "Plague"])),
        }
    )
    text = proposal_toml(propose(frame), source="data.csv", taxonomies={})
    for planted in ("98765", "Atlantis", "Xanadu", "1977", "1981", "1234", "1533", "Zorgitis", "Plague"):
        assert planted not in text


def test_a_raw_column_that_nearly_always_differs_is_left_out_until_somebody_decides() -> None:
    found = propose(pl.DataFrame({"cost": [number + 0.5 for number in range(300)], "age": cycle(30, 40)}))
    column = spec_of(found)["columns"]["cost"]
    assert column["role"] == "identifier"
    assert 'role = "sensitive" and release = true' in column["decide"]


def test_missing_texts_found_in_the_data_are_declared() -> None:
    spec = spec_of(propose(pl.DataFrame({"age": ["30", "N/A"]})))
    assert spec["data"]["missing"] == ["", "?", "NA", "N/A"]


def test_a_taxonomy_for_an_unknown_column_is_a_wrong_request(proposal: Proposal) -> None:
    with pytest.raises(DataError, match="zip"):
        proposal_toml(proposal, source="x.csv", taxonomies={"zip": "zip.csv"})


ODD_NAMES = [
    "age",
    "Age",
    "age ",
    "a.b",
    'say "hi"',
    "back\\slash",
    "größe",
    "",
    "new\nline",
    "#hash",
    "[x]",
    "\x7f\x00\t",
]


def test_odd_and_similar_names_stay_apart() -> None:
    frame = pl.DataFrame({name: cycle(1, 2, 3) for name in ODD_NAMES})
    assert list(spec_of(propose(frame))["columns"]) == ODD_NAMES


VALUES = st.one_of(
    st.lists(st.integers(-5, 5) | st.none(), min_size=6, max_size=6),
    st.lists(st.floats(width=32), min_size=6, max_size=6),
    st.lists(st.text(max_size=8) | st.none(), min_size=6, max_size=6),
    st.lists(st.dates(), min_size=6, max_size=6),
    st.lists(st.booleans() | st.none(), min_size=6, max_size=6),
)
UTF8 = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(UTF8, VALUES, min_size=1, max_size=5), UTF8)
def test_any_table_gives_a_spec_that_parses_to_its_columns(table: dict[str, list[Any]], source: str) -> None:
    frame = pl.DataFrame(table)
    found = propose(frame)
    spec = tomllib.loads(proposal_toml(found, source=source, taxonomies={}))
    assert list(spec["columns"]) == list(table)
    assert spec["data"]["source"] == source
    assert {column["role"] for column in spec["columns"].values()} <= ROLES - {"insensitive"}
    assert all(column.reason.endswith(".") for column in found.columns)
    assert 0 <= found.unique_rows <= frame.height
