# SPDX-License-Identifier: Apache-2.0
"""Whole logs, counted: against conditions whose truth is known, and logs that are meant to do harm."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from random_predicates import columns, random_frame, random_tree, truth, written

from anonfit.errors import RequestError
from anonfit.tables.schema import Column, Role
from anonfit.workload.logs import reading as parsing
from anonfit.workload.logs import tallies
from anonfit.workload.logs.learning import columns_of
from anonfit.workload.logs.shapes import QueriedColumns
from anonfit.workload.logs.tallies import LogTally, read_log
from anonfit.workload.parsing import predicate_text
from anonfit.workload.predicates import kinds_of
from anonfit.workload.truth import holds

ROLES = {
    "age": Role.QUASI_IDENTIFIER,
    "sex": Role.QUASI_IDENTIFIER,
    "Town": Role.QUASI_IDENTIFIER,
    "ill": Role.SENSITIVE,
    "income": Role.INSENSITIVE,
    "name": Role.IDENTIFIER,
}
FRAME = pl.DataFrame(
    {"age": range(20, 60), "sex": ["f", "m"] * 20, "Town": ["a", "b", "c", "d"] * 10, "ill": ["x", "y"] * 20}
).with_columns(income=pl.col("age") * 100)


def people(table: str | None = None) -> QueriedColumns:
    return columns_of([Column(name, role) for name, role in ROLES.items()], FRAME, table=table)


def tally(
    folder: Path, text: str, *, table: str | None = None, dialect: str | None = None, most: int = 1000
) -> LogTally:
    file = folder / "log.sql"
    file.write_text(text, encoding="utf-8")
    return read_log([file], people(table), dialect=dialect, most_shapes=most)


def test_conditions_of_a_log_hold_of_the_rows_they_are_true_of(tmp_path: Path) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        frame = random_frame(rng)
        names = [column.name for column in columns() if column.role != Role.SENSITIVE]
        trees = [random_tree(rng, names=names) for _ in range(60)]
        file = tmp_path / f"{seed}.sql"
        file.write_text(";\n".join(f"select * from t where {written(tree)}" for tree in trees), encoding="utf-8")
        found = read_log([file], QueriedColumns(kinds_of(columns(), frame)))
        wanted = {bytes(np.packbits([truth(tree, row) is True for row in frame.to_dicts()])) for tree in trees}
        asked = [ask.predicate for ask in found.asks if ask.predicate is not None]
        assert len(asked) == len(found.asks)
        assert found.unread == 0
        assert not found.unusable
        assert sum(found.asks.values()) == len(trees)
        assert {bytes(np.packbits(holds(one, frame))) for one in asked} == wanted


def test_uses_are_counted_by_queries(tmp_path: Path) -> None:
    found = tally(
        tmp_path,
        "select age, age from people where AGE > 30 and age < 40 group by age;\n"
        "select count(*) from people where age > 31 and TOWN = 'a';\n"
        "select * from people;\n"
        "drop table people;\n"
        "select a.sex from people a join visits v on a.age = v.age;\n",
    )
    assert (found.statements, found.queries, found.others, found.unread, found.everything) == (5, 4, 1, 0, 1)
    age = found.uses["age"]
    assert (age.shown, age.filtered, age.grouped, age.joined, age.featured, age.total) == (1, 2, 1, 1, 2, 4)
    assert found.uses["Town"].filtered == 1
    assert found.uses["sex"].shown == 1
    assert found.selecting == 2
    assert found.tables["people"] == 4


def test_equal_selections_are_one_however_they_are_written(tmp_path: Path) -> None:
    found = tally(
        tmp_path,
        "select 1 from people where age > 30 and sex = 'f';\n"
        "SELECT 2 FROM people p WHERE p.sex IN ('f') AND 30 < p.age;\n"
        "select 3 from people where not (age <= 30 or sex <> 'f') and 1 = 1;\n",
    )
    assert list(found.predicates.values()) == [3]


def test_what_is_not_known_is_left_out_of_and_and_spoils_or(tmp_path: Path) -> None:
    found = tally(
        tmp_path,
        "select 1 from people where age > 30 and upper(sex) = 'F' and ill = 'x';\n"
        "select 1 from people where age > 30 or upper(sex) = 'F';\n"
        "select 1 from people where name = 'Bob' or age = 5;\n"
        "select 1 from people where age > 30 and 1 = 0;\n"
        "select 1 from people where sex < 'g' and age = 'young' and other = 3;\n",
    )
    assert [str(len(found.predicates)), *found.predicates.values()] == ["1", 1]
    assert not found.asks
    assert found.unusable["'ill' is guarded (its role is 'sensitive')"] == 1
    assert found.unusable["'name' is not released (its role is 'identifier')"] == 1
    assert found.unusable["'sex' is nominal and compared by order"] == 1
    assert found.unusable["'age' is compared with a value that it cannot have"] == 1
    assert found.unusable["is of a column that is not in the spec"] == 1
    assert not any("Bob" in reason or "young" in reason for reason in found.unusable)


def test_other_tables_are_told_apart_by_name(tmp_path: Path) -> None:
    text = "select 1 from people where age > 30;\nselect 1 from houses where age > 100;\n"
    assert tally(tmp_path, text).uses["age"].filtered == 2
    assert tally(tmp_path, text, table="PEOPLE").uses["age"].filtered == 1


def test_numbers_in_quotes_are_numbers_in_a_column_of_numbers(tmp_path: Path) -> None:
    found = tally(tmp_path, "select 1 from people where age > '30';\nselect 1 from people where age > 30;\n")
    assert list(found.predicates.values()) == [2]


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("tsql", "select [AGE] from [dbo].[people] where [Town] = N'a' and [age] > 30\nGO\nselect 1\nGO\n"),
        (
            "mysql",
            "# User@Host: it's me\nset t = 1;\nselect `age` from people where Town = \"a\" # it's\n and age > 30;",
        ),
        ("snowflake", "select age from people // it's\n where Town = 'a' and age > 30;"),
        ("bigquery", 'select `people`.`age` from `x.y.people` where Town = "a" and age > 30'),
        ("postgres", "select age from people where \"Town\" = 'a'::text and age > 30"),
        ("oracle", "SELECT AGE FROM PEOPLE WHERE TOWN = 'a' AND AGE > 30"),
    ],
)
def test_names_texts_and_comments_are_those_of_the_dialect(tmp_path: Path, dialect: str, text: str) -> None:
    found = tally(tmp_path, text, dialect=dialect)
    assert found.unread == 0
    assert [predicate_text(one) for one in found.predicates] == ["Town = 'a' and age > 30"]
    assert (found.uses["age"].shown, found.uses["age"].filtered, found.uses["Town"].filtered) == (1, 1, 1)


@pytest.mark.parametrize("sign", ["?", ":x", "@x", "$1"])
def test_a_parameter_is_no_column_to_join_by(tmp_path: Path, sign: str) -> None:
    found = tally(tmp_path, f"select * from people where age = {sign} and sex = 'f'")
    assert (found.uses["age"].filtered, found.uses["age"].joined) == (1, 0)
    assert found.unusable == {"has a parameter in place of a value": 1}


@pytest.mark.parametrize("number", ["1e400", "-1e399", f"{'9' * 390}.5", f"{'9' * 500}"])
def test_numbers_that_no_spec_can_hold_are_not_learned(tmp_path: Path, number: str) -> None:
    found = tally(tmp_path, f"select * from people where age <> {number} and income > 0.1")
    assert [predicate_text(one) for one in found.predicates] == ["income > 0.1"]
    assert found.unusable == {"'age' is compared with a value that it cannot have": 1}


def test_what_is_not_released_is_judged_as_rows_or_not_at_all(tmp_path: Path) -> None:
    for asked in ("name, count(*)", "sum(name)", "avg(name)", "count(nobody)", "count(*), avg(name)"):
        group = " group by name" if asked.startswith("name") else ""
        assert not tally(tmp_path, f"select {asked} from people where age > 30{group}").asks
    (ask,) = tally(tmp_path, "select count(name), count(ill), avg(age) from people where age > 30").asks
    assert ask.aggregates == (("count", None), ("count", "ill"), ("avg", "age"))


def test_values_that_are_the_same_number_are_the_same(tmp_path: Path) -> None:
    for said, selects in (("1 = 1", 1), ("1 = 1.0", 1), ("1 <> 1.0", 0), ("1 = 2", 0), ("'a' = 'b'", 0)):
        assert len(tally(tmp_path, f"select * from people where {said} and age > 30").predicates) == selects


def test_a_dialect_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no dialect 'postgrse' of SQL; did you mean 'postgres'"):
        tally(tmp_path, "select 1", dialect="postgrse")


# --- harm -------------------------------------------------------------------------------------------------------

LAUGHS = ", ".join(f"c{n} as (select a.age from c{n - 1} a, c{n - 1} b, c{n - 1} c)" for n in range(1, 60))
HOSTILE = [
    "select " + "(" * 50_000 + "1" + ")" * 50_000,
    "select " + "(" * 39 + "age" + ")" * 39 + " from people",
    "select 1 from people where " + "not " * 30_000 + "age > 3",
    "select " + "case when age > 1 then " * 5_000 + "1",
    "select * from " + "(select * from " * 3_000 + "people" + ")" * 3_000,
    "select 1 from people where age in (" + ", ".join(map(str, range(15_000))) + ")",
    "select 1 from people where age = " + "9" * 90_000,
    "select 1 from people where sex = '" + "x" * 2_000_000 + "'",
    "select " + "+".join(["age"] * 30_000) + " from people",
    " union all ".join(["select age from people"] * 4_000),
    f"with c0 as (select age from people), {LAUGHS} select age from c59 where age > 3",
    "select 'never closed from people",
    'select "never closed from people',
    "select /* never closed from people",
    "select $$ never closed",
    "copy people to program 'touch PLANTED'",
    "attach 'PLANTED' as db; create table db.x as select 1",
    "select pg_read_file('/etc/passwd'), load_extension('x'), sys_exec('touch PLANTED')",
    "\x1b[31m select age from people",
    "select age from people where age > 1e999999999 and income > 1e400",
    "select 1 from people where age = 1" + " or age = 1" * 900,
]


def test_a_hostile_statement_hangs_and_executes_nothing_and_the_others_are_read(tmp_path: Path) -> None:
    good = "select sex from people where age > 30 and Town = 'a'"
    begin = time.perf_counter()
    found = tally(tmp_path, "\n".join(f"{good}\n{hostile}\n{good}" for hostile in HOSTILE))
    assert time.perf_counter() - begin < 60
    assert max(found.predicates.values()) >= 2 * len(HOSTILE)
    assert found.unread >= 10
    assert {one.line for one in found.listed} <= set(range(1, 3 * len(HOSTILE) + 3))
    assert [path.name for path in tmp_path.iterdir()] == ["log.sql"]
    assert not Path("PLANTED").exists()


@pytest.mark.sampled(11)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_statement_over_lines_costs_little_more_than_itself(tmp_path: Path, hostile: str) -> None:
    good = "select sex\nfrom people\nwhere age > 30 and Town = 'a';\n"
    found = tally(tmp_path, f"{good}{hostile};\n{good}\n{good}")
    assert max(found.predicates.values()) >= 2


def test_a_statement_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import time, anonfit.workload.logs.syntax as syntax\n"
        "read = syntax.read_statement\n"
        "syntax.read_statement = lambda text, dialect: time.sleep(60) if 'slow' in text else read(text, dialect)\n"
        + parsing.PROGRAM
    )
    monkeypatch.setattr(parsing, "PROGRAM", program)
    begin = time.perf_counter()
    found = list(parsing.parse_statements(["select 1", "select slow", "select 2", "select slow"], None, seconds=2))
    assert time.perf_counter() - begin < 50
    assert [one.content is not None for one in found] == [True, False, True, False]
    assert found[1].fault == "it takes more than 2 seconds to parse"


def test_a_parser_that_breaks_down_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import os, anonfit.workload.logs.syntax as syntax\n"
        "read = syntax.read_statement\n"
        "syntax.read_statement = lambda text, dialect: os._exit(3) if 'bad' in text else read(text, dialect)\n"
        + parsing.PROGRAM
    )
    monkeypatch.setattr(parsing, "PROGRAM", program)
    found = list(parsing.parse_statements(["select bad", "select 2"], None))
    assert [one.content is not None for one in found] == [False, True]


def test_all_statements_together_are_given_up_after_some_time() -> None:
    found = list(parsing.parse_statements(["select 1"] * 5, None, all_seconds=0.0))
    assert [one.content is not None for one in found] == [True, False, False, False, False]
    assert {one.fault for one in found[1:]} == {"the statements before it took 0 seconds"}


def test_nothing_in_the_folder_of_the_log_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sqlglot", "json", "queue", "anonfit"):
        (tmp_path / f"{name}.py").write_text("open('executed', 'w')\nraise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    assert tally(tmp_path, "select age from people where age > 30").queries == 1
    assert not (tmp_path / "executed").exists()


def test_shapes_are_bounded_and_the_most_frequent_are_read(tmp_path: Path) -> None:
    lines = [f"select age + {n} from people" for n in range(30)] + ["select sex from people where age > 3"] * 5
    found = tally(tmp_path, "\n".join(lines), most=10)
    assert (found.queries, found.unread) == (14, 21)
    assert found.uses["sex"].shown == 5


@pytest.mark.slow
def test_a_hundred_thousand_lines_are_read_in_a_minute(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    low, high, town = rng.integers(20, 40, 100_000), rng.integers(40, 60, 100_000), rng.integers(0, 4, 100_000)
    lines = [
        f"SELECT sex, COUNT(*) FROM people WHERE age BETWEEN {a} AND {b} AND town IN ('{'abcd'[t]}', 'b') GROUP BY sex"
        for a, b, t in zip(low.tolist(), high.tolist(), town.tolist(), strict=True)
    ]
    begin = time.perf_counter()
    found = tally(tmp_path, "\n".join(lines))
    assert time.perf_counter() - begin < 60
    assert found.queries == 100_000
    assert found.selecting == 100_000


def test_what_is_kept_of_a_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "MOST_CHARACTERS", 500)
    lines = [f"select sex from people where age > {n}" for n in range(50)] + [
        "select sex from people where age > 3"
    ] * 5
    found = tally(tmp_path, "\n".join(lines))
    assert found.statements == 55
    assert found.queries == 13 + 5
    assert found.unread == 37
    long = f"select 1 from people where age in ({', '.join(map(str, range(1001)))}) and sex = 'f'"
    assert tally(tmp_path, "select 1").queries == 1
    monkeypatch.undo()
    assert tally(tmp_path, long).unusable["'age' is compared with more than 1,000 values"] == 1
