# SPDX-License-Identifier: Apache-2.0
"""What regions tell of what a release is for: targets, predicted from the other rows of a region and of the whole
table, and answers to selections; all of it for the owner of the data, and of it what everybody may know.

No row predicts itself, so regions of few rows do not look better than they are. Regions that were made to tell the
target apart still have seen it: how much that flatters them only held-out rows can say.

Of selections, what an attacker could do with public figures, who may well be the recipient that asked for the
selections and so knows their texts, and can count the answers in the released file:

- learn how many persons satisfy a predicate that few do, or all but few, in the table or in the answer: so a figure is
  told only if the persons asked for are at least k, and those not asked for, in the table and in the answer, none or at
  least k;
- subtract figures of selections that differ by few persons (`age >= 50` and `age >= 51`, or all values of a column but
  one): so there is one figure per selection from which the other follows, and it is told in multiples of k only.
  Nearly equal selections in great number still tell where the k-th, 2k-th … person lies: whoever chooses selections
  chooses what is counted, and the report says so;
- count the values that occur, where one selection was asked for each of them: so these are told as one, over the
  values that enough persons have;
- recognize what was asked for: selections are numbered, not named, and the warnings, which tell of values that do not
  occur, are not public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.algorithms.result import SelectionAnswers
from anonfit.criteria.targets import ClassTarget, NumberTarget
from anonfit.metrics.arrays import AnyIntegers, Flags, Floats, Integers
from anonfit.privacy.disclosure import Disclosure
from anonfit.tables.schema import Role, Schema
from anonfit.workload.selections import SelectionRequest
from anonfit.workload.targets import Workload, code_target


@dataclass(frozen=True, slots=True)
class CodedTarget:
    """The values of a target: classes where there is a `width`, numbers where there is none. Numbers are multiples of a
    unit, from anywhere, so that their squares neither overflow nor vanish.
    """

    column: str
    values: Integers | Floats  # (row,)
    width: int
    known: Flags  # (row,) a missing class is a class, a missing number is not predicted
    is_generalized: bool
    unit: float = 1.0

    @property
    def has_classes(self) -> bool:
        """Whether it is a class to be told, not a number to be estimated."""
        return self.width > 0


def coded_targets(workload: Workload, schema: Schema, frame: pl.DataFrame) -> tuple[CodedTarget, ...]:
    """The targets of a workload; `frame` has their raw values. Of a target that a model predicts, the values count."""
    declared = {column.name: column for column in schema.columns}
    masses, known = np.ones(len(frame), np.int64), np.ones(len(frame), np.bool_)
    targets = []
    for request in workload.targets:
        name, column, values = request.column, declared[request.column], frame[request.column]
        generalized = column.role == Role.QUASI_IDENTIFIER
        coded = code_target(request, column, values, masses=masses, own=-1, objective=workload.objective)
        if isinstance(coded, ClassTarget):
            targets.append(CodedTarget(name, coded.classes, coded.width, known, generalized))
        else:
            assert isinstance(coded, NumberTarget)
            numbers, has_number = coded.multiples.astype(np.float64), values.is_not_null().to_numpy()
            targets.append(CodedTarget(name, numbers, 0, has_number, generalized, coded.scale.step))
    return tuple(targets)


DENSE = 1 << 24
"""With more pairs of a region and a class, pairs are sorted instead of counted in a table."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """How well targets are predicted: rows that are right (classes), or squared errors (numbers)."""

    rows: int
    by_table: float
    """From all other rows together."""
    by_region: float
    """From the other rows of the region."""


def predicted_classes(regions: AnyIntegers, classes: AnyIntegers, count: int, width: int) -> Predicted:
    """How many rows have the class that is most frequent among the other rows, of the table and of their region; of
    equally frequent classes the first counts. regions: (row,) below `count`; classes: (row,) below `width`.
    """
    keys = regions.astype(np.int64) * width + classes
    if count * width <= DENSE:
        table = np.bincount(keys, minlength=count * width)
        pairs = np.flatnonzero(table)
        held = table[pairs]
    else:
        pairs, held = np.unique(keys, return_counts=True)
    everybody = np.bincount(pairs % width, weights=held, minlength=width).astype(np.int64)
    known = np.flatnonzero(everybody)
    whole = _right(np.zeros(len(known), np.int64), known, everybody[known])
    return Predicted(len(keys), whole, _right(pairs // width, pairs % width, held))


def _right(regions: Integers, classes: Integers, held: Integers) -> int:
    """Rows that are predicted right, from the sizes of pairs of a region and a class.

    Only the most frequent class of a region can be: without one of its rows it must still be more frequent than the
    next, or as frequent and before it.
    """
    if not len(held):
        return 0
    order = np.lexsort((classes, -held, regions))
    region, name, size = regions[order], classes[order], held[order]
    is_first = np.append(True, region[1:] != region[:-1])
    best = np.flatnonzero(is_first)
    after = np.minimum(best + 1, len(order) - 1)
    has_next = (after > best) & (region[after] == region[best])
    next_size = np.where(has_next, size[after], 0)
    wins = (size[best] - 1 > next_size) | ((size[best] - 1 == next_size) & (~has_next | (name[best] < name[after])))
    return int(size[best][wins].sum())


def predicted_numbers(regions: AnyIntegers, numbers: Floats, count: int) -> Predicted:
    """The mean squared errors of predicting each number by the mean of the others, of the table and of its region; a
    row alone in its region is predicted by the mean of all others. regions: (row,) below `count`; numbers: (row,) none
    missing.
    """
    rows = len(numbers)
    if rows < 2:
        return Predicted(rows, 0.0, 0.0)
    centred = numbers - numbers.mean()  # so that squares do not drown in the mean's
    squares = centred * centred
    sizes = np.bincount(regions, minlength=count)
    sums = np.bincount(regions, weights=centred, minlength=count)
    within = np.bincount(regions, weights=squares, minlength=count) - sums * sums / np.maximum(sizes, 1)
    # Without a row the mean moves away from it: its error grows by n / (n - 1).
    by_others = np.maximum(within, 0.0) * np.square(sizes / np.maximum(sizes - 1, 1))
    alone = np.square(sums * (rows / (rows - 1)))
    by_region = np.where(sizes > 1, by_others, alone)
    return Predicted(rows, float(squares.sum()) * (rows / (rows - 1)) ** 2 / rows, float(by_region.sum()) / rows)


LEAN = 100
"""A region's classes are counted together with so many rows of the region it was cut from: small ones say little."""


def leaned(sums: Floats, sizes: Floats, parent: Integers) -> Floats:
    """The mean of every node's rows, where each leans on that of the node it was cut from. (node, value)

    sums: (node, value) of the rows that end there: rows of each class, or numbers; sizes: (node,) how many these are;
    parent: (node,) the node each was cut from, -1 for the root; nodes stand in breadth-first order.
    """
    sums, sizes = sums.copy(), sizes.copy()
    levels = depths(parent)
    for level in reversed(levels[1:]):
        np.add.at(sums, parent[level], sums[level])
        np.add.at(sizes, parent[level], sizes[level])
    means = sums / max(float(sizes[0]), 1.0)
    for level in levels[1:]:
        means[level] = (sums[level] + LEAN * means[parent[level]]) / (sizes[level] + LEAN)[:, None]
    return means


def depths(parent: Integers) -> list[slice]:
    """The nodes of each depth: in breadth-first order a node's parent never stands after that of a later node."""
    levels = [slice(0, 1)]
    while levels[-1].stop < len(parent):
        stop = int(np.searchsorted(parent, levels[-1].stop))
        levels.append(slice(levels[-1].stop, stop))
    return levels


@dataclass(frozen=True, slots=True)
class TargetFigures:
    """How well a target is predicted, each row from others."""

    column: str
    has_classes: bool
    is_generalized: bool
    predicted: Predicted
    unit: float = 1.0
    """What 1 stands for in a root of the squared errors."""


def predictions(targets: Sequence[CodedTarget], nodes: NDArray[np.int32], count: int) -> tuple[TargetFigures, ...]:
    """What regions tell of each target. nodes: (row,) the node each row was released in of `count`, or -1."""
    figures = []
    for target in targets:
        chosen = (nodes >= 0) & target.known
        regions, values = (nodes, target.values) if chosen.all() else (nodes[chosen], target.values[chosen])
        if target.has_classes:
            predicted = predicted_classes(regions, values.astype(np.int64), count, target.width)
        else:
            predicted = predicted_numbers(regions, values.astype(np.float64), count)
        figures.append(TargetFigures(target.column, target.has_classes, target.is_generalized, predicted, target.unit))
    return tuple(figures)


def squared_errors(targets: Sequence[CodedTarget], nodes: NDArray[np.int32], count: int) -> dict[str, float]:
    """The mean squared error of each target that is predicted from the other rows of a region: of a number, or of the
    shares of classes, which tell more than the most frequent one. nodes: (row,) the node of each row, of `count`.
    """
    errors_of = {}
    for target in targets:
        regions, values = nodes[target.known].astype(np.int64), target.values[target.known]
        if not target.has_classes:
            errors_of[target.column] = predicted_numbers(regions, values.astype(np.float64), count).by_region
            continue
        pairs, held = np.unique(regions * target.width + values.astype(np.int64), return_counts=True)
        sizes = np.bincount(regions, minlength=count)
        same = np.bincount(pairs // target.width, weights=held * held, minlength=count) / np.maximum(sizes, 1)
        errors = np.where(sizes > 1, (sizes - same) * np.square(sizes / np.maximum(sizes - 1, 1)), sizes)
        errors_of[target.column] = float(errors.sum()) / max(len(regions), 1)
    return errors_of


def predictions_content(figures: Sequence[TargetFigures], rule: Disclosure) -> list[dict[str, Any]]:
    """The figures as they may be told."""
    # Rows of a target that is released as it is are counted in the released file, where anybody can; of one that is
    # not, k rows may be one person's.
    shown = rule.rows_are_persons or not rule.min_persons
    return [_content(target, rule) for target in figures if shown or not target.is_generalized]


def _content(target: TargetFigures, rule: Disclosure) -> dict[str, Any]:
    predicted = target.predicted
    line: dict[str, Any] = {"column": target.column, "kind": "classes" if target.has_classes else "number"}
    if target.has_classes:
        # Generalized targets of persons with several rows are left out, others anybody can count in the release.
        right, rows = {"table": int(predicted.by_table), "regions": int(predicted.by_region)}, predicted.rows
        may_be_told = {name: bool(rows) and rule.may_disclose(hits, rows) for name, hits in right.items()}
        shares = {name: round(hits / rows, 3) if may_be_told[name] else None for name, hits in right.items()}
        return line | {"measure": "accuracy"} | shares
    explained = 1 - predicted.by_region / predicted.by_table if predicted.by_table > 0 else 0.0
    line |= {"measure": "explained variance", "table": 0.0, "regions": round(explained, 3)}
    if not target.is_generalized or not rule.min_persons:
        # An error in the column's unit tells of the largest value: only where that is released.
        errors = {"table": predicted.by_table, "regions": predicted.by_region}
        line["typical_error"] = {name: squares**0.5 * target.unit for name, squares in errors.items()}
    return line


def internal_selections(
    selections: SelectionAnswers, requests: Sequence[SelectionRequest], *, total: int
) -> dict[str, Any]:
    """Everything about every selection, for the internal record; numbered as in the public report."""
    answers = selections.answers
    places = _places(selections, requests, total) or []
    numbers: list[Any] = [number for number, place in enumerate(places, start=1) for _ in place]
    columns = {
        "number": numbers or [None] * len(selections.names),
        "name": selections.names,
        "weight": answers.weights.tolist(),
        "true": answers.true.tolist(),
        "answered": answers.answered.tolist(),
        "imprecision": answers.imprecision.tolist(),
        "precision": answers.precision.tolist(),
        "recall": answers.recall.tolist(),
    }
    return {
        "warnings": list(selections.warnings),
        "total_imprecision": answers.total,
        "selections": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    }


def public_selections(
    selections: SelectionAnswers | None, requests: Sequence[SelectionRequest], rule: Disclosure, *, total: int
) -> dict[str, Any] | None:
    """What everybody may know of how selections are answered; None if there are none. Nothing is told where answers
    were not measured, as for new data of an earlier recoding, or where a person may have several of the rows that they
    count. total: all rows, or the persons they stand for.
    """
    if not requests:
        return None
    least, answers = rule.min_persons, []
    if selections is not None and rule.rows_are_persons:
        enough = _has_enough(selections, total=total, least=least)
        answers = [
            {"number": number, **_figures(selections, place[enough[place]], least)}
            for number, place in enumerate(_places(selections, requests, total) or [], start=1)
        ]
    return {"asked": len(requests), "multiples_of": least, "answers": answers}


def _places(selections: SelectionAnswers, requests: Sequence[SelectionRequest], total: int) -> list[Integers] | None:
    """The answers of each request. One for each value of a column has as many as it needs to reach every row."""
    true = selections.answers.true
    places, start = [], 0
    for request in requests:
        end = start + 1
        if request.each is not None:
            reached = np.flatnonzero(np.cumsum(true[start:]) == total)
            if not len(reached):
                return None
            end = start + int(reached[0]) + 1
        places.append(np.arange(start, end))
        start = end
    return places if start == len(true) else None


def _has_enough(selections: SelectionAnswers, *, total: int, least: int) -> Flags:
    """Which selections ask for enough persons, leave none or enough of them out, and withhold nobody. (selection,)"""
    answers, rest = selections.answers, total - selections.answers.true
    enough: Flags = (answers.true >= least) & ((rest == 0) | (rest >= least)) & (answers.kept == answers.true)
    return enough


def _figures(selections: SelectionAnswers, place: Integers, least: int) -> dict[str, Any]:
    """The figures of some answers together, all from one count in multiples of `least`; None where it may not be told.

    A person that several of them have in vain counts several times, but never alone: then all of a group do.
    """
    answers = selections.answers
    imprecision = int(answers.imprecision[place].sum())
    if not len(place) or 0 < imprecision < least:
        return {"imprecision": None, "precision": None, "recall": None}
    # Rounded down: rounding up would tell the exact count where it is `least`, since smaller ones are not told.
    rounded = imprecision // least * least
    precision = round(1 - rounded / int(answers.answered[place].sum()), 2)
    return {"imprecision": rounded, "precision": precision, "recall": 1.0}


def selections_together(selections: SelectionAnswers, rule: Disclosure, *, total: int) -> dict[str, Any]:
    """The figures of all selections that may be told, as one."""
    least = rule.min_persons
    if not least:
        answered, kept = int(selections.answers.answered.sum()), int(selections.answers.kept.sum())
        return {"imprecision": answered - kept, "precision": kept / answered if answered else 1.0, "recall": 1.0}
    enough = np.flatnonzero(_has_enough(selections, total=total, least=least))
    return _figures(selections, enough if rule.rows_are_persons else enough[:0], least)
