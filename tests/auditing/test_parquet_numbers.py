# SPDX-License-Identifier: Apache-2.0
"""Numbers in a Parquet file that readers pass over, and frames of Zstandard with blocks that unpackers pass over, are
refused: they could tell anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from parquet_parts import STRUCT, Parts, Struct, at, has
from parquet_parts import written as written_struct
from test_file_bytes import PAYLOAD, footer_at, rebuilt_parquet, table, written

from anonfit.auditing.arrow_messages import frame_end
from anonfit.auditing.formats import check_bytes


def changed_number(*way: int, at_page: int | None = None) -> Callable[[Path], None]:
    """A number of a page with rows or with a dictionary (by its field), or of the footer, is another one; of lists, the
    last struct is gone into.
    """

    def change(fields: Struct) -> None:
        for number in way[:-1]:
            inner = at(fields, number)
            fields = inner[2] if inner[1] == STRUCT else inner[2][1][-1]
        at(fields, way[-1])[2] += 2 * 1234

    def in_page(header: Struct, body: bytes) -> bytes:
        if has(header, at_page or 0):
            change(header)
        return body

    return rebuilt_parquet(footer=change) if at_page is None else rebuilt_parquet(page=in_page)


def count_of_values(footer: Struct) -> None:
    """How many values are different, which polars counts of truths only."""
    about = at(at(at(footer, 4)[2][1][0], 1)[2][1][0], 3)[2]
    at(about, 12)[2].append([4, 6, 2 * 1234])


def number_of_column(footer: Struct) -> None:
    at(footer, 2)[2][1][-1].append([9, 5, 2 * 1234])


def of_negative_length(path: Path) -> None:
    """A page that begins where it ends, with a reader that goes on behind its body."""
    written(path.parent, "parquet", pl.DataFrame({"number": [1.5, 2.5]}))
    content = path.read_bytes()
    parts = Parts(content, 4)
    header = parts.struct()
    at(header, 3)[2] = 2 * (parts.place - 4) - 1
    path.write_bytes(content[:4] + written_struct(STRUCT, header) + content[parts.place :])


NUMBERS: dict[str, Callable[[Path], None]] = {
    "different values": rebuilt_parquet(footer=count_of_values),
    "number of a column": rebuilt_parquet(footer=number_of_column),
    "length of a page": of_negative_length,
    "version": changed_number(1),
    "rows of the file": changed_number(3),
    "bytes of a group": changed_number(4, 2),
    "begin of a group": changed_number(4, 5),
    "packed bytes of a group": changed_number(4, 6),
    "place of a group": changed_number(4, 7),
    "end of a part": changed_number(4, 1, 2),
    "rows of a part": changed_number(4, 1, 3, 5),
    "bytes of a part": changed_number(4, 1, 3, 6),
    "missing values of a part": changed_number(4, 1, 3, 12, 3),
    "missing values of a page": changed_number(5, 5, 3, at_page=5),
    "encoding of levels": changed_number(5, 3, at_page=5),
    "encoding of other levels": changed_number(5, 4, at_page=5),
    "encoding of a dictionary": changed_number(7, 2, at_page=7),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_that_readers_pass_over_are_those_of_the_rows(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data.parquet"
    NUMBERS[kind](path)
    assert check_bytes(path).met is False


def test_numbers_of_indexes_are_those_of_pages(tmp_path: Path) -> None:
    """Where pages are and which values are missing in them is told behind the pages."""
    frame = pl.DataFrame({"whole": [1, None, 3] * 100})
    path = written(tmp_path, "parquet", frame)
    content = path.read_bytes()
    group = at(Parts(content, footer_at(content)).struct(), 4)[2][1][0]
    part = at(group, 1)[2][1][0]
    begins, lengths = ([at(part, number)[2] // 2 for number in fields] for fields in ((4, 6), (5, 7)))
    for place in (
        place for begin, length in zip(begins, lengths, strict=True) for place in range(begin, begin + length)
    ):
        path.write_bytes(content[:place] + bytes([content[place] ^ 8]) + content[place + 1 :])
        assert check_bytes(path).met is False


def test_the_name_of_the_writer_tells_nothing_else(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"Polars (python) version", b"Polars for Mrs X (flu) "))
    assert check_bytes(path).found == ["metadata"]


@pytest.mark.parametrize("statistics", [True, False, "full"])
def test_files_with_more_or_fewer_statistics_hold_nothing_else(tmp_path: Path, statistics: Any) -> None:
    path = tmp_path / "data.parquet"
    frame = table("parquet").with_columns(pl.col(pl.Enum).cast(pl.String))
    frame.write_parquet(path, statistics=statistics, row_group_size=70)
    assert check_bytes(path).found == []


def test_a_frame_has_no_blocks_and_bits_that_unpackers_pass_over() -> None:
    for content in (b"ab" * 100_000, np.random.default_rng(1).bytes(300_000)):
        frame = pa.compress(content, "zstd", asbytes=True)
        begin = 5 + (not frame[4] >> 5 & 1) + (frame[4] >> 5 & 1, 2, 4, 8)[frame[4] >> 6]
        repeated = b"".join(b"\2\0\0" + bytes([byte]) for byte in PAYLOAD.encode())
        packed = b"".join(b"\x1c\0\0\1" + bytes([byte, 0]) for byte in PAYLOAD.encode())
        for blocks in (repeated, packed, b"\0\0\0"):
            changed = frame[:begin] + blocks + frame[begin:]
            assert pa.decompress(changed, len(content), "zstd", asbytes=True) == content
            assert frame_end(changed) == -1
        assert frame_end(frame[:4] + bytes([frame[4] | 16]) + frame[5:]) == -1
