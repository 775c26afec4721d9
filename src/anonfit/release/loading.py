# SPDX-License-Identifier: Apache-2.0
"""Reading a release folder back: only one that is whole and unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.errors import ReleaseError
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.storage import read_recoding
from anonfit.release.folder import read_manifest
from anonfit.runtime.strict_json import Damaged, JsonPart, parse_json, read_text
from anonfit.tables.formats import format_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Loaded", "load_folder"]


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
            said = target.table(("column", "kind", "used"), target.named())
            said["column"].text(), said["kind"].text(), said["used"].flag()
    except Damaged as error:
        raise ReleaseError(f"{path} is damaged: {error}; make the release again.") from None
    return report.plain()


def load_folder(folder: Path, *, rows: bool = True) -> Loaded:
    """Data, recoding, report and manifest of a release folder; without `rows` only the columns of the data."""
    manifest = read_manifest(folder)
    recoding = read_recoding(folder / "recoding.json")
    return Loaded(_table(folder, manifest, None if rows else 0), recoding, _report(folder), manifest)
