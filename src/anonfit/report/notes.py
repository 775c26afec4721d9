# SPDX-License-Identifier: Apache-2.0
"""README.txt and codebook.csv of a release, for people who did not make it: what the folder is, and what every column
says. Both follow from the manifest, the recoding and the public report alone, so that an audit can write them again.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import partial
from io import StringIO
from textwrap import fill
from typing import Any

from anonfit.recoding.columns import NominalCells, OrdinalCells, RecodedColumn
from anonfit.report.words import Json, counted, joined, text_of
from anonfit.tables.scales import Scale, cut_text

README, CODEBOOK = "README.txt", "codebook.csv"

ROLES = {
    "quasi-identifier": "recoded: others may know it of a person",
    "sensitive": "as it was: nobody should learn it of a person",
    "target": "as it was: what the table was made to predict",
    "insensitive": "as it was",
    "count": "as it was: how many persons a row stands for",
    "sample-weight": "as it was: how many persons of the population a row stands for",
}
FIELDS = ("column", "of", "role", "type", "means", "labels", "domain", "cuts", "taxonomy")

_ENDS = "[a, b) from a to below b, < b below b, ≥ a from a on"
_TYPES = {Scale.WHOLE: "whole number", Scale.NUMBER: "number", Scale.DATE: "date", Scale.TIME: "date and time"}
_BETWEEN = {Scale.WHOLE: "whole numbers", Scale.NUMBER: "numbers", Scale.DATE: "days", Scale.TIME: "moments"}
_BOUNDS = {
    "lower": "the value is this or above; empty: no lower end is told",
    "upper": "the value is below this; empty: no upper end is told",
    "missing": "whether the value is missing: no, possible or only",
}


def codebook_text(report: Json, manifest: Json, columns: Sequence[RecodedColumn]) -> str:
    """A line for every column of the data file."""
    recoded = {column.name: (place, column) for place, column in enumerate(columns)}
    different = {line["name"]: line.get("different") for line in report["columns"]}
    output, declared = manifest["spec"]["output"], manifest["spec"]["columns"]
    text = StringIO()
    text.write("\ufeff" if output.get("bom") else "")
    lines = csv.writer(text, delimiter=output.get("delimiter", ","), lineterminator="\n")
    lines.writerow(FIELDS)
    for name in manifest["data"]["columns"]:
        source, end = _source_of(name, recoded, output["values"])
        role = ROLES[declared[source]["role"]]
        if source not in recoded:
            kind = "text" if name in manifest["data"]["texts"] else "number, date or truth value"
            means = "the value of the record; empty: missing"
            means = _titled(declared[source], means)
            lines.writerow((_harmless(name), _harmless(source), role, kind, _harmless(means), *[""] * 4))
            continue
        place, column = recoded[source]
        if isinstance(column, OrdinalCells):
            kind = "word of an order"
        else:
            kind = "name" if isinstance(column, NominalCells) else _TYPES[column.scale]
        labels = "" if different[source] is None else different[source]
        means = _BOUNDS[end] if end else _meaning(column, output)
        begin = (_harmless(name), _harmless(source), role, kind, _harmless(_titled(declared[source], means)))
        lines.writerow((*begin, labels, *_described(column, place)))
    return text.getvalue()


def _harmless(cell: str) -> str:
    """Words that somebody wrote, so that no spreadsheet takes them for a formula."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _titled(declared: Json, means: str) -> str:
    return f"{declared['title']}: {means}" if "title" in declared else means


def _source_of(name: str, recoded: Mapping[str, Any], values: str) -> tuple[str, str | None]:
    """The column of the source that a column of the file tells of, and which end of it where these are apart."""
    base, _, end = name.rpartition("_")
    is_bound = values == "bounds" and name not in recoded and base in recoded and end in _BOUNDS
    return (base, end) if is_bound else (name, None)


def _described(column: RecodedColumn, place: int) -> tuple[str, str, str]:
    """The domain of a recoded column, its cuts, and where its taxonomy is."""
    if isinstance(column, NominalCells):
        return "", "", f"recoding.json: columns[{place}].taxonomy"
    if isinstance(column, OrdinalCells):
        return _harmless(" < ".join(column.order)), "", ""
    domain = f"{cut_text(column.domain[0])} to {cut_text(column.domain[1])}" if column.domain else ""
    return domain, f"{len(column.cuts)} between {_BETWEEN[column.scale]}", ""


def _meaning(column: RecodedColumn, output: Json) -> str:
    """What the labels of a column are, in a sentence."""
    lost = "; missing, missing or L: the value is, or may be, missing" if column.has_missing else ""
    if isinstance(column, NominalCells):
        known = "a name; one of the tree stands for all below it, {a, b} for one of those listed"
        named = "" if column.other is None else f"; {column.other}: every value too rare to be named"
        return f"{known}{named}{lost}; *: any value"
    if output["values"] == "representative":
        return "the middle of what the value may be; empty: not told"
    if output["regions"] == "observed":
        form = "one value, or [a, b] from a to b, as the records have it"
    elif isinstance(column, OrdinalCells):
        form = f"a word, or a run of the order: {_ENDS}"
    elif column.scale != Scale.WHOLE:
        form = f"an interval: {_ENDS}"
    elif column.closed:
        form = "a whole number, or those from a to b, both included: a–b, ≤ b up to b, ≥ a from a on"
    else:
        form = f"a whole number, or an interval: {_ENDS}"
    return f"{form}{lost}; *: any value"


# --- README.txt ---------------------------------------------------------------------------------------------------

WIDTH = 100


def _line(text: str) -> str:
    """A text without line ends and other signs that are not shown, which a column's name may have."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _wrapped(text: str, begin: str = "", then: str = "") -> str:
    return fill(
        _line(text), WIDTH, initial_indent=begin, subsequent_indent=then, break_long_words=False, break_on_hyphens=False
    )


def readme_text(report: Json, manifest: Json, opened: Sequence[tuple[str, str]]) -> str:
    """What a release folder is, in plain words; `opened` says by which programs and how its data file is opened."""
    roles = {name: column["role"] for name, column in manifest["spec"]["columns"].items()}
    recoded = [name for name, role in roles.items() if role == "quasi-identifier"]
    columns = {
        "recoded": recoded,
        "kept": [name for name, role in roles.items() if role in ROLES and name not in recoded],
        "gone": [name for name, role in roles.items() if role not in ROLES],
    }
    data, rows = manifest["data"], manifest["rows"]
    return _readme("readme.txt", report, manifest, opened=opened, data=data, rows=rows, **columns)


def tree_readme_text(report: Json, manifest: Json) -> str:
    """What the folder of a tree is, in plain words."""
    return _readme("tree_readme.txt", report, manifest)


def _readme(template: str, report: Json, manifest: Json, **context: Any) -> str:
    filters: Any = {"line": _line, "paragraph": _wrapped, "joined": joined, "counted": counted}
    filters["item"] = partial(_wrapped, begin="- ", then="  ")
    return text_of(template, report=report, manifest=manifest, spec=manifest["spec"], **context, **filters)
