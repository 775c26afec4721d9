# SPDX-License-Identifier: Apache-2.0
"""Texts and templates: every word of the page stands in one file of a language, and every value is escaped."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from anonfit.errors import printable


@cache
def texts(language: str = "en") -> Mapping[str, str]:
    """The texts of a language, by their dotted names. Another language is another file beside this one."""
    held = tomllib.loads((files("anonfit.web") / "texts" / f"{language}.toml").read_text(encoding="utf-8"))
    return {f"{section}.{name}": text for section, named in held.items() for name, text in named.items()}


def say(name: str, /, **values: Any) -> str:
    """A text by its name, with values put in; one may be told in words of its own, by the name with `_one`."""
    singular = f"{name}_one"
    return texts()[singular if values.get("number") == 1 and singular in texts() else name].format(**values)


def _shown(value: Any) -> Any:
    """What stands in a page: signs that would be obeyed are written out, and nothing is shown as nothing."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value)


def percent(value: Any, digits: int = 1) -> str:
    """A share for people; a text, where a share may not be told, as it is."""
    if isinstance(value, Mapping):
        value = value.get("share", value.get("value"))
    return f"{100 * value:.{digits}f} %" if isinstance(value, int | float) else str(value)


def number(value: Any) -> str:
    """A number for people."""
    if isinstance(value, Mapping):
        value = value.get("value", value.get("persons"))
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def size(value: float) -> str:
    """A number of bytes for people."""
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


@cache
def environment() -> Environment:
    """Where templates are found and how they are filled."""
    made = Environment(
        loader=PackageLoader("anonfit.web"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"percent": percent, "number": number, "size": size}
    made.globals |= {"say": say, "words": texts}
    return made


def page(name: str, **values: Any) -> str:
    """A page of a template."""
    return environment().get_template(name).render(**values)


def refusal(path: str, kind: str, words: str) -> tuple[bytes, bytes]:
    """A refusal: JSON for the REST door, a page for people."""
    if path.startswith("/api/"):
        fault = {"error": {"kind": kind, "message": words, "faults": [words]}}
        return b"application/json", json.dumps(fault).encode()
    return b"text/html; charset=utf-8", page("refused.html", words=words).encode()
