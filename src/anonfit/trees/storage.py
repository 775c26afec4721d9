# SPDX-License-Identifier: Apache-2.0
"""model.json of a tree: its columns and nodes as in recoding.json, its classes, and what is told of its bins. It has a
version; no observed values but the classes, and names that k persons share or that were declared."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from anonfit.errors import AnonfitError, ReleaseError
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.storage import FORMAT as RECODING
from anonfit.recoding.storage import VERSION as RECODING_VERSION
from anonfit.tables.reading import refuse_endless
from anonfit.trees.released import Populations, ReleasedTree

__all__ = ["FORMAT", "VERSION", "from_json", "read_model", "to_json"]

FORMAT = "anonfit tree"
VERSION = 1


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


def _require(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(fault)


def from_json(text: str) -> ReleasedTree:
    """Read model.json; anything that is not a whole tree of a known version is an error."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ReleaseError(f"the tree is not JSON (line {error.lineno}); it was cut short or edited by hand.") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ReleaseError(f"this is no tree: its format is not '{FORMAT}'.")
    if found.get("version") != VERSION:
        raise ReleaseError(
            f"the tree has version {found.get('version')!r}; this anonfit reads version {VERSION}. Install the anonfit "
            "that wrote it."
        )
    try:
        return _read(found)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise ReleaseError(f"the tree is damaged: {error}.") from None
    except AnonfitError as error:
        raise ReleaseError(f"the tree is damaged: {error}") from None


def _read(found: dict[str, Any]) -> ReleasedTree:
    parts = {"format": RECODING, "version": RECODING_VERSION, "columns": found["columns"], "nodes": found["nodes"]}
    tiling = Recoding.from_json(json.dumps(parts))
    classes = found["classes"]
    known = all(isinstance(one, str | int | float | bool) for one in classes)
    _require(isinstance(classes, list) and len(classes) > 0 and known, "its classes are no list of names")
    public = found["public"]
    _require(
        isinstance(public, list) and set(public) <= set(tiling.quasi_identifiers), "its public columns are not its own"
    )
    _require(isinstance(found["target"], str) and isinstance(found["class_is_public"], bool), "its class is not said")
    populations = Populations(found["populations"])
    predicts = np.array(found["predicts"], np.int64)
    _require(predicts.shape == (tiling.regions,), "it does not say what every leaf predicts")
    _require(bool(((predicts >= 0) & (predicts < len(classes))).all()), "it predicts classes that there are not")
    return ReleasedTree(
        tiling,
        tuple(public),
        found["target"],
        tuple(classes),
        found["class_is_public"],
        populations,
        _bins(found, populations, (tiling.regions, len(classes))),
        predicts,
    )


def _bins(found: dict[str, Any], populations: Populations, shape: tuple[int, int]) -> Any:
    """What is told of the bins; nothing where only the most frequent class is told."""
    if populations == Populations.MAJORITY:
        _require("bins" not in found, "it has bins, though only the most frequent class is told")
        return None
    entries = found["bins"]
    kinds = {int} if populations == Populations.EXACT else {int, float}
    _require({type(one) for leaf in entries for one in leaf} <= kinds, "its bins hold other things than numbers")
    bins = np.array(entries, np.float64)
    _require(bins.shape == shape, "it has not one bin for every leaf and class")
    _require(bool((bins >= 0).all()) and math.isfinite(float(bins.sum())), "its bins hold no persons or shares")
    _require(bool(bins.sum() > 0), "its bins are empty")
    return bins


def read_model(path: Path) -> ReleasedTree:
    """The tree of a file."""
    refuse_endless(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReleaseError(f"{path} cannot be read as a tree: {type(error).__name__}.") from None
    return from_json(text)
