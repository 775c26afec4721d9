# SPDX-License-Identifier: Apache-2.0
"""R31: classes of credit applications from releases by weight alone and by width alone (cases I to III of the paper on
weighted anonymization).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.workload.objectives import RANGES, guessed
from anonfit_papers.datasets import CRX
from anonfit_papers.datasets_credit import CREDIT_CLASS, CREDIT_NUMBERS, complete_credit
from anonfit_papers.datasets_tables import fingerprint
from anonfit_papers.reproduction.comparing import WEAK, difference, mean_and_error, sign_test
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.weighing import crossed_accuracy, released, weights_of

WIDE = 5
"""A target that is a number is put into so many ranges of equal width."""
SPREAD, WEIGHT, ORIGINAL, GUESS = "spread-only", "weight-only", "original", "most frequent class"
AS_NUMBERS = "original as numbers"
"""The original that no recoding has touched: it is shown, and not compared with."""
NAMES, MIDDLES = "labels", "middles"
"""How a region reaches naive Bayes: its label as a name, or its middle as a number."""
SHARE = 0.6
LEARNED = 1.0
"""Points above the most frequent class from which on something is told."""
NEAR = 2.0
"""Points that weight-only may be behind the original."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is predicted from which columns; `weights` is `equal` or `ranked`."""

    case: str
    target: str
    features: tuple[str, ...]
    weights: str

    @property
    def title(self) -> str:
        """What it is called."""
        features = "all others" if self.case == "III" else ", ".join(self.features)
        return f"case {self.case}: {self.target} from {features}"


def cases(settings: Settings) -> list[Case]:
    """The settings of the paper, and of case I every other three columns: which of them it shows is lost."""
    triples = list(combinations(CREDIT_NUMBERS, 3))
    chosen = [("A3", "A8", "A11"), *(triple for triple in triples if triple != ("A3", "A8", "A11"))]
    first = [Case("I", CREDIT_CLASS, triple, "equal") for triple in settings.choose(chosen[:2], chosen)]
    second = [Case("II", target, ("A3", "A11", "A14"), "ranked") for target in ("A8", "A2")]
    third = [Case("III", CREDIT_CLASS, CREDIT_NUMBERS, "ranked")]
    third.append(Case("III", "A3", tuple(name for name in CREDIT_NUMBERS if name != "A3"), "ranked"))
    return [*first, *second, *third]


def _scale(settings: Settings) -> tuple[int, tuple[int, ...]]:
    """How often the rows are divided into folds, and which k."""
    return settings.choose((1, (5, 25)), (5, (2, 5, 10, 25, 50, 100)))


def ranked(frame: pl.DataFrame, target: pl.Series, names: Sequence[str]) -> list[str]:
    """Columns by how well each alone predicts a target, put into ranges of equally many rows before; best first."""
    classes = target.rank("dense").to_numpy().astype(np.int64) - 1
    rows = np.ones(len(frame), np.int64)
    accuracy = {name: guessed(equally_deep(frame[name]), classes, int(classes.max()) + 1, rows) for name in names}
    return sorted(names, key=lambda name: -accuracy[name])


def equally_deep(values: pl.Series) -> NDArray[np.int64]:
    """The range of equally many rows that each number is in; equal numbers share theirs."""
    places = (values.rank("average").to_numpy() - 0.5) * RANGES / len(values)
    return places.astype(np.int64)


def by_depth(frame: pl.DataFrame) -> pl.DataFrame:
    """Numbers as names of ranges of equally many rows: the recoded original of the report."""
    return pl.DataFrame([pl.Series(name, equally_deep(frame[name])).cast(pl.String) for name in frame.columns])


def classes_of_target(frame: pl.DataFrame, target: str) -> pl.Series:
    """The class of each row: as it is, or the range of equal width that a number is in."""
    values = frame[target]
    if not values.dtype.is_numeric():
        return values
    numbers = values.to_numpy()
    edges = np.linspace(numbers.min(), numbers.max(), WIDE + 1)[1:-1]
    return pl.Series(target, np.searchsorted(edges, numbers, side="right")).cast(pl.String)


def setting_of(frame: pl.DataFrame, case: Case) -> tuple[pl.Series, dict[str, float]]:
    """The classes of a case, and the weights of its columns."""
    classes = classes_of_target(frame, case.target)
    if case.weights == "equal":
        return classes, {name: float(name in case.features) for name in CREDIT_NUMBERS}
    return classes, weights_of(ranked(frame, classes, case.features), CREDIT_NUMBERS)


def measure(settings: Settings, case: Case, ks: Sequence[int], divisions: int) -> Measured:
    """Accuracies of a case by k, way and form, and of the original by ranges of equal depth and as numbers."""
    frame = complete_credit(settings.data)
    classes, weights = setting_of(frame, case)
    # The target has no part in the regions: these would tell it.
    names, features = [name for name in CREDIT_NUMBERS if name != case.target], list(case.features)
    weights = {name: weights[name] for name in names}
    raw = frame.select(features)
    accuracies: dict[str, Any] = {"weights": weights, SPREAD: [], WEIGHT: []}
    for word, shown in ((ORIGINAL, by_depth(raw)), (AS_NUMBERS, raw)):
        accuracies[word] = crossed_accuracy(shown, classes, divisions=divisions)
    by_weight = {"criterion": "weighted", "weights": weights}
    ways: dict[str, dict[str, Any]] = {SPREAD: {"criterion": "median"}, WEIGHT: by_weight}
    for k in ks:
        for way, words in ways.items():
            release = released(frame, names, k, **words)
            forms = {NAMES: release.labels(), MIDDLES: release.middles()}
            accuracies[way].append(
                {
                    form: crossed_accuracy(shown.select(features), classes, divisions=divisions)
                    for form, shown in forms.items()
                }
            )
    return accuracies


def guesses(settings: Settings) -> Measured:
    """The share of the most frequent class of each target, in percent."""
    frame = complete_credit(settings.data)
    shares = {}
    for target in dict.fromkeys(case.target for case in cases(settings)):
        counts = classes_of_target(frame, target).value_counts(sort=True)["count"]
        shares[target] = 100 * int(counts[0]) / len(frame)
    return dict(shares)


def _plan(settings: Settings) -> Iterator[Part]:
    divisions, ks = _scale(settings)
    mark = fingerprint(settings.data, CRX)
    for case in cases(settings):
        key = {
            "of": "credit weights, original by depth",
            "data": mark,
            "case": case.title,
            "divisions": divisions,
            "ks": ks,
        }
        yield Part(key, 0.4 * len(ks) * divisions, partial(measure, settings, case, ks, divisions))
    yield Part({"of": "credit weights, guessed", "data": mark}, 0.1, partial(guesses, settings))


def _judge(settings: Settings, gave: Sequence[Measured]) -> Result:
    _, ks = _scale(settings)
    asked = cases(settings)
    *gave, guess = gave
    gave = [{**part, GUESS: guess[case.target]} for case, part in zip(asked, gave, strict=True)]
    rows = [
        _row(case, part, place, k)
        for case, part in zip(asked, gave, strict=True)
        for place, k in enumerate(ks)
        if case.case != "I" or case.features == asked[0].features
    ]
    parts = {case.title: part for case, part in zip(asked, gave, strict=True)}
    gaps = {case.title: _gaps(parts[case.title]) for case in asked}
    checks = [_third(asked, gaps), _near_original(asked, parts), _something_learned(asked, parts)]
    checks += [*_first(asked, gaps), _mostly(gaps)]
    against = {title: [str(k) for k, gap in zip(ks, own, strict=True) if gap < 0] for title, own in gaps.items()}
    counter = [f"{title} at k = {', '.join(below)}" for title, below in against.items() if below]
    count = sum(len(below) for below in against.values())
    notes = (
        "Accuracy in percent of naive Bayes, cross-validated in ten folds over the released rows as in the paper; "
        "labels are taken as names, middles as numbers that are normally distributed in each class. Columns are "
        "weighted 3, 2, 1 by their single-column accuracy in cases II and III, alike in case I. The original is "
        f"recoded by {RANGES} ranges of equally many rows; as numbers it is shown and not compared with, since "
        "labels would then win by being names.",
        f"Counter-examples (labels, weight-only below spread-only): {count} of {len(gaps) * len(ks)} settings and k: "
        f"{'; '.join(counter) or 'none'}.",
    )
    return Result(pl.DataFrame(rows), _figure(asked, parts, ks), tuple(checks), notes)


def _row(case: Case, part: Measured, place: int, k: int) -> dict[str, object]:
    row: dict[str, object] = {"setting": case.title, "k": k}
    row |= {name: round(part[name], 2) for name in (GUESS, ORIGINAL, AS_NUMBERS)}
    for form in (NAMES, MIDDLES):
        spread, weight = (part[way][place][form] for way in (SPREAD, WEIGHT))
        row |= {
            f"{SPREAD}, {form}": round(spread, 2),
            f"{WEIGHT}, {form}": round(weight, 2),
            f"more, {form}": round(weight - spread, 2),
        }
    return row


def _gaps(part: Measured, form: str = NAMES) -> list[float]:
    """How far weight-only is above spread-only, for each k."""
    return [weight[form] - spread[form] for weight, spread in zip(part[WEIGHT], part[SPREAD], strict=True)]


def _third(asked: Sequence[Case], gaps: Mapping[str, Sequence[float]]) -> Check:
    own = {case.target: gaps[case.title] for case in asked if case.case == "III"}
    shares = {target: sum(gap >= 0 for gap in differences) / len(differences) for target, differences in own.items()}
    evidence = "; ".join(f"{target} at {100 * share:.0f} % of k" for target, share in shares.items())
    holds = all(gap >= 0 for differences in own.values() for gap in differences)
    return Check("case III: weight-only not below spread-only", holds, min(shares.values()) >= SHARE, evidence)


def _near_original(asked: Sequence[Case], parts: Mapping[str, Measured]) -> Check:
    """The original is recoded by equal depth, as the report says, so that both sides are names; it may be behind."""
    lost = {
        case.target: part[ORIGINAL] - mean_and_error([cell[NAMES] for cell in part[WEIGHT]])[0]
        for case in asked
        if case.case == "III" and (part := parts[case.title])
    }
    near = max(lost.values()) <= NEAR
    evidence = "; ".join(f"{target} {-points:+.2f} points" for target, points in lost.items())
    return Check("case III: weight-only is near the original", near, near, f"{evidence} on average over k")


def _something_learned(asked: Sequence[Case], parts: Mapping[str, Measured]) -> Check:
    """Who says the most frequent class of every row is not below anybody who says less."""
    ahead = {
        case.target: max(cell[NAMES] for cell in part[WEIGHT]) - part[GUESS]
        for case in asked
        if case.case == "III" and (part := parts[case.title])
    }
    learned = [points >= LEARNED for points in ahead.values()]
    evidence = "; ".join(f"{target} {points:+.2f} points" for target, points in ahead.items())
    claim = "case III: weight-only tells more than the most frequent class"
    return Check(claim, all(learned), any(learned), f"{evidence} at the best k")


def _first(asked: Sequence[Case], gaps: Mapping[str, Sequence[float]]) -> Iterator[Check]:
    means = {case.title: sum(gaps[case.title]) / len(gaps[case.title]) for case in asked if case.case == "I"}
    own = gaps[asked[0].title]
    gap = difference(own, [0.0] * len(own))
    yield Check("case I: clearly above for A3, A8, A11", gap.mean > 0, gap.mean > 0, f"{gap} over k", gap.is_weak)
    others = list(means.values())[1:]
    below = sum(mean < 0 for mean in others)
    evidence = f"below for {below} of {len(others)} other three columns, on average over k"
    yield Check("case I: and below for some other three columns", below > 0, below > 0, evidence)


def _mostly(gaps: Mapping[str, Sequence[float]]) -> Check:
    means = [sum(differences) / len(differences) for differences in gaps.values()]
    above, below = sum(mean > 0 for mean in means), sum(mean < 0 for mean in means)
    most = 2 * above > len(means)
    p = sign_test(above, below)
    evidence = f"above in {above}, below in {below} of {len(means)}, on average over k, p of the signs = {p:.2g}"
    return Check("above in most settings", most, most, evidence, p >= WEAK)


def _figure(asked: Sequence[Case], parts: Mapping[str, Measured], ks: Sequence[int]) -> Figure:
    shown = [case for case in asked if case.case != "I" or case.features == asked[0].features]
    panels = []
    for case in shown:
        part = parts[case.title]
        lines = [Line(way, ks, [cell[NAMES] for cell in part[way]]) for way in (SPREAD, WEIGHT)]
        lines.append(Line(ORIGINAL, ks, [part[ORIGINAL]] * len(ks), dashed=True))
        panels.append(Panel(case.title, "k", "accuracy in %", tuple(lines), log_x=True))
    return Figure("Naive Bayes from released credit applications", tuple(panels))


CREDIT_WEIGHTS = Experiment(
    "R31",
    "Credit applications, by weight and by width",
    "Rangachari and Xiong, section 5.2, cases I to III",
    ("W2",),
    "Weight-only gives higher accuracy than spread-only in most settings, clearly so for A3, A8, A11; with the columns "
    "ranked by single-column accuracy (case III) it is above, and near the original.",
    "Case III: weight-only not below spread-only for at least 60 % of k in 2, 5, 10, 25, 50, 100, for each target, and "
    f"at most {NEAR:g} points behind the original recoded by equal depth, of some target more than the most frequent "
    "class; above for A3, A8, A11, below for some other three columns, and above in more than half of the settings; "
    "counter-examples are shown.",
    "Labels are names to the learner, as the report's simple naive Bayes of Weka would see them; middles of regions "
    f"as numbers stand beside them. The original is recoded by equal depth, as the report says, here in {RANGES} "
    "ranges, which it gives no number of; k are ours. Cases II and III weight 3, 2, 1. The report's figures are lost; "
    "its words are judged: most is more than half of the settings, clearly is beyond chance by a paired t-test over k.",
    "A16: − 54.7 %, + 45.3 %; numbers in five ranges of equal width: the largest has 90 % of A8, 43 % of A2, 68 % of "
    "A3.",
    "Naive Bayes: of names with Laplace's correction; of middles with a normal distribution in each class.",
    _plan,
    _judge,
    lambda _: CRX,
    "653 complete applications of UCI CRX, their six columns of numbers; the target has no part in the regions "
    "and is attached afterwards, a number in five ranges of equal width; columns ranked in ten ranges of equally many "
    "rows; case I for all 20 triples of columns (quick: two); ten folds, five divisions (quick: one).",
)
