# SPDX-License-Identifier: Apache-2.0
"""The regions of a recoding, and the one that holds what records were observed to have, from docs/recoding.md and
docs/labels.md alone. Part of the independent checker (checker.py): nothing of the package.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from checker_labels import Cells, Column, Wrong, need, quoted, read_column, walk_leaves


@dataclass(frozen=True)
class Recoding:
    """Columns and regions: a box of cells for each."""

    columns: tuple[Column, ...]
    nodes: dict[str, list[Any]] | None
    parts: dict[str, list[int]] | None
    found: dict[tuple[int, ...], tuple[Cells, ...]] = field(default_factory=dict, repr=False)
    leaves: list[tuple[Cells, ...]] = field(default_factory=list, repr=False)

    def part_cells(self, column: Column) -> list[Cells]:
        """The parts of a column (version 2)."""
        assert self.parts is not None
        numbers = self.parts[column.name]
        return [frozenset(i for i, one in enumerate(numbers) if one == part) for part in dict.fromkeys(numbers)]

    def boxes(self) -> Iterable[tuple[Cells, ...]]:
        """All regions."""
        if self.parts is not None:
            return product(*(self.part_cells(column) for column in self.columns))
        return self._leaves()

    def box(self, cells: tuple[int, ...]) -> tuple[Cells, ...]:
        """The region of a point."""
        if cells not in self.found:
            self.found[cells] = self._box(cells)
        return self.found[cells]

    def _box(self, cells: tuple[int, ...]) -> tuple[Cells, ...]:
        if self.parts is not None:
            pairs = zip(self.columns, cells, strict=True)
            return tuple(next(part for part in self.part_cells(column) if cell in part) for column, cell in pairs)
        hits = [box for box in self._leaves() if all(cell in part for cell, part in zip(cells, box, strict=True))]
        need(len(hits) == 1, "a point lies in no region, or in several")
        return hits[0]

    def _leaves(self) -> list[tuple[Cells, ...]]:
        assert self.nodes is not None
        if self.leaves:
            return self.leaves
        tree, boxes, found = self.nodes, [tuple(column.cells for column in self.columns)], self.leaves
        for at, split in enumerate(tree["column"]):
            if split == -1:
                found.append(boxes[at])
                continue
            first = len(boxes)
            for part in parts_of(tree, at, range(first, first + tree["children"][at]), boxes[at][split]):
                boxes.append((*boxes[at][:split], part, *boxes[at][split + 1 :]))
        return found


def parts_of(tree: dict[str, list[Any]], at: int, children: range, cells: Cells) -> list[Cells]:
    """How a node's cells are divided among its children."""
    number = tree["set"][at] if tree["set"] else -1
    if number != -1:
        chosen = frozenset(tree["sets"][number])
        parts = [cells & chosen, cells - chosen]
    else:
        starts = [tree["start"][child] for child in children]
        need(all(a < b for a, b in zip(starts, starts[1:], strict=False)), "parts of a split do not ascend")
        ends = [*starts[1:], math.inf]
        parts = [frozenset(c for c in cells if a <= c < b) for a, b in zip(starts, ends, strict=True)]
    need(all(parts), "a part of a split is empty")
    need(sum(map(len, parts)) == len(cells), "the parts of a split do not cover it")
    return parts


def read_recoding(said: Any) -> Recoding:
    """recoding.json, of version 1 or 2."""
    need(isinstance(said, dict) and said.get("format") == "anonfit recoding", "no recoding")
    need(said.get("version") in (1, 2), "an unknown version of the recoding")
    shape = "nodes" if said["version"] == 1 else "parts"
    need(set(said) == {"format", "version", "columns", shape}, "the recoding says more, or less, than it should")
    need(isinstance(said["columns"], list) and said["columns"], "the recoding has no columns")
    columns = tuple(read_column(column) for column in said["columns"])
    need(len({column.name for column in columns}) == len(columns), "a column stands twice in the recoding")
    if shape == "parts":
        check_parts(columns, said["parts"])
        return Recoding(columns, None, said["parts"])
    check_nodes(columns, said["nodes"])
    return Recoding(columns, said["nodes"], None)


def whole(values: Any) -> bool:
    """Whether these are whole numbers."""
    return isinstance(values, list) and all(isinstance(v, int) and not isinstance(v, bool) for v in values)


def check_parts(columns: tuple[Column, ...], parts: Any) -> None:
    """Parts of every column: a number for each cell, runs in ordered columns."""
    need(isinstance(parts, dict) and list(parts) == [column.name for column in columns], "parts of other columns")
    for column in columns:
        numbers = parts[column.name]
        need(whole(numbers) and len(numbers) == len(column.cells), "a column has other cells than its parts")
        need(all(n >= (-1 if column.type == "nominal" else 0) for n in numbers), "a part has an unknown number")
        if column.type != "nominal":
            runs = [n for i, n in enumerate(numbers) if i == 0 or numbers[i - 1] != n]
            need(len(runs) == len(set(runs)), "a part of an ordered column is no run")


def check_nodes(columns: tuple[Column, ...], nodes: Any) -> None:
    """A tree of splits that is whole, and uses every cut."""
    need(isinstance(nodes, dict) and set(nodes) == {"column", "children", "start", "set", "sets"}, "no tree of splits")
    need(all(whole(nodes[key]) for key in ("column", "children", "start", "set")), "a tree of no whole numbers")
    count = len(nodes["column"])
    need(count and len(nodes["children"]) == len(nodes["start"]) == count, "lists of the tree differ in length")
    need(len(nodes["set"]) in (0, count), "sets of the tree differ in length")
    need(isinstance(nodes["sets"], list) and all(map(whole, nodes["sets"])), "sets that are none")
    need(sum(nodes["children"]) == count - 1, "the tree is not whole")
    reached = 1
    for at in range(count):
        split, children = nodes["column"][at], nodes["children"][at]
        need(at < reached, "a node has no parent")
        need(-1 <= split < len(columns), "a split by an unknown column")
        need(children == 0 if split == -1 else children >= 2, "a node has too few children, or too many")
        chosen = nodes["set"][at] if nodes["set"] else -1
        need(-1 <= chosen < len(nodes["sets"]), "an unknown set")
        need(chosen == -1 or (split >= 0 and columns[split].kind == "leaves" and children == 2), "a set of no leaves")
        reached += children
    used = {(nodes["column"][parent], nodes["start"][child]) for child, parent in parents(nodes).items()}
    for number, column in enumerate(columns):
        if column.kind == "cuts":
            cuts = range(1 + column.missing, column.named + column.missing)
            need(all((number, start) in used for start in cuts), "a cut that divides nothing")


def parents(nodes: dict[str, list[Any]]) -> dict[int, int]:
    """The parent of every node but the first."""
    found: dict[int, int] = {}
    for at, children in enumerate(nodes["children"]):
        found |= dict.fromkeys(range(len(found) + 1, len(found) + 1 + children), at)
    return found


def read_observed(column: Column, text: str) -> Cells:
    """The cells that an observed label reaches; it is written as docs/labels.md says."""
    if column.kind == "words":
        found = next((cells for cells in runs_of(column) if column.label(cells) == text), None)
        need(found, "an observed label is no words of the order")
        return found  # type: ignore[return-value]
    if text in ("missing", "*", "not missing") or column.kind == "leaves":
        return read_names(column, text)
    known, gap = text.removeprefix("missing or "), text.startswith("missing or ")
    need(column.missing or not gap, "an observed label has missing values that there are none of")
    ends = re.fullmatch(r"(-?\d+)–(-?\d+)" if column.both_ends else r"\[(.*), (.*)\]", known)
    low, high = (read_end(column, end) for end in (ends.groups() if ends else (known, known)))
    need(low < high if ends else True, "an observed label is turned round")
    both = f"{low}–{high}" if column.both_ends else f"[{column.text(low)}, {column.text(high)}]"
    written = both if ends else column.text(low)
    need(written == known, "an observed label is written otherwise")
    first, last = column.cell(low), column.cell(high)
    need(first is not None and last is not None, "an observed label is beyond the domain")
    return frozenset(range(first, last + 1)) | ({0} if gap else frozenset())  # type: ignore[arg-type, operator]


def runs_of(column: Column) -> Iterator[Cells]:
    """The runs of an ordered column's cells, each with the missing value and without."""
    for last in column.cells:
        for first in range(column.missing, last + 1):
            yield frozenset(range(first, last + 1))
            if column.missing:
                yield frozenset(range(first, last + 1)) | {0}
    if column.missing:
        yield frozenset({0})


def is_label(column: Column, text: Any) -> bool:
    """Whether a text is what is written for cells of a column."""
    if column.kind != "leaves":
        return any(column.label(cells) == text for cells in runs_of(column))
    try:
        return isinstance(text, str) and bool(read_names(column, text))
    except Wrong:
        return False


def read_end(column: Column, text: str) -> Any:
    """A number, date or time in a label."""
    try:
        value = (int(text) if re.fullmatch(r"-?\d+", text) else float(text)) if column.scale == "number" else text
    except ValueError:
        raise Wrong("an observed label has no number") from None
    return column.value(value)


def read_names(column: Column, text: str) -> Cells:
    """The leaves that a label names."""
    if text in ("*", "missing", "not missing"):
        found = {"*": column.cells, "missing": frozenset({0}), "not missing": column.cells - {0}}[text]
        need(column.missing or text == "*", "a label has missing values that there are none of")
        return found
    known = text.removeprefix("missing or ")
    need(column.missing or known == text, "a label has missing values that there are none of")
    names = [known] if not known.startswith("{") else split_names(known[1:-1])
    under = {quoted(name): leaves for name, leaves in nodes_of(column)} | dict(nodes_of(column))
    need(all(name in under for name in names), "a label has an unknown name")
    leaves = {leaf for name in names for leaf in under[name]}
    cells = frozenset(place + column.missing for place, leaf in enumerate(column.leaves) if leaf in leaves)
    cells |= {0} if known != text else frozenset()
    need(column.label(cells) == text, "a label is written otherwise")
    return cells


def split_names(text: str) -> list[str]:
    """The names of a set, as they are quoted."""
    return re.findall(r'("(?:[^"\\]|\\.)*"|[^",][^,]*)(?:, |$)', text)


def nodes_of(column: Column) -> Iterator[tuple[str, list[str]]]:
    """The nodes of a taxonomy below its root, each with its leaves."""
    stack = list((column.tree or {}).get("children", ()))
    while stack:
        node = stack.pop()
        stack += node.get("children", ())
        yield node["name"], list(walk_leaves(node, set()))
