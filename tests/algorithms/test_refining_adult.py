# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement on Adult, generalizing and discretizing: split points and runs that were recomputed from the data.

The records are no part of the package; ANONFIT_DATA says where they are.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from adult_trees import TOP, adult, coded_adult

from anonfit.algorithms.demands import Requirement
from anonfit.algorithms.refining_columns import Refined
from anonfit.errors import DataError
from anonfit_papers.purpose_tables import data_folder
from refined_tables import refine


@cache
def frame() -> Any:
    try:
        folder = data_folder()
    except DataError as error:
        pytest.skip(f"the records of Adult are not here: {error}")
    found = adult(folder)
    assert len(found) == 45_222
    return found


@pytest.mark.parametrize(("suppression", "disclosed"), [("all", "Unmarried"), ("best_gain", "Never-married")])
def test_suppression_candidates_differ_on_the_five_first_attributes(suppression: Any, disclosed: str) -> None:
    table, classes, _ = coded_adult(frame(), TOP[:5], suppressed=True)
    found = refine(table, classes, [Requirement(tuple(range(5)), 500)], suppression=suppression)
    shown = [
        table.columns[one.column].taxonomy.leaves[one.into[0].codes[0]] for one in found.steps if one.refined is None
    ]  # type: ignore[union-attr]
    assert shown == ["Married-civ-spouse", disclosed]


def spoken(found: Refined, table: Any, values: dict[str, Any]) -> dict[str, list[Any]]:
    """What columns were refined into: the names of parts, or where intervals begin."""
    said: dict[str, list[Any]] = {}
    for column, parts in zip(table.columns, found.parts, strict=True):
        if len(parts) > 1 and column.name in values:
            said[column.name] = [int(values[column.name][part.codes[0]]) for part in parts[1:]]
        elif len(parts) > 1:
            said[column.name] = [column.taxonomy.names[part.node] for part in parts]
    return said


@pytest.mark.parametrize(("name", "split"), [("age", 28), ("education-num", 13), ("capital-gain", 7262)])
def test_first_split_points(name: str, split: int) -> None:
    table, classes, values = coded_adult(frame(), [name])
    step = refine(table, classes, [Requirement((0,), 1)]).steps[0]
    assert values[name][step.into[1].codes[0]] == split


MARRIED = ["Partner-present", "Partner-absent", "Never-married"]


@pytest.mark.parametrize(
    ("k", "anonymity", "groups", "result"),
    [
        (
            20,
            29,
            24,
            {"marital-status": MARRIED, "education-num": [13], "capital-gain": [7262], "hours-per-week": [42]},
        ),
        (60, 71, 12, {"marital-status": MARRIED, "education-num": [13], "capital-gain": [7262]}),
        (500, 691, 12, {"marital-status": MARRIED, "education-num": [13], "hours-per-week": [42]}),
    ],
)
def test_runs_on_the_seven_first_attributes(k: int, anonymity: int, groups: int, result: dict[str, Any]) -> None:
    table, classes, values = coded_adult(frame(), TOP)
    found = refine(table, classes, [Requirement(tuple(range(len(TOP))), k)])
    assert spoken(found, table, values) == result
    assert (found.anonymity, found.groups) == ((anonymity,), (groups,))
    assert [step.anonymity for step in found.steps][-1] == (anonymity,)
