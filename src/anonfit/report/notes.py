# SPDX-License-Identifier: Apache-2.0
"""README.txt and codebook.csv of a release, for people who did not make it: what the folder is, and what every column
says. Both follow from the manifest, the recoding and the public report alone, so that an audit can write them again.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from textwrap import fill
from typing import Any

from anonfit.recoding.columns import NominalCells, OrdinalCells, RecodedColumn
from anonfit.report.words import counted, joined
from anonfit.tables.scales import Scale, cut_text

README, CODEBOOK = "README.txt", "codebook.csv"
Json = Mapping[str, Any]

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
_TYPES = {
    Scale.WHOLE: "whole number",
    Scale.NUMBER: "number",
    Scale.DATE: "date",
    Scale.TIME: "date and time",
}
_BETWEEN = {
    Scale.WHOLE: "whole numbers",
    Scale.NUMBER: "numbers",
    Scale.DATE: "days",
    Scale.TIME: "moments",
}
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
            lines.writerow((name, source, role, kind, "the value of the record; empty: missing", *[""] * 4))
            continue
        place, column = recoded[source]
        labels = "" if different[source] is None else different[source]
        means = _BOUNDS[end] if end else _meaning(column, output)
        lines.writerow((name, source, role, _type(column), means, labels, *_described(column, place)))
    return text.getvalue()


def _source_of(name: str, recoded: Mapping[str, Any], values: str) -> tuple[str, str | None]:
    """The column of the source that a column of the file tells of, and which end of it where these are apart."""
    base, _, end = name.rpartition("_")
    is_bound = values == "bounds" and name not in recoded and base in recoded and end in _BOUNDS
    return (base, end) if is_bound else (name, None)


def _type(column: RecodedColumn) -> str:
    if isinstance(column, OrdinalCells):
        return "word of an order"
    return "name" if isinstance(column, NominalCells) else _TYPES[column.scale]


def _described(column: RecodedColumn, place: int) -> tuple[str, str, str]:
    """The domain of a recoded column, its cuts, and where its taxonomy is."""
    if isinstance(column, NominalCells):
        return "", "", f"recoding.json: columns[{place}].taxonomy"
    if isinstance(column, OrdinalCells):
        return " < ".join(column.order), "", ""
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
LABELS = """\
  *             any value, missing included
  missing       the value is missing
  not missing   any value that is not missing
  missing or L  missing, or what the label L says
  < b           below b
  ≥ a           a or above
  [a, b)        a or above, and below b
  [a, b]        a or above, and b or below
  a–b, ≤ b      whole numbers from a to b, both included; those up to b
  {u, v, w}     one of the listed names; the name of a group of a taxonomy stands for all that is in it
  other         in a column whose codebook line says so: every value too rare to be named
  anything else is that value itself"""
FORMS = {
    "labels": "A recoded column holds labels. Each says what the value of a record may be:",
    "bounds": "A recoded column of numbers, dates or ordered words is two or three columns: _lower (included), _upper "
    "(not included) and, where values may be missing, _missing. Other recoded columns hold labels:",
    "representative": "A recoded column of numbers, dates or ordered words holds the middle of what the value may be, "
    "not what it is. Other recoded columns hold labels:",
}


def readme_text(report: Json, manifest: Json, opened: Sequence[tuple[str, str]]) -> str:
    """What a release folder is, in plain words; `opened` says by which programs and how its data file is opened."""
    spec, rows = manifest["spec"], manifest["rows"]
    sections = [
        ("What this is", _paragraphs(*_about(manifest))),
        ("What was done to the table", _listed([*_done(manifest), *report["asked"]["sentences"]])),
        ("The files", _files(manifest)),
        ("How to read the values", "\n".join([_paragraphs(FORMS[spec["output"]["values"]]), LABELS, "", LEARNING])),
        (f"How to open {manifest['data']['file']}", _listed([f"{program}: {how}" for program, how in opened], _line)),
        ("How to check it", CHECKING),
        ("What is promised", _listed(report["verdict"]["met"])),
        ("What is not promised", _listed([*_left(rows), *report["not_covered"]])),
    ]
    return headed(spec, "Anonymized release") + _in_sections(sections)


def headed(spec: Json, usual: str) -> str:
    """The title, by the owner's words where there are some."""
    title = _line(spec.get("report", {}).get("title", usual))
    return f"{title}\n{'=' * len(title)}\n"


def _in_sections(sections: Sequence[tuple[str, str]]) -> str:
    return "".join(f"\n{title}\n{'-' * len(title)}\n{text}\n" for title, text in sections)


def _line(text: str) -> str:
    """A text without line ends and other signs that are not shown, which a column's name may have."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _wrapped(text: str, begin: str = "", then: str = "") -> str:
    return fill(
        _line(text),
        WIDTH,
        initial_indent=begin,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _paragraphs(*texts: str) -> str:
    return "\n".join(map(_wrapped, texts))


def _listed(texts: Sequence[str], write: Callable[[str], str] | None = None) -> str:
    return "\n".join(f"- {write(text)}" if write else _wrapped(text, "- ", "  ") for text in texts)


def made_by(manifest: Json, what: str) -> list[str]:
    """Which table it is of, when and by what it was made, and whom to ask."""
    words = manifest["spec"].get("report", {})
    table = f" of {words['table_name']}" if "table_name" in words else " of a table"
    return [
        f"{what}{table}; made on {manifest['created']} by anonfit {manifest['anonfit']}.",
        f"Contact: {words['contact']}" if "contact" in words else "Contact: whoever gave you this folder.",
    ]


def _about(manifest: Json) -> list[str]:
    rows, columns = manifest["data"]["rows"], len(manifest["data"]["columns"])
    held = f"{counted(rows, 'row')} and {counted(columns, 'column')}"
    return [*made_by(manifest, "An anonymized version"), f"It has {held}."]


def _done(manifest: Json) -> list[str]:
    """What became of the columns and rows."""
    roles = {name: column["role"] for name, column in manifest["spec"]["columns"].items()}
    recoded = [name for name, role in roles.items() if role == "quasi-identifier"]
    kept = [name for name, role in roles.items() if role in ROLES and role != "quasi-identifier"]
    gone = [name for name, role in roles.items() if role not in ROLES]
    rows = manifest["rows"]
    said = [
        f"Recoded, so that groups of records look the same: {joined(recoded)}.",
        f"Left as they were in each record: {joined(kept) or 'none'}.",
        f"Left out: {joined(gone) or 'no column'}.",
        f"Rows withheld, because they could not be hidden in a group: {rows['withheld']}; left out for missing values: "
        f"{rows['dropped']}.",
    ]
    order = manifest["spec"]["output"]["order"]
    return [*said, "Rows are sorted, so that their order tells nothing."] if order == "sorted" else said


def _files(manifest: Json) -> str:
    return _named(
        {
            manifest["data"]["file"]: "the rows",
            CODEBOOK: "what every column of it is",
            "report.html": "what was asked, found and measured, for any browser; report.json is the same for programs",
            "recoding.json": "how values became labels; it also recodes new records",
            "manifest.json": "what is claimed, with the SHA-256 of every other file",
        }
    )


def _named(files: Mapping[str, str]) -> str:
    return "\n".join(f"  {name:<15}{what}" for name, what in files.items())


LEARNING = _paragraphs(
    "To compute with intervals, take their middle, or count a record in each value of its label by equal shares; both "
    "are guesses, and figures of few records are the least sure. codebook.csv says which kind each column is."
)
CHECKING = _paragraphs(
    "Install anonfit (pip install anonfit) and run, beside this folder: anonfit audit FOLDER. The audit counts the "
    "groups of the data file again, by code of its own, and holds every file against the manifest; anonfit audit "
    "FOLDER --source TABLE also holds it against the table that it was made from, for those who have that."
)


def _left(rows: Json) -> list[str]:
    return [] if rows["withheld"] == 0 else ["That every person of the original table is in this one."]


# --- of a tree ----------------------------------------------------------------------------------------------------

CHECKING_A_TREE = _paragraphs(
    "Install anonfit (pip install anonfit) and run, beside this folder: anonfit audit FOLDER --source TABLE, with the "
    "table that it was learned from, for those who have that; without it the files are held against each other."
)


def tree_readme_text(report: Json, manifest: Json) -> str:
    """What the folder of a tree is, in plain words."""
    asked = report["asked"]
    known = joined(asked["public"]) or "nothing"
    files = {
        "tree.txt": "the tree, to read; tree.svg is its picture",
        "model.json": "the tree for programs: anonfit.load_tree(FOLDER).predict(rows)",
        "report.html": "what was asked and found, for any browser; audit.json is the same for programs",
        "manifest.json": "what is claimed, with the SHA-256 of every other file",
    }
    promised = [
        f"k = {asked['k']}: no person can be told by the tree from {asked['k'] - 1} others or more, by someone who "
        f"knows {known} of everybody.",
        *(f"{demand['column']}: {demand['model']}." for demand in asked["diversity"]),
    ]
    sections = [
        ("What this is", _paragraphs(*made_by(manifest, f"A decision tree for {asked['class']}"))),
        ("The files", _named(files)),
        ("How to check it", CHECKING_A_TREE),
        ("What is promised", _listed(promised)),
    ]
    return headed(manifest["spec"], "Anonymous decision tree") + _in_sections(sections)
