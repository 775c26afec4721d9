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
ALIKE = 2.0
"""The factor that 'roughly the same' time may differ by."""


@cache
def _blown_up(folder: Path, rows: int) -> Divided:
    table = adult(folder)
    return replace(table, frame=blow_up(table.frame, rows, table.predictors))


def seconds(folder: Path, rows: int, kind: str) -> Measured:
    """The processor's time from raw columns in memory to masked ones; a few records are masked before, so that nothing
    is loaded meanwhile.
    """
    table = _blown_up(folder, rows)
    sets = random_requirements(table.predictors, 0) if kind == KINDS[1] else [tuple(table.predictors)]
    asked = [(columns, K) for columns in sets]
    suppress = kind == KINDS[2]
    mask(replace(table, frame=table.frame.head(1000)), [(columns, 2) for columns, _ in asked], suppress=suppress)
    start = time.process_time()
    masked = mask(table, asked, suppress=suppress)
    return {"seconds": time.process_time() - start, "refinements": len(masked.refinements["steps"])}


def _rows(settings: Settings) -> tuple[int, ...]:
    return settings.choose((50_000, 100_000, 200_000), (200_000, 400_000, 600_000, 800_000, 1_000_000, 2_000_000))


def _plan(settings: Settings) -> Iterator[Part]:
    mark = fingerprint(settings.data, ADULT)
    for rows in _rows(settings):
        for kind in KINDS:
            key = {"of": "refinement processor time", "data": mark, "rows": rows, "kind": kind, "k": K}
            yield Part(key, 0.5 + rows / 500_000, partial(seconds, settings.data, rows, kind))


def _judge(settings: Settings, gave: Sequence[Measured]) -> Result:
    counts = _rows(settings)
    times = {kind: [part["seconds"] for part in gave[place :: len(KINDS)]] for place, kind in enumerate(KINDS)}
    checks = []
    for kind, measured in times.items():
        slope = float(np.polyfit(np.log(counts), np.log(measured), 1)[0])
        fine = slope <= SLOPE
        checks.append(Check(f"{kind}: time grows as records do", fine, fine, f"log-log slope {slope:.2f}"))
    one, several, suppressed = (times[kind] for kind in KINDS)
    ratios = [more / less for less, more in zip(one, several, strict=True)]
    longer = min(ratios) > 1
    evidence = f"{min(ratios):.1f} to {max(ratios):.1f} times as long"
    checks.append(Check("several quasi-identifiers take longer than one of all columns", longer, longer, evidence))
    ratio = sum(suppressed) / sum(one)
    alike = 1 / ALIKE <= ratio <= ALIKE
    evidence = f"{ratio:.2f} times as long over all records"
    checks.append(Check("suppression takes roughly as long as generalization", alike, alike, evidence))
    rows = [
        {"records": number, **{kind: round(times[kind][place], 2) for kind in KINDS}}
        for place, number in enumerate(counts)
    ]
    styles = ("TDS", "InfoGain", "Median")
    thousands = [number / 1000 for number in counts]
    lines = tuple(Line(kind, thousands, times[kind], style=style) for kind, style in zip(KINDS, styles, strict=True))
    panel = Panel("", "thousand records", "seconds of the processor", lines)
    notes = (
        "Seconds of the processor from raw columns to masked ones, both in memory, by one thread; "
        "benchmarks/RESULTS.md has times by the clock.",
    )
    return Result(pl.DataFrame(rows), Figure(f"Time of top-down refinement, k = {K}", (panel,)), tuple(checks), notes)


REFINEMENT_TIME = Experiment(
    "R15",
    "Time over the number of records",
    "TKDE 2007, figure 11",
    ("T10",),
    "Time grows linearly with the number of records; several quasi-identifiers take longer than one of all 14 columns, "
    "suppression roughly as long as generalization.",
    f"Log-log slope at most {SLOPE}; several longer for every number of records; suppression at most {ALIKE:g} times "
    "as long or as short.",
    f"Linear is read as a slope of the logarithms of at most {SLOPE}, roughly the same as within a factor of "
    f"{ALIKE:g}. The paper's 80 seconds for a million records are of a machine of 2006, which any of today's beats: "
    "they are not compared. Several quasi-identifiers are one requirement drawn at random, where the paper has the "
    "mean of 30.",
    "At most 50,000 75.2 %, more 24.8 %, as in Adult.",
    NOBODY,
    _plan,
    _judge,
    lambda _: ADULT,
    "Adult blown up as in the paper: variations of its 45,222 records in which between one and all columns have values "
    "drawn at random, masked by one thread. 200,000 to 2,000,000 records (quick: 50,000 to 200,000).",
)
