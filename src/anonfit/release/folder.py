# SPDX-License-Identifier: Apache-2.0
"""The release folder: written whole, given its name last, and loaded again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.errors import ReleaseError, refuse_fork
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.storage import read_recoding
from anonfit.runtime.files import file_hash, give_names, sync, taken, workplace, write_new
from anonfit.runtime.strict_json import Damaged, JsonPart, parse_json, read_text
from anonfit.tables.formats import FORMATS, format_of

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a release folder holds."""

    table: pl.DataFrame
    recoding: Recoding
    report: Mapping[str, Any]
    manifest: Mapping[str, Any]


def _table(folder: Path, manifest: Mapping[str, Any], rows: int | None) -> pl.DataFrame:
    import polars as pl

    stated = manifest["data"]
    path = folder / stated["file"]
    try:
        scan = format_of(path).scan
        if scan is None:
            # Types are inferred of what was no text: texts stay texts even where all look like numbers.
            table = pl.scan_csv(
                path,
                # polars leaves quotes in a header doubled
                with_column_names=lambda names: [name.replace('""', '"') for name in names],
                schema_overrides=dict.fromkeys(stated["texts"], pl.String),
                infer_schema_length=rows,
                n_rows=rows,
                glob=False,
            ).collect()
        else:
            table = scan(path).head(rows).collect() if rows is not None else scan(path).collect()
    except (pl.exceptions.PolarsError, OSError):
        raise ReleaseError(f"{path} cannot be read; make the release again.") from None
    if table.columns != stated["columns"] or len(table) != (stated["rows"] if rows is None else rows):
        raise ReleaseError(f"{path} has other columns or rows than the manifest says; make the release again.")
    return table


def _report(folder: Path) -> Mapping[str, Any]:
    """The report; what others go by in it is of the right kind."""
    path = folder / "report.json"
    try:
        report = JsonPart(parse_json(read_text(path, "report", ReleaseError, megabytes=64)))
        entries = report.named()
        if entries.get("format", JsonPart(None)).value != "anonfit report":
            raise report.refused("is no report of a release")
        asked = entries["asked"].named() if "asked" in entries else {}
        for target in asked["targets"].items() if "targets" in asked else ():
            entry = target.table(("column", "kind", "used"), target.named())
            entry["column"].text(), entry["kind"].text(), entry["used"].flag()
    except Damaged as error:
        raise ReleaseError(f"{path} is damaged: {error}; make the release again.") from None
    return report.plain()


def load_folder(folder: Path, *, rows: bool = True) -> Loaded:
    """Data, recoding, report and manifest of a release folder; without `rows` only the columns of the data."""
    manifest = read_manifest(folder)
    recoding = read_recoding(folder / "recoding.json")
    return Loaded(_table(folder, manifest, None if rows else 0), recoding, _report(folder), manifest)


FORMAT = "anonfit release"
VERSION = 1
KINDS = (FORMAT, "anonfit tree release")
MANIFEST = "manifest.json"
RECORD = "anonfit internal record"
INTERNAL = ("internal.json", "internal.html")
"""The endings of the internal records beside a release, for the owner of the data."""
PAGE = "internal report</title>"
TREE_FILES = ("model.json", "tree.txt", "tree.svg", "audit.json", "report.html")


def data_name(kind: str) -> str:
    """The name of the data file."""
    return f"data.{kind}"


def records_of(target: Path) -> dict[str, Path]:
    """Where the internal records of a release are."""
    return {ending: target.with_name(f"{target.name}.{ending}") for ending in INTERNAL}


def check_free(target: Path, *, replace: bool) -> None:
    """Refuse a place where something else is; a release and its records may be replaced if that is asked."""
    if not target.parent.is_dir():
        raise ReleaseError(f"{target.parent}: there is no such folder to write the release into.")
    for place in (target, *records_of(target).values()):
        if not (place.exists() or place.is_symlink()):
            continue
        if not replace:
            raise ReleaseError(taken(place))
        if place.is_symlink() or not (_is_release(place) if place == target else _is_record(place)):
            what = "a release" if place == target else "an internal record of one"
            raise ReleaseError(f"{place} is not {what}, so it is not replaced; choose another place.")


def _is_release(folder: Path) -> bool:
    """Whether a folder is one that we made: others have a manifest, too."""
    try:
        return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["format"] in KINDS
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _is_record(path: Path) -> bool:
    """Whether a file begins as the records that we write."""
    try:
        with path.open(encoding="utf-8") as file:
            begin = file.read(1 << 10)
    except (OSError, ValueError):
        return False
    return (f'"format": "{RECORD}"' if path.suffix == ".json" else PAGE) in begin


def publish(
    folder: Path,
    target: Path,
    manifest: Mapping[str, Any],
    *,
    load: Callable[[Path], object],
    records: Mapping[str, str],
    hashes: Mapping[str, str] | None = None,
    replace: bool = False,
) -> None:
    """Write the manifest of a release in a working folder, with the hashes of all files (some are known), load it as
    others will, and give it and its internal records their names.
    """
    known = hashes or {}
    files = {path.name: known.get(path.name) or file_hash(path) for path in sorted(folder.iterdir())}
    text = json.dumps({**manifest, "files": files}, indent=1, ensure_ascii=False) + "\n"
    write_new(folder / MANIFEST, text)
    load(folder)
    for ending, record in records.items():
        write_new(folder.with_name(ending), record)
    _give_name(folder, target, replace=replace)


def _give_name(folder: Path, target: Path, *, replace: bool) -> None:
    """Make a finished folder the release; the records of one that it replaces go with that one."""
    for path in folder.iterdir():
        path.chmod(0o644)
        sync(path)
    folder.chmod(0o755)  # the folder around it is private
    sync(folder)
    check_free(target, replace=replace)
    give_names(folder.parent, records_of(target) | {folder.name: target}, replace=replace)


def copy_release(source: Path, target: Path, *, replace: bool) -> None:
    """A whole and unchanged release at another place."""
    target = target.absolute()
    read_manifest(source)
    check_free(target, replace=replace)
    with workplace(target) as place:
        folder = place / "release"
        folder.mkdir()
        for path in source.iterdir():
            shutil.copyfile(path, folder / path.name)
        read_manifest(folder)
        _give_name(folder, target, replace=replace)


def read_manifest(folder: Path, expected: str = FORMAT) -> dict[str, Any]:
    """The manifest of a release of the expected format, whose files are all there and unchanged."""
    refuse_fork()
    if not folder.is_dir():
        raise ReleaseError(f"{folder}: there is no such release folder.")
    path = folder / MANIFEST
    if not path.is_file():
        raise ReleaseError(
            f"{folder} is not a release: it has no {MANIFEST}; it may have been cut short while it was written."
        )
    _check_entries(folder)
    try:
        manifest = parse_json(read_text(path, "manifest", ReleaseError, megabytes=64))
        entries = JsonPart(manifest).named()
        kind, version = (entries.get(name, JsonPart(None)).value for name in ("format", "version"))
        if kind != expected or version != VERSION or type(version) is not int:
            raise ReleaseError(
                f"{folder} has format {kind!r:.40} version {version!r:.20}; here anonfit reads '{expected}' "
                f"version {VERSION}."
            )
        files = {name: part.text() for name, part in _described(JsonPart(manifest), expected)["files"].named().items()}
    except Damaged as error:
        raise ReleaseError(f"{path} is damaged: {error}; make the release again.") from None
    _check_files(folder, files)
    return manifest  # type: ignore[no-any-return]


def _described(manifest: JsonPart, expected: str) -> dict[str, JsonPart]:
    """The entries of a manifest, all of them known and of the right kind."""
    of_table = ("data", "rows") if expected == FORMAT else ()
    parts = manifest.table(
        (
            "format",
            "version",
            "anonfit",
            "packages",
            "engine",
            "algorithm",
            "spec",
            "audit",
            "files",
            "created",
            *of_table,
        )
    )
    for name in ("anonfit", "engine", "algorithm", "created"):
        parts[name].text()
    for name in ("packages", "spec", "audit", "files", *of_table):
        parts[name].plain()
    if expected != FORMAT:
        parts["files"].table(TREE_FILES)
    else:
        data = parts["data"].table(("file", "rows", "columns", "texts"))
        kind = data["file"].word([data_name(kind) for kind in FORMATS])
        data["rows"].whole(0, 2**63 - 1)
        if not set(data["texts"].texts()) <= set(data["columns"].texts()):
            raise data["texts"].refused("names columns that the data has not")
        parts["files"].table((kind, "recoding.json", "report.json", "report.html"))
    return parts


def _check_entries(folder: Path) -> None:
    """A release is made of files: a link would lead out of it, a pipe would never end."""
    for path in folder.iterdir():
        if path.is_symlink() or not path.is_file():
            raise ReleaseError(f"{path} is not a file of the release itself, but a folder, link or device.")


def _check_files(folder: Path, files: dict[str, str]) -> None:
    """The files of a folder are those of its manifest, unchanged."""
    present = {entry.name for entry in folder.iterdir()} - {MANIFEST}
    if present != set(files):
        differing = ", ".join(sorted(present ^ set(files)))
        raise ReleaseError(
            f"{folder}: the files are not those of the manifest ({differing}); the release was changed after it "
            "was made."
        )
    for name, expected in files.items():
        if file_hash(folder / name) != expected:
            raise ReleaseError(
                f"{folder / name} was changed after the release was made: its hash is not the manifest's."
            )
