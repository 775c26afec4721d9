# SPDX-License-Identifier: Apache-2.0
"""Files and folders that get their names in one step. They are written in a private folder beside their place and
renamed when all is there: what has its name is whole, what is in the way stays unless it may be replaced, and what was
replaced comes back if a run ends half-way. Rows that do not fit in memory are in folders that only we can read. What a
run that was killed left behind is removed by the next one.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anonfit.errors import ReleaseError, RequestError
from anonfit.runtime.process import ending

fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None
MARK, SPILL = ".anonfit-", "anonfit-spill-"
LOCK = "lock"
"""A file in a private folder that is locked as long as the folder is used. Processes of other machines and containers,
which may share the place, cannot be asked by their numbers.
"""
JOURNAL = "journal.json"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_REPLACE, EXCHANGE = 1, 2  # flags of Linux' renameat2
HERE = -100  # AT_FDCWD: paths begin where the process is


def file_hash(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder of our own, where its disk knows locks."""
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


def is_used(folder: Path, process: int) -> bool:
    """Whether a folder is still used: it is locked, or the process that made it runs where there is no lock."""
    if fcntl is None:
        return _is_running(process)
    try:
        with _opened(folder / LOCK) as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return _is_running(process)
    except OSError:  # locked, or not ours
        return True
    return False


def is_ours(folder: Path) -> bool:
    """Whether a folder, if it is still there, is of this user: what others left is theirs to remove."""
    with suppress(FileNotFoundError):
        return folder.lstat().st_uid == os.geteuid()
    return False


def _is_running(process: int) -> bool:
    """Whether there is a process of this number; one that we may not ask counts as running."""
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


@contextmanager
def _opened(path: Path, how: int = 0) -> Iterator[int]:
    """A file to lock. Somebody may have put a link or a pipe in its place, which is neither followed nor waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | how, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Nobody else gives or takes names at this place meanwhile. The file that is locked goes at the end."""
    path = target.parent / f".{target.name}{MARK}{LOCK}"
    with ExitStack() as stack:
        while fcntl is not None:
            handle = stack.enter_context(_opened(path, os.O_CREAT))
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError:  # a disk without locks
                break
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), path.lstat()):
                    break
            # Who had it before has removed it: it locks nobody out.
        stack.callback(_removed, path)
        yield


def _removed(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _abandoned(place: Path, before: str, mark: str) -> Iterator[Path]:
    """Folders of ours in a place, named by a mark and a process, that nobody uses any more."""
    for folder in place.glob(f"{before}{mark}*"):
        process = folder.name.rpartition(mark)[2].partition("-")[0]
        if process.isdigit() and is_ours(folder) and not is_used(folder, int(process)):
            yield folder


def sweep_spill(place: Path) -> None:
    """Remove the rows that runs which were killed left in a place."""
    for folder in _abandoned(place, "", SPILL):
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def spill_folder(place: Path | None) -> Iterator[Path]:
    """A folder of our own in a place (without one: where the system keeps temporary files), removed at the end."""
    parent = Path(tempfile.gettempdir()) if place is None else place
    folder = parent / f"{SPILL}{os.getpid()}-{secrets.token_hex(8)}"
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


@contextmanager
def workplace(target: Path) -> Iterator[Path]:
    """A folder beside a place that only we can read, removed at the end. A failure to write there says so."""
    folder = target.parent / f".{target.name}{MARK}{os.getpid()}-{secrets.token_hex(4)}"
    with ExitStack() as stack:
        stack.enter_context(ending())
        try:
            with _alone(target):
                # What runs of ours that were killed left goes, once what they had replaced is back.
                for left in _abandoned(target.parent, f".{glob.escape(target.name)}", MARK):
                    _take_back(left)
                    shutil.rmtree(left, ignore_errors=True)
                folder.mkdir(mode=0o700)
                stack.callback(_leave, folder)
                stack.enter_context(locked(folder))
            yield folder
        except OSError as error:
            raise _write_error(error, target) from None


def _leave(folder: Path) -> None:
    """Remove a working folder, unless there is something in it that is still to be put back."""
    if not (folder / JOURNAL).exists():
        shutil.rmtree(folder, ignore_errors=True)


def _write_error(error: OSError, target: Path) -> Exception:
    """The error that says why a place cannot be written; an error about something else stays as it is."""
    if isinstance(error, FileExistsError):
        return ReleaseError(taken(error.filename))
    if error.errno in FULL:
        return ReleaseError(
            f"{target} could not be written: the disk is full ({error.strerror}), and nothing of it is left; free some "
            "space, or choose another place."
        )
    if error.filename is not None and os.fsdecode(error.filename).startswith(str(target.parent)):
        return ReleaseError(f"{target} could not be written ({error.strerror}); choose another place.")
    return error


def taken(target: Path | str) -> str:
    """What is said of a name that is taken."""
    return f"{target} is already there; choose another place, or allow to replace it (--replace, replace=True)."


@contextmanager
def whole_file(path: Path, *, replace: bool = True) -> Iterator[Path]:
    """A file to write in the stead of another, which gets that name when it is whole."""
    place = Path(os.path.realpath(path))
    with workplace(place) as folder:
        new = folder / place.name
        yield new
        with suppress(FileNotFoundError):
            new.chmod(place.stat().st_mode & 0o777)
        sync(new)
        if replace:
            new.replace(place)
        else:
            _rename_new(new, place)


def write_file(path: Path, text: str, *, replace: bool = True, mode: int = 0o666) -> None:
    """Write a file that is whole or not there; one that was there keeps its mode."""
    with whole_file(path, replace=replace) as new:
        write_new(new, text, mode)


def write_new(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a new file, on the disk when this returns."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def give_names(folder: Path, places: Mapping[str, Path], *, replace: bool) -> None:
    """Give the finished entries of a working folder their names beside it: all of them, or none. The last is the one
    that counts: as long as it has not got its name, the others are taken back. An entry that is not there takes away
    what has its name. Without `replace` a name that is taken is a FileExistsError.
    """
    *_, last = places.values()
    with _alone(last):
        journal = [
            (name, place.name, _known_by(folder / name), os.path.lexists(place)) for name, place in places.items()
        ]
        for place in places.values() if not replace else ():
            _refuse_taken(place)
        try:
            write_new(folder / JOURNAL, json.dumps(journal))
            sync(folder)
        except BaseException:  # no name was given yet, so there is nothing to put back
            (folder / JOURNAL).unlink(missing_ok=True)
            raise
        try:
            for name, place in places.items():
                _name(folder / name, place, replace=replace)
        except BaseException:
            _take_back(folder)
            raise
        with suppress(OSError):
            (folder / JOURNAL).unlink()
            sync(last.parent)


def _name(entry: Path, place: Path, *, replace: bool) -> None:
    """Give an entry its name; what may be replaced is then in its stead."""
    if not os.path.lexists(entry):
        if os.path.lexists(place):
            place.rename(entry)
    elif replace and os.path.lexists(place):
        _exchange(entry, place)
    else:
        _rename_new(entry, place)


def _rename_new(source: Path, target: Path) -> None:
    """Rename to a name that is free; who has it first keeps it."""
    if _renamed(source, target, NO_REPLACE):
        return
    _refuse_taken(target)
    source.rename(target)


def _refuse_taken(place: Path) -> None:
    if os.path.lexists(place):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))


def _exchange(entry: Path, place: Path) -> None:
    """Exchange two names in one step; where the system has none, what was replaced waits beside the entry."""
    if _renamed(entry, place, EXCHANGE):
        return
    aside = _aside(entry)
    place.rename(aside)
    entry.rename(place)
    aside.rename(entry)


def _aside(entry: Path) -> Path:
    return entry.with_name(f"{entry.name}.replaced")


@cache
def _renameat2() -> Any:
    with suppress(OSError, TypeError):
        return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return None


def _renamed(source: Path, target: Path, how: int) -> bool:
    """Rename by Linux' renameat2; False where the system or the disk does not know it."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(HERE, os.fsencode(source), HERE, os.fsencode(target), how) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(target))


def _known_by(path: Path) -> str | None:
    """What a file, or a release folder by its manifest, is known by; None if it is not there."""
    try:
        return file_hash(path / "manifest.json" if path.is_dir() and not path.is_symlink() else path)
    except OSError:
        return None


def _take_back(folder: Path) -> None:
    """Take back the names that a run gave which did not come to give the last."""
    try:
        journal = json.loads((folder / JOURNAL).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no name was given yet, or all were
        return
    for name, place_name, _, _ in journal:
        aside, place = _aside(folder / name), folder.parent / place_name
        if os.path.lexists(aside):
            aside.rename(folder / name if os.path.lexists(place) else place)
    *others, (last, _, known_by, _) = journal
    if _known_by(folder / last) == known_by:  # else it has its name: what is here is what it replaced
        for name, place_name, known_by, had_place in others:
            place, replaced = folder.parent / place_name, folder / name
            if _known_by(place) == known_by and had_place and os.path.lexists(replaced):
                replaced.replace(place)
            elif _known_by(place) == known_by and not had_place:
                place.unlink(missing_ok=True)
    (folder / JOURNAL).unlink()
