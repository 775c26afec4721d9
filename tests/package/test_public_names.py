# SPDX-License-Identifier: Apache-2.0
"""The public surface: its names, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import anonfit

NAMES = [
    "Anonymizer",
    "Audit",
    "Recoding",
    "RegionEncoder",
    "Release",
    "Spec",
    "Taxonomy",
    "__version__",
    "anonymize",
    "audit",
    "audit_release",
    "load",
    "parse_spec",
    "read_spec",
    "read_taxonomy",
    "run",
    "write_taxonomy",
]


def test_public_names_are_these() -> None:
    assert anonfit.__all__ == NAMES
    assert dir(anonfit) == sorted(NAMES)


def test_every_public_name_can_be_had() -> None:
    for name in NAMES:
        assert getattr(anonfit, name) is not None


def test_audit_is_a_function_whatever_was_imported_before() -> None:
    code = "import anonfit, anonfit.publishing, anonfit.auditing.api; assert callable(anonfit.audit), anonfit.audit"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_loads_no_heavy_package() -> None:
    code = (
        "import sys, anonfit;"
        "print([name for name in ('polars', 'numba', 'pandas', 'pyarrow', 'typer', 'numpy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_help_loads_neither_polars_nor_numba() -> None:
    code = (
        "import sys\n"
        "from anonfit.cli.main import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('polars', 'numba', 'numpy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip().endswith("[]")
