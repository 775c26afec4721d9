# SPDX-License-Identifier: Apache-2.0
"""An attack on a release with a sample of raw records: each person is sought in the region that holds his or her
quasi-identifiers, and what the region's rows have in common is taken for the person's own.

It measures what the stated model allows, it does not look for faults: those are the audit's. The attacker knows the
recoding and all quasi-identifiers exactly, and nothing else.

Public figures are of at least k persons and leave out none or at least k, and a share of right guesses is told only if
none or at least k are right, and likewise wrong. Nearly the same could be computed from the released file by anybody.
How far guesses of numbers are off is told as a share, since the errors themselves tell of the largest values.

Beside it stands how many persons shared each raw combination of quasi-identifiers before anything was done, and how
many share a group now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.metrics.arrays import AnyIntegers, Flags, Floats, Integers
from anonfit.metrics.inference import SURE, Guesses, LearnedClasses, ReleasedRecords, Secret, guess, learn
from anonfit.privacy.disclosure import Disclosure
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen
from anonfit.tables.schema import Column, Persons, Role, Schema
from anonfit.workload.targets import TargetRequest, classes_of, is_numeric

PERSONS = 1000
"""Persons that are sought, if there are more."""


@dataclass(frozen=True, slots=True)
class SoughtPersons:
    """Persons that are sought: the node of each, -1 where one of the values is in no region, whether each is among the
    released records, and who each is where persons have several rows; for learning, the recoding and the cells.
    """

    nodes: AnyIntegers  # (person,)
    is_released: Flags  # (person,)
    entities: AnyIntegers | None = None  # (person,)
    recoding: Recoding | None = None
    cells: Sequence[NDArray[Any]] | None = None
    """The exact quasi-identifiers of the persons, as cells of the recoding; None: nothing is learned."""


@dataclass(frozen=True, slots=True)
class Attack:
    """What came of an attack."""

    persons: int
    """How many were sought."""
    linked: int
    """Of these, those whose region has released rows."""
    released: int
    """Persons of the release."""
    chance: float
    """Of taking the right one of the persons who share the region, averaged over all who were sought."""
    highest: float
    """The same for the person who is found most easily."""
    blind_chance: float
    """Of taking the right one of all persons, averaged."""
    alone: int
    """Persons who share their region with fewer than k - 1 others."""
    guesses: tuple[Guesses, ...]
    shared: Integers | None = field(default=None, compare=False, repr=False)
    """(person,) the persons who share the region of each who was sought."""
    learned: Mapping[str, LearnedClasses] = field(default_factory=dict)
    """What a model learned from the release is sure of, of columns that have classes."""


def link(recoding: Recoding, persons: pl.DataFrame, entities: NDArray[Any] | None = None) -> SoughtPersons:
    """Released persons by their raw rows: the region that holds each, -1 where the recoding does not know a value."""
    cells = recoding.cells(persons, unseen=Unseen.SUPPRESS)
    unknown = np.any(np.stack([codes < 0 for codes in cells]), axis=0)
    nodes = np.where(unknown, -1, recoding.nodes(cells)).astype(np.int32)
    return SoughtPersons(nodes, np.ones(len(nodes), np.bool_), entities, recoding, cells)


def draw_persons(
    rows: int,
    *,
    k: int,
    seed: int,
    counts: NDArray[Any] | None = None,
    entities: NDArray[Any] | None = None,
    size: int = PERSONS,
) -> Integers:
    """Row numbers of persons drawn at random, each person as likely as any other, in ascending order. (person,)

    A row may be drawn for several of the persons that it stands for (counts), and of a person with several rows
    (entities, from 0) one is taken. All are taken where fewer than k would be left out: what is told of a sample also
    tells of those who are not in it.
    """
    rng = np.random.default_rng(seed)
    row_of = np.arange(rows)  # (person,)
    if entities is not None:  # one of a person's rows, by chance
        order = rng.permutation(rows)
        row_of = order[np.unique(entities[order], return_index=True)[1]]
    ends = None if counts is None or entities is not None else np.cumsum(counts.astype(np.int64))
    persons = len(row_of) if ends is None or not rows else int(ends[-1])
    chosen = np.arange(persons) if persons - size < k else rng.choice(persons, size, replace=False)
    return np.sort(row_of[chosen] if ends is None else np.searchsorted(ends, chosen, side="right"))


def attack(records: ReleasedRecords, sample: SoughtPersons, secrets: Sequence[Secret], *, k: int) -> Attack:
    """Seek persons in a release: how surely they are found, and what is learned of their secrets."""
    used, sizes = records.sizes()
    released = records.persons().total()
    is_linked = np.isin(sample.nodes, used) & (sample.nodes >= 0)
    place = np.where(is_linked, np.searchsorted(used, sample.nodes), -1)
    shared = np.append(sizes, 0)[place]
    # Who is not in the release cannot be found in it, whoever is taken for this person.
    chances = np.where(is_linked & sample.is_released, 1 / np.maximum(shared, 1), 0.0)
    persons = len(place)
    return Attack(
        persons=persons,
        linked=int(is_linked.sum()),
        released=released,
        chance=float(chances.mean()) if persons else 0.0,
        highest=float(chances.max(initial=0.0)),
        blind_chance=float(sample.is_released.mean()) / released if persons and released else 0.0,
        alone=int((is_linked & (shared < k)).sum()),
        guesses=tuple(
            guess(secret, records, place, is_released=sample.is_released, entities=sample.entities)
            for secret in secrets
        ),
        shared=shared,
        learned={
            secret.column: learn(sample.recoding, records, secret, place, sample.cells)
            for secret in secrets
            if sample.recoding is not None and sample.cells is not None and not secret.are_numbers
        },
    )


DIGITS = 4


def attack_release(
    recoding: Recoding,
    schema: Schema,
    source: pl.DataFrame,
    nodes: AnyIntegers,
    persons: Persons,
    *,
    targets: Sequence[TargetRequest],
    k: int,
    least: int,
    seed: int,
) -> Attack:
    """Seek persons in their release by their raw records, and guess sensitive columns and targets. nodes: (row,) where
    each raw row was released, -1 if it was withheld; least: how many persons a public figure must cover.
    """
    released = np.flatnonzero(nodes >= 0)
    counts = None if persons.counts is None else persons.counts[released]
    entities = None if persons.entities is None else persons.entities[released]
    records = ReleasedRecords(nodes[released], counts, entities)
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
    if not is_numeric(request, column, values):
        return classes_of(request, column, values)[0], False
    from anonfit.tables.codebook import typed

    known = typed(column, values)
    known = known if known.dtype.is_numeric() else known.to_physical()
    numbers: Floats = known.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return numbers, True


def attack_content(
    outcome: Attack, rule: Disclosure, *, roles: Mapping[str, Role] | None = None, is_limited: bool = False
) -> dict[str, Any]:
    """What came of an attack, as it may be told; None stands for a share that too few persons are in, or not in. Where
    what a model learns is limited, something is told to hold the limit against.
    """
    inference = []
    for guesses in outcome.guesses:
        line = _guesses(guesses, rule, (roles or {}).get(guesses.column))
        if learned := outcome.learned.get(guesses.column):
            sure = _sure(learned, rule)
            line["learned"] = {
                "at_least": SURE,
                "sure": _nearly_sure(learned, rule) if is_limited and sure is None else sure,
                "right": None if sure is None or not learned.sure else _share(learned.right, learned.sure, rule),
                "sure_by_group": _share(learned.sure_by_group, learned.persons, rule),
            }
        inference.append(line)
    chance, highest, blind = _chances(outcome, rule)
    return {
        "persons": rule.rounded(outcome.persons),
        "linked": rule.share(outcome.linked, outcome.persons),
        "re_identification": {
            "chance": round(chance, DIGITS),
            "highest": round(highest, DIGITS),
            "blind_chance": round(blind, 8),
            "sharing_with_fewer_than_k": rule.number(outcome.alone),
        },
        "inference": inference,
    }


def _sure(learned: LearnedClasses, rule: Disclosure) -> float | None:
    """The share of persons that the model is sure of. Everybody can count those whose groups make one sure, so it is
    not told where the two differ by few persons.
    """
    differ_by_few = map(rule.below_threshold, (learned.only_learned, learned.only_by_group))
    return None if any(differ_by_few) else _share(learned.sure, learned.persons, rule)


def _nearly_sure(learned: LearnedClasses, rule: Disclosure) -> float | str:
    """The same to hold a limit against: in words where few persons are meant, or all but few; else as if nobody were
    told apart by the model alone, or by the groups alone, where few are.
    """
    told = rule.share(learned.sure, learned.persons)["persons"]
    if isinstance(told, str):
        return told
    enough = [0 if rule.below_threshold(only) else only for only in (learned.only_learned, learned.only_by_group)]
    persons = learned.sure_by_group + enough[0] - enough[1]
    share = _share(persons, learned.persons, rule)
    return str(rule.share(persons, learned.persons)["persons"]) if share is None else share


def _guesses(guesses: Guesses, rule: Disclosure, role: Role | None) -> dict[str, Any]:
    line: dict[str, Any] = {"column": guesses.column, "role": None if role is None else str(role)}
    if guesses.are_numbers:
        return line | {
            "kind": "number",
            "error_saved": _saved(guesses.of_group, guesses.of_table),
            "error_saved_by_others": _saved(guesses.of_others, guesses.of_other_rows),
        }
    of_group, of_others, of_table, of_other_rows = (
        _share(hits, guesses.persons, rule)
        for hits in (guesses.of_group, guesses.of_others, guesses.of_table, guesses.of_other_rows)
    )
    return line | {
        "kind": "classes",
        "accuracy": of_group,
        "accuracy_by_others": of_others,
        "baseline": of_table,
        "gain": _difference(of_group, of_table),
        "gain_by_others": _difference(of_others, of_other_rows),
    }


def _chances(outcome: Attack, rule: Disclosure) -> tuple[float, float, float]:
    """The chances of taking the right record: on average, at most, and among all."""
    if outcome.shared is None or rule.rows_are_persons or not rule.min_persons:
        return outcome.chance, outcome.highest, outcome.blind_chance
    chances = 1 / np.maximum(rule.rounded(outcome.shared), 1)
    blind = 1 / max(rule.rounded(outcome.released), 1)
    return float(chances.mean()) if len(chances) else 0.0, float(chances.max(initial=0.0)), blind


def _saved(error: float, baseline: float) -> float:
    return round(1 - error / baseline, DIGITS) if baseline > 0 else 0.0


def _share(hits: float, persons: int, rule: Disclosure) -> float | None:
    """A share of right guesses; None where few are right, or wrong."""
    if not persons or rule.below_threshold(ceil(hits)) or rule.below_threshold(ceil(persons - hits)):
        return None
    # With more digits, shares would tell of how many persons they are.
    return round(hits / persons, DIGITS if rule.rows_are_persons or not rule.min_persons else 2)


def _difference(share: float | None, other: float | None) -> float | None:
    return None if share is None or other is None else round(share - other, DIGITS)


# --- before anything was done, and by the sizes of groups --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InitialRisk:
    """Persons by how many share their raw quasi-identifiers."""

    persons: int
    risks: float
    """The sum over persons of one by how many share their combination: the rarest one, where they have several."""
    smallest: int
    alone: int
    below_k: int


def initial_risk(
    frame: pl.DataFrame, names: Sequence[str], *, k: int, entity: str | None, count: str | None
) -> InitialRisk:
    """Count the persons of every raw combination, and those who share theirs with fewer than k. With an entity column a
    person may have several combinations, and is alone if one of them is nobody else's; with a count column a row stands
    for several persons.
    """
    # Equal rows have equal hashes; that two others of millions have is far less likely than a fault of the machine.
    hashes = frame.select(names).hash_rows(seed=0)
    if entity is None and count is None:
        ordered = np.sort(hashes.to_numpy())
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return _risk([np.diff(np.append(starts, len(ordered)))], k)
    rows = pl.DataFrame({"combination": hashes, "persons": frame[entity or count or ""]})
    if entity is not None:
        return _risk_of_entities(rows, k)
    sizes = rows.group_by("combination").agg(pl.col("persons").cast(pl.Int64).sum())["persons"]
    return _risk([sizes.to_numpy().astype(np.int64)], k)


def _risk_of_entities(rows: pl.DataFrame, k: int) -> InitialRisk:
    """The risk where a person may have several rows, even of several combinations: each counts once."""
    sizes = rows.group_by("combination").agg(pl.col("persons").n_unique().alias("size"))
    placed = rows.join(sizes, on="combination")
    alone, below_k = (
        placed.filter(chosen)["persons"].n_unique() for chosen in (pl.col("size") == 1, pl.col("size") < k)
    )
    smallest = int(sizes["size"].to_numpy().min(initial=len(rows)))
    rarest = placed.group_by("persons").agg(pl.col("size").min())["size"].to_numpy()
    return InitialRisk(len(rarest), float((1 / rarest).sum()), smallest, alone, below_k)


def _risk(parts: Iterable[Integers], k: int) -> InitialRisk:
    """The risk from the persons of combinations, which may come in parts."""
    sums, smallest = np.zeros(4, np.int64), []
    for sizes in parts:
        sums += [sizes.sum(), len(sizes), np.count_nonzero(sizes == 1), sizes[sizes < k].sum()]
        smallest += [int(sizes.min())] if len(sizes) else []
    persons, combinations, alone, below_k = sums.tolist()
    return InitialRisk(persons, combinations, min(smallest, default=0), alone, below_k)


class CombinationCounter:
    """Counts the persons of raw combinations of rows that come in batches; no entity has several of these."""

    def __init__(self, *, has_counts: bool) -> None:
        """With `has_counts`, rows stand for several persons."""
        from anonfit.auditing.hashing import HashShards

        self.shards = HashShards(2 if has_counts else 1)

    def add(self, frame: pl.DataFrame, persons: Integers | None) -> None:
        """Some more rows: their raw quasi-identifiers, and how many persons each stands for."""
        hashes = frame.hash_rows(seed=0).to_numpy()
        self.shards.add(hashes, *([] if persons is None else [persons.astype(np.uint64)]))

    def risk(self, k: int) -> InitialRisk:
        """The risk of all rows."""
        return _risk((_sizes(*part) for part in self.shards.each()), k)


def _sizes(hashes: NDArray[np.uint64], persons: NDArray[np.uint64] | None = None) -> Integers:
    """The persons of every combination, each told by a hash."""
    if persons is None:
        return np.unique(hashes, return_counts=True)[1]
    _, places = np.unique(hashes, return_inverse=True)
    return np.bincount(places, weights=persons).astype(np.int64)


def initial_content(risk: InitialRisk, rule: Disclosure) -> dict[str, Any]:
    """The initial risk as it may be told.

    Who are alone is not told where few others are below k: these could be counted by subtraction. Nor is the average
    then, from which the number of combinations follows. Where persons have several rows, it would tell more of them
    than multiples of k do.
    """
    tellable = rule.may_disclose(risk.alone, risk.persons) and rule.may_disclose(risk.below_k, risk.persons)
    apart = not rule.below_threshold(risk.below_k - risk.alone)
    exact = rule.rows_are_persons or not rule.min_persons
    hidden = {"persons": "not told", "share": "not told"}
    return {
        "smallest": rule.number(risk.smallest),
        "alone": rule.share(risk.alone, risk.persons) if apart else hidden,
        "below_k": rule.share(risk.below_k, risk.persons),
        "average": risk.risks / risk.persons if tellable and apart and exact and risk.persons else None,
    }


MOST_BINS = 14


def group_bins(sizes: Integers) -> list[dict[str, int]]:
    """Groups and persons by size, in bins from `low` to `high` persons, both included, without empty bins. sizes:
    (group,) of released groups, so that no bin tells of fewer persons than share a group.
    """
    if not len(sizes):
        return []
    smallest, largest = int(sizes.min()), int(sizes.max())
    starts = [*([] if smallest else [0]), *_starts(max(1, smallest), max(1, largest))]  # rounded down, some may be 0
    place = np.searchsorted(starts, sizes, side="right") - 1
    groups = np.bincount(place, minlength=len(starts))
    persons = np.bincount(place, weights=sizes, minlength=len(starts))
    ends = [*(start - 1 for start in starts[1:]), int(sizes.max())]
    return [
        {"low": low, "high": high, "groups": int(number), "persons": int(total)}
        for low, high, number, total in zip(starts, ends, groups, persons, strict=True)
        if number
    ]


def _starts(smallest: int, largest: int) -> list[int]:
    """Where bins start: at every size if there are few, else each wider than the one before by the same factor."""
    if largest - smallest < MOST_BINS:
        return list(range(smallest, largest + 1))
    edges = np.geomspace(smallest, largest + 1, MOST_BINS + 1)
    return sorted({int(edge) for edge in np.ceil(edges[:-1] - 1e-9)})
