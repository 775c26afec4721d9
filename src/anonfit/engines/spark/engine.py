# SPDX-License-Identifier: Apache-2.0
"""Rows in a DataFrame of Spark. Only counts, splits and small results come to the driver; rows stay where they are."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.engines.contract import Counted, CountRequest, Derive, Draw, Field, Move, Placing, Written
from anonfit.engines.memory.write import in_batches, plain, released
from anonfit.engines.spark.count import ROWS, Count, Lookup, code, derive_fields, draw_rows, fields_of
from anonfit.engines.spark.route import CodeCounts, code_counts, finish_node, part_by_node, routed, sizes_of
from anonfit.engines.spark.rows import (
    ALL,
    CONTENT,
    KEPT,
    KNOWN,
    LEFT_OUT,
    NODE,
    PARTITIONS,
    RAW,
    Survey,
    form_of,
    held_name,
    pack,
    restored,
    stored,
    stored_type,
)
from anonfit.engines.spark.source import PARTITION, Loading, quiet, result_of, storable
from anonfit.engines.spark.write import write_sorted
from anonfit.errors import DataError, TooManyGroups
from anonfit.runtime.process import available_memory

TAKEN_ROWS = 1 << 20
"""Rows that are handed over in one go."""
FEW_FIELDS = 3
"""Groups by so many fields may be as many as the rows."""
MOSTLY = 0.75
"""Columns of which a smaller share of values differs need no exact count."""
GROUP_TIMES = 4
"""How often groups are held on the driver while they are counted and used."""
LEVELS = 8
"""After so many levels rows forget how they were made."""


class SparkEngine:
    """Rows that are loaded in the form in which they are held (`sources`)."""

    name = "spark"

    def __init__(
        self,
        source: Loading,
        schema: Mapping[str, pl.DataType],
        *,
        without_missing: Sequence[str] = (),
        asked: Sequence[Sequence[str]] = (),
        raw: Sequence[str] = (),
        persons: str | None = None,
        scan: pl.LazyFrame | None = None,
    ) -> None:
        """Rows with these columns, which `scan` reads here, too, of which those are left out that have no value of a
        column of `without_missing`. `asked` are sets of columns whose values will be asked for: they are found in one
        go, with the `persons` of the rows that are left out, and how much `raw` columns tell apart.
        """
        self.spark = source.frame.sparkSession
        self.schema = {name: plain(dtype) for name, dtype in schema.items()}
        self.released = {name: released(dtype) for name, dtype in schema.items()}
        self.held = {name: held_name(place) for place, name in enumerate(storable(schema))}
        self.known = tuple(self.held[name] for name in without_missing)
        self.source = source
        self.scan: Any = scan
        self.values_of: dict[tuple[str, ...], tuple[pl.DataFrame, NDArray[np.int64]]] = {}
        self.raw = [name for name in raw if name in self.held]
        self.surveyed = self._survey([tuple(names) for names in asked], persons, self.raw)
        self.read, self.rows = self.surveyed.get(ALL, 0), self.surveyed.get(KEPT, 0)
        self.persons_left_out = self.surveyed.get(LEFT_OUT, 0)
        self.kept: list[str] = []
        self.active_nodes: set[int] = {0}
        self.levels = 0
        self.tallies: list[CodeCounts] = []
        self.whole: Any = None
        self.coded: Any = None
        self.persisted: list[Any] = []

    def close(self) -> None:
        """Let the rows go."""
        for frame in self.persisted:
            with suppress(OSError):  # Java may be gone, and the rows with it
                frame.unpersist()
        self.persisted = []

    @property
    def partitions(self) -> int:
        """How many parts the rows are worked on in."""
        most = int(self.spark.conf.get("spark.sql.shuffle.partitions"))
        return max(2, min(most, -(-self.rows // PARTITION)))

    def _held(self, name: str) -> str:
        if name not in self.held:
            raise DataError(
                f"column '{name}' is of type {self.schema[name]}, which the engine spark does not know; cast it, or "
                "leave it out."
            )
        return self.held[name]

    def _survey(
        self, sets: Sequence[tuple[str, ...]], persons: str | None = None, raw: Sequence[str] = ()
    ) -> dict[int, int]:
        """Find the different values of sets of columns; what else was counted on the way."""
        known = [names for names in dict.fromkeys(sets) if all(name in self.held for name in names)]
        survey = Survey(
            tuple(tuple(self.held[name] for name in names) for names in known),
            self.known,
            None if persons is None else self._held(persons),
            tuple(self.held[name] for name in raw),
        )
        counted = self._arrived(self._grouped(self.source.mapped(survey, survey.schema()), ["rows"]))
        for number, names in enumerate(known):
            part = counted.filter(pl.col("set") == number)
            columns = [self._values(part, name, place) for place, name in enumerate(names)]
            self.values_of[names] = pl.DataFrame(columns), part["rows"].to_numpy().astype(np.int64)
        rest = counted.filter(pl.col("set") < 0)
        return dict(zip(rest["set"].to_list(), rest["rows"].to_list(), strict=True))

    def _values(self, part: pl.DataFrame, name: str, place: int) -> pl.Series:
        """The values of a column from what a survey tells."""
        kind = stored_type(self.schema[name])
        values = part[f"{form_of(kind)}{place}"].alias(name)
        held = values.str.decode("hex") if isinstance(kind, pl.Binary) else values.cast(kind)
        return restored(held, self.schema[name])

    def _grouped(self, parts: Any, sums: Sequence[str]) -> Any:
        """Partial counts of partitions, added up: the groups of all columns but the sums."""
        from pyspark.sql import functions

        keys = [name for name in parts.columns if name not in sums]
        return parts.groupBy(*keys).agg(*(functions.sum(name).alias(name) for name in sums))

    def _arrived(self, result: Any) -> pl.DataFrame:
        """A small result of Spark, here."""
        frame = pl.from_arrow(result_of(result.toArrow))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def missing(self, names: Sequence[str]) -> dict[str, int]:
        """How many values are missing in columns that have missing values."""
        of_values = {name: self.distinct([name]) for name in names}
        gaps = {name: int(rows[values[name].is_null().to_numpy()].sum()) for name, (values, rows) in of_values.items()}
        return {name: count for name, count in gaps.items() if count}

    def distinct_shares(self, names: Sequence[str]) -> dict[str, float]:
        """The share of different values among each raw column's known ones, 0 where it is far from 1."""
        return {name: self._distinct_share(name) for name in names}

    def _distinct_share(self, name: str) -> float:
        place = KNOWN - 2 * self.raw.index(name)
        known, at_most = self.surveyed.get(place, 0), self.surveyed.get(place - 1, 0)
        if known < 2 or at_most < MOSTLY * known:
            return 0.0
        rows = self.source.rows()
        kept = rows.dropna(how="any", subset=list(self.known)) if self.known else rows
        values = kept.select(self.held[name]).dropna().distinct()
        return float(self._arrived(values.groupBy().count())["count"][0]) / float(known)

    def distinct(self, names: Sequence[str]) -> tuple[pl.DataFrame, NDArray[np.int64]]:
        """The different combinations of some columns' values, missing ones too, and how many rows have each."""
        asked = tuple(names)
        if asked not in self.values_of:
            for name in asked:
                self._held(name)
            self._survey([asked])
        return self.values_of[asked]

    def code(self, fields: Sequence[Field], kept: Sequence[str]) -> None:
        """Turn every row into its fields by looking its values up, and keep raw values."""
        self.kept = list(kept)
        size = max(1, min(PARTITION, -(-self.rows // self.partitions)))
        work = partial(code, [*map(self._lookup, fields)], self.known, [self._held(name) for name in kept], size)
        with quiet():
            coded = self.source.mapped(work, f"{CONTENT} binary, {RAW} binary")
            if self.surveyed.get(PARTITIONS, 0) < self.partitions:
                coded = coded.repartition(self.partitions)
            self.coded = self.whole = coded.persist()
        self.persisted.append(self.coded)
        self.values_of = {}

    def _lookup(self, field: Field) -> Lookup:
        """A field's values as they are held, with their codes."""
        columns = []
        names = tuple(self.held[name] for name in field.values.columns)
        for name, held in zip(field.values.columns, names, strict=True):
            column = stored(field.values[name]).alias(held)
            columns.append((column + 0.0) if column.dtype.is_float() else column)
        codes = pl.Series(field.name, field.codes)
        return Lookup(field.name, names, pack(pl.DataFrame([*columns, codes])), len(codes))

    def sample(self, draw: Draw, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """The fields of the rows that are drawn, from all executors."""
        with quiet():
            drawn = self.coded.select(CONTENT).mapInArrow(partial(draw_rows, draw, tuple(names)), f"{CONTENT} binary")
        return fields_of(self._arrived(drawn)[CONTENT].to_list(), names)

    def derive(self, names: Sequence[str], work: Derive) -> None:
        """Add further fields where the rows are; those that are written need none."""
        with quiet():
            wider = partial(derive_fields, pickle.dumps(work), tuple(names))
            self.coded = self.coded.select(CONTENT).mapInArrow(wider, f"{CONTENT} binary").persist()
        self.persisted.append(self.coded)

    def count(self, requests: Sequence[CountRequest]) -> list[Counted]:
        """Count a batch of nodes in one scan: executors count their rows, and Spark adds up what they found."""
        if not requests:
            return []
        every = tuple(set(request.nodes) == self.active_nodes for request in requests)
        work = Count(tuple(requests), every)
        sums = [*(f"sum{place}" for place in range(work.widths[1])), ROWS]
        with quiet():
            groups = self._grouped(self.coded.select(CONTENT).mapInArrow(work, work.schema()), sums)
        asked = [request for request in requests if len(request.by) >= FEW_FIELDS]
        if asked:
            self._refuse_many(groups, sum(request.most_groups(self.rows) for request in asked))
        counted = self._arrived(groups).sort("request", maintain_order=True)
        self._let_go(self.coded)
        edges = np.searchsorted(counted["request"].to_numpy(), np.arange(len(requests) + 1))
        parts = [counted[int(edges[number]) : int(edges[number + 1])] for number in range(len(requests))]
        for request, part in zip(requests, parts, strict=True):
            if request.by and not request.runs and request.within is None:
                self.tallies.append(code_counts(request, part))
        return [Counted.of(part, request) for request, part in zip(requests, parts, strict=True)]

    def _refuse_many(self, groups: Any, most: int) -> None:
        """Refuse to bring groups to the driver, at most so many, that do not fit there."""
        if 8 * most * len(groups.columns) * GROUP_TIMES <= available_memory():
            return
        count = int(self._arrived(groups.groupBy().count())["count"][0])
        needed = 8 * count * len(groups.columns) * GROUP_TIMES
        if needed > available_memory():
            raise TooManyGroups(
                f"engine spark: {count} groups of equal rows need {needed / 2**30:.1f} GiB of memory on the driver; "
                "run it where there is more."
            )

    def route(self, moves: Sequence[Move], finished: Collection[int]) -> dict[int, int]:
        """Send the splits to all executors, where rows get their new nodes when they are next counted; finished nodes
        are marked. How many rows go where is known already, if the fields that are asked were counted.
        """
        rows = routed(self.coded, moves, finished)
        tallies, self.tallies = self.tallies, []
        if not moves:
            self.coded, self.active_nodes = rows, set()
            return {}
        self.levels += 1
        if self.levels % LEVELS:
            self.coded = rows.persist()
            self.persisted.append(self.coded)
        else:  # what rows were made from level by level would grow too deep for Java's stack
            self.coded = result_of(rows.localCheckpoint)
            self._let_go(self.coded)
        sizes = sizes_of(moves, tallies)
        if sizes is None:
            work = Count((CountRequest((), (), ()),), (True,))
            with quiet():
                parts = self.coded.mapInArrow(work, work.schema())
            counted = self._arrived(self._grouped(parts, [ROWS]))
            self._let_go(self.coded)
            sizes = dict(zip(counted[NODE].to_list(), counted[ROWS].to_list(), strict=True))
        self.active_nodes = set(sizes)
        return sizes

    def _let_go(self, kept: Any) -> None:
        """Let go of nodes of rows that later ones were made from: these are there now."""
        for frame in self.persisted:
            if frame is not kept and frame is not self.whole:
                frame.unpersist()
        self.persisted = [frame for frame in self.persisted if frame is kept or frame is self.whole]

    def take(self, nodes: Mapping[int, int], names: Sequence[str]) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """Fetch the rows of several nodes in one go, and part them here."""
        for batch in in_batches(nodes, TAKEN_ROWS):
            packs_of: dict[int, list[bytes]] = {}
            for node, content in self._arrived(self._apart(batch, names)).iter_rows():
                packs_of.setdefault(node, []).append(content)
            for node, contents in packs_of.items():
                yield node, fields_of(contents, names)

    def _apart(self, nodes: Collection[int], names: Sequence[str]) -> Any:
        """Packs of the rows of finished nodes, each of one node."""
        with quiet():
            work = partial(part_by_node, frozenset(nodes), tuple(names))
            return self.coded.select(CONTENT).mapInArrow(work, f"{NODE} bigint, {CONTENT} binary")

    def finish(
        self, nodes: Mapping[int, int], names: Sequence[str], grow: Callable[..., Any]
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """Grow the subtrees of finished nodes where their rows are: each node's rows meet on one executor."""
        content = pickle.dumps(grow)

        def one_node(key: tuple[Any, ...], table: Any) -> Any:
            return finish_node(content, names, key, table)

        with quiet():
            grown = (
                self._apart(nodes, names)
                .groupBy(NODE)
                .applyInArrow(one_node, f"{NODE} bigint, facts bigint, nodes binary, members binary")
            )
        for number, facts, content, members in self._arrived(grown).iter_rows():
            yield number, np.frombuffer(content, np.int64).reshape(-1, facts).copy(), np.frombuffer(members, np.int64)

    def write(self, placing: Placing, names: Sequence[str], path: Path, kind: str) -> Written:
        """Sort the rows by ranges of what they say, let Spark write them, and put the parts together."""
        kept = {name: self.released[name] for name in self.kept}
        return write_sorted(self.whole, placing, names, kept, self.partitions, self.rows, path, kind)
