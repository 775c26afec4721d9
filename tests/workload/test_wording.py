# SPDX-License-Identifier: Apache-2.0
"""Predicates are written so that they are read back."""

from __future__ import annotations

import numpy as np
from random_predicates import columns, random_frame, random_tree, written

from anonfit.workload.parsing import parse_predicate, predicate_text, quoted_name
from anonfit.workload.predicates import kinds_of
from anonfit.workload.truth import holds


def test_what_is_written_says_the_same() -> None:
    for seed in range(80):
        rng = np.random.default_rng(seed)
        frame = random_frame(rng)
        kinds = kinds_of(columns(), frame)
        predicate = parse_predicate(written(random_tree(rng)), kinds)
        again = parse_predicate(predicate_text(predicate), kinds)
        assert (holds(predicate, frame) == holds(again, frame)).all()


def test_names_that_are_words_of_sql_stand_in_quotes() -> None:
    assert [quoted_name(name) for name in ("age", "my col", "select", 'a"b')] == [
        "age",
        '"my col"',
        '"select"',
        '"a""b"',
    ]
