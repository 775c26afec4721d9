# SPDX-License-Identifier: Apache-2.0
"""The one data file of a release from sorted rows that come a few at a time: ranks become what their regions say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anonfit.errors import ReleaseError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["sink"]


def sink(
    parts: Callable[[], Iterator[tuple[pl.Series, dict[str, pl.Series]]]],
    regions: pl.DataFrame,
    names: Sequence[str],
    schema: Mapping[str, pl.DataType],
    path: Path,
    kind: str,
) -> None:
    """Write a file of columns `names` from parts: the ranks of rows, and their raw columns by name."""
    import polars as pl
    from polars.io.plugins import register_io_source

    def frames(
        with_columns: list[str] | None, predicate: Any, n_rows: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        assert predicate is None
        assert n_rows is None
        for ranks, raw in parts():
            of_region = regions[ranks.to_numpy().astype(np.int64)]
            yield pl.DataFrame([raw[name] if name in raw else of_region[name] for name in with_columns or names])

    source = register_io_source(frames, schema=pl.Schema(schema))
    try:
        if kind == "csv":
            source.sink_csv(path)
        elif kind == "parquet":
            source.sink_parquet(path)
        else:
            source.with_columns(pl.col(pl.Enum).cast(pl.Categorical)).sink_ipc(path, compression="zstd")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ReleaseError(
            f"the data file could not be written ({type(error).__name__}): is the disk full, or the format unfit "
            "for a column?"
        ) from None
