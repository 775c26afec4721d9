# SPDX-License-Identifier: Apache-2.0
"""Random conditions are those of the tests of the workload."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "workload"))
