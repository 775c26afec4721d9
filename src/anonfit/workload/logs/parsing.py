# SPDX-License-Identifier: Apache-2.0
"""Statements parsed by a process of their own, which is stopped if one takes too long. It is handed texts and gives
plain data back, line by line, and it can do nothing else with them.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import IO, Any

from anonfit.errors import MissingPackage, RequestError, did_you_mean
from anonfit.workload.logs.reading import Quoting

__all__ = ["Parsed", "dialect_quoting", "parse_statements", "require_dialect"]

SECONDS = 5.0
"""For one statement."""
ALL_SECONDS = 300.0
"""For all of them together; a log that people wrote needs a tenth of it."""
START_SECONDS = 60.0
"""For the process to start."""
RECURSION = 8_000
"""Calls within each other that a statement of the deepest nesting needs."""
PROGRAM = "from anonfit.workload.logs.parsing import answer_lines; answer_lines()"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a statement uses, as `syntax.read_statement` says it; or why that is not known."""

    content: dict[str, Any] | None
    fault: str = ""


def require_dialect(name: str | None) -> None:
    """Refuse a dialect that is not known."""
    try:
        from sqlglot import Dialect
        from sqlglot.dialects import DIALECTS
    except ModuleNotFoundError:
        raise MissingPackage("sqlglot", "sql", "A query log") from None
    if name is not None and not Dialect.get(name):
        known = sorted(one.lower() for one in DIALECTS)
        raise RequestError(f"there is no dialect '{name}' of SQL; {did_you_mean(name, known)}")


def dialect_quoting(name: str | None) -> tuple[Quoting, str]:
    """How a dialect quotes, and which of the quotes hold texts."""
    from sqlglot import Dialect

    kind = Dialect.get_or_raise(name)
    tokenizer = kind.tokenizer_class
    names = dict((one, one) if isinstance(one, str) else one for one in tokenizer.IDENTIFIERS)
    # What may be both is a name for sqlglot.
    texts = {quote for quote in tokenizer.QUOTES if isinstance(quote, str) and len(quote) == 1 and quote not in names}
    remarks = tuple(one for one in tokenizer.COMMENTS if isinstance(one, str))
    return Quoting(
        {quote: quote for quote in sorted(texts)} | dict(sorted(names.items())),
        "\\" in tokenizer.STRING_ESCAPES,
        remarks,
        has_go=isinstance(kind, Dialect.get_or_raise("tsql").__class__),
    ), "".join(sorted(texts))


def parse_statements(
    texts: Sequence[str], dialect: str | None, *, seconds: float = SECONDS, all_seconds: float = ALL_SECONDS
) -> Iterator[Parsed]:
    """Parse statements, one after the other.

    Args:
        texts: The statements.
        dialect: Of sqlglot.
        seconds: How long each may take.
        all_seconds: How long all may take.

    Returns:
        What each uses, in their order.
    """
    done, end = 0, monotonic() + all_seconds
    while done < len(texts):
        process = _Process(dialect)
        try:
            for found in process.answers(texts[done:], seconds):
                yield found
                done += 1
                if monotonic() >= end:
                    break
        finally:
            process.stop()
        if monotonic() >= end:
            yield from [Parsed(None, f"the statements before it took {all_seconds:g} seconds")] * (len(texts) - done)
            return
        if done < len(texts):  # the process was stopped, or stopped itself
            yield Parsed(None, f"it takes more than {seconds:g} seconds to parse")
            done += 1


class _Process:
    """A process that parses."""

    def __init__(self, dialect: str | None) -> None:
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
        self.threads = [threading.Thread(target=self._listen, daemon=True)]
        self.threads[0].start()
        self.dialect = dialect

    def answers(self, texts: Sequence[str], seconds: float) -> Iterator[Parsed]:
        """What is found of texts, as far as the process comes."""
        writer = threading.Thread(target=self._tell, args=(texts,), daemon=True)
        self.threads.append(writer)
        writer.start()
        if self._next(START_SECONDS) is None:
            raise RequestError("the process that parses statements did not start; is there enough memory?")
        for _ in texts:
            line = self._next(seconds)
            if line is None:
                return
            found = json.loads(line)
            yield Parsed(found.get("content"), found.get("fault", ""))

    def _tell(self, texts: Sequence[str]) -> None:
        with suppress(OSError, ValueError):  # it may have been stopped
            self.input.write(json.dumps(self.dialect) + "\n")
            for text in texts:
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

    def stop(self) -> None:
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


def _answer(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
