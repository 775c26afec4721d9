# SPDX-License-Identifier: Apache-2.0
"""Folders for rows that do not fit in memory: only we can read them, and they are gone when a run ends. What a run that
was killed left behind is removed when the next one starts.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError
from anonfit.processes import is_running

__all__ = ["spill_folder", "sweep_spill"]

fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None
MARK = "anonfit-spill-"
LOCK = "lock"
"""A file in the folder that is locked as long as it is used. Processes of other machines and containers, which may
share the place, cannot be asked by their numbers.
"""


def sweep_spill(place: Path) -> None:
    """Remove what runs that were killed left in a place."""
    for folder in place.glob(f"{MARK}*"):
        process = folder.name.removeprefix(MARK).partition("-")[0]
        if process.isdigit() and not _is_used(folder, int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_used(folder: Path, process: int) -> bool:
    """Whether a folder is still used by the process that made it."""
    if fcntl is None:
        return is_running(process)
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return is_running(process)
    except OSError:  # locked, or not ours
        return True
    return False


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder, where its disk knows locks."""
    if fcntl is None:
        yield
        return
    started = folder / f"{LOCK}.new"
    with started.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            started.unlink()
        else:
            started.rename(folder / LOCK)  # never seen unlocked
        yield


@contextmanager
def spill_folder(place: Path | None) -> Iterator[Path]:
    """A folder of our own in a place (without one: where the system keeps temporary files), removed at the end."""
    parent = Path(tempfile.gettempdir()) if place is None else place
    folder = parent / f"{MARK}{os.getpid()}-{secrets.token_hex(8)}"
    try:
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        sweep_spill(parent)
        folder.mkdir(mode=0o700)
        lock = ExitStack()
        lock.enter_context(_locked(folder))
    except OSError as error:
        raise RequestError(
            f"engine.spill: no folder can be made in {parent} ({error.strerror}); name another place."
        ) from None
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
