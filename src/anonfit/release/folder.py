# SPDX-License-Identifier: Apache-2.0
"""The folder of a release: written beside its place under another name, and renamed when all of it, manifest last, is
there.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.errors import ReleaseError
from anonfit.processes import is_running
from anonfit.strict_json import Damaged, Part, parse_json, read_text

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "FORMAT",
    "VERSION",
    "check_free",
    "copy_release",
    "data_name",
    "file_hash",
    "publish",
    "read_manifest",
    "sweep",
    "workplace",
    "write_private",
    "write_table",
]

FORMAT = "anonfit release"
VERSION = 1
MANIFEST = "manifest.json"
KINDS = ("csv", "parquet", "arrow")
TREE_FILES = ("model.json", "tree.txt", "tree.svg", "audit.json")
MARK = ".anonfit-"


def data_name(kind: str) -> str:
    """The name of the data file."""
    return f"data.{kind}"


def write_table(table: pl.DataFrame, path: Path, kind: str) -> None:
    """Write the released table."""
    import polars as pl

    try:
        if kind == "csv":
            table.write_csv(path)
        elif kind == "parquet":
            table.write_parquet(path)
        else:
            table.with_columns(pl.col(pl.Enum).cast(pl.Categorical)).write_ipc(path, compression="zstd")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ReleaseError(
            f"the data file could not be written ({type(error).__name__}): is the disk full, or the format unfit "
            "for a column?"
        ) from None


def file_hash(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_free(target: Path, *, replace: bool) -> None:
    """Refuse a place where something else is; a release may be replaced if that is asked."""
    if not target.exists():
        if not target.parent.is_dir():
            raise ReleaseError(f"{target.parent}: there is no such folder to write the release into.")
        return
    if not replace:
        raise ReleaseError(
            f"{target} is already there; choose another place, or allow to replace it (--replace, replace=True)."
        )
    if target.is_symlink() or not (target / MANIFEST).is_file():
        raise ReleaseError(f"{target} is not a release, so it is not replaced; choose another place.")


def sweep(target: Path) -> None:
    """Remove what runs that were killed left beside a release's place."""
    for folder in target.parent.glob(f".{_escaped(target.name)}{MARK}*"):
        process = folder.name.rpartition(MARK)[2].partition("-")[0]
        if process.isdigit() and (int(process) == os.getpid() or not is_running(int(process))):
            shutil.rmtree(folder, ignore_errors=True)


def _escaped(name: str) -> str:
    """A name in which no sign is special to a pattern."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


@contextmanager
def workplace(target: Path) -> Iterator[Path]:
    """A folder beside the target that only we can read; removed at the end unless it was published."""
    sweep(target)
    folder = target.parent / f".{target.name}{MARK}{os.getpid()}-{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise ReleaseError(f"{target.parent}: the release cannot be written there ({error.strerror}).") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish(folder: Path, target: Path, manifest: dict[str, Any], hashes: dict[str, str]) -> None:
    """Write the manifest, with the hashes of all files (some are known), and give the folder its name."""
    files = {path.name: hashes.get(path.name) or file_hash(path) for path in sorted(folder.iterdir())}
    manifest = manifest | {"files": files}
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    _give_name(folder, target)


def _give_name(folder: Path, target: Path) -> None:
    """Make a finished folder the release, in one step."""
    for path in folder.iterdir():
        path.chmod(0o644)
        _sync(path)
    _sync(folder)
    old = None
    if target.exists():
        old = target.parent / f".{target.name}{MARK}{os.getpid()}-{secrets.token_hex(4)}"
        target.rename(old)
    folder.rename(target)
    target.chmod(0o755)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def copy_release(source: Path, target: Path, *, replace: bool) -> None:
    """A whole and unchanged release at another place."""
    target = target.absolute()
    read_manifest(source)
    check_free(target, replace=replace)
    with workplace(target) as folder:
        for path in source.iterdir():
            shutil.copyfile(path, folder / path.name)
        read_manifest(folder)
        _give_name(folder, target)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)


def read_manifest(folder: Path, expected: str = FORMAT) -> dict[str, Any]:
    """The manifest of a release of the expected format, whose files are all there and unchanged."""
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
        entries = Part(manifest).named()
        found_format, version = entries.get("format", Part(None)).value, entries.get("version", Part(None)).value
        if found_format != expected or version != VERSION or type(version) is not int:
            raise ReleaseError(
                f"{folder} has format {found_format!r:.40} version {version!r:.20}; here anonfit reads '{expected}' "
                f"version {VERSION}."
            )
        files = {name: part.text() for name, part in _described(Part(manifest), expected)["files"].named().items()}
    except Damaged as error:
        raise ReleaseError(f"{path} is damaged: {error}; make the release again.") from None
    _check_files(folder, files)
    return manifest  # type: ignore[no-any-return]


def _described(manifest: Part, expected: str) -> dict[str, Part]:
    """The entries of a manifest, all of them known and of the right kind."""
    of_table = ("data", "rows") if expected == FORMAT else ()
    found = manifest.table(
        ("format", "version", "anonfit", "packages", "engine", "algorithm", "spec", "audit", "files", *of_table)
    )
    for name in ("anonfit", "engine", "algorithm"):
        found[name].text()
    for name in ("packages", "spec", "audit", "files", *of_table):
        found[name].plain()
    if expected != FORMAT:
        found["files"].table(TREE_FILES)
    else:
        data = found["data"].table(("file", "rows", "columns", "texts"))
        kind = data["file"].word([data_name(kind) for kind in KINDS])
        data["rows"].whole(0, 2**63 - 1)
        if not set(data["texts"].texts()) <= set(data["columns"].texts()):
            raise data["texts"].refused("names columns that the data has not")
        found["files"].table((kind, "recoding.json", "report.json", "report.html"))
    return found


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
