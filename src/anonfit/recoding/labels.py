# SPDX-License-Identifier: Apache-2.0
"""The texts of labels (docs/labels.md). Only writing: the audit reads labels with a parser of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

__all__ = [
    "EVERYTHING",
    "MISSING",
    "NOT_MISSING",
    "interval_label",
    "name_label",
    "only_name_label",
    "set_label",
    "with_missing",
]

EVERYTHING = "*"
MISSING = "missing"
NOT_MISSING = "not missing"
OR_MISSING = "missing or "

_UNSAFE = re.compile(r'^$|^\s|\s$|[,"{}\x00-\x1f\x7f-\x9f\u2028\u2029]|^[\[<≥*]|^missing or ')

_INTERVAL = re.compile(r'(\[[^,"{}\x00-\x1f]+, [^,"{}\x00-\x1f]+[)\]])|([<≥] [^,"{}\x00-\x1f]*[^,"{}\s\x00-\x1f])')


def name_label(name: str) -> str:
    """A name as it is, or as a JSON string where it could be misread."""
    if _UNSAFE.search(name) or name in (MISSING, NOT_MISSING):
        return json.dumps(name, ensure_ascii=False)
    return name


def only_name_label(name: str) -> str:
    """A name that stands alone. One that is an interval stands as it is: no other nominal label begins like it."""
    return name if _INTERVAL.fullmatch(name) else name_label(name)


def set_label(names: Iterable[str]) -> str:
    """A set of names, each written as `name_label` writes it."""
    return "{" + ", ".join(names) + "}"


def interval_label(low: str | None, high: str | None, *, closed: bool = False) -> str:
    """A range of ordered values; None is an open end, and a closed range holds its upper end."""
    if low is None:
        return NOT_MISSING if high is None else f"< {high}"
    if high is None:
        return f"≥ {low}"
    if closed and low == high:
        return low
    return f"[{low}, {high}{']' if closed else ')'}"


def with_missing(label: str) -> str:
    """A label to which missing values are added."""
    return OR_MISSING + label
