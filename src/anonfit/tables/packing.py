# SPDX-License-Identifier: Apache-2.0
"""Text files, packed or not: opened, sampled, and how large they are unpacked."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO

from anonfit.errors import DataError

PIECE = 1 << 24
"""Bytes of a file that are looked at in one go."""
SAMPLE = 1 << 16
SAMPLE_LINES = 20
LONGEST_HEAD = 1 << 25
"""Bytes that are read to see whole lines, however long they are."""
UNPACKED = {".gz": 1032, ".zst": 1 << 15}
"""Bytes that a packed byte can become at most."""


def unpacked(path: Path) -> IO[bytes]:
    """A file, unpacked if it is packed."""
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if path.suffix != ".zst":
        return path.open("rb")
    try:
        from pyarrow import CompressedInputStream, OSFile
    except ModuleNotFoundError:
        raise DataError(f"{path.name}: its lines need mending, which the package pyarrow is for; unpack it.") from None
    opened: IO[bytes] = CompressedInputStream(OSFile(str(path)), "zstd")
    return opened


def samples_of(path: Path) -> tuple[bytes, bool, list[bytes]]:
    """The beginning of the file and whether that is all of it, and stretches of whole lines from its middle and end
    where they can be reached.
    """
    try:
        if path.suffix == ".zst":
            head = _zstd_head(path)
            return head, len(head) < SAMPLE, []
        with unpacked(path) as file:
            head, is_whole = _head(file)
            more = []
            size = path.stat().st_size
            if path.suffix != ".gz" and size > 4 * SAMPLE and not is_whole:
                for place in (size // 2, size - SAMPLE):
                    file.seek(place)
                    lines = file.read(SAMPLE).split(b"\n")
                    more.append(b"\n".join(lines[1:-1] if place < size - SAMPLE else lines[1:]))
        return head, is_whole, more
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path.name} cannot be unpacked: it is cut short, or not what its ending says.") from None


def _head(file: IO[bytes]) -> tuple[bytes, bool]:
    """The beginning of a file, as much of it as some lines need, and whether that is all of it."""
    head = file.read(SAMPLE)
    while max(head.count(b"\n"), head.count(b"\r")) < SAMPLE_LINES and len(head) < LONGEST_HEAD:
        more = file.read(len(head))
        if not more:
            return head, True
        head += more
    return head, False


def _zstd_head(path: Path) -> bytes:
    """The beginning of a zstd file, through polars, which brings its own decompressor."""
    import polars as pl

    try:
        lines = pl.read_csv(
            path,
            has_header=False,
            separator="\x01",
            quote_char=None,
            n_rows=500,
            new_columns=["line"],
            infer_schema=False,
        )
    except pl.exceptions.NoDataError:
        return b""
    except pl.exceptions.PolarsError:
        raise DataError(f"{path.name} cannot be unpacked, or is not UTF-8 text.") from None
    return "\n".join(line or "" for line in lines["line"]).encode()


def unpacked_size(path: Path, most: int) -> int:
    """Bytes of a file when it is unpacked, counted until they are more than `most`: a few may become very many."""
    size = path.stat().st_size
    if size * UNPACKED.get(path.suffix, 1) <= most or path.suffix not in UNPACKED:
        return size
    size = 0
    try:
        with unpacked(path) as file:
            while size <= most and (piece := file.read(PIECE)):
                size += len(piece)
    except DataError:
        return path.stat().st_size
    except (OSError, EOFError, zlib.error):
        pass  # whoever reads it tells what is wrong
    return size
