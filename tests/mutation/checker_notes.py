# SPDX-License-Identifier: Apache-2.0
"""README.txt and codebook.csv, from docs/release-folder.md alone. Part of the independent checker: nothing of the
package.
"""

from __future__ import annotations

import csv
import re
from io import StringIO
from typing import Any

from checker_labels import Column, Wrong, need
from checker_release import Release
from checker_report import K, without_own

NOTES = ("README.txt", "codebook.csv")
FIELDS = ["column", "of", "role", "type", "means", "labels", "domain", "cuts", "taxonomy"]
ROLES = {
    "quasi-identifier": "recoded: others may know it of a person",
    "sensitive": "as it was: nobody should learn it of a person",
    "target": "as it was: what the table was made to predict",
    "insensitive": "as it was",
    "count": "as it was: how many persons a row stands for",
    "sample-weight": "as it was: how many persons of the population a row stands for",
}
BOUNDS = {
    "lower": "the value is this or above; empty: no lower end is told",
    "upper": "the value is below this; empty: no upper end is told",
    "missing": "whether the value is missing: no, possible or only",
}
ENDS = "[a, b) from a to below b, < b below b, ≥ a from a on"


def notes_of_release(release: Release, said: dict[str, Any]) -> None:
    """The two files say what follows from the others; releases of earlier versions do not have them."""
    listed = [name for name in NOTES if name in release.manifest["files"]]
    try:
        texts = {name: (release.folder / name).read_bytes().decode("utf-8") for name in listed}
    except (OSError, UnicodeDecodeError):
        raise Wrong("a note cannot be read") from None
    if "codebook.csv" in texts:
        codebook(release, said, texts["codebook.csv"])
    if "README.txt" in texts:
        readme(release, said, texts["README.txt"])


def codebook(release: Release, said: dict[str, Any], text: str) -> None:
    """A line for every column of the data file."""
    written = StringIO()
    output = release.spec["output"]
    written.write("\ufeff" if output.get("bom") else "")
    lines = csv.writer(written, delimiter=output.get("delimiter", ","), lineterminator="\n")
    lines.writerow(FIELDS)
    of = {one: (place, c) for place, c in enumerate(release.recoding.columns) for one in c.released(release.form)}
    different = {one["name"]: one.get("different") for one in said["columns"]}
    for name in release.manifest["data"]["columns"]:
        if name not in of:
            kind = "text" if name in release.manifest["data"]["texts"] else "number, date or truth value"
            role = ROLES[release.spec["columns"][name]["role"]]
            means = titled(release, name, "the value of the record; empty: missing")
            lines.writerow([harmless(name), harmless(name), role, kind, harmless(means), "", "", "", ""])
            continue
        place, column = of[name]
        means = meaning(release, column) if name == column.name else BOUNDS[name.removeprefix(f"{column.name}_")]
        means = titled(release, column.name, means)
        count = different[column.name]
        begin = [harmless(name), harmless(column.name), ROLES["quasi-identifier"], type_of(column), harmless(means)]
        lines.writerow([*begin, "" if count is None else count, *described(column, place)])
    need(text == written.getvalue(), "the codebook says something else")


def harmless(cell: str) -> str:
    """What begins as a formula has a sign before it."""
    return "'" + cell if cell[:1] in tuple("=+-@\t\r") else cell


def titled(release: Release, name: str, means: str) -> str:
    """What a column means, after its title."""
    title = release.spec["columns"][name].get("title")
    return f"{title}: {means}" if title else means


def scale_of(column: Column) -> str:
    return "whole" if column.whole else column.scale


def type_of(column: Column) -> str:
    if column.kind != "cuts":
        return "name" if column.kind == "leaves" else "word of an order"
    return {"whole": "whole number", "number": "number", "date": "date", "time": "date and time"}[scale_of(column)]


def described(column: Column, place: int) -> list[str]:
    """Domain, cuts, and where the taxonomy is."""
    if column.kind == "leaves":
        return ["", "", f"recoding.json: columns[{place}].taxonomy"]
    if column.kind == "words":
        return [harmless(" < ".join(column.order)), "", ""]
    between = {"whole": "whole numbers", "number": "numbers", "date": "days", "time": "moments"}[scale_of(column)]
    domain = "" if column.domain is None else " to ".join(map(column.text, column.domain))
    return [domain, f"{len(column.cuts)} between {between}", ""]


def meaning(release: Release, column: Column) -> str:
    """What labels say."""
    lost = "; missing, missing or L: the value is, or may be, missing" if column.missing else ""
    if column.kind == "leaves":
        other = "" if column.other is None else f"; {column.other}: every value too rare to be named"
        known = "a name; one of the tree stands for all below it, {a, b} for one of those listed"
        return f"{known}{other}{lost}; *: any value"
    if release.form == "representative":
        return "the middle of what the value may be; empty: not told"
    if release.observed:
        form = "one value, or [a, b] from a to b, as the records have it"
    elif column.kind == "words":
        form = f"a word, or a run of the order: {ENDS}"
    elif not column.whole:
        form = f"an interval: {ENDS}"
    elif column.both_ends:
        form = "a whole number, or those from a to b, both included: a–b, ≤ b up to b, ≥ a from a on"
    else:
        form = f"a whole number, or an interval: {ENDS}"
    return f"{form}{lost}; *: any value"


def readme(release: Release, said: dict[str, Any], text: str) -> None:
    """It is headed by the title, and tells what was asked, what was found and what is not covered, and no other k."""
    title = shown(release.spec.get("report", {}).get("title", "Anonymized release"))
    need(text.startswith(f"{title}\n{'=' * len(title)}\n"), "README.txt has another title")
    told = " ".join(shown(text.replace("\n", " ")).split())
    for sentence in [*said["asked"]["sentences"], *said["verdict"]["met"], *said["not_covered"]]:
        need(" ".join(shown(sentence).split()) in told, "README.txt leaves out a sentence of the report")
    known = {str(k) for _, k in release.sets} | {str(release.privacy["k"])}
    need(set(K.findall(without_own(release, told))) <= known, "README.txt names another k")
    need(re.search(rf"\b{re.escape(release.manifest['created'])}\b", told), "README.txt tells another day")


def shown(text: str) -> str:
    """A text without signs that are not printed."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
