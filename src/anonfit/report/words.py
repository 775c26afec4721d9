# SPDX-License-Identifier: Apache-2.0
"""Figures and names as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SPACE = "\u00a0"
"""A space at which no line is broken."""


def value_text(value: Any) -> str:
    """Any figure, or the text that stands where it may not be told."""
    if isinstance(value, Mapping):
        return value_text(next(iter(value.values()), ""))
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(value_text(entry) for entry in value)
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


def share_in_words(share: float | None) -> str:
    """A share, or that it may not be told."""
    return "not told" if share is None else percent(share)


def number_text(value: float) -> str:
    """A number with three digits."""
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def shortened(words: str, most: int) -> str:
    """A text of at most so many letters."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def joined(names: Sequence[str]) -> str:
    """Names as a sentence has them."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))


def counted(number: Any, singular: str, plural: str = "") -> str:
    """A number of things, such as `1 selection` or `3 selections`."""
    return f"{value_text(number)} {singular if number == 1 else plural or f'{singular}s'}"
