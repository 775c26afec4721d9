# SPDX-License-Identifier: Apache-2.0
"""Engines beyond memory: time, time per level and peak memory, each run in a process of its own. Writes a section of
RESULTS.md.

.venv/bin/python benchmarks/beyond_memory.py                     # 10 million rows: memory, DuckDB, Spark on local[2]
.venv/bin/python benchmarks/beyond_memory.py --rows 100000000 --memory 4GiB --engines duckdb --folder /big/disk
.venv/bin/python benchmarks/beyond_memory.py --engines duckdb --sample 1000000   # a start on a sample
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from results import RESULTS, put_section

SPARK = "--master local[2] --driver-memory 2g pyspark-shell"
SIZES = (90, 16, 7, 14, 6, 5, 2, 41)
BLOCK = 5_000_000


def generated(path: Path, rows: int) -> None:
    """People with eight quasi-identifiers and a target, a block at a time."""
    rng = np.random.default_rng(0)
    parts = path.with_suffix(".parts")
    parts.mkdir(exist_ok=True)
    for number, start in enumerate(range(0, rows, BLOCK)):
        count = min(BLOCK, rows - start)
        columns = {f"q{place}": (rng.beta(2, 5, count) * size).astype(np.int16) for place, size in enumerate(SIZES)}
        score = columns["q0"] / 90 + columns["q7"] / 41 + rng.normal(size=count) * 0.3
        columns["y"] = np.where(score > 0.55, "high", "low")
        pl.DataFrame(columns).write_parquet(parts / f"{number:05}.parquet")
    pl.scan_parquet(parts / "*.parquet").sink_parquet(path)
    for part in parts.iterdir():
        part.unlink()
    parts.rmdir()


def measured(source: Path, engine: str, out: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """One run from file to release; what it took."""
    import resource

    from anonfit.release.publish import publish_draft
    from anonfit.release.run import make
    from anonfit.spec.keywords import spec_of_keywords

    words = {"quasi_identifiers": [f"q{place}" for place in range(len(SIZES))], "targets": ["y"], "k": asked.k}
    words |= {"engine": engine, "spill": str(out.parent)}
    words |= {"memory": asked.memory} if engine == "duckdb" else {}
    spec = spec_of_keywords(str(source), words)
    spec = replace(spec, engine=replace(spec.engine, hand_over=asked.hand_over, sample=asked.sample))
    begun = time.perf_counter()
    stages: list[tuple[float, str]] = []

    def stage(name: str) -> None:
        stages.append((time.perf_counter() - begun, name))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        figures = f"{stages[-1][0]:9.1f} s {time.process_time():8.1f} s of a core, peak {peak:.2f} GiB"
        print(f"{figures}  {name}", file=sys.stderr, flush=True)

    made = make(spec, stage=stage)
    grown = time.perf_counter() - begun
    peak_made = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    publish_draft(made, out, stage=stage, replace=True)
    stage("done")
    levels = [
        after - before for (before, name), (after, _) in pairwise(stages) if name.startswith("Growing regions: level")
    ]
    return {
        "engine": engine,
        "seconds": stages[-1][0],
        "made": grown,
        "core_seconds": time.process_time(),
        "levels": levels[:-1],  # the last stage also finishes the nodes that were handed over
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "peak_made": peak_made,
        "regions": made.recoding.regions,
    }


def section(found: dict[str, dict[str, Any]], asked: argparse.Namespace) -> list[str]:
    """What is written: all runs, and how they compare."""
    limit = f", a limit of {asked.memory}" if asked.memory else ""
    sample = f", a start on {asked.sample:,} rows" if asked.sample else ""
    said = [f"--rows {asked.rows}", *([f"--memory {asked.memory}"] if asked.memory else [])]
    said += [f"--sample {asked.sample}"] if asked.sample else []
    lines = [
        f"## Beyond memory: {asked.rows:,} rows{limit}{sample}",
        "",
        f"Made by `python benchmarks/beyond_memory.py {' '.join([*said, '--engines', *found])}`: made-up people in a",
        f"Parquet file, {len(SIZES)} quasi-identifiers, InfoGain, k = {asked.k}, nodes handed over at "
        f"{asked.hand_over:,} rows;",
        "from file to release with order, audit and report.",
        *(["Spark runs on `local[2]`; its peak is that of the driver's Python alone."] if "spark" in found else []),
        "",
        "| engine | file to release | table made | levels | peak memory | regions |",
        "|---|---|---|---|---|---|",
    ]
    for engine, run in found.items():
        levels = ", ".join(f"{seconds:.1f}" for seconds in run["levels"])
        lines.append(
            f"| {engine} | {run['seconds']:.1f} s | {run['made']:.1f} s | {levels + ' s' if levels else ''} | "
            f"{run['peak'] / 2**30:.2f} GiB | {run['regions']:,} |"
        )
    lines.append("")
    for slow, fast in (("duckdb", "memory"), ("spark", "duckdb")):
        if slow in found and fast in found:
            ratios = [found[slow][name] / found[fast][name] for name in ("seconds", "made")]
            lines.append(f"{slow} takes {ratios[0]:.1f}× as long as {fast} ({ratios[1]:.1f}× until the table is made).")
    for engine, run in found.items():
        if len(run["levels"]) > 2:
            slowest = max(run["levels"]) / (sum(run["levels"][:2]) / 2)
            lines.append(f"{engine}: the slowest level takes {slowest:.2f}× the mean of the first two.")
    return [*lines, ""]


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--rows", type=int, default=10_000_000)
    words.add_argument("--memory", default=None, help="the limit that DuckDB is given")
    words.add_argument("--sample", type=int, default=None, help="grow the upper levels on about so many rows")
    words.add_argument("--hand-over", type=int, default=500_000)
    words.add_argument("--k", type=int, default=100)
    words.add_argument("--folder", type=Path, default=Path("beyond-memory"))
    words.add_argument("--engines", nargs="+", default=["memory", "duckdb", "spark"])
    words.add_argument("--out", type=Path, default=RESULTS)
    words.add_argument("--one", default=None, help=argparse.SUPPRESS)
    asked = words.parse_args()
    asked.folder.mkdir(exist_ok=True)
    source = asked.folder / f"people-{asked.rows}.parquet"
    if asked.one is not None:
        print(json.dumps(measured(source, asked.one, asked.folder / "release", asked)))
        return
    if not source.exists():
        generated(source, asked.rows)
    found = {}
    for engine in asked.engines:
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--one", engine],
            check=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYSPARK_SUBMIT_ARGS": SPARK},
        )
        found[engine] = json.loads(done.stdout)
        print(found[engine], flush=True)
    put_section(asked.out, section(found, asked))


if __name__ == "__main__":
    main()
