# SPDX-License-Identifier: Apache-2.0
"""docs/cli.md and the tables of docs/spec.md, made from the program itself: python docs/reference.py docs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from anonfit.cli.main import app
from anonfit.cli.options import COMMON
from anonfit.spec.columns import COLUMN
from anonfit.spec.kinds import Section, Setting
from anonfit.spec.settings import ALL
from anonfit.spec.write import toml_value


def _plain(text: str | None) -> str:
    """A help text on one line."""
    return " ".join((text or "").split()).replace("|", "\\|")


def _options(command: Any) -> list[str]:
    lines = ["| option | meaning | default |", "|---|---|---|"]
    for parameter in command.params:
        if parameter.param_type_name != "option" or parameter.name in ("help", *COMMON) or parameter.hidden:
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


def _commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its whole name, those of groups inside of it, too."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def reference() -> str:
    """The text of docs/cli.md."""
    group: Any = typer.main.get_command(app)
    lines = [
        "# Commands",
        "",
        "Made from the program by `python docs/reference.py docs`.",
        "",
        _plain(group.help),
        "",
    ]
    lines += [
        "Exit status: 0 done; 1 the demand was not met (audit failed, infeasible); 2 the request was wrong "
        "(spec, file, value); 130 interrupted (Ctrl-C); 129 and 143 asked to end (SIGHUP, SIGTERM)."
    ]
    lines += ["`--json` prints one object on standard output; progress, notices and errors go to standard error."]
    lines += [
        "Every verb but `taxonomy` also takes `--verbose` (every stage and how long it took), `--quiet` "
        "(results and errors only) and "
        "`--log json` (on standard error a line of JSON for every stage, notice and the end: `time`, `verb`, `event`, "
        "`stage` or `text` or `status` and `error`, `seconds`). `anonfit --install-completion` teaches the shell to "
        "complete words; `python -m anonfit` is `anonfit`.",
        "",
    ]
    for name, command in _commands(group):
        lines += _command(name, command)
    return "\n".join(lines).rstrip() + "\n"


TABLE = re.compile(r"<!-- settings: ([\w.]+) -->\n.*?\n<!-- end -->", re.DOTALL)


def settings_reference(text: str) -> str:
    """The text of docs/spec.md with every table of settings made anew."""
    return TABLE.sub(lambda match: f"<!-- settings: {match[1]} -->\n{_settings(ALL[match[1]])}\n<!-- end -->", text)


def _settings(section: Section) -> str:
    """The table of a section's settings."""
    lines = ["| key | meaning | default |", "|---|---|---|"]
    lines += [f"| `{each.name}` | {each.meaning} | {_default(section, each)} |" for each in section.settings]
    if section is COLUMN:  # what is not declared of a column is found in the data
        lines = [line.rsplit("|", 2)[0] + "|" for line in lines]
    return "\n".join(lines)


def _default(section: Section, setting: Setting) -> str:
    if setting.default is not None:
        return setting.default
    default = section.default(setting.name)
    if default is None or default in ((), {}):
        return "none"
    value = setting.kind.write(default)
    return f"`{value}`" if isinstance(value, str) else f"`{toml_value(value)}`"


def main(folder: str) -> None:
    """Write both documents anew."""
    (Path(folder) / "cli.md").write_text(reference(), encoding="utf-8")
    spec = Path(folder) / "spec.md"
    spec.write_text(settings_reference(spec.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
