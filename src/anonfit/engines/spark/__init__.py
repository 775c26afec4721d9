# SPDX-License-Identifier: Apache-2.0
"""Rows in Spark: counted and routed where they are, on one machine or many."""

import os
import sys

if "polars" not in sys.modules:  # an executor: Spark gives each of its cores a process
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
