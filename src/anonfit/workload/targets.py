# SPDX-License-Identifier: Apache-2.0
"""What a release is for, as it was asked: the plain form that a spec, keywords and estimators are turned into; and
targets, from a column to the classes or numbers that criteria sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.criteria.objectives import AUTO, OBJECTIVES, Objective, TargetKind
from anonfit.criteria.targets import SHARE_BITS, ClassTarget, Impurity, NumberTarget, ShareTarget, Target
from anonfit.errors import DataError, RequestError, SpecError, listed
from anonfit.privacy.coding import sensitive_column
from anonfit.tables.codebook import column_type, typed
from anonfit.tables.scales import LARGEST_NUMBER, fixed_point
from anonfit.tables.schema import Column, ColumnType
from anonfit.workload.denoising import fixed_shares
from anonfit.workload.selections import SelectionRequest


@dataclass(frozen=True, slots=True)
class TargetRequest:
    """A column to be predicted: as it is, in classes that thresholds part, or in classes of equal width.

    With a fitted `model` its predictions steer the splits in place of the column's values.
    """

    column: str
    classes: tuple[float, ...] = ()
    equal_width: int | None = None
    weight: float = 1.0
    scale: bool = True
    model: Any = None


@dataclass(frozen=True, slots=True)
class Workload:
    """Targets, selections and weights, and how they steer the splits."""

    targets: tuple[TargetRequest, ...] = ()
    denoise: bool = False
    selections: tuple[SelectionRequest, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    weights_from: str | None = None
    features: tuple[str, ...] = ()
    criterion: str = "auto"
    candidates: str = "boundary"
    split_on: tuple[str, ...] = ()
    weight_rule: str = "first"
    alpha: float = 0.5
    beta: float = 0.25
    gamma: float = 0.25
    min_gain: float | None = 0.0
    """What a split must gain for the targets; None: more than one more group costs (`Target.price`)."""
    deals: int | None = None
    """How often rows are dealt to models where there are few; None: as often as their number asks for."""
    seed: int = 0
    sample_weight: str | None = None

    @property
    def objective(self) -> Objective:
        """What the criterion stands for."""
        return OBJECTIVES[self.criterion]

    @property
    def is_blind(self) -> bool:
        """Whether targets, selections and weights are left out of account."""
        return self.objective.is_blind

    @property
    def used_targets(self) -> tuple[TargetRequest, ...]:
        """The targets that steer splits."""
        objective = self.objective
        return self.targets if objective.uses_targets or objective.explores else ()

    @property
    def used_selections(self) -> tuple[SelectionRequest, ...]:
        """The selections that steer splits."""
        return self.selections if self.objective.uses_selections else ()


NOTHING = Workload()
"""No use is known."""


FEW = 2
FEW_WHOLE = 20
"""Numbers with at most so many different values, or whole numbers, are classes unless the column is declared to be
continuous.
"""


def is_numeric(request: TargetRequest, column: Column, values: pl.Series, objective: Objective = AUTO) -> bool:
    """Whether a target is a number, not a class: what is declared, what the criterion needs, or what it looks like."""
    if request.classes or request.equal_width:
        return False
    kind = column_type(column, values.dtype)
    if kind in (ColumnType.NOMINAL, ColumnType.ORDINAL) or column.taxonomy is not None:
        return False
    if column.type is None and values.dtype.is_numeric():
        known = values.drop_nulls()
        is_whole = known.dtype.is_integer() or bool((known.cast(pl.Float64) % 1 == 0).all())
        if objective.serves is not None:
            return objective.serves == TargetKind.NUMBERS or not is_whole
        most = FEW_WHOLE if is_whole else FEW
        # A few rows nearly always tell; all of them take long to look at.
        return bool(known.head(1000).n_unique() > most or known.n_unique() > most)
    return True


def _numbers(column: Column, values: pl.Series) -> NDArray[np.float64]:
    """The numbers behind a column of numbers, dates or times; NaN where a value is missing."""
    known = typed(column, values)
    if not known.dtype.is_numeric():
        known = known.to_physical()
    numbers: NDArray[np.float64] = known.cast(pl.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)
    if (np.abs(numbers) > LARGEST_NUMBER).any():
        raise DataError(
            f"target '{values.name}': some values are infinite, or too large to be squared; mend them or make classes "
            "of them."
        )
    return numbers


def classes_of(request: TargetRequest, column: Column, values: pl.Series) -> tuple[NDArray[np.int64], int]:
    """The class of each row and how many classes there are; missing is a class of its own, the first."""
    if not (request.classes or request.equal_width):
        # As declared, unless that would make numbers of the classes.
        declared = column.type if column.type in (ColumnType.NOMINAL, ColumnType.ORDINAL) else None
        weights = np.ones(len(values), np.int64)
        coded, codes = sensitive_column(
            values, weights, type=declared, order=column.order, date_format=column.date_format
        )
        return codes.astype(np.int64), coded.size
    kind = column_type(column, values.dtype)
    if not values.dtype.is_numeric() and kind != ColumnType.CONTINUOUS:
        found = f"workload.targets: '{request.column}' is a column of type {kind}: only numbers can be made classes by"
        raise SpecError([f"{found} numbers; leave them out."])
    numbers = _numbers(column, values)
    missing = np.isnan(numbers)
    edges = np.array(request.classes, dtype=np.float64)
    if request.equal_width and not missing.all():
        edges = _equal_edges(float(numbers[~missing].min()), float(numbers[~missing].max()), request.equal_width)
    gap = int(missing.any())
    classes = np.searchsorted(edges, numbers, side="right") + gap
    return np.where(missing, 0, classes).astype(np.int64), len(edges) + 1 + gap


def _equal_edges(low: float, high: float, count: int) -> NDArray[np.float64]:
    """Where classes of equal width meet, each edge rounded once: whoever checks them finds the same."""
    lowest, width = Fraction(low), Fraction(high) - Fraction(low)
    return np.array([float(lowest + width * step / count) for step in range(1, count)], dtype=np.float64)


def not_scaled(name: str) -> str:
    """Why a scale is refused of a target whose classes are told."""
    return f"workload.targets: scale of '{name}' is for numbers, and it steers by classes; remove it."


def code_target(
    request: TargetRequest,
    column: Column,
    values: pl.Series,
    *,
    masses: NDArray[np.int64],
    own: int,
    objective: Objective = AUTO,
    times: NDArray[np.int64] | None = None,
) -> Target:
    """A target's own values; `own` is its number among quasi-identifiers, or -1, and rows stand so many times each."""
    if is_numeric(request, column, values, objective):
        return number_target(request, _numbers(column, values), masses=masses, own=own, times=times)
    if not request.scale:
        raise SpecError([not_scaled(request.column)])
    classes, width = classes_of(request, column, values)
    return ClassTarget(request.column, classes, width, request.weight, own, objective.impurity)


def number_target(
    request: TargetRequest,
    numbers: NDArray[np.float64],
    *,
    masses: NDArray[np.int64],
    own: int,
    times: NDArray[np.int64] | None = None,
) -> NumberTarget:
    """Numbers in fixed point, each so many times; a missing one stands at the mean, where it tells nothing."""
    known = ~np.isnan(numbers)
    if not known.any():
        raise DataError(f"target '{request.column}' has no value at all; leave it out of the workload.")
    filled = numbers
    if not known.all():
        often = np.ones(len(numbers), np.int64) if times is None else times
        filled = np.where(known, numbers, rounded_sum(numbers[known], often[known]) / int(often[known].sum()))
    scale = fixed_point(float(filled.min()), float(filled.max()), persons=int(masses.sum()))
    return NumberTarget(request.column, scale.quantize(filled), scale, request.weight, own, request.scale)


def rounded_sum(numbers: NDArray[np.float64], times: NDArray[np.int64]) -> float:
    """The sum of numbers, each so many times, rounded once: it does not depend on their order."""
    if (times == 1).all():
        return math.fsum(numbers)
    pairs = zip(numbers.tolist(), times.tolist(), strict=True)
    return float(sum((Fraction(number) * often for number, often in pairs), Fraction(0)))


def can_predict(model: Any) -> bool:
    """Whether something is a model, fitted or not: an object that predicts."""
    words = ("predict", "predict_proba")
    return not isinstance(model, type) and any(callable(getattr(model, word, None)) for word in words)


def predicted_target(
    request: TargetRequest,
    frame: pl.DataFrame,
    quasi_identifiers: Sequence[str],
    *,
    masses: NDArray[np.int64],
    own: int,
    measured_by: Impurity = Impurity.ENTROPY,
) -> Target:
    """What a fitted model predicts of each row: shares of classes if it gives probabilities, else its predictions."""
    names = list(getattr(request.model, "feature_names_in_", quasi_identifiers))
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise SpecError([f"workload.targets: the model of '{request.column}' needs the column '{absent[0]}'."])
    rows: Any = frame.select(names)
    # A model that scikit-learn fitted on an array knows how many features there are, but not their names.
    on_array = hasattr(request.model, "n_features_in_") and not hasattr(request.model, "feature_names_in_")
    rows = rows.to_numpy() if on_array else rows.to_pandas()
    if hasattr(request.model, "predict_proba"):
        shares = _predictions(request, "predict_proba", rows, names)
        are_numbers = shares.ndim == 2 and shares.dtype.kind in "fiu"
        if not are_numbers or not (np.isfinite(shares) & (shares >= 0)).all() or not shares.any(axis=1).all():
            raise RequestError(
                f"workload.targets: predict_proba of the model of '{request.column}' must give every row a share of "
                "each class, none negative or missing; use a model of one target that does."
            )
        fixed = fixed_shares(shares.astype(np.float64), bits=SHARE_BITS)
        return ShareTarget(request.column, fixed, request.weight, own, measured_by)
    predicted = _predictions(request, "predict", rows, names)
    if predicted.ndim != 1:
        raise RequestError(
            f"workload.targets: the model of '{request.column}' predicts several columns; use one that predicts one."
        )
    if predicted.dtype.kind == "f" and np.isinf(predicted).any():
        raise RequestError(f"workload.targets: some predictions of the model of '{request.column}' are infinite.")
    is_whole = predicted.dtype.kind in "iu" or (predicted.dtype.kind == "f" and bool((predicted % 1 == 0).all()))
    if predicted.dtype.kind in "fiu" and len(np.unique(predicted)) > (FEW_WHOLE if is_whole else FEW):
        return number_target(request, predicted.astype(np.float64), masses=masses, own=own)
    values, classes = np.unique(predicted.astype(str), return_inverse=True)
    return ClassTarget(request.column, classes.astype(np.int64), len(values), request.weight, own, measured_by)


def _predictions(request: TargetRequest, word: str, rows: Any, names: Sequence[str]) -> NDArray[Any]:
    """What a model says of the rows. What it says of a failure may hold values of records, so only its kind is told."""
    model = f"workload.targets: the model of '{request.column}'"
    try:
        predicted = np.asarray(getattr(request.model, word)(rows))
    except Exception as error:
        if type(error).__name__ == "NotFittedError":
            raise RequestError(f"{model} is not fitted; fit it first.") from None
        raise RequestError(
            f"{model} failed with {type(error).__name__} when its {word} was given the columns {listed(names, 20)}; "
            "fit it on these columns, by name or in this order, as the table has them."
        ) from None
    if len(predicted.shape) == 0 or len(predicted) != len(rows):
        raise RequestError(f"{model} must predict something of each of the {len(rows)} rows; found {predicted.shape}.")
    return predicted
