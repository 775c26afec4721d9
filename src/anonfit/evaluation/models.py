# SPDX-License-Identifier: Apache-2.0
"""The models that recipients will make: what they predict, from which columns, for which rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anonfit.errors import RequestError, did_you_mean, listed
from anonfit.evaluation.labels import Labels, labels_of
from anonfit.release.run import workload_of
from anonfit.spec.model import Spec
from anonfit.tables.schema import Column, Role, Schema
from anonfit.workload.targets import TargetRequest

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ModelSpec", "Task", "default_models", "model_of", "tasks_of"]

SEEN = (Role.QUASI_IDENTIFIER, Role.INSENSITIVE, Role.SENSITIVE)
"""Roles of columns that a model may learn from if it does not say which."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that a recipient will make."""

    target: str
    using: tuple[str, ...] | None = None
    """The columns it learns from; None: all that are released and no targets."""
    where: str | None = None
    """The rows it is for: it learns from released rows that may be such, and is tested on rows that are."""
    name: str = ""

    @property
    def title(self) -> str:
        """What it is called in results."""
        if self.name:
            return self.name
        using = "" if self.using is None else f" using {', '.join(self.using)}"
        return f"{self.target}{using}{f' where {self.where}' if self.where else ''}"


@dataclass(frozen=True, slots=True)
class Task:
    """A model held against a table: what it predicts, and the columns it sees."""

    model: ModelSpec
    labels: Labels
    using: tuple[str, ...]


def model_of(given: ModelSpec | Mapping[str, Any] | str) -> ModelSpec:
    """A model from a table such as `{"target": "cost", "using": ["age"], "where": "age >= 50"}`, or from the name of
    its target.
    """
    if isinstance(given, ModelSpec):
        return given
    if isinstance(given, str):
        return ModelSpec(given)
    known = ("target", "using", "where", "name")
    for word in given:
        if word not in known:
            raise RequestError(f"a model has no setting '{word}'; {did_you_mean(str(word), known)}")
    if not isinstance(given.get("target"), str):
        raise RequestError("a model needs a target: the name of the column to predict.")
    using = given.get("using")
    if isinstance(using, str):
        raise RequestError(f"using = '{using}' must be a list of columns, such as ['{using}'].")
    return ModelSpec(
        given["target"], None if using is None else tuple(using), given.get("where"), given.get("name", "")
    )


def default_models(spec: Spec) -> tuple[ModelSpec, ...]:
    """One model for each target of the workload."""
    if not spec.targets:
        raise RequestError(
            "the spec has no target, so there is nothing to predict: give a column the role 'target', or name models."
        )
    return tuple(ModelSpec(target.column) for target in spec.targets)


def tasks_of(models: Sequence[ModelSpec], spec: Spec, schema: Schema, frame: pl.DataFrame) -> tuple[Task, ...]:
    """Models held against a table; faults name the model."""
    requests = {target.column: target for target in workload_of(spec).targets}
    columns = {column.name: column for column in schema.columns}
    twice = [title for title, times in Counter(model.title for model in models).items() if times > 1]
    if twice:
        raise RequestError(f"two models are called {listed(twice)}; give each a name of its own.")
    found = []
    for model in models:
        column = _known(model.target, columns, f"the model '{model.title}' predicts")
        request = requests.get(model.target, TargetRequest(model.target))
        labels = labels_of(request, column, frame)
        found.append(Task(model, labels, _used(model, columns, set(requests))))
    return tuple(found)


def _known(name: str, columns: Mapping[str, Column], what: str) -> Column:
    if name not in columns:
        raise RequestError(f"{what} '{name}', which is no column of the table; {did_you_mean(name, columns)}")
    if columns[name].role in (Role.ENTITY, Role.IDENTIFIER):
        raise RequestError(f"{what} '{name}', which has the role '{columns[name].role}' and is not released.")
    return columns[name]


def _used(model: ModelSpec, columns: Mapping[str, Column], targets: Iterable[str]) -> tuple[str, ...]:
    if model.using is None:
        others = {model.target, *(name for name in targets if columns[name].role == Role.TARGET)}
        return tuple(name for name, column in columns.items() if column.role in SEEN and name not in others)
    for name in model.using:
        _known(name, columns, f"the model '{model.title}' uses")
        if name == model.target:
            raise RequestError(f"the model '{model.title}' predicts '{name}', so it cannot use it.")
    if len(set(model.using)) < len(model.using):
        raise RequestError(f"the model '{model.title}' names a column twice; name each once.")
    return model.using
