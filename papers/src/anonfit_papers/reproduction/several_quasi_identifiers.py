# SPDX-License-Identifier: Apache-2.0
"""R11: errors with several quasi-identifiers, against all their columns as one (figure 8 of TKDE 2007)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from anonfit_papers.blow_up import random_requirements
from anonfit_papers.datasets import ADULT
from anonfit_papers.datasets_tables import fingerprint
from anonfit_papers.reproduction.adult_parts import READING, SETTING, SHARES, adult
from anonfit_papers.reproduction.comparing import WEAK, difference, sign_test
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import J48_SETTINGS
from anonfit_papers.reproduction.masking import J48, mask

K = 100
MOST = 0.6


def requirement(folder: Path, number: int) -> Measured:
    """The errors of one random requirement, as it is and with all its columns as one quasi-identifier."""
    table = adult(folder)
    sets = random_requirements(table.predictors, number)
    union = tuple(name for name in table.predictors if any(name in columns for columns in sets))
    several, joined = mask(table, [(columns, K) for columns in sets]), mask(table, [(union, K)])
    return {
        "quasi-identifiers": len(sets),
        "length": len(sets[0]),
        "columns": len(union),
        "several": several.error(J48),
        "one": joined.error(J48),
        "refinements": [len(masked.refinements["steps"]) for masked in (several, joined)],
    }


def _plan(settings: Settings) -> Iterator[Part]:
    mark = fingerprint(settings.data, ADULT)
    for number in range(settings.choose(3, 30)):
        key = {"of": "several quasi-identifiers", "data": mark, "requirement": number, "k": K}
        yield Part(key, 1.5, partial(requirement, settings.data, number))


def _judge(_: Settings, gave: Sequence[Measured]) -> Result:
    several, joined = [part["several"] for part in gave], [part["one"] for part in gave]
    lower, higher = (
        sum(a < b for a, b in zip(one, other, strict=True)) for one, other in ((several, joined), (joined, several))
    )
    gap, likely = difference(joined, several), sign_test(lower, higher)
    fine = (len(gave) - higher) / len(gave) >= MOST
    evidence = f"lower for {lower}, higher for {higher} of {len(gave)}, p of the signs = {likely:.2g}"
    checks = (
        Check(
            "most requirements give lower errors than their union",
            lower > len(gave) / 2,
            fine,
            evidence,
            likely >= WEAK,
        ),
        Check("errors are lower on average", gap.mean > 0, gap.mean > 0, gap.told("lower", "higher"), gap.is_weak),
    )
    rows = [
        {
            "requirement": number,
            "quasi-identifiers": part["quasi-identifiers"],
            "length": part["length"],
            "columns": part["columns"],
            "AE several": round(part["several"], 2),
            "AE one": round(part["one"], 2),
            "refinements several": part["refinements"][0],
            "refinements one": part["refinements"][1],
        }
        for number, part in enumerate(gave)
    ]
    ends = [min(*several, *joined), max(*several, *joined)]
    lines = (
        Line("random requirements", several, joined, style="TDS"),
        Line("equal errors", ends, ends, style="original", dashed=True),
    )
    panel = Panel("", "AE in %, several quasi-identifiers", "AE in %, all their columns as one", lines, "points")
    return Result(pl.DataFrame(rows), Figure(f"J48, generalized, k = {K}", (panel,)), checks)


SEVERAL_QUASI_IDENTIFIERS = Experiment(
    "R11",
    "Several quasi-identifiers against one",
    "TKDE 2007, figure 8",
    ("T7",),
    "Several quasi-identifiers give lower errors than all their columns as one, for most of 30 random requirements.",
    "Lower or equal for at least 60 %, and lower on average.",
    f"{READING} Most is read as more than half; chance is asked too, by a paired t-test over the requirements.",
    SHARES,
    f"{J48_SETTINGS}.",
    _plan,
    _judge,
    lambda _: ADULT,
    SETTING + " Three to seven quasi-identifiers of one length, two to nine of the 14 columns, drawn at random. Quick: "
    "three requirements.",
)
