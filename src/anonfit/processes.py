# SPDX-License-Identifier: Apache-2.0
"""Whether the process that left something behind is still at work."""

from __future__ import annotations

import os

__all__ = ["is_running"]


def is_running(process: int) -> bool:
    """Whether there is a process of this number; one that we may not ask counts as running."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OSError):
        return True
    return True
