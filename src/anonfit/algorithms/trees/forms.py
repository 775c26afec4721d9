# SPDX-License-Identifier: Apache-2.0
"""What kernels are handed together, and the places of facts in arrays. Tuples are made inside of kernels, where they
cost nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["BEFORE", "DEPTH", "FOUND", "GAIN", "HIGH", "INFO", "LOW", "PLACE", "Reach", "Rows", "Rule", "Scratch"]

# Rows of a node's box: the first code, the code after the last one, the depth of the taxonomy at which it stands.
LOW, HIGH, DEPTH = 0, 1, 2

# What is found of a column: bits gained a person, bits of the split itself, where (the code above a cut, or the depth),
# and the highest code below a cut. No gain: nothing was found.
GAIN, INFO, PLACE, BEFORE, FOUND = 0, 1, 2, 3, 4


class Rows(NamedTuple):
    """A run of rows of a list: what they have of one column, their class, and how many persons each stands for; no
    persons at all: one each.
    """

    codes: Any
    labels: Any
    persons: Any
    order: Any
    first: Any
    stop: Any


class Reach(NamedTuple):
    """The rows that can reach a node, by span; where they are the node's own (`is_shared`), there is no second list."""

    order: Any
    ends: Any
    segments: Any
    is_shared: Any


class Rule(NamedTuple):
    """What splits are held to and compared by.

    demand: k, bits, confidence; total: the node's own persons; logs: n log n of every n that is not too large; before:
    what these persons and their classes have of that; least: the fewest persons of two sons; penalty: 1 where cuts
    pay for their number.
    """

    classes: Any
    demand: Any
    total: Any
    logs: Any
    before: Any
    least: Any
    penalty: Any


class Scratch(NamedTuple):
    """Room to count in; `hist` is all zero between uses."""

    hist: Any  # (code, class)
    keys: Any  # (row,)
    sums: Any  # (2 * class,)
    values: Any  # (value,)
    table: Any  # (value, class)
    span_values: Any  # (value,)
    span_table: Any  # (value, class)
    bad: Any  # (value + 1,)
