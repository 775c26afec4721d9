# SPDX-License-Identifier: Apache-2.0
"""The public surface: its names, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import anonfit
from anonfit import errors

NAMES = [
    "AnonfitError",
    "Anonymizer",
    "Audit",
    "AuditFailed",
    "Column",
    "DataError",
    "DemandError",
    "EngineError",
    "Evaluation",
    "Infeasible",
    "KAnonymousTreeClassifier",
    "MissingPackage",
    "Recoding",
    "RecodingError",
    "RegionEncoder",
    "Release",
    "ReleaseError",
    "RequestError",
    "Spec",
    "SpecError",
    "Taxonomy",
    "TaxonomyError",
    "TooManyGroups",
    "TreeAudit",
    "TreeRelease",
    "__version__",
    "anonymize",
    "audit",
    "audit_release",
    "audit_tree",
    "compare",
    "evaluate",
    "load",
    "load_tree",
    "nearest_safe_tree",
    "parse_spec",
    "propose",
    "read_spec",
    "read_taxonomy",
    "run",
    "run_tree",
    "taxonomies",
    "write_spec",
    "write_taxonomy",
]


def test_public_names_are_these() -> None:
    assert anonfit.__all__ == NAMES
    assert dir(anonfit) == sorted(NAMES)


def test_every_public_name_can_be_had() -> None:
    for name in NAMES:
        assert getattr(anonfit, name) is not None


def test_every_error_can_be_caught_by_its_name() -> None:
    kinds = {name: found for name in errors.__all__ if isinstance(found := getattr(errors, name), type)}
    assert kinds == {name: getattr(anonfit, name) for name in kinds}
    assert all(issubclass(kind, anonfit.AnonfitError) for kind in kinds.values())
    with pytest.raises(anonfit.RequestError, match="k is missing"):
        anonfit.anonymize("people.csv", quasi_identifiers=["age"])


def test_audit_is_a_function_whatever_was_imported_before() -> None:
    code = (
        "import anonfit, anonfit.release.publish, anonfit.auditing.api; assert callable(anonfit.audit), anonfit.audit"
    )
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
