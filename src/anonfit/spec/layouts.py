# SPDX-License-Identifier: Apache-2.0
"""What `[data]` can say of how a file lays its table out: the settings of `tables.layout`, declared and read."""

from __future__ import annotations

import codecs
from typing import Any

from anonfit.spec.kinds import SWITCH, Given, Public, Setting, ValueKind, is_whole, text, whole

GROUPING = (".", ",", " ", "'", "")


def _read_delimiter(given: Given) -> str | None:
    delimiter: str | None = given.of_type(str, "one character")
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\0\r\n"'):
        given.faults.add(f"{given.place} must be one ASCII character, no quote and no line end; found {delimiter!r}.")
        return None
    return delimiter


def _read_encoding(given: Given) -> str | None:
    name: str | None = given.of_type(str, "the name of an encoding")
    try:
        is_known = name is None or codecs.lookup(name)._is_text_encoding
    except (LookupError, ValueError):
        is_known = False
    if is_known:
        return name
    given.faults.add(
        f'{given.place} = {name!r} is no encoding; known are such as "utf-8", "cp1252", "utf-16", "cp850".'
    )
    return None


def _sign_of(*signs: str) -> ValueKind:
    """One of some signs."""

    def read(given: Given) -> str | None:
        sign: str | None = given.of_type(str, "a sign")
        if sign is None or sign in signs:
            return sign
        given.faults.add(f"{given.place} must be one of {', '.join(map(repr, signs))}; found {sign!r}.")
        return None

    return ValueKind(read)


def _read_comment(given: Given) -> str | None:
    comment: str | None = given.of_type(str, "what such lines begin with")
    if comment is not None and not comment.isprintable():
        given.faults.add(f"{given.place} must be signs that can be seen; found {comment!r}.")
        return None
    return comment


def _read_rows(given: Given) -> Any:
    value = given.value
    if value is None or (is_whole(value) and value >= 0):
        return None if value is None else int(value)
    if isinstance(value, list | tuple) and all(is_whole(line) and line > 0 for line in value):
        return tuple(int(line) for line in value)
    given.faults.add(
        f"{given.place} must be how many lines come first, or a list of lines such as [2]; found {value!r}."
    )
    return None


def _setting(name: str, kind: ValueKind, doc: str, default: str = "found") -> Setting:
    return Setting(name, kind, doc, default, keyword=None)


LAYOUT_SETTINGS = (
    _setting("encoding", ValueKind(_read_encoding), 'of a text file, such as `"cp1252"`; a guess is told'),
    _setting("delimiter", ValueKind(_read_delimiter), "of a text file"),
    _setting("quote", _sign_of('"', "'", ""), 'around texts of a text file; `""`: nothing'),
    _setting(
        "comment", ValueKind(_read_comment), 'what lines of a text file begin with that are left out; `""`: nothing'
    ),
    _setting("header", SWITCH, "of a text file or sheet: whether there is a line of names"),
    _setting(
        "header_row",
        whole(1, word="the number of a line", fault="{place} = {value} is no line; the first is 1."),
        "the line that has the names, the first being 1; what is above is left out",
    ),
    _setting(
        "skip_rows",
        ValueKind(_read_rows),
        "how many lines come before the table, or a list of lines to leave out: `[2, 118]`",
    ),
    _setting("decimal", _sign_of(".", ","), "the sign before decimals in a text file"),
    _setting("thousands", _sign_of(*GROUPING), 'the sign between thousands in a text file; `""`: none'),
    Setting(
        "sheet",
        text("the name of a sheet"),
        "of a workbook",
        "the only one with a table",
        public=Public.HIDDEN,
        keyword=None,
    ),
    _setting(
        "value_labels",
        SWITCH,
        "of SPSS, Stata and SAS: `false` keeps codes in place of their labels",
        "`true` where every code has one",
    ),
)
