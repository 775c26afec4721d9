# SPDX-License-Identifier: Apache-2.0
"""DataFrames of Spark as sources: what they are, their columns and types. None of their rows is looked at."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from anonfit.errors import DataError, listed, refuse_patterns

if TYPE_CHECKING:
    import polars as pl

__all__ = ["is_spark", "spark_names", "spark_rows", "spark_types"]


def is_spark(source: Any) -> bool:
    """Whether a source is a DataFrame of Spark, without importing it."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


def spark_names(source: Any) -> tuple[str, ...]:
    """The names of its columns."""
    names = tuple(source.columns)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"column names stand twice in the frame: {listed(twice)}; rename them.")
    refuse_patterns(names)
    return names


def spark_types(source: Any) -> dict[str, pl.DataType]:
    """The types that its columns have when they come here."""
    import polars as pl
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    found: dict[str, pl.DataType] = {}
    for field in source.schema.fields:
        try:
            arrow = to_arrow_schema(type(source.schema)([field]), timezone="UTC", prefers_large_types=False)
            frame = pl.from_arrow(arrow.empty_table())
        except (PySparkException, pl.exceptions.PolarsError, TypeError, ValueError):
            raise DataError(
                f"column '{field.name}' is of Spark's type {field.dataType.simpleString()}, which is not known here; "
                "leave it out, or cast it."
            ) from None
        assert isinstance(frame, pl.DataFrame)
        found[field.name] = frame.schema[field.name]
    return found


def spark_rows(source: Any) -> pl.DataFrame:
    """All rows, here: for those who ask for the engine 'memory'."""
    import polars as pl

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message="PySpark does not yet fully support pandas")
        found = pl.from_arrow(source.toArrow())
    assert isinstance(found, pl.DataFrame)
    return found.cast(spark_types(source))  # type: ignore[arg-type]
