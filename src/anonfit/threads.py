# SPDX-License-Identifier: Apache-2.0
"""How many threads to use."""

from __future__ import annotations

import os

__all__ = ["thread_count"]


def thread_count(asked: int | None = None) -> int:
    """The threads to use: as asked, or as many as there are cores for this process."""
    if asked is not None:
        return max(1, asked)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
