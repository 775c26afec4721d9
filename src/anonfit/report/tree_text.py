# SPDX-License-Identifier: Apache-2.0
"""A tree as plain text, one line for every node."""

from __future__ import annotations

from anonfit.algorithms.trees.released import Populations, ReleasedTree
from anonfit.errors import listed, printable
from anonfit.report.tree_layout import DrawnNode, drawn_nodes

__all__ = ["drawn_text"]

TOLD = {
    Populations.EXACT: "Numbers are training persons.",
    Populations.RELATIVE: "Numbers are shares of the training persons of a leaf.",
    Populations.MAJORITY: "Of a leaf, only the most frequent class is told.",
}


def drawn_text(tree: ReleasedTree) -> str:
    """The tree, with what is told of every leaf after the class that it predicts."""
    known = f"public: {_names(tree.public)}; private: {_names(tree.private)}"
    known += f"; the class is {'public' if tree.class_is_public else 'private'}"
    lines = [f"{tree.target}: {' | '.join(map(str, tree.classes))}", known, TOLD[tree.populations], ""]
    root = drawn_nodes(tree)
    lines.append(_words(root))
    stack = [(child, "", number == len(root.children) - 1) for number, child in enumerate(root.children)][::-1]
    while stack:
        node, indent, is_last = stack.pop()
        lines.append(f"{indent}{'└─' if is_last else '├─'} {node.answer} → {_words(node)}")
        deeper = indent + ("   " if is_last else "│  ")
        below = [(child, deeper, number == len(node.children) - 1) for number, child in enumerate(node.children)]
        stack.extend(below[::-1])
    return printable("\n".join(lines)) + "\n"


def _names(names: tuple[str, ...]) -> str:
    return listed(names, len(names)).replace("'", "") if names else "none"


def _words(node: DrawnNode) -> str:
    """What a node tests, or predicts."""
    if node.tested is not None:
        return f"{node.tested}?" if node.is_public else f"{node.tested}? (private)"
    return node.predicts + (f"  ({node.told})" if node.told else "")
