# SPDX-License-Identifier: Apache-2.0
"""docs/papers.md: every file it leads to is there, and every experiment is led to."""

from __future__ import annotations

import re
from pathlib import Path

from anonfit_papers.reproduction.catalogue import EXPERIMENTS

ROOT = Path(__file__).resolve().parents[2]
MAP = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


def rows() -> list[list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in MAP.splitlines() if line[:1] == "|"]
    return [row for row in cells if row[0] not in ("part", "---")]


def test_every_file_that_the_map_names_is_there() -> None:
    for part, code, tests, _ in rows():
        for name in re.findall(r"`([\w:/.]+(?:\.py|/))`", code):
            place = f"papers/src/anonfit_papers/{name[7:]}" if name.startswith("papers:") else f"src/anonfit/{name}"
            assert (ROOT / place).exists(), f"{part}: {place}"
        for name in re.findall(r"`([\w/.]+)`", tests):
            place = name if name.startswith("papers/") else f"tests/{name}"
            assert (ROOT / place).exists(), f"{part}: {place}"


def test_every_experiment_is_on_the_map_and_nothing_else() -> None:
    named: set[str] = set()
    for row in rows():
        for first, last in re.findall(r"\bR(\d+)(?:–R(\d+))?", row[3]):
            named |= {f"R{number}" for number in range(int(first), int(last or first) + 1)}
    assert named == {experiment.name for experiment in EXPERIMENTS}


def test_what_is_nowhere_has_a_reason() -> None:
    for part, code, _, row in rows():
        assert code != "–" or len(row) > 3, part
