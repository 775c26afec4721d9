# SPDX-License-Identifier: Apache-2.0
"""Drawings of trees: well-formed, escaped, and of nothing that the model does not tell."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.algorithms.trees.released import ReleasedTree, release_tree
from anonfit.report.trees import MOST_LEAVES, drawn_svg, drawn_text

SVG = "{http://www.w3.org/2000/svg}"


def grown(rows: int = 300, names: int = 3) -> af.KAnonymousTreeClassifier:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            'a<b>&"': rng.integers(0, 100, rows),
            "kind": [f"<{number % names}>" for number in range(rows)],
            "dose": np.round(rng.normal(0, 1, rows), 2),
        }
    )
    y = np.where(
        (frame["dose"].to_numpy() > 0) ^ (frame['a<b>&"'].to_numpy() > 50), "<i>", "a very long name of a class & more"
    )
    return af.KAnonymousTreeClassifier(5, ['a<b>&"'], ["kind", "dose"], pruning=0).fit(frame, y)


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [one.text or "" for one in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("populations", ["exact", "relative", "majority"])
def test_the_picture_is_well_formed_and_has_every_leaf(populations: str) -> None:
    tree = release_tree(grown().tree_, populations)
    found = texts(drawn_svg(tree))
    assert "Decision tree for class" in found
    assert 'a<b>&"' in found
    named = sum(text in ("<i>", "a very long name of a class & more") for text in found)
    assert named - (2 if populations != "majority" else 0) == tree.leaves
    assert len(drawn_text(tree).splitlines()) == 4 + len(tree.nodes.column)


def test_numbers_of_persons_are_drawn_only_where_they_are_told() -> None:
    fitted = grown().tree_
    told = [f"{int(one.sum())}: " for one in fitted.bins if one.any()]
    exact, relative, majority = (release_tree(fitted, kind) for kind in ("exact", "relative", "majority"))
    assert all(any(text.startswith(one) for text in texts(drawn_svg(exact))) for one in told)
    assert not any(": " in text for text in texts(drawn_svg(relative)))
    assert "(" not in drawn_text(majority).replace("(private)", "")
    assert "nobody" not in drawn_svg(majority)


def test_a_tree_with_many_leaves_is_drawn_to_a_depth() -> None:
    rows = np.arange(4000)
    frame = pl.DataFrame({"x": [f"x{row % 4}" for row in rows], "z": [f"z{row // 8}" for row in rows]})
    y = np.where((rows % 4 < 2) ^ (rows // 8 % 3 == 0), "yes", "no")
    fitted = af.KAnonymousTreeClassifier(1, [], ["x", "z"], variant="id3").fit(frame, y)
    tree = release_tree(fitted.tree_)
    assert tree.leaves > MOST_LEAVES
    found = texts(drawn_svg(tree))
    assert "Deeper nodes are not drawn; tree.txt has them all." in found
    assert 0 < sum(text in ("yes", "no") or "leaves" in text for text in found) <= MOST_LEAVES + 2
    assert len(drawn_text(tree).splitlines()) == 4 + len(tree.nodes.column)


def test_a_tree_of_one_leaf_can_be_drawn() -> None:
    fitted = af.KAnonymousTreeClassifier(6).fit(pl.DataFrame({"x": [1, 2, 3, 4, 5, 6]}), list("aaabbb"))
    tree = ReleasedTree.from_model_json(release_tree(fitted.tree_).to_model_json())
    assert drawn_text(tree).splitlines()[-1] == "a  (6: a 3, b 3)"
    assert "a" in texts(drawn_svg(tree))
