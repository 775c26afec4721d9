# SPDX-License-Identifier: Apache-2.0
"""What Python shows of releases, and one door for tables and trees."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonfit as af
from anonfit.errors import ReleaseError, RequestError

ROWS = 60
FRAME = pl.DataFrame(
    {
        "age": [20 + row % 40 for row in range(ROWS)],
        "town": [f"zq{row % 3}mark" for row in range(ROWS)],
        "<b>ill</b>": ["flu" if row % 2 else "cold" for row in range(ROWS)],
        "out": ["yes" if row % 40 > 20 else "no" for row in range(ROWS)],
    }
)
DEMAND = {"<b>ill</b>": {"model": "distinct-l", "l": 2}}
TREE = """version = 1
[data]
source = "people.parquet"
[columns]
age = { role = "quasi-identifier" }
town = { role = "quasi-identifier" }
"<b>ill</b>" = { role = "identifier" }
out = { role = "target" }
[privacy]
k = 5
"""


class Cells(HTMLParser):
    """The texts of a table's cells, and all tags."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def release() -> af.Release:
    return af.anonymize(FRAME, quasi_identifiers=["age", "town"], k=5, targets=["out"], sensitive=DEMAND)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    FRAME.write_parquet(tmp_path / "people.parquet")
    (tmp_path / "spec.toml").write_text(TREE, encoding="utf-8")
    return tmp_path / "spec.toml"


def test_a_release_shows_itself_in_a_notebook_without_a_row(release: af.Release) -> None:
    page = Cells()
    page.feed(release._repr_html_())
    assert page.texts[0] == f"Release of {ROWS} rows: k = 5, distinct-l of <b>ill</b>"
    told = set(zip(page.texts[4::3], page.texts[5::3], page.texts[6::3], strict=True))
    assert told == {
        ("age", "quasi-identifier", "generalized"),
        ("town", "quasi-identifier", "generalized"),
        ("<b>ill</b>", "sensitive", "as it is"),
        ("out", "target", "as it is"),
    }
    assert page.tags == {"table", "caption", "b", "thead", "tbody", "tr", "th", "td"}


def test_neither_notebook_nor_log_shows_a_value_of_a_record(release: af.Release) -> None:
    for shown in (release._repr_html_(), repr(release)):
        assert "mark" not in shown
        assert "flu" not in shown
        assert "cold" not in shown


def test_a_loaded_release_and_several_quasi_identifiers_show_themselves(tmp_path: Path, release: af.Release) -> None:
    release.save(tmp_path / "out")
    loaded = af.load(tmp_path / "out")
    assert "k = 5" in loaded._repr_html_()
    several = af.anonymize(
        FRAME.drop("<b>ill</b>"),
        quasi_identifiers=["age", "town"],
        k=5,
        targets=["out"],
        algorithm="tdr",
        requirements=[["age"], {"columns": ["town"], "k": 8}],
    )
    assert "k = 5 of age; k = 8 of town" in several._repr_html_()


def test_run_and_load_serve_trees(spec: Path, tmp_path: Path) -> None:
    made = af.run(spec, tmp_path / "tree", publish="tree")
    assert isinstance(made, af.TreeRelease)
    loaded = af.load(tmp_path / "tree")
    assert isinstance(loaded, af.TreeRelease)
    assert loaded.tree.to_model_json() == made.tree.to_model_json() == af.load_tree(tmp_path / "tree").to_model_json()
    assert loaded.audit == made.audit
    alone = af.load(tmp_path / "tree" / "model.json")
    assert (alone.tree.to_model_json(), alone.audit) == (made.tree.to_model_json(), {})
    assert loaded._repr_html_() == (tmp_path / "tree" / "tree.svg").read_text(encoding="utf-8")
    again = af.run_tree(spec, tmp_path / "again")
    assert again.tree.to_model_json() == made.tree.to_model_json()


def test_load_serves_tables_as_before(tmp_path: Path, release: af.Release) -> None:
    release.save(tmp_path / "out")
    assert af.load(tmp_path / "out").recoding.to_json() == release.recoding.to_json()
    with pytest.raises(ReleaseError, match="there is no such release folder"):
        af.load(tmp_path / "nowhere")


def test_what_run_cannot_publish_is_refused(spec: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="publish = 'trees' is not known; did you mean 'tree'"):
        af.run(spec, tmp_path / "out", publish="trees")
    with pytest.raises(RequestError, match="curve is for the report of a table"):
        af.run(spec, tmp_path / "out", publish="tree", curve=[5, 10])
    assert not (tmp_path / "out").exists()
