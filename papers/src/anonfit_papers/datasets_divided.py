# SPDX-License-Identifier: Apache-2.0
"""The tables of TKDE 2007, divided into training and test records as its experiments have them: Adult, CRX, German."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonfit_papers.datasets import CRX, GERMAN, require
from anonfit_papers.datasets_adult import ADULT_TAXONOMIES, complete_adult

_ADULT_RANKED = (
    *("capital-gain", "age", "marital-status", "education-num", "relationship", "hours-per-week", "sex"),
    *("education", "occupation"),
)
_ADULT_TRAINING = 30_162
_CRX_RANKED = ("A9", "A11", "A10", "A8", "A15", "A7", "A14", "A6", "A5")
_CRX_NUMBERS = ("A2", "A3", "A8", "A11", "A14", "A15")
_CRX_FILE_TRAINING = 490
"""Lines of the file; incomplete ones are left out afterwards."""
_GERMAN_COLUMNS = (
    *("account-status", "duration", "credit-history", "loan-purpose", "credit", "savings-account", "employment"),
    *("installment-rate", "personal-status", "debtors", "residence-time", "property", "age", "installments", "housing"),
    *("existing-credits", "job", "liable-people", "telephone", "foreign", "class"),
)
_GERMAN_NUMBERS = (
    *("duration", "credit", "installment-rate", "residence-time", "age", "existing-credits", "liable-people"),
)
_GERMAN_RANKED = (
    *("credit", "account-status", "duration", "credit-history", "savings-account", "installments", "loan-purpose"),
    *("debtors", "property"),
)
_GERMAN_TRAINING = 666


@dataclass(frozen=True)
class Divided:
    """A table whose first `training` rows are learned from, and whose others are tested on.

    `ranked` are the columns that a decision tree puts first, in that order, as the paper lists them.
    """

    name: str
    frame: pl.DataFrame = field(repr=False)
    training: int
    ranked: tuple[str, ...]
    target: str = "class"
    taxonomies: Mapping[str, Any] = field(default_factory=dict, repr=False)
    division: int = 0
    """Which of several divisions into training and test records it is."""

    @property
    def predictors(self) -> list[str]:
        """All columns but the class."""
        return [name for name in self.frame.columns if name != self.target]


def divided_adult(folder: Path) -> Divided:
    """The complete records of Adult, 30,162 and 15,060."""
    return Divided("Adult", complete_adult(folder), _ADULT_TRAINING, _ADULT_RANKED, taxonomies=ADULT_TAXONOMIES)


def divided_crx(folder: Path) -> Divided:
    """The complete records of the credit screening: 465 of the first 490 lines, and 188 of the others."""
    require(folder, CRX, what="The credit screening")
    names = [f"A{number}" for number in range(1, 16)]
    frame = pl.read_csv(
        folder / CRX[0].path, has_header=False, new_columns=[*names, "class"], infer_schema=False
    ).with_row_index("line")
    complete = frame.filter(~pl.any_horizontal(pl.col(*names) == "?"))
    training = int((complete["line"] < _CRX_FILE_TRAINING).sum())
    numbers = complete.drop("line").with_columns(pl.col(*_CRX_NUMBERS).cast(pl.Float64))
    return Divided("CRX", numbers, training, _CRX_RANKED)


def divided_german(folder: Path, seed: int) -> Divided:
    """The German credit records, divided at random into 666 and 334: the paper's own division is not in the archive.

    Args:
        folder: The data folder.
        seed: Another seed divides otherwise.
    """
    require(folder, GERMAN, what="The German credit records")
    path = folder / GERMAN[0].path
    frame = pl.read_csv(
        path, has_header=False, separator=" ", new_columns=list(_GERMAN_COLUMNS), infer_schema=False
    ).with_columns(pl.col(*_GERMAN_NUMBERS).cast(pl.Int32))
    order = np.random.default_rng(seed).permutation(len(frame))
    return Divided("German", frame[order], _GERMAN_TRAINING, _GERMAN_RANKED, division=seed)
