# SPDX-License-Identifier: Apache-2.0
"""Association rules that a release tells, and whether they hold in the raw rows too: what others may find in it for
whom it was not made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.errors import MissingPackage
from anonfit.metrics.rule_items import Item

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
ITEMS = 100
"""Items that rules are made of, those that tell most pairs of rows apart: sets of three are many."""


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
    items = _telling(items)
    released = np.stack([item.released for item in items], axis=1)
    raw = np.stack([item.raw for item in items], axis=1)
    found = []
    for one in _mined(released):
        columns = [items[at].column for at in (*one.given, one.then)]
        if len(set(columns)) == len(columns):
            found.append(one)
    ranked = sorted(found, key=lambda one: (-one.told, [items[at].text for at in one.given], items[one.then].text))
    return [_rule(items, released, raw, one.given, one.then) for one in _without_special_cases(ranked)]


def _telling(items: Sequence[Item]) -> list[Item]:
    """The items by which most pairs of rows differ, in their order."""
    shares = np.array([item.released.mean() for item in items])
    kept = np.argsort(-shares * (1 - shares), kind="stable")[:ITEMS]
    return [items[at] for at in sorted(kept.tolist())]


@dataclass(frozen=True, slots=True)
class _Mined:
    """A rule by the numbers of its items, how sure it is, and how much it tells."""

    given: tuple[int, ...]
    then: int
    sure: float
    told: float
    """How many rows more than by chance have both, as a share."""


def _mined(released: NDArray[np.bool_]) -> Iterator[_Mined]:
    """What follows from what."""
    import pandas as pd
    from mlxtend.frequent_patterns import apriori, association_rules

    # Of this library's ways the one whose time depends on items, not on how different rows are.
    sets = apriori(pd.DataFrame(released), min_support=SUPPORT, max_len=WORDS, low_memory=True)
    if not len(sets):
        return
    rules: Any = association_rules(sets, metric="confidence", min_threshold=CONFIDENCE)
    rules = rules[rules["lift"] >= LIFT]
    figures = (rules[name] for name in ("antecedents", "consequents", "confidence", "support", "lift"))
    for given, then, sure, support, lift in zip(*figures, strict=True):
        if len(then) == 1:
            told = round(support - support / lift, 12)
            yield _Mined(tuple(sorted(int(one) for one in given)), int(next(iter(then))), sure, told)


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


def _without_special_cases(rules: Sequence[_Mined]) -> list[_Mined]:
    """The first rules, without those that follow from a simpler one, which is as sure."""
    known = {(one.given, one.then): one.sure for one in rules}
    found: list[_Mined] = []
    for rule in rules:
        simpler = (part for size in range(1, len(rule.given)) for part in combinations(rule.given, size))
        if not any(known.get((part, rule.then), 0.0) >= rule.sure for part in simpler):
            found.append(rule)
        if len(found) == MOST:
            break
    return found
