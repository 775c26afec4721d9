# SPDX-License-Identifier: Apache-2.0
"""R30: one column of Adult weighted at a time, by two measures (section 5.2 of the paper on weighted anonymization)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from anonfit_papers.datasets import ADULT
from anonfit_papers.datasets_adult import ADULT_TAXONOMIES, complete_adult
from anonfit_papers.datasets_tables import fingerprint
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.weighing import Released, released

MONDRIAN_COLUMNS = (
    *("age", "sex", "race", "marital-status", "education", "native-country", "workclass", "occupation"),
)
"""The columns of the Mondrian paper, but for the class."""
TRAINING = 30_162
SPREAD, WEIGHT = "spread-only", "weight-only"
BEST = {"age", "sex"}
"""The columns of which the paper says that they have the best WDM."""


def _scale(settings: Settings) -> tuple[int, tuple[int, ...]]:
    """How many rows, and which k."""
    return settings.choose((2000, (5, 25)), (TRAINING, (5, 10, 25, 50, 100)))


def adult_release(frame: pl.DataFrame, k: int, weighted: str | None) -> Released:
    """A release of records of Adult, made by the weight of one column alone, or by the width of all.

    Args:
        frame: The records.
        k: How many rows must share every region.
        weighted: The column whose weight is 1 while that of all others is 0; None: no weights.
    """
    trees = {name: ADULT_TAXONOMIES[name] for name in MONDRIAN_COLUMNS if name in ADULT_TAXONOMIES}
    words = {"taxonomies": trees, "splits": dict.fromkeys(trees, "multiway"), "criterion": "median"}
    if weighted is not None:
        words |= {"criterion": "weighted", "weights": {name: float(name == weighted) for name in MONDRIAN_COLUMNS}}
    return released(frame, MONDRIAN_COLUMNS, k, **words)


def one_at_a_time(settings: Settings, rows: int, k: int) -> Measured:
    """NCP and WDM of every column, where nothing is weighted and where it alone is."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    frame = complete_adult(settings.data)[:rows]
    blind = adult_release(frame, k, None)
    for name in MONDRIAN_COLUMNS:
        own = adult_release(frame, k, name)
        figures[name] = {word: _of_column(release, name) for word, release in ((SPREAD, blind), (WEIGHT, own))}
    return dict(figures)


def _of_column(release: Released, name: str) -> dict[str, float]:
    ncp = next(column.ncp for column in release.losses().columns if column.name == name)
    return {"ncp": ncp, "wdm": float(release.wdm().columns[name])}


def _plan(settings: Settings) -> Iterator[Part]:
    rows, ks = _scale(settings)
    mark = fingerprint(settings.data, ADULT)
    for k in ks:
        key = {"of": "one weight", "data": mark, "rows": rows, "k": k}
        yield Part(key, rows / 1500 + 1, partial(one_at_a_time, settings, rows, k))


def _judge(settings: Settings, gave: Sequence[Measured]) -> Result:
    _, ks = _scale(settings)
    rows = [
        {
            "column": name,
            "k": k,
            "NCP, spread-only": round(part[name][SPREAD]["ncp"], 4),
            "NCP, weight-only": round(part[name][WEIGHT]["ncp"], 4),
            "WDM, spread-only": round(part[name][SPREAD]["wdm"] / 1e6, 3),
            "WDM, weight-only": round(part[name][WEIGHT]["wdm"] / 1e6, 3),
            "they disagree": _disagree(part[name]),
        }
        for name in MONDRIAN_COLUMNS
        for k, part in zip(ks, gave, strict=True)
    ]
    table = pl.DataFrame(rows)
    worse = [f"{row['column']}, k = {row['k']}" for row in rows if row["NCP, weight-only"] > row["NCP, spread-only"]]
    differ = [f"{row['column']}, k = {row['k']}" for row in rows if row["they disagree"]]
    means = {name: sum(part[name][WEIGHT]["wdm"] for part in gave) for name in MONDRIAN_COLUMNS}
    order = sorted(means, key=lambda name: means[name])
    gains = {name: 1 - means[name] / sum(part[name][SPREAD]["wdm"] for part in gave) for name in MONDRIAN_COLUMNS}
    best_gains = sorted(gains, key=lambda name: -gains[name])
    checks = (
        Check(
            "NCP of the weighted column is never worse than spread-only",
            not worse,
            not worse,
            f"worse in {len(worse)} of {len(rows)} cases" + (f" ({'; '.join(worse)})" if worse else ""),
        ),
        Check(
            "age and sex have the best WDM",
            set(order[:2]) == BEST or set(best_gains[:2]) == BEST,
            within_band=True,
            found=f"smallest WDM: {', '.join(order[:3])}; gained most of it: {', '.join(best_gains[:3])}",
        ),
    )
    notes = (
        "WDM (in millions) is of the weighted column alone; NCP is measured by the range of the rows. WDM and NCP "
        f"disagree in {len(differ)} of {len(rows)} cases which of the two releases tells more of the column: labels of "
        "regions overlap, every different label is a class of its own for WDM, and many that overlap look better than "
        "few that do not.",
    )
    return Result(table, _figure(ks, gave), checks, notes)


def _disagree(column: Measured) -> str:
    """By which measure alone the weighted release is better."""
    less = {name: column[SPREAD][name] - column[WEIGHT][name] for name in ("ncp", "wdm")}
    if less["ncp"] * less["wdm"] >= 0:
        return ""
    return "only NCP is better" if less["ncp"] > 0 else "only WDM is better"


def _figure(ks: Sequence[int], gave: Sequence[Measured]) -> Figure:
    panels = []
    for measure, title in (("ncp", "NCP"), ("wdm", "WDM")):
        lines = tuple(
            Line(name, ks, [part[name][WEIGHT][measure] / part[name][SPREAD][measure] for part in gave])
            if all(part[name][SPREAD][measure] for part in gave)
            else Line(name, ks, [1.0] * len(ks))
            for name in MONDRIAN_COLUMNS
        )
        panels.append(Panel(title, "k", "weight-only / spread-only", lines, log_x=True))
    return Figure("The weighted column of Adult", tuple(panels))


ONE_WEIGHT = Experiment(
    "R30",
    "One column weighted at a time",
    "Rangachari and Xiong, section 5.2, figures X-1 and X-2",
    ("W1",),
    "Weighting one column of Adult at a time improves the weighted discernibility of it; age and sex have the best "
    "values.",
    "NCP of the weighted column is never worse than spread-only, for every column and k; WDM is shown beside it with "
    "the cases where it disagrees.",
    _plan,
    _judge,
    lambda _: ADULT,
    "30,162 complete records of adult.data, the eight columns of the Mondrian paper without the class, taxonomies of "
    "TKDE 2007; weight 1 for one column and 0 for the others, enforced strictly (quick: 2,000 rows, two k).",
)
