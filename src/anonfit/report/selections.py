# SPDX-License-Identifier: Apache-2.0
"""How well the selections of a workload can be answered: all of it for the owner of the data, and of it what everybody
may know.

What an attacker could do with public figures, who may well be the recipient that asked for the selections and so
knows their texts, and can count the answers in the released file:

- learn how many persons satisfy a predicate that few do, or all but few, in the table or in the answer: so a figure is
  told only if the persons asked for are at least k, and those not asked for, in the table and in the answer, none or at
  least k;
- subtract figures of selections that differ by few persons (`age >= 50` and `age >= 51`, or all values of a column but
  one): so there is one figure per selection from which the other follows, and it is told in multiples of k only.
  Nearly equal selections in great number still tell where the k-th, 2k-th … person lies: whoever chooses selections
  chooses what is counted, and the report says so;
- count the values that occur, where one selection was asked for each of them: so these are told as one, over the
  values that enough persons have;
- recognize what was asked for: selections are numbered, not named, and the warnings, which tell of values that do not
  occur, are not public.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.result import SelectionAnswers
from anonfit.privacy.disclosure import Disclosure
from anonfit.workload.selections import SelectionRequest

__all__ = ["internal_selections", "public_selections", "told_together"]


def internal_selections(found: SelectionAnswers, requests: Sequence[SelectionRequest], *, total: int) -> dict[str, Any]:
    """Everything about every selection, for the internal record; numbered as in the public report."""
    answers = found.answers
    places = _places(found, requests, total) or []
    numbers: list[int | None] = [number for number, place in enumerate(places, start=1) for _ in place]
    numbers = numbers or [None] * len(found.names)
    columns = {
        "weight": answers.weights,
        "true": answers.true,
        "answered": answers.answered,
        "imprecision": answers.imprecision,
        "precision": answers.precision,
        "recall": answers.recall,
    }
    figures = zip(*(column.tolist() for column in columns.values()), strict=True)
    return {
        "warnings": list(found.warnings),
        "total_imprecision": answers.total,
        "selections": [
            {"number": number, "name": name, **dict(zip(columns, row, strict=True))}
            for number, name, row in zip(numbers, found.names, figures, strict=True)
        ],
    }


def public_selections(
    found: SelectionAnswers | None, requests: Sequence[SelectionRequest], rule: Disclosure, *, total: int
) -> dict[str, Any] | None:
    """What everybody may know of how selections are answered; None if there are none.

    Args:
        found: The answers; None where they were not measured, as for new data of an earlier recoding.
        requests: The selections that were asked for.
        rule: What may be told: nothing where answers count rows of which a person may have several.
        total: All rows (or persons, where rows stand for several).
    """
    if not requests:
        return None
    least, found = rule.least, found if rule.rows_are_persons else None
    places: list[NDArray[np.int64]] | None = None if found is None else _places(found, requests, total)
    if found is None or places is None:
        return {"asked": len(requests), "multiples_of": least, "answers": []}
    enough = _has_enough(found, total=total, least=least)
    return {
        "asked": len(requests),
        "multiples_of": least,
        "answers": [
            {"number": number, **_figures(found, place[enough[place]], least)}
            for number, place in enumerate(places, start=1)
        ],
    }


def _places(
    found: SelectionAnswers, requests: Sequence[SelectionRequest], total: int
) -> list[NDArray[np.int64]] | None:
    """The answers of each request. One for each value of a column has as many as it needs to reach every row."""
    true = found.answers.true
    places, start = [], 0
    for request in requests:
        end = start + 1
        if request.each is not None:
            reached = np.flatnonzero(np.cumsum(true[start:]) == total)
            if not len(reached):
                return None
            end = start + int(reached[0]) + 1
        places.append(np.arange(start, end))
        start = end
    return places if start == len(true) else None


def _has_enough(found: SelectionAnswers, *, total: int, least: int) -> NDArray[np.bool_]:
    """Which selections ask for enough persons, leave none or enough of them out, and withhold nobody. (selection,)"""
    answers = found.answers
    rest = total - answers.true
    enough: NDArray[np.bool_] = (answers.true >= least) & ((rest == 0) | (rest >= least))
    enough &= answers.kept == answers.true
    return enough


def _figures(found: SelectionAnswers, place: NDArray[np.int64], least: int) -> dict[str, Any]:
    """The figures of some answers together, all from one count in multiples of `least`; None where it may not be told.

    A person that several of them have in vain counts several times, but never alone: then all of a group do.
    """
    answers = found.answers
    imprecision = int(answers.imprecision[place].sum())
    if not len(place) or 0 < imprecision < least:
        return {"imprecision": None, "precision": None, "recall": None}
    # Rounded down: rounding up would tell the exact count where it is `least`, since smaller ones are not told.
    told = imprecision // least * least
    return {"imprecision": told, "precision": round(1 - told / int(answers.answered[place].sum()), 2), "recall": 1.0}


def told_together(found: SelectionAnswers, rule: Disclosure, *, total: int) -> dict[str, Any]:
    """The figures of all selections that may be told, as one."""
    least = rule.least
    if not least:
        answered, kept = int(found.answers.answered.sum()), int(found.answers.kept.sum())
        return {"imprecision": answered - kept, "precision": kept / answered if answered else 1.0, "recall": 1.0}
    enough = np.flatnonzero(_has_enough(found, total=total, least=least))
    return _figures(found, enough if rule.rows_are_persons else enough[:0], least)
