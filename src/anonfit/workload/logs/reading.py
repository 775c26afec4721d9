# SPDX-License-Identifier: Apache-2.0
"""From log files to statements. A file is looked at in blocks, so that neither a long file nor a long statement has to
fit into memory; nothing is parsed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from anonfit.errors import RequestError
from anonfit.runtime.strict_json import refuse_endless

__all__ = ["LONGEST", "Quoting", "Statement", "read_statements"]

LONGEST = 100_000
"""Characters of a statement; longer ones are counted and left out."""
BLOCK = 1 << 20
MENDED = 100
"""So many times the next statement is looked for within a quote that does not seem to close."""
BY_LINES = 0.9
"""A file in which so many lines begin as statements do has one on each line."""

STATEMENT = (
    r"\s*+\(*+\s*+(?:(?:begin|commit|rollback)\b|(?:select|with|insert|update|delete|create|drop|alter|merge|explain|set|use|"
    r"show|describe|truncate|grant|revoke|call|copy|values|analyze|vacuum|declare|fetch|close|from|table|replace|load)"
    r"\b\s*+\S)"
)
BEGIN = re.compile(STATEMENT, re.IGNORECASE)
NEXT = re.compile(rf";[ \t]*\n(?={STATEMENT})", re.IGNORECASE)
"""Where a statement begins, whatever is quoted."""
GO = r"(?m:^[ \t]*+go[ \t]*+(?=\n))"
"""A line that ends what stands before it, in dialects that have such lines."""
LONGEST_MARK = 100
HALVES = re.compile(r"(?:[-/*\\]|\$[A-Za-z_]*)+\Z")
"""What may be the first half of a mark."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as it is written; without a text where it is too long or a quote of it is never closed."""

    text: str | None
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Quoting:
    """What opens a quote and closes it again, and whether a backslash takes the meaning from the sign after it; what
    makes the rest of a line a comment, and whether a line that says GO ends a statement.
    """

    closing: dict[str, str]
    backslash: bool
    remarks: tuple[str, ...] = ("--",)
    has_go: bool = False

    @property
    def opening(self) -> re.Pattern[str]:
        """What ends plain text: a quote, a comment, or the end of a statement."""
        quotes = "".join(re.escape(quote) for quote in self.closing)
        go = rf"|{GO}" if self.has_go else ""
        return re.compile(rf"[{quotes};]|{self.remark}|/\*|\$[A-Za-z_]*\${go}", re.IGNORECASE)

    @property
    def remark(self) -> str:
        """The pattern of what makes the rest of a line a comment."""
        return "|".join(re.escape(mark) for mark in self.remarks)

    def end_of(self, opened: str) -> re.Pattern[str]:
        """What ends a quote or comment."""
        if opened in self.remarks:
            return re.compile(r"\n")
        if opened == "/*":
            return re.compile(r"\*/")
        close = re.escape(self.closing.get(opened, opened))
        return re.compile(rf"\\[\s\S]|{close}" if self.backslash and opened in self.closing else close)


def read_statements(paths: Sequence[Path], quoting: Quoting) -> Iterator[Statement]:
    """The statements of files, in their order.

    Args:
        paths: Text files. A statement ends with a semicolon, or with its line where every line is one.
        quoting: How texts and names are quoted.
    """
    for path in paths:
        refuse_endless(path)
        try:
            with path.open(encoding="utf-8-sig", errors="replace", newline=None) as file:
                yield from _Splitter(path.name, quoting).statements(file)
        except FileNotFoundError:
            raise RequestError(f"{path}: there is no such query log.") from None
        except OSError as error:
            raise RequestError(f"{path} cannot be read as a query log: {type(error).__name__}.") from None


class _Splitter:
    """Divides one file."""

    def __init__(self, name: str, quoting: Quoting) -> None:
        self.name = name
        self.quoting = quoting
        self.opening = quoting.opening
        self.mended = 0

    def statements(self, file: TextIO) -> Iterator[Statement]:
        """The statements of an open file."""
        first = file.read(BLOCK)
        if "\0" in first:
            raise RequestError(f"{self.name} is no text file; a query log holds statements of SQL.")
        yield from self.by_lines(first, file) if _is_by_lines(first, self.quoting) else self.by_semicolons(first, file)

    def by_lines(self, first: str, file: TextIO) -> Iterator[Statement]:
        """Every line is a statement, or several; what is not closed ends with its line."""
        number, rest, too_long = 1, "", False  # too long: the rest of a line, which is left out
        block = first
        while block:
            *lines, rest = (rest + block).split("\n")
            for line in lines:
                yield from self.of_line(None if too_long else line, number)
                number, too_long = number + 1, False
            if len(rest) > LONGEST:
                rest, too_long = "", True
            block = file.read(BLOCK)
        yield from self.of_line(None if too_long else rest, number)

    def of_line(self, line: str | None, number: int) -> Iterator[Statement]:
        """The statements of one line, None if it is too long."""
        if line is None or len(line) > LONGEST:
            yield Statement(None, self.name, number)
            return
        start = 0
        while start < len(line):
            end, after, opened = self.end_of_statement(line, start, "")
            if self.is_broken(opened):
                yield Statement(None, self.name, number)
                return
            yield from self.statement(line[start:end], number)
            start = after

    def by_semicolons(self, first: str, file: TextIO) -> Iterator[Statement]:
        """Statements go on over lines until a semicolon."""
        buffer, at, line, block = first, 0, 1, first
        while buffer:
            end, after, opened = self.end_of_statement(buffer, at, "")
            is_whole = end < len(buffer)
            if not is_whole and len(buffer) - at <= LONGEST and block:
                block = file.read(BLOCK)
                buffer, at = buffer[at:] + block, 0
                continue
            is_lost = self.is_broken(opened) or end - at > LONGEST
            # A quote that was never closed takes the next statement for a text.
            found = NEXT.search(buffer, at) if is_lost and self.mended < MENDED else None
            if found is not None:
                self.mended += 1
                end, after = found.start(), found.start() + 1
                yield self.unreadable(buffer[at:end], line)
            elif is_lost:
                yield self.unreadable(buffer[at:end], line)
                if not is_whole:
                    buffer, block, passed = self.skipped(buffer[at:], file)
                    at, line = 0, line + passed
                    buffer = buffer or (file.read(BLOCK) if block else "")
                    continue
            else:
                yield from self.statement(buffer[at:end], line)
            line += buffer.count("\n", at, after)
            at = after
            if at >= len(buffer):
                buffer = block = file.read(BLOCK)
                at = 0

    def is_broken(self, opened: str) -> bool:
        """Whether a text ends within a quote or comment that should have been closed."""
        return bool(opened) and opened not in self.quoting.remarks

    def skipped(self, buffer: str, file: TextIO) -> tuple[str, str, int]:
        """What comes after a statement that is too long, the last block read, and the lines that were passed."""
        opened, passed = "", 0
        while True:
            place = _safe_end(buffer)
            end, after, opened = self.end_of_statement(buffer[:place], 0, opened)
            passed += buffer.count("\n", 0, after)
            if end < place:
                return buffer[after:], buffer, passed
            block = file.read(BLOCK)
            if not block:
                return "", "", passed
            buffer = buffer[place:] + block

    def end_of_statement(self, text: str, start: int, opened: str) -> tuple[int, int, str]:
        """Where the statement ends that goes on at a place, where the next one begins, and what is open there: the
        length of the text if nothing ends it.
        """
        at = start
        while True:
            if opened:
                closing = self.quoting.end_of(opened)
                found = closing.search(text, at)
                while found is not None and found.group().startswith("\\"):
                    found = closing.search(text, found.end())
                if found is None:
                    return len(text), len(text), opened
                at, opened = found.end(), ""
            found = self.opening.search(text, at)
            if found is None:
                return len(text), len(text), ""
            opened, at = found.group(), found.end()
            if opened == ";" or opened.strip().lower() == "go":
                return found.start(), at, ""

    def unreadable(self, text: str, line: int) -> Statement:
        """A statement that is not read."""
        return Statement(None, self.name, line + text.count("\n", 0, _blank(text)))

    def statement(self, text: str, line: int) -> Iterator[Statement]:
        """A statement, if there is anything to read; lines are counted from where it begins."""
        begin = _blank(text)
        if len(text) - begin > LONGEST:
            yield self.unreadable(text, line)
        elif begin < len(text):
            yield Statement(text.strip(), self.name, line + text.count("\n", 0, begin))


def _blank(text: str) -> int:
    """The signs before a statement that say nothing."""
    return len(text) - len(text.lstrip())


def _safe_end(text: str) -> int:
    """Where a text can be divided: not within what begins or ends a quote or comment."""
    found = HALVES.search(text[-LONGEST_MARK:])
    return len(text) if found is None else len(text) - (len(text[-LONGEST_MARK:]) - found.start())


def _is_by_lines(text: str, quoting: Quoting) -> bool:
    """Whether nearly every line begins a statement."""
    lines = [line.strip() for line in text[:LONGEST].split("\n")]
    lines = [line for line in lines if line and not line.startswith(quoting.remarks)]
    begun = sum(BEGIN.match(line) is not None for line in lines)
    return bool(lines) and begun >= BY_LINES * len(lines)
