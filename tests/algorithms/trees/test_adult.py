# SPDX-License-Identifier: Apache-2.0
"""UCI Adult as PKDD 2006 has it: 30,162 training rows, the taxonomies of TKDE 2007, 15,060 raw test rows."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

from anonfit import Infeasible, KAnonymousTreeClassifier
from anonfit.errors import DataError
from anonfit_papers.datasets import ADULT
from anonfit_papers.datasets_adult import ADULT_COLUMNS, ADULT_TAXONOMIES, complete_adult
from anonfit_papers.purpose_tables import data_folder

NOMINAL = [name for name in ADULT_COLUMNS if name in ADULT_TAXONOMIES]
PREDICTORS = list(ADULT_COLUMNS[:-1])


@cache
def rows() -> tuple[pl.DataFrame, pl.DataFrame]:
    try:
        folder = data_folder()
    except DataError as error:
        pytest.skip(str(error))
    if not all((folder / source.path).is_file() for source in ADULT):
        pytest.skip(f"Adult is not in the data folder {folder}")
    found = complete_adult(folder)
    return found[:30_162], found[30_162:]


@cache
def grown(variant: str, k: int, confidence: float = 1.0) -> tuple[KAnonymousTreeClassifier, float]:
    """A classifier and its error on the test rows, in percent."""
    training, test = rows()
    names = NOMINAL if variant == "id3" else PREDICTORS
    taxonomies = {name: ADULT_TAXONOMIES[name] for name in NOMINAL}
    classifier = KAnonymousTreeClassifier(k, variant=variant, max_confidence=confidence, taxonomies=taxonomies)
    classifier.fit(training.select(names), training["class"])
    wrong = classifier.predict(test.select(names)) != test["class"].to_numpy()
    return classifier, 100 * float(wrong.mean())


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("k", "column", "sons"),
    [
        (10, "relationship", 6),
        (750, "relationship", 6),
        (889, "relationship", 6),
        (890, "marital-status", 3),
        (1000, "marital-status", 3),
    ],
)
def test_root_of_the_id3_variant(k: int, column: str, sons: int) -> None:
    tree = grown("id3", k)[0].tree_
    assert tree.columns[tree.nodes.column[0]] == column
    assert tree.nodes.children[0] == sons
    assert tree.k >= k


def test_error_drops_where_the_root_changes() -> None:
    assert grown("id3", 1000)[1] < grown("id3", 750)[1]


def test_marital_status_at_the_root_is_cut_in_three() -> None:
    tree = grown("id3", 1000)[0].tree_
    column = tree.tiling.columns[tree.nodes.column[0]]
    starts = [*tree.nodes.start[1:4].tolist(), column.size]
    labels = [column.label(range(starts[son], starts[son + 1])) for son in range(3)]
    assert labels == ["Partner-present", "Partner-absent", "Never-married"]


def test_exposure_of_the_class() -> None:
    certain = {
        (variant, k): grown(variant, k)[0].exposure()
        for variant, k in [("id3", 500), ("id3", 1000), ("c45", 10), ("c45", 75)]
    }
    shares = {key: found.certain_share for key, found in certain.items() if found is not None}
    assert shares["id3", 500] > 0
    assert shares["id3", 1000] == 0
    assert 0 < shares["c45", 10] < 0.005
    assert shares["c45", 75] == 0


def test_confidence_that_no_tree_can_keep() -> None:
    with pytest.raises(Infeasible, match=r"75\.11%.*at least 0\.7511"):
        grown("id3", 10, 0.751)
    assert grown("id3", 10, 0.7511)[0].tree_.spans.counts.max(axis=1).sum() <= 0.7511 * 30_162


def test_a_confidence_limit_bounds_what_spans_tell() -> None:
    classifier, error = grown("c45", 10, 0.85)
    found = classifier.exposure((0.85,))
    assert found is not None
    assert 0.8 < found.highest <= 0.85 + 1e-9
    assert error < 24.6


def test_errors_are_those_of_the_measurement() -> None:
    assert grown("id3", 100)[1] == pytest.approx(17.71, abs=0.3)
    assert grown("c45", 100)[1] == pytest.approx(14.92, abs=0.3)
