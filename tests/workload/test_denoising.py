# SPDX-License-Identifier: Apache-2.0
"""Denoising: models that have not seen a row say what to expect of it, wherever the row stands in the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from denoising_tables import (
    Table,
    column,
    examples,
    expected_numbers,
    expected_shares,
    ids,
    log_loss,
    mixed,
    r_squared,
    table,
    taken,
)
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from anonfit.demo.population import hospital
from anonfit.tables.schema import CodedColumn, SplitMode
from anonfit.tables.taxonomy import Taxonomy
from anonfit.workload import denoising, denoising_models
from anonfit.workload.denoising import deals_of, fit_numbers, fit_shares

# The order of rows, threads and seeds


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", range(8))
@pytest.mark.parametrize("weighted", [False, True])
def test_permuting_rows_permutes_shares_and_changes_no_bit(case: int, weighted: bool) -> None:
    rng = np.random.default_rng(case)
    rows = int(rng.integers(2, 500)) if case else 600
    people = mixed(rng, rows, wide=case < 3)
    width = int(rng.integers(1, 5))
    classes = (people[1][0] + rng.integers(0, 3, rows)) % width
    weights = rng.integers(1, 4, rows) if weighted else None
    expected = expected_shares(*people, classes, width, weights=weights, seed=case)
    for _ in range(2):
        order = rng.permutation(rows)
        moved = None if weights is None else weights[order]
        found = expected_shares(*taken(people, order), classes[order], width, weights=moved, seed=case)
        assert np.array_equal(found, expected[order])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", range(6))
@pytest.mark.parametrize("weighted", [False, True])
def test_permuting_rows_permutes_numbers_and_changes_no_bit(case: int, weighted: bool) -> None:
    rng = np.random.default_rng(case)
    rows = int(rng.integers(2, 500)) if case else 600
    people = mixed(rng, rows, wide=case < 3)
    numbers = people[1][0] * 0.1 + rng.integers(-2, 3, rows) / 7
    numbers[rng.random(rows) < 0.1] = -0.0
    numbers[rng.random(rows) < 0.1] = 0.0
    weights = rng.integers(1, 4, rows) if weighted else None
    expected = expected_numbers(*people, numbers, weights=weights, seed=case)
    assert np.isfinite(expected).all()
    for _ in range(2):
        order = rng.permutation(rows)
        moved = None if weights is None else weights[order]
        found = expected_numbers(*taken(people, order), numbers[order], weights=moved, seed=case)
        assert np.array_equal(found, expected[order])


def test_rows_of_a_cell_are_predicted_alike_whatever_their_class() -> None:
    rng = np.random.default_rng(1)
    people = mixed(rng, 400)
    classes = rng.integers(0, 2, 400)
    shares = expected_shares(*people, classes, 2)
    found: dict[tuple[int, ...], set[float]] = {}
    for row in range(400):
        found.setdefault(tuple(int(codes[row]) for codes in people[1]), set()).add(shares[row, 0])
    assert len(found) < 75
    assert {len(values) for values in found.values()} == {1}


def test_what_is_expected_does_not_depend_on_the_rows_beside() -> None:
    rng = np.random.default_rng(1)
    people = mixed(rng, 900, wide=True)
    classes = (people[1][0] + rng.integers(0, 2, 900)) % 3
    fitted = fit_shares(people[0], examples(people, classes), 3)
    every = fitted(people[1], 900)
    for rows in (np.arange(40), np.array([899]), np.arange(0, 900, 7)):
        assert np.array_equal(fitted([codes[rows] for codes in people[1]], len(rows)), every[rows])


def test_the_number_of_threads_changes_no_bit() -> None:
    rng = np.random.default_rng(2)
    people = mixed(rng, 3000, wide=True)
    classes = (people[1][0] + rng.integers(0, 3, 3000)) % 3
    expected = expected_shares(*people, classes, 3, threads=1)
    numbers = expected_numbers(*people, classes * 1.1, threads=1)
    for threads in (2, 5):
        assert np.array_equal(expected_shares(*people, classes, 3, threads=threads), expected)
    for limit in (1, 2, 4):
        with threadpool_limits(limit):
            assert np.array_equal(expected_shares(*people, classes, 3), expected)
            assert np.array_equal(expected_numbers(*people, classes * 1.1), numbers)


def test_a_seed_gives_the_same_folds_and_another_seed_others() -> None:
    rng = np.random.default_rng(3)
    people = mixed(rng, 300)
    classes = rng.integers(0, 2, 300)
    first = expected_shares(*people, classes, 2, seed=1)
    assert np.array_equal(expected_shares(*people, classes, 2, seed=1), first)
    assert not np.array_equal(expected_shares(*people, classes, 2, seed=2), first)


def test_few_rows_are_dealt_several_times_and_know_less_by_luck() -> None:
    rng = np.random.default_rng(7)
    people = table(column(rng.integers(0, 50, 400)), column(rng.integers(0, 30, 400)), ids(400, rng))
    truth = 1 / (1 + np.exp((25 - people[1][0].astype(float)) / 8))
    errors, deals = {}, {}
    for asked in (1, deals_of(400)):
        fitted = [
            fit_shares(
                people[0], examples(people, (rng.random(400) < truth).astype(np.int64)), 2, seed=seed, deals=asked
            )
            for seed in range(3)
        ]
        errors[asked] = np.mean([(one(people[1], 400)[:, 1] - truth) ** 2 for one in fitted])
        deals[asked] = {len(one.deals) for one in fitted}
    assert deals == {1: {1}, 5: {5}}
    assert errors[5] < 0.9 * errors[1]
    assert [deals_of(rows) for rows in (0, 5_000, 12_000, 10**6)] == [5, 4, 1, 1]


def test_the_mean_over_deals_depends_on_no_row_beside() -> None:
    rng = np.random.default_rng(8)
    people = mixed(rng, 300, wide=True)
    fitted = fit_numbers(people[0], examples(people, rng.normal(size=300)), deals=5)
    every = fitted(people[1], 300)
    assert np.array_equal(fitted([codes[::7] for codes in people[1]], 43), every[::7])
    parts = [deal.of_cells(denoising_models.cell_keys(*people, 300), people[1], 1) for deal in fitted.deals]
    assert fitted.known is None or np.isinf(fitted.known.strength)
    assert every == pytest.approx(np.mean(parts, axis=0), abs=1e-12)


# What a row's own target may tell


@pytest.mark.parametrize("wide", [False, True])
def test_a_rows_own_class_does_not_touch_its_shares(wide: bool) -> None:
    rng = np.random.default_rng(4)
    rows = 700
    people = mixed(rng, rows, wide=wide)
    people = table(*zip(*people, strict=True), ids(rows, rng))
    classes = ((people[1][0] > 2) ^ (rng.random(rows) < 0.2)).astype(np.int64)
    expected = expected_shares(*people, classes, 2)
    for row in (0, 250, 600):
        flipped = classes.copy()
        flipped[row] = 1 - flipped[row]
        found = expected_shares(*people, flipped, 2)
        assert np.array_equal(found[row], expected[row])
        assert not np.array_equal(found, expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wide", [False, True])
def test_a_rows_own_number_does_not_touch_its_prediction(wide: bool) -> None:
    rng = np.random.default_rng(5)
    rows = 700
    people = mixed(rng, rows, wide=wide)
    people = table(*zip(*people, strict=True), ids(rows, rng))
    numbers = people[1][0] + rng.normal(size=rows)
    expected = expected_numbers(*people, numbers)
    for row in (0, 250, 600):
        moved = numbers.copy()
        moved[row] += 1000
        found = expected_numbers(*people, moved)
        assert found[row] == expected[row]
        assert not np.array_equal(found, expected)


@pytest.mark.parametrize("wide", [False, True])
def test_labels_that_are_pure_luck_cannot_be_told(wide: bool) -> None:
    rng = np.random.default_rng(6)
    rows = 3000
    people = table(*zip(*mixed(rng, rows, wide=wide), strict=True), ids(rows, rng))
    classes = rng.integers(0, 2, rows)
    shares = expected_shares(*people, classes, 2)
    assert log_loss(classes, shares) > np.log(2) - 0.005
    assert abs(np.corrcoef(shares[:, 1], classes)[0, 1]) < 0.08


def test_a_model_has_seen_no_row_of_the_cells_that_it_predicts() -> None:
    rng = np.random.default_rng(7)
    people = mixed(rng, 503)
    learned = examples(people, rng.integers(0, 2, 503))
    folds = denoising_models.fold_of(learned.cells, 0)
    assert len({(cell, fold) for cell, fold in zip(learned.cells, folds, strict=True)}) == len(set(learned.cells))
    assert set(folds.tolist()) == set(range(denoising_models.FOLDS))
    assert learned.rows.sum() == 503
    assert learned.weights.sum() == pytest.approx(503)


def test_combinations_that_stand_there_several_times_are_one() -> None:
    rng = np.random.default_rng(7)
    people = mixed(rng, 300)
    classes = rng.integers(0, 2, 300)
    rows, masses = rng.integers(1, 5, 300), rng.integers(1, 50, 300)
    one = denoising_models.make_examples(*people, classes, rows, masses)
    order = rng.permutation(300)
    other = denoising_models.make_examples(*taken(people, order), classes[order], rows[order], masses[order])
    for name in ("target", "rows", "weights", "cells"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert len(one.rows) < 150
    assert one.rows.sum() == rows.sum()


def test_cells_are_told_apart_however_many_codes_there_are() -> None:
    rng = np.random.default_rng(8)
    # 12 columns of 65,536 codes are far more cells than 64 bits tell apart; each of 200 rows is there twice
    columns, codes = table(*[column(np.tile(rng.integers(0, 3, 200) * 30_000, 2), size=65_536) for _ in range(12)])
    keys = denoising_models.cell_keys(columns, codes, 400)
    assert np.array_equal(keys[:200], keys[200:])
    assert len(set(keys.tolist())) == len(np.unique(np.stack(codes), axis=1).T) > 190


# How good the expectations are


def test_rows_of_few_cells_get_the_shares_of_their_cell() -> None:
    # The model of a cell has seen the other one only: the cell's own rows must tell.
    rng = np.random.default_rng(9)
    codes = rng.integers(0, 2, 4000)
    classes = (rng.random(4000) < np.where(codes == 1, 0.7, 0.2)).astype(np.int64)
    for mode in (SplitMode.ORDERED, SplitMode.SUBSET):
        shares = expected_shares(*table(column(codes, mode=mode)), classes, 2)
        for code in (0, 1):
            assert np.allclose(shares[codes == code, 1], classes[codes == code].mean(), atol=0.02)


def hospital_table(rows: int) -> tuple[Table, NDArray[np.int64], NDArray[np.float64], list[bool]]:
    people = hospital(rows, seed=3)
    columns, matrix, categorical = [], [], []
    for name in ("age", "sex", "diagnosis", "length_of_stay"):
        values, codes = np.unique(people[name].to_numpy(), return_inverse=True)
        nominal = name in ("sex", "diagnosis")
        mode = SplitMode.SUBSET if nominal else SplitMode.ORDERED
        positions = np.arange(len(values)) if nominal else values
        columns.append((CodedColumn(name, len(values), mode, False, positions.astype(np.float64)), codes))
        matrix.append(positions[codes].astype(np.float64))
        categorical.append(nominal)
    classes = np.unique(people["outcome"].to_numpy(), return_inverse=True)[1]
    return table(*columns), classes, np.stack(matrix, axis=1), categorical


def test_shares_are_as_good_as_those_of_a_plain_model_on_unseen_rows() -> None:
    people, classes, matrix, categorical = hospital_table(12_000)
    half = np.arange(12_000) < 8_000
    with threadpool_limits(1):
        plain = HistGradientBoostingClassifier(categorical_features=categorical, random_state=0, early_stopping=True)
        plain.fit(matrix[half], classes[half])
        expected = log_loss(classes[~half], plain.predict_proba(matrix[~half]))
    width = int(classes.max()) + 1
    rows = np.flatnonzero(half)
    shares = expected_shares(*taken(people, rows), classes[half], width)
    majority = -np.log(np.bincount(classes) / len(classes)) @ (np.bincount(classes) / len(classes))
    assert width > 2
    assert expected < majority - 0.05
    assert log_loss(classes[half], shares) < expected * 1.02
    assert np.allclose(shares.mean(axis=0), np.bincount(classes[half]) / half.sum(), atol=0.02)


def test_weights_make_rows_count_more() -> None:
    rng = np.random.default_rng(11)
    codes = rng.integers(0, 3, 3000)
    classes = rng.integers(0, 2, 3000)
    weights = np.where(classes == 1, 300.0, 100.0)
    shares = expected_shares(*table(column(codes)), classes, 2, weights=weights)
    assert np.allclose(shares[:, 1], 0.75, atol=0.03)
    numbers = expected_numbers(*table(column(codes)), classes * 1.0, weights=weights)
    assert np.allclose(numbers, 0.75, atol=0.03)
    # only how weights compare with each other counts
    again = expected_shares(*table(column(codes)), classes, 2, weights=weights * 1024)
    assert np.array_equal(again, shares)


@pytest.mark.parametrize(("centre", "scale"), [(0, 1), (1e6, 1), (0, 1e-9), (-1e12, 1e3), (0, 1e100)])
def test_numbers_are_found_at_any_centre_and_scale(centre: float, scale: float) -> None:
    rng = np.random.default_rng(12)
    people = mixed(rng, 2000)
    signal = np.where(people[1][0] > 2, 1.0, -1.0) * np.where(people[1][1] == 2, -1.0, 1.0)
    numbers = centre + scale * (signal + 0.1 * rng.normal(size=2000))
    found = expected_numbers(*people, numbers)
    assert r_squared((numbers - centre) / scale, (found - centre) / scale) > 0.95
    assert found.min() >= numbers.min()
    assert found.max() <= numbers.max()


def test_missing_values_are_told_from_all_others() -> None:
    rng = np.random.default_rng(13)
    for mode in (SplitMode.ORDERED, SplitMode.SUBSET):
        codes = rng.integers(0, 9, 2000)
        classes = (codes == 0).astype(np.int64)
        shares = expected_shares(*table(column(codes, mode=mode, missing=True)), classes, 2)
        assert log_loss(classes, shares) < 0.02


def test_a_column_with_more_categories_than_the_model_takes_still_tells() -> None:
    rng = np.random.default_rng(14)
    codes = rng.integers(0, 400, 8000)
    likely = rng.permutation(np.linspace(0.05, 0.95, 400))[codes]
    people = table(column(codes, mode=SplitMode.SUBSET, size=400))
    classes = (rng.random(8000) < likely).astype(np.int64)
    shares = expected_shares(*people, classes, 2)
    best = float(-(likely * np.log(likely) + (1 - likely) * np.log(1 - likely)).mean())
    assert best + 0.06 < np.log(2) - 0.08
    assert log_loss(classes, shares) < best + 0.06
    assert r_squared(likely, expected_numbers(*people, likely + rng.normal(size=8000) * 0.1)) > 0.9
    three = expected_shares(*people, classes + (rng.random(8000) < 0.1), 3)
    assert np.allclose(three.sum(axis=1), 1)


def test_the_order_of_leaves_helps_where_categories_are_rare() -> None:
    rng = np.random.default_rng(15)
    codes = rng.integers(0, 1500, 3000)
    names = [f"{leaf:04}" for leaf in range(1500)]
    tree = Taxonomy.from_paths([(name, f"{name[:2]}**", "*") for name in names])
    classes = ((codes // 300) % 2 ^ (rng.random(3000) < 0.1)).astype(np.int64)
    plain, found = column(codes, mode=SplitMode.MULTIWAY, size=1500)
    ordered = CodedColumn("x", 1500, SplitMode.MULTIWAY, False, plain.positions, tree)
    # Held against other labels of the same rows: rows of a cell know their own.
    others = ((codes // 300) % 2 ^ (rng.random(3000) < 0.1)).astype(np.int64)
    with_tree = log_loss(others, expected_shares([ordered], [found], classes, 2))
    assert with_tree < 0.45
    assert with_tree < log_loss(others, expected_shares([plain], [found], classes, 2)) - 0.02


def test_noise_and_what_is_told_are_measured() -> None:
    rng = np.random.default_rng(16)
    people = table(column(rng.integers(0, 50, 4000)), ids(4000, rng))
    signal = people[1][0] * 0.2
    learned = examples(people, signal + rng.normal(size=4000) * 3)
    fitted = fit_numbers(people[0], learned)
    assert fitted.noise == pytest.approx(9, rel=0.1)
    assert fitted.explained == pytest.approx(signal.var(), rel=0.15)
    sure = fit_shares(people[0], examples(people, (people[1][0] > 24).astype(np.int64)), 2)
    assert sure.explained > 0.6


@pytest.mark.parametrize("seed", range(4))
def test_luck_is_not_taken_for_something_that_models_tell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = table(column(rng.integers(0, 50, 4000)), ids(4000, rng))
    assert fit_shares(people[0], examples(people, rng.integers(0, 10, 4000)), 10).explained < 0
    assert fit_shares(people[0], examples(people, (rng.random(4000) < 0.3).astype(np.int64)), 2).explained * 4000 < 1
    numbers = fit_numbers(people[0], examples(people, np.exp(rng.normal(size=4000))), deals=5)
    assert numbers.explained * 4000 < numbers.noise


# What the rows of a cell know beside models


def test_the_strength_of_models_is_that_by_which_they_and_the_other_rows_of_a_cell_miss_a_row_least() -> None:
    rng = np.random.default_rng(21)
    for effect in (0.0, 0.3, 1.0, 3.0):
        cells = rng.integers(0, 300, 1500)
        misses = rng.normal(size=300)[cells] * effect + rng.normal(size=1500)
        rows, sums, squares = (np.bincount(cells, misses**power, 300) for power in (0, 1, 2))
        there = rows > 0
        found = denoising._strength_of_numbers(rows[there], sums[there], squares[there])

        def missed(strength: float, rows: Any = rows[cells], sums: Any = sums[cells], misses: Any = misses) -> float:
            by_others = (sums - misses) / (strength + rows - 1)
            return float(((misses - by_others) ** 2).sum())

        tried = {strength: missed(strength) for strength in denoising._STRENGTHS}
        if found == np.inf:
            assert min(tried.values()) > (misses**2).sum() - 3 * (misses**2).mean()
        else:
            assert tried[found] <= min(tried.values()) + 3 * (misses**2).mean()
        assert effect != 0 or found >= 100
        assert effect < 1 or found <= 3


def test_a_few_very_large_numbers_are_not_taken_for_what_cells_know_of_themselves() -> None:
    rng = np.random.default_rng(22)
    people = table(column(rng.integers(0, 900, 3000)), column(rng.integers(0, 2, 3000), mode=SplitMode.SUBSET))
    numbers = people[1][1] + np.exp(2 * rng.normal(size=3000))
    fitted = fit_numbers(people[0], examples(people, numbers))
    assert fitted.known is None or np.isinf(fitted.known.strength)


def test_own_numbers_are_as_far_from_what_is_expected_as_chance_has_dealt_them() -> None:
    """Whether or not they were used to improve what is expected: half as much by others of their cell, or more."""
    rng = np.random.default_rng(23)
    keys, strength = np.repeat(np.arange(4000, dtype=np.uint64), 5), 4.0
    truth = rng.normal(size=4000) / np.sqrt(strength)
    own = np.repeat(truth, 5) + rng.normal(size=len(keys))
    sums = np.bincount(keys.astype(np.int64), own)[:, None]
    known = denoising.KnownCells(keys[::5], sums, np.full(4000, 5.0), strength)
    improved = known.improved(keys, np.zeros((len(keys), 1)))
    apart = known.apart(keys, improved, own)
    of_cells = (apart - improved[:, 0]).reshape(-1, 5).sum(axis=1)
    assert of_cells.var() == pytest.approx(5, rel=0.1)
    assert (own - improved[:, 0]).reshape(-1, 5).sum(axis=1).var() < 3
    unknown = known.apart(keys + np.uint64(9999), improved, own)
    assert np.array_equal(unknown, own)
    assert np.array_equal(replace(known, strength=np.inf).apart(keys, improved, own), own)
