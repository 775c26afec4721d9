# SPDX-License-Identifier: Apache-2.0
"""What statements use: aliases, WITH, subqueries and unions are followed to the columns of tables."""

from __future__ import annotations

from typing import Any

import pytest

from anonfit.workload.logs.syntax import read_statement

AGE = ["age", ["people"]]


def read(text: str, dialect: str | None = None) -> dict[str, Any]:
    return read_statement(text, dialect)


def names(columns: list[Any]) -> list[str]:
    return [name for name, _ in columns]


def test_uses_of_columns_are_told_apart() -> None:
    found = read(
        "select p.sex, avg(p.income) from people p join visits v on p.id = v.pid and v.kind = 3 "
        "where p.age > 30 group by p.sex having count(*) > 5 order by p.town"
    )
    assert names(found["shown"]) == ["income", "sex", "town"]
    assert names(found["filtered"]) == ["age", "kind"]
    assert names(found["grouped"]) == ["sex"]
    assert found["joined"] == [["id", ["people"]], ["pid", ["visits"]]]
    assert found["tables"] == ["people", "visits"]


def test_a_join_by_using_and_one_in_where_are_joins() -> None:
    assert names(read("select 1 from a join b using (id)")["joined"]) == ["id"]
    assert names(read("select 1 from a, b where a.x = b.y and a.z = 3")["joined"]) == ["x", "y"]


def test_aliases_with_and_subqueries_are_followed() -> None:
    text = (
        "with young as (select age as years, sex from people where age < 30), same as (select * from young) "
        "select count(*) from (select years as y, sex from same) s where y >= 20 and s.sex = 'F'"
    )
    found = read(text)
    assert found["filtered"] == [AGE, ["sex", ["people"]]]
    assert found["selections"] == [
        [
            "and",
            [
                ["and", [[">=", AGE, [["number", "20"]]], ["=", ["sex", ["people"]], [["text", "F"]]]]],
                ["<", AGE, [["number", "30"]]],
            ],
        ]
    ]
    assert found["asks"]["aggregates"] == [["count", None]]


def test_columns_of_a_with_list_are_renamed() -> None:
    found = read("with a(x, y) as (select age, sex from people) select 1 from a where x > 3")
    assert found["filtered"] == [AGE]


def test_what_is_computed_is_used_but_not_selected_by() -> None:
    found = read("select 1 from (select age + 1 as older from people) s where older > 30")
    assert found["filtered"] == [AGE]
    assert found["selections"] == [["?", "selects by what is computed"]]


def test_groups_by_place_and_by_alias() -> None:
    assert read("select age, count(*) from people group by 1")["grouped"] == [AGE]
    assert read("select age as a, count(*) from people group by a")["asks"]["groups"] == [AGE]
    assert read("select age / 10 as a, count(*) from people group by a")["asks"] is None


def test_unions_and_subqueries_in_conditions_are_queries_of_their_own() -> None:
    found = read("select age from people where age > 3 union all select age from people where age < 1")
    assert len(found["selections"]) == 2
    found = read("select 1 from people where id in (select pid from visits where kind = 2) and age = 5")
    assert found["selections"][:1] == [["=", ["kind", ["visits"]], [["number", "2"]]]]
    assert found["selections"][1][1][0] == ["?", "holds a subquery"]


def test_a_correlated_subquery_names_what_is_around_it() -> None:
    found = read("select 1 from people p where exists (select 1 from visits v where v.pid = p.id and p.age > 5)")
    assert AGE in found["filtered"]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("upper(a) = 'X'", "is of a function"),
        ("a like 'x%'", "compares with a pattern"),
        ("a + 1 = 2", "is of arithmetic"),
        ("a = ?", "has a parameter in place of a value"),
        ("a = :x", "has a parameter in place of a value"),
        ("a < b", "compares columns with each other"),
        ("cast(a as int) = 1", "changes the type of a column"),
        ("exists (select 1)", "holds a subquery"),
        ("a = null", "compares with NULL"),
    ],
)
def test_conditions_that_cannot_be_used_say_why(condition: str, reason: str) -> None:
    assert ["?", reason] in read(f"select 1 from t where {condition}")["selections"]


def test_conditions_of_outer_joins_do_not_select() -> None:
    assert read("select 1 from a left join b on a.id = b.id and b.x = 1")["selections"] == []
    assert read("select 1 from a join b on a.id = b.id and b.x = 1")["selections"] != []


@pytest.mark.parametrize("text", ["drop table people", "update people set age = 3", "delete from people", "commit"])
def test_what_asks_nothing_is_no_query(text: str) -> None:
    assert read(text) == {"is_query": False}


def test_what_is_written_elsewhere_is_a_query_too() -> None:
    assert read("create table x as select age from people where age > 3")["filtered"] == [AGE]
    assert read("insert into x select age from people where age > 3")["filtered"] == [AGE]


def test_queries_that_cannot_be_judged() -> None:
    for text in (
        "select count(distinct age) from people",
        "select max(age) from people",
        "select count(*) from people p join visits v on p.id = v.pid",
        "select count(*) from (select age from people limit 5) s",
        "select count(*) from (select distinct age from people) s",
        "select sex, count(*) from people group by sex having count(*) > 3",
        "select sum(age) over (partition by sex) from people",
    ):
        assert read(text)["asks"] is None, text


def test_a_query_made_from_itself_ends() -> None:
    text = "with recursive r as (select age from people union all select age + 1 from r where age < 9) select * from r"
    assert read(text)["is_query"]
    chain = ", ".join(f"c{n} as (select * from c{n - 1} a, c{n - 1} b)" for n in range(1, 40))
    assert read(f"with c0 as (select age from people), {chain} select age from c39 where age > 3")["filtered"]


def test_dialects() -> None:
    assert read("select `age` from `people` where `age` > 3", "mysql")["filtered"] == [AGE]
    assert read("select [age] from [people] where [age] > 3", "tsql")["filtered"] == [AGE]
    assert read("select age from people where day >= '2020-01-01'::date", "postgres")["selections"] == [
        [">=", ["day", ["people"]], [["date", "2020-01-01"]]]
    ]
