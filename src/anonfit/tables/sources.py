# SPDX-License-Identifier: Apache-2.0
"""What tables are read from and written to: formats of files, and addresses of databases and of tables in them.

To add a format, add its Format here, and to the audit, which reads files by code of its own; reading, spilling,
releasing, the spec and the help of commands follow from it. An address is `postgresql://user@host/name#table`,
`sqlite:people.db#table`, or `env:NAME`, an environment variable that holds one. It may hold a password, so it is shown
nowhere: not in errors, not in logs, not in what is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from anonfit.errors import DataError, RequestError, SpecError
from anonfit.tables.foreign_files import WORKBOOKS, scan_orc, scan_statistics, scan_workbook
from anonfit.tables.foreign_writing import refuse_columns, sink_statistics, sink_workbook
from anonfit.tables.layout import FOUND, OF_LABELS, OF_SHEETS, OF_TEXTS, FileLayout

if TYPE_CHECKING:
    import polars as pl

FormatName: TypeAlias = Literal[
    "csv", "parquet", "arrow", "xlsx", "sav", "dta"
]  # the names of FORMATS, for those who check types
PACKED = (".gz", ".zst")  # what the name of a packed text file ends with


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """A format of files that tables are read from: how its files end (texts also packed), and how rows are read.

    `scan` gives the rows of a file that knows the types of its columns, with what is given of its layout; a text file
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


@dataclass(frozen=True, slots=True)
class FileForm:
    """How the data file of a release is laid out, where its format leaves a choice: of texts the sign between fields,
    the one before decimals, and whether a byte order mark comes first; of statistics programs the titles of columns.
    """

    delimiter: str = ","
    decimal: str = "."
    bom: bool = False
    titles: tuple[tuple[str, str], ...] = ()


PLAIN = FileForm()
TITLED = ("sav", "dta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(SourceFormat):
    """A format that releases are written in, too. Released files have its name as ending. `lacks` are types, by polars'
    names, that it cannot hold. `opened` says by which programs, and how, people open the data file of a release.
    A file of another `program` is made of a table that is there already, and may refuse names of columns.
    """

    sink: Callable[[pl.LazyFrame, Path, FileForm], None]
    opened: Callable[[FileForm], tuple[tuple[str, str], ...]]
    lacks: tuple[str, ...] = ()
    program: bool = False

    def refuse(self, columns: Collection[str]) -> None:
        """Refuse columns of names that it cannot have."""
        if self.program:
            refuse_columns(columns, self.name)


def _scanned(reader: str, **options: Any) -> Callable[..., pl.LazyFrame]:
    """A way of polars to read files, which is imported when it is used: not for the help of commands."""

    def scan(path: Path, _: FileLayout = FOUND) -> pl.LazyFrame:
        import polars as pl

        rows: pl.LazyFrame = getattr(pl, reader)(path, **options).lazy()
        return rows

    return scan


def _opened_csv(form: FileForm) -> tuple[tuple[str, str], ...]:
    named = {",": "comma", ";": "semicolon", "\t": "tab", "|": "|"}[form.delimiter]
    sign = form.delimiter.replace("\t", "\\t")
    is_plain = (form.delimiter, form.decimal) == (",", ".")
    comma = ", decimal_comma=True" if form.decimal == "," else ""
    mark = '"UTF-8-BOM"' if form.bom else '"UTF-8"'
    in_python = "" if is_plain else f', separator="{sign}"{comma}'
    in_pandas = "" if is_plain else f', sep="{sign}", decimal="{form.decimal}"'
    decimals = f', decimal sign "{form.decimal}"'
    return (
        ("Excel", f"Data, From Text/CSV, file origin 65001 (UTF-8), delimiter {named}{decimals}"),
        (
            "R",
            f'read.csv("data.csv", sep = "{sign}", dec = "{form.decimal}", check.names = FALSE, na.strings = "", '
            f"fileEncoding = {mark})",
        ),
        ("Python", f'polars.read_csv("data.csv"{in_python}) or pandas.read_csv("data.csv"{in_pandas})'),
    )


def _opened_statistics(name: str, _: FileForm) -> tuple[tuple[str, str], ...]:
    """Texts are codes with value labels there."""
    program = {"sav": ("SPSS", "open it"), "dta": ("Stata", 'use "data.dta"')}[name]
    read = {"sav": "read_spss", "dta": "read_stata"}[name]
    return (
        program,
        ("R", f'haven::as_factor(haven::read_{name}("data.{name}"))'),
        ("Python", f'pandas.{read}("data.{name}")'),
    )


LONG_TEXTS = 1 << 20
"""Bytes of texts that are too many to stand in every row group of the usual size."""
LARGE_GROUP = 1 << 20


def _sink_parquet(rows: pl.LazyFrame, path: Path, _: FileForm = PLAIN) -> None:
    """The texts of an enumerated column stand in every row group that has them: where they are long, as labels of many
    names are, there are few groups.
    """
    import polars as pl

    enumerated = [dtype.categories for dtype in rows.collect_schema().dtypes() if isinstance(dtype, pl.Enum)]
    length = sum(int(texts.str.len_bytes().sum()) for texts in enumerated)
    rows.sink_parquet(path, row_group_size=LARGE_GROUP if length > LONG_TEXTS else None)


def _sink_arrow(rows: pl.LazyFrame, path: Path, _: FileForm = PLAIN) -> None:
    """Arrow's older form of texts has no room for other texts than those of the rows, so that the audit can tell from
    lengths alone that there are none.
    """
    import polars as pl

    rows.sink_ipc(path, compression="zstd", compat_level=pl.CompatLevel.oldest())


UNKNOWN_TO_PROGRAMS = ("Duration", "Binary", "Decimal", "Time")
FORMATS: dict[str, Format] = {
    known.name: known
    for known in (
        Format(
            "csv",
            (".csv", ".tsv", ".txt", ".data"),
            None,
            grows=1.5,
            layout=OF_TEXTS,
            sink=lambda rows, path, form: rows.sink_csv(
                path, separator=form.delimiter, decimal_comma=form.decimal == ",", include_bom=form.bom
            ),
            opened=_opened_csv,
            lacks=("Duration", "Binary"),
        ),
        Format(
            "parquet",
            (".parquet", ".pq"),
            _scanned("scan_parquet", glob=False),
            grows=6.0,
            knows_rows=True,
            sink=_sink_parquet,
            opened=lambda _: (
                ("Excel", "Data, Get Data, From File, From Parquet"),
                ("R", 'arrow::read_parquet("data.parquet")'),
                ("Python", 'polars.read_parquet("data.parquet") or pandas.read_parquet("data.parquet")'),
            ),
        ),
        Format(
            "arrow",
            (".arrow", ".feather", ".ipc"),
            _scanned("scan_ipc", glob=False),
            grows=1.5,
            sink=_sink_arrow,
            opened=lambda _: (
                ("R", 'arrow::read_feather("data.arrow")'),
                ("Python", 'polars.read_ipc("data.arrow") or pandas.read_feather("data.arrow")'),
                ("Excel", "not by itself: convert it with R or Python"),
            ),
        ),
        Format(
            "xlsx",
            WORKBOOKS,
            scan_workbook,
            grows=12.0,
            layout=OF_SHEETS,
            sink=sink_workbook,
            opened=lambda _: (
                ("Excel", "open it"),
                ("R", 'readxl::read_excel("data.xlsx")'),
                ("Python", 'polars.read_excel("data.xlsx") or pandas.read_excel("data.xlsx")'),
            ),
            lacks=UNKNOWN_TO_PROGRAMS,
            program=True,
        ),
        *(
            Format(
                name,
                endings,
                scan_statistics,
                grows=4.0,
                layout=OF_LABELS,
                sink=partial(sink_statistics, name),
                opened=partial(_opened_statistics, name),
                lacks=UNKNOWN_TO_PROGRAMS,
                program=True,
            )
            for name, endings in zip(TITLED, ((".sav", ".zsav", ".por"), (".dta",)), strict=True)
        ),
    )
}
"""All formats that a release can be written in, by name."""
SOURCES: tuple[SourceFormat, ...] = (
    *FORMATS.values(),
    SourceFormat("SAS", (".sas7bdat", ".xpt"), scan_statistics, 4.0, layout=OF_LABELS),
    SourceFormat("JSON lines", (".jsonl", ".ndjson"), _scanned("scan_ndjson", infer_schema_length=None), 2.0),
    SourceFormat("Avro", (".avro",), _scanned("read_avro"), 4.0),
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
    packed = f"packed as {' or '.join(f'`{end}`' for end in PACKED)}"
    shown = []
    for known in FORMATS.values():
        first, *also = (f"`{suffix}`" for suffix in known.suffixes)
        also += [packed] if known.is_text else []
        shown.append(first + (f" (also {', '.join(also)})" if also else ""))
    return ", ".join(shown)


def format_of(path: Path) -> SourceFormat:
    """The format of a file, by its ending."""
    name = path.name.lower()
    for known in SOURCES:
        if name.endswith(known.endings):
            return known
    how = next((how for suffixes, how in CONVERTED.items() if name.endswith(suffixes)), "save it as CSV or Parquet")
    raise DataError(f"{path.name}: unknown kind of file; {how}. Known endings: {', '.join(SUFFIXES)}.")


FILES = ("duckdb", "sqlite")
SERVERS = ("postgresql", "mysql", "mariadb", "mssql")
KINDS = (*FILES, *SERVERS)
ALIASES = {"postgres": "postgresql", "sqlserver": "mssql"}
VARIABLE = "env"
SECRETS = ("password", "passwd", "pwd", "sslpassword")  # what else of an address is a password
_TABLE = re.compile(r"#([^#@/?]+)$")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is, and perhaps one of its tables."""

    kind: str
    place: str = field(repr=False)  # of a file its path, of a server the whole URL
    table: str | None = None

    @property
    def is_file(self) -> bool:
        """Whether the database is a file."""
        return self.kind in FILES

    def is_same(self, other: Address) -> bool:
        """Whether another address is of the same database, whoever asks."""
        if self.is_file or other.is_file:
            return self.kind == other.kind and Path(self.place).resolve() == Path(other.place).resolve()
        return _server(self) == _server(other)


def _server(address: Address) -> tuple[object, ...]:
    """What of an address says which database of which server it is."""
    parts = urlsplit(address.place)
    kind = "mysql" if address.kind == "mariadb" else address.kind
    given = {key: value for key, value in parse_qsl(parts.query) if key in ("host", "port", "dbname", "unix_socket")}
    return kind, parts.hostname, parts.port, parts.path.strip("/"), sorted(given.items())


def is_database(source: object) -> bool:
    """Whether a source is the address of a database."""
    return isinstance(source, str) and source.startswith(tuple(f"{kind}:" for kind in (*KINDS, *ALIASES, VARIABLE)))


def shown_address(source: str) -> str:
    """An address without anything secret: the kind of database, of a file its name, and the table."""
    address, table = divided(source)
    kind, _, rest = address.partition(":")
    shown = rest if kind == VARIABLE else Path(rest).name if kind in FILES else "…"
    return f"{kind}:{shown}" + (f"#{table}" if table else "")


def divided(source: str) -> tuple[str, str | None]:
    """An address without its table, and the table; a `#` inside of a password or of a file's name begins none."""
    named = _TABLE.search(source)
    kind, _, rest = source.partition(":")
    if named is None or (kind in FILES and Path(rest.removeprefix("//")).is_file()):
        return source, None
    return source[: named.start()], unquote(named[1])


def has_password(source: str) -> bool:
    """Whether an address, of a database or of anything else, tells a password."""
    if "://" not in source:
        return False
    try:
        parts = urlsplit(source)
        # One with signs that belong to an address may not be seen as a password.
        hidden = parts.password is None and "@" in source and ":" in source.partition("://")[2].rpartition("@")[0]
        return parts.password is not None or hidden or any(key in SECRETS for key, _ in parse_qsl(parts.query))
    except ValueError:
        return True


def without_password(source: str) -> str:
    """An address as it may be written down: a password is left to the driver (`PGPASSWORD`, `~/.pgpass`)."""
    if not has_password(source):
        return source
    kind, _, rest = source.partition("://")
    user, _, place = rest.rpartition("@")
    place = re.sub(rf"([?&])({'|'.join(SECRETS)})=[^&#]*&?", r"\1", place)
    return f"{kind}://{user.partition(':')[0]}{'@' if user else ''}{place}"


def refuse_shown_password(words: list[str]) -> None:
    """Refuse a password in the words of a command: everybody on a machine can read its list of processes."""
    for word in words:
        address = word.partition("=")[2].strip("'\" ") if word.startswith(("data.", "output.", "--")) else word
        if has_password(address):
            raise RequestError(
                "the address on the command line holds a password, which the list of processes shows to everybody; "
                "put the address into an environment variable and write env:NAME, or leave the password to "
                "PGPASSWORD or ~/.pgpass."
            )


def read_address(source: str, *, folder: Path, key: str = "data.source") -> Address:
    """What an address says; a relative path starts at a folder. `key` is the setting that errors name."""
    text, table = divided(source)
    if text.startswith(f"{VARIABLE}:"):
        name = text.partition(":")[2]
        held = os.environ.get(name, "")
        if not is_database(held) or held.startswith(f"{VARIABLE}:"):
            known = f"address of a database ({', '.join(KINDS)})"
            raise SpecError([f"{key}: the environment variable {name} holds no {known}."])
        address = read_address(held, folder=folder, key=key)
        return replace(address, table=table or address.table)
    kind, _, rest = text.partition(":")
    if kind in FILES:
        return Address(kind, str(folder / rest.removeprefix("//")), table)
    if kind in ALIASES:
        kind, text = ALIASES[kind], f"{ALIASES[kind]}:{rest}"
    try:
        parts = urlsplit(text)
        _ = parts.port
        has_host = bool(parts.hostname) or "host=" in text or "unix_socket=" in text
        is_server = has_host and (kind == "postgresql" or bool(parts.path.strip("/")))
    except ValueError:
        is_server = False
    if not is_server:  # it is not repeated
        raise SpecError([f"{key}: the address of a server is such as {kind}://user@host/database."])
    return Address(kind, text, table)


def require_file(address: Address) -> None:
    """Refuse the address of a file that is not there."""
    if address.is_file and not Path(address.place).is_file():
        raise DataError(f"{Path(address.place).name}: there is no such {address.kind} file.")


_QUERY_SIGNS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\[(?:[^]]|\]\])*\]|--[^\n]*|/\*|[()'\"[\]]")
_IN_COMMENT = re.compile(r"/\*|\*/")


def require_closed(query: str) -> None:
    """Refuse a query that ends the brackets around it: SQL Server would run what follows, and it may write."""
    brackets, comments, mark = 0, 0, _QUERY_SIGNS.search(query)
    while mark is not None and brackets >= 0:
        sign = mark[0]
        if sign in ("'", '"', "[", "]"):
            break
        comments += (sign == "/*") - (sign == "*/")  # they may be nested
        brackets += (sign == "(") - (sign == ")")
        mark = (_IN_COMMENT if comments else _QUERY_SIGNS).search(query, mark.end())
    if mark is not None or brackets or comments:
        raise SpecError(["data.query is not one whole query: its brackets, quotes or comments do not close."])
