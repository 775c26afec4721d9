# SPDX-License-Identifier: Apache-2.0
"""Every engine makes the release that the in-memory engine makes: the same recoding byte for byte, and the same rows in
the same order; what the one refuses, the others refuse.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pairwise_cases import Case, all_pairs, cases, chosen, pairs_of
from polars.testing import assert_frame_equal
from random_requests import FACTORS, random_request

from anonfit.errors import AnonfitError
from anonfit.release.run import make
from anonfit.spec.keywords import spec_of_keywords
from anonfit.spec.model import Spec
from engines import ENGINES, FAST_ENGINES
from spark_sessions import spark_frame

CASES = cases(FACTORS, 200)
SPARK_CASES = chosen(CASES, 25)


def _source(frame: pl.DataFrame, kind: str, folder: Path, engine: str) -> Any:
    if kind == "parquet":
        frame.write_parquet(folder / "table.parquet")
        return folder / "table.parquet"
    if kind == "csv":
        frame.write_csv(folder / "table.csv")
        return folder / "table.csv"
    if kind == "pattern":
        middle = len(frame) // 2
        frame[:middle].write_parquet(folder / "table-1.parquet")
        frame[middle:].write_parquet(folder / "table-2.parquet")
        return folder / "table-*.parquet"
    return spark_frame(frame) if engine == "spark" else frame


def _spec(case: Case, seed: int, folder: Path, engine: str) -> Spec:
    frame, words = random_request(case, seed)
    source = _source(frame, case["source"], folder, engine)
    return spec_of_keywords(str(source) if isinstance(source, Path) else source, words)


def _made(spec: Spec, engine: str, hand_over: int | None = None) -> Any:
    """What is made, or the error that says why nothing is."""
    try:
        return make(replace(spec, engine=replace(spec.engine, name=engine, hand_over=hand_over)), threads=2)
    except AnonfitError as error:
        return error


def check(case: Case, seed: int, engine: str, folder: Path) -> bool:
    """Hold an engine against the in-memory engine; whether there was a release."""
    try:
        spec = _spec(case, seed, folder, engine)
    except AnonfitError:
        return False
    few = {"nothing": 3, "some": 40} if engine in FAST_ENGINES else {"nothing": 20, "some": 60}
    hand_over = few.get(case["hand_over"])
    expected, found = _made(spec, "memory"), _made(spec, engine, hand_over)
    if isinstance(expected, AnonfitError):
        assert isinstance(found, AnonfitError), f"only memory refused: {expected}"
        assert (type(found), str(found)) == (type(expected), str(expected)), repr(found.__cause__)
        return False
    assert not isinstance(found, AnonfitError), f"only {engine} refused: {found!r}, {found.__cause__!r}"
    assert found.recoding.to_json() == expected.recoding.to_json()
    assert_frame_equal(found.table, expected.table, check_exact=True)
    assert found.rows == expected.rows
    assert found.steered == expected.steered
    assert found.learned == expected.learned
    assert dict(found.dtypes) == dict(expected.table.schema)
    assert _answered(found) == _answered(expected)
    return True


def _answered(made: Any) -> Any:
    """How well selections are answered, as plain data."""
    if made.answers is None:
        return None
    answers = made.answers.answers
    figures = [one.tolist() for one in (answers.true, answers.kept, answers.answered, answers.weights)]
    return made.answers.names, made.answers.warnings, figures


def test_every_pair_of_settings_is_tried():
    assert set().union(*map(pairs_of, CASES)) == all_pairs(FACTORS)


@pytest.mark.sampled(21)
@pytest.mark.parametrize("engine", FAST_ENGINES)
@pytest.mark.parametrize("part", range(10))
def test_random_requests(engine, part, tmp_path):
    released = 0
    some = list(enumerate(CASES))[part::10]
    for seed, case in some:
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            released += check(case, seed, engine, folder)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {case}: {error}") from error
    assert released > len(some) // 2


@pytest.mark.sampled(9)
@pytest.mark.spark
@pytest.mark.parametrize("place", range(0, 25, 6))
def test_some_random_requests_in_spark(place, tmp_path):
    seed, case = SPARK_CASES[place]
    check(case, seed, "spark", tmp_path)


@pytest.mark.slow
@pytest.mark.spark
def test_random_requests_in_spark(tmp_path):
    released = []
    for seed, case in SPARK_CASES:
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            if check(case, seed, "spark", folder):
                released.append(case)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {case}: {error}") from error
    assert len(SPARK_CASES) == 25
    for name in ("criterion", "selections", "model", "hand_over", "source", "persons", "missing"):
        assert {case[name] for case in released} == set(FACTORS[name])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("words", [{"insensitive": ["two"]}, {"algorithm": "tree", "targets": ["two"]}])
def test_missing_values_are_refused_alike(words, engine):
    frame = pl.DataFrame({"age": [1, 2, None, 4] * 5, "two": list("xyxy") * 5})
    spec = spec_of_keywords(frame, {"quasi_identifiers": ["age"], "k": 2, "missing_policy": "error", **words})
    expected, found = _made(spec, "memory"), _made(spec, engine)
    assert "missing values in 'age'" in str(expected)
    assert (type(found), str(found)) == (type(expected), str(expected))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_thousands_of_random_requests(engine, tmp_path):
    first = int(os.environ.get("FIRST_SEED", "1000"))
    for seed, case in enumerate(cases(FACTORS, 3000, seed=first), first):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            check(case, seed, engine, folder)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {case}: {error}") from error
