# SPDX-License-Identifier: Apache-2.0
"""The command behind the table of docs/purpose.md: reading the census files, dividing, counting, printing."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from anonfit.errors import DataError, RequestError
from anonfit_papers import purpose_gain, purpose_tables
from anonfit_papers.purpose_gain import DENOISED, MEDIAN, ORIGINAL, PLAIN, REMOVED, Accuracies, main, measure, report
from anonfit_papers.purpose_tables import TASKS, adult, data_folder, wages

ROWS = 240
HEADER = (
    "ST,PUMA,PWGTP,AGEP,SEX,MAR,RAC1P,HISP,CIT,NATIVITY,POBP,SCHL,RELP,MIL,DIS,COW,OCCP,INDP,ESR,WKHP,WKW,JWMNP,JWTR,"
    "WAGP,SEMP,PERNP,PINCP,POVPIP,ADJINC"
)
TREES = {
    "workclass": "Private;Other;*\nState-gov;Government;*\n",
    "marital-status": "Divorced;*\nWidowed;*\n",
    "occupation": "Sales;*\nTech-support;*\n",
    "race": "White;*\nBlack;*\n",
    "sex": "Male;*\nFemale;*\n",
    "native-country": "Peru;America;*\nCuba;America;*\n",
}


def adult_line(rng: np.random.Generator, ending: str = "") -> str:
    age = int(rng.integers(17, 90))
    names = {name: rng.choice([line.split(";")[0] for line in tree.split()]) for name, tree in TREES.items()}
    return (
        f"{age}, {names['workclass']}, 1, HS, {rng.integers(1, 17)}, {names['marital-status']}, {names['occupation']}, "
        f"Wife, {names['race']}, {names['sex']}, 0, 0, 40, {names['native-country']}, "
        f"{'>50K' if age > 40 else '<=50K'}{ending}"
    )


def person(rng: np.random.Generator, *, age: int | None = None, wage: object = None) -> str:
    """A line of the survey; the wage follows the hours."""
    hours = int(rng.integers(1, 80))
    found = {
        "ST": rng.choice(["10", "23", "33", "16"]),
        "AGEP": int(rng.integers(16, 90)) if age is None else age,
        **{name: rng.choice(["1", "2"]) for name in ("SEX", "DIS")},
        **{name: rng.choice(["1", "4", "5"]) for name in ("MAR", "RAC1P", "CIT")},
        "SCHL": f"{rng.integers(1, 25):02}",
        "WKHP": hours,
        "WAGP": 1_000 * hours if wage is None else wage,
    }
    return ",".join(str(found.get(name, "")) for name in HEADER.split(","))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder of made-up people, with the oddities of the true files."""
    rng = np.random.default_rng(0)
    (tmp_path / "uci").mkdir()
    half = ROWS // 2
    incomplete = adult_line(rng).replace("Wife", "?")
    data = [*(adult_line(rng) for _ in range(half)), incomplete, ""]
    test = ["|1x3 Cross validator", *(adult_line(rng, ".") for _ in range(half)), ""]
    (tmp_path / "uci" / "adult.data").write_text("\n".join(data) + "\n", encoding="utf-8")
    (tmp_path / "uci" / "adult.test").write_text("\n".join(test) + "\n", encoding="utf-8")
    trees = tmp_path / "hierarchies" / "arx-adult"
    trees.mkdir(parents=True)
    for name, tree in TREES.items():
        (trees / f"adult_hierarchy_{name}.csv").write_text(tree, encoding="utf-8")
    (tmp_path / "acs").mkdir()
    left_out = [person(rng, age=15), person(rng, wage=0), person(rng, wage="")]
    borders = [person(rng, age=16, wage=29_999), person(rng, age=16, wage=30_000)]
    people = [HEADER, *left_out, *borders, *(person(rng) for _ in range(ROWS - len(borders)))]
    path = tmp_path / "acs" / "acs2018_1yr_persons_10states.csv.gz"
    path.write_bytes(gzip.compress("\n".join(people).encode()))
    return tmp_path


@pytest.fixture
def one_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single quick learner instead of four."""
    monkeypatch.setattr(purpose_gain, "learners", lambda: {"tree": lambda: DecisionTreeClassifier(random_state=0)})


# --- the tables -------------------------------------------------------------------------------------------------


def test_adult_is_the_complete_records_of_both_files(folder: Path) -> None:
    task = adult(folder)
    assert len(task.frame) == ROWS
    assert task.frame["class"].unique().sort().to_list() == ["<=50K", ">50K"]
    assert task.quasi_identifiers == [
        *("age", "workclass", "education-num", "marital-status"),
        *("occupation", "race", "sex", "native-country"),
    ]


def test_wages_are_of_people_of_16_who_have_some_and_high_from_30000(folder: Path) -> None:
    task = wages(folder)
    assert len(task.frame) == ROWS
    assert task.frame["wage"].head(2).to_list() == ["low", "high"]
    assert len(task.quasi_identifiers) == 9


def test_the_folder_is_the_given_one_then_the_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, given = tmp_path / "named", tmp_path / "given"
    named.mkdir()
    given.mkdir()
    monkeypatch.setattr(purpose_tables, "BESIDE", tmp_path)
    monkeypatch.delenv("ANONFIT_DATA", raising=False)
    assert data_folder() == tmp_path
    monkeypatch.setenv("ANONFIT_DATA", str(named))
    assert data_folder() == named
    assert data_folder(given) == given


def test_a_folder_or_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="absent is not there: give it by --data or in ANONFIT_DATA"):
        data_folder(tmp_path / "absent")
    for make in TASKS:
        with pytest.raises(DataError, match="is not there: the README"):
            make(tmp_path)


# --- measuring --------------------------------------------------------------------------------------------------


def test_training_and_test_rows_are_different_rows(folder: Path) -> None:
    task = adult(folder)
    numbered = purpose_tables.Task(task.name, task.frame.with_row_index("row"), task.target, task.taxonomies)
    for split in range(3):
        holdout = purpose_gain._divide(numbered, split, None)
        training, test = set(holdout.training["row"]), set(holdout.test["row"])
        assert (len(training), len(test)) == (160, 80)
        assert training | test == set(range(ROWS))
    assert len(purpose_gain._divide(numbered, 0, 30).training) == 20


@pytest.mark.usefixtures("one_tree")
def test_every_release_is_measured_in_every_split(folder: Path) -> None:
    heard: list[str] = []
    result = measure([adult(folder)], splits=2, ks=[10], stage=heard.append)
    assert heard == ["Adult: split 1 of 2", "Adult: split 2 of 2"]
    assert set(result.accuracy) == {("Adult", name, 10) for name in (ORIGINAL, DENOISED, PLAIN, MEDIAN, REMOVED)}
    assert {scores.shape for scores in result.accuracy.values()} == {(2, 1)}
    # The class is a matter of age alone, so a tree on raw rows or on regions made for the class tells it.
    assert result.mean(ORIGINAL, ("Adult", 10)) > 95
    assert result.mean(PLAIN, ("Adult", 10)) > 95
    assert 50 < result.mean(REMOVED, ("Adult", 10)) < 85


@pytest.mark.usefixtures("one_tree")
def test_test_rows_do_not_shape_the_regions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[Any] = []
    from anonfit import api

    true = api.anonymize
    monkeypatch.setattr(api, "anonymize", lambda rows, **words: released.append(rows) or true(rows, **words))
    task = adult(folder)
    measure([task], splits=2, ks=[10])
    assert len(released) == 6
    for number, rows in enumerate(released):
        assert rows.equals(purpose_gain._divide(task, number // 3, None).training)


def test_one_split_has_no_paired_error() -> None:
    with pytest.raises(RequestError, match="at least 2 splits, but 1 were asked for"):
        measure([], splits=1)


def test_rows_are_needed() -> None:
    with pytest.raises(RequestError, match="rows = 0"):
        measure([], rows=0)


# --- the report -------------------------------------------------------------------------------------------------


def test_the_gain_is_the_mean_difference_with_its_paired_error() -> None:
    accuracy = {("T", name, 5): np.array([[80.0, 70.0], [82.0, 72.0]]) for name in (ORIGINAL, PLAIN, MEDIAN, REMOVED)}
    accuracy["T", DENOISED, 5] = np.array([[81.0, 71.0], [85.0, 75.0]])
    result = Accuracies(("a", "b"), (5,), accuracy)
    lines = report(result).splitlines()
    assert "| InfoGain, subset splits, denoised | 78.00 |" in lines
    assert "| InfoGain as in the paper | 76.00 |" in lines
    # Gains 1 and 3: mean 2, standard deviation √2, divided by √2.
    assert "| mean | +2.00 ± 1.00 |" in lines
    assert "| b | +2.00 ± 1.00 |" in lines
    assert lines[-1].startswith("Over all cells the gain is +2.00 points on average")


@pytest.mark.usefixtures("one_tree")
def test_the_command_prints_the_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(folder), "--splits", "2"]) == 0
    found = capsys.readouterr()
    head = "| release | Adult, k = 10 | Adult, k = 50 | Adult, k = 100 | ACS wages, k = 10 | ACS wages, k = 50 | "
    assert head + "ACS wages, k = 100 |" in found.out
    assert "ACS wages: split 2 of 2" in found.err


def test_the_command_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(tmp_path / "absent")]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert "is not there: give it by --data or in ANONFIT_DATA" in found.err


# --- the claim --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_subset_splits_and_denoising_gain_on_census_data() -> None:
    try:
        folder = data_folder()
    except DataError as error:
        pytest.skip(str(error))
    result = measure([make(folder) for make in TASKS], splits=3)
    assert result.gain.mean() >= 0.3
    assert result.gain.min() >= -0.2
