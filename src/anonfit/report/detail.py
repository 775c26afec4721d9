# SPDX-License-Identifier: Apache-2.0
"""How much detail each quasi-identifier kept, as plain data: computed from the released groups and the recoding, so
anybody could.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from anonfit.metrics.detail import SPANS, Detail

__all__ = ["detail_content"]


def detail_content(details: Sequence[Detail], counted: Literal["persons", "records"]) -> list[dict[str, Any]]:
    """One line per quasi-identifier. Who has a label is counted in records where a person may have several."""
    return [
        {
            "column": one.name,
            "kept": round(one.kept, 3),
            "ruled_out": round(one.ruled_out, 3),
            "at_most": round(one.at_most, 3),
            "labels": one.labels,
            f"{counted}_by_span": [
                {"up_to": up_to, counted: number} for up_to, number in zip((*SPANS, None), one.spans, strict=True)
            ],
            "frequent_label": one.frequent_label,
            f"frequent_{counted}": one.frequent_persons,
        }
        for one in details
    ]
