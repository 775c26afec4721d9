# SPDX-License-Identifier: Apache-2.0
"""Releases made for an application, from the spec to the folder: roles, weights that are found, clusters, exploring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.errors import SpecError

NAMES = ["age", "town", "hours"]


def people(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    age, town = rng.integers(20, 80, rows), rng.integers(0, 6, rows)
    return pl.DataFrame(
        {
            "age": age,
            "town": np.array(list("abcdef"))[town],
            "hours": rng.integers(0, 60, rows),
            "note": rng.choice(["x", "y", "z"], rows),
            "ill": np.where(age + 9 * rng.normal(size=rows) > 50, "yes", "no"),
        }
    )


def release(**words: Any) -> af.Release:
    targets = words.pop("targets", [])
    rest = [name for name in ("note", "ill") if name not in targets]
    return af.anonymize(people(), quasi_identifiers=NAMES, k=10, insensitive=rest, targets=targets, **words)


def spec(**sections: Any) -> af.Spec:
    columns = {name: {"role": "quasi-identifier"} for name in NAMES}
    columns |= {"note": {"role": "insensitive"}, "ill": {"role": "target"}}
    return af.parse_spec(_toml({"version": 1, "columns": columns, "privacy": {"k": 10}, **sections}))


def _toml(tables: dict[str, Any], at: str = "") -> str:
    plain = [f"{key} = {json.dumps(value)}" for key, value in tables.items() if not isinstance(value, dict)]
    parts = [f"[{at}{key}]\n{_toml(value, f'{at}{key}.')}" for key, value in tables.items() if isinstance(value, dict)]
    return "\n".join([*plain, *parts])


# --- roles ------------------------------------------------------------------------------------------------------


def test_features_and_selecting_columns_have_the_weight_one() -> None:
    found = spec(workload={"features": ["age", "note"], "selected_by": ["town"]})
    assert found.weights == {"age": 1.0, "town": 1.0, "hours": 0.0}
    one, other = release(features=["age"], selected_by=["town"]), release(weights={"age": 1, "town": 1, "hours": 0})
    assert one.data.equals(other.data)


def test_features_come_back_from_a_saved_release(tmp_path: Path) -> None:
    release(features=["age"], clusters=3, criterion="clustering").save(tmp_path / "out")
    loaded = af.load(tmp_path / "out")
    assert loaded._draft.spec.workload.features == ("age",)
    assert loaded._draft.spec.workload.clusters == 3
    assert loaded.extend(people()).data.equals(loaded.data)


def test_the_enforcements_of_the_paper_are_different_releases() -> None:
    weights = {"age": 3.0, "town": 2.0, "hours": 1.0}
    rules = ("first", "product", "blend", "probabilistic")
    found = [release(weights=weights, weight_rule=rule).data for rule in rules]
    found.append(release(criterion="median").data)
    assert not any(one.equals(other) for place, one in enumerate(found) for other in found[:place])
    # Without targets naive is strict.
    assert release(weights=weights, weight_rule="naive").data.equals(found[0])
    guided = [
        release(weights={"age": 1, "town": 1, "hours": 0}, weight_rule=rule, targets=["ill"]).data
        for rule in ("first", "naive", "combined")
    ]
    assert not any(one.equals(other) for place, one in enumerate(guided) for other in guided[:place])


def test_draws_depend_on_the_seed_which_is_not_published(tmp_path: Path) -> None:
    weights = {"age": 1.0, "town": 1.0}
    words: dict[str, Any] = {"weights": weights, "weight_rule": "probabilistic"}
    one, again, other = (release(**words, seed=seed) for seed in (7, 7, 8))
    assert one.data.equals(again.data)
    assert not one.data.equals(other.data)
    one.save(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert "seed" not in manifest["spec"]["method"]


# --- weights that are found -------------------------------------------------------------------------------------


def test_accuracies_are_in_the_internal_record_only(tmp_path: Path) -> None:
    release(targets=["ill"], weights_from="accuracy").save(tmp_path / "out")
    internal = json.loads((tmp_path / "out.internal.json").read_text())
    accuracies = internal["learned_weights"]["accuracies"]
    assert max(accuracies, key=lambda name: accuracies[name]) == "age"
    assert internal["learned_weights"]["weights"]["age"] == 3.0
    texts = "".join(path.read_text() for path in (tmp_path / "out").glob("*.json"))
    assert "accuracies" not in texts
    assert "learned_weights" not in texts


# --- what the report says ---------------------------------------------------------------------------------------


def test_a_report_has_two_measures_of_every_column_and_says_where_they_disagree(tmp_path: Path) -> None:
    found = release(weights={"age": 1.0, "town": 0.0, "hours": 0.0}, criterion="weighted")
    lost = found.report["columns_lost"]
    assert [line["column"] for line in lost["columns"]] == NAMES
    assert [line["weight"] for line in lost["columns"]] == [1.0, 0.0, 0.0]
    squares = found.data.group_by("age").len()["len"].to_numpy().astype(np.int64)
    assert lost["columns"][0]["squares"] == int((squares**2).sum()) == lost["weighted_discernibility"]
    found.save(tmp_path / "out")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    compared = {line["column"]: line for line in report["comparison"]["columns"]["columns"]}
    assert compared["age"]["ncp"]["purpose"] <= compared["age"]["ncp"]["blind"]
    for line in compared.values():
        less_ncp = line["ncp"]["blind"] - line["ncp"]["purpose"]
        less_pairs = line["together"]["blind"] - line["together"]["purpose"]
        if line["disagree"]:
            assert (line["disagree"] == "ncp") == (less_ncp > 0)
        elif less_ncp and less_pairs:
            assert (less_ncp > 0) == (less_pairs > 0)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Pairs not told apart" in page
    assert "NCP, purpose" in page


def test_a_report_compares_clusters(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    made = release(criterion="clustering", features=["age", "note"], clusters=4, weights={"age": 2.0})
    made.save(tmp_path / "out")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    found = report["clusters"]
    assert made.report["clusters"] == found  # one release, one report
    assert found["clusters"] == 4
    assert found["rows"] == 400
    assert -1 <= found["agreement"] <= 1
    assert found["original"]["within"] <= found["release"]["within"]
    assert "alike in age (weight 2)." in " ".join(report["asked"]["sentences"])
    assert "adjusted Rand index" in (tmp_path / "out" / "report.html").read_text()


# --- exploring --------------------------------------------------------------------------------------------------


def test_the_published_candidate_and_every_other_can_be_made_again(tmp_path: Path) -> None:
    found = release(criterion="explore", seed=3)
    again = release(criterion="explore", seed=3)
    assert found.data.equals(again.data)
    found.save(tmp_path / "out")
    record = json.loads((tmp_path / "out.internal.json").read_text())["exploration"]
    assert len(record["candidates"]) == 32
    assert record["candidates"][record["published"]]["on_front"]
    chosen = record["candidates"][record["published"]]
    made = release(weights=chosen["weights"] or None, **chosen["method"])
    assert made.data.equals(found.data)
    # Others are made again with the figures they were held against.
    from anonfit.metrics.losses import weighted_discernibility

    for line in record["candidates"][:6]:
        one = release(weights=line["weights"] or None, **line["method"])
        nodes = one.recoding.nodes(one.recoding.cells(people()))
        assert weighted_discernibility(one.recoding, nodes).total == pytest.approx(line["figures"]["wdm"])


def test_the_record_of_an_exploration_is_not_published(tmp_path: Path) -> None:
    release(criterion="explore", seed=3).save(tmp_path / "out")
    record = json.loads((tmp_path / "out.internal.json").read_text())["exploration"]
    public = "".join(path.read_text() for path in (tmp_path / "out").iterdir() if path.suffix in (".json", ".html"))
    assert "on_front" not in public
    assert "Ways that were tried" not in public
    others = [line for line in record["candidates"] if line["number"] != record["published"]]
    assert not any(f"{line['figures']['gcp']:.6f}"[:8] in public for line in others)
    assert "Ways that were tried" in (tmp_path / "out.internal.html").read_text()
    sentences = json.loads((tmp_path / "out" / "report.json").read_text())["asked"]["sentences"]
    assert any("32 ways to weigh columns were tried" in one and "add up to the least" in one for one in sentences)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["spec"]["method"]["criterion"] in ("median", "weighted", "clustering")


def test_with_a_time_budget_the_first_candidates_are_the_same() -> None:
    short = release(criterion="explore", time_budget=0.05)._draft.exploration
    full = release(criterion="explore")._draft.exploration
    assert short is not None
    assert full is not None
    tried = len(short["candidates"])
    assert tried >= 2
    for one, other in zip(short["candidates"], full["candidates"], strict=False):
        assert {key: one[key] for key in ("number", "method", "weights", "figures")} == {
            key: other[key] for key in ("number", "method", "weights", "figures")
        }


def test_every_fault_of_an_application_is_reported_together() -> None:
    with pytest.raises(SpecError) as caught:
        spec(workload={"features": ["agee"], "clusters": 0, "weights_from": "x"}, method={"beta": 2})
    assert len(caught.value.faults) == 4


def test_exploring_finds_at_least_what_targets_alone_ask_for(tmp_path: Path) -> None:
    release(targets=["ill"], criterion="explore", seed=3).save(tmp_path / "out")
    record = json.loads((tmp_path / "out.internal.json").read_text())["exploration"]
    first, chosen = record["candidates"][0], record["candidates"][record["published"]]
    assert first["method"]["criterion"] == "auto"
    assert chosen["figures"]["error of ill"] <= first["figures"]["error of ill"]
    worse = [
        line for line in record["candidates"] if line["figures"]["error of ill"] > first["figures"]["error of ill"]
    ]
    assert worse
    assert not any(line["on_front"] for line in worse)
    public = json.loads((tmp_path / "out" / "report.json").read_text())["asked"]["sentences"]
    assert any("every target is predicted as well as by what targets alone ask for" in one for one in public)
    af.load(tmp_path / "out")


def test_exploring_for_targets_can_be_asked_for_again() -> None:
    found = release(targets=["ill"], criterion="explore", seed=3, time_budget=1e-9)
    chosen = found._draft.exploration
    assert chosen is not None
    assert [line["method"]["criterion"] for line in chosen["candidates"]] == ["auto", "median"]
    assert chosen["published"] == 0
    assert found.data.equals(release(targets=["ill"], seed=3).data)
