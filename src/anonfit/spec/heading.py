# SPDX-License-Identifier: Apache-2.0
"""The settings of `[report]`: words that a report is headed by."""

from __future__ import annotations

from anonfit.spec.kinds import Given, Public, Section, Setting, ValueKind
from anonfit.spec.model import ReportSpec

LONGEST = 200


def _read_line(given: Given) -> str | None:
    line: str | None = given.of_type(str, "a line of text")
    if line is not None and (not line.strip() or len(line) > LONGEST or not line.isprintable()):
        given.faults.add(f"{given.place} must be one line of at most {LONGEST} characters that can be printed.")
        return None
    return line


LINE = ValueKind(_read_line)
REPORT = Section(
    "report",
    ReportSpec,
    tuple(
        Setting(name, LINE, meaning, default, public=Public.CHANGED, recodes=False)
        for name, meaning, default in (
            ("title", "the title of the report", "Anonymized release"),
            ("table_name", "what the report calls the table; the name of its file is not public", "none"),
            ("contact", "whom readers of the report may ask", "none"),
        )
    ),
)
