# SPDX-License-Identifier: Apache-2.0
"""Kinds of tampering with rows and with raw values."""

from __future__ import annotations

import random

import polars as pl
from planted import Planted
from tampering import kind, never, pick, raw_column, two_groups

# --- rows ---------------------------------------------------------------------------------------------------------


@kind
def row_removed(p: Planted, rng: random.Random) -> None:
    p.remove([two_groups(p, rng)[0][0]])


@kind
def row_removed_and_called_withheld(p: Planted, rng: random.Random) -> None:
    withheld = p.manifest["rows"]["withheld"]
    p.remove([rng.randrange(len(p.data))])
    p.manifest["rows"]["withheld"] = withheld + 1 if isinstance(withheld, int) else withheld
    p.spec["privacy"]["suppression_limit"] = 1.0


@kind
def row_removed_and_called_dropped(p: Planted, rng: random.Random) -> None:
    dropped = p.manifest["rows"]["dropped"]
    p.remove([rng.randrange(len(p.data))])
    p.manifest["rows"]["dropped"] = dropped + 1 if isinstance(dropped, int) else dropped


@kind
def row_doubled(p: Planted, rng: random.Random) -> None:
    p.copy(rng.randrange(len(p.data)))


@kind
def row_added_with_another_value(p: Planted, rng: random.Random) -> None:
    column = raw_column(p, rng, pl.String)
    p.copy(rng.randrange(len(p.data)), **{column: "never seen"})


@kind
def row_replaced_by_a_copy_of_another(p: Planted, rng: random.Random) -> None:
    one, two = two_groups(p, rng)
    p.copy(one[0])
    p.remove([two[0]])


@kind
def group_removed(p: Planted, rng: random.Random) -> None:
    p.remove(two_groups(p, rng)[1])


@kind
def group_removed_and_called_withheld(p: Planted, rng: random.Random) -> None:
    group, withheld = two_groups(p, rng)[1], p.manifest["rows"]["withheld"]
    p.remove(group)
    p.manifest["rows"]["withheld"] = withheld + len(group) if isinstance(withheld, int) else never("not told")
    p.spec["privacy"]["suppression_limit"] = 1.0


@kind
def group_removed_beyond_the_limit(p: Planted, rng: random.Random) -> None:
    group = two_groups(p, rng)[1]
    p.remove(group)
    p.manifest["rows"]["withheld"] = len(group)
    p.spec["privacy"]["suppression_limit"] = 0.0


@kind
def group_doubled(p: Planted, rng: random.Random) -> None:
    for row in two_groups(p, rng)[1]:
        p.copy(row)


@kind
def row_moved_to_another_group(p: Planted, rng: random.Random) -> None:
    one, two = two_groups(p, rng)
    p.edit(one[0], **p.group(two[0]))


@kind
def rows_swapped_between_groups(p: Planted, rng: random.Random) -> None:
    one, two = two_groups(p, rng)
    if p.data.select(p.raw).row(one[0]) == p.data.select(p.raw).row(two[0]):
        never("equal rows")
    here, there = p.group(one[0]), p.group(two[0])
    p.edit(one[0], **there)
    p.edit(two[0], **here)


@kind
def groups_exchanged(p: Planted, rng: random.Random) -> None:
    one, two = two_groups(p, rng)
    here, there = p.group(one[0]), p.group(two[0])
    if p.data[one].select(p.raw).sort(p.raw).equals(p.data[two].select(p.raw).sort(p.raw)):
        never("equal groups")
    p.edit(one, **there)
    p.edit(two, **here)


@kind
def groups_joined(p: Planted, rng: random.Random) -> None:
    one, two = two_groups(p, rng)
    p.edit(one, **p.group(two[0]))


@kind
def group_split_by_the_label_of_another(p: Planted, rng: random.Random) -> None:
    one, two = two_groups(p, rng)
    column = pick(rng, [c for c in p.keys if p.data[c][one[0]] != p.data[c][two[0]]])
    p.edit(one[: len(one) // 2] or one, **{column: p.data[column][two[0]]})


@kind
def row_with_everything_suppressed(p: Planted, rng: random.Random) -> None:
    if p.spec["output"]["values"] != "labels":
        never("no labels")
    row = rng.randrange(len(p.data))
    if set(p.group(row).values()) == {"*"}:
        never("it is suppressed already")
    p.edit(row, **dict.fromkeys(p.keys, "*"))


@kind
def no_rows(p: Planted, rng: random.Random) -> None:
    p.data = p.data.clear()


@kind
def all_rows_twice(p: Planted, rng: random.Random) -> None:
    p.data = pl.concat([p.data, p.data])


# --- raw values ---------------------------------------------------------------------------------------------------


@kind
def raw_value_changed(p: Planted, rng: random.Random) -> None:
    p.edit(rng.randrange(len(p.data)), **{raw_column(p, rng, pl.String): "never seen"})


@kind
def raw_value_taken_from_another_row(p: Planted, rng: random.Random) -> None:
    column, row = raw_column(p, rng), rng.randrange(len(p.data))
    value = pick(rng, set(p.data[column].to_list()) - {p.data[column][row]})
    p.edit(row, **{column: value})


@kind
def raw_values_swapped_between_groups(p: Planted, rng: random.Random) -> None:
    column, (one, two) = raw_column(p, rng), two_groups(p, rng)
    here, there = p.data[column][one[0]], p.data[column][two[0]]
    if here == there or len(p.raw) < 2:
        never("equal values")
    p.edit(one[0], **{column: there})
    p.edit(two[0], **{column: here})


@kind
def raw_column_shuffled_within_groups(p: Planted, rng: random.Random) -> None:
    column, before = raw_column(p, rng), p.data.sort(p.data.columns)
    p.data = p.data.with_columns(pl.col(column).reverse().over(p.keys))
    if p.data.sort(p.data.columns).equals(before):
        never("nothing changes")


@kind
def raw_column_of_one_value(p: Planted, rng: random.Random) -> None:
    column = raw_column(p, rng)
    p.data = p.data.with_columns(pl.lit(p.data[column].drop_nulls()[0], p.data.schema[column]).alias(column))


@kind
def raw_value_emptied(p: Planted, rng: random.Random) -> None:
    column = raw_column(p, rng)
    p.edit(p.first(column, lambda value: value is not None), **{column: None})


@kind
def raw_number_nudged(p: Planted, rng: random.Random) -> None:
    column = raw_column(p, rng, pl.Float64)
    row = p.first(column, lambda value: value is not None)
    p.edit(row, **{column: p.data[column][row] + 2**-20})


@kind
def raw_truth_value_turned(p: Planted, rng: random.Random) -> None:
    column, row = raw_column(p, rng, pl.Boolean), rng.randrange(len(p.data))
    p.edit(row, **{column: not p.data[column][row]})


@kind
def raw_text_with_a_space(p: Planted, rng: random.Random) -> None:
    column = raw_column(p, rng, pl.String)
    row = p.first(column, lambda value: value is not None)
    p.edit(row, **{column: p.data[column][row] + " "})


@kind
def counts_exchanged(p: Planted, rng: random.Random) -> None:
    if "persons" not in p.raw:
        never("no counts")
    one, two = two_groups(p, rng)
    pairs = [(a, b) for a in one for b in two if p.data["persons"][a] != p.data["persons"][b]]
    a, b = pick(rng, pairs)
    here, there = p.data["persons"][a], p.data["persons"][b]
    p.edit(a, persons=there)
    p.edit(b, persons=here)


@kind
def count_raised(p: Planted, rng: random.Random) -> None:
    if "persons" not in p.raw:
        never("no counts")
    row = rng.randrange(len(p.data))
    p.edit(row, persons=p.data["persons"][row] + 1)


@kind
def count_of_nobody(p: Planted, rng: random.Random) -> None:
    p.edit(rng.randrange(len(p.data)), persons=0) if "persons" in p.raw else never("no counts")
