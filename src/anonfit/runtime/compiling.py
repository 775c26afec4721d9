# SPDX-License-Identifier: Apache-2.0
"""How kernels are compiled: a decorator, and a cache folder even where nothing near the package can be written."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

KEPT = 3
"""Versions whose machine code is kept."""
CONSTANTS = {"engines": ("tables/schema.py", "criteria/targets.py", "criteria/objectives.py", "privacy/*.py")}
"""Where kernels of a part have constants of others from: these are compiled into the machine code."""

Function = TypeVar("Function", bound=Callable[..., Any])


def _is_ours(folder: Path) -> bool:
    """Whether only we can write the folder: compiled code is run from it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.lstat()
    except OSError:
        return False
    private = stat.S_ISDIR(facts.st_mode) and not facts.st_mode & 0o022
    return private and facts.st_uid == os.geteuid() and os.access(folder, os.W_OK)


def _sources(part: str) -> str:
    """A hash of a part's sources: a kernel is compiled together with those it calls, also from other files, and with
    its constants, and must be compiled again when one of them changes.
    """
    sources = hashlib.sha256()
    root = Path(__file__).parent.parent
    constants = [path for pattern in CONSTANTS.get(part, ()) for path in root.glob(pattern)]
    for path in sorted([*root.glob(f"{part}/**/*.py"), *constants, Path(__file__)]):
        sources.update(path.read_bytes())
    return sources.hexdigest()[:16]


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

    decorate: Any = numba.njit
    compiled = decorate(nogil=True, error_model="numpy", **options)(function)
    config: Any = numba.config
    before = config.CACHE_DIR
    folder = cache_folder(function.__module__.split(".")[1])
    # numba asks for the folder when a cache is made; other users of numba in this process keep their own.
    config.CACHE_DIR = str(folder or "")
    try:
        # A folder that cannot be used after all, and machine code that cannot be kept, are no reason to fail.
        with suppress(RuntimeError, OSError):
            if folder is not None and compiled is not function:
                compiled._cache = _kept_code()(function)
    finally:
        config.CACHE_DIR = before
    if signature is not None and compiled is not function:
        compiled.compile(signature)
        compiled.disable_compile()
    return cast("Function", compiled)


@cache
def _kept_code() -> Any:
    """numba's cache of a function's machine code, in which what is damaged is forgotten and compiled again."""
    numbas: Any = import_module("numba.core.caching")

    class CheckedFile(numbas.IndexDataCacheFile):  # type: ignore[misc]
        """Machine code behind its hash: damaged code would be run."""

        def _save_data(self, name: str, data: Any) -> None:
            dumped = self._dump(data)
            with self._open_for_write(self._data_path(name)) as file:
                file.write(hashlib.sha256(dumped).digest() + dumped)

        def _load_data(self, name: str) -> Any:
            content = Path(self._data_path(name)).read_bytes()
            if hashlib.sha256(content[32:]).digest() != content[:32]:
                raise ValueError("damaged machine code")
            return pickle.loads(content[32:])  # noqa: S301 - only we can write the folder

    class KeptCode(numbas.FunctionCache):  # type: ignore[misc]
        """As numba's, but that it never fails."""

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            base, stamp = self._impl.filename_base, self._impl.locator.get_source_stamp()
            self._cache_file = CheckedFile(self._cache_path, base, stamp)

        def load_overload(self, signature: Any, context: Any) -> Any:
            try:
                return super().load_overload(signature, context)
            except Exception:  # whatever reading damaged files gives
                self._forget()
                return None

        def save_overload(self, signature: Any, data: Any) -> None:
            try:
                super().save_overload(signature, data)
            except Warning:
                raise
            except Exception:  # a full disk, or a damaged index
                self._forget()

        def _forget(self) -> None:
            with suppress(OSError):
                Path(self._cache_file._index_path).unlink()

    return KeptCode
