# SPDX-License-Identifier: Apache-2.0
"""R34: the interval trees of hours and education-num at Top7, k = 60 (figure 7 of TKDE 2007), under all readings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from anonfit_papers.datasets import ADULT
from anonfit_papers.datasets_tables import fingerprint
from anonfit_papers.reproduction.adult_parts import SETTING, SHARES, TOP, adult
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import NOBODY
from anonfit_papers.reproduction.masking import mask

K = 60
HOURS, YEARS = "hours-per-week", "education-num"


@dataclass(frozen=True)
class Reading:
    """A way to read the paper."""

    words: str
    suppress: bool = False
    training_only: bool = False
    top: int = TOP
    options: dict[str, Any] = field(default_factory=dict)


READINGS = (
    Reading("as we read it: generalized, score"),
    Reading("generalized, zero gain", options={"zero_gain": True}),
    Reading("generalized, information gain", options={"criterion": "infogain"}),
    Reading("generalized, information gain, zero gain", options={"criterion": "infogain", "zero_gain": True}),
    Reading("generalized, training records only", training_only=True),
    Reading("generalized, training records only, information gain", False, True, options={"criterion": "infogain"}),
    Reading("generalized, Top5 and hours", top=5),
    Reading("suppressed, score", suppress=True),
    Reading("suppressed, best gain of a column", suppress=True, options={"suppression": "best_gain"}),
    Reading("suppressed, zero gain", suppress=True, options={"zero_gain": True}),
    Reading("suppressed, information gain", suppress=True, options={"criterion": "infogain"}),
    Reading("suppressed, training records only", suppress=True, training_only=True),
)


def tree(folder: Path, number: int) -> Measured:
    """The cuts of both columns under one reading."""
    reading, table = READINGS[number], adult(folder)
    if reading.training_only:
        table = replace(table, frame=table.frame.head(table.training))
    names = tuple(dict.fromkeys((*table.ranked[: reading.top], HOURS)))
    masked = mask(table, [(names, K)], suppress=reading.suppress, **reading.options)
    cuts = {column.name: list(getattr(column, "cuts", ())) for column in masked.recoding.columns}
    return {
        "hours": cuts[HOURS],
        "years": cuts[YEARS],
        "anonymity": masked.refinements["anonymity"][0],
        "parts": masked.parts,
    }


def _plan(settings: Settings) -> Iterator[Part]:
    mark = fingerprint(settings.data, ADULT)
    for number, reading in enumerate(READINGS):
        key = {"of": "interval trees", "data": mark, "reading": reading.words, "k": K}
        yield Part(key, 0.5, partial(tree, settings.data, number))


def _judge(_: Settings, gave: Sequence[Measured]) -> Result:
    both = [bool(part["hours"] and part["years"]) for part in gave]
    giving = [reading.words for reading, fine in zip(READINGS, both, strict=True) if fine]
    own = gave[0]
    evidence = f"hours cut at {own['hours'] or 'no place'}, education-num at {own['years'] or 'no place'}"
    evidence += f"; both trees: {'; '.join(giving)}" if giving else "; no reading gives both trees"
    cut = [part["years"] for part in gave if part["years"]]
    years = all(13 in places for places in cut)
    checks = (
        Check(f"Top{TOP}, k = {K}: hours and education-num both have an interval tree", both[0], any(both), evidence),
        Check("education-num is cut at 13 wherever it is cut", years, years, f"cut under {len(cut)} of {len(gave)}"),
    )
    rows = [
        {
            "reading": reading.words,
            "cuts of hours": ", ".join(map(str, part["hours"])) or "–",
            "cuts of education-num": ", ".join(map(str, part["years"])) or "–",
            "anonymity": part["anonymity"],
            "refined": ", ".join(name for name, count in part["parts"].items() if count > 1),
        }
        for reading, part in zip(READINGS, gave, strict=True)
    ]
    places = range(len(READINGS))
    lines = (
        Line("hours", places, [len(part["hours"]) for part in gave], style="TDS"),
        Line("education-num", places, [len(part["years"]) for part in gave], style="InfoGain"),
    )
    panel = Panel("", "reading, in the order of the table", "cuts", lines, "bars", tuple(str(n + 1) for n in places))
    return Result(pl.DataFrame(rows), Figure(f"Cuts at Top{TOP}, k = {K}", (panel,)), checks)


INTERVAL_TREES = Experiment(
    "R34",
    "Interval trees of hours and education-num",
    "TKDE 2007, figure 7",
    ("T11",),
    "For Top7 and k = 60 there are interval trees of hours and of education-num, the latter cut at 13 first.",
    "Both trees under some reading of the paper; which ones is reported.",
    "All readings that the paper leaves open are tried: suppressed or generalized, masked together or training "
    "records only, by score or by gain.",
    SHARES,
    NOBODY,
    _plan,
    _judge,
    lambda _: ADULT,
    SETTING,
)
