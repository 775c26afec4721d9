# SPDX-License-Identifier: Apache-2.0
"""The spans of a model, whatever it is: a tree that scikit-learn fitted, a forest, a tree of anonfit, or any function
with few outcomes. Called by `trees.audit_tree`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from anonfit.auditing.branches import ModelTree, leaf_of_rows
from anonfit.auditing.coding import IntArray
from anonfit.auditing.enumerating import Outcomes, spans_of_model
from anonfit.auditing.fitted_trees import FittedTrees, feature_names, is_fitted_tree, read_fitted
from anonfit.auditing.groups import Persons, persons_in_groups
from anonfit.auditing.result import Finding
from anonfit.auditing.saved_trees import SavedTree, saved_tree_of
from anonfit.auditing.tree_spans import joined_spans, spans_of_tree
from anonfit.errors import DataError, listed

__all__ = ["AuditedModel", "ModelSpans", "class_name", "open_model", "spans_of"]

PLACES = 3
"""Decimal places of the shares in a tree whose populations are relative."""


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
    saved = saved_tree_of(model)
    if saved is not None:
        return AuditedModel(saved.tree.names, saved)
    columns = feature_names(model, features)
    if is_fitted_tree(model):
        if columns is None:
            raise DataError("The model does not know the names of its columns: give them as 'features', in its order.")
        return AuditedModel(columns, read_fitted(model, columns))
    outcomes = getattr(model, "predict", model)
    if not callable(outcomes) or isinstance(model, type):
        raise DataError(
            f"A {type(model).__name__} cannot be audited: give a fitted tree or forest, a saved tree, or a function of "
            "a frame that gives one outcome for each row."
        )
    return AuditedModel(tuple(named) if columns is None else columns, outcomes)


def spans_of(
    model: AuditedModel,
    data: Any,
    frame: pl.DataFrame,
    *,
    public: Sequence[str],
    target: str | None,
    persons: Persons,
    domains: Mapping[str, Sequence[object]],
    limit: int,
    times: IntArray | None = None,
) -> ModelSpans:
    """The spans of a model over the rows it was taught with; each is there so many times, once if that is not said."""
    unknown = [name for name in model.columns if name not in frame.columns]
    if unknown:
        raise DataError(f"The model reads {listed(unknown)}; name it as a public or as a private column.")
    if domains and isinstance(model.held, SavedTree | FittedTrees):
        raise DataError("'domains' are for models that are asked for outcomes; of a tree, all values are covered.")
    if isinstance(model.held, SavedTree):
        return _of_saved(model.held, frame, public, target, persons)
    if isinstance(model.held, FittedTrees):
        return _of_fitted(model.held, frame, public, times)
    read_public = [name for name in model.columns if name in public]
    rows = data if isinstance(data, pl.DataFrame) else frame
    if type(data).__module__.partition(".")[0] == "pandas":
        rows = data
    found, outcomes = spans_of_model(
        model.held,
        rows[list(model.columns)],
        frame,
        public=read_public,
        private=[name for name in model.columns if name not in public],
        domains=domains,
        limit=limit,
    )
    note = "Private columns were taken to have the values that are in the data or were given, and no others."
    return ModelSpans("model", found, outcomes, notes=(note,))


def _of_fitted(fitted: FittedTrees, frame: pl.DataFrame, public: Sequence[str], times: IntArray | None) -> ModelSpans:
    several = [spans_of_tree(tree, frame, public) for tree in fitted.trees]
    of_row = joined_spans([one for one, _ in several], len(frame))
    kind: Literal["tree", "forest"] = "tree" if len(several) == 1 else "forest"
    trees = tuple((tree, one) for tree, (one, _) in zip(fitted.trees, several, strict=True))
    leaves = _renumbered(of_row, several[0][0], several[0][1]) if kind == "tree" else ()
    notes = [
        "Thresholds of scikit-learn lie halfway between values of two training rows; what these tell of their "
        "rows is not covered."
    ]
    if kind == "forest":
        notes.append("All trees are taken to be released, each with its number of rows in every leaf.")
    findings = () if fitted.rows is None else (_training_rows(fitted.trees[0], frame, fitted.rows[0], times),)
    outcomes = sum(len(tree.leaves) for tree in fitted.trees)
    return ModelSpans(kind, of_row, outcomes, trees, leaves, findings, tuple(notes))


def _renumbered(new: IntArray, old: IntArray, leaves: list[IntArray]) -> tuple[tuple[int, ...], ...]:
    """The leaves of every span under its new number."""
    _, first = np.unique(new, return_index=True)
    return tuple(tuple(leaves[number].tolist()) for number in old[first].tolist())


def _training_rows(tree: ModelTree, frame: pl.DataFrame, rows: IntArray, times: IntArray | None) -> Finding:
    """Whether the data are the rows that the tree was taught with, as far as its leaves say how many they were."""
    found = np.bincount(leaf_of_rows(tree, frame), weights=times, minlength=len(rows))
    same = bool((found[tree.leaves] == rows[tree.leaves]).all())
    sentence = "The leaves of the tree hold as many rows as it was taught with."
    if not same:
        sentence = (
            "The leaves of the tree hold other numbers of rows than it was taught with: the data are not its training "
            "data, and nothing is known of the individuals who are in these."
        )
    return Finding("training data", "the rows it was taught with", "these" if same else "others", same, sentence)


def _of_saved(
    saved: SavedTree, frame: pl.DataFrame, public: Sequence[str], target: str | None, persons: Persons
) -> ModelSpans:
    of_row, leaves = spans_of_tree(saved.tree, frame, public)
    renumbered = joined_spans([of_row], len(frame))
    findings = () if target is None else (_populations(saved, frame, target, persons),)
    members = _renumbered(renumbered, of_row, leaves)
    return ModelSpans(
        "tree", renumbered, len(saved.tree.leaves), ((saved.tree, renumbered),), members, findings=findings
    )


def _populations(saved: SavedTree, frame: pl.DataFrame, target: str, persons: Persons) -> Finding:
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
    tree: ModelTree, frame: pl.DataFrame, classes: IntArray, width: int, persons: Persons
) -> tuple[IntArray, IntArray]:
    """(leaf, class) the persons in every bin, and those who tell the class of the leaf: its own or, where it has none,
    those of the nearest node above that has any.
    """
    keys = leaf_of_rows(tree, frame) * width + classes
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
