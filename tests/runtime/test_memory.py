# SPDX-License-Identifier: Apache-2.0
"""How much memory may be used: no more than the limits of all control groups leave, of either version."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonfit.runtime import process

NAMES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def available(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    place: str,
    limits: dict[str, tuple[str, int, int]],
) -> int:
    """What is available, where folders have a limit, and so much is used, of which so much are files."""
    root = tmp_path / "groups" / ("memory" if version == 1 else "")
    for folder, (limit, used, files) in limits.items():
        group = root / folder
        group.mkdir(parents=True, exist_ok=True)
        most, now, cached = NAMES[version]
        (group / most).write_text(f"{limit}\n", encoding="ascii")
        (group / now).write_text(f"{used}\n", encoding="ascii")
        (group / "memory.stat").write_text(f"anon 5\n{cached} {files}\nfile 9\n", encoding="ascii")
    own = f"3:cpu,cpuacct:/elsewhere\n4:memory:{place}\n" if version == 1 else f"0::{place}\n"
    (tmp_path / "own").write_text(own, encoding="ascii")
    monkeypatch.setattr(process, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(process, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(process, "_free_memory", lambda: 10_000)
    return process.available_memory()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("place", "limits", "left"),
    [
        ("/", {"": ("3000", 1000, 0)}, 2000),
        ("/", {"": ("3000", 1000, 400)}, 2400),
        ("/", {"": ("900000", 1000, 0)}, 10_000),
        ("/", {"": ("3000", 4000, 0)}, 0),
        ("/a/b", {"": ("9000", 0, 0), "a": ("5000", 1000, 0), "a/b": ("8000", 500, 0)}, 4000),
        ("/a/b", {"": ("9000", 0, 0), "a/b": ("8000", 500, 0)}, 7500),
        ("/docker/id", {"": ("3000", 1000, 0)}, 2000),  # seen from within the container
        ("/a", {}, 10_000),
    ],
)
def test_limits_of_all_groups_hold(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    place: str,
    limits: dict[str, tuple[str, int, int]],
    left: int,
) -> None:
    assert available(tmp_path, monkeypatch, version, place, limits) == left


def test_a_group_without_a_limit_leaves_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert available(tmp_path, monkeypatch, 2, "/a", {"": ("max", 7, 0), "a": ("max", 7, 0)}) == 10_000


def test_a_limit_holds_where_the_system_does_not_say_what_of_it_are_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    available(tmp_path, monkeypatch, 1, "/", {"": ("3000", 1000, 400)})
    statistics = tmp_path / "groups" / "memory" / "memory.stat"
    statistics.write_text("cache 5\nrss 9\n", encoding="ascii")
    assert process.available_memory() == 2000
    statistics.unlink()
    assert process.available_memory() == 2000


def test_without_control_groups_what_is_free_is_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "OWN_GROUPS", tmp_path / "none")
    monkeypatch.setattr(process, "_free_memory", lambda: 10_000)
    assert process.available_memory() == 10_000
