# SPDX-License-Identifier: Apache-2.0
"""A folder with people, a page over it without a socket, and a server of its own where a test needs one."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from anonfit.web.app import application
from anonfit.web.jobs import Jobs, Limits
from anonfit.web.security import Keys
from anonfit.web.workspace import Workspace

HOST = "127.0.0.1:8420"
OWN = f"http://{HOST}"
SPEC = """version = 1
[data]
source = "people.csv"
[columns.name]
role = "identifier"
[columns.age]
role = "quasi-identifier"
[columns.sex]
role = "quasi-identifier"
[columns.illness]
role = "sensitive"
diversity = "none"
reason = "the people are made up"
[privacy]
k = 5
[output]
format = "csv"
"""


def people(rows: int = 400, seed: int = 0) -> str:
    """A table of made-up people."""
    draw = random.Random(seed)
    lines = [
        f"Person {row} Made-Up,{draw.randint(18, 90)},{draw.choice('fm')},{draw.choice(['flu', 'gout', 'mumps', 'none'])}"
        for row in range(rows)
    ]
    return "name,age,sex,illness\n" + "\n".join(lines) + "\n"


@dataclass
class Door:
    """A page over a folder, with the keys to it."""

    folder: Path
    jobs: Jobs
    keys: Keys
    page: TestClient
    """A browser that has a session."""
    rest: TestClient
    """A pipeline that has the bearer token."""
    stranger: TestClient
    """Somebody who has nothing."""

    def post(self, path: str, **fields: object):
        """Send a form, as the page does; the page that follows."""
        return self.page.post(path, data=fields, headers={"origin": OWN})

    @property
    def spec(self) -> str:
        return (self.folder / "spec.toml").read_text()


def door_of(folder: Path, **limits: float) -> Door:
    """A page over a folder."""
    (folder / "people.csv").exists() or (folder / "people.csv").write_text(people())
    jobs = Jobs(Workspace.of(folder), Limits(**{"memory": 8 << 30, "upload": 4 << 20, "spare": False, **limits}))
    keys = Keys()
    app = application(jobs, keys, hosts=[HOST], port=8420)
    clients = [TestClient(app, base_url=OWN, raise_server_exceptions=False) for _ in range(3)]
    clients[0].cookies.set("anonfit-8420", str(keys.admit(keys.ticket())))
    clients[1].headers["authorization"] = f"Bearer {keys.bearer}"
    return Door(folder, jobs, keys, *clients)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    held = door_of(tmp_path)
    yield held
    held.jobs.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """One page for tests that change nothing."""
    held = door_of(tmp_path_factory.mktemp("shared"))
    yield held
    held.jobs.close()


@dataclass
class Server:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    link: str

    @property
    def address(self) -> str:
        return self.link.partition("/?")[0]

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(timeout=20)
        assert self.process.stdout is not None
        self.process.stdout.close()


def start_server(folder: Path, *words: str) -> Server:
    """Start `anonfit web` on a free port, and read its one line."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from anonfit.cli.main import main; main()",
            "web",
            str(folder),
            "--no-browser",
            "--port",
            "0",
        ]
        + list(words),
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 120)[0], "the server says nothing"
    return Server(process, process.stdout.readline().strip())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "people.csv").write_text(people())
    held = start_server(tmp_path)
    yield held
    if held.process.poll() is None:
        held.end()
