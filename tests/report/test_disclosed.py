# SPDX-License-Identifier: Apache-2.0
"""What the public folder may say: no raw value of an identifier or a withheld record, and no figure about few persons or
all but few.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from reported import KINDS, WORDS, K, people, released

import anonfit as af
from anonfit.privacy.disclosure import EVERYTHING, Disclosure
from anonfit.release.evidence import measure_all

# --- the rule ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("persons", range(31))
def test_the_rule(persons: int) -> None:
    is_told = persons in (0, 30) or 7 <= persons <= 23
    rule, several = Disclosure(7), Disclosure(7, rows_are_persons=False)
    assert rule.may_disclose(persons, 30) == several.may_disclose(persons, 30) == is_told
    assert rule.may_disclose_rows(persons, 30) == is_told
    assert several.may_disclose_rows(persons, 30) == (persons in (0, 30))
    assert isinstance(rule.share(persons, 30)["persons"], int) == is_told
    assert isinstance(rule.share(persons, 30)["share"], float) == is_told
    assert EVERYTHING.share(persons, 30) == {"persons": persons, "share": persons / 30}
    assert isinstance(rule.number(persons), int) == (persons == 0 or persons >= 7)
    assert rule.rows(50, persons) == ("fewer than 7" if rule.below_threshold(persons) else 50)
    assert several.number(persons) == (rule.number(persons) if persons < 7 else persons // 7 * 7)
    assert rule.rounded(persons) == persons


def few(persons: int, k: int) -> bool:
    return Disclosure(k).below_threshold(persons)


def may_tell(persons: int, of: int, k: int) -> bool:
    return Disclosure(k).may_disclose(persons, of)


# --- figures about few -------------------------------------------------------------------------------------------

COUNTS = {"persons", "smallest", "lower_quartile", "median", "upper_quartile", "largest", "frequent_persons"}


def walk(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every plain value of a report, with the way to it."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from walk(part, (*path, name))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from walk(part, (*path, str(place)))
    else:
        yield path, value


def offences(report: dict[str, Any], k: int) -> list[str]:
    """Figures of a report that are about fewer than k persons, or all but fewer than k."""
    total, found = report["rows"]["released"], []
    for path, value in walk(report):
        if path[-1] in COUNTS and isinstance(value, int):
            # An attack is on persons drawn from all.
            everybody = report["attack"]["persons"] if path[0] == "attack" else total
            rest = everybody - value if path[-1] == "persons" else 0
            if few(value, k) or few(rest, k):
                found.append(".".join(path))
    for *_, persons in (report["partition"] or {}).get("rectangles", ()):
        if persons is not None and few(persons, k):
            found.append("partition")
    for name, share, rows in right_shares(report):
        if share is not None and not may_tell(round(share * rows), rows, k):
            found.append(name)
    for line in (report["comparison"] or {}).get("targets", ()):
        if line["measure"] == "accuracy" and line["gain"] is not None:
            rows = report["comparison"]["held_out_rows"]
            # The paired error tells how many rows are right in one way only.
            different = round(rows * ((line["noise"] / 2) ** 2 * (rows - 1) + line["gain"] ** 2))
            if few(different, k - 1) or few(line["different"], k):  # the error is rounded: one more or less
                found.append(f"gain of {line['column']}")
        elif line["measure"] == "accuracy" and line["blind"] is not None and line["purpose"] is not None:
            found.append(f"difference of {line['column']}")
    return found


def right_shares(report: dict[str, Any]) -> Iterator[tuple[str, float | None, int]]:
    """Every share of right predictions, and of how many rows it is."""
    rows = report["rows"]["released"]
    for line in report["predictions"]:
        if line["measure"] == "accuracy":
            yield from ((f"predictions of {line['column']}", line[name], rows) for name in ("table", "regions"))
    held_out = (report["comparison"] or {}).get("held_out_rows", 0)
    for line in (report["comparison"] or {}).get("targets", ()):
        if line["measure"] == "accuracy":
            names = ("whole", "blind", "purpose")
            yield from ((f"comparison of {line['column']}", line[name], held_out) for name in names)
    for point in (report["curve"] or {}).get("points", ()):
        for line in point["targets"]:
            if line["measure"] == "accuracy":
                yield "curve", line["value"], report["curve"]["held_out_rows"]


def table(seed: int, wrong: int) -> pl.DataFrame:
    """A table in which the outcome follows the age but for so many persons, and few share raw quasi-identifiers."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(150, 400))
    age = rng.choice([30, 70], rows)
    outcome = age > 50
    outcome[:wrong] = ~outcome[:wrong]
    frame = people(rows, seed).with_columns(
        age=pl.Series(age), outcome=pl.Series(np.where(outcome, "ill", "well")), grade=pl.lit("low")
    )
    # Nearly everybody has a twin, or nearly nobody.
    if seed % 2:
        few_places = pl.Series(["north", "south"] * rows)[:rows]
        frame = frame.with_columns(height=pl.lit(170.0), seen=pl.lit("2020-01-01").str.to_date(), place=few_places)
        frame = frame.with_columns(
            height=pl.when(pl.int_range(rows) < wrong).then(180.0 + pl.int_range(rows)).otherwise("height")
        )
    return frame


@pytest.mark.sampled(11)
@pytest.mark.parametrize("wrong", [0, 1, 3, K - 1, K, 3 * K])
@pytest.mark.parametrize("kind", ["classes", "generalized", "everything", "selections"])
def test_no_public_figure_is_about_few(tmp_path: Path, kind: str, wrong: int) -> None:
    for seed in (wrong, wrong + 1):
        words = {} if kind != "everything" else {"max_confidence": 1.0}
        release = released(kind, table(seed, wrong), **words)
        release.save(tmp_path / str(seed))
        report = json.loads((tmp_path / str(seed) / "report.json").read_text())
        assert offences(report, K) == []
        assert offences(dict(release.report), K) == []


def test_figures_about_few_would_be_found() -> None:
    """The same figures as the owner of the data has them break the rule: the search above is not blind."""
    found: set[str] = set()
    for frame in (table(1, 3), table(2, 3), table(4, 1), people()):
        release = released("classes", frame)
        thorough = measure_all(release._draft, ks=(7, 20)).content(EVERYTHING)
        found |= set(offences({**release.report, **thorough}, K))
    assert {"predictions of outcome", "comparison of outcome", "curve", "initial_risk.alone.persons"} <= found
    assert "gain of outcome" in found


def test_a_curve_below_k_tells_no_smaller_groups(tmp_path: Path) -> None:
    af.run(released("classes")._draft.spec, tmp_path / "out", curve=[2, 3, 50])
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert offences(report, K) == []
    assert set(report["curve"]["points"][0]) == {"k", "highest_risk", "average_risk", "kept", "targets", "precision"}


# --- values ------------------------------------------------------------------------------------------------------

MARKS = ("ZQXNAME", "ZQXPLACE", "ZQXILLNESS", "ZQXOUTCOME", "876543.25", "1899-12-31", "54321.5", "3987")


def texts(folder: Path) -> str:
    """Everything in a folder as text."""
    found = [path.read_text(encoding="utf-8", errors="replace") for path in folder.iterdir()]
    return "\n".join([*found, *(pl.read_parquet(path).write_csv() for path in folder.glob("*.parquet"))])


def odd(frame: pl.DataFrame) -> pl.DataFrame:
    """One record that nobody is like, whose region is withheld."""
    from datetime import date

    values = {
        "name": "ZQXNAME",
        "age": 3987,
        "height": 54321.5,
        "seen": date(1899, 12, 31),
        "sex": "f",
        "place": "ZQXPLACE",
        "grade": "high",
        "illness": "ZQXILLNESS",
        "outcome": "ZQXOUTCOME",
        "cost": 876543.25,
    }
    return pl.DataFrame([values], schema=frame.schema)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", [*KINDS])
def test_a_withheld_record_is_nowhere_in_the_folder(tmp_path: Path, kind: str) -> None:
    first = released(kind, people(900), **({"max_confidence": 1.0} if kind == "everything" else {}))
    new = people(500, seed=11)
    extended = first.extend(pl.concat([new, odd(new)]), suppression_limit=1.0)
    extended.save(tmp_path / "out", format="parquet")
    text = texts(tmp_path / "out")
    assert isinstance(extended.report["rows"]["withheld"], int)
    for mark in MARKS:
        assert mark not in text
    assert offences(json.loads((tmp_path / "out" / "report.json").read_text()), K) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [*KINDS])
def test_an_identifier_is_nowhere_in_the_folder(tmp_path: Path, kind: str) -> None:
    frame = people()
    released(kind, frame.with_columns(name=pl.format("ZQX{}", pl.int_range(pl.len())))).save(tmp_path / "out")
    assert "ZQX" not in texts(tmp_path / "out")


def test_few_withheld_records_cannot_be_counted(tmp_path: Path) -> None:
    """Neither their number nor that of all records is told, nor a share that it follows from."""
    frame = people(2000)
    hidden = ["name", "height", "seen", "sex", "place", "grade"]
    words = {**WORDS, "quasi_identifiers": ["age"], "identifiers": hidden, "orders": {}, "types": {}}
    first = af.anonymize(frame, **words, targets=["outcome"], insensitive=["cost"])
    few_rows = frame.filter(pl.col("age") < 60).head(1207)
    extended = first.extend(pl.concat([few_rows, frame.filter(pl.col("age") > 88).head(3)]), suppression_limit=1.0)
    assert extended.report["rows"]["withheld"] == f"fewer than {K}"
    extended.save(tmp_path / "out")
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir() if path.suffix != ".parquet"
    )
    total = len(few_rows) + 3
    assert not re.search(rf"(?<![\d.]){total}(?!\d)|{total:,}", text)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    below = report["initial_risk"]["below_k"]
    if isinstance(below["persons"], int) and below["persons"]:
        assert round(below["persons"] / below["share"]) == report["rows"]["released"]
    internal = json.loads((tmp_path / "out.internal.json").read_text())
    assert internal["rows"]["withheld"] == 3
