# SPDX-License-Identifier: Apache-2.0
"""docs/reproduction.md, made from results that were written: nothing in it is put in by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from anonfit.errors import RequestError
from anonfit.runtime.files import write_file
from anonfit_papers.reproduction.catalogue import EXPERIMENTS
from anonfit_papers.reproduction.frame import OWN
from anonfit_papers.reproduction.writing import FIGURE, MEASURED, TABLE, VERDICT, extent

_OPENING = """# Reproduction of the papers

This page is made by `anonfit reproduce{names} --docs docs`{quick}; change the experiments, not the page. Experiments
that are not named keep the results that were measured before, which lie beside their figures. Each row of the first
table is one experiment: what the paper claims, and whether our measurement agrees. A claim **holds** if all that the
paper says was found, and **holds, but weakly** if chance alone would part the numbers as far (p ≥ 0.05), if it rests
on no difference having been found, or if the test takes for independent what is not; it **holds within the band** if
only what was fixed as acceptable was found, and otherwise **does not hold**, with the numbers that say so. No paper
gives a band: these, and what words such as "much" and "several" are in numbers, are our own readings. What could not
have failed is shown and not judged. Each row names the reading of the paper that it tests, the share of the classes,
and who learns with which settings. The examples of table 2, once R2, are part of R1. [papers.md](papers.md) leads
from the sections, figures and tables of the papers to the rows.

The papers are *Workload-Aware Anonymization* (LeFevre, DeWitt, Ramakrishnan, KDD 2006; claims C), *Anonymizing
Classification Data for Privacy Preservation* (Fung, Wang, Yu, TKDE 2007; claims T), a report on weighted
anonymization for applications (Rangachari, Xiong; claims W) and *k-Anonymous Decision Tree Induction* (Friedman,
Schuster, Wolff, PKDD 2006; claims K, numbered here). A claim "own" is of no paper: the question is ours. In the
first, regions are learned from training rows only, test rows are recoded by the same regions, and the learners are
Weka's, as in the paper; [learning.md](learning.md) says how regions become features. TDS is top-down refinement for
one quasi-identifier ([tdr.md](tdr.md)). In the second, training and test records are masked together, as its authors
did: the errors tell of its claims, and flatter what a model would do on records that nobody has seen. Trees are
tested on rows that were not masked ([trees.md](trees.md)).
"""

FIGURES = "figures"
"""The folder beside the page with what it shows."""
_FILES = {f"{FIGURE}.png": "png", f"{FIGURE}.svg": "svg", TABLE: "csv", VERDICT: "json"}
"""What lies beside the page of every experiment, by its ending."""
PARTS = "measured"
"""The folder in that one with what was judged."""
_WORDS = {"reading": "Reading", "shares": "Classes", "learners": "Learners", "setting": "Setting"}


def write_page(out: Path, docs: Path, *, quick: bool) -> Path:
    """Write the page of all results of one extent that are there, with their figures and tables beside it; of an
    experiment that has none, what lies beside the page already.

    Args:
        out: The folder of all results.
        docs: The folder of the page.
        quick: Whether the results of quick runs are shown.

    Returns:
        The page.
    """
    folder = out / extent(quick=quick)
    measured = [experiment.name for experiment in EXPERIMENTS if (folder / experiment.name / VERDICT).is_file()]
    if not measured:
        raise RequestError(f"{folder} has no results to show: run the experiments first.")
    figures = docs / FIGURES
    (figures / PARTS).mkdir(parents=True, exist_ok=True)
    for name in measured:
        for file, ending in _FILES.items():
            shutil.copyfile(folder / name / file, figures / f"{name}.{ending}")
        shutil.copyfile(folder / name / MEASURED, figures / PARTS / f"{name}.json")
    page = docs / "reproduction.md"
    write_file(page, page_text(figures, quick=quick))
    return page


def page_text(figures: Path, *, quick: bool) -> str:
    """The page of the results that lie in a folder, and of nothing else.

    Args:
        figures: The folder beside the page, with the figure, the table and the verdict of each experiment.
        quick: Whether the results of quick runs are shown.
    """
    verdicts = _kept(figures, extent(quick=quick))
    names = " all" if len(verdicts) == len(EXPERIMENTS) else "".join(f" {verdict['name']}" for verdict in verdicts)
    opening = _OPENING.format(names=names, quick=", here with `--quick`: fewer trials and rows" if quick else "")
    parts = [opening, *_summary(verdicts)]
    for verdict in verdicts:
        parts.extend(_section(verdict, figures / f"{verdict['name']}.csv"))
    return "\n".join(parts) + "\n"


def _summary(verdicts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rows = []
    for verdict in verdicts:
        held = sum(check["holds"] for check in verdict["checks"])
        link = f"[{verdict['name']}](#{_anchor(verdict)})"
        rows.append(
            [
                link,
                ", ".join(verdict["claims"]),
                verdict["title"],
                f"**{verdict['verdict']}**",
                f"{held} of {len(verdict['checks'])}",
            ]
        )
    yield from _table(["experiment", "claim", "about", "verdict", "checks that hold"], rows)
    yield ""


def _kept(figures: Path, wanted: str) -> list[dict[str, Any]]:
    """The results beside the page, in the order of the experiments; those of another extent are not shown."""
    paths = [figures / f"{experiment.name}.json" for experiment in EXPERIMENTS]
    verdicts = [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]
    return [verdict for verdict in verdicts if verdict["extent"] == wanted]


def _section(verdict: Mapping[str, Any], table: Path) -> Iterator[str]:
    yield f"## {_heading(verdict)}\n"
    claims = ", ".join(verdict["claims"])
    numbers = "; our own question" if claims == OWN else f"; claim {claims}"
    yield f"*{verdict['paper']}{numbers}.* {verdict['claim']}\n"
    yield f"**Verdict: {verdict['verdict']}.** Accepted band: {verdict['band']}\n"
    for word in ("reading", "shares", "learners", "setting"):
        yield f"- {_WORDS[word]}: {verdict[word]}"
    yield ""
    yield f"![{verdict['title']}](figures/{verdict['name']}.png)\n"
    missed = [check for check in verdict["checks"] if not check["holds"]]
    if missed:
        yield "What does not hold as the paper says:\n"
        yield from (f"- {check['claim']}: {check['found']}" for check in missed)
        yield ""
    met = [check for check in verdict["checks"] if check["holds"]]
    if met:
        yield "What holds:\n"
        yield from (f"- {check['claim']}{' (weak)' * check['weak']}: {check['found']}" for check in met)
        yield ""
    yield from _frame(pl.read_csv(table))
    yield ""
    yield from (f"{note}\n" for note in verdict["notes"])
    if not verdict["versions"]:
        yield "Measured before the versions of packages were kept beside the results.\n"


def _heading(verdict: Mapping[str, Any]) -> str:
    return f"{verdict['name']} {verdict['title']}"


def _anchor(verdict: Mapping[str, Any]) -> str:
    """How pages of Markdown name the place of a heading."""
    kept = [letter for letter in _heading(verdict).lower() if letter.isalnum() or letter in " -"]
    return "".join(kept).replace(" ", "-")


def _frame(frame: pl.DataFrame) -> Iterator[str]:
    """A table; standard errors stand beside their means, and errors of no other column are columns themselves."""
    errors = {f"{name} error" for name in frame.columns} & set(frame.columns)
    names = [name for name in frame.columns if name not in errors]
    rows = []
    for row in frame.iter_rows(named=True):
        cells = []
        for name in names:
            text = "" if row[name] is None else f"{row[name]:g}" if isinstance(row[name], float) else str(row[name])
            cells.append(f"{text} ± {row[f'{name} error']:g}" if f"{name} error" in errors else text)
        rows.append(cells)
    yield from _table(names, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for line in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(line)} |"
