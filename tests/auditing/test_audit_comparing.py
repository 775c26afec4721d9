# SPDX-License-Identifier: Apache-2.0
"""Rows of two tables are compared as multisets of hashes; the fast ways find what the slow and obvious ones do."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonfit.auditing.api import audit
from anonfit.auditing.hashing import Align, ComparedColumn, KeyTally, add_hashes, aligned, aligned_texts, side_of
from anonfit.auditing.labels import _parts, _quoted_end
from anonfit.auditing.reading import open_table
from anonfit.auditing.released import Released, RowOrder, open_released

KINDS = {
    "whole": ["1", "2", "-3", "40", "007"],
    "numbers": ["1", "1.0", "1.50", "-0.0", "1e3", "1E-2", "12345678901234567890"],
    "dates": ["2024-01-01", "2024-01-02", "1999-12-31"],
    "truth": ["true", "false", "1", "0"],
    "names": ["a", "a, b", '"q"', "{x}", "[1, 2)", "-", "", "ß", "1"],
}
OTHERS = [
    pl.Series([1, 2, -3, 40, None], dtype=pl.Int64),
    pl.Series([1.0, 1.5, -0.0, 1000.0, 0.01], dtype=pl.Float64),
    pl.Series(["1.50", "1", None], dtype=pl.String).cast(pl.Decimal(20, 2)),
    pl.Series(["2024-01-01", None, "1999-12-31"]).str.to_date(),
    pl.Series([True, False, None]),
    pl.Series(["a", "1", "1.0", None, "2024-01-01"]),
    pl.Series(["a", "1", "1.0", None], dtype=pl.Categorical),
    pl.Series([None, None], dtype=pl.String),
]


def aligned_sides(one: ComparedColumn, other: ComparedColumn, align: Align) -> list[np.ndarray]:
    values = align(one.values, other.values)
    sides = [ComparedColumn(found, side.pointers) for found, side in zip(values, (one, other), strict=True)]
    return [side.hashes(3)(slice(None)) for side in sides]


@pytest.mark.parametrize("align", [aligned, aligned_texts])
@pytest.mark.parametrize("kind", KINDS)
def test_texts_in_a_dictionary_are_compared_as_texts_are(kind: str, align: Align) -> None:
    rng = random.Random(kind)
    for other in OTHERS:
        for rows in (0, 1, 40):
            values = [rng.choice([*KINDS[kind][: rng.randint(1, 9)], None]) for _ in range(rows)]
            texts = pl.Series(values, dtype=pl.String)
            slow = aligned_sides(ComparedColumn(texts), ComparedColumn(other), align)
            for short in (texts.cast(pl.Categorical), texts.cast(pl.Enum([*KINDS[kind], "never"]))):
                fast = aligned_sides(side_of(short), side_of(other), align)
                # Only which values are equal counts: columns that cannot be of one type may both become texts.
                both, together = (np.concatenate(found) for found in (slow, fast))
                assert len(set(zip(both.tolist(), together.tolist(), strict=True))) == len(set(both.tolist()))
                assert len(set(together.tolist())) == len(set(both.tolist()))


def row_keys(groups: list[int], *columns: list[object]) -> KeyTally:
    hashes, tally = np.zeros(len(groups), np.uint64), KeyTally(keep=True)
    for place, column in enumerate(columns, 1):
        add_hashes(hashes, side_of(pl.Series(column)), place)
    tally.add(np.array(groups, np.int64), hashes)
    return tally


@pytest.mark.parametrize("seed", range(8))
def test_multisets_differ_by_as_many_rows_as_when_counted(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        tables = []
        for _ in range(2):
            rows = [(rng.randrange(-1, 3), rng.choice("ab"), rng.randrange(2)) for _ in range(rng.randrange(12))]
            tables.append([row for row in rows if rng.random() < 0.9])
        if rng.random() < 0.3:
            tables[1] = rng.sample(tables[0], len(tables[0]))
        counted = [Counter(row for row in table if row[0] >= 0) for table in tables]
        keys = [row_keys(*([*map(list, zip(*table, strict=True))] or [[]])) for table in tables]
        assert KeyTally.differences(*keys) == ((counted[0] - counted[1]).total(), (counted[1] - counted[0]).total())


def test_values_that_two_rows_swapped_are_always_seen() -> None:
    """Sums of hashes would not see them if a hash were a sum of its parts."""
    for one in range(25):
        for other in range(one):
            before = row_keys([0, 1], [one, other], ["x", "x"])
            assert before.differences(row_keys([0, 1], [other, one], ["x", "x"])) == (2, 2)
            within = row_keys([0, 0], [one, other], ["x", "y"])
            assert within.differences(row_keys([0, 0], [one, other], ["y", "x"])) == (2, 2)
            assert within.differences(row_keys([0, 0], [other, one], ["y", "x"])) == (0, 0)


def rows_are_sorted(released: Released) -> bool:
    order = RowOrder(released)
    for batch, groups in released.batches():
        order.add(batch, groups)
    return order.is_sorted


def rises(here: object, after: object) -> bool:
    return here is None or (after is not None and here <= after)  # type: ignore[operator]


@pytest.mark.parametrize("words", [["a", "b", "ß", None], ["9", "10", "-2", None], ["9", "10", "x"], ["07", "10", "9"]])
def test_the_order_of_rows_is_found_for_texts_in_any_form(words: list[str | None]) -> None:
    rng, seen = random.Random(str(words)), set()
    for _ in range(60):
        rows = [(rng.choice("pq"), *rng.choices(words, k=2)) for _ in range(rng.randrange(1, 7))]
        if rng.random() < 0.7:
            numbers = all(word is None or word.lstrip("-").isdigit() for word in words) and rng.random() < 0.5
            rows.sort(key=lambda row: [(word is not None, int(word) if numbers else word) if word else (False, 0)
                                       for word in row[1:]])  # fmt: skip
            rows.sort(key=lambda row: str(row[0]))
        frame = pl.DataFrame(rows, schema=dict.fromkeys(("key", "one", "two"), pl.String), orient="row")
        forms = [frame, frame.cast(pl.Categorical), frame.cast(pl.Enum([word for word in [*words, "p", "q"] if word]))]
        found = {rows_are_sorted(open_released(open_table(form), ["key"])) for form in forms}
        assert found == {is_sorted(rows)}
        seen |= found
    assert seen == {True, False}


def is_sorted(rows: list[tuple[str | None, ...]]) -> bool:
    """By the first column, which makes groups, and within groups by the others, texts of numbers in either order.

    While many rows are tied, a column is read as numbers only if all of its texts are; later, only those of the tied
    rows count.
    """
    if not all(rises(here[0], after[0]) for here, after in pairwise(rows)):
        return False
    tied = [i for i in range(len(rows) - 1) if rows[i][0] == rows[i + 1][0]]
    few = False
    for place in (1, 2):
        few = few or len(tied) * 4 < len(rows) - 1
        used = range(len(rows)) if not few else sorted({i for row in tied for i in (row, row + 1)})
        texts = [value for i in used if (value := rows[i][place]) is not None]
        numeric = all(value.lstrip("-").isdigit() and not (value[0] == "0" and len(value) > 1) for value in texts)
        pairs = [(rows[i][place], rows[i + 1][place]) for i in tied]
        as_texts = all(rises(*pair) for pair in pairs)
        if not as_texts and not (numeric and all(rises(*map(number_of, pair)) for pair in pairs)):
            return False
        tied = [i for i in tied if rows[i][place] == rows[i + 1][place]]
    return True


def number_of(value: str | None) -> int | None:
    return None if value is None else int(value)


def slow_parts(text: str) -> list[str] | None:
    """The parts of a list, read sign by sign."""
    parts, begin = [], 0
    while True:
        if text[begin : begin + 1] == '"':
            end = _quoted_end(text, begin)
            if end is None:
                return None
        else:
            end = begin
            while end < len(text) and text[end : end + 2] != ", ":
                end += 1
        parts.append(text[begin:end])
        if end == len(text):
            return parts
        if text[end : end + 2] != ", ":
            return None
        begin = end + 2


@given(st.text(alphabet=', "ab\\{}-1.', max_size=14))
def test_lists_are_parted_as_when_read_sign_by_sign(text: str) -> None:
    assert _parts(text) == slow_parts(text)


@pytest.mark.parametrize("seed", range(4))
def test_texts_in_a_dictionary_are_audited_as_texts_are(seed: int) -> None:
    rng = random.Random(seed)
    words = ["x", "y, z", '"', "1", "2", None]
    frame = pl.DataFrame({name: [rng.choice(words) for _ in range(120)] for name in ("q", "r", "s")}).sort(
        "q", "r", "s"
    )
    found = [
        audit(form, quasi_identifiers=["q"], sensitive={"s": {"model": "distinct-l", "l": 2}}, source=frame, order="sorted")
        for form in (frame, frame.cast(pl.Categorical), frame.cast(pl.Enum([word for word in words if word])))
    ]  # fmt: skip
    assert found[0].to_dict() == found[1].to_dict() == found[2].to_dict()
    assert found[0].passed
