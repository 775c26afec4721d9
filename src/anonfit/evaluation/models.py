# SPDX-License-Identifier: Apache-2.0
"""The models that recipients will make: what they predict, from which columns, for which rows. These are, of released
rows, those whose region overlaps a predicate, and of raw rows those that satisfy it. And what learners see of rows:
regions as numbers, raw values as they are or as regions of one value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import RequestError, SpecError, did_you_mean, listed
from anonfit.estimators import features
from anonfit.estimators.features import Encoding, Numbers, feature_column
from anonfit.estimators.reading import RawReader, is_raw
from anonfit.evaluation.learners import Predicts
from anonfit.metrics.queries import bounded_domains, domains_of
from anonfit.recoding.columns import NominalCells, OrdinalCells, RecodedColumn
from anonfit.recoding.imprecision import answer, overlapping
from anonfit.recoding.recoding import Recoding, cells_of_codes
from anonfit.recoding.values import Unseen
from anonfit.release.bind import workload_of
from anonfit.spec.model import SelectionSpec, Spec
from anonfit.tables.codebook import typed
from anonfit.tables.schema import Column, ColumnType, Role, Schema
from anonfit.workload.parsing import parse_predicate
from anonfit.workload.predicates import kinds_of
from anonfit.workload.selections import Selections, code_selections, predicates_of
from anonfit.workload.targets import TargetRequest, is_numeric
from anonfit.workload.truth import RawTable, holds

if TYPE_CHECKING:
    from anonfit.tables.schema import Persons

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
class ModelTask:
    """A model held against a table: what it predicts, and the columns it sees."""

    model: ModelSpec
    labels: TargetLabels
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


def tasks_of(models: Sequence[ModelSpec], spec: Spec, schema: Schema, frame: pl.DataFrame) -> tuple[ModelTask, ...]:
    """Models held against a table; faults name the model."""
    requests = {target.column: target for target in workload_of(spec).targets}
    columns = {column.name: column for column in schema.columns}
    twice = [title for title, times in Counter(model.title for model in models).items() if times > 1]
    if twice:
        raise RequestError(f"two models are called {listed(twice)}; give each a name of its own.")
    tasks = []
    for model in models:
        column = _known(model.target, columns, f"the model '{model.title}' predicts")
        request = requests.get(model.target, TargetRequest(model.target))
        labels = labels_of(request, column, frame)
        tasks.append(ModelTask(model, labels, _used(model, columns, set(requests))))
    return tuple(tasks)


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


@dataclass(frozen=True, slots=True)
class TargetLabels:
    """How the values of a column become what is predicted."""

    column: Column
    predicts: Predicts
    edges: tuple[float, ...] = ()
    """Where classes of numbers meet."""

    @property
    def is_generalized(self) -> bool:
        """Whether the release holds a region in place of the value."""
        return self.column.role == Role.QUASI_IDENTIFIER

    def raw(self, frame: pl.DataFrame) -> pl.Series:
        """The labels of raw rows, missing where the value is."""
        values = frame[self.column.name]
        if self.predicts == "numbers" or self.edges:
            return self._of_numbers(_numbers(self.column, values))
        return values.cast(pl.String)

    def released(self, frame: pl.DataFrame, regions: Callable[[str], FeatureColumns]) -> pl.Series:
        """The labels that a release of raw rows holds: of a quasi-identifier, what is in the middle of its region.

        Args:
            frame: The raw rows.
            regions: From an encoding to the features of the rows' regions.
        """
        if not self.is_generalized:
            return self.raw(frame)
        return self._of_numbers(regions(Encoding.EXPECTED).columns[self.column.name][0].to_numpy())

    def _of_numbers(self, numbers: NDArray[np.float64]) -> pl.Series:
        values = pl.Series(self.column.name, numbers).fill_nan(None)
        if not self.edges:
            return values
        classes = np.searchsorted(np.array(self.edges), numbers, side="right")
        return pl.select(pl.when(values.is_not_null()).then(pl.Series(classes).cast(pl.String))).to_series()


def labels_of(request: TargetRequest, column: Column, frame: pl.DataFrame) -> TargetLabels:
    """What is predicted of a target; classes of equal width divide the range of all raw rows."""
    values = frame[column.name]
    if is_numeric(request, column, values):
        labels = TargetLabels(column, "numbers")
    else:
        edges = request.classes
        if request.equal_width:
            numbers = _numbers(column, values)
            ends = np.linspace(np.nanmin(numbers), np.nanmax(numbers), request.equal_width + 1)
            edges = tuple(ends[1:-1].tolist())
        labels = TargetLabels(column, "classes", edges)
    if labels.is_generalized and labels.predicts == "classes" and not labels.edges:
        raise RequestError(
            f"the target '{column.name}' is a quasi-identifier with classes, and a release tells groups of them only; "
            "only numbers can be learned from regions. Give it the role 'target', or leave it out of the models."
        )
    return labels


def _numbers(column: Column, values: pl.Series) -> NDArray[np.float64]:
    """The numbers of a column, dates in days since 1970; NaN where a value is missing."""
    known = typed(column, values)
    if not is_raw(known.dtype):
        raise RequestError(f"the target '{column.name}' holds no numbers, so there is nothing to estimate.")
    return RawReader(column.name).numbers(known.to_frame(column.name), Encoding.ENDS)[:, 0]


@dataclass(frozen=True, slots=True)
class LearnedRecoding:
    """A recoding and the rows it was learned from."""

    recoding: Recoding
    schema: Schema
    frame: pl.DataFrame
    persons: Persons
    k: int
    observed: bool = False
    """Whether labels say what the rows of a group have (`regions = "observed"`), not all that belongs to its region."""

    def asked(
        self, selections: Sequence[SelectionSpec], frame: pl.DataFrame
    ) -> tuple[Selections, list[NDArray[np.int32]]]:
        """Selections of rows over codes, which have the boundaries of the selections, and the cell of each code."""
        predicates = predicates_of(selections, self.schema.columns, self.frame)
        own = domains_of(self.schema.columns, self.frame, self.persons, self.k)
        domains = bounded_domains(own, predicates)
        coded = code_selections(selections, self.schema.columns, domains, frame)
        return coded, cells_of_codes(self.recoding, domains)


def answered(learned: LearnedRecoding, where: str, frame: pl.DataFrame, nodes: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which released rows, each in a node (row,), may satisfy a predicate; only columns that are released as they are
    tell rows of a node apart.
    """
    selected, cells = learned.asked([SelectionSpec(where=where)], frame)
    return overlapping(selected.coded, learned.recoding.boxes, nodes, cells=cells)[:, 0]


def satisfied(where: str, schema: Schema, frame: pl.DataFrame) -> NDArray[np.bool_]:
    """Which raw rows satisfy a predicate."""
    try:
        return holds(parse_predicate(where, kinds_of(schema.columns, frame)), frame)
    except SpecError as error:
        raise SpecError([f"where = '{where}': {fault}" for fault in error.faults]) from None


def imprecision(learned: LearnedRecoding, selections: Sequence[SelectionSpec], nodes: NDArray[np.int32]) -> float:
    """How many of the rows that a recoding was learned from are in the answers to selections though they do not
    satisfy them, each by its selection's weight. nodes: (row,) of these rows.
    """
    selected, cells = learned.asked(selections, learned.frame)
    true = RawTable(learned.frame).count(selected.predicates)
    return answer(selected.coded, learned.recoding.boxes, nodes, cells=cells, true=true).total


# --- features ----------------------------------------------------------------------------------------------------

ENCODINGS = tuple(map(str, Encoding))
SUITED = "suited"
"""Each learner is given the encoding that suits it."""
NOTHING = "nothing"
"""The feature of rows that no column says anything of: the same for all."""


@dataclass(frozen=True, slots=True)
class FeatureColumns:
    """The features of some rows, by the column they come from."""

    rows: int
    columns: Mapping[str, tuple[pl.Series, ...]]

    def frame(self, using: Iterable[str] | None = None) -> pl.DataFrame:
        """The features of some columns side by side; all if none are named."""
        names = self.columns if using is None else [name for name in using if name in self.columns]
        features = [series for name in names for series in self.columns[name]]
        return pl.DataFrame(features or [pl.Series(NOTHING, np.zeros(self.rows))])

    def beside(self, other: FeatureColumns) -> FeatureColumns:
        """These features and others of the same rows."""
        return FeatureColumns(self.rows, {**self.columns, **other.columns})

    def taken(self, rows: NDArray[np.integer]) -> FeatureColumns:
        """The features of some of the rows."""
        return FeatureColumns(
            len(rows),
            {name: tuple(series.gather(rows) for series in features) for name, features in self.columns.items()},
        )


def recoded_features(recoding: Recoding, nodes: NDArray[np.int32], encoding: str) -> FeatureColumns:
    """The features of every quasi-identifier of rows that end in these nodes (row,), without the detour over labels."""
    used, places = np.unique(nodes, return_inverse=True)
    columns = {}
    for index, column in enumerate(recoding.columns):
        parts, which = features.parts_of_nodes(recoding, used.astype(np.int32), index)
        numbers = feature_column(column).numbers(parts, Encoding(encoding))[which]
        columns[column.name] = _series(column, numbers.take(places, axis=0), encoding)
    return FeatureColumns(len(nodes), columns)


def one_value_features(recoding: Recoding, frame: pl.DataFrame, encoding: str) -> FeatureColumns:
    """The features of raw rows beside those of regions: a value is the region that holds nothing else, and a name that
    the recoding does not know may be any.
    """
    columns = {}
    for column in recoding.columns:
        numbers = _one_value_numbers(column, recoding.typed(frame, column.name), Encoding(encoding))
        columns[column.name] = _series(column, numbers, encoding)
    return FeatureColumns(len(frame), columns)


def plain_features(columns: Iterable[Column], frame: pl.DataFrame) -> FeatureColumns:
    """The features of raw values: numbers and dates as numbers, ranks of ordinal words, names as texts."""
    return FeatureColumns(len(frame), {column.name: (_plain(column, frame[column.name]),) for column in columns})


def _series(column: RecodedColumn, numbers: Numbers, encoding: str) -> tuple[pl.Series, ...]:
    names = feature_column(column).features(Encoding(encoding), column.name)
    return tuple(pl.Series(name, np.ascontiguousarray(numbers[:, place])) for place, name in enumerate(names))


def _one_value_numbers(column: RecodedColumn, values: pl.Series, encoding: Encoding) -> Numbers:
    """The features of regions of one value. # (row, feature)"""
    shape = feature_column(column)
    missing = values.is_null().to_numpy()
    if isinstance(column, NominalCells):
        places = places_of(column, values, missing)
        size = len(column.taxonomy.leaves)
        # One part for each leaf, one for a value that is not known and may be any, one for a missing one.
        leaves = [[leaf] for leaf in range(size)]
        parts = features.Leaves([*leaves, range(size), []], np.arange(size + 2) > size)
        return shape.numbers(parts, encoding).take(places, axis=0)
    if isinstance(column, OrdinalCells):
        places = places_of(column, values, missing)
        numbers = np.where(places < len(column.order), places, np.nan)
    else:
        numbers = RawReader(column.name).numbers(values.to_frame(column.name), encoding)[:, 0]
    return shape.numbers(features.Intervals(numbers, numbers, features.missing_share(~missing, missing)), encoding)


def places_of(column: NominalCells | OrdinalCells, values: pl.Series, missing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The place of each value among the leaves or words; one more than the last where it is not known, two more where
    it is missing and may be.
    """
    shift = int(column.has_missing)
    size = column.size - shift
    places = np.full(len(values), size + shift)  # without a missing value, such a one is not known
    cells = column.cells_of(values.drop_nulls()).astype(np.int64) - shift
    other = column.other_cell - shift if isinstance(column, NominalCells) else -1
    places[~missing] = np.where(cells >= 0, cells, other if other >= 0 else size)
    return places


def _plain(column: Column, values: pl.Series) -> pl.Series:
    if column.order:
        ranks = {word: rank for rank, word in enumerate(column.order)}
        return values.cast(pl.String).replace_strict(ranks, default=None, return_dtype=pl.Float64)
    if column.type != ColumnType.NOMINAL and column.taxonomy is None:
        if column.type is not None:
            values = typed(column, values)
        if is_raw(values.dtype):
            numbers = RawReader(values.name).numbers(values.to_frame(), Encoding.ENDS)[:, 0]
            return pl.Series(values.name, numbers)
    return values.cast(pl.String)


def nodes_of(recoding: Recoding, frame: pl.DataFrame) -> NDArray[np.int32]:
    """The node that each raw row ends in; one with a value that the recoding does not know, in an inner node."""
    return recoding.nodes(recoding.cells(frame, unseen=Unseen.ANCESTOR), threads=1)
