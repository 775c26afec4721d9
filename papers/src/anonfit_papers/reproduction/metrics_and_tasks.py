# SPDX-License-Identifier: Apache-2.0
"""R33: whether a better weighted discernibility means a better result of the task (the hypothesis of section 6 of the
paper on weighted anonymization).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonfit.evaluation.learners import learner
from anonfit.evaluation.models import LearnedRecoding, imprecision
from anonfit.spec.model import SelectionSpec
from anonfit.tables.schema import persons_of
from anonfit_papers.datasets import ADULT, CRX, Source, is_there
from anonfit_papers.datasets_adult import ADULT_TAXONOMIES, complete_adult
from anonfit_papers.datasets_credit import CREDIT_CLASS, CREDIT_NUMBERS, complete_credit
from anonfit_papers.datasets_tables import fingerprint
from anonfit_papers.reproduction.comparing import rank_correlation
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.one_weight import MONDRIAN_COLUMNS
from anonfit_papers.reproduction.weighing import Released, released

ADULT_NAME, CREDIT_NAME = "Adult", "CRX"
QUERIES = 40
FIGURES = ("WDM", "GDM", "GCP", "NCP by weight")
TASKS = ("accuracy", "query error")


def _scale(settings: Settings) -> tuple[int, int, tuple[int, ...]]:
    """How many rows of Adult, how many seeds of what is drawn, and which k."""
    return settings.choose((1500, 1, (10,)), (30_162, 6, (5, 10, 25, 50, 100)))


def enforcements(seeds: int) -> dict[str, dict[str, Any]]:
    """Ways to enforce weights, each over the width and over the gain of splits.

    Args:
        seeds: How many times each way that draws is tried.
    """
    rules: dict[str, dict[str, Any]] = {
        "strict": {"weight_rule": "first"},
        "naive": {"weight_rule": "naive"},
        "product": {"weight_rule": "product"},
        **{f"blend {alpha}": {"weight_rule": "blend", "alpha": alpha} for alpha in (0.25, 0.5, 0.75)},
        **{f"probabilistic {seed}": {"weight_rule": "probabilistic", "seed": seed} for seed in range(seeds)},
    }
    ways: dict[str, dict[str, Any]] = {}
    for base, criterion in (("width", "weighted"), ("gain", "infogain")):
        ways[f"non-adaptive, {base}"] = {"criterion": "median" if base == "width" else "infogain"}
        ways |= {f"{name}, {base}": {"criterion": criterion, **words} for name, words in rules.items()}
    return ways


def table_of(settings: Settings, name: str) -> tuple[pl.DataFrame, list[str], str, dict[str, Any]]:
    """The rows of a table, its quasi-identifiers, its class, and words on its columns."""
    if name == CREDIT_NAME:
        return complete_credit(settings.data), list(CREDIT_NUMBERS), CREDIT_CLASS, {}
    trees = {column: ADULT_TAXONOMIES[column] for column in MONDRIAN_COLUMNS if column in ADULT_TAXONOMIES}
    words = {"taxonomies": trees, "splits": dict.fromkeys(trees, "multiway")}
    return complete_adult(settings.data)[: _scale(settings)[0]], list(MONDRIAN_COLUMNS), "class", words


def queries(frame: pl.DataFrame, weights: Mapping[str, float], count: int, seed: int = 0) -> list[SelectionSpec]:
    """Random selections by columns that matter, each drawn in proportion to its weight: a range of a number between two
    values of rows, or a name of a row.
    """
    rng = np.random.default_rng(seed)
    names = [name for name, weight in weights.items() if weight > 0]
    shares = np.array([weights[name] for name in names])
    selections = []
    for _ in range(count):
        name = names[int(rng.choice(len(names), p=shares / shares.sum()))]
        value, other = (frame[name][int(row)] for row in rng.integers(0, len(frame), 2))
        if frame[name].dtype.is_numeric():
            low, high = sorted((value, other))
            selections.append(SelectionSpec(where=f'"{name}" BETWEEN {low} AND {high}'))
        else:
            selections.append(SelectionSpec(where=f"\"{name}\" = '{value}'"))
    return selections


def measure(settings: Settings, name: str, k: int, seeds: int) -> Measured:
    """Figures and results of the tasks of every release at a k."""
    frame, columns, target, words = table_of(settings, name)
    order = np.random.default_rng(0).permutation(len(frame))
    cut = 2 * len(frame) // 3
    known, others = frame[order[:cut]], frame[order[cut:]]
    weights = dict(released(known, columns, k, targets=[target], weights_from="accuracy", **words).weights)
    asked = queries(known, weights, settings.choose(8, QUERIES))
    releases = {}
    for way, rule in enforcements(seeds).items():
        release = released(known, columns, k, **words, **_words(rule, weights, target))
        releases[way] = _figures(release, weights) | {
            "accuracy": _accuracy(release, known[target], others, target),
            "query error": _query_error(release, asked),
        }
    return {"weights": weights, "releases": releases}


def _words(rule: Mapping[str, Any], weights: Mapping[str, float], target: str) -> dict[str, Any]:
    """The words of a release; only those over the gain of splits know the class."""
    words = dict(rule)
    if "weight_rule" in rule:
        words["weights"] = dict(weights)
    if rule["criterion"] == "infogain":
        words["targets"] = [target]
    return words


def _figures(release: Released, weights: Mapping[str, float]) -> dict[str, float]:
    losses, wdm = release.losses(), release.wdm(weights)
    by_weight = sum(wdm.weights[column.name] * column.ncp for column in losses.columns)
    return {"WDM": wdm.total, "GDM": release.discernibility(), "GCP": losses.gcp, "NCP by weight": by_weight}


def _accuracy(release: Released, classes: pl.Series, others: pl.DataFrame, target: str) -> float:
    """How well naive Bayes, taught with the labels of a release, predicts the classes of other rows, in percent."""
    model = learner("naive-bayes").make(0).fit(release.labels(), classes)
    predicted = model.predict(release.labels(others))
    return 100 * float((predicted == others[target]).mean())  # type: ignore[arg-type]


def _query_error(release: Released, asked: Sequence[SelectionSpec]) -> float:
    """The rows that selections get though they were not meant, as a share of all rows, on average in percent."""
    rows = release.frame
    learned = LearnedRecoding(release.recoding, release.schema, rows, persons_of(len(rows), None, None), release.k)
    return 100 * imprecision(learned, asked, release.nodes) / (len(asked) * len(rows))


def _tables(folder: Path) -> dict[str, tuple[Source, ...]]:
    """The tables whose files are there."""
    return {name: files for name, files in ((ADULT_NAME, ADULT), (CREDIT_NAME, CRX)) if is_there(folder, files)}


def _plan(settings: Settings) -> Iterator[Part]:
    rows, seeds, ks = _scale(settings)
    for name, files in _tables(settings.data).items():
        mark = fingerprint(settings.data, files)
        for k in ks:
            key = {"of": "metrics and tasks", "table": name, "data": mark, "rows": rows, "seeds": seeds, "k": k}
            seconds = len(enforcements(seeds)) * (rows / 200_000 if name == ADULT_NAME else 0.01) + 0.5
            yield Part(key, seconds, partial(measure, settings, name, k, seeds))


def _judge(settings: Settings, gave: Sequence[Measured]) -> Result:
    _, _, ks = _scale(settings)
    names = list(_tables(settings.data))
    parts = {name: gave[place * len(ks) : (place + 1) * len(ks)] for place, name in enumerate(names)}
    rows, checks = [], []
    for name in names:
        means = {figure: {task: _mean_correlation(parts[name], figure, task) for task in TASKS} for figure in FIGURES}
        rows += [
            {"table": name, "figure": figure, **{task: round(correlations[task], 3) for task in TASKS}}
            for figure, correlations in means.items()
        ]
        for task, sign in zip(TASKS, (-1, 1), strict=True):
            weighted, general = sign * means["WDM"][task], sign * means["GDM"][task]
            more = weighted > max(general, 0.0)
            checks.append(
                Check(
                    f"{name}: a better WDM goes with a better {task}, more than a better GDM does",
                    more,
                    within_band=more,
                    found=f"rank correlation {means['WDM'][task]:+.2f} (GDM {means['GDM'][task]:+.2f}, NCP by weight "
                    f"{means['NCP by weight'][task]:+.2f})",
                )
            )
    notes = (
        "Spearman's rank correlation over all releases of one k, averaged over k. Less is better for the four figures "
        "and for the query error, more for the accuracy. Releases are non-adaptive, strict, naive, probabilistic and "
        "relaxed, each over the width and over the gain of splits; over the width, strict and naive are the same. "
        "Weights are found from single-column accuracy (3, 2, 1).",
        *(f"{name}, k = {k}: {_in_words(part)}." for name in names for k, part in zip(ks, parts[name], strict=True)),
    )
    return Result(pl.DataFrame(rows), _figure(parts, ks), tuple(checks), notes)


def _mean_correlation(gave: Sequence[Measured], figure: str, task: str) -> float:
    releases = [list(part["releases"].values()) for part in gave]
    correlations = [
        rank_correlation([release[figure] for release in own], [release[task] for release in own]) for own in releases
    ]
    return sum(correlations) / len(correlations)


def _in_words(part: Measured) -> str:
    """What a few ways gave."""
    shown = [name for name in part["releases"] if name.split(",")[0] in ("non-adaptive", "strict", "naive")]
    return "; ".join(
        f"{name}: accuracy {part['releases'][name]['accuracy']:.2f}, query error "
        f"{part['releases'][name]['query error']:.2f} %"
        for name in shown
    )


def _figure(parts: Mapping[str, Sequence[Measured]], ks: Sequence[int]) -> Figure:
    panels = []
    for name, gave in parts.items():
        for figure in ("WDM", "NCP by weight"):
            lines = []
            for k, part in zip(ks, gave, strict=True):
                own = list(part["releases"].values())
                largest = max(release[figure] for release in own) or 1.0
                points = [release[figure] / largest for release in own]
                lines.append(Line(f"k = {k}", points, [release["accuracy"] for release in own]))
            panels.append(Panel(name, f"{figure}, share of the largest", "accuracy in %", tuple(lines), kind="points"))
    return Figure("Figures of releases, and what a model learns from them", tuple(panels))


METRICS_AND_TASKS = Experiment(
    "R33",
    "Figures of a release, and results of tasks",
    "Rangachari and Xiong, section 6",
    ("W3",),
    "The hypothesis that better values of the weighted than of the general discernibility mean a better performance of "
    "the target application; the paper leaves it open.",
    "None: in each table and for each task, WDM is correlated in the right direction and more closely than GDM.",
    "Better is read as a rank correlation over releases of one k, averaged over k; the weighted figure must tell more "
    "than the general one; k are ours.",
    "Adult: at most 50,000 75.1 %, more 24.9 %; CRX: − 54.7 %, + 45.3 %.",
    "Naive Bayes of the names of labels, with Laplace's correction.",
    _plan,
    _judge,
    lambda folder: ADULT if is_there(folder, ADULT) or not is_there(folder, CRX) else CRX,
    "Adult (adult.data, eight columns) and CRX (six columns of numbers), where their files are there; two thirds of "
    "the rows are released, naive Bayes of their labels predicts the rest; 40 random selections by weighted columns "
    "(quick: 1,500 rows of Adult, one k).",
)
