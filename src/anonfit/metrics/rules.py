# SPDX-License-Identifier: Apache-2.0
"""Association rules that a release tells, and whether they hold in the raw rows too: what others may find in it for
whom it was not made.

Rules are made of items: a part of an ordered column, a node of a taxonomy, a value. Items are chosen by the release
alone; a released row has one if its label lies wholly within it, a raw row if its value does. What a rule says of the
release anybody can find in it; of the raw rows it is told only whether it holds there too, and only of rules that
enough persons are for, and none or enough against.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.engines.tree import unpacked
from anonfit.errors import MissingPackage
from anonfit.metrics.arrays import AnyIntegers, Flags, Integers
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.columns import NominalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding

PARTS = 4
"""Parts of an ordered column, of about as many rows each."""
MOST_NAMES = 20
"""Names of a column that are items, those of most rows."""


@dataclass(frozen=True, slots=True)
class Item:
    """What rows may have: of which column, in words, and which released and raw rows have it."""

    column: str
    text: str
    released: Flags  # (row,)
    raw: Flags  # (row,)


def items_of(recoding: Recoding, nodes: AnyIntegers, frame: pl.DataFrame, columns: Sequence[str]) -> list[Item]:
    """The items of released rows in these nodes (row,), also of some columns that are released as they are."""
    cells = recoding.cells(frame)
    items: list[Item] = []
    for index, column in enumerate(recoding.columns):
        items += _of_quasi_identifier(recoding, column, index, nodes, cells[index])
    for name in columns:
        items += _of_raw(name, frame[name])
    return items


def _of_quasi_identifier(
    recoding: Recoding, column: RecodedColumn, index: int, nodes: NDArray[Any], cells: NDArray[np.int32]
) -> Iterator[Item]:
    parts = recoding.boxes.parts(nodes, index)
    held = unpacked(parts.bits(column.size), column.size).astype(np.bool_)  # (part, cell)
    for chosen in _sets(column, held, parts.of_node):
        lies_within: Flags = np.logical_not((held & ~chosen).any(axis=1))
        text = f"{column.name} {column.label(np.flatnonzero(chosen).tolist())}"
        yield Item(column.name, text, lies_within[parts.of_node], chosen[cells])


def _sets(column: RecodedColumn, held: Flags, of_node: Integers) -> Iterator[Flags]:
    """The sets of cells that are items. held: (part, cell)"""
    shift, size = int(column.has_missing), column.size
    if isinstance(column, NominalCells):
        taxonomy = column.taxonomy
        single = held.sum(axis=1) == 1
        counts = np.bincount(held.argmax(axis=1)[of_node], weights=single[of_node], minlength=size)
        frequent = sorted(range(shift, size), key=lambda cell: (-counts[cell], cell))[:MOST_NAMES]
        runs = [(cell - shift, cell - shift) for cell in frequent if counts[cell] > 0]
        inner = zip(taxonomy.first_leaf[1:], taxonomy.last_leaf[1:], strict=True)
        runs += [(int(first), int(last)) for first, last in inner if last > first]
    else:
        middles = (held.argmax(axis=1) + size - 1 - held[:, ::-1].argmax(axis=1)) / 2
        cuts = np.unique(np.quantile(middles[of_node], np.arange(1, PARTS) / PARTS).round().astype(int))
        edges = [shift, *[int(cut) for cut in cuts if shift < cut < size], size]
        runs = [(low - shift, high - 1 - shift) for low, high in pairwise(edges) if len(edges) > 2]
    for first, last in dict.fromkeys(runs):
        chosen = np.zeros(size, np.bool_)
        chosen[first + shift : last + shift + 1] = True
        if not chosen[shift:].all():
            yield chosen


def _of_raw(name: str, values: pl.Series) -> Iterator[Item]:
    """Values, or parts of numbers that are of many values; all of it can be seen in the release."""
    if values.dtype.is_numeric() and values.n_unique() > MOST_NAMES:
        numbers = values.cast(pl.Float64)
        ends = {numbers.quantile(at / PARTS, "nearest") for at in range(1, PARTS)}
        edges = [None, *sorted(end for end in ends if end is not None), None]
        for low, high in pairwise(edges):
            has = numbers.is_not_null()
            has = has if low is None else has & (numbers >= low)
            has = has if high is None else has & (numbers < high)
            text = f"< {high:g}" if low is None else f"≥ {low:g}" if high is None else f"[{low:g}, {high:g})"
            truth = has.fill_null(value=False).to_numpy()
            yield Item(name, f"{name} {text}", truth, truth)
        return
    counted = values.drop_nulls().value_counts(sort=True).head(MOST_NAMES)
    for value in counted[values.name].to_list():
        truth = (values == value).fill_null(value=False).to_numpy()
        yield Item(name, f"{name} {value}", truth, truth)


SUPPORT = 0.02
"""The share of rows that a rule is about, at least."""
CONFIDENCE = 0.8
LIFT = 1.2
"""So many times as often as everywhere; rules of less are about what is frequent anyway."""
MOST = 30
ROWS = 20_000
"""Rows in which rules are looked for; more are drawn from."""
WORDS = 3
"""Items of a rule."""
ITEMS = 100
"""Items that rules are made of, those that tell most pairs of rows apart: sets of three are many."""


@dataclass(frozen=True, slots=True)
class AssociationRule:
    """Rows with all of the first have the second: how many rows have the first, and both, released and raw."""

    given: tuple[str, ...]
    then: str
    lift: float
    rows: int
    released: tuple[int, int]
    raw: tuple[int, int]

    @property
    def holds(self) -> bool:
        """Whether it is a rule of the raw rows too."""
        given, both = self.raw
        return both >= SUPPORT * self.rows and given > 0 and both >= CONFIDENCE * given


def require_mining() -> None:
    """Refuse where the package is missing."""
    try:
        import mlxtend.frequent_patterns  # noqa: F401
    except ModuleNotFoundError:
        raise MissingPackage("mlxtend", "rules", "workload.rules") from None


def find_rules(items: Sequence[Item]) -> list[AssociationRule]:
    """At most thirty rules between columns of released rows, with one thing that follows; first those that say most."""
    require_mining()
    if not items or not len(items[0].released):
        return []
    # Those by which most pairs of rows differ, in their order.
    shares = np.array([item.released.mean() for item in items])
    kept = np.argsort(-shares * (1 - shares), kind="stable")[:ITEMS]
    items = [items[at] for at in sorted(kept.tolist())]
    released = np.stack([item.released for item in items], axis=1)
    raw = np.stack([item.raw for item in items], axis=1)
    rules = []
    for rule in _mined(released):
        columns = [items[at].column for at in (*rule.given, rule.then)]
        if len(set(columns)) == len(columns):
            rules.append(rule)
    rules.sort(key=lambda rule: (-rule.surplus, [items[at].text for at in rule.given], items[rule.then].text))
    counted = []
    for rule in _without_special_cases(rules):
        counts = []
        for rows in (released, raw):
            has = rows[:, list(rule.given)].all(axis=1)
            counts.append((int(has.sum()), int((has & rows[:, rule.then]).sum())))
        given, both = counts[0]
        lift = both / given / (int(released[:, rule.then].sum()) / len(released))
        texts = tuple(items[at].text for at in rule.given)
        counted.append(AssociationRule(texts, items[rule.then].text, lift, len(released), *counts))
    return counted


@dataclass(frozen=True, slots=True)
class _Mined:
    """A rule by the numbers of its items, how sure it is, and how much it says."""

    given: tuple[int, ...]
    then: int
    sure: float
    surplus: float
    """How many rows more than by chance have both, as a share."""


def _mined(released: Flags) -> Iterator[_Mined]:
    """What follows from what."""
    import pandas as pd
    from mlxtend.frequent_patterns import apriori, association_rules

    # Of this library's ways the one whose time depends on items, not on how different rows are.
    sets = apriori(pd.DataFrame(released), min_support=SUPPORT, max_len=WORDS, low_memory=True)
    if not len(sets):
        return
    rules: Any = association_rules(sets, metric="confidence", min_threshold=CONFIDENCE)
    rules = rules[rules["lift"] >= LIFT]
    figures = (rules[name] for name in ("antecedents", "consequents", "confidence", "support", "lift"))
    for given, then, sure, support, lift in zip(*figures, strict=True):
        if len(then) == 1:
            surplus = round(support - support / lift, 12)
            yield _Mined(tuple(sorted(int(item) for item in given)), int(next(iter(then))), sure, surplus)


def _without_special_cases(rules: Sequence[_Mined]) -> list[_Mined]:
    """The first rules, without those that follow from a simpler one, which is as sure."""
    known = {(rule.given, rule.then): rule.sure for rule in rules}
    kept: list[_Mined] = []
    for rule in rules:
        simpler = (part for size in range(1, len(rule.given)) for part in combinations(rule.given, size))
        if not any(known.get((part, rule.then), 0.0) >= rule.sure for part in simpler):
            kept.append(rule)
        if len(kept) == MOST:
            break
    return kept


def rules_content(rules: Sequence[AssociationRule], disclosure: Disclosure) -> dict[str, Any]:
    """The rules, as far as they may be told; whether one holds in the raw rows only if persons have one row each."""
    lines = []
    for rule in rules:
        given, both = rule.raw
        is_large = disclosure.rows_are_persons and both >= disclosure.min_persons
        is_told = not disclosure.min_persons or (is_large and disclosure.may_disclose(both, given))
        line: dict[str, Any] = {
            "given": list(rule.given),
            "then": rule.then,
            "support": round(rule.released[1] / rule.rows, 4),
            "confidence": round(rule.released[1] / rule.released[0], 4),
            "lift": round(rule.lift, 2),
            "holds": rule.holds if is_told else None,
        }
        if not disclosure.min_persons:
            line |= {"raw_support": both / rule.rows, "raw_confidence": both / given if given else None}
        lines.append(line)
    return {
        "found": len(lines),
        "hold": sum(line["holds"] is True for line in lines),
        "not_told": sum(line["holds"] is None for line in lines),
        "rules": lines,
    }
