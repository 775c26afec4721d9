# SPDX-License-Identifier: Apache-2.0
"""What a model learns across groups, of whom it is sure, and what can be asked of that."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.errors import Infeasible, SpecError
from anonfit.metrics.attack import Attack, attack_content
from anonfit.metrics.inference import Guesses, LearnedClasses, ReleasedRecords, Secret, learn
from anonfit.privacy.disclosure import Disclosure
from anonfit.release.evidence import attack_draft
from anonfit_papers.datasets_adult import ADULT_COLUMNS
from waivers import waived

K = 10


def patients(rows: int = 3000, *, follows: float, seed: int = 1) -> pl.DataFrame:
    """Persons whose illness follows their job, for this share of them, while regions are made by age and town."""
    rng = np.random.default_rng(seed)
    job = rng.integers(0, 6, rows)
    ill = np.where(rng.random(rows) < follows, job % 3, rng.integers(0, 3, rows))
    return pl.DataFrame(
        {
            "age": rng.integers(20, 80, rows),
            "town": rng.choice([f"town {number}" for number in range(8)], rows),
            "job": [f"job {number}" for number in job],
            "ill": [f"illness {number}" for number in ill],
        }
    )


WORDS: dict[str, Any] = {
    "quasi_identifiers": ["age", "town", "job"],
    "k": K,
    "sensitive": {"ill": {"model": "entropy-l", "l": 2.0}},
}


def learned(release: af.Release) -> dict[str, Any]:
    (line,) = release.report["attack"]["inference"]
    found: dict[str, Any] = line["learned"]
    return found


def test_a_model_is_sure_where_no_group_is() -> None:
    """No group makes a value 90 % likely, as was asked; all groups together tell how illness follows the job."""
    release = af.anonymize(patients(follows=0.95), **WORDS)
    found = learned(release)
    assert found["sure_by_group"] == 0
    assert found["sure"] > 0.05
    exactly = attack_draft(release._draft)
    assert exactly is not None
    assert exactly.learned["ill"].right > 0.8 * exactly.learned["ill"].sure
    assert any("a model learned from all groups" in text for text in release.report["attack"]["sentences"])


def test_where_nothing_can_be_learned_a_model_is_sure_of_nobody() -> None:
    assert learned(af.anonymize(patients(follows=0.0), **WORDS))["sure"] in (0, None)


def test_a_model_is_what_naive_bayes_over_cells_says() -> None:
    """By hand: two groups of one column with cells 0 and 1, one of both cells, and one of cell 1 alone."""
    frame = pl.DataFrame({"q": [1] * 8 + [9] * 8, "s": ["a"] * 6 + ["b"] * 2 + ["b"] * 8})
    release = af.anonymize(frame, quasi_identifiers=["q"], k=8, insensitive=["s"])
    nodes = release.recoding.nodes(release.recoding.cells(frame))
    codes = (frame["s"] == "b").cast(pl.Int8).to_numpy()
    secret = Secret("s", codes, codes)
    _, place = ReleasedRecords(nodes).places
    found = learn(release.recoding, ReleasedRecords(nodes), secret, place, release.recoding.cells(frame))
    # Each group is one cell, so nothing is added to its shares: 6 of 8 are not sure, 8 of 8 are.
    assert found == LearnedClasses(persons=16, sure=8, right=8, sure_by_group=8, only_learned=0, only_by_group=0)
    whole = np.zeros(16, np.int32)
    one_group = learn(
        af.anonymize(frame, quasi_identifiers=["q"], k=16, insensitive=["s"]).recoding,
        ReleasedRecords(whole),
        secret,
        whole.astype(np.int64),
        [np.zeros(16, np.int64)],
    )
    assert (one_group.sure, one_group.sure_by_group) == (0, 0)


@pytest.mark.parametrize(
    "words", [{"count": "many", "release": ["many"]}, {"entity": "who"}, {"algorithm": "tdr", "targets": ["town2"]}]
)
def test_it_is_measured_of_every_kind_of_table(words: dict[str, Any]) -> None:
    frame = patients(600, follows=0.9).with_columns(
        many=pl.lit(2), who=pl.int_range(pl.len()) // 2, town2=pl.col("town")
    )
    others = [name for name in ("many", "who", "town2") if name not in str(words)]
    release = af.anonymize(
        frame.drop(others), **WORDS | {"sensitive": {"ill": {"model": "entropy-l", "l": 1.2}}} | words
    )
    line = next(line for line in release.report["attack"]["inference"] if line["column"] == "ill")
    assert set(line["learned"]) == {"at_least", "sure", "right", "sure_by_group"}


def test_a_rare_class_is_one_of_all_others() -> None:
    frame = patients(600, follows=0.9).with_columns(ill=pl.format("illness {}", pl.int_range(pl.len()) % 200))
    assert learned(af.anonymize(frame, **WORDS))["sure_by_group"] == 0


# --- what may be told --------------------------------------------------------------------------------------------


def content(one: LearnedClasses, k: int = K, **words: bool) -> dict[str, Any]:
    guesses = Guesses("ill", 100, False, 50, 50, 50, 50)
    attack = Attack(100, 100, 100, 0.05, 0.1, 0.01, 0, (guesses,), learned={"ill": one})
    found: dict[str, Any] = attack_content(attack, Disclosure(k), **words)["inference"][0]["learned"]
    return found


@pytest.mark.parametrize(
    ("learned", "told"),
    [
        (LearnedClasses(100, 40, 25, 0, 40, 0), (0.4, 0.625, 0.0)),
        (LearnedClasses(100, 40, 40, 0, 40, 0), (0.4, 1.0, 0.0)),
        (LearnedClasses(100, 9, 9, 0, 9, 0), (None, None, 0.0)),
        (LearnedClasses(100, 95, 95, 0, 95, 0), (None, None, 0.0)),
        (LearnedClasses(100, 40, 35, 3, 37, 0), (0.4, None, None)),
        (LearnedClasses(100, 0, 0, 0, 0, 0), (0.0, None, 0.0)),
        # Whoever counts the persons whose groups make one sure would know that the model is sure of one more.
        (LearnedClasses(100, 22, 22, 21, 1, 0), (None, None, 0.21)),
        (LearnedClasses(100, 40, 40, 50, 20, 30), (0.4, 1.0, 0.5)),
        (LearnedClasses(100, 40, 40, 42, 20, 22), (0.4, 1.0, 0.42)),
        (LearnedClasses(100, 40, 40, 43, 0, 3), (None, None, 0.43)),
    ],
)
def test_figures_of_few_are_not_told(learned: LearnedClasses, told: tuple[float | None, ...]) -> None:
    found = content(learned)
    assert (found["sure"], found["right"], found["sure_by_group"]) == told


@pytest.mark.parametrize(
    ("learned", "told"),
    [
        (LearnedClasses(100, 40, 25, 0, 40, 0), 0.4),
        (LearnedClasses(100, 9, 9, 0, 9, 0), "fewer than 10"),
        (LearnedClasses(100, 95, 95, 95, 0, 0), "all but fewer than 10"),
        (LearnedClasses(100, 22, 22, 21, 1, 0), 0.21),
        (LearnedClasses(100, 40, 40, 43, 0, 3), 0.43),
        (LearnedClasses(100, 58, 40, 43, 18, 3), 0.61),
        (LearnedClasses(100, 3, 3, 3, 0, 0), "fewer than 10"),
    ],
)
def test_a_limit_is_held_against_what_few_do_not_change(learned: LearnedClasses, told: float | str) -> None:
    assert content(learned, is_limited=True)["sure"] == told


# --- what can be asked -------------------------------------------------------------------------------------------


def test_what_is_learned_can_be_limited(tmp_path: Path) -> None:
    frame = patients(follows=0.95)
    with pytest.raises(Infeasible, match="a model learned from the release is at least 90% sure of 'ill' for") as told:
        af.anonymize(frame, **WORDS, attack_limit=0.01)
    assert told.value.exit_status == 1
    release = af.anonymize(frame, **WORDS, attack_limit=0.9)
    folder = release.save(tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["spec"]["privacy"]["attack_limit"] == 0.9
    assert release.report["asked"]["attack_limit"] == 0.9
    assert any("(attack_limit)" in sentence for sentence in release.report["asked"]["sentences"])
    audit = af.audit_release(folder)
    assert audit.passed
    assert "attack_limit" in [finding.name for finding in audit.unchecked]
    assert "attack_limit 0.9 of ill" in audit.claims
    assert af.load(folder)._draft.spec.privacy.attack_limit == 0.9


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_nothing_is_published_beyond_the_limit(tmp_path: Path, engine: str) -> None:
    patients(follows=0.95).write_parquet(tmp_path / "data.parquet")
    (tmp_path / "spec.toml").write_text(
        "version = 1\ndata.source = 'data.parquet'\nprivacy = { k = 10, attack_limit = 0.01, diversity = "
        "[{ column = 'ill', model = 'entropy-l', l = 2.0 }] }\ncolumns.ill.role = 'sensitive'\n"
        f"engine.name = '{engine}'\n"
        + "".join(f"columns.{name}.role = 'quasi-identifier'\n" for name in WORDS["quasi_identifiers"]),
        encoding="utf-8",
    )
    with pytest.raises(Infeasible, match="attack_limit is 0.01"):
        af.run(tmp_path / "spec.toml", tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"data.parquet", "spec.toml"}


def test_a_limit_that_cannot_be_held_is_refused() -> None:
    with pytest.raises(SpecError, match="attack_limit is of sensitive columns, and there is none"):
        af.anonymize(
            patients(50, follows=0),
            quasi_identifiers=["age"],
            insensitive=["town", "job", "ill"],
            k=2,
            attack_limit=0.5,
        )
    with pytest.raises(SpecError, match="attack_limit must be a number between 0 and 1"):
        af.anonymize(patients(50, follows=0), **WORDS, attack_limit=2)
    numbers = patients(500, follows=0).with_columns(ill=pl.int_range(pl.len()) * 0.5)
    with pytest.raises(Infeasible, match="measured of classes, and it has numbers"):
        af.anonymize(numbers, **WORDS | {"sensitive": waived("ill")}, release=["ill"], attack_limit=0.5)


@pytest.mark.slow
def test_adult() -> None:
    """Under entropy-l of 2 and k of 10 no group makes a marital status 90 % likely; a model is sure of many."""
    data = Path(os.environ.get("ANONFIT_DATA", "")) / "uci" / "adult.data"
    if not data.is_file():
        pytest.skip("ANONFIT_DATA has no uci/adult.data")
    frame = pl.read_csv(data, has_header=False, new_columns=list(ADULT_COLUMNS), null_values=["?", " ?"]).drop_nulls()
    names = ["age", "workclass", "education", "race", "sex", "native-country", "occupation"]
    sensitive = {"marital-status": {"model": "entropy-l", "l": 2.0}}
    found = learned(
        af.anonymize(frame.select(*names, "marital-status"), quasi_identifiers=names, k=10, sensitive=sensitive)
    )
    assert found["sure_by_group"] == 0
    assert 0.05 < found["sure"] < 0.25
    assert found["right"] > 0.75
