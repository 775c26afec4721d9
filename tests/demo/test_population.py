# SPDX-License-Identifier: Apache-2.0
"""The hospital population: the same everywhere, inside its taxonomies, with real dependences."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from anonfit.demo.population import (
    FIRST_DAY,
    HOSPITAL_ROLES,
    LAST_DAY,
    OUTCOMES,
    hospital,
    hospital_taxonomies,
)
from anonfit.errors import RequestError

TAXONOMIES = hospital_taxonomies()


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return hospital(60_000, seed=7)


def nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for child in tree.get("children", ()):
        yield from nodes(child)


def leaves(tree: dict[str, Any]) -> set[str]:
    return {node["name"] for node in nodes(tree) if "children" not in node}


def share(people: pl.DataFrame, what: pl.Expr, *, among: pl.Expr) -> float:
    return float(people.filter(among).select(what.mean()).item())


def test_a_seed_gives_the_same_table_on_every_machine() -> None:
    text = hospital(500, seed=3).write_csv()
    assert (
        hashlib.sha256(text.encode()).hexdigest() == "2fc40fc1e5a2488bb24abb433869035119e917f26d75ff7b7ef86d37e58d131b"
    )


def test_another_seed_gives_other_people() -> None:
    assert not hospital(50, seed=1).equals(hospital(50, seed=2))


@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_a_longer_table_begins_with_the_same_rows(rows: int) -> None:
    assert hospital(rows, seed=5).equals(hospital(270_000, seed=5).head(rows))


def test_one_row_is_a_whole_table() -> None:
    assert hospital(1).shape == (1, len(HOSPITAL_ROLES))


def test_no_rows_is_a_wrong_request() -> None:
    with pytest.raises(RequestError, match="at least 1 row"):
        hospital(0)


def test_columns_and_types_are_those_promised(people: pl.DataFrame) -> None:
    assert people.columns == list(HOSPITAL_ROLES)
    assert people.schema["age"].is_integer()
    assert people.schema["length_of_stay"].is_integer()
    assert people.schema["admission"] == pl.Date
    assert people.schema["postcode"] == pl.String
    assert people.schema["cost"] == pl.Float64


def test_every_patient_has_an_own_id(people: pl.DataFrame) -> None:
    assert people["patient_id"].n_unique() == people.height
    assert people["patient_id"].str.contains(r"^P\d{7}$").all()


@pytest.mark.parametrize("column", sorted(TAXONOMIES))
def test_every_name_of_a_taxonomy_is_unique(column: str) -> None:
    names = [node["name"] for node in nodes(TAXONOMIES[column])]
    assert len(names) == len(set(names))
    assert names[0] == "*"
    assert all(node["children"] for node in nodes(TAXONOMIES[column]) if "children" in node)


@pytest.mark.parametrize("column", sorted(TAXONOMIES))
def test_every_value_is_a_leaf_of_its_taxonomy_and_every_leaf_is_drawn(column: str) -> None:
    drawn = set(hospital(300_000, seed=1)[column].drop_nulls().unique())
    assert drawn == leaves(TAXONOMIES[column])


def test_postcodes_lie_under_their_masked_prefix() -> None:
    for node in nodes(TAXONOMIES["postcode"]):
        prefix = node["name"].rstrip("*")
        assert all(leaf.startswith(prefix) for leaf in leaves(node))


def test_values_lie_in_their_domains(people: pl.DataFrame) -> None:
    assert people["age"].is_between(0, 100).all()
    assert people["admission"].is_between(FIRST_DAY, LAST_DAY).all()
    assert people["length_of_stay"].is_between(0, 120).all()
    assert (people["cost"] > 0).all()
    assert people["cost"].equals(people["cost"].round(2))
    assert set(people["outcome"]) == set(OUTCOMES)
    assert set(people["sex"]) == {"female", "male"}


def test_only_nationality_and_postcode_have_missing_values_about_one_percent(people: pl.DataFrame) -> None:
    missing = {name: people[name].null_count() / people.height for name in people.columns}
    for name in ("nationality", "postcode"):
        assert 0.007 < missing.pop(name) < 0.013
    assert not any(missing.values())


def test_impossible_combinations_are_absent() -> None:
    people = hospital(300_000, seed=2)
    female = pl.col("sex") == "female"
    born = pl.col("diagnosis").str.starts_with("O")
    newborn = pl.col("diagnosis").is_in(["P07", "Z38"])
    impossible = [
        female & pl.col("diagnosis").is_in(["N40", "C61"]),
        ~female & (born | (pl.col("diagnosis") == "D25")),
        born & ~pl.col("age").is_between(15, 50),
        newborn & (pl.col("age") > 0),
        pl.col("diagnosis").is_in(["M16", "I63", "H25"]) & (pl.col("age") < 18),
    ]
    assert people.filter(pl.any_horizontal(impossible)).is_empty()


def test_places_have_zipf_like_sizes(people: pl.DataFrame) -> None:
    sizes = people["postcode"].drop_nulls().value_counts(sort=True)["count"].to_list()
    assert 300 <= len(sizes) <= 450
    assert sizes[0] > 20 * sizes[-1]
    assert sum(sizes[: len(sizes) // 10]) > 0.25 * sum(sizes)


def test_nationality_depends_on_the_place(people: pl.DataFrame) -> None:
    home = pl.col("nationality") == "Germany"
    code = pl.col("postcode")
    assert (
        share(people, home, among=code.str.starts_with("100"))
        < share(people, home, among=code.str.starts_with("63")) - 0.1
    )
    polish = pl.col("nationality") == "Poland"
    assert share(people, polish, among=code.str.starts_with("0")) > 2 * share(
        people, polish, among=code.str.starts_with("8")
    )


def test_diagnosis_depends_on_age_and_sex(people: pl.DataFrame) -> None:
    heart = pl.col("diagnosis").str.starts_with("I")
    assert share(people, heart, among=pl.col("age") > 65) > 5 * share(people, heart, among=pl.col("age") < 40)
    hernia = pl.col("diagnosis") == "K40"
    male = pl.col("sex") == "male"
    assert share(people, hernia, among=male) > 4 * share(people, hernia, among=~male)
    birth = pl.col("diagnosis").str.starts_with("O")
    assert share(people, birth, among=~male & pl.col("age").is_between(20, 38)) > 0.4


def test_admissions_follow_week_and_season(people: pl.DataFrame) -> None:
    weekday = pl.col("admission").dt.weekday()
    saturday, tuesday = (people.select((weekday == day).mean()).item() for day in (6, 2))
    assert saturday < 0.75 * tuesday
    winter = pl.col("admission").dt.month().is_in([12, 1, 2])
    influenza = pl.col("diagnosis") == "J10"
    assert share(people, winter, among=influenza) > 1.4 * share(people, winter, among=~influenza)


def test_cost_grows_with_stay_and_is_right_skewed(people: pl.DataFrame) -> None:
    assert people.select(pl.corr("cost", "length_of_stay")).item() > 0.6
    assert share(people, pl.col("cost"), among=pl.lit(True)) > 1.2 * people.select(pl.median("cost")).item()
    old, young = (share(people, pl.col("cost"), among=ages) for ages in (pl.col("age") > 70, pl.col("age") < 40))
    assert old > 1.5 * young


def test_outcome_can_be_told_from_quasi_identifiers_much_better_than_by_the_majority(
    people: pl.DataFrame,
) -> None:
    village = ~pl.col("postcode").str.slice(2, 1).is_in(["0"])
    cells = people.select("outcome", pl.col("age") // 8, "sex", village.alias("village"))
    counts = cells.group_by("age", "sex", "village", "outcome").len()
    right = counts.group_by("age", "sex", "village").agg(pl.col("len").max())["len"].sum() / people.height
    majority = people["outcome"].value_counts(sort=True)["count"][0] / people.height
    assert 0.4 < majority < 0.6
    assert right > majority + 0.1
    assert set(cells["outcome"].unique()) == set(OUTCOMES)
