# SPDX-License-Identifier: Apache-2.0
"""Work that may be stopped half-way and still is of use: the first interrupt asks it to stop, the second ends it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import TypeAlias

__all__ = ["Stopping", "stoppable", "unstoppable"]

Stopping: TypeAlias = Callable[[], AbstractContextManager[Callable[[], bool]]]
"""Gives, while work is under way, a function that says whether it is to stop."""


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
