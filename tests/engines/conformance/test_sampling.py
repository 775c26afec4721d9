# SPDX-License-Identifier: Apache-2.0
"""A start on a sample: the same rows are drawn everywhere, and what is released is valid whatever the sample says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from pairwise_cases import Case, cases
from random_requests import FACTORS, random_request

from anonfit.api import run
from anonfit.engines.contract import CountRequest, Draw, Move
from anonfit.engines.levels import sampling as planning
from anonfit.engines.levels.sampling import SampledRows, draw_of, least_sampled
from anonfit.errors import AnonfitError, SpecError
from anonfit.release.run import make
from anonfit.spec.keywords import spec_of_keywords
from anonfit.spec.model import Spec
from anonfit.spec.parse import spec_of
from anonfit.testing.engine import ROWS, counted_plainly, looked_up, random_fields, random_frame
from engines import ENGINES, engine_of

CASES = [case for case in cases(FACTORS | {"hand_over": ["nothing", "some"]}, 40, seed=5) if case["source"] != "frame"]


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_who_is_drawn(name, share, tmp_path):
    frame = random_frame(3)
    with engine_of(name, frame, tmp_path) as engine:
        fields = random_fields(engine, 3)
        coded = looked_up(frame, fields)
        engine.code(fields, [])
        draw = draw_of(["code0", "code1", "code2"], share)
        found = engine.sample(draw, ["code2", "target0"])
    expected = []
    for row in range(ROWS):
        drawn = sum(int(coded[name][row]) * factor for name, factor in zip(draw.fields, draw.factors, strict=True))
        drawn = (drawn % Draw.MODULUS) ** 2 + Draw.ADDED
        if (drawn % Draw.MODULUS) ** 2 % Draw.MODULUS < draw.below:
            expected.append((int(coded["code2"][row]), int(coded["target0"][row])))
    assert sorted(zip(found["code2"].tolist(), found["target0"].tolist(), strict=True)) == sorted(expected)
    assert abs(len(expected) / ROWS - share) < 0.1


@pytest.mark.parametrize("name", ENGINES)
def test_moves_that_go_on(name, tmp_path):
    frame = random_frame(4)
    moves = [Move(0, "code0", 1, (0, 4)), Move(2, "code2", 3, (0, 9_000, 60_000)), Move(4, "code1", 6, members=(1, 2))]
    with engine_of(name, frame, tmp_path) as engine:
        fields = random_fields(engine, 4)
        coded = looked_up(frame, fields)
        engine.code(fields, [])
        sampled = SampledRows(coded, ROWS)
        assert engine.route(moves, []) == sampled.route(moves, [])
        request = CountRequest((1, 3, 7), ("code0",), ((), ("persons", "mass")))
        counted = engine.count([request])[0]
    for one in (counted, sampled.count([request])[0]):
        keys = zip(one.nodes.tolist(), one.by[0].tolist(), strict=True)
        sums = [list(sums) for sums in one.sums.T.tolist()]
        assert dict(zip(keys, sums, strict=True)) == counted_plainly(coded, sampled.node, request)


def test_the_draw_is_fair():
    rng = np.random.default_rng(0)
    sizes = []
    for share in (0.01, 0.1, 0.3):
        draw = draw_of(["a", "b"], share)
        total = rng.integers(0, 80, 200_000) * draw.factors[0] + rng.integers(0, 5000, 200_000) * draw.factors[1]
        drawn = ((total % Draw.MODULUS) ** 2 + Draw.ADDED) % Draw.MODULUS
        sizes.append((drawn**2 % Draw.MODULUS < draw.below).mean() / share)
    assert np.allclose(sizes, 1, atol=0.09)


@pytest.mark.parametrize(("k", "share"), [(2, 0.5), (10, 0.1), (50, 0.01), (1000, 0.1), (100_000, 0.1)])
def test_a_part_that_is_too_small_hardly_ever_looks_large_enough(k, share):
    least = least_sampled(k, share)
    rng = np.random.default_rng(1)
    assert (rng.binomial(k - 1, share, 200_000) >= least).mean() < 3e-4
    assert least < k * share + 5 * (k * share) ** 0.5 + 6


def _spec(case: Case, seed: int, folder, sample: int, engine: str) -> Spec | None:
    frame, words = random_request(case, seed)
    frame.write_parquet(folder / "table.parquet")
    hand_over = {"nothing": 3, "some": 40}[case["hand_over"]]
    try:
        spec = spec_of_keywords(str(folder / "table.parquet"), words)
    except AnonfitError:
        return None
    return replace(spec, engine=replace(spec.engine, name=engine, hand_over=hand_over, sample=sample))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("engine", "some"),
    [
        *(("duckdb", slice(part, None, 3)) for part in range(3)),
        pytest.param("spark", slice(6), marks=pytest.mark.spark),  # which takes seconds for each
    ],
)
def test_whatever_is_drawn_the_release_is_valid(engine, some, tmp_path, monkeypatch):
    """Small samples with hardly any margin: many splits that they advise must be undone."""
    undone = started = 0
    holding = planning.plans_that_hold

    def watched(plans, *others):
        nonlocal undone, started
        held = holding(plans, *others)
        started += 1
        undone += len(held) < len(plans)
        return held

    monkeypatch.setattr(planning, "plans_that_hold", watched)
    monkeypatch.setattr(planning, "least_sampled", lambda _k, _share: 1)
    tried = list(enumerate(CASES))[some]
    for seed, case in tried:
        folder = tmp_path / str(seed)
        folder.mkdir()
        spec = _spec(case, seed, folder, 60, engine)
        if spec is None:
            continue
        whole = make(replace(spec, engine=replace(spec.engine, sample=None)), threads=2) if seed % 9 == 0 else None
        try:
            release = run(spec, folder / "release")
        except AnonfitError as error:
            with pytest.raises(type(error)):
                make(replace(spec, engine=replace(spec.engine, sample=None)), threads=2)
            continue
        assert release.report["audit"]["passed"]
        if whole is not None:
            assert release.data.height == whole.table.height
    assert started > len(tried) / 3
    assert undone > len(tried) / 10


@pytest.mark.parametrize("engine", ENGINES)
def test_the_order_of_rows_does_not_matter(engine, tmp_path):
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"age": rng.integers(18, 90, 3000), "town": rng.choice(list("abcdefg"), 3000)})
    found = []
    for turn in range(2):
        frame.sample(fraction=1.0, shuffle=True, seed=turn).write_parquet(tmp_path / f"{turn}.parquet")
        words = {"quasi_identifiers": ["age", "town"], "k": 5, "engine": engine}
        spec = spec_of_keywords(str(tmp_path / f"{turn}.parquet"), words)
        spec = replace(spec, engine=replace(spec.engine, hand_over=200, sample=800))
        found.append(make(spec, threads=2).recoding.to_json())
    assert found[0] == found[1]


def test_wrong_sizes_are_told():
    for word in (0, -4, 0.5, "many"):
        with pytest.raises(SpecError, match=r"engine\.sample"):
            spec_of({"version": 1, "data": {"source": "a.csv"}, "columns": {"a": {"role": "quasi-identifier"}},
                     "privacy": {"k": 2}, "engine": {"sample": word}})  # fmt: skip


def test_a_sample_is_refused_where_none_is_taken():
    asked = {"version": 1, "data": {"source": "a.csv"}, "columns": {"a": {"role": "quasi-identifier"}},
             "privacy": {"k": 2}, "engine": {"name": "memory", "sample": 100}}  # fmt: skip
    with pytest.raises(SpecError, match=r"engine\.sample is not for engine\.name = 'memory'"):
        spec_of(asked)
    frame = pl.DataFrame({"age": range(20), "y": ["a", "b"] * 10})
    words = {"quasi_identifiers": ["age"], "targets": ["y"], "k": 2, "engine": "duckdb", "algorithm": "tdr"}
    spec = spec_of_keywords(frame, words)
    with pytest.raises(SpecError, match=r"engine\.sample is not for method\.algorithm = 'tdr'"):
        make(replace(spec, engine=replace(spec.engine, sample=10)))
