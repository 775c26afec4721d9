# SPDX-License-Identifier: Apache-2.0
"""What the public report says of what was asked and found, in words and figures."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from demanding import ROWS, UNMET, WORDS, K, people

import anonfit as af
from anonfit.algorithms.result import SelectionAnswers
from anonfit.metrics.workload import public_selections
from anonfit.privacy.catalogue import MODELS
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.imprecision import Answers
from anonfit.release.request import aims_of, method_name
from anonfit.report.page import report_page
from anonfit.report.words import diversity_content
from anonfit.spec.model import SelectionSpec
from anonfit.tables.schema import Column, Role, Schema
from anonfit.workload.targets import TargetRequest, Workload
from waivers import waived

# --- what was asked ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({}, "InfoGain Mondrian"),
        ({"criterion": "median"}, "Median Mondrian"),
        ({"criterion": "lsd"}, "LSD Mondrian"),
        ({"criterion": "infogain"}, "InfoGain Mondrian"),
        ({"targets": ["cost"]}, "LSD Mondrian"),
        ({"targets": ["outcome", "cost"]}, "InfoGain and LSD Mondrian"),
        ({"targets": ["outcome", "cost"], "criterion": "infogain"}, "InfoGain Mondrian"),
        ({"targets": [{"column": "cost", "classes": (400.0,)}]}, "InfoGain Mondrian"),
        ({"targets": []}, "Median Mondrian"),
        ({"selections": True}, "Selection then InfoGain Mondrian"),
        ({"selections": True, "targets": []}, "Selection then Median Mondrian"),
        ({"selections": True, "criterion": "infogain"}, "InfoGain Mondrian"),
        ({"weights": {"age": 2.0}}, "InfoGain Mondrian, weighted"),
        ({"weights": {"age": 2.0}, "criterion": "weighted"}, "Median Mondrian, weighted"),
        ({"weights": {"age": 2.0}, "criterion": "median"}, "Median Mondrian"),
    ],
    ids=str,
)
def test_the_criterion_is_named_by_what_was_used(words: dict[str, Any], name: str) -> None:
    columns = [Column("age", Role.QUASI_IDENTIFIER), Column("outcome", Role.TARGET), Column("cost", Role.TARGET)]
    given = words.pop("targets", ["outcome", "cost"] if words.get("criterion") == "lsd" else ["outcome"])
    targets = tuple(TargetRequest(**({"column": one} if isinstance(one, str) else one)) for one in given)
    selections = (SelectionSpec(where="age > 50"),) if words.pop("selections", False) else ()
    workload = Workload(targets=targets, selections=selections, **words)
    assert method_name(workload, aims_of(workload, Schema(tuple(columns)), people())) == name


def test_all_that_was_asked_is_told_in_sentences() -> None:
    release = af.anonymize(
        people(),
        quasi_identifiers=["age", "sex"],
        k=K,
        sensitive={
            "illness": [{"model": "entropy-l", "l": 1.2}, {"model": "t-closeness", "t": 0.9}],
            "salary": {"model": "variance", "variance": 10},
            **waived("grade", "told"),
        },
        targets=["outcome", {"column": "cost", "classes": [400], "weight": 0.5}, "sex"],
        weights={"age": 2, "sex": 1},
        weight_rule="blend",
        selections=["age > 50"],
        max_confidence=0.95,
        min_gain=0.25,
        denoise=False,
        split_on=["age"],
    )
    asked = release.report["asked"]
    assert asked["algorithm"] == "Selection then InfoGain Mondrian, weighted"
    assert asked["diversity"] == [
        {"column": "illness", "model": "entropy-l", "l": 1.2},
        {"column": "illness", "model": "t-closeness", "t": 0.9, "distance": "equal"},
        {"column": "salary", "model": "variance", "variance": 10.0},
    ]
    assert asked["sentences"] == [
        "k = 4: every combination of age and sex is shared by at least 4 persons.",
        f"illness: entropy-l with l = 1.2: {MODELS['entropy-l'].words}.",
        f"illness: t-closeness with t = 0.9, distance = equal: {MODELS['t-closeness'].words}.",
        f"salary: variance with variance = 10: {MODELS['variance'].words}.",
        *(
            f"{name}: nothing was asked, so everybody in a group may have the same value. The reason given: "
            "“made-up people”."
            for name in ("grade", "told")
        ),
        "outcome and cost: no class has more than 0.95 of a group (max_confidence).",
        "Made to predict outcome (its classes), cost (classes parted at 400, weight 0.5) and sex (its classes, released "
        "generalized).",
        "Made to answer 1 selection; their texts are not public, but cuts may lie where they begin and end.",
        "Columns matter by their weights (age 2, sex 1): a mean of the weight and what a split is worth.",
        "Only age may be split.",
        "A split that gains less than 0.25 is not made.",
        "Splits were chosen by Selection then InfoGain Mondrian, weighted.",
    ]
    assert [line["technique"] for line in release.report["columns"] if line["name"] == "sex"] == [
        "generalized (target)"
    ]


def test_a_release_without_a_purpose_says_so() -> None:
    release = af.anonymize(people(), quasi_identifiers=["age", "sex"], k=K, default_role="insensitive")
    assert release.report["asked"]["sentences"][1:] == [
        "No purpose was stated: every column counts the same.",
        "Splits were chosen by Median Mondrian.",
    ]
    assert release.report["selections"] is None
    assert release.report["diversity"] == []


# --- what was found ---------------------------------------------------------------------------------------------


def measured(model: str, found: Any, asked: Any, **settings: Any) -> dict[str, Any]:
    return {
        "column": "x",
        "model": model,
        "found": found,
        "asked": asked,
        "met": None if asked is None else True,
        "sentence": "The audit's words.",
        "settings": settings,
    }


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (measured("distinct-l", 3, 3), "every group has at least 3 different values (asked: at least 3)."),
        (measured("distinct-l", 1, None), "every group has at least 1 different value; nothing was asked of it."),
        (
            measured("entropy-l", 3.45678, 3.0),
            "every group is at least as mixed as 3.456 equally frequent values (asked: at least 3).",
        ),
        (
            measured("entropy-l", 3 - 1e-12, 3.0),
            "every group is at least as mixed as 3 equally frequent values (asked: at least 3).",
        ),
        (
            measured("recursive-cl", 1.25, 2.0, l=2),
            "in every group the most frequent value has at most 1.25 times the persons of all values from frequency "
            "rank 2 on (asked: less than 2).",
        ),
        (
            measured("t-closeness", 0.123411, 0.2, distance="ordered"),
            "no group is farther than 0.1235 from the whole table, by the ordered distance (asked: at most 0.2).",
        ),
        (measured("alpha-k", 0.5, 0.6), "no value has a larger share of a group than 0.5 (asked: at most 0.6)."),
        (
            measured("beta-likeness", 1.5, 2.0, enhanced=True),
            "no value's share grows in a group by more than 1.5 times its share in the whole table and within the "
            "enhanced bound (asked: at most 2).",
        ),
        (
            measured("delta-disclosure", 0.7, 0.8),
            "the logarithm of a share in a group by its share in the whole table is at most 0.7 (asked: below 0.8).",
        ),
        (
            measured("squared-error", 1234567.9, 1000000.0),
            "in every group the squared deviations from the mean add up to at least 1,234,567 (asked: at least "
            "1,000,000).",
        ),
        (measured("variance", 20.00049, 20), "in every group the variance is at least 20 (asked: at least 20)."),
        (
            measured("max_confidence", 0.9, 0.95),
            "no class has a larger share of a group than 0.9 (asked: at most 0.95).",
        ),
        (measured("alpha-k", "fewer than 5", 0.6), "The audit's words."),
        (measured("recursive-cl", "infinite", 2.0, l=2), "The audit's words."),
        (measured("alpha-k", None, 0.6), "The audit's words."),
    ],
)
def test_figures_of_the_worst_group_are_told_as_sentences(line: dict[str, Any], sentence: str) -> None:
    assert diversity_content({"diversity": [line]})[0]["sentence"] == f"x: {sentence}"


def test_there_is_a_sentence_for_every_model() -> None:
    assert all(model.sentence and "{}" in model.sentence for model in MODELS.values())


@pytest.mark.parametrize(("column", "model", "parameters"), [UNMET[1]], ids=str)
def test_minimality_is_named_where_values_are_guarded(column: str, model: str, parameters: dict[str, Any]) -> None:
    plain = af.anonymize(people(), **WORDS)
    assert not any(text.startswith("Minimality") for text in plain.report["not_covered"])
    assert any("as small as the demand allows" in text for text in plain.report["not_covered"])
    sensitive = {**WORDS["sensitive"], column: {"model": model, **parameters}}
    guarded = af.anonymize(people(), **WORDS | {"sensitive": sensitive})
    capped = af.anonymize(people(), **WORDS | {"max_confidence": 0.9})
    for release in (guarded, capped):
        assert any(text.startswith("Minimality") for text in release.report["not_covered"])
        assert "Minimality" in report_page(release.report)


def test_what_groups_tell_of_a_target_that_steered_splits_is_not_covered() -> None:
    blind = af.anonymize(people(), **WORDS)
    used = af.anonymize(people(), **WORDS | {"criterion": "auto"})
    assert not any("targets" in text for text in blind.report["not_covered"])
    assert any("targets" in text for text in used.report["not_covered"])


def test_the_page_shows_texts_as_they_are() -> None:
    odd = '<span class="bar">&"</span>'
    frame = people().select("age", pl.col("sex").alias(odd), "illness")
    release = af.anonymize(
        frame, quasi_identifiers=["age", odd], k=K, sensitive={"illness": {"model": "distinct-l", "l": 2}}
    )
    page = report_page(release.report)
    assert odd not in page
    assert "&lt;span class=&#34;bar&#34;&gt;&amp;&#34;" in page
    assert "every group has at least" in page


# --- selections -------------------------------------------------------------------------------------------------


def answers(*several: tuple[int, int]) -> SelectionAnswers:
    """Answers of so many rows asked for and answered."""
    true, answered = (np.array(part, dtype=np.int64) for part in zip(*several, strict=True))
    names = tuple(f"selection {number}" for number in range(len(several)))
    return SelectionAnswers(names, Answers(true, true, answered, np.ones(len(several))), ())


WHERE, EACH = SelectionSpec(where="x"), SelectionSpec(each="x")
HIDDEN = {"imprecision": None, "precision": None, "recall": None}


@pytest.mark.parametrize(
    ("asked_for", "answered", "figures"),
    [
        (50, 50, {"imprecision": 0, "precision": 1.0, "recall": 1.0}),
        (50, 60, {"imprecision": 10, "precision": 0.83, "recall": 1.0}),
        (50, 79, {"imprecision": 20, "precision": 0.75, "recall": 1.0}),  # 29 in vain, told as 20
        (100, 100, {"imprecision": 0, "precision": 1.0, "recall": 1.0}),  # everybody
        (10, 90, {"imprecision": 80, "precision": 0.11, "recall": 1.0}),
        (9, 90, HIDDEN),  # of few persons
        (0, 90, HIDDEN),  # of nobody: that nobody is so may be news as well
        (91, 91, HIDDEN),  # of all but few
        (50, 59, HIDDEN),  # few in vain
        (50, 51, HIDDEN),
    ],
)
def test_a_selection_is_told_only_if_all_parts_are_none_or_enough(
    asked_for: int, answered: int, figures: dict[str, Any]
) -> None:
    found = public_selections(answers((asked_for, answered)), [WHERE], Disclosure(10), total=100)
    assert found == {"asked": 1, "multiples_of": 10, "answers": [{"number": 1, **figures}]}


def test_figures_of_nearly_equal_selections_cannot_be_subtracted() -> None:
    told = {
        public_selections(answers((asked_for, 80)), [WHERE], Disclosure(10), total=100)["answers"][0]["imprecision"]  # type: ignore[index]
        for asked_for in range(41, 51)
    }
    assert told == {30}


def test_selections_for_each_value_are_told_as_one_over_the_frequent_values() -> None:
    found = public_selections(
        answers((30, 45), (55, 55), (12, 70), (3, 100), (50, 50)), [EACH, WHERE], Disclosure(10), total=100
    )
    assert found is not None
    assert found["answers"] == [
        {"number": 1, "imprecision": 70, "precision": 0.59, "recall": 1.0},  # 15 + 0 + 58 of 45 + 55 + 70
        {"number": 2, "imprecision": 0, "precision": 1.0, "recall": 1.0},
    ]


def test_values_that_few_are_answered_in_vain_count_with_the_others() -> None:
    found = public_selections(answers((30, 36), (40, 46), (30, 30)), [EACH], Disclosure(10), total=100)
    assert found is not None
    assert found["answers"] == [{"number": 1, "imprecision": 10, "precision": 0.91, "recall": 1.0}]
    found = public_selections(answers((30, 33), (40, 46), (30, 30)), [EACH], Disclosure(10), total=100)
    assert found is not None
    assert found["answers"] == [{"number": 1, **HIDDEN}]


def test_the_number_of_values_is_not_told() -> None:
    few = public_selections(answers((60, 60), (40, 40)), [EACH], Disclosure(10), total=100)
    many = public_selections(answers((60, 60), (35, 35), *[(1, 1)] * 5), [EACH], Disclosure(10), total=100)
    assert few == many


def test_answers_that_cannot_be_told_apart_are_not_told() -> None:
    found = public_selections(answers((30, 45), (55, 55)), [EACH], Disclosure(10), total=100)
    assert found == {"asked": 1, "multiples_of": 10, "answers": []}


def test_the_owner_has_all_figures_and_the_public_few(tmp_path: Path) -> None:
    queries = ["age >= 50 and cost >= 700", "age = 19 or age = 20", "sex = 'nobody'"]
    words = WORDS | {"criterion": "auto", "selections": [*queries, {"each": "sex"}]}
    af.anonymize(people(), **words).save(tmp_path / "out")
    path = tmp_path / "out.internal.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    record = json.loads(path.read_text())["selections"]
    assert [line["name"] for line in record["selections"][:3]] == queries
    assert [line["number"] for line in record["selections"]] == [1, 2, 3, 4, 4]
    assert len(record["warnings"]) == 1
    for line in record["selections"]:
        assert set(line) == {
            "number",
            "name",
            "weight",
            "true",
            "answered",
            "imprecision",
            "precision",
            "recall",
        }
        assert line["imprecision"] == line["answered"] - line["true"]
        assert line["recall"] == 1.0
    by_hand = people().filter(pl.col("age").is_in([19, 20])).height
    assert record["selections"][1]["true"] == by_hand
    public = json.loads((tmp_path / "out" / "report.json").read_text())["selections"]
    assert [line["number"] for line in public["answers"]] == [1, 2, 3, 4]
    assert public["answers"][2] == {"number": 3, **HIDDEN}
    assert public["answers"][3]["precision"] is not None
    page = (tmp_path / "out" / "report.html").read_text()
    assert "not told" in page
    assert "nobody" not in page


def test_rows_of_one_person_are_not_taken_for_several(tmp_path: Path) -> None:
    frame = pl.concat([people().with_columns(who=pl.int_range(ROWS))] * 3)
    words = WORDS | {"selections": ["age >= 50"], "criterion": "auto", "entity": "who"}
    release = af.anonymize(frame, **words)
    assert release.report["selections"] == {"asked": 1, "multiples_of": K, "answers": []}
    release.save(tmp_path / "out")
    record = json.loads((tmp_path / "out.internal.json").read_text())["selections"]
    assert record["selections"][0]["true"] == frame.filter(pl.col("age") >= 50).height


def test_selections_count_the_persons_a_row_stands_for() -> None:
    frame = people().with_columns(many=pl.lit(3))
    words = WORDS | {"selections": ["age >= 50"], "criterion": "auto", "count": "many"}
    release = af.anonymize(frame, **words)
    assert release._draft.answers is not None
    assert release._draft.answers.answers.true.tolist() == [3 * frame.filter(pl.col("age") >= 50).height]
    assert release.report["selections"]["answers"][0]["imprecision"] is not None


def test_an_extended_release_measures_no_selections(tmp_path: Path) -> None:
    words = WORDS | {"criterion": "auto", "selections": ["age >= 50"]}
    release = af.anonymize(people(), **words)
    release.save(tmp_path / "out")
    extended = af.load(tmp_path / "out").extend(people())
    assert extended.report["selections"] == {"asked": 1, "multiples_of": K, "answers": []}
    assert "was not measured" in report_page(extended.report)
