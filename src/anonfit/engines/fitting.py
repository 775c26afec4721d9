# SPDX-License-Identifier: Apache-2.0
"""How much memory a table needs when it is made a release in memory."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from anonfit.tables.databases import DatabaseSource
from anonfit.tables.formats import format_of
from anonfit.tables.reading import files_of

__all__ = ["needed_memory"]

TIMES = 4
"""The table itself, its coded rows twice, and what the audit keeps of both."""
COMFORTABLE = 0.6
"""The share of the available memory that a table may need."""
UNPACKED = 8.0
"""How many bytes a byte of a packed file becomes."""
NUMBER, TEXT = 8, 24
"""Bytes of a value."""


def _file(path: Path, names: Collection[str]) -> float:
    """Bytes that the wanted columns of a file become."""
    import polars as pl

    kind, size = format_of(path), path.stat().st_size
    if kind.scan is not None and kind.knows_rows:
        try:
            scan = kind.scan(path)
            widths = [NUMBER if dtype.is_numeric() or dtype.is_temporal() else TEXT
                      for name, dtype in scan.collect_schema().items() if name in names]  # fmt: skip
            return float(scan.select(pl.len()).collect().item()) * sum(widths)
        except (pl.exceptions.PolarsError, OSError):
            return kind.grows * size
    is_packed = path.suffix in (".gz", ".zst")
    return (UNPACKED if is_packed else kind.grows) * size


def needed_memory(source: Any, names: Collection[str]) -> int | None:
    """Bytes that a release of a source with these columns needs in memory, roughly; None where the source is there
    already, or nobody knows.
    """
    if isinstance(source, DatabaseSource):
        return None if source.kind == "postgresql" else int(TIMES * 3 * Path(source.address).stat().st_size)
    if not isinstance(source, str | Path):
        return None
    return int(TIMES * sum(_file(path, names) for path in files_of(source)))
