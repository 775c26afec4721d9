# SPDX-License-Identifier: Apache-2.0
"""The audit's reader of labels: what is written by docs/labels.md is read back, and nothing else is read at all."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonfit.auditing.labels import Interval, ValueSet, bare, read_bounds, read_label
from anonfit.auditing.meanings import LabelMeaning, read_meaning
from anonfit.errors import RecodingError

NUMBER = LabelMeaning("age", "continuous")
DATE = LabelMeaning("day", "date")
NAME = LabelMeaning("city", "nominal")
HARD = [
    "a-b",
    "a;b",
    "a~b",
    "(x)",
    "it's",
    "a, b",
    'say "hi"',
    "{x}",
    "a\nb",
    "\t",
    "",
    " lead",
    "trail ",
    "[a",
    "<",
    "≥ 5",
]
HARD += [
    "*",
    "*a",
    "missing",
    "not missing",
    "missing or b",
    "missing or",
    "missingness",
    "1e5",
    "é",
    "\u2028",
    "x\u0085y",
    "\\",
]
names = st.one_of(st.sampled_from(HARD), st.text(max_size=8))


def written(name: str) -> str:
    """A name as docs/labels.md says it is written."""
    quote = (
        name == ""
        or name != name.strip()
        or any(sign in ',"{}' or ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in name)
        or name.startswith(("[", "<", "≥", "*", "missing or "))
        or name in ("missing", "not missing")
    )
    return json.dumps(name, ensure_ascii=False) if quote else name


def interval(lower: str | None, upper: str | None, *, closed: bool = False) -> ValueSet:
    ends = [None if end is None else Decimal(end) for end in (lower, upper)]
    return ValueSet(intervals=(Interval(ends[0], ends[1], closed),))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("*", ValueSet(missing=True, everything=True)),
        ("missing", ValueSet(missing=True)),
        (None, ValueSet(missing=True)),
        ("not missing", ValueSet(everything=True)),
        ("< 25", interval(None, "25")),
        ("≥ -5", interval("-5", None)),
        ("[-5, -1)", interval("-5", "-1")),
        ("[1e-05, 0.1)", interval("0.00001", "0.1")),
        ("[1e+16, 2E+16]", interval("1e16", "2e16", closed=True)),
        ("37.5", interval("37.5", "37.5", closed=True)),
        ("[3, 3]", interval("3", "3", closed=True)),
    ],
)
def test_numbers(text: str | None, meant: ValueSet) -> None:
    assert read_label(text, NUMBER) == meant


def test_missing_or_a_range() -> None:
    found = read_label("missing or [1, 2)", NUMBER)
    assert found == ValueSet(missing=True, intervals=(Interval(Decimal(1), Decimal(2)),))


@pytest.mark.parametrize(
    "text",
    ["", "5-9", "[1,2)", "[2, 1)", "[1, 1)", "[1, 2", "(1, 2)", "[1, 2, 3)", "<5", "< ", "≥5", "> 5", "nan", "inf",
     "[inf, 1)", "1_000", "+5", " 5", "5 ", "٣", "1e9999", "missing or missing", "missing or *", "missing or ",
     "missing or not missing", "Missing", "**", "[a, b)", "{1, 2}", "[", "[]", "[)", "0x10"],
)  # fmt: skip
def test_what_is_no_label_of_numbers(text: str) -> None:
    assert read_label(text, NUMBER) is None


def test_dates_and_times() -> None:
    day = Decimal(86400)
    assert read_label("[1970-01-02, 1970-01-03)", DATE) == ValueSet(intervals=(Interval(day, 2 * day),))
    assert read_label("< 1969-12-31", DATE) == ValueSet(intervals=(Interval(None, -day),))
    clock = read_label("≥ 1970-01-01T00:01:00.5", DATE)
    assert clock == ValueSet(intervals=(Interval(Decimal("60.5"), None),))


@pytest.mark.parametrize(
    "text",
    ["2024-02-30", "2024-1-1", "24-01-01", "2024-01-01T25:00:00", "2024-01-01T10:00", "0000-01-01", "2024-13-01", "5"],
)
def test_what_is_no_date(text: str) -> None:
    assert read_label(text, DATE) is None


@given(names)
def test_any_name_is_read_back(name: str) -> None:
    assert read_label(written(name), NAME) == ValueSet(names=(name,))


@given(st.lists(names, min_size=1, max_size=5, unique=True))
def test_any_set_of_names_is_read_back(several: list[str]) -> None:
    text = "{" + ", ".join(written(name) for name in several) + "}"
    assert read_label(text, NAME) == ValueSet(names=tuple(several))
    assert read_label(f"missing or {text}", NAME) == ValueSet(missing=True, names=tuple(several))


@given(st.lists(names, min_size=2, max_size=6, unique=True), st.data())
def test_any_interval_of_words_is_read_back(order: list[str], data: st.DataObject) -> None:
    meaning = LabelMeaning("rank", "ordinal", order=tuple(order))
    low = data.draw(st.integers(0, len(order) - 2))
    high = data.draw(st.integers(low + 1, len(order) - 1))
    text = f"[{written(order[low])}, {written(order[high])})"
    assert read_label(text, meaning) == interval(str(low), str(high))
    assert read_label(f"≥ {written(order[low])}", meaning) == interval(str(low), None)
    assert read_label(f"missing or < {written(order[high])}", meaning) == ValueSet(
        missing=True, intervals=(Interval(None, Decimal(high)),)
    )
    assert read_label(written(order[low]), meaning) == interval(str(low), str(low), closed=True)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9), st.floats(0.001, 1e6))
def test_any_interval_of_numbers_is_read_back(low: Decimal, width: float) -> None:
    high = low + Decimal(repr(width))
    if high > low:
        assert read_label(f"[{low:f}, {high:f})", NUMBER) == interval(str(low), str(high))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_read_back_exactly(value: float) -> None:
    found = read_label(repr(value), NUMBER)
    assert found is not None
    assert float(found.intervals[0].lower) == value


@pytest.mark.parametrize(
    "text", ["a, b", '"a', '"a" ', '"a"b', "{a,b}", "{a, a}", "{}", "{a, }", "{a", "a}", " a", "", '"\n"', "5\x00"]
)
def test_what_is_no_name(text: str) -> None:
    assert read_label(text, NAME) is None


@given(names)
def test_only_names_that_cannot_be_misread_are_bare(name: str) -> None:
    assert bare(name) == (written(name) == name)


TREE = {"name": "*", "children": [
    {"name": "Europe", "children": [{"name": "FR"}, {"name": "DE"}]},
    {"name": "Asia, far", "children": [{"name": "JP", "children": []}]},
]}  # fmt: skip


def test_names_of_a_taxonomy() -> None:
    meaning = read_meaning("country", {"type": "nominal", "taxonomy": TREE})
    assert meaning.tree is not None
    assert meaning.tree.leaves == ("FR", "DE", "JP")
    assert meaning.tree.below["Europe"] == (0, 1)
    assert read_label("Europe", meaning) == ValueSet(names=("Europe",))
    assert read_label('"Asia, far"', meaning) == ValueSet(names=("Asia, far",))
    assert read_label('{"Asia, far", FR}', meaning) == ValueSet(names=("Asia, far", "FR"))
    assert read_label("Africa", meaning) is None
    assert read_label("{FR, Africa}", meaning) is None


def test_a_taxonomy_over_numbers() -> None:
    tree = {"name": "*", "children": [
        {"name": "young", "children": [{"name": "[0, 10)"}, {"name": "[10, 20)"}]},
        {"name": "old", "children": [{"name": "≥ 20"}]},
        {"name": "odd", "children": [{"name": "-1"}, {"name": "1e3"}]},
    ]}  # fmt: skip
    meaning = read_meaning("age", {"type": "continuous", "taxonomy": tree})
    young = (Interval(Decimal(0), Decimal(10)), Interval(Decimal(10), Decimal(20)))
    assert read_label("young", meaning) == ValueSet(intervals=young)
    assert read_label("[10, 20)", meaning) == ValueSet(intervals=young[1:])
    assert read_label('"[10, 20)"', meaning) == ValueSet(intervals=young[1:])
    assert read_label("{young, old}", meaning) == ValueSet(intervals=(*young, Interval(Decimal(20), None)))
    assert read_label("[10, 30)", meaning) is None
    assert read_label("15", meaning) is None


@pytest.mark.parametrize(
    ("leaf", "first", "after"),
    [
        ("2024", "2024-01-01", "2025-01-01"),
        ("2024-Q4", "2024-10-01", "2025-01-01"),
        ("2024-02", "2024-02-01", "2024-03-01"),
        ("2024-12", "2024-12-01", "2025-01-01"),
        ("2024-02-29", "2024-02-29", "2024-03-01"),
        ("[2023-11, 2024-02]", "2023-11-01", "2024-03-01"),
        ("[2023-11, 2024-02)", "2023-11-01", "2024-02-01"),
        ("< 2024-Q2", None, "2024-04-01"),
        ("≥ 2024", "2024-01-01", None),
    ],
)
def test_leaves_of_a_calendar_are_periods(leaf: str, first: str | None, after: str | None) -> None:
    meaning = read_meaning("day", {"type": "date", "taxonomy": {"name": "*", "children": [{"name": leaf}]}})
    ends = (None if end is None else meaning.scalar(end) for end in (first, after))
    assert read_label(leaf, meaning) == ValueSet(intervals=(Interval(*ends),))


def test_leaves_of_a_calendar_that_are_moments_or_none() -> None:
    leaves = ["2024-01-01T12:30", "9999-12", "2024-13", "2024-Q5", "2024-02-30", "[2024-01, soon)", "≥ soon", "soon"]
    tree = {"name": "*", "children": [{"name": leaf} for leaf in leaves]}
    meaning = read_meaning("day", {"type": "date", "taxonomy": tree})
    moment = meaning.scalar("2024-01-01T12:30:00")
    assert read_label(leaves[0], meaning) == ValueSet(intervals=(Interval(moment, moment, closed=True),))
    last = read_label(leaves[1], meaning)
    assert last is not None
    assert last.intervals[0].upper == meaning.scalar("9999-12-31") + 86400
    assert [read_label(leaf, meaning) for leaf in leaves[2:]] == [None] * 6


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "continous"},
        {"type": "ordinal"},
        {"type": "ordinal", "order": ["a", "a"]},
        {"type": "continuous", "domain": [0]},
        {"type": "continuous", "domain": ["x", 5]},
        {"type": "date", "cuts": ["2024-31-12"]},
        {"type": "nominal", "taxonomy": {"children": []}},
        {"type": "nominal", "taxonomy": {"name": "*", "children": [{"name": "a"}, {"name": "a"}]}},
    ],
)
def test_a_meaning_with_a_fault_is_refused(entry: dict[str, object]) -> None:
    with pytest.raises(RecodingError):
        read_meaning("c", entry)


def test_bounds() -> None:
    meaning = read_meaning("age", {"type": "continuous", "domain": [0, 120], "cuts": [30, 60]})
    assert read_bounds("0", "30", "no", meaning=meaning) == interval("0", "30")
    assert read_bounds("60", "120", None, meaning=meaning) == interval("60", "120", closed=True)
    assert read_bounds("60.0", "120.0", None, meaning=meaning) == interval("60", "120", closed=True)
    assert read_bounds(None, "30", "possible", meaning=NUMBER) == ValueSet(
        missing=True, intervals=(Interval(None, Decimal(30)),)
    )
    assert read_bounds(None, None, "only", meaning=NUMBER) == ValueSet(missing=True)
    assert read_bounds(None, None, "possible", meaning=NUMBER) == ValueSet(missing=True, everything=True)
    assert read_bounds(None, None, "no", meaning=NUMBER) == ValueSet(everything=True)
    for lower, upper, missing in [("5", None, "only"), ("5", "4", "no"), ("a", "b", "no"), ("1", "2", "maybe")]:
        assert read_bounds(lower, upper, missing, meaning=NUMBER) is None


def test_an_inclusive_upper_bound_that_is_also_a_cut_belongs_to_the_last_interval() -> None:
    meaning = read_meaning("age", {"type": "continuous", "domain": [0, 120], "cuts": [60, 120]})
    assert read_bounds("60", "120", "no", meaning=meaning) == interval("60", "120")
    assert read_bounds("120", "120", "no", meaning=meaning) == interval("120", "120", closed=True)
