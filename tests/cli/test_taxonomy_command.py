# SPDX-License-Identifier: Apache-2.0
"""`anonfit taxonomy`: files made from rules and columns, shown, and written in other layouts."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

import anonfit as af
from commands import command

PEOPLE = "postcode,country,born\n01234,DE,1980-01-02\n01235,FR,1990-02-03\n75011,AT,1970-05-06\n75012,DE,2001-07-08\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    (tmp_path / "nobody.csv").write_text("postcode,country\n", encoding="utf-8")
    (tmp_path / "blank.csv").write_text("", encoding="utf-8")
    (tmp_path / "tree.txt").write_text("*\n  a\n  b\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["intervals", "--low", "0", "--high", "40", "--step", "2.5", "--levels", "10,20"],
            af.taxonomies.intervals(0, 40, step=2.5, levels=[10, 20]),
        ),
        (["intervals", "--low", "0", "--high", "8", "--step", "2"], af.taxonomies.intervals(0, 8, step=2)),
        (["cuts", "18,25,65", "65"], af.taxonomies.from_cuts([[18, 25, 65], [65]])),
        (["cuts", "-5,0,5", "-5"], af.taxonomies.from_cuts([[-5, 0, 5], [-5]])),
        (["cuts", "-.5,1", "--closed"], af.taxonomies.from_cuts([-0.5, 1], open_ends=False)),
        (["intervals", "--low", "-5", "--high", "5", "--step", "5"], af.taxonomies.intervals(-5, 5, step=5)),
        (["cuts", "0,5,10", "--closed"], af.taxonomies.from_cuts([0, 5, 10], open_ends=False)),
        (["cuts", "1990-01-01,2000-01-01"], af.taxonomies.from_cuts([date(1990, 1, 1), date(2000, 1, 1)])),
        (
            ["dates", "--low", "2020-01-01", "--high", "2021-03-31", "--levels", "month,year"],
            af.taxonomies.dates(date(2020, 1, 1), date(2021, 3, 31), levels=["month", "year"]),
        ),
        (
            ["mask", "people.csv", "postcode", "--keep", "3,2", "--sign", "#"],
            af.taxonomies.masked(["01234", "01235", "75011", "75012"], levels=[3, 2], mask="#"),
        ),
        (
            ["mask", "people.csv", "postcode", "--mask", "#"],
            af.taxonomies.masked(["01234", "01235", "75011", "75012"], mask="#"),
        ),
        (["alphabet", "people.csv", "country", "--groups", "2"], af.taxonomies.alphabetical(["DE", "FR", "AT"], groups=2)),
        (
            ["frequency", "people.csv", "country", "--minimum", "2", "--root", "all"],
            af.taxonomies.by_frequency({"DE": 2, "FR": 1, "AT": 1}, minimum=2, root="all"),
        ),
    ],
)  # fmt: skip
def test_a_command_builds_what_its_function_builds(folder: Path, words: list[str], expected: af.Taxonomy) -> None:
    for name in ("made.csv", "made.json", "made.txt"):
        result = command("taxonomy", "build", *words, "--out", name, "--json", folder=folder)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["leaves"] == len(expected.leaves)
        assert af.read_taxonomy(folder / name) == expected


def test_a_built_taxonomy_serves_a_run(folder: Path) -> None:
    command("taxonomy", "build", "mask", "people.csv", "postcode", "--keep", "2", "--out", "codes.csv", folder=folder)
    release = af.anonymize(
        folder / "people.csv",
        quasi_identifiers=["postcode"],
        identifiers=["born", "country"],
        k=2,
        columns={"postcode": af.Column(taxonomy=folder / "codes.csv")},
    )
    assert sorted(release.data["postcode"]) == ["01***", "01***", "75***", "75***"]


def test_names_from_a_table_come_with_a_notice(folder: Path) -> None:
    result = command("taxonomy", "build", "mask", "people.csv", "postcode", folder=folder)
    assert "remove what nobody may know" in result.stderr
    assert "remove" not in result.stdout
    rule = command("taxonomy", "build", "cuts", "5", folder=folder)
    assert rule.stderr == ""


@pytest.mark.parametrize(
    ("words", "levels", "said"),
    [
        (["dates", "--low", "2020-01-01", "--high", "2020-12-31", "--levels", "month,year"], 2, "1 of 2 levels is left out"),
        (["dates", "--low", "2020-01-01", "--high", "2020-02-10"], 3, "2 of 4 levels are left out"),
        (["intervals", "--low", "0", "--high", "40", "--step", "10", "--levels", "20,40"], 3, "1 of 3 levels is left out"),
        (["cuts", "0,5,10", "0,10", "--closed"], 2, "1 of 2 levels is left out"),
        (["cuts", "1,2,3", "1,2,3", "1"], 3, "1 of 3 levels is left out"),
        (["dates", "--low", "2020-01-01", "--high", "2021-12-31", "--levels", "month,year"], 3, ""),
        (["intervals", "--low", "0", "--high", "40", "--step", "10"], 3, ""),
    ],
)  # fmt: skip
def test_a_level_that_could_not_be_made_is_told(folder: Path, words: list[str], levels: int, said: str) -> None:
    result = command("taxonomy", "build", *words, "--out", "made.csv", folder=folder)
    assert f"{levels} levels" in result.stdout
    assert said in result.stderr if said else result.stderr == ""
    told = json.loads(command("taxonomy", "build", *words, "--out", "made.json", "--json", folder=folder).stdout)
    assert said in told.get("notice", "")
    assert len(told["levels"]) == levels


def test_built_levels_of_numbers_below_zero_and_dates_serve_a_run(folder: Path) -> None:
    rows = [f"{cold},19{70 + year}-03-04" for cold in (-9, -1, 1, 9) for year in range(30)]
    (folder / "days.csv").write_text("\n".join(["cold,born", *rows]), encoding="utf-8")
    build = ["taxonomy", "build"]
    command(*build, "cuts", "-5,0,5", "0", "--out", "cold.csv", folder=folder)
    years = ["--low", "1970-01-01", "--high", "1999-12-31", "--levels", "month,year", "--closed"]
    command(*build, "dates", *years, "--out", "born.txt", folder=folder)
    release = af.anonymize(
        folder / "days.csv",
        quasi_identifiers=["cold", "born"],
        k=30,
        columns={
            "cold": af.Column(type="continuous", taxonomy=folder / "cold.csv"),
            "born": af.Column(type="date", taxonomy=folder / "born.txt"),
        },
    )
    assert set(release.data["cold"]) == {"< -5", "[-5, 0)", "[0, 5)", "≥ 5"}


def test_nothing_is_overwritten_unasked(folder: Path) -> None:
    (folder / "cuts.csv").write_text("mine")
    result = command("taxonomy", "build", "cuts", "5", folder=folder)
    assert result.returncode == 2
    assert "cuts.csv is already there; choose another --out, or add --replace." in result.stderr
    assert (folder / "cuts.csv").read_text() == "mine"
    assert command("taxonomy", "build", "cuts", "5", "--replace", folder=folder).returncode == 0


def test_layouts_are_converted(folder: Path) -> None:
    command("taxonomy", "build", "cuts", "18,25,65", "65", "--out", "a.csv", folder=folder)
    assert command("taxonomy", "convert", "a.csv", "--out", "b.json", folder=folder).returncode == 0
    assert command("taxonomy", "convert", "b.json", "--out", "c.txt", folder=folder).returncode == 0
    assert af.read_taxonomy(folder / "c.txt") == af.read_taxonomy(folder / "a.csv")


def test_values_without_a_place_are_counted_and_not_named(folder: Path) -> None:
    command("taxonomy", "build", "mask", "people.csv", "postcode", "--out", "codes.csv", folder=folder)
    held = command("taxonomy", "show", "codes.csv", "--data", "people.csv", "--column", "postcode", folder=folder)
    assert held.returncode == 0
    assert "Every value of the column has a place" in held.stdout
    result = command("taxonomy", "show", "codes.csv", "--data", "people.csv", "--column", "country", folder=folder)
    assert result.returncode == 1
    assert "3 values have no place." in result.stdout
    assert "FR" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["build", "mask", "people.csv", "postcod"], "has no column 'postcod'; did you mean 'postcode'?"),
        (["build", "intervals", "--low", "x", "--high", "3", "--step", "1"], "--low needs numbers such as 5 or 2.5; found 'x'"),
        (["build", "cuts", "18,25", "--closd"], "there is no option '--closd'; did you mean '--closed'?"),
        (["build", "cuts", "1", "-2"], "the cuts '-2' are not on the finer level; add them there."),
        (["build", "cuts", "5", "--root", " "], "--root needs a name"),
        (["build", "mask", "nobody.csv", "postcode"], "column 'postcode' of nobody.csv has no value"),
        (["build", "alphabet", "nobody.csv", "postcode", "--groups", "2"], "column 'postcode' of nobody.csv has no value"),
        (["build", "mask", "blank.csv", "postcode"], "blank.csv: it is empty"),
        (["build", "mask", "people.csv", "postcode", "--mask", "##"], "the mask '##' has 2 characters; give one"),
        (["build", "mask", "people.csv", "postcode", "--keep", "5"], "'5' characters cannot be kept of codes that have up to 5"),
        (["build", "frequency", "people.csv", "country", "--minimum", "9"], "all counts together, 4, do not reach"),
        (["build", "cuts", "18,young"], "'young' is no number and no date"),
        (["build", "dates", "--low", "2020", "--high", "2021-01-01"], "--low needs a day such as 2020-01-31; found '2020'"),
        (["build", "dates", "--low", "2020-01-01", "--high", "2021-01-01", "--levels", "week"], "week"),
        (["build", "alphabet", "people.csv", "country", "--groups", "many"], "--groups needs whole numbers"),
        (["show", "nowhere.csv"], "nowhere.csv"),
        (["show", "people.csv", "--data", "people.csv"], "--data and --column go together"),
        (["convert", "tree.txt", "--out", "tree.xml"], "a taxonomy file does not end in '.xml'"),
    ],
)  # fmt: skip
def test_wrong_words_are_refused_with_a_sentence(folder: Path, words: list[str], error: str) -> None:
    result = command("taxonomy", *words, folder=folder)
    assert result.returncode == 2
    assert error in result.stderr
