# SPDX-License-Identifier: Apache-2.0
"""Failures of other anonymizers (B1 to B31), asked of this one: each test says what must hold and which failure it is."""

from __future__ import annotations

import copy
import datetime as dt
import itertools
import json
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

import anonfit as af
from anonfit.errors import DataError, Infeasible, RecodingError, ReleaseError, SpecError, TaxonomyError
from anonfit.tables.taxonomy_builders import dates, from_cuts, intervals
from waivers import waived


def missed(found: af.Audit) -> set[str]:
    return {finding.name for finding in found.findings if finding.met is False}


def texts(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    """The rows as a multiset, categories as texts."""
    return sorted(frame.with_columns(pl.col(pl.Enum, pl.Categorical).cast(pl.String)).rows(), key=repr)


def smallest(frame: pl.DataFrame, names: list[str]) -> int:
    """The size of the smallest group, counted plainly."""
    return min(frame.group_by(names).len()["len"])


def patients(rows: int = 240, seed: int = 0) -> pl.DataFrame:
    rng = random.Random(seed)
    return pl.DataFrame(
        {
            "age": [rng.randint(0, 95) for _ in range(rows)],
            "zip": [rng.choice(["10115", "10117", "20095", "20097", "80331"]) for _ in range(rows)],
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=rng.randint(0, 300)) for _ in range(rows)],
            "illness": [rng.choice("abcde") for _ in range(rows)],
        }
    )


QUASI = ["age", "zip", "day"]

# --- missing values -----------------------------------------------------------------------------------------------

GAPS = {
    "polars null": pl.Series([30, 30, 30, None]),
    "polars NaN": pl.Series([30.0, 30.0, 30.0, float("nan")]),
    "polars text": pl.Series(["x", "x", "x", None]),
    "pandas NaN": pd.Series([30, 30, 30, np.nan]),
    "pandas None": pd.Series([30, 30, 30, None], dtype=object),
    "pandas NA": pd.Series([30, 30, 30, pd.NA], dtype="Int64"),
    "pandas NaT": pd.Series(pd.to_datetime(["2024-01-01"] * 3 + [None])),
    "pandas category": pd.Series(["x", "x", "x", None], dtype="category"),
    "pandas text": pd.Series(["x", "x", "x", np.nan]),
}


@pytest.mark.parametrize("values", GAPS.values(), ids=GAPS)
def test_missing_counts_as_one_value_for_one_and_for_two_columns(values: Any) -> None:
    """B1: a single missing value is a group of one, with one quasi-identifier as with two, whatever marks it."""
    make = pl.DataFrame if isinstance(values, pl.Series) else pd.DataFrame
    one = af.audit(make({"a": values}), quasi_identifiers=["a"], k=3)
    two = af.audit(make({"a": values, "b": [7] * 4}), quasi_identifiers=["a", "b"], k=3)
    assert one.k == two.k == 1
    assert not one.passed
    assert not two.passed


def test_kinds_of_missing_values_in_one_column_are_one_value() -> None:
    """B1: None, NaN, NA and the empty text do not make groups of their own."""
    frame = pd.DataFrame({"a": pd.Series(["x", "x", None, np.nan, pd.NA, ""], dtype=object)})
    assert af.audit(frame, quasi_identifiers=["a"]).k == 2


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_no_row_vanishes_because_a_value_is_missing(width: int, kind: str) -> None:
    """B2: rows in are rows out."""
    columns = {f"c{place}": [float(row) if (row + place) % 4 else None for row in range(40)] for place in range(width)}
    frame = pl.DataFrame(columns) if kind == "polars" else pd.DataFrame(columns)
    release = af.anonymize(frame, quasi_identifiers=list(columns), k=3)
    assert len(release.data) == len(frame)
    assert release.report["rows"] == {"released": 40, "read": 40, "dropped": 0, "withheld": 0}


def test_rows_left_out_on_purpose_are_counted() -> None:
    """B2: rows in are rows out and those that the policy dropped or that were withheld."""
    frame = patients().with_columns(age=pl.when(pl.int_range(pl.len()) % 6 > 0).then("age"))
    words: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": waived("illness"), "k": 4}
    dropped = af.anonymize(frame, **words, missing_policy="drop")
    assert dropped.report["rows"] == {"released": 200, "read": 240, "dropped": 40, "withheld": 0}
    extended = af.anonymize(frame, **words).extend(patients(seed=1), suppression_limit=1.0)
    counts = extended.report["rows"]
    assert counts["withheld"] > 4
    assert counts["released"] + counts["withheld"] == counts["read"] == 240
    assert len(extended.data) == counts["released"]


@pytest.mark.parametrize("kind", ["number", "text"])
def test_the_values_of_a_row_with_a_missing_value_do_not_escape(tmp_path: Path, kind: str) -> None:
    """B3: age 20 to 31 and one missing, zip 99 only there, k = 3: nothing says 99."""
    frame = pl.DataFrame({"age": [*range(20, 32), None], "zip": [10] * 6 + [20] * 6 + [99]})
    if kind == "text":
        frame = frame.cast({"zip": pl.String})
    release = af.anonymize(frame, quasi_identifiers=["age", "zip"], k=3)
    assert smallest(release.data, ["age", "zip"]) >= 3
    assert not any("99" in text for text in release.data["zip"].cast(pl.String))
    release.save(tmp_path / "release", format="csv")
    for name in ("data.csv", "recoding.json", "report.json"):
        content = (tmp_path / "release" / name).read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])99(?![\w.])", content), name


def test_a_missing_sensitive_value_is_a_value() -> None:
    """B4: its row stays, and it counts in diversity."""
    frame = pl.DataFrame({"age": [1, 1, 1, 1], "illness": ["a", "a", None, None]})
    release = af.anonymize(frame, quasi_identifiers=["age"], sensitive=waived("illness"), k=4)
    assert release.data["illness"].to_list() == [None, None, "a", "a"]
    found = af.audit(
        release.data,
        quasi_identifiers=["age"],
        diversity=[{"column": "illness", "model": "distinct-l", "l": 2}],
    )
    assert found.passed
    assert found.diversity[0].found is not None
    assert found.diversity[0].found.value == 2


def test_a_missing_value_is_never_turned_into_data() -> None:
    """B21: the label says that it may be missing; bounds say so too; a representative is empty."""
    frame = pl.DataFrame({"age": [None, None, *range(20, 40)]})
    words: dict[str, Any] = {"quasi_identifiers": ["age"], "k": 3}
    recoding = af.anonymize(frame, **words).recoding
    assert all(text.startswith("missing") for text in recoding.apply(frame)["age"].cast(pl.String)[:2])
    assert recoding.apply(frame, values="bounds")["age_missing"].to_list()[:2] == ["possible"] * 2
    assert recoding.apply(frame, values="representative")["age"].to_list()[:2] == [None] * 2
    assert af.anonymize(frame, **words, values="representative").data["age"].null_count() >= 2


def test_a_value_the_recoding_does_not_know_is_never_turned_into_data() -> None:
    """B21: a suppressed row says nothing, in labels, bounds and representatives."""
    known = pl.DataFrame({"age": list(range(20)), "zip": ["a", "b"] * 10})
    recoding = af.anonymize(known, quasi_identifiers=["age", "zip"], k=3).recoding
    strange = pl.DataFrame({"age": [5], "zip": ["c"]})
    assert recoding.apply(strange, unseen="suppress").row(0) == ("*", "*")
    for values in ("bounds", "representative"):
        assert set(recoding.apply(strange, unseen="suppress", values=values).row(0)) <= {None, "*"}


def test_diversity_counts_missing_quasi_identifiers_as_a_group() -> None:
    """B25: the group of those whose age is missing has one illness only, with one quasi-identifier as with two."""
    frame = pl.DataFrame({"age": [30, 30, None, None], "sex": list("ffff"), "illness": ["a", "b", "a", "a"]})
    demand = [{"column": "illness", "model": "distinct-l", "l": 2}]
    for names in (["age"], ["age", "sex"]):
        found = af.audit(frame, quasi_identifiers=names, k=2, diversity=demand)
        assert found.k == 2
        assert missed(found) == {"distinct-l"}


# --- order, index, kinds of input ---------------------------------------------------------------------------------


def test_no_figure_depends_on_the_index_or_the_order_of_rows() -> None:
    """B5: sorted, filtered, shuffled, doubled and named indexes give the same audit."""
    frame = pd.DataFrame({"z": [2, 1, 2, 1], "s": ["a", "b", "a", "b"]})
    words: dict[str, Any] = {
        "quasi_identifiers": ["z"],
        "sensitive": ["s"],
        "k": 2,
        "diversity": [{"column": "s", "model": "distinct-l", "l": 2}],
    }
    plain = af.audit(frame, **words)
    assert plain.diversity[0].found is not None
    assert plain.diversity[0].found.value == 1
    others = [
        frame.sort_values("z"),
        frame.sample(frac=1, random_state=3),
        frame.set_index(pd.Index([9, 9, 9, 9])),
        frame.set_index(pd.Index(list("dcba"), name="z")),
        pd.concat([frame, frame])[4:],
        pd.concat([frame.assign(s="x"), frame]).query("s != 'x'"),
    ]
    for other in others:
        assert af.audit(other, **words).to_dict() == plain.to_dict()


def test_no_recoding_depends_on_the_index_or_the_order_of_rows() -> None:
    """B5: the same for the recoding and the released table."""
    frame = patients().to_pandas()
    words: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": waived("illness"), "k": 5}
    plain = af.anonymize(frame, **words)
    for other in (frame.sample(frac=1, random_state=1), frame.set_index(pd.Index([4] * len(frame)))):
        found = af.anonymize(other, **words)
        assert found.recoding.to_json() == plain.recoding.to_json()
        assert_frame_equal(found.data, plain.data)


def test_a_doubled_index_and_an_index_of_several_levels_are_only_names_of_rows() -> None:
    """B7: they are kept by apply, do not come out of anonymize, and change nothing."""
    frame = patients(60).to_pandas()
    words: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": waived("illness"), "k": 5}
    plain = af.anonymize(frame, **words)
    levels = pd.MultiIndex.from_product([list("ab"), range(30)], names=["age", "row"])
    for index in (pd.Index([0, 1, 2] * 20), levels):
        strange = frame.set_index(index)
        release = af.anonymize(strange, **words)
        assert_frame_equal(release.data, plain.data)
        assert list(release.data.index) == list(range(60))
        recoded = release.recoding.apply(strange)
        assert recoded.index.equals(index)
        assert_frame_equal(recoded.reset_index(drop=True), plain.recoding.apply(frame))


DTYPES = {
    "object": lambda n: pd.Series([f"v{i % 4}" for i in range(n)], dtype=object),
    "category": lambda n: pd.Series([f"v{i % 4}" for i in range(n)], dtype="category"),
    "ordered category": lambda n: pd.Series(pd.Categorical([i % 4 for i in range(n)], ordered=True)),
    "string": lambda n: pd.Series([f"v{i % 4}" for i in range(n)], dtype="string"),
    "arrow string": lambda n: pd.Series([f"v{i % 4}" for i in range(n)], dtype="string[pyarrow]"),
    "bool": lambda n: pd.Series([i % 2 == 0 for i in range(n)]),
    "nullable bool": lambda n: pd.Series([None if i % 5 == 0 else i % 2 == 0 for i in range(n)], dtype="boolean"),
    "int8": lambda n: pd.Series(range(-n // 2, n - n // 2), dtype="int8"),
    "uint64": lambda n: pd.Series([2**62 + i for i in range(n)], dtype="uint64"),
    "nullable int": lambda n: pd.Series([None if i % 5 == 0 else i for i in range(n)], dtype="Int64"),
    "float32": lambda n: pd.Series([i / 10 for i in range(n)], dtype="float32"),
    "nullable float": lambda n: pd.Series([None if i % 5 == 0 else i / 10 for i in range(n)], dtype="Float64"),
    "date objects": lambda n: pd.Series([dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(n)]),
    "datetime": lambda n: pd.Series(pd.date_range("2024-01-01", periods=n, freq="7h")),
    "datetime with zone": lambda n: pd.Series(pd.date_range("2024-03-30", periods=n, freq="7h", tz="Europe/Paris")),
    "decimal objects": lambda n: pd.Series([Decimal(i) / 100 for i in range(n)], dtype=object),
    "mixed objects": lambda n: pd.Series([i % 3 if i % 2 else f"v{i % 3}" for i in range(n)], dtype=object),
    "polars decimal": lambda n: pl.Series([Decimal(i) / 100 for i in range(n)], dtype=pl.Decimal(10, 2)),
    "polars enum": lambda n: pl.Series([f"v{i % 4}" for i in range(n)], dtype=pl.Enum(["v0", "v1", "v2", "v3"])),
    "polars milliseconds": lambda n: pl.Series(range(n), dtype=pl.Datetime("ms")),
    "polars nanoseconds": lambda n: pl.Series([i * 10**15 + i for i in range(n)], dtype=pl.Datetime("ns")),
    "polars int128": lambda n: pl.Series(range(n), dtype=pl.Int128),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", DTYPES.values(), ids=DTYPES)
def test_a_quasi_identifier_of_any_plain_type_is_generalized(tmp_path: Path, make: Any) -> None:
    """B15: texts need not be categories; every type is grouped, audited as written, and recoded as it was."""
    values = make(40)
    frame = (pl.DataFrame if isinstance(values, pl.Series) else pd.DataFrame)({"a": values, "b": [1, 2] * 20})
    release = af.anonymize(frame, quasi_identifiers=["a"], insensitive=["b"], k=5)
    found = af.audit(release.data, quasi_identifiers=["a"], k=5)
    assert found.passed
    assert found.sizes.groups > 1
    folder = release.save(tmp_path / "release", format="csv")
    assert missed(af.audit_release(folder, source=frame)) == set()
    assert sorted(map(str, release.recoding.apply(frame)["a"])) == sorted(map(str, release.data["a"]))


REFUSED = {
    "lengths of time": pl.Series([dt.timedelta(days=i) for i in range(10)]),
    "lists": pl.Series([[i] for i in range(10)]),
    "more than 63 bits": pl.Series([2**63 + i for i in range(10)], dtype=pl.UInt64),
    "infinite numbers": pl.Series([float("inf"), *map(float, range(9))]),
}


@pytest.mark.parametrize("values", REFUSED.values(), ids=REFUSED)
def test_a_quasi_identifier_that_cannot_be_ordered_is_refused_in_a_sentence(values: pl.Series) -> None:
    """B15: an error that names the column, not a TypeError."""
    with pytest.raises(DataError, match="'a'"):
        af.anonymize(pl.DataFrame({"a": values}), quasi_identifiers=["a"], k=2)


def test_nothing_that_was_given_is_changed() -> None:
    """B16: frames of every kind, lists, taxonomies and orders."""
    tree = {"name": "*", "children": [{"name": "1", "children": [{"name": "10115"}, {"name": "10117"}]},
            {"name": "2", "children": [{"name": "20095"}, {"name": "20097"}]}, {"name": "80331"}]}  # fmt: skip
    given: dict[str, Any] = {
        "quasi_identifiers": ["age", "zip"],
        "identifiers": ["day"],
        "sensitive": waived("illness"),
        "taxonomies": {"zip": tree},
        "k": 5,
    }
    before = copy.deepcopy(given)
    frame = patients()
    others = [frame.clone(), frame.to_pandas().set_index(pd.Index([7] * 240)), frame.to_arrow()]
    copies = [frame.clone(), others[1].copy(deep=True), pa.table(frame.to_arrow())]
    for other in others:
        release = af.anonymize(other, **given)
        release.recoding.apply(other)
        af.audit(other, quasi_identifiers=["age"], sensitive=["illness"], source=other)
    assert given == before
    assert others[0].equals(copies[0])
    assert_frame_equal(others[1], copies[1])
    assert others[2].equals(copies[2])


def test_recoding_twice_is_recoding_once() -> None:
    """B20, as far as there are no estimators: apply has no state, keeps the index, and takes categories."""
    frame = patients().to_pandas().astype({"zip": "category"}).set_index(pd.RangeIndex(1000, 1240))
    recoding = af.anonymize(frame, quasi_identifiers=QUASI, sensitive=waived("illness"), k=5).recoding
    once = recoding.apply(frame)
    assert_frame_equal(recoding.apply(frame), once)
    assert once.index.equals(frame.index)
    part = frame.sample(17, random_state=2)
    assert_frame_equal(recoding.apply(part).astype(str), once.loc[part.index].astype(str))


# --- demands that cannot be met, and edges ------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 4])
def test_fewer_persons_than_k_make_no_release(rows: int) -> None:
    """B6: k above the number of rows is infeasible."""
    with pytest.raises(Infeasible, match="k = 5"):
        af.anonymize(patients(rows), quasi_identifiers=QUASI, sensitive=waived("illness"), k=5)


def test_fewer_persons_than_k_are_found_by_the_audit() -> None:
    """B6: also where all rows are one group."""
    assert missed(af.audit(pl.DataFrame({"a": [1, 1, 1]}), quasi_identifiers=["a"], k=4)) == {"k"}


def test_more_diversity_than_there_are_values_is_found() -> None:
    """B6: l above the number of different values cannot be met."""
    frame = pl.DataFrame({"a": [1] * 4, "s": list("xyxy")})
    found = af.audit(frame, quasi_identifiers=["a"], diversity=[{"column": "s", "model": "distinct-l", "l": 3}])
    assert missed(found) == {"distinct-l"}


def test_edges_of_demands_are_demands() -> None:
    """B8: 1 is not "unset", and what asks nothing is refused, not ignored."""
    frame = pl.DataFrame({"a": [1, 2, 3, 3], "s": ["x"] * 4})
    finest = af.anonymize(frame, quasi_identifiers=["a"], insensitive=["s"], k=1)
    assert finest.data["a"].n_unique() == 3
    found = af.audit(frame, quasi_identifiers=["a"], k=1, max_risk=1.0)
    assert {finding.name for finding in found.findings} == {"k", "prosecutor risk"}
    assert found.passed
    assert found.prosecutor.highest.value == 1
    with pytest.raises(SpecError, match="needs 'l', a number above 1"):
        af.audit(frame, quasi_identifiers=["a"], diversity=[{"column": "s", "model": "distinct-l", "l": 1}])
    for words in ({"k": 0}, {"max_risk": 0.0}, {"sampling_fraction": 0.0}):
        with pytest.raises(DataError):
            af.audit(frame, quasi_identifiers=["a"], **words)
    with pytest.raises(SpecError, match="at least 1"):
        af.anonymize(frame, quasi_identifiers=["a"], insensitive=["s"], k=0)


def test_no_row_may_be_withheld_where_none_is_asked_for() -> None:
    """B8: withheld = 0 is a demand."""
    frame = pl.DataFrame({"a": ["x", "x", "y"], "b": [1, 2, 3]})
    found = af.audit(frame[:2], quasi_identifiers=["a"], source=frame, withheld=0)
    assert missed(found) == {"withheld rows"}


@pytest.mark.parametrize("k", [2, 3, 10])
def test_a_group_of_exactly_k_is_enough_and_one_less_is_not(k: int) -> None:
    """B28: in the audit, for the whole table, and for a cut."""
    frame = pl.DataFrame({"a": ["x"] * k + ["y"] * (k + 1)})
    assert af.audit(frame, quasi_identifiers=["a"], k=k).passed
    assert not af.audit(frame[1:], quasi_identifiers=["a"], k=k).passed
    numbers = pl.DataFrame({"a": list(range(2 * k))})
    assert af.anonymize(numbers[:k], quasi_identifiers=["a"], k=k).data.height == k
    assert af.anonymize(numbers, quasi_identifiers=["a"], k=k).data["a"].n_unique() == 2
    assert af.anonymize(numbers[1:], quasi_identifiers=["a"], k=k).data["a"].n_unique() == 1
    with pytest.raises(Infeasible):
        af.anonymize(numbers[: k - 1], quasi_identifiers=["a"], k=k)


def test_a_column_that_says_nothing_breaks_nothing() -> None:
    """B23: constant and empty columns, as sensitive columns and as quasi-identifiers."""
    frame = pl.DataFrame(
        {
            "age": list(range(20)),
            "same": [3.5] * 20,
            "empty": pl.Series([None] * 20, dtype=pl.Float64),
            "words": pl.Series([None] * 20, dtype=pl.String),
            "some": [None, "a"] * 10,
        }
    )
    sensitive = ["same", "empty", "words", "some"]
    release = af.anonymize(frame, quasi_identifiers=["age"], sensitive=waived(*sensitive), k=4)
    found = af.audit(release.data, quasi_identifiers=["age"], sensitive=sensitive, k=4)
    assert found.passed
    assert {column.name: column.certain.persons for column in found.raw_columns if column.name != "some"} == {
        "same": 20,
        "empty": 20,
        "words": 20,
    }
    coarse = af.anonymize(frame, quasi_identifiers=list(frame.columns), k=4)
    assert smallest(coarse.data, coarse.data.columns) >= 4
    assert coarse.data.n_unique("age") > 1


# --- labels -------------------------------------------------------------------------------------------------------

STRANGE = ["a-b", "a,b", "a~b", "a;b", "a, b", "a", "b", "b, a", "{a", "b}", "{a, b}", '"a"', "a\nb", " a", "a ", "*",
           "missing", "missing or a", "not missing", "[1, 2)", "< 3", "≥ 3", "-1", "1e-05", "other", "Smith, J", "Doe"]  # fmt: skip
SCALES = {
    "negative": [-5.0, -4.5, -3.0, -2.0, -1.0, -0.5] * 4,
    "exponents": [1e-05, 2e-05, 0.1, 1e22, -1e-300, 1e300] * 4,
    "close": [0.1, 0.1 + 2**-56, 0.3, 0.1 + 0.2, 5e-324, 0.0] * 4,
    "long": [2**53, 2**53 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63)] * 4,
    "dates": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)] * 6,
    "times": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 2, 29, 0, 0, 0, 1)] * 12,
}


@pytest.mark.parametrize("cut_points", ["simplest", "value"])
@pytest.mark.parametrize("values", SCALES.values(), ids=SCALES)
def test_labels_of_numbers_and_dates_are_read_back(tmp_path: Path, values: list[Any], cut_points: str) -> None:
    """B9: negatives, exponents, neighbours, dates: the audit reads every label and finds every raw value in its own."""
    frame = pl.DataFrame({"a": values})
    release = af.anonymize(frame, quasi_identifiers=["a"], k=4, cut_points=cut_points, consent=cut_points == "value")
    assert release.data["a"].n_unique() > 1
    folder = release.save(tmp_path / "release", format="csv")
    found = af.audit_release(folder, source=frame)
    assert missed(found) == set()
    assert found.unchecked == ()
    assert texts(af.load(folder).recoding.apply(frame)) == texts(release.data)


def test_labels_of_strange_names_are_read_back(tmp_path: Path) -> None:
    """B9: names that hold the signs labels are made of."""
    frame = pl.DataFrame({"a": STRANGE * 4, "x": list(range(4 * len(STRANGE)))})
    release = af.anonymize(frame, quasi_identifiers=["a", "x"], k=4)
    folder = release.save(tmp_path / "release", format="csv")
    found = af.audit_release(folder, source=frame)
    assert missed(found) == set()
    assert found.unchecked == ()


@pytest.mark.parametrize("split", ["subset", "binary", "multiway"])
def test_two_different_sets_never_have_one_label(split: str) -> None:
    """B10: also where names hold commas, quotes and braces."""
    rng = random.Random(4)
    frame = pl.DataFrame(
        {"a": [rng.choice(STRANGE) for _ in range(600)], "x": [rng.randint(0, 60) for _ in range(600)]}
    )
    recoding = af.anonymize(frame, quasi_identifiers=["a", "x"], k=3, splits={"a": split}).recoding
    grid = pl.DataFrame(list(itertools.product(STRANGE, range(61))), schema=["a", "x"], orient="row")
    labels = recoding.apply(grid).with_columns(pl.all().cast(pl.String)).with_columns(raw=grid["a"])
    by_region: dict[tuple[str, str], set[str]] = {}
    for label, interval, raw in labels.rows():
        by_region.setdefault((label, interval), set()).add(raw)
    meant: dict[str, set[frozenset[str]]] = {}
    for (label, _), names in by_region.items():
        meant.setdefault(label, set()).add(frozenset(names))
    assert len(meant) > 5
    assert all(len(sets) == 1 for sets in meant.values())


def inside(value: float, label: str) -> bool:
    """Whether a number is in an interval, read by hand."""
    text = label.removeprefix("missing or ")
    if text == "*":
        return True
    if text.startswith("< "):
        return value < float(text[2:])
    if text.startswith("≥ "):
        return value >= float(text[2:])
    if re.fullmatch(r"-?\d+", text):
        return value == float(text)  # one whole number alone
    low, high = text[1:-1].split(", ")
    return float(low) <= value < float(high) or (text.endswith("]") and value == float(high))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", [int, float])
def test_a_value_lies_in_its_own_interval_of_a_taxonomy(tmp_path: Path, kind: type, k: int) -> None:
    """B11: 10 and 20 with a step of 10 are in [10, 20) and [20, 30); values beyond the ends have leaves of their own."""
    taxonomy = intervals(0, 30, step=10)
    assert taxonomy.leaves == ("< 0", "[0, 10)", "[10, 20)", "[20, 30)", "≥ 30")
    values = [kind(value) for value in (-5, -1, 0, 9, 10, 10, 19, 20, 20, 29, 30, 31)] * 3
    frame = pl.DataFrame({"a": values})
    release = af.anonymize(frame, quasi_identifiers=["a"], k=k, taxonomies={"a": taxonomy})
    labels = release.recoding.apply(frame)["a"].cast(pl.String)
    found = dict(zip(values, labels, strict=True))
    assert found[10] == "[10, 20)"
    assert found[20] == "[20, 30)"
    assert all(inside(value, label) for value, label in found.items())
    folder = release.save(tmp_path / "release")
    assert missed(af.audit_release(folder, source=frame)) == set()


def test_a_value_outside_a_closed_taxonomy_is_an_error_that_tells_its_row() -> None:
    """B11: 31 with intervals up to 30, and −5."""
    frame = pl.DataFrame({"a": [-5, 5, 15, 30, 31] * 3})
    with pytest.raises(TaxonomyError, match=r"'a': 2 of its 5 distinct.*\(first in row 1, 5, 6\)"):
        af.anonymize(frame, quasi_identifiers=["a"], k=3, taxonomies={"a": intervals(0, 30, step=10, open_ends=False)})
    inner = frame.filter(pl.col("a").is_between(0, 30))
    release = af.anonymize(
        inner, quasi_identifiers=["a"], k=3, taxonomies={"a": intervals(0, 30, step=10, open_ends=False)}
    )
    assert all(map(inside, inner["a"], release.recoding.apply(inner)["a"].cast(pl.String)))
    with pytest.raises(RecodingError, match="'a'"):
        release.recoding.apply(frame)


@pytest.mark.parametrize("kind", [int, float, Decimal])
def test_a_value_lies_in_its_own_interval_between_given_cuts(tmp_path: Path, kind: type) -> None:
    """B11: the same for given cut points."""
    frame = pl.DataFrame({"a": [kind(value) for value in range(70)]})
    taxonomies = {"a": from_cuts([[18, 25, 65], [65]])}
    release = af.anonymize(frame, quasi_identifiers=["a"], k=5, taxonomies=taxonomies)
    labels = release.recoding.apply(frame)["a"].cast(pl.String)
    assert len(set(labels)) == 4
    assert all(map(inside, map(float, frame["a"]), labels))
    assert missed(af.audit_release(release.save(tmp_path / "release"), source=frame)) == set()


CALENDARS = [
    pytest.param(dt.date, ["day", "month"], id="days"),
    pytest.param(dt.date, ["month", "year"], id="months"),
    pytest.param(dt.date, ["quarter"], id="quarters"),
    pytest.param(dt.datetime, ["day", "month"], id="days of times"),
]


@pytest.mark.parametrize(("kind", "levels"), CALENDARS)
def test_a_day_lies_in_its_own_period(tmp_path: Path, kind: type, levels: list[str]) -> None:
    """B11: the same for the calendar; days before and after it have leaves of their own."""
    clock = (17, 45) if kind is dt.datetime else ()
    days = [kind(2023, 12, 25, *clock) + dt.timedelta(days=step) for step in range(200) for _ in range(2)]
    frame = pl.DataFrame({"a": days})
    taxonomies = {"a": dates(dt.date(2024, 1, 1), dt.date(2024, 6, 30), levels=levels)}
    release = af.anonymize(frame, quasi_identifiers=["a"], k=2, taxonomies=taxonomies)
    labels = dict(zip(days, release.recoding.apply(frame)["a"].cast(pl.String), strict=True))
    period = {"day": "2024-02-29", "month": "2024-02", "quarter": "2024-Q1"}[levels[0]]
    assert labels[kind(2024, 2, 29, *clock)] == period
    assert labels[kind(2024, 3, 1, *clock)] != period or levels[0] == "quarter"
    assert labels[kind(2023, 12, 31, *clock)] == "< 2024-01-01"
    assert labels[kind(2024, 7, 1, *clock)] == "≥ 2024-07-01"
    assert missed(af.audit_release(release.save(tmp_path / "release"), source=frame)) == set()


def test_a_range_holds_all_its_members_and_is_tight_only_on_consent(tmp_path: Path) -> None:
    """B30: regions hold their members; observed ranges end at members, and need consent."""
    frame = patients().select("age", "illness")
    words: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": waived("illness"), "k": 5}
    labels = af.anonymize(frame, **words).recoding.apply(frame)["age"].cast(pl.String)
    assert all(map(inside, frame["age"], labels))
    with pytest.raises(SpecError, match="consent"):
        af.anonymize(frame, **words, regions="observed")
    observed = af.anonymize(frame, **words, regions="observed", consent=True)
    ranges = [label.strip("[]").partition(", ") for label in observed.data["age"].cast(pl.String).unique()]
    ends = {int(end) for low, _, high in ranges for end in (low, high or low)}
    assert ends <= set(frame["age"])
    for low, high in labels.to_frame("label").with_columns(age=frame["age"]).group_by("label").agg(
        low=pl.col("age").min(), high=pl.col("age").max()
    ).select("low", "high").rows():  # fmt: skip
        assert {low, high} <= ends
    assert missed(af.audit_release(observed.save(tmp_path / "release"), source=frame)) == set()


@pytest.mark.parametrize("seed", range(4))
def test_labels_never_overlap_and_a_record_has_one_region(tmp_path: Path, seed: int) -> None:
    """B31: ties stay together; any record, seen or not, lies in the labels of one group at most."""
    rng = random.Random(seed)
    frame = pl.DataFrame(
        {"a": [rng.choice([1, 1, 1, 2, 3, 9]) for _ in range(80)], "b": [rng.randint(0, 9) for _ in range(80)]}
    )
    release = af.anonymize(frame, quasi_identifiers=["a", "b"], k=4)
    found = af.audit_release(release.save(tmp_path / "release"), source=frame)
    assert missed(found) == set()
    assert found.labels is not None
    assert found.labels.overlapping == 0
    assert found.source is not None
    assert found.source.in_several.persons == 0
    again = release.recoding.apply(frame)
    assert (
        pl.concat([frame, again.rename({"a": "x", "b": "y"})], how="horizontal").unique().height
        == frame.unique().height
    )
    groups = release.data.cast(pl.String).unique().rows()
    for a, b in itertools.product((-1, 0.5, 1, 1.5, 2, 2.5, 9, 10), (-1, 0, 4.5, 9, 99)):
        holding = [group for group in groups if inside(a, group[0]) and inside(b, group[1])]
        (recoded,) = release.recoding.apply(pl.DataFrame({"a": [a], "b": [b]}, strict=False)).cast(pl.String).rows()
        assert holding in ([], [recoded])


# --- columns ------------------------------------------------------------------------------------------------------


def test_nothing_comes_out_that_was_not_declared(tmp_path: Path) -> None:
    """B12: no index, no row number, no identifier; also where rows were dropped, withheld or suppressed."""
    frame = patients().with_columns(pl.int_range(pl.len()).alias("id"), age=pl.when(pl.col("age") > 9).then("age"))
    words: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": waived("illness"), "identifiers": ["id"], "k": 5}
    wanted = [*QUASI, "illness"]
    strange = frame.to_pandas().set_index(pd.Index(range(500, 740), name="row"))
    release = af.anonymize(strange, **words, missing_policy="drop")
    assert list(release.data.columns) == wanted
    assert list(release.data.index) == list(range(len(release.data)))
    extended = release.extend(strange, suppression_limit=1.0)
    assert list(extended.data.columns) == wanted
    assert list(extended.data.index) == list(range(len(extended.data)))
    folder = extended.save(tmp_path / "release")
    assert pl.read_parquet(folder / "data.parquet").columns == wanted
    assert missed(af.audit_release(folder, source=frame)) == set()


def test_a_raw_column_needs_a_role_and_one_that_tells_records_apart_needs_consent() -> None:
    """B22: columns that are neither quasi-identifier nor sensitive are not passed through in silence."""
    frame = patients().with_columns(note=pl.int_range(pl.len()))
    words: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": waived("illness"), "k": 5}
    with pytest.raises(SpecError, match="'note'"):
        af.anonymize(frame, **words)
    with pytest.raises(SpecError, match="100% of its values are distinct"):
        af.anonymize(frame, **words, insensitive=["note"])
    released = af.anonymize(frame, **words, release=["note"])
    together = {column.name: column.smallest for column in af.audit(released.data, quasi_identifiers=QUASI).raw_columns}
    assert together["note"] == 1


def test_a_value_outside_its_taxonomy_is_an_error_that_tells_column_and_row() -> None:
    """B13: not a KeyError; and a missing value needs no leaf."""
    zips = af.Taxonomy.from_paths([("10115", "1", "*"), ("10117", "1", "*"), ("20095", "2", "*")])
    frame = pl.DataFrame({"zip": ["10115", "10117", "20095", "99999"] * 3})
    with pytest.raises(TaxonomyError, match=r"'zip': 1 of its 4 distinct.*\(first in row 4, 8, 12\)"):
        af.anonymize(frame, quasi_identifiers=["zip"], k=2, taxonomies={"zip": zips})
    gaps = frame.with_columns(pl.col("zip").replace("99999", None))
    release = af.anonymize(gaps, quasi_identifiers=["zip"], k=3, taxonomies={"zip": zips})
    assert release.data["zip"].cast(pl.String).value_counts().sort("zip").rows() == [
        ("10115", 3), ("10117", 3), ("20095", 3), ("missing", 3),
    ]  # fmt: skip
    with pytest.raises(RecodingError, match="'zip'"):
        release.recoding.apply(frame)


# --- what is split ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
def test_a_median_that_is_also_an_end_does_not_stop_the_cutting(sign: int) -> None:
    """B14: 60 zeros and 1 to 40, k = 5: the zeros are one group, the others are cut further."""
    frame = pl.DataFrame({"a": [0] * 60 + [sign * value for value in range(1, 41)]})
    sizes = af.anonymize(frame, quasi_identifiers=["a"], k=5).data["a"].value_counts()["count"]
    assert sorted(sizes) == [5] * 8 + [60]


def test_ties_on_both_sides_of_the_median_do_not_stop_the_cutting() -> None:
    """B14: the nearest cut that both sides allow is found, however far it is."""
    frame = pl.DataFrame({"a": [0] * 3 + [5] * 94 + [9] * 3})
    assert sorted(af.anonymize(frame, quasi_identifiers=["a"], k=3).data["a"].value_counts()["count"]) == [3, 3, 94]
    assert af.anonymize(frame, quasi_identifiers=["a"], k=4).data["a"].n_unique() == 1


@pytest.mark.parametrize("split", ["subset", "binary", "multiway"])
def test_nominal_columns_alone_are_split(split: str) -> None:
    """B17: a table of categories only is not one class."""
    frame = pl.DataFrame({"a": list("abcd") * 20, "b": ["x"] * 40 + ["y"] * 40})
    release = af.anonymize(frame, quasi_identifiers=["a", "b"], k=5, splits={"a": split, "b": split})
    assert release.data.n_unique() == 8
    assert smallest(release.data, ["a", "b"]) == 10


@pytest.mark.parametrize("factor", [1000, 1024, -1])
def test_the_unit_of_a_column_does_not_matter(factor: int) -> None:
    """B19: ages in thousandths give the same groups (turned round: groups as small)."""
    frame = patients()
    words: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": waived("illness"), "k": 5}
    plain = af.anonymize(frame, **words)
    scaled_frame = frame.with_columns(age=pl.col("age") * factor)
    scaled = af.anonymize(scaled_frame, **words)
    if factor > 0:
        one, two = plain.recoding.apply(frame), scaled.recoding.apply(scaled_frame)
        pairs = pl.concat([one.select(QUASI), two.select(QUASI).rename(str.upper)], how="horizontal").unique()
        assert len(pairs) == one.select(QUASI).n_unique() == two.select(QUASI).n_unique()
    assert smallest(scaled.data, QUASI) >= 5
    assert sorted(scaled.data["illness"]) == sorted(frame["illness"])


def test_every_column_is_tried_and_raw_values_are_kept() -> None:
    """B19: where the widest column cannot be cut, another is; the sensitive column is the same multiset."""
    frame = pl.DataFrame({"wide": [0] * 19 + [10**6], "narrow": [1, 2] * 10, "illness": list("abcde") * 4})
    release = af.anonymize(frame, quasi_identifiers=["wide", "narrow"], sensitive=waived("illness"), k=5)
    assert release.data["narrow"].n_unique() == 2
    assert sorted(release.data["illness"]) == sorted(frame["illness"])


def test_values_pooled_because_they_are_rare_are_counted_again() -> None:
    """B29: two rare names of one person each are together 2 of the 3 persons asked for, so they do not stand alone."""
    frame = pl.DataFrame({"a": ["x"] * 5 + ["y"] * 5 + ["rare 1", "rare 2"]})
    release = af.anonymize(frame, quasi_identifiers=["a"], k=3)
    assert smallest(release.data, ["a"]) >= 3
    labels = set(release.data["a"].cast(pl.String))
    assert "other" not in labels
    assert not any("rare" in label for label in labels)
    enough = af.anonymize(pl.concat([frame, frame[-1:]]), quasi_identifiers=["a"], k=3)
    assert enough.data["a"].cast(pl.String).value_counts().sort("a").rows() == [("other", 3), ("x", 5), ("y", 5)]


@pytest.mark.parametrize("seed", range(5))
def test_pooled_values_never_make_a_group_too_small(seed: int) -> None:
    """B29: with several columns, counts and persons of several rows."""
    rng = random.Random(seed)
    frame = pl.DataFrame(
        {
            "a": [rng.choice("xxxxyyyz") if rng.random() < 0.9 else f"rare {rng.randint(0, 30)}" for _ in range(120)],
            "b": [rng.choice("uuuvw") if rng.random() < 0.9 else f"rare {rng.randint(0, 30)}" for _ in range(120)],
            "whose": [rng.randint(0, 50) for _ in range(120)],
        }
    )
    words: dict[str, Any] = {"quasi_identifiers": ["a", "b"], "k": 4}
    for extra in ({"insensitive": ["whose"]}, {"entity": "whose"}):
        release = af.anonymize(frame, **words, **extra)
        persons = release.recoding.apply(frame).group_by("a", "b").agg(pl.len(), pl.col("whose").n_unique())
        assert min(persons["whose" if "entity" in extra else "len"]) >= 4


def test_every_set_of_several_quasi_identifiers_is_counted() -> None:
    """B24: one pair of three columns has a combination of 2 persons where 3 are asked for."""
    frame = pl.DataFrame({"a": list("xxxxyyyy"), "b": list("uuuuuuvv"), "c": list("mmmmmmmm")})
    pairs = [{"columns": list(pair), "k": 3} for pair in itertools.combinations("abc", 2)]
    found = af.audit(frame, quasi_identifiers=["a", "b", "c"], quasi_identifier_sets=pairs)
    assert [finding.met for finding in found.findings] == [False, True, False]
    assert {finding.where for finding in found.findings if finding.met is False} == {"a, b", "b, c"}


def test_a_release_holds_for_every_set_of_its_quasi_identifiers() -> None:
    """B24: what holds for all columns together holds for some; and several sets cannot yet be asked of a release."""
    release = af.anonymize(patients(), quasi_identifiers=QUASI, sensitive=waived("illness"), k=5)
    sets = [list(some) for size in (1, 2, 3) for some in itertools.combinations(QUASI, size)]
    assert af.audit(release.data, quasi_identifiers=QUASI, k=5, quasi_identifier_sets=sets).passed
    text = """version = 1
[data]
source = "a.csv"
[columns.a]
role = "quasi-identifier"
[privacy]
k = 2
[[privacy.quasi_identifiers]]
columns = ["a"]
"""
    with pytest.raises(SpecError, match="quasi_identifiers is for algorithm = 'tdr' only"):
        af.parse_spec(text)


# --- what is written ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_suppressed_rows_mean_the_same_after_a_round_trip(tmp_path: Path, kind: str) -> None:
    """B26: rows of stars are one group of their own, reported as such, before and after."""
    frame = pl.DataFrame({"a": ["x"] * 5 + ["y"] * 4, "b": [1, 2, 3] * 3})
    recoding = af.anonymize(frame, quasi_identifiers=["a"], insensitive=["b"], k=4).recoding
    new = pl.concat([frame, pl.DataFrame({"a": ["strange"] * 2, "b": [1, 1]})])
    written = recoding.apply(new, unseen="suppress")
    assert written["a"].cast(pl.String).to_list()[-2:] == ["*", "*"]
    path = tmp_path / f"written.{kind}"
    written.write_csv(path) if kind == "csv" else written.write_parquet(path)
    before, after = (af.audit(data, quasi_identifiers=["a"], k=4).to_dict() for data in (written, path))
    assert before == after
    found = af.audit(path, quasi_identifiers=["a"], k=4)
    assert found.suppressed_rows.persons == 2
    assert found.k == 2
    assert found.sizes.groups == 3


def test_suppressed_rows_are_withheld_from_a_release() -> None:
    """B26: a release has no rows of stars whose sizes could be misread."""
    frame = pl.DataFrame({"a": ["x"] * 5 + ["y"] * 5})
    release = af.anonymize(frame, quasi_identifiers=["a"], k=5)
    extended = release.extend(pl.concat([frame, pl.DataFrame({"a": ["strange"] * 7})]), suppression_limit=1.0)
    assert extended.report["rows"] == {"released": 10, "read": 17, "dropped": 0, "withheld": 7}
    assert set(extended.data["a"].cast(pl.String)) == {"x", "y"}


def test_the_taxonomy_that_is_shown_is_the_one_that_was_used(tmp_path: Path) -> None:
    """B27: a taxonomy file that was edited is read again; the folder holds the one it was made with, and its hash."""
    file = tmp_path / "zip.csv"
    frame = pl.DataFrame({"zip": ["a", "b", "c", "d"] * 3})

    def made(text: str, name: str) -> tuple[set[str], dict[str, Any]]:
        file.write_text(text)
        folder = af.anonymize(frame, quasi_identifiers=["zip"], k=6, taxonomies={"zip": file}).save(tmp_path / name)
        recoding = json.loads((folder / "recoding.json").read_text(encoding="utf-8"))
        assert len(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]["recoding.json"]) == 64
        shown: dict[str, Any] = recoding["columns"][0]["taxonomy"]
        return set(af.load(folder).data["zip"].cast(pl.String)), shown

    first, first_shown = made("a,ab,*\nb,ab,*\nc,cd,*\nd,cd,*\n", "first")
    second, second_shown = made("a,ad,*\nd,ad,*\nb,bc,*\nc,bc,*\n", "second")
    assert first == {"ab", "cd"}
    assert second == {"ad", "bc"}
    assert [child["name"] for child in first_shown["children"]] == ["ab", "cd"]
    assert [child["name"] for child in second_shown["children"]] == ["ad", "bc"]
    assert set(af.load(tmp_path / "first").extend(frame).data["zip"].cast(pl.String)) == first


def test_a_recoding_that_was_edited_is_not_used(tmp_path: Path) -> None:
    """B27: what the manifest was written for is what is loaded and what the audit accepts."""
    folder = af.anonymize(patients(), quasi_identifiers=QUASI, sensitive=waived("illness"), k=5).save(
        tmp_path / "release"
    )
    file = folder / "recoding.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"continuous"', '"continuous" '), encoding="utf-8")
    assert missed(af.audit_release(folder)) == {"files", "layout"}
    with pytest.raises(ReleaseError, match="changed"):
        af.load(folder)


# --- workloads and estimators ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["age = 30 and zip = '10115'", "age > 1000", "age between 20 and 21"])
def test_a_selection_of_few_rows_or_none_still_gives_a_valid_release(where: str) -> None:
    """B18: what is asked for need not have k rows."""
    release = af.anonymize(patients(), quasi_identifiers=QUASI, sensitive=waived("illness"), k=5, selections=[where])
    sizes = release.data.group_by(QUASI).len()["len"]
    assert sizes.min() >= 5
    assert sizes.sum() == len(patients())


def test_an_estimator_can_be_fitted_again_and_keeps_the_index() -> None:
    """B20: text columns, a second call on the same object, and rows that stay where they were."""
    pandas = pytest.importorskip("pandas")
    rows = patients().select(QUASI).to_pandas()
    rows.index = pandas.Index(range(1000, 1000 + len(rows)))
    target = patients()["illness"].to_list()
    anonymizer = af.Anonymizer(k=5)
    first = anonymizer.set_output(transform="pandas").fit(rows, target).transform(rows)
    second = anonymizer.fit(rows, target).transform(rows)
    assert first.equals(second)
    assert first.index.equals(rows.index)


# --- all of them --------------------------------------------------------------------------------------------------


def test_every_failure_is_asked() -> None:
    asked = {
        found
        for name, thing in globals().items()
        if name.startswith("test_")
        for found in re.findall(r"^B\d+(?=[:,])", thing.__doc__ or "")
    }
    assert asked == {f"B{number}" for number in range(1, 32)}
