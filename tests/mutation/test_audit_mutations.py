# SPDX-License-Identifier: Apache-2.0
"""Faults planted in written releases: the audit finds each of them, and accepts every release that has none.

A fault names the findings of which at least one must be missed, so that it is not found by luck: a changed label must
not be caught only because the rows are no longer sorted. `alone` faults show in the folder itself and are found without
the source too.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from planted import KINDS, PEOPLE, SHAPES, Planted, Shape, missed, people, planted

import anonfit as af
from anonfit import publishing
from anonfit.errors import AnonfitError, AuditFailed, DataError, RecodingError, ReleaseError

LABELS = tuple(f"labels-{kind}" for kind in KINDS)
BOUNDS = tuple(f"bounds-{kind}" for kind in KINDS)

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
    bug: str | None = None


FAULTS: list[Fault] = []


def fault(
    *shapes: str, by: set[str], alone: bool = False, bug: str | None = None
) -> Callable[[Callable[[Planted], None]], Callable[[Planted], None]]:
    def register(plant: Callable[[Planted], None]) -> Callable[[Planted], None]:
        FAULTS.append(Fault(plant, shapes, by, alone, bug))
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


@fault(*LABELS, *BOUNDS, "counts", "entities", "declared", "extended", "observed", by=SOURCE)
def a_row_moved_to_another_group(p: Planted) -> None:
    row = largest(p)
    p.edit(row, **other_group(p, row))


@fault(*LABELS, *BOUNDS, "counts", "entities", "dropped", "extended", "observed", "original", "representative", by=SOURCE)
def a_row_dropped(p: Planted) -> None:
    p.remove([largest(p)])


@fault(*LABELS, "counts", "entities", "dropped", "extended", by={"whole groups"})
def a_row_dropped_and_called_withheld(p: Planted) -> None:
    p.remove([largest(p)])
    withheld = p.manifest["rows"]["withheld"]
    p.manifest["rows"]["withheld"] = withheld + 1 if isinstance(withheld, int) else withheld


@fault(*LABELS, *BOUNDS, "counts", "entities", "extended", "representative", by=SOURCE)
def a_row_doubled(p: Planted) -> None:
    p.copy(0)


@fault(*LABELS, *BOUNDS, "representative", by=SOURCE)
def a_row_added(p: Planted) -> None:
    p.copy(0, cost=4711.0)


@fault(*LABELS, *BOUNDS, by=SOURCE)
def a_row_replaced_by_a_copy_of_its_neighbour(p: Planted) -> None:
    row = largest(p)
    p.copy(row)
    p.remove([row + 1])


@fault(*LABELS, *BOUNDS, by=SOURCE)
def a_whole_group_lost(p: Planted) -> None:
    p.remove(p.smallest())


@fault(*LABELS, *BOUNDS, "original", by=SOURCE)
def two_rows_swapped_between_groups(p: Planted) -> None:
    one = 0
    two = next(row for row in range(len(p.data)) if p.group(row) != p.group(one))
    here, there = p.group(one), p.group(two)
    p.edit(one, **there)
    p.edit(two, **here)


@fault(*LABELS, *BOUNDS, by=SOURCE)
def one_raw_value_swapped_between_groups(p: Planted) -> None:
    one = 0
    two = next(row for row in range(len(p.data)) if p.group(row) != p.group(one))
    here, there = p.data["illness"][one], p.data["illness"][two]
    p.edit(one, illness=there + " ")
    p.edit(two, illness=here)
    p.edit(one, illness=there)


@fault(*LABELS, *BOUNDS, by=SOURCE)
def one_raw_column_shuffled_within_the_groups(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("cost").reverse().over(p.keys))


@fault(*LABELS, "representative", by=SOURCE)
def a_raw_column_shuffled(p: Planted) -> None:
    p.data = p.data.with_columns(pl.col("illness").shuffle(seed=1))


# --- raw values ---------------------------------------------------------------------------------------------------


@fault(*LABELS, *BOUNDS, "dropped", "extended", "observed", "original", "representative", by=SOURCE)
def a_raw_value_changed(p: Planted) -> None:
    p.edit(3, illness="z9")


@fault(*LABELS, *BOUNDS, "representative", by=SOURCE)
def a_raw_number_changed_by_a_tiny_amount(p: Planted) -> None:
    p.edit(3, cost=math.nextafter(p.data["cost"][3], math.inf))


@fault(*LABELS, *BOUNDS, by=SOURCE)
def a_raw_value_emptied(p: Planted) -> None:
    p.edit(3, cost=None)


@fault(*LABELS, *BOUNDS, by=SOURCE)
def a_raw_truth_value_turned(p: Planted) -> None:
    p.edit(3, well=not p.data["well"][3])


@fault(*LABELS, *BOUNDS, by=SOURCE)
def a_raw_text_in_capitals(p: Planted) -> None:
    p.edit(3, illness=p.data["illness"][3].upper())


@fault(*LABELS, *BOUNDS, by=SOURCE)
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


@fault(*LABELS, by={"disjoint groups"}, alone=True)
def one_row_with_the_same_label_written_otherwise(p: Planted) -> None:
    row = largest(p)
    text = p.data["age"][row]
    p.edit(row, age=text.replace("41.5", "41.50").replace("24.5", "24.50"))


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


@fault("entities", by={"k"})
def a_group_of_k_less_one_persons(p: Planted) -> None:
    """The group keeps rows enough; persons are counted in the source, by the labels."""
    p.regroup(p.first("country", lambda text: text == "FR"), country="missing or FR")
    raw = p.shape.source
    young = raw.filter((pl.col("age") < 30) & (pl.col("country") == "DE"))
    assert young["patient"].n_unique() >= 5
    p.regroup(p.first("country", lambda text: text == "DE"), age="< 12.5")


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


@fault(*LABELS, *BOUNDS, "dropped", by={"undeclared columns"}, alone=True)
def an_undeclared_column_added(p: Planted) -> None:
    p.data = p.data.with_columns(extra=pl.lit(1))


@fault(*LABELS, *BOUNDS, by={"undeclared columns"}, alone=True)
def a_row_number_leaked(p: Planted) -> None:
    p.data = p.data.with_columns(index=pl.int_range(len(p.data)))


@fault(*LABELS, *BOUNDS, by={"undeclared columns"}, alone=True)
def an_identifier_leaked(p: Planted) -> None:
    p.data = p.data.with_columns(p.shape.source["name"])


@fault(*LABELS, by={"undeclared columns"}, alone=True)
def an_identifier_leaked_under_another_name(p: Planted) -> None:
    p.data = p.data.with_columns(p.shape.source["name"].alias("note"))


@fault(*LABELS, *BOUNDS, by={"undeclared columns"}, alone=True)
def an_exact_quasi_identifier_beside_its_label(p: Planted) -> None:
    p.data = p.data.with_columns(p.shape.source["age"].alias("age_exact"))


@fault("entities", by={"undeclared columns"}, alone=True)
def the_entity_column_leaked(p: Planted) -> None:
    p.data = p.data.with_columns(p.shape.source["patient"])


@fault(*LABELS, "counts", by={"stated columns"}, alone=True)
def an_undeclared_column_that_nobody_states(p: Planted) -> None:
    p.data = p.data.with_columns(extra=pl.lit(1))
    p.counts = False


@fault(*LABELS, *BOUNDS, by={"missing columns"}, alone=True)
def a_declared_column_missing(p: Planted) -> None:
    p.data = p.data.drop("cost")


@fault(*LABELS, *BOUNDS, by={"missing columns"}, alone=True)
def a_column_renamed(p: Planted) -> None:
    p.data = p.data.rename({"cost": "costs"})


@fault(*LABELS, *BOUNDS, by={"column order"}, alone=True)
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


@fault(*BOUNDS, by={"missing columns", "labels"}, alone=True)
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


# --- what a region of the recoding is -----------------------------------------------------------------------------


@fault("observed", by=SOURCE)
def an_observed_range_too_narrow(p: Planted) -> None:
    row = p.first("age", begins("["))
    low, _, high = p.data["age"][row].strip("[]").partition(", ")
    p.regroup(row, age=f"[{int(low) + 1}, {high}]")


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
    p.column("job")["other"] = "smith"


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


@fault("dropped", "extended", by={"withheld rows"})
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
        return self.root / name


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    return Releases(tmp_path_factory.mktemp("releases"))


BROKEN: dict[str, str] = {}


def marks(*bugs: str | None) -> list[pytest.MarkDecorator]:
    return [pytest.mark.xfail(strict=True, reason=bug) for bug in bugs if bug]


CASES = [
    pytest.param(one, shape, id=f"{one.plant.__name__}-{shape}", marks=marks(one.bug or BROKEN.get(shape)))
    for one in FAULTS
    for shape in one.shapes
]


@pytest.mark.parametrize(("one", "shape"), CASES)
def test_a_planted_fault_is_found(releases: Releases, tmp_path: Path, one: Fault, shape: str) -> None:
    p = planted(releases[shape], tmp_path / "release", SHAPES[shape])
    one.plant(p)
    folder = p.write()
    found = af.audit_release(folder, source=p.shape.source)
    assert not found.passed
    assert missed(found) & one.by
    if one.alone:
        found = af.audit_release(folder)
        assert not found.passed
        assert missed(found) & one.by
