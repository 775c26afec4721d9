# SPDX-License-Identifier: Apache-2.0
"""A table that is larger than the memory that is allowed, by the command that also measures time (`benchmarks/`)."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(__file__).parents[2] / "benchmarks" / "beyond_memory.py"
ROWS = os.environ.get("ROWS", "100000000")


@pytest.mark.slow
def test_a_hundred_million_rows_in_five_gibibytes(tmp_path):
    words = ["--rows", ROWS, "--memory", "4GiB", "--engines", "duckdb"]
    places = ["--folder", str(tmp_path), "--out", str(tmp_path / "results.md")]
    done = subprocess.run([sys.executable, COMMAND, *words, *places], check=True, capture_output=True, text=True)
    found = ast.literal_eval(done.stdout)
    assert found["peak"] <= 5 * 2**30
    assert found["regions"] > int(ROWS) // 1000
    assert (tmp_path / "release" / "data.parquet").exists() or (tmp_path / "release" / "data.csv").exists()
