# SPDX-License-Identifier: Apache-2.0
"""Spans by the definition: every public combination is tried under every combination of private values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

Row = dict[str, Any]


def spans(
    outcome: Callable[[Row], Any],
    rows: Sequence[Row],
    *,
    public: Sequence[str],
    private: Mapping[str, Sequence[Any]],
    public_class: str | None = None,
) -> list[frozenset[Any]]:
    """The span of every row (Definition 5); with a public class, its bins are those of the row's own class."""
    found = []
    for row in rows:
        known = {name: row[name] for name in public}
        reached = {outcome({**known, **dict(zip(private, some, strict=True))}) for some in product(*private.values())}
        found.append(frozenset((one, row[public_class]) if public_class else one for one in reached))
    return found


def sizes(found: Sequence[frozenset[Any]]) -> list[int]:
    """How many rows have each span (Definition 7)."""
    return sorted(Counter(found).values())


def exposed(found: Sequence[frozenset[Any]], classes: Sequence[Any], confidence: float) -> int:
    """The rows in spans of which so large a part has one class."""
    members: dict[frozenset[Any], list[Any]] = defaultdict(list)
    for span, value in zip(found, classes, strict=True):
        members[span].append(value)
    most = {span: max(Counter(values).values()) for span, values in members.items()}
    return sum(len(values) for span, values in members.items() if most[span] >= confidence * len(values) - 1e-9)
