# SPDX-License-Identifier: Apache-2.0
"""recoding.json as the audit reads it: what the labels of its columns mean, and its regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anonfit.auditing.meanings import Meaning, read_meaning
from anonfit.auditing.region_grid import RegionGrid, read_region_grid
from anonfit.auditing.region_tree import RegionTree, read_region_tree
from anonfit.auditing.settings import Settings
from anonfit.errors import RecodingError

__all__ = ["Recoded", "read_meanings", "read_recoding"]

_COLUMN = ("name", "type", "scale", "missing", "domain", "cuts", "order", "other", "taxonomy", "date_format")


@dataclass(frozen=True, slots=True)
class Recoded:
    """A recoding: its columns, in the order of the file, and its regions."""

    meanings: Mapping[str, Meaning]
    tree: RegionTree | RegionGrid


def read_recoding(recoding: object, date_formats: Mapping[str, str | None]) -> Recoded:
    """The mapping of recoding.json; `date_formats` is how the spec says that dates are written, where it is silent."""
    if not isinstance(recoding, Mapping):
        raise RecodingError("The recoding is not an object.")
    found = Settings(recoding, "the recoding", RecodingError)
    if found.entries.get("format") != "anonfit recoding":
        raise RecodingError("The recoding is not one of anonfit: its format is another.")
    version = found.get("version", int)
    if version not in (1, 2):
        raise RecodingError("The recoding is of a version this audit does not know: use a newer anonfit.")
    found.known(("format", "version", "columns", "nodes" if version == 1 else "parts"))
    meanings = read_meanings(found, date_formats)
    if version == 2:
        return Recoded(meanings, read_region_grid(found.entries.get("parts"), meanings))
    return Recoded(meanings, read_region_tree(found.entries.get("nodes"), meanings))


def read_meanings(recoding: Settings, date_formats: Mapping[str, str | None]) -> dict[str, Meaning]:
    """What the labels of the columns mean."""
    meanings: dict[str, Meaning] = {}
    for column in recoding.parts("columns"):
        meaning = _meaning(column, date_formats)
        if meaning.name in meanings:
            raise RecodingError(f"The recoding has the column '{meaning.name}' twice.")
        meanings[meaning.name] = meaning
    return meanings


def _meaning(column: Settings, date_formats: Mapping[str, str | None]) -> Meaning:
    """The meaning of one column."""
    name = column.get("name", str)
    column.known(_COLUMN).get("missing", bool)
    written = column.get("date_format", str, None) or date_formats.get(name)
    return read_meaning(name, {**column.entries, "date_format": written})
