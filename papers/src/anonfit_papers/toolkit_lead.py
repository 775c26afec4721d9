# SPDX-License-Identifier: Apache-2.0
"""The default held against ai-privacy-toolkit: the command behind the tables of docs/purpose.md.

`python -m anonfit_papers.toolkit_lead --data DIR` makes releases of training rows only, trains models on them and tests
them on other rows. What was measured is kept in a file (`--out`), and a run goes on where another one stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import AnonfitError, RequestError
from anonfit.evaluation.result import holm
from anonfit.evaluation.toolkit import GUIDES, guide_of, released
from anonfit_papers.lead_tables import TABLES
from anonfit_papers.lead_task import LeadTask
from anonfit_papers.purpose_gain import TEST_SHARE
from anonfit_papers.purpose_tables import VARIABLE, data_folder

Features = tuple[NDArray[np.float64], NDArray[np.float64]]
OURS = "target alone"
RELEASES: Mapping[str, Mapping[str, Any]] = {
    OURS: {},
    "with taxonomies": {},
    "to the end": {"min_gain": 0.0},
    "as in the papers": {"denoise": False, "min_gain": 0.0},
}
"""The words of `anonymize` that make a release; taxonomies are given where the name says so."""
MEASURES = {"accuracy": 1.0, "auc": 1.0, "brier": -1.0, "error": -1.0}
"""What is measured of a learner, and whether more is better. All are in percent; `error` is the mean absolute error of
numbers, as a share of what guessing the median has.
"""


def learners(*, numbers: bool) -> dict[str, Callable[[], Any]]:
    """The four learners, the same for every release."""
    from sklearn import ensemble, linear_model, tree
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kind = "Regressor" if numbers else "Classifier"
    linear = linear_model.Ridge() if numbers else linear_model.LogisticRegression(max_iter=1000)
    return {
        "gradient boosting": lambda: getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=0),
        "random forest": lambda: getattr(ensemble, f"RandomForest{kind}")(
            min_samples_leaf=5, random_state=0, n_jobs=-1
        ),
        "linear": lambda: make_pipeline(StandardScaler(), linear),
        "tree": lambda: getattr(tree, f"DecisionTree{kind}")(min_samples_leaf=50, random_state=0),
    }


def divided(task: LeadTask, split: int, rows: int | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Training and test rows."""
    order = np.random.default_rng(split).permutation(len(task.frame))[:rows]
    held_out = int(len(order) * TEST_SHARE)
    return task.frame[order[held_out:]], task.frame[order[:held_out]]


def _one_hot(task: LeadTask, training: pl.DataFrame, test: pl.DataFrame) -> tuple[Features, list[range]]:
    """Raw rows: nominal columns one-hot, then numbers; and the columns of each nominal one."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    names = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer((names, list(task.nominal)), remainder="passthrough")
    given, asked = (frame.select(task.quasi_identifiers) for frame in (training, test))
    features = np.asarray(encoder.fit_transform(given), np.float64), np.asarray(encoder.transform(asked), np.float64)
    made = encoder.named_transformers_["onehotencoder"]
    ends = np.cumsum([0, *(len(own) for own in getattr(made, "categories_", ()))]).tolist()  # none without names
    return features, [range(first, last) for first, last in pairwise(ends)]


def _scores(task: LeadTask, features: Mapping[str, Features], labels: Any, truth: Any) -> dict[str, Any]:
    """What is measured of each learner for one target."""
    from threadpoolctl import threadpool_limits

    found = {}
    with threadpool_limits(limits=1):  # sums made by several threads could differ in the last bit
        for name, make in learners(numbers=task.numbers).items():
            training, test = features.get(name, features["other"])
            model = make().fit(training, labels)
            if task.numbers:
                errors = np.abs(model.predict(test) - truth).mean() / np.abs(np.median(labels) - truth).mean()
                found[name] = {"error": 100 * float(errors)}
            else:
                found[name] = _class_scores(model.predict_proba(test), model.classes_, truth)
    return found


def _class_scores(shares: NDArray[np.float64], classes: NDArray[Any], truth: NDArray[Any]) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    held = (truth[:, None] == classes).astype(np.float64)
    some = (held.any(axis=0)) & ~held.all(axis=0)
    return {
        "accuracy": 100 * float((classes[shares.argmax(axis=1)] == truth).mean()),
        "auc": 100 * float(roc_auc_score(held[:, some], shares[:, some], average="macro")),
        "brier": 50 * float(((shares - held) ** 2).sum(axis=1).mean()),
    }


def _by_target(
    task: LeadTask, features: Mapping[str, Features], training: pl.DataFrame, test: pl.DataFrame
) -> dict[str, Any]:
    return {
        target: _scores(task, features, training[target].to_numpy(), test[target].to_numpy()) for target in task.targets
    }


def _ours(
    task: LeadTask, training: pl.DataFrame, test: pl.DataFrame, k: int, release: str
) -> tuple[dict[str, Any], int]:
    """A release of ours, and how many groups it has."""
    from anonfit.api import anonymize
    from anonfit.estimators.region_encoder import RegionEncoder

    words: dict[str, Any] = {"types": dict.fromkeys(task.nominal, "nominal"), **RELEASES[release]}
    if release in ("with taxonomies", "as in the papers") and task.taxonomies:
        words |= {"taxonomies": task.taxonomies}
        if release == "as in the papers":
            words |= {"splits": dict.fromkeys(task.taxonomies, "multiway")}
    made = anonymize(
        training,
        quasi_identifiers=task.quasi_identifiers,
        targets=list(task.targets),
        k=k,
        release=list(task.targets) if task.numbers else [],
        **words,
    )
    rows = made.data.drop(task.targets)
    new = made.recoding.apply(test.drop(task.targets), unseen="ancestor")
    features = {}
    for learner, encoding in (("other", "expected"), ("linear", "smooth")):
        encoder = RegionEncoder(encoding, made.recoding)
        features[learner] = np.asarray(encoder.fit_transform(rows)), np.asarray(encoder.transform(new))
    return _by_target(task, features, made.data, test), rows.unique().height


def _toolkit(
    task: LeadTask, training: pl.DataFrame, test: pl.DataFrame, k: int, guide: str
) -> tuple[dict[str, Any], int]:
    (raw, other), slices = _one_hot(task, training, test)
    predicted = [
        guide_of(guide, numbers=task.numbers).fit(raw, training[target].to_numpy()).predict(raw)
        for target in task.targets
    ]
    labels = predicted[0] if len(predicted) == 1 else np.stack(predicted, axis=1)
    made = released(raw, other, labels, k, slices, numbers=task.numbers)
    return _by_target(task, {"other": (made.training, made.test)}, training, test), made.groups


def measure(
    task: LeadTask, splits: Iterable[int], ks: Sequence[int], names: Sequence[str], *, rows: int | None, out: Path
) -> None:
    """Measure what is not yet in a file, and add it there, line by line."""
    done = {(line["table"], line["split"], line["k"], line["release"], line["rows"]) for line in read(out)}
    for split in splits:
        training, test = divided(task, split, rows)
        for k in ks:
            for name in names:
                if (task.name, split, k, name, rows) in done:
                    continue
                make = _toolkit if name in GUIDES else _ours
                if name == "original":
                    scores, groups = _by_target(task, {"other": _one_hot(task, training, test)[0]}, training, test), 0
                else:
                    scores, groups = make(task, training, test, k, name)
                line = {"table": task.name, "split": split, "k": k, "release": name, "rows": rows, "groups": groups}
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line | {"scores": scores}) + "\n")
                sys.stderr.write(f"{task.name}: split {split}, k = {k}, {name}: {groups} groups\n")


def read(out: Path) -> list[dict[str, Any]]:
    """What a file holds."""
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []


# --- the tables -------------------------------------------------------------------------------------------------


def _figures(lines: Sequence[Mapping[str, Any]], release: str, measure: str, learner: str | None) -> dict[int, float]:
    """The mean of a measure by split, over targets and learners or of one learner; more is better."""
    found: dict[int, float] = {}
    for line in lines:
        if line["release"] == release:
            values = [
                own[measure]
                for of_target in line["scores"].values()
                for name, own in of_target.items()
                if learner in (None, name)
            ]
            found[line["split"]] = MEASURES[measure] * float(np.mean(values))
    return found


def lead(
    lines: Sequence[Mapping[str, Any]], release: str, measure: str, learner: str | None = None
) -> NDArray[np.float64]:
    """How far a release is ahead of the better guide, in points; one entry for each split that both have."""
    ours = _figures(lines, release, measure, learner)
    guides = [_figures(lines, guide, measure, learner) for guide in GUIDES]
    splits = sorted(set(ours).intersection(*guides))
    if not splits:
        return np.zeros(0)
    best = max(guides, key=lambda of_guide: np.mean([of_guide[split] for split in splits]))
    return np.array([ours[split] - best[split] for split in splits])


def _with_error(leads: NDArray[np.float64]) -> str:
    error = f" ± {leads.std(ddof=1) / np.sqrt(len(leads)):.2f}" if len(leads) > 1 else ""
    return f"{leads.mean():+.2f}{error}" if len(leads) else "–"


def _chance(leads: NDArray[np.float64]) -> float:
    """How likely such a lead is by chance, from its spread over splits (a paired t-test)."""
    if len(leads) < 2 or leads.std() == 0:
        return 1.0
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(leads, 0.0).pvalue)


def report(lines: Sequence[Mapping[str, Any]], release: str = OURS) -> str:
    """The leads of a release in Markdown, cell by cell."""
    cells: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for line in lines:
        cells.setdefault((line["table"], line["k"]), []).append(line)
    head = ["table, k", "splits", "lead", "gradient boosting", "AUC", "Brier", "groups (guides)", "corrected p"]
    rows, of_cell = [], []
    for (table, k), held in cells.items():
        numbers = any("error" in own for line in held for each in line["scores"].values() for own in each.values())
        first = "error" if numbers else "accuracy"
        leads = lead(held, release, first)
        if not len(leads):
            continue
        of_cell.append(leads)
        groups = [
            f"{np.mean([line['groups'] for line in held if line['release'] == name]):.0f}"
            for name in (release, *GUIDES)
        ]
        others = ["–", "–"] if numbers else [_with_error(lead(held, release, name)) for name in ("auc", "brier")]
        cell = f"{table}{' (error, % of guessing)' if numbers else ''}, {k}"
        boosting = _with_error(lead(held, release, first, "gradient boosting"))
        told = [cell, str(len(leads)), _with_error(leads), boosting, *others]
        rows.append([*told, f"{groups[0]} ({groups[1]}, {groups[2]})"])
    corrected = holm([_chance(leads) for leads in of_cell])
    body = [[*row, f"{chance:.3f}"] for row, chance in zip(rows, corrected, strict=True)]
    lines_of = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    mean = float(np.mean([leads.mean() for leads in of_cell])) if of_cell else float("nan")
    return "\n".join(
        [
            f"Lead of '{release}' over the better of two guides of ai-privacy-toolkit, in points, ± the standard error "
            "of the paired difference; mean of four learners and of all targets:",
            "",
            *(f"| {' | '.join(line)} |" for line in lines_of),
            "",
            f"Mean of the cells: {mean:+.2f}.",
        ]
    )


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print the tables; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m anonfit_papers.toolkit_lead", description=__doc__)
    parser.add_argument("--data", help=f"the data folder; by default {VARIABLE}, or ../shared/data beside the project")
    parser.add_argument("--tables", default="adult,wages", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--splits", type=int, default=5, help="how many divisions into training and test rows")
    parser.add_argument(
        "--first", type=int, default=100, help="the first division; settings were tuned on those below 100"
    )
    parser.add_argument("--k", default="10,50,100", help="the demands")
    parser.add_argument("--rows", type=int, help="rows of each table, drawn anew in each division; by default all")
    parser.add_argument(
        "--releases", default=OURS, help=f"of {', '.join([*RELEASES, 'original'])}; the guides are always there"
    )
    parser.add_argument("--out", type=Path, default=Path("toolkit-lead.jsonl"), help="where measurements are kept")
    parser.add_argument("--report", action="store_true", help="only print what was measured")
    given = parser.parse_args(words)
    names, asked = given.tables.split(","), given.releases.split(",")
    try:
        for kind, some, known in (("table", names, TABLES), ("release", asked, [*RELEASES, "original"])):
            if unknown := [name for name in some if name not in known]:
                raise RequestError(f"there is no {kind} '{unknown[0]}'; there are {', '.join(known)}.")
        if not given.report:
            folder = data_folder(given.data)
            splits = range(given.first, given.first + given.splits)
            for name in names:
                ks = [int(k) for k in given.k.split(",")]
                measure(TABLES[name](folder), splits, ks, [*asked, *GUIDES], rows=given.rows, out=given.out)
    except AnonfitError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status
    lines = [line for line in read(given.out) if line["table"] in names]
    for release in asked:
        if release in RELEASES:
            sys.stdout.write(report(lines, release) + "\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
