# SPDX-License-Identifier: Apache-2.0
"""What an evaluation found: every measure, means over folds, comparisons with tests that are paired by fold, and
evaluation.html: what models learn from releases, method by method and k by k, as pictures and tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonfit.errors import MissingPackage, RequestError, did_you_mean
from anonfit.evaluation.methods import BASELINES, ORIGINAL, REMOVED, TOOLKIT
from anonfit.report.page import page
from anonfit.report.pictures import intervals
from anonfit.runtime.files import write_file


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A mean difference, its deviation over folds, and how likely chance makes one as large (two-sided).

    The plain test takes folds to be independent, as the papers do. They share training rows, so it finds too much; the
    corrected one (Nadeau and Bengio 2003) allows for that.
    """

    difference: float
    deviation: float
    t: float
    p: float
    corrected_t: float
    corrected_p: float


def paired_test(first: Sequence[float], second: Sequence[float], *, test_share: float) -> PairedTest:
    """Test whether two measures, paired by fold, differ.

    Args:
        first: One measure a fold.
        second: The other's.
        test_share: How many test rows there are for each training row; 0 where trials share no rows.

    Returns:
        The difference, first less second, and both tests. Of fewer than two folds nothing is known: NaN.

    Example:
        >>> test = paired_test([3.0, 5.0, 4.0], [1.0, 2.0, 3.0], test_share=0.0)
        >>> test.difference, round(test.t, 3), round(test.p, 3)
        (2.0, 3.464, 0.074)
    """
    if len(first) != len(second):
        raise RequestError("measures can be paired only if there are as many of one as of the other.")
    differences = np.array(first, dtype=np.float64) - np.array(second, dtype=np.float64)
    folds = len(differences)
    mean = float(differences.mean()) if folds else math.nan
    if folds < 2:
        return PairedTest(mean, *[math.nan] * 5)
    deviation = float(differences.std(ddof=1))
    plain = _t(mean, deviation * math.sqrt(1 / folds))
    corrected = _t(mean, deviation * math.sqrt(1 / folds + test_share))
    return PairedTest(mean, deviation, plain, student_p(plain, folds - 1), corrected, student_p(corrected, folds - 1))


def _t(mean: float, error: float) -> float:
    if error > 0:
        return mean / error
    return math.copysign(math.inf, mean) if mean else 0.0


def student_p(t: float, freedom: int) -> float:
    """The probability of a t of Student at least as far from 0."""
    try:
        special = import_module("scipy.special")
    except ModuleNotFoundError:
        raise MissingPackage("scikit-learn", "learn", "Testing differences") from None
    return min(1.0, 2 * float(special.stdtr(freedom, -abs(t))))


COLUMNS = ("method", "k", "learner", "model", "fold", "part", "measure", "value")
FIGURE_COLUMNS = ("method", "k", "fold", "figure", "target", "value")
CELL = ["model", "learner", "measure", "method", "k"]
"""What one mean is of."""
COMPARED = (ORIGINAL, REMOVED, "median")
"""What every method is compared with in a summary, where it was evaluated."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """A method that could not be measured for a k in some fold, and why: it could not meet the demand, or there were no
    rows for a model.
    """

    method: str
    k: int | None
    fold: int
    why: str


def holm(chances: Sequence[float]) -> list[float]:
    """Chances of error of several comparisons, corrected by Holm's rule.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    order, corrected, largest = np.argsort(chances, kind="stable"), [1.0] * len(chances), 0.0
    for rank, place in enumerate(order.tolist()):
        largest = max(largest, min(1.0, (len(chances) - rank) * chances[place]))
        corrected[place] = round(largest, 12)
    return corrected


@dataclass(frozen=True)
class Evaluation:
    """Measures of every method, k, learner, model and fold.

    `frame` has one row for each: method, k (missing for baselines), learner, model, fold, part (`train` or `test`),
    measure (`accuracy`, `auc`, `brier`, `mae` or `rmse`) and value. `figures` has the figures of the releases that need
    no learner: method, k, fold, figure, target and value.
    """

    frame: pl.DataFrame = field(repr=False)
    figures: pl.DataFrame = field(repr=False)
    folds: int
    protocol: str
    unmet: tuple[Unmet, ...] = ()
    regions: str = "domain"
    """What learners saw of a region: all that belongs to it, or `observed`: the box of its own training rows."""

    def summary(self, *, shares: bool = False) -> pl.DataFrame:
        """Means over folds.

        Args:
            shares: Also tell how good the shares are that models expect of classes: AUC and Brier score.

        Returns:
            For every model, learner, measure, method and k: the number of `folds`, the mean `test` value and its
            `deviation` over folds, the mean `train` value, and for each of original, removed and median that was
            evaluated the mean difference (`less_median`) and its corrected p (`p_median`).
        """
        test = pl.col("value").filter(pl.col("part") == "test")
        measured = self.frame if shares else self.frame.filter(~pl.col("measure").is_in(OF_SHARES))
        means = measured.group_by(CELL, maintain_order=True).agg(
            test.len().alias("folds"),
            test.mean().alias("test"),
            test.std().alias("deviation"),
            pl.col("value").filter(pl.col("part") == "train").mean().alias("train"),
        )
        for baseline in COMPARED if len(self.methods) > 1 else ():
            if baseline not in self.methods:
                continue
            figures = [pl.col("difference").alias(f"less_{baseline}"), pl.col("corrected_p").alias(f"p_{baseline}")]
            others = pl.concat(
                self.compared(name, baseline).with_columns(method=pl.lit(name)).select(*CELL, *figures)
                for name in self.methods
                if name != baseline
            )
            means = means.join(others, on=CELL, how="left", nulls_equal=True, maintain_order="left")
        return means

    @property
    def methods(self) -> list[str]:
        """The names of methods and baselines that were measured."""
        names: list[str] = self.frame["method"].unique(maintain_order=True).to_list()
        return names

    def compared(self, method: str, baseline: str, *, part: str = "test") -> pl.DataFrame:
        """Compare a method with another, fold by fold.

        Args:
            method: The name of a method or baseline.
            baseline: What it is compared with: for the same k, unless one of the two does not depend on k.
            part: `test` or `train`.

        Returns:
            For every model, learner, measure and k: `folds`, the mean `difference` (method less baseline), its
            `deviation`, `t` and `p` of the plain paired t-test, `corrected_t` and `corrected_p`, which allow for
            folds that share training rows, and `adjusted_p`, which allows for as many comparisons as there are of the
            measure (Holm's rule on `corrected_p`).
        """
        for name in (method, baseline):
            if name not in self.methods:
                raise RequestError(f"the method '{name}' was not evaluated; {did_you_mean(name, self.methods)}")
        rows = self.frame.filter(pl.col("part") == part)
        first, second = (rows.filter(pl.col("method") == name) for name in (method, baseline))
        keys = ["model", "learner", "measure", "fold"]
        if baseline in BASELINES:
            second = second.drop("k")
        elif method in BASELINES:
            first = first.drop("k")
        else:
            keys.append("k")
        pairs = first.join(second, on=keys, suffix="_2", maintain_order="left")
        comparisons = []
        for key, trials in pairs.group_by(["model", "learner", "measure", "k"], maintain_order=True):
            cell = dict(zip(("model", "learner", "measure", "k"), key, strict=True))
            values = trials["value"].to_list(), trials["value_2"].to_list()
            test = paired_test(*values, test_share=1 / (self.folds - 1))
            comparisons.append({**cell, "folds": len(trials), **asdict(test)})
        numbers = ("difference", "deviation", "t", "p", "corrected_t", "corrected_p")
        schema = dict.fromkeys(("model", "learner", "measure"), pl.String) | dict.fromkeys(("k", "folds"), pl.Int64)
        compared = pl.DataFrame(comparisons, schema=schema | dict.fromkeys(numbers, pl.Float64), orient="row")
        adjusted = np.full(len(compared), np.nan)
        for measure in compared["measure"].unique().to_list():
            tested = (compared["measure"] == measure) & compared["corrected_p"].is_not_null()
            places = np.flatnonzero(tested.to_numpy())
            adjusted[places] = holm(compared["corrected_p"].gather(places).to_list())
        return compared.with_columns(adjusted_p=pl.Series(adjusted, dtype=pl.Float64).fill_nan(None))

    def leads(self) -> pl.DataFrame:
        """How far methods are ahead of ai-privacy-toolkit, where it was evaluated: of its guides that which is better
        for the mean of all learners counts.

        Returns:
            For every method, model, measure, k and learner, after the mean of all of them: the `guide`, the mean
            `lead` over it (above 0: the method is better), its standard `error` over folds, `corrected_p`,
            `adjusted_p` (Holm's rule, over all means of a measure, and over all learners), and the mean numbers of
            groups of both, `groups` and `guide_groups`.
        """
        guides = [name for name in self.methods if name in TOOLKIT]
        found = [
            self._with_mean().compared(method, guide).with_columns(method=pl.lit(method), guide=pl.lit(guide))
            for guide in guides
            for method in self.methods
            if method not in (*BASELINES, *TOOLKIT)
        ]
        if not found:
            return pl.DataFrame()
        sign = pl.when(pl.col("measure").is_in(LESS_IS_BETTER)).then(-1.0).otherwise(1.0)
        leads = pl.concat(found).with_columns(
            lead=sign * pl.col("difference"), error=pl.col("deviation") / pl.col("folds").sqrt()
        )
        cell = ["method", "model", "measure", "k"]
        best = leads.filter(learner=EVERY).sort("lead", maintain_order=True).unique(cell, maintain_order=True)
        leads = leads.sort("k", maintain_order=True).join(best, on=[*cell, "guide"], how="semi", maintain_order="left")
        counted = self.figures.filter(figure="group_count").group_by("method", "k").agg(groups=pl.col("value").mean())
        leads = leads.join(counted, on=["method", "k"], how="left", maintain_order="left")
        of_guides = counted.rename({"method": "guide", "groups": "guide_groups"})
        leads = leads.join(of_guides, on=["guide", "k"], how="left", maintain_order="left")
        parts = [
            part.with_columns(adjusted_p=pl.Series(holm(part["corrected_p"].fill_nan(1.0).fill_null(1.0).to_list())))
            for _, part in leads.group_by("measure", pl.col("learner") == EVERY, maintain_order=True)
        ]
        return pl.concat(parts).select(
            *cell, "learner", "guide", "lead", "error", "corrected_p", "adjusted_p", "groups", "guide_groups"
        )

    def _with_mean(self) -> Evaluation:
        """Beside the learners the mean of all of them that know a measure."""
        cell = [name for name in COLUMNS if name not in ("learner", "value")]
        mean = self.frame.group_by(cell, maintain_order=True).agg(pl.col("value").mean())
        mean = mean.with_columns(learner=pl.lit(EVERY)).select(COLUMNS)
        return replace(self, frame=pl.concat([mean, self.frame.select(COLUMNS)]))

    def disagreements(self, baseline: str = "median") -> pl.DataFrame:
        """The columns of which the certainty penalty and the discernibility of the column alone disagree whether a
        method lost less than another.

        Args:
            baseline: What methods are compared with, for the same k.

        Returns:
            For every method, k and column where that is so: means over folds of `ncp` and `together` (the share of all
            pairs of persons that the column does not tell apart) of both, and `better_by`, the measure by which the
            method lost less.
        """
        keys = ["k", "target"]
        means = (
            self.figures.filter(pl.col("figure").is_in(["column_ncp", "column_together"]))
            .group_by("method", "figure", *keys, maintain_order=True)
            .agg(pl.col("value").mean())
            .pivot("figure", index=["method", *keys], values="value")
        )
        if not len(means):
            return pl.DataFrame()
        others = means.filter(pl.col("method") == baseline).drop("method")
        pairs = means.filter(pl.col("method") != baseline).join(others, on=keys, suffix="_2", maintain_order="left")
        less_lost = pl.col("column_ncp_2") - pl.col("column_ncp")
        less_together = pl.col("column_together_2") - pl.col("column_together")
        return pairs.filter(less_lost * less_together < 0).select(
            "method",
            "k",
            column="target",
            ncp="column_ncp",
            ncp_of_baseline="column_ncp_2",
            together="column_together",
            together_of_baseline="column_together_2",
            better_by=pl.when(less_lost > 0).then(pl.lit("ncp")).otherwise(pl.lit("wdm")),
        )

    def to_html(self) -> str:
        """One page that needs nothing from anywhere else."""
        return evaluation_page(self)

    def save(self, folder: str | Path) -> Path:
        """Write results.csv, figures.csv, summary.csv and evaluation.html, and leads.csv where there are some, for the
        owner of the data only: what is in them was measured on raw rows, perhaps on few of them.

        Args:
            folder: Made if it is not there.

        Returns:
            The folder.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        tables = {"results": self.frame, "figures": self.figures, "summary": self.summary(shares=True)}
        if len(leads := self.leads()):
            tables["leads"] = leads
        for name, frame in tables.items():
            write_file(path / f"{name}.csv", frame.write_csv(), mode=0o600)
        write_file(path / "evaluation.html", self.to_html(), mode=0o600)
        return path


def frame_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pl.DataFrame:
    """Rows as a frame of these columns, whatever is in them."""
    types = {"k": pl.Int64, "fold": pl.Int64, "value": pl.Float64}
    schema = {name: types.get(name, pl.String) for name in columns}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


MEASURES = {
    "accuracy": "accuracy in percent, more is better",
    "auc": "area under the ROC curve in percent, mean over classes, more is better",
    "brier": "Brier score of the classes' shares in percent, less is better",
    "mae": "mean absolute error, less is better",
    "rmse": "root mean squared error, less is better",
}
LESS_IS_BETTER = ("brier", "mae", "rmse")
EVERY = "mean of all learners"
"""Stands for a learner."""
OF_SHARES = ("auc", "brier")
"""Measures of what learners expect of classes, where they say so."""
BOXES = (
    "Models learned from observed labels: the box of what the training rows of each group have. Figures of columns, "
    "and which rows a 'where' takes, go by whole regions."
)
"""What is said where the spec asks for observed labels."""
CERTAIN = 0.05
"""Differences that chance makes less often are marked."""


def evaluation_page(evaluation: Evaluation) -> str:
    """The page of an evaluation."""
    rows = evaluation.summary(shares=True).to_dicts()
    compared = [name for name in COMPARED if rows and f"less_{name}" in rows[0]]
    of_parts: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        of_parts.setdefault((row["model"], row["measure"], row["learner"]), []).append(row)
    unmet = dict.fromkeys(f"{_named(cell.method, cell.k)}: {cell.why}" for cell in evaluation.unmet)
    return page(
        "evaluation.html",
        title="What models learn from releases",
        folds=evaluation.folds,
        protocol=evaluation.protocol,
        boxes=BOXES if evaluation.regions == "observed" else "",
        parts=[_part(*key, part, compared) for key, part in of_parts.items()],
        compared=[f"Against {name}" for name in compared],
        unmet=list(unmet),
    )


def _named(method: str, k: int | None) -> str:
    return method if k is None else f"{method}, k = {k}"


def _part(
    model: str, measure: str, learner: str, rows: Sequence[Mapping[str, Any]], compared: Sequence[str]
) -> dict[str, Any]:
    """A learner of a model: its picture, and a line for every method and k."""
    scale = scale_of(measure)
    lines = [
        (_named(row["method"], row["k"]), row["test"], row["deviation"], number(row["test"], scale)) for row in rows
    ]
    words = "; ".join(f"{name}: {text}" for name, _, _, text in lines)
    return {
        "title": f"{model}, {learner}",
        "measure": MEASURES[measure],
        "picture": intervals(lines, f"{model} by {learner}, {MEASURES[measure]}. {words}"),
        "rows": [
            (
                name,
                text,
                f"± {number(row['deviation'], scale)}",
                number(row["train"], scale),
                *(difference(row, other, scale) for other in compared),
            )
            for (name, _, _, text), row in zip(lines, rows, strict=True)
        ],
    }


def scale_of(measure: str) -> float:
    """What a measure is multiplied by where it is shown."""
    return 100.0 if measure in ("accuracy", *OF_SHARES) else 1.0


def number(value: float | None, scale: float) -> str:
    """A measure, if there is one."""
    return "–" if value is None else f"{scale * value:,.2f}"


def difference(row: Mapping[str, Any], name: str, scale: float) -> str:
    """How much a method is above another, with a mark where that is beyond chance."""
    value, chance = row[f"less_{name}"], row[f"p_{name}"]
    if value is None:
        return ""
    return f"{scale * value:+,.2f}{'*' if chance is not None and chance < CERTAIN else ' '}"
