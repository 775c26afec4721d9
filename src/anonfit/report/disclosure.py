# SPDX-License-Identifier: Apache-2.0
"""The disclosure rule: a figure computed on raw data is told only if it covers at least so many persons, and its
complement none or as many.

`least` is k for what everybody may read. It is 0 for the owner of the data, from whom nothing is hidden.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Disclosed", "disclosed", "few", "may_tell", "told_number", "told_share"]

Disclosed = int | str


def few(persons: int, least: int) -> bool:
    """Whether a number of persons is some, but too few to be told."""
    return 0 < persons < least


def may_tell(persons: int, of: int, least: int) -> bool:
    """Whether a figure may be told that sets some of all persons apart from the others."""
    return not few(persons, least) and not few(of - persons, least)


def disclosed(rows: int, persons: int, k: int) -> Disclosed:
    """A number of rows of the input as it may be told: not exactly where they are of few persons."""
    return f"fewer than {k}" if few(min(rows, persons), k) else rows


def told_number(persons: int, least: int) -> Disclosed:
    """A number of persons."""
    return f"fewer than {least}" if few(persons, least) else persons


def told_share(persons: int, of: int, least: int) -> dict[str, Any]:
    """Some of all persons, in the words in which the audit tells such figures."""
    if few(persons, least):
        return {"persons": f"fewer than {least}", "share": f"fewer than {least} persons"}
    if few(of - persons, least):
        return {"persons": f"all but fewer than {least}", "share": f"all but fewer than {least} persons"}
    return {"persons": persons, "share": persons / of if of else 0.0}
