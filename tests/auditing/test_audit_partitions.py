# SPDX-License-Identifier: Apache-2.0
"""The edges of a picture of two columns as the audit reads them."""

from __future__ import annotations

import pytest

from anonfit.auditing.meanings import read_meaning
from anonfit.auditing.partitions import _edges

SIZE = {"name": "size", "type": "continuous", "scale": "number", "missing": False, "domain": [1, 3], "cuts": [2, 3]}


@pytest.mark.parametrize(
    ("edges", "places"),
    [
        (["1", "2", "3", "3"], [0, 1, 2, 3]),  # 3 alone is a region
        (["1", "2", "3"], [0, 1, 3]),  # 2 and 3 are one: the last edge is the end of the domain, not the cut
        (["1", "3"], [0, 3]),
        (["1", "3", "2"], None),
        (["1", "2.0", "3"], None),
        (["1", None], None),
    ],
)
def test_a_cut_at_the_end_of_the_domain_is_told_from_the_end(edges: list[str | None], places: list[int] | None) -> None:
    axis = {"column": "size", "scale": "number", "edges": edges}
    assert _edges(axis, read_meaning("size", SIZE)) == places
