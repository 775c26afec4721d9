# SPDX-License-Identifier: Apache-2.0
"""What is compared of one release: from its report what was counted when it was made, from its table and recoding what
must be measured alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.api import Release
from anonfit.metrics.extents import Extents
from anonfit.metrics.group_sizes import group_figures, sizes_of
from anonfit.metrics.locating import released_nodes
from anonfit.metrics.losses import losses
from anonfit.metrics.mixture import mixture
from anonfit.recoding.values import Values
from anonfit.tables.schema import Role, Schema
from anonfit.workload.targets import TargetRequest, classes_of

if TYPE_CHECKING:
    import polars as pl

    from anonfit.spec.model import Spec

__all__ = ["Compared", "figures"]

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
    def spec(self) -> Spec:
        """Its spec, as far as it is public."""
        return self.release._made.spec

    @property
    def schema(self) -> Schema:
        """Its columns."""
        return self.release._made.schema

    @property
    def table(self) -> pl.DataFrame:
        """Its rows."""
        return self.release._made.table

    @property
    def k(self) -> int:
        """The persons that were asked of a group."""
        return int(self.report["asked"]["k"])

    @cached_property
    def counts(self) -> NDArray[Any] | None:
        """(row,) the persons that rows stand for."""
        names = self.spec.of_role(Role.COUNT)
        return self.table[names[0]].to_numpy() if names else None

    @property
    def rows_are_persons(self) -> bool:
        """Whether persons can be counted in the table: not where they have several rows."""
        return not self.spec.of_role(Role.ENTITY)

    @property
    def withheld(self) -> int:
        """The persons that are withheld, where they may be told and are rows."""
        told = self.report["rows"]["withheld"]
        return told if isinstance(told, int) and self.counts is None and self.rows_are_persons else 0

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """(row,) the group of each row: rows that say the same of all quasi-identifiers."""
        raw = {column.name for column in self.schema.released_raw}
        said = self.table.select([name for name in self.table.columns if name not in raw])
        numbers: NDArray[np.int64] = said.to_struct("group").rank("dense").to_numpy().astype(np.int64) - 1
        return numbers


def figures(item: Compared, extents: Extents, unnamed: Mapping[str, int]) -> dict[str, Any]:
    """All that is compared of a release, as plain data."""
    report = item.report
    asked = report["asked"]
    return {
        "name": item.name,
        "asked": {
            key: asked[key]
            for key in ("k", "quasi_identifiers", "diversity", "max_confidence", "algorithm", "targets", "denoise")
        }
        | {key: asked.get(key) for key in ("values", "regions", "order")},
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
    found: dict[str, Any] = {"average_group": item.report["audit"]["sizes"]["mean"], "discernibility": None}
    found["c_avg"] = None if found["average_group"] is None else found["average_group"] / item.k
    if item.rows_are_persons:
        sizes = group_figures(sizes_of(item.groups, item.counts), k=item.k, withheld=item.withheld)
        found |= {"discernibility": sizes.discernibility}
    nodes, reason = _nodes(item)
    measured = None
    if nodes is not None:
        measured = losses(
            item.release.recoding,
            nodes,
            extents=extents,
            unnamed=unnamed,
            counts=item.counts,
            withheld=item.withheld,
        ).to_dict()
    found |= {"losses": measured, "losses_not_measured": reason}
    found["detail_kept"] = {line["column"]: line["kept"] for line in item.report.get("detail") or ()}
    found["targets"] = [one.to_dict() for one in _mixtures(item)]
    return found


def _nodes(item: Compared) -> tuple[NDArray[np.int32] | None, str | None]:
    """The region of each row, or why it is not known."""
    if item.spec.output.regions == "observed":
        return None, OBSERVED
    nodes = released_nodes(item.release.recoding, item.table, Values(item.spec.output.values))
    return nodes, AMBIGUOUS if nodes is None else None


def _mixtures(item: Compared) -> list[Any]:
    """How mixed the classes of targets are that are released as they are."""
    columns = {column.name: column for column in item.schema.of_role(Role.TARGET)}
    found = []
    for target in item.report["asked"]["targets"]:
        column = columns.get(target["column"])
        if column is None or target["kind"] != "classes":
            continue
        request = TargetRequest(column.name, tuple(target.get("classes", ())), target.get("equal_width"))
        classes, _ = classes_of(request, column, item.table[column.name])
        found.append(mixture(column.name, item.groups, classes, counts=item.counts, withheld=item.withheld))
    return found
