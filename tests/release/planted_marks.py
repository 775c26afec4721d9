# SPDX-License-Identifier: Apache-2.0
"""Random tables with marks: values that no release may hold, wherever a source can have them. And all bytes of what is
handed out, with everything that is compressed in it also unpacked.
"""

from __future__ import annotations

import io
import pickle
import sqlite3
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import anonfit as af
from waivers import waived

ZSTD = b"\x28\xb5\x2f\xfd"
SOURCES = ("polars", "pandas", "pyarrow", "csv", "parquet", "arrow", "sqlite")
TOWNS = ("Aachen", "Bern", "Cork", "Delft on the river Schie")
ILLS = ("flu", "a cold that lasted for weeks", "none", "measles")


@dataclass
class Marks:
    """Marks that were planted, each once."""

    rng: np.random.Generator
    texts: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def text(self, long: bool | None = None) -> str:
        """Another text: one that Arrow's views hold themselves, or one that they point to."""
        long = bool(self.rng.random() < 0.5) if long is None else long
        found = f"Zq{self.rng.integers(16**8):08x}"
        self.texts.append(found + "-of-nobody-in-the-release" if long else found)
        return self.texts[-1]

    def number(self) -> int:
        """Another whole number that is no sum, count or cut by chance; exact as a double."""
        self.numbers.append(int(self.rng.integers(2**51, 2**52)))
        return self.numbers[-1]

    def found_in(self, content: bytes) -> list[str]:
        """The marks that stand in bytes, as texts or as numbers of 64 bits."""
        found = [mark for mark in self.texts if mark.encode() in content]
        for number in self.numbers:
            forms = (str(number).encode(), struct.pack("<q", number), struct.pack("<d", number))
            found += [str(number) for form in forms if form in content]
        return found


def _frame_end(content: bytes, place: int) -> int:
    """Where a frame of Zstandard ends: behind its last block, and the checksum if it has one."""
    described = content[place + 4]
    single = described >> 5 & 1
    place += 5 + (1 - single) + (0, 1, 2, 4)[described & 3] + (single, 2, 4, 8)[described >> 6]
    while True:
        block = int.from_bytes(content[place : place + 3], "little")
        place += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        if block & 1:
            return place + 4 * (described >> 2 & 1)
        if place >= len(content):
            raise ValueError("no frame begins here")


def unpacked(content: bytes) -> bytes:
    """Bytes, and what every frame of Zstandard in them holds."""
    parts, place = [content], content.find(ZSTD)
    while place >= 0:
        frame = content[place : _frame_end(content, place)]
        parts.append(pa.CompressedInputStream(pa.BufferReader(frame), "zstd").read())
        place = content.find(ZSTD, place + len(frame))
    return b"\n".join(parts)


def folder_bytes(folder: Path) -> bytes:
    """All that a folder holds."""
    return b"\n".join(unpacked(path.read_bytes()) for path in sorted(folder.iterdir()))


def _buffers(column: pa.Array) -> list[bytes]:
    """The buffers of an array as a whole, also what lies before and after its values."""
    found = [buffer.to_pybytes() for buffer in column.buffers() if buffer is not None]
    return found + (_buffers(column.dictionary) if pa.types.is_dictionary(column.type) else [])


def _arrow_bytes(table: pa.Table) -> bytes:
    buffers = [one for column in table.columns for chunk in column.chunks for one in _buffers(chunk)]
    return b"\n".join([*buffers, str(table.schema).encode(), str(table.schema.metadata).encode()])


def frame_bytes(frame: Any) -> bytes:
    """All that goes out of the process with a frame of any kind: pickled, written, and its buffers as they are."""
    parts = [pickle.dumps(frame)]
    if isinstance(frame, pl.DataFrame):
        kept = io.BytesIO()
        frame.write_ipc(kept, compression="uncompressed")
        parts += [kept.getvalue(), _arrow_bytes(frame.to_arrow()), frame.serialize(), pickle.dumps(frame.to_pandas())]
    elif isinstance(frame, pd.DataFrame):
        parts += [repr(frame.attrs).encode(), _arrow_bytes(pa.Table.from_pandas(frame))]
    else:
        parts.append(_arrow_bytes(frame))
    return b"\n".join(map(unpacked, parts))


def planted_table(marks: Marks, rows: int, *, rare: bool, drop: bool, unknown: bool = False) -> pl.DataFrame:
    """A table with marks in an identifier, beneath missing values, in categories that no row has, in the rows around a
    slice and, where asked, in rare values of quasi-identifiers and in all of some rows that are not released: their
    town is missing, or unknown.
    """
    rng = marks.rng
    some = {
        "who": [marks.text() for _ in range(rows)],
        "age": rng.integers(0, 90, rows).tolist(),
        "town": rng.choice(TOWNS, rows).tolist(),
        "ill": rng.choice(ILLS, rows).tolist(),
        "note": [f"note {place % 7} of a person" for place in range(rows)],
        "kind": rng.choice(["x", "y", "a kind that has a long name"], rows).tolist(),
        "cost": rng.integers(0, 50, rows).tolist(),
        "share": (rng.integers(0, 50, rows) / 8).tolist(),
        "moment": rng.integers(0, 50, rows).tolist(),
    }
    if rare:
        some["town"][0], some["age"][1] = marks.text(), marks.number()
    hidden = rng.random(rows) < 0.2
    for place in np.flatnonzero(hidden):
        some["note"][place], some["cost"][place], some["moment"][place] = marks.text(), marks.number(), marks.number()
    frame = pl.DataFrame(some)
    shown = pl.Series(~hidden)
    frame = frame.with_columns(pl.when(shown).then(pl.col("note", "cost", "moment")))
    odd = [*([_odd_rows(marks, frame, missing="town")] * drop), *([_odd_rows(marks, frame)] * unknown)]
    frame = pl.concat([*odd, frame]).sample(fraction=1.0, shuffle=True, seed=1)
    around = _odd_rows(marks, frame)
    frame = pl.concat([around, frame, around], rechunk=True)[len(around) : len(around) + len(frame)]
    levels = sorted({*frame["ill"], marks.text(), marks.text()} - {None})
    spare = pl.Series("kind", [marks.text()], dtype=pl.Categorical)
    kinds = pl.concat([spare, frame["kind"].cast(pl.Categorical)])[1:]
    return frame.with_columns(kinds, pl.col("ill").cast(pl.Enum(levels)), pl.col("moment").cast(pl.Datetime("us")))


def _odd_rows(marks: Marks, like: pl.DataFrame, missing: str | None = None) -> pl.DataFrame:
    """Rows of which nothing may be released."""
    columns = {
        name: [marks.number() if dtype.is_numeric() else marks.text() for _ in range(3)]
        for name, dtype in like.schema.items()
    }
    if missing is not None:
        columns[missing] = [None] * 3
    return pl.DataFrame(columns, schema=like.schema, strict=False)


def as_source(marks: Marks, frame: pl.DataFrame, kind: str, folder: Path) -> dict[str, Any]:
    """A frame as a source of a kind, in whose metadata there are marks where it has some."""
    if kind == "polars":
        return {"data": frame}
    if kind in ("pandas", "pyarrow"):
        note = {marks.text().encode(): marks.text().encode()}
        table = frame.to_arrow()
        if kind == "pyarrow":
            fields = [one.with_metadata(note) for one in table.schema]
            return {"data": pa.table(table.columns, schema=pa.schema(fields, metadata=note))}
        found = frame.to_pandas()
        found.attrs = {"note": marks.text()}
        return {"data": found.set_index(pd.Index([marks.text() for _ in range(len(found))], name=marks.text()))}
    path = folder / f"source.{kind}"
    if kind == "csv":
        frame.write_csv(path)
    elif kind == "parquet":
        frame.write_parquet(path, metadata={"note": marks.text()})
    elif kind == "arrow":
        frame.write_ipc(path)
    else:
        texts = frame.with_columns(pl.col(pl.Datetime).cast(pl.String))
        names = ", ".join(frame.columns)
        with sqlite3.connect(path) as database:
            database.execute(f"CREATE TABLE people ({names})")
            database.executemany(f"INSERT INTO people VALUES ({', '.join('?' * frame.width)})", texts.iter_rows())
        return {"data": f"sqlite:{path}", "table": "people"}
    return {"data": str(path)}


def random_words(rng: np.random.Generator, *, engine: str, drop: bool) -> dict[str, Any]:
    """A random request about the planted table."""
    words: dict[str, Any] = {
        "identifiers": ["who"],
        "quasi_identifiers": ["age", "town"],
        "sensitive": waived("ill"),
        "insensitive": ["note", "kind", "cost", "share", "moment"],
        "k": int(rng.integers(3, 7)),
        "engine": engine,
        "missing_policy": "drop" if drop else "category",
        "values": str(rng.choice(["labels", "bounds", "representative"])),
    }
    chance = rng.random()
    if engine == "memory" and chance < 0.3:
        words |= {"order": "original", "consent": True}
    elif chance > 0.8:
        words |= {"targets": ["kind"], "insensitive": ["note", "cost", "share", "moment"]}
        words |= {"algorithm": str(rng.choice(["tdr", "tree", "mondrian"]))}
    if words.get("algorithm") == "tree":  # columns with missing values are not for trees
        hidden = ["who", "note", "cost", "moment"]
        words |= {"identifiers": hidden, "insensitive": ["share"], "values": "labels", "missing_policy": "drop"}
    return words


def leaks(seed: int, engine: str, folder: Path) -> list[str]:
    """The marks that are found in one random release: in its frame, its folder, and in those of new data by the same
    recoding.
    """
    rng = np.random.default_rng(seed)
    marks = Marks(rng)
    drop, rare = (bool(rng.random() < 0.5) for _ in range(2))
    words = random_words(rng, engine=engine, drop=drop)
    rows = int(rng.integers(60, 120))
    frame = planted_table(marks, rows, rare=rare, drop=drop)
    kind, form = str(rng.choice(SOURCES)), str(rng.choice(["csv", "parquet", "arrow"]))
    release = af.anonymize(**as_source(marks, frame, kind, folder), **words)
    assert len(release.data) == rows
    released = release.save(folder / "release", format=form)
    found = marks.found_in(frame_bytes(release.data)) + marks.found_in(folder_bytes(released))
    found += marks.found_in(frame_bytes(af.load(released).data))
    # A rare town has made `other` a value, which unknown towns are then, too.
    new = planted_table(marks, rows, rare=False, drop=drop, unknown=not rare)
    extended = release.extend(new, suppression_limit=1.0)
    assert len(extended.data) <= rows
    written = extended.save(folder / "extended", format=form)
    return found + marks.found_in(frame_bytes(extended.data)) + marks.found_in(folder_bytes(written))
