# SPDX-License-Identifier: Apache-2.0
"""Adult masked by top-down refinement, and errors of learners on it: what most experiments of TKDE 2007 look at."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from anonfit_papers.datasets import ADULT
from anonfit_papers.datasets_divided import Divided, divided_adult
from anonfit_papers.datasets_tables import fingerprint
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Measured, Part, Settings
from anonfit_papers.reproduction.masking import J48, error_of, mask

KS = (*range(20, 201, 20), *range(300, 1001, 100))
TOP = 7
TOPS = (5, 7, 9)
SETTING = "UCI Adult without incomplete records (30,162 for training, 15,060 for testing), masked together."
READING = (
    "Every value of a taxonomy's cut is a candidate, refinements without gain are not made, and the taxonomies are "
    "those of the authors' program, where the paper prints only their sizes."
)
ADULT_SHARES = "At most 50,000 75.1 %, more 24.9 %"
SHARES = f"{ADULT_SHARES} in the training file, 75.4 and 24.6 % in the test file."


@cache
def adult(folder: Path) -> Divided:
    """Adult, read once."""
    return divided_adult(folder)


def _key(settings: Settings, of: str) -> dict[str, Any]:
    return {"of": of, "data": fingerprint(settings.data, ADULT)}


def _original(folder: Path, name: str) -> Measured:
    table = adult(folder)
    return {"error": error_of(table, table.frame, name)}


def _without(folder: Path, top: int, name: str) -> Measured:
    table = adult(folder)
    return {"error": error_of(table, table.frame.drop(table.ranked[:top]), name)}


def _masked(folder: Path, top: int, k: int, suppress: bool, name: str) -> Measured:
    table = adult(folder)
    masked = mask(table, [(table.ranked[:top], k)], suppress=suppress)
    return {
        "error": masked.error(name),
        "parts": masked.parts,
        "anonymity": masked.refinements["anonymity"][0],
        "groups": masked.refinements["groups"][0],
        "refinements": len(masked.refinements["steps"]),
    }


def baseline(settings: Settings, name: str = J48) -> Part:
    """The error on the original (BE)."""
    return Part({**_key(settings, "adult original"), "learner": name}, 3.0, partial(_original, settings.data, name))


def removed(settings: Settings, top: int, name: str = J48) -> Part:
    """The error without the first columns (UE)."""
    key = {**_key(settings, "adult without"), "learner": name, "top": top}
    return Part(key, 1.0, partial(_without, settings.data, top, name))


def masked_part(settings: Settings, top: int, k: int, *, suppress: bool = False, name: str = J48) -> Part:
    """The error on masked records (AE)."""
    key = {**_key(settings, "adult masked"), "learner": name, "top": top, "k": k, "suppress": suppress}
    return Part(key, 1.5, partial(_masked, settings.data, top, k, suppress, name))


def scale(settings: Settings) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many columns are masked, and for which k."""
    return settings.choose(((TOP,), (20, 600)), (TOPS, KS))


def curve_parts(settings: Settings, *, suppress: bool, name: str) -> list[Part]:
    """BE, then UE for each number of columns, then AE for each of them and each k."""
    tops, ks = scale(settings)
    parts = [baseline(settings, name), *(removed(settings, top, name) for top in tops)]
    return parts + [masked_part(settings, top, k, suppress=suppress, name=name) for top in tops for k in ks]


def errors_of(
    settings: Settings, gave: Sequence[Measured]
) -> tuple[float, dict[int, float], dict[int, dict[int, float]]]:
    """BE, UE by number of columns, and AE by number of columns and k, from what `curve_parts` gave."""
    tops, ks = scale(settings)
    errors = [part["error"] for part in gave]
    upper = dict(zip(tops, errors[1:], strict=False))
    values = iter(errors[1 + len(tops) :])
    return errors[0], upper, {top: {k: next(values) for k in ks} for top in tops}


def curve_rows(settings: Settings, gave: Sequence[Measured]) -> list[dict[str, Any]]:
    """A row for each number of columns and k."""
    base, upper, errors = errors_of(settings, gave)
    tops, ks = scale(settings)
    states = iter(gave[1 + len(tops) :])
    rows: list[dict[str, Any]] = []
    for top in tops:
        for k in ks:
            state = next(states)
            refinement = {name: state[name] for name in ("anonymity", "groups", "refinements")}
            error = errors[top][k]
            rows.append(
                {
                    "columns": top,
                    "k": k,
                    "BE": round(base, 2),
                    "AE": round(error, 2),
                    "UE": round(upper[top], 2),
                    "AE - BE": round(error - base, 2),
                    **refinement,
                }
            )
    return rows


def curve_figure(settings: Settings, gave: Sequence[Measured], title: str) -> Figure:
    """Errors over k, for each number of columns; BE and UE as level lines."""
    base, upper, errors = errors_of(settings, gave)
    _, ks = scale(settings)
    lines = [Line("BE", ks, [base] * len(ks), style="original", dashed=True)]
    for (top, by_k), style in zip(errors.items(), ("TDS", "InfoGain", "Median"), strict=False):
        lines.append(Line(f"Top{top}", ks, list(by_k.values()), style=style))
        lines.append(Line(f"Top{top} removed (UE)", ks, [upper[top]] * len(ks), style=style, dashed=True))
    return Figure(title, (Panel("", "k", "error in %", tuple(lines), log_x=True),))


def gap_check(claim: str, gaps: dict[int, float], claimed: float, band: float) -> Check:
    """Whether all differences are below what is said, and at most what is accepted. gaps: by k"""
    worst = max(gaps, key=lambda k: gaps[k])
    evidence = f"at most {gaps[worst]:.2f} points, at k = {worst}"
    return Check(claim, gaps[worst] < claimed, gaps[worst] <= band, evidence)
