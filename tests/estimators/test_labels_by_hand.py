# SPDX-License-Identifier: Apache-2.0
"""Labels of every kind, and the features that they are by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit import RegionEncoder, Taxonomy
from anonfit.errors import DataError, RequestError, TaxonomyError
from anonfit.estimators import reading

DAY = (date(2024, 1, 1) - date(1970, 1, 1)).days


def encoded(labels: Sequence[Any], encoding: str = "ends", **told: Any) -> list[list[float]]:
    """The features of a column `c` with these labels."""
    found: list[list[float]] = RegionEncoder(encoding, **told).fit_transform(pl.DataFrame({"c": labels})).tolist()
    return found


def names(labels: Sequence[Any], encoding: str = "ends", **told: Any) -> list[str]:
    found: list[str] = RegionEncoder(encoding, **told).fit(pl.DataFrame({"c": labels})).get_feature_names_out().tolist()
    return found


# --- numbers ----------------------------------------------------------------------------------------------------


def test_numbers_between_cuts() -> None:
    labels = ["< 25", "[25, 30)", "[30, 60)", "≥ 60", "[25, 60)", "*"]
    # Open sides are as wide as the interval beside them: 5 below 25, 30 above 60.
    assert encoded(labels) == [[20, 25], [25, 30], [30, 60], [60, 90], [25, 60], [20, 90]]
    assert encoded(labels, "expected") == [[22.5], [27.5], [45], [75], [42.5], [55]]
    assert names(labels) == ["c_lower", "c_upper"]
    assert names(labels, "expected") == ["c"]


@pytest.mark.parametrize(
    "labels", [["< 25", "missing or [25, 30)", "missing", "≥ 30"], ["a", "{a, b}", "missing or c"]]
)
def test_both_are_the_expected_values_and_the_ends(labels: list[str]) -> None:
    expected, ends, both = (np.array(encoded(labels, encoding)) for encoding in ("expected", "ends", "both"))
    assert both.tolist() == np.hstack([expected[:, :-1], ends[:, :2], expected[:, -1:]]).tolist()
    assert names(labels, "both") == [*names(labels, "expected")[:-1], *names(labels)]


@pytest.mark.parametrize(
    ("cut", "below", "above"), [("30", 0, 60), ("-5", -10, 0), ("0", -1, 1), ("0.25", 0, 0.5), ("1e+20", 0, 2e20)]
)
def test_around_a_single_cut_sides_reach_as_far_as_it_is_from_zero(cut: str, below: float, above: float) -> None:
    assert encoded([f"< {cut}", f"≥ {cut}"]) == [[below, float(cut)], [float(cut), above]]


def test_sides_too_far_for_a_number_end_at_the_last_one() -> None:
    largest = np.finfo(np.float64).max
    assert encoded(["< -1e+308", "≥ 1e+308"]) == [[-largest, -1e308], [1e308, largest]]
    assert encoded(["*", "< -1e+308", "≥ 1e+308"], "expected")[0] == [0]


def test_a_closed_interval_shows_a_declared_domain() -> None:
    assert encoded(["[0, 25)", "[25, 120]", "*"]) == [[0, 25], [25, 120], [0, 120]]
    assert encoded(["[0, 120)", "120", "*"]) == [[0, 120], [120, 120], [0, 120]]
    assert encoded(["[0, 120)", "120"], "expected") == [[60], [120]]


def test_missing_numbers_have_a_feature() -> None:
    labels = ["missing", "missing or < 25", "[25, 30)", "missing or ≥ 25", "not missing", "*", None]
    assert names(labels) == ["c_lower", "c_upper", "c_missing"]
    assert encoded(labels) == [
        [20, 35, 1],
        [20, 25, 0.5],
        [25, 30, 0],
        [25, 35, 0.5],
        [20, 35, 0],
        [20, 35, 0.5],
        [20, 35, 1],
    ]
    assert names(labels, "expected") == ["c", "c_missing"]
    assert encoded(labels, "expected") == [
        [27.5, 1],
        [22.5, 0.5],
        [27.5, 0],
        [30, 0.5],
        [27.5, 0],
        [27.5, 0.5],
        [27.5, 1],
    ]


def test_a_label_that_leaves_missing_out_shows_that_values_are_missing() -> None:
    assert names(["not missing", "*", "< 5"]) == ["c_lower", "c_upper", "c_missing"]
    assert names(["*", "< 5"]) == ["c_lower", "c_upper"]


def test_a_part_beyond_the_closed_end_has_no_width() -> None:
    encoder = RegionEncoder().fit(pl.DataFrame({"c": ["< 25", "[25, 30)", "≥ 30"]}))
    assert encoder.transform(pl.DataFrame({"c": ["< 10", "≥ 100"]})).tolist() == [[10, 10], [100, 100]]


# --- dates and times --------------------------------------------------------------------------------------------


def test_dates_are_days() -> None:
    labels = ["< 2024-01-01", "[2024-01-01, 2024-01-11)", "≥ 2024-01-11", "2024-01-05"]
    assert encoded(labels[:3]) == [[DAY - 10, DAY], [DAY, DAY + 10], [DAY + 10, DAY + 20]]
    assert encoded(labels[:3], "expected") == [[DAY - 5], [DAY + 5], [DAY + 15]]
    # A single day closes the column at its outermost dates.
    assert encoded(labels)[3] == [DAY + 4, DAY + 4]


def test_around_a_single_date_sides_reach_a_year() -> None:
    assert encoded(["< 2024-01-01", "≥ 2024-01-01"]) == [[DAY - 365, DAY], [DAY, DAY + 365]]


def test_times_are_days_and_parts_of_days() -> None:
    labels = ["< 2024-01-01T06:00:00", "[2024-01-01T06:00:00, 2024-01-01T12:00:00)", "≥ 2024-01-01T12:00:00"]
    assert encoded(labels) == [[DAY, DAY + 0.25], [DAY + 0.25, DAY + 0.5], [DAY + 0.5, DAY + 0.75]]


# --- names ------------------------------------------------------------------------------------------------------


def test_names_and_sets_stand_at_their_places() -> None:
    labels = ["b", "{a, c}", "*", "d"]
    assert encoded(labels) == [[1, 1], [0, 2], [0, 3], [3, 3]]
    assert names(labels, "expected") == ["c=a", "c=b", "c=c", "c=d"]
    assert encoded(labels, "expected") == [[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0.25] * 4, [0, 0, 0, 1]]


def test_missing_is_one_more_name() -> None:
    labels = ["missing", "missing or a", "not missing", "*", "b", None]
    assert encoded(labels) == [[0, 1, 1], [0, 0, 0.5], [0, 1, 0], [0, 1, 0.5], [1, 1, 0], [0, 1, 1]]
    assert names(labels, "expected") == ["c=a", "c=b", "c_missing"]
    third = 1 / 3
    assert encoded(labels, "expected") == [
        [0, 0, 1],
        [0.5, 0, 0.5],
        [0.5, 0.5, 0],
        [third, third, third],
        [0, 1, 0],
        [0, 0, 1],
    ]


def test_quoted_names_are_read() -> None:
    labels = ['"a, b"', '{"a, b", "missing"}', '"missing"', "O'Neil"]
    assert names(labels, "expected") == ["c=O'Neil", "c=a, b", "c=missing"]
    assert encoded(labels) == [[1, 1], [1, 2], [2, 2], [0, 0]]


def test_texts_of_digits_are_names() -> None:
    assert names(["10115", "20095", "{10115, 20095}"], "expected") == ["c=10115", "c=20095"]
    assert names(["10115", "20095"], "expected") == ["c=10115", "c=20095"]
    assert names(["10115", "20095"], "expected", types={"c": "continuous"}) == ["c"]


def test_a_taxonomy_gives_the_order_of_its_leaves() -> None:
    tree = {
        "name": "*",
        "children": [
            {"name": "Europe", "children": [{"name": "FR"}, {"name": "DE"}, {"name": "AT"}]},
            {"name": "US"},
            {"name": "Asia", "children": [{"name": "JP"}, {"name": "CN"}]},
        ],
    }
    labels = ["Europe", "AT", "{DE, Asia}", "{Europe, US}", "*"]
    for taxonomy in (tree, Taxonomy.from_tree(tree)):
        assert encoded(labels, taxonomies={"c": taxonomy}) == [[0, 2], [2, 2], [1, 5], [0, 3], [0, 5]]
    third, sixth = 1 / 3, 1 / 6
    assert encoded(labels, "expected", taxonomies={"c": tree}) == [
        [third, third, third, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, third, 0, 0, third, third],
        [0.25, 0.25, 0.25, 0.25, 0, 0],
        [sixth] * 6,
    ]


def test_a_taxonomy_of_intervals_is_one_of_names() -> None:
    ages = Taxonomy.from_tree(
        {
            "name": "*",
            "children": [{"name": "< 65", "children": [{"name": "< 20"}, {"name": "[20, 65)"}]}, {"name": "≥ 65"}],
        }
    )
    labels = ["< 65", "[20, 65)", '{"[20, 65)", "≥ 65"}', "missing or ≥ 65"]
    assert encoded(labels, taxonomies={"c": ages}) == [[0, 1, 0], [1, 1, 0], [1, 2, 0], [2, 2, 0.5]]


def test_words_of_an_order_are_ranks() -> None:
    labels = ["low", "[low, high)", "< mid", "≥ mid", "*", "[mid, top]", "high"]
    order = {"c": ["low", "mid", "high", "top"]}
    assert encoded(labels, orders=order) == [[0, 0], [0, 1], [0, 0], [1, 3], [0, 3], [1, 3], [2, 2]]
    assert encoded(labels, "expected", orders=order) == [[0], [0.5], [0], [2], [1.5], [2], [2]]
    assert encoded(["missing", "missing or < mid", "≥ mid"], orders=order) == [[0, 3, 1], [0, 0, 0.5], [1, 3, 0]]


def test_a_column_that_is_nowhere_divided_says_nothing() -> None:
    assert encoded(["*", "*"]) == [[0, 0], [0, 0]]
    assert encoded(["*", "*"], "expected") == [[], []]


# --- bounds -----------------------------------------------------------------------------------------------------


def bounds(lower: Sequence[Any], upper: Sequence[Any], missing: Sequence[str] | None = None) -> pl.DataFrame:
    found = pl.DataFrame({"c_lower": lower, "c_upper": upper}, strict=False)
    return found if missing is None else found.with_columns(c_missing=pl.Series(missing))


def test_bounds_are_read_like_intervals() -> None:
    table = bounds([None, 25, 30, 60, None], [25, 30, 60, None, None])
    encoder = RegionEncoder().fit(table)
    assert encoder.get_feature_names_out().tolist() == ["c_lower", "c_upper"]
    assert encoder.transform(table).tolist() == [[20, 25], [25, 30], [30, 60], [60, 90], [20, 90]]
    assert RegionEncoder("expected").fit_transform(table).tolist() == [[22.5], [27.5], [45], [75], [55]]


def test_bounds_say_what_is_missing() -> None:
    table = bounds([None, None, 25, None], [None, 25, None, None], ["only", "possible", "no", "no"])
    assert RegionEncoder().fit_transform(table).tolist() == [[0, 50, 1], [0, 25, 0.5], [25, 50, 0], [0, 50, 0]]
    assert RegionEncoder("expected").fit_transform(table).tolist() == [[25, 1], [12.5, 0.5], [37.5, 0], [25, 0]]


def test_bounds_may_stand_in_any_order() -> None:
    table = bounds([None, 25, None], [25, None, None], ["no", "possible", "only"])
    expected = RegionEncoder().fit_transform(table)
    for order in (["c_missing", "c_upper", "c_lower"], ["c_upper", "c_missing", "c_lower"]):
        np.testing.assert_array_equal(RegionEncoder().fit_transform(table.select(order)), expected)


def test_bounds_that_are_nowhere_open_end_a_declared_domain() -> None:
    table = bounds([0, 25, None], [25, 120, None], ["no", "no", "only"])
    assert RegionEncoder().fit_transform(table).tolist() == [[0, 25, 0], [25, 120, 0], [0, 120, 1]]


def test_bounds_of_dates_and_times_are_days() -> None:
    days = bounds([None, date(2024, 1, 1), date(2024, 1, 11)], [date(2024, 1, 1), date(2024, 1, 11), None])
    expected = [[DAY - 10, DAY], [DAY, DAY + 10], [DAY + 10, DAY + 20]]
    assert RegionEncoder().fit_transform(days).tolist() == expected
    assert RegionEncoder().fit_transform(days.cast(pl.String)).tolist() == expected
    times = bounds([None, datetime(2024, 1, 1, 6)], [datetime(2024, 1, 1, 6), None])
    assert RegionEncoder().fit_transform(times).tolist() == [[DAY - 364.75, DAY + 0.25], [DAY + 0.25, DAY + 365.25]]


def test_bounds_of_an_order_are_ranks() -> None:
    table = bounds([None, "mid", "low"], ["mid", None, "high"])
    told = {"c": ["low", "mid", "high", "top"]}
    assert RegionEncoder(orders=told).fit_transform(table).tolist() == [[0, 0], [1, 3], [0, 1]]
    with pytest.raises(DataError, match=r"column 'c' has words as bounds.*orders"):
        RegionEncoder().fit(table)


def test_a_column_of_the_same_name_makes_them_no_bounds() -> None:
    table = bounds([1.0, 2.0], [2.0, 3.0]).with_columns(c=pl.Series(["a", "b"]))
    assert RegionEncoder("expected").fit(table).get_feature_names_out().tolist() == ["c_lower", "c_upper", "c=a", "c=b"]


# --- raw columns ------------------------------------------------------------------------------------------------


def test_numbers_that_are_not_generalized_are_passed_on() -> None:
    table = pl.DataFrame(
        {
            "cost": [1.5, None],
            "age": ["< 30", "≥ 30"],
            "died": [True, False],
            "seen": [date(2024, 1, 1), date(2024, 1, 2)],
            "at": [datetime(2024, 1, 1, 12), None],
        }
    )
    encoder = RegionEncoder().fit(table)
    assert encoder.get_feature_names_out().tolist() == ["cost", "age_lower", "age_upper", "died", "seen", "at"]
    np.testing.assert_equal(
        encoder.transform(table), [[1.5, 0, 30, 1, DAY, DAY + 0.5], [np.nan, 30, 60, 0, DAY + 1, np.nan]]
    )
    dropped = RegionEncoder(remainder="drop").fit(table)
    assert dropped.get_feature_names_out().tolist() == ["age_lower", "age_upper"]


# --- faults -----------------------------------------------------------------------------------------------------


def test_what_is_no_label_is_refused_without_being_shown() -> None:
    encoder = RegionEncoder().fit(pl.DataFrame({"c": ["< 30", "≥ 30"]}))
    with pytest.raises(DataError, match=r"column 'c': 2 rows \(first: row 2\) are no labels") as error:
        encoder.transform(pl.DataFrame({"c": ["< 30", "secret", "secret"]}))
    assert "secret" not in str(error.value)


def test_names_that_were_not_there_are_refused() -> None:
    encoder = RegionEncoder().fit(pl.DataFrame({"c": ["a", "b"]}))
    with pytest.raises(DataError, match="give its recoding"):
        encoder.transform(pl.DataFrame({"c": ["a", "{b, c}"]}))


def test_missing_values_that_were_not_there_are_refused() -> None:
    encoder = RegionEncoder().fit(pl.DataFrame({"c": ["a", "b", "*"]}))
    for label in ("missing", "missing or a", None):
        with pytest.raises(DataError, match="no labels that it can have"):
            encoder.transform(pl.DataFrame({"c": ["a", label]}))


def test_intervals_of_words_need_an_order() -> None:
    with pytest.raises(DataError, match=r"column 'c' has intervals of words.*orders"):
        RegionEncoder().fit(pl.DataFrame({"c": ["[low, high)", "high"]}))
    assert encoded(["[low, high)", "high"], types={"c": "nominal"}) == [[0, 0], [1, 1]]


def test_wrong_bounds_are_refused() -> None:
    encoder = RegionEncoder().fit(bounds(["2024-01-01", None], [None, "2024-01-01"], ["no", "possible"]))
    with pytest.raises(DataError, match=r"column 'c_lower': 1 row \(first: row 1\) is no bounds"):
        encoder.transform(bounds(["soon", None], [None, None], ["no", "possible"]))
    with pytest.raises(DataError, match="column 'c_missing'.*not one of no, possible, only"):
        encoder.transform(bounds([None, None], [None, None], ["no", "maybe"]))


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"encoding": "end"}, "encoding = 'end' is not known; did you mean 'ends'"),
        ({"remainder": "keep"}, "remainder = 'keep' is not known"),
        ({"recoding": "recoding.json"}, "recoding must be a Recoding, such as release.recoding; found str"),
        ({"types": {"c": "number"}}, "types: 'number' of column 'c'"),
        ({"types": {"c": "ordinal"}}, "types: column 'c' is ordinal; give its words in orders"),
    ],
)
def test_wrong_settings_are_refused(told: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        RegionEncoder(**told).fit(pl.DataFrame({"c": ["< 30"]}))


def test_a_taxonomy_that_is_none_is_refused() -> None:
    with pytest.raises(TaxonomyError):
        RegionEncoder(taxonomies={"c": {"children": []}}).fit(pl.DataFrame({"c": ["a"]}))


def test_two_features_of_one_name_are_refused() -> None:
    with pytest.raises(RequestError, match="two features would be called 'c_lower'"):
        RegionEncoder().fit(pl.DataFrame({"c": ["a", "b"], "c_lower": [1, 2]}))


def test_each_label_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    table = pl.DataFrame({"c": pl.Series(["< 30", "[30, 40)", "≥ 40"] * 10_000, dtype=pl.Categorical)})
    encoder = RegionEncoder().fit(table)

    def counted(text: Any, meaning: Any) -> Any:
        read.append(text)
        return original(text, meaning)

    original = reading.read_label
    monkeypatch.setattr(reading, "read_label", counted)
    assert encoder.transform(table).shape == (30_000, 2)
    assert sorted(read) == ["< 30", "[30, 40)", "≥ 40"]


def test_whole_numbers_with_both_ends_are_read_without_a_recoding() -> None:
    table = pl.DataFrame({"age": ["≤ 17", "18–64", "65", "≥ 66"]})
    found = RegionEncoder().fit(table).transform(table)
    assert np.asarray(found)[1:3].tolist() == [[18.0, 64.0], [65.0, 65.0]]


def test_a_single_value_beside_open_intervals_does_not_close_them() -> None:
    ages = pl.DataFrame({"age": ["< 39", "39", "[40, 45)", "≥ 45"]})
    expected = [[38.0, 39.0], [39.0, 39.0], [40.0, 45.0], [45.0, 50.0]]
    assert RegionEncoder("ends").fit_transform(ages).tolist() == expected
