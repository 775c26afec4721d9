# SPDX-License-Identifier: Apache-2.0
"""No message of any command holds a record's value: marks are planted in a table, and whatever can be wrong with its
values is provoked, in memory and outside of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from anonfit.cli.main import app

MARKS = ("ZQX", "987654", "1901-02-03", "03.02.1901")
ROWS = 60
COLUMNS = {
    "name": "role = 'identifier'",
    "town": "role = 'quasi-identifier'",
    "size": "role = 'quasi-identifier'",
    "born": "role = 'quasi-identifier'",
    "ill": "role = 'sensitive'\ndiversity = 'none'\nreason = 'a test'",
    "outcome": "role = 'target'",
}
REST = "privacy.k = 5\n"


def table() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "name": [f"ZQXNAME{number}" for number in range(ROWS)],
            "town": rng.choice(["Bonn", "Trier"], ROWS).tolist(),
            "size": rng.integers(150, 200, ROWS),
            "born": [f"19{60 + number % 30}-01-01" for number in range(ROWS)],
            "ill": rng.choice(["flu", "cold"], ROWS).tolist(),
            "outcome": rng.choice(["well", "worse"], ROWS).tolist(),
        }
    )
    odd = {"town": "ZQXTOWN", "size": 987654, "born": "1901-02-03", "ill": "ZQXILL", "outcome": "ZQXOUTCOME"}
    return pl.concat([frame, pl.DataFrame({"name": ["ZQXNAME"], **{name: [value] for name, value in odd.items()}})])


TREE = '{"name": "*", "children": [{"name": "Bonn"}, {"name": "Trier"}]}'
ILLS = '{"name": "*", "children": [{"name": "flu"}, {"name": "cold"}]}'
CLOSE = "privacy.diversity = [{ column = 'ill', model = 't-closeness', t = 0.5 }]\n"
WRONG: dict[str, tuple[dict[str, str], str]] = {
    "a taxonomy without a value": ({"town": "role = 'quasi-identifier'\ntaxonomy = 'town.json'"}, REST),
    "a domain without a value": (
        {"town": "role = 'quasi-identifier'\ntype = 'nominal'\ndomain = ['Bonn', 'Trier']"},
        REST,
    ),
    "an order without a value": (
        {"town": "role = 'quasi-identifier'\ntype = 'ordinal'\norder = ['Bonn', 'Trier']"},
        REST,
    ),
    "texts for numbers": ({"town": "role = 'quasi-identifier'\ntype = 'continuous'"}, REST),
    "texts for dates": ({"town": "role = 'quasi-identifier'\ntype = 'date'"}, REST),
    "dates of another form": ({"town": "role = 'quasi-identifier'\ntype = 'date'\ndate_format = '%d.%m.%Y'"}, REST),
    "a number outside its domain": ({"size": "role = 'quasi-identifier'\ndomain = [100, 300]"}, REST),
    "a date outside its domain": (
        {"born": "role = 'quasi-identifier'\ntype = 'date'\ndomain = ['1950-01-01', '2000-01-01']"},
        REST,
    ),
    "intervals without a number": (
        {"size": "role = 'quasi-identifier'\ntype = 'nominal'\ntaxonomy = 'sizes.json'"},
        REST,
    ),
    "a count that is none": ({"town": "role = 'count'"}, REST),
    "a weight that is none": ({"town": "role = 'sample-weight'"}, REST),
    "a sensitive taxonomy without a value": ({"ill": "role = 'sensitive'\ntaxonomy = 'ill.json'"}, REST + CLOSE),
    "a sensitive order without a value": (
        {"ill": "role = 'sensitive'\ntype = 'ordinal'\norder = ['flu', 'cold']"},
        REST + CLOSE,
    ),
    "a sensitive number that is none": ({"ill": "role = 'sensitive'\ntype = 'continuous'"}, REST + CLOSE),
    "classes of texts": ({}, REST + "workload.targets = [{ column = 'outcome', classes = [1.0] }]\n"),
    "a raw column that is distinct": ({"name": "role = 'insensitive'"}, REST),
    "a target that is distinct": ({"name": "role = 'target'"}, REST),
    "a demand that cannot be met": (
        {},
        REST + "privacy.diversity = [{ column = 'ill', model = 'entropy-l', l = 40.0 }]\n",
    ),
    "a k that cannot be met": ({}, "privacy.k = 1000\n"),
    "a selection of another kind": ({}, REST + "workload.selections = [{ where = 'town > 5' }]\n"),
    "a selection that is guarded": ({}, REST + "workload.selections = [{ where = \"ill = 'flu'\" }]\n"),
}


def written(folder: Path, columns: dict[str, str], rest: str, engine: str, data: str = "data.csv") -> Path:
    (folder / "town.json").write_text(TREE, encoding="utf-8")
    (folder / "ill.json").write_text(ILLS, encoding="utf-8")
    (folder / "sizes.json").write_text('{"name": "*", "children": [{"name": "[100, 300)"}]}', encoding="utf-8")
    parts = [f"[columns.{name}]\n{text}\n" for name, text in {**COLUMNS, **columns}.items()]
    path = folder / "spec.toml"
    head = f"version = 1\ndata.source = '{data}'\nengine.name = '{engine}'\n{rest}"
    path.write_text(head + "".join(parts), encoding="utf-8")
    return path


def said(*words: str | Path) -> str:
    """What a command that must fail says."""
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code != 0 or found.exception is not None, words
    text = f"{found.output}\n{found.exception}"
    assert not any(mark in text for mark in MARKS), text
    assert "something went wrong inside" not in text
    return text


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_with_values_is_said_without_them(tmp_path: Path, fault: str, engine: str) -> None:
    table().write_csv(tmp_path / "data.csv")
    said("run", written(tmp_path, *WRONG[fault], engine), "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("fault", [name for name in WRONG if not re.search("sensitive|demand|raw", name)])
def test_trees_say_it_without_them(tmp_path: Path, fault: str) -> None:
    table().write_csv(tmp_path / "data.csv")
    columns, rest = WRONG[fault]
    said(
        "tree", written(tmp_path, {"ill": "role = 'insensitive'", **columns}, rest, "memory"), "--out", tmp_path / "out"
    )


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "a field too many": lambda data: data + b"ZQX1,ZQX2,1,2000-01-01,flu,well,ZQX3\n",
    "bytes that are no UTF-8": lambda data: data + b"ZQX1,ZQX\xff2,1,2000-01-01,flu,well\n",
    "a quote without its end": lambda data: data + b'ZQX1,"ZQX2,1,2000-01-01,flu,well\n',
    "a number that is too large": lambda data: (
        data + b"ZQX1,Bonn,9876549876549876549876549876549876543,2000-01-01,flu,well\n"
    ),
    "missing values that are refused": lambda data: data + b"ZQX1,,987654,1901-02-03,ZQX4,well\n",
}


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("fault", BROKEN)
def test_what_is_wrong_with_a_file_is_said_without_its_values(tmp_path: Path, fault: str, engine: str) -> None:
    table().write_csv(tmp_path / "data.csv")
    (tmp_path / "data.csv").write_bytes(BROKEN[fault]((tmp_path / "data.csv").read_bytes()))
    spec = written(tmp_path, {}, REST + "data.missing_policy = 'error'\n", engine)
    found = CliRunner().invoke(app, ["run", str(spec), "--out", str(tmp_path / "out")])
    text = f"{found.output}\n{found.exception}"
    assert not any(mark in text for mark in MARKS), text


def test_new_data_and_audits_say_it_without_them(tmp_path: Path) -> None:
    frame = table()
    frame[:-1].write_csv(tmp_path / "data.csv")
    frame.write_csv(tmp_path / "odd.csv")
    ordered = {
        "town": "role = 'quasi-identifier'\ntype = 'ordinal'\norder = ['Bonn', 'Trier']",
        "born": "role = 'insensitive'\nrelease = true",
    }
    spec = written(tmp_path, ordered, REST, "memory")
    assert CliRunner().invoke(app, ["run", str(spec), "--out", str(tmp_path / "out")]).exit_code == 0
    new = frame.with_columns(size=pl.format("ZQX{}", "size"))
    new.write_csv(tmp_path / "texts.csv")
    said("apply", tmp_path / "out", tmp_path / "texts.csv", "--out", tmp_path / "again")
    said("apply", tmp_path / "out", tmp_path / "odd.csv", "--unseen", "error", "--out", tmp_path / "again")
    said("audit", tmp_path / "odd.csv", "--quasi-identifiers", "town,size", "--k", "5", "--sensitive", "ill")
    said("audit", tmp_path / "out", "--source", tmp_path / "odd.csv")
    said("audit", tmp_path / "odd.csv", tmp_path / "spec.toml")
    (tmp_path / "log.sql").write_text(
        "SELECT FROM WHERE town = 'ZQXTOWN';\nSELECT count(*) FROM t WHERE ill = 'ZQXILL';\n"
    )
    log = CliRunner().invoke(
        app, ["workload", str(tmp_path / "log.sql"), "--spec", str(spec), "--out", str(tmp_path / "learned.toml")]
    )
    assert not any(mark in f"{log.output}\n{log.exception}" for mark in MARKS)
