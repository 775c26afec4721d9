# SPDX-License-Identifier: Apache-2.0
"""R14 and R42: errors of top-down refinement against a genetic search by the loss and the classification metric, and
alone for larger k (figure 10).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from anonfit.evaluation.learners import learner
from anonfit_papers.datasets import ADULT
from anonfit_papers.datasets_tables import fingerprint
from anonfit_papers.genetic_search import GeneticSearch, Metric, cost_of_parts
from anonfit_papers.reproduction.adult_parts import ADULT_SHARES, adult
from anonfit_papers.reproduction.comparing import difference, mean_and_error
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import J48_SETTINGS
from anonfit_papers.reproduction.learning import ORIGINAL, TDS, Holdout, folds
from anonfit_papers.reproduction.masking import J48
from anonfit_papers.reproduction.paper_words import K_BETWEEN

COLUMNS = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")
METRICS: tuple[Metric, ...] = ("CM", "LM")
METHODS = (TDS, *METRICS)
NAMES = {TDS: "top-down refinement", "CM": "classification metric", "LM": "loss metric"}
NEAR = 0.2
"""Points by which an opponent may be ahead within the band."""
COMPARED = 100
"""The k from which on the paper finds the loss metric clearly worse."""
CHROMOSOMES = 8000
LAST, BEYOND = 500, (750, 1000)
"""The largest k of the comparison, and those for which the paper has top-down refinement alone."""
STILL_WELL = 1.0
"""Points that it may err more there."""
MAJORITY = 100 * 7508 / 30_162
"""The error of who always says ≤50K, on the records of the training file."""


def _scale(settings: Settings) -> tuple[int, int | None, tuple[int, ...]]:
    """How many folds, how many records (None: all for training), and which k."""
    return settings.choose((2, 4000, (100,)), (10, None, (10, 25, 50, 100, 250, 500)))


def fold(folder: Path, count: int, sample: int | None, number: int, k: int, chromosomes: int) -> Measured:
    """J48's error on one fold, with parts that each method learned from the others, and how well each method does by
    the two metrics.
    """
    holdout = _holdout(folder, count, sample, number)
    trees, target = holdout.taxonomies, holdout.targets[0]
    refined = holdout.recoded(TDS, k)
    errors: Measured = {TDS: 100 - refined.tested(J48, target).accuracy}
    labels = holdout.training[target], holdout.test[target]
    features = holdout.training.drop(target), holdout.test.drop(target)
    shown = pl.DataFrame([parts[0] for parts in refined.training.values()])
    for metric in METRICS:
        search = GeneticSearch(metric, k, trees, number, chromosomes).fit(features[0], labels[0])
        model = learner(J48).make(0).fit(search.released(features[0]), labels[0])
        wrong = model.predict(search.apply(features[1])) != labels[1]
        errors[metric] = 100 * int(wrong.sum()) / len(wrong)
        errors[f"{metric} found"] = 100 * search.cost
        errors[f"{metric} suppressed"] = 100 * search.suppressed
        errors[f"{metric} of {TDS}"] = 100 * cost_of_parts(metric, trees, features[0], shown, labels[0])
    return errors


def _holdout(folder: Path, count: int, sample: int | None, number: int) -> Holdout:
    table = adult(folder)
    frame = table.frame[: table.training].select(*COLUMNS, table.target)
    training, test = list(folds(len(frame), count, sample=sample))[number]
    trees = {name: table.taxonomies[name] for name in COLUMNS if name in table.taxonomies}
    return Holdout(frame[training], frame[test], (table.target,), trees, {})


def _plan(settings: Settings) -> Iterator[Part]:
    count, sample, ks = _scale(settings)
    mark = fingerprint(settings.data, ADULT)
    chromosomes = settings.choose(2000, CHROMOSOMES)
    for k in ks:
        for number in range(count):
            key = {"of": "genetic search", "data": mark, "folds": count, "rows": sample, "fold": number, "k": k}
            work = partial(fold, settings.data, count, sample, number, k, chromosomes)
            yield Part({**key, "chromosomes": chromosomes}, settings.choose(2.0, 8.0), work)


def _judge(settings: Settings, gave: Sequence[Measured]) -> Result:
    count, _, ks = _scale(settings)
    by_k = {k: _series(gave[place * count : (place + 1) * count]) for place, k in enumerate(ks)}
    checks = [check for k, found in by_k.items() for check in _compared(k, found, count)]
    ahead = sum(sum(found["CM"]) - sum(found[TDS]) for found in by_k.values()) / (count * len(ks))
    evidence = f"{abs(ahead):.2f} points {'lower' if ahead >= 0 else 'higher'} on average over k"
    checks.append(Check("no worse than by the classification metric, over all k", ahead >= 0, ahead >= -NEAR, evidence))
    checks += [_is_an_opponent(metric, by_k) for metric in METRICS]
    styles = {TDS: TDS, "CM": "InfoGain", "LM": "Median"}
    lines = tuple(Line.of(NAMES[m], ks, [by_k[k][m] for k in ks], style=styles[m]) for m in METHODS)
    panel = Panel("", "k", "error in %", lines, log_x=len(ks) > 1)
    notes = (
        "Errors in percent, mean over folds ± its standard error. CM and LM are what the training rows cost by the "
        "metric, in percent, found by the genetic search and by top-down refinement; suppressed: training rows in "
        "groups of fewer than k, of which nothing is told. No test row is suppressed.",
    )
    figure = Figure("J48, eight columns of Adult", (panel,))
    return Result(pl.DataFrame([_row(k, found) for k, found in by_k.items()]), figure, tuple(checks), notes)


def _series(parts: Sequence[Measured]) -> dict[str, list[float]]:
    return {name: [part[name] for part in parts] for name in parts[0]}


def _compared(k: int, found: Mapping[str, Sequence[float]], count: int) -> Iterator[Check]:
    for metric in ("LM", "CM"):
        gap = difference(found[metric], found[TDS], folds=count)
        own, other = (mean_and_error(found[name])[0] for name in (f"{metric} found", f"{metric} of {TDS}"))
        told = gap.told("lower", "higher")
        if own >= other:
            told += f"; no opponent here, {own:.2f} against {other:.2f} % by its own metric: not won, whoever is ahead"
        # The paper's "slightly" asks for no more than the direction by CM; how far behind is asked over all k.
        near = metric == "CM" or k < COMPARED or (gap.mean >= -NEAR and own < other)
        claim = f"k = {k}: better than by the {NAMES[metric]}"
        yield Check(claim, gap.mean > 0 and own < other, near, told, gap.is_weak)


def _is_an_opponent(metric: Metric, by_k: Mapping[int, Mapping[str, Sequence[float]]]) -> Check:
    """Nothing is won against a search that does not even do what it is for."""
    own, other = (
        {k: mean_and_error(found[name])[0] for k, found in by_k.items()}
        for name in (f"{metric} found", f"{metric} of {TDS}")
    )
    better = sum(own.values()) < sum(other.values())
    closest = max(own, key=lambda k: own[k] - other[k])
    evidence = (
        f"{sum(own.values()) / len(own):.2f} against {sum(other.values()) / len(own):.2f} % on average over k; closest "
        f"at k = {closest}, {own[closest]:.2f} against {other[closest]:.2f} %"
    )
    claim = f"by its own metric ({metric}) the opponent is better than top-down refinement"
    return Check(claim, better, better, evidence)


def _row(k: int, found: Mapping[str, Sequence[float]]) -> dict[str, object]:
    row: dict[str, object] = {"k": k}
    for method in METHODS:
        mean, error = mean_and_error(found[method])
        row |= {method: round(mean, 2), f"{method} error": round(error, 2)}
    for metric in METRICS:
        for name in (f"{metric} found", f"{metric} of {TDS}", f"{metric} suppressed"):
            row[name] = round(mean_and_error(found[name])[0], 2)
    return row


def refined_fold(folder: Path, count: int, sample: int | None, number: int, k: int) -> Measured:
    """J48's error on one fold with the parts of top-down refinement, and with the columns as they are for k = 0."""
    holdout = _holdout(folder, count, sample, number)
    return {"error": 100 - holdout.recoded(TDS if k else ORIGINAL, k).tested(J48, holdout.targets[0]).accuracy}


def _plan_alone(settings: Settings) -> Iterator[Part]:
    count, _, _ = _scale(settings)
    mark = fingerprint(settings.data, ADULT)
    for k in (0, LAST, *BEYOND):
        for number in range(count):
            # A quick run has all records, too: of few, nothing can be refined for such k.
            own = {"folds": count, "rows": None, "fold": number, "k": k}
            key = {"of": "top-down refinement alone", "data": mark, **own}
            yield Part(key, 0.7, partial(refined_fold, settings.data, count, None, number, k))


def _judge_alone(settings: Settings, gave: Sequence[Measured]) -> Result:
    count, _, _ = _scale(settings)
    ks = (0, LAST, *BEYOND)
    errors = {k: [part["error"] for part in gave[place * count : (place + 1) * count]] for place, k in enumerate(ks)}
    last, whole = (mean_and_error(errors[k])[0] for k in (LAST, 0))
    # Who has nothing to lose loses nothing.
    useful = last < MAJORITY - STILL_WELL
    evidence = f"{last:.2f} % errors, {MAJORITY:.2f} % of the more frequent class, {whole:.2f} % of the original"
    checks = [Check(f"k = {LAST}: better than the more frequent class alone", useful, useful, evidence)]
    for k in BEYOND:
        gap = difference(errors[k], errors[LAST], folds=count)
        fine = gap.mean <= STILL_WELL
        claim = f"k = {k}: at most {STILL_WELL:g} point more errors than at k = {LAST}"
        checks.append(Check(claim, fine, fine, gap.told("more", "fewer")))
    rows = []
    for k, numbers in errors.items():
        mean, error = mean_and_error(numbers)
        rows.append({"k": k or None, "rows": "refined" if k else "original", "error": mean, "error error": error})
    table = pl.DataFrame(rows).with_columns(pl.col("error", "error error").round(2))
    shown = (LAST, *BEYOND)
    lines = (
        Line.of(ORIGINAL, shown, [errors[0]] * len(shown)),
        Line.of(NAMES[TDS], shown, [errors[k] for k in shown], style=TDS),
    )
    panel = Panel("", "k", "error in %", lines)
    notes = (
        "Errors in percent, mean over folds ± its standard error. Who guesses the more frequent class errs on "
        f"{MAJORITY:.1f} %.",
    )
    return Result(table, Figure("J48, eight columns of Adult", (panel,)), tuple(checks), notes)


LOSS_METRICS = Experiment(
    "R14",
    "Against loss and classification metric",
    "TKDE 2007, figure 10",
    ("T9",),
    "Top-down refinement gives lower errors than the loss metric, above all for k ≥ 100, and slightly lower ones than "
    "the classification metric.",
    f"For k ≥ {COMPARED}, at most {NEAR:g} points above the error by the loss metric; over all k, at most {NEAR:g} "
    "points above that by the classification metric; each opponent better by its own metric than top-down refinement, "
    "or it is none; at a k where it is not, nothing is won against it.",
    "The opponent is Iyengar's genetic algorithm with suppression, bred anew; the paper quotes the errors that he "
    "found. The taxonomies of that comparison are his, for both sides, and not at hand: here both have those of the "
    f"rest of TKDE 2007. {K_BETWEEN}",
    f"{ADULT_SHARES} in the training file.",
    f"{J48_SETTINGS}; parts are names to it.",
    _plan,
    _judge,
    lambda _: ADULT,
    f"30,162 records of Adult, eight columns alone, 10 folds; parts are learned from the other folds; {CHROMOSOMES:,} "
    "chromosomes a search, which is seeded (quick: 4,000 records, 2 folds, k = 100, 2,000 chromosomes).",
)
LARGE_K = Experiment(
    "R42",
    "Top-down refinement for larger k",
    "TKDE 2007, section 5.2",
    ("T9",),
    "Top-down refinement goes on to perform well from k = 500 to k = 1000, where no result of the metrics is known.",
    f"At most {STILL_WELL:g} point more errors than at k = {LAST}, and there fewer than of who says the more "
    "frequent class.",
    f"Well is read as at most {STILL_WELL:g} point worse than at k = {LAST}, which the paper says nothing of. The "
    "taxonomies are as in R14.",
    f"{ADULT_SHARES} in the training file.",
    f"{J48_SETTINGS}; parts are names to it.",
    _plan_alone,
    _judge_alone,
    lambda _: ADULT,
    "The records, columns and folds of R14 (quick: all records, 2 folds).",
)
