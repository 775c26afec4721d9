# SPDX-License-Identifier: Apache-2.0
"""What a release may say: planted unique values occur nowhere in the public folder, nor in any message."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.errors import AnonfitError, SpecError
from anonfit.report.content import CONSENTED
from waivers import WAIVED, waived

ROWS = 400
MARKS = ("ZQXNAME", "ZQXPLACE", "987654.321", "1901-02-03", "777123")


def planted() -> pl.DataFrame:
    """A table in which one record has values that nobody else has, in every column that is not released raw."""
    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "name": [f"person {index}" for index in range(ROWS)],
            "place": [["north", "south", "east", "west"][index % 4] for index in range(ROWS)],
            "income": (rng.integers(0, 5000, ROWS) / 10).tolist(),
            "born": [date(1950 + index % 50, 1 + index % 12, 1 + index % 28) for index in range(ROWS)],
            "size": rng.integers(150, 200, ROWS),
            "illness": [["flu", "cold", "none"][index % 3] for index in range(ROWS)],
        }
    )
    odd = pl.DataFrame(
        {
            "name": ["ZQXNAME"],
            "place": ["ZQXPLACE"],
            "income": [987654.321],
            "born": [date(1901, 2, 3)],
            "size": [777123],
            "illness": ["flu"],
        },
        schema=frame.schema,
    )
    return pl.concat([frame, odd])


PURPOSES: dict[str, dict[str, Any]] = {
    "classes": {"targets": ["outcome"]},
    "numbers": {"targets": ["score"]},
    "both": {"targets": ["outcome", "score"]},
    "capped": {"targets": ["outcome", {"column": "score", "classes": [33]}], "max_confidence": 0.99},
    "a quasi-identifier": {"targets": ["outcome", "income", {"column": "size", "equal_width": 3}]},
    "selections": {
        "selections": [
            "place = 'ZQXPLACE'",
            "income >= 987654.321 or size = 777123",
            "born < date '1901-02-03' or outcome = 'ZQXOUTCOME'",
            {"each": "place"},
            {"each": "born"},
            {"each": "outcome"},
        ],
    },
    "selections and classes": {"selections": ["size between 160 and 777123"], "targets": ["outcome"]},
    "weights": {"weights": {"income": 3.0, "place": 0.5}, "weight_rule": "product"},
    "denoised": {"targets": ["outcome"], "denoise": True},
}
DEMANDS: dict[str, dict[str, Any]] = {
    "distinct-l": {"illness": {"model": "distinct-l", "l": 2}},
    "t-closeness": {"illness": {"model": "t-closeness", "t": 0.5}, "wage": {"model": "t-closeness", "t": 0.6}},
    "variance": {"wage": {"model": "variance", "variance": 1.0}},
    "beta-likeness": {"illness": [{"model": "beta-likeness", "beta": 5.0}, {"model": "alpha-k", "alpha": 0.9}]},
}
RAW_MARKS = ("ZQXILLNESS", "ZQXOUTCOME", "864213.5", "975318.25")


def planted_raw() -> pl.DataFrame:
    """The planted table with columns that are released as they are, in which one record is odd as well."""
    frame = planted()
    odd = pl.int_range(pl.len()) == ROWS
    born = pl.col("born").dt.year()
    return frame.with_columns(
        illness=pl.when(odd).then(pl.lit("ZQXILLNESS")).otherwise("illness"),
        outcome=pl.when(odd).then(pl.lit("ZQXOUTCOME")).when(born > 1975).then(pl.lit("yes")).otherwise(pl.lit("no")),
        score=pl.when(odd).then(864213.5).otherwise((pl.col("size") // 5).cast(pl.Float64)),
        wage=pl.when(odd).then(975318.25).otherwise((born // 3).cast(pl.Float64)),
    )


def other_files(folder: Path) -> str:
    """Everything in a folder but the data file."""
    return "\n".join(path.read_text(encoding="utf-8") for path in folder.iterdir() if not path.name.startswith("data."))


@pytest.mark.sampled(11)
@pytest.mark.parametrize("demand", DEMANDS)
@pytest.mark.parametrize("purpose", PURPOSES)
def test_planted_values_are_nowhere_whatever_the_purpose_and_the_demands(
    tmp_path: Path, purpose: str, demand: str
) -> None:
    words = PURPOSES[purpose]
    named = {one if isinstance(one, str) else one["column"] for one in words.get("targets", ())}
    sensitive = {**waived("illness", "wage"), **DEMANDS[demand]}
    release = af.anonymize(
        planted_raw(),
        quasi_identifiers=["place", "income", "born", "size"],
        k=7,
        sensitive=sensitive,
        identifiers=["name"],
        insensitive=sorted({"outcome", "score"} - named),
        **words,
    )
    release.save(tmp_path / "out", format="csv")
    text = folder_text(tmp_path / "out")
    for mark in MARKS:
        assert mark not in text
    others = other_files(tmp_path / "out")
    for mark in RAW_MARKS:
        assert mark not in others
        assert mark in (tmp_path / "out" / "data.csv").read_text()
    for query in (one for one in words.get("selections", ()) if isinstance(one, str)):
        assert query not in others


def test_one_odd_record_changes_no_public_figure_of_selections() -> None:
    """What is told of selections would be the same without the record that nobody is like."""
    words = {
        "quasi_identifiers": ["size"],
        "k": 7,
        "identifiers": ["name", "place", "income", "born"],
        "sensitive": waived("illness"),
        "selections": ["size >= 175", "size >= 777123", "size < 160", {"each": "size"}],
        "domains": {"size": [0, 1_000_000]},
    }
    told = [af.anonymize(frame, **words).report["selections"]["answers"] for frame in (planted(), planted()[:ROWS])]
    assert told[0] == told[1]
    assert [line["imprecision"] is None for line in told[0]] == [False, True, False, False]


def folder_text(folder: Path) -> str:
    """Everything in a folder as text, columns of data files included."""
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in folder.iterdir()]
    texts += [pl.read_parquet(path).write_csv() for path in folder.glob("*.parquet")]
    return "\n".join(texts)


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
@pytest.mark.parametrize("values", ["labels", "bounds", "representative"])
def test_planted_values_are_nowhere_in_the_folder(tmp_path: Path, kind: str, values: str) -> None:
    release = af.anonymize(
        planted(),
        quasi_identifiers=["place", "income", "born", "size"],
        k=7,
        sensitive=waived("illness"),
        identifiers=["name"],
        values=values,
    )
    release.save(tmp_path / "out", format=kind)
    text = folder_text(tmp_path / "out")
    for mark in MARKS:
        assert mark not in text
    assert str(tmp_path) not in text


def test_cuts_are_nobodys_value() -> None:
    frame = planted()
    release = af.anonymize(
        frame,
        quasi_identifiers=["income", "size"],
        k=7,
        identifiers=["name", "place", "born"],
        sensitive=waived("illness"),
    )
    for column in json.loads(release.recoding.to_json())["columns"]:
        assert not set(column["cuts"]) & set(frame[column["name"]].to_list())


def test_the_source_and_the_spec_are_in_the_internal_record_only(tmp_path: Path) -> None:
    source = tmp_path / "secret-name-of-the-input.csv"
    planted().write_csv(source)
    spec = af.parse_spec(
        f'version = 1\n[data]\nsource = "{source}"\n[columns.name]\nrole = "identifier"\n'
        + "".join(f'[columns.{name}]\nrole = "quasi-identifier"\n' for name in ("place", "income", "born", "size"))
        + f'[columns.illness]\nrole = "sensitive"\n{WAIVED}[privacy]\nk = 7\n'
    )
    af.run(spec, tmp_path / "out")
    assert "secret-name" not in folder_text(tmp_path / "out")
    record = json.loads((tmp_path / "out.internal.json").read_text())
    assert "secret-name" in record["source"]["path"]
    assert len(record["source"]["sha256"]) == 64
    assert record["source"]["sha256"] not in folder_text(tmp_path / "out")


def test_few_dropped_rows_are_not_counted_in_public(tmp_path: Path) -> None:
    frame = planted().with_columns(pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise("size").alias("size"))
    release = af.anonymize(
        frame,
        quasi_identifiers=["place", "size"],
        k=7,
        identifiers=["name", "income", "born"],
        sensitive=waived("illness"),
        missing_policy="drop",
    )
    assert release.report["rows"]["dropped"] == "fewer than 7"
    assert release.report["rows"]["read"] != len(frame)
    release.save(tmp_path / "out")
    assert f'"{len(frame)}"' not in folder_text(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["rows"]["dropped"] == "fewer than 7"


def test_row_order_tells_nothing() -> None:
    frame = planted()
    first = af.anonymize(
        frame, quasi_identifiers=["size", "place"], k=7, default_role="insensitive", release=["name", "income", "born"]
    )
    again = af.anonymize(
        frame.sample(fraction=1.0, shuffle=True, seed=3),
        quasi_identifiers=["size", "place"],
        k=7,
        default_role="insensitive",
        release=["name", "income", "born"],
    )
    assert first.data.equals(again.data)
    assert first.recoding.to_json() == again.recoding.to_json()


def test_what_tells_values_or_places_of_records_needs_consent() -> None:
    frame = planted().drop("name", "income", "born")
    words = {"quasi_identifiers": ["size", "place"], "k": 7, "sensitive": waived("illness")}
    for option in ({"regions": "observed"}, {"order": "original"}, {"cut_points": "value"}):
        with pytest.raises(SpecError, match="write consent = True if"):
            af.anonymize(frame, **words, **option)
        release = af.anonymize(frame, **words, **option, consent=True)
        assert release.report["not_covered"][0] in CONSENTED.values()


def test_a_nearly_distinct_raw_column_needs_to_be_written_out() -> None:
    with pytest.raises(SpecError, match=r"income.*name it in release"):
        af.anonymize(
            planted(),
            quasi_identifiers=["size"],
            k=7,
            identifiers=["name", "place", "born"],
            insensitive=["income", "illness"],
        )


@pytest.mark.parametrize("change", ["number", "date", "count", "entity"])
def test_messages_hold_no_record_value(change: str) -> None:
    frame = (
        planted()
        .with_columns(secret=pl.lit("ok"))
        .with_columns(secret=pl.when(pl.int_range(pl.len()) == 5).then(pl.lit("ZQXVALUE")).otherwise(pl.lit("5")))
    )
    words: dict[str, object] = {"quasi_identifiers": ["size", "secret"], "types": {"secret": "continuous"}}
    if change == "date":
        words["types"] = {"secret": "date"}
    if change in ("count", "entity"):
        words = {"quasi_identifiers": ["size"], change: "secret"}
        if change == "entity":
            frame = frame.with_columns(secret=pl.when(pl.col("secret") == "ZQXVALUE").then(None).otherwise("name"))
    with pytest.raises(AnonfitError) as caught:
        af.anonymize(frame, k=7, identifiers=["name", "place", "income", "born"], sensitive=waived("illness"), **words)
    assert "ZQX" not in str(caught.value)
    assert "secret" in str(caught.value)
