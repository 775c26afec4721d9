# SPDX-License-Identifier: Apache-2.0
"""From a workload to the purpose that engines read, once a table's quasi-identifiers are coded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.criteria.purpose import BLIND, Purpose, WeightRule
from anonfit.criteria.selections import CodedSelections
from anonfit.criteria.targets import ClassTarget, NumberTarget, Target
from anonfit.errors import DataError, SpecError
from anonfit.tables.coded import CodedTable
from anonfit.workload.features import feature_weights
from anonfit.workload.request import TargetRequest, Workload
from anonfit.workload.targets import number_target, rounded_sum, share_target

if TYPE_CHECKING:
    import polars as pl

__all__ = ["denoised", "fits", "masses_of", "purpose_of", "require_target", "unit_masses"]

RULES = {
    "first": WeightRule.FIRST,
    "product": WeightRule.PRODUCT,
    "blend": WeightRule.BLEND,
    "naive": WeightRule.NAIVE,
    "probabilistic": WeightRule.CHANCE,
    "combined": WeightRule.COMBINED,
}
MASS_BITS = 10
"""The mean sample weight is a whole number of about so many bits."""

LARGEST_WEIGHT = 1e150
"""Of a sample weight: sums of larger ones may be more than a number can hold."""


def unit_masses(
    weights: pl.Series, counts: NDArray[np.int64], times: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], float]:
    """What each row counts in criteria, in whole units of so many persons; every row counts at least one unit. `times`
    says how often each row stands in the table, if not once.
    """
    import polars as pl

    numbers = weights.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    if not ((numbers >= 0).all() and (numbers <= LARGEST_WEIGHT).all() and (numbers > 0).any()):
        raise DataError(
            f"sample-weight column '{weights.name}': weights must be numbers of at most {LARGEST_WEIGHT:g}, none of "
            "them missing or negative, and not all 0; mend them."
        )
    # Rounded once, so that the unit does not depend on the order of rows.
    often = np.ones(len(numbers), np.int64) if times is None else times
    mean = rounded_sum(numbers * counts, often) / int((counts * often).sum())
    unit = float(2.0 ** (np.floor(np.log2(mean)) - MASS_BITS))
    masses = np.clip(np.rint(numbers * counts / unit), 1, 2**32 - 1)
    return masses.astype(np.int64), unit


def masses_of(weights: pl.Series, counts: NDArray[np.uint32] | None) -> NDArray[np.int64]:
    """What each row counts in criteria by its sample weight, in whole units."""
    persons = np.ones(len(weights), np.int64) if counts is None else counts.astype(np.int64)
    return unit_masses(weights, persons)[0]


def purpose_of(
    workload: Workload,
    names: Sequence[str],
    targets: tuple[Target, ...] = (),
    selections: CodedSelections | None = None,
    masses: NDArray[np.int64] | None = None,
    unit: float = 1.0,
) -> Purpose:
    """The purpose of a workload over quasi-identifiers of these names, given what was coded for it."""
    split_on = frozenset(names.index(name) for name in workload.split_on) if workload.split_on else None
    if workload.is_blind:
        return BLIND if split_on is None else Purpose(split_on=split_on)
    if workload.criterion == "clustering":
        features = feature_weights(workload, names)
        # Dividing another column makes rows alike too, but no label of a feature tells it: features come first.
        return Purpose(
            targets=targets,
            weights=tuple(float(name in features) for name in names),
            rule=WeightRule.FIRST,
            min_gain=workload.min_gain,
            split_on=split_on,
            masses=masses,
            unit=unit,
        )
    return Purpose(
        targets=targets,
        selections=selections,
        all_cuts=workload.candidates == "all",
        weights=tuple(float(workload.weights.get(name, 1.0)) for name in names) if workload.weights else (),
        rule=RULES[workload.weight_rule] if workload.weights else WeightRule.NONE,
        alpha=workload.alpha,
        beta=workload.beta,
        gamma=workload.gamma,
        seed=workload.seed,
        min_gain=workload.min_gain,
        split_on=split_on,
        masses=masses,
        unit=unit,
    )


def require_target(workload: Workload, found: Sequence[Target]) -> None:
    """Refuse a criterion that was named and has nothing to judge."""
    if not found and workload.criterion in ("infogain", "lsd"):
        wanted = (
            "nominal target (or classes of a numeric one)" if workload.criterion == "infogain" else "numeric target"
        )
        raise SpecError([f"method.criterion = '{workload.criterion}' needs a {wanted}, and the workload has none."])


def fits(criterion: str, target: Target) -> bool:
    """Whether a criterion that was named is about this kind of target."""
    if criterion == "infogain":
        return not isinstance(target, NumberTarget)
    return criterion != "lsd" or isinstance(target, NumberTarget)


def denoised(
    request: TargetRequest,
    target: Target,
    table: CodedTable,
    weights: NDArray[Any] | None,
    *,
    masses: NDArray[np.int64],
    seed: int,
    threads: int | None,
) -> Target:
    """A target as models see it that were fitted on other rows; it is not predicted from itself."""
    from anonfit.workload.denoising import cross_fitted_numbers, cross_fitted_shares

    kept = [index for index in range(len(table.columns)) if index != target.column]
    columns, codes = [table.columns[index] for index in kept], [table.codes[index] for index in kept]
    if isinstance(target, ClassTarget):
        shares = cross_fitted_shares(
            columns, codes, target.classes, target.width, weights=weights, seed=seed, threads=threads
        )
        return share_target(request, shares, own=target.column)
    assert isinstance(target, NumberTarget)
    numbers = cross_fitted_numbers(
        columns, codes, target.scale.restore(target.multiples), weights=weights, seed=seed, threads=threads
    )
    return number_target(request, numbers, masses=masses, own=target.column)
