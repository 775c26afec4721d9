# SPDX-License-Identifier: Apache-2.0
"""`anonfit tree`: publish a k-anonymous decision tree and say what it tells, show one, or predict by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.cli.showing import print_json, results, stages
from anonfit.errors import ReleaseError, RequestError

if TYPE_CHECKING:
    from anonfit.algorithms.trees.released import ReleasedTree

__all__ = ["tree_of_spec", "use_tree"]

LONGEST = 40
"""Lines of a tree that are shown."""


def _summary(report: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What a script wants to know of a published tree."""
    audit = report["audit"]
    return {
        "tree": str(folder),
        "k": report["asked"]["k"],
        "rows": report["rows"],
        "leaves": report["tree"]["leaves"],
        "spans": audit["spans"]["sizes"]["groups"],
        "smallest_span": audit["k"],
        "exposed": audit["exposed"],
        "passed": audit["passed"],
        "drawing": str(folder / "tree.svg"),
        "internal_record": str(folder.with_name(f"{folder.name}.internal.json")),
    }


def tree_of_spec(spec: Path | None, out: Path | None, *, settings: Sequence[str], replace: bool, as_json: bool) -> None:
    """Grow and publish the tree of a spec."""
    if spec is None:
        raise RequestError("name a spec to grow a tree, or --from with a published tree.")
    with stages(as_json=as_json) as stage:
        from anonfit.api import run
        from anonfit.report.trees import drawn_text

        folder = out or Path(f"{spec.stem}-tree")
        made = run(spec, folder, publish="tree", settings=settings, replace=replace, stage=stage)
    found = _summary(made.audit, folder)
    if as_json:
        print_json(found)
        return
    from rich.text import Text

    screen = results()
    screen.print(Text("Published ", style="bold green") + Text(str(folder), style="bold"), soft_wrap=True)
    screen.print(
        f"  {_several(found['leaves'], 'leaf', 'leaves')}, {_several(found['spans'], 'span', 'spans')}, the smallest "
        f"of {found['smallest_span']} persons (asked: {found['k']})"
    )
    if (dropped := made.audit["rows"]["dropped"]) != 0:
        screen.print(f"  rows left out for missing values: {dropped}")
    if found["exposed"]:
        told = ", ".join(f"{_share(one['persons'])} at {one['confidence']:.0%}" for one in found["exposed"])
        screen.print(f"  persons whose class can be told: {told}", soft_wrap=True)
    screen.print(
        "  The audit of the written tree accepted it. Not covered: background knowledge, other releases, what a span "
        "has in common."
    )
    _show(drawn_text(made.tree))
    screen.print(Text(f"  drawn: {found['drawing']}"), soft_wrap=True)
    screen.print(Text(f"  for the owner of the data only: {found['internal_record']}"), soft_wrap=True)


def _several(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"


def _share(told: Mapping[str, Any]) -> str:
    share = told["share"]
    return f"{share:.1%}" if isinstance(share, float) else str(share)


def _show(drawing: str) -> None:
    """The first lines of a drawing."""
    from rich.text import Text

    screen = results()
    lines = drawing.splitlines()
    for line in lines[:LONGEST]:
        screen.print(Text(line), soft_wrap=True)
    if len(lines) > LONGEST:
        screen.print(f"… {len(lines) - LONGEST} more lines in tree.txt")


def use_tree(
    spec: Path | None,
    saved: Path | None,
    data: Path | None,
    out: Path | None,
    *,
    settings: Sequence[str],
    replace: bool,
    as_json: bool,
) -> None:
    """Show a published tree, or write new data with the classes that it predicts."""
    if saved is None:
        raise RequestError("--predict needs a published tree: name it with --from.")
    if spec is not None:
        raise RequestError("a spec grows a tree, and --from uses a published one; name one of the two.")
    if settings:
        raise RequestError("--set changes a spec, and --from uses a tree that is grown already; leave it away.")
    if data is None and (out is not None or replace):
        word = "--replace" if out is None else "--out"
        raise RequestError(f"--from alone shows the tree and writes nothing; leave {word} away, or add --predict.")
    with stages(as_json=as_json) as stage:
        from anonfit.api import load_tree

        stage("Loading the tree")
        tree = load_tree(saved)
        if data is not None:
            file = out or Path(f"{data.name.split('.')[0]}-predicted.csv")
            if file.exists() and not replace:
                raise ReleaseError(f"{file} is already there; choose another name, or allow to replace it (--replace).")
            stage("Predicting")
            rows = _predict(tree, data, file, replace=replace)
    if data is None:
        _show_tree(tree, as_json=as_json)
    elif as_json:
        print_json({"predicted": str(file), "rows": rows})
    else:
        from rich.text import Text

        results().print(Text(f"Predicted {rows:,} rows: {file}"), soft_wrap=True)


def _predict(tree: ReleasedTree, data: Path, out: Path, *, replace: bool) -> int:
    """Write the rows of a file with one more column, the class that a tree predicts; returns how many they are."""
    import polars as pl

    from anonfit.engines.rows import write_table
    from anonfit.runtime.files import whole_file
    from anonfit.tables.formats import FORMATS, endings
    from anonfit.tables.reading import ReadOptions, read_table
    from anonfit.tables.schema import ColumnType

    kind = out.suffix.removeprefix(".")
    if kind not in FORMATS:
        raise RequestError(f"{out}: predictions are written as {endings()}.")
    names = [column.name for column in tree.tiling.columns if column.type in (ColumnType.NOMINAL, ColumnType.ORDINAL)]
    frame = read_table(data, ReadOptions(texts=frozenset(names)))
    name = f"predicted_{tree.target}"
    while name in frame.columns:
        name += "_"
    predicted = frame.with_columns(pl.Series(name, tree.predict(frame)))
    with whole_file(out, replace=replace) as new:
        write_table(predicted, new, kind)
    return len(frame)


def _show_tree(tree: Any, *, as_json: bool) -> None:
    import json

    from anonfit.report.trees import drawn_text

    if as_json:
        print_json(json.loads(tree.to_model_json()))
    else:
        _show(drawn_text(tree))
