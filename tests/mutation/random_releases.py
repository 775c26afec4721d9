# SPDX-License-Identifier: Apache-2.0
"""Random specs over random tables: every algorithm, criterion, privacy model, kind of column, value form and engine.

A seed gives a spec, its table and how it is released (run, or new rows by the recoding of a run). What is drawn is
meant to be supported (docs/supported.md); what cannot be met is drawn again.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
from planted import COUNTRIES as CONTINENTS
from planted import GRADES

import anonfit as af

COUNTRIES = {**CONTINENTS, "children": [*CONTINENTS["children"], {"name": "far", "children": [{"name": "US"}]}]}
AGES = {"name": "*", "children": [
    {"name": "young", "children": [{"name": "[0, 18)"}, {"name": "[18, 30)"}]},
    {"name": "≥ 30", "children": [{"name": "[30, 50)"}, {"name": "[50, 65)"}, {"name": "≥ 65"}]},
]}  # fmt: skip
ILLNESSES = {"name": "*", "children": [
    {"name": "lungs", "children": [{"name": "flu"}, {"name": "asthma"}]},
    {"name": "skin", "children": [{"name": "eczema"}, {"name": "acne"}]}, {"name": "none"},
]}  # fmt: skip
WORDS = ["a", "b, c", 'd"e', "{f}", "missing", "≥ 3", " g", "other", "h-i;j~k", "*", "[1, 2)", "x y", "Zoë"]
FORMATS = ("csv", "parquet", "arrow")
ROWS = "rows"
TRIES = 12


def countries(rng: random.Random) -> Any:
    return rng.choice(["FR", "FR", "DE", "Côte, d", "JP", "IN", "KE", "US"])


@dataclass
class Drawn:
    """A spec that is being drawn, with the columns of its table and how to draw more rows of it."""

    rng: random.Random
    engine: str
    spec: dict[str, Any]
    makers: dict[str, Any] = field(default_factory=dict)
    types: dict[str, Any] = field(default_factory=dict)

    def column(self, name: str, make: Any, dtype: Any, **settings: Any) -> str:
        self.makers[name], self.types[name] = make, dtype
        self.spec["columns"][name] = settings
        return name

    def frame(self, rows: int, gaps: float) -> pl.DataFrame:
        columns = {}
        for name, make in self.makers.items():
            missing = gaps if self.spec["columns"][name]["role"] in ("quasi-identifier", "sensitive") else 0
            values = [None if self.rng.random() < missing else make(number) for number in range(rows)]
            columns[name] = pl.Series(name, values, dtype=self.types[name])
        return pl.DataFrame(columns)


@dataclass(frozen=True)
class Case:
    """A spec with its table, perhaps with new rows that are released by what the table gave."""

    seed: int
    spec: dict[str, Any]
    table: pl.DataFrame
    later: pl.DataFrame | None
    suffix: str = "parquet"

    @property
    def source(self) -> pl.DataFrame:
        """The rows that the release is of."""
        return self.table if self.later is None else self.later

    def release(self, folder: Path) -> Path:
        """Publish it below a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        out = folder / "release"
        write(self.table, folder / f"table.{self.suffix}")
        (folder / "spec.toml").write_text(toml(self.spec), encoding="utf-8")
        made = af.run(folder / "spec.toml", folder / "first" if self.later is not None else out)
        if self.later is not None:
            write(self.later, folder / f"later.{self.suffix}")
            made.extend(folder / f"later.{self.suffix}").save(out)
        return out


def write(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as what its name says."""
    {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".arrow": frame.write_ipc}[path.suffix](path)


def toml(spec: dict[str, Any]) -> str:
    """A spec as TOML."""

    def value(one: Any) -> str:
        if isinstance(one, dict):
            return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)} = {value(v)}" for k, v in one.items()) + "}"
        if isinstance(one, list):
            return "[" + ", ".join(map(value, one)) + "]"
        return one.isoformat() if isinstance(one, date) else json.dumps(one, ensure_ascii=False)

    return "".join(f"{key} = {value(part)}\n" for key, part in spec.items())


# --- quasi-identifiers --------------------------------------------------------------------------------------------


def quasi_identifiers(d: Drawn, tree: bool, ids: bool) -> list[str]:
    """One to five of all kinds."""
    rng, role = d.rng, {"role": "quasi-identifier"}
    wide, tdr = rng.choice([3, 40, 10**6]), d.spec["method"]["algorithm"] == "tdr"
    two = ["multiway"] if tdr or tree else ["multiway", "binary", "subset"]
    start = date(1960, 2, 28)

    def number() -> str:
        made = {} if rng.random() < 0.6 else {"domain": [-wide, wide + (rng.random() < 0.5)]}
        return d.column("number", lambda _: rng.randint(-wide, wide), pl.Int64, **role, type="continuous", **made)

    def real() -> str:
        some = lambda _: rng.choice([rng.uniform(-1, 1), rng.gauss(0, wide), 1e-7, 1e12])  # noqa: E731
        return d.column("real", some, pl.Float64, **role)

    def day() -> str:
        made = {} if rng.random() < 0.6 else {"domain": [start, start + timedelta(days=wide % 20000 + 3)]}
        some = lambda _: start + timedelta(days=rng.randint(0, wide % 20000 + 2))  # noqa: E731
        return d.column("day", some, pl.Date, **role, **made)

    def moment() -> str:
        some = lambda _: datetime(2024, 1, 1) + timedelta(seconds=rng.randint(0, wide))  # noqa: E731
        return d.column("moment", some, pl.Datetime("us"), **role)

    def german() -> str:
        some = lambda _: (start + timedelta(days=rng.randint(0, 900))).strftime("%d.%m.%Y")  # noqa: E731
        return d.column("german", some, pl.String, **role, type="date", date_format="%d.%m.%Y")

    def step() -> str:
        return d.column("step", lambda _: rng.choice(GRADES), pl.String, **role, type="ordinal", order=GRADES)

    def word() -> str:
        words = rng.sample(WORDS, rng.randint(1, len(WORDS)))
        settings: dict[str, Any] = {} if tree else {"split": rng.choice(["subset", *two])}
        if rng.random() < 0.4:
            settings["domain"] = sorted(words)
        some = lambda _: rng.choice(words[: 1 + rng.randrange(len(words))])  # noqa: E731
        return d.column("word", some, pl.String, **role, type="nominal", **settings)

    def place() -> str:
        made = {"taxonomy": "countries.json", "split": rng.choice(two)}
        return d.column("place", lambda _: countries(rng), pl.String, **role, **made)

    def years() -> str:
        return d.column(
            "years", lambda _: rng.randint(0, 90), pl.Int64, **role, type="continuous", taxonomy="ages.json"
        )

    def truth() -> str:
        return d.column("truth", lambda _: rng.random() < 0.4, pl.Boolean, **role, type="nominal")

    kinds = (
        [word, place, truth]
        if ids
        else [number, number, real, day, moment, german, step, word, word, place, years, truth]
    )
    chosen = list(dict.fromkeys(rng.sample(kinds, min(len(kinds), rng.randint(1, 5)))))
    return [make() for make in chosen]


# --- sensitive columns, targets, persons ----------------------------------------------------------------------------


def models(d: Drawn) -> None:
    """Sensitive columns, some with demands that are seldom too much."""
    rng, leaves = d.rng, ["flu", "asthma", "eczema", "acne", "none"]
    few = leaves[: rng.randint(2, 5)]
    d.column("ill", lambda _: rng.choice(few), pl.String, role="sensitive", type="nominal")
    d.column("pay", lambda _: rng.choice([10, 20, 25.5, 40, 80]), pl.Float64, role="sensitive")
    demands = {
        "distinct-l": {"l": 2}, "entropy-l": {"l": rng.choice([1.1, 1.5, 1.8])}, "recursive-cl": {"c": 4.0, "l": 2},
        "t-closeness": {"t": rng.choice([0.3, 0.5])}, "alpha-k": {"alpha": rng.choice([0.6, 0.8, 0.9])},
        "beta-likeness": {"beta": rng.choice([1.0, 3.0]), "enhanced": rng.random() < 0.5},
        "delta-disclosure": {"delta": rng.choice([1.0, 2.5])},
        "squared-error": {"error": rng.choice([10.0, 500.0])}, "variance": {"variance": rng.choice([5.0, 60.0])},
    }  # fmt: skip
    chosen = rng.sample(sorted(demands), rng.choice([0, 1, 1, 2]))
    for model in chosen:
        column = "pay" if model in ("squared-error", "variance") or rng.random() < 0.3 else "ill"
        d.spec["privacy"]["diversity"].append({"column": column, "model": model, **demands[model]})
    if chosen == ["t-closeness"] and d.spec["privacy"]["diversity"][0]["column"] == "ill":
        how = rng.choice(["equal", "ordered", "hierarchical", None])
        if how == "hierarchical":
            d.spec["columns"]["ill"] |= {"taxonomy": "illnesses.json"}
        elif how == "ordered":
            d.spec["columns"]["ill"] |= {"type": "ordinal", "order": leaves}
        d.spec["privacy"]["diversity"][0] |= {"distance": how} if how else {}


CRITERIA: list[dict[str, Any]] = [
    {"criterion": "median"}, {"criterion": "infogain"}, {"criterion": "infogain", "candidates": "all"},
    {"criterion": "lsd"}, {"criterion": "selection"}, {"criterion": "weighted", "weight_rule": "product"},
    {"criterion": "weighted", "weight_rule": "probabilistic"}, {"criterion": "weighted"}, {"criterion": "clustering"},
    {"criterion": "auto"}, {"criterion": "explore", "time_budget": 0.2},
]  # fmt: skip


def purpose(d: Drawn, keys: list[str]) -> None:
    """Targets, selections or weights, as the criterion needs them."""
    rng, method, work = d.rng, d.spec["method"], d.spec["workload"]
    d.column("well", lambda _: rng.random() < 0.5, pl.Boolean, role="target")
    work["targets"] = ["well"]
    criterion = method.get("criterion")
    if criterion == "lsd" or (criterion == "auto" and rng.random() < 0.5):
        d.column("cost", lambda _: round(rng.uniform(0, 99), 2), pl.Float64, role="target", release=True)
        work["targets"] = ["cost"]
    elif rng.random() < 0.4:
        d.spec["privacy"]["max_confidence"] = rng.choice([0.7, 0.8, 0.95])
        if rng.random() < 0.5:
            d.column("cost", lambda _: round(rng.uniform(0, 99), 2), pl.Float64, role="target", release=True)
            how = rng.choice([{"classes": [30, 60]}, {"equal_width": 3}])
            work["targets"] = ["well", {"column": "cost", **how}] if method["algorithm"] == "mondrian" else ["well"]
            if method["algorithm"] != "mondrian":
                del d.spec["privacy"]["max_confidence"]
    if criterion == "selection":
        work["selections"] = [{"each": rng.choice(keys)}]
    if criterion == "weighted":
        work["weights"] = {name: rng.choice([0.5, 1.0, 3.0]) for name in keys}


def persons(d: Drawn, tree: bool, rows: int) -> None:
    """What a person is."""
    rng = d.rng
    what = ROWS if tree else rng.choice([ROWS, ROWS, "count", "entity", "sample-weight"])
    if what == "count":
        d.column("persons", lambda _: rng.randint(1, 5), pl.Int64, role="count")
    elif what == "entity":
        d.column("whose", lambda _: rng.randint(0, rows // 2), pl.Int64, role="entity")
    elif what == "sample-weight":
        d.column("weight", lambda _: rng.choice([0.5, 1.0, 2.0]), pl.Float64, role="sample-weight")


def output(d: Drawn) -> None:
    """How it is written."""
    rng, tdr = d.rng, d.spec["method"]["algorithm"] == "tdr"
    found = {"format": rng.choice(FORMATS), "values": rng.choice(["labels", "labels", "bounds", "representative"])}
    if d.engine == "memory" and rng.random() < 0.25:
        found |= {"order": "original", "consent": True}
    if d.engine == "memory" and not tdr and found["values"] == "labels" and rng.random() < 0.25:
        found |= {"regions": "observed", "consent": True}
    if "whose" in d.spec["columns"] and found["values"] == "representative":
        found["values"] = "labels"  # regions are not told, so persons could not be counted
    if found["values"] == "bounds" and "domain" in d.spec["columns"].get("number", {}):
        d.spec["columns"]["number"]["domain"][1] += 1  # bounds cannot tell a cut at the end of the domain
    if found["values"] == "labels" and "number" in d.spec["columns"] and rng.random() < 0.4:
        found["intervals"] = "closed"
    d.spec["output"] = found


# --- all of it ----------------------------------------------------------------------------------------------------


def random_case(seed: int, engine: str | None = None) -> Case:
    """The spec and table of a seed."""
    rng = random.Random(seed)
    engine = engine or ("duckdb" if rng.random() < 0.2 else "memory")
    algorithm = rng.choice(["mondrian", "mondrian", "mondrian", "tdr", "tree"])
    method = {"algorithm": algorithm, "cut_points": rng.choice(["simplest", "simplest", "value"]), "seed": seed}
    rows, gaps = rng.randint(40, 240), rng.choice([0, 0, 0.05, 0.3])
    spec: dict[str, Any] = {
        "version": 1, "data": {}, "columns": {}, "engine": {"name": engine}, "method": method, "workload": {},
        "privacy": {"k": rng.choice([1, 2, 3, 5, 8]), "diversity": []},
    }  # fmt: skip
    d = Drawn(rng, engine, spec)
    d.column("name", lambda number: f"person {number:05}", pl.String, role="identifier")
    if algorithm == "mondrian":
        method |= rng.choice(CRITERIA[:-1] if engine != "memory" or rng.random() < 0.9 else CRITERIA)
    elif algorithm == "tdr":
        method |= rng.choice([{}, {"criterion": "infogain"}, {"zero_gain": True}])
    else:
        method |= rng.choice([{}, {"variant": "id3"}, {"pruning": 0}])
    keys = quasi_identifiers(d, algorithm == "tree", method.get("variant") == "id3")
    purpose(d, keys)
    raw(d, algorithm == "tree")
    if engine == "memory":
        persons(d, algorithm == "tree", rows)
    output(d)
    if algorithm == "tdr" and len(keys) > 2 and rng.random() < 0.5:
        spec["privacy"]["quasi_identifiers"] = [
            {"columns": keys[:2]},
            {"columns": keys[1:], "k": spec["privacy"]["k"] + 2},
        ]
    policy = "drop" if algorithm == "tree" else rng.choice(["category", "category", "drop"])
    suffix = rng.choice(["parquet", "parquet", "arrow"])
    spec["data"] = {"source": f"table.{suffix}", "missing_policy": policy}
    later = rng.random() < 0.2
    if later:
        spec["privacy"]["suppression_limit"] = 1.0
    asked = {demand["column"] for demand in spec["privacy"]["diversity"]}
    for name, column in spec["columns"].items():
        if column["role"] == "sensitive":
            column["release"] = True  # in a small table all values may differ
            if name not in asked:
                column |= {"diversity": "none", "reason": "made up"}
    if method["cut_points"] == "value":
        spec["output"]["consent"] = True
    shuffled = list(spec["columns"].items())
    rng.shuffle(shuffled)
    spec["columns"] = dict(shuffled)
    names = [name for name, _ in shuffled]
    table = d.frame(rows, gaps).select(names)
    return Case(seed, spec, table, d.frame(rng.randint(30, 150), gaps).select(names) if later else None, suffix)


def raw(d: Drawn, tree: bool) -> None:
    """Columns that are released as they are."""
    if tree:
        d.column("ill", lambda _: d.rng.choice(["flu", "none"]), pl.String, role="sensitive", type="nominal")
    else:
        models(d)
    d.column(
        "note",
        lambda _: d.rng.choice([None, "x", "y,", "z\n", "1", "01", '"']),
        pl.String,
        role="insensitive",
        release=True,
    )


def released(seed: int, folder: Path, engine: str | None = None) -> tuple[Case, Path]:
    """The first release from a seed on that can be met; what is refused for another reason is a fault."""
    for attempt in range(TRIES):
        case, place = random_case(seed * TRIES + attempt, engine), folder / f"{seed}-{attempt}"
        try:
            place.mkdir(parents=True)
            for name, tree in (("countries", COUNTRIES), ("ages", AGES), ("illnesses", ILLNESSES)):
                (place / f"{name}.json").write_text(json.dumps(tree, ensure_ascii=False), encoding="utf-8")
            return case, case.release(place)
        except af.errors.Infeasible:
            continue
    raise AssertionError(f"nothing can be released from seed {seed}")
