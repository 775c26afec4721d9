# SPDX-License-Identifier: Apache-2.0
"""How many threads, and how much memory, there are to use."""

from __future__ import annotations

import os
from pathlib import Path

GROUP = Path("/sys/fs/cgroup")
"""Where Linux shows the limits of a container."""


def thread_count(asked: int | None = None) -> int:
    """The threads to use: as asked, or as many as there are cores for this process."""
    if asked is not None:
        return max(1, asked)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def available_memory() -> int:
    """Bytes of memory that are free, or can be had at once; in a container, of what it may use."""
    try:
        used, most = (int((GROUP / f"memory.{name}").read_text(encoding="ascii")) for name in ("current", "max"))
        return max(min(most - used, _free_memory()), 0)
    except (OSError, ValueError):  # no container, or one without a limit
        return _free_memory()


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
