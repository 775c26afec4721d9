# SPDX-License-Identifier: Apache-2.0
"""Audits a release folder: its files, its columns against their roles, its labels against the recoding, then its data.
The package itself calls `audit_data` before a folder is published; `audit_release` is for folders that are."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anonfit.auditing.api import read_other
from anonfit.auditing.diversity import read_demand
from anonfit.auditing.meanings import Meaning, read_meaning
from anonfit.auditing.measuring import run_audit
from anonfit.auditing.reading import open_table
from anonfit.auditing.request import Attacker, OtherRelease, Request, column_sets
from anonfit.auditing.result import Audit, Finding
from anonfit.auditing.risk import THRESHOLDS, Threshold, read_threshold
from anonfit.errors import RecodingError, ReleaseError

__all__ = ["audit_data", "audit_release", "other_release"]

_RAW_ROLES = ("target", "sensitive", "insensitive", "count", "sample-weight")
_FEWER = re.compile(r"fewer than (\d+)")


@dataclass(frozen=True, slots=True)
class Folder:
    """The parts of a release folder that an audit goes by."""

    path: Path
    manifest: Mapping[str, Any]
    recoding: Mapping[str, Any]
    data: Path


def audit_release(
    folder: str | Path,
    *,
    source: object = None,
    other: object = None,
    population: object = None,
    sampling_fraction: float | None = None,
    max_risk: str | float | None = None,
    attacker: Attacker = "prosecutor",
    thresholds: Sequence[str | float | Threshold] = THRESHOLDS,
    missing: Sequence[str] | None = None,
) -> Audit:
    """Audit a release folder against its own manifest, recoding and spec.

    Args:
        folder: The release folder.
        source: The raw rows it was made from; without it, what the file says is all that can be checked.
        other: A second release of the same source, as for `audit`.
        population: The population the data was drawn from.
        sampling_fraction: The share of the population that is in the data.
        max_risk: The highest acceptable risk of the `attacker`: a number or the name of a preset.
        attacker: Whose risk `max_risk` is about.
        thresholds: The shares of persons above these are reported.
        missing: Texts that mean missing in the source, if the spec in the manifest does not say.

    Returns:
        What was found; `passed` says whether the folder holds what its manifest says.
    """
    opened = _opened(Path(folder))
    rows, stated = opened.manifest["rows"], opened.manifest["data"]
    return audit_data(
        opened.data,
        spec=opened.manifest["spec"],
        recoding=opened.recoding,
        columns=stated.get("columns"),
        released=(rows.get("released"), stated.get("rows")),
        withheld=_withheld(rows),
        source=source,
        other=other,
        population=population,
        sampling_fraction=sampling_fraction,
        max_risk=max_risk,
        attacker=attacker,
        thresholds=thresholds,
        missing=missing,
        findings=_file_findings(opened),
    )


def audit_data(
    data: object,
    *,
    spec: Mapping[str, Any],
    recoding: Mapping[str, Any],
    columns: Sequence[str] | None = None,
    released: Sequence[int | None] = (),
    withheld: int | range | None = None,
    source: object = None,
    other: object = None,
    population: object = None,
    sampling_fraction: float | None = None,
    max_risk: str | float | None = None,
    attacker: Attacker = "prosecutor",
    thresholds: Sequence[str | float | Threshold] = THRESHOLDS,
    missing: Sequence[str] | None = None,
    findings: Sequence[Finding] = (),
) -> Audit:
    """Audit written data against a spec and a recoding, given as the mappings of manifest.json and recoding.json.

    `columns` is the order of columns that was promised, `released` are numbers of rows that were.
    """
    texts = tuple(missing if missing is not None else spec.get("data", {}).get("missing", ("",)))
    names = open_table(data, missing=texts).names
    asked = _request(data, spec, recoding=recoding, names=names, columns=columns)
    noticed = [*findings, *_stated(data, names, columns=columns, released=released), *_beyond(spec, asked, source)]
    return run_audit(
        replace(
            asked,
            entity=None if source is None else asked.entity,
            max_risk=None if max_risk is None else read_threshold(max_risk),
            attacker=attacker,
            thresholds=tuple(read_threshold(one) for one in thresholds),
            source=source,
            withheld=None if source is None else withheld,
            other=None if other is None else read_other(other, asked.quasi_identifiers, meanings=asked.meanings),
            population=population,
            sampling_fraction=sampling_fraction,
            missing=texts,
            findings=tuple(noticed),
        )
    )


def _request(
    data: object,
    spec: Mapping[str, Any],
    *,
    recoding: Mapping[str, Any],
    names: Sequence[str],
    columns: Sequence[str] | None,
) -> Request:
    """What a spec promises of a file with these columns."""
    privacy, output = spec.get("privacy", {}), spec.get("output", {})
    roles = _roles(spec)
    return Request(
        data=data,
        quasi_identifiers=_having(roles, "quasi-identifier"),
        sensitive=tuple(name for name in _having(roles, "sensitive") if name in names),
        k=privacy.get("k"),
        entity=_only(roles, "entity"),
        count=_only(roles, "count"),
        meanings=_meanings(spec, recoding, roles),
        sets=column_sets(privacy.get("quasi_identifiers", ()), privacy.get("k")),
        diversity=tuple(read_demand(entry) for entry in privacy.get("diversity", ())),
        order="sorted" if output.get("order", "sorted") == "sorted" else None,
        expected_columns=_expected(roles, names, columns, spec),
        regions=output.get("regions", "domain"),
        drops_missing=spec.get("data", {}).get("missing_policy") == "drop",
    )


def _beyond(spec: Mapping[str, Any], asked: Request, source: object) -> list[Finding]:
    """What the spec promises but this audit has not the means to check."""
    found = []
    if asked.entity is not None and source is None:
        sentence = "Persons were counted as rows: their entities are only in the source."
        found.append(Finding("entities", asked.entity, None, None, sentence))
    confidence = spec.get("privacy", {}).get("max_confidence", 1.0)
    if confidence < 1.0:
        found.append(Finding("max_confidence", confidence, None, None, "This audit does not check it."))
    return found


def other_release(folder: Path) -> OtherRelease:
    """A release folder as the second release of an audit."""
    opened = _opened(folder)
    spec = opened.manifest["spec"]
    roles = _roles(spec)
    return OtherRelease(opened.data, _having(roles, "quasi-identifier"), _meanings(spec, opened.recoding, roles))


def _opened(folder: Path) -> Folder:
    manifest = _json(folder, "manifest.json")
    if manifest.get("format") != "anonfit release":
        raise ReleaseError(f"The manifest of '{folder.name}' is not that of an anonfit release.")
    if manifest.get("version") != 1:
        raise ReleaseError(
            f"The release '{folder.name}' is of a version this audit does not know: use a newer anonfit."
        )
    lacking = [key for key in ("spec", "data", "rows", "files") if not isinstance(manifest.get(key), Mapping)]
    if lacking:
        raise ReleaseError(f"The manifest of '{folder.name}' has no part '{lacking[0]}'.")
    recoding = _json(folder, "recoding.json")
    if recoding.get("version", 1) != 1:
        raise RecodingError(
            f"The recoding of '{folder.name}' is of a version this audit does not know: use a newer anonfit."
        )
    name = str(manifest["data"].get("file"))
    if Path(name).name != name or not (folder / name).is_file():
        raise ReleaseError(f"The data file that the manifest of '{folder.name}' names is not in the folder.")
    return Folder(folder, manifest, recoding, folder / name)


def _json(folder: Path, name: str) -> dict[str, Any]:
    try:
        found = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ReleaseError(f"'{folder.name}' is no release folder: its {name} is missing or cannot be read.") from None
    if not isinstance(found, dict):
        raise ReleaseError(f"'{folder.name}' is no release folder: its {name} is not an object.")
    return found


def _file_findings(folder: Folder) -> list[Finding]:
    """The folder holds the files of the manifest, unchanged, and no others."""
    listed: Mapping[str, Any] = folder.manifest["files"]
    changed = [name for name, digest in listed.items() if _digest(folder.path / name) != str(digest).lower()]
    unlisted = [name for name in (folder.data.name, "recoding.json") if name not in listed]
    others = sorted(
        path.name for path in folder.path.iterdir() if path.name not in listed and path.name != "manifest.json"
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


def _withheld(rows: Mapping[str, Any]) -> int | range | None:
    """Rows that may be absent: withheld and dropped ones, as far as the manifest tells."""
    exact, unknown = 0, 0
    for name in ("withheld", "dropped"):
        stated = rows.get(name, 0)
        if isinstance(stated, int):
            exact += stated
            continue
        match = _FEWER.fullmatch(str(stated))
        if match is None:
            raise ReleaseError(f"The manifest's number of {name} rows is neither a number nor 'fewer than' one.")
        unknown += int(match[1]) - 1
    return range(exact, exact + unknown + 1) if unknown else exact


def _meanings(spec: Mapping[str, Any], recoding: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, Meaning]:
    """The meaning of every quasi-identifier whose labels can be read; representatives are no labels."""
    entries = {str(entry.get("name")): entry for entry in recoding.get("columns", ())}
    found = {}
    for name in _having(roles, "quasi-identifier"):
        if name not in entries:
            raise RecodingError(f"The recoding says nothing of the quasi-identifier '{name}'.")
        date_format = spec["columns"][name].get("date_format")
        meaning = read_meaning(name, {"date_format": date_format, **entries[name]})
        if meaning.type == "nominal" or spec.get("output", {}).get("values") != "representative":
            found[name] = meaning
    return found


def _stated(
    data: object, names: Sequence[str], *, columns: Sequence[str] | None, released: Sequence[int | None]
) -> list[Finding]:
    """The file has the columns and the number of rows that were stated."""
    found = []
    if columns is not None:
        same = list(columns) == list(names)
        sentence = "The file has the stated columns." if same else "The file has other columns than stated."
        found.append(Finding("stated columns", list(columns), list(names), same, sentence))
    stated = [number for number in released if number is not None]
    if stated:
        rows = open_table(data).height()
        same = all(number == rows for number in stated)
        sentence = (
            "The file has the stated number of rows." if same else "The file has another number of rows than stated."
        )
        found.append(Finding("stated rows", stated[0], rows, same, sentence))
    return found


def _expected(
    roles: Mapping[str, str], names: Sequence[str], columns: Sequence[str] | None, spec: Mapping[str, Any]
) -> tuple[str, ...]:
    """The columns that the roles put into a file, in the stated order; with bounds, two or three for one."""
    wanted: list[str] = []
    for name, role in roles.items():
        bounds = [f"{name}_{end}" for end in ("lower", "upper", "missing")]
        if (
            role == "quasi-identifier"
            and spec.get("output", {}).get("values") == "bounds"
            and set(bounds[:2]) <= set(names)
        ):
            wanted.extend(bound for bound in bounds if bound in names)
        elif role == "quasi-identifier" or role in _RAW_ROLES:
            wanted.append(name)
    if spec.get("data", {}).get("default_role") in _RAW_ROLES:
        wanted.extend(name for name in names if name not in roles and name not in wanted)
    order = {name: place for place, name in enumerate(columns or ())}
    return tuple(sorted(wanted, key=lambda name: order.get(name, len(order))))


def _roles(spec: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(entry.get("role")) for name, entry in spec.get("columns", {}).items()}


def _having(roles: Mapping[str, str], role: str) -> tuple[str, ...]:
    return tuple(name for name, its in roles.items() if its == role)


def _only(roles: Mapping[str, str], role: str) -> str | None:
    return next(iter(_having(roles, role)), None)
