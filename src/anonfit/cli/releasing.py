# SPDX-License-Identifier: Apache-2.0
"""`anonfit run`, `apply` and `tree`: make a release, of a table or of a tree, and say what it holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.cli.options import trial
from anonfit.cli.showing import notice, print_json, results, stages, table
from anonfit.errors import ReleaseError, RequestError, listed
from anonfit.report.content import CONSENTED, FORMULAS

if TYPE_CHECKING:
    from anonfit.algorithms.trees.released import ReleasedTree
    from anonfit.spec.model import Spec


DRY = "Nothing was written; this could be published as "


def summary(report: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What a script wants to know of a release."""
    audit = report["audit"]
    several = [
        {"columns": list(counted["columns"]), "k": counted["k"], "smallest_group": counted["sizes"]["smallest"]}
        for counted in audit["sets"]
    ]
    return {
        "release": str(folder),
        "k": report["asked"]["k"],
        "rows": report["rows"],
        "groups": audit["sizes"]["groups"],
        "smallest_group": audit["sizes"]["smallest"],
        **({"quasi_identifiers": several} if several else {}),
        "passed": audit["passed"],
        "not_asked": report["verdict"]["not_asked"],
        "report": str(folder / "report.html"),
        "internal_record": str(folder.with_name(f"{folder.name}.internal.json")),
        "internal_report": str(folder.with_name(f"{folder.name}.internal.html")),
    }


def show_release(
    report: Mapping[str, Any],
    folder: Path,
    *,
    as_json: bool,
    more: Mapping[str, Any] | None = None,
    dry: bool = False,
) -> None:
    """Say what a published release holds; JSON has `more` beside it."""
    from rich.text import Text

    facts = summary(report, folder) | dict(more or {}) | ({"dry_run": True} if dry else {})
    if report["formulas"]:
        notice(f"Not covered: {FORMULAS.format(listed(report['formulas'], 20))}")
    if as_json:
        print_json(facts)
        return
    screen = results()
    rows = report["rows"]
    left_out = [f"{rows[word]} {word}" for word in ("withheld", "dropped") if rows[word]]
    screen.print(
        Text(DRY if dry else "Published ", style="bold green") + Text(str(folder), style="bold"), soft_wrap=True
    )
    if several := report["audit"]["sets"]:
        screen.print(f"  {rows['released']:,} rows; smallest groups of the quasi-identifiers:")
        for counted in several:
            words = f"  {', '.join(counted['columns'])}: {counted['sizes']['smallest']} persons (asked: {counted['k']})"
            screen.print(Text(words), soft_wrap=True)
    else:
        screen.print(
            f"  {rows['released']:,} rows in {facts['groups']:,} groups, the smallest of {facts['smallest_group']} "
            f"persons (asked: {facts['k']})"
        )
    if "written_to" in facts:
        screen.print(Text(f"  also written to {facts['written_to']}"), soft_wrap=True)
    if left_out:
        screen.print(f"  rows left out: {', '.join(left_out)}")
    screen.print(
        "  The audit of the written file accepted it. Not covered: background knowledge, other releases, what a "
        "group has in common."
    )
    for text in report["verdict"]["not_asked"]:
        screen.print(Text(f"  not asked: {text}", style="yellow"), soft_wrap=True)
    for (key, word), text in CONSENTED.items():
        if report["asked"].get(key) == word:
            screen.print(Text(f"  given away by consent: {text}", style="yellow"), soft_wrap=True)
    if dry:
        return
    screen.print(Text(f"  read next: {facts['report']}"), soft_wrap=True)
    screen.print(Text(f"  for the owner of the data only: {facts['internal_report']}"), soft_wrap=True)


def show_refinements(refinements: Mapping[str, Any] | None) -> None:
    """Print the refinements of top-down refinement as a table: for the owner of the data."""
    screen = results()
    if refinements is None:
        screen.print("  There are no refinements to show: only algorithm = 'tdr' makes them.")
        return
    rows = [
        (
            number,
            step["column"],
            "" if step["refined"] is None else step["refined"],
            " | ".join(step["into"]),
            f"{step['gain']:.4f}",
            f"{step['loss']:.4g}",
            f"{step['score']:.4g}",
            ", ".join(map(str, step["anonymity"])),
        )
        for number, step in enumerate(refinements["steps"], 1)
    ]
    head = ("", "column", "refined", "into", "gain", "loss", "score", "anonymity")
    shown = table(head, rows, numbers=(0, 4, 5, 6, 7))
    # Labels and names are shown whole: two may begin alike.
    for column in shown.columns:
        column.overflow = "fold"
    screen.print(shown)


def run_spec(
    spec: Path,
    out: Path | None,
    *,
    settings: Sequence[str],
    curve: Sequence[int],
    replace: bool,
    as_json: bool,
    steps: bool = False,
    dry: bool = False,
) -> None:
    """Make and publish the release of a spec; `steps` also shows how columns were refined."""
    folder = out or Path(f"{spec.stem}-release")
    with stages(as_json=as_json) as stage, trial(dry=dry, name=folder.name) as place:
        from anonfit.api import run
        from anonfit.release.folder import check_free

        check_free(folder.absolute(), replace=replace)
        asked = _without_database(spec, settings, replace=replace) if dry else spec
        release = run(asked, place or folder, settings=settings, curve=curve, replace=replace, stage=stage)
    for doubt in release.notices:
        notice(f"doubtful: {doubt}")
    refinements = release.refinements
    more = release.written_to | ({} if refinements is None else {"stopped": refinements["stopped"]})
    more |= {"refinements": refinements} if steps else {}
    show_release(release.report, folder, as_json=as_json, more=more, dry=dry)
    if refinements is not None and refinements["stopped"] and not as_json:
        results().print(
            f"  Refining was stopped after {len(refinements['steps']):,} refinements; more were possible.",
            style="yellow",
        )
    if steps and not as_json:
        show_refinements(refinements)


def _without_database(path: Path, settings: Sequence[str], *, replace: bool) -> Spec:
    """The spec, whose table of a database is looked at and not written."""
    from anonfit.release.delivery import Target
    from anonfit.spec.parse import read_spec

    spec = read_spec(path, settings)
    Target.of_spec(spec, replace=replace)
    return dataclasses.replace(spec, output=dataclasses.replace(spec.output, to=None, table=None))


def apply_release(
    release: Path,
    data: str,
    out: Path | None,
    *,
    unseen: str,
    replace: bool,
    as_json: bool,
    recoding: Path | None,
    suppression_limit: float | None,
    query: str | None = None,
    to: str | None = None,
    dry: bool = False,
) -> None:
    """Release new data by an earlier release's recoding, or an edited one."""
    from anonfit.tables.addresses import is_database

    named = f"{release.name}-applied" if is_database(data) else f"{Path(data).name.split('.')[0]}-release"
    folder = out or Path(named)
    with stages(as_json=as_json) as stage, trial(dry=dry, name=folder.name) as place:
        from anonfit.api import load_table
        from anonfit.recoding.storage import read_recoding
        from anonfit.release.delivery import Target
        from anonfit.release.folder import check_free
        from anonfit.tables.databases import named_source

        check_free(folder.absolute(), replace=replace)
        source = named_source(data, query=query)
        if dry and to is not None:
            Target.checked(to, replace=replace)
        stage("Loading the release")
        edited = None if recoding is None else read_recoding(recoding)
        extended = load_table(release).publish_extension(
            source,
            place or folder,
            unseen=unseen,
            recoding=edited,
            suppression_limit=suppression_limit,
            to=None if dry else to,
            replace=replace,
            stage=stage,
        )
    show_release(extended.report, folder, as_json=as_json, more=extended.written_to, dry=dry)


LONGEST = 40
"""Lines of a tree that are shown."""


def _tree_summary(report: Mapping[str, Any], folder: Path) -> dict[str, Any]:
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
        "report": str(folder / "report.html"),
        "internal_record": str(folder.with_name(f"{folder.name}.internal.json")),
    }


def tree_of_spec(
    spec: Path | None,
    out: Path | None,
    *,
    settings: Sequence[str],
    replace: bool,
    as_json: bool,
    dry: bool = False,
) -> None:
    """Grow and publish the tree of a spec."""
    if spec is None:
        raise RequestError("name a spec to grow a tree, or --from with a published tree.")
    folder = out or Path(f"{spec.stem}-tree")
    with stages(as_json=as_json) as stage, trial(dry=dry, name=folder.name) as place:
        from anonfit.api import run
        from anonfit.release.folder import check_free
        from anonfit.report.trees import drawn_text

        check_free(folder.absolute(), replace=replace)
        release = run(spec, place or folder, publish="tree", settings=settings, replace=replace, stage=stage)
    facts = _tree_summary(release.audit, folder) | ({"dry_run": True} if dry else {})
    if as_json:
        print_json(facts)
        return
    from rich.text import Text

    screen = results()
    screen.print(
        Text(DRY if dry else "Published ", style="bold green") + Text(str(folder), style="bold"), soft_wrap=True
    )
    screen.print(
        f"  {_several(facts['leaves'], 'leaf', 'leaves')}, {_several(facts['spans'], 'span', 'spans')}, the smallest "
        f"of {facts['smallest_span']} persons (asked: {facts['k']})"
    )
    if (dropped := release.audit["rows"]["dropped"]) != 0:
        screen.print(f"  rows left out for missing values: {dropped}")
    if facts["exposed"]:
        shares = ", ".join(
            f"{_share(exposed['persons'])} at {exposed['confidence']:.0%}" for exposed in facts["exposed"]
        )
        screen.print(f"  persons whose class can be told: {shares}", soft_wrap=True)
    screen.print(
        "  The audit of the written tree accepted it. Not covered: background knowledge, other releases, what a span "
        "has in common."
    )
    _show_drawing(drawn_text(release.tree))
    if dry:
        return
    screen.print(Text(f"  read next: {facts['report']}"), soft_wrap=True)
    screen.print(Text(f"  drawn: {facts['drawing']}"), soft_wrap=True)
    screen.print(Text(f"  for the owner of the data only: {facts['internal_record']}"), soft_wrap=True)


def _several(number: int, singular: str, plural: str) -> str:
    return f"{number:,} {singular if number == 1 else plural}"


def _share(persons: Mapping[str, Any]) -> str:
    share = persons["share"]
    return f"{share:.1%}" if isinstance(share, float) else str(share)


def _show_drawing(drawing: str) -> None:
    """Print the first lines of a drawing."""
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
    """Write the rows of a file with one more column, the class that a tree predicts; the number of rows."""
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


def _show_tree(tree: ReleasedTree, *, as_json: bool) -> None:
    import json

    from anonfit.report.trees import drawn_text

    if as_json:
        print_json(json.loads(tree.to_model_json()))
    else:
        _show_drawing(drawn_text(tree))
