# SPDX-License-Identifier: Apache-2.0
"""The audit held against a checker of its own kind: written from the documents alone, it must come to the same verdict
on random releases and on tampered ones, with the source and without.
"""

from __future__ import annotations

import ast
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tampering_claims
import tampering_files
import tampering_labels
import tampering_payloads
import tampering_rows
from checker import Verdict, check
from planted import SHAPES, planted
from random_releases import Case, released
from tampering import HARMLESS, KINDS, tampered
from test_audit_mutations import CASES, Fault, Releases

import anonfit as af

HERE = Path(__file__).parent
BANK = (
    tampering_claims,
    tampering_files,
    tampering_labels,
    tampering_payloads,
    tampering_rows,
)  # each enters its kinds
NAMES = sorted(KINDS)
SEEDS, PART, PARTS = range(60), 100, 20


def audited(folder: Path, source: Any) -> bool:
    """Whether the audit accepts a folder; an error in a sentence is a refusal."""
    try:
        return af.audit_release(folder, source=source).passed
    except af.errors.AnonfitError:
        return False


def verdicts(case: Case, folder: Path) -> list[tuple[Verdict, bool]]:
    """What checker and audit say of a folder, with the source and without."""
    plain = case.source.to_dict(as_series=False)
    return [(check(folder, plain), audited(folder, case.source)), (check(folder), audited(folder, None))]


def accept(case: Case, folder: Path) -> None:
    """Both accept a release; without the source they agree on what cannot be checked."""
    (known, found), (alone, found_alone) = verdicts(case, folder)
    assert known.faults == known.unchecked == ()
    assert check(folder, case.source.to_dict(as_series=False), {"k": case.spec["privacy"]["k"]}).accepted
    assert found
    assert alone.accepted == found_alone


def agree(case: Case, folder: Path, name: str, seed: int) -> bool | None:
    """Both say the same of a tampered copy; whether it was refused, None where there was no place for it."""
    copy = folder.with_name(f"{name}-{seed}")
    if not tampered(folder, copy, case.source, name, seed):
        return None
    found = verdicts(case, copy)
    shutil.rmtree(copy)
    assert [verdict.accepted for verdict, _ in found] == [accepted for _, accepted in found], (name, case.seed, found)
    return not found[0][0].accepted


@dataclass
class Made:
    """Releases of seeds, each made when it is first asked for."""

    root: Path
    known: dict[int, tuple[Case, Path]] = field(default_factory=dict)

    def __getitem__(self, seed: int) -> tuple[Case, Path]:
        if seed not in self.known:
            self.known[seed] = released(seed, self.root)
        return self.known[seed]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("random"))


@pytest.mark.parametrize(
    "file", [*sorted(HERE.glob("checker*.py")), HERE.parent / "json_layout.py"], ids=lambda file: file.stem
)
def test_the_checker_imports_nothing_of_the_package(file: Path) -> None:
    found = [
        node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {name for node in found for name in [getattr(node, "module", None), *(alias.name for alias in node.names)]}
    assert not any(name and name.split(".")[0] in ("anonfit", "planted", "polars", "numpy") for name in names)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_release_is_accepted_by_both(made: Made, seed: int) -> None:
    accept(*made[seed])


@pytest.mark.sampled(13)
@pytest.mark.parametrize("name", NAMES)
def test_both_agree_on_a_tampered_release(made: Made, name: str) -> None:
    """Each kind in the first release that has a place for it; unless it may be harmless, it is refused."""
    first = NAMES.index(name)
    for turn in SEEDS:
        refused = agree(*made[(first + turn) % len(SEEDS)], name, first)
        if refused is not None:
            assert refused or name in HARMLESS
            return
    raise AssertionError("no release has a place for it")


@pytest.mark.parametrize(("seed", "name"), [(1618, "label_with_missing_added"), (2082, "leaf_renamed")])
def test_both_agree_where_they_did_not(tmp_path: Path, seed: int, name: str) -> None:
    """Classes of equal width of the table that is left; a report with a label of a leaf that is no more."""
    case, folder = released(seed, tmp_path)
    accept(case, folder)
    assert agree(case, folder, name, seed)


def test_there_are_as_many_kinds_of_tampering_as_asked() -> None:
    assert len(KINDS) >= 60


@pytest.mark.sampled(7)
@pytest.mark.parametrize("shape", [name for name in SHAPES if name != "extended"])
def test_the_known_releases_are_accepted_by_the_checker(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, shape: str
) -> None:
    folder = Releases(tmp_path)[shape]
    assert check(folder, SHAPES[shape].source.to_dict(as_series=False)).accepted


def test_what_was_asked_is_held_against_what_is_claimed(made: Made) -> None:
    case, folder = made[0]
    assert check(folder, None, {"k": case.spec["privacy"]["k"] + 1}).faults


@pytest.mark.sampled(2)
@pytest.mark.spark
@pytest.mark.parametrize("seed", [1, 4])
def test_a_random_release_of_spark_is_accepted_by_both(tmp_path: Path, seed: int) -> None:
    accept(*released(seed, tmp_path, "spark"))


# --- the large numbers --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_many_random_releases_and_tamperings(tmp_path: Path, part: int) -> None:
    """2,000 releases in all, each tampered with once: the first kind, from one that changes, that has a place."""
    for seed in range(1000 + part * PART, 1000 + (part + 1) * PART):
        case, folder = released(seed, tmp_path)
        accept(case, folder)
        kinds = NAMES[seed % len(NAMES) :] + NAMES[: seed % len(NAMES)]
        assert any(agree(case, folder, name, seed) is not None for name in kinds)
        shutil.rmtree(folder.parent)


@pytest.mark.slow
@pytest.mark.spark
def test_many_random_releases_of_spark(tmp_path: Path) -> None:
    for seed in range(5000, 5040):
        case, folder = released(seed, tmp_path, "spark")
        accept(case, folder)
        assert agree(case, folder, random.Random(seed).choice(["raw_value_changed", "row_doubled"]), seed)


@pytest.mark.slow
@pytest.mark.parametrize(("one", "shape"), CASES)
def test_a_planted_fault_is_found_by_the_checker(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, one: Fault, shape: str
) -> None:
    p = planted(Releases(tmp_path)[shape], tmp_path / "release", SHAPES[shape])
    one.plant(p)
    assert not check(p.write(), p.shape.source.to_dict(as_series=False)).accepted
