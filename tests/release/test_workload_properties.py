# SPDX-License-Identifier: Apache-2.0
"""What every release for a purpose must hold, whatever the table, the workload and the demands."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import polars as pl
from diversity_counts import holds
from hypothesis import assume, given
from hypothesis import strategies as st
from label_reader import LabelReader
from people import Request, requests

from anonfit.api import Release, anonymize
from anonfit.errors import DataError, Infeasible
from strategies import tries

WHERES = {
    "whole": ("{} >= 0", "{} between -3 and 3", "{} in (1, 2, 7)", "not {} < 5 or {} is null"),
    "wide": ("{} > 1000", "{} between -500000 and 0"),
    "float": ("{} >= 0.5", "{} <= 0", "{} is not null"),
    "day": ("{} >= '2000-01-01'", "{} between '1950-01-01' and '1999-12-31'"),
    "text": ("{} = 'a'", "{} in ('b, c', 'ü')", "{} is null", "{} <> '*'"),
    "tree": ("{} = 'h'", "{} in ('a, b', 'c;d')"),
    "stage": ("{} >= 'high'", "{} = 'low'"),
    "truth": ("{} = true", "{} = false"),
}


@dataclass(frozen=True)
class Asked:
    """A table, and what is asked of its release."""

    request: Request
    demands: dict[str, dict[str, Any]]
    words: dict[str, Any]

    def released(self, frame: pl.DataFrame | None = None, **more: Any) -> Release:
        return anonymize(
            self.request.frame if frame is None else frame,
            quasi_identifiers=self.request.quasi_identifiers,
            k=self.request.k,
            **self.words,
            **more,
        )


@st.composite
def demands_of(draw: st.DrawFn, column: str) -> dict[str, Any]:
    choices: list[dict[str, Any]] = [
        {"model": "distinct-l", "l": draw(st.integers(2, 3))},
        {"model": "entropy-l", "l": draw(st.sampled_from([1.25, 1.5, 2.0]))},
        {"model": "recursive-cl", "c": draw(st.sampled_from([1.5, 3.0])), "l": 2},
        {"model": "t-closeness", "t": draw(st.sampled_from([0.2, 0.5])), "distance": "equal"},
        {"model": "alpha-k", "alpha": draw(st.sampled_from([0.5, 0.8]))},
        {"model": "beta-likeness", "beta": draw(st.sampled_from([0.5, 2.0])), "enhanced": draw(st.booleans())},
        {"model": "delta-disclosure", "delta": draw(st.sampled_from([0.5, 2.0]))},
    ]
    if column.startswith(("whole", "wide")):
        choices.append({"model": "variance", "variance": draw(st.sampled_from([0.25, 1.0]))})
        choices.append({"model": "squared-error", "error": draw(st.sampled_from([0.5, 10.0]))})
    return draw(st.sampled_from(choices))


@st.composite
def selections_of(draw: st.DrawFn, names: list[str]) -> list[Any]:
    found: list[Any] = []
    for name in draw(st.lists(st.sampled_from(names), max_size=3)):
        wheres = WHERES.get(name.split("_")[0])
        if wheres is None or draw(st.booleans()):
            found.append({"each": name, "weight": draw(st.sampled_from([0.5, 1.0]))})
        else:
            found.append(draw(st.sampled_from(wheres)).replace("{}", name))
    return found


@st.composite
def workloads(draw: st.DrawFn) -> Asked:
    """Some raw columns are targets and some are sensitive; quasi-identifiers are targets too."""
    request = draw(requests(most=20))
    names = request.quasi_identifiers
    roles = {name: draw(st.sampled_from(["target", "sensitive", "insensitive"])) for name in request.raw}
    demands = {name: draw(demands_of(name)) for name, role in roles.items() if role == "sensitive"}
    targets: list[Any] = [name for name, role in roles.items() if role == "target"]
    targets += draw(st.lists(st.sampled_from(names), max_size=1))
    words = request.words | {
        "insensitive": [name for name, role in roles.items() if role == "insensitive"],
        "sensitive": demands,
        "targets": [{"column": name, "weight": draw(st.sampled_from([1.0, 0.5]))} for name in targets],
        "selections": draw(selections_of([*names, *(name for name in request.raw if name not in demands)])),
        **({"candidates": "all", "denoise": False} if targets and draw(st.booleans()) else {}),
        "split_on": draw(st.lists(st.sampled_from(names), max_size=2, unique=True)),
        "min_gain": draw(st.sampled_from([0.0, 0.0, 0.5])) if targets else 0.0,
    }
    if draw(st.booleans()):
        heaviest = draw(st.sampled_from(names))  # weights of which none matters are refused
        words["weights"] = {name: draw(st.sampled_from([0.0, 1.0, 2.0])) for name in names} | {heaviest: 2.0}
        words["weight_rule"] = draw(st.sampled_from(["first", "product", "blend"]))
    return Asked(request, demands, words)


def possible(asked: Asked) -> Release:
    """The release, where what is asked can be had."""
    try:
        return asked.released()
    except Infeasible:
        assume(False)
    except DataError as error:
        assume("has no value at all" not in str(error))
        assume("too large to be squared" not in str(error))
        raise
    raise AssertionError


def rows_by_label(asked: Asked, labels: pl.DataFrame) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for row, label in enumerate(labels.select(asked.request.quasi_identifiers).rows()):
        found.setdefault(label, []).append(row)
    return found


def persons_values(asked: Asked, rows: Any, column: str) -> list[Any]:
    """The value of each person of some rows; with entities, of each pair of a person and a value."""
    frame = asked.request.frame
    if "entity" in asked.words:
        return [value for _, value in {(frame["who"][row], frame[column][row]) for row in rows}]
    times = frame["many"].to_list() if "count" in asked.words else [1] * len(frame)
    return [frame[column][row] for row in rows for _ in range(times[row])]


@given(workloads())
@tries(120)
def test_groups_hold_what_is_asked_and_labels_are_true(asked: Asked) -> None:
    release = possible(asked)
    request = asked.request
    labels = release.recoding.apply(request.frame)
    shown = [*request.quasi_identifiers, *request.raw]
    assert Counter(labels.select(shown).rows()) == Counter(release.data.select(shown).rows())
    everyone = range(len(request.frame))
    for rows in rows_by_label(asked, labels).values():
        assert request.persons_of(rows) >= request.k
        for column, demand in asked.demands.items():
            whole = persons_values(asked, everyone, column)
            assert holds(persons_values(asked, rows, column), whole, demand), (column, demand)
    for entry in json.loads(release.recoding.to_json())["columns"]:
        reader, name = LabelReader(entry), entry["name"]
        for label, value in zip(labels[name].to_list(), request.frame[name].to_list(), strict=True):
            assert reader.holds(label, value), (label, value)


@given(workloads(), st.randoms(use_true_random=False))
@tries(80)
def test_the_release_depends_neither_on_the_order_of_rows_nor_on_threads(asked: Asked, random: Any) -> None:
    release = possible(asked)
    order = list(range(len(asked.request.frame)))
    random.shuffle(order)
    other = asked.released(asked.request.frame[order], threads=2)
    assert release.recoding.to_json() == other.recoding.to_json()
    assert release.data.equals(other.data)


@given(workloads())
@tries(40)
def test_a_release_extended_by_its_own_rows_is_itself(asked: Asked) -> None:
    release = possible(asked)
    assert release.extend(asked.request.frame).data.equals(release.data)
