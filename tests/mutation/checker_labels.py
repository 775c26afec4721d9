# SPDX-License-Identifier: Apache-2.0
"""The columns of a recoding and what is written for sets of their cells, from docs/recoding.md and labels.md alone.

Part of the independent checker (checker.py): plain Python, slow and obvious, nothing of the package.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from unicodedata import category

Cells = frozenset[int]


class Wrong(Exception):
    """Something that the documents do not allow."""


def need(condition: object, sentence: str) -> None:
    """Refuse what does not hold."""
    if not condition:
        raise Wrong(sentence)


def number_text(number: float) -> str:
    """A number as labels have it: without a needless point."""
    return repr(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(number)


def quoted(name: str) -> str:
    """A name, as a JSON string where it could be misread."""
    special = (
        name == ""
        or name != name.strip()
        or any(sign in ',"{}' or category(sign) in ("Cc", "Zl", "Zp") for sign in name)
        or name.startswith(("[", "<", "≥", "*", "missing or "))
        or name in ("missing", "not missing")
    )
    return json.dumps(name, ensure_ascii=False) if special else name


@dataclass(frozen=True)
class Leaf:
    """A leaf of a taxonomy over numbers or dates: what lies between its ends."""

    low: Any
    high: Any
    low_in: bool
    high_in: bool

    def holds(self, value: Any) -> bool:
        """Whether a value lies in it."""
        above = self.low is None or value > self.low or (self.low_in and value == self.low)
        return above and (self.high is None or value < self.high or (self.high_in and value == self.high))


@dataclass(frozen=True)
class Column:
    """A column of recoding.json: its cells, which one a value lies in, and what is written for a set of them."""

    name: str
    type: str
    scale: str
    missing: bool
    cuts: tuple[Any, ...] = ()
    domain: tuple[Any, Any] | None = None
    order: tuple[str, ...] = ()
    tree: dict[str, Any] | None = None
    other: str | None = None
    date_format: str | None = None
    leaves: tuple[str, ...] = ()
    intervals: tuple[Leaf, ...] = field(default=(), repr=False)
    whole: bool = False
    both_ends: bool = False

    @property
    def kind(self) -> str:
        """What the cells are: cuts, words or leaves."""
        return "leaves" if self.tree is not None else "words" if self.type == "ordinal" else "cuts"

    @property
    def named(self) -> int:
        """How many cells are not the missing value."""
        return {"leaves": len(self.leaves), "words": len(self.order), "cuts": len(self.cuts) + 1}[self.kind]

    @property
    def cells(self) -> Cells:
        """All cells."""
        return frozenset(range(self.named + self.missing))

    def value(self, text: Any) -> Any:
        """A cut, an end of the domain or a leaf as a value."""
        return read_value(text, self.scale)

    def text(self, value: Any) -> str:
        """A cut or end as labels have it."""
        if self.scale == "number":
            return number_text(value)
        return moment_text(value) if self.scale == "time" else value.isoformat()[:10]

    def cell(self, raw: Any) -> int | None:
        """The cell of a value that is not missing; None where there is none."""
        place = self._place(raw)
        return None if place is None else place + self.missing

    def _place(self, raw: Any) -> int | None:
        if self.kind == "words":
            return self.order.index(raw) if raw in self.order else None
        if self.kind == "leaves" and self.type in ("nominal", "ordinal"):
            name = raw if isinstance(raw, str) else {True: "true", False: "false"}.get(raw, str(raw))
            name = name if name in self.leaves else self.other
            return None if name is None else self.leaves.index(name)
        value = self.raw(raw)
        if self.kind == "leaves":
            return next((place for place, leaf in enumerate(self.intervals) if leaf.holds(value)), None)
        if self.domain is not None and not self.domain[0] <= value <= self.domain[1]:
            return None
        return bisect_right(self.cuts, value)

    def raw(self, raw: Any) -> Any:
        """A raw value on the column's scale."""
        if self.scale == "number":
            return float(raw) if isinstance(raw, Decimal) else raw
        if isinstance(raw, str):
            raw = datetime.strptime(raw, self.date_format) if self.date_format else datetime.fromisoformat(raw)
        if isinstance(raw, datetime):
            return raw if self.scale == "time" else raw.date()
        return raw if self.scale == "date" else datetime(raw.year, raw.month, raw.day)

    # --- what is written ------------------------------------------------------------------------------------------

    def ends(self, cells: Cells) -> tuple[Any, Any]:
        """The ends of the cells that are not missing, a run: None where it is open, or words of the order."""
        named = sorted(cell - self.missing for cell in cells if cell >= self.missing)
        need(named == list(range(named[0], named[-1] + 1)), "a region of an ordered column is no run")
        low, high = named[0], named[-1] + 1
        if self.kind == "words":
            return (self.order[low] if low else None), (self.order[high] if high < self.named else None)
        outer = self.domain or (None, None)
        return (self.cuts[low - 1] if low else outer[0]), (self.cuts[high - 1] if high < self.named else outer[1])

    def label(self, cells: Cells) -> str:
        """The one label of a set of cells."""
        if cells == self.cells:
            return "*"
        known = frozenset(cell for cell in cells if cell >= self.missing)
        if not known:
            return "missing"
        if len(known) == self.named and self.domain is None:
            return "not missing"
        return ("missing or " if self.missing and 0 in cells else "") + self._known(known)

    def _known(self, cells: Cells) -> str:
        if self.kind == "leaves":
            names = self.names(cells)
            return self._alone(names[0]) if len(names) == 1 else "{" + ", ".join(map(quoted, names)) + "}"
        low, high = self.ends(cells)
        if self.kind == "words" and len(cells) == 1:
            return quoted(self.order[min(cells) - self.missing])
        write = quoted if self.kind == "words" else self.text
        if low is None:
            return f"≤ {math.ceil(high) - 1}" if self.both_ends else f"< {write(high)}"
        if high is None:
            return f"≥ {math.ceil(low) if self.both_ends else write(low)}"
        last = self.is_last(cells)
        if last and low == high:
            return write(low)
        first, end = (math.ceil(low), high if last else math.ceil(high) - 1) if self.whole else (0, 1)
        if first == end or self.both_ends:
            return str(first) if first == end else f"{first}–{end}"
        return f"[{write(low)}, {write(high)}{']' if last else ')'}"

    def is_last(self, cells: Cells) -> bool:
        """Whether a region reaches to the end of a declared domain."""
        return self.domain is not None and max(cells) == self.named + self.missing - 1

    def _alone(self, name: str) -> str:
        """A name that stands alone: one that is an interval itself is written as it is."""
        return name if re.fullmatch(r"[<≥] .+|\[.+, .+[)\]]", name) and name == name.strip() else quoted(name)

    def names(self, cells: Cells) -> list[str]:
        """The fewest names of the taxonomy that are exactly these leaves."""
        wanted, found = {self.leaves[cell - self.missing] for cell in cells}, []

        def cover(node: dict[str, Any], root: bool) -> None:
            if not root and wanted.issuperset(walk_leaves(node, set())):
                while len(node.get("children", ())) == 1:  # of nodes with the same leaves the deepest is named
                    node = node["children"][0]
                found.append(node["name"])
            else:
                for child in node.get("children", ()):
                    cover(child, False)

        assert self.tree is not None
        cover(self.tree, True)
        return found

    def written(self, cells: Cells, form: str) -> tuple[Any, ...]:
        """What the released columns of this one hold for a set of cells, as canonical values."""
        if form == "labels" or self.type == "nominal" or self.kind == "leaves":
            return (("t", self.label(cells)),)
        known = frozenset(cell for cell in cells if cell >= self.missing)
        low, high = self.ends(known) if known else (None, None)
        if form == "bounds":
            told = "no" if not self.missing or 0 not in cells else "possible" if known else "only"
            return (canon(low), canon(high), *([("t", told)] if self.missing else []))
        return (canon(self.middle(cells, known, low, high)),)

    def middle(self, cells: Cells, known: Cells, low: Any, high: Any) -> Any:
        """The representative of a region."""
        if len(known) < len(cells):
            return None
        if self.kind == "words":
            return self.order[(min(known) + max(known) - 2 * self.missing) // 2]
        if low is None or high is None:
            return low if high is None else high
        return (low + high) / 2 if self.scale == "number" else middle_moment(low, high)

    def released(self, form: str) -> list[str]:
        """The names of the released columns of this one."""
        if form != "bounds" or self.type == "nominal" or self.kind == "leaves":
            return [self.name]
        return [f"{self.name}_lower", f"{self.name}_upper", *([f"{self.name}_missing"] if self.missing else [])]


def middle_moment(low: Any, high: Any) -> Any:
    """The middle of two dates or times."""
    if isinstance(low, datetime):
        return low + (high - low) / 2
    return low + timedelta(days=(high - low).days // 2)


def moment_text(value: datetime) -> str:
    """A time as labels have it."""
    return value.isoformat()


def canon(value: Any) -> Any:
    """A value that compares and sorts the same whatever file it was read from: None, or a kind and a value."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return ("b", value)
    if isinstance(value, int | Decimal):
        return ("n", Decimal(value))
    if isinstance(value, float):
        return ("n", Decimal(repr(value)))
    if isinstance(value, datetime):
        return ("m", value)
    return ("d", value) if isinstance(value, date) else ("t", str(value))


def read_value(text: Any, scale: str) -> Any:
    """A number, date or time of recoding.json or of a label."""
    if scale == "number":
        need(isinstance(text, int | float) and not isinstance(text, bool), "a cut is no number")
        need(math.isfinite(text), "a cut is not finite")
        return text
    need(isinstance(text, str), "a cut is no date")
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Wrong("a cut is no date") from None
    return found if scale == "time" else found.date()


def interval(name: str, scale: str) -> Leaf | None:
    """The interval or value that a leaf over numbers or dates is; None where it is neither."""

    def value(text: str) -> Any:
        return float(text) if scale == "number" else read_value(text, scale)

    try:
        if found := re.fullmatch(r"\[(.*), (.*)([)\]])", name):
            return Leaf(value(found[1]), value(found[2]), True, found[3] == "]")
        if name.startswith("< "):
            return Leaf(None, value(name[2:]), False, False)
        if name.startswith("≥ "):
            return Leaf(value(name[2:]), None, True, False)
    except (ValueError, Wrong):
        pass
    return None


def leaf_of(name: str, scale: str) -> Leaf:
    """A leaf of a taxonomy over numbers or dates."""
    found = interval(name, scale)
    if found is None:
        try:
            only = float(name) if scale == "number" else read_value(name, scale)
        except (ValueError, Wrong):
            raise Wrong("a leaf is no number, date or interval") from None
        found = Leaf(only, only, True, True)
    return found


KEYS = {
    "cuts": {"name", "type", "scale", "missing", "domain", "cuts"},
    "words": {"name", "type", "missing", "order"},
    "leaves": {"name", "type", "missing", "taxonomy"},
}


def read_column(said: Any) -> Column:
    """A column of recoding.json."""
    need(isinstance(said, dict) and isinstance(said.get("name"), str), "a column of the recoding has no name")
    need(said.get("type") in ("continuous", "date", "ordinal", "nominal"), "a column has an unknown type")
    need(isinstance(said.get("missing"), bool), "a column does not say whether values are missing")
    kind = "leaves" if "taxonomy" in said else "words" if said["type"] == "ordinal" else "cuts"
    need(KEYS[kind] <= set(said), f"a column of {kind} lacks an entry")
    need(set(said) <= KEYS[kind] | {"other", "scale", "date_format", "intervals"}, "a column says more than it may")
    scale = said.get("scale") or {"continuous": "number", "date": "date"}.get(said["type"], "")
    whole = kind == "cuts" and scale == "whole"
    need(said.get("intervals") in (("half-open", "closed") if whole else (None,)), "intervals of an unknown form")
    scale = "number" if whole else scale
    need(scale in {"continuous": ("number",), "date": ("date", "time")}.get(said["type"], ("",)), "an unknown scale")
    common = {"name": said["name"], "type": said["type"], "scale": scale, "missing": said["missing"]}
    if kind == "words":
        order = said["order"]
        need(isinstance(order, list) and order and all(isinstance(word, str) for word in order), "an order of no words")
        need(len(set(order)) == len(order), "a word twice in an order")
        return Column(**common, order=tuple(order))
    if kind == "leaves":
        leaves = tuple(walk_leaves(said["taxonomy"], set()))
        other = said.get("other")
        need(other is None or other in leaves, "other is no leaf")
        spans = () if said["type"] in ("nominal", "ordinal") else tuple(leaf_of(name, scale) for name in leaves)
        return Column(**common, tree=said["taxonomy"], leaves=leaves, other=other, intervals=spans)
    need(said["type"] != "nominal", "a nominal column has no taxonomy")
    need(isinstance(said["cuts"], list), "cuts are no list")
    cuts = tuple(read_value(cut, scale) for cut in said["cuts"])
    need(all(one < two for one, two in zip(cuts, cuts[1:], strict=False)), "cuts do not ascend")
    domain = said["domain"]
    if domain is not None:
        need(isinstance(domain, list) and len(domain) == 2, "a domain has no two ends")
        domain = (read_value(domain[0], scale), read_value(domain[1], scale))
        need(
            domain[0] <= domain[1] and all(domain[0] < cut <= domain[1] for cut in cuts), "a cut outside of the domain"
        )
    need(not whole or len(set(map(math.ceil, cuts))) == len(cuts), "two cuts between the same whole numbers")
    need(
        not whole or all(end == math.ceil(end) for end in domain or ()), "a domain of whole numbers ends at a fraction"
    )
    both_ends = said.get("intervals") == "closed"
    return Column(
        **common, cuts=cuts, domain=domain, date_format=said.get("date_format"), whole=whole, both_ends=both_ends
    )


def walk_leaves(node: Any, seen: set[str]) -> Iterator[str]:
    """The leaves of a taxonomy, depth first."""
    need(isinstance(node, dict) and isinstance(node.get("name"), str), "a node of a taxonomy has no name")
    need(set(node) <= {"name", "children"}, "a node of a taxonomy says more than it may")
    need(node["name"] not in seen, "a name stands twice in a taxonomy")
    seen.add(node["name"])
    children = node.get("children")
    if children is None:
        yield node["name"]
        return
    need(isinstance(children, list) and children, "a node of a taxonomy has no children")
    for child in children:
        yield from walk_leaves(child, seen)
