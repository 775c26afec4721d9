# SPDX-License-Identifier: Apache-2.0
"""The spans of a model, whatever it is: a tree that scikit-learn fitted, a forest, a tree of anonfit, or any function
with few outcomes, which is asked for every public combination of the data under every combination of private values.

A span (Friedman, Schuster and Wolff, Definition 5) is the outcomes that a row may have as far as its public values say,
whatever the private ones are. Rows of one span cannot be told apart by the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any, Literal

import numpy as np
import polars as pl

from anonfit.auditing import model_trees
from anonfit.auditing.coding import Coded, IntArray, RowPersons, group_rows, join_codes, numbered, persons_in_groups
from anonfit.auditing.model_trees import FittedTrees, ModelTree, SavedTree
from anonfit.auditing.result import Finding
from anonfit.errors import DataError, listed

_BYTES_AT_ONCE = 1 << 26


def spans_of_tree(tree: ModelTree, frame: pl.DataFrame, public: Sequence[str]) -> tuple[IntArray, list[IntArray]]:
    """The span of every row, numbered from 0, and the leaves of every span.

    A leaf is in the span if the public tests on its path hold and some private values pass the others. A path is one
    conjunction, so private values need not be enumerated: it is enough that each column has a cell left.
    """
    point_of_row, count, cells = model_trees.points_of(tree, frame, public)
    leaves = np.array(tree.leaves, np.int64)
    place = {leaf: number for number, leaf in enumerate(tree.leaves)}
    width = (len(leaves) + 7) // 8
    step = max(1, _BYTES_AT_ONCE // width)
    numbers: dict[bytes, int] = {}
    span_of_point: list[int] = []
    for begin in range(0, count, step):
        bits = np.zeros((min(step, count - begin), width), np.uint8)  # (point, leaf / 8)
        here = {number: of_point[begin : begin + step] for number, of_point in cells.items()}
        for leaf, points in model_trees.route(tree, here, len(bits)):
            byte, bit = divmod(place[leaf], 8)
            bits[points, byte] |= np.uint8(1 << bit)
        span_of_point += [numbers.setdefault(span.tobytes(), len(numbers)) for span in bits]
    held = (np.unpackbits(np.frombuffer(bits, np.uint8), count=len(leaves), bitorder="little") for bits in numbers)
    return np.array(span_of_point, np.int64)[point_of_row], [leaves[member == 1] for member in held]


def joined_spans(several: Sequence[IntArray], rows: int) -> IntArray:
    """The spans of several models that are released together, numbered from 0.

    Together they have the combinations of outcomes that some private values allow. Every outcome of a span occurs in
    one of these, so rows have the same combinations if and only if they have the same span in every model.
    """
    codes, _ = numbered(join_codes([Coded(spans, int(spans.max(initial=0)) + 1) for spans in several], rows)[0])
    return codes - 1


Outcomes = Callable[[Any], Any]
"""What a model gives for the rows of a frame: one outcome each."""
_ROWS_AT_ONCE = 100_000


def spans_of_model(
    outcomes: Outcomes,
    data: Any,
    frame: pl.DataFrame,
    columns: Sequence[str],
    public: Sequence[str],
    domains: Mapping[str, Sequence[object]],
    limit: int,
) -> tuple[IntArray, int]:
    """The span of every row, numbered from 0, and how many outcomes were met. The model is asked for at most `limit` of
    them. `data` are the rows as it reads them, a pandas or polars frame with its `columns` in their order, `frame` the
    same rows; private columns can have the values of `domains`, the others those in the data.
    """
    private = [name for name in columns if name not in public]
    if strange := [name for name in domains if name not in private]:
        raise DataError(f"Values are given for {listed(strange)}, which the model reads as no private column.")
    grouping = group_rows(frame.select(name for name in columns if name in public), len(frame))
    donors = {name: _donors(name, frame, domains) for name in private}
    combinations = prod(map(len, donors.values()))
    asked = grouping.count * combinations
    if asked > limit:
        raise DataError(
            f"The model would have to be asked {asked} times ({grouping.count} public combinations under "
            f"{combinations} private ones), and the limit is {limit}: give fewer values in 'domains', or raise 'limit'."
        )
    seen: dict[Any, int] = {}
    pairs = np.zeros(0, np.int64)  # pairs of a public combination and an outcome, as one number each
    for begin in range(0, asked, _ROWS_AT_ONCE):  # all pairs of a public combination and a private one
        points, choices = np.divmod(np.arange(begin, min(begin + _ROWS_AT_ONCE, asked)), combinations)
        rows = _rows(data, grouping.first[points], choices, donors)
        codes = _coded(outcomes(rows), len(points), seen)
        # The limit keeps the number of outcomes below 2**31, whatever the model gives.
        pairs = np.union1d(pairs, (points << 31) | codes)
    # Public combinations with the same set of outcomes have one span.
    begins, outcome = np.searchsorted(pairs >> 31, np.arange(grouping.count + 1)), pairs & ((1 << 31) - 1)
    sets = [outcome[begin:end].tobytes() for begin, end in pairwise(begins.tolist())]
    numbers = {span: number for number, span in enumerate(dict.fromkeys(sets))}
    return np.array([numbers[span] for span in sets], np.int64)[grouping.of_row], len(seen)


def _donors(name: str, frame: pl.DataFrame, domains: Mapping[str, Sequence[object]]) -> list[object] | IntArray:
    """The values that a private column can have: given ones, or the rows that have each."""
    if name not in domains:
        return group_rows(frame.select(name), len(frame)).first
    if not domains[name]:
        raise DataError(f"No values are given for the private column '{name}'.")
    return list(dict.fromkeys(domains[name]))


def _rows(data: Any, rows: IntArray, choices: IntArray, donors: Mapping[str, list[object] | IntArray]) -> Any:
    """The rows to ask for, of the kind the data is of: public values of some rows, private ones as chosen."""
    is_pandas = not isinstance(data, pl.DataFrame)
    asked = data.iloc[rows].reset_index(drop=True) if is_pandas else data[rows]
    for name, values in donors.items():
        choices, which = np.divmod(choices, len(values))
        if isinstance(values, list):
            column = _declared(values, data[name], name)
        else:
            column = data[name].iloc[values] if is_pandas else data[name].gather(values)
        if is_pandas:
            asked[name] = column.iloc[which].reset_index(drop=True)
        else:
            asked = asked.with_columns(column.gather(which).alias(name))
    return asked


def _declared(values: list[object], like: Any, name: str) -> Any:
    """Given values as a column of the data's type."""
    try:
        if isinstance(like, pl.Series):
            return pl.Series(name, values, dtype=like.dtype)
        return type(like)(values, dtype=like.dtype, name=name)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise DataError(f"The values given for the private column '{name}' are not of its type.") from None


def _coded(given: Any, expected: int, seen: dict[Any, int]) -> IntArray:
    """Outcomes as numbers, counted as they are met."""
    outcomes = np.asarray(given)
    if outcomes.shape != (expected,):
        raise DataError(
            "The model does not give one outcome for each row; an audit needs a function of a frame that does, such "
            "as 'predict'."
        )
    if outcomes.dtype == object:
        return np.array([seen.setdefault(outcome, len(seen)) for outcome in outcomes.tolist()], np.int64)
    distinct, which = np.unique(outcomes, return_inverse=True)
    named = ("not a number" if outcome != outcome else outcome for outcome in distinct.tolist())
    return np.array([seen.setdefault(outcome, len(seen)) for outcome in named], np.int64)[which.reshape(-1)]


PLACES = 3
"""Decimal places of the shares in a tree whose populations are relative."""
_THRESHOLDS = (
    "Thresholds of scikit-learn lie halfway between values of two training rows; what these tell of their rows is not "
    "covered."
)
_OTHER_ROWS = (
    "The leaves of the tree hold other numbers of rows than it was taught with: the data are not its training data, "
    "and nothing is known of the individuals who are in these."
)
_FOREST = "All trees are taken to be released, each with its number of rows in every leaf."


@dataclass(frozen=True, slots=True)
class AuditedModel:
    """A model that can be asked for its spans, and the columns it reads."""

    columns: tuple[str, ...]
    held: SavedTree | FittedTrees | Outcomes


@dataclass(frozen=True, slots=True)
class ModelSpans:
    """The spans of a model over some rows."""

    kind: Literal["tree", "forest", "model"]
    of_row: IntArray
    outcomes: int
    trees: tuple[tuple[ModelTree, IntArray], ...] = ()  # each with its own spans
    leaves: tuple[tuple[int, ...], ...] = ()  # (span) of a single tree
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


def open_model(model: Any, features: Sequence[str] | None, named: Sequence[str]) -> AuditedModel:
    """A model and the columns it reads; `named` are all columns named for the audit but the class."""
    saved = model_trees.saved_tree_of(model)
    if saved is not None:
        return AuditedModel(saved.tree.names, saved)
    columns = model_trees.feature_names(model, features)
    if model_trees.tree_arrays(model):
        if columns is None:
            raise DataError("The model does not know the names of its columns: give them as 'features', in its order.")
        return AuditedModel(columns, model_trees.read_fitted(model, columns))
    outcomes = getattr(model, "predict", model)
    if not callable(outcomes) or isinstance(model, type):
        raise DataError(
            f"A {type(model).__name__} cannot be audited: give a fitted tree or forest, a saved tree, or a function of "
            "a frame that gives one outcome for each row."
        )
    return AuditedModel(tuple(named) if columns is None else columns, outcomes)


@dataclass(frozen=True, slots=True)
class ModelColumns:
    """The columns of an audit by what an attacker knows."""

    public: tuple[str, ...]
    private: tuple[str, ...]
    target: str | None
    entity: str | None
    numbers: str | None  # the number of individuals that a row stands for, be it one or several rows
    times: str | None  # the same, where these are different rows

    @property
    def class_is_public(self) -> bool:
        """Whether an attacker knows the class."""
        return self.target in self.public


def spans_of(
    model: AuditedModel, data: Any, frame: pl.DataFrame, columns: ModelColumns, persons: RowPersons, **asking: Any
) -> ModelSpans:
    """The spans of a model over the rows it was taught with; `asking` is for one that is no tree: domains and limit."""
    public = columns.public
    unknown = [name for name in model.columns if name not in frame.columns]
    if unknown:
        raise DataError(f"The model reads {listed(unknown)}; name it as a public or as a private column.")
    if asking["domains"] and isinstance(model.held, SavedTree | FittedTrees):
        raise DataError("'domains' are for models that are asked for outcomes; of a tree, all values are covered.")
    if isinstance(model.held, SavedTree):
        findings = () if columns.target is None else (_populations(model.held, frame, columns.target, persons),)
        return _of_trees((model.held.tree,), frame, public, findings)
    if isinstance(model.held, FittedTrees):
        trees, taught, times = model.held.trees, model.held.rows, persons.numbers if columns.times else None
        findings = () if taught is None else (_training_rows(trees[0], frame, taught, times),)
        spans = _of_trees(trees, frame, public, findings)
        return replace(spans, notes=(_THRESHOLDS, _FOREST) if len(trees) > 1 else (_THRESHOLDS,))
    as_given = isinstance(data, pl.DataFrame) or type(data).__module__.partition(".")[0] == "pandas"
    rows: Any = data if as_given else frame
    read = rows[list(model.columns)]
    of_row, outcomes = spans_of_model(model.held, read, frame, model.columns, public, **asking)
    note = "Private columns were taken to have the values that are in the data or were given, and no others."
    return ModelSpans("model", of_row, outcomes, notes=(note,))


def _of_trees(
    trees: tuple[ModelTree, ...], frame: pl.DataFrame, public: Sequence[str], findings: tuple[Finding, ...]
) -> ModelSpans:
    several = [spans_of_tree(tree, frame, public) for tree in trees]
    of_row = joined_spans([spans for spans, _ in several], len(frame))
    leaves: tuple[tuple[int, ...], ...] = ()
    if len(several) == 1:
        ((spans, of_span),) = several
        _, first = np.unique(of_row, return_index=True)
        leaves = tuple(tuple(of_span[number].tolist()) for number in spans[first].tolist())
    return ModelSpans(
        "tree" if len(several) == 1 else "forest",
        of_row,
        sum(len(tree.leaves) for tree in trees),
        tuple((tree, spans) for tree, (spans, _) in zip(trees, several, strict=True)),
        leaves,
        findings,
    )


def _training_rows(tree: ModelTree, frame: pl.DataFrame, rows: IntArray, times: IntArray | None) -> Finding:
    """Whether the data are the rows that the tree was taught with, as far as its leaves say how many they were."""
    counted = np.bincount(model_trees.leaf_of_rows(tree, frame), weights=times, minlength=len(rows))
    if (counted[tree.leaves] == rows[tree.leaves]).all():
        found, met, sentence = "these", True, "The leaves of the tree hold as many rows as it was taught with."
    else:
        found, met, sentence = "others", False, _OTHER_ROWS
    return Finding("training data", "the rows it was taught with", found, met, sentence)


def _populations(saved: SavedTree, frame: pl.DataFrame, target: str, persons: RowPersons) -> Finding:
    """Whether the bins hold what the tree says they hold: persons, shares or the most frequent class."""
    place = {class_name(value): number for number, value in enumerate(saved.classes)}
    names = [class_name(value) for value in frame[target].to_list()]
    if saved.populations == "majority":  # classes that no leaf tells are not named; they come last
        place = {name: number for number, name in enumerate(dict.fromkeys((*place, *sorted(set(names)))))}
    classes = np.array([place.get(name, -1) for name in names], np.int64)
    same = bool((classes >= 0).all())
    if same:
        bins, telling = _counts(saved.tree, frame, classes, len(place), persons)
        same = telling.argmax(axis=1).tolist() == list(saved.predicts)
        if saved.bins is not None:
            shares = np.round(telling / telling.sum(axis=1, keepdims=True), PLACES)
            held = bins if saved.populations == "exact" else shares
            same = same and bool(np.allclose(held, np.asarray(saved.bins, np.float64), rtol=0, atol=1e-9))
    sentence = "The bins hold what the tree says." if same else "Some bins do not hold what the tree says."
    return Finding("populations", saved.populations, "the same" if same else "others", same, sentence)


def class_name(value: object) -> str:
    """A class as a text, however a file writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _counts(
    tree: ModelTree, frame: pl.DataFrame, classes: IntArray, width: int, persons: RowPersons
) -> tuple[IntArray, IntArray]:
    """(leaf, class) the persons of every bin, and those who tell its class: its own, or the nearest node's above."""
    keys = model_trees.leaf_of_rows(tree, frame) * width + classes
    counts = persons_in_groups(persons, keys, len(tree.tested) * width).reshape(-1, width)
    for node in range(len(counts) - 1, -1, -1):  # children stand after their parents
        for child in tree.children[node]:
            counts[node] += counts[child]
    telling = counts.copy()
    for node, children in enumerate(tree.children):
        for child in children:
            if not telling[child].any():
                telling[child] = telling[node]
    return counts[tree.leaves], telling[tree.leaves]
