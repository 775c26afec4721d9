# SPDX-License-Identifier: Apache-2.0
"""The contracts of imports name every part of the package, so that a new part is not free to import what it likes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import anonfit

ROOT = Path(anonfit.__file__).parent
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
AUDIT_MAY_IMPORT = {"anonfit.auditing", "anonfit.errors", "anonfit.runtime.compiling"}


def contract(words: str) -> dict[str, Any]:
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    return next(each for each in contracts if words in each["name"])


def parts(folder: Path, name: str) -> set[str]:
    inside = [path for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()]
    return {f"{name}.{path.stem}" for path in inside if not path.stem.startswith("_")}


def test_the_audit_may_import_errors_and_the_compiler_only() -> None:
    every = (parts(ROOT, "anonfit") - {"anonfit.runtime"}) | parts(ROOT / "runtime", "anonfit.runtime")
    assert set(contract("audit shares no code")["forbidden_modules"]) == every - AUDIT_MAY_IMPORT


def test_no_part_of_the_package_may_import_what_tests_it() -> None:
    beside = {"anonfit.auditing", "anonfit.errors", "anonfit.testing"}
    assert set(contract("does not need what tests it")["source_modules"]) == parts(ROOT, "anonfit") - beside


def test_every_part_has_a_layer_or_stands_beside_them() -> None:
    layers = {name.strip() for layer in contract("point down")["layers"] for name in layer.replace("|", ":").split(":")}
    assert layers | {"anonfit.auditing", "anonfit.testing"} == parts(ROOT, "anonfit")
