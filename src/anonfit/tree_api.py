# SPDX-License-Identifier: Apache-2.0
"""Trees as releases, for every door: make one of a spec and publish it, load it, prune another's until it is safe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anonfit.algorithms.trees.released import ReleasedTree
from anonfit.engines.sinking import write_table
from anonfit.errors import RequestError
from anonfit.release.folder import check_free
from anonfit.release.trees import load_tree_folder, make_tree_of, publish_tree
from anonfit.runtime.files import whole_file
from anonfit.runtime.progress import Stage, silent
from anonfit.spec.model import Spec
from anonfit.spec.parse import read_tables, spec_of, with_settings
from anonfit.tables.formats import FORMATS, endings
from anonfit.tables.reading import ReadOptions, read_table
from anonfit.tables.schema import ColumnType

__all__ = ["TreeRelease", "load_tree", "predict_file", "read_tree_spec", "run_tree"]


@dataclass(frozen=True, slots=True)
class TreeRelease:
    """A published tree and the public audit of it."""

    tree: ReleasedTree
    audit: Mapping[str, Any]
    folder: Path


def run_tree(
    spec: Spec | str | Path,
    out: str | Path,
    *,
    settings: Iterable[str] = (),
    replace: bool = False,
    stage: Stage = silent,
) -> TreeRelease:
    """Grow the k-anonymous decision tree of a spec and publish it as a folder.

    Args:
        spec: A `Spec` or the path of a spec file; one that names no algorithm is taken to ask for a tree.
        out: The folder to make.
        settings: Settings such as `privacy.k=20` that stand above the file's.
        replace: Whether a release that is already there may be replaced.
        stage: Told each stage as it begins.

    Returns:
        The tree and its audit.
    """
    if not isinstance(spec, Spec):
        spec = read_tree_spec(spec, settings)
    folder = Path(out)
    check_free(folder.absolute(), replace=replace)
    made = make_tree_of(spec, stage=stage)
    return TreeRelease(made.tree, publish_tree(made, folder, replace=replace, stage=stage), folder)


def read_tree_spec(path: str | Path, settings: Iterable[str] = ()) -> Spec:
    """The spec of a file that asks for a tree, unless it names another algorithm."""
    tables = with_settings(read_tables(path), settings)
    method = tables.get("method", {})
    if isinstance(method, Mapping):
        tables["method"] = {"algorithm": "tree", **method}
    return spec_of(tables, folder=Path(path).resolve().parent)


def load_tree(path: str | Path) -> ReleasedTree:
    """Read a published tree; a folder that is cut short or changed is refused.

    Args:
        path: The folder, or its model.json by itself.

    Returns:
        The tree, which predicts.
    """
    return load_tree_folder(Path(path))[0]


def predict_file(tree: ReleasedTree, data: str | Path, out: str | Path, *, replace: bool = True) -> int:
    """Write the rows of a file with one more column, the class that a tree predicts; returns how many they are.

    Args:
        tree: The tree.
        data: A table with the tree's columns.
        out: The file to write: .csv, .parquet or .arrow.
        replace: Whether one that is already there may be replaced.

    Returns:
        The number of rows.
    """
    import polars as pl

    kind = Path(out).suffix.removeprefix(".")
    if kind not in FORMATS:
        raise RequestError(f"{out}: predictions are written as {endings()}.")
    names = [column.name for column in tree.tiling.columns if column.type in (ColumnType.NOMINAL, ColumnType.ORDINAL)]
    frame = read_table(Path(data), ReadOptions(texts=frozenset(names)))
    name = f"predicted_{tree.target}"
    while name in frame.columns:
        name += "_"
    predicted = frame.with_columns(pl.Series(name, tree.predict(frame)))
    with whole_file(Path(out), replace=replace) as new:
        write_table(predicted, new, kind)
    return len(frame)
