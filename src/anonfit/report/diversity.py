# SPDX-License-Identifier: Apache-2.0
"""What the audit found of sensitive columns and targets, as sentences with the worst group's figure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from anonfit.privacy.catalogue import MODELS
from anonfit.privacy.likeness import MaxConfidence

__all__ = ["diversity_content"]

TIE = 1e-9
"""Figures that are so near to each other are equal."""
SHORT = (Decimal("1e-6"), Decimal("1e15"))
"""Figures between these are written out, others with an exponent."""

Measured = Mapping[str, Any]
"""An entry of `diversity` of a public audit."""


def diversity_content(audit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A sentence for each model that was measured of a column; `audit` is a public one."""
    return [
        {"column": one["column"], "model": one["model"], "met": one["met"], "sentence": _within(one)}
        for one in audit.get("diversity", ())
    ]


def _within(one: Measured) -> str:
    """The sentence; with several quasi-identifiers it says in whose groups."""
    columns = one["settings"].get("quasi_identifier")
    if columns is None:
        return _sentence(one)
    return _sentence(one).replace(": ", f": in the groups of {', '.join(columns)}, ", 1)


def _sentence(one: Measured) -> str:
    found = one["found"]
    if not isinstance(found, int | float):  # not measured, infinite, or about too few persons to be told
        return f"{one['column']}: {one['sentence']}"
    if one["asked"] is None:
        values = "value" if found == 1 else "values"
        return f"{one['column']}: every group has at least {found:g} different {values}; nothing was asked of it."
    return f"{one['column']}: {_words(one)}"


def _number(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A figure with four digits, more where its whole part has more; a limit is not rounded to the wrong side."""
    written = Decimal(str(value))  # the shortest number that is meant
    if written and not SHORT[0] <= abs(written) < SHORT[1]:
        return f"{written.quantize(Decimal(1).scaleb(written.adjusted() - 3), rounding).normalize():e}"
    if float(value).is_integer():
        return f"{int(value):,}"
    exact = Decimal(value)
    digits = max(3 - exact.adjusted(), 0)
    # What was asked may be missed by a rounding error, which the audit forgives; so does the text.
    nearest = round(exact, digits)
    if abs(nearest - exact) > Decimal(TIE):
        nearest = exact.quantize(Decimal(1).scaleb(-digits), rounding=rounding)
    text = f"{nearest:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _words(one: Measured) -> str:
    """A model's sentence with the worst group's figure, and what was asked."""
    model = MODELS.get(one["model"], MaxConfidence)
    settings = {
        name: _number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in one["settings"].items()
    }
    rounding = ROUND_FLOOR if model.bound == "at least" else ROUND_CEILING
    found = model.sentence_of(settings).format(_number(one["found"], rounding))
    return f"{found} (asked: {model.bound} {_number(one['asked'])})."
