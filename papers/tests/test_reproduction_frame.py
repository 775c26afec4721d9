# SPDX-License-Identifier: Apache-2.0
"""The frame of the experiments: parts that are kept, verdicts, what is written, and the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anonfit.errors import DataError, MissingPackage, RequestError
from anonfit.evaluation import weka
from anonfit_papers.datasets import CMC
from anonfit_papers.reproduction import figures, page, running
from anonfit_papers.reproduction.catalogue import EXPERIMENTS
from anonfit_papers.reproduction.figures import Figure, Line, Panel, draw
from anonfit_papers.reproduction.frame import OWN, Check, Experiment, Measured, Part, Result, Settings, Verdict
from anonfit_papers.reproduction.page import write_page
from anonfit_papers.reproduction.running import chosen, in_words, plan, run
from anonfit_papers.reproduction.store import Store
from anonfit_papers.reproduction.writing import write_result, write_summary

QUICK = Settings(quick=True, folder=None)
CLAIMS = (
    {f"C{number}" for number in range(1, 11)}
    | {f"T{number}" for number in range(1, 12)}
    | {"W1", "W2", "W3"}
    | {f"K{number}" for number in range(1, 6)}
    | {OWN}
)


def square(number: int, seen: list[int]) -> Measured:
    seen.append(number)
    return {"square": number * number, "twice": (number, number)}


def toy(
    seen: list[int], name: str = "R1", *, falls: bool = False, judged: Callable[[], None] = lambda: None
) -> Experiment:
    """An experiment that squares numbers."""

    def planned(settings: Settings) -> Iterator[Part]:
        for number in range(settings.choose(3, 5)):
            yield Part({"of": "toy", "number": number}, 1.0, partial(square, number, seen))

    def judge(_: Settings, gave: Sequence[Measured]) -> Result:
        judged()
        numbers = [one["square"] for one in gave]
        panel = Panel("squares", "number", "square", (Line("InfoGain", range(len(numbers)), numbers),))
        check = Check("squares grow", not falls, not falls, f"up to {numbers[-1]}")
        table = pl.DataFrame(
            {
                "number": list(range(len(numbers))),
                "square": numbers,
                "square error": [0.5] * len(numbers),
                "query error": [1.5] * len(numbers),
            }
        )
        return Result(table, Figure("Squares", (panel,)), (check,), ("A note.",))

    return Experiment(
        name,
        "Squares of numbers",
        "nowhere",
        ("C1",),
        "Squares grow.",
        "They do.",
        "As it is.",
        "None.",
        "Nobody.",
        planned,
        judge,
    )


def check(*, holds: bool, within: bool) -> Check:
    return Check(f"{holds} {within}", holds, within, "found")


@pytest.mark.parametrize(
    ("checks", "verdict", "why"),
    [
        ([check(holds=True, within=True)], Verdict.HOLDS, ""),
        ([replace(check(holds=True, within=True), weak=True)], Verdict.WEAKLY, "True True: found"),
        (
            [check(holds=True, within=True), check(holds=False, within=True)],
            Verdict.WITHIN_BAND,
            "False True: found",
        ),
        (
            [check(holds=False, within=True), check(holds=False, within=False)],
            Verdict.FAILS,
            "False False: found",
        ),
    ],
)
def test_one_check_that_fails_decides(checks: list[Check], verdict: Verdict, why: str) -> None:
    result = Result(pl.DataFrame(), Figure("", ()), tuple(checks))
    assert (result.verdict, result.why) == (verdict, why)


def test_parts_are_kept_by_their_settings(tmp_path: Path) -> None:
    store = Store(tmp_path / "parts")
    key = {"of": "toy", "ks": (2, 5)}
    assert store.get(key) is None
    store.put(key, {"found": [1.5, "text"]})
    assert store.get(key) == store.get({"ks": [2, 5], "of": "toy"}) == {"found": [1.5, "text"]}
    assert store.get({"of": "toy", "ks": (2, 6)}) is None
    assert len(list((tmp_path / "parts").iterdir())) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key": {"of": "other"}, "gave": {}}', '{"key": {"of": "toy"}}'])
def test_a_part_that_cannot_be_read_is_not_there(tmp_path: Path, text: str) -> None:
    store = Store(tmp_path)
    store.put({"of": "toy"}, {"found": 1})
    next(tmp_path.iterdir()).write_text(text)
    assert store.get({"of": "toy"}) is None


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    seen: list[int] = []

    def stop(name: str) -> None:
        if "part 3" in name:
            raise KeyboardInterrupt

    experiment = toy(seen)
    with pytest.raises(KeyboardInterrupt):
        list(run(plan([experiment], QUICK, tmp_path), stop))
    assert seen == [0, 1]
    again = plan([experiment], QUICK, tmp_path)
    assert [part.key["number"] for part in again.missing] == [2]
    assert again.seconds == 1.0
    (found,) = run(again)
    assert seen == [0, 1, 2]
    assert found[1].table["square"].to_list() == [0, 1, 4]


def test_parts_of_several_experiments_are_measured_once(tmp_path: Path) -> None:
    seen: list[int] = []
    planned = plan([toy(seen), toy(seen, "R2")], QUICK, tmp_path)
    assert (len(planned.missing), planned.seconds) == (3, 3.0)
    assert [experiment.name for experiment, _ in run(planned)] == ["R1", "R2"]
    assert seen == [0, 1, 2]


def test_a_full_run_measures_more(tmp_path: Path) -> None:
    seen: list[int] = []
    list(run(plan([toy(seen)], QUICK, tmp_path)))
    list(run(plan([toy(seen)], Settings(quick=False, folder=None), tmp_path)))
    assert seen == [0, 1, 2, 3, 4]


def test_experiments_are_chosen_by_name() -> None:
    assert [one.name for one in chosen(["r18", "R16", "R18"])] == ["R18", "R16"]
    assert chosen(["R16", "ALL"]) == EXPERIMENTS
    with pytest.raises(RequestError, match=r"no experiment 'R166': did you mean 'R16'\?"):
        chosen(["R166"])
    with pytest.raises(RequestError, match="valid: all, R1, R3, R4"):
        chosen(["figure"])


def test_missing_files_are_told_before_anything_is_measured(tmp_path: Path) -> None:
    (experiment,) = chosen(["R21"])
    with pytest.raises(DataError, match="R21 needs a data folder, and there is none"):
        plan([experiment], QUICK, tmp_path)
    with pytest.raises(DataError, match=r"R21 needs uci/cmc.data.*--fetch"):
        plan([experiment], Settings(quick=True, folder=tmp_path), tmp_path)
    assert experiment.sources(tmp_path) == CMC  # type: ignore[misc]


def test_all_claims_have_an_experiment_and_all_names_differ() -> None:
    assert {claim for one in EXPERIMENTS for claim in one.claims} == CLAIMS
    assert len({one.name for one in EXPERIMENTS}) == len(EXPERIMENTS)
    synthetic = [one for one in EXPERIMENTS if one.sources is None]
    for experiment in synthetic:
        full, quick = (list(experiment.plan(Settings(quick=quick, folder=None))) for quick in (False, True))
        assert len(full) >= len(quick) > 0
        assert len({json.dumps(dict(part.key), sort_keys=True) for part in full}) == len(full)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "about 1 s"), (89, "about 89 s"), (150, "about 2 min"), (9000, "about 2.5 h")]
)
def test_times_are_said_in_words(seconds: float, text: str) -> None:
    assert in_words(seconds) == text


def test_the_estimate_outlives_a_slow_first_part() -> None:
    clock = running._Clock(600.0)
    clock.done(1.0, 31.0)
    assert clock.left() == "about 15 min"
    clock.done(299.0, 569.0)
    assert clock.left() == "about 9 min"


def test_figure_table_and_verdict_are_written(tmp_path: Path) -> None:
    ((experiment, result),) = run(plan([toy([], falls=True)], QUICK, tmp_path))
    written = write_result(experiment, result, QUICK, tmp_path)
    folder = tmp_path / "quick" / "R1"
    assert (folder / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (folder / "figure.svg").read_text()
    assert pl.read_csv(folder / "table.csv").equals(result.table)
    assert json.loads((folder / "verdict.json").read_text()) == written
    assert json.loads((folder / "measured.json").read_text()) == list(result.measured) != []
    assert written["verdict"] == "does not hold"
    assert written["why"] == "squares grow: up to 4"
    summary = write_summary([written], tmp_path, quick=True)
    assert pl.read_csv(summary).rows() == [
        ("R1", "C1", "Squares of numbers", "does not hold", "0 of 1", "squares grow: up to 4")
    ]
    assert json.loads(summary.with_suffix(".json").read_text()) == [written]


def test_what_would_stop_a_run_is_told_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError, match="file/parts cannot be made a folder .*--out"):
        plan([toy([])], QUICK, tmp_path / "file")
    monkeypatch.setattr(figures, "find_spec", lambda _: None)
    with pytest.raises(MissingPackage, match=r"matplotlib: install it with pip install 'anonfit\[plot\]'"):
        plan([toy([])], QUICK, tmp_path)


def test_what_lacks_weka_is_told_at_once_of_all_experiments_that_learn_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = chosen(["R1", "R5", "R16"])
    monkeypatch.setattr(weka, "find_spec", lambda _: None)
    with pytest.raises(MissingPackage, match=r"^Weka, with which R5, R16 learn, needs .*anonfit\[weka\]"):
        plan(asked, QUICK, tmp_path)
    assert plan([toy([])], QUICK, tmp_path).missing
    assert not list((tmp_path / "parts").iterdir())


def test_what_lacks_java_is_told_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jpype: Any = pytest.importorskip("jpype", reason="Weka's learners need python-weka-wrapper3")

    def nowhere() -> str:
        raise jpype.JVMNotFoundException("none")

    monkeypatch.setattr(jpype, "isJVMStarted", lambda: False)
    monkeypatch.setattr(jpype, "getDefaultJVMPath", nowhere)
    with pytest.raises(RequestError, match="^Weka, with which R16 learn, needs Java, and none was found"):
        plan(chosen(["R16"]), QUICK, tmp_path)


def test_the_same_numbers_give_the_same_files(tmp_path: Path) -> None:
    lines = (Line("InfoGain", (1, 10), (1.0, 2.0), (0.1, 0.1)), Line("another", (1, 10), (2.0, 1.0)))
    figure = Figure(
        "All kinds",
        (
            Panel("lines", "k", "y", lines, log_x=True),
            Panel("bars", "k", "y", tuple(Line(one.name, (0, 1), one.y) for one in lines), "bars", ("a", "b")),
            Panel("points", "k", "y", lines, "points", log_x=True),
            Panel(
                "matrix", "k", "y", (Line("b", (0, 1), (1.0, 2.0)), Line("a", (0,), (3.0, 4.0))), "matrix", ("A", "B")
            ),
            Panel("fifth", "k", "y", lines),
        ),
    )
    first, second = (draw(figure, tmp_path, name) for name in ("first", "second"))
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_the_page_shows_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiments = (toy([]), toy([], "R2", falls=True))
    monkeypatch.setattr(page, "EXPERIMENTS", experiments)
    with pytest.raises(RequestError, match="no results to show"):
        write_page(tmp_path, tmp_path / "docs", quick=True)
    for experiment, result in run(plan(experiments, QUICK, tmp_path)):
        write_result(experiment, result, QUICK, tmp_path)
    text = write_page(tmp_path, tmp_path / "docs", quick=True).read_text()
    assert "`anonfit reproduce all --docs docs`, here with `--quick`" in text
    assert "| [R2](#r2-squares-of-numbers) | C1 | Squares of numbers | **does not hold** | 0 of 1 |" in text
    assert "| number | square | query error |\n| --- | --- | --- |\n| 0 | 0 ± 0.5 | 1.5 |" in text
    assert "- squares grow: up to 4" in text
    assert {path.name for path in (tmp_path / "docs" / "figures").iterdir()} == {
        "measured",
        *(f"{name}.{ending}" for name in ("R1", "R2") for ending in ("csv", "json", "png", "svg")),
    }
    assert json.loads((tmp_path / "docs" / "figures" / "measured" / "R2.json").read_text())[1]["square"] == 1
    for line in ("- Reading: As it is.", "- Classes: None.", "- Learners: Nobody."):
        assert text.count(line) == 2
    with pytest.raises(RequestError, match="full has no results"):
        write_page(tmp_path, tmp_path / "docs", quick=False)


def test_the_page_keeps_what_was_not_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiments = (toy([]), toy([], "R2", falls=True))
    monkeypatch.setattr(page, "EXPERIMENTS", experiments)
    for experiment, result in run(plan(experiments, QUICK, tmp_path / "first")):
        write_result(experiment, result, QUICK, tmp_path / "first")
    before = write_page(tmp_path / "first", tmp_path / "docs", quick=True).read_text()
    again = (toy([], "R2"),)
    for experiment, result in run(plan(again, QUICK, tmp_path / "second")):
        write_result(experiment, result, QUICK, tmp_path / "second")
    after = write_page(tmp_path / "second", tmp_path / "docs", quick=True).read_text()
    assert before.split("## R2")[0].split("## R1")[1] == after.split("## R2")[0].split("## R1")[1]
    assert "| [R2](#r2-squares-of-numbers) | C1 | Squares of numbers | **holds** | 1 of 1 |" in after


def test_the_page_tells_of_results_without_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "EXPERIMENTS", (toy([]),))
    ((experiment, result),) = run(plan([toy([])], QUICK, tmp_path))
    write_result(experiment, result, QUICK, tmp_path)
    assert "versions" not in write_page(tmp_path, tmp_path / "docs", quick=True).read_text()
    verdict = tmp_path / "quick" / "R1" / "verdict.json"
    verdict.write_text(json.dumps({**json.loads(verdict.read_text()), "versions": {}}))
    assert "before the versions of packages" in write_page(tmp_path, tmp_path / "docs", quick=True).read_text()


def test_every_experiment_names_its_reading_the_shares_of_classes_and_who_learns() -> None:
    for experiment in EXPERIMENTS:
        for text in (experiment.reading, experiment.shares, experiment.learners, experiment.setting):
            assert text.endswith("."), f"{experiment.name}: {text!r}"
        if "%" not in experiment.shares and "of 6" not in experiment.shares:
            assert experiment.shares.startswith(("No class", "A number")), experiment.name
