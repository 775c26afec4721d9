# SPDX-License-Identifier: Apache-2.0
"""JSON as the files of a release have it, from docs/release-folder.md alone: the independent checker holds files
against it, and tests that forge a file write it so that the audit must find the forgery itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BY_LINES = ("columns", "nodes", "parts", "bins")


def json_text(name: str, content: Any) -> str:
    """The text of a JSON file of a release."""
    if name not in ("recoding.json", "model.json") or not isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    entries = []
    for key, value in content.items():
        text = tight(value) if key == "predicts" else loose(value)
        if key in BY_LINES and isinstance(value, dict):
            text = "{\n" + ",\n".join(f"  {loose(one)}: {tight(held)}" for one, held in value.items()) + "\n }"
        elif key in BY_LINES and isinstance(value, list):
            text = "[\n" + ",\n".join(f"  {(loose if key == 'columns' else tight)(one)}" for one in value) + "\n ]"
        entries.append(f" {loose(key)}: {text}")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def loose(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def tight(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file of a release folder."""
    path.write_text(json_text(path.name, content), encoding="utf-8")
