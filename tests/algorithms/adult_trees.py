# SPDX-License-Identifier: Apache-2.0
"""Adult as the paper on top-down refinement has it: its taxonomies, and its records in codes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonfit.tables.schema import CodedColumn, CodedTable, SplitMode, code_dtype
from anonfit.tables.taxonomy import Taxonomy

NAMES = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "class"),
)
NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
TOP = ("capital-gain", "age", "marital-status", "education-num", "relationship", "hours-per-week", "sex")
"""The seven attributes that C4.5 puts first, in that order."""

Tree = str | tuple[str, list[Any]]

TREES: dict[str, list[Tree]] = {
    "marital-status": [
        (
            "Married",
            [
                ("Partner-present", ["Married-civ-spouse", "Married-AF-spouse"]),
                ("Partner-absent", ["Divorced", "Separated", "Widowed", "Married-spouse-absent"]),
            ],
        ),
        "Never-married",
    ],
    "relationship": [
        ("In-family", ["Wife", "Own-child", "Husband"]),
        "Not-in-family",
        "Other-relative",
        "Unmarried",
    ],
    "sex": ["Female", "Male"],
}


def taxonomy_of(name: str) -> Taxonomy:
    """The taxonomy of a column."""

    def nested(part: Tree) -> dict[str, Any]:
        if isinstance(part, str):
            return {"name": part}
        return {"name": part[0], "children": [nested(one) for one in part[1]]}

    return Taxonomy.from_tree(nested(("Any", TREES[name])), column=name)


def adult(folder: Path) -> pl.DataFrame:
    """The 45,222 complete records, those for training and for testing together."""
    lines = [line for name in ("adult.data", "adult.test") for line in (folder / "uci" / name).read_text().splitlines()]
    # The test file begins with a comment, its classes end with a full stop.
    records = [[text.strip() for text in line.rstrip(".").split(",")] for line in lines if line.count(",")]
    frame = pl.DataFrame(records, schema=NAMES, orient="row").filter(~pl.any_horizontal(pl.all() == "?"))
    return frame.with_columns(pl.col(*NUMBERS).cast(pl.Int64))


def coded_adult(
    frame: pl.DataFrame, names: Sequence[str], *, suppressed: bool = False
) -> tuple[CodedTable, Any, dict[str, Any]]:
    """Some columns in codes, the class of each row, and the values of each code of the columns of numbers."""
    columns, codes, values = [], [], {}
    for name in names:
        if name in NUMBERS:
            values[name], ranks = np.unique(frame[name].to_numpy(), return_inverse=True)
            columns.append(CodedColumn(name, len(values[name]), SplitMode.ORDERED, False, values[name].astype(float)))
        else:
            taxonomy = taxonomy_of(name)
            mode = SplitMode.SUBSET if suppressed else SplitMode.MULTIWAY
            size = len(taxonomy.leaves)
            columns.append(CodedColumn(name, size, mode, False, np.zeros(size), taxonomy))
            ranks = np.array([taxonomy.leaf_position[value] for value in frame[name]])
        codes.append(ranks.astype(code_dtype(columns[-1].size)))
    classes = (frame["class"] == "<=50K").to_numpy().astype(np.int64)
    return CodedTable(tuple(columns), tuple(codes), len(frame)), classes, values
