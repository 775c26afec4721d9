# SPDX-License-Identifier: Apache-2.0
"""A tiny reader of labels (docs/labels.md), written for these tests alone: does a label hold a value?"""

from __future__ import annotations

import json
import re
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any


class LabelReader:
    """Reads the labels of one column, of which it knows what recoding.json says."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.entry = entry
        self.kind = entry["type"]
        self.leaves_below: dict[str, set[str]] = {}
        if "taxonomy" in entry:
            self._descend(entry["taxonomy"])

    def _descend(self, node: dict[str, Any]) -> set[str]:
        found = set().union(*(self._descend(child) for child in node.get("children", []))) or {node["name"]}
        self.leaves_below[node["name"]] = found
        return found

    def holds(self, label: str, value: Any) -> bool:
        """Whether a raw value (None: missing) is among those that the label names."""
        if label == "*":
            return True
        if label == "missing":
            return value is None
        if value is None:
            return label.startswith("missing or ")
        if label == "not missing":
            return True
        label = label.removeprefix("missing or ")
        if self.leaves_below:
            return self._leaf(value) in self._names(label)
        place, (low, high, closed) = self._place(value), self._interval(label)
        return (low is None or low <= place) and (high is None or place < high or (closed and place == high))

    def _interval(self, label: str) -> tuple[Any, Any, bool]:
        if label.startswith("< "):
            return None, self._end(label[2:]), False
        if label.startswith("≥ "):
            return self._end(label[2:]), None, False
        if label.startswith("["):
            low, high = _parts(label[1:-1])
            return self._end(low), self._end(high), label.endswith("]")
        return self._end(label), self._end(label), True

    def _end(self, text: str) -> Any:
        if self.kind == "ordinal":
            return self.entry["order"].index(_name(text))
        if self.kind == "date":
            return datetime.fromisoformat(text)
        return Fraction(Decimal(text))

    def _place(self, value: Any) -> Any:
        if self.kind == "ordinal":
            return self.entry["order"].index(value)
        if isinstance(value, datetime):
            return value
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day)
        # A float is the number it is written as, in labels and here.
        return Fraction(Decimal(repr(value)) if isinstance(value, float) else value)

    def _leaf(self, value: Any) -> str:
        """The name of a value; those that are not named are the leaf for them."""
        text = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
        leaves = self.leaves_below[self.entry["taxonomy"]["name"]]
        return text if text in leaves and text != self.entry["other"] else self.entry["other"]

    def _names(self, label: str) -> set[str]:
        is_set = label.startswith("{") and label.endswith("}")
        names = [_name(part) for part in _parts(label[1:-1])] if is_set else [_name(label)]
        return set().union(*(self.leaves_below[name] for name in names))


def _parts(text: str) -> list[str]:
    """The parts between commas with a blank, none of them inside quotes."""
    parts, rest = [], text
    while rest:
        quoted = re.match(r'"(?:[^"\\]|\\.)*"', rest, re.DOTALL)
        end = quoted.end() if quoted else (rest.find(", ") if ", " in rest else len(rest))
        parts.append(rest[:end])
        rest = rest[end:].removeprefix(", ")
    return parts


def _name(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text
