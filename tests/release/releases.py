# SPDX-License-Identifier: Apache-2.0
"""Releases of small tables, and what they say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl

from anonfit.api import Release, anonymize

SECRET = "SECRET4711"


def made(table: dict[str, Any] | pl.DataFrame, k: int = 2, **words: Any) -> Release:
    """A release in which every column without another role is a quasi-identifier."""
    frame = table if isinstance(table, pl.DataFrame) else pl.DataFrame(table)
    others = {name for key in ("insensitive", "sensitive", "targets", "identifiers") for name in words.get(key, ())}
    others |= {words[key] for key in ("entity", "count", "sample_weight") if key in words}
    names = [name for name in frame.columns if name not in others]
    return anonymize(frame, quasi_identifiers=names, k=k, **words)


def said(release: Release, name: str) -> Counter[str]:
    return Counter(release.data[name].to_list())


def smallest(release: Release) -> int:
    return int(release.data.group_by(*release.recoding.quasi_identifiers).len()["len"].min())  # type: ignore[arg-type]
