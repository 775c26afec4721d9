# SPDX-License-Identifier: Apache-2.0
"""What a WHERE condition may say, how NOT is worked into it, and how everything else is refused."""

from __future__ import annotations

import sys
from datetime import datetime
from fractions import Fraction
from time import process_time
from typing import Any

import polars as pl
import pytest

from anonfit.errors import MissingPackage, SpecError
from anonfit.tables.schema import Column, ColumnType, Role
from anonfit.tables.taxonomy import Taxonomy
from anonfit.workload.parsing import parse_predicate
from anonfit.workload.predicates import And, Condition, Or, Predicate, Relation, kinds_of

QUASI = Role.QUASI_IDENTIFIER
REGIONS = Taxonomy.from_tree(
    {"name": "*", "children": [{"name": "Europe", "children": [{"name": "FR"}, {"name": "DE"}]}, {"name": "US"}]}
)
COLUMNS = [
    Column("age", QUASI),
    Column("weight", Role.INSENSITIVE),
    Column("admitted", QUASI),
    Column("state", QUASI),
    Column("native-country", QUASI, taxonomy=REGIONS),
    Column("ward", QUASI, domain=("north", "south")),
    Column("triage", QUASI, ColumnType.ORDINAL, order=("low", "mid", "high")),
    Column("smoker", Role.TARGET),
    Column("name", Role.IDENTIFIER),
    Column("person", Role.ENTITY),
    Column("stay", Role.INSENSITIVE),
    Column("current_date", Role.TARGET),
]
FRAME = pl.DataFrame(
    schema={
        "age": pl.Int64,
        "weight": pl.Float64,
        "admitted": pl.Date,
        "state": pl.String,
        "native-country": pl.String,
        "ward": pl.String,
        "triage": pl.String,
        "smoker": pl.Boolean,
        "person": pl.Int64,
        "stay": pl.Duration,
        "current_date": pl.Date,
    }
)
KINDS = kinds_of(COLUMNS, FRAME)


def parsed(text: str) -> Predicate:
    return parse_predicate(text, KINDS)


def fault(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        parsed(text)
    assert len(caught.value.faults) == 1
    return str(caught.value)


def condition(column: str, relation: Relation, *values: Any) -> Condition:
    found = tuple(Fraction(value) if isinstance(value, int | float) else value for value in values)
    return Condition(column, relation, found, kind=KINDS[column])


@pytest.mark.parametrize(
    ("text", "relation", "number"),
    [
        ("age = 5", Relation.IN, 5),
        ("age == 5", Relation.IN, 5),
        ("age <> -5", Relation.NOT_IN, -5),
        ("age != 5", Relation.NOT_IN, 5),
        ("age < 5", Relation.LESS, 5),
        ("age <= 5", Relation.AT_MOST, 5),
        ("age > 5", Relation.MORE, 5),
        ("age >= 5", Relation.AT_LEAST, 5),
        ("5 < age", Relation.MORE, 5),
        ("50 <= age", Relation.AT_LEAST, 50),
        ("5 > age", Relation.LESS, 5),
        ("5 >= age", Relation.AT_MOST, 5),
        ("-5 = age", Relation.IN, -5),
        ("5 <> age", Relation.NOT_IN, 5),
        ("not age < 5", Relation.AT_LEAST, 5),
        ("not 5 <= age", Relation.LESS, 5),
        ("not (not age = 5)", Relation.IN, 5),
        ("not age not in (5)", Relation.IN, 5),
        ("((age)) <= (-(5))", Relation.AT_MOST, -5),
        ('"age" >= +2.50', Relation.AT_LEAST, 2.5),
        ("age < 1e3 -- a thousand", Relation.LESS, 1000),
    ],
)
def test_comparisons(text: str, relation: Relation, number: float) -> None:
    assert parsed(text) == condition("age", relation, number)


def test_decimals_are_exact() -> None:
    assert parsed("weight >= 0.1") == Condition("weight", Relation.AT_LEAST, (Fraction(1, 10),), kind=KINDS["weight"])


def test_between_and_its_opposite() -> None:
    low, high = condition("age", Relation.AT_LEAST, 20), condition("age", Relation.AT_MOST, 30)
    assert parsed("age between 20 and 30") == And((low, high))
    outside = Or((condition("age", Relation.LESS, 20), condition("age", Relation.MORE, 30)))
    assert parsed("age not between 20 and 30") == outside
    assert parsed("not (age between 20 and 30)") == outside


def test_lists_and_missing_values() -> None:
    assert parsed("state in ('TX', 'O''Neill', 'TX')") == condition("state", Relation.IN, "TX", "O'Neill")
    assert parsed("state not in ('TX')") == condition("state", Relation.NOT_IN, "TX")
    assert parsed("state is null") == condition("state", Relation.MISSING)
    assert parsed("state is not null") == condition("state", Relation.NOT_MISSING)
    assert parsed("not state is not null") == condition("state", Relation.MISSING)


def test_not_is_worked_into_the_conditions() -> None:
    found = parsed("not (age > 5 and (state = 'TX' or not weight < 2))")
    assert found == Or(
        (
            condition("age", Relation.AT_MOST, 5),
            And((condition("state", Relation.NOT_IN, "TX"), condition("weight", Relation.LESS, 2))),
        )
    )


def test_and_binds_before_or_and_chains_are_flat() -> None:
    a, b, c = (condition("age", Relation.IN, number) for number in (1, 2, 3))
    assert parsed("age = 1 or age = 2 and age = 3") == Or((a, And((b, c))))
    assert parsed("(age = 1 or (age = 2)) or age = 3") == Or((a, b, c))
    assert parsed("not (age <> 1 and not age = 2) or age = 3") == Or((a, b, c))


def test_dates() -> None:
    day = datetime(2020, 1, 31)
    for text in ("admitted > '2020-01-31'", "admitted > DATE '2020-01-31'", "'2020-01-31' < admitted"):
        assert parsed(text) == condition("admitted", Relation.MORE, day)
    assert parsed("admitted = TIMESTAMP '2020-01-31 06:30:00'").values == (datetime(2020, 1, 31, 6, 30),)


def test_truths() -> None:
    assert parsed("smoker = TRUE") == parsed("smoker = 'true'") == condition("smoker", Relation.IN, "true")
    assert parsed("smoker <> false") == condition("smoker", Relation.NOT_IN, "false")


def test_a_node_of_a_taxonomy_is_all_its_leaves() -> None:
    assert parsed("\"native-country\" = 'Europe'") == condition("native-country", Relation.IN, "FR", "DE")
    assert parsed("\"native-country\" not in ('US', 'Europe')") == condition(
        "native-country", Relation.NOT_IN, "US", "FR", "DE"
    )


def test_words_of_sql_are_columns_if_they_are_quoted() -> None:
    assert parsed('"current_date" is null') == condition("current_date", Relation.MISSING)
    assert 'write the name of the column as "current_date"' in fault("current_date is null")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no condition"),
        ("age =", "near «=»"),
        ("age = 5 and", "near «and»"),
        ("age = 'x", "a quote is opened"),
        ("age = 5 order by age", "near «order by»"),
        ("select * from people", "near «select»"),
        ("age = 5; age = 6", "«age = 5; age = 6» is not understood"),
        ("age in (1, 2", "not a condition"),
        ("Age > 5", "there is no column 'Age'; did you mean 'age'?"),
        ("aeg > 5", "did you mean 'age'?"),
        ("blood > 5", "there is no column 'blood'; valid: age, weight,"),
        ("people.age > 5", "«people.age» names a table"),
        ("name = 'Ann'", "not released (its role is 'identifier')"),
        ("person = 5", "not released (its role is 'entity')"),
        ("stay > 5", "'stay' holds neither numbers"),
        ("native-country = 'FR'", 'write the name of the column as "native-country"'),
        ("lower(state) = 'tx'", "«LOWER(state)» is a function"),
        ("coalesce(age, 0) > 5", "«COALESCE(age, 0)» is a function"),
        ("age + 1 > 5", "«age + 1» is arithmetic"),
        ("age > 4 + 1", "«4 + 1» is arithmetic"),
        ("state like 'T%'", "«state LIKE 'T%'» compares with a pattern"),
        ("age in (select 5)", "«age IN (SELECT 5)» holds a subquery"),
        ("exists (select 1)", "holds a subquery"),
        ("age = (select 1)", "holds a subquery"),
        ("age = weight", "«age = weight» compares a column with a column"),
        ('state = "TX"', 'if "TX" is a text, put it in single quotes'),
        ("5 = 5", "«5 = 5» is not understood"),
        ("true", "«TRUE» is a value"),
        ("smoker", "«smoker» stands alone"),
        ("not smoker", "for example smoker = TRUE"),
        ("smoker is true", "«smoker IS TRUE» is not understood"),
        ("age = null", "write age IS NULL or age IS NOT NULL"),
        ("age in (1, null)", "write age IS NULL"),
        ("age in ()", "«age IN ()» is not understood"),
        ("5 in (age, weight)", "«5» is a value, where the name of a column is needed"),
        ("age between weight and 5", "«weight»"),
        ("age between symmetric 5 and 1", "is not understood"),
        ("age = '5'", "'5' is a text, and the column holds numbers; write 5 without quotes"),
        ("age > 'old'", "'old' is no number"),
        ("age in [1, 2]", "needs its values in parentheses, as in (1, 2)"),
        ("age = DATE '2020-01-31'", "is no number"),
        ("age < 1e999", "is no number"),
        ("age = 5 > 4", "is not understood"),
        ("age = :limit", "«:limit» is not understood"),
        ("case when age > 5 then true else false end", "is not understood"),
        ("admitted > 5", "5 is no date"),
        ("admitted > '31.01.2020'", "write one as '2020-01-31'"),
        ("state > 'TX'", "«state > 'TX'» compares by order, and the column 'state' is nominal and has no order"),
        ("state between 'A' and 'B'", "compares by order"),
        ("\"native-country\" < 'US'", "is nominal and has a taxonomy"),
        ("smoker < true", "compares by order"),
        ("smoker = 1", "neither TRUE nor FALSE"),
        ("state = true", "TRUE is a truth, and the column holds texts"),
        ("\"native-country\" = 'FRA'", "'FRA' is not in its taxonomy; did you mean 'FR'?"),
        ("ward = 'nord'", "'nord' is not in its domain; did you mean 'north'?"),
        ("triage < 'medium'", "'medium' is not in its order; valid: low, mid, high."),
    ],
)
def test_what_is_refused_is_quoted(text: str, expected: str) -> None:
    found = fault(text)
    assert expected in found
    assert f"in «{text}»" in found
    assert found.endswith((".", "?"))


def test_numbers_and_dates_outside_a_taxonomy_are_refused() -> None:
    column = Column("age", QUASI, taxonomy=Taxonomy.flat(["[0, 20)", "[20, 90)"]))
    kinds = kinds_of([column], pl.DataFrame({"age": [5]}))
    assert parse_predicate("age = 19", kinds) == Condition("age", Relation.IN, (Fraction(19),), kind=kinds["age"])
    with pytest.raises(SpecError, match="no leaf of its taxonomy holds 90"):
        parse_predicate("age = 90", kinds)


def test_a_number_outside_a_declared_domain_is_refused() -> None:
    kinds = kinds_of([Column("code", QUASI, ColumnType.NOMINAL, domain=(0, 1))], pl.DataFrame({"code": [0]}))
    assert parse_predicate("code = 0", kinds) == parse_predicate("code = '0'", kinds)
    with pytest.raises(SpecError, match="2 is not in its domain; valid: 0, 1"):
        parse_predicate("code = 2", kinds)


def test_long_chains_are_read_and_deep_nesting_is_refused() -> None:
    chain = parsed(" or ".join(f"age = {number}" for number in range(4000)))
    assert isinstance(chain, Or)
    assert len(chain.parts) == 4000
    assert "nested too deeply" in fault("(" * 3000 + "age = 5" + ")" * 3000)


def test_a_long_text_is_quoted_in_part() -> None:
    found = fault("age = 5 and " * 100 + "lower(state) = 'x'")
    assert "…»" in found
    assert len(found) < 400


def test_without_the_parser_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(MissingPackage, match=r"anonfit\[sql\]"):
        parsed("age > 5")


# --- names that are not one word --------------------------------------------------------------------------------

ODD = pl.DataFrame({"age": [1], "my col": ["a"], "1st": [1], "select": [1]})
ODD_KINDS = kinds_of([Column(name, QUASI) for name in ODD.columns], ODD)


@pytest.mark.parametrize("name", ['"my col"', "`my col`", "[my col]"])
def test_a_name_may_stand_in_any_quotes_for_names(name: str) -> None:
    found = parse_predicate(f"age > 3 and {name} in ('FR', '`x` [y]')", ODD_KINDS)
    assert isinstance(found, And)
    assert found.parts[1] == Condition("my col", Relation.IN, ("FR", "`x` [y]"), kind=ODD_KINDS["my col"])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("my col = 'FR'", "my col"),
        ("age > 3 and My  Col in ('FR')", "my col"),
        ("1st = 3", "1st"),
        ("select = 3", "select"),
    ],
)
def test_a_name_without_quotes_is_asked_to_be_put_in_them(text: str, name: str) -> None:
    with pytest.raises(SpecError, match=f'write the name of the column in double quotes, as "{name}"'):
        parse_predicate(text, ODD_KINDS)


def test_a_name_inside_of_a_text_is_not_asked_to_be_put_in_quotes() -> None:
    with pytest.raises(SpecError, match="a selection compares columns with values"):
        parse_predicate("age > 'my col' 3", ODD_KINDS)


def test_a_long_list_of_values_is_read_in_time_and_an_endless_one_refused() -> None:
    begin = process_time()
    found = parse_predicate(f"age in ({','.join(map(str, range(20_000)))})", KINDS)
    assert len(found.values) == 20_000  # type: ignore[union-attr]
    assert process_time() - begin < 5
    with pytest.raises(SpecError, match="characters; at most 1000000"):
        parse_predicate("age = 1 or " * 100_000 + "age = 2", KINDS)
