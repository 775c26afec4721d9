# SPDX-License-Identifier: Apache-2.0
"""Trees asked for in a spec: what the spec may say, the published folder, and the table that a tree stands for."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.algorithms.trees.released import ReleasedTree
from anonfit.errors import AuditFailed, DataError, Infeasible, ReleaseError, RequestError, SpecError
from anonfit.release import trees as tree_publishing
from anonfit.release.trees import make_tree_of, publish_tree
from anonfit.spec.parse import public_spec, spec_of
from anonfit.spec.write import to_toml

REGIONS = {
    "name": "*",
    "children": [
        {"name": "north", "children": [{"name": "n1"}, {"name": "n2"}]},
        {"name": "south", "children": [{"name": "s1"}, {"name": "s2"}]},
    ],
}


def patients(rows: int = 400, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    dose = np.round(rng.normal(20, 6, rows), 1)
    smokes = rng.choice(["yes", "no"], rows)
    region = rng.choice(["n1", "n2", "s1", "s2"], rows)
    ill = age / 90 + dose / 40 + 0.3 * (smokes == "yes") + rng.normal(0, 0.25, rows) > 1.3
    return pl.DataFrame(
        {
            "name": [f"person {number}" for number in range(rows)],
            "age": age,
            "region": region,
            "dose": dose,
            "smokes": smokes,
            "outcome": np.where(ill, "ill", "well"),
        }
    )


def tables(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "version": 1,
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi-identifier"},
            "region": {"role": "quasi-identifier", "taxonomy": REGIONS},
            "dose": {"role": "sensitive", "diversity": "none", "reason": "made-up people"},
            "smokes": {"role": "insensitive"},
            "outcome": {"role": "target"},
        },
        "privacy": {"k": 10},
        "method": {"algorithm": "tree"},
    }
    for path, value in changes.items():
        section, _, key = path.partition("__")
        found[section] = {**found.get(section, {}), key: value}
    return found


def spec(data: Any = None, **changes: Any) -> af.Spec:
    made = spec_of(tables(**changes))
    return replace(made, data=replace(made.data, source=patients() if data is None else data))


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "two targets": ({"columns__smokes": {"role": "target"}}, "classes of one target; found 'smokes', 'outcome'"),
    "no target": ({"columns__outcome": {"role": "insensitive"}}, "classes of one target; found none"),
    "public target": ({"columns__outcome": {"role": "quasi-identifier"}, "workload__targets": ["outcome"]}, "cannot be a quasi-identifier"),
    "variant": ({"method__variant": "cart"}, "method.variant = 'cart' is not known"),
    "pruning": ({"method__pruning": 0.7}, "method.pruning must be a number of at least 0 and at most 0.5"),
    "max_spans": ({"method__max_spans": 0}, "method.max_spans must be at least 1"),
    "populations": ({"output__populations": "all"}, "output.populations = 'all' is not known"),
    "criterion": ({"method__criterion": "infogain"}, "'infogain' is not for algorithm = 'tree'"),
    "mondrian": ({"method__min_gain": 1.0}, "method.min_gain is for algorithm = 'mondrian' only"),
    "tdr": ({"method__average": "all"}, "method.average is for algorithm = 'tdr' only"),
    "denoise": ({"workload__denoise": True}, "workload.denoise steers algorithm = 'mondrian' only"),
    "entity": ({"columns__smokes": {"role": "entity"}}, "takes a row for a person, so no column can have the role 'entity'"),
    "count": ({"columns__smokes": {"role": "count"}}, "no column can have the role 'count'"),
    "split": ({"columns__region": {"role": "quasi-identifier", "type": "nominal", "split": "subset"}}, "divides names along their taxonomy"),
    "several": ({"privacy__quasi_identifiers": [{"columns": ["age", "region"]}]}, "quasi_identifiers is for algorithm = 'tdr' only"),
    "diversity of others": ({"privacy__diversity": [{"column": "dose", "model": "variance", "variance": 1}]}, "holds spans to the diversity of the target only"),
    "other diversity": ({"privacy__diversity": [{"column": "outcome", "model": "distinct-l", "l": 2}]}, "knows 'entropy-l' and privacy.max_confidence only"),
    "known class": ({"privacy__class_is_public": True, "privacy__max_confidence": 0.9}, "what is known anyway cannot be kept diverse"),
    "widths": ({"workload__targets": [{"column": "outcome", "equal_width": 3}]}, "whose classes tell the smallest and the largest value"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_a_spec_are_told(name: str) -> None:
    changes, words = FAULTS[name]
    with pytest.raises(SpecError) as caught:
        spec_of(tables(**changes))
    assert words in str(caught.value)


def test_all_faults_are_told_together() -> None:
    changes = {"method__variant": "cart", "method__pruning": 2, "output__populations": "all", "method__average": "all"}
    with pytest.raises(SpecError) as caught:
        spec_of(tables(**changes))
    assert len(caught.value.faults) == 4


@pytest.mark.parametrize("algorithm", ["mondrian", "tdr"])
def test_settings_of_trees_say_nothing_of_tables(algorithm: str) -> None:
    changes = {
        "method__algorithm": algorithm,
        "method__variant": "id3",
        "method__max_spans": 5,
        "privacy__class_is_public": True,
        "output__populations": "relative",
    }
    with pytest.raises(SpecError) as caught:
        spec_of(tables(**changes))
    assert sum("is for algorithm = 'tree' only" in fault for fault in caught.value.faults) == 4


def test_a_spec_is_written_and_read_back() -> None:
    asked = spec_of(
        tables(
            method__variant="id3",
            method__pruning=0.1,
            method__max_spans=77,
            privacy__class_is_public=True,
            output__populations="majority",
            columns__dose={"role": "sensitive", "type": "continuous", "domain": [0, 100]},
            columns__smokes={"role": "insensitive", "type": "nominal", "domain": ["yes", "no"]},
        )
    )
    assert af.parse_spec(to_toml(asked)) == asked


def test_only_trees_may_be_told_of_the_values_of_raw_columns() -> None:
    changes = {"columns__smokes": {"role": "insensitive", "type": "nominal", "domain": ["yes", "no"]}}
    assert spec_of(tables(**changes)).columns["smokes"].domain == ("yes", "no")
    with pytest.raises(SpecError, match="can be set for a quasi-identifier only"):
        spec_of(tables(**changes, method__algorithm="mondrian"))


@pytest.mark.parametrize("populations", ["exact", "relative", "majority"])
def test_the_folder_is_whole_audited_and_loads(tmp_path: Path, populations: str) -> None:
    made = af.run_tree(spec(output__populations=populations), tmp_path / "out")
    folder = tmp_path / "out"
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.txt",
        "audit.json",
        "manifest.json",
        "model.json",
        "report.html",
        "tree.svg",
        "tree.txt",
    ]
    assert made.audit["audit"]["passed"]
    assert made.audit["audit"]["k"] >= 10
    sizes = [one["persons"] for one in made.audit["audit"]["of_spans"]]
    assert len(sizes) > 1
    assert sum(sizes) == 400
    loaded = af.load_tree(folder)
    assert loaded.predict(patients()).tolist() == made.tree.predict(patients()).tolist()
    assert af.load_tree(folder / "model.json").to_model_json() == loaded.to_model_json()
    record = tmp_path / "out.internal.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert json.loads(record.read_text())["audit"]["passed"]
    assert {path.name for path in tmp_path.iterdir()} == {"out", "out.internal.json"}
    found = af.audit_tree(folder, patients(), k=10)
    assert found.passed


def test_a_changed_folder_is_refused(tmp_path: Path) -> None:
    af.run_tree(spec(), tmp_path / "out")
    with pytest.raises(ReleaseError, match="already there"):
        af.run_tree(spec(), tmp_path / "out")
    af.run_tree(spec(privacy__k=20), tmp_path / "out", replace=True)
    (tmp_path / "out" / "tree.txt").write_text("another tree")
    with pytest.raises(ReleaseError, match="was changed after"):
        af.load_tree(tmp_path / "out")
    with pytest.raises(ReleaseError, match="was changed after"):
        af.load(tmp_path / "out")
    with pytest.raises(ReleaseError, match="has format 'anonfit tree release'"):
        af.compare(tmp_path / "out", tmp_path / "out")


def test_a_tree_that_the_audit_refuses_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_tree_of(spec(privacy__k=2))
    asked = replace(made, spec=replace(made.spec, privacy=replace(made.spec.privacy, k=100)))
    with pytest.raises(AuditFailed, match="Some groups hold fewer persons than asked for"):
        publish_tree(asked, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    honest = ReleasedTree.to_model_json

    def changed(tree: ReleasedTree) -> str:
        written = json.loads(honest(tree))
        written["bins"][0][0] += 1
        return json.dumps(written)

    monkeypatch.setattr(ReleasedTree, "to_model_json", changed)
    with pytest.raises(AuditFailed, match="Some bins do not hold what the tree says"):
        publish_tree(made, tmp_path / "out")
    monkeypatch.setattr(ReleasedTree, "to_model_json", lambda _: "{}")
    with pytest.raises(AuditFailed, match="cannot be audited"):
        publish_tree(made, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_a_record_is_in_the_folder(tmp_path: Path) -> None:
    """Values that one person has, in every role."""
    frame = patients(300)
    marks = {"name": "MARKname", "age": 1234567, "region": "s2", "dose": 98765432.1, "smokes": "MARKsmokes"}
    odd = frame[:1].with_columns(pl.lit(value).cast(frame[name].dtype).alias(name) for name, value in marks.items())
    frame = pl.concat([frame, odd])
    changes: dict[str, Any] = {"columns__region": {"role": "quasi-identifier", "type": "nominal"}, "method__pruning": 0}
    rare = frame.with_columns(
        pl.when(pl.col("age") == 1234567).then(pl.lit("MARKregion")).otherwise("region").alias("region")
    )
    af.run_tree(spec(rare, privacy__k=3, **changes), tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        text = path.read_text()
        for mark in ("MARK", "98765432", "1234567", "person 1"):
            assert mark not in text, (path.name, mark)


def test_a_class_of_one_person_is_told_unless_only_the_majority_is(tmp_path: Path) -> None:
    frame = patients(300).with_columns(
        pl.when(pl.int_range(300) == 7).then(pl.lit("MARKclass")).otherwise("outcome").alias("outcome")
    )
    for populations, is_told in (("exact", True), ("relative", True), ("majority", False)):
        made = af.run_tree(spec(frame, output__populations=populations), tmp_path / populations)
        texts = [path.read_text() for path in (tmp_path / populations).iterdir()]
        assert any("MARKclass" in text for text in texts) == is_told
        assert any("every class of a training person is named" in one for one in made.audit["not_covered"]) == is_told
        assert made.audit["audit"]["passed"]


def test_cuts_of_private_columns_are_no_values(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="values of single persons in the private column 'dose'"):
        af.run_tree(spec(method__cut_points="value", output__consent=True), tmp_path / "out")
    unread = {"role": "identifier"}
    made = af.run_tree(spec(method__cut_points="value", output__consent=True, columns__dose=unread), tmp_path / "out")
    assert made.audit["audit"]["passed"]


def test_names_that_are_declared_may_be_told(tmp_path: Path) -> None:
    frame = patients(300).with_columns(
        pl.when(pl.int_range(300) == 7).then(pl.lit("sometimes")).otherwise("smokes").alias("smokes")
    )
    declared = {"role": "insensitive", "type": "nominal", "domain": ["yes", "no", "sometimes"]}
    af.run_tree(spec(frame, columns__smokes=declared), tmp_path / "a")
    af.run_tree(spec(frame), tmp_path / "b")
    assert "sometimes" in (tmp_path / "a" / "model.json").read_text()
    assert "sometimes" not in (tmp_path / "b" / "model.json").read_text()


def test_missing_values_are_refused_or_left_out(tmp_path: Path) -> None:
    frame = patients().with_columns(
        pl.when(pl.int_range(400) < 12).then(None).otherwise("dose").alias("dose"),
        pl.when(pl.int_range(400) == 13).then(None).otherwise("outcome").alias("outcome"),
    )
    with pytest.raises(DataError, match="missing value"):
        af.run_tree(spec(frame), tmp_path / "out")
    asked = spec(frame)
    made = af.run_tree(replace(asked, data=replace(asked.data, missing_policy="drop")), tmp_path / "out")
    assert made.audit["rows"] == {"read": 400, "dropped": 13}
    assert sum(one["persons"] for one in made.audit["audit"]["of_spans"]) == 387


def test_numbers_may_be_classes(tmp_path: Path) -> None:
    frame = patients().rename({"outcome": "was"}).with_columns(outcome=pl.col("dose") * 3 + pl.col("age")).drop("was")
    with pytest.raises(SpecError, match="is a number; give it classes"):
        af.run_tree(spec(frame), tmp_path / "out")
    made = af.run_tree(spec(frame, workload__targets=[{"column": "outcome", "classes": [90, 120.5]}]), tmp_path / "out")
    assert made.tree.classes == ("< 90", "[90, 120.5)", "≥ 120.5")
    assert made.audit["audit"]["passed"]


def test_demands_that_cannot_be_met_are_told(tmp_path: Path) -> None:
    with pytest.raises(Infeasible, match="fewer than k = 500"):
        af.run_tree(spec(privacy__k=500), tmp_path / "out")
    with pytest.raises(Infeasible, match="max_confidence must be at least"):
        af.run_tree(spec(privacy__max_confidence=0.5), tmp_path / "out")
    with pytest.raises(SpecError, match="makes a table; for a tree use 'tree'"):
        af.run_tree(spec(method__algorithm="mondrian"), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_diversity_of_the_class_is_held_and_audited(tmp_path: Path) -> None:
    plain = af.run_tree(spec(), tmp_path / "plain")
    demand = [{"column": "outcome", "model": "entropy-l", "l": 1.6}]
    made = af.run_tree(spec(privacy__diversity=demand), tmp_path / "out")
    assert {one["model"] for one in made.audit["audit"]["spans"]["diversity"]} == {"entropy-l"}
    assert made.audit["audit"]["spans"]["diversity"][0]["met"]
    assert made.tree.leaves != plain.tree.leaves
    sensitive = spec(columns__outcome={"role": "sensitive"}, workload__targets=["outcome"], privacy__diversity=demand)
    assert af.run_tree(sensitive, tmp_path / "again").tree.to_model_json() == made.tree.to_model_json()
    capped = af.run_tree(spec(privacy__max_confidence=0.8), tmp_path / "capped")
    exposed = {one["confidence"]: one["persons"]["persons"] for one in capped.audit["audit"]["exposed"]}
    assert exposed[0.85] == 0


def test_a_public_class_parts_spans(tmp_path: Path) -> None:
    made = af.run_tree(spec(privacy__class_is_public=True), tmp_path / "out")
    assert made.audit["audit"]["class_is_public"]
    assert made.audit["audit"]["exposed"] == []
    assert made.audit["audit"]["k"] >= 10


# --- the table that a tree stands for ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_groups_of_the_table_are_the_spans_of_the_tree(seed: int, tmp_path: Path) -> None:
    frame = patients(300, seed)
    asked = spec(frame, privacy__k=5, method__pruning=0)
    tree = af.run_tree(asked, tmp_path / "tree")
    release = af.run(asked, tmp_path / "table")
    sizes = sorted(one["persons"] for one in tree.audit["audit"]["of_spans"])
    assert sorted(release.data.group_by("age", "region").len()["len"].to_list()) == sizes
    assert release.report["audit"]["passed"]
    assert release.report["asked"]["algorithm"] == "k-anonymous decision tree (C4.5)"
    assert release.data.columns == ["age", "region", "dose", "smokes", "outcome"]
    assert len(release.data) == 300


def test_groups_are_those_of_the_definition() -> None:
    """Persons of one group come to the same leaves under all private values."""
    frame = patients(250, 3)
    asked = spec(frame, privacy__k=4, method__pruning=0)
    tree = make_tree_of(asked).tree
    recoding = af.anonymize(asked).recoding
    groups = recoding.nodes(recoding.cells(frame))
    private = frame.select("dose", "smokes").unique()
    ends: dict[int, set[frozenset[int]]] = {}
    for row, group in zip(frame.iter_rows(named=True), groups.tolist(), strict=True):
        every = private.with_columns(age=pl.lit(row["age"]), region=pl.lit(row["region"]))
        ends.setdefault(group, set()).add(frozenset(tree.leaf_of(every).tolist()))
    assert all(len(found) == 1 for found in ends.values())
    assert len({next(iter(found)) for found in ends.values()}) == len(ends) > 3


def test_the_recoding_tiles_the_domain_and_new_data_is_released_by_it(tmp_path: Path) -> None:
    asked = spec(privacy__diversity=[{"column": "outcome", "model": "entropy-l", "l": 1.3}])
    release = af.run(asked, tmp_path / "out")
    everybody = patients(3000, 9)
    recoding = release.recoding
    assert af.Recoding.from_json(recoding.to_json()).to_json() == recoding.to_json()
    assert (recoding.nodes(recoding.cells(everybody)) >= 0).all()
    again = af.load(tmp_path / "out").extend(patients(2000, 5), suppression_limit=1.0)
    assert again.report["audit"]["passed"]
    assert public_spec(json.loads((tmp_path / "out" / "manifest.json").read_text())["spec"]).method.algorithm == "tree"


def test_a_table_has_no_public_class() -> None:
    with pytest.raises(SpecError, match="make the tree itself with anonfit tree"):
        af.anonymize(spec(privacy__class_is_public=True))


def test_keywords_ask_for_it_too() -> None:
    release = af.anonymize(
        patients().drop("name"),
        quasi_identifiers=["age", "region"],
        insensitive=["dose", "smokes"],
        targets=["outcome"],
        k=10,
        algorithm="tree",
        variant="c45",
        pruning=0,
        max_spans=5000,
    )
    assert release.report["audit"]["passed"]


def test_evaluate_knows_it() -> None:
    found = af.evaluate(spec(), methods=["tree", "median", "original"], ks=[10], learners=["tree"], folds=2, workers=1)
    assert set(found.frame["method"]) == {"tree", "median", "original"}


def test_the_audit_is_of_the_written_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    audit = tree_publishing.audit_tree_draft

    def seen(made: Any, model: Path) -> Any:
        read.append(model)
        return audit(made, model)

    monkeypatch.setattr(tree_publishing, "audit_tree_draft", seen)
    af.run_tree(spec(), tmp_path / "out")
    assert [path.name for path in read] == ["model.json"]
