# SPDX-License-Identifier: Apache-2.0
"""model.json of a tree: its columns and nodes as in recoding.json, its classes, and what is told of its bins. It has a
version; no observed values but the classes, and names that k persons share or that were declared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.trees.released import Populations, ReleasedTree
from anonfit.algorithms.trees.tree import ClassName
from anonfit.errors import AnonfitError, ReleaseError
from anonfit.recoding.storage import recoding_of
from anonfit.runtime.strict_json import Damaged, JsonPart, parse_json, read_text

__all__ = ["FORMAT", "VERSION", "from_json", "read_model", "to_json"]

FORMAT = "anonfit tree"
VERSION = 1
ENTRIES = (
    "format",
    "version",
    "target",
    "classes",
    "class_is_public",
    "public",
    "populations",
    "columns",
    "nodes",
    "predicts",
)
MOST_PERSONS = 2**53


def to_json(tree: ReleasedTree) -> str:
    """The text of model.json: one line per entry, column and list, so that it can be read and compared."""
    held = json.loads(tree.tiling.to_json())
    head = {
        "format": FORMAT,
        "version": VERSION,
        "target": tree.target,
        "classes": list(tree.classes),
        "class_is_public": tree.class_is_public,
        "public": list(tree.public),
        "populations": str(tree.populations),
    }
    lines = ["{", *(f" {_text(name)}: {_text(value)}," for name, value in head.items()), ' "columns": [']
    lines += [",\n".join(f"  {_text(column)}" for column in held["columns"]), " ],", ' "nodes": {']
    lines += [",\n".join(f"  {_text(name)}: {_short(entries)}" for name, entries in held["nodes"].items()), " },"]
    if tree.bins is not None:
        kind = int if tree.populations == Populations.EXACT else float
        bins = [[kind(one) for one in leaf] for leaf in tree.bins.tolist()]
        lines += [' "bins": [', ",\n".join(f"  {_short(leaf)}" for leaf in bins), " ],"]
    lines += [f' "predicts": {_short(tree.predicts.tolist())}', "}", ""]
    return "\n".join(lines)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def from_json(text: str) -> ReleasedTree:
    """Read model.json; anything that is not a whole tree of a known version is an error."""
    try:
        found = parse_json(text)
    except Damaged as error:
        raise ReleaseError(f"the tree is damaged: {error}; it was cut short or edited by hand.") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ReleaseError(f"this is no tree: its format is not '{FORMAT}'.")
    version = found.get("version")
    if version != VERSION or type(version) is not int:
        raise ReleaseError(
            f"the tree has version {version!r:.20}; this anonfit reads version {VERSION}. Install the anonfit that "
            "wrote it."
        )
    try:
        return _read(JsonPart(found))
    except (Damaged, AnonfitError) as error:
        raise ReleaseError(f"the tree is damaged: {str(error).removesuffix('.')}.") from None


def _read(model: JsonPart) -> ReleasedTree:
    found = model.table(ENTRIES, ("bins",))
    tiling = recoding_of(found["columns"], found["nodes"])
    public = tuple(found["public"].texts())
    if not set(public) <= set(tiling.quasi_identifiers):
        raise found["public"].refused("names columns that the tree has not")
    classes = tuple(_class_name(entry) for entry in found["classes"].items())
    if not classes or len({(type(one), one) for one in classes}) < len(classes):
        raise found["classes"].refused("is empty or has a class twice")
    populations = Populations(found["populations"].word(Populations))
    predicts = np.array(found["predicts"].wholes(tiling.regions, 0, len(classes) - 1), np.int64)
    return ReleasedTree(
        tiling,
        public,
        found["target"].text(),
        classes,
        found["class_is_public"].flag(),
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
        entries = leaf.items()
        good = len(entries) == shape[1] and all(type(one.value) in kinds and 0 <= one.value <= most for one in entries)
        if not good:
            raise leaf.refused(f"is not a number from 0 to {most} for every class")
    bins = np.array(part.value, np.float64)
    if not bins.any():
        raise part.refused("are empty")
    return bins


def read_model(path: Path) -> ReleasedTree:
    """The tree of a file."""
    return from_json(read_text(path, "tree", ReleaseError, megabytes=256))
