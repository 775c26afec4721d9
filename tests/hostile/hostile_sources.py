# SPDX-License-Identifier: Apache-2.0
"""Hostile cases: files that are no tables, or tables in odd clothes."""

from __future__ import annotations

import gzip
import io

import polars as pl
import pyarrow as pa
from hostile_files import (
    ESCAPE,
    SCRIPT,
    TURNED,
    folder,
    listening,
    loop,
    named,
    parquet,
    people_frame,
    pipe,
    rows,
    source,
    spec,
    zipped,
)
from hostile_running import MARK, PEOPLE, Case

UNEVEN = "and the table"
NO_UTF8 = "not UTF-8"
DONE = '(Published|"passed": true)'
TABLE = PEOPLE.encode()
LONG = rows(lambda index: f"{20 + index % 40},{'mf'[index % 2]},{MARK}{index % 4}", 60_000).encode()
HALF = len(LONG) // 3


def _stream() -> bytes:
    found = io.BytesIO()
    people_frame().write_ipc_stream(found)
    return found.getvalue()


def _nested() -> bytes:
    return parquet(people_frame().with_columns(illness=pl.concat_list("illness")))


def _csv(content: bytes | str) -> dict[str, bytes | str]:
    return {"people.csv": content}


def _packed(name: str, content: bytes) -> dict[str, bytes | str]:
    return {name: content, **source(name)}


def _database(address: str) -> dict[str, str]:
    return spec(('"people.csv"', f'"{address}"\ntable = "people"'))


TEXTS = [
    Case("an empty file", _csv(b""), "is empty; a table needs at least one row"),
    Case("blank lines only", _csv(b"\n\n \n"), "is empty; a table needs at least one row"),
    Case("a header without rows", _csv("age,sex,illness\n"), "no rows"),
    Case("NUL bytes in values", _csv(TABLE.replace(b"flu", b"f\0u")), DONE, status=0),
    Case("nothing but NUL bytes", _csv(bytes(10_000)), "NUL bytes"),
    Case("invalid UTF-8 in the first lines", _csv(TABLE.replace(b"flu", b"fl\xff")), NO_UTF8),
    Case(
        "invalid UTF-8 deep in the file",
        _csv(LONG[:HALF] + b"30,\xfe\xff,x\n" + LONG[LONG.index(b"\n", HALF) + 1 :]),
        NO_UTF8,
    ),
    Case("half of a sign at the end", _csv(TABLE + "30,m,ä".encode()[:-1] + b"\n"), NO_UTF8),
    Case("a byte order mark", _csv(b"\xef\xbb\xbf" + TABLE), DONE, status=0),
    Case("two byte order marks", _csv(b"\xef\xbb\xbf" * 2 + TABLE), "age"),
    Case("UTF-16 with a mark", _csv(PEOPLE.encode("utf-16")), DONE, status=0),
    Case("UTF-16 without a mark", _csv(PEOPLE.encode("utf-16-le")), DONE, status=0),
    Case("UTF-32", _csv(PEOPLE.encode("utf-32")), DONE, status=0),
    Case("Latin-1", _csv(PEOPLE.replace("flu", "Fälle").encode("latin-1")), DONE, status=0),
    Case("carriage returns as ends of lines", _csv(TABLE.replace(b"\n", b"\r")), DONE, status=0),
    Case("ends of lines of Windows", _csv(TABLE.replace(b"\n", b"\r\n")), DONE, status=0),
    Case("ends of lines of both kinds", _csv(TABLE.replace(b"cold\n", b"cold\r\n")), DONE, status=0),
    Case("no end of the last line", _csv(TABLE[:-1]), DONE, status=0),
    Case("a field too many", _csv(PEOPLE + f"30,m,{MARK},{MARK}\n"), UNEVEN),
    Case("a field too few", _csv(PEOPLE + "30,m\n"), UNEVEN),
    Case(
        "a field too many deep in the file",
        _csv(LONG[:HALF] + b"30,m,x,y\n" + LONG[LONG.index(b"\n", HALF) + 1 :]),
        UNEVEN,
    ),
    Case(
        "a field too few deep in the file", _csv(LONG[:HALF] + b"30,m\n" + LONG[LONG.index(b"\n", HALF) + 1 :]), UNEVEN
    ),
    Case("an empty line in the middle", _csv(PEOPLE + "\n" + PEOPLE.partition("\n")[2]), DONE, status=0),
    Case("a quote that is not closed", _csv(PEOPLE + f'30,m,"{MARK}\n'), "a quote is not closed"),
    Case(
        "a quote that is opened in the first line",
        _csv('age,sex,"illness\n' + PEOPLE.partition("\n")[2]),
        "line 1 cannot be read: a quote in it is not closed",
    ),
    Case("a quote within a value", _csv(PEOPLE.replace("flu", 'f"lu')), DONE, status=0),
    Case("ends of lines within quotes", _csv(PEOPLE.replace(f"{MARK}flu", f'"{MARK}\nflu"')), DONE, status=0),
    Case(
        "ends of lines of Unicode in values", _csv(PEOPLE.replace("flu", "f\u2028l\u0085u\x0b\x0c\x1c")), DONE, status=0
    ),
    Case("a value of five million signs", _csv(PEOPLE + f"30,m,{MARK * 1_700_000}\n"), DONE, status=0),
    Case("one line of five million signs", _csv("n" * 5_000_000), "no such column|too long"),
    Case("a title above the header", _csv("People of 2019\n" + PEOPLE), DONE, status=0),
    Case("a delimiter at the end of the header", _csv(PEOPLE.replace("illness", "illness,", 1)), UNEVEN),
    Case("the delimiter as Excel says it", _csv("sep=,\n" + PEOPLE), DONE, status=0),
    Case("columns of one name", _csv(PEOPLE.replace("sex", "age", 1)), "column names stand twice: those of columns"),
    Case(
        "names that blanks tell apart",
        _csv(PEOPLE.replace("sex", " age ", 1)),
        "column names stand twice: those of columns",
    ),
    Case("a column without a name", named(""), "line 1 looks like a header, and a name in it is empty"),
    Case("no column has a name", _csv(PEOPLE.replace("age,sex,illness", ",,", 1)), "a name in it is empty"),
    Case("a name of 10,000 signs", named("n" * 10_000), DONE, status=0),
]

NAMES = [
    Case(
        f"a name with {what}, {kind}",
        named(name),
        says,
        status=status,
        words=("run", "spec.toml", "--out", "release", "--set", f"output.format={kind}"),
    )
    for what, name, says, status in (
        ("escapes", ESCAPE, DONE, 0),
        ("HTML", SCRIPT, DONE, 0),
        ("a turned direction", TURNED, DONE, 0),
        ("a quote", 'se"x', DONE, 0),
        ("an end of line", "se\nx", DONE, 0),
        ("a formula", "=1+1", DONE, 0),
        ("a NUL", "se\0x", "NUL bytes", 2),
    )
    for kind in ("csv", "parquet")
]

PACKED = [
    Case("gzip cut short", _packed("people.csv.gz", gzip.compress(TABLE)[:-20]), "cut short"),
    Case("no gzip at all", _packed("people.csv.gz", TABLE), "cut short, or not what its ending says"),
    Case("gzip and something after it", _packed("people.csv.gz", gzip.compress(TABLE) + b"garbage"), "cut short"),
    Case("no zstd at all", _packed("people.csv.zst", TABLE), DONE, status=0),
    Case(
        "zstd cut short",
        _packed("people.csv.zst", bytes(pa.compress(TABLE, codec="zstd", asbytes=True))[:-20]),
        "(cannot be unpacked|cut short)",
    ),
    Case("an archive that says it is a table", _csv(zipped()), "NUL bytes"),
    Case("an archive", _packed("people.zip", zipped()), "unknown kind of file"),
    Case("a workbook", _packed("people.xlsx", zipped()), "cannot be read as a workbook"),
    Case("Parquet cut short", _packed("people.parquet", parquet(people_frame())[:-100]), "cannot be read as"),
    Case("no Parquet at all", _packed("people.parquet", TABLE), "cannot be read as"),
    Case("an empty Parquet file", _packed("people.parquet", b""), "cannot be read as"),
    Case("Parquet without rows", _packed("people.parquet", parquet(people_frame().head(0))), "no rows"),
    Case("Parquet without columns", _packed("people.parquet", parquet(pl.DataFrame())), "column"),
    Case("Parquet with lists", _packed("people.parquet", _nested()), "(nested|list|List)"),
    Case(
        "Parquet with bytes damaged",
        _packed("people.parquet", parquet(people_frame())[:40] + b"\xff" * 40 + parquet(people_frame())[80:]),
        "(cannot be read|may be damaged)",
    ),
    Case("no Arrow at all", _packed("people.arrow", TABLE), "cannot be read as"),
    Case("a stream of Arrow", _packed("people.arrow", _stream()), "cannot be read as"),
]

PLACES = [
    Case("no source", source("nobody.csv"), "there is no such file"),
    Case("a folder as source", {"people.csv": folder}, "is a folder; name the file"),
    Case("a pattern that nothing matches", source("nobody-*.csv"), "no file matches this pattern"),
    Case("a pattern that a folder matches", {"some-1.csv": folder, **source("some-*.csv")}, "is a folder"),
    Case(
        "files of a pattern with other columns",
        {"some-1.csv": PEOPLE, "some-2.csv": PEOPLE.replace("sex", "six", 1), **source("some-*.csv")},
        "has other columns than",
    ),
    Case("a pipe as source", {"people.csv": pipe}, "not a (regular )?file"),
    Case("a socket as source", {"people.csv": listening}, "not a (regular )?file"),
    Case("a link to itself", {"people.csv": loop}, "no such file"),
    Case("a device without an end", {"people.csv": lambda path: path.symlink_to("/dev/zero")}, "not a (regular )?file"),
    Case(
        "the device that is empty", {"people.csv": lambda path: path.symlink_to("/dev/null")}, "not a (regular )?file"
    ),
    Case("memory of a process", {"people.csv": lambda path: path.symlink_to("/proc/self/mem")}, "(empty|cannot be)"),
    Case("a name that is too long", source("n" * 300 + ".csv"), "no such file"),
    Case("a path that is too long", source("n/" * 2000 + "people.csv"), "no such file"),
    Case("a source with a NUL", spec(("people.csv", "people\\u0000.csv")), "no such file"),
    Case("a source that is a number", spec(('"people.csv"', "7")), "a table is needed: a path"),
    Case("a source in the web", source("https://example.org/people.csv"), "no such file|URL|address"),
    Case("a database without a table", source("sqlite:people.sqlite"), "one of data.table and data.query"),
    Case("a database that is none", {"people.sqlite": TABLE, **_database("sqlite:people.sqlite")}, "cannot be read"),
    Case("a database that is not there", _database("duckdb:nobody.duckdb"), "nobody.duckdb"),
    Case("a server that does not answer", _database("postgresql://nobody:secret@127.0.0.1:1/none"), "postgresql"),
]
