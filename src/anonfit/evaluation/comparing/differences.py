# SPDX-License-Identifier: Apache-2.0
"""What stands against comparing releases: other tables, other quasi-identifiers, columns measured otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anonfit.errors import listed
from anonfit.evaluation.comparing.figures import Compared
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.tables.schema import Role

__all__ = ["differences"]


def differences(items: Sequence[Compared]) -> list[str]:
    """A sentence for each way in which a release differs from the first so that figures cannot be held side by side."""
    first = items[0]
    found: list[str] = []
    for other in items[1:]:
        found += [*_tables(first, other), *_quasi_identifiers(first, other), *_columns(first, other)]
        found += _targets(first, other)
    for item in items:
        found += _own(item)
    return found


def _both(first: Compared, other: Compared) -> str:
    return f"{first.name} and {other.name}"


def _only(first: Compared, other: Compared, here: set[str], there: set[str]) -> str:
    parts = []
    for item, names in ((first, here - there), (other, there - here)):
        if names:
            parts.append(f"{listed(sorted(names))} only in {item.name}")
    return "; ".join(parts)


def _tables(first: Compared, other: Compared) -> Iterator[str]:
    """Whether both can be of one table."""
    here, there = ({column.name for column in item.schema.columns} for item in (first, other))
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
    import polars as pl

    if len(first.table) != len(other.table):
        return []
    raw = [{column.name for column in item.schema.released_raw} for item in (first, other)]
    found = []
    for name in sorted(raw[0] & raw[1]):
        here, there = first.table[name], other.table[name]
        if here.dtype.is_temporal() or there.dtype.is_temporal():
            continue
        # A file of text has lost the types.
        kind = pl.Float64 if here.dtype.is_numeric() and there.dtype.is_numeric() else pl.String
        if not here.cast(kind).sort().equals(there.cast(kind).sort(), null_equal=True):
            found.append(name)
    return found


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


def _alike(one: RecodedColumn, other: RecodedColumn) -> bool:
    if type(one) is not type(other) or one.has_missing != other.has_missing:
        return False
    if isinstance(one, NominalCells) and isinstance(other, NominalCells):
        return _names_hide(one, other) and _names_hide(other, one)
    if isinstance(one, OrdinalCells) and isinstance(other, OrdinalCells):
        return one.order == other.order
    return isinstance(one, OrderedCells) and isinstance(other, OrderedCells) and one.scale == other.scale


def _names_hide(one: NominalCells, other: NominalCells) -> bool:
    """Whether all names of one column are names of the other, or may be among the values that it does not name."""
    return other.other is not None or set(one.taxonomy.leaves) - {one.other} <= set(other.taxonomy.leaves)


def _targets(first: Compared, other: Compared) -> Iterator[str]:
    """Targets of both whose classes are made otherwise."""
    there = {target["column"]: target for target in other.report["asked"]["targets"]}
    for target in first.report["asked"]["targets"]:
        match = there.get(target["column"])
        if match is not None and any(target.get(key) != match.get(key) for key in ("kind", "classes", "equal_width")):
            yield f"{target['column']}: {_both(first, other)} have different classes of this target."


def _own(item: Compared) -> Iterator[str]:
    """What is not measured of a release by itself."""
    if item.spec.of_role(Role.ENTITY):
        yield f"{item.name}: persons have several rows, which a table does not tell; discernibility is not measured."
    withheld = item.report["rows"]["withheld"]
    if withheld and not item.withheld:
        yield f"{item.name}: figures are of released rows only; withheld ones ({withheld}) are not charged."
