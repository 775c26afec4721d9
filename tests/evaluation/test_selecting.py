# SPDX-License-Identifier: Apache-2.0
"""Selection by overlap against a slow reading of the released bounds and labels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from evaluation_tables import people, spec

import anonfit as af
from anonfit.errors import SpecError
from anonfit.evaluation.methods import method
from anonfit.evaluation.models import LearnedRecoding, answered, imprecision, nodes_of, satisfied
from anonfit.release.bind import schema_of
from anonfit.spec.model import SelectionSpec
from anonfit.tables.schema import persons_in

pytest.importorskip("sqlglot", reason="the extra sql is not installed")


def learned(frame: pl.DataFrame, k: int = 10, name: str = "infogain") -> LearnedRecoding:
    asked = spec()
    schema = schema_of(asked, frame.columns)
    return LearnedRecoding(method(name).recode(frame, asked, k, 0), schema, frame, persons_in(schema, frame), k)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["infogain", "median"])
def test_released_rows_are_taken_if_their_region_overlaps(seed: int, name: str) -> None:
    frame = people(200, seed)
    found = learned(frame, 4, name)
    bounds = found.recoding.apply(frame, values="bounds")
    low = int(np.random.default_rng(seed).integers(25, 65))
    rows = answered(found, f"age >= {low} and job in ('miner', 'nurse')", frame, nodes_of(found.recoding, frame))
    for taken, row in zip(rows.tolist(), bounds.iter_rows(named=True), strict=True):
        reaches = row["age_upper"] is None or row["age_upper"] > low
        holds = row["job"] == "*" or any(job in row["job"] for job in ("miner", "nurse"))
        assert taken == (reaches and holds)


def test_columns_that_are_released_raw_are_exact() -> None:
    frame = people(200)
    found = learned(frame)
    rows = answered(found, "hours >= 30", frame, nodes_of(found.recoding, frame))
    assert rows.tolist() == (frame["hours"] >= 30).to_list()


def test_nobody_who_satisfies_a_predicate_is_left_out() -> None:
    frame = people(300)
    found = learned(frame)
    where = "age between 30 and 41 or (job = 'smith' and hours < 20)"
    rows = answered(found, where, frame, nodes_of(found.recoding, frame))
    truth = satisfied(where, found.schema, frame)
    assert truth.sum() > 20
    assert (rows | ~truth).all()
    assert rows.sum() > truth.sum()


def test_imprecision_counts_rows_that_are_taken_in_vain() -> None:
    frame = people(300)
    found = learned(frame)
    nodes = nodes_of(found.recoding, frame)
    asked = [SelectionSpec(where="age >= 33", weight=2.0), SelectionSpec(where="job = 'nurse'")]
    vain = [
        answered(found, where, frame, nodes).sum() - satisfied(where, found.schema, frame).sum()
        for where in (one.where or "" for one in asked)
    ]
    assert vain[0] > 0
    assert imprecision(found, asked, nodes) == 2.0 * vain[0] + vain[1]


def test_a_predicate_that_cannot_be_read_is_named() -> None:
    frame = people(50)
    schema = schema_of(spec(), frame.columns)
    with pytest.raises(SpecError, match="where = 'agee > 3'.*did you mean 'age'"):
        satisfied("agee > 3", schema, frame)


def test_a_predicate_may_ask_for_values_between_those_that_rows_have() -> None:
    # Nobody is between 28 and 51, but the region of the elder begins at 40.
    frame = pl.DataFrame({"age": [20, 25, 28, 51, 55, 60]})
    asked = af.parse_spec("version = 1\n[columns.age]\nrole = 'quasi-identifier'\n[privacy]\nk = 3")
    schema = schema_of(asked, frame.columns)
    found = LearnedRecoding(method("median").recode(frame, asked, 3, 0), schema, frame, persons_in(schema, frame), 3)
    assert found.recoding.apply(frame)["age"].to_list() == ["< 40"] * 3 + ["≥ 40"] * 3
    rows = answered(found, "age >= 45 and age < 50", frame, nodes_of(found.recoding, frame))
    assert rows.tolist() == [False] * 3 + [True] * 3
