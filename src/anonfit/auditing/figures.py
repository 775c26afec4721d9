# SPDX-License-Identifier: Apache-2.0
"""Figures that know how many persons they rest on, so that a public report can leave out those about few."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from math import isinf
from typing import Any

__all__ = ["APART", "PERSONS", "Figure", "Share", "few", "plain"]

PERSONS = {"persons": True}  # metadata of a field that is itself a number of persons
APART = {"apart": True}  # metadata of a field that is told in sentences, not among the figures


@dataclass(frozen=True, slots=True)
class Share:
    """Some of all persons (or rows)."""

    persons: int
    of: int

    @property
    def share(self) -> float:
        """The part of the whole, 0 of nothing."""
        return self.persons / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True)
class Figure:
    """A number computed on some persons; `rest` persons are told apart from them by it."""

    value: float
    persons: int
    rest: int = 0


def few(number: int, k: int) -> bool:
    """Whether a number of persons is some, but fewer than k."""
    return 0 < number < k


def plain(value: Any, k: int = 0) -> Any:
    """A tree of dataclasses as JSON-ready values; with k, every figure about fewer than k persons is a text instead."""
    if isinstance(value, Share):
        return _plain_share(value, k)
    if isinstance(value, Figure):
        return f"fewer than {k}" if few(value.persons, k) or few(value.rest, k) else plain(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            one.name: f"fewer than {k}" if hidden else plain(part, k)
            for one in fields(value)
            if "apart" not in one.metadata
            for part in (getattr(value, one.name),)
            for hidden in ("persons" in one.metadata and part is not None and few(part, k),)
        }
    if isinstance(value, (list, tuple)):
        return [plain(part, k) for part in value]
    return "infinite" if isinstance(value, float) and isinf(value) else value  # JSON has no such number


def _plain_share(value: Share, k: int) -> dict[str, Any]:
    if few(value.persons, k):
        return {"persons": f"fewer than {k}", "share": f"fewer than {k} persons"}
    if few(value.of - value.persons, k):
        return {"persons": f"all but fewer than {k}", "share": f"all but fewer than {k} persons"}
    return {"persons": value.persons, "share": value.share}
