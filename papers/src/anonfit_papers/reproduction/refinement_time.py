# SPDX-License-Identifier: Apache-2.0
"""R15: the time of top-down refinement over the number of records (figure 11 of TKDE 2007)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import polars as pl

from anonfit_papers.blow_up import blow_up, random_requirements
from anonfit_papers.datasets import ADULT
from anonfit_papers.datasets_divided import Divided
from anonfit_papers.datasets_tables import fingerprint
from anonfit_papers.reproduction.adult_parts import adult
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import NOBODY
from anonfit_papers.reproduction.masking import mask

K = 50
KINDS = ("one of all 14 columns", "several, drawn at random", "one, suppressed")
SLOPE = 1.2
PAPER = 80.0
"""Seconds for a million records."""


@cache
def _blown_up(folder: Path, rows: int) -> Divided:
    table = adult(folder)
    return replace(table, frame=blow_up(table.frame, rows, table.predictors))


def seconds(folder: Path, rows: int, kind: str) -> Measured:
    """The time from raw columns in memory to the masked columns in memory; once before, so that nothing is loaded."""
    table = _blown_up(folder, rows)
    sets = random_requirements(table.predictors, 0) if kind == KINDS[1] else [tuple(table.predictors)]
    asked = [(columns, K) for columns in sets]
    suppress = kind == KINDS[2]
    mask(replace(table, frame=table.frame.head(1000)), [(columns, 2) for columns, _ in asked], suppress=suppress)
    start = time.perf_counter()
    masked = mask(table, asked, suppress=suppress, threads=None)
    return {"seconds": time.perf_counter() - start, "refinements": len(masked.refinements["steps"])}


def _rows(settings: Settings) -> tuple[int, ...]:
    return settings.choose((50_000, 100_000, 200_000), (200_000, 400_000, 600_000, 800_000, 1_000_000, 2_000_000))


def _plan(settings: Settings) -> Iterator[Part]:
    mark = fingerprint(settings.data, ADULT)
    for rows in _rows(settings):
        for kind in KINDS:
            key = {"of": "refinement time", "data": mark, "rows": rows, "kind": kind, "k": K}
            yield Part(key, 1 + rows / 200_000, partial(seconds, settings.data, rows, kind))


def _judge(settings: Settings, gave: Sequence[Measured]) -> Result:
    counts = _rows(settings)
    times = {kind: [part["seconds"] for part in gave[place :: len(KINDS)]] for place, kind in enumerate(KINDS)}
    checks = []
    for kind, measured in times.items():
        slope = float(np.polyfit(np.log(counts), np.log(measured), 1)[0])
        fine = slope <= SLOPE
        checks.append(Check(f"{kind}: time grows as records do", fine, fine, f"log-log slope {slope:.2f}"))
    if 1_000_000 in counts:
        found_at = times[KINDS[0]][counts.index(1_000_000)]
        evidence = f"{found_at:.1f} s (paper: {PAPER:g} s on a machine of its time)"
        fast = found_at <= PAPER
        checks.append(Check("a million records take no longer than in the paper", fast, fast, evidence))
    rows = [
        {"records": number, **{kind: round(times[kind][place], 2) for kind in KINDS}}
        for place, number in enumerate(counts)
    ]
    styles = ("TDS", "InfoGain", "Median")
    thousands = [number / 1000 for number in counts]
    lines = tuple(Line(kind, thousands, times[kind], style=style) for kind, style in zip(KINDS, styles, strict=True))
    panel = Panel("", "thousand records", "seconds", lines)
    notes = (
        "Seconds from raw columns to masked ones, both in memory, on whatever else the machine had to do; "
        "benchmarks/RESULTS.md has quiet measurements.",
    )
    return Result(pl.DataFrame(rows), Figure(f"Time of top-down refinement, k = {K}", (panel,)), tuple(checks), notes)


REFINEMENT_TIME = Experiment(
    "R15",
    "Time over the number of records",
    "TKDE 2007, figure 11",
    ("T10",),
    "Time grows linearly with the number of records; a million records with one quasi-identifier of all 14 columns "
    "take about 80 seconds, several quasi-identifiers longer.",
    f"Log-log slope at most {SLOPE}.",
    "Linear is read as a slope of the logarithms of at most 1.2; the paper's seconds are of a machine of 2006 and are "
    "not compared.",
    "At most 50,000 75.2 %, more 24.8 %, as in Adult.",
    NOBODY,
    _plan,
    _judge,
    lambda _: ADULT,
    "Adult blown up as in the paper: variations of its 45,222 records in which between one and all columns have values "
    "drawn at random. 200,000 to 2,000,000 records (quick: 50,000 to 200,000).",
)
