# SPDX-License-Identifier: Apache-2.0
"""The real tables of the experiments, read: census wages as classes and as numbers, Adult, contraceptives."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from anonfit_papers.datasets import ACS, ADULT, CMC, Source, is_there, require
from anonfit_papers.datasets_adult import ADULT_TAXONOMIES, complete_adult
from anonfit_papers.purpose_tables import HIGH_WAGE, Task, wages

_CMC_COLUMNS = (
    *("wife-age", "wife-education", "husband-education", "children", "wife-religion", "wife-working"),
    *("husband-occupation", "living-standard", "media-exposure", "method"),
)
_ADULT_NAMES = ("workclass", "marital-status", "occupation", "race", "sex", "native-country")
_ADULT_PREDICTORS = ("age", "education-num", *_ADULT_NAMES)
_PAIRS = ("wife-education", "husband-education", "husband-occupation")
_CHOICES = ("wife-religion", "wife-working", "media-exposure")


def census_sources(folder: Path) -> tuple[Source, ...]:
    """The files of the census table: the American Community Survey, or Adult where only that is there."""
    return ACS if is_there(folder, ACS) else ADULT


def census(folder: Path, least: int = HIGH_WAGE) -> Task:
    """Who earns much: wages of `least` and more in the American Community Survey of 2018, ten states. Where that file
    is not there, Adult.
    """
    sources = census_sources(folder)
    require(folder, sources, what="The census table")
    if sources == ACS:
        return wages(folder, least)
    return _adult(folder, "class")


def census_numbers(folder: Path) -> Task:
    """The same table with a number as its target: the wage; in Adult, the hours of work a week."""
    sources = census_sources(folder)
    require(folder, sources, what="The census table")
    if sources == ADULT:
        return _adult(folder, "hours-per-week")
    task = wages(folder)
    return replace(task, frame=task.frame.drop(task.target).with_columns(_wage(folder)), target="WAGP")


def contraceptives(folder: Path) -> Task:
    """UCI Contraceptive Method Choice: 1,473 couples and which of three ways they chose. Age, children and standard of
    living are numbers, the other six columns have taxonomies.
    """
    require(folder, CMC, what="The table of contraceptives")
    path = folder / CMC[0].path
    frame = pl.read_csv(path, has_header=False, new_columns=list(_CMC_COLUMNS), infer_schema=False)
    numbers = ("wife-age", "children", "living-standard")
    frame = frame.with_columns(pl.col(*numbers).cast(pl.Int32))
    trees = {name: _pairs() for name in _PAIRS} | {name: _choice() for name in _CHOICES}
    return Task("Contraceptives", frame, "method", {name: trees[name] for name in frame.columns if name in trees})


def fingerprint(folder: Path, sources: tuple[Source, ...]) -> str:
    """What tells these files from others with the same names."""
    require(folder, sources, what="The experiment")
    digest = hashlib.sha256()
    for source in sources:
        digest.update(hashlib.sha256((folder / source.path).read_bytes()).digest())
    return digest.hexdigest()[:16]


def _adult(folder: Path, target: str) -> Task:
    frame = complete_adult(folder).select(*_ADULT_PREDICTORS, target)
    return Task("Adult", frame, target, {name: ADULT_TAXONOMIES[name] for name in _ADULT_NAMES})


def _wage(folder: Path) -> pl.Series:
    """The wages of those who are in the table of wages, in its order."""
    people = pl.read_csv(folder / ACS[0].path, columns=["AGEP", "WAGP"], infer_schema=False)
    numbers = people.select(pl.all().cast(pl.Int32, strict=False))
    return numbers.filter((pl.col("AGEP") >= 16) & (pl.col("WAGP") > 0))["WAGP"]


def _pairs() -> dict[str, Any]:
    """Four ordered codes, two and two."""
    halves = [("1 or 2", "1", "2"), ("3 or 4", "3", "4")]
    return {
        "name": "*",
        "children": [{"name": half[0], "children": [{"name": c} for c in half[1:]]} for half in halves],
    }


def _choice() -> dict[str, Any]:
    return {"name": "*", "children": [{"name": "0"}, {"name": "1"}]}
