# SPDX-License-Identifier: Apache-2.0
"""A release of new data by a saved recoding: rows are released or counted as withheld, and groups are large enough."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from people import Request, columns_of, requests

from anonfit.api import Release, anonymize, load
from anonfit.errors import Infeasible
from anonfit.recoding.values import Unseen
from strategies import tries


@st.composite
def extensions(draw: st.DrawFn) -> tuple[Request, pl.DataFrame]:
    """A table, and another one with the same columns: other values, other rows, missing values where there were none."""
    request = draw(requests(most=15))
    rows = draw(st.integers(1, 15))
    people = (
        [pl.Series("who", draw(st.lists(st.integers(0, 9), min_size=rows, max_size=rows)))]
        if "entity" in request.words
        else []
    )
    counts = (
        [pl.Series("many", draw(st.lists(st.integers(1, 4), min_size=rows, max_size=rows)))]
        if "count" in request.words
        else []
    )
    names = [*request.quasi_identifiers, *request.raw]
    columns = [draw(columns_of(name, rows, missing=draw(st.booleans()))) for name in names]
    return request, pl.DataFrame([*columns, *people, *counts]).select(request.frame.columns)


def unknown_rows(release: Release, new: pl.DataFrame) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The rows that have a value which the recoding does not know."""
    return np.any(np.stack([cells < 0 for cells in release.recoding.cells(new, unseen=Unseen.SUPPRESS)]), axis=0)


def extended(new: pl.DataFrame, release: Release) -> Release | None:
    """The new release, or nothing where no region of the new data is large enough."""
    try:
        return release.extend(new, suppression_limit=1.0)
    except Infeasible:
        return None


@given(extensions())
@tries(60)
def test_new_rows_are_released_in_large_enough_groups_or_withheld(both: tuple[Request, pl.DataFrame]) -> None:
    request, new = both
    assume(request.persons >= request.k)
    words = {name: value for name, value in request.words.items() if name != "domains"}
    release = anonymize(request.frame, quasi_identifiers=request.quasi_identifiers, k=request.k, **words)
    found = extended(new, release)
    # Recoded one by one, rows that cannot be recoded marked; then the groups that are large enough.
    unknown = unknown_rows(release, new)
    labels = release.recoding.apply(new, unseen="suppress").select(request.quasi_identifiers).rows()
    counter = Request(new, request.quasi_identifiers, request.raw, request.k, words)
    rows_by_label: dict[tuple[str, ...], list[int]] = {}
    for row, label in enumerate(labels):
        if not unknown[row]:
            rows_by_label.setdefault(label, []).append(row)
    kept = {label: rows for label, rows in rows_by_label.items() if counter.persons_of(rows) >= request.k}
    if found is None:
        assert not kept
        return
    assert Counter(found.data.select(request.quasi_identifiers).rows()) == {
        label: len(rows) for label, rows in kept.items()
    }
    counts = found._draft.rows
    assert (counts.read, counts.dropped) == (len(new), 0)
    assert counts.withheld == len(new) - len(found.data)
    for name in request.raw:
        rows = sorted(row for rows in kept.values() for row in rows)
        assert Counter(found.data[name].to_list()) == Counter(new[rows][name].to_list())


@given(extensions())
@tries(12)
def test_a_loaded_release_extends_like_the_one_that_was_saved(both: tuple[Request, pl.DataFrame]) -> None:
    request, new = both
    assume(request.persons >= request.k)
    words = {name: value for name, value in request.words.items() if name != "domains"}
    release = anonymize(request.frame, quasi_identifiers=request.quasi_identifiers, k=request.k, **words)
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(release.save(Path(folder) / "release"))
    one, other = extended(new, release), extended(new, loaded)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.data.rows() == other.data.rows()


@pytest.mark.parametrize(
    ("old", "value"), [([5, 5], None), (["a", "a"], None), (["a", "a"], "z"), (["a", "a", None, None], "z")]
)
def test_an_unknown_value_inside_a_label(old: list[object], value: object) -> None:
    frame = pl.DataFrame({"x": old})
    release = anonymize(frame, quasi_identifiers=["x"], k=2)
    new = pl.DataFrame({"x": [value, *old]}, schema=frame.schema)
    assert len(release.extend(new, suppression_limit=1.0).data) in (len(old), len(old) + 1)
