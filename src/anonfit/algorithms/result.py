# SPDX-License-Identifier: Apache-2.0
"""What every algorithm gives: a recoding, what its codes stand for, and the nodes that have rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.recoding.recoding import Recoding
from anonfit.tables.schema import CodedColumn, Domain
from anonfit.workload.objectives import LearnedWeights

if TYPE_CHECKING:
    from anonfit.recoding.imprecision import Answers
    from anonfit.workload.selections import AskedSelections


@dataclass(frozen=True, slots=True)
class SelectionAnswers:
    """How well each selection of a workload can be answered, and what should be known of some of them."""

    names: tuple[str, ...]
    answers: Answers
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Anonymized:
    """A recoding of a table; where the rows are in memory also their numbers and nodes, region by region."""

    recoding: Recoding
    numbers: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))  # (place,)
    nodes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))  # (place,)
    answers: SelectionAnswers | None = None
    steered: Mapping[str, bool] | None = None
    """The targets that steered splits, and whether each did as a number; None where that is not known."""
    refinements: Mapping[str, Any] | None = None
    """How top-down refinement came to it, as `refinement_log` says it."""
    learned: LearnedWeights | None = None
    """The weights of columns, where they were found from the rows."""
    domains: Sequence[Domain] = ()
    """What the codes of the quasi-identifiers stand for."""
    columns: tuple[CodedColumn, ...] = ()
    used: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """The nodes that have rows."""
    levels: int = 0
    """How many levels of the tree were counted out of core."""
    selections: AskedSelections | None = None
    """What is to be answered."""
