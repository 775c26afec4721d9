# SPDX-License-Identifier: Apache-2.0
"""`af.compare`: reads releases, measures them alike, and says where they cannot be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anonfit.api import Release, load_table
from anonfit.errors import ReleaseError, RequestError, listed
from anonfit.evaluation.comparing.differences import differences
from anonfit.evaluation.comparing.figures import Compared, figures
from anonfit.evaluation.comparing.together import Side, together
from anonfit.metrics.extents import common_extents, unnamed_values
from anonfit.runtime.files import write_file
from anonfit.runtime.progress import Stage, silent

__all__ = ["Comparison", "check_page", "compare"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Releases side by side, as plain data. All of it may be passed on: it is of the released files, or obeys the
    disclosure rule.
    """

    releases: tuple[Mapping[str, Any], ...]
    differences: tuple[str, ...]
    pairs: tuple[Mapping[str, Any], ...] = ()

    def __repr__(self) -> str:
        """The names of the releases."""
        return f"Comparison({', '.join(str(release['name']) for release in self.releases)})"

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-ready."""
        return {
            "releases": [dict(release) for release in self.releases],
            "differences": list(self.differences),
            "together": [dict(pair) for pair in self.pairs],
        }

    def to_html(self) -> str:
        """One page that needs nothing from anywhere else."""
        from anonfit.evaluation.comparing.page import comparison_page

        return comparison_page(self.to_dict())

    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write the page.

        Args:
            path: The file to make.
            replace: Whether a file that is already there may be replaced.

        Returns:
            The file.
        """
        path = Path(path)
        check_page(path, replace=replace)
        write_file(path, self.to_html(), replace=replace)
        return path


def check_page(path: Path, *, replace: bool) -> None:
    """Refuse a place where a page cannot be written, or where something else is."""
    if path.is_dir() or (path.exists() and not replace):
        raise RequestError(f"{path} is already there; choose another name, or allow to replace it (--replace).")
    if not path.absolute().parent.is_dir():
        raise RequestError(f"{path.absolute().parent}: there is no such folder to write the page into.")


def compare(
    *releases: Release | str | Path,
    source: Any = None,
    names: Sequence[str] = (),
    stage: Stage = silent,
) -> Comparison:
    """Put releases side by side: demands, risk, utility, what each column kept.

    Args:
        releases: Two or more release folders, or releases.
        source: The raw table they were made from. With it every two of them are audited together: who has both sees
            smaller groups. That needs folders.
        names: What to call them; their folders' names if not given.
        stage: Told each stage as it begins.

    Returns:
        The comparison: `.to_dict()`, `.to_html()`, `.save(path)`.
    """
    if len(releases) < 2:
        raise RequestError(f"a comparison needs two releases or more; {len(releases)} given.")
    if names and len(names) != len(releases):
        raise RequestError(f"{len(names)} name(s) for {len(releases)} releases; give each one, or none.")
    folders = [Path(one) if isinstance(one, str | Path) else None for one in releases]
    if source is not None and None in folders:
        raise RequestError("releases are audited together as folders; save them, and give their paths.")
    stage("Loading the releases")
    loaded = [_load(one) for one in releases]
    called = list(names) or _names(folders)
    if len(set(called)) < len(called):
        raise RequestError(f"two releases have the same name, or are the same folder: {listed(called)}.")
    items = [Compared(name, release) for name, release in zip(called, loaded, strict=True)]
    stage("Measuring")
    recodings = [item.release.recoding for item in items]
    extents, unnamed = common_extents(recodings), unnamed_values(recodings)
    found = tuple(figures(item, extents, names) for item, names in zip(items, unnamed, strict=True))
    pairs: list[dict[str, Any]] = []
    if source is not None:
        sides = [Side(item.name, folder, item.k) for item, folder in zip(items, folders, strict=True) if folder]
        pairs = together(sides, source, stage)
    return Comparison(found, tuple(differences(items)), tuple(pairs))


def _load(release: Release | str | Path) -> Release:
    if isinstance(release, Release):
        return release
    if not isinstance(release, str | Path):
        raise RequestError(f"a release or its folder is compared, not a {type(release).__name__}.")
    path = Path(release)
    if path.is_file():
        raise ReleaseError(f"{path} is a file; name the folder of the release.")
    return load_table(path)


def _names(folders: Sequence[Path | None]) -> list[str]:
    """The names of folders; where two are called the same, as much of their paths as tells them apart."""
    absolute = [None if folder is None else folder.resolve() for folder in folders]
    for parts in range(1, max((len(path.parts) for path in absolute if path is not None), default=1) + 1):
        called = [
            f"release {number}" if path is None else str(Path(*path.parts[-parts:]))
            for number, path in enumerate(absolute, start=1)
        ]
        if len(set(called)) == len(called):
            return called
    return called
