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
    """The type of a raw column in the release: an Enum would bring all its categories into the file, and categories
    that have a name would bring that.
    """
    import polars as pl

    if isinstance(dtype, pl.Enum):
        return pl.String()
    return pl.Categorical() if isinstance(dtype, pl.Categorical) else dtype
