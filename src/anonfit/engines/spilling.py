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
from pathlib import Path

from anonfit.errors import RequestError
from anonfit.runtime.files import is_ours, is_used, locked
from anonfit.runtime.progress import ending

MARK = "anonfit-spill-"


def sweep_spill(place: Path) -> None:
    """Remove what runs that were killed left in a place."""
    for folder in place.glob(f"{MARK}*"):
        process = folder.name.removeprefix(MARK).partition("-")[0]
        if process.isdigit() and is_ours(folder) and not is_used(folder, int(process)):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def spill_folder(place: Path | None) -> Iterator[Path]:
    """A folder of our own in a place (without one: where the system keeps temporary files), removed at the end."""
    parent = Path(tempfile.gettempdir()) if place is None else place
    folder = parent / f"{MARK}{os.getpid()}-{secrets.token_hex(8)}"
    with ExitStack() as stack:
        stack.enter_context(ending())
        try:
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            sweep_spill(parent)
            folder.mkdir(mode=0o700)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.enter_context(locked(folder))
        except OSError as error:
            raise RequestError(
                f"engine.spill: no folder can be made in {parent} ({error.strerror}); name another place."
            ) from None
        yield folder
