# SPDX-License-Identifier: Apache-2.0
"""Random recodings are those of the tests of recodings."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "recoding"))
