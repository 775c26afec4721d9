# SPDX-License-Identifier: Apache-2.0
"""Each of many faults planted in a sound release folder is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from audit_folders import RELEASED, Folder, K

from anonfit.auditing.api import audit_release


def plant(folder: Folder, **values: Any) -> None:
    folder.data = pl.concat([folder.data, folder.data[:1].with_columns(**values).cast(folder.data.schema)])


def a_row_moved(folder: Folder) -> None:
    row = next(i for i, row in enumerate(folder.data.to_dicts()) if row["age"] == "[30, 60)")
    folder.edit(row, age="[60, 120]", rank="< high")


def a_label_widened(folder: Folder) -> None:
    folder.relabel("rank", "< high", "*")


def a_label_widened_beyond_a_cut(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "[30, 120]")


def a_label_shifted(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "[31, 61)")


def an_end_that_is_no_cut(folder: Folder) -> None:
    folder.relabel("age", "[60, 120]", "[59.5, 120]")


def a_label_narrowed(folder: Folder) -> None:
    folder.relabel("rank", "< high", "low")


def a_label_narrowed_in_empty_space(folder: Folder) -> None:
    folder.relabel("age", "[60, 120]", "[60, 119.5]")


def a_closed_interval_inside_the_domain(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "[30, 60]")


def an_open_end_in_a_declared_domain(folder: Folder) -> None:
    folder.relabel("age", "[60, 120]", "≥ 60")


def a_label_that_cannot_be_read(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "30-59")


def a_raw_value_in_a_label(folder: Folder) -> None:
    folder.edit(0, age="37")


def a_raw_value_for_a_whole_group(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "45")


def a_name_out_of_the_taxonomy(folder: Folder) -> None:
    folder.relabel("country", "Asia", "Africa")


def a_name_in_another_case(folder: Folder) -> None:
    folder.relabel("country", "Asia", "asia")


def a_leaf_for_its_parent(folder: Folder) -> None:
    folder.relabel("country", "Asia", "JP")


def a_set_that_overlaps_another_group(folder: Folder) -> None:
    folder.relabel("country", "Asia", "{Asia, FR}")


def a_word_out_of_the_order(folder: Folder) -> None:
    folder.relabel("rank", "< high", "< higher")


def an_empty_label(folder: Folder) -> None:
    folder.relabel("country", "Asia", None)


def a_missing_part_forgotten(folder: Folder) -> None:
    folder.relabel("age", "missing or [0, 30)", "[0, 30)")


def a_missing_part_invented(folder: Folder) -> None:
    folder.relabel("age", "[30, 60)", "missing or [30, 60)")


def two_groups_swapped(folder: Folder) -> None:
    folder.relabel("country", "Asia", "~")
    folder.relabel("country", "Europe", "Asia")
    folder.relabel("country", "~", "Europe")


def two_groups_under_one_coarse_label(folder: Folder) -> None:
    folder.relabel("country", "Asia", "*")
    folder.relabel("age", "missing or [0, 30)", "*", country="*")


def a_group_of_k_less_one(folder: Folder) -> None:
    row = folder.data.with_row_index().filter(pl.col("rank") == "high")["index"][0]
    folder.data = pl.concat([folder.data[:row], folder.data[row + 1 :]])
    folder.recount()
    folder.manifest["rows"]["withheld"] = 1


def a_row_dropped(folder: Folder) -> None:
    folder.data = folder.data[1:]
    folder.recount()


def a_row_dropped_and_called_withheld(folder: Folder) -> None:
    folder.data = folder.data[1:]
    folder.recount()
    folder.manifest["rows"]["withheld"] = 1


def a_row_doubled(folder: Folder) -> None:
    plant(folder)
    folder.recount()


def a_row_added(folder: Folder) -> None:
    plant(folder, note=pl.lit(77))
    folder.recount()


def a_row_of_stars(folder: Folder) -> None:
    folder.edit(3, age="*", country="*", rank="*")


def a_row_replaced_by_a_copy(folder: Folder) -> None:
    folder.data = pl.concat([folder.data[1:], folder.data[-1:]])


def a_raw_value_changed(folder: Folder) -> None:
    folder.edit(5, note=9)


def a_raw_value_emptied(folder: Folder) -> None:
    folder.edit(5, note=None)


def a_raw_column_shuffled(folder: Folder) -> None:
    folder.data = folder.data.with_columns(pl.col("diagnosis").shuffle(seed=1))


def a_whole_group_lost(folder: Folder) -> None:
    folder.data = folder.data.filter(pl.col("country") != "Asia")
    folder.recount()


def an_identifier_leaked(folder: Folder) -> None:
    folder.data = folder.data.with_columns(patient=folder.raw["patient"][: folder.data.height])
    folder.manifest["data"]["columns"].append("patient")


def a_row_number_leaked(folder: Folder) -> None:
    folder.data = folder.data.with_columns(index=pl.int_range(folder.data.height))
    folder.manifest["data"]["columns"].append("index")


def a_raw_quasi_identifier_leaked(folder: Folder) -> None:
    folder.data = folder.data.with_columns(age_exact=pl.lit(5))
    folder.manifest["data"]["columns"].append("age_exact")


def a_column_lost(folder: Folder) -> None:
    folder.data = folder.data.drop("note")
    folder.manifest["data"]["columns"].remove("note")


def columns_in_another_order(folder: Folder) -> None:
    folder.data = folder.data.select(RELEASED[::-1])


def a_wrong_number_of_rows(folder: Folder) -> None:
    folder.manifest["rows"]["released"] += 1


def a_higher_k_than_there_is(folder: Folder) -> None:
    folder.spec["privacy"]["k"] = K + 1


def less_diversity_than_asked(folder: Folder) -> None:
    folder.spec["privacy"]["diversity"] = [{"column": "diagnosis", "model": "distinct-l", "l": 6}]


def a_smaller_k_of_one_set(folder: Folder) -> None:
    folder.spec["privacy"]["quasi_identifiers"] = [{"columns": ["age", "rank"], "k": K + 1}, {"columns": ["country"]}]


def a_cut_taken_from_the_recoding(folder: Folder) -> None:
    folder.recoding["columns"][0]["cuts"] = [30]


def another_domain_in_the_recoding(folder: Folder) -> None:
    folder.recoding["columns"][0]["domain"] = [0, 130]


def a_column_under_a_default_role(folder: Folder) -> None:
    folder.spec["data"] = {"default_role": "insensitive"}
    a_row_number_leaked(folder)


NEEDS_SOURCE = [
    a_row_moved,
    a_row_dropped,
    a_row_dropped_and_called_withheld,
    a_row_doubled,
    a_row_added,
    a_row_replaced_by_a_copy,
    a_raw_value_changed,
    a_raw_value_emptied,
    a_raw_column_shuffled,
    a_whole_group_lost,
    two_groups_swapped,
]
IN_THE_FILE = [
    a_label_widened,
    a_label_widened_beyond_a_cut,
    a_label_shifted,
    an_end_that_is_no_cut,
    a_label_narrowed_in_empty_space,
    a_closed_interval_inside_the_domain,
    an_open_end_in_a_declared_domain,
    a_label_that_cannot_be_read,
    a_raw_value_in_a_label,
    a_raw_value_for_a_whole_group,
    a_name_out_of_the_taxonomy,
    a_name_in_another_case,
    a_set_that_overlaps_another_group,
    a_word_out_of_the_order,
    an_empty_label,
    two_groups_under_one_coarse_label,
    a_group_of_k_less_one,
    a_row_of_stars,
    an_identifier_leaked,
    a_row_number_leaked,
    a_raw_quasi_identifier_leaked,
    a_column_lost,
    columns_in_another_order,
    a_wrong_number_of_rows,
    a_higher_k_than_there_is,
    less_diversity_than_asked,
    a_smaller_k_of_one_set,
    a_cut_taken_from_the_recoding,
    another_domain_in_the_recoding,
    a_label_narrowed,
    a_missing_part_forgotten,
    a_missing_part_invented,
    a_leaf_for_its_parent,
    a_column_under_a_default_role,
]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("fault", [*NEEDS_SOURCE, *IN_THE_FILE], ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found(tmp_path: Path, fault: Callable[[Folder], None], kind: str) -> None:
    folder = Folder(tmp_path / "release", kind=kind)
    fault(folder)
    assert not audit_release(folder.write(), source=folder.raw).passed


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", IN_THE_FILE, ids=lambda fault: fault.__name__)
def test_a_fault_that_shows_in_the_file_is_found_without_the_source(
    tmp_path: Path, fault: Callable[[Folder], None]
) -> None:
    folder = Folder(tmp_path / "release")
    fault(folder)
    assert not audit_release(folder.write()).passed
