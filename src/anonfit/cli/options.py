# SPDX-License-Identifier: Apache-2.0
"""What all verbs of the command line have in common: options on what is shown while they work, and words of options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, Literal

import typer

from anonfit.cli.showing import told

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Dry = Annotated[
    bool, typer.Option("--dry-run", help="Make and audit all of it in a private place, say what it is, keep nothing.")
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace a release that is already there.")]
VERBOSE = Annotated[bool, typer.Option("--verbose", help="Show every stage and how long it took.")]
QUIET = Annotated[bool, typer.Option("--quiet", help="Show results and errors only.")]
LOG = Annotated[
    Literal["text", "json"],
    typer.Option("--log", help="json: every stage as a line of JSON on standard error, with times."),
]
COMMON: dict[str, tuple[Any, Any]] = {"verbose": (VERBOSE, False), "quiet": (QUIET, False), "log": (LOG, "text")}


def verb(app: typer.Typer, **words: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a verb of the command line, with the options that all of them have."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(**options: Any) -> None:
            shown = {name: options.pop(name) for name in COMMON}
            with told(function.__name__, **shown):
                function(**options)

        more = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in COMMON.items()
        ]
        own = signature(function, eval_str=True)
        run.__signature__ = own.replace(parameters=[*own.parameters.values(), *more])  # type: ignore[attr-defined]
        run.__annotations__ = {name: each.annotation for name, each in own.parameters.items()}
        run.__annotations__ |= {name: kind for name, (kind, _) in COMMON.items()}
        app.command(**words)(run)
        return function

    return register


def names_of(text: str | None) -> list[str]:
    """Names that are written as a,b,c."""
    return [name.strip() for name in text.split(",") if name.strip()] if text else []


def whole_numbers(option: str, text: str | None) -> list[int]:
    """Whole numbers that are written as 5,10,50."""
    from anonfit.errors import RequestError

    try:
        return [int(word) for word in names_of(text)]
    except ValueError:
        raise RequestError(f"--{option} needs whole numbers such as 5,10,50; found '{text}'.") from None


def number_or_name(text: str | None) -> str | float | None:
    """A number, or a word that is none."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


@contextmanager
def trial(*, dry: bool, name: str) -> Iterator[Any]:
    """A private folder to publish into that is removed with all that is in it, where nothing is to be written."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    if not dry:
        yield None
        return
    with TemporaryDirectory(prefix="anonfit-dry-") as folder:
        yield Path(folder) / name
