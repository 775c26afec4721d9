# SPDX-License-Identifier: Apache-2.0
"""What the process has and hears: its threads and memory, the callback that is called with each stage of long work, and
requests to stop.

Nothing is shown of stages unless a door (CLI, page) asks for it. Some work is of use half-way: the first interrupt asks
it to stop, the second ends it. And work that has rows on the disk removes them when it is asked to end.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, TypeAlias, TypeVar

GROUPS = Path("/sys/fs/cgroup")
"""Where Linux shows control groups, by which containers and services are limited."""
OWN_GROUPS = Path("/proc/self/cgroup")

Result = TypeVar("Result")


def thread_count(asked: int | None = None) -> int:
    """The threads to use: as asked, or as many as there are cores for this process."""
    if asked is not None:
        return max(1, asked)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def side_by_side(
    pool: ThreadPoolExecutor | None, threads: int, task: Callable[..., Result], *arguments: Iterable[Any]
) -> list[Result]:
    """The results of a task for each of its arguments. The thread that asks works, too: it has a core already, while
    two that are woken at once may have to share one for longer than a short task takes.
    """
    waiting = list(enumerate(zip(*arguments, strict=True)))[::-1]
    results: dict[int, Result] = {}

    def work() -> None:
        while True:
            try:
                number, given = waiting.pop()
            except IndexError:
                return
            results[number] = task(*given)

    others = [] if pool is None else [pool.submit(work) for _ in range(min(threads, len(waiting)) - 1)]
    work()
    for other in others:
        other.result()
    return [results[number] for number in sorted(results)]


def available_memory() -> int:
    """Bytes of memory that are free, or can be had at once; in a container, of what it may use."""
    return max(min([_free_memory(), *_left_of_limits()]), 0)


def _left_of_limits() -> Iterator[int]:
    """What is left of the limit of each control group that the process is in, of both versions; groups lie within
    others, and a container may see only the outermost of its own.
    """
    try:
        lines = OWN_GROUPS.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):  # no Linux
        return
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = GROUPS / "memory" if controllers else GROUPS
        most, used, cached = _OF_VERSION[bool(controllers)]
        own = root / place.strip("/")
        for folder in (own, *own.parents[: len(own.parts) - len(root.parts)]):
            with suppress(OSError, ValueError):  # not there, or "max": no limit
                limit, now = (int((folder / name).read_text(encoding="ascii")) for name in (most, used))
                yield limit - now + _forgettable(folder / "memory.stat", cached)


def _forgettable(statistics: Path, cached: str) -> int:
    """Of what a group uses, the files that were read: they may be forgotten. Not every system says how many."""
    with suppress(OSError, ValueError, IndexError):
        return int(statistics.read_text(encoding="ascii").split(f"\n{cached} ")[1].split()[0])
    return 0


_OF_VERSION = {
    False: ("memory.max", "memory.current", "inactive_file"),
    True: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""For the second and the first version of control groups, the limit, what is used, and what of it are files."""


def _free_memory() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return 4 * 2**30


Stage: TypeAlias = Callable[[str], None]  # called with the name of each stage as it begins


def silent(_: str) -> None:
    """Say nothing."""


Stopping: TypeAlias = Callable[[], AbstractContextManager[Callable[[], bool]]]
"""Gives, while work is under way, a function that says whether it is to stop."""
REQUESTS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals that ask to end: by somebody, or because the terminal is gone. The exit status is 128 more."""
_at_work: list[object] = []


@contextmanager
def ending() -> Iterator[None]:
    """Have a request to end that nobody else answers leave by all `finally`, with the usual status, in place of ending
    the process on the spot. Only the main thread can answer.
    """

    def answer(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    for request in REQUESTS if current_thread() is main_thread() else ():
        if signal.getsignal(request) is signal.SIG_DFL:
            signal.signal(request, answer)
    work = object()
    _at_work.append(work)
    try:
        yield
    finally:
        _at_work.remove(work)
        for request in REQUESTS if not _at_work and current_thread() is main_thread() else ():
            if getattr(signal.getsignal(request), "__qualname__", "") == answer.__qualname__:
                signal.signal(request, signal.SIG_DFL)


@contextmanager
def unstoppable() -> Iterator[Callable[[], bool]]:
    """An interrupt ends the work as it ends any other: half of it would be of no use."""
    yield lambda: False


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether an interrupt (Ctrl-C) came. Only the main thread hears of interrupts."""
    is_heard = False

    def heard(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_heard
        is_heard = True
        signal.signal(signal.SIGINT, before)

    if current_thread() is not main_thread() or not callable(before := signal.getsignal(signal.SIGINT)):
        yield lambda: False
        return
    signal.signal(signal.SIGINT, heard)
    try:
        yield lambda: is_heard
    finally:
        signal.signal(signal.SIGINT, before)
