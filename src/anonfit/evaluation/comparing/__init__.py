# SPDX-License-Identifier: Apache-2.0
"""Releases side by side: what was asked of each, what risk is left, how useful it is, and what they tell together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anonfit.evaluation.comparing.comparison import Comparison as Comparison
    from anonfit.evaluation.comparing.comparison import compare as compare

__all__ = ["Comparison", "compare"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from anonfit.evaluation.comparing import comparison

    return getattr(comparison, name)
