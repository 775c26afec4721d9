# SPDX-License-Identifier: Apache-2.0
"""Numbers for equal values, however they are found: by sorting, in a table, through a dictionary."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from anonfit.auditing import coding as numbering
from anonfit.auditing.boxes import distinct_texts
from anonfit.auditing.coding import (
    Coded,
    RowGroups,
    RowPersons,
    as_numbers,
    as_pointers,
    coded,
    coded_values,
    count_values,
    dictionary,
    different,
    few_texts,
    frequencies,
    numbered,
    numbered_few,
)

WORDS = [
    "",
    "a",
    "A",
    "a ",
    '"',
    '"a"',
    "a, b",
    "{a}",
    "-1",
    "1e5",
    "1E5",
    "007",
    "7",
    "7.0",
    "2024-01-01",
    "*",
    "ß",
    "\n",
]


@pytest.fixture(params=["sorting", "table"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to number keys, whatever the number of rows."""
    monkeypatch.setattr(numbering, "_FEW_ROWS", 0 if request.param == "table" else 10**9)
    return str(request.param)


def by_appearance(values: Sequence[object]) -> tuple[list[int], list[int]]:
    """The slow and obvious numbers: 1, 2, … as values appear, and the first row of each."""
    number: dict[object, int] = {}
    for value in values:
        number.setdefault(value, len(number) + 1)
    return [number[value] for value in values], [list(values).index(value) for value in number]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(6))
def test_keys_are_numbered_as_they_appear(seed: int) -> None:
    rng = random.Random(seed)
    for width in (1, 3, 40, 10**18):
        keys = [rng.randrange(-width, width) for _ in range(rng.choice([0, 1, 2, 300]))]
        codes, first = numbered(np.array(keys, np.int64))
        assert (codes.tolist(), first.tolist()) == by_appearance(keys)


@pytest.mark.usefixtures("way")
def test_more_keys_than_a_table_first_has_room_for() -> None:
    keys = np.random.default_rng(0).permutation(np.repeat(np.arange(70_000, dtype=np.int64) << 40, 2))
    codes, first = numbered(keys)
    assert len(first) == 70_000
    assert (keys[first][codes - 1] == keys).all()
    assert (np.diff(first) > 0).all()
    assert numbered_few(keys, 69_999) is None
    assert numbered_few(keys, 70_000) is not None
    assert numbered_few(keys, 10) is None


def test_both_ways_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would not notice if the table were never used."""
    taken = []
    monkeypatch.setattr(numbering, "_by_table", lambda keys, most: taken.append(len(keys)))
    few, many = np.zeros(numbering._FEW_ROWS - 1, np.int64), np.zeros(numbering._FEW_ROWS, np.int64)
    assert numbered_few(few, 1) is not None
    assert numbered_few(many, 1) is None
    assert taken == [len(many)]


def columns_of(values: list[str | None]) -> list[pl.Series]:
    """The same texts as strings, in pieces, as categories, and in a dictionary with more texts than it uses."""
    plain = pl.Series("x", values, dtype=pl.String)
    enum = pl.Enum([*reversed(WORDS), "unused"])
    pieces = pl.concat([plain[: len(plain) // 3], plain[len(plain) // 3 :]], rechunk=False)
    return [
        plain,
        pieces,
        plain.cast(pl.Categorical),
        plain.cast(enum),
        plain.cast(pl.Categorical(pl.Categories.random())),
    ]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(6))
def test_a_dictionary_holds_the_texts_that_occur(seed: int) -> None:
    rng = random.Random(seed)
    for rows in (0, 1, 5, 200):
        values = [rng.choice([*WORDS, None, None]) for _ in range(rows)]
        for column in columns_of(values):
            found = dictionary(column)
            assert [None if code == 0 else found.values[code - 1] for code in found.codes.tolist()] == values
            assert Counter(found.values.to_list()) == Counter({value for value in values if value is not None})
            codes, texts = distinct_texts(column)
            assert [None if code == 0 else texts[code - 1] for code in codes.tolist()] == values
            again = as_pointers(found, "y")
            assert (again.name, again.cast(pl.String).to_list()) == ("y", values)


@pytest.mark.parametrize("count", [0, 1, 254, 255, 256, 257, 65_535, 65_536, 70_000])
def test_dictionaries_of_any_size_are_given_to_polars(count: int) -> None:
    texts = pl.Series([None, *(f"text {number}" for number in range(count)), None], dtype=pl.String)
    found = few_texts(texts, count + 1)
    assert found is not None
    assert as_pointers(found, "x").cast(pl.String).to_list() == texts.to_list()
    assert few_texts(texts, count) is None  # missing is one more


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(6))
def test_texts_have_equal_codes_if_they_are_equal(seed: int) -> None:
    rng = random.Random(seed)
    values = [rng.choice([*WORDS, None]) for _ in range(300)]
    for column in columns_of(values):
        found = coded(column)
        assert_same_parts(found.codes.tolist(), values)
        assert (found.codes == 0).tolist() == [value is None for value in values]
        assert different(found.codes) == len(set(values))


def assert_same_parts(one: Sequence[object], other: Sequence[object]) -> None:
    """Two lists are equal at the same pairs of places."""
    pairs = set(zip(one, other, strict=True))
    assert len(pairs) == len(set(one)) == len(set(other))


@pytest.mark.parametrize("spell", [str, lambda number: f"{number}.50", lambda number: f"{number}e-3"])
def test_texts_of_many_numbers_are_equal_if_the_numbers_are(spell) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(1)
    texts = [rng.choice([spell(number), spell(number) + "0"] if "." in spell(1) else [spell(number)])
             for number in rng.choices(range(-3000, 3000), k=9000)] + [None]  # fmt: skip
    column = pl.Series(texts, dtype=pl.String)
    slow = coded(as_numbers(column))
    for found in map(coded_values, (column, column.cast(pl.Categorical))):
        assert_same_parts(found.codes.tolist(), slow.codes.tolist())
        assert (found.codes == 0).tolist() == [text is None for text in texts]
        assert different(found.codes) == different(slow.codes)


@pytest.mark.parametrize("bound", [2, 50, 5_000, 10**6, 2**39])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
def test_values_of_groups_are_counted(way: str, bound: int, several: bool, in_order: bool) -> None:
    rng = np.random.default_rng(bound)
    rows, groups = 4_000, 30
    of_row = rng.integers(0, groups, rows)
    of_row = np.sort(of_row) if in_order else of_row
    chosen = np.append(0, rng.integers(0, bound, 3_000))
    codes = rng.choice(chosen, rows)
    numbers = rng.integers(1, 5, rows) if several else None
    sizes = np.bincount(of_row, weights=numbers, minlength=groups).astype(np.int64)
    grouping = RowGroups(of_row, groups, np.unique(of_row, return_index=True)[1])
    found = count_values(RowPersons(numbers=numbers), grouping, Coded(codes, bound), sizes=sizes)
    slow: Counter[tuple[int, int]] = Counter()
    for group, code, number in zip(
        of_row.tolist(), codes.tolist(), (numbers if several else np.ones(rows, int)).tolist(), strict=True
    ):
        slow[group, code] += number
    assert list(zip(found.group.tolist(), found.persons.tolist(), strict=True)) == [
        (pair[0], slow[pair]) for pair in sorted(slow)
    ]
    order = {code: place for place, code in enumerate(sorted(set(codes.tolist())))}
    places = {value: place for place, value in enumerate(sorted(set(found.value.tolist())))}
    assert [places[value] for value in found.value.tolist()] == [order[pair[1]] for pair in sorted(slow)]
    assert different(found.value) == len(places)
    assert 0 not in found.value or 0 in codes
    assert (found.value == 0).sum() == sum(pair[1] == 0 for pair in slow)
    frequent = frequencies(RowPersons(numbers=numbers), grouping, Coded(codes, bound), sizes=sizes)
    assert frequent.most.tolist() == [max(slow[pair] for pair in slow if pair[0] == group) for group in range(groups)]
    assert frequent.least == min(slow.values())
    assert frequent.different == len(set(codes.tolist()))
