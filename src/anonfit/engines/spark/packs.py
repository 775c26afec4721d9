# SPDX-License-Identifier: Apache-2.0
"""Packs: many rows as one value. Spark holds and moves packs, and never looks into them: rows are worked on by the same
library as everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from anonfit.engines.spark.rows import polars

if TYPE_CHECKING:
    import polars as pl

NODE, PART = "node", "part"
CONTENT, RAW = "content", "raw"
"""Columns of packs: nodes and codes of rows, and raw values of the same rows."""


def pack(frame: pl.DataFrame) -> bytes:
    """Rows as bytes."""
    content = BytesIO()
    frame.write_ipc(content, compression="uncompressed")
    return content.getvalue()


def unpack(content: bytes, names: Sequence[str] | None = None) -> pl.DataFrame:
    """Some columns of the rows of a pack."""
    frame: pl.DataFrame = polars().read_ipc(BytesIO(content), columns=None if names is None else list(names))
    return frame if names is None else frame.select(names)


def unpacked(batches: Iterable[Any], names: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
    """The rows of packs, pack after pack."""
    for batch in batches:
        for content in batch.column(CONTENT):
            yield unpack(content.as_buffer(), names)


def packed(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A batch of packs, and of whole numbers that stand beside them."""
    import pyarrow as pa

    kinds = {CONTENT: pa.binary(), RAW: pa.binary()}
    return pa.RecordBatch.from_pydict(
        {name: pa.array(values, kinds.get(name, pa.int64())) for name, values in columns.items()}
    )


def apart(frame: pl.DataFrame, by: str) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows of each number of a column, without that column."""
    for (number,), part in frame.partition_by(by, as_dict=True, include_key=False).items():
        yield int(number), part
