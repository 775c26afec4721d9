# SPDX-License-Identifier: Apache-2.0
"""What is said of a released tree: its public audit as plain data for audit.json, and its drawings, as text with one
line for every node, and as an SVG picture that stands by itself, with one line for every leaf and a bar of its classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from anonfit.algorithms.trees.released import Populations, ReleasedTree
from anonfit.engines.tree import LEAF
from anonfit.errors import listed, printable
from anonfit.privacy.disclosure import Disclosed
from anonfit.report.content import consented
from anonfit.report.pictures import TEXT, element, shape, text, together
from anonfit.report.words import Json, sentences_of, shortened

ATTACKER = (
    "The assumed attacker has the tree and knows, of everybody whose row it was taught with, all public columns "
    "exactly; the attacker knows nobody's private values and wants to learn them."
)
SPANS = (
    "A span is the set of leaves that a person can be in as far as public columns say, whatever the private ones are. "
    "Persons of one span cannot be told apart by the tree."
)


def asked_of_tree(tree: ReleasedTree, tables: Json, diversity: Sequence[Json]) -> dict[str, Any]:
    """What was asked of a tree, by the tables of its public spec and its demands on private columns."""
    return {
        "k": tables["privacy"]["k"],
        "public": list(tree.public),
        "private": list(tree.private),
        "class": tree.target,
        "class_is_public": tree.class_is_public,
        "diversity": [dict(demand) for demand in diversity],
        "max_confidence": tables["privacy"]["max_confidence"],
        "variant": tables["method"]["variant"],
        "cut_points": tables["method"]["cut_points"],
        "populations": str(tree.populations),
    }


TOLD_OF_LEAVES = {
    Populations.EXACT: "the number of training persons of each class in every leaf",
    Populations.RELATIVE: "the share of each class in every leaf, rounded",
    Populations.MAJORITY: "the most frequent class of every leaf",
}


def tree_content(tree: ReleasedTree, *, asked: Json, rows: Mapping[str, Disclosed], audit: Json) -> dict[str, Any]:
    """The content of audit.json; `rows` says how many were read and dropped."""
    sentences = sentences_of("tree_not_covered.txt", names_classes=tree.populations != Populations.MAJORITY)[""]
    return {
        "format": "anonfit tree audit",
        "version": 1,
        "asked": dict(asked),
        "told": TOLD_OF_LEAVES[tree.populations],
        "rows": dict(rows),
        "tree": {
            "leaves": tree.leaves,
            "tests": sorted({tree.columns[column] for column in tree.nodes.column.tolist() if column >= 0}),
        },
        "attacker": ATTACKER,
        "spans": SPANS,
        "not_covered": [*consented(asked), *sentences],
        "audit": dict(audit),
    }


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node of a drawing."""

    number: int
    depth: int
    answer: str
    """What the parent's test comes out as: a label of its column."""
    tested: str | None
    """The column it tests, None for a leaf."""
    is_public: bool
    predicts: str
    shares: tuple[float, ...]
    """Of each class; nothing where only the most frequent one is told."""
    persons: str
    """What is told of the persons of a leaf."""
    children: tuple[DrawnNode, ...] = ()

    @property
    def leaves(self) -> int:
        """The leaves below it, or itself."""
        return sum(child.leaves for child in self.children) if self.children else 1


def _count_text(value: float) -> str:
    """A number of persons, or their share."""
    return f"{value:,.0f}" if value == int(value) and value >= 1 else f"{value:.3f}".rstrip("0").rstrip(".")


def drawn_nodes(tree: ReleasedTree) -> DrawnNode:
    """The root of the drawing of a tree."""
    nodes, boxes = tree.nodes, tree.tiling.boxes
    first, regions = nodes.first_child.tolist(), nodes.region_of.tolist()
    drawn: dict[int, DrawnNode] = {}
    parents = tree.tiling.parents.tolist()
    depth = [0] * len(parents)
    for node in range(1, len(parents)):
        depth[node] = depth[parents[node]] + 1
    for node in range(len(parents) - 1, -1, -1):
        column = int(nodes.column[node])
        answer = ""
        if node:
            above = int(nodes.column[parents[node]])
            answer = tree.tiling.columns[above].label(boxes.cells(node, above))
        tested = None if column == LEAF else tree.columns[column]
        below = range(first[node], first[node] + int(nodes.children[node]))
        leaf = _leaf(tree, regions[node]) if tested is None else ("", (), "")
        children = tuple(drawn.pop(child) for child in below)
        drawn[node] = DrawnNode(node, depth[node], answer, tested, tested in tree.public, *leaf, children)
    return drawn[0]


def _leaf(tree: ReleasedTree, leaf: int) -> tuple[str, tuple[float, ...], str]:
    """The class that a leaf predicts, the shares of its classes, and what is told of its persons."""
    names = [str(name) for name in tree.classes]
    predicts = names[int(tree.predicts[leaf])]
    if tree.bins is None:
        return predicts, (), ""
    counts = tree.bins[leaf]
    total = float(counts.sum())
    if total == 0:
        return predicts, (0.0,) * len(names), "nobody"
    parts = [f"{name} {_count_text(count)}" for name, count in zip(names, counts.tolist(), strict=True) if count]
    persons = ", ".join(parts)
    if tree.populations == Populations.EXACT:
        persons = f"{_count_text(total)}: {persons}"
    return predicts, tuple((counts / total).tolist()), persons


LEGENDS = {
    Populations.EXACT: "Numbers are training persons.",
    Populations.RELATIVE: "Numbers are shares of the training persons of a leaf.",
    Populations.MAJORITY: "Of a leaf, only the most frequent class is told.",
}


def drawn_text(tree: ReleasedTree) -> str:
    """The tree, with what is told of every leaf after the class that it predicts."""
    known = f"public: {_names(tree.public)}; private: {_names(tree.private)}"
    known += f"; the class is {'public' if tree.class_is_public else 'private'}"
    lines = [f"{tree.target}: {' | '.join(map(str, tree.classes))}", known, LEGENDS[tree.populations], ""]
    root = drawn_nodes(tree)
    lines.append(_words(root))
    stack = _indented(root, "")
    while stack:
        node, indent, is_last = stack.pop()
        lines.append(f"{indent}{'└─' if is_last else '├─'} {node.answer} → {_words(node)}")
        stack += _indented(node, indent + ("   " if is_last else "│  "))
    return printable("\n".join(lines)) + "\n"


def _indented(node: DrawnNode, indent: str) -> list[tuple[DrawnNode, str, bool]]:
    """The children of a node, the last one first, and whether each is the last."""
    return [(child, indent, child is node.children[-1]) for child in reversed(node.children)]


def _names(names: tuple[str, ...]) -> str:
    return listed(names, len(names)).replace("'", "") if names else "none"


def _words(node: DrawnNode) -> str:
    """What a node tests, or predicts."""
    if node.tested is not None:
        return f"{node.tested}?" if node.is_public else f"{node.tested}? (private)"
    return node.predicts + (f"  ({node.persons})" if node.persons else "")


LINE, GAP, BAR, MARGIN, HEAD = 26.0, 34.0, 120.0, 16.0, 78.0
LONGEST = 34
"""Letters of a text before it is cut short; all of it is told when it is pointed at."""
MOST_LEAVES = 400
"""A tree with more is drawn down to the depth at which it has not."""
COLOURS = ("#3576a3", "#d58936", "#5b9a6b", "#9b6fb0", "#b85450", "#7d8790")
"""Of the classes, in their order; those after the last are all of its colour."""

STYLE = Markup("""
.all { fill: #ffffff; } text { fill: #1b2530; font: 12px system-ui, "Segoe UI", Roboto, sans-serif; }
.head { font-size: 15px; font-weight: 600; } .soft { fill: #55626f; } .bold { font-weight: 600; }
.edge { fill: none; stroke: #b9c3cc; stroke-width: 1.2; } .far { stroke-dasharray: 1 5; }
.public { fill: #e3eef6; stroke: #3576a3; } .private { fill: #fbf1e2; stroke: #b9761f; stroke-dasharray: 4 2; }
.empty { fill: #eef2f5; }
@media (prefers-color-scheme: dark) {
  .all { fill: #141a20; } text { fill: #e4eaf0; } .soft { fill: #a2afbb; } .edge { stroke: #4a5763; }
  .public { fill: #1f3445; } .private { fill: #3d2f1a; } .empty { fill: #2a333c; }
}
""")


@dataclass(slots=True)
class _TreeDrawing:
    """Where things are: every depth has a column for answers and tests, and every leaf a line."""

    deepest: int
    answers: list[float]  # (depth) width
    tests: list[float]  # (depth) width
    line: float = HEAD
    """The height at which the next leaf is drawn."""

    def left(self, depth: int) -> float:
        """Where the boxes of a depth begin, after the answers that lead to them."""
        return MARGIN + sum(self.answers[: depth + 1]) + sum(self.tests[:depth]) + GAP * depth


def drawn_svg(tree: ReleasedTree) -> str:
    """The picture of a tree."""
    root = drawn_nodes(tree)
    drawing = _measured(root, _deepest(root))
    parts = _drawn(root, drawing)
    end = drawing.left(drawing.deepest) + drawing.tests[drawing.deepest] + GAP
    longest = max(len(node.persons) for node in _walk(root, drawing.deepest))
    width = max(end + (BAR + 12 if tree.bins is not None else 0) + 1.2 * TEXT * longest, 560.0) + MARGIN
    height = drawing.line + 12
    inside = [
        element("title", f"Decision tree for {tree.target}"),
        element("style", STYLE),
        shape("rect", width=width, height=height, class_="all"),
        *_head(tree, cut=root.leaves > MOST_LEAVES),
        *parts,
        *_bars(root, drawing, end),
    ]
    sizes = {"width": f"{width:.0f}", "height": f"{height:.0f}"}
    box, namespace = f"0 0 {width:.0f} {height:.0f}", "http://www.w3.org/2000/svg"
    picture = element("svg", together(inside), xmlns=namespace, viewBox=box, **sizes, role="img")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{picture}\n'


def _head(tree: ReleasedTree, *, cut: bool) -> Iterator[Markup]:
    """What the picture is of, and what its colours mean."""
    yield text(MARGIN, 26, f"Decision tree for {shortened(tree.target, LONGEST)}", "head")
    x = MARGIN
    if tree.bins is not None:
        for number, name in enumerate(tree.classes):
            yield shape("rect", x=x, y=38.0, width=11, height=11, fill=_colour(number))
            yield text(x + 16, 48, shortened(str(name), LONGEST))
            x += 36 + TEXT * 1.2 * len(shortened(str(name), LONGEST))
    for kind in ("public", "private"):
        yield shape("rect", x=x, y=38.0, width=16, height=11, rx=3, class_=kind)
        yield text(x + 22, 48, f"tests a {kind} column", "soft")
        x += 40 + TEXT * 22
    if cut:
        yield text(MARGIN, 66, "Deeper nodes are not drawn; tree.txt has them all.", "soft")


def _deepest(root: DrawnNode) -> int:
    """The depth down to which a tree is drawn."""
    level, depth, ended = [root], 0, 0
    while True:
        ended += sum(not node.children for node in level)
        below = [child for node in level for child in node.children]
        if not below or ended + len(below) > MOST_LEAVES:
            return depth
        level, depth = below, depth + 1


def _walk(node: DrawnNode, deepest: int) -> Iterator[DrawnNode]:
    """All that is drawn of a tree, each node after those below it; it is not deep, as it has not many leaves."""
    for child in node.children if node.depth < deepest else ():
        yield from _walk(child, deepest)
    yield node


def _measured(root: DrawnNode, deepest: int) -> _TreeDrawing:
    drawing = _TreeDrawing(deepest, [0.0] * (deepest + 1), [0.0] * (deepest + 1))
    for node in _walk(root, deepest):
        width = 1.12 * TEXT * len(shortened(node.answer, LONGEST)) + (14 if node.depth else 0)
        drawing.answers[node.depth] = max(drawing.answers[node.depth], width)
        words = _node_words(node, deepest)
        drawing.tests[node.depth] = max(drawing.tests[node.depth], 1.15 * TEXT * len(shortened(words, LONGEST)) + 16)
    return drawing


def _node_words(node: DrawnNode, deepest: int) -> str:
    if node.tested is None:
        return node.predicts
    return node.tested if node.depth < deepest else f"{node.tested}: {node.leaves} leaves"


def _drawn(root: DrawnNode, drawing: _TreeDrawing) -> list[Markup]:
    """Nodes and lines; children come before their parent, which stands in the middle of them."""
    parts: list[Markup] = []
    heights: dict[int, float] = {}
    for node in _walk(root, drawing.deepest):
        below = node.children if node.depth < drawing.deepest else ()
        if below:
            y = (heights[below[0].number] + heights[below[-1].number]) / 2
            parts.extend(_edges(node, y, [(child, heights[child.number]) for child in below], drawing))
        else:
            y = drawing.line + LINE / 2
            drawing.line += LINE
        heights[node.number] = y
        parts.extend(_box(node, y, drawing))
    return parts


def _box(node: DrawnNode, y: float, drawing: _TreeDrawing) -> Iterator[Markup]:
    x, words = drawing.left(node.depth), _node_words(node, drawing.deepest)
    shown = shortened(words, LONGEST)
    if node.tested is None:
        yield text(x + 2, y + 4, shown, "bold")
        return
    width = 1.15 * TEXT * len(shown) + 14
    kind = "public" if node.is_public else "private"
    box = shape("rect", x=x, y=y - 10, width=width, height=20, rx=5, class_=kind)
    yield element("g", together([element("title", f"{words} ({kind})"), box, text(x + 7, y + 4, shown)]))


def _edges(
    node: DrawnNode, y: float, below: Sequence[tuple[DrawnNode, float]], drawing: _TreeDrawing
) -> Iterator[Markup]:
    """Lines to the children, each with its answer at the end."""
    start = drawing.left(node.depth) + 1.15 * TEXT * len(shortened(_node_words(node, drawing.deepest), LONGEST)) + 14
    end = drawing.left(node.depth + 1) - drawing.answers[node.depth + 1]
    bend = end - GAP / 2
    for child, height in below:
        path = f"M{start:.1f} {y:.1f} H{bend:.1f} V{height:.1f} H{end:.1f}"
        yield element("path", Markup(""), d=path, class_="edge")
        answer = text(end + 4, height + 4, shortened(child.answer, LONGEST), "soft")
        yield element("g", together([element("title", child.answer), answer]))


def _bars(root: DrawnNode, drawing: _TreeDrawing, x: float) -> Iterator[Markup]:
    """The classes of every leaf at the end of its line, and what is told of them."""
    line = HEAD
    for node in _walk(root, drawing.deepest):
        if node.children and node.depth < drawing.deepest:
            continue
        if node.tested is None and node.persons:
            after = drawing.left(node.depth) + 1.25 * TEXT * len(shortened(node.predicts, LONGEST)) + 8
            if x - after > GAP:
                yield shape("line", x1=after, x2=x - 8, y1=line + LINE / 2, y2=line + LINE / 2, class_="edge far")
            yield shape("rect", x=x, y=line + 7, width=BAR, height=12, class_="empty")
            at = x
            for number, share in enumerate(node.shares):
                if share:
                    yield shape("rect", x=at, y=line + 7, width=BAR * share, height=12, fill=_colour(number))
                at += BAR * share
            yield text(x + BAR + 10, line + 17, node.persons, "soft")
        line += LINE


def _colour(number: int) -> str:
    return COLOURS[min(number, len(COLOURS) - 1)]
