# SPDX-License-Identifier: Apache-2.0
"""Texts have the same domain and codes as strings, in categories, and in a dictionary with more texts than occur."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from anonfit.tables.codebook import code_column
from anonfit.tables.schema import Column, ColumnType, NominalDomain, Role

TEXTS = pl.Series("x", ["b", "a", None, "c", "b", "a", "rare", "c"] * 3 + ["odd"])
FORMS = {
    "categories": pl.Categorical(),
    "own categories": pl.Categorical(pl.Categories.random()),
    "dictionary": pl.Enum(["z", "rare", "odd", "c", "a", "b"]),
}


@pytest.mark.parametrize("left_out", [None, "c", "odd", "missing"])
@pytest.mark.parametrize("form", FORMS)
def test_only_texts_that_occur_count(form: str, left_out: str | None) -> None:
    kept = TEXTS.fill_null("missing") != (left_out or "")
    column = Column("x", Role.QUASI_IDENTIFIER, ColumnType.NOMINAL)
    plain, found = (
        code_column(column, values.filter(kept), persons=lambda rows, count: np.bincount(rows, minlength=count), k=2)
        for values in (TEXTS, TEXTS.cast(FORMS[form]))
    )
    assert isinstance(plain.domain, NominalDomain)
    assert isinstance(found.domain, NominalDomain)
    assert found.domain.taxonomy.leaves == plain.domain.taxonomy.leaves
    assert found.domain.other == plain.domain.other
    assert (found.domain.other is None) == (left_out == "odd")
    assert found.codes.tolist() == plain.codes.tolist()
