# SPDX-License-Identifier: Apache-2.0
"""From the values of a table to all that a tree is grown from: the domains of its quasi-identifiers, constraints over
its sensitive columns, and the objective of its workload.

Where the rows are in memory, codes are those of every row. Elsewhere an engine gives the different values of columns
and how often each occurs. What is made of these is what the rows themselves would give, and the code of each value is a
field that the engine looks up for its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.demands import Demands, bind_constraints
from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import ClassTarget, NumberTarget, Target
from anonfit.engines.contract import Engine, Field, InMemory
from anonfit.engines.memory.forms import Constraint
from anonfit.engines.memory.layout import MASS, PERSONS, code_name, label_name, sensitive_name, target_name
from anonfit.errors import DataError, SpecError, TaxonomyError
from anonfit.runtime.process import thread_count
from anonfit.tables.codebook import CodedValues, code_column
from anonfit.tables.schema import (
    CodedColumn,
    CodedTable,
    Column,
    Domain,
    KnownValues,
    OrderedDomain,
    Persons,
    Role,
    Schema,
    code_dtype,
    persons_in,
    persons_of,
)
from anonfit.workload import objectives
from anonfit.workload.coding import selection_boundaries, with_boundaries
from anonfit.workload.objectives import LearnedWeights
from anonfit.workload.targets import TargetRequest, Workload, classes_of, code_target, number_target, predicted_target

if TYPE_CHECKING:
    import polars as pl

    from anonfit.workload.predicates import Predicate

IN_ROWS = re.compile(r" \(first in row [^)]*\)")
"""Where an error says in which rows values are."""
NONE: NDArray[Any] = np.zeros(0, np.int64)
PLACE = "\0place"


@contextmanager
def without_row_numbers() -> Iterator[None]:
    """Errors about values speak of different values, which have no row."""
    try:
        yield
    except (DataError, TaxonomyError) as error:
        text, places = IN_ROWS.subn("", str(error))
        if not places:
            raise
        if "distinct value" not in text:
            text = re.sub(r"\b(values? (is|are) not)", r"different \1", text, count=1)
        raise type(error)(text) from None


class TableCoding:
    """What is known of a table, and the fields that its coded rows shall hold."""

    def __init__(self, engine: Engine, schema: Schema, threads: int | None = None) -> None:
        self.engine, self.schema, self.threads = engine, schema, threads
        self.count = schema.name_of(Role.COUNT)
        self.fields: list[Field] = []
        self.codes: dict[str, NDArray[Any]] = {}
        self._known: dict[tuple[str, ...], KnownValues] = {}
        self.persons: Persons | None = None
        """Of every row, where these are in memory."""
        if isinstance(engine, InMemory):
            self.persons = persons_in(schema, engine.frame)
        elif self.count is not None:
            frame, _ = engine.distinct([self.count])
            self.fields.append(Field(PERSONS, frame, self._persons_each(frame).astype(np.uint32)))

    @property
    def by_row(self) -> bool:
        """Whether what is known are the values of every row."""
        return self.persons is not None

    def value_errors(self) -> Any:
        """The context in which values are coded: errors name rows only where rows are in memory."""
        return nullcontext() if self.by_row else without_row_numbers()

    # --- values -----------------------------------------------------------------------------------------------------

    def values(self, *names: str) -> KnownValues:
        """The values of some columns, and the persons of their rows."""
        if names not in self._known:
            if self.persons is not None:
                self._known[names] = KnownValues(self.engine.distinct(names)[0], None, self.persons)
            else:
                self._known[names] = self._counted(names)
        return self._known[names]

    def _persons_each(self, frame: pl.DataFrame) -> NDArray[np.int64]:
        """How many persons one row of each combination of values stands for."""
        return persons_of(len(frame), None if self.count is None else frame[self.count], None).of_rows()

    def _counted(self, names: Sequence[str]) -> KnownValues:
        asked = list(names) if self.count is None or self.count in names else [*names, self.count]
        frame, rows = self.engine.distinct(asked)
        assert rows is not None
        return KnownValues(frame, rows, Persons(len(frame), counts=rows * self._persons_each(frame)))

    def column(self, name: str) -> pl.Series:
        """The values of a column."""
        return self.values(name).frame[name]

    def total(self) -> int:
        """How many persons the table is about."""
        if self.persons is not None:
            return self.persons.total()
        return self.engine.rows if self.count is None else self.values(self.count).persons.total()

    def _add(self, field: str, name: str, codes: NDArray[Any]) -> None:
        """Add a field: the code of each of a column's values, each once even if it occurs with several counts."""
        frame = self.values(name).frame.select(name)
        if not self.by_row and self.count not in (None, name):
            first = frame.with_row_index(PLACE).unique(name, keep="any", maintain_order=True)[PLACE].to_numpy()
            frame, codes = frame[first], codes[first]
        self.fields.append(Field(field, frame, codes))

    def add_class(self, field: str, name: str, codes: NDArray[Any], width: int) -> None:
        """A field of classes that the engine shall hold."""
        if not self.by_row:
            self._add(field, name, codes.astype(code_dtype(width)))

    # --- quasi-identifiers ------------------------------------------------------------------------------------------

    def code(self, columns: Sequence[Column], ks: Sequence[int], predicates: Sequence[Predicate] = ()) -> list[Domain]:
        """The domains of the quasi-identifiers, each of which has its k, with the boundaries of predicates."""
        known = [self.values(column.name) for column in columns]

        def coded(column: Column, values: KnownValues, k: int) -> CodedValues:
            with self.value_errors():
                by_value = code_column(column, values.frame[column.name], persons=values.persons.of_groups, k=k)
            if not predicates or not isinstance(by_value.domain, OrderedDomain):
                return by_value
            boundaries = selection_boundaries(predicates, by_value.domain)
            domain, codes = with_boundaries(by_value.domain, boundaries)
            return CodedValues(domain, codes[by_value.codes])

        with ThreadPoolExecutor(thread_count(self.threads)) as pool:
            every = list(pool.map(coded, columns, known, ks))
        for place, (column, by_value) in enumerate(zip(columns, every, strict=True)):
            self.codes[column.name] = codes = by_value.codes
            if not self.by_row:
                codes = codes.astype(code_dtype(by_value.domain.coded().size))
            self._add(code_name(place), column.name, codes)
        return [by_value.domain for by_value in every]

    def table(self, columns: Sequence[CodedColumn]) -> CodedTable:
        """The coded rows, where these are in memory."""
        assert self.persons is not None
        codes = tuple(self.codes[column.name] for column in columns)
        return CodedTable(tuple(columns), codes, self.engine.rows, self.persons.counts, self.persons.entities)

    # --- constraints ------------------------------------------------------------------------------------------------

    def constraints(self, demands: Demands) -> list[Constraint]:
        """The columns that privacy models are asked of; where rows are elsewhere, their codes become fields."""
        with self.value_errors():
            constraints = bind_constraints(demands, self.schema, self.values)
        if self.by_row:
            return constraints
        for number, constraint in enumerate(constraints):
            self.add_class(sensitive_name(number), constraint.column.name, constraint.codes, constraint.column.size)
        return [replace(constraint, codes=np.zeros(0, np.uint32)) for constraint in constraints]

    # --- objective --------------------------------------------------------------------------------------------------

    def objective(self, workload: Workload, coded: Sequence[CodedColumn]) -> SplitObjective:
        """What steers splits of quasi-identifiers that were coded."""
        names = [column.name for column in coded]
        clusters = workload.objective.clusters
        is_steered = bool(workload.used_targets or workload.used_selections or clusters)
        # Persons with several rows count once with each of them.
        total = self.engine.rows if self.persons is not None and self.persons.counts is None else self.total()
        masses, unit = None, 1.0
        if workload.sample_weight is not None and is_steered:
            masses, unit, total = self.masses(workload.sample_weight)
        elif workload.sample_weight is not None:
            self._unit_masses(workload.sample_weight)  # they are released, so they are checked
        if workload.is_blind:
            return objectives.objective_of(workload, names)
        targets = self._features(workload, coded, masses, total) if clusters else self._targets(workload, coded, total)
        return objectives.objective_of(workload, names, targets, masses=masses, unit=unit)

    def _targets(self, workload: Workload, coded: Sequence[CodedColumn], total: int) -> tuple[Target, ...]:
        """The targets that a criterion is about, by their own values or by models that are given."""
        declared = {column.name: column for column in self.schema.columns}
        names = [column.name for column in coded]
        whole = np.array([total])
        targets: list[Target] = []
        for request in workload.used_targets:
            own = names.index(request.column) if request.column in names else -1
            if request.model is not None:
                assert isinstance(self.engine, InMemory)
                predicted = predicted_target(
                    request, self.engine.frame, names, masses=whole, own=own, measured_by=workload.objective.impurity
                )
                targets.extend([predicted] if workload.objective.fits(predicted) else [])
                continue
            known = self.values(request.column)
            column, values = declared[request.column], known.frame[request.column]
            asked: dict[str, Any] = {"masses": whole, "own": own, "objective": workload.objective, "times": known.times}
            with self.value_errors():
                target = code_target(request, column, values, **asked)
            if workload.objective.fits(target):
                name = label_name if workload.denoise else target_name
                targets.append(self._target(target, request.column, name(len(targets))))
        kind = workload.objective.serves
        if not targets and kind is not None:  # a criterion was named, and has nothing to judge
            criterion = workload.objective.name
            raise SpecError([f"method.criterion = '{criterion}' needs a {kind}, and the workload has none."])
        return tuple(targets)

    def _features(
        self, workload: Workload, coded: Sequence[CodedColumn], masses: NDArray[np.int64] | None, total: int
    ) -> tuple[Target, ...]:
        """The features that clusters are made of; `total` is the mass of all rows."""
        declared = {column.name: column for column in coded}
        targets: list[Target] = []
        weights = objectives.feature_weights(workload, list(declared))
        if not weights:
            raise SpecError(["method.criterion = 'clustering' needs a feature among the quasi-identifiers."])
        for name, weight in weights.items():
            column, codes, known = declared[name], self.codes[name].astype(np.int64), self.values(name)
            numbers = objectives.feature_numbers(column, codes, known.frame[name])
            target: Target
            if numbers is None:
                mass = known.persons.of_rows()
                if column.size > objectives.MOST_NAMES and masses is not None:
                    assert workload.sample_weight is not None
                    mass = masses if self.by_row else self._masses_of_values(name, workload.sample_weight)
                target = objectives.name_target(column, codes, weight, mass)
            elif not np.isnan(numbers).all():
                request = TargetRequest(name, weight=weight)
                target = number_target(request, numbers, masses=np.array([total]), own=-1, times=known.times)
            else:
                continue
            targets.append(self._target(target, name, target_name(len(targets))))
        return tuple(targets)

    def _masses_of_values(self, name: str, weight: str) -> NDArray[np.int64]:
        """The mass of the rows of each of a column's values, by their sample weights."""
        import polars as pl

        known = self.values(name).frame
        frame, rows = self.engine.distinct(list(dict.fromkeys([*known.columns, weight])))
        assert rows is not None
        masses, _ = objectives.unit_masses(frame[weight], self._persons_each(frame), rows)
        own = known.columns
        sums = frame.select(own).with_columns(pl.Series("\0mass", masses * rows)).group_by(own).sum()
        joined = known.join(sums, on=own, how="left", nulls_equal=True, maintain_order="left")
        return joined["\0mass"].to_numpy()

    def _target(self, target: Target, name: str, field: str) -> Target:
        """A target; where rows are elsewhere it has none, and its values are a field."""
        if self.by_row:
            return target
        if isinstance(target, ClassTarget):
            self.add_class(field, name, target.classes, target.width)
            return replace(target, classes=NONE)
        assert isinstance(target, NumberTarget)
        self._add(field, name, target.multiples.astype(np.int32))
        return replace(target, multiples=NONE)

    def classes(self, request: TargetRequest, column: Column) -> tuple[NDArray[np.int64], int]:
        """The class of each of a target's values, which becomes a field, and how many classes rows have."""
        classes, width = classes_of(request, column, self.column(column.name))
        self.add_class(target_name(0), column.name, classes, width)
        return classes, int(classes.max(initial=0)) + 1

    def _unit_masses(self, name: str) -> tuple[NDArray[np.int64], float]:
        """The mass of a row of each sample weight, and its unit."""
        known = self.values(name)
        return objectives.unit_masses(known.frame[name], known.persons.of_rows() // known.rows, known.times)

    def masses(self, name: str) -> tuple[NDArray[np.int64], float, int]:
        """The mass of every row by its sample weight (where rows are elsewhere, a field), its unit, and the sum."""
        known = self.values(name)
        masses, unit = self._unit_masses(name)
        total = int((masses * known.rows).sum())
        if self.by_row:
            return masses, unit, total
        # A row's mass depends on its persons, too.
        self.fields.append(Field(MASS, known.frame, masses.astype(np.uint32)))
        return NONE, unit, total

    # --- weights of columns -----------------------------------------------------------------------------------------

    def learn_weights(self, workload: Workload, coded: Sequence[CodedColumn]) -> LearnedWeights:
        """The weights of quasi-identifiers that were coded, from how well each alone predicts the targets that have
        classes: pairs of a column's and a target's values are counted.
        """
        classes = objectives.class_targets(workload, self.schema.columns, self.column)
        accuracies = {}
        for column in coded:
            shares = []
            for name, (of_value, width) in classes.items():
                if name != column.name:  # a column does not predict itself
                    own, other, persons = self._pairs(column.name, name)
                    places = objectives.in_ranges(column, self.codes[column.name][own].astype(np.int64), persons)
                    shares.append(objectives.guessed(places, of_value[other], width, persons))
            accuracies[column.name] = sum(shares) / len(shares) if shares else 0.0
        return objectives.ranked(accuracies, set(classes))

    def _pairs(self, column: str, other: str) -> tuple[Any, Any, NDArray[np.int64]]:
        """The pairs of two columns' values that occur: the place of each among its column's values, and the persons."""
        if self.persons is not None:
            return slice(None), slice(None), self.persons.of_rows()
        pairs = self._counted([column, other])
        places = []
        for name in (column, other):
            numbered = self.values(name).frame.select(name).with_row_index(PLACE).unique(name, keep="any")
            of_pairs = pairs.frame.select(name)
            joined = of_pairs.join(numbered, on=name, how="left", nulls_equal=True, maintain_order="left")
            places.append(joined[PLACE].to_numpy())
        return places[0], places[1], pairs.persons.of_rows()
