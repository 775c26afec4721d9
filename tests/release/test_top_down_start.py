# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement that begins with a recoding: kept as it is, refined further, refused where it does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from test_top_down import NAMES, SCHOOLS, people, released, smallest, tables

import anonfit as af
from anonfit.errors import AnonfitError, Infeasible, RequestError, SpecError
from anonfit.recoding.recoding import Recoding
from anonfit.spec.parse import parse_spec, spec_of
from anonfit.spec.write import to_toml
from strategies import tries


@cache
def coarse() -> str:
    return released(k=60).recoding.to_json()


def edited(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Recoding:
    """The coarse recoding, its columns by name and its parts changed."""
    found = json.loads(coarse())
    change({column["name"]: column for column in found["columns"]}, found["parts"])
    return Recoding.from_json(json.dumps(found))


def cuts(columns: dict[str, Any], parts: dict[str, Any], name: str, *places: Any) -> None:
    columns[name]["cuts"] = list(places)
    parts[name] = list(range(len(places) + 1))


def cuts_of(found: af.Release, name: str) -> list[Any]:
    (column,) = [one for one in json.loads(found.recoding.to_json())["columns"] if one["name"] == name]
    return list(column["cuts"])


def test_refining_goes_on_where_an_earlier_run_ended() -> None:
    first, found = released(k=60), released(k=10, start=Recoding.from_json(coarse()))
    assert found.refinements is not None
    assert found.refinements["steps"]
    assert smallest(found.data, NAMES) >= 10
    for name in NAMES:
        assert found.data[name].n_unique() >= first.data[name].n_unique()
    assert found.report["audit"]["passed"]


def test_a_recoding_that_cannot_be_refined_stays_as_it_is() -> None:
    first = released(k=10)
    again = released(k=10, start=first.recoding)
    assert again.refinements is not None
    assert again.refinements["steps"] == []
    assert again.recoding.to_json() == first.recoding.to_json()
    assert again.data.equals(first.data)


def test_a_cut_of_the_user_stays_where_it_was_put() -> None:
    found = released(k=10, start=edited(lambda columns, parts: cuts(columns, parts, "age", 30, 61.25)))
    assert {30, 61.25} < set(cuts_of(found, "age"))
    assert sorted(cuts_of(found, "age")) == cuts_of(found, "age")
    assert found.report["audit"]["passed"]
    assert not {label for label in found.data["age"].unique() if label in ("*", "≥ 30", "< 61.25")}


def test_an_interval_without_rows_is_kept_and_its_cut_is_no_cut_if_its_sides_are_one_part() -> None:
    def change(columns: dict[str, Any], parts: dict[str, Any]) -> None:
        cuts(columns, parts, "age", 10, 40, 50, 200)
        parts["age"] = [0, 1, 1, 2, 3]

    found = released(k=10, start=edited(change))
    kept = cuts_of(found, "age")
    assert {10, 50, 200} <= set(kept)
    assert 40 not in kept
    assert found.recoding.apply(people().head(1).with_columns(age=pl.lit(250)))["age"][0] == "≥ 200"


def test_a_node_of_a_taxonomy_and_a_disclosed_value_are_begun_with() -> None:
    def change(_: Any, parts: dict[str, Any]) -> None:
        parts["school"] = [0, 0, 1, 2]
        parts["town"] = [-1, -1, -1, -1, -1, 4]
        parts["age"] = [0, 0]

    found = released(k=10, start=edited(change), time_budget=1e-9)
    assert set(found.data["school"].unique()) == {"lower", "u1", "u2"}
    assert set(found.data["town"].unique()) == {"f", "{a, b, c, d, e}"}
    assert set(found.data["age"].unique()) == {"*"}


def test_intervals_of_the_user_are_a_taxonomy() -> None:
    ages = {
        "name": "any",
        "children": [
            {"name": "young", "children": [{"name": "[0, 30)"}, {"name": "[30, 45)"}]},
            {"name": "old", "children": [{"name": "[45, 60)"}, {"name": "[60, 120)"}]},
        ],
    }
    words: dict[str, Any] = {"taxonomies": {"school": SCHOOLS, "age": ages}}
    first = released(k=40, **words)
    assert set(first.data["age"].unique()) == {"young", "old"}
    apart = [["age"], ["town", "school"], ["hours"]]
    finer = released(k=10, start=first.recoding, requirements=apart, **words)
    assert set(finer.data["age"].unique()) & {"[0, 30)", "[45, 60)"}
    with pytest.raises(RequestError, match="'age' is of another kind there"):
        released(k=10, start=first.recoding)


# --- what cannot be begun with ------------------------------------------------------------------------------------


def test_a_start_that_is_too_fine_is_infeasible() -> None:
    fine = edited(lambda columns, parts: cuts(columns, parts, "hours", *range(2, 60)))
    with pytest.raises(Infeasible, match="fewer than k = 10 persons in a group of 'age', 'town', 'school', 'hours'"):
        released(start=fine)
    with pytest.raises(Infeasible, match="in a group of 'hours'"):
        released(start=fine, requirements=[["age", "town", "school"], {"columns": ["hours"], "k": 30}])
    assert released(start=fine, requirements=[["age", "town", "school"], {"columns": ["hours"], "k": 3}])


def test_a_start_that_a_model_forbids_is_infeasible() -> None:
    rare = people().with_columns(illness=pl.when(pl.col("age") < 45).then(pl.lit("flu")).otherwise("illness"))
    words: dict[str, Any] = {"sensitive": {"illness": {"model": "distinct-l", "l": 2}}}
    start = edited(lambda columns, parts: cuts(columns, parts, "age", 45))
    with pytest.raises(Infeasible, match="a model of a sensitive column forbids"):
        released(rare, start=start, **words)
    assert released(rare, start=edited(lambda columns, parts: cuts(columns, parts, "age", 60)), **words)


def test_a_value_that_too_few_have_cannot_be_disclosed_from_the_start() -> None:
    few = people().with_columns(town=pl.when(pl.col("town") == "b").then(pl.lit("a")).otherwise("town"))
    few = few.with_columns(town=pl.when(pl.int_range(pl.len()) < 4).then(pl.lit("b")).otherwise("town"))
    with pytest.raises(Infeasible, match="discloses 1 value"):
        released(few, start=Recoding.from_json(coarse()))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _, parts: parts.update(town=[0, 0, -1, -1, -1, -1]), "'town' has several values in one part"),
        (lambda _, parts: parts.update(school=[0, 1, 1, 0]), "'school' has a part there that is no node"),
        (
            lambda columns, parts: (columns["school"].update(taxonomy={"name": "l1"}), parts.update(school=[0])),
            "'school' has a taxonomy with other leaves",
        ),
        (
            lambda columns, parts: (
                columns["hours"].update(type="date", scale="date", cuts=["2020-01-01"], date_format=None),
                columns["hours"].pop("intervals"),
                parts.update(hours=[0, 1]),
            ),
            "'hours' has cuts of another kind",
        ),
        (lambda columns, _: columns["hours"].update(domain=[10, 20]), "'hours' has values outside the domain"),
        (lambda columns, parts: (columns["town"].update(name="place"), parts.update(place=parts.pop("town"))), ""),
    ],
)
def test_a_recoding_that_does_not_fit_is_refused(change: Any, told: str) -> None:
    found = json.loads(coarse())
    change({column["name"]: column for column in found["columns"]}, found["parts"])
    order = [column["name"] for column in found["columns"]]
    found["parts"] = {name: found["parts"][name] for name in order}
    with pytest.raises(RequestError, match=told or "other quasi-identifiers"):
        released(start=Recoding.from_json(json.dumps(found)))


def test_cuts_outside_a_declared_domain_are_refused() -> None:
    start = edited(lambda columns, parts: cuts(columns, parts, "age", 130))
    with pytest.raises(RequestError, match="'age' has cuts outside its domain"):
        released(start=start, domains={"age": [0, 120]})


def test_missing_values_that_the_start_does_not_know_are_refused_in_intervals_and_suppressed_in_names() -> None:
    gaps = pl.int_range(pl.len()) % 20 == 0
    frame = people().with_columns(town=pl.when(~gaps).then("town"))
    found = released(frame, start=Recoding.from_json(coarse()), time_budget=1e-9)
    assert set(found.data["town"].unique()) == {"a", "b", "c", "missing or {d, e, f}"}
    with pytest.raises(RequestError, match="'age' has missing values"):
        released(people().with_columns(age=pl.when(~gaps).then("age")), start=Recoding.from_json(coarse()))


def test_a_recoding_of_mondrian_is_refused() -> None:
    tree = af.anonymize(people().select("age", "outcome"), quasi_identifiers=["age"], k=5, targets=["outcome"])
    with pytest.raises(RequestError, match="divides columns together"):
        af.anonymize(
            people().select("age", "outcome"),
            quasi_identifiers=["age"],
            k=5,
            targets=["outcome"],
            algorithm="tdr",
            start=tree.recoding,
        )


def test_only_top_down_refinement_starts_from_a_recoding() -> None:
    with pytest.raises(SpecError, match=r"start is for algorithm = 'tdr' only"):
        released(algorithm="mondrian", start=Recoding.from_json(coarse()))
    with pytest.raises(SpecError, match=r"start must be the path"):
        released(start=3)
    with pytest.raises(RequestError, match="no such recoding"):
        released(start="nowhere.json")


# --- the same from files ------------------------------------------------------------------------------------------


def test_a_spec_names_the_file_and_the_release_does_not_tell_of_it(tmp_path: Path) -> None:
    (tmp_path / "edited.json").write_text(coarse())
    people().write_parquet(tmp_path / "people.parquet")
    columns: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in NAMES}
    columns["school"]["taxonomy"] = SCHOOLS
    columns |= {
        "illness": {"role": "sensitive", "diversity": "none", "reason": "made-up people"},
        "outcome": {"role": "target"},
    }
    spec = spec_of(
        {
            "version": 1,
            "data": {"source": "people.parquet"},
            "columns": columns,
            "privacy": {"k": 10},
            "method": {"algorithm": "tdr", "start": "edited.json"},
        },
        folder=tmp_path,
    )
    found = af.run(spec, tmp_path / "release")
    wanted = released(start=Recoding.from_json(coarse()))
    assert found.recoding.to_json() == wanted.recoding.to_json()
    for file in (tmp_path / "release").iterdir():
        assert b"edited.json" not in file.read_bytes()
    assert "edited.json" in (tmp_path / "release.internal.json").read_text()
    assert parse_spec(to_toml(spec)).method.start == "edited.json"


def test_a_recoding_in_a_spec_is_written_as_its_text() -> None:
    method = {"algorithm": "tdr", "start": Recoding.from_json(coarse())}
    columns = {"age": {"role": "quasi-identifier"}, "outcome": {"role": "target"}}
    spec = spec_of({"version": 1, "columns": columns, "privacy": {"k": 10}, "method": method})
    again = parse_spec(to_toml(spec))
    assert again.method.start.to_json() == coarse()
    damaged = to_toml(spec).replace("anonfit recoding", "recoding")
    with pytest.raises(SpecError, match=r"method.start: this is no recoding"):
        parse_spec(damaged)


@given(tables())
@tries(30)
def test_any_table_starts_from_what_a_higher_k_gave(drawn: tuple[pl.DataFrame, list[Any]]) -> None:
    frame, asked = drawn
    words: dict[str, Any] = {
        "quasi_identifiers": ["age", "town", "school"],
        "k": 2,
        "targets": ["outcome"],
        "taxonomies": {"school": SCHOOLS},
        "types": {"age": "continuous", "town": "nominal"},
        "algorithm": "tdr",
    }
    higher = [{**one, "k": one["k"] + 2} for one in asked]
    try:
        first = af.anonymize(frame, requirements=higher, **words)
    except AnonfitError:
        assume(False)
    found = af.anonymize(frame, requirements=asked, start=first.recoding, **words)
    for one in asked:
        assert smallest(found.data, one["columns"]) >= one["k"]
    # What was told apart stays so; names are more at a lower k, and those that are new begin suppressed.
    before, after = first.recoding.apply(frame), found.recoding.apply(frame)
    for name in ("age", "school"):
        pairs = set(zip(after[name].to_list(), before[name].to_list(), strict=True))
        assert len(pairs) == after[name].n_unique()
