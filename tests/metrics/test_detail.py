# SPDX-License-Identifier: Apache-2.0
"""How much detail regions leave of a column: by hand, and against a plain reading of the labels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.metrics import detail
from anonfit.metrics.detail import ROUNDS, SPANS, details
from anonfit.recoding.recoding import Recoding


def held(recoding: Recoding, frame: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(recoding.nodes(recoding.cells(frame)), return_counts=True)


def recoded(frame: pl.DataFrame, k: int, **words: object) -> Recoding:
    return af.anonymize(frame, quasi_identifiers=frame.columns, k=k, **words).recoding  # type: ignore[arg-type]


def test_a_column_cut_in_two_halves_rules_out_half() -> None:
    frame = pl.DataFrame({"age": [20] * 10 + [60] * 10})
    recoding = recoded(frame, 10)
    (found,) = details(recoding, *held(recoding, frame))
    assert (found.labels, found.ruled_out, found.at_most, found.kept) == (2, 0.5, 1.0, 0.5)
    assert found.spans == (0, 0, 20, 0, 0)
    assert found.frequent_persons == 10
    assert found.shares.tolist() == [0.5, 0.5]


def test_a_name_that_stands_alone_is_kept_whole() -> None:
    frame = pl.DataFrame({"sex": ["f"] * 15 + ["m"] * 5})
    recoding = recoded(frame, 5)
    (found,) = details(recoding, *held(recoding, frame))
    assert found.ruled_out == pytest.approx(1 - (0.75**2 + 0.25**2))
    assert found.kept == pytest.approx(1.0)
    assert (found.frequent_label, found.frequent_persons) == ("f", 15)


def test_a_column_that_is_not_divided_tells_nothing() -> None:
    frame = pl.DataFrame({"age": [20, 30, 40, 50]})
    recoding = recoded(frame, 4)
    (found,) = details(recoding, *held(recoding, frame))
    assert (found.ruled_out, found.kept, found.spans, found.frequent_label) == (0.0, 0.0, (0, 0, 0, 0, 4), "*")


def test_labels_that_overlap_are_spread_as_is_likeliest() -> None:
    # 30 persons are in cell 0, 10 in cell 1, 40 in either: the likeliest shares are three and one quarters.
    labels = detail.ColumnLabels(
        np.array([0, 1, 0]), np.array([0, 1, 1]), np.zeros((0, 1), np.uint8), np.array([30, 10, 40])
    )
    shares = detail.cell_shares(labels, 2)
    assert shares == pytest.approx([0.75, 0.25], abs=1e-3)


@pytest.mark.parametrize("seed", range(200))
def test_shares_of_classes_found_together_are_those_of_each_alone(seed: int) -> None:
    random = np.random.default_rng(seed)
    size, runs, sets, classes = (int(random.integers(*ends)) for ends in ((1, 40), (0, 9), (0, 9), (1, 6)))
    ends = np.sort(random.integers(0, size, (runs, 2)), axis=1)
    bits = np.packbits(random.random((sets, size)) < 0.4, axis=1)
    persons = random.integers(0, 9, (classes, runs + sets)) * (random.random((classes, runs + sets)) < 0.6)
    labels = detail.ColumnLabels(ends[:, 0], ends[:, 1], bits, persons)
    together = detail.cell_shares(labels, size)
    for own, shares in zip(persons, together, strict=True):
        has = own > 0
        alone = detail.ColumnLabels(ends[has[:runs], 0], ends[has[:runs], 1], bits[has[runs:]], own[has])
        assert shares.tolist() == detail.cell_shares(alone, size).tolist()


def plain(recoding: Recoding, frame: pl.DataFrame, column: int) -> tuple[float, dict[tuple[int, ...], int]]:
    """What a label rules out, cell by cell and person by person."""
    size = recoding.columns[column].size
    nodes = recoding.nodes(recoding.cells(frame))
    labels = [recoding.boxes.cells(int(node), column) for node in nodes]
    shares = np.full(size, 1 / size)
    for _ in range(ROUNDS):
        new = np.zeros(size)
        for cells in labels:
            fit = shares[list(cells)].sum()
            for cell in cells:
                new[cell] += shares[cell] / fit
        shares = new / len(labels)
    counts: dict[tuple[int, ...], int] = {}
    for cells in labels:
        counts[cells] = counts.get(cells, 0) + 1
    return float(np.mean([1 - shares[list(cells)].sum() for cells in labels])), counts


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("many", [False, True])
def test_figures_are_those_of_a_plain_count(seed: int, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if many:  # the way of large tables must give the same
        monkeypatch.setattr(detail, "DENSE", 0)
        monkeypatch.setattr(detail, "MANY", 0)
        monkeypatch.setattr(detail, "FEW_ROUNDS", ROUNDS)
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "age": rng.integers(0, 30, 150),
            "place": rng.choice(list("abcdefg"), 150),
            "gap": pl.Series(rng.choice([1.5, 2.5, np.nan], 150)).fill_nan(None),
        }
    )
    recoding = recoded(frame, 4)
    found = details(recoding, *held(recoding, frame))
    for index, one in enumerate(found):
        ruled_out, counts = plain(recoding, frame, index)
        assert one.ruled_out == pytest.approx(ruled_out, abs=1e-6)
        assert one.labels == len(counts)
        assert one.frequent_persons == max(counts.values())
        assert sum(one.spans) == len(frame)
        assert one.spans[len(SPANS)] >= sum(
            number for cells, number in counts.items() if len(cells) == recoding.columns[index].size
        )


def test_a_column_of_which_nothing_is_named_has_lost_everything() -> None:
    """Fewer than k persons have each of its values, so that all are one, which is not named."""
    frame = pl.DataFrame({"age": [*range(30)] * 10, "job": [f"job {row % 60}" for row in range(300)]})
    report = af.anonymize(frame, quasi_identifiers=["age", "job"], k=10).report
    kept = {line["column"]: line["kept"] for line in report["detail"]}
    lost = {line["column"]: line["ncp"] for line in report["columns_lost"]["columns"]}
    assert (kept["job"], lost["job"]) == (0.0, 1.0)
    assert kept["age"] > 0.9 > 0.1 > lost["age"]
