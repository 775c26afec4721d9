# SPDX-License-Identifier: Apache-2.0
"""How kernels are compiled, and where their machine code is kept: beside the package, which brings what was compiled
when it was built, for every processor of a kind; and in a folder of the user's, for what had to be compiled here. Both
are found by the content of the sources that were compiled, wherever these lie.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

KEPT = 8
"""Versions whose machine code is kept, some megabytes each: of several environments, none compiles over another."""
CONSTANTS = {
    "engines": ("tables/schema.py", "criteria/targets.py", "criteria/objectives.py", "privacy/*.py"),
    "report": ("errors.py",),
}
"""Where kernels, or templates, of a part have constants of others from: these are compiled into the code."""
PROCESSORS = {"x86_64": ("x86-64-v3", "x86-64"), "aarch64": ("generic",), "arm64": ("generic",)}
"""For each kind of machine the processors, as LLVM calls them, that the package brings code for, the best first."""
NEEDS = {"x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")}
"""What a processor must have to run such code, where not every one of its kind has it."""
PACKAGE = Path(__file__).parent.parent
BROUGHT = PACKAGE / "machine_code"  # the folder that a built package has


@dataclass(frozen=True, slots=True)
class CodeFolder:
    """A folder of machine code of one version of the sources."""

    path: Path
    processor: str | None = None
    """What it is for; None: for those that compiled it, each of which finds only its own."""


def compiler() -> str:
    """What machine code depends on beside its sources: the versions of Python and numba."""
    return f"python{sys.version_info[0]}.{sys.version_info[1]}{sys.abiflags}-numba{version('numba')}"


@cache
def processors() -> tuple[str, ...]:
    """The processors that this one can run code for, the best first."""
    import llvmlite.binding as llvm

    here = llvm.get_host_cpu_features()
    names = PROCESSORS.get(platform.machine().lower(), ())
    return tuple(name for name in names if all(here.get(feature) for feature in NEEDS.get(name, ())))


@cache
def sources(part: str) -> str:
    """A hash of a part's sources: a kernel is compiled together with those it calls, also from other files, and with
    its constants, and must be compiled again when one of them changes.
    """
    content = hashlib.sha256()
    constants = [path for pattern in CONSTANTS.get(part, ()) for path in PACKAGE.glob(pattern)]
    for path in sorted([*PACKAGE.glob(f"{part}/**/*.py"), *constants, Path(__file__)]):
        content.update(path.read_bytes())
    return content.hexdigest()[:16]


def place(base: Path, processor: str, part: str) -> Path:
    """Where the code of a part for a processor is, in a folder that a package brings."""
    return base / compiler() / processor / part / sources(part)


@cache
def brought(part: str) -> CodeFolder | None:
    """The machine code of a part that the package brings, if it can be run here."""
    if not (BROUGHT / compiler()).is_dir():
        return None
    folders = (CodeFolder(place(BROUGHT, processor, part), processor) for processor in processors())
    return next((folder for folder in folders if folder.path.is_dir()), None)


def why_not_brought() -> str:
    """Why a package that brings machine code must be compiled all the same, in a few words; else nothing."""
    if not BROUGHT.is_dir():
        return ""
    if any((BROUGHT / compiler() / processor).is_dir() for processor in processors()):
        return "; the package's sources were changed since its machine code was made"
    for_others = ", ".join(sorted(path.name for path in BROUGHT.iterdir()))
    return f"; the package's machine code is for {for_others}, not for {compiler()} on this processor"


@cache
def own(part: str) -> CodeFolder | None:
    """The folder of what this user compiled of this version of a part: in the user's cache or in the temporary folder,
    where only this user can write; None if there is none.
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
    folder = base / f"{sources(part)}-{compiler()}"
    if not folder.exists():
        _forget_oldest(base)
    return CodeFolder(folder) if _is_ours(folder) else None


def _is_ours(folder: Path) -> bool:
    """Whether only we can write the folder: compiled code is run from it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.lstat()
    except OSError:
        return False
    private = stat.S_ISDIR(facts.st_mode) and not facts.st_mode & 0o022
    return private and facts.st_uid == os.geteuid() and os.access(folder, os.W_OK)


def _forget_oldest(base: Path) -> None:
    """Keep the machine code of a few versions only."""
    with suppress(OSError):
        versions = sorted((path for path in base.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
        for path in versions[:-KEPT]:
            shutil.rmtree(path, ignore_errors=True)


Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function, signature: str | None = None) -> Function:
    """Compile a function on first use, or at once for a signature.

    Its machine code runs without the interpreter lock, and is kept on disk.
    """
    return _compiled(function, signature)


def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a kernel gives for these arguments."""
    return function(*arguments)


class DirectCalls:
    """The same for kernels that are called many times, each with arguments of the same types and contiguous arrays:
    numba would find out the types of all that is in structures and tuples at every call, which takes longer than many
    a kernel.
    """

    def __init__(self) -> None:
        self.compiled_for: dict[Any, Callable[..., Any]] = {}

    def __call__(self, function: Any, *arguments: Any) -> Any:
        """Call a kernel."""
        compiled = self.compiled_for.get(function)
        if compiled is None:
            is_dispatcher = hasattr(function, "typeof_pyval")  # not where numba is told to compile nothing
            compiled = function.compile(tuple(map(function.typeof_pyval, arguments))) if is_dispatcher else function
            self.compiled_for[function] = compiled
        return compiled(*arguments)


def inner(function: Function) -> Function:
    """Compile a function that only kernels call: it needs no way in from Python, and compiles faster without one."""
    return _compiled(function, None, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _compiled(function: Function, signature: str | None, **options: bool) -> Function:
    import numba

    decorate: Any = numba.njit
    compiled = decorate(nogil=True, error_model="numpy", **options)(function)
    if compiled is not function:
        part = function.__module__.split(".")[1]
        package, user = brought(part), own(part)
        if "no_cpython_wrapper" in options:  # a package brings only what is called from Python
            package, user = None, None if user is None or user.processor else user
        compiled._cache = _kept_code()(function, package, user)
        if signature is not None:
            compiled.compile(signature)
            compiled.disable_compile()
    return cast("Function", compiled)


class BlasIfAsked:
    """Whether numba has BLAS, found out when that is asked."""

    def __bool__(self) -> bool:
        """As numba says it."""
        found: bool = import_module("numba.np.arraymath")._check_blas()
        return found


@cache
def _leave_blas() -> None:
    """Have numba look for BLAS, which no kernel here uses, when it is asked for and not when it loads: what comes with
    it of scipy takes as long as all else of numba. Who calls this holds numba's lock.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    with suppress(AttributeError):  # of a numba that does so itself
        linalg: Any = import_module("numba.np.linalg")
        ensure, linalg.ensure_blas = linalg.ensure_blas, lambda: None
        try:
            arraymath: Any = import_module("numba.np.arraymath")
        finally:
            linalg.ensure_blas = ensure
        arraymath.ensure_blas, arraymath._HAVE_BLAS = ensure, BlasIfAsked()


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
            _leave_blas()
            for file in filter(None, (self._brought, self._own)):
                self._cache_file, self._processor = file
                try:
                    overload = super().load_overload(signature, context)
                except Exception:  # whatever reading damaged files gives
                    self._forget()
                    continue
                if overload is not None:
                    return overload
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


Fields = TypeVar("Fields", bound=tuple[Any, ...])
extending: Any = import_module("numba.extending")
cgutils: Any = import_module("numba.core.cgutils")
types: Any = import_module("numba.core.types")
templates: Any = import_module("numba.core.typing.templates")
arrays: Any = import_module("numba.np.arrayobj")
numpy_support: Any = import_module("numba.np.numpy_support")


class SharedType(types.Type):  # type: ignore[misc]
    """A structure as the compiler sees it: a pointer to words. A field is one word, a whole number; or it is an array:
    where its memory is, then its shape.
    """

    def __init__(self, tuple_name: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = dict(fields)
        self.places: dict[str, int] = {}
        used = 0
        for name, kind in fields:
            self.places[name] = used
            used += 1 + getattr(kind, "ndim", 0)
        super().__init__(name=f"Shared({tuple_name}, {fields})")


class Shared:
    """A structure as Python holds it."""

    def __init__(self, fields: Any) -> None:
        words: list[int] = []
        kinds = []
        for name, value in zip(fields._fields, fields, strict=True):
            kind = types.int64
            if isinstance(value, np.ndarray):
                assert value.flags.c_contiguous, name
                kind = types.Array(numpy_support.from_dtype(value.dtype), value.ndim, "C")
                words += [value.ctypes.data, *value.shape]
            else:
                words.append(int(value))
            kinds.append((name, kind))
        self.fields = fields  # they live as long as the structure
        self.words = np.array(words, np.int64)
        self.address = self.words.ctypes.data
        self._numba_type_ = SharedType(type(fields).__name__, tuple(kinds))

    def __reduce__(self) -> Any:
        """In another process its arrays lie elsewhere."""
        return Shared, (self.fields,)


def shared(fields: Fields) -> Fields:
    """A tuple of arrays and whole numbers as the structure that kernels are given in its place."""
    return cast("Fields", Shared(fields))


extending.register_model(SharedType)(extending.models.OpaqueModel)


@extending.unbox(SharedType)  # type: ignore[untyped-decorator]
def _unbox(_: Any, value: Any, context: Any) -> Any:
    number = context.pyapi.object_getattr_string(value, "address")
    address = context.pyapi.long_as_longlong(number)
    context.pyapi.decref(number)
    return extending.NativeValue(context.builder.inttoptr(address, cgutils.voidptr_t))


@extending.infer_getattr
class _FieldTypes(templates.AttributeTemplate):  # type: ignore[misc]
    key = SharedType

    def generic_resolve(self, struct: SharedType, name: str) -> Any:
        return struct.fields.get(name)


@extending.lower_getattr_generic(SharedType)  # type: ignore[untyped-decorator]
def _field(context: Any, builder: Any, struct: SharedType, value: Any, name: str) -> Any:
    """A field; an array as one of memory that it does not own."""
    kind, place = struct.fields[name], struct.places[name]
    words = builder.bitcast(value, cgutils.intp_t.as_pointer())

    def word(offset: int) -> Any:
        return builder.load(builder.gep(words, [cgutils.intp_t(place + offset)]))

    if not isinstance(kind, types.Array):
        return word(0)
    shape = [word(1 + axis) for axis in range(kind.ndim)]
    itemsize = cgutils.intp_t(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = context.make_array(kind)(context, builder)
    data = builder.inttoptr(word(0), context.get_data_type(kind.dtype).as_pointer())
    arrays.populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()
