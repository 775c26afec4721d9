# SPDX-License-Identifier: Apache-2.0
"""How values are held in Spark: as whole numbers, numbers, texts or bytes that sort as the values do. Spark itself does
not know all types of columns that files have; here every value comes back as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

TOP = -(1 << 63)


def is_storable(dtype: pl.DataType) -> bool:
    """Whether values of a type can be held."""
    import polars as pl

    wide = (pl.Int128, pl.UInt128) if hasattr(pl, "UInt128") else (pl.Int128,)
    return not (dtype.is_nested() or dtype == pl.Object or isinstance(dtype, wide))


def stored_type(dtype: pl.DataType) -> pl.DataType:
    """The type that values of a type are held as."""
    import polars as pl

    if dtype.is_float():
        return pl.Float64()
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return pl.String()
    if isinstance(dtype, pl.Binary):
        return pl.Binary()
    if isinstance(dtype, pl.Decimal):
        return pl.Decimal(38, dtype.scale)
    return pl.Int64()


def spark_type(dtype: pl.DataType) -> str:
    """The name that Spark has for a type of storage."""
    import polars as pl

    if isinstance(dtype, pl.Decimal):
        return f"decimal(38,{dtype.scale})"
    return {pl.Float64: "double", pl.String: "string", pl.Binary: "binary"}.get(type(dtype), "bigint")


def stored(column: pl.Series) -> pl.Series:
    """A column as it is held."""
    import polars as pl

    dtype = column.dtype
    kind = stored_type(dtype)
    if isinstance(dtype, pl.UInt64):
        return column.to_frame().select(pl.col(column.name).reinterpret(signed=True) ^ TOP).to_series()
    if dtype.is_temporal():
        return column.to_physical().cast(kind)
    return column.cast(kind)


def restored(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A column of a type from what is held of it."""
    import polars as pl

    if isinstance(dtype, pl.UInt64):
        return column.to_frame().select((pl.col(column.name) ^ TOP).reinterpret(signed=False)).to_series()
    if isinstance(dtype, pl.Null):
        return pl.Series(column.name, [None] * len(column), dtype=pl.Null)
    if isinstance(dtype, pl.Date):
        return column.cast(pl.Int32).cast(dtype)
    return column.cast(dtype)
