# SPDX-License-Identifier: Apache-2.0
"""Recodings and their labels give the same features, and those that a slow and plain reading of their cells gives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest
from cell_trees import recodings
from hypothesis import given

import anonfit as af
from anonfit import RegionEncoder
from anonfit.errors import DataError, RequestError
from anonfit.estimators.features import Encoding, feature_column, parts_of_nodes
from anonfit.recoding.columns import NominalCells, OrderedCells, OrdinalCells
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Values, region_values
from anonfit.tables.scales import Scale
from strategies import tries

# --- the plain reading ------------------------------------------------------------------------------------------


def place(cut: Any, scale: Scale) -> float:
    """A cut as a number: days since 1970, counted in whole microseconds."""
    if scale.is_number:
        return float(cut)
    moment = datetime.fromisoformat(str(cut)) - datetime(1970, 1, 1)
    return (moment.days * 86_400_000_000 + moment.seconds * 1_000_000 + moment.microseconds) / 86_400_000_000


def sides(column: OrderedCells) -> tuple[float, float]:
    """Where open sides are closed."""
    if column.domain:
        return place(column.domain[0], column.scale), place(column.domain[1], column.scale)
    cuts = [place(cut, column.scale) for cut in column.cuts]
    if not cuts:
        return 0.0, 0.0
    if len(cuts) == 1:
        alone = 365.0 if not column.scale.is_number else abs(cuts[0]) or 1.0
        return cuts[0] - alone, cuts[0] + alone
    largest = float(np.finfo(np.float64).max)
    low, high = cuts[0] - (cuts[1] - cuts[0]), cuts[-1] + (cuts[-1] - cuts[-2])
    return max(low, -largest), min(high, largest)


def expected_features(recoding: Recoding, node: int, encoding: str) -> Iterator[float]:
    """The features of a node, from its cells and nothing else."""
    for index, column in enumerate(recoding.columns):
        cells = list(recoding.boxes.cells(node, index))
        shift = int(column.has_missing)
        known = [cell - shift for cell in cells if cell >= shift]
        missing = len(known) < len(cells)
        share = (0.5 if known else 1.0) if missing else 0.0
        if isinstance(column, NominalCells) and encoding == "expected":
            leaves = range(len(column.taxonomy.leaves))
            yield from ((1 / len(cells) if leaf in known else 0.0) for leaf in leaves)
            share = 1 / len(cells) if missing else 0.0
        else:
            if isinstance(column, OrderedCells):
                ends = [None, *(place(cut, column.scale) for cut in column.cuts), None]
                low, high = sides(column)
                first = ends[known[0]] if known else None
                last = ends[known[-1] + 1] if known else None
                span = (low if first is None else first, high if last is None else last)
            else:
                count = len(column.order) if isinstance(column, OrdinalCells) else len(column.taxonomy.leaves)
                span = (float(known[0]), float(known[-1])) if known else (0.0, count - 1.0)
            yield from span if encoding == "ends" else [span[0] / 2 + span[1] / 2]
        if column.has_missing:
            yield share


def released(recoding: Recoding, values: Values) -> pl.DataFrame:
    """What is written of every node, one row each."""
    nodes = np.arange(len(recoding.tree.column), dtype=np.int32)
    return pl.DataFrame([part for parts in region_values(recoding, nodes, values).values() for part in parts])


def features_of_nodes(recoding: Recoding, encoding: str) -> Any:
    nodes = np.arange(len(recoding.tree.column), dtype=np.int32)
    found = []
    for index, column in enumerate(recoding.columns):
        parts, which = parts_of_nodes(recoding, nodes, index)
        found.append(feature_column(column).numbers(parts, Encoding(encoding))[which])
    return np.concatenate(found, axis=1)


@pytest.mark.parametrize("encoding", ["ends", "expected"])
@tries(150)
@given(recoding=recodings())
def test_cells_labels_and_bounds_give_the_same_features(encoding: str, recoding: Recoding) -> None:
    plain = np.array([list(expected_features(recoding, node, encoding)) for node in range(len(recoding.tree.column))])
    np.testing.assert_allclose(features_of_nodes(recoding, encoding), plain, rtol=1e-12, atol=0)
    for values in (Values.LABELS, Values.BOUNDS):
        encoder = RegionEncoder(encoding, recoding).fit(released(recoding, values))
        np.testing.assert_array_equal(
            encoder.transform(released(recoding, values)), features_of_nodes(recoding, encoding)
        )


# --- releases ---------------------------------------------------------------------------------------------------


def people(seed: int, rows: int = 400, *, gaps: bool = True) -> pl.DataFrame:
    """A table with a column of every kind."""
    rng = np.random.default_rng(seed)
    found = pl.DataFrame(
        {
            "age": rng.integers(0, 100, rows),
            "weight": rng.normal(70, 12, rows).round(1),
            "admitted": pl.Series(rng.integers(18_000, 20_000, rows)).cast(pl.Int32).cast(pl.Date),
            "at": pl.Series(rng.integers(0, 2**50, rows)).cast(pl.Datetime("us")),
            "grade": rng.choice(["low", "mid", "high", "top"], rows),
            "sex": rng.choice(["F", "M", "X"], rows, p=[0.5, 0.4, 0.1]),
            "country": rng.choice(["FR", "DE", "US", "JP"], rows),
        }
    )
    if gaps:
        found = found.with_columns(
            pl.when(pl.Series(rng.random(rows) < 0.1)).then(None).otherwise(pl.col(name)).alias(name)
            for name in ("age", "grade", "sex", "admitted")
        )
    return found


COUNTRIES = {
    "name": "*",
    "children": [{"name": "Europe", "children": [{"name": "FR"}, {"name": "DE"}]}, {"name": "US"}, {"name": "JP"}],
}
GRADES = ["low", "mid", "high", "top"]


def release_of(frame: Any, k: int = 5, **words: Any) -> af.Release:
    return af.anonymize(
        frame,
        quasi_identifiers=list(frame.columns),
        k=k,
        types={"grade": "ordinal"},
        orders={"grade": GRADES},
        taxonomies={"country": COUNTRIES},
        **words,
    )


@pytest.mark.sampled(11)
@pytest.mark.parametrize("encoding", ["ends", "expected"])
@pytest.mark.parametrize("gaps", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_labels_that_speak_for_themselves_say_what_the_recoding_says(seed: int, gaps: bool, encoding: str) -> None:
    frame = people(seed, gaps=gaps)
    columns = [name for index, name in enumerate(frame.columns) if (seed + index) % 3 or name == "country"]
    words = {"domains": {"age": [0, 120]}} if seed % 2 and "age" in columns else {}
    words_of = {
        "quasi_identifiers": columns,
        "types": {"grade": "ordinal"} if "grade" in columns else {},
        "orders": {"grade": GRADES} if "grade" in columns else {},
        "taxonomies": {"country": COUNTRIES},
    }
    for values in ("labels", "bounds"):
        release = af.anonymize(frame.select(columns), k=4, values=values, **words_of, **words)
        with_recoding = RegionEncoder(encoding, release.recoding).fit(release.data)
        alone = RegionEncoder(encoding, orders=words_of["orders"], taxonomies={"country": COUNTRIES}).fit(release.data)
        shown = [name for name in with_recoding.get_feature_names_out() if name in alone.get_feature_names_out()]
        undivided = {name for name in columns if values == "labels" and release.data[name].n_unique() == 1}
        assert {name.split("_")[0].split("=")[0] for name in shown} >= set(columns) - undivided
        for name in shown:
            if name.split("_")[0].split("=")[0] not in undivided:
                one, other = (
                    encoder.transform(release.data)[:, encoder.get_feature_names_out().tolist().index(name)]
                    for encoder in (with_recoding, alone)
                )
                np.testing.assert_array_equal(one, other, err_msg=name)


def test_observed_labels_are_read_with_the_recoding() -> None:
    frame = people(3)
    release = release_of(frame, regions="observed", consent=True)
    found = RegionEncoder("ends", release.recoding).fit(release.data)
    numbers = found.transform(release.data)
    at = found.get_feature_names_out().tolist().index
    lower, upper = numbers[:, at("age_lower")], numbers[:, at("age_upper")]
    only = numbers[:, at("age_missing")] == 1
    assert (lower <= upper).all()
    assert lower[~only].min() >= frame["age"].min()
    assert upper[~only].max() <= frame["age"].max()


def test_every_kind_of_frame_gives_the_same_features() -> None:
    release = release_of(people(5))
    data: pl.DataFrame = release.data
    pandas = data.to_pandas()
    kinds = [
        data,
        data.lazy(),
        data.cast(pl.String),
        data.cast(pl.Categorical),
        data.to_arrow(),
        pandas,
        pandas.astype(str),
        pandas.astype(object),
        pandas.set_index(np.arange(len(pandas)) * 7),
    ]
    for encoding in ("ends", "expected"):
        encoder = RegionEncoder(encoding, release.recoding).fit(data)
        expected = encoder.transform(data)
        assert np.isfinite(expected).all()
        for kind in kinds:
            np.testing.assert_array_equal(encoder.transform(kind), expected)
            np.testing.assert_array_equal(
                RegionEncoder(encoding, release.recoding).fit_transform(kind), expected, err_msg=str(type(kind))
            )
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            np.testing.assert_array_equal(encoder.transform(pandas.to_numpy(dtype=object)), expected)


def test_inputs_are_not_changed() -> None:
    release = release_of(people(5))
    before, pandas = release.data.clone(), release.data.to_pandas()
    copy = pandas.copy()
    RegionEncoder("expected", release.recoding).fit_transform(release.data)
    RegionEncoder("expected", release.recoding).fit_transform(pandas)
    assert before.equals(release.data)
    assert copy.equals(pandas)


def test_a_column_that_was_left_out_is_not_needed() -> None:
    release = release_of(people(1))
    whole = RegionEncoder("ends", release.recoding).set_output(transform="polars").fit_transform(release.data)
    part = RegionEncoder("ends", release.recoding).set_output(transform="polars")
    found = part.fit_transform(release.data.select("sex", "age"))
    assert found.columns == ["sex_lower", "sex_upper", "sex_missing", "age_lower", "age_upper", "age_missing"]
    assert found.equals(whole.select(found.columns))


def test_released_raw_columns_stand_beside_the_regions() -> None:
    frame = people(2).with_columns(cost=pl.Series(range(400)) % 50, ward=pl.lit("a"))
    release = af.anonymize(
        frame.select("age", "sex", "cost", "ward"), quasi_identifiers=["age", "sex"], insensitive=["cost", "ward"], k=5
    )
    with pytest.raises(DataError, match="column 'ward' is no quasi-identifier and holds no numbers"):
        RegionEncoder("ends", release.recoding).fit(release.data)
    encoder = RegionEncoder("ends", release.recoding).fit(release.data.drop("ward"))
    assert encoder.get_feature_names_out().tolist()[-1] == "cost"
    np.testing.assert_array_equal(encoder.transform(release.data.drop("ward"))[:, -1], release.data["cost"])
    dropped = RegionEncoder("ends", release.recoding, remainder="drop").fit(release.data)
    assert dropped.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()[:-1]


def test_representatives_are_passed_on_as_points() -> None:
    release = af.anonymize(
        people(2, gaps=False).select("age"), quasi_identifiers=["age"], k=50, values="representative"
    )
    points = RegionEncoder("ends", release.recoding).fit_transform(release.data)
    np.testing.assert_array_equal(points, np.stack([release.data["age"]] * 2, axis=1))


def test_a_release_that_is_loaded_has_the_same_features(tmp_path: Any) -> None:
    release = release_of(people(4))
    for kind in ("csv", "parquet", "arrow"):
        release.save(tmp_path / kind, format=kind)
        loaded = af.load(tmp_path / kind)
        np.testing.assert_array_equal(
            RegionEncoder("expected", loaded.recoding).fit_transform(loaded.data),
            RegionEncoder("expected", release.recoding).fit_transform(release.data),
        )


def test_dates_of_the_recoding_are_days() -> None:
    days = [date(2024, 1, 1), date(2024, 1, 1), date(2024, 3, 1), date(2024, 3, 1)]
    release = af.anonymize(pl.DataFrame({"day": days}), quasi_identifiers=["day"], k=2)
    assert release.data["day"].to_list() == ["< 2024-02-01"] * 2 + ["≥ 2024-02-01"] * 2
    cut = (date(2024, 2, 1) - date(1970, 1, 1)).days
    found = RegionEncoder("ends", release.recoding).fit_transform(release.data)
    assert found.tolist() == [[cut - 365, cut]] * 2 + [[cut, cut + 365]] * 2


# --- faults -----------------------------------------------------------------------------------------------------


def test_a_table_of_something_else_is_refused() -> None:
    release = release_of(people(1))
    with pytest.raises(DataError, match="none of the columns of the recoding"):
        RegionEncoder("ends", release.recoding).fit(pl.DataFrame({"length": [1, 2]}))


def test_bounds_need_both_ends() -> None:
    release = release_of(people(1), values="bounds")
    with pytest.raises(DataError, match="the bounds of 'age' need the column 'age_missing'"):
        RegionEncoder("ends", release.recoding).fit(release.data.drop("age_missing"))


def test_a_recoding_says_all_of_its_columns() -> None:
    release = release_of(people(1))
    with pytest.raises(RequestError, match="orders is for columns without a recoding"):
        RegionEncoder("ends", release.recoding, orders={"grade": GRADES}).fit(release.data)


def test_labels_of_another_release_are_refused() -> None:
    release = release_of(people(1))
    other = release.data.with_columns(sex=pl.lit("{F, Y}"))
    with pytest.raises(DataError, match=r"column 'sex': 400 rows \(first: row 1\) are no labels"):
        RegionEncoder("ends", release.recoding).fit(release.data).transform(other)
