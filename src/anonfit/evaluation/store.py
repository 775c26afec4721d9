# SPDX-License-Identifier: Apache-2.0
"""What an evaluation has found so far, in a file that the next one goes on from. It holds measures, no record's values.

Every entry stands under a hash of all that it depends on, so that one file serves different evaluations.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.errors import RequestError
from anonfit.evaluation.jobs import Setting, name_of
from anonfit.evaluation.methods import Method
from anonfit.evaluation.models import Task
from anonfit.spec.write import spec_tables

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FILE", "Keys", "Store"]

FORMAT = 1
"""Raised when the same request would be measured differently."""
HEAD = json.dumps({"version": FORMAT})
FILE = "store.jsonl"


def _hashed(*parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else json.dumps(part, ensure_ascii=False, default=str).encode()
        found.update(hashlib.sha256(data).digest())
    return found.hexdigest()


def _rows(frame: pl.DataFrame) -> bytes:
    """The rows as bytes; categories are named at random, so their texts stand for them."""
    import polars as pl

    kinds = (pl.Categorical, pl.Enum)
    frame = frame.with_columns(one.cast(pl.String) for one in frame if isinstance(one.dtype, kinds))
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="uncompressed")
    return buffer.getvalue()


class Keys:
    """The keys of an evaluation's entries."""

    def __init__(self, setting: Setting) -> None:
        spec = spec_tables(setting.spec)
        spec.get("data", {}).pop("source", None)
        spec["privacy"].pop("k")
        fitted = [pickle.dumps(one.model) for one in setting.spec.targets if one.model is not None]
        self._shared = _hashed(
            [FORMAT, version("anonfit"), setting.protocol, setting.encoding, setting.seed],
            spec,
            repr(setting.schema),
            _rows(setting.frame),
            setting.fold_of.tobytes(),
            *([repr(setting.asked)] if setting.asked else []),
            *fitted,
        )
        # Figures are told of the targets of all models together, so they are others where other models are asked for.
        self._targets = sorted({one.labels.column.name for one in setting.tasks})

    def of(self, way: Method | str, k: int | None, fold: int, task: Task | None = None, learner: str = "") -> str:
        """The key of what a learner did, or without one of the figures of a release."""
        model = self._targets if task is None else [task.model.target, list(task.using), task.model.where]
        settings = repr(way) if is_dataclass(way) else ""
        return _hashed([self._shared, name_of(way), settings, k, fold, model, learner])


class Store:
    """Entries by key, and the file they are kept in, if there is one."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None
        self._entries: dict[str, Any] = {}
        if folder is None:
            return
        if folder.exists() and not folder.is_dir():
            raise RequestError(f"{folder} is a file; name a folder to keep results in.")
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / FILE
        if _is_begun(self._path):
            self._entries = dict(_entries(self._path))

    def __contains__(self, key: str) -> bool:
        """Whether it was found."""
        return key in self._entries

    def get(self, key: str, otherwise: Any) -> Any:
        """What was found, or something else where nothing was."""
        return self._entries.get(key, otherwise)

    def add(self, entries: Mapping[str, Any]) -> None:
        """Keep entries, in one go."""
        self._entries.update(entries)
        if self._path is None or not entries:
            return
        lines = [json.dumps({"key": key, "found": found}, ensure_ascii=False) for key, found in entries.items()]
        with self._path.open("a", encoding="utf-8") as file:
            # Each line begins with its end of line, so that one which was cut short spoils no other.
            file.write("" if _is_begun(self._path) else HEAD)
            file.write("".join(f"\n{line}" for line in lines))


def _is_begun(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _entries(path: Path) -> list[tuple[str, Any]]:
    """The whole lines of a file: the last may have been cut short."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    if head != HEAD:
        raise RequestError(f"{path} is no store of this version of anonfit; name another folder, or remove the file.")
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        found.append((entry["key"], entry["found"]))
    return found
