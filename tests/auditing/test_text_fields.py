# SPDX-License-Identifier: Apache-2.0
"""The fields of a text file, read as bytes, are those that polars writes, and what is written in another way is seen."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.auditing import text_fields
from anonfit.auditing.file_bytes import ReadForm, csv_faults
from anonfit.auditing.text_fields import FORMULA, NO_WHOLE, columns_of_fields

PIECES = ["a", "Ä", "€", "😀", "0", "1", "9", "-", "+", "=", "@", "\t", ".", " ", ",", ";", '"', "\n", "'", "|"]
WHOLE = re.compile(r"-?[1-9][0-9]{0,17}|0|")


@pytest.fixture(autouse=True)
def small_files_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_fields, "_LARGE", 0)
    monkeypatch.setattr(text_fields, "_STRETCH", 40)


def random_frame(rng: np.random.Generator) -> pl.DataFrame:
    rows, columns = int(rng.integers(0, 30)), int(rng.integers(2, 6))
    table: dict[str, list[str | None]] = {}
    for place in range(columns):
        kind, share = rng.integers(0, 4), rng.random() * 0.3
        texts = [
            str(int(rng.integers(-(10 ** int(rng.integers(1, 19))), 10**6)))
            if kind < 2
            else "".join(rng.choice(PIECES[: 14 if kind == 2 else None], int(rng.integers(1, 7))))
            for _ in range(rows)
        ]
        table[f"c{place}"] = [None if rng.random() < share else text for text in texts]
    return pl.DataFrame(table, schema=dict.fromkeys(table, pl.String))


def written(frame: pl.DataFrame, delimiter: str) -> bytes:
    file = BytesIO()
    frame.write_csv(file, separator=delimiter)
    return file.getvalue()


def read(path: Path, delimiter: str, columns: int) -> Any:
    found = columns_of_fields(path, path.read_bytes().index(b"\n") + 1, delimiter, columns)
    return None if found is None else found.tolist()


def test_fields_are_found_to_be_what_they_are(tmp_path: Path) -> None:
    rng, understood = np.random.default_rng(1), 0
    path = tmp_path / "data.csv"
    for number in range(400):
        frame, delimiter = random_frame(rng), ",;|\t"[number % 4]
        path.write_bytes(written(frame, delimiter))
        texts = [[text or "" for text in column] for column in frame]
        expected = [
            NO_WHOLE * (not all(map(WHOLE.fullmatch, column)))
            | FORMULA * any(text[:1] in set("=+-@\t\r") for text in column if text)
            for column in texts
        ]
        found = read(path, delimiter, frame.width)
        has_lines = any("\n" in text for column in texts for text in column)
        assert found == expected or (found is None and has_lines)  # a stretch may have begun within a field
        understood += found is not None
    assert understood > 200


def test_what_is_accepted_polars_writes_in_the_same_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, accepted = np.random.default_rng(2), 0
    path = tmp_path / "data.csv"
    signs = b',;"\n\r 0-1a\xc3\x84\xff\x00\t'
    for _ in range(1500):
        frame = random_frame(rng)
        content = bytearray(written(frame, ","))
        begin = content.index(b"\n") + 1
        for _ in range(int(rng.integers(0, 3))):
            place = int(rng.integers(begin, len(content) + 1))
            sign = bytes([signs[rng.integers(0, len(signs))]])
            content[place : place + int(rng.integers(0, 2))] = sign if rng.random() < 0.7 else b""
        path.write_bytes(content)
        if read(path, ",", frame.width) is None:
            continue
        accepted += 1
        again = pl.read_csv(path, infer_schema=False, glob=False)
        assert written(again, ",") == bytes(content), bytes(content)
    assert accepted > 250


@pytest.mark.parametrize("size", [1, 40, 1 << 20])
def test_faults_of_small_and_of_large_files_are_the_same(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, path = np.random.default_rng(3), tmp_path / "data.csv"
    monkeypatch.setattr(text_fields, "_STRETCH", size)
    seen = set()
    for number in range(400):
        frame = random_frame(rng)
        content = bytearray(written(frame, ";"))
        if number % 3 == 0:
            content.insert(int(rng.integers(0, len(content))), b'";\n0 '[rng.integers(0, 5)])
        path.write_bytes(content)
        texts = [name for name in frame.columns if rng.random() < 0.5]
        try:
            fast = csv_faults(path, texts, ReadForm(delimiter=";"))
        except pl.exceptions.PolarsError:
            fast = {"error"}
        with monkeypatch.context() as patch:
            patch.setattr(text_fields, "_LARGE", 1 << 30)
            try:
                slow = csv_faults(path, texts, ReadForm(delimiter=";"))
            except pl.exceptions.PolarsError:
                slow = {"error"}
        assert fast == slow, bytes(content)
        seen |= {frozenset(fast)}
    assert len(seen) >= 3


def test_bytes_that_are_no_signs_are_not_understood(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"a,b\n1,\xe4\n")
    assert read(path, ",", 2) is None
    path.write_bytes("a,b\n1,ä\n".encode())
    assert read(path, ",", 2) == [0, NO_WHOLE]
    assert read(path, ",", 3) is None
    path.write_bytes(b"a\n1\n")
    assert read(path, ",", 1) is None
