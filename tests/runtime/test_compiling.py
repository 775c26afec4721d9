# SPDX-License-Identifier: Apache-2.0
"""Machine code that is kept on disk: what is damaged there is forgotten and compiled again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anonfit.runtime import compiling
from anonfit.runtime.compiling import CodeFolder


def _add(a: int, b: int) -> int:
    return a + b


_add.__module__ = "trial.part"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    keep(monkeypatch, own=CodeFolder(tmp_path))
    return tmp_path


def keep(monkeypatch: pytest.MonkeyPatch, *, own: CodeFolder | None = None, brought: CodeFolder | None = None) -> None:
    monkeypatch.setattr(compiling, "own", lambda _: own)
    monkeypatch.setattr(compiling, "brought", lambda _: brought)


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
    files = [path for pattern in compiling.CONSTANTS["engines"] for path in compiling.PACKAGE.glob(pattern)]
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


WITHOUT_BLAS = """
import sys
import numpy as np
from anonfit.runtime.compiling import kernel

def plus(a, b):
    return a + b

plus.__module__ = "trial.part"
assert kernel(plus)(1, 2) == 3
assert "numba.np.arraymath" in sys.modules
assert "scipy.linalg" not in sys.modules
import numba
from numba.np.arraymath import _HAVE_BLAS
product = numba.njit(lambda a, b: np.dot(a, b))(np.full((2, 3), 2.0), np.ones((3, 2)))
assert product.tolist() == [[6.0, 6.0], [6.0, 6.0]]
inner = numba.njit(lambda a, b: np.kron(a, b))(np.ones(2), np.arange(2.0))
assert inner.tolist() == [0.0, 1.0, 0.0, 1.0]
assert _HAVE_BLAS and "scipy.linalg" in sys.modules
"""


def test_blas_is_looked_for_only_when_somebody_asks(tmp_path: Path) -> None:
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", WITHOUT_BLAS], env=environment, check=True)


# --- machine code that a package brings ---------------------------------------------------------------------------


def _hits(function: Any) -> int:
    assert function(1, 2) == 3
    return sum(function.stats.cache_hits.values())


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CodeFolder:
    """Machine code as the build of a package leaves it."""
    built = CodeFolder(tmp_path / "built", "some-processor")
    built.path.mkdir()
    keep(monkeypatch, own=built)
    assert _hits(compiling.kernel(_add)) == 0
    return built


def test_what_a_package_brings_is_not_compiled_though_nothing_can_be_written(
    packaged: CodeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged.path.chmod(0o555)
    keep(monkeypatch, brought=packaged)
    assert _hits(compiling.kernel(_add)) == 1


def test_machine_code_is_found_wherever_the_package_is_put(
    packaged: CodeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = packaged.path.rename(packaged.path.parent / "elsewhere")
    keep(monkeypatch, brought=CodeFolder(moved, packaged.processor))
    assert _hits(compiling.kernel(_add)) == 1


def test_code_for_another_processor_is_compiled_and_kept_apart(
    packaged: CodeFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in packaged.path.iterdir()}
    (tmp_path / "own").mkdir()
    keep(monkeypatch, own=CodeFolder(tmp_path / "own"), brought=CodeFolder(packaged.path, "another-processor"))
    assert [_hits(compiling.kernel(_add)) for _ in range(2)] == [0, 1]
    assert {path: path.read_bytes() for path in packaged.path.iterdir()} == before


def test_damaged_code_of_a_package_is_neither_run_nor_removed(
    packaged: CodeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in _files(packaged.path, "nbc"):
        _turn_bits(path)
    keep(monkeypatch, brought=packaged)
    assert _hits(compiling.kernel(_add)) == 0
    assert len(_files(packaged.path, "nbi")) == 1


def test_an_older_processor_gets_the_code_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    features: dict[str, bool] = dict.fromkeys(compiling.NEEDS["x86-64-v3"], True)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: features)
    try:
        compiling.processors.cache_clear()
        assert compiling.processors() == ("x86-64-v3", "x86-64")
        features["avx2"] = False
        compiling.processors.cache_clear()
        assert compiling.processors() == ("x86-64",)
    finally:
        compiling.processors.cache_clear()


def test_a_package_for_another_numba_brings_nothing_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "BROUGHT", tmp_path)
    compiling.brought.cache_clear()
    try:
        (tmp_path / "python3.1-numba0.1").mkdir()
        assert compiling.brought("engines") is None
        assert "is for python3.1-numba0.1, not for python3." in compiling.why_not_brought()
        compiling.brought.cache_clear()
        place = compiling.place(tmp_path, compiling.processors()[-1], "engines")
        place.mkdir(parents=True)
        assert compiling.brought("engines") == CodeFolder(place, compiling.processors()[-1])
        compiling.brought.cache_clear()
        place.rename(place.parent / "of-other-sources")
        assert compiling.brought("engines") is None
        assert "sources were changed" in compiling.why_not_brought()
    finally:
        compiling.brought.cache_clear()


def test_a_build_uses_the_kernels_of_every_algorithm() -> None:
    from anonfit.engines.memory import boosting_growth, growing, refining_kernels, tree_kernels, tree_splits
    from anonfit.release.engine import compile_all

    compile_all()
    for kernel in (
        boosting_growth.grow_tree,
        growing.grow_subtree,
        refining_kernels.count_entities,
        refining_kernels.count_values,
        tree_kernels.part_rows,
        tree_kernels.part_spans,
        tree_splits.weigh,
    ):
        assert kernel.signatures


@pytest.mark.slow
def test_a_build_leaves_out_no_kernel(tmp_path: Path) -> None:
    script = compiling.PACKAGE.parent.parent / "scripts" / "machine_code.py"
    processor = compiling.processors()[-1]
    environment = os.environ | {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}
    subprocess.run([sys.executable, str(script), processor, str(tmp_path)], env=environment, check=True)
    import anonfit.engines.memory.engine  # loads the kernels

    built = {path.name.rsplit("-", 1)[0] for path in tmp_path.rglob("*.nbi")}
    kernels = {
        f"{item.py_func.__module__}.{item.py_func.__qualname__}"
        for module in list(sys.modules.values())
        if module.__name__.startswith(("anonfit.engines.memory.", "anonfit.auditing."))
        for item in vars(module).values()
        if hasattr(item, "targetoptions") and not item.targetoptions.get("no_cpython_wrapper")
    }
    assert anonfit.engines.memory.engine
    assert len(kernels) > 10
    assert kernels <= built
