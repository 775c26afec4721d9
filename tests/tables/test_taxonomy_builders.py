# SPDX-License-Identifier: Apache-2.0
"""Built taxonomies cover their domain, nest, and can be written and read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonfit.errors import TaxonomyError
from anonfit.tables import taxonomy_builders as build
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_files import read_taxonomy, write_taxonomy
from anonfit.tables.taxonomy_leaves import leaf_positions

numbers = st.integers(-1000, 1000)
days = st.dates(date(1950, 1, 1), date(2050, 1, 1))


def children(taxonomy: Taxonomy, name: str = "*") -> list[str]:
    return [taxonomy.names[child] for child in taxonomy.children(taxonomy.find(name))]


def test_intervals_join_by_the_factor_until_one_is_left() -> None:
    ages = build.intervals(20, 90, step=5)
    assert ages.leaves[:3] == ("< 20", "[20, 25)", "[25, 30)")
    assert ages.leaves[-2:] == ("[85, 90)", "≥ 90")
    assert children(ages) == ["< 60", "≥ 60"]
    assert ages.path(ages.find("[40, 45)")) == ("[40, 45)", "[40, 50)", "[40, 60)", "< 60", "*")


def test_open_ends_join_their_neighbours_above_the_leaves() -> None:
    assert children(build.intervals(20, 90, step=5), "< 30") == ["< 20", "[20, 25)", "[25, 30)"]


def test_closed_intervals_hold_the_end_of_the_domain() -> None:
    percents = build.intervals(0, 100, step=25, open_ends=False)
    assert percents.leaves == ("[0, 25)", "[25, 50)", "[50, 75)", "[75, 100]")
    assert children(percents) == ["[0, 50)", "[50, 100]"]


def test_intervals_take_widths_of_levels() -> None:
    ages = build.intervals(0, 100, step=5, levels=[10, 50], open_ends=False)
    assert ages.path(ages.find("[45, 50)")) == ("[45, 50)", "[40, 50)", "[0, 50)", "*")


def test_last_interval_is_shorter_where_the_step_does_not_divide() -> None:
    assert build.intervals(0, 25, step=10).leaves == ("< 0", "[0, 10)", "[10, 20)", "[20, 25)", "≥ 25")


def test_decimal_steps_do_not_drift() -> None:
    assert build.intervals(0, 0.5, step=0.1).leaves[3:5] == ("[0.2, 0.3)", "[0.3, 0.4)")
    assert build.intervals(-0.0, Decimal("1e2"), step=50.0).leaves[1:3] == ("[0, 50)", "[50, 100)")


@settings(deadline=None)
@given(numbers, st.integers(1, 500), st.integers(1, 40), st.integers(2, 5), numbers, st.booleans())
def test_every_value_has_a_leaf_whose_ancestors_hold_it(
    low: int, span: int, step: int, factor: int, value: int, open_ends: bool
) -> None:
    taxonomy = build.intervals(low, low + span, step=step, factor=factor, open_ends=open_ends)
    position = leaf_positions(taxonomy, pl.Series([value]))[0]
    if not open_ends and not low <= value <= low + span:
        assert position == -1
        return
    for name in taxonomy.path(taxonomy.leaf_nodes[position])[:-1]:
        assert leaf_positions(Taxonomy.flat([name]), pl.Series([value]))[0] == 0


def test_cuts_make_one_level_or_several() -> None:
    assert build.from_cuts([18, 65]).leaves == ("< 18", "[18, 65)", "≥ 65")
    assert build.from_cuts([0, 18, 120], open_ends=False).leaves == ("[0, 18)", "[18, 120]")
    several = build.from_cuts([[0, 6, 18, 65, 120], [0, 18, 120]], open_ends=False)
    assert children(several) == ["[0, 18)", "[18, 120]"]
    assert children(several, "[18, 120]") == ["[18, 65)", "[65, 120]"]


def test_cuts_may_be_dates_or_times() -> None:
    assert build.from_cuts([date(2020, 3, 1)]).leaves == ("< 2020-03-01", "≥ 2020-03-01")
    times = build.from_cuts([datetime(2020, 3, 1, 12), datetime(2020, 3, 2)])
    assert times.leaves[1] == "[2020-03-01T12:00:00, 2020-03-02T00:00:00)"
    noon = pl.Series([datetime(2020, 3, 1, 12), datetime(2020, 3, 1, 11, 59)])
    assert leaf_positions(times, noon).tolist() == [1, 0]


def test_dates_nest_days_in_months_quarters_and_years() -> None:
    calendar = build.dates(date(2023, 1, 1), date(2024, 12, 31), open_ends=False)
    assert len(calendar.leaves) == 365 + 366
    assert calendar.path(calendar.find("2024-02-29")) == ("2024-02-29", "2024-02", "2024-Q1", "2024", "*")


def test_open_dates_join_the_first_and_last_period() -> None:
    calendar = build.dates(date(2022, 11, 20), date(2024, 1, 2), levels=["month", "year"])
    assert children(calendar) == ["< 2023-01-01", "2023", "≥ 2024-01-01"]
    assert children(calendar, "< 2023-01-01") == ["< 2022-11-01", "2022-11", "2022-12"]
    assert children(calendar, "≥ 2024-01-01") == ["2024-01", "≥ 2024-02-01"]


@settings(deadline=None)
@given(days, st.integers(0, 500), days, st.sampled_from(["day", "month", "quarter", "year"]), st.booleans())
def test_every_date_is_in_the_leaf_of_its_period(
    first: date, span: int, day: date, period: str, open_ends: bool
) -> None:
    last = first + timedelta(days=span)
    taxonomy = build.dates(first, last, levels=[period], open_ends=open_ends)
    position = leaf_positions(taxonomy, pl.Series([day]))[0]
    if first <= day <= last:
        assert taxonomy.leaves[position].startswith(f"{day.year}")
    if open_ends:
        assert position >= 0


def test_a_level_that_the_root_already_is_is_left_out() -> None:
    assert build.intervals(0, 40, step=10, levels=[20, 40], open_ends=False).height == 2
    assert build.dates(date(2024, 1, 1), date(2024, 12, 31), levels=["month", "year"]).height == 1
    assert build.from_cuts([[1, 2, 3], [1, 2, 3], [1]]).height == 2


def test_codes_are_masked_from_the_right() -> None:
    codes = build.masked(["75011", "75012", "69001", "75011", None])
    assert codes.path(codes.find("75011")) == ("75011", "7501*", "750**", "75***", "7****", "*")
    assert codes.leaves == ("69001", "75011", "75012")
    kept = build.masked(["75011", "69001"], levels=(2,), mask="x")
    assert children(kept) == ["69xxx", "75xxx"]


def test_shorter_code_stands_with_the_longer_ones_that_begin_with_it() -> None:
    diagnoses = build.masked(["E11", "E119", "E12"])
    assert children(diagnoses, "E11*") == ["E11", "E119"]
    assert children(diagnoses, "E1**") == ["E11*", "E12*"]


@settings(deadline=None)
@given(st.sets(st.text(alphabet="ab1", max_size=5), min_size=1))
def test_masked_codes_begin_with_what_their_ancestors_keep(values: set[str]) -> None:
    taxonomy = build.masked(values, root="all")
    assert set(taxonomy.leaves) == values
    for code in values:
        for name in taxonomy.path(taxonomy.find(code))[1:-1]:
            assert code.startswith(name.rstrip("*"))


def test_alphabetical_groups_are_of_nearly_equal_size() -> None:
    letters = build.alphabetical(list("gfedcba"), groups=(3, 2))
    assert children(letters) == ["a to b", "c to g"]
    assert children(letters, "c to g") == ["c to d", "e to g"]
    assert letters.leaves == tuple("abcdefg")


def test_alphabetical_order_ignores_case() -> None:
    assert build.alphabetical(["b", "A", "C", "a"], groups=2).leaves == ("A", "a", "b", "C")


def test_frequent_values_stand_alone_and_rarer_ones_in_groups() -> None:
    counts = {"flu": 50, "cold": 10, "gout": 6, "mumps": 5, "rabies": 4, "plague": 4, "pox": 3, "scurvy": 1}
    causes = build.by_frequency(counts, minimum=10)
    assert children(causes) == ["flu", "cold", "rarer values 1", "rarer values 2"]
    assert children(causes, "rarer values 1") == ["gout", "mumps"]
    assert children(causes, "rarer values 2") == ["plague", "rabies", "pox", "scurvy"]


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=3), st.integers(0, 30), min_size=1), st.integers(1, 40))
def test_every_child_of_the_root_reaches_the_minimum(counts: dict[str, int], minimum: int) -> None:
    if sum(counts.values()) < minimum:
        with pytest.raises(TaxonomyError, match="do not reach the minimum"):
            build.by_frequency(counts, minimum=minimum)
        return
    taxonomy = build.by_frequency(counts, minimum=minimum, root="any value")
    for child in taxonomy.children(0):
        run = taxonomy.leaves[taxonomy.first_leaf[child] : taxonomy.last_leaf[child] + 1]
        assert sum(counts[value] for value in run) >= minimum
    assert build.by_frequency(dict(reversed(counts.items())), minimum=minimum, root="any value") == taxonomy


def test_counts_of_numbers_make_names() -> None:
    assert build.by_frequency({1: 4, 2: 5}, minimum=3).leaves == ("2", "1")


def test_cuts_may_be_arrays() -> None:
    made = build.from_cuts(cast("Any", [np.array([1, 2, 3]), np.array([2])]))
    assert made == build.from_cuts([[1, 2, 3], [2]]) != build.from_cuts(cast("Any", np.array([1, 2, 3])))


def test_values_may_be_a_series() -> None:
    codes = pl.Series([75011, 75012, None, 75011])
    assert build.masked(codes).leaves == ("75011", "75012")
    assert leaf_positions(build.masked(codes), codes.drop_nulls()).tolist() == [0, 1, 0]
    assert build.alphabetical(pl.Series(["b", "a", "c"]), groups=2).leaves == ("a", "b", "c")


@pytest.mark.parametrize("suffix", [".csv", ".json", ".txt"])
def test_built_taxonomies_can_be_written_and_read(tmp_path: Path, suffix: str) -> None:
    for taxonomy in (
        build.intervals(0, 50, step=5),
        build.from_cuts([[1, 2, 4], [2]]),
        build.dates(date(2024, 1, 1), date(2024, 5, 5)),
        build.masked(["E11", "E119"]),
        build.alphabetical(["x", "y", "z"], groups=2),
        build.by_frequency({"a": 5, "b": 1, "c": 4}, minimum=5),
    ):
        write_taxonomy(taxonomy, tmp_path / f"a{suffix}")
        assert read_taxonomy(tmp_path / f"a{suffix}") == taxonomy


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: build.intervals(5, 5, step=1), "no intervals from 5 to 5"),
        (lambda: build.intervals(0, 5, step=0), "no intervals"),
        (lambda: build.intervals(0, 10**9, step=0.001), "more than 1,000,000 intervals; give a wider step"),
        (lambda: build.intervals(0, float("inf"), step=1), "'inf' is not a finite number"),
        (lambda: build.intervals(0, 50, step=5, factor=1), "factor 1"),
        (lambda: build.intervals(0, 50, step=5, levels=[10, 25]), "multiple"),
        (lambda: build.from_cuts([]), "neither one list"),
        (lambda: build.from_cuts(cast("Any", [1, [2]])), "neither one list"),
        (lambda: build.from_cuts([3, 1]), "do not ascend"),
        (lambda: build.from_cuts([[1, 2], [3]]), "'3' are not on the finer level"),
        (lambda: build.from_cuts(cast("Any", [1, date(2024, 1, 1)])), "several types"),
        (lambda: build.from_cuts([1], open_ends=False), "too few cuts"),
        (lambda: build.dates(date(2024, 2, 1), date(2024, 1, 1)), "earlier one first"),
        (lambda: build.dates(date(2024, 2, 1), date(9999, 1, 1)), "9999"),
        (lambda: build.dates(date(1, 1, 1), date(9998, 1, 1)), "more than 1,000,000 leaves, one a day"),
        (lambda: build.dates(date(2024, 1, 1), date(2024, 2, 1), levels=["years"]), "did you mean 'year'"),
        (lambda: build.dates(date(2024, 1, 1), date(2024, 2, 1), levels=["year", "day"]), "finer to coarser"),
        (lambda: build.from_cuts(cast("Any", ["2020-01-01"])), "the cuts are texts"),
        (lambda: build.dates(cast("Any", "2020-01-01"), date(2024, 1, 1)), "is not a date"),
        (lambda: build.dates(date(2024, 2, 1), date(2024, 3, 1), levels=[]), "no level is named"),
        (lambda: build.masked(["7*"]), r"the mask '\*' is in 1 code; choose"),
        (lambda: build.masked(["75011"], mask="##"), "the mask '##' has 2 characters; give one"),
        (lambda: build.masked(["75011"], mask=""), "the mask '' has 0 characters; give one"),
        (lambda: build.masked(["75011"], levels=[2, 3]), "do not descend"),
        (lambda: build.masked(["75011"], levels=[5]), "'5' characters cannot be kept of codes that have up to 5"),
        (lambda: build.masked([]), "no leaf"),
        (lambda: build.masked("75011"), "the values are one text, '75011'; give a list"),
        (lambda: build.alphabetical("abc", groups=1), "the values are one text"),
        (lambda: build.by_frequency(cast("Any", ["a", "b"]), minimum=1), "give a mapping such as Counter"),
        (lambda: build.alphabetical(["a", "b"], groups=2), "fewer groups"),
        (lambda: build.alphabetical(["a", "b", "c"], groups=0), "fewer groups"),
        (lambda: build.by_frequency({"a": -1, "b": 9}, minimum=2), "negative"),
        (lambda: build.by_frequency({"a": 1, "b": 2}, minimum=4), "all counts together, 3, do not reach"),
    ],
)
def test_demands_that_make_no_taxonomy_are_errors(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(TaxonomyError, match=words):
        call()
