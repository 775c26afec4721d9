# SPDX-License-Identifier: Apache-2.0
"""Diversity models counted by hand: what each finds in the worst group, and what is just met and just missed."""

from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anonfit.auditing.api import audit
from anonfit.auditing.result import Audit
from anonfit.errors import DataError, SpecError, TaxonomyError


def table(*groups: str) -> pl.DataFrame:
    """One group per text, one person per letter; a dot is missing."""
    rows = [(number, None if sign == "." else sign) for number, text in enumerate(groups) for sign in text]
    return pl.DataFrame(rows, schema={"q": pl.Int64, "s": pl.String}, orient="row")


def numbers(*groups: list[Any]) -> pl.DataFrame:
    rows = [(place, number) for place, group in enumerate(groups) for number in group]
    return pl.DataFrame(rows, schema=["q", "s"], orient="row", strict=False)


def asked(frame: object, model: str, **settings: Any) -> Audit:
    return audit(frame, quasi_identifiers=["q"], sensitive={"s": {"model": model, **settings}})


def figure(frame: object, model: str, **settings: Any) -> float:
    found = asked(frame, model, **settings).diversity[0].found
    assert found is not None
    return found.value


# --- models over values -------------------------------------------------------------------------------------------


def test_distinct_values() -> None:
    frame = table("aabc", "ab.", "abcd")
    assert figure(frame, "distinct-l", l=3) == 3
    assert asked(frame, "distinct-l", l=3).passed
    assert not asked(frame, "distinct-l", l=4).passed
    assert not asked(table("abc", "a.."), "distinct-l", l=3).passed  # missing is one value


def test_entropy_of_85_and_15_percent() -> None:
    frame = table("a" * 85 + "b" * 15, "ab" * 50)
    assert figure(frame, "entropy-l", l=1.5) == pytest.approx(1.5261, abs=5e-5)
    assert asked(frame, "entropy-l", l=1.526).passed
    assert not asked(frame, "entropy-l", l=1.5262).passed


@pytest.mark.parametrize("number", [2, 3, 7])
def test_as_many_values_all_as_frequent_have_exactly_that_entropy(number: int) -> None:
    frame = table("abcdefg"[:number] * 3, "abcdefgh" * 5)
    assert asked(frame, "entropy-l", l=number).passed
    assert not asked(frame, "entropy-l", l=number + 1e-6).passed


def test_recursive_diversity() -> None:
    frame = table("aaaabbc", "aabbcc")  # 4, 2, 1: 4 / (2 + 1), 4 / 1
    assert figure(frame, "recursive-cl", c=2, l=2) == pytest.approx(4 / 3)
    assert figure(frame, "recursive-cl", c=2, l=3) == 4
    assert asked(frame, "recursive-cl", c=4.01, l=3).passed
    assert not asked(frame, "recursive-cl", c=4, l=3).passed  # less is asked, not as much


def test_recursive_diversity_needs_l_values() -> None:
    found = asked(table("aab", "abc"), "recursive-cl", c=1000, l=3)
    assert not found.passed
    assert found.diversity[0].found is not None
    assert math.isinf(found.diversity[0].found.value)
    assert found.to_dict()["diversity"][0]["found"] == found.to_dict()["findings"][0]["found"] == "infinite"
    assert "Infinity" not in json.dumps(found.to_dict()) + json.dumps(found.public(2))


def test_shares() -> None:
    frame = table("aaab", "abcd")
    assert figure(frame, "alpha-k", alpha=0.5) == 0.75
    assert asked(frame, "alpha-k", alpha=0.75).passed
    assert not asked(frame, "alpha-k", alpha=0.7499).passed
    assert asked(table("a" * 3 + "bbbbbbb"), "alpha-k", alpha=0.7).passed  # 7 / 10 is not quite 0.7 in binary


def test_likeness() -> None:
    frame = table("aab", "abbbbb")  # a: 3 / 9, b: 6 / 9; first group 2 / 3: twice as much
    assert figure(frame, "beta-likeness", beta=1) == pytest.approx(1.0)
    assert asked(frame, "beta-likeness", beta=1).passed
    assert not asked(frame, "beta-likeness", beta=0.999).passed


def test_enhanced_likeness_is_limited_by_the_share_itself() -> None:
    frame = table("aab", "abbbbb")  # -ln(1/3) = 1.0986, -ln(2/3) = 0.405
    assert asked(frame, "beta-likeness", beta=1, enhanced=True).passed
    assert figure(frame, "beta-likeness", beta=5, enhanced=True) == pytest.approx(1.0)
    frame = table("bbbb", "aaab")  # b: 5 / 8: gain 0.6, -ln(5/8) = 0.47
    assert figure(frame, "beta-likeness", beta=5) == pytest.approx(1.0)
    assert asked(frame, "beta-likeness", beta=5).passed
    assert math.isinf(figure(frame, "beta-likeness", beta=5, enhanced=True))
    assert not asked(frame, "beta-likeness", beta=5, enhanced=True).passed


def test_disclosure() -> None:
    frame = table("aab", "abb")  # a: 2 / 3 of 1 / 2: ln(4/3), b: 1 / 3 of 1 / 2: ln(2/3)
    assert figure(frame, "delta-disclosure", delta=1) == pytest.approx(math.log(1.5))
    assert asked(frame, "delta-disclosure", delta=math.log(1.5)).passed
    assert not asked(frame, "delta-disclosure", delta=math.log(1.5) - 1e-6).passed
    absent = asked(table("aab", "abbc"), "delta-disclosure", delta=100)
    assert not absent.passed
    assert not asked(table("aab", "abb."), "delta-disclosure", delta=100).passed


# --- models over numbers ------------------------------------------------------------------------------------------


def test_squared_errors_and_variances() -> None:
    frame = numbers([1, 2, 3], [0, 10])  # 1 + 0 + 1; 25 + 25
    assert figure(frame, "squared-error", error=1) == 2
    assert asked(frame, "squared-error", error=2).passed
    assert not asked(frame, "squared-error", error=2.001).passed
    assert figure(frame, "variance", variance=0.1) == pytest.approx(2 / 3)
    assert asked(frame, "variance", variance=2 / 3).passed
    assert not asked(frame, "variance", variance=0.667).passed


def test_missing_numbers_are_left_out() -> None:
    frame = numbers([1, None, 3, None], [0, 10])
    assert figure(frame, "squared-error", error=1) == 2
    assert figure(frame, "variance", variance=1) == 1
    unknown = numbers([None, None], [0, 10])
    assert figure(unknown, "squared-error", error=1) == figure(unknown, "variance", variance=1) == 0
    assert not asked(unknown, "variance", variance=1e-9).passed


@pytest.mark.parametrize("shift", [0, 1e6, 1e9, 2**52])
def test_numbers_far_from_zero(shift: float) -> None:
    frame = numbers([shift, shift + 1, shift + 2], [shift, shift + 9])
    assert figure(frame, "squared-error", error=1) == 2


@pytest.mark.parametrize(
    "series",
    [
        pl.Series([2**60, 2**60 + 1, 2**60 + 2]),
        pl.Series([2**63, 2**63 + 1, 2**63 + 2], dtype=pl.UInt64),
        pl.Series(["1.25", "2.25", "3.25"]),
        pl.Series([Decimal("0.10"), Decimal("1.10"), Decimal("2.10")]),
        pl.Series([1, 2, 3], dtype=pl.UInt8),
        pl.Series([True, False, None]),
        pl.Series([0.5, 1.5, 2.5], dtype=pl.Float32),
    ],
    ids=["long", "unsigned", "text", "decimal", "short", "truth", "single"],
)
def test_numbers_of_every_type(series: pl.Series) -> None:
    frame = pl.DataFrame({"q": [1, 1, 1], "s": series})
    assert figure(frame, "squared-error", error=1) == (0.5 if series.dtype == pl.Boolean else 2)
    assert figure(frame, "t-closeness", t=0.99, distance="ordered") == 0


@pytest.mark.parametrize("kind", [pl.Int8, pl.Int16, pl.Int64, pl.Float64])
def test_short_numbers_that_lie_far_apart(kind: type[pl.DataType]) -> None:
    frame = pl.DataFrame({"q": [1, 1], "s": pl.Series([-128, 127], dtype=kind)})
    assert figure(frame, "variance", variance=1) == 127.5**2


# --- distances ----------------------------------------------------------------------------------------------------

SALARIES = numbers([3, 4, 5], [6, 8, 11], [7, 9, 10])


def test_salaries_of_li_li_and_venkatasubramanian() -> None:
    """In thousands: {3, 4, 5} of 3 to 11 is 0.375 away, {6, 8, 11} is 0.167."""
    assert figure(SALARIES, "t-closeness", t=0.5) == pytest.approx(0.375)
    one_group_and_the_rest = SALARIES.with_columns(q=pl.col("q") == 1)
    assert figure(one_group_and_the_rest, "t-closeness", t=0.99) == pytest.approx(1 / 6)
    assert asked(SALARIES, "t-closeness", t=0.375).passed
    assert not asked(SALARIES, "t-closeness", t=0.3749).passed


RESPIRATORY = [
    {"name": "infection", "children": [{"name": "flu"}, {"name": "pneumonia"}, {"name": "bronchitis"}]},
    {"name": "vascular", "children": [{"name": "edema"}, {"name": "embolism"}]},
]
DIGESTIVE = [
    {"name": "stomach", "children": [{"name": "ulcer"}, {"name": "cancer"}, {"name": "gastritis"}]},
    {"name": "colon", "children": [{"name": "colitis"}, {"name": "colon cancer"}]},
]
DISEASES = {
    "name": "*",
    "children": [{"name": "respiratory", "children": RESPIRATORY}, {"name": "digestive", "children": DIGESTIVE}],
}
PATIENTS = [
    ["ulcer", "cancer", "pneumonia"],
    ["gastritis", "flu", "bronchitis"],
    ["gastritis", "bronchitis", "cancer"],
]


def test_diseases_in_a_taxonomy() -> None:
    """In the second group 2/9 of the persons move across the root, and 1/9 below each of two nodes one step high."""
    frame = numbers(*PATIENTS)
    assert figure(frame, "t-closeness", t=0.5, taxonomy=DISEASES) == pytest.approx(2 / 9 + 2 * 1 / 9 / 3)
    assert asked(frame, "t-closeness", t=8 / 27, taxonomy=DISEASES).passed
    assert not asked(frame, "t-closeness", t=0.2962, taxonomy=DISEASES).passed
    assert asked(frame, "t-closeness", t=0.5, taxonomy=DISEASES).diversity[0].settings == {"distance": "hierarchical"}


def test_a_group_under_one_node_is_as_far_as_the_root_is_high() -> None:
    frame = numbers(["flu"] * 3, ["ulcer"] * 3)  # half of the persons move across the root
    assert figure(frame, "t-closeness", t=0.99, taxonomy=DISEASES) == pytest.approx(1 / 2)
    frame = numbers(["flu"] * 3, ["edema"] * 3)  # across "respiratory": two of three steps up
    assert figure(frame, "t-closeness", t=0.99, taxonomy=DISEASES) == pytest.approx(1 / 3)
    frame = numbers(["flu"] * 3, ["pneumonia"] * 3)
    assert figure(frame, "t-closeness", t=0.99, taxonomy=DISEASES) == pytest.approx(1 / 6)
    frame = numbers(["flu"] * 3, [None] * 3)  # missing is under the root
    assert figure(frame, "t-closeness", t=0.99, taxonomy=DISEASES) == pytest.approx(1 / 2)


def test_equal_distances() -> None:
    frame = table("aab", "abb", "ab")
    assert figure(frame, "t-closeness", t=0.99) == pytest.approx(2 / 3 - 1 / 2)
    assert asked(frame, "t-closeness", t=0.17).diversity[0].settings == {"distance": "equal"}
    assert figure(SALARIES, "t-closeness", t=0.99, distance="equal") == pytest.approx(2 / 3)
    assert figure(table("aaa"), "t-closeness", t=0) == 0


def test_the_order_of_words() -> None:
    frame = numbers(["low", "low"], ["mid", "high"])
    order = ["low", "mid", "high"]
    # low 1/2, mid 1/4, high 1/4: (1/2 + 1/4) / 2
    assert figure(frame, "t-closeness", t=0.99, order=order) == pytest.approx(3 / 8)
    assert figure(frame, "t-closeness", t=0.99, order=["other", *order]) == pytest.approx(
        3 / 8
    )  # only values that occur
    turned = figure(frame, "t-closeness", t=0.99, order=["mid", "low", "high"])
    assert turned == pytest.approx(1 / 4)  # (1/4 + 1/4) / 2
    assert asked(frame, "t-closeness", t=0.99, order=order).diversity[0].settings == {"distance": "ordered"}


def test_missing_is_the_lowest_of_an_order() -> None:
    frame = numbers([None, None], [5, 7])
    assert figure(frame, "t-closeness", t=0.99) == pytest.approx(3 / 8)
    assert figure(numbers([None] * 3, [None] * 2), "t-closeness", t=0, distance="ordered") == 0


def test_dates_are_ordered_by_time() -> None:
    days = [date(2020, 1, 9), date(2020, 1, 10), date(2019, 12, 31), date(2021, 1, 1)]
    frame = numbers(days[:2], days[2:])
    wanted = figure(numbers([2, 3], [1, 4]), "t-closeness", t=0.99)
    assert figure(frame, "t-closeness", t=0.99) == pytest.approx(wanted)
    written = frame.with_columns(pl.col("s").dt.strftime("%d.%m.%Y"))
    settings: dict[str, Any] = {"t": 0.99, "type": "date", "date_format": "%d.%m.%Y"}
    assert figure(written, "t-closeness", **settings) == pytest.approx(wanted)
    assert figure(frame.cast({"s": pl.String}), "t-closeness", **settings) == pytest.approx(wanted)
    assert figure(frame.cast({"s": pl.String}), "t-closeness", t=0.99, distance="ordered") == pytest.approx(wanted)


def test_a_taxonomy_over_numbers() -> None:
    ages = {
        "name": "*",
        "children": [
            {"name": "young", "children": [{"name": "< 20"}, {"name": "[20, 40)"}]},
            {"name": "old", "children": [{"name": "[40, 60]"}, {"name": "≥ 61"}]},
        ],
    }
    frame = numbers([19, 19.5], [20, 39.9], [40, 60], [61, 99])
    words = numbers(["a", "a"], ["b", "b"], ["c", "c"], ["d", "d"])
    tree = {"name": "*", "children": [
        {"name": "y", "children": [{"name": "a"}, {"name": "b"}]}, {"name": "o", "children": [{"name": "c"}, {"name": "d"}]},
    ]}  # fmt: skip
    wanted = figure(words, "t-closeness", t=0.99, taxonomy=tree)
    assert figure(frame, "t-closeness", t=0.99, taxonomy=ages) == pytest.approx(wanted)
    assert wanted == pytest.approx(1 / 4 * 1 / 2 + 2 / 4)
    with pytest.raises(DataError, match="no leaves"):
        asked(numbers([19, 60.5], [61, 99]), "t-closeness", t=0.99, taxonomy=ages)


def test_one_leaf_and_padding() -> None:
    assert figure(numbers(["a", "a"], ["a", "a"]), "t-closeness", t=0.99, taxonomy={"name": "a"}) == 0
    assert figure(numbers(["a", "a"], [None, None]), "t-closeness", t=0.99, taxonomy={"name": "a"}) == pytest.approx(
        0.5
    )
    padded = {"name": "*", "children": [{"name": "a", "children": [{"name": "a"}]}, {"name": "b"}]}
    assert figure(numbers(["a", "a"], ["b", "b"]), "t-closeness", t=0.99, taxonomy=padded) == pytest.approx(0.5)
    pair = {"name": "x", "children": [{"name": "b"}, {"name": "c"}]}
    chain = {"name": "a", "children": [{"name": "a", "children": [{"name": "a"}]}]}
    settings: dict[str, Any] = {"t": 0.99, "taxonomy": {"name": "*", "children": [chain, pair]}}
    assert figure(numbers(["b", "b"], ["c", "c"]), "t-closeness", **settings) == pytest.approx(1 / 2 * 1 / 2)
    deep = {"name": "*", "children": [{"name": "x", "children": [{"name": "a"}]}, {"name": "b"}, {"name": "c"}]}
    assert figure(numbers(["c", "c"], ["b", "b"]), "t-closeness", t=0.99, taxonomy=deep) == pytest.approx(0.5)


# --- whom the counts are of ---------------------------------------------------------------------------------------


def test_a_person_has_a_value_once() -> None:
    frame = pl.DataFrame({"q": [1, 1, 1, 1], "who": ["u", "u", "v", "v"], "s": ["a", "a", "a", "b"]})
    words: dict[str, Any] = {"quasi_identifiers": ["q"], "entity": "who"}
    found = audit(frame, sensitive={"s": {"model": "alpha-k", "alpha": 0.7}}, **words)
    assert found.findings[0].found == pytest.approx(2 / 3)  # u has a, v has a, v has b
    assert found.passed
    assert not audit(frame, quasi_identifiers=["q"], sensitive={"s": {"model": "alpha-k", "alpha": 0.7}}).passed


def test_in_the_whole_table_too_a_person_has_a_value_once() -> None:
    frame = pl.DataFrame({"q": [1, 2, 2], "who": ["u", "u", "v"], "s": ["a", "a", "b"]})
    ask = {"model": "t-closeness", "t": 0.99}
    found = audit(frame, quasi_identifiers=["q"], entity="who", sensitive={"s": ask})
    assert found.findings[0].found == pytest.approx(1 / 2)  # a and b have one person each, though a is in two groups
    assert audit(frame, quasi_identifiers=["q"], sensitive={"s": ask}).findings[0].found == pytest.approx(1 / 3)


def test_persons_are_not_counted_where_the_source_is_not_that_of_the_file() -> None:
    released = pl.DataFrame({"age": ["< 30", "≥ 30", "≥ 30", "≥ 30"], "s": ["a", "a", "a", "b"]})
    source = pl.DataFrame({"age": [40, 41, 42], "s": ["a", "a", "b"], "who": ["u", "v", "w"]})
    words: dict[str, Any] = {"columns": {"age": {"type": "continuous"}}, "source": source, "entity": "who"}
    found = audit(released, quasi_identifiers=["age"], sensitive={"s": {"model": "alpha-k", "alpha": 0.7}}, **words)
    finding = next(one for one in found.findings if one.name == "alpha-k")
    assert (finding.found, finding.met) == (None, None)
    assert found.passed is False


def test_a_row_stands_for_its_count() -> None:
    frame = pl.DataFrame({"q": [1, 1, 2, 2], "n": [3, 1, 1, 1], "s": ["a", "b", "a", "b"]})
    ask = {"s": {"model": "alpha-k", "alpha": 0.7}}
    assert audit(frame, quasi_identifiers=["q"], count="n", sensitive=ask).findings[0].found == 0.75
    numbers = frame.with_columns(s=pl.Series([0, 4, 0, 4]))
    ask = {"s": {"model": "variance", "variance": 1}}
    assert audit(numbers, quasi_identifiers=["q"], count="n", sensitive=ask).findings[0].found == 3


def test_figures_know_the_persons_of_the_worst_group() -> None:
    found = asked(table("aaab", "ab" * 10), "alpha-k", alpha=0.8)
    assert (found.findings[0].persons, found.public(5)["findings"][0]["found"]) == (4, "fewer than 5")
    assert found.public(5)["diversity"][0]["found"] == "fewer than 5"
    assert found.public(4)["findings"][0]["found"] == 0.75


# --- how demands are stated ---------------------------------------------------------------------------------------


def test_sensitive_columns_as_a_list_or_with_their_demands() -> None:
    frame = table("abc", "aab").with_columns(t=pl.Series([1, 2, 3, 4, 5, 6]))
    plain = audit(frame, quasi_identifiers=["q"], sensitive=["s", "t"])
    assert [(one.column, one.model, one.found.value, one.met) for one in plain.diversity if one.found] == [
        ("s", "distinct-l", 2, None),
        ("t", "distinct-l", 3, None),
    ]
    assert plain.findings == ()
    several = [{"model": "distinct-l", "l": 2}, {"model": "alpha-k", "alpha": 0.5}]
    found = audit(frame, quasi_identifiers=["q"], sensitive={"s": several, "t": {}})
    assert [(one.name, one.where, one.met) for one in found.findings] == [
        ("distinct-l", "s", True),
        ("alpha-k", "s", False),
    ]
    assert [one.model for one in found.diversity if one.column == "t"] == ["distinct-l"]
    listed = audit(frame, quasi_identifiers=["q"], diversity=[{"column": "s", **entry} for entry in several])
    assert listed.findings == found.findings
    assert {one.name: one.sensitive for one in listed.raw_columns} == {"s": True, "t": False}


def test_every_finding_says_in_a_sentence_what_it_is() -> None:
    frame = numbers([1, 1, 2], [1, 2, 3])
    asks = [
        {"model": "distinct-l", "l": 2}, {"model": "entropy-l", "l": 1.5}, {"model": "recursive-cl", "c": 3, "l": 2},
        {"model": "t-closeness", "t": 0.5}, {"model": "alpha-k", "alpha": 0.8}, {"model": "beta-likeness", "beta": 2},
        {"model": "delta-disclosure", "delta": 0.1}, {"model": "squared-error", "error": 0.1},
        {"model": "variance", "variance": 0.1},
    ]  # fmt: skip
    found = audit(frame, quasi_identifiers=["q"], sensitive={"s": asks}, targets=["q2"], max_confidence=None)
    assert [one.name for one in found.findings] == [ask["model"] for ask in asks]
    assert [one.name for one in found.findings if not one.met] == ["delta-disclosure"]
    assert len({one.sentence for one in found.findings}) == len(asks)
    for one in found.findings:
        assert not any(sign.isdigit() for sign in one.sentence)


EMPTY: list[tuple[str, dict[str, float]]] = [
    ("distinct-l", {"l": 1}),
    ("entropy-l", {"l": 1 + 1e-9}),
    ("recursive-cl", {"c": 2, "l": 1}),
    ("t-closeness", {"t": 1}),
    ("alpha-k", {"alpha": 1 - 1e-9}),
    ("squared-error", {"error": 0}),
    ("variance", {"variance": 0}),
]


@pytest.mark.parametrize(
    ("demand", "words"),
    [
        ({"model": "entropy"}, "entropy-l"),
        ({"l": 3}, "valid: distinct-l"),
        ({"model": "distinct-l"}, "needs 'l', a number above 1"),
        ({"model": "distinct-l", "l": 0}, "above 1"),
        ({"model": "distinct-l", "l": True}, "above 1"),
        ({"model": "entropy-l", "l": math.nan}, "above 1"),
        ({"model": "entropy-l", "l": "3"}, "above 1"),
        ({"model": "recursive-cl", "c": 2}, "'l', a whole number"),
        ({"model": "recursive-cl", "c": 2, "l": 2.5}, "'l', a whole number"),
        ({"model": "recursive-cl", "c": 0, "l": 2}, "'c', a number above 0"),
        ({"model": "t-closeness", "t": 1.1}, "below 1"),
        ({"model": "t-closeness", "t": -0.1}, "at least 0"),
        ({"model": "t-closeness", "t": 0.1, "distance": "euclid"}, "unknown 'distance'"),
        ({"model": "t-closeness", "t": 0.1, "distance": "hierarchical"}, "taxonomy"),
        ({"model": "t-closeness", "t": 0.1, "order": "abc"}, "different words"),
        ({"model": "t-closeness", "t": 0.1, "order": ["a", "a"]}, "different words"),
        ({"model": "t-closeness", "t": 0.1, "type": "text"}, "unknown 'type'"),
        ({"model": "t-closeness", "t": 0.1, "date_format": 3}, "not a text"),
        ({"model": "alpha-k", "alpha": 0}, "above 0"),
        ({"model": "alpha-k", "alpha": 0.5, "k": 3}, "unknown setting 'k'"),
        ({"model": "beta-likeness", "beta": -0.1}, "at least 0"),
        ({"model": "beta-likeness", "beta": 1, "enhanced": "yes"}, "true or false"),
        ({"model": "distinct-l", "l": 2, "enhanced": True}, "unknown setting 'enhanced'"),
        ({"model": "delta-disclosure", "delta": math.inf}, "at least 0"),
        ({"model": "squared-error", "error": -1}, "above 0"),
        ({"model": "variance"}, "'variance'"),
        *(({"model": model, **asked}, "nothing would be asked") for model, asked in EMPTY),
        ({"model": "distinct-l", "l": 2, "column": "t"}, "another column"),
    ],
)
def test_wrong_demands_are_refused_in_a_sentence(demand: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        audit(table("ab"), quasi_identifiers=["q"], sensitive={"s": demand})


def test_all_faults_of_a_demand_are_told_together() -> None:
    with pytest.raises(SpecError) as error:
        audit(table("ab"), quasi_identifiers=["q"], sensitive={"s": {"model": "recursive-cl", "k": 3}})
    assert len(error.value.faults) == 3


@pytest.mark.parametrize("sensitive", ["s", 3, {"s": "distinct-l"}, {"s": ["distinct-l"]}])
def test_sensitive_columns_that_are_no_list_are_refused(sensitive: Any) -> None:
    with pytest.raises(SpecError, match="mapping"):
        audit(table("ab"), quasi_identifiers=["q"], sensitive=sensitive)


@pytest.mark.parametrize(
    "tree",
    [
        {"name": "*", "children": {"name": "a"}},
        {"name": "*", "children": [{"name": "a"}, {"name": "a"}]},
        {"name": "*", "children": ["a", "b"]},
        {"name": 3},
        {"children": []},
        {"name": "*", "kids": []},
        [],
    ],
)
def test_a_taxonomy_that_is_no_tree_is_refused(tree: Any) -> None:
    with pytest.raises(TaxonomyError, match="column 's'"):
        asked(table("ab"), "t-closeness", t=0.99, taxonomy=tree)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "variance", "variance": 1}, "no numbers"),
        ({"model": "squared-error", "error": 1}, "no numbers"),
        ({"model": "t-closeness", "t": 0.99, "distance": "ordered"}, "no order that is known"),
        ({"model": "t-closeness", "t": 0.99, "order": ["a"]}, "words of its order"),
        ({"model": "t-closeness", "t": 0.99, "type": "date"}, "no dates"),
        ({"model": "t-closeness", "t": 0.99, "type": "continuous"}, "no numbers"),
        ({"model": "t-closeness", "t": 0.99, "taxonomy": {"name": "a"}}, "no leaves"),
    ],
)
def test_values_that_a_demand_cannot_read_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words) as error:
        asked(numbers(["a", "secret"], ["a", "a"]), **settings)
    assert "secret" not in str(error.value)


def test_infinite_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="infinite"):
        asked(numbers([1.0, math.inf], [1.0, 2.0]), "variance", variance=1)


def test_demands_on_columns_that_are_not_raw_are_refused() -> None:
    with pytest.raises(DataError, match="Both"):
        audit(table("ab"), quasi_identifiers=["q"], diversity=[{"column": "q", "model": "distinct-l", "l": 2}])
    with pytest.raises(DataError, match="no column 'x'"):
        audit(table("ab"), quasi_identifiers=["q"], sensitive={"x": {"model": "distinct-l", "l": 2}})


def test_codes_of_a_text_file_stay_texts(tmp_path: Path) -> None:
    pl.DataFrame({"q": ["1"] * 3, "s": ["1", "01", "1.0"]}).write_csv(tmp_path / "codes.csv")
    assert figure(tmp_path / "codes.csv", "distinct-l", l=2) == 3
    assert figure(tmp_path / "codes.csv", "distinct-l", l=2, type="continuous") == 1
    pl.DataFrame({"q": ["1"] * 3, "s": ["1", "2", "10"]}).write_csv(tmp_path / "numbers.csv")
    by_number = asked(tmp_path / "numbers.csv", "t-closeness", t=0.99)
    assert by_number.diversity[0].settings == {"distance": "ordered"}
    by_name = asked(tmp_path / "numbers.csv", "t-closeness", t=0.99, type="nominal")
    assert by_name.diversity[0].settings == {"distance": "equal"}
