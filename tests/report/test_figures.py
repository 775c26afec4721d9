# SPDX-License-Identifier: Apache-2.0
"""The figures of a report: initial risk, bins of sizes, predictions, the comparison, and the curve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from reported import K, people, released

import anonfit as af
from anonfit.errors import RequestError
from anonfit.metrics.attack import InitialRisk, group_bins, initial_content, initial_risk
from anonfit.metrics.curve import curve_content, read_ks
from anonfit.metrics.holdout import comparison_content
from anonfit.privacy.disclosure import EVERYTHING, Disclosure
from anonfit.release.evidence import measure_all, risk_utility_curve

# --- the risk before ---------------------------------------------------------------------------------------------

RAW = pl.DataFrame(
    {
        "age": [1, 1, 1, 2, 2, 3, 3, 4],
        "sex": ["f", "f", "f", "f", "f", "m", None, None],
        "who": [1, 1, 2, 3, 4, 5, 6, 7],
        "many": [1, 1, 1, 2, 2, 1, 1, 5],
    }
)


@pytest.mark.parametrize(
    ("entity", "count", "found"),
    [
        (None, None, InitialRisk(persons=8, risks=5, smallest=1, alone=3, below_k=5)),
        ("who", None, InitialRisk(persons=7, risks=5, smallest=1, alone=3, below_k=7)),
        (None, "many", InitialRisk(persons=14, risks=5, smallest=1, alone=2, below_k=2)),
    ],
)
def test_the_initial_risk_counts_persons(entity: str | None, count: str | None, found: InitialRisk) -> None:
    assert initial_risk(RAW, ["age", "sex"], k=3, entity=entity, count=count) == found


def test_the_average_risk_of_persons_with_several_rows_is_that_of_their_rarest_one() -> None:
    # Persons 1 and 2 are alone in a row each; 3 shares both rows with one or two others.
    raw = pl.DataFrame({"age": [1, 2, 3, 3, 3, 4, 4], "who": [1, 2, 1, 2, 3, 3, 2]})
    risk = initial_risk(raw, ["age"], k=2, entity="who", count=None)
    assert risk == InitialRisk(persons=3, risks=2.5, smallest=1, alone=2, below_k=2)
    assert initial_content(risk, Disclosure(0))["average"] == pytest.approx(2.5 / 3)
    assert initial_content(risk, Disclosure(1))["average"] == pytest.approx(2.5 / 3)
    assert initial_content(risk, Disclosure(1, rows_are_persons=False))["average"] is None


def told(alone: int, below: int, persons: int = 100, least: int = 10) -> tuple[Any, Any, bool]:
    content = initial_content(InitialRisk(persons, 80, 1, alone, below), Disclosure(least))
    return content["alone"]["persons"], content["below_k"]["persons"], content["average"] is not None


@pytest.mark.parametrize(
    ("alone", "below", "expected"),
    [
        (50, 60, (50, 60, True)),
        (0, 0, (0, 0, True)),
        (100, 100, (100, 100, True)),
        (9, 60, ("fewer than 10", 60, False)),
        (95, 100, ("not told", 100, False)),
        (91, 95, ("not told", "all but fewer than 10", False)),
        (50, 95, (50, "all but fewer than 10", False)),
        (50, 53, ("not told", 53, False)),  # three persons by subtraction
    ],
)
def test_the_initial_risk_of_few_is_not_told(alone: int, below: int, expected: tuple[Any, Any, bool]) -> None:
    assert told(alone, below) == expected
    assert told(alone, below, least=0) == (alone, below, True)


# --- sizes -------------------------------------------------------------------------------------------------------


def test_few_sizes_are_told_one_by_one() -> None:
    assert group_bins(np.array([5, 5, 7])) == [
        {"low": 5, "high": 5, "groups": 2, "persons": 10},
        {"low": 7, "high": 7, "groups": 1, "persons": 7},
    ]
    assert group_bins(np.zeros(0, np.int64)) == []


@pytest.mark.parametrize("seed", range(5))
def test_bins_hold_every_group_once(seed: int) -> None:
    sizes = (5 * np.random.default_rng(seed).pareto(0.7, 300)).astype(np.int64) + 5
    bins = group_bins(sizes)
    assert sum(one["groups"] for one in bins) == 300
    assert sum(one["persons"] for one in bins) == sizes.sum()
    for one in bins:
        inside = sizes[(sizes >= one["low"]) & (sizes <= one["high"])]
        assert (len(inside), inside.sum()) == (one["groups"], one["persons"])


# --- what regions tell -------------------------------------------------------------------------------------------


def test_predictions_are_those_of_the_released_file() -> None:
    release = released("classes")
    groups = release.data.group_by(*release.recoding.quasi_identifiers).agg("outcome")["outcome"].to_list()
    right = 0
    for values in groups:
        for place in range(len(values)):
            others = values[:place] + values[place + 1 :]
            # Of equally frequent classes the first in order counts.
            likely = max(sorted(set(others)), key=others.count)
            right += likely == values[place]
    (line,) = release.report["predictions"]
    assert line["regions"] == round(right / len(release.data), 3)
    assert line["regions"] > line["table"]


def test_numbers_are_told_as_explained_variance() -> None:
    release = released("numbers")
    (line,) = release.report["predictions"]
    data = release.data.with_columns(
        others=(pl.col("cost").sum().over(release.recoding.quasi_identifiers) - pl.col("cost"))
        / (pl.len().over(release.recoding.quasi_identifiers) - 1),
        all=(pl.col("cost").sum() - pl.col("cost")) / (pl.len() - 1),
    )
    errors = [float(((data["cost"] - data[name]) ** 2).mean()) for name in ("others", "all")]  # type: ignore[arg-type]
    assert line["regions"] == round(1 - errors[0] / errors[1], 3)
    assert line["typical_error"]["regions"] == pytest.approx(errors[0] ** 0.5, rel=1e-3)


def test_the_unit_of_a_generalized_number_is_not_told() -> None:
    lines = {line["column"]: line for line in released("generalized").report["predictions"]}
    assert "typical_error" not in lines["height"]
    assert lines["height"]["measure"] == "explained variance"
    assert lines["age"]["measure"] == "accuracy"


# --- blind against made for the purpose --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def thorough() -> Any:
    return measure_all(released("everything", people(3000))._draft, ks=(5, 20, 5000))


def test_the_purpose_gains_where_there_is_something_to_gain(thorough: Any) -> None:
    found = comparison_content(thorough.comparison, Disclosure(K))
    assert (found["known_rows"], found["held_out_rows"], found["sampled"]) == (2000, 1000, False)
    lines = {line["column"]: line for line in found["targets"]}
    for line in lines.values():
        assert line["gain"] == pytest.approx(line["purpose"] - line["blind"], abs=2e-3)
        assert 0 < line["noise"] < 0.2
    assert lines["cost"]["gain"] > lines["cost"]["noise"]
    assert lines["cost"]["whole"] == 0.0
    assert found["selections"]["purpose"]["precision"] >= found["selections"]["blind"]["precision"]
    assert found["selections"]["purpose"]["imprecision"] % K == 0


def test_a_release_without_a_purpose_is_not_compared() -> None:
    assert measure_all(released("blind")._draft).comparison is None
    assert measure_all(released("classes", criterion="median")._draft).comparison is None


def test_a_target_that_decides_its_own_region_is_not_judged() -> None:
    # Held-out rows reach their region by their own age, so regions that divide ages would tell it best.
    words: dict[str, Any] = {"targets": ["age", "outcome"], "insensitive": ["cost"]}
    found = measure_all(released("classes", **words)._draft, ks=(5,))
    assert found.comparison is not None
    assert [line["column"] for line in comparison_content(found.comparison, EVERYTHING)["targets"]] == ["outcome"]
    assert found.curve is not None
    assert [line["column"] for line in curve_content(found.curve, EVERYTHING)["points"][0]["targets"]] == ["outcome"]
    assert [line.column for line in found.predictions] == ["age", "outcome"]
    assert measure_all(released("generalized")._draft).comparison is None


def test_too_few_rows_are_not_compared() -> None:
    assert measure_all(released("classes", people(20))._draft).comparison is None


def test_the_same_release_gives_the_same_figures() -> None:
    first, again = (
        comparison_content(measure_all(released("classes")._draft).comparison, Disclosure(K))  # type: ignore[arg-type]
        for _ in range(2)
    )
    assert first == again


def test_a_persons_rows_are_not_parted() -> None:
    from anonfit.metrics.holdout import draw_holdout
    from anonfit.release.evidence import _setting

    frame = people(300).with_columns(who=pl.int_range(300) // 3)
    trial = draw_holdout(_setting(released("classes", frame, entity="who")._draft))
    assert trial is not None
    assert not set(trial.known["who"]) & set(trial.others["who"])
    assert len(trial.known) + len(trial.others) == 300


def test_of_a_large_table_some_rows_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonfit.metrics.holdout.ROWS", 300)
    found = comparison_content(measure_all(released("classes")._draft).comparison, Disclosure(K))  # type: ignore[arg-type]
    assert (found["known_rows"], found["held_out_rows"], found["sampled"]) == (200, 100, True)


# --- the curve ---------------------------------------------------------------------------------------------------


def test_the_curve_has_a_point_for_each_k(thorough: Any) -> None:
    points = curve_content(thorough.curve, Disclosure(K))["points"]
    assert [point["k"] for point in points] == [5, 20, 5000]
    assert [point["highest_risk"] for point in points] == [1 / 5, 1 / 20, 1 / 5000]
    assert points[0]["average_risk"] > points[1]["average_risk"]
    assert points[0]["kept"] > points[1]["kept"]
    assert [line["column"] for line in points[0]["targets"]] == ["outcome", "cost"]
    assert points[2] == {
        "k": 5000,
        "highest_risk": 1 / 5000,
        "average_risk": None,
        "kept": None,
        "targets": [],
        "precision": None,
    }


@pytest.mark.parametrize("words", [{"entity": "who"}, {"count": "many"}])
def test_the_average_risk_of_a_curve_is_that_of_the_persons_of_groups(words: dict[str, Any]) -> None:
    from anonfit.metrics.holdout import draw_holdout
    from anonfit.release.evidence import _setting

    frame = people(600).with_columns(who=pl.int_range(600) // 3, many=1 + pl.int_range(600) % 4)
    frame = frame.drop({"who", "many"} - set(words.values()))
    made = released("classes", frame, **words)._draft
    trial = draw_holdout(_setting(made))
    assert trial is not None
    regions = trial.regions(trial.setting.workload, 5)
    assert regions is not None
    rows = trial.known[regions.numbers].with_columns(node=pl.Series(regions.nodes))
    persons = pl.col("who").n_unique() if "entity" in words else pl.col("many").sum()
    sizes = rows.group_by("node").agg(persons=persons)["persons"]
    found = measure_all(made, ks=(5,)).curve
    assert found is not None
    (point,) = curve_content(found, EVERYTHING)["points"]
    assert point["average_risk"] == round(len(sizes) / sizes.sum(), 5)
    assert point["average_risk"] <= point["highest_risk"] == 1 / 5


def test_persons_with_several_rows_are_not_counted_by_rows(tmp_path: Path) -> None:
    frame = people(600).with_columns(who=pl.int_range(600) // 3)
    found = released("classes", frame, entity="who")
    folder = found.save(tmp_path / "release")
    internal = json.loads((tmp_path / "release.internal.json").read_text(encoding="utf-8"))
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["initial_risk"]["average"] is None
    assert internal["initial_risk"]["average"] <= 1
    for line in report["detail"]:
        assert sum(one["records"] for one in line["records_by_span"]) == found.data.height
        assert "persons_by_span" not in line
        assert "frequent_persons" not in line
    held = [one[-1] for one in report["partition"]["rectangles"] if one[-1]]
    assert held
    assert max(held) <= max(one["high"] for one in report["group_sizes"])
    assert "of all persons" not in (folder / "report.html").read_text(encoding="utf-8").split('id="detail"')[1][:2000]


@pytest.mark.parametrize("ks", [(), (0, 5), range(1, 30)])
def test_a_curve_needs_some_k(ks: Any) -> None:
    with pytest.raises(RequestError, match="1 to 20 different k"):
        read_ks(ks)


def test_a_curve_is_there_for_the_owner_of_the_data() -> None:
    spec = released("classes")._draft.spec
    points = risk_utility_curve(spec, people(), ks=[20, 5, 5])
    assert [point["k"] for point in points] == [5, 20]
    assert 0.5 < points[0]["targets"][0]["value"] <= 1


def test_a_run_can_be_asked_for_a_curve(tmp_path: Path) -> None:
    spec = released("classes")._draft.spec
    release = af.run(spec, tmp_path / "out", curve=[5, 20])
    assert [point["k"] for point in release.report["curve"]["points"]] == [5, 20]
    assert "Risk and utility over k" in (tmp_path / "out" / "report.html").read_text()
    with pytest.raises(RequestError, match="different k"):
        af.run(spec, tmp_path / "other", curve=[0])
    with pytest.raises(RequestError, match="too few rows"):
        af.run(released("classes", people(20))._draft.spec, tmp_path / "few", curve=[5])
    assert not (tmp_path / "few").exists()
