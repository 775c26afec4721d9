# SPDX-License-Identifier: Apache-2.0
"""Random tables about people and requests to anonymize them: every type, every way to split, missing values, odd names."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pandas as pd
import polars as pl
from hypothesis import strategies as st

from anonfit.tables.taxonomy import Taxonomy

TEXTS = [
    "a",
    "b, c",
    "d;e",
    "f~g",
    "h-i",
    'say "x"',
    "two\nlines",
    "tab\there",
    " blank",
    "O'Neil",
    "[1, 2)",
    "≥ 3",
    "*",
    "missing",
    "other",
    "{z}",
    "ü",
    "-5",
    "7",
]
TREE = Taxonomy.from_paths(
    [
        ("a, b", "left", "*"),
        ("c;d", "left", "*"),
        ('"e"', "right", "*"),
        ("f\ng", "far - right", "right", "*"),
        ("h", "*"),
    ]
)
ORDER = ("low", "mid, or so", "high", "[top")

MAKERS: dict[str, tuple[st.SearchStrategy[Any], Any]] = {
    "whole": (st.integers(-9, 9), pl.Int64),
    "wide": (st.integers(-(10**6), 10**6), pl.Int32),
    "big": (st.integers(-(2**62), 2**62), pl.Int64),
    "float": (st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1.5, -1e-05, 1e300, 5e-324]), pl.Float64),
    "day": (st.dates(date(1900, 1, 1), date(2100, 1, 1)), pl.Date),
    "moment": (st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), pl.Datetime("us")),
    "text": (st.sampled_from(TEXTS), pl.String),
    "tree": (st.sampled_from(TREE.leaves), pl.String),
    "stage": (st.sampled_from(ORDER), pl.String),
    "truth": (st.booleans(), pl.Boolean),
    "same": (st.just(7), pl.Int64),
    "none": (st.none(), pl.Float64),
}


@dataclass(frozen=True)
class Request:
    """A table and the words to anonymize it with."""

    frame: pl.DataFrame
    quasi_identifiers: list[str]
    raw: list[str]
    k: int
    words: dict[str, Any] = field(default_factory=dict)

    @property
    def persons(self) -> int:
        """How many persons the table is about."""
        return self.persons_of(range(len(self.frame)))

    def persons_of(self, rows: Any) -> int:
        """How many persons some rows are about."""
        if "entity" in self.words:
            return len({self.frame["who"][row] for row in rows})
        return sum(self.frame["many"][row] for row in rows) if "count" in self.words else len(rows)


@st.composite
def columns_of(draw: st.DrawFn, name: str, rows: int, *, missing: bool) -> pl.Series:
    """A column of one of the kinds; few different values, or as many as there are."""
    strategy, dtype = MAKERS[name.split("_")[0]]
    if draw(st.booleans()):
        strategy = st.sampled_from(draw(st.lists(strategy, min_size=1, max_size=4)))
    if missing:
        strategy = st.none() | strategy
    return pl.Series(name, draw(st.lists(strategy, min_size=rows, max_size=rows)), dtype=dtype)


RAW = ("text_raw", "whole_raw", "day_raw", "truth_raw", "wide_raw")


@st.composite
def requests(
    draw: st.DrawFn, *, kinds: tuple[str, ...] = tuple(MAKERS), raw_kinds: tuple[str, ...] = RAW, most: int = 25
) -> Request:
    """A table with some quasi-identifiers, some raw columns, perhaps persons with several rows, and how to treat them."""
    rows = draw(st.integers(2, most))
    names = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4, unique=True))
    raw = draw(st.lists(st.sampled_from(raw_kinds), max_size=2, unique=True))
    made = [draw(columns_of(name, rows, missing=draw(st.booleans()))) for name in [*names, *raw]]
    words: dict[str, Any] = {"release": raw, "insensitive": raw}
    who = draw(st.sampled_from(["rows", "rows", "entity", "count"]))
    if who == "entity":
        made.append(pl.Series("who", draw(st.lists(st.integers(0, rows // 2), min_size=rows, max_size=rows))))
        words["entity"] = "who"
    if who == "count":
        made.append(pl.Series("many", draw(st.lists(st.integers(1, 4), min_size=rows, max_size=rows))))
        words |= {"count": "many", "release": [*raw, "many"]}
    order = draw(st.permutations(made))
    return Request(pl.DataFrame(order), names, raw, draw(st.integers(1, 4)), words | draw(settings_for(names)))


@st.composite
def settings_for(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    """Types, taxonomies and ways to split for these columns, and how to write the result."""
    cut_points = draw(st.sampled_from(["simplest", "value"]))
    words: dict[str, Any] = {
        "cut_points": cut_points,
        "consent": cut_points == "value",
        "types": {},
        "splits": {},
        "missing": (),
    }
    if "tree" in names:
        words["taxonomies"] = {"tree": TREE}
        words["splits"]["tree"] = draw(st.sampled_from(["multiway", "binary"]))
    if "text" in names:
        words["splits"]["text"] = draw(st.sampled_from(["multiway", "binary", "subset"]))
    if "stage" in names:
        words["types"]["stage"] = "ordinal"
        words["orders"] = {"stage": ORDER}
    if "whole" in names and draw(st.booleans()):
        words["domains"] = {"whole": [-10, 10]}
    return words


def as_pandas(frame: pl.DataFrame, index: Any) -> pd.DataFrame:
    """The same table in pandas with some index."""
    return frame.to_pandas().set_axis(index, axis=0)
