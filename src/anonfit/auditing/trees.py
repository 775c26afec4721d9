# SPDX-License-Identifier: Apache-2.0
"""`audit_tree`: how anonymous the release of a model is towards the rows it was taught with (Friedman, Schuster and
Wolff, k-Anonymous Decision Tree Induction, Definition 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonfit.auditing import coding, tree_folder, tree_models
from anonfit.auditing.coding import IntArray, RowGroups, RowPersons
from anonfit.auditing.counting import group_sizes, share_of
from anonfit.auditing.measuring import audit_request
from anonfit.auditing.model_trees import MODEL, SavedTree
from anonfit.auditing.reading import open_table, require_columns
from anonfit.auditing.request import THRESHOLDS, Request, read_demand, read_targets
from anonfit.auditing.result import Audit, CountedFigure, Share
from anonfit.auditing.tree_folder import ClassExposure, OneTree, RetellTree, Span, TreeAudit
from anonfit.auditing.tree_models import AuditedModel, ModelColumns, ModelSpans
from anonfit.errors import DataError, listed, refuse_fork

CONFIDENCES = (0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


def audit_tree(
    model: Any,
    data: Any = None,
    *,
    public: Sequence[str] | None = None,
    private: Sequence[str] | None = None,
    k: int | None = None,
    target: str | None = None,
    diversity: Sequence[Mapping[str, Any]] = (),
    max_confidence: float | None = None,
    confidences: Sequence[float] = CONFIDENCES,
    entity: str | None = None,
    count: str | None = None,
    times: str | None = None,
    features: Sequence[str] | None = None,
    domains: Mapping[str, Sequence[object]] | None = None,
    limit: int = 10_000_000,
    missing: Sequence[str] | None = None,
    retell: RetellTree | None = None,
) -> TreeAudit:
    """Say how anonymous the release of a model is, together with how many training rows have each of its outcomes.

    Args:
        model: A fitted scikit-learn decision tree or forest (all its trees are taken to be released), a
            KAnonymousTreeClassifier, a saved tree (its folder, whose claims, files and texts are audited too, or its
            file), a function that gives one outcome for each row of a frame, or any model whose `predict` does.
        data: The rows it was taught with, as the model reads them: a path, or a polars, pandas or Arrow frame. Of the
            folder of a tree, less is checked without them.
        public: Columns an attacker may know of a person. A tree of anonfit says which, if this is not given.
        private: Columns nobody else knows. The class is one of them, or of the public ones.
        k: The individuals asked of the smallest span.
        target: The column of the class; not needed where all other columns named are read by the model.
        diversity: Demands on private columns in every span: {"column": "income", "model": "entropy-l", "l": 1.5}.
        max_confidence: The largest share of a span that may have one class.
        confidences: The individuals whose class can be told with these are counted.
        entity: The column whose different values are the individuals.
        count: The column with the number of individuals that a row stands for.
        times: The column that says how often a row was there, in data that have every different row once: its
            individuals are so many, and the figures those of all rows. There is then no `entity` and no `count`.
        features: The columns that the model reads, in its order, where it does not know their names.
        domains: For a model that is no tree, the values that private columns can have; those in the data if not given.
        limit: For a model that is no tree, how often it may be asked at most.
        missing: Texts that mean missing, if the manifest of a folder does not say.
        retell: Tells the texts of a tree's folder anew; anonfit.audit_tree brings it.

    Returns:
        What was found; `passed` says whether every demand is met, and every claim of a folder.

    Example:
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": [30, 40, 50, 60], "smokes": [0, 1, 0, 1], "ill": [0, 0, 0, 1]})
        >>> model = lambda rows: (rows["age"] >= 50) & (rows["smokes"] == 1)
        >>> result = audit_tree(model, people, public=["age"], private=["smokes", "ill"], target="ill", k=2)
        >>> result.k, result.passed, result.certain.persons
        (2, True, 2)
    """
    refuse_fork()
    if tree_folder.is_tree_folder(model):
        asked: dict[str, Any] = {"public": public, "private": private, "k": k, "target": target, "diversity": diversity}
        asked |= {"max_confidence": max_confidence, "entity": entity, "count": count, "times": times}
        asked = {name: value for name, value in asked.items() if value is not None and value != ()}
        return _of_folder(Path(model), data, asked, retell, missing=missing, limit=limit)
    if data is None:
        raise DataError("An audit of a model needs the rows that it was taught with.")
    named = [*(public or ()), *(private or ())]
    opened = tree_models.open_model(model, features, [name for name in named if name != target])
    if times is not None and (entity is not None or count is not None):
        raise DataError("'times' says how often a row was there; 'entity' and 'count' cannot be given beside it.")
    known = _known(opened, public, private, target)
    columns = ModelColumns(*known, entity=entity, numbers=count if times is None else times, times=times)
    table = open_table(data, missing=("",) if missing is None else missing)
    persons_of = [name for name in (entity, columns.numbers) if name is not None]
    needed = list(dict.fromkeys([*columns.public, *columns.private, *persons_of]))
    require_columns(table, needed, purpose="named for the audit")
    frame = table.frame(needed)
    if not len(frame):
        raise DataError("The data has no rows, so there is nobody to protect.")
    persons = coding.read_persons(frame, entity=entity, count=columns.numbers)
    spans = tree_models.spans_of(opened, data, frame, columns, persons, domains=domains or {}, limit=limit)
    demands = {"k": k, "diversity": diversity, "max_confidence": max_confidence}
    return _measured(columns, frame, persons, spans, demands, tuple(confidences))


def _of_folder(path: Path, data: Any, asked: dict[str, Any], retell: RetellTree | None, **words: Any) -> TreeAudit:
    """The folder of a published tree: what it claims and, apart from that, what is asked of it here."""
    folder = tree_folder.open_tree_folder(path)
    if words["missing"] is not None:
        folder = replace(folder, promise=replace(folder.promise, missing=tuple(words["missing"])))
    if data is None:
        of_caller = tree_folder.not_counted(asked, folder.saved.target)
        findings = tree_folder.check_tree_folder(folder, None, None, retell)
        return tree_folder.claimed(tree_folder.uncounted(folder), folder, findings, of_caller)
    rows, claims = tree_folder.training_rows(folder, data), {**folder.words, "missing": (), "limit": words["limit"]}
    height = open_table(data, missing=folder.promise.missing, columns=list(folder.public)).height()
    own = audit_tree(path / MODEL, rows, **claims)
    audited = tree_folder.claimed(own, folder, tree_folder.check_tree_folder(folder, own, height, retell))
    if not asked:
        return audited
    other = audit_tree(path / MODEL, rows, **{**claims, "k": None, "diversity": (), "max_confidence": None, **asked})
    of_spans = [finding for finding in other.findings if finding.name != "populations"]
    return tree_folder.claimed(audited, folder, (), of_spans)


def _known(
    model: AuditedModel, public: Sequence[str] | None, private: Sequence[str] | None, target: str | None
) -> tuple[tuple[str, ...], tuple[str, ...], str | None]:
    """Public and private columns, and the class: the one that the model does not read."""
    saved = model.held if isinstance(model.held, SavedTree) else None
    if isinstance(public, str) or isinstance(private, str):
        raise DataError("'public' and 'private' are lists of columns.")
    if public is None and private is None and saved is not None:
        target = target or saved.target
        known = (target,) if saved.class_is_public else ()
        private = [name for name in saved.tree.names if name not in saved.public]
        public, private = (*saved.public, *known), (*private, *({target} - set(known)))
    public, private = tuple(public or ()), tuple(private or ())
    if both := sorted(set(public) & set(private)):
        raise DataError(f"Both public and private: {listed(both)}; a column is one of these.")
    named = (*public, *private)
    if not named:
        raise DataError("An audit needs the public and the private columns: what can an attacker know of a person?")
    if len(set(named)) < len(named):
        raise DataError("A column is named twice among the public and private columns.")
    rest = [name for name in named if name not in model.columns]
    if target is None and len(rest) > 1:
        raise DataError(f"Which of {listed(rest)} is the class? Name it as 'target'; the model does not read it.")
    if target is not None and target not in named:
        raise DataError(f"The class '{target}' is among neither the public nor the private columns; add it to one.")
    if target is not None and target in model.columns:
        raise DataError(f"The model reads '{target}', so it cannot be the class.")
    return public, private, target or (rest[0] if rest else None)


def _measured(
    columns: ModelColumns,
    frame: pl.DataFrame,
    persons: RowPersons,
    model: ModelSpans,
    demands: Mapping[str, Any],
    confidences: tuple[float, ...],
) -> TreeAudit:
    """The figures of spans, which are told apart by a class that is public."""
    of_row, hidden, k = model.of_row, columns.target, demands["k"]
    if columns.class_is_public:
        classes = coding.group_rows(frame.select(columns.target), len(frame)).of_row
        of_row, hidden = tree_models.joined_spans([of_row, classes], len(frame)), None
    values = None if hidden is None else frame[hidden]
    spans = _audit(columns, frame, of_row, demands)
    trees = []
    for tree, of_tree in model.trees:
        of_one = group_sizes(coding.persons_in_groups(persons, of_tree, int(of_tree.max()) + 1), k)
        certain = None if values is None else _exposed(persons, of_tree, values, (1.0,))[0].persons
        trees.append(OneTree(len(tree.leaves), of_one.groups, of_one.smallest, of_one.persons_below_k, certain))
    return TreeAudit(
        kind=model.kind,
        public=columns.public,
        private=columns.private,
        target=columns.target,
        class_is_public=columns.class_is_public,
        outcomes=model.outcomes,
        spans=replace(spans, findings=(*model.findings, *spans.findings), notes=(*spans.notes, *model.notes)),
        exposed=() if values is None else _exposed(persons, of_row, values, confidences),
        trees=tuple(trees),
        of_spans=_of_spans(columns, frame, model, persons, of_row),
    )


def _of_spans(
    columns: ModelColumns, frame: pl.DataFrame, model: ModelSpans, persons: RowPersons, of_row: IntArray
) -> tuple[Span, ...]:
    """The spans of a single tree; of_row: those that a public class tells apart."""
    if not model.leaves:
        return ()
    _, first = np.unique(of_row, return_index=True)
    classes: list[str | None] = [None] * len(first)
    if columns.class_is_public and columns.target is not None:
        classes = [tree_models.class_name(value) for value in frame[columns.target].gather(first).to_list()]
    leaves = [model.leaves[number] for number in model.of_row[first].tolist()]
    sizes = coding.persons_in_groups(persons, of_row, len(first)).tolist()
    spans = [Span(*value) for value in zip(sizes, leaves, classes, strict=True)]
    # Not as they come: whose row is the first tells something of its person.
    return tuple(sorted(spans, key=lambda span: (span.leaves, span.of_class or "")))


def _audit(columns: ModelColumns, frame: pl.DataFrame, of_row: IntArray, asked: Mapping[str, Any]) -> Audit:
    """The audit of the table in which everybody's span stands in place of the public columns."""
    span = "span"
    while span in frame.columns:
        span += "_"
    private = [name for name in columns.private if name != columns.entity]
    max_confidence, demands = asked["max_confidence"], tuple(read_demand(entry) for entry in asked["diversity"])
    if strange := [demand.column for demand in demands if demand.column not in private]:
        raise DataError(f"Diversity is asked of {listed(strange)}, which is no private column.")
    # Other private columns are not told of anybody, so nothing is said of them.
    needed = [columns.target if columns.target in private else None, *(demand.column for demand in demands)]
    names = dict.fromkeys(name for name in (*needed, columns.entity, columns.numbers) if name is not None)
    table = pl.DataFrame([pl.Series(span, of_row), *(frame[name] for name in names)])
    if max_confidence is not None and (columns.target is None or columns.target not in private):
        raise DataError("'max_confidence' is of a private class, and there is none.")
    capped = [{"column": columns.target, "type": "nominal"}]
    audited = audit_request(
        Request(
            data=table,
            quasi_identifiers=(span,),
            k=asked["k"],
            entity=columns.entity,
            count=columns.numbers,
            diversity=demands,
            targets=() if max_confidence is None else read_targets(capped, max_confidence),
            thresholds=THRESHOLDS,
            missing=(),
        )
    )
    if columns.times is None:
        return audited
    # What is said of different rows is meant of all rows, of which each is an individual.
    rows = audited.persons
    raw_columns = tuple(
        replace(column, distinct=CountedFigure(round(column.distinct.value * audited.rows) / rows, rows))
        for column in audited.raw_columns
        if column.name != columns.times
    )
    return replace(audited, rows=rows, counted="rows", raw_columns=raw_columns, suppressed_rows=Share(0, rows))


def _exposed(
    persons: RowPersons, of_row: IntArray, values: pl.Series, confidences: tuple[float, ...]
) -> tuple[ClassExposure, ...]:
    """How many individuals are in spans of which so large a part has one class."""
    if not all(isinstance(share, int | float | np.floating) and 0 < share <= 1 for share in confidences):
        raise DataError("A confidence is above 0 and at most 1.")
    groups = int(of_row.max()) + 1
    sizes = coding.persons_in_groups(persons, of_row, groups)
    grouping = RowGroups(of_row, groups, of_row[:0])
    most = coding.frequencies(persons, grouping, coding.coded_values(values), sizes=sizes).most
    # 85 % of 20 persons are 17, though 0.85 * 20 may come out a little larger.
    return tuple(
        ClassExposure(confidence, share_of(sizes, most >= confidence * sizes * (1 - 1e-12)))
        for confidence in sorted({*confidences, 1.0})
    )
