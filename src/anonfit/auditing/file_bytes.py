# SPDX-License-Identifier: Apache-2.0
"""What a data file holds beside its rows: bytes are looked at, not only the values that a reader makes of them."""

from __future__ import annotations

import struct
from collections.abc import Collection
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
_MOMENT = r"^(-?\d{4,}-\d\d-\d\d)?T?(\d\d:\d\d:\d\d(\.\d+)?)?([+-]\d{4})?$"
_NOT_UNDERSTOOD = (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, struct.error)


def check_bytes(path: Path, texts: Collection[str] | None = None) -> Finding:
    """The file of a release holds its rows and what its format needs, and nothing else; what cannot be understood is
    not taken for good. In a text file, columns that are none of the `texts` (None: not known) hold numbers, dates or
    truth values, each in its one spelling.
    """
    faults = {"a link to another file"} if path.is_symlink() else set()
    try:
        if path.suffix == ".csv":
            faults |= _csv_faults(path, texts)
        else:
            faults |= {".parquet": parquet_faults, ".arrow": arrow_faults}[path.suffix](path)
    except (*_NOT_UNDERSTOOD, PolarsError, PanicException):
        faults.add("a structure that this audit does not know")
    good = "The file holds nothing but its rows and what its format needs."
    bad = f"The file holds more than its rows: {', '.join(sorted(faults))}."
    return Finding(BYTES, [], sorted(faults), not faults, bad if faults else good)


def _csv_faults(path: Path, texts: Collection[str] | None) -> set[str]:
    """A text file is, byte for byte, what is written of its own fields."""
    fault = {"lines that are no rows of the table"}
    lazy = pl.scan_csv(path, infer_schema=False, glob=False, with_column_names=unquoted)
    rows = lazy.collect_batches(chunk_size=_ROWS_AT_ONCE, maintain_order=True, engine="streaming")
    spellings: dict[str, set[str]] = {}
    with path.open("rb") as file:
        for place, batch in enumerate(chain([lazy.head(0).collect()], rows)):
            written = BytesIO()
            batch.write_csv(written, include_header=place == 0)
            if file.read(written.tell()) != written.getvalue():
                return fault
            values = [] if texts is None else [series for series in batch.get_columns() if series.name not in texts]
            for series in values:
                if series.null_count() < len(series):
                    spellings.setdefault(series.name, set()).add(_spelling(series))
        if file.read(1):
            return fault
    several = [name for name, found in spellings.items() if len(found) > 1 or "" in found]
    return {"values that are spelled in several ways"} if several else set()


def _spelling(texts: pl.Series) -> str:
    """What all texts of a column are, in the spelling in which it is written; empty where they are nothing of that."""
    for kind in (pl.Int64, pl.UInt64, pl.Int128, pl.Float64, pl.Float32):
        values = texts.cast(kind, strict=False)
        if values.null_count() == texts.null_count() and bool((values.cast(pl.String) == texts).all()):
            return "whole" if kind.is_integer() else "number"
    if bool(texts.is_in(["true", "false"]).all()):
        return "truth"
    lengths = texts.str.len_bytes()
    if bool(texts.str.contains(r"^-?\d+\.\d+$").all()):  # decimal numbers have the same number of decimals
        decimals = (lengths - texts.str.find(".", literal=True)).drop_nulls().unique().to_list()
        return f"decimal {decimals[0]}" if len(decimals) == 1 else ""
    widths = lengths.drop_nulls().unique().to_list()
    return f"moment {widths[0]}" if len(widths) == 1 and bool(texts.str.contains(_MOMENT).all()) else ""
