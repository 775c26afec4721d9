# SPDX-License-Identifier: Apache-2.0
"""How kernels are compiled: one decorator, and a cache folder that works where nothing near the package can be
written.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

__all__ = ["cache_folder", "kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _is_ours(folder: Path) -> bool:
    """Whether only we can write the folder: compiled code is run from it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o022
    return private and found.st_uid == os.geteuid() and os.access(folder, os.W_OK)


@cache
def cache_folder() -> Path | None:
    """The first folder of the user's cache, or of the temporary folder, that only this user can write; None if there
    is none.
    """
    candidates = []
    if configured := os.environ.get("XDG_CACHE_HOME"):
        candidates.append(Path(configured) / "anonfit")
    if home := os.environ.get("HOME"):
        candidates.append(Path(home) / ".cache" / "anonfit")
    candidates.append(Path(tempfile.gettempdir()) / f"anonfit-cache-{os.geteuid()}")
    return next((folder for folder in candidates if _is_ours(folder)), None)


def kernel(function: Function) -> Function:
    """Compile a function on first use, without the interpreter lock, and keep the machine code on disk."""
    import numba

    found = numba.config.CACHE_DIR
    folder = found or cache_folder()
    # numba asks for the folder while it decorates; other users of numba in this process keep their own.
    numba.config.CACHE_DIR = str(folder or "")
    try:
        compiled = numba.njit(nogil=True, cache=folder is not None, error_model="numpy")(function)
    finally:
        numba.config.CACHE_DIR = found
    return cast("Function", compiled)
