# SPDX-License-Identifier: Apache-2.0
"""What holds of every release, whatever the table: rows are accounted for, groups are large enough, labels are true."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from label_reader import LabelReader
from people import MAKERS, Request, as_pandas, requests

from anonfit.api import Release, anonymize, load
from anonfit.errors import Infeasible
from anonfit.recoding.columns import OrderedCells
from anonfit.tables.frames import from_frame
from strategies import tries

pytestmark = pytest.mark.filterwarnings("error")


def released(request: Request, source: Any = None, **words: Any) -> Release:
    """The release that is asked for, of its own frame or of another source."""
    source = request.frame if source is None else source
    return anonymize(source, quasi_identifiers=request.quasi_identifiers, k=request.k, **(request.words | words))


def rows_of(frame: Any, names: list[str]) -> Counter[tuple[Any, ...]]:
    """The rows of a frame of any kind, as a multiset of plain values."""
    return Counter(from_frame(frame).select(names).rows())


def labelled(request: Request, release: Release, **words: Any) -> pl.DataFrame:
    """The raw table with its quasi-identifiers recoded, row for row."""
    return release.recoding.apply(request.frame, **words)


def groups(labels: pl.DataFrame, names: list[str]) -> dict[tuple[Any, ...], list[int]]:
    """The rows that have the same labels."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for row, said in enumerate(labels.select(names).rows()):
        found.setdefault(said, []).append(row)
    return found


def partition(labels: pl.DataFrame, names: list[str]) -> set[frozenset[int]]:
    return {frozenset(rows) for rows in groups(labels, names).values()}


# --- what a release holds ---------------------------------------------------------------------------------------


@given(requests())
@tries(60)
def test_rows_are_accounted_for_and_groups_are_large_enough(request: Request) -> None:
    assume(request.persons >= request.k)
    before = request.frame.clone()
    release = released(request)
    names = request.quasi_identifiers
    labels = labelled(request, release)
    counted = [*names, *request.raw, *(["many"] if "count" in request.words else [])]
    assert len(release.data) == len(request.frame)
    assert sorted(release.data.columns) == sorted(counted)
    assert rows_of(release.data, counted) == rows_of(labels, counted)
    assert all(request.persons_of(rows) >= request.k for rows in groups(labels, names).values())
    assert request.frame.equals(before)
    assert request.frame.schema == before.schema


@given(requests())
@tries(60)
def test_every_raw_value_lies_in_its_label(request: Request) -> None:
    assume(request.persons >= request.k)
    release = released(request)
    labels = labelled(request, release)
    for entry in json.loads(release.recoding.to_json())["columns"]:
        reader, name = LabelReader(entry), entry["name"]
        for label, value in zip(labels[name].to_list(), request.frame[name].to_list(), strict=True):
            assert reader.holds(label, value), (label, value)


@given(requests(most=15), st.data())
@tries(30)
def test_no_raw_value_lies_in_the_label_of_another_group(request: Request, data: st.DataObject) -> None:
    """Regions do not overlap: a row lies in the labels of its own group only."""
    assume(request.persons >= request.k)
    release = released(request)
    readers = {entry["name"]: LabelReader(entry) for entry in json.loads(release.recoding.to_json())["columns"]}
    labels = labelled(request, release)
    found = groups(labels, request.quasi_identifiers)
    for row in request.frame.select(request.quasi_identifiers).rows(named=True):
        holding = [
            said
            for said in found
            if all(
                readers[name].holds(label, row[name])
                for name, label in zip(request.quasi_identifiers, said, strict=True)
            )
        ]
        assert len(holding) == 1


@given(requests(), st.sampled_from(["bounds", "representative"]))
@tries(40)
def test_bounds_and_representatives_are_groups_too(request: Request, values: str) -> None:
    assume(request.persons >= request.k)
    assume(not (values == "representative" and "entity" in request.words))  # refused: see test_requests.py
    release = released(request, values=values)
    written = [name for name in release.data.columns if name not in (*request.raw, "many")]
    recoded = labelled(request, release, values=values)
    assert rows_of(release.data, release.data.columns) == rows_of(recoded, release.data.columns)
    assert all(request.persons_of(rows) >= request.k for rows in groups(recoded, written).values())
    ordered = [column.name for column in release.recoding.columns if isinstance(column, OrderedCells)]
    for name in ordered if values == "bounds" else []:
        for low, high, value in zip(
            recoded[f"{name}_lower"], recoded[f"{name}_upper"], request.frame[name], strict=True
        ):
            assert value is None or ((low is None or low <= value) and (high is None or value <= high))


@given(requests(), st.sampled_from(["whole", "float", "text"]))
@tries(25)
def test_rows_with_missing_values_are_dropped_and_counted(request: Request, extra: str) -> None:
    names = request.quasi_identifiers
    kept = request.frame.drop_nulls(names)
    rest = replace(request, frame=kept)
    assume(len(kept) and rest.persons >= request.k)
    release = anonymize(request.frame, quasi_identifiers=names, k=request.k, missing_policy="drop", **request.words)
    assert len(release.data) == len(kept)
    made = release._draft.rows
    assert (made.read, made.dropped, made.withheld, made.released) == (
        len(request.frame),
        len(request.frame) - len(kept),
        0,
        len(kept),
    )


@given(requests())
@tries(25)
def test_fewer_persons_than_k_are_infeasible(request: Request) -> None:
    asked = replace(request, k=request.persons + 1)
    with pytest.raises(Infeasible, match=f"fewer than k = {asked.k}"):
        anonymize(asked.frame, quasi_identifiers=asked.quasi_identifiers, k=asked.k, **asked.words)


@given(requests())
@tries(25)
def test_as_many_persons_as_k_are_one_group(request: Request) -> None:
    asked = replace(request, k=request.persons)
    release = released(asked)
    assert len(groups(labelled(asked, release), asked.quasi_identifiers)) == 1 or "entity" in asked.words


# --- kinds of frames --------------------------------------------------------------------------------------------

INDEXES = st.sampled_from(["range", "duplicate", "text", "several"])


def index_of(kind: str, rows: int) -> Any:
    if kind == "several":
        return pd.MultiIndex.from_tuples([(row % 2, "x") for row in range(rows)])
    return {
        "range": pd.RangeIndex(rows),
        "duplicate": pd.Index([3] * rows),
        "text": pd.Index([f"r{row % 3}" for row in range(rows)]),
    }[kind]


@given(requests(kinds=("whole", "wide", "float", "moment", "text", "tree", "stage", "truth", "same")), INDEXES)
@tries(30)
def test_pandas_frames_give_the_same_release_and_are_not_changed(request: Request, index: str) -> None:
    assume(request.persons >= request.k)
    source = as_pandas(request.frame, index_of(index, len(request.frame)))
    before = source.copy(deep=True)
    release = released(request, source)
    pd.testing.assert_frame_equal(source, before)
    assert isinstance(release.data, pd.DataFrame)
    pd.testing.assert_index_equal(release.data.index, pd.RangeIndex(len(source)))
    plain = released(request)
    names = request.quasi_identifiers
    assert rows_of(release.data, names) == rows_of(plain.data, names)
    assert json.loads(release.recoding.to_json())["nodes"] == json.loads(plain.recoding.to_json())["nodes"]


@given(requests())
@tries(20)
def test_arrow_and_lazy_frames_give_the_same_recoding(request: Request) -> None:
    assume(request.persons >= request.k)
    plain = released(request)
    arrow = released(request, request.frame.to_arrow())
    assert isinstance(arrow.data, pa.Table)
    lazy = released(request, request.frame.lazy())
    assert plain.recoding.to_json() == arrow.recoding.to_json() == lazy.recoding.to_json()
    assert lazy.data.equals(plain.data)


# --- what the recoding does not depend on -----------------------------------------------------------------------


@given(requests(), st.randoms(use_true_random=False))
@tries(40)
def test_the_release_does_not_depend_on_the_order_of_rows(request: Request, random: Any) -> None:
    assume(request.persons >= request.k)
    order = list(range(len(request.frame)))
    random.shuffle(order)
    one, other = released(request), released(request, request.frame[order])
    assert one.recoding.to_json() == other.recoding.to_json()
    assert one.data.equals(other.data)


@given(requests(), st.integers(1, 3))
@tries(25)
def test_the_release_does_not_depend_on_threads(request: Request, threads: int) -> None:
    assume(request.persons >= request.k)
    one, other = released(request, threads=1), released(request, threads=threads)
    assert one.recoding.to_json() == other.recoding.to_json()
    assert one.data.equals(other.data)


@given(requests(kinds=("whole", "wide", "float", "tree", "day")), st.integers(-20, 20))
@tries(60)
def test_the_partition_does_not_depend_on_the_scale_of_a_column(request: Request, power: int) -> None:
    assume(request.persons >= request.k)
    assume(
        not any(
            abs(value or 1.0) in (1e300, 5e-324)
            for value in request.frame.get_column("float", default=pl.Series([1.0])).to_list()
        )
    )
    scaled = request.frame.with_columns(
        [
            pl.col(name).cast(pl.Int64) * 2 ** max(power, 0)
            for name in ("whole", "wide")
            if name in request.frame.columns
        ]
        + [pl.col("float") * 2.0**power for _ in ["float"] if "float" in request.frame.columns]
    )
    words = request.words | {"domains": {}}
    one, other = (released(replace(request, frame=frame, words=words)) for frame in (request.frame, scaled))
    names = request.quasi_identifiers
    assert partition(one.recoding.apply(request.frame), names) == partition(other.recoding.apply(scaled), names)


# --- saving -----------------------------------------------------------------------------------------------------


WRITTEN = [(form, "labels") for form in ("parquet", "csv", "arrow")] + [
    (form, "bounds") for form in ("parquet", "arrow")
]


@given(requests(most=12), st.sampled_from(WRITTEN))
@tries(25)
def test_a_saved_release_recodes_its_own_rows_to_itself(request: Request, written: tuple[str, str]) -> None:
    form, values = written
    assume(request.persons >= request.k)
    release = released(request, values=values)
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(release.save(Path(folder) / "release", format=form))
    again = loaded.recoding.apply(request.frame, values=values)
    assert loaded.recoding.to_json() == release.recoding.to_json()
    names = [name for name in release.data.columns if name not in (*request.raw, "many")]
    texts = [pl.col(name).cast(pl.String) for name in names]
    assert rows_of(loaded.data.select(texts), names) == rows_of(again.select(texts), names)


@given(requests(most=12))
@tries(15)
def test_extending_a_release_by_its_own_rows_gives_it_again(request: Request) -> None:
    assume(request.persons >= request.k)
    release = released(request)
    assert release.extend(request.frame).data.equals(release.data)


def test_every_kind_of_column_is_tried() -> None:
    """The strategies above leave no kind out."""
    frame = pl.DataFrame({name: pl.Series([None, None], dtype=dtype) for name, (_, dtype) in MAKERS.items()})
    assert len(frame.columns) == 12
    assert np.unique([str(dtype) for dtype in frame.dtypes]).size >= 7
