# SPDX-License-Identifier: Apache-2.0
"""Figures that do not depend on a purpose: counted by hand, and against plain loops on random regions and classes."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from cell_trees import recodings
from hypothesis import given
from hypothesis import strategies as st

import anonfit as af
from anonfit.engines.tree import LEAF, Tree
from anonfit.errors import DataError
from anonfit.evaluation.compared import released_nodes
from anonfit.metrics.groups import class_entropy, group_figures, sizes_of
from anonfit.metrics.losses import (
    Extent,
    common_extents,
    losses,
    observed_extents,
    places,
    stated_extents,
    unnamed_values,
)
from anonfit.metrics.registry import RecodedTable
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells, RecodedColumn
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Values
from anonfit.tables.scales import Scale
from anonfit.tables.schema import ColumnType
from anonfit.tables.taxonomy import Taxonomy

# --- sizes of groups --------------------------------------------------------------------------------------------


def test_sizes_of_groups_by_hand() -> None:
    found = group_figures(np.array([2, 3, 5]), k=2)
    assert (found.persons, found.groups, found.average, found.discernibility) == (10, 3, 10 / 3, 4 + 9 + 25)
    assert found.c_avg == 10 / 3 / 2


def test_withheld_persons_are_charged_with_the_whole_table() -> None:
    found = group_figures(np.array([2, 3]), k=2, withheld=4)
    # Nine persons in all: two groups, and four persons who cannot be told from any of the nine.
    assert found.discernibility == 4 + 9 + 4 * 9
    assert found.average == 2.5


def test_sizes_count_persons_and_leave_out_withheld_rows() -> None:
    groups = np.array([4, 4, -1, 7])
    assert sizes_of(groups).tolist() == [2, 1]
    assert sizes_of(groups, np.array([3, 2, 9, 1], np.uint32)).tolist() == [5, 1]
    assert sizes_of(np.array([-1, -1])).tolist() == []


def test_discernibility_is_exact_beyond_what_floats_hold() -> None:
    large = 3_000_000_001
    assert group_figures(np.array([large, 1]), k=1).discernibility == large * large + 1


# --- mixture of classes -----------------------------------------------------------------------------------------


def test_mixture_by_hand() -> None:
    # Groups (a a b b), (c c) and (a b c): 1, 0 and log2 3 bits.
    groups = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])
    classes = np.array([0, 0, 1, 1, 2, 2, 0, 1, 2])
    found = class_entropy("c", groups, classes)
    assert found.conditional_entropy == pytest.approx((4 * 1 + 2 * 0 + 3 * math.log2(3)) / 9)
    assert found.entropy == pytest.approx(2 * (3 / 9) * math.log2(9 / 3) + (3 / 9) * math.log2(3))
    assert found.classification_metric == pytest.approx((2 + 0 + 2) / 9)
    assert found.explained == pytest.approx(1 - found.conditional_entropy / found.entropy)


def test_withheld_rows_are_wrong_and_counts_are_persons() -> None:
    groups, classes = np.array([0, 0, -1, 1]), np.array([0, 1, 0, 1])
    found = class_entropy("c", groups, classes, counts=np.array([3, 1, 2, 4]), withheld=5)
    # Released: 3 of class 0 and 1 of class 1 in one group, 4 of class 1 in the other; 2 + 5 are withheld.
    inside = -(3 / 4) * math.log2(3 / 4) - (1 / 4) * math.log2(1 / 4)
    assert found.conditional_entropy == pytest.approx(4 / 8 * inside)
    assert found.classification_metric == pytest.approx((1 + 2 + 5) / 15)


def test_pure_groups_leave_nothing_open() -> None:
    found = class_entropy("c", np.array([0, 0, 1]), np.array([1, 1, 0]))
    assert found.conditional_entropy == 0.0
    assert found.classification_metric == 0.0
    assert found.explained == 1.0
    assert class_entropy("c", np.zeros(3, int), np.zeros(3, int)).explained == 0.0


@pytest.mark.parametrize("seed", range(30))
def test_mixture_equals_plain_counting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 80))
    groups, classes = rng.integers(-1, 6, rows), rng.integers(0, 4, rows)
    counts = rng.integers(1, 5, rows) if seed % 2 else np.ones(rows, np.int64)
    if (groups < 0).all():
        groups[0] = 0
    held: dict[int, Counter[int]] = {}
    for group, one, count in zip(groups.tolist(), classes.tolist(), counts.tolist(), strict=True):
        held.setdefault(group, Counter())[one] += count
    lost = held.pop(-1, Counter()).total()
    total = sum(found.total() for found in held.values())
    entropy = sum(
        -count / total * math.log2(count / found.total()) for found in held.values() for count in found.values()
    )
    wrong = sum(found.total() - max(found.values()) for found in held.values())
    measured = class_entropy("c", groups, classes, counts=counts)
    assert measured.conditional_entropy == pytest.approx(entropy, abs=1e-12)
    assert measured.classification_metric == pytest.approx((wrong + lost) / (total + lost))
    assert measured.conditional_entropy <= measured.entropy + 1e-12


# --- losses -----------------------------------------------------------------------------------------------------


def tiles(columns: list[RecodedColumn], column: int, starts: list[int]) -> Recoding:
    """A recoding that divides one column once, at these cells."""
    count = 1 + len(starts)
    numbers = np.array([column, *[LEAF] * len(starts)], np.int32)
    children = np.array([len(starts), *[0] * len(starts)], np.int32)
    none = np.full(count, -1, np.int32)
    return Recoding(tuple(columns), Tree(numbers, children, np.array([0, *starts], np.int32), none, none))


def age(*cuts: int, missing: bool = False, domain: tuple[int, ...] = ()) -> OrderedCells:
    return OrderedCells("age", ColumnType.CONTINUOUS, Scale.NUMBER, cuts, missing, domain)


PLACES = Taxonomy.from_tree(
    {
        "name": "*",
        "children": [
            {"name": "north", "children": [{"name": "Kiel"}, {"name": "Lund"}, {"name": "Oslo"}]},
            {"name": "Rome"},
        ],
    }
)


def test_intervals_are_measured_by_the_cuts_and_as_much_beyond() -> None:
    # < 20, [20, 30), ≥ 30: from 10 to 40.
    recoding = tiles([age(20, 30)], 0, [0, 1, 2])
    assert stated_extents(recoding) == {"age": Extent(10.0, 40.0)}
    found = losses(recoding, np.array([1, 2, 3, 3]))
    assert found.columns[0].ncp == found.columns[0].lm == pytest.approx(1 / 3)
    recoding = tiles([age(20, 30)], 0, [0, 1])  # < 20 and ≥ 20
    assert losses(recoding, np.array([1, 2, 2, 2])).gcp == pytest.approx((1 / 3 + 3 * 2 / 3) / 4)


def test_a_declared_domain_closes_the_ends() -> None:
    recoding = tiles([age(20, 30, domain=(0, 100))], 0, [0, 1, 2])
    assert losses(recoding, np.array([1])).gcp == pytest.approx(0.2)
    assert losses(recoding, np.array([3])).gcp == pytest.approx(0.7)


def test_other_extents_may_be_given() -> None:
    recoding = tiles([age(20, 30)], 0, [0, 1, 2])
    frame = pl.DataFrame({"age": [18, None, 38]})
    assert observed_extents(recoding, frame) == {"age": Extent(18.0, 38.0)}
    found = losses(recoding, np.array([1, 3]), extents=observed_extents(recoding, frame))
    assert found.gcp == pytest.approx((2 / 20 + 8 / 20) / 2)
    narrow = losses(recoding, np.array([1, 3]), extents={"age": Extent(25.0, 30.0)})
    assert narrow.gcp == 0.0  # both lie beyond what is measured
    assert losses(recoding, np.array([0]), extents={"age": Extent(25.0, 25.0)}).gcp == 1.0


def test_a_column_without_cuts_has_lost_everything() -> None:
    recoding = Recoding((age(), age(30)), Tree.single())
    assert [one.ncp for one in losses(recoding, np.array([0])).columns] == [1.0, 1.0]
    assert stated_extents(Recoding((age(),), Tree.single())) == {}


def test_releases_are_measured_alike_over_common_extents() -> None:
    fine, coarse = tiles([age(20, 30)], 0, [0, 1, 2]), tiles([age(30)], 0, [0, 1])
    common = common_extents([fine, coarse])
    assert common == {"age": Extent(0.0, 60.0)}
    # < 30 of the one is < 20 and [20, 30) of the other.
    assert losses(coarse, np.array([1]), extents=common).gcp == 0.5
    assert losses(fine, np.array([1]), extents=common).gcp == pytest.approx(1 / 3)


def test_dates_are_measured_in_days() -> None:
    column = OrderedCells("born", ColumnType.DATE, Scale.DATE, ("2000-01-01", "2000-01-11"), False)
    recoding = tiles([column], 0, [0, 1, 2])
    assert losses(recoding, np.array([2])).gcp == pytest.approx(1 / 3)
    frame = pl.DataFrame({"born": [date(1999, 12, 22), date(2000, 1, 31)]})
    extents = observed_extents(recoding, frame)
    assert extents["born"].high - extents["born"].low == 40
    assert losses(recoding, np.array([3]), extents=extents).gcp == pytest.approx(20 / 40)


def test_words_of_an_order_are_measured_in_ranks() -> None:
    column = OrdinalCells("stage", ("0", "I", "II", "III", "IV"), has_missing=False)
    found = losses(tiles([column], 0, [0, 1, 3]), np.array([1, 2, 3]))
    assert found.gcp == pytest.approx((0 + 1 / 4 + 1 / 4) / 3)
    assert losses(Recoding((OrdinalCells("x", ("only",), False),), Tree.single()), np.array([0])).gcp == 0.0


def test_names_are_counted_and_ncp_and_lm_count_them_differently() -> None:
    recoding = tiles([NominalCells("place", PLACES, has_missing=False)], 0, [0, 3])  # north, Rome
    found = losses(recoding, np.array([1, 2]))
    assert found.columns[0].ncp == pytest.approx((3 / 4 + 0) / 2)
    assert found.columns[0].lm == pytest.approx((2 / 3 + 0) / 2)
    assert losses(recoding, np.array([0])).columns[0].ncp == 1.0


def test_a_set_is_as_large_as_its_names_not_as_the_run_around_it() -> None:
    column = NominalCells("place", PLACES, has_missing=False)
    one = np.array([-1], np.int32)
    tree = Tree(
        np.array([0, LEAF, LEAF], np.int32),
        np.array([2, 0, 0], np.int32),
        np.array([0, 0, 0], np.int32),
        np.repeat(one, 3),
        np.array([0, -1, -1], np.int32),
        (np.array([0, 3], np.int32),),
    )
    found = losses(Recoding((column,), tree), np.array([1]))  # {Kiel, Rome}
    assert (found.columns[0].ncp, found.columns[0].lm) == (0.5, pytest.approx(1 / 3))


def flat(*names: str, other: str | None = None) -> NominalCells:
    leaves = [*names, *([other] if other else [])]
    tree = {"name": "*", "children": [{"name": name} for name in leaves]}
    return NominalCells("place", Taxonomy.from_tree(tree), has_missing=False, other=other)


def test_values_that_are_not_named_are_as_many_as_others_name() -> None:
    every = Recoding((flat("a", "b", "c", "d"),), Tree.single())
    some = tiles([flat("a", "b", other="other")], 0, [0, 2])  # {a, b} and other
    fewer = Recoding((flat("a", other="rare"),), Tree.single())
    assert unnamed_values([every, some, fewer]) == [{}, {"place": 2}, {"place": 3}]
    # Without a release that names all, there may be values that nobody names: they are one.
    assert unnamed_values([some, fewer]) == [{"place": 1}, {"place": 2}]
    assert unnamed_values([some]) == [{"place": 1}]
    found = losses(some, np.array([2]), unnamed={"place": 2})
    assert (found.columns[0].ncp, found.columns[0].lm) == (0.5, pytest.approx(1 / 3))
    assert losses(some, np.array([1]), unnamed={"place": 2}).columns[0].ncp == 0.5
    assert losses(some, np.array([2])).columns[0].ncp == 0.0
    assert losses(some, np.array([1])).columns[0].ncp == pytest.approx(2 / 3)


def test_values_that_are_not_named_are_found_in_sets() -> None:
    one = np.array([-1], np.int32)
    for chosen, ncp in (([0, 3], 3 / 5), ([0, 2], 2 / 5)):
        tree = Tree(
            np.array([0, LEAF, LEAF], np.int32),
            np.array([2, 0, 0], np.int32),
            np.array([0, 0, 0], np.int32),
            np.repeat(one, 3),
            np.array([0, -1, -1], np.int32),
            (np.array(chosen, np.int32),),
        )
        recoding = Recoding((flat("a", "b", "c", other="other"),), tree)
        assert losses(recoding, np.array([1]), unnamed={"place": 2}).gcp == pytest.approx(ncp)


def test_missing_is_a_name_of_a_nominal_column_and_no_width_of_an_ordered_one() -> None:
    recoding = tiles([NominalCells("place", PLACES, has_missing=True)], 0, [0, 1, 3])
    found = losses(recoding, np.array([1]))  # missing alone
    assert (found.gcp, found.lm) == (0.0, 0.0)
    assert losses(recoding, np.array([2])).columns[0].ncp == pytest.approx(2 / 5)
    recoding = tiles([age(20, 30, missing=True)], 0, [0, 1, 2, 3])
    assert losses(recoding, np.array([1])).gcp == 0.0
    recoding = tiles([age(20, 30, missing=True)], 0, [0, 2])  # missing or < 20
    assert losses(recoding, np.array([1])).gcp == pytest.approx(1 / 3)


def test_withheld_rows_have_lost_everything() -> None:
    recoding = tiles([age(20, 30)], 0, [0, 1, 2])
    assert losses(recoding, np.array([2, -1])).gcp == pytest.approx((1 / 3 + 1) / 2)
    assert losses(recoding, np.array([2]), withheld=2).gcp == pytest.approx((1 / 3 + 2) / 3)
    assert losses(recoding, np.array([2, -1]), counts=np.array([3, 1])).gcp == pytest.approx((3 / 3 + 1) / 4)


def plain_loss(column: RecodedColumn, cells: tuple[int, ...], extent: Extent | None) -> tuple[float, float]:
    """NCP and LM of a set of cells, word for word."""
    if isinstance(column, NominalCells):
        # Values none of which is named are two: one would be told.
        twice = list(column.taxonomy.leaves) == [column.other]
        held, size = len(cells) + (twice and column.size - 1 in cells), column.size + twice
        return 0.0 if held == 1 else held / size, 0.0 if size == 1 else (held - 1) / (size - 1)
    known = [cell - int(column.has_missing) for cell in cells if cell >= int(column.has_missing)]
    if not known:
        return 0.0, 0.0
    if isinstance(column, OrdinalCells):
        found = 0.0 if len(column.order) == 1 else (known[-1] - known[0]) / (len(column.order) - 1)
        return found, found
    assert isinstance(column, OrderedCells)
    if not column.cuts or extent is None:
        return 1.0, 1.0
    edges = [extent.low, *places(column.cuts, column.scale).tolist(), extent.high]
    found = (edges[known[-1] + 1] - edges[known[0]]) / (extent.high - extent.low)
    return found, found


@given(recoding=recodings(), data=st.data())
def test_losses_equal_plain_words_on_random_recodings(recoding: Recoding, data: st.DataObject) -> None:
    leaves = np.flatnonzero(recoding.tree.column == LEAF).tolist()
    nodes = data.draw(st.lists(st.sampled_from([*leaves, -1]), min_size=1, max_size=12))
    extents = stated_extents(recoding)
    found = losses(recoding, np.array(nodes))
    for index, column in enumerate(recoding.columns):
        each = [
            (1.0, 1.0) if node < 0 else plain_loss(column, recoding.boxes.cells(node, index), extents.get(column.name))
            for node in nodes
        ]
        expected = np.mean(np.array(each), axis=0).tolist()
        assert [found.columns[index].ncp, found.columns[index].lm] == pytest.approx(expected, abs=1e-9)
        assert -1e-12 <= found.columns[index].ncp <= 1 + 1e-12


# --- rows that are read back ------------------------------------------------------------------------------------


def people(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    return pl.DataFrame(
        {
            "age": [None if one < 22 else one for one in rng.integers(18, 80, rows).tolist()],
            "born": [date(1950 + int(year), 3, 1) for year in rng.integers(0, 50, rows)],
            "stage": [("0", "I", "II", "III")[one] for one in rng.integers(0, 4, rows)],
            "place": [("Kiel", "Lund", "Oslo", "Rome")[one] for one in rng.integers(0, 4, rows)],
            "group": [("a", "b", "c")[one] for one in rng.integers(0, 3, rows)],
            "outcome": [("yes", "no")[one] for one in rng.integers(0, 2, rows)],
        }
    )


WORDS: dict[str, Any] = {
    "quasi_identifiers": ["age", "born", "stage", "place", "group"],
    "k": 5,
    "targets": ["outcome"],
    "types": {"stage": "ordinal"},
    "orders": {"stage": ["0", "I", "II", "III"]},
    "taxonomies": {"place": PLACES},
}


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("values", ["labels", "bounds"])
def test_rows_of_a_file_are_in_the_regions_that_made_them(tmp_path: Path, values: str, kind: str) -> None:
    release = af.anonymize(people(), values=values, **WORDS)
    release.save(tmp_path / "out", format=kind)
    loaded = af.load(tmp_path / "out")
    nodes = released_nodes(loaded.recoding, loaded.data, Values(values))
    assert nodes is not None
    made = loaded.recoding.nodes(loaded.recoding.cells(people()))
    assert sorted(nodes.tolist()) == sorted(made.tolist())
    # Groups of released labels are the groups of nodes.
    columns = [name for name in loaded.data.columns if name != "outcome"]
    by_label = loaded.data.with_columns(node=pl.Series(nodes)).group_by(columns).agg(pl.col("node").n_unique())
    assert by_label["node"].to_list() == [1] * len(by_label)


def test_representatives_that_several_regions_share_tell_no_region() -> None:
    # Below 20 and from 20 on both have the representative 20.
    recoding = tiles([age(20)], 0, [0, 1])
    table = recoding.apply(pl.DataFrame({"age": [10, 30]}), values="representative")
    assert released_nodes(recoding, table, Values.REPRESENTATIVE) is None


def test_a_table_of_another_release_is_refused() -> None:
    recoding = tiles([age(20)], 0, [0, 1])
    with pytest.raises(DataError, match="not of one release"):
        released_nodes(recoding, pl.DataFrame({"age": ["< 20", "≥ 30"]}), Values.LABELS)
    with pytest.raises(DataError, match="no column 'age'"):
        released_nodes(recoding, pl.DataFrame({"years": ["< 20"]}), Values.LABELS)


def test_all_figures_together() -> None:
    recoding = tiles([age(20, 30)], 0, [0, 1, 2])
    nodes = np.array([1, 1, 2, 2, -1])
    found = RecodedTable(recoding, nodes, k=2, classes={"outcome": np.array([0, 1, 1, 1, 0])})
    assert found.groups.discernibility == 4 + 4 + 5
    assert found.losses.gcp == pytest.approx((4 / 3 + 1) / 5)
    assert found.targets[0].classification_metric == pytest.approx(2 / 5)
    assert found.groups.c_avg == 1.0
    with_withheld = RecodedTable(recoding, nodes[:4], k=2, classes={"outcome": np.array([0, 1, 1, 1])}, withheld=1)
    for name in ("groups", "losses", "targets"):
        assert getattr(with_withheld, name) == getattr(found, name)
    persons = RecodedTable(recoding, nodes, k=2, sizes=np.array([1, 2]))
    assert persons.groups.average == 1.5
