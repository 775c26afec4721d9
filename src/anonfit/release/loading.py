# SPDX-License-Identifier: Apache-2.0
"""Reading a release folder back: only one that is whole and unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.errors import ReleaseError
from anonfit.recoding.recoding import Recoding
from anonfit.release.folder import read_manifest

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

    path = folder / str(manifest["data"]["file"])
    try:
        if path.suffix == ".csv":
            # Types are inferred of what was no text: texts stay texts even where all look like numbers.
            return pl.read_csv(
                path,
                schema_overrides=dict.fromkeys(manifest["data"]["texts"], pl.String),
                infer_schema_length=rows,
                n_rows=rows,
            )
        return pl.read_parquet(path, n_rows=rows) if path.suffix == ".parquet" else pl.read_ipc(path, n_rows=rows)
    except pl.exceptions.PolarsError:
        raise ReleaseError(f"{path} cannot be read; make the release again.") from None


def load_folder(folder: Path, *, rows: bool = True) -> Loaded:
    """Data, recoding, report and manifest of a release folder; without `rows` only the columns of the data."""
    manifest = read_manifest(folder)
    try:
        recoding = Recoding.from_json((folder / "recoding.json").read_text(encoding="utf-8"))
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        table = _table(folder, manifest, None if rows else 0)
    except (KeyError, TypeError, FileNotFoundError, ValueError):
        raise ReleaseError(
            f"{folder}: the manifest does not describe a whole release; make the release again."
        ) from None
    return Loaded(table, recoding, report, manifest)
