# SPDX-License-Identifier: Apache-2.0
"""The diversity models word by word over lists of rows, to hold the audit against; and the transport problem that
t-closeness is the solution of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from audit_reference import Row, groups_of, plain
from scipy.optimize import linprog

Counts = dict[Any, int]
Tree = Mapping[str, Any]
TIE = 1e-9


def counts_of(rows: Sequence[Row], name: str, *, entity: str | None, count: str | None) -> Counts:
    """Persons per value: an entity has a value once, a row with a count stands for as many."""
    found: Counter[Any] = Counter()
    seen = set()
    for row in rows:
        value = plain(row[name])
        pair = (plain(row[entity]), value) if entity is not None else None
        if pair is not None and pair in seen:
            continue
        seen.add(pair)
        found[value] += row[count] if count is not None else 1
    return dict(found)


def shares(counts: Counts) -> dict[Any, float]:
    total = sum(counts.values())
    return {value: number / total for value, number in counts.items()}


def entropy(group: Counts) -> float:
    return -sum(p * math.log(p) for p in shares(group).values())


def recursive(group: Counts, least: int) -> float:
    ranked = sorted(group.values(), reverse=True)
    rest = sum(ranked[least - 1 :])
    return ranked[0] / rest if rest else math.inf


def equal_distance(group: Counts, table: Counts) -> float:
    p, q = shares(group), shares(table)
    return sum(abs(p.get(value, 0) - q[value]) for value in q) / 2


def ordered_distance(group: Counts, table: Counts, rank: Callable[[Any], Any]) -> float:
    """`rank` orders the values; missing is below all of them."""
    p, q = shares(group), shares(table)
    values = sorted(q, key=lambda value: (value is not None, 0 if value is None else rank(value)))
    if len(values) == 1:
        return 0.0
    running = total = 0.0
    for value in values[:-1]:
        running += p.get(value, 0) - q[value]
        total += abs(running)
    return total / (len(values) - 1)


def with_missing(tree: Tree) -> Tree:
    """Missing as one more leaf under the root."""
    children = tree.get("children") or [{"name": tree["name"]}]
    return {"name": "root", "children": [*children, {"name": None}]}


def height(tree: Tree) -> int:
    return 1 + max(map(height, tree["children"])) if tree.get("children") else 0


def hierarchical_distance(group: Counts, table: Counts, tree: Tree) -> float:
    tree = with_missing(tree)
    p, q = shares(group), shares(table)
    whole = height(tree)
    costs = []

    def extra(node: Tree) -> float:
        if not node.get("children"):
            return p.get(node["name"], 0.0) - q.get(node["name"], 0.0)
        parts = [extra(child) for child in node["children"]]
        more, fewer = sum(part for part in parts if part > 0), -sum(part for part in parts if part < 0)
        costs.append(height(node) / whole * min(more, fewer))
        return sum(parts)

    extra(tree)
    return sum(costs)


def paths(tree: Tree) -> dict[Any, list[tuple[Any, int]]]:
    """Leaf -> the nodes above it with their heights, the root first."""
    if not tree.get("children"):
        return {tree["name"]: [(id(tree), 0)]}
    below = {leaf: path for child in tree["children"] for leaf, path in paths(child).items()}
    return {leaf: [(id(tree), height(tree)), *path] for leaf, path in below.items()}


def taxonomy_ground(tree: Tree) -> Callable[[Any, Any], float]:
    """How far two leaves are apart: the height of the lowest node above both, by that of the root."""
    tree = with_missing(tree)
    found = paths(tree)

    def ground(one: Any, other: Any) -> float:
        both = [height for (node, height), (there, _) in zip(found[one], found[other], strict=False) if node == there]
        return both[-1] / height(tree)

    return ground


def transport(group: Counts, table: Counts, ground: Callable[[Any, Any], float]) -> float:
    """The least work that moves the group's shares to the table's, by a solver that knows nothing of the models."""
    p, q = shares(group), shares(table)
    values = list(q)
    costs = [ground(one, other) for one in values for other in values]
    size = len(values)
    leaving = np.kron(np.eye(size), np.ones(size))
    coming = np.kron(np.ones(size), np.eye(size))
    sums = [p.get(value, 0.0) for value in values] + [q[value] for value in values]
    return float(linprog(costs, A_eq=np.vstack([leaving, coming]), b_eq=sums).fun)


def likeness(group: Counts, table: Counts, *, enhanced: bool) -> float:
    """The smallest beta that would allow the group."""
    p, q = shares(group), shares(table)
    worst = 0.0
    for value, share in p.items():
        gain = (share - q[value]) / q[value]
        if enhanced and gain > -math.log(q[value]) + TIE:
            return math.inf
        worst = max(worst, gain)
    return worst


def disclosure(group: Counts, table: Counts) -> float:
    p, q = shares(group), shares(table)
    return max(abs(math.log(p[value] / q[value])) if value in p else math.inf for value in q)


def squares(group: Counts) -> tuple[float, int]:
    numbers = {value: number for value, number in group.items() if value is not None}
    known = sum(numbers.values())
    if not known:
        return 0.0, 0
    mean = sum((Fraction(value) * number for value, number in numbers.items()), Fraction(0)) / known
    return float(sum(number * (Fraction(value) - mean) ** 2 for value, number in numbers.items())), known


def figure(
    model: str, group: Counts, table: Counts, asked: Mapping[str, Any], rank: Callable[[Any], Any] = lambda value: value
) -> float:
    """What a model finds in a group."""
    match model:
        case "distinct-l":
            return len(group)
        case "entropy-l":
            return math.exp(entropy(group))
        case "recursive-cl":
            return recursive(group, asked["l"])
        case "t-closeness" if asked["distance"] == "equal":
            return equal_distance(group, table)
        case "t-closeness" if asked["distance"] == "ordered":
            return ordered_distance(group, table, rank)
        case "t-closeness":
            return hierarchical_distance(group, table, asked["taxonomy"])
        case "alpha-k" | "max_confidence":
            return max(shares(group).values())
        case "beta-likeness":
            return likeness(group, table, enhanced=asked.get("enhanced", False))
        case "delta-disclosure":
            return disclosure(group, table)
        case "squared-error":
            return squares(group)[0]
        case "variance":
            total, known = squares(group)
            return total / max(known, 1)
    raise AssertionError(model)


SMALLEST_IS_WORST = ("distinct-l", "entropy-l", "squared-error", "variance")
BOUND = {
    "distinct-l": "l", "entropy-l": "l", "recursive-cl": "c", "t-closeness": "t", "alpha-k": "alpha",
    "beta-likeness": "beta", "delta-disclosure": "delta", "squared-error": "error", "variance": "variance",
}  # fmt: skip


def worst_figure(
    rows: Sequence[Row],
    columns: Sequence[str],
    name: str,
    asked: Mapping[str, Any],
    *,
    entity: str | None = None,
    count: str | None = None,
    rank: Callable[[Any], Any] = lambda value: value,
) -> float:
    """What the audit must find in the worst group."""
    table = counts_of(rows, name, entity=entity, count=count)
    groups = [counts_of(members, name, entity=entity, count=count) for members in groups_of(rows, columns).values()]
    figures = [figure(asked["model"], group, table, asked, rank) for group in groups]
    return min(figures) if asked["model"] in SMALLEST_IS_WORST else max(figures)


def is_met(found: float, asked: Mapping[str, Any]) -> bool:
    """Whether the worst figure is what was asked, with the tolerance of the models."""
    bound = asked[BOUND[asked["model"]]]
    match asked["model"]:
        case "distinct-l":
            return found >= bound
        case "entropy-l":
            return math.log(found) >= math.log(bound) - TIE
        case "recursive-cl":
            return found < bound
        case "delta-disclosure":
            return found < bound + TIE
        case "squared-error" | "variance":
            return found >= bound * (1 - TIE)
    return found <= bound + TIE
