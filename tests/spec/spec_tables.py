# SPDX-License-Identifier: Apache-2.0
"""A small spec to change, and the faults that a changed one has."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from anonfit.errors import SpecError
from anonfit.spec.parse import spec_of

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


PEOPLE = """
version = 1
[data]
source = "people.csv"
[columns.name]
role = "identifier"
[columns.age]
role = "quasi-identifier"
[columns.city]
role = "quasi-identifier"
[columns.illness]
role = "sensitive"
diversity = "none"
reason = "made-up people"
[columns.outcome]
role = "target"
[columns.note]
role = "insensitive"
[privacy]
k = 2
"""


def people(columns: dict[str, dict[str, Any]] | None = None, **sections: Any) -> dict[str, Any]:
    """A spec with a column of every common role; `columns` adds settings to them."""
    found = tomllib.loads(PEOPLE)
    for name, settings in (columns or {}).items():
        found["columns"].setdefault(name, {}).update(settings)
    return found | sections


def demanded(*demands: dict[str, Any], **columns: dict[str, Any]) -> dict[str, Any]:
    """The people's spec with demands on its sensitive column."""
    columns["illness"] = {"diversity": None, "reason": None} | columns.get("illness", {})
    return people(columns, privacy={"k": 2, "diversity": [{"column": "illness", **demand} for demand in demands]})
