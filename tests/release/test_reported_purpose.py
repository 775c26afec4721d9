# SPDX-License-Identifier: Apache-2.0
"""The report says what really steered the splits, and answers selections whatever steered them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import anonfit as af
from anonfit.algorithms import denoised
from anonfit.release.request import STOPPED

K = 5
AGES = np.arange(200) % 80 + 10
PEOPLE = pl.DataFrame(
    {
        "age": AGES,
        "sex": ["f", "m"] * 100,
        "many": AGES // 2,  # forty whole numbers
        "few": AGES // 20,  # five whole numbers
        "cost": AGES * 10.5,
        "outcome": np.where(AGES > 50, "yes", "no"),
    }
)


def released(**words: Any) -> af.Release:
    return af.anonymize(PEOPLE, quasi_identifiers=["age", "sex"], k=K, default_role="insensitive", **words)


def sentences(**words: Any) -> list[str]:
    found: list[str] = released(**words).report["asked"]["sentences"]
    return found[1:]


# --- the criterion ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "criterion", "algorithm", "kind", "measure"),
    [
        ("many", "infogain", "InfoGain Mondrian", "classes", "classes"),
        ("many", "auto", "LSD Mondrian", "number", "number"),
        ("many", "lsd", "LSD Mondrian", "number", "number"),
        ("few", "lsd", "LSD Mondrian", "number", "number"),
        ("few", "auto", "InfoGain Mondrian", "classes", "classes"),
        ("cost", "auto", "LSD Mondrian", "number", "number"),
        ("outcome", "infogain", "InfoGain Mondrian", "classes", "classes"),
    ],
)
def test_the_report_names_the_criterion_that_chose_the_splits(
    target: str, criterion: str, algorithm: str, kind: str, measure: str
) -> None:
    report = released(targets=[target], criterion=criterion).report
    assert report["asked"]["algorithm"] == algorithm
    (told,) = report["asked"]["targets"]
    assert (told["kind"], told["used"]) == (kind, True)
    words = "its classes" if kind == "classes" else "a number"
    assert report["asked"]["sentences"][1:] == [
        f"Made to predict {target} ({words})"
        + (", judged by the predictions of models fitted on other rows." if criterion == "auto" else "."),
        *([STOPPED] if criterion == "auto" else []),
        f"Splits were chosen by {algorithm}.",
    ]
    (predicted,) = report["predictions"]
    assert predicted["measure"] == ("accuracy" if measure == "classes" else "explained variance")


@pytest.mark.parametrize(("target", "criterion"), [("many", "infogain"), ("few", "lsd"), ("few", "median")])
def test_a_release_of_new_rows_is_told_to_be_made_as_the_first_was(target: str, criterion: str, tmp_path: Path) -> None:
    first = released(targets=[target], criterion=criterion)
    first.save(tmp_path / "first")
    for again in (first.extend(PEOPLE), af.load(tmp_path / "first").extend(PEOPLE)):
        assert again.report["asked"]["sentences"] == first.report["asked"]["sentences"]
        assert again.report["asked"]["targets"] == first.report["asked"]["targets"]


def test_a_target_that_the_criterion_is_not_about_does_not_steer() -> None:
    assert sentences(targets=["outcome", "cost"], criterion="lsd") == [
        "Made to predict cost (a number).",
        "Declared as targets without steering the splits: 'outcome'.",
        "Splits were chosen by LSD Mondrian.",
    ]


def test_what_a_given_model_predicts_is_told_as_it_steered() -> None:
    """A model without probabilities may predict classes; what counts is what the criterion got."""
    features = PEOPLE.select("age").to_pandas()
    shares = LogisticRegression().fit(features, PEOPLE["outcome"].to_numpy())
    numbers = LinearRegression().fit(features, PEOPLE["cost"].to_numpy())

    class Naming:
        feature_names_in_ = ("age",)

        def predict(self, rows: Any) -> Any:
            return np.where(rows["age"] > 40, "old", "young")

    for column, model, algorithm in (
        ("outcome", shares, "InfoGain Mondrian"),
        ("cost", numbers, "LSD Mondrian"),
        ("outcome", Naming(), "InfoGain Mondrian"),
    ):
        found = sentences(targets=[{"column": column, "model": model}])
        assert found == [
            f"Made to predict {column} (as a given model predicts it).",
            f"Splits were chosen by {algorithm}.",
        ]


def test_only_targets_without_a_model_of_their_own_are_told_to_be_denoised() -> None:
    model = LinearRegression().fit(PEOPLE.select("age").to_pandas(), PEOPLE["cost"].to_numpy())
    found = sentences(targets=["outcome", {"column": "cost", "model": model}], denoise=True)
    assert found[0] == (
        "Made to predict outcome (its classes) and cost (as a given model predicts it), outcome judged by the "
        "predictions of models fitted on other rows."
    )
    assert sentences(targets=["outcome"], denoise=True)[0] == (
        "Made to predict outcome (its classes), judged by the predictions of models fitted on other rows."
    )


# --- what did not steer -----------------------------------------------------------------------------------------


def test_all_that_the_median_leaves_out_of_account_is_told() -> None:
    found = sentences(
        targets=["outcome"],
        selections=["age > 50", {"each": "sex"}],
        criterion="median",
    )
    assert found == [
        "Declared as targets without steering the splits: 'outcome'.",
        "Declared without steering the splits: 2 selections, whose texts are not public.",
        "Splits were chosen by Median Mondrian.",
    ]


def test_selections_that_infogain_leaves_out_of_account_are_told() -> None:
    assert sentences(targets=["outcome"], selections=["age > 50"], criterion="infogain") == [
        "Made to predict outcome (its classes).",
        "Declared without steering the splits: 1 selection, whose texts are not public.",
        "Splits were chosen by InfoGain Mondrian.",
    ]


# --- selections are always answered -----------------------------------------------------------------------------

LINE = pl.DataFrame({"x": range(16)})


def test_selections_are_answered_from_blind_regions_too() -> None:
    """The median parts 16 numbers into fours. Of 8 to 11 two are asked for; no cut is needed at 8."""
    selections = ["x >= 10", "x < 8"]
    release = af.anonymize(LINE, quasi_identifiers=["x"], k=4, selections=selections, criterion="median")
    assert set(release.data["x"].to_list()) == {"< 3.5", "[3.5, 7.5)", "[7.5, 11.5)", "≥ 11.5"}
    # Two persons of the eight in the answer were not asked for: fewer than k, so not told.
    assert release.report["selections"]["asked"] == 2
    assert release.report["selections"]["answers"] == [
        {"number": 1, "imprecision": None, "precision": None, "recall": None},
        {"number": 2, "imprecision": 0, "precision": 1.0, "recall": 1.0},
    ]


def test_the_owner_can_compare_regions_made_for_selections_with_blind_ones(tmp_path: Path) -> None:
    found = {}
    for criterion in ("median", "selection"):
        words = {"quasi_identifiers": ["x"], "k": 4, "selections": ["x >= 10"], "criterion": criterion}
        af.anonymize(LINE, **words).save(tmp_path / criterion)
        record = json.loads((tmp_path / f"{criterion}.internal.json").read_text(encoding="utf-8"))
        found[criterion] = [line["imprecision"] for line in record["selections"]["selections"]]
    assert found == {"median": [2], "selection": [0]}


@pytest.mark.parametrize("criterion", ["median", "infogain"])
def test_selections_that_cannot_be_read_are_refused_also_where_they_do_not_steer(criterion: str) -> None:
    with pytest.raises(af.SpecError, match="there is no column 'agee'"):
        released(targets=["outcome"], selections=["agee > 50"], criterion=criterion)


# --- numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("beta", "told"), [(1e300, "1e+300"), (1e-300, "1e-300"), (12345678.0, "12,345,678")])
def test_extreme_parameters_are_told_in_few_digits(beta: float, told: str) -> None:
    report = released(sensitive={"outcome": {"model": "beta-likeness", "beta": beta}}).report
    (line,) = report["diversity"]
    assert line["sentence"].endswith(f"(asked: at most {told}).")
    assert all(len(sentence) < 300 for sentence in report["asked"]["sentences"])


# --- what other uses give up ------------------------------------------------------------------------------------


def many_people(rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    ages, towns = rng.integers(10, 90, rows), rng.choice(list("abcdefgh"), rows)
    ill = rng.random(rows) < 1 / (1 + np.exp((45 - ages) / 12))
    return pl.DataFrame({"age": ages, "town": towns, "ill": np.where(ill, "yes", "no")})


def lost_columns(rows: int, folder: Path) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """What the public report tells of columns, blind and for the purpose, and what the owner's does."""
    made = af.anonymize(many_people(rows), quasi_identifiers=["age", "town"], targets=["ill"], k=K)
    made.save(folder / "out")
    reports = (folder / "out" / "report.json", folder / "out.internal.json")
    public, owners = (json.loads(path.read_text())["comparison"]["columns"] for path in reports)
    return public, owners


def test_where_divisions_end_early_the_report_tells_what_columns_lost(tmp_path: Path) -> None:
    public, owners = lost_columns(3000, tmp_path)
    assert public is not None
    assert owners is not None
    assert [line["column"] for line in public["columns"]] == ["age", "town"]
    of_age = public["columns"][0]["ncp"], owners["columns"][0]["ncp"]
    town = public["columns"][1]
    assert town["ncp"]["purpose"] > town["ncp"]["blind"]  # it tells nothing of the target
    for way in ("blind", "purpose"):
        assert of_age[0][way] == float(f"{of_age[1][way]:.2g}")
        exact = owners["weighted_discernibility"][way]
        assert public["weighted_discernibility"][way] == float(f"{exact:.2g}") != exact
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What other uses gain or give up" in page


def test_of_few_rows_the_report_does_not_tell_what_columns_lost(tmp_path: Path) -> None:
    assert lost_columns(1200, tmp_path) == (None, None)


def test_regions_that_are_compared_are_dealt_to_models_as_often_as_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    dealt: list[int] = []
    fit = denoised.fit_shares

    def noted(*given: Any, deals: int, **words: Any) -> Any:
        dealt.append(deals)
        return fit(*given, deals=deals, **words)

    monkeypatch.setattr(denoised, "fit_shares", noted)
    made = af.anonymize(many_people(6000), quasi_identifiers=["age", "town"], targets=["ill"], k=K)
    assert made.report["comparison"]["known_rows"] == 4000  # which alone would be dealt five times
    assert len(dealt) > 1
    assert set(dealt) == {3}
