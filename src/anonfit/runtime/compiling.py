# SPDX-License-Identifier: Apache-2.0
"""How kernels are compiled: a decorator, and numba's cache over the folders of machine code."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

from anonfit.runtime import machine_code
from anonfit.runtime.machine_code import CodeFolder

Function = TypeVar("Function", bound=Callable[..., Any])


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
    if compiled is not function:
        part = function.__module__.split(".")[1]
        brought, own = machine_code.brought(part), machine_code.own(part)
        if "no_cpython_wrapper" in options:  # a package brings only what is called from Python
            brought, own = None, None if own is None or own.processor else own
        compiled._cache = _kept_code()(function, brought, own)
        if signature is not None:
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
            return pickle.loads(content[32:])  # noqa: S301 - the package's own, or of a folder that only we can write

    class Result(numbas.CompileResultCacheImpl):  # type: ignore[misc]
        """How machine code becomes bytes; the folders are named by what they hold, so nothing else is asked for."""

        def __init__(self, function: Any) -> None:
            self._py_file, self._lineno = function.__code__.co_filename, function.__code__.co_firstlineno
            self._locator = self
            self._filename_base = f"{function.__module__}.{function.__qualname__}-{self._lineno}"

        def ensure_cache_path(self) -> None:
            """It is there."""

    class KeptCode(numbas.FunctionCache):  # type: ignore[misc]
        """As numba's, but first of what the package brings, then of what was compiled here; and it never fails."""

        def __init__(self, function: Any, brought: CodeFolder | None, own: CodeFolder | None) -> None:
            self._name, self._py_func, self._impl = repr(function), function, Result(function)
            self._brought, self._own = self._in(brought), self._in(own)
            self._cache_path = "" if own is None else str(own.path)
            self.enable()

        def _in(self, folder: CodeFolder | None) -> tuple[Any, str | None] | None:
            if folder is None:
                return None
            return CheckedFile(str(folder.path), self._impl.filename_base, ""), folder.processor

        def _index_key(self, signature: Any, codegen: Any) -> Any:
            signature, here, content = super()._index_key(signature, codegen)
            return signature, self._processor or here, content

        def load_overload(self, signature: Any, context: Any) -> Any:
            for file in filter(None, (self._brought, self._own)):
                self._cache_file, self._processor = file
                try:
                    found = super().load_overload(signature, context)
                except Exception:  # whatever reading damaged files gives
                    self._forget()
                    continue
                if found is not None:
                    return found
            return None

        def save_overload(self, signature: Any, data: Any) -> None:
            if self._own is None:
                return
            self._cache_file, self._processor = self._own
            try:
                super().save_overload(signature, data)
            except Warning:
                raise
            except Exception:  # a full disk, or a damaged index
                self._forget()

        def _forget(self) -> None:
            if (self._cache_file, self._processor) == self._own:
                with suppress(OSError):
                    Path(self._cache_file._index_path).unlink()

    return KeptCode
