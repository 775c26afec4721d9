# SPDX-License-Identifier: Apache-2.0
"""What executors do, without Spark: routing against plain words, and the order of released rows cut into parts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from anonfit.engines.contract import Move
from anonfit.engines.spark.route import Route
from anonfit.engines.spark.rows import CONTENT, NODE, ROWS, SET, Survey, pack, packed, unpack, unpacked
from anonfit.engines.spark.write import NUMBER, _keys, _parts, _sorted, edges_of


def test_packs_come_back():
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", None], "c": pl.Series([b"", None], dtype=pl.Binary)})
    assert_frame_equal(unpack(pack(frame)), frame)
    assert_frame_equal(unpack(pack(frame), ["c", "a"]), frame.select("c", "a"))
    assert unpack(pack(pl.DataFrame())).shape == (0, 0)
    batch = packed({CONTENT: [pack(frame), pack(frame[:0])]})
    assert [len(one) for one in unpacked([batch, batch], ["b"])] == [2, 0, 2, 0]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(200))
def test_routing(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(0, 60))
    nodes = rng.integers(-4, 12, rows).astype(np.int32)
    fields = {"one": rng.integers(0, 9, rows).astype(np.uint8), "two": rng.integers(0, 300, rows).astype(np.uint16)}
    moves, first = [], 20
    chosen = rng.permutation(10).tolist()
    for node in chosen[: int(rng.integers(0, 5))]:
        field = str(rng.choice(["one", "two"]))
        codes = np.unique(rng.integers(1, 9 if field == "one" else 300, 3)).tolist()
        by_set = rng.random() < 0.5
        moves.append(
            Move(node, field, first, members=tuple(codes)) if by_set else Move(node, field, first, (0, *codes))
        )
        first += moves[-1].parts
    finished = chosen[5 : 5 + int(rng.integers(0, 5))]
    expected = []
    for row, node in enumerate(nodes.tolist()):
        move = next((one for one in moves if one.node == node), None)
        if node in finished:
            expected.append(-1 - node)
        elif move is None:
            expected.append(node)
        elif move.members is not None:
            expected.append(move.first + (0 if int(fields[move.field][row]) in move.members else 1))
        else:
            expected.append(move.first + sum(int(fields[move.field][row]) >= start for start in move.starts[1:]))
    work = Route(tuple(moves), tuple(finished))
    batch = packed({CONTENT: [pack(pl.DataFrame({NODE: nodes, **fields}))]})
    (found,) = unpacked(work([batch]))
    assert found[NODE].to_list() == expected
    assert_frame_equal(found.drop(NODE), pl.DataFrame(fields))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(200))
def test_parts_one_after_the_other_are_the_sorted_rows(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 300))
    frame = pl.DataFrame({"rank": rng.integers(0, int(rng.choice([1, 3, 50])), rows)})
    if rng.random() < 0.7:
        texts, numbers = rng.choice(["", "a", "é"], rows), rng.choice([0.0, -0.0, 1.5, -2.0], rows)
        frame = frame.with_columns(
            pl.when(pl.Series(rng.random(rows) < 0.2)).then(None).otherwise(pl.Series(texts)).alias("raw0"),
            pl.when(pl.Series(rng.random(rows) < 0.2)).then(None).otherwise(pl.Series(numbers)).alias("raw1"),
        )
    parts = int(rng.integers(1, 9))
    middle = rows // 2
    edges = unpack(edges_of([pack(_keys(frame[:middle])), pack(_keys(frame[middle:]))], parts))
    before = np.concatenate([[0], np.cumsum(edges[NUMBER].to_numpy().astype(np.int64))])
    part = _parts(_keys(frame), edges.drop(NUMBER), before)
    assert set(part.tolist()) <= set(range(parts))
    found = pl.concat([_sorted(frame.filter(pl.Series(part == number))) for number in range(parts)])
    expected = _sorted(frame)
    assert list(map(repr, found.rows())) == list(map(repr, expected.rows()))
    plain = sorted(frame.rows(), key=lambda row: [(one is not None, one if one is not None else 0) for one in row])
    assert [row[:2] for row in found.rows()] == [row[:2] for row in plain]


def test_a_set_of_many_columns_is_counted_by_the_places_of_its_columns():
    names = tuple(f"c{place}" for place in range(12))
    frame = pl.DataFrame({name: [place, place, -place] for place, name in enumerate(names)})
    survey = Survey((names,), (), None, ())
    counts = pl.concat([pl.from_arrow(batch) for batch in survey(frame.to_arrow().to_batches())])
    whole = counts.filter(pl.col(SET) == 0).select(*(f"whole{place}" for place in range(12)), ROWS)
    assert sorted(whole.rows()) == [(*(-place for place in range(12)), 1), (*range(12), 2)]


def test_rows_that_are_all_alike_are_spread():
    frame = pl.DataFrame({"rank": [3] * 1000})
    edges = unpack(edges_of([pack(frame)], 8))
    part = _parts(frame, edges.drop(NUMBER), np.array([0, 7]))
    assert np.bincount(part, minlength=8).max() <= 126
