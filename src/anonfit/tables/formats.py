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

if TYPE_CHECKING:
    import polars as pl

FormatName: TypeAlias = Literal["csv", "parquet", "arrow"]
"""The names of FORMATS, for those who check types."""
PACKED = (".gz", ".zst")
"""What the name of a packed text file ends with."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files: how its files end (texts also packed), and how rows are read and written. Released files have
    its name as ending.

    `scan` gives the rows of a file that knows the types of its columns; a text file does not, so `tables.reading` finds
    them out. `grows` is how many bytes a byte of a file becomes in memory, if nothing better is known; a file that
    `knows_rows` tells how many it has without being read. `lacks` are types, by polars' names, that it cannot hold.
    """

    name: FormatName
    suffixes: tuple[str, ...]
    scan: Callable[[Path], pl.LazyFrame] | None
    sink: Callable[[pl.LazyFrame, Path], None]
    grows: float
    knows_rows: bool = False
    lacks: tuple[str, ...] = ()

    @property
    def endings(self) -> tuple[str, ...]:
        """How its files end."""
        packed = (suffix + end for suffix in self.suffixes for end in PACKED) if self.is_text else ()
        return (*self.suffixes, *packed)

    @property
    def is_text(self) -> bool:
        """Whether its files are texts, which have no types."""
        return self.scan is None


def _scan_parquet(path: Path) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_parquet(path, glob=False)


def _scan_arrow(path: Path) -> pl.LazyFrame:
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
        Format("csv", (".csv", ".tsv", ".txt", ".data"), None, _sink_csv, grows=1.5, lacks=("Duration", "Binary")),
        Format("parquet", (".parquet", ".pq"), _scan_parquet, _sink_parquet, grows=6.0, knows_rows=True),
        Format("arrow", (".arrow", ".feather", ".ipc"), _scan_arrow, _sink_arrow, grows=1.5),
    )
}
"""All formats by name; a release can be written in each of them."""


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


def format_of(path: Path) -> Format:
    """The format of a file, by its ending."""
    name = path.name.lower()
    for known in FORMATS.values():
        if name.endswith(known.endings):
            return known
    every = [ending for known in FORMATS.values() for ending in known.endings]
    raise DataError(f"{path.name}: unknown kind of file; known endings: {', '.join(every)}.")
