# SPDX-License-Identifier: Apache-2.0
"""From log files to parsed statements. A file is looked at in blocks, so that neither a long file nor a long statement
has to fit into memory. Statements are parsed by a process of their own, which is stopped if one takes too long: it is
handed texts and gives plain data back, line by line, and it can do nothing else with them.
"""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO, Any, TextIO

from anonfit.errors import MissingPackage, RequestError, did_you_mean
from anonfit.runtime.strict_json import refuse_endless

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
    """The statements of text files, in order. One ends with a semicolon, or with its line where every line is one."""
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
        file.seek(0)
        if "\0" in first:
            raise RequestError(f"{self.name} is no text file; a query log holds statements of SQL.")
        yield from self.by_lines(file) if _is_by_lines(first, self.quoting) else self.by_semicolons(file)

    def by_lines(self, file: TextIO) -> Iterator[Statement]:
        """Every line is a statement, or several; what is not closed ends with its line."""
        number = 0
        while line := file.readline(LONGEST + 2):
            number += 1
            rest = line
            while rest and not rest.endswith("\n"):  # of a line that is too long
                rest = file.readline(BLOCK)
            yield from self.of_line(line.removesuffix("\n"), number)

    def of_line(self, line: str, number: int) -> Iterator[Statement]:
        """The statements of one line."""
        if len(line) > LONGEST:
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

    def by_semicolons(self, file: TextIO) -> Iterator[Statement]:
        """Statements go on over lines until a semicolon."""
        buffer = block = file.read(BLOCK)
        at, line = 0, 1
        while buffer:
            end, after, opened = self.end_of_statement(buffer, at, "")
            is_whole = end < len(buffer)
            if not is_whole and len(buffer) - at <= LONGEST and block:
                block = file.read(BLOCK)
                buffer, at = buffer[at:] + block, 0
                continue
            is_lost = self.is_broken(opened) or end - at > LONGEST
            # A quote that was never closed takes the next statement for a text.
            next_mark = NEXT.search(buffer, at) if is_lost and self.mended < MENDED else None
            if next_mark is not None:
                self.mended += 1
                end, after = next_mark.start(), next_mark.start() + 1
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
                close = closing.search(text, at)
                while close is not None and close.group().startswith("\\"):
                    close = closing.search(text, close.end())
                if close is None:
                    return len(text), len(text), opened
                at, opened = close.end(), ""
            close = self.opening.search(text, at)
            if close is None:
                return len(text), len(text), ""
            opened, at = close.group(), close.end()
            if opened == ";" or opened.strip().lower() == "go":
                return close.start(), at, ""

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
    half = HALVES.search(text[-LONGEST_MARK:])
    return len(text) if half is None else len(text) - (len(text[-LONGEST_MARK:]) - half.start())


def _is_by_lines(text: str, quoting: Quoting) -> bool:
    """Whether nearly every line begins a statement."""
    lines = [line.strip() for line in text[:LONGEST].split("\n")]
    lines = [line for line in lines if line and not line.startswith(quoting.remarks)]
    begun = sum(BEGIN.match(line) is not None for line in lines)
    return bool(lines) and begun >= BY_LINES * len(lines)


SECONDS = 5.0
"""For one statement."""
ALL_SECONDS = 300.0
"""For all of them together; a log that people wrote needs a tenth of it."""
START_SECONDS = 60.0
"""For the process to start."""
RECURSION = 8_000
"""Calls within each other that a statement of the deepest nesting needs."""
PROGRAM = "from anonfit.workload.logs.reading import answer_lines; answer_lines()"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a statement uses, as `syntax.read_statement` says it; or why that is not known."""

    content: dict[str, Any] | None = None
    fault: str = ""


def require_dialect(name: str | None) -> None:
    """Refuse a dialect that is not known."""
    try:
        from sqlglot import Dialect
        from sqlglot.dialects import DIALECTS
    except ModuleNotFoundError:
        raise MissingPackage("sqlglot", "sql", "A query log") from None
    if name is not None and not Dialect.get(name):
        known = sorted(dialect.lower() for dialect in DIALECTS)
        raise RequestError(f"there is no dialect '{name}' of SQL; {did_you_mean(name, known)}")


def dialect_quoting(name: str | None) -> tuple[Quoting, str]:
    """How a dialect quotes, and which of the quotes hold texts."""
    from sqlglot import Dialect

    kind = Dialect.get_or_raise(name)
    tokenizer = kind.tokenizer_class
    names = dict((quote, quote) if isinstance(quote, str) else quote for quote in tokenizer.IDENTIFIERS)
    # What may be both is a name for sqlglot.
    texts = {quote for quote in tokenizer.QUOTES if isinstance(quote, str) and len(quote) == 1 and quote not in names}
    remarks = tuple(mark for mark in tokenizer.COMMENTS if isinstance(mark, str))
    return Quoting(
        {quote: quote for quote in sorted(texts)} | dict(sorted(names.items())),
        "\\" in tokenizer.STRING_ESCAPES,
        remarks,
        has_go=isinstance(kind, Dialect.get_or_raise("tsql").__class__),
    ), "".join(sorted(texts))


def parse_statements(
    texts: Sequence[str], dialect: str | None, *, seconds: float = SECONDS, all_seconds: float = ALL_SECONDS
) -> Iterator[Parsed]:
    """What each statement uses, in their order; each may take so many seconds, and all of them together."""
    done, end = 0, monotonic() + all_seconds
    while done < len(texts):
        with closing(_Process(dialect, texts[done:])) as process:
            for parsed in process.answers(seconds):
                yield parsed
                done += 1
                if monotonic() >= end:
                    break
        if monotonic() >= end:
            yield from [Parsed(None, f"the statements before it took {all_seconds:g} seconds")] * (len(texts) - done)
            return
        if done < len(texts):  # the process was stopped, or stopped itself
            yield Parsed(None, f"it takes more than {seconds:g} seconds to parse")
            done += 1


class _Process:
    """A process that parses texts."""

    def __init__(self, dialect: str | None, texts: Sequence[str]) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self.process = subprocess.Popen(  # noqa: S603  its own interpreter with a fixed program
            # -P: the folder that it is called in, where logs may lie, holds no modules.
            [sys.executable, "-P", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
            encoding="utf-8",
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input: IO[str] = self.process.stdin
        self.output: IO[str] = self.process.stdout
        self.lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.dialect, self.texts = dialect, texts
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._listen, self._write)]
        for thread in self.threads:
            thread.start()

    def answers(self, seconds: float) -> Iterator[Parsed]:
        """What is found of the texts, as far as the process comes."""
        if self._next(START_SECONDS) is None:
            raise RequestError("the process that parses statements did not start; is there enough memory?")
        for _ in self.texts:
            if (line := self._next(seconds)) is None:
                return
            yield Parsed(**json.loads(line))

    def _write(self) -> None:
        with suppress(OSError, ValueError):  # it may have been stopped
            for text in (self.dialect, *self.texts):
                self.input.write(json.dumps(text) + "\n")
            self.input.close()

    def _listen(self) -> None:
        with suppress(OSError, ValueError):
            for line in self.output:
                self.lines.put(line)
        self.lines.put("")

    def _next(self, seconds: float) -> str | None:
        try:
            return self.lines.get(timeout=seconds) or None
        except queue.Empty:
            return None

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join()
        for pipe in (self.input, self.output):
            with suppress(OSError):
                pipe.close()


def answer_lines() -> None:
    """What the process does: a line with the dialect, then a line per statement, each answered by a line."""
    import logging

    from sqlglot.errors import SqlglotError

    from anonfit.workload.logs.syntax import read_statement

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    sys.setrecursionlimit(RECURSION)
    dialect = json.loads(sys.stdin.readline())
    _answer({"ready": True})
    for line in sys.stdin:
        try:
            _answer({"content": read_statement(json.loads(line), dialect)})
        except SqlglotError:
            _answer({"fault": "it is not SQL of this dialect"})
        except RecursionError:
            _answer({"fault": "it is nested too deeply"})
        except Exception as error:  # whatever a statement does to the parser, the others are read
            _answer({"fault": f"it cannot be read ({type(error).__name__})"})


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
