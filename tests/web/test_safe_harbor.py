# SPDX-License-Identifier: Apache-2.0
"""The preset HIPAA Safe Harbor: what leads to a person goes, years stay of dates, ages above 89 stand together, and what
only a person can decide is asked.
"""

from __future__ import annotations

import random
import tomllib
from datetime import date, timedelta

import polars as pl
import pytest
from web_doors import Door

from anonfit.tables.taxonomy_files import read_taxonomy
from anonfit.tables.taxonomy_leaves import leaf_positions
from anonfit.web.safe_harbor import Rule, hierarchy_of, rules

TODAY = date(2026, 6, 1)


def named(rule: Rule, values: list) -> list[str]:
    """The finest names that the hierarchy of a rule gives to values."""
    taxonomy = hierarchy_of(rule, TODAY)
    assert taxonomy is not None
    return [taxonomy.leaves[place] for place in leaf_positions(taxonomy, pl.Series(values)).tolist()]


def test_ages_above_89_have_one_name_and_the_others_their_own() -> None:
    told = named(Rule("age", "ages"), [0.0, 88.5, 89.0, 90.0, 112.0])
    assert told == ["< 1", "[88, 89)", "[89, 90)", "≥ 90", "≥ 90"]


def test_of_dates_the_year_is_the_finest_and_of_births_of_the_old_not_even_that() -> None:
    days = [date(1936, 12, 31), date(1937, 1, 1), date(2020, 2, 29), date(2020, 12, 31)]
    assert named(Rule("day", "years", is_date=True), days) == ["1936", "1937", "2020", "2020"]
    assert named(Rule("dob", "births", is_date=True), days) == ["< 1937-01-01", "1937", "2020", "2020"]
    assert named(Rule("yob", "births"), [1920, 1936, 1937]) == ["< 1937", "< 1937", "[1937, 1938)"]


@pytest.mark.parametrize(
    ("name", "role", "kind", "act"),
    [
        ("email", "insensitive", "nominal", "leave_out"),
        ("zip", "quasi-identifier", "nominal", "place"),
        ("city_of_birth", "insensitive", "nominal", "place"),
        ("admitted", "quasi-identifier", "date", "years"),
        ("dob", "quasi-identifier", "date", "births"),
        ("discharged", "insensitive", "date", "raw_date"),
        ("age", "quasi-identifier", "continuous", "ages"),
        ("age", "target", "continuous", "raw_age"),
        ("ssn", "identifier", "nominal", None),
        ("state", "quasi-identifier", "nominal", None),
        ("diagnosis", "sensitive", "nominal", None),
    ],
)
def test_what_is_asked_of_a_column(name: str, role: str, kind: str, act: str | None) -> None:
    asked = [rule.act for rule in rules({name: {"role": role}}, {name: {"type": kind, "shape": None}})]
    assert asked == ([act] if act else [])


def test_what_the_values_show_counts_where_the_name_says_nothing() -> None:
    seen = {"x": {"type": "nominal", "shape": "telephone numbers"}}
    assert [rule.act for rule in rules({"x": {"role": "insensitive"}}, seen)] == ["leave_out"]


def patients(rows: int = 600) -> str:
    draw = random.Random(3)
    lines = [
        f"{draw.randint(20, 99)},{date(2019, 1, 1) + timedelta(days=draw.randrange(1400))},{draw.choice('fm')},"
        f"{draw.randint(10000, 10009)},{date(2024, 1, 1) + timedelta(days=draw.randrange(300))}"
        for _ in range(rows)
    ]
    return "age,admitted,sex,zip,reported\n" + "\n".join(lines) + "\n"


def test_the_preset_is_one_edit_whose_release_keeps_to_it(door: Door) -> None:
    (door.folder / "patients.csv").write_text(patients())
    door.post("/table/choose", source="patients.csv")
    door.post("/columns/many", column=["age", "admitted", "sex", "zip", "reported"], settle="yes")
    door.post("/columns/role", column="reported", role="insensitive")
    before = door.spec
    told = door.post("/demands/preset", preset="hipaa-safe-harbor").text
    assert "ages above 89 stand together: age." in told
    assert "the year is released at most: admitted." in told
    assert "45 CFR 164.514(b)(2)" in told
    columns = tomllib.loads(door.spec)["columns"]
    assert "20,000 people" in columns["zip"]["decide"]
    assert "the year" in columns["reported"]["decide"]
    assert "decisions are open" in door.post("/explore/run").text
    door.post("/columns/role", column="zip", role="identifier")
    door.post("/columns/role", column="reported", role="identifier")
    for place in ("privacy", "workload"):
        door.post("/decide", place=place, decided="yes")
    door.post("/explore/run")
    job = door.jobs.wait(door.jobs.all("run")[0].id, 120)
    assert job.state == "done", job.error
    released = pl.read_csv(door.jobs.folder(job.id) / "release" / "data.csv", infer_schema=False)
    assert released.columns == ["age", "admitted", "sex"]
    for name in ("age", "admitted"):
        taxonomy = read_taxonomy(door.folder / columns[name]["taxonomy"])
        assert set(released[name].unique()) <= set(taxonomy.names)
    for _ in range(5):  # two roles, two decisions, and the preset as a whole
        door.post("/spec/undo")
    assert door.spec == before
