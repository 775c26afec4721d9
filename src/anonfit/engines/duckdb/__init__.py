# SPDX-License-Identifier: Apache-2.0
"""The DuckDB engine: rows on one machine that do not fit in memory."""
