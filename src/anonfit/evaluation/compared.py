# SPDX-License-Identifier: Apache-2.0
"""What is compared of one release: from its report what was counted when it was made, from its table and recoding what
must be measured alike. The region of each row is found by what the row says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.api import Release
from anonfit.engines.tree import LEAF, Grid
from anonfit.errors import DataError, counted
from anonfit.metrics.losses import Extents
from anonfit.metrics.registry import RecodedTable, content, metrics_of
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Values, region_values
from anonfit.release.draft import Draft
from anonfit.tables.schema import Role
from anonfit.workload.targets import TargetRequest, classes_of

OBSERVED = "labels are what the records of a group have, so they are not measured by the recoding"
AMBIGUOUS = "several regions have the same representative"


@dataclass(frozen=True)
class Compared:
    """A release and what it is called."""

    name: str
    release: Release

    @property
    def report(self) -> Mapping[str, Any]:
        """Its public report."""
        return self.release.report

    @property
    def draft(self) -> Draft:
        """Its rows, their columns, and its spec as far as it is public."""
        return self.release._draft

    @property
    def k(self) -> int:
        """The persons that were asked of a group."""
        return int(self.report["asked"]["k"])

    @cached_property
    def counts(self) -> NDArray[Any] | None:
        """(row,) the persons that rows stand for."""
        names = self.draft.spec.of_role(Role.COUNT)
        return self.draft.table[names[0]].to_numpy() if names else None

    @property
    def rows_are_persons(self) -> bool:
        """Whether persons can be counted in the table: not where they have several rows."""
        return not self.draft.spec.of_role(Role.ENTITY)

    @property
    def withheld(self) -> int:
        """The persons that are withheld, where the report gives their number and persons are rows."""
        withheld = self.report["rows"]["withheld"]
        return withheld if isinstance(withheld, int) and self.counts is None and self.rows_are_persons else 0

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """(row,) the group of each row: rows that say the same of all quasi-identifiers."""
        raw = {column.name for column in self.draft.schema.released_raw}
        labels = self.draft.table.select([name for name in self.draft.table.columns if name not in raw])
        numbers: NDArray[np.int64] = labels.to_struct("group").rank("dense").to_numpy().astype(np.int64) - 1
        return numbers


def figures(item: Compared, extents: Extents, unnamed: Mapping[str, int]) -> dict[str, Any]:
    """All that is compared of a release, as plain data."""
    report = item.report
    demands = ("k", "quasi_identifiers", "diversity", "max_confidence", "algorithm", "targets", "denoise")
    return {
        "name": item.name,
        "asked": {key: report["asked"].get(key) for key in (*demands, "values", "regions", "order")},
        "rows": dict(report["rows"]),
        "risk": _risk(report),
        "revealed": [
            {"column": line["name"], "certain": line["certain"]["share"], "likely": line["likely"]["share"]}
            for line in report["audit"]["raw_columns"]
        ],
        "utility": _utility(item, extents, unnamed),
        "predictions": list(report.get("predictions") or ()),
        "inference": list((report.get("attack") or {}).get("inference", ())),
        "selections": report["selections"],
    }


def _risk(report: Mapping[str, Any]) -> dict[str, Any]:
    sizes, prosecutor = report["audit"]["sizes"], report["audit"]["prosecutor"]
    attack = (report.get("attack") or {}).get("re_identification", {})
    return {
        "smallest_group": sizes["smallest"],
        "median_group": sizes["median"],
        "groups": sizes["groups"],
        "highest": prosecutor["highest"],
        "average": prosecutor["average"],
        "above": [
            {"name": line["name"], "threshold": line["threshold"], "share": line["above"]["share"]}
            for line in prosecutor["above"]
        ],
        "attack_chance": attack.get("chance"),
        "attack_highest": attack.get("highest"),
    }


def _utility(item: Compared, extents: Extents, unnamed: Mapping[str, int]) -> dict[str, Any]:
    nodes, reason, output = None, OBSERVED, item.draft.spec.output
    if output.regions != "observed":
        nodes = released_nodes(item.release.recoding, item.draft.table, Values(output.values))
        reason = AMBIGUOUS
    table = RecodedTable(
        item.release.recoding,
        nodes,
        k=item.k,
        counts=item.counts,
        group_of=item.groups,
        knows_persons=item.rows_are_persons,
        withheld=item.withheld,
        extents=extents,
        unnamed=unnamed,
        classes=_classes(item),
    )
    average, targets = item.report["audit"]["sizes"]["mean"], content(table, "compare", "classes", key="column")
    return {
        "average_group": average,
        **{
            metric.name: metric.measure(table) if table.knows("groups") else None
            for metric in metrics_of("compare", "groups")
        },
        "c_avg": None if average is None else average / item.k,
        "losses": content(table, "compare", "regions", key="name"),
        "losses_not_measured": reason if nodes is None else None,
        "detail_kept": {line["column"]: line["kept"] for line in item.report.get("detail") or ()},
        "targets": [] if targets is None else targets["columns"],
    }


def _classes(item: Compared) -> dict[str, NDArray[np.int64]]:
    """The classes of targets that are released as they are."""
    columns = {column.name: column for column in item.draft.schema.of_role(Role.TARGET)}
    classes = {}
    for target in item.report["asked"]["targets"]:
        column = columns.get(target["column"])
        if column is not None and target["kind"] == "classes":
            request = TargetRequest(column.name, tuple(target.get("classes", ())), target.get("equal_width"))
            classes[column.name], _ = classes_of(request, column, item.draft.table[column.name])
    return classes


def released_nodes(recoding: Recoding, table: pl.DataFrame, values: Values) -> NDArray[np.int32] | None:
    """The node of each row (row,) of a released table whose labels are those of whole regions (`regions = "domain"`);
    None where several regions have the same ones, as representatives may be.
    """
    if isinstance(recoding.shape, Grid):
        return _grid_nodes(recoding, table, values)
    leaves = np.flatnonzero(recoding.tree.column == LEAF).astype(np.int32)
    labels = pl.DataFrame([part for parts in region_values(recoding, leaves, values).values() for part in parts])
    return _matched(table, labels, leaves)


def _matched(table: pl.DataFrame, labels: pl.DataFrame, numbers: NDArray[np.int32]) -> NDArray[np.int32] | None:
    """The number of the region whose labels each row has; None where several regions have the same ones."""
    absent = [name for name in labels.columns if name not in table.columns]
    if absent:
        raise DataError(f"the table has no column '{absent[0]}', which the recoding would have written.")
    rows, keys = (part.to_struct("labels") for part in alike(table.select(labels.columns), labels))
    if keys.is_duplicated().any():
        return None
    regions = pl.DataFrame({"labels": keys, "region": numbers})
    matches = rows.to_frame().join(regions, on="labels", how="left", maintain_order="left", nulls_equal=True)["region"]
    if matches.null_count():
        raise DataError(
            f"{counted(matches.null_count(), 'row of the table says', 'rows of the table say')} what no region of the "
            "recoding says; the table and the recoding are not of one release."
        )
    return matches.to_numpy().astype(np.int32)


def _grid_nodes(recoding: Recoding, table: pl.DataFrame, values: Values) -> NDArray[np.int32] | None:
    """The node of each row of a released table, found column by column."""
    grid = recoding.shape
    assert isinstance(grid, Grid)
    part_of_rows = []  # (column, row)
    for index, (column, cells) in enumerate(zip(recoding.columns, grid.columns, strict=True)):
        # A node for each part of this column, with the first part of every other.
        parts = [np.zeros(cells.parts, np.int32) for _ in grid.columns]
        parts[index] = np.arange(cells.parts, dtype=np.int32)
        alone = Grid(grid.columns)
        regions = region_values(Recoding(recoding.columns, alone), alone.number(parts), values)
        part = _matched(table, pl.DataFrame(regions[column.name]), parts[index])
        if part is None:
            return None
        part_of_rows.append(part)
    return grid.number(part_of_rows)


def alike(table: pl.DataFrame, labels: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two frames of the same columns in types that can be compared: a CSV file has lost those of labels and dates."""
    left, right = [], []
    for name in labels.columns:
        here, there = table[name], labels[name]
        if here.dtype == pl.String and there.dtype == pl.Date:
            here = here.str.to_date(strict=False)
        elif here.dtype == pl.String and there.dtype == pl.Datetime:
            here = here.str.to_datetime(time_unit="us", strict=False)
        elif here.dtype.is_numeric() and there.dtype.is_numeric():
            here, there = here.cast(pl.Float64), there.cast(pl.Float64)
        elif here.dtype != there.dtype:
            here, there = here.cast(pl.String), there.cast(pl.String)
        left.append(here)
        right.append(there)
    return pl.DataFrame(left), pl.DataFrame(right)
