# SPDX-License-Identifier: Apache-2.0
"""Who is alone, and why: held against counts by hand on random tables."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import polars as pl
import pytest

from anonfit.web.looking import combinations_of, records_of


@pytest.mark.parametrize("seed", range(20))
def test_figures_are_those_that_counting_by_hand_gives(seed: int) -> None:
    frame = pl.DataFrame(
        {
            name: [(row * step + seed) % size for row in range(60)]
            for name, step, size in (("a", 7, 5), ("b", 11, 13), ("c", 3, 40))
        }
    )
    found = combinations_of(frame, ["a", "b", "c"], 3)["combinations"]
    assert [entry["columns"] for entry in found] == [
        ["a"],
        ["b"],
        ["c"],
        ["a", "b"],
        ["a", "c"],
        ["b", "c"],
        ["a", "b", "c"],
    ]
    for entry in found:
        rows = list(frame.select(entry["columns"]).iter_rows())
        counts = Counter(rows)
        assert entry["unique"] == pytest.approx(sum(counts[row] == 1 for row in rows) / 60)
        assert entry["below_k"] == pytest.approx(sum(counts[row] < 3 for row in rows) / 60)
        apart = sum(left != right for left, right in combinations(rows, 2)) / (60 * 59 / 2)
        assert entry["separation"] == pytest.approx(apart)


def test_a_record_is_named_with_the_smallest_sets_of_columns_that_single_it_out() -> None:
    frame = pl.DataFrame({"a": [1, 1, 1, 1, 2], "b": [1, 1, 2, 2, 1], "c": [1, 2, 1, 2, 1]})
    found = records_of(frame, ["a", "b", "c"], 5)
    assert found["alone"] == 5
    by_row = {record["row"]: record["because"] for record in found["records"]}
    assert by_row[5] == [["a"]]
    assert by_row[4] == [["b", "c"]]
    assert by_row[1] == [["a", "b", "c"]]
    assert found["records"][0]["row"] == 5
    assert sum(found["blame"].values()) == pytest.approx(1)
    assert found["of_size"] == {"1": 5}
