# SPDX-License-Identifier: Apache-2.0
"""Hostile cases: files of other programs that are broken, lie about their size, or hold what is no table."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
from hostile_files import people_frame, source
from hostile_running import MARK, Case

DONE = '(Published|"passed": true)'
BROKEN = "cannot be read"


def workbook(change: Callable[[str], str] = str) -> bytes:
    """A workbook of people, with the text of its sheet changed."""
    made, changed = io.BytesIO(), io.BytesIO()
    people_frame().write_excel(made)
    with zipfile.ZipFile(made) as before, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as after:
        for name in before.namelist():
            text = before.read(name)
            after.writestr(name, change(text.decode()).encode() if name.endswith("sheet1.xml") else text)
    return changed.getvalue()


def far(cell: str) -> Callable[[str], str]:
    """A cell far out."""
    number = "".join(sign for sign in cell if sign.isdigit())
    row = f'<row r="{number}"><c r="{cell}"><v>1</v></c></row></sheetData>'
    return lambda text: text.replace("</sheetData>", row)


def statistics(kind: str) -> bytes:
    """People as a file of a statistics program."""
    import pyreadstat

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"people.{kind}"
        getattr(pyreadstat, f"write_{kind}")(people_frame(), str(path))
        return path.read_bytes()


def avro() -> bytes:
    """People as an Avro file."""
    made = io.BytesIO()
    people_frame().write_avro(made)
    return made.getvalue()


def foreign(name: str, kind: str, content: bytes | str, says: str, status: int = 2) -> Case:
    """A file of another program as the source."""
    return Case(name, {f"people.{kind}": content, **source(f"people.{kind}")}, says, status=status)


def turned(content: bytes, at: float) -> bytes:
    """Some bytes of a file turned over."""
    place = int(len(content) * at)
    return content[:place] + bytes(byte ^ 0x5A for byte in content[place : place + 40]) + content[place + 40 :]


LINES = [json.dumps(row) for row in people_frame().to_dicts()]
ENTITY = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'

FOREIGN = [
    foreign("a workbook with a cell at its end", "xlsx", workbook(far("XFD1048576")), "a sheet reaches so far out"),
    foreign("a workbook with a cell far below", "xlsx", workbook(far("ZZ1048575")), "a sheet reaches so far out"),
    foreign("a workbook cut short", "xlsx", workbook()[:-400], BROKEN),
    foreign("a workbook with bytes turned", "xlsx", turned(workbook(), 0.3), BROKEN),
    foreign(
        "a workbook with an entity",
        "xlsx",
        workbook(lambda text: text.replace("<worksheet", f"{ENTITY}<worksheet", 1).replace("<v>20</v>", "<v>&a;</v>")),
        DONE,
        status=0,
    ),
    foreign("a workbook that is another archive", "xlsx", b"PK\x03\x04" + MARK.encode() * 50, BROKEN),
    foreign("a sheet of OpenDocument that is none", "ods", b"PK\x03\x04" + MARK.encode() * 50, BROKEN),
    foreign("SPSS cut short", "sav", statistics("sav")[:-300], BROKEN),
    foreign("Stata cut short", "dta", statistics("dta")[: len(statistics("dta")) * 7 // 10], BROKEN),
    foreign("a portable file that is none", "por", MARK.encode() * 1000, BROKEN),
    foreign("a transport file that is none", "xpt", MARK.encode() * 1000, BROKEN),
    foreign("a file of SAS that is none", "sas7bdat", MARK.encode() * 3000, BROKEN),
    foreign("JSON lines with half a line", "jsonl", "\n".join([*LINES, f'{{"age": "{MARK}']), BROKEN),
    foreign("JSON lines with a list", "jsonl", "\n".join([*LINES, f'["{MARK}"]', *LINES]), BROKEN),
    foreign("JSON lines that are deep", "jsonl", '{"age":' + "[" * 100_000 + "]" * 100_000 + "}\n", BROKEN),
    foreign(
        "JSON lines with objects inside",
        "jsonl",
        "\n".join(json.dumps({**json.loads(line), "sex": {"a": MARK}}) for line in LINES),
        "a quasi-identifier needs plain values",
    ),
    foreign("Avro cut short", "avro", avro()[:-60], BROKEN),
    foreign("Avro with bytes turned", "avro", turned(avro(), 0.7), BROKEN),
    foreign("ORC that is none", "orc", b"ORC" + MARK.encode() * 50, BROKEN),
]


def damaged_pages(kind: str) -> bytes:
    """A file of types whose pages are damaged and whose footer is not."""
    made = io.BytesIO()
    frame = pl.concat([people_frame()] * 40)
    if kind == "parquet":
        frame.write_parquet(made, compression="uncompressed")
    else:
        frame.write_ipc(made)
    return turned(made.getvalue(), 0.4)


FOREIGN += [
    foreign("Parquet with pages damaged", "parquet", damaged_pages("parquet"), BROKEN),
    foreign("Arrow with buffers damaged", "arrow", damaged_pages("arrow"), BROKEN),
]
