# SPDX-License-Identifier: Apache-2.0
"""The preset HIPAA Safe Harbor, 45 CFR 164.514(b)(2), as edits of a spec: what leads to a person is left out, of dates
the year is kept, ages above 89 stand together. What cannot be done by an edit becomes a decision that is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, TypeAlias

from anonfit.tables.profile_columns import has_word, meaning_of
from anonfit.tables.schema import Role
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_builders import from_cuts

OLDEST = 89
"""Ages above it stand together."""
FIRST_YEAR, LAST_YEAR = 1900, 2050
WIDTHS = (5, 10, 20, 40, 80)
"""Years of the levels above single ones."""
LEADING = (
    "e-mail addresses",
    "web addresses",
    "network addresses",
    "bank accounts",
    "social security numbers",
    "national identity numbers",
    "telephone numbers",
    "names of people",
    "street addresses",
    "free text",
)
"""Shapes of values that are among the eighteen identifiers, or may hold one."""
LEFT_OUT = (Role.IDENTIFIER, Role.ENTITY)

Act: TypeAlias = Literal["leave_out", "years", "births", "ages", "place", "raw_date", "raw_age"]
OPEN: tuple[Act, ...] = ("place", "raw_date", "raw_age")
"""What only a person can decide."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What Safe Harbor asks of a column."""

    column: str
    act: Act
    is_date: bool = False


def rules(columns: Mapping[str, Mapping[str, Any]], seen: Mapping[str, Mapping[str, Any]]) -> Iterator[Rule]:
    """What is asked of which columns, by their names and by what was seen of their values."""
    for name, held in columns.items():
        looked, meaning = seen.get(name, {}), meaning_of(name)
        says, role = (meaning.says if meaning else ""), held.get("role")
        kind = held.get("type") or looked.get("type")
        is_known = role == Role.QUASI_IDENTIFIER
        if role in LEFT_OUT:
            continue
        if (meaning is not None and meaning.role == Role.IDENTIFIER) or looked.get("shape") in LEADING:
            yield Rule(name, "leave_out")
        elif has_word(name, "places") or has_word(name, "coordinates"):
            yield Rule(name, "place")
        elif kind == "date":
            yield Rule(name, ("births" if says == "a birth" else "years") if is_known else "raw_date", is_date=True)
        elif kind == "continuous" and says in ("a birth", "an age"):
            yield Rule(name, ("births" if says == "a birth" else "ages") if is_known else "raw_age")


def hierarchy_of(rule: Rule, today: date) -> Taxonomy | None:
    """The hierarchy whose lowest level is the finest that may be released; none where another edit is due."""
    if rule.act == "ages":
        return from_cuts(_levels(1, OLDEST + 1))
    if rule.act not in ("years", "births"):
        return None
    levels = _levels(today.year - OLDEST if rule.act == "births" else FIRST_YEAR, LAST_YEAR)
    if not rule.is_date:
        return from_cuts(levels)
    tree = from_cuts([[date(year, 1, 1) for year in level] for level in levels]).to_tree()
    _name_years(tree)
    return Taxonomy.from_tree(tree)


def _levels(first: int, last: int) -> list[list[int]]:
    """Cut points from year to year of an age or of the calendar, and those of wider and wider levels."""
    levels = [list(range(first, last + 1))]
    levels += [[point for point in levels[0] if point % width == 0] for width in WIDTHS]
    return [level for level in levels if level]


def _name_years(part: dict[str, Any]) -> None:
    """Call the leaves of a calendar by their years, but for those of all time before and after."""
    for child in part.get("children", ()):
        _name_years(child)
    if "children" not in part and part["name"].startswith("["):
        part["name"] = part["name"][1:5]
