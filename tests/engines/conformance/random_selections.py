# SPDX-License-Identifier: Apache-2.0
"""Random selections over the columns of random requests, by the settings of a case."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
from pairwise_cases import Case

Random = np.random.Generator

NAMES: dict[str, list[str]] = {
    "flat": ["'ä'", "'b'", "'c'''", "'d\"'", "'e,f'", "'rare'"],
    "declared": ["'ä'", "'b'", "'rare'", "'never'"],
    "boolean": ["true", "false"],
    "ordinal": ["'low'", "'middle'", "'high'"],
    "number-names": ["1", "2", "3", "10"],
    "many": ["'n1'", "'n2'", "'n3'", "'n40'", "'n77'"],
}
TREE = ["'fr'", "'de'", "'nl'", "'pl'", "'cz'", "'us'"]
RAW: dict[str, list[str]] = {
    "word": ["'x'", "'é'", "'Z'"],
    "two": ["'yes'", "'no'"],
    "several": ["'a'", "'b'", "'c'", "'d'"],
    "illness": ["'u'", "'v'"],
}
NUMBERS = {"extra": (-1, 3), "number": (-100, 100), "whole": (-10, 15), "many": (1, 4), "amount": (1, 9)}


def _end(rng: Random, kind: str) -> str:
    """Where a comparison with an ordered column ends: at a value that rows may have, or between such."""
    number = int(rng.integers(-22, 42))
    if kind == "wide":
        return str(rng.integers(-5, 3005))
    if kind == "date":
        return f"'{date(2020, 1, 1) + timedelta(days=number)}'"
    if kind == "datetime":
        return f"'{datetime(2020, 1, 1) + timedelta(minutes=int(rng.choice([7, 5])) * number)}'"
    if kind == "integer":
        return str(rng.choice([number, number + 0.5])) if rng.random() < 0.3 else str(number)
    step = {"float": 4, "decimal": 2, "text-number": 4}[kind]
    return str(rng.choice([number / step, number + 0.13, number + 0.5]))


def _compared(rng: Random, name: str, ends: list[str]) -> str:
    way = rng.integers(6)
    if way == 0:
        return f"{name} between {ends[0]} and {ends[1]}"
    if way == 1:
        return f"{name} in ({', '.join(ends)})"
    return f"{name} {rng.choice(['<', '<=', '>', '>='])} {ends[0]}"


def _one_of(rng: Random, name: str, values: list[str], *, in_order: bool = False) -> str:
    some = rng.choice(values, min(len(values), int(rng.integers(1, 4))), replace=False).tolist()
    if in_order and rng.random() < 0.5:
        return f"{name} {rng.choice(['<', '<=', '>', '>='])} {some[0]}"
    if len(some) > 1:
        return f"{name} {rng.choice(['in', 'not in'])} ({', '.join(some)})"
    return f"{name} {rng.choice(['=', '<>'])} {some[0]}"


def _condition(rng: Random, case: Case, name: str) -> str:
    if rng.random() < 0.12:
        return f"{name} is {rng.choice(['null', 'not null'])}"
    if name == "ordered":
        return _compared(rng, name, [_end(rng, case["ordered"]) for _ in range(2)])
    if name == "named":
        return _one_of(rng, name, NAMES[case["named"]], in_order=case["named"] == "ordinal")
    if name in NUMBERS:
        low, high = NUMBERS[name]
        return _compared(rng, name, [f"{rng.uniform(low, high):.{rng.integers(3)}f}" for _ in range(2)])
    return _one_of(rng, name, TREE if name == "tree" else RAW[name])


def _predicate(rng: Random, case: Case, names: list[str], depth: int) -> str:
    if depth == 0 or rng.random() < 0.3:
        return _condition(rng, case, str(rng.choice(names)))
    joined = f" {rng.choice(['and', 'or'])} ".join(
        f"({_predicate(rng, case, names, depth - 1)})" for _ in range(int(rng.integers(2, 4)))
    )
    return f"not ({joined})" if rng.random() < 0.2 else joined


def random_selections(rng: Random, case: Case, columns: list[str]) -> list[dict[str, Any]]:
    """Some selections over columns of these names; hardly ever by one that is guarded."""
    kind = case["selections"]
    if kind == "none":
        return []
    known = [name for name in columns if name in ("ordered", "named", "tree", *RAW, *NUMBERS)]
    if rng.random() < 0.95:
        known = [name for name in known if name not in ("illness", "amount", "many")]
    raw = [name for name in known if name in RAW or name in NUMBERS]
    names = {
        "ordered": ["ordered"],
        "names": [name for name in known if name in ("named", "tree")] or known,
        "raw": [*raw, "ordered"],
    }.get(kind, known)
    found: list[dict[str, Any]] = []
    for _ in range(int(rng.integers(1, 6))):
        if kind == "each" and rng.random() < 0.6:
            found.append({"each": str(rng.choice(known))})
        else:
            found.append({"where": _predicate(rng, case, names, 0 if kind == "ordered" else 2)})
        if rng.random() < 0.5:
            found[-1]["weight"] = float(rng.choice([0.5, 1.0, 3.0]))
    return found
