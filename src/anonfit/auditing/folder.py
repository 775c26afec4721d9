# SPDX-License-Identifier: Apache-2.0
"""A release folder on disk: its manifest and recoding as they stand in their files, and whether its files are those
that the manifest was written for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anonfit.auditing.result import Finding
from anonfit.auditing.settings import Settings, object_of, text_of
from anonfit.errors import ReleaseError

__all__ = ["Folder", "check_files", "check_makers", "files_as_stated", "json_of", "open_folder"]

_FEWER = re.compile(r"fewer than (\d{1,18})", re.ASCII)
_VERSION = re.compile(r"unknown|\d[\w.+!-]{0,60}", re.ASCII)
_ENGINES = ("memory", "duckdb", "spark")
_DATA = ("data.csv", "data.parquet", "data.arrow")
_BESIDE = ("recoding.json", "report.json", "report.html")
_MANIFEST = (
    "format",
    "version",
    "anonfit",
    "packages",
    "engine",
    "algorithm",
    "spec",
    "data",
    "rows",
    "audit",
    "files",
)


@dataclass(frozen=True, slots=True)
class Folder:
    """The parts of a release folder that an audit goes by."""

    path: Path
    data: Path
    spec: Mapping[str, Any]
    recoding: Mapping[str, Any]
    columns: tuple[str, ...]  # that the file has, as stated
    texts: tuple[str, ...]  # those of them that hold texts, as stated
    released: tuple[int, ...]  # its rows, as stated more than once
    withheld: int | range  # rows of the source that were withheld, as stated; of few persons, the numbers they may be
    dropped: int | range  # and dropped for missing values
    files: Mapping[str, str]  # name -> hash
    manifest: Mapping[str, Any]


def open_folder(folder: Path) -> Folder:
    """Read manifest.json and recoding.json; what they say is checked to be of the right kind."""
    manifest = Settings(json_of(folder, "manifest.json"), f"the manifest of '{folder.name}'", ReleaseError)
    if manifest.entries.get("format") == "anonfit tree release":
        raise ReleaseError(f"'{folder.name}' holds a tree, not a table; anonfit.audit_tree(folder, data) audits it.")
    if manifest.entries.get("format") != "anonfit release":
        raise ReleaseError(f"The manifest of '{folder.name}' is not that of an anonfit release.")
    if manifest.get("version", int) != 1:
        raise ReleaseError(
            f"The release '{folder.name}' is of a version this audit does not know: use a newer anonfit."
        )
    manifest.known(_MANIFEST)
    check_makers(manifest)
    data, rows, files = manifest.part("data"), manifest.part("rows"), manifest.part("files")
    name = data.known(("file", "rows", "columns", "texts")).get("file", str)
    if name not in _DATA or not (folder / name).is_file() or (folder / name).is_symlink():
        raise ReleaseError(f"The data file that the manifest of '{folder.name}' names is not in the folder.")
    return Folder(
        folder,
        folder / name,
        spec=manifest.get("spec", dict),
        recoding=json_of(folder, "recoding.json"),
        columns=data.texts("columns"),
        texts=data.texts("texts", ()),
        released=(rows.get("released", int), data.get("rows", int)),
        withheld=_few_or_exact(rows.known(("released", "withheld", "dropped")), "withheld"),
        dropped=_few_or_exact(rows, "dropped"),
        files={name: files.get(name, str).lower() for name in _inside(files.entries)},
        manifest=manifest.entries,
    )


def check_makers(manifest: Settings) -> None:
    """What made a release is told by versions and an engine's name; that of the method is held against the report."""
    manifest.word("engine", _ENGINES, None)
    packages = manifest.part("packages", {}).known(("anonfit", "polars", "numba", "numpy"))
    made_by = [manifest.entries.get("anonfit", "unknown"), *packages.entries.values()]
    if not all(isinstance(one, str) and _VERSION.fullmatch(one) for one in made_by):
        raise ReleaseError(f"{manifest.label} tells the version of a package that is none.")


def _inside(names: Iterable[str]) -> Iterable[str]:
    """Names of files, none of which leads out of the folder."""
    for name in names:
        if Path(name).name != name or "\0" in name:
            raise ReleaseError("The manifest lists a file that is not in the folder.")
        yield name


def json_of(folder: Path, name: str) -> dict[str, Any]:
    """The object of a JSON file that is in a folder itself."""
    try:
        if (folder / name).is_symlink():
            raise ValueError("leads out of the folder")
        return object_of(text_of(folder / name))
    except (OSError, ValueError):
        raise ReleaseError(f"'{folder.name}' is no release folder: its {name} is missing or cannot be read.") from None


def _few_or_exact(rows: Settings, name: str) -> int | range:
    """A number of rows, or those that a number of few persons may be."""
    stated = rows.entries.get(name, 0)
    if isinstance(stated, int) and not isinstance(stated, bool) and stated >= 0:
        return stated
    match = _FEWER.fullmatch(str(stated))
    if match is None:
        raise ReleaseError(f"The manifest's number of {name} rows is neither a number nor 'fewer than' one.")
    return range(1, int(match[1]))


def check_files(folder: Folder) -> list[Finding]:
    """The folder holds the files of a release, unchanged, and no others."""
    return files_as_stated(folder.path, folder.files, (folder.data.name, *_BESIDE))


def files_as_stated(folder: Path, files: Mapping[str, str], needed: Sequence[str]) -> list[Finding]:
    """A folder holds the files that it needs, with their hashes, and no others, whether these are listed or not."""
    changed = [name for name in needed if _digest(folder / name) != files.get(name, "")]
    there = {path.name for path in folder.iterdir()} | set(files)
    others = sorted(there - {*needed, "manifest.json"})
    good, bad = (
        "Files are as the manifest says.",
        "Files are missing, or not those that the manifest was written for.",
    )
    first = Finding("files", [], changed, not changed, bad if changed else good)
    good, bad = "The folder holds no other files.", "The folder or its manifest has files that are none of a release."
    return [first, Finding("other files", [], others, not others, bad if others else good)]


def _digest(path: Path) -> str | None:
    if not path.is_file() or path.is_symlink():
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
