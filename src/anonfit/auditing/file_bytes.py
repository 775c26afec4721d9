# SPDX-License-Identifier: Apache-2.0
"""What a data file holds beside its rows: bytes are looked at, not only the values that a reader makes of them."""

from __future__ import annotations

import struct
from io import BytesIO
from itertools import chain
from pathlib import Path

import polars as pl
from polars.exceptions import PanicException, PolarsError

from anonfit.auditing.arrow_bytes import arrow_faults
from anonfit.auditing.parquet_bytes import parquet_faults
from anonfit.auditing.reading import unquoted
from anonfit.auditing.result import BYTES, Finding

__all__ = ["check_bytes"]

_ROWS_AT_ONCE = 1 << 18
_NOT_UNDERSTOOD = (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, struct.error)


def check_bytes(path: Path) -> Finding:
    """The file of a release holds its rows and what its format needs, and nothing else; what cannot be understood is
    not taken for good.
    """
    faults = {"a link to another file"} if path.is_symlink() else set()
    try:
        faults |= {".csv": _csv_faults, ".parquet": parquet_faults, ".arrow": arrow_faults}[path.suffix](path)
    except (*_NOT_UNDERSTOOD, PolarsError, PanicException):
        faults.add("a structure that this audit does not know")
    good = "The file holds nothing but its rows and what its format needs."
    bad = f"The file holds more than its rows: {', '.join(sorted(faults))}."
    return Finding(BYTES, [], sorted(faults), not faults, bad if faults else good)


def _csv_faults(path: Path) -> set[str]:
    """A text file is, byte for byte, what is written of its own fields."""
    fault = {"lines that are no rows of the table"}
    lazy = pl.scan_csv(path, infer_schema=False, glob=False, with_column_names=unquoted)
    rows = lazy.collect_batches(chunk_size=_ROWS_AT_ONCE, maintain_order=True, engine="streaming")
    with path.open("rb") as file:
        for place, batch in enumerate(chain([lazy.head(0).collect()], rows)):
            written = BytesIO()
            batch.write_csv(written, include_header=place == 0)
            if file.read(written.tell()) != written.getvalue():
                return fault
        return fault if file.read(1) else set()
