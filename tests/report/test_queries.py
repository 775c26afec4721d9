# SPDX-License-Identifier: Apache-2.0
"""What is told of the queries of a log: nothing that could not be concluded from the figures of selections."""

from __future__ import annotations

from typing import Any

import pytest

from anonfit.metrics.queries import QueryAnswer, QueryError, internal_queries, public_queries, query_figures
from anonfit.privacy.disclosure import Disclosure
from anonfit.report.page import page
from anonfit.workload.logs.tallies import Ask


def query(true: int, answered: int, expected: float, *, kept: int | None = None, times: int = 1) -> QueryAnswer:
    measures = (QueryError("count", None, 1, abs(expected - true), true), QueryError("sum", "pay", 2, 30.0, 100.0))
    return QueryAnswer(times, true, true if kept is None else kept, answered, expected, measures)


def told(*answers: QueryAnswer, total: int = 1000, least: int = 10) -> dict[str, Any]:
    return public_queries(list(answers), Disclosure(least), asked=len(answers), total=total)


@pytest.mark.parametrize(
    "few",
    [
        query(9, 40, 20.0),  # few are meant
        query(995, 1000, 990.0),  # few are not
        query(100, 105, 90.0),  # few are answered in vain
        query(100, 200, 90.0, kept=99),  # some are withheld
    ],
)
def test_a_query_that_sets_few_apart_is_not_told_of(few: QueryAnswer) -> None:
    assert told(few) == {
        "asked": 1,
        "told": 0,
        "multiples_of": 10,
        "imprecision": None,
        "precision": None,
        "count_error": None,
    }
    enough = query(100, 200, 90.0)
    assert {**told(few, enough), "asked": 1} == told(enough)


def test_all_that_is_told_follows_from_imprecision_in_multiples_of_k() -> None:
    for true in range(171, 181):  # one person more or less changes nothing
        found = told(query(true, 200, 150.0))
        assert (found["imprecision"], found["precision"], found["count_error"]) == (20, 0.9, round(30 / 180, 2))


def test_where_persons_have_several_rows_nothing_is_told() -> None:
    rule = Disclosure(5, rows_are_persons=False)
    assert public_queries([query(50, 100, 60.0)], rule, asked=3, total=100)["told"] == 0


def test_means_are_over_all_times_a_query_was_asked() -> None:
    figures = query_figures([query(50, 100, 60.0, times=3), query(100, 100, 100.0)])
    assert figures["imprecision"] == 37.5
    assert figures["precision"] == pytest.approx(0.625)
    assert figures["count_error"] == pytest.approx(3 * 0.2 / 4)
    assert figures["sum_error"] == pytest.approx(0.3)
    assert figures["avg_error"] is None
    assert query_figures([]) == {}


def shown(name: str, **report: Any) -> str:
    return page(f"report/{name}.html", report={"selections": None, **report})


def test_pages_say_what_there_is() -> None:
    assert "cannot be told" in shown("answers", queries=told(query(9, 40, 20.0)))
    assert "90.0" in shown("answers", queries=told(query(180, 200, 150.0)))
    internal = internal_queries([Ask(None, (("count", None),))], [query(50, 100, 60.0)], left_out=2)
    text = shown("answers", queries=internal)
    assert "all rows" in text
    assert "2 further questions" in text
    assert "No rule was found" in shown("rules", rules={"found": 0, "hold": 0, "not_told": 0, "rules": []})
