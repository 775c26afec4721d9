# SPDX-License-Identifier: Apache-2.0
"""Association rules that a release tells, and whether they hold in the raw rows too: what others may find in it for
whom it was not made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import MissingPackage
from anonfit.utility.rule_items import Item

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CONFIDENCE", "SUPPORT", "Rule", "find_rules", "require_mining"]

SUPPORT = 0.02
"""The share of rows that a rule is about, at least."""
CONFIDENCE = 0.8
LIFT = 1.2
"""So many times as often as everywhere; rules of less are about what is frequent anyway."""
MOST = 30
ROWS = 20_000
"""Rows in which rules are looked for; more are drawn from."""
WORDS = 3
"""Items of a rule."""


@dataclass(frozen=True, slots=True)
class Rule:
    """If a row has all of the first, it has the second: how many rows have the first, and how many both, in the release
    and among the raw rows.
    """

    given: tuple[str, ...]
    then: str
    lift: float
    rows: int
    released: tuple[int, int]
    raw: tuple[int, int]

    @property
    def holds(self) -> bool:
        """Whether it is a rule of the raw rows too."""
        given, both = self.raw
        return both >= SUPPORT * self.rows and given > 0 and both >= CONFIDENCE * given


def require_mining() -> None:
    """Refuse where the package is missing."""
    try:
        import mlxtend.frequent_patterns  # noqa: F401
    except ModuleNotFoundError:
        raise MissingPackage("mlxtend", "rules", "workload.rules") from None


def find_rules(items: Sequence[Item]) -> list[Rule]:
    """The rules that released rows tell, those first that say most.

    Args:
        items: What rows may have.

    Returns:
        Rules between different columns with one thing that follows, at most thirty.
    """
    require_mining()
    if not items or not len(items[0].released):
        return []
    released = np.stack([item.released for item in items], axis=1)
    raw = np.stack([item.raw for item in items], axis=1)
    found = []
    for given, then in _mined(released):
        columns = [items[at].column for at in (*given, then)]
        if len(set(columns)) == len(columns):
            found.append(_rule(items, released, raw, given, then))
    ranked = sorted(found, key=lambda one: (-_told(one), one.given, one.then))
    return _without_special_cases(ranked)[:MOST]


def _mined(released: NDArray[np.bool_]) -> Iterator[tuple[tuple[int, ...], int]]:
    """What follows from what, by the numbers of items."""
    import pandas as pd
    from mlxtend.frequent_patterns import association_rules, fpgrowth

    sets = fpgrowth(pd.DataFrame(released), min_support=SUPPORT, max_len=WORDS)
    if not len(sets):
        return
    rules: Any = association_rules(sets, metric="confidence", min_threshold=CONFIDENCE)
    for row in rules[rules["lift"] >= LIFT].itertuples(index=False):
        given, then = row[0], row[1]
        if len(then) == 1:
            yield tuple(sorted(int(one) for one in given)), int(next(iter(then)))


def _rule(
    items: Sequence[Item], released: NDArray[np.bool_], raw: NDArray[np.bool_], given: tuple[int, ...], then: int
) -> Rule:
    counts = []
    for rows in (released, raw):
        has = rows[:, list(given)].all(axis=1)
        counts.append((int(has.sum()), int((has & rows[:, then]).sum())))
    given_rows, both = counts[0]
    everywhere = int(released[:, then].sum()) / len(released)
    return Rule(
        tuple(items[at].text for at in given),
        items[then].text,
        both / given_rows / everywhere,
        len(released),
        counts[0],
        counts[1],
    )


def _told(rule: Rule) -> float:
    """How many rows more than by chance have both, as a share."""
    given, both = rule.released
    return (both - both / rule.lift) / rule.rows if given else 0.0


def _without_special_cases(rules: Sequence[Rule]) -> list[Rule]:
    """The rules without those that follow from a simpler one, which is as sure."""
    found: list[Rule] = []
    for rule in rules:
        sure = rule.released[1] / rule.released[0]
        simpler = (
            one
            for one in rules
            if one.then == rule.then and set(one.given) < set(rule.given) and one.released[1] / one.released[0] >= sure
        )
        if next(simpler, None) is None:
            found.append(rule)
    return found
