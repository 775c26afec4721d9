# SPDX-License-Identifier: Apache-2.0
"""R30: one column of Adult weighted at a time, by two measures (section 5.2 of the paper on weighted anonymization)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from anonfit_papers.datasets import ADULT
from anonfit_papers.datasets_adult import ADULT_TAXONOMIES, complete_adult
from anonfit_papers.datasets_tables import fingerprint
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import NO_CLASSES, NOBODY
from anonfit_papers.reproduction.paper_words import K_OURS
from anonfit_papers.reproduction.weighing import Released, released

MONDRIAN_COLUMNS = (
    *("age", "sex", "race", "marital-status", "education", "native-country", "workclass", "occupation"),
)
"""The columns of the Mondrian paper, but for the class."""
TRAINING = 30_162
SPREAD, WEIGHT = "spread-only", "weight-only"
BEST = {"age", "sex"}
"""The columns of which the paper says that they have the best WDM."""
TAXONOMIES, ORDERED = "taxonomies", "ordered names"
SHAPES = (TAXONOMIES, ORDERED)
MEASURES = {
    "WDM of the column": "wdm",
    "WDM of the column by observed ends": "observed",
    "WDM of all columns alike": "all",
    "GDM": "gdm",
}
LITERAL = f"{TAXONOMIES}, smallest WDM of the column"


def _scale(settings: Settings) -> tuple[int, tuple[int, ...]]:
    """How many rows, and which k."""
    return settings.choose((2000, (5, 25)), (TRAINING, (5, 10, 25, 50, 100)))


def adult_release(frame: pl.DataFrame, k: int, weighted: str | None, shape: str = TAXONOMIES) -> Released:
    """A release of records of Adult, made by the weight of one column alone, or by the width of all.

    Args:
        frame: The records.
        k: How many rows must share every region.
        weighted: The column whose weight is 1 while that of all others is 0; None: no weights.
        shape: Whether names have taxonomies, or are numbers in the order of the alphabet.
    """
    words: dict[str, Any] = {"criterion": "median"}
    if shape == TAXONOMIES:
        trees = {name: ADULT_TAXONOMIES[name] for name in MONDRIAN_COLUMNS if name in ADULT_TAXONOMIES}
        words |= {"taxonomies": trees, "splits": dict.fromkeys(trees, "multiway")}
    if weighted is not None:
        words |= {"criterion": "weighted", "weights": {name: float(name == weighted) for name in MONDRIAN_COLUMNS}}
    return released(frame if shape == TAXONOMIES else _ranks(frame), MONDRIAN_COLUMNS, k, **words)


def _ranks(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(pl.col(name).rank("dense").cast(pl.Int32) for name in MONDRIAN_COLUMNS)


def one_at_a_time(settings: Settings, rows: int, k: int, shape: str = TAXONOMIES) -> Measured:
    """What is found of every column, where nothing is weighted and where it alone is."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    frame = complete_adult(settings.data)[:rows]
    blind = adult_release(frame, k, None, shape)
    ranks = _ranks(frame)
    for name in MONDRIAN_COLUMNS:
        own = adult_release(frame, k, name, shape)
        figures[name] = {word: _of_column(release, ranks, name) for word, release in ((SPREAD, blind), (WEIGHT, own))}
    return dict(figures)


def _of_column(release: Released, ranks: pl.DataFrame, name: str) -> dict[str, float]:
    """NCP of the column, its WDM by labels of regions and by what their rows have, that of all columns, and GDM."""
    ncp = next(column.ncp for column in release.losses().columns if column.name == name)
    wdm = release.wdm().columns
    ends = pl.DataFrame({"node": release.nodes, "rank": ranks[name]}).group_by("node")
    seen = ends.agg(pl.col("rank").min().alias("low"), pl.col("rank").max().alias("high"), pl.len().cast(pl.Int64))
    alike = seen.group_by("low", "high").agg(pl.col("len").sum())["len"]
    counts = ranks[name].value_counts()["count"].cast(pl.Int64)
    return {
        "ncp": ncp,
        "wdm": float(wdm[name]),
        "observed": float((alike**2).sum()),
        "all": float(sum(wdm.values())),
        "gdm": release.discernibility(),
        "raw": float((counts**2).sum()),
    }


def _plan(settings: Settings) -> Iterator[Part]:
    rows, ks = _scale(settings)
    mark = fingerprint(settings.data, ADULT)
    for shape in SHAPES:
        for k in ks:
            key = {"of": "one weight, beside raw rows", "data": mark, "rows": rows, "k": k, "shape": shape}
            yield Part(key, rows / 10_000 + 1, partial(one_at_a_time, settings, rows, k, shape))


def _judge(settings: Settings, gave: Sequence[Measured]) -> Result:
    total, ks = _scale(settings)
    found = {shape: gave[place * len(ks) : (place + 1) * len(ks)] for place, shape in enumerate(SHAPES)}
    main = found[TAXONOMIES]
    rows = [_row(name, k, part[name]) for name in MONDRIAN_COLUMNS for k, part in zip(ks, main, strict=True)]
    differ = [row for row in rows if row["they disagree"]]
    scores = dict(_scores(found))
    notes = (
        "WDM (in millions) is of the weighted column alone; NCP is measured by the range of the rows. WDM and NCP "
        f"disagree in {len(differ)} of {len(rows)} cases which of the two releases tells more of the column: labels of "
        "regions overlap, every different label is a class of its own for WDM, and many that overlap look better than "
        "few that do not.",
        "The best columns under each reading, over all k, with their share of the largest, of what spread-only has, or "
        "how far they are from the raw table: "
        + "; ".join(f"{reading}: {_first_three(score)}" for reading, score in scores.items())
        + ".",
        "Sex has two values and is the widest column of every region until it is split, so it is split first with and "
        "without a weight: its WDM is that of the raw table at every k, and no weight changes it."
        + _bound(main, total),
    )
    return Result(pl.DataFrame(rows), _figure(ks, main), (_never_worse(rows), _best_by_wdm(scores)), notes)


def _row(name: str, k: int, column: Measured) -> dict[str, Any]:
    return {
        "column": name,
        "k": k,
        "NCP, spread-only": round(column[SPREAD]["ncp"], 4),
        "NCP, weight-only": round(column[WEIGHT]["ncp"], 4),
        "WDM, spread-only": round(column[SPREAD]["wdm"] / 1e6, 3),
        "WDM, weight-only": round(column[WEIGHT]["wdm"] / 1e6, 3),
        "they disagree": _disagree(column),
    }


def _never_worse(rows: Sequence[Mapping[str, Any]]) -> Check:
    worse = [f"{row['column']}, k = {row['k']}" for row in rows if row["NCP, weight-only"] > row["NCP, spread-only"]]
    found = f"worse in {len(worse)} of {len(rows)} cases" + (f" ({'; '.join(worse)})" if worse else "")
    return Check("NCP of the weighted column is never worse than spread-only", not worse, not worse, found)


def _best_by_wdm(scores: Mapping[str, Mapping[str, float]]) -> Check:
    agree = [reading for reading, score in scores.items() if _are_best(score)]
    found = (
        f"{LITERAL}: {', '.join(_ordered(scores[LITERAL])[:3])}; age and sex come first under {len(agree)} of "
        f"{len(scores)} readings" + (f" ({'; '.join(agree)})" if agree else "")
    )
    return Check("age and sex have the best WDM", LITERAL in agree, bool(agree), found)


def _ordered(score: Mapping[str, float]) -> list[str]:
    return sorted(score, key=lambda name: score[name])


def _are_best(score: Mapping[str, float]) -> bool:
    """Whether age and sex are before all other columns; as good as one of them does not count."""
    return max(score[name] for name in BEST) < min(score[name] for name in score if name not in BEST)


def _bound(parts: Sequence[Measured], total: int) -> str:
    """Why sex cannot have one of the two smallest WDM, if other columns show it."""
    least = total**2 / 3
    below = [name for name in MONDRIAN_COLUMNS if all(part[name][WEIGHT]["wdm"] < least for part in parts)]
    if len(below) < 2:
        return ""
    return (
        " Nor can any other release bring it below a third of the square of all rows, "
        f"{least / 1e6:,.0f} million, since its labels are three: male, female and both. The WDM of "
        f"{', '.join(below)} is below that at every k where they are weighted, so that sex is not among the best two "
        "by any WDM of the column itself; it can only be least changed."
    )


def _first_three(score: Mapping[str, float]) -> str:
    """The best three columns, each with its share of the worst, or of what spread-only has."""
    worst = max(*score.values(), 1.0)
    return ", ".join(
        f"{name} {score[name] / worst if worst > 100 else score[name]:.3f}" for name in _ordered(score)[:3]
    )


def _scores(found: Mapping[str, Sequence[Measured]]) -> Iterator[tuple[str, dict[str, float]]]:
    """Readings of best, each with what the columns have, summed over k; less is better."""
    for shape, parts in found.items():
        for word, measure in MEASURES.items():
            weighted, blind = (
                {name: sum(part[name][how][measure] for part in parts) for name in MONDRIAN_COLUMNS}
                for how in (WEIGHT, SPREAD)
            )
            scores = {"smallest": weighted}
            if measure in ("wdm", "observed"):
                scores["most gained"] = {name: weighted[name] / blind[name] for name in MONDRIAN_COLUMNS}
                scores["nearest to raw"] = {
                    name: sum(abs(part[name][WEIGHT][measure] / part[name][WEIGHT]["raw"] - 1) for part in parts)
                    / len(parts)
                    for name in MONDRIAN_COLUMNS
                }
            for best, score in scores.items():
                yield f"{shape}, {best} {word}", score


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
    "NCP of the weighted column is never worse than spread-only, for every column and k; age and sex have the best "
    "WDM under some reading.",
    "Best is read as the smallest WDM of the weighted column; beside it as the most gained against spread-only, as "
    "the nearest to the raw table, as the WDM of all columns alike and as GDM, by labels of regions and by what their "
    f"rows have, with taxonomies of names and with names as ordered numbers, as Mondrian took them. {K_OURS}",
    NO_CLASSES,
    NOBODY,
    _plan,
    _judge,
    lambda _: ADULT,
    "30,162 complete records of adult.data, the eight columns of the Mondrian paper without the class, taxonomies of "
    "TKDE 2007; weight 1 for one column and 0 for the others, enforced strictly (quick: 2,000 rows, two k).",
)
