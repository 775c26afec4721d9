# SPDX-License-Identifier: Apache-2.0
"""A file and a frame with the same rows give the same release; observed regions and kept orders say what they promise."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from label_reader import LabelReader
from people import Request, requests

from anonfit.api import Release, anonymize
from strategies import tries

# What CSV cannot tell: missing texts from empty ones, and blanks at the ends of texts from padding.
TEXTS = ("whole", "wide", "float", "day", "tree", "stage", "same")


def made(request: Request, source: Any, **words: Any) -> Release:
    return anonymize(source, quasi_identifiers=request.quasi_identifiers, k=request.k, **(request.words | words))


def entries(release: Release) -> dict[str, Any]:
    return {entry["name"]: entry for entry in json.loads(release.recoding.to_json())["columns"]}


@given(requests(most=12), st.sampled_from(["parquet", "arrow"]))
@tries(20)
def test_files_with_types_give_the_release_of_the_frame(request: Request, kind: str) -> None:
    assume(request.persons >= request.k)
    plain = made(request, request.frame)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"people.{kind}"
        request.frame.write_parquet(path) if kind == "parquet" else request.frame.write_ipc(path)
        found = made(request, path)
    assert found.recoding.to_json() == plain.recoding.to_json()
    assert found.data.equals(plain.data)


@given(
    requests(kinds=TEXTS, raw_kinds=("whole_raw", "wide_raw", "day_raw"), most=12),
    st.sampled_from([",", ";", "\t", "|"]),
)
@tries(40)
def test_text_files_give_the_release_of_the_frame(request: Request, sign: str) -> None:
    assume(request.persons >= request.k)
    assume(len(request.frame.columns) > 1)
    assume(not any(column.null_count() == len(column) for column in request.frame))
    numbers = {name: "continuous" for name in request.quasi_identifiers if name in ("whole", "wide", "float", "same")}
    types = {"types": request.words["types"] | numbers}
    plain = made(request, request.frame, **types)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        request.frame.write_csv(path, separator=sign)
        found = made(request, path, **types)
    assert json.loads(found.recoding.to_json()) == json.loads(plain.recoding.to_json())
    assert found.data.rows() == plain.data.rows()


@given(requests(most=15))
@tries(40)
def test_observed_labels_hold_their_values_and_no_more(request: Request) -> None:
    """Kept in their order, so that each label stands beside its own row."""
    assume(request.persons >= request.k)
    release = made(request, request.frame, regions="observed", order="original", consent=True)
    assert len(release.data) == len(request.frame)
    plain = made(request, request.frame)
    of_region: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    regions = plain.recoding.apply(request.frame).select(request.quasi_identifiers).rows()
    for said, region in zip(release.data.select(request.quasi_identifiers).rows(), regions, strict=True):
        of_region.setdefault(region, set()).add(said)
    assert all(len(said) == 1 for said in of_region.values())
    for name, entry in entries(release).items():
        reader = LabelReader(entry)
        for label, value in zip(release.data[name].to_list(), request.frame[name].to_list(), strict=True):
            assert reader.holds(label, value), (label, value)
    for name in request.raw:
        assert release.data[name].to_list() == request.frame[name].to_list()


@pytest.mark.parametrize("values", [[None, "low", "high"], [None, "low", "high", "low", None]])
def test_observed_words_at_both_ends_of_the_order(values: list[str | None]) -> None:
    release = anonymize(
        pl.DataFrame({"stage": values}),
        quasi_identifiers=["stage"],
        k=3,
        types={"stage": "ordinal"},
        orders={"stage": ["low", "mid", "high"]},
        regions="observed",
        consent=True,
    )
    assert set(release.data["stage"].to_list()) <= {"*", "missing or [low, high]"}


@given(requests(most=15))
@tries(20)
def test_rows_in_their_order_stand_beside_their_labels(request: Request) -> None:
    assume(request.persons >= request.k)
    release = made(request, request.frame, order="original", consent=True)
    expected = release.recoding.apply(request.frame).select(release.data.columns)
    assert release.data.rows() == expected.rows()


@given(requests(most=15))
@tries(20)
def test_sorted_rows_are_in_the_order_of_their_values(request: Request) -> None:
    assume(request.persons >= request.k)
    found = made(request, request.frame).data
    order = [name for name in found.columns if name in request.quasi_identifiers]
    order += [name for name in found.columns if name not in order]
    texts = found.with_columns(pl.col(request.quasi_identifiers).cast(pl.String))
    assert texts.sort(order, nulls_last=False, maintain_order=True).equals(texts)


@pytest.mark.parametrize("sign", [",", ";"])
def test_texts_with_separators_quotes_and_new_lines_come_through_a_file(tmp_path: Path, sign: str) -> None:
    texts = ["a, b", "c;d", 'say "x"', "two\nlines", "O'Neil", "-5", "ü", "[1, 2)", "missing"]
    frame = pl.DataFrame({"text": texts * 2, "n": [1, 2] * 9})
    frame.write_csv(tmp_path / "t.csv", separator=sign)
    words: dict[str, Any] = {"quasi_identifiers": ["text"], "k": 2, "insensitive": ["n"]}
    found, plain = anonymize(tmp_path / "t.csv", **words), anonymize(frame, **words)
    assert found.recoding.to_json() == plain.recoding.to_json()
    assert found.data.rows() == plain.data.rows()
