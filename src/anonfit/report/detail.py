# SPDX-License-Identifier: Apache-2.0
"""How much detail each quasi-identifier kept, as plain data: computed from the released groups and the recoding, so
anybody could.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anonfit.metrics.detail import SPANS, Detail

__all__ = ["detail_content"]


def detail_content(details: Sequence[Detail]) -> list[dict[str, Any]]:
    """One line per quasi-identifier."""
    return [
        {
            "column": one.name,
            "kept": round(one.kept, 3),
            "ruled_out": round(one.ruled_out, 3),
            "at_most": round(one.at_most, 3),
            "labels": one.labels,
            "persons_by_span": [
                {"up_to": up_to, "persons": persons} for up_to, persons in zip((*SPANS, None), one.spans, strict=True)
            ],
            "frequent_label": one.frequent_label,
            "frequent_persons": one.frequent_persons,
        }
        for one in details
    ]
