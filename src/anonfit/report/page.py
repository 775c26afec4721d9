# SPDX-License-Identifier: Apache-2.0
"""Pages, made of templates: each is one file that needs nothing from anywhere else and runs no script, for light and
dark screens, wide and narrow, and for paper. Every text is escaped by the engine.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from anonfit.errors import RequestError, printable
from anonfit.report import views
from anonfit.report.pictures import figure, key, tiling_figure
from anonfit.report.words import (
    counted,
    joined,
    number_text,
    percent,
    share_in_words,
    share_text,
    shortened,
    value_text,
)
from anonfit.runtime.files import write_file

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
Report = Mapping[str, Any]
"""What is in report.json, or in the owner's internal record."""
HEADLINES = {
    "missed": ("Asked and missed", "bad"),
    "met": ("Asked and met", "good"),
    "not_asked": ("Not asked", "fair"),
}
HASHED = ("recoding.json", "report.json", "model.json", "audit.json")
"""Files whose hashes a page tells beside that of the data; its own stands in the manifest."""
MAIN = {
    "asked": "What was asked",
    "attacker": "The assumed attacker, and what is not covered",
    "audit": "What the audit found",
    "risk": "Risk of finding a person's record",
    "detail": "How much detail each column kept",
    "workload": "Utility for the workload",
    "comparison": "Blind against made for the purpose",
}
ANNEX = {
    "checks": "What the audit checked",
    "columns": "What was done to each column",
    "sizes": "How many persons share a group",
    "distributions": "Every column before and after",
    "attack": "An attack, tried",
    "partition": "The regions of two columns",
    "answers": "How selections and queries are answered",
    "losses": "What each column lost",
    "curve": "Risk and utility over k",
    "rules": "Rules that the release tells",
    "exploration": "Ways that were tried",
    "board": "For the review board",
}
"""Sections by the names of their templates; one of which a report has nothing to tell is left out."""


class Head(NamedTuple):
    """A column's head and kind: `number`, `picture`, `text` (maybe long), `name` (of a row), or nothing."""

    title: str
    kind: str = ""


def _heads(words: str, more: Iterable[Sequence[str]] = ()) -> list[Head]:
    """The heads of a table, such as `Column|name; Kept|number`, and then `more`."""
    return [Head(*head.split("|")) for head in words.split("; ") if head] + [Head(*head) for head in more]


FILTERS: dict[str, Callable[..., Any]] = {
    "figure": value_text,
    "share": share_text,
    "told": share_in_words,
    "percent": percent,
    "number": number_text,
    "shortened": shortened,
    "joined": joined,
    "counted": counted,
    "numbered": lambda titles: [
        (title, "number") for title in (titles.values() if isinstance(titles, Mapping) else titles)
    ],
    **views.FILTERS,
}


def _shown(value: Any) -> Any:
    """A value as a template writes it: nothing for None, and no sign that a page would obey."""
    if value is None or hasattr(value, "__html__"):
        return value if value is not None else ""
    return printable(str(value))


def environment(*folders: Path) -> Environment:
    """The templates of some folders and then those here, with the filters, macros and pictures of all pages."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    made.filters.update(FILTERS)
    made.globals |= {"read_heads": _heads, "figure": figure, "key": key, "tiling_figure": tiling_figure}
    made.globals |= {**views.GLOBALS, "version": version("anonfit")}
    macros: Any = made.get_template("macros.html").module
    made.globals |= {name: macro for name, macro in vars(macros).items() if not name.startswith("_")}
    return made


@cache
def _environment() -> Environment:
    return environment()


def page(template: str, **context: Any) -> str:
    """A page of one of the templates."""
    return _environment().get_template(template).render(**context)


def check_page(path: Path, *, replace: bool) -> None:
    """Refuse a place where a page cannot be written, or where something else is."""
    if path.is_dir() or (path.exists() and not replace):
        raise RequestError(f"{path} is already there; choose another name, or allow to replace it (--replace).")
    if not path.absolute().parent.is_dir():
        raise RequestError(f"{path.absolute().parent}: there is no such folder to write the page into.")


def save_page(path: Path, text: str, *, replace: bool) -> Path:
    """Write a page, whole or not at all."""
    check_page(path, replace=replace)
    write_file(path, text, replace=replace)
    return path


def report_page(report: Report, manifest: Report | None = None) -> str:
    """The page of a public report, headed by what the manifest of its release says."""
    return _report(report, manifest or {}, "public report")


def internal_page(report: Report, manifest: Report | None = None, source: Mapping[str, str] | None = None) -> str:
    """The page for the owner of the data, with everything in it."""
    facts = [("Source", source["path"]), ("SHA-256 of the source", source["sha256"])] if source else []
    return _report(report, manifest or {}, "internal report", facts)


def _report(report: Report, manifest: Report, kind: str, facts: Sequence[tuple[str, str]] = ()) -> str:
    return page(
        "report.html",
        title=heading(manifest).get("title", "Anonymized release"),
        kind=kind,
        report=report,
        facts=[*imprint(manifest), *facts],
        headline=views.headline(report),
        headlines=HEADLINES,
        extent=views.extent(report),
        main=_sections(MAIN, report),
        annex=_sections(ANNEX, report),
    )


def heading(manifest: Report) -> Mapping[str, str]:
    """The words of the owner that a report is headed by."""
    words: Mapping[str, str] = manifest.get("spec", {}).get("report", {})
    return words


def imprint(manifest: Report) -> list[tuple[str, str]]:
    """What table it is of, when and by what it was made, whom to ask, and the hashes of the files beside the page."""
    if not manifest:
        return []
    words = heading(manifest)
    facts = [
        ("Table", words.get("table_name")),
        ("Date", manifest.get("created")),
        ("Made by", f"anonfit {manifest['anonfit']}"),
        ("Contact", words.get("contact")),
    ]
    hashes = [
        (f"SHA-256 of {name}", digest)
        for name, digest in sorted(manifest.get("files", {}).items())
        if name in HASHED or name.startswith("data.")
    ]
    return [(name, text) for name, text in [*facts, *hashes] if text]


def tree_page(report: Report, manifest: Report, drawing: str) -> str:
    """The page of a published tree, of its audit.json, its manifest and its picture."""
    audit, asked = report["audit"], report["asked"]
    sentences = [
        f"k = {asked['k']}: no person can be told by the tree from {asked['k'] - 1} others or more, by someone who "
        f"knows {joined(asked['public']) or 'nothing'} of everybody.",
        f"Private: {joined([*asked['private'], *([] if asked['class_is_public'] else [asked['class']])])}.",
        *(f"{demand['column']}: {demand['model']}." for demand in asked["diversity"]),
        f"Told of the leaves: {report['told']}.",
    ]
    return page(
        "tree.html",
        title=heading(manifest).get("title", "Anonymous decision tree"),
        report=report,
        asked=asked,
        audit=audit,
        spans=audit["spans"],
        headline=views.headline({"audit": audit["spans"]}),
        facts=imprint(manifest),
        sentences=sentences,
        drawing=b64encode(drawing.encode()).decode(),
        drawn_words=f"Decision tree for {asked['class']} with {report['tree']['leaves']} leaves",
    )


def _sections(titles: Mapping[str, str], report: Report) -> list[tuple[str, str, Any]]:
    """Sections that have something to tell: their names, titles and texts."""
    from markupsafe import Markup

    texts = ((name, title, page(f"report/{name}.html", report=report).strip()) for name, title in titles.items())
    return [(name, title, Markup(text)) for name, title, text in texts if text]  # noqa: S704 - templates escape
