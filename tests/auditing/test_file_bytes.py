# SPDX-License-Identifier: Apache-2.0
"""The audit looks at bytes: what a data file holds beside its rows is found, in every format, and good files pass."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from parquet_parts import STRUCT, TEXT, Struct, at, has, rebuild

import anonfit as af
from anonfit.auditing.api import audit
from anonfit.auditing.arrow_messages import frame_end
from anonfit.auditing.formats import check_bytes
from anonfit.engines.memory.write import write_table
from anonfit.errors import DataError
from anonfit.tables.frames import rebuilt
from waivers import waived

PAYLOAD = "the payload of somebody"
FORMATS = ("csv", "parquet", "arrow")
VALUES: dict[str, Any] = {
    "label": pl.Series(["< 30", "≥ 30", None] * 100, dtype=pl.Enum(["< 30", "≥ 30"])),
    "text": ["a", "a text that is long enough", None] * 100,
    "kind": pl.Series(["x", "ä", None] * 100, dtype=pl.Categorical),
    "one": ["always the same"] * 300,
    "long": [f"{sign}" * 100 for sign in ("a", "ä", "日")] * 100,
    "longer": ["\U0010ffff" * 50 + "a", "x" * 64, "y" * 65] * 100,
    "whole": [1, None, -(2**62)] * 100,
    "small": pl.Series([1, 2, None] * 100, dtype=pl.Int8),
    "wide": pl.Series([2**64 - 1, 1, None] * 100, dtype=pl.UInt64),
    "truth": [True, False, None] * 100,
    "number": [1.5, -0.0, None] * 100,
    "short": pl.Series([1.5, None, 0.1] * 100, dtype=pl.Float32),
    "day": [date(2000, 1, 1), None, date(1931, 5, 6)] * 100,
    "moment": pl.Series([datetime(2020, 1, 1, tzinfo=UTC), None, datetime(1900, 1, 1, tzinfo=UTC)] * 100),
    "hour": [time(1, 2), None, time(3)] * 100,
    "nothing": [None] * 300,
}
NOT_CSV: dict[str, Any] = {
    "longest": pl.Series([2**100, None, -1] * 100, dtype=pl.Int128),
    "decimal": [Decimal("1.50"), None, Decimal("-2.25")] * 100,
    "length": [timedelta(1), None, timedelta(2)] * 100,
    "bytes": [b"a", None, b"bb"] * 100,
}


def table(form: str, rows: int = 300) -> pl.DataFrame:
    return rebuilt(pl.DataFrame(VALUES | ({} if form == "csv" else NOT_CSV))[:rows])


def written(folder: Path, form: str, frame: pl.DataFrame | None = None) -> Path:
    path = folder / f"data.{form}"
    write_table(table(form) if frame is None else frame, path, form)
    return path


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("rows", [0, 1, 3, 300])
def test_files_of_values_of_all_types_hold_nothing_else(tmp_path: Path, form: str, rows: int) -> None:
    frame = table(form, rows).with_columns(pl.col(pl.Enum).cast(pl.String))
    assert check_bytes(written(tmp_path, form, frame)).found == []


@pytest.mark.parametrize("form", FORMATS)
def test_files_of_several_row_groups_hold_nothing_else(tmp_path: Path, form: str) -> None:
    """Row groups share the dictionary of labels, and each has its own of other texts."""
    frame = pl.concat([table(form)] * 1000).sort("label", "text")
    frame = frame.with_columns(other=pl.int_range(pl.len()).cast(pl.String), kind=pl.int_range(pl.len()) // 1000)
    frame = frame.with_columns(pl.col("kind").cast(pl.String).cast(pl.Categorical))
    assert check_bytes(written(tmp_path, form, frame)).found == []


def test_long_labels_stand_in_few_row_groups(tmp_path: Path) -> None:
    """Pages of such a group share a dictionary, of whose ends polars speaks in the statistics of a page."""
    rng, rows = np.random.default_rng(0), 300_000
    labels = [f"{{{', '.join(f'v{value:06d}' for value in rng.integers(0, 5000, 600))}}}" for _ in range(300)]
    many = pl.Series(np.sort(rng.integers(0, 300, rows))).cast(pl.String)
    found = []
    for texts in (labels, [label[:9] for label in labels]):
        levels = pl.Enum(sorted(set(texts)))
        label = pl.Series(rng.choice(levels.categories.to_numpy(), rows), dtype=levels)
        path = written(tmp_path, "parquet", pl.DataFrame({"label": label, "text": many}))
        assert check_bytes(path).found == []
        found.append(pa.parquet.ParquetFile(path).metadata.num_row_groups)
    assert found[0] == 1 < found[1]


def footer_at(content: bytes) -> int:
    """Where the footer of a Parquet file begins."""
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def parquet_note(path: Path) -> None:
    table("parquet").write_parquet(path, metadata={"note": PAYLOAD})


def parquet_levels(path: Path) -> None:
    levels = pl.Enum(["< 30", "≥ 30", PAYLOAD])
    table("parquet").with_columns(pl.col("label").cast(pl.String).cast(levels)).write_parquet(path)


def parquet_gap(path: Path) -> None:
    written(path.parent, "parquet")
    content = path.read_bytes()
    place = footer_at(content)
    path.write_bytes(content[:place] + PAYLOAD.encode() + content[place:])


def parquet_statistics(path: Path) -> None:
    """The least text of a column is told in many places, the first of which is the dictionary."""
    content = written(path.parent, "parquet").read_bytes()
    place = content.index(b"always the same") + 1
    path.write_bytes(content[:place] + content[place:].replace(b"always the same", b"sometimes other"))


def parquet_maker(path: Path) -> None:
    written(path.parent, "parquet")
    content = path.read_bytes()
    assert b"Polars (python) version" in content
    path.write_bytes(content.replace(b"Polars (python) version", b"Mrs. X has a rare illne"))


def rebuilt_parquet(**changes: Callable[..., Any]) -> Callable[[Path], None]:
    """A file whose parts hold the payload, and which all readers take for the same table."""

    def make(path: Path) -> None:
        frame = pl.DataFrame(
            {"text": ["a", "b", "c"] * 100, "number": range(300), "other": [f"t{n}" for n in range(300)]}
        )
        rebuild(frame, path, **changes)
        assert pl.read_parquet(path).equals(frame)

    return make


def behind_rows(header: Struct, body: bytes) -> bytes:
    return body if has(header, 7) else body + PAYLOAD.encode()


def of_no_row(header: Struct, body: bytes) -> bytes:
    """Runs of no number, each with a value, behind those that say which rows are missing."""
    if has(header, 7):
        return body
    runs = b"".join(b"\0" + bytes([byte]) for byte in PAYLOAD.encode())
    end = 4 + int.from_bytes(body[:4], "little")
    return (end - 4 + len(runs)).to_bytes(4, "little") + body[4:end] + runs + body[end:]


def entry_of_no_row(header: Struct, body: bytes) -> bytes:
    """One more text in the dictionary of three."""
    if not has(header, 7) or not body.endswith(b"\1\0\0\0c"):
        return body
    at(at(header, 7)[2], 1)[2] += 2
    return body + len(PAYLOAD).to_bytes(4, "little") + PAYLOAD.encode()


def entry_twice(header: Struct, body: bytes) -> bytes:
    """The first text of three is in the dictionary again, and one of the rows points to that: this is a message."""
    if has(header, 7) and body.endswith(b"\1\0\0\0c"):
        at(at(header, 7)[2], 1)[2] += 2
        return body + body[:5]
    if has(header, 7) or (at(at(header, 5)[2], 2)[2], body[4 + body[0]]) != (16, 2):  # by dictionary, in two bits
        return body
    changed = bytearray(body)
    changed[4 + body[0] + 2] |= 3  # behind the head of the packed numbers, which are many
    return bytes(changed)


def in_header(header: Struct, body: bytes) -> bytes:
    header.append([60, TEXT, PAYLOAD.encode()])
    return body


def in_inner_header(header: Struct, body: bytes) -> bytes:
    next(field for field in header if field[1] == STRUCT)[2].append([60, TEXT, PAYLOAD.encode()])
    return body


def twice(footer: Struct) -> None:
    footer.insert(footer.index(at(footer, 6)), [6, TEXT, PAYLOAD.encode()])


def name_twice(footer: Struct) -> None:
    for column in at(footer, 2)[2][1]:
        column.insert(column.index(at(column, 4)), [4, TEXT, PAYLOAD.encode()])


def numbers_of_no_use(footer: Struct) -> None:
    for group in at(footer, 4)[2][1]:
        group.append([60, 9, [5, [2 * byte for byte in PAYLOAD.encode()]]])


def too_deep(path: Path) -> None:
    path.write_bytes(b"PAR1" + b"\x1c" * 100_000 + (100_000).to_bytes(4, "little") + b"PAR1")


def too_long(path: Path) -> None:
    path.write_bytes(b"PAR1\x15" + b"\x80" * 3_000_000 + (3_000_001).to_bytes(4, "little") + b"PAR1")


def arrow_table(path: Path) -> pa.Table:
    frame = table("arrow").drop("longest")  # pyarrow has no such numbers
    return pa.ipc.open_file(written(path.parent, "arrow", frame)).read_all()


def write_arrow(found: pa.Table, path: Path) -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(path, found.schema, options=options) as file:
        file.write_table(found)


def arrow_same(path: Path) -> None:
    write_arrow(arrow_table(path), path)


def arrow_note(path: Path) -> None:
    write_arrow(arrow_table(path).replace_schema_metadata({"note": PAYLOAD}), path)


def arrow_field_note(path: Path) -> None:
    found = arrow_table(path)
    field = found.schema.field("whole").with_metadata({"note": PAYLOAD})
    write_arrow(found.cast(found.schema.set(found.schema.get_field_index("whole"), field)), path)


def replaced(path: Path, name: str, column: Any) -> None:
    found = arrow_table(path)
    place = found.schema.get_field_index(name)
    field = found.schema.field(name)
    kept = pa.field(name, column.type, metadata=field.metadata if pa.types.is_dictionary(column.type) else None)
    write_arrow(found.set_column(place, kept, column), path)


def arrow_entries(path: Path) -> None:
    places = pa.array([0, 1, None] * 100, pa.uint32())
    replaced(path, "kind", pa.DictionaryArray.from_arrays(places, pa.array(["x", "ä", PAYLOAD], pa.large_string())))


def arrow_beneath(path: Path) -> None:
    known = pa.array([True, False, True] * 100).buffers()[1]
    values = pa.py_buffer(np.array([1, 424242424242, 3] * 100, np.int64))
    replaced(path, "whole", pa.Array.from_buffers(pa.int64(), 300, [known, values]))


def arrow_truths_beneath(path: Path) -> None:
    known, values = (pa.array(bits * 100).buffers()[1] for bits in ([True, False, True], [True, True, False]))
    replaced(path, "truth", pa.Array.from_buffers(pa.bool_(), 300, [known, values]))


def arrow_texts_beneath(path: Path) -> None:
    known = pa.array([True, False, True] * 100).buffers()[1]
    texts = pa.array(["a", PAYLOAD, "c"] * 100, pa.large_string()).buffers()
    replaced(path, "text", pa.Array.from_buffers(pa.large_string(), 300, [known, texts[1], texts[2]]))


def arrow_texts_behind(path: Path) -> None:
    """The buffer of texts goes on behind the last one."""
    offsets, texts = pa.array(["a", "b", "c"] * 100, pa.large_string()).buffers()[1:]
    longer = pa.py_buffer(texts.to_pybytes() + PAYLOAD.encode())
    content = written(path.parent, "arrow", pl.DataFrame({"text": ["a", "b", "c"] * 100}))
    array = pa.Array.from_buffers(pa.large_string(), 300, [None, offsets, longer])
    kept = io.BytesIO()
    with pa.ipc.new_file(kept, pa.schema([("text", pa.large_string())])) as file:
        file.write_batch(pa.RecordBatch.from_arrays([array], names=["text"]))
    content.write_bytes(kept.getvalue())


def arrow_views(path: Path) -> None:
    """Texts as views, which may point to any part of a buffer."""
    table("arrow").write_ipc(path, compression="zstd")


def arrow_gap(path: Path) -> None:
    content = written(path.parent, "arrow").read_bytes()
    place = len(content) - 10 - int.from_bytes(content[-10:-6], "little")
    path.write_bytes(content[:place] + PAYLOAD.encode() + content[place:])


def arrow_levels(path: Path) -> None:
    levels = pl.Enum(["< 30", "≥ 30", PAYLOAD])
    written(path.parent, "arrow", table("arrow").with_columns(pl.col("label").cast(pl.String).cast(levels)))


def in_csv(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        lines = written(path.parent, "csv").read_text().splitlines(keepends=True)
        path.write_text("".join(change(lines)))

    return write


FAULTS: dict[str, dict[str, tuple[Callable[[Path], None], str]]] = {
    "parquet": {
        "a note": (parquet_note, "metadata"),
        "levels that no row has": (parquet_levels, "dictionary entries that no row has"),
        "bytes before the footer": (parquet_gap, "bytes that nothing refers to"),
        "statistics": (parquet_statistics, "statistics of other rows"),
        "another maker": (parquet_maker, "metadata"),
        "bytes behind the rows of a page": (rebuilt_parquet(page=behind_rows), "bytes that nothing refers to"),
        "an entry of no row": (rebuilt_parquet(page=entry_of_no_row), "dictionary entries that no row has"),
        "an entry twice": (rebuilt_parquet(page=entry_twice), "dictionary entries that no row has"),
        "runs of no row": (rebuilt_parquet(page=of_no_row), "bytes that nothing refers to"),
        "a field of a page": (rebuilt_parquet(page=in_header), "metadata"),
        "an inner field of a page": (rebuilt_parquet(page=in_inner_header), "metadata"),
        "a maker twice": (rebuilt_parquet(footer=twice), "a structure that this audit does not know"),
        "names twice": (rebuilt_parquet(footer=name_twice), "a structure that this audit does not know"),
        "numbers of no use": (rebuilt_parquet(footer=numbers_of_no_use), "metadata"),
        "structs without end": (too_deep, "a structure that this audit does not know"),
        "a number without end": (too_long, "a structure that this audit does not know"),
    },
    "arrow": {
        "a note": (arrow_note, "metadata"),
        "a note of a column": (arrow_field_note, "metadata"),
        "entries that no row has": (arrow_entries, "dictionary entries that no row has"),
        "levels that no row has": (arrow_levels, "dictionary entries that no row has"),
        "numbers beneath missing ones": (arrow_beneath, "values beneath missing ones"),
        "truths beneath missing ones": (arrow_truths_beneath, "values beneath missing ones"),
        "texts beneath missing ones": (arrow_texts_beneath, "texts that no row has"),
        "texts behind the last": (arrow_texts_behind, "texts that no row has"),
        "views": (arrow_views, "buffers of another length than their rows need"),
        "bytes before the footer": (arrow_gap, "bytes that nothing refers to"),
    },
    "csv": {
        "a field too many": (
            in_csv(lambda lines: [*lines[:9], lines[9].replace("\n", f",{PAYLOAD}\n"), *lines[10:]]),
            "a structure that this audit does not know",
        ),
        "an empty line": (in_csv(lambda lines: [*lines[:9], "\n", *lines[9:]]), "lines that are no rows of the table"),
        "blanks at the end": (in_csv(lambda lines: [*lines, " \t\n"]), "lines that are no rows of the table"),
        "another end of lines": (
            in_csv(lambda lines: [*lines[:-1], lines[-1].replace("\n", "\r\n")]),
            "lines that are no rows of the table",
        ),
    },
}


@pytest.mark.parametrize(("form", "kind"), [(form, kind) for form, kinds in FAULTS.items() for kind in kinds])
def test_what_is_beside_the_rows_is_found(tmp_path: Path, form: str, kind: str) -> None:
    make, fault = FAULTS[form][kind]
    path = tmp_path / f"data.{form}"
    make(path)
    found = check_bytes(path)
    assert found.met is False
    assert fault in found.found
    assert PAYLOAD not in found.sentence


def test_a_value_that_is_told_in_several_places_is_the_same_everywhere(tmp_path: Path) -> None:
    """Least and greatest values stand before a page, behind all pages, in an index and in the footer."""
    path = written(tmp_path, "parquet")
    content, told = path.read_bytes(), b"always the same"
    place, changed = content.find(told), 0
    while place >= 0:
        path.write_bytes(content[:place] + b"sometimes other" + content[place + len(told) :])
        assert check_bytes(path).met is False
        place, changed = content.find(told, place + 1), changed + 1
    assert changed >= 8


def test_files_of_another_writer_of_arrow_are_understood(tmp_path: Path) -> None:
    arrow_same(tmp_path / "data.arrow")
    assert check_bytes(tmp_path / "data.arrow").found == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_link_is_no_data_file(tmp_path: Path, form: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    there = written(tmp_path / "elsewhere", form)
    (tmp_path / there.name).symlink_to(there)
    assert check_bytes(tmp_path / there.name).found == ["a link to another file"]


def test_a_frame_of_zstandard_ends_where_its_last_block_does() -> None:
    for content in (b"", b"a", b"ab" * 100_000, np.random.default_rng(1).bytes(300_000)):
        frame = pa.compress(content, "zstd", asbytes=True)
        assert frame_end(frame) == len(frame)
        skipped = b"\x50\x2a\x4d\x18" + len(PAYLOAD).to_bytes(4, "little") + PAYLOAD.encode()
        assert frame_end(frame + skipped) == len(frame)
        assert frame_end(skipped + frame) == -1


@pytest.mark.parametrize("form", FORMATS)
def test_files_that_are_cut_short_are_refused(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, form)
    content = path.read_bytes()
    for length in (0, 1, 7, 20, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        assert check_bytes(path).met is False


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame({"age": rng.integers(0, 90, 300), "ill": rng.choice(["flu", "cold", "none at all"], 300)})


@pytest.mark.parametrize("form", FORMATS)
def test_the_bytes_of_releases_are_audited(tmp_path: Path, people: pl.DataFrame, form: str) -> None:
    release = af.anonymize(people, quasi_identifiers=["age"], sensitive=waived("ill"), k=5)
    folder = release.save(tmp_path / "release", format=form)
    found = {finding.name: finding for finding in af.audit_release(folder).findings}
    assert found["file content"].met is True


@pytest.mark.parametrize("at_once", [None, 50])
def test_a_field_too_many_is_refused_whole_and_in_batches(tmp_path: Path, at_once: int | None) -> None:
    path = tmp_path / "data.csv"
    lines = ["age,ill", *["< 30,flu"] * 200, "< 30,flu,SECRETNAME", *["< 30,flu"] * 50]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="cannot be read"):
        audit(path, quasi_identifiers=["age"], sensitive=["ill"], k=5, rows_at_once=at_once)
