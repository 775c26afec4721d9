# SPDX-License-Identifier: Apache-2.0
"""The specs and taxonomies of examples/adult: what is written there can be read, and gives what the paper gives."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import anonfit as af
from anonfit.spec.parse import read_spec
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_files import read_taxonomy
from anonfit_papers.datasets import ADULT
from anonfit_papers.datasets_adult import ADULT_TAXONOMIES, complete_adult
from real_data import folder_with

EXAMPLES = Path(__file__).parents[2] / "examples" / "adult"
LEAVES_AND_LEVELS = {
    "workclass": (8, 5),
    "education": (16, 5),
    "marital-status": (7, 4),
    "occupation": (14, 3),
    "relationship": (6, 3),
    "race": (5, 3),
    "sex": (2, 2),
    "native-country": (41, 4),
}
"""Table 3 of the paper, but for native-country, which has 40 leaves and 5 levels there."""


def branches(taxonomy: Taxonomy) -> Counter[frozenset[str]]:
    """The leaves below each node."""
    runs = zip(taxonomy.first_leaf, taxonomy.last_leaf, strict=True)
    return Counter(frozenset(taxonomy.leaves[first : last + 1]) for first, last in runs)


def test_the_taxonomies_are_those_of_the_experiments() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.txt")} == set(ADULT_TAXONOMIES) == set(LEAVES_AND_LEVELS)
    for name, tree in ADULT_TAXONOMIES.items():
        found = read_taxonomy(EXAMPLES / f"{name}.txt", column=name)
        assert branches(found) == branches(Taxonomy.from_tree(tree))
        assert (len(found.leaves), max(found.depth) + 1) == LEAVES_AND_LEVELS[name]


def test_every_spec_can_be_read_and_there_is_no_data() -> None:
    specs = sorted(EXAMPLES.glob("*.toml"))
    assert len(specs) == 4
    for spec in specs:
        assert read_spec(spec).data.source == "adult.csv"
        assert spec.name in (EXAMPLES / "README.md").read_text()


@pytest.fixture(scope="module")
def adult(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The setting that names the records."""
    path = tmp_path_factory.mktemp("adult") / "adult.csv"
    complete_adult(folder_with(*(source.path for source in ADULT))).write_csv(path)
    return f"data.source={json.dumps(str(path))}"


@pytest.mark.parametrize(("k", "anonymity", "groups"), [(20, 29, 24), (60, 71, 12), (500, 691, 12)])
def test_seven_columns_as_one_quasi_identifier(tmp_path: Path, adult: str, k: int, anonymity: int, groups: int) -> None:
    found = af.run(EXAMPLES / "top7.toml", tmp_path / "release", settings=[adult, f"privacy.k={k}"])
    assert found.report["audit"]["sizes"]["smallest"] == anonymity
    assert found.report["audit"]["sizes"]["groups"] == groups
    marital = {"Partner-present", "Partner-absent", "Never-married"}
    assert set(found.data["marital-status"].unique()) == marital
    assert set(found.data["education-num"].unique()) == {"< 13", "≥ 13"}
    assert set(found.data["age"].unique()) == set(found.data["relationship"].unique()) == {"*"}


@pytest.mark.parametrize(("suppression", "disclosed"), [("all", "Unmarried"), ("best_gain", "Never-married")])
def test_five_columns_suppressed_by_both_readings(tmp_path: Path, adult: str, suppression: str, disclosed: str) -> None:
    settings = [adult, "privacy.k=500", f"method.suppression={suppression}"]
    settings += [f"columns.{name}.role=insensitive" for name in ("hours-per-week", "sex")]
    found = af.run(EXAMPLES / "top7-suppress.toml", tmp_path / "release", settings=settings)
    assert found.refinements is not None
    shown = [step["into"] for step in found.refinements["steps"] if step["refined"] is None]
    assert shown == [["Married-civ-spouse"], [disclosed]]


def test_three_quasi_identifiers_of_two_columns(tmp_path: Path, adult: str) -> None:
    found = af.run(EXAMPLES / "several.toml", tmp_path / "release", settings=[adult])
    sizes = [found.data.group_by(one["columns"]).len()["len"].min() for one in found.report["audit"]["sets"]]
    assert sizes == [one["sizes"]["smallest"] for one in found.report["audit"]["sets"]] == [102, 552, 327]
