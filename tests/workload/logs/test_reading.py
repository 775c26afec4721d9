# SPDX-License-Identifier: Apache-2.0
"""Files of statements: where each begins and ends, whatever is quoted, and in bounded time and memory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from anonfit.errors import RequestError
from anonfit.workload.logs import reading
from anonfit.workload.logs.reading import LONGEST, dialect_quoting, read_statements


def statements(folder: Path, text: str, dialect: str | None = None) -> list[tuple[str | None, int]]:
    file = folder / "log.sql"
    file.write_text(text, encoding="utf-8")
    return [(one.text, one.line) for one in read_statements([file], dialect_quoting(dialect)[0])]


def test_statements_end_with_semicolons_and_go_over_lines(tmp_path: Path) -> None:
    text = "select a\n  from t\n  where b = 'x;y' -- not ; here\n;\n\n/* nor ; here */ select 2; select 3"
    assert statements(tmp_path, text) == [
        ("select a\n  from t\n  where b = 'x;y' -- not ; here", 1),
        ("/* nor ; here */ select 2", 6),
        ("select 3", 6),
    ]


def test_every_line_is_a_statement_where_lines_begin_as_statements_do(tmp_path: Path) -> None:
    assert statements(tmp_path, "select 1\nSELECT 2; select 3;\n\nwith a as (select 1) select * from a\n") == [
        ("select 1", 1),
        ("SELECT 2", 2),
        ("select 3", 2),
        ("with a as (select 1) select * from a", 4),
    ]


@pytest.mark.parametrize("opened", ["'", '"', "/* ", "$$ "])
def test_what_is_never_closed_costs_its_own_line_only(tmp_path: Path, opened: str) -> None:
    by_line = f"select 1\nselect {opened}abc\nselect 3\n"
    assert statements(tmp_path, by_line) == [("select 1", 1), (None, 2), ("select 3", 3)]
    over_lines = f"select\n 1;\nselect {opened}abc;\nselect\n 3;\n  from\n x\n"
    assert statements(tmp_path, over_lines)[:3] == [("select\n 1", 1), (None, 3), ("select\n 3", 4)]


def test_a_backslash_hides_a_quote_in_dialects_that_have_it(tmp_path: Path) -> None:
    text = r"select 'it\'s; ok'; select 2"
    assert statements(tmp_path, text, "mysql") == [(r"select 'it\'s; ok'", 1), ("select 2", 1)]
    assert statements(tmp_path, r"select '\'; select 2", "postgres") == [(r"select '\'", 1), ("select 2", 1)]


def test_a_statement_of_megabytes_is_left_out_and_the_next_is_read(tmp_path: Path) -> None:
    long = "select\n1 in (" + "1," * (2 * LONGEST) + "1)"
    assert statements(tmp_path, f"{long};\nselect\n2;") == [(None, 1), ("select\n2", 3)]
    one_line = "select 1\nselect '" + "x" * (30 * LONGEST) + "'\nselect 2\n"
    assert statements(tmp_path, one_line) == [("select 1", 1), (None, 2), ("select 2", 3)]


def test_a_long_statement_ends_where_it_ends_wherever_blocks_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "select\n" + "/* ; */ '; ''' " * 40 + "1;\nselect\n2;\nselect\n/*" + ";" * 300 + "*/ 3;\nselect\n4"
    monkeypatch.setattr(reading, "LONGEST", 200)
    for block in (1, 2, 3, 7, 64, 1000):
        monkeypatch.setattr(reading, "BLOCK", block)
        found = statements(tmp_path, text)
        assert [one for one, _ in found] == [None, "select\n2", None, "select\n4"], block
        assert [line for _, line in found] == [1, 3, 5, 7], block


def test_quotes_that_never_close_cannot_make_reading_slow(tmp_path: Path) -> None:
    text = "from\nx select ' from a\n" * 60_000
    begin = time.perf_counter()
    found = statements(tmp_path, text)
    assert time.perf_counter() - begin < 30
    assert all(one is None for one, _ in found[:5])


@pytest.mark.parametrize(
    "text",
    [";" * 1_000_000, " " * 99_000 + "x\n", "a\nb\nc select ' ;\n" + " " * 500_000 + "x", "select (" + "\n(" * 400_000],
    ids=["semicolons", "blanks", "blanks after a quote", "lines"],
)
def test_signs_that_say_nothing_cannot_make_reading_slow(tmp_path: Path, text: str) -> None:
    begin = time.perf_counter()
    assert len(statements(tmp_path, text)) <= 2
    assert time.perf_counter() - begin < 30


@pytest.mark.parametrize(("dialect", "mark"), [("mysql", "#"), ("bigquery", "#"), ("snowflake", "//"), (None, "--")])
def test_the_rest_of_a_line_is_a_comment_as_the_dialect_says(tmp_path: Path, dialect: str | None, mark: str) -> None:
    text = f"{mark} it's; so\nselect 1;\n{mark} User: 'x\nselect {mark} it's\n 2;\nselect 3"
    found = statements(tmp_path, text, dialect)
    assert [line for _, line in found] == [1, 3, 6]
    assert None not in [one for one, _ in found]
    by_line = f"select 1 {mark} it's\n{mark} it's\nselect 2\n"
    assert [one for one, _ in statements(tmp_path, by_line, dialect)] == [
        f"select 1 {mark} it's",
        f"{mark} it's",  # nothing but a comment, which is left out once it is looked into
        "select 2",
    ]


def test_names_in_brackets_are_quoted_where_the_dialect_says_so(tmp_path: Path) -> None:
    text = "select [a;b's]; select 2"
    assert statements(tmp_path, text, "tsql") == [("select [a;b's]", 1), ("select 2", 1)]


def test_a_line_that_says_go_ends_a_statement_in_one_dialect(tmp_path: Path) -> None:
    text = "select a\n from t\nGO\nselect '\ngo\n'\n go \nselect go\n from b"
    assert statements(tmp_path, text, "tsql") == [
        ("select a\n from t", 1),
        ("select '\ngo\n'", 4),
        ("select go\n from b", 8),
    ]
    assert len(statements(tmp_path, text)) == 1


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no such query log"):
        list(read_statements([tmp_path / "none.sql"], dialect_quoting(None)[0]))
    (tmp_path / "x.sql").write_bytes(b"\x00\x01select 1")
    with pytest.raises(RequestError, match="is no text file"):
        list(read_statements([tmp_path / "x.sql"], dialect_quoting(None)[0]))
    with pytest.raises(RequestError, match="cannot be read as a query log"):
        list(read_statements([tmp_path], dialect_quoting(None)[0]))
