# SPDX-License-Identifier: Apache-2.0
"""An independent checker of release folders, written from the documents alone.

docs/release-folder.md, labels.md, recoding.md, spec.md and privacy-models.md say what a release holds; this says
whether a folder does, in plain Python that imports nothing of the package. It is slow and obvious, and it is held
against the audit: what one accepts and the other refuses is a fault of one of them, or of the documents.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checker_bounds import bounds_of_report, picture, texts_of_manifest
from checker_labels import Wrong, need
from checker_notes import NOTES, notes_of_release
from checker_regions import read_observed
from checker_release import Box, Release, Source, failing, whole
from checker_report import report_of_release


@dataclass(frozen=True)
class Verdict:
    """What was found wrong, and what could not be checked."""

    faults: tuple[str, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """What could not be checked counts as missed."""
        return not self.faults and not self.unchecked


def check(folder: Path, source: Source | None = None, asked: Mapping[str, Any] | None = None) -> Verdict:
    """Check a release folder, against the rows it was made from and what was asked if these are given."""
    try:
        release = Release(folder, source)
        _ = release.manifest, release.recoding, release.columns, release.rows
    except Wrong as wrong:
        return Verdict((str(wrong),))
    faults = []
    for part in PARTS:
        try:
            part(release)
        except Wrong as wrong:
            faults.append(f"{part.__name__}: {wrong}")
    for name, value in (asked or {}).items():
        if release.privacy.get(name) != value:
            faults.append(f"asked: {name} is claimed otherwise")
    unknown = release.entity is not None and source is None
    return Verdict(tuple(faults), ("persons: only the source says whose the rows are",) if unknown else ())


# --- what must hold -----------------------------------------------------------------------------------------------


def files(release: Release) -> None:
    """The folder holds the files of a release, and the manifest their hashes."""
    manifest, folder = release.manifest, release.folder
    names = {manifest["data"]["file"], "recoding.json", "report.json", "report.html"}
    names |= set(manifest["files"]) & set(NOTES)
    need(set(manifest["files"]) == names, "the manifest lists other files than a release has")
    found = {path.name for path in folder.iterdir()}
    need(found == names | {"manifest.json"}, "the folder holds other files than a release has")
    need(not any(path.is_symlink() or not path.is_file() for path in folder.iterdir()), "a file is a link")
    for name, digest in manifest["files"].items():
        need(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, f"{name} has another hash")
    page = (folder / "report.html").read_bytes().decode("utf-8", "replace")
    told = sorted(digest for name, digest in manifest["files"].items() if name not in ("report.html", *NOTES))
    need(sorted(re.findall(r"\b[0-9a-f]{64}\b", page)) == told, "the page tells other hashes than the manifest")


def claims(release: Release) -> None:
    """What is claimed is something: k, of all quasi-identifiers; the claimed rows are the file's."""
    spec, rows, manifest = release.spec, release.manifest["rows"], release.manifest
    texts_of_manifest(release)
    need(release.sets, "nothing is claimed")
    need(release.spec["data"].get("missing_policy", "category") in ("category", "drop", "error"), "an unknown policy")
    output = spec["output"]
    need(output.get("order") in ("sorted", "original"), "an unknown order")
    told = release.observed or output["order"] == "original"
    need(output.get("consent") is True or not told, "observed regions or the original order without consent")
    need(rows["released"] == manifest["data"]["rows"] == len(release.rows), "the file has other rows than claimed")
    need(manifest["audit"].get("passed") is True, "the manifest says that the audit did not pass")
    limit = release.privacy.get("suppression_limit", 0.0)
    need(isinstance(limit, int | float) and 0 <= limit <= 1, "a limit that is none")
    withheld = told_range(release, rows["withheld"])
    need(withheld.start <= int(limit * (len(release.rows) + withheld.start)), "more rows withheld than the limit")


def told_range(release: Release, told: Any) -> range:
    """The numbers that a told number of rows may be: itself, or `fewer than k`, of persons who may have several rows."""
    if isinstance(told, str):
        least = max(k for _, k in release.sets)
        need(told == f"fewer than {least}", "a number of rows is none")
        return range(1, least if release.entity is None else 10**9)
    need(whole(told) and told >= 0, "a number of rows is none")
    return range(told, told + 1)


def regions(release: Release) -> None:
    """What the rows say of their quasi-identifiers is what is written for a region."""
    form, columns, recoding = release.form, release.recoding.columns, release.recoding
    names = [column.name for column in columns]
    if release.observed:
        within = [
            one_region(release, [text and text[1] for text in key]) for key in release.groups(names, release.members)
        ]
        need(len(set(within)) == len(within), "two groups are of one region")
        return
    if recoding.parts is not None:
        for column in columns:
            known = {column.written(part, form) for part in recoding.part_cells(column)}
            need(set(release.groups([column.name], release.members)) <= known, f"{column.name} says what no part is")
        return
    known = {
        tuple(one for c, cells in zip(columns, box, strict=True) for one in c.written(cells, form))
        for box in recoding.boxes()
    }
    need(set(release.groups(names, release.members)) <= known, "rows say what no region is")


def one_region(release: Release, texts: Sequence[str | None]) -> Box:
    """The region that holds what some records have."""
    columns = release.recoding.columns
    need(None not in texts, "a label is empty")
    cells = [read_observed(column, text) for column, text in zip(columns, texts, strict=True)]
    box = release.recoding.box(tuple(min(one) for one in cells))
    need(all(one <= part for one, part in zip(cells, box, strict=True)), "records of several regions")
    return box


def demands(release: Release) -> None:
    """Every group of every set has its persons, and meets every demand."""
    need(release.rows, "there are no rows")
    for what, _ in failing(release, release.members):
        raise Wrong(f"a group misses {what}")


def order(release: Release) -> None:
    """Rows are sorted by what they say of quasi-identifiers, then by the other columns."""
    if release.spec["output"]["order"] == "original":
        return
    places = release.at(sorted(release.columns, key=lambda name: name not in release.keys))
    try:
        values = [tuple((0,) if row[p] is None else (1, row[p][1]) for p in places) for row in release.rows]
        need(all(one <= two for one, two in zip(values, values[1:], strict=False)), "rows are not sorted")
    except TypeError:
        raise Wrong("a column holds values of several kinds") from None


def source(release: Release) -> None:
    """Every row of the source is released as its region says, withheld with its group, or dropped; and counted."""
    if release.source is None:
        return
    total = len(next(iter(release.source.values())))
    dropped = sum(map(release.lacking, range(total)))
    rows, wanted = Counter(release.rows), Counter(member.row for member in release.left.values())
    need(not rows - wanted, "a released row is no row of the source, or should be withheld")
    need(not wanted - rows, "a row of the source is not released, though its group meets all demands")
    told = release.manifest["rows"]
    withheld = total - dropped - wanted.total()
    need(withheld in told_range(release, told["withheld"]), "another number of rows is withheld than claimed")
    need(dropped in told_range(release, told["dropped"]), "another number of rows is dropped than claimed")


def report(release: Release) -> None:
    """What report.json says of demands, rows, columns and groups is so, and so is what follows from it for people."""
    said = release.json("report.json")
    need(isinstance(said, dict) and said.get("format") == "anonfit report", "no report")
    try:
        report_of_release(release, said)
        bounds_of_report(release, said)
        picture(release, said.get("partition"))
        notes_of_release(release, said)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError):
        raise Wrong("the report lacks a figure") from None


PARTS = (files, claims, regions, demands, order, source, report)
