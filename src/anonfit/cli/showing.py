# SPDX-License-Identifier: Apache-2.0
"""What people see: results on standard output, as text or as one JSON object; progress, notices and errors on standard
error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anonfit.errors import AnonfitError, SpecError
from anonfit.progress import Stage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["console", "print_json", "results", "show_failure", "stages", "table"]


def console() -> Console:
    """Where progress, notices and errors are shown."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def results() -> Console:
    """Where what was asked for is shown."""
    from rich.console import Console

    return Console(highlight=False)


@contextmanager
def stages(*, as_json: bool) -> Iterator[Stage]:
    """Show the stage that long work is in: a line that changes on a terminal, a line each elsewhere, nothing with
    JSON.
    """
    if as_json:
        yield lambda _: None
        return
    screen = console()
    if not screen.is_terminal:
        yield lambda name: screen.print(f"{name} …")
        return
    with screen.status("Starting …") as status:
        yield lambda name: status.update(f"{name} …")


def print_json(found: Mapping[str, Any]) -> None:
    """The one object on standard output."""
    sys.stdout.write(json.dumps(found, ensure_ascii=False, default=str) + "\n")


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, numbers: Sequence[int] = ()) -> Table:
    """A plain table; texts are shown as they are, not as markup."""
    from rich.table import Table
    from rich.text import Text

    found = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for index, name in enumerate(head):
        found.add_column(name, justify="right" if index in numbers else "left")
    for row in rows:
        found.add_row(*(Text(str(entry)) for entry in row))
    return found


def show_failure(error: Exception, *, as_json: bool) -> int:
    """Say what went wrong and give the exit status. Errors nobody foresaw are told without their text, which may hold
    values.
    """
    if isinstance(error, AnonfitError):
        text, status, kind = str(error), error.exit_status, type(error).__name__
    elif os.environ.get("ANONFIT_DEBUG"):
        raise error
    else:
        text = (
            f"something went wrong inside anonfit ({type(error).__name__} in {_place(error)}); set ANONFIT_DEBUG=1 "
            "to see all of it, and report it."
        )
        status, kind = 2, "InternalError"
    if as_json:
        faults = list(error.faults) if isinstance(error, SpecError) else [text]
        print_json({"error": {"kind": kind, "message": text, "faults": faults}})
        return status
    from rich.text import Text

    screen = console()
    lines = error.faults if isinstance(error, SpecError) else (text,)
    if len(lines) > 1:
        screen.print(Text(f"{len(lines)} faults:", style="bold red"))
    for line in lines:
        screen.print(
            Text("error: " if len(lines) == 1 else "  - ", style="bold red") + Text(line, style="not bold"),
            soft_wrap=True,
        )
    return status


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "an unknown place"  # noqa: PTH119
