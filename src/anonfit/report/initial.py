# SPDX-License-Identifier: Apache-2.0
"""The risk before anything was done: how many persons share each raw combination of quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from anonfit.report.disclosure import few, may_tell, told_number, told_share

if TYPE_CHECKING:
    import polars as pl

__all__ = ["InitialRisk", "initial_content", "initial_risk"]


@dataclass(frozen=True, slots=True)
class InitialRisk:
    """Persons by how many share their raw quasi-identifiers."""

    persons: int
    combinations: int
    smallest: int
    alone: int
    below_k: int


def initial_risk(
    frame: pl.DataFrame, names: Sequence[str], *, k: int, entity: str | None, count: str | None
) -> InitialRisk:
    """Count the persons of every raw combination.

    Args:
        frame: Raw rows.
        names: The quasi-identifiers.
        k: The demand: persons who share their combination with fewer are counted.
        entity: The column that says whose row it is.
        count: The column that says how many persons a row stands for.

    Returns:
        The counts. A person with rows of several combinations counts in each.
    """
    import polars as pl

    # Equal rows have equal hashes; that two others of millions have is far less likely than a fault of the machine.
    hashes = frame.select(names).hash_rows(seed=0)
    if entity is None and count is None:
        ordered = hashes.sort().to_numpy()
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        sizes = np.diff(np.append(starts, len(ordered)))
    else:
        what = pl.col("persons").n_unique() if entity is not None else pl.col("persons").cast(pl.Int64).sum()
        rows = pl.DataFrame({"combination": hashes, "persons": frame[entity or count or ""]})
        sizes = rows.group_by("combination").agg(what)["persons"].to_numpy().astype(np.int64)
    return InitialRisk(
        persons=int(sizes.sum()),
        combinations=len(sizes),
        smallest=int(sizes.min()),
        alone=int(np.count_nonzero(sizes == 1)),
        below_k=int(sizes[sizes < k].sum()),
    )


def initial_content(risk: InitialRisk, least: int) -> dict[str, Any]:
    """The initial risk as it may be told.

    Who are alone is not told where few others are below k: these could be counted by subtraction. Nor is the average
    then, from which the number of combinations follows.
    """
    told = may_tell(risk.alone, risk.persons, least) and may_tell(risk.below_k, risk.persons, least)
    apart = not few(risk.below_k - risk.alone, least)
    hidden = {"persons": "not told", "share": "not told"}
    return {
        "smallest": told_number(risk.smallest, least),
        "alone": told_share(risk.alone, risk.persons, least) if apart else hidden,
        "below_k": told_share(risk.below_k, risk.persons, least),
        "average": risk.combinations / risk.persons if told and apart and risk.persons else None,
    }
