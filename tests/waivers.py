# SPDX-License-Identifier: Apache-2.0
"""Sensitive columns of which a test asks nothing."""

from __future__ import annotations

__all__ = ["WAIVED", "waived"]

WAIVED = 'diversity = "none"\nreason = "made-up people"\n'
"""The same in the text of a spec."""


def waived(*names: str) -> dict[str, dict[str, str]]:
    """Columns of which nothing is asked, as the keyword `sensitive` says it."""
    return {name: {"model": "none", "reason": "made-up people"} for name in names}
