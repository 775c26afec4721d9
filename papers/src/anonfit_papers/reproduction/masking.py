# SPDX-License-Identifier: Apache-2.0
"""What the experiments of TKDE 2007 do: mask training and test records together by top-down refinement, learn from the
one part, and count errors on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from anonfit.algorithms.top_down import anonymize_top_down
from anonfit.engines.memory.engine import MemoryEngine
from anonfit.evaluation.learners import Model, learner
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Values, recoded_columns
from anonfit.release.bind import demands_of, refining_of, schema_of, workload_of
from anonfit.runtime.process import unstoppable
from anonfit.spec.keywords import spec_of_keywords
from anonfit.spec.model import Spec
from anonfit_papers.datasets_divided import Divided

J48 = "j48"

_ERRORS: dict[tuple[str, str, str, int], float] = {}
"""Errors on masked tables of this process: many k give the same table."""


@dataclass(frozen=True)
class Masked:
    """A table with some columns masked."""

    table: Divided
    recoding: Recoding = field(repr=False)
    refinements: Mapping[str, Any] = field(repr=False)
    """The refinements, as `Anonymized` has them."""
    columns: Mapping[str, pl.Series] = field(repr=False)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """All columns, those that are masked as names of their parts."""
        return self.table.frame.with_columns(
            column.cast(pl.String).alias(name) for name, column in self.columns.items()
        )

    @property
    def parts(self) -> dict[str, int]:
        """How many parts each masked column has."""
        return {name: column.n_unique() for name, column in self.columns.items()}

    def error(self, name: str, seed: int = 0) -> float:
        """The error of a learner on the masked test records, in percent (AE)."""
        key = f"{self.table.name} {self.table.division}", self.recoding.to_json(), name, seed
        if key not in _ERRORS:
            _ERRORS[key] = error_of(self.table, self.frame, name, seed)
        return _ERRORS[key]


def spec_of_masking(
    table: Divided, requirements: Sequence[tuple[Sequence[str], int]], *, suppress: bool, **words: Any
) -> Spec:
    """What is asked: quasi-identifiers with their k; all other columns are released as they are."""
    named = [name for name in table.predictors if any(name in columns for columns, _ in requirements)]
    names = [name for name in named if not table.frame[name].dtype.is_numeric()]
    kinds: dict[str, Any] = {"types": dict.fromkeys(names, "nominal")}
    if not suppress:
        kinds = {"taxonomies": {name: table.taxonomies[name] for name in names}}
    return spec_of_keywords(
        None,
        {
            "quasi_identifiers": named,
            "insensitive": [name for name in table.predictors if name not in named],
            "targets": [table.target],
            "k": max(k for _, k in requirements),
            "algorithm": "tdr",
            "requirements": [{"columns": list(columns), "k": k} for columns, k in requirements],
            "cut_points": "value",
            "consent": True,
            **kinds,
            **words,
        },
    )


def mask(
    table: Divided,
    requirements: Sequence[tuple[Sequence[str], int]],
    *,
    suppress: bool = False,
    threads: int | None = 1,
    steps: int | None = None,
    **words: Any,
) -> Masked:
    """Mask a table by top-down refinement.

    Args:
        table: The table; its training and test records are masked together.
        requirements: The quasi-identifiers, each with its k.
        suppress: Whether names are suppressed; by default they are generalized along the table's taxonomies.
        threads: How many to use.
        steps: How many refinements are made at most; all if not given.
        words: Settings of the method.

    Returns:
        The masked table.
    """
    spec = spec_of_masking(table, requirements, suppress=suppress, **words)
    refining = refining_of(spec)
    assert refining is not None
    result = anonymize_top_down(
        MemoryEngine(table.frame),
        schema_of(spec, table.frame.columns),
        demands=demands_of(spec),
        workload=workload_of(spec),
        refining=refining,
        cut_points=spec.method.cut_points,
        threads=threads,
        stopping=unstoppable if steps is None else partial(_after, steps),
    )
    nodes = np.empty(len(table.frame), np.int32)
    nodes[result.numbers] = result.nodes
    columns = recoded_columns(result.recoding, nodes, Values.LABELS)
    assert result.refinements is not None
    return Masked(table, result.recoding, result.refinements, {name: parts[0] for name, parts in columns.items()})


@contextmanager
def _after(steps: int) -> Iterator[Callable[[], bool]]:
    """Stop when so many refinements were made."""
    asked = iter(range(steps + 1))
    yield lambda: next(asked) == steps


def error_of(table: Divided, frame: pl.DataFrame, name: str, seed: int = 0) -> float:
    """The error of a learner on test records, in percent.

    Args:
        table: Which records are for training, and what is predicted.
        frame: The columns to learn from, and the class.
        name: The learner.
        seed: Its seed.
    """
    return error_of_model(table, frame, learner(name).make(seed))


def error_of_model(table: Divided, frame: pl.DataFrame, model: Model) -> float:
    """The error of a model that is taught with the training records."""
    features, labels = frame.drop(table.target), frame[table.target]
    predicted = model.fit(features[: table.training], labels[: table.training]).predict(features[table.training :])
    wrong = int((predicted != labels[table.training :]).sum())
    return 100 * wrong / max(len(predicted), 1)
