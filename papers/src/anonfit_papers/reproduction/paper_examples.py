# SPDX-License-Identifier: Apache-2.0
"""R1: the examples of TKDE 2007 on its tables 1 and 2, number by number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from anonfit.criteria.refinement import entropy
from anonfit_papers.datasets_divided import Divided
from anonfit_papers.reproduction.figures import Figure, Line, Panel
from anonfit_papers.reproduction.frame import Check, Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.learner_words import NOBODY
from anonfit_papers.reproduction.masking import Masked, mask

# Education, Sex, Work_Hrs, and how many records have class Y and class N.
_TABLE_1 = (
    ("9th", "M", 30, 0, 3),
    ("10th", "M", 32, 0, 4),
    ("11th", "M", 35, 2, 3),
    ("12th", "F", 37, 3, 1),
    ("Bachelors", "F", 42, 4, 2),
    ("Bachelors", "F", 44, 4, 0),
    ("Masters", "M", 44, 4, 0),
    ("Masters", "F", 44, 3, 0),
    ("Doctorate", "F", 44, 1, 0),
)
_TABLE_2 = (
    ("10th", "M", 40, 20, 0),
    ("10th", "M", 30, 0, 4),
    ("9th", "M", 30, 0, 2),
    ("9th", "F", 30, 0, 4),
    ("9th", "F", 40, 0, 6),
    ("8th", "F", 30, 0, 2),
    ("8th", "F", 40, 0, 2),
)
_EDUCATION, _SEX, _HOURS = "Education", "Sex", "Work_Hrs"
_TWO = (((_EDUCATION, _SEX), 4), ((_SEX, _HOURS), 11))
"""Example 6."""
_ONE = (((_EDUCATION, _SEX, _HOURS), 4),)
"""Example 5."""
_DIGITS = 4


def _tree(name: str, *below: Any) -> dict[str, Any]:
    return {"name": name, "children": [{"name": child} if isinstance(child, str) else child for child in below]}


_SEXES = _tree("ANY_Sex", "M", "F")
_SCHOOLS = _tree(
    "ANY_Edu",
    _tree("Secondary", _tree("JuniorSec", "9th", "10th"), _tree("SeniorSec", "11th", "12th")),
    _tree("University", "Bachelors", _tree("GradSchool", "Masters", "Doctorate")),
)
_GRADES = _tree("ANY_Edu", "8th", "9th", "10th")


def _table(records: Sequence[tuple[str, str, int, int, int]], education: dict[str, Any]) -> Divided:
    rows = [
        (school, sex, hours, label)
        for school, sex, hours, *numbers in records
        for label, number in zip("YN", numbers, strict=True)
        for _ in range(number)
    ]
    frame = pl.DataFrame(rows, schema=[_EDUCATION, _SEX, _HOURS, "class"], orient="row")
    return Divided("example", frame, len(frame), (), taxonomies={_EDUCATION: education, _SEX: _SEXES})


def _candidates(masked: Masked) -> dict[str, tuple[float, float, float]]:
    """Gain, loss and score of what could be refined in the first state."""
    return {
        candidate["column"]: (candidate["gain"], candidate["loss"], candidate["gain"] / (candidate["loss"] + 1))
        for candidate in masked.refinements["not_made"]
        if candidate["part"] == "*"
    }


def _steps(masked: Masked) -> str:
    return ", ".join(
        f"{step['column']} {step['refined']} {step['gain']:.4f} {step['loss']:g} {step['score']:.4f}"
        for step in masked.refinements["steps"]
    )


def _sizes(masked: Masked, columns: Sequence[str]) -> str:
    """The sizes of groups, in the order of their labels."""
    return " ".join(str(count) for *_, count in masked.frame.group_by(columns).len().sort(columns).rows())


def _classes(frame: pl.DataFrame, names: Sequence[str] | None = None) -> tuple[int, int]:
    chosen = frame if names is None else frame.filter(frame[_EDUCATION].is_in(names))
    return int((chosen["class"] == "Y").sum()), int((chosen["class"] == "N").sum())


def _first() -> Iterator[tuple[str, Any, Any]]:
    """What is said of table 1: name, what the paper or its recomputation has, what is found."""
    table = _table(_TABLE_1, _SCHOOLS)
    frame = table.frame
    secondary = ["9th", "10th", "11th", "12th"]
    yield "table 1: records with class Y and N", (21, 13), _classes(frame)
    yield "table 1: Y and N of Work_Hrs ≥ 37", (19, 3), _classes(frame.filter(pl.col(_HOURS) >= 37))
    few = frame.group_by(_EDUCATION, _SEX).len().filter(pl.col("len") < 4).sort(pl.all()).rows()
    yield (
        "example 2: groups of fewer than 4",
        [("9th", "M", 3), ("Doctorate", "F", 1), ("Masters", "F", 3)],
        few,
    )
    schools = secondary, ["Bachelors", "Masters", "Doctorate"]
    yield (
        "example 4: entropies of ANY_Edu, Secondary, University",
        (0.9597, 0.8960, 0.5033),
        tuple(entropy(_classes(frame, names)) for names in (None, *schools)),
    )
    begun = _candidates(mask(table, _TWO, time_budget=1e-9))
    yield "example 4: ANY_Edu, gain, loss, score", (0.2716, 18, 0.0143), begun[_EDUCATION]
    yield "example 6: ANY_Sex (recomputed)", (0.1664, 18, 0.0088), begun[_SEX]
    yield "example 6: [1-99)", (0.3584, 22, 0.0156), begun[_HOURS]
    masked = mask(table, _TWO)
    yield (
        "example 6: all refinements (recomputed)",
        "Work_Hrs * 0.3584 22 0.0156, Education * 0.2716 18 0.0143, Education Secondary 0.3386 9 0.0339, "
        "Education University 0.1022 0 0.1022, Education SeniorSec 0.0911 3 0.0228",
        _steps(masked),
    )
    yield "figure 2: parts of Education", 5, masked.parts[_EDUCATION]
    after = [step["anonymity"] for step in masked.refinements["steps"]]
    yield "example 8: anonymity after one and two refinements", [[34, 12], [16, 12]], after[:2]
    yield "example 3: group sizes of {Education, Sex}", "5 4 10 8 7", _sizes(masked, [_EDUCATION, _SEX])


def _second() -> Iterator[tuple[str, Any, Any]]:
    """What is said of table 2."""
    table = _table(_TABLE_2, _GRADES)
    begun = _candidates(mask(table, _ONE, time_budget=1e-9))
    yield "table 2b: ANY_Edu", (0.6100, 36, 0.0165), begun[_EDUCATION]
    yield "table 2b: ANY_Sex", (0.4934, 26, 0.0183), begun[_SEX]
    yield "table 2b: [1-99)", (0.3958, 28, 0.0136), begun[_HOURS]
    by_gain = mask(table, _ONE, criterion="infogain")
    yield "table 2, information gain: refinements", "Education * 0.6100 36 0.0165", _steps(by_gain)
    yield "table 2, information gain: group sizes", "24 4 12", _sizes(by_gain, [_EDUCATION])
    by_score = mask(table, _ONE)
    expected = "Sex * 0.4934 26 0.0183, Work_Hrs * 0.3958 8 0.0440"
    yield "table 2, score: refinements", expected, _steps(by_score)
    yield "table 2, score: anonymity", [6], by_score.refinements["anonymity"]
    yield "table 2, score: group sizes", "6 8 6 20", _sizes(by_score, [_SEX, _HOURS])


def examples() -> Measured:
    """Every number, as the paper or its recomputation has it, and as it is found."""
    return {"examples": [[name, _plain(expected), _plain(value)] for name, expected, value in (*_first(), *_second())]}


def _plain(value: Any) -> Any:
    """A value with numbers to four decimals."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value


def _plan(_: Settings) -> Iterator[Part]:
    yield Part({"of": "examples of TKDE 2007"}, 0.5, examples)


def _judge(_: Settings, gave: Sequence[Measured]) -> Result:
    numbers: Sequence[tuple[str, Any, Any]] = gave[0]["examples"]
    checks = tuple(Check(name, expected == value, expected == value, _text(value)) for name, expected, value in numbers)
    rows = [{"example": name, "paper": _text(expected), "found": _text(value)} for name, expected, value in numbers]
    scores = _scores(numbers)
    lines = tuple(Line(name, range(len(values)), list(values.values())) for name, values in scores.items())
    panel = Panel("first refinements", "", "score", lines, "bars", tuple(next(iter(scores.values()))))
    return Result(pl.DataFrame(rows), Figure("Scores of tables 1 and 2", (panel,)), checks)


def _scores(numbers: Sequence[tuple[str, Any, Any]]) -> Mapping[str, dict[str, float]]:
    """The scores of the first candidates of both tables."""
    scores: dict[str, dict[str, float]] = {"table 1": {}, "table 2": {}}
    for name, _, value in numbers:
        for candidate in ("ANY_Edu", "ANY_Sex", "[1-99)"):
            if candidate in name and isinstance(value, list) and not name.startswith("example 4: entropies"):
                scores["table 2" if name.startswith("table 2") else "table 1"][candidate] = value[2]
    return scores


def _text(value: Any) -> str:
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)


PAPER_EXAMPLES = Experiment(
    "R1",
    "The examples of the paper",
    "TKDE 2007, tables 1 and 2, examples 1–8",
    ("T1",),
    "Gains, losses, scores, refinements and groups are those that the paper prints.",
    "Equal to four decimals.",
    "The paper's own choices: the loss of anonymity is averaged over the quasi-identifiers that hold the column, "
    "intervals are half-open, and candidates are all different values. Where the paper prints no number, it was "
    "computed by hand from its table (recomputed).",
    "Table 1: Y 61.8 %, N 38.2 %; table 2: 50 and 50 %.",
    NOBODY,
    _plan,
    _judge,
    setting="34 and 40 records.",
)
