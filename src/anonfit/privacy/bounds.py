# SPDX-License-Identifier: Apache-2.0
"""Parameters in a sentence, shortened so that they stay possible: down where more is impossible, up where less is."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

__all__ = ["at_least", "at_most", "more_than", "plain"]

DIGITS = 4


def plain(number: float) -> str:
    """A number without a needless fraction."""
    return f"{number:.10g}"


def at_most(number: float) -> str:
    """The largest short number that is not above a bound.

    Example:
        >>> at_most(3.73213)
        '3.732'
    """
    return plain(float(_shortened(number, ROUND_FLOOR)))


def at_least(number: float) -> str:
    """The smallest short number that is not below a bound."""
    return plain(float(_shortened(number, ROUND_CEILING)))


def more_than(number: float) -> str:
    """The smallest short number above a bound, also above one that is only rounded below a short number."""
    return plain(float(_shortened(number * (1 + 1e-12), ROUND_FLOOR) + _unit(number)))


def _unit(number: float) -> Decimal:
    """One of the last digit that is shown."""
    return Decimal(1).scaleb(Decimal(number).adjusted() - DIGITS + 1)


def _shortened(number: float, rounding: str) -> Decimal:
    return Decimal(number).quantize(_unit(number), rounding=rounding)
