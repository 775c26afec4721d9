# SPDX-License-Identifier: Apache-2.0
"""A query log in a spec: what it may say, what it teaches a release, and that the release tells nothing of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.errors import RequestError, SpecError
from anonfit.release.draft import Draft
from anonfit.release.run import make, read_source
from anonfit.spec.learning import learn_from_log, learned_text, with_learned
from anonfit.spec.model import QueryLogSpec, Spec
from anonfit.spec.parse import parse_spec, public_tables, read_spec
from anonfit.spec.write import to_toml
from anonfit.tables.schema import persons_in
from anonfit.workload.logs.merging import rows_of_frame

TOML = """\
# Mine.
version = 1
[data]
source = "people.csv"
[columns]
age = { role = "quasi-identifier", type = "continuous" }  # years
hours = { role = "quasi-identifier", type = "continuous" }
town.role = "quasi-identifier"
[columns.ill]
role = "sensitive"
diversity = "none"
reason = "made-up people"
[columns.pay]
role = "target"
[workload]
targets = ["pay"]
[[workload.selections]]
where = "town = 'b'"
[privacy]
k = 5
"""


def people(rows: int = 600) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "hours": rng.integers(1, 80, rows),
            "town": rng.choice(list("abcdefgh"), rows),
            "ill": rng.choice(["x", "y", "z"], rows),
            "pay": rng.choice(["low", "high"], rows),
        }
    )


def queries(count: int, seed: int = 0) -> str:
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        low = rng.integers(18, 70)
        lines.append(
            f"SELECT town, COUNT(*), SUM(hours) FROM people WHERE age BETWEEN {low} AND {low + rng.integers(5, 25)} "
            f"AND hours > {rng.choice([10, 20, 40])} GROUP BY town"
        )
    return "\n".join(lines)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people().write_csv(tmp_path / "people.csv")
    (tmp_path / "spec.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "log.sql").write_text(queries(80) + "\nselect 1 from people where ill = 'x'\n", encoding="utf-8")
    return tmp_path


def with_log(text: str, **settings: Any) -> str:
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    return text + "[workload.query_log]\n" + "\n".join(lines) + "\n"


def made_of(folder: Path, **settings: Any) -> Draft:
    (folder / "with.toml").write_text(with_log(TOML, path="log.sql", **settings), encoding="utf-8")
    return make(read_spec(folder / "with.toml"), threads=1)


def test_a_log_is_read_and_written_back() -> None:
    log = parse_spec(with_log(TOML, path="log.sql")).workload.query_log
    assert log == QueryLogSpec(("log.sql",))
    spec = parse_spec(with_log(TOML, path=["a.sql", "b.sql"], dialect="mysql", table="t", learn=False))
    assert spec.workload.query_log == QueryLogSpec(("a.sql", "b.sql"), "mysql", "t", False)
    assert parse_spec(to_toml(spec)) == spec


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "workload.query_log.path must be a file"),
        ({"path": []}, "workload.query_log.path must be a file"),
        ({"path": 3}, "workload.query_log.path must be a file"),
        ({"path": "a", "selections": -1}, "workload.query_log.selections must be between 0 and 1,000"),
        ({"path": "a", "learn": "yes"}, "workload.query_log.learn"),
        ({"path": "a", "dilaect": "x"}, "dialect"),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        parse_spec(with_log(TOML, **settings))


def test_top_down_refinement_is_judged_by_a_log_but_learns_nothing(folder: Path) -> None:
    text = TOML.replace("[[workload.selections]]\nwhere = \"town = 'b'\"\n", "") + '[method]\nalgorithm = "tdr"\n'
    with pytest.raises(SpecError, match="learn = false"):
        parse_spec(with_log(text, path="log.sql"))
    spec = parse_spec(with_log(text, path="log.sql", learn=False), folder=folder)
    made = make(spec, source=people(), threads=1)
    assert len(made.asked) > 10
    rows = rows_of_frame(people(), persons_in(made.schema, people()).of_groups)
    with pytest.raises(RequestError, match="teaches it nothing"):
        learn_from_log(spec, QueryLogSpec(("log.sql",)), made.schema.columns, rows)


def test_weights_come_from_one_place() -> None:
    text = TOML.replace("[workload]\n", '[workload]\nweights_from = "accuracy"\n')
    with pytest.raises(SpecError, match="weights_from finds them"):
        parse_spec(with_log(text, path="log.sql"))
    assert parse_spec(with_log(text, path="log.sql", learn=False)).workload.query_log
    with pytest.raises(SpecError, match="tries its own"):
        parse_spec(with_log(TOML + '[method]\ncriterion = "explore"\n', path="log.sql"))


def test_a_release_is_made_for_what_its_log_teaches(folder: Path) -> None:
    made = made_of(folder)
    workload = made.spec.workload
    assert workload.selections[0].where == "town = 'b'"  # what the spec says stays
    assert 10 < len(workload.selections) <= 51
    assert set(workload.weights) == {"age", "hours", "town"}
    assert sum(workload.weights.values()) == pytest.approx(1.0, abs=0.001)
    assert made.spec.method.weight_rule == "product"
    assert workload.query_log is not None
    assert not workload.query_log.learn
    assert made.answers is not None
    assert all("ill" not in (one.where or "") for one in workload.selections)


def test_a_log_that_only_judges_changes_nothing(folder: Path) -> None:
    plain = make(read_spec(folder / "spec.toml"), threads=1)
    judged = made_of(folder, learn=False)
    assert judged.recoding.to_json() == plain.recoding.to_json()
    assert judged.spec.workload.selections == plain.spec.workload.selections
    assert len(judged.asked) > 10
    assert plain.asked == ()


def test_queries_that_count_or_group_by_identifiers_do_no_harm(folder: Path) -> None:
    people().with_row_index("name").write_csv(folder / "people.csv")
    spec = TOML.replace("[columns.ill]", '[columns.name]\nrole = "identifier"\n[columns.ill]')
    (folder / "log.sql").write_text(
        "select count(name) from people where age > 30;\nselect name, count(*) from people group by name;\n"
        "select sum(name) from people;\nselect count(*) from people where name = 7 and age > 40"
    )
    made = make(parse_spec(spec + "[workload.query_log]\npath = 'log.sql'\n", folder=folder), threads=1)
    assert [one.ask.aggregates for one in made.asked] == [(("count", None),)]
    release = folder / "release"
    af.run(_saved(folder, spec), release)
    assert json.loads((release / "report.json").read_text())["queries"]["asked"] == 1


def _saved(folder: Path, spec: str) -> Path:
    path = folder / "judged.toml"
    path.write_text(spec + "[workload.query_log]\npath = 'log.sql'\n")
    return path


def test_the_release_tells_nothing_of_the_log(folder: Path) -> None:
    secret = "select count(*) from people where age >= 31 and age <= 63 and town = 'planted-town'\n"
    (folder / "log.sql").write_text(queries(80) + "\n" + secret * 50, encoding="utf-8")
    (folder / "with.toml").write_text(with_log(TOML, path="log.sql"), encoding="utf-8")
    release = af.anonymize(read_spec(folder / "with.toml"))
    release.save(folder / "out")
    for file in (folder / "out").iterdir():
        content = file.read_bytes()
        assert b"planted-town" not in content, file.name
        assert b"log.sql" not in content, file.name
        assert b"hours > 40" not in content, file.name
    assert "log.sql" in (folder / "out.internal.json").read_text(encoding="utf-8")
    told = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))["queries"]
    assert set(told) == {"asked", "told", "multiples_of", "imprecision", "precision", "count_error"}
    assert told["imprecision"] % 5 == 0
    internal = json.loads((folder / "out.internal.json").read_text(encoding="utf-8"))["queries"]
    assert internal["judged"] == told["asked"]
    assert {"count_error", "sum_error", "recall"} <= set(internal)
    assert af.load(folder / "out").report["queries"] == told


def test_a_missing_log_is_named(folder: Path) -> None:
    spec = parse_spec(with_log(TOML, path="none.sql"), folder=folder)
    with pytest.raises(RequestError, match="there is no such query log"):
        make(spec, source=people(), threads=1)


# --- written for people -----------------------------------------------------------------------------------------


def learned_of(folder: Path, spec: Spec, **options: Any) -> tuple[Spec, str]:
    log = QueryLogSpec(("log.sql",), **options)
    schema, frame = read_source(spec, folder / "people.csv")
    learned = learn_from_log(spec, log, schema.columns, rows_of_frame(frame, persons_in(schema, frame).of_groups))
    original = (folder / "spec.toml").read_text(encoding="utf-8")
    return with_learned(spec, log, learned), learned_text(spec, log, learned, original=original, folder=folder)


def test_the_written_spec_is_the_old_one_with_what_was_learned_and_why(folder: Path) -> None:
    wanted, text = learned_of(folder, read_spec(folder / "spec.toml"))
    assert parse_spec(text, folder=folder) == wanted
    assert text.startswith("# Mine.\n")
    assert "# years" in text
    assert text.count("[workload]") == 1
    assert 'targets = ["pay"]' in text
    assert "# as the spec said\nwhere = \"town = 'b'\"" in text
    assert "selected by in 80 queries" in text
    assert "Not usable in 1 query: a condition in which 'ill' is guarded" in text
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line.startswith("where ="):
            assert lines[at - 1].startswith("# ")


def test_it_is_written_anew_where_the_old_text_cannot_be_kept(folder: Path) -> None:
    odd = TOML.replace('[workload]\ntargets = ["pay"]\n', "").replace(
        "[[workload.selections]]\nwhere = \"town = 'b'\"\n", ""
    )
    odd = odd.replace("version = 1\n", "version = 1\nworkload.targets = ['pay']\n")
    (folder / "spec.toml").write_text(odd, encoding="utf-8")
    wanted, text = learned_of(folder, read_spec(folder / "spec.toml"))
    assert parse_spec(text, folder=folder) == wanted


def test_paths_are_found_from_another_folder(folder: Path) -> None:
    spec = read_spec(folder / "spec.toml")
    log = QueryLogSpec(("log.sql",))
    schema, frame = read_source(spec, folder / "people.csv")
    learned = learn_from_log(spec, log, schema.columns, rows_of_frame(frame, persons_in(schema, frame).of_groups))
    below = folder / "below"
    below.mkdir()
    text = learned_text(spec, log, learned, original=TOML, folder=below)
    found = parse_spec(text, folder=below)
    assert (found.data.source, found.workload.query_log) == (
        "../people.csv",
        QueryLogSpec(("../log.sql",), learn=False),
    )
    (below / "learned.toml").write_text(text, encoding="utf-8")
    assert make(read_spec(below / "learned.toml"), threads=1).asked


def test_a_log_is_not_public(folder: Path) -> None:
    made = made_of(folder)
    public = public_tables(made.spec, made.schema)
    assert "query_log" not in public["workload"]
    assert public["workload"]["selections"] == len(made.spec.workload.selections)
