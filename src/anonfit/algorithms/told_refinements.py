# SPDX-License-Identifier: Apache-2.0
"""How top-down refinement came to its parts, in labels: for the owner of the data, since gains are of raw values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.refinements import Part, Refined
from anonfit.recoding.columns import RecodedColumn

__all__ = ["told_refinements"]


def told_refinements(
    found: Refined, columns: Sequence[RecodedColumn], cells: Sequence[NDArray[np.int32]]
) -> dict[str, Any]:
    """The refinements that were made, in their order, and those that were not, as plain data.

    Args:
        found: What refining gave.
        columns: The columns of the recoding that was made of it.
        cells: For each column, the cell of each code.

    Returns:
        A refinement has the label of what was refined, those of what it became, gain, loss and score, and the
        anonymity of every quasi-identifier after it.
    """

    def label(column: int, part: Part) -> str:
        held = np.unique(cells[column][np.array(part.codes, np.int64)]).tolist()
        return columns[column].label(held)

    return {
        "steps": [
            {
                "column": columns[step.column].name,
                "refined": None if step.refined is None else label(step.column, step.refined),
                "into": [label(step.column, part) for part in step.into],
                "gain": step.gain,
                "loss": step.loss,
                "score": step.score,
                "anonymity": list(step.anonymity),
            }
            for step in found.steps
        ],
        "not_made": [
            {
                "column": columns[one.column].name,
                "part": label(one.column, one.part),
                "reason": str(one.reason),
                "gain": one.gain,
                "loss": one.loss,
            }
            for one in found.left
        ],
        "anonymity": list(found.anonymity),
        "groups": list(found.groups),
        "stopped": found.is_stopped,
    }
