# SPDX-License-Identifier: Apache-2.0
"""`anonfit run`, `apply` and `tree`: make a release, of a table or of a tree, and say what it holds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from anonfit.cli.options import Dry, Json, Replace, Settings, To, trial, whole_numbers
from anonfit.cli.showing import notice, print_json, results, say, stages, table
from anonfit.errors import ReleaseError, RequestError, counted, listed

if TYPE_CHECKING:
    from anonfit.algorithms.trees.released import ReleasedTree
    from anonfit.spec.model import Spec

LONGEST = 40
"""Lines of a tree that are shown."""


def summary(report: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What a script wants to know of a release."""
    audit = report["audit"]
    several = [
        {"columns": list(each["columns"]), "k": each["k"], "smallest_group": each["sizes"]["smallest"]}
        for each in audit["sets"]
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


def _say_published(folder: Path, *, dry: bool) -> None:
    words = "Nothing was written; this could be published as " if dry else "Published "
    say((words, "bold green"), (str(folder), "bold"))


def _show_release(
    report: Mapping[str, Any], folder: Path, *, as_json: bool, more: Mapping[str, Any], dry: bool
) -> None:
    """Say what a published release holds; JSON has `more` beside it."""
    from anonfit.report.content import CONSENTED, FORMULAS

    facts = summary(report, folder) | dict(more) | ({"dry_run": True} if dry else {})
    if report["formulas"]:
        notice(f"Not covered: {FORMULAS.format(listed(report['formulas'], 20))}")
    if as_json:
        print_json(facts)
        return
    rows = report["rows"]
    _say_published(folder, dry=dry)
    if several := report["audit"]["sets"]:
        say(f"  {rows['released']:,} rows; smallest groups of the quasi-identifiers:")
        for each in several:
            smallest = each["sizes"]["smallest"]
            say(f"  {', '.join(each['columns'])}: {smallest} persons (asked: {each['k']})")
    else:
        say(
            f"  {rows['released']:,} rows in {facts['groups']:,} groups, the smallest of {facts['smallest_group']} "
            f"persons (asked: {facts['k']})"
        )
    if "written_to" in facts:
        say(f"  also written to {facts['written_to']}")
    if left_out := [f"{rows[word]} {word}" for word in ("withheld", "dropped") if rows[word]]:
        say(f"  rows left out: {', '.join(left_out)}")
    say(
        "  The audit of the written file accepted it. Not covered: background knowledge, other releases, what a "
        "group has in common."
    )
    for text in report["verdict"]["not_asked"]:
        say((f"  not asked: {text}", "yellow"))
    for (key, word), text in CONSENTED.items():
        if report["asked"].get(key) == word:
            say((f"  given away by consent: {text}", "yellow"))
    if not dry:
        say(f"  read next: {facts['report']}")
        say(f"  for the owner of the data only: {facts['internal_report']}")


def _show_refinements(refinements: Mapping[str, Any] | None) -> None:
    """Print the refinements of top-down refinement as a table: for the owner of the data."""
    if refinements is None:
        say("  There are no refinements to show: only algorithm = 'tdr' makes them.")
        return
    rows = [
        (
            number,
            step["column"],
            "" if step["refined"] is None else step["refined"],
            " | ".join(step["into"]),
            *(f"{step[name]:{kind}}" for name, kind in (("gain", ".4f"), ("loss", ".4g"), ("score", ".4g"))),
            ", ".join(map(str, step["anonymity"])),
        )
        for number, step in enumerate(refinements["steps"], 1)
    ]
    head = ("", "column", "refined", "into", "gain", "loss", "score", "anonymity")
    shown = table(head, rows, numbers=(0, 4, 5, 6, 7))
    # Labels and names are shown whole: two may begin alike.
    for column in shown.columns:
        column.overflow = "fold"
    results().print(shown)


def run(
    spec: Annotated[Path, Argument(help="The spec.")],
    out: Annotated[Path | None, Option(help="The release folder to make; named after the spec if not given.")] = None,
    engine: Annotated[str, Option(help="auto, or the name of an engine, such as memory or duckdb.")] = "",
    memory: Annotated[str, Option(help="How much memory the engine may use, such as 2GB.")] = "",
    settings: Settings = None,
    curve: Annotated[
        str | None, Option(help="Also measure what other k would be worth, for the report: 5,10,25,50.")
    ] = None,
    steps: Annotated[
        bool, Option("--steps", help="Show how columns were refined (algorithm tdr); for the owner only.")
    ] = False,
    start: Annotated[
        Path | None, Option(help="The recoding.json that refining begins with, perhaps edited (algorithm tdr).")
    ] = None,
    to: To = None,
    dry: Dry = False,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Make a release and publish it once audited."""
    folder, ks = out or Path(f"{spec.stem}-release"), whole_numbers("curve", curve)
    with stages(as_json=as_json) as stage, trial(dry=dry, name=folder.name) as place:
        from anonfit import api
        from anonfit.release.folder import check_free
        from anonfit.release.publish import DatabaseTable
        from anonfit.spec.parse import read_spec
        from anonfit.spec.write import toml_value

        begin = None if start is None else str(start.absolute())
        given = {"engine.name": engine, "engine.memory": memory, "output.to": to, "method.start": begin}
        chosen = [*(settings or []), *(f"{name}={toml_value(word)}" for name, word in given.items() if word)]
        check_free(folder.absolute(), replace=replace)
        asked: Spec | Path = spec
        if dry:  # the table of a database is looked at and not written
            asked = read_spec(spec, chosen)
            DatabaseTable.of_spec(asked, replace=replace)
            asked = dataclasses.replace(asked, output=dataclasses.replace(asked.output, to=None, table=None))
        release = api.run(asked, place or folder, settings=chosen, curve=ks, replace=replace, stage=stage)
    for doubt in release.notices:
        notice(f"doubtful: {doubt}")
    refinements = release.refinements
    more = release.written_to | ({} if refinements is None else {"stopped": refinements["stopped"]})
    more |= {"refinements": refinements} if steps else {}
    _show_release(release.report, folder, as_json=as_json, more=more, dry=dry)
    if refinements is not None and refinements["stopped"] and not as_json:
        made = len(refinements["steps"])
        say((f"  Refining was stopped after {made:,} refinements; more were possible.", "yellow"))
    if steps and not as_json:
        _show_refinements(refinements)


def apply(
    release: Annotated[Path, Argument(help="A release folder.")],
    data: Annotated[str, Argument(help="New data with the original table's columns: a file or ADDRESS#TABLE.")],
    out: Annotated[Path | None, Option(help="The release folder to make.")] = None,
    query: Annotated[str | None, Option(help="A query of the database, in place of a table.")] = None,
    unseen: Annotated[
        str, Option(help="Rows with a category the recoding does not know: suppress (withhold) or error.")
    ] = "suppress",
    recoding: Annotated[Path | None, Option(help="An edited recoding.json, in place of the release's own.")] = None,
    suppression_limit: Annotated[
        float | None,
        Option(help="The share of rows that may be withheld, such as 0.05; the release's own if not given."),
    ] = None,
    to: To = None,
    dry: Dry = False,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Release new data by an earlier release's recoding.

    Regions in which the new data has fewer than k persons are withheld; exit status 1 if that is more than allowed.
    """
    from anonfit.tables.sources import is_database

    named = f"{release.name}-applied" if is_database(data) else f"{Path(data).name.split('.')[0]}-release"
    folder = out or Path(named)
    with stages(as_json=as_json) as stage, trial(dry=dry, name=folder.name) as place:
        from anonfit.api import load_table
        from anonfit.recoding.storage import read_recoding
        from anonfit.release.folder import check_free
        from anonfit.release.publish import DatabaseTable
        from anonfit.tables.databases import named_source

        check_free(folder.absolute(), replace=replace)
        source = named_source(data, query=query)
        if dry and to is not None:
            DatabaseTable.checked(to, source=source, replace=replace)
        stage("Loading the release")
        extended = load_table(release).publish_extension(
            source,
            place or folder,
            unseen=unseen,
            recoding=None if recoding is None else read_recoding(recoding),
            suppression_limit=suppression_limit,
            to=None if dry else to,
            replace=replace,
            stage=stage,
        )
    _show_release(extended.report, folder, as_json=as_json, more=extended.written_to, dry=dry)


def tree(
    spec: Annotated[
        Path | None, Argument(help="The spec: quasi-identifiers are public, its one target is the class.")
    ] = None,
    out: Annotated[
        Path | None, Option(help="The folder (or the file of predictions) to make; named after the spec or data.")
    ] = None,
    saved: Annotated[
        Path | None, Option("--from", help="A published tree, in place of a spec: show it, or predict by it.")
    ] = None,
    predict: Annotated[
        Path | None, Option(help="New data: its rows are written with the class that the tree predicts.")
    ] = None,
    settings: Settings = None,
    dry: Dry = False,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Publish a k-anonymous decision tree instead of a table.

    Who knows all public columns of a person cannot tell the person from k - 1 others by it.
    """
    if saved is not None or predict is not None:
        if saved is None:
            raise RequestError("--predict needs a published tree: name it with --from.")
        if spec is not None:
            raise RequestError("a spec grows a tree, and --from uses a published one; name one of the two.")
        if settings:
            raise RequestError("--set changes a spec, and --from uses a tree that is grown already; leave it away.")
        _use_tree(saved, predict, out, replace=replace, as_json=as_json)
    elif spec is None:
        raise RequestError("name a spec to grow a tree, or --from with a published tree.")
    else:
        _grow_tree(spec, out or Path(f"{spec.stem}-tree"), settings or (), replace=replace, as_json=as_json, dry=dry)


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


def _grow_tree(spec: Path, folder: Path, settings: Sequence[str], *, replace: bool, as_json: bool, dry: bool) -> None:
    """Grow and publish the tree of a spec."""
    with stages(as_json=as_json) as stage, trial(dry=dry, name=folder.name) as place:
        from anonfit import api
        from anonfit.release.folder import check_free

        check_free(folder.absolute(), replace=replace)
        release = api.run(spec, place or folder, publish="tree", settings=settings, replace=replace, stage=stage)
    facts = _tree_summary(release.audit, folder) | ({"dry_run": True} if dry else {})
    if as_json:
        print_json(facts)
        return
    _say_published(folder, dry=dry)
    say(
        f"  {counted(facts['leaves'], 'leaf', 'leaves')}, {counted(facts['spans'], 'span')}, the smallest "
        f"of {facts['smallest_span']} persons (asked: {facts['k']})"
    )
    if (dropped := release.audit["rows"]["dropped"]) != 0:
        say(f"  rows left out for missing values: {dropped}")
    if facts["exposed"]:
        shares = [(exposed["persons"]["share"], f"{exposed['confidence']:.0%}") for exposed in facts["exposed"]]
        texts = (f"{f'{share:.1%}' if isinstance(share, float) else share} at {level}" for share, level in shares)
        say(f"  persons whose class can be told: {', '.join(texts)}")
    say(
        "  The audit of the written tree accepted it. Not covered: background knowledge, other releases, what a span "
        "has in common."
    )
    _show_drawing(release.tree)
    if not dry:
        say(f"  read next: {facts['report']}")
        say(f"  drawn: {facts['drawing']}")
        say(f"  for the owner of the data only: {facts['internal_record']}")


def _show_drawing(tree: ReleasedTree) -> None:
    """Print the first lines of a tree's drawing."""
    from anonfit.report.trees import drawn_text

    lines = drawn_text(tree).splitlines()
    for line in lines[:LONGEST]:
        say(line)
    if len(lines) > LONGEST:
        say(f"… {len(lines) - LONGEST} more lines in tree.txt")


def _use_tree(saved: Path, data: Path | None, out: Path | None, *, replace: bool, as_json: bool) -> None:
    """Show a published tree, or write new data with the classes that it predicts."""
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
    if data is not None and as_json:
        print_json({"predicted": str(file), "rows": rows})
    elif data is not None:
        say(f"Predicted {rows:,} rows: {file}")
    elif as_json:
        print_json(json.loads(tree.to_model_json()))
    else:
        _show_drawing(tree)


def _predict(tree: ReleasedTree, data: Path, out: Path, *, replace: bool) -> int:
    """Write the rows of a file with one more column, the class that a tree predicts; the number of rows."""
    import polars as pl

    from anonfit.engines.memory.write import write_table
    from anonfit.runtime.files import whole_file
    from anonfit.tables.reading import ReadOptions, read_table
    from anonfit.tables.schema import ColumnType
    from anonfit.tables.sources import FORMATS, endings

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
