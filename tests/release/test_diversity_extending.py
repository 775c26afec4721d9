# SPDX-License-Identifier: Apache-2.0
"""A release of new data by a saved recoding withholds the regions whose new rows do not hold a demand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from diversity_counts import holds
from patients_table import DIAGNOSES, QUASI_IDENTIFIERS, REGIONS, patients

from anonfit.api import Release, anonymize, load
from anonfit.errors import Infeasible

K = 4
RAW = ["stage", "cost", "outcome"]
LINE = pl.DataFrame({"x": [1, 1, 2, 2, 8, 8, 9, 9], "s": ["a", "b"] * 4})


def line(model: dict[str, Any], **words: Any) -> Release:
    """Two groups, below and above 5."""
    found = anonymize(LINE, quasi_identifiers=["x"], k=4, sensitive={"s": model}, **words)
    assert sorted(set(found.data["x"].to_list())) == ["< 5", "≥ 5"]
    return found


def extended(release: Release, rows: list[tuple[int, str]], **columns: Any) -> Counter[Any]:
    """How many rows of new data are released with each label."""
    frame = pl.DataFrame(rows, schema=["x", "s"], orient="row").with_columns(**columns)
    return Counter(release.extend(frame, suppression_limit=1.0).data["x"].to_list())


LOW = [(1, "a"), (2, "b"), (1, "b"), (2, "a")]


def test_a_region_without_enough_values_is_withheld() -> None:
    release = line({"model": "distinct-l", "l": 2})
    assert extended(release, [*LOW, (8, "a"), (9, "b"), (8, "b"), (9, "b")]) == {"< 5": 4, "≥ 5": 4}
    assert extended(release, [*LOW, (8, "a"), (9, "a"), (8, "a"), (9, "a")]) == {"< 5": 4}
    assert extended(release, [*LOW, (8, "a"), (9, "b"), (8, "a")]) == {"< 5": 4}


def test_withheld_rows_are_counted() -> None:
    release = line({"model": "distinct-l", "l": 2})
    new = pl.DataFrame([*LOW, *[(8, "a")] * 5], schema=["x", "s"], orient="row")
    rows = release.extend(new, suppression_limit=1.0)._draft.rows
    assert (rows.read, rows.withheld, rows.released, rows.withheld_persons) == (9, 5, 4, 5)


def test_new_data_is_compared_with_what_is_left_of_it() -> None:
    release = line({"model": "t-closeness", "t": 0.2})
    high = [(8, "a"), (9, "b"), (8, "b"), (9, "a")]
    assert extended(release, [*LOW, *high]) == {"< 5": 4, "≥ 5": 4}
    # 4 a, 8 b in all. Below 5 there are 2:2, 1/6 away; above it 2:6, 1/12 away.
    assert extended(release, [*LOW, *high, *[(9, "b")] * 4]) == {"< 5": 4, "≥ 5": 8}
    # 10 a, 4 b in all. Below 5 there are 2:2, 3/14 away: they are withheld, and the rest is compared with itself.
    assert extended(release, [*LOW, *[(9, "a")] * 8, (8, "b"), (8, "b")]) == {"≥ 5": 10}


def test_persons_and_counts_are_those_of_the_new_data() -> None:
    table = LINE.with_columns(who=pl.Series([1, 2, 3, 4, 5, 6, 7, 8]))
    asked = {"model": "alpha-k", "alpha": 0.5}
    release = anonymize(table, quasi_identifiers=["x"], k=4, sensitive={"s": asked}, entity="who")
    rows = [*LOW, (1, "a"), (1, "a")]
    # Person 1 has a three times: it is a person with a. As six persons, four of whom have a, they are too alike.
    assert extended(release, rows, who=pl.Series([1, 2, 3, 4, 1, 1])) == {"< 5": 6}
    with pytest.raises(Infeasible):
        extended(release, rows, who=pl.Series([1, 2, 3, 4, 5, 6]))
    table = LINE.with_columns(many=pl.Series([1] * 8))
    release = anonymize(table, quasi_identifiers=["x"], k=4, sensitive={"s": asked}, count="many")
    assert extended(release, LOW, many=pl.Series([3, 1, 3, 1])) == {"< 5": 4}
    with pytest.raises(Infeasible):
        extended(release, LOW, many=pl.Series([3, 1, 1, 1]))


def test_nothing_is_released_where_no_region_holds_the_demand() -> None:
    release = line({"model": "distinct-l", "l": 2})
    with pytest.raises(Infeasible, match="nothing can be released"):
        extended(release, [(1, "a")] * 5)


def test_where_diversity_is_what_is_missing_the_sentence_does_not_blame_k() -> None:
    release = line({"model": "distinct-l", "l": 2})
    with pytest.raises(Infeasible) as told:
        extended(release, [(1, "a")] * 5)
    assert "no region has 4 persons" not in str(told.value)
    assert "distinct-l of 's'" in str(told.value)


# --- every model ------------------------------------------------------------------------------------------------

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "distinct": ("diagnosis", {"model": "distinct-l", "l": 3}, {}),
    "entropy": ("diagnosis", {"model": "entropy-l", "l": 3.2}, {}),
    "recursive": ("diagnosis", {"model": "recursive-cl", "c": 1.5, "l": 2}, {}),
    "equal": ("diagnosis", {"model": "t-closeness", "t": 0.25}, {}),
    "ordered": ("cost", {"model": "t-closeness", "t": 0.2, "distance": "ordered"}, {}),
    "hierarchical": (
        "diagnosis",
        {"model": "t-closeness", "t": 0.2, "distance": "hierarchical"},
        {"diagnosis": DIAGNOSES},
    ),
    "alpha": ("diagnosis", {"model": "alpha-k", "alpha": 0.4}, {}),
    "beta": ("diagnosis", {"model": "beta-likeness", "beta": 1.0}, {}),
    "delta": ("diagnosis", {"model": "delta-disclosure", "delta": 1.0}, {}),
    "squared error": ("cost", {"model": "squared-error", "error": 5000.0}, {}),
    "variance": ("cost", {"model": "variance", "variance": 400.0}, {}),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
def test_new_groups_hold_what_was_asked_and_a_loaded_release_extends_alike(case: str, tmp_path: Path) -> None:
    column, asked, taxonomies = CASES[case]
    raw = ["diagnosis", *RAW]
    release = anonymize(
        patients(),
        quasi_identifiers=QUASI_IDENTIFIERS,
        k=K,
        sensitive={column: asked},
        insensitive=[name for name in raw if name != column],
        taxonomies={"region": REGIONS, **taxonomies},
        release=raw,
    )
    new = patients(seed=9)
    found = release.extend(new, suppression_limit=1.0).data
    labels = release.recoding.apply(new).select(*QUASI_IDENTIFIERS, column).rows()
    whole = found[column].to_list()
    groups: dict[Any, list[Any]] = {}
    for *label, value in labels:
        groups.setdefault(tuple(label), []).append(value)
    kept = Counter(found.select(QUASI_IDENTIFIERS).rows())
    assert kept
    assert len(kept) < len(groups), "nothing is withheld"
    assert kept == {label: len(groups[label]) for label in kept}
    for label, values in groups.items():
        allowed = len(values) >= K and set(values) <= set(whole) and holds(values, whole, asked, tree=DIAGNOSES)
        # What is withheld may hold what is asked against the rows that are left; what is released must.
        assert allowed or label not in kept
        if asked["model"] not in ("t-closeness", "beta-likeness", "delta-disclosure"):
            assert allowed == (label in kept)
    again = load(release.save(tmp_path / "release")).extend(new, suppression_limit=1.0)
    assert again.data.rows() == found.rows()
