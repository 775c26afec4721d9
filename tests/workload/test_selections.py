# SPDX-License-Identifier: Apache-2.0
"""Selections as disjoint rectangles of codes: they hold exactly the rows that SQL selects."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from itertools import combinations, pairwise

import numpy as np
import polars as pl
import pytest
from coded_tables import Case, coded
from random_predicates import KINDS, random_frame, random_tree, truth, written
from random_predicates import columns as random_columns

from anonfit.errors import SpecError
from anonfit.spec.model import SelectionSpec
from anonfit.tables.schema import Column, ColumnType, Domain, OrderedDomain, Role
from anonfit.tables.taxonomy import Taxonomy
from anonfit.workload.selections import code_selections, predicates_of
from anonfit.workload.truth import RawTable

QUASI, TARGET = Role.QUASI_IDENTIFIER, Role.TARGET


def where(text: str, weight: float = 1.0) -> SelectionSpec:
    return SelectionSpec(where=text, weight=weight)


def each(column: str, weight: float = 1.0) -> SelectionSpec:
    return SelectionSpec(each=column, weight=weight)


def of(case: Case) -> list[list[int]]:
    """The rectangles of a case, as rows of 0 and 1."""
    return case.selections.coded.rectangles.tolist()


PEOPLE = pl.DataFrame(
    {
        "age": [20, 30, 40, 50],
        "sex": ["F", "M", "F", None],
        "outcome": ["ill", "well", "ill", None],
    }
)
COLUMNS = [Column("age", QUASI), Column("sex", QUASI), Column("outcome", TARGET)]


# --- against SQL ------------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(30))
def test_rectangles_hold_exactly_the_rows_that_sql_selects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = random_frame(rng)
    trees = [random_tree(rng) for _ in range(20)]
    case = coded(frame, random_columns(), [where(written(tree)) for tree in trees])
    reached = case.reached()
    rows = list(frame.iter_rows(named=True))
    for selection, tree in enumerate(trees):
        expected = [truth(tree, row) is True for row in rows]
        # Exactly once: the rectangles that count for a row are disjoint.
        assert reached[:, selection].tolist() == expected, written(tree)


@pytest.mark.parametrize("seed", range(10))
def test_with_rare_values_no_row_is_left_out(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    frame = random_frame(rng)
    trees = [random_tree(rng) for _ in range(20)]
    case = coded(frame, random_columns(), [where(written(tree)) for tree in trees], k=8)
    reached = case.reached()
    assert reached.max() == 1
    rows = list(frame.iter_rows(named=True))
    for selection, tree in enumerate(trees):
        expected = np.array([truth(tree, row) is True for row in rows])
        assert (reached[expected, selection] == 1).all(), written(tree)


@pytest.mark.parametrize("seed", range(10))
def test_rectangles_hold_exactly_the_points_of_the_domain_that_satisfy_the_selection(seed: int) -> None:
    """Also of codes that no row has, where every value has a next one."""
    rng = np.random.default_rng(300 + seed)
    names = ["whole", "money", "day", "degree"]
    trees = [random_tree(rng, names=names) for _ in range(15)]
    given = [KINDS[name].column for name in names]
    frame = random_frame(rng, 6).select(names)
    case = coded(frame, given, [where(written(tree)) for tree in trees])
    coordinates = [rng.integers(0, size, 60) for size in case.sizes]
    points = Case(case.domains, coordinates, case.selections)
    reached = (points.within() @ (case.selections.coded.selection[:, None] == np.arange(15))).T
    for tree, found in zip(trees, reached, strict=True):
        expected = []
        for codes in zip(*coordinates, strict=True):
            row = dict(zip(names, (value_of(*pair) for pair in zip(case.domains, codes, strict=True)), strict=True))
            expected.append(truth(tree, row) is True)
        assert found.tolist() == expected, written(tree)


def value_of(domain: Domain, code: int) -> object:
    """What a code stands for."""
    if domain.has_missing and code == 0:
        return None
    rank = int(code) - domain.has_missing
    if not isinstance(domain, OrderedDomain):
        return domain.order[rank]  # type: ignore[union-attr]
    number = int(domain.values[rank])
    if domain.name == "day":
        return date(1970, 1, 1) + timedelta(days=number)
    return Decimal(number) / 100 if domain.name == "money" else number


def test_rectangles_of_a_selection_share_no_point_where_both_count() -> None:
    pairs = 0
    for seed in range(20):
        rng = np.random.default_rng(200 + seed)
        trees = [random_tree(rng) for _ in range(10)]
        case = coded(random_frame(rng), random_columns(), [where(written(tree)) for tree in trees])
        found = case.selections.coded
        edges = np.cumsum([0, *case.sizes])
        for one, other in combinations(range(len(found.selection)), 2):
            both = found.applies[:, one] & found.applies[:, other]
            if found.selection[one] == found.selection[other] and both.any():
                shared = found.rectangles[one] & found.rectangles[other]
                assert any(not shared[low:high].any() for low, high in pairwise(edges))
                pairs += 1
    assert pairs > 50, pairs


# --- by hand ----------------------------------------------------------------------------------------------------


def test_a_conjunction_is_one_rectangle() -> None:
    case = coded(PEOPLE, COLUMNS, [where("age >= 25 and sex = 'F'", 2.0)])
    # Ages 20, 25 (a face), 30, 40, 50; then sex: missing, F, M.
    assert of(case) == [[0, 1, 1, 1, 1, 0, 1, 0]]
    found = case.selections.coded
    assert found.selection.tolist() == [0]
    assert found.weights.tolist() == [2.0]
    assert found.signatures.tolist() == [0, 0, 0, 0]
    assert found.applies.tolist() == [[1]]
    assert found.names == ("age >= 25 and sex = 'F'",)
    assert found.boundaries.tolist() == [0, 1, 0, 0, 0, 0, 0, 0]


def test_a_disjunction_is_what_the_parts_before_leave_over() -> None:
    case = coded(PEOPLE, COLUMNS, [where("age >= 40 or sex = 'F'")])
    assert of(case) == [[0, 0, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 1, 0]] or of(case) == [
        [1, 1, 1, 1, 0, 1, 0],
        [0, 0, 1, 1, 1, 0, 1],
    ]
    assert case.reached()[:, 0].tolist() == [1, 0, 1, 1]


def test_parts_over_one_column_are_one_set() -> None:
    case = coded(PEOPLE, COLUMNS, [where("age = 20 or sex = 'F' and age < 60 or age = 50 or age = 30")])
    assert len(of(case)) == 2
    assert len(of(coded(PEOPLE, COLUMNS, [where("age = 20 or age = 50 or age < 25")]))) == 1
    assert len(of(coded(PEOPLE, COLUMNS, [where("sex = 'F' and age < 25 or sex = 'M' and age < 25")]))) == 1


def test_everything_is_one_rectangle_and_nothing_is_none() -> None:
    requests = [
        where("age >= 0"),
        where("age < 0"),
        where("age > 20 and age < 20"),
        where("sex is null or sex is not null"),
    ]
    case = coded(PEOPLE, COLUMNS, requests)
    assert case.selections.coded.selection.tolist() == [0, 3]
    assert np.array(of(case)).min() == 1


def test_a_raw_part_says_for_which_rows_a_rectangle_counts() -> None:
    case = coded(PEOPLE, COLUMNS, [where("age >= 30 and outcome = 'ill'"), where("outcome is null"), where("age < 30")])
    found = case.selections.coded
    assert found.selection.tolist() == [0, 1, 2]
    # Signatures: ill, well, missing, in some order.
    assert sorted(np.unique(found.signatures, return_counts=True)[1].tolist()) == [1, 1, 2]
    by_row = found.applies[found.signatures]
    assert by_row[:, 0].tolist() == [1, 0, 1, 0]
    assert by_row[:, 1].tolist() == [0, 0, 0, 1]
    assert by_row[:, 2].tolist() == [1, 1, 1, 1]
    assert of(case)[1] == [1] * 7
    assert case.reached().tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_raw_and_coded_parts_joined_by_or_stay_disjoint() -> None:
    case = coded(PEOPLE, COLUMNS, [where("age >= 40 or outcome = 'ill' or sex = 'M' and outcome = 'well'")])
    assert case.reached()[:, 0].tolist() == [1, 1, 1, 1]
    counts = case.selections.coded.applies.sum(axis=1)
    assert sorted(counts.tolist()) == [1, 1, 2]  # ill: everything; missing: one rectangle; well: two


def test_raw_parts_that_split_rows_alike_make_few_signatures() -> None:
    frame = pl.DataFrame({"x": [1] * 6, "cost": [1.0, 2.0, 3.0, 4.0, 5.0, None]})
    case = coded(frame, [Column("x", QUASI), Column("cost", TARGET)], [where("cost between 2 and 4 and x = 1")])
    assert case.selections.coded.signatures.max() == 1
    assert case.reached()[:, 0].tolist() == [0, 1, 1, 1, 0, 0]


def test_without_quasi_identifiers_in_it_a_selection_is_exact() -> None:
    case = coded(PEOPLE, COLUMNS, [where("outcome <> 'well'")])
    assert of(case) == [[1] * 7]
    assert case.reached()[:, 0].tolist() == [1, 0, 1, 0]


# --- faces ------------------------------------------------------------------------------------------------------


def test_cuts_at_faces_are_marked_by_the_code_above_them() -> None:
    frame = pl.DataFrame({"x": [0, 10, 20, None], "y": [0.0, 1.0, 2.0, 3.0]})
    given = [Column("x", QUASI), Column("y", QUASI)]
    case = coded(frame, given, [where("x between 5 and 10"), where("y <= 1 or y > 2.5")])
    # x: missing, 0, 5, 10, 11, 20; y: 0, 1, 2, 2.5, 3. A cut above 1 may lie anywhere below 2.
    assert case.selections.coded.boundaries.tolist() == [0, 0, 1, 0, 1, 0] + [0, 0, 0, 1, 0]
    assert of(case)[0] == [0, 0, 1, 1, 0, 0] + [1] * 5
    assert of(case)[1] == [1] * 6 + [1, 1, 0, 1, 1]


def test_an_end_that_rows_have_is_exact_on_a_dense_axis() -> None:
    frame = pl.DataFrame({"gain": [0.0, 0.0, 0.0, 5.5, 7.25]})
    case = coded(frame, [Column("gain", QUASI)], [where("gain > 0"), where("gain <= 0"), where("gain > 5.5")])
    assert of(case) == [[0, 1, 1], [1, 0, 0], [0, 0, 1]]
    assert case.selections.coded.boundaries.tolist() == [0, 0, 0]


def test_an_end_that_no_row_has_is_parted_by_a_cut_at_it() -> None:
    frame = pl.DataFrame({"gain": [3.0, 9.0]})
    case = coded(frame, [Column("gain", QUASI)], [where("gain > 5.5"), where("gain <= 5.5")])
    assert of(case) == [[0, 1, 1], [1, 0, 0]]
    assert case.selections.coded.boundaries.tolist() == [0, 1, 0]


# --- each -------------------------------------------------------------------------------------------------------


def test_each_value_of_a_quasi_identifier() -> None:
    case = coded(PEOPLE, COLUMNS, [each("sex", 3.0)])
    found = case.selections.coded
    assert found.names == ("sex IS NULL", "sex = 'F'", "sex = 'M'")
    assert found.weights.tolist() == [3.0, 3.0, 3.0]
    assert found.rectangles[:, 4:].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert RawTable(PEOPLE).count(case.selections.predicates).tolist() == [1, 2, 1]


def test_each_value_of_a_raw_column() -> None:
    case = coded(PEOPLE, COLUMNS, [each("outcome")])
    found = case.selections.coded
    assert found.names == ("outcome IS NULL", "outcome = 'ill'", "outcome = 'well'")
    assert case.reached().tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]


def test_each_number_and_date_adds_no_faces() -> None:
    frame = pl.DataFrame({"n": [7, 3, 3], "day": [date(2020, 1, 2), None, date(2020, 1, 1)], "c 1": [0.5, 0.25, 0.5]})
    given = [Column("n", QUASI), Column("day", QUASI), Column("c 1", TARGET)]
    case = coded(frame, given, [each("n"), each("day"), each("c 1")])
    assert case.sizes == [2, 3]
    assert case.selections.coded.boundaries.tolist() == [0] * 5
    assert case.selections.coded.names == (
        "n = 3",
        "n = 7",
        "day IS NULL",
        "day = '2020-01-01'",
        "day = '2020-01-02'",
        '"c 1" = 0.25',
        '"c 1" = 0.5',
    )
    assert RawTable(frame).count(case.selections.predicates).tolist() == [2, 1, 1, 1, 1, 1, 2]


def test_each_leaf_that_rows_have() -> None:
    fruit = Taxonomy.from_tree(
        {"name": "*", "children": [{"name": "pome", "children": [{"name": "apple"}]}, {"name": "plum"}]}
    )
    frame = pl.DataFrame({"x": ["plum", "plum"], "y": ["it's", "b"], "z": ["s", "l"], "t": [True, False]})
    given = [
        Column("x", QUASI, taxonomy=fruit),
        Column("y", QUASI),
        Column("z", QUASI, ColumnType.ORDINAL, order=("l", "m", "s")),
        Column("t", QUASI, taxonomy=Taxonomy.flat(["True", "False"])),
    ]
    case = coded(frame, given, [each("x"), each("y"), each("z"), each("t")])
    assert case.selections.coded.names == (
        "x = 'plum'",
        "y = 'b'",
        "y = 'it''s'",
        "z = 'l'",
        "z = 's'",
        "t = 'True'",
        "t = 'False'",
    )
    assert case.reached().sum(axis=0).tolist() == [2, 1, 1, 1, 1, 1, 1]


def test_each_interval_of_a_taxonomy_over_numbers() -> None:
    frame = pl.DataFrame({"age": [5, 15, 16]})
    ages = Column("age", QUASI, taxonomy=Taxonomy.flat(["< 10", "[10, 20)", "≥ 20"]))
    case = coded(frame, [ages], [each("age")])
    assert case.selections.coded.names == ("age = '< 10'", "age = '[10, 20)'")
    assert RawTable(frame).count(case.selections.predicates).tolist() == [1, 2]


def test_values_too_rare_to_be_named_are_one_selection() -> None:
    frame = pl.DataFrame({"x": [*"aaabbbcd", None]})
    case = coded(frame, [Column("x", QUASI)], [each("x")], k=3)
    assert case.selections.coded.names[-1] == "x is none of its frequent values"
    assert case.selections.coded.rectangles.tolist() == np.eye(4, dtype=int).tolist()
    assert RawTable(frame).count(case.selections.predicates).tolist() == [1, 3, 3, 2]
    namesake = pl.DataFrame({"x": [*"aaa", "other", "", "b"]})
    case = coded(namesake, [Column("x", QUASI)], [each("x")], k=3)
    assert RawTable(namesake).count(case.selections.predicates).tolist() == [3, 3]
    numbers = pl.DataFrame({"x": [1, 1, 1, 2, 3]})
    case = coded(numbers, [Column("x", QUASI, ColumnType.NOMINAL)], [each("x")], k=3)
    assert RawTable(numbers).count(case.selections.predicates).tolist() == [3, 2]


# --- faults -----------------------------------------------------------------------------------------------------


def test_all_faults_are_told_together_with_their_places() -> None:
    requests = [where("agee > 5"), where("age > 5"), each("sez"), where("lower(sex) = 'f'"), SelectionSpec()]
    with pytest.raises(SpecError) as caught:
        predicates_of(requests, COLUMNS, PEOPLE)
    assert [fault.split(":")[0] for fault in caught.value.faults[:3]] == [
        "workload.selections[0]",
        "workload.selections[2]",
        "workload.selections[3]",
    ]
    assert caught.value.faults[3].startswith("workload.selections[4] must have either a where or an each")
    assert "did you mean 'sex'?" in caught.value.faults[1]


def test_each_needs_a_column_that_is_released() -> None:
    given = [Column("age", QUASI), Column("sex", Role.ENTITY), Column("outcome", TARGET)]
    with pytest.raises(SpecError, match="not released"):
        predicates_of([each("sex")], given, PEOPLE)
    lists = PEOPLE.with_columns(outcome=pl.Series([[1], [2], [3], [4]]))
    with pytest.raises(SpecError, match="holds neither numbers"):
        predicates_of([each("outcome")], given, lists)


def test_values_that_no_row_has_are_warned_of() -> None:
    ward = Column("ward", QUASI, domain=("north", "south"))
    frame = PEOPLE.with_columns(ward=pl.lit("north"))
    requests = [where("sex = 'X' or age = 99"), where("ward = 'south'"), where("outcome <> 'dead'")]
    found = coded(frame, [*COLUMNS, ward], requests).selections.warnings
    assert [warning.split(";")[0] for warning in found] == [
        "workload.selections[0]: no row has sex = 'X'",
        "workload.selections[2]: no row has outcome = 'dead'",
    ]


def test_too_many_values_or_rectangles_are_refused() -> None:
    many = pl.DataFrame({"x": range(10_001), "y": range(10_001)})
    given = [Column("x", QUASI), Column("y", TARGET)]
    with pytest.raises(SpecError, match=r"workload.selections\[0\]: column 'x' has 10,001 values"):
        coded(many, given, [each("x")])
    half = many.head(6000)
    with pytest.raises(SpecError, match="12,000 selections"):
        coded(half, given, [each("x"), each("y")])
    # Two rectangles by each of fourteen pairs of columns.
    names = [f"c{number}" for number in range(28)]
    text = " and ".join(f"({one} = 0 or {other} = 0)" for one, other in zip(names[::2], names[1::2], strict=True))
    wide = pl.DataFrame({name: [0, 1] for name in names})
    with pytest.raises(SpecError, match=r"workload.selections\[0\]: it needs more than 10,000 rectangles"):
        coded(wide, [Column(name, QUASI) for name in names], [where(text)])


def test_rectangles_that_need_too_much_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonfit.workload.coding.LARGEST", 20)
    assert len(of(coded(PEOPLE, COLUMNS, [where("age >= 30"), where("sex = 'F'")]))) == 2
    with pytest.raises(SpecError, match=r"\('age' has 4\); ask for fewer, or round its values"):
        coded(PEOPLE, COLUMNS, [where("age >= 30"), where("sex = 'F'"), where("sex = 'M'")])


def test_many_selections_are_coded_in_time() -> None:
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"x": rng.integers(0, 2000, 20_000), "y": rng.integers(0, 1500, 20_000)})
    case = coded(frame, [Column("x", QUASI), Column("y", TARGET)], [each("x"), each("y")])
    assert case.selections.coded.signatures.max() + 1 == frame["y"].n_unique()
    assert len(case.selections.coded.selection) == frame["x"].n_unique() + frame["y"].n_unique()


def test_a_table_without_selections() -> None:
    found = code_selections([], COLUMNS, [], PEOPLE).coded
    assert found.rectangles.shape == (0, 0)
    assert found.applies.shape == (1, 0)
