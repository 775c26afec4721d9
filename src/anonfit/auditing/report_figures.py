# SPDX-License-Identifier: Apache-2.0
"""The figures of a report against those that were counted: of the file, its groups and its columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl
from polars.selectors import by_name

from anonfit.auditing.folder import Folder
from anonfit.auditing.meanings import Meaning
from anonfit.auditing.promises import Promise
from anonfit.auditing.reading import open_table
from anonfit.auditing.recoded import read_meanings
from anonfit.auditing.result import UNKNOWN_PERSONS, Audit, Finding
from anonfit.auditing.settings import Settings
from anonfit.errors import RecodingError

__all__ = ["Json", "ToldReport", "alike", "as_recounted", "entries", "figures_told", "listed_objects"]

Json = Mapping[str, Any]
_OF_PERSONS = (
    "k",
    "persons",
    "counted",
    "sizes",
    "sets",
    "prosecutor",
    "marketer",
    "raw_columns",
    "diversity",
    "notes",
)
_OF_ROWS = ("rows", "quasi_identifiers", "suppressed_rows", "journalist", "joint", "sorted")


@dataclass(frozen=True)
class ToldReport:
    """A report, and what it is held against."""

    folder: Folder
    promise: Promise
    audit: Audit
    report: Json

    @cached_property
    def mine(self) -> dict[str, Any]:
        """The figures of this audit as a report has them."""
        return self.audit.public(self.promise.least)

    @cached_property
    def meanings(self) -> dict[str, Meaning]:
        """What labels mean."""
        recoding = Settings(self.folder.recoding, "the recoding", RecodingError)
        return read_meanings(recoding, self.promise.date_formats)

    @property
    def knows_persons(self) -> bool:
        """Whether persons were counted, not rows in place of them."""
        return self.audit.counted != UNKNOWN_PERSONS


def as_recounted(name: str, same: bool, good: str, bad: str) -> Finding:
    """The finding that something told is what was recounted."""
    return Finding(name, "as recounted", "as recounted" if same else "another", same, good if same else bad)


def alike(one: Any, other: Any) -> bool:
    """Whether two values of JSON are the same, but for the last digits of numbers that are not whole."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return set(one) == set(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


def entries(value: Any) -> Json:
    """The entries of an object of JSON; of anything else, none."""
    return value if isinstance(value, Mapping) else {}


def listed_objects(value: Any) -> list[Json]:
    """The objects of a list of JSON; of anything else, none."""
    return [one for one in (value if isinstance(value, list) else ()) if isinstance(one, Mapping)]


def figures_told(told: ToldReport) -> Finding:
    """The figures of the report's audit, of its groups and columns are those of this audit, as far as both counted the
    same.
    """
    said, mine = told.report["audit"], told.mine
    names = (*_OF_ROWS, *_OF_PERSONS) if told.knows_persons else _OF_ROWS
    same = said.get("passed") is True and not set(said) - set(mine)
    same = same and all(alike(_in_order(name, said.get(name)), _in_order(name, mine[name])) for name in names)
    same = same and _groups_are_so(told) and _columns_are_so(told) and _sources_are_so(said, mine)
    same = same and told.report.get("formulas", []) == _formulas(told.folder)
    return as_recounted(
        "report figures",
        same,
        "The report tells the figures of the file.",
        "The report tells other figures of the file than were counted.",
    )


def _in_order(name: str, figures: Any) -> Any:
    """Models in an order that does not go by that of the columns."""
    return sorted(figures, key=repr) if name == "diversity" and isinstance(figures, list) else figures


def _groups_are_so(told: ToldReport) -> bool:
    """The bins of `group_sizes` have the groups and persons that they say, and leave none out. Of persons who may have
    several rows numbers are multiples of k, rounded down; and several regions may have the same representatives.
    """
    bins = told.report.get("group_sizes")
    if not isinstance(bins, list) or not all(_is_bin(one) for one in bins):
        return False
    if not told.knows_persons:
        return True
    step = told.promise.least if told.promise.only("entity") is not None else 1
    sizes: Counter[int] = Counter()
    for size, groups in told.audit.sizes.of_size.items():
        sizes[size // step * step] += groups
    if told.promise.values == "representative":
        persons = sum(size * groups for size, groups in sizes.items())
        return step > 1 or sum(one["persons"] for one in bins) == persons
    found = [
        (sum(sizes[size] for size in inside), sum(size * sizes[size] for size in inside))
        for inside in ([size for size in sizes if one["low"] <= size <= one["high"]] for one in bins)
    ]
    all_of_them = sum(groups for groups, _ in found) == sum(sizes.values())
    return all_of_them and found == [(one["groups"], one["persons"]) for one in bins]


def _is_bin(one: Any) -> bool:
    return isinstance(one, Mapping) and {name: type(one[name]) for name in one} == dict.fromkeys(
        ("low", "high", "groups", "persons"), int
    )


def _columns_are_so(told: ToldReport) -> bool:
    """Every column has its role and type, and as many different labels as the file has, and so has the detail."""
    lines, frequent = listed_objects(told.report.get("columns")), told.audit.frequent
    roles = [
        (name, role, told.meanings[name].type if role == "quasi-identifier" else None) for name, role in _roles(told)
    ]
    if [(one.get("name"), one.get("role"), one.get("type")) for one in lines] != roles:
        return False
    known = [(name, frequent[name].different if name in frequent else None) for name, _, kind in roles if kind]
    if [(one["name"], one.get("different")) for one in lines if one.get("type")] != known:
        return False
    if told.promise.values != "labels" or told.promise.regions != "domain":
        return True
    return all(_detail_is_so(one, told) for one in listed_objects(told.report.get("detail")))


def _roles(told: ToldReport) -> list[tuple[str, str]]:
    return list(told.promise.roles.items())


def _detail_is_so(line: Json, told: ToldReport) -> bool:
    """The labels of a column are as many as said, and the most frequent one is; of persons who may have several rows,
    rows were counted there, and they may not be here.
    """
    held = told.audit.frequent.get(str(line.get("column")))
    if held is None or line.get("labels") != held.different:
        return False
    if told.promise.only("entity") is not None:
        return True
    return line.get("frequent_persons") == held.persons and line.get("frequent_label") in held.labels


def _formulas(folder: Folder) -> list[str]:
    """The columns of a CSV file that a spreadsheet may take for formulas: by their name or by a text."""
    if folder.data.suffix != ".csv":
        return []
    table = open_table(folder.data, missing=(), lazily=True)
    texts = [_runs(by_name(name).as_expr()).alias(name) for name in table.names if name in folder.texts]
    found = table.lazy.select(texts).collect(engine="streaming").row(0, named=True) if texts else {}
    return [name for name in table.names if found.get(name) or pl.select(_runs(pl.lit(name))).item()]


def _runs(texts: pl.Expr) -> pl.Expr:
    """Whether some text begins as formulas do and is no number."""
    begun, number = r"^[=+\-@\t\r]", r"^[+-]\s?[\d.,]*(?:[eE][+-]?\d+)?\s?%?$"
    return (texts.str.contains(begun) & ~texts.str.contains(number)).any()


def _sources_are_so(said: Json, mine: Json) -> bool:
    """Labels are as good as they were found to be now, and the comparison with the source found nothing wrong: as it
    was now or, without the source, as it must have been. Observed labels were held against no regions.
    """
    beside = {"no_region": None}
    labels = [{**entries(one.get("labels")), **beside} for one in (said, mine)]
    if not alike(*labels) or said.get("_rounded") is not None:
        return False
    told, found = said.get("source"), mine["source"]
    if found is not None or told is None:
        return told is None or alike(_in_any_order(told), _in_any_order(found))
    none = {"persons": 0, "share": 0.0}
    perfect = {"by_labels": True, "not_in_source": [], "unmatched": none, "absent_inside": none, "in_several": none}
    named = {column["name"] for column in mine["raw_columns"]}
    return alike({**entries(told), "compared": []}, {**perfect, "compared": []}) and named >= set(told["compared"])


def _in_any_order(source: Json) -> dict[str, Any]:
    return {**source, "compared": sorted(map(str, source.get("compared", ())))}
