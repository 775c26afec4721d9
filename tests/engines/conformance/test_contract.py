# SPDX-License-Identifier: Apache-2.0
"""What every engine must do, held against plain NumPy: find values, code, count, route, hand over, write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal

from anonfit.engines.contract import CountRequest, Engine, Field, Move
from engines import ENGINES, engine_of

ROWS = 400
pytestmark = pytest.mark.parametrize("name", ENGINES)


def _frame(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)

    def gaps(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.15 else value for value in values]

    return pl.DataFrame(
        {
            "number": gaps(rng.integers(0, 9, ROWS).tolist()),
            "text": gaps(rng.choice(["", "a", "'", "é"], ROWS).tolist()),
            "float": gaps(rng.choice([0.0, -0.0, 0.1, 1e300], ROWS).tolist()),
            "many": rng.integers(1, 5, ROWS),
            "row": np.arange(ROWS),
        }
    )


def _fields(engine: Engine, seed: int) -> tuple[list[Field], list[pl.DataFrame]]:
    """Random fields, and the values that each is of."""
    rng = np.random.default_rng(seed)
    found = []
    for field, names, dtype, low, high in [
        ("code0", ["number"], np.uint8, 0, 12),
        ("code1", ["text"], np.uint16, 0, 700),
        ("code2", ["row"], np.uint32, 0, 100_000),
        ("target0", ["float"], np.int32, -(2**20), 2**20),
        ("mass", ["number", "many"], np.uint32, 1, 2000),
        ("persons", ["many"], np.uint32, 1, 9),
    ]:
        values, _ = engine.distinct(names)
        found.append(Field(field, values, rng.integers(low, high, len(values)).astype(dtype)))
    return found, []


def _coded(frame: pl.DataFrame, fields: list[Field]) -> dict[str, NDArray[np.int64]]:
    """The fields of all rows, by plain lookup."""
    coded = {}
    for field in fields:
        code_of = dict(zip(field.values.rows(), field.codes.tolist(), strict=True))
        coded[field.name] = np.array([code_of[row] for row in frame.select(field.values.columns).rows()])
    return coded


def _counted(coded: Mapping[str, NDArray[np.int64]], nodes: NDArray[np.int64], request: CountRequest) -> dict[Any, Any]:
    """What a request asks for, row by row."""
    found: dict[Any, list[int]] = {}
    for row in np.flatnonzero(np.isin(nodes, request.nodes)).tolist():
        if request.within is not None and not request.within[1] <= coded[request.within[0]][row] < request.within[2]:
            continue
        codes = [int(coded[name][row]) for name in request.by]
        for place, starts in enumerate(request.runs):
            codes[place] = max([start for start in starts if start <= codes[place]], default=codes[place])
        key = (int(nodes[row]), *codes)
        sums = found.setdefault(key, [0] * len(request.sums))
        for place, factors in enumerate(request.sums):
            product = 1
            for factor in factors:
                product *= int(coded[factor][row])
            sums[place] += product
    return found


def _check_counts(engine: Engine, coded: Mapping[str, Any], nodes: NDArray[np.int64], asked: list[int]) -> None:
    requests = [
        CountRequest(tuple(asked), ("code0",), ((), ("persons",))),
        CountRequest(tuple(asked), ("code1", "code0"), (("mass", "target0"), ("mass", "target0", "target0"))),
        CountRequest(tuple(asked), ("code2",), (("mass",),)),
        CountRequest(tuple(asked[:1]), (), ((), ("persons",))),
        CountRequest(tuple(asked), ("code0", "code1"), ((), ("persons",)), ((0, 2, 3), ())),
        CountRequest(tuple(asked), ("code1", "code0"), (("mass",),), ((), (0,)), ("code0", 1, 4)),
        CountRequest(tuple(asked), ("code0",), (("code0",),), ((0, 2),), ("code1", 1, 2)),
    ]
    for request, counted in zip(requests, engine.count(requests), strict=True):
        keys = zip(counted.nodes.tolist(), *(one.tolist() for one in counted.by), strict=True)
        sums = [list(one) for one in counted.sums.T.tolist()]
        assert dict(zip(keys, sums, strict=True)) == _counted(coded, nodes, request)


@pytest.mark.parametrize("seed", range(3))
def test_values(name, seed, tmp_path):
    frame = _frame(seed)
    with engine_of(name, frame, tmp_path) as engine:
        assert engine.rows == ROWS
        assert dict(engine.schema) == dict(frame.schema)
        for names in (["number"], ["text"], ["float"], ["text", "many"]):
            values, counts = engine.distinct(names)
            assert values.schema == frame.select(names).schema
            found = dict(zip(values.rows(), counts.tolist(), strict=True))
            expected = frame.group_by(names).len()
            assert found == {row[:-1]: row[-1] for row in expected.rows()}


@pytest.mark.parametrize("seed", range(4))
def test_counting_and_routing(name, seed, tmp_path):
    frame = _frame(seed)
    with engine_of(name, frame, tmp_path) as engine:
        fields, _ = _fields(engine, seed)
        coded = _coded(frame, fields)
        engine.code(fields, ["text"])
        nodes = np.zeros(ROWS, np.int64)
        _check_counts(engine, coded, nodes, [0])

        def routed(moves: list[Move], finished: list[int]) -> None:
            sizes = engine.route(moves, finished)
            for move in moves:
                inside = np.flatnonzero(nodes == move.node)
                codes = coded[move.field][inside]
                if move.members is not None:
                    parts = 1 - np.isin(codes, move.members).astype(np.int64)
                else:
                    parts = np.searchsorted(move.starts, codes, side="right") - 1
                nodes[inside] = move.first + parts
            active = {move.first + part for move in moves for part in range(move.parts)}
            expected = {node: int((nodes == node).sum()) for node in active if (nodes == node).any()}
            assert sizes == expected

        members = tuple(int(code) for code in np.unique(coded["code1"])[::2])
        routed([Move(0, "code1", 1, members=members)], [])
        _check_counts(engine, coded, nodes, [1, 2])
        routed([Move(1, "code0", 5, (0, 3, 4, 8)), Move(2, "code2", 3, (0, 50_000))], [])
        live = [node for node in range(3, 9) if (nodes == node).any()]
        _check_counts(engine, coded, nodes, live)
        _check_counts(engine, coded, nodes, live[1:2])
        last = [node for node in live if node != 3]
        routed([Move(3, "code2", 20, (0, 20_000))], last)
        _check_counts(engine, coded, nodes, [node for node in (20, 21) if (nodes == node).any()])
        rest = [node for node in (20, 21) if (nodes == node).any()]
        assert engine.route([], rest) == {}
        _check_taken(engine, coded, nodes, [*last, *rest])


def _check_taken(engine: Engine, coded: Mapping[str, Any], nodes: NDArray[np.int64], taken: list[int]) -> None:
    names = ["code2", "code0", "target0"]
    found = {}
    for node, values in engine.take({node: int((nodes == node).sum()) for node in taken}, names):
        assert list(values) == names
        found[node] = sorted(zip(*(values[name].tolist() for name in names), strict=True))
    assert sorted(found) == sorted(taken)
    for node in taken:
        inside = np.flatnonzero(nodes == node)
        assert found[node] == sorted(zip(*(coded[name][inside].tolist() for name in names), strict=True))


@dataclass(frozen=True)
class ByCode:
    """A region for each code of a field."""

    regions: pl.DataFrame
    fields: tuple[str, ...] = ("code0",)

    def ranks(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.uint32]:
        return codes["code0"].astype(np.uint32)


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_writing(name, kind, tmp_path):
    frame = _frame(9)
    regions = pl.DataFrame({"label": pl.Series([f"r{rank:02}" for rank in range(12)]).cast(pl.Enum([f"r{rank:02}" for rank in range(12)]))})  # fmt: skip
    with engine_of(name, frame, tmp_path) as engine:
        fields, _ = _fields(engine, 9)
        coded = _coded(frame, fields)
        engine.code(fields, ["float", "text"])
        engine.route([], [0])
        path = tmp_path / f"out.{kind}"
        written = engine.write(ByCode(regions), ["text", "label", "float"], path, kind)
    assert (written.path, written.kind, written.rows) == (path, kind, ROWS)
    assert list(written.schema) == ["text", "label", "float"]
    expected = (
        frame.select("text", regions["label"][coded["code0"]], "float")
        .with_columns(sign=(1 / pl.col("float")).cast(pl.String))
        .sort("label", "float", "text", "sign", nulls_last=False, descending=[False, False, False, False])
        .drop("sign")
    )
    if kind == "parquet":
        assert_frame_equal(pl.read_parquet(path), expected)
    elif kind == "arrow":
        assert_frame_equal(pl.read_ipc(path).cast({"label": pl.String}), expected.cast({"label": pl.String}))
    else:
        expected.write_csv(tmp_path / "expected.csv")
        assert path.read_text() == (tmp_path / "expected.csv").read_text()
