# SPDX-License-Identifier: Apache-2.0
"""The audit equals a slow and obvious one on thousands of random small tables."""

from __future__ import annotations

import datetime
import random
from typing import Any

import polars as pl
import pytest
from audit_reference import measure

from anonfit.auditing.api import audit

POOLS: dict[str, list[Any]] = {
    "label": ["*", "[1, 2)", "≥ 5", "missing", "", None],
    "text": ["a", "b", "01", "1", "1.0", "", None, "é", "a, b"],
    "int": [0, 1, 2, -5, None, 2**40],
    "wide": [0, 2**62, -(2**62), None, 7],
    "float": [0.0, -0.0, 1.5, float("nan"), None, 1e300, 0.1],
    "bool": [True, False, None],
    "date": [datetime.date(2020, 1, 1), datetime.date(1950, 1, 1), None],
}
DTYPES = {
    "label": pl.String,
    "text": pl.String,
    "int": pl.Int64,
    "wide": pl.Int64,
    "float": pl.Float64,
    "bool": pl.Boolean,
    "date": pl.Date,
}


def random_table(rng: random.Random) -> tuple[list[dict[str, Any]], pl.DataFrame, list[str], list[str]]:
    columns = [f"q{i}" for i in range(rng.randint(1, 4))]
    raw = [f"r{i}" for i in range(rng.randint(0, 3))]
    kinds = {name: rng.choice(list(POOLS)) for name in columns + raw}
    pools = {name: rng.sample(POOLS[kind], rng.randint(1, len(POOLS[kind]))) for name, kind in kinds.items()}
    rows = []
    for _ in range(rng.choice([0, 1, 2, 5, 20, 60])):
        row = {name: rng.choice(pool) for name, pool in pools.items()}
        rows.append({**row, "who": rng.choice(["u", "v", "w", "x", None]), "n": rng.randint(1, 4)})
    schema = {name: DTYPES[kind] for name, kind in kinds.items()} | {"who": pl.String, "n": pl.Int64}
    return rows, pl.DataFrame(rows, schema=schema, strict=False), columns, raw


@pytest.mark.sampled(19)
@pytest.mark.parametrize("block", range(20))
def test_equals_the_reference_on_random_tables(block: int) -> None:
    rng = random.Random(block)
    for _ in range(100):
        rows, frame, columns, raw = random_table(rng)
        whom = rng.choice([{}, {"entity": "who"}, {"count": "n"}])
        wanted = measure(rows, columns, raw, **whom)
        found = audit(frame, quasi_identifiers=columns, sensitive=raw, k=3, **whom)
        assert found.k == wanted["k"]
        assert found.sizes.groups == wanted["groups"]
        assert found.prosecutor.average.value == pytest.approx(wanted["average"])
        below = [size for size in wanted["sizes"] if size < 3]
        assert found.sizes.groups_below_k.value == len(below)
        assert found.sizes.persons_below_k.persons == sum(below)
        assert sum(one.groups.value for one in found.sizes.histogram) == wanted["groups"]
        diversity = {one.column: one.found for one in found.diversity}
        for column in found.raw_columns:
            if column.name not in raw:
                continue
            certain, likely, smallest, l_value, distinct = wanted["raw"][column.name]
            assert (column.certain.persons, column.likely.persons) == (certain, likely)
            assert column.smallest == smallest
            assert column.distinct.value == pytest.approx(distinct)
            assert (diversity[column.name].value if rows else None) == l_value


@pytest.mark.sampled(3)
@pytest.mark.parametrize("block", range(5))
def test_row_order_does_not_matter(block: int) -> None:
    rng = random.Random(1000 + block)
    for _ in range(20):
        _, frame, columns, raw = random_table(rng)
        shuffled = frame.sample(fraction=1.0, shuffle=True, seed=block) if frame.height else frame
        one = audit(frame, quasi_identifiers=columns, sensitive=raw, k=2, entity="who").to_dict()
        assert audit(shuffled, quasi_identifiers=columns, sensitive=raw, k=2, entity="who").to_dict() == one


def test_columns_of_many_numbers_written_as_text_are_counted_as_numbers() -> None:
    rng = random.Random(5)
    numbers = [round(rng.uniform(0, 100), rng.choice([1, 6])) for _ in range(9000)]
    rows = [{"q": str(i % 7), "r": str(number)} for i, number in enumerate(numbers)]
    wanted = measure(rows, ["q"], ["r"])
    column = audit(pl.DataFrame(rows), quasi_identifiers=["q"]).raw_columns[0]
    certain, likely, smallest, _, distinct = wanted["raw"]["r"]
    assert (column.certain.persons, column.likely.persons, column.smallest) == (certain, likely, smallest)
    assert column.distinct.value == pytest.approx(distinct)
