# SPDX-License-Identifier: Apache-2.0
"""The released file: its rows, read as a whole or in batches, the group of every row, and whether rows are sorted; what
the labels of groups mean, guessed from the source where nobody has said it, and whether they are the recoding's.

A table in memory is one batch. Of a larger one an audit keeps groups and counts, never all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from anonfit.auditing.boxes import LabelBoxes, as_moments, axis_of, box_space, distinct_texts, overlapping_boxes
from anonfit.auditing.coding import BoolArray, Coded, IntArray, as_numbers, dictionary, group_rows, is_text, join_codes
from anonfit.auditing.labels import Run, ValueSet, cell_reader, read_bounds, read_label, speller
from anonfit.auditing.meanings import LabelMeaning, LabelType
from anonfit.auditing.reading import AuditedTable, reading_options, require_columns, unreadable
from anonfit.auditing.recoding import ColumnParts, RegionGrid, RegionTree, parts_of
from anonfit.auditing.result import LabelCheck


def batches_of(table: AuditedTable, names: Sequence[str], rows_at_once: int | None) -> Iterator[AuditedTable]:
    """Some columns, `rows_at_once` rows at a time (None: all), in file order; one batch of a table without rows."""
    if rows_at_once is None:
        yield table
        return
    chosen, is_empty = table.only(names), True
    options = reading_options(whole_lines=table.whole_lines)
    frames = chosen.lazy.collect_batches(
        chunk_size=rows_at_once, maintain_order=True, engine="streaming", optimizations=options
    )

    def batch(frame: pl.DataFrame) -> AuditedTable:
        read = replace(chosen, lazy=frame.lazy(), width=max(1, len(names)))
        return replace(read, lazy=read.frame(names).lazy(), kind="clean")

    try:
        for frame in frames:
            yield batch(frame)
            is_empty = False
        if is_empty:
            yield batch(chosen.lazy.head(0).collect())
    except (PolarsError, OSError):  # their text may quote a record
        raise unreadable(table.label) from None


@dataclass(frozen=True, slots=True)
class GroupRuns:
    """The group of every row as runs of rows in one group, in file order; neighbours are never in one group."""

    group: IntArray  # (run)
    ends: IntArray  # (run) the row after its last

    @property
    def are_groups(self) -> bool:
        """Whether every group is one run: its rows stand together."""
        return len(self.group) == len(np.unique(self.group))

    def of_rows(self, begin: int, end: int) -> IntArray:
        """The groups of some rows."""
        first, last = np.searchsorted(self.ends, [begin, end - 1], "right")
        edges = np.clip(np.append(begin, self.ends[first : last + 1]), begin, end)
        return np.repeat(self.group[first : last + 1], np.diff(edges))


@dataclass(frozen=True, slots=True)
class Released:
    """A table, its quasi-identifiers with the columns that hold them, its groups, and one row of each group."""

    table: AuditedTable
    columns: Mapping[str, tuple[str, ...]]  # quasi-identifier -> columns of the file
    groups: int
    heads: pl.DataFrame  # (group) the quasi-identifiers' columns
    runs: GroupRuns
    raw: tuple[str, ...]  # the columns that are released as they are
    rows_at_once: int | None  # None: the table is one batch

    @property
    def is_whole(self) -> bool:
        """Whether the table is one batch."""
        return self.rows_at_once is None

    @property
    def rows(self) -> int:
        """The number of rows of the file."""
        return int(self.runs.ends[-1]) if len(self.runs.ends) else 0

    @property
    def of_row(self) -> IntArray:
        """The group of every row."""
        return self.runs.of_rows(0, self.rows)

    @property
    def suppressed(self) -> BoolArray:
        """The groups with a star in every quasi-identifier, as other tools write rows that they suppress."""
        if not self.heads.width:
            return np.zeros(self.groups, np.bool_)
        stars = pl.all_horizontal(pl.all().cast(pl.String).eq_missing("*"))
        return self.heads.select(stars).to_series().to_numpy()

    def batches(self) -> Iterator[tuple[AuditedTable, IntArray]]:
        """The raw columns of the file, and the group of every row."""
        if self.is_whole:
            yield self.table, self.of_row
            return
        begin = 0
        for batch in batches_of(self.table, self.raw or self.table.names[:1], self.rows_at_once):
            end = begin + batch.height()
            yield batch.shortened(), self.runs.of_rows(begin, end)
            begin = end


def open_released(table: AuditedTable, quasi_identifiers: Sequence[str], rows_at_once: int | None = None) -> Released:
    """Read the quasi-identifiers of a table and group its rows; groups are numbered as they appear."""
    columns: dict[str, tuple[str, ...]] = {}  # a quasi-identifier stands as it is, or as its bounds
    for name in quasi_identifiers:
        bounds = tuple(f"{name}_{end}" for end in ("lower", "upper", "missing") if f"{name}_{end}" in table.schema)
        is_bound = name not in table.schema and {f"{name}_lower", f"{name}_upper"} <= set(bounds)
        columns[name] = bounds if is_bound else (name,)
    require_columns(
        table, [name for name, (first, *_) in columns.items() if name == first], purpose="a quasi-identifier"
    )
    names = [column for held in columns.values() for column in held]
    keys = frozenset(names)  # a file may have very many columns
    raw = tuple(name for name in table.names if name not in keys)
    if rows_at_once is None:
        table = table.loaded(names).shortened()
    heads: list[pl.DataFrame] = []
    begins, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    rows = seen_heads = 0
    for batch in batches_of(table, names, rows_at_once):
        frame = batch.frame(names)
        height = frame.height if names else batch.height()
        grouping = group_rows(frame, height)
        changed = np.flatnonzero(np.append(True, grouping.of_row[1:] != grouping.of_row[:-1]))[:height]
        begins.append(rows + changed)
        places.append(seen_heads + grouping.of_row[changed])
        heads.append(frame[grouping.first] if names else frame)
        rows, seen_heads = rows + height, seen_heads + grouping.count
    group, edges = np.concatenate(places), np.append(np.concatenate(begins), rows)
    runs, every = GroupRuns(group, edges[1:]), heads[0]
    if len(heads) > 1:
        every = pl.concat(heads)
        merged = group_rows(every, len(every))
        group = merged.of_row[group]
        last = np.append(group[1:] != group[:-1], True)[: len(group)]
        runs, every, seen_heads = GroupRuns(group[last], edges[1:][last]), every[merged.first], merged.count
    return Released(table, columns, seen_heads, every, runs, raw, rows_at_once)


class RowOrder:
    """Rows held against the order of their columns, batch after batch: by the quasi-identifiers, then by the others, in
    file order; texts by UTF-8 bytes, missing first.

    Texts of numbers may be in either order, but in one of them from the first row to the last.
    """

    def __init__(self, released: Released) -> None:
        self.released = released
        self.sorted_as = {name: [True, True] for name in released.raw}
        self.last: pl.DataFrame | None = None
        self.last_group = -1
        held = frozenset(released.heads.columns)
        keys = [released.heads[name] for name in released.table.names if name in held]
        # Groups are numbered as they appear: one of several runs appears again, after others.
        neighbours = np.ones(max(0, released.groups - 1), np.bool_)
        self.heads_are_sorted = released.runs.are_groups and self._compare([keys], neighbours, whole=True)

    def add(self, batch: AuditedTable, groups: IntArray) -> None:
        """The next rows, and their groups."""
        if not self.is_sorted or not len(groups) or not self.released.raw:
            return
        if not self.released.is_whole:
            frame = batch.frame(self.released.raw)
            first, last = (frame[row].cast({pl.Enum: pl.String, pl.Categorical: pl.String}) for row in (0, -1))
            if self.last is not None and self.last_group == groups[0]:
                self._compare([pl.concat([self.last, first]).get_columns()], np.ones(1, np.bool_))
            self.last, self.last_group = last, int(groups[-1])
        chunks = batch.columns(self.released.raw)
        self._compare(chunks, groups[1:] == groups[:-1], whole=self.released.is_whole)

    @property
    def is_sorted(self) -> bool:
        """Whether groups and columns are in one of their orders, as far as rows were seen."""
        return self.heads_are_sorted and all(any(readings) for readings in self.sorted_as.values())

    def _compare(self, chunks: Iterable[list[pl.Series]], tied: BoolArray, *, whole: bool = False) -> bool:
        """Whether rows are sorted by columns, `tied` ones by these alone; of `whole` columns one order is enough."""
        rows: IntArray | None = None  # the tied rows, once they are few
        for series in (column for chunk in chunks for column in chunk):
            if rows is None and np.count_nonzero(tied) * 4 < len(tied):
                rows = np.flatnonzero(tied)
            if rows is None:
                here, after, known = slice(0, -1), slice(1, None), tied
            else:
                here, after, known = slice(0, len(rows)), slice(len(rows), None), np.ones(len(rows), np.bool_)
                series = series.gather(np.concatenate([rows, rows + 1]))
            good, equal = [False, False], known
            for place, order in enumerate(_orders(series)):
                first, second = order[here], order[after]
                equal = first.eq_missing(second).to_numpy() if place == 0 else equal
                falls = (second < first).fill_null(value=False) | (second.is_null() & first.is_not_null())
                good[place] = not (falls.to_numpy() & known).any()
                if good[place] and whole:
                    break
            before = self.sorted_as.get(series.name, [True, True])
            self.sorted_as[series.name] = [held and now for held, now in zip(before, good, strict=True)]
            if not any(self.sorted_as[series.name]):
                return False
            tied, rows = (tied & equal, None) if rows is None else (tied, rows[equal])
        return True


def _orders(series: pl.Series) -> Iterator[pl.Series]:
    """A column as something that has an order, missing being the lowest; texts of numbers may be in either order."""
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        texts = dictionary(series)
        for values in _orders(texts.values):
            yield pl.Series(np.append(0, values.rank("dense").to_numpy()).astype(np.int64).take(texts.codes))
        return
    yield series
    if series.dtype == pl.String and (numbers := as_numbers(series)).dtype != pl.String:
        yield numbers


Regions = Literal["any", "domain", "observed"]


@dataclass(frozen=True, slots=True)
class ReleasedLabels:
    """The different labels of one quasi-identifier, what they mean (None: no label), and the label of every group."""

    meaning: LabelMeaning
    sets: list[ValueSet | None]
    cells: list[list[Run] | None]  # of a recoding, that each label means; None: none, as of an empty cell
    of_group: IntArray
    empty: int | None  # the place in `sets` of an empty cell, which is no label; None: bounds may be empty

    @property
    def without_empty(self) -> list[ValueSet | None]:
        """What labels mean, as they are held against regions: an empty cell is none."""
        return [None if code == self.empty else values for code, values in enumerate(self.sets)]


def read_column(released: Released, name: str, meaning: LabelMeaning, regions: Regions | None) -> ReleasedLabels:
    """Read every different label once; in a release (`regions` are given), one that is not spelled so is none."""
    columns = [distinct_texts(released.heads[column]) for column in released.columns[name]]
    is_spelled = regions in ("domain", "observed") and meaning.missing is not None
    read = cell_reader(meaning) if meaning.has_cells or is_spelled else lambda _: None
    if len(columns) == 1:
        codes, texts = columns[0]
        values = [read_label(text, meaning) for text in texts]
        cells = [None if label is None else read(label) for label in values]
        if is_spelled:
            spelled = speller(meaning, observed=regions == "observed")
            for place, (text, label) in enumerate(zip(texts, values, strict=True)):
                if label is not None and not spelled(text, label, cells[place]):
                    values[place] = cells[place] = None
        return ReleasedLabels(meaning, [read_label(None, meaning), *values], [None, *cells], codes, empty=0)
    frame = pl.DataFrame({str(i): codes for i, (codes, _) in enumerate(columns)})
    grouping = group_rows(frame, frame.height)
    known: list[tuple[str | None, ...]] = [(None, *texts) for _, texts in columns]
    sets = []
    for first in grouping.first:
        ends = [texts[codes[first]] for texts, (codes, _) in zip(known, columns, strict=True)]
        sets.append(read_bounds(ends[0], ends[1], ends[2] if len(ends) > 2 else None, meaning=meaning))
    cells = [None if bounds is None else read(bounds) for bounds in sets]
    return ReleasedLabels(meaning, sets, cells, grouping.of_row, empty=None)


def read_columns(
    released: Released, meanings: Mapping[str, LabelMeaning], regions: Regions | None = None
) -> dict[str, ReleasedLabels]:
    """The labels of every quasi-identifier that has a meaning."""
    return {name: read_column(released, name, meanings[name], regions) for name in released.columns if name in meanings}


CellsOfGroups = dict[str, tuple[list[list[Run] | None], IntArray]]
"""Of every column, the runs of cells of a recoding that are each label, None for none, and the label of every group."""


def cells_of_groups(columns: Mapping[str, ReleasedLabels]) -> CellsOfGroups:
    """The cells that labels mean."""
    return {name: (column.cells, column.of_group) for name, column in columns.items()}


def boxes_of(
    released: Released, columns: Mapping[str, ReleasedLabels], *, without: BoolArray | None = None
) -> LabelBoxes | None:
    """The groups as boxes of raw values, but for those `without` any; None if some column has no meaning."""
    if len(columns) < len(released.columns):
        return None
    known = [[values for values in column.sets if values is not None] for column in columns.values()]
    axes = [axis_of(column.meaning, sets) for column, sets in zip(columns.values(), known, strict=True)]
    places = np.empty((released.groups, len(columns)), np.int64)
    for position, column in enumerate(columns.values()):
        places[:, position] = column.of_group
    sets = [column.sets for column in columns.values()]
    if without is None:
        return box_space(axes, sets, places)
    boxes = box_space(axes, sets, places[~without])
    return replace(boxes, group_of_box=np.flatnonzero(~without)[boxes.group_of_box])


def check_labels(
    columns: Mapping[str, ReleasedLabels],
    boxes: LabelBoxes | None,
    regions: Regions,
    tree: RegionTree | RegionGrid | None,
) -> LabelCheck:
    """Count labels that are none or not the recoding's, and groups that overlap or are no region of its tree."""
    unreadable, not_allowed = {}, {}
    for name, column in columns.items():
        codes = np.unique(column.of_group)
        used = [None if code == column.empty and regions != "any" else column.sets[code] for code in codes]
        known = [values for values in used if values is not None]
        unreadable[name] = len(used) - len(known)
        not_allowed[name] = sum(not _allowed(values, column.meaning, regions) for values in known)
    if boxes is None:
        return LabelCheck(unreadable, not_allowed, overlapping=None, no_region=None)
    groups = max(len(column.of_group) for column in columns.values())
    strangers = None if tree is None else count_strangers(cells_of_groups(columns), tree, groups=groups)
    return LabelCheck(unreadable, not_allowed, overlapping=overlapping_boxes(boxes), no_region=strangers)


def _allowed(values: ValueSet, meaning: LabelMeaning, regions: Regions) -> bool:
    """Whether the ends of a label's intervals are cuts or ends of the domain."""
    if regions != "domain" or meaning.tree is not None or values.everything:
        return True
    if meaning.type == "ordinal":
        last = len(meaning.order) - 1
        return all(not part.closed or part.lower == part.upper or part.upper == last for part in values.intervals)
    if meaning.cuts is None:
        return True
    low, high = meaning.domain  # None: open, as the end of an interval that is
    begins, ends = {low, *meaning.cuts}, meaning.cuts if high is not None else {None, *meaning.cuts}
    return all(
        part.lower in begins and (part.upper == high if part.closed else part.upper in ends)
        for part in values.intervals
    )


def count_strangers(labels: CellsOfGroups, tree: RegionTree | RegionGrid, *, groups: int) -> int:
    """How many groups are no region of the recoding: all (and at least one) if it is not one of these columns. Under
    regions = "domain" each group says exactly what one region is, so that its labels tell nothing else of its records.
    """
    if not tree.fits:
        return max(1, groups)
    parts = [parts_of(tree, name) for name in labels]
    of_group = []
    for held, (cells_of_label, label_of_group) in zip(parts, labels.values(), strict=True):
        number = {part: place for place, part in enumerate(held.listed())}
        part_of_label = [-1 if cells is None else number.get(tuple(cells), -1) for cells in cells_of_label]
        of_group.append(np.array(part_of_label, np.int64)[label_of_group])
    return strangers_among(of_group, parts, is_grid=isinstance(tree, RegionGrid))


def strangers_among(of_group: Sequence[IntArray], parts: Sequence[ColumnParts], *, is_grid: bool) -> int:
    """How many groups are no region, by the part of each group in every column (-1: none)."""
    known = np.all([held >= 0 for held in of_group], axis=0)
    groups, count = len(known), int(np.count_nonzero(known))
    if is_grid:  # every combination of parts is a region
        return groups - count
    every = [np.concatenate([group[known], held.of_region]) for group, held in zip(of_group, parts, strict=True)]
    codes = [Coded(column, max(1, held.count)) for column, held in zip(every, parts, strict=True)]
    keys, _ = join_codes(codes, len(every[0]))
    return groups - int(np.count_nonzero(np.isin(keys[:count], keys[count:])))


def guess_meanings(released: Released, source: AuditedTable) -> Mapping[str, LabelMeaning]:
    """A meaning per quasi-identifier under which all its labels can be read; a column without one is left out."""
    meanings = {}
    for name, columns in released.columns.items():
        if name not in source.schema:
            continue
        raw = source.frame([name]).to_series()
        if len(columns) > 1:
            meanings[name] = LabelMeaning(name, "date" if raw.dtype.is_temporal() else "continuous")
            continue
        labels = distinct_texts(released.heads[columns[0]])[1]
        for meaning in _candidates(name, raw):
            if name not in meanings and _fits(labels, meaning, raw):
                meanings[name] = meaning
    return meanings


def _candidates(name: str, raw: pl.Series) -> Sequence[LabelMeaning]:
    """What the raw values could be, the most telling first."""
    kinds: list[LabelType] = ["nominal"]
    texts, lost = raw.cast(pl.String) if is_text(raw) else None, raw.null_count()
    if raw.dtype.is_numeric() or (texts is not None and texts.cast(pl.Float64, strict=False).null_count() == lost):
        kinds.insert(0, "continuous")
    elif raw.dtype.is_temporal() or (texts is not None and as_moments(texts).null_count() == lost):
        kinds.insert(0, "date")
    return [LabelMeaning(name, kind) for kind in kinds]


def _fits(labels: Sequence[str], meaning: LabelMeaning, raw: pl.Series) -> bool:
    """Whether every label can be read and, of names, is made of raw values."""
    sets = [read_label(label, meaning) for label in labels]
    if meaning.type != "nominal":
        return None not in sets
    known = set(distinct_texts(raw)[1])
    return all(values is not None and known.issuperset(values.names) for values in sets)
