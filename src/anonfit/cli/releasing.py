# SPDX-License-Identifier: Apache-2.0
"""`anonfit run` and `anonfit apply`: make a release and say what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anonfit.cli.showing import console, print_json, results, stages, table
from anonfit.errors import listed
from anonfit.report.content import CONSENTED, FORMULAS

__all__ = ["apply_release", "run_spec", "summary"]


def summary(report: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What a script wants to know of a release."""
    audit = report["audit"]
    several = [
        {"columns": list(one["columns"]), "k": one["k"], "smallest_group": one["sizes"]["smallest"]}
        for one in audit["sets"]
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
    report: Mapping[str, Any], folder: Path, *, as_json: bool, more: Mapping[str, Any] | None = None
) -> None:
    """Tell of a published release; a script is told `more`."""
    from rich.text import Text

    found = summary(report, folder) | dict(more or {})
    if report["formulas"]:
        console().print(
            Text(f"Not covered: {FORMULAS.format(listed(report['formulas'], 20))}", style="yellow"), soft_wrap=True
        )
    if as_json:
        print_json(found)
        return
    screen = results()
    rows = report["rows"]
    left_out = [f"{rows[word]} {word}" for word in ("withheld", "dropped") if rows[word]]
    screen.print(Text("Published ", style="bold green") + Text(str(folder), style="bold"), soft_wrap=True)
    if several := report["audit"]["sets"]:
        screen.print(f"  {rows['released']:,} rows; smallest groups of the quasi-identifiers:")
        for one in several:
            words = f"  {', '.join(one['columns'])}: {one['sizes']['smallest']} persons (asked: {one['k']})"
            screen.print(Text(words), soft_wrap=True)
    else:
        screen.print(
            f"  {rows['released']:,} rows in {found['groups']:,} groups, the smallest of {found['smallest_group']} "
            f"persons (asked: {found['k']})"
        )
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
    screen.print(Text(f"  read next: {found['report']}"), soft_wrap=True)
    screen.print(Text(f"  for the owner of the data only: {found['internal_report']}"), soft_wrap=True)


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
    # Labels and names are told whole: a part of one may be that of another.
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
) -> None:
    """Make and publish the release of a spec; `steps` also shows how columns were refined."""
    with stages(as_json=as_json) as stage:
        from anonfit.api import run

        folder = out or Path(f"{spec.stem}-release")
        release = run(spec, folder, settings=settings, curve=curve, replace=replace, stage=stage)
    refinements = release.refinements
    more = {} if refinements is None else {"stopped": refinements["stopped"]}
    show_release(release.report, folder, as_json=as_json, more=more | ({"refinements": refinements} if steps else {}))
    if refinements is not None and refinements["stopped"] and not as_json:
        results().print(
            f"  Refining was stopped after {len(refinements['steps']):,} refinements; more were possible.",
            style="yellow",
        )
    if steps and not as_json:
        show_refinements(refinements)


def apply_release(
    release: Path,
    data: Path,
    out: Path | None,
    *,
    unseen: str,
    replace: bool,
    as_json: bool,
    recoding: Path | None = None,
    suppression_limit: float | None = None,
) -> None:
    """Release new data by an earlier release's recoding, or an edited one."""
    with stages(as_json=as_json) as stage:
        from anonfit.api import load_table
        from anonfit.recoding.storage import read_recoding

        stage("Loading the release")
        folder = out or Path(f"{data.name.split('.')[0]}-release")
        edited = None if recoding is None else read_recoding(recoding)
        extended = load_table(release).publish_extension(
            data,
            folder,
            unseen=unseen,
            recoding=edited,
            suppression_limit=suppression_limit,
            replace=replace,
            stage=stage,
        )
    show_release(extended.report, folder, as_json=as_json)
