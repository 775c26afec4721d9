# SPDX-License-Identifier: Apache-2.0
"""docs/cli.md, made from the program itself: python -m anonfit.cli.reference > docs/cli.md."""

from __future__ import annotations

import sys
from typing import Any

import typer

from anonfit.cli.main import app

__all__ = ["reference"]


def _plain(text: str | None) -> str:
    """A help text on one line."""
    return " ".join((text or "").split()).replace("|", "\\|")


def _options(command: Any) -> list[str]:
    lines = ["| option | meaning | default |", "|---|---|---|"]
    for parameter in command.params:
        if parameter.param_type_name != "option" or parameter.name == "help" or parameter.hidden:
            continue
        value = "" if parameter.is_flag else f" {parameter.opts[0].lstrip('-').replace('-', '_').upper()}"
        default = (
            parameter.default if parameter.default not in (None, False, "") and not callable(parameter.default) else ""
        )
        lines.append(
            f"| `{parameter.opts[0]}{value}` | {_plain(parameter.help)} | {f'`{default}`' if default else ''} |"
        )
    return lines


def _command(name: str, command: Any) -> list[str]:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    words = " ".join(
        f"{argument.name.upper()}" if argument.required else f"[{argument.name.upper()}]" for argument in arguments
    )
    lines = [f"## `anonfit {name}{' ' + words if words else ''}`", "", _plain(command.help), ""]
    if arguments:
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [f"| `{argument.name.upper()}` | {_plain(argument.help)} |" for argument in arguments] + [""]
    return [*lines, *_options(command), "", _plain(command.epilog), ""]


def reference() -> str:
    """The text of docs/cli.md."""
    group: Any = typer.main.get_command(app)
    lines = [
        "# Commands",
        "",
        "Made from the program by `python -m anonfit.cli.reference`.",
        "",
        _plain(group.help),
        "",
    ]
    lines += [
        "Exit status: 0 done; 1 the demand was not met (audit failed, infeasible); 2 the request was wrong "
        "(spec, file, value); 130 interrupted (Ctrl-C); 143 asked to end (SIGTERM)."
    ]
    lines += ["`--json` prints one object on standard output; progress, notices and errors go to standard error.", ""]
    for name, command in group.commands.items():
        lines += _command(name, command)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
