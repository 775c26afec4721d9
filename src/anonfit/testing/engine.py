# SPDX-License-Identifier: Apache-2.0
"""For those who write an engine: the plainest one that fulfils the contract, and the checks that all of them pass."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.engines.contract import CountRequest, Derive, Draw, Field, Move, Opening, OutOfCore, Placing, Written
from anonfit.engines.levels.sampling import SampledRows
from anonfit.engines.memory.source import complete_rows, persons_left_out
from anonfit.engines.memory.write import plain, released, write_table
from anonfit.tables.reading import ReadOptions, read_table
from anonfit.tables.sources import FORMATS, PLAIN

ROWS = 400
"""Of the tables that an engine is checked with."""


class PlainEngine(SampledRows):
    """Rows in arrays, without a thought of speed or memory. Nothing of the package names it: it stands for the engine
    of somebody else.
    """

    name = "plain"

    def __init__(self, frame: pl.DataFrame, *, read: int | None = None, persons_left_out: int = 0) -> None:
        super().__init__({}, len(frame))
        self.frame_of_rows = frame
        self.read = len(frame) if read is None else read
        self.persons_left_out = persons_left_out
        self.kept: list[str] = []

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns and their types."""
        return {name: plain(dtype) for name, dtype in self.frame_of_rows.schema.items()}

    @property
    def scan(self) -> pl.LazyFrame:
        """The rows."""
        return self.frame_of_rows.lazy()

    def missing(self, names: Sequence[str]) -> dict[str, int]:
        """How many values are missing in columns that have missing values."""
        return {name: gaps for name in names if (gaps := self.frame_of_rows[name].null_count())}

    def distinct_shares(self, names: Sequence[str]) -> dict[str, float]:
        """The share of different values among each column's known ones."""
        known = {name: self.frame_of_rows[name].drop_nulls() for name in names}
        return {name: values.n_unique() / len(values) if len(values) > 1 else 0.0 for name, values in known.items()}

    def distinct(self, names: Sequence[str]) -> tuple[pl.DataFrame, NDArray[np.int64]]:
        """The different combinations of some columns' values, and how many rows have each."""
        frame = self._plain(names)
        counted = frame.group_by(names).len("\0rows")
        return counted.select(names), counted["\0rows"].to_numpy().astype(np.int64)

    def _plain(self, names: Sequence[str]) -> pl.DataFrame:
        return self.frame_of_rows.select(names).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))

    def code(self, fields: Sequence[Field], kept: Sequence[str]) -> None:
        """Look the values of every row up."""
        coded = looked_up(self._plain(self.frame_of_rows.columns), fields)
        self.values |= {field.name: coded[field.name].astype(field.codes.dtype) for field in fields}
        self.kept = list(kept)

    def sample(self, draw: Draw, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """The fields of the rows that are drawn."""
        drawn = draw.drawn(self.values)
        return {name: self.values[name][drawn] for name in names}

    def derive(self, names: Sequence[str], work: Derive) -> None:
        """Add further fields to every row."""
        self.values |= work({name: self.values[name] for name in names})

    def take(self, nodes: Mapping[int, int], names: Sequence[str]) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """The fields of the rows of finished nodes."""
        for node in nodes:
            yield node, {name: self.values[name][self.node == -1 - node] for name in names}

    def write(self, placing: Placing, names: Sequence[str], path: Path, kind: str) -> Written:
        """Sort all rows and write them."""
        ranks = placing.ranks({name: self.values[name] for name in placing.fields})
        raw = self.frame_of_rows.select(self.kept)
        raw = raw.cast({name: released(dtype) for name, dtype in raw.schema.items()})
        signs = [(1 / pl.col(name) < 0).not_() for name in self.kept if raw[name].dtype.is_float()]
        keys = raw.with_columns(pl.col(pl.Categorical).cast(pl.String), pl.Series("\0rank", ranks))
        order = keys.select(pl.arg_sort_by("\0rank", *self.kept, *signs, nulls_last=False, maintain_order=True))
        rows = order.to_series().to_numpy()
        regions = placing.regions[ranks[rows].astype(np.int64)]
        table = pl.DataFrame([raw[name][rows] if name in self.kept else regions[name] for name in names])
        write_table(table, path, kind)
        return Written(path, kind, table.schema, len(table))


@contextmanager
def open_plain(source: Any, options: ReadOptions, asked: Opening, folder: Path) -> Iterator[PlainEngine]:  # noqa: ARG001
    """The source's rows, as an entry of the catalogue opens them."""
    read = read_table(source, options)
    frame = complete_rows(read, asked.dropping)
    yield PlainEngine(frame, read=len(read), persons_left_out=persons_left_out(read, frame, asked.count, asked.entity))


OpenFrame = Callable[["pl.DataFrame", Path], AbstractContextManager[OutOfCore]]
"""From a frame and a folder for whatever is spilled to an engine that has the frame's rows."""


def check_engine(opened: OpenFrame, *, seeds: Sequence[int] = (0, 1, 2)) -> None:
    """Check that an engine fulfils the contract: it finds values, codes, derives, counts, routes, draws, hands over and
    writes what plain NumPy finds of the same rows. An AssertionError says what it does not.

    Example:
        >>> from contextlib import contextmanager
        >>> @contextmanager
        ... def opened(frame, folder):
        ...     yield PlainEngine(frame)
        >>> check_engine(opened, seeds=[0])
    """
    checks: list[tuple[Callable[..., None], Any]] = [(_check_values, seed) for seed in seeds]
    checks += [(_check_routing, seed) for seed in seeds] + [
        (_check_writing, kind) for kind, known in FORMATS.items() if not known.program
    ]
    for check, case in checks:
        with tempfile.TemporaryDirectory() as place:
            check(opened, case, Path(place))


def random_frame(seed: int) -> pl.DataFrame:
    """A table with gaps, texts that need quoting, and numbers at the edges."""
    rng = np.random.default_rng(seed)

    def with_gaps(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.15 else value for value in values]

    return pl.DataFrame(
        {
            "number": with_gaps(rng.integers(0, 9, ROWS).tolist()),
            "text": with_gaps(rng.choice(["", "a", "'", "é"], ROWS).tolist()),
            "float": with_gaps(rng.choice([0.0, -0.0, 0.1, 1e300], ROWS).tolist()),
            "many": rng.integers(1, 5, ROWS),
            "row": np.arange(ROWS),
        }
    )


def random_fields(engine: OutOfCore, seed: int) -> list[Field]:
    """Random fields of the columns' values."""
    rng = np.random.default_rng(seed)
    fields = []
    for name, columns, dtype, low, high in [
        ("code0", ["number"], np.uint8, 0, 12),
        ("code1", ["text"], np.uint16, 0, 700),
        ("code2", ["row"], np.uint32, 0, 100_000),
        ("target0", ["float"], np.int32, -(2**20), 2**20),
        ("mass", ["number", "many"], np.uint32, 1, 2000),
        ("persons", ["many"], np.uint32, 1, 9),
    ]:
        values, _ = engine.distinct(columns)
        fields.append(Field(name, values, rng.integers(low, high, len(values)).astype(dtype)))
    return fields


def looked_up(frame: pl.DataFrame, fields: Sequence[Field]) -> dict[str, NDArray[np.int64]]:
    """The fields of all rows, by plain lookup."""
    coded = {}
    for field in fields:
        code_of = dict(zip(field.values.rows(), field.codes.tolist(), strict=True))
        coded[field.name] = np.array([code_of[row] for row in frame.select(field.values.columns).rows()])
    return coded


def _check_values(opened: OpenFrame, seed: int, folder: Path) -> None:
    frame = random_frame(seed)
    with opened(frame, folder) as engine:
        assert (engine.read, engine.rows, engine.persons_left_out) == (ROWS, ROWS, 0), "read, rows, persons_left_out"
        assert dict(engine.schema) == dict(frame.schema), "schema"
        gaps = {name: frame[name].null_count() for name in ("number", "text", "float")}
        assert engine.missing(["number", "text", "float", "many"]) == gaps, "missing"
        for names in (["number"], ["text"], ["float"], ["text", "many"]):
            values, counts = engine.distinct(names)
            assert counts is not None, "distinct: how many rows have each combination"
            assert values.schema == frame.select(names).schema, "distinct: types"
            expected = {row[:-1]: row[-1] for row in frame.group_by(names).len().rows()}
            assert dict(zip(values.rows(), counts.tolist(), strict=True)) == expected, f"distinct of {names}"


def counted_plainly(coded: Mapping[str, Any], nodes: NDArray[np.int64], request: CountRequest) -> dict[Any, Any]:
    """What a request asks for, row by row."""
    groups: dict[Any, list[int]] = {}
    for row in np.flatnonzero(np.isin(nodes, request.nodes)).tolist():
        values = {name: int(column[row]) for name, column in coded.items()}
        if request.within is not None and not request.within[1] <= values[request.within[0]] < request.within[2]:
            continue
        codes = [values[name] for name in request.by]
        for place, starts in enumerate(request.runs):
            codes[place] = max([start for start in starts if start <= codes[place]], default=codes[place])
        sums = groups.setdefault((int(nodes[row]), *codes), [0] * len(request.sums))
        for place, factors in enumerate(request.sums):
            sums[place] += prod(values[factor] for factor in factors)
    return groups


def _check_counts(engine: OutOfCore, coded: Mapping[str, Any], nodes: NDArray[np.int64], asked: Sequence[int]) -> None:
    every = tuple(asked)
    requests = [
        CountRequest(every, ("code0",), ((), ("persons",))),
        CountRequest(every, ("code1", "code0"), (("mass", "target0"), ("mass", "target0", "target0"))),
        CountRequest(every, ("code2",), (("mass",),)),
        CountRequest(every, ("code1",), (("mass", "target1"), ("target2",))),
        CountRequest(every[:1], (), ((), ("persons",))),
        CountRequest(every, ("code0", "code1"), ((), ("persons",)), ((0, 2, 3), ())),
        CountRequest(every, ("code1", "code0"), (("mass",),), ((), (0,)), ("code0", 1, 4)),
        CountRequest(every, ("code0",), (("code0",),), ((0, 2),), ("code1", 1, 2)),
    ]
    for request, counted in zip(requests, engine.count(requests), strict=True):
        keys = zip(counted.nodes.tolist(), *(codes.tolist() for codes in counted.by), strict=True)
        sums = [list(group) for group in counted.sums.T.tolist()]
        assert dict(zip(keys, sums, strict=True)) == counted_plainly(coded, nodes, request), f"count of {request}"


def _doubled(values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Further fields of rows."""
    return {
        "target1": values["target0"].astype(np.int32) * 2,
        "target2": values["code0"].astype(np.uint16) + np.uint16(1000),
    }


def _check_routing(opened: OpenFrame, seed: int, folder: Path) -> None:
    frame = random_frame(seed)
    with opened(frame, folder) as engine:
        fields = random_fields(engine, seed)
        coded = looked_up(frame, fields)
        engine.code(fields, ["text"])
        nodes = np.zeros(ROWS, np.int64)
        engine.derive(["code0", "target0"], _doubled)
        coded |= _doubled(coded)
        draw = Draw(("code0", "code2", "target0"), (3, 7, 5), 2**29)
        sampled = engine.sample(draw, ["code2"])["code2"].tolist()
        assert sorted(sampled) == sorted(coded["code2"][draw.drawn(coded)].tolist()), "sample"
        _check_counts(engine, coded, nodes, [0])

        def route(moves: list[Move], finished: list[int]) -> None:
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
            assert sizes == {node: int((nodes == node).sum()) for node in active if (nodes == node).any()}, "route"

        members = tuple(int(code) for code in np.unique(coded["code1"])[::2])
        route([Move(0, "code1", 1, members=members)], [])
        _check_counts(engine, coded, nodes, [1, 2])
        route([Move(1, "code0", 5, (0, 3, 4, 8)), Move(2, "code2", 3, (0, 50_000))], [])
        live = [node for node in range(3, 9) if (nodes == node).any()]
        _check_counts(engine, coded, nodes, live)
        _check_counts(engine, coded, nodes, live[1:2])
        last = [node for node in live if node != 3]
        route([Move(3, "code2", 20, (0, 20_000))], last)
        rest = [node for node in (20, 21) if (nodes == node).any()]
        _check_counts(engine, coded, nodes, rest)
        assert engine.route([], rest) == {}, "route without moves"
        _check_taken(engine, coded, nodes, [*last, *rest])


def _check_taken(engine: OutOfCore, coded: Mapping[str, Any], nodes: NDArray[np.int64], taken: list[int]) -> None:
    names = ["code2", "code0", "target0", "target1", "target2"]
    rows = {}
    for node, values in engine.take({node: int((nodes == node).sum()) for node in taken}, names):
        assert list(values) == names, "take: fields in the order in which they are asked for"
        rows[node] = sorted(zip(*(values[name].tolist() for name in names), strict=True))
    assert sorted(rows) == sorted(taken), "take: every node once"
    for node in taken:
        inside = np.flatnonzero(nodes == node)
        expected = sorted(zip(*(coded[name][inside].tolist() for name in names), strict=True))
        assert rows[node] == expected, f"take of node {node}"


@dataclass(frozen=True)
class _RankByCode:
    """A region for each code of a field."""

    regions: pl.DataFrame
    fields: tuple[str, ...] = ("code0",)

    def ranks(self, codes: Mapping[str, NDArray[Any]]) -> NDArray[np.uint32]:
        return codes["code0"].astype(np.uint32)


def _check_writing(opened: OpenFrame, kind: str, folder: Path) -> None:
    from polars.testing import assert_frame_equal

    frame = random_frame(9)
    words = [f"r{rank:02}" for rank in range(12)]
    regions = pl.DataFrame({"label": pl.Series(words).cast(pl.Enum(words))})
    with opened(frame, folder) as engine:
        fields = random_fields(engine, 9)
        coded = looked_up(frame, fields)
        engine.code(fields, ["float", "text"])
        engine.route([], [0])
        path = folder / f"out.{kind}"
        written = engine.write(_RankByCode(regions), ["text", "label", "float"], path, kind)
    assert (written.path, written.kind, written.rows) == (path, kind, ROWS), "write: path, kind, rows"
    assert list(written.schema) == ["text", "label", "float"], "write: schema"
    expected = (
        frame.select("text", regions["label"][coded["code0"]], "float")
        .with_columns(sign=(1 / pl.col("float")).cast(pl.String))
        .sort("label", "float", "text", "sign", nulls_last=False)
        .drop("sign")
    )
    scan = FORMATS[kind].scan
    if scan is None:
        FORMATS[kind].sink(expected.lazy(), folder / "expected", PLAIN)
        assert path.read_text() == (folder / "expected").read_text(), "write: rows in their order"
        return
    table = scan(path).collect()
    assert_frame_equal(table.cast({"label": pl.String}), expected.cast({"label": pl.String}))
