# SPDX-License-Identifier: Apache-2.0
"""Association rules as they may be told. What a rule says of the release anybody can find in it; of the raw rows it is
told only whether it holds there too, and only of rules that enough persons are for, and none or enough against.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anonfit.metrics.rules import Rule
from anonfit.privacy.disclosure import Disclosure

__all__ = ["rules_content"]


def rules_content(rules: Sequence[Rule], told: Disclosure) -> dict[str, Any]:
    """The rules, as `told` says; whether one holds in the raw rows only if persons have one row each."""
    lines = []
    for rule in rules:
        given, both = rule.raw
        is_told = not told.least or (told.rows_are_persons and both >= told.least and told.may_tell(both, given))
        line: dict[str, Any] = {
            "given": list(rule.given),
            "then": rule.then,
            "support": round(rule.released[1] / rule.rows, 4),
            "confidence": round(rule.released[1] / rule.released[0], 4),
            "lift": round(rule.lift, 2),
            "holds": rule.holds if is_told else None,
        }
        if not told.least:
            line |= {"raw_support": both / rule.rows, "raw_confidence": both / given if given else None}
        lines.append(line)
    return {
        "found": len(lines),
        "hold": sum(line["holds"] is True for line in lines),
        "not_told": sum(line["holds"] is None for line in lines),
        "rules": lines,
    }
