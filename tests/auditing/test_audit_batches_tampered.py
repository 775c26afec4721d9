# SPDX-License-Identifier: Apache-2.0
"""Tampered files and sources: an audit that reads some rows at a time says the same as one of the whole table."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from audit_folders import Folder
from test_audit_batches import outcome

from anonfit.auditing.api import audit, audit_release

Frame = pl.DataFrame
Tamper = Callable[[Frame, random.Random], Frame]


def _column(frame: Frame, rng: random.Random) -> str:
    return rng.choice(frame.columns)


def _edited(frame: Frame, rng: random.Random, value: Any) -> Frame:
    """One cell changed; its column becomes text if the value is one."""
    name, row = _column(frame, rng), rng.randrange(len(frame))
    column = frame[name].cast(pl.String) if isinstance(value, str) else frame[name]
    values = column.to_list()
    values[row] = value
    return frame.with_columns(pl.Series(name, values, dtype=column.dtype, strict=False))


TAMPERED: dict[str, Tamper] = {
    "as it is": lambda frame, _: frame,
    "a text": lambda frame, rng: _edited(frame, rng, rng.choice(["", " ", "x", "1e3", "007", "nan", "-0", "NaN", "inf"])),
    "a missing value": lambda frame, rng: _edited(frame, rng, None),
    "spaces": lambda frame, rng: frame.with_columns(pl.col(_column(frame, rng)).cast(pl.String) + " "),
    "numbers with a point": lambda frame, _: frame.with_columns(pl.col("note").cast(pl.Float64)),
    "numbers as texts": lambda frame, _: frame.with_columns(pl.col("note").cast(pl.String) + ".0"),
    "decimals": lambda frame, _: frame.with_columns(pl.col("note").cast(pl.Decimal(8, 3))),
    "truth values": lambda frame, _: frame.with_columns(note=pl.col("note") > 2),
    "a column of nothing": lambda frame, rng: frame.with_columns(pl.lit(None).alias(_column(frame, rng))),
    "categories": lambda frame, _: frame.with_columns(pl.col("diagnosis").cast(pl.Categorical)),
    "not a number": lambda frame, _: frame.with_columns(
        note=pl.when(pl.col("note") == 1).then(float("nan")).otherwise(pl.col("note").cast(pl.Float64))
    ),
    "negative zeros": lambda frame, _: frame.with_columns(note=pl.col("note").cast(pl.Float64) * -0.0),
    "large numbers": lambda frame, _: frame.with_columns(note=pl.col("note").cast(pl.Int64) + 2**53),
    "many texts": lambda frame, _: frame.with_columns(note=pl.int_range(pl.len()).cast(pl.String)),
    "measurements": lambda frame, _: frame.with_columns(note=(pl.int_range(pl.len()) / 7).round(4).cast(pl.String)),
    "no rows": lambda frame, _: frame.clear(),
    "one row": lambda frame, _: frame.head(1),
    "rows moved": lambda frame, rng: frame.sample(fraction=1.0, shuffle=True, seed=rng.randrange(99)),
    "rows doubled": lambda frame, rng: pl.concat([frame, frame.head(rng.randint(1, 9))]),
    "rows lost": lambda frame, rng: frame.filter(pl.int_range(pl.len()) != rng.randrange(len(frame))),
    "a column lost": lambda frame, rng: frame.drop(_column(frame, rng)),
    "a column more": lambda frame, _: frame.with_columns(more=pl.lit("x")),
    "columns turned": lambda frame, _: frame.select(frame.columns[::-1]),
    "stars": lambda frame, _: frame.with_columns(
        pl.when(pl.int_range(pl.len()) < 4).then(pl.lit("*")).otherwise(pl.col(name).cast(pl.String)).alias(name)
        for name in ("age", "country", "rank") if name in frame.columns
    ),
    "dates": lambda frame, _: frame.with_columns(note=pl.date(2024, 1, 1) + pl.duration(days=pl.col("note").cast(pl.Int64))),
}  # fmt: skip


def compared(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    folder = Folder(tmp_path / str(seed), kind=rng.choice(["csv", "parquet"]))
    if rng.random() < 0.7:
        folder.data = TAMPERED[rng.choice(list(TAMPERED))](folder.data, rng)
    if rng.random() < 0.4:
        folder.spec["privacy"]["diversity"] = [{"column": "diagnosis", "model": "t-closeness", "t": 0.4}]
    if rng.random() < 0.3:
        folder.spec["data"] = {"missing": ["", "x", "1"], "missing_policy": rng.choice(["drop", "category"])}
    if rng.random() < 0.5:
        folder.recount()
        folder.manifest["data"]["columns"] = folder.data.columns
    source: Any = TAMPERED[rng.choice(list(TAMPERED))](folder.raw, rng) if rng.random() < 0.7 else folder.raw
    if rng.random() < 0.4:
        source.write_csv(tmp_path / f"{seed}.csv")
        source = tmp_path / f"{seed}.csv"
    path = folder.write(sort=rng.random() < 0.7)
    given = rng.choice([None, source])
    words = {"source": given}
    rows = rng.choice([7, 23, 64, 10_000])
    assert outcome(audit_release, path, **words) == outcome(audit_release, path, rows_at_once=rows, **words), seed
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "country", "rank"], "sensitive": ["diagnosis"], "k": 4}
    file = next(path.glob("data.*"))
    assert outcome(audit, file, **asked) == outcome(audit, file, rows_at_once=rows, **asked), seed


@pytest.mark.parametrize("block", range(3))
def test_tampered_pairs(tmp_path: Path, block: int) -> None:
    for seed in range(4 * block, 4 * block + 4):
        compared(tmp_path, seed)


@pytest.mark.slow
def test_many_tampered_pairs(tmp_path: Path) -> None:
    for seed in range(12, 800):
        compared(tmp_path, seed)
