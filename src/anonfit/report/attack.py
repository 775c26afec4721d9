# SPDX-License-Identifier: Apache-2.0
"""The attack of a report: persons are sought in their release by their raw records, and their sensitive values and
targets guessed; all of what came of it for the owner of the data, and of it what everybody may know.

Figures are of at least k persons and leave out none or at least k, and a share of right guesses is told only if none or
at least k are right, and likewise wrong. Nearly the same could be computed from the released file by anybody: the
attacker has no other means. How far guesses of numbers are off is told as a share, since the errors themselves tell of
the largest values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.metrics.attack import Attack, attack, draw_persons, link
from anonfit.metrics.guessing import Guesses, Records, Secret
from anonfit.metrics.learning import SURE, Learned
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.recoding import Recoding
from anonfit.tables.persons import Persons
from anonfit.tables.schema import Column, Role, Schema
from anonfit.workload.targets import TargetRequest, classes_of, is_numeric

if TYPE_CHECKING:
    import polars as pl

__all__ = ["attack_content", "attack_release", "attack_sentences"]

DIGITS = 4


def attack_release(
    recoding: Recoding,
    schema: Schema,
    source: pl.DataFrame,
    nodes: NDArray[np.integer[Any]],
    persons: Persons,
    *,
    targets: Sequence[TargetRequest],
    k: int,
    least: int,
    seed: int,
) -> Attack:
    """Seek persons in their release, by their raw records.

    Args:
        recoding: The recoding of the release.
        schema: What the columns are; sensitive ones and targets are guessed.
        source: The raw rows.
        nodes: (row,) the node that each raw row was released in, -1 if it was withheld.
        persons: Who the raw rows stand for.
        targets: The targets, with their classes.
        k: The persons that were asked of a group.
        least: The persons that a public figure must cover, and leave out if it leaves out any.
        seed: For drawing the persons.

    Returns:
        What came of it.
    """
    released = np.flatnonzero(nodes >= 0)
    counts = None if persons.counts is None else persons.counts[released]
    entities = None if persons.entities is None else persons.entities[released]
    records = Records(nodes[released], counts, entities)
    chosen = draw_persons(len(released), k=least, seed=seed, counts=counts, entities=entities)
    drawn = released[chosen]
    # Only who is in the release is sought: how many are withheld may be too few to be told.
    sample = link(recoding, source[drawn], None if entities is None else entities[chosen])
    asked = {target.column: target for target in targets}
    secrets = []
    for column in schema.of_role(Role.SENSITIVE, Role.TARGET):
        values, are_numbers = _values(asked.get(column.name, TargetRequest(column.name)), column, source[column.name])
        secrets.append(Secret(column.name, values[released], values[drawn], are_numbers))
    return attack(records, sample, secrets, k=k)


def _values(request: TargetRequest, column: Column, values: pl.Series) -> tuple[NDArray[Any], bool]:
    """The classes of a column, or its numbers (dates as days or smaller units), and whether it has numbers."""
    import polars as pl

    if not is_numeric(request, column, values):
        return classes_of(request, column, values)[0], False
    from anonfit.tables.codebook import typed

    known = typed(column, values)
    known = known if known.dtype.is_numeric() else known.to_physical()
    numbers: NDArray[np.float64] = known.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return numbers, True


def attack_content(found: Attack, rule: Disclosure, *, roles: Mapping[str, Role] | None = None) -> dict[str, Any]:
    """What came of an attack, as it may be told.

    Args:
        found: The attack.
        rule: What may be told.
        roles: Of the columns that were guessed.

    Returns:
        Plain data; None stands for a share of which too few persons are part, or not part.
    """
    inference = [
        _guesses(one, rule, (roles or {}).get(one.column)) | _learned(found.learned.get(one.column), rule)
        for one in found.guesses
    ]
    chance, highest, blind = _chances(found, rule)
    content = {
        "persons": rule.rounded(found.persons),
        "linked": rule.share(found.linked, found.persons),
        "re_identification": {
            "chance": round(chance, DIGITS),
            "highest": round(highest, DIGITS),
            "blind_chance": round(blind, 8),
            "sharing_with_fewer_than_k": rule.number(found.alone),
        },
        "inference": inference,
    }
    return content | {"sentences": attack_sentences(content)}


def _guesses(one: Guesses, rule: Disclosure, role: Role | None) -> dict[str, Any]:
    line: dict[str, Any] = {"column": one.column, "role": None if role is None else str(role)}
    if one.are_numbers:
        return line | {
            "kind": "number",
            "error_saved": _saved(one.of_group, one.of_table),
            "error_saved_by_others": _saved(one.of_others, one.of_other_rows),
        }
    right = [_share(hits, one.persons, rule) for hits in (one.of_group, one.of_others, one.of_table, one.of_other_rows)]
    return line | {
        "kind": "classes",
        "accuracy": right[0],
        "accuracy_by_others": right[1],
        "baseline": right[2],
        "gain": _difference(right[0], right[2]),
        "gain_by_others": _difference(right[1], right[3]),
    }


def _chances(found: Attack, rule: Disclosure) -> tuple[float, float, float]:
    """The chances of taking the right record: on average, at most, and among all."""
    if found.shared is None or rule.rows_are_persons or not rule.least:
        return found.chance, found.highest, found.blind_chance
    chances = 1 / np.maximum(rule.rounded(found.shared), 1)
    blind = 1 / max(rule.rounded(found.released), 1)
    return float(chances.mean()) if len(chances) else 0.0, float(chances.max(initial=0.0)), blind


def _learned(one: Learned | None, rule: Disclosure) -> dict[str, Any]:
    """What a model is sure of, of how many persons, and of which share of these it is right; None where these are few,
    or all but few.
    """
    if one is None:
        return {}
    sure = _share(one.sure, one.persons, rule)
    return {
        "learned": {
            "at_least": SURE,
            "sure": sure,
            "right": None if sure is None or not one.sure else _share(one.right, one.sure, rule),
            "sure_by_group": _share(one.sure_by_group, one.persons, rule),
        }
    }


def _saved(error: float, baseline: float) -> float:
    return round(1 - error / baseline, DIGITS) if baseline > 0 else 0.0


def _share(hits: float, persons: int, rule: Disclosure) -> float | None:
    """A share of right guesses; None where few are right, or wrong."""
    if not persons or rule.few(ceil(hits)) or rule.few(ceil(persons - hits)):
        return None
    # With more digits, shares would tell of how many persons they are.
    return round(hits / persons, DIGITS if rule.rows_are_persons or not rule.least else 2)


def _difference(share: float | None, other: float | None) -> float | None:
    return None if share is None or other is None else round(share - other, DIGITS)


def attack_sentences(content: Mapping[str, Any]) -> list[str]:
    """What came of an attack, in words."""
    found, chances = [], content["re_identification"]
    found.append(
        f"{content['persons']:,} persons were sought in the release by their exact quasi-identifiers. "
        f"The chance of taking the right record is {chances['chance']:.2%} on average and {chances['highest']:.2%} at "
        f"most; among all records it would be {chances['blind_chance']:.3%}."
    )
    for line in content["inference"]:
        found.append(_sentence(line))
        if "learned" in line:
            found.append(_learned_sentence(line["column"], line["learned"]))
    return found


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


def _sentence(line: Mapping[str, Any]) -> str:
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
