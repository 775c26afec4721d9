# SPDX-License-Identifier: Apache-2.0
"""Files and frames of every kind are read alike, and texts stay texts."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import anonfit as af
from anonfit.auditing import formats
from anonfit.auditing.api import audit
from anonfit.auditing.reading import AuditedTable, is_text_file, open_table
from anonfit.errors import DataError
from anonfit.tables import sources as tables

FRAME = pl.DataFrame(
    {"zip": ["01", "1", "01", "1", "007"], "name": ["a, b", 'c"d', "e;f", None, "g\nh"], "n": [1, 2, 3, 4, 5]}
)


def written(folder: Path, kind: str) -> Path:
    path = folder / f"data.{kind}"
    if kind == "parquet":
        FRAME.write_parquet(path)
    elif kind in ("arrow", "feather"):
        FRAME.write_ipc(path)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(FRAME.write_csv().encode()))
    elif kind == "csv.zst":
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(FRAME.write_csv().encode())
    else:
        FRAME.write_csv(path, separator="\t" if kind == "tsv" else ",")
    return path


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "csv.zst", "tsv", "parquet", "arrow", "feather"])
def test_files_of_every_kind(tmp_path: Path, kind: str) -> None:
    found = audit(str(written(tmp_path, kind)), quasi_identifiers=["zip"], sensitive=["name"], k=1)
    assert (found.rows, found.k, found.sizes.groups, found.sizes.largest) == (5, 1, 3, 2)
    assert [column.name for column in found.raw_columns] == ["name", "n"]


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path: Path, sign: str) -> None:
    FRAME.write_csv(tmp_path / "data.csv", separator=sign)
    assert open_table(tmp_path / "data.csv").names == ("zip", "name", "n")


def test_a_file_of_one_column_with_commas_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text('zip\n"a;b"\n"a;b"\n', encoding="utf-8")
    assert audit(tmp_path / "one.csv", quasi_identifiers=["zip"], k=2).passed


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "bom.csv").write_text("age;x\n1;2\n", encoding="utf-8-sig")
    assert open_table(tmp_path / "bom.csv").names == ("age", "x")


def test_quoted_and_unquoted_empty_cells_are_missing(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text('q,r\n"",1\n,1\nNA,1\n', encoding="utf-8")
    assert audit(tmp_path / "empty.csv", quasi_identifiers=["q"]).sizes.groups == 2
    assert audit(tmp_path / "empty.csv", quasi_identifiers=["q"], missing=["", "NA"]).sizes.groups == 1


@pytest.mark.parametrize(
    "frame", [FRAME, FRAME.lazy(), FRAME.to_arrow(), FRAME.to_pandas()], ids=["polars", "lazy", "arrow", "pandas"]
)
def test_frames_of_every_kind(frame: Any) -> None:
    found = audit(frame, quasi_identifiers=["zip"], sensitive=["name"])
    assert found.to_dict() == audit(FRAME, quasi_identifiers=["zip"], sensitive=["name"]).to_dict()


def test_files_of_a_pattern(tmp_path: Path) -> None:
    for number in range(3):
        FRAME.write_csv(tmp_path / f"part-{number}.csv")
    assert audit(tmp_path / "part-*.csv", quasi_identifiers=["zip"]).rows == 15


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("ragged.csv", b"a,b\n1,2,3\n"),
        ("latin.csv", b"a,b\n\xff\xfe,secret\n"),
        ("wrong.parquet", b"secret"),
        ("wrong.arrow", b"secret"),
        ("wrong.xlsx", b"secret"),
    ],
)
def test_files_that_cannot_be_read_are_refused_without_their_values(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        audit(tmp_path / name, quasi_identifiers=["a"])
    assert name in str(caught.value)
    assert "secret" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("data", ["nothing.csv", ".", 5, None, [1, 2]])
def test_what_is_no_table_is_refused(data: Any) -> None:
    with pytest.raises(DataError):
        audit(data, quasi_identifiers=["a"])


def test_large_tables_are_read_some_columns_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = pl.DataFrame({f"c{i}": [i, 1, 2, 2] for i in range(9)})
    wanted = audit(numbers, quasi_identifiers=["c0", "c5"], k=2, order="sorted").to_dict()
    numbers.write_parquet(tmp_path / "wide.parquet")
    numbers.write_csv(tmp_path / "wide.csv")
    monkeypatch.setattr("anonfit.auditing.reading._CELLS", {"text": 1, "typed": 10})
    frames: list[int] = []
    plain = AuditedTable.frame

    def counted(self: AuditedTable, names: Any) -> pl.DataFrame:
        frames.append(len(names))
        return plain(self, names)

    monkeypatch.setattr(AuditedTable, "frame", counted)
    for kind in ("parquet", "csv"):
        found = audit(
            tmp_path / f"wide.{kind}",
            quasi_identifiers=["c0", "c5"],
            k=2,
            order="sorted",
            source=tmp_path / f"wide.{kind}",
        )
        assert found.source is not None
        assert found.source.unmatched.persons == 0
        kept = {"source", "findings", "notes", "passed", "verdict"}
        assert {key: value for key, value in found.to_dict().items() if key not in kept} == {
            key: value for key, value in wanted.items() if key not in kept
        }
    assert max(frames) == 2


def test_the_audit_reads_the_files_that_the_package_reads_as_what_they_are() -> None:
    """Written twice on purpose: the audit shares no code with the package, but must know the same formats."""
    assert set(formats.FORMATS) == set(tables.FORMATS)
    for name, read in tables.FORMATS.items():
        audited = formats.FORMATS[name]
        assert set(audited.suffixes) == set(read.suffixes)
        assert formats.PACKED == tables.PACKED
        assert (audited.scan is None) == read.is_text
        for ending in read.endings:
            path = Path(f"Some.people.csv.parquet.x{ending}")
            assert formats.format_of(path) is audited
            assert tables.format_of(path) is read
            assert is_text_file(path) == read.is_text


def test_packed_files_of_typed_formats_are_known_to_neither() -> None:
    assert formats.format_of(Path("people.parquet.gz")) is None
    with pytest.raises(DataError, match="unknown kind of file"):
        tables.format_of(Path("people.parquet.gz"))


@pytest.mark.parametrize("kind", ["data", "tsv.gz", "pq"])
def test_rows_of_every_ending_can_be_released_and_audited(tmp_path: Path, kind: str) -> None:
    frame = pl.DataFrame({"age": [20, 21, 22, 50, 51, 52], "ill": ["y", "n", "y", "y", "n", "n"]})
    path = tmp_path / f"people.{kind}"
    if kind == "pq":
        frame.write_parquet(path)
    else:
        text = frame.write_csv(separator="\t" if "tsv" in kind else ",").encode()
        path.write_bytes(gzip.compress(text) if kind.endswith(".gz") else text)
    folder = af.anonymize(path, quasi_identifiers=["age"], insensitive=["ill"], k=3).save(tmp_path / "release")
    assert af.audit_release(folder, source=path).passed
