# SPDX-License-Identifier: Apache-2.0
"""The command line in this process: what a command prints and its exit status, without the seconds that a new process
takes to load libraries. What is about processes (signals, pipes, environments) starts one.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO
from unittest.mock import patch

PROGRAM = [sys.executable, "-c", "from anonfit.cli.main import main; main()"]


def command(*words: str, folder: Path, columns: int = 200) -> subprocess.CompletedProcess[str]:
    """Run a command of anonfit in a folder."""
    from anonfit.cli.main import main

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever began the tests ignores it, perhaps
    with ExitStack() as stack:
        out, err = (stack.enter_context(TemporaryFile()) for _ in range(2))
        stack.enter_context(chdir(folder))
        stack.enter_context(patch.dict(os.environ, {"COLUMNS": str(columns)}))
        stack.enter_context(patch.object(sys, "argv", ["anonfit", *words]))
        try:
            with _written_to(1, "stdout", out), _written_to(2, "stderr", err):
                main()
            status = 0
        except SystemExit as end:
            status = 0 if end.code is None else int(end.code)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return subprocess.CompletedProcess(words, status, _text(out), _text(err))


def command_apart(
    *words: str, folder: Path, columns: int = 200, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of anonfit in a process of its own."""
    return subprocess.run(
        [*PROGRAM, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": str(columns), **environment},
        check=False,
    )


@contextmanager
def _written_to(descriptor: int, name: str, file: IO[bytes]) -> Iterator[None]:
    """Let a file take all that is written to a standard stream, by Python and by libraries."""
    before, stream = os.dup(descriptor), getattr(sys, name)
    stream.flush()
    os.dup2(file.fileno(), descriptor)
    text = io.TextIOWrapper(os.fdopen(os.dup(descriptor), "wb", 0), encoding="utf-8", write_through=True)
    setattr(sys, name, text)
    try:
        yield
    finally:
        text.close()
        setattr(sys, name, stream)
        os.dup2(before, descriptor)
        os.close(before)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8")
