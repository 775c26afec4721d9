# SPDX-License-Identifier: Apache-2.0
"""Runs that are killed (kill -9) at a moment that is named. A process that has everything loaded forks one child for
each run, so that a run takes as long as its work and not as long as Python needs to start.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROWS = 600
OLD, NEW = 5, 9
"""The k of the release that stood before, and of the one that is made."""
EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "shutil.rmtree"}
"""What touches names on the disk; Python tells a hook before each."""


def lay_out(folder: Path) -> None:
    """Data, specs, and a file of somebody else."""
    import polars as pl

    folder.mkdir()
    rows = range(ROWS)
    people = pl.DataFrame(
        {
            "age": [20 + (row * 7919) % 60 for row in rows],
            "size": [(row * 104729) % 97 for row in rows],
            "ill": ["flu" if row % 3 else "cold" for row in rows],
        }
    )
    people.write_csv(folder / "people.csv")
    for k in (OLD, NEW):
        (folder / f"{k}.toml").write_text(
            'version = 1\ndata.source = "people.csv"\ncolumns.age.role = "quasi-identifier"\n'
            f'columns.size.role = "quasi-identifier"\ncolumns.ill.role = "target"\nprivacy.k = {k}\n'
        )
    (folder / ".out.anonfit-notes").write_text("of somebody else")


def _run(folder: Path, engine: str = "memory", *, replace: bool = False) -> None:
    import anonfit as af

    rows = 590 if engine == "spark" else 100
    settings = (
        [f'engine.name="{engine}"', 'engine.spill="spill"', f"engine.hand_over={rows}"] if engine != "memory" else []
    )
    af.run(folder / f"{NEW}.toml", folder / "out", settings=settings, replace=replace)


def _apply(folder: Path) -> None:
    import anonfit as af

    af.load(folder / "earlier").publish_extension(folder / "people.csv", folder / "out", replace=True)


def _copy(folder: Path) -> None:
    import anonfit as af

    af.load(folder / "earlier").save(folder / "out", replace=True)


def _tree(folder: Path) -> None:
    import anonfit as af

    af.run_tree(folder / f"{NEW}.toml", folder / "out", replace=True)


def _fallback(folder: Path) -> None:
    """Where the system cannot exchange names."""
    from anonfit.runtime import files

    files._renameat2 = lambda: None
    _run(folder, replace=True)


SCENARIOS: dict[str, Callable[[Path], None]] = {
    "new": _run,
    "replace": lambda folder: _run(folder, replace=True),
    "duckdb": lambda folder: _run(folder, "duckdb", replace=True),
    "apply": _apply,
    "copy": _copy,
    "tree": _tree,
    "fallback": _fallback,
}
NO_OLD = ("new",)
"""Scenarios in which the place is free."""


def _child(scenario: str, folder: Path, at: int | None, told: int) -> None:
    """Work until the event that is named, and tell how many there were if it is never reached."""
    seen = 0

    def heard(event: str, words: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in EVENTS and words and str(folder) in str(words[0]):
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(heard)
    SCENARIOS[scenario](folder)
    os.write(told, str(seen).encode())


def _forked(scenario: str, folder: Path, at: int | None, seconds: float | None) -> dict[str, Any]:
    reading, writing = os.pipe()
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _child(scenario, folder, at, writing)
            status = 0
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(status)
    os.close(writing)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, ended = os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return {"killed": os.WIFSIGNALED(ended), "said": said, "seconds": time.monotonic() - begun}


def spark_run(folder: Path, seconds: float | None = None) -> float:
    """Run on Spark in a process of its own, killed after some seconds; how long it took. Forked children cannot."""
    code = f"import sys; sys.path[:0] = {sys.path!r}; import killing; killing._run(killing.Path({str(folder)!r}), 'spark', replace=True)"
    begun = time.monotonic()
    words = os.environ | {"SPARK_CONF_DIR": str(_spark_settings(folder.parent))}
    said = folder.parent / "said.txt"
    with (
        said.open("w", encoding="utf-8") as log,
        subprocess.Popen([sys.executable, "-c", code], stderr=log, env=words) as process,
    ):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    assert process.returncode in ((0,) if seconds is None else (0, -signal.SIGKILL)), said.read_text()[-3000:]
    return time.monotonic() - begun


def _spark_settings(place: Path) -> Path:
    from spark_sessions import SETTINGS

    some = {name: value for name, value in SETTINGS.items() if "eventLog" not in name}
    (place / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in some.items()))
    return place


def _serve() -> None:
    """Load everything, and nothing that starts threads: a child of a process with threads would hang."""
    import polars  # noqa: F401

    from anonfit.engines.memory import warming

    warming.warm_up(models=False)
    for line in sys.stdin:
        asked = json.loads(line)
        found = _forked(asked["scenario"], Path(asked["folder"]), asked.get("at"), asked.get("seconds"))
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


@contextmanager
def runner() -> Iterator[Callable[..., dict[str, Any]]]:
    """A function that runs a scenario, killed at an event (`at`) or after some seconds, and says what came of it."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(scenario: str, folder: Path, **moment: float | None) -> dict[str, Any]:
            process.stdin.write(json.dumps({"scenario": scenario, "folder": str(folder), **moment}) + "\n")
            process.stdin.flush()
            return dict(json.loads(process.stdout.readline()))

        try:
            yield run
        finally:
            process.stdin.close()


if __name__ == "__main__":
    _serve()
