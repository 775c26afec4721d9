# SPDX-License-Identifier: Apache-2.0
"""Tables of any size for the benchmarks: a base table blown up as in section 5.3 of the TDR paper."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "class",
]
QUASI_IDENTIFIERS = (
    "age",
    "workclass",
    "education-num",
    "marital-status",
    "occupation",
    "race",
    "sex",
    "native-country",
)
HOSPITAL = ("age", "sex", "postcode", "nationality", "admission", "length_of_stay", "ward", "insurance")


def data_folder() -> Path | None:
    """Where public data sets are: ANONFIT_DATA, or shared/data beside the project."""
    named = os.environ.get("ANONFIT_DATA")
    candidates = [Path(named)] if named else []
    candidates.append(Path(__file__).resolve().parents[2] / "shared" / "data")
    return next((folder for folder in candidates if (folder / "uci" / "adult.data").is_file()), None)


def base_table() -> tuple[str, pl.DataFrame, tuple[str, ...]]:
    """Adult where it is at hand, else the demo's hospital; its name, rows and eight quasi-identifiers."""
    folder = data_folder()
    if folder is not None:
        rows = pl.read_csv(folder / "uci" / "adult.data", has_header=False, new_columns=ADULT, infer_schema=False)
        rows = rows.select(pl.all().str.strip_chars()).filter(~pl.any_horizontal(pl.all() == "?"))
        numbers = [
            name
            for name in ADULT
            if name in ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
        ]
        return "UCI Adult", rows.with_columns(pl.col(numbers).cast(pl.Int64)).drop_nulls(), QUASI_IDENTIFIERS
    from anonfit.demo.population import hospital

    patients = hospital(45_000).drop_nulls().drop("patient_id")
    rng = np.random.default_rng(1)
    extra = {
        name: rng.integers(0, size, len(patients))
        for name, size in (("ward", 30), ("insurance", 5), ("a", 9), ("b", 90), ("c", 900), ("d", 2))
    }
    return "the demo's hospital", patients.with_columns(**{n: pl.Series(v) for n, v in extra.items()}), HOSPITAL


def blow_up(base: pl.DataFrame, names: tuple[str, ...], rows: int, seed: int = 0) -> pl.DataFrame:
    """So many rows: each a base record in which 1 to all quasi-identifiers are replaced by random values of their
    column.
    """
    rng = np.random.default_rng(seed)
    source = np.arange(rows) % len(base)
    table = base[source]
    replaced = rng.integers(1, len(names) + 1, rows)
    rank = rng.random((len(names), rows)).argsort(axis=0).argsort(axis=0)
    columns = []
    for index, name in enumerate(names):
        domain = base[name].unique().sort()
        drawn = domain.gather(rng.integers(0, len(domain), rows))
        change = (rank[index] < replaced) & (np.arange(rows) >= len(base))
        columns.append(pl.select(pl.when(pl.Series(change)).then(drawn).otherwise(table[name]).alias(name)).to_series())
    return table.with_columns(columns)


def workload_of(frame: pl.DataFrame) -> tuple[tuple[str, ...], pl.DataFrame, str, str]:
    """Six more columns, one of them of 20,000 values, the frame with them, a nominal target and a numeric one."""
    rng = np.random.default_rng(2)
    frame = frame.with_columns(wide=pl.Series(rng.integers(0, 20_000, len(frame))))
    if "class" in frame.columns:
        return (
            ("wide", "education", "relationship", "capital-gain", "capital-loss", "fnlwgt_class"),
            frame.with_columns(fnlwgt_class=pl.col("fnlwgt") % 200),
            "class",
            "hours-per-week",
        )
    return ("wide", "ward", "insurance", "a", "b", "c"), frame, "d", "b"
