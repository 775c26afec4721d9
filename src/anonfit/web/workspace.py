# SPDX-License-Identifier: Apache-2.0
"""The folder that the page works in: its spec, its tables, uploads and hierarchies; no name reaches outside of it."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any, BinaryIO

import tomlkit
from tomlkit.exceptions import TOMLKitError

from anonfit.errors import RequestError, SpecError
from anonfit.spec.parse import parse_toml
from anonfit.tables.sources import FILES, SECRETS, VARIABLE, divided, format_of, is_database

SPEC, UPLOADS, RUNS, HIERARCHIES, STATE = "spec.toml", "uploads", "runs", "hierarchies", ".anonfit-web"
KEPT = 50
"""Earlier texts of the spec that Undo can go back to."""
PIECE = 1 << 20
SECRET = re.compile(r"(\w+://[^:@/\s\"']*:)[^@\s\"']+@")
ALSO_SECRET = re.compile(rf"([?&](?:{'|'.join(SECRETS)})=)[^&#\s\"']+")
ADDRESSES = ("data.source", "output.to")
"""Settings that may hold the address of a database."""


class Conflict(RequestError):
    """The spec was changed elsewhere since it was shown."""


@dataclass(frozen=True)
class Workspace:
    """A folder, and what the page keeps in it. Every change of the spec is one step that can be undone."""

    root: Path
    lock: RLock = field(default_factory=RLock, repr=False, compare=False)

    @classmethod
    def of(cls, folder: Path) -> Workspace:
        """The workspace of a folder, whose private parts are made if they are missing."""
        if not folder.is_dir():
            raise RequestError(f"{folder}: there is no such folder; make it, or name another one.")
        space = cls(folder.resolve())
        for name in (UPLOADS, RUNS, STATE, f"{STATE}/history", f"{STATE}/incoming", f"{STATE}/answers"):
            (space.root / name).mkdir(mode=0o700, exist_ok=True)
        for name in (UPLOADS, RUNS, STATE):
            (space.root / name).chmod(0o700)
        return space

    @property
    def spec_path(self) -> Path:
        """The spec that the page edits."""
        return self.root / SPEC

    @property
    def state(self) -> Path:
        """Where the page keeps what is nobody's business."""
        return self.root / STATE

    def inside(self, name: str) -> Path:
        """The path of a name in this folder; one that leads elsewhere, or to hidden files, is refused."""
        parts = Path(name).parts
        refused = RequestError(
            "a path of the request leads out of the folder that anonfit web was started in; put the file into it."
        )
        if not name or "\0" in name or Path(name).is_absolute() or any(part.startswith(".") for part in parts):
            raise refused
        try:
            path = (self.root / name).resolve()
        except (OSError, ValueError, RuntimeError):
            raise refused from None
        if path == self.root or not path.is_relative_to(self.root) or STATE in path.relative_to(self.root).parts:
            raise refused
        return path

    def tables(self) -> list[tuple[str, int]]:
        """The tables in the folder and among the uploads: their names and sizes."""
        tables = []
        for path in (*sorted(self.root.iterdir()), *sorted((self.root / UPLOADS).iterdir())):
            name = path.relative_to(self.root).as_posix()
            with suppress(RequestError):
                if self.inside(name).is_file() and format_of(path):
                    tables.append((name, path.stat().st_size))
        return tables

    def databases(self) -> list[str]:
        """The addresses of database files in the folder, known by how they end."""
        kinds = {".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".duckdb": "duckdb"}
        found = [path for path in sorted(self.root.iterdir()) if path.suffix in kinds and path.is_file()]
        return [f"{kinds[path.suffix]}:{path.name}" for path in found if not path.name.startswith(".")]

    def state_of(self, source: str | None) -> str:
        """What changes when a table does."""
        if source is None:
            return str(source)
        file = source
        if is_database(source):
            kind, _, file = divided(source)[0].partition(":")
            if kind not in FILES:
                return source
        try:
            status = self.inside(file.removeprefix("//")).stat()
        except (OSError, RequestError):
            return "absent"
        return f"{status.st_size}-{status.st_mtime_ns}"

    # --- uploads ------------------------------------------------------------------------------------------------

    def upload(self, name: str, file: BinaryIO, *, folder: str = UPLOADS) -> str:
        """Put a file that somebody sent among the uploads; the name that it got. What has the name already stays."""
        last = re.split(r"[/\\]", name)[-1]
        safe = re.sub(r"[^\w.\- ]", "_", last).strip(" .")[-120:].lstrip(".")
        if not safe:
            raise RequestError("the file has no name; give it one that ends in .csv or such.")
        place = self.root / folder
        place.mkdir(mode=0o700, exist_ok=True)
        stem, dot, rest = safe.partition(".")
        for number in range(1, 1000):
            path = place / (safe if number == 1 else f"{stem}-{number}{dot}{rest}")
            try:
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
            except FileExistsError:
                continue
            with os.fdopen(handle, "wb") as target:
                while piece := file.read(PIECE):
                    target.write(piece)
            return path.relative_to(self.root).as_posix()
        raise RequestError(f"there are a thousand uploads called {safe}; remove some.")

    def remove_upload(self, name: str) -> None:
        """Remove an upload."""
        path = self.inside(name)
        if path.parent != self.root / UPLOADS or not path.is_file():
            raise RequestError("only uploads can be removed here, and there is none of this name.")
        path.unlink()

    def sweep(self, days: float) -> int:
        """Remove uploads and answers that are older than so many days; how many uploads went."""
        before = time.time() - days * 86400
        used = self.root / str(self.read_tables().get("data", {}).get("source", ""))
        kept = (*(self.root / UPLOADS).iterdir(), *(self.state / "answers").iterdir())
        old = [path for path in kept if path.is_file() and path.stat().st_mtime < before and path != used]
        for path in old:
            path.unlink(missing_ok=True)
        return sum(path.parent.name == UPLOADS for path in old)

    def dismissed(self) -> list[str]:
        """What looked odd, and is not: by what the page knows it."""
        path = self.state / "dismissed"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def dismiss(self, key: str) -> None:
        """Say that something is not as odd as it looks."""
        with self.lock:
            replace_text(self.state / "dismissed", "".join(f"{line}\n" for line in [*self.dismissed(), key]))

    # --- the spec -----------------------------------------------------------------------------------------------

    def read(self) -> str:
        """The text of the spec; empty if there is none."""
        try:
            return self.spec_path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError):
            raise SpecError(["spec.toml cannot be read as UTF-8 text; mend it, or put it aside."]) from None

    def read_tables(self) -> dict[str, Any]:
        """The tables of the spec, as far as it is TOML."""
        try:
            return parse_toml(self.read(), SPEC)
        except SpecError:
            return {}

    def write(self, text: str, *, seen: str | None = None) -> None:
        """Give the spec a new text; refused if it is not the one that was seen."""
        with self.lock:
            before = self.read()
            if seen is not None and seen != mark(before):
                raise Conflict("the spec was changed in another window meanwhile; reload the page, then change it.")
            if text == before:
                return
            if before:
                history = self.state / "history"
                (history / f"{time.time_ns():020}.toml").write_text(before, encoding="utf-8")
                for old in sorted(history.iterdir())[:-KEPT]:
                    old.unlink(missing_ok=True)
            replace_text(self.spec_path, text)

    def edit(self, change: Callable[[tomlkit.TOMLDocument], object]) -> None:
        """Change the spec in its own words: what is not touched stays as it is written, comments too."""
        with self.lock:
            try:
                document = tomlkit.parse(self.read() or "version = 1\n")
            except (TOMLKitError, ValueError, RecursionError):
                raise SpecError(["spec.toml is not TOML; mend its text first."]) from None
            change(document)
            self.write(tomlkit.dumps(document))

    def undo(self) -> bool:
        """Go back to the text before the last change."""
        with self.lock:
            history = sorted((self.state / "history").iterdir())
            if not history:
                return False
            replace_text(self.spec_path, history[-1].read_text(encoding="utf-8"))
            history[-1].unlink()
            return True

    def can_undo(self) -> bool:
        """Whether there is an earlier text."""
        return any((self.state / "history").iterdir())

    def contain(self, tables: Mapping[str, Any]) -> None:
        """Refuse a spec that names a path outside of the folder, or a query that could read one."""
        for where, path in _paths(tables):
            if not isinstance(path, str):
                continue  # the parser says what is wrong with it
            if where in ADDRESSES and is_database(path):
                kind, _, rest = divided(path)[0].partition(":")
                if kind == VARIABLE:
                    kind, _, rest = divided(os.environ.get(rest, ""))[0].partition(":")
                if kind in FILES:
                    self.inside(rest.removeprefix("//"))
                    if isinstance(tables.get("data"), dict) and "query" in tables["data"]:
                        raise RequestError(
                            "data.query could read files outside of the folder; name data.table, or use anonfit run."
                        )
                continue
            try:
                if "://" in path:  # Spark would read it wherever it is, this machine's own files too
                    raise RequestError(
                        "an address that is no database's leads out of the folder; use anonfit run for it."
                    )
                self.inside(path)
            except RequestError as error:
                raise RequestError(f"{where}: {error}") from None


def _paths(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every path that a spec names, and where."""

    def setting(*keys: str) -> Any:
        """What stands under some keys; None where there is nothing, or no table on the way."""
        held: Any = tables
        for key in keys:
            held = held.get(key) if isinstance(held, Mapping) else None
        return held

    for keys in (("data", "source"), ("method", "start"), ("engine", "spill")):
        if setting(*keys) is not None:
            yield ".".join(keys), setting(*keys)
    if is_database(setting("output", "to")):
        yield "output.to", setting("output", "to")
    columns = setting("columns")
    for name in columns if isinstance(columns, Mapping) else ():
        if isinstance(taxonomy := setting("columns", name, "taxonomy"), str):
            yield f"columns.{name}.taxonomy", taxonomy
    log = setting("workload", "query_log", "path")
    for path in log if isinstance(log, list) else [log]:
        yield "workload.query_log.path", path


def mark(text: str) -> str:
    """What a text is known by."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def replace_text(path: Path, text: str) -> None:
    """Give a file that only we can read a new text in one step."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    new.touch(mode=0o600, exist_ok=False)
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def without_secrets(text: str) -> str:
    """A text in which passwords of addresses are not shown."""
    return ALSO_SECRET.sub(r"\1…", SECRET.sub(r"\1…@", text))
