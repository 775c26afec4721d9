# SPDX-License-Identifier: Apache-2.0
"""A bank of messy text files, made by code: each with the table that a person reads in it, or with what is to be said of
it where nobody can be sure."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import date
from typing import Any

PEOPLE = {
    "age": [31, 42, 27, 55, 38, 61],
    "city": ["Rome", "Oslo", "Bonn", "Kiel", "Bern", "Graz"],
    "size": [1.72, 1.8, 1.655, 1.9, 1.5, 1.68],
}
WESTERN = {**PEOPLE, "city": ["Köln", "Zürich", "Málaga", "Besançon", "Århus", "Saint-Étienne"]}
Table = dict[str, list[Any]]


@dataclass(frozen=True)
class Messy:
    """A file: its bytes, and either the table it holds or the refusal, whose text has a line number and a key."""

    name: str
    content: bytes
    table: Table | None = None
    refused: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    """What makes a refused file readable; the table is then what is read with it."""
    suffix: str = ".csv"
    notice: str = ""


def written(
    table: Table,
    sign: str = ",",
    *,
    end: str = "\n",
    decimal: str = ".",
    quoted: str = "",
    header: bool = True,
    trailing: bool = False,
    padded: bool = False,
) -> str:
    """A table as text."""

    def cell(value: Any) -> str:
        text = "" if value is None else str(value).replace(".", decimal) if isinstance(value, float) else str(value)
        return f"{quoted}{text}{quoted}" if quoted or sign not in text else f'"{text}"'

    glue = sign + (" " if padded else "")
    rows = [list(table)] if header else []
    rows += [list(row) for row in zip(*table.values(), strict=True)]
    return "".join(glue.join(map(cell, row)) + (sign if trailing else "") + end for row in rows)


PLAIN = written(PEOPLE)
SEMICOLON = written(PEOPLE, ";", decimal=",")
UNNAMED = dict(zip(("column_1", "column_2", "column_3"), PEOPLE.values(), strict=True))
LINES = PLAIN.splitlines()


def with_line(number: int, line: str, text: str = PLAIN) -> str:
    """A text with one more line, which then has this number."""
    lines = text.splitlines()
    return "\n".join([*lines[: number - 1], line, *lines[number - 1 :]]) + "\n"


def long_file(number: int, line: str) -> bytes:
    """A file of which one line is in no sample."""
    draw = random.Random(7)
    lines = ["age,city", *(f"{draw.randint(18, 90)},{draw.choice(PEOPLE['city'])}" for _ in range(90_000))]
    lines.insert(number - 1, line)
    return "\n".join(lines).encode() + b"\n"


def _long_table(place: int = 0, row: tuple[Any, ...] = ()) -> Table:
    """The table of a long file, with one more row."""
    draw = random.Random(7)
    rows: list[tuple[Any, ...]] = [(draw.randint(18, 90), draw.choice(PEOPLE["city"])) for _ in range(90_000)]
    rows[place:place] = [row] if row else []
    return {"age": [age for age, _ in rows], "city": [city for _, city in rows]}


def combined() -> list[Messy]:
    """Several messes at once: every encoding, line end and layout together."""
    german = written(WESTERN, ";", decimal=",")
    quoted = written(WESTERN, ";", decimal=",", quoted='"')
    layouts = {
        "plain": (german, ""),
        "quoted": (quoted, ""),
        "tabs": (written(WESTERN, "\t"), ""),
        "commas": (written(WESTERN), ""),
        "sep": (f"sep=;\n{german}", ""),
        "title": (f"Patienten der Station\n\n{german}", "line 3"),
        "two titles": (f"Liste;;\nStand: Mai;;\n{german}", "line 3"),
        "trailing": (written(WESTERN, ";", decimal=",", trailing=True), ""),
        "blank lines": (german.replace("\n", "\n\n"), ""),
        "empty records": (f"{german};;\n;;\n", ""),
        "comments": (f"# Export\n# Mai\n{german}", ""),
        "padded": (written(WESTERN, ";", decimal=",", padded=True), ""),
    }
    found = []
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        for end_name, end in (("LF", "\n"), ("CRLF", "\r\n"), ("CR", "\r")):
            for layout, (text, notice) in layouts.items():
                told = "it is not UTF-8" if encoding == "cp1252" else notice
                content = text.replace("\n", end).encode(encoding)
                found.append(Messy(f"{layout}, {encoding}, {end_name}", content, WESTERN, notice=told))
    return found


def encodings() -> list[Messy]:
    text = written(WESTERN, ";", decimal=",")
    latin = "it is not UTF-8"
    polish = "imię;miasto\nŁukasz;Łódź\nŻaneta;Kraków\nPaweł;Gdańsk\nBożena;Poznań\n"
    russian = {"имя": ["Иван", "Пётр", "Ольга", "Анна"], "город": ["Москва", "Казань", "Самара", "Москва"]}
    return [
        Messy("utf-8", text.encode(), WESTERN),
        Messy("utf-8 with a mark", b"\xef\xbb\xbf" + text.encode(), WESTERN),
        Messy("utf-16 with a mark", text.encode("utf-16"), WESTERN),
        Messy("utf-16 big-endian with a mark", b"\xfe\xff" + text.encode("utf-16-be"), WESTERN),
        Messy("utf-16 without a mark", text.encode("utf-16-le"), WESTERN, notice="utf-16-le"),
        Messy("windows", text.encode("cp1252"), WESTERN, notice=latin),
        Messy("latin-1", text.encode("latin-1"), WESTERN, notice=latin),
        Messy("windows with an euro", "preis;ort\n5 €;Köln\n7 €;Jülich\n9 €;Köln\n".encode("cp1252"),
              {"preis": ["5 €", "7 €", "9 €"], "ort": ["Köln", "Jülich", "Köln"]}, notice=latin),
        Messy("windows far below", b"age,city\n" + b"31,Rome\n" * 60_000 + "31,Köln\n".encode("cp1252") + b"31,Rome\n" * 60_000,
              {"age": [31] * 120_001, "city": ["Rome"] * 60_000 + ["Köln"] + ["Rome"] * 60_000}, notice=latin),
        Messy("cyrillic", written(russian, ";").encode("cp1251"), russian, notice="cp1251"),
        Messy("central european", polish.encode("cp1250"), refused=r"line 1 is not UTF-8 .*data\.encoding",
              settings={"encoding": "cp1250"},
              table={"imię": ["Łukasz", "Żaneta", "Paweł", "Bożena"], "miasto": ["Łódź", "Kraków", "Gdańsk", "Poznań"]}),
        Messy("of two encodings", "age,city\n31,Köln\n".encode() + "42,Jülich\n27,Rome\n".encode("cp1252"),
              refused=r"line 3 .*data\.encoding"),
        Messy("no text", b"\x00\x01\x02\x00age,city\n31,Rome\x00\n", refused=r"line 1 .*data\.encoding"),
    ]  # fmt: skip


def dialects() -> list[Messy]:
    listed = {"age": [31, 42, 27], "note": ["a, b", 'said "no"', "x;y"]}
    return [
        *(Messy(f"divided by {sign!r}", written(PEOPLE, sign).encode(), PEOPLE) for sign in ",;\t|"),
        Messy("divided by ^", written(PEOPLE, "^").encode(), PEOPLE),
        Messy("divided by ~", written(PEOPLE, "~").encode(), PEOPLE),
        Messy("tabs in a .txt", written(PEOPLE, "\t").encode(), PEOPLE, suffix=".txt"),
        Messy("sep=;", f"sep=;\n{SEMICOLON}".encode(), PEOPLE),
        Messy("sep=; with a mark and CRLF", b"\xef\xbb\xbf" + f"sep=;\n{SEMICOLON}".replace("\n", "\r\n").encode(), PEOPLE),
        Messy("decimal commas, no header", written(PEOPLE, ";", decimal=",", header=False).encode(), UNNAMED),
        Messy("only decimal commas", b"1,5;2,5\n3,5;4,5\n5,25;6,5\n", {"column_1": [1.5, 3.5, 5.25], "column_2": [2.5, 4.5, 6.5]}),
        Messy("all quoted", written(PEOPLE, quoted='"').encode(), PEOPLE),
        Messy("single quotes", written({"age": [31, 42, 27], "city": ["Rome, Italy", "Oslo, Norway", "Bonn, Germany"]}, quoted="'").encode(),
              {"age": [31, 42, 27], "city": ["Rome, Italy", "Oslo, Norway", "Bonn, Germany"]}),
        Messy("doubled quotes", b'age,note\n31,"a, b"\n42,"said ""no"""\n27,"x;y"\n', listed),
        Messy("backslashes before quotes", b'age,note\n31,"a, b"\n42,"said \\"no\\""\n27,"x;y"\n', listed),
        Messy("line ends in quotes", b'age,note\n31,"a\nb"\n42,"c\r\nd"\n27,e\n', {"age": [31, 42, 27], "note": ["a\nb", "c\r\nd", "e"]}),
        Messy("inches", b'age,part\n31,5" pipe\n42,7" pipe\n27,bolt\n', {"age": [31, 42, 27], "part": ['5" pipe', '7" pipe', "bolt"]}),
        Messy("blanks before quotes", b'age, note\n31, "a, b"\n42, "c, d"\n', {"age": [31, 42], "note": ["a, b", "c, d"]}),
        Messy("blanks after commas", written(PEOPLE, padded=True).encode(), PEOPLE),
        Messy("texts of excel", b'plz,age\n="01067",31\n="80331",42\n="01067",27\n', {"plz": ["01067", "80331", "01067"], "age": [31, 42, 27]}),
        Messy("a quote that is not closed", b'age,note\n31,"a\n42,b\n27,c\n', refused=r"line 2 .*quote"),
        Messy("a quote within quotes", b'age,note\n31,"a "b" c"\n42,b\n', refused=r"line 2 .*quote"),
        Messy("divided by blanks", b"age size\n31 1.7\n42 1.8\n27 1.6\n", refused=r"line 1 .*delimiter", settings={"delimiter": " "},
              table={"age": [31, 42, 27], "size": [1.7, 1.8, 1.6]}),
        Messy("one column", b"age\n31\n42\n", {"age": [31, 42]}),
        Messy("a pipe far below", long_file(40_000, '31,"a|b"'), _long_table(39_998, (31, "a|b"))),
    ]  # fmt: skip


def lines() -> list[Messy]:
    bad = [*LINES[:3], "42,Oslo", *LINES[3:]]
    return [
        Messy("CRLF", PLAIN.replace("\n", "\r\n").encode(), PEOPLE),
        Messy("CR", PLAIN.replace("\n", "\r").encode(), PEOPLE),
        Messy("no last line end", PLAIN.rstrip().encode(), PEOPLE),
        Messy("blank lines", with_line(2, "", with_line(4, "", PLAIN + "\n\n")).encode(), PEOPLE),
        Messy("lines of blanks", with_line(4, "   ").encode(), PEOPLE),
        Messy("trailing delimiters", written(PEOPLE, ";", trailing=True).encode(), PEOPLE),
        Messy("trailing delimiters below the header", (LINES[0] + "\n" + "".join(f"{line},\n" for line in LINES[1:])).encode(), PEOPLE),
        Messy("records of nothing at the end", (PLAIN + ",,\n,,\n").encode(), PEOPLE),
        Messy("a line too short", "\n".join(bad).encode(), refused=r"line 4 has 2 .*skip_rows = \[4\]",
              settings={"skip_rows": [4]}, table=PEOPLE),
        Messy("a line too long", with_line(5, "1,2,3,4").encode(), refused=r"line 5 has 4 .*skip_rows = \[5\]",
              settings={"skip_rows": [5]}, table=PEOPLE),
        Messy("a line too short far below", long_file(40_001, "31"), refused=r"line 40001 has 1 .*skip_rows"),
        Messy("a line too long far below", long_file(40_001, "31,a,b"), refused=r"line 40001 has 3 .*skip_rows"),
        Messy("a total", with_line(8, "Total,,10.2").encode(), refused=r"line 8 .*skip_rows = \[8\]",
              settings={"skip_rows": [8]}, table=PEOPLE),
        Messy("a note below", with_line(8, "Source: registry").encode(), refused=r"line 8 .*skip_rows = \[8\]",
              settings={"skip_rows": [8]}, table=PEOPLE),
        Messy("the header again", with_line(5, LINES[0]).encode(), PEOPLE, notice="line 5 is the header again"),
        Messy("the header again far below", long_file(40_001, "age,city"), _long_table()),
    ]  # fmt: skip


def headers() -> list[Messy]:
    texts = {"city": ["Rome", "Oslo", "Rome", "Oslo"], "sex": ["f", "m", "m", "f"]}
    return [
        Messy("no header", written(PEOPLE, header=False).encode(), UNNAMED),
        Messy("a title", f"Export 2019\n{PLAIN}".encode(), PEOPLE, notice="line 2"),
        Messy("a title and a blank line", f"Export 2019\n\n{SEMICOLON}".encode(), PEOPLE, notice="line 3"),
        Messy("a title as wide as the table", f"Export 2019,,\n{PLAIN}".encode(), PEOPLE, notice="line 2"),
        Messy("three lines above", f"Clinic\nCreated: 2019-05-01\n\n{PLAIN}".encode(), PEOPLE, notice="line 4"),
        Messy("a title with a comma", f"Export, of 2019\n{PLAIN}".encode(), PEOPLE, notice="line 2"),
        Messy("comments above", f"# made by x\n# on day y\n{PLAIN}".encode(), PEOPLE),
        Messy("comments within", ("# made by x\n" + with_line(4, "# checked")).encode(), PEOPLE),
        Messy("a header after a hash", f"#{PLAIN}".encode(), PEOPLE),
        Messy("the index of pandas", b",age,city\n0,31,Rome\n1,42,Oslo\n", {"": [0, 1], "age": [31, 42], "city": ["Rome", "Oslo"]}),
        Messy("row names of R", b'"age","city"\n"1",31,"Rome"\n"2",42,"Oslo"\n"3",27,"Bonn"\n',
              {"": [1, 2, 3], "age": [31, 42, 27], "city": ["Rome", "Oslo", "Bonn"]}),
        Messy("names twice", b"age,age\n31,42\n27,55\n", refused=r"line 1, column names stand twice.*header = false",
              settings={"header": False, "skip_rows": 1}, table={"column_1": [31, 27], "column_2": [42, 55]}),
        Messy("names twice above texts", b"city,city\nRome,Oslo\nBonn,Oslo\n", refused=r"line 1, column names stand twice"),
        Messy("a name that is empty", b"age,,city\n31,1,Rome\n42,2,Oslo\n", refused=r"line 1 .*header_row"),
        Messy("units below the names", f"{LINES[0]}\nyears,,m\n{PLAIN.partition(chr(10))[2]}".encode(), refused=r"line 2 .*skip_rows = \[2\]",
              settings={"skip_rows": [2]}, table=PEOPLE),
        Messy("texts with a header", written(texts).encode(), texts),
        Messy("texts without a header", b"Rome,f\nOslo,m\nRome,m\nOslo,f\n", {"column_1": ["Rome", "Oslo", "Rome", "Oslo"], "column_2": ["f", "m", "m", "f"]}),
        Messy("texts that may have a header", b"Ann,Rome\nBob,Oslo\nEve,Bonn\n", refused=r"line 1 .*header = true or header = false",
              settings={"header": False}, table={"column_1": ["Ann", "Bob", "Eve"], "column_2": ["Rome", "Oslo", "Bonn"]}),
        Messy("names of numbers", b"2019,2020\n5,1\n6,2\n", {"column_1": [2019, 5, 6], "column_2": [2020, 1, 2]}),
    ]  # fmt: skip


def numbers() -> list[Messy]:
    def money(*texts: str) -> bytes:
        return ("name;pay\n" + "".join(f"p{place};{text}\n" for place, text in enumerate(texts))).encode()

    def read(*values: float) -> Table:
        return {"name": [f"p{place}" for place in range(len(values))], "pay": list(values)}

    either = r"line 2.*decimal = \"\.\" or decimal = \",\""
    return [
        Messy("decimal commas", money("1,5", "2,25", "3"), read(1.5, 2.25, 3)),
        Messy("thousands and decimal commas", money("1.234,50", "99,90", "1.000.000,00"), read(1234.5, 99.9, 1e6)),
        Messy("thousands and decimal points", b'name,pay\np0,"1,234.50"\np1,99.90\n', read(1234.5, 99.9)),
        Messy("thousands twice", money("1.234.567", "19.000", "850"), read(1234567, 19000, 850)),
        Messy("thousands that blanks part", money("1 234", "19 000", "850"), read(1234, 19000, 850)),
        Messy("thousands that narrow blanks part", money("1\u202f234,5", "19\u00a0000", "850"), read(1234.5, 19000, 850)),
        Messy("thousands that apostrophes part", money("1'234.50", "850.00", "2'000.00"), read(1234.5, 850, 2000)),
        Messy("either decimals or thousands", money("19.000", "1.234", "850"), refused=either, settings={"decimal": ","}, table=read(19000, 1234, 850)),
        Messy("either decimals or thousands, decimals", money("19.000", "1.234", "850"), refused=either, settings={"decimal": "."}, table=read(19, 1.234, 850)),
        Messy("either, and another column tells", b"name;pay;size\np0;19.000;1,7\np1;1.234;1,8\n", {**read(19000, 1234), "size": [1.7, 1.8]}),
        Messy("either, and another column tells of points", b"name;pay;size\np0;19.000;1.75\np1;1.234;1.8\n", {**read(19, 1.234), "size": [1.75, 1.8]}),
        Messy("thousands far below", ("name;pay\n" + "p;850\n" * 40_000 + "p;1.234\n" + "p;850\n" * 60_000).encode(), refused=r"line 40002.*decimal = \"\.\""),
        Messy("leading zeros", b"plz;n\n01067;1\n80331;2\n", {"plz": ["01067", "80331"], "n": [1, 2]}),
        Messy("very long numbers", b"id,n\n12345678901234567890,1\n12345678901234567891,2\n", {"id": ["12345678901234567890", "12345678901234567891"], "n": [1, 2]}),
        Messy("days", b"when,n\n2020-01-31,1\n2020-02-29,2\n", {"when": [date(2020, 1, 31), date(2020, 2, 29)], "n": [1, 2]}),
        Messy("days that are none", b"when,n\n2020-01-31,1\n2020-02-30,2\n", {"when": ["2020-01-31", "2020-02-30"], "n": [1, 2]}),
        Messy("german days", b"wann;n\n31.01.2020;1\n28.02.2020;2\n", {"wann": ["31.01.2020", "28.02.2020"], "n": [1, 2]}),
        Messy("times with colons", b"time;n\n12:30;1\n13:45;2\n", {"time": ["12:30", "13:45"], "n": [1, 2]}),
        Messy("signs and powers", b"a,b\n-1,1e3\n+2,2.5e-3\n", {"a": [-1.0, 2.0], "b": [1000.0, 0.0025]}),
        Messy("empty fields", b"age,city\n31,\n,Oslo\n", {"age": [31, None], "city": [None, "Oslo"]}),
        Messy("percents stay texts", b"name;share\np0;12 %\np1;7 %\n", {"name": ["p0", "p1"], "share": ["12 %", "7 %"]}),
    ]  # fmt: skip


def bank() -> list[Messy]:
    """All files."""
    return [*encodings(), *dialects(), *lines(), *headers(), *numbers(), *combined()]
