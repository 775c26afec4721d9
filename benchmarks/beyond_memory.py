# SPDX-License-Identifier: Apache-2.0
"""The DuckDB engine beyond memory: time, time per level and peak memory, each run in a process of its own.

.venv/bin/python benchmarks/beyond_memory.py                     # 10 million rows against the engine memory
.venv/bin/python benchmarks/beyond_memory.py --rows 100000000 --memory 4GiB --alone --folder /big/disk
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

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


def measured(source: Path, engine: str, out: Path, memory: str | None, hand_over: int, k: int) -> dict[str, Any]:
    """One run from file to release; what it took."""
    import resource

    from anonfit.pipeline import make
    from anonfit.publishing import publish_made
    from anonfit.spec_keywords import spec_of_keywords

    words = {"quasi_identifiers": [f"q{place}" for place in range(len(SIZES))], "targets": ["y"], "k": k}
    words |= {"engine": engine, "memory": memory, "spill": str(out.parent)}
    spec = spec_of_keywords(str(source), words)
    spec = replace(spec, engine=replace(spec.engine, hand_over=hand_over))
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
    publish_made(made, out, stage=stage, replace=True)
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


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--rows", type=int, default=10_000_000)
    words.add_argument("--memory", default=None)
    words.add_argument("--hand-over", type=int, default=500_000)
    words.add_argument("--k", type=int, default=100)
    words.add_argument("--folder", type=Path, default=Path("beyond-memory"))
    words.add_argument("--alone", action="store_true", help="without the engine memory")
    words.add_argument("--one", default=None, help=argparse.SUPPRESS)
    asked = words.parse_args()
    asked.folder.mkdir(exist_ok=True)
    source = asked.folder / f"people-{asked.rows}.parquet"
    if asked.one is not None:
        found = measured(source, asked.one, asked.folder / "release", asked.memory, asked.hand_over, asked.k)
        print(json.dumps(found))
        return
    if not source.exists():
        generated(source, asked.rows)
    for engine in ["duckdb"] if asked.alone else ["memory", "duckdb"]:
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--one", engine], check=True, stdout=subprocess.PIPE
        )
        found = json.loads(done.stdout)
        levels = ", ".join(f"{seconds:.1f}" for seconds in found["levels"])
        peaks = [f"{found[name] / 2**30:.2f} GiB" for name in ("peak", "peak_made")]
        print(
            f"{engine}: {found['seconds']:.1f} s from file to release ({found['made']:.1f} s to make it, "
            f"{found['core_seconds']:.1f} s of a core in all), levels {levels or 'none'} s, peak {peaks[0]} "
            f"({peaks[1]} to make the table), {found['regions']} regions"
        )


if __name__ == "__main__":
    main()
