# SPDX-License-Identifier: Apache-2.0
"""What an audit is asked: the tables to look at and the demands they must meet, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal

from anonfit.auditing.demands import DiversityDemand
from anonfit.auditing.meanings import Meaning
from anonfit.auditing.region_grid import RegionGrid
from anonfit.auditing.region_tree import RegionTree
from anonfit.auditing.released import Regions
from anonfit.auditing.result import Finding
from anonfit.auditing.risk import Threshold
from anonfit.errors import DataError, listed

__all__ = ["Attacker", "OtherRelease", "Request", "SetDemand", "check_request"]

Attacker = Literal["prosecutor", "journalist", "marketer"]


@dataclass(frozen=True, slots=True)
class OtherRelease:
    """A second release of the same table."""

    data: object
    quasi_identifiers: tuple[str, ...]
    meanings: Mapping[str, Meaning] | None  # None: guessed from the source
    left_out: Mapping[str, Any] = field(default_factory=dict)  # as of `Request`
    tree: RegionTree | RegionGrid | None = None  # that its representatives follow from; None: it has labels


@dataclass(frozen=True, slots=True)
class SetDemand:
    """One of several quasi-identifiers and the k asked of it."""

    columns: tuple[str, ...]
    k: int | None


@dataclass(frozen=True, slots=True)
class Request:
    """One audit."""

    data: object
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...] = ()
    k: int | None = None
    entity: str | None = None
    entities_lost: bool = False  # persons are entities, but nothing says which rows are whose
    count: str | None = None
    meanings: Mapping[str, Meaning] | None = None  # None: guessed from the source, if there is one
    sets: tuple[SetDemand, ...] = ()
    diversity: tuple[DiversityDemand, ...] = ()  # on sensitive columns
    targets: tuple[DiversityDemand, ...] = ()  # on targets
    max_risk: Threshold | None = None
    attacker: Attacker = "prosecutor"
    thresholds: tuple[Threshold, ...] = ()
    source: object = None
    withheld: int | range | None = None
    dropped: int | range | None = None  # of the rows that are absent, those left out for a missing value
    suppression_limit: float | None = None  # the share of the source's rows that may be withheld
    other: OtherRelease | None = None
    population: object = None
    sampling_fraction: float | None = None  # refused
    order: Literal["sorted"] | None = None
    expected_columns: tuple[str, ...] | None = None
    regions: Regions = "any"
    tree: RegionTree | RegionGrid | None = None  # every group must be one of its regions
    representatives: bool = False  # they stand in place of labels, and follow from the regions of `tree`
    drops_missing: bool = False  # rows with a missing quasi-identifier were left out on purpose
    complete: tuple[str, ...] = ()  # and then, beside quasi-identifiers, rows that lack a value of these
    leaves_out_unknown: bool = False  # and rows with a value that the recoding does not know: they lie in no region
    missing: tuple[str, ...] = ("",)  # texts that mean missing
    keys: tuple[str, ...] | None = None  # and in which columns of the source, where it has types; None: in all
    is_release: bool = False  # the data is a file of a release, in which nothing but an empty field means missing
    stripped: bool = False  # texts of a text file that is the source are without the blanks around them
    rows_at_once: int | None = None  # read so many rows at a time; None: tables fit in memory
    findings: tuple[Finding, ...] = ()  # made before the audit proper, by the checks of a release folder

    @property
    def left_out(self) -> dict[str, Any]:
        """Which rows of the source are in no group on purpose, as `locate_source` is told."""
        return {
            "drops_missing": self.drops_missing,
            "complete": self.complete,
            "leaves_out_unknown": self.leaves_out_unknown,
        }


def _is_whole(number: object) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def check_request(request: Request) -> None:
    """Raise on demands that contradict each other or cannot mean anything."""
    if not request.quasi_identifiers:
        raise DataError("An audit needs quasi-identifiers: name the columns that an attacker may know of a person.")
    for words, purpose in (
        (request.quasi_identifiers, "quasi-identifiers"),
        (request.sensitive, "sensitive columns"),
    ):
        twice = [name for name in dict.fromkeys(words) if words.count(name) > 1]
        if twice:
            raise DataError(f"Listed twice among the {purpose}: {listed(twice)}.")
    _check_roles(request)
    for number in (request.k, *(demand.k for demand in request.sets)):
        if number is not None and (not _is_whole(number) or number < 1):
            raise DataError("k is a whole number of at least 1: it counts the persons of the smallest group.")
    if request.sampling_fraction is not None:
        raise DataError(
            "A sampling fraction does not tell the journalist's risk: nobody knows whether a person who is alone in "
            "the sample has doubles in the population, and dividing by the fraction takes that for granted. Give the "
            "population itself (population=…, --population FILE), or go by the prosecutor's risk, which is never lower."
        )
    if request.other is not None and request.source is None:
        raise DataError("Comparing two releases needs the source: only its rows say who is in both labels.")
    if request.withheld is not None and request.source is None:
        raise DataError("Counting withheld rows needs the source.")
    if request.attacker == "journalist" and request.population is None:
        raise DataError("The journalist's risk needs the population that the table was drawn from.")
    if request.representatives and request.tree is None:
        raise DataError("Representatives follow from regions: give the nodes or parts of their recoding.")
    if request.targets and all(demand.column in request.quasi_identifiers for demand in request.targets):
        raise DataError(
            "'max_confidence' is of targets that are released as they are, and all those named are quasi-identifiers."
        )


def _check_roles(request: Request) -> None:
    inside = set(request.quasi_identifiers)
    names = dict.fromkeys([*request.sensitive, *(demand.column for demand in request.diversity)])
    both = [name for name in names if name in inside]
    if both:
        raise DataError(f"Both quasi-identifier and sensitive: {listed(both)}; a column has one of these roles.")
    for name, role in ((request.entity, "entity"), (request.count, "count")):
        if name in inside:
            raise DataError(f"The {role} column '{name}' cannot be a quasi-identifier.")
    if request.entity is not None and request.count is not None:
        raise DataError("Give an entity column or a count column, not both.")
    for demand in request.sets:
        outside = [name for name in demand.columns if name not in inside]
        if outside:
            raise DataError(f"A set of quasi-identifiers names columns that are none: {listed(outside)}.")
        if not demand.columns:
            raise DataError("A set of quasi-identifiers is empty: name the columns that someone could know together.")
    left = [name for name in inside if request.sets and all(name not in demand.columns for demand in request.sets)]
    if left:
        raise DataError(f"In no set of quasi-identifiers: {listed(left)}; a quasi-identifier must be in one.")


def column_sets(given: Sequence[object], k: int | None) -> tuple[SetDemand, ...]:
    """Several quasi-identifiers: mappings with columns and k as in the spec, or lists of columns; k is the default."""
    demands = []
    for entry in given:
        if isinstance(entry, Mapping):
            demands.append(SetDemand(tuple(entry["columns"]), entry.get("k", k)))
        elif isinstance(entry, Sequence) and not isinstance(entry, str):
            demands.append(SetDemand(tuple(entry), k))
        else:
            raise DataError("A set of quasi-identifiers is a list of columns, or a mapping with 'columns' and 'k'.")
    return tuple(demands)
