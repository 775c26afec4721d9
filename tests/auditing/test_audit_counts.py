# SPDX-License-Identifier: Apache-2.0
"""Small tables counted by hand, and the faults of other auditors (peers.md: B1, B5, B23, B25, B26, B28)."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from anonfit.auditing.api import audit
from anonfit.auditing.result import Audit
from anonfit.errors import DataError, SpecError


def by_name(found: Audit, name: str) -> Any:
    return next(column for column in found.raw_columns if column.name == name)


def test_a_table_counted_by_hand() -> None:
    frame = pl.DataFrame({
        "age": ["< 30"] * 4 + ["≥ 30"] * 10,
        "sick": ["flu", "flu", "flu", "cold"] + ["flu"] * 9 + ["cold"],
        "cost": [1.0, 2.0, 3.0, 4.0] + [5.0] * 10,
    })  # fmt: skip
    found = audit(frame, quasi_identifiers=["age"], sensitive=["sick"], k=5)
    assert (found.rows, found.persons, found.k, found.sizes.groups) == (14, 14, 4, 2)
    assert not found.passed
    assert found.sizes.groups_below_k.value == 1
    assert found.sizes.persons_below_k.persons == 4
    assert (found.sizes.lower_quartile, found.sizes.median, found.sizes.upper_quartile) == (4, 4, 10)
    assert [(one.low, one.high, one.groups.value, one.persons.persons) for one in found.sizes.histogram] == [
        (3, 4, 1, 4),
        (10, 19, 1, 10),
    ]
    assert found.prosecutor.highest.value == 0.25
    assert found.prosecutor.average.value == 2 / 14
    assert found.marketer.value == pytest.approx(2 / 14)
    assert [(one.threshold, one.above.persons) for one in found.prosecutor.above] == [(0.2, 4), (0.09, 14), (0.05, 14)]
    sick, cost = by_name(found, "sick"), by_name(found, "cost")
    assert (sick.certain.persons, sick.likely.persons, sick.smallest) == (0, 10, 1)
    assert (cost.certain.persons, cost.likely.persons, cost.smallest, cost.distinct.value) == (10, 10, 1, 5 / 14)
    assert [(one.column, one.found.value) for one in found.diversity] == [("sick", 2)]


MISSING = [
    pl.DataFrame({"a": [30.0, 30.0, 30.0, float("nan")]}),
    pl.DataFrame({"a": [30, 30, 30, None]}),
    pl.DataFrame({"a": ["x", "x", "x", ""]}),
    pl.DataFrame({"a": pl.Series(["x", "x", "x", None], dtype=pl.Categorical)}),
    pl.DataFrame({"a": pl.Series(["x", "x", "x", ""], dtype=pl.Enum(["x", ""]))}),
    pd.DataFrame({"a": [30, 30, 30, np.nan]}),
    pd.DataFrame({"a": ["x", "x", "x", None]}),
    pd.DataFrame({"a": pd.array([1, 1, 1, pd.NA], dtype="Int64")}),
    pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 3 + [None])}),
    pd.DataFrame({"a": pd.Series(["x", "x", "x", float("nan")], dtype=object)}),
]


@pytest.mark.parametrize("frame", MISSING, ids=range(len(MISSING)))
def test_b1_missing_is_a_value_for_one_and_for_two_quasi_identifiers(frame: Any) -> None:
    assert audit(frame, quasi_identifiers=["a"]).k == 1
    double = frame.assign(b=1) if isinstance(frame, pd.DataFrame) else frame.with_columns(b=pl.lit(1))
    assert audit(double, quasi_identifiers=["a", "b"]).k == 1
    assert audit(double, quasi_identifiers=["b", "a"]).sizes.groups == 2


def test_missing_of_all_kinds_is_one_value() -> None:
    frame = pd.DataFrame({"a": pd.Series([None, pd.NA, float("nan"), "", "x", "x"], dtype=object)})
    assert [audit(frame, quasi_identifiers=["a"]).k, audit(frame, quasi_identifiers=["a"]).sizes.largest] == [2, 4]
    assert audit(frame, quasi_identifiers=["a"], missing=["", "x"]).k == 6


def test_b5_index_and_row_order_do_not_matter() -> None:
    frame = pd.DataFrame({"q": [1, 1, 2, 2], "s": ["a", "a", "b", "c"], "z": [3, 1, 2, 0]})
    wanted = audit(frame, quasi_identifiers=["q"], sensitive=["s"]).to_dict()
    assert wanted["diversity"][0]["found"] == 1
    for other in (
        frame.sort_values("z"),
        frame.set_index(pd.Index([7, 7, 7, 7])),
        frame.set_index(pd.MultiIndex.from_tuples([(1, 1), (1, 1), (2, 2), (0, 0)])),
        frame.iloc[[3, 1, 0, 2]],
    ):
        before = other.copy()
        assert audit(other, quasi_identifiers=["q"], sensitive=["s"]).to_dict() == wanted
        pd.testing.assert_frame_equal(other, before)


def test_a_filtered_index_works() -> None:
    frame = pd.DataFrame({"q": [1, 1, 2, 2, 3], "s": list("aabcd")})
    assert audit(frame[frame.q < 3], quasi_identifiers=["q"], sensitive=["s"]).k == 2


@pytest.mark.parametrize("values", [[5.0] * 4, [None] * 4, ["x", None, "x", None], [float("nan")] * 4])
def test_b23_b25_constant_and_missing_sensitive_values(values: list[Any]) -> None:
    frame = pl.DataFrame({"q": [1, 1, None, None], "s": values})
    found = audit(frame, quasi_identifiers=["q"], sensitive=["s"])
    assert found.diversity[0].found.value == len({str(value) for value in values})


def test_b25_diversity_with_missing_quasi_identifiers() -> None:
    frame = pl.DataFrame({"q": [None, None, 1, 1], "s": ["a", "a", "a", "b"]})
    assert audit(frame, quasi_identifiers=["q"], sensitive=["s"]).diversity[0].found.value == 1


def test_b26_suppressed_rows_are_a_group_and_counted() -> None:
    frame = pl.DataFrame({"q": ["*", "*", "*", "a", "a"], "r": ["*", "*", "*", "b", "b"]})
    found = audit(frame, quasi_identifiers=["q", "r"], k=3)
    assert (found.k, found.sizes.groups, found.suppressed_rows.persons, found.rows) == (2, 2, 3, 5)
    half = audit(frame.with_columns(r=pl.lit("b")), quasi_identifiers=["q", "r"])
    assert half.suppressed_rows.persons == 0


@pytest.mark.parametrize("k", [1, 2, 5, 11])
def test_b28_a_group_of_exactly_k_is_accepted_and_one_less_refused(k: int) -> None:
    frame = pl.DataFrame({"q": ["a"] * k + ["b"] * (k + 3)})
    assert audit(frame, quasi_identifiers=["q"], k=k).passed
    assert not audit(frame, quasi_identifiers=["q"], k=k + 1).passed


def test_counts_and_entities() -> None:
    frame = pl.DataFrame({"q": ["a", "a", "b"], "n": [3, 1, 5], "who": ["u", "u", "v"], "s": ["x", "y", "x"]})
    counted = audit(frame, quasi_identifiers=["q"], count="n", sensitive=["s"], k=4)
    assert (counted.k, counted.persons, counted.counted, counted.passed) == (4, 9, "count column", True)
    assert by_name(counted, "s").smallest == 1
    entities = audit(frame, quasi_identifiers=["q"], entity="who", sensitive=["s"], k=2)
    assert (entities.k, entities.persons, entities.counted) == (1, 2, "entities")
    assert by_name(entities, "s").certain.persons == 2


def test_a_person_in_several_groups_is_one_person() -> None:
    frame = pl.DataFrame({"q": ["a", "b", "b"], "who": ["u", "u", "v"]})
    assert audit(frame, quasi_identifiers=["q"], entity="who").persons == 2


@pytest.mark.parametrize("bad", [[1, 0], [1, None], [1.5, 2.0], ["1", "x"], [-1, 2]])
def test_a_count_column_holds_whole_numbers(bad: list[Any]) -> None:
    with pytest.raises(DataError, match="count column 'n'"):
        audit(pl.DataFrame({"q": ["a", "b"], "n": bad}), quasi_identifiers=["q"], count="n")


def test_several_quasi_identifiers_each_with_its_k() -> None:
    frame = pl.DataFrame({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2]})
    sets = [{"columns": ["a"], "k": 2}, {"columns": ["a", "b"], "k": 2}, ["b"]]
    found = audit(frame, quasi_identifiers=["a", "b"], k=3, quasi_identifier_sets=sets)
    assert [one.sizes.smallest for one in found.sets] == [2, 1, 2]
    assert [(finding.where, finding.met) for finding in found.findings] == [("a", True), ("a, b", False), ("b", False)]


def test_diversity_demands() -> None:
    frame = pl.DataFrame({"q": [1, 1, 2, 2], "s": ["a", "b", "a", "a"]})
    ask = {"column": "s", "model": "distinct-l"}
    assert audit(frame[:2], quasi_identifiers=["q"], diversity=[{**ask, "l": 2}]).passed
    found = audit(frame, quasi_identifiers=["q"], diversity=[{**ask, "l": 2}])
    assert [(finding.name, finding.where, finding.found, finding.met) for finding in found.findings] == [
        ("distinct-l", "s", 1, False)
    ]
    with pytest.raises(SpecError, match="distinct-l"):
        audit(frame, quasi_identifiers=["q"], diversity=[{"column": "s", "model": "distint-l", "l": 2}])
    with pytest.raises(DataError, match="'t'"):
        audit(frame, quasi_identifiers=["q"], diversity=[{**ask, "column": "t", "l": 2}])


ODD: dict[str, list[Any]] = {
    "bool": [True, False, None, True],
    "decimal": [Decimal("1.50"), Decimal("1.5"), None, Decimal("-2")],
    "date": [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 1), datetime.date(1900, 1, 1)],
    "datetime": [
        datetime.datetime(2020, 1, 1, 5),
        None,
        datetime.datetime(2020, 1, 1, 5),
        datetime.datetime(1900, 1, 1),
    ],
    "time": [datetime.time(5), None, datetime.time(5), datetime.time(6)],
    "duration": [datetime.timedelta(1), None, datetime.timedelta(1), datetime.timedelta(2)],
    "float": [0.0, -0.0, float("nan"), 1e300],
    "bytes": [b"a", b"a", None, b"b"],
}


@pytest.mark.parametrize("name", list(ODD))
def test_columns_of_every_type(name: str) -> None:
    frame = pl.DataFrame({"q": [1, 1, 1, 1], "c": ODD[name]}, strict=False)
    assert audit(frame, quasi_identifiers=["c"]).sizes.groups == 3
    assert by_name(audit(frame, quasi_identifiers=["q"], sensitive=["c"]), "c").distinct.value == 0.75


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"q": [], "s": []}),
        pl.DataFrame(schema={"q": pl.Int64, "s": pl.String}),
        pd.DataFrame({"q": [], "s": []}),
    ],
)
def test_a_table_without_rows_is_no_pass(frame: Any) -> None:
    asked: dict[str, Any] = {"k": 5, "order": "sorted", "max_risk": 0.2}
    asked |= {"diversity": [{"column": "s", "model": "t-closeness", "t": 0.2}], "quasi_identifiers": ["q"]}
    found = audit(frame, **asked)
    assert (found.rows, found.k, found.passed, found.sizes.groups) == (0, None, False, 0)
    assert [(one.name, one.met) for one in found.findings] == [
        ("rows", False),
        ("k", None),
        ("t-closeness", None),
        ("row order", True),
    ]
    assert "no rows" in found.findings[0].sentence
    assert not audit(frame, quasi_identifiers=["q"]).passed


def test_one_row() -> None:
    assert audit(pl.DataFrame({"q": [1]}), quasi_identifiers=["q"], k=1).passed


@pytest.mark.parametrize("frame", [pl.DataFrame(), pl.DataFrame({"s": [1, 2, 3]})])
def test_no_quasi_identifiers_are_no_audit(frame: pl.DataFrame) -> None:
    with pytest.raises(DataError, match="needs quasi-identifiers"):
        audit(frame, quasi_identifiers=[], k=3)
    with pytest.raises(DataError, match="list of columns"):
        audit(frame, quasi_identifiers="s", k=3)


def test_many_quasi_identifiers_with_wide_values() -> None:
    numbers = np.random.default_rng(0)
    frame = pl.DataFrame({f"q{i}": numbers.integers(-(2**62), 2**62, 200) for i in range(30)})
    doubled = pl.concat([frame, frame])
    found = audit(doubled, quasi_identifiers=frame.columns, k=2)
    assert (found.k, found.sizes.groups, found.sizes.largest) == (2, 200, 2)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ({"quasi_identifiers": ["aeg"]}, "did you mean 'age'"),
        ({"quasi_identifiers": ["age"], "sensitive": ["sic"]}, "did you mean 'sick'"),
        ({"quasi_identifiers": ["age", "age"]}, "twice"),
        ({"quasi_identifiers": ["age"], "sensitive": ["age"]}, "Both"),
        ({"quasi_identifiers": ["age"], "entity": "age"}, "entity"),
        ({"quasi_identifiers": ["age"], "entity": "who"}, "neither"),
        ({"quasi_identifiers": ["age"], "k": 0}, "at least 1"),
        ({"quasi_identifiers": ["age"], "sampling_fraction": 0.0}, "fraction"),
        ({"quasi_identifiers": ["age"], "withheld": 1}, "source"),
        ({"quasi_identifiers": ["age"], "other": pl.DataFrame()}, "source"),
        ({"quasi_identifiers": ["age"], "attacker": "journalist", "max_risk": 0.1}, "population"),
        ({"quasi_identifiers": ["age"], "max_risk": "ema"}, "ema-0070"),
        ({"quasi_identifiers": ["age"], "max_risk": 0.0}, "threshold"),
        ({"quasi_identifiers": ["age"], "quasi_identifier_sets": [["sick"]]}, "none"),
        ({"quasi_identifiers": ["age"], "quasi_identifier_sets": ["age"]}, "list"),
    ],
)
def test_wrong_requests_are_refused_in_a_sentence(ask: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        audit(pl.DataFrame({"age": [1, 2], "sick": [1, 2]}), **ask)


def test_nested_columns_are_refused() -> None:
    with pytest.raises(DataError, match="nested"):
        audit(pl.DataFrame({"q": [1], "s": [[1, 2]]}), quasi_identifiers=["q"])
