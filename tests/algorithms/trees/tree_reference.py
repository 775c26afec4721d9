# SPDX-License-Identifier: Apache-2.0
"""Spans by Definition 5 and growing by Algorithm 1 of PKDD 2006, slow and obvious: every public tuple is routed under
every combination of private values.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from math import log2
from typing import Any

STEP = 1e-9


@dataclass
class Table:
    """Rows of codes with a class each. Of a nominal column, `paths` has the names above each code from the root's
    children down to the leaf; of an ordered one it is None.
    """

    rows: list[tuple[int, ...]]
    classes: list[int]
    sizes: list[int]
    public: list[bool]
    paths: list[list[tuple[str, ...]] | None]
    class_count: int
    class_is_public: bool = False


@dataclass
class Node:
    """A node; `ways` are the sets of codes of its column that lead to its sons."""

    held: list[frozenset[int]]
    column: int = -1
    ways: list[frozenset[int]] = field(default_factory=list)
    sons: list[Node] = field(default_factory=list)
    depth: dict[int, int] = field(default_factory=dict)


def leaf_of(node: Node, record: tuple[int, ...]) -> Node:
    while node.sons:
        node = next(son for way, son in zip(node.ways, node.sons, strict=True) if record[node.column] in way)
    return node


def spans_of(root: Node, table: Table) -> list[frozenset[Any]]:
    """The span of each row: the bins that some private values lead it to."""
    found = []
    for record, label in zip(table.rows, table.classes, strict=True):
        choices = [
            [code] if public else range(size)
            for code, public, size in zip(record, table.public, table.sizes, strict=True)
        ]
        labels = [label] if table.class_is_public else range(table.class_count)
        leaves = {id(leaf_of(root, one)) for one in product(*choices)}
        found.append(frozenset((leaf, one) for leaf in leaves for one in labels))
    return found


def is_allowed(root: Node, table: Table, k: int, entropy_l: float, confidence: float) -> bool:
    spans = spans_of(root, table)
    groups: dict[Any, list[int]] = {}
    for span, label in zip(spans, table.classes, strict=True):
        groups.setdefault(span, []).append(label)
    for labels in groups.values():
        shares = [count / len(labels) for count in Counter(labels).values()]
        if len(labels) < k or max(shares) > confidence + 1e-9:
            return False
        if -sum(share * log2(share) for share in shares) < log2(entropy_l) - 1e-9:
            return False
    return True


def entropy(labels: list[int]) -> float:
    return -sum(count / len(labels) * log2(count / len(labels)) for count in Counter(labels).values())


def divisions(table: Table, node: Node, column: int, present: set[int]) -> list[tuple[int, list[frozenset[int]]]]:
    """The ways to divide a column at a node, with their depth or cut: nominal ones the deepest first."""
    held = sorted(node.held[column])
    paths = table.paths[column]
    if paths is None:
        return [
            (code, [frozenset(one for one in held if one < code), frozenset(one for one in held if one >= code)])
            for code in sorted(present)[1:]
        ]
    found = []
    for depth in range(max(len(paths[code]) for code in held), node.depth.get(column, 0), -1):
        parts: dict[Any, set[int]] = {}
        for code in held:
            parts.setdefault(paths[code][:depth], set()).add(code)
        if len(parts) > 1:
            found.append((depth, [frozenset(part) for part in parts.values()]))
    return found


def part(node: Node, column: int, place: int, ways: list[frozenset[int]]) -> None:
    node.column, node.ways = column, ways
    for way in ways:
        held = [way if index == column else codes for index, codes in enumerate(node.held)]
        depth = {**node.depth, column: place} if len(way) else node.depth
        node.sons.append(Node(held, depth=depth))


def undo(node: Node) -> None:
    node.column, node.ways, node.sons = -1, [], []


def grow(table: Table, *, variant: str, k: int, entropy_l: float = 1.0, confidence: float = 1.0) -> Node | None:
    """Algorithm 1, with the candidates of sons, and depths of taxonomies for generalizations; None for nil.

    Of every node and column the deepest division, or the cut that gains most, of those that breach nothing is weighed.
    """
    root = Node([frozenset(range(size)) for size in table.sizes])
    if not is_allowed(root, table, k, entropy_l, confidence):
        return None
    nodes = [root]
    queue = [key_of(root, nodes, 0, table, variant, k, entropy_l, confidence)]
    while queue := sorted(one for one in queue if one[0] < 0):
        _, number, *_ = queue.pop(0)
        # Spans may have been parted since the node was put there.
        again = key_of(root, nodes, number, table, variant, k, entropy_l, confidence)
        if again[0] < 0 and (not queue or again[:2] < queue[0][:2]):
            part(nodes[number], *again[2:])
            first = len(nodes)
            nodes.extend(nodes[number].sons)
            queue += [
                key_of(root, nodes, son, table, variant, k, entropy_l, confidence) for son in range(first, len(nodes))
            ]
        else:
            queue.append(again)
    return root


def key_of(
    root: Node,
    nodes: list[Node],
    number: int,
    table: Table,
    variant: str,
    k: int,
    entropy_l: float,
    confidence: float,
) -> tuple[int, int, int, int, Any]:
    """The best split of a node: its score in steps (best first), the node, the column, where and how."""
    found = [
        (-round(score / STEP), number, column, place, ways)
        for score, column, place, ways in weighed(root, nodes[number], table, variant, k, entropy_l, confidence)
    ]
    return min(found, key=lambda one: one[:3], default=(0, number, 0, 0, []))


def weighed(
    root: Node, node: Node, table: Table, variant: str, k: int, entropy_l: float, confidence: float
) -> list[tuple[float, int, int, Any]]:
    own = [
        (record, label)
        for record, label in zip(table.rows, table.classes, strict=True)
        if leaf_of(root, record) is node
    ]
    labels = [label for _, label in own]
    if len(set(labels)) < 2:
        return []
    found = []
    for column in range(len(table.sizes)):
        present = {record[column] for record, _ in own}
        if table.public[column] and table.paths[column] is None:
            present = {
                record[column]
                for record in table.rows
                if all(record[one] in node.held[one] for one in range(len(record)) if table.public[one])
            }
        allowed = []
        for place, ways in divisions(table, node, column, present):
            part(node, column, place, ways)
            fits = is_allowed(root, table, k, entropy_l, confidence)
            undo(node)
            parts = [[label for record, label in own if record[column] in way] for way in ways]
            if fits or table.paths[column] is None:
                allowed.append((place, ways, [one for one in parts if one], fits))
                if table.paths[column] is not None:
                    break
        if one := best_of(allowed, labels, table, column, variant):
            found.append((*one[:2], column, *one[2:]))
    if variant == "id3":
        return [(gain, column, place, ways) for gain, _, column, place, ways in found]
    positive = [gain for gain, *_ in found if gain > STEP]
    average = sum(positive) / len(positive) - 1e-3 if positive else 0.0
    return [
        (gain / info, column, place, ways)
        for gain, info, column, place, ways in found
        if gain > STEP and gain >= average and info > STEP
    ]


def best_of(allowed: Any, labels: list[int], table: Table, column: int, variant: str) -> Any:
    """The division that gains most, as gain, information of the split, place and ways; cuts pay for their number."""
    is_cut = table.paths[column] is None
    least = 2 if variant == "c45" else 1
    if is_cut:
        least = max(least, min(len(labels) // (10 * table.class_count), 25))
    best, tried = None, set()
    for place, ways, parts, fits in allowed:
        sizes = [len(one) for one in parts]
        large = sum(size >= least for size in sizes)
        if large < 2 or (is_cut and large < len(ways)):
            continue
        if is_cut:
            tried.add(sizes[0])
        if not fits:
            continue
        gain = entropy(labels) - sum(len(one) / len(labels) * entropy(one) for one in parts)
        info = -sum(size / len(labels) * log2(size / len(labels)) for size in sizes)
        if best is None or gain > best[0] + 1e-12:
            best = (gain, info, place, ways)
    if best is None:
        return None
    return (best[0] - (log2(len(tried)) / len(labels) if is_cut else 0.0), *best[1:])
