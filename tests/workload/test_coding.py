# SPDX-License-Identifier: Apache-2.0
"""Which codes a condition selects, and the faces that a workload adds to a column."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonfit.tables.codebook import code_column
from anonfit.tables.schema import Column, ColumnType, Domain, NominalDomain, OrderedDomain, Role
from anonfit.tables.taxonomy import Taxonomy
from anonfit.workload.coding import codes_of, selection_boundaries, with_boundaries
from anonfit.workload.parsing import parse_predicate
from anonfit.workload.predicates import Predicate, kinds_of

FRUIT = Taxonomy.from_tree(
    {
        "name": "*",
        "children": [{"name": "pome", "children": [{"name": "apple"}, {"name": "pear"}]}, {"name": "plum"}],
    }
)


def coded(values: list[Any], *, k: int = 1, dtype: Any = None, **declared: Any) -> tuple[Domain, Any]:
    """The domain of a column x, and how its predicates are read."""
    series = pl.Series("x", values, dtype=dtype)
    column = Column("x", Role.QUASI_IDENTIFIER, **declared)
    found = code_column(column, series, persons=lambda groups, count: np.bincount(groups, minlength=count), k=k)
    kinds = kinds_of([column], series.to_frame())

    def read(where: str) -> Predicate:
        return parse_predicate(where, kinds)

    return found.domain, read


def codes(where: str, values: list[Any], **declared: Any) -> list[int]:
    domain, read = coded(values, **declared)
    return np.flatnonzero(codes_of(read(where), domain)).tolist()


def places(values: list[Any], *wheres: str, **declared: Any) -> list[Any]:
    domain, read = coded(values, **declared)
    assert isinstance(domain, OrderedDomain)
    found = selection_boundaries([read(where) for where in wheres], domain)
    assert found.dtype == domain.values.dtype
    return found.tolist()


def test_ordered_codes_are_ranks_after_the_missing_one() -> None:
    values = [10, 20, 30, None]
    assert codes("x >= 20", values) == [2, 3]
    assert codes("x < 20", values) == [1]
    assert codes("x <= 25", values) == [1, 2]
    assert codes("x > 25", values) == [3]
    assert codes("x <> 20", values) == [1, 3]
    assert codes("x is null", values) == [0]
    assert codes("x is not null", values) == [1, 2, 3]
    assert codes("x between 15 and 30 or x is null", values) == [0, 2, 3]
    assert codes("x is null", [10, 20]) == []
    assert codes("x = 15", values) == []


def test_decimals_and_dates_are_compared_on_their_axis() -> None:
    money = [1.25, 1.26, 3.0]
    assert codes("x <= 1.255", money, dtype=pl.Decimal(9, 2)) == [0]
    assert codes("x > 1.25", money, dtype=pl.Decimal(9, 2)) == [1, 2]
    days = [date(2020, 1, 1), date(2020, 1, 3)]
    assert codes("x > '2020-01-01'", days) == [1]
    assert codes("x > TIMESTAMP '2020-01-01 12:00:00'", days) == [1]
    assert codes("x <= TIMESTAMP '2020-01-01 12:00:00'", days) == [0]


def test_words_are_compared_by_their_order() -> None:
    order = {"type": ColumnType.ORDINAL, "order": ("low", "mid", "high")}
    values = ["high", "low", None]
    assert codes("x < 'high'", values, **order) == [1, 2]
    assert codes("x >= 'mid'", values, **order) == [2, 3]
    assert codes("x <> 'mid'", values, **order) == [1, 3]
    assert codes("x between 'low' and 'mid'", values, **order) == [1, 2]


def test_a_node_of_a_taxonomy_selects_its_leaves() -> None:
    values = ["plum", "apple", None]
    assert codes("x = 'pome'", values, taxonomy=FRUIT) == [1, 2]
    assert codes("x <> 'pome'", values, taxonomy=FRUIT) == [3]
    assert codes("x in ('pear', 'plum')", values, taxonomy=FRUIT) == [2, 3]
    assert codes("x = '*'", values, taxonomy=FRUIT) == [1, 2, 3]


def test_rare_values_are_in_the_code_of_others() -> None:
    values = [*"aaabbbc", None]
    domain, _ = coded(values, k=3)
    assert isinstance(domain, NominalDomain)
    assert domain.taxonomy.leaves == ("a", "b", "other")
    assert codes("x = 'c'", values, k=3) == [3]
    assert codes("x = 'unheard of'", values, k=3) == [3]
    assert codes("x = 'other'", values, k=3) == [3]
    assert codes("x in ('a', 'c')", values, k=3) == [1, 3]
    # Some of the others are not c, so they stay.
    assert codes("x <> 'c'", values, k=3) == [1, 2, 3]
    assert codes("x not in ('a', 'c')", values, k=3) == [2, 3]


def test_an_unknown_value_of_a_flat_column_selects_nothing() -> None:
    assert codes("x = 'z'", [*"ab"]) == []
    assert codes("x in ('z', 'b')", [*"ab"]) == [1]
    assert codes("x <> 'z'", [*"ab"]) == [0, 1]


def test_truths() -> None:
    assert codes("x = true", [True, False, None]) == [2]  # the leaves are sorted: false, true
    leaves = Taxonomy.flat(["True", "FALSE"])
    assert codes("x = true", [True, False], taxonomy=leaves) == [0]
    assert codes("x <> 'FALSE'", [True, False], taxonomy=leaves) == [0]


def test_numbers_that_are_names_are_matched_by_value() -> None:
    nominal = {"type": ColumnType.NOMINAL}
    assert codes("x = 10", [2, 10, 30], **nominal) == [0]  # leaves are texts: 10, 2, 30
    assert codes("x <> 10", [2, 10, 30], **nominal) == [1, 2]
    assert codes("x = '10.0'", [2, 10, 30], **nominal) == [0]
    assert codes("x = 5.5", [5.50, 6.25], dtype=pl.Decimal(5, 2), **nominal) == [0]
    assert codes("x = 7", [2, 2, 10], k=2, **nominal) == [1]
    assert codes("x = '2020-01-03'", [date(2020, 1, 1), date(2020, 1, 3)], **nominal) == [1]


def test_a_number_selects_the_interval_that_holds_it() -> None:
    leaves = {"taxonomy": Taxonomy.flat(["< 10", "[10, 20)", "20"])}
    values = [5, 12, 20]
    assert codes("x = 12", values, **leaves) == [1]
    assert codes("x = '[10, 20)'", values, **leaves) == [1]
    assert codes("x <> 12", values, **leaves) == [0, 1, 2]  # the interval holds other numbers
    assert codes("x <> 20", values, **leaves) == [0, 1]
    assert codes("x <> '[10, 20)'", values, **leaves) == [0, 2]
    days = {"taxonomy": Taxonomy.flat(["2019", "2020-01-01"])}
    assert codes("x = DATE '2019-05-05'", [date(2020, 1, 1)], **days) == [0]
    assert codes("x <> DATE '2020-01-01'", [date(2020, 1, 1)], **days) == [0, 1]


# --- faces ------------------------------------------------------------------------------------------------------


def test_faces_of_whole_numbers() -> None:
    values = [0, 10, 20, 30]
    assert places(values, "x >= 15") == [15]
    assert places(values, "x < 15") == [15]
    assert places(values, "x <= 15") == [16]
    assert places(values, "x > 15") == [16]
    assert places(values, "x between 12 and 14") == [12, 15]
    assert places(values, "x = 17") == [17, 18]
    assert places(values, "x <> 17") == [17, 18]
    assert places(values, "x >= 14.5", "x <= 14.5") == [15]
    assert places(values, "x = 14.5") == []


def test_values_that_rows_have_are_no_new_faces() -> None:
    values = [0, 10, 20, 30]
    assert places(values, "x >= 10", "x < 20") == []
    assert places(values, "x <= 10") == [11]
    assert places(values, "x <= 9") == []


def test_faces_outside_the_values_are_of_no_use() -> None:
    values = [0, 10, 20, 30]
    assert places(values, "x >= 0", "x >= -5", "x < -5", "x > 30", "x >= 31", "x <= 30") == []
    assert places(values, "x > 29") == []  # 30 is there
    assert places(values, "x >= 29") == [29]
    assert places([None], "x >= 5", dtype=pl.Int64) == []


def test_faces_of_days() -> None:
    values = [date(2020, 1, 1), date(2020, 12, 31)]
    day = (date(2020, 6, 1) - date(1970, 1, 1)).days
    assert places(values, "x >= '2020-06-01'") == [day]
    assert places(values, "x <= '2020-06-01'") == [day + 1]
    assert places(values, "x <= TIMESTAMP '2020-06-01 12:00:00'") == [day + 1]
    assert places(values, "x < TIMESTAMP '2020-06-01 12:00:00'") == [day + 1]


def test_faces_of_decimals_are_in_units_of_the_last_digit() -> None:
    values = [0.0, 9.99]
    assert places(values, "x <= 1.25", dtype=pl.Decimal(9, 2)) == [126]
    assert places(values, "x >= 1.255", dtype=pl.Decimal(9, 2)) == [126]


def test_on_a_dense_axis_an_end_that_no_row_has_is_a_face_itself() -> None:
    values = [0.0, 1.0, 2.0]
    for where in ("x >= 1.5", "x < 1.5", "x > 1.5", "x <= 1.5", "x = 1.5"):
        assert places(values, where) == [1.5]
    times = [datetime(2020, 1, 1), datetime(2020, 1, 2)]
    noon = int((datetime(2020, 1, 1, 12) - datetime(1970, 1, 1)).total_seconds()) * 10**6
    assert places(times, "x <= '2020-01-01 12:00:00'") == [noon]


def test_on_a_dense_axis_an_end_that_rows_have_needs_no_face() -> None:
    values = [0.0, 1.0, 2.0]
    for where in ("x >= 1", "x < 1", "x > 1", "x <= 1", "x = 1"):
        assert places(values, where) == []


def test_faces_of_other_columns_are_not_taken() -> None:
    frame = pl.DataFrame({"x": [0, 9], "y": [0, 9]})
    given = [Column("x", Role.QUASI_IDENTIFIER), Column("y", Role.QUASI_IDENTIFIER)]
    predicate = parse_predicate("x >= 3 and (y >= 5 or x >= 6)", kinds_of(given, frame))
    domain, _ = coded([0, 9])
    assert isinstance(domain, OrderedDomain)
    assert selection_boundaries([predicate], domain).tolist() == [3, 6]


@pytest.mark.parametrize("missing", [False, True])
def test_faces_become_codes_without_rows(missing: bool) -> None:
    domain, _ = coded([10, 20, 30, *[None] * missing])
    assert isinstance(domain, OrderedDomain)
    wider, new = with_boundaries(domain, np.array([25, 15, 20]))
    assert wider.values.tolist() == [10, 15, 20, 25, 30]
    assert wider.values.dtype == domain.values.dtype
    assert new.tolist() == ([0, 1, 3, 5] if missing else [0, 2, 4])
    assert new.dtype == np.uint8
    assert domain.values.tolist() == [10, 20, 30]


def test_codes_widen_with_the_faces() -> None:
    domain, _ = coded(list(range(0, 510, 2)))
    assert isinstance(domain, OrderedDomain)
    wider, new = with_boundaries(domain, np.array([1, 3]))
    assert len(wider.values) == 257
    assert new.dtype == np.uint16
    assert wider.values[new].tolist() == domain.values.tolist()
