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
        for end_name, end in (("LF", "\n"), ("CRLF", "\r\n"), ("CR", "\r"), ("CRCRLF", "\r\r\n")):
            for layout, (text, notice) in layouts.items():
                told = "it is not UTF-8" if encoding == "cp1252" else notice
                told = (
                    "what stands above is left out" if notice and end == "\r\r\n" else told
                )  # which is two ends of lines
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
        Messy("numbers without names", b"5,1\n6,2\n7,2\n", {"column_1": [5, 6, 7], "column_2": [1, 2, 2]}),
        Messy("years as names", b"region,2019,2020\nA,5,6\nB,7,8\n", refused=r"line 1 .*header = true or header = false",
              settings={"header": True}, table={"region": ["A", "B"], "2019": [5, 7], "2020": [6, 8]}),
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


def doubtful() -> list[Messy]:
    """Files that look like another kind, or as well like another table: what a quick eye reads wrongly."""
    some = {"age": [31, 42, 27], "city": ["Rome", "Oslo", "Bonn"]}
    plain = written(some)
    fields = r"line 1 has 2 names, and the lines below it have 3 fields; write header = true"
    hungarian = {"név": ["Győző", "Jenő", "Erzsébet"], "város": ["Győr", "Pécs", "Hódmezővásárhely"]}
    greek = {"όνομα": ["Μαρία", "Γιώργος", "Ελένη"], "πόλη": ["Αθήνα", "Πάτρα", "Βόλος"]}
    czech = {"jméno": ["Řehoř", "Žofie", "Šárka"], "město": ["Plzeň", "Děčín", "Tábor"]}
    return [
        Messy("decimal commas between commas", b"name,size\nAnn,1,72\nBob,1,80\nEve,1,65\n", refused=fields),
        Messy("decimal commas after quoted texts", b'"name","size"\n"Ann",1,72\n"Bob",1,80\n"Eve",1,65\n', refused=fields),
        Messy("commas in addresses", b"name,home\nAnn,1 Main St, Rome\nBob,2 High St, Oslo\n", refused=fields),
        Messy("row names of R without quotes", b"age,city\na,31,Rome\nb,42,Oslo\nc,27,Bonn\n", refused=fields,
              settings={"header": True}, table={"": ["a", "b", "c"], **some}),
        Messy("one column of decimal commas", b"size\n1,72\n1,8\n1,65\n", {"size": [1.72, 1.8, 1.65]}),
        Messy("one column of lists", b"illness\nA10; B20\nC30; D40\n", {"illness": ["A10; B20", "C30; D40"]}),
        Messy("another table below", b"age,city\n31,Rome\n42,Oslo\n\nsex,pay\nm,100\nf,200\n", refused=r"line 5 .*header of another table.*header = true"),
        Messy("a rule below the names", b"age,city\n---,----\n31,Rome\n42,Oslo\n", {"age": [31, 42], "city": ["Rome", "Oslo"]}, notice="line 2 is a rule"),
        Messy("two delimiters", b"a,b|c\n1,2|3\n4,5|6\n", refused=r"line 1 may be divided by '\|' or by ','; write delimiter"),
        Messy("a delimiter of another script", "age，city\n31，Rome\n42，Oslo\n".encode(), refused=r"line 1 may be divided by '，'.*delimiter"),
        Messy("divided by blanks, with quotes", b'"age" "city"\n"1" 31 "Rome"\n"2" 42 "New York"\n',
              {"": [1, 2], "age": [31, 42], "city": ["Rome", "New York"]}),
        Messy("a sum without a word", ("n,city,age\n" + "5,Rome,31\n6,Oslo,44\n" * 20 + "220,,\n").encode(), refused=r"line 42 .*skip_rows = \[42\]"),
        Messy("a total far below", long_file(90_002, "Summe,"), refused=r"line 90002 .*skip_rows = \[90002\]"),
        Messy("hungarian", written(hungarian, ";").encode("cp1250"), refused=r"line 1 is not UTF-8 .*data\.encoding", settings={"encoding": "cp1250"}, table=hungarian),
        Messy("czech", written(czech, ";").encode("iso8859-2"), refused=r"line 1 is not UTF-8 .*data\.encoding", settings={"encoding": "iso8859-2"}, table=czech),
        Messy("an euro of latin-9", "preis;n\n5 €;1\n7 €;2\n".encode("iso8859-15"), refused=r"line 2 is not UTF-8 .*data\.encoding",
              settings={"encoding": "iso8859-15"}, table={"preis": ["5 €", "7 €"], "n": [1, 2]}),
        Messy("names after two signs of comments", b"##v=1\n##x=2\n#age\tcity\n31\tRome\n42\tOslo\n27\tBonn\n", some),
        Messy("put together, with marks", f"\ufeff{plain}\ufeff{plain}".encode(), {name: values * 2 for name, values in some.items()}, notice="header again"),
        Messy("put together far below, with marks", long_file(40_001, "\ufeffage,city"), _long_table()),
        Messy("two marks", f"\ufeff\ufeff{plain}".encode(), some),
        Messy("ended as DOS did", plain.encode() + b"\x1a", some),
        Messy("ends of all kinds", b"age,city\r\n31,Rome\n42,Oslo\r27,Bonn\r\n", some),
        Messy("blanks that do not break", "age;city\n31\u00a0;Rome\n42\u00a0;Oslo\n27\u00a0;Bonn\n".encode(), some),
        Messy("lost signs", "age,city\n31,K\ufffdln\n42,Oslo\n".encode(), {"age": [31, 42], "city": ["K\ufffdln", "Oslo"]}, notice="signs in it were lost"),
        Messy("converted twice", "age,city\n31,KÃ¶ln\n42,Oslo\n".encode(), {"age": [31, 42], "city": ["KÃ¶ln", "Oslo"]}, notice="converted twice"),
        Messy("divided as in Hive", written(some, "\x01").encode(), some),
        Messy("utf-32", plain.encode("utf-32"), some),
        Messy("greek", written(greek, ";").encode("cp1253"), greek, notice="cp1253"),
        Messy("telephones with a plus", b"tel,n\n+4930123456,1\n+4940999888,2\n", {"tel": ["+4930123456", "+4940999888"], "n": [1, 2]}),
        Messy("telephones in groups", b"tel;n\n30 123 456;1\n40 999 888;2\n", {"tel": ["30 123 456", "40 999 888"], "n": [1, 2]}),
        Messy("addresses of machines", b"ip,n\n192.168.100.200,1\n110.120.130.140,2\n", {"ip": ["192.168.100.200", "110.120.130.140"], "n": [1, 2]}),
        Messy("codes like powers", b"code,n\n1E5,1\n2E7,2\n3E1,3\n", {"code": ["1E5", "2E7", "3E1"], "n": [1, 2, 3]}),
        Messy("rows that begin with #", b"room,n\nA1,5\n#2,6\nB3,7\n", {"room": ["A1", "#2", "B3"], "n": [5, 6, 7]}),
        Messy("names with line ends", b'"age\n(years)","city"\n31,Rome\n42,Oslo\n', {"age\n(years)": [31, 42], "city": ["Rome", "Oslo"]}),
        Messy("feet and inches", b'name,h\nA,"5\'11"""\nB,"6\'0"""\n', {"name": ["A", "B"], "h": ["5'11\"", "6'0\""]}),
        Messy("names with apostrophes", b"name,n\nO'Neil,1\nD'Arcy,2\n'tHooft,3\n", {"name": ["O'Neil", "D'Arcy", "'tHooft"], "n": [1, 2, 3]}),
        Messy("commas between tabs", b"name\tplace\tage\nDoe, J\tRome, IT\t31\nRoe, R\tOslo, NO\t42\n",
              {"name": ["Doe, J", "Roe, R"], "place": ["Rome, IT", "Oslo, NO"], "age": [31, 42]}),
        Messy("JSON in a column", b'age,j\n31,"{""a"": 1, ""b"": 2}"\n42,"{""a"": 3}"\n', {"age": [31, 42], "j": ['{"a": 1, "b": 2}', '{"a": 3}']}),
        Messy("leading zeros far below", ("plz;n\n" + "80331;1\n" * 30_000 + "01067;2\n").encode(), {"plz": ["80331"] * 30_000 + ["01067"], "n": [1] * 30_000 + [2]}),
        Messy("leading zeros in the middle", ("plz;n\n" + "80331;1\n" * 50_000 + "01067;2\n" + "80331;1\n" * 50_000).encode(),
              {"plz": ["80331"] * 50_000 + ["01067"] + ["80331"] * 50_000, "n": [1] * 50_000 + [2] + [1] * 50_000}),
        Messy("a number of 20 digits in the middle", ("id;n\n" + "80331;1\n" * 50_000 + "12345678901234567891;2\n" + "80331;1\n" * 50_000).encode(),
              {"id": ["80331"] * 50_000 + ["12345678901234567891"] + ["80331"] * 50_000, "n": [1] * 50_000 + [2] + [1] * 50_000}),
        Messy("a word for nothing in the middle", ("x;n\n" + "8.5;1\n" * 50_000 + "nan;2\n" + "8.5;1\n" * 50_000).encode(),
              {"x": ["8.5"] * 50_000 + ["nan"] + ["8.5"] * 50_000, "n": [1] * 50_000 + [2] + [1] * 50_000}),
        Messy("numbers too exact", b"x,n\n0.1234567890123456789,1\n0.2,2\n", {"x": ["0.1234567890123456789", "0.2"], "n": [1, 2]}),
        Messy("two decimal signs in two columns", b"a;b\n1,5;2.5\n2,5;3.5\n3,5;4.75\n", {"a": [1.5, 2.5, 3.5], "b": [2.5, 3.5, 4.75]}),
        Messy("two decimal signs in one column", b"name;x\nA;1,5\nB;2.5\nC;3,5\n", {"name": ["A", "B", "C"], "x": ["1,5", "2.5", "3,5"]}),
        Messy("lakhs stay texts", b'name,pay\nA,"1,23,456"\nB,"12,34,567"\n', {"name": ["A", "B"], "pay": ["1,23,456", "12,34,567"]}),
        Messy("amounts with currencies", b"name;pay\nA;1.234,50 EUR\nB;99,90 EUR\n", {"name": ["A", "B"], "pay": ["1.234,50 EUR", "99,90 EUR"]}),
        Messy("nothing but names of nothing", b"city,n\nNan,1\nInf,2\nOslo,3\n", {"city": ["Nan", "Inf", "Oslo"], "n": [1, 2, 3]}),
        Messy("thousands in quotes", b'name,pay,h\nA,"1,234",1.5\nB,"12,345",1.6\n', {"name": ["A", "B"], "pay": [1234, 12345], "h": [1.5, 1.6]}),
        Messy("typographic apostrophes", "name;pay\nA;1’234.50\nB;850.00\n".encode(), {"name": ["A", "B"], "pay": [1234.5, 850.0]}),
        Messy("a comment of another language", f"% export\n{plain}".encode(), some, notice="line 2"),
    ]  # fmt: skip


def bank() -> list[Messy]:
    """All files."""
    return [*encodings(), *dialects(), *lines(), *headers(), *numbers(), *doubtful(), *combined()]
