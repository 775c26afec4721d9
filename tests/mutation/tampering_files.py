# SPDX-License-Identifier: Apache-2.0
"""Kinds of tampering with the folder and with the bytes of its data file."""

from __future__ import annotations

import csv
import hashlib
import random
import shutil
from collections.abc import Callable
from typing import Any

import polars as pl
from planted import Planted
from tampering import After, kind, never, pick

# --- the folder ---------------------------------------------------------------------------------------------------


@kind
def file_added(p: Planted, rng: random.Random) -> After:
    return lambda: (p.path / "raw.csv").write_text("name,age\n") and None


@kind
def file_added_and_listed(p: Planted, rng: random.Random) -> After:
    def after() -> None:
        (p.path / "raw.csv").write_text("name,age\n")
        p.manifest["files"]["raw.csv"] = ""

    return after


@kind
def folder_added(p: Planted, rng: random.Random) -> After:
    return lambda: (p.path / "more").mkdir()


@kind
def file_removed(p: Planted, rng: random.Random) -> After:
    def after() -> None:
        p.hashes = False
        (p.path / rng.choice(["report.html", "report.json", "recoding.json"])).unlink()

    return after


@kind
def file_removed_from_folder_and_manifest(p: Planted, rng: random.Random) -> After:
    def after() -> None:
        (p.path / "report.html").unlink()
        del p.manifest["files"]["report.html"]

    return after


@kind
def hash_of_another_file(p: Planted, rng: random.Random) -> After:
    def after() -> None:
        p.hash()
        p.hashes = False
        p.manifest["files"][rng.choice(sorted(p.manifest["files"]))] = hashlib.sha256(b"other").hexdigest()

    return after


@kind
def data_not_listed(p: Planted, rng: random.Random) -> After:
    return lambda: p.manifest["files"].pop(p.file.name) and None


@kind
def data_changed_under_its_old_hash(p: Planted, rng: random.Random) -> After:
    def after() -> None:
        p.hashes = False
        p.copy(0)
        p.write()

    return after


@kind
def data_that_is_a_link(p: Planted, rng: random.Random) -> After:
    def after() -> None:
        away = p.path.parent / f"{p.path.name} data"
        shutil.move(p.file, away)
        p.file.symlink_to(away)

    return after


@kind
def data_outside_of_the_folder(p: Planted, rng: random.Random) -> After:
    def after() -> None:
        shutil.copy(p.file, p.path.parent / p.file.name)
        p.manifest["data"]["file"] = f"../{p.file.name}"
        p.hashes = False

    return after


@kind
def data_cut_short(p: Planted, rng: random.Random) -> After:
    return lambda: p.file.write_bytes(p.file.read_bytes()[: -rng.randint(1, 40)]) and None


# --- the bytes of the data file -----------------------------------------------------------------------------------


def lines(p: Planted, change: Callable[[list[list[str]]], list[list[str]]]) -> After:
    """Change the rows of a CSV file."""
    if p.file.suffix != ".csv" or len(p.data.columns) < 2:
        never("no fields")

    def after() -> None:
        with p.file.open(newline="", encoding="utf-8") as file:
            rows = change(list(csv.reader(file)))
        with p.file.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)

    return after


@kind
def csv_with_a_field_too_many(p: Planted, rng: random.Random) -> After:
    return lines(p, lambda rows: [rows[0], *([*row, "x"] for row in rows[1:])])


@kind
def csv_with_a_field_too_many_in_one_row(p: Planted, rng: random.Random) -> After:
    return lines(p, lambda rows: [*rows[:2], [*rows[2], "x"], *rows[3:]])


@kind
def csv_with_a_field_too_few(p: Planted, rng: random.Random) -> After:
    return lines(p, lambda rows: [*rows[:2], rows[2][:-1], *rows[3:]])


def table(p: Planted) -> Any:
    """The written file as an Arrow table."""
    import pyarrow as pa
    from pyarrow import parquet

    if p.file.suffix == ".parquet":
        return parquet.read_table(p.file)
    return pa.ipc.open_file(pa.BufferReader(p.file.read_bytes())).read_all()


def rewrite(p: Planted, found: Any) -> None:
    """Write an Arrow table in the format of the release."""
    import pyarrow as pa
    from pyarrow import parquet

    if p.file.suffix == ".parquet":
        parquet.write_table(found, p.file)
        return
    with pa.OSFile(str(p.file), "wb") as sink, pa.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)


def typed(p: Planted) -> None:
    """Only files that have types."""
    if p.file.suffix == ".csv":
        never("no types")


@kind
def metadata_of_the_table(p: Planted, rng: random.Random) -> After:
    typed(p)
    return lambda: rewrite(p, table(p).replace_schema_metadata({"rows": "secret"}))


@kind
def metadata_of_a_column(p: Planted, rng: random.Random) -> After:
    import pyarrow as pa

    typed(p)

    def after() -> None:
        found = table(p)
        entry = found.schema.field(0).with_metadata({"rows": "secret"})
        schema = pa.schema([entry, *list(found.schema)[1:]])
        rewrite(p, pa.Table.from_arrays(found.columns, schema=schema))

    return after


@kind
def dictionary_with_a_value_that_is_not_released(p: Planted, rng: random.Random) -> After:
    import pyarrow as pa

    if p.file.suffix != ".arrow":
        never("no dictionary that is kept")
    column = pick(rng, [c for c in p.data.columns if p.data.schema[c] == pl.String])

    def after() -> None:
        found = table(p)
        values = found[column].to_pylist()
        words = [*dict.fromkeys(v for v in values if v is not None), "SECRET"]
        places = pa.array([None if v is None else words.index(v) for v in values], pa.int32())
        coded = pa.DictionaryArray.from_arrays(places, pa.array(words))
        rewrite(p, found.set_column(found.column_names.index(column), column, coded))

    return after
