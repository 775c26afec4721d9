# SPDX-License-Identifier: Apache-2.0
"""The demands on sensitive columns recounted from a released table in plain Python: the definitions, and nothing else."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import polars as pl

TIE = 1e-9
Values = Sequence[Any]
"""The value of each person; None where it is missing."""


def groups_of(table: pl.DataFrame, names: Sequence[str], column: str, count: str | None = None) -> list[Values]:
    """The values of a column in every group that the quasi-identifiers make; a row stands for `count` persons."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in table.rows(named=True):
        times = row[count] if count else 1
        found.setdefault(tuple(row[name] for name in names), []).extend([row[column]] * times)
    return list(found.values())


def _share(values: Values, value: Any) -> float:
    return sum(one == value for one in values) / len(values)


def _moved(group: Values, whole: Values, values: Iterable[Any]) -> float:
    """How much larger the share of some values is in a group than in the whole table."""
    return sum(_share(group, value) - _share(whole, value) for value in values)


def equal_distance(group: Values, whole: Values) -> float:
    return sum(abs(_moved(group, whole, [value])) for value in set(whole)) / 2


def ordered_distance(group: Values, whole: Values, order: Sequence[Any] | None = None) -> float:
    known = sorted({value for value in whole if value is not None}, key=order.index if order else None)
    ranked = [None] * (None in whole) + known
    if len(ranked) == 1:
        return 0.0
    here, everywhere = Counter(group), Counter(whole)
    moves, below = [], 0.0
    for value in ranked[:-1]:
        below += here[value] / len(group) - everywhere[value] / len(whole)
        moves.append(abs(below))
    return sum(moves) / (len(ranked) - 1)


def _leaves(tree: Mapping[str, Any]) -> list[Any]:
    return [leaf for child in tree["children"] for leaf in _leaves(child)] if tree.get("children") else [tree["name"]]


def _height(tree: Mapping[str, Any]) -> int:
    return 1 + max(_height(child) for child in tree["children"]) if tree.get("children") else 0


def hierarchical_distance(group: Values, whole: Values, tree: Mapping[str, Any]) -> float:
    if None in whole:
        tree = {**tree, "children": [{"name": None}, *tree["children"]]}

    def cost(node: Mapping[str, Any]) -> float:
        if not node.get("children"):
            return 0.0
        extras = [_moved(group, whole, _leaves(child)) for child in node["children"]]
        up, down = sum(one for one in extras if one > 0), -sum(one for one in extras if one < 0)
        return _height(node) / _height(tree) * min(up, down) + sum(cost(child) for child in node["children"])

    return cost(tree)


def _deviations(group: Values) -> tuple[Fraction, int]:
    """The exact sum of squared deviations of the known numbers, and how many there are."""
    known = [Fraction(value) for value in group if value is not None]
    if not known:
        return Fraction(), 0
    mean = sum(known, Fraction()) / len(known)
    return sum(((value - mean) ** 2 for value in known), Fraction()), len(known)


def holds(group: Values, whole: Values, asked: Mapping[str, Any], **declared: Any) -> bool:
    """Whether a group holds what is asked of its column, given the values of all persons and what is declared."""
    counts = sorted(Counter(group).values(), reverse=True)
    model = asked["model"]
    if model == "distinct-l":
        return len(counts) >= asked["l"]
    if model == "entropy-l":
        entropy = -sum(one / len(group) * math.log(one / len(group)) for one in counts)
        return entropy >= math.log(asked["l"]) - TIE
    if model == "recursive-cl":
        return counts[0] < asked["c"] * sum(counts[asked["l"] - 1 :])
    if model == "t-closeness":
        distance = asked.get("distance", "equal")
        if distance == "hierarchical":
            return hierarchical_distance(group, whole, declared["tree"]) <= asked["t"] + TIE
        found = (
            equal_distance(group, whole)
            if distance == "equal"
            else ordered_distance(group, whole, declared.get("order"))
        )
        return found <= asked["t"] + TIE
    if model in ("alpha-k", "max_confidence"):
        return counts[0] / len(group) <= asked["alpha"] + TIE
    if model == "beta-likeness":
        for value in set(whole):
            share = _share(whole, value)
            bound = min(asked["beta"], -math.log(share)) if asked.get("enhanced") else asked["beta"]
            if (_share(group, value) - share) / share > bound + TIE:
                return False
        return True
    if model == "delta-disclosure":
        return all(
            value in group and abs(math.log(_share(group, value) / _share(whole, value))) < asked["delta"] + TIE
            for value in set(whole)
        )
    total, known = _deviations(group)
    if model == "squared-error":
        return float(total) >= asked["error"] * (1 - TIE)
    assert model == "variance"
    return float(total) / max(known, 1) >= asked["variance"] * (1 - TIE)
