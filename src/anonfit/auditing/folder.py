# SPDX-License-Identifier: Apache-2.0
"""A release folder on disk: its manifest and recoding as they stand in their files, and whether its files are those
that the manifest was written for."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from anonfit.auditing.result import Finding
from anonfit.auditing.settings import Settings
from anonfit.errors import ReleaseError

__all__ = ["Folder", "check_files", "check_suppression", "open_folder"]

_FEWER = re.compile(r"fewer than (\d+)", re.ASCII)


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
    withheld: int | range  # rows of the source that it has not
    suppressed: int | range  # those of them that the missing policy did not drop
    files: Mapping[str, str]  # name -> hash


def open_folder(folder: Path) -> Folder:
    """Read manifest.json and recoding.json; what they say is checked to be of the right kind."""
    manifest = Settings(_json(folder, "manifest.json"), f"the manifest of '{folder.name}'", ReleaseError)
    if manifest.entries.get("format") == "anonfit tree release":
        raise ReleaseError(
            f"'{folder.name}' holds a tree, not a table; in Python, anonfit.audit_tree(folder, data) audits it."
        )
    if manifest.entries.get("format") != "anonfit release":
        raise ReleaseError(f"The manifest of '{folder.name}' is not that of an anonfit release.")
    if manifest.get("version", int) != 1:
        raise ReleaseError(
            f"The release '{folder.name}' is of a version this audit does not know: use a newer anonfit."
        )
    data, rows, files = manifest.part("data"), manifest.part("rows"), manifest.part("files")
    name = data.get("file", str)
    if Path(name).name != name or not (folder / name).is_file():
        raise ReleaseError(f"The data file that the manifest of '{folder.name}' names is not in the folder.")
    return Folder(
        folder,
        folder / name,
        spec=manifest.get("spec", dict),
        recoding=_json(folder, "recoding.json"),
        columns=data.texts("columns"),
        texts=data.texts("texts", ()),
        released=(rows.get("released", int), data.get("rows", int)),
        withheld=_absent(rows, ("withheld", "dropped")),
        suppressed=_absent(rows, ("withheld",)),
        files={name: files.get(name, str).lower() for name in files.entries},
    )


def _json(folder: Path, name: str) -> dict[str, Any]:
    try:
        found = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise ReleaseError(f"'{folder.name}' is no release folder: its {name} is missing or cannot be read.") from None
    if not isinstance(found, dict):
        raise ReleaseError(f"'{folder.name}' is no release folder: its {name} is not an object.")
    return found


def _absent(rows: Settings, names: tuple[str, ...]) -> int | range:
    """Rows that may be absent, withheld or dropped, as far as the manifest tells."""
    rows.known(("released", "withheld", "dropped"))
    exact, unknown = 0, 0
    for name in names:
        stated = rows.entries.get(name, 0)
        if isinstance(stated, int) and not isinstance(stated, bool) and stated >= 0:
            exact += stated
            continue
        match = _FEWER.fullmatch(str(stated))
        if match is None:
            raise ReleaseError(f"The manifest's number of {name} rows is neither a number nor 'fewer than' one.")
        unknown += int(match[1]) - 1
    return range(exact, exact + unknown + 1) if unknown else exact


def check_suppression(folder: Folder, limit: float) -> Finding:
    """No more rows are withheld than the spec allows: of few, which are not counted in public, at least the first."""
    stated = folder.suppressed
    number, told = (1, f"fewer than {stated.stop}") if isinstance(stated, range) else (stated, stated)
    met = number <= int(Decimal(repr(limit)) * (folder.released[0] + number))
    good, bad = "No more rows are withheld than allowed.", "More rows are withheld than the suppression limit allows."
    return Finding("suppression limit", limit, told, met, good if met else bad)


def check_files(folder: Folder) -> list[Finding]:
    """The folder holds the files of the manifest, unchanged, and no others."""
    changed = [name for name, digest in folder.files.items() if _digest(folder.path / name) != digest]
    unlisted = [name for name in (folder.data.name, "recoding.json") if name not in folder.files]
    others = sorted(
        path.name for path in folder.path.iterdir() if path.name not in folder.files and path.name != "manifest.json"
    )
    others = [name for name in others if name not in unlisted]
    good, bad = (
        "Files are as the manifest says.",
        "Files are missing, or not those that the manifest was written for.",
    )
    first = Finding("files", [], changed + unlisted, not (changed or unlisted), bad if changed or unlisted else good)
    good, bad = "The folder holds no other files.", "The folder holds files that the manifest does not list."
    return [first, Finding("other files", [], others, not others, bad if others else good)]


def _digest(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
