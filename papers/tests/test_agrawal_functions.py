# SPDX-License-Identifier: Apache-2.0
"""The ten functions: hand-made rows on both sides of every boundary, and the papers' words written out plainly."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest

from anonfit.errors import DataError, RequestError
from anonfit_papers.agrawal import agrawal, groups, score
from anonfit_papers.agrawal_functions import BandConstants, Constants, random_constants

PERSON = {
    "salary": 60_000.0,
    "commission": 0.0,
    "age": 30,
    "elevel": 2,
    "car": 1,
    "zipcode": 3,
    "hvalue": 0.0,
    "hyears": 5,
    "loan": 0.0,
}


def group(function: int, constants: Constants | None = None, **values: float) -> str:
    return str(groups({k: [v] for k, v in (PERSON | values).items()}, function, constants=constants or "fixed")[0])


def value(function: int, **values: float) -> float:
    return float(score({k: [v] for k, v in (PERSON | values).items()}, function)[0])


@pytest.mark.parametrize(("age", "expected"), [(20, "A"), (39, "A"), (40, "B"), (59, "B"), (60, "A"), (80, "A")])
def test_function_1_is_the_young_and_the_old(age: int, expected: str) -> None:
    assert group(1, age=age) == expected


BAND_AGES = {"young": (20, 39), "middle": (40, 59), "old": (60, 80)}
STEP = 0.01


def ends(low: float, high: float, step: float = STEP) -> list[tuple[float, str]]:
    """The numbers just outside, and just inside, a span whose ends belong to it."""
    return [(low - step, "B"), (low, "A"), (low + step, "A"), (high - step, "A"), (high, "A"), (high + step, "B")]


@pytest.mark.parametrize(
    ("band", "low", "high"), [("young", 50_000, 100_000), ("middle", 75_000, 125_000), ("old", 25_000, 75_000)]
)
def test_functions_2_and_6_hold_both_ends_of_each_span(band: str, low: int, high: int) -> None:
    for age in BAND_AGES[band]:
        for number, expected in ends(low, high):
            assert group(2, age=age, salary=number) == expected
            assert group(2, age=age, salary=number, commission=70_000) == expected
            assert group(6, age=age, salary=number) == expected
            # half of it as commission: exact, because halves of these numbers are
            assert group(6, age=age, salary=number / 2, commission=number / 2) == expected


@pytest.mark.parametrize(("band", "levels"), [("young", {0, 1}), ("middle", {1, 2, 3}), ("old", {2, 3, 4})])
def test_function_3_is_a_set_of_levels_in_each_band(band: str, levels: set[int]) -> None:
    for age in BAND_AGES[band]:
        assert {level for level in range(5) if group(3, age=age, elevel=level) == "A"} == levels


@pytest.mark.parametrize(
    ("band", "levels", "inside", "outside"),
    [
        ("young", {0, 1}, (25_000, 75_000), (50_000, 100_000)),
        ("middle", {1, 2, 3}, (50_000, 100_000), (75_000, 125_000)),
        ("old", {2, 3, 4}, (50_000, 100_000), (25_000, 75_000)),
    ],
)
def test_function_4_chooses_the_salary_by_the_level(
    band: str, levels: set[int], inside: tuple[int, int], outside: tuple[int, int]
) -> None:
    for age in BAND_AGES[band]:
        for level in range(5):
            for number, expected in ends(*(inside if level in levels else outside)):
                assert group(4, age=age, elevel=level, salary=number) == expected


@pytest.mark.parametrize(
    ("band", "salaries", "inside", "outside"),
    [
        ("young", (50_000, 100_000), (100_000, 300_000), (200_000, 400_000)),
        ("middle", (75_000, 125_000), (200_000, 400_000), (300_000, 500_000)),
        ("old", (25_000, 75_000), (300_000, 500_000), (100_000, 300_000)),
    ],
)
def test_function_5_chooses_the_loan_by_the_salary(
    band: str, salaries: tuple[int, int], inside: tuple[int, int], outside: tuple[int, int]
) -> None:
    for age in BAND_AGES[band]:
        for salary, side in ends(*salaries):
            for loan, expected in ends(*(inside if side == "A" else outside)):
                assert group(5, age=age, salary=salary, loan=loan) == expected


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (7, {"salary": 60_000, "loan": 100_000}, 0),
        (7, {"salary": 30_000, "commission": 30_000, "loan": 50_000}, 10_000),
        (7, {"salary": 30_000, "commission": 0, "loan": 500_000}, -100_000),
        (8, {"salary": 60_000, "elevel": 4}, 0),
        (8, {"salary": 45_000, "commission": 15_000, "elevel": 0}, 20_000),
        (9, {"salary": 60_000, "elevel": 4, "loan": 50_000}, 0),
        (9, {"salary": 45_000, "commission": 15_000, "elevel": 1, "loan": 100_000}, 5_000),
        (10, {"salary": 45_000, "elevel": 4, "hvalue": 100_000, "hyears": 20}, 0),
        (10, {"salary": 45_000, "elevel": 4, "hvalue": 100_000, "hyears": 21}, 2_000),
        (10, {"salary": 45_000, "elevel": 4, "hvalue": 100_000, "hyears": 30}, 20_000),
        (10, {"salary": 45_000, "elevel": 4, "hvalue": 900_000, "hyears": 19}, 0),
        (10, {"salary": 30_000, "commission": 15_000, "elevel": 2, "hvalue": 0, "hyears": 30}, 10_000),
    ],
)
def test_scores_are_those_counted_by_hand(function: int, values: dict[str, float], expected: float) -> None:
    assert value(function, **values) == expected
    assert group(function, **values) == ("A" if expected > 0 else "B")


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (7, {"loan": 100_000}),
        (8, {"elevel": 4}),
        (9, {"elevel": 4, "loan": 50_000}),
        (10, {"elevel": 4, "salary": 45_000}),
    ],
)
def test_a_score_of_nothing_is_group_b_and_a_cent_more_is_group_a(function: int, values: dict[str, float]) -> None:
    salary = {"salary": 60_000} | values
    assert group(function, **salary) == "B"
    assert group(function, **salary | {"salary": salary["salary"] + STEP}) == "A"
    assert group(function, **salary | {"salary": salary["salary"] - STEP}) == "B"


def plain_group(function: int, row: Mapping[str, float]) -> str:
    """The list of conditions, word for word."""
    age, sal, com, el, loan = (row[name] for name in ("age", "salary", "commission", "elevel", "loan"))
    young, middle = age < 40, 40 <= age < 60

    def salary(low: int, high: int, number: float = sal) -> bool:
        return low * 1000 <= number <= high * 1000

    def loans(low: int, high: int) -> bool:
        return low * 1000 <= loan <= high * 1000

    if function == 1:
        inside = age < 40 or age >= 60
    elif function in (2, 6):
        number = sal + com if function == 6 else sal
        spans = (50, 100) if young else (75, 125) if middle else (25, 75)
        inside = salary(*spans, number)
    elif function == 3:
        inside = el in ((0, 1) if young else (1, 2, 3) if middle else (2, 3, 4))
    elif function == 4:
        if young:
            inside = salary(25, 75) if el in (0, 1) else salary(50, 100)
        elif middle:
            inside = salary(50, 100) if el in (1, 2, 3) else salary(75, 125)
        else:
            inside = salary(50, 100) if el in (2, 3, 4) else salary(25, 75)
    elif function == 5:
        if young:
            inside = loans(100, 300) if salary(50, 100) else loans(200, 400)
        elif middle:
            inside = loans(200, 400) if salary(75, 125) else loans(300, 500)
        else:
            inside = loans(300, 500) if salary(25, 75) else loans(100, 300)
    else:
        inside = plain_score(function, row) > 0
    return "A" if inside else "B"


def plain_score(function: int, row: Mapping[str, float]) -> float:
    start = (row["salary"] + row["commission"]) * 2 / 3
    if function == 7:
        return start - row["loan"] / 5 - 20000
    if function == 8:
        return start - 5000 * row["elevel"] - 20000
    if function == 9:
        return start - 5000 * row["elevel"] - row["loan"] / 5 - 10000
    equity = row["hvalue"] * (row["hyears"] - 20) / 10 if row["hyears"] >= 20 else 0
    return start - 5000 * row["elevel"] + equity / 5 - 10000


@pytest.mark.parametrize("function", range(1, 11))
def test_every_row_of_a_table_is_in_the_group_of_the_plain_words(function: int) -> None:
    people = agrawal(3_000, function=function, seed=function)
    assert people["group"].to_list() == [plain_group(function, row) for row in people.rows(named=True)]
    assert people["group"].n_unique() == 2
    if function >= 7:
        assert np.allclose(score(people, function), [plain_score(function, row) for row in people.rows(named=True)])


@pytest.mark.parametrize("function", range(2, 7))
def test_random_constants_are_used_as_they_are_written(function: int) -> None:
    draw = random.Random(function)
    for seed in range(20):
        constants = random_constants(seed)
        bands = constants.bands[function]
        people = agrawal(300, function=function, seed=seed, constants=constants)
        first = {2: "salary", 3: "elevel", 4: "elevel", 5: "salary", 6: "income"}[function]
        second = {4: "salary", 5: "loan"}.get(function)
        for row in draw.sample(people.rows(named=True), 60):
            row["income"] = row["salary"] + row["commission"]
            band = (row["age"] >= bands.ages[0]) + (row["age"] >= bands.ages[1])
            low, high = bands.test[band]
            inside = low <= row[first] <= high
            if second:
                assert bands.passed
                assert bands.failed
                low, high = (bands.passed if inside else bands.failed)[band]
                inside = low <= row[second] <= high
            assert row["group"] == ("A" if inside else "B")


def test_constants_of_ones_own_move_the_boundaries_of_that_function_only() -> None:
    own = Constants({2: BandConstants((30, 30), ((0, 1), (0, 1), (70_000, 70_000)))})
    assert group(2, own, age=30, salary=70_000) == "A"
    assert group(2, own, age=29, salary=70_000) == "B"
    assert group(2, own, age=30, salary=70_000.5) == "B"
    assert group(6, own, age=30, salary=60_000) == group(6, age=30, salary=60_000) == "A"


def test_random_constants_are_of_their_ranges_in_order_and_spread_over_them() -> None:
    ranges = {2: (20_000, 150_000), 3: (0, 4), 4: (0, 4), 5: (20_000, 150_000), 6: (30_000, 150_000)}
    after = {4: (20_000, 150_000), 5: (0, 500_000)}
    drawn = [random_constants(seed).bands for seed in range(300)]
    for function, (low, high) in ranges.items():
        assert [bands[function].ages[0] <= bands[function].ages[1] for bands in drawn] == [True] * 300
        ages = [age for bands in drawn for age in bands[function].ages]
        assert (min(ages), max(ages)) == (20, 80)
        assert abs(np.mean(ages) - 50) < 3
        spans = [span for bands in drawn for span in bands[function].test]
        held(spans, low, high)
        if function in after:
            held([span for bands in drawn for span in bands[function].passed or ()], *after[function])
            held([span for bands in drawn for span in bands[function].failed or ()], *after[function])
        else:
            assert all(bands[function].passed is None and bands[function].failed is None for bands in drawn)


def held(spans: list[tuple[float, float]], low: float, high: float) -> None:
    """Both ends in the range and in order; the lower is a third up, the upper two thirds, as of two uniform draws."""
    assert len(spans) == 900
    assert all(low <= start <= end <= high for start, end in spans)
    starts, stops = np.array(spans).T
    width = high - low
    if width > 10:
        assert abs((starts.mean() - low) / width - 1 / 3) < 0.03
        assert abs((stops.mean() - low) / width - 2 / 3) < 0.03
    else:
        # two of five numbers: the smaller is 0 in 9 of 25 draws, the larger 4 in 9 of 25
        assert set(starts) | set(stops) == set(range(5))
        assert abs((starts == low).mean() - 9 / 25) < 0.06
        assert abs((stops == high).mean() - 9 / 25) < 0.06


def test_constants_are_the_same_for_a_seed_and_others_for_another() -> None:
    assert random_constants(4) == random_constants(4)
    assert random_constants(4) != random_constants(5)
    bands = random_constants(0).bands
    assert len({bands[2].ages, bands[3].ages, bands[4].ages, bands[5].ages, bands[6].ages}) > 1


def test_any_frame_can_be_labelled() -> None:
    people = agrawal(400, function=5, seed=2)
    expected = people["group"].to_list()
    assert groups(people.to_pandas(), 5).to_list() == expected
    assert groups(people.to_dict(as_series=False), 5).to_list() == expected
    words = people.with_columns(pl.col("elevel").cast(pl.String))
    assert groups(words, 9).to_list() == groups(people, 9).to_list()


def test_a_frame_needs_only_the_columns_a_function_looks_at() -> None:
    needed = {1: ["age"], 2: ["age", "salary"], 8: ["salary", "commission", "elevel"]}
    people = agrawal(100)
    for function, columns in needed.items():
        assert groups(people.select(columns), function).equals(groups(people, function))
        for column in columns:
            with pytest.raises(DataError, match=f"no column '{column}'"):
                groups(people.select(columns).drop(column), function)
    assert groups(people.clear(), 2).len() == 0


def test_missing_or_wordy_values_are_refused_without_being_shown() -> None:
    with pytest.raises(DataError, match="'age' has missing values"):
        groups(pl.DataFrame({"age": [30, None]}), 1)
    with pytest.raises(DataError, match="'age' holds values that are no numbers") as refused:
        groups(pl.DataFrame({"age": ["thirty"]}), 1)
    assert "thirty" not in str(refused.value)


@pytest.mark.parametrize("function", [0, 11, -2])
def test_an_unknown_function_is_refused(function: int) -> None:
    for call in (groups, score):
        with pytest.raises(RequestError, match="1 to 10"):
            call(PERSON, function)


@pytest.mark.parametrize("function", range(1, 7))
def test_functions_1_to_6_have_no_score(function: int) -> None:
    with pytest.raises(RequestError, match="7 to 10"):
        score(agrawal(5), function)


@pytest.mark.parametrize(
    ("bands", "words"),
    [
        ({7: BandConstants((1, 2), ((0, 1),) * 3)}, "only functions 2 to 6"),
        ({4: BandConstants((1, 2), ((0, 1),) * 3)}, "needs the spans passed and failed"),
        ({5: BandConstants((1, 2), ((0, 1),) * 3, passed=((0, 1),) * 3)}, "needs the spans passed and failed"),
        ({2: BandConstants((1, 2), ((0, 1),) * 3, ((0, 1),) * 3, ((0, 1),) * 3)}, "has no spans passed and failed"),
        ({2: BandConstants((2, 1), ((0, 1),) * 3)}, "the lower comes first"),
        ({3: BandConstants((1, 2), ((0, 1), (1, 0), (0, 1)))}, "the lower comes first"),
        ({2: BandConstants((1, 2), ((0, 1), (0, 1)))}, "three spans"),  # type: ignore[arg-type]
    ],
)
def test_constants_that_do_not_fit_are_refused(bands: dict[int, BandConstants], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        agrawal(5, constants=Constants(bands))


def test_random_constants_without_a_seed_are_refused() -> None:
    with pytest.raises(RequestError, match="random_constants"):
        groups(agrawal(5), 2, constants="random")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="'fixed', 'random' or Constants"):
        agrawal(5, constants="mixed")  # type: ignore[arg-type]
