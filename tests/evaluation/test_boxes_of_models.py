# SPDX-License-Identifier: Apache-2.0
"""Releases with observed labels (`regions = "observed"`) are judged by what they tell: boxes of a group's own rows."""

from __future__ import annotations

import json
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from evaluation_tables import SPEC, people, spec

import anonfit as af
from anonfit.estimators.features import LeafColumn, feature_column
from anonfit.evaluation import judging
from anonfit.evaluation.boxes import box_features
from anonfit.evaluation.methods import method
from anonfit.evaluation.models import TargetLabels, nodes_of, recoded_features
from anonfit.release.bind import schema_of
from anonfit.release.run import make
from anonfit.tables.schema import Column, ColumnType, Role
from commands import command

BOXED = '[output]\nregions = "observed"\nconsent = true\n'
OBSERVED = """
version = 1
columns.age = { role = "quasi-identifier" }
columns.grade = { role = "quasi-identifier", type = "ordinal", order = ["low", "mid", "high"] }
columns.day = { role = "quasi-identifier", type = "date" }
columns.job = { role = "quasi-identifier", type = "nominal" }
columns.note = { role = "target" }
privacy.k = 6
output = { regions = "observed", consent = true }
"""


def table(rows: int = 300, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    days = [date(2020, 1, 1 + int(day)) for day in rng.integers(0, 28, rows)]
    ages = [
        None if lost else int(age) for age, lost in zip(rng.integers(0, 90, rows), rng.random(rows) < 0.1, strict=True)
    ]
    words = {"grade": ["low", "mid", "high", None], "job": ["a", "b", "c", "d", None], "note": ["no", "yes"]}
    texts = {name: [known[place] for place in rng.integers(0, len(known), rows)] for name, known in words.items()}
    return pl.DataFrame({"age": ages, "day": days, **texts})  # fmt: skip


def smallest_and_largest(values: list[float | None], whole: tuple[float, float]) -> tuple[float, float]:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else whole


def test_boxes_are_those_of_a_plain_count() -> None:
    frame = table()
    recoding = make(af.parse_spec(OBSERVED), source=frame, threads=1).recoding
    training, test = frame[:200], frame[200:]
    own, nodes = nodes_of(recoding, training), nodes_of(recoding, test)
    found = box_features(recoding, training, own, nodes, "ends").frame()
    whole = recoded_features(recoding, nodes, "ends").frame()
    assert found.columns == whole.columns
    leaves = next(column.taxonomy.leaves for column in recoding.columns if column.name == "job")
    ranks = {
        "age": lambda value: float(value),
        "day": lambda value: float((value - date(1970, 1, 1)).days),
        "grade": ["low", "mid", "high"].index,
        "job": leaves.index,
    }
    is_apart = 0
    for row, node in enumerate(nodes.tolist()):
        group = training.filter(pl.Series(own == node))
        for name, rank in ranks.items():
            told = whole[f"{name}_lower"][row], whole[f"{name}_upper"][row]
            values = [None if value is None else rank(value) for value in group[name]]
            box = smallest_and_largest(values, told if not len(group) else _whole_column(recoding, name, told))
            assert (found[f"{name}_lower"][row], found[f"{name}_upper"][row]) == box
            is_apart += box != told
            if len(group) and f"{name}_missing" in found.columns:
                lost = group[name].is_null()
                share = 1.0 if lost.all() else 0.5 if lost.any() else 0.0
                assert found[f"{name}_missing"][row] == share
    assert is_apart > 100


def _whole_column(recoding: af.Recoding, name: str, told: tuple[float, float]) -> tuple[float, float]:
    """What stands where a group has only missing values: the whole column."""
    (column,) = (column for column in recoding.columns if column.name == name)
    shape = feature_column(column)
    return (0.0, len(shape.leaves) - 1.0) if isinstance(shape, LeafColumn) else (shape.lowest, shape.highest)


def release_of(text: str, encoding: str) -> tuple[judging.ReleasedFeatures, pl.DataFrame]:
    """What models see of a table by a spec, and what they would see of whole regions."""
    frame, asked = people(), spec(text)
    schema = schema_of(asked, frame.columns)
    division = judging.TrainingAndTest(schema, frame[:300], frame[300:])
    learned = judging.learned(METHOD, asked, schema, division.training, k=20, seed=0)
    assert learned is not None
    release = judging.released(METHOD, division, learned, protocol="holdout", encoding=encoding)
    assert release.nodes is not None
    return release, recoded_features(learned.recoding, release.nodes, encoding).frame(("age", "job"))


METHOD = method("median")


@pytest.mark.parametrize("encoding", ["ends", "expected", "both", "smooth"])
def test_rows_see_boxes_only_where_the_spec_asks_for_them(encoding: str) -> None:
    whole, regions = release_of(SPEC, encoding)
    boxed, same = release_of(SPEC + BOXED, encoding)
    assert whole.training.frame(("age", "job")).equals(regions)
    assert same.equals(regions)
    assert not boxed.training.frame(("age", "job")).equals(regions)
    assert not boxed.test.frame(("age", "job")).equals(whole.test.frame(("age", "job")))
    assert boxed.test.frame(("hours",)).equals(whole.test.frame(("hours",)))


def test_a_target_in_boxes_is_what_is_in_the_middle_of_its_box() -> None:
    frame = people()
    recoding = af.anonymize(frame.select("age", "job"), quasi_identifiers=["age", "job"], k=20).recoding
    nodes = nodes_of(recoding, frame)
    age = Column("age", Role.QUASI_IDENTIFIER, ColumnType.CONTINUOUS)
    labels = TargetLabels(age, "numbers")
    found = labels.released(frame, partial(box_features, recoding, frame, nodes, nodes))
    middles = frame.with_columns(node=nodes).select((pl.col("age").min() + pl.col("age").max()).over("node") / 2)
    assert found.to_list() == middles["age"].to_list()


def test_whoever_evaluates_is_told_of_boxes_and_of_names_of_numbers(tmp_path: Path) -> None:
    people().select("age", "job", "ill").write_csv(tmp_path / "people.csv")
    text = SPEC.partition("[columns.hours]")[0] + '[columns.ill]\nrole = "target"\n[privacy]\nk = 20\n'
    words = ["--methods", "tdr,original", "--learners", "id3,tree", "--folds", "2", "--workers", "1"]
    accuracies = []
    for name, more in (("whole", ""), ("boxed", BOXED)):
        (tmp_path / f"{name}.toml").write_text(f'{text}[data]\nsource = "people.csv"\n{more}')
        found = command("evaluate", f"{name}.toml", *words, "--out", "trial", folder=tmp_path)
        assert found.returncode == 0, found.stderr
        assert ("Models learned from observed labels" in found.stdout) == bool(more)
        assert ("Models learned from observed labels" in (tmp_path / "trial/evaluation.html").read_text()) == bool(more)
        assert "id3 takes every number for a name of its own" in found.stdout
        again = command("evaluate", f"{name}.toml", *words, "--out", "trial", "--json", folder=tmp_path)
        told = json.loads(again.stdout)
        assert told["regions"] == ("observed" if more else "domain")
        accuracies.append([row["test"] for row in told["summary"] if row["method"] == "original"])
    assert accuracies[0] == accuracies[1]  # raw rows have no boxes
