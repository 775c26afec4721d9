# SPDX-License-Identifier: Apache-2.0
"""A release made by a process of its own: how long it takes, and how much memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

__all__ = ["fresh_run"]

MEASURED = """
import json, resource, sys, time
from anonfit.api import run
from anonfit.spec.parse import spec_of
start = time.perf_counter()
run(spec_of(json.loads(sys.argv[1])), sys.argv[2], replace=True)
print(json.dumps([time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]))
"""


def fresh_run(spec: str, out: Path) -> tuple[float, float]:
    """Seconds and peak memory (GiB) of a fresh process that makes a release of a spec, given as JSON."""
    # A shell between: the peak of a process begins with that of the one it was started from.
    words = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", MEASURED, spec, str(out)]
    took, peak = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return took, peak
