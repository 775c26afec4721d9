# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of our own, where one is installed: started in a temporary folder, with a password."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PASSWORD = "hunter2-secret"


def programs() -> Path | None:
    """The folder of the server's programs."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    return next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


def _user() -> str | None:
    """Who runs the server where we are root, as whom it does not run."""
    if os.getuid() != 0:
        return None
    known = {one.pw_name for one in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _as_user(command: list[str]) -> list[str]:
    user = _user()
    return command if user is None else ["runuser", "-u", user, "--", *command]


@contextmanager
def server() -> Iterator[str]:
    """The address of a running server."""
    folder = programs()
    assert folder is not None
    place = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # the path of a socket must be short
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        (place / "password").write_text(PASSWORD)
        if (user := _user()) is not None:
            shutil.chown(place, user)
            shutil.chown(place / "password", user)
        data, log = str(place / "data"), str(place / "log")
        subprocess.run(
            _as_user([str(folder / "initdb"), "-D", data, "-U", "keeper", "-A", "scram-sha-256", "--pwfile", str(place / "password"), "-E", "UTF8", "--no-locale", "--no-sync"]),
            check=True,
            capture_output=True,
        )  # fmt: skip
        settings = f"-p {port} -k {place} -h 127.0.0.1 -c fsync=off"
        subprocess.run(
            _as_user([str(folder / "pg_ctl"), "-D", data, "-l", log, "-w", "-o", settings, "start"]),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield f"postgresql://keeper:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run(
                _as_user([str(folder / "pg_ctl"), "-D", data, "-m", "immediate", "stop"]),
                check=False,
                capture_output=True,
            )
    finally:
        shutil.rmtree(place, ignore_errors=True)


def new_database(address: str, name: str) -> str:
    """The address of a new, empty database on the same server."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{address.rpartition('/')[0]}/{name}"
