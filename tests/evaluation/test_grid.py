# SPDX-License-Identifier: Apache-2.0
"""Evaluations as a whole: protocols, folds, processes, and going on where one was left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from evaluation_tables import SPEC, people, spec

import anonfit as af
from anonfit.errors import DataError, Infeasible, RequestError
from anonfit.evaluation.jobs import fold_of_rows
from anonfit.evaluation.methods import method
from anonfit.evaluation.result import OF_SHARES, Evaluation
from anonfit.recoding.recoding import Recoding
from anonfit.release.bind import schema_of
from anonfit.spec.model import PrivacySpec, Spec

ROWS = 300


@dataclass
class Watched:
    """The median, and what it was given."""

    name: str = "watched"
    seen: list[tuple[int, int]] = field(default_factory=list, repr=False)
    ages: list[set[int]] = field(default_factory=list, repr=False)

    def recode(self, frame: pl.DataFrame, spec: Spec, k: int, seed: int) -> Recoding:
        self.seen.append((len(frame), k))
        self.ages.append(set(frame["age"].to_list()))
        return method("median").recode(frame, spec, k, seed)


@dataclass(frozen=True)
class Impossible:
    """A method that can never."""

    name: str = "impossible"

    def recode(self, frame: pl.DataFrame, spec: Spec, k: int, seed: int) -> Recoding:
        raise Infeasible("it cannot be.")


def evaluated(frame: pl.DataFrame | None = None, asked: Spec | None = None, **words: Any) -> Evaluation:
    settings: dict[str, Any] = {"methods": ["median"], "learners": ["tree"], "folds": 3, "workers": 1}
    return af.evaluate(people(ROWS) if frame is None else frame, asked or spec(), **(settings | words))


def value(found: Evaluation, method: str = "median", part: str = "test", **where: Any) -> float:
    rows = found.frame.filter(~pl.col("measure").is_in(OF_SHARES)).filter(method=method, part=part, **where)
    mean = rows["value"].mean()
    assert isinstance(mean, float)
    return mean


# --- protocols --------------------------------------------------------------------------------------------------


def test_holdout_learns_a_recoding_from_training_rows_only() -> None:
    # Each age is one row's, so that it is known which rows were seen.
    frame = people(60).with_columns(age=pl.Series(range(60)))
    watched = Watched()
    evaluated(frame, methods=[watched], ks=[2, 5])
    assert sorted(watched.seen) == [(40, 2)] * 3 + [(40, 5)] * 3
    folds = fold_of_rows(schema_of(spec(), frame.columns), frame, 3, 0)
    trained = [set(np.flatnonzero(folds != fold).tolist()) for fold in range(3)]
    assert watched.ages == trained * 2


def test_combined_recodes_all_rows_once() -> None:
    watched = Watched()
    evaluated(methods=[watched], ks=[2, 5], protocol="combined")
    assert watched.seen == [(ROWS, 2), (ROWS, 5)]


def test_one_recoding_serves_all_learners_and_models() -> None:
    watched = Watched()
    models = ["ill", {"target": "ill", "using": ["age"]}, "cost"]
    found = evaluated(methods=[watched], models=models, learners=["tree", "naive-bayes", "linear-regression"])
    assert len(watched.seen) == 3
    assert found.summary().height == 2 * 2 + 2
    assert found.summary(shares=True).height == 2 * 2 * 3 + 2  # AUC and Brier score, too


def test_raw_test_rows_are_not_recoded() -> None:
    # Ages decide exactly at 45, but with k = 100 regions cannot tell: raw test rows lie on both sides of any cut.
    frame = people(ROWS).with_columns(ill=pl.when(pl.col("age") >= 45).then(pl.lit("yes")).otherwise(pl.lit("no")))
    words = {"learners": ["tree"], "models": [{"target": "ill", "using": ["age"]}], "ks": [20], "methods": ["infogain"]}
    masked, raw = (evaluated(frame, protocol=one, **words) for one in ("holdout", "raw-test"))
    assert value(masked, "infogain", "train") == value(raw, "infogain", "train")
    assert value(masked, "infogain") != value(raw, "infogain")


def test_combined_lets_class_guided_methods_see_test_labels() -> None:
    # Labels are drawn by lot: nothing can be predicted, unless the regions were drawn around the test labels.
    words = {"methods": ["infogain"], "ks": [5], "learners": ["gradient-boosting"]}
    found: dict[str, list[float]] = {"holdout": [], "combined": []}
    for seed in range(1, 4):
        frame = people(ROWS).with_columns(ill=pl.Series(np.random.default_rng(seed).choice(["no", "yes"], ROWS)))
        for protocol, values in found.items():
            values.append(value(evaluated(frame, protocol=protocol, **words), "infogain"))
    assert np.mean(found["holdout"]) < 0.53
    assert np.mean(found["combined"]) > np.mean(found["holdout"]) + 0.03


# --- measures ---------------------------------------------------------------------------------------------------


def test_baselines_are_what_they_say() -> None:
    found = evaluated(methods=["original", "removed", "infogain"], learners=["tree"])
    raw, gone = value(found, "original"), value(found, "removed")
    assert raw > 0.85
    assert gone < 0.8
    assert gone < value(found, "infogain") <= raw + 0.05
    assert found.frame.filter(pl.col("method") != "infogain")["k"].null_count() == 2 * 3 * (2 + 2)


def test_sensitive_columns_of_which_something_is_asked_are_in_every_baseline() -> None:
    text = SPEC.replace('[columns.hours]\nrole = "insensitive"', '[columns.hours]\nrole = "sensitive"')
    text += '[[privacy.diversity]]\ncolumn = "hours"\nmodel = "distinct-l"\nl = 2\n'
    found = evaluated(asked=af.parse_spec(text), methods=["spec", "original", "removed"], learners=["tree"], folds=2)
    assert found.unmet == ()
    assert value(found, "removed", learner="tree") < value(found, "original", learner="tree")


def test_sensitive_columns_of_which_something_is_asked_are_no_hindrance_to_baselines() -> None:
    asked = SPEC.replace('role = "insensitive"', 'role = "sensitive"').replace("k = 5", "k = 5\nattack_limit = 0.9")
    asked += '[[privacy.diversity]]\ncolumn = "hours"\nmodel = "distinct-l"\nl = 2\n'
    found = evaluated(asked=spec(asked), methods=["spec", "median", "original", "removed"], folds=2)
    assert found.methods == ["spec", "median", "original", "removed"]


def test_removed_sees_other_columns() -> None:
    frame = people(ROWS).with_columns(ill=pl.when(pl.col("hours") >= 30).then(pl.lit("yes")).otherwise(pl.lit("no")))
    found = evaluated(frame, methods=["removed"])
    assert value(found, "removed") > 0.95
    without = evaluated(frame, methods=["removed"], models=[{"target": "ill", "using": ["age", "job"]}])
    majority = max(frame["ill"].value_counts()["count"]) / ROWS
    assert value(without, "removed") == pytest.approx(majority, abs=0.02)


def test_accuracy_and_errors_by_hand() -> None:
    # Nothing is told, so the tree predicts the commonest class and the mean.
    frame = pl.DataFrame({"age": [1] * 40, "ill": ["no", "no", "no", "yes"] * 10, "cost": [0.0, 1.0, 3.0, 4.0] * 10})
    asked = af.parse_spec(
        "version = 1\ncolumns.age.role = 'quasi-identifier'\ncolumns.ill.role = 'target'\n"
        "columns.cost = {role = 'target', type = 'continuous'}\nprivacy.k = 5"
    )
    found = evaluated(frame, asked, models=["ill", "cost"], learners=["tree", "tree-regression"], folds=2)
    values = {(row["measure"], row["part"], row["fold"]): row["value"] for row in found.frame.to_dicts()}
    fold_of = fold_of_rows(schema_of(asked, frame.columns), frame, 2, 0)
    for fold in range(2):
        training, test = frame.filter(fold_of != fold), frame.filter(fold_of == fold)
        mean = training["cost"].mean()
        errors = (test["cost"] - mean).to_numpy()
        assert values["accuracy", "test", fold] == pytest.approx((test["ill"] == "no").mean())
        assert values["accuracy", "train", fold] == pytest.approx((training["ill"] == "no").mean())
        assert values["mae", "test", fold] == pytest.approx(np.abs(errors).mean())
        assert values["rmse", "test", fold] == pytest.approx(np.sqrt((errors**2).mean()))


def test_a_model_for_some_rows_is_tested_on_these_only() -> None:
    # Who is below 40 is never ill: a model for the young is always right there.
    frame = people(ROWS).with_columns(ill=pl.when(pl.col("age") >= 40).then(pl.col("ill")).otherwise(pl.lit("no")))
    found = evaluated(frame, methods=["original"], models=[{"target": "ill", "where": "age < 40"}])
    assert set(found.frame["value"]) == {1.0}


def test_rows_without_a_label_are_neither_learned_from_nor_tested_on() -> None:
    frame = people(ROWS)
    gaps = frame.with_columns(ill=pl.when(pl.col("hours") < 20).then(None).otherwise(pl.lit("yes")))
    found = evaluated(gaps, methods=["original", "median"])
    assert set(found.frame["value"]) == {1.0}


def test_a_quasi_identifier_can_be_predicted_by_raw_test_rows_only() -> None:
    asked = spec(SPEC.replace('targets = ["ill"]', 'targets = ["age"]\n[method]\ncriterion = "lsd"'))
    with pytest.raises(RequestError, match="use the protocol 'raw-test'"):
        evaluated(asked=asked)
    frame = people(ROWS).with_columns(hours=pl.col("age") * 2)
    found = evaluated(frame, asked, protocol="raw-test", learners=["linear-regression"], methods=["spec", "original"])
    assert value(found, "original", measure="mae") < 0.01
    assert 0.01 < value(found, "spec", measure="mae") < 10


def test_figures_of_releases_are_counted_by_hand() -> None:
    frame = people(ROWS)
    found = evaluated(frame, ks=[10])
    fold_of = fold_of_rows(schema_of(spec(), frame.columns), frame, 3, 0)
    training = frame.filter(fold_of != 0)
    groups = method("median").recode(training, spec(), 10, 0).apply(training).group_by("age", "job")
    sizes = groups.len()["len"].to_numpy()
    values = {row["figure"]: row["value"] for row in found.figures.filter(fold=0).to_dicts()}
    assert values["average_size"] == pytest.approx(200 / len(sizes))
    assert values["group_count"] == len(sizes)
    assert values["discernibility"] == (sizes**2).sum()
    right = groups.agg(pl.col("ill").value_counts().struct.field("count").max().alias("most"))["most"].sum()
    assert values["classification_metric"] == pytest.approx(1 - right / 200)
    assert set(values) == {
        "average_size",
        "group_count",
        "discernibility",
        "gcp",
        "lm",
        "conditional_entropy",
        "classification_metric",
        "column_ncp",
        "column_together",
        "weighted_discernibility",
    }


def test_imprecision_is_a_figure_where_there_are_selections() -> None:
    text = SPEC + "[[workload.selections]]\nwhere = 'age >= 41'\n"
    found = evaluated(asked=spec(text), methods=["median", "selection"], ks=[20])
    means = {
        row["method"]: row["value"]
        for row in found.figures.filter(figure="imprecision").group_by("method").agg(pl.col("value").mean()).to_dicts()
    }
    assert 0 <= means["selection"] < means["median"]


# --- folds ------------------------------------------------------------------------------------------------------


def test_folds_are_equally_large_and_follow_the_seed() -> None:
    frame = people(100)
    schema = schema_of(spec(), frame.columns)
    folds = fold_of_rows(schema, frame, 3, 5)
    assert sorted(np.bincount(folds).tolist()) == [33, 33, 34]
    assert (folds == fold_of_rows(schema, frame, 3, 5)).all()
    assert (folds != fold_of_rows(schema, frame, 3, 6)).any()


def test_the_rows_of_a_person_are_in_one_fold() -> None:
    frame = people(120).with_columns(person=pl.Series([f"p{row % 40}" for row in range(120)]))
    schema = schema_of(spec(SPEC + "[columns.person]\nrole = 'entity'\n"), frame.columns)
    folds = frame.with_columns(fold=fold_of_rows(schema, frame, 4, 0)).group_by("person").agg(pl.col("fold").n_unique())
    assert set(folds["fold"]) == {1}


# --- processes, and going on ------------------------------------------------------------------------------------


def test_processes_change_nothing() -> None:
    words = {"methods": ["infogain", "original"], "ks": [3, 9], "learners": ["tree", "gradient-boosting"], "folds": 2}
    assert evaluated(workers=1, **words).frame.equals(evaluated(workers=2, **words).frame)


def test_an_evaluation_goes_on_where_it_was_left(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(done: int, _all: int, _name: str) -> None:
        if done == 2:
            raise Stopped

    watched = Watched()
    with pytest.raises(Stopped):
        evaluated(methods=[watched], store=tmp_path, progress=stop)
    assert len(watched.seen) == 2
    told: list[tuple[int, int]] = []
    found = evaluated(methods=[watched], store=tmp_path, progress=lambda done, all_, _: told.append((done, all_)))
    assert len(watched.seen) == 3
    assert told == [(2, 3), (3, 3)]
    assert found.frame.equals(evaluated(methods=[Watched()]).frame)
    evaluated(methods=[watched], store=tmp_path, learners=["tree", "naive-bayes"])
    assert len(watched.seen) == 6  # a further learner needs the recodings again
    evaluated(methods=[watched], store=tmp_path, learners=["naive-bayes"])
    assert len(watched.seen) == 6


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    "words",
    [
        {"seed": 1},
        {"folds": 4},
        {"protocol": "combined"},
        {"encoding": "expected"},
        {"frame": people(ROWS, seed=1)},
        {"ks": [6]},
        {"models": [{"target": "ill", "using": ["age"], "name": "ill"}]},
        {"models": [{"target": "ill", "where": "age > 30", "name": "ill"}]},
        {"asked": replace(spec(), method=replace(spec().method, split_on=("age",)))},
    ],
)
def test_what_was_found_for_another_request_is_not_used(tmp_path: Path, words: dict[str, Any]) -> None:
    watched = Watched()
    evaluated(methods=[watched], store=tmp_path)
    evaluated(**{"methods": [watched], "store": tmp_path} | words)
    assert len(watched.seen) > 3


def test_figures_of_one_target_are_not_told_of_another(tmp_path: Path) -> None:
    frame = people(ROWS).with_columns(late=pl.Series(["no", "yes"] * (ROWS // 2)))
    asked = spec(SPEC.replace("[columns.hours]", "[columns.late]\nrole = 'target'\n[columns.hours]"))
    for models in (["ill"], ["late"], ["late", "ill"]):
        kept, fresh = (evaluated(frame, asked, models=models, store=store) for store in (tmp_path, None))
        assert kept.figures.equals(fresh.figures)
        told = kept.figures.filter(figure="conditional_entropy")
        assert told["target"].unique(maintain_order=True).to_list() == models


def test_a_store_that_was_cut_short_loses_its_last_line_only(tmp_path: Path) -> None:
    found = evaluated(store=tmp_path)
    path = tmp_path / "store.jsonl"
    path.write_text(path.read_text()[:-20])
    assert evaluated(store=tmp_path).frame.equals(found.frame)
    told: list[int] = []
    again = evaluated(store=tmp_path, progress=lambda done, _all, _name: told.append(done))
    assert again.frame.equals(found.frame)
    assert told == [3]


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.jsonl").write_text('{"version": 99}\n')
    with pytest.raises(RequestError, match="no store of this version"):
        evaluated(store=tmp_path)


def test_no_record_s_values_are_kept(tmp_path: Path) -> None:
    frame = people(ROWS).with_columns(
        age=pl.col("age") + 7_654_321_000, job=pl.lit("Zyx") + pl.col("job"), hours=pl.col("hours") + 8_765_432_000
    )
    found = evaluated(frame, methods=["median", "original", "removed"], store=tmp_path)
    found.save(tmp_path)
    texts = [path.read_text() for path in tmp_path.iterdir()]
    assert len(texts) == 5
    # So many digits that no hash of the store has them by chance.
    assert not any(marker in text for text in texts for marker in ("7654321", "8765432", "Zyx"))


# --- wrong requests ---------------------------------------------------------------------------------------------


def test_demands_that_cannot_be_met_are_told_and_others_go_on() -> None:
    found = evaluated(methods=["median", Impossible()], folds=2)
    assert [(one.method, one.fold, one.why) for one in found.unmet] == [
        ("impossible", 0, "it cannot be."),
        ("impossible", 1, "it cannot be."),
    ]
    assert found.methods == ["median"]
    too_much = evaluated(asked=replace(spec(), privacy=PrivacySpec(10_000)), folds=2)
    assert "fewer than k = 10000" in too_much.unmet[0].why
    assert too_much.frame.is_empty()
    assert too_much.summary().is_empty()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ({"methods": []}, "no method is named"),
        ({"methods": ["median", "median"]}, "named twice"),
        ({"methods": ["mode"]}, "no method 'mode'"),
        ({"methods": "median"}, r"must be a list, such as \['median'\]"),
        ({"learners": "tree"}, "must be a list"),
        ({"learners": ["linear-regression"]}, "no learner of classes is named"),
        ({"learners": ["tree", "tree"]}, "a learner is named twice"),
        ({"ks": [0]}, "k = 0 must be"),
        ({"folds": 1}, "at least 2"),
        ({"protocol": "hold-out"}, "no protocol 'hold-out'; did you mean 'holdout'"),
        ({"encoding": "end"}, "no encoding 'end'; did you mean 'ends'"),
        ({"methods": ["selection"]}, "'selection' needs selections"),
        ({"methods": ["lsd"]}, "needs a numeric target"),
        ({"models": [{"target": "ill", "where": "agee > 1"}]}, "did you mean 'age'"),
    ],
)
def test_wrong_requests_are_refused(words: dict[str, Any], error: str) -> None:
    with pytest.raises((RequestError, DataError), match=error):
        evaluated(**words)


def test_a_method_that_the_spec_is_not_for_is_refused_before_any_works() -> None:
    watched = Watched()
    with pytest.raises(RequestError, match="'selection' needs selections"):
        evaluated(methods=[watched, "selection"])
    assert watched.seen == []


@pytest.mark.parametrize("text", [SPEC, SPEC.replace('[columns.hours]\nrole = "insensitive"\n', "")])
def test_columns_are_no_more_different_because_a_fold_has_fewer_rows(text: str) -> None:
    # 60 rows, 48 different values; in half of the rows nearly all are different.
    frame = people(60).with_columns(hours=pl.Series([*range(48), *range(12)]))
    asked = af.parse_spec(text.replace("version = 1", "version = 1\ndata.default_role = 'insensitive'"))
    assert evaluated(frame, asked, folds=2).unmet == ()


@pytest.mark.parametrize(
    ("column", "value", "model", "error"),
    [
        ("ill", None, {"target": "ill"}, "the target 'ill' has no value at all"),
        ("age", 30, {"target": "ill", "where": "age > 30"}, "is for no row whose 'ill' is known"),
        ("cost", float("inf"), {"target": "ill", "using": ["cost"]}, "column 'cost' holds numbers that are infinite"),
        ("cost", -1e39, {"target": "cost"}, "column 'cost' holds numbers that are infinite or too large"),
    ],
)
def test_what_cannot_be_measured_is_refused(column: str, value: Any, model: dict[str, Any], error: str) -> None:
    frame = people(ROWS).with_columns(pl.lit(value).cast(people(1)[column].dtype).alias(column))
    with pytest.raises(DataError, match=error):
        evaluated(frame, models=[model], learners=[])
    assert evaluated(frame, models=[{"target": "ill" if column != "ill" else "cost", "using": ["job"]}], learners=[])


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(DataError, match="5 rows, too few for 3 folds"):
        evaluated(people(5))


def test_data_without_a_spec_is_refused() -> None:
    with pytest.raises(RequestError, match="a spec is missing"):
        af.evaluate(people(50))


def test_a_spec_can_name_its_data(tmp_path: Path) -> None:
    people(100).write_csv(tmp_path / "people.csv")
    (tmp_path / "spec.toml").write_text(SPEC.replace("[columns.age]", "[data]\nsource = 'people.csv'\n[columns.age]"))
    words: dict[str, Any] = {"methods": ["median"], "learners": ["tree"], "folds": 2, "workers": 1}
    by_path = af.evaluate(tmp_path / "spec.toml", **words)
    by_spec = af.evaluate(af.read_spec(tmp_path / "spec.toml"), **words)
    assert by_path.frame.equals(by_spec.frame)
    store = tmp_path / "store"
    af.evaluate(tmp_path / "spec.toml", store=store, **words)
    told: list[int] = []
    af.evaluate(tmp_path / "spec.toml", store=store, progress=lambda done, _all, _name: told.append(done), **words)
    assert told == [2]


def test_a_k_of_numpy_is_one_of_python() -> None:
    found = evaluated(methods=["median"], ks=[np.int64(5), 5])
    assert found.frame["k"].unique().to_list() == [5]
    for k in (0, 2.5, True, np.bool_(True)):
        with pytest.raises(RequestError, match="must be a whole number of at least 1"):
            evaluated(methods=["median"], ks=[k])
