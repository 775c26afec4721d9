# SPDX-License-Identifier: Apache-2.0
"""Exact numbers and moments out of texts: what the ends of intervals are compared by."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from functools import lru_cache

__all__ = ["moment", "number", "period"]

# The exponent is bounded so that a hostile text cannot ask for a number of a million digits.
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)
_PERIOD = re.compile(r"(\d{4})(?:-Q([1-4])|-(\d\d)(?:-(\d\d))?)?", re.ASCII)
_EPOCH = datetime.date(1970, 1, 1).toordinal()


@lru_cache(maxsize=1 << 16)
def number(text: str) -> Decimal | None:
    """The number a text states, None if it states none."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


@lru_cache(maxsize=1 << 16)
def moment(text: str) -> Decimal | None:
    """The date or time a text states, in seconds since 1970, None if it states none."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    try:
        days = datetime.date.fromisoformat(match[1]).toordinal() - _EPOCH
    except ValueError:
        return None
    hour, minute, second = (int(part or 0) for part in match.group(2, 3, 4))
    if hour > 23 or minute > 59 or second > 59:
        return None
    return days * 86400 + hour * 3600 + minute * 60 + second + Decimal(f"0.{match[5] or 0}")


def period(text: str) -> tuple[Decimal, Decimal] | None:
    """The begin of the year, quarter, month or day a text states and that of the next, None if it states none."""
    match = _PERIOD.fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[3] or 3 * int(match[2] or 1) - 2), int(match[4] or 1)
    months = 0 if match[4] else 1 if match[3] else 3 if match[2] else 12
    years, later = divmod(month - 1 + months, 12)
    try:
        begin = datetime.date(year, month, day).toordinal()
    except ValueError:
        return None
    after = datetime.date.max.toordinal() + 1
    if year + years <= datetime.MAXYEAR:
        after = begin + 1 if match[4] else datetime.date(year + years, later + 1, 1).toordinal()
    return Decimal(begin - _EPOCH) * 86400, Decimal(after - _EPOCH) * 86400
