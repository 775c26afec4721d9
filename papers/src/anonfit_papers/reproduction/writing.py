# SPDX-License-Identifier: Apache-2.0
"""Writes what came of experiments: a folder for each with its figure, table and verdict, and one summary of all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import polars as pl

from anonfit.runtime.files import write_file
from anonfit_papers.reproduction.figures import draw
from anonfit_papers.reproduction.frame import Experiment, Measured, Result, Settings

PACKAGES = ("anonfit", "numpy", "polars", "python-weka-wrapper3", "scikit-learn")
FIGURE, TABLE, VERDICT, SUMMARY = "figure", "table.csv", "verdict.json", "summary"
MEASURED = "measured.json"


def extent(*, quick: bool) -> str:
    """The folder of results of one extent: a quick run never stands in for a full one."""
    return "quick" if quick else "full"


def write_result(experiment: Experiment, result: Result, settings: Settings, out: Path) -> Mapping[str, Any]:
    """Write an experiment's figure, table and verdict; what is in verdict.json."""
    folder = out / extent(quick=settings.quick) / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    draw(result.figure, folder, FIGURE)
    write_file(folder / TABLE, result.table.write_csv())
    write_file(folder / MEASURED, measured_text(result.measured))
    verdict = {
        "name": experiment.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "claims": list(experiment.claims),
        "claim": experiment.claim,
        "band": experiment.band,
        "reading": experiment.reading,
        "setting": experiment.setting,
        "shares": experiment.shares,
        "learners": experiment.learners,
        "extent": extent(quick=settings.quick),
        "verdict": str(result.verdict),
        "why": result.why,
        "checks": [
            {
                "claim": check.claim,
                "holds": check.holds,
                "within_band": check.within_band,
                "found": check.found,
                "weak": check.weak,
            }
            for check in result.checks
        ],
        "notes": list(result.notes),
        "versions": _versions(),
    }
    write_file(folder / VERDICT, json.dumps(verdict, ensure_ascii=False, indent=1) + "\n")
    return verdict


def measured_text(measured: Sequence[Measured]) -> str:
    """What parts gave, a line for each."""
    lines = (json.dumps(part, ensure_ascii=False, separators=(",", ":")) for part in measured)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _versions() -> dict[str, str]:
    """The packages that numbers may depend on, those that are there."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def summary_row(verdict: Mapping[str, Any]) -> dict[str, str]:
    """The line of an experiment in the summary."""
    checks = verdict["checks"]
    held = sum(check["holds"] for check in checks)
    return {
        "name": verdict["name"],
        "claims": " ".join(verdict["claims"]),
        "title": verdict["title"],
        "verdict": verdict["verdict"],
        "checks": f"{held} of {len(checks)}",
        "why": verdict["why"],
    }


def write_summary(verdicts: Sequence[Mapping[str, Any]], out: Path, *, quick: bool) -> Path:
    """Write the summary of some experiments as CSV and JSON.

    Args:
        verdicts: What `write_result` gave for each.
        out: The folder of all results.
        quick: Whether they are of a quick run.

    Returns:
        The CSV file.
    """
    folder = out / extent(quick=quick)
    path = folder / f"{SUMMARY}.csv"
    write_file(path, pl.DataFrame([summary_row(verdict) for verdict in verdicts]).write_csv())
    text = json.dumps(list(verdicts), ensure_ascii=False, indent=1)
    write_file(path.with_suffix(".json"), text + "\n")
    return path
