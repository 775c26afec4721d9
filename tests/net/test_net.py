# SPDX-License-Identifier: Apache-2.0
"""Releases stay what they are, byte for byte: hashes of the recoding, the released file and the public report of many
requests on every engine. `python tests/net/test_net.py` writes them anew, where a change of results is meant.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from net_requests import REQUESTS, TREES, write_request

import anonfit as af
from anonfit.errors import SpecError

HASHES = Path(__file__).parent / "hashes.json"
SPARK = ["infogain", "target alone", "lsd", "selections", "t-closeness", "count", "tdr several", "tree table", "bounds"]
"""The requests that Spark is tried with in every run; the others are slow."""
CSV = 'output.format="csv"'


def _hashes(folder: Path) -> dict[str, str]:
    """Of every file but the manifest, which has the versions of packages, and what is written for people."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in sorted(folder.iterdir())
        if path.name not in ("manifest.json", "report.html", "README.txt", "codebook.csv")
    }


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="anonfit-net-"))
    write_request(folder)
    return folder


def _made(name: str, engine: str, tree: bool) -> dict[str, str] | None:
    """The hashes of a request's release; None where the engine refuses it."""
    requests, run = (TREES, af.run_tree) if tree else (REQUESTS, af.run)
    folder = _folder()
    out = folder / f"{'tree ' if tree else ''}{name} {engine}"
    try:
        settings = [*requests[name], f'engine.name="{engine}"']
        run(folder / "spec.toml", out, settings=settings if tree else [CSV, *settings], replace=True)
    except SpecError as error:
        if "needs the engine 'memory'" in str(error):
            return None
        raise
    return _hashes(out)


def _expected() -> Any:
    return json.loads(HASHES.read_text())


def _check(name: str, engine: str, *, tree: bool = False) -> None:
    assert _made(name, engine, tree) == _expected()["trees" if tree else "tables"][name][engine]


@pytest.mark.sampled(13)
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_release_stays_what_it_is(name: str, engine: str) -> None:
    _check(name, engine)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("name", TREES)
def test_a_tree_stays_what_it_is(name: str, engine: str) -> None:
    _check(name, engine, tree=True)


@pytest.mark.sampled(11)
@pytest.mark.spark
@pytest.mark.parametrize("name", SPARK)
def test_a_release_of_spark_stays_what_it_is(name: str) -> None:
    _check(name, "spark")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in REQUESTS if name not in SPARK])
def test_every_release_of_spark_stays_what_it_is(name: str) -> None:
    _check(name, "spark")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", TREES)
def test_every_tree_of_spark_stays_what_it_is(name: str) -> None:
    _check(name, "spark", tree=True)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", REQUESTS)
def test_engines_give_the_same_recoding_and_rows(name: str) -> None:
    found = [hashes for hashes in _expected()["tables"][name].values() if hashes]
    for hashes in found[1:]:
        assert {**hashes, "report.json": ""} == {**found[0], "report.json": ""}


def _write() -> None:
    found: dict[str, Any] = {"tables": {}, "trees": {}}
    for kind, requests in (("tables", REQUESTS), ("trees", TREES)):
        for name in requests:
            engines = {engine: _made(name, engine, kind == "trees") for engine in ("memory", "duckdb", "spark")}
            found[kind][name] = engines
            sys.stderr.write(f"{name}\n")
    HASHES.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    _write()
