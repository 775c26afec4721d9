# SPDX-License-Identifier: Apache-2.0
"""anonfit: anonymous releases of tables about people that stay useful for a stated purpose."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anonfit.algorithms.trees.nearest import nearest_safe_tree
    from anonfit.api import Release, anonymize, load, run
    from anonfit.auditing.api import audit
    from anonfit.auditing.result import Audit
    from anonfit.auditing.tree_folder import TreeAudit
    from anonfit.errors import (
        AnonfitError,
        AuditFailed,
        DataError,
        DemandError,
        EngineError,
        Infeasible,
        MissingPackage,
        RecodingError,
        ReleaseError,
        RequestError,
        SpecError,
        TaxonomyError,
        TooManyGroups,
    )
    from anonfit.estimators.anonymizer import Anonymizer
    from anonfit.estimators.k_anonymous_tree import KAnonymousTreeClassifier
    from anonfit.estimators.region_encoder import RegionEncoder
    from anonfit.evaluation.comparing import compare
    from anonfit.evaluation.grid import evaluate
    from anonfit.evaluation.result import Evaluation
    from anonfit.recoding.recoding import Recoding
    from anonfit.release.folder_audits import audit_release, audit_tree
    from anonfit.spec.model import Spec
    from anonfit.spec.parse import parse_spec, read_spec
    from anonfit.tables.taxonomy import Taxonomy
    from anonfit.tables.taxonomy_files import read_taxonomy, write_taxonomy
    from anonfit.tree_api import load_tree, run_tree

__all__ = [
    "AnonfitError",
    "Anonymizer",
    "Audit",
    "AuditFailed",
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
    "read_spec",
    "read_taxonomy",
    "run",
    "run_tree",
    "write_taxonomy",
]

_HOMES = {
    "AnonfitError": "anonfit.errors",
    "Anonymizer": "anonfit.estimators.anonymizer",
    "Audit": "anonfit.auditing",
    "AuditFailed": "anonfit.errors",
    "DataError": "anonfit.errors",
    "DemandError": "anonfit.errors",
    "EngineError": "anonfit.errors",
    "Evaluation": "anonfit.evaluation.result",
    "Infeasible": "anonfit.errors",
    "KAnonymousTreeClassifier": "anonfit.estimators.k_anonymous_tree",
    "MissingPackage": "anonfit.errors",
    "Recoding": "anonfit.recoding.recoding",
    "RecodingError": "anonfit.errors",
    "RegionEncoder": "anonfit.estimators.region_encoder",
    "Release": "anonfit.api",
    "ReleaseError": "anonfit.errors",
    "RequestError": "anonfit.errors",
    "Spec": "anonfit.spec.model",
    "SpecError": "anonfit.errors",
    "Taxonomy": "anonfit.tables.taxonomy",
    "TaxonomyError": "anonfit.errors",
    "TooManyGroups": "anonfit.errors",
    "TreeAudit": "anonfit.auditing",
    "anonymize": "anonfit.api",
    "audit": "anonfit.auditing",
    "audit_release": "anonfit.release.folder_audits",
    "audit_tree": "anonfit.release.folder_audits",
    "compare": "anonfit.evaluation.comparing",
    "evaluate": "anonfit.evaluation.grid",
    "load": "anonfit.api",
    "load_tree": "anonfit.tree_api",
    "nearest_safe_tree": "anonfit.algorithms.trees.nearest",
    "parse_spec": "anonfit.spec.parse",
    "read_spec": "anonfit.spec.parse",
    "read_taxonomy": "anonfit.tables.taxonomy_files",
    "run": "anonfit.api",
    "run_tree": "anonfit.tree_api",
    "write_taxonomy": "anonfit.tables.taxonomy_files",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package costs nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("anonfit")
    if name not in _HOMES:
        raise AttributeError(f"module 'anonfit' has no attribute {name!r}")
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
