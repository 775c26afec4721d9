# SPDX-License-Identifier: Apache-2.0
"""The command line as a program: one text and one exit status for every end that it may come to."""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import suppress
from types import FrameType

from anonfit.cli.commands import app
from anonfit.runtime.progress import REQUESTS


def _end(number: int, _frame: FrameType | None) -> None:
    """End as after an interrupt: rows that were put aside are removed."""
    for request in REQUESTS:
        signal.signal(request, signal.SIG_IGN)
    with suppress(OSError):  # the terminal may be what went
        sys.stderr.write("terminated; a release that was not finished is not published.\n")
    sys.exit(128 + number)


def main() -> None:
    """Run the command line; every error becomes one text and an exit status."""
    from anonfit.cli.showing import outlive_readers, show_failure, show_unwritten, show_usage

    outlive_readers()
    for request in REQUESTS:
        if signal.getsignal(request) is signal.SIG_DFL:  # nohup has its reason
            signal.signal(request, _end)
    logging.getLogger().addHandler(logging.NullHandler())  # what libraries log of an interrupt is nothing for people
    as_json = "--json" in sys.argv
    try:
        status = app(standalone_mode=False, prog_name="anonfit") or 0
    except SystemExit:
        raise
    except KeyboardInterrupt:
        status = 130
    except BaseException as error:  # a panic of polars is no Exception
        is_usage = hasattr(error, "format_message")  # typer's own errors have no public class
        status = (show_usage if is_usage else show_failure)(error, as_json=as_json)
    if status == 130:
        sys.stderr.write("interrupted; a release that was not finished is not published.\n")
    sys.exit(status or show_unwritten())
