# SPDX-License-Identifier: Apache-2.0
"""The types of columns of texts, and decimal and thousands signs: how texts read as numbers, or in two ways."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from anonfit.errors import DataError
from anonfit.tables.layout import FileLayout

# Only texts that are written back as they were read may become numbers: 007 stays a text.
WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
LEADING_ZERO = re.compile(r"-?0\d")
GROUPS = {".": r"\.", ",": ",", " ": "[ \u00a0\u202f]", "'": "['’]", "": "(?:)"}
"""The signs between thousands, as they are sought."""
NO_NUMBERS = (r"\+\d{7,}", r"\d+[eE]\d+", r"\d{1,3}(\.\d{1,3}){3}")
"""Columns of such texts are telephone numbers, codes or addresses, though each could be a number."""
SIGNS = re.compile(r"[-+]?[\d., '’\u00a0\u202f]*\d[\d., '’\u00a0\u202f]*([eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs of a column's numbers; `thousands` is empty where none stands between thousands."""

    decimal: str = "."
    thousands: str = ""

    @property
    def grouped(self) -> str:
        """The pattern of a number that has its thousands parted."""
        group, point = GROUPS[self.thousands], re.escape(self.decimal)
        return rf"^[-+]?([1-9]\d{{0,2}}({group}\d{{3}})+|\d{{1,3}})({point}\d+)?$"

    def plain(self, text: str) -> str:
        """A number as Python writes it."""
        bare = re.sub(GROUPS[self.thousands], "", text) if self.thousands else text
        return bare.replace(self.decimal, ".") if self.decimal != "." else bare

    def fits(self, text: str) -> bool:
        """Whether a text is a number with these signs that a float holds as it is written."""
        if self.thousands and not re.match(self.grouped, text):
            return False
        if not self.thousands and self.decimal == "," and "." in text:
            return False
        plain = self.plain(text)
        if not NUMBER.fullmatch(plain) or LEADING_ZERO.match(plain):
            return False
        return len(plain) <= 15 or Decimal(plain) == Decimal(repr(float(plain)))

    def expression(self, texts: pl.Expr) -> pl.Expr:
        """Texts as numbers are written in Python; missing where they are no such numbers."""
        if self.thousands:
            texts = pl.when(texts.str.contains(self.grouped)).then(texts.str.replace_all(GROUPS[self.thousands], ""))
        elif self.decimal == ",":
            texts = pl.when(~texts.str.contains(".", literal=True)).then(texts)
        return texts.str.replace(",", ".", literal=True) if self.decimal == "," else texts


POINT = Signs()


def readings_of(texts: Sequence[str]) -> list[Signs]:
    """The ways in which all texts of a column read as numbers that are not whole already; none: they are not."""
    if not all(SIGNS.fullmatch(text) for text in texts):
        return []
    used = {sign for sign in "., '" if any(re.search(GROUPS[sign], text) for text in texts)}
    points = used & {".", ","}
    gaps = used - points
    if len(gaps) > 1 or (gaps and len(points) > 1):
        return []
    if gaps:
        possible = [Signs(next(iter(points), "."), next(iter(gaps)))]
    elif len(points) == 2:
        possible = [Signs(".", ","), Signs(",", ".")]
    else:
        possible = {".": [Signs("."), Signs(",", ".")], ",": [Signs(","), Signs(".", ",")]}.get(
            "".join(points), [POINT]
        )
    return [signs for signs in possible if all(signs.fits(text) for text in texts)]


def allowed(readings: Iterable[Signs], layout: FileLayout, texts: Sequence[str]) -> list[Signs]:
    """Those readings that what is given of the signs allows."""

    def fits(signs: Signs) -> bool:
        has_decimals = any(signs.decimal in text for text in texts)
        if layout.decimal is not None and (
            signs.thousands == layout.decimal or has_decimals > (signs.decimal == layout.decimal)
        ):
            return False
        if layout.thousands is None:
            return True
        return signs.thousands in ("", layout.thousands) and not (has_decimals and signs.decimal == layout.thousands)

    return [signs for signs in readings if fits(signs)]


def settled(readings: Sequence[Signs], sure: Iterable[Signs]) -> Signs | None:
    """The reading of a column that reads in two ways which the other columns of its file agree with; None: neither."""
    known = list(sure)
    for_point = any(signs.decimal == "." or signs.thousands == "," for signs in known)
    for_comma = any(signs.decimal == "," or signs.thousands == "." for signs in known)
    if for_point == for_comma:
        return None
    wanted = "." if for_point else ","
    return next((signs for signs in readings if signs.decimal == wanted), None)


def is_faithful(texts: pl.LazyFrame, name: str, signs: Signs) -> bool:
    """Whether numbers that texts of a column were read as say what the texts say: none begins with a zero that would be
    lost, has more digits than a float, or is a word such as nan.
    """
    column = pl.col(name)
    strange = column.str.contains(r"(?i)^[-+]?(0\d|inf|nan)")
    doubtful = texts.select(
        strange.any().alias("strange"), column.filter(column.str.len_chars() > 15).unique().implode()
    )
    found = doubtful.collect().to_dicts()[0]
    return not found["strange"] and all(map(signs.fits, found[name]))


def may_be_grouped(texts: pl.Series) -> bool:
    """Whether texts of a column that began with whole numbers may have their thousands parted by points or commas."""
    marked = texts.drop_nulls().unique()
    marked = marked.filter(marked.str.contains(r"[.,]"))
    patterns = [rf"^[-+]?[1-9]\d{{0,2}}({GROUPS[sign]}\d{{3}})+$" for sign in ".,"]
    return len(marked) > 0 and any(bool(marked.str.contains(pattern).all()) for pattern in patterns)


def _are_codes(texts: Sequence[str]) -> bool:
    """Whether texts are no numbers though each could be one: also equally many digits in groups, as of telephones."""
    if any(all(re.fullmatch(pattern, text) for text in texts) for pattern in NO_NUMBERS):
        return True
    is_grouped = all(re.fullmatch(r"[1-9]\d{0,2}([ \u00a0\u202f]\d{3}){2,}", text) for text in texts)
    return is_grouped and len({len(text) for text in texts}) == 1


def type_of(texts: Sequence[str], missing: frozenset[str], layout: FileLayout) -> tuple[str, list[Signs]]:
    """The type of a column, and the ways in which its numbers can be read."""
    different = dict.fromkeys(text.strip() for text in dict.fromkeys(texts))
    known = [text for text in different if text and text not in missing]
    if known and all(map(WHOLE.fullmatch, known)):
        return "whole", [POINT]
    if known and all(map(DAY.fullmatch, known)):
        return "date", []
    if not known or any(map(LEADING_ZERO.match, known)) or _are_codes(known):
        return "text", []
    readings = allowed(readings_of(known), layout, known)
    return ("number", readings) if readings else ("text", [])


def types_of(
    rows: Sequence[Sequence[str]],
    names: Sequence[str],
    missing: Mapping[str, frozenset[str]],
    layout: FileLayout,
    line: int,
) -> tuple[tuple[str, ...], tuple[Signs, ...]]:
    """The type and the signs of each column; refused where numbers read in two ways and nothing settles it."""
    read_as = []
    for index, name in enumerate(names):
        known = missing.get(name, missing[""])
        read_as.append(type_of([row[index] for row in rows if index < len(row)], known, layout))
    sure = [readings[0] for kind, readings in read_as if kind == "number" and len(readings) == 1]
    types, signs = [], []
    for index, (name, (kind, readings)) in enumerate(zip(names, read_as, strict=True)):
        reading = readings[0] if len(readings) == 1 else settled(readings, sure) if readings else POINT
        if reading is None:
            raise DataError(
                f"column '{name}': its numbers may have decimals or parted thousands (as in line {line}); write "
                'decimal = "." or decimal = "," in [data].'
            )
        if kind == "number" and reading.thousands:
            has_decimals = any(reading.decimal in row[index] for row in rows if index < len(row))
            kind = kind if has_decimals else "whole"
        types.append(kind)
        signs.append(reading)
    return tuple(types), tuple(signs)
