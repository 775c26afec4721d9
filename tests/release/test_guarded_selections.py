# SPDX-License-Identifier: Apache-2.0
"""Nothing is selected by a column that the release guards, whichever door the selection comes through."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import anonfit as af
from anonfit.errors import SpecError
from anonfit.release.run import make
from waivers import waived

FRAME = pl.DataFrame(
    {
        "age": list(range(20, 60)),
        "illness": ["flu", "cold", "gout", "flu"] * 10,
        "outcome": ["home", "died"] * 20,
        "ward": ["a", "b"] * 20,
    }
)
WORDS: dict[str, Any] = {
    "quasi_identifiers": ["age"],
    "k": 4,
    "sensitive": waived("illness"),
    "targets": ["outcome"],
    "insensitive": ["ward"],
}
SENSITIVE = [
    "illness = 'flu'",
    "age > 30 AND NOT (ward = 'a' OR illness IN ('flu', 'cold'))",
    "illness IS NULL",
    {"each": "illness"},
]
TARGET = ["outcome = 'died'", "age < 30 OR outcome <> 'died'", {"each": "outcome"}]


@pytest.mark.parametrize("criterion", ["auto", "selection", "median", "infogain"])
@pytest.mark.parametrize("selection", SENSITIVE, ids=str)
def test_a_sensitive_column_is_refused_whatever_steers(selection: Any, criterion: str) -> None:
    with pytest.raises(SpecError, match="'illness' is sensitive") as caught:
        af.anonymize(FRAME, **WORDS, selections=["age > 40", selection], criterion=criterion)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith("selections")


@pytest.mark.parametrize("selection", TARGET, ids=str)
def test_a_target_is_refused_where_it_is_capped(selection: Any) -> None:
    assert af.anonymize(FRAME, **WORDS, selections=[selection]).report["asked"]["selections"] == 1
    with pytest.raises(SpecError, match="'outcome' is a target that max_confidence caps"):
        af.anonymize(FRAME, **WORDS, selections=[selection], max_confidence=0.9)


def test_all_faults_are_told_together_by_their_number() -> None:
    with pytest.raises(SpecError) as caught:
        af.anonymize(FRAME, **WORDS, selections=["age > 30", "illness = 'flu'", "ward = 'a' AND illness = 'cold'"])
    assert [fault.split(":")[0] for fault in caught.value.faults] == [
        "selections[1]",
        "selections[2]",
    ]


def test_other_columns_can_be_selected_by() -> None:
    found = af.anonymize(FRAME, **WORDS, max_confidence=0.9, selections=["ward = 'a' AND age > 30", {"each": "ward"}])
    assert found.report["asked"]["selections"] == 2


def test_a_spec_and_an_estimator_refuse_it_too() -> None:
    text = """
        version = 1
        [columns.age]
        role = "quasi-identifier"
        [columns.illness]
        role = "sensitive"
        diversity = "none"
        reason = "made-up people"
        [privacy]
        k = 4
        [[workload.selections]]
        where = "illness = 'flu'"
    """
    with pytest.raises(SpecError, match="'illness' is sensitive"):
        make(af.parse_spec(text), source=FRAME.select("age", "illness"))
    pytest.importorskip("sklearn")
    estimator = af.Anonymizer(
        k=4, quasi_identifiers=["age"], sensitive=waived("illness"), selections=["illness = 'flu'"]
    )
    with pytest.raises(SpecError, match="'illness' is sensitive"):
        estimator.fit(FRAME.select("age", "illness"))
