# SPDX-License-Identifier: Apache-2.0
"""A slow and obvious audit over lists of dictionaries, to hold the real one against."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def plain(value: Any) -> Any:
    """Missing of any kind is None; -0.0 is 0.0."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    return value + 0.0 if isinstance(value, float) else value


def groups_of(rows: Sequence[Row], columns: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(plain(row[column]) for column in columns)].append(row)
    return found


def persons(rows: Sequence[Row], *, entity: str | None, count: str | None) -> int:
    if entity is not None:
        return len({plain(row[entity]) for row in rows})
    return sum(row[count] for row in rows) if count is not None else len(rows)


def measure(
    rows: Sequence[Row],
    columns: Sequence[str],
    raw: Sequence[str],
    *,
    entity: str | None = None,
    count: str | None = None,
) -> dict[str, Any]:
    """What the audit must find."""
    whom = {"entity": entity, "count": count}
    groups = groups_of(rows, columns)
    sizes = {key: persons(members, **whom) for key, members in groups.items()}
    everyone = sum(sizes.values())
    found: dict[str, Any] = {
        "groups": len(groups),
        "k": min(sizes.values(), default=None),
        "sizes": sorted(sizes.values()),
    }
    found["average"] = len(groups) / everyone if everyone else 0.0
    found["raw"] = {}
    # Rows with a star in every column were suppressed by somebody: they are no class, unless all are.
    stars = {key for key in groups if key and all(value == "*" for value in key)}
    classes = {key: members for key, members in groups.items() if key not in stars or stars == set(groups)}
    kept = [row for members in classes.values() for row in members]
    for name in raw:
        certain = likely = 0
        smallest = l_value = None
        for key, members in classes.items():
            by_value = [persons(same, **whom) for same in groups_of(members, [name]).values()]
            most = max(by_value)
            certain += sizes[key] if most == sizes[key] else 0
            likely += sizes[key] if most * 10 >= sizes[key] * 9 else 0
            smallest = min(by_value) if smallest is None else min(smallest, *by_value)
            l_value = len(by_value) if l_value is None else min(l_value, len(by_value))
        distinct = len(groups_of(kept, [name])) / len(kept) if kept else 0.0
        found["raw"][name] = (certain, likely, smallest, l_value, distinct)
    return found
