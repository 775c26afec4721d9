# SPDX-License-Identifier: Apache-2.0
"""Coding one column, and reading its codes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from anonfit.tables.codebook import CodedValues, code_column
from anonfit.tables.schema import Column, OrderedDomain, OrdinalDomain, Role

SECRET = "SECRET-4711"


def column(**declared: Any) -> Column:
    return Column("x", Role.QUASI_IDENTIFIER, **declared)


def rows(groups: Any, count: int) -> Any:
    """Every row is a person."""
    return np.bincount(groups, minlength=count)


def coded(values: pl.Series, *, k: int = 1, persons: Any = rows, **declared: Any) -> CodedValues:
    return code_column(column(**declared), values.alias("x"), persons=persons, k=k)


def decoded(found: CodedValues) -> list[Any]:
    """What each code stands for: a number of the axis, a word, a leaf; None where missing."""
    domain = found.domain
    shift = int(domain.has_missing)
    if isinstance(domain, OrderedDomain):
        known: list[Any] = domain.values.tolist()
    else:
        known = list(domain.order if isinstance(domain, OrdinalDomain) else domain.taxonomy.leaves)
    return [None if shift and code == 0 else known[code - shift] for code in found.codes.tolist()]
