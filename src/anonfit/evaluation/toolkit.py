# SPDX-License-Identifier: Apache-2.0
"""ai-privacy-toolkit's anonymizer as a method to compare with, called as its documentation does: on one-hot columns,
with the predictions of a guide that was fitted on the raw training rows. Its tree is grown on these predictions, and a
row is released as the representative of its leaf.

Rows that were not there are sent through the same tree: models that learned from representatives do better on
representatives than on raw rows, by one to four points on census tables.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import MissingPackage, RequestError
from anonfit.evaluation import models
from anonfit.evaluation.judging import HOLDOUT, ReleasedFeatures, TrainingAndTest
from anonfit.evaluation.learners import NumberMatrix
from anonfit.evaluation.methods import TOOLKIT, Method
from anonfit.evaluation.models import FeatureColumns, ModelTask
from anonfit.spec.model import Spec
from anonfit.tables.schema import Role

Matrix = NDArray[np.float64]
GUIDES = ("forest", "gradient boosting")


def anonymize_class() -> tuple[Any, Any]:
    """The toolkit's `Anonymize` and `ArrayDataset`. Its package loads torch and more for its other parts; those that
    are not installed are stood in for, since this part does not use them.
    """
    if "apt.anonymization" not in sys.modules:
        found = find_spec("apt")
        if found is None or find_spec("pandas") is None:
            raise MissingPackage("ai-privacy-toolkit", "toolkit", "Comparing with ai-privacy-toolkit")
        package = ModuleType("apt")
        package.__path__ = list(found.submodule_search_locations or ())
        sys.modules["apt"] = package
        if find_spec("torch") is None:
            torch = ModuleType("torch")
            torch.Tensor = type("Tensor", (), {})  # type: ignore[attr-defined]
            sys.modules["torch"] = torch
    from apt.anonymization import Anonymize
    from apt.utils.datasets import ArrayDataset

    return Anonymize, ArrayDataset


def guide_of(name: str, *, numbers: bool) -> Any:
    """A guide that is not fitted."""
    from sklearn import ensemble

    kind = "Regressor" if numbers else "Classifier"
    if name == "forest":
        return getattr(ensemble, f"RandomForest{kind}")(min_samples_leaf=5, random_state=0, n_jobs=-1)
    return getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=0)


@dataclass(frozen=True)
class Released:
    """Training and test rows as released, and how many groups there are."""

    training: Matrix
    test: Matrix
    groups: int


def released(
    training: Matrix, test: Matrix, predictions: NDArray[Any], k: int, slices: Sequence[range], *, numbers: bool
) -> Released:
    """Training rows anonymized for the predictions of a guide, and test rows by the same tree.

    Args:
        training: One-hot columns first, in the order of `slices`, then numbers.
        test: The same columns.
        predictions: What the guide says of the training rows; several columns for several targets.
        k: The demand.
        slices: The columns of each nominal one.
        numbers: Whether targets are numbers.
    """
    anonymize, dataset = anonymize_class()
    anonymizer = anonymize(
        k,
        list(range(training.shape[1])),
        quasi_identifer_slices=[list(part) for part in slices] or None,
        is_regression=numbers,
    )
    made = np.asarray(anonymizer.anonymize(dataset(training.copy(), predictions)), dtype=np.float64)
    tree = anonymizer._anonymizer
    leaves, first = np.unique(tree.apply(training), return_index=True)
    return Released(made, made[first[np.searchsorted(leaves, tree.apply(test))]], len(leaves))


@dataclass(frozen=True)
class ToolkitMethod:
    """The toolkit with a guide, as a method of `evaluate`. It has no recoding: its release is a table of features."""

    name: str
    guide: str

    def require(self, spec: Spec, tasks: Sequence[ModelTask], protocol: str) -> None:
        """Refuse what the toolkit cannot be asked for."""
        anonymize_class()
        persons = (Role.ENTITY, Role.COUNT, Role.SAMPLE_WEIGHT)
        for asked, what in (
            (spec.privacy.has_models or spec.privacy.quasi_identifiers, "demands other than k"),
            (any(spec.of_role(role) for role in persons), "rows that are not persons"),
            (len({task.labels.predicts for task in tasks}) != 1, "targets that are not of one kind"),
            (any(task.model.where for task in tasks), "models of some rows"),
            (protocol != HOLDOUT, f"protocols other than '{HOLDOUT}'"),
        ):
            if asked:
                raise RequestError(f"the method '{self.name}' knows nothing of {what}; leave it out of the methods.")

    def released(self, division: TrainingAndTest, tasks: Sequence[ModelTask], k: int) -> tuple[ReleasedFeatures, int]:
        """What models see of both parts of a division, and how many groups there are."""
        others = [column for column in division.schema.columns if column.role in (Role.INSENSITIVE, Role.SENSITIVE)]
        own = [column for column in division.schema.columns if column.role == Role.QUASI_IDENTIFIER]
        raw = [models.plain_features(own, frame).frame() for frame in (division.training, division.test)]
        known = NumberMatrix.of(raw[0], np.ones(len(raw[0])), may_be_missing=False)
        training, test = (known.matrix(frame) for frame in raw)
        labels = [task.labels.raw(division.training) for task in tasks]
        predictions = [self._predicted(training, target) for target in labels]
        made = released(
            training,
            test,
            predictions[0] if len(predictions) == 1 else np.stack(predictions, axis=1),
            k,
            known.places_of_texts,
            numbers=tasks[0].labels.predicts == "numbers",
        )
        parts = [
            _features(known, matrix).beside(models.plain_features(others, frame))
            for matrix, frame in ((made.training, division.training), (made.test, division.test))
        ]
        return ReleasedFeatures(parts[0], parts[1]), made.groups

    def _predicted(self, training: Matrix, labels: pl.Series) -> NDArray[Any]:
        """What the guide says of every training row; it learns from those whose label is known."""
        known = labels.is_not_null().to_numpy()
        guide = guide_of(self.guide, numbers=labels.dtype.is_numeric())
        return np.asarray(guide.fit(training[known], labels.filter(known).to_numpy()).predict(training))


TOOLKIT_METHODS = {name: ToolkitMethod(name, guide) for name, guide in zip(TOOLKIT, GUIDES, strict=True)}
"""The toolkit by each guide."""
Way: TypeAlias = Method | ToolkitMethod | str
"""What is compared: a method, the toolkit, or a baseline by its name."""


def _features(known: NumberMatrix, matrix: Matrix) -> FeatureColumns:
    """The columns of a matrix by the quasi-identifier that they come from."""
    columns = {
        name: tuple(pl.Series(f"{name}={place}", matrix[:, place]) for place in places)
        for name, places in known.places.items()
    }
    return FeatureColumns(len(matrix), columns)
