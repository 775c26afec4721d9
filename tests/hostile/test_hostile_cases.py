# SPDX-License-Identifier: Apache-2.0
"""Every hostile case ends with its sentence and its exit status, and with nothing else."""

from __future__ import annotations

from pathlib import Path

import hostile_foreign as foreign
import hostile_sources as sources
import hostile_specs as specs
import hostile_values as values
import hostile_verbs as verbs
import pytest
from hostile_files import released
from hostile_running import Case, prepare_world, run_case

CASES: list[Case] = [
    *sources.TEXTS,
    *sources.NAMES,
    *sources.PACKED,
    *sources.PLACES,
    *foreign.FOREIGN,
    *values.NUMBERS,
    *values.COUNTS,
    *values.TAXONOMIES,
    *specs.SPECS,
    *specs.SETTINGS,
    *verbs.STRANGERS,
    *verbs.SHOWN,
    *verbs.OUTPUTS,
    *verbs.MEANWHILE,
    *verbs.PROCESSES,
    *verbs.LARGE,
]

RUNS = [
    pytest.param(case, engine, id=f"{case.name}{f' ({engine})' if engine else ''}")
    for case in CASES
    for engine in case.engines
]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Machine code is there before seconds are counted."""
    from anonfit.release.engine import prepare

    for models in (False, True):
        prepare(print, models=models, refining=False, ahead=False)
    for kind in ("csv", "tree"):
        released("sex", 5, kind)


@pytest.mark.sampled(11)
@pytest.mark.parametrize(("case", "engine"), RUNS)
def test_a_hostile_case_ends_with_its_sentence(
    case: Case,
    engine: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepare_world(case, tmp_path, monkeypatch)
    run_case(case, engine, tmp_path, tmp_path_factory.mktemp("temporary"))


def test_there_are_enough_cases_and_their_names_differ() -> None:
    assert len(CASES) >= 120
    assert len({case.name for case in CASES}) == len(CASES)
