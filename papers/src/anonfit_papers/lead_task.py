# SPDX-License-Identifier: Apache-2.0
"""A table on which the default is held against ai-privacy-toolkit, and what its makers share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from anonfit.errors import RequestError


@dataclass(frozen=True)
class LeadTask:
    """A table: all columns but the targets are quasi-identifiers, of which those in `nominal` are names."""

    name: str
    frame: pl.DataFrame
    targets: tuple[str, ...]
    nominal: tuple[str, ...]
    numbers: bool = False
    taxonomies: Mapping[str, Any] = field(default_factory=dict)

    @property
    def quasi_identifiers(self) -> list[str]:
        """The columns that are generalized."""
        return [name for name in self.frame.columns if name not in self.targets]


def yes_no(condition: pl.Expr, name: str) -> pl.Expr:
    """A target of two classes; unknown where the condition is."""
    return pl.when(condition).then(pl.lit("yes")).when(~condition).then(pl.lit("no")).alias(name)


def without_package(package: str, table: str) -> RequestError:
    """The error that a table's package is not installed."""
    return RequestError(
        f"The table '{table}' ships with the package {package}: pip install './papers[toolkit]' brings it."
    )
