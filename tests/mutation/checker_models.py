# SPDX-License-Identifier: Apache-2.0
"""The nine models of docs/privacy-models.md, counted plainly. Part of the independent checker: nothing of the package."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from checker_labels import Leaf, Wrong, leaf_of, need, walk_leaves

TOLERANCE = 1e-9
Counts = Mapping[Any, int]  # persons by canonical value
NOTHING: dict[Any, dict[str, int]] = {  # the ends of parameters that the docs leave out: every group meets them
    "distinct-l": {"l": 1}, "entropy-l": {"l": 1}, "recursive-cl": {"l": 1}, "t-closeness": {"t": 1},
    "alpha-k": {"alpha": 1}, "squared-error": {"error": 0}, "variance": {"variance": 0},
}  # fmt: skip


def holds(demand: Mapping[str, Any], group: Counts, table: Counts) -> bool:
    """Whether a group's values meet a demand, beside those of the whole table."""
    model = demand.get("model")
    need(model in MODELS, f"an unknown model: {model}")
    need(all(demand.get(key) != end for key, end in NOTHING.get(model, {}).items()), "a demand that asks nothing")
    return MODELS[model](demand, Counter(group), Counter(table))


def distinct(demand: Mapping[str, Any], group: Counter[Any], _: Counts) -> bool:
    """At least l different values."""
    return len(group) >= demand["l"]


def entropy(demand: Mapping[str, Any], group: Counter[Any], _: Counts) -> bool:
    """ln n - sum c ln c / n is at least ln l."""
    n = group.total()
    found = math.log(n) - sum(c * math.log(c) for c in group.values()) / n
    return found >= math.log(demand["l"]) - TOLERANCE


def recursive(demand: Mapping[str, Any], group: Counter[Any], _: Counts) -> bool:
    """The most frequent value has fewer than c times the persons of the l-th and all rarer ones."""
    counts = sorted(group.values(), reverse=True)
    return counts[0] < Fraction(demand["c"]) * sum(counts[demand["l"] - 1 :])


def alpha(demand: Mapping[str, Any], group: Counter[Any], _: Counts) -> bool:
    """No share above alpha."""
    return max(group.values()) / group.total() <= demand["alpha"] + TOLERANCE


def beta(demand: Mapping[str, Any], group: Counter[Any], table: Counter[Any]) -> bool:
    """No share grows by more than beta times what it is in the table."""
    for value, count in group.items():
        q = table[value] / table.total()
        limit = min(demand["beta"], -math.log(q)) if demand.get("enhanced") else demand["beta"]
        if (count / group.total() - q) / q > limit + TOLERANCE:
            return False
    return True


def delta(demand: Mapping[str, Any], group: Counter[Any], table: Counter[Any]) -> bool:
    """No share of a value of the table is further than delta from the table's, as logarithms."""
    for value, count in table.items():
        if not group[value]:
            return False
        ratio = (group[value] / group.total()) / (count / table.total())
        if abs(math.log(ratio)) > demand["delta"] + TOLERANCE:
            return False
    return True


def closeness(demand: Mapping[str, Any], group: Counter[Any], table: Counter[Any]) -> bool:
    """The earth mover's distance from the table is at most t."""
    values = sorted(table, key=lambda value: (value is not None, value and value[1:]))
    surplus = {v: group[v] / group.total() - table[v] / table.total() for v in values}
    distance = demand.get("distance") or ("equal" if values and values[-1] and values[-1][0] in "tb" else "ordered")
    if distance == "equal":
        found = sum(map(abs, surplus.values())) / 2
    elif distance == "ordered":
        found = ordered([surplus[v] for v in in_order(values, demand.get("order"))])
    else:
        found = hierarchical(surplus, demand["taxonomy"])
    return found <= demand["t"] + TOLERANCE


def in_order(values: list[Any], order: Iterable[str] | None) -> list[Any]:
    """Values in the order of the column, missing first."""
    if order is None:
        return values
    place = {word: number for number, word in enumerate(order)}
    need(all(v is None or v[1] in place for v in values), "a word that is not in the order")
    return sorted(values, key=lambda v: -1 if v is None else place[v[1]])


def ordered(surplus: list[float]) -> float:
    """The work along a line, in steps."""
    found, carried = 0.0, 0.0
    for one in surplus[:-1]:
        carried += one
        found += abs(carried)
    return found / (len(surplus) - 1) if len(surplus) > 1 else 0.0


def hierarchical(surplus: Mapping[Any, float], tree: Mapping[str, Any]) -> float:
    """The work over a taxonomy: at each inner node the smaller of too much and too little, by its height."""
    leaves = list(walk_leaves(tree, set()))
    at: Counter[str | None] = Counter()
    for value, one in surplus.items():
        at[None if value is None else leaf_name(value, leaves)] += one

    def height(node: Mapping[str, Any]) -> int:
        return 1 + max(map(height, node["children"])) if node.get("children") else 0

    def work(node: Mapping[str, Any], root: bool) -> tuple[float, float]:
        """What the node has too much, and the work below and at it."""
        if not node.get("children"):
            return at[node["name"]], 0.0
        below = [work(child, False) for child in node["children"]]
        sums = [extra for extra, _ in below] + ([at[None]] if root else [])
        moved = min(sum(s for s in sums if s > 0), -sum(s for s in sums if s < 0))
        return sum(sums), sum(w for _, w in below) + moved * height(node) / height(tree)

    return work(tree, True)[1]


def leaf_name(value: tuple[str, Any], leaves: list[str]) -> str:
    """The leaf of a value: by name, or by number or date."""
    kind, raw = value
    if kind in "tb":
        name = str(raw).lower() if kind == "b" else raw
        need(name in leaves, "a value that is not in the taxonomy")
        return name
    for name in leaves:
        try:
            leaf: Leaf = leaf_of(name, {"n": "number", "d": "date", "m": "time"}[kind])
        except Wrong:
            continue
        if leaf.holds(float(raw) if kind == "n" else raw):
            return name
    raise Wrong("a value that is not in the taxonomy")


def deviations(group: Counts) -> tuple[Fraction, int]:
    """The squared deviations of the known values from their mean, added up; and how many persons have one."""
    known = {Fraction(v[1]): c for v, c in group.items() if v is not None}
    n = sum(known.values())
    if not n:
        return Fraction(0), 0
    mean = sum(v * c for v, c in known.items()) / n
    return sum(((v - mean) ** 2 * c for v, c in known.items()), Fraction(0)), n


def squares(demand: Mapping[str, Any], group: Counter[Any], table: Counter[Any]) -> bool:
    """The squared deviations add up to at least error."""
    found, n = deviations(group)
    return float(found) >= demand["error"] - n * rounding(table, float(found) / max(n, 1))


def variance(demand: Mapping[str, Any], group: Counter[Any], table: Counter[Any]) -> bool:
    """The squared deviations are at least the variance asked, on average."""
    found, n = deviations(group)
    return (float(found / n) if n else 0.0) >= demand["variance"] - rounding(table, float(found) / max(n, 1))


def rounding(table: Counts, spread: float) -> float:
    """What numbers in fixed point, with steps of a millionth of their range, may be off per person."""
    known = [v[1] for v in table if v is not None]
    step = float(max(known) - min(known)) * 2e-6 if known else 0.0
    return TOLERANCE + 2 * step * math.sqrt(spread) + step**2


MODELS: dict[str, Callable[[Mapping[str, Any], Counter[Any], Counter[Any]], bool]] = {
    "distinct-l": distinct, "entropy-l": entropy, "recursive-cl": recursive, "t-closeness": closeness,
    "alpha-k": alpha, "beta-likeness": beta, "delta-disclosure": delta, "squared-error": squares, "variance": variance,
}  # fmt: skip


def class_of(value: Any, target: Mapping[str, Any], table: Iterable[Any]) -> Any:
    """The class of a target's value: between thresholds, of equal width, or the value itself."""
    if value is None:
        return None
    if target.get("classes"):
        return bisect_right([Fraction(one) for one in target["classes"]], Fraction(value[1]))
    if target.get("equal_width"):
        known = [Fraction(one[1]) for one in table if one is not None]
        low, high, count = min(known), max(known), target["equal_width"]
        return min(int((Fraction(value[1]) - low) * count / (high - low)), count - 1) if high > low else 0
    return value
