# SPDX-License-Identifier: Apache-2.0
"""Taxonomy files read as the tree they mean, and what is written reads back the same."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anonfit.errors import DataError, TaxonomyError
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_files import read_taxonomy, write_taxonomy

SUFFIXES = (".csv", ".json", ".txt")
COUNTRIES = Taxonomy.from_paths(
    [("FR", "Europe", "*"), ("DE", "Europe", "*"), ("US", "America", "*"), ("Antarctica", "*")]
)
ADULT = Path(os.environ.get("ANONFIT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "hierarchies/arx-adult"

awkward = st.text(alphabet=" ;,|\t\n\r\"'*\\[]{}<≥\ufeff\u2028\x00éaB1", max_size=4)
names = st.one_of(awkward, st.text(st.characters(exclude_categories=["Cs"]), max_size=6))


@st.composite
def taxonomies(draw: st.DrawFn) -> Taxonomy:
    """A taxonomy of awkward names in which each node hangs below any earlier one."""
    nodes: list[dict[str, Any]] = [
        {"name": name, "children": []} for name in draw(st.lists(names, min_size=1, max_size=15, unique=True))
    ]
    for place in range(1, len(nodes)):
        nodes[draw(st.integers(0, place - 1))]["children"].append(nodes[place])
    return Taxonomy.from_tree(nodes[0])


def saved(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(deadline=None)
@given(taxonomy=taxonomies())
@example(taxonomy=Taxonomy.from_tree({"name": ""}))
@example(taxonomy=Taxonomy.from_tree({"name": " "}))
@example(taxonomy=Taxonomy.from_tree({"name": "a,b"}))
@example(taxonomy=Taxonomy.from_tree({"name": "\ufeff"}))
@example(taxonomy=Taxonomy.flat(["\ufeffa", "b"]))
@example(taxonomy=Taxonomy.flat(["a,x", "b,x"], "r,x"))
@example(taxonomy=Taxonomy.flat(["", " "], "name"))
def test_what_is_written_reads_back_the_same(suffix: str, taxonomy: Taxonomy) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"taxonomy{suffix}"
        write_taxonomy(taxonomy, path)
        assert read_taxonomy(path) == taxonomy


@pytest.mark.parametrize("delimiter", [";", ",", "\t", "|"])
def test_arx_layout_is_read_with_each_delimiter(tmp_path: Path, delimiter: str) -> None:
    rows = [
        ["FR", "Europe", "*"],
        ["DE", "Europe", "*"],
        ["US", "America", "*"],
        ["Antarctica", "Antarctica", "*"],
    ]
    text = "\n".join(delimiter.join(row) for row in rows)
    assert read_taxonomy(saved(tmp_path, "a.csv", text)) == COUNTRIES


def test_arx_layout_tolerates_blank_lines_a_mark_and_scattered_groups(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf\r\nFR;Europe;*\r\nUS;America;*\r\n\r\n  \r\nDE;Europe;*\r\n"
    taxonomy = read_taxonomy(saved(tmp_path, "a.csv", text))
    assert taxonomy.names == ("*", "Europe", "FR", "DE", "America", "US")


def test_arx_layout_reads_quoted_delimiters_as_part_of_the_name(tmp_path: Path) -> None:
    text = '"a;1",G,*\n"b,""2""",G,*\n'
    assert read_taxonomy(saved(tmp_path, "a.csv", text)).leaves == ("a;1", 'b,"2"')


def test_arx_layout_without_a_common_root_gets_one(tmp_path: Path) -> None:
    taxonomy = read_taxonomy(saved(tmp_path, "a.csv", "FR;Europe\nUS;America\n"))
    assert taxonomy.names == ("*", "Europe", "FR", "America", "US")


def test_one_column_is_a_flat_taxonomy(tmp_path: Path) -> None:
    assert read_taxonomy(saved(tmp_path, "a.csv", "FR\nDE\n")) == Taxonomy.flat(["FR", "DE"])


def test_padding_by_the_more_general_name_is_skipped_too(tmp_path: Path) -> None:
    taxonomy = read_taxonomy(saved(tmp_path, "a.csv", "FR;Europe;*\nAntarctica;*;*\n"))
    assert taxonomy.to_tree()["children"][1] == {"name": "Antarctica"}


def test_arx_layout_pads_uneven_depth_with_the_leaf(tmp_path: Path) -> None:
    write_taxonomy(COUNTRIES, tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_text("utf-8")
    assert text == "FR;Europe;*\nDE;Europe;*\nUS;America;*\nAntarctica;Antarctica;*\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FR;Europe;*\nDE;Europe\n", "line 2 has 2 fields, line 1 has 3"),
        ('FR;Europe;*\n"DE;Europe;*\n', "mend the quoting"),
        ("", "empty"),
        ("FR;Europe;*\nFR;Europe;*\n", "leaf 'FR'"),
        ("FR;West;Europe;*\nUS;West;America;*\n", "'West' has two parents"),
        ("Other;Other;*\nRest;Other;*\n", "'Other' is a leaf and also"),
    ],
)
def test_faults_of_the_arx_layout_are_named(tmp_path: Path, text: str, words: str) -> None:
    path = saved(tmp_path, "country.csv", text)
    with pytest.raises(TaxonomyError, match=f"country.csv: taxonomy of column 'country': .*{words}"):
        read_taxonomy(path, column="country")


@pytest.mark.parametrize(
    "tree",
    [
        COUNTRIES.to_tree(),
        {"*": {"Europe": {"FR": {}, "DE": None}, "America": {"US": {}}, "Antarctica": []}},
        {"*": [{"Europe": ["FR", "DE"]}, {"America": ["US"]}, "Antarctica"]},
        {"*": [{"Europe": ["FR", {"DE": {}}], "America": {"US": []}}, "Antarctica"]},
    ],
)
def test_each_form_of_json_tree_is_read(tmp_path: Path, tree: dict[str, Any]) -> None:
    assert read_taxonomy(saved(tmp_path, "a.json", json.dumps(tree))) == COUNTRIES


def test_compact_tree_may_have_a_root_called_name(tmp_path: Path) -> None:
    assert read_taxonomy(saved(tmp_path, "a.json", '{"name": ["FR"]}')).names == ("name", "FR")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1 is not JSON"),
        ("[1]", "not a tree under one root"),
        ('{"A": {}, "B": {}}', "not a tree under one root"),
        ('{"*": {"A": {}, "A": {"x": {}}}}', "key 'A' is twice"),
        ('{"*": [1, 2]}', "below '\\*'"),
        ('{"*": "A"}', "below '\\*'"),
        ('{"name": "*", "childs": []}', "holds 'childs'"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_faults_of_json_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(TaxonomyError, match=words):
        read_taxonomy(saved(tmp_path, "a.json", text))


@pytest.mark.parametrize("indent", [" ", "    ", "\t"])
def test_indented_text_is_read_with_spaces_or_tabs(tmp_path: Path, indent: str) -> None:
    lines = ["*", "{}Europe", "{}{}FR", "", "{}{}DE  ", "{}America", "{}{}US", "{}Antarctica"]
    text = "\r\n".join(line.replace("{}", indent) for line in lines)
    assert read_taxonomy(saved(tmp_path, "a.txt", text)) == COUNTRIES


def test_indented_text_quotes_only_names_that_need_it(tmp_path: Path) -> None:
    write_taxonomy(Taxonomy.flat(["a; b, c", " a", "", "two\nlines", '"q"', "é"]), tmp_path / "a.txt")
    lines = (tmp_path / "a.txt").read_text("utf-8").splitlines()
    assert lines == ["*", "  a; b, c", '  " a"', '  ""', '  "two\\nlines"', '  "\\"q\\""', "  é"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n \n", "empty"),
        ("*\n    a\n  b\n", "line 3 is indented like no line"),
        ("*\n\ta\n    b\n", "line 3 is indented like no line"),
        ("A\nB\n", "line 2 is a second root"),
        ('*\n  "a" b\n', "line 2 begins with a quote"),
    ],
)
def test_faults_of_indented_text_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(TaxonomyError, match=words):
        read_taxonomy(saved(tmp_path, "a.txt", text))


def test_unusable_files_are_errors_that_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"does not end in '\.xlsx'"):
        read_taxonomy(tmp_path / "a.xlsx")
    with pytest.raises(DataError, match="no suffix"):
        write_taxonomy(COUNTRIES, tmp_path / "a")
    with pytest.raises(DataError, match="no such taxonomy"):
        read_taxonomy(tmp_path / "absent.csv")
    with pytest.raises(DataError, match="cannot be written"):
        write_taxonomy(COUNTRIES, tmp_path / "absent" / "a.csv")
    with pytest.raises(DataError, match="byte 1 is not UTF-8"):
        read_taxonomy(saved(tmp_path, "a.csv", b"\x41\xff"))
    with pytest.raises(DataError, match="not Unicode"):
        write_taxonomy(Taxonomy.flat(["\ud800"]), tmp_path / "a.csv")


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".json"])
def test_deep_chain_is_written_and_read(tmp_path: Path, suffix: str) -> None:
    deep = Taxonomy.from_paths([[str(level) for level in range(201)]])
    write_taxonomy(deep, tmp_path / f"a{suffix}")
    assert read_taxonomy(tmp_path / f"a{suffix}") == deep


@pytest.mark.parametrize("levels", [5000, 100_000])
def test_a_file_that_is_too_deep_is_refused(tmp_path: Path, levels: int) -> None:
    names = [f"n{level}" for level in range(levels)]
    texts = {"a.csv": ";".join(names), "a.json": '{"a":' * levels + "{}" + "}" * levels}
    if levels < 10_000:  # a line is indented by as many signs as it is deep
        texts["a.txt"] = "\n".join(" " * level + name for level, name in enumerate(names))
    for name, text in texts.items():
        with pytest.raises(TaxonomyError, match="levels deep|nested too deeply"):
            read_taxonomy(saved(tmp_path, name, text))


def test_taxonomy_a_format_cannot_hold_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(TaxonomyError, match=r"the \.csv format cannot hold it"):
        write_taxonomy(Taxonomy.flat(["x" * 200_000]), tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not ADULT.is_dir(), reason=f"the ARX hierarchies of Adult are not in {ADULT}")
def test_hierarchies_of_arx_are_read_and_written_in_every_format(tmp_path: Path) -> None:
    paths = sorted(ADULT.glob("*.csv"))
    assert len(paths) == 10
    for path in paths:
        taxonomy = read_taxonomy(path)
        assert taxonomy.names[0] == "*"
        assert len(taxonomy.leaves) == len(path.read_text("utf-8").split("\n")) - path.read_text("utf-8").endswith("\n")
        for suffix in SUFFIXES:
            write_taxonomy(taxonomy, tmp_path / f"a{suffix}")
            assert read_taxonomy(tmp_path / f"a{suffix}") == taxonomy


@pytest.mark.skipif(not ADULT.is_dir(), reason=f"the ARX hierarchies of Adult are not in {ADULT}")
def test_education_of_arx_has_the_levels_of_its_file() -> None:
    education = read_taxonomy(ADULT / "adult_hierarchy_education.csv")
    assert education.path(education.find("Bachelors")) == (
        "Bachelors",
        "Undergraduate",
        "Higher education",
        "*",
    )
    assert education.height == 3
