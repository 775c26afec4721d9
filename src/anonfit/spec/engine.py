# SPDX-License-Identifier: Apache-2.0
"""The engine section of a spec."""

from __future__ import annotations

import re
from typing import Any

from anonfit.spec.faults import Faults
from anonfit.spec.model import EngineSpec

__all__ = ["read_engine"]

LEAST_MEMORY = 64 * 2**20
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def read_engine(table: dict[str, Any], faults: Faults) -> EngineSpec:
    """Where rows are counted."""
    faults.unknown(table, ("name", "memory", "spill", "hand_over", "sample"), "engine")
    if table.get("name") == "spark" and "memory" in table:
        faults.add("engine.memory is not for engine.name = 'spark': its memory is set by Spark's own settings.")
    if table.get("name") == "memory":
        for name in ("memory", "spill", "hand_over", "sample"):
            if name in table:
                faults.add(f"engine.{name} is not for engine.name = 'memory', which holds all rows; leave it out.")
    return EngineSpec(
        name=faults.choice(table, "name", "engine", ("auto", "memory", "duckdb", "spark"), "auto"),
        memory=_bytes(table.get("memory"), faults),
        spill=faults.kind(table, "spill", "engine", str, "the path of a folder", None),
        hand_over=_rows(table, "hand_over", faults),
        sample=_rows(table, "sample", faults),
    )


def _rows(table: dict[str, Any], key: str, faults: Faults) -> int | None:
    """A number of rows."""
    found: int | None = faults.kind(table, key, "engine", int, "a whole number of rows", None)
    if found is not None and found < 1:
        faults.add(f"engine.{key} = {found} is no number of rows; write 1 or more.")
        return None
    return found


def _bytes(given: Any, faults: Faults) -> int | None:
    """A size of memory, such as 2GB or 512MiB, in bytes."""
    if given is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(given))
    if found is None or found[2].upper() not in UNITS or isinstance(given, bool):
        faults.add(f"engine.memory = {given!r} is no size; write such as '2GB' or '512MiB'.")
        return None
    size = int(float(found[1]) * UNITS[found[2].upper()])
    if size < LEAST_MEMORY:
        faults.add(f"engine.memory = {given!r} is too little; an engine needs 64MiB at least.")
        return None
    return size
