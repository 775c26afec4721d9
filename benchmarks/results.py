# SPDX-License-Identifier: Apache-2.0
"""RESULTS.md, which several commands write: each puts its own sections in their places."""

from __future__ import annotations

import re
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"


def put_section(path: Path, lines: list[str]) -> None:
    """Put a section in place of the one with the same heading, or at the end."""
    text = path.read_text(encoding="utf-8") if path.exists() else "# Benchmark results\n"
    before, heading, after = text.partition(f"{lines[0]}\n")
    following = after.find("\n## ") + 1 if heading else 0
    rest = after[following:] if following else ""
    path.write_text(before.rstrip("\n") + "\n\n" + "\n".join(lines) + ("\n" + rest if rest else ""), encoding="utf-8")


def put_report(path: Path, text: str) -> None:
    """Write a report anew; sections that it does not have are other commands', and stay."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(text, encoding="utf-8")
    for section in re.split(r"^(?=## )", old, flags=re.MULTILINE)[1:]:
        lines = section.rstrip("\n").split("\n")
        if lines[0] not in text.split("\n"):
            put_section(path, [*lines, ""])
