# SPDX-License-Identifier: Apache-2.0
"""Every number of examples 1 to 8 and of tables 1 and 2 of the paper on top-down refinement, and the runs they begin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from paper_tables import (
    EDUCATION,
    EDUCATION_1,
    EDUCATION_2,
    HOURS,
    ONE_REQUIREMENT,
    SEX,
    TABLE_1,
    TABLE_2,
    TWO_REQUIREMENTS,
    Record,
    after,
    coded,
    masked,
    said,
)

from anonfit.algorithms.demands import Requirement
from anonfit.algorithms.refining_columns import Reason, Refined
from anonfit.criteria.refinement import entropy
from anonfit.tables.schema import CodedTable
from refined_tables import refine

TABLES = {1: (TABLE_1, EDUCATION_1), 2: (TABLE_2, EDUCATION_2)}


class Run:
    """A run on a table of the paper, in the paper's words."""

    def __init__(self, number: int, asked: Any, *, steps: int | None = None, suppressed: bool = False, **options: Any):
        self.records: list[Record] = TABLES[number][0]
        compressed = options.pop("compressed", False)
        table, classes = coded(*TABLES[number], suppressed=suppressed, compressed=compressed)
        self.table: CodedTable = table
        if steps is not None:
            options["stop"] = after(steps)
        self.found: Refined = refine(table, classes, asked, **options)

    def steps(self) -> list[tuple[Any, ...]]:
        """What was refined into what, with InfoGain, AnonyLoss and Score as the paper rounds them."""
        return [
            (
                said(self.records, self.table, one.column, one.refined),
                "|".join(said(self.records, self.table, one.column, part) for part in one.into),
                round(one.gain, 4),
                one.loss,
                round(one.score, 4),
            )
            for one in self.found.steps
        ]

    def candidates(self) -> dict[str, tuple[float, float, float]]:
        """InfoGain, AnonyLoss and Score of what may be refined next."""
        return {
            said(self.records, self.table, one.column, one.part): (
                round(one.gain, 4),
                one.loss,
                round(one.gain / (one.loss + 1), 4),
            )
            for one in self.found.left
            if one.loss is not None
        }

    def masked(self, *columns: int) -> Any:
        return masked(self.records, self.table, self.found, columns)

    def sizes(self, *columns: int) -> dict[tuple[str, ...], int]:
        return {key: sum(counts) for key, counts in self.masked(*columns).items()}

    def reasons(self) -> dict[str, Reason]:
        return {said(self.records, self.table, one.column, one.part): one.reason for one in self.found.left}


# --- table 1 ----------------------------------------------------------------------------------------------------


def test_table_1_and_example_1() -> None:
    assert (sum(one[3] for one in TABLE_1), sum(one[4] for one in TABLE_1)) == (21, 13)
    long = [one for one in TABLE_1 if one[HOURS] >= 37]
    assert (sum(one[3] for one in long), sum(one[4] for one in long)) == (19, 3)


def test_example_2_groups_of_fewer_than_four() -> None:
    sizes: dict[tuple[str, str], int] = {}
    for education, sex, _, yes, no in TABLE_1:
        sizes[education, sex] = sizes.get((education, sex), 0) + yes + no
    small = {key: size for key, size in sizes.items() if size < 4}
    assert small == {("9th", "M"): 3, ("Masters", "F"): 3, ("Doctorate", "F"): 1}


def test_example_3_the_cut_of_figure_2_is_maximal() -> None:
    run = Run(1, [Requirement((EDUCATION, SEX), 4), Requirement((HOURS,), 34)])
    assert run.sizes(EDUCATION, SEX) == {
        ("JuniorSec", "M"): 7,
        ("11th", "M"): 5,
        ("12th", "F"): 4,
        ("Bachelors", "F"): 10,
        ("GradSchool", "M"): 4,
        ("GradSchool", "F"): 4,
    }
    assert run.found.anonymity == (4, 34)
    # Neither would tell anything: juniors are all N, graduates all Y.
    assert run.reasons()["JuniorSec"] == run.reasons()["GradSchool"] == Reason.ONE_CLASS
    assert run.masked(EDUCATION)["JuniorSec",] == (0, 7)
    assert run.masked(EDUCATION)["GradSchool",] == (8, 0)


def test_example_3_neither_is_valid_even_if_it_told_something() -> None:
    asked = [Requirement((EDUCATION, SEX), 4), Requirement((HOURS,), 34)]
    cut = Run(1, asked).found.parts
    table, _ = coded(TABLE_1, EDUCATION_1)
    found = refine(table, np.arange(table.rows) % 2, asked, start=cut)
    assert not [step for step in found.steps if step.column == EDUCATION]
    reasons = {said(TABLE_1, table, one.column, one.part): one.reason for one in found.left}
    assert reasons["JuniorSec"] == reasons["GradSchool"] == Reason.FEW_PERSONS


def test_example_4_entropies() -> None:
    assert [round(entropy(counts), 4) for counts in ([21, 13], [5, 11], [16, 2])] == [0.9597, 0.8960, 0.5033]


@pytest.mark.parametrize("compressed", [False, True])
def test_examples_4_and_6_the_first_candidates(compressed: bool) -> None:
    run = Run(1, TWO_REQUIREMENTS, steps=0, compressed=compressed)
    assert run.candidates() == {
        "ANY_Edu": (0.2716, 18, 0.0143),
        "ANY_Sex": (0.1664, 18, 0.0088),
        "[1-99)": (0.3584, 22, 0.0156),
    }
    assert run.found.anonymity == (34, 34)
    assert run.found.is_stopped


def test_the_first_candidates_with_losses_over_all_requirements() -> None:
    run = Run(1, TWO_REQUIREMENTS, steps=0, average="all")
    assert run.candidates() == {
        "ANY_Edu": (0.2716, 9, 0.0272),
        "ANY_Sex": (0.1664, 18, 0.0088),
        "[1-99)": (0.3584, 11, 0.0299),
    }


def test_examples_7_and_8_partitions_after_two_refinements() -> None:
    first = Run(1, TWO_REQUIREMENTS, steps=1)
    assert first.sizes(SEX, HOURS) == {("ANY_Sex", "[1-37)"): 12, ("ANY_Sex", "[37-99)"): 22}
    assert first.sizes(EDUCATION, SEX) == {("ANY_Edu", "ANY_Sex"): 34}
    assert first.found.anonymity == (34, 12)
    second = Run(1, TWO_REQUIREMENTS, steps=2)
    # University with fewer than 37 hours is empty.
    assert second.sizes(EDUCATION, HOURS) == {
        ("Secondary", "[1-37)"): 12,
        ("Secondary", "[37-99)"): 4,
        ("University", "[37-99)"): 18,
    }
    assert second.sizes(EDUCATION, SEX) == {("Secondary", "ANY_Sex"): 16, ("University", "ANY_Sex"): 18}
    assert second.found.anonymity == (16, 12)
    assert [step.anonymity for step in second.found.steps] == [(34, 12), (16, 12)]


STEPS = [
    ("[1-99)", "[1-37)|[37-99)", 0.3584, 22, 0.0156),
    ("ANY_Edu", "Secondary|University", 0.2716, 18, 0.0143),
    ("Secondary", "JuniorSec|SeniorSec", 0.3386, 9, 0.0339),
    ("University", "Bachelors|GradSchool", 0.1022, 0, 0.1022),
    ("SeniorSec", "11th|12th", 0.0911, 3, 0.0228),
]


@pytest.mark.parametrize("compressed", [False, True])
def test_the_whole_run_of_example_6(compressed: bool) -> None:
    run = Run(1, TWO_REQUIREMENTS, compressed=compressed)
    assert run.steps() == STEPS
    assert run.masked(EDUCATION, SEX) == {
        ("JuniorSec", "ANY_Sex"): (0, 7),
        ("11th", "ANY_Sex"): (2, 3),
        ("12th", "ANY_Sex"): (3, 1),
        ("Bachelors", "ANY_Sex"): (8, 2),
        ("GradSchool", "ANY_Sex"): (8, 0),
    }
    assert run.sizes(HOURS) == {("[1-37)",): 12, ("[37-99)",): 22}
    assert (run.found.anonymity, run.found.groups, run.found.is_stopped) == ((4, 12), (5, 2), False)
    assert run.reasons() == {
        "JuniorSec": Reason.ONE_CLASS,
        "GradSchool": Reason.ONE_CLASS,
        "ANY_Sex": Reason.FEW_PERSONS,
        "[1-37)": Reason.FEW_PERSONS,
        "[37-99)": Reason.FEW_PERSONS,
    }


def test_losses_over_all_requirements_give_the_same_refinements() -> None:
    run = Run(1, TWO_REQUIREMENTS, average="all")
    assert [step[:3] for step in run.steps()] == [step[:3] for step in STEPS]
    assert [step[3:] for step in run.steps()] == [(11, 0.0299), (9, 0.0272), (4.5, 0.0616), (0, 0.1022), (1.5, 0.0364)]


def test_the_next_intervals_of_table_1() -> None:
    run = Run(1, [Requirement((EDUCATION,), 34), Requirement((SEX,), 34), Requirement((HOURS,), 1)])
    splits = {step[0]: step[1:3] for step in run.steps()}
    assert splits["[1-37)"] == ("[1-35)|[35-37)", 0.2455)
    assert splits["[37-99)"] == ("[37-44)|[44-99)", 0.1740)


# --- table 2 ----------------------------------------------------------------------------------------------------


def test_table_2b_statistics_of_the_most_masked_table() -> None:
    assert Run(2, ONE_REQUIREMENT, steps=0).candidates() == {
        "ANY_Edu": (0.6100, 36, 0.0165),
        "ANY_Sex": (0.4934, 26, 0.0183),
        "[1-99)": (0.3958, 28, 0.0136),
    }


def test_table_2c_infogain_alone() -> None:
    run = Run(2, ONE_REQUIREMENT, criterion="infogain")
    assert run.steps() == [("ANY_Edu", "8th|9th|10th", 0.6100, 36, 0.0165)]
    assert run.masked(EDUCATION, SEX, HOURS) == {
        ("10th", "ANY_Sex", "[1-99)"): (20, 4),
        ("9th", "ANY_Sex", "[1-99)"): (0, 12),
        ("8th", "ANY_Sex", "[1-99)"): (0, 4),
    }
    assert run.found.anonymity == (4,)
    assert run.reasons() == {"ANY_Sex": Reason.FEW_PERSONS, "[1-99)": Reason.FEW_PERSONS}


def test_table_2d_the_first_refinement_by_score() -> None:
    run = Run(2, ONE_REQUIREMENT, steps=1)
    assert run.masked(SEX) == {("M",): (20, 6), ("F",): (0, 14)}
    assert run.found.anonymity == (14,)
    # Male 9th would be two records.
    assert run.reasons() == {"ANY_Edu": Reason.FEW_PERSONS, "[1-99)": Reason.STOPPED}


@pytest.mark.parametrize("compressed", [False, True])
def test_table_2e_the_whole_run_by_score(compressed: bool) -> None:
    run = Run(2, ONE_REQUIREMENT, compressed=compressed)
    assert run.steps() == [
        ("ANY_Sex", "M|F", 0.4934, 26, 0.0183),
        ("[1-99)", "[1-40)|[40-99)", 0.3958, 8, 0.0440),
    ]
    assert run.masked(EDUCATION, SEX, HOURS) == {
        ("ANY_Edu", "M", "[40-99)"): (20, 0),
        ("ANY_Edu", "M", "[1-40)"): (0, 6),
        ("ANY_Edu", "F", "[40-99)"): (0, 8),
        ("ANY_Edu", "F", "[1-40)"): (0, 6),
    }
    assert [step.anonymity for step in run.found.steps] == [(14,), (6,)]


def test_education_suppressed_instead_of_generalized() -> None:
    found = Run(2, ONE_REQUIREMENT, steps=0, suppressed=True).candidates()
    assert {name: found[name] for name in ("10th", "9th", "8th")} == {
        "10th": (0.6100, 24, 0.0244),
        "9th": (0.3958, 28, 0.0136),
        "8th": (0.1080, 36, 0.0029),
    }
    run = Run(2, ONE_REQUIREMENT, suppressed=True)
    assert run.steps()[0] == ("⊥", "10th", 0.6100, 24, 0.0244)
    assert [part.is_rest for part in run.found.parts[EDUCATION]] == [False, True]
    assert run.masked(EDUCATION) == {("10th",): (20, 4), ("⊥",): (0, 16)}


def test_entropy_of_nothing_is_zero() -> None:
    assert entropy(np.zeros(3, np.int64)) == 0.0
