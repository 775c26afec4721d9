# SPDX-License-Identifier: Apache-2.0
"""No stage of a run has the whole table in one task, and no step brings its rows to the driver: by what Spark itself
tells of its stages.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonfit.pipeline import make
from anonfit.spec_keywords import spec_of_keywords
from spark_sessions import event_folder, needs_spark, spark_frame, spark_session

pytestmark = needs_spark
ROWS = 6000
COUNTED = [
    ("Input Metrics", "Records Read"),
    ("Shuffle Read Metrics", "Total Records Read"),
    ("Shuffle Write Metrics", "Shuffle Records Written"),
    ("Output Metrics", "Records Written"),
]


def _events(path: Path, start: int) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        file.seek(start)
        return [json.loads(line) for line in file.read().decode().splitlines() if line.endswith("}")]


def test_no_task_has_the_whole_table():
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({
        "age": rng.integers(0, 90, ROWS),
        "town": rng.choice([f"town {number}" for number in range(12)], ROWS),
        "ill": rng.choice(["yes", "no"], ROWS),
        "amount": rng.normal(size=ROWS).round(1),
    })  # fmt: skip
    source = spark_frame(frame).repartition(3)
    spark_session().range(1).count()
    log = max(event_folder().rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else -1)
    start = log.stat().st_size
    words = {"quasi_identifiers": ["age", "town"], "targets": ["ill"], "insensitive": ["amount"], "k": 5}
    spec = spec_of_keywords(source, words | {"release": ["ill", "amount"]})
    made = make(replace(spec, engine=replace(spec.engine, name="spark", hand_over=800)))
    assert made.released == ROWS
    spark_session().range(1).count()  # what was told before this is written by now
    tasks: dict[tuple[int, str], list[int]] = defaultdict(list)
    results = 0
    for event in _events(log, start):
        if event["Event"] != "SparkListenerTaskEnd" or not event.get("Task Metrics"):
            continue
        metrics = event["Task Metrics"]
        results += metrics["Result Size"]
        for group, count in COUNTED:
            tasks[event["Stage ID"], count].append(metrics[group][count])
    whole = {stage: counts for stage, counts in tasks.items() if sum(counts) >= ROWS}
    assert len({stage for stage, _ in whole}) >= 3  # the source, the sorted rows and the written ones
    for stage, counts in whole.items():
        assert max(counts) < 0.9 * ROWS, (stage, counts)
    assert results < ROWS * 100
