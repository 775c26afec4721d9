# SPDX-License-Identifier: Apache-2.0
"""What is learned from a log: few rectangles in place of many, weights by use, min-terms; nothing about too few."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anonfit.tables.schema import Column, Role
from anonfit.workload.logs import merging
from anonfit.workload.logs.learning import LearnedWorkload, LogRequest, learn, minterms
from anonfit.workload.logs.merging import Batch, RawRows, merge, rectangles, rows_of_frame
from anonfit.workload.parsing import parse_predicate, predicate_text
from anonfit.workload.predicates import Predicate, kinds_of
from anonfit.workload.truth import holds

COLUMNS = [Column(name, Role.QUASI_IDENTIFIER) for name in ("age", "town", "sex")] + [Column("ill", Role.SENSITIVE)]
AGES = np.repeat(np.arange(20, 80), 5)
FRAME = pl.DataFrame(
    {
        "age": AGES,
        "town": np.resize(list("abcde"), len(AGES)),
        "sex": np.resize(["f", "m", "m"], len(AGES)),
        "ill": np.resize(["x", "y"], len(AGES)),
    },
    schema_overrides={"town": pl.String, "sex": pl.String},
)
KINDS = kinds_of(COLUMNS, FRAME)


def rows_of(frame: pl.DataFrame) -> RawRows:
    return rows_of_frame(frame, lambda groups, count: np.bincount(groups, minlength=count))


ROWS = rows_of(FRAME)


def predicate(text: str) -> Predicate:
    return parse_predicate(text, KINDS)


def learned(folder: Path, lines: list[str], *, k: int = 5, **options: int) -> LearnedWorkload:
    file = folder / "log.sql"
    file.write_text("\n".join(lines), encoding="utf-8")
    request = LogRequest((file,), **options)  # type: ignore[arg-type]
    return learn(request, COLUMNS, ROWS, k=k)


def test_weights_are_shares_of_uses(tmp_path: Path) -> None:
    found = learned(
        tmp_path,
        ["select town from t where age > 30"] * 3 + ["select count(*) from t where age < 50 group by age"],
    )
    # age: selected by in 4 and grouped by in 1, town: shown in 3.
    assert {one.column: one.weight for one in found.weights} == {"age": 0.625, "town": 0.375, "sex": 0.0}


def test_without_a_use_there_are_no_weights(tmp_path: Path) -> None:
    found = learned(tmp_path, ["select * from t", "select other from t where ill = 'x'"])
    assert (found.weights, found.selections) == ((), ())


def test_selections_are_ranked_and_weighed_by_their_queries(tmp_path: Path) -> None:
    found = learned(
        tmp_path, ["select 1 from t where age > 30 and town = 'a'"] * 3 + ["select 1 from t where sex = 'f'"]
    )
    assert [(one.where, one.weight, one.times) for one in found.selections] == [
        ("age > 30 and town = 'a'", 0.75, 3),
        ("sex = 'f'", 0.25, 1),
    ]


def test_selections_of_fewer_than_k_persons_are_not_learned(tmp_path: Path) -> None:
    lines = ["select 1 from t where age = 33 and town = 'a'"] * 9 + ["select 1 from t where age > 30"]
    found = learned(tmp_path, lines, k=5)
    assert [one.where for one in found.selections] == ["age > 30"]
    assert found.few == 1
    assert len(learned(tmp_path, lines, k=1).selections) == 2


def test_an_or_is_divided_into_rectangles() -> None:
    parts = rectangles(predicate("(age > 30 or town = 'a') and (age < 50 or sex = 'f')"))
    union = np.logical_or.reduce([holds(part, FRAME) for part in parts])
    assert (union == holds(predicate("(age > 30 or town = 'a') and (age < 50 or sex = 'f')"), FRAME)).all()
    assert len(parts) == 4
    many = predicate(" and ".join(["(age > 30 or town = 'a' or sex = 'f')"] * 3))
    assert rectangles(many) == [many]
    same_column = predicate("age < 25 or age > 70")
    assert rectangles(same_column) == [same_column]


def test_rectangles_of_nearly_the_same_rows_become_one_that_was_asked_for() -> None:
    counts = {predicate(f"age >= {low} and age <= {low + 20}"): 10 - low % 7 for low in range(20, 60)}
    merged = merge(counts, ROWS, most=5)
    assert 1 < len(merged) <= 5
    assert {one.predicate for one in merged} <= set(counts)
    assert all(one.own == counts[one.predicate] for one in merged)
    assert [one.times for one in merged] == sorted((one.times for one in merged), reverse=True)
    few = merge(counts, ROWS, most=100)
    assert len(few) == len(counts)
    assert sum(one.times for one in few) == sum(counts.values())


def test_rectangles_over_other_columns_are_never_one() -> None:
    counts = {predicate("age >= 20"): 1, predicate("town in ('a', 'b', 'c', 'd', 'e')"): 1, predicate("age < 90"): 1}
    assert len(merge(counts, ROWS, most=2)) == 2
    merged = merge(counts, ROWS, most=2)
    assert sorted(one.times for one in merged) == [1, 2]


@pytest.mark.parametrize("seed", range(5))
def test_min_terms_are_the_parts_that_conditions_make(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = FRAME.with_columns(age=pl.when(pl.Series(rng.random(len(FRAME)) < 0.1)).then(None).otherwise(pl.col("age")))
    texts = [f"age >= {rng.integers(25, 50)}", f"age < {rng.integers(50, 75)}", "town = 'a'", "sex = 'm'"]
    texts += [f"age in ({rng.integers(20, 40)}, {rng.integers(40, 75)})", "town not in ('b', 'c')", "age is not null"]
    counts = {predicate(" and ".join(texts[:2])): 3, predicate(texts[2]): 2, predicate(f"{texts[2]} or {texts[3]}"): 1}
    counts |= {predicate(f"{texts[4]} or {texts[5]}"): 4, predicate(texts[6]): 1}
    found = minterms(counts, rows_of(frame), most=100, k=1)
    truths = [holds(one.predicate, frame) for one in found]
    whole = np.stack(truths).sum(axis=0)
    assert whole.max() == 1  # no row is in two
    simple = [holds(predicate(text), frame) for text in texts]
    for truth, one in zip(truths, found, strict=True):
        assert truth.any(), predicate_text(one.predicate)
        assert all(len(set(part[truth])) == 1 for part in simple)
        asked = [times for asked, times in counts.items() if holds(asked, frame)[truth].all()]
        assert one.times == sum(asked)
    for asked in counts:  # every query is a union of parts
        inside = holds(asked, frame)
        assert all(len(set(inside[truth])) == 1 for truth in truths)
        assert (np.logical_or.reduce([truth for truth in truths if inside[truth].all()]) == inside).all()


def test_min_terms_say_nothing_that_follows_from_what_they_say() -> None:
    texts = ("age >= 40", "age > 60", "age in (20, 25)", "age is not null", "sex = 'm'", "sex = 'f'", "town <> 'a'")
    counts = {predicate(text): 2 for text in texts}
    found = minterms(counts, ROWS, most=500, k=1)
    wheres = [predicate_text(one.predicate) for one in found]
    assert any(where.startswith("age > 60 and ") for where in wheres)
    for where in wheres:
        assert "is not null" not in where
        assert not ("sex = " in where and "sex <>" in where), where
        assert not ("age >" in where and "age not in" in where), where
        assert not ("age in" in where and "age not in" in where), where
    truths = np.stack([holds(one.predicate, FRAME) for one in found])
    assert (truths.sum(axis=0) == 1).all()


def test_min_terms_are_bounded_and_of_enough_persons(tmp_path: Path) -> None:
    lines = [
        f"select 1 from t where age >= {low} and age < {low + 7} and town = '{town}'"
        for low, town in product(range(20, 70, 5), "abc")
    ]
    found = learned(tmp_path, lines, minterms=8, k=3)
    assert 0 < len(found.selections) <= 8
    for one in found.selections:
        assert holds(predicate(one.where), FRAME).sum() >= 3
    assert found.is_minterms


def test_a_kind_of_query_that_never_repeats_itself_is_kept_by_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "COMPARED", 20)
    rare = {predicate(f"age >= {low} and age <= {low + width}"): 1 for low in range(20, 60) for width in (10, 15)}
    counts = {**rare, predicate("town = 'a'"): 20}
    merged = merge(counts, ROWS, most=8)
    ages = [one for one in merged if "age" in predicate_text(one.predicate)]
    assert len(ages) > 3
    assert 50 <= sum(one.times for one in ages) <= len(rare)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("minterms", [0, 30])
@pytest.mark.parametrize("seed", range(2))
def test_rows_that_come_some_at_a_time_in_any_order_teach_the_same(seed: int, minterms: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    frame = pl.concat([FRAME] * 8).sample(fraction=1, shuffle=True, seed=seed)
    frame = frame.with_columns(
        age=pl.when(pl.Series(rng.random(len(frame)) < 0.1)).then(None).otherwise(pl.col("age")),
        times=pl.Series(rng.integers(1, 4, len(frame))),
    )
    lows = rng.integers(20, 70, 60).tolist()
    lines = [f"select 1 from t where age >= {low} and age < {low + rng.integers(1, 25)}" for low in lows]
    lines += [f"{line} and town = '{rng.choice(list('abc'))}' or sex is null" for line in lines]
    (tmp_path / "log.sql").write_text("\n".join(lines), encoding="utf-8")
    request = LogRequest((tmp_path / "log.sql",), selections=12, minterms=minterms)

    def batch(rows: pl.DataFrame) -> Batch:
        counts = rows["times"].to_numpy()
        return Batch(rows, lambda groups, size: np.bincount(groups, counts, minlength=size).astype(np.int64))

    found = []
    for at, size in enumerate((len(frame), 170, 700)):
        some = frame.sample(fraction=1, shuffle=True, seed=at)
        rows = RawRows(frame.schema, len(frame), lambda _, some=some, size=size: map(batch, some.iter_slices(size)))
        found.append(learn(request, COLUMNS, rows, k=40))
    assert len(found[0].selections) > 3
    assert found[0].selections == found[1].selections == found[2].selections
    assert found[0].few == found[1].few == found[2].few
    counts = frame["times"].to_numpy()
    for one in found[0].selections:
        assert counts[holds(predicate(one.where), frame)].sum() >= 40
