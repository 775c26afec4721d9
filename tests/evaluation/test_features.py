# SPDX-License-Identifier: Apache-2.0
"""What learners see of rows: by hand, and the same by labels and by nodes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.evaluation.models import (
    ENCODINGS,
    nodes_of,
    one_value_features,
    plain_features,
    recoded_features,
)
from anonfit.recoding.recoding import Recoding
from anonfit.tables.schema import Column, ColumnType, Role

AGES = pl.DataFrame({"age": [21, 22, 41, 42], "job": ["a", "b", "c", "c"]})


def halves() -> Recoding:
    """Ages below and from 30, jobs undivided."""
    return af.anonymize(
        AGES, quasi_identifiers=["age", "job"], k=2, split_on=["age"], domains={"job": ["a", "b", "c"]}
    ).recoding


def mixed(rows: int = 300, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    texts: list[str | None] = ["f", "m", None]
    return pl.DataFrame(
        {
            "age": rng.integers(20, 80, rows),
            "sex": [texts[place] for place in rng.integers(0, 3, rows)],
            "grade": rng.choice(["low", "mid", "high"], rows),
            "day": pl.Series(rng.integers(15000, 16000, rows)).cast(pl.Date),
            "job": rng.choice(list("abcdefg"), rows),
            "note": rng.choice(["u", "v"], rows),
        }
    )


def test_the_two_ends_of_regions() -> None:
    recoding = halves()
    found = recoded_features(recoding, nodes_of(recoding, AGES), "ends").frame()
    # One cut at 30: open sides are closed as far from the cut as it is from 0.
    assert found.columns == ["age_lower", "age_upper", "job_lower", "job_upper"]
    assert found["age_lower"].to_list() == [0, 0, 30, 30]
    assert found["age_upper"].to_list() == [30, 30, 60, 60]
    assert found["job_lower"].to_list() == [0] * 4
    assert found["job_upper"].to_list() == [2] * 4


def test_what_is_expected_of_regions() -> None:
    recoding = halves()
    found = recoded_features(recoding, nodes_of(recoding, AGES), "expected").frame()
    assert found["age"].to_list() == [15, 15, 45, 45]
    assert found["job=b"].to_list() == pytest.approx([1 / 3] * 4)


def test_a_raw_value_is_a_region_that_holds_nothing_else() -> None:
    recoding = halves()
    ends = one_value_features(recoding, AGES, "ends").frame()
    assert ends["age_lower"].to_list() == ends["age_upper"].to_list() == [21, 22, 41, 42]
    assert ends["job_lower"].to_list() == ends["job_upper"].to_list() == [0, 1, 2, 2]
    expected = one_value_features(recoding, AGES, "expected").frame()
    assert expected.select("job=a", "job=b", "job=c").rows() == [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 1)]


def test_a_name_that_is_not_known_may_be_any() -> None:
    recoding = halves()
    unknown = AGES.with_columns(job=pl.lit("z"))
    assert one_value_features(recoding, unknown, "ends").frame()["job_upper"].to_list() == [2] * 4
    shares = one_value_features(recoding, unknown, "expected").frame().select("job=a", "job=b", "job=c")
    assert shares.row(0) == pytest.approx((1 / 3,) * 3)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("seed", range(3))
def test_labels_and_nodes_give_the_same_features(encoding: str, seed: int) -> None:
    frame = mixed(seed=seed)
    names = ["age", "sex", "grade", "day", "job"]
    release = af.anonymize(
        frame,
        quasi_identifiers=names,
        insensitive=["note"],
        k=5,
        types={"grade": "ordinal"},
        orders={"grade": ["low", "mid", "high"]},
    )
    encoder = af.RegionEncoder(encoding, release.recoding)
    by_label = pl.DataFrame(
        encoder.fit_transform(release.data.drop("note")), schema=encoder.get_feature_names_out().tolist()
    )
    by_node = recoded_features(release.recoding, nodes_of(release.recoding, frame), encoding).frame()
    assert by_label.columns == by_node.columns
    assert by_label.sort(by_node.columns).equals(by_node.sort(by_node.columns))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_missing_raw_values_are_told(encoding: str) -> None:
    frame = mixed()
    recoding = af.anonymize(frame.select("age", "sex"), quasi_identifiers=["age", "sex"], k=5).recoding
    found = one_value_features(recoding, frame, encoding).frame()
    assert found["sex_missing"].to_list() == frame["sex"].is_null().cast(pl.Float64).to_list()


def test_raw_features_are_numbers_ranks_days_and_texts() -> None:
    columns = [
        Column("age", Role.QUASI_IDENTIFIER),
        Column("grade", Role.QUASI_IDENTIFIER, ColumnType.ORDINAL, ("low", "mid", "high")),
        Column("day", Role.QUASI_IDENTIFIER, ColumnType.DATE, date_format="%d.%m.%Y"),
        Column("code", Role.QUASI_IDENTIFIER, ColumnType.NOMINAL),
    ]
    frame = pl.DataFrame({"age": [30, None], "grade": ["high", "low"], "day": ["02.01.1970", None], "code": [7, 8]})
    found = plain_features(columns, frame).frame()
    assert found["age"].to_numpy()[0] == 30
    assert np.isnan(found["age"].to_numpy()[1])
    assert found["grade"].to_list() == [2, 0]
    assert found["day"].to_numpy()[0] == 1
    assert found["code"].to_list() == ["7", "8"]


def test_columns_can_be_chosen_and_nothing_is_a_feature_too() -> None:
    found = plain_features([Column("age", Role.INSENSITIVE), Column("job", Role.INSENSITIVE)], AGES)
    assert found.frame(["job"]).columns == ["job"]
    assert found.frame(["cost"]).to_dict(as_series=False) == {"nothing": [0.0] * 4}
    assert found.taken(np.array([2, 0])).frame(["age"])["age"].to_list() == [41, 21]
