# SPDX-License-Identifier: Apache-2.0
"""Queries over raw rows and over regions: by hand, and against a plain reference that spreads every row over all points
of its region.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.metrics.queries import QueryAnswer, judge_queries, query_table
from anonfit.release.draft import Draft
from anonfit.release.run import make
from anonfit.spec.model import Spec
from anonfit.spec.parse import parse_spec
from anonfit.tables.schema import persons_in
from anonfit.workload.logs.tallies import Ask
from anonfit.workload.parsing import parse_predicate
from anonfit.workload.predicates import Predicate, kinds_of
from anonfit.workload.truth import holds

SPEC = """
version = 1
[columns.age]
role = "quasi-identifier"
type = "continuous"
domain = [0, 11]
[columns.town]
role = "quasi-identifier"
type = "nominal"
domain = ["a", "b", "c", "d"]
[columns.stage]
role = "quasi-identifier"
type = "ordinal"
order = ["low", "mid", "high"]
[columns.pay]
role = "insensitive"
release = true
[privacy]
k = 3
"""
AGES, TOWNS, STAGES = range(12), "abcd", ("low", "mid", "high")


def table(seed: int, rows: int = 60, *, gaps: float = 0.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "age": rng.integers(0, 12, rows),
            "town": rng.choice(list(TOWNS), rows),
            "stage": rng.choice(STAGES, rows),
            "pay": rng.integers(1, 50, rows) * 1.0,
        }
    )
    if not gaps:
        return frame
    return frame.with_columns(
        pl.when(pl.Series(rng.random(rows) < gaps)).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("age", "stage")
    )


def judged(made: Draft, *asks: Ask) -> list[QueryAnswer]:
    assert made.source is not None
    assert made.nodes is not None
    persons = persons_in(made.schema, made.source)
    found = query_table(
        made.recoding,
        made.schema.columns,
        made.source,
        made.nodes,
        persons,
        k=made.spec.privacy.k,
    )
    return judge_queries([(ask, 1) for ask in asks], found)


def points_of(made: Draft) -> list[pl.DataFrame]:
    """All points of the region of each released row, with the row's own pay; a missing value is a point too."""
    assert made.source is not None
    assert made.nodes is not None
    values: list[list[Any]] = [
        [*([None] if column.has_missing else []), *known]
        for column, known in zip(made.recoding.columns, (AGES, TOWNS, STAGES), strict=True)
    ]
    whole = pl.DataFrame(
        list(product(*values)), schema={"age": pl.Int64, "town": pl.String, "stage": pl.String}, orient="row"
    )
    cells = made.recoding.cells(whole)
    node_of = made.recoding.nodes(cells)
    pay = made.source["pay"].to_list()
    return [
        whole.filter(pl.Series(node_of == node)).with_columns(pay=pl.lit(pay[row], pl.Float64))
        for row, node in enumerate(made.nodes.tolist())
    ]


WHERES = [
    "age >= 3 and age <= 7",
    "age < 5 and town = 'a'",
    "town in ('a', 'c') and stage <> 'low'",
    "(age < 3 or age > 9) and pay >= 20",
    "age = 4 or town = 'b' or stage = 'high'",
    "not (age between 2 and 8) or (town <> 'd' and pay < 10)",
]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_expected_is_what_evenly_spread_rows_give(seed: int, gaps: float) -> None:
    made = make(parse_spec(SPEC), source=table(seed, gaps=gaps), threads=1)
    assert made.source is not None
    kinds = kinds_of(made.schema.columns, made.source)
    spread = points_of(made)
    for where in WHERES:
        predicate = parse_predicate(where, kinds)
        aggregates = (("count", None), ("sum", "pay"), ("sum", "age"), ("avg", "age"), ("avg", "pay"))
        (found,) = judged(made, Ask(predicate, aggregates))
        meant = holds(predicate, made.source)
        within = [(points, holds(predicate, points)) for points in spread]
        counts = [truth.mean() for _, truth in within]
        assert found.expected == pytest.approx(sum(counts))
        assert found.true == meant.sum()
        assert found.answered == sum(truth.any() for _, truth in within)
        ages = [points["age"].fill_null(0).to_numpy() * truth for points, truth in within]
        has_age = [points["age"].is_not_null().to_numpy() & truth for points, truth in within]
        expected = {
            ("count", None): sum(counts),
            ("sum", "pay"): sum(share * pay for share, pay in zip(counts, made.source["pay"], strict=True)),
            ("sum", "age"): sum(one.mean() for one in ages),
            ("avg", "age"): sum(one.mean() for one in ages) / sum(one.mean() for one in has_age),
            ("avg", "pay"): sum(share * pay for share, pay in zip(counts, made.source["pay"], strict=True))
            / sum(counts),
        }
        rows = made.source.filter(pl.Series(meant))
        true = {
            ("count", None): len(rows),
            ("sum", "pay"): rows["pay"].sum(),
            ("sum", "age"): rows["age"].sum(),
            ("avg", "age"): rows["age"].mean() or 0.0,
            ("avg", "pay"): rows["pay"].mean() or 0.0,
        }
        for measure in found.measures:
            key = (measure.name, measure.column)
            assert measure.difference == pytest.approx(abs(expected[key] - true[key])), (where, key)


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_estimated_one_by_one(seed: int) -> None:
    made = make(parse_spec(SPEC), source=table(seed), threads=1)
    assert made.source is not None
    predicate = parse_predicate("age >= 4", kinds_of(made.schema.columns, made.source))
    (found,) = judged(made, Ask(predicate, (("count", None),), ("town", "stage")))
    difference = 0.0
    spread = points_of(made)
    for town, stage in sorted(set(zip(made.source["town"], made.source["stage"], strict=True))):
        is_group = (pl.col("town") == town) & (pl.col("stage") == stage) & (pl.col("age") >= 4)
        guess = sum(len(points.filter(is_group)) / len(points) for points in spread)
        difference += abs(guess - len(made.source.filter(is_group)))
    (count,) = found.measures
    assert count.difference == pytest.approx(difference)
    assert count.of == found.true


def test_every_row_is_asked_for_without_a_condition() -> None:
    made = make(parse_spec(SPEC), source=table(0), threads=1)
    (found,) = judged(made, Ask(None, (("sum", "pay"), ("sum", "town"))))
    assert (found.true, found.answered, found.precision, found.recall) == (60, 60, 1.0, 1.0)
    assert found.expected == pytest.approx(60)
    assert [(one.name, one.column, one.error) for one in found.measures] == [
        ("count", None, pytest.approx(0.0)),
        ("sum", "pay", pytest.approx(0.0)),
    ]


def test_open_ends_reach_as_far_as_the_interval_beside_them() -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 11.0, 12.0, 13.0, 14.0]})
    spec = parse_spec(
        "version = 1\ncolumns.x.role = 'quasi-identifier'\nprivacy.k = 4\nmethod.cut_points = 'value'\noutput.consent = true"
    )
    made = make(spec, source=frame, threads=1)
    kinds = kinds_of(made.schema.columns, frame)
    # One cut at 11: to recipients the column reaches from 0 to 22.
    halves, none = judged(made, Ask(parse_predicate("x < 5.5", kinds)), Ask(parse_predicate("x > 100", kinds)))
    assert halves.expected == pytest.approx(2.0)
    assert (halves.true, halves.answered) == (4, 4)
    assert none.expected == 0.0


def test_persons_that_rows_stand_for_are_counted() -> None:
    spec = parse_spec(
        "version = 1\ncolumns.x.role = 'quasi-identifier'\ncolumns.n.role = 'count'\nprivacy.k = 2\n"
        "columns.n.release = true\ncolumns.x.domain = [1, 4]\ncolumns.x.type = 'continuous'"
    )
    frame = pl.DataFrame({"x": [1, 2, 3, 4], "n": [2, 3, 4, 5]})
    made = make(spec, source=frame, threads=1)
    (found,) = judged(made, Ask(parse_predicate("x >= 3", kinds_of(made.schema.columns, frame))))
    assert (found.true, found.answered, found.expected) == (9, 9, pytest.approx(9.0))


def test_too_many_groups_are_judged_as_a_whole() -> None:
    frame = table(0, 400).with_columns(pay=pl.int_range(400).cast(pl.Float64))
    made = make(parse_spec(SPEC), source=frame, threads=1)
    (found,) = judged(made, Ask(None, (), ("pay",)))
    assert found.measures[0].groups == 1


def test_groups_by_very_many_columns_are_told_apart() -> None:
    names = [f"c{number}" for number in range(20)]  # 16 ** 20 combinations: more than a number of 64 bits can tell
    alike, first = [[value] * 20 for value in range(15)], [[value, *[0] * 19] for value in range(1, 15)]
    frame = pl.DataFrame(2 * [*alike, *first], schema=names, orient="row")
    columns = "".join(f'[columns.{name}]\nrole = "quasi-identifier"\n' for name in names)
    made = make(parse_spec(f"version = 1\nprivacy.k = 2\n{columns}"), source=frame, threads=1)
    (found,) = judged(made, Ask(None, (("count", None),), tuple(names)))
    assert found.measures[0].groups == 29


def test_what_is_expected_does_not_depend_on_the_values_that_occur() -> None:
    ages = [*range(40)] * 3
    spec = parse_spec('version = 1\nprivacy.k = 60\n[columns.age]\nrole = "quasi-identifier"\ndomain = [0, 79]\n')
    asks = Ask(None, (("count", None),), ("age",)), Ask(parse("age < 20", spec, ages), (("count", None),))
    for end in (39, 79):  # in the second table somebody is 79
        frame = pl.DataFrame({"age": [*ages[:-1], end]})
        by_age, young = judged(make(spec, source=frame, threads=1), *asks)
        assert (by_age.expected, by_age.true) == (pytest.approx(120), 120)
        assert young.expected == pytest.approx(60)


def test_where_an_uncut_column_is_taken_to_end_does_not_depend_on_groups() -> None:
    spec = parse_spec('version = 1\nprivacy.k = 40\n[columns.age]\nrole = "quasi-identifier"\n')
    ages = [*range(20, 60)]
    ask = Ask(parse("age < 30 or age > 50", spec, ages), (("count", None),))
    made = make(spec, source=pl.DataFrame({"age": ages}), threads=1)
    alone, beside = judged(made, ask)[0], judged(made, ask, Ask(None, (("count", None),), ("age",)))[0]
    assert alone.expected == pytest.approx(beside.expected)


def parse(where: str, spec: Spec, ages: list[int]) -> Predicate:
    columns = make(spec, source=pl.DataFrame({"age": ages}), threads=1).schema.columns
    return parse_predicate(where, kinds_of(columns, pl.DataFrame({"age": ages})))
