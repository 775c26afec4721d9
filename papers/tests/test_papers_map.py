# SPDX-License-Identifier: Apache-2.0
"""docs/papers.md: every file it leads to is there, every section, figure and table of the papers and every experiment
is led to; docs/reproduction.md says what the experiments say.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import polars as pl
import pytest

from anonfit.criteria.objectives import CriterionName
from anonfit.evaluation.learners import LEARNERS
from anonfit.evaluation.methods import METHODS
from anonfit.spec.model import Candidates, Regions, WeightRule
from anonfit_papers.reproduction.catalogue import EXPERIMENTS
from anonfit_papers.reproduction.figures import Figure
from anonfit_papers.reproduction.frame import Check, Experiment, Result
from anonfit_papers.reproduction.page import page_text

ROOT = Path(__file__).resolve().parents[2]
MAP = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


PARTS = {
    "Workload-Aware": (
        "1 1.1 1.2 2 2.1 2.2 3 3.1 3.2 3.3 3.4 4 4.1 4.2 4.3 4.4 4.5 4.6 4.7 5 6",
        [*range(1, 9), *(f"9 {letter}" for letter in "abcdefghi"), 10, 11],
        [],
    ),
    "Anonymizing Classification": (
        "1 2 3 3.1 3.1.1 3.1.2 3.1.3 3.2 3.3 4 4.1 4.2 4.3 4.4 4.4.1 4.4.2 4.5 5 5.1 5.1.1 5.1.2 5.1.3 5.2 5.3 5.4 6",
        [*range(1, 6), "6 a", "6 b", *range(7, 12)],
        range(1, 4),
    ),
    "Report on weighted": (
        "1 1.1 1.2 1.3 1.4 2 3 3.1 3.2 4 4.1 4.2 4.3 5 5.1 5.2 6",
        [1, "X-1", "X-2"],
        [1],
    ),
    "k-Anonymous Decision": ("1 2 3 3.1 3.2 3.3 4 4.1 4.2 5", range(1, 7), [1]),
}
"""Of each paper by the beginning of its title: sections, figures and tables."""


SETTINGS = {
    "criterion": get_args(CriterionName),
    "candidates": get_args(Candidates),
    "weight_rule": get_args(WeightRule),
    "regions": get_args(Regions),
}
"""What settings that the map names may be."""


def rows(text: str = MAP) -> list[list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [row for row in cells if row[0] not in ("part", "---")]


def test_every_file_that_the_map_names_is_there() -> None:
    for part, code, tests, _ in rows():
        for name in re.findall(r"`([\w:/.]+(?:\.py|\.toml|/))`", code):
            place = f"papers/src/anonfit_papers/{name[7:]}" if name.startswith("papers:") else f"src/anonfit/{name}"
            assert (ROOT / place).exists(), f"{part}: {place}"
        for name in re.findall(r"`([\w/.]+)`", tests):
            place = name if name.startswith("papers/") else f"tests/{name}"
            assert (ROOT / place).exists(), f"{part}: {place}"


def test_every_setting_and_page_that_the_map_names_is_there() -> None:
    for part, code, _, _ in rows():
        for name, value in re.findall(r'`(?:\w+\.)?(\w+) = "(\w+)"`', code):
            assert value in SETTINGS[name], f"{part}: {name} = {value}"
        for names in re.findall(r"`evaluate --(?:methods|learners) ([\w,]+)`", code):
            assert set(names.split(",")) <= {*METHODS, *LEARNERS}, f"{part}: {names}"
        for page in re.findall(r"\]\(([\w-]+\.md)\)", code):
            assert (ROOT / "docs" / page).is_file(), f"{part}: {page}"


def test_what_the_papers_need_alone_is_in_a_test_that_the_map_names() -> None:
    for part, code, tests, _ in rows():
        texts = [(ROOT / name).read_text(encoding="utf-8") for name in re.findall(r"`(papers/[\w/.]+)`", tests)]
        for name in re.findall(r"`papers:(?:reproduction/)?(\w+)\.py`", code):
            assert any(re.search(rf"\b{name}\b", text) for text in texts), f"{part}: {name}"


def test_every_experiment_is_on_the_map_and_nothing_else() -> None:
    named: set[str] = set()
    for row in rows():
        for first, last in re.findall(r"\bR(\d+)(?:–R(\d+))?", row[3]):
            named |= {f"R{number}" for number in range(int(first), int(last or first) + 1)}
    assert named == {experiment.name for experiment in EXPERIMENTS}


def test_what_is_nowhere_has_a_reason() -> None:
    for part, code, _, row in rows():
        assert code != "–" or len(row) > 3, part


def named(word: str, parts: list[str]) -> set[str]:
    """What a word such as figure is followed by: `figures 3 and 4`, `figure 9 a–c`, `figures X-1, X-2`."""
    found: set[str] = set()
    one = r"(?:X-\d|\d+(?: [a-i](?:–[a-i])?\b)?)"
    for part in parts:
        for run in re.findall(rf"\b{word}s? ({one}(?:(?:, | and |–){one})*)", part):
            for first, last in re.findall(r"(\d+)–(\d+)", run):
                found |= {str(number) for number in range(int(first), int(last) + 1)}
            for number, letter, last in re.findall(r"(X-\d|\d+)(?: ([a-i])(?:–([a-i]))?\b)?", run):
                letters = [chr(code) for code in range(ord(letter), ord(last or letter) + 1)] if letter else []
                found |= {f"{number} {one}" for one in letters} or {number}
    return found


@pytest.mark.parametrize("title", PARTS)
def test_every_section_figure_and_table_of_a_paper_is_on_the_map(title: str) -> None:
    (text,) = (part for part in MAP.split("\n## ") if part.startswith(title))
    parts = [row[0] for row in rows(text)]
    sections, figures, tables = PARTS[title]
    for word, wanted in (("figure", figures), ("table", tables)):
        missing = {str(one) for one in wanted} - named(word, parts)
        assert not missing, f"{word}s {sorted(missing)}"
    begun = {number for part in parts for number in re.findall(r"^[\d., and–]+", part)[:1]}
    told: set[str] = set()
    for run in begun:
        ends = re.findall(r"\d+(?:\.\d+)*", run)
        told |= set(ends)
        for first, last in re.findall(r"((?:\d+\.)*\d+)–((?:\d+\.)*\d+)", run):
            stem = first.rsplit(".", 1)[0] + "." if "." in first else ""
            numbers = range(int(first.rsplit(".", 1)[-1]), int(last.rsplit(".", 1)[-1]) + 1)
            told |= {f"{stem}{number}" for number in numbers}
    missing = set(sections.split()) - told
    assert not missing, f"sections {sorted(missing)}"


def test_the_page_is_what_the_command_writes() -> None:
    docs = ROOT / "docs"
    assert page_text(docs / "figures", quick=False) == (docs / "reproduction.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_the_verdict_of_a_row_is_that_of_its_checks(experiment: Experiment) -> None:
    kept = json.loads((ROOT / "docs" / "figures" / f"{experiment.name}.json").read_text(encoding="utf-8"))
    result = Result(pl.DataFrame(), Figure("", ()), tuple(Check(**check) for check in kept["checks"]))
    assert (kept["verdict"], kept["why"]) == (str(result.verdict), result.why)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_the_page_says_what_an_experiment_says(experiment: Experiment) -> None:
    kept = json.loads((ROOT / "docs" / "figures" / f"{experiment.name}.json").read_text(encoding="utf-8"))
    for word in ("title", "paper", "claim", "band", "reading", "shares", "learners", "setting"):
        assert kept[word] == getattr(experiment, word), word
    assert kept["extent"] == "full"


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_the_page_shows_every_check_met_or_missed(experiment: Experiment) -> None:
    figures = ROOT / "docs" / "figures"
    checks = json.loads((figures / f"{experiment.name}.json").read_text(encoding="utf-8"))["checks"]
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    (section,) = (part for part in page.split("\n## ") if part.startswith(f"{experiment.name} "))
    met = section.partition("\nWhat holds:\n")[2]
    for check in checks:
        weak = " (weak)" * (check["holds"] and check["weak"])
        assert f"- {check['claim']}{weak}: {check['found']}\n" in (met if check["holds"] else section)
