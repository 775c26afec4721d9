# SPDX-License-Identifier: Apache-2.0
"""Real releases of several shapes, written once, and copies of them in which a fault is planted."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

import anonfit as af
from anonfit.engines.memory.write import write_table
from anonfit.tables.frames import rebuilt
from json_layout import write_json
from waivers import waived

COUNTRIES = {"name": "*", "children": [
    {"name": "Europe", "children": [{"name": "FR"}, {"name": "DE"}, {"name": "Côte, d"}]},
    {"name": "Asia", "children": [{"name": "JP"}, {"name": "IN"}]},
    {"name": "Africa", "children": [{"name": "KE"}, {"name": "EG"}]},
]}  # fmt: skip
LEAVES = ["FR", "DE", "JP", "IN", "KE", "EG"]
GRADES = ["low", "mid", "high"]
KINDS = ("parquet", "csv", "arrow")


@cache
def people(seed: int = 0, rows: int = 400) -> pl.DataFrame:
    """Persons with numbers, dates, a taxonomy, rare jobs and missing values."""
    rng = random.Random(seed)
    jobs = ["nurse"] * 30 + ["cook"] * 20 + ["clerk"] * 20 + ["smith"] * 10 + [None] * 6
    found = [
        {
            "name": f"person {number:04}",
            "age": None if rng.random() < 0.1 else rng.randint(0, 95),
            "day": date(2023, 1, 1) + timedelta(days=rng.randint(0, 700)),
            "country": rng.choice(["FR", "FR", "DE", "Côte, d", "JP", "IN", "KE", "EG"]),
            "job": rng.choice(jobs) if number % 50 else f"rare {number}",
            "grade": rng.choice(GRADES),
            "cost": round(rng.uniform(1, 900), 2),
            "illness": rng.choice("abcd") + str(rng.randint(1, 30)),
            "well": rng.random() < 0.5,
        }
        for number in range(rows)
    ]
    return pl.DataFrame(found)


@cache
def exact(seed: int = 0) -> pl.DataFrame:
    """Persons with raw values that are easily rounded: long whole numbers, decimals, numbers and codes."""
    rng = random.Random(seed)
    parts = [rng.randint(0, 40) for _ in range(200)]
    return pl.DataFrame(
        {
            "age": [rng.randint(0, 95) for _ in parts],
            "code": [str(part) for part in parts],
            "whole": [2**53 + part for part in parts],
            "share": [part / 10 for part in parts],
            "amount": pl.Series([Decimal(10**16) + Decimal(part) / 100 for part in parts], dtype=pl.Decimal(22, 2)),
            "moment": [datetime(2024, 1, 1, 12, 0, 0, part) for part in parts],
        }
    )


@cache
def households(seed: int = 0) -> pl.DataFrame:
    """Rows that stand for one to four persons."""
    rng = random.Random(seed)
    rows = [
        {"age": rng.randint(0, 95), "sex": rng.choice("fm"), "persons": rng.randint(1, 4), "income": rng.randint(1, 99)}
        for _ in range(200)
    ]
    return pl.DataFrame(rows)


@cache
def visits(seed: int = 0) -> pl.DataFrame:
    """Persons with one to four rows each."""
    rng = random.Random(seed)
    rows = []
    for person in range(120):
        known = {"patient": f"p{person:03}", "age": rng.randint(0, 95), "country": rng.choice(LEAVES)}
        rows += [known | {"score": rng.randint(1, 60)} for _ in range(rng.randint(1, 4))]
    return pl.DataFrame(rows)


PEOPLE: dict[str, Any] = {
    "criterion": "median",
    "quasi_identifiers": ["age", "day", "country", "job", "grade"],
    "sensitive": waived("illness"),
    "targets": ["well"],
    "release": ["cost"],
    "identifiers": ["name"],
    "taxonomies": {"country": COUNTRIES},
    "types": {"grade": "ordinal"},
    "orders": {"grade": GRADES},
    "k": 5,
}


@dataclass(frozen=True)
class Shape:
    """How a release is made: from which rows, with which words, written in which format."""

    raw: Callable[[], pl.DataFrame]
    words: Mapping[str, Any]
    kind: str = "parquet"
    extend: Callable[[], pl.DataFrame] | None = None  # new rows, released by the recoding of the others

    @property
    def source(self) -> pl.DataFrame:
        """The rows the release is of."""
        return (self.extend or self.raw)()

    def release(self) -> af.Release:
        """Make the release."""
        # The faults are planted in the regions that Median Mondrian makes of these rows.
        made = af.anonymize(self.raw(), **{"criterion": "median", **self.words})
        return made.extend(self.extend(), suppression_limit=1.0) if self.extend else made


SHAPES = {
    **{f"labels-{kind}": Shape(people, PEOPLE, kind) for kind in KINDS},
    **{f"bounds-{kind}": Shape(people, PEOPLE | {"values": "bounds"}, kind) for kind in KINDS},
    "counts": Shape(households, {"quasi_identifiers": ["age", "sex"], "count": "persons", "targets": ["income"], "k": 10}),
    "entities": Shape(
        visits,
        {
            "quasi_identifiers": ["age", "country"],
            "entity": "patient",
            "targets": ["score"],
            "taxonomies": {"country": COUNTRIES},
            "k": 5,
        },
        "csv",
    ),
    "declared": Shape(
        households,
        {
            "quasi_identifiers": ["age", "sex"],
            "targets": ["income"],
            "insensitive": ["persons"],
            "domains": {"age": [0, 95], "sex": ["f", "m", "x"]},
            "types": {"sex": "nominal", "age": "continuous"},
            "k": 10,
        },
    ),
    **{
        f"exact-{kind}": Shape(
            exact,
            {
                "quasi_identifiers": ["age"],
                "insensitive": ["code", "whole", "share", "amount", "moment"],
                "k": 5,
            },
            kind,
        )
        for kind in KINDS
    },
    "dropped": Shape(people, PEOPLE | {"missing_policy": "drop"}),
    "extended": Shape(people, PEOPLE, extend=lambda: people(7, 300)),
    "observed": Shape(people, PEOPLE | {"regions": "observed", "consent": True}),
    "original": Shape(people, PEOPLE | {"order": "original", "consent": True}),
    "representative": Shape(people, PEOPLE | {"values": "representative"}),
}  # fmt: skip


def _read(file: Path, texts: list[str]) -> pl.DataFrame:
    """The data file, labels as texts."""
    if file.suffix == ".csv":
        types = {"amount": pl.Decimal(22, 2), **dict.fromkeys(texts, pl.String)}
        return pl.read_csv(file, try_parse_dates=True, infer_schema_length=None, schema_overrides=types)
    data = pl.read_parquet(file) if file.suffix == ".parquet" else pl.read_ipc(BytesIO(file.read_bytes()))
    return data.with_columns(pl.col(pl.Enum, pl.Categorical).cast(pl.String))


@dataclass
class Planted:
    """A written release under attack: change `data`, `manifest` or `recoding`, then `write`.

    Hashes, numbers of rows and the order of rows are made right again by `write`, so that the audit must find the
    fault itself; a fault that is about these sets `hashes`, `counts` or `order` to False.
    """

    path: Path
    shape: Shape
    manifest: dict[str, Any] = field(init=False)
    recoding: dict[str, Any] = field(init=False)
    data: pl.DataFrame = field(init=False)
    hashes: bool = True
    counts: bool = True
    order: bool = True

    def __post_init__(self) -> None:
        self.manifest = json.loads((self.path / "manifest.json").read_text(encoding="utf-8"))
        self.recoding = json.loads((self.path / "recoding.json").read_text(encoding="utf-8"))
        self.data = _read(self.file, self.manifest["data"]["texts"])

    @property
    def file(self) -> Path:
        """The data file."""
        return self.path / self.manifest["data"]["file"]

    @property
    def spec(self) -> dict[str, Any]:
        """The spec in the manifest."""
        found: dict[str, Any] = self.manifest["spec"]
        return found

    @property
    def keys(self) -> list[str]:
        """The columns of the file that stand for quasi-identifiers."""
        names = [name for name, column in self.spec["columns"].items() if column["role"] == "quasi-identifier"]
        ends = ("", "_lower", "_upper", "_missing")
        return [column for column in self.data.columns if column in {name + end for name in names for end in ends}]

    @property
    def raw(self) -> list[str]:
        """The other columns of the file."""
        return [column for column in self.data.columns if column not in self.keys]

    def column(self, name: str) -> dict[str, Any]:
        """A column of the recoding."""
        return next(column for column in self.recoding["columns"] if column["name"] == name)

    def rows(self, **values: Any) -> list[int]:
        """The rows with these values."""
        wanted = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(value)) for name, value in values.items())
        return self.data.with_row_index("row").filter(wanted)["row"].to_list()

    def group(self, row: int) -> dict[str, Any]:
        """What a row says of its quasi-identifiers."""
        return self.data.select(self.keys).row(row, named=True)

    def smallest(self) -> list[int]:
        """The rows of the smallest group."""
        counts = self.data.group_by(self.keys).len().sort("len", *self.keys)
        return self.rows(**counts.drop("len").row(0, named=True))

    def first(self, column: str, holds: Callable[[Any], bool]) -> int:
        """The first row whose value in a column is such."""
        return next(row for row, value in enumerate(self.data[column].to_list()) if holds(value))

    def edit(self, rows: int | list[int], **values: Any) -> None:
        """Change some rows."""
        chosen = pl.Series(range(len(self.data))).is_in([rows] if isinstance(rows, int) else rows)
        self.data = self.data.with_columns(
            pl.when(chosen).then(pl.lit(value, dtype=self.data.schema[name])).otherwise(pl.col(name)).alias(name)
            for name, value in values.items()
        )

    def regroup(self, row: int, **values: Any) -> None:
        """Change what the whole group of a row says."""
        self.edit(self.rows(**self.group(row)), **values)

    def remove(self, rows: list[int]) -> None:
        """Take rows out."""
        self.data = self.data.filter(~pl.Series(range(len(self.data))).is_in(rows))

    def copy(self, row: int, **values: Any) -> None:
        """Add a row: another one with some values changed."""
        added = self.data[row].with_columns(
            pl.lit(value, dtype=self.data.schema[name]).alias(name) for name, value in values.items()
        )
        self.data = pl.concat([self.data, added])

    def write(self) -> Path:
        """Write everything back; of bookkeeping, only what the fault is not about is made right."""
        if self.order:
            self.data = self.data.sort([*self.keys, *self.raw], nulls_last=False)
        if self.counts:
            self.manifest["data"]["rows"] = self.manifest["rows"]["released"] = len(self.data)
            told = self.manifest["data"]
            told["columns"], told["texts"] = self.data.columns, [n for n in told["texts"] if n in self.data.columns]
        # The fault is in the values: their bytes are as they should be.
        write_table(rebuilt(self.data), self.file, self.file.suffix.removeprefix("."))
        self.write_json("recoding.json", self.recoding)
        if self.hashes:
            self.hash()
        self.write_json("manifest.json", self.manifest)
        return self.path

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file of the folder."""
        write_json(self.path / name, content)

    def hash(self) -> None:
        """Put the hashes of the files as they are into the manifest."""
        for name in self.manifest["files"]:
            digest = hashlib.sha256((self.path / name).read_bytes()).hexdigest()
            self.manifest["files"][name] = digest


def allow_withheld(folder: Path) -> None:
    """Regions that are too small among new rows are withheld: let the manifest say that they may be."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["spec"]["privacy"]["suppression_limit"] = 1.0
    write_json(folder / "manifest.json", manifest)


def planted(original: Path, copy: Path, shape: Shape) -> Planted:
    """A copy of a written release, to plant faults in."""
    shutil.copytree(original, copy)
    return Planted(copy, shape)


def missed(found: af.Audit) -> set[str]:
    """The demands that an audit found missed, but for what the report says of the file: faults leave it as it was."""
    return {one.name for one in found.findings if one.met is False and not one.name.startswith("report")}
