# SPDX-License-Identifier: Apache-2.0
"""Keeps what parts of experiments gave, each by a hash of its settings, so that a run that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anonfit.runtime.files import write_file
from anonfit_papers.reproduction.frame import Measured

VERSION = 1
"""Part of every hash, with the version of the package: what was measured in another way is measured anew."""


@dataclass(frozen=True, slots=True)
class Store:
    """A folder with one file for each part."""

    folder: Path

    def get(self, key: Mapping[str, Any]) -> Measured | None:
        """What a part gave, None if it is not there or cannot be read."""
        try:
            content = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if (
            not isinstance(content, dict)
            or content.get("key") != _plain(key)
            or not isinstance(content.get("gave"), dict)
        ):
            return None
        return dict(content["gave"])

    def put(self, key: Mapping[str, Any], gave: Measured) -> None:
        """Keep what a part gave; a file is whole or not there."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps({"key": _plain(key), "gave": gave}, ensure_ascii=False))

    def _path(self, key: Mapping[str, Any]) -> Path:
        text = json.dumps(
            {"version": VERSION, "anonfit": version("anonfit"), "key": _plain(key)}, sort_keys=True, ensure_ascii=False
        )
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def _plain(key: Mapping[str, Any]) -> Any:
    """A key as it comes back from a file: tuples are lists there."""
    return json.loads(json.dumps(key))
