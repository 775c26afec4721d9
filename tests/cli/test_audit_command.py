# SPDX-License-Identifier: Apache-2.0
"""`anonfit audit` hands on every demand of a spec, says what it found of each, and fails where one was not checked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import anonfit as af
from anonfit.cli.main import app
from waivers import WAIVED

SPEC = """version = 1
[data]
default_role = "insensitive"
[columns.age]
role = "quasi-identifier"
[columns.illness]
role = "sensitive"
diversity = "none"
reason = "made-up people"
[columns.stage]
role = "sensitive"
diversity = "none"
reason = "made-up people"
[columns.outcome]
role = "target"
[columns.score]
role = "target"
[privacy]
k = 4
"""
TREE = "illness,kind\nflu,cold-like\ncough,cold-like\ngout,other\nstone,other\n"
FILE = pl.DataFrame(
    {
        "age": ["[20, 40)"] * 4 + ["≥ 40"] * 4,
        "illness": ["flu", "flu", "flu", "cough", "gout", "gout", "stone", "flu"],
        "stage": ["I", "II", "III", "III"] * 2,
        "outcome": ["home"] * 4 + ["home", "died"] * 2,
        "score": [1, 2, 3, 1, 1, 2, 3, 4],
        "name": list("abcdefgh"),
    }
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    FILE.write_csv("file.csv")
    Path("tree.csv").write_text(TREE)
    return tmp_path


def asking(settings: str) -> str:
    """The spec with settings; of columns that these ask something of, nothing is waived."""
    spec = SPEC
    for column in re.findall(r'column = "(\w+)"', settings):
        role = f'[columns.{column}]\nrole = "sensitive"\n'
        spec = spec.replace(role + WAIVED, role)
    return spec + settings


def audited(settings: str, *words: str, file: str = "file.csv", columns: str = "") -> tuple[int, dict[str, Any], str]:
    """The exit status, the object of --json, and the text."""
    Path("spec.toml").write_text(asking(settings).replace("[privacy]\n", columns + "[privacy]\n"))
    run = CliRunner()
    plain = run.invoke(app, ["audit", file, "spec.toml", *words])
    exact = run.invoke(app, ["audit", file, "spec.toml", "--json", *words])
    assert plain.exit_code == exact.exit_code
    return exact.exit_code, json.loads(exact.stdout), plain.output


def demand(**settings: Any) -> str:
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    return f"[[privacy.diversity]]\n{lines}"


def verdicts(found: dict[str, Any]) -> dict[tuple[str, str], bool | None]:
    return {(one["column"], one["model"]): one["met"] for one in found["diversity"] if one["asked"] is not None}


@pytest.mark.parametrize(
    ("settings", "met", "figure"),
    [
        ({"column": "illness", "model": "distinct-l", "l": 2}, True, 2),
        ({"column": "illness", "model": "distinct-l", "l": 3}, False, 2),
        ({"column": "illness", "model": "alpha-k", "alpha": 0.75}, True, 0.75),
        ({"column": "illness", "model": "alpha-k", "alpha": 0.7}, False, 0.75),
        ({"column": "illness", "model": "beta-likeness", "beta": 1, "enhanced": True}, True, 1),
        ({"column": "illness", "model": "beta-likeness", "beta": 0.9}, False, 1),
        ({"column": "stage", "model": "t-closeness", "t": 0}, True, 0),
        ({"column": "illness", "model": "t-closeness", "t": 0.3}, False, 0.375),
    ],
    ids=str,
)
def test_demands_of_a_spec_are_measured(folder: Path, settings: dict[str, Any], met: bool, figure: float) -> None:
    status, found, text = audited(demand(**settings))
    column, model = settings["column"], settings["model"]
    assert verdicts(found) == {(column, model): met}
    (measured,) = [one for one in found["diversity"] if one["asked"] is not None]
    assert measured["found"] == pytest.approx(figure)
    assert (status, found["passed"]) == ((0, True) if met else (1, False))
    line = next(line for line in text.splitlines() if line.startswith(column) and model in line)
    assert line.split() == [column, model, f"{figure:.4g}", f"{measured['asked']:.4g}", "met" if met else "missed"]
    told = [line for line in text.splitlines() if line.startswith("  missed:")]
    assert len(told) == (0 if met else 1)
    if not met:
        assert f"{column}: {model}: " in told[0]
        assert f"Found {figure:.4g}, asked {measured['asked']:.4g}." in told[0]


def test_what_a_demand_is_measured_on_is_handed_on(folder: Path) -> None:
    closeness = {"column": "illness", "model": "t-closeness", "t": 0.4}
    settings = '[columns.illness]\nrole = "sensitive"\ntaxonomy = "tree.csv"\n'
    spec = SPEC.replace(f'[columns.illness]\nrole = "sensitive"\n{WAIVED}', settings)
    Path("spec.toml").write_text(spec + demand(**closeness))
    found = json.loads(CliRunner().invoke(app, ["audit", "file.csv", "spec.toml", "--json"]).stdout)
    (one,) = [one for one in found["diversity"] if one["asked"] is not None]
    assert one["settings"]["distance"] == "hierarchical"
    # from (3, 1, 0, 0) / 4 to (4, 1, 2, 1) / 8: 3/8 go to the other kind; they come from flu (2/8) and cough (1/8)
    assert one["found"] == pytest.approx(3 / 8)
    assert one["met"] is True


@pytest.mark.parametrize("targets", ["", "[workload]\ntargets = []\n", '[workload]\ntargets = ["score"]\n'])
def test_a_cap_of_a_spec_is_measured_of_every_target(folder: Path, targets: str) -> None:
    settings = targets.join(["max_confidence = 0.8\n", ""])
    status, found, text = audited(settings)
    assert verdicts(found) == {("outcome", "max_confidence"): False, ("score", "max_confidence"): True}
    assert status == 1
    assert "missed: outcome: max_confidence:" in text
    status, found, _ = audited("max_confidence = 1.0\n" + targets)
    assert (status, verdicts(found)) == (0, {})


def test_a_target_that_is_a_number_is_not_checked_and_fails(folder: Path) -> None:
    FILE.with_columns(score=pl.col("score") + 0.5, outcome=pl.Series(["a", "b"] * 4)).write_csv("numbers.csv")
    status, found, text = audited("max_confidence = 0.9\n", file="numbers.csv")
    assert (status, found["passed"]) == (1, False)
    assert verdicts(found) == {("outcome", "max_confidence"): True, ("score", "max_confidence"): None}
    assert "Asked and not checked: max_confidence 0.9 of score." in text
    assert "not checked: score: max_confidence: the target holds numbers or dates" in text
    assert "--source" not in text


def test_a_spec_that_asks_of_a_column_the_file_has_not_is_wrong(folder: Path) -> None:
    FILE.drop("illness").write_csv("less.csv")
    Path("spec.toml").write_text(asking(demand(column="illness", model="distinct-l", l=2)))
    assert CliRunner().invoke(app, ["audit", "less.csv", "spec.toml"]).exit_code != 0


# --- persons with several rows --------------------------------------------------------------------------------------


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    source = pl.DataFrame(
        {"who": [0, 0, 1, 2, 3, 3, 4, 5], "age": [20, 20, 21, 22, 50, 50, 51, 52], "illness": list("abababab")}
    )
    source.write_parquet("source.parquet")
    words: dict[str, Any] = {"sensitive": {"illness": {"model": "alpha-k", "alpha": 0.6}}, "entity": "who", "k": 3}
    af.anonymize(source, quasi_identifiers=["age"], **words).save("out")
    return Path("out")


def test_persons_of_a_release_are_not_checked_without_the_source(release: Path) -> None:
    run = CliRunner()
    alone = run.invoke(app, ["audit", str(release)])
    assert alone.exit_code == 1
    assert (
        "(k = 3 of age (persons told apart by 'who'); alpha-k (alpha = 0.6) of illness) was not checked in full"
        in alone.output
    )
    assert "not checked: k: give --source DATA; persons are told apart by their entities" in alone.output
    assert "not checked: illness: alpha-k: give --source DATA" in alone.output
    sizes = next(line for line in alone.stdout.splitlines() if line.strip().startswith("smallest group"))
    assert sizes.endswith("rows")
    assert "in rows:" in alone.output
    exact = json.loads(run.invoke(app, ["audit", str(release), "--json"]).stdout)
    assert (exact["passed"], exact["k"], exact["counted"]) == (False, None, "rows in place of persons")


def test_persons_of_a_release_are_counted_with_the_source(release: Path) -> None:
    found = CliRunner().invoke(app, ["audit", str(release), "--source", "source.parquet"])
    assert found.exit_code == 0
    assert (
        "The release holds what it claims: k = 3 of age (persons told apart by 'who'); alpha-k (alpha = 0.6) of illness."
        in found.stdout
    )
    assert "k = 3" in found.output
    assert "in persons:" in found.output


def test_the_page_of_an_audit_has_what_the_screen_has(tmp_path: Path) -> None:
    FILE.write_csv(tmp_path / "<b>.csv")
    page = tmp_path / "audit.html"
    words = ["audit", str(tmp_path / "<b>.csv"), "--quasi-identifiers", "age", "--sensitive", "illness", "--k", "5"]
    done = CliRunner().invoke(app, [*words, "--html", str(page)])
    assert page.stat().st_mode & 0o777 == 0o600  # it is for the owner
    assert done.exit_code == 1
    text = page.read_text(encoding="utf-8")
    for told in ("k = 5 of age", "What &lt;b&gt;.csv protects", "is missed", "Do not publish", "EMA 0070"):
        assert told in text
    assert not re.search(r"<b>|https?:|src=|@import|url\(|<script", text)
    met = CliRunner().invoke(app, [*words[:-1], "1", "--html", str(page), "--replace"])
    assert met.exit_code == 0
    missed = r'<p class="headline fair">What was asked or claimed holds; \d of 3 usual thresholds are missed\.</p>'
    assert re.search(missed, page.read_text(encoding="utf-8")), "a threshold that nobody asked for is not only green"
    again = CliRunner().invoke(app, [*words, "--html", str(page)])
    assert "already there" in str(again.exception)
    assert CliRunner().invoke(app, [*words, "--html", str(page), "--replace"]).exit_code == 1
