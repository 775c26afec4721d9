# SPDX-License-Identifier: Apache-2.0
"""A MariaDB server of our own, where one is installed: started in a temporary folder, on loopback, with a password."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PASSWORD = "hunter2-secret"
USER = "keeper"


def program(*names: str) -> str | None:
    """The path of the first program of these names; servers are not on everybody's path."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def is_installed() -> bool:
    """Whether a server can be made and started."""
    return program("mariadb-install-db") is not None and program("mariadbd") is not None


@contextmanager
def server() -> Iterator[str]:
    """The address of a running server."""
    make, run = program("mariadb-install-db"), program("mariadbd")
    assert make is not None
    assert run is not None
    place = Path(tempfile.mkdtemp(prefix="my", dir="/tmp"))  # the path of a socket must be short
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = ["--user=root"] if os.getuid() == 0 else []
    data = f"--datadir={place / 'data'}"
    process = None
    try:
        setup = place / "setup.sql"
        setup.write_text(
            f"CREATE DATABASE clinic CHARACTER SET utf8mb4;\n"
            f"CREATE USER '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON clinic.* TO '{USER}'@'127.0.0.1';\n"
        )
        _install(
            [make, "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db", *root], place
        )
        process = subprocess.Popen(
            [run, "--no-defaults", data, *root, f"--socket={place / 's'}", f"--port={port}", "--bind-address=127.0.0.1",
             "--skip-name-resolve", f"--init-file={setup}", f"--log-error={place / 'log'}", f"--pid-file={place / 'pid'}",
             "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=128M"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        _wait(port, process)
        yield f"mariadb://{USER}:{PASSWORD}@127.0.0.1:{port}/clinic"
    finally:
        if process is not None:
            process.kill()
            process.wait()
        shutil.rmtree(place, ignore_errors=True)


def _install(command: list[str], place: Path) -> None:
    """Make the server's own tables; on a busy machine the first try may fail."""
    for attempt in range(3):
        shutil.rmtree(place / "data", ignore_errors=True)
        done = subprocess.run(command, cwd=place, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode == 0:
            return
        time.sleep(attempt)
    raise RuntimeError(f"no MariaDB server could be made:\n{done.stdout}\n{done.stderr}")


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until the server answers."""
    for _ in range(300):
        assert process.poll() is None
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as answer:
                if answer.recv(1):
                    return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the MariaDB server did not start")
