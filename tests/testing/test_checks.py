# SPDX-License-Identifier: Apache-2.0
"""The checks for privacy models and criteria: those of the package pass, and what is wrong with others is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from anonfit.criteria.objectives import MEDIAN, SplitObjective
from anonfit.criteria.targets import ClassTarget
from anonfit.privacy.catalogue import make_model
from anonfit.privacy.diversity import DistinctL
from anonfit.privacy.models import SensitiveColumn
from anonfit.tables.schema import CodedTable
from anonfit.testing.checks import check_criterion, check_privacy_model


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("distinct-l", {"l": 2}),
        ("entropy-l", {"l": 1.5}),
        ("recursive-cl", {"c": 2.0, "l": 2}),
        ("t-closeness", {"t": 0.3, "distance": "equal"}),
        ("alpha-k", {"alpha": 0.7}),
        ("beta-likeness", {"beta": 1.0}),
        ("delta-disclosure", {"delta": 1.0}),
    ],
)
def test_models_of_the_package_pass(model: str, parameters: dict[str, Any]) -> None:
    check_privacy_model(lambda column: make_model(column, model, parameters))


class NeverEven(DistinctL):
    """A model that is said to be monotone and is not."""

    __slots__ = ()

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        allowed: NDArray[np.bool_] = counts.sum(axis=-1) % 2 == 1
        return allowed


class OfAnotherKernel(DistinctL):
    """A model whose kernel asks for less."""

    __slots__ = ()

    def allows(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        allowed: NDArray[np.bool_] = (counts > 0).sum(axis=-1) >= self.l + 1
        return allowed


class WithoutKernel(DistinctL):
    """A model that was given no branch in the kernel."""

    __slots__ = ()
    kernel = 99


def test_a_model_that_kernels_do_not_know_is_told() -> None:
    with pytest.raises(ValueError, match="no branch in its kernel"):
        check_privacy_model(lambda column: WithoutKernel(column, 2))


@pytest.mark.parametrize(("model", "fault"), [(NeverEven, "monotone"), (OfAnotherKernel, "another tree")])
def test_what_is_wrong_with_a_model_is_said(model: type[DistinctL], fault: str) -> None:
    def make(column: SensitiveColumn) -> DistinctL:
        return model(column, 2)

    with pytest.raises(AssertionError, match=fault):
        check_privacy_model(make)


def _classes(rng: np.random.Generator, table: CodedTable) -> SplitObjective:
    return SplitObjective(targets=(ClassTarget("died", rng.integers(0, 3, table.rows), 3),))


def test_criteria_of_the_package_pass() -> None:
    check_criterion(_classes)
    check_criterion(lambda _rng, _table: MEDIAN)


def test_a_criterion_that_kernels_do_not_follow_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from anonfit.testing import reference

    plain = reference.grow
    monkeypatch.setattr(reference, "grow", lambda table, k, _objective: plain(table, k, MEDIAN))
    with pytest.raises(AssertionError, match="another tree"):
        check_criterion(_classes)
