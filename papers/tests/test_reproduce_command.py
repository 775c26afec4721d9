# SPDX-License-Identifier: Apache-2.0
"""`anonfit reproduce` as a person and as a script use it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anonfit_papers import command
from anonfit_papers.datasets import FETCHED, is_there
from anonfit_papers.purpose_tables import BESIDE, VARIABLE, data_folder
from commands import command as here
from commands import command_apart


def anonfit(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    words = ("reproduce", *words)
    return command_apart(*words, folder=folder, **environment) if environment else here(*words, folder=folder)


def test_without_a_name_the_experiments_are_listed(tmp_path: Path) -> None:
    found = anonfit(folder=tmp_path)
    assert found.returncode == 0
    assert "R16" in found.stdout
    assert "anonfit reproduce all --quick" in found.stdout
    listed = json.loads(anonfit("--json", folder=tmp_path).stdout)["experiments"]
    assert [one["name"] for one in listed][:3] == ["R1", "R3", "R4"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["R160"], "There is no experiment 'R160': did you mean 'R16'?"),
        (["R21", "--data", "nowhere"], "The data folder nowhere is not there"),
        (["R21", "--data", "."], "R21 needs uci/cmc.data, which is not in the data folder ."),
        (["R21", "--fetch", "--archive", "ftp://x"], "must begin with https:// or http://"),
        (["R18", "--quick", "--out", "file"], "file/parts cannot be made a folder"),
        (["R18", "--quick", "--docs", "file"], "file/figures cannot be made a folder"),
    ],
)
def test_a_wrong_request_is_one_sentence(words: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = anonfit(*words, folder=tmp_path)
    assert found.returncode == 2
    assert told in found.stderr
    assert "Traceback" not in found.stderr


def test_a_variable_that_names_no_folder_is_told(tmp_path: Path) -> None:
    found = anonfit("R21", folder=tmp_path, ANONFIT_DATA="nowhere")
    assert found.returncode == 2
    assert "The data folder nowhere is not there" in found.stderr


def test_an_experiment_is_run_kept_and_shown(tmp_path: Path) -> None:
    words = ("r18", "--quick", "--out", "out", "--docs", "docs")
    first = anonfit(*words, folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "1 experiment: 3 parts to measure, about 2 s; 0 kept in out/parts" in first.stderr
    assert "Imprecision of a selection" in first.stdout
    folder = tmp_path / "out" / "quick" / "R18"
    assert sorted(path.name for path in folder.iterdir()) == [
        "figure.png",
        "figure.svg",
        "measured.json",
        "table.csv",
        "verdict.json",
    ]
    assert pl.read_csv(folder / "table.csv")["Selection"].to_list()[0] == 0
    assert "figures/R18.png" in (tmp_path / "docs" / "reproduction.md").read_text()

    again = anonfit(*words, "--json", folder=tmp_path)
    found = json.loads(again.stdout)
    assert found["experiments"][0]["verdict"] == "holds"
    assert found["page"] == "docs/reproduction.md"
    assert again.stderr == ""
    told = anonfit("R18", "--quick", "--out", "out", folder=tmp_path).stderr
    assert "nothing to measure, all parts are kept; 3 kept" in told


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The address of a server of this machine that gives out a folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_fetched_file_that_is_not_the_known_one_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "archive" / "adult").mkdir(parents=True)
    (tmp_path / "archive" / "adult" / "adult.data").write_text("not Adult")
    with served(tmp_path / "archive") as address:
        found = anonfit("R21", "--quick", "--fetch", "--archive", address, "--data", "data", folder=tmp_path)
    assert found.returncode == 2
    assert "gave 9 bytes that are not the known file" in found.stderr
    assert not (tmp_path / "data").exists()


def test_files_are_fetched_into_the_folder_of_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {source: tmp_path / "archive" / str(source.address) for source in FETCHED}
    folder = data_folder() if BESIDE.is_dir() or os.environ.get(VARIABLE) else tmp_path
    for source, path in sources.items():
        if not (folder / source.path).is_file():
            pytest.skip(f"{source.path} is not in the data folder {folder}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((folder / source.path).read_bytes())
    monkeypatch.delenv(VARIABLE, raising=False)
    with served(tmp_path / "archive") as address:
        found = command._folder(None, tmp_path / "out", fetched=True, archive=address, stage=lambda _: None)
    assert found == tmp_path / "out" / "data"
    assert is_there(found, FETCHED)
