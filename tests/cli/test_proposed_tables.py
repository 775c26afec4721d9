# SPDX-License-Identifier: Apache-2.0
"""`init` and then `run`, on tables of many kinds: nothing is released before somebody has decided; and where the
proposals are accepted unseen, no name, address or note is in the release.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import anonfit as af
from anonfit.cli.main import app
from anonfit.errors import AnonfitError
from commands import command

ROWS = 400
FIRST = ["Anna", "Bela", "Carla", "Dieter", "Edgar", "Frieda", "Gustav", "Hanna", "Igor", "Jana", "Karl", "Lena"]
LAST = ["Schmidt", "Tanaka", "Uhlmann", "Vogt", "Weber", "Xanthos", "Yilmaz", "Zimmer", "Okafor", "Pereira"]
STREETS = ["Lindenweg", "Hauptstrasse", "Gartenallee", "Muehlgasse"]
NOTES = ["called", "wept", "fell again", "asked for money", "no visitors", "left early", "was angry"]


class Draw:
    """Columns of made-up tables, the same ones every time; `secrets` are the texts that no release may hold."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.secrets: set[str] = set()

    def _secret(self, texts: list[str]) -> list[str]:
        self.secrets |= set(texts)
        return texts

    def of(self, *values: Any) -> list[Any]:
        return [values[int(place)] for place in self.rng.integers(0, len(values), ROWS)]

    def whole(self, low: int, high: int) -> list[int]:
        return [int(number) for number in self.rng.integers(low, high, ROWS)]

    def number(self, mean: float, deviation: float) -> list[float]:
        return [round(float(one), 1) for one in self.rng.normal(mean, deviation, ROWS)]

    def day(self, first: date = date(1940, 1, 1), days: int = 25_000) -> list[str]:
        return [str(first + timedelta(days=int(one))) for one in self.rng.integers(0, days, ROWS)]

    def name(self, persons: int = ROWS) -> list[str]:
        known = [f"{FIRST[one % 12]} {LAST[one // 12 % 10]}" for one in range(min(persons, 120))]
        return self._secret(self.of(*known))

    def surname(self) -> list[str]:
        return self._secret([f"{one}{LAST[one % 10].lower()}".translate(LETTERS) for one in self.whole(0, 90)])

    def street(self) -> list[str]:
        return self._secret([f"{STREETS[one % 4]} {one}" for one in self.whole(1, 60)])

    def house(self) -> list[str]:
        return self._secret([f"{one} Main Street" for one in self.whole(1, 120)])

    def note(self) -> list[str]:
        return self._secret([f"{NOTES[one % 7]} on visit {one}" for one in self.whole(0, 300)])

    def number_of(self, prefix: str) -> list[str]:
        return self._secret([f"{prefix}{100_000 + row}" for row in range(ROWS)])


LETTERS = str.maketrans("0123456789", "abcdefghij")


def tables() -> Iterator[tuple[str, Callable[[Draw], dict[str, list[Any]]]]]:
    """Twenty kinds of tables about people."""
    yield (
        "clinic",
        lambda d: {
            "patient_id": d.number_of("P"),
            "name": d.name(),
            "age": d.whole(18, 95),
            "sex": d.of("f", "m"),
            "diagnosis": d.of("flu", "gout", "asthma", "none"),
            "outcome": d.of("well", "ill"),
        },
    )
    yield "clinic with notes", lambda d: {"age": d.whole(1, 99), "sex": d.of("f", "m"), "comment": d.note()}
    yield (
        "ward list",
        lambda d: {
            "Nachname": d.surname(),
            "Geburtsdatum": d.day(),
            "Station": d.of("A1", "B2", "C3"),
            "Hausarzt": d.name(9),
            "Befund": d.of("ok", "auffällig", "unklar"),
        },
    )
    yield (
        "visits",
        lambda d: {
            "patient_id": [row // 4 for row in range(ROWS)],
            "age": d.whole(20, 80),
            "visit": d.day(date(2024, 1, 1), 300),
            "therapy": d.of("a", "b", "c"),
        },
    )
    yield (
        "staff",
        lambda d: {
            "employee": d.name(),
            "department": d.of("sales", "law", "it"),
            "age": d.whole(20, 66),
            "salary": d.number(4000, 900),
            "manager": d.name(7),
        },
    )
    yield (
        "payroll",
        lambda d: {
            "Personalnummer": d.number_of("77"),
            "Alter": d.whole(18, 67),
            "Gehalt": [100 * one for one in d.whole(20, 60)],
            "Konfession": d.of("ev", "rk", "keine"),
        },
    )
    yield (
        "census",
        lambda d: {
            "AGEP": d.whole(0, 99),
            "SEX": d.whole(1, 3),
            "PWGTP": d.whole(1, 300),
            **{f"PWGTP{number}": d.whole(1, 300) for number in range(1, 11)},
            "WAGP": [1000 * one for one in d.whole(0, 80)],
        },
    )
    yield (
        "census in words",
        lambda d: {
            "age": d.whole(17, 90),
            "workclass": d.of("private", "state", "self"),
            "education": d.of("school", "college", "doctorate"),
            "marital": d.of("single", "married", "widowed"),
            "race": d.of("a", "b", "c"),
            "income": d.of("<=50K", ">50K"),
        },
    )
    yield "addresses", lambda d: {"street": d.house(), "plz": [f"{one:05}" for one in d.whole(1000, 1040)]}
    yield "places", lambda d: {"location": d.street(), "age": d.whole(18, 90), "kinder": d.whole(0, 5)}
    yield "texts under a word", lambda d: {"q17": d.note(), "q18": d.whole(1, 6), "q19": d.of("ja", "nein")}
    yield "names under a word", lambda d: {"x1": d.name(), "x2": d.surname(), "x3": d.whole(18, 80)}
    yield (
        "codes",
        lambda d: {
            "icd": d.of("A01", "B02.1", "E11", "I10"),
            "drg": d.of("F62", "G67", "I68"),
            "zip": [f"{one:05}" for one in d.whole(501, 560)],
            "los": d.whole(1, 40),
        },
    )
    yield (
        "school",
        lambda d: {
            "Schüler": d.name(),
            "Jahrgang": d.whole(5, 13),
            "Geschlecht": d.of("w", "m"),
            "Zensur": d.of("1", "2", "3", "4"),
            "Lehrer": d.surname(),
        },
    )
    yield (
        "customers",
        lambda d: {
            "customer_no": d.number_of("C-"),
            "email": d._secret([f"{one}@example.org" for one in d.surname()]),
            "phone": d._secret([f"+49 170 {1_000_000 + row}" for row in range(ROWS)]),
            "city": d.of("Bonn", "Jena", "Kiel"),
            "churn": d.of(0, 1),
        },
    )
    yield (
        "court",
        lambda d: {
            "Aktenzeichen": d.number_of("12 Js "),
            "Name": d.name(),
            "Anschrift": d.street(),
            "Alter": d.whole(14, 70),
            "Straftat": d.of("Diebstahl", "Betrug", "keine"),
        },
    )
    yield "one secret for all", lambda d: {"age": d.whole(20, 60), "sex": d.of("f", "m"), "hiv": d.of("positive")}
    yield (
        "body",
        lambda d: {
            "height": d.number(172, 9),
            "weight": d.number(75, 14),
            "ldl": d.number(120, 30),
            "smoker": d.of("yes", "no"),
        },
    )
    yield (
        "survey",
        lambda d: {
            "respondent": d.name(),
            "remarks": d.note(),
            "party": d.of("red", "blue", "none"),
            "gender": d.of("f", "m", "d"),
            "n_persons": d.whole(1, 4),
        },
    )
    yield (
        "with gaps",
        lambda d: {
            "age": [None if one % 9 == 0 else one for one in d.whole(18, 90)],
            "town": d.of("x", "y", None),
            "contact": d.name(),
            "income": [None if one % 7 == 0 else 500 * one for one in d.whole(2, 14)],
        },
    )


TABLES = dict(tables())


def anonfit(*words: object) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(app, [*map(str, words), "--json"])
    error = result.exception
    if isinstance(error, AnonfitError):
        return error.exit_status, {"error": str(error), "faults": list(getattr(error, "faults", ()))}
    assert error is None, error
    return result.exit_code, json.loads(result.stdout)


def written(folder: Path) -> str:
    """All that a folder says, its data file as texts."""
    texts = [file.read_text() for file in folder.iterdir() if file.suffix in (".json", ".html")]
    return "\n".join([*texts, pl.read_parquet(folder / "data.parquet").cast(pl.String).write_csv()])


def test_there_are_twenty() -> None:
    assert len(TABLES) == 20


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_released_before_somebody_has_decided(name: str, tmp_path: Path) -> None:
    draw = Draw(list(TABLES).index(name))
    pl.DataFrame(TABLES[name](draw)).write_csv(tmp_path / "table.csv")
    status, proposed = anonfit("init", tmp_path / "table.csv")
    assert status == 0
    status, refused = anonfit("run", tmp_path / "spec.toml", "--out", tmp_path / "release")
    assert status == 2
    assert "open in the spec: settle each of these, and remove its line" in refused["faults"][0]
    for column in proposed["columns"]:
        assert not column["decision"] or any(
            fault.startswith(f"columns.{column['name']}: {column['decision']}") for fault in refused["faults"]
        )
    assert any(fault.startswith("privacy: Is k = 10 enough") for fault in refused["faults"])
    assert any(fault.startswith("workload: What is the release for?") for fault in refused["faults"])
    assert not (tmp_path / "release").exists()


REFUSED = ("no column is a quasi-identifier", "fewer than k", "cannot")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TABLES)
def test_what_is_accepted_unseen_is_told_and_holds_no_name_no_address_and_no_note(name: str, tmp_path: Path) -> None:
    draw = Draw(list(TABLES).index(name))
    pl.DataFrame(TABLES[name](draw)).write_csv(tmp_path / "table.csv")
    assert anonfit("init", tmp_path / "table.csv", "--accept")[0] == 0
    status, found = anonfit("run", tmp_path / "spec.toml", "--out", tmp_path / "release")
    if status != 0:
        assert status in (1, 2), found
        assert any(reason in found["error"] for reason in REFUSED), found
        return
    text = written(tmp_path / "release")
    assert not [secret for secret in draw.secrets if secret in text]
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert manifest["spec"]["decisions"] == "accepted"
    assert "accepted unseen" in " ".join(af.load(tmp_path / "release").report["verdict"]["not_asked"])


def test_what_cannot_be_found_of_a_file_is_given_to_init(tmp_path):
    (tmp_path / "t.csv").write_text("alter;plz;gehalt\n" + "31;50667;19.000\n42;53111;21.500\n27;54290;17.250\n" * 5)
    refused = command("init", "t.csv", folder=tmp_path)
    assert refused.returncode == 2
    assert 'write decimal = "." or decimal = "," in [data]' in refused.stderr
    assert "There is no spec yet: give it as --set data.KEY=VALUE." in refused.stderr
    assert not (tmp_path / "spec.toml").exists()
    given = command("init", "t.csv", "--set", "data.decimal=,", "--set", "data.skip_rows=[3]", folder=tmp_path)
    assert given.returncode == 0, given.stderr
    lines = (tmp_path / "spec.toml").read_text().splitlines()
    assert {'decimal = ","', "skip_rows = [3]"} <= set(lines)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("privacy.k=3", "before there is a spec, only settings of [data] can be given: encoding, delimiter"),
        ("data.missing=[]", "before there is a spec, only settings of [data] can be given"),
        ("data.encoding=nosuch", "data.encoding = 'nosuch' is no encoding"),
    ],
)
def test_init_takes_nothing_else_of_a_spec(setting, text, tmp_path):
    (tmp_path / "t.csv").write_text("age,sex\n31,f\n42,m\n")
    refused = command("init", "t.csv", "--set", setting, folder=tmp_path)
    assert refused.returncode == 2
    assert text in refused.stderr


def test_a_folder_is_no_table(tmp_path):
    refused = command("init", ".", folder=tmp_path)
    assert refused.returncode == 2
    assert "is a folder; name the file" in refused.stderr
