# SPDX-License-Identifier: Apache-2.0
"""The census tables on which the gain of a purpose is measured: Adult and the wages of the American Community Survey.

The files are no part of the package; the README of the data folder says where they come from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from anonfit.errors import DataError
from anonfit_papers.datasets import ADULT
from anonfit_papers.datasets_adult import complete_adult

VARIABLE = "ANONFIT_DATA"
BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data"
HIGH_WAGE = 30_000

_ADULT_NAMES = ("workclass", "marital-status", "occupation", "race", "sex", "native-country")
_WAGES_NUMBERS = ("AGEP", "SCHL", "WKHP")
_WAGES_NAMES = ("ST", "CIT", "MAR", "SEX", "DIS", "RAC1P")

# The data has no taxonomies of these codes; these follow the words of its dictionary and the divisions of the Census
# Bureau. SEX and DIS have two values.
_WAGES_TREES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ST": {
        "New England": ("23", "33", "44", "50"),
        "South Atlantic": ("10",),
        "West North Central": ("38", "46"),
        "Mountain": ("16", "30", "56"),
    },
    "CIT": {"citizen by birth": ("1", "2", "3"), "naturalized": ("4",), "not a citizen": ("5",)},
    "MAR": {"married": ("1",), "was married": ("2", "3", "4"), "never married": ("5",)},
    "SEX": {"male": ("1",), "female": ("2",)},
    "DIS": {"with a disability": ("1",), "without": ("2",)},
    "RAC1P": {
        "White": ("1",),
        "Black": ("2",),
        "Native": ("3", "4", "5", "7"),
        "Asian": ("6",),
        "other": ("8", "9"),
    },
}


@dataclass(frozen=True)
class Task:
    """A table and what is to be predicted: every column but the target is a quasi-identifier."""

    name: str
    frame: pl.DataFrame
    target: str
    taxonomies: Mapping[str, Path | Mapping[str, Any]]

    @property
    def quasi_identifiers(self) -> list[str]:
        """The columns that are generalized."""
        return [name for name in self.frame.columns if name != self.target]

    @property
    def nominal(self) -> list[str]:
        """Those of them that are names."""
        return list(self.taxonomies)


def data_folder(given: str | Path | None = None) -> Path:
    """The folder of the data.

    Args:
        given: The folder; by default what ANONFIT_DATA says, or `../shared/data` beside the project.

    Returns:
        A folder that is there.
    """
    folder = Path(given or os.environ.get(VARIABLE) or BESIDE)
    if not folder.is_dir():
        raise DataError(f"The data folder {folder} is not there: give it by --data or in {VARIABLE}.")
    return folder


def adult(folder: Path) -> Task:
    """UCI Adult, both files, the 45,222 records without a missing value: who earns more than 50,000."""
    for source in ADULT:
        _require(folder / source.path)
    columns = ["age", "workclass", "education-num", "marital-status", "occupation", "race", "sex", "native-country"]
    frame = complete_adult(folder).select(*columns, "class")
    trees = folder / "hierarchies" / "arx-adult"
    return Task("Adult", frame, "class", {name: trees / f"adult_hierarchy_{name}.csv" for name in _ADULT_NAMES})


def wages(folder: Path, least: int = HIGH_WAGE) -> Task:
    """ACS 2018, the 51,787 persons of ten states aged 16 or more who earn wages: who earns `least` or more."""
    path = folder / "acs" / "acs2018_1yr_persons_10states.csv.gz"
    _require(path)
    people = pl.read_csv(path, infer_schema=False)
    people = people.with_columns(pl.col(*_WAGES_NUMBERS, "WAGP").cast(pl.Int32, strict=False))
    people = people.filter((pl.col("AGEP") >= 16) & (pl.col("WAGP") > 0))
    high = pl.when(pl.col("WAGP") >= least).then(pl.lit("high")).otherwise(pl.lit("low")).alias("wage")
    frame = people.select("ST", "AGEP", "CIT", "MAR", "SCHL", "SEX", "WKHP", "DIS", "RAC1P", high)
    return Task("ACS wages", frame, "wage", {name: _tree(_WAGES_TREES[name]) for name in _WAGES_NAMES})


TASKS = (adult, wages)


def _tree(parts: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """A taxonomy of two levels; a part of one code is that code."""

    def node(name: str, codes: tuple[str, ...]) -> dict[str, Any]:
        leaves = [{"name": code} for code in codes]
        return leaves[0] if len(leaves) == 1 else {"name": name, "children": leaves}

    return {"name": "*", "children": [node(name, codes) for name, codes in parts.items()]}


def _require(path: Path) -> None:
    if not path.is_file():
        raise DataError(f"{path} is not there: the README of the data folder says where it comes from.")
