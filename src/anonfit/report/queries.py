# SPDX-License-Identifier: Apache-2.0
"""How well the queries of a log are answered: all of it for the owner of the data, and of it what everybody may know.

Who asked a query can compute what the release answers. So what is told of how far that is from the truth obeys the rule
of `selections`: only of queries that mean at least k persons and leave out none or at least k, and all from one count
per query, the rows of its answer that it does not mean, in multiples of k. Whatever is told of all queries together is
computed from these. How far sums and means are from the true ones is not public: a sum may be mostly one person's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anonfit.metrics.queries import Measure, QueryAnswer
from anonfit.privacy.disclosure import Disclosure
from anonfit.workload.logs.tallies import Ask
from anonfit.workload.parsing import predicate_text

__all__ = ["internal_queries", "mean_error", "public_queries", "query_figures"]


def internal_queries(asks: Sequence[Ask], answers: Sequence[QueryAnswer], *, left_out: int) -> dict[str, Any]:
    """Everything about every query, for the internal record."""
    return {
        "judged": len(answers),
        "left_out": left_out,
        **query_figures(answers),
        "queries": [
            {
                "where": None if ask.predicate is None else predicate_text(ask.predicate),
                "groups": list(ask.groups),
                "times": one.times,
                "true": one.true,
                "answered": one.answered,
                "expected": round(one.expected, 1),
                "imprecision": one.imprecision,
                "precision": one.precision,
                "recall": one.recall,
                "errors": [_measure(measure) for measure in one.measures],
            }
            for ask, one in zip(asks, answers, strict=True)
        ],
    }


def _measure(measure: Measure) -> dict[str, Any]:
    of = measure.name if measure.column is None else f"{measure.name} of {measure.column}"
    return {"of": of, "groups": measure.groups, "error": measure.error}


def query_figures(answers: Sequence[QueryAnswer]) -> dict[str, float | None]:
    """Means over queries, each as often as it was asked: rows that were not meant, and relative errors."""
    times = sum(one.times for one in answers)
    if not times:
        return {}
    return {
        "imprecision": sum(one.times * one.imprecision for one in answers) / times,
        "precision": sum(one.times * one.precision for one in answers) / times,
        "recall": sum(one.times * one.recall for one in answers) / times,
        **{f"{name}_error": mean_error(answers, name) for name in ("count", "sum", "avg")},
    }


def mean_error(answers: Sequence[QueryAnswer], name: str) -> float | None:
    """The mean relative error of counts, sums or means; None where there are none."""
    found = [
        (one.times, measure.error)
        for one in answers
        for measure in one.measures
        if measure.name == name and measure.error is not None
    ]
    times = sum(count for count, _ in found)
    return sum(count * error for count, error in found) / times if times else None


def public_queries(answers: Sequence[QueryAnswer], rule: Disclosure, *, asked: int, total: int) -> dict[str, Any]:
    """What everybody may know of how queries are answered.

    Args:
        answers: Of the queries; none is told where they count rows of which a person may have several.
        rule: What may be told.
        asked: How many different queries there are.
        total: All rows (or persons, where rows stand for several).
    """
    least = rule.least
    told = [one for one in answers if rule.rows_are_persons and _may_tell(one, total, least)]
    content: dict[str, Any] = {"asked": asked, "told": len(told), "multiples_of": least}
    if not told:
        return content | {"imprecision": None, "precision": None, "count_error": None}
    rounded = [one.imprecision // least * least for one in told]
    answered = sum(one.answered for one in told)
    meant = [one.answered - vain for one, vain in zip(told, rounded, strict=True)]
    away = sum(abs(one.expected - rows) for one, rows in zip(told, meant, strict=True))
    return content | {
        "imprecision": sum(rounded),
        "precision": round(1 - sum(rounded) / answered, 2) if answered else 1.0,
        "count_error": round(away / sum(meant), 2) if sum(meant) else None,
    }


def _may_tell(one: QueryAnswer, total: int, least: int) -> bool:
    rest = total - one.true
    enough = one.true >= least and (rest == 0 or rest >= least) and one.kept == one.true
    return enough and not 0 < one.imprecision < least
