# SPDX-License-Identifier: Apache-2.0
"""A table known by the different values of its columns and how often each stands there: what is found of it is what the
rows themselves would give, and no row is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.demands import Demands, guard
from anonfit.algorithms.mondrian import coded_with_faces, persons_of
from anonfit.criteria.splitting import SplitObjective
from anonfit.criteria.targets import ClassTarget, NumberTarget, Target
from anonfit.engines.contract import Engine, Field
from anonfit.engines.levels.shape import MASS, PERSONS, code_name, sensitive_name, target_name
from anonfit.engines.memory.guard import Guarded
from anonfit.errors import DataError, TaxonomyError
from anonfit.tables.codebook import CodedValues, code_column
from anonfit.tables.schema import CodedColumn, Column, Domain, Schema, code_dtype
from anonfit.workload.objectives import (
    MOST_NAMES,
    feature_numbers,
    name_target,
    objective_of,
    require_feature,
    require_target,
    unit_masses,
)
from anonfit.workload.targets import TargetRequest, Workload, classes_of, code_target, number_target

if TYPE_CHECKING:
    import polars as pl

    from anonfit.workload.predicates import Predicate

__all__ = ["GroupedTable", "no_rows"]

IN_ROWS = re.compile(r" \(first in row [^)]*\)")
"""Where an error says in which rows values are."""
NONE: NDArray[Any] = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Groups:
    """The different values of a column (beside each its row's persons, where rows stand for several), how many rows
    have each, and how many persons these are.
    """

    frame: pl.DataFrame
    rows: NDArray[np.int64]
    persons: NDArray[np.int64]


@contextmanager
def no_rows() -> Iterator[None]:
    """Errors about values speak of different values, which have no row."""
    try:
        yield
    except (DataError, TaxonomyError) as error:
        told, places = IN_ROWS.subn("", str(error))
        if not places:
            raise
        told = (
            told if "distinct value(s)" in told else told.replace("value(s) are not", "different value(s) are not", 1)
        )
        raise type(error)(told) from None


class GroupedTable:
    """What is known of a table whose rows an engine has, and the fields that coded rows shall hold."""

    def __init__(self, engine: Engine, count: str | None) -> None:
        self.engine, self.count = engine, count
        self.fields: list[Field] = []
        self.known: dict[str, Groups] = {}
        self.codes: dict[str, NDArray[Any]] = {}
        if count is not None:
            frame, _ = engine.distinct([count])
            persons = persons_of(len(frame), frame[count], None)
            assert persons.counts is not None
            self.fields.append(Field(PERSONS, frame, persons.counts))

    def groups(self, name: str) -> Groups:
        """The different values of a column."""
        if name not in self.known:
            self.known[name] = self.counted([name])
        return self.known[name]

    def counted(self, names: Sequence[str]) -> Groups:
        """The different combinations of some columns' values."""
        asked = list(names) if self.count is None or self.count in names else [*names, self.count]
        frame, rows = self.engine.distinct(asked)
        persons = rows
        if self.count is not None:
            each = persons_of(len(frame), frame[self.count], None).counts
            assert each is not None
            persons = rows * each.astype(np.int64)
        return Groups(frame, rows, persons)

    def total(self) -> int:
        """How many persons the table is about."""
        return self.engine.rows if self.count is None else int(self.groups(self.count).persons.sum())

    def add(self, field: str, name: str, codes: NDArray[Any]) -> None:
        """A field that a column's values become: each value once, also where it stands beside several counts."""
        import polars as pl

        frame = self.groups(name).frame.select(name)
        if self.count not in (None, name):
            place = pl.Series("place", np.arange(len(frame)))
            first = frame.with_columns(place).unique(name, keep="any", maintain_order=True)["place"].to_numpy()
            frame, codes = frame[first], codes[first]
        self.fields.append(Field(field, frame, codes))

    def code(self, columns: Sequence[Column], ks: Sequence[int], predicates: Sequence[Predicate] = ()) -> list[Domain]:
        """The domains of the quasi-identifiers, each of which has its k, with the boundaries of predicates."""
        domains = []
        for index, (column, k) in enumerate(zip(columns, ks, strict=True)):
            groups = self.groups(column.name)

            def persons(of_row: NDArray[np.int64], count: int, groups: Groups = groups) -> NDArray[np.int64]:
                found = np.zeros(count, np.int64)
                np.add.at(found, of_row, groups.persons)
                return found

            with no_rows():
                coded: CodedValues = code_column(column, groups.frame[column.name], persons=persons, k=k)
            if predicates:
                coded = coded_with_faces(coded, predicates)
            domains.append(coded.domain)
            self.codes[column.name] = coded.codes
            self.add(code_name(index), column.name, coded.codes.astype(code_dtype(coded.domain.coded().size)))
        return domains

    def guard(self, demands: Demands, schema: Schema) -> list[Guarded]:
        """The columns that models guard; their codes become fields."""
        found: list[Guarded] = []
        plain = replace(demands, diversity=(), targets=(), max_confidence=1.0)
        names = dict.fromkeys(one.column for one in demands.diversity)
        asked = [
            (name, replace(plain, diversity=tuple(one for one in demands.diversity if one.column == name)))
            for name in names
        ]
        asked += [
            (target.column, replace(plain, targets=(target,), max_confidence=demands.max_confidence))
            for target in demands.targets
        ]
        for name, one in asked:
            groups = self.groups(name)
            with no_rows():
                columns = guard(one, schema, groups.frame, counts=groups.persons, entities=None)  # type: ignore[arg-type]
            for guarded in columns:
                self.add(sensitive_name(len(found)), name, guarded.codes.astype(code_dtype(guarded.column.size)))
                found.append(replace(guarded, codes=np.zeros(0, np.uint32)))
        return found

    def purpose(self, workload: Workload, columns: Sequence[Column], coded: Sequence[CodedColumn]) -> SplitObjective:
        """What steers splits of quasi-identifiers that were coded; what it is told of rows becomes fields."""
        quasi_identifiers = [column.name for column in coded]
        clusters = workload.objective.clusters
        is_steered = bool(workload.used_targets or workload.used_selections or clusters)
        if workload.sample_weight is not None and not is_steered:
            self._unit_masses(workload.sample_weight)  # they are released, so they are checked
        if workload.is_blind:
            return objective_of(workload, quasi_identifiers)
        total, unit, masses = self.total(), 1.0, None
        if workload.sample_weight is not None and is_steered:
            total, unit = self.masses(workload.sample_weight)
            masses = NONE
        if clusters:
            return objective_of(workload, quasi_identifiers, self._features(workload, coded, total), None, masses, unit)
        declared = {column.name: column for column in columns}
        found: list[Target] = []
        for request in workload.used_targets:
            groups = self.groups(request.column)
            own = quasi_identifiers.index(request.column) if request.column in quasi_identifiers else -1
            with no_rows():
                target = code_target(
                    request,
                    declared[request.column],
                    groups.frame[request.column],
                    masses=np.array([total]),
                    own=own,
                    objective=workload.objective,
                    times=groups.rows,
                )
            if workload.objective.fits(target):
                found.append(self._target(target, request.column, len(found)))
        require_target(workload, found)
        return objective_of(workload, quasi_identifiers, tuple(found), None, masses, unit)

    def _features(self, workload: Workload, coded: Sequence[CodedColumn], total: int) -> tuple[Target, ...]:
        """The features that clusters are made of; `total` is the mass of all rows."""
        declared = {column.name: column for column in coded}
        found: list[Target] = []
        for name, weight in require_feature(workload, list(declared)).items():
            column, codes, groups = declared[name], self.codes[name].astype(np.int64), self.groups(name)
            numbers = feature_numbers(column, codes, groups.frame[name])
            if numbers is None:
                names = name_target(column, codes, weight, groups.persons)
                if column.size > MOST_NAMES and workload.sample_weight is not None:
                    names = name_target(column, codes, weight, self._masses_of_groups(name, workload.sample_weight))
                found.append(self._target(names, name, len(found)))
            elif not np.isnan(numbers).all():
                request, masses = TargetRequest(name, weight=weight), np.array([total])
                target = number_target(request, numbers, masses=masses, own=-1, times=groups.rows)
                found.append(self._target(target, name, len(found)))
        return tuple(found)

    def _masses_of_groups(self, name: str, weight: str) -> NDArray[np.int64]:
        """The mass of the rows of each of a column's groups, by their sample weights."""
        import polars as pl

        groups = self.groups(name)
        frame, rows = self.engine.distinct(list(dict.fromkeys([*groups.frame.columns, weight])))
        persons = np.ones(len(frame), np.int64)
        if self.count is not None:
            persons = frame[self.count].cast(pl.Int64).to_numpy()
        masses, _ = unit_masses(frame[weight], persons, rows)
        own = groups.frame.columns
        sums = (
            frame.select(own).with_columns(pl.Series("\0mass", masses * rows)).group_by(own).agg(pl.col("\0mass").sum())
        )
        joined = groups.frame.join(sums, on=own, how="left", nulls_equal=True, maintain_order="left")
        return joined["\0mass"].to_numpy()

    def _target(self, target: Target, name: str, number: int) -> Target:
        """A target without rows; its field is added."""
        if isinstance(target, ClassTarget):
            self.add(target_name(number), name, target.classes.astype(code_dtype(target.width)))
            return replace(target, classes=NONE)
        assert isinstance(target, NumberTarget)
        self.add(target_name(number), name, target.multiples.astype(np.int32))
        return replace(target, multiples=NONE)

    def classes(self, request: TargetRequest, column: Column) -> int:
        """Add a field of the classes of a target; how many rows have."""
        classes, width = classes_of(request, column, self.groups(column.name).frame[column.name])
        self.add(target_name(0), column.name, classes.astype(code_dtype(width)))
        return int(classes.max(initial=0)) + 1

    def _unit_masses(self, name: str) -> tuple[NDArray[np.int64], float]:
        """The mass of a row of each group of sample weights, and its unit."""
        groups = self.groups(name)
        return unit_masses(groups.frame[name], groups.persons // groups.rows, groups.rows)

    def masses(self, name: str) -> tuple[int, float]:
        """The mass of all rows by their sample weights, and its unit; what each row's is becomes a field."""
        groups = self.groups(name)
        masses, unit = self._unit_masses(name)
        # A row's mass depends on its persons, too.
        self.fields.append(Field(MASS, groups.frame, masses.astype(np.uint32)))
        return int((masses * groups.rows).sum()), unit
