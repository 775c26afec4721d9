# SPDX-License-Identifier: Apache-2.0
"""`af.compare`: reads releases, measures them alike, says where they cannot be compared, and audits every two of them
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl

from anonfit.api import Release, load_table
from anonfit.errors import ReleaseError, RequestError, counted, listed
from anonfit.evaluation.compared import Compared, figures
from anonfit.metrics.losses import common_extents, unnamed_values
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.release.folder import audit_release
from anonfit.runtime.process import Stage, silent
from anonfit.tables.schema import Role


@dataclass(frozen=True, slots=True)
class Comparison:
    """Releases side by side, as plain data. All of it may be passed on: it is of the released files, or obeys the
    disclosure rule.
    """

    releases: tuple[Mapping[str, Any], ...]
    differences: tuple[str, ...]
    pairs: tuple[Mapping[str, Any], ...] = ()

    def __repr__(self) -> str:
        """The names of the releases."""
        return f"Comparison({', '.join(str(release['name']) for release in self.releases)})"

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-ready."""
        return {
            "releases": [dict(release) for release in self.releases],
            "differences": list(self.differences),
            "together": [dict(pair) for pair in self.pairs],
        }

    def to_html(self) -> str:
        """One page that needs nothing from anywhere else."""
        from anonfit.evaluation.comparing_page import comparison_page

        return comparison_page(self.to_dict())

    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write the page.

        Args:
            path: The file to make.
            replace: Whether a file that is already there may be replaced.

        Returns:
            The file.
        """
        from anonfit.report.page import save_page

        return save_page(Path(path), self.to_html(), replace=replace)


def compare(
    *releases: Release | str | Path,
    source: Any = None,
    names: Sequence[str] = (),
    stage: Stage = silent,
) -> Comparison:
    """Put releases side by side: demands, risk, utility, what each column kept.

    Args:
        releases: Two or more release folders, or releases.
        source: The raw table they were made from. With it every two of them are audited together: who has both sees
            smaller groups. That needs folders.
        names: What to call them; their folders' names if not given.
        stage: Told each stage as it begins.

    Returns:
        The comparison: `.to_dict()`, `.to_html()`, `.save(path)`.
    """
    if len(releases) < 2:
        raise RequestError(f"a comparison needs two releases or more; {len(releases)} given.")
    if names and len(names) != len(releases):
        raise RequestError(f"{counted(len(names), 'name')} for {len(releases)} releases; give each one, or none.")
    folders = [Path(release) if isinstance(release, str | Path) else None for release in releases]
    if source is not None and None in folders:
        raise RequestError("releases are audited together as folders; save them, and give their paths.")
    stage("Loading the releases")
    loaded = [_load(release) for release in releases]
    called = list(names) or _names(folders)
    if len(set(called)) < len(called):
        raise RequestError(f"two releases have the same name, or are the same folder: {listed(called)}.")
    items = [Compared(name, release) for name, release in zip(called, loaded, strict=True)]
    stage("Measuring")
    recodings = [item.release.recoding for item in items]
    extents, unnamed = common_extents(recodings), unnamed_values(recodings)
    measured = tuple(figures(item, extents, names) for item, names in zip(items, unnamed, strict=True))
    pairs: list[dict[str, Any]] = []
    if source is not None:
        sides = [Side(item.name, folder, item.k) for item, folder in zip(items, folders, strict=True) if folder]
        pairs = together(sides, source, stage)
    return Comparison(measured, tuple(differences(items)), tuple(pairs))


def _load(release: Release | str | Path) -> Release:
    if isinstance(release, Release):
        return release
    if not isinstance(release, str | Path):
        raise RequestError(f"a release or its folder is compared, not a {type(release).__name__}.")
    path = Path(release)
    if path.is_file():
        raise ReleaseError(f"{path} is a file; name the folder of the release.")
    return load_table(path)


def _names(folders: Sequence[Path | None]) -> list[str]:
    """The names of folders; where two are called the same, as much of their paths as tells them apart."""
    absolute = [None if folder is None else folder.resolve() for folder in folders]
    for parts in range(1, max((len(path.parts) for path in absolute if path is not None), default=1) + 1):
        called = [
            f"release {number}" if path is None else str(Path(*path.parts[-parts:]))
            for number, path in enumerate(absolute, start=1)
        ]
        if len(set(called)) == len(called):
            return called
    return called


def differences(items: Sequence[Compared]) -> list[str]:
    """A sentence for each way in which a release differs from the first so that figures cannot be held side by side."""
    kinds = (_tables, _quasi_identifiers, _columns, _targets)
    of_two = [sentence for other in items[1:] for kind in kinds for sentence in kind(items[0], other)]
    return of_two + [sentence for item in items for sentence in _own(item)]


def _both(first: Compared, other: Compared) -> str:
    return f"{first.name} and {other.name}"


def _only(first: Compared, other: Compared, here: set[str], there: set[str]) -> str:
    own = ((first, here - there), (other, there - here))
    return "; ".join(f"{listed(sorted(names))} only in {item.name}" for item, names in own if names)


def _tables(first: Compared, other: Compared) -> Iterator[str]:
    """Whether both can be of one table."""
    here, there = ({column.name for column in item.draft.schema.columns} for item in (first, other))
    if here != there:
        yield f"{_both(first, other)} are of tables with different columns: {_only(first, other, here, there)}."
    rows = [item.report["rows"]["read"] for item in (first, other)]
    if all(isinstance(number, int) for number in rows) and rows[0] != rows[1]:
        yield (
            f"{_both(first, other)} were made from {rows[0]:,} and {rows[1]:,} rows: of different tables, or of "
            "different states of one. Figures of both say little about which release is better."
        )
    elif names := _different_values(first, other):
        yield (
            f"{_both(first, other)} were made from different tables: they hold other values of {listed(names)}, which "
            "are released as they are. Figures of both say little about which release is better."
        )


def _different_values(first: Compared, other: Compared) -> list[str]:
    """Columns that both release as they are and whose values are not the same; not asked where rows are left out."""
    if len(first.draft.table) != len(other.draft.table):
        return []
    raw = [{column.name for column in item.draft.schema.released_raw} for item in (first, other)]
    different = []
    for name in sorted(raw[0] & raw[1]):
        here, there = first.draft.table[name], other.draft.table[name]
        if here.dtype.is_temporal() or there.dtype.is_temporal():
            continue
        # A file of text has lost the types.
        kind = pl.Float64 if here.dtype.is_numeric() and there.dtype.is_numeric() else pl.String
        if not here.cast(kind).sort().equals(there.cast(kind).sort(), null_equal=True):
            different.append(name)
    return different


def _quasi_identifiers(first: Compared, other: Compared) -> Iterator[str]:
    here, there = (set(item.release.recoding.quasi_identifiers) for item in (first, other))
    if here != there:
        yield (
            f"{_both(first, other)} have different quasi-identifiers: {_only(first, other, here, there)}. Their risks "
            "are against attackers who know different things, and their averages are over different columns."
        )


def _columns(first: Compared, other: Compared) -> Iterator[str]:
    """Columns that both generalize, but whose values are not measured alike."""
    there = {column.name: column for column in other.release.recoding.columns}
    names = [
        column.name
        for column in first.release.recoding.columns
        if column.name in there and not _alike(column, there[column.name])
    ]
    if names:
        yield (
            f"{_both(first, other)} do not tell the same values of {listed(names)} apart (type, names, order or "
            "missing values), so what was lost is not measured alike."
        )


def _alike(column: RecodedColumn, other: RecodedColumn) -> bool:
    if column.has_missing != other.has_missing:
        return False
    match column, other:
        case NominalCells(), NominalCells():
            return _names_hide(column, other) and _names_hide(other, column)
        case OrdinalCells(), OrdinalCells():
            return column.order == other.order
        case OrderedCells(), OrderedCells():
            return column.scale == other.scale or (column.scale.is_number and other.scale.is_number)
    return False


def _names_hide(column: NominalCells, other: NominalCells) -> bool:
    """Whether all names of one column are names of the other, or may be among the values that it does not name."""
    return other.other is not None or set(column.taxonomy.leaves) - {column.other} <= set(other.taxonomy.leaves)


def _targets(first: Compared, other: Compared) -> Iterator[str]:
    """Targets of both whose classes are made otherwise."""
    there = {target["column"]: target for target in other.report["asked"]["targets"]}
    for target in first.report["asked"]["targets"]:
        match = there.get(target["column"])
        if match is not None and any(target.get(key) != match.get(key) for key in ("kind", "classes", "equal_width")):
            yield f"{target['column']}: {_both(first, other)} have different classes of this target."


def _own(item: Compared) -> Iterator[str]:
    """What is not measured of a release by itself."""
    if item.draft.spec.of_role(Role.ENTITY):
        yield f"{item.name}: persons have several rows, which a table does not tell; discernibility is not measured."
    withheld = item.report["rows"]["withheld"]
    if withheld and not item.withheld:
        yield f"{item.name}: figures are of released rows only; withheld ones ({withheld}) are not charged."


JOINT = "joint cells"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the releases."""

    name: str
    folder: Path
    k: int


def together(sides: Sequence[Side], source: Any, stage: Stage) -> list[dict[str, Any]]:
    """Audit every two releases against the table they were made from.

    Two that cannot be audited together are told so; if none can, the first fault is an error.
    """
    pairs, faults = [], []
    for left, right in combinations(sides, 2):
        stage(f"Auditing {left.name} with {right.name}")
        pair: dict[str, Any] = {"releases": [left.name, right.name], "k": min(left.k, right.k)}
        # The smaller k of the two is what both promise, so it is what the cells of both are held against.
        first, second = sorted((left, right), key=lambda side: side.k)
        try:
            audit = audit_release(first.folder, source=source, other=second.folder)
        except RequestError as error:
            faults.append(error)
            pair |= {"joint": None, "holds": None, "faults": [str(error)]}
        else:
            both = next((finding for finding in audit.findings if finding.name == JOINT), None)
            missed = [finding for finding in audit.findings if finding.met is False and finding is not both]
            missed += [] if both is None or both.met is not None else [both]
            pair |= {
                "joint": audit.public(first.k)["joint"],
                "holds": both and both.met,
                "faults": [finding.sentence for finding in missed],
            }
        pairs.append(pair)
    if len(faults) == len(pairs):
        raise faults[0]
    return pairs
