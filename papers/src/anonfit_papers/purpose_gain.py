# SPDX-License-Identifier: Apache-2.0
"""What a stated purpose gains on census data: the command behind the table of docs/purpose.md.

`python -m anonfit_papers.purpose_gain --data DIR` makes releases of training rows only, trains models on them, and
tests the models on other rows that went through the same recoding.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import AnonfitError, MissingPackage, RequestError
from anonfit.runtime.process import Stage, silent
from anonfit_papers.purpose_tables import TASKS, VARIABLE, Task, data_folder

KS = (10, 50, 100)
TEST_SHARE = 1 / 3
ENCODINGS = ("expected", "ends")

ORIGINAL = "original"
DENOISED = "InfoGain, subset splits, denoised"
PLAIN = "InfoGain as in the paper"
MEDIAN = "Median"
REMOVED = "quasi-identifiers removed"


@dataclass(frozen=True)
class TaskHoldout:
    """The rows that are released and learned from, and the rows that models are tested on."""

    task: Task
    training: pl.DataFrame
    test: pl.DataFrame


@dataclass(frozen=True)
class Accuracies:
    """Test accuracy in percent of each learner, (split, learner), for every task, release and k."""

    learners: tuple[str, ...]
    ks: tuple[int, ...]
    accuracy: Mapping[tuple[str, str, int], NDArray[np.float64]]

    @property
    def cells(self) -> list[tuple[str, int]]:
        """The tasks with each k."""
        return [(task, k) for task in dict.fromkeys(key[0] for key in self.accuracy) for k in self.ks]

    def mean(self, release: str, cell: tuple[str, int]) -> float:
        """The mean over splits and learners."""
        return float(self.accuracy[cell[0], release, cell[1]].mean())

    def gains(self, cell: tuple[str, int]) -> NDArray[np.float64]:
        """How far the denoised release is above the paper's, in points. # (split, learner)"""
        gains: NDArray[np.float64] = self.accuracy[cell[0], DENOISED, cell[1]] - self.accuracy[cell[0], PLAIN, cell[1]]
        return gains

    @property
    def gain(self) -> NDArray[np.float64]:
        """The gain of each cell, the mean over splits and learners."""
        return np.array([self.gains(cell).mean() for cell in self.cells])


def learners() -> dict[str, Callable[[], Any]]:
    """The four learners, the same for every release."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.tree import DecisionTreeClassifier
    except ModuleNotFoundError:
        raise MissingPackage("scikit-learn", "learn", "Measuring what a purpose gains") from None

    return {
        "gradient boosting": lambda: HistGradientBoostingClassifier(random_state=0),
        "random forest": lambda: RandomForestClassifier(min_samples_leaf=5, random_state=0, n_jobs=-1),
        "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "tree": lambda: DecisionTreeClassifier(min_samples_leaf=50, random_state=0),
    }


def measure(
    tasks: Sequence[Task],
    *,
    splits: int = 3,
    rows: int | None = None,
    ks: Sequence[int] = KS,
    encoding: str = ENCODINGS[0],
    stage: Stage = silent,
) -> Accuracies:
    """Train and test every learner on every release.

    Args:
        tasks: The tables.
        splits: How many times rows are divided anew into training and test rows.
        rows: How many rows of each table are used, drawn anew in each split; all if not given.
        ks: The demands.
        encoding: How regions become features, as in `RegionEncoder`; the same for all releases and learners.
        stage: Told each part as it begins.

    Returns:
        The accuracies.
    """
    if splits < 2:
        raise RequestError(f"A paired error needs at least 2 splits, but {splits} were asked for.")
    if rows is not None and rows < 1:
        raise RequestError(f"rows = {rows}: the experiment needs some rows; leave it out for all.")
    chosen = learners()
    accuracy: dict[tuple[str, str, int], list[list[float]]] = {}
    for task in tasks:
        for split in range(splits):
            stage(f"{task.name}: split {split + 1} of {splits}")
            for (release, k), scores in _scores(_divide(task, split, rows), ks, chosen, encoding).items():
                accuracy.setdefault((task.name, release, k), []).append(scores)
    return Accuracies(tuple(chosen), tuple(ks), {key: np.array(scores) for key, scores in accuracy.items()})


def _divide(task: Task, split: int, rows: int | None) -> TaskHoldout:
    order = np.random.default_rng(split).permutation(len(task.frame))[:rows]
    held_out = int(len(order) * TEST_SHARE)
    return TaskHoldout(task, task.frame[order[held_out:]], task.frame[order[:held_out]])


def _scores(
    holdout: TaskHoldout, ks: Sequence[int], chosen: Mapping[str, Callable[[], Any]], encoding: str
) -> dict[tuple[str, int], list[float]]:
    """The accuracy of each learner, for every release and k."""
    target = holdout.task.target
    original = _tested(chosen, *_one_hot(holdout), holdout.training[target], holdout.test[target])
    majority = holdout.training[target].mode().sort()[0]
    removed = [100 * float((holdout.test[target] == majority).mean() or 0)] * len(chosen)
    accuracies = {(name, k): scores for name, scores in ((ORIGINAL, original), (REMOVED, removed)) for k in ks}
    for k in ks:
        for name, words in _releases(holdout.task).items():
            features, tests, labels = _released(holdout, k, words, encoding)
            accuracies[name, k] = _tested(chosen, features, tests, labels, holdout.test[target])
    return accuracies


def _releases(task: Task) -> dict[str, dict[str, Any]]:
    """The words of `anonymize` that make each release."""
    paper = {"taxonomies": task.taxonomies, "splits": dict.fromkeys(task.nominal, "multiway")}
    subset = {
        "types": dict.fromkeys(task.nominal, "nominal"),
        "splits": dict.fromkeys(task.nominal, "subset"),
    }
    return {
        DENOISED: {"criterion": "infogain", "denoise": True, **subset},
        PLAIN: {"criterion": "infogain", "candidates": "boundary", **paper},
        MEDIAN: {"criterion": "median", **paper},
    }


def _released(holdout: TaskHoldout, k: int, words: Mapping[str, Any], encoding: str) -> tuple[Any, Any, pl.Series]:
    """The features of a release of the training rows, those of the test rows, and the released labels."""
    from anonfit.api import anonymize
    from anonfit.estimators.region_encoder import RegionEncoder

    task = holdout.task
    release = anonymize(holdout.training, quasi_identifiers=task.quasi_identifiers, targets=[task.target], k=k, **words)
    encoder = RegionEncoder(encoding, release.recoding)
    features = encoder.fit_transform(release.data.drop(task.target))
    tests = encoder.transform(release.recoding.apply(holdout.test.drop(task.target), unseen="ancestor"))
    return features, tests, release.data[task.target]


def _one_hot(holdout: TaskHoldout) -> tuple[Any, Any]:
    """The raw rows as the encoder of regions would have them: numbers, and one column for each name."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    names = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer((names, holdout.task.nominal), remainder="passthrough")
    features = encoder.fit_transform(holdout.training.drop(holdout.task.target))
    return features, encoder.transform(holdout.test.drop(holdout.task.target))


def _tested(
    chosen: Mapping[str, Callable[[], Any]], features: Any, tests: Any, labels: pl.Series, truth: pl.Series
) -> list[float]:
    """The test accuracy of each learner in percent."""
    from threadpoolctl import threadpool_limits

    # Sums made by several threads could differ in the last bit, and the table with them.
    with threadpool_limits(limits=1):
        return [
            100 * float(make().fit(features, labels.to_list()).score(tests, truth.to_list()))
            for make in chosen.values()
        ]


def report(result: Accuracies) -> str:
    """The tables in Markdown: accuracies, then what the purpose gained."""
    cells = result.cells
    head = ["release", *(f"{task}, k = {k}" for task, k in cells)]
    rows = [
        [name, *(f"{result.mean(name, cell):.2f}" for cell in cells)]
        for name in (ORIGINAL, DENOISED, PLAIN, MEDIAN, REMOVED)
    ]
    splits = len(next(iter(result.accuracy.values())))
    gains = [["mean", *(_with_error(result.gains(cell).mean(axis=1)) for cell in cells)]]
    gains += [
        [name, *(_with_error(result.gains(cell)[:, number]) for cell in cells)]
        for number, name in enumerate(result.learners)
    ]
    return "\n".join(
        [
            f"Test accuracy in percent, mean of {len(result.learners)} learners and {splits} splits:",
            "",
            *_table(head, rows),
            "",
            f"Gain of '{DENOISED}' over '{PLAIN}' in points, ± the standard error of the paired difference:",
            "",
            *_table(["learner", *head[1:]], gains),
            "",
            f"Over all cells the gain is {result.gain.mean():+.2f} points on average; the smallest is "
            f"{result.gain.min():+.2f}, the largest {result.gain.max():+.2f}.",
        ]
    )


def _with_error(gains: NDArray[np.float64]) -> str:
    """The mean of one gain a split, and the standard error of that mean."""
    return f"{gains.mean():+.2f} ± {gains.std(ddof=1) / np.sqrt(len(gains)):.2f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (head, ["---", *["---:"] * (len(head) - 1)], *rows)]


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print the tables; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m anonfit_papers.purpose_gain", description=__doc__)
    parser.add_argument("--data", help=f"the data folder; by default {VARIABLE}, or ../shared/data beside the project")
    parser.add_argument("--splits", type=int, default=3, help="divisions into training and test rows, at least 2")
    parser.add_argument("--rows", type=int, help="rows of each table; by default all")
    parser.add_argument("--encoding", choices=ENCODINGS, default=ENCODINGS[0], help="how regions become features")
    given = parser.parse_args(words)
    try:
        folder = data_folder(given.data)
        tasks = [make(folder) for make in TASKS]
        result = measure(tasks, splits=given.splits, rows=given.rows, encoding=given.encoding, stage=_say)
    except AnonfitError as error:
        _say(str(error))
        return error.exit_status
    sys.stdout.write(report(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
