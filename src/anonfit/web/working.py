# SPDX-License-Identifier: Apache-2.0
"""A process that waits for one job, does it, and writes what came of it as its last act. It ends with the server that
started it: `python -m anonfit.web.working`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

from anonfit.cli.showing import error_facts
from anonfit.web.jobs import JOB, RESULT, STAGES
from anonfit.web.tasks import TASKS, Task
from anonfit.web.workspace import Workspace, replace_text


def _end_with_server() -> None:
    """Read what never comes: when the server is gone, so is its end of the pipe."""
    sys.stdin.read()
    os.killpg(os.getpid(), signal.SIGKILL)


def _work(order: dict[str, str]) -> None:
    folder = Path(order["folder"])
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    handle = os.open(folder / STAGES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def stage(name: str) -> None:
        os.write(handle, json.dumps({"stage": name, "at": time.time()}).encode() + b"\n")

    outcome: dict[str, Any] = {"error": None, "result": None}
    try:
        task = Task(Workspace(Path(order["root"])), folder, job["params"], stage)
        outcome["result"] = TASKS[job["kind"]](task)
    except SystemExit:
        raise
    except BaseException as error:  # a panic of polars is no Exception
        outcome["error"] = error_facts(error)
    replace_text(folder / RESULT, json.dumps({**outcome, "ended": time.time()}, default=str))


def main() -> None:
    """Wait for a job and do it."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's interrupt is for the server
    line = sys.stdin.readline()
    if not line:
        return
    os.nice(5)  # the server answers first
    Thread(target=_end_with_server, daemon=True).start()
    _work(json.loads(line))
    sys.stdout.flush()
    os._exit(0)  # threads of libraries are not waited for


if __name__ == "__main__":
    main()
