# SPDX-License-Identifier: Apache-2.0
"""What the papers compare with, written anew: Iyengar's genetic search, naive Bayes, ID3 and a joint score of splits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit_papers.genetic_search import SUPPRESSED, GeneticSearch, cost_of_parts
from anonfit_papers.joint_heuristic import JointMondrian, Run, Score
from anonfit_papers.naive_bayes import NaiveBayes
from anonfit_papers.reproduction.frame import Settings, Verdict
from anonfit_papers.reproduction.joint_score import EVEN, JOINT, JOINT_SCORE, WAYS

SCHOOLS = {
    "name": "*",
    "children": [{"name": name, "children": [{"name": f"{name}{n}"} for n in (1, 2)]} for name in "lu"],
}
TREES = {"school": SCHOOLS}


def people(rows: int = 600, seed: int = 0) -> tuple[pl.DataFrame, pl.Series]:
    rng = np.random.default_rng(seed)
    age, school = rng.integers(18, 80, rows), rng.choice(["l1", "l2", "u1", "u2"], rows)
    told = (age > 45) * 1.0 + np.char.startswith(school, "u") + rng.normal(0, 0.3, rows) > 0.8
    frame = pl.DataFrame({"age": age, "school": school, "hours": rng.integers(1, 60, rows)})
    return frame, pl.Series("class", np.where(told, "yes", "no"))


# --- the genetic search -------------------------------------------------------------------------------------------


def plain_cost(metric: str, search: GeneticSearch, frame: pl.DataFrame, labels: pl.Series) -> float:
    """The metric of what a search releases, counted from the rows it gives out."""
    released = search.released(frame)
    gone = (released == SUPPRESSED).select(pl.all_horizontal(pl.all())).to_series()
    if metric == "CM":
        groups = released.with_columns(labels).filter(~gone).group_by(pl.all()).len()
        largest = groups.group_by(frame.columns).agg(pl.col("len").max())["len"].sum()
        return 1 - float(largest) / len(frame)
    lost = float(gone.sum() * frame.width)
    parts = search.apply(frame)
    for name in frame.columns:
        axis = search.axis(frame[name])
        codes = axis.codes(frame[name])
        for part in parts[name].unique().to_list():
            rows = (parts[name] == part).to_numpy()
            if axis.taxonomy is None:
                values = frame[name].filter(pl.Series(rows))
                whole = frame[name].max() - frame[name].min()  # type: ignore[operator]
                share = (values.max() - values.min()) / whole  # type: ignore[operator]
            else:
                leaves = {int(code) for code in codes[rows]}
                share = {1: 0.0, 2: 1 / 3, 4: 1.0}[len(leaves)]
            lost += share * float((rows & ~gone.to_numpy()).sum())
    return lost / (len(frame) * frame.width)


@pytest.mark.parametrize("metric", ["LM", "CM"])
@pytest.mark.parametrize("k", [5, 40])
def test_a_search_releases_groups_of_k_and_costs_what_it_says(metric: Any, k: int) -> None:
    frame, labels = people()
    search = GeneticSearch(metric, k, TREES, 0, 600).fit(frame, labels)
    released = search.released(frame)
    sizes = released.filter(pl.col("age") != SUPPRESSED).group_by(pl.all()).len()["len"]
    assert int(sizes.min()) >= k  # type: ignore[arg-type]
    assert search.suppressed == pytest.approx(float((released["age"] == SUPPRESSED).mean() or 0))
    assert search.cost == pytest.approx(plain_cost(metric, search, frame, labels), abs=1e-6)


def test_a_search_is_seeded_and_finds_more_the_longer_it_looks() -> None:
    frame, labels = people()
    first, again, other = (GeneticSearch("CM", 20, TREES, seed, 800).fit(frame, labels) for seed in (0, 0, 1))
    assert first.apply(frame).equals(again.apply(frame))
    short = GeneticSearch("CM", 20, TREES, 0, 101).fit(frame, labels)
    assert first.cost <= short.cost
    assert abs(first.cost - other.cost) < 0.05
    known = frame.select(pl.col("age") > 45, pl.col("school").str.slice(0, 1), hours=pl.lit("all"))
    assert first.cost <= cost_of_parts("CM", TREES, frame, known, labels)  # the division that the classes were made by


def test_values_that_were_not_there_lie_in_the_part_beside_them() -> None:
    frame, labels = people()
    search = GeneticSearch("CM", 20, TREES, 0, 400).fit(frame, labels)
    ends = search.apply(pl.DataFrame({"age": [-5, 18, 79, 400], "school": ["l1"] * 4, "hours": [1] * 4}))["age"]
    assert (ends[0], ends[3]) == (ends[1], ends[2])


def test_a_taxonomy_is_refined_from_above() -> None:
    frame, _ = people(50)
    axis = GeneticSearch("LM", 1, TREES).axis(frame["school"])
    losses = {bits: axis.divided(np.array(bits, bool))[1].tolist() for bits in [(0, 1, 1), (1, 0, 1), (1, 1, 1)]}
    assert losses[0, 1, 1] == [1.0] * 4  # what is below a node that is whole does not matter
    assert losses[1, 0, 1] == [1 / 3, 1 / 3, 0, 0]
    assert losses[1, 1, 1] == [0.0] * 4


@pytest.mark.parametrize("metric", ["LM", "CM"])
def test_parts_found_in_another_way_cost_the_same_by_the_metric(metric: Any) -> None:
    frame, labels = people()
    search = GeneticSearch(metric, 1, TREES, 0, 300).fit(frame, labels)
    assert search.suppressed == 0
    assert cost_of_parts(metric, TREES, frame, search.apply(frame), labels) == pytest.approx(search.cost, abs=1e-6)


# --- naive Bayes --------------------------------------------------------------------------------------------------


def test_shares_are_m_estimates() -> None:
    frame = pl.DataFrame({"name": ["a", "a", "b", "b", "b"]})
    labels = pl.Series(["y", "y", "y", "n", "n"])
    model = NaiveBayes("ranges").fit(frame, labels)
    _, _, table = model._known["name"]
    assert math.exp(table[0, 1]) == pytest.approx((2 + 2 * 2 / 5) / (3 + 2))
    assert model.predict(pl.DataFrame({"name": ["a", "b", "new"]})).to_list() == ["y", "n", "y"]


@pytest.mark.parametrize("numbers", ["ranges", "normal"])
def test_numbers_part_classes(numbers: Any) -> None:
    frame, labels = people(2000)
    model = NaiveBayes(numbers).fit(frame[:1500], labels[:1500])
    right = float((model.predict(frame[1500:]) == labels[1500:]).mean() or 0)
    assert right > 0.8
    assert model.predict(pl.DataFrame({"age": [500], "school": ["u1"], "hours": [-9]})).to_list() == ["yes"]


def test_ranges_have_equal_width() -> None:
    frame = pl.DataFrame({"x": [0, 9, 10, 95, 100]})
    _, known, _ = NaiveBayes("ranges").fit(frame, pl.Series(list("nnyyy")))._known["x"]
    assert known == (0.0, 100.0, 10)


# --- the joint score ----------------------------------------------------------------------------------------------

ASKED: list[dict[str, Run]] = [{"age": (0, 20)}, {"school": (0, 2), "age": (10, 40)}]


def grown(score: Score, k: int = 20, weights: dict[str, float] | None = None) -> JointMondrian:
    frame, labels = people()
    return JointMondrian(score, k, weights or {}, TREES).fit(frame, labels, ASKED)


@pytest.mark.parametrize(
    "score", [Score(gain=1), Score(precision=1, evenness=1e-6), Score(evenness=1), Score(1.0, 1.0, 0.5, 0.5)]
)
def test_regions_part_all_rows_and_have_k_of_them(score: Score) -> None:
    made = grown(score)
    sizes = np.bincount(made.nodes())
    assert sizes.min() >= 20
    assert sizes.sum() == 600
    for region in made.regions:
        for column, (first, stop) in zip(made.columns, region.runs, strict=True):
            codes = column.codes[region.rows]
            assert first <= codes.min() <= codes.max() < stop


def test_each_heuristic_is_best_at_what_it_is_for() -> None:
    ways = {"gain": Score(gain=1, evenness=1e-6), "precision": Score(precision=1, evenness=1e-6)}
    made = {name: grown(score) for name, score in ways.items()}
    precise = {name: made[name].answered()[0] / made[name].answered()[1] for name in ways}
    assert precise["precision"] > precise["gain"]
    _, labels = people()
    wrong = {}
    for name, one in made.items():
        counts = pl.DataFrame({"node": one.nodes(), "class": labels}).group_by("node", "class").len()
        wrong[name] = 600 - int(counts.group_by("node").agg(pl.col("len").max())["len"].sum())
    assert wrong["gain"] < wrong["precision"]


def test_a_weighted_column_is_split_before_others() -> None:
    made = grown(Score(weight=1.0, evenness=1e-6), weights={"hours": 3.0, "age": 0.0})
    widths = [stop - first for region in made.regions for first, stop in [region.runs[2]]]
    ages = [stop - first for region in made.regions for first, stop in [region.runs[0]]]
    assert max(widths) < 59 / 2
    assert max(ages) == made.columns[0].size


def test_by_its_best_no_heuristic_is_small_by_its_nature() -> None:
    merits = np.array([[0.02, 0.0, 0.0, 0.40], [0.01, 0.0, 0.0, 0.45]])  # gains are small shares, evenness is not
    assert Score(gain=1.0, evenness=0.5).chosen(merits) == 1
    assert Score(gain=1.0, evenness=0.5, by_best=True).chosen(merits) == 0
    assert Score(gain=1.0).chosen(merits[::-1]) == 1
    assert Score(precision=1.0, by_best=True).chosen(merits) == 0  # alike: the first


def joint_gave(joint: float) -> list[dict[str, dict[str, float]]]:
    """What R41 is judged by: every way at 80 and 30, evenness behind, and the joint score so far above both."""
    draw = np.random.default_rng(0)
    gave = []
    for _ in range(60):
        one = {way: {"accuracy": 80.0, "precision": 30.0, "GDM": 100.0} for way in WAYS}
        one[EVEN] = {"accuracy": 70.0, "precision": 20.0, "GDM": 100.0}
        one[JOINT] = {
            name: 100.0 if name == "GDM" else value + joint + draw.normal() / 100 for name, value in one[JOINT].items()
        }
        gave.append(one)
    return gave


@pytest.mark.parametrize(("joint", "verdict"), [(0.5, Verdict.HOLDS), (-0.5, Verdict.FAILS)])
def test_a_single_heuristic_that_is_better_at_both_tasks_makes_the_joint_score_fail(
    joint: float, verdict: Verdict
) -> None:
    result = JOINT_SCORE.judge(Settings(quick=False, folder=None), joint_gave(joint))
    assert result.verdict == verdict
    assert ("no single heuristic is better" in result.why) == (verdict == Verdict.FAILS)
    assert f"{joint:+.2f} points of accuracy" in result.notes[2]
