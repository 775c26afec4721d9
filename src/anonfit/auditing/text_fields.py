# SPDX-License-Identifier: Apache-2.0
"""A text file as bytes: whether its fields are written in the one way that there is, and what those of a column are.

Stretches of the file are read side by side. Each begins behind the end of a line; if one ends where the next begins,
every line end that was taken for one is one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from mmap import mmap
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.exceptions import PolarsError

NO_WHOLE, FORMULA = 1, 2
"""What some field of a column is: no whole number; begun as formulas of spreadsheets are."""
_LARGE = 1 << 20  # bytes of a file for which it pays to load compiled code
_STRETCH = 1 << 21


def columns_of_fields(path: Path, begin: int, delimiter: str, columns: int) -> npt.NDArray[np.uint8] | None:
    """What some field of each column is (`NO_WHOLE`, `FORMULA`), of the lines from a place on. None where a field could
    be written in another way, and where that is not found out: of a small file, which others look at as fast, and of
    one column, in which nothing parts an empty field from no line.
    """
    if columns < 2 or path.stat().st_size < _LARGE:
        return None
    from anonfit.auditing.kernels import fields_end  # compiled code, which other audits do not need

    with path.open("rb") as file:
        data = mmap(file.fileno(), 0, access=1)  # what looks into it keeps it open
    starts = [begin]
    while starts[-1] < len(data):
        line = data.find(b"\n", starts[-1] + _STRETCH)
        starts.append(len(data) if line < 0 else line + 1)
    signs = np.frombuffer(data, np.uint8)

    def read(stretch: tuple[int, int]) -> npt.NDArray[np.uint8] | None:
        found = np.zeros(columns, np.uint8)
        end = fields_end(signs, *stretch, ord(delimiter), found)
        return found if end == stretch[1] and _is_text(data[slice(*stretch)]) else None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(read, pairwise(starts)))
    known = [part for part in parts if part is not None]
    return np.bitwise_or.reduce([np.zeros(columns, np.uint8), *known]) if len(known) == len(parts) else None


def _is_text(content: bytes) -> bool:
    """Whether bytes are signs of UTF-8, by polars, which knows it faster than Python does."""
    if content.isascii():
        return True
    try:
        return pl.Series([content], dtype=pl.Binary).cast(pl.String).null_count() == 0
    except PolarsError:
        return False
