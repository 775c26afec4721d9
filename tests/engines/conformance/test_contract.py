# SPDX-License-Identifier: Apache-2.0
"""What every engine must do, held against plain NumPy; and an engine that no list of the package names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from test_same_release import CASES, check

import anonfit as af
from anonfit.engines.contract import ENGINES as KINDS
from anonfit.engines.contract import EngineKind, register_engine
from anonfit.testing.engine import check_engine, open_plain
from engines import ENGINES, engine_of

PLAIN = EngineKind("plain", "rows in arrays", open_plain)


@pytest.fixture
def _plain() -> Iterator[None]:
    register_engine(PLAIN)
    yield
    del KINDS[PLAIN.name]


@pytest.mark.parametrize("name", [*ENGINES, "plain"])
def test_the_contract(name: str) -> None:
    check_engine(lambda frame, folder: engine_of(name, frame, folder))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.usefixtures("_plain")
def test_a_third_engine_makes_what_the_memory_engine_makes(part: int, tmp_path: Path) -> None:
    released = 0
    some = list(enumerate(CASES))[part::20]
    for seed, case in some:
        folder = tmp_path / str(seed)
        folder.mkdir()
        released += check(case, seed, PLAIN.name, folder)
    assert released > len(some) // 2


@pytest.mark.parametrize("algorithm", ["mondrian", "tdr", "tree"])
@pytest.mark.usefixtures("_plain")
def test_a_third_engine_publishes(algorithm: str, tmp_path: Path) -> None:
    ages, towns = list(range(20, 80)), ["a", "b", "c"]
    frame = pl.DataFrame({"age": ages, "town": towns * 20, "died": ["yes" if age > 50 else "no" for age in ages]})
    words = {"quasi_identifiers": ["age", "town"], "k": 5, "targets": ["died"], "algorithm": algorithm}
    release, expected = (af.anonymize(frame, engine=engine, **words) for engine in (PLAIN.name, "memory"))
    assert release.recoding.to_json() == expected.recoding.to_json()
    folder = release.save(tmp_path / "release")
    assert af.audit_release(folder, source=frame).passed
    assert af.load(folder).data.equals(expected.data)


@pytest.mark.usefixtures("_plain")
def test_what_only_memory_can_do_is_refused_of_a_third_engine() -> None:
    frame = pl.DataFrame({"age": [1, 2, 3, 4], "who": [1, 1, 2, 2]})
    with pytest.raises(af.SpecError, match="engine = 'plain'.*needs the engine 'memory'"):
        af.anonymize(frame, quasi_identifiers=["age"], k=2, entity="who", engine=PLAIN.name)
