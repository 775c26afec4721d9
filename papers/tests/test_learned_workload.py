# SPDX-License-Identifier: Apache-2.0
"""A release made for what a log teaches answers other queries of the same kind far better than a blind one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anonfit.algorithms.result import Anonymized
from anonfit.algorithms.selections import answer_selections
from anonfit.release.draft import Draft
from anonfit.release.run import make
from anonfit.spec.model import SelectionSpec, Spec
from anonfit.spec.parse import parse_spec
from anonfit_papers.datasets_adult import complete_adult
from real_data import folder_with

NAMES = ("age", "workclass", "education-num", "marital-status", "occupation", "race", "sex", "hours-per-week")
JOBS = ("Sales", "Exec-managerial", "Prof-specialty", "Craft-repair", "Adm-clerical", "Other-service")
SHARE = 0.7
"""Of the imprecision of Median Mondrian."""


def adult() -> pl.DataFrame:
    folder = folder_with("uci/adult.data", "uci/adult.test")
    return complete_adult(folder)[:30162].select(*NAMES)


def by_hours(rng: np.random.Generator) -> str:
    low = rng.integers(17, 75)
    return f'age between {low} and {low + rng.integers(5, 25)} and "hours-per-week" >= {rng.choice([20, 30, 40, 50])}'


def by_job(rng: np.random.Generator) -> str:
    low = rng.integers(17, 75)
    return f"age between {low} and {low + rng.integers(5, 25)} and occupation = '{rng.choice(JOBS)}'"


def of_log(folder: Path, wheres: list[str], k: int) -> Spec:
    (folder / "log.sql").write_text("\n".join(f"select count(*) from adult where {one}" for one in wheres))
    columns = "".join(f'columns.{name}.role = "quasi-identifier"\n' for name in NAMES)
    return parse_spec(f"version = 1\nprivacy.k = {k}\nworkload.query_log.path = 'log.sql'\n{columns}", folder=folder)


def imprecision(made: Draft, wheres: list[str]) -> float:
    """Rows that queries get though they do not mean them."""
    assert made.source is not None
    assert made.nodes is not None
    rows = np.arange(len(made.source), dtype=np.uint32)
    found = answer_selections(
        [SelectionSpec(where=one) for one in wheres],
        made.schema,
        made.source,
        Anonymized(made.recoding, rows, made.nodes),
        k=made.spec.privacy.k,
    )
    return found.answers.total


SLOW = [(query, k) for query in (by_hours, by_job) for k in (5, 10, 25, 50, 100)]


@pytest.mark.parametrize(
    ("query", "k"),
    [(by_hours, 25), (by_job, 100), *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW)],
)
def test_held_out_queries_are_answered_far_better(
    tmp_path: Path, k: int, query: Callable[[np.random.Generator], str]
) -> None:
    frame = adult()
    rng = np.random.default_rng(k)
    known, held_out = [query(rng) for _ in range(300)], [query(rng) for _ in range(200)]
    learned = make(of_log(tmp_path, known, k), source=frame, threads=2)
    held_out = [one for one in held_out if one not in known]
    assert len(held_out) > 100
    spec = replace(
        learned.spec, workload=parse_spec("version = 1\nprivacy.k = 2\ncolumns.a.role = 'quasi-identifier'").workload
    )
    blind = make(
        replace(spec, method=replace(spec.method, criterion="median", weight_rule="first")), source=frame, threads=2
    )
    assert imprecision(learned, held_out) <= SHARE * imprecision(blind, held_out)
