# SPDX-License-Identifier: Apache-2.0
"""`anonfit reproduce`: runs the papers' experiments and says which claims hold. Loaded by that verb alone."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anonfit.cli.showing import console, print_json, results, stages, table
from anonfit.errors import DataError, counted
from anonfit_papers.datasets import ARCHIVE, fetch
from anonfit_papers.purpose_tables import VARIABLE, data_folder
from anonfit_papers.reproduction.catalogue import EXPERIMENTS
from anonfit_papers.reproduction.frame import Settings
from anonfit_papers.reproduction.page import FIGURES, write_page
from anonfit_papers.reproduction.running import PARTS, chosen, in_words, make_folder, plan, run
from anonfit_papers.reproduction.writing import summary_row, write_result, write_summary


def _list_experiments(*, as_json: bool) -> None:
    """Say which experiments there are."""
    if as_json:
        print_json(
            {
                "experiments": [
                    {
                        "name": experiment.name,
                        "title": experiment.title,
                        "paper": experiment.paper,
                        "claims": experiment.claims,
                        "claim": experiment.claim,
                    }
                    for experiment in EXPERIMENTS
                ]
            }
        )
        return
    screen = results()
    rows = [
        (experiment.name, " ".join(experiment.claims), experiment.paper, experiment.title) for experiment in EXPERIMENTS
    ]
    screen.print(table(("name", "claims", "figure", "about"), rows))
    screen.print("\nRun some by name, or all: anonfit reproduce all --quick")


def reproduce(
    names: Sequence[str],
    *,
    data: Path | None,
    out: Path,
    quick: bool,
    fetched: bool,
    archive: str | None,
    docs: Path | None,
    as_json: bool,
) -> None:
    """Run experiments and tell what came of them; without names, say which there are."""
    if not names:
        _list_experiments(as_json=as_json)
        return
    experiments = chosen(names)
    if docs is not None:
        make_folder(docs / FIGURES, "--docs")
    screen = console()
    with stages(as_json=as_json) as stage:
        folder = _folder(data, out, fetched=fetched, archive=archive, stage=stage)
        settings = Settings(quick=quick, folder=folder)
        planned = plan(experiments, settings, out)
        missing, seconds = len(planned.missing), planned.seconds
    if not as_json:
        kept = len(planned.different) - missing
        measured = f"{counted(missing, 'part')} to measure, {in_words(seconds)}"
        work = measured if missing else "nothing to measure, all parts are kept"
        screen.print(f"{counted(len(experiments), 'experiment')}: {work}; {kept} kept in {out / PARTS}", soft_wrap=True)
    start = time.monotonic()
    verdicts = []
    with stages(as_json=as_json) as stage:
        for experiment, result in run(planned, stage):
            verdicts.append(write_result(experiment, result, settings, out))
    summary = write_summary(verdicts, out, quick=quick)
    page = None
    if docs is not None:
        page = write_page(out, docs, quick=quick)
    _show(verdicts, summary, page, time.monotonic() - start, as_json=as_json)


def _folder(data: Path | None, out: Path, *, fetched: bool, archive: str | None, stage: Any) -> Path | None:
    """The data folder, None if there is none; files that it lacks are fetched if that was asked for."""
    if fetched:
        given = data or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else out / "data")
        fetch(given, archive=archive or ARCHIVE, stage=stage)
        return given
    if data is not None:
        return data_folder(data)
    try:
        return data_folder()
    except DataError:
        if os.environ.get(VARIABLE):
            raise
        return None


def _show(
    verdicts: Sequence[Mapping[str, Any]], summary: Path, page: Path | None, seconds: float, *, as_json: bool
) -> None:
    if as_json:
        content: dict[str, Any] = {"results": str(summary.parent), "summary": str(summary), "experiments": verdicts}
        print_json(content | ({"page": str(page)} if page else {}))
        return
    screen = results()
    rows = [summary_row(verdict) for verdict in verdicts]
    names = ("name", "claims", "title", "verdict", "checks")
    screen.print(table(names, [[row[name] for name in names] for row in rows]))
    for row in rows:
        if row["why"]:
            screen.print(f"{row['name']}: {row['why']}", markup=False, soft_wrap=True)
    screen.print(f"Done in {seconds:.0f} s. Figures, tables and verdicts: {summary.parent}", soft_wrap=True)
    if page is not None:
        screen.print(f"The page: {page}", soft_wrap=True)
