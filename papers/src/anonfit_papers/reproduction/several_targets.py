# SPDX-License-Identifier: Apache-2.0
"""R17: what a model gains from being among those a release is made for, and loses to others (figure 10 of KDD 2006)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import polars as pl

from anonfit_papers.agrawal import agrawal
from anonfit_papers.agrawal_functions import random_constants
from anonfit_papers.reproduction.comparing import difference, rank_correlation
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import J48_SETTINGS
from anonfit_papers.reproduction.learning import INFOGAIN, Holdout
from anonfit_papers.reproduction.paper_words import from_memory

ROWS, K = 1000, 25
FUNCTIONS = (2, 3, 4, 5, 6, 7, 9)
MODELS = tuple("ABCDEFG")
PERMUTATIONS = 25


def trial(number: int) -> Measured:
    """J48's accuracy for each model, where the release is made for the first one, two, … models. # [asked][model]"""
    constants = random_constants(number)
    training, test = (
        agrawal(ROWS, functions=FUNCTIONS, seed=2 * number + part, constants=constants) for part in range(2)
    )
    order = np.random.default_rng(number % PERMUTATIONS).permutation(len(FUNCTIONS))
    names = [f"group_{FUNCTIONS[place]}" for place in order]
    holdout = Holdout.synthetic(training, test, names)
    accuracies = []
    for asked in range(1, len(names) + 1):
        recoded = holdout.recoded(INFOGAIN, K, names[:asked])
        accuracies.append([recoded.tested("j48", name).accuracy for name in names])
    return {"accuracy": accuracies}


def _plan(settings: Settings) -> Iterator[Part]:
    for number in range(settings.choose(8, 100)):
        key = {"of": "several targets", "trial": number, "rows": ROWS, "k": K, "permutations": PERMUTATIONS}
        yield Part(key, 0.8, partial(trial, number))


def _judge(_: Settings, gave: Sequence[Measured]) -> Result:
    every = np.array([part["accuracy"] for part in gave])  # (trial, asked, model)
    mean = every.mean(axis=0)
    checks = []
    for place, model in enumerate(MODELS):
        # Row r is made for the first r + 1 models: model p is asked for in the rows from p on.
        if place:
            gap = difference(
                every[:, place:, place].mean(axis=1).tolist(), every[:, :place, place].mean(axis=1).tolist()
            )
            checks.append(
                Check(f"model {model}: better when asked for", gap.mean > 0, gap.mean > 0, str(gap), gap.is_weak)
            )
        if place < len(MODELS) - 1:
            trend = rank_correlation(range(place, len(MODELS)), mean[place:, place].tolist())
            change = difference(every[:, -1, place].tolist(), every[:, place, place].tolist())
            evidence = f"rank correlation {trend:+.2f}, from first to last {change}"
            falls = trend < 0 and change.mean < 0
            checks.append(Check(f"model {model}: falls as models are added", falls, falls, evidence, change.is_weak))
    shown = range(len(MODELS) - 1, -1, -1)
    rows = [
        {
            "made for": f"A–{MODELS[asked]}" if asked else "A",
            **{m: round(float(v), 2) for m, v in zip(MODELS, mean[asked], strict=True)},
        }
        for asked in shown
    ]
    lines = tuple(
        Line(str(rows[place]["made for"]), range(asked + 1), mean[asked].tolist()) for place, asked in enumerate(shown)
    )
    panel = Panel(
        "left of the bold line: models the release was made for", "model", "release made for", lines, "matrix", MODELS
    )
    return Result(
        pl.DataFrame(rows),
        Figure(f"Test accuracy of J48 in %, k = {K}, {len(gave)} trials", (panel,)),
        tuple(checks),
        ("Each column is a mean over random orders of the functions, so columns are alike apart from chance.",),
    )


SEVERAL_TARGETS = Experiment(
    "R17",
    "Several classes of synthetic people",
    "KDD 2006, figure 10",
    ("C7",),
    "A model that a release is made for is more accurate than one it is not made for; accuracy declines as the "
    "release is made for more models.",
    "For each model the mean when asked for is above the mean when not; for each model the rank correlation of "
    "accuracy with the number of models asked for is negative, and it is lower with all models than with the fewest.",
    "Several classes are independent: the sum of their entropies is lowered, as the paper does; its seven functions "
    "are told by its count of models and by the generator of 1993. "
    + from_memory("which functions, 100 trials, 1,000 records, 25 orders, k = 25"),
    "Mean share of group A over the trials: function 2 33 %, 3 48 %, 4 32 %, 5 32 %, 6 39 %, 7 49 %, 9 49 %; of the "
    "larger group 70, 64, 69, 71, 69, 52 and 52 %.",
    f"{J48_SETTINGS}.",
    _plan,
    _judge,
    setting="Seven classes by Agrawal's functions 2 to 7 and 9, constants of 2 to 6 drawn anew for each trial; 100 "
    "trials over 25 random orders of the functions (quick: 8 trials); 1,000 training and 1,000 test rows; k = "
    "25.",
)
