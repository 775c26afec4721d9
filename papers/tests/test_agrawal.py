# SPDX-License-Identifier: Apache-2.0
"""The Agrawal people: the same everywhere, with the distributions of the papers."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
import pytest

from anonfit.errors import RequestError
from anonfit.tables.taxonomy import Taxonomy
from anonfit_papers import agrawal as module
from anonfit_papers.agrawal import AGRAWAL_COLUMNS, agrawal, groups, taxonomies
from anonfit_papers.agrawal_functions import random_constants

MANY = 200_000


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return agrawal(MANY, seed=11)


def test_a_seed_gives_the_same_table_on_every_machine() -> None:
    text = agrawal(500, functions=range(1, 11), seed=3, constants="random").write_csv()
    assert (
        hashlib.sha256(text.encode()).hexdigest() == "aa637c29a1b02b19c22757c35677c2fb16efd7f77e5103606f7e2d9d15012e86"
    )


def test_another_seed_gives_other_people() -> None:
    assert not agrawal(50, seed=1).equals(agrawal(50, seed=2))


@pytest.mark.parametrize("rows", [1, 2, 1000, 131_072, 131_073])
def test_a_longer_table_begins_with_the_same_rows(rows: int) -> None:
    assert agrawal(rows, seed=5).equals(agrawal(140_000, seed=5).head(rows))


@pytest.mark.parametrize("batch", [1, 7, 100, 1000])
def test_rows_do_not_depend_on_how_many_are_made_at_once(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = agrawal(500, functions=(2, 10), seed=9, constants="random")
    labels = groups(expected, 5)
    monkeypatch.setattr(module, "_BATCH", batch)
    assert agrawal(500, functions=(2, 10), seed=9, constants="random").equals(expected)
    assert groups(expected, 5).equals(labels)


def test_people_are_the_same_whatever_is_asked_of_them() -> None:
    plain = agrawal(200, seed=4).drop("group")
    assert agrawal(200, seed=4, functions=(1, 3), constants="random").select(AGRAWAL_COLUMNS).equals(plain)
    moa = agrawal(200, seed=4, hvalue="moa").drop("group")
    assert moa.drop("hvalue").equals(plain.drop("hvalue"))


def test_columns_and_types_are_those_promised(people: pl.DataFrame) -> None:
    assert people.columns == [*AGRAWAL_COLUMNS, "group"]
    for name in ("salary", "commission", "hvalue", "loan"):
        assert people.schema[name] == pl.Float64
    for name in ("age", "elevel", "car", "zipcode", "hyears"):
        assert people.schema[name].is_integer()
    assert people["group"].cast(pl.String).unique().sort().to_list() == ["A", "B"]
    assert people.null_count().row(0) == (0,) * 10


@pytest.mark.parametrize(
    ("column", "low", "high"), [("age", 20, 80), ("elevel", 0, 4), ("car", 1, 20), ("zipcode", 0, 8), ("hyears", 1, 30)]
)
def test_whole_numbers_are_uniform(people: pl.DataFrame, column: str, low: int, high: int) -> None:
    counts = people[column].value_counts().sort(column)
    assert counts[column].to_list() == list(range(low, high + 1))
    expected = MANY / (high - low + 1)
    # chi-squared: mean = freedom, variance = 2 * freedom; five standard deviations above
    freedom = high - low
    assert ((counts["count"] - expected) ** 2 / expected).sum() < freedom + 5 * (2 * freedom) ** 0.5


def uniform(numbers: np.ndarray, low: float, high: float) -> None:
    """Kolmogorov's distance from the uniform distribution is as small as chance makes it."""
    assert numbers.min() >= low
    assert numbers.max() <= high
    steps = np.arange(1, len(numbers) + 1) / len(numbers)
    assert np.abs(steps - (np.sort(numbers) - low) / (high - low)).max() < 2 / len(numbers) ** 0.5


def test_real_numbers_are_uniform(people: pl.DataFrame) -> None:
    uniform(people["salary"].to_numpy(), 20_000, 150_000)
    uniform(people["loan"].to_numpy(), 0, 500_000)
    uniform(people.filter(pl.col("salary") < 75_000)["commission"].to_numpy(), 10_000, 75_000)


def test_only_those_who_earn_less_than_75_000_have_a_commission(people: pl.DataFrame) -> None:
    high = pl.col("salary") >= 75_000
    assert people.filter(high)["commission"].unique().to_list() == [0.0]
    assert (people.filter(~high)["commission"] >= 10_000).all()


@pytest.mark.parametrize(("formula", "factor"), [("kdd", pl.col("zipcode")), ("moa", 9 - pl.col("zipcode"))])
def test_a_house_is_worth_its_area(formula: str, factor: pl.Expr) -> None:
    people = agrawal(MANY, seed=1, hvalue=formula)  # type: ignore[arg-type]
    shares = people.select(share=pl.col("hvalue") / (factor * 100_000), factor=factor).filter(pl.col("factor") > 0)
    uniform(shares["share"].to_numpy(), 0.5, 1.5)
    if formula == "kdd":
        assert people.filter(pl.col("zipcode") == 0)["hvalue"].unique().to_list() == [0.0]


def test_columns_are_independent_where_no_formula_joins_them(people: pl.DataFrame) -> None:
    free = people.select("salary", "age", "elevel", "car", "zipcode", "hyears", "loan")
    matrix = np.corrcoef(free.to_numpy().T.astype(np.float64))
    assert np.abs(matrix - np.eye(len(matrix))).max() < 5 / MANY**0.5


@pytest.mark.parametrize(
    ("function", "share"),
    [
        # shares counted by hand: 41 of 61 ages; every span of function 2 is 50,000 of 130,000 wide
        (1, 41 / 61),
        (2, 50 / 130),
        (3, (20 * 2 + 20 * 3 + 21 * 3) / (61 * 5)),
        (4, 50 / 130),
        (5, 2 / 5),
    ],
)
def test_the_share_of_group_a_is_that_of_the_areas(function: int, share: float) -> None:
    people = agrawal(MANY, function=function, seed=8)
    assert abs((people["group"] == "A").mean() - share) < 5 * (share * (1 - share) / MANY) ** 0.5  # type: ignore[operator]


def test_several_functions_have_a_column_each() -> None:
    several = agrawal(300, functions=(7, 2, 4), seed=6)
    assert several.columns == [*AGRAWAL_COLUMNS, "group_7", "group_2", "group_4"]
    for function in (2, 4, 7):
        assert several[f"group_{function}"].equals(agrawal(300, function=function, seed=6)["group"])


def test_function_2_is_the_default() -> None:
    assert agrawal(100).equals(agrawal(100, function=2))
    assert not agrawal(100).equals(agrawal(100, function=3))


def test_random_constants_of_the_seed_are_those_drawn_alone() -> None:
    people = agrawal(500, function=4, seed=7, constants="random")
    assert people.equals(agrawal(500, function=4, seed=7, constants=random_constants(7)))
    assert not people.equals(agrawal(500, function=4, seed=7))


def test_wrong_requests_are_refused() -> None:
    with pytest.raises(RequestError, match="at least 1 row"):
        agrawal(0)
    with pytest.raises(RequestError, match="1 to 10"):
        agrawal(5, function=11)
    with pytest.raises(RequestError, match="1 to 10"):
        agrawal(5, functions=(2, 0))
    with pytest.raises(RequestError, match="one function or several"):
        agrawal(5, function=2, functions=(3,))
    with pytest.raises(RequestError, match="twice"):
        agrawal(5, functions=(3, 3))
    with pytest.raises(RequestError, match="hvalue is 'mao': did you mean 'moa'"):
        agrawal(5, hvalue="mao")  # type: ignore[arg-type]


def test_taxonomies_hold_every_value_once() -> None:
    trees = {column: Taxonomy.from_tree(tree, column=column) for column, tree in taxonomies().items()}
    assert trees["elevel"].leaves == tuple(map(str, range(5)))
    assert trees["car"].leaves == tuple(map(str, range(1, 21)))
    assert trees["elevel"].names == ("*", "0-1", "0", "1", "2-4", "2", "3", "4")
    assert [name for name in trees["car"].names if "-" in name] == ["1-5", "6-10", "11-15", "16-20"]
