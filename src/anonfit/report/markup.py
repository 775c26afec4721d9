# SPDX-License-Identifier: Apache-2.0
"""The few forms of HTML that pages are made of, and figures as people read them. Every text is escaped here, and only
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from anonfit.errors import printable

LONG = 20


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


HEAD = Markup(
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta http-equiv="Content-Security-Policy" content="'
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    '">'
    '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
)
"""What every page begins with: nothing may be loaded or run, whatever a column is called."""


def escaped(text: Any, *, quote: bool = True) -> str:
    """A text that is shown in HTML or XML as it is; what must not stand there at all is written out."""
    return escape(printable(str(text)), quote=quote)


def element(tag: str, content: Any = "", **attributes: Any) -> Markup:
    """An element; a text in it is escaped, HTML is not. Attributes without a value are left out."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for name, value in attributes.items()
        if value not in (None, "")
    )
    inside = content if isinstance(content, Markup) else escaped(content, quote=False)
    return Markup(f"<{tag}{written}>{inside}</{tag}>")


def together(parts: Iterable[str]) -> Markup:
    """Several pieces of HTML as one."""
    return Markup("".join(parts))


@dataclass(frozen=True, slots=True)
class Head:
    """A column's head and kind: `number`, `picture`, `text` (maybe long), `name` (of a row), or nothing."""

    head: str
    kind: str = ""


def table(caption: str, heads: str, rows: Iterable[Sequence[Any]], kind: str = "", more: Iterable[Head] = ()) -> Markup:
    """A table with heads such as `Column|name; Kept|number`, and then `more`. On narrow screens each row becomes a
    block in which every cell has its head before it, unless the table is of the kind `slim`.
    """
    columns = [*(Head(*head.split("|")) for head in heads.split("; ")), *more]
    head = together(element("th", column.head, scope="col", class_=column.kind) for column in columns)
    lines = [
        element("tr", together(_cell(column, entry) for column, entry in zip(columns, row, strict=True)))
        for row in rows
    ]
    parts = [element("caption", caption), element("thead", element("tr", head)), element("tbody", together(lines))]
    kinds = f"{kind}{' long' if len(lines) > LONG else ''}".strip()  # only such may be cut in two when printed
    return element("table", together(parts), class_=kinds)


def _cell(column: Head, entry: Any) -> Markup:
    if column.kind == "name":
        return element("th", entry, scope="row", class_="name")
    kind = f"{column.kind} empty".strip() if entry == "" else column.kind
    return element("td", entry, class_=kind, data_head=column.head)


def section(title: str, *parts: str, name: str) -> Markup:
    """A part of the page that the contents can lead to."""
    head = element("h2", title, id=f"{name}-title")
    return element("section", together([head, *parts]), id=name, aria_labelledby=f"{name}-title")


Report = Mapping[str, Any]
"""What is in report.json, or in the owner's internal record."""
Section = tuple[str, str, Callable[[Report], Sequence[Markup]]]
"""A section's name, its title, and what makes its parts of a report; without parts it is left out."""


def paragraph(text: Any, kind: str = "") -> Markup:
    """A paragraph."""
    return element("p", text, class_=kind)


def bullets(texts: Iterable[str]) -> Markup:
    """A list."""
    return element("ul", together(element("li", text) for text in texts))


def definitions(pairs: Iterable[tuple[str, Any]], kind: str = "") -> Markup:
    """Names and what they stand for."""
    parts = (element("div", together([element("dt", name), element("dd", text)])) for name, text in pairs)
    return element("dl", together(parts), class_=kind)


def figure(picture: Markup, caption: str) -> Markup:
    """A picture with its caption."""
    return element("figure", together([picture, element("figcaption", caption)]))


SPACE = "\u00a0"
"""A space at which no line is broken."""


def value_text(value: Any) -> str:
    """Any figure, or the text that stands where it may not be told."""
    if isinstance(value, Mapping):
        return value_text(next(iter(value.values()), ""))
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(value_text(entry) for entry in value)
    return "" if value is None else str(value)


def percent(value: float) -> str:
    """A share, with as many digits as it takes not to be 0 or 1 by rounding."""
    digits = 1 if 0.0005 < abs(value) < 0.9995 or abs(value) >= 1 or value == 0 else 3
    return f"{100 * value + 0.0:.{digits}f}{SPACE}%"  # + 0.0: there is no less than nothing in "-0.0"


def share_text(value: Any) -> str:
    """A share of persons, or the text that stands where it may not be told."""
    if isinstance(value, Mapping):
        value = value.get("share", value.get("found", value.get("value", "")))
    return percent(value) if isinstance(value, float) else value_text(value)


def share_in_words(share: float | None) -> str:
    """A share, or that it may not be told."""
    return "not told" if share is None else percent(share)


def number_text(value: float) -> str:
    """A number with three digits."""
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def shortened(words: str, most: int) -> str:
    """A text of at most so many letters."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def joined(names: Sequence[str]) -> str:
    """Names as a sentence has them."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))
