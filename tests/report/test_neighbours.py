# SPDX-License-Identifier: Apache-2.0
"""Public files tell nothing of few persons, alone or together.

Two ways to see it. Neighbours: two tables that differ in one person of a small set (one more row is dropped, one more is
of an unknown category, one more is unique) have the same public files, byte for byte. And subtraction: over several
tables with small sets of random sizes, no public figure, and no difference, sum or sum less a third of them, is the size of
a small set in every one of the tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.spec.keywords import spec_of_keywords

K = 10
ROWS = 240
TOWNS = ["Bonn", "Köln", "Mainz", "Trier"]


def people(rng: np.random.Generator, rows: int = ROWS) -> pl.DataFrame:
    """Persons of whom everybody shares town and age with at least K others, each more than once in height."""
    numbers = np.arange(rows)
    return pl.DataFrame(
        {
            "town": [TOWNS[number % 4] for number in numbers],
            "age": 30 + 20 * (numbers // 4 % 2),
            "height": np.full(rows, 170.0),
            "ill": rng.choice(["flu", "cold", "burn"], rows),
            "outcome": rng.choice(["well", "worse"], rows),
        }
    )


def more(frame: pl.DataFrame, rows: int, **values: Any) -> pl.DataFrame:
    """The frame and so many more rows like its first ones, with these values."""
    extra = frame[:rows].with_columns(
        pl.lit(value, dtype=frame.schema[name]).alias(name) for name, value in values.items()
    )
    return pl.concat([frame, extra])


WORDS: dict[str, Any] = {
    "quasi_identifiers": ["town", "age", "height"],
    "k": K,
    "sensitive": {"ill": {"model": "entropy-l", "l": 1.1}},
    "insensitive": ["outcome"],
    "missing_policy": "drop",
}
SETS = [{"columns": ["town", "age"], "k": K}, {"columns": ["height"], "k": 20}]
KINDS: dict[str, dict[str, Any]] = {
    "median": {},
    "classes": {"targets": ["outcome"], "insensitive": []},
    "capped": {"targets": ["outcome"], "insensitive": [], "max_confidence": 0.95},
    "a target that is generalized": {"targets": ["height", "outcome"], "insensitive": []},
    "several": {"algorithm": "tdr", "requirements": SETS, "targets": ["outcome"], "insensitive": []},
    "selections": {"selections": ["age >= 45", "town = 'Bonn'", {"each": "town"}], "criterion": "median"},
    "queries": {"query_log": "SELECT count(*) FROM t WHERE age >= 45; SELECT town, count(*) FROM t GROUP BY town;"},
    "bounds": {"values": "bounds"},
}


def published(frame: pl.DataFrame, out: Path, engine: str = "memory", **words: Any) -> dict[str, bytes]:
    """The public files of a release of a frame."""
    curve = words.pop("curve", ())
    path = out.with_suffix(".parquet")
    frame.write_parquet(path)
    if log := words.pop("query_log", None):
        path.with_suffix(".sql").write_text(log, encoding="utf-8")
        words["query_log"] = {"path": str(path.with_suffix(".sql")), "learn": False}
    spec = spec_of_keywords(path, {**WORDS, **words})
    spec = replace(spec, engine=replace(spec.engine, name=engine))
    af.run(spec, out, curve=curve)
    return files(out)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def same(one: dict[str, bytes], other: dict[str, bytes], *, but: tuple[str, ...] = ()) -> None:
    """Whether two folders are the same, but for sections of the report that cover enough persons."""
    assert one.keys() == other.keys()
    for name in one:
        if but and name == "report.html":
            continue
        if name.endswith(".json"):
            held = [dict(json.loads(files[name])) for files in (one, other)]
            for content in held:
                for section in (*but, *(("files", "board") if but else ())):
                    content.pop(section, None)
            assert held[0] == held[1], name
        else:
            assert one[name] == other[name], name


# --- neighbours --------------------------------------------------------------------------------------------------


@pytest.mark.sampled(7)
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_more_of_few_dropped_rows_changes_nothing(tmp_path: Path, kind: str, engine: str) -> None:
    rng = np.random.default_rng(len(kind))
    frame, few = people(rng), int(rng.integers(1, K - 1))
    tables = [more(frame, few, town=None), more(frame, few + 1, town=None)]
    curve = (5, 30) if kind == "classes" else ()
    one, other = (
        published(table, tmp_path / str(place), engine, curve=curve, **KINDS[kind])
        for place, table in enumerate(tables)
    )
    same(one, other)


@pytest.mark.parametrize("kind", ["median", "classes"])
def test_which_value_a_dropped_row_lacks_changes_nothing(tmp_path: Path, kind: str) -> None:
    frame = more(people(np.random.default_rng(1)), 2 * K, town=None)
    lacks_age = pl.int_range(pl.len()) == len(frame) - 1
    other = frame.with_columns(
        pl.when(lacks_age).then(None).otherwise("age").alias("age"),
        pl.when(lacks_age).then(pl.lit("Bonn")).otherwise("town").alias("town"),
    )
    same(
        published(frame, tmp_path / "one", **KINDS[kind]),
        published(other, tmp_path / "other", **KINDS[kind]),
    )


@pytest.mark.parametrize("persons", ["count", "entity"])
def test_dropped_rows_are_counted_as_persons(tmp_path: Path, persons: str) -> None:
    """Twelve rows of one person, or one row of twelve, are few persons or few rows: neither is told."""
    frame = people(np.random.default_rng(2)).with_columns(who=pl.int_range(pl.len(), dtype=pl.Int64))
    words: dict[str, Any] = {"entity": "who"} if persons == "entity" else {"count": "who", "release": ["who"]}
    if persons == "count":
        frame = frame.with_columns(who=pl.lit(1, dtype=pl.Int64))
    tables = [more(frame, rows, town=None, who=1) for rows in ((12, 13) if persons == "entity" else (4, 5))]
    one, other = (published(table, tmp_path / str(place), **words) for place, table in enumerate(tables))
    same(one, other)


def grouped(rng: np.random.Generator) -> tuple[af.Release, pl.DataFrame]:
    """A release by which others can be made, and new rows of it."""
    first = af.anonymize(people(rng, 600), **WORDS | {"missing_policy": "category"})
    return first, people(rng)


def with_small_regions(new: pl.DataFrame, unknown: int, inside: int) -> pl.DataFrame:
    """New rows of which so many have an unknown category, so many are in a small region, and K - 1 in another."""
    bonn, cologne = ((pl.col("town") == town) & (pl.col("age") == age) for town, age in (("Bonn", 50), ("Köln", 30)))
    many = pl.concat([new.filter(~bonn & ~cologne), new.filter(cologne)[: K - 1]])
    return more(more(many, unknown, town="Ulm"), inside, town="Bonn", age=50)


@pytest.mark.parametrize("seed", range(3))
def test_why_a_row_is_withheld_changes_nothing(tmp_path: Path, seed: int) -> None:
    """One of the withheld rows has an unknown category, or is in a region of few: nobody can tell."""
    rng = np.random.default_rng(seed)
    first, new = grouped(rng)
    few, small = int(rng.integers(1, K - 1)), int(rng.integers(3, K - 1))
    for place, (unknown, inside) in enumerate([(few, small), (few + 1, small - 1)]):
        first.extend(with_small_regions(new, unknown, inside), suppression_limit=1.0).save(tmp_path / str(place))
    same(files(tmp_path / "0"), files(tmp_path / "1"))


def test_one_more_of_few_withheld_rows_changes_nothing(tmp_path: Path) -> None:
    first, new = grouped(np.random.default_rng(7))
    many = new.filter((pl.col("town") != "Bonn") | (pl.col("age") < 40))
    for place, values in enumerate([(2, 3), (3, 3), (2, 4)]):
        table = more(more(many, values[0], town="Ulm"), values[1], town="Bonn", age=50)
        first.extend(table, suppression_limit=1.0).save(tmp_path / str(place))
    same(files(tmp_path / "0"), files(tmp_path / "1"))
    same(files(tmp_path / "0"), files(tmp_path / "2"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("kind", ["median", "classes", "several", "selections"])
def test_one_more_of_few_unique_persons_changes_nothing(tmp_path: Path, kind: str, engine: str) -> None:
    frame = people(np.random.default_rng(3))
    words = KINDS[kind] | {"split_on": ["town", "age"]} if kind != "several" else KINDS[kind]
    folders = []
    for few in (3, 4):
        unique = pl.when(pl.int_range(pl.len()) < few).then(150.0 + pl.int_range(pl.len())).otherwise("height")
        table = frame.with_columns(unique.alias("height"))
        folders.append(published(table, tmp_path / str(few), engine, **words))
    same(*folders)


@pytest.mark.parametrize("kind", ["median", "classes"])
def test_one_more_of_few_persons_with_two_rows_changes_nothing(tmp_path: Path, kind: str) -> None:
    """What is told of persons drawn by chance covers enough of them, and depends on who was drawn."""
    frame = people(np.random.default_rng(4), 300)
    folders = []
    for twice in (4, 5):
        row = pl.int_range(pl.len(), dtype=pl.Int64)
        table = frame.with_columns(who=pl.when(row.is_between(8, 7 + twice)).then(row - 8).otherwise(row))
        folders.append(published(table, tmp_path / str(twice), entity="who", **KINDS[kind]))
    assert folders[0]["data.parquet"] == folders[1]["data.parquet"]
    same(*folders, but=("attack", "comparison"))


def test_unique_rows_of_one_person_are_one_person(tmp_path: Path) -> None:
    """Twelve unique rows of one person at k of 10 are told as few, and so are thirteen."""
    frame = people(np.random.default_rng(6), 300)
    folders = []
    for unique in (12, 13):
        row = pl.int_range(pl.len(), dtype=pl.Int64)
        is_odd = (row % 8 == 0) & (row < 8 * 13)
        height = pl.when(is_odd & (row < 8 * unique)).then(100.0 + row).otherwise("height")
        table = frame.with_columns(height.alias("height"), who=pl.when(is_odd).then(0).otherwise(row))
        folders.append(published(table, tmp_path / str(unique), entity="who", split_on=["town", "age"]))
    report = json.loads(folders[0]["report.json"])
    assert report["initial_risk"]["alone"]["persons"] == f"fewer than {K}"
    same(*folders, but=("attack",))


def test_sizes_of_groups_are_rounded_in_one_way_where_several_ks_are_asked(tmp_path: Path) -> None:
    """Rounded down to multiples of 10 in one place and of 20 in another they could be told to a few persons."""
    frame = people(np.random.default_rng(8), 300).with_columns(who=pl.int_range(pl.len(), dtype=pl.Int64) // 2 * 2)
    report = json.loads(published(frame, tmp_path / "release", entity="who", **KINDS["several"])["report.json"])
    sizes = [report["audit"]["sizes"][name] for name in ("smallest", "lower_quartile", "median", "upper_quartile")]
    assert all(size % 20 == 0 for size in [*sizes, report["audit"]["sizes"]["largest"]])
    for asked, told in zip(SETS, report["audit"]["sets"], strict=True):
        assert all(
            told["sizes"][name] % 20 == 0 or told["sizes"][name] == asked["k"] for name in ("smallest", "largest")
        )


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("populations", ["exact", "relative", "majority"])
def test_one_more_of_few_dropped_rows_changes_nothing_of_a_tree(tmp_path: Path, populations: str, engine: str) -> None:
    frame = people(np.random.default_rng(5))
    folders = []
    for few in (3, 4):
        more(frame, few, town=None).write_parquet(tmp_path / f"{few}.parquet")
        words = {**WORDS, **KINDS["classes"], "algorithm": "tree", "sensitive": [], "insensitive": ["ill"]}
        spec = spec_of_keywords(tmp_path / f"{few}.parquet", words)
        output = replace(spec.output, populations=populations)
        af.run_tree(replace(spec, output=output, engine=replace(spec.engine, name=engine)), tmp_path / str(few))
        folders.append(files(tmp_path / str(few)))
    same(*folders)


# --- subtraction -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A table, the sizes of its small sets, and how it is published."""

    frame: pl.DataFrame
    small: dict[str, int]
    publish: Callable[[pl.DataFrame, Path], None]


SHARES = (
    r"share$|accuracy|average|distinct$|sure|right$|precision|\.(table|regions|whole|blind|purpose|value|marketer)$"
)


def numbers(folder: Path) -> dict[str, float]:
    """Every number of the public files, by the way to it, and shares times the persons and rows that are told."""
    found: dict[str, float] = {}
    for name in ("manifest.json", "report.json", "audit.json"):
        if (folder / name).exists():
            found.update(walk(json.loads((folder / name).read_text(encoding="utf-8")), name))
    if (folder / "data.parquet").exists():
        data = pl.read_parquet(folder / "data.parquet")
        found |= {
            "rows of the file": len(data),
            "groups of the file": len(data.select(WORDS["quasi_identifiers"]).unique()),
        }
    totals = [found[way] for way in ("report.json.rows.released", "report.json.audit.persons") if way in found]
    for way in [way for way, value in found.items() if 0 < value < 1 and re.search(SHARES, way)]:
        found |= {f"{way} x {place}": round(found[way] * total) for place, total in enumerate(totals)}
    return found


def walk(value: Any, way: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name not in ("packages", "files", "partition", "spec"):
                yield from walk(part, f"{way}.{name}")
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from walk(part, f"{way}.{place}")
    elif isinstance(value, str):
        for place, text in enumerate(re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", value)):
            yield f"{way}#{place}", float(text.replace(",", ""))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield way, float(value)


def leaks(tables: list[dict[str, float]], sizes: list[int]) -> list[str]:
    """The sums and differences of up to three figures that are these sizes in every table."""
    ways = sorted(set.intersection(*(set(found) for found in tables)))
    held = {tuple(found[way] for found in tables): way for way in ways}
    vectors = np.array([(0.0,) * len(tables), *held])
    names = ["0", *held.values()]
    wanted = {tuple(vector + sizes): name for vector, name in zip(vectors, names, strict=True)}
    found = []
    plain = [" x " not in name and "#" not in name for name in names]
    for place, vector in enumerate(vectors):
        if place and not plain[place]:  # products and numbers of sentences are taken in pairs only
            continue
        for other, name in zip(map(tuple, vectors[place:] + vector), names[place:], strict=True):
            minus = wanted.get(other, name)
            if minus not in (names[place], name) and (
                not place or (" x " not in minus + name and "#" not in minus + name)
            ):
                found.append(f"{names[place]} + {name} - {minus}")
    return found


def drawn(rng: np.random.Generator) -> pl.DataFrame:
    """Persons in groups of different sizes."""
    frame = people(rng, int(rng.integers(300, 500)))
    return frame[np.sort(rng.choice(len(frame), int(0.8 * len(frame)), replace=False))]


def of_run(engine: str, **words: Any) -> Callable[[np.random.Generator], Case]:
    def case(rng: np.random.Generator) -> Case:
        towns, ages, alone = (int(size) for size in rng.integers(1, K // 2, 3))
        frame = drawn(rng)
        apart = pl.when(pl.int_range(pl.len()) < alone).then(150.0 + pl.int_range(pl.len())).otherwise("height")
        frame = frame.with_columns(apart.alias("height"))
        frame = more(more(frame, towns, town=None), ages, age=None)
        asked = {"split_on": ["town", "age"], **words}
        small = {"dropped": towns + ages, "without town": towns, "without age": ages, "alone": alone}
        return Case(frame, small, lambda table, out: str(published(table, out, engine, **asked)))

    return case


def of_entities(rng: np.random.Generator) -> Case:
    twice, lacking, alone = (int(size) for size in rng.integers(1, K // 2, 3))
    frame = drawn(rng).with_columns(who=pl.int_range(pl.len(), dtype=pl.Int64))
    lone = pl.concat([frame[:1].with_columns(height=pl.lit(100.0 + number)) for number in range(11 + alone)])
    again = pl.concat([frame[8 : 8 + twice], frame[8:9], lone])
    frame = more(pl.concat([frame, again]), 3 * lacking, town=None)
    small = {
        "persons with rows that were dropped": min(3 * lacking, K - 1) if 3 * lacking < K else 0,
        "second rows": len(again),
        "unique rows of one person": 11 + alone,
        "persons with several rows": twice + 1,
    }
    words = {"entity": "who", "split_on": ["town", "age"], **KINDS["classes"]}
    return Case(frame, small, lambda table, out: str(published(table, out, **words)))


def of_new_data(rng: np.random.Generator) -> Case:
    first, new = grouped(rng)
    unknown, inside = (int(size) for size in rng.integers(1, K - 1, 2))
    frame = with_small_regions(new, unknown, inside)
    small = {"unknown": unknown, "in a small region": inside, "withheld in regions": inside + K - 1}

    def publish(table: pl.DataFrame, out: Path) -> None:
        first.extend(table, suppression_limit=1.0).save(out)

    return Case(frame, small, publish)


def of_tree(rng: np.random.Generator) -> Case:
    few = int(rng.integers(1, K - 1))
    frame = more(drawn(rng), few, town=None)

    def publish(table: pl.DataFrame, out: Path) -> None:
        table.write_parquet(out.with_suffix(".parquet"))
        words = {**WORDS, **KINDS["classes"], "algorithm": "tree", "sensitive": [], "insensitive": ["ill"]}
        af.run_tree(spec_of_keywords(out.with_suffix(".parquet"), words), out)

    return Case(frame, {"dropped": few}, publish)


FAMILIES: dict[str, Callable[[np.random.Generator], Case]] = {
    "median": of_run("memory"),
    "classes on duckdb": of_run("duckdb", **KINDS["classes"]),
    "selections": of_run("memory", **KINDS["selections"]),
    "several": of_run("memory", **KINDS["several"] | {"split_on": []}),
    "entities": of_entities,
    "new data": of_new_data,
    "tree": of_tree,
}
TABLES = 6


@pytest.mark.sampled(3)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_sum_or_difference_of_public_figures_is_the_size_of_a_small_set(tmp_path: Path, family: str) -> None:
    rng = np.random.default_rng(sum(map(ord, family)))
    tables, small = [], []
    for place in range(TABLES):
        case = FAMILIES[family](rng)
        case.publish(case.frame, tmp_path / str(place))
        tables.append(numbers(tmp_path / str(place)))
        small.append(case.small)
    for name in small[0]:
        sizes = [one[name] for one in small]
        assert len(set(sizes)) > 1
        assert leaks(tables, sizes) == [], name


def test_subtraction_would_be_found() -> None:
    tables = [{"a": 60.0 + few, "b": 40.0 + other, "c": 100.0 + other} for few, other in ((3, 5), (4, 1), (2, 9))]
    assert leaks(tables, [3, 4, 2]) == ["a + b - c"]
    assert leaks(tables, [5, 1, 9]) == []
