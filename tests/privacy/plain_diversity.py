# SPDX-License-Identifier: Apache-2.0
"""The diversity models in the words of their definitions: persons one by one, exact fractions, no regard to speed. And
random sensitive columns with groups to ask about.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np

from anonfit.privacy.models import SensitiveColumn
from anonfit.tables.scales import fixed_point
from anonfit.tables.taxonomy import Taxonomy
from strategies import random_shape, taxonomy_of

TIE = Fraction(1, 10**9)


def people(counts: Any) -> list[int]:
    """One value for each person."""
    return [value for value, count in enumerate(counts) for _ in range(int(count))]


def share(values: list[int], value: int) -> Fraction:
    return Fraction(sum(each == value for each in values), len(values))


def leaf_of(column: SensitiveColumn, code: int) -> int:
    """The taxonomy node of a code."""
    assert column.taxonomy is not None
    position = code - column.has_missing if column.leaves is None else int(column.leaves[code])
    return column.taxonomy.leaf_nodes[position]


def height(taxonomy: Taxonomy, node: int) -> int:
    return max((1 + height(taxonomy, child) for child in taxonomy.children(node)), default=0)


def hierarchical(column: SensitiveColumn, excess: list[Fraction]) -> Fraction:
    """The recursion of Li, Li and Venkatasubramanian, with missing as one more leaf under the root."""
    taxonomy = column.taxonomy
    assert taxonomy is not None
    top = max(height(taxonomy, 0), 1)
    known = range(int(column.has_missing), column.size)

    def extra(node: int) -> Fraction:
        own = sum((excess[code] for code in known if leaf_of(column, code) == node), Fraction(0))
        return own + sum((extra(child) for child in taxonomy.children(node)), Fraction(0))

    cost = Fraction(0)
    for node in range(len(taxonomy.names)):
        below = [extra(child) for child in taxonomy.children(node)]
        if node == 0 and not below:
            below = [extra(0)]  # the root is itself the only leaf
        if node == 0 and column.has_missing:
            below.append(excess[0])
        up = sum((part for part in below if part > 0), Fraction(0))
        down = sum((-part for part in below if part < 0), Fraction(0))
        cost += Fraction(height(taxonomy, node) if node else top, top) * min(up, down)
    return cost


def moved(column: SensitiveColumn, counts: Any, distance: str) -> Fraction:
    """How far a group is from the whole table."""
    group, table = people(counts), people(column.whole)
    excess = [share(group, value) - share(table, value) for value in range(column.size)]
    if distance == "equal":
        return sum((abs(part) for part in excess), Fraction(0)) / 2
    if distance == "hierarchical":
        return hierarchical(column, excess)
    if column.size == 1:
        return Fraction(0)
    return sum((abs(sum(excess[:end], Fraction(0))) for end in range(1, column.size)), Fraction(0)) / (column.size - 1)


def deviations(column: SensitiveColumn, counts: Any) -> tuple[int, Fraction]:
    """Known values of a group and the sum of their squared deviations."""
    assert column.numbers is not None
    assert column.scale is not None
    step = Fraction(column.scale.step)
    known = [int(column.numbers[code]) * step for code in people(counts) if code >= column.has_missing]
    if not known:
        return 0, Fraction(0)
    mean = sum(known, Fraction(0)) / len(known)
    return len(known), sum(((number - mean) ** 2 for number in known), Fraction(0))


def plainly_allowed(column: SensitiveColumn, model: str, asked: dict[str, Any], counts: Any) -> bool:
    """Whether a group may exist, by the definition of the model."""
    group, table = people(counts), people(column.whole)
    frequent = [count for _, count in Counter(group).most_common()]
    if model == "distinct-l":
        return len(set(group)) >= asked["l"]
    if model == "entropy-l":
        entropy = -sum(count / len(group) * math.log(count / len(group)) for count in frequent)
        return entropy >= math.log(asked["l"]) - 1e-9
    if model == "recursive-cl":
        return len(frequent) >= asked["l"] and frequent[0] < Fraction(asked["c"]) * sum(frequent[asked["l"] - 1 :])
    if model == "t-closeness":
        return moved(column, counts, asked["distance"]) <= Fraction(asked["t"]) + TIE
    if model == "alpha-k":
        return Fraction(frequent[0], len(group)) <= Fraction(asked["alpha"]) + TIE
    if model == "beta-likeness":
        for value in set(table):
            bound = Fraction(asked["beta"])
            if asked.get("enhanced"):
                bound = min(bound, Fraction(-math.log(share(table, value))))
            if share(group, value) / share(table, value) - 1 > bound + TIE:
                return False
        return True
    if model == "delta-disclosure":
        ratios = [share(group, value) / share(table, value) for value in set(table)]
        return all(ratio > 0 and abs(math.log(ratio)) < asked["delta"] + 1e-9 for ratio in ratios)
    persons, error = deviations(column, counts)
    if model == "squared-error":
        return error >= Fraction(asked["error"]) * (1 - TIE)
    assert model == "variance"
    return (error / persons if persons else Fraction(0)) >= Fraction(asked["variance"]) * (1 - TIE)


def random_groups(rng: np.random.Generator, size: int, groups: int, most: int) -> Any:
    """Persons of each value in groups: none empty, no value without a person, some groups of one value."""
    counts = rng.integers(0, most + 1, (groups, size)) * (rng.random((groups, size)) < rng.choice([0.3, 0.7, 1.0]))
    for value in np.flatnonzero(counts.sum(axis=0) == 0):
        counts[rng.integers(groups), value] = 1
    for group in np.flatnonzero(counts.sum(axis=1) == 0):
        counts[group, rng.integers(size)] = 1
    return counts


def random_sensitive(rng: np.random.Generator, *, most: int = 6) -> tuple[SensitiveColumn, Any]:
    """A column that any model suits, and the groups its table is divided into."""
    size = int(rng.integers(1, 9))
    gap = int(rng.random() < 0.3)
    counts = random_groups(rng, size, int(rng.integers(1, 6)), most)
    whole = counts.sum(axis=0)
    known = size - gap
    numbers = np.sort(rng.choice([rng.normal(1e6, 1, known), rng.integers(0, 50, known).astype(float)]))
    ends = (float(numbers[0]), float(numbers[-1])) if known else (0.0, 0.0)
    scale = fixed_point(*ends, persons=int(whole.sum()))
    leaves = int(known + rng.integers(0, 4)) or 1
    places = np.sort(rng.choice(leaves, known, replace=False))
    column = SensitiveColumn(
        name="diagnosis",
        size=size,
        has_missing=bool(gap),
        whole=whole,
        numbers=np.append(np.zeros(gap, np.int64), scale.quantize(numbers)),
        scale=scale,
        taxonomy=taxonomy_of(random_shape(rng, leaves)),
        ordered=True,
        leaves=np.append(np.full(gap, -1), places),
    )
    return column, counts


def random_demand(rng: np.random.Generator) -> tuple[str, dict[str, Any]]:
    """A model and parameters: some that nearly all groups meet, some that few do, and round ones, which make ties."""
    model = str(rng.choice(sorted(DEMANDS)))
    return model, DEMANDS[model](rng)


def _round(rng: np.random.Generator, highest: float) -> float:
    return float(rng.choice([round(rng.random() * 10) / 10, rng.random()]) * highest)


DEMANDS: dict[str, Any] = {
    "distinct-l": lambda rng: {"l": int(rng.integers(2, 6))},
    "entropy-l": lambda rng: {"l": float(rng.choice([1.1, 2.0, 3.0, 1.01 + 3 * rng.random()]))},
    "recursive-cl": lambda rng: {"c": float(rng.choice([0.5, 1.0, 2.0, 3.0])), "l": int(rng.integers(2, 5))},
    "t-closeness": lambda rng: {
        "t": _round(rng, 0.6),
        "distance": str(rng.choice(["equal", "ordered", "hierarchical"])),
    },
    "alpha-k": lambda rng: {"alpha": min(max(_round(rng, 1.0), 0.05), 0.99)},
    "beta-likeness": lambda rng: {"beta": _round(rng, 3.0), "enhanced": bool(rng.random() < 0.5)},
    "delta-disclosure": lambda rng: {"delta": _round(rng, 2.0)},
    "squared-error": lambda rng: {"error": max(_round(rng, 10.0), 0.01)},
    "variance": lambda rng: {"variance": max(_round(rng, 2.0), 0.01)},
}
