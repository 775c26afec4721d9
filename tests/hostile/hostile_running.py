# SPDX-License-Identifier: Apache-2.0
"""What a hostile case is, and how it is run: through the command line's own door, in this process where it can be."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from commands import command

MARK = "ZQX"
"""Stands in values of records, and in nothing else."""
LONGEST = 10
"""Seconds that a case may take."""
LONGEST_TEXT = 9000
"""Signs that are told at most."""
PEOPLE = "age,sex,illness\n" + "".join(
    f"{20 + index % 40},{'mf'[index % 3 > 0]},{MARK}{'flu' if index % 4 else 'cold'}\n" for index in range(60)
)
SPEC = """version = 1
[data]
source = "people.csv"
[columns.age]
role = "quasi-identifier"
[columns.sex]
role = "quasi-identifier"
[columns.illness]
role = "insensitive"
[privacy]
k = 5
"""
RUN = ("run", "spec.toml", "--out", "release")
BOTH = ("memory", "duckdb")
ONCE = ("",)
# All control characters but the end of a line, and signs that turn the direction of a text.
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

File = str | bytes | Callable[[Path], Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A hostile request: the files it finds, the words of the command, and what must come of it."""

    name: str
    files: Mapping[str, File]
    """Contents, or what makes a file at a path; a table of people and its spec are there already."""
    says: str
    """A pattern of what is told, on either stream."""
    words: tuple[str, ...] = RUN
    status: int = 2
    engines: tuple[str, ...] = BOTH
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[int, int] = field(default_factory=dict)
    """Limits of the process; a case that has some, or an environment, has a process of its own."""
    shows_values: bool = False
    """Whether values of records may be told: classes of a tree are."""
    memory: int | None = None
    """Bytes of memory that seem to be free."""
    meanwhile: tuple[str, Callable[[Path], Any]] | None = None
    """What happens to the folder when a stage begins."""
    stays: str = ""
    """The file of somebody that appears meanwhile, and must be there at the end."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did."""

    status: int
    out: str
    err: str


def lay(case: Case, folder: Path) -> None:
    """Make the files of a case."""
    for name, content in {"people.csv": PEOPLE, "spec.toml": SPEC, **case.files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8", newline="")


def all_files(folder: Path) -> set[str]:
    """Everything in a folder, hidden things too."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@contextmanager
def in_time() -> Iterator[None]:
    """Fail what takes too long."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"not done after {LONGEST} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def here(words: tuple[str, ...], temporary: Path) -> Outcome:
    """Run a command in this process."""
    tempfile.tempdir = str(temporary)
    try:
        with in_time():
            done = command(*words, folder=Path.cwd())
    finally:
        tempfile.tempdir = None
    return Outcome(done.returncode, done.stdout, done.stderr)


def apart(words: tuple[str, ...], case: Case, folder: Path, temporary: Path) -> Outcome:
    """Run a command in a process of its own."""
    environment = {**os.environ, "TMPDIR": str(temporary), "COLUMNS": "200", **case.environment}
    environment = {name: value for name, value in environment.items() if value != "-"}

    def limit() -> None:
        for kind, most in case.limits.items():
            resource.setrlimit(kind, (most, most))

    found = subprocess.run(
        [sys.executable, "-c", "from anonfit.cli.main import main; main()", *words],
        cwd=folder,
        capture_output=True,
        env=environment,
        preexec_fn=limit,
        timeout=6 * LONGEST,
        check=False,
    )
    return Outcome(found.returncode, found.stdout.decode("utf-8", "replace"), found.stderr.decode("utf-8", "replace"))


def check_told(case: Case, outcome: Outcome) -> None:
    """What is told is what was expected, without a value of a record and without anything that a terminal obeys."""
    told = outcome.out + outcome.err
    assert outcome.status == case.status, told
    assert "Traceback" not in told
    assert "went wrong inside" not in told, told
    assert "panicked" not in told
    assert case.shows_values or MARK not in told, told
    assert len(told) < LONGEST_TEXT
    assert not FORBIDDEN.search(told), FORBIDDEN.findall(told)
    assert re.search(case.says, " ".join(told.split())), told


def check_json(case: Case, outcome: Outcome) -> None:
    """One object on standard output and nothing else there; an error has its sentence in it."""
    assert outcome.status == case.status, outcome
    if outcome.status > 2:  # ended by a signal: there is no result
        assert outcome.out == ""
        return
    found = json.loads(outcome.out)
    assert isinstance(found, dict)
    assert outcome.out.count("\n") == 1
    assert case.shows_values or MARK not in outcome.out
    assert not FORBIDDEN.search(outcome.out + outcome.err), outcome
    if case.status == 2:
        assert set(found) == {"error"}
        assert re.search(case.says, " ".join(found["error"]["message"].split())), found
        assert outcome.err == ""


def check_left(case: Case, outcome: Outcome, before: set[str], folder: Path) -> None:
    """A command that failed leaves nothing; what one that was done leaves can be shown without danger."""
    new = all_files(folder) - before
    if case.stays:
        assert (folder / case.stays).read_text() == "mine"
        new.remove(case.stays)
    assert not any(".anonfit-" in name for name in new), new
    if outcome.status != 0:
        assert new == set(), new
    for name in new:
        path = folder / name
        if path.suffix == ".svg":
            ElementTree.parse(path)
        if path.suffix == ".html":
            check_page(path.read_text(encoding="utf-8"))


class _Page(HTMLParser):
    """Elements that a page of ours never has, and whether it forbids scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.is_closed = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "img", "iframe", "object", "embed", "base", "form") or any(
            name.startswith("on") for name, _ in attrs
        ):
            self.bad.append(tag)
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attrs:
            self.is_closed = True


def check_page(text: str) -> None:
    """A page runs nothing, loads nothing and says so to the browser."""
    page = _Page()
    page.feed(text)
    assert page.bad == []
    assert page.is_closed
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def prepare_world(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the world be as a case needs it."""
    import anonfit.cli.releasing as releasing
    import anonfit.tables.reading as reading

    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    if case.memory is not None:
        monkeypatch.setattr(reading, "available_memory", lambda: case.memory)
    if case.meanwhile is not None:
        when, act = case.meanwhile
        stages = releasing.stages

        @contextmanager
        def disturbed(*, as_json: bool) -> Iterator[Callable[[str], None]]:
            with stages(as_json=as_json) as stage:
                yield lambda name: act(folder) if name == when else stage(name)

        monkeypatch.setattr(releasing, "stages", disturbed)


def run_case(case: Case, engine: str, folder: Path, temporary: Path) -> None:
    """Run a case for people and for scripts, and check all that is asked of both."""
    words = (*case.words, "--engine", engine) if engine else case.words
    is_apart = bool(case.limits or case.environment)
    for more, check in (((), check_told), (("--json",), check_json)):
        lay(case, folder)
        before = all_files(folder)
        asked = (*words, *more)
        outcome = apart(asked, case, folder, temporary) if is_apart else here(asked, temporary)
        check(case, outcome)
        check_left(case, outcome, before, folder)
        for name in sorted(all_files(folder), reverse=True):
            path = folder / name
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert list(temporary.iterdir()) == []
