# SPDX-License-Identifier: Apache-2.0
"""How long work says where it is: a callable that is told each stage. Nothing is shown unless a door (CLI, page) asks
for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Stage", "silent"]

Stage: TypeAlias = Callable[[str], None]
"""Told the name of each stage as it begins."""


def silent(_: str) -> None:
    """Say nothing."""
