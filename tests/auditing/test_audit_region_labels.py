# SPDX-License-Identifier: Apache-2.0
"""Labels that are those of regions are not read one by one, and yet all is found that is found by reading them."""

from __future__ import annotations

import datetime
import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.auditing.meanings import LabelMeaning, read_meaning
from anonfit.auditing.placing import groups_of_regions, open_data
from anonfit.auditing.reading import open_table
from anonfit.auditing.recoding import RegionTree, read_region_tree
from anonfit.auditing.released import Released, boxes_of, check_labels, open_released, read_columns
from anonfit.auditing.request import Request
from anonfit.auditing.source import locate_source

WORDS = ["none", "low", "a, b", "high", "top"]
PLACES = {"name": "*", "children": [
    {"name": "North", "children": [{"name": "NO"}, {"name": "S, E"}, {"name": "FI"}]},
    {"name": "South", "children": [{"name": "IT"}, {"name": '"ES"'}]},
    {"name": "[1, 2)"},
]}  # fmt: skip
AGES = {"name": "*", "children": [
    {"name": "young", "children": [{"name": "[0, 10)"}, {"name": "[10, 20]"}]},
    {"name": "old", "children": [{"name": "[30, 50)"}, {"name": "[50, 60)"}, {"name": "≥ 60"}]},
]}  # fmt: skip
DAY = datetime.date(2024, 1, 1)

Regions = tuple[Released, dict[str, LabelMeaning], RegionTree]


def lost(rng: random.Random, values: list[Any]) -> list[Any]:
    share = rng.choice([0.0, 0.0, 0.1])
    return [None if rng.random() < share else value for value in values]


def table_of(rng: random.Random, rows: int = 300) -> tuple[pl.DataFrame, dict[str, af.Column]]:
    """A table of some kinds of columns, and what is said of them."""
    kinds: dict[str, tuple[list[Any], af.Column]] = {
        "whole": ([rng.randrange(70) for _ in range(rows)], af.Column()),
        "wide": ([10**15 + rng.randrange(4) for _ in range(rows)], af.Column()),
        "number": ([rng.randrange(40) / 4 for _ in range(rows)], af.Column(domain=rng.choice([(0, 10), (-1, 12), None]))),
        "day": ([DAY + datetime.timedelta(rng.randrange(900)) for _ in range(rows)], af.Column()),
        "rank": ([rng.choice(WORDS) for _ in range(rows)], af.Column(type="ordinal", order=WORDS)),
        "place": (
            [rng.choice(["NO", "S, E", "FI", "IT", '"ES"', "[1, 2)"]) for _ in range(rows)],
            af.Column(taxonomy=PLACES, split=rng.choice(["multiway", "binary", "subset"])),
        ),
        "town": ([f"t{rng.randrange(9)}" for _ in range(rows)], af.Column(split=rng.choice(["binary", "subset"]))),
        "age": ([rng.choice([0, 5, 10, 20, 30, 49, 50, 80]) for _ in range(rows)], af.Column(taxonomy=AGES)),
    }  # fmt: skip
    chosen = rng.sample(list(kinds), rng.randint(1, 5))
    frame = pl.DataFrame({name: lost(rng, kinds[name][0]) for name in chosen})
    frame = frame.with_columns(target=pl.Series([rng.choice("ab") for _ in range(rows)]))
    return frame, {name: kinds[name][1] for name in chosen}


def regions_of(rng: random.Random) -> tuple[pl.DataFrame, Regions]:
    frame, columns = table_of(rng)
    settings = {"intervals": "closed"} if "whole" in columns and rng.random() < 0.5 else {}
    made = af.anonymize(
        frame,
        quasi_identifiers=list(columns),
        k=rng.choice([2, 5, 20]),
        targets=["target"],
        columns=columns,
        **settings,
    )
    written = json.loads(made.recoding.to_json())
    meanings = {column["name"]: read_meaning(column["name"], column) for column in written["columns"]}
    return frame, (opened(made.data, meanings), meanings, read_region_tree(written["nodes"], meanings))


def opened(data: pl.DataFrame, meanings: dict[str, LabelMeaning]) -> Released:
    names = tuple(meanings)
    return open_released(open_data(Request(data=data, quasi_identifiers=names, missing=("",))), names)


@pytest.mark.parametrize("seed", range(60))
def test_as_by_reading_every_label(seed: int) -> None:
    frame, (released, meanings, tree) = regions_of(random.Random(seed))
    quick = groups_of_regions(released, meanings, tree)
    assert quick is not None
    boxes, cells = quick
    columns = read_columns(released, meanings, "domain")
    for name, (cells_of_part, part_of_group) in cells.items():
        read = [columns[name].cells[label] for label in columns[name].of_group.tolist()]
        assert [cells_of_part[part] for part in part_of_group.tolist()] == read
    slow = boxes_of(released, columns)
    assert slow is not None
    labels = check_labels(columns, slow, "domain", tree)
    assert not any([*labels.unreadable.values(), *labels.not_allowed.values(), labels.overlapping, labels.no_region])
    # Rows of the table, and others: beyond its domain, of unknown values, missing where nothing was.
    others, _ = table_of(random.Random(seed + 1000))
    strange = {name: others[name] if name in others.columns else [None] * len(others) for name in meanings}
    for rows in (frame.select(list(meanings)), pl.DataFrame(strange).cast(dict(frame.select(list(meanings)).schema))):
        found = [
            locate_source(each, open_table(rows, missing=("",)), quasi_identifiers=list(meanings))
            for each in (boxes, slow)
        ]
        assert found[0].group.tolist() == found[1].group.tolist()
        assert found[0].numbers == found[1].numbers


@pytest.mark.parametrize("seed", range(40))
def test_labels_of_no_region_are_read(seed: int) -> None:
    """A label that is spelled otherwise, empty, or of another region: the audit reads them all, and counts it."""
    rng = random.Random(seed)
    _, (released, meanings, tree) = regions_of(rng)
    heads = released.heads
    name = rng.choice(heads.columns)
    row = rng.randrange(len(heads))
    texts = heads[name].cast(pl.String).to_list()
    wrong = rng.choice([None, "", f"{texts[row]} ", f"{{{texts[row]}}}", "never"])
    texts[row] = wrong
    changed = replace(released, heads=heads.with_columns(pl.Series(name, texts, dtype=pl.String)))
    assert groups_of_regions(changed, meanings, tree) is None


def test_groups_that_are_no_region_are_read() -> None:
    """Every label is that of a part, but they do not belong together."""
    seen = 0
    for seed in range(30):
        _, (released, meanings, tree) = regions_of(random.Random(seed))
        heads = released.heads
        shuffle = np.random.default_rng(seed).permutation
        rows = list(zip(*(shuffle(column.cast(pl.String)) for column in heads), strict=True))
        known = set(heads.cast(pl.String).rows())
        if all(row in known for row in rows):
            continue
        seen += 1
        mixed = pl.DataFrame(rows, schema=dict.fromkeys(heads.columns, pl.String), orient="row")
        assert groups_of_regions(replace(released, heads=mixed), meanings, tree) is None
    assert seen > 5
