# SPDX-License-Identifier: Apache-2.0
"""No stage of a run has the whole table in one task, and no step brings its rows to the driver: by what Spark itself
tells of its stages.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.engines.spark import engine
from anonfit.engines.spark import write as writing
from anonfit.release.run import make
from anonfit.spec.keywords import spec_of_keywords
from spark_sessions import event_folder, spark_frame, spark_session

pytestmark = pytest.mark.spark
ROWS = 20000
AMOUNT = 8
"""Bytes that every row has at least: those of a random number, which cannot be made smaller."""
CODED = 2
"""Bytes that the codes of a row have at least."""
COUNTED = [
    ("Input Metrics", "Bytes Read"),
    ("Shuffle Read Metrics", "Local Bytes Read"),
    ("Shuffle Write Metrics", "Shuffle Bytes Written"),
    ("Output Metrics", "Bytes Written"),
]
real_routed, real_sorted = engine.routed, writing.sorted_rows


@dataclass
class Stages:
    """What the stages of a run did: for each stage and kind of bytes those of every task, and those of results."""

    amounts: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    results: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def whole(self) -> dict[tuple[str, int], list[int]]:
        """Those that have as many bytes as the table has at least."""
        return {stage: amounts for stage, amounts in self.amounts.items() if sum(amounts) >= ROWS * CODED}

    @property
    def single(self) -> set[str]:
        """Kinds of bytes of which one task has those of the whole table, or nearly."""
        return {kind for (kind, _), amounts in self.whole.items() if max(amounts) > 0.9 * sum(amounts)}

    @property
    def largest_result(self) -> int:
        """The most bytes that a stage sent to the driver."""
        return max(self.results.values())


def _log() -> Path:
    spark_session().range(1).count()  # what was told before this is written by then
    return max(event_folder().rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else -1)


def _stages_of_a_run() -> Stages:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({
        "age": rng.integers(0, 90, ROWS),
        "town": rng.choice([f"town {number}" for number in range(12)], ROWS),
        "ill": rng.choice(["yes", "no"], ROWS),
        "amount": rng.normal(size=ROWS),
    })  # fmt: skip
    source = spark_frame(frame).repartition(3)
    start = _log().stat().st_size
    words = {"quasi_identifiers": ["age", "town"], "targets": ["ill"], "insensitive": ["amount"], "k": 200}
    spec = spec_of_keywords(source, words | {"release": ["ill", "amount"]})
    made = make(replace(spec, engine=replace(spec.engine, name="spark", hand_over=2000)))
    assert made.released == ROWS
    found = Stages()
    with _log().open("rb") as file:
        file.seek(start)
        lines = file.read().decode().splitlines()
    for event in (json.loads(line) for line in lines if line.endswith("}")):
        if event["Event"] != "SparkListenerTaskEnd" or not event.get("Task Metrics"):
            continue
        metrics = event["Task Metrics"]
        found.results[event["Stage ID"]] += metrics["Result Size"]
        for group, count in COUNTED:
            found.amounts[count, event["Stage ID"]].append(metrics[group][count])
    return found


def test_no_task_has_the_whole_table_and_no_stage_sends_it():
    found = _stages_of_a_run()
    assert len({stage for _, stage in found.whole}) >= 3  # the source, the sorted rows and the written ones
    assert found.single == set()
    assert found.largest_result < ROWS * AMOUNT


def _numbered(rows: Any, moves: Any, finished: Any) -> Any:
    """Routing that numbers packs by a window over all of them."""
    from pyspark.sql import Window, functions

    numbers = functions.row_number().over(Window.orderBy(functions.xxhash64("content")))
    return real_routed(rows.withColumn("number", numbers).where("number > 0").drop("number"), moves, finished)


def _in_one_task(coded: Any, placing: Any, partitions: int, mark: str) -> Any:
    """Sorted rows that one task writes."""
    return real_sorted(coded, placing, partitions, mark).coalesce(1).sortWithinPartitions("part", "number")


def _fetched(coded: Any, placing: Any, partitions: int, mark: str) -> Any:
    """Sorted rows, of a table that was fetched on the way."""
    coded.toArrow()
    return real_sorted(coded, placing, partitions, mark)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("module", "name", "gathering", "seen"),
    [
        (engine, "routed", _numbered, {"Local Bytes Read"}),
        (writing, "sorted_rows", _in_one_task, {"Bytes Written"}),
        (writing, "sorted_rows", _fetched, set()),
    ],
)
def test_what_gathers_the_table_is_seen(monkeypatch, module, name, gathering, seen):
    monkeypatch.setattr(module, name, gathering)
    found = _stages_of_a_run()
    assert found.single >= seen
    assert bool(seen) or found.largest_result > ROWS * AMOUNT
