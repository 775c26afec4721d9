# SPDX-License-Identifier: Apache-2.0
"""The formats of files that tables are read from and written to. To add one, add its Format here, and to the audit,
which reads files by code of its own; reading, spilling, releasing, the spec and the help of commands follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from anonfit.errors import DataError
from anonfit.tables.foreign_files import (
    STATISTICS,
    WORKBOOKS,
    scan_avro,
    scan_json_lines,
    scan_orc,
    scan_statistics,
    scan_workbook,
)
from anonfit.tables.layout import FOUND, OF_LABELS, OF_SHEETS, OF_TEXTS, Layout

if TYPE_CHECKING:
    import polars as pl

FormatName: TypeAlias = Literal["csv", "parquet", "arrow"]
"""The names of FORMATS, for those who check types."""
PACKED = (".gz", ".zst")
"""What the name of a packed text file ends with."""


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """A format of files that tables are read from: how its files end (texts also packed), and how rows are read.

    `scan` gives the rows of a file that knows the types of its columns, with what is given of its `Layout`; a text file
    does not, so `tables.reading` finds them out. `grows` is how many bytes a byte of a file becomes in memory, if
    nothing better is known; a file that `knows_rows` tells how many it has without being read. `layout` are the
    settings that say more of such files.
    """

    name: str
    suffixes: tuple[str, ...]
    scan: Callable[..., pl.LazyFrame] | None
    grows: float
    knows_rows: bool = False
    layout: tuple[str, ...] = ()

    @property
    def endings(self) -> tuple[str, ...]:
        """How its files end."""
        packed = (suffix + end for suffix in self.suffixes for end in PACKED) if self.is_text else ()
        return (*self.suffixes, *packed)

    @property
    def is_text(self) -> bool:
        """Whether its files are texts, which have no types."""
        return self.scan is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(SourceFormat):
    """A format that releases are written in, too. Released files have its name as ending. `lacks` are types, by polars'
    names, that it cannot hold.
    """

    sink: Callable[[pl.LazyFrame, Path], None]
    lacks: tuple[str, ...] = ()


def _scan_parquet(path: Path, _: Layout = FOUND) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_parquet(path, glob=False)


def _scan_arrow(path: Path, _: Layout = FOUND) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_ipc(path, glob=False)


def _sink_csv(rows: pl.LazyFrame, path: Path) -> None:
    rows.sink_csv(path)


def _sink_parquet(rows: pl.LazyFrame, path: Path) -> None:
    rows.sink_parquet(path)


def _sink_arrow(rows: pl.LazyFrame, path: Path) -> None:
    """Arrow's older form of texts has no room for other texts than those of the rows, so that the audit can tell from
    lengths alone that there are none.
    """
    import polars as pl

    rows.sink_ipc(path, compression="zstd", compat_level=pl.CompatLevel.oldest())


FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        Format(
            "csv",
            (".csv", ".tsv", ".txt", ".data"),
            None,
            grows=1.5,
            layout=OF_TEXTS,
            sink=_sink_csv,
            lacks=("Duration", "Binary"),
        ),
        Format("parquet", (".parquet", ".pq"), _scan_parquet, grows=6.0, knows_rows=True, sink=_sink_parquet),
        Format("arrow", (".arrow", ".feather", ".ipc"), _scan_arrow, grows=1.5, sink=_sink_arrow),
    )
}
"""All formats that a release can be written in, by name."""
SOURCES: tuple[SourceFormat, ...] = (
    *FORMATS.values(),
    SourceFormat("Excel or OpenDocument", WORKBOOKS, scan_workbook, 12.0, layout=OF_SHEETS),
    SourceFormat("SPSS, Stata or SAS", STATISTICS, scan_statistics, 4.0, layout=OF_LABELS),
    SourceFormat("JSON lines", (".jsonl", ".ndjson"), scan_json_lines, 2.0),
    SourceFormat("Avro", (".avro",), scan_avro, 4.0),
    SourceFormat("ORC", (".orc",), scan_orc, 6.0),
)
"""All formats that tables are read from."""
SUFFIXES = tuple(ending for known in SOURCES for ending in known.endings)
CONVERTED = {
    (".json",): "write one object a line, as .jsonl",
    (".rds", ".rda", ".rdata"): "in R, write it with arrow::write_parquet",
    (".mdb", ".accdb"): "in Access, export the table to Excel or to text",
    (".pdf", ".doc", ".docx", ".html", ".xml"): "save its table as CSV from a spreadsheet",
    (".zip", ".7z", ".rar"): "unpack it first",
    (".db", ".sqlite", ".sqlite3", ".duckdb"): "name it as a database: sqlite:FILE or duckdb:FILE, with a table",
}
"""How files of other endings become ones that are read."""


def endings(*, packed: bool = False) -> str:
    """The endings of all formats, in words; `packed` says that texts may be packed."""
    shown = [
        f".{known.name}({'|'.join(PACKED)})" if packed and known.is_text else f".{known.name}"
        for known in FORMATS.values()
    ]
    return f"{', '.join(shown[:-1])} or {shown[-1]}"


def reference() -> str:
    """The endings of all formats as the reference has them."""
    return ", ".join(_also(known) for known in FORMATS.values())


def _also(known: Format) -> str:
    first, *others = (f"`{suffix}`" for suffix in known.suffixes)
    also = [*others, *([f"packed as {' or '.join(f'`{end}`' for end in PACKED)}"] if known.is_text else [])]
    return first + (f" (also {', '.join(also)})" if also else "")


def format_of(path: Path) -> SourceFormat:
    """The format of a file, by its ending."""
    name = path.name.lower()
    for known in SOURCES:
        if name.endswith(known.endings):
            return known
    how = next((how for suffixes, how in CONVERTED.items() if name.endswith(suffixes)), "save it as CSV or Parquet")
    raise DataError(f"{path.name}: unknown kind of file; {how}. Known endings: {', '.join(SUFFIXES)}.")
