# SPDX-License-Identifier: Apache-2.0
"""What types of columns become where rows live outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["plain", "released"]


def plain(dtype: pl.DataType) -> pl.DataType:
    """The type of a column as engines tell it: texts are texts."""
    import polars as pl

    return pl.String() if isinstance(dtype, pl.Categorical | pl.Enum) else dtype


def released(dtype: pl.DataType) -> pl.DataType:
    """The type of a raw column in the release: an Enum would bring all its categories into the file."""
    import polars as pl

    return pl.String() if isinstance(dtype, pl.Enum) else dtype
