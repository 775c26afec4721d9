# SPDX-License-Identifier: Apache-2.0
"""Hostile cases: values and taxonomies."""

from __future__ import annotations

import json

from hostile_files import FORMULA, SCRIPT, ages, counted, folder, rows, spec, taxonomy
from hostile_running import MARK, PEOPLE, Case

DONE = '(Published|"passed": true)'
CONTINUOUS = (
    '[columns.age]\nrole = "quasi-identifier"',
    '[columns.age]\nrole = "quasi-identifier"\ntype = "continuous"',
)
DATE = (CONTINUOUS[0], CONTINUOUS[1].replace("continuous", "date"))
TARGET = ('role = "insensitive"', 'role = "target"\ntype = "continuous"')
HUGE = rows(lambda index: f"{20 + index % 40},m,{(-1) ** index * (9 + index % 3 / 4)}e307")


def _aimed(criterion: str) -> dict[str, str]:
    return spec(TARGET, more=f'[workload]\ntargets = ["illness"]\n[method]\ncriterion = "{criterion}"\n')


def _guarded(model: str, setting: str) -> dict[str, str]:
    return spec(
        ('role = "insensitive"', 'role = "sensitive"\ntype = "continuous"'),
        more=f'[[privacy.diversity]]\ncolumn = "illness"\nmodel = "{model}"\n{setting}\n',
    )


def _deep(depth: int) -> str:
    return '{"a": ' * depth + "null" + "}" * depth


NUMBERS = [
    Case("numbers near the largest", {"people.csv": ages("1e308", "-1e308", "9e307")}, DONE, status=0),
    Case("numbers near the largest as a target", {"people.csv": HUGE, **_aimed("lsd")}, "too large to be squared"),
    Case(
        "numbers near the largest, clustering",
        {"people.csv": HUGE, **spec(more='[method]\ncriterion = "clustering"\n')},
        DONE,
        status=0,
    ),
    Case(
        "ages near the largest, clustering",
        {"people.csv": ages("1e308", "-1e308", "9e307"), **spec(more='[method]\ncriterion = "clustering"\n')},
        DONE,
        status=0,
    ),
    Case(
        "missing targets among the largest",
        {"people.csv": rows(lambda index: f"{20 + index % 40},m,{'' if index == 7 else '1.7e308'}"), **_aimed("lsd")},
        "too large to be squared",
    ),
    *(
        Case(
            f"sensitive numbers near the largest, {model}",
            {"people.csv": HUGE, **_guarded(model, setting)},
            says,
            status=status,
        )
        for model, setting, says, status in (
            ("variance", "variance = 1.0", "too large to be squared", 2),
            ("squared-error", "error = 1.0", "too large to be squared", 2),
            ("t-closeness", "t = 0.9", "too large to be squared", 2),
        )
    ),
    Case(
        "numbers that are none",
        {"people.csv": ages("20", "NaN", "30"), **spec(CONTINUOUS)},
        "(is|are) not numbers.*; mend them, list them under .data. missing",
    ),
    Case(
        "numbers that are missing",
        {
            "people.csv": ages("20", "NaN", "30"),
            **spec(CONTINUOUS, ("[data]", '[data]\nmissing = ["NaN"]\nmissing_policy = "drop"')),
        },
        DONE,
        status=0,
    ),
    Case(
        "infinite numbers", {"people.csv": ages("20", "inf", "-inf"), **spec(CONTINUOUS)}, "some numbers are infinite"
    ),
    Case(
        "numbers that overflow",
        {"people.csv": ages("20", "1e999", "-1e999"), **spec(CONTINUOUS)},
        "some numbers are infinite",
    ),
    Case("numbers below the smallest", {"people.csv": ages("5e-324", "1e-310", "-5e-324", "0")}, DONE, status=0),
    Case("zeros of both signs", {"people.csv": ages("0.0", "-0.0", "0")}, DONE, status=0),
    Case(
        "neighbouring numbers",
        {"people.csv": ages("0.1", "0.10000000000000002", "0.09999999999999999")},
        DONE,
        status=0,
    ),
    Case(
        "whole numbers of 64 bits",
        {"people.csv": ages("9223372036854775807", "-9223372036854775808", "0")},
        DONE,
        status=0,
    ),
    Case("whole numbers beyond 64 bits", {"people.csv": ages("9" * 25, "1", "2"), **spec(CONTINUOUS)}, DONE, status=0),
    Case("a number of 5,000 digits", {"people.csv": ages("9" * 5000, "1", "2"), **spec(CONTINUOUS)}, "age"),
    Case("texts among numbers", {"people.csv": ages("20", "thirty", "40"), **spec(CONTINUOUS)}, "age"),
    Case("a domain that is too small", spec(CONTINUOUS, ('"continuous"', '"continuous"\ndomain = [0, 30]')), "domain"),
    Case(
        "dates that no calendar has",
        {"people.csv": ages("2024-02-30", "2024-13-01", "2024-01-01"), **spec(DATE)},
        "age",
    ),
    Case(
        "dates of far years",
        {"people.csv": ages("0001-01-01", "9999-12-31", "2024-01-01"), **spec(DATE)},
        DONE,
        status=0,
    ),
    Case("dates of year nought", {"people.csv": ages("0000-00-00", "2024-01-01"), **spec(DATE)}, "age"),
    Case("dates of several forms", {"people.csv": ages("2024-01-01", "01.02.2024", "3/4/24"), **spec(DATE)}, "age"),
    Case("nothing in a quasi-identifier", {"people.csv": ages("")}, DONE, status=0),
    Case("nothing in a number", {"people.csv": ages(""), **spec(CONTINUOUS)}, DONE, status=0),
    Case("nothing in a released column", {"people.csv": rows(lambda index: f"{index % 40},m,")}, DONE, status=0),
    Case("nothing in any column", {"people.csv": rows(lambda _: ",,")}, "no rows"),
    Case(
        "nothing in a target",
        {"people.csv": rows(lambda index: f"{index % 40},m,"), **_aimed("lsd")},
        "has no value at all",
    ),
    Case(
        "missing values refused",
        {"people.csv": ages("", "20"), **spec(("[columns.age]", 'missing_policy = "error"\n[columns.age]'))},
        "missing",
    ),
    Case(
        "missing values dropped, all of them",
        {"people.csv": ages(""), **spec(("[columns.age]", 'missing_policy = "drop"\n[columns.age]'))},
        "0 persons, fewer than k = 5",
        status=1,
    ),
    Case("the same in every row", {"people.csv": rows(lambda _: f"30,m,{MARK}")}, DONE, status=0),
    Case("one row", {"people.csv": f"age,sex,illness\n30,m,{MARK}\n"}, "1 person, fewer than k = 5", status=1),
    Case(
        "one row at k = 1",
        {"people.csv": f"age,sex,illness\n30,m,{MARK}\n", **spec(("k = 5", "k = 1"))},
        DONE,
        status=0,
    ),
    Case("another text in every row", {"people.csv": rows(lambda index: f"30,s{index},{MARK}{index}")}, "illness"),
    Case(
        "formulas in cells",
        {"people.csv": PEOPLE.replace("flu", "").replace(MARK, FORMULA), **spec(more='[output]\nformat = "csv"\n')},
        "formula",
        status=0,
    ),
    Case(
        "HTML in values",
        {"people.csv": PEOPLE.replace(f"{MARK}flu", SCRIPT).replace(",m,", f",{SCRIPT},")},
        DONE,
        status=0,
    ),
    Case("escapes in values", {"people.csv": PEOPLE.replace(",m,", ",\x1b[31mm\x9b\u202e,")}, DONE, status=0),
]

COUNTS = [
    Case("negative counts", counted(["1", "-1"]), "'n'"),
    Case("counts of nought", counted(["1", "0"]), "'n'"),
    Case("nothing but counts of nought", counted(["0"]), "'n'"),
    Case("halves of persons", counted(["1", "0.5"]), "'n'"),
    Case("counts that are texts", counted(["1", "many"]), "'n'"),
    Case("missing counts", counted(["1", ""]), "'n'"),
    Case("infinite counts", counted(["1", "inf"]), "'n'"),
    Case("counts beyond 64 bits", counted(["1", "9" * 25]), "'n'"),
    Case("counts whose sum is beyond 64 bits", counted(["9000000000000000000"]), "'n'"),
    Case("counts near 64 bits", counted(["1", "90000000000000000"]), "more than four billion persons"),
    Case("negative sample weights", counted(["1", "-1"], "sample-weight"), "'n'"),
    Case("sample weights of nought", counted(["0"], "sample-weight"), "'n'"),
    Case("infinite sample weights", counted(["1", "inf"], "sample-weight"), "'n'"),
    Case("missing sample weights", counted(["1", ""], "sample-weight"), "'n'"),
    Case("sample weights that are texts", counted(["1", "much"], "sample-weight"), "'n'"),
    Case("sample weights near the largest", counted(["1", "1.7e308"], "sample-weight"), "'n'"),
    Case("missing entities", counted(["1", ""], "entity"), "every row needs its person", engines=("memory",)),
]

TREE = {"name": "*", "children": [{"name": "m"}, {"name": "f"}]}

TAXONOMIES = [
    Case(
        "no such taxonomy",
        spec(
            (
                '[columns.sex]\nrole = "quasi-identifier"',
                '[columns.sex]\nrole = "quasi-identifier"\ntaxonomy = "none.csv"',
            )
        ),
        "none.csv",
    ),
    Case("an empty taxonomy", taxonomy("sex.csv", ""), "empty"),
    Case("an empty tree", taxonomy("sex.json", "{}"), "sex.json"),
    Case("a taxonomy that is no JSON", taxonomy("sex.json", "{"), "sex.json"),
    Case("a taxonomy that is a number", taxonomy("sex.json", "7"), "sex.json"),
    Case("a taxonomy that is NaN", taxonomy("sex.json", "NaN"), "sex.json"),
    Case("a taxonomy with a name twice", taxonomy("sex.csv", "m;x;*\nf;x;*\nm;y;*\n"), "m"),
    Case("a taxonomy that goes round", taxonomy("sex.csv", "m;f;*\nf;m;*\n"), "two parents or stands at two places"),
    Case("a taxonomy with lines too short", taxonomy("sex.csv", "m;x;*\nf;*\n"), "line 2 has 2 fields"),
    Case("a taxonomy of other values", taxonomy("sex.csv", "a;*\nb;*\n"), "sex"),
    Case("a taxonomy without one value", taxonomy("sex.csv", "m;*\nx;*\n"), "sex"),
    Case("a taxonomy with a quote open", taxonomy("sex.csv", 'm;"x;*\nf;x;*\n'), "quot"),
    Case("a taxonomy in Latin-1", taxonomy("sex.csv", "m;Männer\n".encode("latin-1")), "not UTF-8"),
    Case("a taxonomy with NUL bytes", taxonomy("sex.csv", "m;\0;*\nf;x;*\n"), DONE, status=0),
    Case("a taxonomy of another kind", taxonomy("sex.xml", "<m/>"), "xml"),
    Case("a folder as taxonomy", {**taxonomy("sex.csv", ""), "sex.csv": folder}, "cannot be read"),
    Case("a taxonomy 100,000 deep, JSON", taxonomy("sex.json", _deep(100_000)), "deep"),
    Case(
        "a taxonomy 5,000 deep, text",
        taxonomy("sex.txt", "".join(f"{'  ' * depth}n{depth}\n" for depth in range(5000)) + "  m\n  f\n"),
        "deep",
    ),
    Case(
        "a taxonomy 5,000 deep, ARX",
        taxonomy(
            "sex.csv",
            ";".join(["m", *(f"n{depth}" for depth in range(5000))])
            + "\n"
            + ";".join(["f", *(f"n{depth}" for depth in range(5000))])
            + "\n",
        ),
        "deep",
    ),
    Case(
        "a taxonomy with HTML and escapes",
        taxonomy("sex.json", json.dumps({"*": {f"{SCRIPT}\x1b[1m\u202e": {"m": {}}, "z": {"f": {}}}})),
        DONE,
        status=0,
    ),
]
