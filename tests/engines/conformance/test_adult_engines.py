# SPDX-License-Identifier: Apache-2.0
"""Adult, on every engine the same: levels are counted outside down to nodes of a thousand rows.

The records are no part of the package; ANONFIT_DATA says where they are.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from anonfit.errors import DataError
from anonfit.release.run import make
from anonfit.spec.keywords import spec_of_keywords
from anonfit_papers.purpose_tables import data_folder
from engines import ENGINES, FAST_ENGINES

NAMES = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "class",
]  # fmt: skip
TAXONOMIES = Path(__file__).parents[3] / "examples" / "adult"

REQUESTS: dict[str, dict[str, Any]] = {
    "median": {"criterion": "median"},
    "infogain": {"targets": ["column_15"], "criterion": "infogain"},
    "lsd": {"targets": ["column_13"], "criterion": "lsd"},
    "diverse": {
        "targets": ["column_15"],
        "criterion": "infogain",
        "sensitive": {"column_7": {"model": "entropy-l", "l": 4.0}},
    },
    "close": {"sensitive": {"column_13": {"model": "t-closeness", "t": 0.25}}, "criterion": "median"},
}
SOME = ("infogain", "close")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("request_name", REQUESTS)
def test_adult(engine: str, request_name: str) -> None:
    if engine not in FAST_ENGINES and request_name not in SOME:
        pytest.skip(f"{engine} is asked for {', '.join(SOME)} only, which takes long enough")
    try:
        source = data_folder() / "uci" / "adult.data"
    except DataError as error:
        pytest.skip(f"the records of Adult are not here: {error}")
    words = {
        "quasi_identifiers": [f"column_{NAMES.index(name) + 1}" for name in ("age", "workclass", "marital-status", "race", "sex", "capital-gain", "native-country")],
        "identifiers": ["column_3"],
        "taxonomies": {f"column_{NAMES.index(name) + 1}": str(TAXONOMIES / f"{name}.txt") for name in ("workclass", "marital-status")},
        "default_role": "insensitive",
        "missing": ["?"],
        "k": 25,
    }  # fmt: skip
    spec = spec_of_keywords(str(source), words | REQUESTS[request_name])
    expected = make(replace(spec, engine=replace(spec.engine, name="memory")))
    found = make(replace(spec, engine=replace(spec.engine, name=engine, hand_over=1000)))
    assert found.recoding.regions > 100
    assert found.recoding.to_json() == expected.recoding.to_json()
    assert_frame_equal(found.table, expected.table)
