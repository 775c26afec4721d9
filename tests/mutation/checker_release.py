# SPDX-License-Identifier: Apache-2.0
"""A release folder as the independent checker (checker.py) reads it: manifest, rows, whose they are, and where the
rows of the source belong. From the documents alone, nothing of the package.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from checker_files import Row, read_csv, read_program, read_typed
from checker_labels import Cells, Column, Wrong, canon, need
from checker_models import class_of, holds
from checker_regions import Recoding, read_recoding

from json_layout import json_text

KINDS = ("csv", "parquet", "arrow", "xlsx", "sav", "dta")
MANIFEST = {
    "format", "version", "anonfit", "packages", "engine", "algorithm", "spec", "data", "rows", "audit", "files",
    "created",
}  # fmt: skip
VERSION = re.compile(r"unknown|[0-9]+(\.[0-9]+)*(\.?[a-z]{1,4}[0-9]+)*(\+[a-z0-9.]{1,24})?")
DAY = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
RAW = ("sensitive", "target", "count", "sample-weight", "insensitive")
ROLES = (*RAW, "identifier", "quasi-identifier", "entity")
Box = tuple[Cells, ...]
Source = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Member:
    """A row as it is released, and whose it is where the source says so."""

    row: Row
    whose: Any = None
    box: Box = ()


@dataclass
class Release:
    """A folder as it is read, each part when it is first asked for."""

    folder: Path
    source: Source | None

    def json(self, name: str) -> Any:
        """A JSON file of the folder."""
        try:
            text = (self.folder / name).read_bytes().decode("utf-8")
            said = json.loads(text, parse_constant=refuse)
        except (OSError, ValueError, RecursionError):
            raise Wrong(f"{name} cannot be read") from None
        need(json_text(name, said) == text, f"{name} is written otherwise than files of a release are")
        return said

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest, with all of its parts."""
        said = self.json("manifest.json")
        need(isinstance(said, dict) and set(said) == MANIFEST, "the manifest has other parts than it should")
        need(said["format"] == "anonfit release" and said["version"] == 1, "the manifest is of another format")
        need(all(isinstance(said[part], dict) for part in ("spec", "data", "rows", "audit", "files")), "no manifest")
        need(set(said["rows"]) == {"released", "withheld", "dropped"}, "the manifest counts other rows")
        need(set(said["data"]) == {"file", "rows", "columns", "texts"}, "the manifest says otherwise of the data")
        spec = said["spec"]
        need({"data", "columns", "privacy", "method", "output"} <= set(spec), "the manifest has no whole spec")
        need(all(isinstance(part, dict) for part in spec.values() if part != 1), "the spec in the manifest is none")
        need(all(isinstance(column, dict) for column in spec["columns"].values()), "columns that are none")
        splits = [column["split"] for column in spec["columns"].values() if "split" in column]
        need(all(split in ("multiway", "binary", "subset") for split in splits), "a split that is none")
        made_by = [said["anonfit"], *said["packages"].values()]
        need(all(isinstance(one, str) and VERSION.fullmatch(one) for one in made_by), "a version that is none")
        need(isinstance(said["created"], str) and DAY.fullmatch(said["created"]), "a day that is none")
        return said

    @property
    def spec(self) -> dict[str, Any]:
        """What the manifest says was asked."""
        return self.manifest["spec"]

    @property
    def privacy(self) -> dict[str, Any]:
        """The claims."""
        return self.spec["privacy"]

    @property
    def form(self) -> str:
        """How values are written."""
        return self.spec["output"]["values"]

    def having(self, *roles: str) -> list[str]:
        """The columns of some roles."""
        return [name for name, column in self.spec["columns"].items() if column.get("role") in roles]

    @property
    def entity(self) -> str | None:
        """The column that says whose the rows are."""
        return next(iter(self.having("entity")), None)

    @property
    def count(self) -> str | None:
        """The column that says how many persons a row stands for."""
        return next(iter(self.having("count")), None)

    @cached_property
    def recoding(self) -> Recoding:
        """The recoding; of exactly the quasi-identifiers."""
        found = read_recoding(self.json("recoding.json"))
        names = [column.name for column in found.columns]
        need(names == self.having("quasi-identifier"), "the recoding is of other columns than the quasi-identifiers")
        return found

    @cached_property
    def keys(self) -> list[str]:
        """The released columns of the quasi-identifiers."""
        return [name for column in self.recoding.columns for name in column.released(self.form)]

    @cached_property
    def columns(self) -> list[str]:
        """The columns that the file must have; once it is read, in its order."""
        form, of = self.form, {column.name: column for column in self.recoding.columns}
        need(form in ("labels", "bounds", "representative"), "values of an unknown form")
        found = []
        for name, column in self.spec["columns"].items():
            need(column.get("role") in ROLES, "a column has an unknown role")
            found += of[name].released(form) if name in of else [name] if column["role"] in RAW else []
        return found

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of the data file, in the order of `columns`."""
        data = self.manifest["data"]
        need(data["file"] in [f"data.{kind}" for kind in KINDS], "the data file has another name")
        need(data["file"] == f"data.{self.spec['output'].get('format')}", "the data file is of another format")
        need(isinstance(data["texts"], list) and set(data["texts"]) <= set(data["columns"]), "texts that are none")
        path = self.folder / data["file"]
        read = {".csv": read_csv, ".parquet": read_typed, ".arrow": read_typed}.get(path.suffix, read_program)
        header, rows = read(path, data["texts"], self.spec["output"])
        need(header == data["columns"] and sorted(header) == sorted(self.columns), "the file has other columns")
        self.columns[:] = header
        return rows

    def at(self, names: Iterable[str]) -> list[int]:
        """The places of some columns."""
        return [self.columns.index(name) for name in names]

    def said(self, names: Iterable[str]) -> list[int]:
        """The places of what the file says of some quasi-identifiers."""
        of = {column.name: column.released(self.form) for column in self.recoding.columns}
        return self.at(one for name in names for one in of[name])

    @cached_property
    def demands(self) -> list[dict[str, Any]]:
        """The demands on sensitive columns."""
        found = self.privacy.get("diversity", [])
        need(isinstance(found, list) and all(isinstance(one, dict) for one in found), "demands that are none")
        need(
            all(one.get("column") in self.having("sensitive", "target") for one in found), "a demand on another column"
        )
        return found

    @cached_property
    def confidence(self) -> float:
        """The largest share that a class of a target may have in a group."""
        limit = self.privacy.get("max_confidence", 1.0)
        need(isinstance(limit, int | float) and 0 < limit <= 1, "a confidence that is none")
        return limit

    @cached_property
    def observed(self) -> bool:
        """Whether labels are of what records have."""
        found = self.spec["output"].get("regions")
        need(found in ("domain", "observed"), "unknown regions")
        need(found == "domain" or self.form == "labels", "observed regions that are no labels")
        return found == "observed"

    @cached_property
    def sets(self) -> list[tuple[list[str], int]]:
        """The sets of quasi-identifiers, each with its k."""
        k, given = self.privacy.get("k"), self.privacy.get("quasi_identifiers")
        names = self.having("quasi-identifier")
        need(whole(k) and k >= 1, "k is no number of persons")
        if given is None:
            return [(names, k)]
        need(isinstance(given, list) and given and all(isinstance(one, dict) for one in given), "sets that are none")
        sets = [(one.get("columns"), one.get("k", k)) for one in given]
        for columns, size in sets:
            need(isinstance(columns, list) and columns, "a set of no columns")
            need(set(columns) <= set(names) and len(set(columns)) == len(columns), "a set of other columns")
            need(whole(size) and size >= 1, "a k of a set is no number of persons")
        need({name for columns, _ in sets for name in columns} == set(names), "a quasi-identifier is in no set")
        return sets

    # --- persons --------------------------------------------------------------------------------------------------

    @cached_property
    def members(self) -> list[Member]:
        """The rows of the file, each with whose it is: the source says that of rows that are equal, taken together."""
        if self.entity is None or self.source is None:
            return [Member(row) for row in self.rows]
        known, kept = Counter(self.rows), [member for member in self.left.values() if member.row in set(self.rows)]
        return kept + [Member(row) for row in (known - Counter(member.row for member in kept)).elements()]

    def groups(self, names: Sequence[str], members: Iterable[Member], boxes: bool = False) -> dict[Row, list[Member]]:
        """The rows that share a combination of quasi-identifiers, as it is written or as a region."""
        of = [column.name for column in self.recoding.columns]
        places, found = [of.index(name) for name in names] if boxes else self.said(names), defaultdict(list)
        for member in members:
            found[tuple((member.box if boxes else member.row)[place] for place in places)].append(member)
        return found

    def weigh(self, member: Member) -> int:
        """How many persons a row stands for."""
        if self.count is None:
            return 1
        value = member.row[self.at([self.count])[0]]
        need(value is not None and value[0] == "n" and value[1] >= 1 and value[1] % 1 == 0, "a count counts nothing")
        return int(value[1])

    def persons(self, members: Iterable[Member]) -> int:
        """How many persons some rows are of."""
        if self.entity is not None and self.source is not None:
            return len({member.whose for member in members})
        return sum(map(self.weigh, members))

    def tally(self, members: Iterable[Member], column: str, of: Callable[[Any], Any] = lambda one: one) -> Counter[Any]:
        """How many persons have each value of a raw column, each person once for a value."""
        place, found = self.at([column])[0], Counter()
        if self.entity is not None and self.source is not None:
            return Counter(value for _, value in {(one.whose, of(one.row[place])) for one in members})
        for member in members:
            found[of(member.row[place])] += self.weigh(member)
        return found

    def ends(self, column: str, members: Sequence[Member]) -> list[Any]:
        """The least and the largest value that a table of some rows has in a raw column."""
        values = [member.row[self.at([column])[0]] for member in members]
        return [min(filter(None, values)), max(filter(None, values))] if any(values) else []

    # --- the source -----------------------------------------------------------------------------------------------

    @cached_property
    def left(self) -> dict[int, Member]:
        """The rows of the source that are to be released: those of groups that miss a demand are withheld, and the
        demands looked at again with the table that is left, until all hold."""
        alive = dict(self.routed)
        while missed := {
            id(member) for _, group in failing(self, list(alive.values()), boxes=True) for member in group
        }:
            alive = {number: member for number, member in alive.items() if id(member) not in missed}
        return alive

    @cached_property
    def routed(self) -> dict[int, Member]:
        """Every row of the source that has a region, as it is released."""
        assert self.source is not None
        boxes = {}
        for number in range(len(next(iter(self.source.values())))):
            cells = tuple(self.cell(column, number) for column in self.recoding.columns)
            if None not in cells and not self.lacking(number):
                boxes[number] = self.recoding.box(cells)
        texts = self.observed_labels(boxes) if self.observed else {}
        keys: dict[Box, dict[str, Any]] = {}
        for box in set(boxes.values()):
            written: list[Any] = []
            for place, (column, cells) in enumerate(zip(self.recoding.columns, box, strict=True)):
                written += (("t", texts[box][place]),) if texts else column.written(cells, self.form)
            keys[box] = dict(zip(self.keys, written, strict=True))
        found = {}
        for number, box in boxes.items():
            raw = {name: canon(self.source[name][number]) for name in self.columns if name not in keys[box]}
            row = tuple((keys[box] | raw)[name] for name in self.columns)
            found[number] = Member(row, self.source[self.entity][number] if self.entity else None, box)
        return found

    def missing(self, column: Column, number: int) -> bool:
        """Whether a quasi-identifier of a source row is missing."""
        assert self.source is not None
        raw = self.source[column.name][number]
        return canon(raw) is None or raw in self.spec["data"].get("missing", [""])

    def lacking(self, number: int) -> bool:
        """Whether a row is dropped: a quasi-identifier is missing, or under a tree any column that it may test."""
        assert self.source is not None
        if self.spec["data"].get("missing_policy") != "drop":
            return False
        tested = ("sensitive", "insensitive", "target") if self.spec["method"]["algorithm"] == "tree" else ()
        gap = any(self.missing(column, number) for column in self.recoding.columns)
        return gap or any(canon(self.source[name][number]) is None for name in self.having(*tested))

    def cell(self, column: Column, number: int) -> int | None:
        """The cell of a quasi-identifier of a source row; None where there is none."""
        assert self.source is not None
        if self.missing(column, number):
            return 0 if column.missing else None
        return column.cell(self.source[column.name][number])

    def observed_labels(self, boxes: Mapping[int, Box]) -> dict[Box, list[str]]:
        """What the records of each region really have, as labels."""
        assert self.source is not None
        members: dict[Box, list[int]] = defaultdict(list)
        for number, box in boxes.items():
            members[box].append(number)
        found: dict[Box, list[str]] = {}
        for box, numbers in members.items():
            found[box] = []
            for column in self.recoding.columns:
                cells = frozenset(self.cell(column, number) for number in numbers)
                known = [self.source[column.name][n] for n in numbers if not self.missing(column, n)]
                found[box].append(observed_label(column, cells, known))
        return found


def whole(value: Any) -> bool:
    """Whether this is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def refuse(_: str) -> Any:
    """Numbers that JSON does not have."""
    raise ValueError


def observed_label(column: Column, cells: Cells, known: Sequence[Any]) -> str:
    """The label of what records have in a column."""
    if column.kind == "leaves" or not known:
        return column.label(cells)
    if column.kind == "words":
        here = cells - {0} if column.missing else cells
        return column.label(cells | set(range(min(here), max(here))))
    values = [column.raw(value) for value in known]
    low, high = column.text(min(values)), column.text(max(values))
    both = f"{low}–{high}" if column.both_ends else f"[{low}, {high}]"
    text = low if low == high else both
    return f"missing or {text}" if column.missing and 0 in cells else text


def failing(release: Release, members: Sequence[Member], boxes: bool = False) -> Iterator[tuple[str, list[Member]]]:
    """The groups that miss a demand, in a table of some rows."""
    asked, limit = release.demands, release.confidence
    tables = {demand["column"]: release.tally(members, demand["column"]) for demand in asked}
    try:
        ends = {name: release.ends(name, members) for name in release.having("target")} if limit < 1 else {}
        for columns, size in release.sets:
            for group in release.groups(columns, members, boxes).values():
                if release.persons(group) < size:
                    yield "k", group
                for demand in asked:
                    if not holds(demand, release.tally(group, demand["column"]), tables[demand["column"]]):
                        yield demand["model"], group
                if limit < 1 and highest_share(release, group, ends) > limit + 1e-9:
                    yield "max_confidence", group
    except (KeyError, TypeError, ValueError):
        raise Wrong("a demand cannot be read") from None


def highest_share(release: Release, members: Sequence[Member], ends: Mapping[str, list[Any]]) -> float:
    """The largest share that a class of a target has of some rows of a table with these least and largest values."""
    told, found = {one["column"]: one for one in release.spec.get("workload", {}).get("targets", [])}, [0.0]
    for name, both in ends.items():
        target = told.get(name, {})
        counts = release.tally(members, name, lambda value, ends=both, target=target: class_of(value, target, ends))
        found.append(max(counts.values()) / counts.total())
    return max(found)
