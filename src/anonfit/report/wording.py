# SPDX-License-Identifier: Apache-2.0
"""Figures as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["joined", "number_text", "percent", "share_text", "value_text"]

SPACE = "\u00a0"
"""At which no line is broken."""


def value_text(value: Any) -> str:
    """Any figure, or the text that stands where it may not be told."""
    if isinstance(value, Mapping):
        return value_text(next(iter(value.values()), ""))
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(value_text(one) for one in value)
    return "" if value is None else str(value)


def percent(value: float) -> str:
    """A share, with as many digits as it takes not to be 0 or 1 by rounding."""
    digits = 1 if 0.0005 < abs(value) < 0.9995 or abs(value) >= 1 or value == 0 else 3
    return f"{100 * value + 0.0:.{digits}f}{SPACE}%"  # + 0.0: there is no less than nothing in "-0.0"


def share_text(value: Any) -> str:
    """A share of persons, or the text that stands where it may not be told."""
    if isinstance(value, Mapping):
        value = value.get("share", value.get("found", value.get("value", "")))
    return percent(value) if isinstance(value, float) else value_text(value)


def number_text(value: float) -> str:
    """A number with three digits."""
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def joined(names: Sequence[str]) -> str:
    """Names as a sentence has them."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))
