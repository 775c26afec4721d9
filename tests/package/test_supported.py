# SPDX-License-Identifier: Apache-2.0
"""What docs/supported.md says: every combination it calls supported makes a release that holds what was asked, and
every other is an error of one sentence.
"""

from __future__ import annotations

import runpy
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.criteria.objectives import ALGORITHMS
from anonfit.errors import AnonfitError, DataError, SpecError
from waivers import waived

ROOT = Path(__file__).resolve().parents[2]
SUPPORTED = runpy.run_path(str(ROOT / "docs" / "supported.py"))
COLUMNS, CRITERIA, PERSONS, PRIVACY, SENSITIVE = (
    SUPPORTED[name] for name in ("COLUMNS", "CRITERIA", "PERSONS", "PRIVACY", "SENSITIVE")
)
caps, divides, support_page, supports = (SUPPORTED[name] for name in ("caps", "divides", "support_page", "supports"))
ROWS, K = 90, 3
STAGES = ["I", "II", "III", "IV"]
PLACES = {
    "name": "*",
    "children": [
        {"name": "north", "children": [{"name": "Kiel"}, {"name": "Lund"}, {"name": "Oslo"}]},
        {"name": "south", "children": [{"name": "Rome"}, {"name": "Nice"}]},
    ],
}
AGES = {
    "name": "*",
    "children": [
        {"name": "young", "children": [{"name": "[0, 25)"}, {"name": "[25, 50)"}]},
        {"name": "old", "children": [{"name": "[50, 75)"}, {"name": "[75, 100)"}]},
    ],
}


@cache
def table() -> pl.DataFrame:
    """A table with a column of every kind; targets and sensitive columns depend on the quasi-identifiers."""
    rng = np.random.default_rng(3)
    age, place = rng.integers(1, 100, ROWS), rng.integers(0, 5, ROWS)
    places = ["Kiel", "Lund", "Oslo", "Rome", "Nice"]
    noise = rng.normal(size=ROWS)
    return pl.DataFrame(
        {
            "age": age,
            "born": [date(1990, 1, 1) + timedelta(days=int(days)) for days in rng.integers(0, 9000, ROWS)],
            "stage": [STAGES[number] for number in rng.integers(0, 4, ROWS)],
            "place": [places[number] for number in place],
            "region": [places[number] for number in rng.integers(0, 5, ROWS)],
            "years": rng.integers(1, 100, ROWS),
            **{name: ["abc"[number] for number in rng.integers(0, 3, ROWS)] for name in ("group", "letter", "sign")},
            "outcome": np.where(age + 20 * noise > 50, "died", "home"),
            "second": np.where(place + noise > 2, "yes", "no"),
            "cost": np.round(100 * age + 500 * noise, 2),
            "days": np.round(3 * place + noise, 3),
            "illness": ["uvwxyz"[number] for number in rng.integers(0, 6, ROWS)],
            "severity": [STAGES[number] for number in rng.integers(0, 4, ROWS)],
            "town": [places[number] for number in rng.integers(0, 5, ROWS)],
            "salary": rng.integers(1000, 9000, ROWS),
            "told": [date(2024, 1, 1) + timedelta(days=int(days)) for days in rng.integers(0, 20, ROWS)],
            "many": rng.integers(1, 4, ROWS),
            "who": np.arange(ROWS) // 2,
            "weight": np.round(rng.uniform(0.5, 2, ROWS), 2),
        }
    )


class Ranks:
    """A fitted model of the outcome: the later a row's first value, the likelier one class."""

    def predict_proba(self, rows: Any) -> np.ndarray[Any, Any]:
        _, ranks = np.unique(rows.iloc[:, 0].astype(str), return_inverse=True)
        share = ranks / max(ranks.max(), 1)
        return np.stack([share, 1 - share], axis=1)


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "continuous": ("age", {}),
    "date": ("born", {}),
    "ordinal": ("stage", {"types": {"stage": "ordinal"}, "orders": {"stage": STAGES}}),
    "nominal, subset": ("group", {"types": {"group": "nominal"}}),
    "taxonomy, multiway": ("place", {"taxonomies": {"place": PLACES}}),
    "taxonomy, binary": ("region", {"taxonomies": {"region": PLACES}, "splits": {"region": "binary"}}),
    "flat, multiway": ("letter", {"splits": {"letter": "multiway"}}),
    "flat, binary": ("sign", {"splits": {"sign": "binary"}}),
    "numbers in a taxonomy": ("years", {"taxonomies": {"years": AGES}}),
}

INFOGAIN = {"criterion": "infogain"}
PURPOSES: dict[str, dict[str, Any]] = {
    "median": {"criterion": "median"},
    "targets": {"targets": ["outcome"]},
    "infogain": {**INFOGAIN, "targets": ["outcome"]},
    "infogain, all cuts": {**INFOGAIN, "targets": ["outcome"], "candidates": "all"},
    "infogain, several": {**INFOGAIN, "targets": ["outcome", {"column": "second", "weight": 0.5}]},
    "infogain, denoised": {**INFOGAIN, "targets": ["outcome"], "denoise": True},
    "infogain, predicted": {"targets": [{"column": "outcome", "model": Ranks()}]},
    "lsd": {"criterion": "lsd", "targets": ["cost"]},
    "lsd, several": {"criterion": "lsd", "targets": ["cost", "days"]},
    "lsd, denoised": {"criterion": "lsd", "targets": ["cost"], "denoise": True},
    "infogain and lsd": {"targets": ["outcome", "cost"]},
    "selection": {"selections": ["{0} IS NOT NULL AND town <> 'Kiel'", {"each": "town"}]},
    "selection then infogain": {"selections": [{"each": "{0}"}], "targets": ["outcome"]},
    "weighted, first": {"criterion": "weighted", "weights": {"{0}": 2.0}},
    "weighted, product": {"criterion": "weighted", "weights": {"{0}": 2.0}, "weight_rule": "product"},
    "weighted, blend": {"criterion": "weighted", "weights": {"{0}": 2.0}, "weight_rule": "blend", "alpha": 0.3},
    "weighted, naive": {"criterion": "weighted", "weights": {"{0}": 2.0}, "weight_rule": "naive"},
    "weighted, probabilistic": {"criterion": "weighted", "weights": {"{0}": 2.0}, "weight_rule": "probabilistic"},
    "infogain, weighted": {**INFOGAIN, "targets": ["outcome"], "weights": {"{0}": 2.0}, "weight_rule": "product"},
    "infogain, combined": {
        **INFOGAIN,
        "targets": ["outcome"],
        "weights": {"{0}": 2.0},
        "weight_rule": "combined",
        "gamma": 0.1,
    },
    "infogain, found weights": {**INFOGAIN, "targets": ["outcome"], "weights_from": "accuracy"},
    "clustering": {"criterion": "clustering"},
    "explore": {"criterion": "explore", "time_budget": 0.001},  # two ways, the first of which is median
    "tdr, score": {"algorithm": "tdr", "targets": ["outcome"]},
    "tdr, infogain": {"algorithm": "tdr", "criterion": "infogain", "targets": ["outcome"]},
}
NAMES = {
    "median": "Median Mondrian",
    "lsd": "LSD Mondrian",
    "lsd, several": "LSD Mondrian",
    "lsd, denoised": "LSD Mondrian",
    "infogain and lsd": "InfoGain and LSD Mondrian",
    "selection": "Selection then Median Mondrian",
    "selection then infogain": "Selection then InfoGain Mondrian",
    "weighted, first": "Median Mondrian, weighted",
    "weighted, product": "Median Mondrian, weighted",
    "weighted, blend": "Median Mondrian, weighted",
    "weighted, naive": "Median Mondrian, weighted",
    "weighted, probabilistic": "Median Mondrian, weighted",
    "infogain, weighted": "InfoGain Mondrian, weighted",
    "infogain, combined": "InfoGain Mondrian, weighted",
    "infogain, found weights": "InfoGain Mondrian, weighted",
    "clustering": "Clustering Mondrian",
    "tdr, score": "top-down refinement (TDR) by information gain against anonymity loss",
    "tdr, infogain": "top-down refinement (TDR) by information gain",
}
"""What the report calls a criterion; all others are InfoGain Mondrian."""

SENSITIVE_COLUMNS: dict[str, tuple[str, dict[str, Any]]] = {
    "nominal": ("illness", {"types": {"illness": "nominal"}}),
    "taxonomy": ("town", {"taxonomies": {"town": PLACES}}),
    "ordinal": ("severity", {"types": {"severity": "ordinal"}, "orders": {"severity": STAGES}}),
    "continuous": ("salary", {}),
    "date": ("told", {}),
}
PARAMETERS: dict[str, dict[str, Any]] = {
    "distinct-l": {"l": 2},
    "entropy-l": {"l": 1.8},
    "recursive-cl": {"c": 2, "l": 2},
    "t-closeness": {"t": 0.5},
    "alpha-k": {"alpha": 0.6},
    "beta-likeness": {"beta": 4},
    "delta-disclosure": {"delta": 3},
    "squared-error": {"error": 1e6},
    "variance": {"variance": 1e6},
}
COUNTED: dict[str, dict[str, str]] = {
    "rows": {},
    "count": {"count": "many"},
    "entity": {"entity": "who"},
    "sample weight": {"sample_weight": "weight"},
}


def joined(*several: dict[str, Any]) -> dict[str, Any]:
    """Keywords put together; those that map columns are merged."""
    found: dict[str, Any] = {}
    for words in several:
        for key, value in words.items():
            found[key] = {**found[key], **value} if isinstance(found.get(key), dict) else value
    return found


def purpose(criterion: str, first: str) -> dict[str, Any]:
    """The keywords of a criterion; `first` is a quasi-identifier."""

    def put(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{0}", first)
        if isinstance(value, dict):
            return {put(key): put(part) for key, part in value.items()}
        return [put(part) for part in value] if isinstance(value, list) else value

    return {key: put(value) for key, value in PURPOSES[criterion].items()}


def demands(model: str, sensitive: str | None = None) -> dict[str, Any]:
    """The keywords of a privacy model, on a sensitive column that it suits unless one is named."""
    if model == "max_confidence":
        return {"max_confidence": 0.95}
    if model == "k":
        return {}
    kind = sensitive or ("continuous" if model in ("squared-error", "variance") else "nominal")
    column, words = SENSITIVE_COLUMNS[kind]
    return joined(words, {"sensitive": {column: {"model": model, **PARAMETERS[model]}}})


def targets(asked: dict[str, Any]) -> set[str]:
    """The columns of the targets."""
    return {one if isinstance(one, str) else one["column"] for one in asked.get("targets", [])}


def release(kinds: list[str], *several: dict[str, Any]) -> af.Release:
    """A release of the table with quasi-identifiers of these kinds; columns that nothing is asked of are left out."""
    columns = [KINDS[kind][0] for kind in kinds]
    asked = joined(*(KINDS[kind][1] for kind in kinds), *several)
    if "max_confidence" in asked and not {"outcome", "second"} & targets(asked):
        asked["targets"] = [*asked.get("targets", []), "second"]  # a confidence is of classes
    used = {*columns, *asked.get("sensitive", {})} | {
        asked.get(key, "") for key in ("count", "entity", "sample_weight")
    }
    used |= targets(asked)
    raw = {"town"} - used if "selections" in asked else set()
    return af.anonymize(
        table().select(name for name in table().columns if name in used | raw),
        quasi_identifiers=columns,
        k=K,
        insensitive=sorted(raw),
        release=[name for name in ("cost", "days", "salary") if name in used],
        **asked,
    )


def verdicts(found: af.Release, model: str) -> set[bool | None]:
    """What the audit said of a model; nothing if it was not asked."""
    return {finding["met"] for finding in found.report["audit"]["findings"] if finding["name"] == model}


def names(choices: Any) -> list[str]:
    return [choice.name for choice in choices]


def test_the_page_is_what_the_code_says() -> None:
    text = (ROOT / "docs" / "supported.md").read_text(encoding="utf-8")
    assert text == support_page(), "run: python docs/supported.py > docs/supported.md"


def test_everything_that_is_declared_is_tried_here() -> None:
    assert names(CRITERIA) == list(PURPOSES)
    assert names(COLUMNS) == list(KINDS)
    assert names(PRIVACY) == ["k", *PARAMETERS, "max_confidence"]
    assert names(SENSITIVE) == list(SENSITIVE_COLUMNS)
    assert names(PERSONS) == list(COUNTED)
    assert set(ALGORITHMS["mondrian"].criteria) - {"auto"} <= {
        word for name in names(CRITERIA) for word in name.replace(",", "").split()
    }


@pytest.mark.sampled(29)
@pytest.mark.parametrize("model", names(PRIVACY))
@pytest.mark.parametrize("criterion", names(CRITERIA))
def test_every_criterion_holds_every_model_with_every_kind_of_column(criterion: str, model: str) -> None:
    turn = names(CRITERIA).index(criterion) + names(PRIVACY).index(model)
    person = names(PERSONS)[turn % len(PERSONS)]
    kinds = [kind for kind in KINDS if divides(criterion, kind)]
    if not caps(criterion, model):
        with pytest.raises(SpecError) as caught:
            release(kinds, purpose(criterion, "age"), demands(model), COUNTED[person])
        assert all("is a number: give classes" in fault for fault in caught.value.faults)
        return
    found = release(kinds, purpose(criterion, "age"), demands(model), COUNTED[person])
    assert verdicts(found, model) == {True}
    assert found.report["audit"]["sizes"]["groups"] > 1
    if criterion == "explore":
        # of a target, which max_confidence needs, what it alone asks for is tried first
        first = "InfoGain Mondrian" if model == "max_confidence" else "Median Mondrian"
        assert found.report["asked"]["algorithm"] in (first, "Clustering Mondrian")
    elif criterion != "selection" or model != "max_confidence":  # which needs a target, which then steers splits too
        assert found.report["asked"]["algorithm"] == NAMES.get(criterion, "InfoGain Mondrian")


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kind", names(COLUMNS))
@pytest.mark.parametrize("criterion", names(CRITERIA))
def test_every_criterion_splits_every_kind_of_column(criterion: str, kind: str) -> None:
    if not divides(criterion, kind):
        with pytest.raises(SpecError) as caught:
            release([kind], purpose(criterion, KINDS[kind][0]))
        one_sentence(caught.value)
        return
    found = release([kind], purpose(criterion, KINDS[kind][0]))
    assert found.data[KINDS[kind][0]].n_unique() > 1


@pytest.mark.sampled(5)
@pytest.mark.parametrize("person", names(PERSONS))
@pytest.mark.parametrize("model", names(PRIVACY))
def test_every_model_counts_every_kind_of_person(model: str, person: str) -> None:
    found = release(["continuous", "taxonomy, multiway"], demands(model), COUNTED[person])
    assert verdicts(found, model) == {True}


@pytest.mark.parametrize("sensitive", names(SENSITIVE))
@pytest.mark.parametrize("model", PARAMETERS)
def test_a_model_suits_a_kind_of_sensitive_column_or_says_why_not(model: str, sensitive: str) -> None:
    if supports(model, sensitive):
        found = release(["continuous"], demands(model, sensitive))
        assert verdicts(found, model) == {True}
        return
    with pytest.raises(SpecError) as caught:
        release(["continuous"], demands(model, sensitive))
    one_sentence(caught.value)


def one_sentence(error: AnonfitError) -> None:
    """An error names one fault, in one line."""
    assert len(getattr(error, "faults", [error])) == 1
    assert str(error).endswith(".")
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "words",
    [
        {"criterion": "infogain"},
        {"criterion": "infogain", "targets": ["cost"]},
        {"criterion": "lsd", "targets": ["outcome"]},
        {"criterion": "selection"},
        {"criterion": "weighted"},
        {"denoise": True},
        {"weight_rule": "product"},
        {"alpha": 0.3},
        {"beta": 0.3},
        {"weight_rule": "combined", "weights": {"age": 2.0}},
        {"weight_rule": "combined", "weights": {"age": 2.0}, "targets": ["outcome"], "criterion": "weighted"},
        {"weights_from": "accuracy"},
        {"weights_from": "accuracy", "targets": ["cost"]},
        {"weights_from": "accuracy", "targets": ["outcome"], "weights": {"age": 2.0}},
        {"weights_from": "accuracy", "targets": ["outcome"], "criterion": "clustering"},
        {"weights_from": "precision", "targets": ["outcome"]},
        {"features": ["zone"]},
        {"features": ["age", "age"]},
        {"selected_by": ["who"], "entity": "who"},
        {"clusters": 1},
        {"criterion": "clustering", "weights": {"age": 0.0}},
        {"criterion": "clustering", "weights": {"age": 2.0}, "weight_rule": "product"},
        {"criterion": "explore", "weights": {"age": 0.0}},
        {"criterion": "explore", "min_gain": 2.0},
        {"criterion": "explore", "denoise": True, "targets": ["outcome"]},
        {"criterion": "median", "time_budget": 5},
        {"count": "many", "entity": "who"},
        {"entity": "who", "values": "representative"},
        {"sensitive": {"illness": {"model": "t-closeness", "t": 0.5, "distance": "hierarchical"}}},
        {"sensitive": {"illness": {"model": "t-closeness", "t": 0.5, "distance": "ordered"}}},
        {"splits": {"age": "binary"}, "types": {"age": "continuous"}},
        {"targets": [{"column": "outcome", "classes": [1]}]},
        {"sensitive": waived("illness"), "selections": [{"each": "illness"}]},
        {"sensitive": waived("illness"), "selections": ["illness = 'u'"]},
        {"targets": ["outcome"], "max_confidence": 0.95, "selections": ["outcome = 'died'"]},
        {"criterion": "score"},
        {"requirements": [["age"]]},
        {"average": "all"},
        {"suppression": "best_gain"},
        {"zero_gain": True},
        {"time_budget": 5},
        {"start": "recoding.json"},
        {"algorithm": "tdr"},
        {"algorithm": "tdr", "targets": ["outcome", "second"]},
        {"algorithm": "tdr", "targets": ["cost"]},
        {"algorithm": "tdr", "targets": ["age"]},
        {"algorithm": "tdr", "targets": ["outcome"], "criterion": "median"},
        {"algorithm": "tdr", "targets": ["outcome"], "denoise": True},
        {"algorithm": "tdr", "targets": ["outcome"], "selections": ["age > 3"]},
        {"algorithm": "tdr", "targets": ["outcome"], "weights": {"age": 2.0}},
        {"algorithm": "tdr", "targets": ["outcome"], "split_on": ["age"]},
        {"algorithm": "tdr", "targets": ["outcome"], "min_gain": 2.0},
        {"algorithm": "tdr", "targets": ["outcome"], "features": ["age"]},
        {"algorithm": "tdr", "targets": ["outcome"], "criterion": "clustering"},
        {"algorithm": "tdr", "targets": ["outcome"], "criterion": "explore"},
        {"algorithm": "tdr", "targets": ["outcome"], "candidates": "all"},
        {"algorithm": "tdr", "targets": ["outcome"], "requirements": []},
        {"algorithm": "tdr", "targets": ["outcome"], "requirements": [["age", "zone"]]},
        {"algorithm": "tdr", "targets": ["outcome"], "requirements": [{"columns": ["age"], "k": 0}]},
        {"algorithm": "tdr", "targets": ["outcome"], "time_budget": 0},
        {"algorithm": "tdr", "targets": ["outcome"], "requirements": [["age"]], "regions": "observed", "consent": True},
    ],
    ids=str,
)
def test_what_does_not_go_together_is_an_error_of_one_sentence(words: dict[str, Any]) -> None:
    with pytest.raises((SpecError, DataError)) as caught:
        release(["continuous"], words)
    one_sentence(caught.value)


def test_a_confidence_needs_a_target() -> None:
    with pytest.raises(SpecError, match="there is none") as caught:
        af.anonymize(table().select("age"), quasi_identifiers=["age"], k=K, max_confidence=0.9)
    one_sentence(caught.value)
