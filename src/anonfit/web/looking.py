# SPDX-License-Identifier: Apache-2.0
"""What the page shows of a raw table to its owner: some rows, the shape of every column, what looks wrong in it,
hierarchies that lie beside it, and which records are alone and why. It runs in a process of its own, and its answers
stay on the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import combinations
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import AnonfitError, SpecError
from anonfit.release.bind import source_of
from anonfit.release.run import read_source
from anonfit.spec.kinds import Faults, read_section
from anonfit.spec.model import PrivacySpec, Spec
from anonfit.spec.settings import SECTIONS
from anonfit.tables.profile import proposal_toml, propose
from anonfit.tables.profile_roles import ColumnProposal, Proposal
from anonfit.tables.taxonomy_files import read_taxonomy

SHOWN_ROWS, LONGEST, BARS, MOST_VALUES = 50, 60, 14, 5000
SENTINELS = (-9, -99, -999, -9999, -1, 99, 999, 9999, 99999)
FEW_CODES = 12
PARTS = {"d": "day", "m": "month", "Y": "year", "y": "year"}
"""Of dates, in words."""
LARGEST_HIERARCHY = 4 << 20


def read_data(root: Path, data: Mapping[str, Any]) -> pl.DataFrame:
    """All rows of the source of a `[data]` table, read as that table says."""
    faults = Faults()
    section = SECTIONS["data"]
    held = section.holder(**read_section(section, {**data, "default_role": "insensitive"}, faults))
    if faults.sentences:
        raise SpecError(faults.sentences)
    spec = Spec(columns={}, privacy=PrivacySpec(k=1), data=held, folder=root)
    return read_source(spec, source_of(spec))[1]


def look(root: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """A proposed spec for a table with reasons, its first rows, and what is seen of every column."""
    frame = read_data(root, {key: value for key, value in data.items() if key not in ("missing_policy", "decide")})
    proposal = propose(frame, k=10)
    return {
        "spec": proposal_toml(proposal, source=str(data["source"]), taxonomies={}),
        "rows": frame.height,
        "unique_rows": proposal.unique_rows,
        "rows_below_k": proposal.rows_below_k,
        "separation": proposal.separation,
        "notes": list(proposal.notes),
        "columns": [_column(each, frame[each.name]) for each in proposal.columns],
        "suspicions": list(_suspicions(proposal, frame)),
        "hierarchies": _hierarchies(root, frame, str(data["source"])),
        "preview": {
            "head": frame.columns,
            "rows": [[_shown(value) for value in row] for row in frame.head(SHOWN_ROWS).iter_rows()],
        },
    }


def _shown(value: Any) -> str | None:
    return None if value is None else str(value) if len(str(value)) <= LONGEST else f"{str(value)[: LONGEST - 1]}…"


def _column(proposed: ColumnProposal, series: pl.Series) -> dict[str, Any]:
    names = ("distinct", "missing", "unique_share", "separation", "shape", "dtype", "effective", "date_format")
    return {
        **{name: getattr(proposed, name) for name in ("name", "role", "type", "reason", "decision")},
        **{name: getattr(proposed.profile, name) for name in names},
        "mask": proposed.taxonomy == "mask",
        "histogram": histogram(series),
    }


def histogram(series: pl.Series) -> list[tuple[str, int]]:
    """The shape of a column: ranges of numbers and dates in their order, of texts the most frequent first."""
    present = series.drop_nulls()
    if not len(present):
        return []
    if present.dtype.is_numeric() or present.dtype.is_temporal():
        return _ranges(present)
    return frequent_values(present.cast(pl.String, strict=False).value_counts(sort=True, name="rows"), len(present))


def frequent_values(counts: pl.DataFrame, rows: int) -> list[tuple[str, int]]:
    """The most frequent values of so many rows, and how many rows have others."""
    bars = [(str(_shown(value)), times) for value, times in counts.head(BARS).iter_rows()]
    rest = rows - sum(times for _, times in bars)
    return [*bars, ("…", rest)] if rest else bars


def _ranges(present: pl.Series) -> list[tuple[str, int]]:
    numbers = present.to_physical().cast(pl.Float64)
    numbers = numbers.filter(numbers.is_finite())
    if not len(numbers):
        return []
    low, high = (float(str(end)) for end in (numbers.min(), numbers.max()))
    if numbers.n_unique() <= BARS:
        counts = present.value_counts(name="rows").sort(present.name)
        return [(str(value), rows) for value, rows in counts.iter_rows()]
    width = (high - low) / BARS or 1.0
    places = ((numbers - low) / width).floor().clip(0, BARS - 1).cast(pl.Int32)
    counted = dict(places.value_counts(name="rows").iter_rows())
    ends = [low + width * place for place in range(BARS)]
    if present.dtype.is_temporal():
        moments = pl.Series(map(round, ends)).cast(present.to_physical().dtype).cast(present.dtype)
        names = [str(moment)[:10] for moment in moments]
    else:
        names = [f"{end:.6g}" for end in ends]
    return [(name, counted.get(place, 0)) for place, name in enumerate(names)]


# --- what looks wrong -------------------------------------------------------------------------------------------


def _suspicions(proposal: Proposal, frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """What a person should look at, with the edit of the spec that answers it."""
    for column in proposal.columns:
        if column.role in ("identifier", "entity"):
            continue
        profile, series = column.profile, frame[column.name]
        if texts := [text for text in profile.missing_texts if text]:
            yield _suspicion("missing_texts", column, texts, {"missing": texts})
        if other := profile.date_format_alternative:
            words = [
                re.sub("%(.)", lambda part: PARTS.get(part[1], part[0]), str(way))
                for way in (profile.date_format, other)
            ]
            yield _suspicion("date_format", column, words, {"date_format": other})
        if profile.shape == "numbers with a decimal comma":
            yield _suspicion("decimal_comma", column, [], {"decimal": ","})
        if series.dtype.is_integer() and column.type == "continuous":
            yield from _of_numbers(column, series.drop_nulls())


def _suspicion(kind: str, column: ColumnProposal, words: Sequence[str], edit: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "column": column.name, "words": words, "edit": edit}


def _of_numbers(column: ColumnProposal, numbers: pl.Series) -> Iterator[dict[str, Any]]:
    """Codes for missing, which lie far from the other values, and few codes that may be names."""
    for code in SENTINELS:
        times = int((numbers == code).sum())
        others = numbers.filter(numbers != code)
        if not times or not len(others):
            continue
        low, high = (int(float(str(end))) for end in (others.min(), others.max()))
        if (code < 0 <= low) or (code > high + max(high - low, 1) and times > 1):
            yield _suspicion("sentinel", column, [f"{times:,}", str(code)], {"missing": [str(code)]})
    if 2 < numbers.n_unique() <= FEW_CODES and column.role == "quasi-identifier":
        yield _suspicion("codes", column, [str(numbers.min()), str(numbers.max())], {"type": "nominal"})


# --- hierarchies beside the table -------------------------------------------------------------------------------


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _hierarchies(root: Path, frame: pl.DataFrame, source: str) -> dict[str, dict[str, Any]]:
    """For each column the hierarchy file of the folder that bears its name and holds its values, if there is one."""
    files = [path for pattern in ("*.csv", "*/*.csv", "*.json") for path in sorted(root.glob(pattern))]
    files = [path for path in files if path.is_file() and not path.is_symlink() and path != root / source]
    hierarchies: dict[str, dict[str, Any]] = {}
    for path in files:
        named = [name for name in frame.columns if _plain(name) and _plain(path.stem).endswith(_plain(name))]
        name = max(named, key=len, default=None)
        is_ours = ".anonfit-web" in path.parts or "runs" in path.parts
        if name is None or name in hierarchies or is_ours or path.stat().st_size > LARGEST_HIERARCHY:
            continue
        with suppress(AnonfitError, OSError):
            leaves = set(read_taxonomy(path).leaves)
            values = frame[name].drop_nulls().unique(maintain_order=True).head(MOST_VALUES).to_list()
            unknown = sum(str(value) not in leaves for value in values)
            if unknown < len(values):
                hierarchies[name] = {"file": path.relative_to(root).as_posix(), "unknown": unknown}
    return hierarchies


def values_of(frame: pl.DataFrame, column: str) -> dict[str, Any]:
    """The different values of a column and how often each occurs, for its hierarchy."""
    series = frame[column]
    counts = series.drop_nulls().value_counts(name="rows").sort(column)
    values = [(str(value), int(rows)) for value, rows in counts.head(MOST_VALUES).iter_rows()]
    ordered = series.dtype.is_numeric() or series.dtype.is_temporal()
    ends = [str(series.min()), str(series.max())] if ordered and len(counts) else []
    kind = "date" if series.dtype.is_temporal() else "number" if series.dtype.is_numeric() else "text"
    return {"values": values, "different": counts.height, "kind": kind, "ends": ends}


# --- who is alone -----------------------------------------------------------------------------------------------

MOST_COLUMNS, LARGEST_SET, SHOWN_RECORDS = 14, 3, 20
"""Columns that are combined, and columns of a combination, at most; records that are shown. Sets of columns by which a
record is alone are minimal sample uniques, as SUDA2 finds them.
"""

Hashes = NDArray[np.uint64]


def _hashes(frame: pl.DataFrame, columns: Sequence[str]) -> list[Hashes]:
    return [frame[name].hash(seed=seed).to_numpy() for seed, name in enumerate(columns)]


def _sizes(parts: Sequence[Hashes]) -> NDArray[np.int64]:
    """For every row, how many rows have the same values in these columns."""
    _, places, counts = np.unique(reduce(np.add, parts), return_inverse=True, return_counts=True)
    return counts.astype(np.int64)[places]


def combinations_of(frame: pl.DataFrame, columns: Sequence[str], k: int) -> dict[str, Any]:
    """Uniqueness and separation of each column, of each two, and of all together."""
    known = list(columns)[:MOST_COLUMNS]
    hashes = dict(zip(known, _hashes(frame, known), strict=True))
    figures, rows = [], frame.height
    for names in (*combinations(known, 1), *combinations(known, 2), *([tuple(known)] if len(known) > 2 else [])):
        sizes = _sizes([hashes[name] for name in names])
        figures.append(
            {
                "columns": list(names),
                "unique": float((sizes == 1).mean()),
                "below_k": float((sizes < k).mean()),
                "separation": 1.0 - float((sizes - 1).sum()) / max(rows * (rows - 1), 1),
            }
        )
    return {"combinations": figures, "left_out": list(columns)[MOST_COLUMNS:]}


def records_of(frame: pl.DataFrame, columns: Sequence[str], k: int) -> dict[str, Any]:
    """Group sizes of the raw table, and the records that fewest columns single out, with these columns."""
    known = list(columns)[:MOST_COLUMNS]
    hashes = _hashes(frame, known)
    together = _sizes(hashes)
    scores, reasons = _suda(hashes, frame.height)
    order = [int(row) for row in np.lexsort((-scores, together))[:SHOWN_RECORDS] if together[row] < k]
    sizes, counts = np.unique(together, return_counts=True)
    blame = np.zeros(len(known))
    for row, sets in reasons.items():
        for names in sets:
            blame[list(names)] += scores[row] / max(len(names), 1)
    return {
        "columns": known,
        "alone": int((together == 1).sum()),
        "below_k": int((together < k).sum()),
        "rows": frame.height,
        "of_size": {str(size): int(count // size) for size, count in zip(sizes.tolist(), counts.tolist(), strict=True)},
        "blame": dict(zip(known, (blame / (blame.sum() or 1)).tolist(), strict=True)),
        "records": [
            {
                "row": row + 1,
                "size": int(together[row]),
                "score": float(scores[row]),
                "values": [None if value is None else str(value) for value in frame.select(known).row(row)],
                "because": [[known[place] for place in names] for names in reasons.get(row, [])[:3]],
            }
            for row in order
        ],
    }


def _suda(hashes: Sequence[Hashes], rows: int) -> tuple[NDArray[np.float64], dict[int, list[tuple[int, ...]]]]:
    """The score of every row, and the smallest sets of columns by which it is alone."""
    scores, reasons = np.zeros(rows), dict[int, list[tuple[int, ...]]]()
    alone_by: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    sizes = range(1, min(LARGEST_SET, len(hashes)) + 1)
    for names in (names for size in sizes for names in combinations(range(len(hashes)), size)):
        alone = _sizes([hashes[name] for name in names]) == 1
        minimal = alone.copy()
        for part in combinations(names, len(names) - 1):
            if part:
                minimal &= ~alone_by[part]
                alone |= alone_by[part]
        alone_by[names] = alone
        scores[minimal] += factorial(len(hashes) - len(names))
        for row in np.flatnonzero(minimal)[: 50 * SHOWN_RECORDS]:
            reasons.setdefault(int(row), []).append(names)
    return scores, reasons
