# SPDX-License-Identifier: Apache-2.0
"""Every setting changes something, or is refused where it cannot: none is accepted and passed over."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import anonfit as af
from anonfit.cli.main import app
from anonfit.errors import AnonfitError, RequestError, SpecError
from anonfit.spec import model as spec
from anonfit.spec.keywords import COLUMNS, ROLES, keyword_defaults
from anonfit.spec.parse import spec_of

ROWS = 240


@cache
def people() -> pl.DataFrame:
    rng = np.random.default_rng(11)
    age, hours = rng.integers(18, 80, ROWS), rng.integers(1, 60, ROWS)
    town = np.resize(["a", "b", "c", "d", "?"], ROWS)
    ill = np.where(age + rng.normal(0, 15, ROWS) > 50, "flu", rng.choice(["gout", "cold"], ROWS))
    return pl.DataFrame(
        {
            "who": np.arange(ROWS) // 2,
            "many": rng.integers(1, 4, ROWS),
            "mass": rng.integers(1, 9, ROWS),
            "age": age,
            "hours": hours,
            "town": town,
            "born": [f"{1 + day % 28:02}.0{1 + day % 9}.19{50 + day % 40}" for day in rng.integers(0, 900, ROWS)],
            "ill": ill,
            "pay": (age * 10 + hours * rng.integers(1, 5, ROWS)) // 7,
            "out": np.where(hours + rng.normal(0, 12, ROWS) > 30, "y", "n"),
            "raw": rng.choice(["u", "v"], ROWS),
            "side": np.where(np.arange(ROWS) // 5 % 2, "x", "y"),  # of which no town tells anything
        }
    )


BASE: dict[str, Any] = {
    "version": 1,
    "columns": {
        "who": {"role": "identifier"},
        "many": {"role": "identifier"},
        "mass": {"role": "identifier"},
        "age": {"role": "quasi-identifier"},
        "hours": {"role": "quasi-identifier"},
        "town": {"role": "quasi-identifier"},
        "born": {"role": "identifier"},
        "ill": {"role": "sensitive", "diversity": "none", "reason": "made up"},
        "pay": {"role": "identifier"},
        "out": {"role": "insensitive"},
        "raw": {"role": "insensitive"},
        "side": {"role": "identifier"},
    },
    "privacy": {"k": 6},
    "data": {},
    "workload": {},
    "method": {},
    "engine": {},
    "output": {},
}


def having(*changes: Mapping[str, Any]) -> dict[str, Any]:
    """The base with settings, under dotted names, put in or (None) taken away."""
    found: dict[str, Any] = json.loads(json.dumps(BASE))
    for name, value in (item for change in changes for item in change.items()):
        place = found
        *path, key = name.split(".")
        for part in path:
            place = place.setdefault(part, {})
        place.pop(key, None)
        if value is not None:
            place[key] = copy.deepcopy(value)
    return found


def told(tables: dict[str, Any], folder: Path) -> dict[str, Any] | str:
    """All that is told of a release: the recoding, its rows, the manifest and the report; or why there is none."""
    try:
        asked = spec_of(tables, folder=folder)
        if asked.data.source is None:
            asked = spec.Spec(**{one.name: getattr(asked, one.name) for one in fields(spec.Spec)} | _source(asked))
        release = af.anonymize(asked)
        release.save(folder / "release", replace=True)
    except AnonfitError as error:
        return str(error)
    read = {name: json.loads((folder / "release" / name).read_text()) for name in ("manifest.json", "report.json")}
    read["manifest.json"].pop("files")
    return {**read, "recoding": release.recoding.to_json(), "rows": release.data.rows()}


def _source(asked: spec.Spec) -> dict[str, Any]:
    data = {one.name: getattr(asked.data, one.name) for one in fields(spec.DataSpec)}
    return {"data": spec.DataSpec(**data | {"source": people()})}


CITIES = {
    "name": "*",
    "children": [
        {"name": "x", "children": [{"name": "a"}, {"name": "b"}]},
        {"name": "y", "children": [{"name": "c"}, {"name": "d"}, {"name": "?"}]},
    ],
}
TARGET = {"columns.out.role": "target"}
NUMBER = {"columns.pay": {"role": "target"}}
TDR = {**TARGET, "method.algorithm": "tdr"}
SIDE = {"columns.side.role": "target", "method.algorithm": "tdr", "columns.town.taxonomy": CITIES}
SIDE |= {"columns.age.role": "identifier", "columns.hours.role": "identifier"}
TREE = {**TARGET, "method.algorithm": "tree"}
WEIGHTS = {"workload.weights": {"age": 3.0, "town": 1.0, "hours": 2.0}, "method.criterion": "weighted"}
SETS = [{"columns": ["age", "hours"], "k": 8}, {"columns": ["hours", "town"]}]
LOG = {"workload.query_log": {"path": "log.sql"}}
DIVERSE = {"columns.ill.diversity": None, "columns.ill.reason": None}
FILE = {"data.source": "people.csv"}
MESSY = {"data.source": "messy.csv", "data.decimal": "."}
BORN = {"columns.born": {"role": "quasi-identifier", "type": "date", "date_format": "%d.%m.%Y"}}

# For each setting: what else is asked, and two values with which the outcome is another one.
CHANGES: dict[str, tuple[Mapping[str, Any], Any, Any]] = {
    "decisions": ({}, None, "accepted"),
    "data.source": ({}, None, "people.csv"),
    "data.missing": ({}, [""], ["", "?"]),
    "data.missing_policy": ({"data.missing": ["", "?"]}, "category", "drop"),
    "data.default_role": ({"columns.raw": None}, None, "insensitive"),
    "data.delimiter": (FILE, None, ";"),
    "data.header": (FILE, None, False),
    "data.encoding": (FILE, None, "utf-16"),
    "data.quote": (MESSY, '"', ""),
    "data.comment": (MESSY, None, "1"),
    "data.header_row": (MESSY, None, 2),
    "data.skip_rows": (MESSY, None, [7, 8]),
    "data.decimal": ({"data.source": "messy.csv", "columns.pay.role": "quasi-identifier"}, ".", ","),
    "data.thousands": ({"data.source": "messy.csv", "columns.pay.role": "quasi-identifier"}, "", "."),
    "data.sheet": ({"data.source": "people.xlsx"}, None, "some"),
    "data.value_labels": ({"data.source": "people.sav"}, None, False),
    "columns.raw.missing": ({}, [], ["u"]),
    "columns.age.title": ({}, None, "Age in years"),
    "data.table": ({"data.source": "sqlite:people.db"}, "people", "others"),
    "data.query": ({"data.source": "sqlite:people.db"}, "select * from people", "select * from people limit 200"),
    "columns.raw.role": ({}, "insensitive", "identifier"),
    "columns.hours.type": ({}, None, "nominal"),
    "columns.town.order": ({"columns.town.type": "ordinal"}, ["?", "a", "b", "c", "d"], ["d", "a", "?", "c", "b"]),
    "columns.age.domain": ({}, None, [0, 120]),
    "columns.born.date_format": (BORN, "%d.%m.%Y", None),
    "columns.town.taxonomy": ({}, None, CITIES),
    "columns.town.split": ({"columns.town.taxonomy": CITIES}, "multiway", "subset"),
    "columns.who.release": ({"columns.who.role": "insensitive"}, False, True),
    "columns.ill.diversity": ({}, "none", None),
    "columns.ill.reason": ({}, "made up", "another one"),
    "privacy.k": ({}, 6, 12),
    "privacy.suppression_limit": ({}, 0.0, 0.2),
    "privacy.max_confidence": (TARGET, 1.0, 0.7),
    "privacy.attack_limit": ({}, 1.0, 0.0),
    "privacy.diversity": (DIVERSE, [{"column": "ill", "model": "distinct-l", "l": 2}], []),
    "privacy.quasi_identifiers": (TDR, None, SETS),
    "privacy.class_is_public": (TREE, False, True),
    "workload.targets": (TARGET | NUMBER, ["out"], ["pay"]),
    "workload.denoise": (TARGET, False, True),
    "workload.selections": ({}, [], [{"where": "age > 60"}]),
    "workload.weights": ({"method.criterion": "weighted"}, {"age": 3.0}, {"age": 0.0}),
    "workload.query_log": ({}, None, {"path": "log.sql"}),
    "workload.rules": (TARGET, False, True),
    "workload.features": ({}, [], ["hours"]),
    "workload.selected_by": ({}, [], ["town"]),
    "workload.weights_from": (TARGET, None, "accuracy"),
    "workload.clusters": ({"method.criterion": "clustering"}, 5, 2),
    "method.algorithm": (TARGET, "mondrian", "tdr"),
    "method.criterion": (TARGET, "auto", "median"),
    "method.cut_points": ({}, "simplest", "value"),
    "method.seed": (WEIGHTS | {"method.weight_rule": "probabilistic"}, 0, 5),
    "method.candidates": (NUMBER | {"workload.targets": [{"column": "pay", "equal_width": 4}]}, "boundary", "all"),
    "method.split_on": ({}, [], ["age"]),
    "method.weight_rule": (WEIGHTS, "first", "product"),
    "method.alpha": (WEIGHTS | {"method.weight_rule": "blend"}, 0.0, 1.0),
    "method.beta": (WEIGHTS | TARGET | {"method.criterion": "auto", "method.weight_rule": "combined"}, 0.0, 1.0),
    "method.gamma": (WEIGHTS | TARGET | {"method.criterion": "auto", "method.weight_rule": "combined"}, 0.0, 1.0),
    "method.min_gain": (TARGET, 0.0, 4.0),
    "method.average": (TDR | {"privacy.quasi_identifiers": SETS}, "containing", "all"),
    "method.suppression": (TDR, "all", "best_gain"),
    "method.zero_gain": (SIDE, False, True),
    "method.time_budget": (TDR, None, 1e-9),
    "method.variant": (TREE, "c45", "id3"),
    "method.pruning": (TREE, 0.0, 0.5),
    "method.max_spans": (TREE, 1_000_000, 1),
    "method.start": (TDR, None, "coarse.json"),
    "engine.name": (FILE, "memory", "duckdb"),
    "engine.sample": ({"engine.name": "duckdb", "engine.hand_over": 12, **FILE}, None, 40),
    "output.format": ({}, "parquet", "csv"),
    "output.delimiter": ({"output.format": "csv"}, ",", ";"),
    "output.decimal": ({"output.format": "csv", "output.delimiter": ";"}, ".", ","),
    "output.bom": ({"output.format": "csv"}, False, True),
    "output.values": ({}, "labels", "bounds"),
    "output.regions": ({"output.consent": True}, "domain", "observed"),
    "output.order": ({"output.consent": True}, "sorted", "original"),
    "output.intervals": ({}, "half-open", "closed"),
    "output.consent": ({"output.order": "original"}, False, True),
    "output.populations": (TREE, "exact", "majority"),
    **{f"report.{name}": ({}, "one", "other") for name in ("title", "table_name", "contact")},
    "workload.query_log.path": (LOG, "log.sql", "other.sql"),
    "workload.query_log.dialect": (LOG, None, "tsql"),
    "workload.query_log.table": (LOG, None, "somewhere"),
    "workload.query_log.learn": (LOG, True, False),
    "workload.query_log.selections": (LOG, 50, 0),
    "workload.query_log.minterms": (LOG, 0, 3),
}
ONLY_WORK = {"engine.memory", "engine.spill", "engine.hand_over", "output.to", "output.table"}
"""How an engine works, and where else the table is written: the release does not depend on them, which other tests hold."""
SAME_RESULT = {"method.gamma", "method.average", "method.candidates", "method.pruning", "method.suppression"}
"""Settings that change the choice only where choices are close; the manifest tells them in any case."""


def keys() -> set[str]:
    """Every key of a spec, by section."""
    parts = {one.name: one.type for one in fields(spec.Spec)}
    found = {"decisions"}
    of = {
        "data": spec.DataSpec,
        "privacy": spec.PrivacySpec,
        "workload": spec.WorkloadSpec,
        "method": spec.MethodSpec,
        "engine": spec.EngineSpec,
        "output": spec.OutputSpec,
        "report": spec.ReportSpec,
        "workload.query_log": spec.QueryLogSpec,
    }
    assert {*of, "columns", "decisions", "folder"} - {"workload.query_log"} == set(parts)
    found |= {f"{section}.{one.name}" for section, kind in of.items() for one in fields(kind)}
    return found | {f"columns.*.{one.name}" for one in fields(spec.ColumnSpec)}


def generic(name: str) -> str:
    first, *rest = name.split(".")
    return f"columns.*.{rest[-1]}" if first == "columns" else name


def write_messy(frame: pl.DataFrame, folder: Path) -> None:
    """The same rows with quotes, and numbers that may have decimals or thousands; as a workbook; with labels."""
    import pyreadstat

    quoted = frame.with_columns(pl.concat_str(pl.lit("1."), pl.col("pay").cast(pl.String).str.zfill(3)).alias("pay"))
    quoted.with_columns(pl.col("raw") + ',"').write_csv(folder / "messy.csv")
    import xlsxwriter

    with xlsxwriter.Workbook(folder / "people.xlsx") as book:
        for name, rows in (("all", frame), ("some", frame.head(200))):
            rows.write_excel(book, name)
    with_codes = frame.with_columns(pl.col("raw").replace_strict({"u": 1, "v": 2}))
    pyreadstat.write_sav(with_codes, folder / "people.sav", variable_value_labels={"raw": {1: "u", 2: "v"}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import sqlite3

    frame = people()
    frame.write_csv(tmp_path / "people.csv")
    write_messy(frame, tmp_path)
    (tmp_path / "log.sql").write_text(
        "select * from people where age > 50;\nselect * from people where [hours] < 20;\n"
        "select town from people where age > 50 group by town;\nselect * from people where hours > 30 and age > 35;\n"
        * 3
    )
    (tmp_path / "other.sql").write_text("select * from people where hours between 10 and 30;\n" * 5)
    with sqlite3.connect(tmp_path / "people.db") as base:
        for table, rows in (("people", frame), ("others", frame.head(200))):
            base.execute(f"create table {table} ({', '.join(frame.columns)})")
            base.executemany(f"insert into {table} values ({', '.join('?' * frame.width)})", rows.rows())
    base.close()
    return tmp_path


def test_the_table_has_every_key_of_a_spec() -> None:
    assert {generic(name) for name in CHANGES} | ONLY_WORK == keys()


@pytest.mark.sampled(11)
@pytest.mark.parametrize("name", CHANGES)
def test_every_setting_changes_something(name: str, folder: Path) -> None:
    more, one, other = CHANGES[name]
    if name == "method.start":
        coarse = spec_of(
            having(TDR, {"privacy.k": 40, "columns.out.role": "insensitive", "columns.raw.role": "target"})
        )
        data = _source(coarse)["data"]
        parts = {part.name: getattr(coarse, part.name) for part in fields(spec.Spec)} | {"data": data}
        (folder / "coarse.json").write_text(af.anonymize(spec.Spec(**parts)).recoding.to_json())
    if name == "data.table":
        more = {**more, "data.query": None}
    found = [told(having(more, {name: value}), folder) for value in (one, other)]
    assert any(isinstance(outcome, dict) for outcome in found), found
    assert found[0] != found[1]
    if all(isinstance(outcome, dict) for outcome in found) and name not in SAME_RESULT and name in STEERING:
        assert found[0]["recoding"] != found[1]["recoding"]  # type: ignore[index]


STEERING = {name for name in CHANGES if name.startswith(("method.", "workload.weights", "workload.targets"))}
STEERING |= {"privacy.k", "privacy.max_confidence", "privacy.diversity", "columns.town.taxonomy", "columns.hours.type"}


# What cannot act is refused, with a sentence that names it.
REFUSED: list[tuple[Mapping[str, Any], str]] = [
    ({"method.criterion": "median", "workload.weights": {"age": 2.0}}, "workload.weights steers nothing"),
    (TARGET | {"method.criterion": "median", "workload.weights_from": "accuracy"}, "workload.weights_from steers"),
    ({"method.criterion": "median", "workload.features": ["age"]}, "workload.features steers nothing"),
    ({"method.criterion": "median", "workload.selected_by": ["age"]}, "workload.selected_by steers nothing"),
    ({"method.criterion": "median", **LOG}, "workload.query_log teaches what criterion = 'median' does not use"),
    ({"workload.features": ["raw"]}, "workload.features names no quasi-identifier"),
    ({"workload.selected_by": ["raw"]}, "workload.selected_by names no quasi-identifier"),
    (WEIGHTS | {"workload.features": ["age"]}, "workload.features and workload.weights both say what matters"),
    (WEIGHTS | {"workload.selected_by": ["age"]}, "workload.selected_by and workload.weights both say what matters"),
    ({"method.criterion": "clustering", "workload.selected_by": ["age"]}, "workload.selected_by does not go with"),
    ({"workload.clusters": 3}, "workload.clusters is for criterion = 'clustering'"),
    *(
        (TARGET | more | {"workload.denoise": True}, f"workload.denoise does not go with criterion = '{criterion}'")
        for criterion, more in {
            "median": {"method.criterion": "median"},
            "weighted": WEIGHTS,
            "clustering": {"method.criterion": "clustering"},
            "explore": {"method.criterion": "explore"},
        }.items()
    ),
    ({"method.candidates": "all"}, "method.candidates is where cuts for the classes of targets"),
    (NUMBER | {"method.candidates": "all", "method.criterion": "lsd"}, "method.candidates is where cuts"),
    (TARGET | {"method.candidates": "all", "method.criterion": "median"}, "method.candidates is where cuts"),
    (TARGET | {"method.candidates": "all"}, "models of the targets stand in their place"),
    ({"method.weight_rule": "product"}, "method.weight_rule = 'product' needs weights"),
    ({"method.alpha": 0.2}, "method.alpha is for weight_rule"),
    ({"method.beta": 0.2}, "method.beta is for weight_rule"),
    ({"method.gamma": 0.2}, "method.gamma is for weight_rule"),
    ({"method.min_gain": 2.0}, "method.min_gain is a gain in what regions tell of targets"),
    ({"method.time_budget": 3}, "method.time_budget is for"),
    ({"method.average": "all"}, "method.average is for algorithm = 'tdr' only"),
    (TDR | {"method.average": "all"}, "method.average is of the anonymity that several quasi-identifiers lose"),
    ({"method.suppression": "best_gain"}, "method.suppression is for algorithm = 'tdr' only"),
    ({"method.zero_gain": True}, "method.zero_gain is for algorithm = 'tdr' only"),
    ({"method.start": "coarse.json"}, "method.start is for algorithm = 'tdr' only"),
    ({"method.variant": "id3"}, "method.variant is for algorithm = 'tree' only"),
    ({"method.pruning": 0.1}, "method.pruning is for algorithm = 'tree' only"),
    ({"method.max_spans": 9}, "method.max_spans is for algorithm = 'tree' only"),
    ({"privacy.class_is_public": True}, "privacy.class_is_public is for algorithm = 'tree' only"),
    ({"privacy.quasi_identifiers": SETS}, "privacy.quasi_identifiers is for algorithm = 'tdr' only"),
    ({"privacy.max_confidence": 0.5}, "privacy.max_confidence is of targets, and there is none"),
    ({"output.populations": "majority"}, "output.populations is for algorithm = 'tree' only"),
    *(
        (algorithm | {f"method.{name}": value}, f"method.{name} is for algorithm = 'mondrian' only")
        for algorithm in (TDR, TREE)
        for name, value in {
            "candidates": "all",
            "split_on": ["age"],
            "weight_rule": "first",
            "alpha": 0.1,
            "beta": 0.1,
            "gamma": 0.1,
            "min_gain": 1.0,
        }.items()
    ),
    *((algorithm | LOG, "workload.query_log teaches selections and weights") for algorithm in (TDR, TREE)),
    *((algorithm | {"engine.hand_over": 9}, "engine.hand_over is not for") for algorithm in (TDR, TREE)),
    *((algorithm | {"engine.sample": 9}, "engine.sample is not for method") for algorithm in (TDR, TREE)),
    *(
        ({"engine.name": "memory", f"engine.{name}": value}, f"engine.{name} is not for engine.name = 'memory'")
        for name, value in {"memory": "1GB", "spill": "x", "hand_over": 9, "sample": 9}.items()
    ),
    ({"engine.name": "spark", "engine.memory": "1GB"}, "engine.memory is not for engine.name = 'spark'"),
    (LOG | {"workload.query_log.learn": False, "workload.query_log.minterms": 3}, "query_log.minterms is of what is"),
    (LOG | {"workload.query_log.learn": False, "workload.query_log.selections": 3}, "query_log.selections is of what"),
    (LOG | {"workload.query_log.minterms": 3, "workload.query_log.selections": 3}, "minterms stand in place of"),
    (TARGET | {"workload.targets": [{"column": "out", "classes": [1], "scale": False}]}, "scale of 'out' is for"),
    (TDR | {"workload.targets": [{"column": "out", "scale": False}]}, "scale of 'out' is for"),
    *((one | {"workload.targets": [{"column": "out", "weight": 5}]}, "the weight of 'out' is") for one in (TDR, TREE)),
    (
        {"columns.out": {"role": "target", "type": "nominal"}, "workload.targets": [{"column": "out", "scale": False}]},
        "scale of 'out' is for",
    ),
    ({"workload.weights": {"age": 0, "hours": 0, "town": 0}}, "workload.weights are 0 for every quasi-identifier"),
    (
        {"method.criterion": "selection", "workload.selections": [{"where": "age > 60", "weight": 0}]},
        "needs selections with a weight above 0",
    ),
    ({"output.consent": True}, "output.consent = true, and nothing needs it"),
    *(
        (DIVERSE | {"privacy.diversity": [{"column": "ill", **demand}]}, "ask for more diversity than that")
        for demand in (
            {"model": "distinct-l", "l": 1},
            {"model": "entropy-l", "l": 1},
            {"model": "recursive-cl", "c": 2, "l": 1},
            {"model": "t-closeness", "t": 1},
            {"model": "alpha-k", "alpha": 1},
            {"model": "squared-error", "error": 0},
            {"model": "variance", "variance": 0},
        )
    ),
    *(
        ({"columns.who": {"role": role, key: value}}, f"columns.who: {key} says nothing of a column whose role")
        for role in ("identifier", "entity")
        for key, value in {"type": "nominal", "date_format": "%Y", "release": True}.items()
    ),
    *(
        ({"columns.many": {"role": role, key: value}}, f"columns.many: {key} says nothing")
        for role in ("count", "sample-weight")
        for key, value in {"type": "nominal", "date_format": "%Y"}.items()
    ),
    *(
        ({f"columns.raw.{key}": value}, f"'{key}' can be set for a quasi-identifier only")
        for key, value in {"domain": ["u"], "taxonomy": CITIES, "split": "subset"}.items()
    ),
    ({"columns.raw.diversity": "none", "columns.raw.reason": "x"}, "are for sensitive columns"),
    ({"columns.ill.diversity": None}, "a reason stands beside diversity = 'none' only"),
    ({"columns.ill.reason": None}, "diversity = 'none' needs a reason"),
    ({"columns.ill.reason": "  "}, "diversity = 'none' needs a reason"),
    ({"columns.ill.diversity": "entropy-l"}, "columns.ill.diversity can be 'none' only"),
    (DIVERSE, "columns.ill is sensitive and nothing is asked of it"),
    ({"privacy.diversity": [{"column": "ill", "model": "distinct-l", "l": 2}]}, "remove one"),
    ({"decisions": "taken"}, "decisions = 'taken' is not known"),
]


@pytest.mark.parametrize(("asked", "sentence"), REFUSED)
def test_a_setting_that_cannot_act_is_refused(asked: Mapping[str, Any], sentence: str) -> None:
    with pytest.raises(SpecError) as refused:
        spec_of(having(asked))
    assert any(sentence in fault for fault in refused.value.faults), refused.value.faults


@pytest.mark.parametrize(
    ("asked", "source", "sentence"),
    [
        ({"data.table": "people"}, None, "data.table is not of a frame"),
        ({"data.query": "select 1"}, None, "data.query is not of a frame"),
        ({"data.delimiter": ";"}, None, "data.delimiter is not of a frame"),
        ({"data.header": True}, "people.parquet", "data.header is of text files"),
        ({"data.delimiter": ";"}, "people.parquet", "data.delimiter is of text files"),
        ({"data.delimiter": ";", "data.table": "people"}, "sqlite:people.db", "data.delimiter is of text files"),
        ({"data.table": "people"}, "people.csv", "data.table and data.query are of databases"),
    ],
)
def test_what_is_of_another_kind_of_source_is_refused(
    asked: Mapping[str, Any], source: str | None, sentence: str, folder: Path
) -> None:
    assert sentence in told(having(asked, {"data.source": source}), folder)


RAW_DATES = {"columns.born": {"role": "insensitive", "release": True, "date_format": "%d.%m.%Y"}}


def test_how_dates_are_written_is_for_those_that_are_compared(folder: Path) -> None:
    assert "columns.born.date_format says how to compare dates" in told(having(RAW_DATES), folder)
    born = {"workload.selections": [{"where": "age > 40 and born < '1970-06-01'"}]}
    assert isinstance(told(having(RAW_DATES, born, {"columns.born.date_format": None}), folder), str)
    assert isinstance(told(having(RAW_DATES, born), folder), dict)
    assert af.load(folder / "release").data["born"].dtype == pl.String


@pytest.mark.parametrize(
    "more",
    [
        {},
        TARGET | NUMBER,
        {**TARGET, "columns.raw.role": "target", "privacy.max_confidence": 0.9},
        {"columns.raw": {"role": "sensitive", "diversity": "none", "reason": "made up, too"}},
        {"workload.features": ["hours", "age"]},
        {"workload.selected_by": ["town", "age"]},
    ],
    ids=["nothing", "targets", "capped", "waived", "features", "selected_by"],
)
def test_the_order_in_which_columns_are_declared_changes_nothing(more: Mapping[str, Any], folder: Path) -> None:
    tables = having(more)
    other = {**tables, "columns": dict(reversed(tables["columns"].items()))}
    found = told(tables, folder)
    assert isinstance(found, dict)
    assert told(other, folder) == found


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_scale_of_what_turns_out_to_be_a_class_is_refused(engine: str) -> None:
    words = {"quasi_identifiers": ["age"], "k": 5, "targets": [{"column": "out", "scale": False}], "engine": engine}
    with pytest.raises(SpecError, match="scale of 'out' is for numbers"):
        af.anonymize(people().select("age", "out"), **words)


def test_a_selection_without_weight_is_answered_in_the_report(folder: Path) -> None:
    without = told(having(), folder)
    found = told(having({"workload.selections": [{"where": "age > 60", "weight": 0}]}), folder)
    assert isinstance(found, dict)
    assert isinstance(without, dict)
    assert found["recoding"] == without["recoding"]
    assert found["report.json"]["selections"] != without["report.json"]["selections"]


def test_a_seed_draws_the_rows_that_a_comparison_is_measured_on(folder: Path) -> None:
    found = [told(having(TARGET, {"method.seed": seed, "method.criterion": "infogain"}), folder) for seed in (0, 5)]
    assert isinstance(found[0], dict)
    assert isinstance(found[1], dict)
    assert found[0]["recoding"] == found[1]["recoding"]
    assert found[0]["report.json"]["comparison"] != found[1]["report.json"]["comparison"]


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("value", [timedelta(days=1), b"ab"], ids=["duration", "bytes"])
def test_what_a_format_cannot_hold_is_refused_with_the_column(engine: str, value: object, folder: Path) -> None:
    frame = people().select("age").with_columns(stay=pl.lit(value))
    asked = {"version": 1, "columns": {"age": {"role": "quasi-identifier"}, "stay": {"role": "insensitive"}}}
    asked |= {"privacy": {"k": 5}, "engine": {"name": engine}, "output": {"format": "csv"}}
    made = spec_of(asked)
    with pytest.raises(AnonfitError, match="column 'stay' is of type .* a CSV file cannot hold; use the format"):
        af.anonymize(dataclasses.replace(made, data=dataclasses.replace(made.data, source=frame)))
    release = af.anonymize(frame, quasi_identifiers=["age"], insensitive=["stay"], k=5, engine=engine)
    with pytest.raises(AnonfitError, match="column 'stay' is of type .* a CSV file cannot hold; use the format"):
        release.save(folder / "out", format="csv")
    assert not (folder / "out").exists()
    assert af.load(release.save(folder / "out", format="parquet")).data["stay"].dtype == frame["stay"].dtype


@pytest.mark.parametrize("weight", [float("inf"), -1.0, float("nan")])
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_sample_weights_are_checked_though_nothing_is_steered_by_them(weight: float, engine: str) -> None:
    frame = (
        people()
        .with_columns(pl.col("mass").cast(float))
        .with_columns(mass=pl.when(pl.col("who") == 0).then(weight).otherwise("mass"))
    )
    words = {"quasi_identifiers": ["age"], "sample_weight": "mass", "k": 5, "criterion": "median", "engine": engine}
    with pytest.raises(AnonfitError, match="sample-weight column 'mass': weights must be numbers"):
        af.anonymize(frame.select("age", "mass"), **words)
    good = af.anonymize(people().select("age", "mass"), **words)
    with pytest.raises(AnonfitError, match="sample-weight column 'mass'"):
        good.extend(frame.select("age", "mass"), suppression_limit=1.0)


# --- keywords and options ---------------------------------------------------------------------------------------


def test_every_keyword_of_anonymize_is_a_setting_of_the_table() -> None:
    settings = {name.split(".")[-1] for name in keys()}
    others = {"data", "threads", "requirements", "engine", "columns", *ROLES, *COLUMNS}
    assert set(signature(af.anonymize).parameters) <= settings | others
    assert set(signature(af.anonymize).parameters) == {*keyword_defaults(), "data", "threads", *ROLES, *COLUMNS}
    given = set(signature(af.Anonymizer).parameters)
    assert given - {"output", "remainder"} <= set(signature(af.anonymize).parameters)


@pytest.mark.parametrize(
    "words", [{"k": 50}, {"quasi_identifiers": ["age"]}, {"criterion": "median"}, {"weights": {"age": 2}}]
)
def test_keywords_beside_a_spec_are_refused(words: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=f"a spec was given, .* beside it '{next(iter(words))}'"):
        af.anonymize(spec_of(having()), **words)


def test_an_estimator_of_trees_prunes_either_kind_as_it_is_told() -> None:
    frame = people().select("town", "raw", "ill", age=pl.col("age").cast(pl.String).str.slice(0, 1))
    y = people()["out"].to_list()

    def leaves(**words: Any) -> int:
        tree = (
            af.KAnonymousTreeClassifier(3, types=dict.fromkeys(frame.columns, "nominal"), **words).fit(frame, y).tree_
        )
        return len(tree.spans.counts) if hasattr(tree.spans, "counts") else len(tree.majority)

    for variant in ("c45", "id3"):
        assert leaves(variant=variant, pruning=0.01) < leaves(variant=variant, pruning=0)
    assert leaves(variant="id3") == leaves(variant="id3", pruning=0)
    assert leaves(variant="c45") == leaves(variant="c45", pruning=0.25)


def anonfit(*words: object) -> str:
    error = CliRunner().invoke(app, [*map(str, words), "--json"]).exception
    assert isinstance(error, AnonfitError), error
    assert error.exit_status == 2
    return str(error)


def test_options_of_tree_that_would_change_nothing_are_refused(tmp_path: Path) -> None:
    assert "--set changes a spec" in anonfit("tree", "--from", tmp_path, "--set", "privacy.k=50")
    assert "leave --replace away" in anonfit("tree", "--from", tmp_path, "--replace")
    assert "leave --out away" in anonfit("tree", "--from", tmp_path, "--out", "x")


def test_settings_of_tables_are_refused_for_a_tree(tmp_path: Path) -> None:
    of_tables = {"output.values": "bounds", "output.format": "csv", "privacy.suppression_limit": 0.5, "method.seed": 7}
    for name, value in {**of_tables, "output.intervals": "closed", "output.table": "people"}.items():
        asked = spec_of(having(TREE, {name: value}))
        with pytest.raises(SpecError, match=f"{name} is of a released table"):
            af.run_tree(asked, tmp_path / "tree")
    with pytest.raises(SpecError, match="columns.raw.release lets a column stand in a table"):
        af.run_tree(spec_of(having(TREE, {"columns.raw.release": True})), tmp_path / "tree")


def test_the_name_of_an_engine_is_a_name_whatever_it_holds(folder: Path) -> None:
    (folder / "spec.toml").write_text('version = 1\n[data]\nsource = "people.csv"\n[privacy]\nk = 5\n')
    assert "engine.name = 'memory\"" in anonfit("run", folder / "spec.toml", "--engine", 'memory"\nmemory="1GB')
