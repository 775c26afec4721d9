# SPDX-License-Identifier: Apache-2.0
"""What of a k-anonymous tree is released, what its populations tell, and the file that keeps it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.trees.tree import ClassName, DecisionTree, Spans, TiledTree
from anonfit.engines.tree import LEAF
from anonfit.errors import AnonfitError, DataError, ReleaseError, RequestError, did_you_mean, listed
from anonfit.recoding.storage import recoding_of
from anonfit.runtime.strict_json import Damaged, JsonPart, parse_json, read_text
from anonfit.tables.frames import from_frame

CONFIDENCES = (0.75, 0.8, 0.85, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Exposure:
    """Training persons whose class is told by their span.

    `certain` have a span in which all have one class. `at_least` has, for each confidence, how many have a span in
    which a class has at least that share; `highest` is the highest share of a class in any span.
    """

    persons: int
    certain: int
    at_least: dict[float, int]
    highest: float

    @property
    def certain_share(self) -> float:
        """The share of persons whose class is certain."""
        return self.certain / self.persons if self.persons else 0.0


def exposure_of(spans: Spans, confidences: Sequence[float] = CONFIDENCES) -> Exposure | None:
    """The exposure of a tree with a private class; None where the class is public, and there is nothing to expose.
    Persons are counted for each of `confidences`, which are shares of the likeliest class.
    """
    if (spans.classes >= 0).any():
        return None
    sizes, most = spans.sizes, spans.counts.max(axis=1, initial=0)
    shares = most / np.maximum(sizes, 1)
    at_least = {float(confidence): int(sizes[shares >= confidence - 1e-9].sum()) for confidence in confidences}
    return Exposure(int(sizes.sum()), int(sizes[most == sizes].sum()), at_least, float(shares.max(initial=0.0)))


PLACES = 3
"""Decimal places of the shares that are told in place of persons."""


class Populations(StrEnum):
    """What is told of the training persons in every leaf."""

    EXACT = "exact"
    RELATIVE = "relative"
    MAJORITY = "majority"


@dataclass(frozen=True)
class ReleasedTree(TiledTree):
    """A tree that can be saved, drawn, asked and loaded again.

    `bins` has for every leaf and class the training persons (`exact`), the share of the class (`relative`), or
    nothing (`majority`); `predicts` has the class that each leaf tells. Both tell of an empty leaf, but for exact
    populations, what the nearest node above with any persons holds. With `majority`, classes that no leaf tells are
    not among `classes`.
    """

    populations: Populations
    bins: NDArray[np.float64] | None  # (leaf, class)
    predicts: NDArray[np.int64]  # (leaf,)

    def __repr__(self) -> str:
        """What it is, in short."""
        return f"ReleasedTree(target={self.target!r}, leaves={self.leaves}, populations='{self.populations}')"

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """(node, class) what is told of every node; of one that is no leaf, what is told of its leaves together."""
        weights = np.zeros((len(self.nodes.column), len(self.classes)))
        is_leaf = self.nodes.column == LEAF
        weights[is_leaf] = np.eye(len(self.classes))[self.predicts] if self.bins is None else self.bins
        first = self.nodes.first_child
        for node in range(len(weights) - 1, -1, -1):
            count = int(self.nodes.children[node])
            if count:
                weights[node] = weights[first[node] : first[node] + count].sum(axis=0)
        for node, parent in enumerate(self.tiling.parents.tolist()):
            if node and not weights[node].any():
                weights[node] = weights[parent]
        return weights

    def predict(self, data: Any) -> NDArray[Any]:
        """The class of every row.

        Args:
            data: A polars, pandas or Arrow frame with the columns of the tree. A row with a name that is not known, or
                without a value, is predicted by the node that would have to test it.

        Returns:
            The classes.
        """
        names = np.array(self.classes, dtype=object if len({type(name) for name in self.classes}) > 1 else None)
        classes = self._weights.argmax(axis=1)  # (node,)
        classes[self.nodes.column == LEAF] = self.predicts
        return np.asarray(names[classes[self._ends(data)]])

    def predict_shares(self, data: Any) -> NDArray[np.float64]:
        """The share of every class where each row ends, in the order of `classes`; 0 or 1 with `majority`."""
        weights = self._weights[self._ends(data)]
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def leaf_of(self, data: Any) -> NDArray[np.int64]:
        """The leaf of every row, -1 for one that ends earlier."""
        return np.asarray(self.nodes.region_of[self._ends(data)].astype(np.int64))

    def _ends(self, data: Any) -> NDArray[np.int32]:
        frame = from_frame(data)
        if absent := [name for name in self.columns if name not in frame.columns]:
            raise DataError(f"the data has no column {listed(absent)}; the tree needs every column it was grown with.")
        return self.nodes_of(frame)

    def to_model_json(self) -> str:
        """The tree as the text of model.json."""
        held = json.loads(self.tiling.to_json())
        facts = (self.target, list(self.classes), self.class_is_public, list(self.public), str(self.populations))
        head = zip(HEAD, (FORMAT, VERSION, *facts), strict=True)
        # One line per entry, column and list, so that it can be read and compared.
        lines = ["{", *(f" {_text(name)}: {_text(value)}," for name, value in head), ' "columns": [']
        lines += [",\n".join(f"  {_text(column)}" for column in held["columns"]), " ],", ' "nodes": {']
        lines += [",\n".join(f"  {_text(name)}: {_short(entries)}" for name, entries in held["nodes"].items()), " },"]
        if self.bins is not None:
            kind = int if self.populations == Populations.EXACT else float
            bins = [[kind(entry) for entry in leaf] for leaf in self.bins.tolist()]
            lines += [' "bins": [', ",\n".join(f"  {_short(leaf)}" for leaf in bins), " ],"]
        return "\n".join([*lines, f' "predicts": {_short(self.predicts.tolist())}', "}", ""])

    @classmethod
    def from_model_json(cls, text: str) -> ReleasedTree:
        """Read the text of model.json; anything that is not a whole tree of a known version is an error."""
        try:
            content = parse_json(text)
        except Damaged as error:
            raise ReleaseError(f"the tree is damaged: {error}; it was cut short or edited by hand.") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ReleaseError(f"this is no tree: its format is not '{FORMAT}'.")
        version = content.get("version")
        if version != VERSION or type(version) is not int:
            raise ReleaseError(
                f"the tree has version {version!r:.20}; this anonfit reads version {VERSION}. Install the anonfit that "
                "wrote it."
            )
        try:
            return _read(JsonPart(content))
        except (Damaged, AnonfitError) as error:
            raise ReleaseError(f"the tree is damaged: {str(error).removesuffix('.')}.") from None


def release_tree(tree: DecisionTree, populations: str = Populations.EXACT) -> ReleasedTree:
    """What is told of a tree, in the form in which it may be given away: `exact` tells the training persons of every
    class in every leaf, `relative` their shares, rounded, and `majority` only the most frequent class. What k-anonymity
    says of the tree holds for all three.
    """
    if populations not in set(Populations):
        raise RequestError(f"populations = '{populations}' is not known; {did_you_mean(populations, Populations)}")
    kind = Populations(populations)
    leaves = tree.leaf_nodes
    predicts, classes = tree.majority[leaves], tree.classes
    bins: NDArray[np.float64] | None = None
    if kind == Populations.MAJORITY:
        # A class that no leaf tells would still say that somebody has it.
        predicted, predicts = np.unique(predicts, return_inverse=True)
        classes = tuple(classes[place] for place in predicted.tolist())
    elif kind == Populations.EXACT:
        bins = tree.bins.astype(np.float64)
    else:
        bins = np.round(tree.shares[leaves], PLACES)
    return ReleasedTree(tree.tiling, tree.public, tree.target, classes, tree.class_is_public, kind, bins, predicts)


FORMAT = "anonfit tree"
VERSION = 1
HEAD = ("format", "version", "target", "classes", "class_is_public", "public", "populations")
ENTRIES = (*HEAD, "columns", "nodes", "predicts")
MOST_PERSONS = 2**53


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _read(model: JsonPart) -> ReleasedTree:
    fields = model.table(ENTRIES, ("bins",))
    tiling = recoding_of(fields["columns"], fields["nodes"])
    public = tuple(fields["public"].texts())
    if not set(public) <= set(tiling.quasi_identifiers):
        raise fields["public"].refused("names columns that the tree has not")
    classes = tuple(_class_name(entry) for entry in fields["classes"].items())
    if not classes or len({(type(name), name) for name in classes}) < len(classes):
        raise fields["classes"].refused("is empty or has a class twice")
    populations = Populations(fields["populations"].word(Populations))
    predicts = np.array(fields["predicts"].wholes(tiling.regions, 0, len(classes) - 1), np.int64)
    return ReleasedTree(
        tiling,
        public,
        fields["target"].text(),
        classes,
        fields["class_is_public"].flag(),
        populations,
        _bins(model, populations, (tiling.regions, len(classes))),
        predicts,
    )


def _class_name(part: JsonPart) -> ClassName:
    if not isinstance(part.value, str | int | float | bool) or (type(part.value) is int and abs(part.value) >= 2**63):
        raise part.refused("is not the name of a class")
    return part.value


def _bins(model: JsonPart, populations: Populations, shape: tuple[int, int]) -> NDArray[np.float64] | None:
    """What is told of the bins; nothing where only the most frequent class is told."""
    part = model.named().get("bins", JsonPart(None, "bins"))
    if populations == Populations.MAJORITY:
        if "bins" in model.named():
            raise part.refused("are there, though only the most frequent class is told")
        return None
    kinds = {int} if populations == Populations.EXACT else {int, float}
    most = MOST_PERSONS if populations == Populations.EXACT else 1
    leaves = part.items()
    if len(leaves) != shape[0]:
        raise part.refused("are not one for every leaf")
    for leaf in leaves:
        entries = [entry.value for entry in leaf.items()]
        if len(entries) != shape[1] or not all(type(entry) in kinds and 0 <= entry <= most for entry in entries):
            raise leaf.refused(f"is not a number from 0 to {most} for every class")
    bins = np.array(part.value, np.float64)
    if not bins.any():
        raise part.refused("are empty")
    return bins


def read_model(path: Path) -> ReleasedTree:
    """The tree of a file."""
    return ReleasedTree.from_model_json(read_text(path, "tree", ReleaseError, megabytes=256))
