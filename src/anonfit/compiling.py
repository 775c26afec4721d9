# SPDX-License-Identifier: Apache-2.0
"""How kernels are compiled: one decorator, and a cache folder that works where nothing near the package can be
written.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

__all__ = ["cache_folder", "inner", "kernel"]

KEPT = 3
"""Versions whose machine code is kept."""

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


def _sources(part: str) -> str:
    """A hash of a part's sources: a kernel is compiled together with those it calls, also from other files, and must be
    compiled again when one of them changes.
    """
    found = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted([*root.glob(f"{part}/**/*.py"), *root.glob("tables/coded.py"), Path(__file__)]):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


@cache
def cache_folder(part: str) -> Path | None:
    """The folder of the machine code of this version of a part of the package: in the user's cache or in the temporary
    folder, where only this user can write; None if there is none.
    """
    candidates = []
    if configured := os.environ.get("XDG_CACHE_HOME"):
        candidates.append(Path(configured) / "anonfit")
    if home := os.environ.get("HOME"):
        candidates.append(Path(home) / ".cache" / "anonfit")
    candidates.append(Path(tempfile.gettempdir()) / f"anonfit-cache-{os.geteuid()}")
    base = next((folder / part for folder in candidates if _is_ours(folder)), None)
    if base is None or not _is_ours(base):
        return None
    folder = base / _sources(part)
    if not folder.exists():
        _forget_oldest(base)
    return folder if _is_ours(folder) else None


def _forget_oldest(base: Path) -> None:
    """Keep the machine code of a few versions only."""
    with suppress(OSError):
        versions = sorted((path for path in base.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
        for path in versions[:-KEPT]:
            shutil.rmtree(path, ignore_errors=True)


def kernel(function: Function, signature: str | None = None) -> Function:
    """Compile a function on first use, or at once for a signature.

    Its machine code runs without the interpreter lock, and is kept on disk.
    """
    return _compiled(function, signature)


def inner(function: Function) -> Function:
    """Compile a function that only kernels call: it needs no way in from Python, and compiles faster without one."""
    return _compiled(function, None, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _compiled(function: Function, signature: str | None, **options: bool) -> Function:
    import numba

    config: Any = numba.config
    found = config.CACHE_DIR
    folder = cache_folder(function.__module__.split(".")[1])
    # numba asks for the folder while it decorates; other users of numba in this process keep their own.
    config.CACHE_DIR = str(folder or "")
    try:
        decorate: Any = numba.njit
        compiled = decorate(signature, nogil=True, cache=folder is not None, error_model="numpy", **options)(function)
    finally:
        config.CACHE_DIR = found
    return cast("Function", compiled)
