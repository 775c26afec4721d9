# SPDX-License-Identifier: Apache-2.0
"""UCI Credit Approval (CRX): the 653 applications without a missing value, and their six columns of numbers."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from anonfit_papers.datasets import CRX, require

CREDIT_NUMBERS = ("A2", "A3", "A8", "A11", "A14", "A15")
CREDIT_CLASS = "A16"


def complete_credit(folder: Path) -> pl.DataFrame:
    """The applications without a missing value: A1 to A16, numbers as numbers."""
    require(folder, CRX, what="The table of credits")
    names = [f"A{number}" for number in range(1, 17)]
    frame = pl.read_csv(folder / CRX[0].path, has_header=False, new_columns=names, infer_schema=False)
    complete = frame.filter(~pl.any_horizontal(pl.all() == "?"))
    return complete.with_columns(pl.col(*CREDIT_NUMBERS).cast(pl.Float64))
