# SPDX-License-Identifier: Apache-2.0
"""A small spec to change, and the faults that a changed one has."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from anonfit.errors import SpecError
from anonfit.spec_reading import spec_of

SMALL = """
version = 1
[data]
source = "people.csv"
[columns.age]
role = "quasi-identifier"
[privacy]
k = 2
"""


def tables(**sections: Any) -> dict[str, Any]:
    return tomllib.loads(SMALL) | sections


def faults(found: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(SpecError) as caught:
        spec_of(found)
    return caught.value.faults


def fault(found: dict[str, Any]) -> str:
    (one,) = faults(found)
    return one


def column(**settings: Any) -> dict[str, Any]:
    return tables(columns={"age": {"role": "quasi-identifier", **settings}})
