# SPDX-License-Identifier: Apache-2.0
"""Where machine code is kept: beside the package, which brings what was compiled when it was built, for every processor
of a kind; and in a folder of the user's, for what had to be compiled here. Both are found by the content of the sources
that were compiled, wherever these lie.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

KEPT = 3
"""Versions whose machine code is kept."""
CONSTANTS = {"engines": ("tables/schema.py", "criteria/targets.py", "criteria/objectives.py", "privacy/*.py")}
"""Where kernels of a part have constants of others from: these are compiled into the machine code."""
PROCESSORS = {"x86_64": ("x86-64-v3", "x86-64"), "aarch64": ("generic",), "arm64": ("generic",)}
"""For each kind of machine the processors, as LLVM calls them, that the package brings code for, the best first."""
NEEDS = {"x86-64-v3": ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")}
"""What a processor must have to run such code, where not every one of its kind has it."""
PACKAGE = Path(__file__).parent.parent
BROUGHT = PACKAGE / "machine_code"
"""The folder that a built package has."""


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
    here = [PACKAGE / "runtime" / name for name in ("compiling.py", "machine_code.py")]
    for path in sorted([*PACKAGE.glob(f"{part}/**/*.py"), *constants, *here]):
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
