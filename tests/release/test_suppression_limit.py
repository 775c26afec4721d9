# SPDX-License-Identifier: Apache-2.0
"""`suppression_limit`: as many rows as it allows are withheld, and no more, by every algorithm and engine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import anonfit as af
from anonfit.cli.main import app
from anonfit.errors import AnonfitError, Infeasible, RequestError
from anonfit.release.draft import RowCounts, within_limit
from anonfit.spec.parse import spec_of
from json_layout import write_json

K = 5
WAYS: dict[str, dict[str, Any]] = {
    "mondrian": {},
    "tdr": {"algorithm": "tdr", "targets": ["out"]},
    "several": {"algorithm": "tdr", "targets": ["out"], "requirements": [["age"], ["age", "town"]]},
    "tree": {"algorithm": "tree", "targets": ["out"]},
    "duckdb": {"engine": "duckdb"},
}


def people(rows: int = 400, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    out = np.where(age > 40, "y", rng.choice(["y", "n"], rows))
    return pl.DataFrame({"age": age, "town": rng.choice(["a", "b", "c"], rows), "out": out})


def released(**words: Any) -> af.Release:
    words = words if "targets" in words else {"insensitive": ["out"], **words}
    return af.anonymize(people(), quasi_identifiers=["age", "town"], k=K, **words)


def new() -> pl.DataFrame:
    """Rows of which some are too few in their region, and some have an unknown town."""
    strangers = people(30, 3).with_columns(town=pl.lit("somewhere"))
    return pl.concat([people(), strangers, people(2, 5)])


@pytest.mark.parametrize("way", WAYS)
def test_more_than_the_limit_is_infeasible_and_exactly_the_limit_is_not(way: str) -> None:
    release = released(**WAYS[way])
    withheld = release.extend(new(), suppression_limit=1.0)._draft.rows.withheld
    assert withheld >= 30
    enough = withheld / len(new())
    assert release.extend(new(), suppression_limit=enough + 1e-9)._draft.rows.withheld == withheld
    for limit in (None, 0.0, enough - 0.001):
        with pytest.raises(Infeasible, match=f"{withheld} of {len(new())} rows lie in regions that do not hold"):
            release.extend(new(), suppression_limit=limit)


def test_the_sentence_says_what_allows_it_and_that_does() -> None:
    release = released()
    with pytest.raises(Infeasible) as refused:
        release.extend(new())
    assert refused.value.exit_status == 1
    said = re.search(r"--suppression-limit (\S+) for apply, suppression_limit=(\S+) in Python", str(refused.value))
    assert said is not None
    assert said[1] == said[2]
    extended = release.extend(new(), suppression_limit=float(said[1]))
    assert extended._draft.spec.privacy.suppression_limit == float(said[1])


def test_few_persons_are_not_counted() -> None:
    few = pl.concat([people(), people(3, 3).with_columns(town=pl.lit("somewhere"))])
    release = released()
    with pytest.raises(Infeasible) as refused:
        release.extend(few)
    assert str(refused.value).startswith(f"fewer than {K} of {len(few)} rows")
    assert release.extend(few, suppression_limit=K / len(few))._draft.rows.withheld == 3
    others = people(40, 3).with_columns(town=pl.lit("somewhere"))
    with pytest.raises(Infeasible, match=r"40 rows have a value that the recoding does not know"):
        release.extend(others)
    with pytest.raises(Infeasible, match=rf"fewer than {K} rows have a value"):
        release.extend(others.head(3))


@pytest.mark.parametrize(
    ("limit", "withheld", "fits"),
    [(0.0, 0, True), (0.0, 1, False), (0.29, 29, True), (0.29, 30, False), (1.0, 100, True), (0.009, 1, False)],
)
def test_the_limit_is_a_share_of_the_rows_that_were_not_dropped(limit: float, withheld: int, fits: bool) -> None:
    columns = {"age": {"role": "quasi-identifier"}}
    spec = spec_of({"version": 1, "columns": columns, "privacy": {"k": 2, "suppression_limit": limit}})
    rows = RowCounts(read=150, dropped=50, withheld=withheld, withheld_persons=withheld)
    if fits:
        assert within_limit(spec, rows) is rows
    else:
        with pytest.raises(Infeasible):
            within_limit(spec, rows)


@pytest.mark.parametrize("limit", [-0.1, 1.5, float("nan"), "0.1", True])
def test_what_is_no_share_is_refused(limit: Any) -> None:
    with pytest.raises(RequestError, match="suppression_limit must be a number between 0 and 1"):
        released().extend(new(), suppression_limit=limit)


def anonfit(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*map(str, words), "--json"])
    if isinstance(result.exception, AnonfitError):
        return result.exception.exit_status, str(result.exception)
    return result.exit_code, result.stdout


def test_apply_takes_the_limit_of_the_release_or_another_and_records_it(tmp_path: Path) -> None:
    new().write_csv(tmp_path / "new.csv")
    released(suppression_limit=0.5).save(tmp_path / "half")
    released().save(tmp_path / "none")
    assert json.loads((tmp_path / "half" / "manifest.json").read_text())["spec"]["privacy"]["suppression_limit"] == 0.5
    words = ("apply", tmp_path / "none", tmp_path / "new.csv", "--out", tmp_path / "out")
    status, said = anonfit(*words)
    assert status == 1
    assert "suppression_limit = 0.0 allows 0" in said
    assert not (tmp_path / "out").exists()
    assert anonfit(*words, "--suppression-limit", "0.25")[0] == 0
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["spec"]["privacy"]["suppression_limit"] == 0.25
    assert anonfit("audit", tmp_path / "out")[0] == 0
    assert anonfit("apply", tmp_path / "half", tmp_path / "new.csv", "--out", tmp_path / "more")[0] == 0


@pytest.mark.parametrize(("limit", "passed"), [(0.25, True), (0.01, False), (0.0, False)])
def test_the_audit_holds_a_release_to_the_limit_that_it_states(tmp_path: Path, limit: float, passed: bool) -> None:
    folder = released().extend(new(), suppression_limit=1.0).save(tmp_path / "release")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["spec"]["privacy"]["suppression_limit"] = limit
    write_json(folder / "manifest.json", manifest)
    found = next(one for one in af.audit_release(folder).findings if one.name == "suppression limit")
    assert found.met is passed
    assert af.audit_release(folder).passed is passed
