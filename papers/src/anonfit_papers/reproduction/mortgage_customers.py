# SPDX-License-Identifier: Apache-2.0
"""R25: the mortgage company's customers, with every k and every choice of what is public (table 1 and figure 1 of PKDD
2006).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from anonfit.errors import Infeasible
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings

_CUSTOMERS = {
    "Marital": ["Unmarried", "Married", "Married", "Married", "Unmarried", "Unmarried"],
    "Car": ["Yes", "Yes", "No", "No", "Yes", "No"],
}
_RISK = ["good", "good", "bad", "bad", "bad", "bad"]

# The tests in breadth-first order, the bins (bad, good) of each leaf, and the sizes of the spans.
_CAR = {"tests": ["Car"], "bins": [[3, 0], [1, 2]]}
_FIGURE = {"tests": ["Car", "Marital"], "bins": [[3, 0], [0, 1], [1, 1]]}
_NONE: Measured = {"tests": None}

_EXPECTED: Mapping[str, tuple[dict[str, Any], Mapping[int, Measured]]] = {
    "car and risk private": (
        {"private": ("Car",)},
        {
            3: {**_FIGURE, "spans": [3, 3]},
            4: {**_CAR, "spans": [6]},
            5: {**_CAR, "spans": [6]},
            6: {**_CAR, "spans": [6]},
            7: _NONE,
        },
    ),
    "risk private": (
        {"private": ()},
        {
            1: {**_FIGURE, "spans": [3, 1, 2]},
            2: {**_CAR, "spans": [3, 3]},
            3: {**_CAR, "spans": [3, 3]},
            4: {"tests": [], "bins": [[4, 2]], "spans": [6]},
        },
    ),
    "car private": (
        {"private": ("Car",), "class_is_public": True},
        {2: {**_CAR, "spans": [4, 2]}, 3: _NONE},
    ),
}


def grown(k: int, words: Mapping[str, Any]) -> Measured:
    """The tree of the customers: its tests, bins and spans; no tests where there is no tree."""
    from anonfit.estimators.k_anonymous_tree import KAnonymousTreeClassifier

    try:
        tree = KAnonymousTreeClassifier(k, variant="id3", **words).fit(pl.DataFrame(_CUSTOMERS), _RISK).tree_
    except Infeasible:
        return dict(_NONE)
    tests = [tree.columns[column] for column in tree.nodes.column.tolist() if column >= 0]
    return {"tests": tests, "bins": tree.bins.tolist(), "spans": tree.spans.sizes.tolist()}


def _cases(settings: Settings) -> list[tuple[str, int]]:
    """What is private, and k."""
    names = list(_EXPECTED)[: settings.choose(1, None)]
    return [(name, k) for name in names for k in _EXPECTED[name][1]]


def _plan(settings: Settings) -> Iterator[Part]:
    for name, k in _cases(settings):
        key = {"of": "mortgage customers", "private": name, "k": k}
        yield Part(key, 0.1, partial(grown, k, _EXPECTED[name][0]))


def _judge(settings: Settings, gave: Sequence[Measured]) -> Result:
    cases = _cases(settings)
    rows, checks = [], []
    for (name, k), tree in zip(cases, gave, strict=True):
        same = tree == _EXPECTED[name][1][k]
        evidence = "no tree" if tree["tests"] is None else f"bins {tree['bins']}, spans {tree['spans']}"
        checks.append(Check(f"{name}, k = {k}", same, same, evidence))
        rows.append({"private": name, "k": k, "tests": _tests(tree), "spans": str(tree.get("spans", ""))})
    leaves = {case: len(tree.get("bins", ())) for case, tree in zip(cases, gave, strict=True)}
    lines = tuple(
        Line(name, [k for private, k in cases if private == name], [leaves[case] for case in cases if case[0] == name])
        for name in dict.fromkeys(name for name, _ in cases)
    )
    panel = Panel("leaves of the tree", "k", "leaves", lines, kind="points")
    notes = ("Figure 1 of the paper is the tree of k = 3 with car and risk private.",)
    return Result(pl.DataFrame(rows), Figure("Six customers", (panel,)), tuple(checks), notes)


def _tests(tree: Measured) -> str:
    return "no tree" if tree["tests"] is None else ", ".join(tree["tests"]) or "none"


MORTGAGE_CUSTOMERS = Experiment(
    "R25",
    "Six customers of a mortgage company",
    "PKDD 2006, table 1 and figure 1",
    ("K1",),
    "With k = 3 the tree asks for the car, then for the marital status, and has two spans of three persons.",
    "Tree, bins and spans exactly, for every k and every choice of what is public.",
    "A son is made for every value of the span, also an empty one, so that spans are right; splits of private columns "
    "never breach.",
    "Loan risk: bad 4 of 6, good 2 of 6.",
    "The k-anonymous tree by gain (ID3), not pruned.",
    _plan,
    _judge,
    setting="Six records; k from 1 to 7.",
)
