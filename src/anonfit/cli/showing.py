# SPDX-License-Identifier: Apache-2.0
"""What people see: results on standard output, as text or as one JSON object; progress, notices and errors on standard
error."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from anonfit.errors import AnonfitError, RequestError, SpecError, printable
from anonfit.runtime.process import Stage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def console() -> Console:
    """Where progress, notices and errors are shown."""
    return _screen(stderr=True)


def notice(text: str) -> None:
    """Something to know beside the results, unless quiet is asked for; in a log, a line of it."""
    from rich.text import Text

    if _telling.log == "json":
        _log(event="notice", text=text, seconds=perf_counter())
    elif not _telling.quiet:
        console().print(Text(text, style="yellow"), soft_wrap=True)


def results() -> Console:
    """Where what was asked for is shown."""
    return _screen(stderr=False)


def say(*parts: str | tuple[str, str]) -> None:
    """A line of results, in one piece however narrow the terminal is; a part may have a style."""
    from rich.text import Text

    results().print(Text.assemble(*parts), soft_wrap=True)


def _screen(*, stderr: bool) -> Console:
    """A console for people. Names and texts of others are shown, never obeyed: what a terminal would take for an order
    is written out.
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Screen(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    if not stderr and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error does with signs that it cannot show
    return Screen(stderr=stderr, highlight=False)


class _Unread(io.FileIO):
    """A stream whose reader may go: what nobody reads is lost, and the work goes on. So is what cannot be written."""

    lost: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            pass
        except OSError as error:  # a full disk
            self.lost = error
        return memoryview(data).nbytes


def outlive_readers() -> None:
    """Let a pipe that nobody reads any more (`anonfit run … | true`), or a stream that is closed from the start, change
    neither what is done nor the exit status.
    """
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        elif stream is getattr(sys, f"__{name}__") and not stream.isatty():
            raw = io.BufferedWriter(_Unread(stream.fileno(), "w", closefd=False))
            lines = name == "stderr"
            setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=lines))


@dataclass(slots=True)
class _Telling:
    """What is told of the verb that is at work, beside its results."""

    verb: str = ""
    verbose: bool = False
    quiet: bool = False
    log: str = "text"


_telling = _Telling()


def is_log() -> bool:
    """Whether standard error is a log for programs."""
    return _telling.log == "json"


def is_quiet() -> bool:
    """Whether results and errors alone are asked for."""
    return _telling.quiet


@contextmanager
def telling(verb: str, *, verbose: bool, quiet: bool, log: str) -> Iterator[None]:
    """Say how much is told while a verb works; a log also says how it ended."""
    global _telling
    if verbose and quiet:
        raise RequestError("--verbose and --quiet ask for opposite things; leave one of them out.")
    before, _telling = _telling, _Telling(verb, verbose, quiet, log)
    clock = perf_counter()
    try:
        yield
    except BaseException as error:
        status = 130 if isinstance(error, KeyboardInterrupt) else 2
        names = ("exit_code", "code", "exit_status")
        status = next((getattr(error, name) for name in names if hasattr(error, name)), status)
        kind = None if hasattr(error, "exit_code") else type(error).__name__
        _log(event="end", status=status, error=kind, seconds=clock)
        raise
    else:
        _log(event="end", status=0, error=None, seconds=clock)
    finally:
        _telling = before


def _log(*, seconds: float, **entry: Any) -> None:
    """A line of the log: what happened, when, in which verb, and how long it took since the clock was at `seconds`."""
    if _telling.log == "json":
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "verb": _telling.verb, **entry, "seconds": round(perf_counter() - seconds, 3)}
        sys.stderr.write(json.dumps(line) + "\n")


@contextmanager
def _timed() -> Iterator[Stage]:
    """Tell every stage once it is over, with the time that it took."""
    at_work: list[tuple[str, float]] = []

    def over() -> None:
        for name, began in at_work:
            _log(event="stage", stage=name, seconds=began)
            if _telling.verbose:
                console().print(f"{name}: {perf_counter() - began:.2f} s", markup=False, soft_wrap=True)
        at_work.clear()

    def stage(name: str) -> None:
        over()
        at_work.append((name, perf_counter()))

    try:
        yield stage
    finally:
        over()


@contextmanager
def stages(*, as_json: bool) -> Iterator[Stage]:
    """Show the stage that long work is in: a line that changes on a terminal, a line each elsewhere, nothing with
    JSON or where quiet is asked for; and with the time that it took where that is asked for.
    """
    if _telling.verbose or _telling.log == "json":
        with _timed() as stage:
            yield stage
        return
    if as_json or _telling.quiet:
        yield lambda _: None
        return
    screen = console()
    if not screen.is_terminal:
        yield lambda name: screen.print(f"{name} …")
        return
    with screen.status("Starting …") as status:
        yield lambda name: status.update(f"{name} …")


def print_json(content: Mapping[str, Any]) -> None:
    """The one object on standard output, in ASCII: whatever names hold, any terminal and encoding can take it."""
    sys.stdout.write(json.dumps(content, default=str) + "\n")


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, numbers: Sequence[int] = ()) -> Table:
    """A plain table; texts are shown as they are, not as markup."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for index, name in enumerate(head):
        grid.add_column(Text(printable(name)), justify="right" if index in numbers else "left")
    for row in rows:
        grid.add_row(*(Text(printable(str(entry))) for entry in row))
    return grid


LEAST_ADDRESSES = 4 << 30
"""Libraries reserve far more addresses than they use, and end the process where they cannot."""
NO_MEMORY = "there is too little memory for this table; give more, or take the engine duckdb"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_addresses() -> None:
    """Refuse a process that may address too little memory, before a library ends it without a word."""
    try:
        import resource
    except ModuleNotFoundError:  # a system without such limits
        return
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most != resource.RLIM_INFINITY and most < LEAST_ADDRESSES:
        raise RequestError(
            f"this process may address {most / 2**30:.1f} GiB of memory only (ulimit -v), which its libraries need "
            f"before any table; allow {LEAST_ADDRESSES >> 30} GiB, and bound what is used by --engine duckdb --memory."
        )


def _kind_and_text(error: BaseException) -> tuple[str, str]:
    """The kind of an error and its text; of an error nobody foresaw not its own text, which may hold values."""
    if isinstance(error, AnonfitError):
        return type(error).__name__, str(error)
    if os.environ.get("ANONFIT_DEBUG"):
        raise error
    if isinstance(error, MemoryError):
        return "MemoryError", f"{NO_MEMORY}; nothing was published."
    if isinstance(error, OSError) and error.strerror:
        place = "the system refused" if error.filename is None else f"{error.filename} cannot be used"
        hint = "free some space, or name another place" if error.errno in FULL else "look at the place and its rights"
        return "OSError", f"{place}: {error.strerror}; {hint}."
    calls = traceback.extract_tb(error.__traceback__)
    place = f"{Path(calls[-1].filename).name}:{calls[-1].lineno}" if calls else "an unknown place"
    return "InternalError", (
        f"something went wrong inside anonfit ({type(error).__name__} in {place}); set ANONFIT_DEBUG=1 "
        "to see all of it, and report it."
    )


def show_usage(error: Any, *, as_json: bool) -> int:
    """Say what is wrong with the words of a command."""
    text = error.format_message()
    if as_json:
        print_json({"error": {"kind": "UsageError", "message": text, "faults": [text]}})
    else:
        shown = io.StringIO()
        error.show(file=shown)
        sys.stderr.write(printable(shown.getvalue()))
    return int(error.exit_code)


def error_facts(error: BaseException) -> dict[str, Any]:
    """What went wrong, as every door writes it in JSON."""
    kind, text = _kind_and_text(error)
    return {"kind": kind, "message": text, "faults": list(error.faults) if isinstance(error, SpecError) else [text]}


def show_failure(error: BaseException, *, as_json: bool) -> int:
    """Say what went wrong and give the exit status."""
    facts = error_facts(error)
    status = error.exit_status if isinstance(error, AnonfitError) else 2
    if as_json:
        print_json({"error": facts})
        return status
    from rich.text import Text

    screen, faults = console(), facts["faults"]
    if len(faults) > 1:
        screen.print(Text(f"{len(faults)} faults:", style="bold red"))
    begin = Text("error: " if len(faults) == 1 else "  - ", style="bold red")
    for fault in faults:
        screen.print(begin + Text(fault, style="not bold"), soft_wrap=True)
    return status


def show_unwritten() -> int:
    """Say that results could not be written, where that is so, and give the exit status."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if not isinstance(raw, _Unread) or raw.lost is None:
        return 0
    sys.stderr.write(
        f"error: standard output could not be written: {raw.lost.strerror}; what was published stays, only what was to "
        "be shown of it is lost.\n"
    )
    return 2
