# SPDX-License-Identifier: Apache-2.0
"""A taxonomy: the tree of names over a column's values.

Its leaves, in depth-first order, are the column's codes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby
from typing import Any

from anonfit.errors import TaxonomyError, listed

ROOT = "*"
DEEPEST = 200  # steps from the root to the deepest leaf


@dataclass(frozen=True)
class Taxonomy:
    """A tree in depth-first order: node 0 is the root, and every node covers a run of leaf positions.

    `names`, `parents` (-1 for the root), `first_leaf` and `last_leaf` (inclusive leaf positions) have one
    entry per node.

    Example:
        >>> countries = Taxonomy.from_tree({"name": "*", "children": [{"name": "FR"}, {"name": "DE"}]})
        >>> countries.leaves
        ('FR', 'DE')
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    first_leaf: tuple[int, ...]
    last_leaf: tuple[int, ...]

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any], *, column: str = "") -> Taxonomy:
        """The taxonomy of nested mappings, the form stored in recoding.json.

        Args:
            tree: `{"name": ..., "children": [tree, ...]}`; a leaf has no children, or an empty list of them.
            column: The column to name in a message.
        """
        names: list[str] = []
        parents: list[int] = []
        waiting: list[tuple[object, int]] = [(tree, -1)]
        while waiting:
            part, parent = waiting.pop()
            name, children = _name_and_children(part, column)
            # A chain that repeats one name is padding, not structure.
            while len(children) == 1 and _name_and_children(children[0], column)[0] == name:
                children = _name_and_children(children[0], column)[1]
            waiting.extend((child, len(names)) for child in reversed(children))
            names.append(name)
            parents.append(parent)
        return _assembled(names, parents, column)

    @classmethod
    def from_paths(cls, paths: Iterable[Sequence[str]], *, column: str = "") -> Taxonomy:
        """The taxonomy whose leaves are the first names of `paths`; each path ends in the root.

        A name that repeats its neighbour in a path is padding, and is skipped. Children stand in order of
        appearance.

        Args:
            paths: One sequence of names a leaf: the leaf, then each more general name, the root last.
            column: The column to name in a message.

        Example:
            >>> Taxonomy.from_paths([("FR", "Europe", "*"), ("US", "US", "*")]).leaves
            ('FR', 'US')
        """
        places: dict[tuple[int, str], int] = {}
        names: list[str] = []
        parents: list[int] = []
        ends: list[int] = []
        for path in paths:
            place = -1
            for name, _ in groupby(reversed(path)):
                parent, place = place, places.setdefault((place, name), len(names))
                if place == len(names):
                    names.append(name)
                    parents.append(parent)
            ends.append(place)
        _check_paths(names, parents, ends, column)
        return _assembled(names, parents, column)

    @classmethod
    def flat(cls, values: Sequence[str], root: str = ROOT, *, column: str = "") -> Taxonomy:
        """The taxonomy in which every value is a child of the root.

        Example:
            >>> Taxonomy.flat(["F", "M"]).names
            ('*', 'F', 'M')
        """
        if not values:
            raise taxonomy_error("it has no leaf; give at least one value.", column)
        return _assembled([root, *values], [-1, *([0] * len(values))], column)

    def to_tree(self) -> dict[str, Any]:
        """The nested mappings that `from_tree` reads; a leaf has only its name."""
        trees: list[dict[str, Any]] = []
        for name, parent in zip(self.names, self.parents, strict=True):
            tree: dict[str, Any] = {"name": name}
            if parent >= 0:
                trees[parent].setdefault("children", []).append(tree)
            trees.append(tree)
        return trees[0]

    @cached_property
    def leaf_nodes(self) -> tuple[int, ...]:
        """The node of each leaf position."""
        inner = set(self.parents)
        return tuple(node for node in range(len(self.names)) if node not in inner)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The names of the leaves in depth-first order."""
        return tuple(self.names[node] for node in self.leaf_nodes)

    @cached_property
    def leaf_position(self) -> dict[str, int]:
        """The position of each leaf, by name."""
        return {name: position for position, name in enumerate(self.leaves)}

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """The number of steps from the root to each node."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(depths[parent] + 1 if parent >= 0 else 0)
        return tuple(depths)

    @property
    def height(self) -> int:
        """The number of steps from the root to the deepest leaf."""
        return max(self.depth)

    @cached_property
    def _children(self) -> dict[int, tuple[int, ...]]:
        children: dict[int, list[int]] = {}
        for node, parent in enumerate(self.parents):
            children.setdefault(parent, []).append(node)
        return {parent: tuple(nodes) for parent, nodes in children.items()}

    @cached_property
    def _nodes(self) -> dict[str, int]:
        return {name: node for node, name in enumerate(self.names)}

    def children(self, node: int) -> tuple[int, ...]:
        """The nodes one step below a node, in leaf order; none for a leaf."""
        return self._children.get(node, ())

    def find(self, name: str, *, column: str = "") -> int:
        """The node of a name, a leaf's or an inner node's."""
        node = self._nodes.get(name)
        if node is None:
            raise taxonomy_error(f"it has no node called {name!r}; name one of its nodes.", column)
        return node

    def path(self, node: int) -> tuple[str, ...]:
        """The names from a node up to the root, both included."""
        return tuple(self.names[above] for above in self._upward(node))

    def lowest_cover(self, first: int, last: int) -> int:
        """The deepest node whose leaves include the leaf positions `first` to `last`."""
        if not 0 <= first <= last <= self.last_leaf[0]:
            fault = f"it has no run of leaf positions {first} to {last}"
            raise taxonomy_error(f"{fault}; they go from 0 to {self.last_leaf[0]}.")
        return next(node for node in self._upward(self.leaf_nodes[first]) if self.last_leaf[node] >= last)

    def _upward(self, node: int) -> Iterator[int]:
        while node >= 0:
            yield node
            node = self.parents[node]


def taxonomy_error(fault: str, column: str = "") -> TaxonomyError:
    """The error for a fault of a taxonomy, which begins with the column it belongs to."""
    return TaxonomyError(f"taxonomy of column {column!r}: {fault}" if column else f"taxonomy: {fault}")


def _name_and_children(part: object, column: str) -> tuple[str, Sequence[object]]:
    """The two things a node of a tree holds, checked."""
    if not isinstance(part, Mapping) or not isinstance(part.get("name"), str):
        raise taxonomy_error('a node is not of the form {"name": text, "children": [...]}; mend the tree.', column)
    children = part.get("children") or ()
    if isinstance(children, str) or not isinstance(children, Sequence):
        raise taxonomy_error(f"the children of {part['name']!r} are not a list; write them as one.", column)
    unknown = [key for key in part if key not in ("name", "children")]
    if unknown:
        fault = f"the node {part['name']!r} holds {listed(unknown)}"
        raise taxonomy_error(f"{fault}; a node has only 'name' and 'children'.", column)
    return part["name"], children


def _check_paths(names: list[str], parents: list[int], ends: list[int], column: str) -> None:
    """Refuse paths that do not make one tree whose leaves are the first names."""
    if not ends or -1 in ends:
        raise taxonomy_error("it has no leaf, or a path without a name; give at least one value.", column)
    roots = [name for name, parent in zip(names, parents, strict=True) if parent < 0]
    if len(roots) > 1:
        raise taxonomy_error(f"its paths end in {listed(roots)}; end all of them in one root.", column)
    repeated = [names[end] for end, times in Counter(ends).items() if times > 1]
    if repeated:
        raise taxonomy_error(f"the leaf {listed(repeated)} is there more than once; keep one.", column)
    inner = set(parents)
    both = [names[end] for end in ends if end in inner]
    if both:
        fault = f"{listed(both)} is a leaf and also has names below it"
        raise taxonomy_error(f"{fault}; give the leaf and the inner node different names.", column)


def _assembled(names: list[str], parents: list[int], column: str) -> Taxonomy:
    """The taxonomy of nodes in any order in which parents come before children; siblings keep their order."""
    _check_names(names, parents, column)
    count = len(names)
    sizes = [1] * count
    for node in range(count - 1, 0, -1):
        sizes[parents[node]] += sizes[node]
    # place: the node's number in depth-first order; free: where the next child of each node goes.
    place, free = [0] * count, [1] * count
    for node in range(1, count):
        parent = parents[node]
        place[node] = free[parent]
        free[node] = place[node] + 1
        free[parent] += sizes[node]
    ordered_names, ordered_parents, ordered_sizes = [""] * count, [-1] * count, [0] * count
    for node, where in enumerate(place):
        ordered_names[where] = names[node]
        ordered_parents[where] = place[parents[node]] if node else -1
        ordered_sizes[where] = sizes[node]
    # before: leaves before each node; one more entry for the end.
    before = list(accumulate((size == 1 for size in ordered_sizes), initial=0))
    last = tuple(before[node + size] - 1 for node, size in enumerate(ordered_sizes))
    taxonomy = Taxonomy(tuple(ordered_names), tuple(ordered_parents), tuple(before[:-1]), last)
    # What could not be written into recoding.json is refused: nested values are not read to any depth.
    if taxonomy.height > DEEPEST:
        raise taxonomy_error(
            f"it is {taxonomy.height} levels deep; at most {DEEPEST} can be stored. Leave some out.", column
        )
    return taxonomy


def _check_names(names: list[str], parents: list[int], column: str) -> None:
    """Refuse a name that stands at two places: as a label it would not say which."""
    if len(set(names)) == len(names):
        return
    repeated = [name for name, times in Counter(names).items() if times > 1]
    inner = {names[parent] for parent in parents if parent >= 0}
    leaves = [name for name in repeated if name not in inner]
    first = (leaves or repeated)[0]
    above = (names[parents[node]] for node, name in enumerate(names) if name == first and node)
    where = " and ".join(f"under {name!r}" for name in list(dict.fromkeys(above))[:2])
    if leaves:
        fault = f"the leaf {listed(leaves)} is there more than once ({first!r} stands {where})"
        raise taxonomy_error(f"{fault}; keep one, or give each its own name.", column)
    fault = f"the name {listed(repeated)} has two parents or stands at two places ({first!r} stands {where})"
    raise taxonomy_error(f"{fault}; give each place its own name.", column)
