# SPDX-License-Identifier: Apache-2.0
"""What is published can be loaded, and sends the source's rows where the release has them; a folder that is not what
anonfit writes is refused, and nothing outside of it is read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from requests_to_load import TREE, random_release

import anonfit as af
from anonfit.errors import ReleaseError, RequestError
from anonfit.runtime.files import file_hash
from json_layout import write_json


def check_loads(seed: int, folder: Path) -> None:
    """Save, load and apply the release of a seed; requests that are refused when they are made say nothing here."""
    frame, words = random_release(seed)
    try:
        release = af.anonymize(frame, **words)
    except RequestError as error:
        assert "bounds cannot say" in str(error)  # noqa: PT017 - any other refusal is a fault of the generator
        return
    kinds = ("parquet", "csv", "arrow") if words["values"] == "labels" else ("parquet", "arrow")
    loaded = af.load(release.save(folder / str(seed), format=kinds[seed % len(kinds)]))
    assert loaded.recoding.to_json() == release.recoding.to_json()
    rows = frame.drop_nulls(words["quasi_identifiers"]) if words["missing_policy"] == "drop" else frame
    recoded = loaded.recoding.apply(rows, values=words["values"])
    names = [pl.col(name).cast(pl.String) for name in release.data.columns if name not in ("target", "cost")]
    assert Counter(recoded.select(names).rows()) == Counter(loaded.data.select(names).rows())


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(24))
def test_a_published_release_loads_and_sends_rows_where_it_has_them(seed: int, tmp_path: Path) -> None:
    check_loads(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(10))
def test_a_thousand_published_releases_load(hundred: int, tmp_path: Path) -> None:
    for seed in range(1000 + 100 * hundred, 1100 + 100 * hundred):
        check_loads(seed, tmp_path)


@pytest.mark.parametrize("criterion", ["median", "infogain"])
def test_taxonomies_divided_in_two_load(criterion: str, tmp_path: Path) -> None:
    """The last free descent of a node that a set has left with gaps divides it by runs that begin in a gap."""
    groups = ["0-0-0", "0-0-2", "0-2-1", "1-1-1", "1-2-0", "2-0-0", "2-0-1", "2-2-2", "3-1-0", "3-1-2"]
    frame = pl.DataFrame({"place": groups * 6, "target": ["x", "y", "y"] * 20})
    words = {"taxonomies": {"place": TREE}, "splits": {"place": "binary"}, "criterion": criterion}
    release = af.anonymize(frame, quasi_identifiers=["place"], k=5, targets=["target"], **words)
    loaded = af.load(release.save(tmp_path / "out"))
    assert Counter(loaded.recoding.apply(frame)["place"]) == Counter(release.data["place"])


@pytest.mark.parametrize("cut_points", ["simplest", "value"])
@pytest.mark.parametrize("kind", ["day", "whole"])
def test_a_declared_domain_whose_end_occurs_loads(kind: str, cut_points: str, tmp_path: Path) -> None:
    days = [date(2024, 1, 1 + number % 10) for number in range(200)]
    values: list[Any] = days if kind == "day" else [day.day for day in days]
    frame = pl.DataFrame({"a": values})
    words: dict[str, Any] = {
        "domains": {"a": [min(values), max(values)]},
        "cut_points": cut_points,
        "consent": cut_points == "value",
    }
    release = af.anonymize(frame, quasi_identifiers=["a"], k=2, **words)
    loaded = af.load(release.save(tmp_path / "out"))
    assert Counter(loaded.recoding.apply(frame)["a"]) == Counter(release.data["a"])
    above = pl.DataFrame({"a": [max(values) + (timedelta(days=1) if kind == "day" else 1)]})
    with pytest.raises(RequestError, match="does not know"):
        loaded.recoding.apply(above)


# --- folders that are not what anonfit writes ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frame = pl.DataFrame({"age": [20 + index % 40 for index in range(200)], "sex": ["f", "m"] * 100})
    release = af.anonymize(frame, quasi_identifiers=["age", "sex"], k=5)
    return release.save(tmp_path_factory.mktemp("release") / "out", format="csv")


def edited(original: Path, folder: Path, change: Callable[[dict[str, Any]], Any], name: str = "manifest.json") -> Path:
    """A copy of a release whose file is changed, with the hash that the changed one has."""
    folder.mkdir()
    for path in original.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    found = json.loads((folder / name).read_text())
    change(found)
    write_json(folder / name, found)
    if name != "manifest.json":
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["files"][name] = file_hash(folder / name)
        write_json(folder / "manifest.json", manifest)
    return folder


@pytest.mark.parametrize(
    "name", ["../elsewhere.csv", "/etc/passwd", "data.txt", "./data.csv", "data.parquet", "", None]
)
def test_a_data_file_of_another_name_is_not_read(original: Path, tmp_path: Path, name: str | None) -> None:
    (tmp_path / "elsewhere.csv").write_bytes((original / "data.csv").read_bytes())
    with pytest.raises(ReleaseError, match="data.file"):
        af.load(edited(original, tmp_path / "out", lambda found: found["data"].update(file=name)))


@pytest.mark.parametrize(
    "name", ["data.csv", "recoding.json", "report.json", "report.html", "README.txt", "manifest.json"]
)
def test_a_link_out_of_the_folder_is_not_followed(original: Path, tmp_path: Path, name: str) -> None:
    folder = edited(original, tmp_path / "out", lambda found: None)
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(ReleaseError, match="not a file of the release itself"):
        af.load(folder)


EDITS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no recoded column": (lambda found: found["spec"]["columns"].pop("age"), "no column 'age'"),
    "a quasi-identifier that is not recoded": (
        lambda found: found["spec"]["columns"].update(zip={"role": "quasi-identifier"}),
        "says nothing of 'zip'",
    ),
    "columns are a list": (lambda found: found["spec"].update(columns=[]), "spec.columns is not a table"),
    "a column is a text": (lambda found: found["spec"]["columns"].update(age="x"), "spec.columns.age is not a table"),
    "a taxonomy elsewhere": (
        lambda found: found["spec"]["columns"]["sex"].update(taxonomy="/etc/passwd.csv"),
        "unknown key 'taxonomy'",
    ),
    "a source": (lambda found: found["spec"]["data"].update(source="/etc/passwd"), "no manifest tells"),
    "a query log": (lambda found: found["spec"]["workload"].update(query_log={"path": "/x"}), "no manifest tells"),
    "a start": (lambda found: found["spec"]["method"].update(start="/etc/passwd"), "no manifest tells"),
    "an engine": (lambda found: found["spec"].update(engine={"spill": "/tmp"}), "unknown key 'engine'"),
    "other rows": (lambda found: found["data"].update(rows=3), "other columns or rows"),
    "other columns": (lambda found: found["data"].update(columns=["sex", "age"]), "other columns or rows"),
    "negative rows": (lambda found: found["data"].update(rows=-1), "data.rows is -1"),
    "a text that is no column": (lambda found: found["data"].update(texts=["zip"]), "data.texts"),
    "an unknown key": (lambda found: found.update(note="x"), "unknown key 'note'"),
    "another file": (lambda found: found["files"].update({"raw.csv": "00"}), "unknown key 'raw.csv'"),
    "no files": (lambda found: found.pop("files"), "no 'files'"),
    "a version of another kind": (lambda found: found.update(version=True), "version True"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_manifest_of_another_shape_is_refused(
    original: Path, tmp_path: Path, edit: tuple[Callable[[dict[str, Any]], Any], str]
) -> None:
    with pytest.raises(ReleaseError, match=edit[1]):
        af.load(edited(original, tmp_path / "out", edit[0]))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"format": "anonfit report", "format": "x"}', "twice"),
        ('{"format": "anonfit report", "k": NaN}', "NaN is no number"),
        ('{"format": "anonfit report", "k": 1e999}', "too large"),
        ('{"format": "anonfit report", "k": ' + "9" * 5000 + "}", "digits"),
        ("[" * 100_000, "nested too deeply"),
        ('{"format": "anonfit report", "k": "\\ud800"}', "half of a character"),
        ('{"format": "anonfit report", "asked": {"targets": [{"column": 1}]}}', "targets"),
        ("[]", "is not a table"),
    ],
)
def test_a_report_of_another_shape_is_refused(original: Path, tmp_path: Path, text: str, told: str) -> None:
    folder = edited(original, tmp_path / "out", lambda found: None)
    (folder / "report.json").write_text(text)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["report.json"] = file_hash(folder / "report.json")
    write_json(folder / "manifest.json", manifest)
    with pytest.raises(ReleaseError, match=told):
        af.load(folder)
