# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement: against InfoGain Mondrian on the same columns, by number of quasi-identifiers, over rows, and
its memory. Adult blown up as in section 5.3 of the paper, all 14 attributes.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from fresh import fresh_run

from anonfit.algorithms.demands import Requirement
from anonfit.algorithms.refining import Refining
from anonfit.algorithms.refining import refine as refine_rows
from anonfit.algorithms.refining_columns import Refined
from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import ClassTarget
from anonfit.engines.memory.engine import grow
from anonfit.engines.memory.refining import RowsToRefine
from anonfit.tables.codebook import code_column
from anonfit.tables.schema import CodedTable, Column, ColumnType, NominalSplit, Role, persons_of
from anonfit.tables.taxonomy import Taxonomy
from anonfit_papers.blow_up import blow_up, random_requirements
from anonfit_papers.datasets_adult import ADULT_TAXONOMIES, complete_adult

__all__ = ["HEADING", "measure_refining", "refining_section"]

HEADING = "## Top-down refinement"
K = 50
ROUNDS = 3
ROWS = 1_000_000
SIZES = (200_000, 500_000, 1_000_000, 2_000_000)
REQUIREMENTS = 30
CPU = ", all processors"

Found = dict[str, Any]


def coded(frame: pl.DataFrame, *, suppressed: bool) -> CodedTable:
    """All attributes in codes: names along their taxonomies, or to be suppressed."""
    domains, codes = [], []
    for name in frame.columns:
        tree = ADULT_TAXONOMIES.get(name)
        column = Column(name, Role.QUASI_IDENTIFIER)
        if tree is not None and suppressed:
            column = Column(name, Role.QUASI_IDENTIFIER, type=ColumnType.NOMINAL, split=NominalSplit.SUBSET)
        elif tree is not None:
            column = Column(name, Role.QUASI_IDENTIFIER, taxonomy=Taxonomy.from_tree(tree, column=name))
        found = code_column(column, frame[name], persons=persons_of(len(frame), None, None).of_groups, k=K)
        domains.append(found.domain.coded())
        codes.append(found.codes)
    return CodedTable(tuple(domains), tuple(codes), len(frame))


def _seconds(ways: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Median seconds of each way, interleaved, after one round that does not count; and those of all processors."""
    times: dict[str, list[float]] = {f"{name}{kind}": [] for name in ways for kind in ("", CPU)}
    for turn in range(rounds + 1):
        for name, work in ways.items():
            start, used = time.perf_counter(), time.process_time()
            work()
            if turn:
                times[name].append(time.perf_counter() - start)
                times[f"{name}{CPU}"].append(time.process_time() - used)
    return {name: statistics.median(found) for name, found in times.items()}


def measure_refining(folder: Path) -> Found:
    """All figures of the section, for the data folder of Adult."""
    adult = complete_adult(folder)
    names = [name for name in adult.columns if name != "class"]
    frame = blow_up(adult, max(SIZES), names)
    classes = np.unique(frame["class"].to_numpy(), return_inverse=True)[1].astype(np.int64)
    tables = {
        word: coded(frame.select(names), suppressed=word == "suppressed") for word in ("generalized", "suppressed")
    }
    found: Found = {"against": _against({word: _head(one, ROWS) for word, one in tables.items()}, classes[:ROWS])}
    print(found["against"], flush=True)
    found["several"] = _several({word: _head(one, ROWS) for word, one in tables.items()}, classes[:ROWS], names)
    print(found["several"], flush=True)
    found["rows"] = _over_rows(tables, classes, names)
    print(found["rows"], flush=True)
    found["memory"] = _memory(frame.head(ROWS), names)
    print(found["memory"], flush=True)
    return found


def _head(table: CodedTable, rows: int) -> CodedTable:
    return CodedTable(table.columns, tuple(codes[:rows] for codes in table.codes), rows)


def refine(table: CodedTable, classes: Any, asked: Sequence[Requirement], threads: int | None = None) -> Refined:
    """Refine the columns of a table in memory."""
    return refine_rows(RowsToRefine(table, classes, None, (), threads), asked, refining=Refining())


def _everything(table: CodedTable) -> list[Requirement]:
    return [Requirement(tuple(range(len(table.columns))), K)]


def _against(tables: dict[str, CodedTable], classes: Any) -> Found:
    """One quasi-identifier of all attributes, against InfoGain Mondrian on the same coded columns."""
    table, hidden = tables["generalized"], tables["suppressed"]
    purpose = SplitObjective(targets=(ClassTarget("class", classes, int(classes.max()) + 1),))
    ways: dict[str, Callable[[], object]] = {
        "mondrian": lambda: grow(table, K, purpose),
        "generalized": lambda: refine(table, classes, _everything(table)),
        "suppressed": lambda: refine(hidden, classes, _everything(hidden)),
        "one thread": lambda: refine(table, classes, _everything(table), threads=1),
    }
    steps = {word: len(refine(one, classes, _everything(one)).steps) for word, one in tables.items()}
    return {"seconds": _seconds(ways, 5), "steps": steps}


def _several(tables: dict[str, CodedTable], classes: Any, names: Sequence[str]) -> list[Found]:
    """Random requirements as in section 5.1.1 of the paper."""
    rows = []
    for seed in range(REQUIREMENTS):
        sets = random_requirements(names, seed)
        row: Found = {"quasi-identifiers": len(sets), "length": len(sets[0])}
        for word, table in tables.items():
            part, asked = _asked(table, sets)
            start = time.perf_counter()
            steps = refine(part, classes, asked).steps
            row |= {word: time.perf_counter() - start, f"{word} steps": len(steps)}
        rows.append(row)
    return rows


def _asked(table: CodedTable, sets: Sequence[Sequence[str]]) -> tuple[CodedTable, list[Requirement]]:
    """The columns of some quasi-identifiers, and these as requirements; other columns are released as they are."""
    named = {name for one in sets for name in one}
    kept = [place for place, column in enumerate(table.columns) if column.name in named]
    part = CodedTable(tuple(table.columns[p] for p in kept), tuple(table.codes[p] for p in kept), table.rows)
    places = {column.name: place for place, column in enumerate(part.columns)}
    return part, [Requirement(tuple(places[name] for name in one), K) for one in sets]


def _over_rows(tables: dict[str, CodedTable], classes: Any, names: Sequence[str]) -> list[Found]:
    rows = []
    for size in SIZES:
        table, hidden = (_head(tables[word], size) for word in ("generalized", "suppressed"))
        part, asked = _asked(table, random_requirements(names, 0))
        ways: dict[str, Callable[[], object]] = {
            "one": lambda table=table, size=size: refine(table, classes[:size], _everything(table)),
            "suppressed": lambda hidden=hidden, size=size: refine(hidden, classes[:size], _everything(hidden)),
            "several": lambda part=part, asked=asked, size=size: refine(part, classes[:size], asked),
        }
        rows.append({"rows": size, **_seconds(ways)})
    return rows


def _memory(frame: pl.DataFrame, names: Sequence[str]) -> list[Found]:
    """Seconds and peak memory (GiB) of fresh processes that make releases: refined, and split by InfoGain Mondrian."""
    columns: dict[str, dict[str, Any]] = {name: {"role": "quasi-identifier"} for name in names}
    for name, tree in ADULT_TAXONOMIES.items():
        columns[name]["taxonomy"] = tree
    columns["class"] = {"role": "target"}
    several = [{"columns": list(one)} for one in random_requirements(names, 0)]
    named = {name for one in several for name in one["columns"]}
    raw = {name: {"role": "insensitive", "release": True} for name in names if name not in named}
    found = []
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "input.parquet"
        frame.write_parquet(source)
        for words, method, privacy in (
            ("one quasi-identifier", {"algorithm": "tdr"}, {"k": K}),
            (f"{len(several)} quasi-identifiers", {"algorithm": "tdr"}, {"k": K, "quasi_identifiers": several}),
            ("InfoGain Mondrian", {"criterion": "infogain"}, {"k": K}),
        ):
            roles = columns | (raw if "quasi_identifiers" in privacy else {})
            spec = {"version": 1, "data": {"source": str(source)}, "columns": roles, "method": method}
            asked = json.dumps({**spec, "privacy": privacy})
            took, peak = fresh_run(asked, Path(place) / words)
            found.append({"what": words, "seconds": took, "peak": peak})
    return found


def _slope(rows: Sequence[Found], name: str) -> float:
    sizes, times = [np.log([row[key] for row in rows]) for key in ("rows", name)]
    return float(np.polyfit(sizes, times, 1)[0])


def refining_section(found: Found) -> list[str]:
    """The lines of the report."""
    return [
        HEADING,
        "",
        f"UCI Adult (45,222 complete records) blown up over all 14 attributes as in section 5.3 of the paper, k = {K}; "
        "rows already coded.",
        "",
        *_against_lines(found["against"]),
        *_several_lines(found["several"]),
        *_rows_lines(found["rows"]),
        "Fresh process, file to audited release, kernels compiled:",
        "",
        f"| {ROWS:,} rows, 14 attributes | seconds | peak memory |",
        "|---|---|---|",
        *(f"| {one['what']} | {one['seconds']:.1f} s | {one['peak']:.2f} GiB |" for one in found["memory"]),
        "",
    ]


def _against_lines(found: Found) -> list[str]:
    times, steps = found["seconds"], found["steps"]
    base = times["mondrian"]
    return [
        f"| {ROWS:,} rows, one quasi-identifier | seconds | against InfoGain Mondrian | refinements |",
        "|---|---|---|---|",
        f"| InfoGain Mondrian, same columns | {base:.3f} s | 1× | |",
        f"| generalized and discretized | {times['generalized']:.3f} s | {times['generalized'] / base:.2f}× | "
        f"{steps['generalized']} |",
        f"| the same on one thread | {times['one thread']:.3f} s | {times['one thread'] / base:.2f}× | |",
        f"| suppressed and discretized | {times['suppressed']:.3f} s | {times['suppressed'] / base:.2f}× | "
        f"{steps['suppressed']} |",
        "",
    ]


def _several_lines(rows: Sequence[Found]) -> list[str]:
    lines = [
        f"{len(rows)} random requirements on {ROWS:,} rows, means by number of quasi-identifiers:",
        "",
        "| quasi-identifiers | requirements | generalized | refinements | suppressed | refinements |",
        "|---|---|---|---|---|---|",
    ]
    for number in sorted({row["quasi-identifiers"] for row in rows}):
        some = [row for row in rows if row["quasi-identifiers"] == number]
        cells = []
        for word in ("generalized", "suppressed"):
            cells.append(f"{statistics.mean(row[word] for row in some):.2f} s")
            cells.append(f"{statistics.mean(row[f'{word} steps'] for row in some):.0f}")
        lines.append(f"| {number} | {len(some)} | {' | '.join(cells)} |")
    slowest = max(rows, key=lambda row: row["generalized"])
    told = f"{slowest['quasi-identifiers']} quasi-identifiers of {slowest['length']} attributes"
    return [*lines, "", f"The slowest takes {slowest['generalized']:.2f} s ({told}).", ""]


def _rows_lines(rows: Sequence[Found]) -> list[str]:
    words = {"one": "one quasi-identifier", "several": "several", "suppressed": "one, suppressed"}
    return [
        f"| rows | {' | '.join(words.values())} |",
        "|---" * (len(words) + 1) + "|",
        *(f"| {row['rows']:,} | {' | '.join(f'{row[name]:.3f} s' for name in words)} |" for row in rows),
        f"| log-log slope | {' | '.join(f'{_slope(rows, name):.2f}' for name in words)} |",
        f"| of processor time | {' | '.join(f'{_slope(rows, name + CPU):.2f}' for name in words)} |",
        "",
        "More rows also allow more refinements. Processor time leaves out what a shared machine did besides.",
        "",
    ]
