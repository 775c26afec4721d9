# SPDX-License-Identifier: Apache-2.0
"""The tables of the paper on top-down refinement in codes, and masked tables in the paper's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anonfit.algorithms.demands import Requirement
from anonfit.algorithms.refining_columns import ColumnPart, Refined
from anonfit.tables.schema import CodedColumn, CodedTable, SplitMode, code_dtype
from anonfit.tables.taxonomy import Taxonomy

Record = tuple[str, str, int, int, int]
"""Education, Sex, Work_Hrs, and how many have class Y and class N."""

TABLE_1: list[Record] = [
    ("9th", "M", 30, 0, 3),
    ("10th", "M", 32, 0, 4),
    ("11th", "M", 35, 2, 3),
    ("12th", "F", 37, 3, 1),
    ("Bachelors", "F", 42, 4, 2),
    ("Bachelors", "F", 44, 4, 0),
    ("Masters", "M", 44, 4, 0),
    ("Masters", "F", 44, 3, 0),
    ("Doctorate", "F", 44, 1, 0),
]
TABLE_2: list[Record] = [
    ("10th", "M", 40, 20, 0),
    ("10th", "M", 30, 0, 4),
    ("9th", "M", 30, 0, 2),
    ("9th", "F", 30, 0, 4),
    ("9th", "F", 40, 0, 6),
    ("8th", "F", 30, 0, 2),
    ("8th", "F", 40, 0, 2),
]
EDUCATION, SEX, HOURS = 0, 1, 2
Y, N = 0, 1


def tree(name: str, *children: Any) -> dict[str, Any]:
    """A tree in which a text is a leaf."""
    return {"name": name, "children": [{"name": one} if isinstance(one, str) else one for one in children]}


EDUCATION_1 = Taxonomy.from_tree(
    tree(
        "ANY_Edu",
        tree("Secondary", tree("JuniorSec", "9th", "10th"), tree("SeniorSec", "11th", "12th")),
        tree("University", "Bachelors", tree("GradSchool", "Masters", "Doctorate")),
    )
)
EDUCATION_2 = Taxonomy.from_tree(tree("ANY_Edu", "8th", "9th", "10th"))
SEXES = Taxonomy.from_tree(tree("ANY_Sex", "M", "F"))


def hours_of(records: Sequence[Record]) -> list[int]:
    """The values of Work_Hrs, one per code."""
    return sorted({record[HOURS] for record in records})


def coded(
    records: Sequence[Record], education: Taxonomy, *, suppressed: bool = False, compressed: bool = False
) -> tuple[CodedTable, Any]:
    """A table and the class of each row: a row per record or, compressed, a row per class of each line."""
    hours = hours_of(records)
    mode = SplitMode.SUBSET if suppressed else SplitMode.MULTIWAY
    columns = (
        CodedColumn("Education", len(education.leaves), mode, False, np.zeros(len(education.leaves)), education),
        CodedColumn("Sex", 2, SplitMode.MULTIWAY, False, np.zeros(2), SEXES),
        CodedColumn("Work_Hrs", len(hours), SplitMode.ORDERED, False, np.array(hours, np.float64)),
    )
    rows: list[tuple[int, int, int, int, int]] = []
    for name, sex, hour, *numbers in records:
        place = education.leaf_position[name], SEXES.leaf_position[sex], hours.index(hour)
        for kind, number in enumerate(numbers):
            if number:
                rows += [(*place, kind, number)] if compressed else [(*place, kind, 1)] * number
    codes = tuple(np.array([row[index] for row in rows], code_dtype(columns[index].size)) for index in range(3))
    counts = np.array([row[4] for row in rows], np.uint32) if compressed else None
    return CodedTable(columns, codes, len(rows), counts), np.array([row[3] for row in rows])


TWO_REQUIREMENTS = (Requirement((EDUCATION, SEX), 4), Requirement((SEX, HOURS), 11))
"""Example 6."""
ONE_REQUIREMENT = (Requirement((EDUCATION, SEX, HOURS), 4),)
"""Example 5."""


def said(records: Sequence[Record], table: CodedTable, column: int, part: ColumnPart | None) -> str:
    """What a part is called in the paper."""
    if part is None or part.is_rest:
        return "⊥"
    if column == HOURS:
        values = hours_of(records)
        low = 1 if part.codes[0] == 0 else values[part.codes[0]]
        high = 99 if part.codes[-1] == len(values) - 1 else values[part.codes[-1] + 1]
        return f"[{low}-{high})"
    taxonomy = table.columns[column].taxonomy
    assert taxonomy is not None
    return taxonomy.names[part.node] if part.node is not None else taxonomy.leaves[part.codes[0]]


Masked = dict[tuple[str, ...], tuple[int, int]]


def masked(records: Sequence[Record], table: CodedTable, found: Refined, columns: Sequence[int]) -> Masked:
    """The masked table on some columns: how many records of class Y and N have each combination of values."""
    names = [
        {code: said(records, table, column, part) for part in found.parts[column] for code in part.codes}
        for column in range(3)
    ]
    counts: Counter[tuple[tuple[str, ...], int]] = Counter()
    for name, sex, hour, *numbers in records:
        education = table.columns[EDUCATION].taxonomy
        assert education is not None
        place = education.leaf_position[name], SEXES.leaf_position[sex], hours_of(records).index(hour)
        for kind, number in enumerate(numbers):
            counts[tuple(names[column][place[column]] for column in columns), kind] += number
    return {key: (counts[key, Y], counts[key, N]) for key, _ in counts}


def after(steps: int) -> Callable[[], bool]:
    """Stop when so many refinements were made."""
    asked = iter(range(steps + 1))
    return lambda: next(asked) == steps
