# SPDX-License-Identifier: Apache-2.0
"""Shapes: what is compared with is taken out and nothing else, and hostile texts are refused in time."""

from __future__ import annotations

import re
import time
from contextlib import suppress

import pytest

from anonfit.workload.logs.reading import dialect_quoting, parse_statements
from anonfit.workload.logs.shapes import DEEPEST, NotParsed, Shaper, StatementShape, slot_of


def shape(text: str, dialect: str | None = None) -> StatementShape:
    return Shaper(*dialect_quoting(dialect)).shape(text)


def values(found: StatementShape) -> list[list[str]]:
    return [list(slot) for slot in found.slots]


def test_values_beside_comparisons_are_taken_out() -> None:
    found = shape("SELECT a FROM t WHERE x >= -5 AND y BETWEEN 1 AND 2.5e3 AND z = 'it''s' AND d > DATE '2020-01-01'")
    assert values(found) == [["5"], ["1"], ["2.5e3"], ["it's"], ["2020-01-01"]]
    assert re.findall("8675309|⟨", found.text) == ["8675309"] * 3 + ["⟨"] * 2  # numbers stay numbers, texts texts


def test_other_values_belong_to_the_shape() -> None:
    found = shape("SELECT round(a, 2), to_char(d, 'YYYY') FROM t GROUP BY 1 ORDER BY 2")
    assert found.slots == ()
    assert "'YYYY'" in found.text


def test_statements_that_differ_in_what_belongs_to_the_shape_have_different_shapes() -> None:
    shapes = Shaper(*dialect_quoting(None))
    texts = ["select a from t where b = 1 group by 1", "select a from t where b = 1 group by 2"]
    first, second = (shapes.shape(text) for text in texts)
    assert first.slots == second.slots
    assert (first.text[:-1], first.text[-1], second.text[-1]) == (second.text[:-1], "1", "2")


def test_a_list_of_any_length_is_one_shape() -> None:
    short, long = (
        shape("select 1 from t where a in ('x') and b = 2"),
        shape(f"select 1 from t where a in ({', '.join(repr(str(n)) for n in range(5000))}) and b = 3"),
    )
    assert short.text == long.text
    assert values(long)[0] == [str(n) for n in range(5000)]


def test_names_and_comments_hold_no_values() -> None:
    found = shape('select "a = 5" from "t 1" -- b = 3\n where /* c = 4 */ "d=6" = 7')
    assert values(found) == [["7"]]
    assert '"a = 5"' in found.text
    assert "c = 4" not in found.text


def test_quotes_are_those_of_the_dialect() -> None:
    assert values(shape('select 1 from t where a = "x"', "mysql")) == [["x"]]
    assert values(shape('select 1 from t where a = "x"', "postgres")) == []
    assert values(shape(r"select 1 from t where a = 'it\'s'", "bigquery")) == [["it's"]]


def test_a_letter_before_a_quote_stays_with_it_and_n_says_nothing() -> None:
    found = shape("select 1 from t where a = N'x' and b in (n'y', N'z') and c = x'00' and d = 'w'", "tsql")
    assert values(found) == [["x"], ["y", "z"], ["w"]]
    assert "x'00'" in found.text
    assert values(shape("select 1 from t where a > date'2020-01-01'")) == [["2020-01-01"]]
    assert "E'a'" in shape("select E'a', f ('b')", "postgres").text.replace("e'", "E'")


def test_comments_and_names_are_those_of_the_dialect() -> None:
    assert shape("select a # = 5\n from t where b = 6", "mysql").text == shape("select a from t where b = 7").text
    assert "[a = 5]" in shape("select [a = 5] from t where [b c] = 6", "tsql").text
    assert values(shape("select 1 from #t where b = 6", "tsql")) == [["6"]]


def test_an_outline_has_no_values() -> None:
    found = shape("selec 'Marker7', 8 frm t wher a = 'Marker8' and b in (1, 2) or c ike 'Marker9' limit 3 -- Marker6")
    assert found.outline == "selec … , … frm t wher a = … and b in ( … ) or c ike … limit …"


def test_slots_stand_for_themselves_only() -> None:
    assert slot_of("86753090012") == 12
    assert slot_of("⟨3⟩") == 3
    assert [slot_of(text) for text in ("8675309", "867530900123", "⟨x⟩", "x", "", "12")] == [None] * 6


def test_a_shape_is_parsed_as_the_statement_is() -> None:
    texts = [
        "select a from t where b in (1, 2) and c > date '2020-01-01' and d < cast('2020-01-02' as date)",
        "select a from t where b > -5 and c like 'x%' limit 10 offset 5",
    ]
    for content in parse_statements([shape(text).text for text in texts], None):
        assert content.content is not None


@pytest.mark.parametrize("nest", ["(", "f(", "case when ", "not ", "- ", "[", "(select ", "array(", "interval "])
def test_nesting_is_bounded_before_anything_is_parsed(nest: str) -> None:
    with pytest.raises(NotParsed, match="nested"):
        shape("select " + nest * (DEEPEST + 1) + "1")
    with pytest.raises(NotParsed):
        shape("select " + nest * 8_000 + "1")


def test_words_are_bounded_and_long_chains_are_refused() -> None:
    with pytest.raises(NotParsed, match="words"):
        shape("select 1 from t where " + " or ".join(["a = 1"] * 5_000))
    with pytest.raises(NotParsed, match="never closed"):
        shape("select 1 from t where a = 'abc")


@pytest.mark.parametrize("piece", ["/*", "'", '"', "--", "a'", "''", "1e", "1.", "\\'", "$$/*", "0" * 50, "e+"])
def test_no_text_takes_long(piece: str) -> None:
    text = "select " + piece * (90_000 // len(piece))
    begin = time.perf_counter()
    for dialect in (None, "mysql"):
        with suppress(NotParsed):
            shape(text, dialect)
    assert time.perf_counter() - begin < 10
