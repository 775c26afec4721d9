# SPDX-License-Identifier: Apache-2.0
"""What the audit found of sensitive columns and targets, with the worst group's figure, and what came of the attack, as
sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from anonfit.privacy.catalogue import MODELS
from anonfit.privacy.likeness import MaxConfidence

TIE = 1e-9
"""Figures that are so near to each other are equal."""
SHORT = (Decimal("1e-6"), Decimal("1e15"))
"""Figures between these are written out, others with an exponent."""

Measured = Mapping[str, Any]
"""An entry of `diversity` of a public audit."""


def diversity_content(audit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A sentence for each model that was measured of a column; `audit` is a public one."""
    return [
        {
            "column": measured["column"],
            "model": measured["model"],
            "met": measured["met"],
            "sentence": _within(measured),
        }
        for measured in audit.get("diversity", ())
    ]


def _within(measured: Measured) -> str:
    """The sentence of a finding; with several quasi-identifiers it says in whose groups."""
    columns = measured["settings"].get("quasi_identifier")
    if columns is None:
        return _sentence(measured)
    return _sentence(measured).replace(": ", f": in the groups of {', '.join(columns)}, ", 1)


def _sentence(measured: Measured) -> str:
    figure = measured["found"]
    if not isinstance(figure, int | float):  # not measured, infinite, or about too few persons to be told
        return f"{measured['column']}: {measured['sentence']}"
    if measured["asked"] is None:
        values = "value" if figure == 1 else "values"
        return f"{measured['column']}: every group has at least {figure:g} different {values}; nothing was asked of it."
    return f"{measured['column']}: {_words(measured)}"


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


def _words(measured: Measured) -> str:
    """A model's sentence with the worst group's figure, and what was asked."""
    model = MODELS.get(measured["model"], MaxConfidence)
    settings = {
        name: _number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in measured["settings"].items()
    }
    rounding = ROUND_FLOOR if model.bound == "at least" else ROUND_CEILING
    sentence = model.sentence_of(settings).format(_number(measured["found"], rounding))
    return f"{sentence} (asked: {model.bound} {_number(measured['asked'])})."


def attack_sentences(content: Mapping[str, Any]) -> list[str]:
    """What came of an attack, in words."""
    chances = content["re_identification"]
    sentences = [
        f"{content['persons']:,} persons were sought in the release by their exact quasi-identifiers. "
        f"The chance of taking the right record is {chances['chance']:.2%} on average and {chances['highest']:.2%} at "
        f"most; among all records it would be {chances['blind_chance']:.3%}."
    ]
    for line in content["inference"]:
        sentences.append(_guess_sentence(line))
        if "learned" in line:
            sentences.append(_learned_sentence(line["column"], line["learned"]))
    return sentences


def _learned_sentence(column: str, learned: Mapping[str, Any]) -> str:
    sure, right, by_group = (
        "a share that is not told, since too few are or are not," if share is None else f"{share:.1%}"
        for share in (learned["sure"], learned["right"], learned["sure_by_group"])
    )
    of_these = f", and right for {right} of these" if learned["sure"] else ""
    return (
        f"{column}: a model learned from all groups together is at least {learned['at_least']:.0%} sure of the value "
        f"of {sure} of the persons{of_these}; the groups alone make it as likely for {by_group}."
    )


def _off(saved: float) -> str:
    return f"{abs(saved):.1%} {'less' if saved >= 0 else 'more'} off"


def _guess_sentence(line: Mapping[str, Any]) -> str:
    column = line["column"]
    if line["kind"] == "number":
        return (
            f"{column}: guessing the mean of a person's group is {_off(line['error_saved'])} than guessing that of the "
            f"table; without the person's own record, {_off(line['error_saved_by_others'])}."
        )
    if line["accuracy"] is None or line["baseline"] is None:
        return f"{column}: how often it is guessed right is not told, since too few are right or wrong."
    by_others = line["accuracy_by_others"]
    own = "" if by_others is None else f", {by_others:.1%} without the person's own record"
    return (
        f"{column}: the commonest value of a person's group is right for {line['accuracy']:.1%}{own}; that of the "
        f"table for {line['baseline']:.1%}."
    )
