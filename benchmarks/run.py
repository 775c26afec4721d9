# SPDX-License-Identifier: Apache-2.0
"""One command that measures speed and memory as ratios, everything interleaved in one run, and writes RESULTS.md.

.venv/bin/pip install '.[benchmark]' ./papers && .venv/bin/python benchmarks/run.py
.venv/bin/python benchmarks/run.py --largest 1000000      # without the ten million rows
.venv/bin/python benchmarks/run.py --only tdr             # measures one section anew, and puts it in its place
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent))
from decision_trees import decision_tree_section
from fresh import fresh_run
from growth import coded_table, growing_for_purposes, purpose_section, sklearn_tree
from instead import instead_section, measure_instead
from refining import HEADING, measure_refining, refining_section
from results import RESULTS, put_report, put_section

from tables import base_table, blow_up, data_folder, workload_of

K = 50
ROUNDS = 5
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
"""Settings that change how fast anybody is."""


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def tables_of(
    names: tuple[str, ...], frame: pl.DataFrame, source: Path, kind: str, target: str | None = None
) -> dict[str, object]:
    """A spec: the quasi-identifiers, all other columns as they are; blind (Median), or for a target (InfoGain)."""
    columns: dict[str, dict[str, object]] = {name: {"role": "insensitive", "release": True} for name in frame.columns}
    for name in names:
        columns[name] = {"role": "quasi-identifier"}
        if frame[name].dtype == pl.String:
            columns[name]["type"] = "nominal"
    purpose: dict[str, object] = {"method": {"criterion": "median"}}
    if target is not None:
        columns[target] = {"role": "target"}
        purpose = {"method": {"criterion": "infogain"}, "workload": {"targets": [target]}}
    return {
        "version": 1,
        "data": {"source": str(source)},
        "columns": columns,
        "privacy": {"k": K},
        "output": {"format": kind},
        **purpose,
    }


def as_toml(tables: dict[str, Any]) -> str:
    """A spec as text: numbers, texts, words for yes and no, and lists of these are written as in JSON."""
    columns = {f'columns."{name}"': entries for name, entries in tables["columns"].items()}
    lines = [f"version = {tables['version']}"]
    for name, entries in {**tables, **columns}.items():
        if name not in ("version", "columns"):
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in entries.items())]
    return "\n".join(lines)


def growing(names: tuple[str, ...], frame: pl.DataFrame, *, against: bool) -> dict[str, float]:
    """Growing alone, against one tree of scikit-learn with the same least leaf, and on one thread."""
    from anonfit.engines.memory.engine import grow

    table = coded_table(names, frame, K)
    features = np.stack(table.codes, axis=1).astype(np.float64) if against else None
    labels = np.random.default_rng(0).random(len(frame)) < 0.25
    times: dict[str, list[float]] = {"grow": [], "one thread": [], "tree": []}
    for turn in range(ROUNDS + 1):
        found = {
            "grow": seconds(lambda: grow(table, K)),
            "one thread": seconds(lambda: grow(table, K, threads=1)),
        }
        if features is not None:
            found["tree"] = seconds(lambda: sklearn_tree(features, labels, K))
        if turn:
            for key, value in found.items():
                times[key].append(value)
    return {key: statistics.median(value) for key, value in times.items() if value}


def file_to_release(
    names: tuple[str, ...], frame: pl.DataFrame, folder: Path, kind: str, rounds: int
) -> dict[str, dict[str, float]]:
    """File to release in a warm process, for a target and blind, against polars reading the same input and writing the
    same output.
    """
    from anonfit.api import run
    from anonfit.spec.parse import spec_of

    source, out = folder / f"input.{kind}", folder / "release"
    getattr(frame, f"write_{kind}")(source)
    ways = {"InfoGain, one target": workload_of(frame)[2], "Median": None}
    specs = {way: spec_of(tables_of(names, frame, source, kind, target)) for way, target in ways.items()}
    times: dict[str, dict[str, list[float]]] = {
        way: {"polars": [], "with audit": [], "without audit": []} for way in ways
    }
    for turn, (way, spec) in product(range(rounds + 1), specs.items()):
        read = seconds(lambda: getattr(pl, f"read_{kind}")(source))
        shutil.rmtree(out, ignore_errors=True)
        marks: list[tuple[float, str]] = []
        start = time.perf_counter()
        release = run(spec, out, replace=True, stage=lambda name: marks.append((time.perf_counter(), name)))
        end = time.perf_counter()
        marks.append((end, "end"))
        audit = sum(marks[i + 1][0] - marks[i][0] for i in range(len(marks) - 1) if marks[i][1] == "Auditing")
        data = release.data
        del release
        write = seconds(partial(getattr(data, f"write_{kind}"), folder / f"output.{kind}"))
        if turn:
            times[way]["polars"].append(read + write)
            times[way]["with audit"].append(end - start)
            times[way]["without audit"].append(end - start - audit)
    return {way: {key: statistics.median(value) for key, value in found.items()} for way, found in times.items()}


def peak_memory(names: tuple[str, ...], frame: pl.DataFrame, folder: Path, kind: str) -> tuple[float, float]:
    """Seconds and peak memory (GiB) of a fresh process that makes a release."""
    source = folder / f"input.{kind}"
    if not source.exists():
        getattr(frame, f"write_{kind}")(source)
    shutil.rmtree(folder / "release", ignore_errors=True)
    spec = json.dumps(tables_of(names, frame, source, kind))
    return fresh_run(spec, folder / "release")


def command(words: list[str], folder: Path, **environment: str) -> float:
    start = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True, cwd=folder, env={**os.environ, **environment})
    return time.perf_counter() - start


def starting(folder: Path) -> dict[str, float]:
    """What a user waits for: help, the first demo with nothing compiled, the second, and a run of a small table."""
    program = str(Path(sys.executable).with_name("anonfit"))
    help_times, base_times = [], []
    for _ in range(ROUNDS):
        help_times.append(command([program, "--help"], folder))
        base_times.append(command([sys.executable, "-c", "import typer, rich"], folder))
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    (folder / "cache").mkdir()
    first = command([program, "demo", "--json"], folder, **cache)
    second = command([program, "demo", "--json"], folder, **cache)
    _, base, names = base_table()
    small, source = base[:1000], folder / "small.csv"
    small.write_csv(source)
    spec = tables_of(names, small, source, "parquet", workload_of(small)[2])
    (folder / "small.toml").write_text(as_toml(spec))
    (folder / "other").mkdir()
    words = [program, "run", "small.toml", "--out", "first"]
    return {
        "first run": command(words, folder, XDG_CACHE_HOME=str(folder / "other")),
        "help": statistics.median(help_times),
        "import": statistics.median(base_times),
        "first demo": first,
        "second demo": second,
    }


def report(base: str, sections: list[str]) -> str:
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, polars {pl.__version__}"
    threads = ", ".join(f"{name} {os.environ.get(name, 'not set')}" for name in THREADS)
    head = [
        "# Benchmark results",
        "",
        "Made by `python benchmarks/run.py`, and by the commands that sections name. Times are medians of interleaved",
        "rounds in one run on a shared, noisy machine; the ratios are what counts. Sections that name a command of",
        "their own come from other runs.",
        "",
        f"Machine: {machine}. Table: {base}, blown up as in section 5.3 of the TDR paper; 8 quasi-identifiers, 7 other",
        f"columns, k = {K}. Threads: {threads}.",
        "",
    ]
    return "\n".join(head + sections) + "\n"


def grow_section(found: dict[int, dict[str, float]]) -> list[str]:
    lines = ["## Growing Median Mondrian, rows already coded", ""]
    lines += [
        "| rows | all threads | one thread | threads gain | HistGradientBoosting, one tree | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for rows, times in found.items():
        tree = times.get("tree")
        told = (f"{tree:.3f} s", f"{tree / times['grow']:.1f}×") if tree else ("", "")
        gain = times["one thread"] / times["grow"]
        lines.append(
            f"| {rows:,} | {times['grow']:.3f} s | {times['one thread']:.3f} s | {gain:.2f}× | {told[0]} | {told[1]} |"
        )
    if {1_000_000, 10_000_000} <= set(found):
        ratio = found[10_000_000]["grow"] / found[1_000_000]["grow"]
        lines += ["", f"Ten times the rows take {ratio:.1f} times as long."]
    return [*lines, ""]


def file_section(found: list[tuple[int, str, dict[str, dict[str, float]]]]) -> list[str]:
    lines = ["## File to release, warm process", ""]
    lines += [
        "| rows | format | made | polars read + write | without the audit | ratio | with it | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for rows, kind, way, times in [(rows, kind, *item) for rows, kind, ways in found for item in ways.items()]:
        base, without, whole = times["polars"], times["without audit"], times["with audit"]
        lines.append(
            f"| {rows:,} | {kind} | {way} | {base:.2f} s | {without:.2f} s | {without / base:.2f}× | {whole:.2f} s | "
            f"{whole / base:.2f}× |"
        )
    return [*lines, ""]


def memory_section(found: list[tuple[int, str, float, float]]) -> list[str]:
    lines = ["## Fresh process, audit included", "", "| rows | format | seconds | peak memory |", "|---|---|---|---|"]
    lines += [f"| {rows:,} | {kind} | {took:.1f} s | {peak:.2f} GiB |" for rows, kind, took, peak in found]
    return [*lines, ""]


def start_section(times: dict[str, float]) -> list[str]:
    return [
        "## Starting",
        "",
        "| what | seconds |",
        "|---|---|",
        f"| `anonfit --help` | {times['help']:.3f} ({times['help'] / times['import']:.2f}× `import typer, rich`) |",
        f"| first `anonfit demo`, nothing compiled | {times['first demo']:.1f} |",
        f"| second `anonfit demo` | {times['second demo']:.1f} |",
        f"| first `anonfit run`, 1,000 rows of CSV with a target | {times['first run']:.1f} |",
        "",
    ]


def refining() -> list[str]:
    """The section on top-down refinement; its taxonomies are those of Adult."""
    folder = data_folder()
    if folder is None:
        return [HEADING, "", "Not measured: it needs UCI Adult (ANONFIT_DATA).", ""]
    return refining_section(measure_refining(folder))


def instead() -> list[str]:
    """The section on what a user would run instead."""
    _, base, names = base_table()
    target = workload_of(base)[2]
    frames = {rows: blow_up(base, names, rows) for rows in (30_000, 100_000)}
    return instead_section(measure_instead(frames, names, target, K))


SECTIONS: dict[str, Callable[[int], list[str]]] = {
    "tdr": lambda _: refining(),
    "trees": decision_tree_section,
    "instead": lambda _: instead(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=10_000_000, help="leave out larger tables")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--only", choices=list(SECTIONS), help="measure one section alone")
    asked = parser.parse_args()
    if asked.only:
        put_section(asked.out, SECTIONS[asked.only](asked.largest))
        return
    base, rows_of_base, names = base_table()
    sizes = [rows for rows in (30_000, 1_000_000, 10_000_000) if rows <= asked.largest]
    grown: dict[int, dict[str, float]] = {}
    files: list[tuple[int, str, dict[str, dict[str, float]]]] = []
    memory: list[tuple[int, str, float, float]] = []
    for_purposes: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = starting(folder)
        print(started, flush=True)
        for rows in sizes:
            frame = blow_up(rows_of_base, names, rows)
            grown[rows] = growing(names, frame, against=rows <= 1_000_000)
            print(rows, grown[rows], flush=True)
            if rows == 1_000_000:
                times = growing_for_purposes(names, *workload_of(frame), K)
                print(times, flush=True)
                for_purposes = purpose_section(times, rows)
            for kind in ("csv", "parquet"):
                if rows <= 1_000_000:
                    files.append((rows, kind, file_to_release(names, frame, folder, kind, ROUNDS)))
                    print(files[-1], flush=True)
                memory.append((rows, kind, *peak_memory(names, frame, folder, kind)))
                print(memory[-1], flush=True)
                (folder / f"input.{kind}").unlink(missing_ok=True)
    sections = (
        grow_section(grown) + for_purposes + file_section(files) + memory_section(memory) + start_section(started)
    )
    sections += decision_tree_section(asked.largest)
    sections += instead()
    sections += refining() if asked.largest >= 1_000_000 else []
    put_report(asked.out, report(base, sections))


if __name__ == "__main__":
    main()
