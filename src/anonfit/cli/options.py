# SPDX-License-Identifier: Apache-2.0
"""What all verbs of the command line have in common: options on what is shown while they work, and words of options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Option

from anonfit.cli.showing import telling
from anonfit.errors import RequestError
from anonfit.runtime.files import spill_folder

Json = Annotated[bool, Option("--json", help="Print one JSON object on standard output.")]
Dry = Annotated[
    bool, Option("--dry-run", help="Make and audit all of it in a private place, say what it is, keep nothing.")
]
Replace = Annotated[bool, Option("--replace", help="Replace what is already there.")]
Settings = Annotated[list[str] | None, Option("--set", help="A setting above the spec's, such as privacy.k=20.")]
To = Annotated[str | None, Option(help="A database's table that is also to hold the release: ADDRESS#TABLE.")]
COMMON: dict[str, tuple[Any, Any]] = {
    "verbose": (Annotated[bool, Option("--verbose", help="Show every stage and how long it took.")], False),
    "quiet": (Annotated[bool, Option("--quiet", help="Show results and errors only.")], False),
    "log": (
        Annotated[
            Literal["text", "json"],
            Option("--log", help="json: every stage as a line of JSON on standard error, with times."),
        ],
        "text",
    ),
}


def verb(app: typer.Typer, function: Callable[..., None], *, epilog: str) -> None:
    """Make a function a verb of the command line, with the options that all of them have."""

    @wraps(function)
    def run(**options: Any) -> None:
        with telling(function.__name__, **{name: options.pop(name) for name in COMMON}):
            function(**options)

    app.command(epilog=epilog)(with_options(run, COMMON))


def with_options(command: Callable[..., None], options: Mapping[str, tuple[Any, Any]]) -> Callable[..., None]:
    """A command that wraps a function, with options beside the function's own; each has a type and a default."""
    own = signature(command, eval_str=True)
    parameters = list(own.parameters.values())
    for name, (kind, default) in options.items():
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def names_of(text: str | None) -> list[str]:
    """Names that are written as a,b,c."""
    return [name.strip() for name in text.split(",") if name.strip()] if text else []


def whole_numbers(option: str, text: str | None) -> list[int]:
    """Whole numbers that are written as 5,10,50."""
    try:
        return [int(word) for word in names_of(text)]
    except ValueError:
        raise RequestError(f"--{option} needs whole numbers such as 5,10,50; found '{text}'.") from None


@contextmanager
def trial(*, dry: bool, name: str) -> Iterator[Path | None]:
    """A private folder to publish into that is removed with all that is in it, where nothing is to be written. What is
    left of one that was killed goes with the next.
    """
    if not dry:
        yield None
        return
    with spill_folder(None) as folder:
        yield folder / name
