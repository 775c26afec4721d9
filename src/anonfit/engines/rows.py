# SPDX-License-Identifier: Apache-2.0
"""What out-of-core engines share: the types of their columns, nodes in batches, and the one data file of a release from
sorted rows that come a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anonfit.errors import DataError, ReleaseError
from anonfit.tables.formats import FORMATS
from anonfit.tables.frames import rebuilt

if TYPE_CHECKING:
    import polars as pl


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


def in_batches(nodes: Mapping[int, int], most: int) -> Iterator[list[int]]:
    """Nodes, given with their sizes, in batches of at most so many rows; a larger node is a batch by itself."""
    batch: list[int] = []
    rows = 0
    for node in sorted(nodes):
        if batch and rows + nodes[node] > most:
            yield batch
            batch, rows = [], 0
        batch.append(node)
        rows += nodes[node]
    if batch:
        yield batch


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
            frame = pl.DataFrame([raw[name] if name in raw else of_region[name] for name in with_columns or names])
            yield rebuilt(frame)

    write_table(register_io_source(frames, schema=pl.Schema(schema)), path, kind)


def check_writable(types: Mapping[str, pl.DataType], kind: str) -> None:
    """Refuse columns of types that a format cannot hold."""
    for name, dtype in types.items():
        if str(dtype.base_type()) in FORMATS[kind].lacks:
            able = [other.name for other in FORMATS.values() if str(dtype.base_type()) not in other.lacks]
            raise DataError(
                f"column '{name}' is of type {dtype}, which a {kind.upper()} file cannot hold; use the format "
                f"{' or '.join(able)}, or cast it."
            )


def write_table(table: pl.DataFrame | pl.LazyFrame, path: Path, kind: str) -> None:
    """Write a table as a file of a format."""
    import polars as pl

    rows = table.lazy()
    check_writable(rows.collect_schema(), kind)
    try:
        FORMATS[kind].sink(rows, path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ReleaseError(f"the data file could not be written ({type(error).__name__}): is the disk full?") from None
