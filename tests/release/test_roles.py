# SPDX-License-Identifier: Apache-2.0
"""Every role, way to write and use of a release: it holds, or is refused in a sentence that says why."""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from releases import SECRET, made, said

from anonfit.api import anonymize, load
from anonfit.engines.memory.engine import MemoryEngine
from anonfit.errors import DataError, Infeasible, RequestError, SpecError
from anonfit.tables.taxonomy import Taxonomy

# --- bounds and raw columns -------------------------------------------------------------------------------------


def test_bounds_of_words_that_hold_commas() -> None:
    order = ["low", "mid, or so", "high"]
    release = made(
        {"stage": ["low", "low", "mid, or so", "high"]},
        types={"stage": "ordinal"},
        orders={"stage": order},
        values="bounds",
    )
    assert release.data["stage_upper"].to_list() == ["mid, or so", "mid, or so", None, None]


def test_names_of_bounds_must_be_free() -> None:
    with pytest.raises(RequestError, match="age_lower"):
        made({"age": [1, 2], "age_lower": [0, 0]}, insensitive=["age_lower"], values="bounds")


def test_thousands_of_raw_columns_cost_no_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame makes its schema anew each time it is asked: 5,000 columns that each asked for it took minutes."""
    asked = Counter[str]()
    found = MemoryEngine.schema

    def counted(engine: MemoryEngine) -> Any:
        asked["schema"] += 1
        return found.__get__(engine)

    monkeypatch.setattr(MemoryEngine, "schema", property(counted))
    raw = {f"raw {number}": [1, 1, 2, 2] for number in range(40)}
    made({"age": [1, 2, 3, 4], **raw}, insensitive=list(raw))
    assert asked["schema"] < 10


def test_a_column_without_a_name_is_refused() -> None:
    with pytest.raises(SpecError, match="without a name"):
        made({"": [1, 2, 3, 4]})


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(
            [0.0, -0.0, 0.0, -0.0],
        ),
        [1.5, None, -1.5, 1.5],
        [True, None, False, True],
        ["b", None, "a", "ä"],
        [b"x", None, b"y", b"x"],
        [Decimal("1.5"), None, Decimal("-2.5"), Decimal("1.5")],
        [date(2024, 1, 1), None, date(1900, 1, 1), date(2024, 1, 1)],
        [2**63 - 1, -(2**63), None, 0],
    ],
    ids=["zeros", "floats", "truths", "texts", "bytes", "decimals", "dates", "wide"],
)
def test_raw_columns_of_every_type_come_out_as_they_are(values: list[Any]) -> None:
    release = made({"age": [1] * 4, "raw": values, "n": [1, 2, 2, 1]}, insensitive=["raw", "n"], release=["raw"])
    assert Counter(map(repr, release.data["raw"].to_list())) == Counter(map(repr, values))


def test_raw_numbers_that_are_none_come_out_missing() -> None:
    release = made({"age": [1] * 4, "raw": [float("nan"), 1.0, None, float("nan")]}, insensitive=["raw"])
    assert Counter(release.data["raw"].to_list()) == {None: 3, 1.0: 1}


def test_raw_columns_that_tell_records_apart_need_consent() -> None:
    table = {"age": [1] * 20, "id": list(range(20)), "note": [SECRET + str(row) for row in range(20)]}
    with pytest.raises(SpecError, match="'id'.*100%.*name it in release") as caught:
        made(table, insensitive=["id", "note"])
    assert len(caught.value.faults) == 2
    assert SECRET not in str(caught.value)
    assert len(made(table, insensitive=["id", "note"], release=["id", "note"]).data) == 20


@pytest.mark.parametrize("role", ["count", "sample_weight"])
def test_weights_and_counts_that_tell_rows_apart_are_refused_too(role: str) -> None:
    table = {"age": [1] * 20, "n": list(range(5, 25))}
    with pytest.raises(SpecError, match=r"'n'.*100%.*name it in release"):
        made(table, **{role: "n"})
    assert len(made(table, **{role: "n"}, release=["n"]).data) == 20


@pytest.mark.parametrize("values", [[[1]] * 4, [{"a": 1}] * 4])
def test_raw_columns_of_nested_values_are_refused(values: list[Any]) -> None:
    with pytest.raises(DataError, match="column 'raw'.*plain values"):
        made({"age": [1] * 4, "raw": values}, insensitive=["raw"])


# --- roles ------------------------------------------------------------------------------------------------------


def test_nothing_undeclared_comes_out() -> None:
    frame = pl.DataFrame({"age": [1, 2, 3, 4], "ssn": list("abcd"), "note": list("wxyz"), "who": [1, 2, 3, 4]})
    release = anonymize(frame, quasi_identifiers=["age"], k=2, identifiers=["ssn", "note"], entity="who")
    assert release.data.columns == ["age"]
    with pytest.raises(SpecError, match="2 column.*no role: 'ssn', 'note'"):
        anonymize(frame, quasi_identifiers=["age"], k=2, identifiers=["who"])
    with pytest.raises(SpecError, match="no such column; did you mean 'age'"):
        anonymize(frame, quasi_identifiers=["aeg"], k=2, default_role="insensitive")
    named = anonymize(
        frame, quasi_identifiers=["age"], k=2, default_role="insensitive", identifiers=["ssn"], release=["note", "who"]
    )
    assert named.data.columns == ["age", "note", "who"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"quasi_identifiers": ["age"], "k": None}, "k is missing"),
        ({"quasi_identifiers": [], "k": 2, "insensitive": ["age"]}, "no column is a quasi-identifier"),
        ({"quasi_identifiers": ["age"], "k": 0}, "k must be at least 1"),
        ({"quasi_identifiers": ["age"], "k": 2.5}, "k must be a whole number"),
        ({"quasi_identifiers": ["age", "age"], "k": 2}, "quasi_identifiers names the column 'age' twice"),
        ({"quasi_identifiers": ["age"], "k": 2, "sensitive": ["age"]}, "two roles"),
        ({"quasi_identifiers": ["age"], "k": 2, "types": {"sex": "nominal"}}, "which has no role"),
        ({"quasi_identifiers": ["age"], "k": 2, "values": "label"}, "did you mean 'labels'"),
        ({"quasi_identifiers": ["age"], "k": 2, "order": "original"}, "consent = True"),
        ({"quasi_identifiers": ["age"], "k": 2, "regions": "observed"}, "consent = True"),
        (
            {"quasi_identifiers": ["age"], "k": 2, "regions": "observed", "consent": True, "values": "bounds"},
            "changes labels only",
        ),
        ({"quasi_identifiers": ["age"], "k": 2, "default_role": "target"}, "only 'insensitive'"),
        ({"quasi_identifiers": ["age"], "k": 2, "cut_points": "simple"}, "did you mean 'simplest'"),
        ({"quasi_identifiers": ["age"], "k": 2, "missing_policy": "ignore"}, "missing_policy"),
        ({"quasi_identifiers": ["age"], "k": 2, "types": {"age": "numeric"}}, "columns\\['age'\\]: type"),
    ],
)
def test_wrong_requests_are_refused_in_a_sentence(words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        anonymize({"age": [1, 2]}, **words)


def test_entities_and_counts() -> None:
    release = made({"age": [1, 1, 2, 9, 9, 9], "who": [1, 1, 2, 3, 4, 4]}, entity="who")
    assert said(release, "age") == {"< 5": 3, "≥ 5": 3}
    with pytest.raises(Infeasible, match="about 1 person"):
        made({"age": [1, 2], "who": ["x", "x"]}, entity="who")
    counted = made({"age": [1, 9], "n": [3, 2]}, count="n", release=["n"])
    assert said(counted, "age") == {"< 5": 1, "≥ 5": 1}
    with pytest.raises(SpecError, match="not both"):
        made({"age": [1, 2], "who": [1, 2], "n": [1, 1]}, entity="who", count="n")
    with pytest.raises(DataError, match="entity column 'who': 1 value"):
        made({"age": [1, 2], "who": [1, None]}, entity="who")


@pytest.mark.parametrize("counts", [[0, 1], [-1, 2], [1.5, 2.0], [None, 1], ["x", "1"]])
def test_counts_that_are_no_counts_are_refused(counts: list[Any]) -> None:
    with pytest.raises(DataError, match=r"count column 'n': 1 value.*whole numbers of at least 1"):
        made({"age": [1, 2], "n": counts}, count="n", release=["n"])


def test_counts_that_are_too_large_are_refused_as_such() -> None:
    with pytest.raises(DataError, match="count column 'n'") as caught:
        made({"age": [1, 2], "n": [2**33, 1]}, count="n", release=["n"])
    assert "0 values" not in str(caught.value)


def test_demands_for_sensitive_columns_are_not_passed_over() -> None:
    with pytest.raises(Infeasible):
        made({"age": [1, 2, 3, 4], "illness": list("abab")}, sensitive={"illness": {"model": "distinct-l", "l": 9}})


def test_a_way_to_split_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(RequestError, match="split"):
        made({"age": [1, 2, 3, 4]}, splits={"age": "subset"})


# --- new data ---------------------------------------------------------------------------------------------------

AGES = {"age": [20, 20, 40, 40, 60, 60]}


@pytest.mark.parametrize("order", ["sorted", "original"])
def test_new_data_loses_the_regions_that_are_too_small(order: str) -> None:
    release = made(AGES, order=order, consent=order == "original")
    more = release.extend(pl.DataFrame({"age": [1, 2, 99, 35, 36]}), suppression_limit=1.0)
    assert said(more, "age") == {"< 30": 2, "[30, 50)": 2}
    assert more._draft.rows.withheld == 1


def test_new_data_loses_rows_with_unseen_categories() -> None:
    taxonomy = Taxonomy.flat(["a", "b"])
    release = made({"job": list("aabb")}, taxonomies={"job": taxonomy})
    assert said(release.extend(pl.DataFrame({"job": ["z", "a", "a"]}), suppression_limit=1.0), "job") == {"a": 2}


def test_new_data_that_is_too_small_everywhere_is_infeasible() -> None:
    with pytest.raises(Infeasible, match="no region has 2 persons"):
        made(AGES).extend(pl.DataFrame({"age": [1, 99]}))


def test_a_loaded_release_can_be_extended(tmp_path: Path) -> None:
    release = made(
        {"age": [20, 20, 40, 40], "job": list("aabb"), "stage": ["lo", "lo", "hi", "hi"]},
        types={"stage": "ordinal"},
        orders={"stage": ["lo", "hi"]},
    )
    loaded = load(release.save(tmp_path / "release"))
    frame = pl.DataFrame({"age": [20, 20, 40, 40], "job": list("aabb"), "stage": ["lo", "lo", "hi", "hi"]})
    assert loaded.extend(frame).data.rows() == release.data.rows()


def test_pandas_in_pandas_out() -> None:
    frame = pd.DataFrame({"age": [1, 2, 8, 9], "n": [1, 1, 2, 2]}, index=[9, 9, 9, 9])
    release = anonymize(frame, quasi_identifiers=["age"], k=2, insensitive=["n"])
    assert release.data.to_dict("list") == {"age": ["< 5", "< 5", "≥ 5", "≥ 5"], "n": [1, 1, 2, 2]}
    assert isinstance(release.extend(frame).data, pd.DataFrame)
