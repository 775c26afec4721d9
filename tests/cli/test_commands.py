# SPDX-License-Identifier: Apache-2.0
"""The command line as a person and as a script use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonfit as af
from commands import PROGRAM, command, command_apart
from waivers import WAIVED

SPEC = """version = 1
[data]
source = "people.csv"
[columns.age]
role = "quasi-identifier"
[columns.sex]
role = "quasi-identifier"
[columns.illness]
role = "sensitive"
diversity = "none"
reason = "made-up people"
[privacy]
k = 5
"""


ASKING = SPEC.replace(WAIVED, "")


def anonfit(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return command_apart(*words, folder=folder, **environment) if environment else command(*words, folder=folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people = pl.DataFrame(
        {
            "age": [20 + index % 40 for index in range(200)],
            "sex": ["f" if index % 3 else "m" for index in range(200)],
            "illness": ["flu" if index % 4 else "cold" for index in range(200)],
        }
    )
    people.write_csv(tmp_path / "people.csv")
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def found(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one object on standard output."""
    value = json.loads(result.stdout)
    assert isinstance(value, dict)
    return value


def test_run_audit_apply_and_audit_again(folder: Path) -> None:
    result = anonfit("run", "spec.toml", "--out", "release", "--json", folder=folder)
    assert result.returncode == 0, result.stderr
    assert found(result)["smallest_group"] >= 5
    assert result.stderr == ""
    result = anonfit("audit", "release", "--source", "people.csv", "--json", folder=folder)
    assert result.returncode == 0, result.stderr
    assert found(result)["passed"] is True
    result = anonfit("apply", "release", "people.csv", "--out", "second", "--json", folder=folder)
    assert result.returncode == 0, result.stderr
    assert found(result)["rows"]["withheld"] == 0
    assert anonfit("audit", "second", folder=folder).returncode == 0


def test_results_go_to_standard_output_and_progress_to_standard_error(folder: Path) -> None:
    result = anonfit("run", "spec.toml", "--out", "release", folder=folder)
    assert result.returncode == 0
    assert "Auditing …" in result.stderr
    assert "Published" not in result.stderr
    assert "Auditing" not in result.stdout
    assert "Published release" in result.stdout
    assert "200 rows" in result.stdout


def unread(*words: str, folder: Path) -> int:
    """The exit status where nobody reads standard output or standard error."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "from anonfit.cli.main import main; main()", *words]
    try:
        return subprocess.run(command, cwd=folder, stdout=writer, stderr=writer).returncode
    finally:
        os.close(writer)


def test_a_pipe_that_nobody_reads_changes_no_exit_status(folder: Path) -> None:
    assert unread("run", "spec.toml", "--out", "release", folder=folder) == 0
    assert (folder / "release" / "manifest.json").exists()
    assert unread("audit", "release", "--json", folder=folder) == 0
    assert unread("audit", "people.csv", "--quasi-identifiers", "age,sex", "--k", "50", folder=folder) == 1
    assert unread("run", "nowhere.toml", folder=folder) == 2


@pytest.mark.parametrize("as_json", [False, True])
def test_formulas_in_a_text_file_are_told_on_standard_error(
    folder: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    from anonfit.cli.releasing import run

    people = pl.read_csv(folder / "people.csv")
    people.with_columns(pl.lit('=HYPERLINK("x")').alias("illness")).write_csv(folder / "people.csv")
    settings = ["output.format=csv"]
    run(folder / "spec.toml", folder / "out", settings=settings, as_json=as_json)
    told = capsys.readouterr()
    assert "may run as formulas" in told.err
    assert "'illness'" in told.err
    assert "HYPERLINK" not in told.err + told.out


def test_settings_on_the_command_line_stand_above_the_file(folder: Path) -> None:
    result = anonfit("run", "spec.toml", "--set", "privacy.k=20", "--set", "output.format=csv", "--json", folder=folder)
    assert result.returncode == 0, result.stderr
    assert found(result)["k"] == 20
    assert (folder / "spec-release" / "data.csv").exists()


def test_a_missed_demand_is_exit_status_one(folder: Path) -> None:
    result = anonfit("audit", "people.csv", "--quasi-identifiers", "age,sex", "--k", "5", folder=folder)
    assert result.returncode == 1
    assert "missed" in result.stdout


def test_an_infeasible_demand_is_exit_status_one(folder: Path) -> None:
    result = anonfit("run", "spec.toml", "--set", "privacy.k=1000", folder=folder)
    assert result.returncode == 1
    assert "200 persons, fewer than k = 1000" in result.stderr
    assert not (folder / "spec-release").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("run", "nothing.toml"), "no such spec file"),
        (("run", "spec.toml", "--set", "output.fromat=csv"), "did you mean 'format'?"),
        (("run", "spec.toml", "--set", "privacy.k"), "--set privacy.k=20"),
        (("run", "spec.toml", "--engine", "sprak"), "did you mean 'spark'?"),
        (("run", "spec.toml", "--out", "no/such/place"), "no such folder"),
        (("audit", "people.csv"), "--quasi-identifiers"),
        (("audit", "people.csv", "--quasi-identifiers", "aeg"), "age"),
        (("audit", "nothing.csv", "--quasi-identifiers", "age"), "nothing.csv"),
        (("apply", "nowhere", "people.csv"), "no such release folder"),
        (("init", "nothing.csv", "--out", "new.toml"), "no such file"),
        (("init", "people.csv"), "already there"),
    ],
)
def test_a_wrong_request_is_exit_status_two_and_one_sentence(folder: Path, words: tuple[str, ...], text: str) -> None:
    result = anonfit(*words, folder=folder)
    assert result.returncode == 2
    assert text in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_all_faults_of_a_spec_are_told_at_once(folder: Path) -> None:
    (folder / "bad.toml").write_text(SPEC.replace("k = 5", "k = 0\nkk = 1").replace("sensitive", "sensitiv"))
    result = anonfit("run", "bad.toml", "--json", folder=folder)
    assert result.returncode == 2
    faults = found(result)["error"]["faults"]
    assert len(faults) == 3
    assert any("did you mean 'sensitive'?" in fault for fault in faults)


def test_a_column_without_a_role_is_an_error(folder: Path) -> None:
    (folder / "short.toml").write_text(SPEC.replace('[columns.sex]\nrole = "quasi-identifier"\n', ""))
    result = anonfit("run", "short.toml", folder=folder)
    assert result.returncode == 2
    assert "'sex'" in result.stderr
    assert "default_role" in result.stderr


def test_init_writes_a_spec_that_runs(folder: Path) -> None:
    result = anonfit("init", "people.csv", "--out", "proposed.toml", "--json", folder=folder)
    assert result.returncode == 0, result.stderr
    roles = {column["name"]: column["role"] for column in found(result)["columns"]}
    assert roles["age"] == "quasi-identifier"
    assert anonfit("run", "proposed.toml", "--json", folder=folder).returncode == 2
    text = (folder / "proposed.toml").read_text()
    settled = "\n".join(line for line in text.splitlines() if not line.startswith("decide = "))
    (folder / "proposed.toml").write_text(settled)
    assert anonfit("run", "proposed.toml", "--json", folder=folder).returncode == 0


def test_demo_makes_a_release_that_audits_and_can_be_made_again(tmp_path: Path) -> None:
    for _ in range(2):
        result = anonfit("demo", "--rows", "3000", folder=tmp_path)
        assert result.returncode == 0, result.stderr
        assert "accepted" in result.stdout
    demo = tmp_path / "anonfit-demo"
    assert anonfit("audit", "release", "--source", "patients.csv", folder=demo).returncode == 0


def test_demo_shows_the_same_k_blind_and_for_the_purpose(tmp_path: Path) -> None:
    result = anonfit("demo", "--json", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    purpose = found(result)["purpose"]
    assert purpose["held_out_rows"] == 3000
    accuracy = purpose["accuracy"]
    assert accuracy["most_frequent"] < accuracy["blind"] < accuracy["purpose"]
    assert purpose["gain"] == pytest.approx(accuracy["purpose"] - accuracy["blind"], abs=1.1e-3)  # shares are rounded
    assert purpose["gain"] > purpose["noise"] > 0
    assert purpose["gained"] is True


def test_demo_says_when_the_purpose_gained_nothing(tmp_path: Path) -> None:
    result = anonfit("demo", "--rows", "1000", "--json", folder=tmp_path)
    purpose = found(result)["purpose"]
    assert purpose["gain"] <= purpose["noise"]
    assert purpose["gained"] is False
    result = anonfit("demo", "--rows", "1000", folder=tmp_path)
    assert "gained nothing" in result.stdout
    assert "At the same k" not in result.stdout


def test_demo_says_when_the_gain_cannot_be_measured(tmp_path: Path) -> None:
    result = anonfit("demo", "--rows", "200", "--k", "150", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "cannot be measured" in result.stdout
    assert found(anonfit("demo", "--rows", "200", "--k", "150", "--json", folder=tmp_path))["purpose"] is None


def test_a_purpose_and_a_demand_reach_the_report(folder: Path) -> None:
    (folder / "more.toml").write_text(
        ASKING + '[[privacy.diversity]]\ncolumn = "illness"\nmodel = "distinct-l"\nl = 2\n'
        '[[workload.selections]]\nwhere = "age >= 40"\n[workload.weights]\nage = 2.0\n'
    )
    result = anonfit("run", "more.toml", "--out", "release", "--json", folder=folder)
    assert result.returncode == 0, result.stderr
    report = json.loads((folder / "release" / "report.json").read_text())
    assert report["asked"]["algorithm"] == "Selection then Median Mondrian, weighted"
    assert report["diversity"][0]["met"] is True
    assert "age >= 40" not in (folder / "release" / "report.html").read_text()
    result = anonfit("audit", "release", "--source", "people.csv", "--json", folder=folder)
    assert result.returncode == 0, result.stderr
    assert [one["model"] for one in found(result)["diversity"]] == ["distinct-l"]


def test_a_demand_that_the_table_does_not_meet_is_exit_status_one(folder: Path) -> None:
    (folder / "hard.toml").write_text(
        ASKING + '[[privacy.diversity]]\ncolumn = "illness"\nmodel = "distinct-l"\nl = 3\n'
    )
    result = anonfit("run", "hard.toml", "--out", "release", folder=folder)
    assert result.returncode == 1
    assert "illness has 2" in result.stderr
    assert not (folder / "release").exists()


def test_demo_does_not_write_into_a_folder_of_other_things(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    result = anonfit("demo", "--rows", "100", "--out", "mine", folder=tmp_path)
    assert result.returncode == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_errors_nobody_foresaw_do_not_tell_values(folder: Path) -> None:
    code = (
        "import anonfit.api as api\n"
        "def fail(*_, **__): raise KeyError('ZQXVALUE')\n"
        "api.make = fail\n"
        "from anonfit.cli.main import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, "run", "spec.toml"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "ZQXVALUE" not in result.stderr
    assert "KeyError" in result.stderr


COMPILED = """
from anonfit.auditing.kernels import number
from anonfit.runtime.compiling import own
folder = own("auditing").path
print(folder, len(list(folder.rglob("*.nbc"))))
"""


def test_kernels_are_kept_without_a_home_and_with_a_package_that_cannot_be_written(folder: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME")}
    result = subprocess.run(
        [sys.executable, "-B", "-c", COMPILED],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment | {"TMPDIR": str(folder)},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    place, files = result.stdout.rsplit(maxsplit=1)
    assert Path(place).is_relative_to(folder)
    assert int(files) > 0


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_full_disk_where_words_go_to(folder: Path, stream: str) -> None:
    """What is shown is lost; what was asked for is done, and the exit status says whether its result was seen."""
    words = ["run", "spec.toml", "--out", f"release-{stream}", "--json"]
    with Path("/dev/full").open("w") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
        result = subprocess.run([*PROGRAM, *words[: 5 if stream == "stdout" else 4]], cwd=folder, **streams, text=True)
    af.load(folder / f"release-{stream}")
    if stream == "stdout":
        assert result.returncode == 2
        assert result.stderr == (
            "error: standard output could not be written: No space left on device; what was published stays, only what "
            "was to be shown of it is lost.\n"
        )
    else:
        assert result.returncode == 0
        assert "Published" in result.stdout


TERMINATED = """
import os, signal, sys
from anonfit.engines.duckdb.engine import DuckDBEngine
DuckDBEngine.code = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
from anonfit.cli.main import main
main()
"""


def test_a_run_that_is_terminated_leaves_nothing(folder: Path) -> None:
    spill = folder / "spill"
    words = ["run", "spec.toml", "--out", "release", "--engine", "duckdb", "--set", f"engine.spill={spill}"]
    result = subprocess.run(
        [sys.executable, "-c", TERMINATED, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 143
    assert result.stderr.endswith("\nterminated; a release that was not finished is not published.\n")
    assert list(spill.iterdir()) == []
    assert not (folder / "release").exists()
