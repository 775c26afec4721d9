# SPDX-License-Identifier: Apache-2.0
"""Kernels of top-down refinement are compiled before a run, with a word about it, and no others are."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.engines.memory import refining_kernels
from anonfit.engines.memory import warming as engine
from anonfit.release import engine as warming
from waivers import waived


def compiled() -> dict[str, int]:
    return {name: len(item.signatures) for name, item in vars(refining_kernels).items() if hasattr(item, "signatures")}


@pytest.mark.parametrize("models", [False, True])
def test_a_run_compiles_nothing_more(models: bool) -> None:
    engine.warm_refining(models=models)
    before = compiled()
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "age": rng.integers(0, 90, 2000),
            "pay": rng.integers(0, 900, 2000),
            "town": rng.choice(list("abcdef"), 2000),
            "illness": rng.choice(list("xyz"), 2000),
        }
    )
    found = af.anonymize(
        frame.with_columns(out=(pl.col("age") > 40) | (pl.col("town") == "a")),
        quasi_identifiers=["age", "pay", "town"],
        k=10,
        targets=["out"],
        sensitive={"illness": {"model": "distinct-l", "l": 2}} if models else waived("illness"),
        algorithm="tdr",
    )
    assert found.refinements is not None
    assert len(found.refinements["steps"]) > 1
    assert compiled() == before


@pytest.mark.parametrize("refining", [False, True])
def test_what_is_compiled_is_said_and_only_that(refining: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(engine, "is_compiled", lambda **_: False)
    for name in ("warm_refining", "warm_weighing", "warm_up"):
        monkeypatch.setattr(engine, name, lambda name=name, **_: done.append(name))
    monkeypatch.setattr(warming.subprocess, "Popen", Started)
    told: list[str] = []
    Started.words = []
    warming.prepare(told.append, refining=refining)
    assert told[0].startswith("Compiling (once on this machine")
    assert done == (["warm_refining"] if refining else ["warm_weighing", "warm_up"])
    of_audit = [warming.AUDIT_ONLY in words for words in Started.words]
    assert of_audit in ([], [True] if refining else [False, True])  # with one core there is no other process


class Started:
    """A process that has nothing to do."""

    words: list[Any] = []  # noqa: RUF012

    def __init__(self, words: list[str], **_: Any) -> None:
        self.words.append(words)

    def wait(self) -> None:
        """It is done."""


def test_what_is_there_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, bool]] = []
    monkeypatch.setattr(engine, "is_compiled", lambda **words: asked.append(words) or True)
    told: list[str] = []
    warming.prepare(told.append, models=True, refining=True, ahead=False)
    assert told == []
    assert asked == [{"models": True, "refining": True}]
