# SPDX-License-Identifier: Apache-2.0
"""Faults planted in written releases: the audit finds each of them, and accepts every release that has none.

A fault names the findings of which at least one must be missed, so that it is not found by luck: a changed label must
not be caught only because the rows are no longer sorted. `alone` faults show in the folder itself and are found without
the source too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from planted import KINDS, PEOPLE, SHAPES, Planted, Shape, allow_withheld, missed, people, planted

import anonfit as af
from anonfit.errors import AnonfitError, AuditFailed, DataError, RecodingError, ReleaseError
from anonfit.release import publish as publishing

LABELS = ("labels-parquet", "labels-csv")
BOUNDS = ("bounds-parquet", "bounds-csv")
EXACT = tuple(f"exact-{kind}" for kind in KINDS)
ARROW = ("labels-arrow", "bounds-arrow")

SOURCE = {"released rows", "withheld rows", "whole groups", "one group per row"}
LABEL = {"labels", "label ends", "disjoint groups"}
COLUMNS = {"undeclared columns", "missing columns", "column order"}


@dataclass(frozen=True)
class Fault:
    """What is planted, in which releases, which findings tell of it, and whether the folder alone shows it."""

    plant: Callable[[Planted], None]
    shapes: tuple[str, ...]
    by: set[str]
    alone: bool


ANY: set[str] = set()
"""Any finding, or an error in a sentence."""

FAULTS: list[Fault] = []


def fault(
    *shapes: str, by: set[str], alone: bool = False
) -> Callable[[Callable[[Planted], None]], Callable[[Planted], None]]:
    def register(plant: Callable[[Planted], None]) -> Callable[[Planted], None]:
        FAULTS.append(Fault(plant, shapes, by, alone))
        return plant

    return register


def begins(*texts: str) -> Callable[[Any], bool]:
    return lambda value: value is not None and value.startswith(texts)


def other_group(p: Planted, row: int) -> dict[str, Any]:
    """What another group says that differs from a row's."""
    return next(p.group(other) for other in range(len(p.data)) if p.group(other) != p.group(row))


def largest(p: Planted) -> int:
    """A row of the largest group: one row less there is not too few."""
    counts = p.data.group_by(p.keys).len().sort("len", *p.keys)
    return p.rows(**counts.drop("len").row(-1, named=True))[0]


def other_cut(p: Planted, column: str, text: str) -> Any:
    """A cut of the recoding that is not in a label."""
    return next(cut for cut in p.column(column)["cuts"] if str(cut) not in text)


# --- rows ---------------------------------------------------------------------------------------------------------


@fault(*LABELS, *BOUNDS, *ARROW, "counts", "entities", "declared", "extended", "observed", by=SOURCE)
def a_row_moved_to_another_group(p: Planted) -> None:
    row = largest(p)
    p.edit(row, **other_group(p, row))


@fault(
    *LABELS,
    *BOUNDS,
    *ARROW,
    "counts",
    "entities",
    "dropped",
    "extended",
    "observed",
    "original",
    "representative",
    by=SOURCE,
)
def a_row_dropped(p: Planted) -> None:
    p.remove([largest(p)])


@fault(*LABELS, "counts", "entities", "dropped", "extended", by={"whole groups"})
def a_row_dropped_and_called_withheld(p: Planted) -> None:
    p.remove([largest(p)])
    withheld = p.manifest["rows"]["withheld"]
    p.manifest["rows"]["withheld"] = withheld + 1 if isinstance(withheld, int) else withheld


@fault(*LABELS, *BOUNDS, *ARROW, "counts", "entities", "extended", "representative", by=SOURCE)
def a_row_doubled(p: Planted) -> None:
    p.copy(0)


@fault(*LABELS, *BOUNDS, *ARROW, "representative", by=SOURCE)
def a_row_added(p: Planted) -> None:
    p.copy(0, cost=4711.0)


@fault(*LABELS, *BOUNDS, *ARROW, by=SOURCE)
def a_row_replaced_by_a_copy_of_its_neighbour(p: Planted) -> None:
    row = largest(p)
    p.copy(row)
    p.remove([row + 1])


@fault(*LABELS, *BOUNDS, *ARROW, by=SOURCE)
def a_whole_group_lost(p: Planted) -> None:
    p.remove(p.smallest())


@fault(*LABELS, *BOUNDS, *ARROW, "original", by=SOURCE)
def two_rows_swapped_between_groups(p: Planted) -> None:
    one = 0
    two = next(row for row in range(len(p.data)) if p.group(row) != p.group(one))
    here, there = p.group(one), p.group(two)
    p.edit(one, **there)
    p.edit(two, **here)


@fault(*LABELS, *BOUNDS, *ARROW, by=SOURCE)
def one_raw_value_swapped_between_groups(p: Planted) -> None:
    one = 0
    two = next(row for row in range(len(p.data)) if p.group(row) != p.group(one))
    here, there = p.data["illness"][one], p.data["illness"][two]
    p.edit(one, illness=there)
    p.edit(two, illness=here)


@fault(*LABELS, *BOUNDS, *ARROW, by=SOURCE)
def one_raw_column_shuffled_within_the_groups(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("cost").reverse().over(p.keys))


@fault(*LABELS, "representative", by=SOURCE)
def a_raw_column_shuffled(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("illness").shuffle(seed=1))


# --- raw values ---------------------------------------------------------------------------------------------------


@fault(*LABELS, *BOUNDS, *ARROW, "dropped", "extended", "observed", "original", "representative", by=SOURCE)
def a_raw_value_changed(p: Planted) -> None:
    p.edit(3, illness="z9")


@fault(*LABELS, *BOUNDS, *ARROW, "representative", by=SOURCE)
def a_raw_number_changed_by_a_tiny_amount(p: Planted) -> None:
    p.edit(3, cost=math.nextafter(p.data["cost"][3], math.inf))


@fault(*LABELS, *BOUNDS, *ARROW, by=SOURCE)
def a_raw_value_emptied(p: Planted) -> None:
    p.edit(3, cost=None)


@fault(*LABELS, *BOUNDS, *ARROW, by=SOURCE)
def a_raw_truth_value_turned(p: Planted) -> None:
    p.edit(3, well=not p.data["well"][3])


@fault(*LABELS, *BOUNDS, *ARROW, by=SOURCE)
def a_raw_text_in_capitals(p: Planted) -> None:
    p.edit(3, illness=p.data["illness"][3].upper())


@fault(*LABELS, *BOUNDS, *ARROW, by=SOURCE)
def a_raw_text_with_a_space_at_its_end(p: Planted) -> None:
    p.edit(3, illness=p.data["illness"][3] + " ")


@fault("counts", by=SOURCE)
def a_count_raised(p: Planted) -> None:
    p.edit(3, persons=p.data["persons"][3] + 1)


@fault("counts", by={"k"}, alone=True)
def counts_lowered_below_k(p: Planted) -> None:
    p.edit(p.smallest(), persons=1)


# --- labels of numbers and dates ----------------------------------------------------------------------------------


@fault(*LABELS, by=LABEL, alone=True)
def a_label_widened(p: Planted) -> None:
    row = p.first("age", begins("[41.5"))
    p.regroup(row, age="≥ 41.5")


@fault(*LABELS, by={"disjoint groups"}, alone=True)
def a_label_widened_to_everything(p: Planted) -> None:
    p.regroup(p.first("age", begins("≥")), age="*")


@fault(*LABELS, by=SOURCE)
def a_label_narrowed_to_another_cut(p: Planted) -> None:
    p.regroup(p.first("age", lambda text: text == "≥ 41.5"), age="[41.5, 71.5)")


@fault(*LABELS, by={"label ends"}, alone=True)
def a_label_narrowed_to_no_cut(p: Planted) -> None:
    p.regroup(p.first("age", lambda text: text == "≥ 41.5"), age="≥ 42")


@fault(*LABELS, by={"label ends"}, alone=True)
def a_label_shifted(p: Planted) -> None:
    p.regroup(p.first("age", lambda text: text == "[41.5, 71.5)"), age="[42.5, 72.5)")


@fault(*LABELS, by=SOURCE)
def a_label_shifted_by_one_cut(p: Planted) -> None:
    p.regroup(p.first("age", lambda text: text == "[41.5, 71.5)"), age="[24.5, 41.5)")


@fault(*LABELS, by={"label ends"}, alone=True)
def an_open_end_closed(p: Planted) -> None:
    p.regroup(p.first("age", lambda text: text == "≥ 74.5"), age="[74.5, 95]")


@fault(*LABELS, by={"label ends"}, alone=True)
def an_upper_end_taken_in(p: Planted) -> None:
    p.regroup(p.first("age", lambda text: text == "[41.5, 71.5)"), age="[41.5, 71.5]")


@fault(*LABELS, by={"label ends"}, alone=True)
def an_end_moved_where_no_record_is(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age").str.replace("41.5", "41.25", literal=True))


@fault(*LABELS, by=LABEL | SOURCE)
def a_date_moved_by_a_day(p: Planted) -> None:
    row = p.first("day", begins("≥ 2024-01-27"))
    p.regroup(row, day="≥ 2024-01-28")


@fault(*LABELS, by=LABEL, alone=True)
def a_date_written_as_a_time(p: Planted) -> None:
    row = p.first("day", begins("≥ 2024-01-27"))
    p.regroup(row, day="≥ 2024-01-27T12:00:00")


@fault(*LABELS, by={"labels"}, alone=True)
def a_label_with_its_ends_turned_round(p: Planted) -> None:
    p.regroup(p.first("age", lambda text: text == "[41.5, 71.5)"), age="[71.5, 41.5)")


@fault(*LABELS, by={"labels"}, alone=True)
def a_label_of_another_grammar(p: Planted) -> None:
    p.regroup(p.first("age", begins("[")), age="41-71")


@fault(*LABELS, by={"labels"}, alone=True)
def a_label_without_its_space(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age").str.replace(", ", ",", literal=True))


@fault(*LABELS, by={"labels"}, alone=True)
def a_label_with_a_space_too_many(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age").str.replace("≥ ", "≥  ", literal=True))


@fault(*LABELS, by={"labels"}, alone=True)
def one_row_with_the_same_label_written_otherwise(p: Planted) -> None:
    row = p.first("age", lambda text: text == "≥ 41.5")
    p.edit(row, age="≥ 41.50")


@fault(*LABELS, by={"labels"}, alone=True)
def an_emptied_label(p: Planted) -> None:
    p.regroup(p.first("age", begins("[")), age=None)


@fault(*LABELS, by={"labels"}, alone=True)
def a_label_of_another_column(p: Planted) -> None:
    row = p.first("age", begins("["))
    p.regroup(row, age=p.data["day"][p.first("day", begins("["))])


@fault(*LABELS, by={"labels"}, alone=True)
def labels_of_two_columns_exchanged(p: Planted) -> None:
    p.data = p.data.rename({"job": "country", "country": "job"}).select(p.data.columns)


# --- missing ------------------------------------------------------------------------------------------------------


@fault(*LABELS, by=SOURCE)
def missing_taken_out_of_a_label(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age").str.replace("missing or ", "", literal=True))


@fault(*LABELS, by=LABEL | SOURCE, alone=True)
def missing_put_into_labels(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age").str.replace("^(≥|\\[)", "missing or $1"))


@fault(*LABELS, by=SOURCE)
def a_label_that_says_missing_only(p: Planted) -> None:
    p.regroup(p.first("age", begins("missing or")), age="missing")


@fault(*LABELS, by={"labels"}, alone=True)
def missing_in_another_language(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age").str.replace("missing or ", "NaN or ", literal=True))


# --- names --------------------------------------------------------------------------------------------------------


@fault(*LABELS, "entities", by=LABEL | SOURCE)
def a_node_replaced_by_its_sibling(p: Planted) -> None:
    p.regroup(p.first("country", lambda text: text == "Asia"), country="Africa")


@fault(*LABELS, "entities", by=SOURCE)
def a_node_replaced_by_its_child(p: Planted) -> None:
    p.regroup(p.first("country", lambda text: text == "Asia"), country="JP")


@fault(*LABELS, "entities", by={"disjoint groups"}, alone=True)
def a_node_replaced_by_its_parent(p: Planted) -> None:
    p.regroup(p.first("country", lambda text: text == "Asia"), country="*")


@fault(*LABELS, "entities", by={"labels"}, alone=True)
def a_name_out_of_the_taxonomy(p: Planted) -> None:
    p.regroup(p.first("country", lambda text: text == "Asia"), country="Oceania")


@fault(*LABELS, by={"labels"}, alone=True)
def a_name_in_small_letters(p: Planted) -> None:
    p.regroup(p.first("country", lambda text: text == "Asia"), country="asia")


@fault(*LABELS, by={"labels"}, alone=True)
def a_name_with_a_space_before_it(p: Planted) -> None:
    p.regroup(p.first("country", lambda text: text == "Asia"), country=" Asia")


@fault(*LABELS, by={"labels"}, alone=True)
def a_quote_left_out(p: Planted) -> None:
    p.regroup(p.first("country", lambda text: text == "Europe"), country="{FR, DE, Côte, d}")


@fault(*LABELS, by=SOURCE)
def a_name_taken_out_of_a_set(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("job").str.replace("nurse, smith", "nurse", literal=True))


@fault(*LABELS, by={"disjoint groups"}, alone=True)
def a_name_put_into_a_set(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("job").str.replace("{nurse, smith", "{cook, nurse, smith", literal=True))


@fault(*LABELS, by={"labels"}, alone=True)
def a_name_twice_in_a_set(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("job").str.replace("{nurse, smith", "{nurse, nurse, smith", literal=True))


@fault(*LABELS, by=SOURCE)
def the_rare_values_taken_out_of_a_set(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("job").str.replace("{smith, other}", "smith", literal=True))


@fault(*LABELS, by={"labels"}, alone=True)
def a_rare_value_named(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("job").str.replace("{smith, other}", "{smith, rare 50}", literal=True))


@fault(*LABELS, by=SOURCE)
def a_word_of_an_order_for_an_interval(p: Planted) -> None:
    p.regroup(p.first("grade", lambda text: text == "< high"), grade="low")


@fault(*LABELS, by=LABEL | SOURCE)
def another_word_of_an_order(p: Planted) -> None:
    p.regroup(p.first("grade", lambda text: text == "mid"), grade="high")


@fault(*LABELS, by={"labels"}, alone=True)
def a_word_out_of_the_order(p: Planted) -> None:
    p.regroup(p.first("grade", lambda text: text == "< high"), grade="< higher")


# --- groups -------------------------------------------------------------------------------------------------------


@fault(*LABELS, *BOUNDS, "dropped", "extended", "observed", "original", "representative", by={"k"}, alone=True)
def a_group_of_k_less_one_by_a_row_withheld(p: Planted) -> None:
    p.remove(p.smallest()[4:])
    p.manifest["rows"]["withheld"] = "fewer than 5"


@fault(*LABELS, *BOUNDS, "dropped", "extended", by={"k"}, alone=True)
def a_group_of_k_less_one_by_a_row_relabelled(p: Planted) -> None:
    rows = p.smallest()
    p.edit(rows[4:], **other_group(p, rows[0]))


@fault("entities", by={"k", *SOURCE})
def a_label_that_holds_less_than_k_persons(p: Planted) -> None:
    """The group keeps rows enough, but not those of the source in its label."""
    p.regroup(p.first("country", lambda text: text == "DE"), age="< 12.5")


@fault("entities", by=SOURCE)
def all_rows_of_a_person_moved(p: Planted) -> None:
    recoded = af.load(p.path).recoding.apply(p.shape.source)
    person = recoded.filter(pl.col("patient") == "p007").select(p.data.columns)
    rows = [p.rows(**row)[0] for row in person.with_columns(pl.col(p.keys).cast(pl.String)).to_dicts()]
    p.edit(rows, **other_group(p, rows[0]))


@fault(*LABELS, by={"k", "disjoint groups"}, alone=True)
def a_suppressed_row_added(p: Planted) -> None:
    p.copy(0, **dict.fromkeys(p.keys, "*"))


@fault(*LABELS, by={"k", "disjoint groups"}, alone=True)
def a_row_suppressed(p: Planted) -> None:
    p.edit(largest(p), **dict.fromkeys(p.keys, "*"))


@fault(*LABELS, by=SOURCE)
def the_labels_of_two_groups_exchanged(p: Planted) -> None:
    one = 0
    two = next(row for row in range(len(p.data)) if p.group(row) != p.group(one))
    here, there = p.group(one), p.group(two)
    rows, others = p.rows(**here), p.rows(**there)
    p.edit(rows, **there)
    p.edit(others, **here)


@fault(*LABELS, by={"disjoint groups"}, alone=True)
def two_groups_joined_under_a_label_that_holds_a_third(p: Planted) -> None:
    one, two = p.first("age", begins("≥ 74.5")), p.first("age", begins("missing or < 24.5"))
    for row in (one, two):
        p.regroup(row, **dict.fromkeys(p.keys, "*"))


@fault(*LABELS, by={"k"}, alone=True)
def a_group_cut_once_more(p: Planted) -> None:
    rows = p.smallest()
    grade = p.data["grade"][rows[0]]
    p.edit(rows[:2], grade="low" if grade != "low" else "mid")


@fault(*LABELS, by=LABEL, alone=True)
def a_quasi_identifier_released_raw(p: Planted) -> None:
    raw = p.shape.source
    p.data = p.data.with_columns(age=raw["age"].cast(pl.String).fill_null("missing")[: len(p.data)])


@fault(*LABELS, by=LABEL, alone=True)
def one_raw_value_in_place_of_a_label(p: Planted) -> None:
    p.edit(largest(p), age="42")


@fault(*LABELS, by={"label ends"}, alone=True)
def the_range_of_the_records_in_place_of_a_label(p: Planted) -> None:
    p.regroup(p.first("age", lambda text: text == "≥ 74.5"), age="[75, 95]")


# --- columns ------------------------------------------------------------------------------------------------------


@fault(*LABELS, *BOUNDS, *ARROW, "dropped", by={"undeclared columns"}, alone=True)
def an_undeclared_column_added(p: Planted) -> None:
    p.data = p.data.with_columns(extra=pl.lit(1))


@fault(*LABELS, *BOUNDS, *ARROW, by={"undeclared columns"}, alone=True)
def a_row_number_leaked(p: Planted) -> None:
    p.data = p.data.with_columns(index=pl.int_range(len(p.data)))


@fault(*LABELS, *BOUNDS, *ARROW, by={"undeclared columns"}, alone=True)
def an_identifier_leaked(p: Planted) -> None:
    p.data = p.data.with_columns(p.shape.source["name"])


@fault(*LABELS, by={"undeclared columns"}, alone=True)
def an_identifier_leaked_under_another_name(p: Planted) -> None:
    p.data = p.data.with_columns(p.shape.source["name"].alias("note"))


@fault(*LABELS, *BOUNDS, *ARROW, by={"undeclared columns"}, alone=True)
def an_exact_quasi_identifier_beside_its_label(p: Planted) -> None:
    p.data = p.data.with_columns(p.shape.source["age"].alias("age_exact"))


@fault("entities", by={"undeclared columns"}, alone=True)
def the_entity_column_leaked(p: Planted) -> None:
    p.data = p.data.with_columns(p.shape.source["patient"])


@fault(*LABELS, "counts", by={"stated columns"}, alone=True)
def an_undeclared_column_that_nobody_states(p: Planted) -> None:
    p.data = p.data.with_columns(extra=pl.lit(1))
    p.counts = False


@fault(*LABELS, *BOUNDS, *ARROW, by={"missing columns"}, alone=True)
def a_declared_column_missing(p: Planted) -> None:
    p.data = p.data.drop("cost")


@fault(*LABELS, *BOUNDS, *ARROW, by={"missing columns"}, alone=True)
def a_column_renamed(p: Planted) -> None:
    p.data = p.data.rename({"cost": "costs"})


@fault(*LABELS, *BOUNDS, *ARROW, by={"column order"}, alone=True)
def columns_in_another_order(p: Planted) -> None:
    p.data = p.data.select(p.data.columns[::-1])
    p.counts = False


# --- the order of the rows ----------------------------------------------------------------------------------------


@fault(*LABELS, by={"row order"}, alone=True)
def rows_in_the_order_of_the_source(p: Planted) -> None:
    recoded = af.load(p.path).recoding.apply(p.shape.source)
    p.data = recoded.select(pl.col(name).cast(dtype) for name, dtype in p.data.schema.items())
    p.order = False


@fault(*BOUNDS, by={"row order"}, alone=True)
def bounds_in_the_order_of_the_source(p: Planted) -> None:
    recoded = af.load(p.path).recoding.apply(p.shape.source, values="bounds")
    p.data = recoded.select(pl.col(name).cast(dtype) for name, dtype in p.data.schema.items())
    p.order = False


@fault(*LABELS, *BOUNDS, by={"row order"}, alone=True)
def rows_turned_round(p: Planted) -> None:
    p.data = p.data.reverse()
    p.order = False


@fault(*LABELS, *BOUNDS, by={"row order"}, alone=True)
def rows_of_one_group_out_of_order(p: Planted) -> None:
    first = p.rows(**p.group(0))
    order = [*reversed(first), *range(len(first), len(p.data))]
    p.data = p.data[order]
    p.order = False


# --- bounds -------------------------------------------------------------------------------------------------------


@fault(*BOUNDS, by=LABEL | SOURCE)
def a_lower_bound_changed(p: Planted) -> None:
    p.regroup(p.first("age_lower", lambda value: value == 41.5), age_lower=42.5)


@fault(*BOUNDS, by=LABEL | SOURCE)
def an_upper_bound_changed(p: Planted) -> None:
    p.regroup(p.first("age_upper", lambda value: value == 71.5), age_upper=74.5)


@fault(*BOUNDS, by={"label ends"}, alone=True)
def a_bound_moved_by_a_tiny_amount(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age_lower").replace(41.5, math.nextafter(41.5, 99)))


@fault(*BOUNDS, by={"disjoint groups"}, alone=True)
def a_bound_opened(p: Planted) -> None:
    p.regroup(p.first("age_upper", lambda value: value == 71.5), age_upper=None)


@fault(*BOUNDS, by={"label ends"}, alone=True)
def an_open_bound_closed(p: Planted) -> None:
    p.regroup(p.first("age_lower", lambda value: value == 74.5), age_upper=96.0)


@fault(*BOUNDS, by={"labels"}, alone=True)
def bounds_exchanged(p: Planted) -> None:
    low, high = p.data["age_upper"].alias("age_lower"), p.data["age_lower"].alias("age_upper")
    p.data = p.data.with_columns(low, high)


@fault(*BOUNDS, by=LABEL | SOURCE)
def a_bound_of_a_date_moved_by_a_day(p: Planted) -> None:
    row = p.first("day_lower", lambda value: value == date(2024, 1, 27))
    p.regroup(row, day_lower=date(2024, 1, 28))


@fault(*BOUNDS, by=SOURCE)
def missing_denied(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age_missing").replace("possible", "no"))


@fault(*BOUNDS, by={"disjoint groups"}, alone=True)
def missing_claimed_everywhere(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age_missing").replace("no", "possible"))


@fault(*BOUNDS, by={"labels"}, alone=True)
def missing_only_with_bounds(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age_missing").replace("no", "only"))


@fault(*BOUNDS, by={"labels"}, alone=True)
def an_unknown_word_about_missing(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age_missing").replace("no", "never"))


@fault(*BOUNDS, by={"missing columns"}, alone=True)
def nothing_said_about_missing(p: Planted) -> None:
    p.data = p.data.drop("age_missing")


@fault(*BOUNDS, by=LABEL | SOURCE)
def a_word_of_an_order_as_another_bound(p: Planted) -> None:
    p.regroup(p.first("grade_upper", lambda value: value == "high"), grade_upper="mid")


# --- a declared domain --------------------------------------------------------------------------------------------


@fault("declared", by={"label ends"}, alone=True)
def the_end_of_the_domain_left_out(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age").str.replace("95]", "95)", literal=True))


@fault("declared", by={"label ends"}, alone=True)
def the_end_of_the_domain_opened(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age").str.replace("\\[(.*), 95\\]", "≥ $1"))


@fault("declared", by={"label ends"}, alone=True)
def the_end_of_the_domain_moved(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("age").str.replace("95]", "94]", literal=True))


@fault("declared", by={"label ends"}, alone=True)
def another_domain_in_the_recoding(p: Planted) -> None:
    p.column("age")["domain"] = [0, 96]


# --- observed labels ----------------------------------------------------------------------------------------------


@fault("observed", by={"observed labels"})
def an_observed_range_too_narrow(p: Planted) -> None:
    row = p.first("age", begins("["))
    low, _, high = p.data["age"][row].strip("[]").partition(", ")
    p.regroup(row, age=f"[{int(low) + 1}, {high}]")


# --- labels that are no region of the recoding, though made of its cuts and of the same records ---------------------


def records(p: Planted) -> pl.DataFrame:
    """The raw quasi-identifiers of the source, each row with the labels of its group."""
    raw = p.shape.source
    labels = af.load(p.path).recoding.apply(raw).select(pl.col(p.keys).cast(pl.String))
    return labels.with_columns(raw[name].alias(f"raw {name}") for name in p.keys)


@fault("labels-parquet", by=ANY, alone=True)
def a_label_narrowed_to_what_its_records_have(p: Planted) -> None:
    """The last day of a group's records is told, up to the next cut: a record's value under regions = "domain"."""
    cuts = [date.fromisoformat(cut) for cut in p.column("day")["cuts"]]
    for keys, group in records(p).group_by(p.keys, maintain_order=True):
        day = dict(zip(p.keys, keys, strict=True))["day"]
        tighter = [
            cut for cut in cuts if day.startswith("<") and group["raw day"].max() < cut < date.fromisoformat(day[2:])
        ]
        if tighter:
            p.edit(p.rows(**dict(zip(p.keys, keys, strict=True))), day=f"< {tighter[0]}")
            return
    raise AssertionError("no label can be narrowed")


@fault("labels-parquet", by=ANY, alone=True)
def missing_taken_out_of_the_label_of_a_group_without_any(p: Planted) -> None:
    """That nobody of a group has a missing value is told."""
    for keys, group in records(p).group_by(p.keys, maintain_order=True):
        label = dict(zip(p.keys, keys, strict=True))
        if label["age"].startswith("missing or ") and group["raw age"].null_count() == 0:
            p.edit(p.rows(**label), age=label["age"].removeprefix("missing or "))
            return
    raise AssertionError("every group has missing values")


@fault("labels-parquet", by=ANY, alone=True)
def a_node_replaced_by_its_parent_where_no_other_record_is(p: Planted) -> None:
    p.regroup(p.first("country", lambda text: text == "JP"), country="Asia")


@fault("labels-parquet", "bounds-parquet", by=ANY, alone=True)
def a_split_of_the_recoding_moved(p: Planted) -> None:
    p.recoding["nodes"]["start"][2] -= 1


# --- raw values that are easily rounded -----------------------------------------------------------------------------


def one_of(column: str, other: pl.Expr) -> pl.Expr:
    """A column with something else in one row."""
    return pl.when(pl.int_range(pl.len()) == 5).then(other).otherwise(pl.col(column)).alias(column)


@fault(*EXACT, by=SOURCE)
def a_long_whole_number_changed_by_one(p: Planted) -> None:
    p.data = p.data.with_columns(one_of("whole", pl.col("whole") + 1))


def a_cent_more(p: Planted, kind: pl.Decimal) -> None:
    p.data = p.data.with_columns(one_of("amount", pl.col("amount") + Decimal("0.01")).cast(kind))


@fault("exact-parquet", "exact-arrow", by=SOURCE)
def an_amount_changed_by_a_cent(p: Planted) -> None:
    a_cent_more(p, pl.Decimal(22, 2))


@fault("exact-parquet", "exact-arrow", by=SOURCE)
def an_amount_changed_by_a_cent_in_another_precision(p: Planted) -> None:
    a_cent_more(p, pl.Decimal(38, 2))


@fault(*EXACT, by=SOURCE)
def a_moment_changed_by_a_microsecond(p: Planted) -> None:
    p.data = p.data.with_columns(one_of("moment", pl.col("moment") + timedelta(microseconds=1)))


@fault(*EXACT, by=SOURCE)
def a_code_with_a_zero_before_it(p: Planted) -> None:
    p.data = p.data.with_columns(one_of("code", "0" + pl.col("code")))


@fault("exact-csv", by=SOURCE)
def an_amount_of_a_text_file_changed_by_a_cent(p: Planted) -> None:
    a_cent_more(p, pl.Decimal(22, 2))


@fault(*EXACT, by=SOURCE)
def long_whole_numbers_rounded(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("whole").cast(pl.Float64))
    assert p.data["whole"].n_unique() < p.shape.source["whole"].n_unique()


@fault("exact-parquet", "exact-arrow", by=SOURCE)
def numbers_rounded_to_single_precision(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("share").cast(pl.Float32))


@fault("exact-parquet", "exact-arrow", by=SOURCE)
def a_code_written_as_a_number(p: Planted) -> None:
    p.data = p.data.with_columns(one_of("code", pl.col("code") + ".0"))


# --- the recoding -------------------------------------------------------------------------------------------------


@fault(*LABELS, *BOUNDS, by={"label ends"}, alone=True)
def a_cut_of_the_recoding_changed(p: Planted) -> None:
    cuts = p.column("age")["cuts"]
    cuts[cuts.index(41.5)] = 41.25


@fault(*LABELS, *BOUNDS, by={"label ends"}, alone=True)
def a_cut_of_the_recoding_taken_away(p: Planted) -> None:
    p.column("age")["cuts"].remove(41.5)


@fault(*LABELS, by={"labels"}, alone=True)
def a_node_of_the_recoding_renamed(p: Planted) -> None:
    p.column("country")["taxonomy"]["children"][1]["name"] = "Orient"


@fault(*LABELS, by={"labels", "disjoint groups", *SOURCE})
def a_leaf_of_the_recoding_moved_to_another_node(p: Planted) -> None:
    europe, asia = p.column("country")["taxonomy"]["children"][:2]
    asia["children"].append(europe["children"].pop())


@fault(*LABELS, by=SOURCE)
def the_rare_values_of_the_recoding_renamed(p: Planted) -> None:
    p.column("job")["other"] = "nurse"


@fault(*LABELS, by=LABEL | SOURCE)
def the_order_of_the_recoding_changed(p: Planted) -> None:
    p.column("grade")["order"] = ["high", "low", "mid"]


@fault(*LABELS, by={"labels"}, alone=True)
def a_type_of_the_recoding_changed(p: Planted) -> None:
    p.column("age")["type"] = "date"
    p.column("age")["cuts"] = []


# --- the manifest -------------------------------------------------------------------------------------------------


@fault(*SHAPES, by={"k"}, alone=True)
def a_k_that_the_file_does_not_meet(p: Planted) -> None:
    p.spec["privacy"]["k"] = 200


@fault(*LABELS, *BOUNDS, by={"k"}, alone=True)
def a_k_of_one_more(p: Planted) -> None:
    p.spec["privacy"]["k"] += 1


@fault(*LABELS, by={"stated rows"}, alone=True)
def a_number_of_rows_too_large(p: Planted) -> None:
    p.manifest["rows"]["released"] += 1
    p.counts = False


@fault("dropped", "extended", by={"withheld rows", "dropped rows"})
def rows_withheld_or_dropped_and_not_counted(p: Planted) -> None:
    p.manifest["rows"] |= {"withheld": 0, "dropped": 0}


@fault(*LABELS, "dropped", "extended", by={"withheld rows"})
def more_rows_withheld_than_there_are(p: Planted) -> None:
    p.manifest["rows"]["withheld"] = 399


@fault("extended", by={"k"}, alone=True)
def a_withheld_row_released(p: Planted) -> None:
    recoded = af.load(p.path).recoding.apply(p.shape.source, unseen="suppress")
    known = p.data.select(p.keys).unique()
    withheld = recoded.with_columns(pl.col(p.keys).cast(pl.String)).join(known, on=p.keys, how="anti")
    p.data = pl.concat([p.data, withheld.select(pl.col(name).cast(dtype) for name, dtype in p.data.schema.items())[:1]])
    p.manifest["rows"]["withheld"] -= 1


@fault(*LABELS, by={"undeclared columns"}, alone=True)
def a_released_column_called_an_identifier(p: Planted) -> None:
    p.spec["columns"]["illness"]["role"] = "identifier"


@fault(*LABELS, by={"missing columns"}, alone=True)
def an_identifier_called_a_target(p: Planted) -> None:
    p.spec["columns"]["name"]["role"] = "target"


@fault("declared", by=ANY, alone=True)
def a_quasi_identifier_called_insensitive(p: Planted) -> None:
    p.spec["columns"]["age"]["role"] = "insensitive"


@fault("declared", by=ANY, alone=True)
def a_quasi_identifier_called_insensitive_and_released_raw(p: Planted) -> None:
    p.spec["columns"]["age"]["role"] = "insensitive"
    p.data = p.shape.source.select(p.data.columns)


@fault("labels-parquet", by=ANY, alone=True)
def the_original_order_without_consent(p: Planted) -> None:
    p.spec["output"]["order"] = "original"
    p.data = p.data.reverse()
    p.order = False


@fault("labels-parquet", by=ANY, alone=True)
def observed_ranges_without_consent(p: Planted) -> None:
    p.spec["output"]["regions"] = "observed"
    p.regroup(p.first("age", lambda text: text == "≥ 74.5"), age="[75, 95]")


@fault("labels-parquet", by={"undeclared columns"}, alone=True)
def an_undeclared_column_under_a_default_role(p: Planted) -> None:
    p.spec["data"]["default_role"] = "insensitive"
    p.data = p.data.with_columns(index=pl.int_range(len(p.data)))


# --- the files ----------------------------------------------------------------------------------------------------


@fault(*LABELS, *BOUNDS, by={"files"}, alone=True)
def data_changed_under_the_old_hash(p: Planted) -> None:
    p.edit(3, illness="z9")
    p.hashes = False


@fault(*LABELS, by={"files"}, alone=True)
def a_hash_changed(p: Planted) -> None:
    p.hash()
    p.manifest["files"]["report.html"] = hashlib.sha256(b"another page").hexdigest()
    p.hashes = False


@fault("labels-parquet", by={"files"}, alone=True)
def a_report_edited(p: Planted) -> None:
    report = json.loads((p.path / "report.json").read_text(encoding="utf-8"))
    p.hash()
    p.write_json("report.json", report | {"asked": {"k": 500}})
    p.hashes = False


@fault("labels-parquet", by={"files"}, alone=True)
def a_file_removed(p: Planted) -> None:
    (p.path / "report.html").unlink()
    p.hashes = False


@fault("labels-parquet", by={"files"}, alone=True)
def the_data_not_among_the_hashes(p: Planted) -> None:
    del p.manifest["files"]["data.parquet"]


@fault("labels-parquet", by={"files"}, alone=True)
def no_files_in_the_manifest(p: Planted) -> None:
    p.manifest["files"] = {}


@fault("labels-parquet", by={"other files"}, alone=True)
def another_file_in_the_folder(p: Planted) -> None:
    (p.path / "raw.csv").write_text("name,age\n")


@fault(*LABELS, by=SOURCE)
def the_data_of_another_release(p: Planted) -> None:
    recoded = af.load(p.path).recoding.apply(people(3), unseen="suppress")
    p.data = recoded.select(pl.col(name).cast(dtype) for name, dtype in p.data.schema.items())


@fault(*LABELS, *BOUNDS, by=SOURCE)
def no_rows_at_all(p: Planted) -> None:
    p.data = p.data.clear()


# --- running them -------------------------------------------------------------------------------------------------


class Releases:
    """The shapes, each written once, when it is first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __getitem__(self, name: str) -> Path:
        if not (self.root / name).exists():
            SHAPES[name].release().save(self.root / name, format=SHAPES[name].kind)
            if SHAPES[name].extend:
                allow_withheld(self.root / name)
        return self.root / name


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    return Releases(tmp_path_factory.mktemp("releases"))


CASES = [pytest.param(one, shape, id=f"{one.plant.__name__}-{shape}") for one in FAULTS for shape in one.shapes]


@pytest.mark.sampled(23)
@pytest.mark.parametrize(("one", "shape"), CASES)
def test_a_planted_fault_is_found(releases: Releases, tmp_path: Path, one: Fault, shape: str) -> None:
    p = planted(releases[shape], tmp_path / "release", SHAPES[shape])
    one.plant(p)
    folder = p.write()
    for source in [p.shape.source, *([None] if one.alone else [])]:
        with contextlib.suppress(*([] if one.by else [AnonfitError])):
            found = af.audit_release(folder, source=source)
            assert not found.passed
            assert missed(found) & one.by or not one.by


def test_there_are_as_many_kinds_of_faults_as_asked() -> None:
    assert len({one.plant.__name__ for one in FAULTS}) >= 35


@pytest.mark.sampled(7)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_release_without_a_fault_is_accepted(releases: Releases, tmp_path: Path, shape: str) -> None:
    """As it was written, and as these tests write it back."""
    p = planted(releases[shape], tmp_path / "release", SHAPES[shape])
    p.order = shape != "original"
    for folder in (releases[shape], p.write()):
        assert missed(af.audit_release(folder, source=p.shape.source)) == set()
        assert missed(af.audit_release(folder)) == set()


# --- folders that are none ----------------------------------------------------------------------------------------


def without(part: str) -> Callable[[Planted], None]:
    return lambda p: p.write_json("manifest.json", {key: value for key, value in p.manifest.items() if key != part})


def manifest(**parts: Any) -> Callable[[Planted], None]:
    return lambda p: p.write_json("manifest.json", p.manifest | parts)


def spec(**parts: Any) -> Callable[[Planted], None]:
    return lambda p: p.write_json("manifest.json", p.manifest | {"spec": p.spec | parts})


def recoding(**parts: Any) -> Callable[[Planted], None]:
    return lambda p: p.write_json("recoding.json", p.recoding | parts)


def column(name: str, **parts: Any) -> Callable[[Planted], None]:
    def change(p: Planted) -> None:
        p.column(name).update(parts)
        p.write_json("recoding.json", p.recoding)

    return change


def written(name: str, content: bytes | None) -> Callable[[Planted], None]:
    def change(p: Planted) -> None:
        if content is None:
            (p.path / name).unlink()
        else:
            (p.path / name).write_bytes(content)

    return change


def cut_short(p: Planted) -> None:
    content = p.file.read_bytes()
    p.file.write_bytes(content[: len(content) // 2])


def without_column(name: str) -> Callable[[Planted], None]:
    def change(p: Planted) -> None:
        p.data = p.data.drop(name)
        p.write()

    return change


FOLDERS = {
    "no manifest": (written("manifest.json", None), ReleaseError),
    "manifest that is no JSON": (written("manifest.json", b'{"format": '), ReleaseError),
    "manifest that is no object": (written("manifest.json", b"[]"), ReleaseError),
    "manifest without files": (without("files"), ReleaseError),
    "manifest without spec": (without("spec"), ReleaseError),
    "manifest without data": (without("data"), ReleaseError),
    "manifest without rows": (without("rows"), ReleaseError),
    "another format": (manifest(format="a release of another tool"), ReleaseError),
    "another version": (manifest(version=2), ReleaseError),
    "withheld rows that are no number": (manifest(rows={"withheld": "some"}), ReleaseError),
    "data outside the folder": (manifest(data={"file": "../data.parquet"}), ReleaseError),
    "data file of another name": (manifest(data={"file": "other.parquet"}), ReleaseError),
    "no data file": (written("data.parquet", None), ReleaseError),
    "empty data file": (written("data.parquet", b""), DataError),
    "data file of another kind": (written("data.parquet", b"age,sex\n1,f\n"), DataError),
    "data file cut short": (cut_short, DataError),
    "data without a quasi-identifier": (without_column("age"), DataError),
    "no recoding": (written("recoding.json", None), ReleaseError),
    "recoding that is no JSON": (written("recoding.json", b"{"), ReleaseError),
    "recoding of another version": (recoding(version=2), RecodingError),
    "recoding that lacks a column": (recoding(columns=[]), RecodingError),
    "recoding of an unknown type": (column("age", type="number"), RecodingError),
    "recoding with a cut that is no number": (column("age", cuts=["old"]), RecodingError),
    "recoding without an order": (column("grade", order=[]), RecodingError),
    "recoding with a node of two places": (
        column("country", taxonomy={"name": "*", "children": [{"name": "FR"}, {"name": "FR"}]}),
        RecodingError,
    ),
}
FOLDERS |= {
    "recoding of another format": (recoding(format="another"), RecodingError),
    "recoding without its tree": (recoding(nodes={}), RecodingError),
    "spec without k": (spec(privacy={}), ReleaseError),
    "spec with unknown regions": (
        lambda p: spec(output=p.spec["output"] | {"regions": "any"})(p),
        ReleaseError,
    ),
    "spec with columns that are a list": (spec(columns=[]), ReleaseError),
    "spec with a k that is a text": (spec(privacy={"k": "5"}), ReleaseError),
    "spec with missing texts that are none": (spec(data={"missing": 7}), ReleaseError),
    "recoding with columns that are none": (recoding(columns=["age"]), RecodingError),
    "recoding with cuts that are one": (column("age", cuts=41.5), RecodingError),
}


@pytest.mark.parametrize(
    ("change", "error"),
    [pytest.param(*case, id=name) for name, case in FOLDERS.items()],
)
def test_a_folder_that_is_no_release_is_refused(
    releases: Releases, tmp_path: Path, change: Callable[[Planted], None], error: type[AnonfitError]
) -> None:
    p = planted(releases["labels-parquet"], tmp_path / "release", SHAPES["labels-parquet"])
    change(p)
    with pytest.raises(error):
        af.audit_release(p.path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_data_file_cut_short_is_never_accepted(releases: Releases, tmp_path: Path, kind: str) -> None:
    p = planted(releases[f"labels-{kind}"], tmp_path / "release", SHAPES[f"labels-{kind}"])
    content = p.file.read_bytes()
    for length in (0, 1, len(content) // 3, len(content) - 3):
        p.file.write_bytes(content[:length])
        p.hash()
        p.write_json("manifest.json", p.manifest)
        with contextlib.suppress(DataError):
            assert not af.audit_release(p.path, source=p.shape.source).passed


@pytest.mark.parametrize("count", [0, -1, 1.5, None])
def test_a_count_that_counts_nothing_is_refused(releases: Releases, tmp_path: Path, count: float | None) -> None:
    p = planted(releases["counts"], tmp_path / "release", SHAPES["counts"])
    p.data = p.data.cast({"persons": pl.Float64})
    p.edit(0, persons=count)
    with pytest.raises(DataError, match="persons"):
        af.audit_release(p.write())


# --- a broken writer publishes nothing ----------------------------------------------------------------------------

Spoil = Callable[[pl.DataFrame], pl.DataFrame]


def changed(table: pl.DataFrame, row: int, **values: Any) -> pl.DataFrame:
    texts = table.with_columns(pl.col(pl.Enum).cast(pl.String))
    here = pl.int_range(pl.len()) == row % len(table)
    return texts.with_columns(
        pl.when(here).then(pl.lit(value)).otherwise(pl.col(name)).alias(name) for name, value in values.items()
    )


def same(table: pl.DataFrame) -> pl.DataFrame:
    return table


def lose_the_last_row(table: pl.DataFrame) -> pl.DataFrame:
    return table[:-1]


def double_the_last_row(table: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([table, table[-1:]])


def move_a_row(table: pl.DataFrame) -> pl.DataFrame:
    return changed(table, -1, **table.select("country").cast(pl.String).row(0, named=True), age="≥ 41.5")


def change_a_value(table: pl.DataFrame) -> pl.DataFrame:
    return changed(table, 9, illness="z9")


def round_the_numbers(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("cost").round(1))


def shift_a_column(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("illness").shift(1).fill_null("a1"))


def leak_row_numbers(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_row_index("index")


def lose_a_column(table: pl.DataFrame) -> pl.DataFrame:
    return table.drop("cost")


def turn_the_columns_round(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(table.columns[::-1])


def turn_the_rows_round(table: pl.DataFrame) -> pl.DataFrame:
    return table.reverse()


def write_labels_in_small_letters(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("country").cast(pl.String).str.to_lowercase())


def write_labels_up_to_a_length(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("day").cast(pl.String).str.head(12))


def write_another_label(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("age").cast(pl.String).replace("≥ 74.5", "≥ 71.5"))


def forget_missing(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("age").cast(pl.String).str.replace("missing or ", "", literal=True))


def write_no_rows(table: pl.DataFrame) -> pl.DataFrame:
    return table.clear()


SPOILS = [
    lose_the_last_row,
    double_the_last_row,
    move_a_row,
    change_a_value,
    round_the_numbers,
    shift_a_column,
    leak_row_numbers,
    lose_a_column,
    turn_the_columns_round,
    turn_the_rows_round,
    write_labels_in_small_letters,
    write_labels_up_to_a_length,
    write_another_label,
    forget_missing,
    write_no_rows,
]


@pytest.fixture(scope="module")
def made() -> af.Release:
    return af.anonymize(people(), **PEOPLE)


def spoil(monkeypatch: pytest.MonkeyPatch, change: Spoil) -> None:
    write = publishing.write_table
    monkeypatch.setattr(publishing, "write_table", lambda table, *rest: write(change(table), *rest))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", SPOILS, ids=lambda change: change.__name__)
def test_a_broken_writer_publishes_nothing(
    made: af.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Spoil, kind: str
) -> None:
    spoil(monkeypatch, change)
    with pytest.raises(AuditFailed):
        made.save(tmp_path / "release", format=kind)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change", [lose_the_last_row, change_a_value, shift_a_column], ids=lambda change: change.__name__
)
@pytest.mark.parametrize(
    "values",
    [
        "bounds",
        "representative",
    ],
)
def test_a_broken_writer_of_other_values_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Spoil, values: str
) -> None:
    made = af.anonymize(people(), **PEOPLE, values=values)
    sizes = made.data.group_by([name for name in made.data.columns if name not in ("cost", "illness", "well")]).len()
    assert sizes["len"].max() > PEOPLE["k"]
    spoil(monkeypatch, change)
    with pytest.raises(AuditFailed):
        made.save(tmp_path / "release")
    assert list(tmp_path.iterdir()) == []


def test_a_broken_writer_leaves_an_earlier_release_as_it_is(
    made: af.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.save(tmp_path / "release")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    spoil(monkeypatch, lose_the_last_row)
    with pytest.raises(AuditFailed):
        made.save(tmp_path / "release", replace=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def write_nothing(table: pl.DataFrame, path: Path, kind: str, *_rest: Any) -> None:
    path.write_bytes(b"")


def write_half(table: pl.DataFrame, path: Path, kind: str, *_rest: Any) -> None:
    table.write_parquet(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def write_without_a_quasi_identifier(table: pl.DataFrame, path: Path, kind: str, *_rest: Any) -> None:
    table.drop("age").write_parquet(path)


WRITERS = [write_nothing, write_half, write_without_a_quasi_identifier]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_file_that_cannot_be_audited_is_not_published(
    made: af.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[..., None]
) -> None:
    monkeypatch.setattr(publishing, "write_table", write)
    with pytest.raises(AnonfitError):
        made.save(tmp_path / "release")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_file_that_cannot_be_audited_is_a_failed_audit(
    made: af.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[..., None]
) -> None:
    monkeypatch.setattr(publishing, "write_table", write)
    with pytest.raises(AuditFailed):
        made.save(tmp_path / "release")


# --- random releases without a fault ------------------------------------------------------------------------------


def random_release(seed: int) -> Shape:
    """A table of some columns of all kinds, and how it is to be released."""
    rng = random.Random(seed)
    rows, k = rng.randint(20, 200), rng.choice([1, 2, 3, 5, 10])
    wide = rng.choice([3, 50, 10**6])

    def some(make: Callable[[], Any], gaps: float) -> list[Any]:
        return [None if rng.random() < gaps else make() for _ in range(rows)]

    gaps = rng.choice([0, 0.05, 0.4])
    words = ["a", "b, c", 'd"e', "{f}", "missing", "≥ 3", " g", "other", "h-i;j~k", "l\nm", "*", "[1, 2)"]
    columns = {
        "number": some(lambda: rng.randint(-wide, wide), gaps),
        "real": some(lambda: rng.choice([rng.uniform(-1, 1), rng.gauss(0, wide), 1e-12, -0.0, 1e15]), gaps),
        "day": some(lambda: date(1960, 2, 28) + timedelta(days=rng.randint(0, wide % 20000 + 2)), gaps),
        "word": some(lambda: rng.choice(words[: rng.randint(1, len(words))]), gaps),
        "place": some(lambda: rng.choice(["FR", "DE", "Côte, d", "JP", "IN", "KE", "EG"]), gaps),
        "step": some(lambda: rng.choice(["low", "mid", "high"]), gaps),
    }
    chosen = rng.sample(sorted(columns), rng.randint(1, 5))
    extra = rng.choice(["persons", "whose", None])
    frame = pl.DataFrame({name: columns[name] for name in chosen}, strict=False).with_columns(
        raw=pl.Series([rng.choice([None, "x", "y,", "z\n", "1", "01"]) for _ in range(rows)], dtype=pl.String),
        cost=pl.Series([rng.choice([0.1, 1e-9, 3.0, None]) for _ in range(rows)], dtype=pl.Float64),
        persons=pl.Series([rng.randint(1, 5) for _ in range(rows)]),
        whose=pl.Series([rng.randint(0, rows // 2) for _ in range(rows)]),
    )
    given = {
        "quasi_identifiers": chosen,
        "k": k,
        "insensitive": ["raw", "cost", *({"persons", "whose"} - {extra})],
        "count": extra if extra == "persons" else None,
        "entity": extra if extra == "whose" else None,
        "taxonomies": {"place": SHAPES["entities"].words["taxonomies"]["country"]} if "place" in chosen else None,
        "types": {name: kind for name, kind in (("step", "ordinal"), ("word", "nominal")) if name in chosen},
        "orders": {"step": ["low", "mid", "high"]} if "step" in chosen else None,
        "splits": {"place": rng.choice(["multiway", "binary"])} if "place" in chosen else None,
        "values": rng.choice(["labels", "labels", "bounds", "labels" if extra == "whose" else "representative"]),
        "cut_points": rng.choice(["simplest", "value"]),
    }
    given["consent"] = given["cut_points"] == "value"
    return Shape(lambda: frame, given, rng.choice(KINDS))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(30))
def test_a_random_release_is_accepted(tmp_path: Path, seed: int) -> None:
    shape = random_release(seed)
    shape.release().save(tmp_path / "release", format=shape.kind)
    found = af.audit_release(tmp_path / "release", source=shape.source)
    assert missed(found) == set()
    assert found.k is not None
    assert found.k >= shape.words["k"]
    assert missed(af.audit_release(tmp_path / "release")) == set()
