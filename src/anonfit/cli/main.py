# SPDX-License-Identifier: Apache-2.0
"""The command line as a program: its verbs, and one text and one exit status for every end that it may come to. Heavy
parts are loaded by the verb that needs them.
"""

from __future__ import annotations

import gc
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from typer import Argument, Option

from anonfit.cli.auditing import audit
from anonfit.cli.demonstration import demo
from anonfit.cli.evaluating import compare, evaluate
from anonfit.cli.options import Json, verb
from anonfit.cli.releasing import apply, run, tree
from anonfit.cli.showing import check_addresses, outlive_readers, show_failure, show_unwritten, show_usage
from anonfit.cli.specs import init, workload
from anonfit.cli.taxonomies import app as taxonomies
from anonfit.errors import RequestError
from anonfit.runtime.process import REQUESTS
from anonfit.web.serving import web

app = typer.Typer(
    name="anonfit",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Anonymous releases of tables about people that stay useful for a stated purpose.",
    epilog="Start with anonfit demo. Exit status: 0 done, 1 the demand was not met, 2 the request was wrong.",
)


def reproduce(
    names: Annotated[
        list[str] | None, Argument(help="Experiments, such as R16, or all; without a name they are listed.")
    ] = None,
    data: Annotated[
        Path | None,
        Option(help="The data folder; by default what ANONFIT_DATA says, or ../shared/data beside the project."),
    ] = None,
    out: Annotated[Path, Option(help="Folder for figures, tables and verdicts, and for finished parts.")] = Path(
        "anonfit-reproduction"
    ),
    quick: Annotated[bool, Option("--quick", help="Fewer rows and trials: all in three minutes.")] = False,
    fetched: Annotated[
        bool, Option("--fetch", help="Fetch files of the UCI archive that the data folder lacks.")
    ] = False,
    archive: Annotated[str | None, Option(help="Another address of the UCI archive.")] = None,
    docs: Annotated[Path | None, Option(help="Also write reproduction.md and its figures into this folder.")] = None,
    as_json: Json = False,
) -> None:
    """Repeat the papers' experiments and say which claims hold.

    A run that was stopped goes on where it was.
    """
    from importlib.metadata import entry_points

    known = entry_points(group="anonfit.commands", name="reproduce")
    if not known:
        raise RequestError(
            "the papers' experiments are a package of their own: install it with pip install ./papers in a checkout."
        )
    next(iter(known)).load()(
        names or (), data=data, out=out, quick=quick, fetched=fetched, archive=archive, docs=docs, as_json=as_json
    )


EXAMPLES: dict[Callable[..., None], str] = {
    demo: "Example: anonfit demo --rows 50000 --out trial",
    init: "Example: anonfit init patients.csv --out spec.toml",
    run: "Example: anonfit run spec.toml --out release --set privacy.k=20",
    apply: "Example: anonfit apply release new_patients.csv --out release-2",
    audit: "Examples: anonfit audit release --source patients.csv, "
    "anonfit audit other_tool.csv --quasi-identifiers age,sex,zip --sensitive diagnosis --k 5",
    evaluate: "Example: anonfit evaluate spec.toml --k 5,25,100 --learners tree,logistic-regression --out trial",
    tree: "Examples: anonfit tree spec.toml --out tree --set output.populations=majority, "
    "anonfit tree --from tree --predict new_patients.csv --out predicted.csv",
    workload: "Example: anonfit workload queries.sql --spec spec.toml --dialect postgres --out learned.toml",
    reproduce: "Example: anonfit reproduce R16 R18 --quick",
    compare: "Example: anonfit compare release-k10 release-k50 --out compare.html",
}
"""The verbs, in the order of the help, each with what its help ends with."""
app.add_typer(taxonomies, name="taxonomy")
for function, example in EXAMPLES.items():
    verb(app, function, epilog=example)
app.command(epilog="Example: anonfit web patients --port 8420")(web)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"anonfit {version('anonfit')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    from anonfit.tables.sources import refuse_shown_password

    check_addresses()
    refuse_shown_password(sys.argv[1:])


def _end(number: int, _frame: FrameType | None) -> None:
    """End as after an interrupt: rows that were put aside are removed."""
    for request in REQUESTS:
        signal.signal(request, signal.SIG_IGN)
    with suppress(OSError):  # the terminal may be what went
        sys.stderr.write("terminated; a release that was not finished is not published.\n")
    sys.exit(128 + number)


def main() -> None:
    """Run the command line; every error becomes one text and an exit status."""
    outlive_readers()
    # Loading makes 100,000 objects that stay: looking for garbage among them again and again is a tenth of a start.
    gc.set_threshold(50_000, 20, 20)
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
