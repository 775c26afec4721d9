# SPDX-License-Identifier: Apache-2.0
"""What two releases of one table tell together: the audit with both, as far as everybody may know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError
from anonfit.release.folder_audits import audit_release
from anonfit.runtime.progress import Stage

__all__ = ["Side", "together"]

JOINT = "joint cells"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the releases."""

    name: str
    folder: Path
    k: int


def together(sides: Sequence[Side], source: Any, stage: Stage) -> list[dict[str, Any]]:
    """Audit every two releases against the table they were made from.

    Two that cannot be audited together are told so; if none can, the first fault is an error.
    """
    found, faults = [], []
    for one, other in combinations(sides, 2):
        stage(f"Auditing {one.name} with {other.name}")
        pair: dict[str, Any] = {"releases": [one.name, other.name], "k": min(one.k, other.k)}
        try:
            pair |= _audited(one, other, source)
        except RequestError as error:
            faults.append(error)
            pair |= {"joint": None, "holds": None, "faults": [str(error)]}
        found.append(pair)
    if len(faults) == len(found):
        raise faults[0]
    return found


def _audited(one: Side, other: Side, source: Any) -> dict[str, Any]:
    """The smaller k of the two is what both promise, so it is what the cells of both are held against."""
    first, second = sorted((one, other), key=lambda side: side.k)
    audit = audit_release(first.folder, source=source, other=second.folder)
    return {
        "joint": audit.public(first.k)["joint"],
        "holds": next((finding.met for finding in audit.findings if finding.name == JOINT), None),
        "faults": [finding.sentence for finding in audit.findings if finding.met is False and finding.name != JOINT],
    }
