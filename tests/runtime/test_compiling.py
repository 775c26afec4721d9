# SPDX-License-Identifier: Apache-2.0
"""Machine code that is kept on disk: what is damaged there is forgotten and compiled again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anonfit.runtime import compiling


def _add(a: int, b: int) -> int:
    return a + b


_add.__module__ = "trial.part"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(compiling, "cache_folder", lambda _: tmp_path)
    return tmp_path


def _files(folder: Path, ending: str) -> list[Path]:
    return [path for path in folder.rglob(f"*.{ending}") if path.is_file()]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _turn_bits(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 40] = bytes(40)
    path.write_bytes(content)


def _garbage(path: Path) -> None:
    path.write_bytes(b"\x80\x05garbage")


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def test_machine_code_depends_on_the_files_of_its_constants() -> None:
    root = Path(compiling.__file__).parent.parent
    files = [path for pattern in compiling.CONSTANTS["engines"] for path in root.glob(pattern)]
    assert {"schema.py", "targets.py", "objectives.py", "diversity.py", "likeness.py"} <= {path.name for path in files}


DAMAGES: list[Callable[[Path], object]] = [
    _cut,
    _turn_bits,
    _garbage,
    Path.unlink,
    lambda path: path.write_bytes(b""),
    lambda path: path.chmod(0),
]


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_what_is_damaged_is_compiled_again_and_kept(folder: Path, ending: str) -> None:
    assert compiling.kernel(_add)(1, 2) == 3
    for damage in DAMAGES:
        for path in _files(folder, ending):
            damage(path)
        assert compiling.kernel(_add)(1, 2) == 3
        again: Any = compiling.kernel(_add)
        assert again(1, 2) == 3
        assert sum(again.stats.cache_hits.values()) == 1


def test_a_cache_that_can_never_be_written_is_no_failure(folder: Path) -> None:
    assert compiling.kernel(_add)(1, 2) == 3
    for path in [*_files(folder, "nbi"), *_files(folder, "nbc")]:
        _replace_by_folder(path)
    assert compiling.kernel(_add)(1, 2) == 3


def test_a_full_disk_is_no_failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.caching import IndexDataCacheFile

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", full)
    assert compiling.kernel(_add)(1, 2) == 3
    assert compiling.kernel(_add, "int64(int64, int64)")(1, 2) == 3
