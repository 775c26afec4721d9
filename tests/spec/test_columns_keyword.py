# SPDX-License-Identifier: Apache-2.0
"""`columns=` says of a column what the keywords of single settings say; both for one setting is an error."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import anonfit as af
from anonfit.errors import RequestError, SpecError
from anonfit.spec.keywords import spec_of_keywords

WORDS: dict[str, Any] = {"quasi_identifiers": ["age", "stage", "born", "town"], "insensitive": ["note"], "k": 2}
CITIES = {"name": "*", "children": [{"name": "a"}, {"name": "b"}]}
DECLARED: dict[str, Any] = {
    "age": af.Column(type="continuous", domain=[0, 120]),
    "stage": af.Column(type="ordinal", order=["I", "II"]),
    "born": af.Column(type="date", date_format="%d.%m.%Y"),
    "town": af.Column(taxonomy=CITIES, split="binary"),
    "note": af.Column(release=True),
}
FLAT: dict[str, Any] = {
    "types": {"age": "continuous", "stage": "ordinal", "born": "date"},
    "domains": {"age": [0, 120]},
    "orders": {"stage": ["I", "II"]},
    "date_formats": {"born": "%d.%m.%Y"},
    "taxonomies": {"town": CITIES},
    "splits": {"town": "binary"},
    "release": ["note"],
}


def test_columns_and_flat_keywords_make_equal_specs() -> None:
    assert spec_of_keywords("x.csv", WORDS | {"columns": DECLARED}) == spec_of_keywords("x.csv", WORDS | FLAT)


def test_a_column_is_a_plain_table_so_tables_serve_as_well() -> None:
    plain = {name: dict(column) for name, column in DECLARED.items()}
    assert spec_of_keywords("x.csv", WORDS | {"columns": plain}) == spec_of_keywords("x.csv", WORDS | FLAT)


def test_both_ways_mix_for_different_settings_and_columns() -> None:
    mixed = {"columns": {"age": af.Column(domain=[0, 120])}, "types": {"age": "continuous", "stage": "nominal"}}
    age = spec_of_keywords("x.csv", WORDS | mixed).columns["age"]
    assert (age.type, age.domain) == ("continuous", (0, 120))


@pytest.mark.parametrize("keyword", ["types", "domains", "orders", "date_formats", "taxonomies", "splits", "release"])
def test_a_setting_of_a_column_given_both_ways_is_an_error(keyword: str) -> None:
    with pytest.raises(RequestError, match=r"of column '\w+' is given twice, by columns and by .*; remove one"):
        spec_of_keywords("x.csv", WORDS | {"columns": DECLARED, keyword: FLAT[keyword]})


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"age": {"tpye": "date"}}, "'tpye' of 'age' is not known; did you mean 'type'"),
        ({"age": {"role": "sensitive"}}, "the role of 'age' is given by a keyword such as quasi_identifiers"),
        ({"zz": {"type": "date"}}, "columns names the column 'zz', which has no role"),
        ({"age": "continuous"}, "what is declared of 'age' must be such as af.Column"),
        (["age"], "columns maps names to what is declared of them"),
    ],
)
def test_what_columns_cannot_say_is_refused(columns: Any, fault: str) -> None:
    with pytest.raises(RequestError, match=fault):
        spec_of_keywords("x.csv", WORDS | {"columns": columns})


def test_faults_of_columns_are_told_as_those_of_a_file() -> None:
    with pytest.raises(SpecError, match=r"columns\.age\.type = 'number' is not known"):
        spec_of_keywords("x.csv", WORDS | {"columns": {"age": {"type": "number"}}})


def test_columns_reach_the_release_and_the_estimators() -> None:
    frame = pl.DataFrame({"age": [21, 22, 41, 42]})
    columns = {"age": af.Column(domain=[0, 120])}
    release = af.anonymize(frame, quasi_identifiers=["age"], k=2, columns=columns)
    assert release.data["age"].to_list() == ["[0, 30)", "[0, 30)", "[30, 120]", "[30, 120]"]
    found = af.Anonymizer(k=2, output="labels", columns=columns).fit_transform(frame)
    assert found["age"].to_list() == release.data["age"].to_list()
    tree = af.KAnonymousTreeClassifier(k=2, columns=columns).fit(frame, ["y", "y", "n", "n"]).tree_
    assert tree.tiling.columns[0].domain == (0, 120)
