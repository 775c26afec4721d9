# SPDX-License-Identifier: Apache-2.0
"""Evaluations need a learning library."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn", reason="the extra learn is not installed")
