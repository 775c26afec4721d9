# SPDX-License-Identifier: Apache-2.0
"""R4, R5, R6 and R8: single numbers of the experiments on Adult in TKDE 2007."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from anonfit.errors import counted
from anonfit_papers.datasets import ADULT
from anonfit_papers.reproduction.adult_parts import READING, SETTING, SHARES, TOP, TOPS, baseline, masked_part, removed
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import J48_SETTINGS, NOBODY

K = 500
KEPT_WHOLE = ("capital-gain", "age", "relationship", "sex")
_NAMES = {
    "capital-gain": "Cg",
    "age": "Ag",
    "marital-status": "M",
    "education-num": "En",
    "relationship": "Re",
    "hours-per-week": "H",
    "sex": "S",
}
OWN_BAND = (
    "The paper prints one number and no band: to the digit it prints the claim holds, and what is accepted beside it "
    "is our own reading."
)
NEAR = 0.05
"""Points: the paper prints one decimal."""
ABOUT = 0.25
"""Points: so near a number is that the paper gives by about."""


def _number(name: str, value: float, claimed: float, band: tuple[float, float], near: float = NEAR) -> Check:
    """Whether a number is the paper's, and whether it lies in a band."""
    evidence = f"{value:.2f} (paper {claimed:g})"
    return Check(f"{name} is {claimed:g}", abs(value - claimed) <= near, band[0] <= value <= band[1], evidence)


def _cut_plan(settings: Settings) -> Iterator[Part]:
    yield masked_part(settings, TOP, K)


def _cut_judge(_: Settings, gave: Sequence[Measured]) -> Result:
    parts: dict[str, int] = gave[0]["parts"]
    checks = []
    for name, count in parts.items():
        whole = name in KEPT_WHOLE
        fine = (count == 1) == whole
        claim = f"{_NAMES[name]} is {'masked to ANY' if whole else 'masked to a part of its detail'}"
        checks.append(Check(claim, fine, fine, counted(count, "part")))
    rows = [
        {"column": name, "paper": "ANY" if name in KEPT_WHOLE else "refined", "parts": n} for name, n in parts.items()
    ]
    ticks = tuple(_NAMES[name] for name in parts)
    panel = Panel("", "", "parts", (Line("TDS", range(len(parts)), list(parts.values())),), "bars", ticks)
    notes = (f"Smallest group {gave[0]['anonymity']}, {gave[0]['groups']} groups.",)
    return Result(
        pl.DataFrame(rows), Figure(f"Parts of the columns, Top{TOP}, k = {K}", (panel,)), tuple(checks), notes
    )


CUT_OF_SEVEN = Experiment(
    "R4",
    "What is masked at k = 500",
    "TKDE 2007, section 5.1.1 (figure 6 a)",
    ("T3",),
    "For Top7 and k = 500, Cg, Ag, Re and S are masked to ANY, the other three to some detail.",
    "Exact.",
    READING,
    SHARES,
    NOBODY,
    _cut_plan,
    _cut_judge,
    lambda _: ADULT,
    SETTING,
)


def _single(part: Callable[[Settings], Part]) -> Callable[[Settings], Iterator[Part]]:
    def plan(settings: Settings) -> Iterator[Part]:
        yield part(settings)

    return plan


def _bars(title: str, names: Sequence[str], values: Sequence[float], paper: Sequence[float]) -> Figure:
    places = range(len(names))
    lines = (Line("paper", places, paper, style="original"), Line("found", places, values, style="TDS"))
    return Figure(title, (Panel("", "", "error in %", lines, "bars", tuple(names)),))


def _base_judge(_: Settings, gave: Sequence[Measured]) -> Result:
    error = gave[0]["error"]
    check = _number("the baseline error", error, 14.7, (14.0, 15.2))
    rows = pl.DataFrame([{"error": "BE", "paper": 14.7, "found": round(error, 2)}])
    return Result(rows, _bars("J48 on Adult", ["BE"], [error], [14.7]), (check,))


BASELINE_ERROR = Experiment(
    "R5",
    "The error on Adult as it is",
    "TKDE 2007, section 5.1.1",
    ("T4",),
    "C4.5 errs on 14.7 % of the test records (BE).",
    "14.0 to 15.2 %.",
    f"{READING} {OWN_BAND}",
    SHARES,
    f"{J48_SETTINGS}.",
    _single(baseline),
    _base_judge,
    lambda _: ADULT,
    SETTING,
)


def _upper_plan(settings: Settings) -> Iterator[Part]:
    yield from (removed(settings, top) for top in TOPS)


def _upper_judge(_: Settings, gave: Sequence[Measured]) -> Result:
    errors = dict(zip(TOPS, (part["error"] for part in gave), strict=True))
    check = _number(f"the error without Top{TOP}", errors[TOP], 21.5, (20.5, 22.5))
    rows = [
        {"removed": f"Top{top}", "paper": 21.5 if top == TOP else None, "found": round(error, 2)}
        for top, error in errors.items()
    ]
    figure = _bars("J48 on Adult without the first columns", [f"Top{TOP}"], [errors[TOP]], [21.5])
    return Result(pl.DataFrame(rows), figure, (check,))


UPPER_ERROR = Experiment(
    "R6",
    "The error on Adult without the quasi-identifier",
    "TKDE 2007, section 5.1.1",
    ("T4",),
    "C4.5 errs on 21.5 % of the test records if Top7 is removed (UE).",
    "20.5 to 22.5 %.",
    f"{READING} {OWN_BAND}",
    SHARES,
    f"{J48_SETTINGS}.",
    _upper_plan,
    _upper_judge,
    lambda _: ADULT,
    SETTING,
)


def _at_500_plan(settings: Settings) -> Iterator[Part]:
    yield baseline(settings)
    yield masked_part(settings, TOP, K)


def _at_500_judge(_: Settings, gave: Sequence[Measured]) -> Result:
    base, masked = (part["error"] for part in gave)
    check = _number(f"the error at k = {K}", masked, 16.7, (16.2, 17.3), near=ABOUT)
    rows = [
        {"error": "BE", "paper": 14.7, "found": round(base, 2)},
        {"error": "AE", "paper": 16.7, "found": round(masked, 2)},
    ]
    figure = _bars(f"J48 on Adult, Top{TOP} masked at k = {K}", ["BE", "AE"], [base, masked], [14.7, 16.7])
    return Result(pl.DataFrame(rows), figure, (check,))


ERROR_AT_500 = Experiment(
    "R8",
    "The error at k = 500",
    "TKDE 2007, section 5.1.1",
    ("T3",),
    "For Top7 and k = 500, AE is only about 2 points above BE = 14.7 %: about 16.7 %.",
    "16.2 to 17.3 %.",
    f"{READING} About 2 points is read as 2 within {ABOUT:g}; that, and what is accepted beside it, is our own "
    "reading.",
    SHARES,
    f"{J48_SETTINGS}.",
    _at_500_plan,
    _at_500_judge,
    lambda _: ADULT,
    SETTING,
)
