# SPDX-License-Identifier: Apache-2.0
"""Kinds of tampering with labels, bounds, representatives, the order of rows and the columns."""

from __future__ import annotations

import random

import polars as pl
from planted import Planted
from tampering import harmless, kind, label_column, more, never, pick, raw_column, typed_key

# --- labels -------------------------------------------------------------------------------------------------------


@kind
def label_of_another_group(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng)
    other = pick(rng, set(p.data[column].drop_nulls()) - {p.data[column][row]})
    p.edit(row, **{column: other})


@kind
def group_with_a_label_of_another(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng)
    other = pick(rng, set(p.data[column].drop_nulls()) - {p.data[column][row]})
    p.regroup(row, **{column: other})


@kind
def label_widened_to_everything(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng, lambda text: text != "*")
    p.regroup(row, **{column: "*"})


@kind
def label_of_an_unknown_name(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng)
    p.regroup(row, **{column: "nowhere"})


@kind
def label_with_a_space(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng)
    p.regroup(row, **{column: p.data[column][row] + " "})


@kind
def label_emptied(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng)
    p.edit(row, **{column: None})


@kind
def label_in_capitals(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng, lambda text: text != text.swapcase())
    p.regroup(row, **{column: p.data[column][row].swapcase()})


@kind
def label_with_missing_added(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng, lambda text: not text.startswith("missing") and text not in ("*", "not missing"))
    p.regroup(row, **{column: f"missing or {p.data[column][row]}"})


@kind
def label_with_missing_removed(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng, lambda text: text.startswith("missing or "))
    p.regroup(row, **{column: p.data[column][row].removeprefix("missing or ")})


@kind
def label_with_its_end_closed(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng, lambda text: text.startswith("[") and text.endswith(")"))
    p.regroup(row, **{column: p.data[column][row][:-1] + "]"})


@kind
def label_with_its_end_opened(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng, lambda text: text.startswith("< "))
    p.regroup(row, **{column: "≥ " + p.data[column][row][2:]})


@kind
def label_with_another_number(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng, lambda text: text.startswith(("< ", "≥ ")) and text[-1].isdigit())
    text = p.data[column][row]
    p.regroup(row, **{column: text[:-1] + str((int(text[-1]) + 1) % 10)})


@kind
def label_that_lists_its_names_otherwise(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng, lambda text: text.startswith("{") and '"' not in text)
    names = p.data[column][row].strip("{}").split(", ")
    p.regroup(row, **{column: "{" + ", ".join(names[::-1]) + "}"})


@kind
def raw_value_in_place_of_a_label(p: Planted, rng: random.Random) -> None:
    column, row = label_column(p, rng)
    values = {str(value) for value in p.shape.source[column].drop_nulls()} - {p.data[column][row]}
    p.edit(row, **{column: pick(rng, sorted(values))})


@kind
def quasi_identifier_released_raw(p: Planted, rng: random.Random) -> None:
    column, _ = label_column(p, rng)
    values = p.shape.source[column].cast(pl.String).sample(len(p.data), with_replacement=True, seed=rng.randrange(99))
    if values.equals(p.data[column]):
        never("nothing changes")
    p.data = p.data.with_columns(values.alias(column))


# --- bounds and representatives -----------------------------------------------------------------------------------


@kind
def lower_bound_raised(p: Planted, rng: random.Random) -> None:
    column = typed_key(p, rng, "bounds", "_lower")
    row = p.first(column, lambda value: value is not None)
    p.regroup(row, **{column: more(p.data[column][row])})


@kind
def upper_bound_raised(p: Planted, rng: random.Random) -> None:
    column = typed_key(p, rng, "bounds", "_upper")
    row = p.first(column, lambda value: value is not None)
    p.regroup(row, **{column: more(p.data[column][row])})


@kind
def bound_opened(p: Planted, rng: random.Random) -> None:
    column = typed_key(p, rng, "bounds", "_lower", "_upper")
    p.regroup(p.first(column, lambda value: value is not None), **{column: None})


@kind
def bounds_exchanged(p: Planted, rng: random.Random) -> None:
    lower = typed_key(p, rng, "bounds", "_lower")
    upper = lower.removesuffix("_lower") + "_upper"
    p.data = p.data.with_columns(pl.col(upper).alias(lower), pl.col(lower).alias(upper))


@kind
def another_word_on_missing(p: Planted, rng: random.Random) -> None:
    if p.spec["output"]["values"] != "bounds":
        never("no bounds")
    column = pick(rng, [c for c in p.keys if c.endswith("_missing")])
    row = rng.randrange(len(p.data))
    p.regroup(row, **{column: rng.choice(sorted({"no", "possible", "only", "perhaps"} - {p.data[column][row]}))})


@kind
def representatives_shifted(p: Planted, rng: random.Random) -> None:
    column = typed_key(p, rng, "representative")
    by = pl.duration(days=1000) if p.data.schema[column] == pl.Date else pl.lit(1000)
    p.data = p.data.with_columns((pl.col(column) + by).cast(p.data.schema[column]))


@kind
def representative_replaced_by_a_value(p: Planted, rng: random.Random) -> None:
    column = typed_key(p, rng, "representative")
    if p.shape.source[column].dtype == pl.String:
        never("dates that are texts")
    row = p.first(column, lambda value: value is not None)
    value = p.shape.source[column].drop_nulls().max()
    if value == p.data[column][row]:
        never("it is that already")
    p.regroup(row, **{column: value})


@kind
def representative_emptied(p: Planted, rng: random.Random) -> None:
    column = typed_key(p, rng, "representative")
    p.regroup(p.first(column, lambda value: value is not None), **{column: None})


# --- order and columns --------------------------------------------------------------------------------------------


def unsorted(p: Planted) -> None:
    """Keep rows as they are, if that is not how they should be."""
    p.order = False
    if p.spec["output"]["order"] == "original":
        never("the order is free")
    if p.data.equals(p.data.sort([*p.keys, *p.raw], nulls_last=False)):
        never("still sorted")


@kind
def rows_reversed(p: Planted, rng: random.Random) -> None:
    p.data = p.data.reverse()
    unsorted(p)


@kind
def rows_shuffled(p: Planted, rng: random.Random) -> None:
    p.data = p.data.sample(len(p.data), shuffle=True, seed=rng.randrange(99))
    unsorted(p)


@kind
def two_rows_exchanged(p: Planted, rng: random.Random) -> None:
    places = list(range(len(p.data)))
    one, two = rng.sample(places, 2)
    places[one], places[two] = two, one
    p.data = p.data[places]
    unsorted(p)


@kind
def column_added(p: Planted, rng: random.Random) -> None:
    p.data = p.data.with_columns(index=pl.int_range(pl.len()))


@kind
def column_added_that_is_not_stated(p: Planted, rng: random.Random) -> None:
    stated = p.data.columns
    p.data = p.data.with_columns(index=pl.int_range(pl.len()))
    p.counts, p.manifest["data"]["columns"] = False, stated


@kind
def columns_in_another_order_than_stated(p: Planted, rng: random.Random) -> None:
    columns_in_another_order(p, rng)
    p.counts = False


@kind
def identifier_released(p: Planted, rng: random.Random) -> None:
    names = p.shape.source["name"].sample(len(p.data), with_replacement=True, seed=1)
    p.data = p.data.with_columns(names.alias("name"))


@kind
def exact_quasi_identifier_beside_its_label(p: Planted, rng: random.Random) -> None:
    column = pick(rng, p.recoding["columns"])["name"]
    values = p.shape.source[column].sample(len(p.data), with_replacement=True, seed=1)
    p.data = p.data.with_columns(values.alias(f"{column} exact"))


@kind
def column_removed(p: Planted, rng: random.Random) -> None:
    p.data = p.data.drop(raw_column(p, rng, tried=1))


@kind
def column_renamed(p: Planted, rng: random.Random) -> None:
    p.data = p.data.rename({raw_column(p, rng, tried=1): "other name"})


@harmless
def columns_in_another_order(p: Planted, rng: random.Random) -> None:
    p.data = p.data.select(p.data.columns[::-1]) if len(p.data.columns) > 1 else never("one column")
