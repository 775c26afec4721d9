# SPDX-License-Identifier: Apache-2.0
"""The results beside docs/reproduction.md are what today's judges say of what was measured, and other pages tell the
same numbers.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from anonfit_papers.reproduction import (
    bounding_regions,
    census_accuracy,
    census_numbers,
    entropy_and_size,
    forest_overfits,
    projection,
    random_groups,
)
from anonfit_papers.reproduction.catalogue import EXPERIMENTS
from anonfit_papers.reproduction.census_parts import PAPERS_BALANCE, PAPERS_NUMBER
from anonfit_papers.reproduction.comparing import Difference
from anonfit_papers.reproduction.frame import Check, Settings
from anonfit_papers.reproduction.rivals import told_at

FULL = Settings(quick=False, folder=Path())
DOCS = Path(__file__).resolve().parents[2] / "docs"
KEPT = DOCS / "figures"
WITHOUT_PARTS = {
    "R14",
    "R15",
    "R16",
    "R18",
    "R19",
    "R20",
    "R21",
    "R22",
    "R23",
    "R24",
    "R30",
    "R32",
    "R33",
    "R34",
    "R35",
    "R36",
    "R37",
    "R38",
    "R39",
    "R40",
    "R41",
}
"""Measured before parts were kept; hours for all of them together. R14, R16, R19, R20, R22, R35 and R36 are held to
their tables.
"""
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}


@pytest.fixture(autouse=True)
def _without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (bounding_regions, census_accuracy, census_numbers, entropy_and_size, forest_overfits, projection):
        monkeypatch.setattr(module, "table", lambda *_: SimpleNamespace(name="ACS wages", target="wage"))
        monkeypatch.setattr(module, "rows_in_words", lambda *_: "")
    monkeypatch.setattr(random_groups, "table", lambda *_: SimpleNamespace(name="ACS wages", target="wage"))
    monkeypatch.setattr(random_groups, "rows_in_words", lambda *_: "")
    names = {PAPERS_BALANCE: "R23", PAPERS_NUMBER: "R38"}
    # The column that is never left out is in no table.
    monkeypatch.setattr(projection, "order", lambda _, of: (*table(names[of])["last dropped"].to_list()[1:], "last"))


def kept(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))
    return found


def table(name: str) -> pl.DataFrame:
    return pl.read_csv(KEPT / f"{name}.csv")


def test_what_was_judged_is_kept_of_all_but_few() -> None:
    assert {path.stem for path in (KEPT / "measured").glob("*.json")} == set(BY_NAME) - WITHOUT_PARTS


@pytest.mark.parametrize("name", sorted(set(BY_NAME) - WITHOUT_PARTS))
def test_kept_results_are_what_todays_judges_say(name: str) -> None:
    measured = json.loads((KEPT / "measured" / f"{name}.json").read_text(encoding="utf-8"))
    result = BY_NAME[name].judge(FULL, measured)
    assert result.checks == tuple(Check(**check) for check in kept(name)["checks"])
    assert str(result.verdict) == kept(name)["verdict"]
    assert result.table.write_csv() == (KEPT / f"{name}.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "of"), [("R20", PAPERS_BALANCE), ("R36", PAPERS_NUMBER)])
def test_kept_figures_of_entropy_are_what_the_judge_says_of_their_table(name: str, of: Any) -> None:
    result = entropy_and_size.judged(of, FULL, table(name))
    assert result.checks == tuple(Check(**check) for check in kept(name)["checks"])


@pytest.mark.parametrize(("name", "level"), [("R16", 0.001), ("R19", 0.05), ("R35", 0.05)])
def test_kept_comparisons_with_rivals_are_what_their_table_says(name: str, level: float) -> None:
    checks = iter(kept(name)["checks"])
    for row in table(name).iter_rows(named=True):
        for other in ("TDS", "Median"):
            gap = Difference(row[f"above {other}"], row[f"p {other}"], row[f"p {other}"])
            check = next(checks)
            assert check["holds"] == gap.is_above(level)
            assert check["found"] == told_at(gap, level), check["claim"]


def test_kept_comparisons_with_metrics_are_what_their_table_says() -> None:
    checks = {check["claim"]: check for check in kept("R14")["checks"]}
    for row in table("R14").iter_rows(named=True):
        for metric, word in (("LM", "loss"), ("CM", "classification")):
            check = checks[f"k = {row['k']}: better than by the {word} metric"]
            ahead, opponent = row[metric] - row["TDS"], row[f"{metric} found"] < row[f"{metric} of TDS"]
            points, told = check["found"].split(" points ")
            assert float(points) == pytest.approx(abs(ahead), abs=0.011)
            assert told.startswith("lower, p = " if ahead > 0 else "higher, p = ")
            assert ("no opponent here" in told) == (not opponent)
            assert check["holds"] == (ahead > 0 and opponent)


def test_one_group_of_all_rows_is_the_release_without_groups() -> None:
    shown, (release,) = table("R22"), table("R19").filter((pl.col("learner") == "J48") & (pl.col("k") == 50)).to_dicts()
    assert shown["groups"][0] == 1
    for column in ("InfoGain", "Median", "InfoGain error", "Median error"):
        assert shown[column][0] == release[column]
    few = shown.filter(pl.col("groups") <= random_groups.SEVERAL)
    ahead = few["InfoGain"] - few["Median"]
    assert ahead.arg_min() == 0
    # However folds go together, no difference is further off than both errors added.
    assert (ahead > 5 * (few["InfoGain error"] + few["Median error"])).all()
    found = kept("R22")["checks"][1]
    assert found["holds"]
    assert found["found"] == (
        f"least ahead with 1 group: {Difference(release['above Median'], release['p Median'], release['p Median'])}"
    )


def test_the_page_of_trees_tells_the_numbers_of_the_experiments() -> None:
    text = (DOCS / "trees.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "TDR" in line]
    told = [line for line in lines if line[0].startswith("TDR ")]
    assert len(told) == 4
    for line, (name, column) in zip(told, [(n, c) for n in ("R26", "R27") for c in (0, 1)], strict=True):
        word = ("TDR", "TDR, training rows only")[column]
        assert [float(cell) for cell in line[1:10]] == table(name)[word].to_list()
        (points,) = re.findall(r"^([\d.]+) points", kept(name)["checks"][column]["found"])
        assert line[10].split()[0] == points
