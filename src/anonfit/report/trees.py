# SPDX-License-Identifier: Apache-2.0
"""What the public audit of a released tree says: plain data for audit.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonfit.algorithms.trees.released import Populations, ReleasedTree
from anonfit.privacy.disclosure import Disclosed
from anonfit.report.content import CONSENTED, SEVERAL_RELEASES, read_content

__all__ = ["TreeFacts", "asked_of_tree", "tree_content"]

ATTACKER = (
    "The assumed attacker has the tree and knows, of everybody whose row it was taught with, all public columns "
    "exactly; the attacker knows nobody's private values and wants to learn them."
)
SPANS = (
    "A span is the set of leaves that a person can be in as far as public columns say, whatever the private ones are. "
    "Persons of one span cannot be told apart by the tree."
)
BEYOND = "What the attacker knows beyond the public columns, such as the private value of some persons."
IN_COMMON = (
    "What all or nearly all persons of a span have in common: k-anonymity does not hide it (for the class, see "
    "exposed)."
)
CUTS = (
    "That the tree tests a private column at all, and where: a cut lies between values of training persons, and a name "
    "of a private column that is not declared is one that at least k of them have."
)
CLASSES = "That there is somebody of a class: every class of a training person is named, however few have it."
MINIMALITY = "What can be concluded from the fact that the tree was grown as far as the demand allows."
OUTSIDERS = "Persons whose rows the tree was not taught with: it predicts their class, too."


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """What is known of a tree that is published."""

    tree: ReleasedTree
    asked: Mapping[str, Any]
    read: int
    trained: int
    dropped: Disclosed
    audit: Mapping[str, Any]


def asked_of_tree(
    tree: ReleasedTree,
    *,
    k: int,
    diversity: Sequence[Mapping[str, Any]],
    max_confidence: float,
    variant: str,
    cut_points: str,
) -> dict[str, Any]:
    """What was asked of a tree."""
    return {
        "k": k,
        "public": list(tree.public),
        "private": list(tree.private),
        "class": tree.target,
        "class_is_public": tree.class_is_public,
        "diversity": [dict(one) for one in diversity],
        "max_confidence": max_confidence,
        "variant": variant,
        "cut_points": cut_points,
        "populations": str(tree.populations),
    }


def tree_content(facts: TreeFacts) -> dict[str, Any]:
    """The content of audit.json."""
    tree = facts.tree
    told = {
        Populations.EXACT: "the number of training persons of each class in every leaf",
        Populations.RELATIVE: "the share of each class in every leaf, rounded",
        Populations.MAJORITY: "the most frequent class of every leaf",
    }[tree.populations]
    named = [] if tree.populations == Populations.MAJORITY else [CLASSES]
    consented = [text for (key, word), text in CONSENTED.items() if facts.asked.get(key) == word]
    return {
        "format": "anonfit tree audit",
        "version": 1,
        "asked": dict(facts.asked),
        "told": told,
        "rows": {"read": read_content(facts.read, facts.trained, facts.dropped), "dropped": facts.dropped},
        "tree": {
            "leaves": tree.leaves,
            "tests": sorted({tree.columns[column] for column in tree.nodes.column.tolist() if column >= 0}),
        },
        "attacker": ATTACKER,
        "spans": SPANS,
        "not_covered": [*consented, BEYOND, IN_COMMON, CUTS, *named, MINIMALITY, SEVERAL_RELEASES, OUTSIDERS],
        "audit": dict(facts.audit),
    }
