# SPDX-License-Identifier: Apache-2.0
"""The engine spark on this machine (local[2]) against DuckDB: from file to release, each run in a process of its own.

.venv/bin/python benchmarks/spark.py                      # 10 million rows
.venv/bin/python benchmarks/spark.py --rows 1000000
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from beyond_memory import generated, measured

SETTINGS = "--master local[2] --driver-memory 2g pyspark-shell"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--rows", type=int, default=10_000_000)
    words.add_argument("--hand-over", type=int, default=500_000)
    words.add_argument("--k", type=int, default=100)
    words.add_argument("--folder", type=Path, default=Path("beyond-memory"))
    words.add_argument("--engines", nargs="+", default=["duckdb", "spark"])
    words.add_argument("--one", default=None, help=argparse.SUPPRESS)
    asked = words.parse_args()
    asked.folder.mkdir(exist_ok=True)
    source = asked.folder / f"people-{asked.rows}.parquet"
    if asked.one is not None:
        print(json.dumps(measured(source, asked.one, asked.folder / "release", None, asked.hand_over, asked.k)))
        return
    if not source.exists():
        generated(source, asked.rows)
    known = {}
    for engine in asked.engines:
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--one", engine],
            check=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYSPARK_SUBMIT_ARGS": SETTINGS},
        )
        found = known[engine] = json.loads(done.stdout)
        levels = ", ".join(f"{seconds:.1f}" for seconds in found["levels"])
        print(
            f"{engine}: {found['seconds']:.1f} s from file to release ({found['made']:.1f} s to make it), levels "
            f"{levels or 'none'} s, peak of the driver {found['peak'] / 2**30:.2f} GiB, {found['regions']} regions"
        )
    if {"duckdb", "spark"} <= known.keys():
        print(f"spark took {known['spark']['made'] / known['duckdb']['made']:.1f} times as long as duckdb to make it")


if __name__ == "__main__":
    main()
