# SPDX-License-Identifier: Apache-2.0
"""Runs that are killed at any moment: no half release, nothing of somebody else is lost, the earlier release stands until
the new one does, and the next run works and clears up.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from killing import NEW, NO_OLD, OLD, SCENARIOS, lay_out, runner, spark_run

import anonfit as af
from anonfit.runtime.files import workplace

Runner = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run() -> Iterator[Runner]:
    with runner() as found:
        yield found


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an earlier release, made once."""
    folder = tmp_path_factory.mktemp("killed") / "all"
    lay_out(folder)
    af.run(folder / f"{OLD}.toml", folder / "out")
    af.run(folder / f"{NEW}.toml", folder / "earlier")
    return folder


def _begin(laid_out: Path, place: Path, scenario: str) -> Path:
    folder = place / scenario
    shutil.copytree(laid_out, folder)
    if scenario in NO_OLD:
        shutil.rmtree(folder / "out")
        for path in folder.glob("out.internal.*"):
            path.unlink()
    return folder


def _k(folder: Path) -> int:
    """The k of the release that stands, which must be whole."""
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    assert (folder / "out").stat().st_mode & 0o777 == 0o755
    if "tree" in manifest["format"]:
        af.load_tree(folder / "out")
    else:
        af.load(folder / "out")
    return int(manifest["spec"]["privacy"]["k"])


def _check(folder: Path, scenario: str) -> None:
    """What must hold at once, and after the next run has begun."""
    internal = folder / "out.internal.json"
    stands = (folder / "out").exists()
    assert stands or scenario in (*NO_OLD, "fallback")
    if stands:
        _k(folder)
        if scenario not in ("copy", "fallback"):
            assert json.loads(internal.read_text())["format"] == "anonfit internal record"
    for path in folder.glob(".out.anonfit-[0-9]*"):
        assert path.stat().st_mode & 0o777 == 0o700
        assert not (path / "manifest.json").exists()
    with workplace(folder / "out"):
        pass
    if (folder / "out").exists():
        assert not internal.exists() or json.loads(internal.read_text())["spec"]["privacy"]["k"] == _k(folder)
        assert internal.exists() or (scenario == "copy" and _k(folder) == NEW)
    else:
        assert scenario in NO_OLD
        assert not internal.exists()
    assert (folder / ".out.anonfit-notes").read_text() == "of somebody else"
    assert [path.name for path in folder.glob(".out*")] == [".out.anonfit-notes"]


def _next_run_works(folder: Path, engine: str = "duckdb") -> None:
    settings = [f'engine.name="{engine}"', 'engine.spill="spill"', "engine.hand_over=100"]
    af.run(folder / f"{NEW}.toml", folder / "out", settings=settings, replace=True)
    assert _k(folder) == NEW
    assert {path.name for path in folder.iterdir() if "out" in path.name} == {
        "out", "out.internal.json", "out.internal.html", ".out.anonfit-notes"
    }  # fmt: skip
    assert list((folder / "spill").glob("*")) == []


def _some_in_every_run() -> list[Any]:
    often = ("new", "replace", "copy", "fallback")
    return [pytest.param(name, marks=() if name in often else pytest.mark.slow) for name in SCENARIOS]


@pytest.mark.sampled(13)
@pytest.mark.parametrize("scenario", _some_in_every_run())
def test_killed_at_an_event(run: Runner, laid_out: Path, tmp_path: Path, scenario: str) -> None:
    """The last events are those of giving names."""
    whole = run(scenario, _begin(laid_out, tmp_path / "whole", scenario))
    assert not whole["killed"]
    events = int(whole["said"])
    for at in [*random.Random(scenario).sample(range(1, events - 25), 1), *range(events - 24, events, 4)]:
        folder = _begin(laid_out, tmp_path / str(at), scenario)
        assert run(scenario, folder, at=at)["killed"]
        _check(folder, scenario)
    _next_run_works(folder)


def _killed_at_random(run: Runner, laid_out: Path, place: Path, scenario: str, times: int) -> None:
    whole = run(scenario, _begin(laid_out, place / "whole", scenario))
    events, seconds = int(whole["said"]), whole["seconds"]
    chance = random.Random(f"{scenario} {times}")
    for turn in range(times):
        folder = _begin(laid_out, place / str(turn), scenario)
        if turn % 2:
            run(scenario, folder, seconds=chance.uniform(0, seconds))
        else:
            run(scenario, folder, at=chance.randint(1, events))
        _check(folder, scenario)
        if turn % 10 == 0:
            _next_run_works(folder)
        shutil.rmtree(folder)


@pytest.mark.parametrize("scenario", ["apply", "duckdb"])
def test_killed_at_some_moments(run: Runner, laid_out: Path, tmp_path: Path, scenario: str) -> None:
    _killed_at_random(run, laid_out, tmp_path, scenario, 3)


@pytest.mark.slow
@pytest.mark.spark
def test_spark_is_killed(laid_out: Path, tmp_path: Path) -> None:
    _spark_is_killed(laid_out, tmp_path, 2)


@pytest.mark.slow
@pytest.mark.spark
def test_spark_is_killed_at_any_moment(laid_out: Path, tmp_path: Path) -> None:
    _spark_is_killed(laid_out, tmp_path, 15)


def _spark_is_killed(laid_out: Path, place: Path, times: int) -> None:
    """Only after some seconds: most of what it writes is written by others than the process that is killed."""
    seconds = spark_run(_begin(laid_out, place / "whole", "spark"))
    chance = random.Random(times)
    for turn in range(times):
        folder = _begin(laid_out, place / str(turn), "spark")
        spark_run(folder, chance.uniform(seconds / 4, seconds))
        _check(folder, "spark")
    _next_run_works(folder, "spark")


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_killed_at_any_moment(run: Runner, laid_out: Path, tmp_path: Path, scenario: str) -> None:
    _killed_at_random(run, laid_out, tmp_path, scenario, 45)
