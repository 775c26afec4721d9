# SPDX-License-Identifier: Apache-2.0
"""A taxonomy is a tree in depth-first order whose names are unambiguous."""

from __future__ import annotations

import doctest
import importlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonfit.errors import TaxonomyError
from anonfit.tables.taxonomy import Taxonomy

EUROPE = {"name": "Europe", "children": [{"name": "FR"}, {"name": "DE"}]}
COUNTRIES: dict[str, Any] = {
    "name": "World",
    "children": [EUROPE, {"name": "America", "children": [{"name": "US"}]}, {"name": "Antarctica"}],
}


def node(name: str, *children: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "children": list(children)}


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    """A tree of unique names in which each node hangs below any earlier one."""
    names = draw(st.lists(st.text(max_size=4), min_size=1, max_size=25, unique=True))
    nodes = [node(name) for name in names]
    for place in range(1, len(nodes)):
        nodes[draw(st.integers(0, place - 1))]["children"].append(nodes[place])
    return nodes[0]


def without_empty_children(tree: dict[str, Any]) -> dict[str, Any]:
    children = [without_empty_children(child) for child in tree.get("children", [])]
    return {"name": tree["name"], "children": children} if children else {"name": tree["name"]}


def test_nodes_stand_in_depth_first_order_with_their_leaf_runs() -> None:
    countries = Taxonomy.from_tree(COUNTRIES)
    assert countries.names == ("World", "Europe", "FR", "DE", "America", "US", "Antarctica")
    assert countries.parents == (-1, 0, 1, 1, 0, 4, 0)
    assert countries.first_leaf == (0, 0, 0, 1, 2, 2, 3)
    assert countries.last_leaf == (3, 1, 0, 1, 2, 2, 3)
    assert countries.leaves == ("FR", "DE", "US", "Antarctica")
    assert countries.leaf_position == {"FR": 0, "DE": 1, "US": 2, "Antarctica": 3}
    assert countries.leaf_nodes == (2, 3, 5, 6)


def test_children_depths_paths_and_names_agree() -> None:
    countries = Taxonomy.from_tree(COUNTRIES)
    assert countries.children(0) == (1, 4, 6)
    assert countries.children(2) == ()
    assert countries.depth == (0, 1, 2, 2, 1, 2, 1)
    assert countries.height == 2
    assert countries.path(countries.find("US")) == ("US", "America", "World")


def test_lowest_cover_is_the_deepest_node_that_holds_the_run() -> None:
    countries = Taxonomy.from_tree(COUNTRIES)
    assert countries.names[countries.lowest_cover(0, 1)] == "Europe"
    assert countries.names[countries.lowest_cover(1, 2)] == "World"
    assert countries.names[countries.lowest_cover(2, 2)] == "US"


@pytest.mark.parametrize("run", [(-1, 0), (1, 0), (0, 4)])
def test_lowest_cover_refuses_positions_that_are_no_run_of_leaves(run: tuple[int, int]) -> None:
    with pytest.raises(TaxonomyError, match="no run of leaf positions"):
        Taxonomy.from_tree(COUNTRIES).lowest_cover(*run)


@given(trees())
def test_tree_survives_the_way_to_a_taxonomy_and_back(tree: dict[str, Any]) -> None:
    taxonomy = Taxonomy.from_tree(tree)
    assert taxonomy.to_tree() == without_empty_children(tree)
    assert Taxonomy.from_tree(taxonomy.to_tree()) == taxonomy
    assert hash(Taxonomy.from_tree(taxonomy.to_tree())) == hash(taxonomy)


@given(trees())
def test_every_inner_node_is_the_run_of_its_children(tree: dict[str, Any]) -> None:
    taxonomy = Taxonomy.from_tree(tree)
    for place in range(len(taxonomy.names)):
        children = taxonomy.children(place)
        run = range(taxonomy.first_leaf[place], taxonomy.last_leaf[place] + 1)
        below = [position for child in children for position in _run(taxonomy, child)]
        assert list(run) == (below or [taxonomy.leaf_position[taxonomy.names[place]]])


def _run(taxonomy: Taxonomy, place: int) -> range:
    return range(taxonomy.first_leaf[place], taxonomy.last_leaf[place] + 1)


@given(trees(), st.data())
def test_lowest_cover_has_no_child_that_covers_too(tree: dict[str, Any], data: st.DataObject) -> None:
    taxonomy = Taxonomy.from_tree(tree)
    first = data.draw(st.integers(0, len(taxonomy.leaves) - 1))
    last = data.draw(st.integers(first, len(taxonomy.leaves) - 1))
    cover = taxonomy.lowest_cover(first, last)
    assert {first, last} <= set(_run(taxonomy, cover))
    assert not any({first, last} <= set(_run(taxonomy, child)) for child in taxonomy.children(cover))


@given(trees(), st.randoms())
def test_paths_give_the_tree_back_also_when_groups_are_scattered(tree: dict[str, Any], random: Any) -> None:
    taxonomy = Taxonomy.from_tree(tree)
    paths = [taxonomy.path(place) for place in taxonomy.leaf_nodes]
    assert Taxonomy.from_paths(paths) == taxonomy
    random.shuffle(paths)
    scattered = Taxonomy.from_paths(paths)
    assert {name: scattered.path(scattered.find(name)) for name in scattered.names} == {
        name: taxonomy.path(taxonomy.find(name)) for name in taxonomy.names
    }


def test_chain_of_one_name_is_one_node() -> None:
    assert Taxonomy.from_tree(node("*", node("A", node("A", node("A"))), node("B"))).names == ("*", "A", "B")
    assert Taxonomy.from_tree(node("*", node("A", node("A", node("x"), node("y"))))).height == 2


def test_chain_of_different_names_is_kept() -> None:
    chain = Taxonomy.from_tree(node("*", node("North", node("Oslo"))))
    assert chain.names == ("*", "North", "Oslo")
    assert chain.names[chain.lowest_cover(0, 0)] == "Oslo"


def test_single_name_is_root_and_leaf() -> None:
    single = Taxonomy.from_tree({"name": "all"})
    assert (single.leaves, single.height, single.to_tree()) == (("all",), 0, {"name": "all"})


def chain(levels: int) -> dict[str, Any]:
    tree: dict[str, Any] = {"name": str(levels)}
    for level in range(levels - 1, -1, -1):
        tree = {"name": str(level), "children": [tree]}
    return tree


def test_a_chain_is_as_deep_as_can_be_stored_and_no_deeper() -> None:
    deep = Taxonomy.from_tree(chain(200))
    assert deep.height == 200
    assert Taxonomy.from_tree(json.loads(json.dumps(deep.to_tree()))) == deep
    assert deep.lowest_cover(0, 0) == 200
    for levels in (201, 100_000):
        with pytest.raises(TaxonomyError, match=f"it is {levels} levels deep; at most 200"):
            Taxonomy.from_tree(chain(levels))


def test_flat_taxonomy_puts_every_value_under_the_root() -> None:
    flat = Taxonomy.flat(["b", "a"])
    assert flat.to_tree() == {"name": "*", "children": [{"name": "b"}, {"name": "a"}]}
    assert Taxonomy.flat(["b"], "any").names == ("any", "b")


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (node("*", node("A", node("x")), node("B", node("x"))), "leaf 'x'.*under 'A' and under 'B'"),
        (node("*", node("A", node("G", node("x"))), node("B", node("G", node("y")))), "'G' has two parents"),
        (node("*", node("A", node("B")), node("B", node("x"))), "'B'.*stands at two places"),
        (node("*", node("A", node("A"), node("x"))), "'A'.*stands at two places"),
        (node("*", node("A", node("*")), node("x")), "'\\*'"),
    ],
)
def test_name_at_two_places_is_refused_and_named(tree: dict[str, Any], words: str) -> None:
    with pytest.raises(TaxonomyError, match=f"taxonomy of column 'country': .*{words}"):
        Taxonomy.from_tree(tree, column="country")


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"name": 3},
        {"name": "a", "children": "bc"},
        {"name": "a", "childs": []},
        {"name": "a", "children": ["b"]},
    ],
)
def test_tree_of_another_form_is_refused(tree: dict[str, Any]) -> None:
    with pytest.raises(TaxonomyError):
        Taxonomy.from_tree(tree)


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        ([], "no leaf"),
        ([[]], "without a name"),
        ([["a", "*"], ["a", "*"]], "leaf 'a' is there more than once"),
        ([["a", "X"], ["b", "Y"]], "end in 'X', 'Y'"),
        ([["a", "G", "*"], ["G", "G", "*"]], "'G' is a leaf and also has names below it"),
        ([["a", "G", "X", "*"], ["b", "G", "Y", "*"]], "'G' has two parents"),
        ([["a", "*", "G", "*"]], "'\\*'"),
    ],
)
def test_paths_that_make_no_tree_are_refused(paths: list[list[str]], words: str) -> None:
    with pytest.raises(TaxonomyError, match=words):
        Taxonomy.from_paths(paths)


def test_flat_taxonomy_refuses_no_values_repeated_values_and_the_root_as_value() -> None:
    with pytest.raises(TaxonomyError, match="no leaf"):
        Taxonomy.flat([])
    with pytest.raises(TaxonomyError, match="leaf 'a'"):
        Taxonomy.flat(["a", "a"])
    with pytest.raises(TaxonomyError, match="'\\*'"):
        Taxonomy.flat(["*", "a"])


def test_unknown_name_is_an_error_that_says_the_column() -> None:
    with pytest.raises(TaxonomyError, match=r"column 'country'.*'Atlantis'"):
        Taxonomy.from_tree(COUNTRIES).find("Atlantis", column="country")


@pytest.mark.parametrize("module", ["taxonomy", "taxonomy_files", "taxonomy_builders", "taxonomy_leaves"])
def test_examples_in_docstrings_hold(module: str) -> None:
    assert doctest.testmod(importlib.import_module(f"anonfit.tables.{module}")).failed == 0
