# SPDX-License-Identifier: Apache-2.0
"""Labels say exactly the cells they stand for, and the audit, which has a reader of its own, reads them back."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest
from cell_trees import nominal_cells, ordered_cells, ordinal_cells, recodings
from hypothesis import given
from hypothesis import strategies as st

from anonfit.auditing.labels import ValueSet, read_label
from anonfit.auditing.meanings import LabelMeaning, read_meaning
from anonfit.engines.tree import Tree
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.tables.scales import Scale
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy
from strategies import tries


def numbers(*cuts: Any, missing: bool = False, domain: tuple[Any, ...] = ()) -> OrderedCells:
    return OrderedCells("x", ColumnType.CONTINUOUS, Scale.NUMBER, cuts, missing, domain)


def words(*order: str, missing: bool = False) -> OrdinalCells:
    return OrdinalCells("x", order, missing)


def names(*leaves: str, missing: bool = False) -> NominalCells:
    return NominalCells("x", Taxonomy.flat(leaves), missing)


EUROPE = Taxonomy.from_tree(
    {
        "name": "World",
        "children": [{"name": "Europe", "children": [{"name": "FR"}, {"name": "DE"}]}, {"name": "US"}, {"name": "BR"}],
    }
)


@pytest.mark.parametrize(
    ("column", "cells", "label"),
    [
        (numbers(25, 80), [0], "< 25"),
        (numbers(25, 80), [1], "[25, 80)"),
        (numbers(25, 80), [2], "≥ 80"),
        (numbers(25, 80), [0, 1], "< 80"),
        (numbers(25, 80), [1, 2], "≥ 25"),
        (numbers(25, 80), [0, 1, 2], "*"),
        (numbers(25, 80, missing=True), [0], "missing"),
        (numbers(25, 80, missing=True), [0, 1], "missing or < 25"),
        (numbers(25, 80, missing=True), [0, 1, 2], "missing or < 80"),
        (numbers(25, 80, missing=True), [1, 2, 3], "not missing"),
        (numbers(25, 80, missing=True), [0, 1, 2, 3], "*"),
        (numbers(25, domain=(0, 120)), [0], "[0, 25)"),
        (numbers(25, domain=(0, 120)), [1], "[25, 120]"),
        (numbers(120, domain=(0, 120)), [1], "120"),
        (numbers(-5, 1e-05), [1], "[-5, 1e-05)"),
        (numbers(37.5, 1e22), [1], "[37.5, 1e+22)"),
        (numbers(missing=True), [1], "not missing"),
        (OrderedCells("x", ColumnType.DATE, Scale.DATE, ("2024-03-01",), False), [0], "< 2024-03-01"),
        (OrderedCells("x", ColumnType.DATE, Scale.TIME, ("2024-03-01T12:30:00",), False), [1], "≥ 2024-03-01T12:30:00"),
        (words("low", "mid", "high"), [0], "low"),
        (words("low", "mid", "high"), [0, 1], "< high"),
        (words("low", "mid", "high"), [1, 2], "≥ mid"),
        (words("a", "b, c", "d", "e"), [1, 2], '["b, c", e)'),
        (words("low", "mid", "high", missing=True), [0, 1], "missing or low"),
        (words("low", "mid", "high", missing=True), [1, 2, 3], "not missing"),
        (words("low", "mid", "high", missing=True), [0, 2, 3], "missing or ≥ mid"),  # of observed records
        (words("low", "mid", "high", "top", missing=True), [0, 2, 3], "missing or [mid, top)"),
        (numbers(25, domain=(0, 120), missing=True), [1, 2], "[0, 120]"),
        (names("FR", "DE", "US"), [0, 2], "{FR, US}"),
        (names("FR", "DE", "US"), [1], "DE"),
        (names("FR", "DE", "US", missing=True), [0, 2], "missing or DE"),
        (names("a, b", 'say "x"', "c"), [0, 1], '{"a, b", "say \\"x\\""}'),
        (names("missing", "not missing", "x"), [0], '"missing"'),
        (NominalCells("x", Taxonomy.flat(["*", "y"], "**"), False), [0], '"*"'),
        (names("a\nb", "c"), [0], '"a\\nb"'),
        (names("a-b", "c;d", "e~f", "O'Neil (x)"), [0, 1, 2], "{a-b, c;d, e~f}"),
        (NominalCells("x", EUROPE, False), [0, 1], "Europe"),
        (NominalCells("x", EUROPE, False), [0, 1, 3], "{Europe, BR}"),
        (NominalCells("x", EUROPE, False), [1, 2], "{DE, US}"),
        (NominalCells("x", EUROPE, True), [0, 1, 2], "missing or Europe"),
        (NominalCells("x", EUROPE, True), [1, 2, 3, 4], "not missing"),
    ],
)
def test_labels_by_hand(column: RecodedColumn, cells: list[int], label: str) -> None:
    assert column.label(cells) == label


def test_an_empty_word_of_an_order_is_quoted() -> None:
    assert words("a", "", "b", "c").label([1, 2]) == '["", c)'


def runs(column: RecodedColumn) -> list[tuple[int, ...]]:
    """Every run of cells."""
    return [tuple(range(first, last + 1)) for first in range(column.size) for last in range(first, column.size)]


def subsets(column: RecodedColumn) -> list[tuple[int, ...]]:
    return [part for count in range(1, column.size + 1) for part in combinations(range(column.size), count)]


@given(ordered_cells("x") | ordinal_cells("x"))
@tries(200)
def test_different_runs_never_share_a_label(column: RecodedColumn) -> None:
    found = [column.label(part) for part in runs(column)]
    assert len(set(found)) == len(found)


def test_missing_has_a_label_in_a_column_without_cuts() -> None:
    assert numbers(missing=True).label([0]) == "missing"


@given(nominal_cells("x"))
@tries(300)
def test_different_sets_never_share_a_label(column: NominalCells) -> None:
    found = [column.label(part) for part in subsets(column)]
    assert len(set(found)) == len(found)


def meaning_of(column: RecodedColumn) -> LabelMeaning:
    """What recoding.json says of the column, as the audit reads it."""
    (entry,) = json.loads(Recoding((column,), Tree.single()).to_json())["columns"]
    return read_meaning(column.name, entry)


def leaves_of(found: ValueSet, column: NominalCells) -> set[int]:
    """The cells of a set that the audit read."""
    shift = int(column.has_missing)
    taxonomy = column.taxonomy
    cells = set(range(shift, column.size)) if found.everything else set()
    for name in found.names:
        node = taxonomy.find(name)
        cells |= {leaf + shift for leaf in range(taxonomy.first_leaf[node], taxonomy.last_leaf[node] + 1)}
    return cells | ({0} if found.missing and shift else set())


@given(nominal_cells("x"))
@tries(300)
def test_the_audit_reads_names_back(column: NominalCells) -> None:
    meaning = meaning_of(column)
    for part in subsets(column):
        found = read_label(column.label(part), meaning)
        assert found is not None, column.label(part)
        assert leaves_of(found, column) == set(part)
        assert found.missing == (0 in part and column.has_missing) or len(part) == column.size


@given(ordered_cells("x"))
@tries(200)
def test_the_audit_reads_intervals_back(column: OrderedCells) -> None:
    meaning = meaning_of(column)
    shift = int(column.has_missing)
    for part in runs(column):
        found = read_label(column.label(part), meaning)
        assert found is not None, column.label(part)
        if column.label(part) != "*":
            assert found.missing == (shift == 1 and part[0] == 0)
        if part == (0,) and shift:
            assert not found.intervals
            continue
        low, high = column.ends(part)
        if (low is None and high is None) or len(part) == column.size:
            assert found.everything
            continue
        (interval,) = found.intervals
        assert interval.lower == (None if low is None else meaning.scalar(str(low)))
        assert interval.upper == (None if high is None else meaning.scalar(str(high)))
        assert interval.closed == (bool(column.domain) and column.is_last(part))


@given(ordinal_cells("x"))
@tries(200)
def test_the_audit_reads_words_back(column: OrdinalCells) -> None:
    meaning = meaning_of(column)
    shift = int(column.has_missing)
    for part in runs(column):
        found = read_label(column.label(part), meaning)
        assert found is not None, column.label(part)
        if len(part) == column.size:
            assert found.everything
            continue
        held = {
            place
            for place in range(len(column.order))
            if found.everything or any(_holds(one, place) for one in found.intervals)
        }
        assert held == {cell - shift for cell in part if cell >= shift}


def _holds(interval: Any, place: int) -> bool:
    above = interval.lower is None or interval.lower <= place
    below = interval.upper is None or place < interval.upper or (interval.closed and place == interval.upper)
    return above and below


@given(recodings(), st.data())
@tries(50)
def test_every_region_of_a_column_has_a_label_that_the_audit_reads(recoding: Recoding, data: st.DataObject) -> None:
    node = data.draw(st.integers(0, len(recoding.tree.column) - 1))
    for index, column in enumerate(recoding.columns):
        assert read_label(column.label(recoding.boxes.cells(node, index)), meaning_of(column)) is not None


def whole(
    cuts: tuple[float, ...], *, closed: bool, missing: bool = False, domain: tuple[int, ...] = ()
) -> OrderedCells:
    return OrderedCells("x", ColumnType.CONTINUOUS, Scale.WHOLE, cuts, missing, domain, closed=closed)


@pytest.mark.parametrize(
    ("column", "cells", "label"),
    [
        (whole((39, 40, 43), closed=False), [1], "39"),
        (whole((39, 40, 43), closed=False), [2], "[40, 43)"),
        (whole((39, 40, 43), closed=False), [0], "< 39"),
        (whole((38.5, 39.5, 43), closed=False), [1], "39"),
        (whole((38.5, 39.5, 43), closed=False), [2], "[39.5, 43)"),
        (whole((38.5, 39.5, 43), closed=True), [2], "40–42"),
        (whole((38.5, 39.5, 42.5), closed=True), [2], "40–42"),
        (whole((38.5, 39.5, 42.5), closed=True), [3], "≥ 43"),
        (whole((39, 40, 43), closed=True), [1], "39"),
        (whole((39, 40, 43), closed=True), [2], "40–42"),
        (whole((39, 40, 43), closed=True), [0, 1], "≤ 39"),
        (whole((39, 40, 43), closed=True), [3], "≥ 43"),
        (whole((-9, -4), closed=True), [1], "-9–-5"),
        (whole((39,), closed=True, missing=True), [0, 1], "missing or ≤ 38"),
        (whole((39,), closed=True, missing=True), [1, 2], "not missing"),
        (whole((18, 65), closed=True, domain=(0, 120)), [0], "0–17"),
        (whole((18, 65), closed=True, domain=(0, 120)), [2], "65–120"),
        (whole((18, 120), closed=True, domain=(0, 120)), [2], "120"),
        (whole((18, 120), closed=True, domain=(0, 120)), [1], "18–119"),
        (whole((1, 120), closed=False, domain=(0, 120)), [0], "0"),
        (whole((18,), closed=True, domain=(0, 120), missing=True), [1, 2], "0–120"),
    ],
)
def test_whole_numbers(column: OrderedCells, cells: list[int], label: str) -> None:
    assert column.label(cells) == label


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("text", ["[39, 40)", "[40, 42]", "40–42.0", "40-42", "42–40", "40–", "–42", "≤ 38.0", "≤ ", "40–41–42", "039", "< 39", "[39, 43)"])  # fmt: skip
def test_the_audit_knows_one_spelling_of_whole_numbers(closed: bool, text: str) -> None:
    from anonfit.auditing.labels import cell_reader, speller

    entry = {"type": "continuous", "scale": "whole", "missing": False, "cuts": [38.5, 40, 43], "domain": None}
    meaning = read_meaning("x", {**entry, "intervals": "closed" if closed else "half-open"})
    values = read_label(text, meaning)
    cells = None if values is None else cell_reader(meaning)(values)
    assert values is None or cells in (None, []) or not speller(meaning, observed=False)(text, values, cells)
