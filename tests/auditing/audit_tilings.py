# SPDX-License-Identifier: Apache-2.0
"""Random releases made by hand: a table, a tiling of its space by recursive cuts, and the labels of docs/labels.md."""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

WORDS = ("none", "low", "mid", "high", "top")
CITIES = ("a-b", "c;d", "e, f", "g~h", 'i"j', "k\nl", "mm")
TREE = {"name": "*", "children": [
    {"name": "North", "children": [{"name": "NO"}, {"name": "SE"}, {"name": "FI"}]},
    {"name": "South", "children": [{"name": "IT"}, {"name": "ES"}]},
]}  # fmt: skip
LEAVES = {"*": ("NO", "SE", "FI", "IT", "ES"), "North": ("NO", "SE", "FI"), "South": ("IT", "ES")}
DAY = datetime.date(2020, 1, 1)
MEANINGS: dict[str, dict[str, Any]] = {
    "age": {"type": "continuous", "domain": [0, 100]},
    "income": {"type": "continuous"},
    "day": {"type": "date"},
    "rank": {"type": "ordinal", "order": list(WORDS)},
    "city": {"type": "nominal"},
    "country": {"type": "nominal", "taxonomy": TREE},
}


@dataclass(frozen=True)
class Side:
    """One column's part of a region: [low, high) of an ordered column, or names; and whether missing belongs to it."""

    missing: bool
    low: Any = None
    high: Any = None
    names: tuple[str, ...] = ()
    present: bool = True  # False: missing only


@dataclass(frozen=True)
class Made:
    """A source, its release, and what the audit is told."""

    source: pl.DataFrame
    released: pl.DataFrame
    columns: dict[str, dict[str, Any]]
    names: list[str]
    regions: dict[tuple[str, ...], dict[str, Side]] = field(default_factory=dict)


def place(name: str, value: Any) -> Any:
    return WORDS.index(value) if name == "rank" else value


def holds(name: str, side: Side, value: Any) -> bool:
    if value is None:
        return side.missing
    if not side.present:
        return False
    if side.names:
        return value in side.names
    value = place(name, value)
    return (side.low is None or value >= side.low) and (side.high is None or value < side.high)


def quoted(name: str) -> str:
    return {"e, f": '"e, f"', 'i"j': '"i\\"j"', "k\nl": '"k\\nl"'}.get(name, name)


def label(name: str, side: Side) -> str:
    """The label of a side, by the grammar."""
    if not side.present:
        return "missing"
    text = _present(name, side)
    if text == "not missing":
        return "*" if side.missing else text
    return f"missing or {text}" if side.missing else text


def _present(name: str, side: Side) -> str:
    if side.names:
        whole = CITIES if name == "city" else LEAVES["*"]
        if set(side.names) == set(whole):
            return "not missing"
        for node, leaves in LEAVES.items():
            if name == "country" and side.names == leaves:
                return node
        texts = [quoted(one) for one in side.names]
        return texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"
    low, high = (None if end is None else WORDS[end] if name == "rank" else str(end) for end in (side.low, side.high))
    if name == "age":  # a declared domain closes the end intervals
        if low is None and high is None:
            return "not missing"
        return f"[{low or 0}, {high})" if high is not None else f"[{low}, 100]"
    if low is None and high is None:
        return "not missing"
    if low is None or high is None:
        return f"< {high}" if low is None else f"≥ {low}"
    return f"[{low}, {high})"


def raw_value(rng: random.Random, name: str) -> Any:
    if rng.random() < 0.1:
        return None
    return {
        "age": lambda: rng.randint(0, 100),
        "income": lambda: round(rng.gauss(0, 1e4), rng.choice([0, 2])),
        "day": lambda: DAY + datetime.timedelta(rng.randint(-400, 400)),
        "rank": lambda: rng.choice(WORDS),
        "city": lambda: rng.choice(CITIES),
        "country": lambda: rng.choice(LEAVES["*"]),
    }[name]()


def parted(rng: random.Random, name: str, side: Side, values: list[Any]) -> tuple[Side, Side] | None:
    """Two sides that part a side, or None."""
    if not side.present:
        return None
    if side.missing and rng.random() < 0.2:
        return replace(side, present=False), replace(side, missing=False)
    if side.names:
        if name == "country" and set(side.names) == set(LEAVES["*"]):
            return replace(side, names=LEAVES["North"]), replace(side, missing=False, names=LEAVES["South"])
        if len(side.names) < 2 or name == "country":
            return None
        chosen = set(rng.sample(side.names, rng.randint(1, len(side.names) - 1)))
        first = tuple(one for one in side.names if one in chosen)
        return replace(side, names=first), replace(
            side, missing=False, names=tuple(x for x in side.names if x not in chosen)
        )
    inside = sorted({place(name, value) for value in values if value is not None})
    low = 0 if name == "age" and side.low is None else side.low  # the domain's end cannot be cut off
    inside = [value for value in inside if low is None or value > low]
    if not inside:
        return None
    cut = rng.choice(inside)
    return replace(side, high=cut), replace(side, low=cut, missing=False)


def whole_side(name: str) -> Side:
    names = {"city": CITIES, "country": LEAVES["*"]}.get(name, ())
    return Side(missing=True, names=names)


def random_release(rng: random.Random, *, rows: int, least: int) -> Made:
    """Raw rows, and groups of at least `least` of them found by random cuts."""
    names = rng.sample(list(MEANINGS), rng.randint(1, 4))
    source = [{name: raw_value(rng, name) for name in names} for _ in range(rows)]
    for row in source:
        row |= {"cost": rng.choice([1.5, None, 7.0]), "sick": rng.choice("xyz")}
    done: list[tuple[dict[str, Side], list[dict[str, Any]]]] = []
    todo = [({name: whole_side(name) for name in names}, source)]
    while todo:
        region, members = todo.pop()
        for name in rng.sample(names, len(names)):
            sides = parted(rng, name, region[name], [row[name] for row in members])
            if sides is None:
                continue
            halves = [[row for row in members if holds(name, side, row[name])] for side in sides]
            if min(len(half) for half in halves) >= least:
                todo += [({**region, name: side}, half) for side, half in zip(sides, halves, strict=True)]
                break
        else:
            done.append((region, members))
    released, regions = [], {}
    for region, members in done:
        labels = {name: label(name, side) for name, side in region.items()}
        regions[tuple(labels.values())] = region
        released += [labels | {key: row[key] for key in ("cost", "sick")} for row in members]
    frame = pl.DataFrame(released, schema_overrides={"cost": pl.Float64})
    order = [*names, "cost", "sick"]
    raw = pl.DataFrame(source, infer_schema_length=None).select(order)
    return Made(raw, frame.select(order).sort(order), {name: MEANINGS[name] for name in names}, names, regions)
