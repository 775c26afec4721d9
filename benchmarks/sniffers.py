# SPDX-License-Identifier: Apache-2.0
"""Readers that find out how a text file is laid out, weighed on the bank of messy files of the tests.

    .venv/bin/python benchmarks/sniffers.py      # needs duckdb and clevercsv

Each is given the bytes and nothing else. Right: the table that a person reads. Refused: an error. Wrong: another table,
and no error. Numbers may have other types, and texts of numbers and dates are taken for these.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from anonfit.errors import DataError
from anonfit.tables.reading import ReadOptions, read_table
from messy_files import bank


def ours(path: Path) -> dict[str, list[Any]]:
    return read_table(path, ReadOptions()).to_dict(as_series=False)


def duckdb(path: Path) -> dict[str, list[Any]]:
    import duckdb as database

    with database.connect() as connection:
        found = connection.execute("from read_csv(?)", [str(path)])
        names, rows = [column[0] for column in found.description], found.fetchall()
    return dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))


def polars(path: Path) -> dict[str, list[Any]]:
    return pl.read_csv(path, try_parse_dates=True).to_dict(as_series=False)


def sniffer(path: Path) -> dict[str, list[Any]]:
    text = path.read_text("utf-8-sig")
    found = csv.Sniffer().sniff(text[: 1 << 16])
    return _table(list(csv.reader(text.splitlines(), found)), header=csv.Sniffer().has_header(text[: 1 << 16]))


def clever(path: Path) -> dict[str, list[Any]]:
    import clevercsv

    text = path.read_bytes().decode(clevercsv.encoding.get_encoding(str(path)))
    found = clevercsv.Sniffer().sniff(text[: 1 << 16])
    rows = list(clevercsv.reader(text.splitlines(), found))
    return _table(rows, header=clevercsv.Sniffer().has_header(text[: 1 << 16]))


def _table(rows: list[list[str]], *, header: bool) -> dict[str, list[Any]]:
    names = rows[0] if header else [f"column_{place}" for place in range(1, len(rows[0]) + 1)]
    body = rows[1:] if header else rows
    return {name: list(column) for name, column in zip(names, zip(*body, strict=True), strict=True)}


def _plain(value: Any) -> Any:
    """A value as it is compared: numbers as floats, days as texts, nothing as an empty text."""
    text = "" if value is None else str(value)
    if text.lower() == "nan":  # which is not equal to itself
        return text.lower()
    try:
        return float(text) if not text.lstrip("-").startswith("0") or "." in text[:3] or text == "0" else text
    except ValueError:
        return text.removesuffix(" 00:00:00")


def _same(found: dict[str, list[Any]], table: dict[str, list[Any]]) -> bool:
    def plain(one: dict[str, list[Any]]) -> list[list[Any]]:
        return [[_plain(value) for value in column] for column in one.values()]

    named = all(name.startswith("column_") for name in table) or list(found) == list(table)
    return named and plain(found) == plain(table)


def main() -> None:
    """Print how many files each reads rightly."""
    for reader in (ours, duckdb, clever, sniffer, polars):
        tally: Counter[str] = Counter()
        for messy in bank():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"table{messy.suffix}"
                path.write_bytes(messy.content)
                try:
                    found = reader(path)
                except DataError:
                    tally["refused"] += 1
                    continue
                except BaseException:  # every library has errors of its own, and polars' are no Exceptions
                    tally["refused"] += 1
                    continue
            fits = messy.table is not None and not messy.refused and _same(found, messy.table)
            tally["right" if fits else "wrong"] += 1
        print(f"{reader.__name__:8} right {tally['right']:3}  refused {tally['refused']:3}  wrong {tally['wrong']:3}")


if __name__ == "__main__":
    main()
