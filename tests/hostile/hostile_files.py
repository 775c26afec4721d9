# SPDX-License-Identifier: Apache-2.0
"""How the files of hostile cases are made."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import socket
import zipfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import polars as pl
import pyarrow as pa
from hostile_running import MARK, PEOPLE, SPEC

ESCAPE = "\x1b[31mred\x1b]0;title\x07\x9b2J"
TURNED = "user\u202egpj.exe\u2066"
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
FORMULA = "=cmd|' /C calc'!A0"


def rows(line: Callable[[int], str], number: int = 60, head: str = "age,sex,illness") -> str:
    """A text table with a line for each number."""
    return head + "\n" + "".join(line(index) + "\n" for index in range(number))


def ages(*values: str) -> str:
    """People of these ages, in turn."""
    return rows(lambda index: f"{values[index % len(values)]},{'mf'[index % 3 > 0]},{MARK}{index % 4}")


def named(name: str) -> dict[str, str]:
    """People whose column of sexes has another name, and their spec."""
    quoted = '"' + name.replace('"', '""') + '"'
    key = '"' + "".join(sign if sign.isprintable() and sign not in '"\\' else f"\\U{ord(sign):08x}" for sign in name)
    return {
        "people.csv": PEOPLE.replace("sex", quoted, 1),
        "spec.toml": SPEC.replace("columns.sex", f'columns.{key}"'),
    }


def spec(*changes: tuple[str, str], more: str = "") -> dict[str, str]:
    """The spec with texts replaced and lines added."""
    found = SPEC
    for old, new in changes:
        assert old in found
        found = found.replace(old, new)
    return {"spec.toml": found + more}


def source(name: str) -> dict[str, str]:
    """The spec of another source."""
    return spec(("people.csv", name))


def taxonomy(name: str, content: str | bytes) -> dict[str, str | bytes]:
    """The spec with a taxonomy of sexes."""
    lines = f'[columns.sex]\nrole = "quasi-identifier"\ntaxonomy = "{name}"'
    return {name: content, **spec(('[columns.sex]\nrole = "quasi-identifier"', lines))}


def counted(values: Sequence[str], role: str = "count") -> dict[str, str]:
    """People with a column of counts or weights."""
    table = rows(lambda index: f"{20 + index % 40},{'mf'[index % 2]},{values[index % len(values)]}", head="age,sex,n")
    return {"people.csv": table, **spec(("illness", "n"), ('"insensitive"', f'"{role}"'))}


def parquet(frame: pl.DataFrame) -> bytes:
    """A frame as a Parquet file."""
    found = io.BytesIO()
    frame.write_parquet(found)
    return found.getvalue()


def people_frame() -> pl.DataFrame:
    """The people as a frame."""
    return pl.read_csv(io.StringIO(PEOPLE))


def gz_bomb(size: int) -> bytes:
    """A small file that becomes a large one."""
    return gzip.compress(PEOPLE.encode() + b"1,m,x\n" * (size // 6), 9)


def zst_bomb(size: int) -> bytes:
    """The same, with zstd."""
    return bytes(pa.compress(PEOPLE.encode() + b"1,m,x\n" * (size // 6), codec="zstd", asbytes=True))


def zipped() -> bytes:
    """An archive of the table."""
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("people.csv", PEOPLE)
    return found.getvalue()


def pipe(path: Path) -> None:
    """A named pipe that nobody writes to."""
    os.mkfifo(path)


def loop(path: Path) -> None:
    """A link to itself."""
    path.symlink_to(path.name)


def folder(path: Path) -> None:
    """A folder."""
    path.mkdir()


def listening(path: Path) -> None:
    """A socket."""
    place = Path.cwd()
    os.chdir(path.parent)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)
    os.chdir(place)


def unnamable(path: Path) -> None:
    """The table under a name that is no UTF-8."""
    Path(os.fsdecode(bytes(path.parent) + b"/pe\xff\xfeople.csv")).write_text(PEOPLE)


@cache
def released(name: str, k: int, kind: str) -> Path:
    """A release, or a tree, of people whose column of sexes has a name, made once."""
    from anonfit.api import run, run_tree

    place = Path(mkdtemp(prefix="hostile-"))
    for file, content in named(name).items():
        (place / file).write_text(content, encoding="utf-8")
    setting = f"privacy.k={k}"
    if kind == "tree":
        text = (place / "spec.toml").read_text(encoding="utf-8").replace('"insensitive"', '"target"')
        (place / "spec.toml").write_text(text, encoding="utf-8")
        run_tree(place / "spec.toml", place / "release", settings=[setting])
    else:
        run(place / "spec.toml", place / "release", settings=[setting, f'output.format="{kind}"'])
    return place / "release"


def release(
    name: str = "sex", k: int = 5, kind: str = "csv", change: Iterable[tuple[str, str | bytes | None]] = ()
) -> Callable[[Path], None]:
    """Makes a release or tree, with some of its files written over, or removed."""

    def make(path: Path) -> None:
        shutil.copytree(released(name, k, kind), path)
        for file, content in change:
            if content is None:
                (path / file).unlink()
            elif isinstance(content, bytes):
                (path / file).write_bytes(content)
            else:
                (path / file).write_text(content, encoding="utf-8")

    return make
