# SPDX-License-Identifier: Apache-2.0
"""How a file lays its table out: what a spec can say of it. What is not said is found."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Layout:
    """What is given of a file's layout; None is found. Lines are counted from 1."""

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    """The sign around texts; empty: none is."""
    comment: str | None = None
    """What lines begin with that are no records; empty: nothing."""
    header: bool | None = None
    header_row: int | None = None
    skip_rows: int | tuple[int, ...] | None = None
    """How many lines come before the table, or the numbers of lines that are left out."""
    decimal: str | None = None
    thousands: str | None = None
    """The sign between thousands; empty: none."""
    sheet: str | None = None
    value_labels: bool | None = None

    def left_out(self, line: int) -> bool:
        """Whether a line is left out by what is given."""
        skipped = self.skip_rows or 0
        return line <= skipped if isinstance(skipped, int) else line in skipped


FOUND = Layout()
"""Nothing is given, all of it is found."""
LAYOUT = tuple(field.name for field in fields(Layout))
"""The settings, by name."""
OF_SHEETS = ("header", "header_row", "skip_rows", "sheet")
OF_LABELS = ("value_labels", "encoding")
OF_TEXTS = tuple(name for name in LAYOUT if name not in ("sheet", "value_labels"))


def given_layout(settings: Any) -> dict[str, Any]:
    """The settings of a layout that an object holds."""
    return {name: getattr(settings, name) for name in LAYOUT}
