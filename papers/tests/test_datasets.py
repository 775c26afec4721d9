# SPDX-License-Identifier: Apache-2.0
"""Files of the experiments: fetched from a server of this machine, kept only if they are the known ones, and read."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

from anonfit.errors import DataError, RequestError
from anonfit.tables.taxonomy import Taxonomy
from anonfit_papers import datasets
from anonfit_papers.datasets import ACS, ADULT, CMC, FETCHED, Source, fetch, is_there, require
from anonfit_papers.datasets_adult import ADULT_TAXONOMIES, complete_adult
from anonfit_papers.datasets_tables import census, census_numbers, census_sources, contraceptives, fingerprint
from anonfit_papers.reproduction.census_parts import CENSUS_SHARES, shares_in_words
from real_data import folder_with

CONTENT = b"24,2,3,3,1,1,2,3,0,1\n"
GOOD = Source("uci/small.data", "small/small.data", hashlib.sha256(CONTENT).hexdigest())


class _Quiet(SimpleHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def log_message(self, *_: Any) -> None:
        self.asked.append(self.path)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[str]:
    """The address of an archive with one file."""
    root = tmp_path / "archive"
    (root / "small").mkdir(parents=True)
    (root / "small" / "small.data").write_bytes(CONTENT)
    _Quiet.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_file_is_fetched_once(archive: str, tmp_path: Path) -> None:
    told: list[str] = []
    found = fetch(tmp_path / "data", [GOOD], archive=f"{archive}/", stage=told.append)
    assert found == [tmp_path / "data" / "uci" / "small.data"]
    assert found[0].read_bytes() == CONTENT
    assert told == [f"Fetching {archive}/small/small.data"]
    assert fetch(tmp_path / "data", [GOOD], archive=archive) == []
    assert _Quiet.asked == ["/small/small.data"]
    assert [path.name for path in (tmp_path / "data" / "uci").iterdir()] == ["small.data"]


def test_a_file_that_is_not_the_known_one_is_not_kept(archive: str, tmp_path: Path) -> None:
    other = Source(GOOD.path, GOOD.address, "0" * 64)
    with pytest.raises(DataError, match="not the known file") as caught:
        fetch(tmp_path / "data", [other], archive=archive)
    assert GOOD.sha256[:12] in str(caught.value)
    assert "24,2" not in str(caught.value)
    assert not is_there(tmp_path / "data", [other])
    assert not (tmp_path / "data").exists()


def test_files_before_a_wrong_one_stay(archive: str, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        fetch(tmp_path, [GOOD, Source("uci/b.data", "small/small.data", "0" * 64)], archive=archive)
    assert is_there(tmp_path, [GOOD])


def test_what_the_archive_does_not_have_is_told(archive: str, tmp_path: Path) -> None:
    absent = Source("uci/other.data", "other/other.data", "0" * 64)
    with pytest.raises(DataError, match=r"other/other.data could not be fetched \(.*--archive"):
        fetch(tmp_path, [absent], archive=archive)


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Quiet) as server:
        port = server.server_address[1]
    with pytest.raises(DataError, match="could not be fetched"):
        fetch(tmp_path, [GOOD], archive=f"http://127.0.0.1:{port}")


def test_too_much_is_not_read(archive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "LARGEST", len(CONTENT) - 1)
    with pytest.raises(DataError, match="more than 20 bytes"):
        fetch(tmp_path, [GOOD], archive=archive)


def test_only_web_addresses_are_fetched(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="must begin with https:// or http://"):
        fetch(tmp_path, [GOOD], archive=f"file://{tmp_path}")


def test_what_is_not_in_the_archive_is_left_alone(archive: str, tmp_path: Path) -> None:
    assert fetch(tmp_path, ACS, archive=archive) == []
    with pytest.raises(DataError, match=r"R19 needs acs/.*put it there"):
        require(tmp_path, ACS, what="R19")
    with pytest.raises(DataError, match=r"R21 needs uci/cmc.data, .*--fetch"):
        require(tmp_path, CMC, what="R21")


def test_known_files_are_those_of_the_data_folder() -> None:
    folder = folder_with(*(source.path for source in (*FETCHED, *ACS)))
    for source in (*FETCHED, *ACS):
        assert hashlib.sha256((folder / source.path).read_bytes()).hexdigest() == source.sha256


def test_census_wages_are_the_same_rows_as_classes_and_as_numbers() -> None:
    folder = folder_with(*(source.path for source in ACS))
    classes, numbers = census(folder), census_numbers(folder)
    assert len(classes.frame) == 51_787
    assert classes.quasi_identifiers == numbers.quasi_identifiers
    assert classes.frame.drop("wage").equals(numbers.frame.drop("WAGP"))
    assert ((numbers.frame["WAGP"] >= 30_000) == (classes.frame["wage"] == "high")).all()


def test_adult_stands_in_for_the_census(tmp_path: Path) -> None:
    folder = folder_with(*(source.path for source in ADULT))
    for source in ADULT:
        (tmp_path / source.path).parent.mkdir(exist_ok=True)
        (tmp_path / source.path).write_bytes((folder / source.path).read_bytes())
    assert census_sources(tmp_path) == ADULT
    task, hours = census(tmp_path), census_numbers(tmp_path)
    assert task.frame.shape == (45_222, 9)
    assert task.frame["class"].value_counts(sort=True)["count"].to_list() == [34_014, 11_208]
    assert hours.frame["hours-per-week"].dtype.is_numeric()
    assert fingerprint(tmp_path, ADULT) == fingerprint(folder, ADULT)
    (tmp_path / ADULT[0].path).write_text("another")
    assert fingerprint(tmp_path, ADULT) != fingerprint(folder, ADULT)


def test_every_name_of_adult_is_a_leaf() -> None:
    frame = complete_adult(folder_with(*(source.path for source in ADULT)))
    for name, tree in ADULT_TAXONOMIES.items():
        leaves = set(Taxonomy.from_tree(tree, column=name).leaves)
        assert set(frame[name].unique()) <= leaves
    assert len(Taxonomy.from_tree(ADULT_TAXONOMIES["native-country"]).leaves) == 41


def test_contraceptives_have_three_classes() -> None:
    task = contraceptives(folder_with(CMC[0].path))
    assert task.frame["method"].value_counts().sort("method")["count"].to_list() == [629, 333, 511]
    assert [task.frame[name].n_unique() for name in task.frame.columns] == [34, 4, 4, 15, 2, 2, 4, 4, 2, 3]
    assert [name for name in task.frame.columns if task.frame[name].dtype == pl.Int32] == [
        *("wife-age", "children", "living-standard")
    ]
    for name, tree in task.taxonomies.items():
        assert isinstance(tree, dict)
        assert set(Taxonomy.from_tree(tree).leaves) == set(task.frame[name].unique())


def test_the_shares_that_the_page_names_are_those_of_the_tables() -> None:
    folder = folder_with(*(source.path for source in ACS))
    for of, told in CENSUS_SHARES.items():
        assert shares_in_words(census(folder, of.least)).capitalize() in told
